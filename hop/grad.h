/* grad.h — grad, value_and_grad, vjp, jvp, stop_gradient: on the eager tape and in a trace. */
#ifndef WEFT_HOP_GRAD_H
#define WEFT_HOP_GRAD_H

#include "hop/hop.h"

WeftStatus eager_grad(Vm *vm, Value *args, Value *out);
WeftStatus eager_value_and_grad(Vm *vm, Value *args, Value *out);
WeftStatus eager_vjp(Vm *vm, Value *args, Value *out);
WeftStatus eager_jvp(Vm *vm, Value *args, Value *out);
WeftStatus eager_stop_gradient(Vm *vm, Value *args, Value *out);

WeftStatus call_grad(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out);
WeftStatus call_pullback(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out);

Outcome record_make_grad(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_stop_gradient(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_vjp(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_pull(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out);
Outcome record_grad(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out);

#endif
