/* loops_forward.h — loads whose value a loop can carry, found for loops_simplify. */
#ifndef WEFT_JIT_LOOPS_FORWARD_H
#define WEFT_JIT_LOOPS_FORWARD_H

#include "jit/loops/loops.h"

enum { FORWARDS = 8, FORWARD_TERMS = 6 };

typedef struct Forward {
  u32 head;  /* a `for` of one axis */
  u32 store; /* the only one to its buffer in the loop, in every trip; 0: the load gives the same in all trips */
  /* gives what `store` stored a trip before, but in the first trip; every trip comes by, and no check stands before
   * it */
  u32 load;
  i64 constant; /* where it is in the first trip: this and these, of values from before the loop */
  u32 count;
  LoopTerm terms[FORWARD_TERMS];
} Forward;

/* At most FORWARDS of a native function, those of a loop together. */
u32 loops_forwards(const LoopFn *fn, Forward *out);

#endif
