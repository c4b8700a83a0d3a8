/* test_messages.c — errors as a host shows them: calls that repeat are folded, and a host function that reads what
 * a derivative is taken of is told so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/weft.h"

static int setup(void **state) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  return (*state = weft_new(&o)) ? 0 : -1;
}
static int teardown(void **state) {
  weft_free(*state);
  return 0;
}

static const char *failure(WeftVM *vm, const char *program) {
  assert_int_equal(weft_eval(vm, program, "test", NULL), WEFT_ERROR);
  return weft_error_text(vm);
}

static unsigned lines(const char *text) {
  unsigned n = 0;
  for (; *text; text++) n += *text == '\n';
  return n;
}

static void calls_that_repeat_are_folded(void **state) {
  const char *text = failure(*state,
                             "fn deep(k) = if k == 0 { error(\"bottom\") } else { 1 + deep(k - 1) }\ndeep(12345)");
  assert_non_null(strstr(text, "  in deep, called at test:1:55\n  … 12,344 more\n  in deep, called at test:2:1\n"));
  assert_true(lines(text) < 10);
  text = failure(*state, "deep(1)");
  assert_null(strstr(text, "more"));
}

static void a_long_trace_of_different_calls_is_cut_in_the_middle(void **state) {
  const char *text = failure(*state, "fn a(k) = if k == 0 { error(\"x\") } else { 1 + b(k - 1) }\n"
                                     "fn b(k) = if k == 0 { error(\"x\") } else { 1 + a(k - 1) }\na(2000)");
  assert_non_null(strstr(text, "  … 1,981 more calls\n"));
  assert_true(lines(text) < 30);
}

static WeftStatus half(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  double x;
  (void)context;
  (void)count;
  if (weft_as_float(vm, args[0], &x) != WEFT_OK) return WEFT_ERROR;
  return weft_float(vm, x * 0.5, result);
}

static void a_derivative_through_a_host_function_says_so(void **state) {
  assert_int_equal(weft_define(*state, "half", half, NULL, NULL), WEFT_OK);
  const char *text = failure(*state, "grad(x => x * half(x))(2.0)");
  assert_non_null(strstr(text, "a host function reads a value while a derivative is taken of it; stop_gradient(x)"));
  assert_int_equal(weft_eval(*state, "assert(grad(x => x * half(stop_gradient(x)))(2.0) == 1.0)", "test", NULL),
                   WEFT_OK);
}

static void what_a_derivative_leaves_behind_is_a_number_to_the_host(void **state) {
  WeftValue *g = NULL;
  double x = 0;
  assert_int_equal(weft_eval(*state, "let g = 0.0\nlet d = grad(z => { g = z * 2; z * z })(3.0)", "test", NULL),
                   WEFT_OK);
  assert_int_equal(weft_get_global(*state, "g", &g), WEFT_OK);
  assert_int_equal(weft_as_float(*state, g, &x), WEFT_OK);
  assert_true(x == 6.0);
  weft_release(*state, g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(calls_that_repeat_are_folded, setup, teardown),
    cmocka_unit_test_setup_teardown(a_long_trace_of_different_calls_is_cut_in_the_middle, setup, teardown),
    cmocka_unit_test_setup_teardown(a_derivative_through_a_host_function_says_so, setup, teardown),
    cmocka_unit_test_setup_teardown(what_a_derivative_leaves_behind_is_a_number_to_the_host, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
