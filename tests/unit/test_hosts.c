/* test_hosts.c — backends and devices that a host registers through weft.h, and nothing else of the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/inner.h"
#include "api/weft.h"
#include "tracer/tracer.h"
#include "tests/unit/programs.h"

/* ---- helpers ---------------------------------------------------------------------------------------- */

static double counter(WeftVM *vm, const char *name) {
  double value;
  const char *at;
  for (unsigned i = 0; (at = weft_stat_at(vm, i, &value)); i++)
    if (strcmp(at, name) == 0) return value;
  fail_msg("no counter %s", name);
  return -1;
}

static void run(WeftVM *vm, const char *program) {
  if (weft_eval(vm, program, "test", NULL) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
}

/* A program that raises: kind and part of the message. */
static void raises(WeftVM *vm, const char *program, const char *kind, const char *part) {
  assert_int_equal(weft_eval(vm, program, "test", NULL), WEFT_ERROR);
  if (strcmp(weft_error_kind(vm), kind) != 0 || !strstr(weft_error_message(vm), part))
    fail_msg("%s", weft_error_text(vm));
}

/* What is counted here goes by counts alone, not by the clock. */
static WeftVM *by_counts(WeftVM *vm) {
  Tracer *t = vm ? tracer_of(weft_vm_of(vm)) : NULL;
  if (t) tracer_ignore_clock(t);
  return vm;
}

static WeftVM *with(const WeftBackend *b, const char *name, int hot) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backends = b;
  o.backend_count = 1;
  o.backend = name;
  o.hot = hot < 0 ? 0 : hot ? hot : 1;
  return by_counts(weft_new(&o));
}

/* ---- a backend that looks on -------------------------------------------------------------------------- */

typedef struct Log {
  char text[4096];
  const char *to; /* handed on to */
  int compiled, ran, released;
  WeftStatus say; /* WEFT_ERROR: the run hook fails */
  bool after;     /* hands on inside of the hook */
} Log;

static void note(Log *l, const char *text) { strncat(l->text, text, sizeof l->text - strlen(l->text) - 1); }

static WeftCompiled logger_compile(WeftVM *vm, void *context, WeftGraph *graph, void **code) {
  Log *l = context;
  l->compiled++;
  note(l, weft_graph_name(graph));
  note(l, ":");
  for (size_t i = 0; weft_graph_input(graph, i); i++) {
    note(l, " ");
    note(l, weft_graph_input_name(vm, graph, i));
  }
  note(l, "\n");
  *code = l;
  return weft_graph_hand_on(vm, graph, l->to);
}

static WeftStatus logger_run(WeftVM *vm, void *context, WeftRun *r) {
  Log *l = context;
  assert_ptr_equal(r->code, l);
  l->ran++;
  note(l, weft_graph_name(r->graph));
  for (size_t i = 0; i < r->input_count; i++) {
    note(l, " ");
    note(l, weft_describe(vm, r->inputs[i]));
  }
  note(l, "\n");
  if (l->say == WEFT_ERROR) return weft_fail(vm, "value", "the log is full");
  return l->after ? weft_run_hand_on(vm, r) : WEFT_OK;
}

static void logger_release(void *context, void *code) {
  Log *l = context;
  assert_ptr_equal(code, l);
  l->released++;
}

static void A23_a_logging_backend_sees_graphs_and_inputs_in_order(void **state) {
  static const char *const to[] = {"mir", "interp", "loops"};
  (void)state;
  for (int i = 0; i < 6; i++) {
    Log l = {.to = to[i % 3], .after = i < 3};
    WeftBackend b = {sizeof b, "log", &l, logger_compile, logger_run, logger_release};
    WeftVM *vm = with(&b, "log", -1);
    assert_non_null(vm);
    run(vm, "fn h(x) = exp(x) * 2 + 1\nfn f(x, y) = sum(h(x) * y + 1)\nlet x = zeros(3)\nlet y = x + 2");
    gives(vm, "jit(f)(x, y) + jit(f)(y, zeros(1)) + sum(jit(h)(x))", "33.0");
    assert_string_equal(l.text, "f#1: arg0 arg1\nf#1 f64[3] f64[3]\nf#2: arg0 arg1\nf#2 f64[3] f64[1]\nh#3: arg0\n"
                                "h#3 f64[3]\n");
    weft_free(vm);
    assert_int_equal(l.released, 3);
  }
}

