/* batch_rules.c — batching rules of operations (see batch.h): the operation itself over one more axis.
 * What is not here runs lane by lane. */
#include "hop/batch.h"

#include <stdio.h>
#include <string.h>

enum { ELEMENTWISE = 4, ATTRS = OP_MAX_PARAMS + 1 }; /* no elementwise operation has more operands */

typedef struct Op {
  Batch *b;
  NodeId node;
  u32 op, count, nattrs;
  ValueId *lane, *room; /* operands as the lane has them, and place for as many */
  GraphAttr attrs[ATTRS];
  GraphArg args[OP_MAX_PARAMS];
  ArrayType x;      /* the first operand's, of a lane */
  ArrayType result; /* of a lane */
} Op;

static bool mapped(const Op *o, u32 i) { return batch_is_mapped(o->b, o->lane[i]); }

static ValueId emit(Op *o, const ValueId *operands, u32 count) {
  for (u32 i = 0; i < count; i++)
    if (!operands[i]) return 0;
  Graph *g = o->b->g;
  ValueId v = graph_op(g, o->op, operands, count, o->attrs, o->nattrs, NULL);
  if (v && value_node(g, v)) g->nodes.data[value_node(g, v)].total = graph_node_at(g, o->node)->total;
  return v;
}

static GraphAttr *attr_of(Op *o, u32 param) {
  for (u32 i = 0; i < o->nattrs; i++)
    if (o->attrs[i].param == param) return &o->attrs[i];
  return NULL;
}

static void set_attr(Op *o, GraphAttr a) {
  GraphAttr *at = attr_of(o, a.param);
  if (at) *at = a;
  else if (o->nattrs < ATTRS) o->attrs[o->nattrs++] = a;
}

/* Axes counted from the front move by one; nil: all axes of a lane if `all`, else no rule. */
static bool shift_axes(Op *o, u32 param, bool all) {
  Graph *g = o->b->g;
  GraphAttr *a = attr_of(o, param);
  i64 axes[TYPE_MAX_RANK];
  if (!a || a->kind == ATTR_hole || a->kind == ATTR_nil) {
    if (!all) return a && a->kind == ATTR_hole; /* the default counts from the end */
    for (u32 i = 0; i < o->x.rank; i++) axes[i] = i + 1;
    set_attr(o, attr_ints(g, param, axes, o->x.rank, false));
    return !g->failed;
  }
  if (a->kind == ATTR_int) {
    if (a->i >= 0) a->i++;
    return true;
  }
  if (a->kind != ATTR_ints || a->pairs || a->count > TYPE_MAX_RANK) return false;
  for (u32 i = 0; i < a->count; i++) axes[i] = a->ints[i] + (a->ints[i] >= 0);
  *a = attr_ints(g, param, axes, a->count, false);
  return !g->failed;
}

static ValueId lanes_reshape(Op *o, ValueId v, const ArrayType *lane) {
  Dim dims[TYPE_MAX_RANK] = {o->b->lanes};
  memcpy(dims + 1, lane->dims, sizeof *dims * lane->rank);
  return v ? graph_reshape(o->b->g, v, lane->rank + 1u, dims) : 0;
}

/* Lanes of all operands are lined up at their last axes; weak numbers, which batched are weak no more, take the
 * dtype that the operation computes in. */
static ValueId batch_elementwise(Op *o) {
  Batch *b = o->b;
  Graph *g = b->g;
  ValueId operands[ELEMENTWISE];
  const ArrayType *types[ELEMENTWISE];
  ArrayType kept[ELEMENTWISE];
  DTypeResult dtype;
  RuleError err;
  if (o->count > ELEMENTWISE) return 0;
  for (u32 i = 0; i < o->count; i++) {
    kept[i] = *value_type(g, o->lane[i]);
    types[i] = &kept[i];
  }
  bool known = rule_dtype(o->op, o->count, types, &dtype, &err);
  for (u32 i = 0; i < o->count; i++) {
    operands[i] = batch_get(b, o->lane[i]);
    if (!mapped(o, i)) continue;
    if (kept[i].weak) {
      const bool computes = known && op_info(o->op)->params[i].kind != PARAM_condition;
      u32 to = computes ? dtype.compute : kept[i].dtype;
      operands[i] = graph_convert(g, operands[i], to);
    }
    if (operands[i]) operands[i] = batch_aligned(b, operands[i], kept[i].rank, o->result.rank);
  }
  return emit(o, operands, o->count);
}

