/* native.h — inside jit/: one native function in the making (native.c, native_range.c). */
#ifndef WEFT_JIT_NATIVE_H
#define WEFT_JIT_NATIVE_H

#include "jit/lower/kernel.h"

typedef enum NArgKind { NARG_number, NARG_dim, NARG_buffer } NArgKind;
typedef struct NArg { /* a parameter */
  u8 kind;
  ValueId value;
  Dim dim;
  u32 buffer;
  u32 ir;
} NArg;

/* A version of an array that a function which calls itself has by value: how many elements were noted then, and the
 * version that it was made of. All of these can be had again: what was noted since is put back. */
typedef struct NMark {
  const struct NMark *older;
  u32 version, noted; /* a number of the function */
} NMark;

typedef struct NBuffer {
  /* written: the result that it becomes, and what it begins as; of a region as a whole, this twice */
  ValueId value, from;
  u32 slot, ir, version;
  bool written;
  bool result; /* what the function gives, as elements: made before the call, written at its end */
  bool temp;   /* the function's own: made before the call, of the sizes in `type`, and freed behind it */
  bool loose;  /* temp: larger than the value */
  bool cell;   /* a number that kernels give */
  bool from_stays; /* an exit inside names what it begins as */
  LoopFn *saving; /* of one with a log: called when that is full */
  u32 log;     /* 1 + the first of the buffers that say what was changed in it (NLog): calls inside change it */
  bool by_value; /* with a log: each call leaves it as it got it */
  const NMark *mark; /* by value, inside of the function that calls itself: its present version */
  u32 noted; /* how many elements are, behind the last note */
  const struct NSplit *shape; /* of a result */
  LoopType elem;
  ArrayType type;
} NBuffer;

/* Of an array that a function which calls itself changes (native_undo.c): the places of the elements that were
 * written, what they were, all of it as it was, how many were written. */
typedef enum NLog { NLOG_places, NLOG_old, NLOG_whole, NLOG_count, NLOGS } NLog;

/* An array of few elements, as that many numbers (native_small.c). Never changes once it is made. */
typedef struct NSplit {
  u32 rank, count, version; /* the last: of the memory that its numbers were read from */
  i64 dims[TYPE_MAX_RANK];
  u32 ir[];
} NSplit;

typedef struct NKept { /* memory that an exit's elements go to; exits share it: one is taken */
  u32 slot, exit; /* the exit that took it last */
  ArrayType type;
  const NSplit *shape;
} NKept;

typedef struct NExit {
  u32 exit;                /* of the graph */
  VEC(RegionBind) binds;   /* what the function knows */
  VEC(u32) slots;          /* of the words that are passed: PLAN_ELEMENT of an array's slot for each of its elements */
  VEC(ValueId) passed;     /* the values they are */
  VEC(ValueId) outer;      /* values that stand in the plan */
} NExit;

typedef struct NLoop {
  struct NLoop *outer;
  u32 *buffer;   /* by carried value: buffer + 1, 0 for numbers */
  const NSplit **split; /* by carried value: its parameters when it is split, else NULL */
  u32 *versions; /* of all buffers at the head */
  const NMark **marks; /* of all buffers in front of the loop */
  u32 buffers;
} NLoop;

struct NValue {
  u32 stamp;     /* of the function that it belongs to */
  u32 ir;        /* number */
  u32 buffer;    /* array: buffer + 1 */
  const NSplit *split; /* array: its elements */
  const NSplit *loads; /* array in memory: its elements as this block has read them */
  const struct NRow *row; /* array: what gives its elements (native_rows.h) */
  u32 version;
  ValueId same_as; /* what it is another name of */
  ValueId below;   /* counter: the value that it is less than inside its loop; 0 */
  ValueId up_to;   /* counter: the value that it is at most inside its loop; 0 */
  u8 plain;      /* index: 1 taken as not negative, 2 not; 0 not asked */
  bool proved;   /* counter: not negative, by its steps */
  bool outside;  /* defined outside the function */
};
typedef struct NValue NValue;

