/* rules_shape.c — shape rules of single operations, over Dim: eager kernels and the tracer call the same (see
 * ops.h). */
#include "lang/ops.h"

#include <stdio.h>
#include <string.h>

static bool fail(RuleError *err, ErrorKind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);
static bool fail(RuleError *err, ErrorKind kind, const char *fmt, ...) {
  err->kind = (u8)kind;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(err->text, sizeof err->text, fmt, ap);
  va_end(ap);
  return false;
}

typedef struct ShapeText { /* "(3, 4)" for messages */
  char s[96];
} ShapeText;
static ShapeText shape_text_of(const ArrayType *t) {
  ShapeText out;
  rule_shape_text(t, out.s, sizeof out.s);
  return out;
}

static bool rank_fits(u32 rank, RuleError *err) {
  return rank <= TYPE_MAX_RANK || fail(err, EK_shape, "the result has rank %u; the limit is %d", rank, TYPE_MAX_RANK);
}

/* ---- axes ---------------------------------------------------------------------------------------- */

bool rule_axes(u32 n, const i64 *axes, u32 rank, u32 *mask, RuleError *err) {
  *mask = 0;
  for (u32 i = 0; i < n; i++) {
    u32 a;
    if (!rule_axis(axes[i], rank, &a, err)) return false;
    if (*mask >> a & 1) return fail(err, EK_value, "axis %lld is given twice", (long long)axes[i]);
    *mask |= 1u << a;
  }
  return true;
}

bool rule_permutation(u32 n, const i64 *axes, u32 rank, u32 *perm, RuleError *err) {
  if (n != rank) return fail(err, EK_shape, "%u axes are given for rank %u", n, rank);
  u32 mask;
  if (!rule_axes(n, axes, rank, &mask, err)) return false;
  for (u32 i = 0; i < n; i++) perm[i] = (u32)(axes[i] < 0 ? axes[i] + rank : axes[i]);
  return true;
}

bool rule_moveaxis(u32 n, const i64 *source, const i64 *destination, u32 rank, u32 *perm, RuleError *err) {
  u32 from, to;
  if (!rule_axes(n, source, rank, &from, err) || !rule_axes(n, destination, rank, &to, err)) return false;
  u32 rest = 0;
  for (u32 d = 0; d < rank; d++) {
    if (to >> d & 1) continue;
    while (from >> rest & 1) rest++;
    perm[d] = rest++;
  }
  for (u32 i = 0; i < n; i++)
    perm[destination[i] < 0 ? destination[i] + rank
                            : destination[i]] = (u32)(source[i] < 0 ? source[i] + rank : source[i]);
  return true;
}

bool rule_swapaxes(i64 a, i64 b, u32 rank, u32 *perm, RuleError *err) {
  u32 x, y;
  if (!rule_axis(a, rank, &x, err) || !rule_axis(b, rank, &y, err)) return false;
  for (u32 d = 0; d < rank; d++) perm[d] = d;
  perm[x] = y;
  perm[y] = x;
  return true;
}

/* ---- views --------------------------------------------------------------------------------------- */

void shape_transpose(const ArrayType *x, const u32 *perm, ArrayType *out) {
  out->rank = x->rank;
  for (u32 d = 0; d < x->rank; d++) out->dims[d] = x->dims[perm[d]];
}

static Dim product(DimCtx *c, u32 n, const Dim *dims) {
  for (u32 d = 0; d < n; d++)
    if (dims[d] == 0) return 0; /* before saturation: (2**40, 2**40, 0) is empty */
  Dim p = 1;
  for (u32 d = 0; d < n; d++) p = p == 1 ? dims[d] : dims[d] == 1 ? p : dim_binary(c, '*', p, dims[d]);
  return p;
}

/* What is left of two shapes without the sizes that stand in both, each once: products of the rest are smaller, and a
 * quotient of them is said without what cancels. Sizes of 0 stay. */
static void without_common(const ArrayType *x, u32 *nrest, Dim *rest, ArrayType *left) {
  bool used[TYPE_MAX_RANK] = {0};
  u32 kept = 0;
  *left = (ArrayType){.dtype = x->dtype};
  for (u32 i = 0; i < *nrest; i++) {
    u32 k = 0;
    while (k < x->rank && (used[k] || x->dims[k] != rest[i] || rest[i] == 0)) k++;
    if (k < x->rank) used[k] = true;
    else rest[kept++] = rest[i];
  }
  *nrest = kept;
  for (u32 k = 0; k < x->rank; k++)
    if (!used[k]) left->dims[left->rank++] = x->dims[k];
}

