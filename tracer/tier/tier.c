/* tier.c — what to run: heat, entries, going on behind a break (what is compiled: compile.c). */
#include "lang/mechanisms.h"
#include "tracer/report/explain.h"
#include "tracer/record/force.h"
#include "tracer/report/rehearse.h"
#include "tracer/tier/tier.h"
#include "tracer/exit/leave.h"
#include "tracer/tier/ahead.h"
#include "tracer/tier/budget.h"
#include "tracer/tier/compile.h"
#include "tracer/tier/decide.h"
#include "tracer/tier/places.h"

#include <string.h>
#include <time.h>

Tracer *tracer_of(Vm *vm) { return vm->tier_state; }

u64 tracer_now(const Tracer *t) { return t->clock ? t->clock(t->clock_context) : log_now(); }

/* Processor time of this thread: other programs that run beside do not make compiling dear. */
u64 tracer_worked(const Tracer *t) {
  struct timespec now;
  if (t->work_clock) return t->work_clock(t->clock_context);
  if (t->clock || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) return tracer_now(t);
  return (u64)now.tv_sec * NS_PER_S + (u64)now.tv_nsec;
}

/* The clock, which is cheaper to look at, runs ahead of the processor's time. */
bool tracer_late(const Tracer *t) {
  return t->record_until && tracer_now(t) > t->record_until && tracer_worked(t) - t->record_worked > t->record_most &&
         MECHANISM(t->vm, compile_time);
}

/* ---- running ------------------------------------------------------------------------------------------------- */

bool tier_slots(Tracer *t, u32 n) {
  if (t->slot_cap - t->slot_top >= n) return true;
  if (t->depth) return false; /* regions on the stack hold pointers into it */
  u32 cap = t->slot_cap ? t->slot_cap : 1 << 12;
  while (cap - t->slot_top < n) cap *= 2;
  u64 *slots = mem_resize(&t->vm->alloc, t->slots, sizeof *slots * t->slot_cap, sizeof *slots * cap);
  if (!slots) return false;
  t->slots = slots;
  t->slot_cap = cap;
  return true;
}

static inline bool has_slots(Tracer *t, u32 n) { return LIKELY(t->slot_cap - t->slot_top >= n) || tier_slots(t, n); }

enum { SCRATCH = 1 << 8 };

static GuardEntry *look_up_with(Tracer *t, Frame *frame, Place *p, Value *scratch) {
  t->vm->counters.at[STAT_lookups]++;
  const GuardProg *refused;
  u32 guard;
  if (UNLIKELY(t->force.kind) && force_miss(t, &p->cache, &refused, &guard)) {
    if (p->cache.has_miss) guard_miss_free(t->vm, &p->cache.last_miss);
    p->cache.has_miss = guard_miss_make(t->vm, frame, refused, guard, &p->cache.last_miss);
    return NULL;
  }
  GuardEntry *e = cache_lookup(t->vm, &p->cache, frame, t->slots + t->slot_top, scratch);
  t->vm->counters.at[e ? STAT_hits : STAT_misses]++;
  return e;
}

/* The entry that fits the frame, its inputs in the slots above the stack's top. NULL: none, or memory was refused. */
static __attribute__((noinline)) GuardEntry *look_up(Tracer *t, Frame *frame, Place *p) {
  Value few[SCRATCH];
  const u32 need = p->cache.need_scratch;
  if (!has_slots(t, p->cache.need_slots + 1)) return NULL;
  if (LIKELY(need <= SCRATCH)) return look_up_with(t, frame, p, few);
  Value *many = mem_alloc(&t->vm->alloc, sizeof *many * need);
  GuardEntry *e = many ? look_up_with(t, frame, p, many) : NULL;
  mem_free(&t->vm->alloc, many, sizeof *many * need);
  return e;
}

typedef enum Ran { RAN_NOT, RAN_ON, RAN_BREAK, RAN_CALLED, RAN_RETURNED, RAN_RAISED } Ran;

