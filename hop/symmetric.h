/* symmetric.h — the two halves of a matrix of second derivatives agree to the bit: what the one half holds is stored in
 * the other too. Both are right, but their sums were added in another order. */
#ifndef WEFT_HOP_SYMMETRIC_H
#define WEFT_HOP_SYMMETRIC_H

#include "tracer/graph/graph.h"
#include "vm/vm.h"

/* cells[i * count + j]: second derivatives by leaf i and leaf j of the argument, for one leaf of the result. Its axes
 * come first, behind them those of leaf i and those of leaf j; ranks[i]: how many axes leaf i has. What lies below the
 * diagonal is replaced by what lies above it. */
WeftStatus symmetric_cells(Vm *vm, Value *cells, u32 count, const u32 *ranks) MUST_USE;

/* The same of values in a graph. False: the graph has failed. */
bool symmetric_values(Graph *g, ValueId *cells, u32 count, const u32 *ranks) MUST_USE;

#endif
