/* record_recur.h — functions of numbers that call themselves: the body stands in the graph once, as a node that
 * calls itself, instead of calls inlined into each other. */
#ifndef WEFT_TRACER_RECORD_RECUR_H
#define WEFT_TRACER_RECORD_RECUR_H

#include "tracer/record/record.h"

/* A call of `code`, of which frames stand already; params: one for each parameter, bound. *done: it is a node of
 * the graph, *out what it gives; otherwise nothing has changed. */
Outcome rec_recur(Recorder *r, Av fn, Code *code, const Av *params, Av *out, bool *done);
/* The same, of a call from outside of the function: where its code says that it calls itself. */
Outcome rec_recur_first(Recorder *r, Av fn, Code *code, const Av *params, Av *out, bool *done);
/* the same for all that is recorded, the function of a RECORD_ENTRY; done: r->ret is what it gives */
Outcome rec_recur_whole(Recorder *r, bool *done);

#endif
