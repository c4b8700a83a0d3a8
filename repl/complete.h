/* complete.h — what the tab key offers. */
#ifndef WEFT_REPL_COMPLETE_H
#define WEFT_REPL_COMPLETE_H

#include "api/weft.h"

void complete_begin(void);
void complete_in(WeftVM *vm); /* whose names are offered */

/* Commands of the prompt, by name: what stands behind them. */
typedef enum CommandArg { ARG_NONE, ARG_FUNCTION, ARG_CODE, ARG_FILE } CommandArg;
typedef struct Command {
  const char *name;
  CommandArg arg;
  bool needed; /* the argument */
} Command;
extern const Command commands[]; /* the last has no name (repl.c) */

#endif
