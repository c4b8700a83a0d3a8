/* vector_narrow.c — loops over small integers in lanes of fewer bytes than their types have (vector_emitter.h).
 *
 * Of each integer of the body two things are found: between which numbers it lies, from what is read and from
 * constants, and how many of its low bits are used, from what is stored. A lane of `w` bits holds the number modulo
 * 2^w. That suffices where no more bits are used, or where the number lies in a range of `w` bits, with a sign or
 * without. The narrowest lanes that suffice for all are taken. Lanes of four bytes are those of i32, and an i64 is
 * computed as one (lane_type); lanes of one or two bytes have their code here. Their conditions are mask registers of
 * that many lanes with AVX-512, else lanes of all ones or 0. */
#include "jit/vector/vector_emitter.h"

enum { EXACT = 64, INT_EQ = 0, INT_LT = 1, INT_LE = 2, INT_NE = 4, INT_GE = 5, INT_GT = 6 };

static u32 type_bits(LoopType t) { return 8 * loop_type_bytes(t); }

static VRange of_type(LoopType t) {
  switch (t) {
    case LT_I1: return (VRange){0, 1};
    case LT_U8: return (VRange){0, 255};
    case LT_I32: return (VRange){INT32_MIN, INT32_MAX};
    case LT_U32: return (VRange){0, UINT32_MAX};
    default: return (VRange){INT64_MIN, INT64_MAX};
  }
}

static bool within(VRange r, VRange most) { return r.low >= most.low && r.high <= most.high; }
static bool fits_signed(VRange r, u32 bits) {
  return r.low >= -((i64)1 << (bits - 1)) && r.high < (i64)1 << (bits - 1);
}
static bool fits_unsigned(VRange r, u32 bits) { return r.low >= 0 && r.high < (i64)1 << bits; }

/* ---- what is known -------------------------------------------------------------------------- */

static bool is_constant(const VecFn *f, u32 id) { return vnode(f, id)->op == LOOP_CONST; }
static i64 constant_of(const VecFn *f, u32 id) { return (i64)vnode(f, id)->imm; }

static VRange range_of(const VecFn *f, u32 id) {
  const LoopNode *n = vnode(f, id);
  if (n->op == LOOP_CONST) return (VRange){(i64)n->imm, (i64)n->imm};
  return f->narrowed[id].known ? f->narrowed[id].range : of_type((LoopType)n->type);
}

/* From the least to the greatest of four numbers, where the type has them all. */
static VRange between(LoopType t, const __int128 *v) {
  __int128 low = v[0], high = v[0];
  for (u32 k = 1; k < 4; k++) low = v[k] < low ? v[k] : low, high = v[k] > high ? v[k] : high;
  VRange all = of_type(t);
  return low < all.low || high > all.high ? all : (VRange){(i64)low, (i64)high};
}

static i64 lesser_of(i64 a, i64 b) { return a < b ? a : b; }
static i64 greater_of(i64 a, i64 b) { return a > b ? a : b; }
static u32 bits_of(i64 v) { return v > 0 ? 64u - (u32)__builtin_clzll((u64)v) : 0; }
static i64 floor_quotient(i64 a, i64 b) { return a / b - (a % b < 0); } /* b > 0 */

static VRange bits_range(LoopOp op, LoopType t, VRange a, VRange b) {
  if (op == LOOP_AND) {
    if (a.low >= 0 && b.low >= 0) return (VRange){0, lesser_of(a.high, b.high)};
    return a.low >= 0 ? (VRange){0, a.high} : b.low >= 0 ? (VRange){0, b.high} : of_type(t);
  }
  if (a.low < 0 || b.low < 0) return of_type(t);
  return (VRange){0, (i64)(((u64)1 << bits_of(greater_of(a.high, b.high))) - 1)};
}

