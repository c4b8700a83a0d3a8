/* test_math.c — the functions of lang/math.loops: special cases, largest errors, the same bits from every build. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <quadmath.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/loops/define_math.h"
#include "jit/loops/loops_straight.h"
#include "stdlib/kernels/wm.h"

#pragma GCC diagnostic ignored "-Wpedantic"

/* ---- what there is ------------------------------------------------------------------------------- */

typedef u32 (*Strip)(void *, const void *, const void *, i64);
typedef struct Row {
  const char *name;
  LoopType type;
  u32 arity;
  Strip base, avx2, avx512;
} Row;

static const Row rows[] = {
#define LT_f32 LT_F32
#define LT_f64 LT_F64
#ifdef __x86_64__
#define MATH(name, type, arity)                                                               \
  {#name, LT_##type, arity, wm_strip_##name##_##type##_base, wm_strip_##name##_##type##_avx2, \
   wm_strip_##name##_##type##_avx512},
#else
#define MATH(name, type, arity) {#name, LT_##type, arity, wm_strip_##name##_##type##_base, NULL, NULL},
#endif
#define MATH_HELPER(name, type, arity)
#include "math_list.h"
};

typedef struct Stated {
  const char *name;
  f64 ulp64, ulp32;
} Stated;

static const Stated stated[] = {
#define MATH_ERROR(name, e64, e32) {#name, e64, e32},
#include "math_errors.h"
};

static const Stated *stated_of(const char *name) {
  for (size_t i = 0; i < COUNT_OF(stated); i++)
    if (strcmp(stated[i].name, name) == 0) return &stated[i];
  fail_msg("lang/math.loops states no error for %s", name);
  return NULL;
}

static const LoopMath *scalar_of(const WmLevel *level, const char *name, LoopType type) {
  for (u32 i = 0; i < level->count; i++)
    if (level->functions[i].type == type && strcmp(level->functions[i].name, name) == 0) return &level->functions[i];
  fail_msg("no scalar %s", name);
  return NULL;
}

static f64 call64(const LoopMath *m, f64 x, f64 y) {
  return m->arity == 1 ? ((f64(*)(f64))m->fn)(x) : ((f64(*)(f64, f64))m->fn)(x, y);
}
static f32 call32(const LoopMath *m, f32 x, f32 y) {
  return m->arity == 1 ? ((f32(*)(f32))m->fn)(x) : ((f32(*)(f32, f32))m->fn)(x, y);
}

static u64 seed = 88172645463325252u;
static u64 rnd(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed * 2685821657736338717u;
}
static f64 unit(void) { return (f64)(rnd() >> 11) * 0x1p-53; }
static f64 any64(void) {
  u64 b = rnd();
  f64 v;
  memcpy(&v, &b, 8);
  return v;
}
static f32 any32(void) {
  u32 b = (u32)rnd();
  f32 v;
  memcpy(&v, &b, 4);
  return v;
}

/* ---- special cases ------------------------------------------------------------------------------- */

#define PI_ 3.14159265358979312
static const struct {
  const char *name;
  f64 x, y, want;
} special[] = {
#define SPECIAL(name, x, y, want) {#name, x, y, want},
#include "tests/math/functions.def"
};

static bool same64(f64 a, f64 b) { return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b); }
static bool same32(f32 a, f32 b) { return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b); }

static void test_special(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(special); i++) {
    const LoopMath *m = scalar_of(&wm_base, special[i].name, LT_F64);
    f64 got = call64(m, special[i].x, special[i].y);
    if (!same64(got, special[i].want))
      fail_msg("%s(%a, %a) = %a, not %a", m->name, special[i].x, special[i].y, got, special[i].want);
    /* the same in f32 where everything fits: zeros, infinities, NaN, small numbers */
    f32 x = (f32)special[i].x, y = (f32)special[i].y, want = (f32)special[i].want;
    bool fits = same64((f64)x, special[i].x) && same64((f64)y, special[i].y) &&
                (special[i].want == 0 || !isfinite(special[i].want) || fabs(special[i].want) == 1);
    if (!fits || strcmp(m->name, "nextafter") == 0) continue;
    f32 got32 = call32(scalar_of(&wm_base, special[i].name, LT_F32), x, y);
    if (!same32(got32, want)) fail_msg("f32 %s(%a, %a) = %a, not %a", m->name, (f64)x, (f64)y, (f64)got32, (f64)want);
  }
}

