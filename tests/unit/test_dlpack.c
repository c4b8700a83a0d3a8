/* test_dlpack.c — arrays in and out of the API: lent with strides, copied out, by DLPack; weak numbers. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/dlpack.h"
#include "api/weft.h"

static int setup(void **state) {
  *state = weft_new(NULL);
  return *state ? 0 : -1;
}
static int teardown(void **state) {
  weft_free(*state);
  return 0;
}

static WeftValue *eval(WeftVM *vm, const char *program) {
  WeftValue *v = NULL;
  assert_int_equal(weft_eval(vm, program, "test", &v), WEFT_OK);
  return v;
}

/* f(x) as text. */
static void gives(WeftVM *vm, const char *f, WeftValue *x, const char *want) {
  WeftValue *fn = eval(vm, f), *y = NULL;
  assert_int_equal(weft_call(vm, fn, &x, 1, &y), WEFT_OK);
  assert_string_equal(weft_show(vm, y), want);
  weft_release(vm, y);
  weft_release(vm, fn);
}

static void refuses(WeftVM *vm, WeftStatus status, const char *kind, const char *message) {
  assert_int_equal(status, WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), kind);
  assert_non_null(strstr(weft_error_message(vm), message));
}

static int released;
static void count_release(void *context, void *data) {
  (void)data;
  released++;
  if (context) *(int *)context += 1;
}

/* ---- lending ---------------------------------------------------------------------------------------------- */

static void lends_with_strides(void **state) {
  WeftVM *vm = *state;
  static const float data[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  WeftValue *x;
  int mine = 0;
  released = 0;
  assert_int_equal(weft_array_lend_strided(vm, WEFT_F32, 2, (int64_t[]){4, 3}, (int64_t[]){1, 4}, data, count_release,
                                           &mine, &x), WEFT_OK); /* transposed */
  gives(vm, "x => x[1]", x, "[1.0, 5.0, 9.0]");
  gives(vm, "x => sum(x @ x.T)", x, "1964.0");
  WeftArray look;
  assert_int_equal(weft_array_view(vm, x, &look), WEFT_OK);
  assert_ptr_equal(look.data, data);
  assert_int_equal(look.strides[0], 1);
  assert_false(weft_array_unshared(vm, x)); /* the host's memory */
  gives(vm, "x => { let y = x; y[0, 0] = 9.0; y[0, 0] + x[0, 0] }", x, "9.0");
  assert_true(data[0] == 0.0f);
  weft_release(vm, x);
  assert_int_equal(mine, 1);
  /* backwards, and one row again and again */
  assert_int_equal(weft_array_lend_strided(vm, WEFT_F32, 1, (int64_t[]){4}, (int64_t[]){-3}, data + 11, NULL, NULL, &x),
                   WEFT_OK);
  gives(vm, "x => x", x, "[11.0, 8.0, 5.0, 2.0]");
  weft_release(vm, x);
  assert_int_equal(weft_array_lend_strided(vm, WEFT_F32, 2, (int64_t[]){3, 2}, (int64_t[]){0, 1}, data, NULL, NULL, &x),
                   WEFT_OK);
  gives(vm, "x => x + 1", x, "[[1.0, 2.0],\n [1.0, 2.0],\n [1.0, 2.0]]");
  weft_release(vm, x);
  assert_int_equal(weft_array_lend_strided(vm, WEFT_F32, 2, (int64_t[]){0, 2}, (int64_t[]){9, 1}, NULL, NULL, NULL, &x),
                   WEFT_OK);
  gives(vm, "x => x.shape", x, "(0, 2)");
  weft_release(vm, x);
}

static void lends_nothing_wrong(void **state) {
  WeftVM *vm = *state;
  double data[4] = {0};
  WeftValue *x = NULL;
  released = 0;
  assert_int_equal(weft_array_lend_strided(vm, WEFT_F64, 1, (int64_t[]){2}, NULL, (char *)data + 1, count_release, NULL,
                                           &x), WEFT_MISUSE);
  assert_int_equal(weft_array_lend_strided(vm, WEFT_F64, 1, (int64_t[]){-1}, NULL, data, count_release, NULL, &x),
                   WEFT_MISUSE);
  refuses(vm, weft_array_lend_strided(vm, WEFT_F64, 2, (int64_t[]){1 << 30, 1 << 30}, (int64_t[]){INT64_MAX / 2, 1},
                                      data, count_release, NULL, &x), "shape", "too large");
  assert_int_equal(released, 0);
  assert_null(x);
}

/* ---- weak numbers and names --------------------------------------------------------------------------------- */

static void weak_numbers(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = eval(vm, "(x, s) => x * s"), *x = eval(vm, "f32([1, 2])"), *args[2] = {x, NULL}, *y;
  WeftStatus (*const make[])(WeftVM *, double, WeftValue **) = {weft_weak_float, weft_float};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(make[i](vm, 0.5, &args[1]), WEFT_OK);
    assert_int_equal(weft_is_weak(vm, args[1]), i == 0);
    assert_int_equal(weft_call(vm, f, args, 2, &y), WEFT_OK);
    assert_string_equal(weft_describe(vm, y), i == 0 ? "f32[2]" : "f64[2]");
    weft_release(vm, args[1]);
    weft_release(vm, y);
  }
  assert_int_equal(weft_weak_int(vm, 3, &args[1]), WEFT_OK);
  assert_int_equal(weft_call(vm, f, args, 2, &y), WEFT_OK);
  assert_string_equal(weft_describe(vm, y), "f32[2]");
  weft_release(vm, args[1]);
  weft_release(vm, y);
  assert_int_equal(weft_weak_complex(vm, 1, 2, &args[1]), WEFT_OK);
  assert_int_equal(weft_call(vm, f, args, 2, &y), WEFT_OK);
  assert_string_equal(weft_describe(vm, y), "c64[2]");
  weft_release(vm, args[1]);
  weft_release(vm, y);
  assert_false(weft_is_weak(vm, x));
  weft_release(vm, x);
  weft_release(vm, f);
}

