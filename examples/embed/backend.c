/* backend.c — a backend of the host: it logs each graph that Weft captures and the inputs of each run, and hands
 * both on. Build it with: cc backend.c $(pkg-config --cflags --libs weft) -o backend */
#include <stdio.h>
#include <string.h>

#include <weft.h>

static char seen[4096];

static void note(const char *text) { strncat(seen, text, sizeof seen - strlen(seen) - 1); }

static WeftCompiled compile(WeftVM *vm, void *context, WeftGraph *graph, void **code) {
  (void)context;
  (void)code;
  note(weft_graph_text(vm, graph));
  return weft_graph_hand_on(vm, graph, "mir");
}

static WeftStatus run(WeftVM *vm, void *context, WeftRun *run) {
  (void)context;
  note(weft_graph_name(run->graph));
  for (size_t i = 0; i < run->input_count; i++) {
    note(" ");
    note(weft_describe(vm, run->inputs[i]));
  }
  note("\n");
  return weft_run_hand_on(vm, run);
}

int main(void) {
  static const WeftBackend backend = {sizeof backend, "log", NULL, compile, run, NULL};
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backends = &backend;
  options.backend_count = 1;
  options.backend = "log";
  WeftVM *vm = weft_new(&options);
  if (!vm) return 1;
  WeftValue *y = NULL;
  double sum = 0;
  int right = weft_eval(vm, "fn f(x, k) = sum(x * k + 1)\nlet g = jit(f)\n"
                            "g(ones(3), 2.0) + g(ones((2, 2)), 3.0) + g(zeros(5), 4.0)", "embedded", &y) == WEFT_OK &&
              weft_as_float(vm, y, &sum) == WEFT_OK && sum == 9 + 16 + 5;
  if (!right) fputs(weft_error_text(vm), stderr);
  weft_release(vm, y);
  weft_free(vm);
  fputs(seen, stdout);
  printf("%s backend/result\n", right ? "ok" : "not ok");
  /* one graph for each rank; the third call runs what was compiled at the first */
  const char *one = strstr(seen, "\nf#1 f64[3] weak f64[]\n"), *two = strstr(seen, "\nf#2 f64[2, 2] weak f64[]\n"),
      *three = strstr(seen, "\nf#1 f64[5] weak f64[]\n");
  int ordered = strstr(seen, "graph f#1") == seen && one && two && three && one < two && two < three;
  printf("%s backend/order\n", ordered ? "ok" : "not ok");
  return !(right && ordered);
}
