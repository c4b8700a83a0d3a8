/* end.h — hand-off to api/: the end of a VM in two halves, between which arrays may still be held elsewhere. */
#ifndef WEFT_VM_END_H
#define WEFT_VM_END_H

#include "vm/vm.h"

/* Modules, programs and hooks go, as in vm_free. What may come after it is that arrays are dropped, and
 * vm_free_memory. Once. */
void vm_end(Vm *vm);
/* The rest of vm_free. */
void vm_free_memory(Vm *vm);

#endif
