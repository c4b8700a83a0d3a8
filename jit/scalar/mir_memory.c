/* mir_memory.c — allocators that know their blocks: a list through the heads of the blocks. */
#include "jit/scalar/mir_memory.h"

#include <string.h>

typedef struct HeldBlock HeldBlock;
struct HeldBlock {
  HeldBlock *older, *newer;
  size_t bytes; /* without this head */
  size_t unused; /* alignment 16 of what follows */
};

static void take_out(HeldMemory *h, HeldBlock *b) {
  if (b->newer) b->newer->older = b->older;
  else h->newest = b->older;
  if (b->older) b->older->newer = b->newer;
}

static void put_in(HeldMemory *h, HeldBlock *b) {
  b->older = h->newest;
  b->newer = NULL;
  if (b->older) b->older->newer = b;
  h->newest = b;
}

static void free_block(HeldMemory *h, HeldBlock *b) {
  take_out(h, b);
  mem_free(h->from, b, sizeof *b + b->bytes);
}

static void *held_resize(Allocator *self, void *p, size_t old, size_t bytes) {
  HeldMemory *h = (HeldMemory *)self; /* its first field */
  HeldBlock *b = p ? (HeldBlock *)p - 1 : NULL;
  (void)old;
  if (!bytes) {
    if (b) free_block(h, b);
    return NULL;
  }
  if (b) take_out(h, b);
  HeldBlock *grown = bytes > SIZE_MAX - sizeof *b ? NULL
                     : mem_resize(h->from, b, b ? sizeof *b + b->bytes : 0, sizeof *b + bytes);
  if (!grown) {
    if (b) put_in(h, b);
    return NULL;
  }
  grown->bytes = bytes;
  put_in(h, grown);
  return grown + 1;
}

void held_init(HeldMemory *h, Allocator *from) { *h = (HeldMemory){.base.resize = held_resize, .from = from}; }

void held_release(HeldMemory *h) {
  while (h->newest) free_block(h, h->newest);
}