/* x alone is mapped; the operation keeps its settings but for the axis. */
static ValueId along_axes(Op *o, u32 param, bool all) {
  ValueId *operands = o->room;
  for (u32 i = 0; i < o->count; i++) operands[i] = batch_get(o->b, o->lane[i]);
  for (u32 i = 1; i < o->count; i++)
    if (mapped(o, i)) return 0;
  return shift_axes(o, param, all) ? emit(o, operands, o->count) : 0;
}

/* Without an axis the items of all rows of a lane are rolled, but not from lane to lane. */
static ValueId batch_roll(Op *o) {
  Graph *g = o->b->g;
  const GraphAttr *a = attr_of(o, 2);
  if (a && a->kind != ATTR_hole && a->kind != ATTR_nil) return along_axes(o, 2, false);
  ArrayType flat = {.rank = 1, .dims = {1}};
  ValueId *operands = o->room;
  for (u32 i = 0; i < o->x.rank; i++) flat.dims[0] = size_mul(&g->sizes, flat.dims[0], o->x.dims[i]);
  for (u32 i = 1; i < o->count; i++) {
    if (mapped(o, i)) return 0;
    operands[i] = batch_get(o->b, o->lane[i]);
  }
  set_attr(o, attr_int(2, 1));
  if (flat.dims[0] == DIM_NONE || !(operands[0] = lanes_reshape(o, batch_get(o->b, o->lane[0]), &flat))) return 0;
  return lanes_reshape(o, emit(o, operands, o->count), &o->x);
}

static ValueId batch_transpose(Op *o) {
  u32 perm[TYPE_MAX_RANK] = {0}, n = o->x.rank;
  const GraphArg *a = &o->args[1];
  for (u32 i = 0; i < n; i++) perm[i + 1] = n - i;
  if (a->kind == ARG_attr && a->attr->kind == ATTR_ints) {
    for (u32 i = 0; i < n && i < a->attr->count; i++)
      perm[i + 1] = (u32)(a->attr->ints[i] + (a->attr->ints[i] < 0 ? n : 0)) + 1;
  } else if (a->kind == ARG_attr && a->attr->kind != ATTR_nil && a->attr->kind != ATTR_hole) {
    return 0;
  }
  return graph_transpose(o->b->g, batch_get(o->b, o->lane[0]), perm);
}

static ValueId batch_concat(Op *o) {
  ValueId *operands = o->room;
  u32 param = op_param(o->op, "axis");
  if (!attr_of(o, param) || attr_of(o, param)->kind == ATTR_hole) set_attr(o, attr_int(param, 0));
  if (!shift_axes(o, param, false)) return 0;
  for (u32 i = 0; i < o->count; i++)
    operands[i] = graph_convert(o->b->g, batch_full(o->b, o->lane[i]), o->result.dtype);
  return emit(o, operands, o->count);
}

/* A product of two vectors in each lane. One of them the same in all lanes: a matrix times a vector. Else sums of
 * products, in the order in which the product of two vectors has them. */
static ValueId batch_vectors(Op *o, const ArrayType *t, const ValueId *v) {
  Graph *g = o->b->g;
  for (u32 i = 0; i < 2; i++)
    if (mapped(o, i) && !mapped(o, 1 - i)) return graph_op2(g, OP_matmul, v[i], v[1 - i]);
  if (!mapped(o, 0) || t[0].dtype != t[1].dtype || dtype_kind(t[0].dtype) != DK_FLOAT) return 0;
  return graph_reduce(g, OP_sum, graph_op2(g, OP_multiply, v[0], v[1]), 1u << 1, false);
}

