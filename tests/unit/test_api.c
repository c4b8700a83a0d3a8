/* test_api.c — hosts that break the rules of weft.h, and host functions that fail: a status, never a crash. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/weft.h"

static int setup(void **state) {
  *state = weft_new(NULL);
  return *state ? 0 : -1;
}
static int teardown(void **state) {
  weft_free(*state);
  return 0;
}

static void gives(WeftVM *vm, const char *program, const char *want) {
  WeftValue *v = NULL;
  assert_int_equal(weft_eval(vm, program, "test", &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), want);
  weft_release(vm, v);
}

static void fails(WeftVM *vm, const char *program, const char *kind, const char *message) {
  WeftValue *v = NULL;
  assert_int_equal(weft_eval(vm, program, "test", &v), WEFT_ERROR);
  assert_null(v);
  assert_string_equal(weft_error_kind(vm), kind);
  assert_non_null(strstr(weft_error_message(vm), message));
}

/* What a host holds when weft_new refused. */
static void no_vm(void **state) {
  (void)state;
  WeftValue *v = NULL;
  double d;
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backend = "nonsense";
  assert_null(weft_new(&o));
  weft_free(NULL);
  weft_interrupt(NULL);
  weft_release(NULL, NULL);
  weft_set_limits(NULL, 0, 0, 0);
  weft_set_args(NULL, 0, NULL);
  assert_int_equal(weft_exit_code(NULL), -1);
  assert_int_equal(weft_eval(NULL, "1", "test", &v), WEFT_MISUSE);
  assert_int_equal(weft_int(NULL, 1, &v), WEFT_MISUSE);
  assert_string_equal(weft_error_text(NULL), "");
  assert_string_equal(weft_error_message(NULL), "");
  assert_string_equal(weft_error_kind(NULL), "");
  assert_null(weft_stat_at(NULL, 0, &d));
}

static void wrong_arguments(void **state) {
  WeftVM *vm = *state;
  WeftValue *v = NULL, *n = NULL;
  double d;
  int64_t i;
  assert_int_equal(weft_int(vm, 3, &n), WEFT_OK);
  assert_int_equal(weft_eval(vm, NULL, "test", &v), WEFT_MISUSE);
  assert_int_equal(weft_load_file(vm, NULL, &v), WEFT_MISUSE);
  assert_int_equal(weft_load_file(vm, "/nonexistent/file", &v), WEFT_ERROR);
  assert_int_equal(weft_call(vm, NULL, NULL, 0, &v), WEFT_MISUSE);
  assert_int_equal(weft_call(vm, n, NULL, 1, &v), WEFT_MISUSE);
  assert_int_equal(weft_call(vm, n, NULL, 0, &v), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "type");
  const char *const bad_names[] = {"", "a b", "let", "1a", "a.b"};
  for (size_t k = 0; k < sizeof bad_names / sizeof bad_names[0]; k++) assert_int_equal(weft_set_global(vm, bad_names[k], n), WEFT_MISUSE);
  assert_int_equal(weft_set_global(vm, NULL, n), WEFT_MISUSE);
  assert_int_equal(weft_set_global(vm, "größe", n), WEFT_OK);
  gives(vm, "größe + 1", "4");
  assert_int_equal(weft_get_global(vm, "nowhere", &v), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "name");
  assert_int_equal(weft_as_float(vm, NULL, &d), WEFT_MISUSE);
  assert_int_equal(weft_float(vm, NAN, &v), WEFT_OK);
  assert_int_equal(weft_as_int(vm, v, &i), WEFT_ERROR);
  weft_release(vm, v);
  assert_int_equal(weft_text(vm, "\xff", 1, &v), WEFT_ERROR);
  assert_int_equal(weft_text(vm, NULL, 5, &v), WEFT_MISUSE);
  assert_int_equal(weft_eval(vm, "\"\xc3\"", "test", &v), WEFT_ERROR);
  WeftValue *items[2] = {n, NULL};
  assert_int_equal(weft_list(vm, items, 2, &v), WEFT_MISUSE);
  assert_int_equal(weft_list(vm, NULL, 2, &v), WEFT_MISUSE);
  assert_null(weft_dump(vm, n, "nonsense"));
  weft_release(vm, n);
}

