/* precise.c — f64 functions against MPFR. Samples are drawn by integers alone, so that every machine draws the same. */
#include "tests/math/accuracy.h"

#if __has_include(<mpfr.h>)
#include <math.h>
#include <mpfr.h>
#include <string.h>

enum { BITS = 160, BLOCK = 1024, ROUNDS = 5 };

typedef struct Work {
  mpfr_t x, y, want, a, b, c, pi;
} Work;

typedef void (*Reference)(Work *w);

#define PLAIN(name) static void ref_##name(Work *w) { (void)mpfr_##name(w->want, w->x, MPFR_RNDN); }
PLAIN(exp) PLAIN(exp2) PLAIN(expm1) PLAIN(log) PLAIN(log2) PLAIN(log10) PLAIN(log1p) PLAIN(sin) PLAIN(cos) PLAIN(tan)
PLAIN(asin) PLAIN(acos)
PLAIN(atan) PLAIN(sinh) PLAIN(cosh) PLAIN(tanh) PLAIN(asinh) PLAIN(acosh) PLAIN(atanh) PLAIN(cbrt) PLAIN(erf)
PLAIN(erfc) PLAIN(gamma) PLAIN(digamma)
#define OF_TWO(name) static void ref_##name(Work *w) { (void)mpfr_##name(w->want, w->x, w->y, MPFR_RNDN); }
OF_TWO(pow) OF_TWO(hypot) OF_TWO(atan2)

static void ref_lgamma(Work *w) {
  int sign;
  (void)mpfr_lgamma(w->want, &sign, w->x, MPFR_RNDN);
}
static void ref_sigmoid(Work *w) {
  (void)mpfr_neg(w->a, w->x, MPFR_RNDN);
  (void)mpfr_exp(w->a, w->a, MPFR_RNDN);
  (void)mpfr_add_ui(w->a, w->a, 1, MPFR_RNDN);
  (void)mpfr_ui_div(w->want, 1, w->a, MPFR_RNDN);
}
static void ref_silu(Work *w) {
  ref_sigmoid(w);
  (void)mpfr_mul(w->want, w->want, w->x, MPFR_RNDN);
}
static void ref_softplus(Work *w) {
  (void)mpfr_exp(w->a, w->x, MPFR_RNDN);
  (void)mpfr_log1p(w->want, w->a, MPFR_RNDN);
}
static void ref_gelu(Work *w) { /* x / 2 erfc(-x / sqrt 2) */
  (void)mpfr_sqrt_ui(w->a, 2, MPFR_RNDN);
  (void)mpfr_div(w->a, w->x, w->a, MPFR_RNDN);
  (void)mpfr_neg(w->a, w->a, MPFR_RNDN);
  (void)mpfr_erfc(w->a, w->a, MPFR_RNDN);
  (void)mpfr_mul(w->a, w->a, w->x, MPFR_RNDN);
  (void)mpfr_div_ui(w->want, w->a, 2, MPFR_RNDN);
}
static void ref_logaddexp(Work *w) { /* max + log1p(exp(-|x - y|)) */
  (void)mpfr_sub(w->a, w->x, w->y, MPFR_RNDN);
  (void)mpfr_abs(w->a, w->a, MPFR_RNDN);
  (void)mpfr_neg(w->a, w->a, MPFR_RNDN);
  (void)mpfr_exp(w->a, w->a, MPFR_RNDN);
  (void)mpfr_log1p(w->a, w->a, MPFR_RNDN);
  (void)mpfr_max(w->b, w->x, w->y, MPFR_RNDN);
  (void)mpfr_add(w->want, w->a, w->b, MPFR_RNDN);
}
/* sin(pi r) / (pi x), with the sign of (-1)^n: x = n + r, both exact. */
static void ref_sinc(Work *w) {
  (void)mpfr_rint_roundeven(w->a, w->x, MPFR_RNDN);
  (void)mpfr_sub(w->b, w->x, w->a, MPFR_RNDN);
  (void)mpfr_const_pi(w->c, MPFR_RNDN);
  (void)mpfr_mul(w->b, w->b, w->c, MPFR_RNDN);
  (void)mpfr_sin(w->b, w->b, MPFR_RNDN);
  (void)mpfr_mul(w->c, w->c, w->x, MPFR_RNDN);
  (void)mpfr_div(w->want, w->b, w->c, MPFR_RNDN);
  (void)mpfr_div_2ui(w->a, w->a, 1, MPFR_RNDN);
  if (!mpfr_integer_p(w->a)) (void)mpfr_neg(w->want, w->want, MPFR_RNDN);
}
/* y holds a result that is nearly right: two steps of Newton's iteration on erfc(|y|) = 1 - |x|. */
static void ref_erfinv(Work *w) {
  bool below = mpfr_signbit(w->x) != 0;
  (void)mpfr_abs(w->want, w->y, MPFR_RNDN);
  (void)mpfr_abs(w->c, w->x, MPFR_RNDN);
  bool middle = mpfr_cmp_d(w->c, 0.5) < 0;
  if (!middle) (void)mpfr_ui_sub(w->c, 1, w->c, MPFR_RNDN);
  for (int step = 0; step < 2; step++) {
    if (middle) (void)mpfr_erf(w->a, w->want, MPFR_RNDN);
    else (void)mpfr_erfc(w->a, w->want, MPFR_RNDN);
    (void)mpfr_sub(w->a, w->a, w->c, MPFR_RNDN);
    if (!middle) (void)mpfr_neg(w->a, w->a, MPFR_RNDN);
    (void)mpfr_sqr(w->b, w->want, MPFR_RNDN);
    (void)mpfr_exp(w->b, w->b, MPFR_RNDN);
    (void)mpfr_mul(w->a, w->a, w->b, MPFR_RNDN);
    (void)mpfr_sqrt(w->b, w->pi, MPFR_RNDN);
    (void)mpfr_mul(w->a, w->a, w->b, MPFR_RNDN);
    (void)mpfr_div_ui(w->a, w->a, 2, MPFR_RNDN);
    (void)mpfr_sub(w->want, w->want, w->a, MPFR_RNDN);
  }
  if (below) (void)mpfr_neg(w->want, w->want, MPFR_RNDN);
}

