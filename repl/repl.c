/* repl.c — read an input, run it, show its value; lines that begin with `:` are commands (see repl.h,
 * docs/prompt.md). */
#include "repl/repl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "repl/complete.h"
#include "repl/history.h"
#include "repl/line.h"
#include "repl/output.h"

/* ---- showing ------------------------------------------------------------------------------------------- */

static void show_error(WeftVM *vm) {
  if (interrupt_pending()) out_drop();
  out_fresh_line();
  interrupt_forget(); /* the next one ends what is shown */
  out_puts(weft_error_text(vm));
}

static void show(const char *text) {
  if (!*text) return;
  out_fresh_line();
  out_puts(text);
}

/* ---- lines ---------------------------------------------------------------------------------------------- */

/* Does the next line, which waits already, belong to this text? */
static bool goes_on(WeftVM *vm, const char *text) {
  const char *word = line_next_word();
  char *both = *word ? malloc(strlen(text) + strlen(word) + 1) : NULL;
  bool more = both && weft_input(vm, strcat(strcpy(both, text), word)) == WEFT_INPUT_UNFINISHED;
  free(both);
  return more;
}

static const char keys_text[] = "  Keys: Tab completes, Ctrl-C drops the input or stops what runs, Ctrl-D leaves,\n"
                                "  or drops unfinished input, Up and Ctrl-R bring back what was entered\n"
                                "  (docs/prompt.md).\n";

/* False: leave. */
static bool run_command(WeftVM *vm, const char *line) {
  const char *text;
  WeftCommandEnd end = weft_command(vm, line, &text);
  if (end == WEFT_COMMAND_FAILED && weft_exit_code(vm) < 0) show_error(vm);
  else show(text);
  if (end == WEFT_COMMAND_HELP) out_puts(keys_text);
  return end != WEFT_COMMAND_QUIT && weft_exit_code(vm) < 0;
}

/* ---- the loop ------------------------------------------------------------------------------------------- */

typedef struct Session {
  WeftVM *vm;
  char *text; /* lines of an input that is not finished */
  int number; /* of inputs, for the names in messages */
} Session;

/* Adds a line; false: there is no memory. */
static bool join_line(Session *s, const char *line) {
  size_t n = s->text ? strlen(s->text) : 0, m = strlen(line);
  char *all = realloc(s->text, n + m + 2);
  if (!all) return false;
  memcpy(all + n, line, m);
  all[n + m] = '\n';
  all[n + m + 1] = 0;
  s->text = all;
  return true;
}

static void forget_input(Session *s) {
  free(s->text);
  s->text = NULL;
}

static void run_input(Session *s, WeftInput kind) {
  char name[32];
  WeftValue *v = NULL;
  if (!s->text[strspn(s->text, " \t\r\n")]) return;
  snprintf(name, sizeof name, "<repl:%d>", ++s->number);
  WeftStatus status = weft_eval_line(s->vm, s->text, name, &v);
  if (weft_exit_code(s->vm) < 0) {
    if (status != WEFT_OK) show_error(s->vm);
    else if (kind != WEFT_INPUT_DECLARES) show(weft_display(s->vm, v));
  }
  weft_release(s->vm, v);
}

/* One line: false, leave. */
static bool take_line(Session *s, const char *line) {
  if (!s->text && weft_input(s->vm, line) == WEFT_INPUT_COMMAND) {
    prompt_history_add(line);
    return run_command(s->vm, line);
  }
  bool joined = join_line(s, line);
  WeftInput kind = joined ? weft_input(s->vm, s->text) : WEFT_INPUT_WHOLE;
  if (!joined) {
    out_puts("weft: out of memory\n");
  } else if (kind == WEFT_INPUT_UNFINISHED || goes_on(s->vm, s->text)) {
    return true;
  } else {
    prompt_history_add(s->text);
    run_input(s, kind);
  }
  forget_input(s);
  return weft_exit_code(s->vm) < 0;
}

int repl_run(WeftVM *vm) {
  Session s = {.vm = vm};
  bool terminal = isatty(STDIN_FILENO);
  line_begin();
  complete_in(vm);
  if (terminal) prompt_history_load();
  out_printf("weft %s   :help for help, Ctrl-D to leave\n", weft_version());
  for (bool go_on = true; go_on;) {
    char *line;
    interrupt_forget();
    switch (line_read(s.text ? "... " : "> ", &line)) {
    case LINE_DROPPED: forget_input(&s); break;
    case LINE_WHOLE:
      go_on = take_line(&s, line);
      if (interrupt_pending()) out_drop();
      break;
    case LINE_OVER:
      out_puts("\n");
      if (!s.text || !terminal) go_on = false;
      if (s.text) out_puts("the unfinished input is dropped\n");
      forget_input(&s);
    }
    free(line);
    if (out_error()) go_on = false;
  }
  forget_input(&s);
  return weft_exit_code(vm) < 0 ? 0 : weft_exit_code(vm);
}
