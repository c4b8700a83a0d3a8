/* vector_ops.c — arithmetic of the loop IR as vector instructions (vector_emitter.h). Every sequence gives the bits of
 * loops_eval.c; AVX2 lacks some integer instructions of 64 bits, which are put together here. */
#include <string.h>

#include "jit/vector/vector_emitter.h"

enum { CMP_UNORDERED = 3, ROUND_EXACT = 8 };

_Static_assert(V_ADDPD == V_ADDPS + 1 && V_FMA213PD == V_FMA213PS + 1 && V_PADDQ == V_PADDD + 1 &&
               V_KCMPQ == V_KCMPD + 1 && V_PSRAVQ == V_PSRAVD + 1, "rows for 8 bytes follow those for 4");

VReg lower_constant(VecFn *f, LoopType type, u64 bits) {
  if (type == LT_U8 && f->packed) return new_const(f, (bits & 0xFF) * BYTES_OF_ONE, 4);
  if (type != LT_I1) return new_const(f, element_bytes(type) == 8 ? bits : (u32)bits, element_bytes(type));
  if (f->evex) return v_mask_op(f, bits ? K_KXNOR : K_KXOR, 0, 0);
  return new_const(f, bits ? UINT32_MAX : 0, 4);
}

static VReg all_ones(VecFn *f, LoopType t) {
  return new_const(f, UINT64_MAX >> (64 - 8 * element_bytes(t)), element_bytes(t));
}
static u64 sign_bits(LoopType t) { return (u64)1 << (8 * element_bytes(t) - 1); }
static VReg signs(VecFn *f, LoopType t) { return new_const(f, sign_bits(t), element_bytes(t)); }
static VReg magnitudes(VecFn *f, LoopType t) { return new_const(f, sign_bits(t) - 1, element_bytes(t)); }

static VReg two(VecFn *f, LoopType t, VecOp op, VReg a, VReg b) {
  return v_rvm(f, by_width(t, op), vlength(f, t), a, b);
}

/* NaN if either is NaN, -0 below +0. */
static VReg extreme(VecFn *f, LoopType t, bool max, VReg a, VReg b) {
  u8 length = vlength(f, t);
  if (f->evex) {
    VReg r = v_rvmi(f, by_width(t, V_RANGEPS), length, a, b, max ? 5 : 4); /* of a NaN and a number: the number */
    VReg nan = v_compare(f, by_width(t, V_KCMPPS), length, a, b, CMP_UNORDERED);
    return v_masked(f, by_width(t, V_ADDPS), length, nan, r, a, b);
  }
  VecOp op = by_width(t, max ? V_MAXPS : V_MINPS);
  VReg x = v_rvm(f, op, length, a, b), y = v_rvm(f, op, length, b, a); /* of NaN and of zeros: the second */
  if (!max) return two(f, t, V_ORPS, x, y);
  return two(f, t, V_ORPS, two(f, t, V_ANDPS, x, y), v_rvmi(f, by_width(t, V_CMPPS), length, a, b, CMP_UNORDERED));
}

static VReg ops_rounded(VecFn *f, LoopType t, VReg a, u32 mode) {
  return v_rmi(f, by_width(t, f->evex ? V_RNDSCALEPS : V_ROUNDPS), vlength(f, t), a, (u8)(ROUND_EXACT | mode));
}

static VReg to_f16(VecFn *f, VReg a) {
  u8 length = vlength(f, LT_F32);
  VReg half = new_vec(f);
  put(f, (VIns){.op = V_CVTPS2PH, .length = length, .dst = half, .a = a});
  return v_rm(f, V_CVTPH2PS, length, half);
}

static VReg to_bf16(VecFn *f, VReg a) {
  u8 length = vlength(f, LT_F32);
  VReg odd = two(f, LT_I32, V_ANDPS, v_rvm(f, V_PSRLVD, length, a, new_const(f, 16, 4)), new_const(f, 1, 4));
  VReg up = two(f, LT_I32, V_PADDD, two(f, LT_I32, V_PADDD, odd, new_const(f, 0x7FFF, 4)), a);
  VReg r = two(f, LT_I32, V_ANDPS, up, new_const(f, 0xFFFF0000u, 4));
  return lower_select(f, LT_F32, lower_compare(f, LOOP_EQ, LT_F32, a, a), r, new_const(f, 0x7FC00000, 4));
}

static VReg negated(VecFn *f, LoopType t, VReg a) {
  VReg r = two(f, t, V_XORPS, a, signs(f, t));
  learn(f, (VFact){.of = r, .a = a, .op = LOOP_NEG});
  return r;
}

