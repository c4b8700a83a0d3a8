/* graph_rules_linalg.c — shape rules: products, decompositions (see graph_infer.h). */
#include "tracer/graph/graph_infer.h"

#include <string.h>

/* ---- one result ---------------------------------------------------------------------------------------------- */

/* The operands, at least so many, and their number; NULL: no rule, or not enough. */
static const ArrayType **operands(Infer *c, u32 must, u32 *n) {
  const ArrayType **xs;
  if (!inf_arrays(c, &xs, n)) return NULL;
  if (*n >= must) return xs;
  inf_no_rule(c);
  return NULL;
}

/* What the dtypes of the operands make of it, when its shape is known. */
static bool made(Infer *c, bool shaped, const ArrayType *const *xs, u32 n) {
  if (!shaped || !inf_dtype(c, xs, n)) return false;
  c->out->weak = false;
  return true;
}

/* A shape that two operands alone decide. */
typedef bool PairShape(DimCtx *c, const ArrayType *x, const ArrayType *y, ArrayType *out, RuleError *err);

static bool of_pair(Infer *c, PairShape *shape) {
  u32 n;
  const ArrayType **xs = operands(c, 2, &n);
  return xs && made(c, shape(c->dims, xs[0], xs[1], c->out, c->err), xs, n);
}

bool infer_matmul(Infer *c) { return of_pair(c, shape_matmul); }
bool infer_dot(Infer *c) { return of_pair(c, shape_dot); }
bool infer_solve(Infer *c) { return of_pair(c, shape_solve); }

bool infer_vecdot(Infer *c) {
  u32 n;
  i64 axis;
  const ArrayType **xs = operands(c, 2, &n);
  if (!xs || !inf_int(c, 2, -1, &axis)) return inf_no_rule(c);
  return made(c, shape_vecdot(c->dims, xs[0], xs[1], axis, c->out, c->err), xs, n);
}

bool infer_cross(Infer *c) {
  u32 n;
  i64 axis;
  const ArrayType **xs = operands(c, 2, &n);
  if (!xs || !inf_int(c, 2, -1, &axis)) return inf_no_rule(c);
  return made(c, shape_cross(c->dims, xs[0], xs[1], axis, c->out, c->err), xs, n);
}

bool infer_outer(Infer *c) {
  u32 n;
  const ArrayType **xs = operands(c, 2, &n);
  if (!xs || xs[0]->rank != 1 || xs[1]->rank != 1) return inf_no_rule(c);
  c->out->rank = 2;
  c->out->dims[0] = xs[0]->dims[0];
  c->out->dims[1] = xs[1]->dims[0];
  return made(c, true, xs, n);
}

bool infer_tensordot(Infer *c) {
  i64 k, xl[TYPE_MAX_RANK], yl[TYPE_MAX_RANK];
  u32 n, xa[TYPE_MAX_RANK], ya[TYPE_MAX_RANK];
  const ArrayType **xs = operands(c, 2, &n);
  if (!xs || !inf_int(c, 2, 2, &k) || k < 0 || k > xs[0]->rank || k > xs[1]->rank) return inf_no_rule(c);
  for (u32 i = 0; i < (u32)k; i++) {
    xl[i] = xs[0]->rank - k + i;
    yl[i] = i;
  }
  return made(c, shape_tensordot(c->dims, xs[0], xs[1], (u32)k, xl, yl, xa, ya, c->out, c->err), xs, n);
}

bool infer_einsum(Infer *c) {
  EinsumPlan plan;
  const GraphArg *spec = &c->args[0];
  u32 n;
  const ArrayType **xs = operands(c, 1, &n);
  if (!xs || spec->kind != ARG_attr || spec->attr->kind != ATTR_text) return inf_no_rule(c);
  return made(c, shape_einsum(c->dims, spec->attr->text, spec->attr->count, n, xs, &plan, c->out, c->err), xs, n);
}

