/* gate.c — is this run of a loop long enough to be entered? Going in and out of a region takes as long as some
 * trips in the interpreter: what finding and leaving it takes is measured, what a trip takes was measured before it
 * was compiled.
 *
 *   a `for` loop that nothing leaves early   is entered with more trips than that left; else none of its run is
 *                                            asked again
 *   any other                                is entered once so many trips of its run were interpreted: it takes at
 *                                            most twice what it would have if its length had been known. At once
 *                                            while most of its runs are long; where many in a row were short, only
 *                                            some of them are looked at
 *
 * One run of a loop is told from the next by counters of the interpreter: of its function's calls, and of the loops
 * around it. */
#include "lang/mechanisms.h"
#include "tracer/tier/gate.h"
#include "tracer/tier/cost.h"
#include "tracer/tier/decide.h"
#include "tracer/tier/sample.h"

enum { NS_MOST = 1 << 28 }; /* of a trip or an entry: longer ones are entered anyway */

static u32 loop_of(const Place *p) {
  const Proto *proto = p->code->proto;
  for (u32 i = 1; i < proto->nextents; i++)
    if (is_loop(&proto->extents[i]) && proto->extents[i].head == p->pc) return i;
  return 0;
}

void gate_open(const Tunables *tun, Place *p, u64 trip_ns) {
  PlaceGate *g = &p->gate;
  *g = (PlaceGate){.loop = p->start == RECORD_LOOP ? loop_of(p) : 0};
  if (trip_ns < NS_MOST) g->trip_ns = trip_ns > (u64)tun->trip_least_ns ? (u32)trip_ns : (u32)tun->trip_least_ns;
  else g->loop = 0;
  g->through = g->loop && p->code->proto->extents[g->loop].kind == EXT_FOR &&
               loop_runs_through(p->code->proto, &p->code->proto->extents[g->loop]);
}

void gate_trip(const Tunables *tun, Place *p, u64 ns) {
  PlaceGate *g = &p->gate;
  u64 most = 2 * (u64)g->trip_ns; /* it was interrupted, or is of another kind */
  g->trip_ns = (g->trip_ns + (u32)(ns > most ? most : ns) + 1) / 2;
  if (g->trip_ns < tun->trip_least_ns) g->trip_ns = (u32)tun->trip_least_ns;
}

/* The entries were quick to be made: were their runs long? */
static void look_back(const Tunables *tun, PlaceGate *g, u64 spent) {
  g->reached += spent >= percent_of(g->around_ns, tun->compiled_percent);
  if (++g->seen < tun->run_seen) return;
  if (g->reached <= tun->run_seen / 2) {
    g->quick = false;
    g->rushed += g->rushed < tun->run_doublings;
  }
  g->seen = g->reached = 0;
}

void gate_note(const Tunables *tun, Place *p, u64 around, u64 spent) {
  PlaceGate *g = &p->gate;
  if (!g->loop) return;
  u32 look = (u32)tun->clock_ns, ns = around > look ? around < NS_MOST ? (u32)around - look : NS_MOST : 1,
      of = (u32)tun->run_average;
  if (g->samples < tun->run_samples) {
    if (!g->samples++ || ns < g->around_ns) g->around_ns = ns;
  } else {
    u32 most = (u32)tun->run_jump * g->around_ns + look; /* it was interrupted */
    g->around_ns = ((of - 1) * g->around_ns + (ns < most ? ns : most)) / of;
  }
  if (g->quick) look_back(tun, g, spent);
}

static SiteState *site_of(const Code *code, const Extent *x) {
  u32 site = code->site_of_pc[x->els];
  return site ? &code->sites[site - 1] : NULL;
}

enum { HASH = 31 }; /* not a threshold: an odd number */

/* Another one in each run of the loop, but for a chance that does no harm. */
u32 gate_run(const Place *p, const Frame *f) {
  const Proto *proto = p->code->proto;
  u32 id = (u32)((uintptr_t)f->base >> 4) + HASH * (u32)p->code->sites[0].count;
  for (u32 i = proto->extents[p->gate.loop].parent; i && i < proto->nextents; i = proto->extents[i].parent) {
    const SiteState *s = is_loop(&proto->extents[i]) ? site_of(p->code, &proto->extents[i]) : NULL;
    if (s) id = HASH * id + (u32)s->count;
  }
  return id;
}

