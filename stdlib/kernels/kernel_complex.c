/* kernel_complex.c — what is done to complex elements, and the loops over them (complex_strips.def). */
#include "stdlib/kernels/kernel_complex.h"

#include "lang/halves.h"
#include "stdlib/kernels/element.h"
#include "stdlib/kernels/wm.h"

#include <complex.h>
#undef I

typedef struct c64 {
  f32 re, im;
} T_c64;
typedef struct c128 {
  f64 re, im;
} T_c128;

static inline T_c64 pair_f32(f32 re, f32 im) { return (T_c64){re, im}; }
static inline T_c128 pair_f64(f64 re, f64 im) { return (T_c128){re, im}; }
static inline T_c64 short_of(T_c128 p) { return (T_c64){(f32)p.re, (f32)p.im}; }
static inline T_c128 of_pair(double _Complex z) { return (T_c128){creal(z), cimag(z)}; }
#define real_part_f32(p) ((p).re)
#define imag_part_f32(p) ((p).im)
#define real_part_f64(p) ((p).re)
#define imag_part_f64(p) ((p).im)
/* of two numbers, or of one, as lang/math.loops has it, so that compiled code gives the same bits */
#ifdef __x86_64__
#define WM(name, ...) (cpu_has(CPU_FMA) ? wm_##name##_f64_fma(__VA_ARGS__) : wm_##name##_f64(__VA_ARGS__))
#else
#define WM(name, ...) wm_##name##_f64(__VA_ARGS__)
#endif
#define angle_f32(p) (f32)WM(atan2, (p).im, (p).re)
#define angle_f64(p) WM(atan2, (p).im, (p).re)
#define length_f32(p) (f32)WM(hypot, (p).re, (p).im)
#define length_f64(p) WM(hypot, (p).re, (p).im)
#define by(fn, p) of_pair(fn(__builtin_complex((p).re, (p).im)))

/* Smith's way: divided by the larger part first, so that nothing overflows that need not. */
static inline T_c128 quotient(T_c128 p, T_c128 q) {
  if (fabs(q.re) >= fabs(q.im)) {
    if (q.re == 0 && q.im == 0) return pair_f64(p.re / fabs(q.re), p.im / fabs(q.re));
    f64 r = q.im / q.re, d = q.re + q.im * r;
    return pair_f64((p.re + p.im * r) / d, (p.im - p.re * r) / d);
  }
  f64 r = q.re / q.im, d = q.im + q.re * r;
  return pair_f64((p.re * r + p.im) / d, (p.im * r - p.re) / d);
}

static inline T_c128 product(T_c128 p, T_c128 q) {
  return pair_f64(p.re * q.re - p.im * q.im, p.re * q.im + p.im * q.re);
}

/* e to the real part, turned by the imaginary one: where that power alone would overflow, in two factors. The same
 * steps are those of jit/lower/pairs.c. */
enum { EXP_LARGE = 700, EXP_LESS = 512 };
static T_c128 exponential(T_c128 p) {
  const bool large = p.re > EXP_LARGE;
  const f64 k = large ? 0x1.9476504ba852ep738 : 1, r = WM(exp, large ? p.re - EXP_LESS : p.re);
  if (!isfinite(p.im)) {
    if (p.re == -INFINITY) return pair_f64(0, 0);
    return pair_f64(p.re == INFINITY ? INFINITY : NAN, NAN);
  }
  return pair_f64(r * WM(cos, p.im) * k, p.im == 0 ? p.im : r * WM(sin, p.im) * k);
}

/* a * a + b * b - 1 for a >= b >= 0 of a length near 1. The squares are taken with what they were rounded by, so that
 * little is lost where the 1 is subtracted (Dekker, A floating-point technique for extending the available precision,
 * 1971). */
static f64 square_error(f64 a, f64 square) {
  const f64 c = 134217729 * a, high = c - (c - a), low = a - high;
  return ((high * high - square) + 2 * (high * low)) + low * low;
}

static f64 length_less_one(f64 a, f64 b) {
  const f64 aa = a * a, bb = b * b;
  return ((aa - 1) + bb) + (square_error(a, aa) + square_error(b, bb));
}

