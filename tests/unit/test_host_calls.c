/* test_host_calls.c — host functions as ordered nodes of compiled code (B9): counted as by the interpreter, with
 * errors in the middle, calls back into the program, results that change, arrays that the host keeps, refused
 * memory. */
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
#include "tests/unit/programs.h"
#include "tracer/tracer.h"

static const char *const backends[] = {"eager", "interp", "loops", "mir", "verify"};
enum { BACKENDS = 5 };

typedef struct Counter {
  int64_t count;
  uint64_t word;
} Counter;

static bool promise(void *object, const char *function, WeftPromise *out) {
  (void)object;
  if (strcmp(function, "tick") != 0) return false;
  *out = (WeftPromise){.dtype = WEFT_I64};
  return true;
}
static uint64_t word_of(void *object) { return ((const Counter *)object)->word; }

static const WeftHandleType counter_type = {.size = sizeof counter_type, .name = "counter", .guard = word_of};
static const WeftHandleType promised_type = {.size = sizeof promised_type, .name = "promised", .abstract = promise};

static Counter *counter_of(WeftVM *vm, WeftValue *v) {
  void *object;
  if (weft_handle_object(vm, v, &counter_type, &object) == WEFT_OK) return object;
  return weft_handle_object(vm, v, &promised_type, &object) == WEFT_OK ? object : NULL;
}

/* tick(c, by): counts, and gives how far it is. */
static WeftStatus tick(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  int64_t by;
  (void)context;
  Counter *c = count == 2 ? counter_of(vm, args[0]) : NULL;
  if (!c || weft_as_int(vm, args[1], &by) != WEFT_OK) return WEFT_ERROR;
  if (by < 0) return weft_fail(vm, "value", "tick: backwards");
  c->count += by;
  return weft_int(vm, c->count, result);
}

/* mixed(c): an integer twice, then a float, then a text. */
static WeftStatus mixed(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context;
  Counter *c = count == 1 ? counter_of(vm, args[0]) : NULL;
  if (!c) return WEFT_ERROR;
  int64_t n = c->count++ % 6;
  if (n < 3) return weft_int(vm, n, result);
  if (n < 5) return weft_float(vm, (double)n, result);
  return weft_text(vm, "five", 4, result);
}

