/* sample.h — what a pass of a place takes in the interpreter, and what is to come of them (sample.c). */
#ifndef WEFT_TRACER_SAMPLE_H
#define WEFT_TRACER_SAMPLE_H

#include "tracer/tracer.h"

/* What the loops around a place say of the passes that are to come. */
typedef struct ToCome {
  u64 own;    /* trips left in the run of the loop itself; 0: not known */
  u64 passes; /* left with what the loops around it say, at least 1 */
  bool sure;  /* and there are no more than these */
  bool over;  /* its run is: it stands at the head with no trip left */
  u32 outer;  /* extent of the loop around it in its frame; 0: none */
  u64 around; /* trips that one has left, where they are known */
} ToCome;

u64 sample_now(const Tracer *t); /* the clock without what is compiled or compiles */
/* Is there a sample to decide by? If not, one is begun or goes on. Counts the pass. */
bool sample_pass(Tracer *t, Place *p, Frame *f);
void sample_returned(Tracer *t, Place *p, u64 ns, u64 passes); /* what a probe took, and what passed until then */
u64 sample_passes(const Tracer *t, const Place *p); /* since the last compilation, with those that it slept through */
ToCome to_come(const Vm *vm, const Frame *f, const Place *p);
/* Trips that a run of the place's loop has on average, where nothing says how many; 0: not known. */
u64 trips_per_run(const Place *p, const Frame *f, const ToCome *c);

/* Position and count of the `for` loop whose fornext stands at pc; false: it is none. */
bool loop_at(const Frame *f, u32 pc, u64 *at, u64 *count);
bool loop_runs_through(const Proto *p, const Extent *x); /* is it left only when it has run through? */
u32 loop_innermost(const Proto *p, u32 pc); /* extent around pc; 0: none */
static inline bool is_loop(const Extent *x) { return x->kind == EXT_FOR || x->kind == EXT_WHILE; }

#endif
