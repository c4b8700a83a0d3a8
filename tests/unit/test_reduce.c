/* test_reduce.c — the order of reductions and scans, against a naive reading of its definition: bit for bit,
 * whatever the layout and the build of the kernels. */
#include "tests/unit/kernels_support.h"

/* ---- the definition, said in the plainest way ---------------------------------------------------- */

typedef struct Rule {
  bool product, single; /* of f32: every step is rounded to it */
} Rule;

static f64 combine(Rule r, f64 a, f64 b) {
  if (r.single) return r.product ? (f64)((f32)a * (f32)b) : (f64)((f32)a + (f32)b);
  return r.product ? a * b : a + b;
}

/* The last axis is reduced: lanes, blocks of 64 rows of lanes, and the blocks' results by the same rule. */
static f64 by_lanes(Rule r, const f64 *x, i64 n) {
  i64 W = r.single ? 64 : 32, block = 64 * W;
  if (n == 0) return r.product ? 1 : 0;
  if (n <= block) {
    f64 lane[64];
    bool present[64] = {false};
    for (i64 e = 0; e < n; e++) {
      lane[e % W] = present[e % W] ? combine(r, lane[e % W], x[e]) : x[e];
      present[e % W] = true;
    }
    for (i64 h = W / 2; h; h /= 2)
      for (i64 l = 0; l < h; l++)
        if (present[l + h]) lane[l] = combine(r, lane[l], lane[l + h]); /* absent lanes are skipped */
    return lane[0];
  }
  i64 blocks = (n + block - 1) / block;
  f64 *results = malloc((size_t)blocks * sizeof *results);
  assert_non_null(results);
  for (i64 b = 0; b < blocks; b++)
    results[b] = by_lanes(r, x + b * block, n - b * block < block ? n - b * block : block);
  f64 result = by_lanes(r, results, blocks);
  free(results);
  return result;
}

/* The last axis is kept: in order, in blocks of 64, and the blocks' results likewise. */
static f64 by_blocks(Rule r, const f64 *x, i64 n) {
  if (n == 0) return r.product ? 1 : 0;
  i64 blocks = (n + 63) / 64;
  f64 *results = malloc((size_t)blocks * sizeof *results);
  assert_non_null(results);
  for (i64 b = 0; b < blocks; b++) {
    results[b] = x[b * 64];
    for (i64 e = b * 64 + 1; e < n && e < (b + 1) * 64; e++) results[b] = combine(r, results[b], x[e]);
  }
  f64 result = blocks == 1 ? results[0] : by_blocks(r, results, blocks);
  free(results);
  return result;
}

/* Segments of 16 in order; their totals scanned by the same rule; total-before op local. */
static void by_segments(Rule r, const f64 *x, i64 n, f64 *out) {
  i64 segments = (n + 15) / 16;
  for (i64 e = 0; e < n; e++) out[e] = e % 16 ? combine(r, out[e - 1], x[e]) : x[e];
  if (segments <= 1) return;
  f64 *totals = malloc((size_t)segments * 2 * sizeof *totals), *scanned = totals + segments;
  assert_non_null(totals);
  for (i64 s = 0; s < segments; s++) totals[s] = out[s * 16 + 15 < n ? s * 16 + 15 : n - 1];
  by_segments(r, totals, segments, scanned);
  for (i64 e = 16; e < n; e++) out[e] = combine(r, scanned[e / 16 - 1], out[e]);
  free(totals);
}

/* ---- cases --------------------------------------------------------------------------------------- */

static Value rough(u32 dtype, i64 k, u64 seed) { /* sums of these depend on the order; products stay finite */
  u64 state = seed * 7919 + (u64)k, r = next_random(&state);
  f64 v = (f64)(i64)(r >> 11) * 0x1p-53 * (r & 1 ? 1 : -1) * (r & 6 ? 1 : 1000);
  if (r % 97 == 0) v = -0.0;
  return num_convert_unchecked(value_f64(v), dtype);
}
static Value near_one(u32 dtype, i64 k, u64 seed) {
  u64 state = seed * 7919 + (u64)k;
  return num_convert_unchecked(value_f64(0.75 + (f64)(next_random(&state) >> 11) * 0x1p-54), dtype);
}

