/* library.h — functions of the standard library that are written in Weft, loaded when they are first named. */
#ifndef WEFT_VM_LIBRARY_H
#define WEFT_VM_LIBRARY_H

#include "vm/vm.h"

static inline bool library_has(const Vm *vm, u32 op) { return vm->library && vm->library->module_of[op]; }
/* Loads the module that has `op`: vm->builtins gets its functions. */
WeftStatus library_load(Vm *vm, u32 op) MUST_USE;

#endif
