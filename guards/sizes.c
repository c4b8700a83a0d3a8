/* sizes.c — the pool of size expressions: symbols, hash-consing, canonical sums of products (see sizes.h). */
#include "guards/sizes.h"

#include "guards/sizes_inner.h"

#include <stdio.h>
#include <string.h>

void size_init(SizePool *p, Allocator *alloc) {
  *p = (SizePool){.alloc = alloc, .epoch = 1};
  arena_init(&p->arena, alloc);
}

void size_free(SizePool *p) {
  if (!p->alloc) return;
  vec_free(p->alloc, &p->nodes);
  vec_free(p->alloc, &p->terms);
  vec_free(p->alloc, &p->syms);
  vec_free(p->alloc, &p->facts);
  vec_free(p->alloc, &p->trail);
  mem_free(p->alloc, p->slots, sizeof *p->slots * p->slot_count);
  mem_free(p->alloc, p->memo, sizeof *p->memo);
  arena_free(&p->arena);
  *p = (SizePool){.alloc = p->alloc, .epoch = 1};
}

static Dim sizes_refused(SizePool *p) {
  p->failed = true;
  return DIM_NONE;
}

/* ---- hash-consing --------------------------------------------------------------------------------- */

static u32 hash_node(u8 kind, i64 value, const SizeTerm *t, u32 n) {
  u64 h = 0x9e3779b97f4a7c15u ^ kind;
  h = (h ^ (u64)value) * 0xff51afd7ed558ccdu;
  for (u32 i = 0; i < n; i++) {
    h = (h ^ (h >> 29) ^ (u64)t[i].coef) * 0xc4ceb9fe1a85ec53u;
    h = (h ^ (h >> 31) ^ (u64)t[i].of) * 0xff51afd7ed558ccdu;
  }
  return (u32)(h ^ (h >> 32));
}

static bool grow_slots(SizePool *p) {
  u32 count = p->slot_count ? p->slot_count * 2 : 64;
  u32 *slots = mem_alloc_zero(p->alloc, sizeof *slots * count);
  if (!slots) return false;
  /* in the order of ids: rollback relies on it that a later entry never stands before an earlier one's place */
  for (u32 id = 1; id < p->nodes.count; id++) {
    u32 i = p->nodes.data[id].hash & (count - 1);
    while (slots[i]) i = (i + 1) & (count - 1);
    slots[i] = id;
  }
  mem_free(p->alloc, p->slots, sizeof *p->slots * p->slot_count);
  p->slots = slots;
  p->slot_count = count;
  return true;
}

static u32 depth_of(const SizePool *p, Dim d) { return d < 0 ? node_of(p, d)->depth : 0; }

/* Finds or makes a node; `t` is borrowed and must be canonical. */
static Dim intern(SizePool *p, SizeKind kind, i64 value, const SizeTerm *t, u32 n) {
  u32 hash = hash_node((u8)kind, value, t, n);
  if (p->slot_count)
    for (u32 i = hash & (p->slot_count - 1); p->slots[i]; i = (i + 1) & (p->slot_count - 1)) {
      const SizeNode *x = &p->nodes.data[p->slots[i]];
      if (x->hash == hash && x->kind == kind && x->value == value && x->count == n) {
        bool same = true;
        for (u32 k = 0; k < n && same; k++)
          same = p->terms.data[x->first + k].coef == t[k].coef && p->terms.data[x->first + k].of == t[k].of;
        if (same) return -(Dim)p->slots[i];
      }
    }
  u32 depth = 0;
  bool unbacked = kind == SK_sym && p->syms.data[value].unbacked;
  for (u32 k = 0; k < n; k++) {
    u32 d = depth_of(p, t[k].of);
    if (d > depth) depth = d;
    unbacked |= size_is_unbacked(p, t[k].of);
  }
  if (depth + 1 > SIZE_MAX_DEPTH) return DIM_NONE;
  if (p->nodes.count == 0 && !vec_push(p->alloc, &p->nodes, (SizeNode){0})) return sizes_refused(p);
  if ((p->nodes.count + 1) * 2 > p->slot_count && !grow_slots(p)) return sizes_refused(p);
  u32 first = p->terms.count;
  for (u32 k = 0; k < n; k++)
    if (!vec_push(p->alloc, &p->terms, t[k])) {
      p->terms.count = first;
      return sizes_refused(p);
    }
  u32 id = p->nodes.count;
  SizeNode node = {.kind = (u8)kind, .depth = (u8)(depth + 1), .unbacked = unbacked, .first = first, .count = n,
                   .hash = hash, .value = value};
  if (!vec_push(p->alloc, &p->nodes, node)) {
    p->terms.count = first;
    return sizes_refused(p);
  }
  u32 i = hash & (p->slot_count - 1);
  while (p->slots[i]) i = (i + 1) & (p->slot_count - 1);
  p->slots[i] = id;
  return -(Dim)id;
}

