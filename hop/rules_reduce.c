/* rules_reduce.c — derivative rules of reductions, running sums, softmax and its kin, and of linear algebra. */
#include "hop/rules.h"

#include <math.h>
#include <string.h>

/* ---- reductions --------------------------------------------------------------------------------------------- */

/* A reduction's result or cotangent with the reduced axes as sizes of 1. */
static Dv kept(Deriv *d, Dv v, const ArrayType *x, u32 mask) {
  ArrayType t = {0};
  rule_reduce(x, mask, true, &t);
  return dv_reshape(d, v, t.rank, t.dims);
}

static Dv count_over(Deriv *d, const ArrayType *x, u32 mask) {
  Dim n = 1;
  for (u32 i = 0; i < x->rank; i++)
    if (mask >> i & 1) n = d->to->dim(d, '*', n, x->dims[i]);
  return d->failed ? 0 : d->to->size(d, n);
}

Dv dv_share_ties(Deriv *d, Dv x, Dv y, Dv g, u32 mask) {
  ArrayType t = dv_type(d, x);
  Dv hit = dv2(d, OP_equal, x, y);
  GraphAttr dtype = attr_dtype(1, t.dtype);
  Dv ties = dv_reduce(d, OP_sum, dv_op(d, OP_astype, &hit, 1, &dtype, 1), mask, true);
  return dv3(d, OP_where, hit, DIV(g, ties), NUM(0));
}

static Dv pull_norm(Deriv *d, const DerivNode *n, Dv x, Dv y, Dv g, u32 mask, bool *known) {
  f64 ord = 2;
  const GraphArg *a = &n->args[1];
  if (a->kind == ARG_attr && a->attr->kind == ATTR_float) ord = a->attr->f;
  else if (a->kind == ARG_attr && a->attr->kind == ATTR_int) ord = (f64)a->attr->i;
  else if (a->kind != ARG_hole && !(a->kind == ARG_attr && a->attr->kind == ATTR_nil)) *known = false;
  if (!*known || ord == 0) {
    *known = false;
    return 0;
  }
  if (ord == 2) return DIV(MUL(g, dv_conj(d, x)), y);
  Dv sign = dv_slope_of_abs(d, x), size = dv1(d, OP_abs, x);
  if (ord == 1) return MUL(g, sign);
  if (isinf(ord)) return MUL(dv_share_ties(d, size, y, g, mask), sign);
  return MUL(MUL(g, sign), dv2(d, OP_power, DIV(size, y), NUM(ord - 1)));
}

bool rules_number(Deriv *d, const GraphArg *a, f64 fallback, f64 *out) {
  *out = fallback;
  if (a->kind == ARG_hole) return true;
  if (a->kind == ARG_value) return d->to->known(d, a->value, out);
  if (a->kind != ARG_attr) return false;
  if (a->attr->kind == ATTR_float) *out = a->attr->f;
  else if (a->attr->kind == ATTR_int) *out = (f64)a->attr->i;
  else return a->attr->kind == ATTR_nil;
  return true;
}

/* var: 2 (x - mean) / (n - correction) */
static Dv pull_var(Deriv *d, const DerivNode *n, Dv x, const ArrayType *t, Dv g, u32 mask, bool *known) {
  f64 correction;
  if (!rules_number(d, &n->args[2], 0, &correction)) {
    *known = false;
    return 0;
  }
  Dv count = count_over(d, t, mask);
  Dv mean = DIV(dv_reduce(d, OP_sum, x, mask, true), count);
  Dv left = correction != 0 ? SUB(count, NUM(correction)) : count;
  return MUL(MUL(g, NUM(2)), DIV(dv_conj(d, SUB(x, mean)), left)); /* of complex numbers |x - mean|**2 */
}

/* Of logsumexp: g / sum(e) e, e = exp(x - m), m = max(x) where that is finite, else 0. These are the terms of its
 * formula (stdlib/array/compose.c), which compiled code has at hand: no exponential is computed twice. */
