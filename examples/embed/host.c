/* host.c — a C program that runs Weft: values both ways without copying, a host function, errors, limits.
 * Build it with: cc host.c $(pkg-config --cflags --libs weft) -o host */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

static int failed;

static void expect(int ok, const char *what) {
  printf("%s %s\n", ok ? "ok" : "not ok", what);
  failed += !ok;
}

static WeftStatus scale(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  double x;
  if (count != 1) return weft_fail(vm, "type", "scale takes one number");
  if (weft_as_float(vm, args[0], &x) != WEFT_OK) return WEFT_ERROR;
  return weft_float(vm, x * *(double *)context, result);
}

/* A counter: an object of the host. What `tick` gives for one is said, so that loops which call it are compiled at
 * once. */
static bool tick_gives(void *object, const char *function, WeftPromise *out) {
  (void)object;
  if (strcmp(function, "tick") != 0) return false;
  *out = (WeftPromise){.dtype = WEFT_I64};
  return true;
}
static const WeftHandleType counter = {.size = sizeof counter, .name = "counter", .abstract = tick_gives};

static WeftStatus tick(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  void *object;
  (void)context;
  if (count != 1) return weft_fail(vm, "type", "tick takes a counter");
  if (weft_handle_object(vm, args[0], &counter, &object) != WEFT_OK) return WEFT_ERROR;
  return weft_int(vm, ++*(int64_t *)object, result);
}

static void given_back(void *context, void *data) {
  (void)data;
  ++*(int *)context;
}

int main(void) {
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.fuel = 50 * 1000 * 1000;
  WeftVM *vm = weft_new(&options);
  if (!vm) return 1;

  /* a program, a call, an array lent without copying */
  double data[6] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[2] = {2, 3};
  int back = 0;
  WeftValue *x = NULL, *f = NULL, *y = NULL;
  expect(weft_eval(vm, "fn rows(x) = sum(x * x, axis=1)", "embedded", NULL) == WEFT_OK, "embed/eval");
  expect(weft_array_lend(vm, WEFT_F64, 2, shape, data, given_back, &back, &x) == WEFT_OK, "embed/lend");
  expect(weft_get_global(vm, "rows", &f) == WEFT_OK, "embed/global");
  WeftArray look;
  for (int i = 0; i < 100; i++) { /* hot: the later calls run compiled code */
    weft_release(vm, y);
    y = NULL;
    if (weft_call(vm, f, &x, 1, &y) != WEFT_OK) break;
  }
  int right = y && weft_array_view(vm, y, &look) == WEFT_OK && look.rank == 1 && look.size == 2 &&
              ((const double *)look.data)[0] == 14 && ((const double *)look.data)[1] == 77;
  expect(right, "embed/call");
  weft_release(vm, y);
  weft_release(vm, f);
  weft_release(vm, x);
  expect(back == 1, "embed/given-back");

  /* a function of the host */
  double factor = 2.5;
  WeftValue *v = NULL;
  double got = 0;
  expect(weft_define(vm, "scale", scale, &factor, NULL) == WEFT_OK, "embed/define");
  expect(weft_eval(vm, "scale(4.0) + 1", "embedded",
                   &v) == WEFT_OK && weft_as_float(vm, v, &got) == WEFT_OK && got == 11, "embed/host-function");
  weft_release(vm, v);
  expect(weft_eval(vm, "scale()", "embedded", NULL) == WEFT_ERROR && strcmp(weft_error_kind(vm), "type") == 0,
         "embed/host-error");

  /* an object of the host, counted by a compiled loop */
  int64_t ticks = 0;
  WeftValue *c = NULL;
  expect(weft_handle(vm, &counter, &ticks, NULL, &c) == WEFT_OK && weft_set_global(vm, "c", c) == WEFT_OK,
         "embed/handle");
  weft_release(vm, c);
  v = NULL;
  bool counted = weft_define(vm, "tick", tick, NULL, NULL) == WEFT_OK &&
                 weft_eval(vm, "let s = 0\nfor i in 0..1000 { s += tick(c) * i }\ns", "embedded", &v) == WEFT_OK;
  expect(counted && strcmp(weft_show(vm, v), "333333000") == 0 && ticks == 1000, "embed/counter");
  weft_release(vm, v);

  /* errors and limits leave the VM whole */
  expect(weft_eval(vm, "[1, 2] + [1, 2, 3]", "embedded",
                   NULL) == WEFT_ERROR && strcmp(weft_error_kind(vm), "shape") == 0, "embed/error");
  expect(weft_eval(vm, "while true { }", "embedded", NULL) == WEFT_ERROR && strcmp(weft_error_kind(vm), "limit") == 0,
         "embed/fuel");
  weft_set_limits(vm, 0, 0, 0);
  v = NULL;
  expect(weft_eval(vm, "1 + 1", "embedded", &v) == WEFT_OK && strcmp(weft_show(vm, v), "2") == 0, "embed/goes-on");
  weft_release(vm, v);
  expect(weft_eval(vm, "read_text(\"/etc/passwd\")", "embedded", NULL) == WEFT_ERROR, "embed/no-files");
  weft_free(vm);
  return failed != 0;
}
