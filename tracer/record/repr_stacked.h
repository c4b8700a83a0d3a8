/* repr_stacked.h — lists of a function that calls itself: they lie one behind the other in a stack that all calls
 * share. */
#ifndef WEFT_TRACER_REPR_STACKED_H
#define WEFT_TRACER_REPR_STACKED_H

#include "tracer/record/record.h"

/* A stack of items of one kind (kept by the recorder), as a cell that the trace makes. */
Outcome rec_stack_new(Recorder *r, Value kind, u32 *cell);
/* A list from outside of the function, which comes to the top. In front of the outermost call alone. */
Outcome rec_stack_enter(Recorder *r, u32 cell, Value kind, Av list, Av *out);
/* A list as one of the stack: itself, or its items on the top. */
Outcome rec_stack_take(Recorder *r, u32 cell, Value kind, Av list, Av *out);
/* In a function with a stack: does a list that a loop makes longer go there? kind: of its items, NULL: as they are */
bool rec_stack_suits(Recorder *r, Av list, const Value *kind);
Outcome rec_stack_put(Recorder *r, Av *list); /* it comes to the top */
Outcome rec_stack_join(Recorder *r, Av a, Av b, Av *out); /* a + b, of which one lies in a stack */
/* An end of a slice among n items; `otherwise` where it is nil. */
Outcome rec_slice_end(Recorder *r, Av end, Av n, Av otherwise, Av *out);
Av rec_stack_top(Recorder *r, u32 cell);
Outcome rec_stack_cut(Recorder *r, u32 cell, Av top); /* what lies behind that is not looked at any more */
/* A trip of the loop is over: what it left behind the lists that are carried goes. */
Outcome rec_stack_trim(Recorder *r, const RecLoop *l);

#endif