static void names_of_arguments(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = eval(vm, "sum"), *x = eval(vm, "[[1, 2], [3, 4]]"), *one, *y = NULL;
  assert_int_equal(weft_weak_int(vm, 1, &one), WEFT_OK);
  WeftValue *args[2] = {x, one};
  assert_int_equal(weft_call_named(vm, f, args, 2, (const char *[]){"axis"}, 1, &y), WEFT_OK);
  assert_string_equal(weft_show(vm, y), "[3, 7]");
  weft_release(vm, y);
  assert_int_equal(weft_call_named(vm, f, args, 2, (const char *[]){"axes"}, 1, &y), WEFT_ERROR);
  assert_non_null(strstr(weft_error_message(vm), "axis"));
  assert_int_equal(weft_call_named(vm, f, args, 2, (const char *[]){"a b"}, 1, &y), WEFT_MISUSE);
  assert_int_equal(weft_call_named(vm, f, args, 1, (const char *[]){"axis", "x"}, 2, &y), WEFT_MISUSE);
  weft_release(vm, one);
  weft_release(vm, x);
  weft_release(vm, f);
}

static WeftStatus twice(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  double d;
  (void)context;
  if (count != 1 || weft_as_float(vm, args[0], &d) != WEFT_OK) return WEFT_ERROR;
  return weft_float(vm, 2 * d, result);
}
static void gone(void *context) { ++*(int *)context; }

static void functions_as_values(void **state) {
  WeftVM *vm = *state;
  WeftValue *f, *map = eval(vm, "(f, n) => f(n) + f(1)"), *n, *y;
  int freed = 0;
  assert_int_equal(weft_function(vm, "twice", twice, &freed, gone, &f), WEFT_OK);
  assert_int_equal(weft_int(vm, 4, &n), WEFT_OK);
  assert_int_equal(weft_call(vm, map, (WeftValue *[]){f, n}, 2, &y), WEFT_OK);
  assert_string_equal(weft_show(vm, y), "10.0");
  assert_int_equal(weft_get_global(vm, "twice", &y), WEFT_ERROR);
  assert_int_equal(weft_function(vm, "twice", NULL, &freed, gone, &y), WEFT_MISUSE);
  assert_int_equal(freed, 0);
  weft_release(vm, f);
  assert_int_equal(freed, 1);
}

