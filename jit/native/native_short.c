/* native_short.c — a loop around loops of a few trips, written out: for native_raise.c, which makes kernels of it.
 *
 * `for x in … { s = 0; for v in 0..3 { s += p[x + v] }; q[x] = s }` is a loop of independent trips once the inner loop
 * is three statements. The copy stands behind the end of the function's body and is no part of it: what is called in
 * front of the loop is made of it, and the loop stays as it is for the trips that are left. Inner polls are left out;
 * the calls poll in front of trips. */
#include "jit/native/native_hoist.h"

enum { SHORT_TRIPS = 32, SHORT_STATEMENTS = 512, SHORT_DEPTH = 3, SHORT_CARRIED = 8, SHORT_TERMS = 8 };

typedef struct Short {
  const Hoist *h;
  LoopFn *fn;
  Arena *arena;
  u32 loop;       /* the outer one, */
  u32 head;       /* its copy */
  u32 *to;        /* per node: what it is in the copy */
  u32 statements; /* written */
} Short;

static const LoopNode *short_node(const Short *s, u32 id) { return loop_node(s->fn, id); }
static u32 short_to(const Short *s, u32 id) { return id < s->h->nodes ? s->to[id] : id; }

static bool short_constant(const Short *s, u32 id, u64 *out) {
  const LoopNode *n = short_node(s, id);
  *out = n->imm;
  return id && n->op == LOOP_CONST;
}

/* An operation, or the constant that it is. */
static u32 short_pure(Short *s, const LoopNode *n) {
  u32 ids[3] = {short_to(s, n->a), short_to(s, n->b), short_to(s, n->c)};
  u64 x[3] = {0}, bits;
  bool known = n->op != LOOP_MATH;
  for (u32 i = 0; i < 3 && known; i++) known = !ids[i] || short_constant(s, ids[i], &x[i]);
  if (known && loop_eval((LoopOp)n->op, (LoopType)n->type, loop_type_of(s->fn, ids[0]), x[0], x[1], x[2], &bits))
    return loop_const(s->fn, (LoopType)n->type, bits);
  if (n->op == LOOP_MATH)
    return loop_math(s->fn, name_text(&s->fn->module->names, (Name)n->imm), ids[0], ids[1], ids[2]);
  return loop_emit(s->fn, (LoopOp)n->op, (LoopType)n->type, ids[0], ids[1], ids[2]);
}

static bool short_access(Short *s, u32 id, const LoopNode *n) {
  LoopTerm terms[SHORT_TERMS];
  if (n->count > SHORT_TERMS) return false;
  for (u32 i = 0; i < n->count; i++) {
    terms[i] = loop_terms(s->fn, n)[i];
    terms[i].var = short_to(s, terms[i].var);
  }
  if (n->op == LOOP_LOAD) s->to[id] = loop_load(s->fn, n->a, (i64)n->imm, terms, n->count);
  else loop_store(s->fn, n->a, (i64)n->imm, terms, n->count, short_to(s, n->b));
  return true;
}

static u32 *short_list(Short *s, const LoopNode *n) {
  u32 *list = arena_alloc(s->arena, sizeof *list * (n->count + 1));
  for (u32 i = 0; list && i < n->count; i++) list[i] = short_to(s, loop_list(s->fn, n)[i]);
  return list;
}

/* What ends a trip or an arm, of the head that the copy has in place of `head`. */
static bool short_ends(Short *s, LoopNode n, u32 head) {
  LoopFn *fn = s->fn;
  u32 *list = short_list(s, &n);
  if (!list || !vec_push(fn->module->alloc, &fn->open, head)) return false;
  if (n.op == LOOP_YIELD) loop_yield(fn, n.count, list);
  else if (n.op == LOOP_NEXT) loop_next(fn, n.count, list);
  else if (n.op == LOOP_ELSE) loop_else(fn);
  else loop_end(fn);
  if (n.op != LOOP_END) fn->open.count--;
  return !fn->failed;
}

static bool short_if(Short *s, u32 id) {
  LoopFn *fn = s->fn;
  const LoopNode n = *short_node(s, id);
  LoopType *types = arena_alloc(s->arena, sizeof *types * (n.c + 1));
  if (!types) return false;
  for (u32 i = 0; i < n.c; i++) types[i] = loop_type_of(fn, loop_result_of(fn, id, i));
  u32 head = loop_begin_if(fn, short_to(s, loop_cond_of(fn, id)), n.c, types);
  if (!head) return false;
  fn->open.count--;
  s->to[id] = head;
  for (u32 i = 0; i < n.c; i++) s->to[loop_result_of(fn, id, i)] = loop_result_of(fn, head, i);
  return true;
}

static bool short_body(Short *s, u32 loop, u32 depth);

