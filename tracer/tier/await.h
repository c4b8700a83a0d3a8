/* await.h — what stands behind the calls at which a graph broke (await.c). */
#ifndef WEFT_TRACER_AWAIT_H
#define WEFT_TRACER_AWAIT_H

#include "tracer/tracer.h"

/* What stands behind the calls at which a graph broke that is not compiled is asked for when they return. */
void await_breaks(Tracer *t, const Graph *g);
bool await_here(Tracer *t, Frame *f); /* a call returned into the frame: is what follows asked for? */

#endif