/* Reduces x over the axes in mask with the naive rules and compares with the kernel. */
static void check(Vm *vm, u32 op, Value x, u32 mask) {
  Array *a = x.array;
  u32 rank = array_rank(a), dtype = array_dtype(a);
  const i64 *dims = array_dims(a);
  Rule r = {op == OP_prod, dtype == DT_f32};
  i64 count = 1, results = 1;
  Value axes, out;
  assert_true(list_new(vm, rank, &axes));
  for (u32 d = 0; d < rank; d++) {
    if (mask >> d & 1) {
      count *= dims[d];
      assert_true(list_push(vm, &axes, value_weak_i64(d)));
    } else {
      results *= dims[d];
    }
  }
  out = run_ok(vm, op, x, axes, value_hole());
  f64 *sequence = malloc((size_t)(count + 1) * sizeof *sequence);
  assert_non_null(sequence);
  bool last_reduced = mask >> (rank - 1) & 1;
  for (i64 k = 0; k < results; k++) {
    for (i64 e = 0; e < count; e++) {
      i64 at = 0, kk = k, ee = e;
      for (u32 d = rank; d-- > 0;) {
        i64 *from = mask >> d & 1 ? &ee : &kk;
        at += *from % dims[d] * array_strides(a)[d];
        *from /= dims[d];
      }
      sequence[e] = num_as_f64(array_load(a, at));
    }
    f64 want = mask == 0 ? sequence[0] : last_reduced ? by_lanes(r, sequence, count) : by_blocks(r, sequence, count);
    Value got = out.kind == V_NUM ? out : array_load(out.array, k);
    if (!same_number(got, num_convert_unchecked(value_f64(want), dtype)))
      fail_msg("%s %s rank %u mask %u: result %lld is %.17g, wanted %.17g", op_name(op), dtype_name(dtype), rank, mask,
               (long long)k, num_as_f64(got), want);
  }
  free(sequence);
  value_drop(vm, axes);
  value_drop(vm, out);
}

static void test_reductions(void **state) {
  Vm *vm = *state;
  static const struct {
    u32 rank;
    i64 dims[4];
  } shapes[] = {{1, {1}}, {1, {2}}, {1, {3}}, {1, {5}}, {1, {8}}, {1, {9}}, {1, {31}}, {1, {32}}, {1, {33}},
                {1, {64}}, {1, {100}}, {1, {2048}}, {1, {2049}}, {1, {5000}}, {2, {0, 3}}, {2, {3, 0}}, {2, {7, 5}},
                {2, {65, 3}},
                {2, {130, 40}}, {2, {4200, 3}}, {2, {5, 2100}}, {3, {3, 70, 4}}, {3, {70, 3, 65}}, {3, {2, 3, 700}},
                {4, {3, 4, 5, 6}}, {2, {1, 300}}, {2, {300, 1}}};
  for (u32 level = STRIPS_BASE; level <= STRIPS_AVX512; level++) {
    if (!stdlib_set_level(vm, (StripLevel)level)) continue;
    for (u32 s = 0; s < COUNT_OF(shapes); s++)
      for (u32 mask = 0; mask < 1u << shapes[s].rank; mask++)
        for (u32 l = 0; l < L_COUNT; l++) {
          u32 dtype = (mask + l) & 1 ? DT_f32 : DT_f64;
          Value x = layout_array(vm, dtype, shapes[s].rank, shapes[s].dims, (TestLayout)l, rough, s + 1);
          check(vm, OP_sum, x, mask);
          value_drop(vm, x);
          dtype = (mask + l) & 1 ? DT_f64 : DT_f32;
          x = layout_array(vm, dtype, shapes[s].rank, shapes[s].dims, (TestLayout)l, near_one, s + 1);
          check(vm, OP_prod, x, mask);
          value_drop(vm, x);
        }
  }
  assert_true(stdlib_set_level(vm, STRIPS_BEST));
}