/* Both as stacks of matrices; a vector is a row or a column. */
static ValueId batch_matmul(Op *o) {
  Batch *b = o->b;
  Graph *g = b->g;
  ArrayType t[2] = {o->x, *value_type(g, o->lane[1])};
  if (t[0].rank == 0 || t[1].rank == 0 || (o->op == OP_dot && t[1].rank > 2)) return 0;
  ValueId v[2] = {batch_get(b, o->lane[0]), batch_get(b, o->lane[1])};
  u32 turn[2] = {1, 0}, rank = 2;
  if (t[0].rank == 1 && t[1].rank == 1) {
    ValueId made = batch_vectors(o, t, v);
    if (made || g->failed) return made;
  }
  if (t[0].rank == 1 && t[1].rank == 2 && !mapped(o, 1)) return graph_op2(g, OP_matmul, v[0], v[1]);
  if (t[0].rank == 2 && t[1].rank == 1 && !mapped(o, 0))
    return graph_op2(g, OP_matmul, v[1], graph_transpose(g, v[0], turn));
  for (u32 i = 0; i < 2; i++)
    if (t[i].rank > rank) rank = t[i].rank;
  if (rank + 1 > TYPE_MAX_RANK) return 0;
  for (u32 i = 0; i < 2; i++) {
    ArrayType m = t[i];
    if (m.rank == 1) {
      m.rank = 2;
      m.dims[i] = t[i].dims[0];
      m.dims[1 - i] = 1;
      if (i == 0) {
        m.dims[0] = 1;
        m.dims[1] = t[0].dims[0];
      } else {
        m.dims[0] = t[1].dims[0];
        m.dims[1] = 1;
      }
    }
    if (mapped(o, i)) {
      v[i] = lanes_reshape(o, v[i], &m);
      if (v[i]) v[i] = batch_aligned(b, v[i], m.rank, rank);
    } else if (m.rank != t[i].rank) {
      v[i] = graph_reshape(g, v[i], m.rank, m.dims);
    }
  }
  return lanes_reshape(o, v[0] && v[1] ? graph_op2(g, OP_matmul, v[0], v[1]) : 0, &o->result);
}

static ValueId batch_take(Op *o) {
  Batch *b = o->b;
  Graph *g = b->g;
  i64 axis;
  const GraphArg *a = &o->args[2];
  if (o->count != 2) return 0;
  ValueId x = batch_get(b, o->lane[0]), at = batch_get(b, o->lane[1]);
  bool flat = a->kind != ARG_attr || a->attr->kind == ATTR_nil || a->attr->kind == ATTR_hole;
  if (flat && o->x.rank != 1) return 0;
  if (flat) axis = 0;
  else if (!arg_int(a, 0, &axis)) return 0;
  if (axis < 0) axis += o->x.rank;
  if (axis < 0 || axis >= o->x.rank) return 0;
  if (mapped(o, 0) && mapped(o, 1)) return 0;
  GraphAttr along = attr_int(2, mapped(o, 0) ? axis + 1 : axis);
  ValueId v = graph_op(g, OP_take, (ValueId[]){x, at}, 2, &along, 1, NULL);
  if (!v || mapped(o, 0) || axis == 0) return v;
  GraphAttr move[2] = {attr_int(1, axis), attr_int(2, 0)};
  return graph_op(g, OP_moveaxis, &v, 1, move, 2, NULL);
}

/* One number for all sides, (before, after) for all axes, or pairs: pairs, with no border around the lanes. */
static ValueId batch_pad(Op *o) {
  GraphAttr *a = attr_of(o, 1);
  i64 widths[2 * TYPE_MAX_RANK] = {0};
  ValueId *operands = o->room;
  bool many = a && a->kind == ATTR_ints;
  if (!a || (!many && a->kind != ATTR_int) || (many && !a->pairs && a->count != 1 && a->count != 2)) return 0;
  if (many && a->pairs && a->count != 2u * o->x.rank) return 0;
  for (u32 i = 0; i < 2u * o->x.rank; i++)
    widths[2 + i] = !many ? a->i : a->ints[a->pairs ? i : i % a->count];
  *a = attr_ints(o->b->g, 1, widths, 2u * (o->x.rank + 1u), true);
  for (u32 i = 0; i < o->count; i++) {
    if (i && mapped(o, i)) return 0;
    operands[i] = batch_get(o->b, o->lane[i]);
  }
  return emit(o, operands, o->count);
}

