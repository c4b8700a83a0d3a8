/* rules_shape.c — derivative rules of views, joins, selections and the making of arrays. */
#include "hop/rules.h"

#include <math.h>
#include <string.h>

static bool shape_is_given(const GraphArg *a) {
  return a->kind != ARG_hole && !(a->kind == ARG_attr && a->attr->kind == ATTR_nil);
}

/* Integers of a setting; a single one counts as a list of one. */
static bool ints_of(const GraphArg *a, u32 *n, i64 *out) {
  if (a->kind != ARG_attr) return false;
  if (a->attr->kind == ATTR_int) {
    *n = 1;
    out[0] = a->attr->i;
    return true;
  }
  if ((a->attr->kind != ATTR_ints && a->attr->kind != ATTR_dims) || a->attr->count > TYPE_MAX_RANK) return false;
  *n = a->attr->count;
  memcpy(out, a->attr->ints, sizeof *out * *n);
  return true;
}

static bool shape_axis_of(const DerivNode *n, u32 param, i64 fallback, u32 rank, u32 *axis) {
  i64 v;
  RuleError err;
  return arg_int(&n->args[param], fallback, &v) && rule_axis(v, rank, axis, &err);
}

/* ---- views ----------------------------------------------------------------------------------------------------- */

static bool permutation_of(const DerivNode *n, const ArrayType *x, u32 *perm) {
  i64 a[TYPE_MAX_RANK], b[TYPE_MAX_RANK];
  u32 k = x->rank, m;
  RuleError err;
  switch (n->op) {
    case OP_transpose:
    case OP_permute_dims:
      for (u32 i = 0; i < k; i++) a[i] = (i64)(k - 1 - i);
      return (!shape_is_given(&n->args[1]) || ints_of(&n->args[1], &k, a)) &&
             rule_permutation(k, a, x->rank, perm, &err);
    case OP_moveaxis:
      return ints_of(&n->args[1], &k, a) && ints_of(&n->args[2], &m, b) && k == m &&
             rule_moveaxis(k, a, b, x->rank, perm, &err);
    case OP_swapaxes:
      return arg_int(&n->args[1], 0, a) && arg_int(&n->args[2], 0, b) && rule_swapaxes(a[0], b[0], x->rank, perm, &err);
    default: return false;
  }
}

/* The operation itself on g, with the same settings. */
static Dv again(Deriv *d, const DerivNode *n, Dv g) {
  GraphAttr attrs[OP_MAX_PARAMS];
  u32 na = 0;
  for (u32 p = 1; p < OP_MAX_PARAMS; p++)
    if (n->args[p].kind == ARG_attr) attrs[na++] = *n->args[p].attr;
  return dv_op(d, n->op, &g, 1, attrs, na);
}

static bool pull_roll(Deriv *d, const DerivNode *n, Dv g, Dv *out) {
  i64 shift[TYPE_MAX_RANK];
  u32 k;
  if (!ints_of(&n->args[1], &k, shift)) return false;
  for (u32 i = 0; i < k; i++) shift[i] = -shift[i];
  GraphAttr attrs[2];
  u32 na = 1;
  attrs[0] = n->args[1].attr->kind == ATTR_int ? attr_int(1, shift[0])
                                               : (GraphAttr){.kind = ATTR_ints, .param = 1, .count = k, .ints = shift};
  if (n->args[2].kind == ARG_attr) attrs[na++] = *n->args[2].attr;
  out[0] = dv_op(d, OP_roll, &g, 1, attrs, na);
  return true;
}

/* tile: every axis as (repetitions, size), summed over the first. repeat: as (size, repetitions). */
/* repeat by counts of each element: back to where each came from. */
static bool pull_counts(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g, Dv *out) {
  ArrayType from = *t;
  u32 axis;
  if (!shape_is_given(&n->args[2])) {
    Dim size = 1;
    for (u32 i = 0; i < t->rank; i++) size = d->to->dim(d, '*', size, t->dims[i]);
    from.rank = 1;
    from.dims[0] = size;
  }
  if (!shape_axis_of(n, 2, 0, from.rank, &axis)) return false;
  Dv at = dv_positions(d, from.dims[axis], 1, 0);
  if (n->count == 2) at = dv2(d, OP_repeat, at, n->operands[1]);
  else at = dv_op(d, OP_repeat, &at, 1, n->args[1].attr, 1);
  Dv zeros = d->failed ? 0 : d->to->zeros(d, &from);
  out[0] = zeros ? dv_reshape(d, d->to->add_at(d, zeros, axis, at, g), t->rank, t->dims) : 0;
  return !d->failed;
}

