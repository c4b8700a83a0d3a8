/* contract.h — sums of products over axes of two arrays, of which one is a view that no matrix shows: windows of an
 * array, a transposed one. What a block of columns needs of it is copied as the block's turn comes, so that the copy
 * stays in the caches and the whole is never there. */
#ifndef WEFT_STDLIB_CONTRACT_H
#define WEFT_STDLIB_CONTRACT_H

#include "vm/vm.h"

/* How far apart the elements along one axis are, in the view and in the result; 0: it does not have the axis. */
typedef struct ContractAxis {
  i64 dim, y, c;
} ContractAxis;

/* c[batch, rows, columns] = the sum over terms of x[batch, row, term] * y[batch, term, column], of f32 or f64. x is a
 * stack of matrices; the axes of y and c lie anyhow. Strides in elements. */
typedef struct Contraction {
  u32 dtype;
  const char *x, *y;
  char *c;
  i64 stack, row, along; /* of x: from matrix to matrix, row to row, term to term */
  u32 ranks[4];          /* axes of the batch, rows, terms and columns, which stand in `axes` one after another */
  ContractAxis axes[2 * ARRAY_MAX_RANK];
} Contraction;

/* All axes have elements. Each element is a sum by fma in the order of its terms, whatever the blocks are. */
WeftStatus contract_blocks(Vm *vm, const Contraction *k) MUST_USE;

#endif
