/* rules_product.c — derivative rules of products: prod and cumprod, which must hold where factors are 0, and the
 * contractions dot, tensordot and einsum. */
#include "hop/rules.h"

#include <string.h>

/* ---- products of elements ------------------------------------------------------------------------------------- */

static Dv product_running(Deriv *d, u32 op, Dv x, u32 axis, bool reverse, bool initial) {
  GraphAttr attrs[3] = {attr_int(1, axis), attr_bool(2, reverse), attr_bool(3, initial)};
  return dv_op(d, op, &x, 1, attrs, initial ? 3 : 2);
}

static Dv flip(Deriv *d, Dv x, u32 axis) {
  GraphAttr by = attr_int(1, axis);
  return dv_op(d, OP_flip, &x, 1, &by, 1);
}

/* The cotangent of cumprod(x), x along `axis`. Before the first 0: sum(g y)[k:] / x[k]. At it: the same with 1 in its
 * place. Behind it y is 0, and so is the derivative; it is written as the first 0 times what it would be with 1 in
 * its place, `deep` times, so that derivatives of it hold as well. */
static Dv pull_running(Deriv *d, Dv x, Dv g, u32 axis, u32 deep) {
  Dv none = dv2(d, OP_equal, x, NUM(0));
  Dv zeros = product_running(d, OP_cumsum, none, axis, false, false);
  Dv nothing = d->failed ? 0 : d->to->size(d, 0), one = d->failed ? 0 : d->to->size(d, 1);
  Dv before = dv2(d, OP_equal, zeros, nothing);
  Dv rest = product_running(d, OP_cumsum, MUL(g, product_running(d, OP_cumprod, x, axis, false, false)), axis,
                            true, false);
  Dv here = DIV(rest, dv3(d, OP_where, none, NUM(1), x));
  if (!deep) return dv3(d, OP_where, before, here, NUM(0));
  Dv first = dv2(d, OP_logical_and, none, dv2(d, OP_equal, zeros, one));
  Dv inner = pull_running(d, dv3(d, OP_where, first, NUM(1), x), g, axis, deep - 1);
  Dv zero = dv_reduce(d, OP_sum, dv3(d, OP_where, first, x, NUM(0)), 1u << axis, true);
  return dv3(d, OP_where, before, here, dv3(d, OP_where, first, inner, MUL(zero, inner)));
}

enum { ZEROS_DEEP = 2 };

static bool pull_cumprod(Deriv *d, const DerivNode *n, Dv x, const ArrayType *t, Dv g, Dv *out) {
  bool flat = n->args[1].kind != ARG_attr || n->args[1].attr->kind == ATTR_nil, reverse = arg_bool(&n->args[2], false);
  i64 given = 0;
  u32 axis = 0;
  RuleError err;
  ArrayType row = *t;
  if (!flat && (!arg_int(&n->args[1], 0, &given) || !rule_axis(given, t->rank, &axis, &err))) return false;
  if (flat) {
    row.rank = 1;
    row.dims[0] = 1;
    for (u32 i = 0; i < t->rank; i++) row.dims[0] = d->to->dim(d, '*', row.dims[0], t->dims[i]);
  }
  x = dv_reshape(d, x, row.rank, row.dims);
  if (reverse) {
    x = flip(d, x, axis);
    g = flip(d, g, axis);
  }
  if (arg_bool(&n->args[3], false)) { /* the product of nothing is constant */
    Dim size = dv_type(d, g).dims[axis];
    g = d->failed ? 0 : d->to->part(d, g, axis, 1, size);
  }
  g = pull_running(d, x, g, axis, ZEROS_DEEP);
  if (reverse) g = flip(d, g, axis);
  out[0] = dv_reshape(d, g, t->rank, t->dims);
  return true;
}

/* The product of the others: of those before and those behind. */
static bool pull_prod(Deriv *d, const DerivNode *n, Dv x, const ArrayType *t, Dv g, Dv *out) {
  u32 mask;
  Lined l;
  if (!arg_axes(&n->args[op_param(n->op, "axis")], t->rank, &mask)) return false;
  if (!mask) {
    out[0] = g;
    return true;
  }
  Dv rows = dv_lined(d, x, t, mask, &l);
  if (d->failed) return false;
  ArrayType row = dv_type(d, rows), kept = row;
  u32 last = l.rank - 1;
  kept.dims[last] = 1;
  Dim more = d->to->dim(d, '+', l.count, 1);
  Dv before = product_running(d, OP_cumprod, rows, last, false, true),
      behind = product_running(d, OP_cumprod, rows, last, true, true);
  if (d->failed) return false;
  before = d->to->part(d, before, last, 0, l.count);
  behind = d->to->part(d, behind, last, 1, more);
  out[0] = dv_unlined(d, MUL(dv_reshape(d, g, kept.rank, kept.dims), MUL(before, behind)), &l);
  return true;
}

