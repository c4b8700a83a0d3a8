/* test_stack.c — the C stack: programs that recurse through everything that stands on it, on threads with small
 * stacks, on coroutines, on several threads in turn. None may crash: what does not fit is an error of kind limit,
 * and the VM goes on. */
#define _GNU_SOURCE /* pthread_getattr_np */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include "api/weft.h"

#ifdef __SANITIZE_ADDRESS__
enum { TIMES = 4, PAINTED = 0 }; /* frames of instrumented code are larger */
#else
enum { TIMES = 1, PAINTED = 1 };
#endif
enum { KB = 1024 };

/* Each would go on for ever: the error must be of kind limit. */
static const char *const endless[] = {
    "fn f(x) = grad(f)(x); f(1.0)",
    "fn f(x) = value_and_grad(f)(x); f(1.0)",
    "fn f(x) = jvp(f, (x,), (1.0,))[0]; f(1.0)",
    "fn f(x) = vjp(f, x)[0]; f(1.0)",
    "fn f(x) = jacfwd(f)(x); f(1.0)",
    "fn f(x) = hessian(f)(x); f(1.0)",
    "fn f(n) = sum(array(map(x => f(x), (n, n)))); f(0)",
    "fn f(x) = map(y => map(z => f(z), (y, y)), (x, x)); f(1.0)",
    "fn f(x) = cond(x > 0, y => f(y), y => f(y + 1), x); f(1.0)",
    "fn f(x) = jit(f)(x); f(1.0)",
    "fn f(x) = call(f, x); f(1.0)",
    "fn f(x) = checkpoint(f)(x); f(1.0)",
    "fn f(x) = tree_map(f, x); f(1.0)",
    "fn f(x) = tree_map(y => f((y, y)), x); f((1.0, 2.0))",
    "fn f(x) = tree_reduce((a, b) => f(a), (x, x), 0); f(1)",
    "fn f(x) = vmap(f)(stack((x, x))); f(1.0)",
    "fn f(x) = scan((c, y) => (f(c), y), x, arange(3.0))[0]; f(1.0)",
    "fn f(x) = associative_scan((a, b) => f(stack((a, b))), x); f(arange(4.0))",
    "fn f(x) = fori_loop(0, 3, (i, c) => f(c), x); f(1.0)",
    "fn f(x) = while_loop(c => c < 10, c => f(c), x); f(1.0)",
    "fn f(x) = custom_vjp(f, y => (f(y), y), (s, c) => (c,))(x); f(1.0)",
    "fn f(x) = grad(y => with_hook(y, g => f(g)) * 2)(x); f(1.0)",
    "fn f(x) = sort((3, 1, 2), key=k => f(k)); f(1)",
    "fn f(x) = map(y => try { f(y) } catch e { error(e) }, (x,)); f(1)",
    "fn f(n) = 1 + f(n + 1); f(0)",
    "fn f(x) = host_call(f, x); f(1)",
    "fn f(x) = host_eval(\"f(1)\"); f(1)",
};

/* Each ends, some by an error that is not asked for. */
static const char *const ending[] = {
    "fn f(x) { try { map(f, (x,)) } catch e { 1 } }; f(1)",
    "fn f(x) { try { map(f, (x,)) } catch e { sum(sort(rand(1000))) + len(str(rand((20, 20)))) } }; f(1)",
    "fn f(x) { try { map(f, (x,)) } catch e { linalg.solve(rand((30, 30)), rand(30)) } }; f(1)",
    "fn f(x) { try { map(f, (x,)) } catch e { rand((300, 300)) @ rand((300, 300)) } }; f(1)",
    "fn f(x) { try { map(f, (x,)) } catch e { jit(x => sum(sin(x) * 2))(rand(10)) } }; f(1)",
    "fn f(x) { try { map(f, (x,)) } catch e { f\"{1e300:.300f}\" } }; f(1)",
    "fn f(n) = if n == 0 { 0 } else { 1 + f(n - 1) }; f(15000)",
    "fn d(n) = if n == 0 { 0 } else { d(n - 1) + 1 }; for i in 0..200 { d(500) }; for i in 0..20 { d(6000) }; 1",
    "let x = (1,); for i in 0..100000 { x = (x, 1) }; let y = (1,); for i in 0..100000 { y = (y, 1) }; "
    "(x == y, len(str(x)))",
    "let x = {a: 1}; for i in 0..100000 { x = {a: x} }; (x == x, len(str(x)))",
    "let x = (1.0,); for i in 0..150 { x = (x, 1.0) }; tree_map(v => v + 1, x)",
    "let x = (1.0,); for i in 0..150 { x = (x, 1.0) }; grad(t => sum(tree_reduce((a, b) => a + b, t, 0.0)))(x)",
    "let f = x => x; for i in 0..3000 { let g = f; f = x => g(x) + 1 }; f(1)",
    "let r = ref(nil); for i in 0..50000 { r = ref((r, i)) }; 1",
    "linalg.svd(rand((50, 50)))[1].shape",
    "linalg.inv(rand((50, 50))).shape",
    "linalg.eigh(eye(60))[0].shape",
    "let a = rand((100, 100)); for i in 0..500 { a = a * 0.5 + sin(a) }; sum(a) > 0",
    "fn loss(w, x) = sum((tanh(x @ w)) ** 2); let w = rand((5, 3)); for i in 0..300 { w -= 0.01 * grad(loss)(w, "
    "rand((10, 5))) }; w.shape",
};

