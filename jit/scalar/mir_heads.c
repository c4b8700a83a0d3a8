/* mir_heads.c — loops, branches and what ends them.
 *
 * Counted loops test at the bottom, behind one test for no trips. A `while` whose body begins with a few statements
 * and an `if` has these again where it goes on to its next trip, so that it jumps once per trip. The first arm of an
 * `if` inside a loop comes behind the body when it has a loop: beside that a jump there and back is little, and
 * trips without it jump once less. */
#include <string.h>

#include "jit/scalar/mir_emitter.h"

enum { HEADER_MOST = 12 };

static OpenHead *top(Emitter *e) { return &e->open.data[e->open.count - 1]; }

OpenHead *mir_innermost_loop(Emitter *e) {
  u32 d = e->open.count;
  while (d-- > 0)
    if (en(e, e->open.data[d].head)->op != LOOP_IF) return &e->open.data[d];
  return NULL;
}

static OpenHead *find_open(Emitter *e, u32 head) {
  u32 d = e->open.count - 1;
  while (e->open.data[d].head != head) d--;
  return &e->open.data[d];
}

/* ---- opening ------------------------------------------------------------------------------- */

/* Position of the `if` that a while's body begins with behind statements that may stand twice; 0 when there is none. */
static u32 find_header(const Emitter *e, u32 at, u32 head) {
  u32 nexts = 0;
  for (u32 pos = at; pos < e->lives.end[head]; pos++) {
    const LoopNode *n = en(e, e->fn->body.data[pos]);
    nexts += n->op == LOOP_NEXT && n->a == head;
  }
  if (nexts == 0 || nexts > 2) return 0;
  for (u32 pos = at + 1; pos <= at + HEADER_MOST; pos++) {
    const LoopNode *n = en(e, e->fn->body.data[pos]);
    if (n->op == LOOP_IF) return pos;
    if (loop_is_head(n) || loop_is_terminator(n) || n->op == LOOP_CALL || n->op == LOOP_END) return 0;
  }
  return 0;
}

static void initial_values(Emitter *e, u32 id, const LoopNode *n) {
  Move few[32], *moves = few;
  if (n->b > COUNT_OF(few) && !(moves = mem_alloc(e->alloc, sizeof *moves * n->b))) {
    e->failed = true;
    return;
  }
  for (u32 i = 0; i < n->b; i++) {
    u32 carry = loop_carry_of(e->fn, id, i);
    moves[i] = (Move){mir_reg(e, carry), mir_op(e, loop_init_of(e->fn, id, i)), et(e, carry)};
  }
  mir_moves(e, moves, n->b);
  if (moves != few) mem_free(e->alloc, moves, sizeof *moves * n->b);
}

static void open_axis(Emitter *e, OpenHead *o, u32 axis) {
  u32 index = loop_index_of(o->head, axis);
  MIR_op_t trips = mir_op(e, loop_trips_of(e->fn, o->head, axis));
  bool outermost = e->fn->kind == LOOP_KERNEL && e->open.count == 0;
  o->top[axis] = new_label(e);
  o->skip[axis] = new_label(e);
  if (!outermost && !o->empty && !(trips.mode == MIR_OP_INT && trips.u.i != 0)) {
    if (trips.mode == MIR_OP_INT) jump(e, o->skip[axis]);
    else ins3(e, MIR_BEQ, L(e, o->skip[axis]), trips, I(e, 0));
  }
  mir_begin_streams(e, index, outermost ? e->lo : 0);
  ins2(e, MIR_MOV, R(e, mir_reg(e, index)), outermost ? R(e, e->lo) : I(e, 0));
  if (o->chunk.head) mir_begin_chunk(e, o);
  put_label(e, o->top[axis]);
}

static void close_axis(Emitter *e, OpenHead *o, u32 axis) {
  u32 index = loop_index_of(o->head, axis);
  bool outermost = e->fn->kind == LOOP_KERNEL && e->open.count == 1;
  mir_step_streams(e, index);
  rri(e, MIR_ADD, mir_reg(e, index), mir_reg(e, index), 1);
  if (outermost) brr(e, MIR_BLT, o->top[axis], mir_reg(e, index), e->hi);
  else if (o->chunk.head) mir_end_trip(e, o);
  else ins3(e, MIR_UBLT, L(e, o->top[axis]), R(e, mir_reg(e, index)), mir_op(e, loop_trips_of(e->fn, o->head, axis)));
  put_label(e, o->skip[axis]);
}

