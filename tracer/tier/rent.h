/* rent.h — time that the interpreter has spent at a place, against what compiling costs (rent.c). */
#ifndef WEFT_TRACER_RENT_H
#define WEFT_TRACER_RENT_H

#include "tracer/tracer.h"

u64 rent_cost(const Tracer *t, u64 parts); /* of compiling so many */
bool rent_applies(const Tracer *t);
u64 rent_now(const Tracer *t);
/* nothing fits at this visit: is compiling worth its time? False: the place sleeps */
bool rent_due(Tracer *t, Place *p, Frame *f);
/* what a region is expected to save, percent */
u64 rent_gain(const Tracer *t, const Place *p, const Graph *g, bool broke);
bool rent_affords(const Tracer *t, Place *p, u64 parts, u64 gain); /* rent_due for a graph that was recorded */
bool rent_is_lost(const Tracer *t, const Place *p, const Graph *g, bool broke);
void rent_denied(const Tracer *t, Place *p, u64 missing); /* it has to wait until its passes took so much more */
void rent_naps(Place *p, u32 n);              /* it takes a nap of so many passes */
void rent_wasted(Place *p, u64 ns);
void rent_paid(Tracer *t, Place *p, u64 parts, u64 ns);
/* lines: what is not compiled yet, and what it would need */
void rent_tell(const Tracer *t, const Code *code, Buf *out);
void rent_returned(Tracer *t, Place *p, u64 ns, u64 passes); /* what a probe took, and what passed until then */
u64 rent_passes(const Tracer *t, const Place *p); /* since the last compilation, those that it slept through included */

bool rent_runs_through(const Proto *p, const Extent *x); /* is the loop left only when it has run through? */

#endif
