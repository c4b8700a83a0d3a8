/* kernel_strips_template.c — every strip kernel, for the instruction set this is compiled for (see strips.h).
 * The including file defines STRIPS_NAME and REDUCE_VECTOR_BYTES, and STRIPS_REST, another build: the least and the
 * greatest of floats, which that one has by hand, are taken from it, and so are sums of columns that lie far apart. */
#include "lang/halves.h"
#include "stdlib/kernels/element.h"
#include "stdlib/kernels/kernel_complex.h"
#include "stdlib/kernels/philox.h"
#include "stdlib/kernels/reduce_order.h"
#include "stdlib/kernels/strips.h"
#include "stdlib/kernels/wm.h"

#include <string.h>

#ifdef __FMA__
#include <immintrin.h>
#endif

#pragma GCC diagnostic ignored "-Wtype-limits"

#undef bool /* a dtype name that is pasted through macros here */
typedef _Bool bool;

#define UNUSED __attribute__((unused))
#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define HERE(name) PASTE(name, STRIPS_NAME)
#ifdef STRIPS_REST
#define REST(name) PASTE(name, STRIPS_REST)
#else
#define REST(name) HERE(name)
#endif
#ifndef STRIPS_LINKAGE
#define STRIPS_LINKAGE static
#endif
#define STRIP_PARAMS void *out, const void *xv, const void *yv, i64 n
#define ROWS_PARAMS void *out, const void *xv, i64 n, i64 rows, i64 stride

/* ---- elementwise --------------------------------------------------------------------------------- */

#if REDUCE_VECTOR_BYTES == 64
/* Comparisons by masks: of the vectors p and q (TEST), of what is left in the end one by one (ONE, of x[at] and y[at]).
 * `rest`: all ones where the contrary is meant. */
#define VECTOR_f32 __m512
#define VECTOR_f64 __m512d
#define VECTOR_i32 __m512i
#define VECTOR_i64 __m512i
#define LOAD_f32 _mm512_loadu_ps
#define LOAD_f64 _mm512_loadu_pd
#define LOAD_i32 _mm512_loadu_si512
#define LOAD_i64 _mm512_loadu_si512
#define UNROLLED_equal
#define UNROLLED_less
#define UNROLLED_less_equal
#define UNROLLED_within UNROLL(4)
/* Where the vectors q lie: `within` has none, its y is three numbers. */
#define SECOND_equal y
#define SECOND_less y
#define SECOND_less_equal y
#define SECOND_within x
#define BY_MASKS(name, dt, BEFORE, TEST, ONE)                                                        \
  static __attribute__((noinline)) u32 name##_##dt(void *out, const void *xv, const void *yv, i64 n, u64 rest) { \
    enum { LANES = 64 / sizeof(T_##dt), FOUR = 4 * LANES };                                          \
    const T_##dt *x = xv, *y = yv;                                                                   \
    u8 *o = out;                                                                                     \
    i64 at = 0;                                                                                      \
    BEFORE;                                                                                          \
    while (at + FOUR <= n) {                                                                         \
      u64 found = 0;                                                                                 \
      u8 *to = o + at;                                                                               \
      UNROLLED_##name for (u32 k = 0; k < FOUR; k += LANES, at += LANES) {                           \
        VECTOR_##dt p = LOAD_##dt(x + at), q UNUSED = LOAD_##dt(SECOND_##name + at);                 \
        found |= (u64)(TEST) << k;                                                                   \
      }                                                                                              \
      if (LANES == 8) _mm256_storeu_si256((__m256i *)to, _mm256_maskz_set1_epi8((u32)(found ^ rest), 1)); \
      else _mm512_storeu_si512(to, _mm512_maskz_set1_epi8(found ^ rest, 1));                         \
    }                                                                                                \
    for (; at < n; at++) {                                                                           \
      o[at] = (u8)(ONE) ^ (u8)(rest & 1);                                                            \
      __asm__ volatile(""); /* not by vectors */                                                     \
    }                                                                                                \
    return 0;                                                                                        \
  }
