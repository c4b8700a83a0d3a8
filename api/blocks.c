/* blocks.c — the memory of a VM whose host gives none: the system's, and small blocks that were freed, for the next
 * of their size. What compiling grows and drops asks for the same sizes again and again. */
#include <stdlib.h>
#include <string.h>

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
