/* sweep.c — f32 functions against the f64 ones, whose error is 2^-27 ulp here. */
#include <math.h>
#include <string.h>

#include "tests/math/accuracy.h"

enum { BLOCK = 1024 }; /* what it takes stays in the first cache */

/* Where |result| is below this the error is absolute (the definitions say so). */
static f64 least_of(const char *name) { return strcmp(name, "silu") == 0 || strcmp(name, "gelu") == 0 ? 1e-35 : 0; }

static f64 distance(f32 got, f64 want) {
  if (isnan(want)) return isnan(got) ? 0 : INFINITY;
  f32 near = (f32)want;
  if (isnan(got) || (isinf(near) && isinf(got) && near != got)) return INFINITY;
  if (got == 0 && near == 0 && signbit(got) != signbit(near)) return INFINITY;
  if (isinf(near) || isinf(got))
    return near == got || fabs(isinf(got) ? (f64)near : (f64)got) >= 0x1.fffffep127 ? 0 : INFINITY;
  int e;
  (void)frexp(want, &e);
  return fabs((f64)got - want) / ldexp(1, e < -125 ? -149 : e - 24);
}

/* Without branches and in vectors: what is around the functions takes less time than they do. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define IN_VECTORS __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3", "no-trapping-math")))
#else
#define IN_VECTORS
#endif

/* May some of n results be further off than `worst`, where the result is `least` or more? */
IN_VECTORS static bool beyond(const f32 *got, const f64 *want, i64 n, f64 worst, f64 least) {
  u64 any = 0;
  for (i64 i = 0; i < n; i++) {
    f64 g = (f64)got[i], w = want[i], s;
    u64 wbits, gbits, scale;
    memcpy(&wbits, &w, 8);
    memcpy(&gbits, &g, 8);
    u64 e = wbits & (u64)0x7FF << 52, lowest = (u64)897 << 52;
    /* 2^23 over the exponent of the last place's number, at least 2^-126 */
    scale = ((u64)2069 << 52) - (e < lowest ? lowest : e);
    memcpy(&s, &scale, 8);
    f64 d = fabs(g - w) * s;
    u64 far = !(d <= worst), both = (g != g) & (w != w), turned = (gbits ^ wbits) >> 63, other = turned & (g == 0);
    u64 over = (fabs(g) == (f64)INFINITY) & (fabs(w) >= 0x1.ffffffp127) & (turned ^ 1); /* infinite as f32 */
    any |= ((far & ~both & ~over & !(g == w)) | other) & !(fabs(w) < least);
  }
  return any != 0;
}

/* x and x64: the numbers with the bits `first` + `stride` i. */
IN_VECTORS static void fill(f32 *x, f64 *x64, u32 first, u32 stride, u32 n) {
  for (u32 i = 0; i < n; i++) {
    u32 bits = first + i * stride;
    f32 v;
    memcpy(&v, &bits, 4);
    x[i] = v;
    x64[i] = (f64)v;
  }
}

/* The same numbers with the other sign. */
IN_VECTORS static void negate(f32 *x, u32 n) {
  for (u32 i = 0; i < n; i++) x[i] = -x[i];
}
IN_VECTORS static void negate_wide(f64 *x, u32 n) {
  for (u32 i = 0; i < n; i++) x[i] = -x[i];
}

IN_VECTORS static void widen(f64 *to, const f32 *from, u32 n) {
  for (u32 i = 0; i < n; i++) to[i] = (f64)from[i];
}

static void look(Worst *worst, const f32 *x, const f32 *y, const f32 *got, const f64 *want, i64 n, f64 least) {
  if (!beyond(got, want, n, worst->ulp, least)) return;
  for (i64 i = 0; i < n; i++) {
    if (fabs(want[i]) < least) continue;
    f64 d = distance(got[i], want[i]);
    if (d <= worst->ulp) continue;
    *worst = (Worst){d, (f64)x[i], y ? (f64)y[i] : 0, false};
  }
}

static u64 rnd(u64 *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return *seed * 2685821657736338717u;
}

/* Pairs of one in three kinds: any bits, ordinary sizes, close to each other. Where the sum of the terms cancels,
 * logaddexp is exact to the last place of the larger term alone: it takes no negative numbers here. */
static void draw_pairs(u64 *seed, f32 *x, f32 *y, bool positive) {
  for (i64 i = 0; i < BLOCK; i++) {
    u64 r = rnd(seed);
    u32 a = (u32)r, b = (u32)(r >> 32);
    memcpy(&x[i], &a, 4);
    memcpy(&y[i], &b, 4);
    if (i % 3) {
      x[i] = (f32)((f64)a * 0x1p-32 * 20 - 10);
      y[i] = i % 3 == 1 ? (f32)((f64)b * 0x1p-32 * 20 - 10) : x[i] * (f32)(0.5 + (f64)b * 0x1p-32);
    }
    if (positive) x[i] = fabsf(x[i]), y[i] = fabsf(y[i]);
  }
}

/* f(-x) is -f(x), or f(x): what is wanted there follows from what is wanted at x. */
typedef enum Symmetry { NONE, ODD, EVEN } Symmetry;
static Symmetry symmetry_of(const char *name) {
  static const char *const odd[] = {"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "cbrt", "erf",
                                    "erfinv"}, *const even[] = {"cos", "cosh"};
  for (u32 i = 0; i < sizeof odd / sizeof *odd; i++)
    if (strcmp(name, odd[i]) == 0) return ODD;
  for (u32 i = 0; i < sizeof even / sizeof *even; i++)
    if (strcmp(name, even[i]) == 0) return EVEN;
  return NONE;
}

Worst sweep_narrow(const Function *f, u32 stride) {
  f32 x[BLOCK], y[BLOCK], got[BLOCK];
  f64 x64[BLOCK], y64[BLOCK], want[BLOCK], least = least_of(f->name);
  Worst worst = {0};
  u64 seed = 88172645463325252u;
  if (f->arity == 2) {
    for (i64 done = 0; done < ((i64)1 << 28) / stride; done += BLOCK) {
      draw_pairs(&seed, x, y, strcmp(f->name, "logaddexp") == 0 || strcmp(f->name, "pow") == 0);
      widen(x64, x, BLOCK);
      widen(y64, y, BLOCK);
      (void)f->narrow(got, x, y, BLOCK);
      (void)f->wide(want, x64, y64, BLOCK);
      look(&worst, x, y, got, want, BLOCK, least);
    }
    return worst;
  }
  Symmetry symmetry = symmetry_of(f->name);
  /* the f32 function is evaluated at every number of either sign */
  const u64 all = (u64)1 << (symmetry == NONE ? 32 : 31);
  for (u64 first = 0, next; first < all; first = next) {
    u64 left = (all - first + stride - 1) / stride;
    u32 n = left < BLOCK ? (u32)left : BLOCK;
    next = first + (u64)n * stride;
    fill(x, x64, (u32)first, stride, n);
    (void)f->narrow(got, x, x, n);
    (void)f->wide(want, x64, x64, n);
    look(&worst, x, NULL, got, want, n, least);
    if (symmetry == NONE) continue;
    negate(x, n);
    if (symmetry == ODD) negate_wide(want, n);
    (void)f->narrow(got, x, x, n);
    look(&worst, x, NULL, got, want, n, least);
  }
  return worst;
}
