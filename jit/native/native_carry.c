/* native_carry.c — a loop that carries the place of an element carries the element too.
 *
 * `if x[i] > x[at] { at = i }` looks at x[at] in each trip, and checks that it is there. The place stays, or becomes
 * one whose element the trip has looked at, as x[i] here. So the loop carries the element next to its place, and takes
 * it along: `if x[i] > most { at = i, most = x[i] }`. The first place is checked in front of the loop, where it has
 * trips; if it is not there, the function leaves as at the first trip's poll, and the interpreter finds the error.
 * native_fold.c makes kernels of such loops.
 *
 * A load is found again as another one is when both become the same with the new place in place of the old one. Nothing
 * in the loop stores to its buffer; buffers of a native function do not overlap where one of them is written. */
#include "jit/native/native_hoist.h"
#include "lang/mechanisms.h"

enum { PICK_DEPTH = 6, PICK_CHECKS = 4, PICKS_CARRIED = 4 /* loads of a function, one after the other */ };

typedef struct Pick {
  Hoist *h;
  LoopFn *fn;
  u32 loop, carry; /* of a place */
  u32 next;        /* the loop's only one, its last statement */
  u32 choice;      /* what becomes of the place: an `if` of the trip, or a select */
  u32 place;       /* the new one */
  bool otherwise;  /* the place stays where the condition holds */
  u32 load, found; /* what the loop finds again, and what it has looked at */
  u32 checks[PICK_CHECKS], check_count; /* of the first place, from now on */
  u32 *to;         /* per node: what stands for it in the loop that is written */
} Pick;

static const LoopNode *pick_node(const Pick *p, u32 id) { return loop_node(p->fn, id); }

static bool pick_pure(const LoopNode *n) {
  LoopForm form = loop_op_form((LoopOp)n->op);
  return form >= LOOP_FORM_UNARY && form <= LOOP_FORM_CONVERT;
}

static bool pick_outside(const Pick *p, u32 id) { return hoist_known(p->h, id, p->loop, false, 0); }

/* Is the value made of the carried place, `*uses`, and of what the loop does not change? */
static bool pick_follows(const Pick *p, u32 id, u32 depth, bool *uses) {
  const LoopNode *n = pick_node(p, id);
  if (id == p->carry) return *uses = true;
  if (!id || pick_outside(p, id)) return true;
  return depth && pick_pure(n) && pick_follows(p, n->a, depth - 1, uses) && pick_follows(p, n->b, depth - 1, uses) &&
         pick_follows(p, n->c, depth - 1, uses);
}

static bool pick_stored(const Pick *p, u32 buffer) {
  for (u32 pos = p->h->where[p->loop]; pos < p->h->end[p->loop]; pos++) {
    const LoopNode *n = pick_node(p, p->h->body[pos]);
    if ((n->op == LOOP_STORE && n->a == buffer) || n->op == LOOP_CALL) return true;
  }
  return false;
}

/* Indices of loops and constants: not negative, and far from 2^62. */
static bool pick_positive(const Pick *p, u32 id, u32 depth) {
  const LoopNode *n = pick_node(p, id);
  if (n->op == LOOP_CONST) return !(n->imm >> 62);
  if (n->op == LOOP_INDEX) return true;
  return depth && n->op == LOOP_ADD && n->type == LT_I64 && pick_positive(p, n->a, depth - 1) &&
         pick_positive(p, n->b, depth - 1);
}

/* x < 0 ? x + size : x */
static bool pick_from_end(const Pick *p, const LoopNode *n) {
  const LoopNode *less = pick_node(p, n->a), *zero = pick_node(p, less->b);
  return n->op == LOOP_SELECT && n->type == LT_I64 && less->op == LOOP_LT && less->a == n->c &&
         zero->op == LOOP_CONST && zero->imm == 0;
}

