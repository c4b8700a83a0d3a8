/* watch.h — visits of a place that are timed, with and without its region (watch.c). */
#ifndef WEFT_TRACER_WATCH_H
#define WEFT_TRACER_WATCH_H

#include "tracer/tracer.h"

void watch_ran(Tracer *t, const Place *p, u32 depth); /* a region there was left, which that frame had entered */
/* what this visit takes until the frame returns: for sample_returned */
void watch_probe(Tracer *t, Place *p, Frame *f);
/* the probe of a frame that stands around this visit; NULL: there is none */
const Watch *watch_probed(Tracer *t, const Place *p);
bool watch_begin(Tracer *t, Place *p, Frame *frame); /* this visit may be timed. True: it is one without an entry */
void watch_cancel(Tracer *t, const Place *p);        /* nothing fitted */
/* ends what is timed up to here. True: it is not entered yet */
bool watch_visit(Tracer *t, Place *p, const Frame *frame);
/* at a loop's head: true: nothing is entered there, as a trip without what goes on behind a break is timed */
bool watch_head(Tracer *t, const Frame *frame);
void watch_returns(Vm *vm); /* TierHooks.returns */
void watch_forget(Tracer *t, const Place *p);
bool watch_wanted(const Tracer *t, const Place *p);
/* is this visit inside of what runs interpreted only to be timed? One that has shown enough ends here */
bool watch_trial_goes_on(Tracer *t);

#endif