typedef struct Native {
  Compiler *c;
  Graph *g;
  NodeId node; /* the construct; 0: all of the region */
  BlockId block, home; /* present; the one around the construct, 0: none */
  LoopFn *fn;
  NValue *values;
  u32 *done;   /* by NodeId: stamp, of checks made */
  u32 stamp;
  VEC(NArg) args;
  VEC(NBuffer) buffers;
  VEC(NExit) exits;
  u32 versions;
  NLoop *loop;
  u32 *own; /* by carried value of the construct itself: its buffer + 1 */
  VEC(LoopFn *) callees; /* functions that it calls, of the same module */
  u32 recursions; /* such functions in it, and in those */
  u32 levels; /* calls of the program that a call of such a function by itself stands for, at most */
  struct NSelf *self;    /* it is the body of a function that calls itself (native_recur.c) */
  bool loads_ahead;
  /* parts of arrays, and what is made of them, are stored and reduced by kernels that the function calls */
  bool rows;
  VEC(LoopFn *) kernels;
  u32 raised; /* loops that became such */
  u32 carried; /* loads that loops carry instead */
  u32 now;     /* the exit that holds at this place; NO_EXIT: not known */
  bool small;  /* arrays of few elements become numbers, */
  bool in_memory, carries_few; /* but not those that the construct carries, of which there are some */
  u32 picks, picks_most; /* selects made of elements that are known only in the trip; more than that are refused */
  VEC(NKept) kept;
  VEC(u32) assumed; /* symbols taken as what they were while tracing: the plan asks before the call */
  i64 *sym_values; /* by symbol, as far as native_dim asked */
  const char *why; /* it cannot be built */
} Native;

NValue *native_value(Native *n, ValueId v);
bool native_outside(Native *n, ValueId v); /* defined around the construct */
/* Computes a number of the present block ahead of its place, if it can be. */
bool native_force(Native *n, ValueId v);

/* native_exits.c. The number by which the function leaves for a graph exit, and what it passes. 0: that cannot be done
 * here. */
u32 native_exit(Native *n, u32 graph_exit, u32 **values, u32 *count);
/* Can the exit be taken here: are its arrays as they are now, its numbers known? Without adding anything. */
bool native_exit_ready(Native *n, u32 graph_exit);

/* native_undo.c: what is changed in an array by calls inside is put back where the code is left. */
bool native_log_params(Native *n, u32 buffer); /* the function that calls itself is given them */
bool native_log_make(Native *n, u32 buffer, bool by_value); /* the one around makes them */
/* The element at constant + terms is about to be written. */
bool native_log(Native *n, u32 buffer, i64 constant, const LoopTerm *terms, u32 count);
void native_log_forget(Native *n, u32 buffer); /* the outermost call is over */
/* Of an array by value, inside: the present version is one that can be had again. */
bool native_mark(Native *n, u32 buffer, u32 noted); /* 0: what the count is here */
/* A version that was there before is there again. False: it cannot be had, or `why`. */
bool native_go_back(Native *n, u32 buffer, u32 version);
/* Two ways of the function meet: what can be had again on both. */
const NMark *native_marks_meet(const NMark *a, const NMark *b);
Dim native_elements(Native *n, const ArrayType *t);

/* What native_recur.c needs of native.c. */
bool native_body(Native *n, BlockId b); /* its nodes; control reaches the terminator, which is a yield */
void native_release(Native *n);

/* native_hoist.c: checks of indices out of loops, in a function that is whole. False: memory refused. */
bool native_hoist(Native *n);

/* native_carry.c: elements whose places loops carry, likewise. */
bool native_carry(Native *n);

/* native_raise.c: loops of independent trips as calls of kernels, likewise. */
bool native_raise(Native *n);

/* native_cond.c, and what it needs of native.c. */
typedef enum Flow { FLOW_ON, FLOW_GONE, FLOW_BAIL } Flow;
bool native_cond(Native *n, NodeId node, bool *goes_on);
Flow native_block(Native *n, BlockId b); /* FLOW_ON: control reaches the terminator, which the caller writes */
void native_captures(Native *n, NodeId node, BlockId b);
/* `split`: of a yield, by result: what its elements look like, NULL for what stays as it is. */
bool native_terminator(Native *n, BlockId b, u32 results, const NSplit **split);

/* native_recur.c: `recur` as a function of its own and a call of it, `self` as a call in it. */
bool native_recur(Native *n, NodeId node);
bool native_self(Native *n, NodeId node);
bool native_recur_gives(const Graph *g, NodeId recur, u32 operand); /* an array; false: it is given it by value */
bool native_calls_arm(const Native *n, BlockId b); /* does a call stand for the arm of a cond: */
bool native_call_arm(Native *n, BlockId b);        /* makes it */
bool native_shares(const Native *n, NodeId node);  /* does a cond give what calls behind it would: */
bool native_share(Native *n, NodeId node);         /* makes it */

