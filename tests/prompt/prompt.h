/* prompt.h — the tests of the prompt, a list for each file, and what they all need. */
#ifndef WEFT_TESTS_PROMPT_PROMPT_H
#define WEFT_TESTS_PROMPT_PROMPT_H

#include "tests/prompt/session.h"

typedef struct Case {
  const char *name; /* NULL behind the last one */
  void (*run)(void);
} Case;

extern const Case shown_cases[], typing_cases[], ends_cases[], history_cases[], terminals_cases[], commands_cases[];

/* Files of the test's own folder. */
void write_file(const char *name, const char *text);
char *read_file(const char *name); /* to be freed; empty when there is none */
const char *path_of(const char *name); /* lives until the next call */

void key(Session *s, char c);
bool row_begins(const Session *s, int y, const char *text);
Session open_prompt(const Setup *setup); /* the prompt stands there */
void leave(Session *s); /* by Ctrl-D, with status 0 */

void completes(Session *s, const char *typed, const char *wanted); /* by the tab key */
extern const char pasted[]; /* a function of several lines */

#endif
