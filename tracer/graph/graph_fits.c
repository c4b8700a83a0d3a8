/* graph_fits.c — whether what stands beside the operands of an operation is what its kernel takes. A node whose
 * result nobody needs does not run: what its kernel would refuse must not become a node at all, the eager operation
 * says what is wrong. */
#include "tracer/graph/graph.h"

#include <string.h>

static bool fits_given(const GraphArg *a) {
  return a->kind != ARG_hole && !(a->kind == ARG_attr && a->attr->kind == ATTR_nil);
}

static const ArrayType *operand_type(const Graph *g, const GraphArg *a) {
  return a->kind == ARG_value && !value_is_token(g, a->value) ? value_type(g, a->value) : NULL;
}

static bool is_integer(const Graph *g, const GraphArg *a) {
  const ArrayType *t = operand_type(g, a);
  if (t) return t->rank == 0 && dtype_kind(t->dtype) == DK_INT;
  return a->kind == ARG_attr && (a->attr->kind == ATTR_int || a->attr->kind == ATTR_dim);
}

static bool are_integers(const Graph *g, const GraphArg *a) {
  if (a->kind == ARG_attr && (a->attr->kind == ATTR_ints || a->attr->kind == ATTR_dims)) return !a->attr->pairs;
  if (a->kind != ARG_list) return is_integer(g, a);
  for (u32 i = 0; i < a->count; i++) {
    const ArrayType *t = value_is_token(g, a->values[i]) ? NULL : value_type(g, a->values[i]);
    if (!t || t->rank || dtype_kind(t->dtype) != DK_INT) return false;
  }
  return true;
}

/* An axis, or several, of the first operand. `fallback`: when none was given; nil stands for it where `nil_too`. */
static bool axes_fit(const Graph *g, const GraphArg *x, const GraphArg *a, i64 fallback, bool nil_too) {
  const ArrayType *t = operand_type(g, x);
  RuleError err;
  u32 mask;
  if (!t) return true;
  if (a->kind == ARG_hole) return rule_axis(fallback, t->rank, &mask, &err);
  if (!fits_given(a)) return nil_too;
  return a->kind != ARG_attr ? is_integer(g, a) && t->rank : arg_axes(a, t->rank, &mask);
}

static bool key_fits(const Graph *g, DimCtx *dims, const GraphArg *a) {
  const ArrayType *t = operand_type(g, a);
  return t && t->dtype == DT_i64 && t->rank == 1 && dim_equal(dims, t->dims[0], 2);
}

static bool scale_fits(const Graph *g, DimCtx *dims, const GraphArg *x, const GraphArg *scale) {
  const ArrayType *xs[2] = {operand_type(g, x), operand_type(g, scale)};
  ArrayType both;
  RuleError err;
  return !fits_given(scale) ||
         (xs[0] && xs[1] && xs[1]->rank <= xs[0]->rank && rule_broadcast(dims, 2, xs, &both, &err));
}

static bool is_named(const OpParam *p, const char *name) {
  return strlen(name) == p->len && !memcmp(name, p->name, p->len);
}

/* A flag is true or false, a dtype a dtype, or nil, whatever the operation. */
static bool flags_fit(const OpInfo *info, const GraphArg *args) {
  static const char *const flags[] = {"keepdims", "descending", "approximate", "reverse", "include_initial", "upper",
                                      "endpoint", "replace", "return_index", "return_inverse", "return_counts"};
  for (u32 p = 1; p < info->nparams; p++) {
    const GraphArg *a = &args[p];
    if (a->kind == ARG_hole || !info->params[p].has_default ||
        (a->kind == ARG_attr && (a->attr->kind == ATTR_bool || a->attr->kind == ATTR_dtype)))
      continue;
    if (fits_given(a) && is_named(&info->params[p], "dtype")) return false;
    for (u32 i = 0; i < COUNT_OF(flags); i++)
      if (is_named(&info->params[p], flags[i])) return false;
  }
  return true;
}

/* One of a few words, the default where there is none. */
static bool is_word(const GraphArg *a, const char *const *words) {
  if (a->kind == ARG_hole) return true;
  if (a->kind != ARG_attr || a->attr->kind != ATTR_text) return false;
  for (; *words; words++)
    if (strlen(*words) == a->attr->count && !memcmp(*words, a->attr->text, a->attr->count)) return true;
  return false;
}

