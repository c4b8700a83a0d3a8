/* vmap.h — vmap and associative_scan. */
#ifndef WEFT_HOP_VMAP_H
#define WEFT_HOP_VMAP_H

#include "hop/hop.h"

WeftStatus eager_vmap(Vm *vm, Value *args, Value *out);
WeftStatus eager_associative_scan(Vm *vm, Value *args, Value *out);
WeftStatus call_vmap(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out);

Outcome record_make_vmap(Recorder *r, u32 op, const Av *params, Av *out);
Outcome record_vmap(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out);
bool record_lanes(Recorder *r); /* what is left to do once a recording is whole; false: memory */

#endif
