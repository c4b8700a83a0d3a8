/* graph_rules.c — shape rules: elementwise operations, reductions, views, arrays made of sizes (see graph_infer.h). */
#include "tracer/graph/graph_infer.h"

#include <math.h>

bool infer_none(Infer *c) { return inf_no_rule(c); }
bool infer_parts(Infer *c) { return inf_no_rule(c); }

/* ---- filling a result ---------------------------------------------------------------------------------------- */

bool inf_same(Infer *c, const ArrayType *x) {
  *c->out = *x;
  c->out->weak = false;
  return true;
}

bool inf_dtype(Infer *c, const ArrayType *const *xs, u32 n) {
  DTypeResult r;
  if (!rule_dtype(c->op, n, xs, &r, c->err)) return false;
  c->out->dtype = r.result;
  c->out->weak = r.weak && c->out->rank == 0;
  return true;
}

void inf_device(Infer *c, u32 p) {
  if (c->args[p].kind == ARG_attr && c->args[p].attr->kind == ATTR_int) c->out->device = (u8)c->args[p].attr->i;
}

bool inf_new(Infer *c, u32 p, u32 dtype) {
  u32 rank;
  if (!inf_shape(c, p, &rank, c->out->dims)) return inf_fail(c, EK_shape, "the shape is known only at run time");
  for (u32 d = 0; d < rank; d++)
    if (size_prove(&c->g->sizes, REL_lt, c->out->dims[d], 0) == TRUTH_always)
      return inf_fail(c, EK_value, "a size is negative");
  c->out->rank = (u8)rank;
  c->out->dtype = (u8)dtype;
  return true;
}

bool inf_reduced(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  u32 axis = op_param(c->op, "axis"), keep = op_param(c->op, "keepdims"), mask;
  if (!x) return inf_no_rule(c);
  if (!arg_axes(&c->args[axis], x->rank, &mask))
    return inf_axis_fails(c, axis, EK_index, "an axis is out of range");
  rule_reduce(x, mask, keep != UINT32_MAX && arg_bool(&c->args[keep], false), c->out);
  c->out->device = x->device;
  return inf_dtype(c, &x, 1);
}

/* ---- by element ---------------------------------------------------------------------------------------------- */

static bool broadcast(Infer *c, u32 must) {
  const ArrayType **xs;
  u32 n;
  if (!inf_operands_fit(c)) return inf_no_rule(c);
  if (!inf_arrays(c, &xs, &n)) return false;
  if (n < must) return inf_no_rule(c); /* the eager kernel says what is missing */
  return rule_broadcast(c->dims, n, xs, c->out, c->err) && inf_dtype(c, xs, n);
}

bool infer_elementwise(Infer *c) { return broadcast(c, 0); }
bool infer_where(Infer *c) { return broadcast(c, 3); }

bool infer_astype(Infer *c) {
  if (!broadcast(c, 0)) return false;
  c->out->dtype = (u8)arg_dtype(&c->args[1]);
  c->out->weak = false;
  return c->out->dtype != DT_NONE || inf_no_rule(c);
}

bool infer_itself(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  if (!x) return inf_no_rule(c);
  *c->out = *x;
  return true;
}

/* ---- reductions, scans --------------------------------------------------------------------------------------- */

bool infer_reduce(Infer *c) { return inf_reduced(c); }

bool infer_quantile(Infer *c) {
  const ArrayType *q = inf_type(c, 1);
  return q && !q->rank ? inf_reduced(c) : inf_no_rule(c);
}

bool infer_norm(Infer *c) { /* its order: any number */
  const ArrayType *order = inf_type(c, 1);
  const GraphArg *a = &c->args[1];
  bool fits = order ? order->rank == 0 && order->dtype != DT_bool
                    : a->kind == ARG_hole ||
                          (a->kind == ARG_attr && (a->attr->kind == ATTR_int || a->attr->kind == ATTR_float));
  return fits ? inf_reduced(c) : inf_no_rule(c);
}

bool infer_softmax(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  if (!x || !inf_axes_fit(c, 1, -1, true)) return inf_no_rule(c);
  inf_same(c, x);
  return inf_dtype(c, &x, 1);
}

