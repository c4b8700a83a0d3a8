/* test_kernels.c — elementwise kernels against a naive reference, in every layout, dtype and build; memory reuse, error
 * texts, and refused memory. */
#include "tests/unit/kernels_support.h"

#include "stdlib/array/make.h"
#include "stdlib/kernels/philox.h"
#include "stdlib/kernels/strips.h"
#include "stdlib/kernels/wm.h"

static const u8 dtypes[] = {DT_bool, DT_u8, DT_i32, DT_i64, DT_u64, DT_f32, DT_f64};

/* ---- the reference: one element, the long way ---------------------------------------------------- */

static i64 wrap(__int128 v, u32 dtype) {
  switch (dtype) {
    case DT_u8: return (u8)v;
    case DT_i32: return (i32)(u32)v;
    default: return (i64)(u64)v;
  }
}

static i64 width(u32 dtype) { return 8 * (i64)dtype_bytes(dtype); }

static __int128 naive_floor_divide(__int128 p, __int128 q) {
  __int128 d = p / q;
  while (d * q > p && q > 0) d--;
  while (d * q < p && q < 0) d--;
  return d;
}

/* The bits of two integers of this dtype, which u64 takes without a sign. */
static i64 naive_int(u32 op, u32 dtype, i64 p_bits, i64 q_bits) {
  const bool natural = dtype == DT_u64;
  const __int128 p = natural ? (__int128)(u64)p_bits : p_bits, q = natural ? (__int128)(u64)q_bits : q_bits;
  __int128 r = 1;
  switch (op) {
    case OP_add: return wrap(p + q, dtype);
    case OP_subtract: return wrap(p - q, dtype);
    case OP_multiply: return wrap((__int128)((unsigned __int128)p * (unsigned __int128)q), dtype);
    case OP_floor_divide: return wrap(naive_floor_divide(p, q), dtype);
    case OP_remainder: return wrap(p - naive_floor_divide(p, q) * q, dtype);
    case OP_fmod: return wrap(p % q, dtype);
    case OP_power:
      for (i64 i = 0; i < q; i++) r = wrap((__int128)((unsigned __int128)r * (unsigned __int128)p), dtype);
      return (i64)r;
    case OP_minimum: return (i64)(p < q ? p : q);
    case OP_maximum: return (i64)(p > q ? p : q);
    case OP_bitwise_and: return (i64)(p & q);
    case OP_bitwise_or: return (i64)(p | q);
    case OP_bitwise_xor: return (i64)(p ^ q);
    case OP_left_shift: return q < 0 || q >= width(dtype) ? 0 : wrap((__int128)((unsigned __int128)p << q), dtype);
    default: return q < 0 || q >= width(dtype) ? (p < 0 ? -1 : 0) : (i64)(p >> q);
  }
}

static f64 naive_float(u32 op, u32 dtype, f64 p, f64 q) {
  bool single = dtype == DT_f32;
  switch (op) { /* one rounding to f64 and one to f32 are one rounding to f32 for these */
    case OP_add: return single ? (f64)(f32)(p + q) : p + q;
    case OP_subtract: return single ? (f64)(f32)(p - q) : p - q;
    case OP_multiply: return single ? (f64)(f32)(p * q) : p * q;
    case OP_divide: return single ? (f64)(f32)(p / q) : p / q;
    case OP_minimum:
      return isnan(p) || isnan(q) ? NAN : p == 0 && q == 0 ? (signbit(p) || signbit(q) ? -0.0 : 0.0) : p < q ? p : q;
    case OP_maximum:
      return isnan(p) || isnan(q) ? NAN : p == 0 && q == 0 ? (signbit(p) && signbit(q) ? -0.0 : 0.0) : p > q ? p : q;
    case OP_copysign: return isnan(q) ? fabs(p) : copysign(p, q);
    case OP_fmod: return fmod(p, q);
    case OP_remainder: {
      f64 r = fmod(p, q);
      if (r == 0) return copysign(0, q);
      return (r < 0) != (q < 0) ? (single ? (f64)((f32)r + (f32)q) : r + q) : r;
    }
    default: return single ? (f64)nextafterf((f32)p, (f32)q) : nextafter(p, q);
  }
}