static bool comes_late(Emitter *e, u32 id, u32 at) {
  u32 pos = at + 1, end = e->lives.other[id];
  if (!mir_innermost_loop(e) || en(e, loop_cond_of(e->fn, id))->op == LOOP_CONST) return false;
  while (pos < end && !(loop_is_head(en(e, e->fn->body.data[pos])) && en(e, e->fn->body.data[pos])->op != LOOP_IF))
    pos++;
  if (pos >= end) return false;
  for (pos = end; pos < e->lives.end[id]; pos++)
    if (loop_is_head(en(e, e->fn->body.data[pos]))) return false;
  return true;
}

static void move_insns(DLIST(MIR_insn_t) *from, MIR_insn_t first, DLIST(MIR_insn_t) *to) {
  for (MIR_insn_t next, i = first; i; i = next) {
    next = DLIST_NEXT(MIR_insn_t, i);
    DLIST_REMOVE(MIR_insn_t, *from, i);
    DLIST_APPEND(MIR_insn_t, *to, i);
  }
}

void mir_set_aside(Emitter *e, MIR_insn_t from, bool rare) {
  move_insns(&e->item->u.func->insns, from, rare ? &e->rare : &e->late);
}

/* The end of an arm that comes late: all since its label leaves the function until the body is there. */
static void put_aside(Emitter *e, OpenHead *o) {
  if (o->live) jump(e, o->done);
  mir_set_aside(e, o->late, false);
  o->late = NULL;
}

void mir_put_late(Emitter *e) {
  move_insns(&e->late, DLIST_HEAD(MIR_insn_t, e->late), &e->item->u.func->insns);
  move_insns(&e->rare, DLIST_HEAD(MIR_insn_t, e->rare), &e->item->u.func->insns);
}

void mir_open_head(Emitter *e, u32 id, u32 at) {
  const LoopNode *n = en(e, id);
  mir_forget_addresses(e);
  OpenHead o = {.head = id, .next = new_label(e), .done = new_label(e), .live = true};
  if (n->op == LOOP_IF) {
    bool has_else = e->lives.other[id] != e->lives.end[id];
    o.arm = has_else ? new_label(e) : o.done;
    OpenHead *loop = e->open.count ? top(e) : NULL;
    o.threads = lives_threads(&e->lives, id) != 0;
    if (o.threads) o.then_label = new_label(e), o.else_label = new_label(e);
    if (e->thread_then) { /* who came here knew where to */
      if (has_else) o.arm = e->thread_else;
      else o.arm = o.done = e->thread_else;
      put_label(e, e->thread_then);
      e->thread_then = e->thread_else = NULL;
    } else if (!o.threads && !(loop && loop->header_if == at) && comes_late(e, id, at)) {
      o.late = new_label(e);
      mir_branch_if(e, loop_cond_of(e->fn, id), o.late);
      put_label(e, o.late); /* the other arm comes to stand here */
    } else {
      mir_branch_unless(e, loop_cond_of(e->fn, id), o.arm);
    }
    if (loop && loop->header_if == at) {
      loop->then_label = new_label(e);
      loop->else_label = o.arm;
      put_label(e, loop->then_label);
    }
  } else {
    initial_values(e, id, n);
    if (n->op == LOOP_REDUCE || n->op == LOOP_SCAN) mir_open_fold(e, &o, at);
    if (n->op == LOOP_FOR) mir_find_chunk(e, &o, at);
    for (u32 axis = 0; axis < n->a; axis++) open_axis(e, &o, axis);
    if (n->op == LOOP_WHILE) {
      o.header_if = find_header(e, at, id);
      o.top[0] = new_label(e);
      put_label(e, o.top[0]);
    }
    mir_fold_trip(e, &o, at);
  }
  mir_forget_addresses(e); /* those made in front of the loop */
  if (!vec_push(e->alloc, &e->open, o)) e->failed = true;
}

