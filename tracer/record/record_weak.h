/* record_weak.h — numbers that are weak on one way and strong on another: a branch may give 0.0 here and x[i]
 * there. */
#ifndef WEFT_TRACER_RECORD_WEAK_H
#define WEFT_TRACER_RECORD_WEAK_H

#include "tracer/record/record.h"

ValueId rec_weak_flag(const Recorder *r, ValueId v); /* 0: it is what its type says */
bool rec_weak_note(Recorder *r, ValueId v, ValueId flag);
/* Weak in the loop's first trip alone, when `before` is true (0: always): as long as `position` is 0. */
bool rec_weak_first(Recorder *r, RecLoop *l, ValueId v, ValueId position, ValueId before);
/* What says so stands in the way: the loop has its first trip before it, then. False: nothing of the kind. */
bool rec_weak_peel(Recorder *r, ValueId flag);
RecipeId rec_weak_recipe(Recorder *r, ValueId v); /* for an exit */
Outcome rec_strong(Recorder *r, ValueId v); /* leaves here when v is weak */
/* Before a conversion: being weak then only asks that an integer fit. Leaves here when v is weak and does not. */
Outcome rec_strong_or_fits(Recorder *r, ValueId v, u32 dtype);
ValueId rec_strengthen(Recorder *r, ValueId v, u32 dtype); /* strong whatever v is, of this dtype */
/* Before an operation: *flag says whether what it gives is weak (0: as its type says). */
Outcome rec_weak_operands(Recorder *r, u32 op, const ValueId *operands, u32 n, ValueId *flag);

#endif
