/* test_explain.c — the log of capture as JSON and as spans, what it counts, dumps by the names of the program; a graph
 * whose node reads a value of another block is reported. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "tracer/graph/graph.h"
#include "tracer/report/explain.h"
#include "tracer/tracer.h"
#include "tracer/tier/budget.h"
#include "tests/unit/programs.h"

/* ---- JSON: a reader that says whether a text is well formed ---------------------------------------------------- */

static const char *blanks(const char *s) { return s + strspn(s, " \t\r\n"); }

static const char *json_text(const char *s) {
  if (*s++ != '"') return NULL;
  for (; *s != '"'; s++) {
    if ((unsigned char)*s < 0x20) return NULL;
    if (*s != '\\') continue;
    s++;
    if (*s == 'u') {
      for (int i = 1; i <= 4; i++)
        if (!strchr("0123456789abcdefABCDEF", s[i]) || !s[i]) return NULL;
      s += 4;
    } else if (!*s || !strchr("\"\\/bfnrt", *s)) {
      return NULL;
    }
  }
  return s + 1;
}

static const char *json_number(const char *s) {
  const char *first = s += *s == '-';
  s += strspn(s, "0123456789");
  if (s == first || (*first == '0' && s > first + 1)) return NULL;
  if (*s == '.') {
    size_t n = strspn(s + 1, "0123456789");
    if (!n) return NULL;
    s += 1 + n;
  }
  return s;
}

static const char *json_value(const char *s, int depth) {
  s = blanks(s);
  if (depth > 32) return NULL;
  if (*s == '"') return json_text(s);
  if (*s != '{' && *s != '[') {
    if (strncmp(s, "true", 4) == 0 || strncmp(s, "null", 4) == 0) return s + 4;
    return strncmp(s, "false", 5) == 0 ? s + 5 : json_number(s);
  }
  char open = *s, close = open == '{' ? '}' : ']';
  s = blanks(s + 1);
  if (*s == close) return s + 1;
  for (;;) {
    if (open == '{') {
      if (!(s = json_text(blanks(s)))) return NULL;
      s = blanks(s);
      if (*s++ != ':') return NULL;
    }
    if (!(s = json_value(s, depth + 1))) return NULL;
    s = blanks(s);
    if (*s == close) return s + 1;
    if (*s++ != ',') return NULL;
  }
}

static void well_formed(const char *text) {
  const char *end = json_value(text, 0);
  assert_non_null(end);
  assert_int_equal(*blanks(end), 0);
}

static int count(const char *text, const char *part) {
  int n = 0;
  for (; (text = strstr(text, part)); text += strlen(part)) n++;
  return n;
}

/* ---- a program with one of each -------------------------------------------------------------- */

static const char program[] =
    "fn f(params, x) = sum(params.w[2] * x + 1)\n"
    "fn noisy(x) { let y = x * 2; print(sum(y)); y + 1 }\n"
    "fn told(x) { let s = 0.0; for v in x { if v == 5 { print(\"five\") }; s += v }; s }\n"
    "for i in 0..3 { f({w: (1, 2, ones(100))}, ones(100)) }\n"
    "f({w: (1, 2, ones(100))}, ones(1))\n"
    "f({w: (1, 2, ones(100))}, arange(100))\n"
    "noisy(ones(10))\n"
    "told(arange(8.0))\n";

static void quiet(void *context, const char *text, size_t length) {
  (void)context;
  (void)text;
  (void)length;
}

static WeftVM *run(bool runs) {
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backend = "mir";
  options.hot = 1;
  options.output = quiet;
  WeftVM *vm = weft_new(&options);
  assert_non_null(vm);
  tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
  weft_keep_log(vm, runs);
  assert_int_equal(weft_eval(vm, program, "a \"quoted\" \\ name\n", NULL), WEFT_OK);
  return vm;
}