bool shape_reshape(DimCtx *c, const ArrayType *x, u32 rank, const Dim *dims, ArrayType *out, RuleError *err) {
  if (!rank_fits(rank, err)) return false;
  u32 infer = rank;
  Dim rest[TYPE_MAX_RANK] = {0};
  u32 nrest = 0;
  out->rank = (u8)rank;
  for (u32 d = 0; d < rank; d++) {
    out->dims[d] = dims[d];
    if (dims[d] != DIM_INFER) {
      rest[nrest++] = dims[d];
      continue;
    }
    if (infer < rank) return fail(err, EK_value, "only one size may be -1");
    infer = d;
  }
  if (infer < rank) {
    out->dims[infer] = 1;
    if (dim_equal(c, product(c, nrest, rest), 0))
      return fail(err, EK_shape, "the size -1 cannot be told when another is 0");
  }
  ArrayType left = *x;
  u32 all = nrest;
  Dim every[TYPE_MAX_RANK] = {0};
  memcpy(every, rest, sizeof every);
  if (c) without_common(x, &nrest, rest, &left);
  Dim known = product(c, nrest, rest), total = product(c, left.rank, left.dims);
  if (infer < rank) {
    if (known == 1) {
      out->dims[infer] = total;
      return true;
    }
    Dim size = dim_binary(c, '/', total, known);
    out->dims[infer] = size;
    if (dim_equal(c, dim_binary(c, '*', size, known), total)) return true;
    out->dims[infer] = -1;
  } else if (dim_equal(c, known, total) ||
             (all != nrest && dim_equal(c, product(c, all, every), product(c, x->rank, x->dims)))) {
    return true;
  }
  /* the sizes as they were written, -1 included */
  char want[96];
  size_t n = (size_t)snprintf(want, sizeof want, "(");
  for (u32 d = 0; d < rank && n + 24 < sizeof want; d++) {
    const char *sep = d ? ", " : "";
    if (dims[d] == DIM_INFER) n += (size_t)snprintf(want + n, sizeof want - n, "%s-1", sep);
    else if (dims[d] < 0) n += (size_t)snprintf(want + n, sizeof want - n, "%sn%lld", sep, (long long)-dims[d]);
    else n += (size_t)snprintf(want + n, sizeof want - n, "%s%lld", sep, (long long)dims[d]);
  }
  snprintf(want + n, sizeof want - n, rank == 1 ? ",)" : ")");
  return fail(err, EK_shape, "shape %s cannot become %s: the number of elements differs", shape_text_of(x).s, want);
}

void shape_ravel(DimCtx *c, const ArrayType *x, ArrayType *out) {
  Dim total = product(c, x->rank, x->dims);
  out->rank = 1;
  out->dims[0] = total;
}

bool shape_squeeze(DimCtx *c, const ArrayType *x, bool all, u32 mask, ArrayType *out, u32 *dropped, RuleError *err) {
  u32 n = 0;
  *dropped = 0;
  for (u32 d = 0; d < x->rank; d++) {
    bool asked = all || mask >> d & 1;
    if (asked && dim_is_one(c, x->dims[d])) {
      *dropped |= 1u << d;
      continue;
    }
    if (asked && !all) return fail(err, EK_shape, "axis %u of shape %s has not the size 1", d, shape_text_of(x).s);
    out->dims[n++] = x->dims[d];
  }
  out->rank = (u8)n;
  return true;
}

bool shape_expand_dims(const ArrayType *x, u32 n, const i64 *axes, ArrayType *out, u32 *added, RuleError *err) {
  u32 rank = x->rank + n;
  if (!rank_fits(rank, err) || !rule_axes(n, axes, rank, added, err)) return false;
  for (u32 d = 0, from = 0; d < rank; d++) out->dims[d] = *added >> d & 1 ? 1 : x->dims[from++];
  out->rank = (u8)rank;
  return true;
}

bool shape_broadcast_to(DimCtx *c, const ArrayType *x, u32 rank, const Dim *dims, ArrayType *out, RuleError *err) {
  if (!rank_fits(rank, err)) return false;
  out->rank = (u8)rank;
  memcpy(out->dims, dims, rank * sizeof *dims);
  bool fits = x->rank <= rank;
  for (u32 d = 0; fits && d < x->rank; d++)
    fits = dim_equal(c, x->dims[d], dims[d + rank - x->rank]) || dim_is_one(c, x->dims[d]);
  return fits || fail(err, EK_shape, "shape %s does not broadcast to %s", shape_text_of(x).s, shape_text_of(out).s);
}

bool shape_concat(DimCtx *c, u32 n, const ArrayType *const *xs, i64 axis, ArrayType *out, RuleError *err) {
  u32 a;
  if (n == 0) return fail(err, EK_value, "needs at least one array");
  if (xs[0]->rank == 0)
    return fail(err, EK_shape, "arrays of rank 0 have no axis to join along; stack joins them along a new one");
  if (!rule_axis(axis, xs[0]->rank, &a, err)) return false;
  Dim total = xs[0]->dims[a];
  for (u32 i = 1; i < n; i++) {
    bool same = xs[i]->rank == xs[0]->rank;
    for (u32 d = 0; same && d < xs[0]->rank; d++) same = d == a || dim_equal(c, xs[i]->dims[d], xs[0]->dims[d]);
    if (!same)
      return fail(err, EK_shape, "shapes %s and %s (item %u) differ on another axis than %u", shape_text_of(xs[0]).s,
                  shape_text_of(xs[i]).s, i, a);
    total = dim_binary(c, '+', total, xs[i]->dims[a]);
  }
  out->rank = xs[0]->rank;
  for (u32 d = 0; d < xs[0]->rank; d++) out->dims[d] = d == a ? total : xs[0]->dims[d];
  return true;
}