/* What was negated goes in as it was; the instruction negates. */
static VReg fused_product(VecFn *f, LoopType t, VReg a, VReg b, VReg c) {
  u8 how = (u8)element_bytes(t);
  VReg *in[3] = {&a, &b, &c}, d = new_vec(f);
  for (u32 k = 0; k < 3; k++) {
    const VFact *n = fact_of(f, *in[k]);
    if (!n || n->op != LOOP_NEG) continue;
    *in[k] = n->a;
    how ^= k == 2 ? FMA_MINUS : FMA_NEGATED;
  }
  put(f, (VIns){.op = P_FMA, .length = vlength(f, t), .dst = d, .a = a, .b = b, .c = c, .imm = how});
  return d;
}

/* AVX-512: a, but b where the mask of signs is set. */
static VReg with_sign(VecFn *f, LoopType t, VReg a, VReg b) {
  enum { THIRD_CHOOSES = 0xD8 };
  VReg d = new_vec(f);
  put(f, (VIns){.op = (u16)by_width(t, V_TERNLOGD), .length = vlength(f, t), .dst = d, .a = b, .b = signs(f, t), .c = a,
                .imm = THIRD_CHOOSES, .flags = VI_TIED | VI_EARLY});
  return d;
}

static VReg float_op(VecFn *f, LoopOp op, LoopType t, VReg a, VReg b, VReg c) {
  u8 length = vlength(f, t);
  switch (op) {
    case LOOP_ADD: return two(f, t, V_ADDPS, a, b);
    case LOOP_SUB: return two(f, t, V_SUBPS, a, b);
    case LOOP_MUL: return two(f, t, V_MULPS, a, b);
    case LOOP_DIV: return two(f, t, V_DIVPS, a, b);
    case LOOP_MIN: return extreme(f, t, false, a, b);
    case LOOP_MAX: return extreme(f, t, true, a, b);
    case LOOP_COPYSIGN:
      return f->evex ? with_sign(f, t, a, b)
                     : two(f, t, V_ORPS, two(f, t, V_ANDPS, a, magnitudes(f, t)), two(f, t, V_ANDPS, b, signs(f, t)));
    case LOOP_NEG: return negated(f, t, a);
    case LOOP_ABS: return two(f, t, V_ANDPS, a, magnitudes(f, t));
    case LOOP_SQRT: return v_rm(f, by_width(t, V_SQRTPS), length, a);
    case LOOP_FLOOR: return ops_rounded(f, t, a, 1);
    case LOOP_CEIL: return ops_rounded(f, t, a, 2);
    case LOOP_TRUNC: return ops_rounded(f, t, a, 3);
    case LOOP_RINT: return ops_rounded(f, t, a, 0);
    case LOOP_ROUND_F16: return to_f16(f, a);
    case LOOP_ROUND_BF16: return to_bf16(f, a);
    case LOOP_FMA: return fused_product(f, t, a, b, c);
    default: refuse(f, "a float operation"); return 0;
  }
}

/* ---- integers ------------------------------------------------------------------------------ */

static VReg multiply_64(VecFn *f, VReg a, VReg b) {
  u8 length = vlength(f, LT_I64);
  if (f->evex) return v_rvm(f, V_PMULLQ, length, a, b);
  VReg far = new_const(f, 32, 8);
  VReg ah = v_rvm(f, V_PSRLVQ, length, a, far), bh = v_rvm(f, V_PSRLVQ, length, b, far);
  VReg cross = v_rvm(f, V_PADDQ, length, v_rvm(f, V_PMULUDQ, length, a, bh), v_rvm(f, V_PMULUDQ, length, ah, b));
  return v_rvm(f, V_PADDQ, length, v_rvm(f, V_PSLLVQ, length, cross, far), v_rvm(f, V_PMULUDQ, length, a, b));
}

static VReg int_extreme(VecFn *f, LoopType t, bool max, VReg a, VReg b) {
  bool is_signed = loop_is_signed(t) || t == LT_U8;
  if (!f->evex && element_bytes(t) == 8) {
    VReg less = lower_compare(f, LOOP_LT, t, a, b);
    return lower_select(f, t, less, max ? b : a, max ? a : b);
  }
  return two(f, t, max ? (is_signed ? V_PMAXSD : V_PMAXUD) : is_signed ? V_PMINSD : V_PMINUD, a, b);
}

