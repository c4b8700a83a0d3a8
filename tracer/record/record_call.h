/* record_call.h — calls in the trace: closures are inlined, built-ins become nodes, lists or constructs. */
#ifndef WEFT_TRACER_RECORD_CALL_H
#define WEFT_TRACER_RECORD_CALL_H

#include "tracer/record/repr.h"

/* Records the call of a function value to its end, into the current block. *out: its result. */
Outcome rec_call(Recorder *r, Av fn, const Av *args, const Name *names, u32 nargs, Av *out);
Av rec_capture(Recorder *r, Av fn, u32 i); /* captured value i of a closure (0: of the root frame's function) */
bool rec_push(Recorder *r, Code *code, Av fn, u16 result); /* registers dead */
void rec_pop(Recorder *r);
Outcome rec_begin_call(Recorder *r, Av fn, const Av *args, const Name *names, u32 nargs, u16 result, Av *out,
                       bool *pushed);
/* cells of the tables of functions and dtypes */
Outcome rec_call_builtin(Recorder *r, Av fn, const CallArgs *a, Av *out, bool *pushed);
Outcome rec_call_dtype(Recorder *r, Av fn, const CallArgs *a, Av *out, bool *pushed);
Outcome rec_call_transform(Recorder *r, Av fn, const CallArgs *a, Av *out, bool *pushed);
Outcome rec_call_function(Recorder *r, Av fn, const CallArgs *a, Av *out, bool *pushed);
Outcome rec_call_closure(Recorder *r, Av fn, const CallArgs *a, Av *out, bool *pushed);

#endif
