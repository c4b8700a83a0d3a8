/* repl.h — the interactive part of the program. */
#ifndef WEFT_REPL_REPL_H
#define WEFT_REPL_REPL_H

#include "api/weft.h"

int repl_run(WeftVM *vm);    /* until end of input or exit(); returns the exit code */
void interrupt_forget(void); /* what Ctrl-C asked for has been done (main.c) */

#endif
