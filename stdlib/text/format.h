/* format.h — values as text: literals as `print` shows them, and Python's format specs. */
#ifndef WEFT_STDLIB_FORMAT_H
#define WEFT_STDLIB_FORMAT_H

#include "stdlib/stdlib.h"

/* format_value is in stdlib.h. Values nested deeper than FORMAT_DEPTH show as `…`. */
enum { FORMAT_DEPTH = 200, FORMAT_ELEMENTS = 1000, FORMAT_EDGE = 3 };
void format_number(Value v, Buf *out); /* V_NUM, or c128 of rank 0; floats in the fewest digits that read back */
void format_float(f64 x, u32 dtype, Buf *out); /* a number of that dtype */

/* The digits of x >= 0 that read back as that dtype, without zeros at their end, and how many of them stand before the
 * point: 0.001 is "1", -2. */
enum { SHORTEST_ROOM = 48 };
u32 format_shortest(f64 x, u32 dtype, char *digits, int *point);
/* Takes what printf made by "%.*e" to its digits, in place. */
u32 format_digits(char *text, int *point);

typedef void (*ElementFn)(void *ctx, Value v, Buf *out);
/* The array as its literal, each element by `element`. */
void format_elements(Vm *vm, Value v, ElementFn element, void *ctx, Buf *out);

/* The hook of the VM for f-strings: v by a spec of Python's (spec.c), by element on arrays. Errors: value. */
WeftStatus format_hook(Vm *vm, Value v, const char *spec, size_t len, Value *out);

#endif
