/* graph_rules_select.c — shape rules: elements chosen by indices, order, counts; random numbers (see graph_infer.h). */
#include "tracer/graph/graph_infer.h"

/* ---- by indices ---------------------------------------------------------------------------------------------- */

bool infer_take(Infer *c) {
  const ArrayType *x = inf_type(c, 0), *at = inf_type(c, 1);
  bool flat;
  i64 axis;
  if (!x || !at || !inf_axis(c, 2, INT64_MIN, &flat, &axis)) return inf_no_rule(c);
  inf_same(c, x);
  return shape_take(c->dims, x, at, flat, axis, c->out, c->err);
}

bool infer_take_along_axis(Infer *c) {
  const ArrayType *x = inf_type(c, 0), *at = inf_type(c, 1);
  bool flat;
  i64 axis;
  if (!x || !at || !inf_axis(c, 2, -1, &flat, &axis)) return inf_no_rule(c);
  inf_same(c, x);
  return shape_take_along_axis(c->dims, x, at, axis, c->out, c->err);
}

bool infer_compress(Infer *c) {
  const ArrayType *x = inf_type(c, 0), *mask = inf_type(c, 1);
  bool flat;
  i64 axis;
  Dim n;
  if (!x || !mask || mask->dtype != DT_bool || mask->rank != 1 || !inf_axis(c, 2, 0, &flat, &axis))
    return inf_no_rule(c);
  /* the recorder makes an index of it */
  if (!inf_given(c, 3)) return inf_fail(c, EK_unsupported, "the length is known only at run time");
  if (!inf_dim(c, 3, 0, &n)) return inf_no_rule(c);
  inf_same(c, x);
  return shape_resize_axis(x, axis, n, c->out, c->err);
}

/* One array of positions for each axis. */
bool infer_nonzero(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  if (!x || x->rank == 0 || x->rank > c->capacity) return inf_no_rule(c);
  for (u32 d = 0; d < x->rank; d++)
    c->out[d] = (ArrayType){.dtype = DT_i64, .rank = 1, .device = x->device, .dims = {DIM_FRESH}};
  c->count = x->rank;
  return true;
}

bool infer_one_hot(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  u32 dtype = arg_dtype(&c->args[2]);
  bool flat;
  i64 axis;
  Dim n;
  if (!x || !inf_dim(c, 1, 0, &n) || !inf_axis(c, 3, -1, &flat, &axis)) return inf_no_rule(c);
  inf_same(c, x);
  c->out->dtype = (u8)(dtype ? dtype : DT_f64);
  return shape_one_hot(x, n, axis, c->out, c->err);
}

bool infer_scatter(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  return x ? inf_same(c, x) : inf_no_rule(c);
}

bool infer_isin(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  if (!x || !inf_type(c, 1)) return inf_no_rule(c);
  inf_same(c, x);
  c->out->dtype = DT_bool;
  return true;
}

/* ---- counts -------------------------------------------------------------------------------------------------- */

/* Weights make it a sum. */
bool infer_bincount(Infer *c) {
  const ArrayType *x = inf_type(c, 0), *weights = inf_type(c, 1);
  if (!x || x->rank != 1 || dtype_kind(x->dtype) > DK_INT || (inf_given(c, 1) && (!weights || weights->rank != 1)))
    return inf_no_rule(c);
  *c->out = (ArrayType){.dtype = (u8)(weights ? dtype_float_of(weights->dtype) : DT_i64), .rank = 1,
                        .dims = {DIM_FRESH}};
  return !weights || dim_equal(c->dims, x->dims[0], weights->dims[0]) ||
         inf_fail(c, EK_shape, "the weights have another size");
}

bool infer_histogram(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  ArrayType *out = c->out;
  Dim n;
  const ArrayType *edges = inf_type(c, 1);
  bool ends = c->args[2].kind == ARG_list && c->args[2].count == 2;
  for (u32 i = 0; i < 2 && ends; i++) ends = value_type(c->g, c->args[2].values[i])->rank == 0;
  if (!x || c->capacity < 2 || (inf_given(c, 2) && !ends)) return inf_no_rule(c);
  if (edges && edges->rank == 1) n = size_sub(&c->g->sizes, edges->dims[0], 1);
  else if (!inf_dim(c, 1, 10, &n)) return inf_no_rule(c);
  if (n == DIM_NONE || size_prove(&c->g->sizes, REL_lt, 0, n) != TRUTH_always) return inf_no_rule(c);
  *out = (ArrayType){.dtype = inf_given(c, 3) ? DT_f64 : DT_i64, .rank = 1, .dims = {n}};
  u32 of_edges = x->dtype;
  bool weak = x->weak;
  for (u32 i = 0; i < 2 && ends; i++) {
    const ArrayType *end = value_type(c->g, c->args[2].values[i]);
    of_edges = dtype_promote_weak(of_edges, weak, end->dtype, end->weak, &weak);
  }
  if (edges && edges->rank == 1) of_edges = edges->dtype;
  out[1] = (ArrayType){.dtype = (u8)dtype_float_of(of_edges), .rank = 1, .dims = {size_add(&c->g->sizes, n, 1)}};
  c->count = 2;
  return out[1].dims[0] != DIM_NONE || inf_no_rule(c);
}