Dim size_const(SizePool *p, i64 v) { return v >= 0 ? v : intern(p, SK_const, v, NULL, 0); }

bool size_is_const(const SizePool *p, Dim d, i64 *out) {
  if (d == DIM_NONE) return false;
  if (d >= 0) {
    *out = d;
    return true;
  }
  if (node_of(p, d)->kind != SK_const) return false;
  *out = node_of(p, d)->value;
  return true;
}

bool size_is_sym(const SizePool *p, Dim d, u32 *sym) {
  if (d >= 0 || d == DIM_NONE || node_of(p, d)->kind != SK_sym) return false;
  *sym = (u32)node_of(p, d)->value;
  return true;
}

bool size_is_unbacked(const SizePool *p, Dim d) { return d < 0 && d != DIM_NONE && node_of(p, d)->unbacked; }

/* ---- symbols -------------------------------------------------------------------------------------- */

static bool name_taken(const SizePool *p, const char *name) {
  for (u32 i = 0; i < p->syms.count; i++)
    if (strcmp(p->syms.data[i].name, name) == 0) return true;
  return false;
}

static Dim new_sym(SizePool *p, const char *name, u32 source, i64 lo, i64 hi, i64 hint, bool unbacked) {
  char text[64];
  if (name && *name) snprintf(text, sizeof text, "%.40s", name);
  else name_numbered(text, unbacked ? "u" : "n", p->syms.count);
  u32 len = (u32)strlen(text);
  p->named |= name && *name;
  for (u32 i = 2; p->named && name_taken(p, text); i++) snprintf(text + len, sizeof text - len, "_%u", i);
  const char *kept = arena_copy(&p->arena, text, strlen(text));
  if (!kept) return sizes_refused(p);
  u32 index = p->syms.count;
  if (!vec_push(p->alloc, &p->syms, (SizeSym){kept, source, unbacked, lo, hi, hint, DIM_NONE, DIM_NONE, 0, 0}))
    return sizes_refused(p);
  Dim d = intern(p, SK_sym, index, NULL, 0);
  if (d == DIM_NONE) p->syms.count--;
  else p->syms.data[index].dim = d;
  return d;
}

Dim size_sym(SizePool *p, const char *name, u32 source, i64 lo, i64 hi, i64 hint) {
  return new_sym(p, name, source, lo, hi, hint, false);
}
Dim size_unbacked(SizePool *p, const char *name, u32 value, i64 lo, i64 hi) {
  return new_sym(p, name, value, lo, hi, 0, true);
}

/* ---- canonical order ------------------------------------------------------------------------------ */

/* A total order of canonical expressions by their structure, so that texts do not depend on the order in
 * which expressions were made. Depth is bounded by SIZE_MAX_DEPTH. */
static int order(const SizePool *p, Dim a, Dim b) {
  if (a == b) return 0;
  i64 x, y;
  bool cx = size_is_const(p, a, &x), cy = size_is_const(p, b, &y);
  if (cx || cy) return cx && cy ? (x < y ? -1 : 1) : cx ? -1 : 1;
  const SizeNode *m = node_of(p, a), *n = node_of(p, b);
  if (m->kind != n->kind) return m->kind < n->kind ? -1 : 1;
  for (u32 i = 0; i < m->count && i < n->count; i++) {
    const SizeTerm *s = &p->terms.data[m->first + i], *t = &p->terms.data[n->first + i];
    int c = order(p, s->of, t->of);
    if (c) return c;
    if (s->coef != t->coef) return s->coef < t->coef ? -1 : 1;
  }
  if (m->count != n->count) return m->count < n->count ? -1 : 1;
  return m->value < n->value ? -1 : 1;
}