/* ---- copying out ---------------------------------------------------------------------------------------------- */

static void copies_out(void **state) {
  WeftVM *vm = *state;
  WeftValue *x = eval(vm, "f32([[1, 2, 3], [4, 5, 6]]).T");
  float f[6];
  double d[6];
  assert_int_equal(weft_array_copy_out(vm, x, WEFT_F32, f, sizeof f), WEFT_OK);
  assert_int_equal(weft_array_copy_out(vm, x, WEFT_F64, d, sizeof d), WEFT_OK);
  for (int i = 0; i < 6; i++) {
    assert_true(f[i] == (float)(i % 2 * 3 + i / 2 + 1));
    assert_true(d[i] == (double)f[i]);
  }
  refuses(vm, weft_array_copy_out(vm, x, WEFT_F16, f, 12), "type", "f32 is not copied out as f16");
  refuses(vm, weft_array_copy_out(vm, x, WEFT_F32, f, 20), "shape", "20 bytes, the array needs 24");
  weft_release(vm, x);
  /* every pair of dtypes: a pair that is allowed brings the extremes over, one that is not loses something */
  static const char *const extremes[] = {"",
    "bool([0, 1])", "u8([0, 255])", "i32([-2147483648, 2147483647])",
    "i64([-9223372036854775808, 9223372036854775807])",
    "u32([0, 4294967295])", "u64([0, 18446744073709551615])", "f16([65504, 0.000000059604645])",
    "bf16([3e38, 1.0])", "f32([3e38, 16777215])", "f64([1e308, 0.1])",
    "c64([3e38 + 1j, 2])", "c128([1e308 + 1j, 0.1])"};
  int allowed = 0;
  for (int from = WEFT_BOOL; from <= WEFT_C128; from++)
    for (int to = WEFT_BOOL; to <= WEFT_C128; to++) {
      char bytes[32];
      WeftArray look;
      x = eval(vm, extremes[from]);
      assert_int_equal(weft_array_view(vm, x, &look), WEFT_OK);
      assert_int_equal(look.dtype, from);
      static const size_t size[] = {0, 1, 1, 4, 8, 4, 8, 2, 2, 4, 8, 8, 16};
      if (weft_array_copy_out(vm, x, (WeftDType)to, bytes, 2 * size[to]) == WEFT_OK) {
        WeftValue *y, *same, *equal = eval(vm, "(x, y) => all(c128(x) == c128(y)) and all(x == y)");
        assert_int_equal(weft_array(vm, (WeftDType)to, 1, (int64_t[]){2}, bytes, &y), WEFT_OK);
        assert_int_equal(weft_call(vm, equal, (WeftValue *[]){x, y}, 2, &same), WEFT_OK);
        assert_string_equal(weft_show(vm, same), "true");
        weft_release(vm, same);
        weft_release(vm, y);
        weft_release(vm, equal);
        allowed++;
      } else {
        assert_string_equal(weft_error_kind(vm), "type");
        assert_true(from != to);
      }
      weft_release(vm, x);
    }
  assert_int_equal(allowed, 53); /* bool 12, u8 11, i32 4, u32 5, f16 5, bf16 5, f32 4, f64 2, c64 2, themselves 3 */
  WeftValue *text = eval(vm, "\"a\"");
  refuses(vm, weft_array_copy_out(vm, text, WEFT_F64, d, 8), "type", "a number or array");
  WeftValue *n = eval(vm, "3");
  int64_t i = 0;
  assert_int_equal(weft_array_copy_out(vm, n, WEFT_I64, &i, 8), WEFT_OK);
  assert_int_equal(i, 3);
  assert_int_equal(weft_array_copy_out(vm, n, (WeftDType)77, &i, 8), WEFT_MISUSE);
  assert_int_equal(weft_array_copy_out(vm, n, WEFT_I64, NULL, 8), WEFT_MISUSE);
}

