/* explain.c — trace.explain and trace.stats: one run looked at closely, and the counters so far. */
#include "tracer/report/explain.h"
#include "tracer/tier/cost.h"
#include "tracer/tier/decide.h"

#include <string.h>

void explain_event(Tracer *t, const TraceEvent *e) {
  Explain *x = t->explain;
  for (u32 i = 0; i < x->events.count; i++) { /* one for each distinct place */
    const TraceEvent *o = &x->events.data[i];
    if (o->kind == e->kind && o->reason == e->reason && o->span.file == e->span.file && o->span.start == e->span.start)
      return;
  }
  if (!vec_push(&t->vm->alloc, &x->events, *e)) x->regions.failed = true;
}

void explain_graph(Tracer *t, const Graph *g) {
  Explain *x = t->explain;
  x->graphs++;
  x->operations += graph_node_count(g);
  for (u32 i = 0; i < g->exits.exits.count; i++) {
    const Exit *e = &g->exits.exits.data[i];
    if (e->kind == EXIT_cold) tracer_event(t, EVENT_cold, e->reason, e->span, 0, "an arm stays in the interpreter");
  }
}

void explain_region(Tracer *t, const Place *p, const GuardEntry *e) {
  Explain *x = t->explain;
  const Region *r = e->region;
  static const char *const starts[] = {"entry", "loop", "continuation"};
  Cost cost = cost_of_parts(t, graph_parts(r->graph)); /* with that much to come it is compiled by itself */
  x->kernels += r->kernels;
  x->natives += r->natives;
  x->externs += r->externs;
  x->compile_ns += r->compile_ns;
  u32 line = 0, col = 0;
  Span at = p->code->proto->spans[p->pc];
  sources_locate(&t->vm->sources, at.file ? at : vm_span(t->vm), &line, &col);
  buf_printf(&x->regions, "  %s (%s, line %u): %u operations, %u kernels, %u native functions, "
                          "%u library calls, %u guards, compiled in %.2f ms (unasked: once %.2f are to come)\n",
             r->name, starts[p->start], line, graph_node_count(r->graph), r->kernels, r->natives, r->externs,
             guard_prog_count(e->prog), (f64)r->compile_ns / NS_PER_MS, (f64)cost_once(&cost) / NS_PER_MS);
  for (u32 i = 0; i < guard_prog_count(e->prog); i++) {
    guard_print(e->prog, i, &x->guards);
    buf_putc(&x->guards, '\n');
  }
}

void explain_exit(Tracer *t, const Region *r, u32 exit) {
  (void)t;
  (void)r;
  (void)exit;
}

/* ---- records of results ---------------------------------------------------------------------------------- */

static bool explain_put(Vm *vm, Value *rec, const char *key, Value v) { /* consumes v */
  Name name = name_cstr(&vm->names, key);
  if (name) return record_set(vm, rec, name, v);
  value_drop(vm, v);
  return false;
}

static bool explain_put_text(Vm *vm, Value *rec, const char *key, const char *text, size_t len) {
  Value v;
  return text_new(vm, text, len, &v) && explain_put(vm, rec, key, v);
}

/* A break of a graph, or why there is none. What was given up says so once, as the failure before. */
static bool is_break(const Explain *x, u32 i) {
  const TraceEvent *e = &x->events.data[i];
  if (e->kind != EVENT_demote) return e->kind == EVENT_break || e->kind == EVENT_failure;
  for (u32 k = 0; k < i; k++)
    if (x->events.data[k].kind == EVENT_failure && x->events.data[k].reason == e->reason &&
        strcmp(x->events.data[k].text, e->text) == 0)
      return false;
  return true;
}

static u32 count_breaks(const Explain *x) {
  u32 n = 0;
  for (u32 i = 0; i < x->events.count; i++) n += is_break(x, i);
  return n;
}

