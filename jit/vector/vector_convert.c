/* vector_convert.c — comparisons, selection, logic of conditions and conversions as vector instructions
 * (vector_emitter.h). */
#include "jit/vector/vector_emitter.h"

enum { CMP_EQ = 0, CMP_NE = 4, CMP_LT = 0x11, CMP_LE = 0x12, CMP_GT = 0x1E, CMP_GE = 0x1D, CMP_UNORDERED = 3 };
enum { INT_EQ = 0, INT_LT = 1, INT_LE = 2, INT_NE = 4, INT_GE = 5, INT_GT = 6 };
enum { EVEN = 0x88 }; /* elements 0 and 2 of both */

static VReg logic_4(VecFn *f, VecOp op, VReg a, VReg b) { return v_rvm(f, op, length_of(4, f->lanes), a, b); }

/* ---- conditions ---------------------------------------------------------------------------- */

/* Lanes of 8 bytes, each all ones or 0, or whose upper half does not matter, to lanes of 4. */
static VReg narrow(VecFn *f, VReg v) {
  if (f->lanes == 1) return v;
  if (f->lanes == 2) return v_rmi(f, V_PSHUFD, L128, v, 0x08);
  VReg high = new_vec(f);
  put(f, (VIns){.op = V_EXTRACT128, .length = L256, .dst = high, .a = v, .imm = 1});
  return v_rvmi(f, V_SHUFPS, L128, v, high, EVEN);
}

VReg flags_to_wide(VecFn *f, VReg cond) {
  const VFact *c = fact_of(f, cond);
  if (c && c->wide) return c->wide;
  return v_rm(f, V_PMOVSXDQ, length_of(8, f->lanes), cond);
}

VReg flags_of_numbers(VecFn *f, VReg v) {
  u8 length = length_of(4, f->lanes);
  if (f->evex) return v_compare(f, V_KTESTMD, length, v, v, 0);
  return v_rvm(f, V_CMPGTD, length, v, new_const(f, 0, 4)); /* 1 or 0 */
}

VReg numbers_of_flags(VecFn *f, VReg cond) {
  u8 length = length_of(4, f->lanes);
  if (!f->evex) return logic_4(f, V_ANDPS, cond, new_const(f, 1, 4));
  VReg d = new_vec(f);
  put(f, (VIns){.op = V_MOVAPS, .length = length, .dst = d, .a = new_const(f, 1, 4), .mask = cond, .flags = VI_ZERO});
  return d;
}

VReg lower_logic(VecFn *f, LoopOp op, VReg a, VReg b) {
  if (f->evex && !f->packed) {
    switch (op) {
      case LOOP_AND: return v_mask_op(f, K_KAND, a, b);
      case LOOP_OR: return v_mask_op(f, K_KOR, a, b);
      case LOOP_XOR:
      case LOOP_NE: return v_mask_op(f, K_KXOR, a, b);
      case LOOP_EQ: return v_mask_op(f, K_KXNOR, a, b);
      case LOOP_NOT: return v_mask_op(f, K_KNOT, a, 0);
      default: refuse(f, "an operation on conditions"); return 0;
    }
  }
  VReg ones = new_const(f, f->packed ? BYTES_OF_ONE : UINT32_MAX, 4);
  switch (op) {
    case LOOP_AND: return logic_4(f, V_ANDPS, a, b);
    case LOOP_OR: return logic_4(f, V_ORPS, a, b);
    case LOOP_XOR:
    case LOOP_NE: return logic_4(f, V_XORPS, a, b);
    case LOOP_EQ: return logic_4(f, V_XORPS, logic_4(f, V_XORPS, a, b), ones);
    case LOOP_NOT: return logic_4(f, V_XORPS, a, ones);
    default: refuse(f, "an operation on conditions"); return 0;
  }
}

static u8 float_code(LoopOp op) {
  switch (op) {
    case LOOP_EQ: return CMP_EQ;
    case LOOP_NE: return CMP_NE;
    case LOOP_LT: return CMP_LT;
    case LOOP_LE: return CMP_LE;
    case LOOP_GT: return CMP_GT;
    default: return CMP_GE;
  }
}