static bool naive_test(u32 op, Value p, Value q) {
  bool ints = dtype_kind(p.dtype) <= DK_INT;
  f64 a = num_as_f64(p), b = num_as_f64(q);
  switch (op) {
    case OP_equal: return ints ? p.i == q.i : a == b;
    case OP_not_equal: return ints ? p.i != q.i : !(a == b);
    case OP_less: return ints ? p.i < q.i : a < b;
    case OP_less_equal: return ints ? p.i <= q.i : a <= b;
    case OP_greater: return ints ? p.i > q.i : a > b;
    case OP_greater_equal: return ints ? p.i >= q.i : a >= b;
    case OP_logical_and: return (ints ? p.i != 0 : a != 0) && (ints ? q.i != 0 : b != 0);
    case OP_logical_or: return (ints ? p.i != 0 : a != 0) || (ints ? q.i != 0 : b != 0);
    default: return (ints ? p.i != 0 : a != 0) != (ints ? q.i != 0 : b != 0);
  }
}

/* The result for operands already of the dtype that is computed in; false: the operation must fail on them. */
static bool naive(u32 op, u32 compute, u32 result, Value p, Value q, Value *out) {
  Value r = {.kind = V_NUM, .dtype = (u8)result};
  if (result == DT_bool && op != OP_bitwise_and && op != OP_bitwise_or && op != OP_bitwise_xor && op != OP_minimum &&
      op != OP_maximum) {
    r.i = naive_test(op, p, q);
  } else if (dtype_kind(compute) <= DK_INT) {
    if ((op == OP_floor_divide || op == OP_remainder || op == OP_fmod) && q.i == 0) return false;
    if (op == OP_power && q.i < 0) return false;
    if (op == OP_power && q.i > 300) return false; /* left out: too slow this way */
    r.i = naive_int(op, compute, p.i, q.i);
  } else {
    f64 f = naive_float(op, compute, num_as_f64(p), num_as_f64(q));
    if (compute == DT_f32) r.s = (f32)f;
    else r.f = f;
  }
  *out = r;
  return true;
}

/* ---- every binary operation in every layout ------------------------------------------------------ */

typedef struct ShapePair {
  u32 arank, brank;
  i64 a[4], b[4];
} ShapePair;

static const ShapePair shape_pairs[] = {
    {1, 1, {37}, {37}},          {1, 1, {700}, {700}},       {3, 3, {3, 5, 7}, {3, 5, 7}}, {1, 1, {0}, {0}},
    {1, 1, {1}, {1}},            {3, 2, {3, 1, 7}, {5, 7}},  {2, 1, {4, 9}, {9}},          {2, 2, {4, 1}, {1, 9}},
    {2, 3, {300, 2}, {3, 1, 2}}, {1, 2, {0}, {4, 1}},        {4, 1, {2, 3, 2, 3}, {1}},    {1, 1, {1}, {300}},
};

static const u16 binary_ops[] = {
    OP_add, OP_subtract, OP_multiply, OP_divide, OP_floor_divide, OP_remainder, OP_power, OP_minimum, OP_maximum,
    OP_equal, OP_not_equal, OP_less, OP_less_equal, OP_greater, OP_greater_equal, OP_logical_and, OP_logical_or,
    OP_logical_xor,
    OP_bitwise_and, OP_bitwise_or, OP_bitwise_xor, OP_left_shift, OP_right_shift, OP_copysign, OP_fmod, OP_nextafter};

static Value harmless(u32 dtype, i64 k, u64 seed) { /* a divisor, an exponent, a shift */
  Value v = special(dtype, k, seed);
  if (dtype_kind(dtype) == DK_INT) v.i = v.i % 67 < 0 ? 3 : v.i % 67 == 0 ? 1 : v.i % 67;
  if (dtype == DT_bool) v.i = 1;
  return v;
}