/* x as a float, promoted with scale and bias */
bool infer_layer_norm(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  if (!x || !inf_scale_fits(c, 1) || !inf_scale_fits(c, 2) || !inf_axes_fit(c, 3, -1, true)) return inf_no_rule(c);
  inf_same(c, x);
  if (!inf_dtype(c, &x, 1)) return false;
  for (u32 i = 1; i < 3; i++) {
    const ArrayType *t = inf_type(c, i);
    bool weak = false;
    if (t) c->out->dtype = (u8)dtype_promote_weak(c->out->dtype, c->out->weak, t->dtype, t->weak, &weak);
  }
  return true;
}

/* The labels stand one to a row of x. */
bool infer_cross_entropy(Infer *c) {
  const ArrayType *x = inf_type(c, 0), *labels = inf_type(c, 1);
  ArrayType column, taken;
  if (!x || !labels || labels->rank == TYPE_MAX_RANK) return inf_no_rule(c);
  column = *labels;
  column.dims[column.rank++] = 1;
  if (!shape_take_along_axis(c->dims, x, &column, -1, &taken, c->err)) return false;
  c->out->device = x->device;
  return inf_dtype(c, &x, 1);
}

bool infer_scan(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  bool flat;
  i64 axis;
  if (!x) return inf_no_rule(c);
  if (!inf_axis(c, 1, INT64_MIN, &flat, &axis)) return false;
  bool initial = arg_bool(&c->args[3], false);
  c->out->device = x->device;
  return shape_scan(c->dims, x, flat, axis, initial, c->out, c->err) && inf_dtype(c, &x, 1);
}

bool infer_diff(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  i64 n, axis;
  if (!x || !inf_int(c, 1, 1, &n) || !inf_int(c, 2, -1, &axis)) return inf_no_rule(c);
  c->out->device = x->device;
  return shape_diff(c->dims, x, n, axis, c->out, c->err) && inf_dtype(c, &x, 1);
}

/* ---- views --------------------------------------------------------------------------------------------------- */

/* The first operand; the result has its type until the rule says more. NULL: there is none. */
static const ArrayType *viewed(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  if (x) inf_same(c, x);
  else inf_no_rule(c);
  return x;
}

bool infer_reshape(Infer *c) {
  const ArrayType *x = viewed(c);
  Dim dims[TYPE_MAX_RANK];
  u32 rank;
  return x && (inf_shape(c, 1, &rank, dims) || inf_fail(c, EK_shape, "the shape is known only at run time")) &&
         shape_reshape(c->dims, x, rank, dims, c->out, c->err);
}

bool infer_ravel(Infer *c) {
  const ArrayType *x = viewed(c);
  if (x) shape_ravel(c->dims, x, c->out);
  return x;
}

bool infer_transpose(Infer *c) {
  const ArrayType *x = viewed(c);
  u32 perm[TYPE_MAX_RANK], n;
  i64 list[TYPE_MAX_RANK];
  if (!x) return false;
  n = x->rank;
  for (u32 d = 0; d < x->rank; d++) list[d] = x->rank - 1 - (i64)d;
  if (inf_given(c, 1) && !inf_ints(c, 1, &n, list, TYPE_MAX_RANK)) return inf_no_rule(c);
  if (!rule_permutation(n, list, x->rank, perm, c->err)) return false;
  shape_transpose(x, perm, c->out);
  return true;
}

bool infer_moveaxis(Infer *c) {
  const ArrayType *x = viewed(c);
  u32 perm[TYPE_MAX_RANK], n, m;
  i64 from[TYPE_MAX_RANK], to[TYPE_MAX_RANK];
  if (!x || !inf_ints(c, 1, &n, from, TYPE_MAX_RANK) || !inf_ints(c, 2, &m, to, TYPE_MAX_RANK) || n != m)
    return inf_no_rule(c);
  if (!rule_moveaxis(n, from, to, x->rank, perm, c->err)) return false;
  shape_transpose(x, perm, c->out);
  return true;
}

bool infer_swapaxes(Infer *c) {
  const ArrayType *x = viewed(c);
  u32 perm[TYPE_MAX_RANK];
  i64 a, b;
  if (!x || !inf_int(c, 1, 0, &a) || !inf_int(c, 2, 0, &b)) return inf_no_rule(c);
  if (!rule_swapaxes(a, b, x->rank, perm, c->err)) return false;
  shape_transpose(x, perm, c->out);
  return true;
}

