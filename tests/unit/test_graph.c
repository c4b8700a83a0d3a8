/* test_graph.c — the graph: building, captures, speculation, text form, verifier, cloning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/memory.h"
#include "tracer/graph/graph.h"

static Allocator *heap;

static char *text_of(const Graph *g) {
  static char kept[1 << 16];
  Buf b;
  buf_init(&b, heap);
  graph_print(g, NULL, &b);
  assert_false(b.failed);
  assert_true(b.len < sizeof kept);
  strcpy(kept, buf_text(&b));
  buf_free(&b);
  return kept;
}

static void expect_text(const Graph *g, const char *want) { assert_string_equal(text_of(g), want); }

static void expect_valid(Graph *g) {
  Buf b;
  buf_init(&b, heap);
  if (!graph_verify(g, &b)) fail_msg("%s", buf_text(&b));
  buf_free(&b);
}

static void expect_invalid(Graph *g, const char *why) {
  Buf b;
  buf_init(&b, heap);
  assert_false(graph_verify(g, &b));
  if (!strstr(buf_text(&b), why)) fail_msg("wanted '%s', got: %s", why, buf_text(&b));
  buf_free(&b);
}

static Graph *parse(Names *names, const char *text) {
  char err[200];
  Graph *g = graph_parse(heap, names, text, strlen(text), err, sizeof err);
  if (!g) fail_msg("%s\n%s", err, text);
  return g;
}

/* Text that is valid, and printed as it stands. */
static void round_trip(const char *text) {
  Names names;
  assert_int_equal(names_init(&names, heap), WEFT_OK);
  Graph *g = parse(&names, text);
  expect_valid(g);
  expect_text(g, text);
  graph_free(g);
  names_free(&names);
}

static TypeId vector(Graph *g, u32 dtype, Dim n) {
  ArrayType t = {.dtype = (u8)dtype, .rank = 1, .dims = {n}};
  return graph_type(g, &t);
}

/* graph over x: f64[n] = arg0 and k: i64[] = arg1, with a return exit 0 for `ret` */
typedef struct Basic {
  Graph *g;
  Dim n;
  ValueId x, k;
} Basic;

static Basic basic(void) {
  Basic b;
  b.g = graph_new(heap, "f#1");
  SourceId arg0 = source_root(&b.g->guards, SRC_arg, 0), arg1 = source_root(&b.g->guards, SRC_arg, 1);
  b.n = size_sym(&b.g->sizes, "n", source_step(&b.g->guards, arg0, SRC_size, 0, NULL), 0, SIZE_LIMIT - 1, 5);
  b.x = graph_input(b.g, vector(b.g, DT_f64, b.n), guard_input(&b.g->guards, arg0, IN_array));
  b.k = graph_input(b.g, graph_scalar_type(b.g, DT_i64, false), guard_input(&b.g->guards, arg1, IN_scalar));
  assert_int_equal(graph_frame(b.g, NULL, "f", 0), 0);
  return b;
}

static u32 returns(Graph *g, ValueId v) {
  u32 e = exit_begin(&g->exits, EXIT_return, 0, 0, (Span){0});
  assert_true(exit_frame(&g->exits, e, 0, 0, 0, 0, 0, 0));
  assert_true(exit_reg(&g->exits, e, REG_RESULT, recipe_value(&g->exits, v)));
  return e;
}

static void finish(Basic *b, ValueId v) {
  u32 e = returns(b->g, v);
  assert_true(graph_close(b->g, TERM_exit, NULL, 0, e));
}

/* ---- building ------------------------------------------------------------------------------------- */

static void straight_line(void **state) {
  (void)state;
  Basic b = basic();
  ValueId half = graph_const(b.g, value_weak_f64(0.5));
  ValueId y = graph_op2(b.g, OP_multiply, b.x, half);
  ValueId z = graph_op2(b.g, OP_add, y, graph_op1(b.g, OP_exp, b.x));
  ValueId s = graph_reduce(b.g, OP_sum, z, 1, true);
  finish(&b, s);
  expect_valid(b.g);
  expect_text(b.g,
              "graph f#1  file 0  ambient 0\n"
              "frame 0 f\n"
              "sym n = size(arg0, 0) in [0, 2^62)\n"
              "in %1: f64[n] = arg0\n"
              "in %2: i64[] = arg1\n"
              "%3 = multiply %1 0.5 : f64[n]\n"
              "%4 = exp %1 : f64[n]\n"
              "%5 = add %3 %4 : f64[n]\n"
              "%6 = sum %5 {axis=[0], keepdims=true} : f64[1]\n"
              "out %6 -> 0\n"
              "exit 0 return { f: ret = %6 }\n");
  assert_true(graph_const(b.g, value_weak_f64(0.5)) == half);
  assert_true(graph_input(b.g, 0, 0) == b.x); /* one source, one input */
  assert_int_equal(graph_node_count(b.g), 4);
  GraphUses u;
  assert_true(graph_uses(b.g, heap, &u));
  assert_int_equal(use_count(&u, b.x), 2);
  assert_int_equal(use_count(&u, s), 1);
  assert_int_equal(use_count(&u, b.k), 0);
  graph_uses_free(&u);
  graph_free(b.g);
}

