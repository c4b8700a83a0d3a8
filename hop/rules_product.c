/* rules_product.c — derivative rules of products: prod and cumprod, which must hold where factors are 0, and the
 * contractions dot, tensordot and einsum. */
#include "hop/rules.h"

#include <stdio.h>
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
  EinsumWindow windows[EINSUM_MAX_OPERANDS][TYPE_MAX_RANK]; /* of axes that have one: their letter above is its first */
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
      EinsumWindow w;
      if (*text == '(' && !einsum_window(&text, end, &w)) return false;
      own += *text == ')' || (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
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
        const char *k = c;
        while (k > spec->attr->text && k[-1] != ',') k--;
        for (EinsumWindow w; k < end && *k != ',' && *k != '-'; k++) {
          if (*k == '(' && !einsum_window(&k, end, &w)) return false;
          own += *k == ')' || (*k >= 'a' && *k <= 'z') || (*k >= 'A' && *k <= 'Z');
        }
        dots = dv_type(d, n->operands[s->count]).rank - own;
      }
      for (u32 k = dots; k-- > 0;) {
        term[at++] = under[k];
        if (!arrow) letters[(u8)under[k]]++;
      }
      c += 2;
    } else {
      if (!arrow && at >= TYPE_MAX_RANK) return false;
      EinsumWindow *w = *c == '(' ? &s->windows[s->count][at] : NULL;
      if (w && !einsum_window(&c, end, w)) return false;
      term[at++] = w ? (char)w->first : *c;
      if (!arrow) letters[(u8)term[at - 1] & 127]++;
      if (w) letters[w->second & 127]++;
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

/* What an einsum multiplies on its way back by operand `own`: the others and, in its place, the cotangent. */
typedef struct Factors {
  Spec *spec;
  u32 own, count;
  Dv xs[EINSUM_MAX_OPERANDS];
  char terms[EINSUM_MAX_OPERANDS][TYPE_MAX_RANK + 1];
  EinsumWindow windows[EINSUM_MAX_OPERANDS][TYPE_MAX_RANK];
} Factors;

/* How many axes of factors have a letter, windows aside or only windows; where the last of them is. */
static u32 axes_with(const Factors *f, u8 letter, bool windows, u32 *factor, u32 *axis) {
  u32 n = 0;
  for (u32 i = 0; i < f->count; i++)
    for (u32 k = 0; f->terms[i][k]; k++) {
      const EinsumWindow *w = &f->windows[i][k];
      bool has = (u8)f->terms[i][k] == letter || (w->second && w->second == letter);
      if (!has || windows != (w->second != 0)) continue;
      n++;
      *factor = i;
      *axis = k;
    }
  return n;
}

/* The size of a letter of an axis without windows that is not a stretched one. false: there is none. */
static bool plain_size(Deriv *d, const Factors *f, u8 letter, const ArrayType *t, Dim *size) {
  bool found = false;
  *size = 1;
  for (u32 i = 0; i < f->count; i++) {
    ArrayType x = dv_type(d, f->xs[i]);
    for (u32 k = 0; f->terms[i][k]; k++)
      if ((u8)f->terms[i][k] == letter && !f->windows[i][k].second && (!found || *size == 1)) {
        *size = x.dims[k];
        found = true;
      }
  }
  for (u32 k = 0; k < t->rank; k++)
    if ((u8)f->spec->terms[f->own][k] == letter && !f->spec->windows[f->own][k].second && (!found || *size == 1)) {
      *size = t->dims[k];
      found = true;
    }
  return found;
}

/* That of any letter: one that only a window w of an axis of n items has fills it. */
static Dim letter_size(Deriv *d, const Factors *f, u8 letter, const EinsumWindow *w, Dim n, const ArrayType *t) {
  Dim size, other;
  if (plain_size(d, f, letter, t, &size)) return size;
  const u32 j = w->first == letter ? 1 : 0; /* its partner in the window */
  if (!plain_size(d, f, j ? w->second : w->first, t, &other)) {
    d->detail = "einsum of windows of windows";
    d->failed = true;
    return 1;
  }
  n = d->to->dim(d, '-', n, d->to->dim(d, '*', d->to->dim(d, '-', other, 1), w->steps[j]));
  n = d->to->dim(d, '-', n, 1);
  return d->to->dim(d, '+', w->steps[!j] == 1 ? n : d->to->dim(d, '/', n, w->steps[!j]), 1);
}

/* So much of each factor with windows as they see: the sizes of letters follow from it, and where no other factor has
 * one of two letters, from a factor of ones. */
static void cut_windows(Deriv *d, Factors *f, const ArrayType *t) {
  for (u32 i = 0; i < f->count; i++)
    for (u32 k = 0; f->terms[i][k] && !d->failed; k++) {
      const EinsumWindow *w = &f->windows[i][k];
      if (!w->second) continue;
      ArrayType x = dv_type(d, f->xs[i]), ones = {.dtype = x.dtype, .rank = 1};
      Dim sizes[2] = {letter_size(d, f, w->first, w, x.dims[k], t), letter_size(d, f, w->second, w, x.dims[k], t)};
      Dim seen = 1;
      u32 unused[2];
      for (u32 j = 0; j < 2; j++)
        seen = d->to->dim(d, '+', seen, d->to->dim(d, '*', d->to->dim(d, '-', sizes[j], 1), w->steps[j]));
      if (!d->failed && !d->to->same(d, x.dims[k], seen)) f->xs[i] = d->to->part(d, f->xs[i], k, 0, seen);
      d->failed |= !f->xs[i];
      if (d->failed || axes_with(f, w->first, false, &unused[0], &unused[1]) ||
          axes_with(f, w->second, false, &unused[0], &unused[1])) continue;
      ones.dims[0] = sizes[1];
      d->failed |= f->count == EINSUM_MAX_OPERANDS;
      if (d->failed) return;
      f->terms[f->count][0] = (char)w->second;
      f->xs[f->count++] = dv_stretch(d, dv_convert(d, NUM(1), x.dtype), 1, ones.dims);
    }
}

/* x between zeros along an axis: `step` from element to element, `before` in front, `size` in all. */
static Dv spread_along(Deriv *d, Dv x, u32 axis, i64 step, Dim before, Dim size) {
  ArrayType t = dv_type(d, x), wide = t;
  GraphAttr join[2] = {attr_list(0, 2), attr_int(1, axis)};
  if (d->failed) return 0;
  Dim long_as = d->to->dim(d, '+', d->to->dim(d, '*', d->to->dim(d, '-', t.dims[axis], 1), step), 1);
  if (step != 1) {
    GraphAttr behind[2] = {attr_list(0, 2), attr_int(1, axis + 1)};
    if (t.rank == TYPE_MAX_RANK) return 0;
    for (u32 k = wide.rank++; k > axis; k--) wide.dims[k] = t.dims[k - 1];
    wide.dims[axis + 1] = step - 1;
    Dv zeros = d->to->zeros(d, &wide), one = dv_widened(d, x, axis + 1);
    if (!zeros || !one) return 0;
    x = dv_op(d, OP_concat, (Dv[]){one, zeros}, 2, behind, 2);
    wide = t;
    wide.dims[axis] = d->to->dim(d, '*', t.dims[axis], step);
    x = dv_reshape(d, x, t.rank, wide.dims);
    x = x && !d->failed ? d->to->part(d, x, axis, 0, long_as) : 0;
  }
  Dim sides[2] = {before, d->to->dim(d, '-', d->to->dim(d, '-', size, before), long_as)};
  for (u32 side = 0; side < 2 && !d->failed && x; side++) {
    if (sides[side] == 0) continue;
    wide = t;
    wide.dims[axis] = sides[side];
    Dv zeros = d->to->zeros(d, &wide);
    x = zeros ? dv_op(d, OP_concat, side ? (Dv[]){x, zeros} : (Dv[]){zeros, x}, 2, join, 2) : 0;
  }
  return x;
}

/* The cotangent of an axis of windows (s p + d i) of size n, where one factor has the letter p and another one i: it is
 * windows (m + d i) of the first between zeros, times the second backwards. */
static bool turn_windows(Deriv *d, Factors *f, const EinsumWindow *w, Dim n, char fresh) {
  u32 at[2], axis[2], unused[2];
  for (u32 k = 0; k < 2; k++)
    if (axes_with(f, k ? w->second : w->first, false, &at[k], &axis[k]) != 1 ||
        axes_with(f, k ? w->second : w->first, true, &unused[0], &unused[1])) return false;
  if (at[0] == at[1]) return false;
  GraphAttr turn = attr_int(1, axis[1]);
  ArrayType items = dv_type(d, f->xs[at[1]]);
  f->xs[at[1]] = dv_op(d, OP_flip, &f->xs[at[1]], 1, &turn, 1);
  if (d->failed) return true;
  Dim before = d->to->dim(d, '*', d->to->dim(d, '-', items.dims[axis[1]], 1), w->steps[1]);
  f->xs[at[0]] = spread_along(d, f->xs[at[0]], axis[0], w->steps[0], before, d->to->dim(d, '+', n, before));
  d->failed |= !f->xs[at[0]];
  f->terms[at[0]][axis[0]] = fresh;
  f->windows[at[0]][axis[0]] = (EinsumWindow){(u8)fresh, w->second, {1, w->steps[1]}};
  return true;
}

/* A letter that nobody uses. */
static char unused_letter(const Factors *f, const char *taken) {
  u32 a, b;
  const Spec *s = f->spec;
  for (char c = 'A'; c <= 'z'; c++) {
    bool used = (c > 'Z' && c < 'a') || strchr(taken, c) || strchr(s->result, c) ||
                axes_with(f, (u8)c, false, &a, &b) || axes_with(f, (u8)c, true, &a, &b);
    for (u32 k = 0; s->terms[f->own][k] && !used; k++)
      used = s->terms[f->own][k] == c || s->windows[f->own][k].second == (u8)c;
    if (!used) return c;
  }
  return 0;
}

/* v with the axis of items, its first one, added along `axis` of windows: item b of windows (s p + d b) falls on every
 * s-th place from b d on. Those of one remainder are added as shifted parts, then the remainders interleave. */
static Dv add_few_items(Deriv *d, Dv v, u32 axis, const EinsumWindow *w, i64 count, Dim size) {
  ArrayType t = dv_type(d, v);
  const i64 step = w->steps[0], far = (count - 1) * w->steps[1], most = far / step;
  Dv lines[16], sum;
  Dim used = d->to->dim(d, '+', d->to->dim(d, '*', d->to->dim(d, '-', t.dims[axis], 1), step), far + 1);
  t.rank--;
  memmove(t.dims, t.dims + 1, t.rank * sizeof *t.dims);
  axis--;
  for (i64 rest = 0; rest < step && !d->failed; rest++) {
    sum = 0;
    for (i64 b = 0; b < count && !d->failed; b++) {
      const i64 at = b * w->steps[1];
      if (at % step != rest) continue;
      i64 widths[2 * TYPE_MAX_RANK] = {0};
      widths[2 * axis] = at / step;
      widths[2 * axis + 1] = most - at / step;
      GraphAttr by = {.kind = ATTR_ints, .param = 1, .pairs = 1, .count = 2u * t.rank, .ints = widths};
      Dv part = d->to->part(d, v, 0, b, b + 1);
      part = part ? dv_reshape(d, part, t.rank, t.dims) : 0;
      part = part && most ? dv_op(d, OP_pad, &part, 1, &by, 1) : part;
      sum = sum && part ? dv_add(d, sum, part) : part;
    }
    if (!sum && !d->failed) {
      ArrayType none = t;
      none.dims[axis] = d->to->dim(d, '+', t.dims[axis], most);
      sum = d->to->zeros(d, &none);
    }
    lines[rest] = sum && step > 1 ? dv_widened(d, sum, axis + 1) : sum;
    d->failed |= !lines[rest];
  }
  if (d->failed) return 0;
  v = lines[0];
  if (step > 1) {
    GraphAttr join[2] = {attr_list(0, (u32)step), attr_int(1, axis + 1)};
    v = dv_op(d, OP_concat, lines, (u32)step, join, 2);
    t.dims[axis] = d->to->dim(d, '*', d->to->dim(d, '+', t.dims[axis], most), step);
    v = dv_reshape(d, v, t.rank, t.dims);
  }
  if (v && !d->failed && !d->to->same(d, dv_type(d, v).dims[axis], used)) v = d->to->part(d, v, axis, 0, used);
  if (v && !d->failed && !d->to->same(d, size, used)) v = spread_along(d, v, axis, 1, 0, size);
  return d->failed ? 0 : v;
}

/* v, whose first axes are the items of the windows and then the axes of t: items are added where they lie. */
static Dv add_windows(Deriv *d, Dv v, const EinsumWindow *windows, const ArrayType *t) {
  enum { FEW_ITEMS = 16 }; /* of a window, whose size is known: beyond, items are added by positions */
  u32 left = 0;
  for (u32 k = 0; k < t->rank; k++) left += windows[k].second != 0;
  for (u32 k = 0; k < t->rank && !d->failed; k++) {
    const EinsumWindow *w = &windows[k];
    if (!w->second) continue;
    ArrayType now = dv_type(d, v), rest = now;
    const u32 axis = left-- + k;
    if (d->failed) return 0;
    if (now.dims[0] >= 1 && now.dims[0] <= FEW_ITEMS && w->steps[0] <= FEW_ITEMS && now.rank < TYPE_MAX_RANK) {
      v = add_few_items(d, v, axis, w, now.dims[0], t->dims[k]);
      d->failed |= !v;
      continue;
    }
    Dv at[2]; /* of windows, of items: places along the axis */
    for (u32 j = 0; j < 2; j++) {
      at[j] = dv_positions(d, now.dims[j ? 0 : axis], 2, !j);
      if (w->steps[j] != 1) at[j] = dv2(d, OP_multiply, at[j], d->failed ? 0 : d->to->size(d, w->steps[j]));
    }
    Dv where = dv2(d, OP_add, at[0], at[1]);
    u32 perm[TYPE_MAX_RANK], n = 0;
    rest.rank = 0;
    for (u32 j = 1; j < now.rank; j++) {
      if (j == axis) perm[n++] = 0;
      perm[n++] = j;
      rest.dims[rest.rank++] = j == axis ? t->dims[k] : now.dims[j];
    }
    v = dv_permute(d, v, perm);
    Dv zeros = d->failed ? 0 : d->to->zeros(d, &rest);
    v = zeros && where && v ? d->to->add_at(d, zeros, axis - 1, where, v) : 0;
    d->failed |= !v;
  }
  return v;
}

/* Would the windows of the turned way have fewer elements, about, than those that are added? Sizes that are symbols
 * count by what is known of them. */
static bool worth_turning(Deriv *d, const Factors *f, const ArrayType *t) {
  f64 turned = 1, added = 1;
  u32 at, axis, counted = 0;
  const EinsumWindow *windows = f->spec->windows[f->own];
  for (u32 k = 0; k < t->rank; k++) {
    const EinsumWindow *w = &windows[k];
    if (!w->second) {
      added *= d->to->about(d, t->dims[k]);
      continue;
    }
    if (axes_with(f, w->first, false, &at, &axis) != 1) return false;
    ArrayType x = dv_type(d, f->xs[at]);
    added *= d->to->about(d, x.dims[axis]);
    turned *= d->to->about(d, t->dims[k]) / d->to->about(d, x.dims[axis]);
    for (u32 j = 0; j < x.rank && !(counted >> at & 1); j++) turned *= d->to->about(d, x.dims[j]);
    counted |= 1u << at;
  }
  return turned <= 2 * added;
}

static u32 put_factor(char *text, u32 len, size_t room, const char *term, const EinsumWindow *windows) {
  for (u32 k = 0; term[k]; k++) {
    const EinsumWindow *w = &windows[k];
    if (w->second)
      len += (u32)snprintf(text + len, room - len, "(%lld%c+%lld%c)", (long long)w->steps[0], w->first,
                           (long long)w->steps[1], w->second);
    else text[len++] = term[k];
  }
  return len;
}

/* einsum of the others and g, with the operand's letters, each once, as its result. A letter that nobody else has
 * was summed alone: the result is stretched along it. A size of 1 that was stretched is summed. */
static bool pull_einsum(Deriv *d, const DerivNode *n, Dv g, const bool *wants, Dv *out) {
  enum { AXIS_TEXT = 24, EINSUM_TEXT = (EINSUM_MAX_OPERANDS + 2) * (TYPE_MAX_RANK * AXIS_TEXT + 1) + 80 };
  Spec s;
  if (!read_spec(d, n, &s)) return false;
  for (u32 o = 0; o < s.count && !d->failed; o++) {
    if (!wants[o]) continue;
    char text[EINSUM_TEXT], own[2 * TYPE_MAX_RANK + 1], kept[2 * TYPE_MAX_RANK + 1] = "";
    Factors f = {.spec = &s, .own = o, .count = s.count};
    ArrayType whole = dv_type(d, n->operands[o]), t = whole, once, has;
    u32 len = 0, k = 0, unused[2];
    bool any = false, turned;
    for (u32 i = 0; i < s.count; i++) {
      f.xs[i] = i == o ? g : n->operands[i];
      if (i == o && strlen(s.result) > TYPE_MAX_RANK) return false;
      memcpy(f.terms[i], i == o ? s.result : s.terms[i], strlen(i == o ? s.result : s.terms[i]));
      if (i != o) memcpy(f.windows[i], s.windows[i], sizeof s.windows[i]);
    }
    cut_windows(d, &f, &whole);
    memcpy(own, s.terms[o], whole.rank + 1u);
    Factors before = f;
    turned = !d->failed && worth_turning(d, &f, &whole);
    for (u32 i = 0; i < whole.rank; i++) any |= s.windows[o][i].second != 0;
    for (u32 i = 0; i < whole.rank && turned && !d->failed; i++) { /* windows of its own */
      const EinsumWindow *w = &s.windows[o][i];
      if (!w->second) continue;
      char fresh = unused_letter(&f, own);
      turned = fresh && turn_windows(d, &f, w, whole.dims[i], fresh);
      own[i] = fresh;
    }
    if (d->failed) return false;
    if (any && !turned) { /* what they see as axes, two for one */
      f = before;
      t.rank = 0;
      for (u32 pass = 0; pass < 2; pass++)
        for (u32 i = 0; i < whole.rank; i++) {
          const EinsumWindow *w = &s.windows[o][i];
          if (!pass && !w->second) continue;
          if (t.rank == TYPE_MAX_RANK) return false;
          own[t.rank] = pass ? s.terms[o][i] : (char)w->second;
          t.dims[t.rank] = w->second ? letter_size(d, &f, (u8)own[t.rank], w, whole.dims[i], &whole) : whole.dims[i];
          t.rank++;
        }
      own[t.rank] = 0;
    }
    once = has = t;
    once.rank = has.rank = 0;
    for (u32 i = 0; i < f.count; i++) {
      if (i) text[len++] = ',';
      len = put_factor(text, len, sizeof text, f.terms[i], f.windows[i]);
    }
    for (u32 i = 0; i < t.rank; i++) {
      if (strchr(own, own[i]) != own + i) continue;
      bool found = axes_with(&f, (u8)own[i], false, &unused[0], &unused[1]) ||
                   axes_with(&f, (u8)own[i], true, &unused[0], &unused[1]);
      once.dims[once.rank++] = t.dims[i];
      if (!found) continue;
      kept[k++] = own[i];
      has.dims[has.rank++] = t.dims[i];
    }
    text[len++] = '-';
    text[len++] = '>';
    memcpy(text + len, kept, k);
    len += k;
    GraphAttr attrs[2] = {{.kind = ATTR_text, .param = 0, .count = len, .text = text}, attr_list(1, f.count)};
    Dv v = deriv_fit(d, dv_op(d, OP_einsum, f.xs, f.count, attrs, 2), &has);
    Dim dims[TYPE_MAX_RANK];
    for (u32 i = 0, at = 0; i < once.rank; i++) { /* what was summed alone: a size of 1, then stretched */
      bool found = false;
      for (u32 j = 0, seen = 0; j < t.rank && !found && seen <= i; j++)
        if (strchr(own, own[j]) == own + j && seen++ == i) found = memchr(kept, own[j], k) != NULL;
      dims[i] = found ? has.dims[at++] : 1;
    }
    v = dv_stretch(d, dv_reshape(d, v, once.rank, dims), once.rank, once.dims);
    v = once.rank < t.rank ? on_diagonals(d, v, own, &t) : v;
    out[o] = any && !turned ? add_windows(d, v, s.windows[o], &whole) : v;
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
