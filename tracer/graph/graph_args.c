/* graph_args.c — the arguments of an operation as its shape rule reads them (graph_infer.h), and whether they are what
 * the kernel takes: what it would refuse must not become a node at all, the eager operation says what is wrong. */
#include "tracer/graph/graph_infer.h"

#include <stdio.h>
#include <string.h>

/* ---- refusing ------------------------------------------------------------------------------------------------ */

bool inf_fail(Infer *c, ErrorKind kind, const char *text) {
  c->err->kind = (u8)kind;
  snprintf(c->err->text, sizeof c->err->text, "%s", text);
  return false;
}

bool inf_no_rule(Infer *c) { return inf_fail(c, EK_unsupported, "not supported in a trace"); }

/* A computed axis is no error, but nothing that a graph can take. */
bool inf_axis_fails(Infer *c, u32 p, ErrorKind kind, const char *what) {
  const GraphArg *a = &c->args[p];
  bool known = a->kind == ARG_attr && a->attr->kind != ATTR_dim && a->attr->kind != ATTR_dims;
  return inf_fail(c, known ? kind : EK_unsupported, known ? what : "the axis must be known while tracing");
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

const ArrayType *inf_type(const Infer *c, u32 p) {
  const GraphArg *a = &c->args[p];
  return a->kind == ARG_value && !value_is_token(c->g, a->value) ? value_type(c->g, a->value) : NULL;
}

bool inf_dim(Infer *c, u32 p, Dim fallback, Dim *out) {
  const GraphArg *a = &c->args[p];
  *out = fallback;
  if (a->kind == ARG_hole) return true;
  if (a->kind == ARG_value) return value_dim(c->g, a->value, out);
  if (a->kind != ARG_attr) return false;
  switch (a->attr->kind) {
    case ATTR_nil: return true;
    case ATTR_int: *out = size_const(&c->g->sizes, a->attr->i); return *out != DIM_NONE;
    case ATTR_dim: *out = a->attr->dim; return true;
    default: return false;
  }
}

bool inf_int(Infer *c, u32 p, i64 fallback, i64 *out) {
  Dim d;
  *out = fallback;
  if (c->args[p].kind == ARG_hole) return true;
  if (c->args[p].kind == ARG_value) return value_dim(c->g, c->args[p].value, &d) && size_is_const(&c->g->sizes, d, out);
  return arg_int(&c->args[p], fallback, out);
}

bool inf_given(const Infer *c, u32 p) {
  const GraphArg *a = &c->args[p];
  return a->kind != ARG_hole && !(a->kind == ARG_attr && a->attr->kind == ATTR_nil);
}

bool inf_ints(Infer *c, u32 p, u32 *n, i64 *out, u32 cap) {
  const GraphArg *a = &c->args[p];
  i64 one;
  if (a->kind == ARG_attr && (a->attr->kind == ATTR_ints || a->attr->kind == ATTR_dims)) {
    if (a->attr->count > cap) return false;
    *n = a->attr->count;
    memcpy(out, a->attr->ints, sizeof *out * *n);
    return true;
  }
  if (!inf_int(c, p, 0, &one)) return false;
  *n = 1;
  out[0] = one;
  return true;
}

bool inf_shape(Infer *c, u32 p, u32 *rank, Dim *dims) {
  const GraphArg *a = &c->args[p];
  *rank = 0;
  if (a->kind == ARG_hole) return true;
  if (a->kind == ARG_list) {
    if (a->count > TYPE_MAX_RANK) return false;
    *rank = a->count;
    for (u32 i = 0; i < a->count; i++)
      if (!value_dim(c->g, a->values[i], &dims[i])) return false;
    return true;
  }
  if (a->kind == ARG_attr && (a->attr->kind == ATTR_dims || a->attr->kind == ATTR_ints)) {
    if (a->attr->count > TYPE_MAX_RANK) return false;
    *rank = a->attr->count;
    for (u32 i = 0; i < a->attr->count; i++)
      dims[i] = a->attr->ints[i] == -1 && a->attr->kind == ATTR_ints ? DIM_INFER : a->attr->ints[i];
    return true;
  }
  *rank = 1;
  if (!inf_dim(c, p, 0, &dims[0])) return false;
  i64 v;
  if (size_is_const(&c->g->sizes, dims[0], &v) && v == -1) dims[0] = DIM_INFER;
  return true;
}

bool inf_axis(Infer *c, u32 p, i64 fallback, bool *flat, i64 *axis) {
  *flat = !inf_given(c, p) && fallback == INT64_MIN;
  *axis = 0;
  if (*flat) return true;
  return inf_int(c, p, fallback, axis) || inf_axis_fails(c, p, EK_type, "the axis must be an integer");
}

bool inf_arrays(Infer *c, const ArrayType ***out, u32 *n) {
  u32 most = 0;
  for (u32 p = 0; p < op_info(c->op)->nparams; p++)
    most += c->args[p].kind == ARG_value ? 1 : c->args[p].kind == ARG_list ? c->args[p].count : 0;
  const ArrayType **xs = c->few;
  *out = xs;
  *n = 0;
  if (most > FEW_OPERANDS) {
    c->more = *out = xs = mem_alloc(c->g->alloc, sizeof *xs * most);
    c->nmore = most;
    if (!xs) {
      c->g->failed = true;
      return inf_no_rule(c);
    }
  }
  for (u32 p = 0; p < op_info(c->op)->nparams; p++) {
    const GraphArg *a = &c->args[p];
    u32 count = a->kind == ARG_value ? 1 : a->kind == ARG_list ? a->count : 0;
    for (u32 i = 0; i < count; i++) {
      ValueId v = a->kind == ARG_list ? a->values[i] : a->value;
      if (value_is_token(c->g, v)) return inf_no_rule(c);
      xs[(*n)++] = value_type(c->g, v);
    }
  }
  if (*n == 0) return inf_no_rule(c);
  c->out->device = 0;
  for (u32 i = 0; i < *n; i++)
    if (xs[i]->device) c->out->device = xs[i]->device;
  return true;
}

/* ---- would the kernel take it? ---------------------------------------------------------------------------- */

bool inf_flags_fit(const Infer *c) {
  const OpInfo *info = op_info(c->op);
  for (u32 p = 1; p < info->nparams; p++) {
    const GraphArg *a = &c->args[p];
    if (a->kind == ARG_hole || !info->params[p].has_default ||
        (a->kind == ARG_attr && (a->attr->kind == ATTR_bool || a->attr->kind == ATTR_dtype)))
      continue;
    if (info->params[p].kind == PARAM_flag || (inf_given(c, p) && info->params[p].kind == PARAM_dtype)) return false;
  }
  return true;
}

bool inf_operands_fit(const Infer *c) {
  const OpInfo *info = op_info(c->op);
  for (u32 p = 0; p < info->nparams && !info->params[p].has_default; p++)
    if (!inf_given(c, p)) return false;
  return true;
}

bool inf_is_integer(const Infer *c, u32 p) {
  const GraphArg *a = &c->args[p];
  const ArrayType *t = inf_type(c, p);
  if (t) return t->rank == 0 && dtype_kind(t->dtype) == DK_INT;
  return a->kind == ARG_attr && (a->attr->kind == ATTR_int || a->attr->kind == ATTR_dim);
}

bool inf_are_integers(const Infer *c, u32 p) {
  const GraphArg *a = &c->args[p];
  if (a->kind == ARG_attr && (a->attr->kind == ATTR_ints || a->attr->kind == ATTR_dims)) return !a->attr->pairs;
  if (a->kind != ARG_list) return inf_is_integer(c, p);
  for (u32 i = 0; i < a->count; i++) {
    const ArrayType *t = value_is_token(c->g, a->values[i]) ? NULL : value_type(c->g, a->values[i]);
    if (!t || t->rank || dtype_kind(t->dtype) != DK_INT) return false;
  }
  return true;
}

bool inf_is_list(const Infer *c, u32 p) {
  return c->args[p].kind == ARG_attr && c->args[p].attr->kind == ATTR_ints;
}

bool inf_is_number(const Infer *c, u32 p) {
  const ArrayType *t = inf_type(c, p);
  return !inf_given(c, p) || c->args[p].kind == ARG_attr || (t && t->rank == 0);
}

bool inf_is_key(const Infer *c) {
  const ArrayType *t = inf_type(c, 0);
  return t && t->dtype == DT_i64 && t->rank == 1 && dim_equal(c->dims, t->dims[0], 2);
}

bool inf_is_word(const Infer *c, u32 p, const char *const *words) {
  const GraphArg *a = &c->args[p];
  if (a->kind == ARG_hole) return true;
  if (a->kind != ARG_attr || a->attr->kind != ATTR_text) return false;
  for (; *words; words++)
    if (strlen(*words) == a->attr->count && !memcmp(*words, a->attr->text, a->attr->count)) return true;
  return false;
}

bool inf_axes_fit(const Infer *c, u32 p, i64 fallback, bool nil_too) {
  const GraphArg *a = &c->args[p];
  const ArrayType *t = inf_type(c, 0);
  RuleError err;
  u32 mask;
  if (!t) return true;
  if (a->kind == ARG_hole) return rule_axis(fallback, t->rank, &mask, &err);
  if (!inf_given(c, p)) return nil_too;
  return a->kind != ARG_attr ? inf_is_integer(c, p) && t->rank : arg_axes(a, t->rank, &mask);
}

bool inf_scale_fits(const Infer *c, u32 p) {
  const ArrayType *xs[2] = {inf_type(c, 0), inf_type(c, p)};
  ArrayType both;
  RuleError err;
  return !inf_given(c, p) ||
         (xs[0] && xs[1] && xs[1]->rank <= xs[0]->rank && rule_broadcast(c->dims, 2, xs, &both, &err));
}
