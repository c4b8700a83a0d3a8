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

#define KERNEL_none(name)
#define KERNEL_compose(name)
#define KERNEL_math(name)
#define KERNEL_loop(name)
#define KERNEL_view(name)
#define KERNEL_extern(name)
#define KERNEL_weft(name) \
  WeftStatus eager_##name(Vm *vm, Value *args, Value *out) { return call(vm, OP_##name, args, out); }
#define OP(name, signature, family, dtype, check, effect, agree, lower, ...) KERNEL_##lower(name)
#include "lang/ops.def"
#undef OP
