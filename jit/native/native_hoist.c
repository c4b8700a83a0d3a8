/* native_hoist.c — checks of indices before loops instead of in every trip.
 *
 * Before a trip has done anything the loop's poll can leave, and to leave early is always right: the interpreter
 * finds what is wrong where it is wrong. So a check that each trip makes, whose operands the loop does not change,
 * is made before the loop, and one of an index that counts with the loop is made for the first and the last trip; if
 * it fails, the function leaves as the first trip's poll would. Loops without trips check nothing. What only some
 * trips check, or what stands behind a way out of the loop, stays. In `while c < limit { … c += step }` and in
 * `while c > limit { … c -= step }` c lies between its first value and the limit. In `while 2 * c + 1 < limit { … c
 * = 2 * c + 1 }`, as heaps have it, what goes on and what is looked at lies below the limit. */
#include "jit/native/native_hoist.h"

#include <string.h>

static const LoopNode *at(const Hoist *h, u32 id) { return loop_node(h->fn, id); }

static bool is_pure(const LoopNode *n) {
  LoopForm form = loop_op_form((LoopOp)n->op);
  return form >= LOOP_FORM_UNARY && form <= LOOP_FORM_CONVERT;
}

/* The number that a value is, as far as that follows from constants. */
static bool hoist_constant(const Hoist *h, u32 id, u32 depth, u64 *out) {
  const LoopNode *n = at(h, id);
  u64 x[3] = {0};
  *out = n->imm;
  if (n->op == LOOP_CONST) return true;
  if (depth == 0 || !is_pure(n)) return false;
  u32 operands[3] = {n->a, n->b, n->c};
  for (u32 i = 0; i < 3; i++)
    if (operands[i] && !hoist_constant(h, operands[i], depth - 1, &x[i])) return false;
  return loop_eval((LoopOp)n->op, (LoopType)n->type, loop_type_of(h->fn, n->a), x[0], x[1], x[2], out);
}

/* ---- what is known before a loop ------------------------------------------------------------ */

bool hoist_known(const Hoist *h, u32 id, u32 loop, bool first, u32 depth) {
  const LoopNode *n = at(h, id);
  if (!id || n->op == LOOP_PARAM || n->op == LOOP_CONST || n->op == LOOP_TABLE) return true;
  bool leaf = n->op == LOOP_INDEX || n->op == LOOP_CARRY || n->op == LOOP_RESULT;
  u32 place = h->where[leaf ? n->a : id];
  if (leaf && n->a == loop && n->op != LOOP_RESULT) return first;
  if (place < h->where[loop] || place > h->end[loop]) return true;
  if (leaf || depth == 0 || !is_pure(n)) return false;
  return hoist_known(h, n->a, loop, first, depth - 1) && hoist_known(h, n->b, loop, first, depth - 1) &&
         hoist_known(h, n->c, loop, first, depth - 1);
}

static bool sum_known(const Hoist *h, const Sum *s, u32 loop) {
  for (u32 i = 0; i < s->pluses; i++)
    if (!hoist_known(h, s->plus[i], loop, false, HOIST_DEPTH)) return false;
  for (u32 i = 0; i < s->minuses; i++)
    if (!hoist_known(h, s->minus[i], loop, false, HOIST_DEPTH)) return false;
  return true;
}

/* Behind what computes its values. */
u32 hoist_poll(const Hoist *h, u32 loop) {
  for (u32 pos = h->where[loop] + 1; pos < h->end[loop]; pos++) {
    u32 id = h->fn->body.data[pos];
    const LoopNode *n = at(h, id);
    if (is_pure(n)) continue;
    if (n->op != LOOP_POLL) return 0;
    for (u32 i = 0; i < n->count; i++)
      if (!hoist_known(h, loop_list(h->fn, n)[i], loop, true, HOIST_DEPTH)) return 0;
    return id;
  }
  return 0;
}

/* ---- sums ----------------------------------------------------------------------------------- */

/* Not negative: indices of loops do not come near 2^62. */
static bool is_positive(const Hoist *h, const Sum *s) {
  bool positive = !s->minuses && !(s->constant >> 62);
  for (u32 i = 0; i < s->pluses; i++) positive = positive && at(h, s->plus[i])->op == LOOP_INDEX;
  return positive;
}

/* x < 0 ? x + size : x */
static bool is_from_end(const Hoist *h, const LoopNode *n) {
  const LoopNode *less = at(h, n->a);
  u64 zero;
  return n->op == LOOP_SELECT && n->type == LT_I64 && less->op == LOOP_LT && less->a == n->c &&
         hoist_constant(h, less->b, 0, &zero) && zero == 0;
}

