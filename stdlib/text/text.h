/* text.h — numbers read from texts (text.c). */
#ifndef WEFT_STDLIB_TEXT_H
#define WEFT_STDLIB_TEXT_H

#include "parser/base.h"

/* The n bytes at s as one decimal number, inf or nan. False: they are none, or more than one. */
bool text_parse_f64(const char *s, size_t n, f64 *out);

#endif
