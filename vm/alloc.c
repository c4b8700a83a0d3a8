/* alloc.c — the VM's allocator: counting, the limit, slabs for small objects (see alloc.h). */
#include "vm/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { SLAB_BYTES = 32 * 1024, RESERVE_BYTES = 8 * 1024, OVERDRAFT_BYTES = 256 * 1024 };

typedef struct Slab {
  struct Slab *next;
  size_t bytes;
} Slab;
_Static_assert(sizeof(Slab) % 16 == 0, "objects in slabs are 16-aligned");

/* ---- slabs that hold nothing any more ----------------------------------------------------------------
 * Objects of one size fill slabs, and stay in the free list of that size when they are freed. Before memory is refused,
 * slabs of which every object is free are given back, so that objects of other sizes find room. */

typedef struct SlabUse {
  Slab *slab;
  size_t free; /* bytes of it in free lists */
} SlabUse;

static int by_address(const void *a, const void *b) {
  const Slab *x = ((const SlabUse *)a)->slab, *y = ((const SlabUse *)b)->slab;
  return x < y ? -1 : x > y;
}

static SlabUse *slab_of(SlabUse *use, size_t n, const void *p) {
  size_t lo = 0, hi = n; /* the last one that begins before p */
  while (hi - lo > 1) {
    size_t mid = lo + (hi - lo) / 2;
    if ((const char *)use[mid].slab <= (const char *)p) lo = mid;
    else hi = mid;
  }
  return &use[lo];
}

static void *next_free(void *p) {
  void *next;
  memcpy(&next, p, sizeof next);
  return next;
}

static bool is_unused(const Vm *vm, const SlabUse *u) {
  bool current = vm->slab_at >= (char *)u->slab && vm->slab_at <= (char *)u->slab + u->slab->bytes;
  return !current && u->free >= (u->slab->bytes - sizeof(Slab)) / SMALL_STEP * SMALL_STEP;
}

/* Gives unused slabs back to the host; true when there were any. */
static bool slabs_trim(Vm *vm) {
  size_t n = 0;
  for (Slab *s = vm->slabs; s; s = s->next) n++;
  if (n < 2) return false;
  SlabUse *use = vm->host_alloc->resize(vm->host_alloc, NULL, 0, n * sizeof *use);
  if (!use) return false;
  size_t i = 0;
  for (Slab *s = vm->slabs; s; s = s->next) use[i++] = (SlabUse){s, 0};
  qsort(use, n, sizeof *use, by_address);
  for (u32 class = 1; class < SMALL_CLASSES; class++)
    for (void *p = vm->small_free[class]; p; p = next_free(p)) slab_of(use, n, p)->free += (size_t)class * SMALL_STEP;
  for (u32 class = 1; class < SMALL_CLASSES; class++) {
    void *kept = NULL; /* in the order that was: the last one first, then turned round */
    for (void *p = vm->small_free[class], *next; p; p = next) {
      next = next_free(p);
      if (is_unused(vm, slab_of(use, n, p))) continue;
      memcpy(p, &kept, sizeof kept);
      kept = p;
    }
    vm->small_free[class] = NULL;
    for (void *p = kept, *next; p; p = next) {
      next = next_free(p);
      memcpy(p, &vm->small_free[class], sizeof p);
      vm->small_free[class] = p;
    }
  }
  vm->slabs = NULL;
  bool any = false;
  for (i = 0; i < n; i++) {
    Slab *s = use[i].slab;
    if (is_unused(vm, &use[i])) {
      vm->stats.bytes_now -= s->bytes;
      (void)vm->host_alloc->resize(vm->host_alloc, s, s->bytes, 0);
      any = true;
    } else {
      s->next = vm->slabs;
      vm->slabs = s;
    }
  }
  (void)vm->host_alloc->resize(vm->host_alloc, use, n * sizeof *use, 0);
  return any;
}

static void *counted_resize(Allocator *self, void *p, size_t old_size, size_t new_size) {
  Vm *vm = (Vm *)self; /* alloc is the first member */
  if (new_size > old_size && vm->limits.bytes) {
    u64 more = new_size - old_size, most = vm->limits.bytes + vm->overdraft;
    if (most < vm->overdraft) most = UINT64_MAX;
    if (more > most || (vm->stats.bytes_now > most - more && !(slabs_trim(vm) && vm->stats.bytes_now <= most - more))) {
      vm->refused_by_limit = true;
      vm->refusals++;
      return NULL;
    }
    (void)keep_trim(vm, most - vm->stats.bytes_now - more);
  }
  void *q = vm->host_alloc->resize(vm->host_alloc, p, old_size, new_size);
  if (UNLIKELY(new_size && !q)) { /* both give back what they can */
    bool kept = keep_trim(vm, 0), slabs = slabs_trim(vm);
    if (kept || slabs) q = vm->host_alloc->resize(vm->host_alloc, p, old_size, new_size);
  }
  if (new_size && !q) {
    vm->refused_by_limit = false;
    vm->refusals++;
    return NULL;
  }
  if (new_size > old_size) vm_worked(vm, (new_size - old_size) / sizeof(u64));
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
  u64 before = vm->overdraft,
      over = vm->stats.bytes_now > vm->limits.bytes ? vm->stats.bytes_now - vm->limits.bytes : 0;
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
