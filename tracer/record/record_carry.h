/* record_carry.h — what a loop that is lifted carries from trip to trip: the variables that its extent writes, as
 * leaves. */
#ifndef WEFT_TRACER_RECORD_CARRY_H
#define WEFT_TRACER_RECORD_CARRY_H

#include "tracer/record/record.h"

typedef VEC(Dim) DimVec;

Outcome rec_cell_write(Recorder *r, u32 cell, Av value);
Av *rec_loc_at(Recorder *r, const RecLoc *l);
bool rec_add_loc(Recorder *r, RecLoop *l, bool cell, u32 index); /* once */
Outcome rec_collect_locs(Recorder *r, RecLoop *l, const Extent *e);
/* The carried leaves as they are before the loop: fills l->types and what stands beside it, and the loop's first
 * values. */
Outcome rec_carry_in(Recorder *r, RecLoop *l, ValueVec *init);
/* The carried values as parameters of the cursor's block, standing where they belong. *sizes: the new ones. */
bool rec_place_params(Recorder *r, RecLoop *l, BlockId b, u32 position, Dim bound, DimVec *sizes);
/* The results of the loop's node, standing where they belong. */
Outcome rec_carry_out(Recorder *r, RecLoop *l, NodeId loop);
/* The condition's own block would keep nothing of what it writes and cannot leave: again, as the body's beginning. */
Outcome rec_want_test_inside(Recorder *r, RecLoop *l);
/* Ends the cursor's block by the loop's next or break with the present values. ret: break, and return that. */
Outcome rec_look_ahead(Recorder *r, RecLoop *l); /* OUT_STUCK: the loop is recorded anew */
Outcome rec_close_loop_block(Recorder *r, RecLoop *l, TermKind term, Av ret);

#endif