/* Between which numbers an integer lies whose operands are known. */
static VRange result_range(const VecFn *f, const LoopNode *n) {
  LoopType t = (LoopType)n->type;
  if (n->op == LOOP_LOAD) return of_type((LoopType)n->mem);
  if (n->op == LOOP_SELECT) {
    VRange b = range_of(f, n->b), c = range_of(f, n->c);
    return (VRange){lesser_of(b.low, c.low), greater_of(b.high, c.high)};
  }
  VRange a = range_of(f, n->a), b = n->b ? range_of(f, n->b) : (VRange){0, 0};
  __int128 al = a.low, ah = a.high, bl = b.low, bh = b.high;
  bool one = n->b && is_constant(f, n->b) && bl > 0;
  switch (n->op) {
    case LOOP_ADD: return between(t, (__int128[]){al + bl, ah + bh, al + bl, ah + bh});
    case LOOP_SUB: return between(t, (__int128[]){al - bh, ah - bl, al - bh, ah - bl});
    case LOOP_MUL: return between(t, (__int128[]){al * bl, al * bh, ah * bl, ah * bh});
    case LOOP_NEG: return between(t, (__int128[]){-al, -ah, -al, -ah});
    case LOOP_ABS: {
      __int128 least = al > 0 ? al : 0;
      return between(t, (__int128[]){least, al < 0 ? -al : al, ah < 0 ? -ah : ah, least});
    }
    case LOOP_NOT: return loop_is_signed(t) ? (VRange){~a.high, ~a.low} : of_type(t);
    case LOOP_MIN: return (VRange){lesser_of(a.low, b.low), lesser_of(a.high, b.high)};
    case LOOP_MAX: return (VRange){greater_of(a.low, b.low), greater_of(a.high, b.high)};
    case LOOP_AND: case LOOP_OR: case LOOP_XOR: return bits_range((LoopOp)n->op, t, a, b);
    case LOOP_SHL:
      if (!is_constant(f, n->b) || bl < 0 || bl >= 64) return of_type(t);
      return between(t, (__int128[]){al * ((__int128)1 << b.low), ah * ((__int128)1 << b.low), 0, 0});
    case LOOP_SHR:
      if (!is_constant(f, n->b) || bl < 0 || bl >= type_bits(t)) return of_type(t);
      return (VRange){a.low >> b.low, a.high >> b.low};
    case LOOP_FLOORDIV: return one ? (VRange){floor_quotient(a.low, b.low), floor_quotient(a.high, b.low)} : of_type(t);
    case LOOP_MOD: return !one ? of_type(t) : a.low >= 0 && ah < bl ? a : (VRange){0, b.low - 1};
    case LOOP_CONVERT:
      if (loop_is_float(loop_type_of(f->fn, n->a))) return of_type(t);
      return within(a, of_type(t)) ? a : of_type(t);
    default: return of_type(t);
  }
}

/* ---- what is used --------------------------------------------------------------------------- */

static bool is_number(LoopType t) { return t == LT_U8 || t == LT_I32 || t == LT_U32 || t == LT_I64; }

static void need(const VecFn *f, u32 id, u32 bits) {
  if (id && is_number((LoopType)vnode(f, id)->type) && f->narrowed[id].need < bits) f->narrowed[id].need = (u8)bits;
}

