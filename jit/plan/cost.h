/* cost.h — inside jit/: what a run of a kernel moves and computes, counted from its loop IR and the arguments of the
 * run. */
#ifndef WEFT_JIT_COST_H
#define WEFT_JIT_COST_H

#include "jit/loops/loops.h"

typedef struct LoopCost {
  u64 written; /* of the bytes */
  u64 bytes; /* loaded and stored, each access as often as it is made */
  u64 moved; /* bytes of lines: places that lie apart have a line each */
  u64 flops; /* operations on floats; fma is two, a `math` function one; of a `while` one trip, of an `if` both arms */
  u64 maths; /* of the flops, those that are `math` functions */
} LoopCost;

/* The run kernel(args, lo, hi). Adds to *sum. */
void loops_cost(const LoopFn *fn, const u64 *args, i64 lo, i64 hi, LoopCost *sum);

/* Trips that stand next to each other read what lies next to each other, over and over: columns, down their rows. */
bool loops_go_down(const LoopFn *fn);

#endif
