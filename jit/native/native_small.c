/* native_small.c — arrays of few elements within a native function are as many numbers: operations on them become
 * operations on numbers, without memory, loops or sizes. Shapes belong to the elements at hand, not to the graph's
 * types, so that sizes which the graph carries along with arrays are plain numbers here.
 *
 * The bits are those of eager code: elementwise operations by the same definitions, reductions in the order of ir.md
 * section 10, products in the order of the small products of stdlib/linalg/matmul.c, the sum over k from zero on. */
#include "jit/native/native.h"

#include <string.h>

/* multiplications of floats up to which the eager product goes by k; see stdlib/linalg/matmul.c */
enum { MATMUL_IN_ORDER = 512 };

/* ---- sizes ------------------------------------------------------------------------------------------------ */

typedef struct DimAsk {
  Native *n;
  i64 *values;
  bool known, assume;
} DimAsk;

static bool is_assumed(const Native *n, u32 sym) {
  for (u32 i = 0; i < n->assumed.count; i++)
    if (n->assumed.data[i] == sym) return true;
  return false;
}

/* A size that an array carries is what its elements say; others may be taken as what they were while tracing. */
static void ask_symbol(void *ctx, u32 sym) {
  DimAsk *a = ctx;
  const SizePool *p = &a->n->g->sizes;
  const SizeSym *s = &p->syms.data[sym];
  if (!s->unbacked) {
    a->values[sym] = s->hint;
    if (is_assumed(a->n, sym)) return;
    if (!a->assume || s->hint < 1 || s->hint > SMALL_CARRIED) a->known = false;
    else if (!vec_push(a->n->c->alloc, &a->n->assumed, sym)) native_no_memory(a->n);
    return;
  }
  const NValue *x = s->source ? native_value(a->n, s->source) : NULL;
  if (!x || !x->split || s->axis >= x->split->rank) a->known = false;
  else a->values[sym] = x->split->dims[s->axis];
}

static bool dim_of(Native *n, Dim d, bool assume, i64 *out) {
  SizePool *p = &n->g->sizes;
  if (dim_is_const(n->c, d, out)) return true;
  if (!n->small || d == DIM_NONE) return false;
  if (!n->sym_values) n->sym_values = arena_alloc(&n->c->arena, sizeof *n->sym_values * (p->syms.count + 1));
  if (!n->sym_values) return native_no_memory(n);
  u32 mark = n->assumed.count;
  DimAsk a = {n, n->sym_values, true, assume};
  d = size_resolve(p, d);
  if (d == DIM_NONE) return false;
  size_symbols(p, d, ask_symbol, &a);
  if (a.known && size_eval(p, d, n->sym_values, out)) return true;
  n->assumed.count = mark;
  return false;
}

bool native_dim(Native *n, Dim d, i64 *out) { return dim_of(n, d, true, out); }
bool native_dim_known(Native *n, Dim d, i64 *out) { return dim_of(n, d, false, out); }

/* ---- elements ---------------------------------------------------------------------------------------------- */

NSplit *native_split_new(Native *n, u32 rank, const i64 *dims) {
  i64 count = 1;
  for (u32 d = 0; d < rank; d++)
    if (dims[d] < 0 || dims[d] > SMALL_ELEMENTS || (count *= dims[d]) > SMALL_ELEMENTS) {
      native_bail(n, "an array of many elements");
      return NULL;
    }
  if (n->fn->nodes.count > SMALL_NODES) {
    native_bail(n, "a loop of too many elements");
    return NULL;
  }
  NSplit *s = arena_alloc(&n->c->arena, sizeof *s + sizeof *s->ir * ((size_t)count + 1));
  if (!s) {
    native_no_memory(n);
    return NULL;
  }
  s->rank = rank;
  s->count = (u32)count;
  if (rank) memcpy(s->dims, dims, sizeof *dims * rank);
  return s;
}

static bool type_dims(Native *n, const ArrayType *t, i64 *dims, i64 *count, i64 most) {
  u32 mark = n->assumed.count;
  *count = 1;
  for (u32 d = 0; d < t->rank; d++) {
    if (native_dim(n, t->dims[d], &dims[d]) && dims[d] >= 1 && dims[d] <= most && (*count *= dims[d]) <= most) continue;
    n->assumed.count = mark;
    return false;
  }
  return true;
}

