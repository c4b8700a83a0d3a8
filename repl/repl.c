/* repl.c — read a line, run it, show its value; lines that begin with `:` are commands (see repl.h). */
#include "repl/repl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "api/api.h"
#include "tracer/tracer.h"

static char *join_line(char *so_far, const char *line) {
  size_t n = so_far ? strlen(so_far) : 0, m = strlen(line);
  char *all = realloc(so_far, n + m + 2);
  if (!all) {
    free(so_far);
    return NULL;
  }
  memcpy(all + n, line, m);
  all[n + m] = '\n';
  all[n + m + 1] = 0;
  return all;
}

/* ---- completion of names ------------------------------------------------------------------------------- */

static WeftVM *completing;

static char *next_name(const char *prefix, int again) {
  static u32 builtin, slot;
  static size_t len;
  if (!again) {
    builtin = slot = 0;
    len = strlen(prefix);
  }
  while (builtin < builtin_count()) {
    Builtin b = builtin_at(builtin++);
    if (strncmp(b.name, prefix, len) == 0) return strdup(b.name);
  }
  const struct Module *m = weft_main_of(completing);
  const Vm *vm = weft_vm_of(completing);
  while (slot < m->scope.slots.count) {
    u32 at = slot++;
    const char *name = name_text(&vm->names, m->scope.slots.data[at]);
    if (m->scope.flags.data[at] & MODVAR_DECLARED && strncmp(name, prefix, len) == 0) return strdup(name);
  }
  return NULL;
}

static char **complete(const char *text, int start, int end) {
  (void)start;
  (void)end;
  rl_attempted_completion_over = 1;
  return rl_completion_matches(text, next_name);
}

/* ---- commands ------------------------------------------------------------------------------------------- */

static const char help_text[] =
    "  :help                 this text; help(f) documents a function, help() lists the built-in ones\n"
    "  :graph f  :guards f   the graphs compiled for f, and what they rely on\n"
    "  :breaks f             where capturing f broke, and what its guards missed\n"
    "  :why                  the last break or recompile, with its reason\n"
    "  :stats  :stats f      counters of the VM, or of a function\n"
    "  :loops f  :mir f  :asm f  :ptx f   the kernels made from them, as loop IR, MIR, vector code and PTX\n"
    "  :time CODE            run CODE and say how long it took\n"
    "  :quit                 leave; so does Ctrl-D\n";

static void show_dump(WeftVM *vm, const char *what, const char *name) {
  WeftValue *f = NULL;
  if (weft_get_global(vm, name, &f) != WEFT_OK) {
    fputs(weft_error_text(vm), stdout);
    return;
  }
  const char *text = weft_dump(vm, f, what);
  fputs(text ? text : "nothing to show\n", stdout);
  weft_release(vm, f);
}

static void show_stats(WeftVM *vm, const char *name) {
  char code[512];
  snprintf(code, sizeof code, "trace.stats(%s)", name ? name : "");
  WeftValue *v = NULL;
  if (weft_eval_line(vm, code, "<:stats>", &v) == WEFT_OK) puts(weft_show(vm, v));
  else fputs(weft_error_text(vm), stdout);
  weft_release(vm, v);
}

static void run_timed(WeftVM *vm, const char *code) {
  WeftValue *v = NULL;
  f64 begin = vm_clock();
  WeftStatus status = weft_eval_line(vm, code, "<:time>", &v);
  f64 spent = vm_clock() - begin;
  if (status == WEFT_OK) {
    if (strcmp(weft_type(vm, v), "nil") != 0) puts(weft_show(vm, v));
    printf("%.6f s\n", spent);
  } else {
    fputs(weft_error_text(vm), stdout);
  }
  weft_release(vm, v);
}

/* False: leave. */
static bool command(WeftVM *vm, char *line) {
  char *word = strtok(line + 1, " \t"), *rest = strtok(NULL, "");
  while (rest && (*rest == ' ' || *rest == '\t')) rest++;
  if (!word || strcmp(word, "help") == 0) fputs(help_text, stdout);
  else if (strcmp(word, "quit") == 0 || strcmp(word, "q") == 0) return false;
  else if (strcmp(word, "time") == 0 && rest) run_timed(vm, rest);
  else if (strcmp(word, "stats") == 0) show_stats(vm, rest);
  else if (strcmp(word, "breaks") == 0 && rest) show_dump(vm, "why", rest);
  else if (strcmp(word, "why") == 0) {
    if (rest) show_dump(vm, "why", rest);
    else fputs(weft_dump(vm, NULL, "why"), stdout);
  }
  else if (rest && (strcmp(word, "graph") == 0 || strcmp(word, "guards") == 0 || strcmp(word, "loops") == 0 || strcmp(word, "mir") == 0 || strcmp(word, "asm") == 0 || strcmp(word, "ptx") == 0))
    show_dump(vm, word, rest);
  else printf(":%s: no such command, or a name is missing; :help lists them\n", word);
  return true;
}

int repl_run(WeftVM *vm) {
  completing = vm;
  rl_readline_name = "weft";
  rl_attempted_completion_function = complete;
  using_history();
  char history[4096] = "";
  const char *home = getenv("HOME");
  if (home) {
    snprintf(history, sizeof history, "%s/.weft_history", home);
    read_history(history);
  }
  printf("weft %s   :help for help, Ctrl-D to leave\n", weft_version());
  char *text = NULL, name[32];
  int number = 0, code = -1;
  for (;;) {
    char *line = readline(text ? "... " : "> ");
    if (!line) break;
    if (!text && line[0] == ':') {
      add_history(line);
      bool go_on = command(vm, line);
      free(line);
      if (!go_on) break;
      continue;
    }
    text = join_line(text, line);
    bool blank = !*line;
    free(line);
    if (!text) break;
    WeftValue *v = NULL;
    snprintf(name, sizeof name, "<repl:%d>", ++number);
    WeftStatus status = weft_eval_line(vm, text, name, &v);
    if (status == WEFT_INCOMPLETE && !blank) {
      number--;
      continue;
    }
    if (status == WEFT_INCOMPLETE) status = weft_eval(vm, text, name, &v); /* says what is missing */
    size_t n = strlen(text);
    if (n > 1) {
      text[n - 1] = 0;
      add_history(text);
    }
    free(text);
    text = NULL;
    code = weft_exit_code(vm);
    if (code >= 0) break;
    if (status != WEFT_OK) fputs(weft_error_text(vm), stdout);
    else if (v && strcmp(weft_type(vm, v), "nil") != 0) puts(weft_show(vm, v));
    weft_release(vm, v);
  }
  free(text);
  if (*history) write_history(history);
  if (code < 0) putchar('\n');
  return code < 0 ? 0 : code;
}

void repl_explain(WeftVM *vm) {
  static const char *const shown[] = {"compiles", "kernels", "natives", "lifted_loops", "cold_exits", "breaks", "recompiles", "continuations", "exits", "demotions"};
  fflush(stdout);
  fputs("what was compiled:\n", stderr);
  for (unsigned i = 0;; i++) {
    double value;
    const char *name = weft_stat_at(vm, i, &value);
    if (!name) break;
    for (u32 k = 0; k < COUNT_OF(shown); k++)
      if (strcmp(shown[k], name) == 0) fprintf(stderr, "  %-14s %.0f\n", name, value);
  }
  tracer_report(weft_vm_of(vm));
}
