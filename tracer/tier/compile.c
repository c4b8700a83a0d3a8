/* compile.c — one compilation: what is recorded at a place, whether it is worth compiling, the region that comes of
 * it. */
#include "lang/mechanisms.h"
#include "tracer/report/explain.h"
#include "tracer/record/force.h"
#include "tracer/tier/tier.h"
#include "tracer/record/record_run.h"
#include "tracer/tier/cost.h"
#include "tracer/tier/decide.h"
#include "tracer/tier/places.h"
#include "tracer/tier/budget.h"
#include "tracer/tier/compile.h"

#include <stdio.h>

static void log_text(Tracer *t, u32 flag, void (*print)(void *ctx, Buf *out), void *ctx) {
  if (!(t->log.words & flag)) return;
  Buf b;
  buf_init(&b, &t->vm->alloc);
  print(ctx, &b);
  vm_tell_text(t->vm, buf_text(&b), b.len);
  buf_free(&b);
}

static void print_bare(void *ctx, Buf *out) { graph_print(ctx, NULL, out); }
static void print_graph(void *ctx, Buf *out) { graph_print(((Region *)ctx)->graph, NULL, out); }
static void print_guards(void *ctx, Buf *out) { guard_prog_print(((Region *)ctx)->guards, NULL, out); }
static void print_code(void *ctx, Buf *out) {
  const Region *r = ctx;
  if (r->print) r->print(r, out);
}

static bool is_many(const Graph *g, ValueId v) { return graph_elements(g, v) - GRAPH_MANY < UINT64_MAX / 2; }

/* Large arrays that were computed and are kept by what stood before: written into its storage, which eager code would
 * do in a second pass. */
static u32 large_writes(const Graph *g) {
  u32 n = 0;
  for (u32 i = 1; i < g->exits.journal.count; i++) {
    const Recipe *r = &g->exits.recipes.data[g->exits.journal.data[i].value];
    n += g->exits.journal.data[i].target && r->kind == RCP_value &&
         graph_node_at(g, value_node(g, r->a))->kind == NODE_op && is_many(g, r->a);
  }
  return n;
}

/* Worth compiling: enough operations, or a loop. */
static bool worth(const Graph *g, u32 least) {
  u32 n = large_writes(g);
  for (GraphWalk w = walk_begin(g, 1); walk_next(&w);) {
    const GraphNode *node = graph_node_at(g, w.node);
    if (node->kind == NODE_while || node->kind == NODE_scan || node->kind == NODE_ascan || node->kind == NODE_recur)
      return true;
    n += node->kind == NODE_op || node->kind == NODE_index || node->kind == NODE_update;
    /* its strips are stored a second time */
    n += node->kind == NODE_op && op_info(node->op)->lower == LOWER_math && is_many(g, node_result(g, w.node, 0));
    n += node->kind == NODE_op && node->op == OP_concat; /* of a list of arrays, which the interpreter stacks first */
    if (n >= least) return true;
  }
  return false;
}

static const char *code_name(Vm *vm, const Code *code) {
  return code->proto->name ? name_text(&vm->names, code->proto->name) : code->proto->nparams ? "fn" : "main";
}

/* Arrays in registers are given to the region: what the caller gave up is freed early, or written over. Exits that
 * name the register name the value instead, which they then keep as long as they may be taken. */
static void donate_inputs(Graph *g) {
  for (u32 i = 0; i < g->inputs.count; i++) {
    const GraphInput *x = &g->inputs.data[i];
    if (x->input == UINT32_MAX || value_is_token(g, x->value)) continue;
    GuardInput *in = &g->guards.inputs.data[x->input];
    const Source *s = &g->guards.sources.items.data[in->source];
    if (in->form != IN_array || (s->kind != SRC_arg && s->kind != SRC_reg)) continue;
    if (!value_type(g, x->value)->rank) continue; /* c128: its register says whether it is weak */
    in->donate = true;
    for (u32 k = 1; k < g->exits.recipes.count; k++) {
      Recipe *r = &g->exits.recipes.data[k];
      if (r->kind == RCP_source && r->a == in->source) *r = (Recipe){.kind = RCP_value, .a = x->value, .weight = 1};
    }
  }
}

/* Nanoseconds that are left of a compilation's budget: 1 when it is used up. */
static u64 time_allowed(const Tracer *t) { return (u64)t->vm->tunables.compile_ms * NS_PER_MS; }

static u64 time_left(const Tracer *t, u64 begin) { /* 1: none */
  u64 budget = time_allowed(t), spent = tracer_now(t) - begin;
  return budget > spent ? budget - spent : 1;
}