/* twice(f, x): calls back. */
static WeftStatus twice(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  WeftValue *y;
  (void)context;
  if (count != 2 || weft_call(vm, args[0], &args[1], 1, &y) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = weft_call(vm, args[0], &y, 1, result);
  weft_release(vm, y);
  return status;
}

/* grow(): changes a variable of the program; gives what it was. */
static WeftStatus grow(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  WeftValue *v, *next;
  double x;
  (void)context, (void)args, (void)count;
  if (weft_get_global(vm, "g", &v) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = weft_as_float(vm, v, &x);
  if (status == WEFT_OK && (status = weft_float(vm, x + 1.0, &next)) == WEFT_OK) {
    status = weft_set_global(vm, "g", next);
    weft_release(vm, next);
  }
  if (status == WEFT_OK) *result = v;
  else weft_release(vm, v);
  return status;
}

/* keep(x): the host holds on to x until it gets the next one; gives the sum of what it held. */
static WeftValue *kept;
static WeftStatus keep(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  WeftArray a;
  double sum = 0;
  (void)context, (void)count;
  if (kept) {
    if (weft_array_view(vm, kept, &a) != WEFT_OK) return WEFT_ERROR;
    for (int64_t i = 0; i < a.size; i++) sum += ((const double *)a.data)[i * a.strides[0]];
    weft_release(vm, kept);
  }
  kept = weft_retain(vm, args[0]);
  return weft_float(vm, sum, result);
}

/* ramp(n): an array. */
static WeftStatus ramp(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  double data[64];
  int64_t n;
  (void)context;
  if (count != 1 || weft_as_int(vm, args[0], &n) != WEFT_OK) return WEFT_ERROR;
  if (n > 64) return weft_fail(vm, "value", "ramp: too long");
  for (int64_t i = 0; i < n; i++) data[i] = (double)i;
  return weft_array(vm, WEFT_F64, 1, &n, data, result);
}

static WeftStatus bump(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context, (void)result;
  Counter *c = count == 1 ? counter_of(vm, args[0]) : NULL;
  if (!c) return WEFT_ERROR;
  c->count++;
  WeftValue *n;
  if (weft_int(vm, c->count, &n) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = weft_handle_set(vm, args[0], "count", n);
  weft_release(vm, n);
  return status;
}

/* ---- an object that says its fields: an array that it keeps, a step, a mode; it fails when told to  */

typedef struct Model {
  WeftValue *weights;
  double step;
  const char *mode;
  bool fails, copies;
  int asked;
} Model;

static WeftStatus model_fields(WeftVM *vm, void *object, WeftValue **fields) {
  static const char *const keys[] = {"weights", "step", "mode", "asked"};
  Model *m = object;
  WeftValue *items[4] = {NULL}, *none;
  int64_t two = 2;
  double copy[2] = {m->step, 1.0};
  m->asked++;
  if (m->fails) return weft_fail(vm, "value", "the model is away");
  if (weft_eval(vm, "1", "hook", &none) != WEFT_ERROR) return WEFT_OK; /* refused: a hook runs no program */
  WeftStatus status = m->copies ? weft_array(vm, WEFT_F64, 1, &two, copy, &items[0])
                                : (items[0] = weft_retain(vm, m->weights), WEFT_OK);
  if (status == WEFT_OK) status = weft_float(vm, m->step, &items[1]);
  if (status == WEFT_OK) status = weft_text(vm, m->mode, strlen(m->mode), &items[2]);
  if (status == WEFT_OK) status = weft_int(vm, m->asked, &items[3]);
  if (status == WEFT_OK) status = weft_record(vm, keys, items, 4, fields);
  for (int i = 0; i < 4; i++)
    if (items[i]) weft_release(vm, items[i]);
  return status;
}

static const char *const model_tags[] = {"mode", NULL};
static const WeftHandleType model_type = {.size = sizeof model_type, .name = "model", .tags = model_tags,
                                          .flatten = model_fields};

/* train(m, by): changes the object itself; with 0 nothing. Gives the step. */
static WeftStatus train(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  void *object;
  double by;
  (void)context;
  if (count != 2 || weft_handle_object(vm, args[0], &model_type, &object) != WEFT_OK ||
      weft_as_float(vm, args[1], &by) != WEFT_OK)
    return WEFT_ERROR;
  Model *m = object;
  m->step += by;
  if (by > 100) m->fails = true;
  return weft_float(vm, m->step, result);
}

static char printed[4096];
static void keep_output(void *context, const char *text, size_t n) {
  (void)context;
  strncat(printed, text, n < sizeof printed - strlen(printed) - 1 ? n : sizeof printed - strlen(printed) - 1);
}

static WeftVM *vm_with(const char *backend, int hot) {
  static const struct {
    const char *name;
    WeftHostFunction call;
  } functions[] = {{"tick", tick}, {"mixed", mixed}, {"twice", twice}, {"grow", grow}, {"keep", keep}, {"ramp", ramp},
                   {"bump", bump}, {"train", train}};
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backend = backend;
  o.hot = hot < 0 ? 0 : hot ? hot : 1;
  o.output = keep_output;
  printed[0] = 0;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    assert_int_equal(weft_define(vm, functions[i].name, functions[i].call, NULL, NULL), WEFT_OK);
  return vm;
}

static void object(WeftVM *vm, const WeftHandleType *type, Counter *c, const char *name) {
  WeftValue *v = NULL;
  assert_int_equal(weft_handle(vm, type, c, NULL, &v), WEFT_OK);
  assert_int_equal(weft_set_global(vm, name, v), WEFT_OK);
  weft_release(vm, v);
}

static void B9_a_counter_called_in_a_hot_loop_stays_compiled(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b], b % 2 ? 0 : -1);
    Counter c = {0, 0}, p = {0, 0};
    object(vm, &counter_type, &c, "c");
    object(vm, &promised_type, &p, "p");
    gives(vm, "fn f(c, n, x) { let s = 0.0; for i in 0..n { s += x[i % 3] * tick(c, i % 2); tick(c, 1) }; s }\n"
              "f(c, 200, arange(3.0))", "29801.0");
    assert_int_equal(c.count, 300);
    double breaks = stat(vm, "breaks"), exits = stat(vm, "exits");
    gives(vm, "f(c, 1000, arange(3.0))", "1048700.0");
    assert_int_equal(c.count, 1800);
    gives(vm, "f(c, 3, arange(3.0))", "5408.0");
    if (b) { /* two more entries: nothing but the end of each, and the first of a trace */
      assert_true(stat(vm, "breaks") <= breaks + 1);
      assert_true(stat(vm, "exits") <= exits + 4);
      assert_true(stat(vm, "lifted_loops") >= 1);
    }
    double before = stat(vm, "breaks");
    gives(vm, "fn g(c, n) { let s = 0; for i in 0..n { s += tick(c, 1) }; s }\n(g(p, 80), g(p, 90), g(p, 100))",
          "(3240, 11295, 22050)");
    assert_int_equal(p.count, 270);
    /* of the main program alone: the object says what tick gives */
    if (b && b % 2) assert_true(stat(vm, "breaks") <= before + 1);
    weft_free(vm);
  }
}

