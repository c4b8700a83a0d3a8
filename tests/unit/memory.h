/* memory.h — an allocator for tests: it counts the bytes held and refuses to grow anything from a given allocation
 * on. */
#ifndef WEFT_TESTS_UNIT_MEMORY_H
#define WEFT_TESTS_UNIT_MEMORY_H

#include "parser/base.h"

typedef struct TestMemory {
  Allocator base;
  i64 left; /* growths before all are refused; negative: none is */
  i64 held; /* bytes */
} TestMemory;

static inline void *test_memory_resize(Allocator *self, void *p, size_t old_size, size_t new_size) {
  TestMemory *m = (TestMemory *)(void *)self;
  if (new_size > (size_t)1 << 40) return NULL; /* a sanitizer would end the program */
  if (new_size > old_size) {
    if (m->left == 0) return NULL;
    if (m->left > 0) m->left--;
  }
  void *q = allocator_system()->resize(allocator_system(), p, old_size, new_size);
  if (q || new_size == 0) m->held += (i64)new_size - (i64)old_size;
  return q;
}

static inline TestMemory test_memory(i64 left) { return (TestMemory){{test_memory_resize}, left, 0}; }

#endif