/* By parts: the logarithm of the length, and the angle. Where the length is near 1, by log1p. */
static T_c128 logarithm(T_c128 p) {
  const f64 x = fabs(p.re), y = fabs(p.im), a = x > y ? x : y, b = x > y ? y : x;
  const bool large = a > 0x1p1000, tiny = a < 0x1p-900;
  const f64 scale = large ? 0x1p-4 : tiny ? 0x1p200 : 1, back = large ? 4 * M_LN2 : tiny ? -200 * M_LN2 : 0;
  const f64 r = WM(hypot, a * scale, b * scale);
  const bool near = (r > 0.5) & (r < 2);
  const f64 re = b == 0 ? WM(log, a) : near ? 0.5 * WM(log1p, length_less_one(a, b)) : WM(log, r) + back;
  return pair_f64(re, WM(atan2, p.im, p.re));
}

/* A whole exponent that is not large multiplies; 0 to the power 0 is 1. */
static T_c128 power(T_c128 p, T_c128 q) {
  enum { MOST = 100 };
  if (q.im == 0 && fabs(q.re) <= MOST && q.re == floor(q.re)) {
    T_c128 all = {1, 0}, square = p;
    for (u32 n = (u32)fabs(q.re); n; n >>= 1, square = product(square, square))
      if (n & 1) all = all.re == 1 && all.im == 0 ? square : product(all, square);
    return q.re < 0 ? quotient(pair_f64(1, 0), all) : all;
  }
  if (p.re == 0 && p.im == 0 && q.re > 0) return pair_f64(0, 0);
  return exponential(product(q, logarithm(p)));
}

/* Of length 1, or 0; an infinite part has the direction alone. */
static T_c128 direction(T_c128 p) {
  f64 r = length_f64(p);
  if (r == 0) return pair_f64(0, 0);
  if (r == INFINITY && p.re == p.re && p.im == p.im && isinf(p.re) != isinf(p.im))
    return isinf(p.re) ? pair_f64(copysign(1, p.re), 0) : pair_f64(0, copysign(1, p.im));
  if (!(r < INFINITY) || r < 0x1p-1000) { /* of what is tiny r is not exact */
    if (!(r < INFINITY)) return pair_f64(NAN, NAN);
    return direction(pair_f64(p.re * 0x1p100, p.im * 0x1p100));
  }
  return pair_f64(p.re / r, p.im / r);
}

/* The root with a real part that is not negative: the larger part of the two first, the other by division. */
static T_c128 root(T_c128 p) {
  const f64 x = fabs(p.re), y = fabs(p.im);
  const bool large = x > 0x1p1000 || y > 0x1p1000, tiny = x < 0x1p-900 && y < 0x1p-900;
  const f64 scale = large ? 0x1p-4 : tiny ? 0x1p200 : 1, back = large ? 0x1p2 : tiny ? 0x1p-100 : 1;
  const f64 a = x * scale, b = y * scale, most = sqrt((a + WM(hypot, a, b)) * 0.5);
  const f64 least = most == 0 ? 0 : b / (most * 2);
  const f64 re = (p.re >= 0 ? most : least) * back, im = (p.re >= 0 ? least : most) * back;
  if (y == INFINITY) return pair_f64(INFINITY, p.im);
  return pair_f64(re, isnan(p.im) ? im : copysign(im, p.im));
}

/* 2 to the real part, turned by the imaginary one. */
static T_c128 two_to_the(T_c128 p) {
  f64 r = WM(exp2, p.re), turn = p.im * M_LN2;
  if (p.im == 0) return pair_f64(r, p.im);
  return pair_f64(r * WM(cos, turn), r * WM(sin, turn));
}

static T_c128 exp_less_one(T_c128 p) {
  const bool small = (fabs(p.re) <= 1) & isfinite(p.im);
  const f64 half = WM(sin, p.im / 2);
  const T_c128 y = exponential(p);
  if (!small) return pair_f64(y.re - 1, y.im);
  return pair_f64(WM(expm1, p.re) * WM(cos, p.im) - 2 * half * half, WM(exp, p.re) * WM(sin, p.im));
}

static T_c128 log_one_more(T_c128 p) {
  const T_c128 y = logarithm(pair_f64(1 + p.re, p.im));
  const bool small = (fabs(p.re) < 0.5) & (fabs(p.im) < 0.5);
  return pair_f64(small ? 0.5 * WM(log1p, p.re * (2 + p.re) + p.im * p.im) : y.re, y.im);
}

/* The logarithm to a base: of the length r by its own function, which gives `of_length`, where that is exact. */
static T_c128 log_scaled(T_c128 p, f64 r, f64 of_length, f64 scale) {
  const T_c128 y = logarithm(p);
  const bool plain = (r > 0x1p-1000 && r < 0.5) || (r > 2 && r < INFINITY) || p.im == 0;
  return pair_f64(plain ? of_length : y.re * scale, y.im * scale);
}
static T_c128 log_two(T_c128 p) {
  const f64 r = length_f64(p);
  return log_scaled(p, r, WM(log2, r), 1 / M_LN2);
}
static T_c128 log_ten(T_c128 p) {
  const f64 r = length_f64(p);
  return log_scaled(p, r, WM(log10, r), 1 / M_LN10);
}

