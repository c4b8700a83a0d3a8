/* session.h — the inputs of a session, and the commands on them: :save, :edit, :history, :reset; :show. */
#ifndef WEFT_REPL_SESSION_H
#define WEFT_REPL_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "api/weft.h"

typedef struct Session {
  WeftVM *vm;
  char *text; /* lines of an input that is not finished; in front of running it, all of it */
  int number; /* of inputs, for the names in messages */
  char *last; /* input, as it was entered */
  char *kept; /* those that ran without an error, one below the other */
  size_t kept_len;
  bool answered; /* there is a last value */
  bool reset;    /* :reset ended the session */
} Session;

void session_enter(Session *s); /* s->text is about to run */
void session_keep(Session *s);  /* it ran */
void session_end(Session *s);

typedef enum SessionEnd {
  SESSION_NONE, /* the line is another command */
  SESSION_DONE,
  SESSION_RUN, /* s->text is to be run */
  SESSION_RESET
} SessionEnd;

SessionEnd session_command(Session *s, const char *line);

#endif
