/* watch.c — is compiled code faster here than the interpreter? Entries of a place are timed now and then, in turns
 * with visits at which it is not entered though it could be.
 *
 * Both are timed up to the same point, so that exits, continuations and what the guards make of arguments count too:
 *   at the head of a loop    until the next visit of the head in the same frame, by the trip; when the region runs
 *                            the loop to its end, until the head is reached for another run of the loop; where trips
 *                            cannot be counted, until the frame returns
 *   anywhere                 until the frame returns
 * An entry says which of them it is; the visits without an entry that follow end likewise. Times are kept in two
 * small rings, their means compared with outliers cut, and a place at which the interpreter wins rests for a while,
 * longer each time, until it is given up (budget.c). A visit without an entry that takes much longer than the
 * entries did is ended where it is, in favour of the region: at the next visit that is asked (being asked at each
 * trip would be a part of what is timed, and speak for the region), or where a place inside of it asks whether it is
 * to be compiled. Nothing else is on trial meanwhile. */
#include "lang/mechanisms.h"
#include "tracer/tier/budget.h"
#include "tracer/tier/decide.h"
#include "tracer/tier/sample.h"

#include <stdio.h>
#include <string.h>

static bool position(const Frame *f, u64 *at, u64 *count) { return loop_at(f, f->pc, at, count); }

static void drop(Tracer *t, u32 i) {
  memmove(&t->watches[i], &t->watches[i + 1], sizeof *t->watches * (t->watch_count - i - 1));
  t->watch_count--;
}

void watch_forget(Tracer *t, const Place *p) {
  for (u32 i = t->watch_count; i-- > 0;)
    if (t->watches[i].place == p) drop(t, i);
}

/* Frames that are gone took their watches with them. */
static void drop_stale(Tracer *t) {
  while (t->watch_count) {
    const Watch *w = &t->watches[t->watch_count - 1];
    if (w->depth < t->vm->frame_count && t->vm->frames[w->depth].flags & FRAME_WATCHED) return;
    t->watch_count--;
  }
}

/* ---- what the times say ---------------------------------------------------------------------------------- */

static u64 median(const WatchTimes *times) {
  u64 sorted[WATCH_TIMES];
  for (u32 i = 0; i < times->count; i++) {
    u32 k = i;
    for (; k && sorted[k - 1] > times->ns[i]; k--) sorted[k] = sorted[k - 1];
    sorted[k] = times->ns[i];
  }
  return sorted[times->count / 2];
}

/* What was interrupted, or is quite another thing than the rest, counts for no more than some of the rest. */
static u64 mean(const Tunables *tun, const WatchTimes *times) {
  u64 most = median(times) * (u64)tun->watch_cut + 1, sum = 0;
  for (u32 i = 0; i < times->count; i++) sum += times->ns[i] < most ? times->ns[i] : most;
  return sum / times->count;
}

static void begin_rounds(PlaceWatch *w) {
  w->sum[0] = w->sum[1] = w->longest = 0;
  w->rounds = 0;
}

static void again(const Tracer *t, Place *p) {
  const Tunables *tun = &t->vm->tunables;
  PlaceWatch *w = &p->watch;
  w->times[0].count = w->times[1].count = 0;
  begin_rounds(w);
  w->in = (u32)doubled((u64)tun->watch_again, w->won, tun->watch_again_most);
  if (w->won < UINT8_MAX) w->won++;
}

/* Runs of a loop are of any length: many of them tell, the fewer the clearer it is. */
static bool sum_up(const Tunables *tun, PlaceWatch *w, u64 *c, u64 *e) {
  w->sum[0] += *c;
  w->sum[1] += *e;
  w->rounds++;
  w->times[0].count = w->times[1].count = 0;
  *c = w->sum[0];
  *e = w->sum[1];
  for (u32 i = 0; i < WATCH_TIMES; i++)
    if (w->times[0].ns[i] > w->longest) w->longest = w->times[0].ns[i];
  u64 clear = w->rounds < 2 ? (u64)tun->watch_clear : w->rounds < tun->watch_rounds ? 2 : 0;
  if (clear && *c < clear * *e && *e < clear * *c) return false;
  begin_rounds(w);
  return true;
}

