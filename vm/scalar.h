/* scalar.h — arithmetic on unboxed numbers, by the rules that kernels follow for rank 0. */
#ifndef WEFT_VM_SCALAR_H
#define WEFT_VM_SCALAR_H

#include "vm/vm.h"

/* a BC b for two V_NUM. False: not decided here (an error, or an operation that only the kernel knows); the
 * kernel of the operation then computes it or says what is wrong. */
bool num_binary(u32 bc, Value a, Value b, Value *out);
bool num_unary(u32 bc, Value a, Value *out); /* neg pos bnot */

/* Conversion to `dtype` where the kind is not higher (stores, literals). False: a weak number that does not fit. */
bool num_store_convert(Value v, u32 dtype, Value *out);

#endif
