/* graph_build.c — attributes, how they bind parameters, and short forms for making operation nodes (see graph.h). */
#include <string.h>

#include "tracer/graph/graph.h"

/* ---- attributes ----------------------------------------------------------------------------------- */

GraphAttr attr_hole(u32 param) { return (GraphAttr){.kind = ATTR_hole, .param = (u8)param}; }
GraphAttr attr_nil(u32 param) { return (GraphAttr){.kind = ATTR_nil, .param = (u8)param}; }
GraphAttr attr_bool(u32 param, bool b) { return (GraphAttr){.kind = ATTR_bool, .param = (u8)param, .i = b}; }
GraphAttr attr_int(u32 param, i64 i) { return (GraphAttr){.kind = ATTR_int, .param = (u8)param, .i = i}; }
GraphAttr attr_float(u32 param, f64 f) { return (GraphAttr){.kind = ATTR_float, .param = (u8)param, .f = f}; }
GraphAttr attr_dtype(u32 param, u32 dtype) { return (GraphAttr){.kind = ATTR_dtype, .param = (u8)param, .i = dtype}; }
GraphAttr attr_dim(u32 param, Dim d) { return (GraphAttr){.kind = ATTR_dim, .param = (u8)param, .dim = d}; }
GraphAttr attr_list(u32 param, u32 count) { return (GraphAttr){.kind = ATTR_list, .param = (u8)param, .count = count}; }

static void *keep(Graph *g, const void *from, size_t n) {
  void *p = arena_alloc(&g->arena, n + 1);
  if (!p) g->failed = true;
  else if (n) mem_copy(p, from, n);
  return p;
}

GraphAttr attr_text(Graph *g, u32 param, const char *s, u32 len) {
  const char *text = keep(g, s, len);
  return text ? (GraphAttr){.kind = ATTR_text, .param = (u8)param, .count = len, .text = text} : attr_hole(param);
}

GraphAttr attr_ints(Graph *g, u32 param, const i64 *v, u32 count, bool pairs) {
  const i64 *ints = keep(g, v, sizeof *v * count);
  return ints ? (GraphAttr){.kind = ATTR_ints, .param = (u8)param, .pairs = pairs, .count = count, .ints = ints}
              : attr_hole(param);
}

GraphAttr attr_dims(Graph *g, u32 param, const Dim *v, u32 count) {
  const Dim *dims = keep(g, v, sizeof *v * count);
  return dims ? (GraphAttr){.kind = ATTR_dims, .param = (u8)param, .count = count, .ints = dims} : attr_hole(param);
}

GraphAttr attr_items(Graph *g, const IndexItem *items, u32 count) {
  const IndexItem *kept = keep(g, items, sizeof *items * count);
  return kept ? (GraphAttr){.kind = ATTR_index, .count = count, .items = kept} : attr_hole(0);
}

u32 op_param(u32 op, const char *name) {
  const OpInfo *info = op_info(op);
  size_t len = strlen(name);
  for (u32 i = 0; i < info->nparams; i++)
    if (info->params[i].len == len && memcmp(info->params[i].name, name, len) == 0) return i;
  return UINT32_MAX;
}

/* ---- binding -------------------------------------------------------------------------------------- */

enum { FEW_PARAMS = 4 }; /* so many are looked at without asking */

void bind_args(u32 op, const ValueId *operands, u32 count, const GraphAttr *attrs, u32 nattrs,
               GraphArg out[OP_MAX_PARAMS]) {
  const OpInfo *info = op_info(op);
  u32 next = 0;
  u32 p = 0, named = info->nparams > FEW_PARAMS ? info->nparams : FEW_PARAMS;
  for (; p < named; p++) out[p] = (GraphArg){0}; /* holes */
  for (; p < OP_MAX_PARAMS; p++) out[p].kind = ARG_hole;
  for (p = 0; p < info->nparams; p++) {
    GraphArg *o = &out[p];
    const GraphAttr *attr = NULL;
    for (u32 i = 0; i < nattrs && !attr; i++)
      if (attrs[i].param == p && attrs[i].kind != ATTR_index) attr = &attrs[i];
    if (!attr) {
      if (next >= count) {
        if (!nattrs) break;
        continue;
      }
      o->kind = ARG_value;
      o->value = operands[next++];
    } else if (attr->kind == ATTR_list) {
      u32 n = attr->count <= count - next ? attr->count : count - next;
      o->kind = ARG_list;
      o->values = operands + next;
      o->count = n;
      o->attr = attr;
      next += n;
    } else if (attr->kind != ATTR_hole) {
      o->kind = ARG_attr;
      o->attr = attr;
    }
  }
}