static void B9_loops_that_are_left_between_calls(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b], 0);
    Counter c = {0, 0};
    object(vm, &counter_type, &c, "c");
    gives(vm, "fn f(c, n, k) {\n"
              "  let s = 0.0\n"
              "  for i in 0..n {\n"
              "    if i == k { continue }\n"
              "    s += tick(c, 1)\n"
              "    let j = 0\n"
              "    while j < 3 and s < 40.0 { j += 1; if j == k { break }; s += tick(c, 2) }\n"
              "    if s > 90.0 { return tick(c, 3) }\n"
              "    if s > 60.0 { tick(c, 5); return s }\n"
              "  }\n"
              "  s + tick(c, 0)\n"
              "}\n(f(c, 3, 1), f(c, 3, 2), f(c, 9, 0), f(c, 5, 7))",
          "(5.0, 30.0, 64.0, 71.0)");
    assert_int_equal(c.count, 30);
    weft_free(vm);
  }
}

static void B9_errors_in_the_middle_of_a_loop(void **state) {
  char want[2048] = "";
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b], 0);
    Counter c = {0, 0};
    object(vm, &counter_type, &c, "c");
    gives(vm, "let total = 0.0\nfn step(c, i, s) { let t = s * 2; tick(c, 5 - i) + t }\n"
              "fn f(c, n) { let s = 1.0; let x = zeros(3); for i in 0..n { total += 1.0; "
              "x[i % 3] += s; s = try { step(c, i, s) } catch e { print(e.message, i); s + x[0] } }; (s, x) }\n"
              "(f(c, 4), f(c, 8), total)", "((130.0, [59.0, 7.0, 23.0]), (4655.0, [1604.0, 3412.0, 774.0]), 12.0)");
    assert_string_equal(printed, "tick: backwards 6\ntick: backwards 7\n");
    assert_int_equal(c.count, 5 + 4 + 3 + 2 + 15);
    WeftValue *v = NULL;
    assert_int_equal(weft_eval(vm, "fn g(c, n) { for i in 0..n { total += step(c, i, 1.0) } }\ng(c, 4)\n"
                                   "g(c, 9)", "test", &v), WEFT_ERROR);
    if (!b) strncpy(want, weft_error_text(vm), sizeof want - 1);
    else assert_string_equal(weft_error_text(vm), want); /* place and call trace */
    assert_non_null(strstr(want, "in step, called at"));
    gives(vm, "total", "516.0");
    weft_free(vm);
  }
}

