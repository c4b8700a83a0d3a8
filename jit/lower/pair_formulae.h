/* pair_formulae.h — functions of complex numbers as graphs of real ones: what pairs.c puts in their places.
 *
 * Nodes are made at the cursor of the graph. A part that is 0 means that memory was refused. */
#ifndef WEFT_JIT_PAIR_FORMULAE_H
#define WEFT_JIT_PAIR_FORMULAE_H

#include "jit/lower/compile.h"

typedef struct Pair {
  ValueId re, im;
} Pair;

static inline ValueId unary(Graph *g, u32 op, ValueId a) { return a ? graph_op1(g, op, a) : 0; }
static inline ValueId binary(Graph *g, u32 op, ValueId a, ValueId b) { return a && b ? graph_op2(g, op, a, b) : 0; }
static inline ValueId pick(Graph *g, ValueId c, ValueId a, ValueId b) {
  return c && a && b ? graph_op3(g, OP_where, c, a, b) : 0;
}

Pair pair_product(Graph *g, Pair x, Pair y);
Pair pair_quotient(Graph *g, Pair x, Pair y);
Pair pair_quotient_by_real(Graph *g, Pair x, ValueId y);
/* x to a power that is a number known here. False: it stays as it is. */
bool pair_power(Graph *g, Pair x, ValueId exponent, Pair *out);
/* Functions of one number. False: it stays as it is. */
bool pair_function(Graph *g, u32 op, Pair x, Pair *out);

#endif
