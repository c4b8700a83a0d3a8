/* loops_eval.c — what each pure operation of the loop IR means, on 64-bit words (ir.md section 10).
 *
 * Compiled with -ffp-contract=off and round-to-nearest. The interpreter and constant folding use it; the emitters are
 * tested against it. */
#include "jit/loops/loops.h"
#include "lang/halves.h"

#include <math.h>
#include <string.h>

static f64 f64_of(u64 bits) {
  f64 v;
  memcpy(&v, &bits, 8);
  return v;
}

static u64 of_f64(f64 v) {
  u64 bits;
  memcpy(&bits, &v, 8);
  return bits;
}

static f32 f32_of(u64 bits) {
  u32 low = (u32)bits;
  f32 v;
  memcpy(&v, &low, 4);
  return v;
}

static u64 of_f32(f32 v) {
  u32 bits;
  memcpy(&bits, &v, 4);
  return bits;
}

u64 loop_normal(LoopType type, u64 bits) {
  switch (type) {
    case LT_I1: return bits & 1;
    case LT_U8: return (u8)bits;
    case LT_I32: return (u64)(i64)(i32)(u32)bits;
    case LT_U32: return (u32)bits;
    case LT_F32: return isnan(f32_of(bits)) ? 0x7FC00000u : (u32)bits;
    case LT_F64: return isnan(f64_of(bits)) ? (u64)0x7FF8 << 48 : bits;
    default: return bits;
  }
}

/* ---- memory -------------------------------------------------------------------------------- */

u64 loop_load_memory(LoopType mem, const void *at) {
  switch (mem) {
    case LT_I1:
    case LT_U8: return *(const u8 *)at;
    case LT_I32: {
      i32 v;
      memcpy(&v, at, 4);
      return (u64)(i64)v;
    }
    case LT_U32:
    case LT_F32: {
      u32 v;
      memcpy(&v, at, 4);
      return v;
    }
    case LT_F16:
    case LT_BF16: {
      u16 v;
      memcpy(&v, at, 2);
      return of_f32(mem == LT_F16 ? f16_to_f32(v) : bf16_to_f32(v));
    }
    default: {
      u64 v;
      memcpy(&v, at, 8);
      return v;
    }
  }
}

void loop_store_memory(LoopType mem, void *at, u64 word) {
  if (mem == LT_F16 || mem == LT_BF16) {
    u16 v = mem == LT_F16 ? f32_to_f16(f32_of(word)) : f32_to_bf16(f32_of(word));
    memcpy(at, &v, 2);
    return;
  }
  switch (loop_type_bytes(mem)) { /* little-endian: the low bytes */
    case 1: memcpy(at, &word, 1); return;
    case 4: memcpy(at, &word, 4); return;
    default: memcpy(at, &word, 8); return;
  }
}

/* ---- integers ------------------------------------------------------------------------------ */

static u32 width_of(LoopType t) { return loop_type_bytes(t) * 8; }

static u64 int_divide(LoopOp op, LoopType type, u64 a, u64 b) {
  bool quotient = op == LOOP_DIV || op == LOOP_FLOORDIV;
  if (b == 0) return quotient ? 0 : a;
  if (!loop_is_signed(type)) return quotient ? a / b : a % b;
  if (b == UINT64_MAX) return quotient ? 0 - a : 0; /* x / -1: MIN wraps */
  i64 x = (i64)a, y = (i64)b, q = x / y, r = x % y;
  if ((op == LOOP_FLOORDIV || op == LOOP_MOD) && r != 0 && (r < 0) != (y < 0)) q--, r += y;
  return (u64)(quotient ? q : r);
}

static u64 int_mulhi(LoopType type, u64 a, u64 b) {
  u32 width = width_of(type);
  if (loop_is_signed(type)) {
    __int128 p = (__int128)(i64)a * (i64)b;
    return (u64)(p >> width);
  }
  unsigned __int128 p = (unsigned __int128)a * b;
  return (u64)(p >> width);
}

static u64 int_shift(LoopOp op, LoopType type, u64 a, u64 b) {
  bool out = loop_is_signed(type) ? (i64)b < 0 || (i64)b >= (i64)width_of(type) : b >= width_of(type);
  if (op == LOOP_SHL) return out ? 0 : a << b;
  if (loop_is_signed(type)) return (u64)((i64)a >> (out ? 63 : b));
  return out ? 0 : a >> b;
}

static bool int_less(LoopType type, u64 a, u64 b) { return loop_is_signed(type) ? (i64)a < (i64)b : a < b; }

