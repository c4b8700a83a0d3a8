/* blocks.h — long runs of a kernel by blocks: what a block makes goes from a buffer to where it belongs, past the
 * caches or into a part of an array, or is read there by a second kernel. */
#ifndef WEFT_JIT_BLOCKS_H
#define WEFT_JIT_BLOCKS_H

#include "jit/plan/plan.h"

/* of what a second kernel reads, so that it stays in the nearest cache: the longest row; rows at once */
enum { BLOCKS_OUTS = 2, BLOCKS_BUFFER = 2048 /* TRIED: 1,024, 4,096 and more: slower */, BLOCKS_ROW = 32 << 10,
       BLOCKS_ROWS = 8 << 10 };

/* One array that the kernel stores, `each` elements a trip, in order; its rows, of `row` elements, lie `apart` from
 * each other. */
typedef struct BlockOut {
  u32 word, bytes; /* argument of the kernel; of an element */
  i64 each, row, apart;
  char *to;
  bool stream;
} BlockOut;

typedef struct Blocks {
  const PlanKernel *kernel;
  u32 count, outs; /* words of the kernel; arrays that it stores */
  i64 block;       /* trips whose results fit in the buffer; 0: not one's */
  /* makes non-temporal stores by itself: no buffer; of two interleaved kernels the second kernel's */
  LoopKernelFn past;
  bool direct;     /* a trip makes a row of the only array, and may store it where it belongs */
  BlockOut out[BLOCKS_OUTS];
  /* run behind each block, of as many trips: each reads what that of `kernel` made, at `then_word` of its words */
  const PlanKernel *then;
  const u64 *then_words;
  u32 then_count, then_word;
} Blocks;

/* What the kernel stores by a run of so many trips, from trip 0 on; row and to are not set. False: too many arrays,
 * or not in order. With `parts` several loops may store a trip's elements, as many as there are; no buffer then. */
bool blocks_of(Blocks *b, const PlanKernel *k, const u64 *words, u32 count, bool parts);
/* The kernel's code that makes non-temporal stores by itself; NULL: it has none, or rows too short for it. */
LoopKernelFn blocks_past(const Blocks *b);
/* Is `word`, the address of an array that the kernel reads, read only where out[0] is stored by the same trip? */
bool blocks_same_place(const Blocks *b, const u64 *words, u32 word);
/* Is what the kernel stores made of the element of `word` alone, wherever that stands? Nothing else is read, and no
 * number of a trip. */
bool blocks_anywhere(const Blocks *b, u32 word);
/* Does each trip of the kernel read of the array at `word` only the `each` elements that belong to it? */
bool blocks_own_row(const PlanKernel *k, const u64 *words, u32 count, u32 word, i64 each);
u64 blocks_run(const Blocks *b, const u64 *words, i64 lo, i64 hi); /* the key */

/* Is `at` an alloc, kernel, alloc and kernel of as many trips that follow each other, the first array read by the
 * second kernel alone? */
bool blocks_are_pair(const Plan *p, u32 at);
/* Puts an `interleave` step before each four of that kind, a `transpose` step before each dense, donate and kernel,
 * and a `part` step before each alloc, kernel and update of a part that follow each other, where nobody else reads
 * what the kernel makes. Before the plan is finished. False: memory was refused. */
bool blocks_join(Plan *p) MUST_USE;

#endif