/* ---- where it is looked at ------------------------------------------------------------------- */

enum { EVEN = 1, BY_BITS = 2, BOTH_SIGNS = 4 }; /* even in value, or in the order of floats: as many in every octave */
typedef struct Range {
  const char *name;
  Reference ref;
  f64 lo, hi;
  u32 how;
  f64 ylo, yhi; /* of two arguments, spaced likewise */
} Range;

static const Range ranges[] = {
  {"exp", ref_exp, -1, 1, EVEN, 0, 0}, {"exp", ref_exp, -745.2, 709.8, EVEN, 0, 0},
  {"exp", ref_exp, 1e-30, 1, BY_BITS | BOTH_SIGNS, 0, 0},
  {"exp2", ref_exp2, -1, 1, EVEN, 0, 0}, {"exp2", ref_exp2, -1075, 1024, EVEN, 0, 0},
  {"expm1", ref_expm1, -2, 2, EVEN, 0, 0}, {"expm1", ref_expm1, -40, 709.8, EVEN, 0, 0},
  {"expm1", ref_expm1, 1e-300, 1, BY_BITS | BOTH_SIGNS, 0, 0},
  {"log", ref_log, 0.5, 2, EVEN, 0, 0}, {"log", ref_log, 0x1p-1074, 0x1.fffffffffffffp1023, BY_BITS, 0, 0},
  {"log", ref_log, 0.99, 1.01, EVEN, 0, 0},
  {"log2", ref_log2, 0.5, 2, EVEN, 0, 0}, {"log2", ref_log2, 0x1p-1074, 0x1.fffffffffffffp1023, BY_BITS, 0, 0},
  {"log2", ref_log2, 0.99, 1.01, EVEN, 0, 0},
  {"log10", ref_log10, 0.5, 2, EVEN, 0, 0}, {"log10", ref_log10, 0x1p-1074, 0x1.fffffffffffffp1023, BY_BITS, 0, 0},
  {"log10", ref_log10, 0.99, 1.01, EVEN, 0, 0},
  {"log1p", ref_log1p, -0.99, 2, EVEN, 0, 0}, {"log1p", ref_log1p, 1e-300, 1e308, BY_BITS, 0, 0},
  {"log1p", ref_log1p, 1e-20, 0.999, BY_BITS | BOTH_SIGNS, 0, 0},
  {"sin", ref_sin, -10, 10, EVEN, 0, 0}, {"sin", ref_sin, 1e-300, 1e308, BY_BITS | BOTH_SIGNS, 0, 0},
  {"sin", ref_sin, 1, 1e13, BY_BITS | BOTH_SIGNS, 0, 0},
  {"cos", ref_cos, -10, 10, EVEN, 0, 0}, {"cos", ref_cos, 1e-300, 1e308, BY_BITS | BOTH_SIGNS, 0, 0},
  {"cos", ref_cos, 1, 1e13, BY_BITS | BOTH_SIGNS, 0, 0},
  {"tan", ref_tan, -10, 10, EVEN, 0, 0}, {"tan", ref_tan, 1e-300, 1e308, BY_BITS | BOTH_SIGNS, 0, 0},
  {"tan", ref_tan, 1, 1e13, BY_BITS | BOTH_SIGNS, 0, 0},
  {"asin", ref_asin, -1, 1, EVEN, 0, 0}, {"asin", ref_asin, 1e-300, 1, BY_BITS | BOTH_SIGNS, 0, 0},
  {"acos", ref_acos, -1, 1, EVEN, 0, 0}, {"acos", ref_acos, 1e-300, 1, BY_BITS | BOTH_SIGNS, 0, 0},
  {"acos", ref_acos, 0.999, 1, EVEN, 0, 0},
  {"atan", ref_atan, -3, 3, EVEN, 0, 0}, {"atan", ref_atan, 1e-300, 1e308, BY_BITS | BOTH_SIGNS, 0, 0},
  {"sinh", ref_sinh, -3, 3, EVEN, 0, 0}, {"sinh", ref_sinh, -710.5, 710.5, EVEN, 0, 0},
  {"sinh", ref_sinh, 1e-300, 1, BY_BITS | BOTH_SIGNS, 0, 0},
  {"cosh", ref_cosh, -3, 3, EVEN, 0, 0}, {"cosh", ref_cosh, -710.5, 710.5, EVEN, 0, 0},
  {"tanh", ref_tanh, -3, 3, EVEN, 0, 0}, {"tanh", ref_tanh, 1e-300, 30, BY_BITS | BOTH_SIGNS, 0, 0},
  {"asinh", ref_asinh, -3, 3, EVEN, 0, 0}, {"asinh", ref_asinh, 1e-300, 1e308, BY_BITS | BOTH_SIGNS, 0, 0},
  {"acosh", ref_acosh, 1, 3, EVEN, 0, 0}, {"acosh", ref_acosh, 1, 1e308, BY_BITS, 0, 0},
  {"acosh", ref_acosh, 1, 1.001, BY_BITS, 0, 0},
  {"atanh", ref_atanh, -1, 1, EVEN, 0, 0}, {"atanh", ref_atanh, 1e-300, 1, BY_BITS | BOTH_SIGNS, 0, 0},
  {"cbrt", ref_cbrt, -10, 10, EVEN, 0, 0}, {"cbrt", ref_cbrt, 0x1p-1074, 1e308, BY_BITS | BOTH_SIGNS, 0, 0},
  {"erf", ref_erf, -3, 3, EVEN, 0, 0}, {"erf", ref_erf, 1e-300, 7, BY_BITS | BOTH_SIGNS, 0, 0},
  {"erfc", ref_erfc, -3, 3, EVEN, 0, 0}, {"erfc", ref_erfc, 0.4, 27.3, EVEN, 0, 0},
  {"sinc", ref_sinc, -6, 6, EVEN, 0, 0}, {"sinc", ref_sinc, 1e-300, 1e15, BY_BITS | BOTH_SIGNS, 0, 0},
  {"erfinv", ref_erfinv, -1, 1, EVEN, 0, 0}, {"erfinv", ref_erfinv, 0.99, 1, EVEN, 0, 0},
  {"erfinv", ref_erfinv, 1e-300, 0.5, BY_BITS | BOTH_SIGNS, 0, 0},
  {"gamma", ref_gamma, -5, 5, EVEN, 0, 0}, {"gamma", ref_gamma, 3, 171.7, EVEN, 0, 0},
  {"gamma", ref_gamma, -170, 0, EVEN, 0, 0},
  {"lgamma", ref_lgamma, 0, 4, EVEN, 0, 0}, {"lgamma", ref_lgamma, 1, 1e300, BY_BITS, 0, 0},
  {"digamma", ref_digamma, 0, 4, EVEN, 0, 0}, {"digamma", ref_digamma, 1, 1e10, BY_BITS, 0, 0},
  {"sigmoid", ref_sigmoid, -40, 40, EVEN, 0, 0}, {"sigmoid", ref_sigmoid, -745, -700, EVEN, 0, 0},
  {"silu", ref_silu, -80, 80, EVEN, 0, 0}, {"silu", ref_silu, 1e-30, 3, BY_BITS | BOTH_SIGNS, 0, 0},
  {"softplus", ref_softplus, -40, 40, EVEN, 0, 0}, {"softplus", ref_softplus, -745, -700, EVEN, 0, 0},
  {"gelu", ref_gelu, -12, 12, EVEN, 0, 0}, {"gelu", ref_gelu, 1e-30, 3, BY_BITS | BOTH_SIGNS, 0, 0},
  {"pow", ref_pow, 0, 10, EVEN, -10, 10}, {"pow", ref_pow, 0.9, 1.1, EVEN, -6000, 6000},
  {"pow", ref_pow, 1e-300, 1e300, BY_BITS, 1e-3, 1},
  {"atan2", ref_atan2, -1, 1, EVEN, -1, 1}, {"atan2", ref_atan2, 1e-300, 1e300, BY_BITS | BOTH_SIGNS, 1e-300, 1e300},
  {"hypot", ref_hypot, -10, 10, EVEN, -10, 10}, {"hypot", ref_hypot, 1e-320, 1e307, BY_BITS, 1e-320, 1e307},
  {"hypot", ref_hypot, 1e-320, 1e-300, BY_BITS, 1e-320, 1e-300},
  {"logaddexp", ref_logaddexp, 0, 50, EVEN, 0, 50},
};