static bool add_value(const Hoist *h, Sum *s, u32 id, bool minus, u32 depth) {
  const LoopNode *n = at(h, id);
  u64 value;
  if (hoist_constant(h, id, 3, &value)) {
    s->constant += minus ? 0 - value : value;
    return true;
  }
  if (depth && (n->op == LOOP_ADD || n->op == LOOP_SUB))
    return add_value(h, s, n->a, minus, depth - 1) && add_value(h, s, n->b, minus ^ (n->op == LOOP_SUB), depth - 1);
  Sum x = {0};
  if (depth && is_from_end(h, n) && add_value(h, &x, n->c, false, HOIST_DEPTH) && is_positive(h, &x))
    return add_value(h, s, n->c, minus, HOIST_DEPTH);
  u32 *other = minus ? s->plus : s->minus, *others = minus ? &s->pluses : &s->minuses;
  for (u32 i = 0; i < *others; i++) {
    if (other[i] != id) continue;
    other[i] = other[--*others];
    other[*others] = 0;
    return true;
  }
  u32 *count = minus ? &s->minuses : &s->pluses;
  if (*count == HOIST_TERMS) return false;
  (minus ? s->minus : s->plus)[(*count)++] = id;
  return true;
}

/* A number that is above 0: without what makes it 0 where it is below. */
static u32 above_zero(const Hoist *h, u32 id) {
  for (u32 i = 0; i < HOIST_DEPTH; i++) {
    const LoopNode *n = at(h, id);
    u64 value;
    u32 other = n->op == LOOP_SELECT ? n->c : n->b;
    if ((n->op != LOOP_SELECT && n->op != LOOP_MAX && n->op != LOOP_SUB) ||
        !hoist_constant(h, other, 3, &value) || value != 0)
      return id;
    if (n->op == LOOP_SELECT) {
      const LoopNode *less = at(h, n->a), *difference = at(h, n->b);
      if (less->op != LOOP_LT || difference->op != LOOP_SUB || less->a != difference->b || less->b != difference->a)
        return id;
      other = n->b;
    } else {
      other = n->a;
    }
    id = other;
  }
  return id;
}

/* What a loop has in trips, when it has any: `end - first` where that is known. *sure: below 2^63. */
static bool add_trips(const Hoist *h, Sum *s, u32 trips, bool *sure) {
  u64 value;
  *sure = hoist_constant(h, trips, 3, &value) && !(value >> 63);
  if (*sure) return add_value(h, s, trips, false, 0);
  u32 some = above_zero(h, trips);
  const LoopNode *n = at(h, some), *chosen = at(h, trips);
  *sure = some != trips && chosen->op == LOOP_SELECT && hoist_constant(h, at(h, chosen->a)->a, 3, &value) &&
          !(value >> 63);
  if (n->op != LOOP_SUB) return add_value(h, s, some, false, 0);
  const LoopNode *most = at(h, n->a);
  u32 end = most->op != LOOP_MAX ? n->a : most->a == n->b ? most->b : most->b == n->b ? most->a : n->a;
  return add_value(h, s, end, false, 3) && add_value(h, s, n->b, true, 3);
}

/* Takes the index of a loop out of a sum that holds it once. */
static bool without_index(Sum *s, u32 index) {
  for (u32 i = 0; i < s->pluses; i++) {
    if (s->plus[i] != index) continue;
    s->plus[i] = s->plus[--s->pluses];
    s->plus[s->pluses] = 0;
    return true;
  }
  return false;
}

/* ---- moving out ----------------------------------------------------------------------------- */

static bool note(Hoist *h, const Hoisted *c) {
  for (u32 i = 0; i < h->count; i++)
    if (memcmp(&h->checks[i], c, sizeof *c) == 0) return true;
  if (h->count == HOIST_CHECKS) return false;
  h->checks[h->count++] = *c;
  return true;
}