/* Reading the clock costs as much as entering a region: what is short is timed now and then, and stands for the
 * rest, but for those of loops that take long. Which of so many runs it is, among those of which one is timed. */
static inline u64 timed_turn(const Tunables *tun, u64 times) {
  return times & (u64)((times < (u64)tun->timed_often ? tun->timed_each : tun->timed_seldom) - 1);
}

static bool is_timed(const Tracer *t, const Region *r) {
  const Tunables *tun = &t->vm->tunables;
  return t->log.run_limit || r->entered <= (u64)tun->timed_all || r->last_ns >= (u64)tun->timed_always_ns ||
         !timed_turn(tun, r->entered);
}

/* A run that was not timed: loops may take long for once, however short the runs before were. */
static u64 spent_untimed(Tracer *t, Region *r, u64 begin) {
  u64 end = begin ? tier_ticks(t) : 0, now;
  if (end <= begin + (u64)t->vm->tunables.untimed_ticks) return r->last_ns;
  now = tracer_now(t);
  if (end <= t->began_ticks || now <= t->began) return r->last_ns;
  return r->last_ns = (u64)((f64)(end - begin) * ((f64)(now - t->began) / (f64)(end - t->began_ticks)));
}

/* A run of an entry, until its frame is what the exit says. */
typedef struct Run {
  Place *p;
  GuardEntry *entry;
  Code *code; /* kept: leaving may drop the last function that runs it, and with it the place */
  u64 *slots;
  u64 since; /* when the look-up began, 0: not noted */
  u64 spent;
  u32 nslots, depth, exit;
  bool timed;
} Run;

static inline void passed(Tracer *t, const Run *r, Place *p) {
  Region *region = r->entry->region;
  p->spurious = 0;
  if (UNLIKELY(t->watch_count)) watch_ran(t, p, r->depth);
  if (UNLIKELY(r->since)) {
    u64 all = tracer_now(t) - r->since;
    if (!region->least_ns || all < region->least_ns) region->least_ns = all;
    if (r->timed && all > r->spent) gate_note(&t->vm->tunables, p, all - r->spent, r->spent);
  }
  place_passed(t, p);
}

static inline void end_run(Tracer *t, const Run *r) {
  r->entry->running--;
  t->depth--;
  t->slot_top -= r->nslots;
}

/* May the interpreter begin anew where the region was entered? The frame is as it was, and so is everything else if
 * the region changed nothing: it has no effects, updates nothing, and got nothing that was the frame's alone. */
static bool begins_anew(const Region *region) {
  const Graph *g = region->graph;
  for (u32 i = 0; i < g->guards.inputs.count; i++)
    if (g->guards.inputs.data[i].donate) return false;
  for (GraphWalk w = walk_begin(g, 1); walk_next(&w);)
    if (node_is_effect(g, w.node) || g->nodes.data[w.node].kind == NODE_update) return false;
  return true;
}

