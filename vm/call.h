/* call.h — binding arguments to parameters, and calls of what is no closure. */
#ifndef WEFT_VM_CALL_H
#define WEFT_VM_CALL_H

#include "vm/vm.h"

/* Positional and named arguments; names NULL: all positional, names[i] 0: this one is. */
typedef struct Args {
  Value *values;
  const Name *names;
  u32 count;
} Args;

/* Fills params[0 … nparams-1] of a prototype: holes where a default stands, a list for ...rest. Arguments are moved
 * out of args (which then reads nil) also when it fails. */
WeftStatus bind_closure(Vm *vm, const Proto *p, Args args, Value *params) MUST_USE;

/* Calls a built-in, host function, transform or dtype. Arguments are moved out of args. */
WeftStatus call_native(Vm *vm, Value fn, Args args, Value *out) MUST_USE;
/* The same for a built-in with positional arguments. */
WeftStatus call_builtin(Vm *vm, u32 op, Value *args, u32 count, Value *out) MUST_USE;

WeftStatus call_not_function(Vm *vm, Value v); /* raises the error that v was called */

/* Arguments of a CALL descriptor with their spreads, gathered. `window`: function, then argc registers; they are
 * moved out. skip: leave out the first (METHOD). The result's memory is released with args_free. */
typedef struct Gathered {
  VEC(Value) values;
  VEC(Name) names;
} Gathered;
WeftStatus args_gather(Vm *vm, const Desc *d, Value *window, bool skip, Gathered *out) MUST_USE;
void args_free(Vm *vm, Gathered *g); /* drops what is still in it */
static inline Args args_of(const Gathered *g) { return (Args){g->values.data, g->names.data, g->values.count}; }

#endif
