/* test_large.c — code on large arrays is compiled before it ran once, where that pays by what follows
 * (tracer/tier/ahead.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/inner.h"
#include "tracer/tracer.h"

static void swallow(void *context, const char *text, size_t length) {
  (void)context;
  (void)text;
  (void)length;
}

/* Time that passes alike under sanitizers and load: a microsecond each time that somebody asks. */
static u64 tell(void *asked) { return ++*(u64 *)asked * 1000; }

static WeftVM *machine(const char *backend) {
  static u64 asked;
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backend = backend;
  o.output = swallow;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  if (strcmp(backend, "mir") == 0) tracer_use_clock(tracer_of(vm->vm), tell, &asked);
  return vm;
}

static u64 stat(WeftVM *vm, u32 id) { return vm->vm->counters.at[id]; }

/* What a program shows, or its error with place and call trace. Owned. */
static char *outcome(WeftVM *vm, const char *text) {
  WeftValue *v = NULL;
  if (weft_eval(vm, text, "test", &v) != WEFT_OK) return strdup(weft_error_text(vm));
  char *shown = strdup(weft_show(vm, v));
  weft_release(vm, v);
  return shown;
}

/* Runs it here and in a machine that only interprets. */
static void same_as_eager(WeftVM *vm, const char *text) {
  WeftVM *eager = machine("eager");
  char *a = outcome(vm, text), *b = outcome(eager, text);
  assert_string_equal(a, b);
  free(a);
  free(b);
  weft_free(eager);
}

static const char straight[] = "let n = 1 << 20\nlet x = linspace(0, 1, n)\n"
                               "let y = sqrt(x * x + 1) - x\nlet z = (y * y + x) / (1 + y)\n"
                               "let w = where(z > 1, z, y) * 2 - x\n(sum(w), max(z), y[5], x[-1])";

static void A20_large_arrays_are_compiled_at_once(void **state) {
  (void)state;
  WeftVM *vm = machine("mir");
  same_as_eager(vm, straight);
  assert_int_equal(stat(vm, STAT_compiles), 1);
  assert_int_equal(stat(vm, STAT_continuations), 0);
  weft_free(vm);
}

static void A20_small_arrays_are_not(void **state) {
  (void)state;
  WeftVM *vm = machine("mir");
  char *text = strdup(straight);
  memcpy(strstr(text, "20"), "12", 2);
  same_as_eager(vm, text);
  assert_int_equal(stat(vm, STAT_traces), 0);
  free(text);
  weft_free(vm);
}

static void A20_a_function_on_large_arrays_at_its_first_call(void **state) {
  (void)state;
  WeftVM *vm = machine("mir");
  same_as_eager(vm, "fn smooth(x, n) { let y = x; for i in 0..n { y = (y + roll(y, "
                    "1) + roll(y, -1)) / 3; let d = y - x; y = y - 0.1 * d * d }; y }\n"
                    "let a = arange(300000) % 17 * 0.5\nprint(\"begin\")\nlet b = smooth(a, 4)\n(sum(b), b[100])");
  assert_true(stat(vm, STAT_compiles) >= 1);
  assert_int_equal(stat(vm, STAT_lifted_loops), 1);
  weft_free(vm);
}

static void A20_a_map_over_a_long_range_is_compiled_before_it_begins(void **state) {
  (void)state;
  static const char text[] = "let n = 200000\nlet a = map(i => i % 7 * 0.5, 0..n)\na[3] = 2.5\nlet s = 0.0\n"
                             "for i in 0..n { s += a[i] }\n(s, a[2], a[3], len(a))";
  WeftVM *vm = machine("mir");
  same_as_eager(vm, text);
  assert_int_equal(stat(vm, STAT_compiles), 1);
  assert_int_equal(stat(vm, STAT_lifted_loops), 1);
  weft_free(vm);
  char *few = strdup(text);
  memcpy(strstr(few, "200000"), "40    ", 6);
  vm = machine("mir");
  same_as_eager(vm, few);
  assert_int_equal(stat(vm, STAT_traces), 0);
  free(few);
  weft_free(vm);
}