/* What a recording may take: where it takes longer, the graph is one that the place could not pay. */
static u64 record_allowed(const Tracer *t, const Place *p) {
  const Tunables *tun = &t->vm->tunables;
  if (!decides_by_clock(t) || p->rent.ahead_ns >= time_allowed(t)) return time_allowed(t);
  return percent_of(p->rent.ahead_ns, tun->record_worth) + (u64)tun->record_least_ns;
}

/* Does a function that calls itself give an array? */
static bool recurs_on_arrays(const Graph *g) {
  for (GraphWalk w = walk_begin(g, 1); walk_next(&w);) {
    const GraphNode *x = graph_node_at(g, w.node);
    for (u32 i = 0; x->kind == NODE_recur && i < x->result_count; i++)
      if (value_type(g, node_result(g, w.node, i))->rank) return true;
  }
  return false;
}

/* A backend asked for another trace: calls end it instead of being inlined; of a function that changes arrays in a way
 * that does not lower, they are inlined as any other's. Once; the next refusal counts. */
static GuardEntry *compile_smaller(Tracer *t, Frame *frame, Place *p, u32 reason, bool inlines) {
  i64 depth = t->vm->tunables.inline_depth;
  t->restarted = true;
  if (!inlines) t->vm->tunables.inline_depth = 0;
  GuardEntry *e = tier_compile(t, frame, p, reason);
  t->vm->tunables.inline_depth = depth;
  t->restarted = false;
  return e;
}

#ifndef NDEBUG
static bool verifies(Tracer *t, Place *p, const RecordResult *rec, const char *name) {
  Buf bad;
  buf_init(&bad, &t->vm->alloc);
  /* which is no fault of the graph */
  bool good = graph_verify(rec->graph, &bad), refused = rec->graph->failed || rec->graph->sizes.failed;
  if (!good && refused) {
    place_failed(t, p, REASON_trace_failed, rec->span, "out of memory");
  } else if (!good) {
    if (t->log.words) vm_tell(t->vm, "weft: graph %s does not verify:\n%s", name, buf_text(&bad));
    log_text(t, LOG_graph, print_bare, rec->graph);
    t->vm->counters.at[STAT_unverified]++;
    place_failed(t, p, REASON_not_verified, rec->span.file ? rec->span : p->code->proto->spans[p->pc],
                 "the graph does not verify");
  }
  buf_free(&bad);
  return good;
}
#else
static bool verifies(Tracer *t, Place *p, const RecordResult *rec, const char *name) {
  return (void)t, (void)p, (void)rec, (void)name, true;
}
#endif

/* Steps of the whole compilation, once its graph is known. */
static u64 steps_allowed(const Tracer *t, u32 parts) {
  return (u64)t->vm->tunables.compile_steps + parts * (u64)t->vm->tunables.compile_node_steps;
}

typedef struct Limits {
  const Tracer *t;
  u64 begin;
  bool timed;
} Limits;

static ToilEnd limits_now(void *context) {
  const Limits *l = context;
  const Vm *vm = l->t->vm;
  if (vm->interrupted || (vm->limits.deadline > 0 && vm_clock() >= vm->limits.deadline)) return TOIL_limit;
  return l->timed && time_left(l->t, l->begin) == 1 ? TOIL_late : TOIL_goes_on;
}

/* Did something stop the passes? Then nothing of what they left is looked at. A place whose compilation takes too
 * much stays interpreted; where the program itself is to end, or was interrupted, nothing is said of the place. */
static bool was_stopped(Tracer *t, Place *p, Span at) {
  u32 reason;
  const char *text;
  char steps[96];
  switch (t->vm->toil.end) {
    case TOIL_goes_on: return false;
    case TOIL_limit:
      p->count = 0;
      reason = t->vm->interrupted ? REASON_limit_interrupt : REASON_limit_deadline;
      text = "the program is to stop";
      tracer_event(t, EVENT_failure, reason, at, 0, "%s", text);
      vm_poll_soon(t->vm);
      demand_refused(t, reason, at, text);
      break;
    case TOIL_late: place_demote(t, p, REASON_too_long, "compilation takes too long"); break;
    default:
      snprintf(steps, sizeof steps, "%llu steps, after which a pass was still at work",
               (unsigned long long)t->vm->toil.used);
      place_demote(t, p, REASON_too_much_work, steps);
  }
  t->vm->counters.at[STAT_compile_stops]++;
  return true;
}

