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
#include "tracer/tier/demand.h"
#include "tracer/report/log.h"
#include "tracer/record/record.h"

enum { TRACER_BACKENDS = 16 };
struct ListRoom;

typedef struct RegionTotals {
  u64 entered, exits, kernels, natives, run_ns, compile_ns;
} RegionTotals;

/* A source whose guard made a place compile again. */
typedef struct PlaceSubject {
  char *text;  /* owned */
  u32 times;
  bool open;   /* later traces do not rely on what it is */
} PlaceSubject;

enum { WATCH_TIMES = 8, WATCHES = 32 };

/* Where a timed visit of a place ends (watch.c). */
typedef enum WatchEnd { WATCH_return, WATCH_trips, WATCH_run } WatchEnd;

typedef struct WatchTimes {
  u64 ns[WATCH_TIMES];
  u32 count;
} WatchTimes;

/* Of a place: what its visits took, entered (0) and not (1). */
typedef struct PlaceWatch {
  WatchTimes times[2];
  u64 sum[2];  /* the same of some rounds, where runs of a loop are of any length */
  u64 longest; /* entry of these */
  u64 entered_trips; /* that were left of the loop at the last entry that was timed */
  u32 rounds;
  u32 in;      /* look-ups until the next one that is timed */
  u32 next;
  u8 end;      /* WatchEnd, of the entries */
  u8 won;      /* times one after the other that the region was the faster one */
  u8 lost;     /* times that it was not */
  bool lifted; /* a region there runs several trips of its loop */
  bool begun;  /* this visit is timed, if an entry fits */
} PlaceWatch;

/* The sum that decided last about a place (decide.h), to be told in words (why.c). */
typedef enum SumKind {
  SUM_none,
  SUM_code,   /* to come, record, compile: by the code */
  SUM_graph,  /* to come, record, compile, percent of the best gain: by the graph that was recorded */
  SUM_around, /* as SUM_code; the loop around is asked instead */
  SUM_large,  /* saved, record, compile, elements: before it ran */
  SUM_share,  /* spent on compiling with this one, allowed: of all compiling together */
  SUM_counts, /* by counts alone */
  SUM_asked,  /* by jit or trace.explain */
  SUM_timed,  /* entered, interpreted, passes that it rests */
} SumKind;

typedef struct PlaceSum {
  u8 kind, decision; /* SumKind, Decision */
  u64 ns[4];
} PlaceSum;

/* Of a place where nothing fits: what its passes take in the interpreter (sample.c), and what is known of its cost. */
typedef struct PlaceRent {
  u64 used_ns, each_ns; /* all since the last compilation, at the speed of the last one that was measured */
  u64 ahead_ns;  /* what is to come, when it was last asked */
  u64 cost_ns;   /* of compiling its graph; 0: not recorded yet */
  /* trips that were left of the run of its loop then, or as many as its runs have on average; 0: not known */
  u64 own;
  u32 left_often; /* of 16 trips, those on which what was recorded last would be left by a cold arm */
  bool left_early; /* and that would be on the first trips of a loop inside of it */
  u64 lost_ns;   /* spent on what was not compiled in the end */
  u64 begin, at, count; /* of the sample that runs: position and length of a `for` loop */
  u32 length;    /* of its code, in instructions that are more than moves; 0: not counted yet */
  u32 passes;    /* since the last compilation */
  u32 slept;     /* of these, times that it was let alone, from now on */
  u32 skip;      /* times that it is not looked at from now on, where entries are looked up */
  u32 depth, span;
  u32 entries;   /* made before the last compilation */
  /* defers: times that it was left to the loop around it. vain: samples in a row that came to no end */
  u8 samples, defers, vain;
  bool probing, fresh, told; /* a loop's sample runs; a frame's is there; each_ns was told by the loop inside */
} PlaceRent;

/* Of a loop: what going in and out of its regions takes, and which of its runs are long enough for that (gate.c). */
typedef struct PlaceGate {
  u32 loop;      /* extent; 0: it is none */
  u32 trip_ns;   /* of a trip in the interpreter */
  u32 around_ns; /* of an entry, beside its run */
  u32 run;       /* that waits */
  u32 seen, reached; /* runs that were looked at, and that were long */
  /* dull: short runs one after the other; rushed: times that they were entered at once in vain */
  u32 samples, dull, rushed;
  u32 short_run; /* trips of the last run that was too short; 0: none was */
  u32 brief;     /* runs one after the other of which nothing was known and that were over while they were waited for */
  bool through;  /* nothing leaves it early */
  /* passing: the interpreter counts trips that are not asked; quick: runs are entered at once */
  bool waits, passing, quick;
} PlaceGate;