static void copies_into(void **state) {
  WeftVM *vm = *state;
  WeftValue *x = eval(vm, "[[1.0, 2.0], [3.0, 4.0]]");
  double buffer[8] = {0};
  WeftArray to = {.dtype = WEFT_F64, .rank = 2, .shape = {2, 2}, .strides = {-4, 2}, .data = buffer + 4};
  assert_int_equal(weft_array_copy_into(vm, x, &to), WEFT_OK);
  const double want[8] = {3, 0, 4, 0, 1, 0, 2, 0};
  assert_memory_equal(buffer, want, sizeof want);
  to.shape[1] = 1;
  refuses(vm, weft_array_copy_into(vm, x, &to), "shape", "of shape (2, 1), the array of (2, 2)");
  to.shape[1] = 2;
  to.dtype = WEFT_I64;
  refuses(vm, weft_array_copy_into(vm, x, &to), "type", "dtype i64, the array of f64");
  to.dtype = WEFT_F64;
  to.strides[0] = 0;
  assert_int_equal(weft_array_copy_into(vm, x, &to), WEFT_MISUSE);
  assert_memory_equal(buffer, want, sizeof want);
  weft_release(vm, x);
  /* onto the memory that it shows, backwards */
  for (int i = 0; i < 8; i++) buffer[i] = i;
  assert_int_equal(weft_array_lend_strided(vm, WEFT_F64, 1, (int64_t[]){8}, (int64_t[]){-1}, buffer + 7, NULL, NULL,
                                           &x), WEFT_OK);
  to = (WeftArray){.dtype = WEFT_F64, .rank = 1, .shape = {8}, .strides = {1}, .data = buffer};
  assert_int_equal(weft_array_copy_into(vm, x, &to), WEFT_OK);
  for (int i = 0; i < 8; i++) assert_true(buffer[i] == 7 - i);
  weft_release(vm, x);
}

/* ---- DLPack -------------------------------------------------------------------------------------------------- */

typedef struct Made { /* a tensor of a producer, with the data inside */
  union {
    struct DLManagedTensor old;
    struct DLManagedTensorVersioned versioned;
  };
  int64_t shape[2], strides[2];
  double data[8];
  int deleted;
} Made;

static void delete_old(struct DLManagedTensor *m) { ((Made *)m->manager)->deleted++; }
static void delete_versioned(struct DLManagedTensorVersioned *m) { ((Made *)m->manager)->deleted++; }

static DlTensor tensor_of(Made *m) {
  memcpy(m->shape, (int64_t[]){2, 3}, sizeof m->shape);
  memcpy(m->strides, (int64_t[]){4, 1}, sizeof m->strides);
  for (int i = 0; i < 8; i++) m->data[i] = i;
  m->deleted = 0;
  return (DlTensor){.data = m->data, .device = {DLPACK_CPU, 0}, .rank = 2, .type = {DLPACK_FLOAT, 64, 1},
                    .shape = m->shape, .strides = m->strides, .offset = 8};
}
static struct DLManagedTensor *make_old(Made *m) {
  m->old = (struct DLManagedTensor){.tensor = tensor_of(m), .manager = m, .deleter = delete_old};
  return &m->old;
}
static struct DLManagedTensorVersioned *make_versioned(Made *m) {
  m->versioned = (struct DLManagedTensorVersioned){.major = 1, .minor = 1, .manager = m, .deleter = delete_versioned,
                                                   .flags = DLPACK_READ_ONLY, .tensor = tensor_of(m)};
  return &m->versioned;
}

