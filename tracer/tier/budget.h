/* budget.h — what compiling may cost at a place, and what becomes of it after failures (budget.c). */
#ifndef WEFT_TRACER_BUDGET_H
#define WEFT_TRACER_BUDGET_H

#include "tracer/tracer.h"

/* nothing is compiled there any more; its entries stay */
void place_demote(Tracer *t, Place *p, u32 reason, const char *text);
void place_failed(Tracer *t, Place *p, u32 reason, Span span, const char *text); /* a trace; after some it is demoted */
void place_cut(Tracer *t, Place *p, Span span, const char *text);
bool place_slept(const Tracer *t, Place *p); /* of one that sleeps: it is not asked this time */
static inline bool place_sleeps(const Tracer *t, Place *p) { return UNLIKELY(p->sleep) && place_slept(t, p); }
/* Does the program compile at its own pace, and not at once (jit, explain, WEFT_HOT=0)? */
static inline bool place_is_paced(const Tracer *t) { return !t->forced && t->vm->tunables.hot_calls; }
/* no entry fits the frame: is it compiled once more, by what misses so far? */
bool place_recompiles(Tracer *t, Place *p, const Frame *frame);
void place_learns(Tracer *t, Place *p, const Frame *frame); /* it is: the source that misses is counted */
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
/* The backend said no. skip: stays eager; unsupported: counted as a warning; restart asked for again: counts as a
 * failed trace; fatal: likewise, or, where compiling was asked for, an error with the cause. `late`: time was used
 * up. */
void place_refused(Tracer *t, Place *p, BackendResult how, bool late, Span at, const char *why);

#endif
