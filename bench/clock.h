/* clock.h — what the peers in C share that move memory: the time, and memory in large pages that was touched. */
#ifndef WEFT_BENCH_CLOCK_H
#define WEFT_BENCH_CLOCK_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *memory(size_t bytes, int filled_with) {
  const size_t huge = 2 << 20;
  void *p = aligned_alloc(huge, (bytes + huge - 1) / huge * huge);
  if (!p) exit(1);
  (void)madvise(p, bytes, MADV_HUGEPAGE);
  memset(p, filled_with, bytes);
  return p;
}

#endif
