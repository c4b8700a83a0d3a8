/* gate.h — runs of a loop that are too short to enter compiled code (gate.c). */
#ifndef WEFT_TRACER_GATE_H
#define WEFT_TRACER_GATE_H

#include "tracer/tracer.h"

/* a loop was compiled, a trip of which the interpreter takes so long for */
void gate_open(const Tunables *tun, Place *p, u64 trip_ns);
void gate_trip(const Tunables *tun, Place *p, u64 ns); /* so long it takes by now */
void gate_note(const Tunables *tun, Place *p, u64 around, u64 spent); /* an entry took so long beside its run */
/* this run of the loop is too short, so far; it is asked again when it may be longer */
bool gate_closed(const Tracer *t, Place *p, const Frame *f);
/* the run is interpreted to be timed: for some trips of it nothing is asked */
void gate_skip(const Tracer *t, Place *p, const Frame *f);
void gate_wake(const Tracer *t, Place *p); /* that is over: it is asked at the next trip */
u32 gate_run(const Place *p, const Frame *f); /* another number in each run of the loop */

#endif
