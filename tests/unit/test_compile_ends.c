/* test_compile_ends.c — a compilation ends: by its budget of steps when a pass does not, by the program's deadline,
 * by an interrupt, on programs far larger than what passes are made for. What it leaves is a place that stays
 * interpreted, and says why. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "api/inner.h"
#include "tracer/tier/tier.h"

static WeftVM *machine(const char *force, double deadline) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backend = "mir";
  o.hot = 1;
  o.force = force;
  o.deadline = deadline;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  tracer_ignore_clock(tracer_of(vm->vm));
  return vm;
}

static u64 stat(WeftVM *vm, u32 id) { return vm->vm->counters.at[id]; }

/* ---- large programs ------------------------------------------------------------------------------------ */

typedef struct Written {
  char *data;
  size_t len, cap;
} Written;

static void add(Written *t, const char *fmt, ...) {
  va_list ap;
  if (t->cap - t->len < 512) {
    t->cap = t->cap ? t->cap * 2 : 4096;
    t->data = realloc(t->data, t->cap);
    assert_non_null(t->data);
  }
  va_start(ap, fmt);
  t->len += (size_t)vsnprintf(t->data + t->len, 512, fmt, ap);
  va_end(ap);
}

/* A function f(x, y) of two arrays of 100 elements. */
static const struct Large {
  const char *name, *head, *line, *foot;
  u32 count;
} large[] = {
    {"straight lines on arrays", "let s = x; ", "s = s * 0.5 + y * %u.25", "s", 5000},
    {"reductions one after the other", "let s = 0.0; ", "s = s + sum(x * %u.5 + s)", "s", 3000},
    {"loops one after the other", "let s = y; ", "for i in 0..3 { s += x * %u.0 }", "s", 1500},
    {"while loops", "let s = 0.0; ", "let n%1$u = 0; while n%1$u < 5 { s += x[n%1$u]; n%1$u += 1 }", "s", 1500},
    {"conditions in one loop", "let s = 0.0; for k in 0..9 { let t = x[k]; ",
     "if t > %1$u { t = t - 1.5 } else { s = s + t * %1$u.25 }", "}; s", 1500},
    {"loops in one loop", "let s = 0.0; for k in 0..9 { let t = x[k]; ",
     "for j in 0..5 { t = t * 0.%u5; s = s + x[j] * t }", "}; s", 1000},
    {"conditions", "let s = sum(x); let q = 0.0; ", "if s > %u { s = s - 1.5 } else { q = q + s }", "s + q", 3000},
    {"checks", "let s = 0.0; ", "s += x[%u %% 7]; assert(s > -1.0)", "s", 3000},
    {"a derivative of loops", "let g = z => { let s = y; ", "for i in 0..5 { s = sin(s * z) + %u.0 }",
     "sum(s) }; grad(g)(x)", 250},
};

static char *program(const struct Large *l, u32 count) {
  Written t = {0};
  add(&t, "fn f(x, y) { %s\n", l->head);
  for (u32 i = 0; i < count; i++) {
    add(&t, l->line, i);
    add(&t, "\n");
  }
  add(&t, "%s }\nlet a = linspace(0.0, 1.0, 100)\nlet b = a + 1.0\n", l->foot);
  return t.data;
}

static f64 seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (f64)t.tv_sec + (f64)t.tv_nsec * 1e-9;
}

static void define(WeftVM *vm, const struct Large *l) {
  WeftValue *v = NULL;
  char *text = program(l, l->count);
  if (weft_eval(vm, text, "test", &v) != WEFT_OK) fail_msg("%s: %s", l->name, weft_error_text(vm));
  weft_release(vm, v);
  free(text);
}

enum { LATE_SECONDS = 5 }; /* what the machine's other work may add to some 0.2 */

static void the_deadline_holds_while_compiling(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT_OF(large); i++)
    for (u32 jit = 0; jit < 2; jit++) {
      WeftVM *vm = machine(NULL, 0);
      WeftValue *v = NULL;
      define(vm, &large[i]);
      weft_set_limits(vm, 0, 0, 0.02);
      f64 began = seconds();
      WeftStatus s = weft_eval(vm, jit ? "for i in 0..100000 { jit(f)(a, b) }" : "for i in 0..100000 { f(a, b) }",
                               "test", &v);
      f64 took = seconds() - began;
      if (s == WEFT_OK || strcmp(weft_error_kind(vm), "limit") != 0)
        fail_msg("%s: the deadline was not noticed", large[i].name);
      if (took > LATE_SECONDS) fail_msg("%s: noticed after %g s", large[i].name, took);
      weft_free(vm);
    }
}

static void *interrupt_soon(void *vm) {
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  weft_interrupt(vm);
  return NULL;
}

