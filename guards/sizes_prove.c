/* sizes_prove.c — ranges of size expressions, proofs of relations, what is assumed (see sizes.h). */
#include "guards/sizes_inner.h"

#include <string.h>

typedef __int128 wide;
#define BIG ((wide)INT64_MAX + 2) /* beyond i64; BIG * 2^63 still fits the wide type */

#define FAR ((wide)1 << 100)

typedef struct Bounds { /* of the true value; lo == -BIG, hi == BIG: none. fits: see SizeRange */
  wide lo, hi;
  bool fits;
} Bounds;

static const Bounds unknown = {-BIG, BIG, false};

static wide clamp(wide v) { return v > BIG ? BIG : v < -BIG ? -BIG : v; }
static bool in_i64(wide lo, wide hi) { return lo >= INT64_MIN && hi <= INT64_MAX; }
static wide floor_wide(wide a, wide b) {
  wide q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

static Bounds times(Bounds a, Bounds b) {
  wide v[4] = {clamp(a.lo * b.lo), clamp(a.lo * b.hi), clamp(a.hi * b.lo), clamp(a.hi * b.hi)};
  Bounds r = {v[0], v[0], a.fits && b.fits};
  for (u32 i = 1; i < 4; i++) {
    if (v[i] < r.lo) r.lo = v[i];
    if (v[i] > r.hi) r.hi = v[i];
  }
  r.fits = r.fits && in_i64(r.lo, r.hi);
  return r;
}

/* Recursion is bounded by SIZE_MAX_DEPTH. */
static Bounds bounds(const SizePool *p, Dim d) {
  i64 c;
  if (d == DIM_NONE) return unknown;
  if (size_is_const(p, d, &c)) return (Bounds){c, c, true};
  const SizeNode *x = node_of(p, d);
  const SizeTerm *t = &p->terms.data[x->first];
  switch (x->kind) {
    case SK_sym: {
      const SizeSym *s = &p->syms.data[x->value];
      return (Bounds){s->lo, s->hi, true};
    }
    case SK_mul: {
      Bounds r = bounds(p, t[0].of);
      for (u32 i = 1; i < x->count; i++) {
        bool square = x->count == 2 && t[0].of == t[1].of;
        r = times(r, bounds(p, t[i].of));
        if (square && r.lo < 0) r.lo = 0;
      }
      return r;
    }
    case SK_add: {
      Bounds r = {x->value, x->value, true};
      bool no_lo = false, no_hi = false;
      for (u32 i = 0; i < x->count; i++) {
        Bounds b = bounds(p, t[i].of);
        bool up = t[i].coef > 0;
        wide u = (up ? b.lo : b.hi) * t[i].coef, v = (up ? b.hi : b.lo) * t[i].coef;
        no_lo |= (up ? b.lo == -BIG : b.hi == BIG) || u < -FAR;
        no_hi |= (up ? b.hi == BIG : b.lo == -BIG) || v > FAR;
        r.lo += u > FAR ? FAR : u < -FAR ? -FAR : u;
        r.hi += v > FAR ? FAR : v < -FAR ? -FAR : v;
        r.fits = r.fits && b.fits;
      }
      r.lo = no_lo ? -BIG : clamp(r.lo);
      r.hi = no_hi ? BIG : clamp(r.hi);
      r.fits = r.fits && in_i64(r.lo, r.hi);
      return r;
    }
    case SK_floordiv: {
      Bounds a = bounds(p, t[0].of), b = bounds(p, t[1].of);
      if (!a.fits || !b.fits || (b.lo <= 0 && b.hi >= 0)) return unknown;
      wide v[4] = {floor_wide(a.lo, b.lo), floor_wide(a.lo, b.hi), floor_wide(a.hi, b.lo), floor_wide(a.hi, b.hi)};
      Bounds r = {v[0], v[0], true};
      for (u32 i = 1; i < 4; i++) {
        if (v[i] < r.lo) r.lo = v[i];
        if (v[i] > r.hi) r.hi = v[i];
      }
      r.fits = in_i64(r.lo, r.hi);
      return r;
    }
    case SK_mod: {
      Bounds a = bounds(p, t[0].of), b = bounds(p, t[1].of);
      if (!a.fits || !b.fits || (b.lo <= 0 && b.hi >= 0)) return unknown;
      Bounds r = {b.lo > 0 ? 0 : b.lo + 1, b.lo > 0 ? b.hi - 1 : 0, true};
      if (b.lo > 0 && a.lo >= 0 && a.hi < r.hi) r.hi = a.hi;
      return r;
    }
    default: { /* min, max */
      Bounds r = bounds(p, t[0].of);
      for (u32 i = 1; i < x->count; i++) {
        Bounds b = bounds(p, t[i].of);
        bool less = x->kind == SK_min;
        if (less ? b.lo < r.lo : b.lo > r.lo) r.lo = b.lo;
        if (less ? b.hi < r.hi : b.hi > r.hi) r.hi = b.hi;
        r.fits = r.fits && b.fits;
      }
      return r;
    }
  }
}

SizeRange size_range(const SizePool *p, Dim d) {
  Bounds b = bounds(p, d);
  return (SizeRange){b.lo < INT64_MIN ? INT64_MIN : (i64)b.lo, b.hi > INT64_MAX ? INT64_MAX : (i64)b.hi, b.fits};
}

const char *rel_text(SizeRel rel) {
  static const char *const text[] = {"==", "!=", "<=", "<"};
  return text[rel];
}

/* ---- proofs --------------------------------------------------------------------------------------- */

/* Difference of two resolved expressions. */
static Dim difference(SizePool *p, Dim a, Dim b) { return size_sub(p, a, b); }

/* d == sign * e + k for a constant k? Looks at the terms, makes no expression. */
static bool offset(const SizePool *p, Dim d, Dim e, i64 sign, wide *k) {
  SizePoly a, b;
  poly_of(p, d, &a);
  poly_of(p, e, &b);
  if (a.n != b.n) return false;
  for (u32 i = 0; i < a.n; i++)
    if (a.t[i].of != b.t[i].of || (wide)a.t[i].coef != (wide)b.t[i].coef * sign) return false;
  *k = (wide)a.c - (wide)b.c * sign;
  return true;
}

/* d without the factor that all of it has: 0 where d is. */
static Dim primitive(SizePool *p, Dim d) {
  SizePoly q;
  poly_of(p, d, &q);
  u64 g = poly_gcd(&q);
  if (g <= 1 || g > INT64_MAX || q.c % (i64)g != 0) return d;
  for (u32 i = 0; i < q.n; i++) q.t[i].coef /= (i64)g;
  q.c /= (i64)g;
  Dim made = poly_make(p, &q);
  return made == DIM_NONE ? d : made;
}

/* diff rel 0 is known: what that says of d, where it differs from +-diff by a constant. */
static void narrow_bounds(const SizePool *p, Dim d, u32 rel, Dim diff, Bounds *r) {
  wide k, hi = rel == REL_lt ? -1 : 0;
  if (offset(p, d, diff, 1, &k)) {
    if (hi + k < r->hi) r->hi = hi + k;
    if (rel == REL_eq && k > r->lo) r->lo = k;
  } else if (offset(p, d, diff, -1, &k)) {
    if (k - hi > r->lo) r->lo = k - hi;
    if (rel == REL_eq && k < r->hi) r->hi = k;
  }
}

/* Narrows bounds of d by what is known of expressions that differ from +-d by a constant. */
static Bounds known(SizePool *p, Dim d) {
  Bounds r = bounds(p, d);
  for (u32 i = 0; i < p->facts.count; i++) {
    SizeFact f = p->facts.data[i];
    Dim diff = size_resolve(p, f.diff);
    if (f.rel == REL_ne || diff == DIM_NONE) continue;
    Dim least = primitive(p, diff);
    narrow_bounds(p, d, f.rel, diff, &r);
    if (least != diff) narrow_bounds(p, d, f.rel, least, &r);
  }
  return r;
}

bool size_is_one_number(SizePool *p, Dim d, i64 *out) {
  Bounds b = known(p, d);
  *out = b.fits && b.lo == b.hi ? (i64)b.lo : 0;
  return b.fits && b.lo == b.hi;
}

/* By what is known of d == 0; `parts`: of d / g == 0, for a factor g of all of it. */
static SizeTruth prove_by_facts(SizePool *p, Dim d, bool parts) {
  for (u32 i = 0; i < p->facts.count; i++) {
    SizeFact f = p->facts.data[i];
    Dim diff = size_resolve(p, f.diff);
    if (diff == DIM_NONE) continue;
    wide k;
    if (parts) diff = primitive(p, diff);
    if (offset(p, d, diff, 1, &k) || offset(p, d, diff, -1, &k)) {
      if (f.rel == REL_eq) return k == 0 ? TRUTH_always : TRUTH_never;
      if (f.rel != REL_le && k == 0) return TRUTH_never;
    }
  }
  return TRUTH_unknown;
}

static SizeTruth prove_by_bounds(SizePool *p, Dim d) {
  Bounds b = known(p, d);
  if (!b.fits) return TRUTH_unknown;
  if (b.lo == 0 && b.hi == 0) return TRUTH_always;
  if (b.lo > 0 || b.hi < 0) return TRUTH_never;
  SizePoly q;
  poly_of(p, d, &q);
  u64 g = poly_gcd(&q);
  return g > 1 && g <= INT64_MAX && q.c % (i64)g != 0 ? TRUTH_never : TRUTH_unknown;
}

/* An integer of the program may wrap: twice another number can be twice this one. */
static SizeTruth prove_zero(SizePool *p, Dim d) {
  i64 c;
  if (size_is_const(p, d, &c)) return c == 0 ? TRUTH_always : TRUTH_never;
  Dim least = primitive(p, d);
  SizeTruth t = least == d ? TRUTH_unknown : prove_by_facts(p, d, false);
  if (t != TRUTH_unknown) return t;
  t = prove_by_facts(p, least, true);
  if (t == TRUTH_unknown) t = prove_by_bounds(p, least);
  if (t == TRUTH_never && least != d && !bounds(p, d).fits) t = TRUTH_unknown;
  return t == TRUTH_unknown && least != d ? prove_by_bounds(p, d) : t;
}

static SizeTruth prove(SizePool *p, SizeRel rel, Dim a, Dim b) {
  i64 x, y;
  a = size_resolve(p, a);
  b = size_resolve(p, b);
  if (a == DIM_NONE || b == DIM_NONE) return TRUTH_unknown;
  if (size_is_const(p, a, &x) && size_is_const(p, b, &y)) return rel_holds(rel, x, y) ? TRUTH_always : TRUTH_never;
  if (a == b && rel != REL_le && rel != REL_lt) return rel == REL_eq ? TRUTH_always : TRUTH_never;
  Dim d = difference(p, a, b);
  if (d == DIM_NONE) return TRUTH_unknown;
  if (rel == REL_eq || rel == REL_ne) {
    SizeTruth t = prove_zero(p, d);
    if (rel == REL_eq || t == TRUTH_unknown) return t;
    return t == TRUTH_always ? TRUTH_never : TRUTH_always;
  }
  if (!bounds(p, a).fits || !bounds(p, b).fits) return TRUTH_unknown;
  Dim least = primitive(p, d);
  Bounds k = known(p, d), l = least == d ? k : known(p, least);
  wide limit = rel == REL_le ? 0 : -1;
  return k.hi <= limit || l.hi <= limit ? TRUTH_always : k.lo > limit || l.lo > limit ? TRUTH_never : TRUTH_unknown;
}

/* ---- proofs by cases ------------------------------------------------------------------------------ */

/* The bounds of slices are minima and maxima inside one another, of sums that cancel only where it is known which
 * alternative counts: `-min(1, n) + min(n, max(0, n - 1))` is n - 2 or 0. So each case is looked at by itself. */

/* Some minimum or maximum in d whose alternatives hold none. */
static bool innermost_choice(const SizePool *p, Dim d, Dim *x, Dim *y) {
  if (d >= 0 || d == DIM_NONE) return false;
  const SizeNode *n = node_of(p, d);
  const SizeTerm *t = &p->terms.data[n->first];
  for (u32 i = 0; i < n->count; i++)
    if (innermost_choice(p, t[i].of, x, y)) return true;
  if (n->kind != SK_min && n->kind != SK_max) return false;
  *x = t[0].of;
  *y = t[1].of;
  return true;
}

/* May all that is known be so? Ranges that became narrower may rule out what is known of expressions. */
static bool may_be(SizePool *p) {
  for (u32 i = 0; i < p->facts.count; i++) {
    SizeFact f = p->facts.data[i];
    Bounds b = bounds(p, size_resolve(p, f.diff));
    if (!b.fits) continue;
    if ((f.rel != REL_ne && b.lo > (f.rel == REL_lt ? -1 : 0)) || (f.rel == REL_eq && b.hi < 0) ||
        (f.rel == REL_ne && b.lo == 0 && b.hi == 0))
      return false;
  }
  return true;
}

typedef struct CaseProof {
  u32 left;       /* cases that may still be looked at */
  bool any;       /* some case can be, */
  SizeTruth said; /* and so it was in each of them */
  bool by_facts;  /* parts that facts leave one value for become numbers */
} CaseProof;

/* False: some case stays unknown, or they differ. */
static bool prove_cases(SizePool *p, Dim d, CaseProof *c) {
  Dim x, y;
  if (d == DIM_NONE || !c->left--) return false;
  SizeTruth t = prove_zero(p, d);
  if (t != TRUTH_unknown) {
    if (c->any && c->said != t) return false;
    c->any = true;
    c->said = t;
    return true;
  }
  if (!innermost_choice(p, d, &x, &y) || !bounds(p, x).fits || !bounds(p, y).fits) return false;
  bool ok = true;
  for (u32 second = 0; second < 2 && ok; second++) {
    SizeMark m = size_mark(p);
    if ((second ? size_assume(p, REL_lt, y, x) : size_assume(p, REL_le, x, y)) && may_be(p)) {
      Dim now = c->by_facts ? size_renew_by_facts(p, d) : size_renew(p, d);
      ok = now != d && prove_cases(p, now, c);
    }
    size_rollback(p, m);
    ok = ok && !p->failed;
  }
  return ok;
}

/* ---- what was asked before ------------------------------------------------------------------------ */

static struct SizeAnswer *answer_to(const SizePool *p, Dim a, Dim b) {
  u64 h = ((u64)a * 0x9E3779B97F4A7C15u + (u64)b) * 0x9E3779B97F4A7C15u;
  return &p->memo->answers[h >> 58];
}

/* False: it was not asked while as much was known. */
static bool remembered(const SizePool *p, Dim a, Dim b, SizeTruth *equal) {
  if (!p->memo) return false;
  const struct SizeAnswer *x = answer_to(p, a, b);
  *equal = (SizeTruth)x->equal;
  return x->a == a && x->b == b && x->known == p->known;
}

static void remember(SizePool *p, Dim a, Dim b, SizeTruth equal) {
  _Static_assert(SIZE_MEMO == 1 << 6, "the upper bits of a hash");
  if (!p->memo && !(p->memo = mem_alloc_zero(p->alloc, sizeof *p->memo))) return;
  *answer_to(p, a, b) = (struct SizeAnswer){a, b, p->known, (u8)equal};
  if (a < p->memo->newest) p->memo->newest = a;
}

void size_forget(SizePool *p, u32 nodes) {
  if (!p->memo || -p->memo->newest < (Dim)nodes) return;
  p->memo->newest = 0;
  for (u32 i = 0; i < SIZE_MEMO; i++) {
    struct SizeAnswer *x = &p->memo->answers[i];
    if (-x->a >= (Dim)nodes) x->a = x->b = 0;
    else if (x->a < p->memo->newest) p->memo->newest = x->a;
  }
}

static void know_more(SizePool *p) { p->known = ++p->knowings; }

static SizeTruth prove_by_cases(SizePool *p, Dim a, Dim b);

/* Facts may hold min and max, whose own making asks for proofs: what nests deeper stays unknown. Only equality is
 * looked at twice and by cases: the makers ask for order alone, so that does not come here again. */
SizeTruth size_prove(SizePool *p, SizeRel rel, Dim a, Dim b) {
  enum { PROOFS_NESTED = 3 };
  SizeTruth t;
  if (p->proving >= PROOFS_NESTED) return TRUTH_unknown;
  bool whole = !p->proving && (rel == REL_eq || rel == REL_ne) && a != b && a != DIM_NONE && b != DIM_NONE &&
               (a < 0 || b < 0);
  if (!whole) {
    p->proving++;
    t = prove(p, rel, a, b);
    p->proving--;
    return t;
  }
  Dim x = a < b ? a : b, y = a < b ? b : a;
  if (!remembered(p, x, y, &t)) {
    t = prove_by_cases(p, a, b);
    p->proofs++;
    if (!p->failed) remember(p, x, y, t);
  }
  return rel == REL_eq || t == TRUTH_unknown ? t : t == TRUTH_always ? TRUTH_never : TRUTH_always;
}

/* a == b? */
static SizeTruth prove_by_cases(SizePool *p, Dim a, Dim b) {
  enum { CASES = 48 };
  p->proving++;
  SizeTruth t = prove(p, REL_eq, a, b);
  p->proving--;
  if (t != TRUTH_unknown) return t;
  /* They may be of different age. What is known of sizes may stand in the one form or in the other. */
  Dim was_x = a, was_y = b;
  for (u32 by_facts = 0; by_facts < 2 && t == TRUTH_unknown; by_facts++) {
    Dim x = by_facts ? size_renew_by_facts(p, a) : size_renew(p, a);
    Dim y = by_facts ? size_renew_by_facts(p, b) : size_renew(p, b);
    bool changed = x != was_x || y != was_y;
    if (x == DIM_NONE || y == DIM_NONE || (by_facts && !changed)) break;
    was_x = x, was_y = y;
    p->proving++;
    if (changed) t = prove(p, REL_eq, x, y);
    CaseProof cases = {.left = CASES, .by_facts = by_facts};
    if (t == TRUTH_unknown && prove_cases(p, difference(p, x, y), &cases) && cases.any) t = cases.said;
    p->proving--;
  }
  return t;
}

/* ---- assuming ------------------------------------------------------------------------------------- */

static bool change_sym(SizePool *p, u32 sym, i64 lo, i64 hi, Dim same_as) {
  SizeSym *s = &p->syms.data[sym];
  if (s->lo == lo && s->hi == hi && s->same_as == same_as) return true;
  if (!vec_push(p->alloc, &p->trail, (SizeUndo){sym, s->lo, s->hi, s->same_as})) {
    p->failed = true;
    return false;
  }
  s = &p->syms.data[sym];
  if (s->same_as == DIM_NONE && same_as != DIM_NONE) p->equated++;
  if (s->same_as != same_as) p->epoch++;
  s->lo = lo;
  s->hi = hi;
  s->same_as = same_as;
  know_more(p);
  return true;
}

static bool add_fact(SizePool *p, SizeRel rel, Dim diff) {
  know_more(p);
  if (vec_push(p->alloc, &p->facts, (SizeFact){(u8)rel, diff})) return true;
  p->failed = true;
  return false;
}

static bool mentions(const SizePool *p, Dim d, u32 sym) {
  if (d >= 0) return false;
  const SizeNode *x = node_of(p, d);
  if (x->kind == SK_sym) return x->value == (i64)sym;
  for (u32 i = 0; i < x->count; i++)
    if (mentions(p, p->terms.data[x->first + i].of, sym)) return true;
  return false;
}

/* sym := d everywhere. Earlier replacements that mention sym are brought up to date, so that no replacement
 * mentions a replaced symbol. False and nothing changed when an expression got too large. */
static bool replace_sym(SizePool *p, u32 sym, Dim d) {
  SizeMark m = size_mark(p);
  SizeSym s = p->syms.data[sym];
  if (!change_sym(p, sym, s.lo, s.hi, d)) return false;
  for (u32 i = 0; i < p->syms.count; i++) {
    SizeSym *o = &p->syms.data[i];
    if (i == sym || o->same_as == DIM_NONE || !mentions(p, o->same_as, sym)) continue;
    Dim now = size_resolve(p, o->same_as);
    o = &p->syms.data[i];
    if (now == DIM_NONE || !change_sym(p, i, o->lo, o->hi, now)) {
      bool failed = p->failed;
      size_rollback(p, m);
      p->failed = failed;
      return false;
    }
  }
  return true;
}

static bool assume_range(SizePool *p, Dim a, Dim b);
static bool narrow_facts(SizePool *p);

/* diff == 0 is known now. Where that can be for one of two alternatives alone, which one it is becomes known as well:
 * max(0, n - min(1, n)) is n for n < 1 alone. Of sizes that are there on entry a run-time check tells nothing. */
static bool one_case(SizePool *p, Dim diff) {
  Dim x, y;
  if (!innermost_choice(p, diff, &x, &y) || !bounds(p, x).fits || !bounds(p, y).fits) return true;
  if (size_is_unbacked(p, diff) && !size_is_unbacked(p, x) && !size_is_unbacked(p, y)) return true;
  bool can[2];
  for (u32 second = 0; second < 2; second++) {
    SizeMark m = size_mark(p);
    can[second] = (second ? size_assume(p, REL_lt, y, x) : size_assume(p, REL_le, x, y)) && may_be(p);
    Dim now = can[second] ? size_renew(p, diff) : DIM_NONE;
    if (now != DIM_NONE && now != diff) can[second] = prove_zero(p, now) != TRUTH_never;
    size_rollback(p, m);
    if (p->failed) return false;
  }
  if (can[0] == can[1]) return true;
  return can[0] ? size_assume(p, REL_le, x, y) : size_assume(p, REL_lt, y, x);
}

/* diff == 0 is known now, and a minimum is one of its terms: what equals it is no more than each alternative; a maximum
 * the other way round. Of sizes that are there on entry a run-time check tells nothing. False: this cannot be. */
static bool order_alternatives(SizePool *p, Dim diff) {
  SizePoly q;
  poly_of(p, diff, &q);
  for (u32 i = 0; i < q.n; i++) {
    if ((q.t[i].coef != 1 && q.t[i].coef != -1) || q.t[i].of >= 0) continue;
    SizeNode x = *node_of(p, q.t[i].of);
    if (x.kind != SK_min && x.kind != SK_max) continue;
    Dim same = q.t[i].coef == 1 ? size_sub(p, q.t[i].of, diff) : size_add(p, q.t[i].of, diff);
    for (u32 k = 0; k < x.count && same != DIM_NONE; k++) {
      Dim other = p->terms.data[x.first + k].of;
      if (size_is_unbacked(p, diff) && !size_is_unbacked(p, same) && !size_is_unbacked(p, other)) continue;
      if (!(x.kind == SK_min ? size_assume(p, REL_le, same, other) : size_assume(p, REL_le, other, same))) return false;
    }
  }
  return !p->failed;
}

/* diff == 0 becomes known. */
static bool equate(SizePool *p, Dim diff) {
  SizePoly q;
  diff = primitive(p, diff);
  poly_of(p, diff, &q);
  u32 best = UINT32_MAX, best_sym = 0;
  for (u32 i = 0; i < q.n; i++) {
    u32 sym;
    if ((q.t[i].coef != 1 && q.t[i].coef != -1) || !size_is_sym(p, q.t[i].of, &sym)) continue;
    bool elsewhere = false;
    for (u32 k = 0; k < q.n; k++) elsewhere |= k != i && mentions(p, q.t[k].of, sym);
    if (elsewhere) continue;
    bool unbacked = p->syms.data[sym].unbacked;
    if (best == UINT32_MAX || unbacked > p->syms.data[best_sym].unbacked ||
        (unbacked == p->syms.data[best_sym].unbacked && sym > best_sym)) {
      best = i;
      best_sym = sym;
    }
  }
  if (best == UINT32_MAX) return add_fact(p, REL_eq, diff) && one_case(p, diff) && order_alternatives(p, diff);
  /* A size that is there on entry is said everywhere, a number known at run time only where it was made: not where
   * an earlier one is, which may stand around the loop or the arm of this. */
  for (u32 i = 0; i < q.n; i++) {
    u32 last;
    if (i != best && size_last_unbacked(p, q.t[i].of, &last) && (!p->syms.data[best_sym].unbacked || last > best_sym))
      return add_fact(p, REL_eq, diff);
  }
  i64 sign = q.t[best].coef;
  SizePoly rest = {.c = 0};
  if (__builtin_mul_overflow(q.c, -sign, &rest.c)) return add_fact(p, REL_eq, diff);
  for (u32 i = 0; i < q.n; i++) {
    i64 k;
    if (i == best) continue;
    if (__builtin_mul_overflow(q.t[i].coef, -sign, &k) || !poly_add_term(&rest, k, q.t[i].of))
      return add_fact(p, REL_eq, diff);
  }
  Dim same = poly_make(p, &rest);
  if (same == DIM_NONE || !replace_sym(p, best_sym, same)) return !p->failed && add_fact(p, REL_eq, diff);
  /* what was known of the symbol's range holds for its replacement; of sizes that are there on entry a run-time check
   * tells nothing */
  SizeSym s = p->syms.data[best_sym];
  if (!narrow_facts(p) || !may_be(p)) return false;
  if (s.unbacked && !size_is_unbacked(p, same)) return true;
  return assume_range(p, size_const(p, s.lo), same) && assume_range(p, same, size_const(p, s.hi));
}

/* Says each fact (of sym; UINT32_MAX: all) again in the form that its expression has by what is known now. */
static bool renew_facts(SizePool *p, u32 sym) {
  for (u32 i = 0, n = p->facts.count; i < n; i++) {
    SizeFact f = p->facts.data[i];
    if (sym != UINT32_MAX && !mentions(p, f.diff, sym)) continue;
    Dim now = size_renew(p, f.diff);
    i64 c;
    if (p->failed) return false;
    if (now == DIM_NONE || now == f.diff || size_is_const(p, now, &c)) continue;
    if (!add_fact(p, f.rel, now)) return false;
  }
  return true;
}

bool size_renew_facts(SizePool *p) { return renew_facts(p, UINT32_MAX); }

/* coef * sym + c rel 0, by narrowing the range. A narrower range makes some expressions simpler (with n >= 2,
 * min(1, n) is 1): what is known of the longer form is then said of the simpler one, in which later expressions
 * come. False: it does not narrow. */
static bool narrow(SizePool *p, SizeRel rel, i64 coef, u32 sym, i64 c, bool *ok) {
  SizeSym s = p->syms.data[sym];
  wide lo = s.lo, hi = s.hi;
  if (rel == REL_ne) {
    if (c % coef != 0) return false;
    wide v = -(wide)c / coef;
    if (v == lo) lo++;
    else if (v == hi) hi--;
    else return false;
  } else {
    wide limit = rel == REL_lt ? -1 : 0; /* coef * sym <= limit - c */
    wide room = limit - c;
    if (coef > 0) {
      wide v = floor_wide(room, coef);
      if (v < hi) hi = v;
    } else {
      wide v = -floor_wide(room, -(wide)coef);
      if (v > lo) lo = v;
    }
  }
  bool changes = s.lo != lo || s.hi != hi;
  *ok = lo <= hi && change_sym(p, sym, (i64)lo, (i64)hi, s.same_as) && (!changes || renew_facts(p, sym));
  return true;
}

/* coef * E + c rel 0, E a minimum or maximum: what it says of the alternatives. A maximum is at least `bound` where
 * some alternative is: the only one that is no constant, unless a constant is (max(0, n - m) >= 0 says nothing of
 * n - m). It is at most `bound` where all are; a minimum the other way round. Of sizes that are there on entry a
 * run-time check tells nothing. False: this cannot be. */
static bool assume_alternatives(SizePool *p, SizeRel rel, i64 coef, Dim extreme, i64 c) {
  SizeNode x = *node_of(p, extreme);
  wide room = (wide)(rel == REL_lt ? -1 : 0) - c; /* coef * E <= room */
  bool at_most = coef > 0, all = at_most == (x.kind == SK_max);
  wide bound = at_most ? floor_wide(room, coef) : -floor_wide(room, -(wide)coef);
  if ((x.kind != SK_min && x.kind != SK_max) || rel == REL_ne || bound < INT64_MIN || bound > INT64_MAX) return true;
  Dim limit = size_const(p, (i64)bound), open[SIZE_MAX_TERMS];
  u32 n = 0;
  i64 k;
  for (u32 i = 0; i < x.count; i++) {
    Dim each = p->terms.data[x.first + i].of;
    if (!size_is_const(p, each, &k)) open[n++] = each;
    else if (!all && (at_most ? k <= bound : k >= bound)) return true;
  }
  if (limit == DIM_NONE || (!all && n != 1)) return !p->failed;
  bool ok = true;
  for (u32 i = 0; i < n && ok; i++) {
    if (size_is_unbacked(p, extreme) && !size_is_unbacked(p, open[i])) continue;
    ok = at_most ? size_assume(p, REL_le, open[i], limit) : size_assume(p, REL_le, limit, open[i]);
  }
  return ok;
}

/* d rel 0, as far as ranges of symbols say it; *all: they say all of it. False: it cannot be. */
static bool narrow_by(SizePool *p, SizeRel rel, Dim d, bool *all) {
  SizePoly q;
  u32 sym;
  bool ok;
  poly_of(p, d, &q);
  *all = q.n == 1 && size_is_sym(p, q.t[0].of, &sym) && narrow(p, rel, q.t[0].coef, sym, q.c, &ok);
  if (*all) return ok;
  return q.n != 1 || assume_alternatives(p, rel, q.t[0].coef, q.t[0].of, q.c);
}

/* Of two symbols one was replaced: what is known of both may say the range of the other one (n < m, and m is 1). Of
 * sizes that are there on entry a run-time check tells nothing. False: this cannot be. */
static bool narrow_facts(SizePool *p) {
  for (u32 i = 0, n = p->facts.count; i < n; i++) {
    SizeFact f = p->facts.data[i];
    Dim now = size_resolve(p, f.diff);
    u32 sym;
    SizePoly q;
    if (now == DIM_NONE || now >= 0 || now == f.diff || f.rel == REL_eq) continue;
    if (size_is_unbacked(p, f.diff) && !size_is_unbacked(p, now)) continue;
    poly_of(p, now, &q);
    bool ok = true;
    if (q.n == 1 && size_is_sym(p, q.t[0].of, &sym)) narrow(p, f.rel, q.t[0].coef, sym, q.c, &ok);
    if (!ok) return false;
  }
  return true;
}

/* a <= b, which a fact may say already, of an expression that is another one by now: the range of a symbol is still to
 * say it. */
static bool assume_range(SizePool *p, Dim a, Dim b) {
  bool all;
  if (size_prove(p, REL_le, a, b) != TRUTH_always) return size_assume(p, REL_le, a, b);
  Dim d = difference(p, a, b);
  return d == DIM_NONE ? !p->failed : narrow_by(p, REL_le, d, &all);
}

/* Is a >= b known of two expressions, which a <= b makes equal? Of one symbol its range says as much. */
static bool is_no_less(SizePool *p, Dim a, Dim b, Dim difference) {
  SizePoly q;
  poly_of(p, difference, &q);
  return q.n > 1 && size_prove(p, REL_le, b, a) == TRUTH_always;
}

bool size_assume(SizePool *p, SizeRel rel, Dim a, Dim b) {
  SizeTruth t = size_prove(p, rel, a, b);
  bool all;
  if (t != TRUTH_unknown) return t == TRUTH_always;
  Dim d = difference(p, a, b);
  if (d == DIM_NONE) return !p->failed; /* too large to remember; the guard or check stands anyway */
  if (rel == REL_eq || (rel == REL_le && is_no_less(p, a, b, d))) return equate(p, d);
  if (!narrow_by(p, rel, d, &all)) return false;
  return all || add_fact(p, rel, d);
}
