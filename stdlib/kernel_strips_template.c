/* kernel_strips_template.c — every strip kernel, for the instruction set this is compiled for (see strips.h).
 * The including file defines STRIPS_NAME and REDUCE_VECTOR_BYTES. */
#include "stdlib/element.h"
#include "stdlib/reduce_order.h"
#include "stdlib/strips.h"
#include "stdlib/wm.h"

#pragma GCC diagnostic ignored "-Wtype-limits"

#undef bool /* a dtype name that is pasted through macros here */
typedef _Bool bool;

#define UNUSED __attribute__((unused))
#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)

/* ---- elementwise --------------------------------------------------------------------------------- */

/* Elements at one index do not depend on others: `out` is an operand itself or does not overlap. */
#define STRIP(op, dt, r, check, ...)                                                        \
  static u32 op##_##dt(void *out, const void *xv, const void *yv, i64 n) {                  \
    const T_##dt *x = xv, *y UNUSED = yv;                                                   \
    T_##r *o = out;                                                                         \
    u32 bad = 0;                                                                            \
    _Pragma("GCC ivdep") for (i64 i = 0; i < n; i++) {                                      \
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
#include "stdlib/strips.def"
#undef STRIP

/* ---- conversion ---------------------------------------------------------------------------------- */

#define CONVERT(from, to, check, expr)                                            \
  static u32 from##_to_##to(void *out, const void *xv, const void *yv, i64 n) {   \
    const T_##from *x = xv;                                                       \
    T_##to *o = out;                                                              \
    u32 bad = 0;                                                                  \
    (void)yv;                                                                     \
    _Pragma("GCC ivdep") for (i64 i = 0; i < n; i++) {                            \
      T_##from p = x[i];                                                          \
      bool good = check;                                                          \
      bad |= !good;                                                               \
      o[i] = good ? (T_##to)(expr) : 0;                                           \
    }                                                                             \
    return bad;                                                                   \
  }
/* The bounds are exact in both float types: one below the least value, or the least value itself where the one below
 * it does not exist as a float; one above the greatest. */
#define FLOAT_TO_INTS(from)                                            \
  CONVERT(from, u8, p > -1 && p < 256, p)                              \
  CONVERT(from, i64, p >= -0x1p63f && p < 0x1p63f, p)                  \
  CONVERT(from, bool, 1, p != 0)
FLOAT_TO_INTS(f32)
FLOAT_TO_INTS(f64)
CONVERT(f32, i32, p >= -0x1p31f && p < 0x1p31f, p)
CONVERT(f64, i32, p > -0x1p31 - 1 && p < 0x1p31, p)
CONVERT(f32, f64, 1, p)
CONVERT(f64, f32, 1, p)
#define INT_TO_ALL(from, a, b) \
  CONVERT(from, bool, 1, p != 0) CONVERT(from, a, 1, p) CONVERT(from, b, 1, p) CONVERT(from, f32, 1, p) CONVERT(from, f64, 1, p)
INT_TO_ALL(u8, i32, i64)
INT_TO_ALL(i32, u8, i64)
INT_TO_ALL(i64, u8, i32)
CONVERT(bool, u8, 1, p)
CONVERT(bool, i32, 1, p)
CONVERT(bool, i64, 1, p)
CONVERT(bool, f32, 1, p)
CONVERT(bool, f64, 1, p)

/* ---- where --------------------------------------------------------------------------------------- */

#define SELECT(T)                                                                                   \
  static void select_##T(void *out, const u8 *c, const void *xv, const void *yv, i64 n) {           \
    const T *x = xv, *y = yv;                                                                       \
    T *o = out;                                                                                     \
    _Pragma("GCC ivdep") for (i64 i = 0; i < n; i++) o[i] = c[i] ? x[i] : y[i];                     \
  }
typedef u32 __attribute__((may_alias)) any32;
typedef u64 __attribute__((may_alias)) any64;
SELECT(u8)
SELECT(any32)
SELECT(any64)

/* ---- reductions ---------------------------------------------------------------------------------- */

#define FN_ADD(p, q) ((p) + (q))
#define FN_MUL(p, q) ((p) * (q))
REDUCE_ORDER(add_f32, f32, +, 0, FN_ADD)
REDUCE_ORDER(add_f64, f64, +, 0, FN_ADD)
REDUCE_ORDER(mul_f32, f32, *, 1, FN_MUL)
REDUCE_ORDER(mul_f64, f64, *, 1, FN_MUL)

#define ORDERED(kind, dt)                                                                  \
  static void rows_##kind##_##dt(void *out, const void *x, i64 n, i64 rows, i64 stride) {  \
    kind##_##dt##_rows(out, x, n, rows, stride);                                           \
  }                                                                                        \
  static void columns_##kind##_##dt(void *out, const void *x, i64 n, i64 rows, i64 stride) { \
    kind##_##dt##_columns(out, x, n, rows, stride);                                        \
  }