static void sort_terms(const SizePool *p, SizeTerm *t, u32 n) {
  for (u32 i = 1; i < n; i++) {
    SizeTerm x = t[i];
    u32 k = i;
    for (; k > 0 && order(p, t[k - 1].of, x.of) > 0; k--) t[k] = t[k - 1];
    t[k] = x;
  }
}

/* ---- sums ----------------------------------------------------------------------------------------- */

void poly_of(const SizePool *p, Dim d, SizePoly *out) {
  out->c = 0;
  out->n = 0;
  if (size_is_const(p, d, &out->c)) return;
  const SizeNode *x = node_of(p, d);
  if (x->kind == SK_add) {
    out->c = x->value;
    out->n = x->count;
    memcpy(out->t, &p->terms.data[x->first], sizeof *out->t * x->count);
  } else {
    out->n = 1;
    out->t[0] = (SizeTerm){1, d};
  }
}

bool poly_add_term(SizePoly *q, i64 coef, Dim of) {
  for (u32 i = 0; i < q->n; i++)
    if (q->t[i].of == of) {
      if (__builtin_add_overflow(q->t[i].coef, coef, &q->t[i].coef)) return false;
      if (q->t[i].coef == 0) q->t[i] = q->t[--q->n];
      return true;
    }
  if (coef == 0) return true;
  if (q->n == SIZE_MAX_TERMS) return false;
  q->t[q->n++] = (SizeTerm){coef, of};
  return true;
}

static bool poly_add(SizePoly *q, const SizePoly *r, i64 times) {
  i64 c;
  if (__builtin_mul_overflow(r->c, times, &c) || __builtin_add_overflow(q->c, c, &q->c)) return false;
  for (u32 i = 0; i < r->n; i++) {
    i64 k;
    if (__builtin_mul_overflow(r->t[i].coef, times, &k) || !poly_add_term(q, k, r->t[i].of)) return false;
  }
  return true;
}

Dim poly_make(SizePool *p, SizePoly *q) {
  if (q->n == 0) return size_const(p, q->c);
  if (q->n == 1 && q->c == 0 && q->t[0].coef == 1) return q->t[0].of;
  sort_terms(p, q->t, q->n);
  return intern(p, SK_add, q->c, q->t, q->n);
}

static Dim sum(SizePool *p, Dim a, Dim b, i64 times) {
  SizePoly x, y;
  a = size_resolve(p, a);
  b = size_resolve(p, b);
  if (a == DIM_NONE || b == DIM_NONE) return DIM_NONE;
  poly_of(p, a, &x);
  poly_of(p, b, &y);
  return poly_add(&x, &y, times) ? poly_make(p, &x) : DIM_NONE;
}

Dim size_add(SizePool *p, Dim a, Dim b) { return sum(p, a, b, 1); }
Dim size_sub(SizePool *p, Dim a, Dim b) { return sum(p, a, b, -1); }

/* ---- products ------------------------------------------------------------------------------------- */

/* Factors of an atom or product; returns how many. */
static u32 factors(const SizePool *p, Dim d, SizeTerm *out) {
  const SizeNode *x = node_of(p, d);
  if (x->kind != SK_mul) {
    out[0] = (SizeTerm){1, d};
    return 1;
  }
  memcpy(out, &p->terms.data[x->first], sizeof *out * x->count);
  return x->count;
}

static Dim monomial(SizePool *p, Dim a, Dim b) {
  SizeTerm f[2 * SIZE_MAX_FACTORS];
  u32 n = factors(p, a, f);
  n += factors(p, b, f + n);
  if (n > SIZE_MAX_FACTORS) return DIM_NONE;
  sort_terms(p, f, n);
  return intern(p, SK_mul, 0, f, n);
}