/* The check, in each trip of `loop`, before the loop. `all`: each trip comes by. */
static bool move_out(Hoist *h, Hoisted c, u32 loop, bool all) {
  u32 trips = loop_trips_of(h->fn, loop, 0), was = h->count;
  for (u32 i = 0; i < c.loops; i++)
    if (!hoist_known(h, c.trips[i], loop, false, HOIST_DEPTH)) return false;
  if (!sum_known(h, &c.y, loop)) return false;
  bool counts = !sum_known(h, &c.x, loop);
  if (counts && (!all || !without_index(&c.x, loop_index_of(loop, 0)) || !sum_known(h, &c.x, loop))) return false;
  u64 number;
  if (!hoist_constant(h, trips, 3, &number)) {
    if (c.loops == HOIST_LOOPS) return false;
    c.trips[c.loops++] = trips;
  } else if (number == 0) {
    return false;
  }
  c.head = loop;
  bool ok = true;
  if (counts) { /* first and trips below 2^63: first + trips - 1 does not wrap, and what lies between is less */
    Hoisted first = c, few = c, last = c;
    bool sure;
    ok = add_trips(h, &last.x, trips, &sure);
    last.x.constant--;
    few.x = (Sum){.plus = {trips}, .pluses = 1};
    first.y = few.y = (Sum){.constant = (u64)1 << 63};
    ok = ok && note(h, &last) && (is_positive(h, &first.x) || note(h, &first)) && (sure || note(h, &few));
  } else {
    ok = note(h, &c);
  }
  if (!ok) h->count = was;
  return ok;
}

/* Is what stands before an inner loop checked before `loop` too. */
static bool implied(const Hoist *h, const Hoisted *c, u32 loop) {
  for (u32 i = 0; i < h->count; i++) {
    const Hoisted *k = &h->checks[i];
    bool all = k->head == loop && memcmp(&k->x, &c->x, sizeof c->x) == 0 && memcmp(&k->y, &c->y, sizeof c->y) == 0;
    for (u32 j = 0; j < k->loops && all; j++) {
      bool wanted = k->trips[j] == loop_trips_of(h->fn, loop, 0);
      for (u32 m = 0; m < c->loops; m++) wanted = wanted || c->trips[m] == k->trips[j];
      all = wanted;
    }
    if (all) return true;
  }
  return false;
}

/* Does each trip make the same check in front of this place, further in? */
static bool made_before(const Hoist *h, u32 begin, u32 pos) {
  const LoopNode *n = at(h, h->fn->body.data[pos]);
  Sum x = {0};
  if (!add_value(h, &x, n->a, false, 3)) return false;
  for (u32 i = begin, depth = 0; i < pos; i++) {
    const LoopNode *m = at(h, h->fn->body.data[i]);
    Sum was = {0};
    if (m->op == LOOP_END) depth--;
    if (depth == 0 && m->op == LOOP_CHECK && m->aux == LOOP_CHECK_INDEX && m->b == n->b &&
        add_value(h, &was, m->a, false, 3) && memcmp(&was, &x, sizeof x) == 0)
      return true;
    if (loop_is_head(m)) depth++;
  }
  return false;
}

static void hoist_from(Hoist *h, u32 loop) {
  LoopFn *fn = h->fn;
  u32 begin = h->where[loop] + 1, end = h->end[loop], depth = 0, way_out = end;
  for (u32 pos = begin; pos < end && way_out == end; pos++) {
    const LoopNode *n = at(h, fn->body.data[pos]);
    if (loop_is_head(n)) depth++;
    if (n->op == LOOP_END) depth--;
    bool leaves = n->op == LOOP_BREAK || (n->op == LOOP_NEXT && depth);
    if ((leaves && n->a == loop) || n->op == LOOP_RETURN || n->op == LOOP_EXIT) way_out = pos;
  }
  depth = 0;
  for (u32 pos = begin; pos < way_out; pos++) {
    u32 id = fn->body.data[pos], before = h->count;
    const LoopNode *n = at(h, id);
    if (n->op == LOOP_END) depth--;
    if (depth == 0 && n->op == LOOP_CHECK && n->aux == LOOP_CHECK_INDEX) {
      Hoisted c = {.head = 0};
      if (add_value(h, &c.x, n->a, false, 3) && add_value(h, &c.y, n->b, false, 0))
        h->dropped[id] = move_out(h, c, loop, way_out == end);
    } else if (n->op == LOOP_CHECK && n->aux == LOOP_CHECK_INDEX && !h->dropped[id]) {
      h->dropped[id] = made_before(h, begin, pos);
    }
    for (u32 i = 0; depth == 0 && n->op == LOOP_FOR && i < before; i++)
      if (h->checks[i].head == id && move_out(h, h->checks[i], loop, way_out == end)) h->checks[i].head = 0;
    if (loop_is_head(n)) depth++;
  }
  for (u32 i = 0; i < h->count; i++)
    if (h->checks[i].head && h->where[h->checks[i].head] > begin && h->where[h->checks[i].head] < end &&
        implied(h, &h->checks[i], loop))
      h->checks[i].head = 0;
}

