/* combine.h — `part op= value` over elements in their place, without an array between. */
#ifndef WEFT_VM_COMBINE_H
#define WEFT_VM_COMBINE_H

#include "vm/array.h"

/* to[…] = to[…] op from[…] for op BC_add, BC_sub or BC_mul and elements of one dtype; strides in elements, those of
 * `from` may be 0. Integers wrap. False, and nothing is done: another operation or dtype, or the two overlap. */
bool combine_in_place(u32 op, u32 dtype, u32 rank, const i64 *dims, void *to, const i64 *to_strides, const void *from,
                      const i64 *from_strides);

#endif
