/* test_capture.c — what is captured, looked at in the graphs themselves (weft_dump): inputs, operands, signatures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "api/weft.h"
#include "tracer/tracer.h"

static int setup(void **state) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.hot = 1;
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

/* ---- bodies ---------------------------------------------------------------------------------------- */

static void A1_a_function_called_twice_stands_twice_in_one_graph(void **state) {
  char *g = graphs(*state, "fn h(x) = exp(x) * 2; fn f(x) = h(x) + h(x + 1); f(ones(3))");
  assert_int_equal(count(g, "= exp "), 2);
  assert_int_equal(count(g, "# f#"), 1);
  assert_int_equal(count(g, " break "), 0);
  free(g);
}

static void A4_one_operand_for_each_level(void **state) {
  char *g = graphs(*state, "fn f(p, x, k) = cond(p > 0, s => fori_loop(0, 3, (i, s) => s * k + k, s), s => s, x); "
                           "f(1.0, ones(3), 2.0)");
  assert_int_equal(count(g, "= arg2"), 1);
  const char *body = strstr(g, "body (");
  if (!body) body = strstr(g, "cond (");
  assert_non_null(body);
  assert_int_equal(count(body, "multiply "), 1);
  free(g);
}

static void A5_what_the_branches_share_stands_first(void **state) {
  char *g = graphs(*state, "fn f(p, x, a, b, c) = cond(p > 0, x => x + b + a, x => x * a - c, x); f(1.0, ones(3), "
                           "ones(3), ones(3), ones(3))");
  /* %2 x, %3 b, %4 a, %5 c: x and a, which both read, then the left's b, then the right's c */
  assert_int_equal(count(g, "(%2 %4 %3 %5) {"), 1);
  free(g);
}

static void A7_nodes_know_their_lines(void **state) {
  char *g = graphs(*state, "fn inner(x) =\n  exp(x)\nfn f(x) =\n  inner(x) + 1\nf(ones(3))");
  assert_int_equal(count(g, "@2:3"), 1);
  assert_int_equal(count(g, "@4:3"), 1);
  free(g);
}

static void A12_a_dead_argument_is_no_input(void **state) {
  char *g = graphs(*state, "fn f(x, y) { let dead = exp(y) * 2; sum(x * 3 + x) }; f(ones(3), ones(2))");
  assert_int_equal(count(g, "exp"), 0);
  assert_int_equal(count(g, "\nin %"), 1);
  free(g);
}

/* ---- speculation ------------------------------------------------------------------------------------- */

static double counter(WeftVM *vm, const char *name) {
  double value = -1;
  const char *at;
  for (unsigned i = 0; (at = weft_stat_at(vm, i, &value)); i++)
    if (strcmp(at, name) == 0) return value;
  fail_msg("no counter %s", name);
  return -1;
}

/* Every step of every trace is undone once: graph, nested bodies, guards, inputs, cells and frames are as before. */
static void A3_a_step_that_is_undone_leaves_nothing(void **state) {
  static const char *const programs[] = {
      "let n = 0; let l = ref(0)\n"
      "fn f(x) { n = n + 1; let s = x * 2; l.value = l.value + n; "
      "if s[0] > 1 { n = n + 2 } else { n = n - 1 }; n = n + 1; sum(s + n) }\n"
      "f(ones(3)); f(zeros(3))",
      "let w = {a: ones(3), b: 2.0}\n"
      "fn f(x, k) { let s = 0.0; for i in 0..k { if x[i] > 1 { s = s + w.b } else { s = s - w.a[i] } }; "
      "scan((c, v) => (c + v * s, c), 0.0, x)[0] }\n"
      "f(arange(3.0), 2)",
      "fn f(p, x) = cond(p > 0, x => fori_loop(0, 3, (i, s) => s + sum(x), 0.0), x => sum(x), x)\nf(1.0, ones(3))",
  };
  (void)state;
  for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
    WeftOptions o = WEFT_OPTIONS_INIT;
    o.hot = 1;
    o.force = "rollback";
    WeftVM *vm = weft_new(&o);
    assert_non_null(vm);
    if (weft_eval(vm, programs[i], "test", NULL) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
    assert_true(counter(vm, "forced") > 10);
    assert_true(counter(vm, "unclean") == 0);
    weft_free(vm);
  }
}

/* ---- modes ------------------------------------------------------------------------------------------- */