static void check_result(Vm *vm, u32 op, Value a, Value b, Value out) {
  ArrayType ta = {.dtype = a.dtype}, tb = {.dtype = b.dtype}, shape;
  const ArrayType *types[2] = {&ta, &tb};
  DTypeResult r;
  RuleError err;
  (void)vm;
  if (a.kind == V_ARRAY) {
    ta.rank = (u8)array_rank(a.array);
    memcpy(ta.dims, array_dims(a.array), ta.rank * sizeof(i64));
  }
  if (b.kind == V_ARRAY) {
    tb.rank = (u8)array_rank(b.array);
    memcpy(tb.dims, array_dims(b.array), tb.rank * sizeof(i64));
  }
  assert_true(rule_dtype(op, 2, types, &r, &err));
  assert_true(rule_broadcast(NULL, 2, types, &shape, &err));
  assert_int_equal(out.dtype, r.result);
  i64 size = dims_size(shape.rank, shape.dims);
  if (out.kind == V_ARRAY) {
    assert_int_equal(array_rank(out.array), shape.rank);
    assert_memory_equal(array_dims(out.array), shape.dims, shape.rank * sizeof(i64));
    assert_true(array_dense(out.array));
  } else {
    assert_int_equal(shape.rank, 0);
  }
  for (i64 k = 0; k < size; k++) {
    Value p = num_convert_unchecked(element_at(a, shape.rank, shape.dims, k), r.compute);
    Value q = num_convert_unchecked(element_at(b, shape.rank, shape.dims, k), r.compute);
    Value got = element_at(out, shape.rank, shape.dims, k), want;
    if (!naive(op, r.compute, r.result, p, q, &want)) continue;
    if (!same_number(got, want))
      fail_msg("%s %s: element %lld of (%.17g, %.17g) is %.17g, wanted %.17g", op_name(op), dtype_name(r.compute),
               (long long)k, num_as_f64(p), num_as_f64(q), num_as_f64(got), num_as_f64(want));
  }
}

static bool takes(u32 op, u32 da, u32 db) {
  ArrayType ta = {.dtype = (u8)da}, tb = {.dtype = (u8)db};
  const ArrayType *types[2] = {&ta, &tb};
  DTypeResult r;
  RuleError err;
  if (!rule_dtype(op, 2, types, &r, &err)) return false;
  bool is_float = dtype_kind(r.compute) == DK_FLOAT;
  if (is_float && (op == OP_power || op == OP_floor_divide)) return false; /* test_math.c has these */
  return is_float || (op != OP_copysign && op != OP_nextafter);
}

static void test_binary(void **state) {
  Vm *vm = *state;
  u64 seed = 1;
  for (u32 o = 0; o < COUNT_OF(binary_ops); o++) {
    u32 op = binary_ops[o];
    bool picky = op == OP_floor_divide || op == OP_remainder || op == OP_fmod || op == OP_power;
    for (u32 i = 0; i < COUNT_OF(dtypes); i++) {
      for (u32 j = 0; j < COUNT_OF(dtypes); j++) {
        u32 da = dtypes[i], db = dtypes[j];
        if (!takes(op, da, db)) continue;
        for (u32 s = 0; s < COUNT_OF(shape_pairs); s++) {
          const ShapePair *p = &shape_pairs[s];
          /* all pairs of layouts with equal dtypes, a walk through them with others */
          for (u32 l = 0; l < (da == db ? L_COUNT * L_COUNT : 2); l++) {
            TestLayout la = (TestLayout)(da == db ? l / L_COUNT : (i + s + l) % L_COUNT),
                lb = (TestLayout)(da == db ? l % L_COUNT : (j + l) % L_COUNT);
            Value a = layout_array(vm, da, p->arank, p->a, la, special, ++seed);
            Value b = layout_array(vm, db, p->brank, p->b, lb, picky ? harmless : special, ++seed);
            Value out = run_ok(vm, op, a, b, value_hole());
            check_result(vm, op, a, b, out);
            value_drop(vm, a);
            value_drop(vm, b);
            value_drop(vm, out);
          }
        }
        for (i64 k = 0; k < 40; k++) { /* numbers, and numbers with arrays */
          Value a = special(da, k, ++seed), b = (picky ? harmless : special)(db, k, ++seed);
          Value out = run_ok(vm, op, a, b, value_hole());
          check_result(vm, op, a, b, out);
          i64 dims[1] = {k * 8};
          Value v = layout_array(vm, da, 1, dims, (TestLayout)(k % L_COUNT), special, ++seed);
          value_drop(vm, out);
          out = run_ok(vm, op, v, b, value_hole());
          check_result(vm, op, v, b, out);
          value_drop(vm, out);
          value_drop(vm, v);
          v = layout_array(vm, db, 1, dims, (TestLayout)(k % L_COUNT), picky ? harmless : special, ++seed);
          out = run_ok(vm, op, a, v, value_hole());
          check_result(vm, op, a, v, out);
          value_drop(vm, out);
          value_drop(vm, v);
        }
      }
    }
  }
}

