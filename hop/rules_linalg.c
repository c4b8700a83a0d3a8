/* rules_linalg.c — derivative rules of the module linalg: solutions, determinants, factors, and what is made of
 * products. All hold for batches. Functions of symmetric matrices (cholesky, eigh, eigvalsh) have a symmetric
 * derivative, of complex ones a Hermitian one. Rules of holomorphic functions conjugate nothing (TURN). The others are
 * written for the conjugate of a cotangent, whose product with a change, conjugated and summed, is the real change of
 * the result: they take FLIP of what comes, give FLIP of what they found, and turn with conjugates (H). Of real numbers
 * both are nothing. */
#include "hop/rules.h"

#include <math.h>
#include <string.h>

#define MM(a, b) dv2(d, OP_matmul, a, b)
#define TURN(a) dv_turned(d, a)
#define FLIP(a) dv_conj(d, a)
#define H(a) dv_conj(d, dv_turned(d, a))

static bool has_phases(u32 dtype) { return dtype_kind(dtype) == DK_COMPLEX; }
static Dv flipped(Deriv *d, Dv g) { return g ? FLIP(g) : 0; }

/* Of no value, after a failure, 0. */
static Dim rows_of(const ArrayType *t) { return t->rank < 2 ? 0 : t->dims[t->rank - 2]; }
static Dim columns_of(const ArrayType *t) { return t->rank < 2 ? 0 : t->dims[t->rank - 1]; }

/* A value of each matrix of a batch beside its elements: two sizes of 1 behind. */
static Dv per_matrix(Deriv *d, Dv v) {
  u32 rank = dv_type(d, v).rank;
  return dv_widened(d, dv_widened(d, v, rank), rank + 1);
}

static Dv identity(Deriv *d, Dim rows, Dim columns, i64 k, u32 dtype) {
  GraphAttr attrs[4] = {attr_dim(0, rows), attr_dim(1, columns), attr_int(2, k), attr_dtype(3, dtype)};
  return d->failed ? 0 : dv_op(d, OP_eye, NULL, 0, attrs, 4);
}

static Dv lower(Deriv *d, Dv x, i64 k) {
  GraphAttr by = attr_int(1, k);
  return dv_op(d, OP_tril, &x, 1, &by, 1);
}

static Dv half(Deriv *d, Dv x) { return MUL(x, NUM(0.5)); }
static Dv symmetric(Deriv *d, Dv x) { return half(d, ADD(x, H(x))); }

/* ---- solutions and determinants ------------------------------------------------------------------------------ */

static void pull_solve(Deriv *d, Dv a, Dv b, Dv y, Dv g, const bool *wants, Dv *out) {
  ArrayType tg = dv_type(d, g);
  bool vector = dv_type(d, b).rank == 1;
  Dv gm = vector ? dv_widened(d, g, tg.rank) : g, ym = vector ? dv_widened(d, y, tg.rank) : y;
  Dv gb = dv2(d, OP_linalg_solve, TURN(a), gm);
  if (wants[0]) out[0] = NEG(MM(gb, TURN(ym)));
  if (wants[1]) out[1] = vector ? dv_reshape(d, gb, tg.rank, tg.dims) : gb;
}

static Dv pull_inv(Deriv *d, Dv y, Dv g) {
  Dv turned = TURN(y);
  return NEG(MM(MM(turned, g), turned));
}

static Dv part_of(Deriv *d, Dv list, u32 k) { return d->failed ? 0 : d->to->item(d, list, k); }

static void svd(Deriv *d, Dv x, Dv *u, Dv *s, Dv *vh) {
  GraphAttr full = attr_bool(1, false);
  Dv all = dv_op(d, OP_linalg_svd, &x, 1, &full, 1);
  *u = part_of(d, all, 0);
  *s = part_of(d, all, 1);
  *vh = part_of(d, all, 2);
}

/* The product of the other elements along the last axis. */
static Dv others(Deriv *d, Dv s, const ArrayType *t) {
  u32 last = t->rank - 1u;
  GraphAttr attrs[3] = {attr_int(1, last), attr_bool(2, false), attr_bool(3, true)};
  Dv before = dv_op(d, OP_cumprod, &s, 1, attrs, 3);
  attrs[1] = attr_bool(2, true);
  Dv behind = dv_op(d, OP_cumprod, &s, 1, attrs, 3);
  if (d->failed) return 0;
  before = d->to->part(d, before, last, 0, t->dims[last]);
  behind = d->failed ? 0 : d->to->part(d, behind, last, 1, d->to->dim(d, '+', t->dims[last], 1));
  return MUL(before, behind);
}

