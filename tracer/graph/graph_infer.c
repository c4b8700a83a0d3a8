/* graph_infer.c — result types of operation nodes, from the dtype and shape rules of lang/ops (see graph.h). An
 * operation that is not here has no trace rule: the recorder breaks, and it runs eagerly. */
#include "tracer/graph/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FEW_OPERANDS = 16 }; /* more take memory of their own */

typedef struct Infer {
  Graph *g;
  DimCtx *dims;
  u32 op;
  GraphArg args[OP_MAX_PARAMS];
  ArrayType *out; /* the first result */
  u32 capacity, count;
  RuleError *err;
  const ArrayType *few[FEW_OPERANDS], **more; /* types of the operands */
  u32 nmore;
} Infer;

static bool fail(Infer *c, ErrorKind kind, const char *text) {
  c->err->kind = (u8)kind;
  snprintf(c->err->text, sizeof c->err->text, "%s", text);
  return false;
}
static bool no_rule(Infer *c) { return fail(c, EK_unsupported, "not supported in a trace"); }

/* ---- reading arguments ----------------------------------------------------------------------------- */

static const ArrayType *type_arg(Infer *c, u32 p) {
  const GraphArg *a = &c->args[p];
  return a->kind == ARG_value && !value_is_token(c->g, a->value) ? value_type(c->g, a->value) : NULL;
}

/* An integer that is known or symbolic. */
static bool dim_of_arg(Infer *c, u32 p, Dim fallback, Dim *out) {
  const GraphArg *a = &c->args[p];
  *out = fallback;
  if (a->kind == ARG_hole) return true;
  if (a->kind == ARG_value) return value_dim(c->g, a->value, out);
  if (a->kind != ARG_attr) return false;
  switch (a->attr->kind) {
    case ATTR_nil: return true;
    case ATTR_int: *out = size_const(&c->g->sizes, a->attr->i); return *out != DIM_NONE;
    case ATTR_dim: *out = a->attr->dim; return true;
    default: return false;
  }
}

static bool int_of_arg(Infer *c, u32 p, i64 fallback, i64 *out) {
  Dim d;
  *out = fallback;
  if (c->args[p].kind == ARG_hole) return true;
  if (c->args[p].kind == ARG_value) return value_dim(c->g, c->args[p].value, &d) && size_is_const(&c->g->sizes, d, out);
  return arg_int(&c->args[p], fallback, out);
}

static bool infer_given(const Infer *c, u32 p) {
  const GraphArg *a = &c->args[p];
  return a->kind != ARG_hole && !(a->kind == ARG_attr && a->attr->kind == ATTR_nil);
}

/* A list of integers known while tracing: an int counts as a list of one. */
static bool ints_of_arg(Infer *c, u32 p, u32 *n, i64 *out, u32 cap) {
  const GraphArg *a = &c->args[p];
  i64 one;
  if (a->kind == ARG_attr && (a->attr->kind == ATTR_ints || a->attr->kind == ATTR_dims)) {
    if (a->attr->count > cap) return false;
    *n = a->attr->count;
    memcpy(out, a->attr->ints, sizeof *out * *n);
    return true;
  }
  if (!int_of_arg(c, p, 0, &one)) return false;
  *n = 1;
  out[0] = one;
  return true;
}

/* A shape: a list of sizes, or one size. */
static bool shape_of_arg(Infer *c, u32 p, u32 *rank, Dim *dims) {
  const GraphArg *a = &c->args[p];
  *rank = 0;
  if (a->kind == ARG_hole) return true;
  if (a->kind == ARG_list) {
    if (a->count > TYPE_MAX_RANK) return false;
    *rank = a->count;
    for (u32 i = 0; i < a->count; i++)
      if (!value_dim(c->g, a->values[i], &dims[i])) return false;
    return true;
  }
  if (a->kind == ARG_attr && (a->attr->kind == ATTR_dims || a->attr->kind == ATTR_ints)) {
    if (a->attr->count > TYPE_MAX_RANK) return false;
    *rank = a->attr->count;
    for (u32 i = 0; i < a->attr->count; i++)
      dims[i] = a->attr->ints[i] == -1 && a->attr->kind == ATTR_ints ? DIM_INFER : a->attr->ints[i];
    return true;
  }
  *rank = 1;
  if (!dim_of_arg(c, p, 0, &dims[0])) return false;
  i64 v;
  if (size_is_const(&c->g->sizes, dims[0], &v) && v == -1) dims[0] = DIM_INFER;
  return true;
}

static bool new_shape(Infer *c, u32 p, u32 dtype) {
  u32 rank;
  if (!shape_of_arg(c, p, &rank, c->out->dims)) return fail(c, EK_shape, "the shape is known only at run time");
  for (u32 d = 0; d < rank; d++)
    if (size_prove(&c->g->sizes, REL_lt, c->out->dims[d], 0) == TRUTH_always)
      return fail(c, EK_value, "a size is negative");
  c->out->rank = (u8)rank;
  c->out->dtype = (u8)dtype;
  return true;
}

static bool same_as(Infer *c, const ArrayType *x) {
  u8 device = x->device;
  *c->out = *x;
  c->out->device = device;
  c->out->weak = false;
  return true;
}

/* A computed axis is no error, but nothing that a graph can take. */
static bool axis_fails(Infer *c, u32 p, ErrorKind kind, const char *what) {
  const GraphArg *a = &c->args[p];
  bool known = a->kind == ARG_attr && a->attr->kind != ATTR_dim && a->attr->kind != ATTR_dims;
  return fail(c, known ? kind : EK_unsupported, known ? what : "the axis must be known while tracing");
}

static bool axis_of_arg(Infer *c, u32 p, i64 fallback, bool *flat, i64 *axis) {
  *flat = !infer_given(c, p) && fallback == INT64_MIN;
  *axis = 0;
  if (*flat) return true;
  return int_of_arg(c, p, fallback, axis) || axis_fails(c, p, EK_type, "the axis must be an integer");
}