static void test_exact(void **state) {
  (void)state;
  for (int k = -1074; k < 1024; k++) {
    assert_true(wm_exp2_f64(k) == ldexp(1, k));
    assert_true(wm_pow_f64(2, k) == ldexp(1, k));
    assert_true(wm_log2_f64(ldexp(1, k)) == k);
  }
  for (int k = -149; k < 128; k++) {
    assert_true(wm_exp2_f32((f32)k) == ldexpf(1, k));
    assert_true(wm_log2_f32(ldexpf(1, k)) == (f32)k);
  }
  for (int x = 2; x < 200; x++) {
    f64 p = 1;
    for (int y = 0; p < 0x1p53; y++, p *= x) assert_true(wm_pow_f64(x, y) == p);
  }
  f64 ten = 1, factorial = 1;
  for (int k = 0; k <= 22; k++, ten *= 10) assert_true(wm_log10_f64(ten) == k);
  for (int n = 1; n <= 23; factorial *= n++) assert_true(wm_gamma_f64(n) == factorial);
  for (int k = 1; k < 20000; k++) assert_true(wm_cbrt_f64((f64)k * k * k) == k);
  for (int k = 1; k < 250; k++) assert_true(wm_cbrt_f32((f32)(k * k * k)) == (f32)k);
  for (int i = 0; i < 100000; i++) {
    f64 x = any64(), y = any64();
    f32 x32 = any32(), y32 = any32();
    assert_true(same64(wm_pow_f64(x, 2), x * x));
    assert_true(same32(wm_pow_f32(x32, 2), x32 * x32));
    assert_true(same64(wm_fmod_f64(x, y), fmod(x, y)));
    assert_true(same32(wm_fmod_f32(x32, y32), fmodf(x32, y32)));
    if (x != 0 || y != 0) assert_true(same64(wm_nextafter_f64(x, y), nextafter(x, y)));
    if (x32 != 0 || y32 != 0) assert_true(same32(wm_nextafter_f32(x32, y32), nextafterf(x32, y32)));
  }
}

#ifdef __x86_64__
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
static bool has_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#else
static bool has_avx2(void) { return false; }
static bool has_avx512(void) { return false; }
#endif

/* Remainders are exact whatever the quotient: every pair of numbers of all magnitudes, subnormal ones and the
 * largest among them, each in three mantissas; strips of every build as well. */
