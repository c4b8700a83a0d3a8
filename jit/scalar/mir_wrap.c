/* mir_wrap.c — what is nearly always in range, with the rest behind the function's end: indices counted from the
 * end, shifts.
 *
 * A counted loop without loops inside that shifts by what counts with it, or stays the same, is written twice:
 * before it the amounts of the first trip and of the last are compared, and where all lie in range its trips ask for
 * none. The other comes behind the body. */
#include "jit/scalar/mir_emitter.h"

/* ---- indices ------------------------------------------------------------------------------- */

bool mir_wrap(Emitter *e, u32 id) {
  u32 at = e->lives.where[id];
  if (!lives_wraps(&e->lives, at)) return false;
  u32 check = e->fn->body.data[at + 1];
  const LoopNode *n = en(e, id);
  MIR_op_t i = mir_op(e, n->c), size = mir_op(e, en(e, check)->b);
  MIR_reg_t r = mir_own(e, id);
  MIR_label_t failed = mir_leave_label(e, check, at + 1);
  Cold *c = mir_cold(e, COLD_WRAP, check, at + 1);
  MIR_label_t wrap = c->label, back = c->back = new_label(e);
  c->failed = failed;
  c->code = r;
  ins2(e, MIR_MOV, R(e, r), i);
  ins3(e, MIR_UBGE, L(e, wrap), R(e, r), size);
  put_label(e, back);
  mir_finish(e, id, r);
  return true;
}

bool mir_is_wrapped(const Emitter *e, u32 check, u32 at) {
  return at && e->fn->body.data[at] == check && lives_wraps(&e->lives, at - 1);
}

void mir_cold_wrap(Emitter *e, const Cold *c) {
  MIR_op_t size = mir_op(e, en(e, c->node)->b), r = R(e, c->code);
  put_label(e, c->label);
  ins3(e, MIR_ADD, r, r, size);
  ins3(e, MIR_UBGE, L(e, c->failed), r, size);
  jump(e, c->back);
}

/* ---- loops with shifts --------------------------------------------------------------------- */

enum { SHIFT_LOOP_MOST = 96 /* statements of a loop that is written twice */, BITS = 64 };

static bool is_known_before(const Emitter *e, u32 head, u32 id) {
  const LoopNode *n = en(e, id);
  return n->op == LOOP_PARAM || n->op == LOOP_CONST || e->lives.where[id] < e->lives.where[head];
}

/* The amount of a shift as `rest`, which the loop does not change, 0: none, and how it changes from trip to trip: by 1,
 * -1 or 0. */
static bool counts_along(const Emitter *e, u32 head, const LoopNode *shift, u32 *rest, int *step) {
  u32 index = loop_index_of(head, 0);
  if ((shift->op != LOOP_SHL && shift->op != LOOP_SHR) || loop_type_bytes((LoopType)shift->type) * 8 != BITS)
    return false;
  const LoopNode *by = en(e, shift->b);
  *rest = shift->b;
  *step = 0;
  if (by->op == LOOP_CONST) return false;
  if (is_known_before(e, head, shift->b)) return true;
  *step = by->op == LOOP_SUB ? -1 : 1;
  *rest = 0;
  if (shift->b == index) return true;
  if (by->op != LOOP_ADD && by->op != LOOP_SUB) return false;
  *rest = by->b == index ? by->a : by->op == LOOP_ADD && by->a == index ? by->b : index;
  return *rest != index && is_known_before(e, head, *rest);
}

/* Goes to `out` unless the amount is in range in the first trip and in the last. */
static void ask_range(Emitter *e, MIR_label_t out, MIR_op_t trips, u32 rest, int step) {
  MIR_reg_t s = mir_temp(e, LT_I64);
  ins2(e, MIR_MOV, R(e, s), rest ? mir_op(e, rest) : I(e, 0));
  if (rest) bri(e, MIR_UBGE, out, s, BITS);
  if (step) ins3(e, step > 0 ? MIR_ADD : MIR_SUB, R(e, s), R(e, s), trips);
  if (step) bri(e, step > 0 ? MIR_UBGT : MIR_BLT, out, s, step > 0 ? BITS : -1);
}

