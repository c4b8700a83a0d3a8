/* record_tree.h — trees of the program: lists and records of numbers, with texts, functions, ranges and the like as
 * static parts. */
#ifndef WEFT_TRACER_RECORD_TREE_H
#define WEFT_TRACER_RECORD_TREE_H

#include "tracer/record/record.h"

/* a list in columns as one known item by item; its items stay as they are */
Outcome rec_open_columns(Recorder *r, Av list, Av *out);
/* opened all through. Stuck: it has a list of no known length, or a value that may be nil */
Outcome rec_tree(Recorder *r, Av a, Av *out);
Outcome rec_tree_leaves(Recorder *r, Av tree, AvVec *out); /* of an opened tree, in order */
/* the same tree with its leaves replaced in order */
Av rec_tree_rebuild(Recorder *r, Av tree, const Av *leaves, u32 *next);
bool rec_tree_same(Recorder *r, Av a, Av b); /* of two opened trees: equal but for the values of leaves */
/* An opened tree that a body gives, as it is outside of it but for its leaves: texts and ranges may be made of numbers
 * of the body. `outer` (may be NULL) gives such a number outside, 0: it is none there. Stuck: it is none, or a function
 * or ref that the body made since. */
typedef ValueId (*RecOuter)(const void *with, ValueId inner);
Outcome rec_tree_leave(Recorder *r, Av tree, BlockId body, u32 since, RecOuter outer, const void *with, Av *out);

#endif
