/* npy.h — one array as the bytes of a .npy file, and back (npy.c). */
#ifndef WEFT_STDLIB_FILES_NPY_H
#define WEFT_STDLIB_FILES_NPY_H

#include "stdlib/files/files.h"

/* What the bytes hold; `path` is named in errors. */
WeftStatus npy_decode(Vm *vm, u32 op, const char *path, const char *data, size_t len, Value *out) MUST_USE;
/* Appends the file of v, a number or an array on the processor. b->failed: memory was refused. */
WeftStatus npy_encode(Vm *vm, u32 op, Value v, Buf *b) MUST_USE;

#endif
