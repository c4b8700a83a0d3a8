/* host.c — what a host pays, the least of several rounds, a line "name value unit" each: a call of its function by a
 * script, interpreted and compiled, a call of a script's function by weft_call, and a VM. */
#include <stdio.h>
#include <stdlib.h>

#include "api/weft.h"
#include "bench/clock.h"

static void must(WeftVM *vm, WeftStatus status) {
  if (status == WEFT_OK) return;
  fprintf(stderr, "host: %s\n", vm ? weft_error_text(vm) : "no VM");
  exit(1);
}

static WeftStatus same(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  double x;
  (void)context;
  if (count != 1 || weft_as_float(vm, args[0], &x) != WEFT_OK) return WEFT_ERROR;
  return weft_float(vm, x, result);
}

static WeftStatus nothing(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)vm, (void)context, (void)args, (void)count;
  *result = NULL;
  return WEFT_OK;
}

static WeftVM *machine(const char *backend) {
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backend = backend;
  WeftVM *vm = weft_new(&options);
  if (!vm) exit(1);
  must(vm, weft_define(vm, "same", same, NULL, NULL));
  must(vm, weft_define(vm, "nothing", nothing, NULL, NULL));
  return vm;
}

enum { CALLS = 20000, ROUNDS = 40, VMS = 20 };

/* Nanoseconds per trip of a loop in a function, less those of the same loop without `body`. */
static double script_ns(const char *backend, const char *body) {
  double spent[2];
  WeftVM *vm = machine(backend);
  for (int k = 0; k < 2; k++) {
    char text[200];
    WeftValue *f = NULL;
    snprintf(text, sizeof text, "fn f() { let s = 0.0; for i in 0..%d { s += 1.5; %s }; s }\nf", CALLS, k ? body : "s");
    must(vm, weft_eval(vm, text, "host", &f));
    for (int r = 0; r < 5; r++) must(vm, weft_call(vm, f, NULL, 0, NULL));
    spent[k] = 1e9;
    for (int r = 0; r < ROUNDS; r++) {
      double t = seconds();
      must(vm, weft_call(vm, f, NULL, 0, NULL));
      t = seconds() - t;
      if (t < spent[k]) spent[k] = t;
    }
    weft_release(vm, f);
  }
  weft_free(vm);
  return (spent[1] - spent[0]) / CALLS * 1e9;
}

/* Nanoseconds of a weft_call of `function` with a float, its result released. */
static double call_ns(const char *function, size_t count) {
  WeftVM *vm = machine("eager");
  WeftValue *f = NULL, *x = NULL, *out = NULL;
  must(vm, weft_eval(vm, function, "host", &f));
  must(vm, weft_float(vm, 1.5, &x));
  double best = 1e9;
  for (int r = 0; r < ROUNDS; r++) {
    double t = seconds();
    for (int i = 0; i < CALLS; i++) {
      if (weft_call(vm, f, &x, count, &out) != WEFT_OK) must(vm, WEFT_ERROR);
      weft_release(vm, out);
    }
    t = (seconds() - t) / CALLS;
    if (t < best) best = t;
  }
  weft_free(vm);
  return best * 1e9;
}

static double vm_us(void) {
  double best = 1e9;
  for (int r = 0; r < ROUNDS; r++) {
    double t = seconds();
    for (int i = 0; i < VMS; i++) weft_free(weft_new(NULL));
    t = (seconds() - t) / VMS;
    if (t < best) best = t;
  }
  return best * 1e6;
}

int main(void) {
  printf("script-to-host %.0f ns\n", script_ns("eager", "same(s)"));
  printf("script-to-host-without-values %.0f ns\n", script_ns("eager", "nothing()"));
  printf("compiled-to-host %.0f ns\n", script_ns("mir", "same(s)"));
  printf("host-to-script %.0f ns\n", call_ns("x => x", 1));
  printf("host-to-script-without-values %.0f ns\n", call_ns("() => nil", 0));
  printf("vm %.1f us\n", vm_us());
  return 0;
}
