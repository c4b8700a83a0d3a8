/* test_dtypes.c — the table of dtypes: every operation on every dtype gives a result, or says `NAME: not supported for
 * DTYPE`, interpreted and compiled alike. Conversions to and from halves, against a search among all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/inner.h"
#include "lang/halves.h"
#include "stdlib/kernels/strips.h"
#include "stdlib/stdlib.h"
#include "tests/support/calls.h"

/* A global `name` that holds zeros and ones of this dtype, whether programs can make such an array or not. */
static void put(WeftVM *w, const char *name, u32 dtype, u32 rank, const i64 *dims) {
  Value v;
  WeftValue *value;
  assert_int_equal(array_new_zero(w->vm, dtype, rank, dims, &v), WEFT_OK);
  if (dtype_can(dtype, NEED_convert) != CAN_none)
    for (i64 i = 0; i < v.array->size; i += 3)
      num_store_as((char *)v.array->data + i * (i64)dtype_bytes(dtype), dtype, value_i64(1));
  assert_int_equal(value_hand_over(w, v, &value), WEFT_OK);
  assert_int_equal(weft_set_global(w, name, value), WEFT_OK);
  weft_release(w, value);
}

/* What `program` gives, as text: a value, or the message of its error. */
static void outcome(WeftVM *w, const char *program, bool *failed, char *out, size_t cap) {
  WeftValue *value = NULL;
  *failed = weft_eval(w, program, "test", &value) != WEFT_OK;
  if (*failed) {
    snprintf(out, cap, "%s", weft_error_message(w));
    return;
  }
  Buf text;
  buf_init(&text, &w->vm->alloc);
  format_value(w->vm, value->value, false, &text);
  snprintf(out, cap, "%s", buf_text(&text));
  buf_free(&text);
  weft_release(w, value);
}

/* It says so, of a dtype that lacks something; or an array is not what is taken there at all. */
static bool says_not_supported(const char *message) {
  const char *at = strstr(message, "not supported for ");
  for (u32 d = 1; at && d < DT_COUNT; d++)
    for (u32 need = 1; need < NEED_COUNT; need++)
      if (strcmp(at + 18, dtype_name(d)) == 0 && dtype_can(d, need) == CAN_none) return true;
  return strstr(message, "got an array of") || strstr(message, "is not supported") ||
         strstr(message, "a store keeps the array's dtype") || strstr(message, "a derivative is taken of floats");
}

