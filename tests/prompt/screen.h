/* screen.h — a terminal without glass: what a program's output looks like to who sits before it. */
#ifndef WEFT_TESTS_PROMPT_SCREEN_H
#define WEFT_TESTS_PROMPT_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* A cell holds one character in UTF-8 with the marks that combine with it. What is wide takes a second cell, which is
 * empty. */
typedef struct Cell {
  char text[16];
  int colour; /* the last number of its sequence: 31 red …, 4 underlined; 0: none */
} Cell;

typedef struct Row {
  Cell *cells; /* `width` of the screen when the row was begun */
  int count;
} Row;

/* Rows are never forgotten: the screen is the last `height` of them. */
typedef struct Screen {
  Row *rows;
  int row_count, width, height, x, y; /* the cursor; y counts from the first row ever */
  bool wrap;                          /* the cursor stands behind the last column */
  char held[64];                      /* of an escape sequence or a character that is not whole yet */
  size_t held_len;
  int bells, colour;
  char picture, picture_last; /* 'P', '_': in a sixel, or a part of a picture as kitty has it; its last byte */
  int sixels, kitties;        /* that are over */
} Screen;

void screen_open(Screen *s, int width, int height);
void screen_close(Screen *s);
void screen_put(Screen *s, const char *bytes, size_t n);
/* Row y without the blanks at its end, to be freed; rows that are no longer there are empty. */
char *screen_row(const Screen *s, int y);
int screen_colour(const Screen *s, int y, int x);

#endif