static void need_operands(const VecFn *f, const LoopNode *n, u32 used) {
  LoopType t = (LoopType)n->type;
  u32 own = is_number(t) && used > type_bits(t) ? type_bits(t) : used;
  switch (n->op) {
    case LOOP_STORE: need(f, n->b, type_bits((LoopType)n->mem)); return;
    case LOOP_AND:
      if (is_constant(f, n->b) && constant_of(f, n->b) >= 0 && bits_of(constant_of(f, n->b)) < own)
        own = used = bits_of(constant_of(f, n->b)); /* fall through */
    case LOOP_OR: case LOOP_XOR:
      if (used > type_bits(t)) own = EXACT; /* nothing clears what lies above a byte */
      need(f, n->a, own), need(f, n->b, own);
      return;
    case LOOP_ADD: case LOOP_SUB: case LOOP_MUL: case LOOP_NEG: case LOOP_NOT:
      need(f, n->a, own), need(f, n->b, own);
      return;
    case LOOP_SHL: need(f, n->a, own); return;
    case LOOP_SHR: {
      u64 by = vnode(f, n->b)->imm;
      need(f, n->a, used + by <= type_bits(t) ? used + (u32)by : EXACT);
      return;
    }
    case LOOP_SELECT: need(f, n->b, used), need(f, n->c, used); return;
    case LOOP_CONVERT: {
      LoopType from = loop_type_of(f->fn, n->a);
      bool kept = used > type_bits(t) && within(range_of(f, n->a), of_type(t)); /* nothing is cleared */
      if (is_number(from)) need(f, n->a, is_number(t) && own <= type_bits(from) && !kept ? own : EXACT);
      return;
    }
    default: need(f, n->a, EXACT), need(f, n->b, EXACT), need(f, n->c, EXACT); return;
  }
}

/* ---- which lanes suffice -------------------------------------------------------------------- */

static bool is_fit(const VecFn *f, u32 id, u32 bits) {
  LoopType t = (LoopType)vnode(f, id)->type;
  if (!is_number(t)) return true;
  VRange r = range_of(f, id);
  if (f->narrowed[id].need <= bits || fits_signed(r, bits)) return true;
  return fits_unsigned(r, bits) && (bits < 32 || t == LT_U32);
}

static bool both_fit(const VecFn *f, const LoopNode *n, u32 bits) {
  VRange a = range_of(f, n->a), b = range_of(f, n->b);
  if (fits_signed(a, bits) && fits_signed(b, bits)) return true;
  return fits_unsigned(a, bits) && fits_unsigned(b, bits);
}

static u32 shift_of(const VecFn *f, const LoopNode *n) {
  return is_constant(f, n->b) && vnode(f, n->b)->imm < type_bits((LoopType)n->type) ? (u32)vnode(f, n->b)->imm : EXACT;
}

/* Of an unsigned x up to `most`: x / by is x * factor >> bits + shift. False: no such factor of so many bits. */
static bool factor_of(i64 most, i64 by, u32 bits, u32 *factor, u32 *shift) {
  for (u32 k = 0; k < bits; k++) {
    u64 power = (u64)1 << (bits + k), m = (power + (u64)by - 1) / (u64)by;
    if (m >> bits) return false;
    *factor = (u32)m, *shift = k;
    if ((m * (u64)by - power) * (u64)most < power) return true;
  }
  return false;
}

static bool narrow_divides(const VecFn *f, const LoopNode *n, u32 bits, u32 *factor, u32 *shift) {
  i64 by = constant_of(f, n->b);
  VRange a = range_of(f, n->a);
  bool floors = n->op == LOOP_FLOORDIV || n->op == LOOP_MOD;
  return floors && is_constant(f, n->b) && by > 1 && by < (i64)1 << (bits - 1) && a.low >= 0 &&
         a.high < (i64)1 << (bits == 32 ? 31 : bits) && factor_of(a.high, by, bits, factor, shift);
}

/* Can all divisions of the vector loop at hand, whose lanes are narrow, be products in lanes of 4 bytes. */
bool narrow_quotients(const VecFn *f) {
  u32 factor, shift;
  bool all = true;
  for (u32 pos = f->inside_first; pos <= f->inside_last; pos++) {
    const LoopNode *n = vnode(f, body_node(f, pos));
    bool divides = n->op == LOOP_FLOORDIV || n->op == LOOP_MOD || n->op == LOOP_REM ||
                   (n->op == LOOP_DIV && !loop_is_float((LoopType)n->type));
    all &= !divides || narrow_divides(f, n, 32, &factor, &shift);
  }
  return all;
}

