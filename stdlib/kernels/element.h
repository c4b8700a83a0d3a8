/* element.h — what each arithmetic operation does to one element, by dtype; the strip kernels, scalars, scans and
 * reductions all use these. Names: el_OP_DTYPE. Integers wrap. NaN is one value: its sign counts as positive. */
#ifndef WEFT_STDLIB_ELEMENT_H
#define WEFT_STDLIB_ELEMENT_H

#include <math.h>
#include <string.h>

#include "parser/base.h"

/* Storage type and its unsigned partner, in which arithmetic wraps. */
typedef u8 T_bool, T_u8;
typedef i32 T_i32;
typedef i64 T_i64;
typedef f32 T_f32;
typedef u16 T_f16, T_bf16;
typedef u32 T_u32;
typedef u64 T_u64;
typedef f64 T_f64;
typedef u8 U_bool;
typedef u32 U_u8, U_i32, U_f32;
typedef u64 U_i64, U_u64, U_f64;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits" /* signs are asked of unsigned types, too */
#define ELEMENT_INT(dt)                                                                                            \
  static inline T_##dt el_add_##dt(T_##dt p, T_##dt q) { return (T_##dt)((U_##dt)p + (U_##dt)q); }                 \
  static inline T_##dt el_subtract_##dt(T_##dt p, T_##dt q) { return (T_##dt)((U_##dt)p - (U_##dt)q); }            \
  static inline T_##dt el_multiply_##dt(T_##dt p, T_##dt q) { return (T_##dt)((U_##dt)p * (U_##dt)q); }            \
  static inline T_##dt el_minimum_##dt(T_##dt p, T_##dt q) { return p < q ? p : q; }                               \
  static inline T_##dt el_maximum_##dt(T_##dt p, T_##dt q) { return p > q ? p : q; }                               \
  static inline T_##dt el_negative_##dt(T_##dt p) { return (T_##dt)(0 - (U_##dt)p); }                              \
  /* q is not 0 */                                                                                                 \
  static inline T_##dt el_floor_divide_##dt(T_##dt p, T_##dt q) {                                                  \
    if (q == (T_##dt)-1 && (T_##dt)-1 < 0) return el_negative_##dt(p);                                             \
    T_##dt d = (T_##dt)(p / q), r = (T_##dt)(p % q);                                                               \
    return (T_##dt)(d - (r != 0 && (r < 0) != (q < 0)));                                                           \
  }                                                                                                                \
  static inline T_##dt el_remainder_##dt(T_##dt p, T_##dt q) {                                                     \
    if (q == (T_##dt)-1 && (T_##dt)-1 < 0) return 0;                                                               \
    T_##dt r = (T_##dt)(p % q);                                                                                    \
    return r != 0 && (r < 0) != (q < 0) ? (T_##dt)(r + q) : r;                                                     \
  }                                                                                                                \
  static inline T_##dt el_fmod_##dt(T_##dt p, T_##dt q) {                                                          \
    return q == (T_##dt)-1 && (T_##dt)-1 < 0 ? 0 : (T_##dt)(p % q);                                                \
  }                                                                                                                \
  /* q is not negative */                                                                                          \
  static inline T_##dt el_pow_##dt(T_##dt p, T_##dt q) {                                                         \
    U_##dt r = 1, b = (U_##dt)p;                                                                                   \
    for (u64 e = (u64)q; e; e >>= 1, b *= b)                                                                       \
      if (e & 1) r *= b;                                                                                           \
    return (T_##dt)r;                                                                                              \
  }                                                                                                                \
  static inline T_##dt el_left_shift_##dt(T_##dt p, T_##dt q) {                                                    \
    return (u64)(i64)q < 8 * sizeof(T_##dt) ? (T_##dt)((U_##dt)p << (q & (T_##dt)(8 * sizeof(T_##dt) - 1))) : 0;   \
  }                                                                                                                \
  static inline T_##dt el_right_shift_##dt(T_##dt p, T_##dt q) {                                                   \
    return (u64)(i64)q < 8 * sizeof(T_##dt) ? (T_##dt)(p >> (q & (T_##dt)(8 * sizeof(T_##dt) - 1)))                \
                                            : (T_##dt)(p < 0 ? -1 : 0);                                            \
  }                                                                                                                \
  static inline T_##dt el_sign_##dt(T_##dt p) { return (T_##dt)((p > 0) - (p < 0)); }                              \
  static inline T_##dt el_abs_##dt(T_##dt p) { return p < 0 ? el_negative_##dt(p) : p; }
ELEMENT_INT(u8)
ELEMENT_INT(i32)
ELEMENT_INT(i64)
ELEMENT_INT(u64)
#undef ELEMENT_INT
#pragma GCC diagnostic pop

static inline u8 el_minimum_bool(u8 p, u8 q) { return p & q; }
static inline u8 el_maximum_bool(u8 p, u8 q) { return p | q; }
static inline u8 el_bit_count_u8(u8 p) { return (u8)__builtin_popcount(p); }
static inline i32 el_bit_count_i32(i32 p) { return __builtin_popcount((u32)p); }
static inline i64 el_bit_count_i64(i64 p) { return __builtin_popcountll((u64)p); }
static inline u64 el_bit_count_u64(u64 p) { return (u64)__builtin_popcountll(p); }

#define ELEMENT_FLOAT(dt, c, sign_bit)                                                                                \
  static inline U_##dt bits_of_##dt(T_##dt p) {                                                                       \
    U_##dt b;                                                                                                         \
    memcpy(&b, &p, sizeof b);                                                                                         \
    return b;                                                                                                         \
  }                                                                                                                   \
  static inline T_##dt of_bits_##dt(U_##dt b) {                                                                       \
    T_##dt p;                                                                                                         \
    memcpy(&p, &b, sizeof p);                                                                                         \
    return p;                                                                                                         \
  }                                                                                                                   \
  static inline T_##dt el_add_##dt(T_##dt p, T_##dt q) { return p + q; }                                              \
  static inline T_##dt el_subtract_##dt(T_##dt p, T_##dt q) { return p - q; }                                         \
  static inline T_##dt el_multiply_##dt(T_##dt p, T_##dt q) { return p * q; }                                         \
  static inline T_##dt el_divide_##dt(T_##dt p, T_##dt q) { return p / q; }                                           \
  /* equal values differ in bits only as -0 and +0 do, which and/or settle; by a mask, since gcc threads the branches \
   * of a choice and then needs twice the instructions */                                                             \
  static inline T_##dt el_minimum_##dt(T_##dt p, T_##dt q) {                                                          \
    T_##dt best = p < q ? p : q;                                                                                      \
    best = of_bits_##dt(bits_of_##dt(best) | (bits_of_##dt(p) & -(U_##dt)(p == q)));                                  \
    return __builtin_isunordered(p, q) ? p + q : best;                                                                \
  }                                                                                                                   \
  static inline T_##dt el_maximum_##dt(T_##dt p, T_##dt q) {                                                          \
    T_##dt best = p > q ? p : q;                                                                                      \
    best = of_bits_##dt(bits_of_##dt(best) & (bits_of_##dt(p) | -(U_##dt)(p != q)));                                  \
    return __builtin_isunordered(p, q) ? p + q : best;                                                                \
  }                                                                                                                   \
  static inline T_##dt el_negative_##dt(T_##dt p) { return -p; }                                                      \
  static inline T_##dt el_abs_##dt(T_##dt p) { return of_bits_##dt(bits_of_##dt(p) & ~sign_bit); }                    \
  static inline T_##dt el_sign_##dt(T_##dt p) {                                                                       \
    return p > 0 ? (T_##dt)1 : p < 0 ? (T_##dt)-1 : p == 0 ? (T_##dt)0 : p;                                           \
  }                                                                                                                   \
  static inline u8 el_signbit_##dt(T_##dt p) { return (p == p) & (bits_of_##dt(p) >= sign_bit); }                     \
  static inline T_##dt el_copysign_##dt(T_##dt p, T_##dt q) {                                                         \
    return of_bits_##dt((bits_of_##dt(p) & ~sign_bit) | (q == q ? bits_of_##dt(q) & sign_bit : 0));                   \
  }                                                                                                                   \
  static inline T_##dt el_floor_##dt(T_##dt p) { return __builtin_floor##c(p); }                                      \
  static inline T_##dt el_ceil_##dt(T_##dt p) { return __builtin_ceil##c(p); }                                        \
  static inline T_##dt el_trunc_##dt(T_##dt p) { return __builtin_trunc##c(p); }                                      \
  static inline T_##dt el_round_##dt(T_##dt p) { return __builtin_rint##c(p); }                                       \
  static inline T_##dt el_sqrt_##dt(T_##dt p) { return __builtin_sqrt##c(p); }                                        \
  static inline u8 el_isnan_##dt(T_##dt p) { return p != p; }                                                         \
  static inline u8 el_isinf_##dt(T_##dt p) { return el_abs_##dt(p) == (T_##dt)INFINITY; }                             \
  static inline u8 el_isfinite_##dt(T_##dt p) { return el_abs_##dt(p) < (T_##dt)INFINITY; }
ELEMENT_FLOAT(f32, f, 0x80000000u)
ELEMENT_FLOAT(f64, , 0x8000000000000000ull)
#undef ELEMENT_FLOAT

#endif
