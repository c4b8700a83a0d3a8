/* test_library.c — the loader of functions written in Weft, on modules made here: what is global, modules that name
 * each other, bytecode that is cut short, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/inner.h"
#include "lang/compile.h"
#include "parser/parser.h"

enum { MODULES = 2 };

static LibraryModule modules[MODULES];
static u8 module_of[OP_COUNT];
static const Library library = {modules, module_of};

/* Bytes of the module `text`; the caller frees them. */
static char *compiled(const char *text, size_t *len) {
  Allocator *alloc = allocator_system();
  Arena arena;
  Names names;
  Sources sources;
  ModuleScope scope = {.alloc = alloc};
  Ast ast;
  Diag diag = {0};
  Proto *p;
  Buf code;
  arena_init(&arena, alloc);
  buf_init(&code, alloc);
  assert_int_equal(names_init(&names, alloc), WEFT_OK);
  assert_int_equal(sources_init(&sources, alloc), WEFT_OK);
  u32 file = sources_add(&sources, "m.weft", text, strlen(text));
  assert_int_equal(parser_parse(&ast, &arena, &names, &sources, file, &diag, NULL), WEFT_OK);
  CompileOptions o = {.alloc = alloc, .names = &names, .sources = &sources, .scope = &scope, .diag_arena = &arena,
                      .library = true};
  assert_int_equal(lang_compile(&ast, &o, &p, &diag), WEFT_OK);
  proto_save(p, &names, &scope, false, &code);
  assert_false(code.failed);
  char *bytes = malloc(code.len);
  assert_non_null(bytes);
  memcpy(bytes, code.data, *len = code.len);
  proto_drop(p);
  buf_free(&code);
  scope_free(&scope);
  arena_free(&arena);
  sources_free(&sources);
  names_free(&names);
  return bytes;
}

static void put(u32 i, const char *path, const char *text) {
  free((char *)(uintptr_t)modules[i].code);
  modules[i] = (LibraryModule){.path = path, .text = text, .text_len = strlen(text)};
  modules[i].code = compiled(text, &modules[i].code_len);
}

static int setup(void **state) {
  WeftVM *w = weft_new(NULL);
  if (!w) return -1;
  memset(module_of, 0, sizeof module_of);
  w->vm->library = &library;
  *state = w;
  return 0;
}
static int teardown(void **state) {
  weft_free(*state);
  for (u32 i = 0; i < MODULES; i++) {
    free((char *)(uintptr_t)modules[i].code);
    modules[i] = (LibraryModule){0};
  }
  return 0;
}

static void holds(WeftVM *w, const char *condition) {
  char program[400];
  snprintf(program, sizeof program, "assert(%s)", condition);
  if (weft_eval(w, program, "test", NULL) != WEFT_OK) fail_msg("%s", weft_error_text(w));
}

static u64 loaded(WeftVM *w) { return vm_stat(w->vm, STAT_modules_loaded); }

static void a_global_function_is_loaded_where_it_is_named(void **state) {
  WeftVM *w = *state;
  put(0, "lib/a.weft",
      "# A module.\nfn std(x, axis=nil, correction=0, keepdims=false) = _half(x)\nfn _half(x) = x / 2\n");
  module_of[OP_std] = 1;
  holds(w, "sum([1.0]) == 1.0");
  assert_int_equal(loaded(w), 0);
  holds(w, "std(8.0) == 4.0 and (8.0).std() == 4.0 and (8.0 |> std) == 4.0 and map(std, (2.0, 4.0)) == (1.0, 2.0)");
  holds(w, "std == std and str(std) == \"<fn std>\" and grad(std)(1.0) == 0.5 and jit(x => std(x))(3.0) == 1.5");
  assert_int_equal(loaded(w), 1);
}

static void modules_may_name_each_other(void **state) {
  WeftVM *w = *state;
  put(0, "lib/a.weft",
      "# A module.\nfn std(x, axis=nil, correction=0, keepdims=false) = if x < 1 { x } else { outer(x - 1, 0) }\n");
  put(1, "lib/b.weft", "# A module.\nfn outer(x, y) = std(x - 1)\n");
  module_of[OP_std] = 1;
  module_of[OP_outer] = 2;
  holds(w, "std(5) == -1 and outer(5, 0) == 0");
  assert_int_equal(loaded(w), 2);
}

static void helpers_and_functions_inside_stand_in_the_trace(void **state) {
  WeftVM *w = *state;
  put(0, "lib/a.weft", "# A module.\nfn std(x, axis=nil, correction=0, keepdims=false) { let y = _all(x); y }\n"
                       "fn _all(x) { let y = map(q => 1 + sum(q, 7), (x,)); y }\n");
  module_of[OP_std] = 1;
  assert_int_equal(weft_eval(w, "let r = 1\nlet q = std([1.0])", "test", NULL), WEFT_ERROR);
  const char *text = weft_error_text(w);
  assert_string_equal(text, "error: std: sum: axis 7 is out of range for rank 1\n"
                            "  --> test:2:9\n  |\n2 | let q = std([1.0])\n  |         ^^^^^^^^^^\n"
                            "  in a function, at lib/a.weft:3:35\n  in _all, at lib/a.weft:3:22\n"
                            "  in std, at lib/a.weft:2:61\n");
}