static void test_remainders(void **state) {
  (void)state;
  enum { MOST = 3 * 2100 / 9 + 16, MOST32 = 3 * 280 / 3 + 16 };
  static f64 x[MOST], y[MOST], z[MOST];
  static f32 x32[MOST32], y32[MOST32], z32[MOST32];
  i64 n = 0, n32 = 0;
  for (int k = -1074; k < 1024; k += k < -1060 || k > 1010 ? 1 : 13) {
    x[n++] = ldexp(1, k);
    x[n++] = ldexp(1.25, k);
    x[n++] = nextafter(ldexp(1.5, k), 0);
  }
  x[n++] = DBL_MAX, x[n++] = 1e308, x[n++] = 0, x[n++] = INFINITY, x[n++] = NAN, x[n++] = 5e-324 * 3;
  for (int k = -149; k < 128; k += k < -140 || k > 120 ? 1 : 5) {
    x32[n32++] = ldexpf(1, k);
    x32[n32++] = nextafterf(ldexpf(1.5f, k), 0);
  }
  x32[n32++] = FLT_MAX, x32[n32++] = 0, x32[n32++] = INFINITY, x32[n32++] = NAN;
  assert_true(n <= MOST && n32 <= MOST32);
  for (size_t r = 0; r < COUNT_OF(rows); r++) {
    if (strcmp(rows[r].name, "fmod") != 0) continue;
    Strip strips[] = {rows[r].base, has_avx2() ? rows[r].avx2 : NULL, has_avx512() ? rows[r].avx512 : NULL};
    for (size_t s = 0; s < COUNT_OF(strips); s++) {
      for (i64 i = 0; strips[s] && rows[r].type == LT_F64 && i < n; i++) {
        for (i64 k = 0; k < n; k++) y[k] = k & 1 ? x[i] : -x[i];
        (void)strips[s](z, x, y, n);
        for (i64 k = 0; k < n; k++)
          if (!same64(z[k], fmod(x[k], y[k]))) fail_msg("fmod(%a, %a) = %a in strips %zu", x[k], y[k], z[k], s);
      }
      for (i64 i = 0; strips[s] && rows[r].type == LT_F32 && i < n32; i++) {
        for (i64 k = 0; k < n32; k++) y32[k] = k & 1 ? x32[i] : -x32[i];
        (void)strips[s](z32, x32, y32, n32);
        for (i64 k = 0; k < n32; k++)
          if (!same32(z32[k], fmodf(x32[k], y32[k])))
            fail_msg("f32 fmod(%a, %a) = %a in strips %zu", (f64)x32[k], (f64)y32[k], (f64)z32[k], s);
      }
    }
  }
  for (i64 i = 0; i < n; i++)
    for (i64 k = 0; k < n; k++) {
      f64 p = i & 1 ? x[i] : -x[i], q = x[k], r = fmod(p, q), whole = (p - r) / q;
      if (!same64(wm_fmod_f64(p, q), r)) fail_msg("fmod(%a, %a) = %a", p, q, wm_fmod_f64(p, q));
      f64 v = r == 0 ? copysign(0, q) : (r < 0) != (q < 0) ? r + q : r; /* as Python has it */
      if (!same64(wm_remainder_f64(p, q), v))
        fail_msg("remainder(%a, %a) = %a, not %a", p, q, wm_remainder_f64(p, q), v);
      if (r != 0 && (r < 0) != (q < 0)) whole -= 1;
      whole = whole == 0 ? copysign(0, p / q) : whole - floor(whole) > 0.5 ? floor(whole) + 1 : floor(whole);
      if (q == 0) whole = p / q;
      if (!same64(wm_floor_divide_f64(p, q), whole))
        fail_msg("floor_divide(%a, %a) = %a, not %a", p, q, wm_floor_divide_f64(p, q), whole);
    }
}

/* ---- largest errors ------------------------------------------------------------------------------ */

typedef __float128 q128;

static q128 q_exp2(q128 x) { return exp2q(x); }
static q128 q_sigmoid(q128 x) { return 1 / (1 + expq(-x)); }
static q128 q_softplus(q128 x) { return x > 0 ? x + log1pq(expq(-x)) : log1pq(expq(x)); }
static q128 q_silu(q128 x) { return x / (1 + expq(-x)); }
static q128 q_gelu(q128 x) { return x / 2 * erfcq(-x / sqrtq(2)); }
static q128 q_gamma(q128 x) {
  return x < -20 ? M_PIq / (sinq(M_PIq * (x - 2 * rintq(x / 2))) * tgammaq(1 - x)) : tgammaq(x);
}
static q128 q_digamma(q128 x) { /* shifted up to 40, then the asymptotic series */
  static const f64 num[] = {1, -1, 1, -1, 1, -691, 1, -3617}, den[] = {12, 120, 252, 240, 132, 32760, 12, 8160};
  q128 sum = 0;
  if (x < 0) return q_digamma(1 - x) - M_PIq / tanq(M_PIq * (x - rintq(x)));
  for (; x < 40; x++) sum -= 1 / x;
  q128 z = 1 / (x * x), t = z;
  sum += logq(x) - 1 / (2 * x);
  for (int i = 0; i < 8; i++, t *= z) sum -= t * (q128)num[i] / (q128)den[i];
  return sum;
}
/* One step of Newton's iteration from the f64 result: its error squared. */
static q128 q_sinc(q128 x) {
  q128 n = rintq(x), y = sinq(M_PIq * (x - n));
  return x == 0 ? 1 : (fmodq(n, 2) != 0 ? -y : y) / (M_PIq * x);
}