ORDERED(add, f32)
ORDERED(add, f64)
ORDERED(mul, f32)
ORDERED(mul, f64)

/* Integers, the least and the greatest do not depend on the order: lanes as the compiler likes them. */
#define ANY_ORDER(kind, dt)                                                                  \
  static void rows_##kind##_##dt(void *out, const void *xv, i64 n, i64 rows, i64 stride) { \
    enum { W = REDUCE_LANE_BYTES / sizeof(T_##dt) };                                       \
    T_##dt *o = out;                                                                       \
    for (i64 r = 0; r < rows; r++) {                                                       \
      const T_##dt *x = (const T_##dt *)xv + r * stride;                                   \
      T_##dt all = x[0];                                                                   \
      i64 i = 1;                                                                           \
      if (n >= 2 * W) {                                                                    \
        T_##dt lane[W];                                                                    \
        for (i64 l = 0; l < W; l++) lane[l] = x[l];                                        \
        for (i = W; i + W <= n; i += W)                                                    \
          for (i64 l = 0; l < W; l++) lane[l] = el_##kind##_##dt(lane[l], x[i + l]);       \
        all = lane[0];                                                                     \
        for (i64 l = 1; l < W; l++) all = el_##kind##_##dt(all, lane[l]);                  \
      }                                                                                    \
      for (; i < n; i++) all = el_##kind##_##dt(all, x[i]);                                \
      o[r] = all;                                                                          \
    }                                                                                      \
  }                                                                                        \
  static void columns_##kind##_##dt(void *out, const void *xv, i64 n, i64 rows, i64 stride) { \
    const T_##dt *x = xv;                                                                  \
    T_##dt *restrict o = out;                                                              \
    for (i64 j = 0; j < n; j++) o[j] = x[j];                                               \
    for (i64 r = 1; r < rows; r++)                                                         \
      for (i64 j = 0; j < n; j++) o[j] = el_##kind##_##dt(o[j], x[r * stride + j]);        \
  }
#define EXTREMES(dt) ANY_ORDER(minimum, dt) ANY_ORDER(maximum, dt)
EXTREMES(bool)
EXTREMES(u8)
EXTREMES(i32)
EXTREMES(i64)
EXTREMES(f32)
EXTREMES(f64)
ANY_ORDER(add, i64)
ANY_ORDER(multiply, i64)
#define rows_mul_i64 rows_multiply_i64
#define columns_mul_i64 columns_multiply_i64

/* ---- the table ----------------------------------------------------------------------------------- */

#define CONVERTS(from, a, b, c, d, e) \
  [DT_##from] = {[DT_##a] = from##_to_##a, [DT_##b] = from##_to_##b, [DT_##c] = from##_to_##c, [DT_##d] = from##_to_##d, [DT_##e] = from##_to_##e}
#define EXTREME_ROW(name)                                                                                  \
  {[DT_bool] = name##_bool, [DT_u8] = name##_u8, [DT_i32] = name##_i32, [DT_i64] = name##_i64,             \
   [DT_f32] = name##_f32, [DT_f64] = name##_f64}
#define ORDERED_ROW(name) {[DT_i64] = name##_i64, [DT_f32] = name##_f32, [DT_f64] = name##_f64}

const StripTable PASTE(strips, STRIPS_NAME) = {
    .name = STRIPS_TEXT,
    .ops =
        {
#define STRIP(op, dt, r, check, ...) [OP_##op][DT_##dt] = op##_##dt,
#include "stdlib/strips.def"
#undef STRIP
#define MATH_ROW(name, dt, level) [OP_##name][DT_##dt] = wm_strip_##name##_##dt##_##level,
#define MATH_ROW_OF(name, dt, level) MATH_ROW(name, dt, level)
#define MATH(name, dt, arity) MATH_ROW_OF(name, dt, STRIPS_NAME)
#define MATH_HELPER(name, dt, arity)
#include "math_list.h"
        },
    .convert =
        {
            CONVERTS(bool, u8, i32, i64, f32, f64),
            CONVERTS(u8, bool, i32, i64, f32, f64),
            CONVERTS(i32, bool, u8, i64, f32, f64),
            CONVERTS(i64, bool, u8, i32, f32, f64),
            CONVERTS(f32, bool, u8, i32, i64, f64),
            CONVERTS(f64, bool, u8, i32, i64, f32),
        },
    .select = {[1] = select_u8, [4] = select_any32, [8] = select_any64},
    .rows = {ORDERED_ROW(rows_add), ORDERED_ROW(rows_mul), EXTREME_ROW(rows_minimum), EXTREME_ROW(rows_maximum)},
    .columns = {ORDERED_ROW(columns_add), ORDERED_ROW(columns_mul), EXTREME_ROW(columns_minimum), EXTREME_ROW(columns_maximum)},
};