/* An index that is taken as not negative (see native.c). */
bool native_plain(Native *n, ValueId v);

bool native_bail(Native *n, const char *why); /* false */
bool native_no_memory(Native *n);             /* likewise */
u32 native_number(Native *n, ValueId v);      /* as it is now; 0: it cannot be had here */
LoopType native_type(Native *n, ValueId v);
u32 native_dim_ir(Native *n, Dim d);
bool native_size_own(Native *n, Dim d); /* it speaks of what the function computes */
u32 native_buffer_param(Native *n, LoopType elem, LoopDir dir); /* of the buffer that comes next */
u32 native_size_ir(Native *n, Dim d); /* of an expression with symbols that belong to the function */
u32 native_buffer(Native *n, ValueId v); /* of an array, at the version that v means; UINT32_MAX: none */
u32 native_index(Native *n, ValueId v, u32 size); /* i64, counted from the end when it may be negative */
/* What `x[…] op= value` stores for one element; `old` as the array has it. 0: it may fail. */
u32 native_stored(Native *n, NodeId update, const ArrayType *array, u32 old, u32 value);

/* The function of n->node; of 0: of the region. False: `why`, or memory was refused. */
bool native_function(Native *n);

/* native_make.c. A `while` of arrays of any sizes, by kernels that the function calls; its steps are in the plan. */
bool native_make_rows(Compiler *c, NodeId node);

/* native_steps.c */
void native_steps(Native *n); /* the call, in the plan */

/* native_small.c */
enum { SMALL_ELEMENTS = 256, SMALL_CARRIED = 64, SMALL_NODES = 4000 };
bool native_dim(Native *n, Dim d, i64 *out); /* the size is known while the function is made, or small and assumed */
bool native_dim_known(Native *n, Dim d, i64 *out); /* nothing more is assumed */
bool native_is_small(Native *n, ValueId v);  /* an array that is, or can be, split */
/* Updates and arms lead from value `from`, or from an array in memory that the function writes when it is 0, to v: it
 * lies where that lay. */
bool native_stays(Native *n, ValueId v, ValueId from);
bool native_carried_stays(Native *n, NodeId loop, u32 i); /* in every trip */
const NSplit *native_split(Native *n, ValueId v); /* numbers too; NULL: it cannot be had here */
NSplit *native_split_new(Native *n, u32 rank, const i64 *dims); /* without elements; NULL: too many, or no memory */
bool native_split_set(Native *n, ValueId v, const NSplit *s); /* rank 0: a number */
/* the element of x that meets element `at` of out */
u32 native_broadcast_at(const NSplit *x, const NSplit *out, u32 at);
bool native_small_op(Native *n, NodeId node);
bool native_small_check(Native *n, NodeId node, u32 number, u32 count, const u32 *values);
/* native_loops.c: that places of a row are there */
bool native_rows_check(Native *n, NodeId node, u32 exit, u32 count, const u32 *values);

/* native_views.c */
/* in a function that could have its arrays in memory: what each costs is little, all that MIR makes of them is not */
enum { PICKS_MOST = 64 };
bool native_small_view(Native *n, NodeId node);   /* an operation that only moves elements, or makes constants */
bool native_small_index(Native *n, NodeId node);
bool native_small_update(Native *n, NodeId node); /* of an array that is split */
bool native_small_store(Native *n, NodeId node);  /* rows of one that is not */

/* native_rows.c, native_loops.c. False: `why`. */
bool native_rows_node(Native *n, NodeId node);  /* an operation or index on arrays */
bool native_rows_store(Native *n, NodeId node); /* an update of a part of an array */
bool native_rows_ready(Native *n, ValueId v);   /* is it, as a row, still to be had? */
bool native_rows_carry(Native *n, BlockId b);   /* next, break: what is computed goes where the loop has it */

/* native_random.c */
bool native_small_draw(Native *n, NodeId node, bool *known);

/* native_range.c */
void native_find_counters(Native *n, NodeId loop);
bool native_index_proved(Native *n, ValueId index, ValueId size);
/* Does the loop count: is its condition `p < bound` alone and each next p + 1, where p is carried value *at? */
bool native_counts(Native *n, NodeId loop, u32 *at, ValueId *bound);

#endif