static ValueId batch_tile(Op *o) {
  const GraphAttr *a = attr_of(o, 1);
  Dim reps[TYPE_MAX_RANK];
  u32 rank = o->result.rank;
  bool one = a && (a->kind == ATTR_int || a->kind == ATTR_dim);
  if (!a || o->count != 1 || (!one && a->kind != ATTR_dims && a->kind != ATTR_ints)) return 0;
  u32 n = one ? 1 : a->count;
  for (u32 i = 0; i <= rank; i++) reps[i] = i + n <= rank ? 1 : one ? a->i : a->ints[i + n - rank - 1];
  set_attr(o, attr_dims(o->b->g, 1, reps, rank + 1u));
  ValueId v = batch_aligned(o->b, batch_get(o->b, o->lane[0]), o->x.rank, rank);
  return emit(o, &v, 1);
}

/* By one number that all lanes share; without an axis the items of all rows of a lane follow each other. */
static ValueId batch_repeat(Op *o) {
  Graph *g = o->b->g;
  const GraphAttr *a = attr_of(o, 2);
  if (o->count != 1) return 0;
  if (a && a->kind != ATTR_hole && a->kind != ATTR_nil) return along_axes(o, 2, false);
  ArrayType flat = {.rank = 1, .dims = {1}};
  for (u32 i = 0; i < o->x.rank; i++) flat.dims[0] = size_mul(&g->sizes, flat.dims[0], o->x.dims[i]);
  ValueId v = flat.dims[0] == DIM_NONE ? 0 : lanes_reshape(o, batch_get(o->b, o->lane[0]), &flat);
  set_attr(o, attr_int(2, 1));
  return emit(o, &v, 1);
}

/* Several quantiles are the first axis of a lane: they come behind the lanes. */
static ValueId batch_quantile(Op *o) {
  Graph *g = o->b->g;
  u32 rank = o->count == 2 ? value_type(g, o->lane[1])->rank : 2;
  if (rank > 1) return 0;
  ValueId v = along_axes(o, 2, true);
  GraphAttr move[2] = {attr_int(1, 0), attr_int(2, 1)};
  return v && rank ? graph_op(g, OP_moveaxis, &v, 1, move, 2, NULL) : v;
}

static ValueId batch_full_like(Op *o) {
  if (o->count != 2) return 0;
  ValueId v = batch_get(o->b, o->lane[1]);
  if (mapped(o, 1)) v = v ? batch_aligned(o->b, v, value_type(o->b->g, o->lane[1])->rank, o->result.rank) : 0;
  return emit(o, (ValueId[]){batch_full(o->b, o->lane[0]), v}, 2);
}

/* What is looked for may have lanes, what it is looked for in has none. A weak number takes the dtype of the latter,
 * which numbers of lanes do not. */
static ValueId looked_for(Op *o, u32 what) {
  ValueId *operands = o->room;
  if (value_type(o->b->g, o->lane[what])->weak) return 0;
  for (u32 i = 0; i < o->count; i++) {
    if (i != what && mapped(o, i)) return 0;
    operands[i] = batch_get(o->b, o->lane[i]);
  }
  return emit(o, operands, o->count);
}
static ValueId batch_isin(Op *o) { return looked_for(o, 0); }
static ValueId batch_searchsorted(Op *o) { return looked_for(o, 1); }

static ValueId batch_axes(Op *o) { return along_axes(o, op_param(o->op, "axis"), true); }
static ValueId batch_axis(Op *o) { return along_axes(o, op_param(o->op, "axis"), false); }

static ValueId batch_argmin(Op *o) {
  const GraphArg *axis = &o->args[1];
  return o->x.rank == 1 || (axis->kind == ARG_attr && axis->attr->kind == ATTR_int) ? along_axes(o, 1, true) : 0;
}