static void imports(void **state) {
  WeftVM *vm = *state;
  Made m;
  for (int versioned = 0; versioned < 2; versioned++) {
    WeftValue *x, *y;
    assert_int_equal(versioned ? weft_dlpack_import(vm, make_versioned(&m), &x)
                               : weft_dlpack_import_unversioned(vm, make_old(&m), &x), WEFT_OK);
    WeftArray look;
    assert_int_equal(weft_array_view(vm, x, &look), WEFT_OK);
    assert_ptr_equal(look.data, m.data + 1);
    gives(vm, "x => x", x, "[[1.0, 2.0, 3.0],\n [5.0, 6.0, 7.0]]");
    WeftValue *f = eval(vm, "x => x[1]");
    assert_int_equal(weft_call(vm, f, &x, 1, &y), WEFT_OK);
    weft_release(vm, x);
    assert_int_equal(m.deleted, 0); /* a view of it lives */
    weft_release(vm, y);
    assert_int_equal(m.deleted, 1);
    weft_release(vm, f);
  }
  /* no strides, no deleter */
  WeftValue *x;
  make_old(&m);
  m.old.tensor.strides = NULL;
  m.old.deleter = NULL;
  assert_int_equal(weft_dlpack_import_unversioned(vm, &m.old, &x), WEFT_OK);
  gives(vm, "x => x", x, "[[1.0, 2.0, 3.0],\n [4.0, 5.0, 6.0]]");
  weft_release(vm, x);
}

static void refuses_tensors(void **state) {
  WeftVM *vm = *state;
  Made m;
  WeftValue *x = NULL;
  static const struct {
    DlType type;
    const char *why;
  } types[] = {{{DLPACK_INT, 16, 1}, "dtype int16"}, {{DLPACK_FLOAT, 8, 1}, "dtype float8"},
               {{DLPACK_FLOAT, 64, 2}, "lanes"}, {{DLPACK_BFLOAT, 32, 1}, "dtype bfloat32"},
               {{9, 8, 1}, "dtype code 9, 8 bits"}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    make_versioned(&m)->tensor.type = types[i].type;
    refuses(vm, weft_dlpack_import(vm, &m.versioned, &x), "unsupported", types[i].why);
  }
  make_versioned(&m)->major = 2;
  refuses(vm, weft_dlpack_import(vm, &m.versioned, &x), "unsupported", "DLPack 2.1");
  make_versioned(&m)->tensor.device.type = DLPACK_CUDA;
  refuses(vm, weft_dlpack_import(vm, &m.versioned, &x), "unsupported", "copy it to the processor");
  make_versioned(&m)->tensor.offset = 4;
  refuses(vm, weft_dlpack_import(vm, &m.versioned, &x), "unsupported", "not aligned to 8 bytes");
  make_versioned(&m)->tensor.rank = 17;
  refuses(vm, weft_dlpack_import(vm, &m.versioned, &x), "unsupported", "rank 17");
  make_versioned(&m);
  m.shape[0] = -1;
  refuses(vm, weft_dlpack_import(vm, &m.versioned, &x), "unsupported", "negative size");
  assert_int_equal(m.deleted, 0);
  assert_null(x);
  assert_int_equal(weft_dlpack_import(vm, NULL, &x), WEFT_MISUSE);
  assert_int_equal(weft_dlpack_import_unversioned(vm, NULL, &x), WEFT_MISUSE);
}

static void exports_every_dtype(void **state) {
  WeftVM *vm = *state;
  static const char *const programs[] = {"bool([0, 1])", "u8([1, 2])", "i32([1, 2])", "[1, 2]", "u32([1, 2])",
                                         "u64([1, 2])", "f16([1, 2])", "bf16([1, 2])", "f32([1, 2])", "[1.0, 2.0]",
                                         "c64([1, 2])", "c128([1, 2])"};
  static const DlType types[] = {{6, 8, 1}, {1, 8, 1}, {0, 32, 1}, {0, 64, 1}, {1, 32, 1}, {1, 64, 1}, {2, 16, 1},
                                 {4, 16, 1}, {2, 32, 1}, {2, 64, 1}, {5, 64, 1}, {5, 128, 1}};
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    WeftValue *x = eval(vm, programs[i]), *y;
    struct DLManagedTensorVersioned *t;
    WeftArray look, again;
    assert_int_equal(weft_dlpack_export(vm, x, false, &t), WEFT_OK);
    assert_memory_equal(&t->tensor.type, &types[i], sizeof types[i]);
    assert_int_equal(t->major, 1);
    assert_int_equal(t->flags, DLPACK_READ_ONLY);
    assert_int_equal(weft_array_view(vm, x, &look), WEFT_OK);
    assert_ptr_equal(t->tensor.data, look.data);
    /* and in again */
    assert_int_equal(weft_dlpack_import(vm, t, &y), WEFT_OK);
    assert_int_equal(weft_array_view(vm, y, &again), WEFT_OK);
    assert_ptr_equal(again.data, look.data);
    assert_string_equal(weft_describe(vm, y), weft_describe(vm, x));
    weft_release(vm, x);
    weft_release(vm, y);
  }
}