bool infer_kron(Infer *c) {
  u32 n;
  const ArrayType **xs = operands(c, 2, &n);
  if (!xs || xs[0]->rank > TYPE_MAX_RANK / 2 || xs[1]->rank > TYPE_MAX_RANK / 2) return inf_no_rule(c);
  return made(c, shape_kron(c->dims, xs[0], xs[1], c->out, c->err), xs, n);
}

bool infer_diagonal(Infer *c) {
  u32 n;
  i64 k;
  const ArrayType **xs = operands(c, 1, &n);
  if (!xs || !inf_int(c, 1, 0, &k) || !shape_diagonal(c->dims, xs[0], k, c->out, c->err)) return inf_no_rule(c);
  return made(c, true, xs, n);
}

/* Of square matrices, batched: with the last `fewer` axes gone. */
static bool of_square(Infer *c, u32 fewer) {
  u32 n;
  const ArrayType **xs = operands(c, 1, &n);
  if (!xs || !shape_square(c->dims, xs[0], c->err)) return false;
  memcpy(c->out->dims, xs[0]->dims, sizeof c->out->dims);
  c->out->rank = (u8)(xs[0]->rank - fewer);
  return made(c, true, xs, n);
}

bool infer_square(Infer *c) { return of_square(c, 0); }
bool infer_eigvalsh(Infer *c) { return of_square(c, 1); }
bool infer_det(Infer *c) { return of_square(c, 2); }

bool infer_fft_pairs(Infer *c) {
  u32 n;
  const ArrayType **xs = operands(c, 1, &n);
  if (!xs || !shape_fft_pairs(c->dims, xs[0], c->err)) return false;
  *c->out = *xs[0];
  return made(c, true, xs, n);
}

bool infer_fft_real(Infer *c) {
  u32 n;
  const ArrayType **xs = operands(c, 1, &n);
  return xs && made(c, shape_fft_real(c->dims, xs[0], c->out, c->err), xs, n);
}

bool infer_fft_whole(Infer *c) {
  u32 n;
  Dim size;
  const ArrayType **xs = operands(c, 1, &n);
  if (!xs || !inf_dim(c, 1, 0, &size)) return inf_no_rule(c);
  return made(c, shape_fft_whole(c->dims, xs[0], size, c->out, c->err), xs, n);
}

bool infer_matrix_power(Infer *c) { /* a negative power of integers is of floats */
  const ArrayType *x = inf_type(c, 0);
  i64 power;
  if (!x || !inf_int(c, 1, 0, &power) || (power < 0 && dtype_kind(x->dtype) < DK_FLOAT)) return inf_no_rule(c);
  return of_square(c, 0);
}

bool infer_lstsq(Infer *c) {
  u32 n;
  const ArrayType **xs = operands(c, 2, &n), *x = xs ? xs[0] : NULL, *y = xs ? xs[1] : NULL;
  if (!xs || x->rank != 2 || y->rank < 1 || y->rank > 2 || !dim_equal(c->dims, x->dims[0], y->dims[0]))
    return inf_no_rule(c);
  *c->out = *y;
  c->out->dims[0] = x->dims[1];
  return made(c, true, xs, n);
}

bool infer_pinv(Infer *c) {
  u32 n;
  const ArrayType **xs = operands(c, 1, &n);
  if (!xs || !shape_matrix(xs[0], c->err)) return false;
  if (n > 1 && xs[1]->rank) return inf_no_rule(c); /* a tolerance for each matrix */
  *c->out = *xs[0];
  u32 rows = xs[0]->rank - 2u, cols = xs[0]->rank - 1u;
  c->out->dims[rows] = xs[0]->dims[cols];
  c->out->dims[cols] = xs[0]->dims[rows];
  return made(c, true, xs, 1); /* not of the tolerance */
}

