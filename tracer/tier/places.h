/* places.h — places where a region may begin: found, made, freed, and asked for behind calls (places.c). */
#ifndef WEFT_TRACER_PLACES_H
#define WEFT_TRACER_PLACES_H

#include "tracer/tracer.h"

Place *place_find(const PlaceTable *t, const Code *code, u32 pc, u32 start); /* NULL: not asked for yet */
Place *place_get(Vm *vm, PlaceTable *t, Code *code, u32 pc, RecordStart start); /* found or made; NULL when refused */
void place_free(Vm *vm, Place *p);
/* What stands behind the calls at which a graph broke that is not compiled is asked for when they return. */
void await_breaks(Tracer *t, const Place *p, const Graph *g);
bool await_here(Tracer *t, Frame *f); /* a call returned into the frame: is what follows asked for? */

#endif
