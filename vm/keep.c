/* keep.c — large freed storage, kept for the next arrays of about its size: pages that the system has to clear and map
 * anew cost several times what most kernels do with them.
 *
 * Kept blocks are whole allocations of the host's allocator. They are not held by the program (bytes_now leaves them
 * out), but together with what is held they stay below the VM's limit, and are given back before memory is refused. */
#include <string.h>
#include <unistd.h>

#include "vm/alloc.h"

/* KEEP_SPARE: a block serves a request when at most that part of it is left over. KEEP_AGE: requests that a block
 * waits for one that it serves. Under AddressSanitizer nothing is kept, so that use after free is seen. */
enum { KEEP_SPARE = 8, KEEP_AGE = 64 };
#ifdef __SANITIZE_ADDRESS__
enum { KEEP_LEAST_HERE = INT32_MAX };
#else
enum { KEEP_LEAST_HERE = KEEP_LEAST };
#endif

u64 keep_default(void) {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  u64 most = (u64)2 << 30, all = pages > 0 && size > 0 ? (u64)pages * (u64)size : most;
  return all / 8 < most ? all / 8 : most;
}

static void give_back(Vm *vm, u32 at) {
  Kept *k = &vm->kept;
  KeptBlock b = k->blocks[at];
  k->bytes -= b.bytes;
  memmove(k->blocks + at, k->blocks + at + 1, sizeof b * (--k->count - at));
  (void)vm->host_alloc->resize(vm->host_alloc, b.data, b.bytes, 0);
}

bool keep_trim(Vm *vm, u64 most) {
  bool any = false;
  for (; vm->kept.count && vm->kept.bytes > most; any = true) give_back(vm, 0); /* the oldest */
  return any;
}

void *keep_alloc(Vm *vm, size_t n, size_t *got) {
  Kept *k = &vm->kept;
  u32 best = KEEP_BLOCKS;
  *got = n;
  if (n < KEEP_LEAST_HERE) return mem_alloc(&vm->alloc, n);
  k->now++;
  for (u32 i = 0; i < k->count; i++) {
    size_t bytes = k->blocks[i].bytes;
    /* of equals the newest */
    if (bytes >= n && bytes - n <= bytes / KEEP_SPARE && (best == KEEP_BLOCKS || bytes <= k->blocks[best].bytes))
      best = i;
  }
  if (best == KEEP_BLOCKS) {
    while (k->count && k->now - k->blocks[0].since > KEEP_AGE) give_back(vm, 0);
    return mem_alloc(&vm->alloc, n);
  }
  KeptBlock b = k->blocks[best];
  k->bytes -= b.bytes;
  memmove(k->blocks + best, k->blocks + best + 1, sizeof b * (--k->count - best));
  vm_worked(vm, n / sizeof(u64));
  vm->stats.bytes_now += b.bytes;
  if (vm->stats.bytes_now > vm->stats.bytes_peak) vm->stats.bytes_peak = vm->stats.bytes_now;
  vm->counters.at[STAT_recycled]++;
  *got = b.bytes;
  return b.data;
}

void keep_free(Vm *vm, void *p, size_t n) {
  Kept *k = &vm->kept;
  if (n < KEEP_LEAST_HERE || n > k->most) {
    mem_free(&vm->alloc, p, n);
    return;
  }
  if (k->count == KEEP_BLOCKS) give_back(vm, 0);
  (void)keep_trim(vm, k->most - n);
  vm->stats.bytes_now -= n;
  k->bytes += n;
  k->blocks[k->count++] = (KeptBlock){p, n, k->now};
}
