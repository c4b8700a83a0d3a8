/* budget.c — what a place may cost: when it compiles again, when it is let alone for a while, whether its regions pay.
 *
 * A look-up that finds nothing is either the reason to compile again, each time less readily, or one of many in a row:
 * then the place takes a nap, in which it is not asked, so that misses cost next to nothing. A source whose guard makes
 * a place compile again and again is left open: the next trace does not rely on what it is, and breaks where it would
 * have to. A function that is called has to be known: its source is left open by the last entries that have room.
 * Only a place whose cache is full of entries gives up; the log then names the guard.
 *
 * All of this goes by counts, so that a program is compiled the same way in each run, but for two things that go by the
 * clock: whether a region pays (watch.c too), and whether there is time to compile. */
#include "lang/mechanisms.h"
#include "tracer/tier/budget.h"
#include "tracer/tier/cost.h"
#include "tracer/tier/decide.h"
#include "tracer/tier/places.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *place_name(const Tracer *t, const Place *p) {
  return p->code->proto->name ? name_text(&t->vm->names, p->code->proto->name)
                              : p->code->proto->nparams ? "fn" : "main";
}

/* Once for each place. The log has the place and the reason as of any that is given up; nothing is written unasked. */
static void warn(Tracer *t, Place *p) {
  t->vm->counters.at[STAT_warnings] += !p->warned;
  p->warned = true;
}

/* ---- giving places up ----------------------------------------------------------------------------------- */

void place_demote(Tracer *t, Place *p, u32 reason, const char *text) {
  if (p->eager) return;
  p->eager = true;
  p->asked = t->forced;
  p->why = (u16)reason;
  demand_refused(t, reason, p->code->proto->spans[p->pc], text);
  t->vm->counters.at[STAT_demotions]++;
  tracer_event(t, EVENT_demote, reason, p->code->proto->spans[p->pc], 0, "%s", text);
}

void place_refused(Tracer *t, Place *p, BackendResult how, bool late, Span at, const char *why) {
  Vm *vm = t->vm;
  /* the program itself will say so; "": for the reason there was none */
  bool memory = !*why || strstr(why, "memory was refused");
  switch (how) {
    case BACKEND_restart: place_failed(t, p, REASON_backend_failed, at, why); return;
    case BACKEND_unsupported: place_demote(t, p, REASON_backend_unsupported, why); break;
    case BACKEND_fatal:
      place_demote(t, p, REASON_backend_failed, why);
      if (!t->forced || t->explain || memory) break;
      (void)vm_error_at(vm, EK_unsupported, p->code->proto->span, "jit: %s is not compiled: %s: %s", place_name(t, p),
                        reason_text(REASON_backend_failed), why);
      t->demand.refusal.raised = true;
      return;
    default: place_demote(t, p, late ? REASON_too_long : REASON_nothing_to_compile, why); return;
  }
  /* What the library does not compile is for :why and the log, unless somebody asked for it. */
  bool told = how == BACKEND_fatal || t->forced || t->backend->hosts;
  if (!memory && told) warn(t, p);
}

void place_failed(Tracer *t, Place *p, u32 reason, Span span, const char *text) {
  t->vm->counters.at[STAT_trace_failures]++;
  p->why = (u16)reason;
  p->count = 0;
  demand_refused(t, reason, span, text);
  if (++p->tries >= t->vm->tunables.trace_retries) place_demote(t, p, reason, text);
  else tracer_event(t, EVENT_failure, reason, span, 0, "%s", text);
}

/* A recording that took longer than the place was worth by then says nothing against it: what it took is added to
 * its cost, so that the next one may take longer. */
void place_cut(Tracer *t, Place *p, Span span, const char *text) {
  t->vm->counters.at[STAT_trace_failures]++;
  p->count = 0;
  p->why = REASON_too_long;
  demand_refused(t, REASON_too_long, span, text);
  tracer_event(t, EVENT_failure, REASON_too_long, span, 0, "%s", text);
}

void region_totals(const Region *r, RegionTotals *sum) {
  sum->entered += r->entered;
  sum->kernels += r->kernels;
  sum->natives += r->natives;
  sum->run_ns += r->run_ns;
  sum->compile_ns += r->compile_ns;
  for (u32 e = 0; e < r->exit_count; e++)
    if (r->graph->exits.exits.data[e].kind != EXIT_return) sum->exits += r->exits[e].taken;
}

/* What it works on may be another thing by then; but where what fits no entry was found not to be worth it, nothing is
 * tried again. */