/* The derivative of a determinant is the matrix of cofactors: det(x) inv(x)^T, and where a matrix is singular, by
 * singular values. A graph that meets one is left by the error of the inverse, and the tape looks. */
static Dv pull_det(Deriv *d, Dv x, Dv y, Dv g) {
  f64 singular;
  Dv any = dv2(d, OP_equal, y, NUM(0));
  u32 batch = dv_type(d, y).rank;
  if (batch) any = dv_reduce(d, OP_any, any, (1u << batch) - 1, false);
  if (d->failed) return 0;
  if (!d->to->known(d, any, &singular) || singular == 0)
    return MUL(per_matrix(d, MUL(g, y)), TURN(dv1(d, OP_linalg_inv, x)));
  Dv u, s, vh;
  svd(d, x, &u, &s, &vh);
  ArrayType t = dv_type(d, s);
  Dv sign = MUL(dv1(d, OP_linalg_det, u), dv1(d, OP_linalg_det, vh));
  if (d->failed) return 0;
  return MUL(per_matrix(d, MUL(g, sign)), FLIP(MM(MUL(u, dv_widened(d, others(d, s, &t), t.rank - 1u)), vh)));
}

/* ---- factors --------------------------------------------------------------------------------------------------- */

/* With L = y: L^-H P L^-1, P the lower triangle of L^H g with half its diagonal. */
static Dv pull_cholesky(Deriv *d, const DerivNode *n, Dv y, Dv g) {
  bool upper = arg_bool(&n->args[1], false);
  Dv l = upper ? H(y) : y, inner = MM(H(l), upper ? TURN(g) : FLIP(g)); /* H(FLIP(g)) is TURN(g) */
  ArrayType t = dv_type(d, l);
  Dv p = MUL(lower(d, inner, 0), SUB(NUM(1), half(d, identity(d, rows_of(&t), rows_of(&t), 0, t.dtype))));
  Dv turned = H(l), w = dv2(d, OP_linalg_solve, turned, p);
  return FLIP(symmetric(d, H(dv2(d, OP_linalg_solve, turned, H(w)))));
}

/* 1 / (w_j - w_i), 0 where i = j. */
static Dv gaps(Deriv *d, Dv w) {
  ArrayType t = dv_type(d, w);
  if (d->failed) return 0;
  u32 last = t.rank - 1u;
  Dv apart = SUB(dv_widened(d, w, last), dv_widened(d, w, last + 1));
  Dv same = dv2(d, OP_greater, identity(d, t.dims[last], t.dims[last], 0, dtype_real_of(t.dtype)), NUM(0));
  return dv3(d, OP_where, same, NUM(0), DIV(NUM(1), dv3(d, OP_where, same, NUM(1), apart)));
}

/* v along the diagonals of square matrices. */
static Dv diagonals(Deriv *d, Dv v) {
  ArrayType t = dv_type(d, v);
  if (d->failed) return 0;
  u32 last = t.rank - 1u;
  return MUL(dv_widened(d, v, last), identity(d, t.dims[last], t.dims[last], 0, dtype_real_of(t.dtype)));
}

/* V (diag(gw) + F (V^H gV)) V^H. Vectors of complex matrices are taken not to turn by a change of the matrix. */
static Dv pull_eigh(Deriv *d, Dv w, Dv v, Dv gw, Dv gv) {
  Dv inner = gw ? diagonals(d, gw) : 0;
  if (gv) inner = dv_add(d, inner, MUL(gaps(d, w), MM(H(v), FLIP(gv))));
  return FLIP(symmetric(d, MM(MM(v, inner), H(v))));
}