/* Is what was recorded to be compiled? False: the place, or who demanded it, has been told why not. */
static bool is_worth_it(Tracer *t, Place *p, const RecordResult *rec, const char *name) {
  Vm *vm = t->vm;
  Graph *g = rec->graph;
  bool usable = graph_prune(g);
  if (was_stopped(t, p, rec->span)) return false;
  force_checks(t, g, t->region_ids);
  force_wrong(t, g);
  if (usable && (!size_renew_facts(&g->sizes) || !verifies(t, p, rec, name))) return false;
  if (rec->broke) {
    vm->counters.at[STAT_breaks]++;
    if (MECHANISM(vm, breaks_are_told))
      tracer_event(t, EVENT_break, rec->reason, rec->span, t->region_ids, "%s", rec->why);
    if (rec->reason != REASON_raises && demand_whole_here(t)) {
      demand_refused(t, rec->reason, rec->span, rec->why);
      return false;
    }
  }
  if (demand_whole_here(t) && !demand_graph(t, g)) return false;
  if (!usable) {
    place_failed(t, p, REASON_trace_failed, rec->span, g->defect ? g->defect : "out of memory");
    return false;
  }
  if (!t->forced && !t->force.kind && MECHANISM(vm, worth_compiling) && !g->batched &&
      !worth(g, (u32)vm->tunables.worth_nodes)) {
    place_demote(t, p, REASON_nothing_to_compile, "too little to compile");
    return false;
  }
  p->rent.left_often = rec->left_often;
  p->rent.left_early = rec->left_early;
  Decision d = decide_recorded(t, p, g, rec->broke);
  if (d == DECIDE_rest) place_demote(t, p, REASON_no_payback, "going in and out takes longer than what is between");
  return d == DECIDE_compile;
}

static void count_compiled(Stats *stats, const Place *p, const Region *region, const RecordResult *rec, u32 reason) {
  stats->at[STAT_compiles]++;
  stats->at[STAT_lifted_loops] += rec->lifted_loops;
  stats->at[STAT_cold_exits] += rec->cold_exits;
  stats->at[STAT_compile_ns] += region->compile_ns;
  stats->at[STAT_kernels] += region->kernels;
  stats->at[STAT_natives] += region->natives;
  stats->at[STAT_externs] += region->externs;
  stats->at[STAT_code_bytes] += region->bytes;
  if (p->start == RECORD_RESUME && reason != REASON_large_arrays) stats->at[STAT_continuations]++;
  if (reason == REASON_guard_missed || reason == REASON_code_gone) stats->at[STAT_recompiles]++;
}

