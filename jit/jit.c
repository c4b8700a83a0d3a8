/* jit.c — the backends as the tracer sees them. */
#include "jit/jit.h"

#include <string.h>

#include "jit/compile.h"
#include "jit/mir_emit.h"

struct Jit {
  JitState state;
  Backend backends[2];
  bool removed[2];
};

static const JitTarget *const targets[2] = {&target_loops, &target_mir};

static BackendResult compile_for(Vm *vm, const Backend *self, Region *r, const CompileLimits *limits, Buf *why) {
  Jit *jit = self->state;
  return compile_region(vm, &jit->state, targets[self - jit->backends], r, limits, why);
}

Jit *jit_new(Vm *vm, const LoopMath *math, u32 math_count) {
  Jit *jit = mem_alloc_zero(&vm->alloc, sizeof *jit);
  if (!jit) return NULL;
  jit->state = (JitState){.alloc = &vm->alloc, .math = math, .math_count = math_count};
  for (u32 i = 0; i < COUNT_OF(targets); i++) jit->backends[i] = (Backend){.name = targets[i]->name, .compile = compile_for, .state = jit};
  return jit;
}

void jit_free(Vm *vm, Jit *jit) {
  if (!jit) return;
  if (jit->state.pool) mir_pool_free(jit->state.pool);
  mem_free(&vm->alloc, jit, sizeof *jit);
}

const Backend *jit_backend(const Jit *jit, const char *name) {
  for (u32 i = 0; i < COUNT_OF(targets); i++)
    if (strcmp(jit->backends[i].name, name) == 0) return &jit->backends[i];
  return NULL;
}

/* The last backend takes what they share with it. */
static void remove_backend(Vm *vm, const Backend *self) {
  Jit *jit = self->state;
  jit->removed[self - jit->backends] = true;
  for (u32 i = 0; i < COUNT_OF(targets); i++)
    if (!jit->removed[i]) return;
  jit_free(vm, jit);
}

void jit_print_mir(const Region *r, Buf *out) {
  const Plan *p = r->code;
  if (!r->backend || r->backend->compile != compile_for || !p) return;
  const JitCode *code = p->code;
  if (code->target->print) code->target->print(code, p, out);
}

WeftStatus jit_install(Vm *vm, const LoopMath *math, u32 math_count) {
  Jit *jit = jit_new(vm, math, math_count);
  if (!jit) return vm_error_memory(vm);
  for (u32 i = 0; i < COUNT_OF(targets); i++) {
    jit->backends[i].remove = remove_backend;
    jit->removed[i] = !tracer_add_backend(vm, &jit->backends[i]);
  }
  if (!jit->removed[0] || !jit->removed[1]) return WEFT_OK;
  jit_free(vm, jit);
  return vm_error(vm, EK_limit, "too many backends");
}
