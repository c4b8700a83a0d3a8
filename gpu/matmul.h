/* matmul.h — inside gpu/: products of two matrices on the device, by a kernel of its own. */
#ifndef WEFT_GPU_MATMUL_H
#define WEFT_GPU_MATMUL_H

#include "gpu/device.h"

enum { MATMUL_STEP = 8, MATMUL_SIDE = 128, MATMUL_PARAMS = 10 };

/* A module with the entry matmul_f32, or matmul_f64, for blocks of 256 threads, one for each tile of SIDE times SIDE of
 * the result, row by row. Its parameters, words of 64 bits: addresses of x, y and the result; m, n, k; strides of x
 * (rows, inner axis) and of y (columns, inner axis). WEFT_ERROR: memory was refused. */
WeftStatus matmul_ptx(bool wide, Buf *out) MUST_USE;

/* Two matrices of f32, or of f64, on the device, that fit each other. */
bool device_takes_product(const Value *args);
WeftStatus device_product(Device *d, const Value *args, Value *out); /* borrows args; *out owned */

#endif