static void test_where_clip(void **state) {
  Vm *vm = *state;
  u64 seed = 99;
  for (u32 i = 0; i < COUNT_OF(dtypes); i++)
    for (u32 s = 0; s < COUNT_OF(shape_pairs); s++)
      for (u32 l = 0; l < L_COUNT; l++) {
        const ShapePair *p = &shape_pairs[s];
        ArrayType ta = {.rank = (u8)p->arank}, tb = {.rank = (u8)p->brank}, shape;
        const ArrayType *types[2] = {&ta, &tb};
        RuleError err;
        memcpy(ta.dims, p->a, sizeof p->a);
        memcpy(tb.dims, p->b, sizeof p->b);
        assert_true(rule_broadcast(NULL, 2, types, &shape, &err));
        Value c = layout_array(vm, DT_bool, p->arank, p->a, (TestLayout)l, special, ++seed);
        Value a = layout_array(vm, dtypes[i], p->brank, p->b, L_DENSE, special, ++seed);
        Value b = layout_array(vm, dtypes[i], p->arank, p->a, (TestLayout)((l + 1) % L_COUNT), special, ++seed);
        Value out = run_ok(vm, OP_where, c, a, b);
        Value cut = run_ok(vm, OP_clip, a, b, value_hole());
        for (i64 k = 0; k < dims_size(shape.rank, shape.dims); k++) {
          Value x = element_at(a, shape.rank, shape.dims, k), y = element_at(b, shape.rank, shape.dims, k), want = y;
          if (element_at(c, shape.rank, shape.dims, k).i) want = x;
          assert_true(same_number(element_at(out, shape.rank, shape.dims, k), want));
          assert_true(naive(OP_maximum, dtypes[i], dtypes[i], x, y, &want));
          assert_true(same_number(element_at(cut, shape.rank, shape.dims, k), want));
        }
        value_drop(vm, out);
        value_drop(vm, cut);
        value_drop(vm, a);
        value_drop(vm, b);
        value_drop(vm, c);
      }
}

/* ---- every build gives the same bits ------------------------------------------------------------- */

static void test_levels(void **state) {
  Vm *vm = *state;
  for (u32 op = 1; op <= OP_bit_count; op++) {
    if (op == OP_matmul || op == OP_where || op == OP_clip) continue;
    u32 n = op_info(op)->nparams == 1 ? 1 : 2;
    for (u32 i = 0; i < COUNT_OF(dtypes); i++) {
      ArrayType t = {.dtype = dtypes[i]};
      const ArrayType *types[2] = {&t, &t};
      DTypeResult r;
      RuleError err;
      if (!rule_dtype(op, n, types, &r, &err)) continue;
      i64 dims[1] = {1013};
      bool picky = op == OP_floor_divide || op == OP_remainder || op == OP_fmod || op == OP_power || op == OP_pow;
      Value a = layout_array(vm, dtypes[i], 1, dims, L_DENSE, special, op),
          b = layout_array(vm, dtypes[i], 1, dims, L_DENSE, picky ? harmless : special, op + 1);
      Value first = value_nil();
      for (u32 level = STRIPS_BASE; level <= STRIPS_AVX512; level++) {
        Value out;
        if (!stdlib_set_level(vm, (StripLevel)level)) continue;
        if (run(vm, op, a, n == 1 || op == OP_gelu || op == OP_round ? value_hole() : b, value_hole(),
                &out) != WEFT_OK) {
          assert_int_equal(vm->error.kind, EK_unsupported); /* a dtype that an operation of floats has no rows for */
          vm_error_clear(vm);
          break;
        }
        if (first.kind == V_NIL) {
          first = out;
          continue;
        }
        for (i64 k = 0; k < dims[0]; k++)
          if (!same_number(element_at(out, 1, dims, k), element_at(first, 1, dims, k)))
            fail_msg("%s %s: builds differ at (%.17g, %.17g)", op_name(op), dtype_name(dtypes[i]),
                     num_as_f64(element_at(a, 1, dims, k)), num_as_f64(element_at(b, 1, dims, k)));
        value_drop(vm, out);
      }
      value_drop(vm, first);
      value_drop(vm, a);
      value_drop(vm, b);
    }
  }
  assert_true(stdlib_set_level(vm, STRIPS_BEST));
}