static Dv pull_logsumexp(Deriv *d, Dv x, Dv g, u32 mask) {
  x = dv_convert(d, x, dtype_compute(dv_type(d, x).dtype));
  Dv top = x ? d->to->top(d, x, mask) : 0;
  Dv m = dv1(d, OP_stop_gradient, dv3(d, OP_where, dv1(d, OP_isfinite, top), top, NUM(0)));
  Dv e = dv1(d, OP_exp, SUB(x, m));
  return MUL(e, DIV(g, dv_reduce(d, OP_sum, e, mask, true)));
}

static bool reduction(Deriv *d, const DerivNode *n, Dv g, Dv *out) {
  Dv x = n->operands[0], y = n->results[0];
  ArrayType t = dv_type(d, x);
  u32 mask, axis = op_param(n->op, "axis");
  bool known = true;
  if (!arg_axes(&n->args[axis], t.rank, &mask)) return false;
  g = kept(d, g, &t, mask);
  y = kept(d, y, &t, mask);
  switch (n->op) {
    case OP_sum: break;
    case OP_mean: g = DIV(g, count_over(d, &t, mask)); break;
    case OP_min:
    case OP_max: g = dv_share_ties(d, x, y, g, mask); break;
    case OP_var: g = pull_var(d, n, x, &t, g, mask, &known); break;
    case OP_std: g = pull_var(d, n, x, &t, DIV(g, MUL(y, NUM(2))), mask, &known); break;
    case OP_norm: g = pull_norm(d, n, x, y, g, mask, &known); break;
    default: g = pull_logsumexp(d, x, g, mask); break;
  }
  if (!known || d->failed) return false;
  out[0] = dv_stretch(d, g, t.rank, t.dims);
  return true;
}

RULE(sum, nothing, reduction(d, n, g, out))
RULE(reduction, all, reduction(d, n, g, out))

/* ---- running sums and differences ----------------------------------------------------------------------------- */

static Dv running(Deriv *d, u32 op, Dv x, u32 axis, bool reverse) {
  GraphAttr attrs[2] = {attr_int(1, axis), attr_bool(2, reverse)};
  return dv_op(d, op, &x, 1, attrs, 2);
}

/* The adjoint of a difference is minus the difference with zeros around. */
static bool pull_diff(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g, Dv *out) {
  i64 times, axis;
  u32 at;
  RuleError err;
  if (!arg_int(&n->args[1], 1, &times) || !arg_int(&n->args[2], -1, &axis) || !rule_axis(axis, t->rank, &at, &err))
    return false;
  for (i64 k = 0; k < times; k++) {
    i64 widths[2 * TYPE_MAX_RANK] = {0};
    widths[2 * at] = widths[2 * at + 1] = 1;
    GraphAttr pad = {.kind = ATTR_ints, .param = 1, .pairs = 1, .count = 2u * t->rank, .ints = widths};
    GraphAttr by[2] = {attr_int(1, 1), attr_int(2, at)};
    Dv padded = dv_op(d, OP_pad, &g, 1, &pad, 1);
    g = NEG(dv_op(d, OP_diff, &padded, 1, by, 2));
  }
  out[0] = g;
  return true;
}

static bool pull_cumsum(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g, Dv *out) {
  bool flat = n->args[1].kind != ARG_attr || n->args[1].attr->kind == ATTR_nil;
  i64 axis = 0;
  u32 at = 0;
  RuleError err;
  if (!flat && (!arg_int(&n->args[1], 0, &axis) || !rule_axis(axis, t->rank, &at, &err))) return false;
  bool reverse = arg_bool(&n->args[2], false);
  g = running(d, OP_cumsum, g, at, !reverse);
  if (arg_bool(&n->args[3], false)) { /* the sum of nothing, first or last, is constant */
    Dim size = dv_type(d, g).dims[at];
    if (d->failed) return false;
    g = reverse ? d->to->part(d, g, at, 0, d->to->dim(d, '-', size, 1)) : d->to->part(d, g, at, 1, size);
  }
  out[0] = dv_reshape(d, g, t->rank, t->dims);
  return true;
}

RULE(cumsum, nothing, pull_cumsum(d, n, t, g, out))
RULE(diff, nothing, pull_diff(d, n, t, g, out))

/* ---- softmax, normalisation, cross entropy ----------------------------------------------------------------------- */

