/* ops.c — the table of operations (see ops.h and ops.def). */
#include "lang/ops.h"

#include <string.h>

#include "op_params.h" /* made by jit/host/gen_ops.c: SHOWN_name, SIGNATURE_name, PARAMS_name */

#define LOWER_by(lowering) LOWER_element
#define LOWER_view(reads) LOWER_view
#define LOWER_move(reads) LOWER_move
#define LOWER_make(reads) LOWER_make
#define LOWER_fill(number) LOWER_fill
#define LOWER_reduce(fold) LOWER_reduce
#define LOWER_scan(fold) LOWER_scan
#define LOWER_math_by(lowering) LOWER_math
#define LOWER_math_or_compose LOWER_math
#define LOWER_compose_by(formula) LOWER_compose
#define LOWER_calls(order) LOWER_calls
#define DERIVATIVE_none(instead) DERIVATIVE_none
#define DERIVATIVE_by(rule) DERIVATIVE_rule
#define BATCH_by(rule) BATCH_rule
#define INSTEAD_none(instead) instead
#define INSTEAD_by(rule) ""
#define INSTEAD_rule ""
#define INSTEAD_zero ""
#define INSTEAD_construct ""
#define INSTEAD_weft ""

/* What an argument of the cell `lower` says. */
#define HOW_view(reads) READS_##reads, FOLD_none, CALLS_none, 0
#define HOW_move(reads) READS_##reads, FOLD_none, CALLS_none, 0
#define HOW_make(reads) READS_##reads, FOLD_none, CALLS_none, 0
#define HOW_fill(number) READS_moved, FOLD_none, CALLS_none, number
#define HOW_reduce(fold) READS_same, FOLD_##fold, CALLS_none, 0
#define HOW_scan(fold) READS_same, FOLD_##fold, CALLS_none, 0
#define HOW_calls(order) READS_same, FOLD_none, CALLS_##order, 0
#define HOW_NOTHING READS_same, FOLD_none, CALLS_none, 0
#define HOW_none HOW_NOTHING
#define HOW_element HOW_NOTHING
#define HOW_by(lowering) HOW_NOTHING
#define HOW_math HOW_NOTHING
#define HOW_math_by(lowering) HOW_NOTHING
#define HOW_math_or_compose HOW_NOTHING
#define HOW_convert HOW_NOTHING
#define HOW_mask HOW_NOTHING
#define HOW_join HOW_NOTHING
#define HOW_compose HOW_NOTHING
#define HOW_compose_by(formula) HOW_NOTHING
#define HOW_extern HOW_NOTHING
#define HOW_weft HOW_NOTHING

const OpInfo op_infos[OP_COUNT] = {
    {"none", "()", "", "", .params = NULL},
#define OP(name, signature, family, dtype, shape, needs, check, effect, agree, kernel, lower, deriv, batch, flops,  \
           doc)                                                                                                 \
  {SHOWN_##name, SIGNATURE_##name, doc, INSTEAD_##deriv, FAM_##family, DTYPE_RULE_##dtype, NEED_##needs,         \
   CHECK_##check, EFF_##effect, AGREE_##agree, LOWER_##lower, DERIVATIVE_##deriv, BATCH_##batch, flops,         \
   PARAMS_##name, HOW_##lower},
#include "lang/ops.def"
#undef OP
};

/* A construct says how it calls. */
#define OP(name, signature, family, dtype, shape, needs, check, effect, agree, kernel, lower, ...) \
  _Static_assert(FAM_##family != FAM_control || LOWER_##lower != LOWER_none, #name ": calls(ORDER) is missing");
#include "lang/ops.def"
#undef OP

#define OP_MODULE(name) #name,
const char *const op_modules[OP_MODULE_COUNT] = {OP_MODULES(OP_MODULE)};
#undef OP_MODULE

bool op_takes_shape(u32 op) {
  const OpInfo *info = op_info(op);
  for (u32 p = 0; p < info->nparams; p++)
    if (strcmp(info->params[p].name, "shape") == 0) return true;
  return false;
}

u32 op_param_of(u32 op, ParamKind kind) {
  const OpInfo *info = op_info(op);
  for (u32 p = 0; p < info->nparams; p++)
    if (info->params[p].kind == kind) return p;
  return UINT32_MAX;
}

enum { COMPLEX_none, COMPLEX_own, COMPLEX_real, COMPLEX_rule = 4 };
static const u8 of_complex[OP_COUNT] = {
#define COMPLEX(op, result, deriv) [OP_##op] = COMPLEX_##result | COMPLEX_##deriv,
#include "lang/complex.def"
#undef COMPLEX
};

bool op_gives_real(u32 op) { return (of_complex[op] & COMPLEX_real) != 0; }
bool op_complex_deriv(u32 op) { return of_complex[op] == COMPLEX_none || (of_complex[op] & COMPLEX_rule); }

bool op_takes(u32 op, u32 dtype) {
  DTypeNeed need = op_need(op);
  if (dtype_can(dtype, need) == CAN_none) return false;
  if (dtype_kind(dtype) != DK_COMPLEX || of_complex[op] != COMPLEX_none) return true;
  return need == NEED_none || need == NEED_store || need == NEED_convert || need == NEED_print;
}

OpId op_by_name(const char *s, size_t len) {
  for (u32 i = 1; i < OP_COUNT && len; i++) {
    const char *name = op_infos[i].name;
    if (*name == *s && strncmp(name, s, len) == 0 && !name[len]) return (OpId)i;
  }
  return OP_none;
}
