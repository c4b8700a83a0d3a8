/* native_hoist.h — inside jit/native/: where a function's loops stand, and what they know before their first trip. */
#ifndef WEFT_JIT_NATIVE_HOIST_H
#define WEFT_JIT_NATIVE_HOIST_H

#include "jit/native/native.h"

enum { HOIST_TERMS = 4, HOIST_CHECKS = 48, HOIST_LOOPS = 4, HOIST_DEPTH = 6 };

typedef struct Sum { /* modulo 2^64 */
  u32 plus[HOIST_TERMS], minus[HOIST_TERMS];
  u32 pluses, minuses;
  u64 constant;
} Sum;

/* x < y, unsigned, where each of `trips` is not 0: counts of trips, the condition of a `while` */
typedef struct Hoisted {
  Sum x, y;
  u32 trips[HOIST_LOOPS], loops;
  u32 head; /* the loop that it is made before; 0: it has gone further out */
} Hoisted;

typedef struct Hoist {
  LoopFn *fn;
  u32 *where, *end; /* per node: position in the body; of heads: of their END */
  u32 *poll;        /* per head: its first statement, a poll whose values are known before the loop; 0 */
  u8 *dropped;      /* per node: a check that is made further out */
  u32 nodes;        /* as long as these */
  u32 *body, body_count;
  Hoisted checks[HOIST_CHECKS];
  u32 count;
} Hoist;

/* Where everything stands in the function as it is; `body`: as it is now, a copy. NULL: memory was refused. */
Hoist *hoist_read(Native *n);
/* Is the value the same in all trips, and can it be had before the loop. `first`: the loop's own index and what it
 * carries count, as the first trip has them. */
bool hoist_known(const Hoist *h, u32 id, u32 loop, bool first, u32 depth);
u32 hoist_poll(const Hoist *h, u32 loop); /* the poll that the body begins with, whose values are so known; 0 */
/* native_short.c: a copy of a loop in which inner loops of a few trips are statements, behind the end of the function's
 * body. Its head; 0: there is none. */
u32 native_written_out(Native *n, const Hoist *h, u32 loop);
u32 hoist_before(Hoist *h, u32 id, u32 loop); /* a value before the loop, as its first trip has it */

#endif
