/* test_capture.c — what is captured, looked at in the graphs themselves (weft_dump): inputs, operands, signatures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/weft.h"

static int setup(void **state) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.hot = 0;
  return (*state = weft_new(&o)) ? 0 : -1;
}
static int teardown(void **state) {
  weft_free(*state);
  return 0;
}


/* Runs the program; the graphs of its function f, malloc'ed. */
static char *graphs(WeftVM *vm, const char *program) {
  WeftValue *f = NULL;
  if (weft_eval(vm, program, "test", NULL) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
  assert_int_equal(weft_get_global(vm, "f", &f), WEFT_OK);
  char *text = strdup(weft_dump(vm, f, "graph"));
  weft_release(vm, f);
  assert_non_null(text);
  if (getenv("SHOW_GRAPHS")) fputs(text, stderr);
  return text;
}

static int count(const char *text, const char *part) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, part)); n++) at += strlen(part);
  return n;
}

/* ---- inputs -------------------------------------------------------------------------------------- */

static void A8_a_source_read_twice_is_one_input(void **state) {
  char *g = graphs(*state, "let w = arange(3.0); fn f(p) = w * p.a + (w - p.a); f({a: ones(3)})");
  assert_int_equal(count(g, "\nin %"), 2);
  assert_int_equal(count(g, "= global \"w\""), 1);
  assert_int_equal(count(g, "= arg0.a"), 1);
  free(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(A8_a_source_read_twice_is_one_input, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
