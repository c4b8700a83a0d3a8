/* control.h — eager rules and trace rules of the constructs that only steer. */
#ifndef WEFT_HOP_CONTROL_H
#define WEFT_HOP_CONTROL_H

#include "hop/hop.h"

WeftStatus eager_cond(Vm *vm, Value *args, Value *out);
WeftStatus eager_while_loop(Vm *vm, Value *args, Value *out);
WeftStatus eager_fori_loop(Vm *vm, Value *args, Value *out);
WeftStatus eager_scan(Vm *vm, Value *args, Value *out);
WeftStatus eager_call(Vm *vm, Value *args, Value *out);

Outcome record_cond(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_while_loop(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_fori_loop(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_associative_scan(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_scan(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_map(Recorder *r, u32 op, const Av *params, Av *out);
/* tree_map and tree_reduce over a list in columns: of items that are trees, or lists of one tree of each of several. */
Outcome record_map_rows(Recorder *r, Av f, Av rows, u32 trees, Av *out);
Outcome record_fold_rows(Recorder *r, Av f, Av rows, Av init, Av *out);
Outcome record_construct_call(Recorder *r, u32 op, const Av *params, Av *out);

/* record_tree.c */
Outcome record_tree_map(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_tree_leaves(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_tree_reduce(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_map_trees(Recorder *r, Av f, const Av *trees, u32 n, Av *out);  /* tree_map of n trees */
Outcome record_fold_tree(Recorder *r, Av f, Av tree, Av *acc);                 /* from *acc on, or the first leaf */

#endif