static ValueId batch_cumsum(Op *o) {
  if (o->x.rank == 1) set_attr(o, attr_int(1, 0));
  return along_axes(o, 1, false);
}

static ValueId batch_take_along_axis(Op *o) {
  ValueId operands[2] = {batch_full(o->b, o->lane[0]), batch_full(o->b, o->lane[1])};
  return shift_axes(o, 2, false) ? emit(o, operands, 2) : 0;
}

/* Of the last axes: the others are a stack anyway. */
static ValueId batch_stacked(Op *o) {
  ValueId v = batch_get(o->b, o->lane[0]);
  return emit(o, &v, 1);
}

/* Vectors of each lane are columns. */
static ValueId batch_linalg_solve(Op *o) {
  ValueId operands[2] = {batch_full(o->b, o->lane[0]), batch_full(o->b, o->lane[1])};
  ArrayType y = *value_type(o->b->g, o->lane[1]);
  if (y.rank == o->x.rank) return emit(o, operands, 2);
  if (y.rank != 1 || o->x.rank != 2 || !operands[1]) return 0;
  y.dims[y.rank++] = 1;
  operands[1] = lanes_reshape(o, operands[1], &y);
  return lanes_reshape(o, emit(o, operands, 2), &o->result);
}

/* A list of results: the node's first one stands for all (batch.c). */
static ValueId batch_topk(Op *o) { return along_axes(o, 2, false); }

/* Both operands along an axis that counts from the end of what they broadcast to. */
static ValueId batch_pairs(Op *o) {
  Batch *b = o->b;
  const GraphAttr *a = attr_of(o, 2);
  ArrayType t[2] = {o->x, *value_type(b->g, o->lane[1])};
  u32 rank = t[0].rank > t[1].rank ? t[0].rank : t[1].rank;
  i64 axis = -1;
  if (a && a->kind != ATTR_hole && (a->kind != ATTR_int)) return 0;
  if (a && a->kind == ATTR_int) axis = a->i < 0 ? a->i : a->i - rank;
  set_attr(o, attr_int(2, axis));
  for (u32 i = 0; i < 2; i++) {
    o->room[i] = batch_get(b, o->lane[i]);
    if (o->room[i] && mapped(o, i)) o->room[i] = batch_aligned(b, o->room[i], t[i].rank, rank);
  }
  return emit(o, o->room, 2);
}

/* Its axes `every` apart, from `first` on, the others 1: products of each element of one with each of another. */
static ValueId spread_apart(Op *o, u32 i, u32 rank, u32 every, u32 first) {
  Batch *b = o->b;
  Dim dims[2 * TYPE_MAX_RANK];
  const ArrayType t = *value_type(b->g, o->lane[i]);
  ValueId v = batch_full(b, o->lane[i]);
  u32 n = 1 + rank * every;
  dims[0] = b->lanes;
  for (u32 k = 1; k < n; k++) dims[k] = 1;
  for (u32 d = 0; d < t.rank; d++) dims[1 + (rank - t.rank + d) * every + first] = t.dims[d];
  v = v ? graph_convert(b->g, v, o->result.dtype) : 0;
  return v ? graph_reshape(b->g, v, n, dims) : 0;
}

static ValueId products_apart(Op *o, u32 rank) {
  if (1 + 2 * rank > TYPE_MAX_RANK) return 0;
  ValueId x = spread_apart(o, 0, rank, 2, 0), y = spread_apart(o, 1, rank, 2, 1);
  return lanes_reshape(o, x && y ? graph_op2(o->b->g, OP_multiply, x, y) : 0, &o->result);
}

static ValueId batch_outer(Op *o) { return products_apart(o, 1); }
static ValueId batch_linalg_kron(Op *o) {
  u32 rank = value_type(o->b->g, o->lane[1])->rank;
  return products_apart(o, o->x.rank > rank ? o->x.rank : rank);
}

