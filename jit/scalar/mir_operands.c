/* mir_operands.c — instructions whose operands are what the processor takes: memory with a displacement, small
 * immediates, a result in place of an operand.
 *
 * MIR's simplification takes displacements and immediates apart, each into a move and an addition whose registers
 * are shared over the whole function; its generator has instructions for them all the same, and half as many are
 * compiled in half the time. So they go through simplification in disguise: memory without displacement, a register
 * in place of an immediate, with the number in the operand's aux data, which MIR copies along and does not read;
 * `mir_settle_operands` puts it where it belongs. */
#include "jit/scalar/mir_emitter.h"

#define SMALL ((u64)1 << 32) /* aux data: this and 32 bits */

static bool is_small(i64 v) { return v == (i32)v; }
static void *disguised(i64 v) { return (void *)(uintptr_t)(SMALL | (u32)v); }

/* `v` as an operand; `any` is an integer register that stands in its place for a while. */
static MIR_op_t small_op(const Emitter *e, MIR_reg_t any, i64 v) {
  MIR_op_t op = R(e, any);
  op.data = disguised(v);
  return op;
}

void mir_settle_operands(MIR_item_t function) {
  for (MIR_insn_t insn = DLIST_HEAD(MIR_insn_t, function->u.func->insns); insn; insn = DLIST_NEXT(MIR_insn_t, insn))
    for (u32 i = 0; i < insn->nops; i++) {
      MIR_op_t *op = &insn->ops[i];
      if (!((u64)(uintptr_t)op->data & SMALL)) continue;
      i64 v = (i32)(u64)(uintptr_t)op->data;
      op->data = NULL;
      if (op->mode == MIR_OP_MEM) {
        op->u.mem.disp = v;
      } else {
        op->mode = MIR_OP_INT;
        op->u.i = v;
      }
    }
}

/* A number in a register of its own. */
static MIR_op_t loaded(Emitter *e, i64 v) {
  MIR_reg_t r = mir_temp(e, LT_I64);
  put(e, MIR_new_insn(e->ctx, MIR_MOV, R(e, r), I(e, v)));
  return R(e, r);
}

MIR_op_t M(Emitter *e, MIR_type_t t, MIR_reg_t base, i64 disp) {
  if (disp && !is_small(disp)) {
    MIR_op_t by = loaded(e, disp);
    MIR_reg_t r = mir_temp(e, LT_I64);
    put(e, MIR_new_insn(e->ctx, MIR_ADD, R(e, r), R(e, base), by));
    base = r;
    disp = 0;
  }
  MIR_op_t op = MIR_new_mem_op(e->ctx, t, 0, base, 0, 1);
  if (disp) op.data = disguised(disp);
  return op;
}

typedef enum InPlace { NOT_IN_PLACE, IN_PLACE, IN_PLACE_EITHER } InPlace; /* EITHER: its operands commute */

static InPlace in_place(MIR_insn_code_t c, LoopType *t) {
  *t = LT_I64;
  switch (c) {
    case MIR_FADD:
    case MIR_FMUL: *t = LT_F32; return IN_PLACE_EITHER;
    case MIR_DADD:
    case MIR_DMUL: *t = LT_F64; return IN_PLACE_EITHER;
    case MIR_FSUB:
    case MIR_FDIV: *t = LT_F32; return IN_PLACE;
    case MIR_DSUB:
    case MIR_DDIV: *t = LT_F64; return IN_PLACE;
    case MIR_AND:
    case MIR_OR:
    case MIR_XOR: return IN_PLACE_EITHER;
    case MIR_SUB:
    case MIR_LSH:
    case MIR_RSH:
    case MIR_URSH: return IN_PLACE;
    default: return NOT_IN_PLACE;
  }
}

/* Does the instruction take `v` as its last operand. */
static bool takes(MIR_insn_code_t c, i64 v) {
  switch (c) {
    case MIR_LSH:
    case MIR_RSH:
    case MIR_URSH: return v >= 0 && v < 64;
    case MIR_ADD:
    case MIR_SUB:
    case MIR_SUBO:
    case MIR_MUL:
    case MIR_AND:
    case MIR_OR:
    case MIR_XOR:
    case MIR_EQ:
    case MIR_NE:
    case MIR_LT:
    case MIR_LE:
    case MIR_GT:
    case MIR_GE:
    case MIR_ULT:
    case MIR_ULE:
    case MIR_UGT:
    case MIR_UGE:
    case MIR_BEQ:
    case MIR_BNE:
    case MIR_BLT:
    case MIR_BLE:
    case MIR_BGT:
    case MIR_BGE:
    case MIR_UBLT:
    case MIR_UBLE:
    case MIR_UBGT:
    case MIR_UBGE: return is_small(v);
    default: return false;
  }
}

