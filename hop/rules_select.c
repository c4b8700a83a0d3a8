/* rules_select.c — derivative rules of what selects by indices: take, sort, topk, scatter, median, running
 * extremes. All give a cotangent back to the places it was read from. */
#include "hop/rules.h"

#include <string.h>

static bool given(const GraphArg *a) {
  return a->kind != ARG_hole && !(a->kind == ARG_attr && a->attr->kind == ATTR_nil);
}

static bool select_axis_of(const DerivNode *n, u32 param, i64 fallback, u32 rank, u32 *axis) {
  i64 v;
  RuleError err;
  return arg_int(&n->args[param], fallback, &v) && rule_axis(v, rank, axis, &err);
}

static bool is_text(const GraphArg *a, const char *s) {
  return a->kind == ARG_attr && a->attr->kind == ATTR_text && a->attr->count == strlen(s) &&
         memcmp(a->attr->text, s, strlen(s)) == 0;
}

static Dim select_size_of(Deriv *d, const ArrayType *t) {
  Dim n = 1;
  for (u32 i = 0; i < t->rank; i++) n = d->to->dim(d, '*', n, t->dims[i]);
  return n;
}

/* ---- places ---------------------------------------------------------------------------------------------------- */

Dv dv_positions(Deriv *d, Dim n, u32 rank, u32 axis) {
  Dim dims[TYPE_MAX_RANK];
  for (u32 i = 0; i < rank; i++) dims[i] = i == axis ? n : 1;
  return dv_reshape(d, dv_numbers(d, n), rank, dims);
}

/* Zeros of the type with v added at indices along an axis, each place of its own: the adjoint of take_along_axis. */
static Dv add_along(Deriv *d, const ArrayType *t, u32 axis, Dv indices, Dv v) {
  Dv at[TYPE_MAX_RANK], zeros = d->failed ? 0 : d->to->zeros(d, t);
  ArrayType shape = dv_type(d, v);
  if (!zeros || !v || !indices) return 0;
  if (t->rank == 1) return d->to->add_at(d, zeros, 0, indices, v);
  for (u32 i = 0; i < t->rank; i++) {
    at[i] = i == axis ? indices : dv_positions(d, shape.dims[i], t->rank, i);
    if (!at[i]) return 0;
  }
  Dv made = d->to->add_items(d, zeros, at, t->rank, v);
  d->failed |= !made;
  return made;
}

static Dv order_of(Deriv *d, Dv x, bool descending, u32 axis) {
  GraphAttr attrs[2] = {attr_int(1, axis), attr_bool(2, descending)};
  return dv_op(d, OP_argsort, &x, 1, attrs, 2);
}

static Dv take_along(Deriv *d, Dv x, Dv indices, u32 axis) {
  GraphAttr along = attr_int(2, axis);
  return dv_op(d, OP_take_along_axis, (Dv[]){x, indices}, 2, &along, 1);
}

static Dv take(Deriv *d, Dv x, Dv indices, u32 axis) {
  GraphAttr along = attr_int(2, axis);
  return dv_op(d, OP_take, (Dv[]){x, indices}, 2, &along, 1);
}

/* ---- axes in line ------------------------------------------------------------------------------------------------ */

Dv dv_lined(Deriv *d, Dv x, const ArrayType *t, u32 mask, Lined *l) {
  Dim dims[TYPE_MAX_RANK];
  u32 n = 0;
  l->type = *t;
  l->count = 1;
  for (u32 i = 0; i < t->rank; i++)
    if (!(mask >> i & 1)) {
      dims[n] = t->dims[i];
      l->perm[n++] = i;
    }
  l->rank = n + 1;
  for (u32 i = 0, k = n; i < t->rank; i++)
    if (mask >> i & 1) {
      l->count = d->to->dim(d, '*', l->count, t->dims[i]);
      l->perm[k++] = i;
    }
  dims[n] = l->count;
  if (l->rank > TYPE_MAX_RANK) d->failed = true;
  return dv_reshape(d, dv_permute(d, x, l->perm), l->rank, dims);
}