static bool breaks_list(Vm *vm, const Explain *x, Value *out) {
  if (!list_new(vm, 4, out)) return false;
  for (u32 i = 0; i < x->events.count; i++) {
    const TraceEvent *e = &x->events.data[i];
    if (!is_break(x, i)) continue;
    const SourceFile *f = sources_get(&vm->sources, e->span.file);
    u32 line = 0, col = 0;
    if (f) sources_locate(&vm->sources, e->span, &line, &col);
    Value rec, reason;
    if (!record_new(vm, &rec)) return false;
    bool ok = text_printf(vm, &reason, "%s: %s", reason_text(e->reason), e->text) &&
              explain_put(vm, &rec, "reason", reason) &&
              explain_put_text(vm, &rec, "file", f ? f->path : "", f ? strlen(f->path) : 0) &&
              explain_put(vm, &rec, "line", value_weak_i64(line));
    if (!ok) {
      value_drop(vm, rec);
      return false;
    }
    if (!list_push(vm, out, rec)) return false;
  }
  return true;
}

static bool guards_list(Vm *vm, const Explain *x, Value *out) {
  if (!list_new(vm, 4, out)) return false;
  const char *at = buf_text(&x->guards), *end = at + x->guards.len;
  while (at < end) {
    const char *nl = memchr(at, '\n', (size_t)(end - at));
    Value line;
    if (!text_new(vm, at, (size_t)(nl - at), &line) || !list_push(vm, out, line)) return false;
    at = nl + 1;
  }
  return true;
}

static u32 count_events(const Explain *x, EventKind kind) {
  u32 n = 0;
  for (u32 i = 0; i < x->events.count; i++) n += x->events.data[i].kind == kind;
  return n;
}

static void write_report(Vm *vm, const Explain *x, const char *name, Buf *out) {
  u32 breaks = count_breaks(x), cold = count_events(x, EVENT_cold);
  buf_printf(out, "%s: %u graph%s, %u break%s, %u cold exit%s\n", name, x->graphs, x->graphs == 1 ? "" : "s", breaks,
             breaks == 1 ? "" : "s", cold, cold == 1 ? "" : "s");
  buf_puts(out, buf_text(&x->regions));
  for (u32 i = 0; i < x->events.count; i++) {
    if (x->events.data[i].kind == EVENT_compile) continue;
    buf_puts(out, "  ");
    log_line(vm, &x->events.data[i], out);
    buf_putc(out, '\n');
  }
}

/* What the kernels of the run moved and computed: a line for each in the text, a record in `profile`. */
typedef struct Profile {
  Vm *vm;
  Buf *text;
  Value list; /* a hole once memory was refused */
} Profile;

static void profile_kernel(Profile *f, const Region *r, const KernelProfile *k) {
  Vm *vm = f->vm;
  u32 line = 0, column = 0;
  if (k->node)
    sources_locate(&vm->sources, r->graph->origins.data[graph_node_at(r->graph, k->node)->origin].span, &line, &column);
  buf_printf(f->text, "    kernel %s, line %u: %u operations, %llu runs, %llu bytes, %llu flops\n",
             k->name ? k->name : "?", line, k->nodes, (unsigned long long)k->runs, (unsigned long long)k->bytes,
             (unsigned long long)k->flops);
  Value rec;
  bool ok = f->list.kind == V_LIST && record_new(vm, &rec);
  if (!ok) return;
  ok = explain_put_text(vm, &rec, "region", r->name, strlen(r->name)) &&
       explain_put(vm, &rec, "line", value_weak_i64(line)) &&
       explain_put(vm, &rec, "operations", value_weak_i64(k->nodes)) &&
       explain_put(vm, &rec, "runs", value_weak_i64((i64)k->runs)) &&
       explain_put(vm, &rec, "bytes", value_weak_i64((i64)k->bytes)) &&
       explain_put(vm, &rec, "flops", value_weak_i64((i64)k->flops));
  if (!ok) value_drop(vm, rec);
  if (ok && list_push(vm, &f->list, rec)) return;
  value_drop(vm, f->list);
  f->list = value_hole();
}

static void profile_place(void *ctx, Place *p) {
  Profile *f = ctx;
  for (u32 i = 0; i < p->cache.entries.count; i++) {
    const Region *r = p->cache.entries.data[i]->region;
    KernelProfile k;
    for (u32 n = 0; r->kernel && r->kernel(r, n, &k); n++) profile_kernel(f, r, &k);
  }
}