bool shape_stack(DimCtx *c, u32 n, const ArrayType *const *xs, i64 axis, ArrayType *out, RuleError *err) {
  u32 a;
  if (n == 0) return fail(err, EK_value, "needs at least one array");
  u32 rank = xs[0]->rank + 1u;
  if (!rank_fits(rank, err) || !rule_axis(axis, rank, &a, err)) return false;
  for (u32 i = 1; i < n; i++) {
    bool same = xs[i]->rank == xs[0]->rank;
    for (u32 d = 0; same && d < xs[0]->rank; d++) same = dim_equal(c, xs[i]->dims[d], xs[0]->dims[d]);
    if (!same)
      return fail(err, EK_shape, "shapes %s and %s (item %u) differ", shape_text_of(xs[0]).s,
                  shape_text_of(xs[i]).s, i);
  }
  for (u32 d = 0, from = 0; d < rank; d++) out->dims[d] = d == a ? (Dim)n : xs[0]->dims[from++];
  out->rank = (u8)rank;
  return true;
}

bool shape_tile(DimCtx *c, const ArrayType *x, u32 n, const Dim *reps, ArrayType *out, RuleError *err) {
  u32 rank = n > x->rank ? n : x->rank;
  if (!rank_fits(rank, err)) return false;
  for (u32 d = 0; d < rank; d++) {
    Dim size = d + x->rank < rank ? 1 : x->dims[d + x->rank - rank];
    Dim rep = d + n < rank ? 1 : reps[d + n - rank];
    out->dims[d] = rep == 1 ? size : size == 1 ? rep : dim_binary(c, '*', size, rep);
  }
  out->rank = (u8)rank;
  return true;
}

void shape_pad(DimCtx *c, const ArrayType *x, const Dim *before, const Dim *after, ArrayType *out) {
  for (u32 d = 0; d < x->rank; d++)
    out->dims[d] = dim_binary(c, '+', dim_binary(c, '+', x->dims[d], before[d]), after[d]);
  out->rank = x->rank;
}

__attribute__((cold)) bool shape_sliding_window(DimCtx *c, const ArrayType *x, u32 n, const Dim *windows,
                                                const u32 *axes, ArrayType *out, RuleError *err) {
  u32 rank = x->rank + n;
  if (!rank_fits(rank, err)) return false;
  Dim dims[TYPE_MAX_RANK];
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  for (u32 i = 0; i < n; i++) {
    u32 a = axes[i];
    if (windows[i] == 0 || (windows[i] < 0 && !dim_equal(c, dim_binary(c, 'M', windows[i], 1), windows[i])))
      return fail(err, EK_value, "a window has at least one element");
    if (windows[i] > 0 && dims[a] >= 0 && windows[i] > dims[a])
      return fail(err, EK_value, "a window of %lld is longer than axis %u, which is %lld", (long long)windows[i], a,
                  (long long)dims[a]);
    if ((windows[i] < 0 || dims[a] < 0) && !dim_equal(c, dim_binary(c, 'm', windows[i], dims[a]), windows[i]))
      return fail(err, EK_value, "a window is longer than its axis"); /* sizes that are symbols: a guard */
    dims[a] = dim_binary(c, '-', dim_binary(c, '+', dims[a], 1), windows[i]);
    dims[x->rank + i] = windows[i];
  }
  out->rank = (u8)rank;
  memcpy(out->dims, dims, rank * sizeof *dims);
  return true;
}

bool shape_diff(DimCtx *c, const ArrayType *x, i64 n, i64 axis, ArrayType *out, RuleError *err) {
  u32 a;
  if (!rule_axis(axis, x->rank, &a, err)) return false;
  if (n < 0) return fail(err, EK_value, "n is %lld, needs 0 or more", (long long)n);
  out->rank = x->rank;
  for (u32 d = 0; d < x->rank; d++) out->dims[d] = d == a ? dim_binary(c, '-', x->dims[d], n) : x->dims[d];
  return true;
}

bool shape_scan(DimCtx *c, const ArrayType *x, bool flat, i64 axis, bool include_initial, ArrayType *out,
                RuleError *err) {
  u32 a = 0;
  if (flat && x->rank > 1) return fail(err, EK_value, "shape %s needs an axis; ravel(x) is flat", shape_text_of(x).s);
  if (flat) {
    shape_ravel(c, x, out);
  } else {
    if (!rule_axis(axis, x->rank, &a, err)) return false;
    out->rank = x->rank;
    memmove(out->dims, x->dims, x->rank * sizeof(Dim));
  }
  if (include_initial) out->dims[a] = dim_binary(c, '+', out->dims[a], 1);
  return true;
}

/* ---- selecting ----------------------------------------------------------------------------------- */

bool shape_take(DimCtx *c, const ArrayType *x, const ArrayType *indices, bool flat, i64 axis, ArrayType *out,
                RuleError *err) {
  u32 a = 0;
  ArrayType from = *x;
  if (flat) shape_ravel(c, x, &from);
  else if (!rule_axis(axis, x->rank, &a, err)) return false;
  u32 rank = from.rank - 1u + indices->rank;
  if (!rank_fits(rank, err)) return false;
  u32 n = 0;
  Dim dims[TYPE_MAX_RANK];
  for (u32 d = 0; d < a; d++) dims[n++] = from.dims[d];
  for (u32 d = 0; d < indices->rank; d++) dims[n++] = indices->dims[d];
  for (u32 d = a + 1; d < from.rank; d++) dims[n++] = from.dims[d];
  out->rank = (u8)n;
  memcpy(out->dims, dims, n * sizeof *dims);
  return true;
}