/* ---- while loops whose number grows ------------------------------------------------------------ */

/* times * c + plus, of the carried number: below 2^62 where c is below 2^48. */
typedef struct Line {
  u64 times, plus;
} Line;

enum { GROWN_FACTS = 8, GROWN_DEPTH = 4 };

/* What holds at a place of the trip: the loop's condition and those of the arms around it. */
typedef struct Grown {
  const Hoist *h;
  u32 loop, cond, carry, limit;
  Line facts[GROWN_FACTS]; /* each < limit */
  u32 count;
  bool sure; /* the loop's condition among them */
} Grown;

static bool line_of(const Grown *g, u32 id, u32 depth, Line *out) {
  const LoopNode *n = at(g->h, id);
  Line x, y;
  u64 value;
  *out = (Line){1, 0};
  if (n->op == LOOP_CARRY && n->a == g->loop) return id == g->carry;
  if (hoist_constant(g->h, id, 3, &value)) {
    *out = (Line){0, value};
  } else {
    if (!depth || (n->op != LOOP_ADD && n->op != LOOP_MUL) || !line_of(g, n->a, depth - 1, &x) ||
        !line_of(g, n->b, depth - 1, &y) || (n->op == LOOP_MUL && x.times && y.times))
      return false;
    *out = n->op == LOOP_ADD ? (Line){x.times + y.times, x.plus + y.plus}
                             : (Line){x.times * y.plus + y.times * x.plus, x.plus * y.plus};
  }
  return out->times <= 1 << 12 && out->plus <= 1 << 30;
}

/* What an arm of an `if` gives as its result, if it gives anything. */
static u32 arm_gives(const Hoist *h, u32 result, bool yes) {
  const LoopNode *r = at(h, result);
  u32 pos = h->end[r->a];
  if (yes)
    while (!(at(h, h->fn->body.data[pos])->op == LOOP_ELSE && at(h, h->fn->body.data[pos])->a == r->a)) pos--;
  const LoopNode *gives = at(h, h->fn->body.data[pos - 1]);
  return gives->op == LOOP_YIELD && gives->a == r->a ? loop_list(h->fn, gives)[r->b] : 0;
}

static bool is_if_result(const Hoist *h, u32 id) {
  return at(h, id)->op == LOOP_RESULT && at(h, at(h, id)->a)->op == LOOP_IF;
}

/* A condition that holds: of `and`, and of `if`s that give false where another does not hold, both. */
static void learn(Grown *g, u32 cond, u32 depth) {
  const LoopNode *n = at(g->h, cond);
  u64 no;
  if (cond == g->cond) g->sure = true;
  if (n->op == LOOP_AND && depth) {
    learn(g, n->a, depth - 1);
    learn(g, n->b, depth - 1);
  } else if (is_if_result(g->h, cond) && depth) {
    u32 asked = loop_cond_of(g->h->fn, n->a), yes = arm_gives(g->h, cond, true), other = arm_gives(g->h, cond, false);
    if (!yes || !other || (other != asked && (!hoist_constant(g->h, other, 0, &no) || no))) return;
    learn(g, asked, depth - 1);
    learn(g, yes, depth - 1);
  } else if ((n->op == LOOP_LT || n->op == LOOP_GT) && g->count < GROWN_FACTS &&
             loop_type_of(g->h->fn, n->a) == LT_I64) {
    u32 less = n->op == LOOP_LT ? n->a : n->b, limit = n->op == LOOP_LT ? n->b : n->a;
    if (limit == g->limit && line_of(g, less, 3, &g->facts[g->count])) g->count++;
  }
}

/* 0 <= value < limit, here. */
static bool is_below(Grown *g, u32 id, u32 depth) {
  const LoopNode *n = at(g->h, id);
  Line x;
  if (!g->sure) return false;
  if (line_of(g, id, 3, &x)) {
    for (u32 i = 0; i < g->count; i++)
      if (x.times <= g->facts[i].times && x.plus <= g->facts[i].plus) return true;
    return false;
  }
  if (!depth) return false;
  if (is_from_end(g->h, n)) return is_below(g, n->c, depth - 1);
  if (!is_if_result(g->h, id)) return false;
  Grown yes = *g;
  learn(&yes, loop_cond_of(g->h->fn, n->a), GROWN_DEPTH);
  u32 a = arm_gives(g->h, id, true), b = arm_gives(g->h, id, false);
  return a && b && is_below(&yes, a, depth - 1) && is_below(g, b, depth - 1);
}