Dim size_mul(SizePool *p, Dim a, Dim b) {
  SizePoly x, y, q = {0};
  a = size_resolve(p, a);
  b = size_resolve(p, b);
  if (a == DIM_NONE || b == DIM_NONE) return DIM_NONE;
  poly_of(p, a, &x);
  poly_of(p, b, &y);
  if (__builtin_mul_overflow(x.c, y.c, &q.c)) return DIM_NONE;
  for (u32 i = 0; i < x.n; i++) {
    i64 k;
    if (__builtin_mul_overflow(x.t[i].coef, y.c, &k) || !poly_add_term(&q, k, x.t[i].of)) return DIM_NONE;
  }
  for (u32 j = 0; j < y.n; j++) {
    i64 k;
    if (__builtin_mul_overflow(y.t[j].coef, x.c, &k) || !poly_add_term(&q, k, y.t[j].of)) return DIM_NONE;
  }
  for (u32 i = 0; i < x.n; i++)
    for (u32 j = 0; j < y.n; j++) {
      i64 k;
      Dim m = monomial(p, x.t[i].of, y.t[j].of);
      if (m == DIM_NONE || __builtin_mul_overflow(x.t[i].coef, y.t[j].coef, &k) || !poly_add_term(&q, k, m))
        return DIM_NONE;
    }
  return poly_make(p, &q);
}

/* ---- division ------------------------------------------------------------------------------------- */

static u64 magnitude(i64 v) { return v < 0 ? 0 - (u64)v : (u64)v; }
static u64 gcd(u64 a, u64 b) {
  while (b) {
    u64 t = a % b;
    a = b;
    b = t;
  }
  return a;
}

u64 poly_gcd(const SizePoly *q) {
  u64 g = 0;
  for (u32 i = 0; i < q->n; i++) g = gcd(g, magnitude(q->t[i].coef));
  return g;
}

static Dim pair(SizePool *p, SizeKind kind, Dim a, Dim b) {
  SizeTerm t[2] = {{1, a}, {1, b}};
  return intern(p, kind, 0, t, 2);
}

/* term `of` = factor monomial of `by` times the rest? The rest is DIM 1 when nothing is left. */
static bool divide_monomial(SizePool *p, Dim of, Dim by, Dim *rest) {
  SizeTerm f[SIZE_MAX_FACTORS], g[SIZE_MAX_FACTORS];
  u32 n = factors(p, of, f), m = factors(p, by, g);
  for (u32 j = 0; j < m; j++) {
    u32 i = 0;
    while (i < n && f[i].of != g[j].of) i++;
    if (i == n) return false;
    memmove(f + i, f + i + 1, sizeof *f * (n - i - 1));
    n--;
  }
  *rest = n == 0 ? 1 : n == 1 ? f[0].of : intern(p, SK_mul, 0, f, n);
  return *rest != DIM_NONE;
}

/* Splits x into b * q + r. False when nothing could be taken out. b is a positive constant, or an expression of
 * one term. */
static bool split(SizePool *p, const SizePoly *x, const SizePoly *b, SizePoly *q, SizePoly *r) {
  *q = *r = (SizePoly){0};
  if (b->n == 0) {
    q->c = floor_div(x->c, b->c);
    r->c = floor_mod(x->c, b->c);
    for (u32 i = 0; i < x->n; i++) {
      i64 k = x->t[i].coef;
      if (k % b->c == 0) q->t[q->n++] = (SizeTerm){k / b->c, x->t[i].of};
      else r->t[r->n++] = x->t[i];
    }
  } else {
    if (b->n != 1 || b->c != 0) return false;
    r->c = x->c;
    for (u32 i = 0; i < x->n; i++) {
      Dim rest;
      i64 k = x->t[i].coef, by = b->t[0].coef;
      if (by != -1 && k % by == 0 && divide_monomial(p, x->t[i].of, b->t[0].of, &rest)) {
        if (rest == 1) q->c = k / by;
        else q->t[q->n++] = (SizeTerm){k / by, rest};
      } else {
        r->t[r->n++] = x->t[i];
      }
    }
  }
  return q->n || q->c;
}