/* Stacks of matrices: the axes that are summed over are one, and so are those of each operand that stay. */
static ValueId batch_tensordot(Op *o) {
  Graph *g = o->b->g;
  const GraphAttr *a = attr_of(o, 2);
  i64 k = a && a->kind == ATTR_int ? a->i : 2;
  ArrayType t[2] = {o->x, *value_type(g, o->lane[1])};
  ValueId v[2];
  if ((a && a->kind != ATTR_int && a->kind != ATTR_hole) || k < 1 || k > t[0].rank || k > t[1].rank) return 0;
  for (u32 i = 0; i < 2; i++) {
    ArrayType m = {.rank = 2, .dims = {1, 1}};
    u32 cut = i ? (u32)k : t[i].rank - (u32)k;
    for (u32 d = 0; d < t[i].rank; d++) m.dims[d >= cut] = size_mul(&g->sizes, m.dims[d >= cut], t[i].dims[d]);
    if (m.dims[0] == DIM_NONE || m.dims[1] == DIM_NONE) return 0;
    v[i] = batch_get(o->b, o->lane[i]);
    if (v[i]) v[i] = mapped(o, i) ? lanes_reshape(o, v[i], &m) : graph_reshape(g, v[i], 2, m.dims);
    if (!v[i]) return 0;
  }
  return lanes_reshape(o, graph_op2(g, OP_matmul, v[0], v[1]), &o->result);
}

/* A letter that stands nowhere else, in front of what has lanes and of the result. */
static ValueId batch_einsum(Op *o) {
  enum { LONGEST = 200 };
  const GraphArg *spec = &o->args[0];
  char text[LONGEST], free = 0;
  u32 counts[128] = {0}, len = 0, term = 0, n = o->count;
  if (spec->kind != ARG_attr || spec->attr->kind != ATTR_text || spec->attr->count + 2u * n + 60 > LONGEST) return 0;
  const char *s = spec->attr->text, *end = s + spec->attr->count, *arrow = s;
  while (arrow < end && *arrow != '-') {
    if (*arrow == '.') return 0;
    counts[(u8)*arrow++ & 127]++;
  }
  for (char c = 'a'; c <= 'z' && !free; c++)
    if (!counts[(u8)c]) free = c;
  if (!free) return 0;
  for (const char *at = s; at <= arrow && term < n; at++) {
    if ((at == s || at[-1] == ',') && mapped(o, term)) text[len++] = free;
    if (at == arrow || *at == ',') term++;
    if (at < arrow) text[len++] = *at;
  }
  if (term != n) return 0;
  len += (u32)snprintf(text + len, 4, "->%c", free);
  for (const char *at = arrow + 2; at < end; at++) {
    if (*at == '.') return 0;
    text[len++] = *at;
  }
  for (u32 c = 'A'; arrow == end && c <= 'z'; c++) /* the letters that stand once */
    if (counts[c] == 1 && c != (u8)free && ((c | 32) >= 'a' && (c | 32) <= 'z')) text[len++] = (char)c;
  set_attr(o, attr_text(o->b->g, 0, text, len));
  for (u32 i = 0; i < n; i++) o->room[i] = batch_get(o->b, o->lane[i]);
  return emit(o, o->room, n);
}

static ValueId batch_linalg_pinv(Op *o) {
  if (o->count > 1 && mapped(o, 1)) return 0;
  for (u32 i = 0; i < o->count; i++) o->room[i] = batch_get(o->b, o->lane[i]);
  return emit(o, o->room, o->count);
}

