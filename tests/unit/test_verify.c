/* test_verify.c — the backend `verify`: agreement passes, a compiled form that gives another value is caught. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "tracer/report/explain.h"
#include "tracer/graph/graph.h"
#include "tracer/tracer.h"

static WeftStatus (*right)(Vm *vm, Region *r, u64 *slots, u32 *exit);

/* What was compiled, but for one bit of what it gives. */
static WeftStatus wrong(Vm *vm, Region *r, u64 *slots, u32 *exit) {
  WeftStatus status = right(vm, r, slots, exit);
  const RegionExit *e = &r->exits[*exit];
  for (u32 i = 0; i < e->bind_count; i++) {
    const RegionBind *b = &r->binds[e->bind_first + i];
    if (b->slot != BIND_NODE && value_type(r->graph, b->value)->rank == 0) slots[b->slot] ^= 1;
  }
  return status;
}

static WeftStatus (*spoils)(Vm *vm, Region *r, u64 *slots, u32 *exit);

static void spoil(void *ctx, Place *p) {
  for (u32 i = 0; i < p->cache.entries.count; i++) {
    Region *r = p->cache.entries.data[i]->region;
    if (!r->checked) continue;
    right = r->checked;
    r->checked = spoils;
    ++*(int *)ctx;
  }
}

static void A25_a_wrong_value_is_caught(void **state) {
  (void)state;
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backend = "verify";
  options.hot = 1;
  WeftVM *vm = weft_new(&options);
  assert_non_null(vm);
  tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
  WeftValue *value = NULL;
  assert_int_equal(weft_eval(vm, "fn f(x) = sum(x * 2 + 1); f(arange(4.0)); f(arange(5.0))", "a", &value), WEFT_OK);
  assert_string_equal(weft_show(vm, value), "25.0");
  weft_release(vm, value);
  int spoilt = 0;
  spoils = wrong;
  Tracer *t = weft_vm_of(vm)->tier_state;
  places_each(&t->places, spoil, &spoilt);
  assert_true(spoilt > 0);
  assert_int_equal(weft_eval(vm, "f(arange(5.0))", "b", NULL), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "assert");
  assert_non_null(strstr(weft_error_message(vm), "compiled code and the graph give different values"));
  weft_free(vm);
}

/* What was compiled, but for one element of each list of numbers that an exit by a check gives. */
static bool last_element;
static WeftStatus wrong_element(Vm *vm, Region *r, u64 *slots, u32 *exit) {
  WeftStatus status = right(vm, r, slots, exit);
  const RegionExit *e = &r->exits[*exit];
  for (u32 i = 0; i < e->bind_count && r->graph->exits.exits.data[*exit].kind == EXIT_check; i++) {
    const RegionBind *b = &r->binds[e->bind_first + i];
    if (b->slot == BIND_NODE || b->slot < r->graph->guards.inputs.count || value_type(r->graph, b->value)->rank != 1)
      continue;
    Array *a = value_of_slot(r->graph, b->value, slots[b->slot]).array;
    if (a->size && array_dtype(a) == DT_f64) ((f64 *)a->data)[last_element ? a->size - 1 : 0] += 1.0;
  }
  return status;
}