/* Operations whose argument is a dtype, or a number that says nothing of dtypes. */
static const struct {
  u32 op;
  const char *text;
} calls_of_dtype[] = {
    {OP_array, "array(((1, 0.5), (0, 1)), q.dtype)"},
    {OP_array, "array((q[0, 0], q[0, 1]))"},
    {OP_zeros, "zeros(3, dtype=q.dtype)"},
    {OP_ones, "ones(3, dtype=q.dtype)"},
    {OP_full, "full(3, q[0, 0])"},
    {OP_full, "full(3, 1, dtype=q.dtype)"},
    {OP_empty, "empty(0, dtype=q.dtype)"},
    {OP_eye, "eye(3, dtype=q.dtype)"},
    {OP_zeros_like, "zeros_like([1, 2], dtype=q.dtype)"},
    {OP_full_like, "full_like([1, 2], 1, dtype=q.dtype)"},
    {OP_arange, "arange(3, dtype=q.dtype)"},
    {OP_arange, "arange(q[0, 0], 3)"},
    {OP_linspace, "linspace(0, 1, 3, dtype=q.dtype)"},
    {OP_linspace, "linspace(q[0, 0], 3, 3)"},
    {OP_astype, "bool(q)"}, {OP_astype, "u8(q)"}, {OP_astype, "i32(q)"}, {OP_astype, "i64(q)"},
    {OP_astype, "f16(q)"}, {OP_astype, "bf16(q)"}, {OP_astype, "f32(q)"}, {OP_astype, "u32(q)"},
    {OP_astype, "u64(q)"}, {OP_astype, "c64(q)"}, {OP_astype, "c128(q)"},
    {OP_add, "q + 1"}, {OP_add, "q + 0.1"}, {OP_add, "q[0, 0] + 1"}, {OP_add, "q + f32(0.1)"},
    {OP_add, "q + i64(1)"}, {OP_add, "f64(0.1) + q"}, {OP_add, "q + [1, 2]"}, {OP_negative, "-q[0, 0]"},
    {OP_less, "q < 0.5"}, {OP_less, "q[0, 0] < 1"}, {OP_equal, "q == 1"},
    {OP_where, "where(q == q, q, 0.1)"}, {OP_where, "where([true, false], q, 1)"},
    {OP_clip, "clip(q, 0.25, 0.75)"},
    {OP_searchsorted, "searchsorted(v, q)"},
    {OP_one_hot, "one_hot([0, 1], 2, dtype=q.dtype)"},
    {OP_concat, "concat((q, [[0.5, 2]]))"},
    {OP_pad, "pad(q, 1, value=0.1)"},
    {OP_scatter, "scatter(v, [1, 1], v[:2], reduce=\"add\")"},
    {OP_scatter, "scatter(v, [1], [0.1])"},
    {OP_random_key, "random.key(5)"},
    {OP_random_split, "random.split(random.key(5), 2)"},
    {OP_random_fold_in, "random.fold_in(random.key(5), 2)"},
    {OP_random_stream, "random.stream(5, 2)"},
    {OP_random_uniform, "random.uniform(random.key(5), 3, dtype=q.dtype)"},
    {OP_random_normal, "random.normal(random.key(5), 3, dtype=q.dtype)"},
    {OP_random_exponential, "random.exponential(random.key(5), 3, dtype=q.dtype)"},
    {OP_random_randint, "random.randint(random.key(5), 0, 5, 3)"},
    {OP_random_bernoulli, "random.bernoulli(random.key(5), q[0, 0], 3)"},
    {OP_none, "{ let a = q; a[0, 1] = 0.1; a }"},
    {OP_none, "{ let a = q; a[0] += 0.1; a[:, 1] *= q[0, 0]; a }"},
    {OP_none, "{ let a = v; a[[0, 0, 1]] += 1; a }"},
    {OP_none, "{ let s = q[0, 0]; for i in 0..5 { s += q[1, 1] + 1 }; s }"},
    {OP_none, "{ let s = v * 1; for i in 0..5 { s = s * s + v / 3 }; (s, sum(s)) }"},
    {OP_none, "q[0]"}, {OP_none, "v[[1, 2]]"}, {OP_none, "v[v > 0]"}, {OP_none, "v[::-2]"},
    {OP_none, "(q[0, 0], (v[0], str(q), f\"{q[0, 0]:.2f}\"))"},
    {OP_none, "grad(x => sum(x * x * x))(q)"}, {OP_none, "vmap(x => x * 3)(q)"},
    {OP_none, "jvp(x => sin(x), (q,), (q,))"},
};

static bool is_walked(u32 op) {
  return call_is_on_arrays(op_info(op)) && op_is_pure(op);
}

