/* native_inner.c — loops inside of a loop whose trips are independent (native_raise.c).
 *
 * `for i in 0..n { s = 0; for k in 0..m { s = s * x[i] + c[k] }; y[i] = s }` becomes a kernel whose trips go through
 * the inner loop side by side, each in the order of its own trips, so that floats are rounded as before. The inner loop
 * reads, computes and carries numbers; it has no loop inside.
 *
 * - `for`: of as many trips for every i, known in front of the outer loop. It reads arrays to which nothing is stored,
 *   and checks indices that go by i alone.
 *   A place that goes by i alone may be stored to: it is carried through the inner loop, and stored behind it.
 * - `while`: a lane that is done keeps its numbers while others go on. A kernel does not poll, so a lane ends after
 *   INNER_TRIPS trips all the same; a check behind the loop tells, and the loop itself does these trips again. For that
 *   nothing is read of what is stored.
 *
 * Calls poll in front of some of the outer trips, so polls inside are left out. */
#include "jit/native/native_raise.h"

/* The `if` in front of the `break` at the end of a `while`, which goes on to the next trip: its position; 0. */
static u32 inner_guard(const Raise *r, u32 loop) {
  u32 pos = r->end[loop];
  const LoopNode *out = raise_node(r, r->body[pos - 1]), *end = raise_node(r, r->body[pos - 2]);
  if (out->op != LOOP_BREAK || out->a != loop || end->op != LOOP_END) return 0;
  const LoopNode *guard = raise_node(r, end->a), *next = raise_node(r, r->body[pos - 3]);
  return guard->op == LOOP_IF && !guard->c && next->op == LOOP_NEXT && next->a == loop ? r->where[end->a] : 0;
}

bool inner_wanted(const Raise *r, u32 loop) {
  for (u32 pos = r->where[loop] + 1; pos < r->end[loop]; pos++) {
    u32 id = r->body[pos], jumps = 0;
    const LoopNode *n = raise_node(r, id);
    if (n->op == LOOP_IF || !loop_is_head(n)) continue;
    if (n->op != LOOP_WHILE && (n->op != LOOP_FOR || n->a != 1)) return false;
    if (n->op == LOOP_WHILE ? !inner_guard(r, id) : raise_node(r, r->body[r->end[id] - 1])->op != LOOP_NEXT)
      return false;
    for (pos++; pos < r->end[id]; pos++) {
      const LoopNode *x = raise_node(r, r->body[pos]);
      if ((loop_is_head(x) && x->op != LOOP_IF) || x->op == LOOP_CALL || x->op == LOOP_EXIT || x->op == LOOP_RETURN)
        return false;
      jumps += (x->op == LOOP_NEXT || x->op == LOOP_BREAK);
    }
    if (jumps != (n->op == LOOP_WHILE ? 2 : 1)) return false;
  }
  return true;
}

/* ---- what it carries --------------------------------------------------------------------------------------------- */

typedef struct InnerUses {
  u32 id;
  bool found;
} InnerUses;

static void inner_visit(void *ctx, u32 id) {
  InnerUses *u = ctx;
  u->found |= id == u->id;
}

/* Is the value looked at, but to carry on the number `i` of the loop, and by exits? */
static bool inner_used(const Raise *r, u32 loop, u32 i, u32 id, u32 depth) {
  for (u32 pos = r->where[loop] + 1; pos < r->end[r->loop]; pos++) {
    const LoopNode *n = raise_node(r, r->body[pos]);
    InnerUses u = {.id = id};
    bool on = (n->op == LOOP_NEXT || n->op == LOOP_BREAK) && n->a == loop, gives = n->op == LOOP_YIELD && n->a && depth;
    if (n->op == LOOP_POLL) continue;
    for (u32 k = 0; k < n->count && (on || gives); k++)
      if (loop_list(r->fn, n)[k] == id)
        u.found |= on ? k != i : inner_used(r, loop, i, loop_result_of(r->fn, n->a, k), depth - 1);
    if (n->op == LOOP_CHECK) u.found = n->a == id || n->b == id;
    else if (!on && !gives) loop_each_operand(r->fn, n, inner_visit, &u);
    if (u.found) return true;
  }
  return false;
}

static bool inner_needs(const Raise *r, u32 loop, u32 i) {
  return inner_used(r, loop, i, loop_carry_of(r->fn, loop, i), RAISE_DEPTH) ||
         inner_used(r, loop, i, loop_result_of(r->fn, loop, i), RAISE_DEPTH);
}

static bool inner_keeps(Raise *r, Spot *s) {
  Inner *in = &r->inner;
  LoopType t = loop_value_type((LoopType)raise_node(r, s->buffer)->mem);
  u8 at = (u8)(s - r->spots);
  for (u32 i = 0; i < in->places; i++)
    if (in->place[i] == at) return true;
  if (in->places + in->numbers == INNER_CARRIED || t == LT_I1) return false;
  in->place[in->places++] = at;
  return true;
}

/* ---- loads ------------------------------------------------------------------------------------------------------- */

