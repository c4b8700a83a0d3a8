/* deriv.h — derivative rules, written once: the eager tape and the rewrite of graphs run the same ones.
 *
 * A rule pulls the cotangents of an operation's results back to its operands by running further operations. It sees
 * values as handles (Dv, 0: none) of a Deriv: of a tape, values being computed; of a graph, values of the graph.
 * Operands and settings are bound as in graph.h (GraphArg), with handles in place of ValueIds. */
#ifndef WEFT_HOP_DERIV_H
#define WEFT_HOP_DERIV_H

#include "tracer/graph/graph.h"
#include "vm/vm.h"

typedef u32 Dv;
typedef struct Deriv Deriv;

typedef enum DerivKind { DERIV_op, DERIV_index, DERIV_update } DerivKind;

/* What is pulled back. index: operands[0]. update: operands[0] is the array, operands[1] the value written. */
typedef struct DerivNode {
  u8 kind; /* DerivKind */
  u32 op;  /* OpId; update: the operation that combines, OP_none: writes */
  const Dv *operands, *results;
  u32 count, nresults;
  GraphArg args[OP_MAX_PARAMS]; /* kind op */
  const void *index;            /* index, update: what the items are, for DerivOps */
} DerivNode;

/* What a rule may do. Every function gives 0 and sets `failed` when it could not. What adds to x, or writes to it,
 * uses x up: rules do not read it afterwards, so that it happens in place. */
typedef struct DerivOps {
  Dv (*op)(Deriv *d, u32 op, const Dv *operands, u32 count, const GraphAttr *attrs, u32 nattrs);
  ArrayType (*type)(Deriv *d, Dv x);
  Dv (*number)(Deriv *d, f64 v); /* weak */
  Dv (*size)(Deriv *d, Dim n);   /* weak */
  Dv (*zeros)(Deriv *d, const ArrayType *t);
  bool (*known)(Deriv *d, Dv x, f64 *out); /* a number of rank 0 that is known */
  bool (*same)(Deriv *d, Dim a, Dim b);
  f64 (*about)(Deriv *d, Dim n); /* a size, or what it was when it was recorded: to choose between equal ways */
  Dim (*dim)(Deriv *d, char op, Dim a, Dim b); /* '+' '-' '*' '/' */
  Dv (*part)(Deriv *d, Dv x, u32 axis, Dim start, Dim stop);
  Dv (*add_at)(Deriv *d, Dv x, u32 axis, Dv indices, Dv v); /* x with v added at indices along an axis */
  /* x with v added at index arrays, one for each axis */
  Dv (*add_items)(Deriv *d, Dv x, const Dv *indices, u32 n, Dv v);
  bool (*repeats)(Deriv *d, const DerivNode *n); /* may the index name an element twice */
  Dv (*index)(Deriv *d, const DerivNode *n, Dv x);
  Dv (*update)(Deriv *d, const DerivNode *n, u32 combine, Dv x, Dv v);
  Dv (*item)(Deriv *d, Dv list, u32 k); /* a result of an operation that gives several */
  Dv (*top)(Deriv *d, Dv x, u32 mask);  /* max(x, the axes of mask, keepdims=true); -inf where there are no elements */
} DerivOps;

struct Deriv {
  const DerivOps *to;
  Arena room; /* what one operation needs while it is pulled back: lists as long as its operands and results */
  u8 device; /* of the arrays of what is pulled back: arrays made of numbers go there */
  bool failed, refused; /* refused: for want of memory */
  const char *detail; /* what there is no rule for, more exactly; static text */
};

/* Is there a derivative to speak of: a float or complex result. */
static inline bool deriv_dtype(u32 dtype) { return dtype_kind(dtype) >= DK_FLOAT; }
/* Does the row of ops.def say that results are constant where they are defined? dtype: of the first operand. */
bool deriv_is_zero(u32 op, u32 dtype);

/* What the rule of an operation reads beside types: operand i, when those with wants[i] are wanted; a result. */
bool deriv_reads(u32 op, u32 i, const bool *wants, u32 count);
bool deriv_reads_results(u32 op, const bool *wants, u32 count);

/* n zeroed elements of `size` bytes in the room. NULL: memory was refused, and d->failed. */
void *deriv_room(Deriv *d, u32 n, size_t size) MUST_USE;

/* The lists of one operation, in the room of the Deriv. */
typedef struct DerivLists {
  Dv *operands, *results, *ct, *out;
  bool *wants;
} DerivLists;
bool deriv_lists(Deriv *d, u32 operands, u32 results, DerivLists *out) MUST_USE;

/* Cotangents of the operands with wants[i], of their types; 0: zero. ct[i] of each result, 0: zero, not all. False:
 * d->failed, or there is no rule, and *why says of what. */
bool deriv_pull(Deriv *d, const DerivNode *n, const Dv *ct, const bool *wants, Dv *out, const char **why) MUST_USE;

Dv dv_add(Deriv *d, Dv a, Dv b);
/* ct summed over what was broadcast, in the dtype of t. */
Dv deriv_fit(Deriv *d, Dv ct, const ArrayType *t);

#endif