void node_args(const Graph *g, NodeId n, GraphArg out[OP_MAX_PARAMS]) {
  const GraphNode *x = &g->nodes.data[n];
  bind_args(x->op, g->operands.data + x->operand_first, x->operand_count, g->attrs.data + x->attr_first,
            x->attr_count, out);
}

bool arg_axes(const GraphArg *a, u32 rank, u32 *mask) {
  RuleError err;
  u32 axis;
  *mask = rank ? (u32)((1u << rank) - 1) : 0;
  if (a->kind == ARG_hole || (a->kind == ARG_attr && a->attr->kind == ATTR_nil)) return true;
  if (a->kind != ARG_attr) return false;
  if (a->attr->kind == ATTR_int) {
    if (!rule_axis(a->attr->i, rank, &axis, &err)) return false;
    *mask = 1u << axis;
    return true;
  }
  if (a->attr->kind != ATTR_ints || a->attr->pairs) return false;
  return rule_axes(a->attr->count, a->attr->ints, rank, mask, &err);
}

bool arg_int(const GraphArg *a, i64 fallback, i64 *out) {
  *out = fallback;
  if (a->kind == ARG_hole) return true;
  if (a->kind != ARG_attr) return false;
  if (a->attr->kind == ATTR_int) *out = a->attr->i;
  else if (a->attr->kind == ATTR_dim && a->attr->dim >= 0) *out = a->attr->dim;
  else return a->attr->kind == ATTR_nil;
  return true;
}

bool arg_bool(const GraphArg *a, bool fallback) {
  return a->kind == ARG_attr && a->attr->kind == ATTR_bool ? a->attr->i != 0 : fallback;
}

u32 arg_dtype(const GraphArg *a) {
  return a->kind == ARG_attr && a->attr->kind == ATTR_dtype ? (u32)a->attr->i : DT_NONE;
}

/* ---- operations ----------------------------------------------------------------------------------- */

ValueId graph_op(Graph *g, u32 op, const ValueId *operands, u32 count, const GraphAttr *attrs, u32 nattrs,
                 RuleError *err) {
  RuleError own;
  ArrayType types[4];
  TypeId ids[4];
  u32 n = COUNT_OF(types);
  GuardDims dims;
  if (!err) err = &own;
  for (u32 i = 0; i < count; i++)
    if (!operands[i]) return 0;
  guard_dims_init(&dims, NULL, &g->sizes, op_name(op), (Span){0});
  if (g->failed || !graph_infer(g, &dims.base, op, operands, count, attrs, nattrs, types, &n, err)) return 0;
  for (u32 i = 0; i < n; i++) {
    for (u32 d = 0; d < types[i].rank; d++)
      if (types[i].dims[d] == DIM_FRESH) return 0; /* the recorder makes these */
    ids[i] = graph_type(g, &types[i]);
  }
  NodeId node = graph_node(g, NODE_op, op, operands, count, attrs, nattrs, ids, n);
  return node ? g->nodes.data[node].result_first : 0;
}

ValueId graph_op1(Graph *g, u32 op, ValueId a) { return graph_op(g, op, &a, 1, NULL, 0, NULL); }
ValueId graph_op2(Graph *g, u32 op, ValueId a, ValueId b) {
  return graph_op(g, op, (ValueId[]){a, b}, 2, NULL, 0, NULL);
}
ValueId graph_op3(Graph *g, u32 op, ValueId a, ValueId b, ValueId c) {
  return graph_op(g, op, (ValueId[]){a, b, c}, 3, NULL, 0, NULL);
}

ValueId graph_reduce(Graph *g, u32 op, ValueId x, u32 axes_mask, bool keepdims) {
  i64 axes[TYPE_MAX_RANK];
  u32 n = 0;
  for (u32 d = 0; d < TYPE_MAX_RANK; d++)
    if (axes_mask >> d & 1) axes[n++] = d;
  GraphAttr attrs[2] = {attr_ints(g, op_param(op, "axis"), axes, n, false), attr_bool(op_param(op, "keepdims"), true)};
  return graph_op(g, op, &x, 1, attrs, keepdims ? 2 : 1, NULL);
}

ValueId graph_reshape(Graph *g, ValueId x, u32 rank, const Dim *dims) {
  GraphAttr a = attr_dims(g, 1, dims, rank);
  return graph_op(g, OP_reshape, &x, 1, &a, 1, NULL);
}

