/* wide.c — operations on dtypes that have no kernels for them but compute in a wider dtype (see wide.h). */
#include "stdlib/array/wide.h"

static bool is_wide(u32 dtype, DTypeNeed need) { return dtype_can(dtype, need) == CAN_wide; }

/* Is a complex number that is done by parts among what `v` is, or holds? */
static bool has_parts(Value v, DTypeNeed need, bool lists) {
  if (v.kind == V_NUM || v.kind == V_ARRAY) return dtype_can(v.dtype, need) == CAN_parts;
  if (v.kind != V_LIST || !lists || list_is_packed(v.list)) return false;
  for (u32 i = 0; i < v.list->count; i++)
    if (has_parts(v.list->items[i], need, false)) return true;
  return false;
}

bool wide_has_parts(u32 op, Value v) { return has_parts(v, op_need(op), true); }

/* Is such a dtype among what `v` is, or holds? Lists that are sorted hold what comes back. */
static bool has_wide(Value v, DTypeNeed need, bool lists) {
  if (v.kind == V_NUM || v.kind == V_DTYPE || v.kind == V_ARRAY) return is_wide(v.dtype, need);
  if (v.kind != V_LIST || !lists) return false;
  if (list_is_packed(v.list)) return false; /* numbers for a shape, axes, edges: they are read one by one */
  for (u32 i = 0; i < v.list->count; i++)
    if (v.list->items[i].kind != V_LIST && has_wide(v.list->items[i], need, false)) return true;
  return false;
}

/* *out owned. */
static WeftStatus widened(Vm *vm, u32 op, DTypeNeed need, Value v, Value *out) {
  *out = value_hole();
  if (v.kind == V_LIST && has_wide(v, need, true)) {
    if (!list_new(vm, v.list->count, out)) return WEFT_ERROR;
    for (u32 i = 0; i < v.list->count; i++) {
      Value item;
      if (widened(vm, op, need, v.list->items[i], &item) != WEFT_OK || !list_push(vm, out, item)) {
        value_drop(vm, *out);
        *out = value_hole();
        return WEFT_ERROR;
      }
    }
    return WEFT_OK;
  }
  if (v.kind == V_DTYPE && is_wide(v.dtype, need)) *out = value_dtype(dtype_compute(v.dtype));
  else if ((v.kind == V_NUM || v.kind == V_ARRAY) && is_wide(v.dtype, need))
    return convert_value(vm, op, v, dtype_compute(v.dtype), out);
  else *out = value_keep(v);
  return WEFT_OK;
}

/* In a list of floats those that the operation made as wide; of integers the first: others are positions. */
static WeftStatus narrowed(Vm *vm, u32 op, u32 dtype, Value *v) {
  if (v->kind == V_LIST && list_unique(vm, v)) {
    u32 count = dtype_kind(dtype) == DK_FLOAT ? v->list->count : 1;
    for (u32 i = 0; i < count && i < v->list->count; i++) TRY(narrowed(vm, op, dtype, &v->list->items[i]));
    return WEFT_OK;
  }
  if ((v->kind != V_NUM && v->kind != V_ARRAY) || v->dtype != dtype_compute(dtype)) return WEFT_OK;
  Value wide = *v;
  *v = value_hole();
  WeftStatus status = convert_value(vm, op, wide, dtype, v);
  value_drop(vm, wide);
  return status;
}

/* The dtype of the result, by the rules of graph_infer.c: a dtype that is given, else that of the first operand, or of
 * all where they are promoted. DT_NONE: it is not rounded. */
static u32 result_dtype(u32 op, const Value *args) {
  const OpInfo *info = op_info(op);
  bool all = info->family == FAM_linalg || info->family == FAM_make || op == OP_nn_layer_norm || op == OP_histogram;
  bool weak = false, any = false;
  u32 dtype = DT_NONE;
  for (u32 i = 0; i < info->nparams; i++)
    if (args[i].kind == V_DTYPE) return args[i].dtype;
  if (info->family == FAM_random) return DT_NONE;
  for (u32 i = op == OP_bincount; i < info->nparams; i++) {
    bool list = args[i].kind == V_LIST && !list_is_packed(args[i].list);
    u32 count = list ? args[i].list->count : 1;
    for (u32 k = 0; k < count; k++) {
      Value v = list ? args[i].list->items[k] : args[i];
      if (!value_is_numeric(v) || (any && !all)) continue;
      dtype = any ? dtype_promote_weak(dtype, weak, v.dtype, value_is_weak(v), &weak) : v.dtype;
      weak = any ? weak : value_is_weak(v);
      any = true;
    }
  }
  if (!any || dtype_kind(dtype) == DK_FLOAT) return dtype;
  if (op == OP_bincount || op == OP_histogram) return DT_NONE;
  const ArrayType type = {.dtype = (u8)dtype, .rank = 1}, *types[1] = {&type};
  DTypeResult r;
  RuleError err;
  return rule_dtype(op, 1, types, &r, &err) ? r.result : DT_NONE;
}

static WeftStatus wide_run_wide(Vm *vm, u32 op, EagerFn kernel, Value *args, Value *out) {
  const OpInfo *info = op_info(op);
  DTypeNeed need = op_need(op);
  Value wide[OP_MAX_PARAMS];
  u32 made = 0, dtype = result_dtype(op, args);
  WeftStatus status = WEFT_OK;
  for (; made < info->nparams && status == WEFT_OK; made++) status = widened(vm, op, need, args[made], &wide[made]);
  if (status == WEFT_OK) status = kernel(vm, wide, out);
  for (u32 i = 0; i < made; i++) value_drop(vm, wide[i]);
  if (status != WEFT_OK || !is_wide(dtype, need)) return status;
  status = narrowed(vm, op, dtype, out);
  if (status != WEFT_OK) value_drop(vm, *out);
  return status;
}

WeftStatus wide_run(Vm *vm, u32 op, EagerFn kernel, Value *args, Value *out) {
  const OpInfo *info = op_info(op);
  DTypeNeed need = op_need(op);
  bool lists = info->family != FAM_sort;
  if (!lists && args[0].kind == V_LIST) return kernel(vm, args, out); /* its items are what they were */
  bool wide = false;
  for (u32 i = 0; i < info->nparams; i++) {
    if (UNLIKELY(has_parts(args[i], need, lists))) return parts_run(vm, op, kernel, args, out);
    wide |= has_wide(args[i], need, lists);
  }
  if (UNLIKELY(wide)) return wide_run_wide(vm, op, kernel, args, out);
  return kernel(vm, args, out);
}

bool wide_may(u32 op) {
  const OpInfo *info = op_info(op);
  DTypeNeed need = op_need(op);
  bool computes = need == NEED_compute || need == NEED_reduce || need == NEED_order || need == NEED_product ||
                  need == NEED_factor || need == NEED_random; /* what moves numbers, or shows them, takes each dtype */
  return computes && info->family != FAM_elementwise && info->lower != LOWER_weft; /* these: each operation by itself */
}
