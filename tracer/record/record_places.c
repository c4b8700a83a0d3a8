/* record_places.c — see record_places.h. */
#include "tracer/record/record_places.h"

#include "tracer/record/record_run.h"

/* The numbers 0, 1, … of x's elements, in x's shape. */
static ValueId numbers(Graph *g, const ArrayType *t, Dim size) {
  GraphAttr stop[4] = {attr_dim(0, size), attr_hole(1), attr_hole(2), attr_hole(3)};
  ValueId v = graph_op(g, OP_arange, NULL, 0, stop, 4, NULL);
  return v ? graph_reshape(g, v, t->rank, t->dims) : 0;
}

static Dim size_of_type(Graph *g, const ArrayType *t) {
  Dim n = 1;
  for (u32 d = 0; d < t->rank && n != DIM_NONE; d++) n = size_mul(&g->sizes, n, t->dims[d]);
  return n;
}

/* One trip: flat[at] = flat[at] op v, as the array's dtype has it */
static BlockId one_place(Graph *g, const ValueId *xs, u32 op, ValueId flat) {
  static const IndexItem at = {.kind = INDEX_int, .part = {PART_operand}, .at = {1}};
  const u32 dtype = value_type(g, flat)->dtype;
  TypeId types[3] = {g->values.data[flat].type, graph_scalar_type(g, value_type(g, xs[0])->dtype, false),
                     graph_scalar_type(g, value_type(g, xs[1])->dtype, false)};
  ValueId params[3];
  BlockId b = graph_open(g);
  for (u32 i = 0; i < 3 && b; i++)
    if (!(params[i] = graph_param(g, b, types[i]))) return 0;
  ValueId old = b ? graph_index(g, params[0], &params[1], 1, &at, 1, graph_scalar_type(g, dtype, false)) : 0;
  ValueId next = old ? graph_op2(g, op, old, params[2]) : 0;
  next = next ? graph_convert(g, next, dtype) : 0;
  ValueId after = next ? graph_update(g, OP_none, params[0], &params[1], 1, &at, 1, next) : 0;
  return after && graph_close(g, TERM_next, &after, 1, 0) ? b : 0;
}

Outcome rec_each_place(Recorder *r, ValueId x, const ValueId *operands, u32 count, const IndexItem *items, u32 nitems,
                       const ArrayType *part, u32 op, ValueId v, ValueId *out) {
  Graph *g = r->g;
  const ArrayType t = *value_type(g, x);
  ArrayType places = *part;
  Dim size = size_of_type(g, &t), n = size_of_type(g, part);
  if (size == DIM_NONE || n == DIM_NONE) return rec_stuck(r, REASON_size_expression, "a store at places");
  places.dtype = DT_i64;
  ValueId at = numbers(g, &t, size), xs[2] = {0, 0};
  at = at ? graph_index(g, at, operands, count, items, nitems, graph_type(g, &places)) : 0;
  xs[0] = at ? graph_reshape(g, at, 1, &n) : 0;
  v = xs[0] ? graph_broadcast(g, v, part->rank, part->dims) : 0;
  xs[1] = v ? graph_reshape(g, v, 1, &n) : 0;
  ValueId flat = xs[1] ? graph_reshape(g, x, 1, &size) : 0;
  BlockId body = flat ? one_place(g, xs, op, flat) : 0;
  NodeId loop = body ? graph_scan(g, &flat, 1, xs, 2, n, false, false, body) : 0;
  *out = loop ? graph_reshape(g, node_result(g, loop, 0), t.rank, t.dims) : 0;
  return *out ? OUT_GO : OUT_FAIL;
}
