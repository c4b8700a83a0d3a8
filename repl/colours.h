/* colours.h — texts in the colours of a terminal, where it has some and NO_COLOR does not forbid them. */
#ifndef WEFT_REPL_COLOURS_H
#define WEFT_REPL_COLOURS_H

#include <stdbool.h>

enum {
  COLOUR_NONE, COLOUR_BOLD, COLOUR_DIM, COLOUR_MATCH, COLOUR_PROMPT, COLOUR_ERROR,
  COLOUR_PAINT /* and behind it: of a WeftPaint */
};

bool colours_on(int fd);               /* is it a terminal with colours? */
const char *colour_code(int colour);   /* the sequence that begins it; of COLOUR_NONE, that ends all */
/* An error's text: its kind and its carets red, places and frames dim. To be freed; NULL: there is no memory. */
char *coloured_error(const char *text);
/* What the prompt shows of a value: the line with its dtype and shape dim. To be freed. */
char *coloured_value(const char *text);

#endif