bool shape_take_along_axis(DimCtx *c, const ArrayType *x, const ArrayType *indices, i64 axis, ArrayType *out,
                           RuleError *err) {
  u32 a;
  if (!rule_axis(axis, x->rank, &a, err)) return false;
  bool fits = indices->rank == x->rank;
  out->rank = x->rank;
  for (u32 d = 0; fits && d < x->rank; d++) {
    Dim xs = x->dims[d], is = indices->dims[d];
    if (d == a || dim_equal(c, xs, is) || dim_is_one(c, xs)) out->dims[d] = is;
    else if (dim_is_one(c, is)) out->dims[d] = xs;
    else fits = false;
  }
  return fits || fail(err, EK_shape, "shapes %s and %s of the indices do not fit off axis %u", shape_text_of(x).s,
                      shape_text_of(indices).s, a);
}

bool shape_one_hot(const ArrayType *x, Dim n, i64 axis, ArrayType *out, RuleError *err) {
  u32 a, rank = x->rank + 1u;
  if (!rank_fits(rank, err) || !rule_axis(axis, rank, &a, err)) return false;
  Dim dims[TYPE_MAX_RANK];
  for (u32 d = 0, from = 0; d < rank; d++) dims[d] = d == a ? n : x->dims[from++];
  out->rank = (u8)rank;
  memcpy(out->dims, dims, rank * sizeof *dims);
  return true;
}

bool shape_resize_axis(const ArrayType *x, i64 axis, Dim n, ArrayType *out, RuleError *err) {
  u32 a;
  if (!rule_axis(axis, x->rank, &a, err)) return false;
  out->rank = x->rank;
  for (u32 d = 0; d < x->rank; d++) out->dims[d] = d == a ? n : x->dims[d];
  return true;
}

/* ---- matrices ------------------------------------------------------------------------------------ */

/* Length of diagonal k of a rows × cols matrix. */
static Dim diagonal_length(DimCtx *c, Dim rows, Dim cols, i64 k) {
  if (k == INT64_MIN) k++;
  if (k >= 0) cols = dim_binary(c, '-', cols, k);
  else rows = dim_binary(c, '-', rows, -k);
  return rows == cols ? rows : dim_binary(c, 'm', rows, cols);
}

bool shape_diag(DimCtx *c, const ArrayType *x, i64 k, ArrayType *out, RuleError *err) {
  if (x->rank == 2) return shape_diagonal(c, x, k, out, err);
  if (x->rank != 1) return fail(err, EK_shape, "needs rank 1 or 2, got shape %s", shape_text_of(x).s);
  if (k <= -DIM_TOO_BIG || k >= DIM_TOO_BIG) return fail(err, EK_value, "k is %lld", (long long)k);
  Dim n = dim_binary(c, '+', x->dims[0], k < 0 ? -k : k);
  out->rank = 2;
  out->dims[0] = out->dims[1] = n;
  return true;
}

bool shape_matrix(const ArrayType *x, RuleError *err) {
  return x->rank >= 2 || fail(err, EK_shape, "needs rank 2 or more, got shape %s", shape_text_of(x).s);
}

__attribute__((cold)) bool shape_diagonal(DimCtx *c, const ArrayType *x, i64 k, ArrayType *out, RuleError *err) {
  if (!shape_matrix(x, err)) return false;
  u32 n = x->rank - 2u;
  Dim length = diagonal_length(c, x->dims[n], x->dims[n + 1], k);
  memmove(out->dims, x->dims, n * sizeof(Dim));
  out->dims[n] = length;
  out->rank = (u8)(n + 1);
  return true;
}

__attribute__((cold)) bool shape_square(DimCtx *c, const ArrayType *x, RuleError *err) {
  if (!shape_matrix(x, err)) return false;
  return dim_equal(c, x->dims[x->rank - 2], x->dims[x->rank - 1]) ||
         fail(err, EK_shape, "needs square matrices, got shape %s", shape_text_of(x).s);
}

static bool are_pairs(DimCtx *c, const ArrayType *x, RuleError *err) {
  return (x->rank >= 2 && dim_equal(c, x->dims[x->rank - 1], 2)) ||
         fail(err, EK_shape, "needs pairs along the last axis, got shape %s", shape_text_of(x).s);
}

bool shape_fft_pairs(DimCtx *c, const ArrayType *x, RuleError *err) {
  if (dtype_kind(x->dtype) != DK_COMPLEX) return are_pairs(c, x, err);
  return x->rank > 0 || fail(err, EK_shape, "needs rank 1 or more, got a complex number");
}

bool shape_fft_real(DimCtx *c, const ArrayType *x, ArrayType *out, RuleError *err) {
  if (x->rank == 0 || x->rank >= TYPE_MAX_RANK)
    return fail(err, EK_shape, "needs rank 1 to %d, got shape %s", TYPE_MAX_RANK - 1, shape_text_of(x).s);
  *out = *x;
  out->dims[x->rank - 1] = dim_binary(c, '+', dim_binary(c, '/', x->dims[x->rank - 1], 2), 1);
  out->dims[out->rank++] = 2;
  return true;
}

