/* test_host_suspend.c — programs that wait (weft_define_suspending, weft_resume): where they may, in every backend, and
 * what the host may do meanwhile, and how they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/weft.h"
#include "tests/unit/programs.h"

static const char *const backends[] = {"eager", "interp", "loops", "mir", "verify"};
enum { BACKENDS = 5 };

typedef struct Asked {
  int calls;
  int64_t last;  /* what it was called with */
  bool at_once;  /* gives that, without waiting */
} Asked;

/* ask(n): waits. */
static WeftStatus ask(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  Asked *a = context;
  a->calls++;
  if (count != 1 || weft_as_int(vm, args[0], &a->last) != WEFT_OK) return weft_fail(vm, "type", "ask: needs a number");
  return a->at_once ? weft_int(vm, a->last, result) : WEFT_SUSPENDED;
}

static WeftVM *vm_with(Asked *a, const char *backend) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backend = backend;
  o.hot = 1;
  o.allow_imports = true;
  o.allow_files = true;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  assert_int_equal(weft_define_suspending(vm, NULL, "ask", ask, a, NULL), WEFT_OK);
  return vm;
}

/* Answers twice what was asked, until the program has ended. */
static WeftStatus answer_all(WeftVM *vm, Asked *a, WeftStatus status, WeftValue **out) {
  while (status == WEFT_SUSPENDED) {
    WeftValue *answer;
    assert_true(weft_is_suspended(vm));
    assert_int_equal(weft_int(vm, 2 * a->last, &answer), WEFT_OK);
    status = weft_resume(vm, answer, out);
    weft_release(vm, answer);
  }
  assert_false(weft_is_suspended(vm));
  return status;
}

static void programs_go_on_with_the_answer(void **state) {
  static const struct {
    const char *program, *want;
    int calls;
  } programs[] = {
      {"ask(3)", "6", 1},
      {"ask(3) + ask(4)", "14", 2},
      {"fn f(x) = ask(x) + 1\nfn g(x) = f(x) * f(x + 1)\ng(1)", "15", 2},
      {"fn f(x) = ask(x)\nf(5)", "10", 1}, /* in place of the outermost call */
      {"fn f(x) = ask(...(x,))\nlet y = f(5)\ny", "10", 1},
      {"let s = 0\nfor i in 0..50 { s += ask(i) }\ns", "2450", 50},
      {"fn f() { let s = 0; for i in 0..200 { s += if i % 10 == 0 { ask(i) } else { i } }; s }\nf()", "21800", 20},
      {"fn f(n) = if n == 0 { 0 } else { ask(n) + f(n - 1) }\nf(20)", "420", 20},
      {"let r = {ask: ask, n: 4}\nr.ask(r.n)", "8", 1},
      {"let a = arange(4)\nlet f = x => sum(a) + ask(x)\n(f(1), f(2))", "(8, 10)", 2},
      {"let w = ask\nw(1)", "2", 1},
      {"3 |> ask", "6", 1},
      {"fn f() { try { ask(1); error(\"x\") } catch e { ask(2) } }\nf()", "4", 2},
      {"fn f() { let x = [1, 2, 3]; x[ask(1)] = ask(4); x }\nf()", "[1, 2, 8]", 2},
      {"let x = [1.0]\nwhile len(x) < 4 { x = concat((x, [ask(1) * 1.0])) }\nx", "[1.0, 2.0, 2.0, 2.0]", 3},
      {"f\"{ask(1)}-{ask(2)}\"", "\"2-4\"", 2},
  };
  (void)state;
  for (int b = 0; b < BACKENDS; b++)
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
      for (int again = 0; again < 3; again++) {
        Asked a = {0};
        WeftVM *vm = vm_with(&a, backends[b]);
        WeftValue *v = NULL;
        WeftStatus status = weft_eval(vm, programs[i].program, "p", &v);
        if (status == WEFT_SUSPENDED) assert_null(v);
        status = answer_all(vm, &a, status, &v);
        if (status != WEFT_OK) fail_msg("%s: %s: %s", backends[b], programs[i].program, weft_error_text(vm));
        if (strcmp(weft_show(vm, v), programs[i].want) != 0 || a.calls != programs[i].calls)
          fail_msg("%s: %s: %s, %d calls", backends[b], programs[i].program, weft_show(vm, v), a.calls);
        weft_release(vm, v);
        gives(vm, "1 + 1", "2");
        weft_free(vm);
      }
}

