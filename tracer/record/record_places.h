/* record_places.h — `a[items] op= v` at places given by arrays, which may name a place twice, for operators that an
 * update node does not know: a scan over the places, each of which reads, computes and writes. */
#ifndef WEFT_TRACER_RECORD_PLACES_H
#define WEFT_TRACER_RECORD_PLACES_H

#include "tracer/record/record.h"

/* `part`: the type of what the items select, to which v broadcasts. */
Outcome rec_each_place(Recorder *r, ValueId x, const ValueId *operands, u32 count, const IndexItem *items, u32 nitems,
                       const ArrayType *part, u32 op, ValueId v, ValueId *out);

#endif