/* A visit that is being timed. */
typedef struct Watch {
  struct Place *place;
  u32 depth;        /* of its frame, which is marked FRAME_WATCHED */
  bool eager;       /* it was not entered */
  bool probe;       /* it could not be: for sample.c */
  bool counted;     /* at the head of a `for` loop: at, count are its position and length */
  u64 at, count, begin; /* of a probe: at counts the passes before */
  u32 head;         /* behind a break in a loop: pc of that loop's head, plus one; its trips are timed */
  bool runs;        /* at the head of another loop, which its regions run to its end */
  /* of it: its number (gate.c); trips that were interpreted, and when the last of them or the last region ended */
  u32 run;
  u32 trips;
  u64 last;
  bool begun;       /* of these, one that is not entered: the head was reached */
} Watch;

/* A place in code where regions are entered: a function's entry, a loop's head, or behind a break. */
typedef struct Place {
  Code *code;      /* borrowed: code_freed takes its places away */
  u32 pc;
  u8 start;        /* RecordStart */
  u8 tries;        /* traces that failed here */
  u8 unfit;        /* times that nothing fitted before the first trip of its loop */
  bool eager;      /* demoted: never asked again */
  bool asked;      /* and that when jit had asked for it: it is not tried again for jit either */
  u16 why;         /* reasons.def, of the demotion or the last failure */
  u32 count;       /* times passed since the last compilation without an entry that fitted */
  u32 spurious;    /* checks that failed one after the other */
  u32 passes;      /* entries made, to be weighed now and then */
  u32 missed;      /* look-ups one after the other that found nothing */
  u32 slept;       /* of `sleep`, times that the interpreter counts */
  u32 sleep, nap;  /* times that it is not asked from now on; how many the last nap had */
  u32 compiles, recompiles; /* so far */
  u8 demoted;      /* times that it was, each for longer */
  bool wakes;      /* demoted for a while only */
  bool warned;
  /* a region there calls itself: the calls that the interpreter makes inside of the function are not timed */
  bool recurs;
  PlaceWatch watch;
  PlaceRent rent;
  PlaceGate gate;
  PlaceSum once, each; /* what decided that it is compiled, and that it is entered */
  RegionTotals past;  /* of regions that were given up */
  VEC(PlaceSubject) subjects; /* what its guards kept missing */
  Name gone;       /* a function that an entry relied on and that was freed: the entry went with it; 0: none */
  GuardCache cache;
  struct Place *next; /* same hash */
} Place;

enum { LARGE_REFUSED = 8 };

/* Code that is not worth compiling at once on arrays of so many elements (ahead.c). */
typedef struct LargeRefused {
  u64 code; /* Code.id; 0: none */
  u32 from, until;
  u64 elements;
} LargeRefused;

typedef struct PlaceTable {
  Place **slots;
  u32 slot_count, count;
} PlaceTable;

typedef struct Tracer {
  Vm *vm;
  ConstructFn constructs[OP_COUNT];
  TraceTransformFn transforms[TF_COUNT];
  Outcome (*list_room)(struct Recorder *r, struct ListRoom *q); /* repr_columns_room.h; stuck: it is not known */
  bool (*whole)(struct Recorder *r); /* looks at a recording that is whole, before it is handed on; false: memory */
  const Backend *backends[TRACER_BACKENDS];
  u32 backend_count;
  const Backend *backend;  /* the one in use; NULL: nothing is compiled */
  const Backend *verified; /* what the backend verify compares with the graph */
  PlaceTable places;
  PlaceTable *private_places; /* of the explain that runs: its entries are its own */
  TraceLog log;
  Demand demand;
  struct Exported *exports; /* all that programs hold */
  u64 region_ids;
  Watch watches[WATCHES];  /* innermost last */
  u32 watch_count, watch_seed, trial_asked;
  u64 (*clock)(void *context); /* nanoseconds; NULL: vm_clock. For tests (tracer_use_clock) */
  u64 (*work_clock)(void *context); /* processor time; NULL: the same, or the thread's. For tests */
  void *clock_context;
  u64 began, began_ticks;  /* by that clock, and by the processor's counter */
  u64 compiling_ns;        /* spent on compiling, failures too: processor time */
  u64 compiling_wall;      /* the same by the clock */
  u64 cost_percent;        /* what compiling took of what it was expected to; 0: not known */
  u32 compilings;
  u64 losers_ns;           /* what compiling took at places at which compiled code was not faster */
  u64 *slots;              /* stack of region slots */
  u32 slot_top, slot_cap;
  u32 depth;               /* regions running */
  u64 record_until;        /* by the clock; 0: no limit */
  u64 record_worked, record_most; /* processor time when the recording began, and what it may take of that */
  u64 large_lost_ns;       /* spent on recordings of what works on large arrays that were not compiled */
  LargeRefused large_refused[LARGE_REFUSED];
  /* the one to be replaced; where the last graph of that kind ended in its own frame, 0: there was none */
  u32 large_next, large_until;
  /* times one after the other that nothing came of it; times that it is asked for at once, behind a region */
  u32 large_dull, large_near;
  bool large;              /* such a one is being made: what compiling saves is told by the graph (ahead.c) */
  bool restarted;          /* a backend asked for another trace, which is being made */
  Force force;             /* what tests ask for */
  bool forced;             /* explain, jit: heat and cost do not matter */
  const Place *tracing;    /* the place that is being traced, or NULL */
  struct Explain *explain; /* the run being explained, or NULL */
} Tracer;