/* ---- contractions ---------------------------------------------------------------------------------------------- */

static Dim product_of_all(Deriv *d, const ArrayType *t, const u32 *axes, u32 n) {
  Dim size = 1;
  for (u32 i = 0; i < n; i++) size = d->to->dim(d, '*', size, t->dims[axes[i]]);
  return size;
}

/* x as a matrix: axes `rows` by axes `columns`. */
static Dv as_matrix(Deriv *d, Dv x, const ArrayType *t, const u32 *rows, u32 nrows, const u32 *columns, u32 ncolumns) {
  u32 perm[TYPE_MAX_RANK];
  memcpy(perm, rows, sizeof *perm * nrows);
  memcpy(perm + nrows, columns, sizeof *perm * ncolumns);
  Dim dims[2] = {product_of_all(d, t, rows, nrows), product_of_all(d, t, columns, ncolumns)};
  return dv_reshape(d, dv_permute(d, x, perm), 2, dims);
}

static Dv from_matrix(Deriv *d, Dv m, const ArrayType *t, const u32 *rows, u32 nrows, const u32 *columns,
                      u32 ncolumns) {
  u32 inverse[TYPE_MAX_RANK];
  Dim dims[TYPE_MAX_RANK];
  for (u32 i = 0; i < nrows + ncolumns; i++) {
    u32 axis = i < nrows ? rows[i] : columns[i - nrows];
    dims[i] = t->dims[axis];
    inverse[axis] = i;
  }
  return dv_permute(d, dv_reshape(d, m, nrows + ncolumns, dims), inverse);
}

/* The sum of products over axes xa of x and ya of y, the other axes of x first in g. */
static bool pull_contraction(Deriv *d, Dv x, Dv y, u32 n, const u32 *xa, const u32 *ya, Dv g,
                             const bool *wants, Dv *out) {
  ArrayType tx = dv_type(d, x), ty = dv_type(d, y);
  u32 xf[TYPE_MAX_RANK], yf[TYPE_MAX_RANK], nx = 0, ny = 0, turn[2] = {1, 0};
  for (u32 i = 0; i < tx.rank; i++) {
    bool summed = false;
    for (u32 k = 0; k < n; k++) summed |= xa[k] == i;
    if (!summed) xf[nx++] = i;
  }
  for (u32 i = 0; i < ty.rank; i++) {
    bool summed = false;
    for (u32 k = 0; k < n; k++) summed |= ya[k] == i;
    if (!summed) yf[ny++] = i;
  }
  Dim dims[2] = {product_of_all(d, &tx, xf, nx), product_of_all(d, &ty, yf, ny)};
  Dv mx = as_matrix(d, x, &tx, xf, nx, xa, n), my = as_matrix(d, y, &ty, ya, n, yf, ny), mg = dv_reshape(d, g, 2, dims);
  if (wants[0]) out[0] = from_matrix(d, dv2(d, OP_matmul, mg, dv_permute(d, my, turn)), &tx, xf, nx, xa, n);
  if (wants[1]) out[1] = from_matrix(d, dv2(d, OP_matmul, dv_permute(d, mx, turn), mg), &ty, ya, n, yf, ny);
  return true;
}

static bool pull_tensordot(Deriv *d, const DerivNode *n, Dv g, const bool *wants, Dv *out) {
  ArrayType tx = dv_type(d, n->operands[0]), ty = dv_type(d, n->operands[1]);
  u32 xa[TYPE_MAX_RANK], ya[TYPE_MAX_RANK], count;
  const GraphArg *a = &n->args[2];
  i64 k;
  RuleError err;
  if (a->kind == ARG_attr && a->attr->kind == ATTR_ints && (a->attr->pairs || a->attr->count == 2)) {
    /* those of x, then those of y */
    count = a->attr->count / 2;
    for (u32 i = 0; i < count; i++)
      if (!rule_axis(a->attr->ints[i], tx.rank, &xa[i], &err) ||
          !rule_axis(a->attr->ints[count + i], ty.rank, &ya[i], &err))
        return false;
  } else {
    if (!arg_int(a, 2, &k) || k < 0 || k > tx.rank || k > ty.rank) return false;
    count = (u32)k;
    for (u32 i = 0; i < count; i++) {
      xa[i] = tx.rank - count + i;
      ya[i] = i;
    }
  }
  return pull_contraction(d, n->operands[0], n->operands[1], count, xa, ya, g, wants, out);
}