/* The interpreter counts so many trips until the tier is asked again. */
static bool pass(const Tracer *t, PlaceGate *g, SiteState *s, u64 trips) {
  s->count = (i32)t->vm->tunables.warm_trips - (i32)trips;
  g->passing = true;
  return true;
}

void gate_skip(const Tracer *t, Place *p, const Frame *f) {
  const Tunables *tun = &t->vm->tunables;
  u64 at, count;
  bool counted = p->gate.loop && loop_at(f, f->pc, &at, &count);
  SiteState *s = counted ? site_of(p->code, &p->code->proto->extents[p->gate.loop]) : NULL;
  if (!s || !MECHANISM(t->vm, trials_ask_seldom)) return;
  u64 left = count > at ? count - at : 0, most = (u64)tun->skip_ns / (p->gate.trip_ns + 1);
  if (most > (u64)tun->skip_trips) most = (u64)tun->skip_trips;
  if (most > 1) pass(t, &p->gate, s, left < most ? left : most);
}

void gate_wake(const Tracer *t, Place *p) {
  SiteState *s = p->gate.passing ? site_of(p->code, &p->code->proto->extents[p->gate.loop]) : NULL;
  if (!s || s->count >= t->vm->tunables.warm_trips) return;
  s->count = (i32)t->vm->tunables.warm_trips;
  p->gate.passing = false;
}

/* A run of which nothing is known. */
static bool gate_is_waiting(const Tracer *t, Place *p, const Frame *f, SiteState *s, u64 need) {
  const Tunables *tun = &t->vm->tunables;
  PlaceGate *g = &p->gate;
  if (g->quick) return false;
  u32 run = gate_run(p, f);
  bool same = g->waits && g->run == run, missed = g->waits && !same;
  g->reached += same;
  if (++g->seen >= (u32)tun->run_seen << g->rushed) {
    g->quick = g->reached >= (u32)tun->run_long << g->rushed;
    g->seen = g->reached = 0;
  }
  g->waits = !same;
  g->run = run;
  if (same) {
    g->brief = 0;
    return false;
  }
  /* the next trips are let be, then another run is looked at */
  if (missed && ++g->brief >= tun->run_brief && MECHANISM(t->vm, short_runs_are_let_be)) {
    g->waits = false;
    u32 times = 0, least = 2 * (u32)tun->run_brief;
    while (times < tun->run_doublings && g->brief >> times >= least) times++;
    if (g->brief >= least << tun->run_doublings) g->brief--;
    return pass(t, g, s, need << times);
  }
  return pass(t, g, s, need);
}

bool gate_closed(const Tracer *t, Place *p, const Frame *f) {
  const Tunables *tun = &t->vm->tunables;
  PlaceGate *g = &p->gate;
  g->passing = false;
  if (!g->loop || g->samples < tun->run_samples || !decides_by_clock(t) || t->force.kind) return false;
  if (!MECHANISM(t->vm, long_runs)) return false;
  const Proto *proto = p->code->proto;
  SiteState *s = site_of(p->code, &proto->extents[g->loop]);
  Cost c = cost_of_run(p);
  u64 left = UINT64_MAX, need = cost_pays_after(tun, &c), at, count;
  if (!s || !need) return false;
  if (need > (u64)tun->run_trips_most) need = (u64)tun->run_trips_most;
  if (loop_at(f, f->pc, &at, &count)) left = count > at ? count - at : 0;
  if (left <= need) { /* and of others as short as this one no more than some */
    u64 more = need << g->dull;
    if (left) g->short_run = (u32)left;
    if (g->dull < tun->run_doublings) g->dull++;
    else s->flags &= (u16)~SITE_STARTS;
    return pass(t, g, s, g->dull < tun->run_doublings || more < left ? left : more);
  }
  g->dull = 0;
  return !g->through && gate_is_waiting(t, p, f, s, need);
}
