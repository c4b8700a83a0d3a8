/* ptx_ops.c — operations of the loop IR as PTX: arithmetic, comparisons, conversions, checks, memory (ir.md section
 * 10).
 *
 * Rounding is written at every float operation, subnormals are kept (never .ftz), nothing is contracted. Where an
 * instruction leaves something open (division by zero, NaN in min and in conversions), a select decides. */
#include "gpu/ptx_writer.h"

#include <stdio.h>

static Opnd none(void) { return (Opnd){0}; }

static u64 nan_of(LoopType t) { return t == LT_F64 ? (u64)0x7FF8 << 48 : 0x7FC00000u; }

/* u8 lies in 32 bits: what arithmetic leaves above is cut off. */
static void cut(PtxWriter *w, LoopType t, Opnd v) {
  if (t == LT_U8) INS(w, "and.b32", v, v, ptx_const(LT_U32, 255));
}

static const char *bits_of(LoopType t) { return loop_type_bytes(t) == 8 ? "b64" : "b32"; }

static void named(PtxWriter *w, const char *name, const char *type, Opnd to, Opnd a, Opnd b) {
  ptx_line(w, "%s.%s %s, %s, %s;", name, type, ptx_text(to).s, ptx_text(a).s, ptx_text(b).s);
}

/* ---- integers -------------------------------------------------------------------------------------------- */

static void int_divide(PtxWriter *w, LoopOp op, LoopType t, Opnd to, Opnd a, Opnd b) {
  bool quotient = op == LOOP_DIV || op == LOOP_FLOORDIV, is_signed = loop_is_signed(t);
  Opnd zero = ptx_new(w, REG_P), divisor = ptx_new_for(w, t), q = ptx_new_for(w, t);
  a = ptx_in_register(w, a);
  b = ptx_in_register(w, b);
  INS_T(w, "setp.eq", t, zero, b, ptx_const(t, 0));
  INS_T(w, "selp", t, divisor, ptx_const(t, 1), b, zero); /* no division by 0 is ever executed */
  Opnd minus = none();
  if (is_signed) { /* nor MIN / -1 */
    Opnd safe = ptx_new_for(w, t);
    minus = ptx_new(w, REG_P);
    INS_T(w, "setp.eq", t, minus, b, ptx_const(t, -1));
    INS_T(w, "selp", t, safe, ptx_const(t, 1), divisor, minus);
    divisor = safe;
  }
  INS_T(w, "div", t, q, a, divisor);
  Opnd r = none();
  if (op != LOOP_DIV) {
    Opnd product = ptx_new_for(w, t);
    r = ptx_new_for(w, t);
    INS_T(w, "mul.lo", t, product, q, divisor);
    INS_T(w, "sub", t, r, a, product);
  }
  if (is_signed && (op == LOOP_FLOORDIV || op == LOOP_MOD)) { /* toward minus infinity */
    Opnd signs = ptx_new_for(w, t), differ = ptx_new(w, REG_P), rest = ptx_new(w, REG_P), both = ptx_new(w, REG_P);
    named(w, "xor", bits_of(t), signs, r, divisor);
    INS_T(w, "setp.lt", t, differ, signs, ptx_const(t, 0));
    INS_T(w, "setp.ne", t, rest, r, ptx_const(t, 0));
    INS(w, "and.pred", both, differ, rest);
    Opnd moved = ptx_new_for(w, t), chosen = ptx_new_for(w, t);
    if (quotient) INS_T(w, "sub", t, moved, q, ptx_const(t, 1));
    else INS_T(w, "add", t, moved, r, divisor);
    INS_T(w, "selp", t, chosen, moved, quotient ? q : r, both);
    if (quotient) q = chosen;
    else r = chosen;
  }
  if (is_signed) {
    Opnd other = ptx_new_for(w, t), chosen = ptx_new_for(w, t);
    if (quotient) INS_T(w, "neg", t, other, a);
    else ptx_move(w, t, other, ptx_const(t, 0));
    INS_T(w, "selp", t, chosen, other, quotient ? q : r, minus);
    if (quotient) q = chosen;
    else r = chosen;
  }
  INS_T(w, "selp", t, to, quotient ? ptx_const(t, 0) : a, quotient ? q : r, zero);
  cut(w, t, to);
}