static void exports_views_and_numbers(void **state) {
  WeftVM *vm = *state;
  WeftValue *x = eval(vm, "reshape(arange(6.0), (2, 3)).T[::-1]");
  struct DLManagedTensorVersioned *t;
  assert_int_equal(weft_dlpack_export(vm, x, false, &t), WEFT_OK);
  assert_int_equal(t->tensor.rank, 2);
  assert_int_equal(t->tensor.shape[0], 3);
  assert_int_equal(t->tensor.strides[0], -1);
  assert_int_equal(t->tensor.strides[1], 3);
  assert_true(((double *)t->tensor.data)[0] == 2);
  t->deleter(t);
  assert_int_equal(weft_dlpack_export(vm, x, true, &t), WEFT_OK);
  assert_int_equal(t->flags, DLPACK_COPIED);
  assert_int_equal(t->tensor.strides[0], 2);
  assert_true(((double *)t->tensor.data)[1] == 5);
  ((double *)t->tensor.data)[1] = 77;
  t->deleter(t);
  gives(vm, "x => x", x, "[[2.0, 5.0],\n [1.0, 4.0],\n [0.0, 3.0]]");
  WeftValue *n = eval(vm, "2.5"), *text = eval(vm, "\"t\"");
  assert_int_equal(weft_dlpack_export(vm, n, false, &t), WEFT_OK);
  assert_int_equal(t->tensor.rank, 0);
  assert_true(*(double *)t->tensor.data == 2.5);
  t->deleter(t);
  refuses(vm, weft_dlpack_export(vm, text, false, &t), "type", "a number or array");
  assert_null(t);
}

/* Before version 1 nothing says that the data must not be written: nobody else may hold it. */
static void unversioned_is_unshared(void **state) {
  WeftVM *vm = *state;
  struct DLManagedTensor *t;
  WeftValue *x = eval(vm, "let kept = arange(1000.0)\nkept");
  assert_false(weft_array_unshared(vm, x));
  refuses(vm, weft_dlpack_export_unversioned(vm, x, false, &t), "unsupported", "ask for a copy");
  assert_int_equal(weft_dlpack_export_unversioned(vm, x, true, &t), WEFT_OK);
  ((double *)t->tensor.data)[0] = 9;
  gives(vm, "x => x[0]", x, "0.0");
  t->deleter(t);
  weft_release(vm, x);
  x = eval(vm, "kept + 1");
  assert_true(weft_array_unshared(vm, x));
  assert_int_equal(weft_dlpack_export_unversioned(vm, x, false, &t), WEFT_OK);
  WeftArray look;
  assert_int_equal(weft_array_view(vm, x, &look), WEFT_OK);
  assert_ptr_equal(t->tensor.data, look.data);
  assert_false(weft_array_unshared(vm, x)); /* the consumer holds it */
  t->deleter(t);
  assert_true(weft_array_unshared(vm, x));
}

static void *delete_elsewhere(void *tensor) {
  struct DLManagedTensorVersioned *t = tensor;
  t->deleter(t);
  return NULL;
}

