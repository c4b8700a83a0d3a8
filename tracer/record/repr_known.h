/* repr_known.h — texts and records that are known while tracing: what built-ins make of them is known too. */
#ifndef WEFT_TRACER_REPR_KNOWN_H
#define WEFT_TRACER_REPR_KNOWN_H

#include "tracer/record/record.h"

/* texts and records known while tracing; false: not so */
bool rec_of_known(Recorder *r, u32 op, const Av *params, Av *out, Outcome *o);
/* the record without these fields */
Outcome rec_without(Recorder *r, Av record, const Name *names, u32 count, Av *out);

#endif
