/* test_host.c — objects of a host in compiled programs: calls in order, fields as inputs and tags, constructs with a
 * rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/weft.h"
#include "tests/unit/programs.h"

static char printed[4096];
static void keep_output(void *context, const char *text, size_t n) {
  (void)context;
  strncat(printed, text, n < sizeof printed - strlen(printed) - 1 ? n : sizeof printed - strlen(printed) - 1);
}

static const char *const backends[] = {"eager", "interp", "loops", "mir", "verify"};
enum { BACKENDS = 5 };

static WeftVM *vm_with(const char *backend) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backend = backend;
  o.hot = 1;
  o.output = keep_output;
  printed[0] = 0;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  return vm;
}

/* ---- a counter ---------------------------------------------------------------------------------------------- */

typedef struct Counter {
  int64_t count;
  int *released;
} Counter;

static void counter_release(void *object) { ++*((Counter *)object)->released; }
static const WeftHandleType counter_type = {.size = sizeof counter_type, .name = "counter", .release = counter_release};

/* tick(c, by): counts, and gives how far it is. */
static WeftStatus tick(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context;
  void *object;
  int64_t by;
  if (count != 2) return weft_fail(vm, "type", "tick(counter, by)");
  if (weft_handle_object(vm, args[0], &counter_type, &object) != WEFT_OK || weft_as_int(vm, args[1], &by) != WEFT_OK)
    return WEFT_ERROR;
  if (by < 0) return weft_fail(vm, "value", "tick: backwards");
  ((Counter *)object)->count += by;
  return weft_int(vm, ((Counter *)object)->count, result);
}

static void make_counter(WeftVM *vm, Counter *c, const char *name) {
  WeftValue *v = NULL;
  assert_int_equal(weft_handle(vm, &counter_type, c, NULL, &v), WEFT_OK);
  assert_string_equal(weft_type(vm, v), "handle");
  assert_string_equal(weft_show(vm, v), "<counter>");
  assert_int_equal(weft_set_global(vm, name, v), WEFT_OK);
  weft_release(vm, v);
}

static void B9_a_counter_object_called_in_a_hot_loop(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b]);
    int released = 0;
    Counter c = {0, &released}, d = {100, &released};
    make_counter(vm, &c, "c");
    make_counter(vm, &d, "d");
    assert_int_equal(weft_define(vm, "tick", tick, NULL, NULL), WEFT_OK);
    gives(vm, "fn f(c, n) { let s = 0; for i in 0..n { s += tick(c, 1) * 2; tick(c, 0); if i % 50 == 0 { print(s) } }; "
              "s }\nf(c, 200)", "40200");
    assert_int_equal(c.count, 200);
    assert_string_equal(printed, "2\n2652\n10302\n22952\n");
    gives(vm, "f(d, 3)", "612");
    assert_int_equal(d.count, 103);
    gives(vm, "let k = try { f(c, 2); for i in 0..9 { tick(c, 4 - i) } } catch e { e.kind }\nk", "\"value\"");
    assert_int_equal(c.count, 200 + 2 + 4 + 3 + 2 + 1);
    gives(vm, "(c == c, c == d, type(c))", "(true, false, \"handle\")");
    assert_int_equal(released, 0);
    weft_free(vm);
    assert_int_equal(released, 2);
  }
}

static void B9_handles_of_another_type_are_refused(void **state) {
  (void)state;
  static const WeftHandleType other = {.size = sizeof other, .name = "other"};
  WeftVM *vm = vm_with("mir");
  int released = 0;
  Counter c = {0, &released};
  WeftValue *v = NULL, *n = NULL;
  void *object = NULL;
  assert_int_equal(weft_handle(vm, &counter_type, &c, NULL, &v), WEFT_OK);
  assert_int_equal(weft_handle_object(vm, v, &counter_type, &object), WEFT_OK);
  assert_ptr_equal(object, &c);
  assert_int_equal(weft_handle_object(vm, v, &other, &object), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "type");
  assert_int_equal(weft_int(vm, 3, &n), WEFT_OK);
  assert_int_equal(weft_handle_object(vm, n, &counter_type, &object), WEFT_ERROR);
  WeftHandleType wrong = other;
  wrong.size = 3;
  WeftValue *none = NULL;
  assert_int_equal(weft_handle(vm, &wrong, &c, NULL, &none), WEFT_MISUSE);
  assert_int_equal(weft_handle(vm, &other, &c, n, &none), WEFT_MISUSE);
  assert_int_equal(weft_handle_set(vm, n, "x", v), WEFT_MISUSE);
  weft_release(vm, n);
  weft_release(vm, v);
  assert_int_equal(released, 1);
  weft_free(vm);
}

/* ---- a quantised array ------------------------------------------------------------------------------------------ */

static const char *const quantised_tags[] = {"scale", "mode", NULL};
static uint64_t layout_word(void *object) { return *(const uint64_t *)object; }
static const WeftHandleType quantised_type = {.size = sizeof quantised_type, .name = "quantised",
                                              .tags = quantised_tags, .guard = layout_word};