/* Vectors have length 1, and their largest element is real: what turns or stretches them is taken away. */
static Dv of_free_vectors(Deriv *d, Dv v, Dv gv) {
  ArrayType t = dv_type(d, v);
  if (d->failed) return 0;
  u32 row = t.rank - 2u;
  GraphAttr by[2] = {attr_int(1, row), attr_bool(2, true)};
  Dv size = dv1(d, OP_abs, v), most = dv_op(d, OP_argmax, &size, 1, by, 2);
  Dv here = dv2(d, OP_equal, dv_positions(d, t.dims[row], t.rank, row), most);
  Dv along = dv_reduce(d, OP_sum, MUL(gv, v), 1u << row, true);
  Dv largest = dv_reduce(d, OP_sum, dv3(d, OP_where, here, dv1(d, OP_real, v), NUM(0)), 1u << row, true);
  Dv turned = dv2(d, OP_complex, NUM(0), NEG(DIV(dv1(d, OP_imag, along), largest)));
  gv = SUB(gv, MUL(dv_conj(d, v), dv1(d, OP_real, along)));
  return ADD(gv, dv3(d, OP_where, here, turned, NUM(0)));
}

/* V^-T (diag(gw) + F (V^T gV)) V^T, nothing conjugated. */
static Dv pull_eig(Deriv *d, Dv w, Dv v, Dv gw, Dv gv) {
  Dv inner = gw ? diagonals(d, gw) : 0;
  if (gv) inner = dv_add(d, inner, MUL(gaps(d, w), MM(TURN(v), of_free_vectors(d, v, gv))));
  return MM(MM(TURN(dv1(d, OP_linalg_inv, v)), inner), TURN(v));
}

static Dv pull_eigvals(Deriv *d, Dv x, Dv g) {
  return pull_eig(d, 0, part_of(d, dv1(d, OP_linalg_eig, x), 1), g, 0);
}

static Dv pull_eigvalsh(Deriv *d, Dv x, Dv g) {
  Dv v = part_of(d, dv1(d, OP_linalg_eigh, x), 1);
  return FLIP(MM(MUL(v, dv_widened(d, g, dv_type(d, g).rank - 1u)), H(v)));
}

/* Of U in a complex decomposition: i times the imaginary part of the diagonal of m = U^H gU, divided by s. The vectors
 * of V are taken not to turn by a change of the matrix, so that those of U do (as JAX has it). */
static Dv turns(Deriv *d, Dv m, Dv row) {
  ArrayType t = dv_type(d, m);
  if (d->failed) return 0;
  Dv none = dv2(d, OP_equal, row, NUM(0)), size = dv3(d, OP_where, none, NUM(1), row);
  Dv one = identity(d, rows_of(&t), rows_of(&t), 0, dtype_real_of(t.dtype));
  return dv2(d, OP_complex, NUM(0), DIV(MUL(dv1(d, OP_imag, m), one), size));
}

/* Townsend, "Differentiating the singular value decomposition", 2016. Absent cotangents are 0. */
static Dv pull_svd(Deriv *d, Dv u, Dv s, Dv vh, Dv gu, Dv gs, Dv gvh) {
  ArrayType tu = dv_type(d, u), tv = dv_type(d, vh), ts = dv_type(d, s);
  if (d->failed) return 0;
  Dv row = dv_widened(d, s, ts.rank - 1u), column = dv_widened(d, s, ts.rank), f = gu || gvh ? gaps(d, MUL(s, s)) : 0,
      inner = gs ? diagonals(d, gs) : 0, sum = 0;
  if (gu) {
    gu = FLIP(gu);
    Dv m = MM(H(u), gu);
    inner = dv_add(d, inner, MUL(MUL(f, SUB(m, H(m))), row));
    if (has_phases(tu.dtype)) inner = dv_add(d, inner, turns(d, m, row));
    if (!d->to->same(d, rows_of(&tu), columns_of(&tu))) {
      Dv beside = SUB(gu, MM(u, m));
      sum = MM(DIV(beside, row), vh);
    }
  }
  if (gvh) {
    Dv gv = TURN(gvh), v = H(vh), m = MM(vh, gv); /* H(FLIP(gvh)) is TURN(gvh) */
    inner = dv_add(d, inner, MUL(MUL(f, SUB(m, H(m))), column));
    if (!d->to->same(d, rows_of(&tv), columns_of(&tv))) {
      Dv beside = SUB(gv, MM(v, m));
      sum = dv_add(d, sum, MM(u, DIV(H(beside), column)));
    }
  }
  return FLIP(dv_add(d, sum, MM(MM(u, inner), vh)));
}

