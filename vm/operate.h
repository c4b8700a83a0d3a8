/* operate.h — operators on any values, and the way to kernels. */
#ifndef WEFT_VM_OPERATE_H
#define WEFT_VM_OPERATE_H

#include "vm/vm.h"

/* args[0] BC args[1]. As for a kernel: args are owned by the caller, may be taken (a hole stays) when it is
 * the last holder, and are as they were when it fails. */
WeftStatus operate_binary(Vm *vm, u32 bc, Value *args, Value *out) MUST_USE;
WeftStatus operate_unary(Vm *vm, u32 bc, Value *args, Value *out) MUST_USE;

int text_order(const Text *a, const Text *b);
WeftStatus value_in(Vm *vm, Value item, Value container, bool *out) MUST_USE;

#endif