static void wrong_arrays(void **state) {
  WeftVM *vm = *state;
  WeftValue *v = NULL;
  double data[3] = {1, 2, 3};
  const int64_t two[1] = {2}, negative[2] = {2, -1}, huge[2] = {(int64_t)1 << 40, (int64_t)1 << 40};
  assert_int_equal(weft_array(vm, WEFT_F64, 2, negative, data, &v), WEFT_MISUSE);
  assert_int_equal(weft_array(vm, WEFT_F64, 2, huge, data, &v), WEFT_ERROR);
  assert_int_equal(weft_array(vm, (WeftDType)99, 1, two, data, &v), WEFT_MISUSE);
  assert_int_equal(weft_array(vm, WEFT_F64, -1, two, data, &v), WEFT_MISUSE);
  assert_int_equal(weft_array(vm, WEFT_F64, WEFT_MAX_RANK + 1, two, data, &v), WEFT_MISUSE);
  assert_int_equal(weft_array(vm, WEFT_F64, 1, NULL, data, &v), WEFT_MISUSE);
  assert_int_equal(weft_array(vm, WEFT_F64, 1, two, NULL, &v), WEFT_MISUSE);
  assert_int_equal(weft_array_lend(vm, WEFT_F64, 1, two, (char *)data + 1, NULL, NULL, &v), WEFT_MISUSE);
  assert_int_equal(weft_array_lend(vm, WEFT_F64, 1, two, data + 1, NULL, NULL, &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "[2.0, 3.0]");
  assert_int_equal(weft_array_view(vm, v, NULL), WEFT_MISUSE);
  weft_release(vm, v);
}

static WeftStatus says_nothing(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)vm, (void)args, (void)count, (void)result;
  return *(WeftStatus *)context;
}
static WeftStatus calls_itself(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context, (void)args, (void)count;
  return weft_eval(vm, "1 + again()", "inner", result);
}
static WeftStatus swallows(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context, (void)args, (void)count;
  if (weft_eval(vm, "[1][5]", "inner", result) != WEFT_ERROR) return WEFT_MISUSE;
  return weft_int(vm, 3, result);
}

static void host_functions(void **state) {
  WeftVM *vm = *state;
  WeftStatus error = WEFT_ERROR, well = WEFT_OK, odd = (WeftStatus)77;
  assert_int_equal(weft_define(vm, "a b", says_nothing, &well, NULL), WEFT_MISUSE);
  assert_int_equal(weft_define(vm, "none", NULL, NULL, NULL), WEFT_MISUSE);
  assert_int_equal(weft_define(vm, "none", says_nothing, &well, NULL), WEFT_OK);
  assert_int_equal(weft_define(vm, "bad", says_nothing, &error, NULL), WEFT_OK);
  assert_int_equal(weft_define(vm, "odd", says_nothing, &odd, NULL), WEFT_OK);
  assert_int_equal(weft_define(vm, "again", calls_itself, NULL, NULL), WEFT_OK);
  assert_int_equal(weft_define(vm, "swallow", swallows, NULL, NULL), WEFT_OK);
  gives(vm, "none()", "nil");
  fails(vm, "bad()", "host", "bad: the host function failed");
  fails(vm, "odd()", "host", "odd: the host function failed");
  fails(vm, "again()", "limit", "too deep a recursion");
  gives(vm, "swallow()", "3");
  gives(vm, "try { bad() } catch e { e.kind }", "\"host\"");
  fails(vm, "fn f(x) { let s = 0.0; for i in 0..1000 { s += x; if i == 500 { bad() } }; s }; f(1.0)", "host", "bad");
}

static void limits_come_and_go(void **state) {
  WeftVM *vm = *state;
  weft_set_limits(vm, 0, 1000, 0);
  fails(vm, "while true {}", "limit", "fuel");
  weft_set_limits(vm, 0, 0, NAN);
  gives(vm, "let s = 0; for i in 0..5000 { s += i }; s", "12497500");
  weft_set_limits(vm, 0, 0, -1.0);
  gives(vm, "1", "1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_vm),
      cmocka_unit_test_setup_teardown(wrong_arguments, setup, teardown),
      cmocka_unit_test_setup_teardown(wrong_arrays, setup, teardown),
      cmocka_unit_test_setup_teardown(host_functions, setup, teardown),
      cmocka_unit_test_setup_teardown(limits_come_and_go, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