Dv dv_unlined(Deriv *d, Dv x, const Lined *l) {
  Dim dims[TYPE_MAX_RANK];
  u32 inverse[TYPE_MAX_RANK];
  for (u32 i = 0; i < l->type.rank; i++) {
    dims[i] = l->type.dims[l->perm[i]];
    inverse[l->perm[i]] = i;
  }
  return dv_permute(d, dv_reshape(d, x, l->type.rank, dims), inverse);
}

/* ---- the rules ------------------------------------------------------------------------------- */

static bool pull_take(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g, Dv *out) {
  u32 axis = 0;
  ArrayType from = *t;
  if (n->count != 2) return false;
  if (!given(&n->args[2])) {
    from.rank = 1;
    from.dims[0] = select_size_of(d, t);
  } else if (!select_axis_of(n, 2, 0, t->rank, &axis)) {
    return false;
  }
  Dv zeros = d->failed ? 0 : d->to->zeros(d, &from);
  out[0] = zeros ? dv_reshape(d, d->to->add_at(d, zeros, axis, n->operands[1], g), t->rank, t->dims) : 0;
  return true;
}

/* The middle of each row goes to where it came from; of even rows half to each of two. */
static bool pull_median(Deriv *d, const DerivNode *n, Dv x, const ArrayType *t, Dv g, Dv *out) {
  u32 mask;
  Lined l;
  if (!arg_axes(&n->args[1], t->rank, &mask)) return false;
  Dv rows = dv_lined(d, x, t, mask, &l);
  if (d->failed) return false;
  u32 last = l.rank - 1;
  ArrayType row = dv_type(d, rows), kept = row;
  kept.dims[last] = 1;
  g = MUL(dv_reshape(d, g, kept.rank, kept.dims), NUM(0.5));
  Dv order = order_of(d, rows, false, last), zeros = d->failed ? 0 : d->to->zeros(d, &row);
  Dim half[2] = {d->to->dim(d, '/', d->to->dim(d, '-', l.count, 1), 2), d->to->dim(d, '/', l.count, 2)};
  for (u32 k = 0; k < 2 && zeros; k++) {
    Dim one = 1;
    Dv at = dv_reshape(d, d->to->size(d, half[k]), 1, &one);
    zeros = at ? d->to->add_at(d, zeros, last, at, g) : 0;
    d->failed |= !zeros;
  }
  out[0] = d->failed ? 0 : dv_unlined(d, take_along(d, zeros, order_of(d, order, false, last), last), &l);
  return true;
}

/* The i-th in order has the weight max(0, 1 - |place - i|), place = q (n - 1). By q: the distance of the two
 * neighbours. */
static bool pull_quantile(Deriv *d, const DerivNode *n, Dv x, const ArrayType *t, Dv g, const bool *wants, Dv *out) {
  u32 mask;
  Lined l;
  if (n->count != 2 || !arg_axes(&n->args[2], t->rank, &mask)) return false;
  Dv rows = dv_lined(d, x, t, mask, &l), q = n->operands[1];
  ArrayType tq = dv_type(d, q), line = dv_type(d, rows);
  if (d->failed || tq.rank > 1) return false;
  u32 last = l.rank - 1;
  Dim many = tq.rank ? tq.dims[0] : 1, whole[TYPE_MAX_RANK], column[2] = {many, 1};
  if (l.rank + 1 > TYPE_MAX_RANK) return false;
  Dv most = d->to->size(d, d->to->dim(d, '-', l.count, 1));
  Dv place = MUL(dv_reshape(d, dv_convert(d, q, DT_f64), 2, column), most), at = dv_positions(d, l.count, 2, 1);
  /* g as (quantiles, rows, 1), what is chosen as (quantiles, 1 …, elements) */
  whole[0] = many;
  for (u32 i = 0; i < last; i++) whole[i + 1] = line.dims[i];
  whole[last + 1] = 1;
  Dv of_rows = dv_reshape(d, g, last + 2, whole), order = order_of(d, rows, false, last);
  for (u32 i = 0; i < last; i++) whole[i + 1] = 1;
  whole[last + 1] = l.count;
  if (wants[0]) {
    Dv weight = dv2(d, OP_maximum, SUB(NUM(1), dv1(d, OP_abs, SUB(place, at))), NUM(0));
    weight = dv_convert(d, dv_reshape(d, weight, last + 2, whole), t->dtype);
    Dv sorted = dv_reduce(d, OP_sum, MUL(of_rows, weight), 1, false);
    out[0] = d->failed ? 0 : dv_unlined(d, take_along(d, sorted, order_of(d, order, false, last), last), &l);
  }
  if (wants[1]) {
    Dv two = d->failed ? 0 : d->to->size(d, d->to->dim(d, '-', l.count, 2));
    Dv low = dv2(d, OP_minimum, dv1(d, OP_floor, place), two), next = ADD(low, NUM(1)),
        sorted = take_along(d, rows, order, last);
    Dv above = dv_reshape(d, dv2(d, OP_equal, at, next), last + 2, whole),
        below = dv_reshape(d, dv2(d, OP_equal, at, low), last + 2, whole);
    Dv gap = SUB(dv3(d, OP_where, above, sorted, NUM(0)), dv3(d, OP_where, below, sorted, NUM(0)));
    Dv by = dv_reduce(d, OP_sum, MUL(MUL(of_rows, gap), most), ((1u << (last + 2)) - 1) & ~1u, false);
    out[1] = dv_reshape(d, by, tq.rank, tq.dims);
  }
  return !d->failed;
}

