/* blocks.c — the memory of a VM whose host gives none. Without a limit: the system's, and small blocks that were freed,
 * for the next of their size, since what compiling grows and drops asks for the same sizes again and again. With a
 * limit: large blocks are mapped by themselves, so that the process gives back what the VM freed. */
#define _GNU_SOURCE /* mremap */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/inner.h"

enum { BLOCK_STEP = 16, BLOCKS_KEPT = 256 << 10 }; /* bytes kept at most */
#ifdef __SANITIZE_ADDRESS__
enum { BLOCK_MOST = 0 }; /* so that use after free is seen */
#else
enum { BLOCK_MOST = BLOCK_STEP * (BLOCK_CLASSES - 1) };
#endif

void blocks_free(Blocks *b) {
  for (u32 i = 0; i < BLOCK_CLASSES; i++)
    for (void *p; (p = b->free[i]); free(p)) memcpy(&b->free[i], p, sizeof p);
  b->bytes = 0;
}

/* All that are small take whole steps. */
static void *block_new(Blocks *b, size_t n) {
  if (n > BLOCK_MOST) return system_resize(NULL, NULL, 0, n);
  size_t class = (n + BLOCK_STEP - 1) / BLOCK_STEP;
  void *p = b->free[class];
  if (!p) return malloc(class * BLOCK_STEP);
  memcpy(&b->free[class], p, sizeof p);
  b->bytes -= class * BLOCK_STEP;
  return p;
}

static void block_drop(Blocks *b, void *p, size_t n) {
  size_t class = (n + BLOCK_STEP - 1) / BLOCK_STEP;
  if (n > BLOCK_MOST || b->bytes > BLOCKS_KEPT - BLOCK_MOST) {
    free(p);
    return;
  }
  memcpy(p, &b->free[class], sizeof p);
  b->free[class] = p;
  b->bytes += class * BLOCK_STEP;
}

static void *resize(Blocks *b, void *p, size_t old_size, size_t new_size) {
  if (old_size > BLOCK_MOST && new_size > BLOCK_MOST) return system_resize(NULL, p, old_size, new_size);
  void *q = block_new(b, new_size);
  if (!q) return NULL;
  memcpy(q, p, old_size < new_size ? old_size : new_size);
  block_drop(b, p, old_size);
  return q;
}

void *blocks_resize(void *context, void *p, size_t old_size, size_t new_size) {
  Blocks *b = context;
  if (p && new_size) return resize(b, p, old_size, new_size);
  if (new_size) return block_new(b, new_size);
  if (p) block_drop(b, p, old_size);
  return NULL;
}

/* The C library keeps large blocks that were freed, and a text that grows moves on through its memory: a process took
 * 99 MB for a VM of 64. A mapping that is freed is gone, and one that grows is moved without being copied. */
#if defined __linux__ && !defined __SANITIZE_ADDRESS__ /* which sees use after free in its own memory alone */
enum { MAPPED_LEAST = 1 << 20, LARGE_PAGE = 2 << 20 }; /* bytes: not a threshold: of what is mapped; of a large page */

/* Begins with a large page where it holds two and more, as what system_resize gives. */
static void *map_new(size_t n) {
  const size_t more = n >= 2 * (size_t)LARGE_PAGE ? LARGE_PAGE : 0;
  if (n > SIZE_MAX / 2) return NULL;
  char *p = mmap(NULL, n + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  if (!more) return p;
  const size_t before = (LARGE_PAGE - (uintptr_t)p % LARGE_PAGE) % LARGE_PAGE;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), end = (before + n + page - 1) & ~(page - 1);
  if (before) (void)munmap(p, before);
  if (end < n + more) (void)munmap(p + end, n + more - end);
#ifdef MADV_HUGEPAGE
  (void)madvise(p + before, n & ~(size_t)(LARGE_PAGE - 1), MADV_HUGEPAGE);
#endif
  return p + before;
}

static void drop(void *p, size_t n) {
  if (n >= MAPPED_LEAST) (void)munmap(p, n);
  else free(p);
}

void *mapped_resize(void *context, void *p, size_t old_size, size_t new_size) {
  const bool maps = new_size >= MAPPED_LEAST;
  if (p && maps && old_size >= MAPPED_LEAST) {
    void *q = new_size > SIZE_MAX / 2 ? MAP_FAILED : mremap(p, old_size, new_size, MREMAP_MAYMOVE);
    return q == MAP_FAILED ? NULL : q;
  }
  if (!maps && (!p || old_size < MAPPED_LEAST)) return system_resize(context, p, old_size, new_size);
  void *q = maps ? map_new(new_size) : new_size ? malloc(new_size) : NULL;
  if (new_size && !q) return NULL;
  if (q && p) memcpy(q, p, old_size < new_size ? old_size : new_size);
  if (p) drop(p, old_size);
  return q;
}
#else
void *mapped_resize(void *context, void *p, size_t old_size, size_t new_size) {
  return system_resize(context, p, old_size, new_size);
}
#endif
