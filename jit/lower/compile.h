/* compile.h — inside jit/: the state of one compilation, Graph → Plan, and what its passes hand each other.
 *
 *   graph_simplify ─ decompose.c ─ pairs.c ─ graph_simplify ─▶ Graph of loop, view and extern operations
 *        │ partition.c    which values get memory, which are computed where they are used; units of work
 *        ▼
 *   units ─ kernel.c ─▶ LoopFn (kernels)      native.c ─▶ LoopFn (scalar control flow)      element.c: one element
 *        │ schedule.c     steps, slots, exits, memory
 *        ▼
 *   Plan ─ code.c ─▶ the loop IR's interpreter, or MIR
 *
 * Failures stick: `failed` (memory was refused) or `unsupported` (with a line in `why`); passes return early then. */
#ifndef WEFT_JIT_COMPILE_H
#define WEFT_JIT_COMPILE_H

#include "jit/lower/code.h"
#include "jit/plan/plan.h"

enum { NO_SLOT = UINT32_MAX };

/* Where a value of the graph is to be had while code for its block is made. */
typedef enum Where {
  AT_NOWHERE, /* not needed, or not decided */
  AT_USE,     /* computed where it is used */
  AT_SLOT,    /* in a slot of the plan */
} Where;

/* How a value is used within its block (partition.c). */
typedef struct ValueUse {
  u32 kernel; /* root that reads it; 0: nobody, UINT32_MAX: several */
  bool by_unit; /* read by eager code or a construct */
  bool forced, same, spread; /* needs memory; read at the same index; at one that repeats */
  bool strange; /* read at another index, and not by rows: once for all of a row, or by a reduction of rows */
  bool across; /* read by something that does not lie at the index that its kernel stores */
  u8 moved;   /* times read at another index, saturating */
  u32 cost;
  u32 need, moved_need; /* latest unit that must have run before; likewise for what is read at another index */
  u32 check_block, check_unit; /* the last check of it as an index */
  bool dies;  /* schedule.c: the unit at work is the last that needs it */
  bool donated;  /* schedule.c: the unit at work is a cond, whose arms may write to it */
  /* schedule.c: the unit at work is a loop, behind which nothing but this module variable (a SourceId) holds it; 0 */
  u32 variable;
  bool over;  /* schedule.c: an update that lies in the slot of the old version */
  u32 last;   /* schedule.c: when it was needed last … */
  u32 read;   /* … by the block itself, or by exits that make something else of it */
  u32 told;   /* schedule.c: the block that said so, of a value inside of it; 0: another */
  u32 asked;  /* schedule.c: the question that looked at it last, see Compiler.questions */
} ValueUse;

typedef struct ValueInfo {
  u8 where;
  bool raw;     /* in a slot, as an array whose layout is not known: dense() makes it so */
  bool owned;   /* the slot is the compiler's own or a donated input: its memory may be written when it dies */
  bool wanted;  /* somebody reads the slot */
  bool view;    /* made by a view step of something stored */
  u32 slot;
  u32 unit;     /* number of the unit that computes it within its block; 0: there before */
  u32 strides;  /* 0: dense row-major; else index into Compiler.strides */
  ValueUse use;
} ValueInfo;

