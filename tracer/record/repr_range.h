/* repr_range.h — ranges in the trace: made, walked by a `for`, and as an index. */
#ifndef WEFT_TRACER_REPR_RANGE_H
#define WEFT_TRACER_REPR_RANGE_H

#include "tracer/record/record.h"

Outcome rec_make_range(Recorder *r, Av start, Av stop, Av by, Av *out);
Outcome rec_range_count(Recorder *r, Av range, Av *out); /* how many items it has */
Outcome rec_range_item(Recorder *r, Av range, Av pos, Av *out);
/* the slice that selects the same of an axis: start, stop, step */
Outcome rec_range_slice(Recorder *r, Av range, Av *parts);

#endif
