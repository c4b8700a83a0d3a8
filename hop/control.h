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
Outcome record_construct_call(Recorder *r, u32 op, const Av *params, Av *out);

#endif