static void captures_are_lifted_and_merged(void **state) {
  (void)state;
  Basic b = basic();
  Graph *g = b.g;
  ValueId a = graph_op1(g, OP_exp, b.x), c = graph_op1(g, OP_sin, b.x);
  ValueId p = graph_op2(g, OP_less, b.k, graph_const(g, value_weak_i64(3)));
  /* then uses a, x; else uses x twice and c, inside a nested cond */
  BlockId then = graph_open(g);
  ValueId t = graph_op2(g, OP_add, a, b.x);
  assert_true(graph_close(g, TERM_yield, &t, 1, 0));
  BlockId els = graph_open(g);
  BlockId in1 = graph_open(g);
  ValueId i1 = graph_op2(g, OP_multiply, c, b.x);
  assert_true(graph_close(g, TERM_yield, &i1, 1, 0));
  BlockId in2 = graph_open(g);
  assert_true(graph_close(g, TERM_yield, &b.x, 1, 0)); /* merely returned: captured too */
  NodeId inner = graph_cond(g, p, in1, in2);
  ValueId ir = node_result(g, inner, 0);
  ValueId e = graph_op2(g, OP_add, ir, b.x);
  assert_true(graph_close(g, TERM_yield, &e, 1, 0));
  NodeId n = graph_cond(g, p, then, els);
  assert_true(n != 0);
  finish(&b, node_result(g, n, 0));
  expect_valid(g);
  expect_text(g,
              "graph f#1  file 0  ambient 0\n"
              "frame 0 f\n"
              "sym n = size(arg0, 0) in [0, 2^62)\n"
              "in %1: f64[n] = arg0\n"
              "in %2: i64[] = arg1\n"
              "%3 = exp %1 : f64[n]\n"
              "%4 = sin %1 : f64[n]\n"
              "%5 = less %2 3 : bool[]\n"
              "%6 = cond %5 (%1 %3 %4 %5) {\n"
              "  then (%7: f64[n], %8: f64[n], %9: f64[n], %10: bool[]) {\n"
              "    %11 = add %8 %7 : f64[n]\n"
              "    yield %11\n"
              "  }\n"
              "  else (%12: f64[n], %13: f64[n], %14: f64[n], %15: bool[]) {\n"
              "    %16 = cond %15 (%12 %14) {\n"
              "      then (%17: f64[n], %18: f64[n]) {\n"
              "        %19 = multiply %18 %17 : f64[n]\n"
              "        yield %19\n"
              "      }\n"
              "      else (%20: f64[n], %21: f64[n]) {\n"
              "        yield %20\n"
              "      }\n"
              "    } : f64[n]\n"
              "    %22 = add %16 %12 : f64[n]\n"
              "    yield %22\n"
              "  }\n"
              "} : f64[n]\n"
              "out %6 -> 0\n"
              "exit 0 return { f: ret = %6 }\n");
  /* lifting into a block that has its node already adds an operand to the node and a capture to both blocks */
  graph_at(g, block_first(g, then));
  ValueId late = graph_op2(g, OP_multiply, b.k, graph_const(g, value_weak_i64(2)));
  assert_true(late != 0);
  graph_at_end(g, 1);
  expect_valid(g);
  u32 first;
  assert_int_equal(node_captures(g, n, &first), 5);
  graph_free(g);
}

