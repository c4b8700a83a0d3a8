/* test_gpu_faults.c — a GPU that fails: every call of the driver, one at a time, on the stand-in for it. The program
 * gets its result all the same, or one error with its place; behind it the same VM does what it did not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/weft.h"

static char driver[512];

/* What the files of gpu/ do, a line each: copies, kernels with checks, sums over the grid, rows, scans, masks, products
 * of floats and of halves that are packed, updates, and what goes by way of the processor. */
static const char program[] =
  "fn work(x) {\n"
  "  let y = x * 2.0 + 1.0\n"
  "  let a = sum(y) + f32(argmax(x))\n"
  "  let b = sum(nn.softmax(reshape(x, (2, 1500)), -1))\n"
  "  let c = to(cumsum(x), \"cpu\")[-1]\n"
  "  let d = sum(y[x > 3.0])\n"
  "  let m = reshape(x[:96], (8, 12))\n"
  "  let e = sum(m @ m.T) + sum(m.T[1] @ m.T[:8])\n"
  "  let k = sum(maximum(m @ m.T + 1.0, 0.0))\n"
  "  let h = f16(m[:, :9])\n"
  "  let f = sum(h @ h.T)\n"
  "  y[3:9] = 1.0; y[0] += 2.0\n"
  "  let g = sum(to(arange(20), \"gpu\") // to(arange(20) + 1, \"gpu\"))\n"
  "  return (round(a), round(b), c, d, e, k, f, sum(y), g, sum(sort(x)[:9]))\n"
  "}\n"
  "work(to(f32(arange(3000) % 7), \"gpu\"))";

static WeftVM *vm_of(int hot) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.allow_gpu = true;
  o.cuda_driver = driver;
  o.hot = hot;
  o.ignore_clock = true;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  return vm;
}

/* NULL: it is an error. To be freed. */
static char *run(WeftVM *vm, const char *text) {
  WeftValue *v = NULL;
  if (weft_eval(vm, text, "case", &v) != WEFT_OK) return NULL;
  char *shown = strdup(weft_show(vm, v));
  weft_release(vm, v);
  return shown;
}

static void check_error(WeftVM *vm, const char *call) {
  int line, column;
  const char *message = weft_error_message(vm);
  weft_error_position(vm, &line, &column);
  if (!strstr(message, "the GPU") || line < 1 || column < 1) fail_msg("%s: line %d: %s", call, line, message);
}

/* The N-th call of a function of the driver fails while the program runs. False: there is no such call. */
static bool fail_one(WeftVM *vm, const char *name, int n, const char *right, int *errors) {
  char call[64];
  snprintf(call, sizeof call, "%s@%d", name, n);
  setenv("WEFT_MOCK_FAIL", call, 1);
  char *got = run(vm, program);
  bool failed = !getenv("WEFT_MOCK_FAIL");
  unsetenv("WEFT_MOCK_FAIL");
  if (!got) check_error(vm, call), ++*errors;
  else if (strcmp(got, right) != 0) fail_msg("%s: %s instead of %s", call, got, right);
  free(got);
  return failed;
}

static void check_right(WeftVM *vm, const char *right, const char *after) {
  char *got = run(vm, program);
  if (!got) fail_msg("behind %s: %s", after, weft_error_message(vm));
  assert_string_equal(got, right);
  free(got);
}

static char *right_result(int hot) {
  WeftVM *vm = vm_of(hot);
  char *right = run(vm, program);
  if (!right) fail_msg("%s", weft_error_text(vm));
  weft_free(vm);
  return right;
}

/* Memory, copies, launches: one VM goes through all of their failures. */
static void each_call_fails(void **state) {
  (void)state;
  static const char *const names[] = {"cuMemAlloc", "cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemsetD8", "cuLaunchKernel"};
  for (int hot = 0; hot < 2; hot++) {
    char *right = right_result(hot);
    WeftVM *vm = vm_of(hot);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      int n = 1, errors = 0;
      while (fail_one(vm, names[i], n, right, &errors)) n++;
      print_message("# %s: %d calls, %d errors\n", names[i], n - 1, errors);
      check_right(vm, right, names[i]);
    }
    weft_free(vm);
    free(right);
  }
}

/* Kernels that are not loaded: each in a VM of its own, since the processor does from then on what they were for. */
static void each_load_fails(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int step; /* some of many calls */
  } calls[] = {{"cuModuleLoadDataEx", 2}, {"cuModuleGetFunction", 11}, {"cuMemAlloc", 2}};
  char *right = right_result(0);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    int n = 1, errors = 0;
    for (bool failed = true; failed; n += calls[i].step) {
      WeftVM *vm = vm_of(0);
      failed = fail_one(vm, calls[i].name, n, right, &errors);
      if (failed && n % 4 == 1) check_right(vm, right, calls[i].name);
      weft_free(vm);
    }
    print_message("# %s: %d calls, %d errors\n", calls[i].name, n - 1 - calls[i].step, errors);
  }
  free(right);
}

/* A context that is lost stays so: the GPU's arrays are gone, each use of it is an error, and the processor goes on. */
static void a_lost_context(void **state) {
  (void)state;
  char *right = right_result(1);
  for (int n = 1, errors = 0;; n += 6) {
    WeftVM *vm = vm_of(1);
    bool lost = fail_one(vm, "lost", n, right, &errors);
    if (lost) {
      char *got = run(vm, program);
      assert_null(got);
      check_error(vm, "behind lost");
      assert_non_null(strstr(weft_error_message(vm), "lost"));
      got = run(vm, "sum(arange(10.0) * 2.0)");
      assert_string_equal(got, "90.0");
      free(got);
    }
    weft_free(vm);
    if (!lost) break;
    assert_int_equal(errors, n / 6 + 1);
  }
  free(right);
}

int main(int argc, char **argv) {
  const char *slash = argc ? strrchr(argv[0], '/') : NULL;
  snprintf(driver, sizeof driver, "%.*slibcuda.so", slash ? (int)(slash + 1 - argv[0]) : 0, slash ? argv[0] : "");
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_call_fails), cmocka_unit_test(each_load_fails),
                                     cmocka_unit_test(a_lost_context)};
  return cmocka_run_group_tests_name("gpu_faults", tests, NULL, NULL);
}