/* Such a quotient, or what it leaves: upper halves of products of even and odd lanes. 0: it is none. */
VReg narrow_quotient(VecFn *f, const LoopNode *n) {
  u32 factor = 0, shift = 0;
  if (f->narrow != 4 || f->fn->module->divisions_stay || !narrow_divides(f, n, 32, &factor, &shift)) return 0;
  u8 length = vlength(f, LT_I32);
  VReg a = operand(f, n->a), by = new_const(f, factor, 8), upper = new_const(f, ~(u64)UINT32_MAX, 8);
  VReg even = v_rmi(f, V_PSRLQ_I, length, v_rvm(f, V_PMULUDQ, length, a, by), 32);
  VReg odd = v_rvm(f, V_PMULUDQ, length, v_rmi(f, V_PSRLQ_I, length, a, 32), by);
  VReg q = v_rvm(f, V_ORPD, length, v_rvm(f, V_ANDPD, length, odd, upper), even);
  f->fn->module->products++;
  if (shift) q = v_rmi(f, V_PSRLD_I, length, q, (u8)shift);
  if (n->op == LOOP_FLOORDIV) return q;
  VReg divisor = new_const(f, (u32)constant_of(f, n->b), 4);
  return v_rvm(f, V_PSUBD, length, a, v_rvm(f, V_PMULLD, length, q, divisor));
}

/* Can this statement be computed in lanes of so many bits. */
static bool goes_in(const VecFn *f, const LoopNode *n, u32 bits) {
  LoopType t = (LoopType)n->type, from = n->a ? loop_type_of(f->fn, n->a) : LT_VOID;
  bool small = bits < 32;
  u32 factor, by_bits;
  switch (n->op) {
    case LOOP_LOAD:
    case LOOP_STORE: {
      VAccess kind = access_kind(f, n, f->vector_head, f->inside_first, f->inside_last);
      u32 bytes = loop_type_bytes((LoopType)n->mem);
      if (n->op == LOOP_LOAD && kind == VA_SAME) return t != LT_I1 && is_number(t);
      if (!small && f->near && moves_near(f, n, f->vector_head, f->inside_first, f->inside_last)) return true;
      return kind == VA_UNIT && (small ? bytes == 1 : bytes <= 4);
    }
    case LOOP_ADD: case LOOP_SUB: case LOOP_NEG: return is_number(t);
    case LOOP_AND: case LOOP_OR: case LOOP_XOR: case LOOP_NOT: return t == LT_I1 || is_number(t);
    case LOOP_MUL: return is_number(t) && bits > 8;
    case LOOP_SHL: return is_number(t) && shift_of(f, n) < bits;
    case LOOP_SHR:
      return is_number(t) && shift_of(f, n) < bits &&
             (bits > 8 || f->narrowed[n->a].need <= bits || fits_unsigned(range_of(f, n->a), bits));
    case LOOP_MIN: case LOOP_MAX: return is_number(t) && (small ? both_fit(f, n, bits) : true);
    case LOOP_ABS: return is_number(t) && (small ? fits_signed(range_of(f, n->a), bits) : true);
    case LOOP_FLOORDIV: case LOOP_MOD:
      if (small) return is_number(t) && bits == 16 && narrow_divides(f, n, bits, &factor, &by_bits);
      return is_number(t) && is_constant(f, n->b) && constant_of(f, n->b) > 1;
    case LOOP_EQ: case LOOP_NE: case LOOP_LT: case LOOP_LE: case LOOP_GT: case LOOP_GE:
      return from == LT_I1 || (is_number(from) && (small ? both_fit(f, n, bits) : true)) ||
             (!small && loop_is_float(from) && loop_type_bytes(from) == 4);
    case LOOP_SELECT: return t == LT_I1 || is_number(t);
    case LOOP_CONVERT:
      if (!small && (t == LT_F32 || from == LT_F32)) return is_number(t) || is_number(from);
      return is_number(t) && (from == LT_I1 || is_number(from));
    case LOOP_CHECK: return n->aux == LOOP_CHECK_ASSERT && (!small || f->evex || bits == 8);
    default: return false;
  }
}