/* Random numbers and ramps in strips, against the definitions for one element. */
static void test_draws(void **state) {
  Vm *vm = *state;
  static const i64 lengths[] = {1, 2, 7, 8, 9, 15, 17, STRIP - 1, STRIP};
  static const u64 streams[][3] = {{0, 0, 0}, {42, 7, 1}, {0xFEDCBA9876543210, 0x8000000180000001, 0xFFFFFFF8},
                                   {1, UINT64_MAX, UINT64_MAX - 3}};
  f64 uniform[STRIP + 1], normal[STRIP + 1], reals[STRIP + 1];
  u64 words[STRIP + 1], start, step;
  const f64 from = -0.7, by = 1.3;
  memcpy(&start, &from, sizeof start);
  memcpy(&step, &by, sizeof step);
  for (u32 level = STRIPS_BASE; level <= STRIPS_AVX512; level++) {
    if (!stdlib_set_level(vm, (StripLevel)level)) continue;
    const StripTable *strips = stdlib_of(vm)->strips;
    for (u32 s = 0; s < COUNT_OF(streams); s++)
      for (u32 l = 0; l < COUNT_OF(lengths); l++) {
        i64 n = lengths[l], first = (i64)(streams[s][1] >> 13);
        uniform[n] = normal[n] = reals[n] = 5;
        words[n] = 5;
        strips->uniform(uniform, streams[s][0], streams[s][1], streams[s][2], n);
        strips->normal(normal, streams[s][0], streams[s][1], streams[s][2], n);
        strips->ramp[DT_i64](words, streams[s][0], streams[s][1], first, n);
        strips->ramp[DT_f64](reals, start, step, first, n);
        for (i64 i = 0; i < n; i++) {
          u32 w[4];
          philox(streams[s][0], streams[s][1], streams[s][2] + (u64)i, w);
          f64 u = (f64)(((u64)w[0] | (u64)w[1] << 32) >> 11) * 0x1p-53,
              v = (f64)(((u64)w[2] | (u64)w[3] << 32) >> 11) * 0x1p-53;
          assert_true(normal[i] == sqrt(-2.0 * wm_log_f64(1.0 - u)) * wm_cos_f64(6.283185307179586 * v));
          if (2 * i < n) assert_true(uniform[2 * i] == u);
          if (2 * i + 1 < n) assert_true(uniform[2 * i + 1] == v);
          assert_true(words[i] == streams[s][0] + ((u64)first + (u64)i) * streams[s][1]);
          assert_true(reals[i] == from + (f64)(first + i) * by);
        }
        assert_true(uniform[n] == 5 && normal[n] == 5 && reals[n] == 5 && words[n] == 5);
      }
  }
  assert_true(stdlib_set_level(vm, STRIPS_BEST));
}

/* ---- conversion ---------------------------------------------------------------------------------- */

static void test_conversion(void **state) {
  Vm *vm = *state;
  static const struct {
    f64 x;
    u32 to;
    i64 want;
    bool fails;
  } cases[] = {
      {255.9, DT_u8, 255, false},  {256, DT_u8, 0, true},     {-0.9, DT_u8, 0, false},           {-1, DT_u8, 0, true},
      {2147483647.9, DT_i32, INT32_MAX, false}, {2147483648.0, DT_i32, 0, true},
      {-2147483648.9, DT_i32, INT32_MIN, false},
      {-2147483649.0, DT_i32, 0, true}, {9.3e18, DT_i64, 0, true}, {-0x1p63, DT_i64, INT64_MIN, false},
      {NAN, DT_i64, 0, true}, {INFINITY, DT_i32, 0, true}, {-2.7, DT_i64, -2, false}, {NAN, DT_bool, 1, false},
      {0.0, DT_bool, 0, false},
  };
  for (u32 i = 0; i < COUNT_OF(cases); i++)
    for (u32 boxed = 0; boxed < 2; boxed++) {
      i64 dims[1] = {3};
      Value x = value_f64(cases[i].x), out;
      if (boxed) {
        assert_int_equal(array_new_zero(vm, DT_f64, 1, dims, &x), WEFT_OK);
        ((f64 *)x.array->data)[2] = cases[i].x;
      }
      WeftStatus status = run(vm, OP_astype, x, value_dtype(cases[i].to), value_hole(), &out);
      assert_int_equal(status, cases[i].fails ? WEFT_ERROR : WEFT_OK);
      if (cases[i].fails) {
        assert_int_equal(vm->error.kind, EK_value);
        vm_error_clear(vm);
      } else {
        Value got = boxed ? array_load(out.array, 2) : out;
        assert_int_equal(got.dtype, cases[i].to);
        assert_int_equal(got.i, cases[i].want);
        value_drop(vm, out);
      }
      value_drop(vm, x);
    }
  for (u32 i = 0; i < COUNT_OF(dtypes); i++)
    for (u32 j = 0; j < COUNT_OF(dtypes); j++)
      for (u32 l = 0; l < L_COUNT; l++) {
        i64 dims[2] = {5, 61};
        if (dtype_kind(dtypes[i]) == DK_FLOAT && dtype_kind(dtypes[j]) == DK_INT) continue;
        Value x = layout_array(vm, dtypes[i], 2, dims, (TestLayout)l, special, l),
            out = run_ok(vm, OP_astype, x, value_dtype(dtypes[j]), value_hole());
        for (i64 k = 0; k < 305; k++)
          assert_true(same_number(element_at(out, 2, dims, k),
                                  num_convert_unchecked(element_at(x, 2, dims, k), dtypes[j])));
        value_drop(vm, x);
        value_drop(vm, out);
      }
}

