/* state.c — making and freeing a VM. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm/alloc.h"
#include "vm/end.h"
#include "vm/module.h"
#include "vm/ref.h"
#include "vm/stack.h"

enum { DEFAULT_DEPTH = 10000 };

static bool intern_known(Vm *vm) {
  static const char *const text[] = {
#define K(n) #n,
      KNOWN_NAMES(K)
#undef K
  };
  for (u32 i = 0; i < KN_COUNT; i++)
    if (!(vm->known[i] = name_cstr(&vm->names, text[i]))) return false;
  return true;
}

/* A build made for it takes the mechanisms out that WEFT_MUTATE lists; a name that is none refuses the VM. */
static bool take_out(Vm *vm) {
#ifdef WEFT_MUTATION
  const char *names = getenv("WEFT_MUTATE");
  return !names || switches_off(&vm->switches, names);
#else
  (void)vm;
  return true;
#endif
}

Vm *vm_new(const VmOptions *options) {
  Allocator *host = options && options->alloc ? options->alloc : allocator_system();
  Vm *vm = mem_alloc_zero(host, sizeof *vm);
  if (!vm) return NULL;
  alloc_init(vm, host);
  vm->limits = (VmLimits){.fuel = UINT64_MAX, .output = UINT64_MAX, .depth = DEFAULT_DEPTH};
  if (options) {
    vm->limits = options->limits;
    if (!vm->limits.depth) vm->limits.depth = DEFAULT_DEPTH;
  }
  tunables_default(&vm->tunables);
  vm->large_left = vm->tunables.large_units;
  vm->kept.most = options && options->keep ? options->keep : keep_default();
  vm->op_table = op_info(0);
  vm->device_names[DEV_CPU] = "cpu";
  vm->device_names[DEV_GPU] = "gpu";
  vm_poll_reset(vm);
  toil_rest(&vm->toil);
  const bool named = names_init(&vm->names, &vm->alloc) == WEFT_OK;
  if (named) names_seed(&vm->names);
  if (!named || sources_init(&vm->sources, &vm->alloc) != WEFT_OK || !alloc_reserve(vm) || !stack_init(vm) ||
      !intern_known(vm) || !take_out(vm)) {
    vm_free(vm);
    return NULL;
  }
  return vm;
}

u64 vm_stat(const Vm *vm, u32 stat) {
  switch (stat) {
    case STAT_allocs: return vm->stats.array_allocs;
    case STAT_copies: return vm->stats.array_copies;
    case STAT_bytes_now: return vm->stats.bytes_now;
    case STAT_peak: return vm->stats.bytes_peak;
    case STAT_kept_now: return vm->kept.bytes;
    default: return vm->counters.at[stat];
  }
}

bool vm_at_free(Vm *vm, void (*closer)(Vm *)) {
  if (vm->closer_count == COUNT_OF(vm->closers)) return false;
  vm->closers[vm->closer_count++] = closer;
  return true;
}

void vm_end(Vm *vm) {
  vm->ending = true; /* all is destroyed now, however long it takes */
  vm->limits.deadline = 0;
  vm->interrupted = 0;
  values_settle(vm);
  while (vm->closer_count) vm->closers[--vm->closer_count](vm);
  pool_leave(vm);
  vm_error_clear(vm);
  value_drop(vm, vm->caught);
  vm->caught = value_nil();
  vec_free(&vm->alloc, &vm->caught_trace);
  modules_free(vm);
  ref_clear_all(vm);
  for (u32 i = 0; i < OP_COUNT; i++) value_drop(vm, vm->builtins[i]);
  for (u32 i = 0; i < COUNT_OF(vm->letters); i++) value_drop(vm, vm->letters[i]);
  for (u32 i = 0; i < COUNT_OF(vm->types); i++) value_drop(vm, vm->types[i]);
  if (vm->tier && vm->tier->vm_freed) vm->tier->vm_freed(vm);
  mem_free(&vm->alloc, vm->shapes, sizeof *vm->shapes * vm->shape_slots);
  stack_free(vm);
  if (vm->op_params) mem_free(&vm->alloc, vm->op_params, sizeof(Name) * OP_COUNT * OP_MAX_PARAMS);
}

void vm_free_memory(Vm *vm) {
  for (u32 i = 0; i < POINTS_KEPT; i++) value_drop(vm, vm->text_points[i].column);
  alloc_free_slabs(vm);
  mem_free(&vm->alloc, vm->text_places.at, sizeof *vm->text_places.at * vm->text_places.cap);
  vm->text_places = (TextPlaces){0};
  (void)keep_trim(vm, 0);
  if (vm->sources.alloc) sources_free(&vm->sources);
  if (vm->names.alloc) names_free(&vm->names);
  Allocator *host = vm->host_alloc;
  mem_free(host, vm, sizeof *vm);
}

void vm_free(Vm *vm) {
  if (!vm) return;
  vm_end(vm);
  vm_free_memory(vm);
}
