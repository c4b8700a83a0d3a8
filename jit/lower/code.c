/* code.c — the code of a plan, run by the loop IR's reference interpreter (see code.h). */
#include "jit/lower/code.h"

JitCode *code_new(Vm *vm, const JitTarget *target, JitState *state) {
  JitCode *code = mem_alloc_zero(&vm->alloc, sizeof *code);
  if (!code) return NULL;
  if (loop_module_init(&code->module, &vm->alloc) != WEFT_OK) {
    mem_free(&vm->alloc, code, sizeof *code);
    return NULL;
  }
  code->module.math = state->math;
  code->module.math_count = state->math_count;
  code->target = target;
  code->state = state;
  return code;
}

void code_free(Vm *vm, void *p) {
  JitCode *code = p;
  if (!code) return;
  if (code->target->unlink) code->target->unlink(vm, code);
  loop_module_free(&code->module);
  mem_free(&vm->alloc, code, sizeof *code);
}

/* ---- interpreted --------------------------------------------------------------------------------------- */

static u64 interpret_kernel(const PlanKernel *k, Vm *vm, const u64 *args, i64 lo, i64 hi) {
  u64 key = LOOP_KEY_NONE;
  (void)vm;
  if (loops_interp_kernel(k->self, args, lo, hi, &key, NULL, NULL) != WEFT_OK) return loop_key(0xFFFE, 0);
  return key;
}

static u32 interpret_native(const PlanNative *n, LoopCtx *ctx, const u64 *args) {
  u32 exit = 0;
  if (loops_interp_native(n->self, ctx, args, &exit, NULL, NULL) != WEFT_OK) return UINT32_MAX;
  return exit;
}

void code_interpret_kernel(PlanKernel *k) { k->call = interpret_kernel; }
void code_interpret_native(PlanNative *n) { n->call = interpret_native; }

static bool link_loops(Vm *vm, JitCode *code, Plan *plan, Buf *why) {
  (void)vm, (void)code, (void)why;
  for (u32 i = 0; i < plan->kernels.count; i++) code_interpret_kernel(&plan->kernels.data[i]);
  for (u32 i = 0; i < plan->natives.count; i++) code_interpret_native(&plan->natives.data[i]);
  return true;
}

const JitTarget target_loops = {.name = "loops", .link = link_loops};
