/* elsewhere.h — devices by name, and operations on their arrays that the processor does. */
#ifndef WEFT_VM_ELSEWHERE_H
#define WEFT_VM_ELSEWHERE_H

#include "vm/vm.h" /* which includes this at its end */

u32 device_by_name(const Vm *vm, const char *name); /* DEVICE_MAX: there is none */
static inline u32 device_default(const Vm *vm) { return (u32)(vm->ambient >> AMBIENT_DEVICE) & 0xff; }
/* The parameter `device` of a function that makes arrays; UINT32_MAX: it has none. */
u32 op_device_param(const Vm *vm, u32 op);

/* An operation that the program calls: vm_op, with arrays made where device= or the default says. */
WeftStatus op_called(Vm *vm, u32 op, Value *args, Value *out) MUST_USE;
/* It calls functions, or hands values on as they are, or looks at no element: it is done where values stand, whatever
 * device their arrays lie on. */
bool op_is_of_values(const Vm *vm, u32 op);
/* It takes any values, and shows or stores the elements of arrays: all of them come to the processor. */
bool op_shows(const Vm *vm, u32 op);
/* For DeviceHooks.op: arrays come to the processor, results go back. What it raises, eager code on the processor
 * raises. */
WeftStatus op_by_processor(Vm *vm, u32 op, Value *args, u32 device, Value *out) MUST_USE;
/* An error when arrays of another device stand beside those of this one. Numbers lie everywhere. A setting, which is
 * read and not worked on, may lie on the processor: reshape(x, [2, -1]); so may places, as in an index: x[[0]]. */
WeftStatus op_one_device(Vm *vm, u32 op, const Value *args, u32 device) MUST_USE;

#endif
