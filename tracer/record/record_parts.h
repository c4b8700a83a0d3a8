/* record_parts.h — operations that give a list of arrays: unstack, split, meshgrid, broadcast_arrays. */
#ifndef WEFT_TRACER_RECORD_PARTS_H
#define WEFT_TRACER_RECORD_PARTS_H

#include "tracer/record/record.h"

/* those that give a list of arrays (record_parts.c) */
Outcome rec_parts(Recorder *r, u32 op, const Av *params, Av *out);

#endif
