/* code.h — prototypes made runnable in one VM. */
#ifndef WEFT_VM_CODE_H
#define WEFT_VM_CODE_H

#include "vm/vm.h"

Shape *code_shape(Vm *vm, Code *c, u32 desc); /* of a KEYS descriptor: borrowed; NULL when it has no shared shape or
                                                 memory was refused (then an error stands) */
/* Empties the registers of `base` that are not live before `pc`. False when memory was refused. */
bool code_clear_dead(Vm *vm, Code *c, Value *base, u32 pc) MUST_USE;

#endif
