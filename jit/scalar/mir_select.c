/* mir_select.c — one of two values by a condition: without a branch where the processor need not guess.
 *
 * Integers by masks; the lesser or greater of two floats by minsd and maxsd, which give their second operand when
 * neither is less, as `a < b ? a : b` does. The rest branches. */
#include "jit/scalar/mir_emitter.h"

/* select(x < y, x, y) and so on: MARK_MIN or MARK_MAX, else MARK_END. */
static MirMark extreme(const Emitter *e, const LoopNode *n) {
  const LoopNode *c = en(e, n->a);
  if (!loop_is_float((LoopType)n->type) || e->group->plain || (c->op != LOOP_LT && c->op != LOOP_GT)) return MARK_END;
  if (c->a == n->b && c->b == n->c) return c->op == LOOP_LT ? MARK_MIN : MARK_MAX;
  if (c->b == n->b && c->a == n->c) return c->op == LOOP_LT ? MARK_MAX : MARK_MIN;
  return MARK_END;
}

/* All ones where a condition does not hold; once in a block. */
MIR_reg_t mir_unless(Emitter *e, u32 cond) {
  if (e->mask_of == cond) return e->mask;
  e->mask = mir_temp(e, LT_I64);
  ins3(e, MIR_ADD, R(e, e->mask), mir_op(e, cond), I(e, -1));
  e->mask_of = cond;
  return e->mask;
}

/* a & -c, b & m or a ^ ((a ^ b) & m), where c is 0 or 1 and m is c - 1. */
static void by_mask(Emitter *e, u32 id, const LoopNode *n) {
  LoopType t = (LoopType)n->type;
  MIR_op_t a = mir_op(e, n->b), b = mir_op(e, n->c);
  MIR_reg_t to = mir_reg(e, id), r = a.mode == MIR_OP_REG && a.u.reg == to ? mir_temp(e, t) : to;
  bool zero_a = a.mode == MIR_OP_INT && a.u.i == 0;
  if (b.mode == MIR_OP_INT && b.u.i == 0) {
    MIR_reg_t mask = mir_temp(e, LT_I64);
    mir_negate(e, LT_I64, mask, mir_op(e, n->a));
    mir_move(e, t, r, a);
    rrr(e, MIR_AND, r, r, mask);
    mir_finish(e, id, r);
    return;
  }
  MIR_reg_t mask = mir_unless(e, n->a);
  mir_move(e, t, r, b);
  if (!zero_a) ins3(e, MIR_XOR, R(e, r), R(e, r), a);
  rrr(e, MIR_AND, r, r, mask);
  if (!zero_a) ins3(e, MIR_XOR, R(e, to), R(e, r), a);
}

void mir_select(Emitter *e, u32 id, const LoopNode *n) {
  LoopType t = (LoopType)n->type;
  MirMark mark = extreme(e, n);
  if (lives_masks(&e->lives, n)) {
    by_mask(e, id, n);
    return;
  }
  MIR_op_t b = mir_op(e, n->b), c = mir_op(e, n->c);
  MIR_reg_t r = mark != MARK_END || e->lives.shared[id] ? mir_temp(e, t) : mir_reg(e, id);
  mir_move(e, t, r, b);
  if (mark != MARK_END) {
    mir_stand_in(e, mark, t, r, c);
  } else {
    MIR_label_t done = new_label(e);
    mir_branch_if(e, n->a, done);
    mir_move(e, t, r, c);
    put_label(e, done);
  }
  mir_finish(e, id, r);
}
