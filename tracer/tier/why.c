/* why.c — the sums that decided (decide.c), in words with numbers: for :why, --explain and trace.stats. */
#include "tracer/report/explain.h"
#include "tracer/tier/budget.h"
#include "tracer/tier/cost.h"
#include "tracer/tier/decide.h"
#include "tracer/tier/places.h"
#include "tracer/tier/sample.h"

typedef struct Teller {
  const Tracer *t;
  Told what;
  Buf *out;
} Teller;

static void where(const Teller *x, const Code *code, u32 pc) {
  Vm *vm = x->t->vm;
  u32 line = 0, col = 0;
  Span at = code->proto->spans[pc];
  const SourceFile *f = sources_get(&vm->sources, at.file);
  if (f) sources_locate(&vm->sources, at, &line, &col);
  buf_printf(x->out, "%s:%u:%u: ", f ? f->path : "?", line, col);
}

static void put_count(Buf *b, u64 n, const char *of) {
  buf_printf(b, "%llu %s%s", (unsigned long long)n, of, n == 1 ? "" : "s");
}

/* In milliseconds without the unit, so that it can be added up; short times in nanoseconds: put_ns. */
static void put_ms(Buf *b, u64 ns) { buf_printf(b, "%.2f", (f64)ns / NS_PER_MS); }
static void put_ns(Buf *b, u64 ns) { buf_printf(b, "%llu ns", (unsigned long long)ns); }

/* "0.15 + compile 0.46 ms" */
static void put_once(Buf *b, const char *first, const u64 *ns) {
  buf_puts(b, first);
  put_ms(b, ns[1]);
  buf_puts(b, " + compile ");
  put_ms(b, ns[2]);
  buf_puts(b, " ms");
}

static void put_to_come(Buf *b, const char *what, const PlaceSum *s, u64 needed) {
  buf_puts(b, what);
  put_ms(b, s->ns[0]);
  buf_printf(b, " ms %s ", s->ns[0] < needed ? "<" : ">=");
}

/* Why it was recorded and compiled, or waits. */
static void put_compiling(const PlaceSum *s, Buf *b) {
  bool goes = s->decision == DECIDE_compile;
  u64 once = s->ns[1] + s->ns[2];
  switch (s->kind) {
    case SUM_code:
    case SUM_around:
      put_to_come(b, "to come ", s, once);
      put_once(b, "record ", s->ns);
      if (s->kind == SUM_around) buf_puts(b, ": left to the loop around it");
      break;
    case SUM_graph:
      if (!s->ns[3]) {
        buf_puts(b, "recorded: entering and leaving would take longer than it saves");
        break;
      }
      if (goes && s->ns[0] >= once) {
        put_to_come(b, "to come ", s, once);
        put_once(b, "record ", s->ns);
      } else {
        put_to_come(b, "recorded: to come ", s, s->ns[2]);
        buf_puts(b, "compile ");
        put_ms(b, s->ns[2]);
        buf_puts(b, " ms");
      }
      if (s->ns[3] < PERCENT) buf_printf(b, ", dearer as it saves %u %% of the best", (u32)s->ns[3]);
      break;
    case SUM_large:
      buf_puts(b, "with ");
      put_count(b, s->ns[3], "element");
      put_to_come(b, ", to be saved ", s, once);
      put_once(b, "record ", s->ns);
      break;
    case SUM_share:
      buf_puts(b, "compiling so far and this ");
      put_ms(b, s->ns[0]);
      buf_puts(b, " ms > its share of the time ");
      put_ms(b, s->ns[1]);
      buf_puts(b, " ms");
      break;
    case SUM_counts: buf_printf(b, "passed %llu times", (unsigned long long)s->ns[0]); break;
    case SUM_asked: buf_puts(b, "asked for"); break;
    default: buf_puts(b, "not weighed yet"); break;
  }
}

/* Which of its visits are entered. */
static void put_entering(const Place *p, const Tunables *tun, Buf *b) {
  const PlaceGate *g = &p->gate;
  const PlaceSum *s = &p->each;
  if (s->kind == SUM_timed) {
    buf_puts(b, "timed: entered ");
    put_ns(b, s->ns[0]);
    buf_puts(b, ", interpreted ");
    put_ns(b, s->ns[1]);
    if (s->decision == DECIDE_enter) buf_puts(b, ": entered\n");
    else buf_printf(b, ": rests for %llu passes\n", (unsigned long long)s->ns[2]);
  } else if (g->loop && g->samples >= tun->run_samples) {
    Cost c = cost_of_run(p);
    u64 need = cost_pays_after(tun, &c);
    if (g->short_run) {
      buf_puts(b, "a run is ");
      put_count(b, g->short_run, "trip");
    } else {
      buf_puts(b, "a run of more than ");
      put_count(b, need, "trip");
    }
    buf_puts(b, " of ");
    put_ns(b, c.trip);
    buf_puts(b, ", entering costs ");
    put_ns(b, cost_each(&c));
    buf_puts(b, g->short_run ? ": not entered\n" : ": entered\n");
  } else {
    buf_puts(b, "entered wherever its guards hold\n");
  }
}