static bool fits_is_number(const Graph *g, const GraphArg *a) {
  const ArrayType *t = operand_type(g, a);
  return !fits_given(a) || a->kind == ARG_attr || (t && t->rank == 0);
}

/* The order of a norm: any number. */
static bool is_order(const Graph *g, const GraphArg *a) {
  const ArrayType *t = operand_type(g, a);
  if (t) return t->rank == 0 && t->dtype != DT_bool;
  return a->kind == ARG_hole || (a->kind == ARG_attr && (a->attr->kind == ATTR_int || a->attr->kind == ATTR_float));
}

static bool random_fits(const Graph *g, DimCtx *dims, u32 op, const GraphArg *args) {
  const ArrayType *t;
  switch (op) {
    case OP_random_key: return is_integer(g, &args[0]);
    case OP_random_stream: return is_integer(g, &args[0]) && is_integer(g, &args[1]);
    case OP_random_fold_in: return key_fits(g, dims, &args[0]) && is_integer(g, &args[1]);
    case OP_random_bernoulli: return key_fits(g, dims, &args[0]) && fits_is_number(g, &args[1]);
    case OP_random_uniform:
      return key_fits(g, dims, &args[0]) && fits_is_number(g, &args[2]) && fits_is_number(g, &args[3]);
    case OP_random_permutation:
      return key_fits(g, dims, &args[0]) &&
             ((t = operand_type(g, &args[1])) ? t->rank || is_integer(g, &args[1]) : is_integer(g, &args[1]));
    default: return key_fits(g, dims, &args[0]);
  }
}

/* Operands by element that must be there are arrays. */
static bool operands_fit(const OpInfo *info, const GraphArg *args) {
  for (u32 p = 0; p < info->nparams && !info->params[p].has_default; p++)
    if (!fits_given(&args[p])) return false;
  return true;
}

static const char *const sides[] = {"left", "right", NULL},
    *const pads[] = {"constant", "edge", "reflect", "symmetric", "wrap", NULL};

bool graph_args_fit(const Graph *g, DimCtx *dims, u32 op, const GraphArg *args) {
  const OpInfo *info = op_info(op);
  const ArrayType *t;
  if (!flags_fit(info, args)) return false;
  if (info->family == FAM_random) return random_fits(g, dims, op, args);
  switch (op) {
    case OP_flip: return args[1].kind == ARG_hole || axes_fit(g, &args[0], &args[1], 0, true);
    case OP_roll:
      return are_integers(g, &args[1]) && (args[2].kind == ARG_hole || axes_fit(g, &args[0], &args[2], 0, true));
    case OP_sort:
    case OP_argsort:
      return !(args[1].kind == ARG_attr && args[1].attr->kind == ATTR_ints) &&
             axes_fit(g, &args[0], &args[1], -1, false);
    case OP_topk: /* nil is the flat array, which has another rank */
      return !(args[2].kind == ARG_attr && args[2].attr->kind == ATTR_ints) &&
             axes_fit(g, &args[0], &args[2], -1, false);
    case OP_nn_softmax:
    case OP_nn_log_softmax: return axes_fit(g, &args[0], &args[1], -1, true);
    case OP_nn_layer_norm:
      return scale_fits(g, dims, &args[0], &args[1]) && scale_fits(g, dims, &args[0], &args[2]) &&
             axes_fit(g, &args[0], &args[3], -1, true);
    case OP_tril:
    case OP_triu: return args[1].kind == ARG_hole || is_integer(g, &args[1]);
    case OP_expand_dims: return args[1].kind == ARG_hole || fits_given(&args[1]);
    case OP_arange: return fits_given(&args[0]);
    case OP_norm: return is_order(g, &args[1]);
    case OP_pad: return fits_given(&args[1]) && is_word(&args[2], pads);
    case OP_compress: return (t = operand_type(g, &args[1])) && t->dtype == DT_bool && t->rank == 1;
    case OP_searchsorted:
      t = operand_type(g, &args[0]);
      return t && t->rank == 1 && is_word(&args[2], sides);
    default: return info->family != FAM_elementwise || operands_fit(info, args);
  }
}
