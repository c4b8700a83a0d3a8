/* rehearse.h — inside tracer/: what a region did, done again by the bytecode interpreter (the backend `verify`). */
#ifndef WEFT_TRACER_REHEARSE_H
#define WEFT_TRACER_REHEARSE_H

#include "tracer/tracer.h"

/* Values as V_NUM, V_ARRAY and trees of such are compared: to the last bit, any NaN like any other. */
bool values_same(Vm *vm, Value a, Value b);
/* Likewise the first `most` items of two arrays of one shape. */
bool values_same_to(Vm *vm, Value a, Value b, i64 most);
/* How a message names a value: as `str` does, cut off at the end; "?" where that has no text. */
enum { SHOWN = 64 };
void value_show(Vm *vm, Value v, char out[SHOWN]);

typedef struct Rehearsal Rehearsal;

/* The state in which the top frame is about to enter the region. NULL: this entry is not compared (counted). */
Rehearsal *rehearsal_begin(Tracer *t, const Region *region);
/* The region was left: `returned`, or the frames from the entry's own on stand where the interpreter goes on. Runs
 * the interpreter from the state of the entry, without effects, until it stands there too, and compares what is
 * alive there: registers or the value returned, module variables, refs, the random stream, what was printed.
 * WEFT_ERROR: they differ, which was raised. Frees it. */
WeftStatus rehearsal_compare(Rehearsal *r, bool returned) MUST_USE;
/* The region raised, which is for limits alone: whatever else it raises is a defect, and told as one. Frees it. */
void rehearsal_raised(Rehearsal *r);
void rehearsal_drop(Rehearsal *r); /* nothing is compared. May be NULL */

#endif