static void A28_the_log_as_json(void **state) {
  (void)state;
  WeftVM *vm = run(false);
  char *json = strdup(weft_dump(vm, NULL, "json"));
  assert_non_null(json);
  well_formed(json);
  assert_int_equal(count(json, "{\"kind\": \"compile\""), (int)stat(vm, "compiles"));
  assert_int_equal(count(json, "{\"kind\": \"break\""), (int)stat(vm, "breaks"));
  assert_int_equal(count(json, "{\"kind\": \"miss\""), (int)stat(vm, "recompiles"));
  assert_non_null(strstr(json, "\"reason\": \"output\", \"text\": \"print\", \"file\": "
                               "\"a \\\"quoted\\\" \\\\ name\\u000a\", \"line\": 2, \"column\": 30"));
  assert_non_null(strstr(json, "\"phases_us\": {\"record\": "));
  assert_non_null(strstr(json, "\"lost_events\": 0"));
  free(json);
  weft_free(vm);
}

static void A28_misses_speak_the_language_of_the_program(void **state) {
  (void)state;
  WeftVM *vm = run(false);
  const char *json = weft_dump(vm, NULL, "json");
  assert_non_null(strstr(json, "\"guard\": \"size(params.w[2], 0) == size(x, 0)   because multiply\", \"wanted\": "
                               "\"1\", \"got\": \"100\""));
  assert_non_null(strstr(json, "\"guard\": \"type(x)\", \"wanted\": \"f64 of rank 1\", \"got\": \"i64 of rank 1\""));
  weft_free(vm);
}

static void A28_kernels_count_bytes_and_flops(void **state) {
  (void)state;
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backend = "mir";
  options.hot = 1;
  WeftVM *vm = weft_new(&options);
  tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
  weft_keep_log(vm, false);
  assert_int_equal(weft_eval(vm, "fn f(x) = x * 2.0 + 1.0\nf(ones(100)); f(ones(1000))", "p", NULL), WEFT_OK);
  const char *json = weft_dump(vm, NULL, "json");
  well_formed(json);
  /* 8 bytes read, 8 written, a product and a sum for each element */
  assert_non_null(strstr(json, "\"runs\": 2, \"trips\": 1100, \"bytes\": 17600, \"flops\": 2200"));
  weft_free(vm);
}

/* A loop of native code calls a kernel for the sum at each trip: its runs are counted, at every level of vector
 * code. */
static void A28_kernels_that_native_loops_call_are_counted(void **state) {
  (void)state;
  static const char *const levels[] = {"scalar", "avx2", NULL};
  for (u32 i = 0; i < 3; i++) {
    WeftOptions options = WEFT_OPTIONS_INIT;
    options.backend = "mir";
    options.cpu = levels[i];
    options.hot = 1;
    WeftVM *vm = weft_new(&options);
    if (!vm) continue; /* the processor has no AVX2 */
    tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
    weft_keep_log(vm, true);
    assert_int_equal(weft_eval(vm, "fn f(x) {\n let y = x + 0.0\n for i in 1..len(x) { y[i] = dot(x[:i], y[:i]) }\n y\n"
                                   "}\nf(ones(100))", "p", NULL), WEFT_OK);
    const char *json = weft_dump(vm, NULL, "json");
    /* of 1 + 2 + ... + 99 elements two of 8 bytes are read, multiplied and added; each sum is written */
    assert_non_null(strstr(json, "\"runs\": 99, \"trips\": 99, "));
    assert_non_null(strstr(json, "\"flops\": 9900, \"written\": 792"));
    weft_free(vm);
  }
}