/* An error of an operation inside speaks of the parameter that its argument came from. */
static void errors_name_the_parameter_that_was_handed_on(void **state) {
  static const struct {
    const char *body, *call, *said;
  } tries[] = {
      {"sum(x)", "std(\"a\")", "std: x must be an array, got text"},
      {"sum(axis)", "std(1.0, \"a\")", "std: axis must be an array, got text"},
      {"sum( x = axis )", "std(1.0, \"a\")", "std: axis must be an array, got text"},
      {"sum(axis=nil, x=axis)", "std(1.0, \"a\")", "std: axis must be an array, got text"},
      {"linalg.diagonal(axis, 0)", "std(1.0, \"a\")", "std: axis must be an array, got text"},
      {"ravel(axis)", "std(1.0, \"a\")", "std: axis must be an array, got text"},
      {"sum(x, correction)", "std(1.0, nil, \"a\")",
       "std: correction must be an integer or a list of integers, got text"},
      {"sum(abs((x, \"),\")[0]), correction)", "std(1.0, nil, \"a\")",
       "std: correction must be an integer or a list of integers, got text"},
      {"x.sum(axis=correction)", "std([1.0], nil, \"a\")",
       "std: correction must be an integer or a list of integers, got text"},
      {"_one(correction)", "std(1.0, nil, \"a\")", "std: correction must be an array, got text"},
      {"_two(1, b=correction)", "std(1.0, nil, \"a\")", "std: correction must be an array, got text"},
      {"sum(x + 0, 5)", "std(1.0)", "std: sum: axis 5 is out of range for rank 0"},
      {"sum(if axis == nil { \"a\" } else { x })", "std(1.0)", "std: sum: x must be an array, got text"},
      {"{ let f = (x, 1); sum(f) }", "std(1.0)", "std: sum: x is a list, needs an array; array(…) makes one"},
      {"sum(x + axis)", "std(1.0, \"a\")", "std: axis must be an array, got text"},
      {"x[axis]", "std([1.0], 7)", "std: "},
      {"axis.foo", "std([1.0], 7)", "std: "},
      {"axis(x)", "std([1.0], 7)", "std: "},
      {"arange(0.0, sum(x))", "grad(x => sum(std(x)))([1.0, 2.0])",
       "grad: no derivative of arange by its parameter `stop`, in std"},
      {"logspace(0.0, x, 3, true, correction)", "grad(c => sum(std(1.0, nil, c)))(2.0)",
       "grad: no derivative of std by its parameter `correction`"},
      {"{ let b = correction + 1.0; logspace(0.0, x, 3, true, b) }", "grad(c => sum(std(1.0, nil, c)))(2.0)",
       "grad: no derivative of logspace by its parameter `base`, in std"},
      {"error(\"std: no\")", "std([1.0])", "std: no"},
      {"error(\"no\")", "std([1.0])", "no"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT_OF(tries); i++) {
    char text[400];
    WeftVM *w = weft_new(NULL);
    assert_non_null(w);
    w->vm->library = &library;
    snprintf(text, sizeof text, "# A module.\nfn std(x, axis=nil, correction=0, keepdims=false) = %s\n"
                                "fn _one(a) = ravel(a) + 1\nfn _two(a, b) { let c = _one(b); a + c }\n", tries[i].body);
    put(0, "lib/a.weft", text);
    module_of[OP_std] = 1;
    if (weft_eval(w, tries[i].call, "test", NULL) != WEFT_ERROR) fail_msg("%s: no error", tries[i].body);
    size_t len = strlen(tries[i].said);
    const char *said = weft_error_text(w) + strlen("error: ");
    bool whole = tries[i].said[len - 1] != ' ';
    if (strncmp(said, tries[i].said, len) != 0 || (whole && said[len] != '\n'))
      fail_msg("%s: said %s, not %s", tries[i].body, said, tries[i].said);
    weft_free(w);
  }
}

static void what_the_program_gave_fails_where_it_stands(void **state) {
  WeftVM *w = *state;
  put(0, "lib/a.weft", "# A module.\nfn std(x, axis=nil, correction=0, keepdims=false) { let y = axis(x); y }\n");
  module_of[OP_std] = 1;
  assert_int_equal(weft_eval(w, "std([1.0], q => 1 + sum(q, 7))", "test", NULL), WEFT_ERROR);
  assert_string_equal(weft_error_text(w), "error: sum: axis 7 is out of range for rank 1\n  --> test:1:21\n  |\n"
                                          "1 | std([1.0], q => 1 + sum(q, 7))\n  |                     ^^^^^^^^^\n"
                                          "  in a function, called at lib/a.weft:2:61\n  in std, at lib/a.weft:2:61\n");
}

static void bytecode_that_is_cut_short_is_an_error_and_leaves_nothing(void **state) {
  WeftVM *w = *state;
  put(0, "lib/a.weft", "# A module.\nfn std(x, axis=nil, correction=0, keepdims=false) = x / 2\n");
  module_of[OP_std] = 1;
  size_t whole = modules[0].code_len;
  for (size_t n = 0; n < whole; n++) {
    modules[0].code_len = n;
    assert_int_equal(weft_eval(w, "std(8.0)", "test", NULL), WEFT_ERROR);
    assert_non_null(strstr(weft_error_text(w), "lib/a.weft: "));
  }
  assert_int_equal(loaded(w), 0);
  modules[0].code_len = whole;
  holds(w, "std(8.0) == 4.0");
  assert_int_equal(loaded(w), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_global_function_is_loaded_where_it_is_named, setup, teardown),
      cmocka_unit_test_setup_teardown(modules_may_name_each_other, setup, teardown),
      cmocka_unit_test_setup_teardown(helpers_and_functions_inside_stand_in_the_trace, setup, teardown),
      cmocka_unit_test_setup_teardown(errors_name_the_parameter_that_was_handed_on, setup, teardown),
      cmocka_unit_test_setup_teardown(what_the_program_gave_fails_where_it_stands, setup, teardown),
      cmocka_unit_test_setup_teardown(bytecode_that_is_cut_short_is_an_error_and_leaves_nothing, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