static bool result_dtype(Infer *c, const ArrayType *const *xs, u32 n) {
  DTypeResult r;
  if (!rule_dtype(c->op, n, xs, &r, c->err)) return false;
  c->out->dtype = r.result;
  c->out->weak = r.weak && c->out->rank == 0;
  return true;
}

/* ---- families -------------------------------------------------------------------------------------- */

/* All arrays among the arguments, lists included; they lie in c->xs until the inference ends. */
static bool array_args(Infer *c, const ArrayType ***out, u32 *n) {
  u32 most = 0;
  for (u32 p = 0; p < op_info(c->op)->nparams; p++)
    most += c->args[p].kind == ARG_value ? 1 : c->args[p].kind == ARG_list ? c->args[p].count : 0;
  const ArrayType **xs = c->few;
  *out = xs;
  *n = 0;
  if (most > FEW_OPERANDS) {
    c->more = *out = xs = mem_alloc(c->g->alloc, sizeof *xs * most);
    c->nmore = most;
    if (!xs) {
      c->g->failed = true;
      return no_rule(c);
    }
  }
  for (u32 p = 0; p < op_info(c->op)->nparams; p++) {
    const GraphArg *a = &c->args[p];
    u32 count = a->kind == ARG_value ? 1 : a->kind == ARG_list ? a->count : 0;
    for (u32 i = 0; i < count; i++) {
      ValueId v = a->kind == ARG_list ? a->values[i] : a->value;
      if (value_is_token(c->g, v)) return no_rule(c);
      xs[(*n)++] = value_type(c->g, v);
    }
  }
  if (*n == 0) return no_rule(c);
  c->out->device = 0;
  for (u32 i = 0; i < *n; i++)
    if (xs[i]->device) c->out->device = xs[i]->device;
  return true;
}

static bool infer_elementwise(Infer *c) {
  const ArrayType **xs;
  u32 n;
  if (!array_args(c, &xs, &n)) return false;
  if (c->op == OP_where && n != 3) return no_rule(c); /* the eager kernel says what is missing */
  if (!rule_broadcast(c->dims, n, xs, c->out, c->err) || !result_dtype(c, xs, n)) return false;
  if (c->op != OP_astype) return true;
  c->out->dtype = (u8)arg_dtype(&c->args[1]);
  c->out->weak = false;
  return c->out->dtype != DT_NONE || no_rule(c);
}

static bool infer_reduce(Infer *c) {
  const ArrayType *x = type_arg(c, 0);
  u32 axis = op_param(c->op, "axis"), keep = op_param(c->op, "keepdims"), mask;
  if (!x) return no_rule(c);
  if (!arg_axes(&c->args[axis], x->rank, &mask))
    return axis_fails(c, axis, EK_index, "an axis is out of range");
  rule_reduce(x, mask, keep != UINT32_MAX && arg_bool(&c->args[keep], false), c->out);
  c->out->device = x->device;
  return result_dtype(c, &x, 1);
}

static bool infer_scan(Infer *c, const ArrayType *x) {
  bool flat;
  i64 axis;
  if (!axis_of_arg(c, 1, INT64_MIN, &flat, &axis)) return false;
  bool initial = arg_bool(&c->args[3], false);
  c->out->device = x->device;
  return shape_scan(c->dims, x, flat, axis, initial, c->out, c->err) && result_dtype(c, &x, 1);
}

