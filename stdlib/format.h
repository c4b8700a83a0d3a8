/* format.h — values as text: literals as `print` shows them, and Python's format specs. */
#ifndef WEFT_STDLIB_FORMAT_H
#define WEFT_STDLIB_FORMAT_H

#include "stdlib/stdlib.h"

/* format_value is in stdlib.h. Values nested deeper than FORMAT_DEPTH show as `…`. */
enum { FORMAT_DEPTH = 200, FORMAT_ELEMENTS = 1000, FORMAT_EDGE = 3 };
void format_number(Value v, Buf *out); /* V_NUM; floats in the fewest digits that read back */
void format_f64(f64 x, bool single, Buf *out);

/* Appends v by a spec `[[fill]align][sign][#][0][width][,][.precision][type]`, by element on arrays.
 * Errors: value (a bad spec), type (a spec that does not fit). */
WeftStatus format_spec(Vm *vm, Value v, const char *spec, size_t len, Buf *out) MUST_USE;

/* The hook of the VM for f-strings. */
WeftStatus format_hook(Vm *vm, Value v, const char *spec, size_t len, Value *out);

#endif