static void int_shift(PtxWriter *w, LoopOp op, LoopType t, Opnd to, Opnd a, Opnd b) {
  u32 width = loop_type_bytes(t) * 8;
  Opnd amount = b.kind == REG_NONE ? ptx_const(LT_U32, b.bits < width ? b.bits : width) : b;
  if (b.kind != REG_NONE && width == 64) { /* the amount is a u32; beyond the width it counts as the width */
    Opnd least = ptx_new(w, REG_RD), narrow = ptx_new(w, REG_R);
    INS(w, "min.u64", least, amount, ptx_const(LT_I64, 64));
    INS(w, "cvt.u32.u64", narrow, least);
    amount = narrow;
  }
  if (op == LOOP_SHL) named(w, "shl", bits_of(t), to, a, amount);
  else INS_T(w, "shr", t, to, a, amount);
  if (op == LOOP_SHL) cut(w, t, to);
}

static void int_operation(PtxWriter *w, LoopOp op, LoopType t, Opnd to, Opnd a, Opnd b) {
  switch (op) {
    case LOOP_ADD: INS_T(w, "add", t, to, a, b); break;
    case LOOP_SUB: INS_T(w, "sub", t, to, a, b); break;
    case LOOP_MUL: INS_T(w, "mul.lo", t, to, a, b); break;
    case LOOP_MIN: INS_T(w, "min", t, to, a, b); return;
    case LOOP_MAX: INS_T(w, "max", t, to, a, b); return;
    case LOOP_MULHI:
      if (t == LT_U8) {
        INS(w, "mul.lo.u32", to, a, b);
        INS(w, "shr.u32", to, to, ptx_const(LT_U32, 8));
      } else {
        INS_T(w, "mul.hi", t, to, a, b);
      }
      return;
    case LOOP_AND: named(w, "and", bits_of(t), to, a, b); return;
    case LOOP_OR: named(w, "or", bits_of(t), to, a, b); return;
    case LOOP_XOR: named(w, "xor", bits_of(t), to, a, b); return;
    case LOOP_SHL:
    case LOOP_SHR: int_shift(w, op, t, to, a, b); return;
    case LOOP_NEG: INS_T(w, "sub", t, to, ptx_const(t, 0), a); break;
    case LOOP_ABS:
      if (loop_is_signed(t)) {
        Opnd minus = ptx_new_for(w, t);
        INS_T(w, "sub", t, minus, ptx_const(t, 0), a); /* |MIN| is MIN: the greater of MIN and MIN */
        INS_T(w, "max", t, to, a, minus);
      } else {
        ptx_move(w, t, to, a);
      }
      return;
    case LOOP_NOT: ptx_line(w, "not.%s %s, %s;", bits_of(t), ptx_text(to).s, ptx_text(a).s); break;
    default: int_divide(w, op, t, to, a, b); return;
  }
  cut(w, t, to);
}

/* ---- floats ---------------------------------------------------------------------------------------------- */

/* NaN when either is NaN; equal operands differ at most in the sign of zero, where the bits decide: -0 is the
 * lesser. */