/* Is `old`, with `place` in place of the carried one, the same as `new`? `as_is`: the carried one stays. */
static bool pick_same(const Pick *p, u32 old, u32 new, bool as_is, u32 depth) {
  const LoopNode *a = pick_node(p, old), *b = pick_node(p, new);
  bool both = pick_from_end(p, a) == pick_from_end(p, b);
  if (!as_is && old == p->carry) return pick_same(p, p->place, new, true, depth);
  if (old == new && (as_is || pick_outside(p, old) || !old)) return true;
  if (!old || !new || !depth) return false;
  if (!both && pick_from_end(p, a) && pick_positive(p, new, PICK_DEPTH)) return pick_same(p, a->c, new, as_is, depth);
  if (!both && pick_from_end(p, b) && pick_positive(p, b->c, PICK_DEPTH)) return pick_same(p, old, b->c, as_is, depth);
  if (a->op != b->op || a->type != b->type) return false;
  if (a->op == LOOP_CONST) return a->imm == b->imm;
  if (a->op == LOOP_LOAD) {
    if (a->a != b->a || a->imm != b->imm || a->count != b->count || pick_stored(p, a->a)) return false;
    for (u32 i = 0; i < a->count; i++) {
      LoopTerm x = loop_terms(p->fn, a)[i], y = loop_terms(p->fn, b)[i];
      if (x.coef != y.coef || x.stride[0] != y.stride[0] || x.stride[1] != y.stride[1] ||
          !pick_same(p, x.var, y.var, as_is, depth - 1))
        return false;
    }
    return true;
  }
  return pick_pure(a) && pick_same(p, a->a, b->a, as_is, depth - 1) && pick_same(p, a->b, b->b, as_is, depth - 1) &&
         pick_same(p, a->c, b->c, as_is, depth - 1);
}

/* What the arm of an `if` gives; `yes`: the first one. */
static u32 pick_gives(const Pick *p, u32 result, bool yes) {
  const LoopNode *r = pick_node(p, result);
  u32 pos = p->h->end[r->a];
  if (yes)
    while (!(pick_node(p, p->h->body[pos])->op == LOOP_ELSE && pick_node(p, p->h->body[pos])->a == r->a)) pos--;
  const LoopNode *gives = pick_node(p, p->h->body[pos - 1]);
  return gives->op == LOOP_YIELD && gives->a == r->a ? loop_list(p->fn, gives)[r->b] : 0;
}

/* Is the place what it was, or another one, by an `if` that each trip comes by or a select. */
static bool pick_choice(Pick *p) {
  u32 next = loop_list(p->fn, pick_node(p, p->next))[pick_node(p, p->carry)->b], yes, no;
  const LoopNode *n = pick_node(p, next);
  if (n->op == LOOP_SELECT) {
    p->choice = next, yes = n->b, no = n->c;
  } else {
    if (n->op != LOOP_RESULT || pick_node(p, n->a)->op != LOOP_IF || pick_outside(p, next)) return false;
    p->choice = n->a, yes = pick_gives(p, next, true), no = pick_gives(p, next, false);
  }
  p->otherwise = yes == p->carry;
  p->place = p->otherwise ? no : yes;
  return p->place && p->place != p->carry && (p->otherwise || no == p->carry);
}

/* The check of a part of the load's place, if each trip makes one that can be made before the loop. */
static bool pick_check(Pick *p, u32 var, bool uses) {
  u32 depth = 0;
  for (u32 pos = p->h->where[p->loop] + 1; pos < p->h->where[p->load]; pos++) {
    u32 id = p->h->body[pos];
    const LoopNode *n = pick_node(p, id);
    bool mine = false;
    if (loop_is_head(n)) depth++;
    if (n->op == LOOP_END) depth--;
    if (depth || n->op != LOOP_CHECK || n->aux != LOOP_CHECK_INDEX || !pick_same(p, n->a, var, true, PICK_DEPTH) ||
        !hoist_known(p->h, n->b, p->loop, false, PICK_DEPTH))
      continue;
    for (u32 i = 0; i < p->check_count; i++) mine |= p->checks[i] == id;
    if (!mine && p->check_count == PICK_CHECKS) return false;
    if (!mine) p->checks[p->check_count++] = id;
    return true;
  }
  return !uses;
}