static bool is_op(MIR_op_t x, MIR_op_t y) {
  return x.mode == MIR_OP_REG && y.mode == MIR_OP_REG && !x.data && !y.data && x.u.reg == y.u.reg;
}

void ins2(Emitter *e, MIR_insn_code_t c, MIR_op_t a, MIR_op_t b) {
  bool wide = a.mode == MIR_OP_MEM &&
              (a.u.mem.type == MIR_T_I64 || a.u.mem.type == MIR_T_I32 || a.u.mem.type == MIR_T_U32);
  if (c == MIR_MOV && wide && b.mode == MIR_OP_INT && is_small(b.u.i)) b = small_op(e, a.u.mem.base, b.u.i);
  put(e, MIR_new_insn_arr(e->ctx, c, 2, (MIR_op_t[]){a, b}));
}

void ins3(Emitter *e, MIR_insn_code_t c, MIR_op_t a, MIR_op_t b, MIR_op_t d) {
  LoopType t;
  InPlace how = in_place(c, &t);
  if (b.mode == MIR_OP_INT && (how == IN_PLACE_EITHER || c == MIR_ADD || c == MIR_MUL)) {
    MIR_op_t other = b;
    b = d;
    d = other;
  }
  if (b.mode == MIR_OP_INT) b = loaded(e, b.u.i);
  if (d.mode == MIR_OP_INT)
    d = takes(c, d.u.i) && b.mode == MIR_OP_REG ? small_op(e, b.u.reg, d.u.i) : loaded(e, d.u.i);
  if (d.data) how = c == MIR_ADD || c == MIR_MUL ? IN_PLACE : how;
  if (is_op(a, b) && is_op(a, d)) {
    MIR_type_t type = MIR_reg_type(e->ctx, a.u.reg, e->item->u.func);
    LoopType of = type == MIR_T_D ? LT_F64 : type == MIR_T_F ? LT_F32 : LT_I64;
    MIR_reg_t copy = mir_temp(e, of);
    ins2(e, move_code(of), R(e, copy), b);
    d = R(e, copy);
  }
  if (how == IN_PLACE_EITHER && is_op(a, d)) {
    MIR_op_t other = b;
    b = d;
    d = other;
  }
  if (how != NOT_IN_PLACE && a.mode == MIR_OP_REG && !is_op(a, b) && !is_op(a, d)) {
    ins2(e, move_code(t), a, b);
    b = a;
  }
  put(e, MIR_new_insn_arr(e->ctx, c, 3, (MIR_op_t[]){a, b, d}));
}

void mir_negate(Emitter *e, LoopType t, MIR_reg_t to, MIR_op_t from) {
  if (!is_op(R(e, to), from)) ins2(e, move_code(t), R(e, to), from);
  ins2(e, t == LT_F64 ? MIR_DNEG : t == LT_F32 ? MIR_FNEG : MIR_NEG, R(e, to), R(e, to));
}

void mir_load(Emitter *e, MIR_reg_t r, MIR_reg_t base, i64 disp) {
  ins2(e, MIR_MOV, R(e, r), M(e, MIR_T_I64, base, disp));
}
void mir_store(Emitter *e, MIR_reg_t base, i64 disp, MIR_reg_t r) {
  ins2(e, MIR_MOV, M(e, MIR_T_I64, base, disp), R(e, r));
}

void rr(Emitter *e, MIR_insn_code_t c, MIR_reg_t a, MIR_reg_t b) { ins2(e, c, R(e, a), R(e, b)); }
void ri(Emitter *e, MIR_insn_code_t c, MIR_reg_t a, i64 v) { ins2(e, c, R(e, a), I(e, v)); }
void rrr(Emitter *e, MIR_insn_code_t c, MIR_reg_t a, MIR_reg_t b, MIR_reg_t d) {
  ins3(e, c, R(e, a), R(e, b), R(e, d));
}
void rri(Emitter *e, MIR_insn_code_t c, MIR_reg_t a, MIR_reg_t b, i64 v) { ins3(e, c, R(e, a), R(e, b), I(e, v)); }
void brr(Emitter *e, MIR_insn_code_t c, MIR_label_t to, MIR_reg_t a, MIR_reg_t b) {
  ins3(e, c, L(e, to), R(e, a), R(e, b));
}
void bri(Emitter *e, MIR_insn_code_t c, MIR_label_t to, MIR_reg_t a, i64 v) { ins3(e, c, L(e, to), R(e, a), I(e, v)); }