bool infer_squeeze(Infer *c) {
  const ArrayType *x = viewed(c);
  u32 mask = 0;
  bool all = !inf_given(c, 1);
  if (!x || (!all && !arg_axes(&c->args[1], x->rank, &mask))) return inf_no_rule(c);
  return shape_squeeze(c->dims, x, all, mask, c->out, &mask, c->err);
}

bool infer_expand_dims(Infer *c) {
  const ArrayType *x = viewed(c);
  i64 list[TYPE_MAX_RANK] = {0};
  u32 n = 1, mask;
  if (!x || (c->args[1].kind != ARG_hole && !inf_given(c, 1))) return inf_no_rule(c);
  if (inf_given(c, 1) && !inf_ints(c, 1, &n, list, TYPE_MAX_RANK)) return inf_no_rule(c);
  return shape_expand_dims(x, n, list, c->out, &mask, c->err);
}

bool infer_broadcast_to(Infer *c) {
  const ArrayType *x = viewed(c);
  Dim dims[TYPE_MAX_RANK];
  u32 rank;
  if (!x || !inf_shape(c, 1, &rank, dims)) return inf_no_rule(c);
  return shape_broadcast_to(c->dims, x, rank, dims, c->out, c->err);
}

bool infer_flip(Infer *c) {
  return viewed(c) && (c->args[1].kind == ARG_hole || inf_axes_fit(c, 1, 0, true) || inf_no_rule(c));
}

bool infer_roll(Infer *c) {
  bool fits = inf_are_integers(c, 1) && (c->args[2].kind == ARG_hole || inf_axes_fit(c, 2, 0, true));
  return viewed(c) && (fits || inf_no_rule(c));
}

bool infer_tile(Infer *c) {
  const ArrayType *x = viewed(c);
  Dim dims[TYPE_MAX_RANK];
  u32 rank;
  if (!x || !inf_shape(c, 1, &rank, dims)) return inf_no_rule(c);
  return shape_tile(c->dims, x, rank, dims, c->out, c->err);
}

bool infer_repeat(Infer *c) {
  const ArrayType *x = viewed(c), *counts = inf_type(c, 1);
  ArrayType from, *out = c->out;
  Dim times;
  bool flat;
  i64 axis;
  u32 a;
  if (!x) return false;
  from = *x;
  if (counts && counts->rank == 1) { /* a count for each: their sum is known at run time */
    if (dtype_kind(counts->dtype) > DK_INT || !inf_axis(c, 2, INT64_MIN, &flat, &axis)) return inf_no_rule(c);
    if (flat) shape_ravel(c->dims, x, &from);
    if (!rule_axis(axis, from.rank, &a, c->err) || !shape_resize_axis(&from, axis, 0, out, c->err)) return false;
    out->dims[a] = DIM_FRESH;
    return true;
  }
  if (!inf_dim(c, 1, 1, &times) || !inf_axis(c, 2, INT64_MIN, &flat, &axis)) return inf_no_rule(c);
  if (flat) shape_ravel(c->dims, x, &from);
  if (!rule_axis(axis, from.rank, &a, c->err)) return false;
  return shape_resize_axis(&from, axis, dim_binary(c->dims, '*', from.dims[a], times), out, c->err);
}

bool infer_pad(Infer *c) {
  static const char *const modes[] = {"constant", "edge", "reflect", "symmetric", "wrap", NULL};
  const ArrayType *x = viewed(c);
  const GraphArg *a = &c->args[1];
  Dim before[TYPE_MAX_RANK], after[TYPE_MAX_RANK];
  i64 list[TYPE_MAX_RANK];
  u32 n;
  if (!x || !inf_given(c, 1) || !inf_is_word(c, 2, modes)) return inf_no_rule(c);
  if (a->kind == ARG_attr && a->attr->kind == ATTR_ints && a->attr->pairs) {
    if (a->attr->count != 2u * x->rank) return inf_no_rule(c);
    for (u32 d = 0; d < x->rank; d++) {
      before[d] = a->attr->ints[2 * d];
      after[d] = a->attr->ints[2 * d + 1];
    }
  } else {
    if (!inf_ints(c, 1, &n, list, TYPE_MAX_RANK) || (n != 1 && n != 2)) return inf_no_rule(c);
    for (u32 d = 0; d < x->rank; d++) { /* one number for all sides, or (before, after) for all axes */
      before[d] = list[0];
      after[d] = list[n - 1];
    }
  }
  for (u32 d = 0; d < x->rank; d++)
    if (before[d] < 0 || after[d] < 0) return inf_no_rule(c);
  shape_pad(c->dims, x, before, after, c->out);
  return true;
}

