/* native_raise.c — counted loops whose trips are independent become kernels, which are vector code.
 *
 * A loop `for i in 0..trips { poll …; loads, arithmetic, stores; next }` that carries nothing from trip to trip, but
 * numbers that follow from i or can be reduced (native_fold.c), is written as a kernel, and called for many trips at
 * once in front of the loop. The loop stays as it is for the trips that are left: all of them where there are few.
 * Loops of numbers inside are part of a trip (native_inner.c).
 *
 * - A place is an access's index as coef * i + constant + terms that the loop does not change. Within a trip it is
 *   a value: what was stored there is not loaded again, and it is stored once, at the end. Arms of an `if` become
 *   selections. A place that only an arm looks at is there in each trip: what shows that it is, a proof or a check,
 *   does not go by the arm's condition (native_hoist.c sees to that), or is asked for all trips in front of the loop.
 * - Trips are independent where each place that is stored to is another one in each trip, and what else is looked at in
 *   that buffer is the same place, or another one for so many trips. How far two places lie apart may be known only
 *   when the program runs: then the calls take no more trips than that.
 * - A check of an index that counts is asked for the first and the last trip, in front of the loop. Other checks are
 *   made by a kernel of their own, for as many trips, before anything is stored. Where one fails, the loop goes on.
 * - An exit in the loop's poll is right in front of any trip, so the calls poll with what the poll would have. */
#include <stdio.h>
#include <string.h>

#include "jit/native/native_hoist.h"
#include "jit/native/native_raise.h"
#include "lang/mechanisms.h"

static bool raise_pure(const LoopNode *n) {
  LoopForm form = loop_op_form((LoopOp)n->op);
  return form >= LOOP_FORM_UNARY && form <= LOOP_FORM_CONVERT;
}

/* Made before the loop, or everywhere. */
static bool raise_outside(const Raise *r, u32 id) {
  const LoopNode *n = raise_node(r, id);
  if (!id || id >= r->nodes || n->op == LOOP_PARAM || n->op == LOOP_CONST) return true;
  bool leaf = n->op == LOOP_INDEX || n->op == LOOP_CARRY || n->op == LOOP_RESULT;
  u32 place = r->where[leaf ? n->a : id];
  return place < r->where[r->loop] || place > r->end[r->loop];
}

bool raise_follows(const Raise *r, u32 id, bool counted, u32 depth) {
  const LoopNode *n = raise_node(r, id);
  if (raise_outside(r, id)) return true;
  if (n->op == LOOP_INDEX) return counted && n->a == r->loop;
  if (n->op == LOOP_CARRY && n->a == r->loop)
    return r->carries && n->b < RAISE_FOLDS && r->folds[n->b].kind != FOLD_FOLLOWS;
  if (n->op == LOOP_LOAD && r->loads && depth) {
    bool known = n->count <= RAISE_TERMS && raise_outside(r, n->a) && !raise_stores(r, n->a);
    for (u32 i = 0; i < n->count && known; i++) {
      const LoopTerm t = loop_terms(r->fn, n)[i];
      known = raise_outside(r, t.stride[0]) && raise_outside(r, t.stride[1]) &&
              raise_follows(r, t.var, counted, depth - 1);
    }
    return known;
  }
  return depth && raise_pure(n) && raise_follows(r, n->a, counted, depth - 1) &&
         raise_follows(r, n->b, counted, depth - 1) && raise_follows(r, n->c, counted, depth - 1);
}

u32 raise_value(Raise *r, u32 id, u32 index) {
  const LoopNode n = *raise_node(r, id);
  if (raise_outside(r, id)) return id;
  if (n.op == LOOP_INDEX) return index;
  if (n.op == LOOP_CARRY) return r->now[n.b];
  if (n.op == LOOP_LOAD) {
    LoopTerm terms[RAISE_TERMS];
    for (u32 i = 0; i < n.count; i++) {
      terms[i] = r->fn->terms.data[n.list + i];
      terms[i].var = raise_value(r, terms[i].var, index);
    }
    return loop_load(r->fn, n.a, (i64)n.imm, terms, n.count);
  }
  u32 a = raise_value(r, n.a, index), b = raise_value(r, n.b, index), c = raise_value(r, n.c, index);
  return loop_emit(r->fn, (LoopOp)n.op, (LoopType)n.type, a, b, c);
}

