/* hostile.c — a host that gives little lets anybody write the program: 64 MB, 10^7 units of fuel, 0.3 seconds, 256 KB
 * of C stack, no capability. Whatever is run: no crash, an error is one line of a kind, and the VM is usable behind it.
 *
 *   hostile scripts [NAME]       the programs of scripts.weft, interpreted and compiled at once
 *   hostile calls [COUNT [SEED]] every built-in with values that it was not made for
 *
 * Without arguments both, with 40 calls of each built-in. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/weft.h"
#include "lang/ops.h"
#include "tests/support/stopping.h"

#ifdef __SANITIZE_ADDRESS__
enum { STACK = 1024 << 10, SLOW = 5 };
#else
enum { STACK = 256 << 10, SLOW = 1 };
#endif
enum { MEMORY = 64 << 20, BESIDE = 8 << 20, FUEL = 10000000, LATE_MS = 400 * SLOW };
static double seconds = 0.3; /* of the program that runs */

static int failures;
static bool misspelt; /* the error of the last program was of kind "name" */
static double last_ms; /* of the last program, and its message */
static char last_said[200];

/* ---- what the host offers ------------------------------------------------------------------------ */

static WeftStatus host_call(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context;
  return count < 1 ? WEFT_MISUSE : weft_call(vm, args[0], args + 1, count - 1, result);
}

static WeftStatus host_set(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  const char *text;
  (void)context;
  (void)result;
  if (count != 2 || weft_as_text(vm, args[0], &text, NULL) != WEFT_OK) return WEFT_ERROR;
  return weft_set_global(vm, text, args[1]);
}

static WeftStatus host_show(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context;
  const char *text = count ? weft_show(vm, args[0]) : "";
  return weft_text(vm, text, strlen(text), result);
}

static WeftStatus host_same(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)vm;
  (void)context;
  if (count) *result = args[0];
  return WEFT_OK;
}

static WeftStatus host_free(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context;
  (void)args;
  (void)count;
  (void)result;
  weft_free(vm); /* refused */
  return WEFT_OK;
}

static void free_data(void *context, void *data) {
  (void)context;
  free(data);
}

static WeftStatus host_lend(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  int64_t n = 0;
  (void)context;
  if (count != 1 || weft_as_int(vm, args[0], &n) != WEFT_OK || n < 0 || n > 1000) return WEFT_ERROR;
  double *data = calloc((size_t)n + 1, sizeof *data);
  WeftStatus status = data ? weft_array_lend(vm, WEFT_F64, 1, &n, data, free_data, NULL, result) : WEFT_ERROR;
  if (status != WEFT_OK) free(data);
  return status;
}

static const WeftHandleType thing = {.size = sizeof thing, .name = "thing"};

static WeftStatus host_thing(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  static int object;
  (void)context;
  return weft_handle(vm, &thing, &object, count ? args[0] : NULL, result);
}

static void no_output(void *context, const char *text, size_t length) {
  (void)context;
  (void)text;
  (void)length;
}

static WeftVM *new_vm(const char *backend, int hot) {
  static const struct { const char *name; WeftHostFunction call; } functions[] = {
      {"host_call", host_call}, {"host_eval", stopping_eval}, {"host_set", host_set}, {"host_show", host_show},
      {"host_same", host_same}, {"host_free", host_free}, {"host_lend", host_lend}, {"host_thing", host_thing}};
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.memory = MEMORY;
  o.fuel = FUEL;
  o.deadline = seconds;
  o.output = no_output;
  o.output_limit = 64 << 10;
  o.backend = backend;
  o.hot = hot;
  WeftVM *vm = weft_new(&o);
  for (size_t i = 0; vm && i < sizeof functions / sizeof functions[0]; i++)
    if (weft_define(vm, functions[i].name, functions[i].call, NULL, NULL) != WEFT_OK) {
      weft_free(vm);
      return NULL;
    }
  return vm;
}

/* ---- one program ---------------------------------------------------------------------------------- */