static void float_extreme(PtxWriter *w, LoopOp op, LoopType t, Opnd to, Opnd a, Opnd b) {
  RegKind bits = loop_type_bytes(t) == 8 ? REG_RD : REG_R;
  Opnd r = ptx_new_for(w, t), wrong = ptx_new(w, REG_P), equal = ptx_new(w, REG_P), chosen = ptx_new_for(w, t),
      same = ptx_new_for(w, t);
  Opnd x = ptx_new(w, bits), y = ptx_new(w, bits), z = ptx_new(w, bits);
  b = ptx_in_register(w, b);
  INS_T(w, op == LOOP_MIN ? "min" : "max", t, r, a, b);
  ptx_line(w, "mov.%s %s, %s;", bits_of(t), ptx_text(x).s, ptx_text(a).s);
  ptx_line(w, "mov.%s %s, %s;", bits_of(t), ptx_text(y).s, ptx_text(b).s);
  named(w, op == LOOP_MIN ? "or" : "and", bits_of(t), z, x, y);
  ptx_line(w, "mov.%s %s, %s;", bits_of(t), ptx_text(same).s, ptx_text(z).s);
  INS_T(w, "setp.eq", t, equal, a, b);
  INS_T(w, "selp", t, chosen, same, r, equal);
  INS_T(w, "setp.nan", t, wrong, a, b);
  INS_T(w, "selp", t, to, ptx_const(t, nan_of(t)), chosen, wrong);
}

/* f32 rounded to bf16: to nearest, ties to even, on the upper 16 bits. */
static void round_bf16(PtxWriter *w, Opnd to, Opnd a) {
  Opnd bits = ptx_new(w, REG_R), odd = ptx_new(w, REG_R), sum = ptx_new(w, REG_R), r = ptx_new(w, REG_F),
      wrong = ptx_new(w, REG_P);
  INS(w, "mov.b32", bits, a);
  INS(w, "shr.u32", odd, bits, ptx_const(LT_U32, 16));
  INS(w, "and.b32", odd, odd, ptx_const(LT_U32, 1));
  INS(w, "add.u32", sum, bits, ptx_const(LT_U32, 0x7FFF));
  INS(w, "add.u32", sum, sum, odd);
  INS(w, "and.b32", sum, sum, ptx_const(LT_U32, 0xFFFF0000));
  INS(w, "mov.b32", r, sum);
  INS(w, "setp.nan.f32", wrong, a, a);
  INS(w, "selp.f32", to, ptx_const(LT_F32, nan_of(LT_F32)), r, wrong);
}

static void float_operation(PtxWriter *w, LoopOp op, LoopType t, Opnd to, Opnd a, Opnd b, Opnd c) {
  static const char *const round[] = {"cvt.rmi", "cvt.rpi", "cvt.rzi", "cvt.rni"};
  const char *ty = ptx_type(t);
  switch (op) {
    case LOOP_ADD: INS_T(w, "add.rn", t, to, a, b); return;
    case LOOP_SUB: INS_T(w, "sub.rn", t, to, a, b); return;
    case LOOP_MUL: INS_T(w, "mul.rn", t, to, a, b); return;
    case LOOP_DIV: INS_T(w, "div.rn", t, to, a, b); return;
    case LOOP_FMA: INS_T(w, "fma.rn", t, to, a, b, c); return;
    case LOOP_SQRT: INS_T(w, "sqrt.rn", t, to, a); return;
    case LOOP_MIN:
    case LOOP_MAX: float_extreme(w, op, t, to, a, b); return;
    case LOOP_NEG: INS_T(w, "neg", t, to, a); return;
    case LOOP_ABS: INS_T(w, "abs", t, to, a); return;
    case LOOP_COPYSIGN: INS_T(w, "copysign", t, to, b, a); return; /* the sign comes first */
    case LOOP_FLOOR:
    case LOOP_CEIL:
    case LOOP_TRUNC:
    case LOOP_RINT:
      ptx_line(w, "%s.%s.%s %s, %s;", round[op - LOOP_FLOOR], ty, ty, ptx_text(to).s, ptx_text(a).s);
      return;
    case LOOP_ROUND_F16: {
      Opnd half = ptx_new(w, REG_H);
      INS(w, "cvt.rn.f16.f32", half, a);
      INS(w, "cvt.f32.f16", to, half);
      return;
    }
    case LOOP_ROUND_BF16: round_bf16(w, to, a); return;
    default: ptx_refuse(w, "the operation %s", loop_op_text(op));
  }
}
_Static_assert(LOOP_CEIL == LOOP_FLOOR + 1 && LOOP_TRUNC == LOOP_FLOOR + 2 && LOOP_RINT == LOOP_FLOOR + 3,
               "roundings in a row");