static bool why_is_waiting(const Tracer *t, const Place *p) {
  return decides_by_clock(t) && p->rent.passes && !p->eager && !p->cache.entries.count;
}

/* Is it part of a region that was compiled for code around it, or for a caller? Then nobody asks here. */
typedef struct Holds {
  const Code *code;
  bool yes;
} Holds;

static void holds(void *context, Place *p) {
  Holds *h = context;
  for (u32 i = 0; i < p->cache.entries.count && !h->yes; i++) {
    const Graph *g = ((const Region *)p->cache.entries.data[i]->region)->graph;
    for (u32 k = 0; k < g->frames.count && !h->yes; k++) h->yes = g->frames.data[k].code == h->code;
  }
}

static bool is_held(const Tracer *t, const Code *code) {
  Holds h = {code, false};
  places_each(&t->places, holds, &h);
  for (u32 i = 0; i < t->log.held.count; i++) h.yes |= t->log.held.data[i] == code->id;
  return h.yes;
}

static void put_trips(const Teller *x, u64 trips) {
  put_count(x->out, trips, "trip");
  const Tunables *tun = &x->t->vm->tunables;
  buf_printf(x->out, " in all, asked from trip %lld on",
             (long long)(decides_by_clock(x->t) ? tun->warm_trips : tun->hot_trips));
}

/* Of a loop that took little so far, in a report of the whole program. */
static void tell_far(const Teller *x, const Place *p) {
  if (p->start != RECORD_LOOP || is_held(x->t, p->code)) return;
  where(x, p->code, p->pc);
  put_trips(x, sample_passes(x->t, p));
  if (p->once.kind) {
    buf_puts(x->out, ": ");
    put_compiling(&p->once, x->out);
  }
  buf_puts(x->out, ": not compiled\n");
}

static void tell_place(const Teller *x, Place *p) {
  const Tracer *t = x->t;
  Buf *b = x->out;
  if (why_is_waiting(t, p)) {
    Cost c = cost_of_code(t, p);
    bool far = p->rent.used_ns < percent_of(cost_once(&c), t->vm->tunables.tell_percent);
    if (far && x->what == TOLD_program) {
      tell_far(x, p);
      return;
    }
    where(x, p->code, p->pc);
    put_compiling(&p->once, b);
    buf_puts(b, ": not compiled yet, it took ");
    put_ms(b, p->rent.used_ns);
    buf_puts(b, " ms so far\n");
  } else if (x->what != TOLD_waits && p->cache.entries.count) {
    where(x, p->code, p->pc);
    put_compiling(&p->once, b);
    buf_puts(b, ": compiled; ");
    put_entering(p, &t->vm->tunables, b);
  }
}

/* A loop about which nobody was asked: there is no place for it. */
static void tell_cold(const Teller *x, const Code *code, const Extent *e) {
  u32 site = is_loop(e) ? code->site_of_pc[e->els] : 0;
  const SiteState *s = site ? &code->sites[site - 1] : NULL;
  if (!s || s->count <= 0 || s->entry || place_find(&x->t->places, code, e->head, RECORD_LOOP)) return;
  where(x, code, e->head);
  put_trips(x, (u64)s->count);
  buf_puts(x->out, ": not compiled\n");
}

typedef struct Places {
  const Tracer *t;
  const Code *code;
  VEC(Place *) found; /* by pc */
} Places;

static void find_place(void *context, Place *p) {
  Places *a = context;
  if (p->code != a->code || !vec_push(&a->t->vm->alloc, &a->found, p)) return;
  for (u32 i = a->found.count - 1; i && a->found.data[i - 1]->pc > p->pc; i--) {
    a->found.data[i] = a->found.data[i - 1];
    a->found.data[i - 1] = p;
  }
}

static void tell_code(const Teller *x, const Code *code) {
  Places a = {.t = x->t, .code = code};
  places_each(&x->t->places, find_place, &a);
  for (u32 i = 0; i < a.found.count; i++) tell_place(x, a.found.data[i]);
  vec_free(&x->t->vm->alloc, &a.found);
  bool cold = x->what != TOLD_waits && place_is_paced(x->t) && !is_held(x->t, code);
  for (u32 i = 1; i < code->proto->nextents && cold; i++) tell_cold(x, code, &code->proto->extents[i]);
}

void decide_tell(const Tracer *t, const Code *code, Told what, Buf *out) {
  Teller x = {t, what, out};
  if (code) tell_code(&x, code);
  for (const Code *c = t->vm->codes; c && !code; c = c->next) tell_code(&x, c);
}