/* Nothing was captured, and nothing said why: what the function is called in stands against it, or it did nothing that
 * is captured. */
static void say_why_nothing(Tracer *t, Value fn, bool eager) {
  const Explain *x = t->explain;
  if (x->graphs || count_breaks(x)) return;
  Span at = fn.kind == V_FN && fn.fn->kind == FN_CLOSURE ? fn.fn->code->proto->span : vm_span(t->vm);
  if (t->vm->ambient & AMBIENT_TAPE)
    tracer_event(t, EVENT_break, REASON_tracked_value, at, 0, "explained inside a derivative");
  else if (eager) tracer_event(t, EVENT_break, REASON_eager_asked, at, 0, "explained inside of it");
  else if (fn.kind == V_FN && fn.fn->kind == FN_HOST)
    tracer_event(t, EVENT_break, REASON_effect_host, at, 0, "%s", fn.fn->host->name);
  else tracer_event(t, EVENT_break, REASON_dynamic_call, at, 0, "nothing was entered where capture begins");
}

/* A name for what is explained: "f", "grad(f)", "fn". */
static void name_of(Vm *vm, Value fn, u32 depth, Buf *out) {
  static const char *const words[TF_COUNT] = {
      [TF_grad] = "grad", [TF_value_and_grad] = "value_and_grad", [TF_vmap] = "vmap", [TF_jit] = "jit",
      [TF_eager] = "eager", [TF_checkpoint] = "checkpoint", [TF_custom_vjp] = "custom_vjp", [TF_pullback] = "pullback",
      [TF_jacfwd] = "jacfwd", [TF_jacrev] = "jacrev", [TF_hessian] = "hessian", [TF_strict] = "trace.strict"};
  bool wraps = fn.kind == V_FN && fn.fn->kind == FN_TRANSFORM && fn.fn->transform != TF_pullback && depth < 8;
  if (wraps) {
    buf_printf(out, "%s(", words[fn.fn->transform]);
    name_of(vm, fn.fn->inner, depth + 1, out);
    buf_putc(out, ')');
  } else if (fn.kind == V_FN && fn.fn->kind == FN_CLOSURE && fn.fn->code->proto->name) {
    buf_puts(out, name_text(&vm->names, fn.fn->code->proto->name));
  } else {
    buf_puts(out, fn.kind == V_FN && fn.fn->kind == FN_BUILTIN ? op_name(fn.fn->op) : fn.kind == V_FN &&
                  fn.fn->kind == FN_HOST ? fn.fn->host->name : "fn");
  }
}

/* What jit and trace.strict put around a function begins a capture of its own; any other function that is not written
 * in Weft gets a frame. */
static bool has_frame(Value f) {
  return f.kind != V_FN || f.fn->kind == FN_CLOSURE ||
         (f.fn->kind == FN_TRANSFORM &&
          (f.fn->transform == TF_jit || f.fn->transform == TF_strict || f.fn->transform == TF_eager));
}

