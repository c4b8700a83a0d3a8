/* steps.h — build tool: math functions as bytes for the interpreter of jit/loops/math_steps.h. */
#ifndef WEFT_JIT_HOST_STEPS_H
#define WEFT_JIT_HOST_STEPS_H

#include "jit/loops/loops.h"

/* The tables of math_steps.h for the first `count` functions of the module, as C. NULL, or what cannot be told so. */
const char *steps_write(const LoopModule *m, u32 count, Buf *out);

#endif