/* A running extreme belongs to the last place where it changed. */
static bool pull_extreme(Deriv *d, const DerivNode *n, Dv x, const ArrayType *t, Dv g, Dv *out) {
  u32 axis = 0;
  bool reverse = arg_bool(&n->args[2], false), flat = !given(&n->args[1]);
  if (!flat && !select_axis_of(n, 1, 0, t->rank, &axis)) return false;
  if (arg_bool(&n->args[3], false)) { /* that of nothing, first or last, is constant */
    Dim size = dv_type(d, g).dims[axis];
    if (d->failed) return false;
    g = reverse ? d->to->part(d, g, axis, 0, d->to->dim(d, '-', size, 1)) : d->to->part(d, g, axis, 1, size);
    if (!g) return false;
  }
  ArrayType row = *t;
  if (flat) {
    row.rank = 1;
    row.dims[0] = select_size_of(d, t);
  }
  x = dv_reshape(d, x, row.rank, row.dims);
  g = dv_reshape(d, g, row.rank, row.dims);
  GraphAttr by[2] = {attr_int(1, axis), attr_bool(2, false)};
  GraphAttr turn = attr_int(1, axis);
  if (reverse) {
    x = dv_op(d, OP_flip, &x, 1, &turn, 1);
    g = dv_op(d, OP_flip, &g, 1, &turn, 1);
  }
  Dv y = dv_op(d, n->op, &x, 1, by, 2);
  if (d->failed) return false;
  Dv before = d->to->part(d, y, axis, 0, d->to->dim(d, '-', row.dims[axis], 1));
  Dv first = d->failed ? 0 : d->to->part(d, y, axis, 0, 1);
  if (!before || !first) return false;
  /* one more beyond the first, so that the first always changes */
  first = n->op == OP_cummax ? SUB(first, NUM(1)) : ADD(first, NUM(1));
  GraphAttr join[2] = {attr_list(0, 2), attr_int(1, axis)};
  Dv earlier = dv_op(d, OP_concat, (Dv[]){first, before}, 2, join, 2);
  Dv at = dv3(d, OP_where, dv2(d, OP_not_equal, y, earlier), dv_positions(d, row.dims[axis], row.rank, axis),
              d->failed ? 0 : d->to->size(d, 0));
  at = dv_op(d, OP_cummax, &at, 1, by, 2);
  Dv made = add_along(d, &row, axis, at, g);
  if (reverse) made = dv_op(d, OP_flip, &made, 1, &turn, 1);
  out[0] = dv_reshape(d, made, t->rank, t->dims);
  return true;
}