WeftStatus tracer_explain(Vm *vm, Value fn, const Value *args, u32 nargs, Value *out) {
  Tracer *t = tracer_of(vm);
  if (!t->backend) return vm_error(vm, EK_unsupported, "trace.explain: nothing is compiled: the backend is eager");
  if (t->explain) return vm_error(vm, EK_unsupported, "trace.explain: is not supported inside another one");
  Explain x = {0};
  PlaceTable table = {0};
  buf_init(&x.guards, &vm->alloc);
  buf_init(&x.regions, &vm->alloc);
  i64 calls = vm->tunables.hot_calls, trips = vm->tunables.hot_trips;
  vm->tunables.hot_calls = vm->tunables.hot_trips = 0;
  u32 log = vm->log;
  vm->log |= VM_LOG_PROFILE;
  t->explain = &x;
  t->private_places = &table;
  bool forced = t->forced;
  t->forced = true;
  for (Code *c = vm->codes; c; c = c->next) /* what was demoted is looked at all the same */
    for (u32 i = 0; i < c->proto->nsites; i++)
      if (c->sites[i].flags & SITE_COLD) c->sites[i].flags = (u16)((c->sites[i].flags & ~SITE_COLD) | SITE_WAS_COLD);
  Value *held = mem_alloc(&vm->alloc, sizeof *held * (nargs + 1)), result, called = value_keep(fn);
  WeftStatus status = held ? WEFT_OK : vm_error_memory(vm);
  bool eager = vm->frame_count && vm->frames[vm->frame_count - 1].flags & FRAME_EAGER;
  if (status == WEFT_OK && !has_frame(fn)) {
    value_drop(vm, called);
    called = value_nil();
    status = demand_around(t, fn, NULL, nargs, &called);
  }
  for (u32 i = 0; i < nargs && status == WEFT_OK; i++) held[i] = value_keep(args[i]);
  if (status == WEFT_OK) status = vm_call(vm, called, held, nargs, &result);
  if (status == WEFT_OK) value_drop(vm, result);
  if (status == WEFT_OK)
    say_why_nothing(t, fn, eager || (fn.kind == V_FN && fn.fn->kind == FN_TRANSFORM && fn.fn->transform == TF_eager));
  value_drop(vm, called);
  mem_free(&vm->alloc, held, sizeof *held * (nargs + 1));
  for (Code *c = vm->codes; c; c = c->next)
    for (u32 i = 0; i < c->proto->nsites; i++)
      if (c->sites[i].flags & SITE_WAS_COLD)
        c->sites[i].flags = (u16)((c->sites[i].flags & ~SITE_WAS_COLD) | SITE_COLD);
  vm->tunables.hot_calls = calls;
  vm->tunables.hot_trips = trips;
  vm->log = log;
  t->explain = NULL;
  t->private_places = NULL;
  t->forced = forced;
  if (status == WEFT_OK) {
    Buf text, name;
    buf_init(&text, &vm->alloc);
    buf_init(&name, &vm->alloc);
    name_of(vm, fn, 0, &name);
    Profile profile = {vm, &text, value_hole()};
    bool listed = list_new(vm, 4, &profile.list);
    write_report(vm, &x, buf_text(&name), &text);
    buf_free(&name);
    if (listed) places_each(&table, profile_place, &profile);
    Value rec = value_nil(), breaks = value_hole(), guards = value_hole();
    bool ok = !text.failed && !x.regions.failed && !x.guards.failed && record_new(vm, &rec) &&
              explain_put(vm, &rec, "graphs", value_weak_i64(x.graphs));
    ok = ok && breaks_list(vm, &x, &breaks) && explain_put(vm, &rec, "breaks", value_keep(breaks));
    ok = ok && explain_put(vm, &rec, "cold_exits", value_weak_i64(count_events(&x, EVENT_cold)));
    ok = ok && guards_list(vm, &x, &guards) && explain_put(vm, &rec, "guards", value_keep(guards));
    ok = ok && explain_put(vm, &rec, "kernels", value_weak_i64(x.kernels)) &&
         explain_put(vm, &rec, "natives", value_weak_i64(x.natives)) &&
         explain_put(vm, &rec, "externs", value_weak_i64(x.externs)) &&
         explain_put(vm, &rec, "operations", value_weak_i64(x.operations)) &&
         explain_put(vm, &rec, "compile_ms", value_weak_f64((double)x.compile_ns / 1e6)) &&
         profile.list.kind == V_LIST && explain_put(vm, &rec, "profile", value_keep(profile.list)) &&
         explain_put_text(vm, &rec, "text", buf_text(&text), text.len);
    buf_free(&text);
    value_drop(vm, profile.list);
    value_drop(vm, breaks);
    value_drop(vm, guards);
    if (ok) *out = rec;
    else {
      value_drop(vm, rec);
      status = vm->error.raised ? WEFT_ERROR : vm_error_memory(vm);
    }
  }
  places_free(vm, &table);
  vec_free(&vm->alloc, &x.events);
  buf_free(&x.guards);
  buf_free(&x.regions);
  return status;
}

