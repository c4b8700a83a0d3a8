/* rent.c — when does a place compile? Rent or buy: it is compiled once the time that its passes took in the
 * interpreter, or the time that the loops around it say they will take, is what compiling is expected to cost.
 * Whatever comes then, the program takes at most twice the time that it took if all had been known.
 *
 * Time is sampled: now and then one pass, or some in a row, is measured, and stands for those since the last sample.
 * Between samples the place sleeps; the interpreter counts. Time in compiled regions and of compiling is no time of
 * the interpreter.
 *
 *   at the head of a loop    from visit to visit in the same frame, by the trips between them
 *   anywhere                 until the frame returns (watch.c)
 *   inside of such a frame   from its call on, by the calls since: a recursion
 *
 * What is to come is known where `for` loops that nothing leaves early stand around the place, in its frame and in its
 * callers: the trips that are left, multiplied. A module's body runs once, so that its loops come to no more than that.
 * Elsewhere as much is expected as there was; what was recorded for nothing makes the place dearer. An inner loop
 * whose run is over sooner than it could be compiled leaves it to the loop around it, which is asked at its next
 * trip; so does one that has no trip left. */
#include "lang/mechanisms.h"
#include "tracer/report/explain.h"
#include "tracer/tier/budget.h"
#include "tracer/tier/gate.h"
#include "tracer/tier/places.h"
#include "tracer/tier/rent.h"
#include "tracer/tier/watch.h"

bool rent_applies(const Tracer *t) {
  const Tunables *tun = &t->vm->tunables;
  return !t->forced && tun->hot_calls && tun->warm_trips < tun->hot_trips && tun->compile_gain && tun->pace_percent &&
         !t->private_places && MECHANISM(t->vm, compile_pace);
}

/* The clock without what is compiled or compiles. */
u64 rent_now(const Tracer *t) {
  u64 now = tracer_now(t) - t->began, other = t->vm->counters.at[STAT_compiled_ns] + t->compiling_wall;
  return now > other ? now - other : 0;
}

static u64 times(u64 a, u64 b) { return b && a > ((u64)1 << 40) / b ? (u64)1 << 40 : a * b; }

/* ---- what a pass takes ------------------------------------------------------------------------------------ */

static void took(const Tracer *t, Place *p, u64 each) {
  const Tunables *tun = &t->vm->tunables;
  PlaceRent *r = &p->rent;
  u64 most = (u64)tun->sample_jump * r->each_ns + (u64)tun->sample_ns, limit = rent_now(t);
  /* interrupted, or the first of a kind: the next one tells */
  if (r->samples && each > most) each = most;
  r->each_ns = r->samples > 1 ? (r->each_ns + each) / 2 : each;
  if (r->samples < UINT8_MAX) r->samples++;
  r->used_ns = times(each, r->passes); /* as fast as they are by now: what they call may have been compiled */
  if (r->used_ns > limit) r->used_ns = limit; /* passes inside of passes */
}

u64 rent_passes(const Tracer *t, const Place *p) {
  const PlaceRent *r = &p->rent;
  i64 left = p->sleep;
  if (p->slept && p->start == RECORD_ENTRY) left = t->vm->tunables.warm_calls - p->code->sites[0].count;
  return r->passes + (r->slept > left ? r->slept - (u64)(left > 0 ? left : 0) : 0);
}

/* What a sample took, without the look at the clock. */
static u64 sampled_ns(const Tracer *t, u64 ns) {
  u64 look = (u64)t->vm->tunables.sample_ns;
  return ns > look ? ns - look : 0;
}

/* A recursion passes as often as it calls itself until its outermost call returns: each of these passes takes its
 * part. */
void rent_returned(Tracer *t, Place *p, u64 ns, u64 passes) {
  if (passes > UINT32_MAX) return; /* it was compiled meanwhile */
  took(t, p, sampled_ns(t, ns) / (1 + passes));
  p->rent.fresh = true;
}

