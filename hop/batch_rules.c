/* batch_rules.c — batching rules of operations and indices (see batch.h): the operation itself over one more axis.
 * What is not here runs lane by lane. */
#include "hop/batch.h"

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

/* Both as stacks of matrices; a vector is a row or a column. */
static ValueId batch_matmul(Op *o) {
  Batch *b = o->b;
  Graph *g = b->g;
  ArrayType t[2] = {o->x, *value_type(g, o->lane[1])};
  if (t[0].rank == 0 || t[1].rank == 0 || (o->op == OP_dot && t[1].rank > 2)) return 0;
  ValueId v[2] = {batch_get(b, o->lane[0]), batch_get(b, o->lane[1])};
  u32 turn[2] = {1, 0}, rank = 2;
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

static ValueId batch_linalg_solve(Op *o) {
  ValueId operands[2] = {batch_full(o->b, o->lane[0]), batch_full(o->b, o->lane[1])};
  return value_type(o->b->g, o->lane[1])->rank == o->x.rank ? emit(o, operands, 2) : 0;
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

/* ---- indices --------------------------------------------------------------------------------- */

/* x[items], x[items] = v: with a whole axis in front; or, where the one index that differs between lanes comes first,
 * with the lanes' numbers beside it. */
ValueId batch_index(Batch *b, NodeId node) {
  Graph *g = b->g;
  const GraphNode x = *graph_node_at(g, node);
  bool update = x.kind == NODE_update;
  u32 count = x.operand_count - (update ? 2 : 1), nitems, arrays = 0, ints = 0, at = 0;
  ValueId operands[3 * TYPE_MAX_RANK + 2];
  IndexItem items[TYPE_MAX_RANK + 1];
  if (x.attr_count == 0 || node_attr(g, node, 0)->kind != ATTR_index || count > 3 * TYPE_MAX_RANK) return 0;
  nitems = node_attr(g, node, 0)->count;
  if (nitems > TYPE_MAX_RANK) return 0;
  memcpy(items + 1, node_attr(g, node, 0)->items, sizeof *items * nitems);
  bool differs = false;
  for (u32 i = 0; i < count; i++) {
    operands[i] = batch_get(b, node_operand(g, node, i + 1));
    differs |= batch_is_mapped(b, node_operand(g, node, i + 1));
  }
  for (u32 i = 1; i <= nitems; i++) {
    if (items[i].kind == INDEX_mask) return 0;
    if (items[i].kind == INDEX_array) arrays++, at = i;
    if (items[i].kind == INDEX_int) ints++, at = at ? at : i;
  }
  ValueId old = node_operand(g, node, 0), v = update ? node_operand(g, node, x.operand_count - 1) : 0;
  u32 region = 0;
  if (update) { /* the rank of what is written to */
    ArrayType part;
    ValueId own[3 * TYPE_MAX_RANK];
    GuardDims dims;
    for (u32 i = 0; i < count; i++) own[i] = node_operand(g, node, i + 1);
    guard_dims_init(&dims, NULL, &g->sizes, "index", (Span){0});
    if (!graph_infer_index(g, &dims.base, old, own, count, items + 1, nitems, &part, NULL)) return 0;
    region = part.rank;
  }
  ValueId base = update || !differs ? batch_full(b, old) : batch_get(b, old);
  bool both = differs && (update || batch_is_mapped(b, old));
  if (!differs) {
    if (arrays > 1 || (arrays && ints)) return 0;
    items[0] = (IndexItem){.kind = INDEX_slice};
  } else {
    /* one index in front of whole or sliced axes, and nothing else that differs */
    if (arrays + ints != 1 || at != 1 || items[1].part[0] != PART_operand || items[1].at[0] != 1) return 0;
    for (u32 i = 2; i <= count; i++)
      if (batch_is_mapped(b, node_operand(g, node, i))) return 0;
    if (!batch_is_mapped(b, node_operand(g, node, 1))) return 0;
    items[1].kind = INDEX_array;
    if (both) { /* numbers of the lanes, as one more operand */
      u32 rank = value_type(g, operands[0])->rank;
      Dim dims[TYPE_MAX_RANK] = {b->lanes};
      GraphAttr stop[4] = {attr_dim(0, b->lanes), attr_hole(1), attr_hole(2), attr_hole(3)};
      ValueId lanes = graph_op(g, OP_arange, NULL, 0, stop, 4, NULL);
      for (u32 i = 1; i < rank; i++) dims[i] = 1;
      if (!lanes || !(lanes = graph_reshape(g, lanes, rank, dims))) return 0;
      memmove(operands + 1, operands, sizeof *operands * count); /* operands stand in the order of the items */
      operands[0] = lanes;
      count++;
      for (u32 i = 1; i <= nitems; i++)
        for (u32 k = 0; k < 3; k++)
          if (items[i].part[k] == PART_operand) items[i].at[k]++;
      items[0] = (IndexItem){.kind = INDEX_array, .part = {PART_operand}, .at = {1}};
    }
  }
  const IndexItem *from = differs && !both ? items + 1 : items;
  u32 n = nitems + (from == items);
  if (!base) return 0;
  if (update) {
    ArrayType tv = *value_type(g, v);
    ValueId value = batch_get(b, v);
    if (batch_is_mapped(b, v)) value = tv.rank <= region ? batch_aligned(b, value, tv.rank, region) : 0;
    return value ? graph_update(g, x.op, base, operands, count, from, n, value) : 0;
  }
  ArrayType made;
  GuardDims dims;
  guard_dims_init(&dims, NULL, &g->sizes, "index", (Span){0});
  if (!graph_infer_index(g, &dims.base, base, operands, count, from, n, &made, NULL)) return 0;
  return graph_index(g, base, operands, count, from, n, graph_type(g, &made));
}