typedef struct Compiler {
  Vm *vm;
  Allocator *alloc;
  Arena arena;
  Graph *g;
  Toil *toil;            /* what is left to be spent; NULL: there is no limit */
  Region *region;
  Plan *plan;
  JitCode *code;
  const CompileLimits *limits;
  Buf *why;
  VEC(ValueInfo) values; /* by ValueId: as many as the graph has when code is made */
  u8 *classes;           /* by NodeId, of partition.c */
  /* by NodeId, of element.c: 1 + the dtype it computes with; 0: not asked yet, or it does not lower */
  u8 *lowers;
  VEC(Dim) strides;      /* entry 0 unused */
  u32 *sym_slot;         /* by symbol; NO_SLOT */
  u32 sym_count;
  bool carriers;         /* some symbol is carried by a value */
  VEC(Dim) dim_keys;     /* size expressions that lie in slots … */
  VEC(u32) dim_slots;    /* … which */
  VEC(ValueId) const_keys; /* constants and sizes likewise */
  VEC(u32) const_slots;
  VEC(u8) bound;         /* by exit: its binds are decided */
  u32 exit;              /* of steps that have none of their own */
  u32 *enter;            /* by NodeId, loops of the root: the exit before their first trip; 0: none */
  u32 *behind;           /* by NodeId, loops: the exit behind their last trip; 0: none */
  VEC(PlanArg) scratch;
  struct NValue *native_values; /* by ValueId, of native.c: made once, told apart by stamps */
  u32 *native_done, native_stamp;
  u32 loop_exit; /* of its back-edge */
  u32 *loop_slots;       /* of the values that the innermost loop of steps carries */
  u32 names;             /* numbers of kernels and natives */
  u32 device;            /* where the region's arrays lie */
  VEC(u8) eager;         /* by NodeId: no kernel could be built with it, the eager kernel does it */
  bool failed, unsupported;
  bool late; /* compile_late said so */
  bool restart; /* unsupported, but a trace without inlined calls may do */
  u64 deadline; /* nanoseconds of the limits' clock; 0: none */
  u32 questions; /* schedule.c: how many walks over values there were, each of which looks at a value once */
} Compiler;