static bool infer_view(Infer *c, const ArrayType *x) {
  RuleError *err = c->err;
  ArrayType *out = c->out;
  u32 perm[TYPE_MAX_RANK], n = 0, m = 0, mask, rank;
  i64 list[TYPE_MAX_RANK], other[TYPE_MAX_RANK], axis;
  Dim dims[TYPE_MAX_RANK];
  bool flat;
  same_as(c, x);
  switch (c->op) {
    case OP_reshape:
      return (shape_of_arg(c, 1, &rank, dims) || fail(c, EK_shape, "the shape is known only at run time")) &&
             shape_reshape(c->dims, x, rank, dims, out, err);
    case OP_ravel: shape_ravel(c->dims, x, out); return true;
    case OP_transpose:
    case OP_permute_dims:
      n = x->rank;
      for (u32 d = 0; d < x->rank; d++) list[d] = x->rank - 1 - (i64)d;
      if (infer_given(c, 1) && !ints_of_arg(c, 1, &n, list, TYPE_MAX_RANK)) return no_rule(c);
      if (!rule_permutation(n, list, x->rank, perm, err)) return false;
      shape_transpose(x, perm, out);
      return true;
    case OP_moveaxis:
      if (!ints_of_arg(c, 1, &n, list, TYPE_MAX_RANK) || !ints_of_arg(c, 2, &m, other, TYPE_MAX_RANK) || n != m)
        return no_rule(c);
      if (!rule_moveaxis(n, list, other, x->rank, perm, err)) return false;
      shape_transpose(x, perm, out);
      return true;
    case OP_swapaxes:
      if (!int_of_arg(c, 1, 0, &list[0]) || !int_of_arg(c, 2, 0, &list[1])) return no_rule(c);
      if (!rule_swapaxes(list[0], list[1], x->rank, perm, err)) return false;
      shape_transpose(x, perm, out);
      return true;
    case OP_squeeze:
      if (infer_given(c, 1) && !arg_axes(&c->args[1], x->rank, &mask)) return no_rule(c);
      return shape_squeeze(c->dims, x, !infer_given(c, 1), infer_given(c, 1) ? mask : 0, out, &mask, err);
    case OP_expand_dims:
      list[0] = 0;
      n = 1;
      if (infer_given(c, 1) && !ints_of_arg(c, 1, &n, list, TYPE_MAX_RANK)) return no_rule(c);
      return shape_expand_dims(x, n, list, out, &mask, err);
    case OP_broadcast_to:
      return (shape_of_arg(c, 1, &rank, dims) || no_rule(c)) && shape_broadcast_to(c->dims, x, rank, dims, out, err);
    case OP_flip:
    case OP_roll: return true;
    case OP_tile:
      return (shape_of_arg(c, 1, &rank, dims) || no_rule(c)) && shape_tile(c->dims, x, rank, dims, out, err);
    case OP_repeat: {
      Dim times;
      ArrayType from = *x;
      u32 a;
      const ArrayType *counts = type_arg(c, 1);
      if (counts && counts->rank == 1) { /* a count for each: their sum is known at run time */
        if (dtype_kind(counts->dtype) > DK_INT || !axis_of_arg(c, 2, INT64_MIN, &flat, &axis)) return no_rule(c);
        if (flat) shape_ravel(c->dims, x, &from);
        if (!rule_axis(axis, from.rank, &a, err) || !shape_resize_axis(&from, axis, 0, out, err)) return false;
        out->dims[a] = DIM_FRESH;
        return true;
      }
      if (!dim_of_arg(c, 1, 1, &times) || !axis_of_arg(c, 2, INT64_MIN, &flat, &axis)) return no_rule(c);
      if (flat) shape_ravel(c->dims, x, &from);
      if (!rule_axis(axis, from.rank, &a, err)) return false;
      return shape_resize_axis(&from, axis, dim_binary(c->dims, '*', from.dims[a], times), out, err);
    }
    case OP_pad: {
      Dim before[TYPE_MAX_RANK], after[TYPE_MAX_RANK];
      const GraphArg *a = &c->args[1];
      if (a->kind == ARG_attr && a->attr->kind == ATTR_ints && a->attr->pairs) {
        if (a->attr->count != 2u * x->rank) return no_rule(c);
        for (u32 d = 0; d < x->rank; d++) {
          before[d] = a->attr->ints[2 * d];
          after[d] = a->attr->ints[2 * d + 1];
        }
      } else {
        if (!ints_of_arg(c, 1, &n, list, TYPE_MAX_RANK) || (n != 1 && n != 2)) return no_rule(c);
        for (u32 d = 0; d < x->rank; d++) { /* one number for all sides, or (before, after) for all axes */
          before[d] = list[0];
          after[d] = list[n - 1];
        }
      }
      for (u32 d = 0; d < x->rank; d++)
        if (before[d] < 0 || after[d] < 0) return no_rule(c);
      shape_pad(c->dims, x, before, after, out);
      return true;
    }
    case OP_sliding_window: {
      u32 axes[TYPE_MAX_RANK];
      if (!shape_of_arg(c, 1, &rank, dims)) return no_rule(c);
      if (infer_given(c, 2)) {
        if (!ints_of_arg(c, 2, &n, list, TYPE_MAX_RANK) || n != rank) return no_rule(c);
        for (u32 i = 0; i < n; i++)
          if (!rule_axis(list[i], x->rank, &axes[i], err)) return false;
      } else {
        if (rank != x->rank) return no_rule(c);
        for (u32 i = 0; i < rank; i++) axes[i] = i;
      }
      return shape_sliding_window(c->dims, x, rank, dims, axes, out, err);
    }
    default: return no_rule(c);
  }
}

static bool infer_list_of_arrays(Infer *c) {
  const ArrayType **xs;
  u32 n;
  i64 axis;
  if (!array_args(c, &xs, &n) || c->args[0].kind != ARG_list) return no_rule(c);
  n = c->args[0].count;
  if (!int_of_arg(c, 1, 0, &axis)) return no_rule(c);
  bool ok = c->op == OP_concat ? shape_concat(c->dims, n, xs, axis, c->out, c->err)
                               : shape_stack(c->dims, n, xs, axis, c->out, c->err);
  if (!ok || !result_dtype(c, xs, n)) return false;
  c->out->weak = false;
  return true;
}

