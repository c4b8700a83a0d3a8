/* install.c — puts the constructs into a VM: the tape, calls of transformed functions, trace rules into the tracer.
 * Their eager rules are rows of ops.def like any other. */
#include "hop/control.h"
#include "hop/custom.h"
#include "hop/grad.h"
#include "hop/jacobian.h"
#include "hop/pull_loop.h"
#include "hop/tape.h"
#include "hop/vmap.h"

WeftStatus hop_install(Vm *vm) {
  Tracer *t = tracer_of(vm);
  vm->tape = &tape_hooks;
  vm->transforms[TF_grad] = call_grad;
  vm->transforms[TF_value_and_grad] = call_grad;
  vm->transforms[TF_vmap] = call_vmap;
  vm->transforms[TF_jacfwd] = vm->transforms[TF_jacrev] = vm->transforms[TF_hessian] = call_jacobian;
  vm->transforms[TF_custom_vjp] = vm->transforms[TF_checkpoint] = call_custom;
  vm->transforms[TF_pullback] = call_pullback;
  t->constructs[OP_cond] = record_cond;
  t->constructs[OP_while_loop] = record_while_loop;
  t->constructs[OP_fori_loop] = record_fori_loop;
  t->constructs[OP_scan] = record_scan;
  t->constructs[OP_associative_scan] = record_associative_scan;
  t->constructs[OP_call] = record_construct_call;
  t->constructs[OP_map] = record_map;
  t->constructs[OP_tree_map] = record_tree_map;
  t->constructs[OP_tree_leaves] = record_tree_leaves;
  t->constructs[OP_tree_reduce] = record_tree_reduce;
  t->constructs[OP_grad] = record_make_grad;
  t->constructs[OP_value_and_grad] = record_make_grad;
  t->constructs[OP_stop_gradient] = record_stop_gradient;
  t->constructs[OP_jacfwd] = t->constructs[OP_jacrev] = t->constructs[OP_hessian] = record_make_jacobian;
  t->constructs[OP_jvp] = record_jvp;
  t->constructs[OP_vjp] = record_vjp;
  t->transforms[TF_pullback] = record_pull;
  t->constructs[OP_custom_vjp] = t->constructs[OP_checkpoint] = record_make_custom;
  t->constructs[OP_with_hook] = record_with_hook;
  t->transforms[TF_jacfwd] = t->transforms[TF_jacrev] = t->transforms[TF_hessian] = record_jacobian;
  t->transforms[TF_custom_vjp] = t->transforms[TF_checkpoint] = record_custom;
  t->constructs[OP_vmap] = record_make_vmap;
  t->whole = record_lanes;
  t->list_room = record_list_room;
  t->transforms[TF_vmap] = record_vmap;
  t->transforms[TF_grad] = record_grad;
  t->transforms[TF_value_and_grad] = record_grad;
  return WEFT_OK;
}