static bool square(Deriv *d, const ArrayType *t) { return d->to->same(d, rows_of(t), columns_of(t)); }

static bool pull_svd_node(Deriv *d, const DerivNode *n, const Dv *ct, Dv *out) {
  ArrayType t = dv_type(d, n->operands[0]);
  bool full = arg_bool(&n->args[1], true) && !square(d, &t);
  Dim high = rows_of(&t), wide = columns_of(&t);
  bool known = high >= 0 && wide >= 0; /* the longer side has vectors that are added */
  if (full && ((ct[0] && !(known && high < wide)) || (ct[2] && !(known && high > wide)))) {
    d->detail = "the vectors that linalg.svd with full_matrices=true adds to a matrix that is not square";
    return false;
  }
  Dv u = n->results[0], s = n->results[1], vh = n->results[2];
  if (full) svd(d, n->operands[0], &u, &s, &vh);
  out[0] = pull_svd(d, u, s, vh, ct[0], ct[1], ct[2]);
  return true;
}

static Dv pull_svdvals(Deriv *d, Dv x, Dv g) {
  Dv u, s, vh;
  svd(d, x, &u, &s, &vh);
  return FLIP(MM(MUL(u, dv_widened(d, g, dv_type(d, g).rank - 1u)), vh));
}

/* (gQ + Q C) R^-H, C Hermitian with the lower triangle of R gR^H - gQ^H Q: of matrices that are not wider than high. */
static Dv qr_of_rows(Deriv *d, Dv q, Dv r, Dv gq, Dv gr) {
  Dv m = gr ? MM(r, H(gr)) : 0;
  if (gq) m = m ? SUB(m, MM(H(gq), q)) : NEG(MM(H(gq), q));
  ArrayType t = dv_type(d, m);
  if (d->failed) return 0;
  if (has_phases(t.dtype)) { /* the diagonal of R is real */
    Dv one = identity(d, rows_of(&t), rows_of(&t), 0, dtype_real_of(t.dtype)), below = lower(d, m, -1);
    m = ADD(below, MUL(dv1(d, OP_real, m), one));
  }
  Dv c = ADD(lower(d, m, 0), H(lower(d, m, -1))), left = dv_add(d, gq, MM(q, c));
  return H(dv2(d, OP_linalg_solve, r, H(left)));
}

static Dv piece(Deriv *d, Dv x, u32 axis, Dim from, Dim to) {
  Dv v = x && !d->failed ? d->to->part(d, x, axis, from, to) : 0;
  d->failed |= x && !v;
  return v;
}

/* A wide matrix is (A1, A2), and R is (R1, Q^H A2). Where Q is completed there is a rule for R alone. */
static bool pull_qr(Deriv *d, const DerivNode *n, const Dv *ct, Dv *out) {
  Dv x = n->operands[0], q = n->results[0], r = n->results[1], gq = flipped(d, ct[0]), gr = flipped(d, ct[1]);
  ArrayType t = dv_type(d, x);
  Dim high = rows_of(&t), wide = columns_of(&t);
  u32 last = t.rank - 1u;
  bool reduced = n->args[1].kind == ARG_hole ||
                 (n->args[1].kind == ARG_attr && n->args[1].attr->kind == ATTR_text && n->args[1].attr->count == 7);
  if (!square(d, &t) && (high < 0 || wide < 0)) {
    d->detail = "linalg.qr of a matrix that is not square";
    return false;
  }
  if (square(d, &t) || (reduced && high > wide)) {
    out[0] = qr_of_rows(d, q, r, gq, gr);
  } else if (high > wide) {
    if (gq) d->detail = "Q of linalg.qr with mode=\"complete\" of a matrix that is higher than wide";
    if (gq) return false;
    out[0] = qr_of_rows(d, piece(d, q, last, 0, wide), piece(d, r, last - 1, 0, wide), 0,
                        piece(d, gr, last - 1, 0, wide));
  } else {
    Dv rest = piece(d, x, last, high, wide), gr2 = piece(d, gr, last, high, wide);
    if (gr2) gq = dv_add(d, gq, MM(rest, H(gr2)));
    GraphAttr join[2] = {attr_list(0, 2), attr_int(1, last)};
    Dv of_rest = gr2 ? MM(q, gr2) : MUL(rest, NUM(0));
    Dv of_rows = qr_of_rows(d, q, piece(d, r, last, 0, high), gq, piece(d, gr, last, 0, high));
    out[0] = dv_op(d, OP_concat, (Dv[]){of_rows, of_rest}, 2, join, 2);
  }
  out[0] = FLIP(out[0]);
  return true;
}

