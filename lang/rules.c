/* rules.c — shape and dtype rules over Dim, shared by eager and traced execution (see ops.h). */
#include "lang/ops.h"

#include <stdio.h>
#include <string.h>

bool dim_equal(DimCtx *c, Dim a, Dim b) {
  if (a == b) return true;
  if (c && c->equal && (a < 0 || b < 0)) return c->equal(c, a, b);
  return false;
}

bool dim_is_one(DimCtx *c, Dim a) {
  if (a >= 0) return a == 1;
  return c && c->is_one && c->is_one(c, a);
}

Dim dim_binary(DimCtx *c, char op, Dim a, Dim b) {
  if (a < 0 || b < 0) return c->binary(c, op, a, b);
  Dim r;
  switch (op) {
    case '+': return __builtin_add_overflow(a, b, &r) || r > DIM_TOO_BIG ? DIM_TOO_BIG : r;
    case '-': return a - b > 0 ? a - b : 0;
    case '*': return __builtin_mul_overflow(a, b, &r) || r > DIM_TOO_BIG ? DIM_TOO_BIG : r;
    case '/': return b ? a / b : 0;
    case '%': return b ? a % b : 0;
    case 'm': return a < b ? a : b;
    default: return a > b ? a : b;
  }
}

void rule_shape_text(const ArrayType *t, char *out, size_t cap) {
  size_t n = 0;
  n += (size_t)snprintf(out, cap, "(");
  for (u32 d = 0; d < t->rank && n + 24 < cap; d++) {
    if (t->dims[d] >= 0) n += (size_t)snprintf(out + n, cap - n, "%s%lld", d ? ", " : "", (long long)t->dims[d]);
    else n += (size_t)snprintf(out + n, cap - n, "%sn%lld", d ? ", " : "", (long long)-t->dims[d]);
  }
  snprintf(out + n, cap - n, t->rank == 1 ? ",)" : ")");
}

bool rule_broadcast(DimCtx *c, u32 n, const ArrayType *const *xs, ArrayType *out, RuleError *err) {
  u32 rank = 0;
  for (u32 i = 0; i < n; i++)
    if (xs[i]->rank > rank) rank = xs[i]->rank;
  out->rank = (u8)rank;
  for (u32 d = 0; d < rank; d++) out->dims[d] = 1;
  for (u32 i = 0; i < n; i++) {
    u32 shift = rank - xs[i]->rank;
    for (u32 d = 0; d < xs[i]->rank; d++) {
      Dim have = out->dims[d + shift], want = xs[i]->dims[d];
      if (have == want || want == 1) continue; /* against a literal 1 nothing has to be known of the other */
      if (have != 1 && dim_equal(c, have, want)) continue;
      if (have != 1 && dim_is_one(c, want)) continue;
      if (dim_is_one(c, have)) {
        out->dims[d + shift] = want;
        continue;
      }
      err->kind = EK_shape;
      int len = snprintf(err->text, sizeof err->text, "shapes");
      for (u32 k = 0; k < n && len < (int)sizeof err->text - 60; k++) {
        char shape[80];
        rule_shape_text(xs[k], shape, sizeof shape);
        len += snprintf(err->text + len, sizeof err->text - (size_t)len, "%s %s",
                        k == 0 ? "" : k + 1 == n ? " and" : ",", shape);
      }
      snprintf(err->text + len, sizeof err->text - (size_t)len, " do not broadcast: axis %d is %lld and %lld",
               (int)d - (int)xs[i]->rank, (long long)have, (long long)want);
      return false;
    }
  }
  return true;
}

bool rule_axis(i64 axis, u32 rank, u32 *out, RuleError *err) {
  i64 a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= (i64)rank) {
    err->kind = EK_index;
    snprintf(err->text, sizeof err->text, "axis %lld is out of range for rank %u", (long long)axis, rank);
    return false;
  }
  *out = (u32)a;
  return true;
}

void rule_reduce(const ArrayType *x, u32 axes_mask, bool keepdims, ArrayType *out) {
  u32 n = 0;
  for (u32 d = 0; d < x->rank; d++) {
    if (!(axes_mask >> d & 1)) out->dims[n++] = x->dims[d];
    else if (keepdims) out->dims[n++] = 1;
  }
  out->rank = (u8)n;
}

static bool dtype_fail(RuleError *err, const char *what, u32 d) {
  err->kind = EK_dtype;
  snprintf(err->text, sizeof err->text, "%s, got %s", what, dtype_name(d));
  return false;
}

bool rule_dtype(u32 op, u32 n, const ArrayType *const *xs, DTypeResult *out, RuleError *err) {
  const OpInfo *info = op_info(op);
  u32 rule = info->dtype;
  if (n == 0) return dtype_fail(err, "needs an operand", DT_NONE);
  u32 first = rule == DTYPE_RULE_where && n > 1 ? 1 : 0;
  u32 d = xs[first]->dtype;
  bool weak = xs[first]->weak;
  for (u32 i = first + 1; i < n; i++) {
    bool w;
    d = dtype_promote_weak(d, weak, xs[i]->dtype, xs[i]->weak, &w);
    weak = w;
  }
  *out = (DTypeResult){(u8)d, (u8)d, weak && info->family == FAM_elementwise}; /* other results do not stay weak */
  DTypeKind kind = dtype_kind(d);
  if (kind == DK_COMPLEX && op_gives_real(op)) {
    out->result = (u8)dtype_real_of(d);
    return true;
  }
  switch (rule) {
    case DTYPE_RULE_same:
    case DTYPE_RULE_promote:
    case DTYPE_RULE_where: return true;
    case DTYPE_RULE_arith:
      if (kind == DK_BOOL) out->compute = out->result = DT_i64;
      return true;
    case DTYPE_RULE_float_of: out->compute = out->result = (u8)dtype_float_of(d); return true;
    case DTYPE_RULE_accum: out->compute = out->result = (u8)dtype_accum(d); return true;
    case DTYPE_RULE_compare:
    case DTYPE_RULE_test: out->result = DT_bool; return true;
    case DTYPE_RULE_logic: out->compute = out->result = DT_bool; return true;
    case DTYPE_RULE_index: out->result = DT_i64; return true;
    case DTYPE_RULE_complex_of:
      if (kind == DK_COMPLEX) return dtype_fail(err, "needs real numbers", d);
      out->compute = (u8)dtype_float_of(d);
      out->result = (u8)dtype_complex_of(d);
      return true;
    case DTYPE_RULE_bits:
      if (kind != DK_BOOL && kind != DK_INT) return dtype_fail(err, "needs integers or bools", d);
      return true;
    case DTYPE_RULE_shift:
    case DTYPE_RULE_int_same:
      if (kind == DK_BOOL) out->compute = out->result = DT_i64;
      else if (kind != DK_INT) return dtype_fail(err, "needs integers", d);
      return true;
    default: return true; /* given, custom: the operation's own function decides */
  }
}