/* Leaves by any exit, whatever happened meanwhile. */
static __attribute__((noinline)) Ran leave_run(Tracer *t, const Run *r, WeftStatus status, u64 unsettled) {
  Vm *vm = t->vm;
  Region *region = r->entry->region;
  Place *p = r->p;
  u32 exit = r->exit;
  Hosted hosted = vm->hosted;
  vm->hosted = (Hosted){0};
  bool returns = false;
  bool limited = status != WEFT_OK || hosted.raised;
  ErrorState held = {0};
  if (limited) { /* the error waits until the frames stand */
    held = vm->error;
    vm->error = (ErrorState){0};
  }
  const Exit *e = &region->graph->exits.exits.data[exit];
  u32 kind = e->kind;
  /* each trip would be another continuation: the loop runs eagerly */
  bool rests = kind == EXIT_break && e->reason == REASON_loop_list;
  region->exits[exit].taken++;
  if (kind == EXIT_check && status == WEFT_OK) vm->unseen += unsettled;
  if (t->explain) explain_exit(t, region, exit);
  WeftStatus restored = hosted.left ? hosted.failed ? WEFT_ERROR : WEFT_OK
                                    : region_leave(t, region, exit, r->slots, &returns);
  if (hosted.failed && !limited && !vm->error.raised) (void)vm_error_memory(vm);
  if (limited) {
    vm_error_clear(vm); /* of restoring: the limit is what counts */
    vm->error = held;
    status = WEFT_ERROR;
    /* it was raised in other frames: those of the entry */
    if (!hosted.left && (hosted.raised || restored == WEFT_OK)) vm->error.span = vm_span(vm);
  } else {
    status = restored;
  }
  bool lost = restored != WEFT_OK && !vm->error.final && vm->error.out_of_memory,
      anew_here = lost && !hosted.left && begins_anew(region);
  /* what the program did in the region is gone: it must not go on as if it had not run */
  if (lost) vm->error.final = true;
  end_run(t, r);
  /* memory for what the exit needs was refused: the interpreter raises the error where it belongs, or needs less */
  if (anew_here) {
    vm_error_forget(vm);
    code_drop(vm, r->code);
    return RAN_NOT;
  }
  if (kind != EXIT_return) vm->counters.at[STAT_exits]++;
  if (status == WEFT_OK && kind == EXIT_check) {
    vm->counters.at[STAT_check_failures]++;
    place_left_by_check(t, p);
  } else if (status == WEFT_OK) {
    passed(t, r, p);
  } else {
    p->spurious = 0;
    if (UNLIKELY(t->watch_count)) watch_ran(t, p, r->depth);
  }
  code_drop(vm, r->code);
  bool anew = hosted.misfit || (kind == EXIT_break && e->reason == REASON_host_unknown);
  if (anew && !r->entry->running) cache_invalidate(vm, &p->cache, r->entry); /* more is known now */
  if (hosted.returned && status != WEFT_OK) value_drop(vm, hosted.value);
  if (status != WEFT_OK) return RAN_RAISED;
  if (hosted.returned) return vm_call_done(vm, hosted.value) ? RAN_RETURNED : RAN_CALLED;
  if (t->demand.strict) {
    if (kind == EXIT_cold && !t->demand.cold) {
      t->demand.cold = p;
      t->demand.cold_depth = vm->frame_count;
    } else if (demand_breaks(t, region, exit)) {
      return RAN_RAISED;
    }
  }
  return returns ? RAN_RETURNED : kind == EXIT_break && !rests ? RAN_BREAK : RAN_ON;
}

/* Nothing but a value comes of the run: what leave_run does then. */
static inline bool only_returns(const Tracer *t, const Region *region, u32 exit) {
  const Hosted *h = &t->vm->hosted;
  return region->exits[exit].quick == 1 && !(h->returned | h->raised | h->left | h->failed | h->misfit) &&
         !t->explain && !t->demand.strict;
}

