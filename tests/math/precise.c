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

#define REFERENCE(name, ...) \
  static void ref_##name(Work *w) { __VA_ARGS__ }
#include "tests/math/functions.def"

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
#define RANGE(name, lo, hi, how, ylo, yhi) {#name, ref_##name, lo, hi, how, ylo, yhi},
#include "tests/math/functions.def"
};

static const struct {
  const char *name;
  f64 x;
} hard[] = {
#define HARD(name, x) {#name, x},
#include "tests/math/functions.def"
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