static q128 q_erfinv(q128 x) {
  q128 y = (q128)wm_erfinv_f64((f64)x), a = fabsq(y);
  q128 e = a < 0.5Q ? erfq(a) - fabsq(x) : (1 - fabsq(x)) - erfcq(a);
  q128 step = e * expq(a * a) * (sqrtq(M_PIq) / 2);
  step /= 1 + a * step;
  return y < 0 ? -(a - step) : a - step;
}
static q128 q_logaddexp(q128 x, q128 y) { return fmaxq(x, y) + log1pq(expq(-fabsq(x - y))); }

enum { EVEN, LOGARITHMIC, SIGNED_LOGARITHMIC };
typedef struct Sample {
  const char *name;
  q128 (*ref)(q128);
  f64 lo, hi;
  int spacing;
} Sample;

static const Sample samples[] = {
  {"exp", expq, -1, 1, EVEN}, {"exp", expq, -745, 709.7, EVEN}, {"exp", expq, 1e-30, 1, SIGNED_LOGARITHMIC},
  {"exp2", q_exp2, -1, 1, EVEN}, {"exp2", q_exp2, -1074, 1023.9, EVEN},
  {"expm1", expm1q, -2, 2, EVEN}, {"expm1", expm1q, -40, 709.7, EVEN}, {"expm1", expm1q, 1e-300, 1, SIGNED_LOGARITHMIC},
  {"log", logq, 0.5, 2, EVEN}, {"log", logq, 1e-320, 1e308, LOGARITHMIC}, {"log", logq, 0.99, 1.01, EVEN},
  {"log2", log2q, 0.5, 2, EVEN}, {"log2", log2q, 1e-320, 1e308, LOGARITHMIC}, {"log2", log2q, 0.99, 1.01, EVEN},
  {"log10", log10q, 0.5, 2, EVEN}, {"log10", log10q, 1e-320, 1e308, LOGARITHMIC}, {"log10", log10q, 0.99, 1.01, EVEN},
  {"log1p", log1pq, -0.99, 2, EVEN}, {"log1p", log1pq, 1e-300, 1e308, LOGARITHMIC},
  {"log1p", log1pq, 1e-20, 0.999, SIGNED_LOGARITHMIC},
  {"sin", sinq, -10, 10, EVEN}, {"sin", sinq, 1e-300, 1e308, SIGNED_LOGARITHMIC},
  {"sin", sinq, 1, 1e13, SIGNED_LOGARITHMIC},
  {"cos", cosq, -10, 10, EVEN}, {"cos", cosq, 1e-300, 1e308, SIGNED_LOGARITHMIC},
  {"cos", cosq, 1, 1e13, SIGNED_LOGARITHMIC},
  {"tan", tanq, -10, 10, EVEN}, {"tan", tanq, 1e-300, 1e308, SIGNED_LOGARITHMIC},
  {"tan", tanq, 1, 1e13, SIGNED_LOGARITHMIC},
  {"asin", asinq, -1, 1, EVEN}, {"asin", asinq, 1e-300, 1, SIGNED_LOGARITHMIC},
  {"acos", acosq, -1, 1, EVEN}, {"acos", acosq, 1e-300, 1, SIGNED_LOGARITHMIC}, {"acos", acosq, 0.999, 1, EVEN},
  {"atan", atanq, -3, 3, EVEN}, {"atan", atanq, 1e-300, 1e308, SIGNED_LOGARITHMIC},
  {"sinh", sinhq, -3, 3, EVEN}, {"sinh", sinhq, -710, 710, EVEN}, {"sinh", sinhq, 1e-300, 1, SIGNED_LOGARITHMIC},
  {"cosh", coshq, -3, 3, EVEN}, {"cosh", coshq, -710, 710, EVEN},
  {"tanh", tanhq, -3, 3, EVEN}, {"tanh", tanhq, 1e-300, 30, SIGNED_LOGARITHMIC},
  {"asinh", asinhq, -3, 3, EVEN}, {"asinh", asinhq, 1e-300, 1e308, SIGNED_LOGARITHMIC},
  {"acosh", acoshq, 1, 3, EVEN}, {"acosh", acoshq, 1, 1e308, LOGARITHMIC},
  {"atanh", atanhq, -1, 1, EVEN}, {"atanh", atanhq, 1e-300, 1, SIGNED_LOGARITHMIC},
  {"cbrt", cbrtq, -10, 10, EVEN}, {"cbrt", cbrtq, 1e-320, 1e308, SIGNED_LOGARITHMIC},
  {"erf", erfq, -3, 3, EVEN}, {"erf", erfq, 1e-300, 7, SIGNED_LOGARITHMIC},
  {"erfc", erfcq, -3, 3, EVEN}, {"erfc", erfcq, 0.4, 27, EVEN},
  {"sinc", q_sinc, -6, 6, EVEN}, {"sinc", q_sinc, 1e-300, 1e15, SIGNED_LOGARITHMIC},
  {"erfinv", q_erfinv, -1, 1, EVEN}, {"erfinv", q_erfinv, 0.99, 1, EVEN},
  {"gamma", q_gamma, -5, 5, EVEN}, {"gamma", q_gamma, 3, 171, EVEN}, {"gamma", q_gamma, -170, 0, EVEN},
  {"lgamma", lgammaq, 0, 4, EVEN}, {"lgamma", lgammaq, 1, 1e300, LOGARITHMIC},
  {"digamma", q_digamma, 0, 4, EVEN}, {"digamma", q_digamma, 1, 1e10, LOGARITHMIC},
  {"sigmoid", q_sigmoid, -40, 40, EVEN}, {"sigmoid", q_sigmoid, -740, -700, EVEN},
  {"silu", q_silu, -80, 80, EVEN}, {"silu", q_silu, 1e-30, 3, SIGNED_LOGARITHMIC}, {"gelu", q_gelu, -12, 12, EVEN},
  {"gelu", q_gelu, 1e-30, 3, SIGNED_LOGARITHMIC},
  {"softplus", q_softplus, -40, 40, EVEN}, {"softplus", q_softplus, -740, -700, EVEN},
};

