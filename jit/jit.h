/* jit.h — facade: compiles graphs to plans. The backends `loops` (kernels and natives run by the loop IR's reference
 * interpreter) and `mir` (the same plans, compiled through MIR). */
#ifndef WEFT_JIT_JIT_H
#define WEFT_JIT_JIT_H

#include "jit/loops/define_math.h"
#include "jit/loops/loops.h"
#include "tracer/tracer.h"

typedef struct JitDevice JitDevice; /* jit/plan/plan.h */

/* Adds the backends to the tracer; they are freed with it. `math`: the functions that `math NAME` of the loop IR means;
 * borrowed for the VM's life. */
/* device may be NULL; it is removed with the backends, and when this fails. cpu: what array loops are compiled to,
 * scalar, strip, avx2 or avx512; NULL: the default */
WeftStatus jit_install(Vm *vm, const LoopMath *math, u32 math_count, const JitDevice *device, const char *cpu) MUST_USE;
bool jit_cpu_known(const char *cpu);
bool jit_cpu_runs(const char *cpu); /* known, and this processor can */

/* The code of a region of one of these backends: its kernels and natives as machine-near text (MIR), "" where there is
 * none. Region.print gives the plan and the loop IR. */
void jit_print_mir(const Region *r, Buf *out);

/* The machine code of its vector kernels, disassembled where Zydis is installed; "" where there is none. */
void jit_print_asm(const Region *r, Buf *out);

/* For tests: backends without a tracer. */
typedef struct Jit Jit;
Jit *jit_new(Vm *vm, const LoopMath *math, u32 math_count); /* NULL: memory was refused */
void jit_free(Vm *vm, Jit *jit);
const Backend *jit_backend(const Jit *jit, const char *name); /* NULL: there is none of that name */

#endif