static void A28_a_profile_weighs_kernels_by_the_machine(void **state) {
  (void)state;
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backend = "mir";
  options.hot = 1;
  WeftVM *vm = weft_new(&options);
  tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
  weft_keep_log(vm, true);
  assert_int_equal(weft_eval(vm, "fn f(x) = x * 2.0 + 1.0\nf(ones(1000000)); f(ones(1000000))", "p", NULL), WEFT_OK);
  char *table = strdup(weft_dump(vm, NULL, "profile"));
  double copy = 0, flops = 0, share = 0;
  const char *machine = strstr(table, "copies ");
  assert_non_null(machine);
  assert_int_equal(sscanf(machine, "copies %lf GB/s (read and written), %lf", &copy, &flops), 2);
  assert_true(copy > 0 && flops > 0);
  /* 2 runs: 8 MB read, 8 MB written, two operations each */
  const char *row = strstr(table, "   16.000    16.000     4.000 ");
  assert_non_null(row);
  assert_int_equal(sscanf(row, "%*f %*f %*f %*f %*f %lf %%", &share), 1);
  while (row > table && row[-1] != '\n') row--;
  double ms = 0, least = 32 / copy > 4 / flops ? 32 / copy : 4 / flops; /* the machine's own time for that, ms */
  assert_int_equal(sscanf(row, "%*f %% %lf ms", &ms), 1);
  double want = 100 * least / ms;
  /* as they are printed */
  assert_true(fabs(share - want) <= 1 + want * (0.05 / (copy < flops ? copy : flops) + 0.001 / ms));
  free(table);
  weft_free(vm);
}

static void A28_spans_for_a_trace_viewer(void **state) {
  (void)state;
  WeftVM *vm = run(true);
  char *spans = strdup(weft_dump(vm, NULL, "chrome"));
  assert_non_null(spans);
  well_formed(spans);
  int compiles = (int)stat(vm, "compiles");
  assert_int_equal(count(spans, "\"cat\": \"compile\""), compiles);
  assert_int_equal(count(spans, "\"cat\": \"phase\""), compiles * PHASE_COUNT);
  assert_true(count(spans, "\"cat\": \"run\"") >= compiles);
  assert_int_equal(count(spans, "\"ph\": \"X\""), compiles * (1 + PHASE_COUNT) + count(spans, "\"cat\": \"run\""));
  assert_true(count(spans, "\"exit\": \"break\"") >= 1);
  free(spans);
  weft_free(vm);
}

static void A28_without_being_asked_only_the_newest_are_kept(void **state) {
  (void)state;
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backend = "mir";
  options.hot = 1;
  WeftVM *vm = weft_new(&options);
  tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
  for (int i = 0; i < 300; i++) assert_int_equal(weft_eval(vm, "fn g(x) = sum(x * 2)\ng(ones(3))", "p", NULL), WEFT_OK);
  const char *json = weft_dump(vm, NULL, "json");
  well_formed(json);
  assert_true(count(json, "{\"kind\": ") == EVENTS_KEPT);
  assert_null(strstr(json, "\"lost_events\": 0,\n")); /* what the log dropped, not the counter of that name */
  weft_free(vm);
}

static void B1_guards_are_printed_as_paths_of_the_program(void **state) {
  (void)state;
  WeftVM *vm = run(false);
  WeftValue *f = NULL;
  assert_int_equal(weft_get_global(vm, "f", &f), WEFT_OK);
  const char *text = weft_dump(vm, f, "guards");
  assert_non_null(strstr(text, "type(params.w[2])"));
  assert_non_null(strstr(text, "len(params.w) == 3"));
  assert_non_null(strstr(text, "size(params.w[2], 0) == size(x, 0)"));
  assert_null(strstr(text, "arg0"));
  text = weft_dump(vm, f, "why");
  assert_non_null(strstr(text, "recompiled at "));
  assert_non_null(strstr(text, "type(x), wanted f64 of rank 1, got i64 of rank 1"));
  text = weft_dump(vm, NULL, "why");
  assert_non_null(strstr(text, ": "));
  assert_int_equal(count(text, "\n"), 2); /* one line, and the one in the name of the program */
  weft_release(vm, f);
  weft_free(vm);
}

/* ---- the verifier ---------------------------------------------------------------------------- */

static const char two_arms[] =
    "graph a#1  file 0  ambient 0\n"
    "frame 0 a\n"
    "in %1: f64[] = arg0\n"
    "in %2: bool[] = arg1\n"
    "%3 = cond %2 (%1) {\n"
    "  then (%4: f64[]) {\n"
    "    %5 = add %4 1 : f64[]\n"
    "    yield %5\n"
    "  }\n"
    "  else (%6: f64[]) {\n"
    "    yield %6\n"
    "  }\n"
    "} : f64[]\n"
    "%7 = multiply %3 %1 : f64[]\n"
    "out %7 -> 0\n"
    "exit 0 return { a: ret = %7 }\n";

