/* explain.h — what trace.explain gathers while its one run is on. */
#ifndef WEFT_TRACER_EXPLAIN_H
#define WEFT_TRACER_EXPLAIN_H

#include "tracer/tracer.h"

typedef struct Explain {
  VEC(TraceEvent) events;
  u32 graphs, kernels, natives, externs, operations;
  u64 compile_ns;
  Buf guards, regions; /* text, a line each */
} Explain;

void explain_event(Tracer *t, const TraceEvent *e);
void explain_graph(Tracer *t, const Graph *g);
void explain_region(Tracer *t, const Place *p, const GuardEntry *e);
void explain_exit(Tracer *t, const Region *r, u32 exit);

void places_free(Vm *vm, PlaceTable *t);
void places_each(const PlaceTable *t, void (*each)(void *ctx, Place *p), void *ctx);

#endif