static Dv scattered(Deriv *d, Dv x, Dv at, Dv v, u32 axis, const char *how) {
  GraphAttr by[2] = {attr_int(3, axis), {.kind = ATTR_text, .param = 4, .count = 3, .text = how}};
  return dv_op(d, OP_scatter, (Dv[]){x, at, v}, 3, by, 2);
}

/* mul: the product of the others, which holds where factors are 0. min, max: who is it, shared among ties. */
static void pull_scatter_fold(Deriv *d, const DerivNode *n, const ArrayType *t, u32 axis, bool product, Dv g,
                              const bool *wants, Dv *out) {
  Dv x = n->operands[0], at = n->operands[1], v = n->operands[2], y = n->results[0];
  Dv zeros = d->to->zeros(d, t);
  if (!zeros) return;
  Dv read = take(d, zeros, at, axis); /* of the shape of the places */
  if (product) {
    if (wants[0]) out[0] = MUL(g, scattered(d, ADD(zeros, NUM(1)), at, v, axis, "mul"));
    if (!wants[2]) return;
    Dv all = ADD(read, v), none = dv2(d, OP_equal, all, NUM(0));
    Dv rest = scattered(d, x, at, dv3(d, OP_where, none, NUM(1), all), axis, "mul");
    Dv count = scattered(d, zeros, at, dv_convert(d, none, t->dtype), axis, "add"), here = take(d, count, at, axis);
    rest = take(d, MUL(g, rest), at, axis);
    Dv plain = dv3(d, OP_where, dv2(d, OP_equal, here, NUM(0)), DIV(rest, dv3(d, OP_where, none, NUM(1), all)), NUM(0));
    out[2] = dv3(d, OP_where, none, dv3(d, OP_where, dv2(d, OP_equal, here, NUM(1)), rest, NUM(0)), plain);
    return;
  }
  Dv mine = dv2(d, OP_equal, x, y), theirs = dv2(d, OP_equal, ADD(read, v), take(d, y, at, axis));
  Dv ties = scattered(d, dv_convert(d, mine, t->dtype), at, dv_convert(d, theirs, t->dtype), axis, "add");
  Dv shared = DIV(g, dv2(d, OP_maximum, ties, NUM(1)));
  if (wants[0]) out[0] = dv3(d, OP_where, mine, shared, NUM(0));
  if (wants[2]) out[2] = dv3(d, OP_where, theirs, take(d, shared, at, axis), NUM(0));
}

/* set: what is overwritten gets nothing. add: all. */
static bool pull_scatter(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g, const bool *wants, Dv *out) {
  u32 axis;
  bool set = !given(&n->args[4]) || is_text(&n->args[4], "set");
  if (n->count != 3 || !select_axis_of(n, 3, 0, t->rank, &axis)) return false;
  if (!set && !is_text(&n->args[4], "add")) {
    pull_scatter_fold(d, n, t, axis, is_text(&n->args[4], "mul"), g, wants, out);
    return !d->failed;
  }
  Dv at = n->operands[1];
  GraphAttr by[2] = {attr_int(3, axis), {.kind = ATTR_text, .param = 4, .count = 3, .text = "set"}};
  if (wants[0]) out[0] = set ? dv_op(d, OP_scatter, (Dv[]){g, at, NUM(0)}, 3, by, 2) : g;
  if (!wants[2]) return true;
  Dv read = take(d, g, at, axis);
  if (set) { /* of several at one place the last counts: all write their number, and see whose stands there */
    ArrayType it = dv_type(d, at), numbers = {.dtype = DT_i64, .rank = 1, .device = it.device};
    numbers.dims[0] = t->rank ? t->dims[axis] : 1;
    GraphAttr stop = attr_dim(0, select_size_of(d, &it)), flat[2] = {attr_int(3, 0), by[1]};
    Dv number = dv_reshape(d, dv_numbers(d, stop.dim), it.rank, it.dims);
    Dv zeros = d->failed ? 0 : d->to->zeros(d, &numbers);
    Dv stands = dv_op(d, OP_scatter, (Dv[]){zeros, at, number}, 3, flat, 2);
    Dv mine = dv2(d, OP_equal, take(d, stands, at, 0), number);
    Dim dims[TYPE_MAX_RANK];
    u32 rank = 0;
    for (u32 i = 0; i < it.rank; i++) dims[rank++] = it.dims[i];
    for (u32 i = axis + 1; i < t->rank; i++) dims[rank++] = 1;
    read = dv3(d, OP_where, dv_reshape(d, mine, rank, dims), read, NUM(0));
  }
  out[2] = read;
  return true;
}

