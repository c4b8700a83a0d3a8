/* custom.h — functions with derivatives of their own: custom_vjp, checkpoint, with_hook. */
#ifndef WEFT_HOP_CUSTOM_H
#define WEFT_HOP_CUSTOM_H

#include "hop/hop.h"
#include "hop/tape.h"

WeftStatus eager_custom_vjp(Vm *vm, Value *args, Value *out);
WeftStatus eager_checkpoint(Vm *vm, Value *args, Value *out);
WeftStatus eager_with_hook(Vm *vm, Value *args, Value *out);
WeftStatus call_custom(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out);
/* The way back over an entry of kind custom, checkpoint or hook. */
WeftStatus custom_pull(Vm *vm, const Tape *t, const TapeEntry *e, const char *who, Value *grads) MUST_USE;

Outcome record_make_custom(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_custom(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out);
Outcome record_with_hook(Recorder *r, u32 op, const Av *params, Av *out);

#endif
