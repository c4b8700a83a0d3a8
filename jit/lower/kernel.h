/* kernel.h — inside jit/: one loop nest in the making. Elements are asked for by (value, index); every answer is a
 * task, made once, that knows what it needs; tasks are put into the loops that they depend on and written out loop by
 * loop, so that what does not change in a loop stands before it.
 *
 * Scopes: 0 the prelude, 1 the outermost par, then the loops inside it in order; reductions add scopes of their own. */
#ifndef WEFT_JIT_KERNEL_H
#define WEFT_JIT_KERNEL_H

#include "jit/lower/affine.h"

typedef enum TaskKind {
  TASK_const,   /* value: constant of the graph */
  TASK_word,    /* imm: bits of `type` */
  TASK_dim,     /* dim as i64: a parameter */
  TASK_number,  /* value of rank 0 in a slot: a parameter */
  TASK_load,    /* value in a buffer, element `aff` */
  TASK_index,   /* `aff` as i64 */
  TASK_convert, /* deps[0] */
  TASK_op,      /* op (LoopOp) of deps */
  TASK_wrap,    /* index deps[0] of an axis of size deps[1]; negative ones count from the end */
  TASK_element, /* elementwise node at ix; deps: converted operands, TASK_none for absent ones */
  TASK_reduce,  /* reduction node at ix; deps[0]: the element, in scope `inner` */
  TASK_extreme, /* argmin, argmax: deps[0] the element, deps[1] its number, in `inner` */
  TASK_check,   /* check node at ix; deps: operands */
} TaskKind;

typedef struct Task {
  u8 kind;
  u8 type;  /* LoopType of the value */
  u8 from;  /* element: compute type */
  u8 op;    /* op: LoopOp */
  u8 state; /* 0 new, 1 its needs are known, 2 placed */
  u32 value; /* or node */
  u32 ix, aff;
  u64 imm;
  Dim dim;
  u32 dep[4];
  u32 deps;
  u32 scope, inner, inner_count;
  u32 ir;
  u32 level; /* reductions of its own scope that stand before it, one needing the other */
  u32 next;  /* of its scope */
} Task;

typedef struct KVar {
  u32 scope; /* loop variable of a scope; UINT32_MAX: the value of a task */
  u32 task;
  u32 ir;
} KVar;

typedef struct KScope {
  u32 parent;
  u32 first, last; /* tasks */
  Dim trips;
  u32 var;
} KScope;

/* A nest whose innermost loop is split where rolls along it wrap: before `lo`, from there to `hi`, where every
 * rolled place is a sum again, and the rest. Each part is a loop of its own in the row's scope. */
enum { SPLITS_MOST = 6, SPLIT_PARTS = 3 };
typedef struct IndexSplit {
  Dim at[SPLITS_MOST]; /* the trip from which on a roll reads from its axis' other end */
  bool early[SPLITS_MOST]; /* near the loop's beginning, as far as is known */
  u32 count;
  bool collect;       /* the innermost loop may be split: note where */
  u32 var;            /* the innermost loop's */
  u32 part;           /* 1 … SPLIT_PARTS: the part that is being built; 0: the loop is whole */
  u32 scope;          /* of the first part; the others follow */
  u32 own[SPLIT_PARTS], *store[SPLIT_PARTS], *roots[SPLIT_PARTS];
} IndexSplit;

typedef struct Kern {
  Compiler *c;
  Graph *g;
  SizePool *sizes;
  const Unit *u;
  u32 unit;
  Kernel *out;
  Affines ax;
  VEC(Task) tasks;   /* entry 0: none */
  VEC(KVar) vars;    /* entry 0 unused */
  VEC(KScope) scopes;
  VEC(u32) stack;
  VEC(u32) params;   /* parameter nodes of the function, as Kernel.args */
  u32 *table;        /* tasks by key, open addressing */
  u32 table_size;
  u32 main_scopes;   /* 0 … main_scopes-1 */
  u32 *store;        /* by root: index of the stored element in the result */
  const u32 *roots;  /* while it is written out: the task of each; then those of the imaginary parts of complex ones */
  u32 stored;        /* roots of a plain nest that are stored already: from the first on */
  u32 own;           /* the number of the element that a trip computes, as an aff; UINT32_MAX: none */
  u32 scan_last;     /* scan: where the value before the first element is stored, with include_initial */
  u32 depth;         /* of want() within itself */
  bool checked;      /* it holds checks: what stands before them is stored in order */
  u32 parts;         /* join: operands that this nest writes */
  IndexSplit split;
  bool linear;       /* the nest is one loop over element numbers */
  bool numbered;     /* last axes that are reduced together are one loop over element numbers, where that does */
  bool numbers;      /* some are */
  bool unnumbered;   /* that does not do: set besides `unlinear` */
  bool unlinear;     /* that does not do: some value needs its own axes */
  bool failed;       /* memory was refused */
  const char *why;   /* cannot be built */
} Kern;