static void every_operation_on_every_dtype(void **state) {
  (void)state;
  WeftVM *w = weft_new(NULL);
  assert_non_null(w);
  bool works[OP_COUNT] = {0};
  u32 bad = 0;
  for (u32 d = 1; d < DT_COUNT; d++) {
    put(w, "q", d, 2, (i64[2]){2, 2});
    put(w, "v", d, 1, (i64[1]){6});
    for (u32 i = 1; i < OP_COUNT + COUNT_OF(calls_of_dtype); i++) {
      char call[600], program[800], eager[4000], compiled[4000];
      bool failed, failed_compiled;
      u32 op = i < OP_COUNT ? i : calls_of_dtype[i - OP_COUNT].op;
      if (i >= OP_COUNT) snprintf(call, sizeof call, "%s", calls_of_dtype[i - OP_COUNT].text);
      else if (!is_walked(op)) continue;
      else call_text(op, -1, "", call, sizeof call);
      snprintf(program, sizeof program, "eager(() => %s)()", call);
      outcome(w, program, &failed, eager, sizeof eager);
      snprintf(program, sizeof program, "jit(() => %s)()", call);
      outcome(w, program, &failed_compiled, compiled, sizeof compiled);
      works[op] |= !failed;
      if (op == OP_random_bernoulli && dtype_kind(d) == DK_COMPLEX) continue;
      bool none = !op_takes(op, d), uses = strchr(call, 'q') || strchr(call, 'v');
      if (failed != failed_compiled || (failed && strcmp(eager, compiled) != 0)) {
        print_error("%s of %s: %s; compiled: %s\n", call, dtype_name(d), eager, compiled);
        bad++;
      } else if (failed && none && uses && !says_not_supported(eager)) {
        print_error("%s of %s: %s\n", call, dtype_name(d), eager);
        bad++;
      } else if (failed && !none && strstr(eager, "not supported for") && !says_not_supported(eager)) {
        print_error("%s of %s, which the table has: %s\n", call, dtype_name(d), eager);
        bad++;
      }
    }
  }
  for (u32 op = 1; op < OP_COUNT; op++)
    if (is_walked(op) && !works[op]) {
      print_error("%s works for no dtype\n", op_name(op));
      bad++;
    }
  weft_free(w);
  assert_int_equal(bad, 0);
}

static void rows(void **state) {
  (void)state;
  for (u32 d = 1; d < DT_COUNT; d++) {
    u32 compute = dtype_compute(d);
    assert_int_equal(dtype_by_name(dtype_name(d), strlen(dtype_name(d))), d);
    assert_int_equal(dtype_compute(compute), compute);
    assert_int_equal(dtype_kind(compute), dtype_kind(d));
    /* nobody looks for a wider dtype to move numbers or to show them */
    assert_true(dtype_can(d, NEED_store) != CAN_wide && dtype_can(d, NEED_convert) != CAN_wide &&
                dtype_can(d, NEED_print) != CAN_wide);
    for (u32 need = 1; need < NEED_COUNT; need++) { /* wide: in a dtype that does it itself */
      if (dtype_can(d, need) != CAN_wide) continue;
      assert_int_not_equal(compute, d);
      assert_int_equal(dtype_can(compute, need), CAN_own);
    }
    if (dtype_kind(d) != DK_INT) continue;
    const u32 bits = 8 * dtype_bytes(d);
    assert_true(dtype_int_max(d) == UINT64_MAX >> (64 - bits + dtype_is_signed(d)));
    assert_true(dtype_int_min(d) == (dtype_is_signed(d) ? -(i64)(dtype_int_max(d)) - 1 : 0));
  }
  assert_true(dtype_int_max(DT_u8) == 255 && dtype_int_max(DT_i32) == INT32_MAX && dtype_int_min(DT_i64) == INT64_MIN);
}

/* The halves beside x, by search among all of them: `at` says which numbers they are, in order. */
static u16 nearest(const f64 *at, u32 most, f64 x, f64 beyond) {
  u16 sign = signbit(x) ? 0x8000 : 0;
  f64 a = fabs(x);
  if (a >= beyond) return (u16)(sign | (most + 1));
  u32 lo = 0, hi = most;
  while (lo < hi) {
    u32 mid = (lo + hi + 1) / 2;
    if (at[mid] <= a) lo = mid;
    else hi = mid - 1;
  }
  if (lo == most) return (u16)(sign | lo);
  f64 below = a - at[lo], above = at[lo + 1] - a;
  bool up = above < below || (above == below && (lo & 1));
  return (u16)(sign | (lo + up));
}