static inline bool compile_stopped(const Compiler *c) {
  return c->failed || c->unsupported || c->late || toil_ended(c->toil);
}
/* A loop of a pass goes on, that many steps later. */
static inline bool compile_goes_on(const Compiler *c, u64 steps) { return toil(c->toil, steps) && !compile_stopped(c); }
/* share.c: kernels and natives that do the same become one. Before they are linked. False: memory was refused. */
bool plan_share(Plan *p, u32 *shared) MUST_USE;
bool compile_late(Compiler *c); /* the time that the limits allow is used up */
void compile_no_memory(Compiler *c);
/* Says why the graph is not supported; the first reason stays. */
void compile_unsupported(Compiler *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline ValueInfo *value_info(Compiler *c, ValueId v) { return &c->values.data[v]; }
static inline bool node_is_eager(const Compiler *c, NodeId n) { return n < c->eager.count && c->eager.data[n]; }

/* Every exit that the node may take, itself or inside its blocks. */
void each_exit_of(const Graph *g, NodeId n, void (*each)(void *ctx, u32 exit), void *ctx);

/* ---- types ----------------------------------------------------------------------------------------- */

LoopType loop_type_of_dtype(u32 dtype);   /* of its values; LT_VOID: not in the loop IR */
LoopType loop_memory_of_dtype(u32 dtype); /* of its elements in memory */
/* Of complex numbers the loop IR has the parts: two real numbers, one behind the other in memory. */
static inline bool dtype_is_pair(u32 dtype) { return dtype_kind(dtype) == DK_COMPLEX; }
/* real, imag of complex numbers, and complex itself: which part of which element. */
bool node_parts(const Graph *g, NodeId n);
static inline bool dtype_in_loops(u32 dtype) { return loop_type_of_dtype(dtype) != LT_VOID; }
/* Values that kernels of the compilation take: arrays of its device, and numbers, which lie on the processor. */
static inline bool type_in_loops(const Compiler *c, const ArrayType *t) {
  return dtype_in_loops(t->dtype) && (t->rank ? t->device == c->device : t->device == DEV_CPU);
}
static inline bool dim_is_const(const Compiler *c, Dim d, i64 *out) { return size_is_const(&c->g->sizes, d, out); }
bool dim_is(const Compiler *c, Dim d, i64 v);
bool dims_same(Compiler *c, u32 rank, const Dim *a, const Dim *b);
Dim dims_total(Compiler *c, const ArrayType *t);
void dims_strides(Compiler *c, u32 rank, const Dim *dims, Dim *strides); /* dense row-major */

/* ---- element.c: what an operation does to one element ---------------------------------------------- */

/* True when the operation on operands of these types is made by element_emit; compute: the dtype that operands are
 * converted to (where: not the condition, which is bool). */
bool element_lowers(Compiler *c, NodeId n, u32 *compute);
/* Operands converted already (absent ones 0). Returns the value of the result dtype; 0 after a failure of fn. */
u32 element_emit(LoopFn *fn, u32 op, LoopType compute, u32 dtype, const u32 *operands); /* a number of `dtype` */
/* What operand i, of dtype `own`, is converted to before. */
LoopType element_operand_type(u32 op, u32 i, u32 compute, u32 own);
u32 element_as(LoopFn *fn, u32 value, u32 dtype); /* the value as a number of that dtype, rounded once */
u32 element_convert(LoopFn *fn, u32 value, LoopType from, LoopType to);
/* The number of array operands, in order of the signature, with absent ones 0. */
u32 element_operands(const Graph *g, NodeId n, ValueId out[3]);
/* A weak integer that is known only at run time may not fit a narrower dtype: the eager code says so. */
bool element_weak_fits(Compiler *c, ValueId v, u32 to);
bool element_op_lowers(Compiler *c, u32 op, u32 compute); /* on operands of that dtype */
/* -n <= i < n counts from the end: the index within 0 … n-1 when the check holds. All i64. */
u32 element_wrap_index(LoopFn *fn, u32 index, u32 n);
/* A check of the graph on one element of each operand; number: key or exit. False: there is no such check. */
bool element_check(LoopFn *fn, CheckKind kind, LoopType type, u32 dtype, u32 a, u32 b, u32 number, u32 count,
                   const u32 *values);
/* how the reduction combines elements of the type; sums and counts add */
LoopReduce element_reduce(u32 op, LoopType t);
u32 element_flops(const Graph *g, NodeId n);

/* pairs.c: complex numbers become pairs of real ones. False: memory was refused. */
bool pairs_split(Compiler *c);

/* ---- partition.c ------------------------------------------------------------------------------------ */

typedef enum UnitKind {
  UNIT_kernel,  /* one loop nest over `dims`, with the stores of its roots and the checks of its nodes */
  UNIT_scan,    /* a cumulative operation */
  UNIT_join,    /* concat, stack: one kernel for each part */
  UNIT_view,    /* a view of something stored */
  UNIT_number,  /* an operation on two integers, by the plan itself */
  UNIT_index,   /* indexed by the eager code: masks */
  UNIT_update,  /* an index assigned, by the eager code */
  UNIT_extern,  /* an operation by its eager kernel */
  UNIT_control, /* cond, while, scan */
  UNIT_effect,  /* host */
} UnitKind;

typedef struct Unit {
  u8 kind;
  bool late;        /* update: behind all others */
  bool flat, reverse, initial; /* scan: over all elements; from the end; a value before the first */
  u8 rank;
  NodeId node;      /* the first */
  u32 axis;         /* scan, join */
  Dim dims[TYPE_MAX_RANK]; /* of the loops; scan: of the operand */
  VEC(u32) nodes;   /* roots and checks of a kernel, in program order */
} Unit;

typedef struct Partition {
  VEC(Unit) units; /* entry 0 unused; in the order they run */
} Partition;

/* Decides for every node of the block. Values that are used beyond the kernels are marked `wanted`. */
bool partition_block(Compiler *c, BlockId b, Partition *out);
void partition_free(Compiler *c, Partition *p);
bool check_shape(Compiler *c, NodeId n, ArrayType *out); /* what the operands of a check broadcast to */
/* A cumulative operation on dtypes of the loop IR; fills axis, flat, reverse, initial, dims. */
bool unit_of_scan(Compiler *c, NodeId n, Unit *u);

/* ---- kernel.c ---------------------------------------------------------------------------------------- */

typedef enum KernelArgKind { KA_number, KA_dim, KA_in, KA_out, KA_out_number } KernelArgKind;
typedef struct KernelArg {
  u8 kind;
  bool same; /* in: read at the index of the results alone */
  ValueId value;
  Dim dim;
} KernelArg;

typedef struct KernelCheck {
  NodeId node; /* check number i is entry i */
} KernelCheck;

typedef struct Kernel {
  LoopFn *fn;
  VEC(KernelArg) args; /* in order of the function's parameters */
  VEC(KernelCheck) checks;
  VEC(NodeId) by_row;  /* reductions that are computed where they are used */
  Dim trips;
  i64 grain;
  u64 work_per_trip;   /* elements, estimated */
  NodeId bad;          /* what cannot be built into a kernel … */
  const char *why;     /* … and why */
} Kernel;

enum { JOIN_RUN = 64 };
u32 join_run(Compiler *c, NodeId n, u32 part); /* how many operands of a join one kernel writes */
/* Builds the loop function of a unit: kernel, scan, or the parts of a join from `part` on. False: memory was refused,
 * or `why`. */
bool kernel_build(Compiler *c, const Unit *u, u32 unit, u32 part, Kernel *out);
void kernel_free(Compiler *c, Kernel *k);
/* Offset and strides of a view of something stored (UNIT_view). False: memory was refused, or `*why`. */
bool kernel_view_strides(Compiler *c, NodeId n, Dim *offset, Dim *strides, const char **why);

/* ---- schedule.c ---------------------------------------------------------------------------------------- */

/* The steps of a block's nodes. Afterwards its values that are `wanted` lie in slots. Temporary arrays of the block
 * are given up, except the terminator's. */
void schedule_block(Compiler *c, BlockId b);
/* A number or array in a slot of the plan; constants and sizes are put there. */
u32 schedule_slot(Compiler *c, ValueId v);
u32 schedule_new_slot(Compiler *c, ValueId v); /* for a value that is about to be computed */
u32 schedule_dense(Compiler *c, ValueId v); /* an array, row-major without gaps */
/* of an array that a module variable holds and every end of the region sets; 0: not so */
SourceId schedule_variable(const Compiler *c, ValueId v);
PlanArg schedule_dim(Compiler *c, Dim d);
void schedule_symbols(Compiler *c, ValueId v); /* sizes that v carries are known from here on */
/* Everything cached since the mark lies in slots that only this path fills. */
typedef struct ScheduleMark {
  u32 dims, consts;
} ScheduleMark;
ScheduleMark schedule_mark(const Compiler *c);
void schedule_forget(Compiler *c, ScheduleMark m);
typedef VEC(u32) ValueStack;
/* What a node that is computed again needs: its operands, and what carries the sizes in it. */
void schedule_push_makers(Compiler *c, ValueStack *stack, NodeId n);
PlanStep *schedule_step(Compiler *c, PlanOp op, u32 exit); /* exit NO_EXIT: that of the block */
/* The slots of an exit's values as they are now; the first call decides. */
void schedule_bind(Compiler *c, u32 exit);
/* The same with some values' slots given, and the others to be found. */
void schedule_bind_with(Compiler *c, u32 exit, const RegionBind *given, u32 count, const ValueId *others, u32 nothers);
/* Do exits that name the array that an update of the block takes count elements before the one written, and may it be
 * written? */
bool schedule_writes_behind(Compiler *c, BlockId b, NodeId n);
/* Puts value v into slot `to`. `take`: v is not needed any more. */
void schedule_move(Compiler *c, u32 to, ValueId v, bool take);

/* ---- control.c, native_make.c ------------------------------------------------------------------------------- */

/* cond, while: as steps of the plan. */
void control_steps(Compiler *c, NodeId n);
/* As one native function. False: it does not fit (nothing was added). */
bool native_control(Compiler *c, NodeId n);
/* All of the graph as one, its exits included. False: it does not fit (arrays that it reads may have been laid out row
 * by row). */
bool native_region(Compiler *c);

/* ---- compile.c ------------------------------------------------------------------------------------------ */

/* An array that goes in lies on this device. */
bool region_on_device(const Region *r, u32 device);
/* What Backend.compile is, for one target. */
BackendResult compile_region(Vm *vm, JitState *state, const JitTarget *target, Region *r,
                             const CompileLimits *limits, Buf *why);

/* ---- masks.c -------------------------------------------------------------------------------------------- */

/* An update where a mask is true, as another value at the cursor; 0: it stays. */
ValueId mask_update(Compiler *c, NodeId n);

/* ---- decompose.c ---------------------------------------------------------------------------------------- */

/* Rewrites what has no lowering of its own into what has. */
bool decompose(Compiler *c);

#endif
