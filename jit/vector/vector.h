/* vector.h — inside jit/: machine code for kernels whose loops are straight-line, by AVX-512 or AVX2 with FMA.
 *
 *   LoopFn ──loops_simplify──▶ LoopFn ──vector_loops──▶ instructions over virtual registers ──▶ registers ──▶ bytes
 *
 * What it cannot do it refuses with a reason; such kernels go through MIR. The bits are those of the loop IR's
 * interpreter. */
#ifndef WEFT_JIT_VECTOR_H
#define WEFT_JIT_VECTOR_H

#include "jit/vector/code_memory.h"
#include "jit/loops/loops.h"

/* WEFT_CPU: what array loops are compiled to. `scalar`: MIR alone. `strip`: MIR, with strip kernels for transcendental
 * functions. */
typedef enum VecLevel { VEC_SCALAR, VEC_STRIP, VEC_AVX2, VEC_AVX512, VEC_LEVELS } VecLevel;

const char *vec_level_text(VecLevel level);
bool vec_level_find(const char *text, VecLevel *out);
/* Can this processor (and its system) run it. */
bool vec_level_runs(VecLevel level);
VecLevel vec_level_best(void);

/* Settings of one VM; `defs` holds the definitions of math functions that were needed so far. */
typedef struct VecEmitter {
  Allocator *alloc;
  VecLevel level;
  LoopModule *defs;
  CodeMemory *memory; /* where code goes */
  bool own_memory;
  u32 unroll; /* vectors per trip of cheap loops; 0: by the loop's size */
  u32 strip;  /* most columns that go down together, a multiple of 128; 0: what the frame has room for */
  /* For long runs; kernels of which that cannot be said are refused. */
  bool past;  /* non-temporal stores, and what it reads is prefetched. AVX-512 */
  bool ahead; /* what is read is prefetched */
  bool short_rows; /* `ahead`: a trip of the outer loop reads PAGES_AHEAD bytes of an array at most, or about so many */
  bool reads; /* the kernel that was compiled last: may `ahead` be worth it */
} VecEmitter;

/* NULL when refused; level AVX2 or AVX512. Code goes to `memory`, which outlives the emitter; NULL: to memory of its
 * own. */
VecEmitter *vec_emitter_new(Allocator *alloc, VecLevel level, CodeMemory *memory);
void vec_emitter_free(VecEmitter *e);

typedef struct VecCode VecCode; /* executable memory of one kernel */

/* The kernel's code; NULL with a reason in `why` (static text) when it cannot be emitted or memory was refused. The
 * function and its module may go afterwards; math tables and addresses must stay. */
VecCode *vec_compile(VecEmitter *e, const LoopFn *fn, const char **why);
void vec_code_free(VecCode *code); /* before its emitter */
LoopKernelFn vec_code_kernel(const VecCode *code);
u64 vec_code_bytes(const VecCode *code);
/* as Zydis writes it, or in bytes where there is none */
void vec_code_print(const VecCode *code, const char *name, Buf *out);

#endif