static void A23_what_is_handed_on_keeps_breaks_effects_and_errors(void **state) {
  Log l = {.to = "mir"};
  WeftBackend b = {sizeof b, "log", &l, logger_compile, logger_run, logger_release};
  WeftVM *vm = with(&b, "log", 0);
  (void)state;
  assert_non_null(vm);
  run(vm, "let seen = ref(0)\nfn f(x, i) { seen.value = seen.value + 1; let y = x * 2 + 1; let z = y[i]; "
          "seen.value = seen.value + 1; z * 2 }");
  gives(vm, "(f(arange(3.0), 1), f(arange(4.0), 3), seen.value)", "(6.0, 14.0, 4)");
  raises(vm, "f(arange(3.0), 7)", "index", "7");
  gives(vm, "seen.value", "5");
  gives(vm, "fn loop(n) { let s = 0.0; for i in 0..n { s = s + i * 0.5 }; s }; loop(10)", "22.5");
  assert_true(l.ran > 2);
  weft_free(vm);
  assert_int_equal(l.released, l.compiled);
}

static void A23_a_run_hook_that_fails_raises_and_loses_nothing(void **state) {
  static const char *const to[] = {"mir", "interp"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    Log l = {.to = to[i]};
    WeftBackend b = {sizeof b, "log", &l, logger_compile, logger_run, logger_release};
    WeftVM *vm = with(&b, "log", 0);
    assert_non_null(vm);
    run(vm, "let n = 0\nlet x = arange(500.0)\nfn f(x, y) { n = n + 1; sum(x * y + n) }\nf(x, x * 0)");
    l.say = WEFT_ERROR;
    raises(vm, "f(x, arange(500.0) * 2)", "value", "the log is full");
    l.say = WEFT_OK;
    gives(vm, "(n, f(x, x * 0), n)", "(1, 1000.0, 2)");
    weft_free(vm);
    assert_int_equal(l.released, l.compiled);
  }
}

/* ---- a backend that computes by itself: sums and products of vectors ------------------------------------ */

typedef struct Calc {
  int bad;     /* what is wrong with the next output: Bad */
  int ran, released, saw_nodes;
  bool scribbles;
} Calc;
enum Bad { GOOD, MISSING, DTYPE, SHAPE, RANK, TEXT, FAILS, SILENT, GIVES_BACK, WRONG };

static WeftCompiled calc_compile(WeftVM *vm, void *context, WeftGraph *graph, void **code) {
  WeftGraphNode n = {.size = sizeof n};
  WeftGraphValue v = {.size = sizeof v};
  (void)code;
  if (!weft_graph_simple(graph)) {
    (void)weft_fail(vm, NULL, "calc: no effects");
    return WEFT_UNSUPPORTED;
  }
  for (size_t i = 0; weft_graph_node(graph, i, &n); i++) {
    ((Calc *)context)->saw_nodes++;
    bool ok = strcmp(n.kind, "op") == 0 && n.plain && n.operand_count == 2 && n.result_count == 1 &&
              n.depth == 0 && (strcmp(n.name, "add") == 0 || strcmp(n.name, "multiply") == 0) &&
              weft_graph_value(graph, n.result, &v) && v.dtype == WEFT_F64 && v.rank == 1;
    if (ok) continue;
    char why[256];
    snprintf(why, sizeof why, "calc: not supported: %s", weft_graph_node_text(vm, graph, i));
    (void)weft_fail(vm, NULL, why);
    return WEFT_UNSUPPORTED;
  }
  return WEFT_COMPILED;
}

enum { CALC_VALUES = 256, CALC_SIZE = 64 };

static bool calc_read(WeftVM *vm, WeftRun *r, uint32_t id, double x[CALC_VALUES][CALC_SIZE], int64_t *size) {
  WeftValue *v = NULL;
  WeftArray a;
  if (weft_run_value(vm, r, id, &v) != WEFT_OK) return false;
  if (weft_array_view(vm, v, &a) != WEFT_OK || a.size > CALC_SIZE) return false;
  bool whole = a.dtype == WEFT_I64;
  for (int64_t i = 0; i < CALC_SIZE; i++) {
    int64_t at = a.rank && i < a.size ? i * a.strides[0] : 0;
    x[id][i] = whole ? (double)((const int64_t *)a.data)[at] : ((const double *)a.data)[at];
  }
  if (a.rank) *size = a.size;
  weft_release(vm, v);
  return true;
}

