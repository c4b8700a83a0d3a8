/* mir_wrap.c — what is nearly always in range, with the rest behind the function's end: indices counted from the end, shifts. */
#include "jit/mir_emitter.h"

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

bool mir_is_wrapped(const Emitter *e, u32 check, u32 at) { return at && e->fn->body.data[at] == check && lives_wraps(&e->lives, at - 1); }

void mir_cold_wrap(Emitter *e, const Cold *c) {
  MIR_op_t size = mir_op(e, en(e, c->node)->b), r = R(e, c->code);
  put_label(e, c->label);
  ins3(e, MIR_ADD, r, r, size);
  ins3(e, MIR_UBGE, L(e, c->failed), r, size);
  jump(e, c->back);
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
    if (code == MIR_LSH && by->imm == 1 && a.mode == MIR_OP_REG) ins3(e, MIR_ADD, R(e, mir_reg(e, id)), a, a); /* leaves rcx alone */
    else if (out && code != MIR_RSH) ri(e, MIR_MOV, mir_reg(e, id), 0);
    else ins3(e, code, R(e, mir_reg(e, id)), a, I(e, out ? 63 : (i64)by->imm));
    if (code == MIR_LSH) mir_extend(e, t, mir_reg(e, id));
    return;
  }
  MIR_reg_t r = mir_reg(e, id);
  if (b.mode == MIR_OP_REG && b.u.reg == r) r = mir_temp(e, t);
  Cold *c = mir_cold(e, COLD_SHIFT, id, e->lives.where[id]);
  MIR_label_t out = c->label, back = c->back = new_label(e);
  c->code = r;
  ins3(e, MIR_UBGE, L(e, out), b, I(e, width));
  if (a.mode == MIR_OP_INT) { /* one register for all of a block: MIR would make it for each */
    if (!e->shifted || e->shifts != a.u.i) ri(e, MIR_MOV, e->shifted = mir_temp(e, t), e->shifts = a.u.i);
    a = R(e, e->shifted);
  }
  ins3(e, code, R(e, r), a, b);
  put_label(e, back);
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