static u8 int_code(LoopOp op) {
  switch (op) {
    case LOOP_EQ: return INT_EQ;
    case LOOP_NE: return INT_NE;
    case LOOP_LT: return INT_LT;
    case LOOP_LE: return INT_LE;
    case LOOP_GT: return INT_GT;
    default: return INT_GE;
  }
}

/* AVX2: lanes of the type's own width. */
static VReg compare_lanes(VecFn *f, LoopOp op, LoopType t, VReg a, VReg b) {
  u8 length = vlength(f, t);
  if (loop_is_float(t)) return v_rvmi(f, by_width(t, V_CMPPS), length, a, b, float_code(op));
  u32 bytes = element_bytes(t);
  if (t == LT_U32 || t == LT_U64) { /* signed comparison of numbers moved by half the range */
    VReg half = new_const(f, (u64)1 << (8 * bytes - 1), bytes);
    a = v_rvm(f, by_width(t, V_XORPS), length, a, half);
    b = v_rvm(f, by_width(t, V_XORPS), length, b, half);
  }
  bool swap = op == LOOP_LT || op == LOOP_GE, equal = op == LOOP_EQ || op == LOOP_NE;
  VReg r = v_rvm(f, by_width(t, equal ? V_CMPEQD : V_CMPGTD), length, swap ? b : a, swap ? a : b);
  if (op == LOOP_EQ || op == LOOP_GT || op == LOOP_LT) return r;
  return v_rvm(f, by_width(t, V_XORPS), length, r, new_const(f, UINT64_MAX >> (64 - 8 * bytes), bytes));
}

VReg lower_compare(VecFn *f, LoopOp op, LoopType t, VReg a, VReg b) {
  if (t == LT_I1) return lower_logic(f, op, a, b);
  VFact fact = {.a = a, .b = b, .op = loop_is_float(t) ? (u8)op : (u8)LOOP_NOT};
  if (f->evex) {
    if (loop_is_float(t)) {
      fact.of = v_compare(f, by_width(t, V_KCMPPS), vlength(f, t), a, b, float_code(op));
      learn(f, fact);
      return fact.of;
    }
    return v_compare(f, by_width(t, loop_is_signed(t) ? V_KCMPD : V_KCMPUD), vlength(f, t), a, b, int_code(op));
  }
  VReg r = compare_lanes(f, op, t, a, b);
  if (element_bytes(t) == 8) fact.wide = r, r = narrow(f, r);
  fact.of = r;
  learn(f, fact);
  return r;
}

/* Of two floats the one that compares so: what VMINPS and VMAXPS give, the second operand for NaN and equal ones. */
static VReg lesser(VecFn *f, LoopType t, VReg cond, VReg yes, VReg no) {
  const VFact *c = fact_of(f, cond);
  if (!c || !loop_is_float(t) || (c->op != LOOP_LT && c->op != LOOP_GT)) return 0;
  bool same = yes == c->a && no == c->b;
  if (!same && !(yes == c->b && no == c->a)) return 0;
  return v_rvm(f, by_width(t, same == (c->op == LOOP_LT) ? V_MINPS : V_MAXPS), vlength(f, t), yes, no);
}

VReg lower_select(VecFn *f, LoopType t, VReg cond, VReg yes, VReg no) {
  if (t == LT_I1) {
    if (f->evex) return v_mask_op(f, K_KOR, v_mask_op(f, K_KAND, cond, yes), v_mask_op(f, K_KANDN, cond, no));
    t = LT_I32;
  }
  VReg d = lesser(f, t, cond, yes, no);
  if (d) return d;
  d = new_vec(f);
  u8 length = vlength(f, t);
  if (f->evex)
    put(f, (VIns){.op = (u16)by_width(t, V_BLENDMPS), .length = length, .dst = d, .a = no, .b = yes, .mask = cond});
  else
    put(f, (VIns){.op = (u16)by_width(t, V_BLENDVPS), .length = length, .dst = d, .a = no, .b = yes,
                  .c = element_bytes(t) == 8 ? flags_to_wide(f, cond) : cond});
  return d;
}

/* ---- conversions --------------------------------------------------------------------------- */

