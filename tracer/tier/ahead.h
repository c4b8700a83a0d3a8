/* ahead.h — is the rest of a frame worth a recording at once, by the size of its arrays (ahead.c). */
#ifndef WEFT_TRACER_AHEAD_H
#define WEFT_TRACER_AHEAD_H

#include "tracer/tracer.h"

/* What the bytecode says of the rest of a frame. */
typedef struct AheadSum {
  u64 gain;     /* as ahead_gain */
  u64 elements; /* of its largest array, or items of a range that map is about to walk */
  u64 ops;      /* that stand there */
} AheadSum;
AheadSum ahead_look(const Tracer *t, const Frame *f);
/* Did nothing come of the same so far, and is there time for a recording that may come to nothing? */
bool ahead_affords(const Tracer *t, const Frame *f, u64 elements);
void ahead_refuse(Tracer *t, const Place *p, u64 elements);
u64 ahead_gain(Tracer *t, const Graph *g); /* nanoseconds that compiling it may take */

#endif
