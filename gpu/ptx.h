/* ptx.h — inside gpu/: kernels of the loop IR as PTX text.
 *
 *   LoopFn ──ptx_module──▶ text ──ptxas, or the driver──▶ machine code
 *
 * One kernel is one entry. Its parameters are 64-bit words in the order of the function's parameters (as in
 * LoopKernelFn: numbers extended, a buffer the device address of its element 0), then lo, hi and the address of the
 * key, a u64 that holds LOOP_KEY_NONE before the launch and the least failing check behind it.
 *
 * The trips of the outermost `par` are dealt to threads, or to warps when the body holds a reduction in the order
 * LANES: then the 32 threads of a warp run the trip together, each has every value of it, and the lanes of the
 * reduction are spread over them. Any grid gives the same bits. Transcendental functions come from lang/math.loops:
 * short ones are expanded where they are used, long ones are functions of the module.
 *
 * Every value has a register of its own; a bool is a predicate in registers and a byte in memory; u8 lies in 32
 * bits. */
#ifndef WEFT_GPU_PTX_H
#define WEFT_GPU_PTX_H

#include "jit/jit.h"
#include "jit/loops/loops.h"

typedef enum PtxSpread {
  PTX_THREADS, /* one trip, one thread */
  PTX_WARPS,   /* one trip, 32 threads */
} PtxSpread;

enum { PTX_MAX_PARAMS = 512 /* 4,352 bytes of parameters are what every driver takes */ };

/* How the trips of a kernel are dealt. */
PtxSpread ptx_spread(const LoopFn *fn);

/* A module with these kernels; entry i is named names[i] (NULL: as the function). WEFT_ERROR: memory was refused, or a
 * kernel is not supported: then `why` holds a line that says so and which. */
WeftStatus ptx_module(const LoopFn *const *fns, const char *const *names, u32 count, Buf *out, Buf *why) MUST_USE;

#endif