/* The trips one after the other. */
static bool short_loop(Short *s, u32 id, u32 depth) {
  LoopFn *fn = s->fn;
  const LoopNode n = *short_node(s, id), next = *short_node(s, s->h->body[s->h->end[id] - 1]);
  u64 trips;
  u32 now[SHORT_CARRIED];
  if (!depth || n.a != 1 || n.b > SHORT_CARRIED || next.op != LOOP_NEXT || next.a != id ||
      !short_constant(s, short_to(s, loop_trips_of(fn, id, 0)), &trips) || trips > SHORT_TRIPS)
    return false;
  for (u32 i = 0; i < n.b; i++) now[i] = short_to(s, loop_init_of(fn, id, i));
  for (u64 k = 0; k < trips; k++) {
    s->to[loop_index_of(id, 0)] = loop_const_i(fn, LT_I64, (i64)k);
    for (u32 i = 0; i < n.b; i++) s->to[loop_carry_of(fn, id, i)] = now[i];
    if (!short_body(s, id, depth - 1)) return false;
    for (u32 i = 0; i < n.b; i++) now[i] = short_to(s, loop_list(fn, &next)[i]);
  }
  for (u32 i = 0; i < n.c; i++) s->to[loop_result_of(fn, id, i)] = now[i];
  return true;
}

static bool short_statement(Short *s, u32 id, u32 loop, u32 depth) {
  LoopFn *fn = s->fn;
  const LoopNode n = *short_node(s, id);
  LoopForm form = loop_op_form((LoopOp)n.op);
  if (form >= LOOP_FORM_UNARY && form <= LOOP_FORM_MATH) return (s->to[id] = short_pure(s, &n)) != 0;
  switch (n.op) {
    case LOOP_LOAD:
    case LOOP_STORE: return short_access(s, id, &n);
    case LOOP_CHECK: {
      u32 *list = short_list(s, &n);
      return list && loop_check(fn, (LoopCheck)n.aux, (u32)n.imm, short_to(s, n.a), short_to(s, n.b), n.count, list);
    }
    case LOOP_POLL: {
      u32 *list = loop == s->loop ? short_list(s, &n) : NULL;
      return loop != s->loop || (list && loop_poll(fn, (u32)n.imm, n.count, list));
    }
    case LOOP_IF: return short_if(s, id);
    case LOOP_ELSE:
    case LOOP_YIELD:
    case LOOP_END: return short_ends(s, n, s->to[n.a]);
    case LOOP_FOR: return short_loop(s, id, depth);
    case LOOP_NEXT: return n.a == loop && (loop != s->loop || short_ends(s, n, s->head));
    default: return false;
  }
}

/* The statements of one trip. */
static bool short_body(Short *s, u32 loop, u32 depth) {
  const Hoist *h = s->h;
  for (u32 pos = h->where[loop] + 1; pos < h->end[loop]; pos++) {
    u32 id = h->body[pos];
    const LoopNode *n = short_node(s, id);
    bool next = n->op == LOOP_NEXT && pos != h->end[loop] - 1;
    if (++s->statements > SHORT_STATEMENTS || next || !short_statement(s, id, loop, depth) || s->fn->failed)
      return false;
    if (short_node(s, id)->op == LOOP_FOR) pos = h->end[id];
  }
  return true;
}

/* Is there a loop inside, and nothing that is never written out? */
static bool short_wanted(const Hoist *h, u32 loop) {
  u32 loops = 0;
  for (u32 pos = h->where[loop] + 1; pos < h->end[loop]; pos++) {
    const LoopNode *n = loop_node(h->fn, h->body[pos]);
    if (n->op == LOOP_CALL || n->op == LOOP_WHILE || (loop_is_head(n) && n->op != LOOP_IF && n->op != LOOP_FOR))
      return false;
    loops += n->op == LOOP_FOR;
  }
  return loops > 0;
}

u32 native_written_out(Native *n, const Hoist *h, u32 loop) {
  LoopFn *fn = n->fn;
  const LoopNode head = *loop_node(fn, loop);
  if (head.op != LOOP_FOR || head.a != 1 || !short_wanted(h, loop)) return 0;
  u32 written = fn->body.count;
  Short s = {.h = h, .fn = fn, .arena = &n->c->arena, .loop = loop,
             .to = arena_alloc(&n->c->arena, sizeof *s.to * h->nodes)};
  u32 *init = arena_alloc(&n->c->arena, sizeof *init * (head.b + 1));
  if (!s.to || !init) return 0;
  for (u32 i = 0; i < h->nodes; i++) s.to[i] = i;
  for (u32 i = 0; i < head.b; i++) init[i] = loop_init_of(fn, loop, i);
  s.head = loop_begin_for(fn, NULL, loop_trips_of(fn, loop, 0), head.b, init);
  if (!s.head) return 0;
  fn->open.count--;
  for (u32 i = 0; i <= head.b + head.c; i++) s.to[loop + 1 + i] = s.head + 1 + i;
  bool ok = short_body(&s, loop, SHORT_DEPTH) && !fn->failed &&
            short_ends(&s, (LoopNode){.op = LOOP_END, .a = loop}, s.head);
  if (ok) return s.head;
  fn->body.count = written;
  return 0;
}