/* Back from the positions that the mask gave; those beyond `size` were not taken. */
static bool pull_compress(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g, const bool *wants, Dv *out) {
  u32 axis;
  if (n->count < 2 || !select_axis_of(n, 2, 0, t->rank, &axis)) return false;
  ArrayType gt = dv_type(d, g), edge = gt;
  Dim count = gt.dims[axis];
  edge.dims[axis] = 1;
  Dv mask = n->operands[1], nothing = d->failed ? 0 : d->to->zeros(d, &edge);
  GraphAttr join[2] = {attr_list(0, 2), attr_int(1, axis)}, by[2] = {attr_int(1, 0), attr_bool(2, false)};
  Dv longer = dv_op(d, OP_concat, (Dv[]){g, nothing}, 2, join, 2);
  Dv size = d->failed ? 0 : d->to->size(d, count), one = d->failed ? 0 : d->to->size(d, 1);
  Dv at = dv2(d, OP_subtract, dv_op(d, OP_cumsum, &mask, 1, by, 2), one);
  at = dv3(d, OP_where, mask, dv2(d, OP_minimum, at, size), size);
  if (wants[0]) out[0] = take(d, longer, at, axis);
  if (n->count > 2 && wants[2]) { /* behind what was taken */
    Dv taken = dv2(d, OP_less, dv_positions(d, count, gt.rank, axis), dv_reduce(d, OP_sum, mask, 1, false));
    out[2] = dv_reduce(d, OP_sum, dv3(d, OP_where, taken, NUM(0), g), (1u << gt.rank) - 1, false);
  }
  return true;
}

/* g, whose last axis holds `width` items of each window along `axis`: each of them where it came from, as many sums of
 * shifted parts, of which a kernel makes one pass. */
static Dv pull_few_windows(Deriv *d, Dv g, u32 axis, i64 width) {
  Dv sum = 0;
  for (i64 i = width; i-- > 0 && !d->failed;) {
    ArrayType t = dv_type(d, g);
    i64 widths[2 * TYPE_MAX_RANK] = {0};
    widths[2 * axis] = i;
    widths[2 * axis + 1] = width - 1 - i;
    GraphAttr by = {.kind = ATTR_ints, .param = 1, .pairs = 1, .count = 2u * (t.rank - 1u), .ints = widths};
    Dv part = d->to->part(d, g, t.rank - 1u, i, i + 1);
    part = part ? dv_reshape(d, part, t.rank - 1u, t.dims) : 0;
    part = part ? dv_op(d, OP_pad, &part, 1, &by, 1) : 0;
    sum = sum && part ? dv_add(d, sum, part) : part;
  }
  return d->failed ? 0 : sum;
}

