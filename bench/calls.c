/* calls.c — costs of small things through the public API, a line "name value unit" each:
 *   calls [PROGRAM]   PROGRAM (build/weft) is what start-up is measured on
 * Times are the processor's, the least of many repetitions. */
#include "api/weft.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(WeftVM *vm, WeftStatus status) {
  if (status == WEFT_OK) return;
  fprintf(stderr, "calls: %s\n", weft_error_text(vm));
  exit(1);
}

static WeftVM *machine(const char *backend, int hot) {
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backend = backend;
  options.hot = hot < 0 ? 0 : hot ? hot : 1;
  WeftVM *vm = weft_new(&options);
  if (!vm) exit(1);
  return vm;
}

static WeftValue *value(WeftVM *vm, const char *text) {
  WeftValue *v = NULL;
  must(vm, weft_eval(vm, text, "calls", &v));
  return v;
}

static double stat(WeftVM *vm, const char *name) {
  double v = 0;
  const char *at;
  for (unsigned i = 0; (at = weft_stat_at(vm, i, &v)); i++)
    if (strcmp(at, name) == 0) return v;
  return -1;
}

/* Nanoseconds per call of `function` on two vectors of 8. */
static double call_ns(const char *backend, const char *function) {
  enum { CALLS = 20000, ROUNDS = 15 };
  WeftVM *vm = machine(backend, -1);
  WeftValue *f = value(vm, function), *args[2] = {value(vm, "arange(8.0)"), value(vm, "arange(8.0) + 1")}, *out;
  for (int i = 0; i < 1000; i++) {
    must(vm, weft_call(vm, f, args, 2, &out));
    weft_release(vm, out);
  }
  double best = 1e9;
  for (int r = 0; r < ROUNDS; r++) {
    double t = seconds();
    for (int i = 0; i < CALLS; i++) {
      if (weft_call(vm, f, args, 2, &out) != WEFT_OK) exit(1);
      weft_release(vm, out);
    }
    t = (seconds() - t) / CALLS;
    if (t < best) best = t;
  }
  weft_free(vm);
  return best * 1e9;
}

/* Nanoseconds of `body` in a loop of the interpreter, the loop itself taken off; a and b are vectors of 8. */
static double eager_ns(const char *body) {
  enum { TRIPS = 100000, ROUNDS = 15 };
  char text[200];
  WeftVM *vm = machine("eager", -1);
  double spent[2];
  snprintf(text, sizeof text, "fn full(a, b) { for i in 0..%d { %s } }\nfull", TRIPS, body);
  WeftValue *args[2] = {value(vm, "arange(8.0)"), value(vm, "arange(8.0) + 1")},
      *loops[2] = {value(vm, "fn empty(a, b) { for i in 0..100000 { a } }\nempty"), value(vm, text)}, *out;
  for (int k = 0; k < 2; k++) {
    spent[k] = 1e9;
    for (int r = 0; r < ROUNDS; r++) {
      double t = seconds();
      must(vm, weft_call(vm, loops[k], args, 2, &out));
      t = seconds() - t;
      weft_release(vm, out);
      if (t < spent[k]) spent[k] = t;
    }
  }
  weft_free(vm);
  return (spent[1] - spent[0]) / TRIPS * 1e9;
}

/* Milliseconds of the call that records, compiles and first runs a function of 100 operations, and without its
 * compilation. */
static double compile_ms(void) {
  static char text[8192];
  static const char *const steps[] = {"y * x", "y + 1.5", "y - x", "abs(y)", "y / 1.0625", "maximum(y, x)", "y * 0.5",
                                      "sqrt(y + %d)", "minimum(y, %d.5)"};
  int at = sprintf(text, "fn f(x) {\n  let y = x * 0.5\n");
  for (int i = 1; i < 100;) {
    const char *step = steps[(unsigned)i % (sizeof steps / sizeof steps[0])];
    at += sprintf(text + at, "  y = ");
    at += sprintf(text + at, step, i);
    at += sprintf(text + at, "\n");
    i += strncmp(step, "sqrt", 4) == 0 ? 2 : 1;
  }
  sprintf(text + at, "  y\n}\nf\n");
  double best = 1e9;
  for (int r = 0; r < 15; r++) {
    WeftVM *vm = machine("mir", 0);
    WeftValue *f = value(vm, text), *warm = value(vm, "fn w(x) = x * 2 + 1\nw"), *x = value(vm, "arange(8.0)"), *out;
    must(vm, weft_call(vm, warm, &x, 1, &out));
    weft_release(vm, out);
    double before = stat(vm, "compiles"), t = seconds();
    must(vm, weft_call(vm, f, &x, 1, &out));
    t = seconds() - t;
    if (stat(vm, "compiles") != before + 1) {
      fprintf(stderr, "calls: a function of 100 operations is not one region\n");
      exit(1);
    }
    if (t < best) best = t;
    weft_free(vm);
  }
  return best * 1e3;
}

/* Milliseconds of the processor for `PROGRAM -e 1`. */
static double start_ms(const char *program) {
  double best = 1e9;
  for (int r = 0; r < 40; r++) {
    struct rusage a, b;
    getrusage(RUSAGE_CHILDREN, &a);
    pid_t pid = fork();
    if (pid == 0) {
      int null = open("/dev/null", O_WRONLY);
      if (null < 0 || dup2(null, 1) < 0) _exit(127);
      execl(program, program, "-e", "1", (char *)NULL);
      _exit(127);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status) exit(1);
    getrusage(RUSAGE_CHILDREN, &b);
    double t = (double)(b.ru_utime.tv_sec - a.ru_utime.tv_sec + b.ru_stime.tv_sec - a.ru_stime.tv_sec) +
               1e-6 * (double)(b.ru_utime.tv_usec - a.ru_utime.tv_usec + b.ru_stime.tv_usec - a.ru_stime.tv_usec);
    if (t < best) best = t;
  }
  return best * 1e3;
}

int main(int argc, char **argv) {
  printf("eager-add %.1f ns\n", eager_ns("a + b"));
  printf("eager-call %.0f ns\n", call_ns("eager", "fn f(a, b) = a + b\nf"));
  printf("compile-100-ops %.2f ms\n", compile_ms());
  if (argc > 1) printf("start-up %.2f ms\n", start_ms(argv[1]));
  return 0;
}
