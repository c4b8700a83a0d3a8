/* ops.c — the table of operations (see ops.h and ops.def). */
#include "lang/ops.h"

#include <string.h>

#include "op_params.h" /* made by jit/host/gen_ops.c: SHOWN_name, PARAMS_name */

#define LOWER_by(lowering) LOWER_element
#define LOWER_math_by(lowering) LOWER_math
#define LOWER_math_or_compose LOWER_math
#define LOWER_compose_by(formula) LOWER_compose
#define DERIVATIVE_none(instead) DERIVATIVE_none
#define DERIVATIVE_by(rule) DERIVATIVE_rule
#define BATCH_by(rule) BATCH_rule
#define INSTEAD_none(instead) instead
#define INSTEAD_by(rule) ""
#define INSTEAD_rule ""
#define INSTEAD_zero ""
#define INSTEAD_construct ""
#define INSTEAD_weft ""

const OpInfo op_infos[OP_COUNT] = {
    {"none", "()", "", "", .params = NULL},
#define OP(name, signature, family, dtype, check, effect, agree, kernel, lower, deriv, batch, flops, doc)       \
  {SHOWN_##name, signature, doc, INSTEAD_##deriv, FAM_##family, DTYPE_RULE_##dtype, CHECK_##check, EFF_##effect, \
   AGREE_##agree, LOWER_##lower, DERIVATIVE_##deriv, BATCH_##batch, flops, PARAMS_##name},
#include "lang/ops.def"
#undef OP
};

#define OP_MODULE(name) #name,
const char *const op_modules[OP_MODULE_COUNT] = {OP_MODULES(OP_MODULE)};
#undef OP_MODULE

bool op_takes_shape(u32 op) {
  const OpInfo *info = op_info(op);
  for (u32 p = 0; p < info->nparams; p++)
    if (strcmp(info->params[p].name, "shape") == 0) return true;
  return false;
}

DTypeNeed op_need(u32 op) {
  static const u8 of_family[FAM_COUNT] = {
      [FAM_elementwise] = NEED_compute, [FAM_reduce] = NEED_reduce, [FAM_scan] = NEED_reduce,
      [FAM_view] = NEED_store, [FAM_index] = NEED_order, [FAM_make] = NEED_store, [FAM_sort] = NEED_order,
      [FAM_linalg] = NEED_factor, [FAM_random] = NEED_random, [FAM_text] = NEED_print, [FAM_io] = NEED_print,
  };
  static const u8 of_op[OP_COUNT] = {/* which is not that of their family */
      [OP_astype] = NEED_convert, [OP_where] = NEED_store, [OP_stop_gradient] = NEED_store,
      [OP_array] = NEED_convert, [OP_arange] = NEED_compute, [OP_linspace] = NEED_compute,
      [OP_random_permutation] = NEED_store,
      [OP_take] = NEED_store, [OP_take_along_axis] = NEED_store, [OP_compress] = NEED_store,
      [OP_one_hot] = NEED_convert, [OP_scatter] = NEED_compute,
      [OP_matmul] = NEED_product, [OP_dot] = NEED_product, [OP_vecdot] = NEED_product, [OP_outer] = NEED_product,
      [OP_tensordot] = NEED_product, [OP_einsum] = NEED_product, [OP_linalg_diagonal] = NEED_store,
  };
  return (DTypeNeed)(of_op[op] ? of_op[op] : of_family[op_info(op)->family]);
}

OpId op_by_name(const char *s, size_t len) {
  for (u32 i = 1; i < OP_COUNT; i++) {
    const char *name = op_infos[i].name;
    if (strlen(name) == len && memcmp(name, s, len) == 0) return (OpId)i;
  }
  return OP_none;
}
