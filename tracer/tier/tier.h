/* tier.h — inside tracer/: what the files of the tier share (tier.c, compile.c, await.c, ahead.c, rent.c, watch.c, places.c, budget.c, leave.c, install.c). */
#ifndef WEFT_TRACER_TIER_H
#define WEFT_TRACER_TIER_H

#include "tracer/tracer.h"

enum { PACK_EACH = 8 }; /* entries until what they packed is looked at */

/* places.c */
Place *place_find(const PlaceTable *t, const Code *code, u32 pc, u32 start); /* NULL: not asked for yet */
Place *place_get(Vm *vm, PlaceTable *t, Code *code, u32 pc, RecordStart start); /* found or made; NULL when refused */
void place_free(Vm *vm, Place *p);

/* budget.c */
enum { GRAPH_MANY = 1 << 20 };
u64 graph_elements(const Graph *g, ValueId v); /* of a value, by the hints; not told exactly from GRAPH_MANY on, UINT64_MAX: not known */
void place_demote(Tracer *t, Place *p, u32 reason, const char *text); /* nothing is compiled there any more; its entries stay */
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
  i64 each = t->vm->tunables.payback_calls;
  p->passes = p->passes + 1 == UINT32_MAX ? 0 : p->passes + 1;
  if (each && (p->passes % PACK_EACH == 0 || UNLIKELY(p->passes % (u64)each == 0))) place_weigh(t, p);
}
void place_retire(Tracer *t, Place *p, u32 reason, const char *text); /* demoted until it was passed often enough */
/* Is there time to compile, by what was spent on it and on running so far? False: the place naps. */
bool place_may_compile(Tracer *t, Place *p, bool had);
bool place_may_cost(Tracer *t, Place *p, const Graph *g, bool broke); /* the same for a graph that was recorded, when it is a large one */
u32 graph_parts(const Graph *g); /* what its compilation is expected to cost goes by these */
bool graph_recurs(const Graph *g); /* a function in it calls itself */
u64 region_eager_ns(const Tunables *tun, const Graph *g); /* 0: more than can be told */
u64 region_early_ns(const Tunables *tun, const Graph *g); /* the same of what stands before its first loop */

/* ahead.c */
/* The elements of its largest array, where the rest of the frame is worth a recording at once; else 0. *gain: as ahead_gain. */
u64 ahead_elements(const Tracer *t, const Frame *f, u64 *gain);
bool ahead_affords(const Tracer *t, const Frame *f, u64 elements);
void ahead_refuse(Tracer *t, const Place *p, u64 elements);
u64 ahead_gain(Tracer *t, const Graph *g); /* nanoseconds that compiling it may take */

/* rent.c */
u64 rent_cost(const Tracer *t, u64 parts); /* of compiling so many */
bool rent_applies(const Tracer *t);
u64 rent_now(const Tracer *t);
bool rent_due(Tracer *t, Place *p, Frame *f); /* nothing fits at this visit: is compiling worth its time? False: the place sleeps */
u64 rent_gain(const Tracer *t, const Place *p, const Graph *g, bool broke); /* what a region is expected to save, percent */
bool rent_affords(const Tracer *t, Place *p, u64 parts, u64 gain); /* rent_due for a graph that was recorded */
bool rent_is_lost(const Tracer *t, const Place *p, const Graph *g, bool broke);
void rent_denied(Place *p, u64 missing);      /* it has to wait until its passes took so much more */
void rent_naps(Place *p, u32 n);              /* it takes a nap of so many passes */
void rent_wasted(Place *p, u64 ns);
void rent_paid(Tracer *t, Place *p, u64 parts, u64 ns);
void rent_tell(const Tracer *t, const Code *code, Buf *out); /* lines: what is not compiled yet, and what it would need */
void rent_returned(Tracer *t, Place *p, u64 ns, u64 passes); /* what a probe took, and what passed until then */
u64 rent_passes(const Tracer *t, const Place *p); /* since the last compilation, those that it slept through included */

bool rent_runs_through(const Proto *p, const Extent *x); /* is the loop left only when it has run through? */