/* `since`: see Run. */
static Ran run_plain(Tracer *t, Frame *frame, Place *p, GuardEntry *entry, u64 since) {
  Vm *vm = t->vm;
  Region *region = entry->region;
  u32 filled = entry->filled, n = region->nslots > filled ? region->nslots : filled;
  u64 *slots;
  if (UNLIKELY(!has_slots(t, n))) {
    guard_undonate(frame, entry->prog, t->slots + t->slot_top);
    return RAN_NOT;
  }
  slots = t->slots + t->slot_top;
  memset(slots + filled, 0, sizeof *slots * (n - filled));
  Run r = {.p = p, .entry = entry, .code = code_keep(p->code), .slots = slots, .since = since, .nslots = n,
           .depth = vm->frame_count - 1};
  t->slot_top += n;
  t->depth++;
  entry->running++;
  region->entered++;
  if (UNLIKELY(entry->packs)) region->packed += guard_rows_packed(entry->prog);
  r.timed = is_timed(t, region);
  u64 begin = r.timed ? tracer_now(t) : region->eager_ns ? 0 : tier_ticks(t);
  u64 printed = vm->printed;
  vm->printed = 0;
  WeftStatus status = region->run(vm, region, slots, &r.exit);
  u64 unsettled = vm->printed;
  vm->printed = printed;
  r.spent = UNLIKELY(r.timed) ? (region->last_ns = tracer_now(t) - begin)
                              : UNLIKELY(begin) ? spent_untimed(t, region, begin) : region->last_ns;
  region->run_ns += r.spent;
  if (t->depth == 1) vm->counters.at[STAT_compiled_ns] += r.spent;
  if (UNLIKELY(t->log.run_limit)) log_run(t, region->id, begin, r.spent, region->graph->exits.exits.data[r.exit].kind);
  if (UNLIKELY(status != WEFT_OK || !only_returns(t, region, r.exit))) return leave_run(t, &r, status, unsettled);
  region->exits[r.exit].taken++;
  leave_quick(vm, &region->exits[r.exit], slots);
  end_run(t, &r);
  passed(t, &r, p);
  if (LIKELY(r.code->leader->head.refs > 1)) r.code->leader->head.refs--;
  else code_drop(vm, r.code);
  return RAN_RETURNED;
}

/* verify: what the region does is done again by the interpreter, and compared. */
static __attribute__((noinline)) Ran run_verified(Tracer *t, Frame *frame, Place *p, GuardEntry *entry, u64 since) {
  Vm *vm = t->vm;
  const Region *region = entry->region;
  guard_undonate(frame, entry->prog, t->slots + t->slot_top); /* the registers as they were */
  Rehearsal *r = rehearsal_begin(t, region);
  frame = &vm->frames[vm->frame_count - 1];
  entry = look_up(t, frame, p);
  if (!entry) {
    rehearsal_drop(r);
    return RAN_NOT;
  }
  Ran ran = run_plain(t, frame, p, entry, since);
  if (!r) return ran;
  if (ran == RAN_RAISED && !t->demand.strict) rehearsal_raised(r);
  else if (ran == RAN_RAISED || ran == RAN_CALLED || ran == RAN_NOT) rehearsal_drop(r);
  if (ran == RAN_RAISED || ran == RAN_CALLED || ran == RAN_NOT) return ran;
  return rehearsal_compare(r, ran == RAN_RETURNED) == WEFT_OK ? ran : RAN_RAISED;
}

static inline Ran run_entry(Tracer *t, Frame *frame, Place *p, GuardEntry *entry, u64 since) {
  if (UNLIKELY(((const Region *)entry->region)->checked != NULL) && MECHANISM(t->vm, verify_rehearses))
    return run_verified(t, frame, p, entry, since);
  return run_plain(t, frame, p, entry, since);
}

static PlaceTable *table_of(Tracer *t) { return t->private_places ? t->private_places : &t->places; }

/* Why the place is traced, into the log. */
static u32 trace_reason(Tracer *t, Place *p, const Frame *frame, bool had) {
  Vm *vm = t->vm;
  if (p->gone) {
    tracer_event(t, EVENT_miss, REASON_code_gone, frame->code->proto->spans[frame->pc], 0, "%s",
                 name_text(&vm->names, p->gone));
    p->gone = 0;
    p->recompiles++;
    return REASON_code_gone;
  }
  if (!had) return p->start == RECORD_RESUME ? REASON_continuation : t->forced ? REASON_asked : REASON_first_seen;
  p->recompiles++;
  if (p->cache.has_miss) log_miss(t, &p->cache.last_miss, p->code->proto->name);
  return REASON_guard_missed;
}

static bool demanded(const Tracer *t) { return t->demand.strict || t->demand.whole; }

