/* repl.c — read an input, run it, show its value; lines that begin with `:` are commands (see repl.h,
 * docs/prompt.md). */
#define _GNU_SOURCE /* stpcpy */
#include "repl/repl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "repl/block.h"
#include "repl/colours.h"
#include "repl/complete.h"
#include "repl/history.h"
#include "repl/line.h"
#include "repl/output.h"
#include "repl/session.h"

/* ---- showing ------------------------------------------------------------------------------------------- */

/* The text, or the same in colours. Frees `painted`. */
static void put_painted(const char *text, char *painted) {
  out_puts(painted ? painted : text);
  free(painted);
}

static void show_error(WeftVM *vm) {
  if (interrupt_pending()) out_drop();
  out_fresh_line();
  interrupt_forget(); /* the next one ends what is shown */
  const char *text = weft_error_text(vm);
  put_painted(text, colours_on(STDOUT_FILENO) ? coloured_error(text) : NULL);
}

static void show(const char *text) {
  if (!*text) return;
  out_fresh_line();
  out_puts(text);
}

static void show_value(const char *text) {
  if (!*text) return;
  out_fresh_line();
  put_painted(text, colours_on(STDOUT_FILENO) ? coloured_value(text) : NULL);
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

static const char *const keys_text =
    "Keys: Tab completes, Ctrl-C drops the input or stops what runs, Ctrl-D leaves, or drops unfinished input, "
    "Up and Ctrl-R bring back what was entered, Alt-Enter begins another line (docs/prompt.md).";

/* The words in lines as wide as the window, two blanks in front of each. */
static void put_words(const char *words) {
  enum { BEFORE = 2 };
  const size_t width = (size_t)line_width();
  size_t used = 0;
  for (size_t n; *words; words += n + (words[n] == ' ')) {
    n = strcspn(words, " ");
    const bool fits = used && used + 1 + n < width;
    out_puts(fits ? " " : used ? "\n  " : "  ");
    used = fits ? used + 1 + n : BEFORE + n;
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)n, words);
    out_puts(word);
  }
  out_puts("\n");
}

/* False: leave. */
static bool run_command(WeftVM *vm, const char *line) {
  const char *text;
  WeftCommandEnd end = weft_command(vm, line, &text);
  if (end == WEFT_COMMAND_FAILED && weft_exit_code(vm) < 0) show_error(vm);
  else show(text);
  if (end == WEFT_COMMAND_HELP) put_words(keys_text);
  return end != WEFT_COMMAND_QUIT && weft_exit_code(vm) < 0;
}

/* ---- the loop ------------------------------------------------------------------------------------------- */

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

/* `_` where it would be no value is the last value, `ans`. Does the error say so? Then `ans` is put there, and the text
 * can be run again: it did not compile, so nothing of it has run. */
static bool put_answer(Session *s) {
  static const char told[] = "'_' is no value";
  int line, column;
  if (!s->answered || strncmp(weft_error_message(s->vm), told, sizeof told - 1) != 0) return false;
  weft_error_position(s->vm, &line, &column);
  char *at = s->text;
  for (; line > 1 && at; line--) {
    at = strchr(at, '\n');
    if (at) at++;
  }
  for (; at && column > 1 && *at; column--) {
    at++;
    while (((unsigned char)*at & 0xC0) == 0x80) at++;
  }
  if (!at || *at != '_') return false;
  size_t before = (size_t)(at - s->text);
  char *text = malloc(strlen(s->text) + 3);
  if (!text) return false;
  memcpy(text, s->text, before);
  strcpy(stpcpy(text + before, "ans"), at + 1);
  free(s->text);
  s->text = text;
  return true;
}

/* `x <- 3` assigns in R; here it asks whether x is less than -3. With a blank behind the minus nobody means that. */
static void note_arrow(const char *text) {
  text += strspn(text, " \t\r\n");
  const int n = (int)strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.$");
  const char *mark = text + n + strspn(text + n, " ");
  if (n && mark > text + n && strncmp(mark, "<- ", 3) == 0)
    out_printf("(%.*s <- compares: %.*s < -…; %.*s = … assigns)\n", n, text, n, text, n, text);
}

static void run_input(Session *s, WeftInput kind) {
  char name[32];
  WeftValue *v = NULL;
  if (!s->text[strspn(s->text, " \t\r\n")]) return;
  snprintf(name, sizeof name, "<repl:%d>", ++s->number);
  session_enter(s);
  WeftStatus status;
  do status = weft_eval_line(s->vm, s->text, name, &v);
  while (status == WEFT_ERROR && weft_exit_code(s->vm) < 0 && put_answer(s));
  if (status == WEFT_INCOMPLETE) status = weft_eval(s->vm, s->text, name, &v); /* of :edit: says what is missing */
  if (weft_exit_code(s->vm) < 0) {
    if (status != WEFT_OK) show_error(s->vm);
    else if (kind != WEFT_INPUT_DECLARES) show_value(weft_display(s->vm, v));
    if (status == WEFT_OK) note_arrow(s->text);
  }
  if (status == WEFT_OK) session_keep(s);
  if (status == WEFT_OK && kind != WEFT_INPUT_DECLARES && v && strcmp(weft_type(s->vm, v), "nil") != 0) {
    weft_remember(s->vm, v);
    s->answered = true;
  }
  weft_release(s->vm, v);
}

/* What :edit gave, as if it had been entered. */
static void run_edited(Session *s) {
  prompt_history_add(s->text);
  run_input(s, weft_input(s->vm, s->text));
  forget_input(s);
}

/* One line: false, leave. */
static bool take_line(Session *s, const char *line) {
  if (!s->text && weft_input(s->vm, line) == WEFT_INPUT_COMMAND) {
    prompt_history_add(line);
    SessionEnd end = session_command(s, line);
    if (end == SESSION_RUN) run_edited(s);
    s->reset = end == SESSION_RESET;
    return end == SESSION_NONE ? run_command(s->vm, line) : !s->reset && weft_exit_code(s->vm) < 0;
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

int repl_run(WeftVM *vm, bool again) {
  Session s = {.vm = vm};
  bool terminal = isatty(STDIN_FILENO);
  if (!again) line_begin();
  complete_in(vm);
  block_in(vm);
  if (terminal && !again) prompt_history_load();
  if (!again) out_printf("weft %s   :help for help, Ctrl-D to leave\n", weft_version());
  for (bool go_on = true; go_on;) {
    char *line;
    interrupt_forget();
    switch (line_read(s.text ? "... " : "> ", !s.text, &line)) {
    case LINE_DROPPED: forget_input(&s); break;
    case LINE_GIVEN_UP: out_puts("the unfinished input is dropped\n"); break;
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
  session_end(&s);
  return s.reset ? REPL_RESET : weft_exit_code(vm) < 0 ? 0 : weft_exit_code(vm);
}
