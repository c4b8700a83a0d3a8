/* repl.h — the interactive part of the program. */
#ifndef WEFT_REPL_REPL_H
#define WEFT_REPL_REPL_H

#include "api/weft.h"

enum { REPL_RESET = -1 };
/* Until end of input or exit(); returns the exit code, or REPL_RESET: it is to go on, `again`, with another VM. */
int repl_run(WeftVM *vm, bool again);
void interrupt_forget(void); /* what Ctrl-C asked for has been done (main.c) */

#endif
