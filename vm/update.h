/* update.h — writing into arrays by index. */
#ifndef WEFT_VM_UPDATE_H
#define WEFT_VM_UPDATE_H

#include "vm/vm.h"

/* slot[items] = value, or slot[items] op= value (op: BcOp; BC_move for plain). The array keeps its dtype; it is
 * updated in place when nobody else holds it. Borrows value. On error nothing has changed. */
WeftStatus update_array(Vm *vm, Value *slot, const u8 *items, u32 item_count, const Value *regs, u32 op,
                        Value value) MUST_USE;

/* May a value of this dtype be stored into an array of `dtype`? Raises the error that names both. */
WeftStatus store_check(Vm *vm, u32 dtype, Value value) MUST_USE;

#endif