/* The loop is met hot: neither name of the table was looked into in front of it. */
static void a_table_under_two_names_is_changed_in_place(void **state) {
  (void)state;
  static const char text[] = "fn add(rows) {\n  let best = rows\n  for i in 0..len(rows) - 1 {\n"
                             "    for j in 0..len(rows[i]) { best[i][j] += best[i + 1][j] }\n  }\n  best[0][0]\n}\n"
                             "add(map(i => map(j => (i * 37 + j * 59) % 97 * 0.5, 0..i + 1), 0..500))";
  WeftVM *vm = machine("mir");
  same_as_eager(vm, text);
  assert_int_equal(stat(vm, STAT_breaks), 0);
  assert_true(stat(vm, STAT_compiles) >= 1);
  weft_free(vm);
}

/* Functions declared between them end a region; what is called then is compiled from its first instruction, and its
 * caller's rest. */
static void A20_what_is_called_behind_a_region_is_compiled_whole(void **state) {
  (void)state;
  WeftVM *vm = machine("mir");
  same_as_eager(vm, "let x = arange(400000) % 1000 * 0.001\nlet y = sqrt(x * x + 1) * (x - 0.5) + exp(-x) * (1 - x)\n"
                    "fn twice(a, b) { let c = a * b + a; "
                    "let d = c * c - b; sqrt(d * d + 1) * c + where(d > 0, d, -d) / (c + 2) }\n"
                    "let z = twice(x, y)\nlet w = z * z - y * z + x\n(sum(w), max(w), w[77])");
  assert_int_equal(stat(vm, STAT_compiles), 3);
  const Place *whole = NULL;
  for (u32 i = 0; i < tracer_of(vm->vm)->places.slot_count; i++)
    for (const Place *p = tracer_of(vm->vm)->places.slots[i]; p; p = p->next)
      if (p->start == RECORD_ENTRY && p->cache.entries.count) whole = p;
  assert_non_null(whole);
  weft_free(vm);
}

static void A20_an_error_names_its_line(void **state) {
  (void)state;
  WeftVM *vm = machine("mir");
  const char *variables = "(sum(x), sum(y), n)";
  same_as_eager(vm, "fn f(a, i) { let b = a * 2 + 1\n  let c = sqrt(b) * a - b\n"
                    "  sum(c) + c[i] }\nlet n = 1 << 20\nlet x = arange(n) * 0.5\nlet y = x * x - 1\n"
                    "let z = f(x, 7) + f(y, n)\nlet w = x + y");
  assert_true(stat(vm, STAT_compiles) >= 1);
  char *left = outcome(vm, variables); /* what was written before it stays written */
  assert_string_equal(left, "(274877644800.0, 9.607665461061222e16, 1048576)");
  free(left);
  weft_free(vm);
}

/* The region begins in the module, the limit is met in what it calls: the place is that of the frames that stand
 * then. */
static void A20_a_limit_in_what_a_region_calls_names_its_line(void **state) {
  (void)state;
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backend = "mir";
  o.hot = 1;
  o.fuel = 100000;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  char *text = outcome(vm, "fn f(a, n) {\n  let s = 0.0\n  for t in 0..n { s = s * 0.5 + a }\n  s\n}\nlet y = 0.0\n"
                           "for k in 0..5 { y += f(1.5, 300) }\ny += f(2.5, 1000000000)");
  assert_non_null(strstr(text, "test:3:"));
  assert_non_null(strstr(text, "in f, called at test:8:"));
  assert_true(stat(vm, STAT_compiles) >= 1);
  free(text);
  weft_free(vm);
}

static u64 step(void *clock) { return ((u64 *)clock)[0] += ((u64 *)clock)[1]; }

