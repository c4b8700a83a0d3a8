/* debug.c — a debugger in a few lines: breakpoints, steps into, over and out of calls, variables by name, errors.
 * Build it with: cc debug.c $(pkg-config --cflags --libs weft) -o debug
 *   ./debug                  runs a script of commands over a program, and looks at what comes of them
 *   ./debug FILE [LINE…]     stops in FILE at these lines and at errors, and reads commands from standard input:
 *                            s(tep) n(ext) o(ut) c(ontinue) w(here) q(uit), else an expression to show */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

enum { BREAKPOINTS = 16, ROOM = 4096 };

typedef struct Debugger {
  int lines[BREAKPOINTS], count;
  enum { CONTINUE, STEP, NEXT, OUT } mode;
  size_t depth;               /* frames when NEXT or OUT was said */
  const char *const *script;  /* commands; NULL: standard input */
  char log[ROOM];             /* what was shown, when there is a script */
} Debugger;

static void show(Debugger *d, const char *text) {
  if (!d->script) {
    fputs(text, stdout);
    return;
  }
  const size_t used = strlen(d->log);
  snprintf(d->log + used, ROOM - used, "%s", text);
}

/* One line for each frame, the innermost first, with its variables. */
static void where(WeftVM *vm, Debugger *d) {
  char line[256];
  for (size_t i = 0; i < weft_frame_count(vm); i++) {
    WeftFrame f = {.size = sizeof f};
    size_t count = 0;
    if (weft_frame(vm, i, &f) != WEFT_OK || weft_frame_locals(vm, i, &count) != WEFT_OK) return;
    snprintf(line, sizeof line, "#%zu %s at %s:%d", i, f.body ? "the program" : *f.function ? f.function : "a lambda",
             f.file, f.line);
    show(d, line);
    for (size_t k = 0; k < count; k++) {
      const char *name;
      WeftValue *value = NULL;
      if (weft_frame_local(vm, i, k, &name, &value) != WEFT_OK) continue;
      if (!value || strcmp(weft_type(vm, value), "fn") == 0) {
        weft_release(vm, value);
        continue;
      }
      snprintf(line, sizeof line, " %s=%.60s", name, weft_show(vm, value));
      show(d, line);
      weft_release(vm, value);
    }
    show(d, "\n");
  }
}

/* A variable of the frame, or any expression, which sees the main module's variables. */
static void look(WeftVM *vm, Debugger *d, const char *text) {
  WeftValue *value = NULL;
  if (weft_frame_get(vm, 0, text, &value) == WEFT_OK || weft_eval(vm, text, "debugger", &value) == WEFT_OK)
    show(d, weft_show(vm, value));
  else
    show(d, weft_error_message(vm));
  show(d, "\n");
  weft_release(vm, value);
}

static const char *command(Debugger *d, char *room, size_t size) {
  if (d->script) return *d->script ? *d->script++ : "c";
  fputs("(debug) ", stdout);
  fflush(stdout);
  if (!fgets(room, (int)size, stdin)) return "q";
  room[strcspn(room, "\n")] = 0;
  return room;
}

/* Reads commands until one of them lets the program go on. */
static WeftStatus stopped(WeftVM *vm, Debugger *d, const char *why) {
  WeftFrame f = {.size = sizeof f};
  char line[256], room[256];
  if (weft_frame(vm, 0, &f) != WEFT_OK) return WEFT_OK;
  snprintf(line, sizeof line, "%s:%d%s%s\n", f.file, f.line, *why ? ": " : "", why);
  show(d, line);
  for (;;) {
    const char *c = command(d, room, sizeof room);
    const char key = c[0] && !c[1] ? c[0] : 0;
    d->depth = weft_frame_count(vm);
    d->mode = key == 's' ? STEP : key == 'n' ? NEXT : key == 'o' ? OUT : CONTINUE;
    if (key == 'q') return weft_fail(vm, "interrupt", "stopped in the debugger");
    if (key == 'c' || d->mode != CONTINUE) return WEFT_OK;
    if (key == 'w') where(vm, d);
    else look(vm, d, c);
  }
}