/* Arguments that are hard: closest to multiples of pi/2 (Muller, Kahan), at the ends of ranges, results halfway between
 * two floats. */
static const struct {
  const char *name;
  f64 x;
} hard[] = {
  {"sin", 0x1.6ac5b262ca1ffp+849}, {"cos", 0x1.6ac5b262ca1ffp+849}, {"tan", 0x1.6ac5b262ca1ffp+849},
  {"sin", 0x1.921fb54442d18p+1}, {"cos", 0x1.921fb54442d18p+0},
  {"tan", 0x1.921fb54442d18p+0}, {"tan", 0x1.921fb54442d18p+1}, {"sin", 0x1.fffffffffffffp1023},
  {"cos", 0x1.fffffffffffffp1023}, {"tan", 0x1.fffffffffffffp1023},
  {"sin", 0x1.921fb54442d18p+40}, {"cos", 0x1.921fb54442d18p+41}, {"sin", 1e22}, {"cos", 1e22}, {"tan", 1e22},
  {"sin", 0x1.1p+20}, {"exp", 0x1.62e42fefa39efp+9},
  {"exp", -0x1.6232bdd7abcd2p+9}, {"exp", -0x1.74385446d71c3p+9}, {"exp", -0x1.74910d52d3051p+9},
  {"exp", 0x1.62e42fefa39efp-1}, {"exp", -0x1.62e42fefa39efp-1}, {"exp", 0x1p-53}, {"exp", -0x1p-54},
  {"exp", 0x1.9e9cbbfd6080bp-31}, {"exp2", 0x1.fffffffffffffp9}, {"exp2", -0x1.0cbffffffffffp+10}, {"exp2", 0.5},
  {"exp2", -0.5}, {"expm1", 0x1.62e42fefa39efp+9}, {"expm1", 0x1.62e42fefa39efp-1},
  {"expm1", -0x1.2b708872320e2p+5}, {"log", 0x1.fffffffffffffp-1}, {"log", 0x1.0000000000001p0},
  {"log", 0x1.6a09e667f3bcdp0}, {"log", 0x1.6a09e667f3bcdp-1}, {"log", 0x1p-1074},
  {"log", 0x1.bc8b9ab6bde1ap0}, {"log2", 0x1.fffffffffffffp-1}, {"log2", 0x1.0000000000001p0},
  {"log2", 0x1.6a09e667f3bcdp0}, {"log10", 0x1.fffffffffffffp-1}, {"log10", 0x1.0000000000001p0},
  {"log1p", -0x1.fffffffffffffp-1}, {"log1p", 0x1p-53}, {"log1p", 0x1.a827999fcef34p-2},
  {"log1p", -0x1.2bec333018866p-2}, {"asin", 0x1.fffffffffffffp-1}, {"asin", 0.5}, {"acos", 0x1.fffffffffffffp-1},
  {"acos", -0x1.fffffffffffffp-1}, {"acos", 0x1p-60}, {"acos", 0.5}, {"atan", 0x1.a827999fcef34p-2},
  {"atan", 0x1.3504f333f9de6p1}, {"atan", 1}, {"sinh", 0x1.633ce8fb9f87dp+9}, {"sinh", 1},
  {"cosh", 0x1.633ce8fb9f87dp+9},
  {"tanh", 0x1.30fc1931f09cap+4}, {"acosh", 0x1.0000000000001p0}, {"acosh", 0x1.fffffffffffffp1023},
  {"asinh", 0x1.fffffffffffffp1023}, {"atanh", 0x1.fffffffffffffp-1}, {"cbrt", 0x1p-1074},
  {"cbrt", 0x1.fffffffffffffp1023},
  {"cbrt", 0x1.9b78223aa307cp+1}, {"erf", 0x1.7afb48dc96626p+2}, {"erf", 0x1p-1022}, {"erfc", 0x1.a8b12fc6e4891p+4},
  {"erfc", 0x1.b39dc41e48bfcp+4}, {"erfc", -0x1.7744f8f74e94bp+2},
  {"erfinv", 0x1.fffffffffffffp-1}, {"erfinv", 0.5}, {"gamma", 0x1.573fae561f647p+7}, {"gamma", 0x1.0000000000001p0},
  {"gamma", 0x1.fffffffffffffp0}, {"gamma", -0x1.0000000000001p0}, {"gamma", -0x1.fffffffffffffp0},
  {"gamma", 0x1.762d86356be3fp0}, {"gamma", 0x1.0000000000001p-1022}, {"lgamma", 0x1.0000000000001p0},
  {"lgamma", 0x1.fffffffffffffp-1}, {"lgamma", 0x1.fffffffffffffp0}, {"lgamma", 0x1.0000000000001p1},
  {"lgamma", 0x1p-1074}, {"sigmoid", 0x1.2b708872320e2p+5}, {"sigmoid", -0x1.6232bdd7abcd2p+9},
  {"softplus", -0x1.74385446d71c3p+9}, {"softplus", 0x1.2b708872320e2p+5},
};