/* A list has room behind its items: what lies there is compared with nothing. */
static void A25_items_that_an_exit_reads_are_compared(void **state) {
  (void)state;
  const char *program =
      "fn d(c) { let s = c; let k = 0; while k < 3 { k += 1; s = s + k; assert(s < 25.0) }; s }\n"
      "fn h(z) = while_loop(c => c < 20.0, c => d(c) + c, z[0])\n"
      "fn f(n) { let out = (1.5,); try { for r in 0..n { out += (h([r * 0.5]),); out += (h([r * 6.5, 1.0]),) } } "
      "catch e { nil }; out }\n"
      "for i in 0..4 { f(i) }";
  for (int last = 0; last < 2; last++) {
    WeftOptions options = WEFT_OPTIONS_INIT;
    options.backend = "verify";
    options.hot = 1;
    WeftVM *vm = weft_new(&options);
    assert_non_null(vm);
    tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
    assert_int_equal(weft_eval(vm, program, "a", NULL), WEFT_OK);
    int spoilt = 0;
    last_element = last;
    spoils = wrong_element;
    places_each(&((Tracer *)weft_vm_of(vm)->tier_state)->places, spoil, &spoilt);
    assert_true(spoilt > 0);
    WeftValue *value = NULL;
    WeftStatus status = weft_eval(vm, "f(6)", "b", &value);
    if (last) {
      assert_int_equal(status, WEFT_OK);
      assert_string_equal(weft_show(vm, value), "(1.5, 42.0, 42.0, 20.0)");
      weft_release(vm, value);
    } else {
      assert_int_equal(status, WEFT_ERROR);
      assert_non_null(strstr(weft_error_message(vm), "compiled code and the graph give different values"));
    }
    weft_free(vm);
  }
}

/* ---- graphs that are wrong: one operation is another ------------------------------------------------------------- */

/* What the last line gives is compared; `run` is done often enough to be compiled. Regions that return, loops left
 * at their end, by break and in the middle, arms left to the interpreter, module variables, refs, output,
 * constructs, derivatives, batches. */
static const char *const programs[] = {
    "fn f(x, y) = x * y + x - y\nlet r = 0.0\nfor i in 0..4 { r = f(2.5, 4.0) }\nr",
    "fn f(x) = sum(sin(x) * x + 1.0)\nlet r = 0.0\nfor i in 0..4 { r += f(arange(5.0)) }\nr",
    "let s = 1.0\nfor i in 0..20 { s = s * 1.5 + i }\ns",
    "let s = 0\nlet n = 0\nwhile s < 100 { s = s + n * 3; n += 1; if n > 50 { break } }\n(s, n)",
    "fn f(n) { let s = 0.0; for i in 0..n { if i > 5 { return s }; s += i * 2.0 }; s }\nlet r = ()\n"
    "for k in 3..9 { r += (f(k),) }\nr",
    "let a = zeros(10)\nfor i in 0..10 { a[i] = i * 2.5 - 1 }\na",
    "let total = 1.0\nfn add(x) { total = total + x * 2.0; total }\nfor i in 0..5 { add(i) }\ntotal",
    "let c = ref(1.0)\nfn bump(x) { c.value = c.value * x + 1.0; nil }\nfor i in 0..5 { bump(1.5) }\nc.value",
    "let out = ()\nfor i in 0..6 { out += ({a: i * 2, b: (i + 1, i - 1)},) }\nout",
    "fn f(x) = vmap(v => v * 2.0 + sum(x))(x)\nlet r = 0\nfor i in 0..3 { r = f([1.0, 2.0, 4.0]) }\nr",
    "fn f(x) = grad(v => sum(v * v * v - v))(x)\nlet r = 0\nfor i in 0..3 { r = f([1.0, 2.0, 4.0]) }\nr",
    "fn f(x) = scan((c, v) => (c + v, c * v), 1.0, x)\nlet r = 0\nfor i in 0..3 { r = f([1.0, 2.0, 4.0]) }\nr",
    "fn f(x) = while_loop(((a, b)) => a < 40.0, ((a, b)) => (a * 1.5 + 1.0, b + 1), (x, 0))\nlet r = 0\n"
    "for i in 0..3 { r = f(2.0) }\nr",
    "fn f(x) { let k = x; let g = y => y + k * 2.0; g }\nlet r = 0\nfor i in 0..3 { r = f(2.0)(3.0) }\nr",
    "fn fib(n) = if n < 2 { n } else { fib(n - 1) + fib(n - 2) }\nlet r = 0\nfor i in 0..3 { r = fib(9) }\nr",
    "let r = 0.0\nfor i in 0..9 { if i == 7 { r = eager(x => x * 2)(r) }; r = r + i * 0.5 }\nr",
    "let r = ()\nfor i in 0..4 { r += (rand() + i,) }\nr",
};