/* NULL: as it should be; else what is wrong. The limits begin anew. */
static const char *run(WeftVM *vm, const char *program, const char *name) {
  static char why[400];
  weft_set_limits(vm, MEMORY, FUEL, seconds);
  const double begin = stopping_clock();
  WeftStatus status = weft_eval(vm, program, name, NULL);
  last_ms = (stopping_clock() - begin) * 1e3;
  const double late = last_ms - seconds * 1e3;
  char kind[40], *message = last_said;
  snprintf(kind, sizeof kind, "%s", weft_error_kind(vm));
  snprintf(message, sizeof last_said, "%s", weft_error_message(vm));
  misspelt = strcmp(kind, "name") == 0;
  if (late > LATE_MS) return snprintf(why, sizeof why, "ended %.0f ms behind the deadline: %s", late, message), why;
  if (status != WEFT_OK && status != WEFT_ERROR) return snprintf(why, sizeof why, "status %d", (int)status), why;
  if ((status == WEFT_OK) != !*kind) return snprintf(why, sizeof why, "status %d, kind '%s'", (int)status, kind), why;
  /* what a program says by error(…) is its own */
  if (status == WEFT_ERROR && ((!*message && weft_exit_code(vm) < 0) ||
                               (strcmp(kind, "user") != 0 && strchr(message, '\n'))))
    return snprintf(why, sizeof why, "the message of kind %s is no line: '%s'", kind, message), why;
  if (status == WEFT_ERROR && strstr(message, "defect")) return snprintf(why, sizeof why, "%s", message), why;
  if (status == WEFT_ERROR && strncmp(weft_error_text(vm), "error: ", 7) != 0) return "the error has no text";
  WeftValue *v = NULL;
  int64_t n = 0;
  weft_set_limits(vm, 2 * MEMORY, FUEL, 0); /* what its variables hold stays */
  status = weft_eval(vm, "sum(arange(10)) + 1", "behind it", &v);
  if (status != WEFT_OK || weft_as_int(vm, v, &n) != WEFT_OK || n != 46)
    return snprintf(why, sizeof why, "the VM is not usable behind it: %s", weft_error_message(vm)), why;
  weft_release(vm, v);
  return NULL;
}

/* KiB of this process: `what` is "VmRSS:", or "VmHWM:", the most since forget_peak; 0 where /proc is not there. */
static long memory_of_process(const char *what) {
  FILE *f = fopen("/proc/self/status", "r");
  char line[200];
  long kib = 0;
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, what, strlen(what)) == 0) kib = atol(line + strlen(what));
  if (f) fclose(f);
  return kib;
}

static void forget_peak(void) {
  FILE *f = fopen("/proc/self/clear_refs", "w");
  if (f && (fputs("5", f) < 0 || fflush(f) != 0)) perror("clear_refs");
  if (f) fclose(f);
}

static void tell(const char *name, const char *tier, const char *why) {
  if (why) printf("not ok hostile/%s: %s, %s\n", name, tier, why);
  else printf("ok hostile/%s\n", name);
  fflush(stdout);
  failures += why != NULL;
}

/* ---- scripts ----------------------------------------------------------------------------------------- */

static char *read_all(const char *path) {
  FILE *f = fopen(path, "rb");
  char *text = f ? calloc(1, 1 << 20) : NULL;
  if (text && fread(text, 1, (1 << 20) - 1, f) == 0) *text = 0;
  if (f) fclose(f);
  return text;
}

static void run_script(const char *name, const char *program) {
  seconds = strncmp(name, "time: ", 6) == 0 ? 0.05 : 0.3; /* what would run for ever need not run for long */
  static const struct { const char *backend; int hot; } tiers[] = {{"eager", 0}, {"mir", 1}, {"mir", 0}};
  for (size_t i = 0; i < sizeof tiers / sizeof tiers[0]; i++) {
#ifdef __GLIBC__
    malloc_trim(0); /* what earlier programs freed */
#endif
    forget_peak();
    const long before = memory_of_process("VmRSS:");
    WeftVM *vm = new_vm(tiers[i].backend, tiers[i].hot);
    const char *why = vm ? run(vm, program, name) : "no VM";
    if (!why && misspelt) why = "it names what there is not";
    weft_free(vm);
    const long more = memory_of_process("VmHWM:") - before;
    if (getenv("HOSTILE_SHOW"))
      fprintf(stderr, "%6ld KiB %4.0f ms %s %s: %s\n", more, last_ms, tiers[i].backend, name, last_said);
    if (!why && SLOW == 1 && more > (MEMORY + BESIDE) >> 10) why = "the process took more memory than the VM may";
    if (why) return tell(name, tiers[i].backend, why);
  }
  tell(name, "", NULL);
}

