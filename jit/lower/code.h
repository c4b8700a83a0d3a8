/* code.h — inside jit/: the loop functions of one plan and how they are run: by the loop IR's interpreter, or compiled
 * by MIR. Owned by the plan (Plan.code). */
#ifndef WEFT_JIT_CODE_H
#define WEFT_JIT_CODE_H

#include "jit/loops/loops.h"
#include "jit/plan/plan.h"
#include "jit/vector/vector.h"

typedef struct JitCode JitCode;
typedef struct JitState JitState;

/* How kernels and natives become callable, and what the passes may ask of them. A target that says nothing gets plans
 * that any target can run. */
typedef struct JitTarget {
  const char *name;
  bool weighed;       /* the tier weighs its code against the interpreter */
  bool on_device;     /* kernels over arrays of the JitDevice run there */
  bool lazy;          /* cold kernels and natives are compiled at their first call */
  bool gates;         /* native functions share the trips of kernels that they call among threads */
  bool joins;         /* kernels over short rows that follow each other become one, written in C (plan/rows.h) */
  bool splits_reductions; /* a long reduction becomes two kernels that threads share (plan/split_reduction.h) */
  bool eager_scans;   /* long scans are left to the eager kernel, which takes segments at a time */
  bool eager_moves;   /* large transposes, rolls and joins are left to the eager kernel, which copies in tiles */
  bool splits_rolls;  /* the loop of a kernel is split where a roll wraps (kernel_index_split.c) */
  /* Fills fn or call and self of the plan's kernels and natives, whose `self` is their LoopFn. False with a line in
   * `why`. */
  bool (*link)(Vm *vm, JitCode *code, Plan *plan, Buf *why);
  void (*unlink)(Vm *vm, JitCode *code);
  void (*print)(const JitCode *code, const Plan *plan, Buf *out); /* may be NULL */
  void (*print_machine)(const JitCode *code, const Plan *plan, Buf *out); /* may be NULL */
} JitTarget;

struct JitCode {
  LoopModule module;
  const JitTarget *target;
  JitState *state;
  void *linked; /* the target's */
  Plan *plan;   /* that it is the code of */
  void *on_device;
  u64 bytes;
};

/* One per VM, behind the backends. */
struct JitState {
  Allocator *alloc;
  const LoopMath *math; /* borrowed */
  u32 math_count;
  const JitDevice *device; /* NULL: there is none */
  CodeMemory *memory;   /* made when it is first needed, as these are */
  struct MirPool *pool;
  VecLevel cpu;         /* what array loops are compiled to */
  VecEmitter *vector;   /* made when it is first needed */
  LoopMath *plain_math; /* level VEC_SCALAR: `math` without strip kernels */
};

JitCode *code_new(Vm *vm, const JitTarget *target, JitState *state); /* NULL: memory was refused */
void code_free(Vm *vm, void *code);

/* They are run by the loop IR's interpreter from now on, where they have no code. */
void code_interpret_kernel(PlanKernel *k);
void code_interpret_native(PlanNative *n);

extern const JitTarget target_loops, target_mir, target_device;

#endif
