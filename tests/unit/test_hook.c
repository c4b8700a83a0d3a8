/* test_hook.c — the hook of the host: which events come, frames and their variables, compiled code that is left, and
 * hooks that fail, run programs, free the VM, change or remove themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/weft.h"

enum { ROOM = 8192 };
typedef struct Notes {
  char text[ROOM];
  size_t len;
  const char *want[3]; /* variables of the innermost frame that are noted */
  int calls, fail_at, frees, runs;
} Notes;

static void put(Notes *n, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  int k = vsnprintf(n->text + n->len, ROOM - n->len, format, ap);
  va_end(ap);
  if (k > 0) n->len = n->len + (size_t)k < ROOM ? n->len + (size_t)k : ROOM - 1;
}

static WeftVM *new_vm(int hot) {
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.hot = hot;
  WeftVM *vm = weft_new(&options);
  assert_non_null(vm);
  return vm;
}

static void runs(WeftVM *vm, const char *program) {
  if (weft_eval(vm, program, "p.weft", NULL) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
}

static void gives(WeftVM *vm, const char *program, const char *want) {
  WeftValue *v = NULL;
  if (weft_eval(vm, program, "p.weft", &v) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
  assert_string_equal(weft_show(vm, v), want);
  weft_release(vm, v);
}

static double stat_of(WeftVM *vm, const char *name) {
  double v;
  const char *at;
  for (unsigned i = 0; (at = weft_stat_at(vm, i, &v)); i++)
    if (strcmp(at, name) == 0) return v;
  fail_msg("no counter %s", name);
  return 0;
}

/* "L3 a=1 b=-": the event, the line, variables; C and R with the function, E with the kind. */
static WeftStatus note(WeftVM *vm, void *context, WeftHookEvent event) {
  Notes *n = context;
  WeftFrame f = {.size = sizeof f};
  assert_int_equal(weft_frame(vm, 0, &f), WEFT_OK);
  n->calls++;
  if (event == WEFT_HOOK_LINE) put(n, "L%d", f.line);
  if (event == WEFT_HOOK_CALL) put(n, "C(%s)", f.function);
  if (event == WEFT_HOOK_RETURN) {
    WeftValue *v = NULL;
    assert_int_equal(weft_frame_result(vm, &v), WEFT_OK);
    put(n, "R(%s)%s", f.body ? "body" : f.function, weft_show(vm, v));
    weft_release(vm, v);
  }
  if (event == WEFT_HOOK_ERROR) put(n, "E%d:%s", f.line, weft_error_kind(vm));
  for (int i = 0; i < 3 && n->want[i]; i++) {
    WeftValue *v = NULL;
    WeftStatus status = weft_frame_get(vm, 0, n->want[i], &v);
    put(n, " %s=%s", n->want[i], status == WEFT_OK ? weft_show(vm, v) : "-");
    weft_release(vm, v);
  }
  put(n, "|");
  return WEFT_OK;
}

static void lines(void **state) {
  (void)state;
  static const struct { const char *program, *want; } rows[] = {
    {"let x = 1\nlet y = x + 1\n\ny * 2", "L1|L2|L4|"},
    {"let x = nil\nx", "L1|L2|"},
    {"let s = 0\nfor i in 0..2 {\n  s += i\n}\ns", "L1|L2|L3|L2|L3|L2|L5|"},
    {"let i = 0\nwhile i < 2 {\n  let j = i\n  i += 1\n}\ni", "L1|L2|L3|L4|L2|L3|L4|L2|L6|"},
    {"for i in 0..2 { i }", "L1|L1|L1|"},
    {"fn f(x) {\n  let y = x\n  y + 1\n}\nf(1) + f(2)\n3", "L1|L5|L2|L3|L2|L3|L6|"},
    {"fn f(x) = if x { 1 } else {\n  2\n}\nf(true)\nf(false)", "L1|L4|L1|L5|L1|L2|"},
    {"fn f(n) = if n == 0 { 0 } else {\n  f(n - 1)\n}\nf(1)", "L1|L4|L1|L2|L1|"},
    {"try {\n  error(\"a\")\n} catch e {\n  e.message\n}\n1", "L2|L3|L4|L6|"},
    {"let g = map(v => v + 1,\n  [1, 2])\ng", "L1|L2|L1|L1|L1|L3|"},
    {"fn f() {\n  return 4\n}\nf()", "L1|L4|L2|"},
    {"fn f() {\n  let t = [1.0, 2.0]\n  fn g() = t\n}\nf()", "L1|L5|L2|L3|"},
    {"nn.rms_norm([1.0, 2.0])\n1", "L1|L2|"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    Notes n = {.len = 0};
    WeftVM *vm = new_vm(0);
    assert_int_equal(weft_set_hook(vm, note, &n, WEFT_HOOK_LINE), WEFT_OK);
    runs(vm, rows[i].program);
    if (strcmp(n.text, rows[i].want) != 0)
      fail_msg("%s\n  gives %s\n  not   %s", rows[i].program, n.text, rows[i].want);
    weft_free(vm);
  }
}

static void calls_and_returns(void **state) {
  (void)state;
  Notes n = {.want = {"x"}};
  WeftVM *vm = new_vm(0);
  assert_int_equal(weft_set_hook(vm, note, &n, WEFT_HOOK_CALL | WEFT_HOOK_RETURN), WEFT_OK);
  runs(vm, "fn f(x) = x * 2\nlet g = x => f(x) + 1\nfn t(x) = if x > 1 { 0 } else { t(x + 1) }\n"
           "g(3) + f(1)\nmap(g, [5])\nt(1)\nsum([1, 2])");
  assert_string_equal(n.text, "C() x=3|C(f) x=3|R(f)6 x=3|R()7 x=3|C(f) x=1|R(f)2 x=1|"
                              "C() x=5|C(f) x=5|R(f)10 x=5|R()11 x=5|C(t) x=1|C(t) x=2|R(t)0 x=2|R(body)3 x=-|");
  weft_free(vm);
}

static void variables(void **state) {
  (void)state;
  Notes n = {.want = {"a", "b", "c"}};
  WeftVM *vm = new_vm(0);
  assert_int_equal(weft_set_hook(vm, note, &n, WEFT_HOOK_LINE), WEFT_OK);
  runs(vm, "let c = 7\nfn f(a) {\n  let b = a + 1\n  let a = b * 2\n  if a > 0 {\n"
           "    let b = \"in\"\n    let k = b\n  }\n"
           "  let k = b\n  k\n}\nf(1)");
  assert_string_equal(n.text, "L1 a=- b=- c=-|L2 a=- b=- c=7|L12 a=- b=- c=7|L3 a=1 b=- c=7|L4 a=1 b=2 c=7|"
                              "L5 a=4 b=2 c=7|L6 a=4 b=2 c=7|L7 a=4 b=\"in\" c=7|L9 a=4 b=2 c=7|L10 a=4 b=2 c=7|");
  /* of loops, of a closure, arrays that are used up: they stay to be read */
  Notes m = {.want = {"a", "b", "i"}};
  assert_int_equal(weft_set_hook(vm, note, &m, WEFT_HOOK_LINE), WEFT_OK);
  runs(vm, "fn outer(b) {\n  let h = a => {\n    let d = a + b\n    d\n  }\n  h(1)\n}\nouter([1, 2])\n"
           "fn w(a) {\n  let b = a * 2\n  for i in 0..1 {\n    b = b + i\n  }\n  b\n}\nw([1, 1])");
  assert_string_equal(m.text, "L1 a=- b=- i=-|L8 a=- b=- i=-|L2 a=- b=[1, 2] i=-|L6 a=- b=[1, 2] i=-|"
                              "L3 a=1 b=[1, 2] i=-|L4 a=1 b=[1, 2] i=-|L9 a=- b=- i=-|L16 a=- b=- i=-|"
                              "L10 a=[1, 1] b=- i=-|L11 a=[1, 1] b=[2, 2] i=-|L12 a=[1, 1] b=[2, 2] i=0|"
                              "L11 a=[1, 1] b=[2, 2] i=-|L14 a=[1, 1] b=[2, 2] i=-|");
  weft_free(vm);
}

/* All variables of all frames. */
static WeftStatus stack(WeftVM *vm, void *context, WeftHookEvent event) {
  Notes *n = context;
  (void)event;
  n->len = 0;
  const size_t frames = weft_frame_count(vm);
  for (size_t i = 0; i < frames; i++) {
    WeftFrame f = {.size = sizeof f};
    size_t count = 0;
    assert_int_equal(weft_frame(vm, i, &f), WEFT_OK);
    assert_int_equal(weft_frame_locals(vm, i, &count), WEFT_OK);
    put(n, "%s%s@%s:%d:%d", f.function, f.body ? "body" : "", f.file, f.line, f.column);
    for (size_t k = 0; k < count; k++) {
      const char *name = NULL;
      WeftValue *v = NULL;
      assert_int_equal(weft_frame_local(vm, i, k, &name, &v), WEFT_OK);
      put(n, " %s=%s", name, v ? weft_show(vm, v) : "?");
      weft_release(vm, v);
    }
    const char *name;
    WeftValue *v;
    assert_int_equal(weft_frame_local(vm, i, count, &name, &v), WEFT_MISUSE);
    put(n, "|");
  }
  WeftFrame f = {.size = sizeof f};
  size_t count;
  WeftValue *v = NULL;
  assert_int_equal(weft_frame(vm, frames, &f), WEFT_MISUSE);
  assert_int_equal(weft_frame_locals(vm, frames, &count), WEFT_MISUSE);
  assert_int_equal(weft_frame_get(vm, frames, "x", &v), WEFT_MISUSE);
  assert_int_equal(weft_frame_get(vm, 0, "sum", &v), WEFT_ERROR); /* a built-in is no variable */
  assert_int_equal(weft_frame_get(vm, 0, "never heard of", &v), WEFT_ERROR);
  assert_int_equal(weft_frame_get(vm, 0, NULL, &v), WEFT_MISUSE);
  assert_int_equal(weft_frame_locals(vm, 0, NULL), WEFT_MISUSE);
  f.size = 0;
  assert_int_equal(weft_frame(vm, 0, &f), WEFT_MISUSE);
  assert_int_equal(weft_frame(vm, 0, NULL), WEFT_MISUSE);
  assert_int_equal(weft_frame_result(vm, &v), WEFT_MISUSE); /* nothing is returned */
  return WEFT_OK;
}

static WeftStatus host_stack(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)args;
  (void)count;
  *result = NULL;
  return stack(vm, context, WEFT_HOOK_LINE);
}

static void stacks(void **state) {
  (void)state;
  static const char program[] = "let top = 1\nlet f = (x, y=2) => {\n  let z = x + y\n  look()\n  z\n}\n"
                                "fn g(x) = map(v => f(v), [x])[0]\n{\n  let inner = 5\n  g(10) + inner\n}\n"
                                "let late = 1\n";
  /* without a hook what nothing reads any more is gone: the x of g; a tail call leaves no frame */
  static const char *const want[] = {
    "@p.weft:4:3 x=10 y=2 z=12|g@p.weft:7:11 x=?|"
    "body@p.weft:10:3 inner=5 look=<fn look> top=1 f=<fn> g=<fn g> late=?|",
    "@p.weft:4:3 x=10 y=2 z=12|g@p.weft:7:11 x=10|"
    "body@p.weft:10:3 inner=5 look=<fn look> top=1 f=<fn> g=<fn g> late=?|"};
  for (int with_hook = 0; with_hook < 2; with_hook++) {
    Notes n = {.len = 0}, ignored = {.len = 0};
    WeftVM *vm = new_vm(0);
    assert_int_equal(weft_frame_count(vm), 0);
    assert_int_equal(weft_define(vm, "look", host_stack, &n, NULL), WEFT_OK);
    if (with_hook) assert_int_equal(weft_set_hook(vm, note, &ignored, WEFT_HOOK_LINE), WEFT_OK);
    runs(vm, program);
    if (strcmp(n.text, want[with_hook]) != 0) fail_msg("gives %s\n  not   %s", n.text, want[with_hook]);
    assert_int_equal(weft_frame_count(vm), 0);
    weft_free(vm);
  }
}

static void errors(void **state) {
  (void)state;
  Notes n = {.want = {"x"}};
  WeftVM *vm = new_vm(0);
  assert_int_equal(weft_set_hook(vm, note, &n, WEFT_HOOK_ERROR), WEFT_OK);
  runs(vm, "fn f(x) {\n  let y = x\n  y + [1, 2]\n}\ntry { f([1, 2, 3]) } catch e { 1 }\n"
           "try {\n  map(v => f(v), ([1, 2, 3],))\n} catch e { 2 }\n"
           "try { try { error(\"a\") } catch e {\n  error(e)\n} } catch e { 3 }");
  assert_string_equal(n.text, "E3:shape x=[1, 2, 3]|E3:shape x=[1, 2, 3]|E9:user x=-|E10:user x=-|");
  n.len = 0;
  assert_int_equal(weft_eval(vm, "let q = 1\nq.nothing", "p.weft", NULL), WEFT_ERROR);
  assert_int_equal(n.calls, 5);
  assert_non_null(strstr(weft_error_text(vm), "p.weft:2:"));
  weft_set_limits(vm, 0, 1000, 0);
  assert_int_equal(weft_eval(vm, "while true {\n  1\n}", "p.weft", NULL), WEFT_ERROR);
  assert_int_equal(weft_error_limit(vm), WEFT_LIMIT_FUEL);
  assert_int_equal(n.calls, 6);
  weft_set_limits(vm, 0, 0, 0);
  assert_int_equal(weft_eval(vm, "exit(3)", "p.weft", NULL), WEFT_ERROR);
  assert_int_equal(weft_exit_code(vm), 3);
  weft_free(vm);
}

/* Fails at its n-th call, with what it says or without. */
static WeftStatus fails(WeftVM *vm, void *context, WeftHookEvent event) {
  Notes *n = context;
  (void)event;
  n->calls++;
  if (n->calls != n->fail_at) return WEFT_OK;
  return n->frees ? WEFT_ERROR : weft_fail(vm, "value", "stopped by the debugger");
}

static void hooks_that_fail(void **state) {
  (void)state;
  static const char program[] = "fn f(x) {\n  let a = [x, x]\n  a[0]\n}\nlet r = f(1)\n"
                                "try {\n  f([1, 2]) + [1, 2, 3]\n} catch e {\n  e.message\n}\nf(2)";
  for (int silent = 0; silent < 2; silent++) {
    int last = 0, wrong = 0, caught = 0;
    for (int at = 1; at <= 40; at++) {
      Notes n = {.fail_at = at, .frees = silent};
      WeftVM *vm = new_vm(0);
      assert_int_equal(weft_set_hook(vm, fails, &n, 15), WEFT_OK);
      WeftStatus status = weft_eval(vm, program, "p.weft", NULL);
      if (status == WEFT_ERROR) {
        assert_string_equal(weft_error_kind(vm), silent ? "host" : "value");
        assert_string_equal(weft_error_message(vm), silent ? "the hook failed" : "stopped by the debugger");
        assert_int_equal(n.calls, at); /* it is not told of its own error */
        wrong++;
      } else if (n.calls >= at) {
        caught++; /* by the program */
      }
      if (n.calls < at) last = at;
      assert_int_equal(weft_set_hook(vm, NULL, NULL, 0), WEFT_OK);
      gives(vm, "1 + 1", "2"); /* the VM goes on */
      weft_free(vm);
      if (last) break;
    }
    assert_true(last > 15 && wrong > 10 && caught > 2);
  }
}

/* Evaluates, calls, sets variables, frees the VM, changes the hook: whatever a host function may. */
static WeftStatus busy(WeftVM *vm, void *context, WeftHookEvent event) {
  Notes *n = context;
  WeftValue *v = NULL, *f = NULL;
  n->calls++;
  weft_free(vm); /* does nothing: a program runs */
  assert_int_equal(weft_eval(vm, "let seen = 0\nfn count(k) {\n  k + 1\n}\ncount(count(1))", "inner", &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "3");
  weft_release(vm, v);
  assert_int_equal(weft_eval(vm, "nothing + 1", "inner", NULL), WEFT_ERROR); /* of the hook alone */
  if (weft_get_global(vm, "count", &f) == WEFT_OK) {
    WeftValue *one = NULL;
    assert_int_equal(weft_int(vm, n->calls, &one), WEFT_OK);
    assert_int_equal(weft_set_global(vm, "seen", one), WEFT_OK);
    assert_int_equal(weft_call(vm, f, &one, 1, &v), WEFT_OK);
    weft_release(vm, v);
    weft_release(vm, one);
    weft_release(vm, f);
  }
  (void)event;
  return WEFT_OK;
}

static void hooks_that_run_programs(void **state) {
  (void)state;
  Notes n = {.len = 0};
  WeftVM *vm = new_vm(0);
  runs(vm, "let seen = 0");
  assert_int_equal(weft_set_hook(vm, busy, &n, 15), WEFT_OK);
  gives(vm, "fn f(x) {\n  let y = x * 2\n  y\n}\nlet t = try {\n  f(1) + error(\"mine\")\n} catch e {\n  e.message\n}\n"
            "(f(4), t, seen > 5)", "(8, \"mine\", true)");
  assert_true(n.calls > 10);
  /* an error that stays: the program's, not that of the hook */
  assert_int_equal(weft_eval(vm, "fn f(x) {\n  x.nothing\n}\nf(1)", "p.weft", NULL), WEFT_ERROR);
  assert_non_null(strstr(weft_error_text(vm), "p.weft:2:"));
  assert_non_null(strstr(weft_error_text(vm), "p.weft:4:"));
  weft_free(vm);
}

static WeftStatus once(WeftVM *vm, void *context, WeftHookEvent event) {
  Notes *n = context;
  (void)event;
  if (++n->calls == 3) assert_int_equal(weft_set_hook(vm, NULL, NULL, 0), WEFT_OK);
  return WEFT_OK;
}

static WeftStatus other(WeftVM *vm, void *context, WeftHookEvent event) {
  Notes *n = context;
  (void)event;
  if (++n->calls == 2) assert_int_equal(weft_set_hook(vm, note, n, WEFT_HOOK_LINE), WEFT_OK);
  return WEFT_OK;
}

static void hooks_that_change(void **state) {
  (void)state;
  Notes n = {.len = 0}, m = {.len = 0};
  WeftVM *vm = new_vm(0);
  static const char program[] = "let s = 0\nfor i in 0..20000 {\n  s += i\n}\ns";
  assert_int_equal(weft_set_hook(vm, once, &n, WEFT_HOOK_LINE), WEFT_OK);
  gives(vm, program, "199990000");
  assert_int_equal(n.calls, 3);
  assert_true(stat_of(vm, "hits") > 0); /* what follows is compiled again, in the same loop */
  assert_int_equal(weft_set_hook(vm, other, &m, WEFT_HOOK_LINE), WEFT_OK);
  gives(vm, "let a = 1\nlet b = 2\nlet c = 3\na + b + c", "6");
  assert_string_equal(m.text, "L3|L4|");
  assert_int_equal(weft_set_hook(vm, note, &m, 16), WEFT_MISUSE);
  assert_int_equal(weft_set_hook(NULL, note, &m, 1), WEFT_MISUSE);
  assert_int_equal(weft_set_hook(vm, note, &m, 0), WEFT_OK); /* none */
  m.len = 0;
  runs(vm, "1\n2");
  assert_int_equal(m.len, 0);
  weft_free(vm);
  /* one that is there when the VM goes */
  vm = new_vm(0);
  assert_int_equal(weft_set_hook(vm, note, &m, 15), WEFT_OK);
  weft_free(vm);
}

static WeftStatus arm(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  int64_t n = 0;
  *result = NULL;
  if (count != 1 || weft_as_int(vm, args[0], &n) != WEFT_OK) return WEFT_ERROR;
  if (n == 2900) return weft_set_hook(vm, note, context, WEFT_HOOK_LINE);
  return n == 2902 ? weft_set_hook(vm, NULL, NULL, 0) : WEFT_OK;
}

/* A host function that compiled code calls sets the hook: the loop goes on interpreted, and is compiled again behind
 * it. */
static void compiled_code_is_left(void **state) {
  (void)state;
  static const char *const programs[] = {
    "fn f(n) {\n  let s = 0\n  for i in 0..n {\n    arm(i)\n    s += i\n  }\n  s\n}\nf(3000)",
    "fn f(n) {\n  let s = 0\n  for i in 0..n {\n    arm(i)\n    s += i\n  }\n  s\n}\njit(f)(3000)",
    "fn g(i) {\n  arm(i)\n  i\n}\nfn f(n) {\n  let s = 0\n  for i in 0..n {\n    s += g(i)\n  }\n  s\n}\nf(3000)",
    "fn f(n) {\n  let s = ref(0)\n  map(i => {\n    arm(i)\n    s.value += i\n  }, 0..n)\n  s.value\n}\nf(3000)"};
  static const char *const want[] = {"L5|L3|L4|L5|L3|L4|", "L5|L3|L4|L5|L3|L4|", "L3|L7|L8|L2|L3|L7|L8|L2|",
                                     "L5|L4|L5|L4|"};
  for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
    Notes n = {.len = 0};
    WeftVM *vm = new_vm(i == 1 ? 1 : 0);
    assert_int_equal(weft_define(vm, "arm", arm, &n, NULL), WEFT_OK);
    gives(vm, programs[i], "4498500");
    if (strcmp(n.text, want[i]) != 0) fail_msg("%s\n  gives %s", programs[i], n.text);
    weft_free(vm);
  }
}

static void nothing_is_compiled(void **state) {
  (void)state;
  Notes n = {.len = 0};
  WeftVM *vm = new_vm(1);
  runs(vm, "fn f(x) {\n  let s = 0.0\n  for i in 0..100 { s += i * x }\n  s\n}\nf(1.0)\nf(2.0)");
  double entries = stat_of(vm, "hits"), compiles = stat_of(vm, "compiles");
  assert_true(compiles > 0 && entries > 0);
  assert_int_equal(weft_set_hook(vm, note, &n, WEFT_HOOK_CALL), WEFT_OK);
  gives(vm, "f(3.0)", "14850.0");
  gives(vm, "jit(x => f(x) + 1)(3.0)", "14851.0");
  gives(vm, "jit(x => x + 1, whole=true)(3.0)", "4.0");
  assert_true(stat_of(vm, "hits") == entries && stat_of(vm, "compiles") == compiles);
  gives(vm, "grad(x => f(x))(3.0)", "4950.0");
  gives(vm, "vmap(x => x * 2)([1.0, 2.0])", "[2.0, 4.0]");
  assert_int_equal(weft_set_hook(vm, NULL, NULL, 0), WEFT_OK);
  gives(vm, "f(3.0)", "14850.0");
  assert_true(stat_of(vm, "hits") > entries);
  weft_free(vm);
}

static long refuse_at, allocations, held; /* the allocation that is refused (0: none), how many came, bytes */
static void *counted(void *context, void *p, size_t old_size, size_t new_size) {
  (void)context;
  if (new_size > old_size && ++allocations == refuse_at) return NULL;
  held += (long)new_size - (long)old_size;
  if (new_size) return realloc(p, new_size);
  free(p);
  return NULL;
}

/* Looks at all there is, whatever of it is refused. */
static WeftStatus looks(WeftVM *vm, void *context, WeftHookEvent event) {
  (void)context, (void)event;
  for (size_t i = 0, frames = weft_frame_count(vm); i < frames; i++) {
    WeftFrame f = {.size = sizeof f};
    size_t count = 0;
    if (weft_frame(vm, i, &f) != WEFT_OK || weft_frame_locals(vm, i, &count) != WEFT_OK) continue;
    for (size_t k = 0; k < count; k++) {
      const char *name;
      WeftValue *v = NULL;
      if (weft_frame_local(vm, i, k, &name, &v) == WEFT_OK) (void)weft_show(vm, v);
      weft_release(vm, v);
    }
  }
  return WEFT_OK;
}

static void refused_memory(void **state) {
  (void)state;
  long last = 0, failed = 0, done = 0;
  for (long n = 0; n <= last; n++) {
    WeftOptions o = WEFT_OPTIONS_INIT;
    o.resize = counted;
    refuse_at = held = 0;
    WeftVM *vm = weft_new(&o);
    assert_non_null(vm);
    assert_int_equal(weft_set_hook(vm, looks, NULL, 15), WEFT_OK);
    allocations = 0;
    refuse_at = n;
    WeftValue *v = NULL;
    WeftStatus status = weft_eval(vm, "fn f(x) {\n  let y = (x, [x, 2 * x])\n  y[1]\n}\nlet g = v => sum(f(v))\n"
                                      "let t = \"a\" + \"b\"\nlet e = try {\n  error(t)\n} catch e {\n  e.message\n}\n"
                                      "map(g, [1.0, 2.0])", "test", &v);
    if (n == 0) last = allocations;
    refuse_at = 0;
    if (status == WEFT_OK) {
      assert_string_equal(weft_show(vm, v), "[3.0, 6.0]");
      weft_release(vm, v);
      done++;
    } else {
      if (strcmp(weft_error_kind(vm), "limit") != 0) fail_msg("allocation %ld: %s", n, weft_error_text(vm));
      failed++;
    }
    gives(vm, "1 + 1", "2");
    weft_free(vm);
    assert_int_equal(held, 0);
  }
  assert_true(last > 20 && failed > 10 && done > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(lines), cmocka_unit_test(calls_and_returns), cmocka_unit_test(variables),
    cmocka_unit_test(stacks), cmocka_unit_test(errors), cmocka_unit_test(hooks_that_fail),
    cmocka_unit_test(hooks_that_run_programs), cmocka_unit_test(hooks_that_change),
    cmocka_unit_test(compiled_code_is_left), cmocka_unit_test(nothing_is_compiled), cmocka_unit_test(refused_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
