/* kernels.c — an operation that is written in Weft as others in C see it: an eager kernel that calls its function. */
#include "stdlib/modules/modules.h"

static WeftStatus call(Vm *vm, u32 op, const Value *args, Value *out) {
  Value held[OP_MAX_PARAMS], fn;
  u32 n = op_info(op)->nparams;
  if (!fn_builtin(vm, op, &fn)) return WEFT_ERROR;
  for (u32 i = 0; i < n; i++) held[i] = value_keep(args[i]);
  WeftStatus status = vm_call(vm, fn, held, n, out);
  value_drop(vm, fn);
  return status;
}

#define CELL_weft ~, EAGER, 0
#define EAGER(name, none) \
  WeftStatus eager_##name(Vm *vm, Value *args, Value *out) { return call(vm, OP_##name, args, out); }
#define OP(name, signature, family, dtype, shape, needs, check, effect, agree, kernel, ...) OP_CELL(name, CELL_##kernel)
#include "lang/ops.def"
#undef OP
