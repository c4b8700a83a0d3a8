/* native.h — inside jit/: one native function in the making (native.c, native_range.c). */
#ifndef WEFT_JIT_NATIVE_H
#define WEFT_JIT_NATIVE_H

#include "jit/kernel.h"

typedef enum NArgKind { NARG_number, NARG_dim, NARG_buffer } NArgKind;
typedef struct NArg { /* a parameter */
  u8 kind;
  ValueId value;
  Dim dim;
  u32 buffer;
  u32 ir;
} NArg;

typedef struct NBuffer {
  ValueId value, from; /* written: the result that it becomes, and what it begins as */
  u32 slot, ir, version;
  bool written;
  LoopType elem;
  ArrayType type;
} NBuffer;

typedef struct NExit {
  u32 exit;                /* of the graph */
  VEC(RegionBind) binds;   /* what the function knows */
  VEC(u32) slots;          /* of the numbers that are passed … */
  VEC(ValueId) passed;     /* … which */
  VEC(ValueId) outer;      /* values that stand in the plan */
} NExit;

typedef struct NLoop {
  struct NLoop *outer;
  u32 *buffer;   /* by carried value: buffer + 1, 0 for numbers */
  u32 *versions; /* of all buffers at the head */
  u32 buffers;
} NLoop;

struct NValue {
  u32 stamp;     /* of the function that it belongs to */
  u32 ir;        /* number */
  u32 buffer;    /* array: buffer + 1 */
  u32 version;
  ValueId same_as; /* what it is another name of */
  ValueId below;   /* counter: the value that it is less than inside its loop; 0 */
  u8 plain;      /* index: 1 taken as not negative, 2 not; 0 not asked */
  bool proved;   /* counter: not negative, by its steps */
  bool outside;  /* defined outside the function */
};
typedef struct NValue NValue;

typedef struct Native {
  Compiler *c;
  Graph *g;
  NodeId node;
  BlockId block, home; /* present; the one around the construct */
  LoopFn *fn;
  NValue *values;
  u32 *done;   /* by NodeId: stamp, of checks made */
  u32 stamp;
  VEC(NArg) args;
  VEC(NBuffer) buffers;
  VEC(NExit) exits;
  u32 versions;
  NLoop *loop;
  VEC(LoopFn *) callees; /* functions that it calls, of the same module */
  struct NSelf *self;    /* it is the body of a function that calls itself (native_recur.c) */
  bool loads_ahead;
  const char *why; /* it cannot be built */
} Native;

NValue *native_value(Native *n, ValueId v);
bool native_outside(Native *n, ValueId v); /* defined around the construct */
/* Computes a number of the present block ahead of its place, if it can be. */
bool native_force(Native *n, ValueId v);

/* What native_recur.c needs of native.c. */
bool native_bail(Native *n, const char *why);
bool native_no_memory(Native *n);
u32 native_number(Native *n, ValueId v); /* as it is now; 0: it cannot be had here */
u32 native_buffer(Native *n, ValueId v); /* at the version that v means; UINT32_MAX */
u32 native_dim(Native *n, Dim d);
u32 native_exit(Native *n, u32 graph_exit, u32 **values, u32 *count); /* number of the function's; 0 */
bool native_body(Native *n, BlockId b); /* its nodes; control reaches the terminator, which is a yield */
void native_release(Native *n);

/* native_recur.c: `recur` as a function of its own and a call of it, `self` as a call in it. */
bool native_recur(Native *n, NodeId node);
bool native_self(Native *n, NodeId node);

/* An index that is taken as not negative (see native.c). */
bool native_plain(Native *n, ValueId v);

/* native_range.c */
void native_find_counters(Native *n, NodeId loop);
bool native_index_proved(Native *n, ValueId index, ValueId size);

#endif