static void deletes_in_another_thread(void **state) {
  WeftVM *vm = *state;
  WeftValue *x = eval(vm, "arange(100000.0)");
  pthread_t threads[8];
  struct DLManagedTensorVersioned *t[8];
  for (int i = 0; i < 8; i++) {
    assert_int_equal(weft_dlpack_export(vm, x, i % 2 == 1, &t[i]), WEFT_OK);
    assert_int_equal(pthread_create(&threads[i], NULL, delete_elsewhere, t[i]), 0);
  }
  for (int i = 0; i < 8; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_true(weft_array_unshared(vm, x));
  weft_release(vm, x);
  weft_release(vm, eval(vm, "sum(arange(100000.0))"));
}

static size_t held;
static void *counted(void *context, void *p, size_t old_size, size_t new_size) {
  (void)context;
  void *q = NULL;
  if (new_size) q = realloc(p, new_size);
  else free(p);
  if (q || !new_size) held += new_size - old_size;
  return q;
}

/* What was exported outlives its VM; the last deleter gives the memory back, in whatever thread. */
static void outlives_the_vm(void **state) {
  (void)state;
  for (int own = 0; own < 2; own++) {
    WeftOptions o = WEFT_OPTIONS_INIT;
    if (own) o.resize = counted;
    held = 0;
    WeftVM *vm = weft_new(&o);
    static double lent[600];
    WeftValue *f, *large = eval(vm, "arange(100000.0)"), *small = eval(vm, "[1.0, 2.0]"), *x;
    int freed = 0, mine = 0;
    lent[599] = 5;
    assert_int_equal(weft_function(vm, "twice", twice, &freed, gone, &f), WEFT_OK);
    assert_int_equal(weft_array_lend(vm, WEFT_F64, 1, (int64_t[]){600}, lent, count_release, &mine, &x), WEFT_OK);
    struct DLManagedTensorVersioned *t[4];
    struct DLManagedTensor *old;
    assert_int_equal(weft_dlpack_export(vm, large, false, &t[0]), WEFT_OK);
    assert_int_equal(weft_dlpack_export(vm, small, false, &t[1]), WEFT_OK);
    assert_int_equal(weft_dlpack_export(vm, x, false, &t[2]), WEFT_OK);
    assert_int_equal(weft_dlpack_export(vm, x, true, &t[3]), WEFT_OK);
    WeftValue *y = eval(vm, "arange(70.0)");
    assert_int_equal(weft_dlpack_export_unversioned(vm, y, false, &old), WEFT_OK);
    t[3]->deleter(t[3]); /* not looked at before the VM goes */
    weft_free(vm);
    assert_int_equal(freed, 1); /* what the host gave comes back at once */
    assert_int_equal(mine, 0);  /* but for what is seen from outside */
    assert_true(((double *)t[0]->tensor.data)[99999] == 99999);
    assert_true(((double *)t[1]->tensor.data)[1] == 2);
    assert_true(((double *)t[2]->tensor.data)[599] == 5);
    assert_true(((double *)old->tensor.data)[69] == 69);
    old->deleter(old);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, delete_elsewhere, t[i]), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(mine, 1);
    assert_int_equal(held, 0);
  }
}

/* ---- memory that is refused ------------------------------------------------------------------------------------- */

static int left; /* growths before all are refused; negative: none is */
static void *refusing(void *context, void *p, size_t old_size, size_t new_size) {
  if (new_size > old_size && left >= 0 && left-- <= 0) {
    left = 0;
    return NULL;
  }
  return counted(context, p, old_size, new_size);
}

