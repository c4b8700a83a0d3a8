/* block.h — the input at a terminal that can move its cursor: all its lines shown and edited as one block, in colours,
 * with the bracket that belongs to the one at the cursor. On other terminals readline shows one line. */
#ifndef WEFT_REPL_BLOCK_H
#define WEFT_REPL_BLOCK_H

#include <stdbool.h>

#include "api/weft.h"

/* Before readline is initialized: binds the keys. False: the terminal cannot do it, and nothing was bound. */
bool block_begin(void);
/* Behind it: readline looks at the terminal only while its own redisplay is there. */
void block_start(void);
bool block_used(void);
void block_in(WeftVM *vm); /* whose rules and names are meant */
/* The prompt of a line that begins in the first column. `lone`: no line was given before that it goes on with, so an
 * input that is not whole stays here. */
void block_open(const char *prompt, bool lone);
void block_close(const char *text); /* shows all of it, the cursor behind its end, and ends the row */
void block_drop(void);              /* the same with what was typed so far, after Ctrl-C */
void block_moved(void);             /* somebody else wrote to the terminal: the cursor begins a row of its own */
void block_resized(void);           /* readline knows the new size */
bool block_given_up(void);          /* Ctrl-D left an input of several lines; asked once */
void block_catch_up(void);          /* before more keys are waited for: what they hid is drawn */
/* The tab key behind a word. */
void block_complete(void);

#endif
