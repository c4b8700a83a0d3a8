/* line.h — one line of input at a prompt, by readline. */
#ifndef WEFT_REPL_LINE_H
#define WEFT_REPL_LINE_H

#include <stddef.h>

typedef enum LineEnd {
  LINE_WHOLE,   /* the Enter key, or the end of a line */
  LINE_OVER,    /* Ctrl-D on an empty line, or the end of input */
  LINE_DROPPED, /* Ctrl-C */
} LineEnd;

void line_begin(void); /* once, before the first line */
/* Behind a line that was pasted: what the next one begins with, if it is a word or an operator that begins no
 * statement; else "". */
const char *line_next_word(void);
/* What was typed and read ahead, for a program that reads input (WeftOptions.input). */
ptrdiff_t line_input(void *context, char *to, size_t room);
LineEnd line_read(const char *prompt, char **line); /* *line: to be freed; NULL but for LINE_WHOLE */

#endif