u32 mir_shift_loop(Emitter *e, u32 at) {
  u32 head = e->fn->body.data[at], end = e->lives.end[head], rest, asked = 0;
  const LoopNode *n = en(e, head);
  int step;
  if (e->fn->kind != LOOP_NATIVE || e->twice || n->op != LOOP_FOR || n->a != 1 || end - at > SHIFT_LOOP_MOST) return 0;
  MIR_label_t out = NULL, done;
  for (u32 pos = at + 1; pos < end; pos++)
    if (loop_is_head(en(e, e->fn->body.data[pos])) && en(e, e->fn->body.data[pos])->op != LOOP_IF) return 0;
  for (u32 pos = at + 1; pos < end; pos++) {
    n = en(e, e->fn->body.data[pos]);
    if (!counts_along(e, head, n, &rest, &step) || n->b == asked) continue;
    if (!out) out = new_label(e);
    ask_range(e, out, mir_op(e, loop_trips_of(e->fn, head, 0)), rest, step);
    asked = n->b;
  }
  if (!out) return 0;
  done = new_label(e);
  e->twice = e->in_range = head;
  mir_statements(e, at, end + 1);
  e->in_range = 0;
  put_label(e, done);
  mark_rare(out);
  put_label(e, out);
  mir_statements(e, at, end + 1);
  e->twice = 0;
  jump(e, done);
  mir_set_aside(e, out, true);
  return end;
}

/* ---- shifts -------------------------------------------------------------------------------- */

static MIR_insn_code_t shift_code(const LoopNode *n) {
  return n->op == LOOP_SHL ? MIR_LSH : loop_is_signed((LoopType)n->type) ? MIR_RSH : MIR_URSH;
}

void mir_shift(Emitter *e, u32 id, const LoopNode *n) {
  LoopType t = (LoopType)n->type;
  u32 width = loop_type_bytes(t) * 8;
  MIR_op_t a = mir_op(e, n->a), b = mir_op(e, n->b);
  MIR_insn_code_t code = shift_code(n);
  const LoopNode *by = en(e, n->b);
  if (by->op == LOOP_CONST) {
    bool out = by->imm >= width;
    /* leaves rcx alone */
    if (code == MIR_LSH && by->imm == 1 && a.mode == MIR_OP_REG) ins3(e, MIR_ADD, R(e, mir_reg(e, id)), a, a);
    else if (out && code != MIR_RSH) ri(e, MIR_MOV, mir_reg(e, id), 0);
    else ins3(e, code, R(e, mir_reg(e, id)), a, I(e, out ? 63 : (i64)by->imm));
    if (code == MIR_LSH) mir_extend(e, t, mir_reg(e, id));
    return;
  }
  MIR_reg_t r = mir_reg(e, id);
  if (b.mode == MIR_OP_REG && b.u.reg == r) r = mir_temp(e, t);
  /* one register for all of a block, whatever is out of range: MIR would make it for each */
  if (a.mode == MIR_OP_INT) {
    if (!e->shifted || e->shifts != a.u.i) ri(e, MIR_MOV, e->shifted = mir_temp(e, t), e->shifts = a.u.i);
    a = R(e, e->shifted);
  }
  u32 rest;
  int step;
  MIR_label_t back = NULL;
  if (!e->in_range || !counts_along(e, e->in_range, n, &rest, &step)) {
    Cold *c = mir_cold(e, COLD_SHIFT, id, e->lives.where[id]);
    back = c->back = new_label(e);
    c->code = r;
    ins3(e, MIR_UBGE, L(e, c->label), b, I(e, width));
  }
  ins3(e, code, R(e, r), a, b);
  if (back) put_label(e, back);
  if (code == MIR_LSH) mir_extend(e, t, r);
  mir_finish(e, id, r);
}

void mir_cold_shift(Emitter *e, const Cold *c) {
  const LoopNode *n = en(e, c->node);
  put_label(e, c->label);
  if (shift_code(n) == MIR_RSH) ins3(e, MIR_RSH, R(e, c->code), mir_op(e, n->a), I(e, 63));
  else ri(e, MIR_MOV, c->code, 0);
  jump(e, c->back);
}