static WeftStatus calc_give(WeftVM *vm, int bad, const double *y, int64_t size, WeftValue **out) {
  int64_t shape[2] = {size, 1}, longer = size + 1;
  float f[CALC_SIZE + 1] = {0};
  double d[CALC_SIZE + 1] = {0};
  switch (bad) {
    case MISSING: return WEFT_OK;
    case DTYPE: return weft_array(vm, WEFT_F32, 1, shape, f, out);
    case SHAPE: return weft_array(vm, WEFT_F64, 1, &longer, d, out);
    case RANK: return weft_array(vm, WEFT_F64, 2, shape, d, out);
    case TEXT: return weft_text(vm, "no", 2, out);
    case WRONG: return weft_array(vm, WEFT_F64, 1, shape, d, out);
    default: return weft_array(vm, WEFT_F64, 1, shape, y, out);
  }
}

static WeftStatus calc_run(WeftVM *vm, void *context, WeftRun *r) {
  static double x[CALC_VALUES][CALC_SIZE];
  Calc *c = context;
  int64_t size = 0;
  WeftGraphNode n = {.size = sizeof n};
  WeftGraphValue v = {.size = sizeof v};
  c->ran++;
  if (c->bad == FAILS) return weft_fail(vm, "host", "calc broke down");
  if (c->bad == SILENT) return WEFT_ERROR;
  if (c->bad == GIVES_BACK) return WEFT_INCOMPLETE;
  for (size_t i = 0; weft_graph_node(r->graph, i, &n); i++) {
    for (size_t k = 0; k < 2; k++)
      if (weft_graph_value(r->graph, n.operands[k], &v) && v.known && !calc_read(vm, r, n.operands[k], x, &size))
        return WEFT_ERROR;
    for (int64_t k = 0; k < CALC_SIZE; k++) {
      double a = x[n.operands[0]][k], b = x[n.operands[1]][k];
      x[n.result][k] = n.name[0] == 'a' ? a + b : a * b;
    }
  }
  WeftArray in;
  if (c->scribbles && weft_array_view(vm, r->inputs[0], &in) == WEFT_OK) ((double *)(uintptr_t)in.data)[0] += 1;
  for (size_t i = 0; i < r->output_count; i++)
    if (calc_give(vm, c->bad, x[weft_graph_output(r->graph, i)], size, &r->outputs[i]) != WEFT_OK) return WEFT_ERROR;
  return WEFT_OK;
}

static void calc_release(void *context, void *code) {
  assert_null(code);
  ((Calc *)context)->released++;
}

static void A23_a_backend_of_the_host_computes(void **state) {
  Calc c = {0};
  WeftBackend b = {sizeof b, "calc", &c, calc_compile, calc_run, calc_release};
  WeftVM *vm = with(&b, "calc", 0);
  (void)state;
  assert_non_null(vm);
  run(vm, "fn f(x, y, k) = (x + y) * x + k");
  gives(vm, "(f(arange(3.0), ones(3), 1.0), f(arange(2.0), ones(2), 2.5))", "([1.0, 3.0, 7.0], [2.5, 4.5])");
  assert_int_equal(c.ran, 2);
  assert_true(c.saw_nodes >= 3);
  assert_true(counter(vm, "compiles") == 1);
  c.bad = GIVES_BACK; /* the interpreter does it */
  gives(vm, "f(arange(3.0), ones(3), 1.0)", "[1.0, 3.0, 7.0]");
  c.bad = GOOD;
  /* what it cannot do is the interpreter's, with a warning that names it */
  double warned = counter(vm, "warnings");
  gives(vm, "fn g(x) = sum(x * 2); (g(ones(3)), g(ones(4)))", "(6.0, 8.0)");
  assert_true(counter(vm, "warnings") == warned + 1);
  weft_free(vm);
  assert_true(c.released > 0);
}

