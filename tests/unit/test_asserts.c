/* test_asserts.c — sizes that values carry: their text, where their checks stand, their copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tracer/graph/graph.h"

static Allocator *heap;

static Graph *parse(Names *names, const char *text) {
  char err[200];
  assert_int_equal(names_init(names, heap), WEFT_OK);
  Graph *g = graph_parse(heap, names, text, strlen(text), err, sizeof err);
  if (!g) fail_msg("%s\n%s", err, text);
  return g;
}

static void expect_text(const Graph *g, const char *want) {
  Buf b;
  buf_init(&b, heap);
  graph_print(g, NULL, &b);
  assert_string_equal(buf_text(&b), want);
  buf_free(&b);
}

static void expect_valid(Graph *g) {
  Buf b;
  buf_init(&b, heap);
  if (!graph_verify(g, &b)) fail_msg("%s", buf_text(&b));
  buf_free(&b);
}

/* x[m] * 2, whose size must be that of y: the check was recorded last. */
static const char recorded[] =
    "graph f#1  file 1  ambient 0\n"
    "frame 0 f\n"
    "sym n = size(arg0, 0) in [0, 2^62)\n"
    "sym k = size(arg2, 0) in [0, 2^62)\n"
    "sym u = size(%4, 0) in [0, 2^62)\n"
    "in %1: f64[n] = arg0\n"
    "in %2: bool[n] = arg1\n"
    "in %3: f64[k] = arg2\n"
    "%4 = nonzero %2 : i64[u]\n"
    "check size u u -> 1\n"
    "%5 = index %1[@%4] : f64[u]\n"
    "%6 = multiply %5 2 : f64[u]\n"
    "check size u k -> 2\n"
    "out %6 %3 -> 0\n"
    "exit 0 return { f: ret = list(%6, %3) }\n"
    "exit 1 check none { f pc 0: r0 = =arg0 }\n"
    "exit 2 check size { f pc 3: r0 = =arg0, r1 = <u> }\n";

static void text_names_the_axis_that_carries_a_size(void **state) {
  (void)state;
  Names names;
  Graph *g = parse(&names, recorded);
  expect_valid(g);
  expect_text(g, recorded);
  const SizeSym *u = &g->sizes.syms.data[2];
  assert_true(u->unbacked && value_type(g, u->source)->rank == 1 && u->axis == 0);
  graph_free(g);
  names_free(&names);
}

static void A11_a_check_stands_where_its_last_size_becomes_known(void **state) {
  (void)state;
  Names names;
  Graph *g = parse(&names, recorded);
  assert_true(graph_simplify(g));
  expect_valid(g);
  NodeId n = block_first(g, 1);
  assert_int_equal(graph_node_at(g, n)->op, OP_nonzero);
  n = node_next(g, n);
  const GraphNode *check = graph_node_at(g, n);
  assert_true(check->kind == NODE_check && check->op == CHECK_size); /* the anchor is gone */
  assert_int_equal(check->exit, 1);                                  /* … and it leaves as that would have */
  n = node_next(g, n);
  assert_int_equal(graph_node_at(g, n)->kind, NODE_index);
  assert_int_equal(graph_node_at(g, node_next(g, n))->op, OP_multiply);
  assert_int_equal(node_next(g, node_next(g, n)), 0);
  graph_free(g);
  names_free(&names);
}

static void A11_what_only_a_size_is_asked_of_stays(void **state) {
  (void)state;
  Names names;
  Graph *g = parse(&names, "graph f#1  file 1  ambient 0\n"
                           "frame 0 f\n"
                           "sym n = size(arg0, 0) in [0, 2^62)\n"
                           "sym u = size(%2, 0) in [0, 2^62)\n"
                           "in %1: bool[n] = arg0\n"
                           "%2 = nonzero %1 : i64[u]\n"
                           "%3 = nonzero %1 : i64[u]\n"
                           "out -> 0\n"
                           "exit 0 return { f: ret = <u + 1> }\n");
  assert_true(graph_simplify(g));
  NodeId n = block_first(g, 1);
  assert_int_equal(graph_node_at(g, n)->op, OP_nonzero);
  assert_int_equal(node_next(g, n), 0);
  assert_int_equal(g->sizes.syms.data[1].source, node_result(g, n, 0));
  graph_free(g);
  names_free(&names);
}

static void A11_a_copy_carries_a_size_of_its_own(void **state) {
  (void)state;
  Names names;
  Graph *g = parse(&names, recorded);
  ValueMap map;
  map_init(&map, heap);
  NodeId nonzero = block_first(g, 1), index = node_next(g, node_next(g, nonzero));
  graph_at_end(g, 1);
  NodeId a = graph_clone_node(g, nonzero, &map), b = graph_clone_node(g, index, &map);
  assert_true(a && b);
  Dim u = g->sizes.syms.data[2].dim, made = value_type(g, node_result(g, a, 0))->dims[0];
  u32 sym = 0;
  assert_true(made != u && size_is_sym(&g->sizes, made, &sym));
  assert_int_equal(g->sizes.syms.data[sym].source, node_result(g, a, 0));
  assert_true(value_type(g, node_result(g, b, 0))->dims[0] == made);
  assert_true(value_type(g, node_result(g, index, 0))->dims[0] == u);
  map_free(&map);
  graph_free(g);
  names_free(&names);
}

int main(void) {
  heap = allocator_system();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_names_the_axis_that_carries_a_size),
      cmocka_unit_test(A11_a_check_stands_where_its_last_size_becomes_known),
      cmocka_unit_test(A11_what_only_a_size_is_asked_of_stays),
      cmocka_unit_test(A11_a_copy_carries_a_size_of_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
