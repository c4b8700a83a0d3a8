/* hop.h — facade of the higher-order constructs: cond, while_loop, scan …, and derivatives.
 *
 * One file per construct or group: its eager rule (`eager_NAME` of ops.def, called through vm->ops), its trace rule
 * (tracer->constructs, tracer->transforms). Nothing here knows of loop IR or kernels. */
#ifndef WEFT_HOP_HOP_H
#define WEFT_HOP_HOP_H

#include "tracer/tracer.h"
#include "vm/vm.h"

/* Fills vm->ops for the constructs, vm->transforms, vm->tape, and the tracer's tables. Error: memory. */
WeftStatus hop_install(Vm *vm) MUST_USE;

#endif
