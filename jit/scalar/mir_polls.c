/* mir_polls.c — polls: a trip takes one unit of the budget, and asks the VM when there was none.
 *
 * A short counted loop without calls and loops in it pays for as many trips as the budget has when it begins, and
 * asks when they are over, at the trip that would ask if each paid for itself: its trips end by comparing the index
 * with the first one that is not paid for. Who leaves such a loop gets back what was paid for the trips that do not
 * come. */
#include "jit/scalar/mir_emitter.h"

enum { BEFORE_MOST = 12, BODY_MOST = 16 };

/* Position of the poll a trip begins with, behind values that are pure; 0: there is none. */
static u32 find_poll(const Emitter *e, u32 at) {
  for (u32 pos = at + 1; pos <= at + BEFORE_MOST; pos++) {
    const LoopNode *n = en(e, e->fn->body.data[pos]);
    if (n->op == LOOP_POLL) return pos;
    if (loop_op_form((LoopOp)n->op) >= LOOP_FORM_MATH) return 0;
  }
  return 0;
}

void mir_find_chunk(Emitter *e, OpenHead *o, u32 at) {
  u32 poll = e->fn->kind == LOOP_NATIVE && en(e, o->head)->a == 1 ? find_poll(e, at) : 0;
  if (!poll || e->lives.end[o->head] - poll > BODY_MOST) return;
  for (u32 pos = poll + 1; pos < e->lives.end[o->head]; pos++) {
    const LoopNode *n = en(e, e->fn->body.data[pos]);
    switch (loop_op_form((LoopOp)n->op)) {
      case LOOP_FORM_HEAD:
        if (n->op != LOOP_IF) return;
        break;
      case LOOP_FORM_CALL:
      case LOOP_FORM_EXIT: return;
      case LOOP_FORM_TERM:
        if (n->op != LOOP_YIELD && (n->op != LOOP_NEXT || n->a != o->head)) return;
        break;
      default: break;
    }
  }
  o->chunk = (Chunk){o->head, poll, mir_temp(e, LT_I64), new_label(e)};
}

static MIR_op_t trips_of(Emitter *e, const Chunk *c) { return mir_op(e, loop_trips_of(e->fn, c->head, 0)); }
static MIR_reg_t index_of(Emitter *e, const Chunk *c) { return mir_reg(e, loop_index_of(c->head, 0)); }

void mir_begin_chunk(Emitter *e, OpenHead *o) {
  const Chunk c = o->chunk;
  Cold *cold = mir_cold(e, COLD_POLL, e->fn->body.data[c.poll], c.poll);
  MIR_label_t begin = cold->label, back = cold->back = new_label(e);
  cold->chunk = c;
  cold->top = o->top[0];
  ins2(e, MIR_MOV, R(e, c.limit), trips_of(e, &c));
  rrr(e, MIR_SUBO, e->left, e->left, c.limit);
  put(e, MIR_new_insn(e->ctx, MIR_UBO, L(e, begin))); /* there was less */
  put_label(e, back);
}

void mir_end_trip(Emitter *e, const OpenHead *o) {
  const Chunk c = o->chunk;
  brr(e, MIR_UBLT, o->top[0], index_of(e, &c), c.limit);
  ins3(e, MIR_UBLT, L(e, c.again), R(e, index_of(e, &c)), trips_of(e, &c));
}

void mir_give_back(Emitter *e, const Chunk *c) {
  if (!c->head) return;
  rrr(e, MIR_ADD, e->left, e->left, c->limit);
  rrr(e, MIR_SUB, e->left, e->left, index_of(e, c));
  rri(e, MIR_SUB, e->left, e->left, 1);
}

void mir_poll_statement(Emitter *e, u32 id, u32 at) {
  OpenHead *loop = mir_innermost_loop(e);
  if (loop && loop->chunk.poll == at) return;
  Cold *c = mir_cold(e, COLD_POLL, id, at);
  MIR_label_t label = c->label, back = c->back = new_label(e);
  c->chunk.head = 0;
  rri(e, MIR_SUBO, e->left, e->left, 1);
  put(e, MIR_new_insn(e->ctx, MIR_UBO, L(e, label))); /* it was 0 */
  put_label(e, back);
}

/* Less than all trips: what there was; nothing: asks before the first. */
static void pay_some(Emitter *e, const Cold *c) {
  put_label(e, c->label);
  rrr(e, MIR_ADD, c->chunk.limit, c->chunk.limit, e->left);
  ri(e, MIR_MOV, e->left, 0);
  bri(e, MIR_BNE, c->back, c->chunk.limit, 0);
  put_label(e, c->chunk.again);
  ri(e, MIR_MOV, e->left, -1); /* the trip that comes */
}

/* The VM let that one through: pays for those behind it. */
static void pay(Emitter *e, const Cold *c) {
  const Chunk *k = &c->chunk;
  MIR_reg_t more = mir_temp(e, LT_I64);
  MIR_label_t enough = new_label(e);
  ins2(e, MIR_MOV, R(e, more), trips_of(e, k));
  rrr(e, MIR_SUB, more, more, index_of(e, k));
  rri(e, MIR_SUB, more, more, 1);
  brr(e, MIR_UBLE, enough, more, e->left);
  rr(e, MIR_MOV, more, e->left);
  put_label(e, enough);
  rrr(e, MIR_SUB, e->left, e->left, more);
  rri(e, MIR_ADD, k->limit, index_of(e, k), 1);
  rrr(e, MIR_ADD, k->limit, k->limit, more);
  jump(e, c->top);
}

void mir_cold_poll(Emitter *e, const Cold *c) {
  const LoopNode *n = en(e, c->node);
  bool chunk = c->chunk.head != 0;
  MIR_reg_t answer;
  if (chunk) pay_some(e, c);
  else put_label(e, c->label);
  mir_store(e, e->native_ctx, CTX_BUDGET, e->left);
  if (e->depth) mir_store(e, e->native_ctx, CTX_DEPTH, e->depth);
  if (e->group->plain || e->depth) {
    answer = mir_quiet_call(e, c, (void (*)(void))mir_poll, R(e, e->native_ctx), I(e, 0));
  } else {
    answer = mir_temp(e, LT_I64);
    mir_mark(e, MARK_POLL, ++e->marks);
    mir_load(e, answer, mir_frame(e), FRAME_ANSWER);
  }
  mir_load(e, e->left, e->native_ctx, CTX_BUDGET);
  if (chunk) {
    MIR_label_t stop = new_label(e);
    bri(e, MIR_BNE, stop, answer, 0);
    pay(e, c);
    put_label(e, stop);
    mir_forget_addresses(e);
    /* what its exit tells */
    for (u32 at = e->lives.where[c->chunk.head] + 1; at < c->chunk.poll; at++) mir_statement(e, at);
  } else {
    bri(e, MIR_BEQ, c->back, answer, 0);
  }
  MIR_label_t known = mir_known_leave(e, c->node, 0);
  if (known) put(e, MIR_new_insn(e->ctx, MIR_JMP, L(e, known)));
  else mir_leave(e, (u32)n->imm, 0, loop_list(e->fn, n), n->count);
}