/* What the times say of the place: it goes on being entered, rests, or is given up. */
static void judge(Tracer *t, Place *p) {
  const Tunables *tun = &t->vm->tunables;
  PlaceWatch *w = &p->watch;
  const WatchTimes *compiled = &w->times[0], *eager = &w->times[1];
  u32 least = compiled->count < eager->count ? compiled->count : eager->count;
  if (!least) return;
  u64 c = mean(tun, compiled), e = mean(tun, eager), factor = c / (e + 1), clear = (u64)tun->watch_clear,
      most = (u64)tun->watch_clear_most;
  bool uneven = w->end == WATCH_run && ins_op(p->code->proto->code[p->pc]) != BC_fornext;
  if (!uneven && e > (u64)tun->trial_long_ns && e > clear * c) { /* another such visit would be dear */
    again(t, p);
    return;
  }
  if (least < tun->watch_sure || (least < tun->watch_early && factor < clear)) return;
  if (least < WATCH_TIMES && (uneven || (c < 2 * e && e < 2 * c))) return; /* too close to tell yet */
  if (uneven && !sum_up(tun, w, &c, &e)) return;
  bool lost = c * PERCENT > e * (u64)tun->watch_percent;
  p->each = (PlaceSum){.kind = SUM_timed, .decision = lost ? DECIDE_rest : DECIDE_enter, .ns = {c, e}};
  if (!lost) {
    again(t, p);
    return;
  }
  char text[96];
  snprintf(text, sizeof text, "entered it took %llu ns, not entered %llu", (unsigned long long)c,
           (unsigned long long)e);
  w->times[0].count = w->times[1].count = w->won = 0;
  w->in = 0;
  for (u32 i = 0; i < p->cache.entries.count && !w->lost && !p->demoted; i++)
    t->losers_ns += ((Region *)p->cache.entries.data[i]->region)->compile_ns;
  if (++w->lost % tun->watch_losses == 0) {
    place_retire(t, p, REASON_no_payback, text);
    return;
  }
  u64 rest = doubled((u64)tun->watch_rest, 2 * (w->lost - 1u), 2 * tun->watch_rest_most);
  /* what the next trial may cost is to be little of it */
  rest *= factor < 1 ? 1 : factor < most ? factor : most;
  p->sleep = rest < UINT32_MAX / 2 ? (u32)rest : UINT32_MAX / 2;
  p->each.ns[2] = p->sleep;
  t->vm->counters.at[STAT_rests]++;
  tracer_event(t, EVENT_rest, REASON_no_payback, p->code->proto->spans[p->pc], 0, "%s", text);
}

static void take(Tracer *t, const Watch *w, u32 end, u64 ns, u64 trips) {
  Place *p = w->place;
  if (!w->eager && p->watch.end != end) { /* regions end otherwise than they did */
    p->watch.end = (u8)end;
    p->watch.times[0].count = p->watch.times[1].count = 0;
  }
  if (w->eager && p->watch.end != end) return;
  if (w->eager && p->gate.loop) gate_wake(t, p);
  if (w->eager && end == WATCH_trips && p->gate.loop) gate_trip(&t->vm->tunables, p, ns / (trips ? trips : 1));
  WatchTimes *times = &p->watch.times[w->eager];
  u64 each = ns / (trips ? trips : 1);
  if (times->count < WATCH_TIMES) times->ns[times->count++] = each;
  else times->ns[p->watch.next++ % WATCH_TIMES] = each;
  /* where there are too many kinds, those interpreted are of others */
  bool timed = !p->eager || (p->why != REASON_cache_limit && MECHANISM(t->vm, demoted_are_timed));
  if (p->cache.entries.count && timed) judge(t, p);
}

/* ---- watching ------------------------------------------------------------------------------------------- */

/* The clock without what compiles: a visit during which something was compiled says nothing of that in later ones. */
static u64 watch_now(const Tracer *t) {
  u64 now = tracer_now(t);
  return now > t->compiling_wall ? now - t->compiling_wall : 0;
}

/* Of the visits with an entry. */
static u64 longest(const PlaceWatch *w) {
  u64 most = w->longest;
  for (u32 k = 0; k < w->times[0].count; k++)
    if (w->times[0].ns[k] > most) most = w->times[0].ns[k];
  return most;
}

/* A visit without an entry that takes so long has shown that the region wins. */
static bool is_overlong(const Tracer *t, const Place *p, u64 spent) {
  const Tunables *tun = &t->vm->tunables;
  return spent > (u64)tun->trial_longer * longest(&p->watch) + (u64)tun->trial_short_ns;
}

/* Whole runs of a loop of so many trips, whose trips took so long in the interpreter that one more such run would be
 * dear: the first trial can be spared. */