/* Repeated: what opens, what stands inside, what closes. */
static const char *const nested[][3] = {
    {"(", "1", ")"}, {"(", "1", ",)"}, {"1 + ", "1", ""}, {"abs(", "1", ")"}, {"{ ", "1", " }"},
    {"fn f() { ", "1", " }"}, {"x => ", "1", ""},
    {"-", "1", ""}, {"{a: ", "1", "}"}, {"[", "1", "]"}, {"f\"{", "1", "}\""}, {"a[", "1", "]"}, {"if 1 { ", "1", " }"},
    {"not ", "1", ""},
    {"let (a, ", "b", ") = 1"}, {"1 ** ", "1", ""}, {"try { ", "1", " } catch e { }"}, {"while false { ", "1", " }"},
    {"1 |> ", "abs", ""}, {"", "1", " + 1"}, {"", "1", ".abs()"},
};

static char *repeated(const char *const *s, int n) {
  size_t a = strlen(s[0]), b = strlen(s[2]);
  char *text = malloc((a + b) * (size_t)n + strlen(s[1]) + 1), *p = text;
  assert_non_null(text);
  for (int i = 0; i < n; i++, p += a) memcpy(p, s[0], a);
  p = stpcpy(p, s[1]);
  for (int i = 0; i < n; i++, p += b) memcpy(p, s[2], b);
  *p = 0;
  return text;
}

static WeftStatus host_call(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context;
  return count < 1 ? WEFT_MISUSE : weft_call(vm, args[0], args + 1, count - 1, result);
}

static WeftStatus host_eval(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  const char *text;
  size_t length;
  (void)context;
  if (count != 1 || weft_as_text(vm, args[0], &text, &length) != WEFT_OK) return WEFT_ERROR;
  return weft_eval(vm, text, "inside", result);
}

static WeftVM *new_vm(size_t stack, int hot, const char *backend) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.stack = stack;
  o.hot = hot < 0 ? 0 : hot ? hot : 1;
  o.backend = backend;
  o.memory = (uint64_t)1 << 30;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  assert_int_equal(weft_define(vm, "host_call", host_call, NULL, NULL), WEFT_OK);
  assert_int_equal(weft_define(vm, "host_eval", host_eval, NULL, NULL), WEFT_OK);
  return vm;
}

/* ---- running on a thread of some size -------------------------------------------------------------------- */

typedef struct Task {
  size_t stack, option; /* of the thread; what the VM is told */
  int hot;
  const char *backend;
  bool refuses; /* too small for anything: a limit error it is */
  char wrong[400];
  size_t used; /* bytes of the stack at most */
} Task;

static char *lowest; /* of this thread's stack, painted */
static __attribute__((noinline)) void paint(void) {
  char *end = (char *)__builtin_frame_address(0) - 1024;
  if (PAINTED) memset(lowest, 0xAB, (size_t)(end - lowest));
}
static __attribute__((noinline)) size_t painted_over(void) {
  const char *p = lowest, *end = __builtin_frame_address(0);
  while (PAINTED && p < end && (unsigned char)*p == 0xAB) p++;
  return (size_t)(end - p);
}

