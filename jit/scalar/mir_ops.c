/* mir_ops.c — values of the loop IR as MIR: integers in 64-bit registers extended by their type, i1 as 0 or 1.
 *
 * A value's register may be one of its operands' (mir_lives.c): a sequence that writes before it has read all of
 * them goes through a fresh register. What MIR lacks is a marked stand-in where the processor has the instruction,
 * else a call. */
#include <math.h>
#include <string.h>

#include "jit/scalar/mir_emitter.h"

static MIR_insn_code_t pick(LoopType t, MIR_insn_code_t integer, MIR_insn_code_t f, MIR_insn_code_t d) {
  return t == LT_F64 ? d : t == LT_F32 ? f : integer;
}

static bool is_reg(MIR_op_t op, MIR_reg_t r) { return op.mode == MIR_OP_REG && op.u.reg == r; }

MIR_reg_t mir_own(Emitter *e, u32 id) { return e->lives.shared[id] ? mir_temp(e, et(e, id)) : mir_reg(e, id); }

void mir_finish(Emitter *e, u32 id, MIR_reg_t r) {
  MIR_reg_t to = mir_reg(e, id);
  if (to != r) ins2(e, move_code(et(e, id)), R(e, to), R(e, r));
}

void mir_move(Emitter *e, LoopType t, MIR_reg_t to, MIR_op_t from) {
  if (!is_reg(from, to)) ins2(e, move_code(t), R(e, to), from);
}

void mir_extend(Emitter *e, LoopType t, MIR_reg_t r) {
  if (t == LT_U8) rr(e, MIR_UEXT8, r, r);
  if (t == LT_I32) rr(e, MIR_EXT32, r, r);
  if (t == LT_U32) rr(e, MIR_UEXT32, r, r);
}

MIR_reg_t mir_in_reg(Emitter *e, LoopType t, MIR_op_t op) {
  if (op.mode == MIR_OP_REG) return op.u.reg;
  MIR_reg_t r = mir_temp(e, t);
  ins2(e, move_code(t), R(e, r), op);
  return r;
}

/* ---- stand-ins ----------------------------------------------------------------------------- */

void mir_mark(Emitter *e, MirMark kind, u32 number) {
  ins2(e, MIR_MOV, M(e, MIR_T_I32, mir_frame(e), FRAME_MARK),
       I(e, (i64)(MIR_MARK | (u32)kind << 12 | (number & 0xFFF))));
}

static bool may_mark(const Emitter *e, MirMark kind) { return !e->group->plain && mir_can_mark(kind); }

/* Ends a stand-in. The store of the result, where the marks are stored, is taken out again with them: without it
 * MIR drops a stand-in that nobody needs, or moves it to where its result is moved. */
static void close_mark(Emitter *e, LoopType t, MIR_reg_t result) {
  ins2(e, move_code(t), M(e, t == LT_F64 ? MIR_T_D : MIR_T_F, mir_frame(e), FRAME_MARK), R(e, result));
  mir_mark(e, MARK_CLOSE, e->marks);
}

/* to = to KIND with; the stand-in is a subtraction. */
void mir_stand_in(Emitter *e, MirMark kind, LoopType t, MIR_reg_t to, MIR_op_t with) {
  with = R(e, mir_in_reg(e, t, with)); /* nothing may come between the two */
  mir_mark(e, kind, ++e->marks);
  ins3(e, pick(t, MIR_SUB, MIR_FSUB, MIR_DSUB), R(e, to), R(e, to), with);
  close_mark(e, t, to);
}

void mir_call_op(Emitter *e, LoopOp op, LoopType t, MIR_reg_t to, u32 count, const MIR_op_t *args) {
  MIR_op_t ops[4] = {R(e, to)};
  for (u32 i = 0; i < count; i++) ops[i + 1] = args[i];
  MirProto proto = (MirProto)((t == LT_F64 ? PROTO_D_D : PROTO_F_F) + count - 1);
  if (loop_is_int(t)) proto = PROTO_P_PP;
  mir_call(e, proto, mir_runtime_op(op, t), count + 1, ops);
}