/* The one axis of a setting, the last one by default. */
static bool axis_mask(const GraphArg *a, const ArrayType *t, u32 *mask) {
  *mask = t->rank ? 1u << (t->rank - 1) : 0;
  return a->kind == ARG_hole || arg_axes(a, t->rank, mask);
}

static bool pull_softmax(Deriv *d, const DerivNode *n, const ArrayType *t, Dv y, Dv g, Dv *out) {
  u32 mask;
  if (!axis_mask(&n->args[1], t, &mask)) return false;
  if (n->op == OP_nn_softmax) out[0] = MUL(SUB(g, dv_reduce(d, OP_sum, MUL(g, y), mask, true)), y);
  else out[0] = SUB(g, MUL(dv1(d, OP_exp, y), dv_reduce(d, OP_sum, g, mask, true)));
  return true;
}

static bool pull_layer_norm(Deriv *d, const DerivNode *n, Dv x, const ArrayType *t, Dv g, const bool *wants, Dv *out) {
  f64 eps = 0;
  u32 mask, at = 1;
  bool computed = n->args[4].kind == ARG_value;
  if (!axis_mask(&n->args[3], t, &mask) || (!computed && !rules_number(d, &n->args[4], 1e-5, &eps))) return false;
  Dv count = count_over(d, t, mask);
  Dv from = SUB(x, DIV(dv_reduce(d, OP_sum, x, mask, true), count));
  Dv var = DIV(dv_reduce(d, OP_sum, MUL(from, from), mask, true), count);
  Dv scale = DIV(NUM(1), dv1(d, OP_sqrt, ADD(var, computed ? n->args[4].value : NUM(eps))));
  Dv unit = MUL(from, scale), gx = g;
  if (n->args[1].kind == ARG_value) {
    if (wants[at]) out[at] = MUL(g, unit);
    gx = MUL(g, n->args[1].value);
    at++;
  }
  if (n->args[2].kind == ARG_value) {
    if (wants[at]) out[at] = g;
    at++;
  }
  if (computed && wants[at])
    out[at] = dv_reduce(d, OP_sum, MUL(MUL(gx, unit), MUL(MUL(scale, scale), NUM(-0.5))), (1u << t->rank) - 1, false);
  if (!wants[0]) return true;
  Dv mean = DIV(dv_reduce(d, OP_sum, gx, mask, true), count);
  Dv along = DIV(dv_reduce(d, OP_sum, MUL(gx, unit), mask, true), count);
  out[0] = MUL(SUB(SUB(gx, mean), MUL(unit, along)), scale);
  return true;
}

/* (softmax(x) - one_hot(labels)) / the number of labels */
static bool pull_cross_entropy(Deriv *d, const DerivNode *n, Dv x, const ArrayType *t, Dv g, Dv *out) {
  if (!t->rank || n->count != 2) return false;
  Dv labels = n->operands[1];
  ArrayType l = dv_type(d, labels);
  Dv count = count_over(d, &l, l.rank ? (1u << l.rank) - 1 : 0);
  GraphAttr axis = attr_int(1, -1), hot[2] = {attr_dim(1, t->dims[t->rank - 1]), attr_dtype(2, t->dtype)};
  Dv p = dv_op(d, OP_nn_softmax, &x, 1, &axis, 1);
  out[0] = MUL(SUB(p, dv_op(d, OP_one_hot, &labels, 1, hot, 2)), DIV(g, count));
  return true;
}

RULE(nn_softmax, result, pull_softmax(d, n, t, y, g, out))
RULE(nn_layer_norm, all, pull_layer_norm(d, n, x, t, g, wants, out))
RULE(nn_cross_entropy, all, pull_cross_entropy(d, n, x, t, g, out))

/* ---- products of matrices and vectors -------------------------------------------------------- */

Dv dv_turned(Deriv *d, Dv x) {
  ArrayType t = dv_type(d, x);
  u32 perm[TYPE_MAX_RANK];
  if (d->failed) return 0;
  for (u32 i = 0; i < t.rank; i++) perm[i] = i;
  perm[t.rank - 1] = t.rank - 2u;
  perm[t.rank - 2] = t.rank - 1u;
  return dv_permute(d, x, perm);
}