static f64 draw(f64 lo, f64 hi, int spacing) {
  if (spacing == EVEN) return lo + (hi - lo) * unit();
  f64 v = exp(log(lo) + (log(hi) - log(lo)) * unit());
  return spacing == SIGNED_LOGARITHMIC && (rnd() >> 40 & 1) ? -v : v;
}

/* Distance in units of the last place of `want`, whose type has `digits` bits and the least exponent `least`. */
static f64 ulps(f64 got, q128 want, int digits, int least) {
  if (got != got || want != want) return (got != got) == (want != want) ? 0 : INFINITY;
  int e;
  (void)frexpq(want, &e);
  e = want == 0 || e - digits < least ? least : e - digits;
  if (isinf(got)) { /* as far as the number that would have come next */
    q128 limit = scalbnq(1, digits == 53 ? 1024 : 128);
    return fabsq(want) >= limit ? 0 : (f64)((limit - fabsq(want)) / scalbnq(1, e));
  }
  return (f64)(fabsq((q128)got - want) / scalbnq(1, e));
}

static void check_error(const char *name, LoopType type, f64 x, f64 y, f64 got, q128 want) {
  f64 bound = type == LT_F64 ? stated_of(name)->ulp64 : stated_of(name)->ulp32;
  f64 e = type == LT_F64 ? ulps(got, want, 53, -1074) : ulps(got, want, 24, -149);
  if (!(e <= bound + 0.001)) /* stated in tenths, rounded up but for less than a thousandth */
    fail_msg("%s %s(%a, %a) = %a: %.3f ulp, stated are %.1f", loop_type_text(type), name, x, y, got, e, bound);
}