typedef struct WhatCame {
  char value[400];
  bool raised, verify;
  double forced, verified;
} WhatCame;

static double counter(WeftVM *vm, u32 id) { return (double)weft_vm_of(vm)->counters.at[id]; }

static void run_program(const char *text, const char *backend, const char *force, WhatCame *out) {
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backend = backend;
  options.hot = 1;
  options.force = force;
  WeftVM *vm = weft_new(&options);
  WeftValue *v = NULL;
  assert_non_null(vm);
  weft_set_limits(vm, 0, 100000, 0); /* a condition that was turned around may never hold */
  *out = (WhatCame){0};
  out->raised = weft_eval(vm, text, "test", &v) != WEFT_OK;
  const char *s = out->raised ? weft_error_message(vm) : weft_show(vm, v);
  snprintf(out->value, sizeof out->value, "%s", s);
  out->verify = out->raised && strstr(s, "verify: ");
  out->forced = counter(vm, STAT_forced);
  out->verified = counter(vm, STAT_rehearsed);
  if (!out->raised) weft_release(vm, v);
  weft_free(vm);
}

static void A25_a_wrong_graph_is_caught(void **state) {
  (void)state;
  u32 caught = 0;
  for (u32 i = 0; i < COUNT_OF(programs); i++) {
    WhatCame right_one, verified;
    run_program(programs[i], "eager", NULL, &right_one);
    if (right_one.raised) fail_msg("%s: %s", programs[i], right_one.value);
    run_program(programs[i], "verify", NULL, &verified);
    if (strcmp(right_one.value, verified.value) != 0 || verified.verified == 0)
      fail_msg("%s: %s instead of %s", programs[i], verified.value, right_one.value);
    for (u32 n = 1; n < 40; n++) {
      char force[32];
      WhatCame wrong_one, told;
      snprintf(force, sizeof force, "wrong %u", n);
      run_program(programs[i], "mir", force, &wrong_one);
      if (wrong_one.forced == 0) break;
      run_program(programs[i], "verify", force, &told);
      /* it made no difference, or no end */
      if (strcmp(wrong_one.value, right_one.value) == 0 || strstr(wrong_one.value, "the fuel") ||
          strstr(told.value, "the fuel"))
        continue;
      if (!told.verify)
        fail_msg("%s: operation %u: %s went through, instead of %s", programs[i], n, told.value, right_one.value);
      caught++;
    }
  }
  assert_true(caught > 40);
}

/* The last region returns from the module's body, so that no frame of the module is left where its variables are
 * compared. */
static void A25_a_body_may_end_compiled(void **state) {
  static const char *const bodies[] = {
      "let n = 0.0\nfor r in 0..3 { n += f(x) }\nn",
      "let n = ()\nfor r in 0..3 { n += (f(x),) }\nn",
      "let n = {k: 0.0}\nlet c = ref(0.0)\nfor r in 0..3 { n.k += f(x); c.value += n.k }\n(n, c.value)",
  };
  (void)state;
  for (u32 i = 0; i < COUNT_OF(bodies); i++) {
    char text[400];
    WhatCame eager, verified;
    snprintf(text, sizeof text, "fn f(z) = { let l = (); for v in z { l += (v * 1.5,) }; sum(stack(l)) }\n"
                                "let x = arange(72.0)\n%s", bodies[i]);
    run_program(text, "eager", NULL, &eager);
    run_program(text, "verify", NULL, &verified);
    if (eager.raised || strcmp(eager.value, verified.value) != 0)
      fail_msg("%s: %s instead of %s", text, verified.value, eager.value);
    assert_true(verified.verified > 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(A25_a_wrong_value_is_caught),
      cmocka_unit_test(A25_items_that_an_exit_reads_are_compared),
      cmocka_unit_test(A25_a_wrong_graph_is_caught),
      cmocka_unit_test(A25_a_body_may_end_compiled),
  };
  return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