/* Enough elements that the results of blocks fill blocks of their own. */
static void test_levels_of_blocks(void **state) {
  Vm *vm = *state;
  i64 line[1] = {2048 * 2048 + 5000}, tall[2] = {64 * 64 * 64 + 700, 2};
  Value x = layout_array(vm, DT_f64, 1, line, L_DENSE, rough, 3);
  check(vm, OP_sum, x, 1);
  value_drop(vm, x);
  x = layout_array(vm, DT_f64, 1, line, L_REVERSED, rough, 3);
  check(vm, OP_sum, x, 1);
  value_drop(vm, x);
  for (u32 l = 0; l < 2; l++) {
    x = layout_array(vm, DT_f64, 2, tall, (TestLayout)l, rough, 4);
    check(vm, OP_sum, x, 1);
    check(vm, OP_sum, x, 3);
    value_drop(vm, x);
  }
}

/* A result does not depend on where the operand lies: two passes over one axis are not one over two. */
static void test_integers(void **state) {
  Vm *vm = *state;
  i64 dims[3] = {7, 5, 66};
  static const u8 dtypes[] = {DT_bool, DT_u8, DT_i32, DT_i64};
  for (u32 i = 0; i < COUNT_OF(dtypes); i++)
    for (u32 l = 0; l < L_COUNT; l++)
      for (u32 mask = 1; mask < 8; mask++) {
        Value x = layout_array(vm, dtypes[i], 3, dims, (TestLayout)l, special, i), axes;
        assert_true(list_new(vm, 3, &axes));
        for (u32 d = 0; d < 3; d++)
          if (mask >> d & 1) assert_true(list_push(vm, &axes, value_weak_i64(d)));
        static const u16 ops[] = {OP_sum, OP_prod, OP_min, OP_max, OP_any, OP_all, OP_count_nonzero,
                                  OP_argmin, OP_argmax};
        for (u32 o = 0; o < COUNT_OF(ops); o++) {
          Value out = run_ok(vm, ops[o], x, axes, value_hole());
          i64 results = out.kind == V_NUM ? 1 : out.array->size, count = 7 * 5 * 66 / results;
          for (i64 k = 0; k < results; k++) {
            i64 want = ops[o] == OP_prod || ops[o] == OP_all, best = 0;
            for (i64 e = 0; e < count; e++) {
              i64 at = 0, kk = k, ee = e;
              for (u32 d = 3; d-- > 0;) {
                i64 *from = mask >> d & 1 ? &ee : &kk;
                at += *from % dims[d] * array_strides(x.array)[d];
                *from /= dims[d];
              }
              i64 v = array_load(x.array, at).i;
              bool first = e == 0;
              switch (ops[o]) {
                case OP_sum: want = (i64)((u64)want + (u64)v); break;
                case OP_prod: want = (i64)((u64)want * (u64)v); break;
                case OP_min: want = first || v < want ? v : want; break;
                case OP_max: want = first || v > want ? v : want; break;
                case OP_any: want |= v != 0; break;
                case OP_all: want &= v != 0; break;
                case OP_count_nonzero: want += v != 0; break;
                default:
                  if (first || (ops[o] == OP_argmin ? v < best : v > best)) {
                    best = v;
                    want = e;
                  }
              }
            }
            Value got = out.kind == V_NUM ? out : array_load(out.array, k);
            assert_int_equal(got.i, want);
          }
          value_drop(vm, out);
        }
        value_drop(vm, x);
        value_drop(vm, axes);
      }
}