/* Everything of this page once; whatever is refused, nothing is lost, and what was given is given back. */
static bool all_of_it(WeftVM *vm, WeftValue *f, WeftValue *x, double *lent, int *given_back) {
  WeftValue *n = NULL, *y = NULL, *g = NULL, *a = NULL, *b = NULL;
  struct DLManagedTensorVersioned *t = NULL;
  struct DLManagedTensor *old = NULL;
  static Made m;
  int freed = 0, mine = 0;
  bool made = false, defined = false, took = false,
       ok = weft_weak_float(vm, 2, &n) == WEFT_OK && weft_weak_complex(vm, 1, 2, &a) == WEFT_OK &&
            weft_call_named(vm, f, (WeftValue *[]){x, n}, 2, (const char *[]){"factor"}, 1, &y) == WEFT_OK &&
            (defined = weft_function(vm, "twice", twice, &freed, gone, &g) == WEFT_OK) &&
            (made = weft_array_lend_strided(vm, WEFT_F64, 1, (int64_t[]){4}, (int64_t[]){2}, lent, count_release,
                                            &mine, &b) == WEFT_OK) &&
            weft_dlpack_export(vm, x, false, &t) == WEFT_OK && weft_dlpack_export_unversioned(vm, x, true, &old) ==
            WEFT_OK;
  m.deleted = 0;
  weft_release(vm, a);
  a = NULL;
  took = ok && weft_dlpack_import(vm, make_versioned(&m), &a) == WEFT_OK;
  ok = took;
  double out[4], want[4] = {0, 2, 4, 6};
  WeftArray to = {.dtype = WEFT_F64, .rank = 1, .shape = {4}, .strides = {1}, .data = lent};
  ok = ok && weft_array_copy_out(vm, b, WEFT_F64, out, sizeof out) == WEFT_OK &&
       weft_array_copy_into(vm, b, &to) == WEFT_OK; /* which overlap: by way of a copy */
  if (ok) assert_memory_equal(out, want, sizeof want);
  if (ok) assert_memory_equal(lent, want, sizeof want);
  for (int i = 0; i < 8; i++) lent[i] = i;
  if (!ok) {
    assert_string_equal(weft_error_kind(vm), "limit");
    assert_int_equal(weft_error_limit(vm), WEFT_LIMIT_MEMORY);
  }
  if (t) t->deleter(t);
  if (old) old->deleter(old);
  WeftValue *const all[] = {n, y, g, a, b};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) weft_release(vm, all[i]);
  assert_int_equal(freed, defined);
  assert_int_equal(mine, made);
  assert_int_equal(m.deleted, took);
  *given_back += freed;
  return ok;
}

static void refused_memory_loses_nothing(void **state) {
  (void)state;
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.resize = refusing;
  o.keep = 1;
  left = -1;
  held = 0;
  WeftVM *vm = weft_new(&o);
  double lent[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  int given_back = 0, refused = 0;
  WeftValue *f = eval(vm, "fn f(x, factor=1) = x * factor\nf"), *x = eval(vm, "arange(5000.0)");
  assert_true(all_of_it(vm, f, x, lent, &given_back)); /* names and size classes are there from now on */
  for (int n = 0; n < 100; n++, refused++) {
    left = n;
    bool ok = all_of_it(vm, f, x, lent, &given_back);
    left = -1;
    if (ok) break;
  }
  assert_in_range(refused, 2, 99);
  assert_true(all_of_it(vm, f, x, lent, &given_back));
  weft_free(vm);
  assert_int_equal(held, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(lends_with_strides, setup, teardown),
    cmocka_unit_test_setup_teardown(lends_nothing_wrong, setup, teardown),
    cmocka_unit_test_setup_teardown(weak_numbers, setup, teardown),
    cmocka_unit_test_setup_teardown(names_of_arguments, setup, teardown),
    cmocka_unit_test_setup_teardown(functions_as_values, setup, teardown),
    cmocka_unit_test_setup_teardown(copies_out, setup, teardown),
    cmocka_unit_test_setup_teardown(copies_into, setup, teardown),
    cmocka_unit_test_setup_teardown(imports, setup, teardown),
    cmocka_unit_test_setup_teardown(refuses_tensors, setup, teardown),
    cmocka_unit_test_setup_teardown(exports_every_dtype, setup, teardown),
    cmocka_unit_test_setup_teardown(exports_views_and_numbers, setup, teardown),
    cmocka_unit_test_setup_teardown(unversioned_is_unshared, setup, teardown),
    cmocka_unit_test_setup_teardown(deletes_in_another_thread, setup, teardown),
    cmocka_unit_test(outlives_the_vm),
    cmocka_unit_test(refused_memory_loses_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
