/* decide.h — is a place to wait, to be compiled, to be entered, or to rest? (decide.c; in words: why.c) */
#ifndef WEFT_TRACER_DECIDE_H
#define WEFT_TRACER_DECIDE_H

#include "tracer/tier/gate.h"
#include "tracer/tier/watch.h"

typedef enum Decision {
  DECIDE_wait,    /* it is interpreted this time, and asked again */
  DECIDE_compile,
  DECIDE_enter,   /* an entry is looked up */
  DECIDE_rest,    /* it is interpreted; nothing is compiled there any more, or not for long */
} Decision;

bool decides_by_clock(const Tracer *t); /* false: by counts alone (WEFT_PACE=0), or all is asked for (jit, explain) */
Decision decide_uncompiled(Tracer *t, Place *p, Frame *f); /* no entry fits: wait, compile or rest */

/* What is to be done at this visit of the place; `missed`: its entries were looked up, and none fits. */
static inline __attribute__((always_inline)) Decision decide(Tracer *t, Place *p, Frame *f, bool missed) {
  if (UNLIKELY(missed)) return decide_uncompiled(t, p, f);
  p->watch.begun = false;
  if (UNLIKELY(t->watch_count) && watch_visit(t, p, f)) return DECIDE_wait;
  if (!p->cache.entries.count) return DECIDE_enter; /* there is nothing to find */
  if (p->start == RECORD_LOOP && gate_closed(t, p, f)) return DECIDE_wait;
  if (UNLIKELY(!p->watch.in--) && watch_begin(t, p, f)) return DECIDE_wait;
  return DECIDE_enter;
}

/* The same where more is asked than that it pays: is there time? */
Decision decide_demanded(Tracer *t, Place *p, Frame *f);
/* Of a graph that was recorded there: compile, wait, or rest: it can only lose. */
Decision decide_recorded(Tracer *t, Place *p, const Graph *g, bool broke);
bool decide_affords(Tracer *t, Place *p, u64 parts, u64 gain); /* the same by its parts, and percent of the best gain */
/* Of what follows an operation on large arrays, before it ran: compile or wait. `p`: may be NULL until it is made. */
Decision decide_large(Tracer *t, const Frame *f, RecordStart start, Place **p, u64 *elements);

void decide_naps(Place *p, u32 passes);  /* passes in a nap count as passes that it waits */
void decide_paid(Tracer *t, Place *p, u64 parts, u64 ns); /* it was compiled, which took so long */
static inline void decide_wasted(Place *p, u64 ns) { p->rent.lost_ns += ns; } /* nothing came of it */

/* ---- why.c ---- */
typedef enum Told {
  TOLD_waits, /* of one function: places that are not compiled yet */
  TOLD_all,   /* of one function: every sum that decided */
  TOLD_program, /* the same, where little was taken of loops alone */
} Told;
void decide_tell(const Tracer *t, const Code *code, Told what, Buf *out); /* lines; code NULL: of all code */

#endif
