/* plan.h — hand-off format: a compiled region as a list of steps over 8-byte slots, run by one C loop for every
 * backend. Backends supply kernels and native functions; the plan supplies memory, order, checks and exits.
 * Described in docs/formats/plan.md.
 *
 * Slots. Input i of the region lies in slot i. A slot is a number (payload bits as in Value: integers extended
 * to 64 bits, f32 in the low half and zeros above, bool 0 or 1) or an array (Array *, NULL: empty); PlanSlot
 * says which, and the plan never changes that.
 *
 * Ownership. An array slot owns one count of its array, except inputs that are borrowed (slot < inputs and not
 * donated). A step that writes an array slot gives up what was in it. `move` and `reuse` empty their source.
 * When the region is left by exit x, the slots bound by x keep their counts (a bound borrowed input gets one);
 * every other owned slot is emptied. So `free` is about memory, never about leaks.
 *
 * In place. A kernel may write only arrays that `alloc`, `reuse`, `unique` or `dense` made writable, and over
 * a value that an exit still needs only when no later check or poll can take that exit; PK_INPLACE kernels are
 * not split by polls.
 *
 * Control. if … else … end and loop … end nest. `again` goes to the head of the nearest loop; `while` and `until`
 * leave it; a loop whose end is reached is left. Jumps are set by plan_finish.
 *
 * Natives. ctx->frame brings exit values: PlanNativeExit says which slots take them and which exit of the graph is
 * meant; an exit that is not listed, or meant as NO_EXIT, is the step's own exit.
 *
 * Failure. `plan_run` never raises an error of the program: a failed check, a native's exit or an extern
 * operation that raises (its error is cleared) takes an exit, and the interpreter does it again. Memory, fuel,
 * deadline and interrupt are noticed by steps with an exit alone, and return WEFT_ERROR with the error in the
 * VM and that exit. */
#ifndef WEFT_JIT_PLAN_H
#define WEFT_JIT_PLAN_H

#include "jit/loops/loops.h"
#include "tracer/graph/graph.h"

typedef enum PlanOp {
#define STEP(name, form, meaning) STEP_##name,
#include "jit/plan/plan.def"
  STEP_COUNT
} PlanOp;

/* An argument of a step: something that becomes a 64-bit word. */
typedef enum PlanArgKind {
  PA_slot,   /* the slot's number */
  PA_const,  /* imm */
  PA_data,   /* address of element (0, …) of the array in the slot; a number's slot gives the slot's address */
  PA_out,    /* address of the slot itself: the kernel writes a number of `dtype` there; extended afterwards */
  PA_dim,    /* dimension `axis` of the array in the slot */
  PA_stride, /* stride `axis`, in elements; 0 where the dimension is 1 */
  PA_size,   /* element count of the array in the slot */
  PA_value,  /* extern: the slot as a Value */
  PA_list,   /* extern: the next imm arguments as one list */
  PA_attr,   /* extern: attribute number imm of the graph (Graph.attrs); slot, axis: its Plan.attr_sizes */
  PA_hole,   /* extern: parameter not given */
  PA_KIND_COUNT
} PlanArgKind;

typedef struct PlanArg {
  u8 kind;
  u8 dtype; /* out */
  u16 axis;
  u32 slot;
  i64 imm;
} PlanArg;

typedef struct PlanSlot {
  bool array;
  u8 dtype, rank, device; /* array; a number has dtype and rank 0 */
  bool weak;
  bool borrowed; /* array: an input that is not given away */
  u32 value; /* ValueId it holds at some time, for dumps; 0 */
} PlanSlot;

enum { PK_INPLACE = 1, PK_SERIAL = 2 /* not to be split over threads */,
       PK_COLD = 4 /* of steps for sizes that are others than while tracing */,
       PK_CALLED = 8 /* by native functions, by its name; no step runs it */,
       PK_SHORT_ROWS = 16 /* `ahead` is for them (vector.h) */ };

typedef struct PlanKernel PlanKernel;
struct PlanKernel {
  const char *name;
  LoopKernelFn fn; /* called when not NULL, else: */
  u64 (*call)(const PlanKernel *k, Vm *vm, const u64 *args, i64 lo, i64 hi); /* interpreted, or on a device */
  void *self;
  const struct Blocks *blocks; /* of a run: fn by blocks (blocks.h); else NULL */
  LoopKernelFn past;  /* as fn, but its stores are non-temporal; NULL: there is none (yet) */
  LoopKernelFn ahead; /* as fn, but what it reads is prefetched */
  /* to be asked once for them; NULL: it was, or there are none */
  void (*make_past)(PlanKernel *k), (*make_ahead)(PlanKernel *k);
  /* On a device, instead: arrays[i] is the array that word i points into, NULL where it is a number or points to a
   * slot. Raises an error when it fails. */
  WeftStatus (*launch)(const PlanKernel *k, Vm *vm, const u64 *words, Array *const *arrays, u32 count, i64 lo,
                       i64 hi, u64 *key);
  void *launched; /* the device's */
  u32 product; /* 1 + the number of its word that a product is handed on to it in, which nothing else reads; or 0 */
  u32 flags;   /* PK_* */
  i64 grain;   /* ranges start and end at multiples of it (but for the last end) */
  u32 nodes_first, nodes_count; /* Plan.nodes: what is fused into it */
  u64 bytes_per_trip, flops_per_trip; /* estimates: splitting, profile */
  u32 operations;    /* in its body: profile */
  u32 device;
  /* hidden kernels that threads can share in place of this one (split_reduction.h), when there are */
  u32 partial, rest;
  u32 pairs;         /* another; 0: there is none */
  bool pairs_far;    /* it pays for what the last cache does not hold alone */
  u32 reductions;    /* in it: arrays that lie between the two; 0: there are none */
  u32 reduce;        /* head of the first of them, in self */
  i64 plain_trips;   /* a run of at most so many is too short for polls, threads and blocks; made by plan_install */
  u64 runs, trips, bytes, written, flops, ns; /* counted while VM_LOG_PROFILE is on */
};