static void loops(void **state) {
  (void)state;
  Basic b = basic();
  Graph *g = b.g;
  TypeId f = graph_scalar_type(g, DT_f64, false), i = graph_scalar_type(g, DT_i64, false);
  ValueId zero = graph_const(g, value_f64(0)), izero = graph_const(g, value_i64(0));
  returns(g, b.x);
  BlockId cond = graph_open(g);
  ValueId ca = graph_param(g, cond, f), ci = graph_param(g, cond, i);
  ValueId go = graph_op2(g, OP_less, ci, b.k);
  (void)ca;
  assert_true(graph_close(g, TERM_yield, &go, 1, 0));
  BlockId body = graph_open(g);
  ValueId a = graph_param(g, body, f), j = graph_param(g, body, i);
  ValueId item = graph_index(g, b.x, &j, 1, &(IndexItem){.kind = INDEX_int, .part = {PART_operand}, .at = {1}}, 1, f);
  ValueId next[2] = {graph_op2(g, OP_add, a, item), graph_op2(g, OP_add, j, graph_const(g, value_weak_i64(1)))};
  assert_true(graph_close(g, TERM_next, next, 2, 0));
  NodeId w = graph_while(g, (ValueId[]){zero, izero}, 2, cond, body);
  assert_true(w != 0);
  u32 poll = exit_begin(&g->exits, EXIT_limit, 0, 0, (Span){0});
  assert_true(exit_frame(&g->exits, poll, 0, 4, 0, 0, 0, 0));
  assert_true(exit_reg(&g->exits, poll, 3, recipe_value(&g->exits, j)));
  assert_true(exit_reg(&g->exits, poll, 1, recipe_value(&g->exits, a)));
  g->nodes.data[w].exit = poll;
  assert_false(exit_reg(&g->exits, 0, 7, recipe_value(&g->exits, a))); /* one exit after the other */
  BlockId sbody = graph_open(g);
  ValueId c = graph_param(g, sbody, f), x = graph_param(g, sbody, f), trip = graph_param(g, sbody, i);
  ValueId s2[2] = {graph_op2(g, OP_add, c, x),
                   graph_op2(g, OP_multiply, x, graph_op2(g, OP_add, trip, node_result(g, w, 1)))};
  assert_true(graph_close(g, TERM_next, s2, 2, 0));
  ValueId w0 = node_result(g, w, 0);
  NodeId s = graph_scan(g, &w0, 1, &b.x, 1, b.n, true, true, sbody);
  assert_true(s != 0);
  u32 e = returns(g, node_result(g, s, 1));
  assert_true(graph_close(g, TERM_exit, NULL, 0, e));
  expect_valid(g);
  const char *text =
      "graph f#1  file 0  ambient 0\n"
      "frame 0 f\n"
      "sym n = size(arg0, 0) in [0, 2^62)\n"
      "in %1: f64[n] = arg0\n"
      "in %2: i64[] = arg1\n"
      "%3 %4 = while (0.0:f64 0:i64) (%2 %1) {\n"
      "  cond (%5: i64[], %6: f64[n], %7: f64[], %8: i64[]) {\n"
      "    %9 = less %8 %5 : bool[]\n"
      "    yield %9\n"
      "  }\n"
      "  body (%10: i64[], %11: f64[n], %12: f64[], %13: i64[]) {\n"
      "    %14 = index %11[%13] : f64[]\n"
      "    %15 = add %12 %14 : f64[]\n"
      "    %16 = add %13 1 : i64[]\n"
      "    next %15 %16\n"
      "  }\n"
      "} -> 1 : f64[] i64[]\n"
      "%17 %18 = scan (%3) (%1) (%4) length n index reverse {\n"
      "  body (%19: i64[], %20: f64[], %21: f64[], %22: i64[]) {\n"
      "    %23 = add %20 %21 : f64[]\n"
      "    %24 = add %22 %19 : i64[]\n"
      "    %25 = multiply %21 %24 : f64[]\n"
      "    next %23 %25\n"
      "  }\n"
      "} : f64[] f64[n]\n"
      "out %18 -> 2\n"
      "exit 0 return { f: ret = %1 }\n"
      "exit 1 limit { f pc 4: r1 = %12, r3 = %13 }\n"
      "exit 2 return { f: ret = %18 }\n";
  expect_text(g, text);
  graph_free(g);
  round_trip(text);
}

static void shared_blocks(void **state) {
  (void)state;
  round_trip(
      "graph g#2  file 3  ambient 9\n"
      "frame 0 g\n"
      "frame 1 square\n"
      "sym n in [0, 2^62)\n"
      "fn @square (%1: f64[n]) {\n"
      "  %2 = multiply %1 %1 : f64[n]\n"
      "  yield %2\n"
      "}\n"
      "in %3: f64[n] = reg3 explicit\n"
      "%4 = call @square (%3) : f64[n]\n"
      "%5 = call @square (%4) : f64[n]\n"
      "out %5 -> 0\n"
      "exit 0 return { g: ret = %5 }\n");
}

/* ---- text ----------------------------------------------------------------------------------------- */

static void everything_in_text(void **state) {
  (void)state;
  round_trip(
      "graph e#1  file 0  ambient 0\n"
      "frame 0 e\n"
      "sym n in [0, 2^62)\n"
      "in %1: f64[n, n] = arg0\n"
      "%2 %3 = linalg.eigh %1 : f64[n] f64[n, n]\n"
      "out %2 %3 -> 0\n"
      "exit 0 return { e: ret = list(%2, %3) }\n");
  round_trip("graph all#1  file 1  ambient 7\n"
             "frame 0 all\n"
             "frame 1 inner\n"
             "sym n = size(arg0.w, 0) in [0, 2^62)\n"
             "sym m = size(capture(arg1[2], 0), 1) in [0, 2^62) same n\n"
             "sym k = arg2 in [min, 77]\n"
             "sym u3 = %5 in [0, 1000]\n"
             "in %1: f64[n] = arg0.w\n"
             "in %2: i32[n, 3] = global \"k\"\n"
             "in %3: weak i64[] = value(capture1[\"b c\"])\n"
             "in !4\n"
             "%5 = argmax %1 {axis=nil} : i64[]  @3:4\n"
             "%6 = multiply %1 -0.5:f32 : f64[n]\n"
             "%7 = add %1 inf : f64[n]\n"
             "%8 = add %1 n : f64[n]\n"
             "%9 = add %1 <2*n + 1> : f64[n]\n"
             "%10 = add %1 <u3 - 1>:i64 : f64[n]\n"
             "%11 = concat %1 %6 {xs=*2, axis=0} : f64[<2*n>]\n"
             "%12 = pad %1 {width=[(1, 2)], mode=\"con\\\"st\"} : f64[<n + 3>]\n"
             "%13 = reshape %2 {shape=(3, n)} : i32[3, n]\n"
             "%14 = zeros {shape=(u3, 2), dtype=f32} : f32[u3, 2]\n"
             "%15 = clip %1 2.0 {min=_} : f64[n]\n"
             "%16 = index %2[%5, 0:2] : i32[2]\n"
             "%17 = index %2[..., nil, -1] : i32[n, 1]\n"
             "%18 = greater %1 0.0 : bool[n]\n"
             "%19 = update %1[?%18] add 1.0 : f64[n]\n"
             "%20 = update %2[@%13, ::-1] set 1 : i32[n, 3]\n"
             "check index %5 n -> 1  @7:2\n"
             "!21 %22 = host \"emit\" !4 %5 -> 2 : ! f64[]\n"
             "out %20 %22 -> 0\n"
             "exit 0 return { all: ret = record(a: list(%20, 1, 0.5, true), \"b c\": range(0, <n + 1>, 1), "
             "c: items %22 after list()) }\n"
             "exit 1 check index { all pc 7: r0 = =arg0, r1 = option(list(%19, 1), false), r2 = nil, r3 = item(=arg0, "
             "=total(arg1)), r4 = split(list(0, 2), list(2, 1), =arg0), r6 = keyed(list(98, 97), list(1, 2)), r7 = "
             "part(=arg0, 1, 2), r8 = back(=arg0) | inner/1 pc 2 -> r5 flags 4 tail 2 self =arg1: r0 = <n + 1>, r1 = "
             "\"a\\nb\", r2 = dtype f32, r3 = builtin linalg.eigh, r4 = _ } write [=global \"k\": %3, ref(1): %5]\n"
             "exit 2 limit limit_memory { all pc 9: r0 = fn (%1, group 1 (2.5:f32)), "
             "r1 = transform grad (=capture1, nil) }\n"
             "exit 3 cold arm_output { all pc 0: }\n"
             "entry -> 3\n");
}

