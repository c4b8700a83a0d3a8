/* log_write.c — the log of capture as JSON, and as a file of spans that chrome://tracing and Perfetto load. */
#include <string.h>

#include "tracer/report/explain.h"
#include "tracer/tracer.h"

static void log_write_put_text(Buf *out, const char *s) {
  buf_putc(out, '"');
  for (; *s; s++) {
    u8 c = (u8)*s;
    if (c == '"' || c == '\\') buf_printf(out, "\\%c", c);
    else if (c < 0x20) buf_printf(out, "\\u%04x", c);
    else buf_putc(out, (char)c);
  }
  buf_putc(out, '"');
}

static void put_key(Buf *out, const char *key, const char *text) {
  buf_printf(out, ", \"%s\": ", key);
  log_write_put_text(out, text);
}

/* Microseconds with three digits behind the point, by integers: no locale has a say. */
static void put_us(Buf *out, u64 ns) {
  buf_printf(out, "%llu.%03llu", (unsigned long long)(ns / 1000), (unsigned long long)(ns % 1000));
}

static void put_place(const Vm *vm, Buf *out, Span at) {
  const SourceFile *f = sources_get(&vm->sources, at.file);
  u32 line = 0, column = 0;
  if (!f) return;
  sources_locate(&vm->sources, at, &line, &column);
  put_key(out, "file", f->path);
  buf_printf(out, ", \"line\": %u, \"column\": %u", line, column);
}

static const char *const starts[] = {"entry", "loop", "continuation"};

static void put_event(const Vm *vm, Buf *out, const TraceEvent *e) {
  buf_puts(out, "{\"kind\": ");
  log_write_put_text(out, log_name(e->kind));
  put_key(out, "reason", reason_text(e->reason));
  put_key(out, e->kind == EVENT_miss ? "guard" : e->kind == EVENT_compile ? "region" : "text", e->text);
  if (e->expected[0] || e->got[0]) {
    put_key(out, "wanted", e->expected);
    put_key(out, "got", e->got);
  }
  put_place(vm, out, e->span);
  buf_puts(out, ", \"at_us\": ");
  put_us(out, e->at_ns);
  if (e->kind == EVENT_compile) {
    put_key(out, "start", starts[e->start]);
    buf_printf(out, ", \"nodes\": %u, \"guards\": %u, \"kernels\": %u, \"natives\": %u, \"externs\": %u, "
                    "\"bytes\": %llu, \"phases_us\": {", e->nodes, e->guards, e->kernels, e->natives, e->externs,
               (unsigned long long)e->bytes);
    for (u32 i = 0; i < PHASE_COUNT; i++) {
      buf_printf(out, "%s\"%s\": ", i ? ", " : "", log_phase_name(i));
      put_us(out, e->phase_ns[i]);
    }
    buf_putc(out, '}');
  }
  buf_putc(out, '}');
}

/* ---- regions as they stand ------------------------------------------------------------------- */

typedef struct RegionLines {
  const Vm *vm;
  Buf *out;
  bool any;
} RegionLines;

static void put_kernels(const Vm *vm, Buf *out, const Region *r) {
  KernelProfile k;
  buf_puts(out, ", \"kernels\": [");
  for (u32 i = 0; r->kernel && r->kernel(r, i, &k); i++) {
    buf_puts(out, i ? ", {\"name\": " : "{\"name\": ");
    log_write_put_text(out, k.name ? k.name : "");
    buf_printf(out, ", \"operations\": %u, \"runs\": %llu, \"trips\": %llu, \"bytes\": %llu, \"flops\": %llu, "
                    "\"written\": %llu, \"ns\": %llu", k.nodes, (unsigned long long)k.runs, (unsigned long long)k.trips,
               (unsigned long long)k.bytes, (unsigned long long)k.flops, (unsigned long long)k.written,
               (unsigned long long)k.ns);
    if (k.node) put_place(vm, out, r->graph->origins.data[graph_node_at(r->graph, k.node)->origin].span);
    buf_putc(out, '}');
  }
  buf_putc(out, ']');
}

static void put_region(RegionLines *l, const Place *p, const GuardEntry *e) {
  const Region *r = e->region;
  Buf *out = l->out;
  buf_puts(out, l->any ? ",\n    {\"name\": " : "\n    {\"name\": ");
  l->any = true;
  log_write_put_text(out, r->name);
  put_key(out, "start", starts[p->start]);
  put_place(l->vm, out, p->code->proto->spans[p->pc]);
  buf_printf(out, ", \"entered\": %llu, \"hits\": %llu, \"misses\": %llu, \"run_us\": ", (unsigned long long)r->entered,
             (unsigned long long)e->hits, (unsigned long long)e->misses);
  put_us(out, r->run_ns);
  buf_puts(out, ", \"exits\": {");
  static const char *const kinds[EXIT_KIND_COUNT] = {"return", "break", "check", "cold", "limit"};
  u64 taken[EXIT_KIND_COUNT] = {0};
  for (u32 i = 0; i < r->exit_count && i < r->graph->exits.exits.count; i++)
    taken[r->graph->exits.exits.data[i].kind] += r->exits[i].taken;
  for (u32 k = 0; k < EXIT_KIND_COUNT; k++)
    buf_printf(out, "%s\"%s\": %llu", k ? ", " : "", kinds[k], (unsigned long long)taken[k]);
  buf_putc(out, '}');
  put_kernels(l->vm, out, r);
  buf_putc(out, '}');
}