static void bool_operation(PtxWriter *w, LoopOp op, Opnd to, Opnd a, Opnd b) {
  switch (op) {
    case LOOP_AND: INS(w, "and.pred", to, a, b); return;
    case LOOP_OR: INS(w, "or.pred", to, a, b); return;
    case LOOP_XOR: INS(w, "xor.pred", to, a, b); return;
    case LOOP_NOT: INS(w, "not.pred", to, a); return;
    default: ptx_refuse(w, "the operation %s on bools", loop_op_text(op));
  }
}

void ptx_operation_to(PtxWriter *w, LoopOp op, LoopType t, Opnd to, Opnd a, Opnd b, Opnd c) {
  if (a.kind == REG_NONE) a = ptx_in_register(w, a); /* the assembler folds what is constant */
  if (t == LT_I1) {
    if (b.kind == REG_NONE && b.type != LT_VOID) b = ptx_in_register(w, b);
    bool_operation(w, op, to, a, b);
  } else if (loop_is_float(t)) {
    float_operation(w, op, t, to, a, b, c);
  } else {
    int_operation(w, op, t, to, a, b);
  }
}

Opnd ptx_operation(PtxWriter *w, LoopOp op, LoopType t, Opnd a, Opnd b, Opnd c) {
  Opnd r = ptx_new_for(w, t);
  ptx_operation_to(w, op, t, r, a, b, c);
  return r;
}

/* ---- comparisons and choices ------------------------------------------------------------------------------ */

void ptx_compare(PtxWriter *w, LoopOp op, LoopType t, Opnd to, Opnd a, Opnd b) {
  static const char *const ordered[] = {"setp.eq", "setp.ne", "setp.lt", "setp.le", "setp.gt", "setp.ge"};
  if (t == LT_I1) {
    Opnd differ = ptx_new(w, REG_P);
    INS(w, "xor.pred", differ, ptx_in_register(w, a), ptx_in_register(w, b));
    if (op == LOOP_NE) INS(w, "mov.pred", to, differ);
    else INS(w, "not.pred", to, differ);
    return;
  }
  const char *name = loop_is_float(t) && op == LOOP_NE ? "setp.neu" : ordered[op - LOOP_EQ];
  ptx_ins_of(w, name, t, (Opnd[]){to, ptx_in_register(w, a), b}, 3);
}

void ptx_select(PtxWriter *w, LoopType t, Opnd to, Opnd c, Opnd a, Opnd b) {
  if (t != LT_I1) {
    INS_T(w, "selp", t, to, a, b, c);
    return;
  }
  Opnd not_c = ptx_new(w, REG_P), left = ptx_new(w, REG_P), right = ptx_new(w, REG_P);
  INS(w, "not.pred", not_c, c);
  INS(w, "and.pred", left, c, ptx_in_register(w, a));
  INS(w, "and.pred", right, not_c, ptx_in_register(w, b));
  INS(w, "or.pred", to, left, right);
}

/* ---- conversions ------------------------------------------------------------------------------------------- */

/* Saturating; NaN gives 0. */
static void float_to_int(PtxWriter *w, LoopType from, LoopType to_type, Opnd to, Opnd a) {
  Opnd r = ptx_new_for(w, to_type), wrong = ptx_new(w, REG_P);
  ptx_line(w, "cvt.rzi.%s.%s %s, %s;", ptx_type(to_type), ptx_type(from), ptx_text(r).s, ptx_text(a).s);
  if (to_type == LT_U8) INS(w, "min.u32", r, r, ptx_const(LT_U32, 255));
  INS_T(w, "setp.nan", from, wrong, a, a);
  INS_T(w, "selp", to_type, to, ptx_const(to_type, 0), r, wrong);
}

