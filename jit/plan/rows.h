/* rows.h — kernels over short rows that are written in C, several rows side by side, in place of the code of loops
 * that would go row by row: squared distances between all rows of two matrices, and the place of the least or
 * greatest in each row. The loops define what they give, bit for bit. */
#ifndef WEFT_JIT_ROWS_H
#define WEFT_JIT_ROWS_H

#include "jit/plan/plan.h"
#include "jit/vector/vector.h"

/* The kernel for a function of exactly that form; NULL: it has another one, or the level has none. */
LoopKernelFn rows_kernel(const LoopFn *fn, VecLevel level);

/* The distances that only an argmin reads never reach memory: where the two follow each other, the first goes and
 * the second takes its arguments. Before the plan is finished. False: memory was refused. */
bool rows_join(Plan *p) MUST_USE;

#ifdef __x86_64__
#define ROWS_KERNELS(X)                                                                                            \
  X(nearest, f32) X(nearest, f64) X(distances, f32) X(distances, f64) X(argmin, f32) X(argmin, f64) X(argmax, f32) \
  X(argmax, f64)
#define ROWS_DECLARE(name, T) u64 rows_##name##_##T##_avx2(const u64 *args, i64 lo, i64 hi);
ROWS_KERNELS(ROWS_DECLARE)
#endif

#endif