static void test_errors(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(samples); i++) {
    const Sample *s = &samples[i];
    const LoopMath *m64 = scalar_of(wm_best(), s->name, LT_F64), *m32 = scalar_of(wm_best(), s->name, LT_F32);
    for (int k = 0; k < 1500; k++) {
      f64 x = draw(s->lo, s->hi, s->spacing);
      check_error(s->name, LT_F64, x, 0, call64(m64, x, 0), s->ref((q128)x));
      f32 x32 = (f32)x;
      if (isinf(x32) || x32 == 0 || (f64)x32 < fmin(s->lo, -s->hi) || (f64)x32 > s->hi) continue;
      if (strcmp(s->name, "erfinv") == 0) continue; /* its reference starts from the f64 result */
      check_error(s->name, LT_F32, (f64)x32, 0, (f64)call32(m32, x32, 0), s->ref((q128)x32));
    }
  }
}

static void test_errors_of_two(void **state) {
  (void)state;
  static const struct {
    const char *name;
    q128 (*ref)(q128, q128);
    f64 xlo, xhi, ylo, yhi;
    int xs, ys;
  } pairs[] = {
    {"pow", powq, 0, 10, -10, 10, EVEN, EVEN}, {"pow", powq, 0.9, 1.1, -6000, 6000, EVEN, EVEN},
    {"pow", powq, 1e-300, 1e300, -1, 1, LOGARITHMIC, EVEN},
    {"atan2", atan2q, -1, 1, -1, 1, EVEN, EVEN},
    {"atan2", atan2q, 1e-300, 1e300, 1e-300, 1e300, SIGNED_LOGARITHMIC, SIGNED_LOGARITHMIC},
    {"hypot", hypotq, -10, 10, -10, 10, EVEN, EVEN},
    {"hypot", hypotq, 1e-320, 1e307, 1e-320, 1e307, LOGARITHMIC, LOGARITHMIC},
    {"hypot", hypotq, 1e-320, 1e-300, 1e-320, 1e-300, LOGARITHMIC, LOGARITHMIC},
    {"logaddexp", q_logaddexp, 0, 50, 0, 50, EVEN, EVEN},
  };
  for (size_t i = 0; i < COUNT_OF(pairs); i++) {
    const LoopMath *m64 = scalar_of(wm_best(), pairs[i].name, LT_F64),
        *m32 = scalar_of(wm_best(), pairs[i].name, LT_F32);
    for (int k = 0; k < 2000; k++) {
      f64 x = draw(pairs[i].xlo, pairs[i].xhi, pairs[i].xs), y = draw(pairs[i].ylo, pairs[i].yhi, pairs[i].ys);
      check_error(pairs[i].name, LT_F64, x, y, call64(m64, x, y), pairs[i].ref((q128)x, (q128)y));
      f32 x32 = (f32)x, y32 = (f32)y;
      if (isinf(x32) || isinf(y32) || x32 == 0 || y32 == 0) continue;
      check_error(pairs[i].name, LT_F32, (f64)x32, (f64)y32, (f64)call32(m32, x32, y32),
                  pairs[i].ref((q128)x32, (q128)y32));
    }
  }
}

/* ---- the same bits ------------------------------------------------------------------------------- */

enum { N = 4096 };

/* A mixture: bit patterns, ordinary sizes, neighbours of small integers and halves. */
static f64 mixed(int i) {
  switch (i & 3) {
    case 0: return any64();
    case 1: return (unit() - 0.5) * 40;
    case 2: return (unit() - 0.5) * 3;
    default: return (f64)(i64)(rnd() % 41) / 2 - 10 + (f64)(i64)(rnd() % 5 - 2) * 0x1p-50;
  }
}

