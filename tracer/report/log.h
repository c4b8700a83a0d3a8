/* log.h — the one log of capture: what was compiled and why, in what time, what broke, what missed. trace.explain,
 * trace.stats, WEFT_LOG, `weft --explain`, the REPL's commands, the JSON file and the Chrome trace all read it.
 * Keeping it is cheap: an event is made when something is compiled or fails, never on a hit. Runs of regions are
 * kept only when a trace file was asked for. */
#ifndef WEFT_TRACER_LOG_H
#define WEFT_TRACER_LOG_H

#include "lang/reasons.h"
#include "tracer/graph/exits.h"

typedef enum EventKind {
#define EVENT(name, word) EVENT_##name,
#include "tracer/report/log.def"
  EVENT_COUNT
} EventKind;

typedef enum TracePhase {
#define PHASE(name, meaning) PHASE_##name,
#include "tracer/report/log.def"
  PHASE_COUNT
} TracePhase;

typedef struct TraceEvent {
  u8 kind;   /* EventKind */
  u8 start;  /* compile: RecordStart */
  u16 reason;
  Span span; /* break: what broke; miss: what needed the guard; else where the region is entered */
  u32 code;  /* name of the function that the region belongs to; 0: none */
  u64 region;
  u64 at_ns; /* since the VM began; compile: when it began */
  char text[160];             /* in source terms; compile: the region's name */
  char expected[48], got[48]; /* miss */
  u64 phase_ns[PHASE_COUNT];  /* compile */
  u32 nodes, guards, kernels, natives, externs; /* compile */
  u64 bytes;
} TraceEvent;

typedef struct TraceRun { /* a region was entered */
  u64 region, at_ns, ns;
  u32 kind; /* ExitKind by which it was left */
  u32 nested;
} TraceRun;

typedef struct TraceLog {
  u64 began;
  u32 words;              /* LOG_*: what goes to standard error as it happens */
  u32 limit, run_limit;   /* how many of the newest are kept; run_limit 0: no runs */
  VEC(TraceEvent) events; /* a ring once it is full */
  u32 event_next;
  VEC(TraceRun) runs;
  u32 run_next;
  u64 lost, runs_lost;
  bool gathers;             /* what is known of code that is freed is kept in `told`, for the report at the end */
  Buf told;
  VEC(u64) held; /* Code.id: it stood in a region of such code */
  VEC(struct Code *) codes; /* owned: what has regions lives as long as a log that is written at the end */
} TraceLog;

enum { LOG_graph = 1, LOG_guards = 2, LOG_breaks = 4, LOG_recompiles = 8, LOG_loops = 16 };
enum { EVENTS_KEPT = 256, EVENTS_KEPT_FILE = 16384, RUNS_KEPT_FILE = 65536 };

struct Tracer;
struct Place;
struct Code;

void log_init(TraceLog *l);
void log_free(Vm *vm, TraceLog *l);
void log_gather(struct Tracer *t, const struct Code *code); /* code is freed: what is told of it is kept */
void log_drop_codes(Vm *vm, TraceLog *l); /* while places can still be forgotten */
u64 log_now(void); /* ns */
void log_add(struct Tracer *t, const TraceEvent *e);
void log_run(struct Tracer *t, u64 region, u64 begin, u64 ns, u32 exit_kind);
void log_miss(struct Tracer *t, const GuardMiss *m, Name function);
void log_compile(struct Tracer *t, const Region *r, const struct Place *p, u32 reason, u64 begin, const u64 *phases);
static inline u64 log_phase(u64 *phases, u32 phase, u64 since) { /* the time now */
  u64 now = log_now();
  phases[phase] = now - since;
  return now;
}
void log_copy(char *to, size_t room, const char *from); /* cut between two characters where it has no room */
u32 log_count(const TraceLog *l);
const TraceEvent *log_at(const TraceLog *l, u32 index); /* 0: the oldest that is kept */
const char *log_word(u32 kind);                  /* "break", "recompiled" … */
const char *log_name(u32 kind);                  /* "break", "miss" … */
const char *log_phase_name(u32 phase);
void log_json(const struct Tracer *t, Buf *out);
void log_chrome(const struct Tracer *t, Buf *out);
void log_profile(const struct Tracer *t, Buf *out); /* profile.c: a table of the kernels; measures the machine */
void log_line(Vm *vm, const TraceEvent *e, Buf *out); /* `break at f.weft:3:5: output: print`, without a newline */
/* The function whose text holds the place, for events of a function; 0: it cannot be told. */
bool log_within(const TraceEvent *e, const struct Code *code);

#endif