ValueId graph_broadcast(Graph *g, ValueId x, u32 rank, const Dim *dims) {
  GraphAttr a = attr_dims(g, 1, dims, rank);
  return graph_op(g, OP_broadcast_to, &x, 1, &a, 1, NULL);
}

ValueId graph_transpose(Graph *g, ValueId x, const u32 *perm) {
  i64 axes[TYPE_MAX_RANK];
  if (!x) return 0;
  u32 rank = value_type(g, x)->rank;
  for (u32 d = 0; d < rank; d++) axes[d] = perm[d];
  GraphAttr a = attr_ints(g, 1, axes, rank, false);
  return graph_op(g, OP_transpose, &x, 1, &a, 1, NULL);
}

ValueId graph_convert(Graph *g, ValueId x, u32 dtype) {
  if (!x) return 0;
  const ArrayType *t = value_type(g, x);
  if (t->dtype == dtype && !t->weak) return x;
  GraphAttr a = attr_dtype(1, dtype);
  return graph_op(g, OP_astype, &x, 1, &a, 1, NULL);
}

ValueId graph_weaken(Graph *g, ValueId x) {
  if (!x) return 0;
  ArrayType t = *value_type(g, x);
  t.weak = true;
  TypeId type = graph_type(g, &t);
  NodeId n = type ? graph_node(g, NODE_op, OP_positive, &x, 1, NULL, 0, &type, 1) : 0;
  return n ? node_result(g, n, 0) : 0;
}

ValueId graph_full(Graph *g, u32 dtype, u32 rank, const Dim *dims, f64 fill) {
  GraphAttr a = attr_dims(g, 0, dims, rank);
  ValueId v = graph_const_f64(g, dtype, fill);
  return graph_op(g, OP_full, &v, 1, &a, 1, NULL);
}

ValueId graph_full_as(Graph *g, const ArrayType *t, f64 fill) {
  GraphAttr a[2] = {attr_dims(g, 0, t->dims, t->rank), attr_int(3, t->device)};
  ValueId v = graph_const_f64(g, t->dtype, fill);
  return graph_op(g, OP_full, &v, 1, a, t->device ? 2 : 1, NULL);
}

ValueId graph_moved(Graph *g, ValueId v, u32 device) {
  const ArrayType *t = v ? value_type(g, v) : NULL;
  if (!t || !t->rank || t->device == device) return v;
  GraphAttr a = attr_int(1, device);
  return graph_op(g, OP_to, &v, 1, &a, 1, NULL);
}

ValueId graph_index(Graph *g, ValueId x, const ValueId *operands, u32 count, const IndexItem *items, u32 nitems,
                    TypeId result) {
  ValueId *all = arena_alloc(&g->arena, sizeof *all * (count + 1));
  GraphAttr a = attr_items(g, items, nitems);
  if (!all || a.kind != ATTR_index) {
    g->failed = true;
    return 0;
  }
  all[0] = x;
  mem_copy(all + 1, operands, sizeof *all * count);
  NodeId n = graph_node(g, NODE_index, 0, all, count + 1, &a, 1, &result, 1);
  return n ? g->nodes.data[n].result_first : 0;
}

/* The number v, or the array of one element v, where the number x was: `x[...] = v`, `x[nil] += v`. It is strong. */
static ValueId update_number(Graph *g, u32 combine, ValueId x, ValueId v) {
  u32 dtype = value_type(g, x)->dtype;
  if (value_type(g, v)->rank) v = graph_reshape(g, v, 0, NULL);
  v = combine ? graph_op2(g, combine, x, v) : graph_op1(g, OP_positive, v);
  return graph_convert(g, v, dtype);
}

ValueId graph_update(Graph *g, u32 combine, ValueId x, const ValueId *operands, u32 count, const IndexItem *items,
                     u32 nitems, ValueId v) {
  if (x && v && !count && !value_type(g, x)->rank) return update_number(g, combine, x, v);
  ValueId *all = arena_alloc(&g->arena, sizeof *all * (count + 2));
  GraphAttr a = attr_items(g, items, nitems);
  if (!all || a.kind != ATTR_index || !x || !v) {
    g->failed |= !all;
    return 0;
  }
  all[0] = x;
  mem_copy(all + 1, operands, sizeof *all * count);
  all[count + 1] = v;
  TypeId type = g->values.data[x].type;
  NodeId n = graph_node(g, NODE_update, combine, all, count + 2, &a, 1, &type, 1);
  return n ? g->nodes.data[n].result_first : 0;
}