/* Of a matrix a diagonal. Of a vector the matrix that is it along its diagonal, and 0 elsewhere. */
static ValueId batch_diag(Op *o) {
  Graph *g = o->b->g;
  const GraphAttr *a = attr_of(o, 1);
  i64 k = a && a->kind == ATTR_int ? a->i : 0;
  ValueId x = batch_get(o->b, o->lane[0]);
  if (a && a->kind != ATTR_int && a->kind != ATTR_hole) return 0;
  if (o->x.rank == 2) {
    GraphAttr at = attr_int(1, k);
    return graph_op(g, OP_linalg_diagonal, &x, 1, &at, 1, NULL);
  }
  Dim n = o->result.dims[0], dims[3] = {o->b->lanes, k < 0 ? 1 : n, k < 0 ? n : 1};
  i64 border[4] = {0, 0, 0, k < 0 ? -k : k};
  GraphAttr pad = attr_ints(g, 1, border, 4, true), square[5] = {attr_dim(0, n), attr_hole(1), attr_int(2, k),
                                                                 attr_dtype(3, DT_bool), attr_hole(4)};
  if (k) x = graph_op(g, OP_pad, &x, 1, &pad, 1, NULL);
  ValueId on = graph_op(g, OP_eye, NULL, 0, square, 5, NULL);
  if (!x || !on || !(x = graph_reshape(g, x, 3, dims))) return 0;
  return graph_op3(g, OP_where, on, x, graph_const(g, o->x.dtype == DT_bool ? value_bool(false) : value_weak_i64(0)));
}

/* The formula of stdlib/array/compose.c: the mean of each lane alone. */
static ValueId batch_nn_cross_entropy(Op *o) {
  Graph *g = o->b->g;
  ValueId x = batch_full(o->b, o->lane[0]), labels = batch_full(o->b, o->lane[1]);
  Dim dims[TYPE_MAX_RANK];
  GraphAttr last = attr_int(1, -1), along = attr_int(2, -1);
  if (!x || !labels || o->x.rank + 1u >= TYPE_MAX_RANK) return 0;
  u32 rank = value_type(g, labels)->rank;
  memcpy(dims, value_type(g, labels)->dims, sizeof *dims * rank);
  dims[rank] = 1;
  labels = graph_reshape(g, labels, rank + 1, dims);
  x = graph_op(g, OP_nn_log_softmax, &x, 1, &last, 1, NULL);
  if (!x || !labels) return 0;
  x = graph_op(g, OP_take_along_axis, (ValueId[]){x, labels}, 2, &along, 1, NULL);
  x = x ? graph_reduce(g, OP_mean, x, ((1u << (rank + 1)) - 1) & ~1u, false) : 0;
  return x ? graph_op1(g, OP_negative, x) : 0;
}

/* By places that all lanes share along another axis; or, where each lane has its own along its first one, by numbers
 * of rows of all lanes. */
static ValueId batch_scatter(Op *o) {
  Batch *b = o->b;
  Graph *g = b->g;
  u32 param = op_param(OP_scatter, "axis");
  GraphAttr *a = attr_of(o, param);
  i64 axis = a && a->kind == ATTR_int ? a->i : 0;
  ArrayType at = *value_type(g, o->lane[1]), ut = *value_type(g, o->lane[2]), flat = {.rank = 1}, rows;
  if (o->count != 3 || (a && a->kind != ATTR_int && a->kind != ATTR_hole) || at.rank != 1 || !o->x.rank) return 0;
  if (axis < 0) axis += o->x.rank;
  const bool number = ut.rank == 0 && !mapped(o, 2); /* everywhere */
  ValueId x = batch_full(b, o->lane[0]), i = batch_get(b, o->lane[1]),
          u = number ? batch_get(b, o->lane[2]) : batch_full(b, o->lane[2]);
  if (!x || !i || !u || (ut.rank != o->x.rank && !number)) return 0;
  if (!mapped(o, 1)) {
    set_attr(o, attr_int(param, axis + 1));
    return emit(o, (ValueId[]){x, i, u}, 3);
  }
  if (axis || (!number && !size_same(&g->sizes, ut.dims[0], at.dims[0]))) return 0;
  Dim n = o->x.dims[0];
  ValueId size = graph_size_typed(g, n, DT_i64, false), zero = graph_const(g, value_i64(0)), negative,
          first = batch_numbers(b, 1);
  i = graph_convert(g, i, DT_i64);
  if (!size || !zero || !first || !i || !(negative = graph_op2(g, OP_less, i, zero))) return 0;
  i = graph_op3(g, OP_where, negative, graph_op2(g, OP_add, i, size), i);
  i = graph_op2(g, OP_add, i, graph_op2(g, OP_multiply, first, size));
  flat.dims[0] = size_mul(&g->sizes, b->lanes, at.dims[0]);
  rows = o->x;
  rows.dims[0] = size_mul(&g->sizes, b->lanes, n);
  ut.dims[0] = flat.dims[0];
  if (!i || flat.dims[0] == DIM_NONE || rows.dims[0] == DIM_NONE || !(i = graph_reshape(g, i, 1, flat.dims)) ||
      (!number && !(u = graph_reshape(g, u, ut.rank, ut.dims))) || !(x = graph_reshape(g, x, rows.rank, rows.dims)))
    return 0;
  return lanes_reshape(o, emit(o, (ValueId[]){x, i, u}, 3), &o->x);
}