static void put_place_regions(void *ctx, Place *p) {
  for (u32 i = 0; i < p->cache.entries.count; i++) put_region(ctx, p, p->cache.entries.data[i]);
}

void log_json(const Tracer *t, Buf *out) {
  Vm *vm = t->vm;
  const TraceLog *l = &t->log;
  buf_puts(out, "{\n  \"format\": \"weft-log-1\",\n  \"counters\": {");
  for (u32 i = 0; i < STAT_COUNT; i++) {
    buf_printf(out, "%s\"%s\": %llu", i ? ", " : "", stat_name(i), (unsigned long long)vm_stat(vm, i));
  }
  buf_printf(out, "},\n  \"lost_events\": %llu,\n  \"events\": [", (unsigned long long)l->lost);
  for (u32 i = 0; i < log_count(l); i++) {
    buf_puts(out, i ? ",\n    " : "\n    ");
    put_event(vm, out, log_at(l, i));
  }
  buf_puts(out, "\n  ],\n  \"regions\": [");
  RegionLines lines = {vm, out, false};
  places_each(&t->places, put_place_regions, &lines);
  buf_puts(out, "\n  ]\n}\n");
}

/* ---- spans ----------------------------------------------------------------------------------- */

static const char *region_name(const TraceLog *l, u64 id) {
  for (u32 i = log_count(l); i-- > 0;) {
    const TraceEvent *e = log_at(l, i);
    if (e->kind == EVENT_compile && e->region == id) return e->text;
  }
  return "region";
}

static void put_span(Buf *out, bool *any, const char *name, const char *category, u32 thread, u64 at, u64 ns) {
  buf_puts(out, *any ? ",\n  {\"name\": " : "\n  {\"name\": ");
  *any = true;
  log_write_put_text(out, name);
  buf_printf(out, ", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": 1, \"tid\": %u, \"ts\": ", category, thread);
  put_us(out, at);
  buf_puts(out, ", \"dur\": ");
  put_us(out, ns);
  buf_puts(out, ", \"args\": {");
}

void log_chrome(const Tracer *t, Buf *out) {
  const TraceLog *l = &t->log;
  bool any = false;
  enum { RUNS = 1, CAPTURE = 2 };
  buf_puts(out, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [");
  for (u32 k = RUNS; k <= CAPTURE; k++) {
    buf_printf(out, "%s\n  {\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": %u, \"args\": "
                    "{\"name\": \"%s\"}}", any ? "," : "", k, k == RUNS ? "compiled regions" : "capture");
    any = true;
  }
  for (u32 i = 0; i < log_count(l); i++) {
    const TraceEvent *e = log_at(l, i);
    if (e->kind != EVENT_compile) {
      buf_puts(out, ",\n  {\"name\": ");
      log_write_put_text(out, log_word(e->kind));
      buf_printf(out,
                 ", \"cat\": \"capture\", \"ph\": \"i\", \"s\": \"t\", \"pid\": 1, \"tid\": %d, \"ts\": ", CAPTURE);
      put_us(out, e->at_ns);
      buf_puts(out, ", \"args\": ");
      put_event(t->vm, out, e);
      buf_putc(out, '}');
      continue;
    }
    u64 total = 0, at = e->at_ns;
    for (u32 k = 0; k < PHASE_COUNT; k++) total += e->phase_ns[k];
    put_span(out, &any, e->text, "compile", CAPTURE, e->at_ns, total);
    buf_puts(out, "\"event\": ");
    put_event(t->vm, out, e);
    buf_puts(out, "}}");
    for (u32 k = 0; k < PHASE_COUNT; at += e->phase_ns[k++]) {
      put_span(out, &any, log_phase_name(k), "phase", CAPTURE, at, e->phase_ns[k]);
      buf_puts(out, "}}");
    }
  }
  static const char *const kinds[EXIT_KIND_COUNT] = {"return", "break", "check", "cold", "limit"};
  for (u32 i = 0; i < l->runs.count; i++) {
    const TraceRun *r = &l->runs.data[i];
    put_span(out, &any, region_name(l, r->region), "run", RUNS, r->at_ns, r->ns);
    buf_printf(out, "\"exit\": \"%s\"}}", kinds[r->kind < EXIT_KIND_COUNT ? r->kind : 0]);
  }
  buf_puts(out, "\n]}\n");
}

void tracer_keep(Vm *vm, bool runs) {
  Tracer *t = tracer_of(vm);
  if (log_count(&t->log)) return; /* a ring that is in use keeps its length */
  t->log.limit = EVENTS_KEPT_FILE;
  if (runs) t->log.run_limit = RUNS_KEPT_FILE;
  vm->log |= VM_LOG_PROFILE;
}

bool tracer_write(Vm *vm, const char *form, Buf *out) {
  const Tracer *t = tracer_of(vm);
  if (strcmp(form, "json") == 0) log_json(t, out);
  else if (strcmp(form, "chrome") == 0) log_chrome(t, out);
  else if (strcmp(form, "profile") == 0) log_profile(t, out);
  else return false;
  return true;
}
