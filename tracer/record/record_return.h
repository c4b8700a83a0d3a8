/* record_return.h — a return out of a loop that is lifted: the loop carries a flag and what is returned, the arm
 * that returns sets both and leaves the loop, and behind it a branch on the flag returns from the function. */
#ifndef WEFT_TRACER_RECORD_RETURN_H
#define WEFT_TRACER_RECORD_RETURN_H

#include "tracer/record/record.h"

/* What is returned as a few plain facts, since a rollback takes abstract values away: a number, a list or record of
 * some, or a constant. False: something else. */
bool rec_form_of(Recorder *r, Av a, RecReturn *out);
bool rec_form_same(Recorder *r, const RecReturn *a, const RecReturn *b); /* but for the types of the numbers */
Av rec_form_item(Recorder *r, const RecReturn *f, Av a, u32 i); /* number i of a value of that form */
Av rec_form_make(Recorder *r, const RecReturn *f, const Av *leaves);

Outcome rec_return_ask(Recorder *r, RecLoop *l, Av ret); /* OUT_GO: the loop carries it */
Outcome rec_return_carry(Recorder *r, RecLoop *l, ValueVec *init); /* flag and zeros, as the last of l->types */
/* The flag and what is returned, at the end of a block of the loop. ret 0: nothing is returned here. */
Outcome rec_return_values(Recorder *r, const RecLoop *l, Av ret, ValueVec *out);
Av rec_return_result(Recorder *r, const RecLoop *l, NodeId loop, ValueId *flag);

#endif