WeftStatus tracer_install(Vm *vm) MUST_USE; /* fills vm->tier; freed with the VM */
Tracer *tracer_of(Vm *vm);
void tracer_use_clock(Tracer *t, u64 (*clock)(void *context), void *context); /* before anything runs */
void tracer_ignore_clock(Tracer *t); /* what is compiled goes by counts alone */
u64 tracer_now(const Tracer *t);
u64 tracer_worked(const Tracer *t); /* processor time of this thread */
bool tracer_late(const Tracer *t); /* has the recording in progress used up its time? */
bool tracer_add_backend(Vm *vm, const Backend *b) MUST_USE; /* false: there are too many */
bool tracer_force(Vm *vm, const char *what); /* for tests (force.h). False: not known */
bool tracer_use_backend(Vm *vm, const char *name); /* "eager": off; "verify:NAME". False: there is none of that name */

/* The regions entered at a function and at its continuations; for dumps. */
void tracer_regions(Vm *vm, const Code *code, void (*each)(void *ctx, const Place *p, const GuardEntry *e), void *ctx);
/* "" or a list of names as in WEFT_LOG: graph,guards,loops,breaks,recompiles. */
void tracer_log(Vm *vm, const char *names);
void tracer_event(Tracer *t, EventKind kind, u32 reason, Span span, u64 region, const char *fmt, ...) PRINTF_LIKE(6, 7);
void region_totals(const Region *r, RegionTotals *sum); /* added */
/* Did this source make the place that is traced compile so often that the trace must not rely on what it is? */
bool place_is_open(const Place *p); /* is there such a source? */
bool source_is_open(const Tracer *t, const GuardSet *g, SourceId s);
/* Keeps more of the log from here on, kernels' counts, and with `runs` each run of a region; before anything runs. */
void tracer_keep(Vm *vm, bool runs);
bool tracer_write(Vm *vm, const char *form, Buf *out); /* the log as "json", "chrome" or "profile" */
/* What the log says of a function (fn a closure), or of the last break or recompile (fn nil). */
void tracer_why(Vm *vm, Value fn, Buf *out);
void tracer_gather(Vm *vm); /* keeps what tracer_report tells of code that is freed before; before anything runs */
/* What was compiled so far, breaks, cold exits, and what decided about each place. */
void tracer_report(Vm *vm, Buf *out);
/* trace.explain: captures and compiles `fn` whatever the heat, runs it once on the arguments (borrowed), reports. */
WeftStatus tracer_explain(Vm *vm, Value fn, const Value *args, u32 nargs, Value *out) MUST_USE;
/* of a record that has the keys of what tracer_explain gives; NULL: it is none */
const Text *tracer_report_text(Vm *vm, Value v);
/* trace.stats: a record of counters, of the VM (fn nil) or of the regions entered at fn. */
/* trace.mark_static, trace.mark_dynamic: a size of a closure's parameter, from its next call on. */
WeftStatus tracer_mark(Vm *vm, const Fn *fn, u32 arg, i32 axis, bool dynamic) MUST_USE;
/* trace.export: a record {text, inputs, outputs, guards, run}. */
WeftStatus tracer_export(Vm *vm, Value fn, const Value *args, u32 nargs, Value *out) MUST_USE;
WeftStatus tracer_stats(Vm *vm, Value fn, Value *out) MUST_USE;

#endif