BY_MASKS(equal, i32, , _mm512_cmpeq_epi32_mask(p, q), x[at] == y[at])
BY_MASKS(equal, i64, , _mm512_cmpeq_epi64_mask(p, q), x[at] == y[at])
BY_MASKS(equal, f32, , _mm512_cmp_ps_mask(p, q, _CMP_EQ_OQ), x[at] == y[at])
BY_MASKS(equal, f64, , _mm512_cmp_pd_mask(p, q, _CMP_EQ_OQ), x[at] == y[at])
BY_MASKS(less, i32, , _mm512_cmplt_epi32_mask(p, q), x[at] < y[at])
BY_MASKS(less, i64, , _mm512_cmplt_epi64_mask(p, q), x[at] < y[at])
BY_MASKS(less, f32, , _mm512_cmp_ps_mask(p, q, _CMP_LT_OQ), x[at] < y[at])
BY_MASKS(less, f64, , _mm512_cmp_pd_mask(p, q, _CMP_LT_OQ), x[at] < y[at])
BY_MASKS(less_equal, f32, , _mm512_cmp_ps_mask(p, q, _CMP_LE_OQ), x[at] <= y[at])
BY_MASKS(less_equal, f64, , _mm512_cmp_pd_mask(p, q, _CMP_LE_OQ), x[at] <= y[at])
#define COMPARED_equal(dt) equal_##dt(out, xv, yv, n, 0)
#define COMPARED_not_equal(dt) equal_##dt(out, xv, yv, n, ~0ull)
#define COMPARED_less(dt) less_##dt(out, xv, yv, n, 0)
#define COMPARED_less_equal(dt) less_equal_##dt(out, xv, yv, n, 0)
#define less_equal_i32(out, x, y, n, rest) less_i32(out, y, x, n, ~0ull)
#define less_equal_i64(out, x, y, n, rest) less_i64(out, y, x, n, ~0ull)
#define COMPARISON(op, dt, ...) \
  STRIPS_LINKAGE u32 HERE(strip_##op##_##dt)(STRIP_PARAMS) { return COMPARED_##op(dt); }
#endif

/* Elements at one index do not depend on others: `out` is an operand itself or does not overlap. */
#define STRIP(op, dt, r, check, ...)                                                        \
  STRIPS_LINKAGE u32 HERE(strip_##op##_##dt)(STRIP_PARAMS) {                                \
    const T_##dt *x = xv, *y UNUSED = yv;                                                   \
    T_##r *o = out;                                                                         \
    u32 bad = 0;                                                                            \
    INDEPENDENT for (i64 i = 0; i < n; i++) {                                      \
      T_##dt p UNUSED = x[i], q UNUSED = y[i];                                              \
      if (check) {                                                                          \
        bad = 1;                                                                            \
        o[i] = 0;                                                                           \
      } else {                                                                              \
        o[i] = (T_##r)(__VA_ARGS__);                                                        \
      }                                                                                     \
    }                                                                                       \
    return bad;                                                                             \
  }
#include "stdlib/kernels/strips.def"
#undef STRIP
#undef COMPARISON

/* Between two numbers: a comparison that takes the second of what is equal or NaN is one instruction. */
#define LIMIT(dt)                                                                            \
  STRIPS_LINKAGE u32 HERE(strip_limit_##dt)(STRIP_PARAMS) {                                 \
    const T_##dt *x = xv, *y = yv, low = y[0], high = y[1], zero = y[2];                    \
    T_##dt *o = out;                                                                        \
    INDEPENDENT for (i64 i = 0; i < n; i++) {                                      \
      T_##dt p = low > x[i] ? low : x[i];                                                   \
      o[i] = (high < p ? high : p) + zero;                                                  \
    }                                                                                       \
    return 0;                                                                               \
  }
LIMIT(f32)
LIMIT(f64)

/* Every comparison with a number, which stays in a register. */
#if REDUCE_VECTOR_BYTES == 64
#define WITHIN(dt, all, s)                                                                         \
  BY_MASKS(within, dt, VECTOR_##dt low = all(y[0]); VECTOR_##dt high = all(y[1]),                  \
           _mm512_cmp_##s##_mask(low, p, _CMP_LE_OQ) & _mm512_cmp_##s##_mask(p, high, _CMP_LE_OQ), \
           (y[0] <= x[at]) & (x[at] <= y[1]))                                                      \
  STRIPS_LINKAGE u32 HERE(strip_within_##dt)(STRIP_PARAMS) {                                       \
    return within_##dt(out, xv, yv, n, ((const T_##dt *)yv)[2] != 0 ? ~0ull : 0);                  \
  }
WITHIN(f32, _mm512_set1_ps, ps)
WITHIN(f64, _mm512_set1_pd, pd)
#else
#define WITHIN(dt)                                                                                       \
  STRIPS_LINKAGE u32 HERE(strip_within_##dt)(STRIP_PARAMS) {                                             \
    const T_##dt *x = xv, *y = yv, low = y[0], high = y[1];                                              \
    u8 *o = out, rest = y[2] != 0;                                                                       \
    INDEPENDENT for (i64 i = 0; i < n; i++) o[i] = (u8)((low <= x[i]) & (x[i] <= high)) ^ rest; \
    return 0;                                                                                            \
  }
WITHIN(f32)
WITHIN(f64)
#endif

/* ---- conversion ---------------------------------------------------------------------------------- */

#define CONVERT(from, to, check, expr)                                            \
  STRIPS_LINKAGE u32 HERE(strip_##from##_to_##to)(STRIP_PARAMS) {                 \
    const T_##from *x = xv;                                                       \
    T_##to *o = out;                                                              \
    u32 bad = 0;                                                                  \
    (void)yv;                                                                     \
    INDEPENDENT for (i64 i = 0; i < n; i++) {                            \
      T_##from p = x[i];                                                          \
      bool good = check;                                                          \
      bad |= !good;                                                               \
      o[i] = good ? (T_##to)(expr) : 0;                                           \
    }                                                                             \
    return bad;                                                                   \
  }
/* The bounds are exact in both float types: one below the least value, or the least value itself where the one below
 * it does not exist as a float; one above the greatest. AVX-512 has instructions between floats and 64 bits. */
#define WIDE(X)                                                                                               \
  X(f32, i64, p >= -0x1p63f && p < 0x1p63f, p) X(f64, i64, p >= -0x1p63f && p < 0x1p63f, p) X(i64, f32, 1, p) \
  X(i64, f64, 1, p)
#define NARROW(X)                                                                                      \
  X(f32, u8, p > -1 && p < 256, p) X(f32, i32, p >= -0x1p31f && p < 0x1p31f, p)                        \
  X(f64, u8, p > -1 && p < 256, p) X(f64, i32, p > -0x1p31 - 1 && p < 0x1p31, p)                       \
  X(f32, bool, 1, p != 0) X(f64, bool, 1, p != 0) X(f32, f64, 1, p) X(f64, f32, 1, p)                  \
  X(u8, bool, 1, p != 0) X(u8, i32, 1, p) X(u8, i64, 1, p) X(u8, f32, 1, p) X(u8, f64, 1, p)           \
  X(i32, bool, 1, p != 0) X(i32, u8, 1, p) X(i32, i64, 1, p) X(i32, f32, 1, p) X(i32, f64, 1, p)       \
  X(i64, bool, 1, p != 0) X(i64, u8, 1, p) X(i64, i32, 1, p)                                           \
  X(bool, u8, 1, p) X(bool, i32, 1, p) X(bool, i64, 1, p) X(bool, f32, 1, p) X(bool, f64, 1, p)
/* From and to halves, by lang/halves.h: rounded once. */
#define HALF(X, h)                                                                                              \
  X(h, bool, 1, h##_to_f32(p) != 0) X(h, u8, h##_to_f32(p) > -1 && h##_to_f32(p) < 256, h##_to_f32(p))          \
  X(h, i32, h##_to_f32(p) >= -0x1p31f && h##_to_f32(p) < 0x1p31f, h##_to_f32(p))                                \
  X(h, i64, h##_to_f32(p) >= -0x1p63f && h##_to_f32(p) < 0x1p63f, h##_to_f32(p))                                \
  X(h, u32, h##_to_f32(p) > -1 && h##_to_f32(p) < 0x1p32f, h##_to_f32(p)) X(u32, h, 1, f32_to_##h(f32_odd(p)))  \
  X(h, u64, h##_to_f32(p) > -1 && h##_to_f32(p) < 0x1p64f, h##_to_f32(p))                                       \
  X(u64, h, 1, f32_to_##h(f32_odd(f64_odd_u64(p))))                                                             \
  X(h, f32, 1, h##_to_f32(p)) X(h, f64, 1, h##_to_f32(p))                                                       \
  X(bool, h, 1, f32_to_##h(p)) X(u8, h, 1, f32_to_##h(p)) X(i32, h, 1, f32_to_##h(f32_odd(p)))                  \
  X(i64, h, 1, f32_to_##h(f32_odd(f64_odd_i64(p)))) X(f32, h, 1, f32_to_##h(p))                                 \
  X(f64, h, 1, f32_to_##h(f32_odd(p)))
/* u32 and u64 take the low bits of integers. */
#define UNSIGNED(X)                                                                                             \
  X(u64, bool, 1, p != 0) X(u64, u8, 1, p) X(u64, i32, 1, p) X(u64, u32, 1, p) X(u64, i64, 1, p)                \
  X(u64, f32, 1, p) X(u64, f64, 1, p) X(bool, u64, 1, p) X(u8, u64, 1, p) X(i32, u64, 1, p) X(u32, u64, 1, p)   \
  X(i64, u64, 1, p) X(f32, u64, p > -1 && p < 0x1p64f, p) X(f64, u64, p > -1 && p < 0x1p64, p)                  \
  X(u32, bool, 1, p != 0) X(u32, u8, 1, p) X(u32, i32, 1, p) X(u32, i64, 1, p) X(u32, f32, 1, p)                \
  X(u32, f64, 1, p) X(bool, u32, 1, p) X(u8, u32, 1, p) X(i32, u32, 1, p) X(i64, u32, 1, p)                     \
  X(f32, u32, p > -1 && p < 0x1p32f, p) X(f64, u32, p > -1 && p < 0x1p32, p)
#define HALVES(X)                                                                                               \
  HALF(X, f16) HALF(X, bf16)                                                                                    \
  X(f16, bf16, 1, f32_to_bf16(f16_to_f32(p))) X(bf16, f16, 1, f32_to_f16(bf16_to_f32(p)))
#if REDUCE_VECTOR_BYTES == 32
/* AVX2 has none for 64 bits: halves of them are what a sum with 2^52 has in its low bits, or what stands there
 * (jit/vector/vector_convert.c). */
static inline __m256d doubles_of(__m256i x) {
  __m256i low = _mm256_blend_epi32(x, _mm256_set1_epi64x(0x4330000000000000), 0xAA);
  __m256i high = _mm256_xor_si256(_mm256_srli_epi64(x, 32), _mm256_set1_epi64x(0x4530000080000000));
  return _mm256_add_pd(_mm256_sub_pd((__m256d)high, _mm256_set1_pd(0x1p84 + 0x1p63 + 0x1p52)), (__m256d)low);
}
static inline __m256i wholes_of(__m256d x) {
  __m256d whole = _mm256_round_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  __m256d high = _mm256_floor_pd(_mm256_mul_pd(whole, _mm256_set1_pd(0x1p-32)));
  __m256d low = _mm256_fnmadd_pd(high, _mm256_set1_pd(0x1p32), whole);
  __m256i top = _mm256_slli_epi64((__m256i)_mm256_add_pd(high, _mm256_set1_pd(0x1.8p52)), 32);
  return _mm256_blend_epi32((__m256i)_mm256_add_pd(low, _mm256_set1_pd(0x1p52)), top, 0xAA);
}
STRIPS_LINKAGE u32 HERE(strip_i64_to_f64)(STRIP_PARAMS) {
  const i64 *x = xv;
  f64 *o = out;
  i64 i = 0;
  (void)yv;
  for (; i + 4 <= n; i += 4) _mm256_storeu_pd(o + i, doubles_of(_mm256_loadu_si256((const __m256i *)(x + i))));
  for (; i < n; i++) o[i] = (f64)x[i];
  return 0;
}
#define TO_WHOLES(from, LOAD)                                                                                  \
  STRIPS_LINKAGE u32 HERE(strip_##from##_to_i64)(STRIP_PARAMS) {                                               \
    const T_##from *x = xv;                                                                                    \
    i64 *o = out, i = 0;                                                                                       \
    u32 bad = 0;                                                                                               \
    __m256d all = _mm256_castsi256_pd(_mm256_set1_epi64x(-1));                                                 \
    (void)yv;                                                                                                  \
    for (; i + 4 <= n; i += 4) {                                                                               \
      __m256d p = LOAD(x + i), least = _mm256_set1_pd(-0x1p63), most = _mm256_set1_pd(0x1p63);                 \
      __m256d good = _mm256_and_pd(_mm256_cmp_pd(p, least, _CMP_GE_OQ), _mm256_cmp_pd(p, most, _CMP_LT_OQ));   \
      all = _mm256_and_pd(all, good);                                                                          \
      _mm256_storeu_si256((__m256i *)(o + i), _mm256_and_si256(wholes_of(p), (__m256i)good));                  \
    }                                                                                                          \
    bad = _mm256_movemask_pd(all) != 15;                                                                       \
    for (; i < n; i++) {                                                                                       \
      bool good = x[i] >= -0x1p63 && x[i] < 0x1p63;                                                            \
      bad |= !good;                                                                                            \
      o[i] = good ? (i64)x[i] : 0;                                                                             \
    }                                                                                                          \
    return bad;                                                                                                \
  }
#define WIDENED(at) _mm256_cvtps_pd(_mm_loadu_ps(at))
TO_WHOLES(f64, _mm256_loadu_pd)
TO_WHOLES(f32, WIDENED)
CONVERT(i64, f32, 1, p)
#else
WIDE(CONVERT)
#endif
NARROW(CONVERT)
UNSIGNED(CONVERT)
HALVES(CONVERT)

/* ---- where --------------------------------------------------------------------------------------- */

#define SELECT(T)                                                                                   \
  static void HERE(strip_select_##T)(void *out, const u8 *c, const void *xv, const void *yv, i64 n) { \
    const T *x = xv, *y = yv;                                                                       \
    T *o = out;                                                                                     \
    INDEPENDENT for (i64 i = 0; i < n; i++) { /* both are read, so that it needs no branch */ \
      T p = x[i], q = y[i];                                                                         \
      o[i] = c[i] ? p : q;                                                                          \
    }                                                                                               \
  }
typedef u16 __attribute__((may_alias)) any16;
typedef u32 __attribute__((may_alias)) any32;
typedef u64 __attribute__((may_alias)) any64;
SELECT(u8)
SELECT(any16)
SELECT(any32)
#if REDUCE_VECTOR_BYTES == 64
/* A line at a time: of three arrays, that is how the processor sees best where each goes on. */
#define SELECT_LINES(name, STORE)                                                                                     \
  static void name(void *out, const u8 *c, const void *xv, const void *yv, i64 n) {                                   \
    const any64 *x = xv, *y = yv;                                                                                     \
    any64 *o = out;                                                                                                   \
    i64 i = 0;                                                                                                        \
    for (; i + 8 <= n; i += 8) {                                                                                      \
      __m128i chosen = _mm_loadl_epi64((const __m128i *)(c + i));                                                     \
      STORE((void *)(o + i),                                                                                          \
            _mm512_mask_loadu_epi64(_mm512_loadu_si512(y + i), (__mmask8)_mm_test_epi8_mask(chosen, chosen), x + i)); \
    }                                                                                                                 \
    for (; i < n; i++) o[i] = c[i] ? x[i] : y[i];                                                                     \
  }
SELECT_LINES(HERE(strip_select_any64), _mm512_storeu_si512)
SELECT_LINES(HERE(strip_select_past), _mm512_stream_si512)
#define SELECT_PAST HERE(strip_select_past)
#else
SELECT(any64)
#define SELECT_PAST NULL
#endif

/* ---- reductions ---------------------------------------------------------------------------------- */

#define FN_ADD(p, q) ((p) + (q))
#define FN_MUL(p, q) ((p) * (q))
REDUCE_ORDER(add_f32, f32, +, 0, FN_ADD)
REDUCE_ORDER(add_f64, f64, +, 0, FN_ADD)
REDUCE_ORDER(mul_f32, f32, *, 1, FN_MUL)
REDUCE_ORDER(mul_f64, f64, *, 1, FN_MUL)

#define REDUCTION_DECLARED(kind, dt) void REST(strip_rows_##kind##_##dt)(ROWS_PARAMS);
#define ROWS_IN_ORDER(kind, dt)                                                            \
  STRIPS_LINKAGE void HERE(strip_rows_##kind##_##dt)(ROWS_PARAMS) {                        \
    kind##_##dt##_rows(out, xv, n, rows, stride);                                          \
  }
#ifdef STRIPS_REST
#define FAR_COLUMNS(kind, dt)                                                              \
  void REST(strip_columns_##kind##_##dt)(ROWS_PARAMS);                                     \
  static bool far_columns_##kind##_##dt(ROWS_PARAMS) {                                     \
    bool far = rows >= REDUCE_ROWS_FAR;                                                    \
    if (far) REST(strip_columns_##kind##_##dt)(out, xv, n, rows, stride);                  \
    return far;                                                                            \
  }
#else
#define FAR_COLUMNS(kind, dt)                                             \
  static bool far_columns_##kind##_##dt(ROWS_PARAMS) {                    \
    return (void)out, (void)xv, (void)n, (void)rows, (void)stride, false; \
  }
#endif
#define COLUMNS_IN_ORDER(kind, dt)                                                         \
  FAR_COLUMNS(kind, dt)                                                                    \
  STRIPS_LINKAGE void HERE(strip_columns_##kind##_##dt)(ROWS_PARAMS) {                     \
    if (!far_columns_##kind##_##dt(out, xv, n, rows, stride)) kind##_##dt##_columns(out, xv, n, rows, stride); \
  }
ROWS_IN_ORDER(add, f32)
ROWS_IN_ORDER(add, f64)
COLUMNS_IN_ORDER(add, f32)
COLUMNS_IN_ORDER(add, f64)
ROWS_IN_ORDER(mul, f32)
ROWS_IN_ORDER(mul, f64)

/* Integers, the least and the greatest do not depend on the order: lanes as the compiler likes them. */
#define ROWS_INT(kind, dt)                                                                   \
  STRIPS_LINKAGE void HERE(strip_rows_##kind##_##dt)(ROWS_PARAMS) {                        \
    enum { W = REDUCE_LANE_BYTES / sizeof(T_##dt) };                                       \
    T_##dt *o = out;                                                                       \
    const u32 ahead = cpu_ahead();                                                         \
    const bool far = REDUCE_VECTOR_BYTES > 16 && reduce_is_far(n, rows, stride, sizeof(T_##dt)); \
    for (i64 r = 0; r < rows; r++) {                                                       \
      const T_##dt *x = (const T_##dt *)xv + r * stride;                                   \
      T_##dt all = x[0];                                                                   \
      i64 i = 1;                                                                           \
      if (n >= 2 * W) {                                                                    \
        T_##dt lane[W];                                                                    \
        for (i64 l = 0; l < W; l++) lane[l] = x[l];                                        \
        for (i = W; i + W <= n; i += W) {                                                  \
          if (far) fetch_lines(x + i, REDUCE_LANE_BYTES / PAGE_LINE);                    \
          else                                                                             \
            for (u32 k = 0; k < REDUCE_LANE_BYTES; k += 64) __builtin_prefetch((const char *)(x + i) + ahead + k); \
          for (i64 l = 0; l < W; l++) lane[l] = el_##kind##_##dt(lane[l], x[i + l]);       \
        }                                                                                  \
        all = lane[0];                                                                     \
        for (i64 l = 1; l < W; l++) all = el_##kind##_##dt(all, lane[l]);                  \
      }                                                                                    \
      for (; i < n; i++) all = el_##kind##_##dt(all, x[i]);                                \
      o[r] = all;                                                                          \
    }                                                                                      \
  }
/* Floats: comparing alone knows neither NaN nor -0. Whether there was a NaN is kept beside; so are the signs of all
 * joined, which are those of the zeros when the result is one, since the others then have the sign of what loses. */
#if REDUCE_VECTOR_BYTES == 32 /* of equal ones and of NaN: the second */
#define BEST_minimum_f32(p, q) _mm256_min_ps((__m256)(p), (__m256)(q))
#define BEST_maximum_f32(p, q) _mm256_max_ps((__m256)(p), (__m256)(q))
#define BEST_minimum_f64(p, q) _mm256_min_pd((__m256d)(p), (__m256d)(q))
#define BEST_maximum_f64(p, q) _mm256_max_pd((__m256d)(p), (__m256d)(q))
#define NANS_f32(p, q) _mm256_cmp_ps((__m256)(p), (__m256)(q), _CMP_UNORD_Q) /* in either */
#define NANS_f64(p, q) _mm256_cmp_pd((__m256d)(p), (__m256d)(q), _CMP_UNORD_Q)
#define ROWS_FLOAT(kind, dt, I, BEFORE, JOIN)                                                                       \
  STRIPS_LINKAGE void HERE(strip_rows_##kind##_##dt)(ROWS_PARAMS) {                                                 \
    typedef T_##dt vec __attribute__((vector_size(REDUCE_VECTOR_BYTES), aligned(sizeof(T_##dt)), may_alias));       \
    typedef I ints __attribute__((vector_size(REDUCE_VECTOR_BYTES)));                                               \
    enum { COPIES = 4, EACH = REDUCE_VECTOR_BYTES / sizeof(T_##dt), W = COPIES * EACH };                            \
    T_##dt *o = out;                                                                                                \
    const u32 ahead = cpu_ahead();                                                                                  \
    const bool far = REDUCE_VECTOR_BYTES > 16 && reduce_is_far(n, rows, stride, sizeof(T_##dt));                    \
    for (i64 r = 0; r < rows; r++) {                                                                                \
      const T_##dt *x = (const T_##dt *)xv + r * stride;                                                            \
      T_##dt all = x[0];                                                                                            \
      i64 i = 1;                                                                                                    \
      if (n >= 2 * W) {                                                                                             \
        vec best[COPIES];                                                                                           \
        ints signs[COPIES], bad = {0};                                                                              \
        I sign = (I)bits_of_##dt(x[0]), nan = 0;                                                                    \
        UNROLL(4) for (u32 v = 0; v < COPIES; v++) {                                                                \
          best[v] = *(const vec *)(x + v * EACH);                                                                   \
          signs[v] = (ints)best[v];                                                                                 \
          bad |= best[v] != best[v];                                                                                \
        }                                                                                                           \
        for (i = W; i + W <= n; i += W) {                                                                           \
          UNROLL(2) for (u32 v = 0; v < COPIES; v += 2) {                                                           \
            vec p = *(const vec *)(x + i + v * EACH), q = *(const vec *)(x + i + (v + 1) * EACH);                   \
            best[v] = (vec)BEST_##kind##_##dt(p, best[v]);                                                          \
            best[v + 1] = (vec)BEST_##kind##_##dt(q, best[v + 1]);                                                  \
            signs[v] = signs[v] JOIN (ints)p;                                                                       \
            signs[v + 1] = signs[v + 1] JOIN (ints)q;                                                               \
            bad |= (ints)NANS_##dt(p, q);                                                                           \
          }                                                                                                         \
          if (far) fetch_lines(x + i, W * sizeof(T_##dt) / PAGE_LINE);                                              \
          else                                                                                                      \
            for (u32 k = 0; k < W * sizeof(T_##dt); k += 64) __builtin_prefetch((const char *)(x + i) + ahead + k); \
        }                                                                                                           \
        for (u32 v = 0; v < W; v++) {                                                                               \
          T_##dt p = best[v / EACH][v % EACH];                                                                      \
          all = p BEFORE all ? p : all;                                                                             \
          sign = sign JOIN signs[v / EACH][v % EACH];                                                               \
          nan |= bad[v % EACH];                                                                                     \
        }                                                                                                           \
        if (nan) all = (T_##dt)__builtin_nan("");                                                                   \
        else if (all == 0) all = sign < 0 ? (T_##dt)-0.0 : 0;                                                       \
      }                                                                                                             \
      for (; i < n; i++) all = el_##kind##_##dt(all, x[i]);                                                         \
      o[r] = all;                                                                                                   \
    }                                                                                                               \
  }
#else
#define ROWS_FLOAT(kind, dt, ...) ROWS_INT(kind, dt)
#endif
#define EXTREMES(X, dt) X(minimum, dt) X(maximum, dt)
#ifdef STRIPS_REST
EXTREMES(REDUCTION_DECLARED, f32)
EXTREMES(REDUCTION_DECLARED, f64)
#else
ROWS_FLOAT(minimum, f32, i32, <, |)
ROWS_FLOAT(maximum, f32, i32, >, &)
ROWS_FLOAT(minimum, f64, i64, <, |)
ROWS_FLOAT(maximum, f64, i64, >, &)
#endif
EXTREMES(ROWS_INT, u8)
EXTREMES(ROWS_INT, i32)
EXTREMES(ROWS_INT, i64)
EXTREMES(ROWS_INT, u64)
ROWS_INT(add, i64)
ROWS_INT(multiply, i64)

/* Truth values counted in bytes, 255 times at most before they are added up. */
STRIPS_LINKAGE void HERE(strip_rows_count_bool)(ROWS_PARAMS) {
  typedef u8 bytes __attribute__((vector_size(REDUCE_VECTOR_BYTES), aligned(1), may_alias));
  typedef u64 words __attribute__((vector_size(REDUCE_VECTOR_BYTES)));
  enum { COPIES = 4, W = COPIES * REDUCE_VECTOR_BYTES };
  const u64 low = 0x00FF00FF00FF00FF;
  const bool far = REDUCE_VECTOR_BYTES > 16 && reduce_is_far(n, rows, stride, 1);
  i64 *o = out;
  for (i64 r = 0; r < rows; r++) {
    const u8 *x = (const u8 *)xv + r * stride;
    i64 i = 0;
    for (o[r] = 0; i + W <= n;) {
      bytes acc[COPIES] = {{0}};
      words sum = {0};
      u64 all = 0;
      for (i64 end = n - i < 255 * W ? n - W : i + 254 * W; i <= end; i += W) {
        if (far) fetch_lines(x + i, W / PAGE_LINE);
        UNROLL(4) for (u32 v = 0; v < COPIES; v++) acc[v] += *(const bytes *)(x + i + v * REDUCE_VECTOR_BYTES);
      }
      for (u32 v = 0; v < COPIES; v++) sum += ((words)acc[v] & low) + ((words)acc[v] >> 8 & low);
      for (u32 l = 0; l < REDUCE_VECTOR_BYTES / 8; l++) all += sum[l];
      o[r] += (i64)(all * 0x0001000100010001 >> 48);
    }
    for (; i < n; i++) o[r] += x[i];
  }
}

/* ---- a row times a matrix ------------------------------------------------------------------------- */

#ifdef __FMA__
#define PRODUCT_BYTES REDUCE_VECTOR_BYTES
#else
#define PRODUCT_BYTES 8 /* no vectors: fma is a call */
#endif
#if PRODUCT_BYTES == 64
#define FMA_f64(p, q, r) (PASTE(product_f64, STRIPS_NAME))_mm512_fmadd_pd((__m512d)(p), (__m512d)(q), (__m512d)(r))
#define FMA_f32(p, q, r) (PASTE(product_f32, STRIPS_NAME))_mm512_fmadd_ps((__m512)(p), (__m512)(q), (__m512)(r))
#elif PRODUCT_BYTES == 32
#define FMA_f64(p, q, r) (PASTE(product_f64, STRIPS_NAME))_mm256_fmadd_pd((__m256d)(p), (__m256d)(q), (__m256d)(r))
#define FMA_f32(p, q, r) (PASTE(product_f32, STRIPS_NAME))_mm256_fmadd_ps((__m256)(p), (__m256)(q), (__m256)(r))
#endif

/* Columns j … j + COUNT vectors, in registers. The first product is exact in fma with -0. */
#define PRODUCT_TILE(T, COUNT)                                                                                      \
  for (; j + COUNT * W <= n; j += COUNT * W) {                                                                      \
    const T *from = y + j;                                                                                          \
    PASTE(product_##T, STRIPS_NAME) acc[COUNT];                                                                     \
    UNROLL(8) for (u32 v = 0; v < COUNT; v++) acc[v] = more ? ((const PASTE(product_##T, STRIPS_NAME) *)(o + j))[v] \
                                                            : zero;                                                 \
    for (i64 p = 0; p < k; p++, from += apart) {                                                                    \
      const PASTE(product_##T, STRIPS_NAME) f = x[p * along] - (PASTE(product_##T, STRIPS_NAME)){0};                \
      UNROLL(8) for (u32 v = 0; v < COUNT; v++) acc[v] =                                                            \
          FMA_##T(f, ((const PASTE(product_##T, STRIPS_NAME) *)from)[v], acc[v]);                                   \
    }                                                                                                               \
    UNROLL(8) for (u32 v = 0; v < COUNT; v++) ((PASTE(product_##T, STRIPS_NAME) *)(o + j))[v] = acc[v];             \
  }
#define PRODUCT(T, fma)                                                                                              \
  static void HERE(strip_product_##T)(void *out, const void *xv, const void *yv, i64 n, i64 k, i64 along, i64 apart, \
                                      bool more) {                                                                   \
    const T *x = xv, *y = yv;                                                                                        \
    T *o = out;                                                                                                      \
    i64 j = 0;                                                                                                       \
    PRODUCT_TILES(T)                                                                                                 \
    for (; j < n; j++) {                                                                                             \
      T sum = more ? o[j] : (T)-0.0;                                                                                 \
      for (i64 p = 0; p < k; p++) sum = fma(x[p * along], y[p * apart + j], sum);                                    \
      o[j] = sum;                                                                                                    \
    }                                                                                                                \
  }
#if PRODUCT_BYTES > 8
#define PRODUCT_TILES(T)                                                                                \
  enum { W = PRODUCT_BYTES / sizeof(T) };                                                               \
  const PASTE(product_##T, STRIPS_NAME) zero = (T)-0.0 - (PASTE(product_##T, STRIPS_NAME)){0};          \
  PRODUCT_TILE(T, 8) PRODUCT_TILE(T, 1)
typedef f64 PASTE(product_f64, STRIPS_NAME) __attribute__((vector_size(PRODUCT_BYTES), aligned(8), may_alias));
typedef f32 PASTE(product_f32, STRIPS_NAME) __attribute__((vector_size(PRODUCT_BYTES), aligned(4), may_alias));
#else
#define PRODUCT_TILES(T)
#endif
PRODUCT(f32, __builtin_fmaf)
PRODUCT(f64, __builtin_fma)

/* Rows of x by vectors of columns in registers, so many that with AVX2 none waits for its last product; the last
 * columns by masks. AVX2 stores slowly by them, and has no registers left for them in the loop: columns that are
 * fewer than its vectors, or that many rows use, are copied first. */
#if PRODUCT_BYTES == 64
#define LANES_f64(count) (__mmask8)((1u << (count)) - 1)
#define LANES_f32(count) (__mmask16)((1u << (count)) - 1)
#define PART_f64(lanes, from) _mm512_maskz_loadu_pd(lanes, from)
#define PART_f32(lanes, from) _mm512_maskz_loadu_ps(lanes, from)
#define PUT_f64(to, lanes, v) _mm512_mask_storeu_pd(to, lanes, (__m512d)(v))
#define PUT_f32(to, lanes, v) _mm512_mask_storeu_ps(to, lanes, (__m512)(v))
#elif PRODUCT_BYTES == 32
#define LANES_f64(count) _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3))
#define LANES_f32(count) _mm256_cmpgt_epi32(_mm256_set1_epi32((i32)(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define PART_f64(lanes, from) _mm256_maskload_pd(from, lanes)
#define PART_f32(lanes, from) _mm256_maskload_ps(from, lanes)
#define PUT_f64(to, lanes, v) _mm256_maskstore_pd(to, lanes, (__m256d)(v))
#define PUT_f32(to, lanes, v) _mm256_maskstore_ps(to, lanes, (__m256)(v))
#endif
/* Row after row of what lies `step` apart: one address that moves, not one for each row. */
#define EACH_ROW(ROWS, at, from, step)                                                                  \
  at = from;                                                                                            \
  UNROLL(8) for (u32 r = 0; r < ROWS; r++, at += step, ({ __asm__("" : "+r"(at)); }))
#define EACH_COLUMN(WIDE) UNROLL(3) for (u32 v = 0; v < WIDE; v++)
#define MATRIX_TILE(T, ROWS, WIDE)                                                                      \
  for (; i + ROWS <= m; i += ROWS) {                                                                    \
    const T *f = x + i * row, *from = columns;                                                          \
    T *at, *to = o + i * n + j;                                                                         \
    V acc[ROWS][WIDE];                                                                                  \
    UNROLL(8) for (u32 r = 0; r < ROWS; r++) EACH_COLUMN(WIDE) acc[r][v] = zero;          \
    if (more) {                                                                                         \
      EACH_ROW(ROWS, at, to, n) EACH_COLUMN(WIDE) acc[r][v] = (V)PART_##T(lanes[v], at + v * W);        \
    }                                                                                                   \
    for (i64 p = 0; p < k; p++, from += step, f += along) {                                             \
      V c[WIDE];                                                                                        \
      EACH_COLUMN(WIDE) c[v] = (V)COLUMN_##T(lanes[v], from + v * W);                                   \
      UNROLL(8) for (u32 r = 0; r < ROWS; r++) {                                          \
        V g = f[r * row] - (V){0};                                                                      \
        __asm__("" : "+v"(g)); /* one load, not one for each product */                                 \
        EACH_COLUMN(WIDE) acc[r][v] = FMA_##T(g, c[v], acc[r][v]);                                      \
      }                                                                                                 \
    }                                                                                                   \
    EACH_COLUMN(WIDE) {                                                                                 \
      if (!MASKED_STORES && n - j >= (v + 1) * W) {                                                     \
        EACH_ROW(ROWS, at, to + v * W, n) *(V *)at = acc[r][v];                                         \
      } else {                                                                                          \
        EACH_ROW(ROWS, at, to + v * W, n) PUT_##T(at, lanes[v], acc[r][v]);                             \
      }                                                                                                 \
    }                                                                                                   \
  }
#if PRODUCT_BYTES == 64
enum { MASKED_STORES = 1, WIDEST = 2 }; /* of 32 registers; loads by masks cost nothing */
#define COLUMN_f64 PART_f64
#define COLUMN_f32 PART_f32
#define COPIED(T)
#define MATRIX_ROWS_OF(T) MATRIX_TILE(T, 8, 2) MATRIX_TILE(T, 4, 2)
#elif PRODUCT_BYTES == 32
enum { MASKED_STORES = 0, WIDEST = 3, COPIED_ROWS = 32 };
#define COLUMN_f64(lanes, from) *(const V *)(from)
#define COLUMN_f32(lanes, from) *(const V *)(from)
#define COPIED(T)                                                                                       \
  V copy[STRIP_MATRIX_K][3];                                                                            \
  if (n - j < wide * W || m >= COPIED_ROWS) {                                                           \
    for (i64 p = 0; p < k; p++)                                                                         \
      EACH_COLUMN(3) copy[p][v] = (V)PART_##T(lanes[v], columns + p * apart + v * W);                   \
    columns = (const T *)copy;                                                                          \
    step = 3 * W;                                                                                       \
  }
#define MATRIX_ROWS_OF(T)                                                                               \
  if (wide == 3) MATRIX_TILE(T, 4, 3)                                                                   \
  else MATRIX_TILE(T, 4, 2)
#endif
#if PRODUCT_BYTES > 8
#define MATRIX_TILES(T)                                                                                 \
  typedef PASTE(product_##T, STRIPS_NAME) V;                                                            \
  enum { W = PRODUCT_BYTES / sizeof(T) };                                                               \
  const V zero = (T)-0.0 - (V){0};                                                                      \
  for (i64 j = 0, wide; m >= 4 && j < n; j += wide * W) {                                               \
    const i64 left = n - j;                                                                             \
    wide = left <= 2 * W || (left > 3 * W && left <= 4 * W) ? 2 : WIDEST;                               \
    __typeof__(LANES_##T(0)) lanes[WIDEST];                                                             \
    EACH_COLUMN(WIDEST) lanes[v] = LANES_##T(left < v * W ? 0 : left < (v + 1) * W ? left - v * W : W); \
    const T *columns = y + j;                                                                           \
    i64 step = apart;                                                                                   \
    COPIED(T)                                                                                           \
    i = 0;                                                                                              \
    MATRIX_ROWS_OF(T)                                                                                   \
  }                                                                                                     \
  i = m & ~(i64)3;
#else
#define MATRIX_TILES(T)
#endif
#define MATRIX(T)                                                                                             \
  static void HERE(strip_matrix_##T)(void *out, const void *xv, const void *yv, i64 m, i64 n, i64 k, i64 row, \
                                     i64 along, i64 apart, bool more) {                                       \
    const T *x = xv, *y = yv;                                                                                 \
    T *o = out;                                                                                               \
    i64 i = 0;                                                                                                \
    MATRIX_TILES(T)                                                                                           \
    for (; i < m; i++) HERE(strip_product_##T)(o + i * n, x + i * row, y, n, k, along, apart, more);          \
  }
MATRIX(f32)
MATRIX(f64)

/* ---- random numbers -------------------------------------------------------------------------------- */

/* The two numbers of [0, 1) of each block, apart. Writes DRAWN of each at a time, STRIP of each at most: a round
 * waits for its products, so that several vectors go side by side. */
#ifdef __FMA__
enum { DRAW_LANES = REDUCE_VECTOR_BYTES / 8, DRAW_VECTORS = REDUCE_VECTOR_BYTES / 16,
       DRAWN = DRAW_LANES * DRAW_VECTORS };
_Static_assert(STRIP % DRAWN == 0, "strips are whole groups of vectors");
typedef u64 PASTE(words, STRIPS_NAME) __attribute__((vector_size(REDUCE_VECTOR_BYTES), aligned(8), may_alias));
typedef f64 PASTE(reals, STRIPS_NAME) __attribute__((vector_size(REDUCE_VECTOR_BYTES), aligned(8), may_alias));
#if REDUCE_VECTOR_BYTES == 64
/* of the low halves; the high ones may hold anything */
#define LOW_PRODUCT(a, b) (W)_mm512_mul_epu32((__m512i)(a), (__m512i)(b))
#else
#define LOW_PRODUCT(a, b) (W)_mm256_mul_epu32((__m256i)(a), (__m256i)(b))
#endif
#define EACH_VECTOR UNROLL(4) for (u32 v = 0; v < DRAW_VECTORS; v++)
static void HERE(draw)(f64 *first, f64 *second, u64 seed, u64 stream, u64 block, i64 n) {
  typedef PASTE(words, STRIPS_NAME) W;
  typedef PASTE(reals, STRIPS_NAME) R;
  const W none = {0}, a = none + 0xD2511F53u, b = none + 0xCD9E8D57u;
  u64 keys[10][2];
  for (u32 round = 0; round < 10; round++) {
    keys[round][0] = (u32)((u32)seed + round * 0x9E3779B9u);
    keys[round][1] = (u32)((u32)(seed >> 32) + round * 0xBB67AE85u);
  }
  W at = none + block;
  for (u32 l = 0; l < DRAW_LANES; l++) at[l] += l;
  for (i64 i = 0; i < n; i += DRAWN, at += DRAWN) {
    W c0[DRAW_VECTORS], c1[DRAW_VECTORS], c2[DRAW_VECTORS], c3[DRAW_VECTORS];
    EACH_VECTOR {
      c0[v] = at + v * DRAW_LANES;
      c1[v] = c0[v] >> 32;
      c2[v] = none + stream;
      c3[v] = none + (stream >> 32);
    }
    for (u32 round = 0; round < 10; round++) {
      const W k0 = none + keys[round][0], k1 = none + keys[round][1];
      EACH_VECTOR {
        W p = LOW_PRODUCT(a, c0[v]), q = LOW_PRODUCT(b, c2[v]);
        c0[v] = q >> 32 ^ c1[v] ^ k0;
        c2[v] = p >> 32 ^ c3[v] ^ k1;
        c1[v] = q;
        c3[v] = p;
      }
    }
    /* (low | high << 32) >> 11: both parts become floats, exactly, by the exponent that is put above them. */
    const W exponent = none + 0x4330000000000000;
    EACH_VECTOR {
      for (u32 k = 0; k < 2; k++) {
        W lo = k ? c2[v] : c0[v], hi = k ? c3[v] : c1[v];
        R below = (R)((lo & 0xFFFFFFFF) >> 11 | exponent) - 0x1p52, above = (R)((hi & 0xFFFFFFFF) | exponent) - 0x1p52;
        *(R *)((k ? second : first) + i + v * DRAW_LANES) = (above * 0x1p21 + below) * 0x1p-53;
      }
    }
  }
}
#undef EACH_VECTOR
#undef LOW_PRODUCT
#else
static void HERE(draw)(f64 *first, f64 *second, u64 seed, u64 stream, u64 block, i64 n) {
  for (i64 i = 0; i < n; i++) {
    u32 w[4];
    philox(seed, stream, block + (u64)i, w);
    first[i] = (f64)(((u64)w[0] | (u64)w[1] << 32) >> 11) * 0x1p-53;
    second[i] = (f64)(((u64)w[2] | (u64)w[3] << 32) >> 11) * 0x1p-53;
  }
}
#endif

static void HERE(strip_uniform)(f64 *out, u64 seed, u64 stream, u64 block, i64 n) {
  f64 u[STRIP], v[STRIP];
  HERE(draw)(u, v, seed, stream, block, (n + 1) / 2);
  for (i64 i = 0; i < n / 2; i++) {
    out[2 * i] = u[i];
    out[2 * i + 1] = v[i];
  }
  if (n % 2) out[n - 1] = u[n / 2];
}

/* Box–Muller; 1 - u is in (0, 1], so that its log is finite. */
static void HERE(strip_normal)(f64 *out, u64 seed, u64 stream, u64 block, i64 n) {
  f64 u[STRIP], v[STRIP];
  HERE(draw)(u, v, seed, stream, block, n);
  for (i64 i = 0; i < n; i++) {
    out[i] = 1.0 - u[i];
    v[i] = 6.283185307179586 * v[i];
  }
  (void)PASTE(wm_strip_log_f64, STRIPS_NAME)(out, out, out, n);
  (void)PASTE(wm_strip_cos_f64, STRIPS_NAME)(v, v, v, n);
  for (i64 i = 0; i < n; i++) out[i] = __builtin_sqrt(-2.0 * out[i]) * v[i];
}

/* ---- ramps ------------------------------------------------------------------------------------------ */

STRIPS_LINKAGE void HERE(strip_ramp_i64)(void *out, u64 start, u64 step, i64 first, i64 n) {
  u64 *o = out, at = start + (u64)first * step;
  for (i64 i = 0; i < n; i++) o[i] = at + (u64)i * step;
}

/* Indices below 2^53 are exact as floats, and so are their sums. */
STRIPS_LINKAGE void HERE(strip_ramp_f64)(void *out, u64 start, u64 step, i64 first, i64 n) {
  f64 *o = out, from, by, at = (f64)first;
  memcpy(&from, &start, sizeof from);
  memcpy(&by, &step, sizeof by);
  for (i32 i = 0; i < (i32)n; i++) o[i] = from + (at + (f64)i) * by;
}

/* ---- the table ----------------------------------------------------------------------------------- */

const StripTable PASTE(strips, STRIPS_NAME) = {
  .name = STRIPS_TEXT,
#define ENTRY(member, kernel) .member = kernel,
#include "stdlib/kernels/strips_entries.h"
};