/* An element of an array to which the loop stores nothing; in front of the inner loop if it does not go by that. */
static bool inner_direct(Raise *r, u32 id, bool before) {
  const LoopNode n = *raise_node(r, id);
  LoopTerm terms[RAISE_TERMS + 2];
  Affine a;
  r->lanes = true;
  bool known = raise_node(r, n.a)->op == LOOP_PARAM && affine_of(r, &n, &a);
  r->lanes = false;
  if (!known) return !before && raise_gather(r, id);
  for (u32 i = 0; i < a.count && before; i++)
    if (a.terms[i].var == loop_index_of(r->inner.loop, 0)) return true;
  u32 count = raise_terms(r, &a, terms), buffer = raise_word(r, n.a, LOOP_IN);
  if (count == UINT32_MAX || !buffer) return false;
  r->map[id] = loop_load(r->kernel, buffer, a.constant, terms, count);
  return r->map[id] != 0;
}

static bool inner_load(Raise *r, u32 id) {
  const LoopNode n = *raise_node(r, id);
  if (r->map[id]) return true;
  if (!raise_stores(r, n.a)) return inner_direct(r, id, false);
  Spot *s = raise_spot(r, &n);
  r->map[id] = s ? s->now : 0;
  return r->map[id] != 0;
}

/* Places that the inner loop looks at and stores to have their values in front of it. */
static bool inner_places(Raise *r, u32 loop) {
  for (u32 pos = r->where[loop] + 1; pos < r->end[loop]; pos++) {
    u32 id = r->body[pos];
    const LoopNode n = *raise_node(r, id);
    if (n.op != LOOP_LOAD && n.op != LOOP_STORE) continue;
    if (n.op == LOOP_LOAD && !raise_stores(r, n.a)) {
      const LoopNode *head = raise_node(r, loop);
      bool by_index = n.count > RAISE_TERMS;
      for (u32 i = 0; i < n.count && !by_index; i++)
        by_index = !raise_follows(r, loop_terms(r->fn, &n)[i].var, true, RAISE_DEPTH);
      if (head->op == LOOP_FOR && !by_index && !inner_direct(r, id, true)) return false;
      continue;
    }
    Spot *s = raise_spot(r, &n);
    if (!s || (!s->now && !raise_look(r, s)) || (n.op == LOOP_STORE && !inner_keeps(r, s))) return false;
  }
  return true;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static u32 inner_count(const Raise *r) { return r->inner.numbers + r->inner.places + r->inner.counts; }

static bool inner_begin(Raise *r, u32 id) {
  LoopFn *k = r->kernel;
  Inner *in = &r->inner;
  const LoopNode head = *raise_node(r, id);
  u32 init[INNER_CARRIED + 1], trips = 0;
  if (r->depth || r->inners == INNER_MOST) return false;
  *in = (Inner){.loop = id, .counts = head.op == LOOP_WHILE};
  for (u32 i = 0; i < head.b; i++) {
    LoopType t = loop_type_of(r->fn, loop_carry_of(r->fn, id, i));
    if (!inner_needs(r, id, i)) {
      r->map[loop_carry_of(r->fn, id, i)] = r->map[loop_result_of(r->fn, id, i)] = loop_const(k, t, 0);
      continue;
    }
    u32 value = raise_operand(r, loop_init_of(r->fn, id, i));
    if (in->numbers == INNER_CARRIED || t == LT_I1 || !value) return false;
    init[in->numbers] = value;
    in->number[in->numbers++] = i;
  }
  if (!inner_places(r, id)) return false;
  for (u32 i = 0; i < in->places; i++) init[in->numbers + i] = r->spots[in->place[i]].now;
  if (in->counts) {
    init[in->numbers + in->places] = loop_const_i(k, LT_I64, 0);
    in->guard = r->body[inner_guard(r, id)];
    in->head = loop_begin_while(k, inner_count(r), init);
    r->gives_up = true;
  } else {
    if (!raise_follows(r, loop_trips_of(r->fn, id, 0), false, RAISE_DEPTH)) return false;
    trips = raise_known(r, loop_trips_of(r->fn, id, 0));
    if (!in->numbers && !in->places) return false;
    in->head = loop_begin_for(k, NULL, raise_word(r, trips, LOOP_IN), inner_count(r), init);
    r->map[loop_index_of(id, 0)] = loop_index_of(in->head, 0);
    r->inner_trips[r->inners] = trips;
  }
  if (!in->head) return false;
  r->inners++;
  for (u32 i = 0; i < in->numbers; i++)
    r->map[loop_carry_of(r->fn, id, in->number[i])] = loop_carry_of(k, in->head, i);
  for (u32 i = 0; i < in->places; i++) r->spots[in->place[i]].now = loop_carry_of(k, in->head, in->numbers + i);
  return true;
}

static bool inner_asks(Raise *r, u32 id) {
  LoopFn *k = r->kernel;
  Inner *in = &r->inner;
  u32 cond = raise_operand(r, loop_cond_of(r->fn, id)), count = loop_carry_of(k, in->head, inner_count(r) - 1);
  u32 few = loop_emit(k, LOOP_LT, LT_VOID, count, loop_const_i(k, LT_I64, INNER_TRIPS), 0);
  return cond && !r->depth && loop_begin_if(k, loop_emit(k, LOOP_AND, LT_VOID, cond, few, 0), 0, NULL);
}

static bool inner_next(Raise *r, const LoopNode *n) {
  LoopFn *k = r->kernel;
  Inner *in = &r->inner;
  u32 list[INNER_CARRIED + 1];
  if (r->depth) return false;
  for (u32 i = 0; i < in->numbers; i++)
    if (!(list[i] = raise_operand(r, loop_list(r->fn, n)[in->number[i]]))) return false;
  for (u32 i = 0; i < in->places; i++) list[in->numbers + i] = r->spots[in->place[i]].now;
  u32 last = inner_count(r) - 1;
  if (in->counts)
    list[last] = loop_emit(k, LOOP_ADD, LT_VOID, loop_carry_of(k, in->head, last), loop_const_i(k, LT_I64, 1), 0);
  loop_next(k, inner_count(r), list);
  return !k->failed;
}

/* What a `while` gives is what it carries. */
static bool inner_break(Raise *r, const LoopNode *n) {
  LoopFn *k = r->kernel;
  Inner *in = &r->inner;
  u32 list[INNER_CARRIED + 1];
  for (u32 i = 0; i < in->numbers; i++)
    if (loop_list(r->fn, n)[in->number[i]] != loop_carry_of(r->fn, in->loop, in->number[i])) return false;
  for (u32 i = 0; i < inner_count(r); i++) list[i] = loop_carry_of(k, in->head, i);
  loop_break(k, inner_count(r), list);
  return !k->failed;
}

static bool inner_over(Raise *r) {
  LoopFn *k = r->kernel;
  Inner *in = &r->inner;
  loop_end(k);
  for (u32 i = 0; i < in->numbers; i++)
    r->map[loop_result_of(r->fn, in->loop, in->number[i])] = loop_result_of(k, in->head, i);
  for (u32 i = 0; i < in->places; i++) r->spots[in->place[i]].now = loop_result_of(k, in->head, in->numbers + i);
  if (in->counts) {
    u32 count = loop_result_of(k, in->head, inner_count(r) - 1);
    u32 few = loop_emit(k, LOOP_LT, LT_VOID, count, loop_const_i(k, LT_I64, INNER_TRIPS), 0);
    loop_check(k, LOOP_CHECK_ASSERT, 0, few, 0, 0, NULL);
  }
  in->loop = 0;
  return !k->failed;
}

InnerStep inner_statement(Raise *r, u32 id) {
  const LoopNode n = *raise_node(r, id);
  Inner *in = &r->inner;
  bool fine = true;
  if (!in->loop && n.op != LOOP_FOR && n.op != LOOP_WHILE) return INNER_OTHER;
  switch (n.op) {
    case LOOP_FOR:
    case LOOP_WHILE: fine = inner_begin(r, id); break;
    case LOOP_POLL: break;
    case LOOP_CHECK: fine = raise_counts(r, &n); break;
    case LOOP_LOAD: fine = inner_load(r, id); break;
    case LOOP_IF:
      if (id != in->guard) return INNER_OTHER;
      fine = inner_asks(r, id);
      break;
    case LOOP_NEXT: fine = n.a == in->loop && inner_next(r, &n); break;
    case LOOP_BREAK: fine = n.a == in->loop && inner_break(r, &n); break;
    case LOOP_END:
      if (n.a == in->loop) {
        fine = inner_over(r);
      } else if (n.a == in->guard) {
        loop_end(r->kernel);
        for (u32 i = 0; i < in->places; i++)
          r->spots[in->place[i]].now = loop_carry_of(r->kernel, in->head, in->numbers + i);
      } else {
        return INNER_OTHER;
      }
      break;
    default: return INNER_OTHER;
  }

  return fine ? INNER_DONE : INNER_REFUSED;
}

/* Can the trips of a call that gave up be done again? What it stored is not read. */
bool inner_may_repeat(const Raise *r) {
  for (u32 i = 0; i < r->count; i++)
    if (r->spots[i].load && raise_stores(r, r->spots[i].buffer)) return false;
  return true;
}

/* Every inner `for` has some trips, and not too many for the calls to poll in between. */
u32 inner_few(Raise *r) {
  u32 all = 0;
  for (u32 i = 0; i < r->inners; i++) {
    if (!r->inner_trips[i]) continue;
    u32 trips = r->inner_trips[i], some = raise_op(r, LOOP_LT, loop_const_i(r->fn, LT_I64, 0), trips),
        few = raise_op(r, LOOP_LT, trips, loop_const_i(r->fn, LT_I64, INNER_FOR)),
        both = raise_op(r, LOOP_AND, some, few);
    all = all ? raise_op(r, LOOP_AND, all, both) : both;
  }
  return all;
}