static void B9_calls_back_into_the_program(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b], 0);
    Counter c = {0, 0};
    object(vm, &counter_type, &c, "c");
    gives(vm, "let seen = 0\nlet g = 1.0\nlet cell = ref(0)\n"
              "fn note(x) { seen += 1; cell.value += x; if x > 1000 { error(f\"large {seen}\") }; x + 1 }\n"
              "fn f(n) { let s = 0; for i in 0..n { seen += 10; s += twice(note, i); tick(c, 1) }; s }\n"
              "(f(5), f(70), seen, cell.value)",
          "(20, 2555, 900, 4925)");
    assert_int_equal(c.count, 75);
    gives(vm, "(try { f(2000) } catch e { (e.message, len(e.trace)) }, seen)", "((\"large 12912\", 3), 12912)");
    gives(vm, "fn h(n) { let s = 0.0; for i in 0..n { g += 0.5; s += grow() + g }; (s, g) }\n(h(3), h(60))",
          "((21.0, 5.5), (6090.0, 95.5))");
    gives(vm, "fn k(n) { let s = 0; for i in 0..n { s += twice(v => { s2 = v; v * 2 }, i) }; s }\nlet s2 = 0\n"
              "(k(4), k(5), s2)", "(24, 40, 8)");
    weft_free(vm);
  }
}

static WeftStatus half(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  double x;
  (void)context;
  if (count != 1 || weft_as_float(vm, args[0], &x) != WEFT_OK) return weft_fail(vm, "type", "half: one number");
  return weft_float(vm, x * 0.5, result);
}

/* Behind an exit before the call, an entry for a host function is not one for other functions. */
static void B9_a_host_function_among_others(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftOptions o = WEFT_OPTIONS_INIT;
    o.backend = backends[b];
    o.hot = 1;
    o.force = "exits 7";
    WeftVM *vm = weft_new(&o);
    assert_non_null(vm);
    assert_int_equal(weft_define(vm, "half", half, NULL, NULL), WEFT_OK);
    gives(vm,
          "fn f(x) {\n  let w = f64(2)\n  let o = (z => z * 0.5, z => z + w, half, (z, y=2) => z - y)\n  let s = 1\n"
          "  for (u, y) in enumerate(x) { s += sum(array(map(q => q(y), o))) }\n  s\n}\n"
          "let out = (f(arange(3)),)\nout += (f(arange(6) * 1.0),)\nout", "(10.0, 46.0)");
    weft_free(vm);
  }
}

static void B9_results_that_change_their_kind(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b], 0);
    Counter c = {0, 0};
    object(vm, &counter_type, &c, "c");
    gives(vm, "fn f(c, n) { let last = (); for i in 0..n { let v = mixed(c); "
              "last = (v, type(v)); if i % 4 == 3 { print(v) } }; last }\n(f(c, 2), f(c, 4), f(c, 40))",
          "((1, \"array\"), (\"five\", \"text\"), (3.0, \"array\"))");
    assert_string_equal(printed, "five\n3.0\n1\nfive\n3.0\n1\nfive\n3.0\n1\nfive\n3.0\n");
    assert_int_equal(c.count, 46);
    weft_free(vm);
  }
}

static void B9_arrays_go_out_and_come_in(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b], 0);
    gives(vm, "fn f(n) { let x = zeros(3); let s = 0.0; for i in 0..n { x[i % 3] += 1.0; s += keep(x) }; (s, x) }\n"
              "(f(4), f(40))", "((6.0, [2.0, 1.0, 1.0]), (784.0, [14.0, 13.0, 13.0]))");
    weft_release(vm, kept);
    kept = NULL;
    gives(vm, "fn g(n) { let s = 0.0; for i in 1..n { let r = ramp(i % 7 + 1); r[0] = 2.0; "
              "s += sum(r * 2) + r[i % len(r)] }; s }\n(g(4), g(30))", "(38.0, 640.0)");
    gives(vm, "fn h(n) { let s = 0.0; for i in 60..n { s += sum(ramp(i)) }; s }\n"
              "(try { h(80) } catch e { e.message }, h(62))", "(\"ramp: too long\", 3600.0)");
    weft_free(vm);
  }
}

static void B9_objects_that_change_under_the_program(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b], 0);
    Counter c = {0, 0};
    object(vm, &counter_type, &c, "c");
    gives(vm, "fn f(c, n) { let s = 0; for i in 0..n { bump(c); s += c.count }; s }\n(f(c, 3), f(c, 70))", "(6, 2695)");
    assert_int_equal(c.count, 73);
    weft_free(vm);
  }
}