static bool is_clear(const Tracer *t, const Place *p, const Watch *made) {
  const Tunables *tun = &t->vm->tunables;
  const PlaceWatch *w = &p->watch;
  if (w->won || w->lost || !MECHANISM(t->vm, trials_end) || !made->counted || !p->gate.loop || w->end == WATCH_trips ||
      made->count < made->at)
    return false;
  u64 trips = made->count - made->at, spent = trips <= UINT32_MAX ? trips * p->gate.trip_ns : 0;
  return spent > (u64)tun->trial_ns && spent > (u64)tun->watch_clear * longest(w) && trips <= 2 * w->entered_trips;
}

static bool is_trial(const Tracer *t) {
  for (u32 i = 0; i < t->watch_count; i++)
    if (t->watches[i].eager && t->watches[i].depth < t->vm->frame_count &&
        t->vm->frames[t->watches[i].depth].flags & FRAME_WATCHED)
      return true;
  return false;
}

bool watch_trial_goes_on(Tracer *t) {
  if (!is_trial(t)) return false;
  /* looking at the clock is to be little of what is timed */
  if (++t->trial_asked % t->vm->tunables.trial_asked || !MECHANISM(t->vm, trials_end)) return true;
  drop_stale(t);
  u64 now = watch_now(t);
  for (u32 i = t->watch_count; i-- > 0;) {
    const Watch *w = &t->watches[i];
    Place *p = w->place;
    /* where the head of a loop was not reached yet, too */
    if (!w->eager || w->runs || now - w->begin < (u64)t->vm->tunables.trial_ns) continue;
    if (!is_overlong(t, p, now - w->begin)) continue;
    drop(t, i);
    if (p->gate.loop) gate_wake(t, p);
    again(t, p);
  }
  return is_trial(t);
}

bool watch_wanted(const Tracer *t, const Place *p) {
  const Tunables *tun = &t->vm->tunables;
  return tun->watch_percent && tun->payback_calls && tun->hot_calls && !t->forced && !t->private_places &&
         !t->force.kind && t->backend->weighed && t->watch_count < WATCHES && p->cache.entries.count &&
         MECHANISM(t->vm, payback);
}

/* Makes room for what is timed in the top frame; its depth. */
static u32 clear_top(Tracer *t, const Frame *frame) {
  drop_stale(t);
  u32 depth = t->vm->frame_count - 1;
  if (!(frame->flags & FRAME_WATCHED))
    while (t->watch_count && t->watches[t->watch_count - 1].depth >= depth) t->watch_count--;
  return depth;
}

/* Most calls of a recursion are leaves, which say little: a call that stands open around them is timed from here on. */
void watch_probe(Tracer *t, Place *p, Frame *f) {
  watch_forget(t, p);
  u32 depth = clear_top(t, f), most = (u32)t->vm->tunables.callers;
  if (t->watch_count == WATCHES) return;
  for (u32 top = t->watch_count ? t->watches[t->watch_count - 1].depth : 0; most && depth > top; most--, depth--, f--)
    if (f->flags & FRAME_NATIVE_CALL || f[-1].code != f->code) break;
  f->flags |= FRAME_WATCHED;
  t->watches[t->watch_count++] = (Watch){.place = p, .depth = depth, .probe = true, .at = sample_passes(t, p),
                                         .begin = sample_now(t)};
}

const Watch *watch_probed(Tracer *t, const Place *p) {
  drop_stale(t);
  for (u32 i = t->watch_count; i-- > 0;)
    if (t->watches[i].place == p && t->watches[i].probe) return &t->watches[i];
  return NULL;
}

/* Was it called by itself, with few calls between? Most calls of a recursion are its leaves. */
static bool calls_itself(const Vm *vm, const Frame *f) {
  for (u32 n = 1; n <= vm->tunables.callers && n < vm->frame_count; n++)
    if (f[-(i64)n].code == f->code) return true;
  return false;
}

/* The innermost loop around the frame's pc. NULL: there is none. */
static const Extent *loop_around(const Frame *f) {
  const Proto *p = f->code->proto;
  const Extent *found = NULL;
  for (u32 i = 1; i < p->nextents; i++) {
    const Extent *x = &p->extents[i];
    if ((x->kind == EXT_FOR || x->kind == EXT_WHILE) && x->begin <= f->pc && f->pc < x->end) found = x;
  }
  return found;
}

/* The loop whose trips tell of a place behind a break: the frame will not return soon. */
static const Extent *timed_loop(const Tunables *tun, const Place *p, const Frame *f) {
  u64 at, count;
  const Extent *x = p->start == RECORD_RESUME ? loop_around(f) : NULL;
  bool tells = x && (f->flags & FRAME_MODULE || (loop_at(f, x->head, &at, &count) &&
                                                 count - at > (u64)tun->watch_loop_trips));
  return tells ? x : NULL;
}