bool native_is_small(Native *n, ValueId v) {
  i64 dims[TYPE_MAX_RANK], count;
  const NValue *x = native_value(n, v);
  if (x->split) return true;
  const ArrayType t = *value_type(n->g, v);
  if (x->buffer && n->buffers.data[x->buffer - 1].written) return false;
  return t.rank > 0 && t.device == DEV_CPU && dtype_in_loops(t.dtype) && native_outside(n, v) &&
         type_dims(n, &t, dims, &count, SMALL_CARRIED);
}

/* ---- what stays in memory -------------------------------------------------------------------------------------- */

enum { STAYS_STEPS = 512 }; /* what has more of them is taken to stay: then it is refused where it does not */

static bool loop_stays(Native *n, NodeId loop, u32 i, u32 *steps);

static bool small_stays(Native *n, ValueId v, ValueId from, u32 *steps) {
  const Graph *g = n->g;
  while (++*steps < STAYS_STEPS) {
    const NValue *x = native_value(n, v);
    if (from ? v == from : x->buffer && n->buffers.data[x->buffer - 1].written) return true;
    const GraphBlock *b = g->values.data[v].origin == GV_param ? &g->blocks.data[value_block(g, v)] : NULL;
    NodeId d = b ? b->node : value_node(g, v);
    if (!d) return false;
    const GraphNode *node = graph_node_at(g, d);
    u32 first, count = b ? node_captures(g, d, &first) : 0, k = 0;
    if (b) {
      while (k < count && k < b->captures.count && b->captures.data[k].inner != v) k++;
      if (k < count && k < b->captures.count) v = node_operand(g, d, first + k);
      else {
        for (k = 0; node->kind == NODE_while && k < node->carried && b->params.data[k] != v;) k++;
        if (node->kind != NODE_while || k == node->carried) return false;
        v = node_operand(g, d, k);
      }
    } else if (node->kind == NODE_update || node->kind == NODE_hook) {
      v = node_operand(g, d, 0);
    } else if (node->kind == NODE_while) {
      k = v - node->result_first;
      if (k >= node->carried || !loop_stays(n, d, k, steps)) return false;
      v = node_operand(g, d, k);
    } else if (node->kind == NODE_cond) {
      for (u32 arm = 0; arm < 2; arm++)
        if (g->blocks.data[node->sub[arm]].term == TERM_yield &&
            !small_stays(n, block_result(g, node->sub[arm], v - node->result_first), from, steps))
          return false;
      return true;
    } else {
      return false;
    }
  }
  return true;
}

/* The loop that a block's next or break belongs to. */
static NodeId loop_around(const Graph *g, BlockId b) {
  while (b && g->blocks.data[b].node && graph_node_at(g, g->blocks.data[b].node)->kind == NODE_cond)
    b = g->blocks.data[b].parent;
  return b ? g->blocks.data[b].node : 0;
}

static bool loop_stays(Native *n, NodeId loop, u32 i, u32 *steps) {
  const Graph *g = n->g;
  ValueId p = g->blocks.data[graph_node_at(g, loop)->sub[1]].params.data[i];
  for (BlockId b = 1; b < g->blocks.count; b++) {
    u8 term = g->blocks.data[b].term;
    if ((term == TERM_next || term == TERM_break) && loop_around(g, b) == loop &&
        !small_stays(n, block_result(g, b, i), p, steps))
      return false;
  }
  return true;
}

bool native_stays(Native *n, ValueId v, ValueId from) { return small_stays(n, v, from, &(u32){0}); }
bool native_carried_stays(Native *n, NodeId loop, u32 i) { return loop_stays(n, loop, i, &(u32){0}); }

const NSplit *native_split(Native *n, ValueId v) {
  const NValue *x = native_value(n, v);
  if (x->split) return x->split;
  const ArrayType t = *value_type(n->g, v);
  i64 dims[TYPE_MAX_RANK], count = 1;
  if (t.rank && (t.device != DEV_CPU || !dtype_in_loops(t.dtype) || !type_dims(n, &t, dims, &count, SMALL_ELEMENTS))) {
    native_bail(n, "an array of many elements, or of a size that is not known");
    return NULL;
  }
  u32 at = t.rank ? native_buffer(n, v) : 0;
  if (at == UINT32_MAX) return NULL;
  if (x->loads && x->loads->version == x->version) return x->loads;
  NSplit *s = native_split_new(n, t.rank, dims);
  if (!s) return NULL;
  for (u32 i = 0; i < s->count; i++) {
    s->ir[i] = t.rank ? loop_load(n->fn, n->buffers.data[at].ir, i, NULL, 0) : native_number(n, v);
    if (!s->ir[i]) return native_bail(n, "a value that is not there"), NULL;
  }
  if (t.rank) s->version = native_value(n, v)->version, native_value(n, v)->loads = s;
  return s;
}