static VReg int_abs(VecFn *f, LoopType t, VReg a) {
  if (!loop_is_signed(t)) return a;
  if (f->evex || t == LT_I32) return v_rm(f, by_width(t, V_PABSD), vlength(f, t), a);
  VReg below = v_rvm(f, V_CMPGTQ, vlength(f, t), new_const(f, 0, 8), a);
  return two(f, t, V_PSUBD, two(f, t, V_XORPS, a, below), below);
}

static VReg shift(VecFn *f, LoopOp op, LoopType t, VReg a, VReg b) {
  if (op == LOOP_SHL) return two(f, t, V_PSLLVD, a, b);
  if (!loop_is_signed(t)) return two(f, t, V_PSRLVD, a, b);
  if (f->evex || t == LT_I32) return two(f, t, V_PSRAVD, a, b);
  VReg below = v_rvm(f, V_CMPGTQ, vlength(f, t), new_const(f, 0, 8), a);
  return two(f, t, V_XORPS, two(f, t, V_PSRLVD, two(f, t, V_XORPS, a, below), b), below);
}

/* By the quotient of doubles, cut off: of 32 bits it is exact. Of 64 bits the first is wrong by thousands at most,
 * and what it leaves, divided again, by one, and then too large: both conversions round one way, and where the
 * divisor has more than 53 bits the second quotient is below 2. Products wrap, so that a first quotient of 2**63,
 * which becomes the least number, is right, too. By 0: 0, and all is left. */
static VReg divided(VecFn *f, LoopOp op, LoopType t, VReg a, VReg b) {
  bool wide = t == LT_I64, quotient = op == LOOP_DIV || op == LOOP_FLOORDIV,
      floors = op == LOOP_FLOORDIV || op == LOOP_MOD;
  /* TRIED: of 64 bits with AVX2, twice as long as one by one */
  if (!(wide && f->evex) && t != LT_I32) return refuse(f, "integer division"), 0;
  VReg zero = new_const(f, 0, element_bytes(t)), by = lower_convert(f, LT_F64, t, b), q = 0, r = a;
  for (u32 k = 0; k <= wide; k++) {
    VReg part = two(f, LT_F64, V_DIVPS, lower_convert(f, LT_F64, t, r), by);
    part = v_rm(f, wide ? V_CVTTPD2QQ : V_CVTTPD2DQ, vlength(f, LT_F64), part);
    r = two(f, t, V_PSUBD, r, lower_op(f, LOOP_MUL, t, part, b, 0));
    q = k ? two(f, t, V_PADDD, q, part) : part;
  }
  /* toward minus infinity; cut off again. Of 32 bits it is cut off as it should be */
  for (u32 k = 0; k <= !floors; k++) {
    if (!wide && !floors) break;
    if (!f->evex) { /* a lane that takes is all ones, -1 */
      VReg apart = two(f, t, V_CMPGTD, zero, two(f, t, V_XORPS, k ? a : r, b)),
          takes = two(f, t, V_ANDNPS, two(f, t, V_CMPEQD, r, zero), apart);
      if (quotient) q = two(f, t, k ? V_PSUBD : V_PADDD, q, takes);
      r = two(f, t, k ? V_PSUBD : V_PADDD, r, two(f, t, V_ANDPS, takes, b));
      continue;
    }
    VReg apart = lower_compare(f, LOOP_LT, t, two(f, t, V_XORPS, k ? a : r, b), zero);
    VReg takes = v_mask_op(f, K_KAND, apart, lower_compare(f, LOOP_NE, t, r, zero));
    if (quotient) q = v_masked(f, by_width(t, k ? V_PSUBD : V_PADDD), vlength(f, t), takes, q, q, all_ones(f, t));
    r = v_masked(f, by_width(t, k ? V_PSUBD : V_PADDD), vlength(f, t), takes, r, r, b);
  }
  return lower_select(f, t, lower_compare(f, LOOP_EQ, t, b, zero), quotient ? zero : a, quotient ? q : r);
}

/* Of at most 32 bits: the floor of (a + 1/2) / by in doubles, by a product. Quotients lie 1 / (2 by) or more from the
 * next whole number, and the product is wrong by 2^-20 / by at most. Of 64 bits the first quotient is wrong by some
 * thousands, and so what it leaves has fewer than 50 bits, and goes the same way. */
