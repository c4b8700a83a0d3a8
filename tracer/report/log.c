/* log.c — keeps the log of capture and says its lines (see log.h). */
#include "lang/mechanisms.h"
#include "tracer/report/explain.h"
#include "tracer/tracer.h"
#include "tracer/tier/decide.h"

#include <stdio.h>
#include <string.h>

static const char *const words[] = {
#define EVENT(name, word) word,
#include "tracer/report/log.def"
};
static const char *const names[] = {
#define EVENT(name, word) #name,
#include "tracer/report/log.def"
};
static const char *const phases[] = {
#define PHASE(name, meaning) #name,
#include "tracer/report/log.def"
};

const char *log_word(u32 kind) { return kind < EVENT_COUNT ? words[kind] : "?"; }
const char *log_name(u32 kind) { return kind < EVENT_COUNT ? names[kind] : "?"; }
const char *log_phase_name(u32 phase) { return phase < PHASE_COUNT ? phases[phase] : "?"; }
u64 log_now(void) { return (u64)(vm_clock() * 1e9); }

void log_init(TraceLog *l) { *l = (TraceLog){.began = log_now(), .limit = EVENTS_KEPT}; }

void log_drop_codes(Vm *vm, TraceLog *l) {
  while (l->codes.count) code_drop(vm, l->codes.data[--l->codes.count]);
  vec_free(&vm->alloc, &l->codes);
}

void log_free(Vm *vm, TraceLog *l) {
  vec_free(&vm->alloc, &l->events);
  vec_free(&vm->alloc, &l->runs);
  if (l->gathers) buf_free(&l->told);
  vec_free(&vm->alloc, &l->held);
}

u32 log_count(const TraceLog *l) { return l->events.count; }

const TraceEvent *log_at(const TraceLog *l, u32 index) {
  u32 first = l->events.count < l->limit ? 0 : l->event_next % l->limit;
  return &l->events.data[(first + index) % l->events.count];
}

bool log_within(const TraceEvent *e, const Code *code) {
  Span f = code->proto->span;
  return e->span.file == f.file && e->span.start >= f.start && e->span.start < f.start + f.len;
}

void log_line(Vm *vm, const TraceEvent *e, Buf *out) {
  u32 line = 0, col = 0;
  const SourceFile *f = sources_get(&vm->sources, e->span.file);
  if (f) sources_locate(&vm->sources, e->span, &line, &col);
  buf_printf(out, "%s at %s:%u:%u: %s: %s", words[e->kind], f ? f->path : "?", line, col,
             reason_text(e->reason), e->text);
  if (e->expected[0] || e->got[0]) buf_printf(out, ", wanted %s, got %s", e->expected, e->got);
}

static void say(Vm *vm, const TraceEvent *e) {
  u32 line = 0, col = 0;
  const SourceFile *f = sources_get(&vm->sources, e->span.file);
  if (f) sources_locate(&vm->sources, e->span, &line, &col);
  bool wanted = e->expected[0] || e->got[0];
  vm_tell(vm, "weft: %s: %s: %s%s%s%s%s (%s:%u:%u)\n", names[e->kind], reason_text(e->reason), e->text,
          wanted ? ", wanted " : "", wanted ? e->expected : "", wanted ? ", got " : "", wanted ? e->got : "",
          f ? f->path : "?", line, col);
}

void log_add(Tracer *t, const TraceEvent *e) {
  TraceLog *l = &t->log;
  if (l->events.count < l->limit) {
    /* the log is a convenience */
    if (!vec_push(&t->vm->alloc, &l->events, *e)) l->lost++, t->vm->counters.at[STAT_lost_events]++;
  } else {
    l->events.data[l->event_next++ % l->limit] = *e;
    l->lost++;
  }
  if (t->explain) explain_event(t, e);
  u32 of = e->kind == EVENT_miss || e->kind == EVENT_compile ? LOG_recompiles : LOG_breaks;
  if (l->words & of) say(t->vm, e);
}

void log_run(Tracer *t, u64 region, u64 begin, u64 ns, u32 exit_kind) {
  TraceLog *l = &t->log;
  TraceRun run = {region, begin - l->began, ns, exit_kind, t->depth};
  if (l->runs.count < l->run_limit) {
    if (!vec_push(&t->vm->alloc, &l->runs, run)) l->runs_lost++;
  } else {
    l->runs.data[l->run_next++ % l->run_limit] = run;
    l->runs_lost++;
  }
}

/* Cuts a text where it has no room, between two characters. */
void log_copy(char *to, size_t room, const char *from) {
  size_t n = from ? strlen(from) : 0;
  if (n >= room) {
    n = room - 1;
    while (n && ((u8)from[n] & 0xc0) == 0x80) n--;
  }
  if (n) memcpy(to, from, n);
  to[n] = 0;
}

void tracer_event(Tracer *t, EventKind kind, u32 reason, Span span, u64 region, const char *fmt, ...) {
  if (!span.file) span = vm_span(t->vm); /* of a call that has no text of its own */
  TraceEvent e = {.kind = (u8)kind, .reason = (u16)reason, .span = span, .region = region,
                  .at_ns = log_now() - t->log.began};
  char text[2 * sizeof e.text];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  log_copy(e.text, sizeof e.text, text);
  if (MECHANISM(t->vm, events_are_kept)) log_add(t, &e);
}