bool native_split_set(Native *n, ValueId v, const NSplit *s) {
  if (!s || n->why || n->fn->failed)
    return native_bail(n, n->fn->failed ? n->fn->failed : "an operation that does not lower");
  for (u32 i = 0; i < s->count; i++)
    if (!s->ir[i]) return native_bail(n, "an operation that does not lower");
  *native_value(n, v) = (NValue){.stamp = n->stamp, .ir = value_type(n->g, v)->rank ? 0 : s->ir[0],
                                 .split = value_type(n->g, v)->rank ? s : NULL};
  return true;
}

/* The same elements as another type. */
static const NSplit *converted(Native *n, const NSplit *s, LoopType from, LoopType to) {
  if (!s || from == to) return s;
  NSplit *c = native_split_new(n, s->rank, s->dims);
  for (u32 i = 0; c && i < s->count; i++) c->ir[i] = element_convert(n->fn, s->ir[i], from, to);
  return c;
}

static const NSplit *operand_as(Native *n, ValueId v, LoopType to) {
  return converted(n, native_split(n, v), native_type(n, v), to);
}

static u32 small_binary(Native *n, LoopOp op, u32 a, u32 b) { return loop_emit(n->fn, op, LT_VOID, a, b, 0); }

/* ---- by element ---------------------------------------------------------------------------------------------- */

static bool broadcast_dims(Native *n, const NSplit *const *x, u32 count, u32 *rank, i64 *dims) {
  *rank = 0;
  for (u32 i = 0; i < count; i++)
    if (x[i] && x[i]->rank > *rank) *rank = x[i]->rank;
  for (u32 d = 0; d < *rank; d++) dims[d] = 1;
  for (u32 i = 0; i < count; i++)
    for (u32 d = 0; x[i] && d < x[i]->rank; d++) {
      i64 *to = &dims[*rank - x[i]->rank + d];
      if (*to == 1) *to = x[i]->dims[d];
      else if (x[i]->dims[d] != 1 && x[i]->dims[d] != *to) return native_bail(n, "shapes that do not go together");
    }
  return true;
}

/* The element of x that meets element `at` of the result. */
u32 native_broadcast_at(const NSplit *x, const NSplit *out, u32 at) {
  i64 rest = at, place = 0, step = 1;
  for (u32 d = out->rank; d-- > 0;) {
    i64 i = rest % out->dims[d];
    rest /= out->dims[d];
    u32 back = out->rank - d;
    if (back > x->rank) continue;
    i64 size = x->dims[x->rank - back];
    if (size != 1) place += i * step;
    step *= size;
  }
  return (u32)place;
}

static bool by_element(Native *n, NodeId node) {
  Graph *g = n->g;
  ValueId operands[3], v = node_result(g, node, 0);
  const NSplit *x[3] = {0};
  u32 compute, rank, op = graph_node_at(g, node)->op, count = element_operands(g, node, operands);
  i64 dims[TYPE_MAX_RANK];
  if (!element_lowers(n->c, node, &compute)) return native_bail(n, "an operation that does not lower");
  LoopType t = loop_type_of_dtype(compute);
  for (u32 i = 0; i < count; i++)
    if (operands[i] && !(x[i] = operand_as(n, operands[i], element_operand_type(op, i, compute,
                                                                                value_type(g, operands[i])->dtype))))
      return false;
  if (!broadcast_dims(n, x, count, &rank, dims)) return false;
  NSplit *s = native_split_new(n, rank, dims);
  for (u32 e = 0; s && e < s->count; e++) {
    u32 at[3] = {0};
    for (u32 i = 0; i < count; i++) at[i] = x[i] ? x[i]->ir[native_broadcast_at(x[i], s, e)] : 0;
    s->ir[e] = element_emit(n->fn, op, t, value_type(g, v)->dtype, at);
  }
  return native_split_set(n, v, s);
}