typedef struct PlanCheck { /* a check number of a kernel */
  u32 number;
  u32 exit;
} PlanCheck;

/* In the slots of a native's exit: the next element of the array in the slot, which the plan made for it. */
#define PLAN_ELEMENT 0x80000000u

/* A call of a native function by itself stands for at most so many calls of the program that stand inside each
 * other. */
enum { NATIVE_LEVELS = 4 };

typedef struct PlanNativeExit { /* frames a native function leaves: tag and exit as in LoopCtx.frame */
  u64 tag;
  u32 exit;
  u32 plan_exit;              /* exit of the graph it means */
  u32 slot_first, slot_count; /* Plan.ids: where its exit values go */
} PlanNativeExit;

/* Slots of an array that a function changes and that has to be as it was where it is left: the elements that were
 * written, in order: their places and what they were; or, once these would be more than the array has, the array as it
 * was; how many were written, or one more than the array has elements: `whole` counts. whole
 * UINT32_MAX: it never does. */
typedef struct PlanUndo {
  u32 array, places, old, whole, count;
} PlanUndo;

typedef struct PlanNative {
  const char *name;
  /* One word per argument; results in ctx->results. Returns 0 or the exit, after ctx->frame was called. */
  u32 (*call)(const struct PlanNative *n, LoopCtx *ctx, const u64 *args);
  void *fn, *self; /* the backend's */
  bool cold; /* see PK_COLD */
  bool called; /* by another one, by its name; no step runs it */
  u32 exit_first, exit_count; /* Plan.native_exits */
  u32 undo_first, undo_count; /* Plan.undos: what is put back where it is left */
  u32 nresults;
  u32 values; /* at most, of any function that it calls, itself among them: how large a frame on the C stack may be */
  u32 levels; /* calls of the program that one of it by itself stands for, at most NATIVE_LEVELS */
  u32 recursions; /* functions in it that call themselves: of one all frames are alike */
  u32 frame;  /* bytes of the C stack that a call of it by itself took; 0: it never came to the end of its depth */
  u32 nodes_first, nodes_count;
} PlanNative;

typedef struct PlanStep {
  u8 op;     /* PlanOp */
  u8 dtype;  /* alloc, reuse, load, store, box, unbox */
  u16 aux;   /* check: CheckKind; extern: OpId; update: combining OpId; alloc, reuse, view: rank */
  u32 dst, src;
  u32 arg, nargs;   /* Plan.args; kernel: the first two are lo and hi, the rest go to the kernel */
  u32 index;        /* size: Plan.codes; kernel, native: number; index, update: Graph.attrs; effect: Graph.hosts */
  u32 exit;         /* NO_EXIT: the latest exit that is whole (Plan.entry_exit) */
  u32 jump;         /* step number */
  bool plain;       /* kernel: its arguments are of the usual kinds, from trip 0 on; made by plan_install */
  /* update: of an input that a module variable holds, which the state behind the update sets to the result; unique:
   * such an input, which every state from here on sets */
  bool donated;
  bool handed_on; /* extern: a product that the kernel behind it alone reads; made by plan_install */
  /* kernel: Plan.checks; native: result slots in Plan.ids; extern: the same when the operation gives a list (else
   * dst) */
  u32 list, nlist;
  u64 bits;         /* const */
  NodeId node;      /* of the graph: for dumps and profiles */
} PlanStep;

typedef struct PlanAttrSize { /* a size within an attribute, compiled */
  u32 position; /* as in AttrSource */
  u32 code;     /* Plan.codes */
} PlanAttrSize;