VReg lower_divided_by(VecFn *f, LoopOp op, LoopType t, VReg a, u64 by) {
  bool wide = t == LT_I64, quotient = op == LOOP_FLOORDIV;
  if ((op != LOOP_FLOORDIV && op != LOOP_MOD) || by < 2 || by > INT32_MAX) return 0;
  if (f->fn->module->divisions_stay || !(t == LT_I32 || t == LT_U8 || (f->evex && (wide || t == LT_U32)))) return 0;
  union {
    f64 d;
    u64 bits;
  } inverse = {.d = 1.0 / (f64)by}, half = {.d = 0.5};
  VReg factor = new_const(f, inverse.bits, 8), divisor = new_const(f, by, element_bytes(t)), r = a, q = 0;
  f->fn->module->products++;
  for (u32 k = 0; k <= wide; k++) {
    VReg x = lower_convert(f, LT_F64, t, r);
    if (k == wide) x = two(f, LT_F64, V_ADDPS, x, new_const(f, half.bits, 8));
    x = two(f, LT_F64, V_MULPS, x, factor);
    if (k == wide) x = ops_rounded(f, LT_F64, x, 1);
    VReg part = v_rm(f, wide ? V_CVTTPD2QQ : t == LT_U32 ? V_CVTTPD2UDQ : V_CVTTPD2DQ, vlength(f, LT_F64), x);
    q = k ? two(f, t, V_PADDD, q, part) : part;
    if (k < wide || !quotient) r = two(f, t, V_PSUBD, r, lower_op(f, LOOP_MUL, wide ? t : LT_I32, part, divisor, 0));
  }
  return quotient ? q : r;
}

static VReg int_op(VecFn *f, LoopOp op, LoopType t, VReg a, VReg b) {
  switch (op) {
    case LOOP_ADD: return two(f, t, V_PADDD, a, b);
    case LOOP_SUB: return two(f, t, V_PSUBD, a, b);
    case LOOP_MUL: return element_bytes(t) == 8 ? multiply_64(f, a, b) : two(f, t, V_PMULLD, a, b);
    case LOOP_MIN: return int_extreme(f, t, false, a, b);
    case LOOP_MAX: return int_extreme(f, t, true, a, b);
    case LOOP_AND: return two(f, t, V_ANDPS, a, b);
    case LOOP_OR: return two(f, t, V_ORPS, a, b);
    case LOOP_XOR: return two(f, t, V_XORPS, a, b);
    case LOOP_NOT: return two(f, t, V_XORPS, a, all_ones(f, t));
    case LOOP_NEG: return two(f, t, V_PSUBD, new_const(f, 0, element_bytes(t)), a);
    case LOOP_ABS: return int_abs(f, t, a);
    case LOOP_SHL:
    case LOOP_SHR: return shift(f, op, t, a, b);
    case LOOP_DIV:
    case LOOP_FLOORDIV:
    case LOOP_REM:
    case LOOP_MOD: return divided(f, op, t, a, b);
    default: refuse(f, "an integer operation"); return 0;
  }
}

/* Vectors of bytes (VLoop.packed). */
static VReg byte_op(VecFn *f, LoopOp op, VReg a, VReg b) {
  u8 length = vlength(f, LT_U8);
  switch (op) {
    case LOOP_ADD: return v_rvm(f, V_PADDB, length, a, b);
    case LOOP_SUB: return v_rvm(f, V_PSUBB, length, a, b);
    case LOOP_AND: return v_rvm(f, V_ANDPS, length, a, b);
    case LOOP_OR: return v_rvm(f, V_ORPS, length, a, b);
    case LOOP_XOR: return v_rvm(f, V_XORPS, length, a, b);
    case LOOP_MIN: return v_rvm(f, V_PMINUB, length, a, b);
    case LOOP_MAX: return v_rvm(f, V_PMAXUB, length, a, b);
    default: refuse(f, "an operation on bytes"); return 0;
  }
}

VReg lower_op(VecFn *f, LoopOp op, LoopType type, VReg a, VReg b, VReg c) {
  if (type == LT_U8 && f->packed) return byte_op(f, op, a, b);
  if (loop_is_float(type)) return float_op(f, op, type, a, b, c);
  if (type == LT_I1) return lower_logic(f, op, a, b);
  VReg r = int_op(f, op, type, a, b);
  bool grows = op != LOOP_AND && op != LOOP_OR && op != LOOP_XOR && op != LOOP_MIN && op != LOOP_MAX &&
               op != LOOP_SHR && op != LOOP_ABS;
  return type == LT_U8 && grows ? two(f, LT_I32, V_ANDPS, r, new_const(f, 0xFF, 4)) : r;
}
