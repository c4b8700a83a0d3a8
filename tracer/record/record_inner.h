/* record_inner.h — lists inside of a record or list that a loop carries: `state.xs += (v,)` in each trip. */
#ifndef WEFT_TRACER_RECORD_INNER_H
#define WEFT_TRACER_RECORD_INNER_H

#include "tracer/record/record.h"

/* of a list inside of a variable of a loop (record_inner.c) */
RecLoc *rec_inner_of(Recorder *r, Av list, RecLoop **loop);
/* a list inside of it has to be rows; false: none */
bool rec_want_inner(Recorder *r, RecLoop *l, const RecLoc *loc, Av now);
Outcome rec_make_inner(Recorder *r, RecLoop *l);
bool rec_inner_part(Recorder *r, Av *base, Av *a, Av *b); /* the first parts in which two trees of one form differ */
/* Short lists in a tree whose `head` has rows there: into their columns. empty: lists without items alone. */
Outcome rec_inner_back(Recorder *r, Av head, bool empty, Av *now);
/* as it was in a loop that was lifted before */
void rec_inner_note(RecLoop *l, const RecLoc *root, const RecLoc *prior);

#endif