/* enter_place where more is asked than that it pays: what is not met is raised. */
static Ran enter_demanded(Tracer *t, Place *p) {
  Vm *vm = t->vm;
  Frame *frame = &vm->frames[vm->frame_count - 1];
  bool had = p->cache.entries.count > 0, whole = p->start == RECORD_ENTRY && demand_whole_here(t);
  if (t->demand.cold == p || vm->frame_count < t->demand.cold_depth) t->demand.cold = NULL;
  if (p->eager) {
    p->eager = p->wakes = false;
    p->tries = 0;
  }
  p->sleep = 0;
  GuardEntry *entry = had ? look_up(t, frame, p) : NULL;
  if (!entry) {
    if (had) cache_tell_miss(vm, &p->cache, frame);
    if (demand_recompiles(t, p, whole)) return RAN_RAISED;
    if (!whole && decide_demanded(t, p, frame) != DECIDE_compile) return RAN_NOT;
    if (!tier_compile(t, frame, p, trace_reason(t, p, frame, had)))
      return demand_unmet(t, p, whole) ? RAN_RAISED : RAN_NOT;
    frame = &vm->frames[vm->frame_count - 1];
    entry = look_up(t, frame, p);
    if (!entry) {
      place_failed(t, p, REASON_guard_missed, frame->code->proto->spans[frame->pc], "its own guards do not hold");
      return demand_unmet(t, p, whole) ? RAN_RAISED : RAN_NOT;
    }
  }
  if (whole && !demand_region(t, entry->region)) {
    guard_undonate(frame, entry->prog, t->slots + t->slot_top);
    return RAN_RAISED;
  }
  return run_entry(t, frame, p, entry, 0);
}

/* Runs what is compiled at the top frame's pc. `*fits`: there is nothing to be compiled, whether it ran or not. */
static inline __attribute__((always_inline)) Ran enter_fitting(Tracer *t, Place *p, bool *fits) {
  Vm *vm = t->vm;
  Frame *frame = &vm->frames[vm->frame_count - 1];
  *fits = true;
  if (decide(t, p, frame, false) != DECIDE_enter) return RAN_NOT;
  bool had = p->cache.entries.count > 0;
  /* two in a row: entries that take turns both come by */
  const Tunables *tun = &vm->tunables;
  u64 since = had && (p->passes < tun->timed_first || timed_turn(tun, p->passes) < 2) ? tracer_now(t) : 0;
  GuardEntry *entry = had ? look_up(t, frame, p) : NULL;
  if (LIKELY(entry != NULL)) {
    p->missed = p->nap = 0;
    return run_entry(t, frame, p, entry, since);
  }
  *fits = false;
  return RAN_NOT;
}

/* The same, compiling it when it is due. */
static Ran enter_place(Tracer *t, Place *p) {
  if (UNLIKELY(demanded(t))) return enter_demanded(t, p);
  bool fits;
  if (UNLIKELY(t->forced) && p->eager && !p->asked) { /* given up before anybody asked for it */
    p->eager = p->wakes = false;
    p->tries = 0;
  }
  Ran ran = enter_fitting(t, p, &fits);
  if (LIKELY(fits)) return ran;
  Vm *vm = t->vm;
  Frame *frame = &vm->frames[vm->frame_count - 1];
  bool had = p->cache.entries.count > 0;
  if (decide(t, p, frame, true) != DECIDE_compile) {
    if (had) place_missed(t, p);
    return RAN_NOT;
  }
  u32 reason = trace_reason(t, p, frame, had);
  if (!tier_compile_timed(t, frame, p, reason)) return t->demand.refusal.raised ? RAN_RAISED : RAN_NOT;
  frame = &vm->frames[vm->frame_count - 1];
  GuardEntry *entry = look_up(t, frame, p);
  if (entry) return run_entry(t, frame, p, entry, 0);
  /* of what was just traced */
  place_failed(t, p, REASON_guard_missed, frame->code->proto->spans[frame->pc], "its own guards do not hold");
  return RAN_NOT;
}

/* The rest of a function was worth compiling before it ran: so is all of it when it is called again, where it is
 * entered for sure. */