/* Position and count of the `for` loop whose fornext stands at pc; false: it is none. */
static bool for_at(const Frame *f, u32 pc, u64 *at, u64 *count) {
  Ins ins = f->code->proto->code[pc];
  if (ins_op(ins) != BC_fornext) return false;
  *at = f->base[ins_a(ins) + 1].u;
  *count = f->base[ins_a(ins) + 2].u;
  return true;
}

static bool vain(const Tunables *tun, PlaceRent *r) {
  if (r->vain < tun->vain_doublings) r->vain++;
  return r->vain > tun->vain_samples;
}

/* True: a loop's sample was begun or is not complete, so that nothing is decided at this visit. */
static bool sample_loop(Tracer *t, Place *p, Frame *f) {
  const Tunables *tun = &t->vm->tunables;
  PlaceRent *r = &p->rent;
  u32 depth = t->vm->frame_count, span = (u32)tun->sample_trips;
  if (r->probing && !(r->depth == depth && f->flags & FRAME_PROBED) && vain(tun, r)) {
    r->probing = false;
    p->sleep = r->slept = 1u << r->vain;
    return true;
  }
  u64 now = rent_now(t), at = 0, count = 0;
  bool counted = for_at(f, f->pc, &at, &count);
  if (r->probing && r->depth == depth && f->flags & FRAME_PROBED) {
    u64 trips = counted && at > r->at && count == r->count ? at - r->at : r->span ? r->span : 1, spent = now - r->begin;
    r->probing = false;
    r->vain = 0;
    took(t, p, sampled_ns(t, spent) / trips);
    if (r->span || spent > span * (u64)tun->sample_ns) return false;
    r->span = span; /* a single short trip is not measured well */
    if (counted && count - at <= span) return false;
  } else {
    r->span = r->span && !r->probing ? span : 0;
  }
  r->probing = true;
  r->depth = depth;
  r->at = at;
  r->count = count;
  f->flags |= FRAME_PROBED;
  p->sleep = r->span;
  r->slept = r->span;
  r->begin = rent_now(t);
  return true;
}

/* ---- what is to come -------------------------------------------------------------------------------------- */

bool rent_runs_through(const Proto *p, const Extent *x) {
  for (u32 pc = x->head + 1; pc < x->els; pc++) {
    Ins ins = p->code[pc];
    switch (ins_op(ins)) {
      case BC_ret:
      case BC_tail:
      case BC_tailx: return false;
      case BC_jump:
      case BC_jif:
      case BC_jnot:
      case BC_jgiven:
        if (ins_x(ins) >= x->end) return false;
        break;
      default: break;
    }
  }
  return true;
}

static u32 innermost(const Proto *p, u32 pc) {
  u32 found = 0;
  for (u32 i = 1; i < p->nextents; i++)
    if (p->extents[i].begin <= pc && pc < p->extents[i].end) found = i;
  return found;
}

static bool is_loop(const Extent *x) { return x->kind == EXT_FOR || x->kind == EXT_WHILE; }

typedef struct Ahead {
  u64 own;    /* trips left in the run of the loop itself; 0: not known */
  u64 passes; /* left with what the loops around it say, at least 1 */
  bool sure;  /* and there are no more than these */
  bool over;  /* its run is: it stands at the head with no trip left */
  u32 outer;  /* extent of the loop around it in its frame; 0: none */
  u64 around; /* trips that one has left, where they are known */
} Ahead;

/* Is the loop compiled? Only its first trip, and those that fit no entry, come by what is inside of it. */
static bool is_compiled(const Frame *f, const Extent *x) {
  u32 site = f->code->site_of_pc[x->els];
  const Place *p = site ? f->code->sites[site - 1].entry : NULL;
  return p && p->cache.entries.count && !p->eager;
}