static void expect_same(const Row *r, const char *what, const void *got, const void *want, const void *x,
                        const void *y) {
  for (int i = 0; i < N; i++) {
    f64 g = r->type == LT_F64 ? ((const f64 *)got)[i] : (f64)((const f32 *)got)[i],
        w = r->type == LT_F64 ? ((const f64 *)want)[i] : (f64)((const f32 *)want)[i];
    f64 a = r->type == LT_F64 ? ((const f64 *)x)[i] : (f64)((const f32 *)x)[i],
        b = r->type == LT_F64 ? ((const f64 *)y)[i] : (f64)((const f32 *)y)[i];
    if (!same64(g, w))
      fail_msg("%s %s(%a, %a): %s gives %a, the scalar %a", loop_type_text(r->type), r->name, a, b, what, g, w);
  }
}

static void test_levels(void **state) {
  (void)state;
  static f64 x64[N], y64[N], want64[N], got64[N];
  static f32 x32[N], y32[N], want32[N], got32[N];
  for (size_t k = 0; k < COUNT_OF(rows); k++) {
    const Row *r = &rows[k];
    bool wide = r->type == LT_F64;
    const LoopMath *m = scalar_of(&wm_base, r->name, r->type);
    assert_int_equal(m->arity, r->arity);
    for (int i = 0; i < N; i++) {
      x64[i] = mixed(i);
      y64[i] = mixed((int)(rnd() & 3));
      x32[i] = i & 3 ? (f32)x64[i] : any32();
      y32[i] = (f32)y64[i];
      if (wide) want64[i] = call64(m, x64[i], y64[i]);
      else want32[i] = call32(m, x32[i], y32[i]);
    }
    const void *x = wide ? (const void *)x64 : x32, *y = wide ? (const void *)y64 : y32,
        *want = wide ? (const void *)want64 : want32;
    void *got = wide ? (void *)got64 : got32;
    const struct {
      const char *name;
      Strip fn;
      bool here;
    } levels[] = {
      {"the baseline strip", r->base, true},
#ifdef __x86_64__
      {"the AVX2 strip", r->avx2, has_avx2()},
      {"the AVX-512 strip", r->avx512, has_avx512()},
#endif
    };
    for (size_t l = 0; l < COUNT_OF(levels); l++) {
      if (!levels[l].here) continue;
      /* one piece in place, one of an odd length elsewhere */
      memcpy(got, x, wide ? sizeof x64 : sizeof x32);
      assert_int_equal(levels[l].fn(got, got, y, N), 0);
      expect_same(r, levels[l].name, got, want, x, y);
      memset(got, 0, wide ? sizeof x64 : sizeof x32);
      size_t at = 777 * (wide ? 8 : 4);
      assert_int_equal(levels[l].fn(got, x, y, 777), 0);
      assert_int_equal(levels[l].fn((char *)got + at, (const char *)x + at, (const char *)y + at, N - 777), 0);
      expect_same(r, levels[l].name, got, want, x, y);
    }
  }
}

/* The scalars of the faster build against the baseline's, helpers included. */
static void test_scalars(void **state) {
  (void)state;
  if (wm_best() == &wm_base) print_message("# skipped: this processor has the baseline alone\n"), skip();
  for (u32 k = 0; k < wm_base.count; k++) {
    const LoopMath *a = &wm_base.functions[k], *b = &wm_best()->functions[k];
    assert_string_equal(a->symbol, b->symbol);
    if (a->name[0] == '_') continue; /* helpers have narrower domains than their callers */
    for (int i = 0; i < 500; i++) {
      f64 x = mixed(i), y = mixed((int)(rnd() & 3));
      if (a->type == LT_F64) assert_true(same64(call64(a, x, y), call64(b, x, y)));
      else assert_true(same32(call32(a, (f32)x, (f32)y), call32(b, (f32)x, (f32)y)));
    }
  }
}

