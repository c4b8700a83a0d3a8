/* abstract.h — calls on types alone: the recorder runs a function on values of the right types and its graph is
 * thrown away. */
#ifndef WEFT_TRACER_ABSTRACT_H
#define WEFT_TRACER_ABSTRACT_H

#include "tracer/record/record.h"

/* What f gives on values like args (borrowed), without running it. Error: memory. */
WeftStatus record_abstract(Vm *vm, Value f, const Value *args, u32 nargs, AbstractCall *out) MUST_USE;

/* The value of an abstract one, zeros in its leaves, as what a call on types alone gives; *out: owned. False: not
 * known, or memory was refused (with an error in the VM). */
bool abstract_value(Recorder *r, Av a, u32 depth, Value *out);
bool abstract_number(Recorder *r, const ArrayType *t, Value *out);

#endif