Dv dv_widened(Deriv *d, Dv v, u32 at) {
  ArrayType t = dv_type(d, v);
  if (d->failed || !v) return 0;
  memmove(t.dims + at + 1, t.dims + at, sizeof t.dims[0] * (t.rank - at));
  t.dims[at] = 1;
  return dv_reshape(d, v, t.rank + 1u, t.dims);
}

/* A stack of matrices as one of all their rows. */
static Dv all_rows(Deriv *d, Dv x) {
  ArrayType t = dv_type(d, x);
  Dim dims[2] = {1, t.rank ? t.dims[t.rank - 1] : 1};
  for (u32 i = 0; i + 1u < t.rank; i++) dims[0] = d->to->dim(d, '*', dims[0], t.dims[i]);
  return t.rank == 2 ? x : dv_reshape(d, x, 2, dims);
}

bool dv_pull_matmul(Deriv *d, Dv x, Dv y, Dv g, const bool *wants, Dv *out) {
  ArrayType tx = dv_type(d, x), ty = dv_type(d, y), t;
  u32 rank = dv_type(d, g).rank;
  if (tx.rank == 0 || ty.rank == 0) return false;
  if (ty.rank == 1) g = dv_widened(d, g, rank++);
  if (tx.rank == 1) g = dv_widened(d, g, rank - 1);
  Dv mx = tx.rank == 1 ? dv_widened(d, x, 0) : x, my = ty.rank == 1 ? dv_widened(d, y, 1) : y;
  if (wants[0]) {
    t = dv_type(d, mx);
    out[0] = dv_reshape(d, deriv_fit(d, dv2(d, OP_matmul, g, dv_turned(d, my)), &t), tx.rank, tx.dims);
  }
  if (wants[1]) {
    t = dv_type(d, my);
    /* one matrix for a stack: the sum over the stack is part of the product */
    if (t.rank == 2 && tx.rank > 2) {
      mx = all_rows(d, mx);
      g = all_rows(d, g);
    }
    out[1] = dv_reshape(d, deriv_fit(d, dv2(d, OP_matmul, dv_turned(d, mx), g), &t), ty.rank, ty.dims);
  }
  return true;
}

/* All elements in a row, as outer takes its operands. */
static Dv in_a_row(Deriv *d, Dv x, const ArrayType *t) {
  Dim size = 1;
  for (u32 i = 0; i < t->rank; i++) size = d->to->dim(d, '*', size, t->dims[i]);
  return t->rank == 1 ? x : dv_reshape(d, x, 1, &size);
}

static bool pull_outer(Deriv *d, Dv x, Dv y, Dv g, const bool *wants, Dv *out) {
  ArrayType tx = dv_type(d, x), ty = dv_type(d, y);
  if (wants[0]) out[0] = dv_reshape(d, dv2(d, OP_matmul, g, in_a_row(d, y, &ty)), tx.rank, tx.dims);
  if (wants[1]) out[1] = dv_reshape(d, dv2(d, OP_matmul, in_a_row(d, x, &tx), g), ty.rank, ty.dims);
  return true;
}

static bool pull_vecdot(Deriv *d, const DerivNode *n, Dv x, Dv y, Dv g, const bool *wants, Dv *out) {
  ArrayType tx = dv_type(d, x), ty = dv_type(d, y);
  /* the contracted axis counts from the end, so that leading axes may broadcast */
  u32 at, rank = tx.rank > ty.rank ? tx.rank : ty.rank;
  i64 axis;
  RuleError err;
  if (!arg_int(&n->args[2], -1, &axis)) return false;
  if (axis >= 0 && tx.rank != ty.rank) return false;
  if (!rule_axis(axis, rank, &at, &err)) return false;
  g = dv_widened(d, g, at);
  if (wants[0]) out[0] = dv_conj(d, MUL(g, y)); /* x is conjugated in the product */
  if (wants[1]) out[1] = MUL(g, dv_conj(d, x));
  return true;
}

RULE(matmul, others, n->count == 2 && dv_pull_matmul(d, x, b, g, wants, out))
RULE(outer, others, n->count == 2 && pull_outer(d, x, b, g, wants, out))
RULE(vecdot, others, n->count == 2 && pull_vecdot(d, n, x, b, g, wants, out))