/* Programs stand behind lines `#: NAME`. */
static void run_scripts(const char *only) {
  char *text = read_all("tests/hostile/scripts.weft");
  int count = 0;
  for (char *s = text ? strstr(text, "\n#: ") : NULL; s;) {
    char *name = s + 4, *line = strchr(name, '\n');
    if (!line) break;
    char *next = strstr(line, "\n#: ");
    *line = 0;
    if (next) *next = 0;
    count++;
    if (!only || strcmp(only, name) == 0) run_script(name, line + 1);
    s = next;
  }
  if (count < 420) tell("scripts", "", "scripts.weft is not there, or shorter than it was");
  free(text);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static const char *const values[] = {
    "nil", "true", "0", "-1", "1", "3", "2.5", "nan", "-inf", "1e308", "9223372036854775807", "1 << 40", "i32(-7)",
    "u8(255)", "f16(1.5)", "bf16([1.5, 2])", "complex(1.0, 2.0)", "c64([1.0, 2.0])", "c128([[1.0, 2], [3, 4]])",
    "\"\"", "\"a\"", "\"ij,jk\"", "\"äß€\"", "\"sum\"", "[]", "[1.0, 2.0, 3.0]", "[[1.0, 0.5], [0.5, 2.0]]",
    "[3, 1, 2]", "[true, false]", "zeros((0, 3))", "zeros((2, 0))", "ones((2, 3, 4))", "ones((1,) * 16)",
    "rand((5, 5))", "u64([1, 2])", "()", "(1, 2)", "((1, 2), (3,))", "(\"a\", 1)", "(nil,)", "([1.0], [2.0])",
    "(-1, 1 << 62)", "{a: 1}", "{}", "{a: (1, 2), b: [1.0, 2.0]}", "{a: {b: {c: nil}}}", "x => x", "(x, y) => x",
    "() => nil", "x => error(\"no\")", "(x, y) => (x, y)", "sum", "sin", "random.key(1)", "ref(1)", "0..5", "5..0",
    "f32", "bool", "c128", "nan * [1.0, 2.0]", "host_lend(5)", "host_thing()", "host_call",
    "broadcast_to(1.5, (4, 4))", "ones((3, 3))[::-1, ::2]", "list(0..9)",
};
enum { VALUES = sizeof values / sizeof values[0] };

static uint64_t seed_now;
static uint32_t draw(uint32_t below) {
  seed_now = seed_now * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(seed_now >> 33) % below;
}

/* These end the program, wait, or are the host's own business. */
static bool left_out(const char *name) {
  static const char *const names[] = {"exit", "sleep", "read_line"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}

static void make_call(uint32_t op, char *out, size_t room, bool compiled) {
  const OpInfo *info = op_info(op);
  size_t n = 0;
  uint32_t count = draw(5) == 0 ? draw(7) : draw(info->nparams + 1);
  n += (size_t)snprintf(out + n, room - n, compiled ? "fn f() { let y = %s(" : "%s(", info->name);
  for (uint32_t i = 0; i < count; i++) {
    bool named = i && i < info->nparams && draw(4) == 0;
    const OpParam *p = &info->params[i < info->nparams ? i : 0];
    n += (size_t)snprintf(out + n, room - n, "%s%.*s%s%s", i ? ", " : "", named ? (int)p->len : 0, named ? p->name : "",
                          named ? "=" : "", values[draw(VALUES)]);
  }
  snprintf(out + n, room - n, compiled ? "); let z = str(y) + str(type(y)); len(z) }; f()" : ")");
}

static void run_calls(uint32_t times, uint64_t seed) {
  seconds = 0.3;
  static const char *const backends[] = {"eager", "mir"};
  for (uint32_t op = 1; op < OP_COUNT; op++) {
    const char *name = op_name(op), *why = NULL;
    char program[900] = "", label[200];
    if (left_out(name)) continue;
    snprintf(label, sizeof label, "calls of %s", name);
    for (int b = 0; b < 2 && !why; b++) {
      WeftVM *vm = new_vm(backends[b], b);
      seed_now = seed + op * 1000u;
      for (uint32_t i = 0; i < times && !why && vm; i++) {
        make_call(op, program, sizeof program, b);
        if (getenv("HOSTILE_SHOW")) fprintf(stderr, "%s\n", program);
        why = run(vm, program, "call");
      }
      weft_free(vm);
    }
    if (why) {
      printf("not ok hostile/%s: %s: %s\n", label, program, why);
      failures++;
    } else {
      printf("ok hostile/%s\n", label);
    }
  }
}

/* ---- on a small stack -------------------------------------------------------------------------------------- */

typedef struct Task {
  int argc;
  char **argv;
} Task;

static void *work(void *p) {
  const Task *t = p;
  const char *what = t->argc > 1 ? t->argv[1] : "";
  if (strcmp(what, "calls") != 0) run_scripts(t->argc > 2 ? t->argv[2] : NULL);
  if (strcmp(what, "scripts") != 0)
    run_calls(t->argc > 2 ? (uint32_t)atoi(t->argv[2]) : 40, t->argc > 3 ? (uint64_t)atoll(t->argv[3]) : 1);
  return NULL;
}

int main(int argc, char **argv) {
  Task task = {argc, argv};
  pthread_attr_t attr;
  pthread_t thread;
  if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, STACK) ||
      pthread_create(&thread, &attr, work, &task) || pthread_join(thread, NULL)) {
    puts("not ok hostile/thread: it could not be made");
    return 1;
  }
  return failures != 0;
}
