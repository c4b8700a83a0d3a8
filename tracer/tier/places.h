/* places.h — places where a region may begin: found, made, freed (places.c). */
#ifndef WEFT_TRACER_PLACES_H
#define WEFT_TRACER_PLACES_H

#include "tracer/tracer.h"

Place *place_find(const PlaceTable *t, const Code *code, u32 pc, u32 start); /* NULL: not asked for yet */
Place *place_get(Vm *vm, PlaceTable *t, Code *code, u32 pc, RecordStart start); /* found or made; NULL when refused */
void place_free(Vm *vm, Place *p);

#endif
