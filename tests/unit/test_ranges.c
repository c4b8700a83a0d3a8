/* test_ranges.c — what is said of integer results (lang/ranges.h) holds of what the kernels give: every operation of
 * elements, every integer dtype, small and extreme ranges. */
#include "tests/unit/kernels_support.h"

#include "lang/ranges.h"

static const u8 dtypes[] = {DT_bool, DT_u8, DT_i32, DT_u32, DT_i64};

/* A number of the dtype: small, at an end, or any. */
static i64 any_number(u32 dtype, u64 *seed) {
  const IntRange all = int_range_of(dtype);
  const u64 z = next_random(seed);
  const i64 small = (i64)(z >> 8 & 15) - 6;
  switch (z & 7) {
    case 0: return all.lo;
    case 1: return all.hi;
    case 2: return all.lo + (i64)(z >> 20 & 1);
    case 3: return (i64)((u64)all.lo + (z >> 3) % ((u64)all.hi - (u64)all.lo));
    default: return small < all.lo ? all.lo : small > all.hi ? all.hi : small;
  }
}

static IntRange any_range(u32 dtype, u64 *seed) {
  const i64 a = any_number(dtype, seed), b = any_number(dtype, seed);
  return (IntRange){a < b ? a : b, a < b ? b : a};
}

static i64 point_of(IntRange r, u64 *seed) {
  const u64 z = next_random(seed), width = (u64)r.hi - (u64)r.lo;
  switch (z & 3) {
    case 0: return r.lo;
    case 1: return r.hi;
    default: return (i64)((u64)r.lo + (width == UINT64_MAX ? z : (z >> 2) % (width + 1)));
  }
}

static Value number_of(u32 dtype, i64 i) { return (Value){.kind = V_NUM, .dtype = (u8)dtype, .i = i}; }

/* Takes it operands alone, up to three? */
static bool of_numbers(const OpInfo *info) {
  if (info->family != FAM_elementwise || info->nparams > 3) return false;
  for (u32 p = 0; p < info->nparams; p++)
    if (!param_is_operand(&info->params[p]) || param_joins(&info->params[p])) return false;
  return true;
}

/* How many results were looked at. */
static u32 look(Vm *vm, u32 op, u32 dtype, u64 *seed) {
  enum { RANGES = 24, POINTS = 8 };
  u32 seen = 0;
  const u32 n = op_info(op)->nparams;
  for (u32 k = 0; k < RANGES; k++) {
    IntRange xs[3];
    u32 own[3];
    for (u32 i = 0; i < n; i++) {
      own[i] = op_info(op)->params[i].kind == PARAM_condition ? DT_bool : dtype;
      xs[i] = any_range(own[i], seed);
    }
    for (u32 m = 0; m < POINTS; m++) {
      Value v[3] = {value_hole(), value_hole(), value_hole()}, out = value_nil();
      for (u32 i = 0; i < n; i++) v[i] = number_of(own[i], point_of(xs[i], seed));
      if (run(vm, op, v[0], v[1], v[2], &out) != WEFT_OK) {
        vm_error_clear(vm);
        continue;
      }
      if (out.kind != V_NUM || dtype_kind(out.dtype) > DK_INT || out.dtype == DT_u64) {
        value_drop(vm, out); /* c128 is an array */
        continue;
      }
      const IntRange r = rule_range(op, out.dtype, xs, n);
      if (out.i < r.lo || out.i > r.hi)
        fail_msg("%s of %s [%lld, %lld], [%lld, %lld]: %lld is not in [%lld, %lld]", op_name(op), dtype_name(dtype),
                 (long long)xs[0].lo, (long long)xs[0].hi, (long long)(n > 1 ? xs[1].lo : 0),
                 (long long)(n > 1 ? xs[1].hi : 0), (long long)out.i, (long long)r.lo, (long long)r.hi);
      seen++;
    }
  }
  return seen;
}

static void results_lie_in_their_ranges(void **state) {
  (void)state;
  Vm *vm = test_vm();
  u64 seed = 7;
  u32 operations = 0;
  for (u32 op = 1; op < OP_COUNT; op++) {
    if (!of_numbers(op_info(op))) continue;
    u32 seen = 0;
    for (u32 d = 0; d < COUNT_OF(dtypes); d++) seen += look(vm, op, dtypes[d], &seed);
    operations += seen > 0;
  }
  assert_true(operations > 25);
  test_vm_end(vm);
}

static void is_range(u32 op, u32 dtype, IntRange a, IntRange b, i64 lo, i64 hi) {
  const IntRange xs[] = {a, b}, r = rule_range(op, dtype, xs, op_info(op)->nparams < 2 ? 1 : 2);
  assert_int_equal(r.lo, lo);
  assert_int_equal(r.hi, hi);
}

static void ranges_are_narrow(void **state) {
  (void)state;
  const IntRange none = {0, 0}, byte = {0, 255}, some = {-3, 5};
  is_range(OP_add, DT_i64, byte, some, -3, 260);
  is_range(OP_add, DT_u8, byte, byte, 0, 255); /* it wraps */
  is_range(OP_subtract, DT_i64, byte, some, -5, 258);
  is_range(OP_multiply, DT_i64, byte, some, -765, 1275);
  is_range(OP_multiply, DT_i64, (IntRange){INT64_MIN, 0}, some, INT64_MIN, INT64_MAX);
  is_range(OP_floor_divide, DT_i64, byte, (IntRange){2, 9}, 0, 255);
  is_range(OP_remainder, DT_i64, some, (IntRange){2, 9}, 0, 8);
  is_range(OP_minimum, DT_i64, byte, some, -3, 5);
  is_range(OP_maximum, DT_i64, byte, some, 0, 255);
  is_range(OP_abs, DT_i64, some, none, 0, 5);
  is_range(OP_negative, DT_i64, some, none, -5, 3);
  is_range(OP_bitwise_and, DT_i64, some, (IntRange){0, 15}, 0, 15);
  is_range(OP_astype, DT_i64, byte, none, 0, 255);
  is_range(OP_astype, DT_u8, some, none, 0, 255);
  is_range(OP_argmax, DT_i64, some, none, 0, DIM_TOO_BIG);
  is_range(OP_flip, DT_i64, some, none, -3, 5);
  is_range(OP_maximum, DT_u64, byte, some, INT64_MIN, INT64_MAX); /* what is above i64 is not said */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(results_lie_in_their_ranges),
                                     cmocka_unit_test(ranges_are_narrow)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
