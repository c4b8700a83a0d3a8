/* kernel_view.c — operations that only say which element: views, indexing, joins of axes; and creation, whose
 * elements follow from their index. */
#include "jit/lower/kernel.h"

#include <string.h>

/* ---- indexing, item by item ------------------------------------------------------------------------- */

/* First element that a slice takes, as graph_infer_index clamps it. */
static bool slice_start(Graph *g, const IndexItem *it, Dim n, Dim *start, i64 *step) {
  SizePool *p = &g->sizes;
  *step = 1;
  if (it->part[2] == PART_dim && !size_is_const(p, it->at[2], step)) return false;
  if (it->part[2] == PART_operand || *step == 0 || it->part[0] == PART_operand || it->part[1] == PART_operand)
    return false;
  Dim least = *step > 0 ? 0 : size_const(p, -1), most = *step > 0 ? n : size_sub(p, n, 1);
  if (it->part[0] == PART_none) {
    *start = *step > 0 ? least : most;
    return *start != DIM_NONE;
  }
  Dim d = it->at[0];
  SizeTruth negative = size_prove(p, REL_lt, d, 0);
  if (negative == TRUTH_unknown) return false;
  if (negative == TRUTH_always) d = size_add(p, d, n);
  *start = size_min(p, size_max(p, d, least), most);
  return *start != DIM_NONE;
}

bool index_map(Graph *g, NodeId n, const ArrayType *x, IndexMap *out) {
  const GraphAttr *a = NULL;
  for (u32 i = 0; i < graph_node_at(g, n)->attr_count && !a; i++)
    if (node_attr(g, n, i)->kind == ATTR_index) a = node_attr(g, n, i);
  memset(out, 0, sizeof *out);
  if (!a) return false;
  u32 used = 0, axis = 0, result = 0, first = UINT32_MAX, last = 0, operands = graph_node_at(g, n)->operand_count;
  bool advanced = false, apart = false, ellipsis = false;
  for (u32 i = 0; i < a->count; i++) {
    u8 kind = a->items[i].kind;
    if (kind == INDEX_mask) return false;
    used += kind == INDEX_int || kind == INDEX_slice || kind == INDEX_array;
    advanced |= kind == INDEX_array;
  }
  if (used > x->rank) return false;
  for (u32 i = 0; i <= a->count; i++) {
    const IndexItem *it = i < a->count ? &a->items[i] : NULL;
    if (it && it->kind == INDEX_newaxis) {
      result++;
      continue;
    }
    if (!it && ellipsis) break;
    if (!it || it->kind == INDEX_ellipsis) { /* whole axes; at the end those that are left */
      ellipsis |= it != NULL;
      for (u32 left = x->rank - used; left > 0; left--)
        out->axes[out->count++] = (IndexAxis){.kind = INDEX_slice, .axis = axis++, .result = result++, .step = 1};
      continue;
    }
    IndexAxis e = {.kind = it->kind, .axis = axis, .result = result, .step = 1};
    if (it->kind == INDEX_slice) {
      if (!slice_start(g, it, x->dims[axis], &e.at, &e.step)) return false;
      result++;
    } else {
      e.part = it->part[0];
      if (e.part == PART_operand) {
        if (it->at[0] < 1 || it->at[0] >= operands) return false;
        e.operand = node_operand(g, n, (u32)it->at[0]);
      } else {
        e.at = it->at[0];
      }
      if (advanced) {
        const ArrayType *t = e.operand ? value_type(g, e.operand) : NULL;
        if (t && t->rank > out->array_rank) out->array_rank = t->rank;
        out->arrays++;
        if (first == UINT32_MAX) first = result;
        else apart |= last != i;
        last = i + 1;
      }
    }
    axis++;
    out->axes[out->count++] = e;
  }
  out->array_at = apart || first == UINT32_MAX ? 0 : first;
  for (u32 i = 0; i < out->count && advanced; i++)
    if (out->axes[i].kind == INDEX_slice && out->axes[i].result >= out->array_at)
      out->axes[i].result += out->array_rank;
  return true;
}

/* An integer that names an element: as an aff. */
static u32 index_of_operand(Kern *k, ValueId v, u32 ix, Dim n) {
  u32 t = kern_want_as(k, v, ix, LT_I64);
  return kern_task_var(k, kern_wrap(k, t, n));
}