static void an_interrupt_holds_while_compiling(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT_OF(large); i++) {
    WeftVM *vm = machine(NULL, 0);
    WeftValue *v = NULL;
    pthread_t other;
    define(vm, &large[i]);
    assert_int_equal(pthread_create(&other, NULL, interrupt_soon, vm), 0);
    f64 began = seconds();
    WeftStatus s = weft_eval(vm, "for i in 0..100000000 { f(a, b) }", "test", &v);
    pthread_join(other, NULL);
    if (s == WEFT_OK || strcmp(weft_error_kind(vm), "interrupt") != 0)
      fail_msg("%s: the interrupt was not noticed", large[i].name);
    if (seconds() - began > LATE_SECONDS) fail_msg("%s: noticed late", large[i].name);
    if (weft_eval(vm, "1 + 1", "test", &v) != WEFT_OK) fail_msg("%s", weft_error_text(vm)); /* and all goes on */
    weft_release(vm, v);
    weft_free(vm);
  }
}

/* ---- passes that never end ------------------------------------------------------------------------------- */

static const char small[] = "fn f(x, y) { let s = 0.0; for i in 0..5 { if i == 2 { continue }; s += sum(x * i) }; "
                            "for v in y { s = s + v * v }; let q = exp(y) / sum(exp(y)); s + sum(q) }\n";

static void a_pass_that_never_ends_is_ended(void **state) {
  (void)state;
  char want[64] = "";
  u32 last = 0;
  for (u32 n = 0; n < 60; n++) {
    char force[32];
    snprintf(force, sizeof force, "endless %u", n);
    WeftVM *vm = machine(n ? force : NULL, 0);
    WeftValue *v = NULL;
    if (weft_eval(vm, small, "test", &v) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
    weft_release(vm, v);
    for (u32 k = 0; k < 3; k++) {
      if (weft_eval(vm, "f(arange(6.0), arange(4.0))", "test", &v) != WEFT_OK)
        fail_msg("pass %u: %s", n, weft_error_text(vm));
      if (!n) snprintf(want, sizeof want, "%s", weft_show(vm, v));
      assert_string_equal(weft_show(vm, v), want);
      weft_release(vm, v);
    }
    if (n && stat(vm, STAT_forced)) {
      last = n;
      assert_true(stat(vm, STAT_compile_stops) > 0);
      assert_true(stat(vm, STAT_demotions) > 0);
      if (weft_eval(vm, "trace.explain(f, arange(6.0), arange(4.0)).text", "test", &v) != WEFT_OK)
        fail_msg("%s", weft_error_text(vm));
      if (!strstr(weft_show(vm, v), "used up the steps"))
        fail_msg("pass %u: explain does not say why: %s", n, weft_show(vm, v));
      weft_release(vm, v);
    } else {
      assert_int_equal(stat(vm, STAT_compile_stops), 0);
    }
    weft_free(vm);
  }
  assert_true(last > 12); /* recording, passes of the graph, of the plan and of code */
}

/* A budget that is too small is one that is used up: at any point, with the same values. */
static void any_budget_will_do(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT_OF(large); i++) {
    char want[256] = "", *text = program(&large[i], 6);
    bool stopped = false, compiled = false;
    for (u64 steps = 1; steps < 300000; steps += 1 + steps / 6) {
      WeftVM *vm = machine(NULL, 0);
      WeftValue *v = NULL;
      vm->vm->tunables.compile_steps = (i64)steps;
      vm->vm->tunables.compile_node_steps = 0;
      if (weft_eval(vm, text, "test", &v) != WEFT_OK) fail_msg("%s: %s", large[i].name, weft_error_text(vm));
      weft_release(vm, v);
      if (weft_eval(vm, "f(a, b); f(a, b); sum(f(a, b))", "test", &v) != WEFT_OK)
        fail_msg("%s: %s", large[i].name, weft_error_text(vm));
      if (!want[0]) snprintf(want, sizeof want, "%s", weft_show(vm, v));
      assert_string_equal(weft_show(vm, v), want);
      weft_release(vm, v);
      stopped |= stat(vm, STAT_compile_stops) > 0;
      compiled |= stat(vm, STAT_compiles) > 0;
      weft_free(vm);
    }
    if (!stopped || !compiled) fail_msg("%s: %s", large[i].name, stopped ? "never compiled" : "never stopped");
    free(text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_deadline_holds_while_compiling),
      cmocka_unit_test(an_interrupt_holds_while_compiling),
      cmocka_unit_test(a_pass_that_never_ends_is_ended),
      cmocka_unit_test(any_budget_will_do),
  };
  cmocka_set_message_output(CM_OUTPUT_TAP);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