static void sample_of_the_reference(void **state) { /* names, blocks on one line, captures found by the parser */
  (void)state;
  Graph *g = parse(NULL, "graph pick#3  file 1  ambient 0\n"
                         "frame 0 pick\n"
                         "sym  n = size(arg0, 0) in [0, 2^62)\n"
                         "in   %x: f64[n] = arg0\n"
                         "in   %k: i64[] = global \"k\"   ; a comment\n"
                         "%1   = multiply %x %x             : f64[n]        @13:11\n"
                         "%2   = sum %1 {axis=[0]}          : f64[]         @13:11\n"
                         "check index %k n -> 1                             @14:9\n"
                         "%3   = index %x[%k]               : f64[]         @14:9\n"
                         "%4 %5 = while (%2 0:i64) (%3) {\n"
                         "  cond (%v: f64[], %a: f64[], %i: i64[]) { %6 = greater %a %v : bool[]  yield %6 }\n"
                         "  body (%v: f64[], %a: f64[], %i: "
                         "i64[]) { %7 = multiply %a 0.5 : f64[]  %8 = add %i 1 : i64[]  next %7 %8 }\n"
                         "}                                 : f64[] i64[]   @15:3\n"
                         "out  %4 %5 -> 0\n"
                         "exit 0 return   { pick: ret = list(%4, %5) }\n"
                         "exit 1 check    { pick pc 7: r0 = %x, r1 = %k, r2 = %2 }\n");
  expect_valid(g);
  expect_text(g,
              "graph pick#3  file 1  ambient 0\n"
              "frame 0 pick\n"
              "sym n = size(arg0, 0) in [0, 2^62)\n"
              "in %1: f64[n] = arg0\n"
              "in %2: i64[] = global \"k\"\n"
              "%3 = multiply %1 %1 : f64[n]  @13:11\n"
              "%4 = sum %3 {axis=[0]} : f64[]  @13:11\n"
              "check index %2 n -> 1  @14:9\n"
              "%5 = index %1[%2] : f64[]  @14:9\n"
              "%6 %7 = while (%4 0:i64) (%5) {\n"
              "  cond (%8: f64[], %9: f64[], %10: i64[]) {\n"
              "    %11 = greater %9 %8 : bool[]\n"
              "    yield %11\n"
              "  }\n"
              "  body (%12: f64[], %13: f64[], %14: i64[]) {\n"
              "    %15 = multiply %13 0.5 : f64[]\n"
              "    %16 = add %14 1 : i64[]\n"
              "    next %15 %16\n"
              "  }\n"
              "} : f64[] i64[]  @15:3\n"
              "out %6 %7 -> 0\n"
              "exit 0 return { pick: ret = list(%6, %7) }\n"
              "exit 1 check none { pick pc 7: r0 = %1, r1 = %2, r2 = %4 }\n");
  graph_free(g);
}

static void bad_text(void **state) {
  (void)state;
  static const struct {
    const char *text, *why;
  } cases[] = {
      {"", "expected 'graph'"},
      {"graph f\n", "does not end"},
      {"graph f\nin %x: f64[n] = arg0\n", "line 2"},
      {"graph f\nin %x: f65[] = arg0\n", "expected a type"},
      {"graph f\nin %x: f64[] = argument\n", "expected a source"},
      {"graph f\n%1 = add %2 %2 : f64[]\nout -> 0\n", "no such value"},
      {"graph f\n%1 = bad 1 2 : f64[]\nout -> 0\n", "no such operation"},
      {"graph f\n%1 = sum 1 {axes=[0]} : f64[]\nout -> 0\n", "no such parameter"},
      {"graph f\n%1 = add 1 2 : i64[] i64[]\nout -> 0\n", "number of results"},
      {"graph f\n%1 = cond true () {\n then () { yield 1 }\n}\n", "expected another block"},
      {"graph f\nout -> 0\nexit 1 return { f: }\n", "numbered from 0"},
      {"graph f\nout -> 0\nexit 0 return { f: ret = 1 }\n", "no such frame"},
      {"graph f\nframe 0 f\nout -> 0\nexit 0 return { f: ret = list(1 }\n", "expected ','"},
      {"graph f\nsym n in [0, 9]\nin %x: f64[<n +>] = arg0\n", "size expression"},
      {"graph f\nframe 0 f\nout -> 0\nexit 0 return { f: ret = 99999999999999999999999z }\n", "expected a number"},
  };
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    char err[200];
    Graph *g = graph_parse(heap, NULL, cases[i].text, strlen(cases[i].text), err, sizeof err);
    assert_null(g);
    if (!strstr(err, cases[i].why)) fail_msg("case %u: wanted '%s', got '%s'", i, cases[i].why, err);
  }
}

