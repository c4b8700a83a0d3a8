/* native_inner.c — loops inside of a loop whose trips are independent (native_raise.c).
 *
 * `for i in 0..n { s = 0; for k in 0..m { s = s * x[i] + c[k] }; y[i] = s }` becomes a kernel whose trips go through
 * the inner loop side by side, each in the order of its own trips, so that floats are rounded as before. The inner loop
 * reads, computes and carries numbers; it has no loop inside.
 *
 * - `for`: of as many trips for every i, known in front of the outer loop. It reads arrays to which nothing is stored,
 *   and checks indices that go by i alone.
 *   A place that goes by i alone may be stored to: it is carried through the inner loop, and stored behind it.
 *   Where an `if` leaves it, lanes end as those of a `while` do, and what they end with is computed behind the loop.
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

/* The `if` of a `for` that leaves it, and does nothing else; what stands in front of it is computed from numbers alone.
 * 0: there is none. */
static u32 inner_leave(const Raise *r, u32 loop) {
  for (u32 pos = r->where[loop] + 1; pos < r->end[loop]; pos++) {
    u32 id = r->body[pos], last;
    const LoopNode *n = raise_node(r, id);
    LoopForm form = loop_op_form((LoopOp)n->op);
    bool divides = n->op == LOOP_DIV || n->op == LOOP_REM || n->op == LOOP_FLOORDIV || n->op == LOOP_MOD;
    if (divides && loop_is_int((LoopType)n->type)) return 0;
    if (n->op == LOOP_POLL || (form >= LOOP_FORM_UNARY && form <= LOOP_FORM_MATH)) continue;
    if (n->op == LOOP_LOAD) {
      for (u32 i = 0; i < n->count; i++)
        if (!raise_follows(r, loop_terms(r->fn, n)[i].var, true, RAISE_DEPTH)) return 0;
      continue;
    }
    if (n->op != LOOP_IF || n->c) return 0;
    for (last = pos + 1; raise_node(r, r->body[last])->op < LOOP_LOAD; last++) {}
    const LoopNode *out = raise_node(r, r->body[last]), *other = raise_node(r, r->body[last + 1]);
    bool leaves = out->op == LOOP_BREAK && out->a == loop;
    return leaves && r->end[id] == last + 1 + (other->op == LOOP_ELSE) ? id : 0;
  }
  return 0;
}

/* A quotient of integers of 64 bits: numbers one by one take less. */
static bool inner_divides(const Raise *r, const LoopNode *n) {
  const LoopNode *by = raise_node(r, n->b);
  bool divides = n->op == LOOP_DIV || n->op == LOOP_REM || n->op == LOOP_FLOORDIV || n->op == LOOP_MOD;
  return divides && loop_is_int((LoopType)n->type) && loop_type_bytes((LoopType)n->type) == 8 &&
         (by->op != LOOP_CONST || !by->imm || (by->imm & (by->imm - 1)));
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
      if ((loop_is_head(x) && x->op != LOOP_IF) || x->op == LOOP_CALL || x->op == LOOP_EXIT || x->op == LOOP_RETURN ||
          inner_divides(r, x))
        return false;
      jumps += (x->op == LOOP_NEXT || x->op == LOOP_BREAK);
    }
    if (jumps != (n->op == LOOP_WHILE || inner_leave(r, id) ? 2 : 1)) return false;
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