static void A23_bad_outputs_are_errors_and_lose_nothing(void **state) {
  static const struct {
    int bad;
    const char *kind, *part;
  } cases[] = {
      {MISSING, "host", "it is missing"}, {DTYPE, "host", "should be f64[n0]: f32"}, {SHAPE, "host", "another shape"},
      {RANK, "host", "another rank"},
      {TEXT, "host", "no array"}, {FAILS, "host", "calc broke down"}, {SILENT, "host", "running f#1 failed"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    Calc c = {0};
    WeftBackend b = {sizeof b, "calc", &c, calc_compile, calc_run, calc_release};
    WeftVM *vm = with(&b, "calc", 0);
    assert_non_null(vm);
    run(vm, "let x = arange(3.0)\nfn f(x, y) = (x + y) * x\nf(x, x)");
    c.bad = cases[i].bad;
    raises(vm, "f(x, x * 0 + 1)", cases[i].kind, cases[i].part);
    raises(vm, "f(ones(40) + 1, ones(40) * 2)", cases[i].kind, cases[i].part);
    c.bad = GOOD;
    gives(vm, "f(x, x)", "[0.0, 2.0, 8.0]");
    assert_true(c.ran >= 4);
    weft_free(vm);
    assert_int_equal(c.released, 1);
  }
}

typedef struct Budget {
  long left; /* allocations until one is refused; -1: none is */
  long live;
} Budget;

static void *budget_resize(void *context, void *p, size_t old_size, size_t new_size) {
  Budget *b = context;
  if (new_size > old_size && b->left >= 0 && b->left-- == 0) {
    b->left = 0;
    return NULL;
  }
  b->live += (long)new_size - (long)old_size;
  if (new_size) return realloc(p, new_size);
  free(p);
  return NULL;
}

/* Every allocation of a run and of a compilation is refused once. */
static void A23_memory_that_is_refused_is_reported(void **state) {
  (void)state;
  for (int handed = 0; handed < 2; handed++) {
    bool done = false;
    for (long n = 0; !done; n++) {
      Calc c = {0};
      Log l = {.to = "mir"};
      Budget budget = {-1, 0};
      WeftBackend b = handed ? (WeftBackend){sizeof b, "own", &l, logger_compile, logger_run, logger_release}
                             : (WeftBackend){sizeof b, "own", &c, calc_compile, calc_run, calc_release};
      WeftOptions o = WEFT_OPTIONS_INIT;
      o.backends = &b;
      o.backend_count = 1;
      o.backend = "own";
      o.hot = 1;
      o.resize = budget_resize;
      o.resize_context = &budget;
      WeftVM *vm = weft_new(&o);
      assert_non_null(vm);
      run(vm, "let x = arange(3.0)\nlet r = nil\nfn f(x, y) = (x + y) * x");
      budget.left = n;
      WeftStatus status = weft_eval(vm, "r = f(x, x); r = f(x, x)", "test", NULL);
      done = budget.left > 0;
      budget.left = -1;
      if (status == WEFT_OK) gives(vm, "r", "[0.0, 2.0, 8.0]");
      else if (strcmp(weft_error_kind(vm), "limit") != 0) fail_msg("%ld: %s", n, weft_error_text(vm));
      gives(vm, "f(x, x)", "[0.0, 2.0, 8.0]");
      weft_free(vm);
      assert_true(budget.live == 0);
      assert_true(!handed || l.released <= l.compiled);
    }
  }
}

static WeftCompiled meddling_compile(WeftVM *vm, void *context, WeftGraph *graph, void **code) {
  (void)code;
  (void)graph;
  *(int *)context = weft_eval(vm, "1 + 1", "inside", NULL) == WEFT_MISUSE;
  return WEFT_SKIP;
}

static WeftCompiled twice_compile(WeftVM *vm, void *context, WeftGraph *graph, void **code) {
  (void)code;
  WeftCompiled first = weft_graph_hand_on(vm, graph, "nobody"), second = weft_graph_hand_on(vm, graph, "mir");
  *(int *)context = first == WEFT_UNSUPPORTED && second == WEFT_FATAL;
  return WEFT_COMPILED; /* which is not true */
}

static void A23_a_host_that_breaks_the_rules_is_told(void **state) {
  int told = 0;
  (void)state;
  WeftBackend b = {sizeof b, "odd", &told, meddling_compile, NULL, NULL};
  WeftVM *vm = with(&b, "odd", 0);
  gives(vm, "fn f(x) = sum(x * 2 + 1); f(ones(3))", "9.0");
  assert_true(told);
  weft_free(vm);
  b.compile = twice_compile;
  told = 0;
  vm = with(&b, "odd", 0);
  gives(vm, "fn f(x) = sum(x * 2 + 1); f(ones(3))", "9.0");
  assert_true(told);
  raises(vm, "fn g(x) = sum(x * 3 + 1); jit(g)(ones(3))", "unsupported", "no backend nobody");
  weft_free(vm);
  assert_null(with(&b, "even", 0));
  WeftBackend named[] = {{sizeof b, "mir", &told, twice_compile, NULL, NULL},
                         {sizeof b, "a b", &told, twice_compile, NULL, NULL},
                         {sizeof b, "x", &told, NULL, NULL, NULL}, {8, "x", &told, twice_compile, NULL, NULL},
                         {sizeof b, "eager", &told, twice_compile, NULL, NULL}};
  for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) assert_null(with(&named[i], NULL, 0));
}