static bool pull_window(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g, Dv *out) {
  enum { FEW_ITEMS = 16 }; /* of a window, whose size is known: beyond, g is added by positions */
  u32 axes[TYPE_MAX_RANK], rank, count;
  const GraphAttr *w = n->args[1].kind == ARG_attr ? n->args[1].attr : NULL,
      *by = given(&n->args[2]) ? n->args[2].attr : NULL;
  if (!w || (given(&n->args[2]) && !by)) return false;
  bool list = w->kind == ATTR_ints || w->kind == ATTR_dims;
  count = list ? w->count : 1;
  rank = t->rank + count;
  if (rank > TYPE_MAX_RANK) return false;
  for (u32 i = 0; i < count; i++) {
    RuleError err;
    i64 axis = i;
    if (by && by->kind == ATTR_ints && i < by->count) axis = by->ints[i];
    else if (by && by->kind == ATTR_int && count == 1) axis = by->i;
    else if (by) return false;
    if (!rule_axis(axis, t->rank, &axes[i], &err)) return false;
  }
  ArrayType now = dv_type(d, g);
  for (u32 i = count; i-- > 0 && !d->failed;) { /* the last axis of g holds windows along axes[i] */
    u32 perm[TYPE_MAX_RANK], axis = axes[i], k = 0;
    Dim windows = now.dims[axis], width = now.dims[now.rank - 1];
    Dim size = d->to->dim(d, '-', d->to->dim(d, '+', windows, width), 1);
    if (width >= 1 && width <= FEW_ITEMS && now.rank > 1) {
      g = pull_few_windows(d, g, axis, width);
      now.rank--;
      now.dims[axis] = size;
      d->failed |= !g;
      continue;
    }
    for (u32 a = 0; a + 1 < now.rank; a++) {
      perm[k++] = a;
      if (a == axis) perm[k++] = now.rank - 1;
    }
    g = dv_permute(d, g, perm);
    Dv at = dv2(d, OP_add, dv_positions(d, windows, 2, 0), dv_positions(d, width, 2, 1));
    now.rank--;
    now.dims[axis] = size;
    Dv zeros = d->failed ? 0 : d->to->zeros(d, &now);
    g = zeros && at && g ? d->to->add_at(d, zeros, axis, at, g) : 0;
    d->failed |= !g;
  }
  out[0] = g;
  return true;
}

/* Rank 1: its diagonal of g. Matrices: g on the diagonal, by the row or the column that it begins in. */
static bool pull_diag(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g, Dv *out) {
  i64 k;
  if (!arg_int(&n->args[1], 0, &k)) return false;
  if (t->rank == 1) {
    GraphAttr on = attr_int(1, k);
    out[0] = dv_op(d, OP_diag, &g, 1, &on, 1);
    return true;
  }
  u32 row = t->rank - 2u, column = t->rank - 1u, along = k >= 0 ? row : column;
  ArrayType gt = dv_type(d, g), rest = gt, line_type = *t;
  if (d->failed) return false;
  rest.dims[row] = d->to->dim(d, '-', t->dims[along], gt.dims[row]);
  Dv zeros = d->failed ? 0 : d->to->zeros(d, &rest);
  GraphAttr join[2] = {attr_list(0, 2), attr_int(1, row)};
  line_type.dims[along == row ? column : row] = 1;
  Dv line = dv_reshape(d, dv_op(d, OP_concat, (Dv[]){g, zeros}, 2, join, 2), t->rank, line_type.dims);
  Dv from = dv2(d, OP_subtract, dv_positions(d, t->dims[column], 2, 1), dv_positions(d, t->dims[row], 2, 0));
  Dv which = d->failed ? 0 : d->to->size(d, k < 0 ? -k : k);
  if (k < 0 && which) which = NEG(which);
  out[0] = dv3(d, OP_where, dv2(d, OP_equal, from, which), line, NUM(0));
  return true;
}

/* pad by elements: each axis by the indices that padding the positions gives. */
bool rules_pad_by_elements(Deriv *d, const DerivNode *n, const ArrayType *t, const i64 *before, const i64 *after,
                           Dv g, Dv *out) {
  for (u32 i = t->rank; i-- > 0 && !d->failed;) {
    ArrayType now = dv_type(d, g);
    i64 width[2] = {before[i], after[i]};
    GraphAttr by[2] = {{.kind = ATTR_ints, .param = 1, .pairs = 1, .count = 2, .ints = width}, *n->args[2].attr};
    Dv from = dv_positions(d, t->dims[i], 1, 0);
    from = dv_op(d, OP_pad, &from, 1, by, 2);
    now.dims[i] = t->dims[i];
    Dv zeros = d->failed ? 0 : d->to->zeros(d, &now);
    g = zeros && from ? d->to->add_at(d, zeros, i, from, g) : 0;
    d->failed |= !g;
  }
  out[0] = g;
  return true;
}