static void convert(PtxWriter *w, LoopType from, LoopType t, Opnd to, Opnd a) {
  bool wide = loop_type_bytes(t) == 8;
  if (from == t) {
    ptx_move(w, t, to, a);
  } else if (from == LT_I1) {
    Opnd one = loop_is_float(t) ? ptx_const(t, t == LT_F64 ? (u64)0x3FF << 52 : 0x3F800000u) : ptx_const(t, 1);
    INS_T(w, "selp", t, to, one, ptx_const(t, 0), a);
  } else if (loop_is_float(from)) {
    if (!loop_is_float(t)) float_to_int(w, from, t, to, a);
    else ptx_line(w, "cvt.%s %s, %s;", t == LT_F32 ? "rn.f32.f64" : "f64.f32", ptx_text(to).s, ptx_text(a).s);
  } else if (loop_is_float(t)) {
    ptx_line(w, "cvt.rn.%s.%s %s, %s;", ptx_type(t), ptx_type(from), ptx_text(to).s, ptx_text(a).s);
  } else if (wide != (loop_type_bytes(from) == 8)) { /* wider: by the sign of what it was; narrower: the low bits */
    ptx_line(w, "cvt.%s.%s %s, %s;", wide ? ptx_type(t) : "u32", wide ? ptx_type(from) : "u64", ptx_text(to).s,
             ptx_text(a).s);
    cut(w, t, to);
  } else {
    ptx_line(w, "mov.%s %s, %s;", bits_of(t), ptx_text(to).s, ptx_text(a).s);
    cut(w, t, to);
  }
}

void ptx_convert(PtxWriter *w, const LoopNode *n, Opnd to, Opnd a) {
  LoopType from = loop_type_of(w->f->fn, n->a), t = (LoopType)n->type;
  a = ptx_in_register(w, a);
  if (n->op == LOOP_CONVERT) convert(w, from, t, to, a);
  else ptx_line(w, "mov.%s %s, %s;", bits_of(t), ptx_text(to).s, ptx_text(a).s);
}

/* ---- checks -------------------------------------------------------------------------------------------------- */

