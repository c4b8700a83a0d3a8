/* jacobian.h — jacfwd, jacrev, hessian. */
#ifndef WEFT_HOP_JACOBIAN_H
#define WEFT_HOP_JACOBIAN_H

#include "hop/hop.h"

WeftStatus eager_jacfwd(Vm *vm, Value *args, Value *out);
WeftStatus eager_jacrev(Vm *vm, Value *args, Value *out);
WeftStatus eager_hessian(Vm *vm, Value *args, Value *out);
WeftStatus call_jacobian(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out);

Outcome record_make_jacobian(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_jacobian(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out);
Outcome record_jvp(Recorder *r, u32 op, const Av *params, Av *out);

#endif