static bool map_index(Kern *k, NodeId n, ValueId *v, u32 *ix) {
  Graph *g = k->g;
  IndexMap m;
  ValueId x = node_operand(g, n, 0);
  const ArrayType xt = *value_type(g, x), rt = *value_type(g, node_result(g, n, 0));
  u32 from[TYPE_MAX_RANK], to[TYPE_MAX_RANK] = {0};
  if (!index_map(g, n, &xt, &m)) {
    k->why = "an index with bounds known only at run time";
    return false;
  }
  if (!kern_axes(k, &rt, *ix, from)) return false;
  for (u32 i = 0; i < m.count; i++) {
    const IndexAxis *e = &m.axes[i];
    if (e->kind == INDEX_slice) {
      u32 step = aff_scale(&k->ax, from[e->result], size_const(k->sizes, e->step));
      to[e->axis] = aff_add(&k->ax, step, aff_const(&k->ax, e->at));
    } else if (e->part == PART_dim) {
      to[e->axis] = aff_const(&k->ax, e->at);
    } else {
      const ArrayType t = *value_type(g, e->operand);
      ArrayType joint = {.rank = (u8)m.array_rank};
      memcpy(joint.dims, rt.dims + m.array_at, m.array_rank * sizeof *joint.dims);
      u32 own = kern_broadcast(k, &t, &joint, kern_vector(k, &joint, from + m.array_at));
      to[e->axis] = index_of_operand(k, e->operand, own, xt.dims[e->axis]);
    }
  }
  *v = x;
  *ix = kern_vector(k, &xt, to);
  return true;
}

/* ---- views -------------------------------------------------------------------------------------------- */

static bool permutation_of(const Graph *g, NodeId n, const ArrayType *x, u32 *perm) {
  GraphArg args[OP_MAX_PARAMS];
  RuleError err;
  i64 a, b;
  node_args(g, n, args);
  const GraphAttr *at = args[1].kind == ARG_attr ? args[1].attr : NULL;
  switch (graph_node_at(g, n)->op) {
    case OP_moveaxis: {
      i64 from[TYPE_MAX_RANK], to[TYPE_MAX_RANK];
      const GraphAttr *both[2] = {at, args[2].kind == ARG_attr ? args[2].attr : NULL};
      u32 count[2] = {0};
      for (u32 i = 0; i < 2; i++) {
        i64 *list = i ? to : from;
        if (!both[i]) return false;
        count[i] = both[i]->kind == ATTR_int ? 1 : both[i]->count;
        if (count[i] > TYPE_MAX_RANK || (both[i]->kind != ATTR_int && both[i]->kind != ATTR_ints)) return false;
        if (both[i]->kind == ATTR_int) list[0] = both[i]->i;
        else memcpy(list, both[i]->ints, sizeof *list * count[i]);
      }
      return count[0] == count[1] && rule_moveaxis(count[0], from, to, x->rank, perm, &err);
    }
    case OP_swapaxes:
      return arg_int(&args[1], 0, &a) && arg_int(&args[2], 0, &b) && rule_swapaxes(a, b, x->rank, perm, &err);
    default:
      if (!at || at->kind == ATTR_nil) {
        for (u32 d = 0; d < x->rank; d++) perm[d] = x->rank - 1 - d;
        return true;
      }
      if (at->kind == ATTR_int) return rule_permutation(1, &at->i, x->rank, perm, &err);
      return at->kind == ATTR_ints && rule_permutation(at->count, at->ints, x->rank, perm, &err);
  }
}

/* Axes of size 1 come and go: which axis of `wide` each axis of the narrow type is. */
static void match_axes(u32 wide_rank, u32 gone, u32 *axis_of) {
  u32 k = 0;
  for (u32 d = 0; d < wide_rank; d++)
    if (!(gone >> d & 1)) axis_of[k++] = d;
}

static bool squeezed_axes(const Graph *g, NodeId n, const ArrayType *x, const ArrayType *r, u32 *mask) {
  GraphArg args[OP_MAX_PARAMS];
  RuleError err;
  node_args(g, n, args);
  if (graph_node_at(g, n)->op == OP_squeeze) {
    if (args[1].kind == ARG_attr && args[1].attr->kind != ATTR_nil) return arg_axes(&args[1], x->rank, mask);
    *mask = 0;
    u32 left = x->rank - r->rank;
    for (u32 d = 0; d < x->rank && left; d++)
      if (x->dims[d] == 1) *mask |= 1u << d, left--;
    return left == 0;
  }
  i64 list[TYPE_MAX_RANK] = {0};
  u32 count = 1;
  const GraphAttr *a = args[1].kind == ARG_attr ? args[1].attr : NULL;
  if (a && a->kind == ATTR_int) list[0] = a->i;
  else if (a && a->kind == ATTR_ints && a->count <= TYPE_MAX_RANK)
    memcpy(list, a->ints, sizeof *list * (count = a->count));
  else if (a) return false;
  return rule_axes(count, list, r->rank, mask, &err);
}

