/* record_flow.h — what the files of native control flow share: record_flow.c lifts loops, record_branch.c records arms,
 * record_carry.c knows what loops carry. */
#ifndef WEFT_TRACER_RECORD_FLOW_H
#define WEFT_TRACER_RECORD_FLOW_H

#include "tracer/record/record.h"

typedef VEC(Dim) DimVec;

/* ---- absval.c: what is carried ----
 * The numbers of the graph that a value is made of, whatever they mean: of a list in columns these and how many items count, of a
 * computed text its characters. For control flow, which hands values on as they are; for what a program calls a tree: record_tree.c. */
bool carry_leaves(Recorder *r, Av a, AvVec *out); /* in order; false: memory was refused */
Av carry_rebuild(Recorder *r, Av a, const Av *leaves, u32 *next); /* the same value of other numbers, in order */
bool carry_same(Recorder *r, Av a, Av b); /* alike but for the values of these numbers */

/* ---- record_carry.c ---- */
bool rec_add_loc(Recorder *r, RecLoop *l, bool cell, u32 index); /* once */
Outcome rec_collect_locs(Recorder *r, RecLoop *l, const Extent *e);
/* The carried leaves as they are before the loop: fills l->types and what stands beside it, and the loop's first values. */
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

/* ---- record_inner.c ---- */
bool rec_want_inner(Recorder *r, RecLoop *l, const RecLoc *loc, Av now); /* a list inside of it has to be rows; false: none */
Outcome rec_make_inner(Recorder *r, RecLoop *l);
bool rec_inner_part(Recorder *r, Av *base, Av *a, Av *b); /* the first parts in which two trees of one form differ */
/* Short lists in a tree whose `head` has rows there: into their columns. empty: lists without items alone. */
Outcome rec_inner_back(Recorder *r, Av head, bool empty, Av *now);
void rec_inner_note(RecLoop *l, const RecLoc *root, const RecLoc *prior); /* as it was in a loop that was lifted before */

/* ---- record_queue.c ---- */
Outcome rec_queue_new(Recorder *r, Av rows, Av *out);
Outcome rec_queue_like(Recorder *r, Av queue, bool empty, Av *now); /* stuck: it cannot be */
bool rec_want_queue(Recorder *r, RecLoop *l, RecLoc *loc, Av now);

/* ---- record_prior.c ---- */
/* A loop that was lifted before is tried as it was then. */
Outcome rec_prior_use(Recorder *r, RecLoop *l);
u8 rec_prior_leaf(const RecLoop *l, u32 leaf, u8 entry); /* CARRY_* */
bool rec_prior_note(Recorder *r, const RecLoop *l);       /* false: memory was refused */

/* ---- record_branch.c ---- */
/* ret: the first arm returns that, else it begins at pc[0]. force_cold: the arm that is not recorded, or -1. */
Outcome rec_branch_once(Recorder *r, const Scope *s, ValueId cond, const u32 pc[2], u32 join, int force_cold, const RecState *base, Av ret);

#endif
