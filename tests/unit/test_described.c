/* test_described.c — functions of the host with a signature, defaults and documentation; structs of the host that may
 * be older or newer than the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Its arguments as a list; a negative first one is an error of its own. */
static WeftStatus give_all(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  int64_t first;
  if (context) ++*(int *)context;
  if (count && strcmp(weft_type(vm, args[0]), "array") == 0 && weft_as_int(vm, args[0], &first) == WEFT_OK && first < 0)
    return weft_fail(vm, "value", "blur: below 0");
  return weft_list(vm, args, count, result);
}

static int released;
static void count_release(void *context) {
  (void)context;
  released++;
}

static void raises(WeftVM *vm, const char *program, const char *kind, const char *part) {
  assert_int_equal(weft_eval(vm, program, "test", NULL), WEFT_ERROR);
  if (strcmp(weft_error_kind(vm), kind) != 0 || !strstr(weft_error_text(vm), part))
    fail_msg("%s: %s", program, weft_error_text(vm));
}

/* ---- calls -------------------------------------------------------------------------------------------------- */

static void arguments_by_name_and_defaults(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b]);
    int calls = 0;
    assert_int_equal(weft_define_described(vm, "blur(img, radius=1, ...rest, edge=\"wrap\")", "Blurs.", give_all,
                                           &calls, NULL), WEFT_OK);
    gives(vm, "blur(5)", "(5, 1, (), \"wrap\")");
    gives(vm, "blur(5, 2, 3, 4, edge=nil)", "(5, 2, (3, 4), nil)");
    gives(vm, "blur(radius=7, img=[1.5])", "([1.5], 7, (), \"wrap\")");
    gives(vm, "let o = {radius: 3}; blur(1, ...o)", "(1, 3, (), \"wrap\")");
    gives(vm, "map(blur, (1, 2))", "((1, 1, (), \"wrap\"), (2, 1, (), \"wrap\"))");
    assert_int_equal(calls, 6);
    calls = 0;
    gives(vm, "fn f(n) { let s = 0; for i in 0..n { s += blur(i, radius=i * 2)[1] }; s }; (f(10), f(100))",
          "(90, 9900)");
    assert_int_equal(calls, 110);
    weft_free(vm);
  }
}