static bool infer_ramp(Infer *c) {
  ArrayType *out = c->out;
  Graph *g = c->g;
  Value v[3];
  Dim d[3];
  u32 dtype = arg_dtype(&c->args[c->op == OP_arange ? 3 : 4]);
  if (c->op == OP_linspace) {
    const ArrayType *xs[2] = {type_arg(c, 0), type_arg(c, 1)};
    if (!xs[0] || !xs[1] || xs[0]->rank || xs[1]->rank || !dim_of_arg(c, 2, 50, &out->dims[0])) return no_rule(c);
    out->rank = 1;
    if (!result_dtype(c, xs, 2)) return false;
    if (dtype != DT_NONE) out->dtype = (u8)dtype;
    return true;
  }
  bool ints = true, known = true, literal = false, one = !infer_given(c, 1);
  const ArrayType *xs[3];
  u32 n = 0;
  v[0] = value_i64(0);
  v[1] = value_i64(0);
  v[2] = value_i64(1);
  for (u32 i = 0; i < 3; i++) {
    if (!infer_given(c, i)) continue;
    const ArrayType *t = type_arg(c, i);
    if (!t && dim_of_arg(c, i, 0, &d[i])) { /* an attribute */
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
    if (!t || t->rank) return no_rule(c);
    xs[n++] = t;
    ints &= dtype_kind(t->dtype) == DK_INT;
    known &= value_const(g, c->args[i].value, &v[i]);
  }
  out->rank = 1;
  out->dtype = literal ? DT_f64 : DT_i64;
  if (n && literal) return no_rule(c);
  if (n && !result_dtype(c, xs, n)) return false;
  if (dtype != DT_NONE) out->dtype = (u8)dtype;
  out->weak = false;
  if (!ints) {
    if (!known) return fail(c, EK_unsupported, "the length is known only at run time");
    f64 from = one ? 0 : num_as_f64(v[0]), to = num_as_f64(v[one ? 0 : 1]), by = num_as_f64(v[2]),
        count = ceil((to - from) / by);
    if (!(by != 0) || count != count || count >= (f64)SIZE_LIMIT) return no_rule(c);
    out->dims[0] = count > 0 ? (i64)count : 0;
    return true;
  }
  i64 by;
  Dim from, to;
  if (!dim_of_arg(c, 0, 0, &from) || !dim_of_arg(c, 1, 0, &to) || !int_of_arg(c, 2, 1, &by) || by == 0 ||
      by == INT64_MIN)
    return fail(c, EK_unsupported, "the length is known only at run time");
  if (one) {
    to = from;
    from = 0;
  }
  Dim span = by > 0 ? size_sub(&g->sizes, to, from) : size_sub(&g->sizes, from, to);
  out->dims[0] = size_max(&g->sizes, size_ceildiv(&g->sizes, span, by > 0 ? by : -by), 0);
  return out->dims[0] != DIM_NONE || no_rule(c);
}

/* What fills an array may be one itself, when it goes into its shape. */
static bool value_fills(Infer *c, const ArrayType *v) {
  const ArrayType *xs[2] = {c->out, v};
  ArrayType both;
  if (v->rank == 0) return true;
  if (v->rank > c->out->rank || !rule_broadcast(c->dims, 2, xs, &both, c->err)) return no_rule(c);
  for (u32 d = 0; d < both.rank; d++)
    if (both.dims[d] != c->out->dims[d]) return no_rule(c);
  return true;
}

static bool infer_make(Infer *c) {
  u32 dtype;
  const ArrayType *x;
  ArrayType *out = c->out;
  Dim n, m;
  switch (c->op) {
    case OP_zeros:
    case OP_ones:
    case OP_empty:
      dtype = arg_dtype(&c->args[1]);
      return new_shape(c, 0, dtype ? dtype : DT_f64);
    case OP_full:
      if (!(x = type_arg(c, 1))) return no_rule(c);
      dtype = arg_dtype(&c->args[2]);
      return new_shape(c, 0, dtype ? dtype : x->dtype) && value_fills(c, x);
    case OP_zeros_like:
    case OP_ones_like:
    case OP_full_like:
      if (!(x = type_arg(c, 0))) return no_rule(c);
      same_as(c, x);
      dtype = arg_dtype(&c->args[c->op == OP_full_like ? 2 : 1]);
      if (dtype) out->dtype = (u8)dtype;
      return c->op != OP_full_like || ((x = type_arg(c, 1)) && value_fills(c, x)) || no_rule(c);
    case OP_eye:
      if (!dim_of_arg(c, 0, 0, &n)) return no_rule(c);
      m = n;
      if (infer_given(c, 1) && !dim_of_arg(c, 1, n, &m)) return no_rule(c);
      dtype = arg_dtype(&c->args[3]);
      out->dtype = (u8)(dtype ? dtype : DT_f64);
      out->rank = 2;
      out->dims[0] = n;
      out->dims[1] = m;
      return true;
    case OP_arange:
    case OP_linspace: return infer_ramp(c);
    case OP_array:
      if (!(x = type_arg(c, 0))) return no_rule(c);
      same_as(c, x);
      dtype = arg_dtype(&c->args[1]);
      if (dtype) out->dtype = (u8)dtype;
      return true;
    case OP_diag: {
      i64 k;
      if (!(x = type_arg(c, 0)) || !int_of_arg(c, 1, 0, &k)) return no_rule(c);
      same_as(c, x);
      return shape_diag(c->dims, x, k, out, c->err);
    }
    case OP_tril:
    case OP_triu:
      if (!(x = type_arg(c, 0))) return no_rule(c);
      return shape_matrix(x, c->err) && same_as(c, x);
    default: return no_rule(c);
  }
}

/* Values, then what was asked for: positions, the place of each element among them, counts. */
static bool infer_unique(Infer *c, const ArrayType *x) {
  ArrayType from, *out = c->out;
  bool flat, want[3] = {arg_bool(&c->args[1], false), arg_bool(&c->args[2], false), arg_bool(&c->args[3], false)};
  i64 axis;
  u32 a;
  if (!x || c->capacity < 4 || !axis_of_arg(c, 4, INT64_MIN, &flat, &axis)) return no_rule(c);
  from = *x;
  if (flat) shape_ravel(c->dims, x, &from);
  if (!rule_axis(axis, from.rank, &a, c->err)) return false;
  Dim n = from.dims[a];
  same_as(c, x);
  if (!shape_resize_axis(&from, axis, 0, out, c->err)) return false;
  out->dims[a] = DIM_FRESH;
  for (u32 i = 0; i < 3; i++) {
    if (!want[i]) continue;
    ArrayType *more = &out[c->count++];
    *more = (ArrayType){.dtype = DT_i64, .rank = 1, .dims = {i == 1 ? n : DIM_FRESH}};
    if (i != 1 || !flat) continue;
    *more = *x;
    more->dtype = DT_i64;
    more->weak = false;
  }
  return true;
}

static bool infer_select(Infer *c) {
  const ArrayType *x = type_arg(c, 0), *y = type_arg(c, 1);
  ArrayType *out = c->out;
  bool flat;
  i64 axis;
  Dim n;
  u32 dtype;
  switch (c->op) {
    case OP_take:
      if (!x || !y || !axis_of_arg(c, 2, INT64_MIN, &flat, &axis)) return no_rule(c);
      same_as(c, x);
      return shape_take(c->dims, x, y, flat, axis, out, c->err);
    case OP_take_along_axis:
      if (!x || !y || !axis_of_arg(c, 2, -1, &flat, &axis)) return no_rule(c);
      same_as(c, x);
      return shape_take_along_axis(c->dims, x, y, axis, out, c->err);
    case OP_compress:
      if (!x || !y || !axis_of_arg(c, 2, 0, &flat, &axis)) return no_rule(c);
      /* the recorder makes an index of it */
      if (!infer_given(c, 3)) return fail(c, EK_unsupported, "the length is known only at run time");
      if (!dim_of_arg(c, 3, 0, &n)) return no_rule(c);
      same_as(c, x);
      return shape_resize_axis(x, axis, n, out, c->err);
    case OP_nonzero:
      if (!x || x->rank == 0 || x->rank > c->capacity) return no_rule(c);
      for (u32 d = 0; d < x->rank; d++) out[d] = (ArrayType){.dtype = DT_i64, .rank = 1, .dims = {DIM_FRESH}};
      c->count = x->rank;
      return true;
    case OP_bincount: /* weights make it a sum */
      if (!x || x->rank != 1 || dtype_kind(x->dtype) > DK_INT || (infer_given(c, 1) && (!y || y->rank != 1)))
        return no_rule(c);
      *out = (ArrayType){.dtype = (u8)(y ? dtype_float_of(y->dtype) : DT_i64), .rank = 1, .dims = {DIM_FRESH}};
      return !y || dim_equal(c->dims, x->dims[0], y->dims[0]) || fail(c, EK_shape, "the weights have another size");
    case OP_histogram: {
      const ArrayType *edges = type_arg(c, 1);
      bool ends = c->args[2].kind == ARG_list && c->args[2].count == 2;
      for (u32 i = 0; i < 2 && ends; i++) ends = value_type(c->g, c->args[2].values[i])->rank == 0;
      if (!x || c->capacity < 2 || (infer_given(c, 2) && !ends)) return no_rule(c);
      if (edges && edges->rank == 1) n = size_sub(&c->g->sizes, edges->dims[0], 1);
      else if (!dim_of_arg(c, 1, 10, &n)) return no_rule(c);
      if (n == DIM_NONE || size_prove(&c->g->sizes, REL_lt, 0, n) != TRUTH_always) return no_rule(c);
      *out = (ArrayType){.dtype = infer_given(c, 3) ? DT_f64 : DT_i64, .rank = 1, .dims = {n}};
      u32 of_edges = x->dtype;
      bool weak = x->weak;
      for (u32 i = 0; i < 2 && ends; i++) {
        const ArrayType *end = value_type(c->g, c->args[2].values[i]);
        of_edges = dtype_promote_weak(of_edges, weak, end->dtype, end->weak, &weak);
      }
      if (edges && edges->rank == 1) of_edges = edges->dtype;
      out[1] = (ArrayType){.dtype = (u8)dtype_float_of(of_edges), .rank = 1, .dims = {size_add(&c->g->sizes, n, 1)}};
      c->count = 2;
      return out[1].dims[0] != DIM_NONE || no_rule(c);
    }
    case OP_unique: return infer_unique(c, x);
    case OP_sort:
    case OP_argsort:
      if (!x || infer_given(c, 3)) return no_rule(c);
      same_as(c, x);
      if (c->op == OP_argsort) out->dtype = DT_i64;
      return true;
    case OP_topk:
      if (!x || c->capacity < 2 || !dim_of_arg(c, 1, 0, &n) || !axis_of_arg(c, 2, -1, &flat, &axis)) return no_rule(c);
      same_as(c, x);
      if (!shape_resize_axis(x, axis, n, out, c->err)) return false;
      out[1] = out[0];
      out[1].dtype = DT_i64;
      c->count = 2;
      return true;
    case OP_searchsorted:
      if (!x || !y) return no_rule(c);
      same_as(c, y);
      out->dtype = DT_i64;
      return true;
    case OP_isin:
      if (!x || !y) return no_rule(c);
      same_as(c, x);
      out->dtype = DT_bool;
      return true;
    case OP_one_hot:
      if (!x || !dim_of_arg(c, 1, 0, &n) || !axis_of_arg(c, 3, -1, &flat, &axis)) return no_rule(c);
      dtype = arg_dtype(&c->args[2]);
      same_as(c, x);
      out->dtype = (u8)(dtype ? dtype : DT_f64);
      return shape_one_hot(x, n, axis, out, c->err);
    case OP_scatter:
      if (!x) return no_rule(c);
      return same_as(c, x);
    default: return no_rule(c);
  }
}

/* Orthogonal factors of m by n: Q and R; U, S and Vh; S alone. */
static bool infer_factors(Infer *c, const ArrayType *x) {
  ArrayType *out = c->out;
  bool full = c->op == OP_linalg_svd && arg_bool(&c->args[1], true);
  if (c->capacity < 3 || !shape_matrix(x, c->err)) return no_rule(c);
  if (c->op == OP_linalg_qr && infer_given(c, 1)) {
    const GraphArg *mode = &c->args[1];
    if (mode->kind != ARG_attr || mode->attr->kind != ATTR_text) return no_rule(c);
    full = mode->attr->count == 8 && memcmp(mode->attr->text, "complete", 8) == 0;
    if (!full && (mode->attr->count != 7 || memcmp(mode->attr->text, "reduced", 7) != 0)) return no_rule(c);
  }
  u32 rows = x->rank - 2u, cols = x->rank - 1u;
  Dim m = x->dims[rows], n = x->dims[cols], least = size_min(&c->g->sizes, m, n);
  if (least == DIM_NONE) return no_rule(c);
  same_as(c, x);
  if (!result_dtype(c, &x, 1)) return false;
  if (c->op == OP_linalg_svdvals) {
    out->rank--;
    out->dims[rows] = least;
    return true;
  }
  out[1] = out[2] = out[0];
  out[0].dims[cols] = full ? m : least; /* Q, U */
  if (c->op == OP_linalg_qr) {
    out[1].dims[rows] = full ? m : least;
    c->count = 2;
    return true;
  }
  out[1].rank--;
  out[1].dims[rows] = least;
  out[2].dims[rows] = full ? n : least;
  c->count = 3;
  return true;
}

static bool infer_linalg(Infer *c) {
  const ArrayType **xs;
  ArrayType *out = c->out;
  u32 n;
  if (!array_args(c, &xs, &n)) return false;
  const ArrayType *x = xs[0], *y = n > 1 ? xs[1] : NULL;
  i64 axis;
  switch (c->op) {
    case OP_matmul:
      if (!y || !shape_matmul(c->dims, x, y, out, c->err)) return y ? false : no_rule(c);
      break;
    case OP_dot:
      if (!y || !shape_dot(c->dims, x, y, out, c->err)) return y ? false : no_rule(c);
      break;
    case OP_vecdot:
      if (!y || !int_of_arg(c, 2, -1, &axis)) return no_rule(c);
      if (!shape_vecdot(c->dims, x, y, axis, out, c->err)) return false;
      break;
    case OP_outer:
      if (!y || x->rank != 1 || y->rank != 1) return no_rule(c);
      out->rank = 2;
      out->dims[0] = x->dims[0];
      out->dims[1] = y->dims[0];
      break;
    case OP_tensordot: {
      i64 k;
      i64 xl[TYPE_MAX_RANK], yl[TYPE_MAX_RANK];
      u32 xa[TYPE_MAX_RANK], ya[TYPE_MAX_RANK];
      if (!y || !int_of_arg(c, 2, 2, &k) || k < 0 || k > x->rank || k > y->rank) return no_rule(c);
      for (u32 i = 0; i < (u32)k; i++) {
        xl[i] = x->rank - k + i;
        yl[i] = i;
      }
      if (!shape_tensordot(c->dims, x, y, (u32)k, xl, yl, xa, ya, out, c->err)) return false;
      break;
    }
    case OP_einsum: {
      EinsumPlan plan;
      const GraphArg *spec = &c->args[0];
      if (spec->kind != ARG_attr || spec->attr->kind != ATTR_text) return no_rule(c);
      if (!shape_einsum(c->dims, spec->attr->text, spec->attr->count, n, xs, &plan, out, c->err)) return false;
      break;
    }
    case OP_linalg_diagonal:
      if (!int_of_arg(c, 1, 0, &axis) || !shape_diagonal(c->dims, x, axis, out, c->err)) return no_rule(c);
      break;
    case OP_linalg_kron:
      if (!y || x->rank > TYPE_MAX_RANK / 2 || y->rank > TYPE_MAX_RANK / 2) return no_rule(c);
      if (!shape_kron(c->dims, x, y, out, c->err)) return false;
      break;
    case OP_linalg_cross:
      if (!y || !int_of_arg(c, 2, -1, &axis)) return no_rule(c);
      if (!shape_cross(c->dims, x, y, axis, out, c->err)) return false;
      break;
    case OP_linalg_solve:
      if (!y || !shape_solve(c->dims, x, y, out, c->err)) return y ? false : no_rule(c);
      break;
    case OP_linalg_matrix_power:
    case OP_linalg_inv:
    case OP_linalg_cholesky: /* a negative power of integers is of floats */
      if (c->op == OP_linalg_matrix_power &&
          (!int_of_arg(c, 1, 0, &axis) || (axis < 0 && dtype_kind(x->dtype) < DK_FLOAT)))
        return no_rule(c);
      if (!shape_square(c->dims, x, c->err)) return false;
      memcpy(out->dims, x->dims, sizeof out->dims);
      out->rank = x->rank;
      break;
    case OP_linalg_eigvalsh:
    case OP_linalg_det:
      if (!shape_square(c->dims, x, c->err)) return false;
      memcpy(out->dims, x->dims, sizeof out->dims);
      out->rank = (u8)(x->rank - (c->op == OP_linalg_det ? 2 : 1));
      break;
    case OP_linalg_slogdet:
    case OP_linalg_eigh:
      if (c->capacity < 2 || !shape_square(c->dims, x, c->err)) return c->capacity < 2 ? no_rule(c) : false;
      memcpy(out->dims, x->dims, sizeof out->dims);
      out->rank = (u8)(x->rank - (c->op == OP_linalg_eigh ? 1 : 2));
      if (!result_dtype(c, xs, n)) return false;
      out[1] = out[0];
      if (c->op == OP_linalg_eigh) out[1].rank = x->rank;
      c->count = 2;
      return true;
    case OP_linalg_svdvals:
    case OP_linalg_svd:
    case OP_linalg_qr: return infer_factors(c, x);
    case OP_linalg_lstsq:
      if (!y || x->rank != 2 || y->rank < 1 || y->rank > 2 || !dim_equal(c->dims, x->dims[0], y->dims[0]))
        return no_rule(c);
      *out = *y;
      out->dims[0] = x->dims[1];
      break;
    case OP_linalg_pinv:
    case OP_linalg_matrix_norm:
      if (!shape_matrix(x, c->err)) return false;
      *out = *x;
      out->rank = (u8)(x->rank - (c->op == OP_linalg_pinv ? 0 : 2));
      if (c->op == OP_linalg_pinv) out->dims[x->rank - 2] = x->dims[x->rank - 1];
      if (c->op == OP_linalg_pinv) out->dims[x->rank - 1] = x->dims[x->rank - 2];
      break;
    default: return no_rule(c);
  }
  if (!result_dtype(c, xs, n)) return false;
  out->weak = false;
  return true;
}

static bool infer_random(Infer *c) {
  const ArrayType *x = type_arg(c, 1);
  u32 dtype, p;
  switch (c->op) {
    case OP_random_key:
    case OP_random_fold_in:
    case OP_random_stream:
      c->out->dtype = DT_i64;
      c->out->rank = 1;
      c->out->dims[0] = 2;
      return true;
    case OP_random_split:
      c->out->dtype = DT_i64;
      c->out->rank = 2;
      c->out->dims[1] = 2;
      return dim_of_arg(c, 1, 2, &c->out->dims[0]) || no_rule(c);
    case OP_random_uniform:
    case OP_random_normal:
    case OP_random_exponential:
    case OP_random_randint:
      p = op_param(c->op, "dtype");
      dtype = p == UINT32_MAX ? DT_NONE : arg_dtype(&c->args[p]);
      return new_shape(c, op_param(c->op, "shape"), dtype ? dtype : c->op == OP_random_randint ? DT_i64 : DT_f64);
    case OP_random_bernoulli: return new_shape(c, op_param(c->op, "shape"), DT_bool);
    case OP_random_permutation:
      if (x && x->rank) return same_as(c, x);
      c->out->dtype = DT_i64;
      c->out->rank = 1;
      return (dim_of_arg(c, 1, DIM_NONE, c->out->dims) && c->out->dims[0] != DIM_NONE) || no_rule(c);
    default: return no_rule(c);
  }
}

static bool infer(Infer *c) {
  const ArrayType *x = type_arg(c, 0);
  i64 n, axis;
  switch (c->op) {
    case OP_nn_softmax:
    case OP_nn_log_softmax:
      if (!x) return no_rule(c);
      same_as(c, x);
      return result_dtype(c, &x, 1);
    case OP_nn_layer_norm: { /* x as a float, promoted with scale and bias */
      if (!x) return no_rule(c);
      same_as(c, x);
      if (!result_dtype(c, &x, 1)) return false;
      for (u32 i = 1; i < 3; i++) {
        const ArrayType *t = type_arg(c, i);
        bool weak = false;
        if (t) c->out->dtype = (u8)dtype_promote_weak(c->out->dtype, c->out->weak, t->dtype, t->weak, &weak);
      }
      return true;
    }
    case OP_nn_cross_entropy: { /* the labels stand one to a row of x */
      const ArrayType *labels = type_arg(c, 1);
      ArrayType column, taken;
      if (!x || !labels || labels->rank == TYPE_MAX_RANK) return no_rule(c);
      column = *labels;
      column.dims[column.rank++] = 1;
      if (!shape_take_along_axis(c->dims, x, &column, -1, &taken, c->err)) return false;
      c->out->device = x->device;
      return result_dtype(c, &x, 1);
    }
    case OP_stop_gradient:
      if (!x) return no_rule(c);
      *c->out = *x;
      return true;
    case OP_quantile:
    case OP_norm:
      if (c->op == OP_quantile && (!type_arg(c, 1) || type_arg(c, 1)->rank)) return no_rule(c);
      return infer_reduce(c);
    case OP_diff:
      if (!x || !int_of_arg(c, 1, 1, &n) || !int_of_arg(c, 2, -1, &axis)) return no_rule(c);
      c->out->device = x->device;
      return shape_diff(c->dims, x, n, axis, c->out, c->err) && result_dtype(c, &x, 1);
    case OP_concat:
    case OP_stack: return infer_list_of_arrays(c);
    default: break;
  }
  switch ((OpFamily)op_info(c->op)->family) {
    case FAM_elementwise: return infer_elementwise(c);
    case FAM_reduce: return infer_reduce(c);
    case FAM_scan: return x ? infer_scan(c, x) : no_rule(c);
    case FAM_view: return x ? infer_view(c, x) : no_rule(c);
    case FAM_make: return infer_make(c);
    case FAM_index:
    case FAM_sort: return infer_select(c);
    case FAM_linalg: return infer_linalg(c);
    case FAM_random: return infer_random(c);
    default: return no_rule(c);
  }
}

void graph_infer_anew(Graph *g) { memset(g->inferred, 0, sizeof g->inferred); }

/* Where the result for operands of these types is noted. */
static Inferred *inferred_at(Graph *g, u32 op, const ValueId *operands, u32 count, Inferred *key) {
  *key = (Inferred){.op = (u16)op, .count = (u8)count};
  u32 hash = op;
  for (u32 i = 0; i < count; i++) hash = hash * 31 + (key->types[i] = g->values.data[operands[i]].type);
  return &g->inferred[hash * 0x9E3779B1u / (UINT32_MAX / INFERRED_PLACES + 1)];
}

static bool is_same(const Inferred *a, const Inferred *b) {
  return a->op == b->op && a->count == b->count && memcmp(a->types, b->types, sizeof a->types) == 0;
}

/* Notes it if sizes were not compared for it: nothing was assumed on the way. */
static void note_inferred(Graph *g, Inferred *to, Inferred key, const ArrayType *result) {
  key.shaped = key.count;
  for (u32 i = 0; i < key.count; i++) {
    const ArrayType *t = type_of(g, key.types[i]);
    if (!t->rank) continue;
    if (t->rank != result->rank || memcmp(t->dims, result->dims, sizeof *t->dims * t->rank) != 0) return;
    key.shaped = (u8)i;
  }
  if (key.shaped == key.count && result->rank) return;
  key.dtype = result->dtype;
  key.device = result->device;
  key.weak = result->weak;
  *to = key;
}

/* Known sizes that no array has: nobody may read it, but to make it is an error. */
static bool never_fits(Graph *g, const ArrayType *t) {
  i64 dims[TYPE_MAX_RANK];
  for (u32 d = 0; d < t->rank; d++)
    if (t->dims[d] == DIM_FRESH || !size_is_const(&g->sizes, t->dims[d], &dims[d])) return false;
  return dims_size(t->rank, dims) < 0;
}

bool graph_infer(Graph *g, DimCtx *dims, u32 op, const ValueId *operands, u32 count, const GraphAttr *attrs, u32 nattrs,
                 ArrayType *results, u32 *nresults, RuleError *err) {
  RuleError own;
  Infer c;
  c.g = g;
  c.dims = dims;
  c.op = op;
  c.out = results;
  c.capacity = *nresults;
  c.count = 1;
  c.err = err ? err : &own;
  c.more = NULL;
  if (*nresults == 0) return false;
  c.err->text[0] = 0;
  Inferred key, *seen = !op || nattrs || count > INFERRED_OPERANDS ? NULL : inferred_at(g, op, operands, count, &key);
  if (seen && is_same(seen, &key)) {
    if (seen->shaped < count) *results = *type_of(g, key.types[seen->shaped]);
    else *results = (ArrayType){0};
    results->dtype = seen->dtype;
    results->device = seen->device;
    results->weak = seen->weak;
    *nresults = 1;
    return true;
  }
  *results = (ArrayType){0}; /* others are written as a whole */
  bind_args(op, operands, count, attrs, nattrs, c.args);
  if (!graph_args_fit(g, dims, op, c.args)) return no_rule(&c);
  bool inferred = infer(&c);
  mem_free(g->alloc, c.more, sizeof *c.more * c.nmore);
  if (!inferred) return false;
  for (u32 i = 0; i < c.count; i++)
    if (results[i].rank == 0) results[i].device = 0; /* numbers live with the processor */
  for (u32 i = 0; i < c.count; i++)
    for (u32 d = 0; d < results[i].rank; d++)
      if (results[i].dims[d] == DIM_NONE) return fail(&c, EK_unsupported, "a size expression got too large");
  for (u32 i = 0; i < c.count; i++)
    if (never_fits(g, &results[i])) return fail(&c, EK_value, "an array has fewer than 2 ** 62 elements");
  *nresults = c.count;
  if (seen && op_info(op)->family == FAM_elementwise && c.count == 1) note_inferred(g, seen, key, results);
  return true;
}

/* ---- indexing -------------------------------------------------------------------------------------- */

/* A slice's length from an axis of size n: NumPy's clamping. Parts are known or symbolic; the step is known. */
static bool slice_length(Graph *g, const IndexItem *it, Dim n, Dim *out) {
  SizePool *p = &g->sizes;
  i64 step = 1;
  if (it->part[2] == PART_dim && !size_is_const(p, it->at[2], &step)) return false;
  if (it->part[2] == PART_operand || step == 0 || step == INT64_MIN) return false;
  if (it->part[0] == PART_operand || it->part[1] == PART_operand) return false;
  Dim ends[2];
  for (u32 i = 0; i < 2; i++) {
    /* the default, or the part with negative ones counted from the end, then clamped to 0 … n (-1 … n-1 backwards) */
    Dim least = step > 0 ? 0 : size_const(p, -1), most = step > 0 ? n : size_sub(p, n, 1);
    if (it->part[i] == PART_none) {
      ends[i] = (i == 0) == (step > 0) ? least : most;
      continue;
    }
    Dim d = it->at[i];
    SizeTruth negative = size_prove(p, REL_lt, d, 0);
    if (negative == TRUTH_unknown) return false;
    if (negative == TRUTH_always) d = size_add(p, d, n);
    ends[i] = size_min(p, size_max(p, d, least), most);
  }
  Dim span = step > 0 ? size_sub(p, ends[1], ends[0]) : size_sub(p, ends[0], ends[1]);
  *out = size_max(p, size_ceildiv(p, span, step > 0 ? step : -step), 0);
  return *out != DIM_NONE;
}

bool graph_infer_index(Graph *g, DimCtx *dims, ValueId x, const ValueId *operands, u32 count, const IndexItem *items,
                       u32 nitems, ArrayType *result, RuleError *err) {
  RuleError own;
  Infer c = {.g = g, .dims = dims, .op = OP_none, .out = result, .err = err ? err : &own};
  ArrayType from = *value_type(g, x);
  const ArrayType *arrays[TYPE_MAX_RANK];
  ArrayType joint;
  u32 used = 0, narrays = 0, first = UINT32_MAX, last = 0, n = 0;
  bool apart = false, ellipsis = false;
  Dim out[TYPE_MAX_RANK + 1];
  for (u32 i = 0; i < nitems; i++) {
    if (items[i].kind == INDEX_mask) return fail(&c, EK_unsupported, "the length is known only at run time");
    used += items[i].kind == INDEX_int || items[i].kind == INDEX_slice || items[i].kind == INDEX_array;
    if (items[i].kind == INDEX_ellipsis && ellipsis) return fail(&c, EK_index, "an index holds … twice");
    ellipsis |= items[i].kind == INDEX_ellipsis;
  }
  if (used > from.rank) return fail(&c, EK_index, "too many indices");
  u32 axis = 0;
  bool advanced = false;
  for (u32 i = 0; i < nitems; i++) advanced |= items[i].kind == INDEX_array;
  for (u32 i = 0; i < nitems; i++) {
    const IndexItem *it = &items[i];
    if (n > TYPE_MAX_RANK) return fail(&c, EK_shape, "the rank of the result is too large");
    switch (it->kind) {
      case INDEX_int:
      case INDEX_array:
        if (it->kind == INDEX_array || advanced) { /* an integer beside arrays takes part in their broadcasting */
          static const ArrayType scalar = {.dtype = DT_i64};
          if (it->kind == INDEX_array && (it->at[0] < 1 || it->at[0] > count)) return no_rule(&c);
          arrays[narrays++] = it->kind == INDEX_array ? value_type(g, operands[it->at[0] - 1]) : &scalar;
          if (first == UINT32_MAX) first = n;
          else apart |= last != i;
          last = i + 1;
        }
        axis++;
        break;
      case INDEX_slice:
        if (!slice_length(g, it, from.dims[axis], &out[n]))
          return fail(&c, EK_unsupported, "the length is known only at run time");
        n++;
        axis++;
        break;
      case INDEX_newaxis: out[n++] = 1; break;
      default:
        for (u32 left = from.rank - used; left > 0 && n <= TYPE_MAX_RANK; left--) out[n++] = from.dims[axis++];
        break;
    }
  }
  if (!ellipsis)
    while (axis < from.rank && n <= TYPE_MAX_RANK) out[n++] = from.dims[axis++];
  u32 rank = 0;
  if (narrays) {
    if (!rule_broadcast(dims, narrays, arrays, &joint, c.err)) return false;
    u32 at = apart ? 0 : first;
    if (n + joint.rank > TYPE_MAX_RANK) return fail(&c, EK_shape, "the rank of the result is too large");
    memmove(out + at + joint.rank, out + at, sizeof *out * (n - at));
    memcpy(out + at, joint.dims, sizeof *out * joint.rank);
    rank = joint.rank;
  }
  rank += n;
  if (rank > TYPE_MAX_RANK) return fail(&c, EK_shape, "the rank of the result is too large");
  *result = (ArrayType){.dtype = from.dtype, .rank = (u8)rank, .device = rank ? from.device : 0};
  memcpy(result->dims, out, sizeof *out * rank);
  return true;
}
