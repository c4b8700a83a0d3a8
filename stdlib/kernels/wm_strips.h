/* wm_strips.h — how the strips made from lang/math.loops go over their operands. Included by build/gen/math_body.h,
 * once for each instruction set (WM_VECTOR: one with fma), behind the types lw_f32 and lw_f64.
 *
 * A function is its scalar and, with WM_VECTOR, a core: the vector loop over whole vectors of STRIP_PAD elements,
 * which tells whether an element was of the rare kind that the scalar alone gets right. */
#include <string.h>

/* Element by element; `out` may be an operand. Without fma in hardware nothing vectorises, and this is the strip. */
#define ONE_BY_ONE(T, arity, params, ...)                                                                       \
  static __attribute__((unused)) u32 one_by_one_##T##_##arity(void *out, const void *xv, const void *yv, i64 n, \
                                                              lw_##T (*scalar) params) {                        \
    const lw_##T *x = xv, *y = yv;                                                                              \
    lw_##T *o = out;                                                                                            \
    (void)y;                                                                                                    \
    for (i64 i = 0; i < n; i++) o[i] = scalar(__VA_ARGS__);                                                     \
    return 0;                                                                                                   \
  }
ONE_BY_ONE(f32, 1, (lw_f32), x[i])
ONE_BY_ONE(f32, 2, (lw_f32, lw_f32), x[i], y[i])
ONE_BY_ONE(f64, 1, (lw_f64), x[i])
ONE_BY_ONE(f64, 2, (lw_f64, lw_f64), x[i], y[i])

#ifdef WM_VECTOR
enum { STRIP_PAD = 16, STRIP_BLOCK = 256, STRIP_FEW = 3 /* so few are faster one by one */ };
typedef u64 (*Core)(void *out, const void *x, const void *y, i64 n);

/* The core on `bytes` bytes, fewer than STRIP_PAD elements; the others are zeros. */
static u64 strip_pad(Core core, void *out, const void *x, const void *y, size_t bytes) {
  struct {
    _Alignas(64) char x[STRIP_PAD * 8], y[STRIP_PAD * 8];
  } p;
  memset(&p, 0, sizeof p);
  memcpy(p.x, x, bytes);
  memcpy(p.y, y, bytes);
  u64 rare = core(p.x, p.x, p.y, STRIP_PAD);
  memcpy(out, p.x, bytes);
  return rare;
}

/* strip_: no element is rare. strip_rare_: a block that holds a rare element is done again, whole. Its results go
 * by a buffer: when a rare element shows, the operands, which `out` may be, are still there. */
#define STRIP_DRIVERS(T, arity, params)                                                                               \
  static __attribute__((unused)) u32 strip_##T##_##arity(void *out, const void *xv, const void *yv, i64 n, Core core, \
                                                         lw_##T (*scalar) params) {                                   \
    const lw_##T *x = xv, *y = yv;                                                                                    \
    i64 whole = n & -STRIP_PAD, rest = n - whole;                                                                     \
    if (whole) (void)core(out, x, y, n);                                                                              \
    lw_##T *o = (lw_##T *)out + whole;                                                                                \
    if (rest > STRIP_FEW) (void)strip_pad(core, o, x + whole, y + whole, (size_t)rest * sizeof *x);                   \
    else (void)one_by_one_##T##_##arity(o, x + whole, y + whole, rest, scalar);                                       \
    return 0;                                                                                                         \
  }                                                                                                                   \
  static __attribute__((unused)) u32 strip_rare_##T##_##arity(void *out, const void *xv, const void *yv, i64 n,       \
                                                              Core core, lw_##T (*scalar) params) {                   \
    const lw_##T *x = xv, *y = yv;                                                                                    \
    lw_##T *o = out;                                                                                                  \
    _Alignas(64) lw_##T r[STRIP_BLOCK];                                                                               \
    for (i64 m; n > 0; n -= m, x += m, y += m, o += m) {                                                              \
      m = n < STRIP_BLOCK ? n : STRIP_BLOCK;                                                                          \
      if (m <= STRIP_FEW) return one_by_one_##T##_##arity(o, x, y, m, scalar);                                        \
      i64 whole = m & -STRIP_PAD;                                                                                     \
      u64 rare = whole ? core(r, x, y, m) : 0;                                                                        \
      if (m > whole) rare |= strip_pad(core, r + whole, x + whole, y + whole, (size_t)(m - whole) * sizeof *x);       \
      if (__builtin_expect(rare != 0, 0)) (void)one_by_one_##T##_##arity(r, x, y, m, scalar);                         \
      memcpy(o, r, (size_t)m * sizeof *x);                                                                            \
    }                                                                                                                 \
    return 0;                                                                                                         \
  }
STRIP_DRIVERS(f32, 1, (lw_f32))
STRIP_DRIVERS(f32, 2, (lw_f32, lw_f32))
STRIP_DRIVERS(f64, 1, (lw_f64))
STRIP_DRIVERS(f64, 2, (lw_f64, lw_f64))
#endif
