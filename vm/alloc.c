/* alloc.c — the VM's allocator: counting, the limit, slabs for small objects (see alloc.h). */
#include "vm/alloc.h"

#include <string.h>

enum { SLAB_BYTES = 32 * 1024, RESERVE_BYTES = 8 * 1024, OVERDRAFT_BYTES = 256 * 1024 };

typedef struct Slab {
  struct Slab *next;
  size_t bytes;
} Slab;
_Static_assert(sizeof(Slab) % 16 == 0, "objects in slabs are 16-aligned");

static void *counted_resize(Allocator *self, void *p, size_t old_size, size_t new_size) {
  Vm *vm = (Vm *)self; /* alloc is the first member */
  if (new_size > old_size && vm->limits.bytes) {
    u64 more = new_size - old_size, most = vm->limits.bytes + vm->overdraft;
    if (most < vm->overdraft) most = UINT64_MAX;
    if (more > most || vm->stats.bytes_now > most - more) {
      vm->refused_by_limit = true;
      vm->refusals++;
      return NULL;
    }
    (void)keep_trim(vm, most - vm->stats.bytes_now - more);
  }
  void *q = vm->host_alloc->resize(vm->host_alloc, p, old_size, new_size);
  if (UNLIKELY(new_size && !q) && keep_trim(vm, 0)) q = vm->host_alloc->resize(vm->host_alloc, p, old_size, new_size);
  if (new_size && !q) {
    vm->refused_by_limit = false;
    vm->refusals++;
    return NULL;
  }
  vm->stats.bytes_now += new_size - old_size;
  if (vm->stats.bytes_now > vm->stats.bytes_peak) vm->stats.bytes_peak = vm->stats.bytes_now;
  return q;
}

void alloc_init(Vm *vm, Allocator *host) {
  vm->host_alloc = host;
  vm->alloc.resize = counted_resize;
}

static Slab *new_slab(Vm *vm, size_t bytes) {
  Slab *s = mem_alloc(&vm->alloc, bytes);
  if (s) *s = (Slab){.bytes = bytes};
  return s;
}

bool alloc_reserve(Vm *vm) {
  if (!vm->reserve) vm->reserve = new_slab(vm, RESERVE_BYTES);
  return vm->reserve != NULL;
}

u64 overdraft_begin(Vm *vm) {
  u64 before = vm->overdraft, over = vm->stats.bytes_now > vm->limits.bytes ? vm->stats.bytes_now - vm->limits.bytes : 0;
  if (!before) vm->overdraft = over + OVERDRAFT_BYTES; /* the limit may have been lowered below what is held */
  return before;
}

void overdraft_end(Vm *vm, u64 before) {
  vm->overdraft = before;
  if (!before && !vm->reserve) (void)alloc_reserve(vm);
}

void *small_alloc_slow(Vm *vm, u32 class) {
  size_t size = (size_t)class * SMALL_STEP;
  if (!size) size = SMALL_STEP;
  if ((size_t)(vm->slab_end - vm->slab_at) < size) {
    Slab *s = new_slab(vm, SLAB_BYTES);
    if (!s && vm->overdraft) {
      s = vm->reserve;
      vm->reserve = NULL;
    } else if (s && !vm->overdraft) {
      (void)alloc_reserve(vm);
    }
    if (!s) return NULL;
    /* What is left of the old slab goes to the free list of its size. */
    size_t rest = (size_t)(vm->slab_end - vm->slab_at) / SMALL_STEP * SMALL_STEP;
    if (rest) obj_free(vm, vm->slab_at, rest);
    s->next = vm->slabs;
    vm->slabs = s;
    vm->slab_at = (char *)(s + 1);
    vm->slab_end = (char *)s + s->bytes;
  }
  void *p = vm->slab_at;
  vm->slab_at += size;
  return p;
}

void *vm_small_alloc(Vm *vm, size_t n) { return obj_alloc(vm, n); }
void vm_small_free(Vm *vm, void *p, size_t n) { obj_free(vm, p, n); }

void alloc_free_slabs(Vm *vm) {
  for (Slab *s = vm->slabs; s;) {
    Slab *next = s->next;
    mem_free(&vm->alloc, s, s->bytes);
    s = next;
  }
  if (vm->reserve) mem_free(&vm->alloc, vm->reserve, RESERVE_BYTES);
  vm->reserve = NULL;
  vm->slabs = NULL;
  vm->slab_at = vm->slab_end = NULL;
  memset(vm->small_free, 0, sizeof vm->small_free);
}

Value *items_resize(Vm *vm, Value *items, u32 old, u32 count) {
  size_t have = sizeof(Value) * old, want = sizeof(Value) * count;
  if (items && have > SMALL_MAX && want > SMALL_MAX) return mem_resize(&vm->alloc, items, have, want);
  Value *p = obj_alloc(vm, want);
  if (!p) return NULL;
  if (items) {
    memcpy(p, items, have < want ? have : want);
    obj_free(vm, items, have);
  }
  return p;
}