typedef struct Fits {
  const VecFn *f;
  u32 bits;
  bool all;
} Fits;

static void see_fit(void *ctx, u32 id) {
  Fits *s = ctx;
  const LoopNode *n = vnode(s->f, id);
  if (n->op == LOOP_INDEX || n->op == LOOP_TABLE || n->type == LT_PTR) s->all &= n->type == LT_PTR;
  else if (n->op != LOOP_CONST && n->type == LT_I1 && !inside(s->f, id)) s->all = false;
  else s->all &= is_fit(s->f, id, s->bits);
}

static bool suffices(const VecFn *f, u32 bits) {
  Fits s = {f, bits, true};
  for (u32 pos = f->inside_first; pos <= f->inside_last && s.all; pos++) {
    const LoopNode *n = vnode(f, body_node(f, pos));
    s.all = goes_in(f, n, bits) && (n->op == LOOP_STORE || !n->type || is_fit(f, body_node(f, pos), bits));
    if (n->op == LOOP_STORE) see_fit(&s, n->b);
    else if (n->op != LOOP_LOAD) loop_each_operand(f->fn, n, see_fit, &s);
  }
  return s.all;
}

/* Bytes of the widest lanes that would be worth it: 4 for numbers of 64 bits and for divisions, which are computed in
 * doubles else, 2 for bytes in memory alone, 0: none. */
static u32 most_worth(const VecFn *f) {
  bool bytes = false, wide = false;
  for (u32 pos = f->inside_first; pos <= f->inside_last; pos++) {
    const LoopNode *n = vnode(f, body_node(f, pos));
    bool access = n->op == LOOP_LOAD || n->op == LOOP_STORE;
    if (access && loop_type_bytes((LoopType)n->mem) == 1) bytes = true;
    if (!access && (n->type == LT_I64 || n->type == LT_U64)) wide = true;
    if (n->type == LT_I32 && (n->op == LOOP_FLOORDIV || n->op == LOOP_MOD)) wide = true;
    if (n->type == LT_F64 || n->op == LOOP_MATH) return 0;
  }
  return wide ? 4 : bytes ? 2 : 0;
}

/* Bytes of the lanes that the body of the vector loop at hand goes in; 0: those of its types. */
u32 narrow_bytes(VecFn *f) {
  u32 most = most_worth(f);
  if (!most || f->fn->module->lanes_stay) return 0;
  for (u32 pos = f->inside_first; pos <= f->inside_last; pos++) {
    u32 id = body_node(f, pos);
    const LoopNode *n = vnode(f, id);
    for (u32 k = 0; k < 3; k++) f->narrowed[k == 0 ? n->a : k == 1 ? n->b : n->c] = (VNarrow){0};
    f->narrowed[id] = (VNarrow){0};
  }
  for (u32 pos = f->inside_first; pos <= f->inside_last; pos++) {
    u32 id = body_node(f, pos);
    const LoopNode *n = vnode(f, id);
    if (is_number((LoopType)n->type)) f->narrowed[id] = (VNarrow){.range = result_range(f, n), .known = true};
  }
  for (u32 pos = f->inside_last + 1; pos-- > f->inside_first;)
    need_operands(f, vnode(f, body_node(f, pos)), f->narrowed[body_node(f, pos)].need);
  for (u32 bytes = 1; bytes <= most; bytes *= 2)
    if (suffices(f, 8 * bytes)) return f->fn->module->narrowed++, bytes;
  return 0;
}

/* ---- lanes of one or two bytes ---------------------------------------------------------------- */

static u8 length(const VecFn *f) { return f->evex ? L512 : L256; }
static VecOp op_of(const VecFn *f, VecOp bytes, VecOp words) { return f->narrow == 1 ? bytes : words; }
static VReg narrow_two(VecFn *f, VecOp bytes, VecOp words, VReg a, VReg b) {
  return v_rvm(f, op_of(f, bytes, words), length(f), a, b);
}
static VReg logic(VecFn *f, VecOp op, VReg a, VReg b) { return v_rvm(f, op, length(f), a, b); }