static u64 float_bits(LoopType t, u64 f64_bits, u64 f32_bits) { return t == LT_F64 ? f64_bits : f32_bits; }

/* NaN absorbs, -0 is below +0. minsd gives its second operand when the two are equal or unordered; so of min(a, b) and
 * min(b, a) the bits or-ed are the answer: a NaN stays one. max(a, b) is -min(-a, -b). */
static void float_min(Emitter *e, LoopType t, MIR_reg_t to, MIR_op_t a, MIR_op_t b, bool max) {
  MIR_reg_t x = mir_temp(e, t), y = mir_temp(e, t);
  if (max) {
    MIR_reg_t na = mir_temp(e, t), nb = mir_temp(e, t);
    mir_negate(e, t, na, a);
    mir_negate(e, t, nb, b);
    a = R(e, na);
    b = R(e, nb);
  }
  mir_move(e, t, x, a);
  mir_stand_in(e, MARK_MIN, t, x, b);
  mir_move(e, t, y, b);
  mir_stand_in(e, MARK_MIN, t, y, a);
  mir_stand_in(e, MARK_OR, t, x, R(e, y));
  if (max) mir_negate(e, t, to, R(e, x));
  else mir_move(e, t, to, R(e, x));
}

/* By branches: a < b, a > b, else equal (zeros differ in sign only) or unordered. */
static void float_min_plain(Emitter *e, LoopType t, MIR_reg_t to, MIR_op_t a, MIR_op_t b, bool max) {
  MIR_label_t take_a = new_label(e), take_b = new_label(e), done = new_label(e);
  MIR_reg_t r = mir_temp(e, t);
  MIR_op_t args[2] = {a, b};
  ins3(e, pick(t, MIR_BLT, MIR_FBLT, MIR_DBLT), L(e, max ? take_b : take_a), a, b);
  ins3(e, pick(t, MIR_BGT, MIR_FBGT, MIR_DBGT), L(e, max ? take_a : take_b), a, b);
  mir_call_op(e, max ? LOOP_MAX : LOOP_MIN, t, r, 2, args);
  jump(e, done);
  put_label(e, take_a);
  mir_move(e, t, r, a);
  jump(e, done);
  put_label(e, take_b);
  mir_move(e, t, r, b);
  put_label(e, done);
  mir_move(e, t, to, R(e, r));
}

static void int_min(Emitter *e, LoopType t, MIR_reg_t to, MIR_op_t a, MIR_op_t b, bool max) {
  MIR_label_t done = new_label(e);
  bool wide = t == LT_U64, turned = is_reg(b, to);
  MIR_op_t first = turned ? b : a, other = turned ? a : b;
  mir_move(e, t, to, first);
  ins3(e, max ? (wide ? MIR_UBGE : MIR_BGE) : (wide ? MIR_UBLE : MIR_BLE), L(e, done), first, other);
  mir_move(e, t, to, other); /* no jump over a move of registers stays one (quick.sed) */
  put_label(e, done);
}

static void float_unary(Emitter *e, u32 id, const LoopNode *n, MirMark kind) {
  LoopType t = (LoopType)n->type;
  MIR_op_t a = mir_op(e, n->a);
  if (!may_mark(e, kind)) {
    mir_call_op(e, (LoopOp)n->op, t, mir_reg(e, id), 1, &a);
    return;
  }
  MIR_reg_t from = mir_in_reg(e, t, a), to = mir_temp(e, t); /* a short life: not in memory */
  mir_move(e, t, to, R(e, from));
  mir_stand_in(e, kind, t, to, R(e, from));
  mir_finish(e, id, to);
}

static void float_abs(Emitter *e, LoopType t, MIR_reg_t to, MIR_op_t a) {
  MIR_op_t mask = mir_const_op(e, t, float_bits(t, INT64_MAX, INT32_MAX));
  if (!may_mark(e, MARK_AND)) {
    mir_call_op(e, LOOP_ABS, t, to, 1, &a);
    return;
  }
  MIR_reg_t x = mir_temp(e, t);
  mir_move(e, t, x, a);
  mir_stand_in(e, MARK_AND, t, x, mask);
  mir_move(e, t, to, R(e, x));
}