static ValueId batch_reshape(Op *o) { return lanes_reshape(o, batch_get(o->b, o->lane[0]), &o->result); }

static ValueId batch_moveaxis(Op *o) {
  return shift_axes(o, 1, false) && shift_axes(o, 2, false) ? batch_stacked(o) : 0;
}

static void all_lanes(const Op *o, Dim *dims) {
  dims[0] = o->b->lanes;
  memcpy(dims + 1, o->result.dims, sizeof *dims * o->result.rank);
}

static ValueId batch_broadcast_to(Op *o) {
  Batch *b = o->b;
  Dim dims[TYPE_MAX_RANK];
  all_lanes(o, dims);
  ValueId v = batch_aligned(b, batch_get(b, o->lane[0]), o->x.rank, o->result.rank);
  v = graph_convert(b->g, v, o->result.dtype);
  return v ? graph_broadcast(b->g, v, o->result.rank + 1u, dims) : 0;
}

static ValueId batch_zeros_like(Op *o) {
  Dim dims[TYPE_MAX_RANK];
  all_lanes(o, dims);
  return graph_full(o->b->g, o->result.dtype, o->result.rank + 1u, dims, op_info(o->op)->fill);
}

/* The cell `batch` of each row of ops.def: its rule, or NULL. One that is named and not there does not compile. */
typedef ValueId (*BatchRule)(Op *o);
#define CELL_elementwise ~, SHARED, elementwise
#define CELL_rule ~, OWN, 0
#define CELL_by(rule) ~, SHARED, rule
#define OWN(name, rule) [OP_##name] = batch_##name,
#define SHARED(name, rule) [OP_##name] = batch_##rule,
static const BatchRule rules[OP_COUNT] = {
#define OP(name, signature, family, dtype, shape, needs, check, effect, agree, kernel, lower, deriv, batch, ...) \
  OP_CELL(name, CELL_##batch)
#include "lang/ops.def"
#undef OP
};

ValueId batch_op(Batch *b, NodeId node) {
  Graph *g = b->g;
  const GraphNode x = *graph_node_at(g, node);
  Op o = {.b = b, .node = node, .op = x.op, .count = x.operand_count, .nattrs = x.attr_count,
          .result = *value_type(g, node_result(g, node, 0))};
  if (!rules[o.op] || x.attr_count > OP_MAX_PARAMS || o.result.rank == TYPE_MAX_RANK || x.operand_count == 0) return 0;
  o.lane = arena_alloc(&g->arena, sizeof *o.lane * 2 * o.count);
  if (!o.lane) {
    g->failed = true;
    return 0;
  }
  o.room = o.lane + o.count;
  for (u32 i = 0; i < o.count; i++) o.lane[i] = node_operand(g, node, i);
  for (u32 i = 0; i < o.nattrs; i++) o.attrs[i] = *node_attr(g, node, i);
  node_args(g, node, o.args);
  GraphAttr copies[OP_MAX_PARAMS];
  for (u32 p = 0; p < OP_MAX_PARAMS; p++)
    if (o.args[p].attr) {
      copies[p] = *o.args[p].attr;
      o.args[p].attr = &copies[p];
    }
  o.x = *value_type(g, o.lane[0]);
  return rules[o.op](&o);
}