static WeftStatus hook(WeftVM *vm, void *context, WeftHookEvent event) {
  Debugger *d = context;
  if (event == WEFT_HOOK_ERROR) {
    char why[200]; /* the text of the error lives until the next one that the library gives */
    snprintf(why, sizeof why, "%s", weft_error_message(vm));
    return stopped(vm, d, why);
  }
  WeftFrame f = {.size = sizeof f};
  if (weft_frame(vm, 0, &f) != WEFT_OK) return WEFT_OK;
  const size_t depth = weft_frame_count(vm);
  bool stop = d->mode == STEP || (d->mode == NEXT && depth <= d->depth) || (d->mode == OUT && depth < d->depth);
  for (int i = 0; i < d->count && !stop; i++) stop = d->lines[i] == f.line;
  return stop ? stopped(vm, d, "") : WEFT_OK;
}

static const char program[] = "fn area(w, h) {\n"          /* 1 */
                              "  let a = w * h\n"            /* 2 */
                              "  a\n"                        /* 3 */
                              "}\n"                          /* 4 */
                              "let total = 0\n"              /* 5 */
                              "for i in 1..4 {\n"            /* 6 */
                              "  total += area(i, i + 1)\n"  /* 7 */
                              "}\n"                          /* 8 */
                              "total.nothing\n";             /* 9 */

static int check(void) {
  static const char *const script[] = {"w", "s", "s", "a", "w * 10", "o", "n", "n", "c", "c", "total", "q", NULL};
  static const char want[] = "shapes.weft:7\n#0 the program at shapes.weft:7 i=1 total=0\n" /* where */
                             "shapes.weft:2\nshapes.weft:3\n2\n"                            /* steps into the call */
                             "w is not declared\n"   /* programs see the main module, not the frame */
                             "shapes.weft:6\n"       /* out of it: behind line 7 */
                             "shapes.weft:7\nshapes.weft:6\n" /* over it */
                             "shapes.weft:7\n"
                             "shapes.weft:9: an array has no property 'nothing'; it has shape, dtype, ndim, size, "
                             "T and device\n20\n";
  Debugger d = {.lines = {7}, .count = 1, .script = script};
  int failed = 0;
  WeftVM *vm = weft_new(NULL);
  if (!vm) return 1;
  bool set = weft_set_hook(vm, hook, &d, WEFT_HOOK_LINE | WEFT_HOOK_ERROR) == WEFT_OK;
  bool ended = weft_eval(vm, program, "shapes.weft", NULL) == WEFT_ERROR &&
               strcmp(weft_error_message(vm), "stopped in the debugger") == 0;
  if (strcmp(d.log, want) != 0) printf("# gives\n%s# not\n%s", d.log, want), failed++;
  printf("%s debug/commands\n", failed ? "not ok" : "ok");
  printf("%s debug/quit-ends-the-program\n", set && ended ? "ok" : "not ok");
  /* without the hook the program runs as fast as ever */
  bool again = weft_set_hook(vm, NULL, NULL, 0) == WEFT_OK && weft_eval(vm, "total", "host", NULL) == WEFT_OK;
  printf("%s debug/goes-on-without-a-hook\n", again ? "ok" : "not ok");
  weft_free(vm);
  return failed || !set || !ended || !again;
}

int main(int argc, char **argv) {
  if (argc < 2) return check();
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.allow_files = options.allow_imports = true;
  Debugger d = {.count = 0};
  for (int i = 2; i < argc && d.count < BREAKPOINTS; i++) d.lines[d.count++] = atoi(argv[i]);
  if (!d.count) d.mode = STEP;
  WeftVM *vm = weft_new(&options);
  if (!vm || weft_set_hook(vm, hook, &d, WEFT_HOOK_LINE | WEFT_HOOK_ERROR) != WEFT_OK) return 1;
  int status = weft_load_file(vm, argv[1], NULL) == WEFT_OK ? 0 : 1;
  if (status) fputs(weft_error_text(vm), stderr);
  weft_free(vm);
  return status;
}
