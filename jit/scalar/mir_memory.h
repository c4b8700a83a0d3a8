/* mir_memory.h — memory that is given back at once, whoever held it: for code that a jump may leave in the middle. */
#ifndef WEFT_JIT_MIR_MEMORY_H
#define WEFT_JIT_MIR_MEMORY_H

#include "parser/base.h"

/* An allocator that knows its blocks. It must not move while it has any. */
typedef struct HeldMemory {
  Allocator base;
  Allocator *from;
  struct HeldBlock *newest;
} HeldMemory;

void held_init(HeldMemory *h, Allocator *from);
void held_release(HeldMemory *h); /* frees every block that is left; it can be used again */

#endif
