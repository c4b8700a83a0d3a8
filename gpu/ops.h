/* ops.h — inside gpu/: operations on arrays of the device, one at a time (see ops.c). */
#ifndef WEFT_GPU_OPS_H
#define WEFT_GPU_OPS_H

#include "gpu/device.h"

WeftStatus device_op(Vm *vm, u32 op, Value *args, Value *out);

#endif