static VReg in_all(VecFn *f, u64 v) {
  return new_const(f, f->narrow == 1 ? (v & 0xFF) * BYTES_OF_ONE : (v & 0xFFFF) * 0x10001, 4);
}
static VReg low_byte(VecFn *f, VReg v) { return f->narrow == 1 ? v : logic(f, V_ANDPS, v, in_all(f, 0xFF)); }

static VReg flags(VecFn *f, bool all) {
  if (f->evex) return v_mask_op(f, all ? K_KXNORQ : K_KXORQ, 0, 0);
  return in_all(f, all ? UINT64_MAX : 0);
}

/* What is broadcast for lanes of its type, for narrower ones. */
void narrow_spread(VecFn *f, u32 id) {
  LoopType t = (LoopType)vnode(f, id)->type;
  f->spread_4[id] = v_rm(f, V_BROADCASTD, length(f), f->spread[id]);
  if (f->narrow < 4 && is_number(t))
    f->spread_low[id] = v_rm(f, op_of(f, V_BROADCASTB, V_BROADCASTW), length(f), f->spread[id]);
}

VReg narrow_operand(VecFn *f, u32 id) {
  const LoopNode *n = vnode(f, id);
  if (!id) return 0;
  if (n->op == LOOP_CONST) return n->type == LT_I1 ? flags(f, n->imm) : in_all(f, n->imm);
  if (f->spread[id]) return f->spread_low[id];
  if (!inside(f, id)) refuse(f, "a value that was not broadcast");
  return f->value[id];
}

static VReg condition_op(VecFn *f, LoopOp op, VReg a, VReg b) {
  if (f->evex) {
    switch (op) {
      case LOOP_AND: return v_mask_op(f, K_KANDQ, a, b);
      case LOOP_OR: return v_mask_op(f, K_KORQ, a, b);
      case LOOP_XOR:
      case LOOP_NE: return v_mask_op(f, K_KXORQ, a, b);
      case LOOP_EQ: return v_mask_op(f, K_KXNORQ, a, b);
      case LOOP_NOT: return v_mask_op(f, K_KNOTQ, a, 0);
      default: refuse(f, "an operation on conditions"); return 0;
    }
  }
  switch (op) {
    case LOOP_AND: return logic(f, V_ANDPS, a, b);
    case LOOP_OR: return logic(f, V_ORPS, a, b);
    case LOOP_XOR:
    case LOOP_NE: return logic(f, V_XORPS, a, b);
    case LOOP_EQ: return logic(f, V_XORPS, logic(f, V_XORPS, a, b), flags(f, true));
    case LOOP_NOT: return logic(f, V_XORPS, a, flags(f, true));
    default: refuse(f, "an operation on conditions"); return 0;
  }
}

static VReg compare(VecFn *f, const LoopNode *n, VReg a, VReg b) {
  static const u8 codes[] = {INT_EQ, INT_NE, INT_LT, INT_LE, INT_GT, INT_GE};
  LoopOp op = (LoopOp)n->op;
  u32 bits = 8 * f->narrow;
  bool is_signed = fits_signed(range_of(f, n->a), bits) && fits_signed(range_of(f, n->b), bits);
  if (f->evex)
    return v_compare(f, is_signed ? op_of(f, V_KCMPB, V_KCMPW) : op_of(f, V_KCMPUB, V_KCMPUW), length(f), a, b,
                     codes[op - LOOP_EQ]);
  bool equal = op == LOOP_EQ || op == LOOP_NE, swap = op == LOOP_LT || op == LOOP_GE;
  if (!equal && !is_signed) {
    VReg half = in_all(f, (u64)1 << (bits - 1));
    a = logic(f, V_XORPS, a, half), b = logic(f, V_XORPS, b, half);
  }
  VReg r = equal ? narrow_two(f, V_CMPEQB, V_CMPEQW, a, b)
                 : narrow_two(f, V_CMPGTB, V_CMPGTW, swap ? b : a, swap ? a : b);
  if (op == LOOP_EQ || op == LOOP_GT || op == LOOP_LT) return r;
  return logic(f, V_XORPS, r, flags(f, true));
}