/* Its head is to be asked at the next trip. False: it cannot be, or its trips cannot be counted. */
static bool ask_head(const Vm *vm, Watch *w, const Frame *f, const Extent *x) {
  u32 site = f->code->site_of_pc[x->els];
  w->head = x->head + 1;
  w->counted = loop_at(f, x->head, &w->at, &w->count);
  if (!site || (!w->counted && w->place->watch.lifted)) return false;
  if (!w->eager) return true;
  SiteState *s = &f->code->sites[site - 1];
  Place *p = s->entry;
  s->flags &= (u16)~SITE_COLD;
  if (s->count < vm->tunables.warm_trips) s->count = (i32)vm->tunables.warm_trips;
  if (p) p->slept = 0;
  return true;
}

bool watch_begin(Tracer *t, Place *p, Frame *frame) {
  if (!watch_wanted(t, p) || (p->recurs && calls_itself(t->vm, frame))) {
    p->watch.in = (u32)t->vm->tunables.watch_unwanted;
    return false;
  }
  u32 depth = clear_top(t, frame);
  if (is_trial(t) && MECHANISM(t->vm, trials_end)) { /* the trial is of that region alone */
    p->watch.in = 1;
    return false;
  }
  for (u32 i = 0; i < t->watch_count; i++)
    if (t->watches[i].place == p && !t->watches[i].probe) { /* a recursion: the outermost is timed */
      p->watch.in = 1;
      return false;
    }
  const PlaceWatch *w = &p->watch;
  bool eager = w->times[0].count > w->times[1].count;
  t->watch_seed = t->watch_seed * 1664525u + 1013904223u; /* not a threshold: a generator of random numbers */
  p->watch.in = 1 + (t->watch_seed >> 30); /* not in step with what the program does in turns */
  Watch *made = &t->watches[t->watch_count++];
  *made = (Watch){.place = p, .depth = depth, .eager = eager};
  p->watch.begun = !eager;
  made->counted = p->start == RECORD_LOOP && position(frame, &made->at, &made->count);
  if (!eager) p->watch.entered_trips = made->counted && made->count > made->at ? made->count - made->at : 0;
  made->runs = p->start == RECORD_LOOP && !made->counted && w->lifted && p->gate.loop;
  if (made->runs) made->run = gate_run(p, frame);
  if (eager && is_clear(t, p, made)) {
    t->watch_count--;
    again(t, p);
    return false;
  }
  const Extent *loop = MECHANISM(t->vm, loops_of_breaks) ? timed_loop(&t->vm->tunables, p, frame) : NULL;
  if (loop && !ask_head(t->vm, made, frame, loop)) {
    t->watch_count--;
    p->watch.in = (u32)t->vm->tunables.watch_again;
    return false;
  }
  frame->flags |= FRAME_WATCHED;
  if (eager && made->counted && w->end != WATCH_trips) gate_skip(t, p, frame);
  made->begin = watch_now(t);
  return eager;
}

void watch_cancel(Tracer *t, const Place *p) {
  if (t->watch_count && t->watches[t->watch_count - 1].place == p) t->watch_count--;
}

/* Trips of the loop since the watch began. False: it is another run of the loop. */
static bool trips_since(const Watch *w, const Frame *f, u64 *trips) {
  u64 at, count;
  *trips = 1;
  if (!w->counted) return true;
  if (!loop_at(f, w->head - 1, &at, &count) || count != w->count || at < w->at) return false;
  *trips = at - w->at;
  return true;
}

/* One run of a loop whose trips cannot be counted, as far as it was seen: its last trip was not. */
static void take_run(Tracer *t, const Watch *w, u64 now) {
  u64 spent = (w->last ? w->last : now) - w->begin, asked = w->trips * (u64)t->vm->tunables.clock_ns;
  if (w->eager && MECHANISM(t->vm, trials_ask_seldom)) spent -= asked < spent / 2 ? asked : spent / 2;
  if (w->eager && w->trips) gate_trip(&t->vm->tunables, w->place, spent / w->trips);
  if (w->eager && w->last) spent = w->trips ? spent + spent / w->trips : spent;
  if (w->eager && !w->trips && w->place->gate.trip_ns < spent) spent = w->place->gate.trip_ns;
  take(t, w, WATCH_run, spent, 1);
}

void watch_ran(Tracer *t, const Place *p, u32 depth) {
  Watch *w = &t->watches[t->watch_count - 1];
  if (w->place == p && w->runs && !w->eager && w->depth == depth) w->last = watch_now(t);
}