static void expect(Task *t, bool holds, WeftVM *vm, const char *program, const char *what) {
  if (!holds && !t->wrong[0])
    snprintf(t->wrong, sizeof t->wrong, "%s: %.80s: %.200s", what, program, weft_error_message(vm));
}

static void run_program(Task *t, const char *program, bool limit) {
  WeftVM *vm = new_vm(t->option, t->hot, t->backend);
  WeftValue *v = NULL;
  weft_set_limits(vm, 0, 0, 60);
  if (lowest) paint();
  WeftStatus status = weft_eval(vm, program, "program", &v);
  if (status == WEFT_OK) (void)weft_show(vm, v);
  if (lowest) {
    size_t used = painted_over();
    if (used > t->used) t->used = used;
    if (used > t->option) expect(t, false, vm, program, "more of the stack was used than was given");
  }
  if (t->refuses) limit = true;
  if (limit) {
    expect(t, status == WEFT_ERROR, vm, program, "no error");
    expect(t, strcmp(weft_error_kind(vm), "limit") == 0, vm, program, "another kind of error");
  }
  expect(t, strstr(weft_error_message(vm), "deadline") == NULL, vm, program, "it took too long");
  weft_release(vm, v);
  if (!t->refuses) expect(t, weft_eval(vm, "1 + 1", "after", NULL) == WEFT_OK, vm, program, "the VM does not go on");
  weft_free(vm);
}

static void run_all(Task *t) {
  for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) run_program(t, endless[i], true);
  for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) run_program(t, ending[i], false);
  for (size_t i = 0; i < sizeof nested / sizeof *nested; i++)
    for (int n = 90; n <= 10000; n = n == 90 ? 250 : n == 250 ? 990 : n * 10) {
      char *text = repeated(nested[i], n);
      run_program(t, text, false);
      free(text);
    }
}

static void *work(void *p) {
  run_all(p);
  return NULL;
}

static void on_thread(Task t) {
  pthread_attr_t attr;
  pthread_t thread;
  assert_int_equal(pthread_attr_init(&attr), 0);
  assert_int_equal(pthread_attr_setstacksize(&attr, t.stack), 0);
  assert_int_equal(pthread_create(&thread, &attr, work, &t), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  pthread_attr_destroy(&attr);
  if (t.wrong[0]) fail_msg("%zu KB: %s", t.stack / KB, t.wrong);
}

static void small_threads(void **state) {
  (void)state;
  on_thread((Task){.stack = 64 * KB * TIMES, .hot = -1, .refuses = true});
  on_thread((Task){.stack = 128 * KB * TIMES, .hot = -1});
#ifndef __SANITIZE_ADDRESS__ /* larger ones take longer, and end in the same way */
  on_thread((Task){.stack = 256 * KB * TIMES, .hot = -1});
  on_thread((Task){.stack = 512 * KB * TIMES, .hot = -1});
#endif
  on_thread((Task){.stack = 8192 * KB, .hot = -1});
}

static void small_threads_compiled(void **state) {
  (void)state;
  on_thread((Task){.stack = 256 * KB * TIMES, .hot = 0});
#ifndef __SANITIZE_ADDRESS__
  on_thread((Task){.stack = 512 * KB * TIMES, .hot = 0});
#endif
  on_thread((Task){.stack = 512 * KB * TIMES, .hot = 0, .backend = "loops"});
  on_thread((Task){.stack = 512 * KB * TIMES, .hot = 0, .backend = "interp"});
}

/* ---- what the option says holds ----------------------------------------------------------------------------- */

static void *work_painted(void *p) {
  Task *t = p;
  pthread_attr_t attr;
  void *low;
  size_t size;
  if (pthread_getattr_np(pthread_self(), &attr) || pthread_attr_getstack(&attr, &low, &size)) return NULL;
  pthread_attr_destroy(&attr);
  lowest = (char *)low + 4 * KB;
  run_all(t);
  lowest = NULL;
  return NULL;
}

static void option(void **state) {
  (void)state;
  for (size_t k = 128; k <= 512; k *= 2) {
    Task t = {.option = k * KB * TIMES, .hot = k == 256 ? 0 : -1};
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 16384 * KB), 0);
    assert_int_equal(pthread_create(&thread, &attr, work_painted, &t), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
    if (t.wrong[0]) fail_msg("%zu KB given: %s", k, t.wrong);
    if (PAINTED) assert_in_range(t.used, 32 * KB, k * KB);
  }
}