static void test_scans(void **state) {
  Vm *vm = *state;
  static const struct {
    u32 rank;
    i64 dims[3];
    i64 axis;
  } cases[] = {{1, {1}, 0}, {1, {16}, 0}, {1, {17}, 0}, {1, {300}, 0}, {1, {5000}, 0}, {2, {37, 20}, 0},
               {2, {20, 37}, 1}, {3, {3, 300, 5}, 1}, {2, {0, 3}, 0}, {1, {70000}, 0}};
  for (u32 c = 0; c < COUNT_OF(cases); c++)
    for (u32 l = 0; l < L_COUNT; l++)
      for (u32 flags = 0; flags < 8; flags++) {
        u32 rank = cases[c].rank, axis = (u32)cases[c].axis, dtype = flags & 1 ? DT_f32 : DT_f64,
            op = flags & 2 ? OP_cumprod : OP_cumsum;
        bool reverse = flags & 4;
        const i64 *dims = cases[c].dims;
        Rule r = {op == OP_cumprod, dtype == DT_f32};
        Value x = layout_array(vm, dtype, rank, dims, (TestLayout)l, op == OP_cumprod ? near_one : rough, c + 1);
        Value out = run_ok(vm, op, x, value_i64(axis), value_bool(reverse));
        i64 n = dims[axis], lanes = n ? x.array->size / n : 0;
        f64 *lane = malloc((size_t)(n + 1) * 2 * sizeof *lane), *want = lane + n;
        assert_non_null(lane);
        for (i64 k = 0; k < lanes; k++) {
          i64 base = 0, step = array_strides(x.array)[axis], out_base = 0,
              out_step = array_strides(out.array)[axis], kk = k;
          for (u32 d = rank; d-- > 0;) {
            if (d == axis) continue;
            base += kk % dims[d] * array_strides(x.array)[d];
            out_base += kk % dims[d] * array_strides(out.array)[d];
            kk /= dims[d];
          }
          for (i64 e = 0; e < n; e++)
            lane[e] = num_as_f64(array_load(x.array, base + (reverse ? n - 1 - e : e) * step));
          by_segments(r, lane, n, want);
          for (i64 e = 0; e < n; e++) {
            Value got = array_load(out.array, out_base + (reverse ? n - 1 - e : e) * out_step);
            if (!same_number(got, num_convert_unchecked(value_f64(want[e]), dtype)))
              fail_msg("%s %s: element %lld is %.17g, wanted %.17g", op_name(op), dtype_name(dtype), (long long)e,
                       num_as_f64(got), want[e]);
          }
        }
        free(lane);
        value_drop(vm, x);
        value_drop(vm, out);
      }
}

/* ---- sorting, against the simplest sort ---------------------------------------------------------- */

static bool goes_before(Value a, Value b, bool descending) {
  f64 p = num_as_f64(a), q = num_as_f64(b);
  if (p != p || q != q) return p == p && q != q;
  if (dtype_kind(a.dtype) <= DK_INT) return descending ? a.i > b.i : a.i < b.i;
  return descending ? p > q : p < q;
}

static void test_sorting(void **state) {
  Vm *vm = *state;
  static const u8 dtypes[] = {DT_bool, DT_u8, DT_i32, DT_i64, DT_f32, DT_f64};
  static const i64 lengths[] = {0, 1, 2, 23, 24, 25, 100, 767, 769, 1500};
  for (u32 i = 0; i < COUNT_OF(dtypes); i++)
    for (u32 s = 0; s < COUNT_OF(lengths); s++)
      for (u32 descending = 0; descending < 2; descending++) {
        i64 n = lengths[s], dims[2] = {n, 2};
        Value x = layout_array(vm, dtypes[i], 2, dims, (TestLayout)(s % L_COUNT), special, s + 5);
        Value at = run_ok(vm, OP_argsort, x, value_i64(0), value_bool(descending)),
            sorted = run_ok(vm, OP_sort, x, value_i64(0), value_bool(descending));
        i64 *order = malloc((size_t)(n + 1) * sizeof *order);
        assert_non_null(order);
        for (i64 c = 0; c < 2; c++) {
          for (i64 k = 0; k < n; k++) { /* insertion */
            i64 j = k;
            for (; j > 0 && goes_before(element_at(x, 2, dims, k * 2 + c), element_at(x, 2, dims, order[j - 1] * 2 + c),
                                        descending); j--)
              order[j] = order[j - 1];
            order[j] = k;
          }
          for (i64 k = 0; k < n; k++) {
            assert_int_equal(element_at(at, 2, dims, k * 2 + c).i, order[k]);
            assert_true(same_number(element_at(sorted, 2, dims, k * 2 + c), element_at(x, 2, dims, order[k] * 2 + c)));
          }
        }
        free(order);
        value_drop(vm, x);
        value_drop(vm, at);
        value_drop(vm, sorted);
      }
}

static int setup(void **state) {
  *state = test_vm();
  return 0;
}

static int teardown(void **state) {
  test_vm_end(*state);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_reductions), cmocka_unit_test(test_levels_of_blocks),
                                     cmocka_unit_test(test_integers), cmocka_unit_test(test_scans),
                                     cmocka_unit_test(test_sorting)};
  return cmocka_run_group_tests_name("reduce", tests, setup, teardown);
}