void place_retire(Tracer *t, Place *p, u32 reason, const char *text) {
  i64 decay = t->vm->tunables.decay_calls;
  bool again = !p->eager && decay > 0 && p->demoted < t->vm->tunables.decay_most;
  p->eager = false; /* this reason is told too */
  place_demote(t, p, reason, text);
  for (u32 i = p->cache.entries.count; i-- > 0;) {
    t->vm->counters.at[STAT_evictions]++;
    region_totals(p->cache.entries.data[i]->region, &p->past);
    await_breaks(t, p, ((Region *)p->cache.entries.data[i]->region)->graph);
    cache_invalidate(t->vm, &p->cache, p->cache.entries.data[i]);
  }
  p->wakes = again;
  p->sleep = !again ? 0 : (u32)(decay < UINT32_MAX >> 8 ? decay << p->demoted : UINT32_MAX);
  p->demoted++;
  if (p->cache.limit > 1) p->cache.limit /= 2; /* the next time fewer kinds will do */
  p->cache.misses = 0;
}

bool place_slept(const Tracer *t, Place *p) {
  p->sleep = t->forced ? 0 : p->sleep - 1; /* jit and explain wake it */
  if (!p->sleep && p->wakes) {
    p->wakes = p->eager = false;
    p->count = p->spurious = 0;
  }
  return !t->forced;
}

/* ---- misses --------------------------------------------------------------------------------------------- */

static bool full(const Place *p) { return p->cache.entries.count >= p->cache.limit; }

static void give_up(Tracer *t, Place *p, const Frame *frame) {
  Buf b;
  buf_init(&b, &t->vm->alloc);
  cache_tell_miss(t->vm, &p->cache, frame);
  buf_puts(&b, "stays interpreted for more kinds of arguments");
  if (p->cache.has_miss) {
    buf_puts(&b, ": ");
    guard_miss_print(&p->cache.last_miss, &t->vm->sources, &b);
  }
  place_demote(t, p, REASON_cache_limit, buf_text(&b));
  warn(t, p);
  buf_free(&b);
}

/* Missed so often, would the source be left open by the entry that is made next? */
static bool is_opened(const Tracer *t, const Place *p, u32 times) {
  const Tunables *tun = &t->vm->tunables;
  return times >= tun->open_after &&
         (p->cache.last_miss.kind != GUARD_code || p->cache.entries.count + tun->open_room >= p->cache.limit);
}

/* Counts the source that misses; often enough, and later traces leave it open. */
void place_learns(Tracer *t, Place *p, const Frame *frame) {
  cache_tell_miss(t->vm, &p->cache, frame);
  const char *text = p->cache.has_miss ? p->cache.last_miss.subject : NULL;
  if (!text || !MECHANISM(t->vm, open_sources)) return;
  u32 i = 0;
  while (i < p->subjects.count && strcmp(p->subjects.data[i].text, text) != 0) i++;
  if (i == p->subjects.count) {
    size_t len = strlen(text) + 1;
    char *own = mem_alloc(&t->vm->alloc, len);
    if (!own) return;
    memcpy(own, text, len);
    if (!vec_push(&t->vm->alloc, &p->subjects, ((PlaceSubject){.text = own}))) {
      mem_free(&t->vm->alloc, own, len);
      return;
    }
  }
  PlaceSubject *s = &p->subjects.data[i];
  if (!is_opened(t, p, ++s->times) || s->open) return;
  s->open = true;
  t->vm->counters.at[STAT_generalised]++;
  tracer_event(t, EVENT_miss, REASON_generalised, p->cache.last_miss.because, 0, "%s", p->cache.last_miss.text);
}

/* Would the source that misses be left open by the next trace? Then there is an end to it. */
static bool opens(Tracer *t, Place *p, const Frame *frame) {
  cache_tell_miss(t->vm, &p->cache, frame);
  const char *text = p->cache.has_miss ? p->cache.last_miss.subject : NULL;
  for (u32 i = 0; text && i < p->subjects.count; i++)
    if (strcmp(p->subjects.data[i].text, text) == 0)
      return !p->subjects.data[i].open && is_opened(t, p, p->subjects.data[i].times + 1);
  return false;
}

/* Did the misses last long enough to pay a compilation, by what the regions there say of cost and gain? */
static bool lasted(const Tunables *tun, const Place *p) {
  u64 gain = 0, nodes = 0;
  for (u32 i = 0; i < p->cache.entries.count; i++) {
    const Region *r = p->cache.entries.data[i]->region;
    if (!r->eager_ns) return true; /* more than can be told */
    if (r->eager_ns > gain) gain = r->eager_ns;
    if (graph_node_count(r->graph) > nodes) nodes = graph_node_count(r->graph);
  }
  u64 cost = (u64)tun->compile_base_ns + nodes * (u64)tun->compile_node_ns;
  return p->count * (gain + (u64)tun->enter_ns) >= cost * (u64)tun->compile_gain;
}

enum { LATE_MOST = 20 }; /* not a threshold: doublings of a count, which is of 32 bits */