/* A part of the load's place, and of what was found: that was looked at, so it is not negative. */
static bool pick_part(const Pick *p, u32 old, u32 new) {
  const LoopNode *n = pick_node(p, old);
  bool plain = pick_from_end(p, n) && !pick_from_end(p, pick_node(p, new));
  return pick_same(p, plain ? n->c : old, new, false, PICK_DEPTH);
}

/* Can the load be carried: `found` is it, with the new place. */
static bool pick_found(Pick *p, u32 found, u32 before) {
  const LoopNode *a = pick_node(p, p->load), *b = pick_node(p, found);
  bool any = false;
  if (found == p->load || b->op != LOOP_LOAD || p->h->where[found] > before) return false;
  if (a->a != b->a || a->mem != b->mem || a->imm != b->imm || a->count != b->count || a->count > PICK_DEPTH)
    return false;
  p->check_count = 0;
  for (u32 i = 0; i < a->count; i++) {
    LoopTerm x = loop_terms(p->fn, a)[i], y = loop_terms(p->fn, b)[i];
    bool uses = false;
    if (x.coef != y.coef || x.stride[0] != y.stride[0] || x.stride[1] != y.stride[1] ||
        !pick_follows(p, x.var, PICK_DEPTH, &uses) || !pick_part(p, x.var, y.var) ||
        (x.var && !pick_check(p, x.var, uses)))
      return false;
    any |= uses;
  }
  p->found = found;
  return any;
}

