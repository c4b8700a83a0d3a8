/* ref.h — cells, and the collector of cycles through them. */
#ifndef WEFT_VM_REF_H
#define WEFT_VM_REF_H

#include "vm/vm.h"

void ref_unlink(Vm *vm, Ref *r);    /* takes a dying cell out of the list of all cells */
void ref_clear_all(Vm *vm);         /* empties every cell: no cycle is left (the VM ends) */

#endif