static void float_copysign(Emitter *e, u32 id, const LoopNode *n) {
  LoopType t = (LoopType)n->type;
  MIR_op_t args[2] = {mir_op(e, n->a), mir_op(e, n->b)};
  if (!may_mark(e, MARK_AND)) {
    mir_call_op(e, LOOP_COPYSIGN, t, mir_reg(e, id), 2, args);
    return;
  }
  MIR_reg_t x = mir_temp(e, t), y = mir_temp(e, t);
  float_abs(e, t, x, args[0]);
  mir_move(e, t, y, args[1]);
  mir_stand_in(e, MARK_AND, t, y, mir_const_op(e, t, float_bits(t, (u64)1 << 63, (u64)1 << 31)));
  mir_stand_in(e, MARK_OR, t, x, R(e, y));
  mir_move(e, t, mir_reg(e, id), R(e, x));
}

static void float_fma(Emitter *e, u32 id, const LoopNode *n) {
  LoopType t = (LoopType)n->type;
  MIR_op_t args[3] = {mir_op(e, n->a), mir_op(e, n->b), mir_op(e, n->c)};
  if (!may_mark(e, MARK_FMA)) {
    mir_call_op(e, LOOP_FMA, t, mir_reg(e, id), 3, args);
    return;
  }
  MIR_reg_t to = mir_temp(e, t);
  MIR_reg_t b = mir_in_reg(e, t, args[1]), c = mir_in_reg(e, t, args[2]);
  mir_move(e, t, to, args[0]);
  mir_mark(e, MARK_FMA, ++e->marks);
  ins3(e, pick(t, MIR_MUL, MIR_FMUL, MIR_DMUL), R(e, to), R(e, to), R(e, b));
  ins3(e, pick(t, MIR_ADD, MIR_FADD, MIR_DADD), R(e, to), R(e, to), R(e, c));
  close_mark(e, t, to);
  mir_finish(e, id, to);
}

/* ---- integers ------------------------------------------------------------------------------ */

static void int_binary(Emitter *e, u32 id, const LoopNode *n, MIR_insn_code_t code, bool wraps) {
  MIR_reg_t to = mir_reg(e, id);
  ins3(e, code, R(e, to), mir_op(e, n->a), mir_op(e, n->b));
  if (wraps) mir_extend(e, (LoopType)n->type, to);
}

void mir_combine(Emitter *e, LoopOp op, LoopType t, MIR_reg_t to, MIR_op_t a, MIR_op_t b) {
  bool is_float = loop_is_float(t);
  switch (op) {
    case LOOP_ADD: ins3(e, pick(t, MIR_ADD, MIR_FADD, MIR_DADD), R(e, to), a, b); break;
    case LOOP_MUL: ins3(e, pick(t, MIR_MUL, MIR_FMUL, MIR_DMUL), R(e, to), a, b); break;
    case LOOP_AND: ins3(e, MIR_AND, R(e, to), a, b); return;
    case LOOP_OR: ins3(e, MIR_OR, R(e, to), a, b); return;
    case LOOP_XOR: ins3(e, MIR_XOR, R(e, to), a, b); return;
    default:
      if (!is_float) int_min(e, t, to, a, b, op == LOOP_MAX);
      else if (may_mark(e, MARK_MIN)) float_min(e, t, to, a, b, op == LOOP_MAX);
      else float_min_plain(e, t, to, a, b, op == LOOP_MAX);
      return;
  }
  if (!is_float) mir_extend(e, t, to);
}

/* ---- comparisons and branches -------------------------------------------------------------- */

typedef struct Compare {
  MIR_insn_code_t branch, branch_f, branch_d; /* taken when it holds; never when unordered, but for NE */
  MIR_insn_code_t branch_u;                   /* u64 */
  MIR_insn_code_t value, value_f, value_d, value_u;
} Compare;