/* ---- one VM on several stacks --------------------------------------------------------------------------------- */

static WeftVM *shared;

static void *recurse(void *p) {
  (void)p;
  for (int i = 0; i < 3; i++) {
    if (weft_eval(shared, "fn f(x) = map(y => f(y), (x, x)); f(1)", "thread", NULL) != WEFT_ERROR) return "no error";
    if (strcmp(weft_error_kind(shared), "limit")) return "another kind of error";
    if (weft_eval(shared, "sum(arange(10)) + 1", "thread", NULL) != WEFT_OK) return "it does not go on";
  }
  return NULL;
}

static void threads_by_turns(void **state) {
  (void)state;
  static const size_t sizes[] = {8192, 128, 1024, 256, 192, 4096, 128};
  shared = new_vm(0, -1, NULL);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    pthread_attr_t attr;
    pthread_t thread;
    void *wrong;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, sizes[i] * KB * TIMES), 0);
    assert_int_equal(pthread_create(&thread, &attr, recurse, NULL), 0);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    pthread_attr_destroy(&attr);
    if (wrong) fail_msg("%s", (char *)wrong);
    assert_null(recurse(NULL)); /* on this thread */
  }
  weft_free(shared);
}

/* A coroutine: its stack is memory of the host's, of which the system knows nothing. */
static ucontext_t outside, inside;
static const char *coroutine_wrong;
static bool coroutine_ended;

static void coroutine(void) {
  coroutine_wrong = recurse(NULL);
  coroutine_ended = true;
  swapcontext(&inside, &outside);
}

/* Suspends the coroutine in the middle of a program. */
static WeftStatus suspend(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context, (void)args, (void)count;
  swapcontext(&inside, &outside);
  return weft_nil(vm, result);
}

static void coroutine_suspended(void) {
  if (weft_eval(shared, "suspend(); fn g(x) = map(y => g(y), (x, x)); try { g(1) } catch e { e.kind }", "coroutine",
                NULL) != WEFT_OK)
    coroutine_wrong = "an error behind";
  coroutine_wrong = coroutine_wrong ? coroutine_wrong : recurse(NULL);
  coroutine_ended = true;
  swapcontext(&inside, &outside);
}

static void enter_coroutine(char *stack, size_t size, void (*fn)(void)) {
  coroutine_wrong = NULL;
  coroutine_ended = false;
  assert_int_equal(getcontext(&inside), 0);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = size;
  inside.uc_link = NULL;
  makecontext(&inside, fn, 0);
  assert_int_equal(swapcontext(&outside, &inside), 0);
}

static void coroutines(void **state) {
  (void)state;
  size_t size = 192 * KB * TIMES;
  char *stack = malloc(size);
  assert_non_null(stack);
  for (int i = 0; i < 4; i++) {
    /* without the option it takes 128 KiB for granted */
    shared = new_vm(i < 2 ? size - 16 * KB : 0, i % 2 ? 0 : -1, NULL);
    assert_int_equal(weft_define(shared, "suspend", suspend, NULL, NULL), WEFT_OK);
    enter_coroutine(stack, size, coroutine);
    assert_true(coroutine_ended);
    assert_null(coroutine_wrong);
    if (i < 2 || !PAINTED) assert_null(recurse(NULL));
    WeftVM *mine = shared;
    enter_coroutine(stack, size, coroutine_suspended);
    assert_false(coroutine_ended);
    shared = new_vm(0, -1, NULL); /* another VM, on this stack, while that one waits */
    assert_null(recurse(NULL));
    weft_free(shared);
    shared = mine;
    assert_int_equal(swapcontext(&outside, &inside), 0);
    assert_true(coroutine_ended);
    assert_null(coroutine_wrong);
    weft_free(shared);
  }
  free(stack);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_threads),
      cmocka_unit_test(small_threads_compiled),
      cmocka_unit_test(threads_by_turns),
#ifndef __SANITIZE_ADDRESS__
      cmocka_unit_test(option),
      cmocka_unit_test(coroutines),
#endif
  };
#ifdef __SANITIZE_ADDRESS__
  (void)option, (void)coroutines;
  printf("skip stack/given-by-the-host: frames of instrumented code are larger than the stack that these tests give\n");
#endif
  return cmocka_run_group_tests(tests, NULL, NULL);
}