/* A row-major element number as one of `t`. */
u32 kern_renumbered(Kern *k, const ArrayType *t, u32 aff) {
  if (t->rank == 0) return 0;
  return t->rank == 1 ? ix_make(&k->ax, 1, &aff) : ix_linear(&k->ax, aff);
}

static u32 element_number(Kern *k, const ArrayType *t, u32 ix) {
  Dim strides[TYPE_MAX_RANK];
  if (ix_at(&k->ax, ix)->linear) return ix_item(&k->ax, ix, 0);
  dims_strides(k->c, t->rank, t->dims, strides);
  return ix_offset(&k->ax, ix, strides);
}

static u32 modulo(Kern *k, u32 aff, Dim n, LoopOp op) {
  return kern_task_var(k, kern_op(k, op, LT_I64, kern_index(k, aff), kern_dim(k, n), 0));
}

/* Along which axis of x each window lies. */
static bool window_axes(const Graph *g, NodeId n, const ArrayType *x, u32 *axes) {
  GraphArg args[OP_MAX_PARAMS];
  RuleError err;
  node_args(g, n, args);
  u32 count = value_type(g, node_result(g, n, 0))->rank - x->rank;
  const GraphAttr *a = args[2].kind == ARG_attr && args[2].attr->kind != ATTR_nil ? args[2].attr : NULL;
  if (!a && (args[2].kind == ARG_value || count != x->rank)) return false;
  if (a && (a->kind != ATTR_int || count != 1) && (a->kind != ATTR_ints || a->count != count)) return false;
  for (u32 i = 0; i < count; i++) {
    axes[i] = i;
    if (a && !rule_axis(a->kind == ATTR_int ? a->i : a->ints[i], x->rank, &axes[i], &err)) return false;
  }
  return true;
}

/* Of a reshape that only adds and drops axes of 1: which axis of the result each axis of x is; TYPE_MAX_RANK of 1. */
static bool ones_apart(Kern *k, const ArrayType *xt, const ArrayType *rt, u32 *axis) {
  u32 at = 0;
  for (u32 d = 0; d < xt->rank; d++) {
    axis[d] = TYPE_MAX_RANK;
    if (dim_is(k->c, xt->dims[d], 1)) continue;
    while (at < rt->rank && dim_is(k->c, rt->dims[at], 1)) at++;
    if (at == rt->rank || !dims_same(k->c, 1, &xt->dims[d], &rt->dims[at])) return false;
    axis[d] = at++;
  }
  while (at < rt->rank && dim_is(k->c, rt->dims[at], 1)) at++;
  return at == rt->rank;
}