static void A6_an_operand_of_another_block_is_reported(void **state) {
  (void)state;
  WeftVM *vm = weft_new(NULL);
  Vm *inner = weft_vm_of(vm);
  char err[200] = "";
  Graph *g = graph_parse(&inner->alloc, &inner->names, two_arms, sizeof two_arms - 1, err, sizeof err);
  assert_string_equal(err, "");
  assert_non_null(g);
  Buf why;
  buf_init(&why, &inner->alloc);
  assert_true(graph_verify(g, &why));
  /* the product in the root reads what an arm of the cond made */
  ValueId within = 0;
  NodeId product = 0;
  for (GraphWalk w = walk_begin(g, 1); walk_next(&w);) {
    const GraphNode *n = graph_node_at(g, w.node);
    if (n->kind == NODE_op && n->op == OP_add) within = n->result_first;
    if (n->kind == NODE_op && n->op == OP_multiply) product = w.node;
  }
  assert_true(within && product);
  g->operands.data[graph_node_at(g, product)->operand_first] = within;
  assert_false(graph_verify(g, &why));
  assert_non_null(strstr(buf_text(&why), "multiply"));
  assert_non_null(strstr(buf_text(&why), "block"));
  buf_free(&why);
  graph_free(g);
  weft_free(vm);
}

/* The text of an export is a graph: it parses, verifies, and prints as it was. */
static void A26_the_text_of_an_export_is_read_back(void **state) {
  (void)state;
  static const char *const programs[] = {
      "trace.export((x, y) => sum(x * 2 + y), ones((3, 4)), 1.5).text",
      ("fn f(p, n) { let s = sum(p.w); "
       "for v in p.w { if v > 0.5 { s += v * n } else { s -= 1.0 } }; {s: s, t: (s, \"x\", 2)} }\n"
       "trace.export(f, {w: arange(5.0), b: 1}, 3).text"),
      "trace.export(x => scan((c, v) => (c + v, c * v), 0.0, x), arange(5.0)).text",
      "trace.export((x, i) => x[i] + x[1:3][0], arange(5.0), 2).text",
  };
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backend = "mir";
  WeftVM *vm = weft_new(&options);
  Vm *inner = weft_vm_of(vm);
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    WeftValue *v = NULL;
    const char *text;
    size_t len;
    char err[200] = "";
    if (weft_eval(vm, programs[i], "p", &v) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
    assert_int_equal(weft_as_text(vm, v, &text, &len), WEFT_OK);
    Graph *g = graph_parse(&inner->alloc, &inner->names, text, len, err, sizeof err);
    if (!g) fail_msg("%s in\n%s", err, text);
    Buf again;
    buf_init(&again, &inner->alloc);
    if (!graph_verify(g, &again)) fail_msg("%s", buf_text(&again));
    again.len = 0;
    graph_print(g, NULL, &again);
    assert_string_equal(buf_text(&again), text);
    buf_free(&again);
    graph_free(g);
    weft_release(vm, v);
  }
  weft_free(vm);
}

/* ---- in every state of a place, whatever is asked for gives what it promises ------------------------------------ */

static void give_up(Tracer *t, Place *p) { place_demote(t, p, REASON_nothing_to_compile, "a test"); }
static void retire(Tracer *t, Place *p) { place_retire(t, p, REASON_no_payback, "a test"); }
static void rest(Tracer *t, Place *p) {
  (void)t;
  p->sleep = 100000;
}