static const Compare compares[] = {
  {MIR_BEQ, MIR_FBEQ, MIR_DBEQ, MIR_BEQ, MIR_EQ, MIR_FEQ, MIR_DEQ, MIR_EQ},
  {MIR_BNE, MIR_FBNE, MIR_DBNE, MIR_BNE, MIR_NE, MIR_FNE, MIR_DNE, MIR_NE},
  {MIR_BLT, MIR_FBLT, MIR_DBLT, MIR_UBLT, MIR_LT, MIR_FLT, MIR_DLT, MIR_ULT},
  {MIR_BLE, MIR_FBLE, MIR_DBLE, MIR_UBLE, MIR_LE, MIR_FLE, MIR_DLE, MIR_ULE},
  {MIR_BGT, MIR_FBGT, MIR_DBGT, MIR_UBGT, MIR_GT, MIR_FGT, MIR_DGT, MIR_UGT},
  {MIR_BGE, MIR_FBGE, MIR_DBGE, MIR_UBGE, MIR_GE, MIR_FGE, MIR_DGE, MIR_UGE},
};
static const u8 opposite[] = {1, 0, 5, 4, 3, 2}; /* of integer comparisons, and of EQ and NE on floats */
static const u8 mirrored[] = {0, 1, 4, 5, 2, 3}; /* the same with its operands exchanged */

/* The operands of a comparison: the first in a register, and of integers a constant as the second. */
static const Compare *compare_ops(Emitter *e, const LoopNode *n, u32 which, MIR_op_t *a, MIR_op_t *b) {
  LoopType t = et(e, n->a);
  *a = mir_op(e, n->a), *b = mir_op(e, n->b);
  if (!loop_is_float(t) && a->mode == MIR_OP_INT && b->mode == MIR_OP_REG) {
    MIR_op_t other = *a;
    *a = *b, *b = other;
    which = mirrored[which];
  }
  *a = R(e, mir_in_reg(e, t, *a));
  if (loop_is_float(t)) *b = R(e, mir_in_reg(e, t, *b));
  return &compares[which];
}

static void branch_compare(Emitter *e, const LoopNode *n, u32 which, MIR_label_t to) {
  LoopType t = et(e, n->a);
  MIR_op_t a, b;
  const Compare *c = compare_ops(e, n, which, &a, &b);
  ins3(e, t == LT_F64 ? c->branch_d : t == LT_F32 ? c->branch_f : t == LT_U64 ? c->branch_u : c->branch,
       L(e, to), a, b);
}

static void branch(Emitter *e, u32 id, MIR_label_t to, bool when);

/* Goes to `to` when both hold (or, with `when` false, unless both hold). `or` is the same of the opposites. */
static void branch_logic(Emitter *e, const LoopNode *n, MIR_label_t to, bool when) {
  bool both = (n->op == LOOP_AND) == when; /* both must be as asked for the jump */
  if (!both) {
    branch(e, n->a, to, when);
    branch(e, n->b, to, when);
    return;
  }
  MIR_label_t on = new_label(e);
  branch(e, n->a, on, !when);
  branch(e, n->b, to, when);
  put_label(e, on);
}

/* Deferred conditions are trees of at most a dozen nodes. */
static void branch(Emitter *e, u32 id, MIR_label_t to, bool when) {
  const LoopNode *n = en(e, id);
  if (!e->lives.deferred[id]) {
    if (n->op == LOOP_CONST) {
      if ((n->imm != 0) == when) jump(e, to);
      return;
    }
    ins2(e, when ? MIR_BT : MIR_BF, L(e, to), mir_op(e, id));
    return;
  }
  if (n->op == LOOP_NOT) {
    branch(e, n->a, to, !when);
    return;
  }
  if (n->op == LOOP_AND || n->op == LOOP_OR) {
    branch_logic(e, n, to, when);
    return;
  }
  u32 which = (u32)n->op - LOOP_EQ;
  bool ordered = loop_is_float(et(e, n->a)) && which > 1; /* the opposite holds for NaN too: no instruction says that */
  if (when) branch_compare(e, n, which, to);
  else if (!ordered) branch_compare(e, n, opposite[which], to);
  else {
    MIR_label_t on = new_label(e);
    branch_compare(e, n, which, on);
    jump(e, to);
    put_label(e, on);
  }
}