/* Loops around it are interpreted, code beside it is compiled as ever, and a function that does not wait costs no
 * more. */
static void other_code_is_compiled(void **state) {
  (void)state;
  Asked a = {0};
  WeftVM *vm = vm_with(&a, "mir");
  WeftValue *v = NULL;
  WeftStatus status = weft_eval(vm, "fn g(n) { let s = 0; for i in 0..n { s += i * i }; s }\n"
                                    "fn f() { let s = 0; for i in 0..20 { s += ask(i) + g(100) }; s }\nf()", "p", &v);
  assert_int_equal(answer_all(vm, &a, status, &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "6567380");
  weft_release(vm, v);
  assert_true(stat(vm, "compiles") > 0);
  a.at_once = true;
  gives(vm, "f()", "6567190");
  weft_free(vm);
}

static void calls_wait_too(void **state) {
  (void)state;
  Asked a = {0};
  WeftVM *vm = vm_with(&a, NULL);
  WeftValue *f, *x, *v = NULL, *many[10];
  gives(vm, "fn f(x, ...r) = ask(x) + len(r)\n0", "0");
  assert_int_equal(weft_get_global(vm, "f", &f), WEFT_OK);
  assert_int_equal(weft_int(vm, 21, &x), WEFT_OK);
  assert_int_equal(weft_call(vm, f, &x, 1, &v), WEFT_SUSPENDED);
  assert_int_equal(answer_all(vm, &a, WEFT_SUSPENDED, &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "42");
  weft_release(vm, v);
  for (int i = 0; i < 10; i++) many[i] = x;
  assert_int_equal(weft_call(vm, f, many, 10, &v), WEFT_SUSPENDED);
  assert_int_equal(answer_all(vm, &a, WEFT_SUSPENDED, &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "51");
  weft_release(vm, v);
  const char *names[] = {"x"};
  assert_int_equal(weft_call_named(vm, f, &x, 1, names, 1, &v), WEFT_SUSPENDED);
  assert_int_equal(answer_all(vm, &a, WEFT_SUSPENDED, NULL), WEFT_OK);
  assert_int_equal(weft_eval_line(vm, "f(1)", "line", NULL), WEFT_SUSPENDED);
  assert_int_equal(answer_all(vm, &a, WEFT_SUSPENDED, &v), WEFT_OK);
  weft_release(vm, v);
  WeftValue *module;
  assert_int_equal(weft_module_new(vm, "m", &module), WEFT_OK);
  assert_int_equal(weft_define_suspending(vm, module, "wait", ask, &a, NULL), WEFT_OK);
  assert_int_equal(weft_module_run(vm, module, "let y = wait(4)\ny", 17, "m", &v), WEFT_SUSPENDED);
  assert_int_equal(weft_module_free(vm, module), WEFT_MISUSE); /* a program of it waits */
  assert_int_equal(answer_all(vm, &a, WEFT_SUSPENDED, &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "8");
  weft_release(vm, v);
  assert_int_equal(weft_module_free(vm, module), WEFT_OK);
  weft_release(vm, x);
  weft_release(vm, f);
  weft_free(vm);
}

/* ---- where a program cannot wait ------------------------------------------------------------------------------ */

static WeftStatus call_back(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context, (void)count;
  WeftStatus status = weft_call(vm, args[0], NULL, 0, result);
  return status == WEFT_SUSPENDED ? weft_fail(vm, "host", "it waits inside of a host function") : status;
}

static WeftStatus plainly(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)vm, (void)context, (void)args, (void)count, (void)result;
  return WEFT_SUSPENDED;
}

static void elsewhere_it_is_one_error(void **state) {
  static const char *const programs[] = {
      "map(ask, (1, 2))", "map(x => ask(x), (1, 2))", "sort((3, 1), key=x => ask(x))", "grad(x => ask(1) * x)(2.0)",
      "vmap(x => ask(1) * x)([1.0, 2.0])",
      "scan((s, x) => (s + ask(1), x), 0, [1, 2])", "call_back(() => ask(1))", "jit(x => ask(1) + x)(2)",
      "fori_loop(0, 3, (i, s) => s + ask(1), 0)", "while_loop(s => s < 10, s => s + ask(1), 1)",
      "tree_map(x => ask(x), {a: 1})", "checkpoint(x => ask(1) * x)(3.0)"};
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    Asked a = {0};
    WeftVM *vm = vm_with(&a, backends[b]);
    assert_int_equal(weft_define(vm, "call_back", call_back, NULL, NULL), WEFT_OK);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
      WeftValue *v = NULL;
      if (weft_eval(vm, programs[i], "p", &v) != WEFT_ERROR) fail_msg("%s: %s", backends[b], programs[i]);
      if (strcmp(weft_error_kind(vm), "unsupported") != 0 || !strstr(weft_error_message(vm), "ask"))
        fail_msg("%s: %s: %s", backends[b], programs[i], weft_error_text(vm));
      assert_int_equal(a.calls, 0);
      assert_false(weft_is_suspended(vm));
    }
    gives(vm, "try { map(ask, (1, 2)) } catch e { e.kind }", "\"unsupported\"");
    a.at_once = true;
    gives(vm, "ask(4)", "4");
    WeftValue *fn;
    assert_int_equal(weft_get_global(vm, "ask", &fn), WEFT_OK);
    assert_int_equal(weft_call(vm, fn, &fn, 1, NULL), WEFT_ERROR); /* the host itself has nothing that could wait */
    assert_string_equal(weft_error_kind(vm), "unsupported");
    weft_release(vm, fn);
    assert_int_equal(weft_define(vm, "plainly", plainly, NULL, NULL), WEFT_OK);
    assert_int_equal(weft_eval(vm, "plainly()", "p", NULL), WEFT_ERROR);
    assert_string_equal(weft_error_kind(vm), "host");
    assert_non_null(strstr(weft_error_message(vm), "weft_define_suspending"));
    assert_int_equal(weft_command(vm, ":time ask(1)", NULL), WEFT_COMMAND_DONE);
    a.at_once = false;
    assert_int_equal(weft_command(vm, ":time ask(1)", NULL), WEFT_COMMAND_FAILED);
    assert_string_equal(weft_error_kind(vm), "unsupported");
    assert_false(weft_is_suspended(vm));
    gives(vm, "1 + 1", "2");
    weft_free(vm);
  }
}

/* ---- ends ----------------------------------------------------------------------------------------------------- */

static void the_function_may_fail(void **state) {
  (void)state;
  Asked a = {0};
  WeftVM *vm = vm_with(&a, NULL);
  WeftValue *v = NULL;
  assert_int_equal(weft_eval(vm, "let x = 1\nask(3)", "p", &v), WEFT_SUSPENDED);
  assert_int_equal(weft_resume_failed(vm, "io", "the line was cut", &v), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "io");
  assert_string_equal(weft_error_message(vm), "the line was cut");
  int line, column;
  weft_error_position(vm, &line, &column);
  assert_int_equal(line, 2);
  assert_false(weft_is_suspended(vm));
  assert_int_equal(weft_eval(vm, "fn f() { try { ask(3) } catch e { e.kind + \"!\" } }\nf()", "p", &v), WEFT_SUSPENDED);
  assert_int_equal(weft_resume_failed(vm, NULL, "no", &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "\"host!\"");
  weft_release(vm, v);
  assert_int_equal(weft_eval(vm, "try { ask(3) } catch e { ask(4) }", "p", &v), WEFT_SUSPENDED);
  assert_int_equal(weft_resume_failed(vm, "value", "no", &v), WEFT_SUSPENDED);
  assert_int_equal(a.last, 4);
  assert_int_equal(answer_all(vm, &a, WEFT_SUSPENDED, &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "8");
  weft_release(vm, v);
  assert_int_equal(weft_eval(vm, "ask(\"x\")", "p", &v), WEFT_ERROR);
  assert_int_equal(weft_eval(vm, "ask(1); exit(3)", "p", &v), WEFT_SUSPENDED);
  assert_int_equal(answer_all(vm, &a, WEFT_SUSPENDED, &v), WEFT_ERROR);
  assert_int_equal(weft_exit_code(vm), 3);
  weft_free(vm);
}

static void limits_hold_while_it_waits(void **state) {
  (void)state;
  Asked a = {0};
  WeftVM *vm = vm_with(&a, NULL);
  WeftValue *v = NULL, *one;
  assert_int_equal(weft_int(vm, 1, &one), WEFT_OK);
  assert_int_equal(weft_eval(vm, "try { ask(3) } catch e { 1 }", "p", &v), WEFT_SUSPENDED);
  weft_interrupt(vm);
  assert_int_equal(weft_resume(vm, one, &v), WEFT_ERROR);
  assert_int_equal(weft_error_limit(vm), WEFT_LIMIT_INTERRUPT);
  gives(vm, "1 + 1", "2");
  assert_int_equal(weft_eval(vm, "ask(3)", "p", &v), WEFT_SUSPENDED);
  weft_interrupt(vm);
  weft_interrupt_forget(vm);
  assert_int_equal(weft_resume(vm, one, &v), WEFT_OK);
  weft_release(vm, v);
  static const char *const nothing_more[] = {"ask(3)", "try { ask(3) } catch e { 1 }"};
  for (int i = 0; i < 4; i++) { /* though nothing is left to do but to return */
    weft_set_limits(vm, 0, 0, 0);
    assert_int_equal(weft_eval(vm, nothing_more[i % 2], "p", &v), WEFT_SUSPENDED);
    weft_set_limits(vm, 0, 0, 1e-9);
    assert_int_equal(i < 2 ? weft_resume(vm, one, &v) : weft_resume_failed(vm, "io", "no", &v), WEFT_ERROR);
    assert_int_equal(weft_error_limit(vm), WEFT_LIMIT_DEADLINE);
  }
  weft_set_limits(vm, 0, 0, 0.02);
  assert_int_equal(weft_eval(vm, "ask(3); let s = 0; for i in 0..100000 { s += i }; s", "p", &v), WEFT_SUSPENDED);
  usleep(40000);
  assert_int_equal(weft_resume(vm, one, &v), WEFT_ERROR);
  assert_int_equal(weft_error_limit(vm), WEFT_LIMIT_DEADLINE);
  weft_set_limits(vm, 0, 1000, 0);
  assert_int_equal(weft_eval(vm, "ask(3); while true { ask(1) }", "p", &v), WEFT_SUSPENDED);
  WeftStatus status = WEFT_SUSPENDED;
  int times = 0;
  for (; status == WEFT_SUSPENDED; times++) status = weft_resume(vm, one, &v);
  assert_int_equal(status, WEFT_ERROR);
  assert_int_equal(weft_error_limit(vm), WEFT_LIMIT_FUEL);
  assert_true(times > 100 && times < 1001);
  weft_set_limits(vm, 0, 0, 0);
  gives(vm, "1 + 1", "2");
  weft_release(vm, one);
  weft_free(vm);
}

static int released;
static void count_release(void *context) { (void)context, released++; }

static void the_host_may_end_it(void **state) {
  (void)state;
  Asked a = {0};
  WeftVM *vm = vm_with(&a, NULL);
  WeftValue *v = NULL;
  const char *deep = "fn f(n) = if n == 0 { ask(1) } else { 1 + f(n - 1) }\nf(100)";
  assert_int_equal(weft_eval(vm, deep, "p", &v), WEFT_SUSPENDED);
  assert_int_equal(weft_cancel(vm), WEFT_OK);
  assert_int_equal(weft_cancel(vm), WEFT_MISUSE);
  assert_int_equal(weft_frame_count(vm), 0);
  gives(vm, "1 + 1", "2");
  assert_int_equal(weft_define_suspending(vm, NULL, "other", ask, &a, count_release), WEFT_OK);
  assert_int_equal(weft_eval(vm, "let held = arange(1000)\nother(1) + sum(held)", "p", &v), WEFT_SUSPENDED);
  assert_int_equal(weft_frame_count(vm), 1);
  released = 0;
  weft_free(vm); /* ends it */
  assert_int_equal(released, 1);
}

/* ---- misuse --------------------------------------------------------------------------------------------------- */

static void nothing_else_runs_meanwhile(void **state) {
  (void)state;
  Asked a = {0};
  WeftVM *vm = vm_with(&a, NULL), *other = weft_new(NULL);
  WeftValue *v = NULL, *f, *x, *strange, *module;
  const void *bytes;
  const char *text;
  size_t count;
  assert_int_equal(weft_int(vm, 5, &x), WEFT_OK);
  assert_int_equal(weft_int(other, 5, &strange), WEFT_OK);
  assert_int_equal(weft_resume(vm, x, &v), WEFT_MISUSE);
  assert_int_equal(weft_resume_failed(vm, "io", "x", &v), WEFT_MISUSE);
  assert_int_equal(weft_cancel(vm), WEFT_MISUSE);
  assert_int_equal(weft_resume(NULL, x, &v), WEFT_MISUSE);
  assert_false(weft_is_suspended(NULL));
  assert_int_equal(weft_define_suspending(NULL, NULL, "a", ask, NULL, NULL), WEFT_MISUSE);
  assert_int_equal(weft_define_suspending(vm, x, "a", ask, NULL, NULL), WEFT_MISUSE);
  assert_int_equal(weft_define_suspending(vm, NULL, "1", ask, NULL, NULL), WEFT_MISUSE);
  assert_int_equal(weft_define_suspending(vm, NULL, "a", NULL, NULL, NULL), WEFT_MISUSE);
  assert_int_equal(weft_module_new(vm, "m", &module), WEFT_OK);
  gives(vm, "fn f(x) = x\nlet g = 1\n0", "0");
  assert_int_equal(weft_get_global(vm, "f", &f), WEFT_OK);
  assert_int_equal(weft_eval(vm, "ask(3) + g", "p", &v), WEFT_SUSPENDED);
  assert_int_equal(weft_eval(vm, "1", "p", &v), WEFT_MISUSE);
  assert_string_equal(weft_error_message(vm), "a program of this VM waits: weft_resume or weft_cancel comes first");
  assert_int_equal(weft_eval_line(vm, "1", "p", &v), WEFT_MISUSE);
  assert_int_equal(weft_load_file(vm, "nowhere", &v), WEFT_MISUSE);
  assert_int_equal(weft_load_text(vm, "1", 1, "p", &v), WEFT_MISUSE);
  assert_int_equal(weft_module_run(vm, module, "1", 1, "p", &v), WEFT_MISUSE);
  assert_int_equal(weft_call(vm, f, &x, 1, &v), WEFT_MISUSE);
  assert_int_equal(weft_call_named(vm, f, &x, 1, NULL, 0, &v), WEFT_MISUSE);
  assert_int_equal(weft_compile(vm, NULL, "1", 1, NULL, 0, &bytes, &count), WEFT_MISUSE);
  assert_int_equal(weft_load_compiled(vm, NULL, "1", 1, NULL, &v), WEFT_MISUSE);
  assert_int_equal(weft_define_described(vm, "h(x=1)", NULL, ask, NULL, NULL), WEFT_MISUSE);
  assert_int_equal(weft_command(vm, ":time 1", &text), WEFT_COMMAND_FAILED);
  assert_int_equal(weft_set_device(vm, "cpu"), WEFT_MISUSE);
  assert_int_equal(weft_resume(vm, NULL, &v), WEFT_MISUSE);
  assert_int_equal(weft_resume(vm, strange, &v), WEFT_MISUSE);
  assert_int_equal(weft_resume_failed(vm, "io", NULL, &v), WEFT_MISUSE);
  assert_int_equal(weft_resume_failed(vm, "io", "\xff", &v), WEFT_MISUSE);
  assert_true(weft_is_suspended(vm));
  /* values and variables are the host's to see and set, and it may define functions */
  assert_int_equal(weft_set_global(vm, "g", x), WEFT_OK);
  assert_int_equal(weft_define(vm, "later", call_back, NULL, NULL), WEFT_OK);
  assert_string_equal(weft_show(vm, x), "5");
  (void)weft_collect(vm);
  WeftFrame frame = {.size = sizeof frame};
  assert_int_equal(weft_frame(vm, 0, &frame), WEFT_OK);
  assert_int_equal(frame.line, 1);
  assert_int_equal(weft_resume(vm, x, &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "10");
  weft_release(vm, v);
  assert_int_equal(weft_resume(vm, x, &v), WEFT_MISUSE); /* twice */
  weft_release(vm, f);
  weft_release(vm, x);
  weft_release(other, strange);
  weft_free(other);
  weft_free(vm);
}

/* The file that waits imports, when it goes on, what lies beside it. */
static void files_keep_their_place(void **state) {
  (void)state;
  char folder[] = "/tmp/weft-suspend-XXXXXX", path[64], lib[64], waits[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/main.weft", folder);
  snprintf(lib, sizeof lib, "%s/lib.weft", folder);
  snprintf(waits, sizeof waits, "%s/waits.weft", folder);
  const char *const texts[][2] = {{path, "let n = ask(1)\nimport \"lib.weft\" as l\nn + l.seven"},
                                  {lib, "let seven = 7\n"}, {waits, "import \"main.weft\" as m\n1"}};
  for (int i = 0; i < 3; i++) {
    FILE *f = fopen(texts[i][0], "w");
    assert_non_null(f);
    fputs(texts[i][1], f);
    assert_int_equal(fclose(f), 0);
  }
  Asked a = {0};
  WeftVM *vm = vm_with(&a, NULL);
  WeftValue *v = NULL;
  assert_int_equal(weft_load_file(vm, path, &v), WEFT_SUSPENDED);
  assert_int_equal(answer_all(vm, &a, WEFT_SUSPENDED, &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "9");
  weft_release(vm, v);
  assert_int_equal(weft_load_file(vm, path, &v), WEFT_SUSPENDED);
  assert_int_equal(weft_cancel(vm), WEFT_OK);
  assert_int_equal(weft_eval(vm, "import \"lib.weft\" as l", "p", NULL), WEFT_ERROR); /* that file has gone */
  weft_free(vm);
  vm = vm_with(&a, NULL);
  assert_int_equal(weft_load_file(vm, waits, &v), WEFT_ERROR); /* main.weft names a variable of the other module */
  weft_free(vm);
  for (int i = 0; i < 3; i++) unlink(texts[i][0]);
  rmdir(folder);
}

/* ---- refused memory ------------------------------------------------------------------------------------------- */

typedef struct Memory {
  long asked, refuse_at;
} Memory;
static void *resize(void *context, void *p, size_t old_size, size_t new_size) {
  Memory *m = context;
  if (!new_size) return free(p), NULL;
  if (new_size > old_size && ++m->asked == m->refuse_at) return NULL;
  return realloc(p, new_size);
}

static void refused_memory_is_one_error(void **state) {
  (void)state;
  for (long n = 1;; n++) {
    Memory m = {0};
    Asked a = {0};
    WeftOptions o = WEFT_OPTIONS_INIT;
    o.resize = resize;
    o.resize_context = &m;
    WeftVM *vm = weft_new(&o);
    WeftValue *v = NULL, *x;
    assert_int_equal(weft_define_suspending(vm, NULL, "ask", ask, &a, NULL), WEFT_OK);
    assert_int_equal(weft_int(vm, 2, &x), WEFT_OK);
    m.refuse_at = m.asked + n;
    WeftStatus status = weft_eval(vm, "fn f(n) = (arange(n), ask(n), arange(2 * n))\nlet y = f(3)\nlen(y)", "p", &v);
    if (status == WEFT_SUSPENDED) status = weft_resume(vm, x, &v);
    assert_false(weft_is_suspended(vm));
    if (status == WEFT_ERROR) assert_string_equal(weft_error_kind(vm), "limit");
    else assert_int_equal(status, WEFT_OK);
    const bool done = m.asked < m.refuse_at;
    m.refuse_at = 0;
    weft_release(vm, v);
    weft_release(vm, x);
    gives(vm, "1 + 1", "2");
    weft_free(vm);
    if (done) break;
    assert_true(n < 10000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(programs_go_on_with_the_answer), cmocka_unit_test(other_code_is_compiled),
      cmocka_unit_test(calls_wait_too),                 cmocka_unit_test(elsewhere_it_is_one_error),
      cmocka_unit_test(the_function_may_fail),          cmocka_unit_test(limits_hold_while_it_waits),
      cmocka_unit_test(the_host_may_end_it),            cmocka_unit_test(nothing_else_runs_meanwhile),
      cmocka_unit_test(files_keep_their_place),         cmocka_unit_test(refused_memory_is_one_error),
  };
  return cmocka_run_group_tests_name("host suspend", tests, NULL, NULL);
}