/* Every half, and what lies on, beside and far from the middles between halves. */
static void halves_are_nearest(void **state) {
  static f64 at[0x8000];
  (void)state;
  const u32 dtypes[] = {DT_f16, DT_bf16}, most[] = {0x7BFF, 0x7F7F}, fraction[] = {10, 7}, least[] = {24, 133};
  for (u32 d = 0; d < COUNT_OF(dtypes); d++) {
    u32 dtype = dtypes[d];
    for (u32 h = 0; h <= most[d]; h++) { /* by their definition */
      u32 e = h >> fraction[d], f = h & ((1u << fraction[d]) - 1);
      at[h] = ldexp(e ? f + (1u << fraction[d]) : f, (int)(e ? e - 1 : 0) - (int)least[d]);
      assert_true((f64)half_load(dtype, (u16)h) == at[h] && (f64)half_load(dtype, (u16)(h | 0x8000)) == -at[h]);
      assert_int_equal(half_store(dtype, (f32)at[h]), h);
    }
    f64 beyond = at[most[d]] + (at[most[d]] - at[most[d] - 1]) / 2;
    u64 seed = 7;
    for (u32 k = 0; k < 300000; k++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      u32 h = (u32)(seed >> 33) % most[d];
      f64 middle = at[h] / 2 + at[h + 1] / 2, far, x[4] = {middle, nextafter(middle, 0), nextafter(middle, INFINITY)};
      memcpy(&far, &seed, sizeof far);
      x[3] = far == far ? far : beyond;
      for (u32 i = 0; i < COUNT_OF(x); i++) {
        Value v = num_convert_unchecked(value_f64(seed & 1 ? -x[i] : x[i]), dtype), back;
        u16 want = nearest(at, most[d], seed & 1 ? -x[i] : x[i], beyond);
        back = num_load(&want, dtype);
        assert_true(v.bits == back.bits);
      }
    }
    assert_true(isnan(half_load(dtype, half_store(dtype, NAN))));
    assert_true(isinf(half_load(dtype, (u16)(most[d] + 1))) && isnan(half_load(dtype, (u16)(most[d] + 2))));
  }
}

/* Conversions of whole arrays, by each build of the kernels, are those of numbers. */
static void halves_in_arrays(void **state) {
  (void)state;
  WeftVM *w = weft_new(NULL);
  assert_non_null(w);
  Vm *vm = w->vm;
  static u64 from[1000], to[1000];
  const u32 halves[] = {DT_f16, DT_bf16};
  for (u32 level = STRIPS_BASE; level <= STRIPS_AVX512; level++) {
    if (!stdlib_set_level(vm, (StripLevel)level)) continue;
    const StripTable *strips = ((const Stdlib *)vm->stdlib_state)->strips;
    for (u32 k = 0; k < COUNT_OF(halves); k++)
      for (u32 other = 1; other < DT_COUNT; other++) {
        u32 half = halves[k];
        if (other == half || dtype_kind(other) == DK_COMPLEX || dtype_can(other, NEED_convert) == CAN_none) continue;
        u64 seed = 11 + other;
        for (u32 i = 0; i < 1000; i++) {
          seed = seed * 6364136223846793005u + 1442695040888963407u;
          Value v = num_convert_unchecked(value_f64((f64)(i64)seed * ldexp(1, -(int)(seed >> 7 & 127))), other);
          if (dtype_kind(other) == DK_INT) v = num_convert_unchecked(value_i64((i64)(seed >> (seed & 63))), other);
          num_store((char *)from + i * dtype_bytes(other), other, v);
        }
        assert_non_null(strips->convert[other][half]);
        assert_int_equal(strips->convert[other][half](to, from, from, 1000), 0);
        for (u32 i = 0; i < 1000; i++) {
          Value v = num_convert_unchecked(num_load((char *)from + i * dtype_bytes(other), other), half);
          assert_true(num_load((char *)to + i * 2, half).bits == v.bits);
        }
        if (dtype_kind(other) < DK_FLOAT && other != DT_bool) continue; /* what does not fit fails */
        assert_non_null(strips->convert[half][other]);
        assert_int_equal(strips->convert[half][other](from, to, to, 1000), 0);
        for (u32 i = 0; i < 1000; i++) {
          Value v = num_convert_unchecked(num_load((char *)to + i * 2, half), other);
          assert_true(num_load((char *)from + i * dtype_bytes(other), other).bits == v.bits);
        }
      }
  }
  weft_free(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(halves_are_nearest),
                                     cmocka_unit_test(halves_in_arrays),
                                     cmocka_unit_test(every_operation_on_every_dtype)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