static void frame_ahead(const Frame *f, u32 pc, u32 loop, Ahead *a) {
  const Proto *p = f->code->proto;
  for (u32 i = innermost(p, pc); i && i < p->nextents; i = p->extents[i].parent) {
    const Extent *x = &p->extents[i];
    u64 at, count;
    if (!is_loop(x)) continue;
    if (loop && i != loop && !a->outer) a->outer = i;
    if (i != loop && is_compiled(f, x)) {
      a->sure = false;
    } else if (x->kind == EXT_FOR && for_at(f, x->head, &at, &count) && rent_runs_through(p, x)) {
      u64 left = count > at ? count - at : 0;
      if (i == loop) {
        a->own = a->passes = left ? left : 1;
        a->over = !left;
      } else a->passes = times(a->passes, left + 1);
      if (i == a->outer) a->around = left;
    } else {
      a->sure = false;
    }
  }
}

static Ahead look_ahead(const Vm *vm, const Frame *f, const Place *p) {
  Ahead a = {.passes = 1, .sure = p->start == RECORD_LOOP && f->flags & FRAME_MODULE};
  const Proto *proto = f->code->proto;
  u32 loop = 0;
  for (u32 i = 1; i < proto->nextents && p->start == RECORD_LOOP; i++)
    if (is_loop(&proto->extents[i]) && proto->extents[i].head == f->pc) loop = i;
  frame_ahead(f, f->pc, loop, &a);
  for (u32 n = 1; n <= vm->tunables.callers && n < vm->frame_count; n++) {
    const Frame *up = f - n;
    if ((f - n + 1)->flags & FRAME_NATIVE_CALL || up->code == f->code) break; /* by a built-in function; by itself */
    frame_ahead(up, up->pc, 0, &a);
  }
  return a;
}

static bool is_waiting(const Tracer *t, const Place *p) {
  return rent_applies(t) && p->rent.passes && !p->eager && !p->cache.entries.count;
}

/* ---- rent or buy ------------------------------------------------------------------------------------------ */

static u64 scaled(const Tracer *t, u64 ns) { return t->cost_percent ? percent_of(ns, (i64)t->cost_percent) : ns; }

/* Of a graph of so many nodes, inputs and values that its exits write. */
static u64 compile_ns(const Tunables *tun, u64 parts) {
  return (u64)tun->compile_base_ns + parts * (u64)tun->compile_node_ns;
}

/* What is left of a cost once the place was recorded. */
static u64 sunk(const Tunables *tun, u64 cost) { return cost - percent_of(cost, tun->record_percent); }

u64 rent_cost(const Tracer *t, u64 parts) {
  const Tunables *tun = &t->vm->tunables;
  return scaled(t, compile_ns(tun, parts)) +
         (t->compilings ? 0 : (u64)tun->compile_first_ns);
}

/* A place behind a call that no region leads to: what is looked at there may well hold the next call too. */
static bool is_awaited(const Place *p) {
  u32 site = p->start == RECORD_RESUME && p->pc ? p->code->site_of_pc[p->pc - 1] : 0;
  return site && p->code->sites[site - 1].flags & SITE_AWAITED;
}

/* Instructions of its code, without those that only fetch what another one takes. */
static u32 instructions(const Place *p) {
  const Proto *proto = p->code->proto;
  u32 pc = 0, end = proto->ncode, n = 0;
  for (u32 i = 1; i < proto->nextents && p->start == RECORD_LOOP; i++)
    if (is_loop(&proto->extents[i]) && proto->extents[i].head == p->pc)
      pc = proto->extents[i].begin, end = proto->extents[i].end;
  for (; pc < end; pc++) n += ins_op(proto->code[pc]) != BC_move && ins_op(proto->code[pc]) != BC_getmod;
  return n;
}