static bool map_view(Kern *k, NodeId n, ValueId *v, u32 *ix) {
  Graph *g = k->g;
  const GraphNode *node = graph_node_at(g, n);
  GraphArg args[OP_MAX_PARAMS];
  node_args(g, n, args);
  u32 op = node->op;
  ValueId x = args[0].value;
  const ArrayType xt = *value_type(g, x), rt = *value_type(g, node_result(g, n, 0));
  u32 from[TYPE_MAX_RANK], to[TYPE_MAX_RANK] = {0}, perm[TYPE_MAX_RANK], mask;
  Affines *ax = &k->ax;
  *v = x;
  switch (op) {
    case OP_reshape:
    case OP_ravel:
      if (xt.rank == rt.rank && dims_same(k->c, xt.rank, xt.dims, rt.dims)) return true;
      if (!ix_at(ax, *ix)->linear && ones_apart(k, &xt, &rt, perm)) { /* no division takes its places apart */
        for (u32 d = 0; d < xt.rank; d++) to[d] = perm[d] < TYPE_MAX_RANK ? ix_item(ax, *ix, perm[d]) : 0;
        *ix = kern_vector(k, &xt, to);
        return true;
      }
      *ix = kern_renumbered(k, &xt, element_number(k, &rt, *ix));
      return true;
    case OP_squeeze:
    case OP_expand_dims:
      if (ix_at(ax, *ix)->linear) {
        *ix = kern_renumbered(k, &xt, ix_item(ax, *ix, 0));
        return true;
      }
      if (!squeezed_axes(g, n, &xt, &rt, &mask)) break;
      match_axes(op == OP_squeeze ? xt.rank : rt.rank, mask, perm);
      for (u32 d = 0; d < (op == OP_squeeze ? rt.rank : xt.rank); d++) {
        if (op == OP_squeeze) to[perm[d]] = ix_item(ax, *ix, d);
        else to[d] = ix_item(ax, *ix, perm[d]);
      }
      *ix = kern_vector(k, &xt, to);
      return true;
    case OP_broadcast_to: *ix = kern_broadcast(k, &xt, &rt, *ix); return true;
    case OP_transpose:
    case OP_permute_dims:
    case OP_moveaxis:
    case OP_swapaxes:
      if (!permutation_of(g, n, &xt, perm) || !kern_axes(k, &rt, *ix, from)) break;
      for (u32 d = 0; d < rt.rank; d++) to[perm[d]] = from[d];
      *ix = kern_vector(k, &xt, to);
      return true;
    case OP_flip:
      if (!arg_axes(&args[1], xt.rank, &mask) || !kern_axes(k, &rt, *ix, from)) break;
      for (u32 d = 0; d < xt.rank; d++) {
        if (!(mask >> d & 1)) {
          to[d] = from[d];
          continue;
        }
        u32 end = aff_const(ax, size_sub(k->sizes, xt.dims[d], 1));
        to[d] = aff_add(ax, end, aff_scale(ax, from[d], size_const(k->sizes, -1)));
      }
      *ix = kern_vector(k, &xt, to);
      return true;
    case OP_sliding_window: /* behind the axes of x, shorter ones, there is one axis of each window */
      if (!kern_axes(k, &rt, *ix, from) || !window_axes(g, n, &xt, perm)) break;
      for (u32 d = 0; d < xt.rank; d++) to[d] = from[d];
      for (u32 i = 0; i + xt.rank < rt.rank; i++) to[perm[i]] = aff_add(ax, to[perm[i]], from[xt.rank + i]);
      *ix = kern_vector(k, &xt, to);
      return true;
    case OP_tile:
      if (!kern_axes(k, &rt, *ix, from)) break;
      for (u32 d = 0; d < xt.rank; d++)
        to[d] = dim_is(k->c, xt.dims[d], 1) ? 0 : modulo(k, from[rt.rank - xt.rank + d], xt.dims[d], LOOP_REM);
      *ix = kern_vector(k, &xt, to);
      return true;
    case OP_repeat: {
      i64 axis = 0;
      Dim times;
      bool flat = args[2].kind == ARG_hole || (args[2].kind == ARG_attr && args[2].attr->kind == ATTR_nil);
      const GraphAttr *a = args[1].kind == ARG_attr ? args[1].attr : NULL;
      u32 own = 0;
      RuleError err;
      if (a && a->kind == ATTR_int) times = a->i;
      else if (a && a->kind == ATTR_dim) times = a->dim;
      else break;
      if (flat) {
        *ix = kern_renumbered(k, &xt, modulo(k, element_number(k, &rt, *ix), times, LOOP_DIV));
        return true;
      }
      if (!arg_int(&args[2], 0, &axis) || !rule_axis(axis, xt.rank, &own, &err) || !kern_axes(k, &rt, *ix, to)) break;
      to[own] = modulo(k, to[own], times, LOOP_DIV);
      *ix = kern_vector(k, &xt, to);
      return true;
    }
    case OP_roll: {
      i64 axis;
      Dim shift;
      u32 own = 0;
      RuleError err;
      bool flat = args[2].kind == ARG_hole || (args[2].kind == ARG_attr && args[2].attr->kind == ATTR_nil);
      if (!kern_roll_shift(k, &args[1], &shift)) break;
      if (flat) {
        *ix = kern_renumbered(k, &xt, kern_rolled(k, element_number(k, &rt, *ix), shift, dims_total(k->c, &xt)));
        return true;
      }
      if (!arg_int(&args[2], 0, &axis) || !rule_axis(axis, xt.rank, &own, &err) || !kern_axes(k, &rt, *ix, to)) break;
      to[own] = kern_rolled(k, to[own], shift, xt.dims[own]);
      *ix = kern_vector(k, &xt, to);
      return true;
    }
    default: break;
  }
  if (!k->unlinear) k->why = "a view whose axes are known only at run time";
  return false;
}

/* ---- creation ------------------------------------------------------------------------------------------- */

