/* checked.h — calls of constructs whose functions were run on types before: once per functions and argument types. */
#ifndef WEFT_HOP_CHECKED_H
#define WEFT_HOP_CHECKED_H

#include "vm/vm.h"

/* Names a call by its construct, the codes of its functions and what they captured, and the types of its values. 0:
 * that is too much to be looked at, and what is found out is not kept. */
u64 checked_key(u64 construct, const Value *values, u32 count);
bool checked_before(const Vm *vm, u64 key);
/* There is nothing to be found out by this key. Forgets older keys; does nothing when memory is refused. */
void checked_now(Vm *vm, u64 key);

#endif