/* With P = pinv(x): -P^H g P^H + (I - x P) g^H P P^H + P^H P g^H (I - P x), of conjugates g and the result. */
static Dv pull_pinv(Deriv *d, Dv x, Dv p, Dv g) {
  Dv pt = H(p), gt = H(g);
  Dv first = MM(MM(pt, g), pt);
  Dv second = MM(gt, MM(p, pt)), third = MM(MM(pt, p), gt);
  second = SUB(second, MM(x, MM(p, second)));
  third = SUB(third, MM(MM(third, p), x));
  return SUB(ADD(second, third), first);
}

/* x = pinv(a) b */
static void pull_lstsq(Deriv *d, Dv a, Dv b, Dv g, const bool *wants, Dv *out) {
  ArrayType tb = dv_type(d, b);
  bool vector = tb.rank == 1;
  Dv gm = vector ? dv_widened(d, g, 1) : g, bm = vector ? dv_widened(d, b, 1) : b, p = dv1(d, OP_linalg_pinv, a);
  gm = FLIP(gm);
  if (wants[0]) out[0] = FLIP(pull_pinv(d, a, p, MM(gm, H(bm))));
  if (wants[1]) out[1] = FLIP(dv_reshape(d, MM(H(p), gm), tb.rank, tb.dims));
}

/* ---- products -------------------------------------------------------------------------------------------------- */

/* Back over the products by which the power was made: squares, and those of them that count. */
static bool pull_power(Deriv *d, const DerivNode *n, Dv x, Dv g, Dv *out) {
  enum { BITS = 64 };
  Dv squares[BITS], results[BITS], gs[BITS] = {0};
  i64 e;
  u32 top = 0;
  if (!arg_int(&n->args[1], 0, &e)) return false;
  if (e == 0) return true; /* the identity */
  Dv base = e < 0 ? dv1(d, OP_linalg_inv, x) : x, result = 0;
  for (u64 left = e < 0 ? 0 - (u64)e : (u64)e;; top++) {
    squares[top] = top ? MM(squares[top - 1], squares[top - 1]) : base;
    results[top] = result;
    if (left & 1) result = result ? MM(result, squares[top]) : squares[top];
    if (!(left >>= 1)) break;
  }
  u64 bits = e < 0 ? 0 - (u64)e : (u64)e;
  for (u32 k = top + 1; k-- > 0;) {
    if (bits >> k & 1) {
      gs[k] = dv_add(d, gs[k], results[k] ? MM(TURN(results[k]), g) : g);
      if (results[k]) g = MM(g, TURN(squares[k]));
    }
    if (k) gs[k - 1] = dv_add(d, gs[k - 1], ADD(MM(gs[k], TURN(squares[k - 1])), MM(TURN(squares[k - 1]), gs[k])));
  }
  out[0] = e < 0 ? pull_inv(d, base, gs[0]) : gs[0];
  return true;
}

/* x's axes and those of y by turns, sizes of 1 for those of the other. */
static Dv beside(Deriv *d, Dv v, const ArrayType *t, u32 rank, u32 odd) {
  Dim dims[TYPE_MAX_RANK];
  for (u32 i = 0; i < rank; i++) {
    dims[2 * i + odd] = i + t->rank < rank ? 1 : t->dims[i + t->rank - rank];
    dims[2 * i + !odd] = 1;
  }
  return dv_reshape(d, v, 2 * rank, dims);
}

