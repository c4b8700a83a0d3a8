/* rules_range.c — rules of integer results: from what is known of operands to what is known of the result
 * (ranges.h). A result that leaves its dtype wraps, so any number of the dtype may come of it. */
#include "lang/ranges.h"

typedef __int128 wide;

IntRange int_range_of(u32 dtype) {
  switch (dtype) {
    case DT_bool: return (IntRange){0, 1};
    case DT_u8: return (IntRange){0, UINT8_MAX};
    case DT_i32: return (IntRange){INT32_MIN, INT32_MAX};
    case DT_u32: return (IntRange){0, UINT32_MAX};
    default: return (IntRange){INT64_MIN, INT64_MAX};
  }
}

static IntRange within(wide lo, wide hi, u32 dtype) {
  IntRange all = int_range_of(dtype);
  return lo < all.lo || hi > all.hi ? all : (IntRange){(i64)lo, (i64)hi};
}

/* From the least to the greatest of n numbers. */
static IntRange hull(const wide *xs, u32 n, u32 dtype) {
  wide lo = xs[0], hi = xs[0];
  for (u32 i = 1; i < n; i++) {
    lo = xs[i] < lo ? xs[i] : lo;
    hi = xs[i] > hi ? xs[i] : hi;
  }
  return within(lo, hi, dtype);
}

static IntRange range_product(IntRange a, IntRange b, u32 dtype) {
  const wide corners[] = {(wide)a.lo * b.lo, (wide)a.lo * b.hi, (wide)a.hi * b.lo, (wide)a.hi * b.hi};
  return hull(corners, COUNT_OF(corners), dtype);
}

/* x // y and x % y, x and y of one sign. */
static IntRange range_quotient(IntRange a, IntRange b, u32 dtype) {
  return a.lo >= 0 && b.lo > 0 ? within(0, a.hi, dtype) : int_range_of(dtype);
}

static IntRange range_rest(IntRange b, u32 dtype) {
  return b.lo > 0 ? within(0, b.hi - 1, dtype) : int_range_of(dtype);
}

static IntRange range_magnitude(IntRange a, u32 dtype) {
  const wide lo = a.lo, hi = a.hi;
  return within(lo > 0 ? lo : hi < 0 ? -hi : 0, -lo > hi ? -lo : hi, dtype);
}

static IntRange range_lesser(IntRange a, IntRange b) {
  return (IntRange){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
}

static IntRange range_greater(IntRange a, IntRange b) {
  return (IntRange){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

/* One bit pattern is below the other where neither has a sign. */
static IntRange range_masked(IntRange a, IntRange b, u32 dtype) {
  if (a.lo >= 0 && b.lo >= 0) return within(0, a.hi < b.hi ? a.hi : b.hi, dtype);
  return a.lo >= 0 ? within(0, a.hi, dtype) : b.lo >= 0 ? within(0, b.hi, dtype) : int_range_of(dtype);
}

static IntRange range_either(IntRange a, IntRange b) {
  return (IntRange){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

IntRange rule_range(u32 op, u32 dtype, const IntRange *xs, u32 n) {
  const IntRange all = int_range_of(dtype), a = n > 0 ? xs[0] : all, b = n > 1 ? xs[1] : all;
  if (dtype == DT_u64) return all; /* a range does not say numbers above those of i64 */
  if (op_info(op)->dtype == DTYPE_RULE_index) return (IntRange){0, DIM_TOO_BIG}; /* places and counts are sizes */
  switch (op) {
    case OP_astype: return within(a.lo, a.hi, dtype);
    case OP_positive:
    case OP_min:
    case OP_max: return a;
    case OP_sign: return within(-1, 1, dtype);
    case OP_negative: return within(-(wide)a.hi, -(wide)a.lo, dtype);
    case OP_add: return within((wide)a.lo + b.lo, (wide)a.hi + b.hi, dtype);
    case OP_subtract: return within((wide)a.lo - b.hi, (wide)a.hi - b.lo, dtype);
    case OP_multiply: return range_product(a, b, dtype);
    case OP_floor_divide: return range_quotient(a, b, dtype);
    case OP_remainder: return range_rest(b, dtype);
    case OP_minimum: return range_lesser(a, b);
    case OP_maximum: return range_greater(a, b);
    case OP_abs: return range_magnitude(a, dtype);
    case OP_bitwise_and: return range_masked(a, b, dtype);
    case OP_where: return n == 3 ? range_either(b, xs[2]) : all;
    default: return op_info(op)->lower == LOWER_view ? a : all;
  }
}