/* One walk over a trip. First, without `write`: does each way to the next trip go on below the limit, and is
 * anything checked that is below it; what that needs is noted. Then those checks are dropped, and indices from the
 * end are what they are. Arms of loops inside are taken to say nothing: native_raise.c makes kernels of such loops,
 * in which each trip looks at what an arm looks at. */
static bool walk_grown(Hoist *h, Grown *g, bool write) {
  const u32 *body = h->fn->body.data;
  Grown around[HOIST_DEPTH + 1];
  u32 depth = 0, inner = 0;
  bool any = false;
  for (u32 pos = h->where[h->poll[g->loop]] + 1; pos < h->end[g->loop]; pos++) {
    u32 id = body[pos];
    const LoopNode *n = at(h, id);
    if (loop_is_head(n)) {
      if (depth > HOIST_DEPTH) return false;
      around[depth++] = *g;
      inner += n->op != LOOP_IF;
      if (n->op == LOOP_IF && !inner) learn(g, loop_cond_of(h->fn, id), GROWN_DEPTH);
    } else if (n->op == LOOP_ELSE) {
      *g = around[depth - 1];
    } else if (n->op == LOOP_END) {
      inner -= at(h, n->a)->op != LOOP_IF;
      *g = around[--depth];
    } else if (n->op == LOOP_NEXT && n->a == g->loop) {
      if (!is_below(g, loop_list(h->fn, n)[at(h, g->carry)->b], GROWN_DEPTH)) return false;
    } else if (write && is_from_end(h, n) && is_below(g, n->c, GROWN_DEPTH)) {
      h->fn->nodes.data[id].b = n->c;
    } else if (n->op == LOOP_CHECK && n->aux == LOOP_CHECK_INDEX && !h->dropped[id] && is_below(g, n->a, GROWN_DEPTH)) {
      Hoisted fits = {.trips = {g->cond}, .loops = 1, .head = g->loop};
      if (!add_value(h, &fits.x, g->limit, false, 3) || !add_value(h, &fits.y, n->b, false, 0) ||
          !sum_known(h, &fits.y, g->loop))
        continue;
      fits.x.constant--;
      if (write) h->dropped[id] = true;
      else if (!note(h, &fits)) return false;
      any = true;
    }
  }
  return any;
}

/* `while c * times + plus < limit { poll … }`, where the next c is no less than 0 and below the limit: the first is
 * not negative, and the limit is not above the sizes. */
static void hoist_grown(Hoist *h, u32 loop, u32 cond) {
  Grown g = {.h = h, .loop = loop, .cond = cond}, start;
  const LoopNode *n = at(h, cond);
  u32 was = h->count;
  if (n->op != LOOP_LT && n->op != LOOP_GT) return;
  g.limit = n->op == LOOP_LT ? n->b : n->a;
  for (u32 id = n->op == LOOP_LT ? n->a : n->b; !g.carry;) { /* the number that it asks for */
    const LoopNode *x = at(h, id);
    u64 value;
    if (x->op == LOOP_CARRY && x->a == loop) g.carry = id;
    else if (x->op == LOOP_ADD || x->op == LOOP_MUL) id = hoist_constant(h, x->a, 3, &value) ? x->b : x->a;
    else return;
  }
  if (loop_type_of(h->fn, g.carry) != LT_I64 || !hoist_known(h, g.limit, loop, false, HOIST_DEPTH)) return;
  start = g;
  Hoisted first = {.x = {.plus = {g.carry}, .pluses = 1}, .y = {.constant = (u64)1 << 48}, .trips = {cond}, .loops = 1,
                   .head = loop}, limit = first;
  limit.x = (Sum){.constant = (u64)-1};
  if (add_value(h, &limit.x, g.limit, false, 3) && note(h, &first) && note(h, &limit) && walk_grown(h, &g, false)) {
    g = start;
    walk_grown(h, &g, true);
  } else {
    h->count = was;
  }
}

/* ---- while loops ------------------------------------------------------------------------------ */

/* `while (c) { poll; if c < limit { … next } break }`, or c > limit. */
typedef struct Bounded {
  u32 carry, number; /* c; of the carried values */
  u32 limit;
  bool up, closed; /* closed: c may be the limit */
} Bounded;

