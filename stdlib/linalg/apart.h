/* apart.h — long calls of LAPACK, which nothing can stop, on a thread that can be left behind.
 *
 * The call gets a VM of its own, with copies of its operands, in memory of the C library. Meanwhile the program's VM
 * looks at the clock. When that raises an error, the thread is left to itself: it goes on until LAPACK returns, frees
 * what it has, and ends. The program's VM may be freed before. */
#ifndef WEFT_STDLIB_APART_H
#define WEFT_STDLIB_APART_H

#include "stdlib/args.h"

enum {
  APART_STACK = 8 << 20, /* bytes: OpenBLAS takes 2 MiB for a factorisation */
  APART_LEFT = 4,        /* threads of this process that may be left behind at a time: a further call waits for one */
};

/* Runs fn(vm, args, out) so. *done false: that cannot be (no thread, no memory for the copies, operands that are no
 * arrays, numbers or texts), nothing was done and no error was raised. */
WeftStatus apart_run(Vm *vm, u32 op, EagerFn fn, const Value *args, Value *out, bool *done) MUST_USE;

#endif