bool place_recompiles(Tracer *t, Place *p, const Frame *frame) {
  const Tunables *tun = &t->vm->tunables;
  if (p->eager) return false;
  if (place_is_paced(t) && !decides_by_clock(t) && p->recompiles >= tun->free_recompiles) {
    i64 late = p->recompiles - tun->free_recompiles;
    if (p->count < doubled((u64)tun->hot_calls, (u64)late, LATE_MOST)) return false;
    if (!lasted(tun, p) && !opens(t, p, frame)) return false;
  }
  if (full(p) && !t->forced) {
    give_up(t, p, frame);
    return false;
  }
  return true;
}

void place_missed(Tracer *t, Place *p) {
  const Tunables *tun = &t->vm->tunables;
  p->count += p->count < UINT32_MAX;
  /* a sample is of passes that are counted */
  if (!place_is_paced(t) || !MECHANISM(t->vm, naps) || ++p->missed < tun->miss_patience || p->rent.probing) return;
  u32 nap = p->nap ? p->nap * 2 : (u32)tun->miss_patience;
  p->nap = p->sleep = nap < tun->nap_limit ? nap : (u32)tun->nap_limit;
  p->count = p->count < UINT32_MAX - p->nap ? p->count + p->nap : UINT32_MAX;
  decide_naps(p, p->nap);
  t->vm->counters.at[STAT_naps]++;
}

bool place_is_open(const Place *p) {
  for (u32 i = 0; i < p->subjects.count; i++)
    if (p->subjects.data[i].open) return true;
  return false;
}

bool source_is_open(const Tracer *t, const GuardSet *g, SourceId s) {
  const Place *p = t->tracing;
  bool open = false;
  if (!p || !s || !place_is_open(p)) return false;
  Buf b;
  buf_init(&b, &t->vm->alloc);
  source_print(g, s, &b);
  for (u32 i = 0; i < p->subjects.count && !open; i++)
    open = p->subjects.data[i].open && strcmp(p->subjects.data[i].text, buf_text(&b)) == 0;
  buf_free(&b);
  return open;
}

/* ---- does it pay? --------------------------------------------------------------------------------------- */

/* Does the region lead to a continuation that may be worth its while? */
static bool leads_on(const Tracer *t, const Region *r) {
  const ExitTable *x = &r->graph->exits;
  for (u32 i = 0; i < x->exits.count; i++) {
    const Exit *e = &x->exits.data[i];
    if (e->kind != EXIT_break || !e->frame_count) continue;
    const ExitFrame *f = &x->frames.data[e->frame_first + e->frame_count - 1];
    const Code *code = r->graph->frames.data[f->frame].code;
    const Place *next = code ? place_find(&t->places, code, f->pc + 1, RECORD_RESUME) : NULL;
    if (next && next->cache.entries.count && !next->eager) return true;
  }
  return false;
}

/* Lists and texts are packed at each entry, whole: a loop that is left and entered again and again gains less than that
 * takes. */
static bool only_packs(Tracer *t, Place *p) {
  const Tunables *tun = &t->vm->tunables;
  u64 packed = 0, spent = 0;
  for (u32 i = 0; i < p->cache.entries.count; i++) {
    const Region *r = p->cache.entries.data[i]->region;
    packed += r->packed;
    spent += r->run_ns + r->entered * (u64)tun->enter_ns;
  }
  if (packed < (u64)tun->pack_much || packed * (u64)tun->pack_ns < (u64)tun->pack_far * spent) return false;
  place_retire(t, p, REASON_no_payback, "packing its lists and texts takes longer than what is done with them");
  return true;
}

void place_weigh(Tracer *t, Place *p) {
  const Tunables *tun = &t->vm->tunables;
  if (!MECHANISM(t->vm, payback) || !place_is_paced(t) || t->private_places) return;
  if (!(p->passes & (tun->pack_each - 1)) && only_packs(t, p)) return;
  if (p->passes % (u64)tun->payback_calls) return;
  /* visits that were timed said so, which tell more than counts of operations */
  if (p->watch.won && MECHANISM(t->vm, times_tell)) return;
  u64 eager = 0, compiled = p->cache.misses * (u64)tun->miss_ns;
  for (u32 i = 0; i < p->cache.entries.count; i++) {
    const Region *r = p->cache.entries.data[i]->region;
    if (!r->entered) continue;
    if (!r->eager_ns || !r->backend->weighed || leads_on(t, r)) return;
    eager += r->entered * r->eager_ns;
    compiled += r->entered * (r->least_ns ? r->least_ns : r->last_ns + (u64)tun->enter_ns);
  }
  if (compiled * PERCENT <= eager * (u64)tun->payback_percent) return;
  char text[96];
  snprintf(text, sizeof text, "its regions took %llu ns, the interpreter about %llu", (unsigned long long)compiled,
           (unsigned long long)eager);
  place_retire(t, p, REASON_no_payback, text);
}

void place_left_by_check(Tracer *t, Place *p) {
  if (++p->spurious < (u32)t->vm->tunables.spurious_limit) return;
  place_retire(t, p, REASON_checks_fail, "its checks keep failing");
}
