/* tree.h — pytrees of values: nested lists and records of arrays and numbers. */
#ifndef WEFT_HOP_TREE_H
#define WEFT_HOP_TREE_H

#include "vm/vm.h"

enum { TREE_DEPTH = 200 };

static inline bool tree_is_leaf(Value v) { return v.kind == V_NUM || v.kind == V_ARRAY || v.kind == V_TRACKED; }

typedef VEC(Value) Leaves; /* borrowed values */

/* Appends the leaves in order. Errors: limit (too deep), memory. */
WeftStatus tree_leaves_of(Vm *vm, Value t, Leaves *out) MUST_USE;
/* The same tree with its leaves replaced in order; replacements are borrowed. *out owned. */
WeftStatus tree_with(Vm *vm, Value t, const Value *leaves, u32 *next, Value *out) MUST_USE;
/* Have both the same structure (leaves may differ)? */
bool tree_same(Vm *vm, Value a, Value b);
/* The error of trees that are not the same, of kind type; or the program's end, for which they were not compared. */
WeftStatus tree_error(Vm *vm, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Type of a leaf, of what a tracked one stands for. */
void tree_leaf_type(Value leaf, ArrayType *t);
/* A zero of the type; arrays are stretched from one element. *out owned. */
WeftStatus tree_zero(Vm *vm, const ArrayType *t, Value *out) MUST_USE;
/* The leaves of *t (owned) in the dtype and weakness of those of `types`; *changed: some had others. `who` is the
 * construct, for errors: a weak integer that does not fit its dtype (value). */
WeftStatus tree_take_types(Vm *vm, const char *who, Value types, Value *t, bool *changed) MUST_USE;
void leaves_free(Vm *vm, Leaves *l); /* drops nothing but the vector */

#endif