/* It stays what it began with. */
static bool inner_stays(const Raise *r, u32 loop, u32 i) {
  for (u32 pos = r->where[loop] + 1; pos < r->end[loop]; pos++) {
    const LoopNode *n = raise_node(r, r->body[pos]);
    if (n->op == LOOP_NEXT && n->a == loop) return loop_list(r->fn, n)[i] == loop_carry_of(r->fn, loop, i);
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
  LoopTerm terms[RAISE_OUT];
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

/* Truth values are carried as numbers, which every processor keeps in vectors. */
static u32 inner_number(Raise *r, u32 value) {
  if (!value || loop_type_of(r->kernel, value) != LT_I1) return value;
  return loop_emit(r->kernel, LOOP_CONVERT, LT_I64, value, 0, 0);
}

static u32 inner_value(Raise *r, u32 i, u32 number) {
  LoopFn *k = r->kernel;
  if (loop_type_of(r->fn, loop_carry_of(r->fn, r->inner.loop, i)) != LT_I1) return number;
  return loop_emit(k, LOOP_NE, LT_VOID, number, loop_const_i(k, LT_I64, 0), 0);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static u32 inner_count(const Raise *r) { return r->inner.numbers + r->inner.places + r->inner.counts; }

static bool inner_begin(Raise *r, u32 id) {
  LoopFn *k = r->kernel;
  Inner *in = &r->inner;
  const LoopNode head = *raise_node(r, id);
  u32 init[INNER_CARRIED + 1], trips = 0;
  if (r->depth || r->inners == INNER_MOST) return false;
  *in = (Inner){.loop = id, .leave = head.op == LOOP_FOR ? inner_leave(r, id) : 0};
  in->counts = head.op == LOOP_WHILE || in->leave;
  for (u32 i = 0; i < head.b; i++) {
    LoopType t = loop_type_of(r->fn, loop_carry_of(r->fn, id, i));
    if (!inner_needs(r, id, i)) {
      r->map[loop_carry_of(r->fn, id, i)] = r->map[loop_result_of(r->fn, id, i)] = loop_const(k, t, 0);
      continue;
    }
    u32 value = raise_operand(r, loop_init_of(r->fn, id, i));
    if (value && head.op == LOOP_FOR && inner_stays(r, id, i)) {
      r->map[loop_carry_of(r->fn, id, i)] = r->map[loop_result_of(r->fn, id, i)] = value;
      continue;
    }
    if (in->numbers == INNER_CARRIED || !value) return false;
    init[in->numbers] = inner_number(r, value);
    in->number[in->numbers++] = i;
  }
  if (!inner_places(r, id)) return false;
  for (u32 i = 0; i < in->places; i++) init[in->numbers + i] = r->spots[in->place[i]].now;
  if (in->counts) init[in->numbers + in->places] = loop_const_i(k, LT_I64, 0);
  if (head.op == LOOP_FOR) {
    if (!raise_follows(r, loop_trips_of(r->fn, id, 0), false, RAISE_DEPTH)) return false;
    r->inner_trips[r->inners] = trips = raise_known(r, loop_trips_of(r->fn, id, 0));
    in->trips = raise_word(r, trips, LOOP_IN);
    if ((!in->numbers && !in->places) || (in->leave && in->places)) return false;
    in->head = in->leave ? loop_begin_while(k, inner_count(r), init)
                         : loop_begin_for(k, NULL, in->trips, inner_count(r), init);
    u32 index = in->leave ? loop_carry_of(k, in->head, in->numbers) : loop_index_of(in->head, 0);
    r->map[loop_index_of(id, 0)] = in->head ? index : 0;
  } else {
    r->inner_trips[r->inners] = 0;
    in->guard = r->body[inner_guard(r, id)];
    in->head = loop_begin_while(k, inner_count(r), init);
    r->gives_up = true;
  }
  if (!in->head) return false;
  r->inners++;
  for (u32 i = 0; i < in->numbers; i++)
    r->map[loop_carry_of(r->fn, id, in->number[i])] = inner_value(r, in->number[i], loop_carry_of(k, in->head, i));
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
    if (!(list[i] = inner_number(r, raise_operand(r, loop_list(r->fn, n)[in->number[i]])))) return false;
  for (u32 i = 0; i < in->places; i++) list[in->numbers + i] = r->spots[in->place[i]].now;
  u32 last = inner_count(r) - 1;
  if (in->counts)
    list[last] = loop_emit(k, LOOP_ADD, LT_VOID, loop_carry_of(k, in->head, last), loop_const_i(k, LT_I64, 1), 0);
  loop_next(k, inner_count(r), list);
  if (in->leave) {
    for (u32 i = 0; i < inner_count(r); i++) list[i] = loop_carry_of(k, in->head, i);
    loop_end(k);
    loop_break(k, inner_count(r), list);
  }
  return !k->failed;
}

/* A lane goes on that has not had all trips, and does not leave. */
static bool inner_stay(Raise *r, u32 id) {
  LoopFn *k = r->kernel;
  Inner *in = &r->inner;
  u32 cond = raise_operand(r, loop_cond_of(r->fn, id)), count = loop_carry_of(k, in->head, in->numbers);
  if (!cond || r->depth) return false;
  u32 more = loop_emit(k, LOOP_LT, LT_VOID, count, in->trips, 0), not = loop_emit(k, LOOP_NOT, LT_VOID, cond, 0, 0);
  in->skips = true;
  return loop_begin_if(k, loop_emit(k, LOOP_AND, LT_VOID, more, not, 0), 0, NULL);
}

/* What lanes that left end with: what stands in front of the `break`, once more. */
static bool inner_left(Raise *r) {
  LoopFn *k = r->kernel;
  Inner *in = &r->inner;
  const u32 loop = in->loop;
  u32 count = loop_result_of(k, in->head, in->numbers), early = loop_emit(k, LOOP_LT, LT_VOID, count, in->trips, 0),
      pos = r->where[loop] + 1;
  const LoopNode *n = raise_node(r, r->body[pos]);
  r->map[loop_index_of(loop, 0)] = count;
  for (u32 i = 0; i < in->numbers; i++)
    r->map[loop_carry_of(r->fn, loop, in->number[i])] = inner_value(r, in->number[i], loop_result_of(k, in->head, i));
  in->loop = 0;
  for (; n->op != LOOP_BREAK; n = raise_node(r, r->body[++pos]))
    if (n->op != LOOP_POLL && n->op != LOOP_LOAD && n->op != LOOP_IF && !raise_statement(r, r->body[pos])) return false;
  const LoopNode out = *n;
  for (u32 i = 0; i < out.count; i++) {
    u32 result = loop_result_of(r->fn, loop, i), end = r->map[loop_carry_of(r->fn, loop, i)];
    if (!inner_used(r, loop, i, result, RAISE_DEPTH)) continue;
    u32 value = raise_operand(r, loop_list(r->fn, &out)[i]);
    if (!value || !end || !(r->map[result] = loop_emit(k, LOOP_SELECT, LT_VOID, early, value, end))) return false;
  }
  return true;
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
  if (in->leave) return inner_left(r);
  for (u32 i = 0; i < in->numbers; i++)
    r->map[loop_result_of(r->fn, in->loop, in->number[i])] = inner_value(r, in->number[i],
                                                                         loop_result_of(k, in->head, i));
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
  if (in->skips) {
    in->skips = n.op != LOOP_END || n.a != in->leave;
    return INNER_DONE;
  }
  switch (n.op) {
    case LOOP_FOR:
    case LOOP_WHILE: fine = inner_begin(r, id); break;
    case LOOP_POLL: break;
    case LOOP_CHECK: fine = raise_counts(r, &n); break;
    case LOOP_LOAD: fine = inner_load(r, id); break;
    case LOOP_IF:
      if (id != in->guard && id != in->leave) return INNER_OTHER;
      fine = id == in->leave ? inner_stay(r, id) : inner_asks(r, id);
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