static u64 int_binary(LoopOp op, LoopType type, u64 a, u64 b) {
  switch (op) {
    case LOOP_ADD: return a + b;
    case LOOP_SUB: return a - b;
    case LOOP_MUL: return a * b;
    case LOOP_MULHI: return int_mulhi(type, a, b);
    case LOOP_MIN: return int_less(type, b, a) ? b : a;
    case LOOP_MAX: return int_less(type, a, b) ? b : a;
    case LOOP_AND: return a & b;
    case LOOP_OR: return a | b;
    case LOOP_XOR: return a ^ b;
    case LOOP_SHL:
    case LOOP_SHR: return int_shift(op, type, a, b);
    case LOOP_NEG: return 0 - a;
    case LOOP_ABS: return loop_is_signed(type) && (i64)a < 0 ? 0 - a : a;
    case LOOP_NOT: return ~a;
    default: return int_divide(op, type, a, b);
  }
}

/* ---- floats -------------------------------------------------------------------------------- */

static f64 f64_min(f64 a, f64 b) {
  if (isnan(a) || isnan(b)) return NAN;
  if (a == b) return signbit(a) ? a : b;
  return a < b ? a : b;
}

static f64 f64_max(f64 a, f64 b) {
  if (isnan(a) || isnan(b)) return NAN;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}

static f64 f64_op(LoopOp op, f64 a, f64 b, f64 c) {
  switch (op) {
    case LOOP_ADD: return a + b;
    case LOOP_SUB: return a - b;
    case LOOP_MUL: return a * b;
    case LOOP_DIV: return a / b;
    case LOOP_MIN: return f64_min(a, b);
    case LOOP_MAX: return f64_max(a, b);
    case LOOP_COPYSIGN: return copysign(a, b);
    case LOOP_FMA: return fma(a, b, c);
    case LOOP_NEG: return -a;
    case LOOP_ABS: return fabs(a);
    case LOOP_SQRT: return sqrt(a);
    case LOOP_FLOOR: return floor(a);
    case LOOP_CEIL: return ceil(a);
    case LOOP_TRUNC: return trunc(a);
    default: return rint(a);
  }
}

static f32 f32_op(LoopOp op, f32 a, f32 b, f32 c) {
  switch (op) {
    case LOOP_ADD: return a + b;
    case LOOP_SUB: return a - b;
    case LOOP_MUL: return a * b;
    case LOOP_DIV: return a / b;
    case LOOP_FMA: return fmaf(a, b, c);
    case LOOP_SQRT: return sqrtf(a);
    case LOOP_ROUND_F16: return f16_to_f32(f32_to_f16(a));
    case LOOP_ROUND_BF16: return bf16_to_f32(f32_to_bf16(a));
    default: return (f32)f64_op(op, (f64)a, (f64)b, 0); /* exact in f64, and exact back */
  }
}

/* ---- conversions --------------------------------------------------------------------------- */

/* Bounds that a float truncated must lie strictly between to fit. */
static void fit_bounds(LoopType type, f64 *above, f64 *below) {
  switch (type) {
    case LT_U8: *above = -1, *below = 256; return;
    case LT_I32: *above = -2147483649.0, *below = 2147483648.0; return;
    case LT_U32: *above = -1, *below = 4294967296.0; return;
    case LT_I64: *above = -0x1.0000000000001p63, *below = 0x1p63; return; /* the next f64 below -2^63 */
    default: *above = -1, *below = 0x1p64; return;
  }
}

static u64 float_to_int(LoopType type, f64 v) {
  f64 above, below;
  fit_bounds(type, &above, &below);
  if (isnan(v)) return 0;
  if (v <= above) return type == LT_I32 ? (u64)(i64)INT32_MIN : type == LT_I64 ? (u64)INT64_MIN : 0;
  if (v >= below) {
    switch (type) {
      case LT_U8: return 255;
      case LT_I32: return INT32_MAX;
      case LT_U32: return UINT32_MAX;
      case LT_I64: return INT64_MAX;
      default: return UINT64_MAX;
    }
  }
  return loop_is_signed(type) ? (u64)(i64)v : (u64)v;
}

static u64 convert(LoopType type, LoopType from, u64 a) {
  if (loop_is_float(from)) {
    if (type == LT_F64) return of_f64(from == LT_F64 ? f64_of(a) : (f64)f32_of(a));
    if (type == LT_F32) return of_f32(from == LT_F32 ? f32_of(a) : (f32)f64_of(a));
    return float_to_int(type, from == LT_F64 ? f64_of(a) : (f64)f32_of(a));
  }
  if (type == LT_F64) return of_f64(loop_is_signed(from) ? (f64)(i64)a : (f64)a);
  if (type == LT_F32) return of_f32(loop_is_signed(from) ? (f32)(i64)a : (f32)a);
  return loop_normal(type, a);
}