static void defaults_see_the_module(void **state) {
  (void)state;
  WeftVM *vm = vm_with("mir");
  WeftValue *m = NULL, *v = NULL;
  assert_int_equal(weft_eval(vm, "let size = 3", "test", NULL), WEFT_OK);
  assert_int_equal(weft_define_described(vm, "f(x=size, y=x + 1, _host=2)", NULL, give_all, NULL, NULL), WEFT_OK);
  gives(vm, "f()", "(3, 4, 2)");
  gives(vm, "size = 10; f(y=0)", "(10, 0, 2)");
  assert_int_equal(weft_module_new(vm, "own", &m), WEFT_OK);
  assert_int_equal(weft_module_define_described(vm, m, "f(x=size)", NULL, give_all, NULL, NULL), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "name");
  assert_int_equal(weft_module_run(vm, m, "let size = 5", 12, "own", NULL), WEFT_OK);
  assert_int_equal(weft_module_define_described(vm, m, "f(x=size)", NULL, give_all, NULL, NULL), WEFT_OK);
  assert_int_equal(weft_module_run(vm, m, "f()", 3, "own", &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "(5,)");
  weft_release(vm, v);
  assert_int_equal(weft_set_global(vm, "own", m), WEFT_OK);
  gives(vm, "own.f(x=1)", "(1,)");
  weft_release(vm, m);
  weft_free(vm);
}

static void help_and_completion_show_it(void **state) {
  (void)state;
  WeftVM *vm = vm_with("mir");
  WeftCompletion c = {.size = sizeof c};
  assert_int_equal(weft_define_described(vm, "blur(img, radius=1, ...rest, edge=\"wrap\")",
                                         "Blurs an image.\nTwice.\r\n\n  blur(x)\n", give_all, NULL, NULL), WEFT_OK);
  assert_int_equal(weft_eval(vm, "help(blur)", "test", NULL), WEFT_OK);
  assert_string_equal(printed, "blur(img, radius=1, ...rest, edge=\"wrap\")\n"
                               "  Blurs an image.\n  Twice.\n  \n    blur(x)\n");
  assert_int_equal(weft_complete(vm, "blu", 3, &c), WEFT_OK);
  assert_int_equal(c.count, 1);
  assert_string_equal(c.notes[0], "(img, radius=1, ...rest, edge=\"wrap\")  Blurs an image.");
  assert_int_equal(weft_complete(vm, "blur(1, radi", 12, &c), WEFT_OK);
  assert_int_equal(c.count, 1);
  assert_string_equal(c.words[0], "radius=");
  printed[0] = 0;
  assert_int_equal(weft_eval(vm, "help(blur, source=true)", "test", NULL), WEFT_OK);
  assert_string_equal(printed, "this function is not written in Weft\n");
  gives(vm, "blur", "<fn blur>");
  weft_free(vm);
}

static void errors_are_those_of_functions(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    WeftVM *vm = vm_with(backends[b]);
    int calls = 0;
    assert_int_equal(weft_define_described(vm, "blur(img, radius=1)", "Blurs.", give_all, &calls, NULL), WEFT_OK);
    raises(vm, "blur()", "type", "blur: the argument 'img' is missing");
    raises(vm, "blur(1, raduis=2)", "type", "blur: there is no parameter 'raduis'; did you mean 'radius'?");
    raises(vm, "blur(1, 2, 3)", "type", "blur: ");
    raises(vm, "blur(1, img=2)", "type", "blur: ");
    assert_int_equal(calls, 0);
    /* the place is the program's, and nothing of what stands around the host's function is seen */
    raises(vm, "fn k(x) {\n  let y = blur(x)\n  y[0] + 1\n}\nk(1) + k(-1)", "value", "blur: below 0\n  --> test:2:11");
    assert_null(strstr(weft_error_text(vm), "_host"));
    assert_null(strstr(weft_error_text(vm), "signature"));
    gives(vm, "try { blur(-1) } catch e { e.message }", "\"blur: below 0\"");
    weft_free(vm);
  }
}

/* ---- signatures that are none ------------------------------------------------------------------------------------ */

static void a_signature_that_is_none(void **state) {
  (void)state;
  static const char *const wrong[] = {"", "blur", "blur(", "(x)", "blur(x) { 1 }", "blur(x) = x", "blur(x) {} fn g(y)",
                                      "blur(x)\n1\nfn g(y)", "blur(x, x)", "blur(x=1, y)", "blur([a, b])", "if(x)",
                                      "blur(x) =", "blur(x=)", "blur(x) {}\nprint(1)\nfn g(x)",
                                      "blur(x=(", "blur(x=nowhere)", "= 1", "blur(x) }", "blur(x)) => {(1"};
  WeftVM *vm = vm_with("mir");
  WeftValue *v = NULL;
  released = 0;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    if (weft_define_described(vm, wrong[i], "doc", give_all, NULL, count_release) != WEFT_ERROR)
      fail_msg("taken: %s", wrong[i]);
    const char *kind = weft_error_kind(vm);
    if (strcmp(kind, "syntax") != 0 && strcmp(kind, "name") != 0) fail_msg("%s: %s", wrong[i], weft_error_text(vm));
    assert_int_equal(weft_function_described(vm, wrong[i], NULL, give_all, NULL, count_release, &v), WEFT_ERROR);
    assert_null(v);
  }
  assert_int_equal(weft_get_global(vm, "blur", &v), WEFT_ERROR);
  assert_string_equal(printed, "");
  assert_int_equal(weft_define_described(vm, NULL, NULL, give_all, NULL, count_release), WEFT_MISUSE);
  assert_int_equal(weft_define_described(vm, "f(x)", NULL, NULL, NULL, count_release), WEFT_MISUSE);
  assert_int_equal(weft_define_described(vm, "f(x)", "\xff", give_all, NULL, count_release), WEFT_MISUSE);
  assert_int_equal(weft_define_described(vm, "f(\xff)", NULL, give_all, NULL, count_release), WEFT_MISUSE);
  assert_int_equal(weft_define_described(NULL, "f(x)", NULL, give_all, NULL, count_release), WEFT_MISUSE);
  assert_int_equal(weft_function_described(vm, "f(x)", NULL, give_all, NULL, NULL, NULL), WEFT_MISUSE);
  assert_int_equal(weft_module_define_described(vm, NULL, "f(x)", NULL, give_all, NULL, NULL), WEFT_MISUSE);
  assert_int_equal(released, 0);
  weft_free(vm);
  assert_int_equal(released, 0);
}