static void weigh(WeftVM *vm, Model *m, const char *text) {
  if (m->weights) weft_release(vm, m->weights);
  m->weights = NULL;
  assert_int_equal(weft_eval(vm, text, "weights", &m->weights), WEFT_OK);
}

static void fails_with(WeftVM *vm, const char *program, const char *kind, const char *message) {
  WeftValue *v = NULL;
  assert_int_equal(weft_eval(vm, program, "test", &v), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), kind);
  assert_non_null(strstr(weft_error_text(vm), message));
}

static WeftValue *model(WeftVM *vm, Model *m) {
  WeftValue *v = NULL, *none = NULL, *empty = NULL;
  assert_int_equal(weft_handle(vm, &model_type, m, NULL, &v), WEFT_OK);
  assert_int_equal(weft_set_global(vm, "m", v), WEFT_OK);
  assert_int_equal(weft_record(vm, NULL, NULL, 0, &empty), WEFT_OK);
  assert_int_equal(weft_handle(vm, &model_type, m, empty, &none), WEFT_MISUSE);
  assert_int_equal(weft_handle_set(vm, v, "step", empty), WEFT_MISUSE);
  weft_release(vm, empty);
  return v;
}

static void B9_what_an_object_holds_is_read_anew_at_each_entry(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b], 0);
    Model m = {.step = 0.5, .mode = "add"};
    weigh(vm, &m, "[1.0, 2.0, 3.0]");
    WeftValue *v = model(vm, &m);
    gives(vm, "fn f(m, x) = if m.mode == \"add\" { sum(m.weights * m.step + x) } else { -1.0 }\n(f(m, 1.0), f(m, 2.0))",
          "(6.0, 9.0)");
    double recompiles = stat(vm, "recompiles"), compiles = stat(vm, "compiles");
    if (b) assert_true(compiles >= 1);
    m.step = 2.0; /* nobody tells the VM */
    gives(vm, "f(m, 1.0)", "15.0");
    weigh(vm, &m, "[4.0, 5.0, 6.0, 7.0]");
    gives(vm, "f(m, 1.0)", "48.0");
    m.copies = true;
    gives(vm, "f(m, 1.0)", "8.0");
    assert_true(stat(vm, "recompiles") == recompiles); /* inputs, of any size */
    m.copies = false;
    weigh(vm, &m, "[[1.0, 2.0]]");
    gives(vm, "f(m, 1.0)", "8.0");
    assert_true(stat(vm, "recompiles") == recompiles + (b > 0)); /* another rank is another graph */
    m.mode = "none";
    gives(vm, "f(m, 1.0)", "-1.0");
    m.mode = "add";
    /* once, as no host ran */
    gives(vm, "let seen = m.asked\nfor i in 0..50 { seen = maximum(seen, m.asked) }\nseen == m.asked", "true");
    m.fails = true;
    fails_with(vm, "f(m, 1.0)", "value", "the model is away");
    gives(vm, "(try { f(m, 1.0) } catch e { e.message }, try { m.step } catch e { e.kind })",
          "(\"the model is away\", \"value\")");
    m.fails = false;
    gives(vm, "f(m, 1.0)", "8.0");
    fails_with(vm, "m.other", "name", "other");
    weft_release(vm, v);
    weft_release(vm, m.weights);
    weft_free(vm);
  }
}

