/* letters.h — code points of UTF-8 texts: one after the other, blanks, the other case (letters.c). */
#ifndef WEFT_STDLIB_LETTERS_H
#define WEFT_STDLIB_LETTERS_H

#include "parser/base.h"

/* The code point at *at, which moves behind it. The text is valid UTF-8. */
u32 letters_next(const char **at);
void letters_put(u32 c, Buf *b);

/* How many bytes the blank at s takes; 0: what stands there is none, or s is the end. */
size_t letters_blank(const char *s, const char *end);

/* The letter that c is in upper case, or in lower case; c where there is none, or where there are several. */
u32 letters_case(u32 c, bool upper);

#endif