/* A parameter that is an operand or an integer attribute, as `type`; 0: not given. */
static u32 setting(Kern *k, const GraphArg *a, LoopType type) {
  if (a->kind == ARG_value) return kern_want_as(k, a->value, 0, type);
  if (a->kind != ARG_attr) return 0;
  switch (a->attr->kind) {
    case ATTR_int: return kern_convert(k, kern_word(k, LT_I64, (u64)a->attr->i), type);
    case ATTR_dim: return kern_convert(k, kern_dim(k, a->attr->dim), type);
    case ATTR_float: {
      u64 bits;
      memcpy(&bits, &a->attr->f, sizeof bits);
      return kern_convert(k, kern_word(k, LT_F64, bits), type);
    }
    default: return 0;
  }
}

static u32 make_ramp(Kern *k, u32 op, const GraphArg *args, const ArrayType *rt, u32 ix) {
  u32 at;
  LoopType to = loop_type_of_dtype(rt->dtype);
  if (!kern_axes(k, rt, ix, &at)) return 0;
  u32 i = kern_index(k, at);
  if (op == OP_arange) {
    bool one = args[1].kind == ARG_hole || (args[1].kind == ARG_attr && args[1].attr->kind == ATTR_nil), floats = false;
    for (u32 p = 0; p < 3; p++) {
      if (args[p].kind == ARG_value) floats |= dtype_kind(value_type(k->g, args[p].value)->dtype) == DK_FLOAT;
      if (args[p].kind == ARG_attr) floats |= args[p].attr->kind == ATTR_float;
    }
    LoopType t = floats ? LT_F64 : LT_I64;
    u32 start = one ? kern_word(k, t, 0) : setting(k, &args[0], t), step = setting(k, &args[2], t);
    u32 steps = kern_convert(k, i, t);
    if (step) steps = kern_op(k, LOOP_MUL, t, steps, step, 0);
    return kern_convert(k, kern_op(k, LOOP_ADD, t, start, steps, 0), to);
  }
  bool endpoint = arg_bool(&args[3], true);
  Dim n = rt->dims[0], parts_dim = endpoint ? size_sub(k->sizes, n, 1) : n;
  u32 start = setting(k, &args[0], LT_F64), stop = setting(k, &args[1], LT_F64);
  u32 parts = kern_convert(k, kern_dim(k, parts_dim), LT_F64), zero = kern_word(k, LT_F64, 0);
  u32 span = kern_op(k, LOOP_SUB, LT_F64, stop, start, 0), f = kern_convert(k, i, LT_F64);
  u32 some = kern_op(k, LOOP_GT, LT_I1, parts, zero, 0);
  u32 apart = kern_op(k, LOOP_SUB, LT_F64, kern_op(k, LOOP_DIV, LT_F64, stop, parts, 0),
                      kern_op(k, LOOP_DIV, LT_F64, start, parts, 0), 0);
  u32 finite = kern_op(k, LOOP_EQ, LT_I1, kern_op(k, LOOP_SUB, LT_F64, span, span, 0), zero, 0);
  u32 step = kern_op(k, LOOP_SELECT, LT_F64, finite, kern_op(k, LOOP_DIV, LT_F64, span, parts, 0), apart);
  step = kern_op(k, LOOP_SELECT, LT_F64, some, step, zero);
  u32 tiny = kern_op(k, LOOP_MUL, LT_F64, kern_op(k, LOOP_DIV, LT_F64, f, parts, 0), span, 0);
  u32 by = kern_op(k, LOOP_SELECT, LT_F64, some, tiny, zero);
  by = kern_op(k, LOOP_SELECT, LT_F64, kern_op(k, LOOP_NE, LT_I1, step, zero, 0),
               kern_op(k, LOOP_MUL, LT_F64, f, step, 0), by);
  u32 v = kern_op(k, LOOP_ADD, LT_F64, start, by, 0);
  if (endpoint) {
    u32 last = kern_op(k, LOOP_EQ, LT_I1, i, kern_dim(k, size_sub(k->sizes, n, 1)), 0);
    last = kern_op(k, LOOP_AND, LT_I1, last, kern_op(k, LOOP_GT, LT_I1, kern_dim(k, n), kern_word(k, LT_I64, 1), 0), 0);
    v = kern_op(k, LOOP_SELECT, LT_F64, last, stop, v);
  }
  return kern_convert(k, v, to);
}

static u32 filled_with(Kern *k, LoopType t, u8 number) {
  return t == LT_I1 || !number ? kern_word(k, t, number) : kern_convert(k, kern_word(k, LT_I64, number), t);
}