/* Another visit behind the break: one that was entered ends here, by its trips; another one ends at the loop's head. */
static bool visit_in_loop(Tracer *t, u32 i, const Frame *frame, u64 spent) {
  Watch w = t->watches[i];
  u64 trips;
  if (w.depth != t->vm->frame_count - 1) return w.eager;
  bool on = trips_since(&w, frame, &trips);
  if (!w.eager && on && !trips) return false;
  drop(t, i);
  if (!w.eager && on) take(t, &w, WATCH_trips, spent, trips);
  return false;
}

bool watch_head(Tracer *t, const Frame *frame) {
  drop_stale(t);
  u32 depth = t->vm->frame_count - 1;
  for (u32 i = t->watch_count; i-- > 0;) {
    Watch *w = &t->watches[i];
    u64 trips, now;
    if (!w->eager || w->head != frame->pc + 1 || w->depth != depth) continue;
    now = watch_now(t);
    if (!w->begun) {
      w->counted = position(frame, &w->at, &w->count);
      w->begun = true;
      w->begin = watch_now(t);
      return true;
    }
    Watch done = *w;
    drop(t, i);
    if (trips_since(&done, frame, &trips) && trips) take(t, &done, WATCH_trips, now - done.begin, trips);
    return false;
  }
  return false;
}

bool watch_visit(Tracer *t, Place *p, const Frame *frame) {
  drop_stale(t);
  u32 depth = t->vm->frame_count - 1, i = t->watch_count;
  while (i-- > 0)
    if (t->watches[i].place == p && !t->watches[i].probe) break;
  if (i == UINT32_MAX) return false;
  Watch *w = &t->watches[i];
  u64 spent = watch_now(t) - w->begin;
  if (w->head) return visit_in_loop(t, i, frame, spent);
  if (w->eager) { /* it would go on for too long: the region wins */
    if (p->watch.end != WATCH_trips && is_overlong(t, p, spent)) {
      bool own = w->depth == depth;
      if (w->runs) {
        Watch done = *w;
        done.last = 0;
        drop(t, i);
        take_run(t, &done, done.begin + spent); /* at least */
        return false;
      }
      drop(t, i);
      if (p->gate.loop) gate_wake(t, p);
      if (own) again(t, p);
      else p->watch.in = (u32)t->vm->tunables.watch_soon;
      return false;
    }
  }
  if (w->depth != depth || p->start != RECORD_LOOP) return w->eager;
  if (w->runs) {
    if (w->run == gate_run(p, frame)) {
      if (w->eager) {
        w->last = w->begin + spent;
        w->trips++;
      }
      return w->eager;
    }
    Watch done = *w;
    drop(t, i);
    take_run(t, &done, done.begin + spent);
    return false;
  }
  u64 at, count;
  bool counted = w->counted && position(frame, &at, &count);
  bool on = counted && count == w->count && at > w->at;
  if (!w->eager) {
    /* how many trips it ran cannot be told: until the frame returns */
    if (!counted && p->watch.lifted && !(frame->flags & FRAME_MODULE)) return false;
    Watch done = *w;
    drop(t, i);
    /* how many trips it ran cannot be told */
    if (!counted && p->watch.lifted) p->watch.in = (u32)t->vm->tunables.watch_again;
    else take(t, &done, !counted || on ? WATCH_trips : WATCH_run, spent, on ? at - done.at : 1);
    return false;
  }
  if (p->watch.end == WATCH_trips ? !on && counted : p->watch.end != WATCH_run || on) {
    if (on && p->watch.end != WATCH_trips) gate_skip(t, p, frame);
    return true;
  }
  Watch done = *w;
  drop(t, i);
  take(t, &done, p->watch.end, spent, on ? at - done.at : 1);
  return false;
}

void watch_returns(Vm *vm) {
  Tracer *t = tracer_of(vm);
  u32 depth = vm->frame_count - 1;
  vm->frames[depth].flags &= (u16)~FRAME_WATCHED;
  u64 at = t->watch_count ? watch_now(t) : 0;
  while (t->watch_count && t->watches[t->watch_count - 1].depth >= depth) {
    Watch w = t->watches[--t->watch_count];
    if (w.depth == depth && w.probe)
      sample_returned(t, w.place, sample_now(t) - w.begin, sample_passes(t, w.place) - w.at);
    else if (w.depth == depth && w.runs) take_run(t, &w, at);
    else if (w.depth == depth && !w.head) take(t, &w, WATCH_return, at - w.begin, 1);
  }
}