static bool pull_kron(Deriv *d, Dv x, Dv y, Dv g, const bool *wants, Dv *out) {
  ArrayType tx = dv_type(d, x), ty = dv_type(d, y);
  u32 rank = tx.rank > ty.rank ? tx.rank : ty.rank, of_x = 0;
  Dim dims[TYPE_MAX_RANK];
  if (2 * rank > TYPE_MAX_RANK) return false;
  for (u32 i = 0; i < rank; i++) {
    dims[2 * i] = i + tx.rank < rank ? 1 : tx.dims[i + tx.rank - rank];
    dims[2 * i + 1] = i + ty.rank < rank ? 1 : ty.dims[i + ty.rank - rank];
    of_x |= 1u << (2 * i);
  }
  g = dv_reshape(d, g, 2 * rank, dims);
  if (wants[0])
    out[0] = dv_reshape(d, dv_reduce(d, OP_sum, MUL(g, beside(d, y, &ty, rank, 1)), of_x << 1, false),
                        tx.rank, tx.dims);
  if (wants[1])
    out[1] = dv_reshape(d, dv_reduce(d, OP_sum, MUL(g, beside(d, x, &tx, rank, 0)), of_x, false), ty.rank, ty.dims);
  return true;
}

static bool pull_cross(Deriv *d, const DerivNode *n, Dv x, Dv y, Dv g, const bool *wants, Dv *out) {
  i64 axis;
  if (!arg_int(&n->args[2], -1, &axis)) return false;
  GraphAttr by = attr_int(2, axis);
  if (wants[0]) out[0] = dv_op(d, OP_linalg_cross, (Dv[]){y, g}, 2, &by, 1);
  if (wants[1]) out[1] = dv_op(d, OP_linalg_cross, (Dv[]){g, x}, 2, &by, 1);
  return true;
}

static bool pull_matrix_norm(Deriv *d, const DerivNode *n, Dv x, Dv y, Dv g, Dv *out) {
  const GraphArg *a = &n->args[1];
  ArrayType t = dv_type(d, x);
  bool word = a->kind == ARG_attr && a->attr->kind == ATTR_text,
      nuclear = word && a->attr->count == 3 && memcmp(a->attr->text, "nuc", 3) == 0;
  f64 ord = a->kind != ARG_attr ? 0 : a->attr->kind == ATTR_int ? (f64)a->attr->i
                                : a->attr->kind == ATTR_float ? a->attr->f : 0;
  if (a->kind == ARG_value || (a->kind == ARG_attr && !word && ord == 0 && a->attr->kind != ATTR_nil)) return false;
  if (rows_of(&t) == 0 || columns_of(&t) == 0) return true; /* of nothing: constant */
  if (arg_bool(&n->args[2], false)) { /* axes of size 1 were kept */
    g = dv_reshape(d, g, t.rank - 2u, t.dims);
    y = dv_reshape(d, y, t.rank - 2u, t.dims);
  }
  if (!nuclear && ord == 0) { /* fro */
    out[0] = FLIP(DIV(MUL(per_matrix(d, g), x), per_matrix(d, y)));
    return true;
  }
  if (nuclear || fabs(ord) == 2) {
    Dv u, s, vh;
    svd(d, x, &u, &s, &vh);
    ArrayType ts = dv_type(d, s);
    if (d->failed) return false;
    u32 last = ts.rank - 1u;
    if (!nuclear)
      u = MUL(u, dv_widened(d, dv_share_ties(d, s, dv_reduce(d, ord > 0 ? OP_max : OP_min, s, 1u << last, true), NUM(1),
                                             1u << last), last));
    out[0] = FLIP(MUL(per_matrix(d, g), MM(u, vh)));
    return true;
  }
  u32 summed = isinf(ord) ? t.rank - 1u : t.rank - 2u, chosen = isinf(ord) ? t.rank - 2u : t.rank - 1u;
  Dv sums = dv_reduce(d, OP_sum, dv1(d, OP_abs, x), 1u << summed, true);
  Dv chief = dv_reduce(d, ord > 0 ? OP_max : OP_min, sums, 1u << chosen, true);
  out[0] = MUL(dv_share_ties(d, sums, chief, per_matrix(d, g), 1u << chosen), dv_slope_of_abs(d, x));
  return true;
}

/* ---- the rules ------------------------------------------------------------------------------------------------- */

/* The logarithm of the determinant is log(abs) + i angle. The sign of a real one is constant, the sign of a complex one
 * changes by i times itself times the change of the angle. */
