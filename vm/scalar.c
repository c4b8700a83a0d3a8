/* scalar.c — arithmetic on unboxed numbers (see scalar.h). */
#include "vm/scalar.h"

#include "lang/halves.h"

_Static_assert(BC_sub == BC_add + 1 && BC_mul == BC_sub + 1, "add, sub, mul stand together");
_Static_assert(BC_ge - BC_eq == 5, "comparisons stand together");

static bool is_real(u32 d) { /* computed here; the others only store */
  return dtype_kind(d) != DK_COMPLEX;
}

bool num_fits(Value v, u32 dtype) {
  if (dtype_kind(dtype) != DK_INT || dtype_kind(v.dtype) > DK_INT) return true;
  if (num_is_huge(v)) return dtype == DT_u64;
  if (v.i < 0) return v.i >= dtype_int_min(dtype);
  return (u64)v.i <= dtype_int_max(dtype);
}

bool num_store_convert(Value v, u32 dtype, Value *out) {
  if (value_is_weak(v) && !num_fits(v, dtype)) return false;
  *out = num_convert_unchecked(v, dtype);
  out->flags = 0;
  return true;
}

static Value make_int(u32 dtype, u8 flags, u64 u) {
  Value v = {.kind = V_NUM, .dtype = (u8)dtype, .flags = flags};
  u32 unused = 64 - (dtype_kind(dtype) == DK_BOOL ? 1 : 8 * dtype_bytes(dtype));
  if (dtype_is_signed(dtype)) v.i = (i64)(u << unused) >> unused;
  else v.u = u << unused >> unused;
  return v;
}

static Value make_float(u32 dtype, u8 flags, f64 f) {
  Value v = {.kind = V_NUM, .dtype = (u8)dtype, .flags = flags};
  if (dtype_compute(dtype) == dtype) {
    if (dtype == DT_f32) v.s = (f32)f;
    else v.f = f;
  } else {
    v.s = half_round(dtype, (f32)f);
  }
  return v;
}

static Value make_bool(u8 flags, bool b) { return (Value){.kind = V_NUM, .dtype = DT_bool, .flags = flags, .i = b}; }

static u64 int_power(u64 base, u64 exponent) {
  u64 r = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) r *= base;
  return r;
}

static bool int_arithmetic(u32 bc, u32 dtype, u8 flags, Value a, Value b, Value *out) {
  bool is_signed = dtype_is_signed(dtype);
  u64 r;
  switch (bc) {
    case BC_add: r = a.u + b.u; break;
    case BC_sub: r = a.u - b.u; break;
    case BC_mul: r = a.u * b.u; break;
    case BC_floordiv:
      if (b.u == 0) return false;
      if (!is_signed) r = a.u / b.u;
      else if (b.i == -1) r = 0 - a.u; /* MIN // -1 wraps */
      else r = (u64)(a.i / b.i - (a.i % b.i != 0 && (a.i ^ b.i) < 0));
      break;
    case BC_mod:
      if (b.u == 0) return false;
      if (!is_signed) r = a.u % b.u;
      else if (b.i == -1) r = 0;
      else r = (u64)(a.i % b.i + (a.i % b.i != 0 && (a.i ^ b.i) < 0 ? b.i : 0));
      break;
    case BC_pow:
      if (is_signed && b.i < 0) return false;
      r = int_power(a.u, b.u);
      break;
    default: return false;
  }
  *out = make_int(dtype, flags, r);
  return true;
}

static bool bit_arithmetic(u32 bc, u32 dtype, u8 flags, Value a, Value b, Value *out) {
  u32 width = dtype_bytes(dtype) * 8;
  bool beyond = b.u >= width; /* negative amounts are huge */
  u64 r;
  switch (bc) {
    case BC_band: r = a.u & b.u; break;
    case BC_bor: r = a.u | b.u; break;
    case BC_bxor: r = a.u ^ b.u; break;
    case BC_shl: r = beyond ? 0 : a.u << b.u; break;
    default:
      if (dtype_is_signed(dtype)) r = (u64)(a.i >> (beyond ? 63 : b.u));
      else r = beyond ? 0 : a.u >> b.u;
      break;
  }
  *out = make_int(dtype, flags, r);
  return true;
}

