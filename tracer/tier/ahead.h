/* ahead.h — is the rest of a frame worth a recording at once, by the size of its arrays (ahead.c). */
#ifndef WEFT_TRACER_AHEAD_H
#define WEFT_TRACER_AHEAD_H

#include "tracer/tracer.h"

/* The elements of its largest array, where the rest of the frame is worth a recording at once; else 0. *gain: as
 * ahead_gain. */
u64 ahead_elements(const Tracer *t, const Frame *f, u64 *gain);
bool ahead_affords(const Tracer *t, const Frame *f, u64 elements);
void ahead_refuse(Tracer *t, const Place *p, u64 elements);
u64 ahead_gain(Tracer *t, const Graph *g); /* nanoseconds that compiling it may take */

#endif