/* A load of the loop's trips that can be carried. */
static bool pick_find(Pick *p) {
  const Hoist *h = p->h;
  u32 begin = h->where[p->loop] + 1, end = h->end[p->loop], depth = 0;
  p->next = h->body[end - 1];
  for (u32 pos = begin; pos < end; pos++) {
    const LoopNode *n = pick_node(p, h->body[pos]);
    bool ends = (n->op == LOOP_NEXT || n->op == LOOP_BREAK) && n->a == p->loop;
    if ((loop_is_head(n) && n->op != LOOP_IF) || (ends && pos != end - 1)) return false;
  }
  if (pick_node(p, p->next)->op != LOOP_NEXT || !hoist_poll(h, p->loop)) return false;
  for (u32 pos = begin; pos < end; pos++) {
    const LoopNode *n = pick_node(p, h->body[pos]);
    if (loop_is_head(n)) depth++;
    if (n->op == LOOP_END) depth--;
    if (depth || n->op != LOOP_LOAD || pick_node(p, n->a)->op != LOOP_PARAM || pick_stored(p, n->a)) continue;
    p->load = h->body[pos];
    for (u32 i = 0; i < pick_node(p, p->loop)->b; i++) {
      p->carry = loop_carry_of(p->fn, p->loop, i);
      if (loop_type_of(p->fn, p->carry) != LT_I64 || !pick_choice(p)) continue;
      u32 last = pick_node(p, p->choice)->op == LOOP_IF ? h->where[p->choice] : end, inner = 0;
      for (u32 at = begin; at < last; at++) {
        const LoopNode *m = pick_node(p, h->body[at]);
        if (loop_is_head(m)) inner++;
        if (m->op == LOOP_END) inner--;
        if (!inner && pick_found(p, h->body[at], last)) return true;
      }
    }
  }
  return false;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static u32 pick_to(const Pick *p, u32 id) { return id < p->h->nodes ? p->to[id] : id; }

static void pick_renumber(Pick *p, u32 id) {
  LoopFn *fn = p->fn;
  LoopNode *n = &fn->nodes.data[id];
  LoopForm form = loop_op_form((LoopOp)n->op);
  if (form == LOOP_FORM_LEAF) return;
  if (form <= LOOP_FORM_CHECK) {
    n->a = pick_to(p, n->a);
    n->b = pick_to(p, n->b);
    if (form != LOOP_FORM_ACCESS) n->c = pick_to(p, n->c);
  }
  if (form == LOOP_FORM_MARK || form == LOOP_FORM_TERM) n->a = pick_to(p, n->a);
  for (u32 i = 0; i < n->count && form == LOOP_FORM_ACCESS; i++)
    fn->terms.data[n->list + i].var = pick_to(p, fn->terms.data[n->list + i].var);
  for (u32 i = 0; i < n->count && form >= LOOP_FORM_CHECK; i++)
    fn->list.data[n->list + i] = pick_to(p, fn->list.data[n->list + i]);
}

/* A head in place of one that carries or gives one value less: what belonged to that belongs to it. */
static void pick_instead(Pick *p, u32 old, u32 new) {
  const LoopNode was = *pick_node(p, old), now = *pick_node(p, new);
  p->fn->open.count--; /* the END that is there closes it */
  p->to[old] = new;
  for (u32 i = 0; i < was.a; i++) p->to[old + 1 + i] = new + 1 + i;
  for (u32 i = 0; i < was.b; i++) p->to[old + 1 + was.a + i] = new + 1 + now.a + i;
  for (u32 i = 0; i < was.c; i++) p->to[old + 1 + was.a + was.b + i] = new + 1 + now.a + now.b + i;
}

/* One value more at the end of a statement's list. */
static bool pick_more(Pick *p, u32 id, u32 value) {
  LoopFn *fn = p->fn;
  u32 list = fn->list.count, count = pick_node(p, id)->count;
  for (u32 i = 0; i <= count; i++)
    if (!vec_push(fn->module->alloc, &fn->list, i < count ? fn->list.data[pick_node(p, id)->list + i] : value))
      return false;
  fn->nodes.data[id].list = list;
  fn->nodes.data[id].count = count + 1;
  return true;
}

/* In front of the loop: the element at the first place; 0 where there are no trips. */
static u32 pick_first(Pick *p, u32 *values) {
  LoopFn *fn = p->fn;
  LoopTerm terms[PICK_DEPTH];
  const LoopNode load = *pick_node(p, p->load), poll = *pick_node(p, hoist_poll(p->h, p->loop));
  LoopType t = (LoopType)load.type;
  u32 trips = loop_trips_of(fn, p->loop, 0),
      head = loop_begin_if(fn, loop_emit(fn, LOOP_NE, LT_VOID, trips, loop_const_i(fn, LT_I64, 0), 0), 1, &t);
  for (u32 i = 0; i < poll.count; i++) values[i] = hoist_before(p->h, fn->list.data[poll.list + i], p->loop);
  for (u32 i = 0; i < p->check_count; i++) {
    const LoopNode check = *pick_node(p, p->checks[i]);
    u32 a = hoist_before(p->h, check.a, p->loop), b = hoist_before(p->h, check.b, p->loop);
    loop_check(fn, LOOP_CHECK_INDEX, (u32)poll.imm, a, b, poll.count, values);
  }
  for (u32 i = 0; i < load.count; i++) {
    terms[i] = fn->terms.data[load.list + i];
    terms[i].var = hoist_before(p->h, terms[i].var, p->loop);
  }
  u32 value = loop_load(fn, load.a, (i64)load.imm, terms, load.count);
  loop_yield(fn, 1, &value);
  loop_else(fn);
  value = loop_const(fn, t, 0);
  loop_yield(fn, 1, &value);
  loop_end(fn);
  return loop_result_of(fn, head, 0);
}

static bool pick_dropped(const Pick *p, u32 id) {
  bool dropped = id == p->load;
  for (u32 i = 0; i < p->check_count; i++) dropped |= p->checks[i] == id;
  return dropped;
}

/* The function anew, with the loop that carries the element. */
static bool pick_write(Pick *p, Arena *arena) {
  Hoist *h = p->h;
  LoopFn *fn = p->fn;
  Allocator *alloc = fn->module->alloc;
  const LoopNode loop = *pick_node(p, p->loop), choice = *pick_node(p, p->choice);
  const bool arms = choice.op == LOOP_IF;
  u32 element = 0, instead = 0, polls = pick_node(p, hoist_poll(h, p->loop))->count,
      *values = arena_alloc(arena, sizeof *values * (polls + 1)),
      *list = arena_alloc(arena, sizeof *list * (loop.b + 1));
  LoopType *types = arena_alloc(arena, sizeof *types * (choice.c + 1));
  if (!values || !list || !types) return false;
  fn->body.count = 0;
  for (u32 pos = 0; pos < h->body_count && !fn->failed; pos++) {
    u32 id = h->body[pos];
    if (id == p->loop) {
      u32 first = pick_first(p, values), trips = loop_trips_of(fn, id, 0);
      for (u32 i = 0; i < loop.b; i++) list[i] = loop_init_of(fn, id, i);
      list[loop.b] = first;
      u32 head = loop_begin_for(fn, NULL, trips, loop.b + 1, list);
      if (!head) return false;
      fn->nodes.data[head + 1].list = fn->nodes.data[id + 1].list;
      pick_instead(p, id, head);
      p->to[p->load] = element = loop_carry_of(fn, head, loop.b);
      continue;
    }
    if (pick_dropped(p, id)) continue;
    if (id == p->choice && arms) {
      for (u32 i = 0; i < choice.c; i++) types[i] = loop_type_of(fn, loop_result_of(fn, id, i));
      types[choice.c] = loop_type_of(fn, p->load);
      u32 head = loop_begin_if(fn, pick_to(p, loop_cond_of(fn, id)), choice.c + 1, types);
      if (!head) return false;
      pick_instead(p, id, head);
      instead = loop_result_of(fn, head, choice.c);
      continue;
    }
    const LoopNode n = *pick_node(p, id);
    bool last = pick_node(p, h->body[pos + 1 < h->body_count ? pos + 1 : pos])->op == LOOP_END,
         picks = last == p->otherwise, gives = n.op == LOOP_YIELD && arms && n.a == p->choice;
    u32 found = pick_to(p, p->found);
    if (id == p->next && !arms) {
      const LoopNode now = *pick_node(p, p->choice);
      instead = loop_emit(fn, LOOP_SELECT, LT_VOID, now.a, p->otherwise ? element : found,
                          p->otherwise ? found : element);
    }
    pick_renumber(p, id);
    if (gives && !pick_more(p, id, picks ? found : element)) return false;
    if (id == p->next && !pick_more(p, id, instead)) return false;
    if (!vec_push(alloc, &fn->body, id)) return false;
  }
  return !fn->failed;
}

/* One load. `more`: there was one. */
static bool pick_one(Native *n, bool *more) {
  Pick p = {.fn = n->fn, .h = hoist_read(n)};
  Arena *arena = &n->c->arena;
  *more = false;
  if (!p.h) return false;
  for (u32 pos = 0; pos < p.h->body_count && !*more; pos++) {
    p.loop = p.h->body[pos];
    const LoopNode *x = pick_node(&p, p.loop);
    *more = x->op == LOOP_FOR && x->a == 1 && x->b && pick_find(&p);
  }
  if (!*more) return true;
  p.to = arena_alloc(arena, sizeof *p.to * p.h->nodes);
  if (!p.to) return false;
  for (u32 i = 0; i < p.h->nodes; i++) p.to[i] = i;
  n->carried++;
  return pick_write(&p, arena);
}

bool native_carry(Native *n) {
  bool more = !(n->c->limits && n->c->limits->exact) && MECHANISM(n->c->vm, carried_picks);
  for (u32 i = 0; i < PICKS_CARRIED && more; i++)
    if (!pick_one(n, &more)) return false;
  return !n->fn->failed && (!n->carried || loops_drop_dead(n->fn));
}