/* Which of the two numbers that a complex one is; 0: v is real. */
enum { PART_RE = 1, PART_IM };
/* The task that gives element `ix` of v, in v's dtype. 0 after a failure. */
u32 kern_want(Kern *k, ValueId v, u32 ix);
u32 kern_want_part(Kern *k, ValueId v, u32 ix, u32 part);
/* The number of the part of a complex element, among the real numbers that the array is. */
u32 kern_place_of_part(Kern *k, u32 aff, u32 part);
u32 kern_want_as(Kern *k, ValueId v, u32 ix, LoopType type);
u32 kern_convert(Kern *k, u32 task, LoopType to);
u32 kern_word(Kern *k, LoopType type, u64 bits);
u32 kern_dim(Kern *k, Dim d);
u32 kern_index(Kern *k, u32 aff);
u32 kern_op(Kern *k, LoopOp op, LoopType type, u32 a, u32 b, u32 c);
u32 kern_wrap(Kern *k, u32 index, Dim n);
u32 kern_task_var(Kern *k, u32 task); /* an aff */
/* The index of an operand that is broadcast to `out`. */
u32 kern_broadcast(Kern *k, const ArrayType *operand, const ArrayType *out, u32 ix);
/* One Aff for each axis of t, whatever form ix has. Sets `unlinear` when a nest over element numbers cannot. */
bool kern_axes(Kern *k, const ArrayType *t, u32 ix, u32 *affs);
u32 kern_vector(Kern *k, const ArrayType *t, const u32 *affs); /* an index from affs; rank 0: 0 */

/* kernel_index_split.c. How far a roll goes: a number or a size that is known only at run time. */
bool kern_roll_shift(Kern *k, const GraphArg *a, Dim *shift);
/* (aff - shift) mod n for an aff within 0 … n-1. */
u32 kern_rolled(Kern *k, u32 aff, Dim shift, Dim n);
/* Whether the nest that was just built is to be built once more in parts. */
bool kern_is_split(const Kern *k);
/* The first and the past-the-last trip of a part. */
void kern_split_bounds(Kern *k, u32 part, Dim trips, Dim *from, Dim *to);

/* kernel_emit.c: the loop function of placed tasks. roots[i]: of node i of the unit. */
bool kern_emit(Kern *k, const u32 *roots);

/* kernel_view.c. True when element ix of the node's result is an element of an operand, or a number: then *v and *ix
 * (and *part, of a complex number) say which. */
bool kern_view(Kern *k, NodeId n, ValueId *v, u32 *ix, u32 *part, u32 *task);
bool view_maps(const Graph *g, NodeId n); /* the same question, by kind alone */
u32 kern_renumbered(Kern *k, const ArrayType *t, u32 aff); /* the index of element number `aff` of t */
/* How an axis list is indexed, item by item, with slices clamped. */
typedef struct IndexAxis {
  u8 kind;     /* INDEX_int, INDEX_slice, INDEX_array */
  u8 part;     /* int: PART_dim, PART_operand */
  u32 axis;    /* of x */
  u32 result;  /* slice, newaxis: axis of the result */
  Dim at;      /* int by size; slice: start */
  i64 step;
  ValueId operand;
} IndexAxis;
typedef struct IndexMap {
  u32 count;
  IndexAxis axes[TYPE_MAX_RANK];
  u32 arrays;        /* number of arrays (and integers beside them) */
  u32 array_rank;    /* of what they broadcast to */
  u32 array_at;      /* where these axes stand in the result */
} IndexMap;
/* False: masks, or bounds known only at run time. x_type: what is indexed; result rank is that of the indexed part. */
bool index_map(Graph *g, NodeId n, const ArrayType *x, IndexMap *out);

#endif