static void A24_what_a_host_says_is_told_apart(void **state) {
  (void)state;
  Log l = {.to = "nobody"};
  WeftBackend b = {sizeof b, "log", &l, logger_compile, logger_run, logger_release};
  WeftVM *vm = with(&b, "log", 0);
  gives(vm, "fn f(x) = sum(x * 2 + 1); f(ones(3))", "9.0");
  assert_true(counter(vm, "warnings") == 1);
  assert_int_equal(l.released, 0);
  weft_free(vm);
}

/* ---- verify ---------------------------------------------------------------------------------------------- */

static void A25_a_host_backend_that_is_wrong_or_scribbles_is_caught(void **state) {
  Calc c = {0};
  WeftBackend b = {sizeof b, "calc", &c, calc_compile, calc_run, calc_release};
  WeftVM *vm = with(&b, "verify:calc", 0);
  (void)state;
  assert_non_null(vm);
  run(vm, "let x = arange(3.0)\nfn f(x, y) = (x + y) * x");
  gives(vm, "f(x, x)", "[0.0, 2.0, 8.0]");
  c.bad = WRONG;
  raises(vm, "f(x, x)", "assert", "verify: region f#1, exit");
  c.bad = GOOD;
  c.scribbles = true;
  raises(vm, "f(x, x + 1)", "assert", "verify: region f#1: compiled code wrote to its input arg0");
  c.scribbles = false;
  gives(vm, "f(arange(3.0), x * 0)", "[0.0, 1.0, 4.0]");
  assert_int_equal(c.ran, 4);
  weft_free(vm);
  assert_null(with(&b, "verify:nobody", 0));
  assert_null(with(&b, "verify:verify", 0));
}

/* ---- a device of the host --------------------------------------------------------------------------------- */

typedef struct Mock {
  long blocks, copies, fail_after; /* fail_after: copies until one fails; -1: none does */
} Mock;

/* Addresses of the device are none of the processor's: whoever reads one as its memory ends the test. */
#define FAR ((uintptr_t)1 << 50)
static void *far_of(const void *near) { return (void *)((uintptr_t)near + FAR); }
static void *near_of(const void *far) { return (void *)((uintptr_t)far - FAR); }

static void *mock_alloc(void *context, size_t bytes) {
  void *made = bytes > 1 << 20 ? NULL : malloc(bytes);
  ((Mock *)context)->blocks += made != NULL;
  return made ? far_of(made) : NULL;
}

static void mock_free(void *context, void *data, size_t bytes) {
  (void)bytes;
  ((Mock *)context)->blocks--;
  free(near_of(data));
}

static bool mock_copy(Mock *m, void *to, const void *from, size_t bytes) {
  if (m->fail_after >= 0 && m->fail_after-- == 0) {
    m->fail_after = 0;
    return false;
  }
  m->copies++;
  memcpy(to, from, bytes);
  return true;
}
static bool mock_to_host(void *context, const void *data, void *host, size_t bytes) {
  return mock_copy(context, host, near_of(data), bytes);
}
static bool mock_from_host(void *context, const void *host, void *data, size_t bytes) {
  return mock_copy(context, near_of(data), host, bytes);
}

static WeftDevice mock_device(Mock *m) {
  *m = (Mock){.fail_after = -1};
  return (WeftDevice){sizeof(WeftDevice), "mock", m, mock_alloc, mock_free, mock_to_host, mock_from_host};
}

static WeftVM *with_device(const WeftDevice *d, const char *device, const char *backend, int hot) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.own_device = d;
  o.device = device;
  o.backend = backend;
  o.hot = hot < 0 ? 0 : hot ? hot : 1;
  return by_counts(weft_new(&o));
}

static const char *const tiers[] = {"eager", "interp", "loops", "mir", "verify"};
enum { TIERS = sizeof tiers / sizeof tiers[0] };