/* gate.c */
void gate_open(Place *p, u64 trip_ns); /* a loop was compiled, a trip of which the interpreter takes so long for */
void gate_trip(Place *p, u64 ns); /* so long it takes by now */
void gate_note(Place *p, u64 around, u64 spent); /* an entry took so long beside its run */
bool gate_closed(const Tracer *t, Place *p, const Frame *f); /* this run of the loop is too short, so far; it is asked again when it may be longer */
void gate_skip(const Tracer *t, Place *p, const Frame *f); /* the run is interpreted to be timed: for some trips of it nothing is asked */
void gate_wake(const Tracer *t, Place *p); /* that is over: it is asked at the next trip */
u32 gate_run(const Place *p, const Frame *f); /* another number in each run of the loop */

/* watch.c */
void watch_ran(Tracer *t, const Place *p, u32 depth); /* a region there was left, which that frame had entered */
void watch_probe(Tracer *t, Place *p, Frame *f); /* what this visit takes until the frame returns: for rent_returned */
const Watch *watch_probed(Tracer *t, const Place *p); /* the probe of a frame that stands around this visit; NULL: there is none */
bool watch_begin(Tracer *t, Place *p, Frame *frame); /* this visit may be timed. True: it is one without an entry */
void watch_cancel(Tracer *t, const Place *p);        /* nothing fitted */
bool watch_visit(Tracer *t, Place *p, const Frame *frame); /* ends what is timed up to here. True: it is not entered yet */
bool watch_head(Tracer *t, const Frame *frame); /* at a loop's head: true: nothing is entered there, as a trip without what goes on behind a break is timed */
void watch_returns(Vm *vm); /* TierHooks.returns */
void watch_forget(Tracer *t, const Place *p);
bool watch_wanted(const Tracer *t, const Place *p);
bool watch_trial_goes_on(Tracer *t); /* is this visit inside of what runs interpreted only to be timed? One that has shown enough ends here */

/* compile.c: traces and compiles for the frame as it stands; the new entry stands first in the place's cache. NULL: not now. */
GuardEntry *tier_compile(Tracer *t, Frame *frame, Place *p, u32 reason);
GuardEntry *tier_compile_timed(Tracer *t, Frame *frame, Place *p, u32 reason); /* the same, accounted for */

/* await.c: what stands behind the calls at which a graph broke that is not compiled is asked for when they return. */
void await_breaks(Tracer *t, const Graph *g);
bool await_here(Tracer *t, Frame *f); /* a call returned into the frame: is what follows asked for? */

/* tier.c */
extern const TierHooks tier_hooks;
bool tier_slots(Tracer *t, u32 n) MUST_USE; /* room for so many above slot_top; false when memory was refused */
/* The processor's own counter, which is cheaper to read than the clock; 0 where there is none, or the clock is another one. */
static inline u64 tier_ticks(const Tracer *t) {
#ifdef __x86_64__
  return t->clock ? 0 : __builtin_ia32_rdtsc();
#else
  (void)t;
  return 0;
#endif
}

/* install.c */
void tier_code_freed(Vm *vm, Code *code);
void tier_vm_freed(Vm *vm);

/* install.c: entries of a function, and those that run it, are given up: they were made before it was marked. */
void places_forget(Vm *vm, Tracer *t, const Code *code);
void marks_code_freed(Tracer *t, const Code *code);

/* demand.c: calls f with everything hot; `whole`: who asks that it be captured without a break, or NULL. */
WeftStatus demand_call(Tracer *t, const char *whole, Value f, const Value *args, const Name *names, u32 nargs, Value *out) MUST_USE;

/* leave.c: makes the frames what the exit says. The frame that entered is the top one; the bound slots are used up.
 * `*returns`: it returned a value. */
WeftStatus region_leave(Tracer *t, Region *region, u32 exit, u64 *slots, bool *returns) MUST_USE;
static inline void leave_quick(Vm *vm, const RegionExit *e, const u64 *slots) { /* an exit that is known to be quick */
  Value v = e->returned;
  v.bits = slots[e->slot];
  vm_return(vm, v);
}

/* budget.c: the backend said no. skip: stays eager; unsupported: counted as a warning; restart asked for again: counts as a
 * failed trace; fatal: likewise, or, where compiling was asked for, an error with the cause. `late`: time was used up. */
void place_refused(Tracer *t, Place *p, BackendResult how, bool late, Span at, const char *why);

#endif