bool infer_sliding_window(Infer *c) {
  const ArrayType *x = viewed(c);
  u32 axes[TYPE_MAX_RANK], rank, n;
  i64 list[TYPE_MAX_RANK];
  Dim dims[TYPE_MAX_RANK];
  if (!x || !inf_shape(c, 1, &rank, dims)) return inf_no_rule(c);
  if (inf_given(c, 2)) {
    if (!inf_ints(c, 2, &n, list, TYPE_MAX_RANK) || n != rank) return inf_no_rule(c);
    for (u32 i = 0; i < n; i++)
      if (!rule_axis(list[i], x->rank, &axes[i], c->err)) return false;
  } else {
    if (rank != x->rank) return inf_no_rule(c);
    for (u32 i = 0; i < rank; i++) axes[i] = i;
  }
  return shape_sliding_window(c->dims, x, rank, dims, axes, c->out, c->err);
}

/* ---- joins --------------------------------------------------------------------------------------------------- */

typedef bool JoinShape(DimCtx *c, u32 n, const ArrayType *const *xs, i64 axis, ArrayType *out, RuleError *err);

static bool joined(Infer *c, JoinShape *shape) {
  const ArrayType **xs;
  u32 n;
  i64 axis;
  if (!inf_arrays(c, &xs, &n) || c->args[0].kind != ARG_list) return inf_no_rule(c);
  n = c->args[0].count;
  if (!inf_int(c, 1, 0, &axis)) return inf_no_rule(c);
  if (!shape(c->dims, n, xs, axis, c->out, c->err) || !inf_dtype(c, xs, n)) return false;
  c->out->weak = false;
  return true;
}

bool infer_concat(Infer *c) { return joined(c, shape_concat); }
bool infer_stack(Infer *c) { return joined(c, shape_stack); }

/* ---- arrays made of sizes ------------------------------------------------------------------------------------ */

/* What fills an array may be one itself, when it goes into its shape. */
static bool value_fills(Infer *c, const ArrayType *v) {
  const ArrayType *xs[2] = {c->out, v};
  ArrayType both;
  if (v->rank == 0) return true;
  if (v->rank > c->out->rank || !rule_broadcast(c->dims, 2, xs, &both, c->err)) return inf_no_rule(c);
  for (u32 d = 0; d < both.rank; d++)
    if (both.dims[d] != c->out->dims[d]) return inf_no_rule(c);
  return true;
}

bool infer_filled(Infer *c) {
  u32 dtype = arg_dtype(&c->args[1]);
  return inf_new(c, 0, dtype ? dtype : DT_f64);
}

bool infer_full(Infer *c) {
  const ArrayType *x = inf_type(c, 1);
  u32 dtype = arg_dtype(&c->args[2]);
  inf_device(c, 3);
  return x ? inf_new(c, 0, dtype ? dtype : x->dtype) && value_fills(c, x) : inf_no_rule(c);
}

/* The device by its number: graphs alone give it so. */
bool infer_moved(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  if (!x || c->args[1].kind != ARG_attr || c->args[1].attr->kind != ATTR_int) return inf_no_rule(c);
  *c->out = *x;
  inf_device(c, 1);
  return true;
}

/* The type of the first operand, unless a dtype is given. */
static bool like(Infer *c, u32 param) {
  const ArrayType *x = inf_type(c, 0);
  u32 dtype = arg_dtype(&c->args[param]);
  if (!x) return inf_no_rule(c);
  inf_same(c, x);
  if (dtype) c->out->dtype = (u8)dtype;
  return true;
}

bool infer_like(Infer *c) { return like(c, 1); }
bool infer_array(Infer *c) { return like(c, 1); }

bool infer_full_like(Infer *c) {
  const ArrayType *value = inf_type(c, 1);
  return like(c, 2) && value ? value_fills(c, value) : inf_no_rule(c);
}