static void E10_a_device_of_the_host_holds_arrays(void **state) {
  (void)state;
  for (int i = 0; i < TIERS; i++) {
    Mock m;
    WeftDevice d = mock_device(&m);
    WeftVM *vm = with_device(&d, NULL, tiers[i], 0);
    assert_non_null(vm);
    run(vm, "let x = to(arange(6.0), \"mock\")\nfn f(x) = sum(x * 2 + 1)\n"
            "fn g(x, y) = (x * y, x[1:3], x.T, stack((x, y)))");
    gives(vm, "(x.device, (x * 2).device, x[2:4].device, to(x, \"cpu\").device)",
          "(\"mock\", \"mock\", \"mock\", \"cpu\")");
    gives(vm, "(f(x), f(to(arange(3.0), \"mock\")), f(arange(3.0)), x)",
          "(36.0, 9.0, 9.0, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])");
    gives(vm, "let r = g(x, x + 1); (r[0].device, r[0], r[1], sum(r[3]))",
          "(\"mock\", [0.0, 2.0, 6.0, 12.0, 20.0, 30.0], [1.0, 2.0], 36.0)");
    gives(vm, "(zeros(2, device=\"mock\").device, zeros_like(x).device, zeros_like(x, device=\"cpu\").device)",
          "(\"mock\", \"mock\", \"cpu\")");
    gives(vm, "let y = jit(x => x + 1, device=\"mock\")(arange(2.0)); (y.device, y)", "(\"mock\", [1.0, 2.0])");
    raises(vm, "x + arange(6.0)", "value", "the operands lie on different devices");
    raises(vm, "x[7]", "index", "7");
    raises(vm, "to(ones(1000000), \"mock\")", "limit", "the device mock has no memory");
    raises(vm, "to(x, \"tpu\")", "value", "\"cpu\", \"gpu\" or \"mock\"");
    m.fail_after = 0;
    raises(vm, "x + 1", "host", "the device mock failed");
    m.fail_after = -1;
    gives(vm, "f(x)", "36.0");
    weft_free(vm);
    assert_true(m.blocks == 0);
    assert_true(m.copies > 0);
  }
}

static void A13_the_default_device_is_one_recompile_and_back_is_a_hit(void **state) {
  (void)state;
  for (int i = 0; i < TIERS; i++) {
    Mock m;
    WeftDevice d = mock_device(&m);
    WeftVM *vm = with_device(&d, "mock", tiers[i], 0);
    bool compiles = i > 0;
    assert_non_null(vm);
    gives(vm, "(zeros(2).device, arange(3).device, full(2, 7).device, ones_like([1]).device, [1, 2].device, zeros(2, "
              "device=\"cpu\").device)", "(\"mock\", \"mock\", \"mock\", \"cpu\", \"cpu\", \"cpu\")");
    run(vm, "let c = [1.0, 2.0]\nlet p = to(c, \"mock\")\nfn f(x) = sum(x * 2 + 1)\nfn g(x) = sum(x + ones(2))");
    gives(vm, "(f(c), g(p))", "(8.0, 5.0)");
    assert_int_equal(weft_set_device(vm, "cpu"), WEFT_OK);
    double before = counter(vm, "recompiles");
    gives(vm, "(f(c), zeros(2).device)", "(8.0, \"cpu\")");
    assert_true(counter(vm, "recompiles") == before + compiles);
    gives(vm, "g(c)", "5.0");
    assert_int_equal(weft_set_device(vm, "mock"), WEFT_OK);
    before = counter(vm, "recompiles");
    gives(vm, "(f(c), g(p))", "(8.0, 5.0)");
    assert_true(counter(vm, "recompiles") == before);
    assert_int_equal(weft_set_device(vm, "tpu"), WEFT_MISUSE);
    run(vm, "fn draws(k) = (k, rand(2), randn(2), random.split(k), random.normal(k, 3), random.permutation(k, 3),\n"
            "  random.permutation(k, to([1.0, 2.0], k.device)), random.uniform(k, (2,)), random.fold_in(k, 1))\n"
            "fn all_on(d) = all(array(map(x => x.device == d, draws(random.key(1)))))");
    gives(vm, "(all_on(\"mock\"), rand().device)", "(true, \"cpu\")");
    assert_int_equal(weft_set_device(vm, "cpu"), WEFT_OK);
    gives(vm, "(all_on(\"cpu\"), draws(to(random.key(1), \"mock\"))[4].device)", "(true, \"mock\")");
    weft_free(vm);
    assert_true(m.blocks == 0);
  }
  Mock m;
  WeftDevice d = mock_device(&m);
  assert_null(with_device(&d, "tpu", NULL, 0));
  d.name = "gpu";
  assert_null(with_device(&d, NULL, NULL, 0));
  d.name = "mock";
  d.to_host = NULL;
  assert_null(with_device(&d, NULL, NULL, 0));
}

