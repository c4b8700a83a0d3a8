/* counts.h — bincount of what a kernel computes, block by block: the positions are counted while they lie in the
 * cache, and never become an array. Integer counts alone, which are the same in any order. */
#ifndef WEFT_JIT_COUNTS_H
#define WEFT_JIT_COUNTS_H

#include "jit/plan/plan.h"

/* Puts a `counts` step before each alloc, kernel and bincount that follow each other, where nobody else reads the
 * positions. Before the plan is finished. False: memory was refused. */
bool counts_join(Plan *p) MUST_USE;

/* Runs the kernel step behind a `counts` step, whose array argument number `out` is counted; at least `least` bins.
 * *done false: it was not done and has to be done in the ordinary way, which also finds what is wrong. WEFT_ERROR:
 * a poll raised, or memory was refused. */
typedef struct CountsRun {
  const PlanKernel *k;
  u64 *words;
  u32 count, out;
  i64 trips, least;
  bool parallel;
} CountsRun;
WeftStatus counts_run(Vm *vm, const CountsRun *c, Value *out, bool *done) MUST_USE;

#endif