/* A spec as one letter for each axis: what stands under `...` gets letters that the spec does not use. */
typedef struct Spec {
  char terms[EINSUM_MAX_OPERANDS][TYPE_MAX_RANK + 1], result[2 * TYPE_MAX_RANK + 64];
  u32 count;
} Spec;

static bool read_spec(Deriv *d, const DerivNode *n, Spec *s) {
  const GraphArg *spec = &n->args[0];
  static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  u32 letters[128] = {0}, at = 0, dots = 0, widest = 0;
  char under[TYPE_MAX_RANK]; /* the letter of the k-th axis from the end under `...` */
  bool arrow = false;
  *s = (Spec){.count = 0};
  if (spec->kind != ARG_attr || spec->attr->kind != ATTR_text || n->count > EINSUM_MAX_OPERANDS) return false;
  const char *text = spec->attr->text, *end = text + spec->attr->count;
  for (const char *c = text; c < end; c++) letters[*c & 127] = 1;
  for (u32 k = 0, i = 0; k < TYPE_MAX_RANK; k++, i++) {
    while (alphabet[i] && letters[(u8)alphabet[i]]) i++;
    if (!(under[k] = alphabet[i])) return false;
  }
  memset(letters, 0, sizeof letters);
  for (u32 i = 0; i < n->count; i++) { /* as many axes under `...` as the letters leave */
    ArrayType t = dv_type(d, n->operands[i]);
    u32 own = 0;
    bool has = false;
    for (; text < end && *text != ',' && *text != '-'; text++) {
      own += (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
      has |= *text == '.';
    }
    if (own > t.rank || (!has && own != t.rank)) return false;
    if (has && t.rank - own > widest) widest = t.rank - own;
    if (text < end && *text == ',') text++;
  }
  for (const char *c = spec->attr->text; c < end; c++) {
    char *term = arrow ? s->result : s->terms[s->count];
    if (*c == ' ') continue;
    if (*c == ',') {
      if (++s->count >= n->count) return false;
      at = 0;
    } else if (*c == '-') {
      arrow = true;
      at = 0;
      c++;
    } else if (*c == '.') {
      dots = widest;
      if (!arrow) {
        u32 own = 0;
        for (const char *k = c; k >= spec->attr->text && *k != ','; k--)
          own += (*k >= 'a' && *k <= 'z') || (*k >= 'A' && *k <= 'Z');
        for (const char *k = c; k < end && *k != ',' && *k != '-'; k++)
          own += (*k >= 'a' && *k <= 'z') || (*k >= 'A' && *k <= 'Z');
        dots = dv_type(d, n->operands[s->count]).rank - own;
      }
      for (u32 k = dots; k-- > 0;) {
        term[at++] = under[k];
        if (!arrow) letters[(u8)under[k]]++;
      }
      c += 2;
    } else {
      if (!arrow && at >= TYPE_MAX_RANK) return false;
      term[at++] = *c;
      if (!arrow) letters[(u8)*c & 127]++;
    }
  }
  if (++s->count != n->count) return false;
  if (arrow) return true;
  u32 k = 0;
  for (u32 i = widest; i-- > 0;) s->result[k++] = under[i];
  for (u32 c = 0; c < 128; c++)
    if (letters[c] == 1 && !memchr(under, (int)c, widest)) s->result[k++] = (char)c;
  return true;
}

/* v, which has each letter of the operand once, on the diagonals where the operand has a letter twice; zeros beside
 * them. */
static Dv on_diagonals(Deriv *d, Dv v, const char *term, const ArrayType *t) {
  Dim dims[TYPE_MAX_RANK];
  for (u32 i = 0; i < t->rank; i++) dims[i] = strchr(term, term[i]) == term + i ? t->dims[i] : 1;
  v = dv_reshape(d, v, t->rank, dims);
  for (u32 i = 0; i < t->rank && !d->failed; i++) {
    u32 first = (u32)(strchr(term, term[i]) - term);
    if (first == i) continue;
    Dv at = dv2(d, OP_equal, dv_positions(d, t->dims[i], t->rank, i), dv_positions(d, t->dims[i], t->rank, first));
    v = dv3(d, OP_where, at, v, NUM(0));
  }
  return v;
}

/* einsum of the others and g, with the operand's letters, each once, as its result. A letter that nobody else has
 * was summed alone: the result is stretched along it. A size of 1 that was stretched is summed. */
static bool pull_einsum(Deriv *d, const DerivNode *n, Dv g, const bool *wants, Dv *out) {
  enum { EINSUM_TEXT = EINSUM_MAX_OPERANDS * (TYPE_MAX_RANK + 1) + 3 * TYPE_MAX_RANK + 80 };
  Spec s;
  if (!read_spec(d, n, &s)) return false;
  for (u32 o = 0; o < s.count && !d->failed; o++) {
    if (!wants[o]) continue;
    char text[EINSUM_TEXT], kept[TYPE_MAX_RANK];
    const char *own = s.terms[o];
    Dv xs[EINSUM_MAX_OPERANDS];
    u32 len = 0, nx = 0, k = 0;
    ArrayType t = dv_type(d, n->operands[o]), once = t, has = t;
    for (u32 i = 0; i < s.count; i++) {
      const char *term = i == o ? s.result : s.terms[i];
      xs[nx++] = i == o ? g : n->operands[i];
      if (i) text[len++] = ',';
      memcpy(text + len, term, strlen(term));
      len += (u32)strlen(term);
    }
    once.rank = has.rank = 0;
    for (u32 i = 0; i < t.rank; i++) {
      if (strchr(own, own[i]) != own + i) continue;
      bool found = strchr(s.result, own[i]) != NULL;
      for (u32 j = 0; j < s.count && !found; j++) found = j != o && strchr(s.terms[j], own[i]) != NULL;
      once.dims[once.rank++] = t.dims[i];
      if (!found) continue;
      kept[k++] = own[i];
      has.dims[has.rank++] = t.dims[i];
    }
    text[len++] = '-';
    text[len++] = '>';
    memcpy(text + len, kept, k);
    len += k;
    GraphAttr attrs[2] = {{.kind = ATTR_text, .param = 0, .count = len, .text = text}, attr_list(1, nx)};
    Dv v = deriv_fit(d, dv_op(d, OP_einsum, xs, nx, attrs, 2), &has);
    Dim dims[TYPE_MAX_RANK];
    for (u32 i = 0, at = 0; i < once.rank; i++) { /* what was summed alone: a size of 1, then stretched */
      bool found = false;
      for (u32 j = 0, seen = 0; j < t.rank && !found && seen <= i; j++)
        if (strchr(own, own[j]) == own + j && seen++ == i) found = memchr(kept, own[j], k) != NULL;
      dims[i] = found ? has.dims[at++] : 1;
    }
    v = dv_stretch(d, dv_reshape(d, v, once.rank, dims), once.rank, once.dims);
    out[o] = once.rank < t.rank ? on_diagonals(d, v, own, &t) : v;
  }
  return true;
}

/* A product with a stack of matrices contracts the last axis of x with the last but one of y. */
static bool pull_dot(Deriv *d, const DerivNode *n, const ArrayType *tx, Dv g, const bool *wants, Dv *out) {
  if (n->count != 2) return false;
  Dv x = n->operands[0], y = n->operands[1];
  ArrayType ty = dv_type(d, y);
  if (tx->rank == 0 || ty.rank == 0) { /* a product of elements */
    if (wants[0]) out[0] = MUL(g, y);
    if (wants[1]) out[1] = MUL(g, x);
    return true;
  }
  if (ty.rank <= 2) return dv_pull_matmul(d, x, y, g, wants, out);
  u32 xa = tx->rank - 1u, ya = ty.rank - 2u;
  return pull_contraction(d, x, y, 1, &xa, &ya, g, wants, out);
}

RULE(prod, all, pull_prod(d, n, x, t, g, out))
RULE(cumprod, all, pull_cumprod(d, n, x, t, g, out))
RULE(dot, others, pull_dot(d, n, t, g, wants, out))
RULE(tensordot, others, n->count == 2 && pull_tensordot(d, n, g, wants, out))
RULE(einsum, others, pull_einsum(d, n, g, wants, out))