static void the_context_goes_with_the_function(void **state) {
  (void)state;
  WeftVM *vm = vm_with("mir");
  WeftValue *v = NULL, *out = NULL;
  released = 0;
  assert_int_equal(weft_function_described(vm, "f(x, y=2)", NULL, give_all, NULL, count_release, &v), WEFT_OK);
  assert_int_equal(weft_call(vm, v, &v, 1, &out), WEFT_OK);
  weft_release(vm, out);
  weft_release(vm, v);
  assert_int_equal(released, 1);
  assert_int_equal(weft_define_described(vm, "g()", NULL, give_all, NULL, count_release), WEFT_OK);
  gives(vm, "g()", "()");
  gives(vm, "g = nil", "nil");
  (void)weft_collect(vm);
  assert_int_equal(released, 2);
  assert_int_equal(weft_define_described(vm, "h()", NULL, give_all, NULL, count_release), WEFT_OK);
  weft_free(vm);
  assert_int_equal(released, 3);
}

typedef struct Refusing {
  long left;
} Refusing;
static void *refusing(void *context, void *p, size_t old_size, size_t new_size) {
  Refusing *r = context;
  (void)old_size;
  if (!new_size) {
    free(p);
    return NULL;
  }
  if (r->left == 0) return NULL;
  r->left--;
  return realloc(p, new_size);
}

/* Whichever request for memory is refused: the context stays the host's until the function is there. */
static void without_memory(void **state) {
  (void)state;
  int refused = 0, made = 0;
  for (long n = 0; made < 3 && n < 2000; n++) {
    Refusing memory = {1000000};
    WeftOptions o = WEFT_OPTIONS_INIT;
    o.resize = refusing;
    o.resize_context = &memory;
    WeftVM *vm = weft_new(&o);
    assert_non_null(vm);
    released = 0;
    memory.left = n;
    WeftStatus status = weft_define_described(vm, "a_new(img, radius=1)", "Text.", give_all, NULL, count_release);
    if (status != WEFT_OK) assert_string_equal(weft_error_kind(vm), "limit");
    refused += status != WEFT_OK;
    made += status == WEFT_OK;
    memory.left = 1000000;
    assert_int_equal(released, 0);
    weft_free(vm);
    assert_int_equal(released, status == WEFT_OK);
  }
  assert_true(refused > 3);
  assert_int_equal(made, 3);
}

/* ---- structs of the host -------------------------------------------------------------------------------------- */

enum { BEHIND = 64 };
typedef struct Guarded { /* of a host that is newer or older than the library */
  WeftCompletion c;
  unsigned char behind[BEHIND];
} Guarded;

static bool all_are(const unsigned char *p, size_t n, unsigned char c) {
  for (size_t i = 0; i < n; i++)
    if (p[i] != c) return false;
  return true;
}

static void a_struct_is_filled_as_far_as_it_goes(void **state) {
  (void)state;
  WeftVM *vm = vm_with("mir");
  Guarded g;
  memset(&g, 0xA5, sizeof g);
  g.c.size = sizeof g.c;
  assert_int_equal(weft_complete(vm, "arang", 5, &g.c), WEFT_OK);
  assert_int_equal(g.c.count, 1);
  assert_int_equal(g.c.size, sizeof g.c);
  assert_true(all_are(g.behind, BEHIND, 0xA5));
  g.c.size = sizeof g; /* a newer one */
  assert_int_equal(weft_complete(vm, "arang", 5, &g.c), WEFT_OK);
  assert_int_equal(g.c.count, 1);
  assert_int_equal(g.c.size, sizeof g);
  assert_true(all_are(g.behind, BEHIND, 0));
  static const size_t unset[] = {0, 1, offsetof(WeftCompletion, notes), (size_t)-1, 1 << 20};
  for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) {
    memset(&g, 0xA5, sizeof g);
    g.c.size = unset[i];
    assert_int_equal(weft_complete(vm, "arang", 5, &g.c), WEFT_MISUSE);
    assert_true(all_are((unsigned char *)&g + sizeof g.c.size, sizeof g - sizeof g.c.size, 0xA5));
  }
  g.c.size = sizeof g.c;
  assert_int_equal(weft_complete(NULL, "a", 1, &g.c), WEFT_MISUSE);
  assert_int_equal(g.c.count, 0);
  assert_int_equal(weft_complete(vm, NULL, 1, &g.c), WEFT_MISUSE);
  assert_int_equal(weft_complete(vm, "a", 1, NULL), WEFT_MISUSE);
  weft_free(vm);
}