bool infer_eye(Infer *c) {
  u32 dtype = arg_dtype(&c->args[3]);
  Dim n, m;
  if (!inf_dim(c, 0, 0, &n)) return inf_no_rule(c);
  m = n;
  if (inf_given(c, 1) && !inf_dim(c, 1, n, &m)) return inf_no_rule(c);
  inf_device(c, 4);
  c->out->dtype = (u8)(dtype ? dtype : DT_f64);
  c->out->rank = 2;
  c->out->dims[0] = n;
  c->out->dims[1] = m;
  return true;
}

bool infer_diag(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  i64 k;
  if (!x || !inf_int(c, 1, 0, &k)) return inf_no_rule(c);
  inf_same(c, x);
  return shape_diag(c->dims, x, k, c->out, c->err);
}

bool infer_triangle(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  if (!x || (c->args[1].kind != ARG_hole && !inf_is_integer(c, 1))) return inf_no_rule(c);
  return shape_matrix(x, c->err) && inf_same(c, x);
}

bool infer_linspace(Infer *c) {
  ArrayType *out = c->out;
  u32 dtype = arg_dtype(&c->args[4]);
  const ArrayType *xs[2] = {inf_type(c, 0), inf_type(c, 1)};
  if (!xs[0] || !xs[1] || xs[0]->rank || xs[1]->rank || !inf_dim(c, 2, 50, &out->dims[0])) return inf_no_rule(c);
  out->rank = 1;
  if (!inf_dtype(c, xs, 2)) return false;
  if (dtype_kind(out->dtype) == DK_COMPLEX) return inf_no_rule(c); /* made of two */
  if (dtype != DT_NONE) out->dtype = (u8)dtype;
  return true;
}

bool infer_arange(Infer *c) {
  ArrayType *out = c->out;
  Graph *g = c->g;
  Value v[3];
  Dim d[3];
  u32 dtype = arg_dtype(&c->args[3]);
  if (!inf_given(c, 0)) return inf_no_rule(c);
  bool ints = true, known = true, literal = false, one = !inf_given(c, 1);
  const ArrayType *xs[3];
  u32 n = 0;
  v[0] = value_i64(0);
  v[1] = value_i64(0);
  v[2] = value_i64(1);
  for (u32 i = 0; i < 3; i++) {
    if (!inf_given(c, i)) continue;
    const ArrayType *t = inf_type(c, i);
    if (!t && inf_dim(c, i, 0, &d[i])) { /* an attribute */
      i64 k;
      known &= size_is_const(&g->sizes, d[i], &k);
      v[i] = value_i64(known ? k : 0);
      continue;
    }
    if (c->args[i].kind == ARG_attr && c->args[i].attr->kind == ATTR_float) {
      v[i] = value_f64(c->args[i].attr->f);
      ints = false;
      literal = true;
      continue;
    }
    if (!t || t->rank) return inf_no_rule(c);
    xs[n++] = t;
    ints &= dtype_kind(t->dtype) == DK_INT;
    known &= value_const(g, c->args[i].value, &v[i]);
  }
  inf_device(c, 4);
  out->rank = 1;
  out->dtype = literal ? DT_f64 : DT_i64;
  if (n && literal) return inf_no_rule(c);
  if (n && !inf_dtype(c, xs, n)) return false;
  if (dtype != DT_NONE) out->dtype = (u8)dtype;
  out->weak = false;
  if (!ints) {
    if (!known) return inf_fail(c, EK_unsupported, "the length is known only at run time");
    f64 from = one ? 0 : num_as_f64(v[0]), to = num_as_f64(v[one ? 0 : 1]), by = num_as_f64(v[2]),
        count = ceil((to - from) / by);
    if (!(by != 0) || count != count || count >= (f64)SIZE_LIMIT) return inf_no_rule(c);
    out->dims[0] = count > 0 ? (i64)count : 0;
    return true;
  }
  i64 by;
  Dim from, to;
  if (!inf_dim(c, 0, 0, &from) || !inf_dim(c, 1, 0, &to) || !inf_int(c, 2, 1, &by) || by == 0 ||
      by == INT64_MIN)
    return inf_fail(c, EK_unsupported, "the length is known only at run time");
  if (one) {
    to = from;
    from = 0;
  }
  Dim span = by > 0 ? size_sub(&g->sizes, to, from) : size_sub(&g->sizes, from, to);
  out->dims[0] = size_max(&g->sizes, size_ceildiv(&g->sizes, span, by > 0 ? by : -by), 0);
  return out->dims[0] != DIM_NONE || inf_no_rule(c);
}
