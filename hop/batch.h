/* batch.h — the batching of a recorded block: what it computes for one lane becomes what it computes for all of
 * them. */
#ifndef WEFT_HOP_BATCH_H
#define WEFT_HOP_BATCH_H

#include "tracer/record/record.h"

typedef struct Batch {
  Recorder *r;
  Graph *g;
  Dim lanes;
  ValueId *to; /* by ValueId of the block that is batched: its value here; the lanes are axis 0 of mapped ones */
  u8 *mapped;  /* differs between lanes */
  u32 count;
  bool each; /* loops of numbers whose trips the lane tells are gone through lane by lane */
} Batch;

/* Takes the values made so far. False: memory. */
bool batch_init(Batch *b, Recorder *r, Dim lanes);
void batch_free(Batch *b);
void batch_set(Batch *b, ValueId v, ValueId to, bool mapped);
bool batch_is_mapped(const Batch *b, ValueId v);
ValueId batch_get(const Batch *b, ValueId v);  /* with the lanes first if it is mapped */
ValueId batch_full(Batch *b, ValueId v);       /* with the lanes first, stretched if need be; strong */
/* Marks in `mapped` what differs between lanes in a block and in those inside of it. */
void batch_mark(Batch *b, BlockId block);
/* Does a marked block hold what lanes may leave out, each for itself: arms by a predicate of the lane, trips of a
 * loop? */
bool batch_parts(const Batch *b, BlockId block);
/* Emits what block `from`, which is marked, computes at the cursor. OUT_STUCK: some of it cannot be batched. */
Outcome batch_block(Batch *b, BlockId from);

/* An operation with rules of its own (batch_rules.c): its result for all lanes, 0: none here. */
ValueId batch_op(Batch *b, NodeId node);
ValueId batch_index(Batch *b, NodeId node); /* the same of an index or an update (batch_index.c) */
/* 0, 1, … of the lanes, with so many axes of 1 behind. */
ValueId batch_numbers(Batch *b, u32 axes);
/* x, mapped with lanes of `rank` axes, as one with lanes of `to` axes: sizes of 1 in front of the lanes' own. */
ValueId batch_aligned(Batch *b, ValueId x, u32 rank, u32 to);

#endif
