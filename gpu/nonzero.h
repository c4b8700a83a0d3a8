/* nonzero.h — inside gpu/: the numbers of the true elements of a mask, by a kernel of its own; elements by a mask. */
#ifndef WEFT_GPU_NONZERO_H
#define WEFT_GPU_NONZERO_H

#include "gpu/device.h"

enum { NONZERO_PIECE = 4096, NONZERO_PARAMS = 6 };

/* A module with the entry `nonzero`, for blocks of 256 threads, one for each piece of a mask. Its parameters, words of
 * 64 bits: addresses of the mask, a byte each, and of the result, i64; the elements; addresses of a counter of 4 bytes
 * and of ptx_chain_scratch bytes, all zero; the pieces. WEFT_ERROR: memory was refused. */
WeftStatus nonzero_ptx(Buf *out) MUST_USE;

/* nonzero(x), and compress(x, mask) without a size, of arrays on the device. */
bool device_takes_nonzero(const Value *args);
bool device_takes_compress(const Value *args);
WeftStatus device_nonzero(Device *d, const Value *args, Value *out);  /* borrows args; *out owned: a list by axis */
WeftStatus device_compress(Device *d, const Value *args, Value *out); /* the same; *out: an array */

#endif
