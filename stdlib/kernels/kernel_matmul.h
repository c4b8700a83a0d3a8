/* kernel_matmul.h — matrix products as plain sums: of integers, and of floats so few that compiled loops have them
 * inline. */
#ifndef WEFT_STDLIB_KERNEL_MATMUL_H
#define WEFT_STDLIB_KERNEL_MATMUL_H

#include "vm/vm.h"

/* c[m, n] = a[m, k] @ b[k, n], all dense rows of one dtype. Integers wrap. */
void matmul_own(u32 dtype, i64 m, i64 n, i64 k, const void *a, const void *b, void *c);

#endif