/* ---- memory -------------------------------------------------------------------------------------- */

static Value ones_like(Vm *vm, u32 dtype, i64 n) {
  Value v;
  assert_int_equal(array_new(vm, dtype, 1, &n, &v), WEFT_OK);
  for (i64 i = 0; i < n; i++)
    num_store((char *)v.array->data + i * dtype_bytes(dtype), dtype, num_convert_unchecked(value_i64(1), dtype));
  return v;
}

/* A dying operand gives its memory to the result; a shared one, or one that a failing check needs, does not. */
static void test_reuse(void **state) {
  Vm *vm = *state;
  for (i64 n = 4; n < 5000; n *= 10) {
    Value args[4] = {ones_like(vm, DT_f64, n), ones_like(vm, DT_f64, n), value_hole(), value_hole()}, out, kept;
    void *first = args[0].array->data, *second = args[1].array->data;
    assert_int_equal(eager_add(vm, args, &out), WEFT_OK);
    assert_int_equal(args[0].kind, V_HOLE);
    assert_ptr_equal(out.array->data, first);
    value_drop(vm, args[1]);
    args[0] = value_weak_f64(2);
    args[1] = out;
    assert_int_equal(eager_multiply(vm, args, &out), WEFT_OK);
    assert_ptr_equal(out.array->data, first);
    args[0] = out;
    kept = value_keep(out);
    assert_int_equal(eager_exp(vm, args, &out), WEFT_OK); /* shared */
    assert_ptr_not_equal(out.array->data, first);
    assert_true(same_number(array_load(kept.array, 0), value_f64(4)));
    value_drop(vm, args[0]);
    value_drop(vm, kept);
    args[0] = out; /* x + x: one array twice */
    args[1] = value_keep(out);
    assert_int_equal(eager_add(vm, args, &out), WEFT_OK);
    assert_ptr_not_equal(out.array->data, args[0].array->data);
    value_drop(vm, args[0]);
    value_drop(vm, args[1]);
    value_drop(vm, out);
    (void)second;
    args[0] = ones_like(vm, DT_i64, n);
    args[1] = ones_like(vm, DT_i64, n);
    ((i64 *)args[1].array->data)[n - 1] = 0;
    assert_int_equal(eager_floor_divide(vm, args, &out), WEFT_ERROR);
    assert_int_equal(vm->error.kind, EK_zero_division);
    vm_error_clear(vm);
    assert_int_equal(((i64 *)args[0].array->data)[0], 1);
    assert_int_equal(((i64 *)args[1].array->data)[n - 1], 0);
    value_drop(vm, args[0]);
    value_drop(vm, args[1]);
    args[0] = ones_like(vm, DT_u8, n); /* a number that does not fit leaves its partner whole */
    args[1] = value_weak_i64(300);
    assert_int_equal(eager_add(vm, args, &out), WEFT_ERROR);
    vm_error_clear(vm);
    assert_int_equal(args[0].kind, V_ARRAY);
    value_drop(vm, args[0]);
  }
}

static Value eval(Vm *vm, struct Module *m, const char *text, bool *failed) {
  Value out = value_nil();
  *failed = vm_eval(vm, m, "<test>", text, strlen(text), false, &out) != WEFT_OK;
  return out;
}