/* Every prefix of a text is refused or read, never a crash. */
static void truncated_text(void **state) {
  (void)state;
  Names names;
  assert_int_equal(names_init(&names, heap), WEFT_OK);
  const char *text = "graph f#1  file 0  ambient 0\nframe 0 f\n"
                     "sym n = size(arg0[\"a b\"], 0) in [0, 2^62)\nin %1: f64[n, <n + 1>] = arg0.w\n"
                     "%2 = cond true (%1) {\n  then (%3: f64[n, <n + 1>]) {\n"
                     "    yield %3\n  }\n  else (%4: f64[n, <n + 1>]) {\n    yield %4\n  }\n}"
                     " : f64[n, <n + 1>]\nout %2 -> 0\n"
                     "exit 0 return { f: ret = record(a: list(%2, \"x\\x01\", 0.5:f32)) } write [=global \"k\": %1]\n";
  for (size_t n = 0; n <= strlen(text); n++) {
    Graph *g = graph_parse(heap, &names, text, n, NULL, 0);
    graph_free(g);
  }
  names_free(&names);
}

/* ---- verifier ------------------------------------------------------------------------------------- */

static void violations(void **state) {
  (void)state;
  static const struct {
    const char *text, *why;
  } cases[] = {
      {"graph f\nframe 0 f\nin %1: f64[] = arg0\n%2 = add %1 1 : f32[]\nout -> 0\nexit 0 return { f: ret = %2 }\n",
       "should have type f64[]"},
      {"graph f\nframe 0 f\nsym n in [0, 9]\nsym m in [0, 9]\n"
       "in %1: f64[n] = arg0\nin %2: f64[m] = arg1\n%3 = add %1 %2 : f64[n]\nout -> 0\n"
       "exit 0 return { f: ret = %3 }\n", "broadcast"},
      {"graph f\nframe 0 f\nin %1: f64[] = arg0\n%2 = add %1 : f64[]\nout -> 0\nexit 0 return { f: ret = %2 }\n",
       "not given"},
      {"graph f\nframe 0 f\nin %1: f64[] = arg0\n%2 = exp %1 %1 : f64[]\nout -> 0\nexit 0 return { f: ret = %2 }\n",
       "bound to no parameter"},
      {"graph f\nframe 0 f\nout -> 3\nexit 0 return { f: }\n", "exit 3 does not exist"},
      {"graph f\nframe 0 f\nin %1: f64[] = arg0\n"
       "%2 = cond %1 () {\n then () { yield 1 }\n else () { yield 2 }\n} : weak i64[]\nout -> 0\n"
       "exit 0 return { f: ret = %2 }\n", "predicate"},
      {"graph f\nframe 0 f\n%2 = cond true () {\n"
       " then () { yield 1 }\n else () { yield 2.0 }\n} : weak i64[]\nout -> 0\n"
       "exit 0 return { f: ret = %2 }\n", "yielded value 0 has another type"},
      {"graph f\nframe 0 f\n%2 = cond true () {\n then () { yield 1 }\n else () { next 2 }\n} : weak i64[]\nout -> 0\n"
       "exit 0 return { f: ret = %2 }\n", "outside a loop"},
      {"graph f\nframe 0 f\n%2 = while (1:i64) () {\n"
       " cond (%a: i64[]) { yield %a }\n body (%b: i64[]) { next %b }\n} : i64[]\nout -> 0\n"
       "exit 0 return { f: ret = %2 }\n", "one bool"},
      {"graph f\nframe 0 f\n%2 = while (1:i64) () {\n"
       " cond (%a: i64[]) { yield true }\n body (%b: i64[]) { next 2.0 }\n} : i64[]\nout -> 0\n"
       "exit 0 return { f: ret = %2 }\n", "carried value 0"},
      {"graph f\nframe 0 f\nin %1: f64[] = arg0\ncheck index %1 -> 0\nout -> 0\nexit 0 return { f: ret = %1 }\n",
       "takes 2 operands"},
      {"graph f\nframe 0 f\nin !1\n!2 = host \"a\" !1 -> 0 : !\n!3 = host \"a\" !1 -> 0 : !\nout -> 0\n"
       "exit 0 return { f: }\n", "used twice"},
      {"graph f\nframe 0 f\nin !1\nin %2: bool[] = arg0\n"
       "cond %2 (!1) {\n then (!3) { !4 = host \"a\" !3 : !\n exit 0 }\n else (!5) { yield }\n}\n"
       "out -> 0\nexit 0 return { f: }\n", "takes the token and does not give the next"},
      {"graph f\nframe 0 f\n%2 = cond true () {\n"
       " then () { %3 = exp 1.0:f64 : f64[] check truth %3 -> 1 yield %3 }\n else () { yield 2.0:f64 }\n}"
       " : f64[]\ncheck truth %2 -> 1\nout -> 0\nexit 0 return { f: }\nexit 1 check truth { f pc 1: r0 = %3 }\n",
       "not there when it is taken"},
      {"graph f\nframe 0 f\nin %1: f64[3] = arg0\n%2 = index %1[0, 0] : f64[]\nout -> 0\n"
       "exit 0 return { f: ret = %2 }\n", "too many indices"},
  };
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    Graph *g = parse(NULL, cases[i].text);
    expect_invalid(g, cases[i].why);
    graph_free(g);
  }
}

