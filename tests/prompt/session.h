/* session.h — the program `weft` in a pseudo-terminal, and who sits before it. Nothing here waits for a fixed time:
 * a wait ends when what is expected is there, or after a generous limit with a failure. */
#ifndef WEFT_TESTS_PROMPT_SESSION_H
#define WEFT_TESTS_PROMPT_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/prompt/screen.h"

typedef struct Session {
  pid_t pid;
  int fd; /* of the terminal's other side; -1: closed */
  Screen screen;
  int from;    /* the row where the cursor stood when something was last sent */
  bool ended;  /* the program is gone */
  int status;  /* of waitpid */
} Session;

typedef struct Setup {
  const char *term;            /* NULL: xterm */
  int width, height;           /* 0: 80 and 24 */
  const char *const *args;     /* behind the program's name, NULL at the end; NULL: none */
  const char *history;         /* NULL: a file of the test's own, which session_open removes; else WEFT_HISTORY */
  const char *more;            /* NAME=VALUE, one more variable of the environment; NULL */
} Setup;

void session_open(Session *s, const Setup *setup);
void session_close(Session *s); /* kills what still runs */

void type(Session *s, const char *keys);
void type_bytes(Session *s, const char *bytes, size_t n);

/* Waits end early, false and told once, when the test has failed already. */
bool wait_row(Session *s, const char *text);    /* until the cursor's row is this text */
bool wait_text(Session *s, const char *text);   /* until a row from s->from on holds this text */
bool wait_prompt(Session *s);                   /* until the cursor stands behind a fresh `> ` on a row below s->from */
bool wait_more(Session *s);                     /* `... ` and blanks */
bool wait_column(Session *s, int x);             /* until the cursor stands there */
bool wait_end(Session *s, int code);            /* until the program ended with this exit status */
bool wait_gone(Session *s);                     /* until it ended somehow; the terminal is closed already */

/* Types a line, Enter and waits for the prompt. What was written between, rows joined by newlines; lives until the next
 * call. */
const char *ask(Session *s, const char *line);
bool said(Session *s, const char *line, const char *wanted); /* ask gives exactly this */
bool told(Session *s, const char *line, const char *part);   /* ask gives something that holds this */

/* A test: begin, then checks; the first that fails names the reason. */
void test(const char *name);
bool must(bool good, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int test_result(void); /* ends the last test; the exit status */

extern const char *own_folder; /* the tests' own: home and current folder of the program */

enum { CTRL_A = 1, CTRL_C = 3, CTRL_D = 4, CTRL_E = 5, CTRL_G = 7, TAB = 9, CTRL_R = 18, CTRL_U = 21, CTRL_Z = 26 };

#endif