/* jit(device=) moves arguments: another device of theirs is one recompile, and back is a hit. */
static void A13_jit_with_a_device_is_one_recompile_and_back_is_a_hit(void **state) {
  Mock m;
  WeftDevice d = mock_device(&m);
  WeftVM *vm = with_device(&d, NULL, "mir", -1);
  (void)state;
  run(vm, "let c = [1.0, 2.0]\nfn f(x) = sum(x * 2 + 1)\nlet here = jit(f, device=\"cpu\")\n"
          "let there = jit(f, device=\"mock\")");
  gives(vm, "(here(c), trace.stats(f).compiles, trace.stats(f).recompiles)", "(8.0, 1, 0)");
  gives(vm, "(there(c), trace.stats(f).compiles, trace.stats(f).recompiles)", "(8.0, 2, 1)");
  gives(vm, "(here(c), there(c), here(c), trace.stats(f).compiles)", "(8.0, 8.0, 8.0, 2)");
  weft_free(vm);
}

/* On a tape and under eager(f) the interpreter runs: what was compiled stays, and is found again behind them. The
 * state of the generator is read and written, not relied on. Transforms are part of what is traced: each is a
 * function of its own. */
static void A13_other_modes_compile_nothing_and_back_is_a_hit(void **state) {
  WeftVM *vm = with_device(NULL, NULL, "mir", -1);
  (void)state;
  run(vm, "let c = [1.0, 2.0]\nfn f(x) = sum(x * x + 1)\nfn noisy(x) { if len(x) == 9 { print(x) }; f(x) }\n"
          "fn r(x) = sum(x + rand(2))\nfor k in 0..40 { f(c); r(c) }");
  double compiles = counter(vm, "compiles");
  gives(vm, "(f(c), trace.stats(f).recompiles)", "(7.0, 0)");
  gives(vm, "(eager(f)(c), f(c), trace.stats(f).compiles)", "(7.0, 7.0, 1)");
  gives(vm, "(grad(x => { let y = f(x); if len(x) == 3 { print(y) }; y })(c), f(c), trace.stats(f).compiles)",
        "([2.0, 4.0], 7.0, 1)");
  gives(vm, "seed(3); let a = r(c); seed(3); (r(c) == a, trace.stats(r).compiles, trace.stats(r).recompiles)",
        "(true, 1, 0)");
  assert_true(counter(vm, "compiles") <= compiles + 4);
  weft_free(vm);
}

/* ---- guards of what only a host can change ------------------------------------------------------------------- */

/* f was compiled for `first`; `other` differs by one property: one recompile whose reason has `why`, then all are
 * hits. */
static void changes(WeftVM *vm, const char *what, const char *first, const char *other, const char *why) {
  char text[256];
  run(vm, first);
  run(vm, first);
  double compiled = counter(vm, "compiles"), recompiled = counter(vm, "recompiles");
  run(vm, other);
  if (counter(vm, "recompiles") != recompiled + 1)
    fail_msg("%s: %g recompiles", what, counter(vm, "recompiles") - recompiled);
  snprintf(text, sizeof text, "%s", weft_dump(vm, NULL, "why"));
  if (!strstr(text, why)) fail_msg("%s: %s", what, text);
  run(vm, first);
  run(vm, other);
  if (counter(vm, "compiles") != compiled + 1) fail_msg("%s: compiles again", what);
}

static uint64_t one_word(void *object) { return *(uint64_t *)object; }