void mir_branch_if(Emitter *e, u32 id, MIR_label_t yes) { branch(e, id, yes, true); }
void mir_branch_unless(Emitter *e, u32 id, MIR_label_t no) { branch(e, id, no, false); }

static void compare(Emitter *e, u32 id, const LoopNode *n) {
  LoopType t = et(e, n->a);
  MIR_op_t a, b;
  const Compare *c = compare_ops(e, n, n->op - LOOP_EQ, &a, &b);
  ins3(e, t == LT_F64 ? c->value_d : t == LT_F32 ? c->value_f : t == LT_U64 ? c->value_u : c->value,
       R(e, mir_reg(e, id)), a, b);
}

/* ---- conversions --------------------------------------------------------------------------- */

static LoopCheck fit_check(LoopType t) {
  switch (t) {
    case LT_U8: return LOOP_CHECK_FIT_U8;
    case LT_I32: return LOOP_CHECK_FIT_I32;
    case LT_U32: return LOOP_CHECK_FIT_U32;
    case LT_I64: return LOOP_CHECK_FIT_I64;
    default: return LOOP_CHECK_FIT_U64;
  }
}

/* v >= 2^63: less 2^63, and the top bit set after. */
static void float_to_u64(Emitter *e, LoopType from, MIR_reg_t to, MIR_reg_t v) {
  MIR_label_t big = new_label(e), done = new_label(e);
  MIR_reg_t less = mir_temp(e, from);
  MIR_op_t limit = R(e, mir_in_reg(e, from, mir_const_op(e, from, float_bits(from, 0x43E0000000000000u, 0x5F000000))));
  MIR_insn_code_t convert = from == LT_F64 ? MIR_D2I : MIR_F2I;
  ins3(e, pick(from, MIR_BGE, MIR_FBGE, MIR_DBGE), L(e, big), R(e, v), limit);
  rr(e, convert, to, v);
  jump(e, done);
  put_label(e, big);
  ins3(e, pick(from, MIR_SUB, MIR_FSUB, MIR_DSUB), R(e, less), R(e, v), limit);
  rr(e, convert, to, less);
  rri(e, MIR_XOR, to, to, INT64_MIN);
  put_label(e, done);
}

static void float_to_int(Emitter *e, u32 id, const LoopNode *n) {
  LoopType from = et(e, n->a), t = (LoopType)n->type;
  MIR_reg_t v = mir_in_reg(e, from, mir_op(e, n->a)), r = mir_own(e, id);
  MIR_insn_code_t convert = from == LT_F64 ? MIR_D2I : MIR_F2I;
  MIR_insn_code_t bge = from == LT_F64 ? MIR_DBGE : MIR_FBGE, ble = from == LT_F64 ? MIR_DBLE : MIR_FBLE;
  MIR_insn_code_t bne = from == LT_F64 ? MIR_DBNE : MIR_FBNE;
  if (mir_checked(e, fit_check(t), n->a, e->lives.where[id])) {
    if (t == LT_U64) float_to_u64(e, from, r, v);
    else rr(e, convert, r, v);
    mir_finish(e, id, r);
    return;
  }
  /* At most the greatest float that converts exactly is compared with; what is above saturates. */
  static const f64 above[] = {[LT_U8] = 255, [LT_I32] = 2147483647.0, [LT_U32] = 4294967295.0, [LT_I64] = 0x1p63,
                              [LT_U64] = 0x1p64};
  static const u64 high[] = {[LT_U8] = 255, [LT_I32] = INT32_MAX, [LT_U32] = UINT32_MAX, [LT_I64] = INT64_MAX,
                             [LT_U64] = UINT64_MAX};
  static const f64 below[] = {[LT_U8] = 0, [LT_I32] = -2147483648.0, [LT_U32] = 0, [LT_I64] = -0x1p63, [LT_U64] = 0};
  static const i64 low[] = {[LT_U8] = 0, [LT_I32] = INT32_MIN, [LT_U32] = 0, [LT_I64] = INT64_MIN, [LT_U64] = 0};
  MIR_label_t big = new_label(e), small = new_label(e), done = new_label(e);
  MIR_reg_t wide = v;
  if (from == LT_F32) { /* the bounds are exact as f64 */
    wide = mir_temp(e, LT_F64);
    rr(e, MIR_F2D, wide, v);
    bge = MIR_DBGE, ble = MIR_DBLE;
  }
  u64 bound;
  memcpy(&bound, &above[t], 8);
  MIR_reg_t limit = mir_in_reg(e, LT_F64, mir_const_op(e, LT_F64, bound));
  memcpy(&bound, &below[t], 8);
  MIR_reg_t floor_limit = mir_in_reg(e, LT_F64, mir_const_op(e, LT_F64, bound));
  brr(e, bge, big, wide, limit);
  brr(e, ble, small, wide, floor_limit);
  mir_move(e, t, r, I(e, 0));
  brr(e, bne, done, v, v);
  if (t == LT_U64) float_to_u64(e, from, r, v);
  else rr(e, convert, r, v);
  jump(e, done);
  put_label(e, big);
  mir_move(e, t, r, I(e, (i64)high[t]));
  jump(e, done);
  put_label(e, small);
  mir_move(e, t, r, I(e, low[t]));
  put_label(e, done);
  mir_finish(e, id, r);
}