/* Values, then what was asked for: positions, the place of each element among them, counts. */
bool infer_unique(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  ArrayType from, *out = c->out;
  bool flat, want[3] = {arg_bool(&c->args[1], false), arg_bool(&c->args[2], false), arg_bool(&c->args[3], false)};
  i64 axis;
  u32 a;
  if (!x || c->capacity < 4 || !inf_axis(c, 4, INT64_MIN, &flat, &axis)) return inf_no_rule(c);
  from = *x;
  if (flat) shape_ravel(c->dims, x, &from);
  if (!rule_axis(axis, from.rank, &a, c->err)) return false;
  Dim n = from.dims[a];
  inf_same(c, x);
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

/* ---- order --------------------------------------------------------------------------------------------------- */

static bool sorted_as(Infer *c, u32 dtype) {
  const ArrayType *x = inf_type(c, 0);
  if (inf_is_list(c, 1) || !inf_axes_fit(c, 1, -1, false) || !x || inf_given(c, 3)) return inf_no_rule(c);
  inf_same(c, x);
  if (dtype) c->out->dtype = (u8)dtype;
  return true;
}

bool infer_sort(Infer *c) { return sorted_as(c, DT_NONE); }
bool infer_argsort(Infer *c) { return sorted_as(c, DT_i64); }

/* Values and positions. No axis, `nil`, is the flat array, which has another rank. */
bool infer_topk(Infer *c) {
  const ArrayType *x = inf_type(c, 0);
  ArrayType *out = c->out;
  bool flat;
  i64 axis;
  Dim n;
  if (inf_is_list(c, 2) || !inf_axes_fit(c, 2, -1, false)) return inf_no_rule(c);
  if (!x || c->capacity < 2 || !inf_dim(c, 1, 0, &n) || !inf_axis(c, 2, -1, &flat, &axis)) return inf_no_rule(c);
  inf_same(c, x);
  if (!shape_resize_axis(x, axis, n, out, c->err)) return false;
  out[1] = out[0];
  out[1].dtype = DT_i64;
  c->count = 2;
  return true;
}

bool infer_searchsorted(Infer *c) {
  static const char *const sides[] = {"left", "right", NULL};
  const ArrayType *edges = inf_type(c, 0), *x = inf_type(c, 1);
  if (!edges || edges->rank != 1 || !x || !inf_is_word(c, 2, sides)) return inf_no_rule(c);
  inf_same(c, x);
  c->out->dtype = DT_i64;
  return true;
}

/* ---- random numbers ------------------------------------------------------------------------------------------ */

static bool one_key(Infer *c, bool fits) {
  if (!fits) return inf_no_rule(c);
  c->out->dtype = DT_i64;
  c->out->rank = 1;
  c->out->dims[0] = 2;
  return true;
}

bool infer_key(Infer *c) { return one_key(c, inf_is_integer(c, 0)); }
bool infer_stream(Infer *c) { return one_key(c, inf_is_integer(c, 0) && inf_is_integer(c, 1)); }

/* What is drawn lies where the key does. */
static void lies_with_key(Infer *c) {
  const ArrayType *key = inf_type(c, 0);
  if (key && key->rank) c->out->device = key->device;
}

bool infer_fold_in(Infer *c) {
  lies_with_key(c);
  return one_key(c, inf_is_key(c) && inf_is_integer(c, 1));
}

bool infer_split_key(Infer *c) {
  lies_with_key(c);
  c->out->dtype = DT_i64;
  c->out->rank = 2;
  c->out->dims[1] = 2;
  return (inf_is_key(c) && inf_dim(c, 1, 2, &c->out->dims[0])) || inf_no_rule(c);
}

static bool drawn(Infer *c, bool fits, u32 dtype) {
  lies_with_key(c);
  return fits ? inf_new(c, op_param(c->op, "shape"), dtype) : inf_no_rule(c);
}

static u32 dtype_asked(const Infer *c, u32 otherwise) {
  u32 p = op_param(c->op, "dtype"), dtype = p == UINT32_MAX ? DT_NONE : arg_dtype(&c->args[p]);
  return dtype ? dtype : otherwise;
}

bool infer_drawn(Infer *c) { return drawn(c, inf_is_key(c), dtype_asked(c, DT_f64)); }
bool infer_randint(Infer *c) { return drawn(c, inf_is_key(c), dtype_asked(c, DT_i64)); }
bool infer_bernoulli(Infer *c) { return drawn(c, inf_is_key(c) && inf_is_number(c, 1), DT_bool); }

bool infer_uniform(Infer *c) {
  return drawn(c, inf_is_key(c) && inf_is_number(c, 2) && inf_is_number(c, 3), dtype_asked(c, DT_f64));
}

bool infer_permutation(Infer *c) {
  const ArrayType *x = inf_type(c, 1);
  if (!inf_is_key(c) || !((x && x->rank) || inf_is_integer(c, 1))) return inf_no_rule(c);
  if (x && x->rank) return inf_same(c, x);
  lies_with_key(c);
  c->out->dtype = DT_i64;
  c->out->rank = 1;
  return (inf_dim(c, 1, DIM_NONE, c->out->dims) && c->out->dims[0] != DIM_NONE) || inf_no_rule(c);
}
