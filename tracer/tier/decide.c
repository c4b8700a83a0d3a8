/* decide.c — one function for all places: wait, compile, enter or rest.
 *
 * Rent or buy: a place is compiled once the time that its passes took in the interpreter, or the time that the loops
 * around it say they will take, is what compiling costs. Whatever comes then, the program takes at most twice the time
 * that it took if all had been known.
 *
 *   to come > record + compile      by the code's length: it is recorded                    cost.c, sample.c
 *   to come > compile / gain        by the graph: it is compiled
 *   trips > (enter + leave) / saved of a run of a compiled loop: it is entered              gate.c
 *   entered < interpreted           by timed visits: else it rests                          watch.c
 *   saved > 2 (record + compile)    of what works on large arrays, before it ran            ahead.c
 *   spent < share of the time       all compiling together: else it waits
 *
 * An inner loop whose run is over sooner than it could be compiled leaves it to the loop around it, which is asked at
 * its next trip; so does one that has no trip left. */
#include "lang/mechanisms.h"
#include "tracer/report/explain.h"
#include "tracer/tier/ahead.h"
#include "tracer/tier/budget.h"
#include "tracer/tier/cost.h"
#include "tracer/tier/decide.h"
#include "tracer/tier/places.h"
#include "tracer/tier/sample.h"

bool decides_by_clock(const Tracer *t) {
  const Tunables *tun = &t->vm->tunables;
  return !t->forced && tun->hot_calls && tun->warm_trips < tun->hot_trips && tun->compile_gain && tun->pace_percent &&
         !t->private_places && MECHANISM(t->vm, compile_pace);
}

/* ---- waiting ---------------------------------------------------------------------------------------------- */

/* Until its passes took so much more. */
static void wait_for(const Tunables *tun, Place *p, u64 missing, const ToCome *c) {
  PlaceRent *r = &p->rent;
  u64 n = missing / (2 * r->each_ns + 1), least = (u64)tun->wait_least, most = (u64)tun->wait_most;
  if (c->own && n > c->own) { /* its next run may be a longer one */
    u64 next = c->sure ? 0 : (u64)tun->wait_run_ns / (r->each_ns + 1);
    if (n > c->own + next) n = c->own + next;
  }
  if (n < least) n = r->each_ns * least * (u64)tun->wait_close > missing ? 0 : least; /* each is long */
  p->sleep = r->slept = (u32)(n < most ? n : most);
}

void decide_naps(Place *p, u32 passes) {
  PlaceRent *r = &p->rent;
  r->slept += passes;
  r->skip -= passes < r->skip ? passes : r->skip;
}

/* The place of the loop around extent `i` in whose favour it stands back: the first one that has no entries. NULL:
 * none. */
static Place *around(Tracer *t, const Frame *f, u32 i) {
  const Proto *proto = f->code->proto;
  for (; i && i < proto->nextents; i = proto->extents[i].parent) {
    const Extent *x = &proto->extents[i];
    u32 site = is_loop(x) ? f->code->site_of_pc[x->els] : 0;
    if (!site) continue;
    SiteState *s = &f->code->sites[site - 1];
    if (s->flags & SITE_COLD) return NULL;
    Place *p = s->entry ? s->entry : place_get(t->vm, &t->places, f->code, x->head, RECORD_LOOP);
    s->entry = p;
    if (!p || p->eager) return NULL;
    if (p->cache.entries.count) continue; /* only its first trip comes by here */
    p->sleep = p->slept = p->rent.slept = 0;
    if (s->count < (i32)t->vm->tunables.warm_trips) s->count = (i32)t->vm->tunables.warm_trips;
    return p;
  }
  return NULL;
}

/* A loop around it, in its frame or where its function was called, is asked at its next trip. */
static bool defer(Tracer *t, Place *p, const Frame *f, const ToCome *c, u64 cost) {
  const Tunables *tun = &t->vm->tunables;
  PlaceRent *r = &p->rent;
  u64 at, count, own = c->own ? c->own : (u64)tun->sample_trips;
  bool called = p->start == RECORD_ENTRY || !c->outer;
  bool longer = !called && r->defers < tun->defers_long && c->around >= (u64)tun->defer_trips;
  if (r->defers >= tun->defers ||
      (!c->over && cost_times(r->each_ns, own) > cost * (longer ? (u64)tun->defer_longer : 1)))
    return false;
  if (called && (f->flags & FRAME_NATIVE_CALL || t->vm->frame_count < 2 || f[-1].code == f->code)) return false;
  Place *outer = called ? around(t, f - 1, loop_innermost(f[-1].code->proto, f[-1].pc)) : around(t, f, c->outer);
  if (!outer) return false;
  if (!called && !outer->rent.samples && loop_at(f, f->pc, &at, &count)) {
    outer->rent.each_ns = cost_times(r->each_ns, count);
    outer->rent.told = true;
  }
  r->defers++;
  p->sleep = r->slept = (u32)(own < (u64)tun->wait_most ? own : (u64)tun->wait_most);
  return true;
}

