/* graph_reuse.h — arrays that the graph interpreter writes over, as nobody else holds them.
 *
 * A value may be taken at its last use: by an update, which then writes in place, or by an arm that gets it, or gives it. It is not
 * there any more then. An exit may still need it: so what was done is kept as steps, until the trip of the loop ends in which the
 * value lives, and undone when the graph is left. */
#ifndef WEFT_TRACER_GRAPH_REUSE_H
#define WEFT_TRACER_GRAPH_REUSE_H

#include "tracer/graph/graph.h"

typedef struct ReuseStep {
  ValueId from, to; /* the value that is not there any more, and the one that has its array */
  NodeId node;      /* the update in between; 0: none */
  Value old;        /* owned: what it wrote over */
} ReuseStep;

/* Is node n the last to use v, which lives no longer than a trip of the block around? */
bool reuse_is_last(GraphRun *r, ValueId v, NodeId n);
bool reuse_is_own(const GraphRun *r, ValueId v); /* an array that its block made, or was given */
/* Consumes old. False: memory was refused, nothing was noted and nothing is raised. */
bool reuse_note(GraphRun *r, ValueId from, ValueId to, NodeId node, Value old);
static inline u32 reuse_mark(const GraphRun *r) { return r->steps.count; }
void reuse_forget(GraphRun *r, u32 mark); /* the steps behind it: their values are dead */

#endif
