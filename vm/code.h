/* code.h — prototypes made runnable in one VM. */
#ifndef WEFT_VM_CODE_H
#define WEFT_VM_CODE_H

#include "vm/vm.h"

/* The shape of a KEYS descriptor, borrowed; NULL: it has no shared one (many keys, or one twice). False: memory was
 * refused (error raised). */
bool code_shape(Vm *vm, Code *c, u32 desc, Shape **out) MUST_USE;
/* Empties the registers of `base` that are not live before `pc`, unless memory for finding them was refused. */
void code_clear_dead(Vm *vm, Code *c, Value *base, u32 pc);

#endif
