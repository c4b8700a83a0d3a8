/* jacobian.h — jacfwd, jacrev, hessian. */
#ifndef WEFT_HOP_JACOBIAN_H
#define WEFT_HOP_JACOBIAN_H

#include "hop/hop.h"

WeftStatus eager_jacfwd(Vm *vm, Value *args, Value *out);
WeftStatus eager_jacrev(Vm *vm, Value *args, Value *out);
WeftStatus eager_hessian(Vm *vm, Value *args, Value *out);
WeftStatus call_jacobian(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out);

#endif
