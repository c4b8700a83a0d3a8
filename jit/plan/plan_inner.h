/* plan_inner.h — what the files of the plan share. */
#ifndef WEFT_JIT_PLAN_INNER_H
#define WEFT_JIT_PLAN_INNER_H

#include "jit/plan/plan.h"

enum { PLAN_MAX_WORDS = 1024 }; /* arguments or results of one step: they lie on the C stack while it runs */

enum { PLAIN_WORDS = 16, PLAIN_UNITS = 1 << 10 }; /* arguments, and elements, of a run that goes the short way */

enum { LONG_UNITS = 1 << 20 }; /* about as many elements as no cache holds */

enum { PLAN_PARTS = 4 }; /* parts that the least run for several threads is split into */

/* plan_split.c. About how many elements the run works on. */
u64 plan_kernel_work(const PlanKernel *k, const u64 *words, i64 lo, i64 hi);
/* The whole range, by the threads of the pool or with polls in between. *key: the least of failed checks. False: a poll
 * raised. */
bool plan_run_threads(Vm *vm, const PlanKernel *k, const u64 *words, i64 lo, i64 hi, u64 work, u64 *key);
/* A kernel with reductions, by its hidden ones. *done false: it is too short, nothing was done. */
bool plan_run_blocks(Vm *vm, const Plan *plan, const PlanKernel *k, const u64 *words, u32 count, u64 *key, bool *done);
/* The kernel for a run that reads what the nearer caches do not hold: in `own` the one that fetches ahead, where
 * there is one. row: elements of an array that a trip reads, about; 0: a reduction of all, or by blocks; of rows
 * processors that fetch by themselves lose by it. */
const PlanKernel *plan_long(Vm *vm, const PlanKernel *k, i64 row, PlanKernel *own);
bool plan_run_polled(Vm *vm, const PlanKernel *k, const u64 *words, i64 lo, i64 hi, u64 *key);
/* For a native function that calls the kernel by its name: shared by the threads where it is long enough; counted
 * while profiles are asked for. Native functions poll themselves, so this does not. The key of a failed check. */
u64 plan_run_called(const u64 *words, i64 lo, i64 hi, PlanKernel *k, Vm *vm);
/* What the run moves and computes, added to the counts of the kernel. */
void plan_count_run(PlanKernel *k, const u64 *words, i64 lo, i64 hi);

/* Is `slot` given up right behind step `at`, before anything could leave? */
bool plan_given_up(const Plan *p, u32 at, u32 slot);
/* Puts a step that stands for the three behind it before step `at`, of the same exit. Before the plan is finished. */
bool plan_put_before(Plan *p, u32 at, PlanOp op) MUST_USE;

const char *plan_step_name(u32 op);
bool plan_step_has(u32 op, char field); /* a letter of the step's form in plan.def */

/* The step reads or writes what lies there. */
bool plan_names_slot(const Plan *p, const PlanStep *s, u32 slot);

#endif