static VReg chosen(VecFn *f, VReg cond, VReg yes, VReg no) {
  VReg d = new_vec(f);
  VIns i = {.length = length(f), .dst = d, .a = no, .b = yes};
  i.op = (u16)(f->evex ? op_of(f, V_BLENDMB, V_BLENDMW) : V_BLENDVB);
  if (f->evex) i.mask = cond;
  else i.c = cond;
  put(f, i);
  return d;
}

static VReg narrow_shift(VecFn *f, const LoopNode *n, VReg a) {
  u32 by = shift_of(f, n), bits = 8 * f->narrow;
  VRange r = range_of(f, n->a);
  bool left = n->op == LOOP_SHL, is_signed = !left && !fits_unsigned(r, bits) && fits_signed(r, bits);
  VReg v = v_rmi(f, left ? V_PSLLW_I : is_signed ? V_PSRAW_I : V_PSRLW_I, length(f), a, (u8)by);
  if (f->narrow == 2) return v;
  return logic(f, V_ANDPS, v, in_all(f, left ? 0xFFu << by : 0xFFu >> by));
}

static VReg narrow_divided(VecFn *f, const LoopNode *n, VReg a) {
  u32 factor = 0, by_bits = 0;
  i64 by = constant_of(f, n->b);
  (void)narrow_divides(f, n, 16, &factor, &by_bits);
  VReg q = v_rvm(f, V_PMULHUW, length(f), a, in_all(f, factor));
  if (by_bits) q = v_rmi(f, V_PSRLW_I, length(f), q, (u8)by_bits);
  if (n->op == LOOP_FLOORDIV) return q;
  return v_rvm(f, V_PSUBW, length(f), a, v_rvm(f, V_PMULLW, length(f), q, in_all(f, (u64)by)));
}

static VReg narrow_extreme(VecFn *f, const LoopNode *n, VReg a, VReg b) {
  u32 bits = 8 * f->narrow;
  bool max = n->op == LOOP_MAX;
  if (fits_signed(range_of(f, n->a), bits) && fits_signed(range_of(f, n->b), bits))
    return max ? narrow_two(f, V_PMAXSB, V_PMAXSW, a, b) : narrow_two(f, V_PMINSB, V_PMINSW, a, b);
  return max ? narrow_two(f, V_PMAXUB, V_PMAXUW, a, b) : narrow_two(f, V_PMINUB, V_PMINUW, a, b);
}

static VReg number_op(VecFn *f, const LoopNode *n, VReg a, VReg b) {
  switch (n->op) {
    case LOOP_ADD: return narrow_two(f, V_PADDB, V_PADDW, a, b);
    case LOOP_SUB: return narrow_two(f, V_PSUBB, V_PSUBW, a, b);
    case LOOP_NEG: return narrow_two(f, V_PSUBB, V_PSUBW, in_all(f, 0), a);
    case LOOP_MUL: return v_rvm(f, V_PMULLW, length(f), a, b);
    case LOOP_AND: return logic(f, V_ANDPS, a, b);
    case LOOP_OR: return logic(f, V_ORPS, a, b);
    case LOOP_XOR: return logic(f, V_XORPS, a, b);
    case LOOP_NOT: return logic(f, V_XORPS, a, in_all(f, UINT64_MAX));
    case LOOP_MIN:
    case LOOP_MAX: return narrow_extreme(f, n, a, b);
    case LOOP_ABS: return v_rm(f, op_of(f, V_PABSB, V_PABSW), length(f), a);
    case LOOP_SHL:
    case LOOP_SHR: return narrow_shift(f, n, a);
    default: return narrow_divided(f, n, a);
  }
}

