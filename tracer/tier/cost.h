/* cost.h — what compiling a place costs, and what entering it costs and saves: one model for all decisions (cost.c). */
#ifndef WEFT_TRACER_COST_H
#define WEFT_TRACER_COST_H

#include "tracer/tracer.h"

/* Nanoseconds. */
typedef struct Cost {
  u64 record;  /* once: recording, and what was spent at the place for nothing so far */
  u64 compile; /* once: passes and code; for a graph that saves little, as much more as it saves less */
  u64 enter;   /* each time: an entry is found, its inputs are loaded and packed */
  u64 leave;   /* each time: values are written, frames are made */
  u64 trip;    /* each pass in the interpreter */
} Cost;

/* before it was recorded: its instructions tell, or what is known of it */
Cost cost_of_code(const Tracer *t, Place *p);
/* Once it was recorded: the graph tells. `gain`: what it saves, in percent of what the best do. */
Cost cost_of_graph(const Tracer *t, Place *p, u64 parts, u64 gain);
Cost cost_of_parts(const Tracer *t, u64 parts); /* of compiling so many, wherever */
Cost cost_of_run(const Place *p); /* of a compiled loop: measured */
static inline u64 cost_once(const Cost *c) { return c->record + c->compile; }
static inline u64 cost_each(const Cost *c) { return c->enter + c->leave; }
/* Trips whose saving pays for one entry. */
u64 cost_pays_after(const Tunables *tun, const Cost *c);

/* Of entering what was recorded: enter, leave and trip. `often`: it is left so often that lists are packed anew. */
Cost cost_of_entry(const Tracer *t, const Place *p, const Graph *g, bool broke, bool often);
/* What it saves of its passes' time, in percent of what the best do; 0: nothing. */
u64 cost_gain(const Tracer *t, const Place *p, const Graph *g, bool broke);
/* Do going in and out take longer than what is done in between takes in the interpreter? */
bool cost_is_lost(const Tracer *t, const Place *p, const Graph *g, bool broke);

/* A compilation of so many parts took ns: the next ones are expected to take as much more or less. */
void cost_learn(Tracer *t, u64 parts, u64 ns);
/* The loops around the top frame's pc, and the functions that they and it stand in, hold what was compiled there. */
void cost_tell_around(Tracer *t, const Place *p, u64 parts);

enum { GRAPH_MANY = 1 << 20 };
/* of a value, by the hints; not told exactly from GRAPH_MANY on, UINT64_MAX: not known */
u64 graph_elements(const Graph *g, ValueId v);
u32 graph_parts(const Graph *g); /* nodes, inputs, values that exits write: compiling takes time for each */
bool graph_recurs(const Graph *g); /* a function in it calls itself */
u64 region_eager_ns(const Tunables *tun, const Graph *g); /* 0: more than can be told */
u64 region_early_ns(const Tunables *tun, const Graph *g); /* the same of what stands before its first loop */

static inline u64 cost_times(u64 a, u64 b) { return b && a > ((u64)1 << 40) / b ? (u64)1 << 40 : a * b; }

#endif