bool shape_fft_whole(DimCtx *c, const ArrayType *x, Dim n, ArrayType *out, RuleError *err) {
  if (!are_pairs(c, x, err)) return false;
  *out = *x;
  out->rank--;
  if (!dim_equal(c, x->dims[out->rank - 1], dim_binary(c, '+', dim_binary(c, '/', n, 2), 1)))
    return fail(err, EK_shape, "x of shape %s is not half the transform of so many numbers", shape_text_of(x).s);
  out->dims[out->rank - 1] = n;
  return true;
}

static bool misaligned(RuleError *err, const ArrayType *x, const ArrayType *y, u32 xa, u32 ya) {
  return fail(err, EK_shape,
              "shapes %s and %s do not align: axis %u of the first is %lld, axis %u of the second is %lld",
              shape_text_of(x).s, shape_text_of(y).s, xa, (long long)x->dims[xa], ya, (long long)y->dims[ya]);
}

static bool needs_axes(RuleError *err, const ArrayType *x, const ArrayType *y) {
  return (x->rank > 0 && y->rank > 0) ||
         fail(err, EK_shape, "needs rank 1 or more, got shapes %s and %s", shape_text_of(x).s, shape_text_of(y).s);
}

/* The axes before the last `keep` of x and y, broadcast. */
static bool broadcast_batch(DimCtx *c, const ArrayType *x, u32 x_keep, const ArrayType *y, u32 y_keep, ArrayType *out,
                            RuleError *err) {
  ArrayType bx = *x, by = *y;
  const ArrayType *both[2] = {&bx, &by};
  bx.rank = (u8)(x->rank - x_keep);
  by.rank = (u8)(y->rank - y_keep);
  RuleError inner;
  return rule_broadcast(c, 2, both, out, &inner) ||
         fail(err, EK_shape, "shapes %s and %s: the axes before the matrices do not broadcast", shape_text_of(x).s,
              shape_text_of(y).s);
}

bool shape_matmul(DimCtx *c, const ArrayType *x, const ArrayType *y, ArrayType *out, RuleError *err) {
  if (!needs_axes(err, x, y)) return false;
  u32 xa = x->rank - 1u, ya = y->rank >= 2 ? y->rank - 2u : 0;
  if (!dim_equal(c, x->dims[xa], y->dims[ya])) return misaligned(err, x, y, xa, ya);
  ArrayType batch;
  if (!broadcast_batch(c, x, x->rank >= 2 ? 2 : 1, y, y->rank >= 2 ? 2 : 1, &batch, err)) return false;
  u32 n = batch.rank;
  Dim rows = x->rank >= 2 ? x->dims[x->rank - 2] : 0, cols = y->dims[y->rank - 1u];
  bool has_rows = x->rank >= 2, has_cols = y->rank >= 2;
  memcpy(out->dims, batch.dims, n * sizeof(Dim));
  if (has_rows) out->dims[n++] = rows;
  if (has_cols) out->dims[n++] = cols;
  out->rank = (u8)n;
  return true;
}

bool shape_dot(DimCtx *c, const ArrayType *x, const ArrayType *y, ArrayType *out, RuleError *err) {
  Dim dims[2 * TYPE_MAX_RANK];
  u32 n = 0;
  if (x->rank == 0 || y->rank == 0) {
    for (u32 d = 0; d < x->rank; d++) dims[n++] = x->dims[d];
    for (u32 d = 0; d < y->rank; d++) dims[n++] = y->dims[d];
  } else {
    u32 xa = x->rank - 1u, ya = y->rank >= 2 ? y->rank - 2u : 0;
    if (!dim_equal(c, x->dims[xa], y->dims[ya])) return misaligned(err, x, y, xa, ya);
    for (u32 d = 0; d < xa; d++) dims[n++] = x->dims[d];
    for (u32 d = 0; d < y->rank; d++)
      if (d != ya) dims[n++] = y->dims[d];
  }
  if (!rank_fits(n, err)) return false;
  out->rank = (u8)n;
  memcpy(out->dims, dims, n * sizeof *dims);
  return true;
}

bool shape_vecdot(DimCtx *c, const ArrayType *x, const ArrayType *y, i64 axis, ArrayType *out, RuleError *err) {
  if (!needs_axes(err, x, y)) return false;
  /* the axis counts from the end of both, as they are broadcast */
  u32 rank = x->rank > y->rank ? x->rank : y->rank, a;
  if (!rule_axis(axis, rank, &a, err)) return false;
  u32 back = rank - a;
  if (back > x->rank || back > y->rank)
    return fail(err, EK_index, "axis %lld is not in both shapes %s and %s", (long long)axis, shape_text_of(x).s,
                shape_text_of(y).s);
  u32 xa = x->rank - back, ya = y->rank - back;
  if (!dim_equal(c, x->dims[xa], y->dims[ya])) return misaligned(err, x, y, xa, ya);
  const ArrayType *both[2] = {x, y};
  ArrayType all;
  if (!rule_broadcast(c, 2, both, &all, err)) return false;
  rule_reduce(&all, 1u << a, false, out);
  return true;
}

