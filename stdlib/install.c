/* install.c — puts the kernels into a VM: the table of operations, the strips for this processor. */
#include "stdlib/text/format.h"
#include "stdlib/array/make.h"
#include "stdlib/array/wide.h"
#include "stdlib/modules/modules.h"
#include "stdlib/fft/plan.h"
#include "stdlib/text/regex.h"

#include <stdlib.h>
#include <string.h>

static const EagerFn kernels[OP_COUNT] = {
#define OP(name, ...) [OP_##name] = eager_##name,
#include "lang/ops.def"
#undef OP
};

/* The same behind a look at the operands' dtypes. */
#define OP(name, ...)                                                         \
  static WeftStatus wide_##name(Vm *vm, Value *args, Value *out) {            \
    return wide_run(vm, OP_##name, eager_##name, args, out);                  \
  }
#include "lang/ops.def"
#undef OP
static const EagerFn wide_kernels[OP_COUNT] = {
#define OP(name, ...) [OP_##name] = wide_##name,
#include "lang/ops.def"
#undef OP
};

/* NULL: this processor, or this build, has not what they need. */
static const StripTable *strips_of(StripLevel level) {
#ifdef __x86_64__
  if (level == STRIPS_AVX2 && cpu_has(CPU_AVX2 | CPU_FMA)) return &strips_avx2;
  if (level == STRIPS_AVX512 && cpu_has(CPU_AVX2 | CPU_FMA | CPU_AVX512)) return &strips_avx512;
#endif
  return level == STRIPS_BASE ? &strips_base : NULL;
}

bool stdlib_set_level(Vm *vm, StripLevel level) {
  const StripTable *strips = NULL;
  if (level != STRIPS_BEST) strips = strips_of(level);
  else if (!(strips = strips_of(STRIPS_AVX512)) && !(strips = strips_of(STRIPS_AVX2))) strips = &strips_base;
  if (strips) stdlib_of(vm)->strips = strips;
  return strips != NULL;
}

u32 stdlib_direct(Stdlib *s, u32 op, u32 dtype) {
  const u32 row = strip_row(op), count = op_info(op)->nparams == 1 ? 1 : 2;
  for (u32 d = 1; d < DT_COUNT; d++) {
    ArrayType type = {.dtype = (u8)d, .rank = 1};
    const ArrayType *both[2] = {&type, &type};
    DTypeResult r;
    RuleError err;
    if (s->strips->ops[row][d] && rule_dtype(op, count, both, &r, &err) && r.compute == d &&
        (dtype_bytes(r.result) <= 8 || dtype_bytes(d) > 8)) /* of numbers, one word */
      s->direct[op][d] = r.result;
  }
  s->direct[op][0] = 1;
  return s->direct[op][dtype];
}

WeftStatus stdlib_install(Vm *vm) {
  size_t direct = (size_t)STRIP_OPS * 16;
  Stdlib *s = mem_alloc_zero(&vm->alloc, sizeof *s + direct);
  if (!s) return vm_error_memory(vm);
  s->direct = (u8(*)[16])(s + 1);
  vm->stdlib_state = s;
  s->blas_threads = (u32)vm->tunables.threads;
  (void)!stdlib_set_level(vm, STRIPS_BEST);
  for (u32 op = 1; op < OP_COUNT; op++) vm->ops[op].eager = wide_may(op) ? wide_kernels[op] : kernels[op];
  vm->library = &library_modules;
  vm->format = format_hook;
  vm->pair = elementwise_pair;
  vm->product = matmul_pair;
  if (!vm_at_free(vm, stdlib_remove)) {
    stdlib_remove(vm);
    return vm_error_memory(vm);
  }
  return WEFT_OK;
}

void stdlib_remove(Vm *vm) {
  Stdlib *s = stdlib_of(vm);
  if (s) regex_remove(vm);
  if (s) fft_remove(vm);
  if (s) mem_free(&vm->alloc, s, sizeof *s + (size_t)STRIP_OPS * 16);
  vm->stdlib_state = NULL;
  vm->pair = vm->product = NULL;
}

WeftStatus run_op(Vm *vm, u32 op, Value *args, u32 n, Value *out) {
  Value all[OP_MAX_PARAMS];
  u32 count = op_info(op)->nparams;
  for (u32 i = 0; i < count; i++) all[i] = i < n ? args[i] : value_hole();
  WeftStatus status = (wide_may(op) ? wide_kernels[op] : kernels[op])(vm, all, out);
  for (u32 i = 0; i < count; i++) value_drop(vm, all[i]);
  return status;
}