/* Small arrays of one type and shape, which stay: the short way gives what the long one gives, or does nothing. */
static void test_pairs(void **state) {
  Vm *vm = *state;
  static const u32 ops[] = {OP_add, OP_subtract, OP_multiply, OP_divide};
  static const i64 shapes[][3] = {{8, 1, 1}, {3, 5, 2}, {0, 4, 1}, {1023, 1, 1}, {1024, 1, 1}};
  for (u32 i = 0; i < COUNT_OF(ops); i++)
    for (u32 d = 0; d < COUNT_OF(dtypes); d++)
      for (u32 l = 0; l < L_COUNT; l++)
        for (u32 c = 0; c < COUNT_OF(shapes); c++) {
          u32 rank = shapes[c][2] > 1 ? 3 : shapes[c][1] > 1 ? 2 : 1;
          Value x = layout_array(vm, dtypes[d], rank, shapes[c], (TestLayout)l, special, 1),
              y = layout_array(vm, dtypes[d], rank, shapes[c], (TestLayout)l, special, 7), out, want;
          PairWent went = vm->pair(vm, ops[i], x.array, y.array, &out);
          bool short_way = array_dense(x.array) && array_dense(y.array) && x.array->size < 1024 &&
                           (ops[i] != OP_divide || dtype_kind(dtypes[d]) == DK_FLOAT);
          if (dtypes[d] == DT_f64) assert_int_equal(went, short_way ? PAIR_DONE : PAIR_OTHER);
          if (!short_way && !array_dense(x.array)) assert_int_equal(went, PAIR_OTHER);
          if (went == PAIR_DONE) {
            want = run_ok(vm, ops[i], x, y, value_hole());
            assert_int_equal(out.array->tag, want.array->tag);
            assert_int_equal(out.dtype, want.dtype);
            assert_memory_equal(out.array->geometry, want.array->geometry, rank * 2 * sizeof(i64));
            assert_memory_equal(out.array->data, want.array->data, (size_t)out.array->size * dtype_bytes(out.dtype));
            value_drop(vm, out);
            value_drop(vm, want);
          }
          value_drop(vm, x);
          value_drop(vm, y);
        }
  Value x = ones_like(vm, DT_f64, 4), y = ones_like(vm, DT_f64, 5), z = ones_like(vm, DT_f32, 4), out;
  assert_int_equal(vm->pair(vm, OP_add, x.array, y.array, &out), PAIR_OTHER);
  assert_int_equal(vm->pair(vm, OP_add, x.array, z.array, &out), PAIR_OTHER);
  value_drop(vm, x), value_drop(vm, y), value_drop(vm, z);
}

static u64 pairs_seen;
static PairWent counted_pair(Vm *vm, u32 op, const Array *a, const Array *b, Value *out) {
  pairs_seen++;
  return elementwise_pair(vm, op, a, b, out);
}

/* The interpreter asks where no operand may be overwritten; registers hold what they held. */
static void test_pairs_of_programs(void **state) {
  Vm *vm = *state;
  static const struct {
    const char *text, *want;
    u64 asked;
  } rows[] = {
    {"fn f(a, b) { let c = a + b; let d = a * b; (a, b, c, d) }\nstr(f(arange(3.0), arange(3.0) + 1))",
     "([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [1.0, 3.0, 5.0], [0.0, 2.0, 6.0])", 2},
    {"fn f(a, b) { let e = a; a = a + b; (a, b, e) }\nstr(f(arange(3.0), arange(3.0) + 1))",
     "([1.0, 3.0, 5.0], [1.0, 2.0, 3.0], [0.0, 1.0, 2.0])", 1},
    {"fn f(a, b) { let e = b; b = a - b; (a, b, e) }\nstr(f(arange(3.0), arange(3.0) + 1))",
     "([0.0, 1.0, 2.0], [-1.0, -1.0, -1.0], [1.0, 2.0, 3.0])", 1},
    {"fn f(a) { let e = a; a = a + a; (a, e, a / a) }\nstr(f(arange(3.0) + 1))",
     "([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])", 2},
    {"fn f(a, b) = a + b\nlet x = arange(3.0)\nstr((f(x, x), x))", "([0.0, 2.0, 4.0], [0.0, 1.0, 2.0])", 1},
  };
  vm->pair = counted_pair;
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    bool failed;
    pairs_seen = 0;
    Value v = eval(vm, module_new(vm, "pairs", ""), rows[i].text, &failed);
    if (failed || v.kind != V_TEXT) fail_msg("%s", rows[i].text);
    assert_string_equal(v.text->data, rows[i].want);
    assert_int_equal(pairs_seen, rows[i].asked);
    value_drop(vm, v);
  }
  vm->pair = elementwise_pair;
}

/* ---- programs: values and error texts ------------------------------------------------------------ */

static const char *const truths[] = {
#define TRUE_PROGRAM(text) text,
#define FAILING_PROGRAM(text, message)
#include "tests/unit/kernels_programs.h"
#undef TRUE_PROGRAM
#undef FAILING_PROGRAM
};

static const struct {
  const char *text, *message;
} failures[] = {
#define TRUE_PROGRAM(text)
#define FAILING_PROGRAM(text, message) {text, message},
#include "tests/unit/kernels_programs.h"
#undef TRUE_PROGRAM
#undef FAILING_PROGRAM
};

