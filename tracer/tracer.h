/* tracer.h — facade of capture: finds what is hot, records it, keeps and runs the compiled regions, explains.
 *
 *   vm/ ──TierHooks.site──▶ tier.c: look up ─▶ run ─▶ exit ─▶ restore frames ─▶ vm/ goes on
 *                              │ miss, hot
 *                              ▼
 *                           record.h ─▶ Graph ─▶ Backend.compile ─▶ Region in the GuardCache of the site
 *
 * hop/ fills `constructs` and `transforms`, jit/ and hosts add backends, api/ installs all of it. */
#ifndef WEFT_TRACER_TRACER_H
#define WEFT_TRACER_TRACER_H

#include "lang/reasons.h"
#include "lang/stats.h"
#include "lang/tunables.h"
#include "tracer/record.h"

enum { TRACER_BACKENDS = 8 };

/* One line of the log that explain, stats and WEFT_LOG read. */
typedef enum EventKind { EVENT_compile, EVENT_break, EVENT_cold, EVENT_loop, EVENT_miss, EVENT_demote, EVENT_failure } EventKind;
typedef struct TraceEvent {
  u8 kind;
  u16 reason;
  Span span;
  char text[120]; /* in source terms */
  u64 region;
} TraceEvent;

typedef struct Tracer {
  Vm *vm;
  Tunables tunables;
  Stats stats;
  ConstructFn constructs[OP_COUNT];
  TransformFn transforms[TF_COUNT];
  const Backend *backends[TRACER_BACKENDS];
  u32 backend_count;
  const Backend *backend;  /* the one in use; NULL: nothing is compiled */
  VEC(TraceEvent) events;  /* bounded: the oldest go first */
  u64 region_ids;
  u64 *slots;              /* stack of region slots */
  u32 slot_top, slot_cap;
  u32 depth;               /* regions running */
  bool off;                /* WEFT_BACKEND=eager */
  bool forced;             /* explain, jit: heat and cost do not matter */
  struct Explain *explain; /* the run being explained, or NULL */
  u32 log;                 /* LOG_* */
  bool exit_everywhere;    /* test switch: end the trace at every instruction in turn */
} Tracer;
enum { LOG_graph = 1, LOG_guards = 2, LOG_breaks = 4, LOG_recompiles = 8, LOG_loops = 16, LOG_plan = 32 };

WeftStatus tracer_install(Vm *vm) MUST_USE; /* fills vm->tier; freed with the VM */
Tracer *tracer_of(Vm *vm);
WeftStatus tracer_add_backend(Vm *vm, const Backend *b) MUST_USE;
bool tracer_use_backend(Vm *vm, const char *name); /* "eager": off. False: there is none of that name */
extern const Backend graph_backend; /* `interp`: the graph's reference interpreter */

/* The regions entered at a function and at its continuations, most recent first; for dumps. */
void tracer_regions(Vm *vm, const Code *code, void (*each)(void *ctx, Region *r), void *ctx);
void tracer_event(Tracer *t, EventKind kind, u32 reason, Span span, u64 region, const char *fmt, ...) PRINTF_LIKE(6, 7);
/* Counters of the VM, its own and the tracer's. */
void tracer_stats(Vm *vm, Stats *out);
/* Compiles `fn` for these arguments whatever the heat, runs it once and reports (trace.explain). *out owned. */
WeftStatus tracer_explain(Vm *vm, Value fn, Value *args, u32 nargs, Value *out) MUST_USE;
WeftStatus tracer_fn_stats(Vm *vm, Value fn, Value *out) MUST_USE; /* a record of counters; V_NIL: of the VM */

#endif