static bool pull_take_along_axis(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g, Dv *out) {
  u32 axis;
  if (n->count != 2 || !select_axis_of(n, 2, -1, t->rank, &axis)) return false;
  ArrayType gt = dv_type(d, g);
  for (u32 i = 0; i < t->rank; i++)
    if (i != axis && !d->to->same(d, gt.dims[i], t->dims[i])) {
      d->detail = "take_along_axis of a stretched array";
      return false;
    }
  ArrayType it = dv_type(d, n->operands[1]);
  out[0] = add_along(d, t, axis, dv_stretch(d, n->operands[1], gt.rank, it.rank == gt.rank ? gt.dims : it.dims), g);
  return true;
}

/* Back by the inverse of the order. */
static bool pull_sort(Deriv *d, const DerivNode *n, Dv x, const ArrayType *t, Dv g, Dv *out) {
  u32 axis;
  if (given(&n->args[3]) || !select_axis_of(n, 1, -1, t->rank, &axis)) return false;
  out[0] = take_along(d, g, order_of(d, order_of(d, x, arg_bool(&n->args[2], false), axis), false, axis), axis);
  return true;
}

static bool pull_topk(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g, Dv *out) {
  u32 axis;
  if (!g || n->nresults != 2 || !select_axis_of(n, 2, -1, t->rank, &axis)) return false;
  out[0] = add_along(d, t, axis, n->results[1], g);
  return true;
}

/* To the first of those that are equal. */
static bool pull_unique(Deriv *d, const DerivNode *n, Dv x, const ArrayType *t, Dv g, Dv *out) {
  if (!g || given(&n->args[4])) return false;
  Dim all = select_size_of(d, t);
  ArrayType many = {.dtype = DT_i64, .rank = 1};
  x = dv_reshape(d, x, 1, &all);
  many.dims[0] = dv_type(d, g).dims[0];
  Dv at = dv2(d, OP_searchsorted, n->results[0], x), number = dv_positions(d, all, 1, 0);
  Dv zeros = d->failed ? 0 : d->to->zeros(d, &many);
  GraphAttr turn = attr_int(1, 0);
  Dv back = dv_op(d, OP_flip, &at, 1, &turn, 1), from = dv_op(d, OP_flip, &number, 1, &turn, 1);
  Dv first = dv2(d, OP_equal, take(d, scattered(d, zeros, back, from, 0, "set"), at, 0), number);
  out[0] = dv_reshape(d, dv3(d, OP_where, first, take(d, g, at, 0), NUM(0)), t->rank, t->dims);
  return !d->failed;
}

/* counts: by the weights. edges at equal steps: by the ends of the range, or by the least and the greatest of x, shared
 * among ties. */
static bool pull_histogram(Deriv *d, const DerivNode *n, Dv x, const ArrayType *t, const Dv *ct, const bool *wants,
                           Dv *out) {
  bool weighted = n->args[3].kind == ARG_value, edged = n->args[1].kind == ARG_value, ranged = given(&n->args[2]);
  u32 weights = n->count - 1;
  Dim all = select_size_of(d, t);
  Dv edges = n->results[1];
  if (d->failed) return false;
  Dim size = dv_type(d, edges).dims[0], bins = d->to->dim(d, '-', size, 1);
  if (weighted && weights && wants[weights] && ct[0]) {
    GraphAttr right = {.kind = ATTR_text, .param = 2, .count = 5, .text = "right"};
    Dv flat = dv_reshape(d, dv_convert(d, x, DT_f64), 1, &all), whole = dv_convert(d, edges, DT_f64);
    Dv place = dv_op(d, OP_searchsorted, (Dv[]){whole, flat}, 2, &right, 1);
    Dv last = d->failed ? 0 : d->to->size(d, d->to->dim(d, '-', bins, 1)), one = d->failed ? 0 : d->to->size(d, 1);
    Dv nothing = d->failed ? 0 : d->to->size(d, 0);
    Dv bin = dv2(d, OP_minimum, dv2(d, OP_maximum, SUB(place, one), nothing), last);
    Dv low = dv_reduce(d, OP_min, whole, 1, false), high = dv_reduce(d, OP_max, whole, 1, false);
    Dv inside = dv2(d, OP_logical_and, dv2(d, OP_greater_equal, flat, low), dv2(d, OP_less_equal, flat, high));
    ArrayType tw = dv_type(d, n->operands[weights]);
    out[weights] = dv_reshape(d, dv3(d, OP_where, inside, take(d, ct[0], bin, 0), NUM(0)), tw.rank, tw.dims);
  }
  if (!ct[1]) return !d->failed;
  if (edged) {
    if (wants[1]) out[1] = ct[1];
    return !d->failed;
  }
  Dv steps = DIV(dv_positions(d, size, 1, 0), d->failed ? 0 : d->to->size(d, bins)), whole = dv_reshape(d, x, 1, &all);
  Dv high = dv_reduce(d, OP_sum, MUL(ct[1], steps), 1, false);
  Dv low = dv_reduce(d, OP_sum, MUL(ct[1], SUB(NUM(1), steps)), 1, false);
  if (n->args[2].kind == ARG_list && n->args[2].count == 2) {
    if (wants[1]) out[1] = low;
    if (wants[2]) out[2] = high;
  } else if (wants[0] && !ranged) {
    Dv least = dv_share_ties(d, whole, dv_reduce(d, OP_min, whole, 1, true), dv_widened(d, low, 0), 1);
    Dv most = dv_share_ties(d, whole, dv_reduce(d, OP_max, whole, 1, true), dv_widened(d, high, 0), 1);
    out[0] = dv_reshape(d, ADD(least, most), t->rank, t->dims);
  }
  return !d->failed;
}