static void test_programs(void **state) {
  Vm *vm = *state;
  struct Module *m = module_new(vm, "truths", "");
  bool failed;
  u32 wrong = 0;
  assert_non_null(m);
  for (u32 i = 0; i < COUNT_OF(truths); i++) {
    Value out = eval(vm, m, truths[i], &failed);
    bool is_true = !failed && out.kind == V_NUM && out.dtype == DT_bool && out.i;
    if (!is_true) print_error("%s\n  %s\n", truths[i], failed ? vm->error.message.text->data : "is not true");
    wrong += !is_true;
    vm_error_clear(vm);
    value_drop(vm, out);
  }
  for (u32 i = 0; i < COUNT_OF(failures); i++) {
    Value out = eval(vm, m, failures[i].text, &failed);
    value_drop(vm, out);
    char got[400] = "nothing";
    if (failed) snprintf(got, sizeof got, "%s: %s", error_kind_name(vm->error.kind), vm->error.message.text->data);
    vm_error_clear(vm);
    if (strcmp(got, failures[i].message) == 0) continue;
    print_error("%s\n  says   %s\n  wanted %s\n", failures[i].text, got, failures[i].message);
    wrong++;
  }
  assert_int_equal(wrong, 0);
}

/* ---- refused memory ------------------------------------------------------------------------------ */

typedef struct Refusing {
  Allocator head;
  i64 left;   /* allocations until one is refused; negative: never */
  i64 alive;  /* bytes */
} Refusing;

static void *refusing_resize(Allocator *self, void *p, size_t old_size, size_t new_size) {
  Refusing *r = (Refusing *)self;
  if (new_size > old_size && r->left >= 0 && r->left-- == 0) {
    r->left = 0;
    return NULL;
  }
  Allocator *system = allocator_system();
  void *q = system->resize(system, p, old_size, new_size);
  if (q || new_size == 0) r->alive += (i64)new_size - (i64)old_size;
  return q;
}

/* Every operation of the programs above must end in an error and give back all memory, whichever allocation fails. */
static void test_refused_memory(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT_OF(truths); i += 3) {
    for (i64 n = 0;; n += n < 60 ? 1 : 1 + n / 8) {
      Refusing r = {.head = {refusing_resize}, .left = -1};
      Vm *vm = vm_new(&(VmOptions){.alloc = &r.head});
      assert_non_null(vm);
      assert_int_equal(stdlib_install(vm), WEFT_OK);
      struct Module *m = module_new(vm, "refused", "");
      bool failed;
      r.left = n;
      Value out = eval(vm, m, truths[i], &failed);
      bool reached = r.left == 0;
      r.left = -1;
      if (!failed) {
        assert_true(out.kind == V_NUM && out.i);
        value_drop(vm, out);
      }
      vm_error_clear(vm);
      stdlib_remove(vm);
      vm_free(vm);
      if (r.alive != 0)
        fail_msg("%s: %lld bytes lost when allocation %lld fails", truths[i], (long long)r.alive, (long long)n);
      if (!reached) break;
    }
  }
}

/* ---- the table of operations --------------------------------------------------------------------- */

static void test_table(void **state) {
  Vm *vm = *state;
  for (u32 op = 1; op < OP_COUNT; op++) assert_non_null(vm->ops[op].eager);
  for (u32 from = 1; from < DT_COUNT; from++)
    for (u32 to = 1; to < DT_COUNT; to++) { /* of a complex number no part is left out */
      bool parts = dtype_kind(from) == DK_COMPLEX && dtype_kind(to) != DK_COMPLEX && to != DT_bool;
      if (from == to || parts || dtype_can(from, NEED_convert) == CAN_none || dtype_can(to, NEED_convert) == CAN_none)
        continue;
      if (!stdlib_of(vm)->strips->convert[from][to]) fail_msg("%s to %s", dtype_name(from), dtype_name(to));
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
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_binary), cmocka_unit_test(test_where_clip), cmocka_unit_test(test_levels),
      cmocka_unit_test(test_conversion),
      cmocka_unit_test(test_draws),
      cmocka_unit_test(test_reuse), cmocka_unit_test(test_pairs), cmocka_unit_test(test_pairs_of_programs),
      cmocka_unit_test(test_programs), cmocka_unit_test(test_refused_memory), cmocka_unit_test(test_table),
  };
  return cmocka_run_group_tests_name("kernels", tests, setup, teardown);
}