static void B9_what_an_object_holds_changes_in_a_host_function(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b], 0);
    Model m = {.step = 1.0, .mode = "add"};
    weigh(vm, &m, "[1.0, 2.0]");
    WeftValue *v = model(vm, &m);
    gives(vm, "fn f(m, n, d) { let s = 0.0; let old = m.weights; for i in 0..n { s += sum(m.weights) * m.step; "
              "train(m, d); s += m.step; if i == 3 { old = m.weights } }; (s, sum(old)) }\n"
              "(f(m, 3, 1.0), f(m, 40, 0.0), f(m, 6, 0.5))", "((27.0, 3.0), (640.0, 3.0), (129.0, 3.0))");
    m.copies = true; /* another array each time that it is asked */
    gives(vm, "m.weights", "[7.0, 1.0]");
    gives(vm, "(f(m, 5, 1.0), f(m, 20, 0.0))", "((510.0, 12.0), (3360.0, 13.0))");
    m.copies = false;
    if (b) {
      gives(vm, "f(m, 20, 0.0)", "(960.0, 3.0)");
      double exits = stat(vm, "exits");
      gives(vm, "f(m, 500, 0.0)", "(24000.0, 3.0)");
      assert_true(stat(vm, "exits") <= exits + 3); /* what stays the same leaves no loop */
    }
    fails_with(vm, "f(m, 9, 101.0)", "value", "the model is away");
    weft_release(vm, v);
    weft_release(vm, m.weights);
    weft_free(vm);
  }
}

/* ---- refused memory --------------------------------------------------------------------------------------------- */

static long refuse_at, allocations;
static void *counted(void *context, void *p, size_t old_size, size_t new_size) {
  (void)context, (void)old_size;
  if (!new_size) {
    free(p);
    return NULL;
  }
  if (new_size > old_size && ++allocations == refuse_at) return NULL;
  return realloc(p, new_size);
}

static void B9_refused_memory_ends_a_call_cleanly(void **state) {
  (void)state;
  for (int b = 1; b < BACKENDS - 1; b += 2) {
    long last = 1;
    for (long n = 0; n <= last; n += n < 3 ? 1 : 97) {
      refuse_at = 0;
      WeftOptions o = WEFT_OPTIONS_INIT;
      o.backend = backends[b];
      o.hot = 1;
      o.resize = counted;
      WeftVM *vm = weft_new(&o);
      assert_non_null(vm);
      Counter c = {0, 0};
      object(vm, &counter_type, &c, "c");
      assert_int_equal(weft_define(vm, "tick", tick, NULL, NULL), WEFT_OK);
      assert_int_equal(weft_define(vm, "twice", twice, NULL, NULL), WEFT_OK);
      assert_int_equal(weft_define(vm, "ramp", ramp, NULL, NULL), WEFT_OK);
      Model m = {.mode = "add", .copies = true};
      weft_release(vm, model(vm, &m));
      allocations = 0;
      refuse_at = n;
      WeftValue *v = NULL;
      WeftStatus status = weft_eval(vm, "fn f(c, n) { let s = 0.0; for i in 0..n { s += tick(c, 1) + twice(x => x + 1, "
                                        "i) + sum(ramp(3)) + sum(m.weights) * m.step }; s }\n(f(c, 4), f(c, 5))",
                                    "test", &v);
      if (n == 0) last = allocations;
      if (status == WEFT_OK) {
        assert_string_equal(weft_show(vm, v), "(36.0, 70.0)");
        assert_int_equal(c.count, 9);
        weft_release(vm, v);
      } else {
        assert_true(c.count <= 9);
        assert_string_equal(weft_error_kind(vm), "limit");
      }
      refuse_at = 0;
      c.count = 0;
      if (status == WEFT_OK) gives(vm, "f(c, 2)", "14.0");
      weft_free(vm);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(B9_a_counter_called_in_a_hot_loop_stays_compiled),
      cmocka_unit_test(B9_loops_that_are_left_between_calls),
      cmocka_unit_test(B9_errors_in_the_middle_of_a_loop),
      cmocka_unit_test(B9_calls_back_into_the_program),
      cmocka_unit_test(B9_a_host_function_among_others),
      cmocka_unit_test(B9_results_that_change_their_kind),
      cmocka_unit_test(B9_arrays_go_out_and_come_in),
      cmocka_unit_test(B9_objects_that_change_under_the_program),
      cmocka_unit_test(B9_what_an_object_holds_is_read_anew_at_each_entry),
      cmocka_unit_test(B9_what_an_object_holds_changes_in_a_host_function),
      cmocka_unit_test(B9_refused_memory_ends_a_call_cleanly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
