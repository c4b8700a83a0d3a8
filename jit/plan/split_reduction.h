/* split_reduction.h — inside jit/: a kernel that is one long reduction, in two that threads can share. */
#ifndef WEFT_JIT_SPLIT_REDUCTION_H
#define WEFT_JIT_SPLIT_REDUCTION_H

#include "jit/plan/plan.h"

enum { SPLIT_MOST = 4 /* reductions of one kernel */, PAIRED_MOST = 3 /* interleaved, with AVX2 */ };

/* Gives kernels of the plan that run one trip around long reductions two more each (Plan.hidden): `partial` reduces
 * one block of 64 rows of lanes a trip, into an array of results per reduction; `rest` reduces these and goes on.
 * Together they do what the kernel does, in the same order (ir.md section 10), and its trips know nothing of each
 * other. Both take the kernel's arguments, then the arrays, then the number of blocks. Those with at most `abreast`
 * reductions of one array each get a third: `pairs` reduces a whole block and the whole one `blocks` behind it a
 * trip, as two runs of memory are read faster than one. False: memory was refused. */
bool plan_split_reductions(Vm *vm, Plan *p, LoopModule *m, u32 abreast) MUST_USE;
/* Elements that a run reduces, elements of a block. */
u64 split_elements(const PlanKernel *k, const u64 *words, u32 *block);

#endif
