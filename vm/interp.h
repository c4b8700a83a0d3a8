/* interp.h — the opcode loop, for the files of this folder. */
#ifndef WEFT_VM_INTERP_H
#define WEFT_VM_INTERP_H

#include "vm/vm.h"

/* Appends the items of v (list, array, range, text) to a list. */
WeftStatus interp_extend(Vm *vm, Value *list, Value v) MUST_USE;

#endif
