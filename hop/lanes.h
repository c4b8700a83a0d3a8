/* lanes.h — parts of arrays along an axis, and arrays of parts: what scan, vmap and associative_scan share. Tracked
 * values stay tracked. */
#ifndef WEFT_HOP_LANES_H
#define WEFT_HOP_LANES_H

#include "vm/vm.h"

typedef VEC(Value) Lanes; /* owned values */

void lanes_free(Vm *vm, Lanes *l);
bool lanes_push(Vm *vm, Lanes *l, Value v) MUST_USE; /* consumes v; false: memory, an error stands */
/* Part `at` of x along the axis (not negative): *out owned. */
WeftStatus lane_slice(Vm *vm, Value x, i64 axis, i64 at, Value *out) MUST_USE;
/* Every step-th of the items (borrowed), count in all, joined along a new axis. Numbers come to the device, arrays are
 * joined where they lie. */
WeftStatus lanes_stack(Vm *vm, const Value *items, u32 count, u32 step, bool reverse, i64 axis, u32 device,
                       Value *out) MUST_USE;
/* The first device but the processor that leaves lie on. */
u32 lanes_device(const Value *leaves, u32 count);
/* *v, which is replaced, on the device; the processor: as it is. After an error it holds nothing. */
WeftStatus lanes_taken(Vm *vm, u32 device, Value *v) MUST_USE;

#endif