static void B2_what_a_host_changes_is_one_recompile_and_the_reason_names_it(void **state) {
  static const WeftHandleType plain = {.size = sizeof plain, .name = "plain"},
  other = {.size = sizeof other, .name = "other"},
                              watched = {.size = sizeof watched, .name = "watched", .guard = one_word};
  Mock m;
  WeftDevice d = mock_device(&m);
  WeftVM *vm = with_device(&d, NULL, "mir", 0);
  WeftValue *h = NULL, *fields = NULL, *one = NULL;
  uint64_t word = 1;
  const char *key = "scale";
  (void)state;
  run(vm, "let c = [1.0, 2.0, 3.0, 4.0]\nlet p = to(c, \"mock\")\nfn f(x) = sum(x * 2 + 1)\nfn g(x) = x * 2 + 1\n"
          "fn of(h, x) = sum(x * h.scale)\n");
  changes(vm, "device", "g(c)", "g(p)", "type(x), wanted f64 of rank 1, got f64 of rank 1 on device 2");
  run(vm, "f(c)");
  double recompiles = counter(vm, "recompiles"); /* one graph serves all layouts: kernels read strides */
  run(vm, "f(c[::2]); f(c[::-1]); f(broadcast_to([1.0], (4,))); f(reshape(c, (2, 2)).T[0])");
  assert_true(counter(vm, "recompiles") == recompiles);
  run(vm, "f(c)");
  assert_int_equal(weft_set_device(vm, "mock"), WEFT_OK);
  run(vm, "f(c)");
  assert_true(counter(vm, "recompiles") == recompiles + 1);
  if (!strstr(weft_dump(vm, NULL, "why"), "ambient, wanted device cpu, got device mock"))
    fail_msg("%s", weft_dump(vm, NULL, "why"));
  assert_int_equal(weft_set_device(vm, "cpu"), WEFT_OK);
  /* objects of the host */
  assert_int_equal(weft_float(vm, 2, &one), WEFT_OK);
  assert_int_equal(weft_record(vm, &key, &one, 1, &fields), WEFT_OK);
  static const struct {
    const char *name;
    const WeftHandleType *type;
  } made[] = {{"a", &plain}, {"b", &plain}, {"o", &other}, {"w", &watched}};
  for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
    assert_int_equal(weft_handle(vm, made[i].type, &word, fields, &h), WEFT_OK);
    assert_int_equal(weft_set_global(vm, made[i].name, h), WEFT_OK);
    weft_release(vm, h);
  }
  run(vm, "fn of2(h, x) = sum(x * h.scale)\nof(a, c)");
  recompiles = counter(vm, "recompiles");
  run(vm, "of(b, c)"); /* another object of the same type */
  assert_true(counter(vm, "recompiles") == recompiles);
  changes(vm, "object's type", "of(a, c)", "of(o, c)", "h");
  run(vm, "of2(w, c)");
  word = 2;
  recompiles = counter(vm, "recompiles");
  run(vm, "of2(w, c)");
  assert_true(counter(vm, "recompiles") == recompiles + 1);
  if (!strstr(weft_dump(vm, NULL, "why"), "host")) fail_msg("%s", weft_dump(vm, NULL, "why"));
  word = 1;
  run(vm, "of2(w, c)");
  assert_true(counter(vm, "recompiles") == recompiles + 1);
  weft_release(vm, fields);
  weft_release(vm, one);
  weft_free(vm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(A23_a_logging_backend_sees_graphs_and_inputs_in_order),
      cmocka_unit_test(A23_what_is_handed_on_keeps_breaks_effects_and_errors),
      cmocka_unit_test(A23_a_run_hook_that_fails_raises_and_loses_nothing),
      cmocka_unit_test(A23_a_backend_of_the_host_computes),
      cmocka_unit_test(A23_bad_outputs_are_errors_and_lose_nothing),
      cmocka_unit_test(A23_memory_that_is_refused_is_reported),
      cmocka_unit_test(A23_a_host_that_breaks_the_rules_is_told),
      cmocka_unit_test(A24_what_a_host_says_is_told_apart),
      cmocka_unit_test(E10_a_device_of_the_host_holds_arrays),
      cmocka_unit_test(A13_the_default_device_is_one_recompile_and_back_is_a_hit),
      cmocka_unit_test(A13_jit_with_a_device_is_one_recompile_and_back_is_a_hit),
      cmocka_unit_test(A13_other_modes_compile_nothing_and_back_is_a_hit),
      cmocka_unit_test(B2_what_a_host_changes_is_one_recompile_and_the_reason_names_it),
      cmocka_unit_test(A25_a_host_backend_that_is_wrong_or_scribbles_is_caught),
  };
  return cmocka_run_group_tests_name("hosts", tests, NULL, NULL);
}
