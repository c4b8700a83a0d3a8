/* reduce.h — reductions in the order of reduce_order.h, for the families that are made of them. */
#ifndef WEFT_STDLIB_REDUCE_H
#define WEFT_STDLIB_REDUCE_H

#include "stdlib/array/make.h"

/* x (borrowed: a number or array with kernels) over the axes in mask, elements converted to `compute` before:
 * *out owned, dtype `compute`. Empty: 0 or 1 for sums and products; an error for the extremes. */
WeftStatus reduce_value(Vm *vm, u32 op, ReduceKind kind, Value x, u32 compute, u32 mask, bool keepdims,
                        Value *out) MUST_USE;

/* Axes of x split for a reduction: kept ones, then reduced ones, each in order, as dims and strides. */
typedef struct Split {
  u32 kept, reduced;                         /* how many */
  i64 dims[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK]; /* kept first */
  i64 count;                                 /* elements per result */
  i64 results;
} Split;
void split_axes(Array *a, u32 mask, Split *s);
/* Number of elements under the axes in mask. */
i64 masked_count(const ArrayType *t, u32 mask);
/* The error of an operation that has to choose from elements along the axes of `mask`, where there are results and no
 * elements. */
WeftStatus reduce_some(Vm *vm, u32 op, const ArrayType *t, u32 mask) MUST_USE;

#endif