/* What is left around a loop that was compiled is not compiled because of what that one does. */
static void A20_what_is_compiled_counts_for_nothing(void **state) {
  (void)state;
  WeftVM *vm = machine("mir");
  u64 clock[2] = {(u64)1 << 40, 50000};
  tracer_use_clock(tracer_of(vm->vm), step, clock);
  const char *first = "fn f(a, n) {\n  let b = zeros((n, n))\n  for i in 1..n {\n"
                      "    for j in 1..n { b[i, j] = a[i - 1, j] * 0.5 + a[i, j - 1] * 0.25 - 0.125 }\n  }\n  b\n}\n"
                      "sum(f(ones((150, 150)), 150))";
  same_as_eager(vm, first);
  u64 compiles = stat(vm, STAT_compiles), traces = stat(vm, STAT_traces);
  assert_true(compiles > 0);
  clock[1] = 1;
  char *sum = outcome(vm, "let a = ones((120, 120))\nfor t in 0..100 { a = f(a, 120) }\na[7, 7]");
  assert_string_equal(sum, "-0.4694938659667969");
  assert_int_equal(stat(vm, STAT_compiles), compiles);
  assert_int_equal(stat(vm, STAT_traces), traces);
  assert_true(stat(vm, STAT_hits) >= 100);
  free(sum);
  weft_free(vm);
}

/* Recordings of which nothing comes are few, whatever a program does. */
static void A20_recordings_for_nothing_are_few(void **state) {
  (void)state;
  WeftVM *vm = machine("mir");
  char text[4096] = "let x = arange(140000) * 0.5\n";
  for (u32 i = 0; i < 100; i++) strcat(text, "x = x * 1.5\nprint(i)\n");
  char *p = text;
  for (u32 i = 0; (p = strstr(p, "print(i)")); i++) p[6] = (char)('0' + i % 10);
  same_as_eager(vm, text);
  assert_true(stat(vm, STAT_traces) <= 4);
  weft_free(vm);
}

/* A function whose strips would be stored a second time, alone, is worth a kernel where there are many elements,
 * and so is a sum that is written over an array that stood before; a sum of two arrays is not. */
static void A20_a_single_function_of_many_elements_is_compiled(void **state) {
  (void)state;
  static const struct { const char *body; int size; bool compiled; } rows[] = {
      {"= tanh(x)", 1 << 21, true},       {"= tanh(x)", 4096, false},      {"= x + x", 1 << 21, false},
      {"{ c[:] = c + x }", 1 << 21, true}, {"{ c[:] = c + x }", 4096, false}, {"{ c = c + x }", 1 << 21, true},
  };
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    WeftVM *vm = machine("mir");
    vm->vm->tunables.hot_calls = 2;
    vm->vm->tunables.pace_percent = 0;
    char text[256];
    snprintf(text, sizeof text, "let x = linspace(0, 1, %d)\nlet c = x * 3\nfn f(x) %s\nx[1]", rows[i].size,
             rows[i].body);
    free(outcome(vm, text));
    u64 before = stat(vm, STAT_kernel_runs);
    for (u32 k = 0; k < 8; k++) free(outcome(vm, "f(x)"));
    assert_int_equal(stat(vm, STAT_kernel_runs) > before, rows[i].compiled);
    char *seen = outcome(vm, "let kept = c\nlet first = (c[1], c[-1], sum(c))\nf(x)\n"
                             "(first, kept[1], kept[-1], sum(kept), c[1], c[-1], sum(c))");
    WeftVM *eager = machine("eager");
    free(outcome(eager, text));
    for (u32 k = 0; k < 8; k++) free(outcome(eager, "f(x)"));
    char *wanted = outcome(eager, "let kept = c\nlet first = (c[1], c[-1], sum(c))\nf(x)\n"
                                  "(first, kept[1], kept[-1], sum(kept), c[1], c[-1], sum(c))");
    assert_string_equal(seen, wanted);
    free(seen);
    free(wanted);
    weft_free(eager);
    weft_free(vm);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(A20_large_arrays_are_compiled_at_once),
      cmocka_unit_test(A20_small_arrays_are_not),
      cmocka_unit_test(A20_a_function_on_large_arrays_at_its_first_call),
      cmocka_unit_test(A20_a_map_over_a_long_range_is_compiled_before_it_begins),
      cmocka_unit_test(a_table_under_two_names_is_changed_in_place),
      cmocka_unit_test(A20_what_is_called_behind_a_region_is_compiled_whole),
      cmocka_unit_test(A20_an_error_names_its_line),
      cmocka_unit_test(A20_a_limit_in_what_a_region_calls_names_its_line),
      cmocka_unit_test(A20_what_is_compiled_counts_for_nothing),
      cmocka_unit_test(A20_recordings_for_nothing_are_few),
      cmocka_unit_test(A20_a_single_function_of_many_elements_is_compiled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