static GuardEntry *compile_for(Tracer *t, Frame *frame, Place *p, u32 reason) {
  Vm *vm = t->vm;
  Stats *stats = &vm->counters;
  u64 begin = tracer_now(t), at = begin, phases[PHASE_COUNT] = {0};
  char name[96];
  snprintf(name, sizeof name, "%s#%llu", code_name(vm, p->code), (unsigned long long)++t->region_ids);
  RecordResult rec;
  stats->at[STAT_traces]++;
  GuardEntry *entry = NULL;
  bool had_error = vm->error.raised;
  t->demand.refusal = (Refusal){.reason = REASON_trace_failed};
  t->tracing = p;
  t->record_most = record_allowed(t, p);
  t->record_until = begin + t->record_most;
  t->record_worked = tracer_worked(t);
  Limits watched = {t, begin, !t->forced && MECHANISM(vm, compile_time)};
  toil_begin(&vm->toil, steps_allowed(t, (u32)vm->tunables.graph_nodes), limits_now, &watched);
  vm->toil.endless = force_endless(t);
  WeftStatus traced = record_trace(vm, frame, (RecordStart)p->start, name, &rec);
  t->tracing = NULL;
  t->record_until = 0;
  if (traced != WEFT_OK) {
    if (rec.raised) {
      t->demand.refusal.raised = true;
      return NULL;
    }
    if (vm->error.raised && !had_error) vm_error_forget(vm);
    if (was_stopped(t, p, rec.span)) return NULL;
    /* the whole would have taken as much again, and more */
    if (rec.reason == REASON_too_long) decide_wasted(p, (u64)(vm->tunables.record_dear - 1) * t->record_most);
    if (rec.reason == REASON_too_long && time_left(t, begin) == 1) place_demote(t, p, rec.reason, rec.why);
    else if (rec.reason == REASON_too_long) place_cut(t, p, rec.span, rec.why);
    else place_failed(t, p, rec.reason, rec.span, rec.why);
    return NULL;
  }
  Graph *g = rec.graph;
  at = log_phase(phases, PHASE_record, at);
  toil_allow(&vm->toil, steps_allowed(t, graph_parts(g)));
  if (!is_worth_it(t, p, &rec, name)) {
    await_breaks(t, p, g);
    graph_free(g);
    return NULL;
  }
  stats->at[STAT_graphs]++;
  stats->at[STAT_nodes] += graph_node_count(g);
  if (t->explain) explain_graph(t, g);
  at = log_phase(phases, PHASE_simplify, at);
  SourceId unsafe = 0;
  if (MECHANISM(vm, failed_first)) cache_teach(&p->cache, &vm->names, &g->sizes, &g->guards);
  if (MECHANISM(vm, donated_inputs)) donate_inputs(g);
  GuardProg *guards = guard_compile(vm, &g->guards, &g->sizes, &unsafe);
  Region *region = region_new(vm, g);
  Buf why;
  buf_init(&why, &vm->alloc);
  if (!guards || !region) {
    if (guards) guard_prog_free(vm, guards);
    if (region) region_free(vm, region);
    if (vm->error.raised && !had_error) vm_error_forget(vm);
    if (!was_stopped(t, p, rec.span))
      place_failed(t, p, REASON_trace_failed, rec.span, unsafe ? "a source is read without a guard" : "out of memory");
    buf_free(&why);
    return NULL;
  }
  region->guards = guards;
  region->backend = t->backend;
  region->id = t->region_ids;
  at = log_phase(phases, PHASE_guards, at);
  region->eager_ns = region_eager_ns(&vm->tunables, g);
  CompileLimits limits = {.nodes = (u32)vm->tunables.graph_nodes,
                          .ns = MECHANISM(vm, compile_time) ? time_left(t, begin) : 0, .forced = t->forced,
                          .clock = t->clock, .clock_context = t->clock_context};
  const Backend *backend = MECHANISM(vm, backends_are_chosen) ? t->backend : t->backends[0];
  BackendResult made = backend->compile(vm, backend, region, &limits, &why);
  if (made != BACKEND_ok) {
    stats->at[STAT_compile_failures]++;
    if (vm->error.raised && !had_error) vm_error_forget(vm);
    if (!MECHANISM(vm, failures_told_apart)) made = BACKEND_skip;
    bool stopped = was_stopped(t, p, rec.span), again = !stopped && made == BACKEND_restart && !t->restarted;
    const bool inlines = again && recurs_on_arrays(g);
    if (!again && !stopped) place_refused(t, p, made, time_left(t, begin) == 1, rec.span, buf_text(&why));
    guard_prog_free(vm, guards);
    region_free(vm, region);
    buf_free(&why);
    return again ? compile_smaller(t, frame, p, reason, inlines) : NULL;
  }
  buf_free(&why);
  region->compile_ns = tracer_now(t) - begin;
  count_compiled(stats, p, region, &rec, reason);
  log_text(t, LOG_graph, print_graph, region);
  log_text(t, LOG_guards, print_guards, region);
  log_text(t, LOG_loops, print_code, region);
  phases[PHASE_compile] = tracer_now(t) - at;
  log_compile(t, region, p, reason, begin, phases);
  entry = cache_add(vm, &p->cache, guards, region, place_is_open(p));
  if (!entry) {
    if (vm->error.raised && !had_error) vm_error_forget(vm);
    return NULL;
  }
  p->compiles++;
  p->count = p->missed = p->nap = 0;
  p->watch.in = 1; /* not the first one: caches are cold */
  p->watch.lifted |= rec.lifted_loops > 0;
  p->recurs |= graph_recurs(g);
  if (t->explain) explain_region(t, p, entry);
  return entry;
}

/* Traces and compiles for the frame as it stands; the new entry stands first in the place's cache, or last if a source
 * was left open. */
GuardEntry *tier_compile(Tracer *t, Frame *frame, Place *p, u32 reason) {
  GuardEntry *e = compile_for(t, frame, p, reason);
  t->vm->counters.at[STAT_forced] += t->vm->toil.forced;
  t->vm->toil.forced = 0;
  toil_rest(&t->vm->toil);
  return e;
}

GuardEntry *tier_compile_timed(Tracer *t, Frame *frame, Place *p, u32 reason) {
  u64 wall = tracer_now(t), begin = tracer_worked(t);
  GuardEntry *e = tier_compile(t, frame, p, reason);
  u64 spent = tracer_worked(t) - begin;
  t->compiling_ns += spent;
  t->compiling_wall += tracer_now(t) - wall;
  if (e) {
    decide_paid(t, p, graph_parts(((Region *)e->region)->graph), spent);
    t->compilings++;
  } else {
    decide_wasted(p, spent);
  }
  return e;
}
