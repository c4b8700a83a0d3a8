/* divide.h — integers divided by a number that is known for many of them: by a product, toward minus infinity. */
#ifndef WEFT_STDLIB_DIVIDE_H
#define WEFT_STDLIB_DIVIDE_H

#include "vm/vm.h"

typedef struct Divisor {
  i64 by;    /* 0: this division is not of that kind */
  u64 times; /* x // by is the upper half of x * times, shifted, for x from 0 to 2**63 */
  u32 shift;
  bool rest; /* remainders, not quotients */
} Divisor;

/* For `op` on `dtype` with `num` (of that dtype) on the right. */
Divisor divisor_of(u32 op, u32 dtype, Value num);
void divisor_run(const Divisor *d, u32 bytes, void *out, const void *x, i64 n); /* out may be x */

#endif
