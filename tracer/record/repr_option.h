/* repr_option.h — values that are nil on one way and something else on another: a search that finds nothing, the
 * nearest so far. */
#ifndef WEFT_TRACER_REPR_OPTION_H
#define WEFT_TRACER_REPR_OPTION_H

#include "tracer/record/record.h"

bool rec_has_option(Recorder *r, Av a); /* it, or a part of it */
void rec_note_truth(Recorder *r, ValueId cond, bool is); /* known from here on in the block that the cursor is in */
Av rec_sure(Recorder *r, Av a); /* forced; of one that is known to be there the value, known not to be nil */
Outcome rec_there(Recorder *r, Av *a); /* the value: checked to be there where that is not known. Others stay */
Outcome rec_there_by_element(Recorder *r, Av *a, Av *b); /* of two numbers that are compared, one of them an array */
bool rec_option_equal(Recorder *r, Av a, Av b, Av *out, Outcome *o); /* false: neither may be nil and something else */
/* *flag: whether `==` of a and b gives a weak bool, where one of them may be nil; 0: it does not. */
Outcome rec_option_weak(Recorder *r, Av a, Av b, ValueId *flag);
/* what two ways leave, alike but for nil: these become one kind in both */
bool rec_option_meet(Recorder *r, Av *a, Av *b);
/* the loop is lifted again with such a value there */
bool rec_want_option(Recorder *r, RecLoop *l, RecLoc *loc, Av now);
Outcome rec_make_option(Recorder *r, const RecLoc *loc, Av *at);
Outcome rec_into_option(Recorder *r, Av before, Av *now); /* where the loop has one */

#endif