static u32 make_value(Kern *k, NodeId n, u32 ix) {
  Graph *g = k->g;
  const GraphNode *node = graph_node_at(g, n);
  GraphArg args[OP_MAX_PARAMS];
  node_args(g, n, args);
  const ArrayType rt = *value_type(g, node_result(g, n, 0));
  LoopType t = loop_type_of_dtype(rt.dtype);
  if (op_fills(node->op)) return filled_with(k, t, op_info(node->op)->fill);
  const u32 zero = filled_with(k, t, 0), one = filled_with(k, t, 1);
  u32 axes[TYPE_MAX_RANK];
  switch (node->op) {
    case OP_full:
    case OP_full_like: {
      ValueId value = args[1].value;
      if (args[1].kind != ARG_value) break;
      const ArrayType vt = *value_type(g, value);
      return kern_want_as(k, value, kern_broadcast(k, &vt, &rt, ix), t);
    }
    case OP_arange:
    case OP_linspace: return make_ramp(k, node->op, args, &rt, ix);
    case OP_eye: {
      if (!kern_axes(k, &rt, ix, axes)) return 0;
      u32 row = kern_index(k, axes[0]), shift = setting(k, &args[2], LT_I64);
      if (shift) row = kern_op(k, LOOP_ADD, LT_I64, row, shift, 0);
      return kern_op(k, LOOP_SELECT, t, kern_op(k, LOOP_EQ, LT_I1, kern_index(k, axes[1]), row, 0), one, zero);
    }
    case OP_tril:
    case OP_triu: {
      if (!kern_axes(k, &rt, ix, axes)) return 0;
      u32 row = kern_index(k, axes[rt.rank - 2]), column = kern_index(k, axes[rt.rank - 1]),
          shift = setting(k, &args[1], LT_I64);
      if (shift) row = kern_op(k, LOOP_ADD, LT_I64, row, shift, 0);
      u32 inside = kern_op(k, node->op == OP_tril ? LOOP_LE : LOOP_GE, LT_I1, column, row, 0);
      return kern_op(k, LOOP_SELECT, t, inside, kern_want(k, args[0].value, ix), zero);
    }
    default: break;
  }
  k->why = "an argument known only at run time";
  return 0;
}

/* ---- the question ------------------------------------------------------------------------------------------ */

bool node_parts(const Graph *g, NodeId n) {
  const GraphNode *node = graph_node_at(g, n);
  if (node->kind != NODE_op) return false;
  return node->op == OP_complex ||
         ((node->op == OP_real || node->op == OP_imag) && dtype_is_pair(value_type(g, node_operand(g, n, 0))->dtype));
}

bool view_maps(const Graph *g, NodeId n) {
  const GraphNode *node = graph_node_at(g, n);
  if (node->kind == NODE_index || node->kind == NODE_hook || node_parts(g, n)) return true;
  u32 lower = op_info(node->op)->lower;
  return node->kind == NODE_op &&
         (lower == LOWER_view || lower == LOWER_move || lower == LOWER_make || lower == LOWER_fill ||
          lower == LOWER_mask);
}

/* A part of a complex number, or the number that is one of its parts. */
static bool map_part(Kern *k, NodeId n, ValueId *v, u32 *ix, u32 *part) {
  const GraphNode *node = graph_node_at(k->g, n);
  if (node->op != OP_complex) {
    *v = node_operand(k->g, n, 0);
    *part = node->op == OP_real ? PART_RE : PART_IM;
    return true;
  }
  if (!*part) {
    k->why = "a complex number that is not taken by its parts";
    return false;
  }
  const ArrayType out = *value_type(k->g, node_result(k->g, n, 0));
  *v = node_operand(k->g, n, *part - PART_RE);
  *part = 0;
  const ArrayType own = *value_type(k->g, *v);
  *ix = kern_broadcast(k, &own, &out, *ix);
  return true;
}

bool kern_view(Kern *k, NodeId n, ValueId *v, u32 *ix, u32 *part, u32 *task) {
  const GraphNode *node = graph_node_at(k->g, n);
  *task = 0;
  if (node_parts(k->g, n)) return map_part(k, n, v, ix, part);
  if (node->kind == NODE_index) return map_index(k, n, v, ix);
  if (node->kind == NODE_hook) {
    *v = node_operand(k->g, n, 0);
    return true;
  }
  const u32 lower = op_info(node->op)->lower;
  if (lower == LOWER_view || lower == LOWER_move) return map_view(k, n, v, ix);
  *task = make_value(k, n, *ix);
  return *task != 0;
}