static VReg keep_byte(VecFn *f, VReg v) { return logic_4(f, V_ANDPS, v, new_const(f, 0xFF, 4)); }

static VReg int_to_int(VecFn *f, LoopType to, LoopType from, VReg a) {
  u32 wide = element_bytes(to), was = element_bytes(from);
  VReg r = a;
  if (wide > was) return v_rm(f, from == LT_I32 ? V_PMOVSXDQ : V_PMOVZXDQ, vlength(f, to), a);
  if (wide < was && f->evex) {
    r = new_vec(f);
    put(f, (VIns){.op = V_PMOVQD, .length = vlength(f, from), .dst = r, .a = a});
  } else if (wide < was) {
    r = narrow(f, a);
  }
  return to == LT_U8 && from != LT_U8 ? keep_byte(f, r) : r;
}

/* AVX2: an i64 or u64 as the sum of two doubles that hold its halves; one rounding. */
static VReg long_to_double(VecFn *f, LoopType from, VReg a) {
  u8 length = vlength(f, from);
  u64 bias = from == LT_I64 ? 0x80000000u : 0;
  VReg low = v_rvm(f, V_ORPD, length, v_rvm(f, V_ANDPD, length, a, new_const(f, UINT32_MAX, 8)),
                   new_const(f, 0x4330000000000000u, 8));
  VReg high = v_rvm(f, V_XORPD, length, v_rvm(f, V_PSRLVQ, length, a, new_const(f, 32, 8)),
                    new_const(f, 0x4530000000000000u + bias, 8));
  VReg rest = v_rvm(f, V_SUBPD, length, high, new_const(f, 0x4530000000100000u + bias, 8));
  return v_rvm(f, V_ADDPD, length, rest, low);
}

static VReg int_to_float(VecFn *f, LoopType to, LoopType from, VReg a) {
  bool d = to == LT_F64, is_signed = loop_is_signed(from);
  u8 length = element_bytes(from) == 8 ? vlength(f, from) : vlength(f, to);
  if (from == LT_I32 || from == LT_U8) return v_rm(f, d ? V_CVTDQ2PD : V_CVTDQ2PS, length, a);
  if (f->evex) {
    if (from == LT_U32) return v_rm(f, d ? V_CVTUDQ2PD : V_CVTUDQ2PS, length, a);
    return v_rm(f, d ? (is_signed ? V_CVTQQ2PD : V_CVTUQQ2PD) : is_signed ? V_CVTQQ2PS : V_CVTUQQ2PS, length, a);
  }
  if (from == LT_U32 && f->lanes <= 4) {
    VReg v = long_to_double(f, LT_U64, v_rm(f, V_PMOVZXDQ, vlength(f, LT_I64), a));
    return d ? v : v_rm(f, V_CVTPD2PS, vlength(f, LT_F64), v);
  }
  if (from != LT_U32 && d) return long_to_double(f, from, a);
  refuse(f, "a conversion of this type to float");
  return 0;
}

static u64 float_bits(LoopType t, f64 v) {
  union {
    f64 d;
    u64 bits;
  } d = {.d = v};
  union {
    f32 s;
    u32 bits;
  } s = {.s = (f32)v};
  return t == LT_F64 ? d.bits : s.bits;
}

static VReg float_const(VecFn *f, LoopType t, f64 v) { return new_const(f, float_bits(t, v), element_bytes(t)); }

/* AVX2: a double within the range of 64 bits, with a sign or without, as the nearest multiple of 2^32 and what is
 * left: a sum with 1.5 2^52 has either in its low bits. That of the multiple has besides what takes the exponent of
 * the other away. */
static VReg double_to_long(VecFn *f, VReg a) {
  enum { ROUND_CUT = 11 };
  u8 length = vlength(f, LT_F64);
  VReg whole = v_rmi(f, V_ROUNDPD, length, a, ROUND_CUT), one_half = float_const(f, LT_F64, 0x1.8p52),
      shifted = float_const(f, LT_F64, 0x1.8p52 - 0x43380000);
  VReg sum = lower_op(f, LOOP_FMA, LT_F64, whole, float_const(f, LT_F64, 0x1p-32), shifted);
  VReg high = v_rvm(f, V_SUBPD, length, sum, shifted);
  VReg low = v_rvm(f, V_ADDPD, length,
                   lower_op(f, LOOP_FMA, LT_F64, high, float_const(f, LT_F64, -0x1p32), whole), one_half);
  return v_rvm(f, V_PADDQ, length, v_rvm(f, V_PSLLVQ, length, sum, new_const(f, 32, 8)), low);
}