static void int_to_float(Emitter *e, u32 id, const LoopNode *n) {
  LoopType from = et(e, n->a), t = (LoopType)n->type;
  MIR_insn_code_t convert = t == LT_F64 ? MIR_I2D : MIR_I2F;
  MIR_op_t a = mir_op(e, n->a);
  if (from != LT_U64) {
    ins2(e, convert, R(e, mir_reg(e, id)), a);
    return;
  }
  /* Above 2^63: half of it with the lost bit or-ed in rounds as the whole does; then doubled. */
  MIR_label_t big = new_label(e), done = new_label(e);
  MIR_reg_t v = mir_in_reg(e, from, a), half = mir_temp(e, from), bit = mir_temp(e, from), to = mir_reg(e, id),
      rounded = mir_temp(e, t);
  bri(e, MIR_BLT, big, v, 0);
  rr(e, convert, to, v);
  jump(e, done);
  put_label(e, big);
  rri(e, MIR_URSH, half, v, 1);
  rri(e, MIR_AND, bit, v, 1);
  rrr(e, MIR_OR, half, half, bit);
  rr(e, convert, rounded, half);
  ins3(e, pick(t, MIR_ADD, MIR_FADD, MIR_DADD), R(e, to), R(e, rounded), R(e, rounded));
  put_label(e, done);
}

static void convert(Emitter *e, u32 id, const LoopNode *n) {
  LoopType from = et(e, n->a), t = (LoopType)n->type;
  if (loop_is_float(from) && loop_is_float(t)) {
    if (from == t) mir_move(e, t, mir_reg(e, id), mir_op(e, n->a));
    else ins2(e, t == LT_F64 ? MIR_F2D : MIR_D2F, R(e, mir_reg(e, id)), mir_op(e, n->a));
  } else if (loop_is_float(from)) {
    float_to_int(e, id, n);
  } else if (loop_is_float(t)) {
    int_to_float(e, id, n);
  } else {
    MIR_reg_t to = mir_reg(e, id);
    mir_move(e, t, to, mir_op(e, n->a));
    if (from != t && from != LT_I1 && from != LT_U8) mir_extend(e, t, to);
  }
}

