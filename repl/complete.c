/* complete.c — the tab key (see complete.h): the library says how the line may go on, readline shows it and knows the
 * files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

#include "repl/complete.h"

static WeftVM *completing;
static WeftCompletion offers = {.size = sizeof offers};

static char *next_offer(const char *prefix, int again) {
  static size_t at;
  (void)prefix;
  if (!again) at = 0;
  return at < offers.count ? strdup(offers.words[at++]) : NULL; /* readline frees it */
}

static char **complete(const char *text, int start, int end) {
  (void)start;
  (void)weft_complete(completing, rl_line_buffer, (size_t)end, &offers);
  rl_attempted_completion_over = 1;
  rl_completion_append_character = offers.blank ? ' ' : '\0';
  if (!offers.files) return offers.count ? rl_completion_matches(text, next_offer) : NULL;
  rl_filename_completion_desired = 1;
  return rl_completion_matches(text, rl_filename_completion_function);
}

/* A name ends at everything that cannot stand in one; the name of a file, at blanks. */
static char *breaks(void) {
  static char for_names[] = " \t\n\"'`!#$%&()*+,-./:;<=>?@[\\]^{|}~", for_files[] = " \t\n";
  (void)weft_complete(completing, rl_line_buffer, (size_t)rl_point, &offers);
  return offers.files ? for_files : for_names;
}

void complete_begin(void) {
  rl_attempted_completion_function = complete;
  rl_completion_word_break_hook = breaks;
  rl_completer_quote_characters = "\"";
  rl_variable_bind("expand-tilde", "on"); /* programs do not expand it */
}

void complete_in(WeftVM *vm) { completing = vm; }
