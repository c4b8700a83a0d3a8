/* wide.h — operations on dtypes that have no kernels for them but compute in a wider dtype: operands are converted,
 * the kernel runs, and what it gives is rounded. Elementwise operations do so by themselves, in strips. */
#ifndef WEFT_STDLIB_WIDE_H
#define WEFT_STDLIB_WIDE_H

#include "stdlib/array/make.h"

bool wide_may(u32 op); /* has it a kernel that some dtype reaches this way? */
/* The same of complex numbers, by their parts (parts.c); `op` takes them. */
bool wide_has_parts(u32 op, Value v); /* is it such a number, or holds one? */
WeftStatus parts_run(Vm *vm, u32 op, EagerFn kernel, Value *args, Value *out) MUST_USE;
WeftStatus wide_run(Vm *vm, u32 op, EagerFn kernel, Value *args, Value *out) MUST_USE;

#endif