static VReg float_to_int(VecFn *f, LoopType to, LoopType from, VReg a) {
  const VFact *known = fact_of(f, a);
  bool fits = known && known->fits == to;
  if (!f->evex && element_bytes(to) == 8) {
    VReg least = float_const(f, LT_F64, loop_is_signed(to) ? -0x1p63 : 0);
    if (from == LT_F32) a = v_rm(f, V_CVTPS2PD, vlength(f, LT_F64), a), from = LT_F64;
    if (fits) return double_to_long(f, a);
    VReg r = double_to_long(f, v_rvm(f, V_MAXPD, vlength(f, from), a, least)); /* of a NaN and a number: the second */
    VReg above = lower_compare(f, LOOP_GE, from, a, float_const(f, from, loop_is_signed(to) ? 0x1p63 : 0x1p64));
    r = lower_select(f, to, above, new_const(f, loop_is_signed(to) ? (u64)INT64_MAX : UINT64_MAX, 8), r);
    return loop_is_signed(to) ? lower_select(f, to, lower_compare(f, LOOP_EQ, from, a, a), r, new_const(f, 0, 8)) : r;
  }
  bool d = from == LT_F64;
  u8 source = vlength(f, from), length = element_bytes(to) == 8 ? vlength(f, to) : source;
  if (!loop_is_signed(to)) { /* of a NaN and a number: the second */
    a = v_rvm(f, by_width(from, V_MAXPS), source, a, float_const(f, from, 0));
    if (to == LT_U8)
      return v_rm(f, d ? V_CVTTPD2DQ : V_CVTTPS2DQ, length,
                  v_rvm(f, by_width(from, V_MINPS), source, a, float_const(f, from, 255)));
    if (!f->evex) return refuse(f, "a conversion of float to this type"), 0;
    if (to == LT_U32) return v_rm(f, d ? V_CVTTPD2UDQ : V_CVTTPS2UDQ, length, a); /* out of range: all ones */
    return v_rm(f, d ? V_CVTTPD2UQQ : V_CVTTPS2UQQ, length, a);
  }
  /* out of range: the least */
  VReg r = to == LT_I32 ? v_rm(f, d ? V_CVTTPD2DQ : V_CVTTPS2DQ, length, a)
                        : v_rm(f, d ? V_CVTTPD2QQ : V_CVTTPS2QQ, length, a);
  if (fits) return r;
  VReg above = lower_compare(f, LOOP_GE, from, a, float_const(f, from, to == LT_I32 ? 0x1p31 : 0x1p63));
  VReg number = lower_compare(f, LOOP_EQ, from, a, a);
  VReg most = new_const(f, to == LT_I32 ? (u64)INT32_MAX : (u64)INT64_MAX, element_bytes(to));
  return lower_select(f, to, number, lower_select(f, to, above, most, r), new_const(f, 0, element_bytes(to)));
}

static VReg from_flags(VecFn *f, LoopType to, VReg a) {
  if (f->packed) return a;
  u64 one = loop_is_float(to) ? float_bits(to, 1) : 1;
  return lower_select(f, to, a, new_const(f, one, element_bytes(to)), new_const(f, 0, element_bytes(to)));
}

VReg lower_convert(VecFn *f, LoopType to, LoopType from, VReg a) {
  if (to == from) return a;
  if (from == LT_I1) return from_flags(f, to, a);
  if (loop_is_float(from) && loop_is_float(to))
    return v_rm(f, to == LT_F64 ? V_CVTPS2PD : V_CVTPD2PS, vlength(f, LT_F64), a);
  if (loop_is_float(to)) return int_to_float(f, to, from, a);
  return loop_is_float(from) ? float_to_int(f, to, from, a) : int_to_int(f, to, from, a);
}