/* Before it was recorded the length of the code tells, afterwards the graph. */
static u64 cost_of(const Tracer *t, Place *p) {
  const Tunables *tun = &t->vm->tunables;
  if (!p->rent.length) p->rent.length = instructions(p) + 1;
  /* as little will do once it was recorded */
  u64 cost = sunk(tun, scaled(t, compile_ns(tun, (u64)tun->instruction_nodes * p->rent.length)));
  if (!p->rent.cost_ns && is_awaited(p)) cost *= (u64)tun->awaited_times;
  if (p->rent.cost_ns > cost) cost = p->rent.cost_ns;
  if (!t->compilings) cost += (u64)tun->compile_first_ns;
  cost += p->rent.lost_ns;
  cost *= 1 + p->compiles + p->tries + (u64)tun->demoted_cost * p->demoted;
  /* a program that compiling does not suit */
  u64 lost = t->compiling_wall ? (u64)tun->losers_percent * t->losers_ns / t->compiling_wall : 0;
  return percent_of(cost, PERCENT + (i64)lost);
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
static bool defer(Tracer *t, Place *p, const Frame *f, const Ahead *a, u64 cost) {
  const Tunables *tun = &t->vm->tunables;
  PlaceRent *r = &p->rent;
  u64 at, count, own = a->own ? a->own : (u64)tun->sample_trips;
  bool called = p->start == RECORD_ENTRY || !a->outer;
  bool longer = !called && r->defers < tun->defers_long && a->around >= (u64)tun->defer_trips;
  if (r->defers >= tun->defers ||
      (!a->over && times(r->each_ns, own) > cost * (longer ? (u64)tun->defer_longer : 1)))
    return false;
  if (called && (f->flags & FRAME_NATIVE_CALL || t->vm->frame_count < 2 || f[-1].code == f->code)) return false;
  Place *outer = called ? around(t, f - 1, innermost(f[-1].code->proto, f[-1].pc)) : around(t, f, a->outer);
  if (!outer) return false;
  if (!called && !outer->rent.samples && for_at(f, f->pc, &at, &count)) {
    outer->rent.each_ns = times(r->each_ns, count);
    outer->rent.told = true;
  }
  r->defers++;
  p->sleep = r->slept = (u32)(own < (u64)tun->wait_most ? own : (u64)tun->wait_most);
  return true;
}

static void rest(const Tunables *tun, Place *p, u64 missing, const Ahead *a) {
  PlaceRent *r = &p->rent;
  u64 n = missing / (2 * r->each_ns + 1);
  if (a->own && n > a->own) { /* its next run may be a longer one */
    u64 next = a->sure ? 0 : (u64)tun->wait_run_ns / (r->each_ns + 1);
    if (n > a->own + next) n = a->own + next;
  }
  u64 least = (u64)tun->wait_least, most = (u64)tun->wait_most;
  if (n < least) n = r->each_ns * least * (u64)tun->wait_close > missing ? 0 : least; /* each is long */
  p->sleep = r->slept = (u32)(n < most ? n : most);
}

/* Is there a sample to decide by? If not, one is begun. */
static bool sampled(Tracer *t, Place *p, Frame *f) {
  PlaceRent *r = &p->rent;
  if (r->told) { /* by the loop inside, which is to be compiled */
    r->told = false;
    return true;
  }
  if (p->start == RECORD_LOOP) return !sample_loop(t, p, f);
  const Watch *outer = watch_probed(t, p);
  if (outer && r->passes > outer->at && MECHANISM(t->vm, recursions_are_timed)) {
    took(t, p, (rent_now(t) - outer->begin) / (r->passes - outer->at));
    return true;
  }
  if (!r->fresh) watch_probe(t, p, f);
  else r->fresh = false;
  return !t->watch_count || t->watches[t->watch_count - 1].place != p;
}

/* A loop that may end at any trip goes on for as many as its runs had so far, on average: one with no loop around it in
 * its frame. */
static u64 trips_per_run(const Place *p, const Frame *f, const Ahead *a) {
  if (p->start != RECORD_LOOP || a->outer || a->over) return 0;
  const SiteState *s = &f->code->sites[0];
  const Place *entry = s->entry;
  u64 calls = f->flags & FRAME_MODULE ? 1 : entry ? (u64)entry->rent.passes + entry->passes
                                      : s->count > 0 ? (u64)s->count : 0;
  return calls ? p->rent.passes / calls : 0;
}

bool rent_due(Tracer *t, Place *p, Frame *f) {
  PlaceRent *r = &p->rent;
  r->passes += 1 + r->slept;
  r->slept = 0;
  if (UNLIKELY(t->watch_count) && watch_trial_goes_on(t)) return false;
  if (!sampled(t, p, f)) return false;
  Ahead a = look_ahead(t->vm, f, p);
  if (p->cache.entries.count) { /* as often as nothing fitted so far */
    if (r->passes < t->vm->tunables.miss_passes) return false;
    a.passes = 1 + a.passes / (1 + (p->passes - r->entries) / r->passes);
    a.sure = false;
  }
  u64 cost = cost_of(t, p), ahead = times(r->each_ns, a.passes);
  r->own = a.own ? a.own : trips_per_run(p, f, &a);
  ahead = percent_of(ahead, t->vm->tunables.known_percent);
  r->ahead_ns = a.sure || ahead > r->used_ns ? ahead : r->used_ns;
  if (r->ahead_ns < cost) {
    rest(&t->vm->tunables, p, cost - r->ahead_ns, &a);
    return false;
  }
  return p->start == RECORD_RESUME || (!defer(t, p, f, &a, cost) && !a.over);
}

void rent_denied(const Tracer *t, Place *p, u64 missing) {
  Ahead none = {0};
  rest(&t->vm->tunables, p, missing, &none);
}

/* What passes in a nap counts as what passes while it waits. */
void rent_naps(Place *p, u32 n) {
  PlaceRent *r = &p->rent;
  r->slept += n;
  r->skip -= n < r->skip ? n : r->skip;
}

/* Lists and texts that did not lie in columns are packed at each entry, whole; there is room for as many items
 * again. Those that keep their columns are so only where the region is left often; if they are others each time,
 * that shows soon (only_packs). */
static u64 packing_ns(const Tunables *tun, const Graph *g, bool often) {
  u64 items = 0, lists = 0;
  for (u32 i = 0; i < g->inputs.count; i++) {
    const GraphInput *x = &g->inputs.data[i];
    i64 room;
    if (x->input == UINT32_MAX || g->guards.inputs.data[x->input].form != IN_rows ||
        g->guards.inputs.data[x->input].given || (!often && g->guards.inputs.data[x->input].keeps))
      continue;
    lists++;
    bool column = g->guards.sources.items.data[g->guards.inputs.data[x->input].source].kind == SRC_column;
    if (size_hint(&g->sizes, value_type(g, x->value)->dims[0], &room) && room > ROWS_ROOM)
      items += (u64)(room - ROWS_ROOM) / 2 * (column ? ROWS_DEEP : 1);
  }
  return items * (u64)tun->pack_ns + lists * (u64)tun->list_ns;
}

/* Of going in and out, where an exit writes so many values. */
static u64 around_ns(const Tunables *tun, const Graph *g, u64 written, bool broke, bool often) {
  return (u64)tun->enter_ns + (u64)tun->part_ns * (g->inputs.count + written) + (broke ? (u64)tun->break_ns : 0) +
         packing_ns(tun, g, often);
}

/* Do going in and out take longer than what is done in between does in the interpreter? */
bool rent_is_lost(const Tracer *t, const Place *p, const Graph *g, bool broke) {
  const Tunables *tun = &t->vm->tunables;
  if (!rent_applies(t)) return false;
  u64 eager = region_eager_ns(tun, g), around = around_ns(tun, g, g->exits.recipes.count, broke, true);
  if (!eager) return false;
  return (u64)tun->lost_times * eager < around || (p->start == RECORD_ENTRY && !broke && p->rent.each_ns < around);
}

/* What an exit of these kinds writes, at most. */
static u64 written(const ExitTable *x, u32 kinds) {
  u64 most = 0;
  for (u32 i = 0; i < x->exits.count; i++) {
    const Exit *e = &x->exits.data[i];
    u64 parts = journal_depth(x, e->journal);
    for (u32 k = 0; k < e->frame_count; k++) {
      const ExitFrame *f = &x->frames.data[e->frame_first + k];
      for (u32 r = 0; r < f->count; r++) parts += x->recipes.data[x->regs.data[f->first + r].recipe].weight;
    }
    if (kinds >> e->kind & 1 && parts > most) most = parts;
  }
  return most;
}

/* Some levels of calls that the function makes of itself stand in the graph, and it is no native recursion. */
static bool holds_itself(const Place *p, const Graph *g) {
  for (u32 i = 1; i < g->frames.count; i++)
    if (g->frames.data[i].code == p->code) return true;
  return false;
}

/* Of the time of its passes, the part that the region is expected to save, in percent of what the best do. */
u64 rent_gain(const Tracer *t, const Place *p, const Graph *g, bool broke) {
  const Tunables *tun = &t->vm->tunables;
  if (graph_recurs(g) || !MECHANISM(t->vm, gains_count)) return PERCENT; /* one entry for all calls inside */
  const PlaceRent *r = &p->rent;
  u64 trips = p->start == RECORD_LOOP && !broke ? r->own ? r->own : (u64)tun->sample_trips : 1,
      around = around_ns(tun, g, written(&g->exits, broke ? 1u << EXIT_break : ~(1u << EXIT_check)), broke,
                         broke || r->left_often);
  if (r->left_often && trips > TAKEN_SEEN / r->left_often) trips = TAKEN_SEEN / r->left_often;
  /* a break leaves most to the interpreter */
  u64 each = r->each_ns, compiled = percent_of(each, tun->compiled_percent),
      spent = (broke ? each - percent_of(each, tun->break_percent) : compiled) + around / trips;
  if (each <= spent) return 0;
  u64 gain = (each - spent) * PERCENT / (each - compiled);
  if (holds_itself(p, g) && MECHANISM(t->vm, copies_gain_less)) gain = percent_of(gain, tun->copies_percent);
  u64 early = p->rent.left_early ? region_early_ns(tun, g) : broke ? region_eager_ns(tun, g) : 0;
  if (!early) return is_awaited(p) && broke ? gain / (u64)tun->awaited_times : gain;
  early *= (u64)tun->moves_times;
  early = early > around ? early - around : 0; /* it saves no more than what it does */
  return early < each && early * PERCENT / each < gain ? early * PERCENT / each : gain;
}

/* Of a graph that was recorded. False: it is not worth it yet. */
bool rent_affords(const Tracer *t, Place *p, u64 parts, u64 gain) {
  const Tunables *tun = &t->vm->tunables;
  u64 cost = scaled(t, compile_ns(tun, parts));
  if (t->large) return p->rent.ahead_ns >= rent_cost(t, parts);
  u64 least = (u64)tun->gain_least;
  p->rent.cost_ns = cost * PERCENT / (gain > least ? gain : least); /* it is not recorded again sooner */
  cost = cost_of(t, p);
  if (gain && p->rent.ahead_ns >= sunk(tun, cost)) return true;
  if (!gain) p->rent.lost_ns += cost; /* nor again before it took twice as long */
  rent_denied(t, p, cost > p->rent.ahead_ns ? cost - p->rent.ahead_ns : cost);
  return false;
}

/* A recording, or a compilation, of which nothing came. */
void rent_wasted(Place *p, u64 ns) { p->rent.lost_ns += ns; }

/* Loops around it and inside of it take another time from now on. */
static void begin_anew(void *code, Place *p) {
  if (p->code == code) p->rent.passes = p->rent.samples = 0, p->rent.told = false;
}

static void costs_no_less(Tracer *t, const Code *code, u32 pc, RecordStart start, u64 cost) {
  Place *p = place_get(t->vm, &t->places, (Code *)code, pc, start);
  if (p && !p->cache.entries.count && !p->eager && p->rent.cost_ns < cost) p->rent.cost_ns = cost;
}

/* The loops around it, and the functions that they and it stand in, hold it: they are not recorded only to learn
 * that. */
static void tell_around(Tracer *t, const Place *p, u64 cost) {
  const Frame *f = &t->vm->frames[t->vm->frame_count - 1];
  for (u32 n = 0; n <= t->vm->tunables.callers && n < t->vm->frame_count; n++, f--) {
    const Code *code = f->code;
    const Proto *proto = code->proto;
    if (n && (f[1].flags & FRAME_NATIVE_CALL || f[1].code == code)) return;
    for (u32 i = innermost(proto, f->pc); i && i < proto->nextents; i = proto->extents[i].parent)
      if (is_loop(&proto->extents[i]) && code->site_of_pc[proto->extents[i].els])
        costs_no_less(t, code, proto->extents[i].head, RECORD_LOOP, cost);
    if ((n || p->start == RECORD_LOOP) && proto->nsites && proto->sites[0].kind == SITE_ENTRY)
      costs_no_less(t, code, 0, RECORD_ENTRY, cost);
  }
}

void rent_paid(Tracer *t, Place *p, u64 parts, u64 ns) {
  const Tunables *tun = &t->vm->tunables;
  u64 cost = scaled(t, compile_ns(tun, parts));
  if (p->start != RECORD_RESUME && rent_applies(t)) tell_around(t, p, sunk(tun, cost));
  places_each(&t->places, begin_anew, p->code);
  if (p->rent.each_ns) gate_open(tun, p, p->rent.each_ns);
  p->rent = (PlaceRent){.entries = p->passes};
  u64 percent = ns * PERCENT / (compile_ns(tun, parts) + 1), new = (u64)tun->cost_newest;
  if (percent < (u64)tun->cost_least) percent = (u64)tun->cost_least;
  if (percent > (u64)tun->cost_most) percent = (u64)tun->cost_most;
  if (t->compilings)
    t->cost_percent = ((t->cost_percent ? t->cost_percent : PERCENT) * (PERCENT - new) + percent * new) / PERCENT;
}

/* What the places of `code` that are not compiled yet took, and what they wait for. */
typedef struct Teller {
  const Tracer *t;
  const Code *code; /* NULL: all, but what is far from being compiled */
  Buf *out;
} Teller;

static void tell(void *context, Place *p) {
  const Teller *x = context;
  Vm *vm = x->t->vm;
  if ((x->code && x->code != p->code) || !is_waiting(x->t, p)) return;
  u64 cost = cost_of(x->t, p);
  if (!x->code && p->rent.used_ns < percent_of(cost, x->t->vm->tunables.tell_percent)) return;
  u32 line = 0, col = 0;
  Span at = p->code->proto->spans[p->pc];
  const SourceFile *f = sources_get(&vm->sources, at.file);
  if (f) sources_locate(&vm->sources, at, &line, &col);
  buf_printf(x->out, "%s:%u:%u: not compiled yet: it took %llu us in the interpreter so far, "
                     "%llu more count as sure; compiling would take about %llu\n", f ? f->path : "?", line,
             col, (unsigned long long)(p->rent.used_ns / NS_PER_US), (unsigned long long)(p->rent.ahead_ns / NS_PER_US),
             (unsigned long long)(cost / NS_PER_US));
}

void rent_tell(const Tracer *t, const Code *code, Buf *out) {
  Teller x = {t, code, out};
  places_each(&t->places, tell, &x);
}
