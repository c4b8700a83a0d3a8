/* sample.c — what a pass of a place takes in the interpreter, and how many are to come.
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
 * callers: the trips that are left, multiplied. A module's body runs once, so that its loops come to no more than
 * that. */
#include "lang/mechanisms.h"
#include "tracer/tier/cost.h"
#include "tracer/tier/sample.h"
#include "tracer/tier/watch.h"

u64 sample_now(const Tracer *t) {
  u64 now = tracer_now(t) - t->began, other = t->vm->counters.at[STAT_compiled_ns] + t->compiling_wall;
  return now > other ? now - other : 0;
}

/* ---- what a pass takes ------------------------------------------------------------------------------------ */

/* As fast as they are by now: what they call may have been compiled. */
static void count_used(const Tracer *t, Place *p) {
  PlaceRent *r = &p->rent;
  u64 all = sample_now(t);
  r->used_ns = cost_times(r->each_ns, r->passes);
  if (r->used_ns > all) r->used_ns = all; /* passes inside of passes */
}

static void took(const Tracer *t, Place *p, u64 each) {
  const Tunables *tun = &t->vm->tunables;
  PlaceRent *r = &p->rent;
  u64 most = (u64)tun->sample_jump * r->each_ns + (u64)tun->sample_ns;
  /* interrupted, or the first of a kind: the next one tells */
  if (r->samples && each > most) each = most;
  r->each_ns = r->samples > 1 ? (r->each_ns + each) / 2 : each;
  if (r->samples < UINT8_MAX) r->samples++;
  count_used(t, p);
}

u64 sample_passes(const Tracer *t, const Place *p) {
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
void sample_returned(Tracer *t, Place *p, u64 ns, u64 passes) {
  if (passes > UINT32_MAX) return; /* it was compiled meanwhile */
  took(t, p, sampled_ns(t, ns) / (1 + passes));
  p->rent.fresh = true;
}

bool loop_at(const Frame *f, u32 pc, u64 *at, u64 *count) {
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
  u64 now = sample_now(t), at = 0, count = 0;
  bool counted = loop_at(f, f->pc, &at, &count);
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
  r->begin = sample_now(t);
  return true;
}

bool sample_pass(Tracer *t, Place *p, Frame *f) {
  PlaceRent *r = &p->rent;
  r->passes += 1 + r->slept;
  r->slept = 0;
  if (UNLIKELY(t->watch_count) && watch_trial_goes_on(t)) return false;
  if (r->told) { /* by the loop inside, which is to be compiled */
    r->told = false;
    return true;
  }
  if (p->start == RECORD_LOOP) return !sample_loop(t, p, f);
  const Watch *outer = watch_probed(t, p);
  if (outer && r->passes > outer->at && MECHANISM(t->vm, recursions_are_timed)) {
    took(t, p, (sample_now(t) - outer->begin) / (r->passes - outer->at));
    return true;
  }
  if (!r->fresh) {
    watch_probe(t, p, f);
    return !t->watch_count || t->watches[t->watch_count - 1].place != p;
  }
  r->fresh = false;
  count_used(t, p); /* it has passed since the sample was taken */
  return true;
}

/* ---- what is to come -------------------------------------------------------------------------------------- */

bool loop_runs_through(const Proto *p, const Extent *x) {
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

u32 loop_innermost(const Proto *p, u32 pc) {
  u32 found = 0;
  for (u32 i = 1; i < p->nextents; i++)
    if (p->extents[i].begin <= pc && pc < p->extents[i].end) found = i;
  return found;
}

/* Is the loop compiled? Only its first trip, and those that fit no entry, come by what is inside of it. */
static bool sample_is_compiled(const Frame *f, const Extent *x) {
  u32 site = f->code->site_of_pc[x->els];
  const Place *p = site ? f->code->sites[site - 1].entry : NULL;
  return p && p->cache.entries.count && !p->eager;
}

static void frame_to_come(const Frame *f, u32 pc, u32 loop, ToCome *c) {
  const Proto *p = f->code->proto;
  for (u32 i = loop_innermost(p, pc); i && i < p->nextents; i = p->extents[i].parent) {
    const Extent *x = &p->extents[i];
    u64 at, count;
    if (!is_loop(x)) continue;
    if (loop && i != loop && !c->outer) c->outer = i;
    if (i != loop && sample_is_compiled(f, x)) {
      c->sure = false;
    } else if (x->kind == EXT_FOR && loop_at(f, x->head, &at, &count) && loop_runs_through(p, x)) {
      u64 left = count > at ? count - at : 0;
      if (i == loop) {
        c->own = c->passes = left ? left : 1;
        c->over = !left;
      } else c->passes = cost_times(c->passes, left + 1);
      if (i == c->outer) c->around = left;
    } else {
      c->sure = false;
    }
  }
}

ToCome to_come(const Vm *vm, const Frame *f, const Place *p) {
  ToCome c = {.passes = 1, .sure = p->start == RECORD_LOOP && f->flags & FRAME_MODULE};
  const Proto *proto = f->code->proto;
  u32 loop = 0;
  for (u32 i = 1; i < proto->nextents && p->start == RECORD_LOOP; i++)
    if (is_loop(&proto->extents[i]) && proto->extents[i].head == f->pc) loop = i;
  frame_to_come(f, f->pc, loop, &c);
  for (u32 n = 1; n <= vm->tunables.callers && n < vm->frame_count; n++) {
    const Frame *up = f - n;
    if ((f - n + 1)->flags & FRAME_NATIVE_CALL || up->code == f->code) break; /* by a built-in function; by itself */
    frame_to_come(up, up->pc, 0, &c);
  }
  return c;
}

u64 trips_per_run(const Place *p, const Frame *f, const ToCome *c) {
  if (p->start != RECORD_LOOP || c->outer || c->over) return 0;
  const SiteState *s = &f->code->sites[0];
  const Place *entry = s->entry;
  u64 calls = f->flags & FRAME_MODULE ? 1 : entry ? (u64)entry->rent.passes + entry->passes
                                      : s->count > 0 ? (u64)s->count : 0;
  return calls ? p->rent.passes / calls : 0;
}