/* ---- drawing --------------------------------------------------------------------------------- */

static u64 rnd(u64 *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return *seed * 2685821657736338717u;
}
static f64 unit(u64 *seed) { return (f64)(rnd(seed) >> 11) * 0x1p-53; }
static f64 as_float(u64 b) {
  f64 v;
  memcpy(&v, &b, 8);
  return v;
}
static u64 bits_of(f64 v) {
  u64 b;
  memcpy(&b, &v, 8);
  return b;
}
static f64 draw(u64 *seed, f64 lo, f64 hi, u32 how) {
  if (how & EVEN) return lo + (hi - lo) * unit(seed);
  u64 from = bits_of(lo), to = bits_of(hi);
  f64 v = as_float(from + rnd(seed) % (to - from + 1));
  return how & BOTH_SIGNS && rnd(seed) >> 63 ? -v : v;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static f64 ulps(Work *w, f64 got) {
  if (mpfr_nan_p(w->want) || got != got) return (mpfr_nan_p(w->want) != 0) == (got != got) ? 0 : INFINITY;
  if (mpfr_inf_p(w->want)) return isinf(got) && (got < 0) == (mpfr_sgn(w->want) < 0) ? 0 : INFINITY;
  i64 e = mpfr_zero_p(w->want) ? -1074 : (i64)mpfr_get_exp(w->want) - 53;
  if (e < -1074) e = -1074;
  if (isinf(got)) { /* as far as the number that would have come next */
    if (mpfr_get_exp(w->want) > 1024) return 0;
    (void)mpfr_set_ui_2exp(w->a, 1, 1024, MPFR_RNDN);
    (void)mpfr_abs(w->b, w->want, MPFR_RNDN);
    (void)mpfr_sub(w->a, w->a, w->b, MPFR_RNDN);
  } else {
    (void)mpfr_sub_d(w->a, w->want, got, MPFR_RNDN);
  }
  (void)mpfr_div_2si(w->a, w->a, (long)e, MPFR_RNDN);
  return fabs(mpfr_get_d(w->a, MPFR_RNDN));
}

static void measure(Work *w, const Function *f, Reference ref, const f64 *x, const f64 *y, i64 n, Worst *worst) {
  f64 got[BLOCK];
  (void)f->wide(got, x, y, n);
  f64 least = strcmp(f->name, "silu") == 0 || strcmp(f->name, "gelu") == 0 ? 1e-300 : 0; /* absolute below */
  for (i64 i = 0; i < n; i++) {
    (void)mpfr_set_d(w->x, x[i], MPFR_RNDN);
    (void)mpfr_set_d(w->y, f->arity == 2 ? y[i] : got[i], MPFR_RNDN);
    if (ref == ref_erfinv && !(fabs(x[i]) < 1 && x[i] != 0)) continue;
    if (fabs(got[i]) < least) continue;
    ref(w);
    f64 d = ulps(w, got[i]);
    if (d > worst->ulp) *worst = (Worst){d, x[i], f->arity == 2 ? y[i] : 0, false};
  }
}

/* Samples of a range, then of ever smaller ones around the worst so far. */
static void look(Work *w, const Function *f, const Range *r, u32 count, Worst *worst) {
  f64 x[BLOCK], y[BLOCK], lo = r->lo, hi = r->hi;
  u64 seed = 88172645463325252u;
  u32 how = r->how;
  Worst here = {0};
  for (u32 round = 0; round < ROUNDS; round++) {
    for (u32 done = 0; done < (round ? count / 4 : count); done += BLOCK) {
      for (u32 i = 0; i < BLOCK; i++) {
        x[i] = draw(&seed, lo, hi, how);
        y[i] = f->arity == 2 ? draw(&seed, r->ylo, r->yhi, r->how) : x[i];
      }
      measure(w, f, r->ref, x, y, BLOCK, &here);
    }
    f64 near = fabs(here.x), part = ldexp(near, -4 - 4 * (int)round); /* the next: around it, by value */
    lo = here.x - part > r->lo || r->how & BOTH_SIGNS ? here.x - part : r->lo;
    hi = here.x + part < r->hi ? here.x + part : r->hi;
    how = EVEN;
    if (!(part > 0) || !(lo < hi)) break;
  }
  if (here.ulp > worst->ulp) *worst = here;
}

bool precise_is_there(void) { return true; }
void precise_end(void) { mpfr_free_cache(); }

Worst precise_wide(const Function *f, u32 count) {
  Work w;
  Worst worst = {.skipped = true};
  mpfr_inits2(BITS, w.x, w.y, w.want, w.a, w.b, w.c, w.pi, (mpfr_ptr)0);
  (void)mpfr_const_pi(w.pi, MPFR_RNDN);
  Reference ref = NULL;
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    if (strcmp(ranges[i].name, f->name) != 0) continue;
    if (worst.skipped) worst = (Worst){0};
    ref = ranges[i].ref;
    look(&w, f, &ranges[i], count, &worst);
  }
  for (size_t i = 0; ref && i < sizeof hard / sizeof *hard; i++) { /* and their neighbours */
    if (strcmp(hard[i].name, f->name) != 0) continue;
    f64 x[16];
    u32 n = 0;
    for (i64 k = -8; k < 8; k++) {
      u64 b = bits_of(hard[i].x) + (u64)k;
      if (isfinite(as_float(b)) && (b >> 63) == (bits_of(hard[i].x) >> 63)) x[n++] = as_float(b);
    }
    measure(&w, f, ref, x, x, n, &worst);
  }
  mpfr_clears(w.x, w.y, w.want, w.a, w.b, w.c, w.pi, (mpfr_ptr)0);
  return worst;
}

#else

bool precise_is_there(void) { return false; }
void precise_end(void) {}
Worst precise_wide(const Function *f, u32 count) {
  (void)f;
  (void)count;
  return (Worst){.skipped = true};
}

#endif