/* What text cannot say: an operand of another block, use before definition. */
static void A6_an_operand_of_another_block_is_reported(void **state) {
  (void)state;
  Basic b = basic();
  Graph *g = b.g;
  Vm *vm = vm_new(NULL);
  assert_non_null(vm);
  g->guards.switches = vm->switches;
  vm_free(vm);
  ValueId y = graph_op1(g, OP_exp, b.x), z = graph_op1(g, OP_sin, b.x);
  BlockId t = graph_open(g);
  ValueId inner = graph_op1(g, OP_cos, y);
  graph_close(g, TERM_yield, &inner, 1, 0);
  BlockId e = graph_open(g);
  graph_close(g, TERM_yield, &z, 1, 0);
  NodeId n = graph_cond(g, graph_const(g, value_bool(true)), t, e);
  finish(&b, node_result(g, n, 0));
  expect_valid(g);
  NodeId ny = value_node(g, y);
  graph_set_operand(g, ny, 0, z);
  expect_invalid(g, "used before it is defined");
  graph_set_operand(g, ny, 0, inner);
  expect_invalid(g, "belongs to another block and is not lifted");
  graph_set_operand(g, ny, 0, b.x);
  expect_valid(g);
  graph_free(g);
}

/* ---- speculation ---------------------------------------------------------------------------------- */

static u32 inferred(const Graph *g, u32 op) {
  u32 n = 0;
  for (u32 i = 0; i < INFERRED_PLACES; i++) n += g->inferred[i].op == op;
  return n;
}

/* A result's type is worked out once for each kind of operands; a type that is undone takes what was noted of it
 * along. */
static void types_are_inferred_once(void **state) {
  (void)state;
  Basic b = basic();
  ValueId y = graph_op2(b.g, OP_add, b.x, b.x), half = graph_const(b.g, value_weak_f64(0.5));
  assert_int_equal(inferred(b.g, OP_add), 1);
  assert_int_equal(b.g->values.data[graph_op2(b.g, OP_add, b.x, y)].type, b.g->values.data[y].type);
  assert_int_equal(inferred(b.g, OP_add), 1);
  ValueId z = graph_op2(b.g, OP_add, half, y), again = graph_op2(b.g, OP_add, half, z);
  assert_int_equal(inferred(b.g, OP_add), 2);
  assert_int_equal(value_type(b.g, again)->rank, 1);
  assert_int_equal(value_type(b.g, again)->dims[0], b.n);
  for (u32 i = 0; i < 2; i++) assert_true(value_type(b.g, graph_op2(b.g, OP_multiply, half, half))->weak);
  GraphMark mark = graph_mark(b.g);
  ValueId narrow = graph_convert(b.g, b.x, DT_f32);
  TypeId type = b.g->values.data[narrow].type;
  assert_int_equal(value_type(b.g, graph_op2(b.g, OP_add, narrow, narrow))->dtype, DT_f32);
  graph_rollback(b.g, mark);
  ValueId whole = graph_convert(b.g, b.x, DT_i64);
  assert_int_equal(b.g->values.data[whole].type, type);
  for (u32 i = 0; i < 2; i++) assert_int_equal(value_type(b.g, graph_op2(b.g, OP_add, whole, whole))->dtype, DT_i64);
  graph_free(b.g);
}