/* Does x lie between two multiples of y > 0 that stand side by side? x // y is *times then. */
static bool in_one_part(const SizePool *p, Dim x, i64 y, i64 *times) {
  SizeRange s = size_range(p, x);
  if (!s.fits || floor_div(s.lo, y) != floor_div(s.hi, y)) return false;
  *times = floor_div(s.lo, y);
  return true;
}

Dim size_floordiv(SizePool *p, Dim a, Dim b) {
  a = size_resolve(p, a);
  b = size_resolve(p, b);
  if (a == DIM_NONE || b == DIM_NONE) return DIM_NONE;
  i64 x, y = 0;
  bool cb = size_is_const(p, b, &y);
  if (cb && y == 0) return DIM_NONE;
  if (cb && y == 1) return a;
  if (cb && size_is_const(p, a, &x)) {
    if (x == INT64_MIN && y == -1) return DIM_NONE;
    return size_const(p, floor_div(x, y));
  }
  SizeRange ra = size_range(p, a), rb = size_range(p, b);
  if (!ra.fits || !rb.fits || (rb.lo <= 0 && rb.hi >= 0)) return pair(p, SK_floordiv, a, b);
  if (cb && y < 0) { /* a // -c == -a // c */
    Dim neg = size_sub(p, 0, a);
    if (y == INT64_MIN || neg == DIM_NONE || !size_range(p, neg).fits) return pair(p, SK_floordiv, a, b);
    return size_floordiv(p, neg, -y);
  }
  SizePoly pa, pb, q, r;
  poly_of(p, a, &pa);
  poly_of(p, b, &pb);
  Dim quotient = 0, rest = a;
  if (split(p, &pa, &pb, &q, &r)) {
    quotient = poly_make(p, &q);
    rest = poly_make(p, &r);
    if (quotient == DIM_NONE || rest == DIM_NONE) return DIM_NONE;
    if (!size_range(p, rest).fits || !size_range(p, quotient).fits) return pair(p, SK_floordiv, a, b);
  }
  if (rest == 0) return quotient;
  if (rb.lo > 0 && size_prove(p, REL_le, 0, rest) == TRUTH_always && size_prove(p, REL_lt, rest, b) == TRUTH_always)
    return quotient;
  if (cb && in_one_part(p, rest, y, &x)) return size_add(p, quotient, size_const(p, x));
  if (cb) {
    /* floor((g*t + c) / (g*d)) == floor((t + floor(c/g)) / d) */
    poly_of(p, rest, &r);
    u64 g = gcd(poly_gcd(&r), (u64)y);
    if (g > 1) {
      for (u32 i = 0; i < r.n; i++) r.t[i].coef /= (i64)g;
      r.c = floor_div(r.c, (i64)g);
      rest = poly_make(p, &r);
      if (rest == DIM_NONE) return DIM_NONE;
      b = y / (i64)g;
      Dim inner = size_floordiv(p, rest, b);
      return inner == DIM_NONE ? DIM_NONE : size_add(p, quotient, inner);
    }
    /* floor(floor(x/c) / d) == floor(x / (c*d)) */
    i64 c;
    if (node_of(p, rest)->kind == SK_floordiv) {
      Dim top = p->terms.data[node_of(p, rest)->first].of, bottom = p->terms.data[node_of(p, rest)->first + 1].of;
      if (size_is_const(p, bottom, &c) && c > 0 && !__builtin_mul_overflow(c, y, &c)) {
        Dim inner = size_floordiv(p, top, c);
        return inner == DIM_NONE ? DIM_NONE : size_add(p, quotient, inner);
      }
    }
  }
  Dim inner = pair(p, SK_floordiv, rest, b);
  return inner == DIM_NONE ? DIM_NONE : size_add(p, quotient, inner);
}