__attribute__((cold)) bool shape_tensordot(DimCtx *c, const ArrayType *x, const ArrayType *y, u32 n, const i64 *x_axes,
                                           const i64 *y_axes, u32 *xa, u32 *ya, ArrayType *out, RuleError *err) {
  u32 xm, ym;
  if (!rule_axes(n, x_axes, x->rank, &xm, err) || !rule_axes(n, y_axes, y->rank, &ym, err)) return false;
  for (u32 i = 0; i < n; i++) {
    xa[i] = (u32)(x_axes[i] < 0 ? x_axes[i] + x->rank : x_axes[i]);
    ya[i] = (u32)(y_axes[i] < 0 ? y_axes[i] + y->rank : y_axes[i]);
    if (!dim_equal(c, x->dims[xa[i]], y->dims[ya[i]])) return misaligned(err, x, y, xa[i], ya[i]);
  }
  Dim dims[2 * TYPE_MAX_RANK];
  u32 rank = 0;
  for (u32 d = 0; d < x->rank; d++)
    if (!(xm >> d & 1)) dims[rank++] = x->dims[d];
  for (u32 d = 0; d < y->rank; d++)
    if (!(ym >> d & 1)) dims[rank++] = y->dims[d];
  if (!rank_fits(rank, err)) return false;
  out->rank = (u8)rank;
  memcpy(out->dims, dims, rank * sizeof *dims);
  return true;
}

__attribute__((cold)) bool shape_solve(DimCtx *c, const ArrayType *a, const ArrayType *b, ArrayType *out,
                                       RuleError *err) {
  if (!shape_square(c, a, err)) return false;
  if (b->rank == 0) return fail(err, EK_shape, "the right-hand side needs rank 1 or more");
  u32 keep = b->rank == 1 ? 1 : 2, ba = b->rank - keep;
  if (!dim_equal(c, a->dims[a->rank - 1], b->dims[ba])) return misaligned(err, a, b, a->rank - 1u, ba);
  ArrayType batch;
  if (!broadcast_batch(c, a, 2, b, keep, &batch, err)) return false;
  u32 n = batch.rank;
  Dim tail[2] = {b->dims[ba], b->dims[b->rank - 1]};
  memcpy(out->dims, batch.dims, n * sizeof(Dim));
  for (u32 i = 0; i < keep; i++) out->dims[n++] = tail[i];
  out->rank = (u8)n;
  return true;
}

bool shape_kron(DimCtx *c, const ArrayType *x, const ArrayType *y, ArrayType *out, RuleError *err) {
  return shape_tile(c, x, y->rank, y->dims, out, err); /* sizes multiply from the last axis on, like repeats */
}

__attribute__((cold)) bool shape_cross(DimCtx *c, const ArrayType *x, const ArrayType *y, i64 axis, ArrayType *out,
                                       RuleError *err) {
  if (!needs_axes(err, x, y)) return false;
  const ArrayType *both[2] = {x, y};
  ArrayType all;
  if (!rule_broadcast(c, 2, both, &all, err)) return false;
  u32 a;
  if (!rule_axis(axis, all.rank, &a, err)) return false;
  if (!dim_equal(c, all.dims[a], 3))
    return fail(err, EK_shape, "axis %u of shapes %s and %s must be 3", a, shape_text_of(x).s, shape_text_of(y).s);
  out->rank = all.rank;
  memcpy(out->dims, all.dims, all.rank * sizeof(Dim));
  return true;
}

/* ---- einsum -------------------------------------------------------------------------------------- */

typedef struct EinsumTerm {
  u8 labels[TYPE_MAX_RANK]; /* letters; 0 stands where `...` is */
  EinsumWindow windows[TYPE_MAX_RANK];
  u32 count;
  bool dots;
} EinsumTerm;