static Dv pull_slogdet(Deriv *d, Dv x, Dv sign, Dv gsign, Dv g) {
  if (gsign && has_phases(dv_type(d, sign).dtype))
    g = dv2(d, OP_complex, g ? g : NUM(0), dv1(d, OP_imag, MUL(gsign, sign)));
  return g ? MUL(per_matrix(d, g), TURN(dv1(d, OP_linalg_inv, x))) : 0;
}

MANY(linalg_slogdet, all, (out[0] = pull_slogdet(d, x, n->results[0], ct[0], ct[1]), true))
MANY(linalg_eig, all, (out[0] = pull_eig(d, n->results[0], n->results[1], ct[0], ct[1]), true))
RULE(linalg_eigvals, all, (out[0] = pull_eigvals(d, x, g), true))
MANY(linalg_eigh, all, (out[0] = pull_eigh(d, n->results[0], n->results[1], ct[0], ct[1]), true))
MANY(linalg_svd, all, pull_svd_node(d, n, ct, out))
MANY(linalg_qr, all, pull_qr(d, n, ct, out))
RULE(linalg_solve, all, (pull_solve(d, x, b, y, g, wants, out), true))
RULE(linalg_lstsq, all, (pull_lstsq(d, x, b, g, wants, out), true))
RULE(linalg_inv, all, (out[0] = pull_inv(d, y, g), true))
RULE(linalg_det, all, (out[0] = pull_det(d, x, y, g), true))
RULE(linalg_cholesky, all, (out[0] = pull_cholesky(d, n, y, g), true))
RULE(linalg_svdvals, all, (out[0] = pull_svdvals(d, x, g), true))
RULE(linalg_eigvalsh, all, (out[0] = pull_eigvalsh(d, x, g), true))
RULE(linalg_pinv, all, (out[0] = FLIP(pull_pinv(d, x, y, FLIP(g))), true))
RULE(linalg_matrix_power, all, pull_power(d, n, x, g, out))
RULE(linalg_matrix_norm, all, pull_matrix_norm(d, n, x, y, g, out))
RULE(linalg_kron, all, pull_kron(d, x, b, g, wants, out))
RULE(linalg_cross, all, pull_cross(d, n, x, b, g, wants, out))

/* ---- Fourier transforms: linear, so that the cotangent goes through the transposed one --------------------------- */

/* Of complex numbers nothing is conjugated, and the matrix of a transform is its own transposed one. */
static Dv pull_fft_pairs(Deriv *d, const DerivNode *n, const ArrayType *t, Dv g) {
  bool back = arg_bool(&n->args[1], false);
  GraphAttr inverse = attr_bool(1, dtype_kind(t->dtype) == DK_COMPLEX ? back : !back);
  return dv_op(d, OP_fft_pairs, &g, 1, &inverse, 1);
}

/* Pairs k of the transform of n real numbers times `inner` where another pair is their conjugate. */
static Dv fft_inner(Deriv *d, Dv pairs, Dim n, f64 inner) {
  ArrayType t = dv_type(d, pairs);
  if (d->failed) return 0;
  Dv k = dv_positions(d, t.dims[t.rank - 2], 2, 0);
  Dv twin = dv2(d, OP_greater, MUL(k, SUB(d->to->size(d, n), ADD(k, k))), NUM(0));
  return MUL(pairs, dv3(d, OP_where, twin, NUM(inner), NUM(1)));
}

static Dv pull_fft_real(Deriv *d, const ArrayType *t, Dv g) {
  GraphAttr n = attr_dim(1, t->dims[t->rank - 1]);
  Dv pairs = fft_inner(d, g, t->dims[t->rank - 1], 0.5);
  return dv_op(d, OP_fft_irpairs, &pairs, 1, &n, 1);
}

static Dv pull_fft_whole(Deriv *d, Dv g) {
  ArrayType t = dv_type(d, g);
  return d->failed ? 0 : fft_inner(d, dv1(d, OP_fft_rpairs, g), t.dims[t.rank - 1], 2);
}

RULE(fft_pairs, nothing, (out[0] = pull_fft_pairs(d, n, t, g), true))
RULE(fft_rpairs, nothing, (out[0] = pull_fft_real(d, t, g), true))
RULE(fft_irpairs, nothing, (out[0] = pull_fft_whole(d, g), true))