/* sinh and cosh of the real part times k, which is e to the power 512 where they would overflow, else 1. */
typedef struct Hyperbolic {
  f64 sinh, cosh, k;
} Hyperbolic;
static Hyperbolic hyperbolic(f64 x) {
  const f64 size = fabs(x);
  const bool large = size > EXP_LARGE;
  const f64 e = WM(exp, large ? size - EXP_LESS : 0) * 0.5;
  return (Hyperbolic){large ? copysign(e, x) : WM(sinh, x), large ? e : WM(cosh, x), large ? 0x1.9476504ba852ep738 : 1};
}

static T_c128 hyperbolic_sine(T_c128 p) {
  const Hyperbolic h = hyperbolic(p.re);
  const bool end = !isfinite(p.im) && (p.re == 0 || fabs(p.re) == INFINITY);
  return pair_f64(end ? p.re : h.sinh * WM(cos, p.im) * h.k, p.im == 0 ? p.im : h.cosh * WM(sin, p.im) * h.k);
}

static T_c128 hyperbolic_cosine(T_c128 p) {
  const Hyperbolic h = hyperbolic(p.re);
  const bool far = !isfinite(p.im);
  const f64 im = far && p.re == 0 ? p.re : h.sinh * WM(sin, p.im) * h.k;
  return pair_f64(far && fabs(p.re) == INFINITY ? fabs(p.re) : h.cosh * WM(cos, p.im) * h.k,
                  p.im != 0 ? im : p.re != p.re ? p.im : copysign(1, p.re) * p.im);
}

/* Kahan, Branch cuts for complex elementary functions (1987); beyond 22 the real part is 1 to all digits. */
static T_c128 hyperbolic_tangent(T_c128 p) {
  const f64 size = fabs(p.re), t = WM(tan, p.im), s = WM(sinh, size > 22 ? 0 : p.re), beta = 1 + t * t;
  const f64 d = 1 + beta * (s * s);
  const f64 one = copysign(1, p.re), shrunk = 4 * (WM(sin, p.im) * WM(cos, p.im)) * WM(exp, -2 * size);
  const f64 re = size > 22 ? one : beta * (sqrt(1 + s * s) * s) / d, im = size > 22 ? shrunk : t / d;
  const bool far = !isfinite(p.im), end = size == INFINITY;
  return pair_f64(far ? p.re == 0 ? p.re : end ? one : (f64)NAN : re, p.im == 0 ? p.im : far && end ? 0 : im);
}

/* i times p, and back: of a function with imaginary argument. */
static T_c128 turned(T_c128 p) { return pair_f64(-p.im, p.re); }
static T_c128 turned_back(T_c128 p) { return pair_f64(p.im, -p.re); }

/* Elements at one index do not depend on others: `out` is an operand itself or does not overlap. */
#define COMPLEX_STRIP(op, dt, r, ...)                                                    \
  u32 complex_##op##_##dt(void *out, const void *xv, const void *yv, i64 n) {            \
    const T_##dt *x = xv, *y = yv;                                                       \
    T_##r *o = out;                                                                      \
    INDEPENDENT for (i64 i = 0; i < n; i++) {                                            \
      const T_##dt p __attribute__((unused)) = x[i], q __attribute__((unused)) = y[i];   \
      o[i] = (__VA_ARGS__);                                                              \
    }                                                                                    \
    return 0;                                                                            \
  }
#define COMPLEX_CONVERT(from, to, ...)                                                        \
  u32 complex_##from##_to_##to(void *out, const void *xv, const void *yv, i64 n) {            \
    const T_##from *x = xv;                                                                   \
    T_##to *o = out;                                                                          \
    (void)yv;                                                                                 \
    INDEPENDENT for (i64 i = 0; i < n; i++) {                                                 \
      const T_##from p = x[i];                                                                \
      o[i] = (__VA_ARGS__);                                                                   \
    }                                                                                         \
    return 0;                                                                                 \
  }
#include "stdlib/kernels/complex_strips.def"

void complex_select(void *out, const u8 *c, const void *x, const void *y, i64 n) {
  const T_c128 *p = x, *q = y;
  T_c128 *o = out;
  INDEPENDENT for (i64 i = 0; i < n; i++) o[i] = c[i] ? p[i] : q[i];
}