static void A14_jit_of_a_function_that_breaks_leaves_the_heat_of_its_caller(void **state) {
  WeftValue *v = NULL;
  WeftVM *vm = weft_new(NULL);
  assert_non_null(vm);
  tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
  (void)state;
  const char *program =
      "fn noisy(x) { let y = sum(x * x + x); print(y); y + 1 }\nfn other(x) = sum(x * 2 + 1)\n"
      "jit(noisy)(arange(3.0)); other(arange(3.0)); (trace.stats(noisy).breaks, trace.stats(other).compiles)";
  if (weft_eval(vm, program, "test", &v) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
  assert_string_equal(weft_show(vm, v), "(1, 0)");
  weft_release(vm, v);
  weft_free(vm);
}

static void run(WeftVM *vm, const char *program) {
  if (weft_eval(vm, program, "test", NULL) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
}

/* A bit of the ambient word that nothing else uses stands for any of its modes. */
static void A13_a_mode_is_one_recompile_and_back_is_a_hit(void **state) {
  WeftVM *w = *state;
  Vm *vm = weft_vm_of(w);
  const u64 mode = (u64)1 << 40;
  run(w, "let x = ones(3); fn f(x) = sum(x * 2 + 1); f(x)");
  double compiles = counter(w, "compiles");
  vm->ambient |= mode;
  run(w, "f(x)");
  assert_true(counter(w, "compiles") > compiles);
  compiles = counter(w, "compiles");
  run(w, "f(x)");
  vm->ambient &= ~mode;
  double misses = counter(w, "misses");
  run(w, "f(x)");
  assert_true(counter(w, "misses") == misses || counter(w, "compiles") == compiles);
}

static void B2_a_text_that_decides_is_guarded_and_the_reason_names_it(void **state) {
  WeftValue *v = NULL;
  WeftVM *vm = weft_new(NULL);
  assert_non_null(vm);
  tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
  (void)state;
  run(vm,
      "fn f(x, tag) = if tag == \"a\" { sum(x * 2 + 1) } else { sum(x * 3) }\nfor i in 0..40 { f(ones(3), \"a\") }");
  assert_int_equal(weft_eval(vm, "(trace.stats(f).compiles, f(ones(3), \"b\"), f(ones(3), \"a\"))", "test", &v),
                   WEFT_OK);
  assert_string_equal(weft_show(vm, v), "(1, 9.0, 9.0)");
  weft_release(vm, v);
  assert_int_equal(weft_get_global(vm, "f", &v), WEFT_OK);
  assert_non_null(strstr(weft_dump(vm, v, "guards"), "value(tag)"));
  weft_release(vm, v);
  weft_free(vm);
}

/* The index behind the last one is a result of the loop in the graph: where nobody reads it, no trip computes it. */
static void what_nobody_reads_behind_a_loop_is_not_carried(void **state) {
  (void)state;
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.hot = 1;
  o.backend = "mir";
  WeftVM *vm = weft_new(&o);
  WeftValue *v = NULL;
  tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
  run(vm, "fn f(n) {\n let s = 0\n for i in 0..n { if i & 3 == 1 { s += i * i } }\n s\n}");
  run(vm, "f(9)");
  run(vm, "f(9)");
  assert_int_equal(weft_get_global(vm, "f", &v), WEFT_OK);
  const char *loops = weft_dump(vm, v, "loops"), *end = strstr(loops, "  return %");
  assert_non_null(strstr(loops, ") -> (i64, i64) {"));
  assert_non_null(end);
  assert_memory_equal(end + strcspn(end, "\n") - 2, " 0\n", 3);
  weft_release(vm, v);
  assert_int_equal(weft_eval(vm, "f(10)", "test", &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "107");
  weft_release(vm, v);
  weft_free(vm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(A8_a_source_read_twice_is_one_input, setup, teardown),
      cmocka_unit_test_setup_teardown(A1_a_function_called_twice_stands_twice_in_one_graph, setup, teardown),
      cmocka_unit_test_setup_teardown(A4_one_operand_for_each_level, setup, teardown),
      cmocka_unit_test_setup_teardown(A5_what_the_branches_share_stands_first, setup, teardown),
      cmocka_unit_test_setup_teardown(A7_nodes_know_their_lines, setup, teardown),
      cmocka_unit_test_setup_teardown(A12_a_dead_argument_is_no_input, setup, teardown),
      cmocka_unit_test(A14_jit_of_a_function_that_breaks_leaves_the_heat_of_its_caller),
      cmocka_unit_test_setup_teardown(A13_a_mode_is_one_recompile_and_back_is_a_hit, setup, teardown),
      cmocka_unit_test(what_nobody_reads_behind_a_loop_is_not_carried),
      cmocka_unit_test(B2_a_text_that_decides_is_guarded_and_the_reason_names_it),
      cmocka_unit_test(A3_a_step_that_is_undone_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
