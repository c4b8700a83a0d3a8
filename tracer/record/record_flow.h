/* record_flow.h — native control flow in the trace: while and for become a loop of the graph (if: record_branch.c). */
#ifndef WEFT_TRACER_RECORD_FLOW_H
#define WEFT_TRACER_RECORD_FLOW_H

#include "tracer/record/record.h"

Outcome rec_flow(Recorder *r, const Scope *s); /* OUT_END: no loop begins or ends at this pc */
Outcome rec_begin_for(Recorder *r, Av seq, u32 a); /* registers a …: what it walks over, its position, how many items */
Outcome rec_next_item(Recorder *r, u32 a); /* the item at that position, into a + 3, and the position moved on */

#endif