/* A statement that is no access and no check. */
VReg narrow_value(VecFn *f, u32 id) {
  const LoopNode *n = vnode(f, id);
  LoopType t = (LoopType)n->type, from = loop_type_of(f->fn, n->a);
  VReg a = narrow_operand(f, n->a), b = narrow_operand(f, n->b), v;
  if (n->op >= LOOP_EQ && n->op <= LOOP_GE)
    return from == LT_I1 ? condition_op(f, (LoopOp)n->op, a, b) : compare(f, n, a, b);
  if (n->op == LOOP_SELECT) {
    VReg c = narrow_operand(f, n->c);
    if (t != LT_I1) return chosen(f, a, b, c);
    if (f->evex) return v_mask_op(f, K_KORQ, v_mask_op(f, K_KANDQ, a, b), v_mask_op(f, K_KANDNQ, a, c));
    return logic(f, V_ORPS, logic(f, V_ANDPS, a, b), logic(f, V_ANDNPS, a, c));
  }
  if (t == LT_I1) return condition_op(f, (LoopOp)n->op, a, b);
  if (n->op == LOOP_CONVERT && from == LT_I1) return chosen(f, a, in_all(f, 1), in_all(f, 0));
  v = n->op == LOOP_CONVERT ? a : number_op(f, n, a, b);
  /* a byte in a wider lane of which more is used than its bits */
  bool grows = n->op == LOOP_CONVERT ? !within(range_of(f, n->a), of_type(t))
                                     : n->op == LOOP_ADD || n->op == LOOP_SUB || n->op == LOOP_MUL ||
                                           n->op == LOOP_NEG || n->op == LOOP_NOT || n->op == LOOP_SHL;
  return t == LT_U8 && grows && f->narrowed[id].need > 8 ? low_byte(f, v) : v;
}

VReg narrow_load(VecFn *f, LoopType mem, VecMem m) {
  VReg v = new_vec(f);
  u8 flags_ = f->tail ? VI_TAIL | VI_ZERO : 0;
  VecOp op = f->narrow == 2 ? V_PMOVZXBW : f->evex ? V_MOVDQU8 : V_MOVUPS;
  put(f, (VIns){.op = (u16)op, .length = length(f), .dst = v, .mem = m, .flags = flags_});
  if (mem != LT_I1) return v;
  if (f->evex) return v_compare(f, op_of(f, V_KTESTMB, V_KTESTMW), length(f), v, v, 0);
  return narrow_two(f, V_CMPGTB, V_CMPGTW, v, in_all(f, 0));
}

void narrow_store(VecFn *f, LoopType mem, VecMem m, VReg v) {
  if (mem == LT_I1) v = f->evex ? chosen(f, v, in_all(f, 1), in_all(f, 0)) : logic(f, V_ANDPS, v, in_all(f, 1));
  VIns i = {.op = V_MOVUPS_TO, .length = length(f), .a = v, .mem = m, .flags = f->tail ? VI_TAIL : 0};
  if (f->evex) i.op = (u16)op_of(f, V_MOVDQU8_TO, V_PMOVWB);
  else if (f->narrow == 2) {
    VReg low = low_byte(f, v), high = new_vec(f);
    put(f, (VIns){.op = V_EXTRACT128, .length = L256, .dst = high, .a = low, .imm = 1});
    i.a = v_rvm(f, V_PACKUSWB, L128, low, high);
    i.length = L128;
  }
  put(f, i);
}

/* RAX: a bit of each lane. */
void narrow_lanes(VecFn *f, VReg cond) {
  if (f->evex) put(f, (VIns){.op = M_FIRST + K_KTO, .a = cond, .x = RAX});
  else put(f, (VIns){.op = V_PMOVMSKB, .length = length(f), .a = cond, .x = RAX});
}
