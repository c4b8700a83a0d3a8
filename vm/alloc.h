/* alloc.h — memory of one VM: small objects come from size classes over slabs, the rest from vm->alloc.
 *
 * vm->alloc counts every byte, enforces limits.bytes and hands on to the host's allocator. Objects of up to
 * SMALL_MAX bytes are cut from slabs and kept on free lists; slabs go back when the VM ends. Under
 * AddressSanitizer every object is an allocation of its own, so that use after free is seen. */
#ifndef WEFT_VM_ALLOC_H
#define WEFT_VM_ALLOC_H

#include "vm/vm.h"

#ifdef __SANITIZE_ADDRESS__
enum { SMALL_MAX = 0 };
#else
enum { SMALL_MAX = SMALL_STEP * (SMALL_CLASSES - 1) };
#endif

void alloc_init(Vm *vm, Allocator *host); /* makes vm->alloc usable */
void alloc_free_slabs(Vm *vm);

bool alloc_reserve(Vm *vm); /* makes the reserve of overdraft_begin; false: refused */

void *small_alloc_slow(Vm *vm, u32 class);

/* 16-aligned, uninitialised; NULL when refused (no error is raised here). */
static inline void *obj_alloc(Vm *vm, size_t n) {
  if (n > SMALL_MAX) return mem_alloc(&vm->alloc, n);
  u32 class = (u32)(n + SMALL_STEP - 1) / SMALL_STEP;
  void *p = vm->small_free[class];
  if (UNLIKELY(!p)) return small_alloc_slow(vm, class);
  __builtin_memcpy(&vm->small_free[class], p, sizeof p);
  return p;
}

static inline void obj_free(Vm *vm, void *p, size_t n) {
  if (n > SMALL_MAX) {
    mem_free(&vm->alloc, p, n);
    return;
  }
  u32 class = (u32)(n + SMALL_STEP - 1) / SMALL_STEP;
  __builtin_memcpy(p, &vm->small_free[class], sizeof p);
  vm->small_free[class] = p;
}

/* Storage of arrays (vm/keep.c): large blocks are kept when they are freed. */
enum { KEEP_LEAST = 256 << 10 };                     /* bytes from which a block is kept */
/* bytes kept at most when the host says nothing: of this machine */
u64 keep_default(void);
void *keep_alloc(Vm *vm, size_t n, size_t *got);     /* *got: its size, to be given to keep_free; NULL when refused */
void keep_free(Vm *vm, void *p, size_t n);

/* Vectors of values (items of lists and records): n may be 0, then NULL. */
Value *items_resize(Vm *vm, Value *items, u32 old, u32 count); /* keeps the first min(old, count); NULL when refused */
static inline void items_free(Vm *vm, Value *items, u32 cap) {
  if (items) obj_free(vm, items, sizeof(Value) * cap);
}

#endif
