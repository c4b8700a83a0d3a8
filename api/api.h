/* api.h — facade: the VM behind a WeftVM, for tests. */
#ifndef WEFT_API_API_H
#define WEFT_API_API_H

#include "api/weft.h"
#include "vm/vm.h"

Vm *weft_vm_of(WeftVM *vm);
struct Module *weft_main_of(WeftVM *vm);
Value weft_value_of(const WeftValue *value); /* borrowed */

#endif
