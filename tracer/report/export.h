/* export.h — inside tracer/: a graph with explicit inputs only, held by the `run` function of trace.export's record. */
#ifndef WEFT_TRACER_EXPORT_H
#define WEFT_TRACER_EXPORT_H

#include "tracer/tracer.h"

typedef struct Exported {
  Vm *vm;
  Value fn;          /* the function, kept: its code is what the graph's exits name */
  PlaceTable places; /* one place with one entry */
  Buf text;          /* of the graph, as it was before a backend rewrote it */
  Buf inputs, outputs, guards; /* a line each */
  struct Exported *prev, *next; /* all of the VM */
} Exported;

void export_seen(Exported *x, const Graph *g); /* the graph, simplified and found to be explicit */

#endif
