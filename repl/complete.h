/* complete.h — what the tab key offers. */
#ifndef WEFT_REPL_COMPLETE_H
#define WEFT_REPL_COMPLETE_H

#include "api/weft.h"

void complete_begin(void);
void complete_in(WeftVM *vm); /* whose names are offered */

#endif