static void set_field(WeftVM *vm, WeftValue *handle, const char *field, const char *program) {
  WeftValue *v = NULL;
  assert_int_equal(weft_eval(vm, program, "test", &v), WEFT_OK);
  assert_int_equal(weft_handle_set(vm, handle, field, v), WEFT_OK);
  weft_release(vm, v);
}

static void B10_a_quantised_array_with_guarded_tags(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b]);
    bool compiled = b > 0;
    uint64_t word = 1;
    WeftValue *q = NULL;
    assert_int_equal(weft_handle(vm, &quantised_type, &word, NULL, &q), WEFT_OK);
    set_field(vm, q, "data", "i32([1, 2, 3])");
    set_field(vm, q, "scale", "f64(0.5)");
    set_field(vm, q, "mode", "\"linear\"");
    assert_int_equal(weft_set_global(vm, "q", q), WEFT_OK);
    gives(vm, "fn f(q) = if q.mode == \"linear\" { sum(f64(q.data) * q.scale) } else { -1.0 }\n(f(q), f(q))",
          "(3.0, 3.0)");
    double recompiles = stat(vm, "recompiles"), compiles = stat(vm, "compiles");
    if (compiled) assert_true(compiles >= 1);
    set_field(vm, q, "data", "i32([4, 5, 6, 7])"); /* an input */
    gives(vm, "f(q)", "11.0");
    assert_true(stat(vm, "recompiles") == recompiles);
    set_field(vm, q, "scale", "f64(0.25)"); /* a tag */
    gives(vm, "f(q)", "5.5");
    assert_true(stat(vm, "recompiles") == recompiles + compiled);
    if (compiled) {
      WeftValue *f = NULL;
      assert_int_equal(weft_get_global(vm, "f", &f), WEFT_OK);
      const char *guards = weft_dump(vm, f, "guards");
      assert_non_null(strstr(guards, "scale"));
      weft_release(vm, f);
    }
    set_field(vm, q, "scale", "f64(0.5)"); /* back: a hit */
    gives(vm, "f(q)", "11.0");
    assert_true(stat(vm, "recompiles") == recompiles + compiled);
    set_field(vm, q, "mode", "\"log\"");
    gives(vm, "f(q)", "-1.0");
    set_field(vm, q, "mode", "\"linear\"");
    word = 2; /* the object's own guard */
    gives(vm, "f(q)", "11.0");
    WeftValue *v = NULL;
    assert_int_equal(weft_eval(vm, "q.other", "test", &v), WEFT_ERROR);
    weft_release(vm, q);
    weft_free(vm);
  }
}

/* ---- a construct of the host's own ----------------------------------------------------------- */

/* repeat_apply(f, n, x): f applied n times. */
static WeftStatus apply(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  int64_t n;
  ++*(int *)context;
  if (count != 3) return weft_fail(vm, "type", "repeat_apply(f, n, x)");
  if (weft_as_int(vm, args[1], &n) != WEFT_OK) return WEFT_ERROR;
  WeftValue *x = weft_retain(vm, args[2]), *y;
  for (int64_t i = 0; i < n; i++) {
    WeftStatus status = weft_call(vm, args[0], &x, 1, &y);
    weft_release(vm, x);
    if (status != WEFT_OK) return status;
    x = y;
  }
  *result = x;
  return WEFT_OK;
}

static void C13_a_construct_of_the_host_with_its_own_trace_rule(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b]);
    int calls = 0;
    WeftValue *rule = NULL, *number = NULL;
    assert_int_equal(weft_eval(vm, "(f, n, x) => fori_loop(0, n, (i, s) => f(s), x)", "rule", &rule), WEFT_OK);
    assert_int_equal(weft_define_traced(vm, "repeat_apply", apply, &calls, NULL, rule), WEFT_OK);
    assert_int_equal(weft_int(vm, 1, &number), WEFT_OK);
    assert_int_equal(weft_define_traced(vm, "wrong", apply, &calls, NULL, number), WEFT_MISUSE);
    weft_release(vm, number);
    weft_release(vm, rule);
    gives(vm, "fn g(x, n) = sum(repeat_apply(v => v * 0.5 + 1, n, x))\n(g(ones(4) * 8, 3), g(zeros(4), 2))",
          "(11.0, 6.0)");
    if (b == 0) assert_int_equal(calls, 2);
    else {
      assert_int_equal(calls, 0);
      assert_true(stat(vm, "breaks") <= 1); /* of the main program's own */
    }
    weft_free(vm);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(B9_a_counter_object_called_in_a_hot_loop),
      cmocka_unit_test(B9_handles_of_another_type_are_refused),
      cmocka_unit_test(B10_a_quantised_array_with_guarded_tags),
      cmocka_unit_test(C13_a_construct_of_the_host_with_its_own_trace_rule),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
