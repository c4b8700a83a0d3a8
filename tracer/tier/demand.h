/* demand.h — what a caller asks of capture beyond "when it pays": jit, jit(whole=true), trace.strict, trace.export,
 * marked sizes. tier.c asks here where it would otherwise quietly stay in the interpreter. */
#ifndef WEFT_TRACER_DEMAND_H
#define WEFT_TRACER_DEMAND_H

#include "tracer/graph/graph.h"

struct Tracer;
struct Place;

/* A size of a function's argument that is fixed, or must not be. */
typedef struct SizeMarkRow {
  u64 code;     /* Code.id */
  u32 arg;      /* parameter */
  i32 axis;     /* may be negative; of an integer the value itself counts */
  bool dynamic; /* else static */
  Span at;      /* of the function */
} SizeMarkRow;

/* Why the last trace or compilation came to nothing. */
typedef struct Refusal {
  u16 reason;  /* REASON_trace_failed: memory */
  Span span;
  char text[160];
  bool raised; /* an error stands in the VM already: a marked size was fixed */
} Refusal;

/* Stands around calls of what is no function of the program's own (vm_caller), of so many arguments with these
 * names. */
typedef struct Caller {
  Code *code;  /* owned */
  Name *names; /* owned; NULL: none has one */
  u32 nargs;
} Caller;

typedef struct Demand {
  u32 strict;             /* > 0: inside trace.strict */
  const struct Place *cold; /* strict waits until the loop that was left for an arm is entered again */
  u32 cold_depth;
  const Code *whole;      /* the function to be captured whole where it is entered next; NULL: none */
  u32 whole_depth;        /* frames then */
  const char *who;        /* "jit", "trace.export" */
  struct Exported *exported; /* being made: inputs are arguments alone */
  bool pinned;            /* a call of an exported graph: nothing is compiled */
  Refusal refusal;
  VEC(SizeMarkRow) marks;
  struct Module *module;  /* of the functions below; NULL: there are none */
  VEC(Caller) callers;
} Demand;

void demand_free(Vm *vm, Demand *d);
void demand_refused(struct Tracer *t, u32 reason, Span span, const char *text);

/* A function of so many arguments around f, so that a call of it has a frame, at whose beginning capture begins. *out:
 * owned. */
WeftStatus demand_around(struct Tracer *t, Value f, const Name *names, u32 nargs, Value *out) MUST_USE;
/* Is the frame on top, entered at its beginning, the one that must be captured whole? */
bool demand_whole_here(const struct Tracer *t);
/* These raise and give true when a demand is broken; false: go on as usual. */
bool demand_recompiles(struct Tracer *t, struct Place *p, bool whole);
bool demand_unmet(struct Tracer *t, struct Place *p, bool whole); /* nothing was compiled */
bool demand_breaks(struct Tracer *t, const Region *r, u32 exit);  /* the region was left by a break */
/* The whole region that is to be run now is one: no break in it. False: raised. */
bool demand_region(struct Tracer *t, const Region *r);
/* Before a region is compiled: the reads of an export. False: refused. */
bool demand_graph(struct Tracer *t, const Graph *g);

/* Pushed frame of `code`: its marked sizes. False: refused (memory). */
struct Recorder;
bool marks_apply(struct Recorder *r, const Code *code, const u32 *regs);
/* At the end of a trace: a size marked dynamic is a constant. Raises. */
bool marks_broken(struct Recorder *r);

void demand_install(Vm *vm); /* jit and strict as transforms */

#endif