Dim size_mod(SizePool *p, Dim a, Dim b) {
  a = size_resolve(p, a);
  b = size_resolve(p, b);
  if (a == DIM_NONE || b == DIM_NONE) return DIM_NONE;
  i64 x, y = 0;
  bool cb = size_is_const(p, b, &y);
  if (cb && y == 0) return DIM_NONE;
  SizeRange ra = size_range(p, a), rb = size_range(p, b);
  if (cb && (y == 1 || y == -1) && ra.fits) return 0;
  if (cb && size_is_const(p, a, &x)) return size_const(p, floor_mod(x, y));
  if (!ra.fits || !rb.fits || rb.lo <= 0) return pair(p, SK_mod, a, b);
  SizePoly pa, pb, q, r;
  poly_of(p, a, &pa);
  poly_of(p, b, &pb);
  Dim rest = a;
  if (split(p, &pa, &pb, &q, &r)) {
    rest = poly_make(p, &r);
    if (rest == DIM_NONE) return DIM_NONE;
    if (!size_range(p, rest).fits) return pair(p, SK_mod, a, b);
  }
  if (rest == 0) return 0;
  if (size_prove(p, REL_le, 0, rest) == TRUTH_always && size_prove(p, REL_lt, rest, b) == TRUTH_always) return rest;
  if (cb && in_one_part(p, rest, y, &x) && !__builtin_mul_overflow(x, y, &x))
    return size_sub(p, rest, size_const(p, x));
  return pair(p, SK_mod, rest, b);
}

Dim size_ceildiv(SizePool *p, Dim a, Dim b) {
  Dim t = size_add(p, a, size_sub(p, b, 1));
  return size_floordiv(p, t, b);
}

/* ---- min, max ------------------------------------------------------------------------------------- */

static Dim extreme(SizePool *p, SizeKind kind, Dim a, Dim b) {
  a = size_resolve(p, a);
  b = size_resolve(p, b);
  if (a == DIM_NONE || b == DIM_NONE) return DIM_NONE;
  if (a == b) return a;
  SizeTerm t[2 * SIZE_MAX_TERMS];
  u32 n = 0;
  for (u32 side = 0; side < 2; side++) {
    Dim d = side ? b : a;
    i64 c;
    if (!size_is_const(p, d, &c) && node_of(p, d)->kind == kind) {
      memcpy(t + n, &p->terms.data[node_of(p, d)->first], sizeof *t * node_of(p, d)->count);
      n += node_of(p, d)->count;
    } else {
      t[n++] = (SizeTerm){1, d};
    }
  }
  bool fits = true;
  for (u32 i = 0; i < n; i++) fits &= size_range(p, t[i].of).fits;
  for (u32 i = 0; i < n; i++) /* an alternative that another one beats always goes */
    for (u32 k = 0; k < n; k++) {
      if (i == k) continue;
      bool beaten = t[i].of == t[k].of ? i > k
                    : !fits            ? false
                    : kind == SK_min   ? size_prove(p, REL_le, t[k].of, t[i].of) == TRUTH_always
                                       : size_prove(p, REL_le, t[i].of, t[k].of) == TRUTH_always;
      if (beaten) {
        memmove(t + i, t + i + 1, sizeof *t * (n - i - 1));
        n--;
        i--;
        break;
      }
    }
  if (n == 1) return t[0].of;
  if (n > SIZE_MAX_TERMS) return DIM_NONE;
  sort_terms(p, t, n);
  return intern(p, kind, 0, t, n);
}

Dim size_min(SizePool *p, Dim a, Dim b) { return extreme(p, SK_min, a, b); }
Dim size_max(SizePool *p, Dim a, Dim b) { return extreme(p, SK_max, a, b); }

Dim size_above_zero(const SizePool *p, Dim d) {
  if (d >= 0 || d == DIM_NONE) return d;
  const SizeNode *x = node_of(p, d);
  const SizeTerm *t = &p->terms.data[x->first];
  if (x->kind != SK_max || x->count != 2 || (t[0].of != 0 && t[1].of != 0)) return d;
  return t[0].of == 0 ? t[1].of : t[0].of;
}

Dim size_binary(SizePool *p, char op, Dim a, Dim b) {
  switch (op) {
    case '+': return size_add(p, a, b);
    case '-': return size_sub(p, a, b);
    case '*': return size_mul(p, a, b);
    case '/': return size_floordiv(p, a, b);
    case '%': return size_mod(p, a, b);
    case 'm': return size_min(p, a, b);
    case 'M': return size_max(p, a, b);
    default: return DIM_NONE;
  }
}

/* ---- substitution --------------------------------------------------------------------------------- */

