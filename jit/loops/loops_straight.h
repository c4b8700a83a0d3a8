/* loops_straight.h — math functions without their rare branches, for the consumers that take no control flow. */
#ifndef WEFT_JIT_LOOPS_STRAIGHT_H
#define WEFT_JIT_LOOPS_STRAIGHT_H

#include "jit/loops/loops.h"

/* In a math function the first arm of an `if` is the rare one (huge arguments, far tails). Adds two straight-line
 * functions of the same parameters to the module:
 *   NAME_usual   what the second arms give; equal to NAME where
 *   NAME_rare    is 0; it is 1 where a first arm would be taken, here or in a function that is called
 * A function without `if`, that calls none with one, stays as it is and `*made` is false; so does one with a loop,
 * which nothing straight can replace (`*made` is false, loop_math_is_straight says which case it is). Callees must
 * have gone through this before. */
WeftStatus loops_straighten(LoopModule *m, const LoopFn *fn, bool *made, Buf *why) MUST_USE;

/* No `if` and no loop, here or in what it calls. */
bool loop_math_is_straight(const LoopFn *fn);

#endif