Opnd ptx_check(PtxWriter *w, LoopCheck kind, LoopType t, Opnd a, Opnd b) {
  static const u64 above[LOOP_CHECK_COUNT] = {
    [LOOP_CHECK_FIT_U8] = 0xBFF0000000000000, [LOOP_CHECK_FIT_I32] = 0xC1E0000000200000,
    [LOOP_CHECK_FIT_U32] = 0xBFF0000000000000,
    [LOOP_CHECK_FIT_I64] = 0xC3E0000000000001, [LOOP_CHECK_FIT_U64] = 0xBFF0000000000000};
  static const u64 below[LOOP_CHECK_COUNT] = {
    [LOOP_CHECK_FIT_U8] = 0x4070000000000000, [LOOP_CHECK_FIT_I32] = 0x41E0000000000000,
    [LOOP_CHECK_FIT_U32] = 0x41F0000000000000,
    [LOOP_CHECK_FIT_I64] = 0x43E0000000000000, [LOOP_CHECK_FIT_U64] = 0x43F0000000000000};
  Opnd holds = ptx_new(w, REG_P);
  a = ptx_in_register(w, a);
  switch (kind) {
    case LOOP_CHECK_INDEX: INS(w, "setp.lt.u64", holds, a, b); return holds;
    case LOOP_CHECK_ZERO_DIV: INS_T(w, "setp.ne", t, holds, a, ptx_const(t, 0)); return holds;
    case LOOP_CHECK_ASSERT: return a;
    default: break;
  }
  if (t == LT_F32) {
    Opnd wide = ptx_new(w, REG_D);
    INS(w, "cvt.f64.f32", wide, a);
    a = wide;
  }
  Opnd high = ptx_new(w, REG_P), low = ptx_new(w, REG_P);
  INS(w, "setp.gt.f64", low, a, ptx_const(LT_F64, above[kind]));
  INS(w, "setp.lt.f64", high, a, ptx_const(LT_F64, below[kind]));
  INS(w, "and.pred", holds, low, high);
  return holds;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static const char *memory_type(LoopType mem) {
  switch (mem) {
    case LT_I1:
    case LT_U8: return "u8";
    case LT_F16:
    case LT_BF16: return "b16";
    default: return ptx_type(mem);
  }
}

/* The address of the element: 64-bit throughout. */
Opnd ptx_address(PtxWriter *w, const LoopNode *n) {
  const LoopTerm *terms = loop_terms(w->f->fn, n);
  Opnd at = ptx_const(LT_I64, (i64)n->imm);
  for (u32 i = 0; i < n->count; i++) {
    u32 ids[3] = {terms[i].var, terms[i].stride[0], terms[i].stride[1]};
    Opnd factor = ptx_const(LT_I64, terms[i].coef);
    for (u32 k = 0; k < 3; k++) {
      if (!ids[k]) continue;
      Opnd v = ptx_in_register(w, ptx_value(w, ids[k]));
      if (factor.kind == REG_NONE && factor.bits == 1) {
        factor = v;
      } else {
        Opnd product = ptx_new(w, REG_RD);
        INS(w, "mul.lo.s64", product, v, factor);
        factor = product;
      }
    }
    if (at.kind == REG_NONE && at.bits == 0) {
      at = factor;
    } else {
      Opnd sum = ptx_new(w, REG_RD);
      INS(w, "add.s64", sum, ptx_in_register(w, factor), at);
      at = sum;
    }
  }
  Opnd base = w->f->values[n->a], r = ptx_new(w, REG_RD);
  u32 bytes = loop_type_bytes((LoopType)n->mem);
  if (at.kind == REG_NONE) INS(w, "add.s64", r, base, ptx_const(LT_I64, (i64)at.bits * bytes));
  else if (bytes == 1) INS(w, "add.s64", r, base, at);
  else INS(w, "mad.lo.s64", r, at, ptx_const(LT_I64, bytes), base);
  return r;
}

/* What an element is in a register on its way from or to memory: the value itself, or bits that are less. */
static Opnd in_memory_form(PtxWriter *w, LoopType mem, Opnd v) {
  if (mem == LT_F16) return ptx_new(w, REG_H);
  return mem == LT_I1 || mem == LT_BF16 ? ptx_new(w, REG_R) : v;
}

/* What was loaded as `form` is the value `to`. */
static void from_memory_form(PtxWriter *w, LoopType mem, Opnd form, Opnd to) {
  if (mem == LT_I1) {
    INS(w, "setp.ne.u32", to, form, ptx_const(LT_U32, 0));
  } else if (mem == LT_F16) {
    INS(w, "cvt.f32.f16", to, form);
  } else if (mem == LT_BF16) {
    INS(w, "shl.b32", form, form, ptx_const(LT_U32, 16));
    INS(w, "mov.b32", to, form);
  }
}

static OpndText guard_text(const PtxWriter *w) {
  OpndText t = {""};
  if (w->guard.kind != REG_NONE) snprintf(t.s, sizeof t.s, "@%.20s ", ptx_text(w->guard).s);
  return t;
}

static Opnd to_memory_form(PtxWriter *w, LoopType mem, Opnd v) {
  Opnd form = in_memory_form(w, mem, v);
  if (mem == LT_I1) {
    INS(w, "selp.u32", form, ptx_const(LT_U32, 1), ptx_const(LT_U32, 0), v);
  } else if (mem == LT_F16) {
    INS(w, "cvt.rn.f16.f32", form, v);
  } else if (mem == LT_BF16) {
    Opnd rounded = ptx_new(w, REG_F);
    round_bf16(w, rounded, v);
    INS(w, "mov.b32", form, rounded);
    INS(w, "shr.u32", form, form, ptx_const(LT_U32, 16));
  }
  return form;
}

static const char *access_type(LoopType mem) { return mem == LT_BF16 ? "u16" : memory_type(mem); }

void ptx_access_four(PtxWriter *w, const LoopNode *n, const Opnd *four) {
  LoopType mem = (LoopType)n->mem;
  u32 each = loop_type_bytes(mem) == 8 ? 2 : 4;
  Opnd at = ptx_address(w, n), form[4];
  for (u32 i = 0; i < 4; i++)
    form[i] = n->op == LOOP_LOAD ? in_memory_form(w, mem, four[i]) : to_memory_form(w, mem, four[i]);
  for (u32 i = 0; i < 4; i += each) {
    if (i) INS(w, "add.s64", at, at, ptx_const(LT_I64, 16));
    char list[160];
    if (each == 4)
      snprintf(list, sizeof list, "{%s, %s, %s, %s}", ptx_text(form[0]).s, ptx_text(form[1]).s, ptx_text(form[2]).s,
               ptx_text(form[3]).s);
    else snprintf(list, sizeof list, "{%s, %s}", ptx_text(form[i]).s, ptx_text(form[i + 1]).s);
    const char *type = access_type(mem);
    if (n->op == LOOP_LOAD) ptx_line(w, "ld.global.v%u.%s %s, [%s];", each, type, list, ptx_text(at).s);
    else ptx_line(w, "%sst.global.v%u.%s [%s], %s;", guard_text(w).s, each, type, ptx_text(at).s, list);
  }
  for (u32 i = 0; i < 4 && n->op == LOOP_LOAD; i++) from_memory_form(w, mem, form[i], four[i]);
}

void ptx_half_from_shared(PtxWriter *w, bool brain, Opnd at, u32 offset, Opnd to) {
  LoopType mem = brain ? LT_BF16 : LT_F16;
  Opnd form = in_memory_form(w, mem, to);
  ptx_line(w, "ld.shared.%s %s, [%s+%u];", access_type(mem), ptx_text(form).s, ptx_text(at).s, offset);
  from_memory_form(w, mem, form, to);
}

void ptx_load(PtxWriter *w, const LoopNode *n, Opnd to) { ptx_load_from(w, n, ptx_address(w, n), to); }

void ptx_load_from(PtxWriter *w, const LoopNode *n, Opnd at, Opnd to) {
  const char *space = ptx_node(w, n->a)->op == LOOP_TABLE ? "const" : "global";
  Opnd form = in_memory_form(w, (LoopType)n->mem, to);
  ptx_line(w, "ld.%s.%s %s, [%s];", space, access_type((LoopType)n->mem), ptx_text(form).s, ptx_text(at).s);
  from_memory_form(w, (LoopType)n->mem, form, to);
}

void ptx_store(PtxWriter *w, const LoopNode *n) { ptx_store_to(w, n, ptx_address(w, n)); }

void ptx_store_to(PtxWriter *w, const LoopNode *n, Opnd at) {
  /* All threads of a warp have the value; one stores it, when the others have read what lay there. */
  bool together = w->spread == PTX_WARPS && !w->spread_depth;
  Opnd v = to_memory_form(w, (LoopType)n->mem, ptx_in_register(w, ptx_value(w, n->b))), first = none();
  const char *type = access_type((LoopType)n->mem);
  if (together) {
    first = ptx_new(w, REG_P);
    INS(w, "setp.eq.u32", first, w->lane, ptx_const(LT_U32, 0));
    ptx_line(w, "bar.warp.sync 0xFFFFFFFF;");
    ptx_line(w, "@%s st.global.%s [%s], %s;", ptx_text(first).s, type, ptx_text(at).s, ptx_text(v).s);
    ptx_line(w, "bar.warp.sync 0xFFFFFFFF;");
  } else {
    ptx_line(w, "%sst.global.%s [%s], %s;", guard_text(w).s, type, ptx_text(at).s, ptx_text(v).s);
  }
}