static bool float_arithmetic(u32 bc, u32 dtype, u8 flags, Value a, Value b, Value *out) {
  if (dtype_compute(dtype) == DT_f32) {
    f32 x = a.s, y = b.s, r;
    switch (bc) {
      case BC_add: r = x + y; break;
      case BC_sub: r = x - y; break;
      case BC_mul: r = x * y; break;
      case BC_div: r = x / y; break;
      default: return false;
    }
    *out = make_float(dtype, flags, r);
    return true;
  }
  f64 x = a.f, y = b.f, r;
  switch (bc) {
    case BC_add: r = x + y; break;
    case BC_sub: r = x - y; break;
    case BC_mul: r = x * y; break;
    case BC_div: r = x / y; break;
    default: return false;
  }
  *out = make_float(dtype, flags, r);
  return true;
}

#define COMPARE(x, y)                     \
  switch (bc) {                           \
    case BC_eq: return (x) == (y);        \
    case BC_ne: return (x) != (y);        \
    case BC_lt: return (x) < (y);         \
    case BC_le: return (x) <= (y);        \
    case BC_gt: return (x) > (y);         \
    default: return (x) >= (y);           \
  }
static bool compare_numbers(u32 bc, u32 dtype, Value a, Value b) {
  if (dtype_compute(dtype) == DT_f32) COMPARE(a.s, b.s)
  if (dtype == DT_f64) COMPARE(a.f, b.f)
  if (!dtype_is_signed(dtype)) COMPARE(a.u, b.u)
  COMPARE(a.i, b.i)
}

bool num_binary(u32 bc, Value a, Value b, Value *out) {
  if (a.dtype == b.dtype && bc >= BC_add && bc <= BC_mul) { /* the frequent ones at once */
    u8 both = a.flags & b.flags;
    if (a.dtype == DT_f64) return float_arithmetic(bc, DT_f64, both, a, b, out);
    if (a.dtype == DT_i64) return int_arithmetic(bc, DT_i64, both, a, b, out);
  }
  if (!is_real(a.dtype) || !is_real(b.dtype)) return false;
  bool weak;
  u32 d = dtype_promote_weak(a.dtype, value_is_weak(a), b.dtype, value_is_weak(b), &weak);
  u8 flags = weak ? VF_WEAK : 0;
  if (bc >= BC_eq && bc <= BC_ge) {
    const bool left = value_is_weak(a) && !num_fits(a, d);
    if (left || (value_is_weak(b) && !num_fits(b, d))) { /* it lies beyond all numbers of the other's dtype */
      *out = make_bool(flags, compare_numbers(bc, DT_i64, value_i64(left ? a.i : 0), value_i64(left ? 0 : b.i)));
      return true;
    }
    *out = make_bool(flags, compare_numbers(bc, d, num_convert_unchecked(a, d), num_convert_unchecked(b, d)));
    return true;
  }
  bool bits = bc == BC_band || bc == BC_bor || bc == BC_bxor, shift = bc == BC_shl || bc == BC_shr;
  if (d == DT_bool && !bits) d = DT_i64;
  if (bc == BC_div) d = dtype_float_of(d);
  if ((value_is_weak(a) && !num_fits(a, d)) || (value_is_weak(b) && !num_fits(b, d))) return false;
  Value x = num_convert_unchecked(a, d), y = num_convert_unchecked(b, d);
  if (dtype_kind(d) == DK_FLOAT) return !bits && !shift && float_arithmetic(bc, d, flags, x, y, out);
  if (bits || shift) return bit_arithmetic(bc, d, flags, x, y, out);
  return int_arithmetic(bc, d, flags, x, y, out);
}

bool num_unary(u32 bc, Value a, Value *out) {
  if (!is_real(a.dtype)) return false;
  u8 flags = a.flags & VF_WEAK;
  u32 d = a.dtype;
  if (bc == BC_bnot) {
    if (d == DT_bool) *out = make_bool(flags, !a.i);
    else if (dtype_kind(d) == DK_INT) *out = make_int(d, flags, ~a.u);
    else return false;
    return true;
  }
  if (d == DT_bool) d = DT_i64;
  a = num_convert_unchecked(a, d);
  if (bc == BC_pos) *out = a;
  else if (dtype_kind(d) == DK_FLOAT) *out = make_float(d, flags, -num_as_f64(a));
  else *out = make_int(d, flags, 0 - a.u);
  return true;
}