static bool pull_copies(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g, Dv *out) {
  i64 reps[TYPE_MAX_RANK];
  Dim dims[2 * TYPE_MAX_RANK];
  u32 k, mask = 0, rank = 0, axis;
  if (n->op == OP_repeat) {
    if (n->count == 2 ||
        (n->args[1].kind == ARG_attr && n->args[1].attr->kind == ATTR_ints && n->args[1].attr->count != 1))
      return pull_counts(d, n, t, g, out);
    if (!ints_of(&n->args[1], &k, reps) || k != 1) return false;
    ArrayType from = *t;
    if (!shape_is_given(&n->args[2])) {
      Dim size = 1;
      for (u32 i = 0; i < t->rank; i++) size = d->to->dim(d, '*', size, t->dims[i]);
      from.rank = 1;
      from.dims[0] = size;
    }
    if (!shape_axis_of(n, 2, 0, from.rank, &axis) || from.rank >= TYPE_MAX_RANK) return false;
    for (u32 i = 0; i < from.rank; i++) {
      dims[rank++] = from.dims[i];
      if (i == axis) {
        mask = 1u << rank;
        dims[rank++] = reps[0];
      }
    }
  } else {
    if (!ints_of(&n->args[1], &k, reps)) return false;
    u32 whole = k > t->rank ? k : t->rank;
    if (2 * whole > TYPE_MAX_RANK) return false;
    for (u32 i = 0; i < whole; i++) {
      mask |= 1u << rank;
      dims[rank++] = i + k >= whole ? reps[i + k - whole] : 1;
      dims[rank++] = i + t->rank >= whole ? t->dims[i + t->rank - whole] : 1;
    }
  }
  g = dv_reduce(d, OP_sum, dv_reshape(d, g, rank, dims), mask, false);
  out[0] = dv_reshape(d, g, t->rank, t->dims);
  return true;
}

static bool pull_pad(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g, const bool *wants, Dv *out) {
  const GraphArg *a = &n->args[1];
  i64 before[TYPE_MAX_RANK], after[TYPE_MAX_RANK];
  for (u32 i = 0; i < t->rank; i++) {
    if (a->kind == ARG_attr && a->attr->kind == ATTR_ints) {
      const i64 *w = a->attr->ints + (a->attr->pairs && a->attr->count > 2 ? 2 * i : 0);
      before[i] = w[0];
      after[i] = w[a->attr->count == 1 ? 0 : 1];
    } else if (arg_int(a, 0, &before[i])) {
      after[i] = before[i];
    } else {
      return false;
    }
  }
  if (n->args[2].kind == ARG_attr && n->args[2].attr->kind == ATTR_text &&
      (n->args[2].attr->count != 8 || memcmp(n->args[2].attr->text, "constant", 8) != 0))
    return rules_pad_by_elements(d, n, t, before, after, g, out);
  Dv whole = g;
  for (u32 i = 0; i < t->rank; i++)
    g = d->failed ? 0 : d->to->part(d, g, i, before[i], d->to->dim(d, '+', before[i], t->dims[i]));
  out[0] = g;
  if (n->count > 1 && wants[1]) { /* the border */
    ArrayType outer = dv_type(d, whole);
    u32 all = (1u << outer.rank) - 1;
    out[1] = SUB(dv_reduce(d, OP_sum, whole, all, false), dv_reduce(d, OP_sum, g, all, false));
  }
  return true;
}

static bool pull_permutation(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g, Dv *out) {
  u32 perm[TYPE_MAX_RANK], inverse[TYPE_MAX_RANK];
  if (!permutation_of(n, t, perm)) return false;
  for (u32 i = 0; i < t->rank; i++) inverse[perm[i]] = i;
  out[0] = dv_permute(d, g, inverse);
  return true;
}

ONE(same, nothing, g)
RULE(reshape, nothing, (out[0] = dv_reshape(d, g, t->rank, t->dims), true))
RULE(transpose, nothing, pull_permutation(d, n, t, g, out))
RULE(broadcast_to, nothing, (out[0] = g, true)) /* deriv_fit sums */
RULE(again, nothing, (out[0] = again(d, n, g), true))
RULE(roll, nothing, pull_roll(d, n, g, out))
RULE(tile, nothing, pull_copies(d, n, t, g, out))
RULE(repeat, all, pull_copies(d, n, t, g, out))
RULE(pad, all, pull_pad(d, n, t, g, wants, out))

/* ---- joins and parts --------------------------------------------------------------------------------------------- */

static bool pull_join(Deriv *d, const DerivNode *n, Dv g, const bool *wants, Dv *out) {
  ArrayType whole = dv_type(d, g);
  u32 axis;
  if (!shape_axis_of(n, 1, 0, whole.rank, &axis)) return false;
  /* nil: the items of each, row by row */
  bool flat = n->op == OP_concat && n->args[1].kind != ARG_hole && !shape_is_given(&n->args[1]);
  Dim at = 0;
  for (u32 i = 0; i < n->count; i++) {
    ArrayType t = dv_type(d, n->operands[i]);
    Dim size = flat || n->op == OP_stack ? 1 : t.dims[axis];
    for (u32 k = 0; flat && k < t.rank; k++) size = d->to->dim(d, '*', size, t.dims[k]);
    Dim end = d->to->dim(d, '+', at, size);
    if (d->failed) return false;
    if (wants[i]) out[i] = dv_reshape(d, d->to->part(d, g, axis, at, end), t.rank, t.dims);
    at = end;
  }
  return true;
}