/* ---- compile? --------------------------------------------------------------------------------------------- */

static bool pays(Tracer *t, Place *p, Frame *f) {
  const Tunables *tun = &t->vm->tunables;
  PlaceRent *r = &p->rent;
  if (!sample_pass(t, p, f)) return false;
  ToCome c = to_come(t->vm, f, p);
  if (p->cache.entries.count) { /* as often as nothing fitted so far */
    if (r->passes < tun->miss_passes) return false;
    c.passes = 1 + c.passes / (1 + (p->passes - r->entries) / r->passes);
    c.sure = false;
  }
  Cost cost = cost_of_code(t, p);
  u64 once = cost_once(&cost), ahead = percent_of(cost_times(r->each_ns, c.passes), tun->known_percent);
  r->own = c.own ? c.own : trips_per_run(p, f, &c);
  r->ahead_ns = c.sure || ahead > r->used_ns ? ahead : r->used_ns;
  p->once = (PlaceSum){.kind = SUM_code, .decision = DECIDE_wait, .ns = {r->ahead_ns, cost.record, cost.compile}};
  if (r->ahead_ns < once) {
    wait_for(tun, p, once - r->ahead_ns, &c);
    return false;
  }
  if (p->start != RECORD_RESUME && (defer(t, p, f, &c, once) || c.over)) {
    p->once.kind = SUM_around;
    return false;
  }
  p->once.decision = DECIDE_compile;
  return true;
}

/* Where entries are looked up each time, the place cannot sleep: it skips. */
static bool pays_beside(Tracer *t, Place *p, Frame *f) {
  PlaceRent *r = &p->rent;
  if (r->skip) {
    r->skip--;
    r->slept++;
    return false;
  }
  if (pays(t, p, f)) return true;
  if (p->cache.entries.count) {
    r->skip = p->sleep;
    r->slept = p->sleep = 0;
  }
  return false;
}

/* Compiling may take so much of the time that the program ran, and a little that is lent at the beginning: then it
 * slows nothing down noticeably, whatever comes of it. What was compiled or tried before at the place has to wait
 * longer. */
static bool has_time(const Tracer *t, Place *p, bool had, u64 expected) {
  const Tunables *tun = &t->vm->tunables;
  if (!place_is_paced(t) || !tun->compile_gain || !tun->pace_percent || !MECHANISM(t->vm, compile_pace)) return true;
  u64 ran = tracer_now(t) - t->began, sure = percent_of(p->rent.ahead_ns, tun->pace_sure);
  ran = ran > t->compiling_ns ? ran - t->compiling_ns : 0;
  bool tried = had || p->compiles || p->tries || p->demoted || p->start == RECORD_RESUME;
  i64 percent = tried ? tun->pace_percent : tun->pace_first_percent;
  if (decides_by_clock(t)) { /* what the place itself says was looked at: this is against storms alone */
    percent = tried || t->losers_ns ? tun->pace_first_percent : tun->pace_new_percent;
    if (sure > expected) ran += sure * PERCENT / (u64)percent;
  }
  if (t->compiling_ns + expected <= (u64)tun->pace_lent_ns + percent_of(ran, percent)) return true;
  p->once = (PlaceSum){.kind = SUM_share, .decision = DECIDE_wait,
                       .ns = {t->compiling_ns + expected, (u64)tun->pace_lent_ns + percent_of(ran, percent)}};
  return false;
}

/* The first compilation sets up what the later ones find. */
static bool may_compile(Tracer *t, Place *p, bool had) {
  const Tunables *tun = &t->vm->tunables;
  if (has_time(t, p, had, t->compilings ? t->compiling_ns / t->compilings : (u64)tun->compile_first_ns)) return true;
  if (!had) p->sleep = p->rent.slept = (u32)tun->pace_nap;
  return false;
}