/* What the program did before, with f and x. */
static const struct PlaceState {
  const char *name, *before;
  void (*make)(Tracer *t, Place *p); /* of each place of f, besides; NULL: nothing */
} states[] = {
    {"never called", "", NULL},
    {"called ten times", "for i in 0..10 { f(x) }", NULL},
    {"called sixty times", "for i in 0..60 { f(x) }", NULL},
    {"hot", "for i in 0..3000 { f(x) }", NULL},
    {"compiled for other types", "for i in 0..3000 { f(y) }", NULL},
    {"compiled by jit", "jit(f)(x); jit(f)(x)", NULL},
    {"too many entries",
     "jit(f)(x); jit(f)(y); let z = x; for k in 1..12 { z = expand_dims(z, axis=0); jit(f)(z) }", NULL},
    {"given up", "for i in 0..100 { f(x) }", give_up},
    {"given up for a while", "for i in 0..100 { f(x) }", retire},
    {"resting", "for i in 0..100 { f(x) }", rest},
    {"explained before", "trace.explain(f, x); trace.explain(f, x)", NULL},
};

typedef struct Making {
  Tracer *t;
  void (*make)(Tracer *t, Place *p);
} Making;

static void each_place(void *ctx, Place *p) {
  Making *m = ctx;
  m->make(m->t, p);
}

/* Programs that give true. A function is captured whole, in one graph, without a break. */
static const char *const asks[] = {
    "let r = trace.explain(f, x); r.graphs == 1 and len(r.breaks) == 0 and r.kernels + r.natives > 0",
    "let r = trace.explain(jit(f), x); r.graphs == 1 and len(r.breaks) == 0",
    "let r = trace.explain(trace.strict(f), x); r.graphs == 1 and len(r.breaks) == 0",
    "let r = trace.explain(grad(f), x); r.graphs == 1 and len(r.breaks) == 0 and r.kernels + r.natives > 0",
    "let r = trace.explain(value_and_grad(f), x); r.graphs == 1 and len(r.breaks) == 0",
    "let r = trace.explain(hessian(f), x); r.graphs == 1 and len(r.breaks) == 0",
    "let r = trace.explain(jacrev(x => x * f(x)), x); r.graphs == 1 and len(r.breaks) == 0",
    "let r = trace.explain(vmap(f), stack((x, x))); r.graphs == 1 and len(r.breaks) == 0",
    "let r = trace.explain(vmap(grad(f)), stack((x, x))); r.graphs == 1 and len(r.breaks) == 0",
    "let r = trace.explain(jit(grad(f)), x); r.graphs == 1 and len(r.breaks) == 0",
    "let r = trace.explain(jvp, f, (x,), (x,)); r.graphs == 1 and len(r.breaks) == 0",
    "let r = trace.explain(checkpoint(f), x); r.graphs == 1 and len(r.breaks) == 0",
    "let r = trace.explain(sum, x); r.graphs == 1 and len(r.breaks) == 0",
    "let r = trace.explain(eager(f), x); r.graphs == 0 and len(r.breaks) == 1 and \"eager\" in r.breaks[0].reason",
    "let r = eager(z => trace.explain(f, z))(x); r.graphs == 1 or (len(r.breaks) == 1 and "
    "\"eager\" in r.breaks[0].reason)",
    "let r = nil; grad(z => { r = nil; let q = trace.explain(f, x); assert(q.graphs == 1 or len(q.breaks) == 1); "
    "sum(z * z) })(x); true",
    "let ok = true; for i in 0..200 { ok = ok and trace.explain(f, x).graphs == 1 }; ok",
    "fn h(x) { let r = trace.explain(f, x * 2.0); sum(x) + r.graphs }; let ok = true; for i in 0..200 { ok = ok and "
    "h(x) == sum(x) + 1 }; ok",
    "let n = compiled(); for k in 0..3 { jit(f)(x) }; compiled() >= n + 3",
    "let n = compiled(); for k in 0..3 { jit(grad(f))(x) }; compiled() >= n + 3",
    "let g = jit(vmap(grad(f))); let n = compiled(); for k in 0..3 { g(stack((x, x))) }; compiled() >= n + 3",
    "let n = compiled(); for k in 0..3 { jit(hessian(f))(x) }; compiled() >= n + 3",
    "let n = compiled(); for k in 0..3 { trace.strict(f)(x) }; compiled() >= n + 3",
    "let n = compiled(); for k in 0..3 { trace.strict(grad(f))(x) }; compiled() >= n + 3",
    "let n = compiled(); for k in 0..3 { trace.strict(value_and_grad(f))(x) }; compiled() >= n + 3",
    "let n = compiled(); jit(grad(f), whole=true)(x); jit(grad(f), whole=true)(x); compiled() >= n + 2",
    "all(jit(grad(f))(x) == eager(grad(f))(x)) and all(jit(hessian(f), whole=true)(x) == eager(hessian(f))(x))",
    "let e = trace.export(f, x); e.run(x) == eager(f)(x) and len(e.outputs) == 1",
    "let e = trace.export(grad(f), x); all(e.run(x) == eager(grad(f))(x)) and len(e.outputs) == 1",
};