u32 raise_known(Raise *r, u32 id) {
  const LoopNode n = *raise_node(r, id);
  if (raise_outside(r, id)) return id;
  u32 a = raise_known(r, n.a), b = raise_known(r, n.b), c = raise_known(r, n.c);
  for (u32 i = 0; i < r->made_count; i++) {
    const LoopNode *m = raise_node(r, r->made[i]);
    if (m->op == n.op && m->type == n.type && m->a == a && m->b == b && m->c == c) return r->made[i];
  }
  u32 now = loop_emit(r->fn, (LoopOp)n.op, (LoopType)n.type, a, b, c);
  if (r->made_count < RAISE_MADE) r->made[r->made_count++] = now;
  return now;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static bool raise_constant(const Raise *r, u32 id, i64 *out) {
  *out = (i64)raise_node(r, id)->imm;
  return raise_node(r, id)->op == LOOP_CONST;
}

static bool affine_term(Affine *a, LoopTerm t) {
  if (!t.coef) return true;
  for (u32 i = 0; i < a->count; i++) {
    LoopTerm *x = &a->terms[i];
    if (x->var != t.var || x->stride[0] != t.stride[0] || x->stride[1] != t.stride[1]) continue;
    x->coef += t.coef;
    if (!x->coef) *x = a->terms[--a->count];
    return true;
  }
  if (a->count == RAISE_TERMS) return false;
  a->terms[a->count++] = t;
  return true;
}

/* Indices of loops and constants are not negative, and do not come near 2^62. */
static bool affine_positive(const Raise *r, const Affine *a) {
  bool positive = a->coef >= 0 && a->constant >= 0;
  for (u32 i = 0; i < a->count; i++)
    positive = positive && a->terms[i].coef > 0 && raise_node(r, a->terms[i].var)->op == LOOP_INDEX;
  return positive;
}

/* The same terms: they differ by a constant. */
static bool affine_beside(const Affine *a, const Affine *b) {
  if (a->coef != b->coef || a->count != b->count) return false;
  for (u32 i = 0; i < a->count; i++) {
    bool found = false;
    for (u32 k = 0; k < b->count && !found; k++) found = loop_terms_equal(&a->terms[i], &b->terms[k]);
    if (!found) return false;
  }
  return true;
}

/* An index stays within 0 .. size - 1. */
static bool raise_range(Raise *r, const Affine *a, u32 size) {
  for (u32 i = 0; i < r->range_count; i++) {
    const Within *x = &r->ranges[i];
    if (x->size == size && x->at.constant == a->constant && affine_beside(&x->at, a)) return true;
  }
  if (r->range_count == RAISE_RANGES) return false;
  r->ranges[r->range_count++] = (Within){*a, size};
  return true;
}

static bool is_trip(const Raise *r, u32 id) {
  const LoopNode *n = raise_node(r, id);
  return id && n->op == LOOP_INDEX && n->a == r->loop;
}

static bool affine_add(Raise *r, Affine *a, u32 id, LoopTerm by, u32 depth) {
  const LoopNode *n = raise_node(r, id);
  bool plain = !by.stride[0] && !by.stride[1];
  i64 k;
  if (raise_constant(r, id, &k)) {
    by.coef *= k;
    if (plain) a->constant += by.coef;
    return plain || affine_term(a, by);
  }
  if (is_trip(r, id)) {
    by.var = id;
    if (!plain) return affine_term(a, by); /* times a size that is known once the loop begins */
    a->coef += by.coef;
    return true;
  }
  if (r->lanes && n->op == LOOP_INDEX && n->a == r->inner.loop) {
    by.var = id;
    return affine_term(a, by);
  }
  if (depth && (n->op == LOOP_ADD || n->op == LOOP_SUB)) {
    LoopTerm minus = by;
    minus.coef = n->op == LOOP_SUB ? -by.coef : by.coef;
    const u32 b = n->b;
    return affine_add(r, a, n->a, by, depth - 1) && affine_add(r, a, b, minus, depth - 1);
  }
  if (depth && n->op == LOOP_MUL && (raise_constant(r, n->a, &k) || raise_constant(r, n->b, &k)) && k < 1 << 20 &&
      k > -(1 << 20)) {
    by.coef *= k;
    return affine_add(r, a, raise_node(r, n->a)->op == LOOP_CONST ? n->b : n->a, by, depth - 1);
  }
  const LoopNode *less = raise_node(r, n->a);
  if (depth && n->op == LOOP_SELECT && less->op == LOOP_LT && less->a == n->c && raise_constant(r, less->b, &k) &&
      k == 0) { /* counted from the end where it is negative */
    Affine x = {0};
    if (affine_add(r, &x, n->c, (LoopTerm){.coef = 1}, depth - 1) &&
        (affine_positive(r, &x) || raise_range(r, &x, loop_const(r->fn, LT_I64, INT64_MAX))))
      return affine_add(r, a, raise_node(r, id)->c, by, depth - 1);
  }
  if (!raise_follows(r, id, false, RAISE_DEPTH)) return false;
  by.var = raise_known(r, id);
  return affine_term(a, by);
}

/* Of what is stored, `coef` says how it goes along with the trips: what is a size apart can be loaded alone. */
bool affine_of(Raise *r, const LoopNode *access, Affine *a) {
  *a = (Affine){.constant = (i64)access->imm};
  for (u32 i = 0; i < access->count; i++) {
    LoopTerm t = loop_terms(r->fn, access)[i];
    if (!raise_outside(r, t.stride[0]) || !raise_outside(r, t.stride[1])) return false;
    u32 var = t.var;
    t.var = 0;
    if (var ? !affine_add(r, a, var, t, RAISE_DEPTH) : !affine_term(a, t)) return false;
  }
  bool sized = false;
  for (u32 i = 0; i < a->count; i++) sized |= is_trip(r, a->terms[i].var);
  return r->lanes || (a->coef <= COEF_MOST && a->coef >= -COEF_MOST && !(sized && a->coef));
}

/* May both be looked at by trips of one call: `store` is written. */
static bool raise_apart(Raise *r, u32 store, u32 other) {
  const Spot *s = &r->spots[store], *o = &r->spots[other];
  if (s->buffer != o->buffer || store == other) return true;
  if (s->at.coef != o->at.coef) return false;
  i64 coef = s->at.coef, by = o->at.constant - s->at.constant;
  if (affine_beside(&s->at, &o->at)) {
    if (by % coef != 0) return true;
    u64 trips = (u64)(by / coef < 0 ? -(by / coef) : by / coef);
    if (trips < r->most) r->most = trips;
    return trips >= TRIPS_LEAST;
  }
  if ((coef != 1 && coef != -1) || r->pair_count == RAISE_PAIRS) return false;
  r->pairs[r->pair_count++] = (Pair){(u8)store, (u8)other, !o->store && !(o->stores_before >> store & 1)};
  return true;
}

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

u32 raise_word(Raise *r, u32 id, LoopDir dir) {
  const LoopNode x = *raise_node(r, id);
  Made *m = r->made_of;
  if (x.op == LOOP_CONST && id != r->one) return loop_const(r->kernel, (LoopType)x.type, x.imm);
  for (u32 i = 0; i < m->words; i++)
    if (m->own[i] == id && (x.type != LT_PTR || loop_node(r->kernel, m->there[i])->aux == dir)) return m->there[i];
  if (m->words == RAISE_WORDS) return 0;
  char name[16];
  snprintf(name, sizeof name, "s%u", m->words);
  u32 there = x.type == LT_PTR ? loop_param_buffer(r->kernel, name, (LoopType)x.mem, dir)
                               : loop_param(r->kernel, name, (LoopType)x.type);
  m->own[m->words] = id;
  return m->there[m->words++] = there;
}

u32 raise_terms(Raise *r, const Affine *a, LoopTerm *out) {
  u32 count = 0;
  if (a->coef && r->base) {
    out[count++] = (LoopTerm){.coef = a->coef, .var = loop_node(r->kernel, r->index)->a};
    out[count++] = (LoopTerm){.coef = a->coef, .var = r->base};
  } else if (a->coef) {
    out[count++] = (LoopTerm){.coef = a->coef, .var = r->index};
  }
  for (u32 i = 0; i < a->count; i++) {
    LoopTerm t = a->terms[i];
    for (u32 k = 0; k < 2; k++)
      if (t.stride[k] && !(t.stride[k] = raise_word(r, t.stride[k], LOOP_IN))) return UINT32_MAX;
    if (!t.var) t.var = r->one = loop_const_i(r->fn, LT_I64, 1); /* strides alone: times one, a parameter */
    if (r->base && is_trip(r, t.var)) {
      t.var = r->base;
      out[count++] = t;
      t.var = loop_node(r->kernel, r->index)->a;
    } else {
      t.var = raise_operand(r, t.var);
    }
    r->one = 0;
    if (!t.var) return UINT32_MAX;
    out[count++] = t;
  }
  return count;
}

u32 raise_operand(Raise *r, u32 id) {
  if (!id) return 0;
  if (raise_outside(r, id)) return raise_word(r, id, LOOP_IN);
  const LoopNode *n = raise_node(r, id);
  return n->op == LOOP_INDEX && n->a == r->loop ? r->index : r->map[id];
}

Spot *raise_spot(Raise *r, const LoopNode *access) {
  Affine a;
  const LoopNode *buffer = raise_node(r, access->a);
  if (buffer->op != LOOP_PARAM || !affine_of(r, access, &a)) return NULL;
  for (u32 i = 0; i < r->count; i++) {
    Spot *s = &r->spots[i];
    if (s->buffer == access->a && s->at.constant == a.constant && affine_beside(&s->at, &a)) return s;
  }
  if (r->count == RAISE_PLACES) return NULL;
  r->spots[r->count] = (Spot){.buffer = access->a, .at = a};
  return &r->spots[r->count++];
}

bool raise_stores(const Raise *r, u32 buffer) {
  for (u32 pos = r->where[r->loop]; pos < r->end[r->loop]; pos++) {
    const LoopNode *n = raise_node(r, r->body[pos]);
    if (n->op == LOOP_STORE && n->a == buffer) return true;
  }
  return false;
}

bool raise_gather(Raise *r, u32 id) {
  const LoopNode n = *raise_node(r, id);
  LoopTerm terms[RAISE_TERMS];
  const LoopNode x = *raise_node(r, n.a);
  if (r->depth || x.op != LOOP_PARAM || n.count > RAISE_TERMS || loop_type_bytes((LoopType)x.mem) < 4 ||
      raise_stores(r, n.a))
    return false;
  for (u32 i = 0; i < n.count; i++) {
    terms[i] = loop_terms(r->fn, &n)[i];
    for (u32 k = 0; k < 2; k++)
      if (terms[i].stride[k] && (!raise_outside(r, terms[i].stride[k]) ||
                                 !(terms[i].stride[k] = raise_word(r, terms[i].stride[k], LOOP_IN))))
        return false;
    if (terms[i].var && !(terms[i].var = raise_operand(r, terms[i].var))) return false;
  }
  u32 buffer = raise_word(r, n.a, LOOP_IN);
  r->map[id] = buffer ? loop_load(r->kernel, buffer, (i64)n.imm, terms, n.count) : 0;
  return r->map[id] != 0;
}

/* What lies there as the trip begins; in an arm: the trips that do not come by look at it for nothing. */
bool raise_look(Raise *r, Spot *s) {
  LoopTerm terms[RAISE_OUT];
  u32 count = raise_terms(r, &s->at, terms), buffer = raise_word(r, s->buffer, LOOP_IN), at = (u32)(s - r->spots);
  if (count == UINT32_MAX || !buffer || (r->depth && !MECHANISM(r->n->c->vm, arms_look))) return false;
  for (u32 i = 0; i < r->count; i++) s->stores_before |= (u32)r->spots[i].store << i;
  s->load = true;
  s->now = loop_load(r->kernel, buffer, s->at.constant, terms, count);
  for (u32 i = 0; i < r->depth; i++) r->arms[i].before[at] = r->arms[i].yes[at] = s->now;
  return s->now != 0;
}

static bool raise_load(Raise *r, u32 id) {
  const LoopNode n = *raise_node(r, id);
  Spot *s = raise_spot(r, &n);
  if (!s) return raise_gather(r, id);
  if (!s->now && !raise_look(r, s)) return false;
  r->map[id] = s->now;
  return s->now != 0;
}

static bool raise_store(Raise *r, const LoopNode *n) {
  LoopType mem = (LoopType)raise_node(r, n->a)->mem;
  u32 value = raise_operand(r, n->b);
  Spot *s = raise_spot(r, n);
  if (!s || !value || s->at.coef == 0 || loop_value_type(mem) != mem) return false;
  if (r->depth && !s->now && !raise_look(r, s)) return false;
  s->store = true;
  s->now = value;
  return true;
}

/* ---- arms -------------------------------------------------------------------------------------------------------- */

static bool raise_if(Raise *r, u32 id) {
  if (r->depth == RAISE_IFS) return false;
  Arms *a = &r->arms[r->depth++];
  const Folded *beats = fold_of(r, loop_cond_of(r->fn, id));
  *a = (Arms){.head = id};
  if (beats) a->beats = *beats;
  else a->cond = raise_operand(r, loop_cond_of(r->fn, id));
  for (u32 i = 0; i < r->count; i++) a->before[i] = r->spots[i].now;
  return a->cond || a->beats.kind == FOLD_BEATS || fold_is_carry(beats);
}

static void raise_else(Raise *r) {
  Arms *a = &r->arms[r->depth - 1];
  a->is_other = true;
  for (u32 i = 0; i < r->count; i++) {
    a->yes[i] = r->spots[i].now;
    r->spots[i].now = a->before[i];
  }
}

static u32 raise_select(Raise *r, u32 cond, u32 yes, u32 no) {
  return yes == no ? yes : loop_emit(r->kernel, LOOP_SELECT, LT_VOID, cond, yes, no);
}

static bool raise_end(Raise *r) {
  Arms *a = &r->arms[--r->depth];
  if (!a->is_other) {
    r->depth++;
    raise_else(r);
    r->depth--;
  }
  for (u32 i = 0; i < r->count; i++) {
    if (r->spots[i].now != a->yes[i] && !a->cond) return false;
    if (r->spots[i].now && !(r->spots[i].now = raise_select(r, a->cond, a->yes[i], r->spots[i].now))) return false;
  }
  const LoopNode head = *raise_node(r, a->head);
  for (u32 i = 0; i < head.c; i++) {
    if (!a->gives || !a->other) return false;
    u32 given = loop_list(r->fn, raise_node(r, a->gives))[i], other = loop_list(r->fn, raise_node(r, a->other))[i],
        result = loop_result_of(r->fn, a->head, i);
    if (!a->cond || fold_of(r, given) || fold_of(r, other)) {
      if (!fold_select(r, result, a->cond, a->cond ? NULL : &a->beats, given, other)) return false;
      continue;
    }
    u32 yes = raise_operand(r, given), no = raise_operand(r, other);
    if (!yes || !no || !(r->map[result] = raise_select(r, a->cond, yes, no))) return false;
  }
  return true;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

/* Does a trip come by here: what the arms around ask for. */
static u32 raise_comes_by(Raise *r) {
  u32 all = 0;
  for (u32 i = 0; i < r->depth; i++) {
    const Arms *a = &r->arms[i];
    u32 one = a->is_other ? loop_emit(r->kernel, LOOP_NOT, LT_VOID, a->cond, 0, 0) : a->cond;
    all = all ? loop_emit(r->kernel, LOOP_AND, LT_VOID, all, one, 0) : one;
  }
  return all;
}

bool raise_counts(Raise *r, const LoopNode *check) {
  Affine x = {0};
  return check->aux == LOOP_CHECK_INDEX && raise_follows(r, check->b, false, RAISE_DEPTH) &&
         affine_add(r, &x, check->a, (LoopTerm){.coef = 1}, RAISE_DEPTH) &&
         raise_range(r, &x, raise_known(r, check->b));
}

/* An index that counts is asked about before the loop; other checks are made by a kernel of their own, before
 * anything is stored. Where one does not hold, the loop itself does the trips. */
static bool raise_check(Raise *r, const LoopNode *n) {
  LoopFn *k = r->kernel;
  if (raise_counts(r, n)) return true;
  r->checks++;
  for (u32 i = 0; i < r->depth; i++)
    if (!r->arms[i].cond) return false;
  u32 a = raise_operand(r, n->a), b = raise_operand(r, n->b);
  if (!a || (n->b && !b) || (r->depth && n->aux == LOOP_CHECK_INDEX)) return false;
  if (r->made_of != &r->ask) return true;
  if (r->depth) {
    u32 by = raise_comes_by(r);
    LoopType t = loop_type_of(k, a);
    if (n->aux == LOOP_CHECK_ASSERT)
      a = loop_emit(k, LOOP_OR, LT_VOID, loop_emit(k, LOOP_NOT, LT_VOID, by, 0, 0), a, 0);
    else
      a = loop_emit(k, LOOP_SELECT, LT_VOID, by, a, loop_const_i(k, t, 1));
  }
  return loop_check(k, (LoopCheck)n->aux, 0, a, b, 0, NULL) != 0;
}

/* ---- the body ---------------------------------------------------------------------------------------------------- */

/* Does it ask for what the loop carries. */
static bool raise_folds(const Raise *r, const LoopNode *n) {
  return raise_pure(n) && (fold_of(r, n->a) || fold_of(r, n->b) || fold_of(r, n->c));
}

/* More bits than the magnitude of an integer of the kernel has; 64: nothing is known, or it took too many steps. */
static u32 raise_bits(const LoopFn *k, u32 id, u32 *steps) {
  const LoopNode *n = loop_node(k, id);
  bool wraps = n->type == LT_U32 || n->type == LT_U64; /* a difference may be large */
  u32 x, y;
  if (!*steps || (wraps && n->op != LOOP_CONST)) return 64;
  --*steps;
  switch (n->op) {
    case LOOP_CONST: {
      i64 v = (i64)n->imm;
      u64 size = v < 0 ? 0 - (u64)v : (u64)v;
      return size ? 64 - (u32)__builtin_clzll(size) : 0;
    }
    case LOOP_CONVERT: {
      LoopType from = loop_type_of(k, n->a);
      return from == LT_I1 ? 1 : from == LT_U8 ? 8 : loop_is_int(from) ? raise_bits(k, n->a, steps) : 64;
    }
    case LOOP_ADD: case LOOP_SUB: case LOOP_MIN: case LOOP_MAX: case LOOP_MUL:
      x = raise_bits(k, n->a, steps), y = raise_bits(k, n->b, steps);
      if (n->op == LOOP_MUL) return x + y < 64 ? x + y : 64;
      if (x < y) x = y;
      return x + (n->op == LOOP_ADD || n->op == LOOP_SUB);
    case LOOP_NEG: case LOOP_ABS: case LOOP_SHR: return raise_bits(k, n->a, steps);
    default: return 64;
  }
}

bool raise_statement(Raise *r, u32 id) {
  const LoopNode n = *raise_node(r, id);
  LoopFn *k = r->kernel;
  InnerStep step = inner_statement(r, id);
  if (step != INNER_OTHER) return step == INNER_DONE;
  if (r->depth && ++r->in_arms > RAISE_ARMS) return false;
  if (raise_folds(r, &n)) return fold_statement(r, id);
  if (raise_pure(&n) || n.op == LOOP_MATH) {
    u32 a = raise_operand(r, n.a), b = raise_operand(r, n.b), c = raise_operand(r, n.c);
    /* functions and quotients are not for nothing */
    bool dear = n.op == LOOP_MATH || n.op == LOOP_DIV || n.op == LOOP_REM || n.op == LOOP_FLOORDIV || n.op == LOOP_MOD;
    bool in_vain = dear && r->depth && !(loop_is_int((LoopType)n.type) && raise_node(r, n.b)->op == LOOP_CONST);
    if (!a || (n.b && !b) || (n.c && !c) || in_vain) return false;
    u32 steps = RAISE_STEPS;
    bool fits = n.type == LT_I64 &&
                (r->level64 || (raise_node(r, n.b)->op == LOOP_CONST && raise_bits(r->kernel, a, &steps) < 32));
    if (dear && n.type != LT_F32 && n.type != LT_F64 && n.type != LT_I32 && !fits) return false;
    r->map[id] = n.op == LOOP_MATH ? loop_math(k, name_text(&r->fn->module->names, (Name)n.imm), a, b, c)
                                   : loop_emit(k, (LoopOp)n.op, (LoopType)n.type, a, b, c);
    return r->map[id] != 0;
  }
  switch (n.op) {
    case LOOP_LOAD: return raise_load(r, id);
    case LOOP_STORE: return raise_store(r, &n);
    case LOOP_CHECK: return raise_check(r, &n);
    case LOOP_IF: return raise_if(r, id);
    case LOOP_ELSE: raise_else(r); return true;
    case LOOP_YIELD: {
      Arms *a = r->depth ? &r->arms[r->depth - 1] : NULL;
      if (a) *(a->is_other ? &a->other : &a->gives) = id;
      return a != NULL;
    }
    case LOOP_END: return r->depth && raise_end(r);
    case LOOP_NEXT: return n.a == r->loop && !r->depth && fold_next(r, &n);
    default: return false;
  }
}

/* The poll, behind what computes its values, which follow from the index and from what the calls carry. */
static bool raise_find_poll(Raise *r) {
  r->carries = true;
  r->poll = 0;
  for (u32 pos = r->where[r->loop] + 1; pos < r->end[r->loop]; pos++) {
    u32 id = r->body[pos];
    const LoopNode *n = raise_node(r, id);
    if (raise_pure(n)) continue;
    r->poll = n->op == LOOP_POLL ? id : 0;
    for (u32 i = 0; i < n->count && r->poll; i++)
      if (!raise_follows(r, loop_list(r->fn, n)[i], true, RAISE_DEPTH)) r->poll = 0;
    break;
  }
  r->carries = false;
  return r->poll != 0;
}

static bool raise_independent(Raise *r) {
  for (u32 i = 0; i < r->count; i++)
    for (u32 k = 0; k < r->count && r->spots[i].store; k++)
      if (!(r->spots[k].store && k < i) && !raise_apart(r, i, k)) return false;
  return true;
}

static bool raise_any_store(const Raise *r) {
  bool any = false;
  for (u32 i = 0; i < r->count; i++) any |= r->spots[i].store;
  return any;
}

/* A kernel of the loop; false: it is none. */
static bool raise_kernel(Raise *r, Made *made) {
  LoopFn *fn = r->fn;
  char name[16];
  snprintf(name, sizeof name, "r%u", ++r->n->c->names);
  LoopFn *k = r->kernel = made->fn = loop_fn_new(fn->module, LOOP_KERNEL, name);
  if (!k) return false;
  r->made_of = made;
  made->words = r->count = r->pair_count = r->range_count = r->checks = r->depth = r->in_arms = r->inners = 0;
  r->inner.loop = 0;
  r->gives_up = false;
  memset(r->map, 0, sizeof *r->map * r->nodes);
  fold_begin(r);
  u32 head;
  r->base = 0;
  if (made->reduces) {
    head = fold_head(r, made);
  } else {
    head = loop_begin_par(k, NULL, loop_param(k, "n", LT_I64), 1);
    r->index = loop_index_of(head, 0);
  }
  if (!head) return false;
  for (u32 pos = r->where[r->loop] + 1; pos < r->end[r->loop]; pos++) {
    u32 id = r->body[pos];
    if (id == r->poll) continue;
    if (k->failed || !raise_statement(r, id)) return false;
  }
  if (!raise_independent(r) || (made->reduces && !fold_end(r, made, head))) return false;
  for (u32 i = 0; i < r->count && made == &r->work; i++) {
    const Spot *s = &r->spots[i];
    LoopTerm terms[RAISE_OUT];
    if (!s->store) continue;
    u32 count = raise_terms(r, &s->at, terms), buffer = raise_word(r, s->buffer, LOOP_OUT);
    if (count == UINT32_MAX || !buffer) return false;
    loop_store(k, buffer, s->at.constant, terms, count, s->now);
  }
  loop_end(k);
  return loop_fn_finish(k, NULL) == WEFT_OK && loops_drop_dead(k) && loops_verify(k, NULL) == WEFT_OK;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

u32 raise_op(Raise *r, LoopOp op, u32 a, u32 b) { return loop_emit(r->fn, op, LT_VOID, a, b, 0); }

static u32 raise_sum(Raise *r, const Affine *a) {
  u32 sum = loop_const_i(r->fn, LT_I64, a->constant);
  for (u32 i = 0; i < a->count; i++) {
    const LoopTerm *t = &a->terms[i];
    u32 x = loop_const_i(r->fn, LT_I64, t->coef);
    if (t->var) x = raise_op(r, LOOP_MUL, x, t->var);
    for (u32 k = 0; k < 2; k++)
      if (t->stride[k]) x = raise_op(r, LOOP_MUL, x, t->stride[k]);
    sum = raise_op(r, LOOP_ADD, sum, x);
  }
  return sum;
}

/* Trips that a call may take: as many as places lie apart. */
static u32 raise_most(Raise *r) {
  u32 least = loop_const_i(r->fn, LT_I64, (i64)r->most);
  for (u32 i = 0; i < r->pair_count; i++) {
    const Pair *p = &r->pairs[i];
    u32 by = raise_op(r, LOOP_SUB, raise_sum(r, &r->spots[p->b].at), raise_sum(r, &r->spots[p->a].at)),
        trips = loop_emit(r->fn, LOOP_ABS, LT_VOID, by, 0, 0);
    if (p->same) {
      u32 none = raise_op(r, LOOP_EQ, by, loop_const_i(r->fn, LT_I64, 0));
      trips = loop_emit(r->fn, LOOP_SELECT, LT_VOID, none, loop_const_i(r->fn, LT_I64, (i64)r->most), trips);
    }
    least = raise_op(r, LOOP_MIN, least, trips);
  }
  return least;
}

/* What counts stays within its bounds: the first and the last do, and there are not so many that it wraps. */
static u32 raise_within(Raise *r, u32 trips, u32 also) {
  LoopFn *fn = r->fn;
  for (u32 i = 0; i < r->range_count; i++) {
    const Within *x = &r->ranges[i];
    u32 first = raise_sum(r, &x->at), zero = loop_const_i(fn, LT_I64, 0), one = loop_const_i(fn, LT_I64, 1),
        by = raise_op(r, LOOP_MUL, raise_op(r, LOOP_SUB, trips, one), loop_const_i(fn, LT_I64, x->at.coef)),
        last = raise_op(r, LOOP_ADD, first, by), least = x->at.coef < 0 ? last : first,
        most = x->at.coef < 0 ? first : last;
    u32 fits = raise_op(r, LOOP_AND, raise_op(r, LOOP_GE, least, zero), raise_op(r, LOOP_LT, most, x->size)),
        few = i ? 0 : raise_op(r, LOOP_LT, trips, loop_const_i(fn, LT_I64, (i64)1 << 40));
    also = also ? raise_op(r, LOOP_AND, also, fits) : fits;
    if (few) also = raise_op(r, LOOP_AND, also, few);
  }
  return also;
}

static u32 raise_put(Raise *r, const Made *m, u32 trips, u32 from, u32 to, u32 exit, u32 count, const u32 *values) {
  u32 args[RAISE_WORDS + 3];
  args[0] = trips;
  memcpy(args + 1, m->own, sizeof *args * m->words);
  args[m->words + 1] = from;
  args[m->words + 2] = to;
  return loop_call(r->fn, m->fn, m->words + 3, args, exit, count, values);
}

/* The numbers that the calls carry, in `list` behind its first `count`. */
static u32 raise_carried(const Raise *r, const u32 *numbers, u32 *list, u32 count) {
  for (u32 i = 0; i < r->carried && i < RAISE_FOLDS; i++)
    if (r->folds[i].kind != FOLD_FOLLOWS) list[count++] = numbers[i];
  return count;
}

/* `done = while (d = 0, carried) { left = trips - d; if left and most are enough { poll; if ask { call; next } }
 * break d, carried }` */
static u32 raise_call(Raise *r, u32 trips) {
  LoopFn *fn = r->fn;
  const LoopNode poll = *raise_node(r, r->poll);
  u32 zero = loop_const_i(fn, LT_I64, 0), few = r->folding ? FOLD_LEAST : TRIPS_LEAST,
      least = loop_const_i(fn, LT_I64, few - 1), most = raise_most(r),
      enough = r->pair_count ? raise_op(r, LOOP_LT, least, most) : 0, list[RAISE_FOLDS + 1] = {zero}, count,
      inner = inner_few(r), *values = arena_alloc(&r->n->c->arena, sizeof *values * (poll.count + 1));
  if (!values) return 0;
  if (inner) enough = enough ? raise_op(r, LOOP_AND, enough, inner) : inner;
  enough = raise_within(r, trips, enough);
  for (u32 i = 0; i < r->carried && i < RAISE_FOLDS; i++) r->now[i] = loop_init_of(fn, r->loop, i);
  count = raise_carried(r, r->now, list, 1);
  u32 head = loop_begin_while(fn, count, list), done = loop_carry_of(fn, head, 0),
      left = raise_op(r, LOOP_SUB, trips, done), some = raise_op(r, LOOP_LT, least, left);
  for (u32 i = 0, k = 0; i < r->carried && i < RAISE_FOLDS; i++)
    r->now[i] = r->folds[i].kind == FOLD_FOLLOWS ? 0 : loop_carry_of(fn, head, ++k);
  loop_begin_if(fn, enough ? raise_op(r, LOOP_AND, some, enough) : some, 0, NULL);
  for (u32 i = 0; i < poll.count; i++) values[i] = raise_value(r, fn->list.data[poll.list + i], done);
  /* Fuel is that of a kernel of so many elements. */
  u32 next = raise_op(r, LOOP_MIN, left, most), to = raise_op(r, LOOP_ADD, done, next), odd = 0,
      units = raise_op(r, LOOP_SHR, raise_op(r, LOOP_ADD, next, loop_const_i(fn, LT_I64, 1023)),
                       loop_const_i(fn, LT_I64, 10));
  if (!loop_begin_for(fn, NULL, units, 0, NULL)) return 0;
  loop_poll(fn, (u32)poll.imm, poll.count, values);
  loop_next(fn, 0, NULL);
  loop_end(fn);
  if (r->checks) {
    u32 asked = raise_put(r, &r->ask, trips, done, to, 0, 0, NULL);
    loop_begin_if(fn, loop_result_of(fn, asked, 0), 0, NULL);
  }
  if (r->folding) odd = fold_chains(r, done, to);
  if (odd) loop_begin_if(fn, loop_emit(fn, LOOP_NOT, LT_VOID, odd, 0, 0), 0, NULL);
  if (r->folding) fold_latches(r, done, to);
  u32 exit = r->gives_up ? 0 : (u32)poll.imm, exits = r->gives_up ? 0 : poll.count, went = 0;
  if (r->work.fn) went = raise_put(r, &r->work, trips, done, to, exit, exits, values);
  if (r->gives_up) loop_begin_if(fn, loop_result_of(fn, went, 0), 0, NULL);
  list[0] = to;
  loop_next(fn, raise_carried(r, r->next, list, 1), list);
  if (r->gives_up) loop_end(fn);
  if (odd) loop_end(fn);
  if (r->checks) loop_end(fn);
  loop_end(fn);
  list[0] = done;
  loop_break(fn, raise_carried(r, r->now, list, 1), list);
  loop_end(fn);
  for (u32 i = 0, k = 0; i < r->carried && i < RAISE_FOLDS; i++)
    if (r->now[i]) r->now[i] = loop_result_of(fn, head, ++k);
  return loop_result_of(fn, head, 0);
}

/* What the loop begins with behind `done` trips; `r->loop` is it, or its copy. */
static void raise_begin(Raise *r, u32 loop, u32 trips, u32 done) {
  LoopFn *fn = r->fn;
  const LoopNode head = *raise_node(r, loop);
  const LoopNode *next = raise_node(r, r->body[r->end[r->loop] - 1]);
  const u32 first = next->list;
  u32 last = raise_op(r, LOOP_SUB, done, loop_const_i(fn, LT_I64, 1)),
      any = raise_op(r, LOOP_LT, loop_const_i(fn, LT_I64, 0), done);
  for (u32 i = 0; i < head.b; i++) {
    if (i < RAISE_FOLDS && r->now[i]) {
      fn->list.data[head.list + 1 + i] = r->now[i];
      continue;
    }
    u32 value = raise_value(r, fn->list.data[first + i], last);
    fn->list.data[head.list + 1 + i] =
      loop_emit(fn, LOOP_SELECT, LT_VOID, any, value, fn->list.data[head.list + 1 + i]);
  }
  fn->list.data[head.list] = raise_op(r, LOOP_SUB, trips, done);
}

/* Every use of the loop's index in its body is one of `to`. */
static void raise_renumber(Raise *r, u32 to) {
  LoopFn *fn = r->fn;
  u32 from = loop_index_of(r->loop, 0);
  for (u32 pos = r->where[r->loop] + 1; pos < r->end[r->loop]; pos++) {
    LoopNode *n = &fn->nodes.data[r->body[pos]];
    LoopForm form = loop_op_form((LoopOp)n->op);
    bool access = form == LOOP_FORM_ACCESS, listed = form >= LOOP_FORM_CHECK && form != LOOP_FORM_MARK;
    if (form <= LOOP_FORM_CHECK && form != LOOP_FORM_LEAF) {
      if (n->a == from) n->a = to;
      if (n->b == from) n->b = to;
      if (n->c == from && !access) n->c = to;
    }
    for (u32 i = 0; i < n->count && access; i++)
      if (fn->terms.data[n->list + i].var == from) fn->terms.data[n->list + i].var = to;
    for (u32 i = 0; i < n->count && listed; i++)
      if (fn->list.data[n->list + i] == from) fn->list.data[n->list + i] = to;
  }
}

/* ---- all loops --------------------------------------------------------------------------------------------------- */

/* A count of trips that is known, and small: first, of a range between constants. */
static bool raise_few(const Raise *r, u32 loop) {
  const LoopNode *n = raise_node(r, loop_trips_of(r->fn, loop, 0));
  i64 first, last;
  if (n->op == LOOP_SELECT) n = raise_node(r, n->b);
  if (n->op == LOOP_CONST) return n->imm < 2 * TRIPS_LEAST;
  return n->op == LOOP_SUB && raise_constant(r, n->a, &last) && raise_constant(r, n->b, &first) &&
         last < first + 2 * TRIPS_LEAST;
}

static bool raise_wants(Raise *r, u32 loop) {
  const LoopNode *n = raise_node(r, loop);
  if (n->op != LOOP_FOR || n->a != 1 || raise_few(r, loop)) return false;
  for (u32 pos = r->where[loop] + 1; pos < r->end[loop]; pos++) {
    const LoopNode *x = raise_node(r, r->body[pos]);
    if (loop_is_head(x) && x->op != LOOP_IF && !inner_wanted(r, loop)) return false;
  }
  return raise_node(r, r->body[r->end[loop] - 1])->op == LOOP_NEXT;
}

/* All kernels of the loop; false: it stays as it is. What stores comes first: it tells what is carried. */
static bool raise_kernels(Raise *r) {
  LoopModule *module = r->fn->module;
  u32 fns = module->fns.count;
  i64 trips;
  if (!raise_find_poll(r) || !raise_kernel(r, &r->work) || !fold_plan(r)) return false;
  bool stores = raise_any_store(r);
  if (r->inners) {
    if (r->folding || !stores || r->n->c->vm->limits.fuel != UINT64_MAX || !MECHANISM(r->n->c->vm, inner_loops) ||
        (r->gives_up && (r->checks || !inner_may_repeat(r))))
      return false;
    if (r->most > INNER_CALL) r->most = INNER_CALL;
  }
  if (r->folding) { /* where fuel is limited, each trip is counted */
    bool few = raise_constant(r, loop_trips_of(r->fn, r->loop, 0), &trips) && trips < 2 * FOLD_LEAST;
    if (few || r->n->c->vm->limits.fuel != UINT64_MAX || !MECHANISM(r->n->c->vm, reduced_loops) || !raise_find_poll(r))
      return false;
  }
  if (!stores) {
    if (!r->reduced_count) return false;
    loop_module_truncate(module, fns, module->tables.count);
    r->work.fn = NULL;
  }
  if (r->checks && !raise_kernel(r, &r->ask)) return false;
  for (u32 i = 0; i < r->reduced_count; i++)
    if (!raise_kernel(r, &r->reduced[i])) return false;
  return true;
}

/* Puts the calls of a loop in front of it, where the new body ends, made of it or of a copy. Gives how many trips they
 * make; 0: none. */
static u32 raise_loop(Raise *r, u32 loop, u32 copy) {
  LoopFn *fn = r->fn;
  Native *n = r->n;
  u32 fns = fn->module->fns.count, names = n->c->names, written = fn->body.count;
  r->loop = copy ? copy : loop;
  r->made_count = 0;
  r->most = TRIPS_MOST;
  r->carried = raise_node(r, loop)->b;
  memset(r->folds, 0, sizeof r->folds);
  memset(r->now, 0, sizeof r->now);
  if (!raise_kernels(r)) {
    loop_module_truncate(fn->module, fns, fn->module->tables.count);
    n->c->names = names;
    fn->body.count = written;
    return 0;
  }
  u32 trips = loop_trips_of(fn, loop, 0), done = raise_call(r, trips);
  if (!done || fn->failed) return 0;
  raise_begin(r, loop, trips, done);
  r->loop = loop;
  n->raised++;
  bool pushed = (!r->work.fn || vec_push(n->c->alloc, &n->kernels, r->work.fn)) &&
                (!r->checks || vec_push(n->c->alloc, &n->kernels, r->ask.fn));
  for (u32 i = 0; i < r->reduced_count && pushed; i++)
    pushed = vec_push(n->c->alloc, &n->kernels, r->reduced[i].fn);
  if (!pushed) fn->failed = "out of memory";
  return done;
}

/* The copies of loops around loops of a few trips: `copy`, by node. */
static bool raise_copies(Native *n, u32 *copy) {
  const Hoist *h = MECHANISM(n->c->vm, short_loops_in_trips) ? hoist_read(n) : NULL;
  for (u32 pos = 0; h && pos < h->body_count; pos++) copy[h->body[pos]] = native_written_out(n, h, h->body[pos]);
  return !n->fn->failed;
}

bool native_raise(Native *n) {
  LoopFn *fn = n->fn;
  Compiler *c = n->c;
  if ((c->limits && c->limits->exact) || c->device != DEV_CPU || !MECHANISM(c->vm, raised_loops)) return true;
  Raise *r = arena_alloc(&c->arena, sizeof *r);
  u32 real = fn->body.count, was = fn->nodes.count, *copy = arena_alloc(&c->arena, sizeof *copy * was);
  if (!r || !copy) return false;
  memset(copy, 0, sizeof *copy * was);
  if (!raise_copies(n, copy)) return false;
  u32 nodes = fn->nodes.count, count = fn->body.count, depth = 0, wanted = 0,
      *words = arena_alloc(&c->arena, sizeof *words * (4 * (size_t)nodes + count + 1));
  Folded *folded = arena_alloc(&c->arena, sizeof *folded * nodes);
  if (!words || !folded) return false;
  *r = (Raise){.n = n, .fn = fn, .where = words, .end = words + nodes, .map = words + 2 * nodes, .nodes = nodes,
               .folded = folded,
               .level64 = c->code->state->cpu != VEC_AVX2};
  u32 *open = words + 3 * nodes, *old = words + 4 * nodes;
  memset(words, 0, sizeof *words * 2 * nodes);
  r->body = old;
  for (u32 pos = 0; pos < count; pos++) {
    u32 id = old[pos] = fn->body.data[pos];
    const LoopNode *x = raise_node(r, id);
    r->where[id] = pos;
    if (loop_is_head(x)) open[depth++] = id;
    if (x->op == LOOP_END) r->end[open[--depth]] = pos;
  }
  fn->body.count = real;
  for (u32 pos = 0; pos < count; pos++) wanted += raise_wants(r, old[pos]);
  if (!wanted) return true;
  fn->body.count = 0;
  for (u32 pos = 0; pos < real; pos++) {
    u32 id = old[pos], other = copy[id], done = raise_wants(r, other ? other : id) ? raise_loop(r, id, other) : 0;
    if (!vec_push(c->alloc, &fn->body, id)) return false;
    if (!done) continue;
    u32 index = loop_emit(fn, LOOP_ADD, LT_VOID, loop_index_of(id, 0), done, 0);
    raise_renumber(r, index);
  }
  return !fn->failed;
}
