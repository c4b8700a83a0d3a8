/* jit.c — the backends as the tracer sees them. */
#include "jit/jit.h"

#include <string.h>

#include "jit/lower/compile.h"
#include "jit/scalar/mir_emit.h"

enum { TARGETS = 3 };
static const JitTarget *const targets[TARGETS] = {&target_loops, &target_mir, &target_device};

struct Jit {
  JitState state;
  Backend backends[TARGETS];
  bool removed[TARGETS];
};

static BackendResult compile_for(Vm *vm, const Backend *self, Region *r, const CompileLimits *limits, Buf *why) {
  Jit *jit = self->state;
  const JitTarget *target = targets[self - jit->backends];
  if (jit->state.device && region_on_device(r, jit->state.device->device)) target = &target_device;
  return compile_region(vm, &jit->state, target, r, limits, why);
}

Jit *jit_new(Vm *vm, const LoopMath *math, u32 math_count) {
  Jit *jit = mem_alloc_zero(&vm->alloc, sizeof *jit);
  if (!jit) return NULL;
  jit->state = (JitState){.alloc = &vm->alloc, .math = math, .math_count = math_count, .cpu = vec_level_best()};
  for (u32 i = 0; i < COUNT_OF(targets); i++)
    jit->backends[i] = (Backend){.name = targets[i]->name, .compile = compile_for, .state = jit,
                                 .weighed = targets[i]->weighed};
  return jit;
}

void jit_free(Vm *vm, Jit *jit) {
  if (!jit) return;
  if (jit->state.pool) mir_pool_free(jit->state.pool);
  vec_emitter_free(jit->state.vector);
  code_memory_free(jit->state.memory);
  mem_free(&vm->alloc, jit->state.plain_math, sizeof(LoopMath) * jit->state.math_count);
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
  if (jit->state.device) jit->state.device->remove(vm);
  jit_free(vm, jit);
}

void jit_print_mir(const Region *r, Buf *out) {
  const Plan *p = r->code;
  if (!r->backend || r->backend->compile != compile_for || !p) return;
  const JitCode *code = p->code;
  if (code->target->print) code->target->print(code, p, out);
}

void jit_print_asm(const Region *r, Buf *out) {
  const Plan *p = r->code;
  if (!r->backend || r->backend->compile != compile_for || !p) return;
  const JitCode *code = p->code;
  if (code->target->print_machine) code->target->print_machine(code, p, out);
}

/* ---- what array loops are compiled to --------------------------------------------------------------- */

bool jit_cpu_known(const char *cpu) {
  VecLevel level;
  return vec_level_find(cpu, &level);
}

bool jit_cpu_runs(const char *cpu) {
  VecLevel level;
  return vec_level_find(cpu, &level) && vec_level_runs(level);
}

static bool use_cpu(JitState *s, VecLevel level) {
  s->cpu = level;
  if (level != VEC_SCALAR) return true;
  s->plain_math = mem_alloc(s->alloc, sizeof(LoopMath) * s->math_count);
  if (!s->plain_math) return false;
  for (u32 i = 0; i < s->math_count; i++) s->plain_math[i] = s->math[i], s->plain_math[i].strip = NULL;
  s->math = s->plain_math;
  return true;
}

WeftStatus jit_install(Vm *vm, const LoopMath *math, u32 math_count, const JitDevice *device, const char *cpu) {
  VecLevel level = vec_level_best();
  if (cpu && (!vec_level_find(cpu, &level) || !vec_level_runs(level))) {
    if (device) device->remove(vm);
    return vm_error(vm, EK_value, "no such level of the processor");
  }
  Jit *jit = jit_new(vm, math, math_count);
  if (!jit || !use_cpu(&jit->state, level)) {
    if (device) device->remove(vm);
    jit_free(vm, jit);
    return vm_error_memory(vm);
  }
  jit->state.device = device;
  u32 added = 0;
  for (u32 i = 0; i < COUNT_OF(targets); i++) {
    if (targets[i]->on_device && device) jit->backends[i].name = device->name;
    jit->backends[i].remove = remove_backend;
    jit->removed[i] = (targets[i]->on_device && !device) || !tracer_add_backend(vm, &jit->backends[i]);
    added += !jit->removed[i];
  }
  if (added) return WEFT_OK;
  if (device) device->remove(vm);
  jit_free(vm, jit);
  return vm_error(vm, EK_limit, "too many backends");
}