static bool mentions_equated(const SizePool *p, Dim d) {
  if (d >= 0 || d == DIM_NONE) return false;
  const SizeNode *x = node_of(p, d);
  if (x->kind == SK_sym) return p->syms.data[x->value].same_as != DIM_NONE;
  for (u32 i = 0; i < x->count; i++)
    if (mentions_equated(p, p->terms.data[x->first + i].of)) return true;
  return false;
}

typedef struct Subst { /* instead of what symbols are equal to; NULL: that */
  const u32 *from;
  const Dim *to;
  u32 count;
} Subst;

typedef enum Renewal {
  RENEW_equated, /* what mentions an equated symbol is made anew, */
  RENEW_all,     /* everything is, */
  RENEW_by_facts /* and a part that is known to be one number (`n % 5`, once `n % 5 < 1` is known) becomes it */
} Renewal;
static Dim rebuild(SizePool *p, Dim d, Renewal how, const Subst *by);

/* Minima and maxima ask for proofs, and each proof resolves all that is known: remembered, or it takes exponential
 * time. */
static Dim rebuild_once(SizePool *p, Dim d) {
  if (d >= 0 || d == DIM_NONE) return d;
  const SizeNode *x = node_of(p, d);
  if (x->epoch == p->epoch && x->proving <= p->proving) return x->resolved;
  u32 epoch = p->epoch, proving = p->proving;
  Dim made = mentions_equated(p, d) ? rebuild(p, d, RENEW_equated, NULL) : d;
  SizeNode *kept = &p->nodes.data[-d]; /* may have moved */
  if (!p->failed && epoch == p->epoch) kept->resolved = made, kept->epoch = epoch, kept->proving = proving;
  return made;
}

static Dim rebuild_parts(SizePool *p, Dim d, Renewal how, const Subst *by);

/* Rebuilds d with equated symbols replaced. same_as is itself resolved (size_assume keeps it so), hence the recursion
 * goes at most SIZE_MAX_DEPTH deep. */
static Dim rebuild(SizePool *p, Dim d, Renewal how, const Subst *by) {
  Dim made = rebuild_parts(p, d, how, by);
  i64 c;
  bool number = how == RENEW_by_facts && made < 0 && made != DIM_NONE && size_is_one_number(p, made, &c);
  return number ? size_const(p, c) : made;
}

static Dim rebuild_parts(SizePool *p, Dim d, Renewal how, const Subst *by) {
  if (d >= 0 || d == DIM_NONE) return d;
  const SizeNode x = *node_of(p, d);
  if (x.kind == SK_const) return d;
  if (x.kind == SK_sym) {
    for (u32 i = 0; by && i < by->count; i++)
      if (x.value == (i64)by->from[i]) return by->to[i];
    const Dim same = p->syms.data[x.value].same_as;
    if (same == DIM_NONE) return d;
    return how == RENEW_equated ? same : rebuild(p, same, how, by); /* more may be known since it was noted */
  }
  Dim acc = DIM_NONE;
  for (u32 i = 0; i < x.count; i++) {
    SizeTerm t = p->terms.data[x.first + i];
    Dim part = how != RENEW_equated ? rebuild(p, t.of, how, by) : rebuild_once(p, t.of);
    if (part == DIM_NONE) return DIM_NONE;
    if (x.kind == SK_add) part = size_mul(p, part, size_const(p, t.coef));
    if (i == 0) {
      acc = part;
      continue;
    }
    switch (x.kind) {
      case SK_mul: acc = size_mul(p, acc, part); break;
      case SK_add: acc = size_add(p, acc, part); break;
      case SK_floordiv: acc = size_floordiv(p, acc, part); break;
      case SK_mod: acc = size_mod(p, acc, part); break;
      case SK_min: acc = size_min(p, acc, part); break;
      default: acc = size_max(p, acc, part); break;
    }
    if (acc == DIM_NONE) return DIM_NONE;
  }
  return x.kind == SK_add ? size_add(p, acc, size_const(p, x.value)) : acc;
}

Dim size_resolve(SizePool *p, Dim d) {
  if (d >= 0 || d == DIM_NONE || p->equated == 0) return d;
  return rebuild_once(p, d);
}

