/* output.h — what the program writes to standard output. Signals lose nothing of it and end nothing. */
#ifndef WEFT_REPL_OUTPUT_H
#define WEFT_REPL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* A line is written when it ends; on a terminal each piece at once. */
void out_put(const char *text, size_t len);
void out_puts(const char *text); /* without an end of line of its own */
void err_puts(const char *text); /* to standard error, whole */
void out_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void out_flush(void);
void out_ask(void);        /* out_flush, before input is waited for: who types ends the line */
void out_fresh_line(void); /* ends a line that was begun */
/* after an interrupt: what waits is not wanted any more, and the terminal may show ^C in the line */
void out_drop(void);
int out_error(void);       /* 0, or the errno of the first write that failed: what came later is dropped */
int out_finish(void);      /* all that waits is written, unless it is interrupted; out_error() */

/* Ctrl-C came and nobody has dealt with it yet (main.c). A write that waits gives up then: what is left waits for the
 * next. */
bool interrupt_pending(void);

#endif