bool infer_matrix_norm(Infer *c) {
  u32 n;
  const ArrayType **xs = operands(c, 1, &n);
  if (!xs || !shape_matrix(xs[0], c->err)) return false;
  *c->out = *xs[0];
  c->out->rank = (u8)(xs[0]->rank - 2);
  if (arg_bool(&c->args[op_param_of(c->op, PARAM_flag)], false)) /* keepdims */
    for (u32 i = 0; i < 2; i++) c->out->dims[c->out->rank++] = 1;
  return made(c, true, xs, n);
}

/* ---- several results ----------------------------------------------------------------------------------------- */

/* Sign and logarithm. */
bool infer_slogdet(Infer *c) {
  if (c->capacity < 2) return inf_no_rule(c);
  if (!of_square(c, 2)) return false;
  c->out[1] = c->out[0];
  c->out[1].dtype = (u8)dtype_real_of(c->out[0].dtype);
  c->count = 2;
  return true;
}

/* Eigenvalues, then a matrix of vectors. */
bool infer_eigh(Infer *c) {
  if (c->capacity < 2) return inf_no_rule(c);
  if (!of_square(c, 1)) return false;
  c->out[1] = c->out[0];
  c->out[0].dtype = (u8)dtype_real_of(c->out[1].dtype);
  c->out[1].rank++;
  c->count = 2;
  return true;
}

/* Those of any square matrix are complex. */
bool infer_eigvals(Infer *c) {
  if (!of_square(c, 1)) return false;
  c->out->dtype = (u8)dtype_complex_of(c->out->dtype);
  return true;
}

bool infer_eig(Infer *c) {
  if (c->capacity < 2) return inf_no_rule(c);
  if (!infer_eigvals(c)) return false;
  c->out[1] = c->out[0];
  c->out[1].rank++;
  c->count = 2;
  return true;
}

/* A matrix of m by n with the dtype of its factors, and how many of them there are at most: min(m, n). */
static const ArrayType *factored(Infer *c, Dim *least) {
  u32 n;
  const ArrayType **xs = operands(c, 1, &n), *x = xs ? xs[0] : NULL;
  if (!x || c->capacity < 3 || !shape_matrix(x, c->err)) {
    inf_no_rule(c);
    return NULL;
  }
  *least = size_min(&c->g->sizes, x->dims[x->rank - 2u], x->dims[x->rank - 1u]);
  if (*least == DIM_NONE) {
    inf_no_rule(c);
    return NULL;
  }
  inf_same(c, x);
  return inf_dtype(c, &x, 1) ? x : NULL;
}

bool infer_svdvals(Infer *c) {
  Dim least;
  const ArrayType *x = factored(c, &least);
  if (!x) return false;
  c->out->rank--;
  c->out->dims[x->rank - 2u] = least;
  return true;
}

/* U, S and Vh */
bool infer_svd(Infer *c) {
  ArrayType *out = c->out;
  bool full = arg_bool(&c->args[1], true);
  Dim least;
  const ArrayType *x = factored(c, &least);
  if (!x) return false;
  u32 rows = x->rank - 2u, cols = x->rank - 1u;
  out[1] = out[2] = out[0];
  out[0].dims[cols] = full ? x->dims[rows] : least;
  out[1].dtype = (u8)dtype_real_of(out[0].dtype);
  out[1].rank--;
  out[1].dims[rows] = least;
  out[2].dims[rows] = full ? x->dims[cols] : least;
  c->count = 3;
  return true;
}

/* Q and R */
bool infer_qr(Infer *c) {
  static const char *const modes[] = {"complete", "reduced", NULL};
  ArrayType *out = c->out;
  bool full = inf_given(c, 1) && inf_is_word(c, 1, modes) && c->args[1].attr->count == sizeof "complete" - 1;
  Dim least;
  if (inf_given(c, 1) && !inf_is_word(c, 1, modes)) return inf_no_rule(c);
  const ArrayType *x = factored(c, &least);
  if (!x) return false;
  u32 rows = x->rank - 2u, cols = x->rank - 1u;
  out[1] = out[0];
  out[0].dims[cols] = out[1].dims[rows] = full ? x->dims[rows] : least;
  c->count = 2;
  return true;
}
