/* tier.h — inside tracer/: what the files of the tier share (tier.c, places.c, leave.c). */
#ifndef WEFT_TRACER_TIER_H
#define WEFT_TRACER_TIER_H

#include "tracer/tracer.h"

/* places.c */
Place *place_find(const PlaceTable *t, const Code *code, u32 pc, u32 start); /* NULL: not asked for yet */
Place *place_get(Vm *vm, PlaceTable *t, Code *code, u32 pc, RecordStart start); /* found or made; NULL when refused */

/* leave.c: makes the frames what the exit says. The frame that entered is the top one; the bound slots are used up.
 * `*returns`: it returned a value. */
WeftStatus region_leave(Tracer *t, Region *region, u32 exit, u64 *slots, bool *returns) MUST_USE;

#endif
