/* mir_emit.h — scalar machine code from loop IR, through MIR at level 1: all that loop IR can say, x86-64 only.
 *
 *   LoopFn ──loops_simplify──▶ LoopFn ──mir_emit──▶ MIR ──MIR_link──▶ code ──mir_patch──▶ code with sqrt, min, fma …
 *
 * A pool belongs to one VM. Contexts of MIR (about 65 µs and 0.5 MB each) serve many compilations and are freed when
 * the code of all of them is; so compile together what is freed together. What MIR
 * holds counts too, in the build of jit/mir/build.sh: an installed MIR takes it from the C library. */
#ifndef WEFT_JIT_MIR_EMIT_H
#define WEFT_JIT_MIR_EMIT_H

#include "jit/vector/code_memory.h"
#include "jit/loops/loops.h"

typedef struct MirPool MirPool;
typedef struct MirCode MirCode;

typedef struct MirStats {
  u64 functions;  /* compiled */
  u64 patched;    /* machine instructions that MIR lacks, put in after linking */
  u64 again;      /* functions compiled a second time with calls, because a mark was not found as expected */
  u64 errors;     /* that MIR raised: what it was given was wrong */
  u64 contexts;   /* alive now */
  u64 code_bytes; /* of all code handed out and not freed */
} MirStats;

/* NULL when refused. Code goes to `memory`, which outlives the pool; NULL: to memory of its own. */
MirPool *mir_pool_new(Allocator *alloc, CodeMemory *memory);
/* All code must have been freed. */
void mir_pool_free(MirPool *pool);
MirStats mir_pool_stats(const MirPool *pool);
/* Test switch: never patch; sqrt, min, fma … go by calls. */
void mir_pool_plain(MirPool *pool, bool plain);

/* Compiles verified kernels and native functions of one module as one group; they may call each other, and
 * functions of the module with an address. The functions and the module may go afterwards; math tables and
 * addresses must stay. On error `why` (may be NULL) says what is missing; nothing is left behind. */
WeftStatus mir_compile(MirPool *pool, const LoopFn *const *fns, u32 count, MirCode **code, Buf *why) MUST_USE;
void mir_code_free(MirCode *code);

LoopKernelFn mir_code_kernel(const MirCode *code, u32 i);
/* A native function: u32 (*)(LoopCtx *, args…) by the C convention, i1 and integers as their C types, buffers as
 * pointers. */
void *mir_code_native(const MirCode *code, u32 i);
u64 mir_code_bytes(const MirCode *code, u32 i); /* 0: not known */
const u8 *mir_code_text(const MirCode *code, u32 i);
/* The MIR of function i of a group as mir_compile makes code of it, as text. Its instructions do not outlive its code's
 * making. */
void mir_print(MirPool *pool, const LoopFn *const *fns, u32 count, u32 i, Buf *out);

#endif