/* Cotangents of all parts; those without get zeros. */
static bool filled(Deriv *d, const DerivNode *n, const Dv *ct, Dv *out) {
  for (u32 i = 0; i < n->nresults; i++) {
    ArrayType t = dv_type(d, n->results[i]);
    out[i] = ct[i] ? ct[i] : d->to->zeros(d, &t);
    if (!out[i]) return false;
  }
  return true;
}

static bool pull_parts(Deriv *d, const DerivNode *n, const ArrayType *t, const Dv *ct, Dv *out) {
  u32 axis;
  Dv *all = deriv_room(d, n->nresults, sizeof *all);
  if (!all || !shape_axis_of(n, n->op == OP_split ? 2 : 1, 0, t->rank, &axis) || !filled(d, n, ct, all)) return false;
  GraphAttr attrs[2] = {attr_list(0, n->nresults), attr_int(1, axis)};
  out[0] = dv_op(d, n->op == OP_split ? OP_concat : OP_stack, all, n->nresults, attrs, 2);
  return true;
}

static bool pull_stretched(const DerivNode *n, const Dv *ct, Dv *out) {
  for (u32 i = 0; i < n->count && i < n->nresults; i++) out[i] = ct[i];
  return true;
}

/* Each along its own axis. */
static bool pull_meshgrid(Deriv *d, const DerivNode *n, const Dv *ct, Dv *out) {
  const GraphArg *by = &n->args[1];
  bool ij = by->kind == ARG_attr && by->attr->kind == ATTR_text && by->attr->count == 2 &&
            memcmp(by->attr->text, "ij", 2) == 0;
  for (u32 i = 0; i < n->count && i < n->nresults; i++) {
    if (!ct[i]) continue;
    ArrayType whole = dv_type(d, ct[i]), own = dv_type(d, n->operands[i]);
    u32 along = !ij && n->count > 1 && i < 2 ? 1 - i : i;
    u32 mask = ((1u << whole.rank) - 1) & ~(1u << along);
    out[i] = dv_reshape(d, mask ? dv_reduce(d, OP_sum, ct[i], mask, false) : ct[i], own.rank, own.dims);
  }
  return true;
}

RULE(concat, nothing, pull_join(d, n, g, wants, out))
MANY(split, nothing, pull_parts(d, n, t, ct, out))
MANY(broadcast_arrays, nothing, pull_stretched(n, ct, out))
MANY(meshgrid, all, pull_meshgrid(d, n, ct, out))

/* ---- making ---------------------------------------------------------------------------------- */

/* start (1 - t) + stop t; t is linspace with the same parameters behind stop, up to `last` */
static bool pull_between(Deriv *d, const DerivNode *n, u32 last, Dv g, Dv *out) {
  Dv ends[2] = {NUM(0), NUM(1)};
  GraphAttr attrs[OP_MAX_PARAMS];
  u32 na = 0;
  for (u32 p = 2; p <= last; p++)
    if (n->args[p].kind == ARG_attr) attrs[na++] = *n->args[p].attr;
  if (n->count != 2) return false;
  Dv t = dv_op(d, OP_linspace, ends, 2, attrs, na);
  ArrayType whole = dv_type(d, g);
  if (whole.rank > 1) { /* ends that are arrays: t goes along the first axis */
    Dim dims[ARRAY_MAX_RANK] = {whole.dims[0]};
    for (u32 i = 1; i < whole.rank; i++) dims[i] = 1;
    t = dv_reshape(d, t, whole.rank, dims);
  }
  out[0] = MUL(g, SUB(NUM(1), t));
  out[1] = MUL(g, t);
  return true;
}

/* base ** linspace(start, stop, …) */
static bool pull_logspace(Deriv *d, const DerivNode *n, Dv g, Dv *out) {
  enum { ENDPOINT = 3, BASE = 4 };
  f64 base;
  if (!rules_number(d, &n->args[BASE], 10, &base)) return false;
  return pull_between(d, n, ENDPOINT, MUL(g, MUL(n->results[0], NUM(log(base)))), out);
}

RULE(array, all, (out[0] = g, true))
RULE(full, all, (out[0] = g, true)) /* deriv_fit sums */
RULE(full_like, all, (n->count > 1 ? (void)(out[1] = g) : (void)0, true))
RULE(linspace, all, pull_between(d, n, 4, g, out))
RULE(logspace, result, pull_logspace(d, n, g, out))