static bool bounded_by(const Hoist *h, u32 loop, u32 cond, Bounded *b) {
  const LoopNode *n = at(h, cond);
  bool less = n->op == LOOP_LT || n->op == LOOP_LE, more = n->op == LOOP_GT || n->op == LOOP_GE;
  if ((!less && !more) || loop_type_of(h->fn, n->a) != LT_I64) return false;
  bool turned = at(h, n->b)->op == LOOP_CARRY && at(h, n->b)->a == loop;
  const LoopNode *carry = at(h, turned ? n->b : n->a);
  *b = (Bounded){.carry = turned ? n->b : n->a, .number = carry->b, .limit = turned ? n->a : n->b, .up = less != turned,
                 .closed = n->op == LOOP_LE || n->op == LOOP_GE};
  return carry->op == LOOP_CARRY && carry->a == loop && hoist_known(h, b->limit, loop, false, HOIST_DEPTH);
}

/* An index c + constant is right in the first trip and at the limit: then it is in between, for c only steps
 * towards the limit; sizes and steps below 2^62 do not wrap. A limit that the loop need not come to, for it has a
 * way out, is not looked at: it must be right whatever it is. */
static bool move_out_bounded(Hoist *h, Hoisted c, u32 size, u32 loop, u32 cond, const Bounded *b, bool all) {
  Sum rest = c.x, last = {0}, room = {0};
  if (!without_index(&rest, b->carry) || rest.pluses || rest.minuses || rest.constant + (1 << 30) > (u64)1 << 31 ||
      !sum_known(h, &c.y, loop))
    return false;
  last.constant = rest.constant + (b->closed ? 0 : b->up ? (u64)-1 : 1);
  if (!add_value(h, &last, b->limit, false, 3)) return false;
  room = last;
  bool sure = b->up ? add_value(h, &room, size, true, 3) && !room.pluses && !room.minuses &&
              room.constant >> 32 == UINT32_MAX /* a little below */ : is_positive(h, &last);
  if (!sure && !all) return false;
  c.trips[c.loops++] = cond;
  c.head = loop;
  u32 was = h->count;
  Hoisted at_limit = c;
  at_limit.x = last;
  bool ok = note(h, &c) && (sure || note(h, &at_limit));
  for (u32 pos = h->where[loop] + 1; pos < h->end[loop] && ok; pos++) {
    const LoopNode *n = at(h, h->fn->body.data[pos]);
    if (n->op != LOOP_NEXT || n->a != loop) continue;
    Hoisted step = c;
    step.x = (Sum){0};
    step.y = (Sum){.constant = (u64)1 << 62};
    ok = add_value(h, &step.x, loop_list(h->fn, n)[b->number], !b->up, 3) &&
         add_value(h, &step.x, b->carry, b->up, 0) && sum_known(h, &step.x, loop);
    ok = ok && (is_positive(h, &step.x) || (all && step.x.pluses + step.x.minuses && note(h, &step)));
  }
  if (!ok) h->count = was;
  return ok;
}

/* Any of conditions that hold together. */
static bool move_out_any(Hoist *h, const Hoisted *c, u32 size, u32 loop, u32 whole, u32 cond, bool all, u32 depth) {
  const LoopNode *n = at(h, cond);
  Bounded b;
  Hoisted same = *c;
  same.trips[same.loops++] = whole;
  same.head = loop;
  if (sum_known(h, &c->x, loop)) return sum_known(h, &c->y, loop) && note(h, &same);
  if (n->op == LOOP_AND && depth)
    return move_out_any(h, c, size, loop, whole, n->a, all, depth - 1) ||
           move_out_any(h, c, size, loop, whole, n->b, all, depth - 1);
  return bounded_by(h, loop, cond, &b) && move_out_bounded(h, *c, size, loop, whole, &b, all);
}

/* The loop ends where `chosen` is not taken: its other arm goes on with no trip, and behind it stands a break, or
 * another `if` that asks for what the other arm gives then, false. */