/* The loop IR's interpreter, which defines the meaning, and the straight-line copies. */
static void test_interpreter(void **state) {
  (void)state;
  LoopModule m;
  Buf why;
  assert_int_equal(loop_module_init(&m, allocator_system()), WEFT_OK);
  buf_init(&why, m.alloc);
  u32 made = 0;
  assert_int_equal(define_math(&m, "nothing", LT_F64, NULL), WEFT_ERROR);
  for (u32 k = 0; k < wm_base.count; k++) {
    const LoopMath *c = &wm_base.functions[k];
    if (define_math(&m, c->name, (LoopType)c->type, &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
    const LoopFn *fn = loop_module_find_math(&m, c->name, (LoopType)c->type);
    assert_non_null(fn);
    LoopFn *straight[2] = {NULL, NULL};
    bool split;
    if (loops_straighten(&m, fn, &split, &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
    if (split) {
      char text[64];
      made++;
      for (int s = 0; s < 2; s++) {
        snprintf(text, sizeof text, "%s%s", c->name, s ? "_rare" : "_usual");
        straight[s] = loop_module_find_math(&m, text, fn->math_type);
        assert_non_null(straight[s]);
        assert_true(loop_math_is_straight(straight[s]));
      }
    }
    if (c->name[0] == '_') continue;
    for (int i = 0; i < 150; i++) {
      f64 x = mixed(i), y = mixed((int)(rnd() & 3));
      f32 x32 = (f32)x, y32 = (f32)y;
      u64 args[2] = {0, 0}, result[3] = {0, 0, 0};
      memcpy(&args[0], c->type == LT_F64 ? (const void *)&x : &x32, loop_type_bytes((LoopType)c->type));
      memcpy(&args[1], c->type == LT_F64 ? (const void *)&y : &y32, loop_type_bytes((LoopType)c->type));
      const LoopFn *fns[3] = {fn, straight[0], straight[1]};
      f64 got[3] = {0, 0, 0}, want = c->type == LT_F64 ? call64(c, x, y) : (f64)call32(c, x32, y32);
      for (int s = 0; s < 3; s++) {
        if (!fns[s]) continue;
        if (loops_interp_math(fns[s], args, &result[s], NULL, &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
        if (c->type == LT_F64) {
          memcpy(&got[s], &result[s], 8);
        } else {
          f32 v;
          memcpy(&v, &result[s], 4);
          got[s] = (f64)v;
        }
      }
      if (!same64(got[0], want)) fail_msg("%s(%a, %a): the interpreter gives %a, C %a", c->symbol, x, y, got[0], want);
      if (split && got[2] == 0 && !same64(got[1], want))
        fail_msg("%s(%a, %a): the usual case gives %a, not %a", c->symbol, x, y, got[1], want);
    }
  }
  assert_true(made >= 10);
  assert_int_equal(m.tables.count, 2); /* node 0 and 2/pi, once */
  loop_module_free(&m);
  /* alone, with what it uses and nothing else */
  assert_int_equal(loop_module_init(&m, allocator_system()), WEFT_OK);
  assert_int_equal(define_math(&m, "asinh", LT_F32, &why), WEFT_OK);
  assert_int_equal(define_math(&m, "asinh", LT_F32, &why), WEFT_OK);
  assert_int_equal(m.fns.count, 2);
  assert_int_equal(define_math(&m, "sin", LT_F32, &why), WEFT_OK);
  assert_int_equal(m.fns.count, 5);
  assert_non_null(loop_module_find_math(&m, "_sin_big", LT_F64));
  loop_module_free(&m);
  buf_free(&why);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_special), cmocka_unit_test(test_exact), cmocka_unit_test(test_remainders),
    cmocka_unit_test(test_errors), cmocka_unit_test(test_errors_of_two),
    cmocka_unit_test(test_levels),  cmocka_unit_test(test_scalars), cmocka_unit_test(test_interpreter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