static void A18_whatever_state_a_place_is_in(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT_OF(states); i++)
    for (u32 k = 0; k < COUNT_OF(asks); k++) {
      WeftOptions options = WEFT_OPTIONS_INIT;
      options.backend = "mir";
      WeftVM *w = weft_new(&options);
      Vm *vm = weft_vm_of(w);
      WeftValue *v = NULL;
      const char *define = "fn f(x) { let s = 0.0; for i in 0..3 { s += sum(sin(x) * i + x * x) }; s }\n"
                           "let x = arange(8.0) * 0.1\nlet y = ones((3, 3))\n"
                           "fn compiled() { let s = trace.stats(); s.kernel_runs + s.hits }\n";
      if (weft_eval(w, define, "test", NULL) != WEFT_OK || weft_eval(w, states[i].before, "test", NULL) != WEFT_OK)
        fail_msg("%s: %s", states[i].name, weft_error_text(w));
      Making making = {tracer_of(vm), states[i].make};
      if (making.make) places_each(&tracer_of(vm)->places, each_place, &making);
      if (making.make && weft_eval(w, "for i in 0..5 { f(x) }", "test", NULL) != WEFT_OK)
        fail_msg("%s: %s", states[i].name, weft_error_text(w));
      if (weft_eval(w, asks[k], "test", &v) != WEFT_OK)
        fail_msg("%s: %s: %s", states[i].name, asks[k], weft_error_text(w));
      if (strcmp(weft_show(w, v), "true") != 0) fail_msg("%s: not so: %s", states[i].name, asks[k]);
      weft_release(w, v);
      weft_free(w);
    }
}

/* A graph that is not well formed is a break, with its reason: what explain promises is never nothing. */
static void A18_what_came_to_nothing_is_told(void **state) {
  (void)state;
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backend = "mir";
  options.force = "endless 4";
  WeftVM *w = weft_new(&options);
  WeftValue *v = NULL;
  if (weft_eval(w, "fn f(x) = sum(x * x)\nlet r = trace.explain(f, arange(3.0)); r.graphs == 0 and "
                   "len(r.breaks) == 1 and \"steps\" in r.breaks[0].reason", "test", &v) != WEFT_OK)
    fail_msg("%s", weft_error_text(w));
  assert_string_equal(weft_show(w, v), "true");
  weft_release(w, v);
  weft_free(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(A28_the_log_as_json),
      cmocka_unit_test(A28_misses_speak_the_language_of_the_program),
      cmocka_unit_test(A28_kernels_count_bytes_and_flops),
      cmocka_unit_test(A28_kernels_that_native_loops_call_are_counted),
      cmocka_unit_test(A28_a_profile_weighs_kernels_by_the_machine),
    cmocka_unit_test(A28_spans_for_a_trace_viewer),
      cmocka_unit_test(A28_without_being_asked_only_the_newest_are_kept),
      cmocka_unit_test(B1_guards_are_printed_as_paths_of_the_program),
      cmocka_unit_test(A6_an_operand_of_another_block_is_reported),
      cmocka_unit_test(A18_whatever_state_a_place_is_in),
      cmocka_unit_test(A18_what_came_to_nothing_is_told),
      cmocka_unit_test(A26_the_text_of_an_export_is_read_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