static bool ends_unless(const Hoist *h, u32 loop, u32 chosen) {
  const u32 *body = h->fn->body.data;
  u32 end = h->end[chosen], other = end, next = end + 1;
  u64 no;
  for (u32 pos = h->where[chosen]; pos < end && other == end; pos++)
    if (at(h, body[pos])->op == LOOP_ELSE && at(h, body[pos])->a == chosen) other = pos + 1;
  for (u32 pos = other; pos < end; pos++)
    if (at(h, body[pos])->op == LOOP_NEXT && at(h, body[pos])->a == loop) return false;
  while (is_pure(at(h, body[next]))) next++;
  const LoopNode *after = at(h, body[next]), *gives = at(h, body[other]);
  if (after->op == LOOP_BREAK) return after->a == loop;
  if (after->op != LOOP_IF || gives->op != LOOP_YIELD) return false;
  const LoopNode *asked = at(h, loop_cond_of(h->fn, body[next]));
  if (asked->op != LOOP_RESULT || asked->a != chosen) return false;
  u32 value = loop_list(h->fn, gives)[asked->b];
  return (value == loop_cond_of(h->fn, chosen) || (hoist_constant(h, value, 0, &no) && no == 0)) &&
         ends_unless(h, loop, body[next]);
}

static bool ends_arm(const LoopNode *n, u32 head) { return (n->op == LOOP_END || n->op == LOOP_ELSE) && n->a == head; }

static void hoist_while(Hoist *h, u32 loop) {
  const u32 *body = h->fn->body.data;
  u32 begin = h->where[h->poll[loop]] + 1, depth = 0, end;
  while (is_pure(at(h, body[begin]))) begin++;
  u32 chosen = body[begin++];
  if (at(h, chosen)->op != LOOP_IF) return;
  u32 cond = loop_cond_of(h->fn, chosen);
  if (!hoist_known(h, cond, loop, true, HOIST_DEPTH) || !ends_unless(h, loop, chosen)) return;
  bool all = false, out = false;
  for (end = begin; !out && !ends_arm(at(h, body[end]), chosen); end += !out) {
    const LoopNode *n = at(h, body[end]);
    out = n->op == LOOP_RETURN || n->op == LOOP_EXIT || ((n->op == LOOP_BREAK || n->op == LOOP_NEXT) && n->a == loop);
    all = out && n->op == LOOP_NEXT && ends_arm(at(h, body[end + 1]), chosen);
  }
  for (u32 pos = begin; pos < end; pos++) {
    u32 id = body[pos];
    const LoopNode *n = at(h, id);
    if (n->op == LOOP_END) depth--;
    if (depth == 0 && n->op == LOOP_CHECK && n->aux == LOOP_CHECK_INDEX) {
      Hoisted c = {.head = 0};
      if (add_value(h, &c.x, n->a, false, 3) && add_value(h, &c.y, n->b, false, 0))
        h->dropped[id] = move_out_any(h, &c, n->b, loop, cond, cond, all, 3);
    }
    if (loop_is_head(n)) depth++;
  }
  hoist_grown(h, loop, cond);
}

/* ---- writing -------------------------------------------------------------------------------- */

u32 hoist_before(Hoist *h, u32 id, u32 loop) {
  LoopNode n = *at(h, id);
  if (!id || id >= h->nodes || n.op == LOOP_PARAM || n.op == LOOP_CONST || n.op == LOOP_TABLE) return id;
  bool leaf = n.op == LOOP_INDEX || n.op == LOOP_CARRY || n.op == LOOP_RESULT;
  if (leaf && n.a == loop && n.op != LOOP_RESULT)
    return n.op == LOOP_INDEX ? loop_const_i(h->fn, LT_I64, 0) : loop_init_of(h->fn, loop, n.b);
  if (leaf || h->where[id] < h->where[loop] || h->where[id] > h->end[loop]) return id;
  u32 a = hoist_before(h, n.a, loop), b = hoist_before(h, n.b, loop), c = hoist_before(h, n.c, loop);
  return loop_emit(h->fn, (LoopOp)n.op, (LoopType)n.type, a, b, c);
}

static u32 put_sum(Hoist *h, const Sum *s, u32 loop) {
  u32 sum = s->pluses ? hoist_before(h, s->plus[0], loop) : loop_const(h->fn, LT_I64, s->constant);
  for (u32 i = 1; i < s->pluses; i++)
    sum = loop_emit(h->fn, LOOP_ADD, LT_VOID, sum, hoist_before(h, s->plus[i], loop), 0);
  for (u32 i = 0; i < s->minuses; i++)
    sum = loop_emit(h->fn, LOOP_SUB, LT_VOID, sum, hoist_before(h, s->minus[i], loop), 0);
  return s->pluses &&
         s->constant ? loop_emit(h->fn, LOOP_ADD, LT_VOID, sum, loop_const(h->fn, LT_I64, s->constant), 0) : sum;
}