/* Through the frame: MIR has no move between the two kinds of register. */
static void bitcast(Emitter *e, u32 id, const LoopNode *n) {
  LoopType from = et(e, n->a), t = (LoopType)n->type;
  if (loop_is_float(from) == loop_is_float(t)) {
    MIR_reg_t to = mir_reg(e, id);
    mir_move(e, t, to, mir_op(e, n->a));
    if (!loop_is_float(t)) mir_extend(e, t, to);
    return;
  }
  ins2(e, move_code(from), M(e, mir_memory_type(from), mir_frame(e), FRAME_CAST),
       R(e, mir_in_reg(e, from, mir_op(e, n->a))));
  ins2(e, move_code(t), R(e, mir_reg(e, id)), M(e, mir_memory_type(t), mir_frame(e), FRAME_CAST));
}

/* ---- the rest ------------------------------------------------------------------------------ */

static void math(Emitter *e, u32 id, const LoopNode *n) {
  const LoopModule *m = e->fn->module;
  const char *name = name_text(&m->names, (Name)n->imm);
  const LoopMath *c = loop_module_math(m, name, (LoopType)n->type);
  u32 count = n->c ? 3 : n->b ? 2 : 1;
  if (mir_strip_value(e, id)) return;
  if (!c || c->arity != count) {
    mir_missing(e, "no C function for math", name);
    return;
  }
  MIR_op_t ops[4] = {R(e, mir_reg(e, id)), mir_op(e, n->a)};
  if (count > 1) ops[2] = mir_op(e, n->b);
  if (count > 2) ops[3] = mir_op(e, n->c);
  mir_call(e, (MirProto)((n->type == LT_F64 ? PROTO_D_D : PROTO_F_F) + count - 1), c->fn, count + 1, ops);
}

static void load(Emitter *e, u32 id, const LoopNode *n) {
  i64 disp = 0;
  MIR_reg_t at = mir_address(e, id, &disp);
  if (n->mem != LT_F16 && n->mem != LT_BF16) {
    ins2(e, move_code((LoopType)n->type), R(e, mir_reg(e, id)), M(e, mir_memory_type((LoopType)n->mem), at, disp));
    return;
  }
  MIR_reg_t bits = mir_temp(e, LT_I64);
  ins2(e, MIR_MOV, R(e, bits), M(e, MIR_T_U16, at, disp));
  MIR_op_t ops[2] = {R(e, mir_reg(e, id)), R(e, bits)};
  mir_call(e, PROTO_F_P, (void (*)(void))(n->mem == LT_F16 ? mir_half_in : mir_brain_in), 2, ops);
}

static void store(Emitter *e, u32 id, const LoopNode *n) {
  i64 disp = 0;
  MIR_reg_t at = mir_address(e, id, &disp);
  MIR_op_t v = mir_op(e, n->b);
  if (n->mem == LT_F16 || n->mem == LT_BF16) {
    MIR_reg_t bits = mir_temp(e, LT_I64);
    MIR_op_t ops[2] = {R(e, bits), v};
    mir_call(e, PROTO_P_F, (void (*)(void))(n->mem == LT_F16 ? mir_half_out : mir_brain_out), 2, ops);
    ins2(e, MIR_MOV, M(e, MIR_T_U16, at, disp), R(e, bits));
    return;
  }
  LoopType t = loop_value_type((LoopType)n->mem);
  /* never looks like a mark */
  bool small = v.mode == MIR_OP_INT && v.u.i == (i32)v.u.i && ((u32)v.u.i & 0xFFFF0000u) != MIR_MARK;
  if (!small) v = R(e, mir_in_reg(e, t, v));
  ins2(e, move_code(t), M(e, mir_memory_type((LoopType)n->mem), at, disp), v);
}