static bool compare(LoopOp op, LoopType from, u64 a, u64 b) {
  if (loop_is_float(from)) {
    f64 x = from == LT_F64 ? f64_of(a) : (f64)f32_of(a), y = from == LT_F64 ? f64_of(b) : (f64)f32_of(b);
    switch (op) {
      case LOOP_EQ: return x == y;
      case LOOP_NE: return x != y;
      case LOOP_LT: return x < y;
      case LOOP_LE: return x <= y;
      case LOOP_GT: return x > y;
      default: return x >= y;
    }
  }
  switch (op) {
    case LOOP_EQ: return a == b;
    case LOOP_NE: return a != b;
    case LOOP_LT: return int_less(from, a, b);
    case LOOP_LE: return !int_less(from, b, a);
    case LOOP_GT: return int_less(from, b, a);
    default: return !int_less(from, a, b);
  }
}

bool loop_eval(LoopOp op, LoopType type, LoopType from, u64 a, u64 b, u64 c, u64 *out) {
  switch (loop_op_form(op)) {
    case LOOP_FORM_UNARY:
    case LOOP_FORM_BINARY:
    case LOOP_FORM_TERNARY:
      if (type == LT_F64) *out = of_f64(f64_op(op, f64_of(a), f64_of(b), f64_of(c)));
      else if (type == LT_F32) *out = of_f32(f32_op(op, f32_of(a), f32_of(b), f32_of(c)));
      else *out = loop_normal(type, int_binary(op, type, a, b));
      return true;
    case LOOP_FORM_COMPARE: *out = compare(op, from, a, b); return true;
    case LOOP_FORM_SELECT: *out = a ? b : c; return true;
    case LOOP_FORM_CONVERT:
      *out = op == LOOP_CONVERT ? convert(type, from, a) : loop_is_int(type) ? loop_normal(type, a)
                                : from == LT_I32 ? (u32)a : a;
      return true;
    default: return false;
  }
}

bool loop_check_holds(LoopCheck kind, LoopType type, u64 a, u64 b) {
  static const u8 fit_type[LOOP_CHECK_COUNT] = {[LOOP_CHECK_FIT_U8] = LT_U8, [LOOP_CHECK_FIT_I32] = LT_I32,
    [LOOP_CHECK_FIT_U32] = LT_U32, [LOOP_CHECK_FIT_I64] = LT_I64, [LOOP_CHECK_FIT_U64] = LT_U64};
  switch (kind) {
    case LOOP_CHECK_INDEX: return a < b;
    case LOOP_CHECK_ZERO_DIV:
    case LOOP_CHECK_ASSERT: return a != 0;
    default: {
      f64 above, below, v = type == LT_F64 ? f64_of(a) : (f64)f32_of(a);
      fit_bounds((LoopType)fit_type[kind], &above, &below);
      return v > above && v < below;
    }
  }
}

/* ---- reductions ---------------------------------------------------------------------------- */

LoopOp loop_reduce_op(LoopReduce op) {
  static const u8 ops[LOOP_REDUCE_COUNT] = {
    [LOOP_REDUCE_ADD] = LOOP_ADD, [LOOP_REDUCE_MUL] = LOOP_MUL, [LOOP_REDUCE_MIN] = LOOP_MIN,
    [LOOP_REDUCE_MAX] = LOOP_MAX, [LOOP_REDUCE_AND] = LOOP_AND, [LOOP_REDUCE_OR] = LOOP_OR,
    [LOOP_REDUCE_XOR] = LOOP_XOR};
  return (LoopOp)ops[op];
}

static u64 int_limit(LoopType type, bool greatest) {
  u32 width = width_of(type);
  if (!loop_is_signed(type)) return greatest ? UINT64_MAX >> (64 - width) : 0;
  u64 max = UINT64_MAX >> (65 - width);
  return greatest ? max : ~max;
}

u64 loop_reduce_identity(LoopReduce op, LoopType type) {
  bool is64 = type == LT_F64;
  switch (op) {
    case LOOP_REDUCE_ADD: return is64 ? of_f64(-0.0) : type == LT_F32 ? of_f32(-0.0f) : 0;
    case LOOP_REDUCE_MUL: return is64 ? of_f64(1) : type == LT_F32 ? of_f32(1) : 1;
    case LOOP_REDUCE_MIN: return is64 ? of_f64(INFINITY) : type == LT_F32 ? of_f32(INFINITY) : int_limit(type, true);
    case LOOP_REDUCE_MAX: return is64 ? of_f64(-INFINITY) : type == LT_F32 ? of_f32(-INFINITY) : int_limit(type, false);
    case LOOP_REDUCE_AND: return loop_normal(type, UINT64_MAX);
    default: return 0;
  }
}

u64 loop_reduce_empty(LoopReduce op, LoopType type) {
  return op == LOOP_REDUCE_ADD ? 0 : loop_reduce_identity(op, type);
}