bool native_small_check(Native *n, NodeId node, u32 number, u32 count, const u32 *values) {
  Graph *g = n->g;
  const GraphNode *x = graph_node_at(g, node);
  ValueId a = node_operand(g, node, 0), b = x->operand_count > 1 ? node_operand(g, node, 1) : 0;
  u32 dtype = x->op == CHECK_cast_range && b ? value_type(g, b)->dtype : DT_NONE, rank;
  bool index = x->op == CHECK_index;
  LoopType type = index ? LT_I64 : native_type(n, a);
  const NSplit *p[2] = {operand_as(n, a, type),
                        b && x->op != CHECK_cast_range ? operand_as(n, b, index ? LT_I64 : native_type(n, b)) : NULL};
  i64 dims[TYPE_MAX_RANK];
  if (n->why || !broadcast_dims(n, p, 2, &rank, dims)) return false;
  NSplit *s = native_split_new(n, rank, dims);
  for (u32 e = 0; s && e < s->count; e++)
    if (!element_check(n->fn, (CheckKind)x->op, type, dtype, p[0]->ir[native_broadcast_at(p[0], s, e)],
                       p[1] ? p[1]->ir[native_broadcast_at(p[1], s, e)] : 0, number, count, values))
      return native_bail(n, "an unknown check");
  return s && !n->why;
}

/* ---- reductions ------------------------------------------------------------------------------------------------ */

/* Elements in the order of their numbers: lanes, or rows in blocks of 64. The start of a lane is an exact identity:
 * left out. */
static u32 fold(Native *n, LoopReduce op, LoopType t, bool lanes, u32 *e, u32 count) {
  LoopOp with = loop_reduce_op(op);
  u32 width = lanes ? loop_lanes(t) : 1;
  if (count == 0 || count > 64) return native_bail(n, "a reduction of many elements, or of none"), 0;
  for (u32 i = width; i < count; i++) e[i % width] = small_binary(n, with, e[i % width], e[i]);
  u32 present = count < width ? count : width;
  for (u32 half = width / 2; half; half /= 2)
    for (u32 i = 0; i < half && i + half < present; i++) e[i] = small_binary(n, with, e[i], e[i + half]);
  return e[0];
}

/* argmin, argmax: NaN wins, the first of ties. */
static u32 small_extreme(Native *n, u32 op, LoopType t, const u32 *e, u32 count) {
  u32 best = e[0], number = loop_const_i(n->fn, LT_I64, 0);
  if (count == 0) return native_bail(n, "a reduction of nothing"), 0;
  for (u32 i = 1; i < count; i++) {
    u32 take = small_binary(n, op_info(op)->folds == FOLD_argmin ? LOOP_LT : LOOP_GT, e[i], best);
    if (loop_is_float(t))
      take = small_binary(n, LOOP_OR, take, small_binary(n, LOOP_AND, small_binary(n, LOOP_NE, e[i], e[i]),
                                                         small_binary(n, LOOP_EQ, best, best)));
    best = loop_emit(n->fn, LOOP_SELECT, LT_VOID, take, e[i], best);
    number = loop_emit(n->fn, LOOP_SELECT, LT_VOID, take, loop_const_i(n->fn, LT_I64, i), number);
  }
  return number;
}