void mir_value(Emitter *e, u32 id) {
  const LoopNode *n = en(e, id);
  LoopType t = (LoopType)n->type;
  bool is_float = loop_is_float(t);
  if (e->lives.deferred[id]) return;
  switch (n->op) {
    case LOOP_ADD:
    case LOOP_MUL: mir_combine(e, (LoopOp)n->op, t, mir_reg(e, id), mir_op(e, n->a), mir_op(e, n->b)); return;
    case LOOP_SUB:
      if (is_float)
        ins3(e, pick(t, MIR_SUB, MIR_FSUB, MIR_DSUB), R(e, mir_reg(e, id)), mir_op(e, n->a), mir_op(e, n->b));
      else int_binary(e, id, n, MIR_SUB, true);
      return;
    case LOOP_DIV:
      if (is_float)
        ins3(e, pick(t, MIR_DIV, MIR_FDIV, MIR_DDIV), R(e, mir_reg(e, id)), mir_op(e, n->a), mir_op(e, n->b));
      else mir_divide(e, id, n);
      return;
    case LOOP_REM:
    case LOOP_FLOORDIV:
    case LOOP_MOD: mir_divide(e, id, n); return;
    case LOOP_MULHI: mir_mulhi(e, id, n); return;
    case LOOP_MIN:
    case LOOP_MAX: mir_combine(e, (LoopOp)n->op, t, mir_reg(e, id), mir_op(e, n->a), mir_op(e, n->b)); return;
    case LOOP_COPYSIGN: float_copysign(e, id, n); return;
    case LOOP_AND:
      if (lives_excludes(&e->lives, id))
        ins3(e, MIR_AND, R(e, mir_reg(e, id)), mir_op(e, n->a), R(e, mir_unless(e, en(e, n->b)->a)));
      else int_binary(e, id, n, MIR_AND, false);
      return;
    case LOOP_OR: int_binary(e, id, n, MIR_OR, false); return;
    case LOOP_XOR: int_binary(e, id, n, MIR_XOR, false); return;
    case LOOP_SHL:
    case LOOP_SHR: mir_shift(e, id, n); return;
    case LOOP_FMA: float_fma(e, id, n); return;
    case LOOP_NEG:
      mir_negate(e, t, mir_reg(e, id), mir_op(e, n->a));
      if (!is_float) mir_extend(e, t, mir_reg(e, id));
      return;
    case LOOP_ABS:
      if (is_float) {
        float_abs(e, t, mir_reg(e, id), mir_op(e, n->a));
      } else {
        MIR_reg_t r = mir_temp(e, t), sign = mir_temp(e, t);
        MIR_op_t a = R(e, mir_in_reg(e, t, mir_op(e, n->a)));
        if (!loop_is_signed(t)) {
          mir_move(e, t, mir_reg(e, id), a);
          return;
        }
        ins3(e, MIR_RSH, R(e, sign), a, I(e, 63));
        ins3(e, MIR_XOR, R(e, r), a, R(e, sign));
        rrr(e, MIR_SUB, r, r, sign);
        mir_extend(e, t, r);
        mir_finish(e, id, r);
      }
      return;
    case LOOP_NOT:
      if (t == LT_I1) {
        ins3(e, MIR_XOR, R(e, mir_reg(e, id)), mir_op(e, n->a), I(e, 1));
      } else {
        ins3(e, MIR_XOR, R(e, mir_reg(e, id)), mir_op(e, n->a), I(e, -1));
        mir_extend(e, t, mir_reg(e, id));
      }
      return;
    case LOOP_SQRT: float_unary(e, id, n, MARK_SQRT); return;
    case LOOP_FLOOR: float_unary(e, id, n, MARK_FLOOR); return;
    case LOOP_CEIL: float_unary(e, id, n, MARK_CEIL); return;
    case LOOP_TRUNC: float_unary(e, id, n, MARK_TRUNC); return;
    case LOOP_RINT: float_unary(e, id, n, MARK_RINT); return;
    case LOOP_ROUND_F16:
    case LOOP_ROUND_BF16: {
      MIR_op_t a = mir_op(e, n->a);
      mir_call_op(e, (LoopOp)n->op, t, mir_reg(e, id), 1, &a);
      return;
    }
    case LOOP_SELECT:
      if (!mir_wrap(e, id)) mir_select(e, id, n);
      return;
    case LOOP_CONVERT: convert(e, id, n); return;
    case LOOP_BITCAST: bitcast(e, id, n); return;
    case LOOP_MATH: math(e, id, n); return;
    case LOOP_LOAD: load(e, id, n); return;
    case LOOP_STORE: store(e, id, n); return;
    case LOOP_PREFIX: mir_prefix(e, id); return;
    default: compare(e, id, n); return;
  }
}