static void whole_next(Tracer *t, const Place *rest, u64 gain) {
  Code *code = rest->code;
  if (rest->start != RECORD_RESUME || !code->proto->nsites || code->proto->sites[0].kind != SITE_ENTRY) return;
  SiteState *s = &code->sites[0];
  Place *p = s->entry ? s->entry : place_get(t->vm, &t->places, code, 0, RECORD_ENTRY);
  if (!p || p->eager || p->cache.entries.count || p->slept) return;
  s->entry = p;
  p->rent.each_ns = p->rent.used_ns = gain;
  p->rent.told = true;
  p->sleep = 0;
  if (s->count < t->vm->tunables.warm_calls) s->count = (i32)t->vm->tunables.warm_calls;
}

/* Compiles and runs what follows an operation on a large array, if that pays. */
static Ran enter_large(Tracer *t, Place *p, u64 elements) {
  Vm *vm = t->vm;
  u64 before = t->compiling_ns, gain = p->rent.ahead_ns;
  t->large = true;
  t->large_until = 0;
  GuardEntry *made = tier_compile_timed(t, &vm->frames[vm->frame_count - 1], p, REASON_large_arrays);
  t->large = false;
  if (!made) {
    t->large_lost_ns += t->compiling_ns - before;
    ahead_refuse(t, p, elements);
    return t->demand.refusal.raised ? RAN_RAISED : RAN_NOT;
  }
  bool fits;
  whole_next(t, p, gain);
  return enter_fitting(t, p, &fits);
}

/* The same for the rest of a frame. */
static Ran enter_rest(Tracer *t) {
  Frame *frame = &t->vm->frames[t->vm->frame_count - 1];
  Place *p = place_get(t->vm, table_of(t), frame->code, frame->pc, RECORD_RESUME);
  return !p || (place_sleeps(t, p) && !demanded(t)) ? RAN_NOT : enter_place(t, p);
}

/* Is the top frame one that was to be asked when a call returns into it? */
static bool awaits(Tracer *t, u32 returned_from) {
  Vm *vm = t->vm;
  if (!vm->frame_count || vm->frame_count >= returned_from) return false;
  Frame *f = &vm->frames[vm->frame_count - 1];
  if (!(f->flags & (FRAME_RESUME | FRAME_AWAITS))) return false;
  bool once = f->flags & FRAME_RESUME;
  f->flags &= (u16)~FRAME_RESUME;
  return once || await_here(t, f);
}

/* Was the top frame entered from C? What is below it belongs to an outer run of the interpreter. */
static bool is_bottom(const Vm *vm) { return vm->frames[vm->frame_count - 1].flags & FRAME_NATIVE_CALL; }

/* What follows when a region was left: behind a break the interpreter does the one instruction, then the
 * continuation goes on if there is one; a return goes on in the caller if that waits. */
static TierResult follow(Tracer *t, Ran ran, u32 depth, bool bottom) {
  Vm *vm = t->vm;
  for (;;) {
    switch (ran) {
      case RAN_NOT: return TIER_STAY;
      case RAN_ON: return TIER_RAN;
      case RAN_RAISED: return TIER_RAISED;
      case RAN_CALLED: break;
      case RAN_RETURNED:
        if (bottom || !awaits(t, depth)) return TIER_RAN;
        break;
      case RAN_BREAK: {
        u32 before = vm->frame_count;
        bool last = is_bottom(vm);
        if (vm_step(vm) != WEFT_OK) return TIER_RAISED;
        if (vm->frame_count > before) { /* it called: the caller goes on when the call returns */
          vm->frames[before - 1].flags |= FRAME_RESUME;
          return TIER_RAN;
        }
        if (vm->frame_count < before && (last || !awaits(t, before))) return TIER_RAN;
        break;
      }
    }
    depth = vm->frame_count;
    bottom = is_bottom(vm);
    ran = MECHANISM(vm, continuations) && !vm->hook.call ? enter_rest(t) : RAN_NOT;
    if (ran == RAN_NOT) return TIER_RAN;
  }
}

/* Near the limits of depth the interpreter counts each call: a region does not know those that stand inlined in it.
 * Compiling, and what compiled code does where it leaves, needs some of the C stack. */