/* Back by the inverse of the order that the key gives. */
static bool pull_random_order(Deriv *d, const DerivNode *n, Dv key, Dv g, Dv *out) {
  ArrayType t = dv_type(d, g);
  if (d->failed || n->count != 2 || !t.rank) return false;
  Dv order = dv2(d, OP_random_permutation, key, d->to->size(d, t.dims[0]));
  out[1] = take(d, g, order_of(d, order, false, 0), 0);
  return !d->failed;
}

/* lo + (hi - lo) u */
static bool pull_uniform(Deriv *d, const DerivNode *n, Dv key, Dv y, Dv g, const bool *wants, Dv *out) {
  ArrayType t = dv_type(d, y);
  if (d->failed) return false;
  GraphAttr by[2] = {{.kind = ATTR_dims, .param = 1, .count = t.rank, .ints = t.dims}, attr_dtype(4, t.dtype)};
  Dv u = dv_op(d, OP_random_uniform, &key, 1, by, 2);
  u32 hi = n->args[2].kind == ARG_value ? 2 : 1;
  if (n->args[2].kind == ARG_value && wants[1]) out[1] = MUL(g, SUB(NUM(1), u));
  if (n->args[3].kind == ARG_value && wants[hi]) out[hi] = MUL(g, u);
  return !d->failed;
}

RULE(random_permutation, all, pull_random_order(d, n, x, g, out))
RULE(random_uniform, all, pull_uniform(d, n, x, y, g, wants, out))
MANY(unique, all, pull_unique(d, n, x, t, ct[0], out))
MANY(histogram, all, pull_histogram(d, n, x, t, ct, wants, out))
RULE(take, indices, pull_take(d, n, t, g, out))
RULE(take_along_axis, indices, pull_take_along_axis(d, n, t, g, out))
RULE(sort, all, pull_sort(d, n, x, t, g, out))
RULE(median, all, pull_median(d, n, x, t, g, out))
RULE(quantile, all, pull_quantile(d, n, x, t, g, wants, out))
RULE(extreme, all, pull_extreme(d, n, x, t, g, out))
RULE(scatter, all, pull_scatter(d, n, t, g, wants, out))
RULE(compress, all, pull_compress(d, n, t, g, wants, out))
RULE(sliding_window, all, pull_window(d, n, t, g, out))
RULE(diag, all, pull_diag(d, n, t, g, out))
RULE(bincount, all, n->count == 2 && n->args[1].kind == ARG_value && (out[1] = take(d, g, x, 0), true))
MANY(topk, all, pull_topk(d, n, t, g, out))