static bool reduction(Native *n, NodeId node) {
  Graph *g = n->g;
  u32 op = graph_node_at(g, node)->op, mask, e[SMALL_ELEMENTS];
  GraphArg args[OP_MAX_PARAMS];
  node_args(g, node, args);
  ValueId v = node_result(g, node, 0);
  if (op_info(op)->lower != LOWER_reduce) return native_bail(n, "a reduction that does not lower");
  if (args[0].kind != ARG_value || !arg_axes(&args[op_param(op, "axis")], value_type(g, args[0].value)->rank, &mask))
    return native_bail(n, "axes known only at run time");
  bool extremes = op_folds_place(op), truth = op_folds_truth(op);
  bool keep = arg_bool(&args[op_param(op, "keepdims")], false);
  LoopType own = native_type(n, args[0].value), acc = extremes ? own == LT_I1 ? LT_U8 : own : native_type(n, v);
  const NSplit *x = truth ? converted(n, operand_as(n, args[0].value, LT_I1), LT_I1, acc)
                          : operand_as(n, args[0].value, acc);
  if (!x) return false;
  i64 dims[TYPE_MAX_RANK];
  u32 rank = 0;
  for (u32 d = 0; d < x->rank; d++)
    if (!(mask >> d & 1)) dims[rank++] = x->dims[d];
    else if (keep) dims[rank++] = 1;
  NSplit *s = native_split_new(n, rank, dims);
  bool lanes = x->rank && (mask >> (x->rank - 1) & 1);
  for (u32 r = 0; s && r < s->count; r++) {
    u32 count = 0;
    for (u32 i = 0; i < x->count; i++) { /* those whose kept indices have the number r */
      i64 rest = i, kept = 0, step = 1;
      for (u32 d = x->rank; d-- > 0;) {
        if (!(mask >> d & 1)) {
          kept += rest % x->dims[d] * step;
          step *= x->dims[d];
        }
        rest /= x->dims[d];
      }
      if (kept == r) e[count++] = x->ir[i];
    }
    if (!mask) s->ir[r] = extremes ? loop_const_i(n->fn, LT_I64, 0) : e[0];
    else
      s->ir[r] = extremes ? small_extreme(n, op, acc, e, count)
                          : fold(n, element_reduce(op, acc), acc, lanes, e, count);
    if (n->why) return false;
  }
  return native_split_set(n, v, s);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static bool product_types(Native *n, NodeId node, u32 rule, LoopType *t) {
  Graph *g = n->g;
  const ArrayType *types[2] = {value_type(g, node_operand(g, node, 0)), value_type(g, node_operand(g, node, 1))};
  DTypeResult r;
  RuleError err;
  if (graph_node_at(g, node)->operand_count != 2 || !rule_dtype(rule, 2, types, &r, &err) || !dtype_in_loops(r.compute))
    return native_bail(n, "a product that does not lower");
  if (loop_type_of_dtype(r.compute) == LT_I1) return native_bail(n, "a product of truths");
  for (u32 i = 0; i < 2; i++)
    if (!element_weak_fits(n->c, node_operand(g, node, i), r.compute)) return native_bail(n, "a product that may fail");
  *t = loop_type_of_dtype(r.compute);
  return true;
}

static bool matmul(Native *n, NodeId node) {
  Graph *g = n->g;
  LoopType t;
  ValueId v = node_result(g, node, 0);
  if (!product_types(n, node, OP_matmul, &t)) return false;
  const NSplit *x = operand_as(n, node_operand(g, node, 0), t), *y = operand_as(n, node_operand(g, node, 1), t);
  if (!x || !y) return false;
  if (!x->rank || !y->rank || x->rank > 2 || y->rank > 2) return native_bail(n, "a product of many matrices");
  i64 m = x->rank == 2 ? x->dims[0] : 1, k = x->dims[x->rank - 1], cols = y->rank == 2 ? y->dims[1] : 1, dims[2];
  u32 rank = 0;
  if (k != y->dims[0] || (loop_is_float(t) && m * k * cols > MATMUL_IN_ORDER)) return native_bail(n, "a large product");
  if (x->rank == 2) dims[rank++] = m;
  if (y->rank == 2) dims[rank++] = cols;
  NSplit *s = native_split_new(n, rank, dims);
  for (i64 e = 0; s && e < m * cols; e++) {
    u32 sum = loop_const_i(n->fn, t, 0);
    for (i64 p = 0; p < k; p++)
      sum = small_binary(n, LOOP_ADD, sum,
                         small_binary(n, LOOP_MUL, x->ir[e / cols * k + p], y->ir[p * cols + e % cols]));
    s->ir[e] = sum;
  }
  return native_split_set(n, v, converted(n, s, t, native_type(n, v)));
}

/* ---- operations ------------------------------------------------------------------------------ */

bool native_small_op(Native *n, NodeId node) {
  Graph *g = n->g;
  const GraphNode *x = graph_node_at(g, node);
  for (u32 i = 0; i < x->operand_count; i++) {
    ValueId v = node_operand(g, node, i);
    if (value_is_token(g, v) || native_type(n, v) == LT_VOID || value_type(g, v)->device != DEV_CPU)
      return native_bail(n, "an operand outside the loop IR");
  }
  if (value_is_token(g, node_result(g, node, 0)) || native_type(n, node_result(g, node, 0)) == LT_VOID)
    return native_bail(n, "a result outside the loop IR");
  if (node_is_eager(n->c, node)) return native_bail(n, "an operation that does not lower");
  bool known = false;
  if (x->op == OP_matmul) return matmul(n, node);
  if (op_info(x->op)->lower == LOWER_join) return native_small_view(n, node);
  if (op_info(x->op)->family == FAM_random) {
    bool ok = native_small_draw(n, node, &known);
    return known ? ok : native_bail(n, "a draw that does not lower");
  }
  if (view_maps(g, node)) return native_small_view(n, node);
  if (op_info(x->op)->family == FAM_reduce) return reduction(n, node);
  return by_element(n, node);
}