static bool near_limit(const Vm *vm) {
  u32 free = (u32)vm->tunables.levels_free;
  return vm->frame_count + vm->native_depth + free > vm->limits.depth || !cstack_has(CSTACK_DEEP);
}

static inline bool asleep(const Tracer *t, const Frame *frame) {
  return !t->backend || t->vm->ambient & AMBIENT_TAPE || frame->flags & FRAME_EAGER ||
         t->depth > t->vm->tunables.regions_deep || UNLIKELY(t->vm->hook.call != NULL) || UNLIKELY(near_limit(t->vm));
}

enum { SLEEP_MOST = 1 << 30 };

/* A place that sleeps for long is counted awake by the interpreter, which is cheaper than to be asked each time. */
static void sleep_in_site(Tracer *t, SiteState *s, Place *p, bool loop) {
  const Tunables *tun = &t->vm->tunables;
  bool counts = tun->hot_calls && tun->hot_trips && !t->private_places && !t->forced && !demanded(t);
  if (p->sleep < tun->sleep_in_site || !counts) return;
  u32 sleep = p->sleep < SLEEP_MOST ? p->sleep : SLEEP_MOST;
  s->count = (i32)(loop ? tun->warm_trips : tun->warm_calls) - (i32)sleep;
  p->slept = sleep;
}

static TierResult on_site(Vm *vm, Frame *frame, u32 site) {
  Tracer *t = tracer_of(vm);
  SiteState *s = &frame->code->sites[site];
  Place *p = t->private_places ? NULL : s->entry;
  const Tunables *tun = &t->vm->tunables;
  bool loop = frame->code->proto->sites[site].kind != SITE_ENTRY;
  if (!t->backend) { /* nothing is compiled: asked again in a long time */
    s->count = -SLEEP_MOST;
    return TIER_STAY;
  }
  if (UNLIKELY(t->watch_count) && loop && watch_head(t, frame)) return TIER_STAY;
  if (!p && !t->forced && s->count < (loop ? tun->hot_trips : tun->hot_calls) && !decides_by_clock(t)) return TIER_STAY;
  if (p && UNLIKELY(p->slept)) {
    p->sleep -= p->slept < p->sleep ? p->slept : p->sleep - 1;
    p->slept = 0;
  }
  if (p && place_sleeps(t, p) && !demanded(t)) {
    sleep_in_site(t, s, p, p->start == RECORD_LOOP);
    return TIER_STAY;
  }
  if (asleep(t, frame)) return TIER_STAY;
  if (!p) {
    p = place_get(vm, table_of(t), frame->code, frame->pc, loop ? RECORD_LOOP : RECORD_ENTRY);
    if (!p) return TIER_STAY;
    i32 warm = (i32)(loop ? tun->warm_trips : tun->warm_calls);
    p->rent.passes = (u32)(s->count > 0 && s->count < warm ? s->count : warm) - 1;
    if (!t->private_places) {
      if (s->count < warm) s->count = warm; /* it is asked each time from now on */
      s->entry = p;
    }
  }
  /* it may be compiled now; place and code may be gone then */
  if (loop && p->unfit < tun->start_misfits) s->flags |= SITE_STARTS;
  u32 depth = vm->frame_count;
  bool bottom = frame->flags & FRAME_NATIVE_CALL;
  Ran ran = enter_place(t, p);
  if (LIKELY(ran == RAN_ON || (ran == RAN_RETURNED && bottom))) return TIER_RAN;
  if (ran != RAN_NOT) return follow(t, ran, depth, bottom);
  if (s->entry == p && p->eager && !p->wakes && !p->cache.entries.count) s->flags |= SITE_COLD;
  return TIER_STAY;
}