void log_miss(Tracer *t, const GuardMiss *m, Name function) {
  TraceEvent e = {.kind = EVENT_miss, .reason = REASON_guard_missed, .span = m->because, .code = function,
                  .at_ns = log_now() - t->log.began};
  char text[sizeof e.text];
  snprintf(text, sizeof text, "%s%s%s", m->text, m->what ? "   because " : "", m->what ? m->what : "");
  log_copy(e.text, sizeof e.text, text);
  log_copy(e.expected, sizeof e.expected, m->expected);
  log_copy(e.got, sizeof e.got, m->got);
  log_add(t, &e);
}

/* A program's own code goes with its last line, and its regions with it: before their cost was told. */
static void keep_code(Tracer *t, Code *code) {
  for (u32 i = 0; i < t->log.codes.count; i++)
    if (t->log.codes.data[i] == code) return;
  if (vec_push(&t->vm->alloc, &t->log.codes, code)) (void)code_keep(code);
}

void log_compile(Tracer *t, const Region *r, const Place *p, u32 reason, u64 begin, const u64 *phase_ns) {
  if (t->log.limit == EVENTS_KEPT_FILE) keep_code(t, p->code);
  TraceEvent e = {.kind = EVENT_compile, .start = p->start, .reason = (u16)reason, .span = p->code->proto->spans[p->pc],
                  .code = p->code->proto->name,
                  .region = r->id, .at_ns = begin - t->log.began, .nodes = graph_node_count(r->graph),
                  .guards = guard_prog_count(r->guards),
                  .kernels = r->kernels, .natives = r->natives, .externs = r->externs, .bytes = r->bytes};
  memcpy(e.phase_ns, phase_ns, sizeof e.phase_ns);
  log_copy(e.text, sizeof e.text, r->name);
  log_add(t, &e);
}

void tracer_gather(Vm *vm) {
  TraceLog *l = &tracer_of(vm)->log;
  if (l->gathers) return;
  l->gathers = true;
  buf_init(&l->told, &vm->alloc);
}

typedef struct Gone {
  Tracer *t;
  const Code *code;
} Gone;

static void note_held(void *context, Place *p) {
  const Gone *gone = context;
  TraceLog *l = &gone->t->log;
  for (u32 i = 0; i < p->cache.entries.count && p->code == gone->code; i++) {
    const Graph *g = ((const Region *)p->cache.entries.data[i]->region)->graph;
    for (u32 k = 0; k < g->frames.count; k++)
      if (g->frames.data[k].code) (void)vec_push(&gone->t->vm->alloc, &l->held, g->frames.data[k].code->id);
  }
}

/* Of a program that runs for long the first ones are told of. */
void log_gather(Tracer *t, const Code *code) {
  enum { TOLD_MOST = 1 << 16 };
  if (!t->log.gathers || t->log.told.len >= TOLD_MOST || t->log.held.count >= TOLD_MOST) return;
  decide_tell(t, code, TOLD_program, &t->log.told);
  places_each(&t->places, note_held, &(Gone){t, code});
}

void tracer_report(Vm *vm, Buf *out) {
  static const u32 counters[] = {STAT_compiles, STAT_kernels, STAT_natives, STAT_lifted_loops, STAT_cold_exits,
                                 STAT_breaks, STAT_recompiles, STAT_continuations, STAT_exits, STAT_demotions};
  const Tracer *t = tracer_of(vm);
  buf_puts(out, "what was compiled:\n");
  for (u32 i = 0; i < COUNT_OF(counters); i++)
    buf_printf(out, "  %-14s %.0f\n", stat_name(counters[i]), (double)vm_stat(vm, counters[i]));
  for (u32 i = 0; t && i < log_count(&t->log); i++) {
    buf_puts(out, "  ");
    log_line(vm, log_at(&t->log, i), out);
    buf_putc(out, '\n');
  }
  if (t && t->log.gathers) buf_puts(out, buf_text(&t->log.told));
  if (t) decide_tell(t, NULL, TOLD_program, out);
}

void tracer_log(Vm *vm, const char *list) {
  static const struct {
    const char *name;
    u32 flag;
  } flags[] = {{"graph", LOG_graph}, {"guards", LOG_guards}, {"breaks", LOG_breaks}, {"recompiles", LOG_recompiles},
               {"loops", LOG_loops}};
  for (u32 i = 0; i < COUNT_OF(flags); i++)
    if (strstr(list, flags[i].name)) tracer_of(vm)->log.words |= flags[i].flag;
}

static bool tells_why(const TraceEvent *e) { return e->kind != EVENT_compile; }

void tracer_why(Vm *vm, Value fn, Buf *out) {
  const Tracer *t = tracer_of(vm);
  const Code *code = fn.kind == V_FN && fn.fn->kind == FN_CLOSURE ? fn.fn->code : NULL;
  u32 n = t ? log_count(&t->log) : 0, first = n;
  if (!code) { /* the last one alone */
    while (first > 0 && !tells_why(log_at(&t->log, first - 1))) first--;
    if (first) {
      log_line(vm, log_at(&t->log, first - 1), out);
      buf_putc(out, '\n');
    }
  } else {
    for (u32 i = 0; i < n; i++) {
      const TraceEvent *e = log_at(&t->log, i);
      bool named = e->code && e->code == code->proto->name;
      if (!tells_why(e) || !(named || log_within(e, code))) continue;
      log_line(vm, e, out);
      buf_putc(out, '\n');
    }
  }
  if (t && code) decide_tell(t, code, TOLD_all, out);
  if (!out->len) buf_puts(out, code ? "nothing broke or missed in it\n" : "nothing broke or missed so far\n");
}