static void rollback(void **state) {
  (void)state;
  Basic b = basic();
  Graph *g = b.g;
  ValueId y = graph_op1(g, OP_exp, b.x);
  BlockId outer = graph_open(g); /* open at the mark */
  ValueId early = graph_op1(g, OP_sin, b.x);
  char before[4000];
  GraphMark mark = graph_mark(g);
  BlockId inner = graph_open(g);
  ValueId v = graph_op2(g, OP_add, y, early); /* lifts y through outer */
  ValueId k = graph_op2(g, OP_multiply, b.k, graph_const(g, value_weak_i64(12345)));
  assert_true(v && k);
  graph_close(g, TERM_yield, &v, 1, 0);
  BlockId other = graph_open(g);
  Dim m = size_sym(&g->sizes, "m", 0, 0, 9, 1);
  SourceId extra = source_root(&g->guards, SRC_reg, 9);
  ValueId in = graph_input(g, vector(g, DT_f32, m), guard_input(&g->guards, extra, IN_array));
  assert_true(in && guard_relation(&g->guards, &g->sizes, REL_eq, m, b.n, "add", (Span){0}));
  graph_close(g, TERM_yield, &early, 1, 0);
  assert_true(graph_cond(g, graph_const(g, value_bool(true)), inner, other) != 0);
  assert_true(returns(g, v) != NO_EXIT);
  graph_rollback(g, mark);
  GraphMark now = graph_mark(g);
  assert_memory_equal(&mark, &now, sizeof mark);
  assert_int_equal(g->blocks.data[outer].captures.count, 1);
  assert_int_equal(g->inputs.count, 2);
  /* the same again from the same state gives the same text */
  for (u32 round = 0; round < 2; round++) {
    GraphMark again = graph_mark(g);
    ValueId r = graph_op2(g, OP_add, early, y);
    assert_true(graph_close(g, TERM_yield, &r, 1, 0));
    BlockId els = graph_open(g);
    assert_true(graph_close(g, TERM_yield, &y, 1, 0));
    NodeId n = graph_cond(g, graph_const(g, value_bool(true)), outer, els);
    u32 e = returns(g, node_result(g, n, 0));
    assert_true(graph_close(g, TERM_exit, NULL, 0, e));
    expect_valid(g);
    if (round == 0) {
      strcpy(before, text_of(g));
      graph_rollback(g, again);
      assert_int_equal(g->at, outer);
    } else {
      expect_text(g, before);
    }
  }
  graph_free(g);
}

/* ---- editing -------------------------------------------------------------------------------------- */

static void cloning(void **state) {
  (void)state;
  Graph *g = parse(NULL,
                   "graph f#1  file 0  ambient 0\n"
                   "frame 0 f\n"
                   "sym n in [0, 2^62)\n"
                   "in %x: f64[n] = arg0\n"
                   "in %k: i64[] = arg1\n"
                   "%r %i = while (1.0:f64 0:i64) (%x %k) {\n"
                   "  cond (%x1: f64[n], %k1: i64[], %a: f64[], %j: i64[]) { %p = less %j %k1 : bool[] yield %p }\n"
                   "  body (%x2: f64[n], %k2: i64[], %a: f64[], %j: i64[]) {\n"
                   "    check index %j n -> 1\n"
                   "    %e = index %x2[%j] : f64[]\n"
                   "    %s = add %a %e : f64[]\n"
                   "    %t = add %j 1 : i64[]\n"
                   "    next %s %t\n"
                   "  }\n"
                   "} -> 2 : f64[] i64[]\n"
                   "out -> 0\n"
                   "exit 0 return { f: ret = %r }\n"
                   "exit 1 check index { f pc 3: r0 = =arg0, r1 = %a, r2 = list(%j, %x) }\n"
                   "exit 2 limit limit_fuel { f pc 2: r1 = %a, r2 = %j } write [=global \"k\": %j]\n");
  expect_valid(g);
  /* one trip peeled off in front: the body with its carried values replaced by the initial ones */
  NodeId loop = block_first(g, 1);
  BlockId body = graph_node_at(g, loop)->sub[1];
  ValueMap map;
  map_init(&map, heap);
  for (u32 i = 0; i < 2; i++) {
    assert_true(map_set(&map, g->blocks.data[body].params.data[i], node_operand(g, loop, i)));
    assert_true(map_set(&map, g->blocks.data[body].captures.data[i].inner, node_operand(g, loop, 2 + i)));
  }
  graph_at(g, loop);
  assert_true(graph_inline(g, body, &map));
  for (u32 i = 0; i < 2; i++) graph_set_operand(g, loop, i, map_get(&map, block_result(g, body, i)));
  map_free(&map);
  expect_valid(g);
  /* the whole loop once more behind it, from the results of the first */
  graph_at_end(g, 1);
  map_init(&map, heap);
  assert_true(map_set(&map, node_operand(g, loop, 0), node_result(g, loop, 0)));
  NodeId copy = graph_clone_node(g, loop, &map);
  assert_true(copy != 0 && graph_node_at(g, copy)->sub[1] != body);
  map_free(&map);
  expect_valid(g);
  expect_text(g,
              "graph f#1  file 0  ambient 0\n"
              "frame 0 f\n"
              "sym n in [0, 2^62)\n"
              "in %1: f64[n] = arg0\n"
              "in %2: i64[] = arg1\n"
              "check index 0:i64 n -> 3\n"
              "%3 = index %1[0:i64] : f64[]\n"
              "%4 = add 1.0:f64 %3 : f64[]\n"
              "%5 = add 0:i64 1 : i64[]\n"
              "%6 %7 = while (%4 %5) (%1 %2) {\n"
              "  cond (%8: f64[n], %9: i64[], %10: f64[], %11: i64[]) {\n"
              "    %12 = less %11 %9 : bool[]\n"
              "    yield %12\n"
              "  }\n"
              "  body (%13: f64[n], %14: i64[], %15: f64[], %16: i64[]) {\n"
              "    check index %16 n -> 1\n"
              "    %17 = index %13[%16] : f64[]\n"
              "    %18 = add %15 %17 : f64[]\n"
              "    %19 = add %16 1 : i64[]\n"
              "    next %18 %19\n"
              "  }\n"
              "} -> 2 : f64[] i64[]\n"
              "%20 %21 = while (%6 %5) (%1 %2) {\n"
              "  cond (%22: f64[n], %23: i64[], %24: f64[], %25: i64[]) {\n"
              "    %26 = less %25 %23 : bool[]\n"
              "    yield %26\n"
              "  }\n"
              "  body (%27: f64[n], %28: i64[], %29: f64[], %30: i64[]) {\n"
              "    check index %30 n -> 4\n"
              "    %31 = index %27[%30] : f64[]\n"
              "    %32 = add %29 %31 : f64[]\n"
              "    %33 = add %30 1 : i64[]\n"
              "    next %32 %33\n"
              "  }\n"
              "} -> 5 : f64[] i64[]\n"
              "out %6 -> 0\n"
              "exit 0 return { f: ret = %6 }\n"
              "exit 1 check index { f pc 3: r0 = =arg0, r1 = %15, r2 = list(%16, %1) }\n"
              "exit 2 limit limit_fuel { f pc 2: r1 = %15, r2 = %16 } write [=global \"k\": %16]\n"
              "exit 3 check index { f pc 3: r0 = =arg0, r1 = 1.0:f64, r2 = list(0:i64, %1) }\n"
              "exit 4 check index { f pc 3: r0 = =arg0, r1 = %29, r2 = list(%30, %1) }\n"
              "exit 5 limit limit_fuel { f pc 2: r1 = %29, r2 = %30 } write [=global \"k\": %30]\n");
  /* replacing and dropping */
  graph_unlink(g, copy);
  ValueId *to = mem_alloc_zero(heap, sizeof *to * g->values.count);
  to[node_result(g, loop, 1)] = node_operand(g, loop, 1);
  assert_true(graph_replace(g, to, g->values.count));
  mem_free(heap, to, sizeof *to * g->values.count);
  expect_valid(g);
  graph_free(g);
}