/* What has no size keeps its layout for ever: hosts of other languages write it down. */
static void structs_without_a_size_stay(void **state) {
  (void)state;
  assert_int_equal(sizeof(WeftArray), 2 * sizeof(int) + 2 * 16 * sizeof(int64_t) + sizeof(int64_t) + sizeof(void *));
  assert_int_equal(offsetof(WeftArray, data), sizeof(WeftArray) - sizeof(void *));
  assert_int_equal(sizeof(WeftPromise), 2 * sizeof(int) + 16 * sizeof(int64_t));
  assert_int_equal(offsetof(WeftPromise, shape), 2 * sizeof(int));
}

static int looked;
static WeftCompiled look(WeftVM *vm, void *context, WeftGraph *graph, void **code) {
  (void)vm, (void)context, (void)code;
  struct {
    WeftGraphNode n;
    unsigned char behind[BEHIND];
  } node;
  struct {
    WeftGraphValue v;
    unsigned char behind[BEHIND];
  } value;
  memset(&node, 0xA5, sizeof node);
  memset(&value, 0xA5, sizeof value);
  node.n.size = value.v.size = 0;
  assert_false(weft_graph_node(graph, 0, &node.n));
  assert_false(weft_graph_value(graph, weft_graph_output(graph, 0), &value.v));
  assert_true(all_are((unsigned char *)&node + sizeof(size_t), sizeof node - sizeof(size_t), 0xA5));
  assert_true(all_are((unsigned char *)&value + sizeof(size_t), sizeof value - sizeof(size_t), 0xA5));
  node.n.size = sizeof node.n;
  value.v.size = sizeof value.v;
  assert_true(weft_graph_node(graph, 0, &node.n));
  assert_true(weft_graph_value(graph, node.n.result, &value.v));
  assert_true(all_are(node.behind, BEHIND, 0xA5));
  assert_true(all_are(value.behind, BEHIND, 0xA5));
  node.n.size = sizeof node;
  value.v.size = sizeof value;
  assert_true(weft_graph_node(graph, 0, &node.n));
  assert_true(weft_graph_value(graph, node.n.result, &value.v));
  assert_true(all_are(node.behind, BEHIND, 0));
  assert_true(all_are(value.behind, BEHIND, 0));
  looked++;
  return WEFT_SKIP;
}

static void structs_of_graphs(void **state) {
  (void)state;
  static const WeftBackend backend = {.size = sizeof backend, .name = "looks", .compile = look};
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backends = &backend;
  o.backend_count = 1;
  o.backend = "looks";
  o.hot = 1;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  looked = 0;
  gives(vm, "fn f(x) = x * 2 + 1; f([1.0, 2.0])", "[3.0, 5.0]");
  assert_true(looked > 0);
  weft_free(vm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arguments_by_name_and_defaults),
      cmocka_unit_test(defaults_see_the_module),
      cmocka_unit_test(help_and_completion_show_it),
      cmocka_unit_test(errors_are_those_of_functions),
      cmocka_unit_test(a_signature_that_is_none),
      cmocka_unit_test(the_context_goes_with_the_function),
      cmocka_unit_test(without_memory),
      cmocka_unit_test(a_struct_is_filled_as_far_as_it_goes),
      cmocka_unit_test(structs_without_a_size_stay),
      cmocka_unit_test(structs_of_graphs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