void mir_else(Emitter *e) {
  mir_forget_addresses(e);
  OpenHead *o = top(e);
  if (o->late) put_aside(e, o);
  else if (o->live) jump(e, o->done);
  put_label(e, o->arm);
  o->live = true;
}

void mir_close_head(Emitter *e, u32 at) {
  mir_forget_addresses(e);
  OpenHead *o = top(e);
  const LoopNode *n = en(e, o->head);
  if (n->op != LOOP_IF) {
    if (n->op != LOOP_WHILE) put_label(e, o->next);
    for (u32 axis = n->a; axis-- > 0;) close_axis(e, o, axis);
    if (n->op == LOOP_REDUCE || n->op == LOOP_SCAN) mir_close_fold(e, o, at);
  }
  if (o->late) put_aside(e, o);
  put_label(e, o->done);
  if (o->threads) e->thread_then = o->then_label, e->thread_else = o->else_label;
  e->open.count--;
}

/* ---- terminators --------------------------------------------------------------------------- */

/* Values move to consecutive nodes of a head: its carried values or results. */
static void move_to(Emitter *e, const LoopNode *n, u32 first) {
  Move few[32], *moves = few;
  if (n->count > COUNT_OF(few) && !(moves = mem_alloc(e->alloc, sizeof *moves * n->count))) {
    e->failed = true;
    return;
  }
  for (u32 i = 0; i < n->count; i++)
    moves[i] = (Move){mir_reg(e, first + i), mir_op(e, loop_list(e->fn, n)[i]), et(e, first + i)};
  mir_moves(e, moves, n->count);
  if (moves != few) mem_free(e->alloc, moves, sizeof *moves * n->count);
}

static bool is_last_of(const Emitter *e, u32 at, u32 head) { return at + 1 == e->lives.end[head]; }

static void next_trip(Emitter *e, u32 at, const LoopNode *n) {
  u32 depth = (u32)(find_open(e, n->a) - e->open.data);
  OpenHead *o = &e->open.data[depth];
  move_to(e, n, loop_carry_of(e->fn, n->a, 0));
  if (en(e, n->a)->op == LOOP_FOR) {
    if (!is_last_of(e, at, n->a)) jump(e, o->next);
    return;
  }
  u32 header = o->header_if, head_at = e->lives.where[n->a];
  if (!header) {
    jump(e, o->top[0]);
    return;
  }
  u32 branch = e->fn->body.data[header];
  bool in_then = at < e->lives.other[branch];
  MIR_label_t yes = o->then_label, no = o->else_label;
  mir_forget_addresses(e);
  for (u32 pos = head_at + 1; pos < header; pos++) mir_statement(e, pos);
  mir_forget_addresses(e);
  if (in_then) {
    mir_branch_if(e, loop_cond_of(e->fn, branch), yes);
    jump(e, no);
  } else {
    mir_branch_unless(e, loop_cond_of(e->fn, branch), no);
    jump(e, yes);
  }
}

void mir_terminator(Emitter *e, u32 at) {
  const LoopNode *n = en(e, e->fn->body.data[at]);
  if (n->op == LOOP_YIELD) {
    OpenHead *o = top(e);
    if (o->threads) {
      MIR_label_t yes = o->then_label, no = o->else_label;
      mir_branch_unless(e, loop_list(e->fn, n)[0], no);
      jump(e, yes);
      top(e)->live = false;
      return;
    }
    if (en(e, o->head)->op == LOOP_IF) move_to(e, n, loop_result_of(e->fn, n->a, 0)); /* the arm's end follows */
    else mir_fold_element(e, o, at, mir_op(e, loop_list(e->fn, n)[0]));
    return;
  }
  if (n->op == LOOP_NEXT) {
    next_trip(e, at, n);
  } else { /* results of a loop are its carried values */
    OpenHead *o = find_open(e, n->a);
    MIR_label_t done = o->done;
    move_to(e, n, loop_carry_of(e->fn, n->a, 0));
    jump(e, done);
  }
  top(e)->live = false;
}
