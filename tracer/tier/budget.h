/* budget.h — what compiling may cost at a place, and what becomes of it after failures (budget.c). */
#ifndef WEFT_TRACER_BUDGET_H
#define WEFT_TRACER_BUDGET_H

#include "tracer/tracer.h"

enum { GRAPH_MANY = 1 << 20 };
/* of a value, by the hints; not told exactly from GRAPH_MANY on, UINT64_MAX: not known */
u64 graph_elements(const Graph *g, ValueId v);
/* nothing is compiled there any more; its entries stay */
void place_demote(Tracer *t, Place *p, u32 reason, const char *text);
void place_failed(Tracer *t, Place *p, u32 reason, Span span, const char *text); /* a trace; after some it is demoted */
void place_cut(Tracer *t, Place *p, Span span, const char *text);
bool place_slept(const Tracer *t, Place *p); /* of one that sleeps: it is not asked this time */
static inline bool place_sleeps(const Tracer *t, Place *p) { return UNLIKELY(p->sleep) && place_slept(t, p); }
bool place_recompiles(Tracer *t, Place *p, const Frame *frame); /* no entry fits the frame: is it compiled once more? */
void place_missed(Tracer *t, Place *p);                         /* it is not */
void place_left_by_check(Tracer *t, Place *p);
/* After a run: gives the place's entries up when the interpreter would be faster. */
void place_weigh(Tracer *t, Place *p);
static inline void place_passed(Tracer *t, Place *p) {
  const Tunables *tun = &t->vm->tunables;
  i64 each = tun->payback_calls;
  p->passes = p->passes + 1 == UINT32_MAX ? 0 : p->passes + 1;
  if (each && (!(p->passes & (tun->pack_each - 1)) || UNLIKELY(p->passes % (u64)each == 0))) place_weigh(t, p);
}
void place_retire(Tracer *t, Place *p, u32 reason, const char *text); /* demoted until it was passed often enough */
/* Is there time to compile, by what was spent on it and on running so far? False: the place naps. */
bool place_may_compile(Tracer *t, Place *p, bool had);
/* the same for a graph that was recorded, when it is a large one */
bool place_may_cost(Tracer *t, Place *p, const Graph *g, bool broke);
u32 graph_parts(const Graph *g); /* what its compilation is expected to cost goes by these */
bool graph_recurs(const Graph *g); /* a function in it calls itself */
u64 region_eager_ns(const Tunables *tun, const Graph *g); /* 0: more than can be told */
u64 region_early_ns(const Tunables *tun, const Graph *g); /* the same of what stands before its first loop */

/* The backend said no. skip: stays eager; unsupported: counted as a warning; restart asked for again: counts as a
 * failed trace; fatal: likewise, or, where compiling was asked for, an error with the cause. `late`: time was used
 * up. */
void place_refused(Tracer *t, Place *p, BackendResult how, bool late, Span at, const char *why);

#endif
