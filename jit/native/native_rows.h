/* native_rows.h — inside jit/: arrays of any size within a native function, as what gives their elements
 * (native_rows.c), and the loops that store or reduce them (native_loops.c). */
#ifndef WEFT_JIT_NATIVE_ROWS_H
#define WEFT_JIT_NATIVE_ROWS_H

#include "jit/native/native.h"

enum { ROW_DEPTH = 40,
       ROW_STEPS = 512 /* of walking through what makes a row, shared parts as often as they are used */,
       ROW_ELEMENTS = 1 << 17 /* expected; more is work for steps of the plan, which threads share */ };

/* How an axis of a buffer is walked: from `at` + `by` on. */
typedef struct NAxis {
  bool slice;
  u32 to; /* slice: the axis of the row */
  i64 step;
  Dim at;
  ValueId by; /* an integer of the trip, or 0 */
  u32 by_ir;
} NAxis;

/* Part of a buffer (node 0), or what an operation makes of such. `bound`: sizes known before the function that are not
 * less. */
typedef struct NRow {
  u32 rank;
  NodeId node;
  Dim dims[TYPE_MAX_RANK], bound[TYPE_MAX_RANK];
  u32 buffer, version, axes, steps;
  NAxis axis[TYPE_MAX_RANK];
} NRow;

const NRow *native_row(Native *n, ValueId v); /* NULL: it has none, or `why` */
bool native_row_type(Native *n, const ArrayType *t); /* kernels of the function can hold such elements */
bool native_row_part(Native *n, NodeId node, ValueId x, NRow *out); /* what an index or update names of x */

/* Memory that the plan makes before the call: for v, of its bounds. UINT32_MAX: it cannot. */
u32 native_temp(Native *n, ValueId v, const NRow *r);
bool native_fill(Native *n, ValueId v); /* v is computed now, into memory of its own */
/* The buffer in which an update or loop may change v; who needs v as it is has a copy. UINT32_MAX: `why`. */
u32 native_own(Native *n, NodeId node, ValueId v);
bool native_row_element(Native *n, NodeId node); /* an index that names one */
ValueId native_places(Native *n, NodeId node);   /* the places of an index x[places] of rank 1; 0: it is another */
bool native_reduce(Native *n, NodeId node);

#endif
