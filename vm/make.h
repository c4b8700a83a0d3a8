/* make.h — instructions that make values of registers or take them apart. They report an error by WEFT_ERROR. */
#ifndef WEFT_VM_MAKE_H
#define WEFT_VM_MAKE_H

#include "vm/vm.h"

WeftStatus make_closure(Vm *vm, const Frame *f, u32 a, u32 proto) MUST_USE;
WeftStatus make_group(Vm *vm, const Frame *f, u32 a, u32 first, u32 count) MUST_USE;
WeftStatus make_sibling(Vm *vm, const Frame *f, u32 a, u32 index) MUST_USE; /* groupfn */
WeftStatus make_list(Vm *vm, Value *base, Ins ins) MUST_USE;
WeftStatus make_array(Vm *vm, Value *base, Ins ins) MUST_USE;
WeftStatus make_record(Vm *vm, const Frame *f, Ins ins) MUST_USE;
WeftStatus make_range(Vm *vm, Value *base, Ins ins) MUST_USE;

/* Parts of literals with spreads. On error nothing has changed. */
WeftStatus make_extend(Vm *vm, Value *list, Value v) MUST_USE; /* appends the items of a list, array, range or text */
WeftStatus make_put(Vm *vm, Value *rec, Value item, Value key) MUST_USE;
WeftStatus make_spread(Vm *vm, Value *rec, Value from) MUST_USE;

WeftStatus unpack_sequence(Vm *vm, const Frame *f, Ins ins, Value v) MUST_USE;
WeftStatus unpack_record(Vm *vm, const Frame *f, Ins ins, Value v) MUST_USE;

#endif
