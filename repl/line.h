/* line.h — one line of input at a prompt, by readline. */
#ifndef WEFT_REPL_LINE_H
#define WEFT_REPL_LINE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum LineEnd {
  LINE_WHOLE,   /* the Enter key, or the end of a line */
  LINE_OVER,    /* Ctrl-D on an empty line, or the end of input */
  LINE_DROPPED, /* Ctrl-C */
  LINE_GIVEN_UP /* Ctrl-D in an input of several lines */
} LineEnd;

void line_begin(void); /* once, before the first line */
/* Behind a line that was pasted: what the next one begins with, if it is a word or an operator that begins no
 * statement; else "". */
const char *line_next_word(void);
/* What was typed and read ahead, for a program that reads input (WeftOptions.input). */
ptrdiff_t line_input(void *context, char *to, size_t room);
/* `lone`: it goes on with none that was read before. *line: to be freed; NULL but for LINE_WHOLE and LINE_GIVEN_UP. */
LineEnd line_read(const char *prompt, bool lone, char **line);
int line_width(void); /* columns of the window */
bool line_keys_wait(void); /* is more typed already, as in a paste? */

#endif