typedef struct Plan {
  Allocator *alloc;
  Arena arena; /* names, size codes */
  const Graph *graph; /* borrowed from the region */
  u32 inputs;
  u32 entry_exit; /* Graph.entry_exit */
  VEC(PlanSlot) slots;
  VEC(PlanStep) steps;
  VEC(PlanArg) args;
  VEC(SizeCode) codes;
  VEC(const char *) code_text; /* parallel to codes, for dumps */
  VEC(PlanKernel) kernels;
  u32 hidden; /* kernels at the end that no step names */
  VEC(PlanNative) natives;
  VEC(PlanUndo) undos;
  VEC(PlanNativeExit) native_exits;
  VEC(PlanCheck) checks;
  VEC(u32) ids;
  VEC(u32) nodes; /* NodeIds */
  VEC(u32) owned; /* array slots that may own a count; made by plan_finish */
  VEC(PlanAttrSize) attr_sizes;
  VEC(u32) sym_slot; /* by symbol: the slot that holds its number, UINT32_MAX: none */
  u32 max_args, max_results;
  /* What the kernels and natives lie in (code memory, loop modules): freed with the plan. */
  void *code;
  void (*code_free)(Vm *vm, void *code);
  u64 code_bytes;
  char *peak; /* text of the planned peak bytes, for dumps; in the arena */
  bool failed;   /* memory was refused while building */
  bool products; /* some step is a product of matrices: made by plan_install */
  PlanStep dummy; /* what plan_step gives after a failure */
} Plan;

/* A device that runs kernels. jit/ asks it to compile the kernels of a plan; their `self` is their LoopFn. */
typedef struct JitDevice JitDevice;
struct JitDevice {
  const char *name; /* of the backend that uses it for all arrays */
  u32 device;       /* DeviceId: graphs with arrays there are compiled for it whatever the backend */
  bool (*link)(Vm *vm, PlanKernel *kernels, u32 count, void **linked, Buf *why); /* fills launch, launched */
  void (*unlink)(Vm *vm, void *linked); /* linked may be NULL */
  void (*remove)(Vm *vm); /* the VM ends; its plans are gone */
};

/* Operations of `number` steps on two integers x and y, which wrap. */
#define PLAN_NUMBER_OPS(X)                                                                  \
  X(add, x + y) X(subtract, x - y) X(less, (i64)x < (i64)y) X(less_equal, (i64)x <= (i64)y) \
  X(greater, (i64)x > (i64)y)                                                               \
  X(greater_equal, (i64)x >= (i64)y) X(equal, x == y) X(not_equal, x != y)

static inline bool plan_number_op(u32 op) {
  switch (op) {
#define OPERATION(name, result) case OP_##name:
    PLAN_NUMBER_OPS(OPERATION) return true;
#undef OPERATION
    default: return false;
  }
}

Plan *plan_new(Vm *vm, const Graph *g); /* slots of the inputs are there; NULL when refused */
void plan_free(Vm *vm, Plan *p);

/* ---- building: failures stick in `failed` -------------------------------------------------------- */

u32 plan_slot(Plan *p, const PlanSlot *s);
u32 plan_slot_for(Plan *p, ValueId v);    /* a slot of the value's type */
/* appended, zero but for exit = NO_EXIT; never NULL (a dummy after a failure) */
PlanStep *plan_step(Plan *p, PlanOp op);
u32 plan_args(Plan *p, const PlanArg *args, u32 count); /* returns Plan.args index */
/* Slot of each symbol (by SizeSym index, UINT32_MAX: none): a size step's code is compiled against it. Gives
 * Plan.codes index, UINT32_MAX when a symbol has no slot (or memory was refused). The plan remembers the slots: sizes
 * in attributes of extern, index and update steps use them. Inputs of form IN_size are known from the start. */
u32 plan_code(Plan *p, Dim d, const u32 *slot_of_sym);
void plan_symbol(Plan *p, u32 sym, u32 slot); /* the symbol's number lies there from now on */
u32 plan_ids(Plan *p, const u32 *ids, u32 count);
u32 plan_kernel(Plan *p, const PlanKernel *k, const NodeId *nodes, u32 count);
u32 plan_native(Plan *p, const PlanNative *n, const PlanNativeExit *exits, u32 nexits, const NodeId *nodes, u32 count);
void plan_undo(Plan *p, u32 native, const PlanUndo *u); /* of the native function made last */
PlanArg plan_arg_slot(u32 slot);
PlanArg plan_arg_const(i64 imm);
PlanArg plan_arg(PlanArgKind kind, u32 slot, u32 axis);
/* Sets jumps, owned slots, sizes of attributes and maxima; an exit NO_EXIT becomes entry_exit; verifies. On false
 * `why` says what is wrong (or memory was refused). */
bool plan_finish(Plan *p, Buf *why) MUST_USE;

/* ---- running, text, verifier ---------------------------------------------------------------------- */

/* See Region.run. `slots`: p->slots.count words, inputs filled, the rest zero. */
WeftStatus plan_run(Vm *vm, Region *r, const Plan *p, u64 *slots, u32 *exit) MUST_USE;
/* Makes the plan the code of the region (consumes it): run, print, destroy, counters. Binds are the caller's. */
void plan_install(Region *r, Plan *p);
/* NULL: its code is no plan. The `self` of its kernels and natives is their LoopFn */
const Plan *plan_of(const Region *r);
void plan_print(const Plan *p, Buf *out);
bool plan_verify(const Plan *p, Buf *out) MUST_USE;

#endif
