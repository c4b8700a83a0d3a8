/* record_prior.h — loops that this trace lifted before: a loop comes again where its function is called at several
 * places, and each time that a loop around it is tried with other variables. */
#ifndef WEFT_TRACER_RECORD_PRIOR_H
#define WEFT_TRACER_RECORD_PRIOR_H

#include "tracer/record/record.h"

void rec_priors_free(Recorder *r);
/* A loop that was lifted before is tried as it was then. */
Outcome rec_prior_use(Recorder *r, RecLoop *l);
u8 rec_prior_leaf(const RecLoop *l, u32 leaf, u8 entry); /* CARRY_* */
bool rec_prior_note(Recorder *r, const RecLoop *l); /* false: memory was refused */

#endif