static bool is_letter(char ch) { return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z'); }

__attribute__((cold)) bool einsum_window(const char **s, const char *end, EinsumWindow *w) {
  enum { LONGEST_STEP = 1 << 20 };
  u8 letters[2];
  const char *at = *s + 1;
  for (u32 i = 0; i < 2; i++) {
    bool given = false;
    w->steps[i] = 0;
    for (; at < end && ((*at >= '0' && *at <= '9') || *at == ' '); at++) {
      if (*at == ' ') continue;
      w->steps[i] = w->steps[i] * 10 + (*at - '0');
      given = true;
      if (w->steps[i] > LONGEST_STEP) return false;
    }
    if (!given) w->steps[i] = 1;
    if (at == end || !is_letter(*at) || w->steps[i] == 0) return false;
    letters[i] = (u8)*at++;
    while (at < end && *at == ' ') at++;
    if (at == end || *at != (i ? ')' : '+')) return false;
    if (!i) at++;
  }
  w->first = letters[0];
  w->second = letters[1];
  *s = at;
  return true;
}

__attribute__((cold)) static bool parse_term(const char **s, const char *end, EinsumTerm *t, RuleError *err) {
  *t = (EinsumTerm){.count = 0};
  for (; *s < end && **s != ',' && **s != '-'; (*s)++) {
    char ch = **s;
    if (ch == ' ') continue;
    if (t->count == TYPE_MAX_RANK) return rank_fits(TYPE_MAX_RANK + 1, err);
    if (ch == '.') {
      if (end - *s < 3 || (*s)[1] != '.' || (*s)[2] != '.' || t->dots)
        return fail(err, EK_value, "the spec may hold one '...' per operand");
      t->dots = true;
      t->labels[t->count++] = 0;
      *s += 2;
    } else if (is_letter(ch)) {
      t->labels[t->count++] = (u8)ch;
    } else if (ch == '(') {
      EinsumWindow *w = &t->windows[t->count];
      if (!einsum_window(s, end, w)) return fail(err, EK_value, "windows in the spec are written like (2p+3i)");
      t->labels[t->count++] = w->first;
    } else {
      return fail(err, EK_value, "the spec holds '%c'; labels are letters", ch);
    }
  }
  return true;
}

/* Keys of labels while they are numbered: letters, and 128 + k for the k-th axis from the end under `...`. windows may
 * be NULL. */
static u32 expand(const EinsumTerm *t, u32 dots_rank, u8 *keys, EinsumWindow *windows) {
  u32 n = 0;
  for (u32 i = 0; i < t->count; i++) {
    if (windows && t->labels[i]) windows[n] = t->windows[i];
    if (t->labels[i]) keys[n++] = t->labels[i];
    else
      for (u32 k = dots_rank; k-- > 0;) keys[n++] = (u8)(128 + k);
  }
  return n;
}

/* The size of a letter of window w, of an axis of n items, when that of the other letter is known. */
static bool window_size(DimCtx *c, const EinsumWindow *w, Dim n, u32 given, Dim size, Dim *out, RuleError *err) {
  if (size == 0) return fail(err, EK_value, "window (%c+%c) has no elements", w->first, w->second);
  const bool numbers = n >= 0 && size >= 0;
  Dim before = dim_binary(c, '*', dim_binary(c, '-', size, 1), w->steps[given]);
  if (numbers && before >= n)
    return fail(err, EK_shape, "window (%c+%c) does not fit %lld items", w->first, w->second, (long long)n);
  Dim left = dim_binary(c, '-', n, before), span = dim_binary(c, '+', before, 1);
  if (!numbers && !dim_equal(c, dim_binary(c, 'm', span, n), span)) /* symbols: a guard */
    return fail(err, EK_shape, "window (%c+%c) does not fit its axis", w->first, w->second);
  const i64 step = w->steps[!given];
  *out = step == 1 ? left : dim_binary(c, '+', dim_binary(c, '/', dim_binary(c, '-', left, 1), step), 1);
  return true;
}

/* Sizes that windows give to letters that no other axis has; the others must fit. number: labels of letters. */
static bool window_sizes(DimCtx *c, u32 n, const ArrayType *const *xs, EinsumWindow windows[][TYPE_MAX_RANK],
                         const u8 *number, EinsumPlan *plan, bool *known, RuleError *err) {
  bool again = true, done[EINSUM_MAX_OPERANDS][TYPE_MAX_RANK] = {{false}};
  const EinsumWindow *left = NULL;
  while (again) {
    again = false;
    left = NULL;
    for (u32 i = 0; i < n; i++)
      for (u32 d = 0; d < xs[i]->rank; d++) {
        EinsumWindow *w = &windows[i][d];
        if (!w->second || done[i][d]) continue;
        const u32 labels[2] = {number[w->first], number[w->second]}, given = known[labels[1]] ? 1 : 0;
        Dim size = 0, other = plan->dims[labels[!given]];
        if (!known[labels[given]]) {
          left = w;
          continue;
        }
        if (!window_size(c, w, xs[i]->dims[d], given, plan->dims[labels[given]], &size, err)) return false;
        if (!known[labels[!given]]) plan->dims[labels[!given]] = size;
        else if (!dim_equal(c, other, size) && !dim_equal(c, dim_binary(c, 'm', other, size), other))
          return fail(err, EK_shape, "window (%c+%c) does not fit its axis", w->first, w->second);
        known[labels[!given]] = again = done[i][d] = true;
      }
  }
  return !left || fail(err, EK_shape, "window (%c+%c): no other axis gives the size of %c or %c", left->first,
                       left->second, left->first, left->second);
}

__attribute__((cold)) bool shape_einsum(DimCtx *c, const char *spec, size_t len, u32 n, const ArrayType *const *xs,
                                        EinsumPlan *plan, ArrayType *out, RuleError *err) {
  const char *s = spec, *end = spec + len;
  EinsumTerm terms[EINSUM_MAX_OPERANDS], result = {.count = 0};
  u8 keys[EINSUM_MAX_OPERANDS][TYPE_MAX_RANK];
  EinsumWindow windows[EINSUM_MAX_OPERANDS][TYPE_MAX_RANK] = {0};
  bool any_window = false;
  u32 dots_rank[EINSUM_MAX_OPERANDS], widest = 0, count = 0;
  *plan = (EinsumPlan){.operands = n};
  if (n == 0 || n > EINSUM_MAX_OPERANDS)
    return fail(err, EK_value, "takes 1 to %d arrays, got %u", EINSUM_MAX_OPERANDS, n);
  for (;; s++) {
    if (count == EINSUM_MAX_OPERANDS) return fail(err, EK_value, "takes 1 to %d arrays", EINSUM_MAX_OPERANDS);
    if (!parse_term(&s, end, &terms[count++], err)) return false;
    if (s >= end || *s != ',') break;
  }
  bool explicit_result = s < end;
  if (explicit_result) {
    if (end - s < 2 || s[1] != '>') return fail(err, EK_value, "the spec has '-' without '>'");
    s += 2;
    if (!parse_term(&s, end, &result, err)) return false;
    if (s < end) return fail(err, EK_value, "the spec goes on after its result");
    for (u32 i = 0; i < result.count; i++)
      if (result.windows[i].second) return fail(err, EK_value, "the spec's result holds a window");
  }
  if (count != n) return fail(err, EK_value, "the spec names %u operands, got %u", count, n);
  u8 seen[256] = {0};
  for (u32 i = 0; i < n; i++) {
    u32 letters = terms[i].count - (terms[i].dots ? 1u : 0u);
    if (terms[i].dots ? letters > xs[i]->rank : letters != xs[i]->rank)
      return fail(err, EK_shape, "operand %u has shape %s, the spec gives it %u labels", i,
                  shape_text_of(xs[i]).s, letters);
    dots_rank[i] = xs[i]->rank - letters;
    if (terms[i].dots && dots_rank[i] > widest) widest = dots_rank[i];
    (void)expand(&terms[i], dots_rank[i], keys[i], windows[i]);
    u32 rank = xs[i]->rank;
    for (u32 d = 0; d < xs[i]->rank; d++) {
      const EinsumWindow *w = &windows[i][d];
      if (seen[keys[i][d]] < 2) seen[keys[i][d]]++;
      if (!w->second) continue;
      any_window = true;
      rank++;
      if (seen[w->second] < 2) seen[w->second]++;
      bool twice = w->first == w->second;
      for (u32 k = 0; k < xs[i]->rank; k++) {
        const u8 second = windows[i][k].second;
        if (k == d) continue;
        twice |= keys[i][k] == w->first || keys[i][k] == w->second || second == w->first || second == w->second;
      }
      if (twice)
        return fail(err, EK_value, "a letter of window (%c+%c) stands twice in operand %u", w->first, w->second, i);
    }
    if (!rank_fits(rank, err)) return false;
  }
  u8 out_keys[2 * TYPE_MAX_RANK + 64];
  u32 out_rank = 0;
  if (explicit_result) {
    if (!rank_fits(result.count + (result.dots ? widest : 0), err)) return false;
    out_rank = expand(&result, widest, out_keys, NULL);
    if (widest && !result.dots) return fail(err, EK_value, "the spec's result leaves out '...'");
  } else { /* what stands under ... first, then letters that occur once, in alphabetical order */
    for (u32 k = widest; k-- > 0;) out_keys[out_rank++] = (u8)(128 + k);
    for (u32 ch = 'A'; ch <= 'z'; ch++)
      if (seen[ch] == 1) out_keys[out_rank++] = (u8)ch;
    if (!rank_fits(out_rank, err)) return false;
  }
  u8 number[256];
  memset(number, 255, sizeof number);
  for (u32 d = 0; d < out_rank; d++) {
    if (number[out_keys[d]] != 255) return fail(err, EK_value, "the spec's result holds '%c' twice", out_keys[d]);
    if (!seen[out_keys[d]])
      return fail(err, EK_value, "the spec's result holds '%c', which no operand has", out_keys[d]);
    number[out_keys[d]] = (u8)plan->labels++;
  }
  plan->out_rank = out_rank;
  bool known[EINSUM_MAX_LABELS] = {false};
  for (u32 i = 0; i < n; i++) {
    for (u32 d = 0; d < xs[i]->rank; d++) {
      u8 key = keys[i][d];
      if (number[key] == 255) {
        if (plan->labels == EINSUM_MAX_LABELS)
          return fail(err, EK_value, "the spec has more than %d labels", EINSUM_MAX_LABELS);
        number[key] = (u8)plan->labels++;
      }
      u32 l = plan->axes[i][d] = number[key];
      EinsumWindow *w = &plan->windows[i][d];
      *w = windows[i][d];
      if (w->second && number[w->second] == 255) {
        if (plan->labels == EINSUM_MAX_LABELS)
          return fail(err, EK_value, "the spec has more than %d labels", EINSUM_MAX_LABELS);
        number[w->second] = (u8)plan->labels++;
      }
      if (w->second) {
        w->second = (u8)(number[w->second] + 1);
        continue; /* sizes below */
      }
      Dim size = xs[i]->dims[d];
      u32 twin = 0; /* a letter that the operand has twice walks a diagonal: nothing is stretched there */
      while (twin < d && keys[i][twin] != key) twin++;
      if (twin < d && !dim_equal(c, xs[i]->dims[twin], size))
        return fail(err, EK_shape, "label %c is %lld and %lld in operand %u", key, (long long)xs[i]->dims[twin],
                    (long long)size, i);
      if (!known[l]) plan->dims[l] = size;
      else if (!dim_equal(c, plan->dims[l], size)) {
        if (dim_is_one(c, plan->dims[l])) plan->dims[l] = size;
        else if (!dim_is_one(c, size)) {
          char label[4] = {(char)key, 0};
          return fail(err, EK_shape, "label %s is %lld and %lld (axis %u of operand %u)", key < 128 ? label : "...",
                      (long long)plan->dims[l], (long long)size, d, i);
        }
      }
      known[l] = true;
    }
  }
  if (any_window && !window_sizes(c, n, xs, windows, number, plan, known, err)) return false;
  out->rank = (u8)out_rank;
  memcpy(out->dims, plan->dims, out_rank * sizeof(Dim));
  return true;
}