Decision decide_demanded(Tracer *t, Place *p, Frame *f) {
  const Tunables *tun = &t->vm->tunables;
  bool had = p->cache.entries.count > 0;
  if (p->eager) return DECIDE_rest;
  if (had) {
    if (!place_recompiles(t, p, f) || !may_compile(t, p, true)) return DECIDE_wait;
    place_learns(t, p, f);
  } else if (!p->gone) { /* entries and loops: the VM has counted */
    u32 least = tun->hot_calls && !t->forced ? (u32)tun->hot_exit : 0;
    if (p->start == RECORD_RESUME && !decides_by_clock(t) && p->count++ < least) return DECIDE_wait;
    if (!may_compile(t, p, false)) return DECIDE_wait;
  }
  if (!decides_by_clock(t))
    p->once = (PlaceSum){.kind = t->forced ? SUM_asked : SUM_counts, .decision = DECIDE_compile,
                         .ns = {(u64)(p->start == RECORD_LOOP ? tun->hot_trips : tun->hot_calls)}};
  return DECIDE_compile;
}

Decision decide_uncompiled(Tracer *t, Place *p, Frame *f) {
  if (p->watch.begun) watch_cancel(t, p);
  p->watch.begun = false;
  if (!p->eager && !p->gone && decides_by_clock(t) && !pays_beside(t, p, f)) return DECIDE_wait;
  return decide_demanded(t, p, f);
}

/* ---- and what was recorded? -------------------------------------------------------------------------------- */

bool decide_affords(Tracer *t, Place *p, u64 parts, u64 gain) {
  PlaceRent *r = &p->rent;
  Cost c = cost_of_graph(t, p, parts, gain);
  u64 once = cost_once(&c);
  bool affords = gain && r->ahead_ns >= c.compile;
  p->once = (PlaceSum){.kind = SUM_graph, .decision = affords ? DECIDE_compile : DECIDE_wait,
                       .ns = {r->ahead_ns, c.record, c.compile, gain}};
  if (affords) return true;
  if (!gain) r->lost_ns += once; /* nor is it recorded again before it took twice as long */
  ToCome none = {0};
  wait_for(&t->vm->tunables, p, once > r->ahead_ns ? once - r->ahead_ns : once, &none);
  return false;
}

Decision decide_recorded(Tracer *t, Place *p, const Graph *g, bool broke) {
  const Tunables *tun = &t->vm->tunables;
  u32 parts = graph_parts(g);
  if (!decides_by_clock(t)) {
    Cost c = cost_of_parts(t, parts);
    if (parts <= tun->pace_nodes || has_time(t, p, p->cache.entries.count > 0, cost_once(&c))) return DECIDE_compile;
    p->sleep = (u32)tun->pace_long_nap;
    return DECIDE_wait;
  }
  if (t->large) p->rent.ahead_ns = ahead_gain(t, g);
  if (cost_is_lost(t, p, g, broke)) return DECIDE_rest;
  if (!t->large) return decide_affords(t, p, parts, cost_gain(t, p, g, broke)) ? DECIDE_compile : DECIDE_wait;
  Cost c = cost_of_parts(t, parts);
  p->once.ns[0] = p->rent.ahead_ns;
  p->once.decision = p->rent.ahead_ns >= cost_once(&c) ? DECIDE_compile : DECIDE_wait;
  return (Decision)p->once.decision;
}

Decision decide_large(Tracer *t, const Frame *f, RecordStart start, Place **at, u64 *elements) {
  AheadSum sum = ahead_look(t, f);
  Cost c = cost_of_parts(t, sum.ops);
  if (sum.gain < cost_once(&c) || !sum.elements || !ahead_affords(t, f, sum.elements)) return DECIDE_wait;
  Place *p = *at = *at ? *at : place_get(t->vm, &t->places, f->code, f->pc, start);
  if (!p) return DECIDE_wait;
  *elements = sum.elements;
  p->rent.ahead_ns = sum.gain;
  if (!may_compile(t, p, false)) return DECIDE_wait;
  p->once = (PlaceSum){.kind = SUM_large, .decision = DECIDE_compile,
                       .ns = {sum.gain, c.record, c.compile, sum.elements}};
  return DECIDE_compile;
}

/* ---- compiled ---------------------------------------------------------------------------------------------- */

/* Loops around it and inside of it take another time from now on. */
static void begin_anew(void *code, Place *p) {
  if (p->code == code) p->rent.passes = p->rent.samples = 0, p->rent.told = false;
}

void decide_paid(Tracer *t, Place *p, u64 parts, u64 ns) {
  if (p->start != RECORD_RESUME && decides_by_clock(t)) cost_tell_around(t, p, parts);
  places_each(&t->places, begin_anew, p->code);
  if (p->rent.each_ns) gate_open(&t->vm->tunables, p, p->rent.each_ns);
  p->rent = (PlaceRent){.entries = p->passes};
  cost_learn(t, parts, ns);
}