/* Those that want the same loops to have trips, together. */
static void put_checks(Hoist *h, u32 loop, Arena *arena) {
  LoopFn *fn = h->fn;
  const LoopNode poll = *at(h, h->poll[loop]);
  u32 *values = NULL;
  for (u32 i = 0; i < h->count; i++) {
    const Hoisted first = h->checks[i];
    if (first.head != loop) continue;
    u32 some = 0;
    for (u32 k = 0; k < first.loops; k++) {
      u32 c = hoist_before(h, first.trips[k], loop);
      if (loop_type_of(fn, c) != LT_I1) c = loop_emit(fn, LOOP_NE, LT_VOID, c, loop_const_i(fn, LT_I64, 0), 0);
      some = some ? loop_emit(fn, LOOP_AND, LT_VOID, some, c, 0) : c;
    }
    if (some) loop_begin_if(fn, some, 0, NULL);
    values = arena_alloc(arena, sizeof *values * (poll.count + 1));
    for (u32 k = 0; values && k < poll.count; k++) values[k] = hoist_before(h, fn->list.data[poll.list + k], loop);
    for (u32 k = i; values && k < h->count; k++) {
      Hoisted *c = &h->checks[k];
      if (c->head != loop || c->loops != first.loops || memcmp(c->trips, first.trips, sizeof c->trips) != 0) continue;
      u32 x = put_sum(h, &c->x, loop), y = put_sum(h, &c->y, loop);
      loop_check(fn, LOOP_CHECK_INDEX, (u32)poll.imm, x, y, poll.count, values);
      c->head = 0;
    }
    if (some) loop_end(fn);
    if (!values) fn->failed = "out of memory";
  }
}

static void write_body(Hoist *h, Arena *arena) {
  LoopFn *fn = h->fn;
  fn->body.count = 0;
  for (u32 pos = 0; pos < h->body_count; pos++) {
    u32 id = h->body[pos];
    if (h->dropped[id]) continue;
    if (h->poll[id]) put_checks(h, id, arena);
    if (!vec_push(fn->module->alloc, &fn->body, id)) fn->failed = "out of memory";
  }
}

Hoist *hoist_read(Native *n) {
  LoopFn *fn = n->fn;
  Arena *arena = &n->c->arena;
  Hoist *h = arena_alloc(arena, sizeof *h);
  u32 nodes = fn->nodes.count, count = fn->body.count, depth = 0,
      *words = arena_alloc(arena, sizeof *words * (4 * (size_t)nodes + 2 * (size_t)count + 1));
  u8 *dropped = arena_alloc(arena, nodes);
  if (!h || !words || !dropped) return NULL;
  memset(words, 0, sizeof *words * 4 * nodes);
  memset(dropped, 0, nodes);
  h->fn = fn;
  h->count = 0;
  h->nodes = nodes;
  h->where = words, h->end = words + nodes, h->poll = words + 2 * nodes, h->dropped = dropped;
  u32 *open = words + 3 * nodes, *old = h->body = words + 4 * nodes;
  h->body_count = count;
  for (u32 pos = 0; pos < count; pos++) {
    u32 id = old[pos] = fn->body.data[pos];
    const LoopNode *x = at(h, id);
    h->where[id] = pos;
    if (loop_is_head(x)) open[depth++] = id;
    if (x->op == LOOP_END) h->end[open[--depth]] = pos;
  }
  return h;
}

bool native_hoist(Native *n) {
  if (n->c->limits && n->c->limits->exact) return true;
  Hoist *h = hoist_read(n);
  u32 checks = 0, loops = 0;
  if (!h) return false;
  for (u32 pos = 0; pos < h->body_count; pos++) {
    const LoopNode *x = at(h, h->body[pos]);
    checks += x->op == LOOP_CHECK;
    loops += x->op == LOOP_FOR || x->op == LOOP_WHILE;
  }
  if (!checks || !loops) return true;
  for (u32 pos = 0; pos < h->body_count; pos++) { /* inner loops end first */
    u32 loop = at(h, h->body[pos])->a;
    bool counts = at(h, loop)->op == LOOP_FOR && at(h, loop)->a == 1;
    if (at(h, h->body[pos])->op != LOOP_END || (!counts && at(h, loop)->op != LOOP_WHILE)) continue;
    h->poll[loop] = hoist_poll(h, loop);
    if (h->poll[loop] && counts) hoist_from(h, loop);
    else if (h->poll[loop]) hoist_while(h, loop);
  }
  if (h->count) write_body(h, &n->c->arena);
  return !n->fn->failed;
}