const Text *tracer_report_text(Vm *vm, Value v) {
  static const char *const keys[] = {"graphs", "breaks", "cold_exits", "guards", "kernels", "natives", "externs",
                                     "operations", "compile_ms", "profile", "text"};
  if (v.kind != V_RECORD || v.record->shape->count != COUNT_OF(keys)) return NULL;
  for (u32 i = 0; i < COUNT_OF(keys); i++)
    if (strcmp(name_text(&vm->names, v.record->shape->keys[i]), keys[i]) != 0) return NULL;
  Value text = v.record->items[COUNT_OF(keys) - 1];
  return text.kind == V_TEXT ? text.text : NULL;
}

/* ---- counters -------------------------------------------------------------------------------------------------- */

typedef struct FnStats {
  const Code *code;
  u64 compiles, recompiles, continuations, demotions;
  RegionTotals sum;
} FnStats;

static void explain_add_place(void *ctx, Place *p) {
  FnStats *s = ctx;
  if (p->code != s->code) return;
  s->compiles += p->compiles;
  s->recompiles += p->recompiles;
  s->demotions += p->eager;
  if (p->start == RECORD_RESUME) s->continuations += p->compiles;
  s->sum.entered += p->past.entered;
  s->sum.exits += p->past.exits;
  s->sum.kernels += p->past.kernels;
  s->sum.natives += p->past.natives;
  s->sum.run_ns += p->past.run_ns;
  s->sum.compile_ns += p->past.compile_ns;
  for (u32 i = 0; i < p->cache.entries.count; i++) region_totals(p->cache.entries.data[i]->region, &s->sum);
}

static u64 break_count(const Tracer *t, const Code *code) {
  u64 n = 0;
  for (u32 i = 0; i < log_count(&t->log); i++) {
    const TraceEvent *e = log_at(&t->log, i);
    n += e->kind == EVENT_break && log_within(e, code);
  }
  return n;
}

WeftStatus tracer_stats(Vm *vm, Value fn, Value *out) {
  Tracer *t = tracer_of(vm);
  Value rec;
  if (!record_new(vm, &rec)) return WEFT_ERROR;
  bool ok = true;
  if (fn.kind == V_FN && fn.fn->kind == FN_CLOSURE) {
    FnStats s = {.code = fn.fn->code};
    Buf waits;
    buf_init(&waits, &vm->alloc);
    if (t) places_each(&t->places, explain_add_place, &s);
    if (t) decide_tell(t, s.code, TOLD_waits, &waits);
    ok = explain_put_text(vm, &rec, "waits", buf_text(&waits), waits.len) &&
         explain_put(vm, &rec, "compiles", value_weak_i64((i64)s.compiles)) &&
         explain_put(vm, &rec, "recompiles", value_weak_i64((i64)s.recompiles)) &&
         explain_put(vm, &rec, "breaks", value_weak_i64(t ? (i64)break_count(t, s.code) : 0)) &&
         explain_put(vm, &rec, "exits", value_weak_i64((i64)s.sum.exits)) &&
         explain_put(vm, &rec, "kernels", value_weak_i64((i64)s.sum.kernels)) &&
         explain_put(vm, &rec, "natives", value_weak_i64((i64)s.sum.natives)) &&
         explain_put(vm, &rec, "continuations", value_weak_i64((i64)s.continuations)) &&
         explain_put(vm, &rec, "demotions", value_weak_i64((i64)s.demotions)) &&
         explain_put(vm, &rec, "entered", value_weak_i64((i64)s.sum.entered)) &&
         explain_put(vm, &rec, "compiled_ns", value_weak_i64((i64)s.sum.run_ns)) &&
         explain_put(vm, &rec, "compile_ns", value_weak_i64((i64)s.sum.compile_ns));
    buf_free(&waits);
  } else if (fn.kind == V_NIL || fn.kind == V_HOLE) {
    for (u32 i = 0; i < STAT_COUNT && ok; i++)
      ok = explain_put(vm, &rec, stat_name(i), value_weak_i64((i64)vm_stat(vm, i)));
  } else {
    value_drop(vm, rec);
    return vm_error(vm, EK_type, "trace.stats: needs a function written in Weft or nothing, got %s",
                    value_type_name(fn));
  }
  if (!ok) {
    value_drop(vm, rec);
    return vm->error.raised ? WEFT_ERROR : vm_error_memory(vm);
  }
  *out = rec;
  return WEFT_OK;
}