/* Most loops fit at their first trip what was compiled for a later one. */
static TierResult on_start(Vm *vm, Frame *frame, u32 site) {
  Tracer *t = tracer_of(vm);
  SiteState *s = &frame->code->sites[site];
  Place *p = t->private_places ? NULL : s->entry;
  if (!p || p->sleep || p->eager || !p->cache.entries.count ||
      (s->count < (i32)t->vm->tunables.warm_trips && !p->gate.passing) || asleep(t, frame) || demanded(t))
    return TIER_STAY;
  u32 depth = vm->frame_count;
  bool bottom = frame->flags & FRAME_NATIVE_CALL, fits;
  Ran ran = enter_fitting(t, p, &fits);
  if (LIKELY(ran == RAN_ON || (ran == RAN_RETURNED && bottom))) return TIER_RAN;
  if (ran != RAN_NOT) return follow(t, ran, depth, bottom);
  if (!fits && ++p->unfit == t->vm->tunables.start_misfits) s->flags &= (u16)~SITE_STARTS;
  return TIER_STAY;
}

static TierResult on_resume(Vm *vm, Frame *frame) {
  Tracer *t = tracer_of(vm);
  bool once = frame->flags & FRAME_RESUME;
  frame->flags &= (u16)~FRAME_RESUME;
  if ((!once && !await_here(t, frame)) || asleep(t, frame)) return TIER_STAY;
  u32 depth = vm->frame_count;
  bool bottom = frame->flags & FRAME_NATIVE_CALL;
  return follow(t, enter_rest(t), depth, bottom);
}

/* Much was done on large arrays: what follows may be worth compiling before it ran once. */
static TierResult enter_here(Vm *vm, Frame *frame, bool *returned) {
  Tracer *t = tracer_of(vm);
  if (asleep(t, frame) || demanded(t) || !decides_by_clock(t) || !MECHANISM(vm, large_at_once)) return TIER_STAY;
  u32 depth = vm->frame_count;
  bool bottom = frame->flags & FRAME_NATIVE_CALL, fits;
  RecordStart start = frame->pc || frame->flags & FRAME_MODULE ? RECORD_RESUME : RECORD_ENTRY;
  Place *p = place_find(&t->places, frame->code, frame->pc, start);
  if (p && (p->eager || place_sleeps(t, p))) return TIER_STAY;
  Ran ran = RAN_NOT;
  if (p && p->cache.entries.count) {
    ran = enter_fitting(t, p, &fits);
  } else {
    u64 elements;
    if (decide_large(t, frame, start, &p, &elements) == DECIDE_compile) ran = enter_large(t, p, elements);
  }
  if (ran == RAN_NOT) return TIER_STAY;
  vm->large_left = -1; /* what comes behind it is likely to be large as well: the next call or operation tells */
  TierResult now = follow(t, ran, depth, bottom);
  /* else others returned behind it, to C perhaps */
  *returned = ran == RAN_RETURNED && !bottom && vm->frame_count == depth - 1;
  return now;
}

/* And so its caller, when it returned. Where it is not entered time and again, it is asked for after twice as much each
 * time. */
static TierResult on_large(Vm *vm, Frame *frame) {
  Tracer *t = tracer_of(vm);
  bool returned = false, ran = false;
  TierResult now = enter_here(vm, frame, &returned);
  while (now == TIER_RAN && returned) {
    ran = true;
    returned = false;
    now = enter_here(vm, &vm->frames[vm->frame_count - 1], &returned);
  }
  if (ran || now != TIER_STAY) {
    t->large_dull = 0;
    t->large_near = (u32)vm->tunables.large_near;
  } else if (t->large_near) {
    t->large_near--;
    vm->large_left = -1;
  } else if (vm->tunables.large_units > 0) {
    t->large_dull += t->large_dull < vm->tunables.large_doublings;
    vm->large_left = vm->tunables.large_units << t->large_dull;
  }
  return ran && now == TIER_STAY ? TIER_RAN : now;
}

const TierHooks tier_hooks = {.site = on_site, .start = on_start, .resume = on_resume, .large = on_large, .returns =
    watch_returns, .code_freed = tier_code_freed, .point = tier_point, .vm_freed = tier_vm_freed};