Dim size_renew(SizePool *p, Dim d) { return rebuild(p, d, RENEW_all, NULL); }
Dim size_renew_by_facts(SizePool *p, Dim d) { return rebuild(p, d, RENEW_by_facts, NULL); }

Dim size_substitute(SizePool *p, Dim d, const u32 *from, const Dim *to, u32 count) {
  return count ? rebuild(p, d, RENEW_all, &(Subst){from, to, count}) : d;
}

bool size_last_unbacked(const SizePool *p, Dim d, u32 *sym) {
  if (!size_is_unbacked(p, d)) return false;
  const SizeNode *x = node_of(p, d);
  bool found = false;
  if (x->kind == SK_sym) {
    *sym = size_first_symbol(p, (u32)x->value);
    return true;
  }
  for (u32 i = 0; i < x->count; i++) {
    u32 s;
    if (!size_last_unbacked(p, p->terms.data[x->first + i].of, &s) || (found && s < *sym)) continue;
    *sym = s;
    found = true;
  }
  return found;
}

u32 size_first_symbol(const SizePool *p, u32 sym) {
  const SizeSym *s = &p->syms.data[sym];
  for (u32 i = 0; i < sym && s->unbacked && s->source; i++)
    if (p->syms.data[i].unbacked && p->syms.data[i].source == s->source && p->syms.data[i].axis == s->axis) return i;
  return sym;
}

/* ---- speculation ---------------------------------------------------------------------------------- */

SizeMark size_mark(const SizePool *p) {
  return (SizeMark){p->nodes.count, p->terms.count, p->syms.count, p->facts.count, p->trail.count, p->known};
}

void size_rollback(SizePool *p, SizeMark m) {
  if (m.nodes < p->nodes.count || m.trail < p->trail.count) p->epoch++;
  while (p->trail.count > m.trail) {
    SizeUndo u = p->trail.data[--p->trail.count];
    SizeSym *s = &p->syms.data[u.sym];
    if (s->same_as != DIM_NONE && u.same_as == DIM_NONE) p->equated--;
    s->lo = u.lo;
    s->hi = u.hi;
    s->same_as = u.same_as;
  }
  for (u32 id = p->nodes.count; id-- > m.nodes && id > 0;) { /* newest first: nothing stands behind it in its probe */
    u32 i = p->nodes.data[id].hash & (p->slot_count - 1);
    while (p->slots[i] != id) i = (i + 1) & (p->slot_count - 1);
    p->slots[i] = 0;
  }
  if (m.nodes < p->nodes.count) size_forget(p, m.nodes);
  if (m.nodes < p->nodes.count) p->nodes.count = m.nodes ? m.nodes : p->nodes.count ? 1 : 0;
  p->terms.count = m.terms;
  p->syms.count = m.syms;
  p->facts.count = m.facts;
  p->known = m.known;
}

#define COPY_VEC(field)                                                                              \
  do {                                                                                               \
    if (from->field.count) {                                                                         \
      if (!vec_reserve(alloc, (void **)&to->field.data, &to->field.cap, from->field.count,           \
                       sizeof *to->field.data))                                                      \
        goto fail;                                                                                   \
      memcpy(to->field.data, from->field.data, sizeof *to->field.data * from->field.count);          \
      to->field.count = from->field.count;                                                           \
    }                                                                                                \
  } while (0)

bool size_clone(SizePool *to, const SizePool *from, Allocator *alloc) {
  size_init(to, alloc);
  to->epoch = from->epoch;
  COPY_VEC(nodes);
  COPY_VEC(terms);
  COPY_VEC(syms);
  COPY_VEC(facts);
  for (u32 i = 0; i < to->syms.count; i++) {
    const char *name = from->syms.data[i].name;
    to->syms.data[i].name = arena_copy(&to->arena, name, strlen(name));
    if (!to->syms.data[i].name) goto fail;
  }
  to->equated = from->equated;
  to->named = from->named;
  while (to->slot_count < from->slot_count)
    if (!grow_slots(to)) goto fail;
  return true;
fail:
  size_free(to);
  return false;
}