static void walking(void **state) {
  (void)state;
  Graph *g = parse(NULL, "graph f\nframe 0 f\n%1 = exp 1.0 : weak f64[]\n"
                         "%2 = cond true () {\n then () { %3 = sin 1.0 : weak f64[]\n %4 = cond false () {\n"
                         " then () { yield 1.0 }\n else () { %5 = cos 1.0 : weak f64[] yield %5 }\n"
                         " } : weak f64[]\n yield %4 }\n else () { yield 2.0 }\n}"
                         " : weak f64[]\n%6 = tan 1.0 : weak f64[]\nout -> 0\nexit 0 return { f: ret = %6 }\n");
  expect_valid(g);
  static const u32 want[] = {OP_exp, 0, OP_sin, 0, OP_cos, OP_tan};
  u32 n = 0;
  GraphWalk w = walk_begin(g, 1);
  while (walk_next(&w)) {
    assert_true(n < COUNT_OF(want));
    assert_int_equal(graph_node_at(g, w.node)->op, want[n++]);
  }
  assert_int_equal(n, COUNT_OF(want));
  u32 *blocks, count;
  assert_true(graph_blocks(g, heap, &blocks, &count));
  assert_int_equal(count, 5);
  assert_int_equal(blocks[0], 1);
  mem_free(heap, blocks, sizeof *blocks * count);
  graph_free(g);
}

/* ---- refused memory ------------------------------------------------------------------------------- */

static void refused_memory(void **state) {
  (void)state;
  const char *text = "graph f#1  file 0  ambient 0\nframe 0 f\n"
                     "sym n = size(arg0, 0) in [0, 2^62)\nin %1: f64[n] = arg0\nin %2: bool[] = arg1\n"
                     "%3 = cond %2 (%1) {\n  then (%4: f64[n]) {\n"
                     "    %5 = add %4 <2*n + 1> : f64[n]\n    yield %5\n  }\n  else (%6: f64[n]) {\n"
                     "    check truth %6 -> 1\n    yield %6\n  }\n"
                     "} : f64[n]\nout %3 -> 0\nexit 0 return { f: ret = list(%3, \"a\") }\n"
                     "exit 1 check truth { f pc 1: r0 = %1 } write [=global \"k\": %1]\n";
  bool done = false;
  for (u32 limit = 0; limit < 400 && !done; limit++) {
    TestMemory l = test_memory(limit);
    Graph *g = graph_parse(&l.base, NULL, text, strlen(text), NULL, 0);
    if (g) {
      Buf b;
      buf_init(&b, heap);
      ValueMap map;
      map_init(&map, &l.base);
      graph_at_end(g, 1);
      bool cloned = graph_clone_node(g, block_first(g, 1), &map) != 0;
      map_free(&map);
      done = cloned && graph_verify(g, &b);
      buf_free(&b);
    }
    graph_free(g);
  }
  assert_true(done);
}

int main(void) {
  heap = allocator_system();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(straight_line),     cmocka_unit_test(captures_are_lifted_and_merged),
      cmocka_unit_test(loops),             cmocka_unit_test(shared_blocks),
      cmocka_unit_test(everything_in_text), cmocka_unit_test(sample_of_the_reference),
      cmocka_unit_test(bad_text),          cmocka_unit_test(truncated_text),
      cmocka_unit_test(violations), cmocka_unit_test(A6_an_operand_of_another_block_is_reported),
      cmocka_unit_test(rollback), cmocka_unit_test(types_are_inferred_once),
      cmocka_unit_test(cloning),           cmocka_unit_test(walking),
      cmocka_unit_test(refused_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
