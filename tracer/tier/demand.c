/* demand.c — jit, jit(whole=true), trace.strict: what they ask is checked here, and raised when it is not met. */
#include "lang/mechanisms.h"
#include "tracer/tier/demand.h"

#include <string.h>

#include "tracer/report/explain.h"
#include "tracer/report/export.h"
#include "tracer/tier/tier.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_run.h"

void demand_free(Vm *vm, Demand *d) {
  while (d->callers.count) {
    Caller *c = &d->callers.data[--d->callers.count];
    code_drop(vm, c->code);
    mem_free(&vm->alloc, c->names, sizeof *c->names * c->nargs);
  }
  vec_free(&vm->alloc, &d->callers);
  vec_free(&vm->alloc, &d->marks);
}

void demand_refused(Tracer *t, u32 reason, Span span, const char *text) {
  Refusal *f = &t->demand.refusal;
  f->reason = (u16)reason;
  f->span = span;
  log_copy(f->text, sizeof f->text, text);
}

static const Frame *top_frame(const Vm *vm) { return &vm->frames[vm->frame_count - 1]; }

static const char *name_of(Vm *vm, const Code *code) {
  return code->proto->name ? name_text(&vm->names, code->proto->name) : "the function";
}

bool demand_whole_here(const Tracer *t) {
  const Demand *d = &t->demand;
  const Vm *vm = t->vm;
  return MECHANISM(vm, whole_capture) && d->whole && vm->frame_count == d->whole_depth + 1 &&
         top_frame(vm)->code == d->whole && top_frame(vm)->pc == 0;
}

/* Not where a test takes compilations away. */
static bool strict_now(const Tracer *t) {
  return t->demand.strict && !t->demand.cold && t->force.kind != FORCE_endless;
}

/* `jit: f is not captured whole: output: print`, at the place in the source that is to blame. */
static bool raise_broken(Tracer *t, const Code *code, bool whole, u32 reason, Span span, const char *text) {
  Vm *vm = t->vm;
  if (reason == REASON_trace_failed) {
    vm_error_memory(vm);
    return true;
  }
  if (!span.file) span = vm_span(vm);
  const char *colon = text && *text ? ": " : "";
  if (whole)
    vm_error_at(vm, EK_unsupported, span, "%s: %s is not captured whole: %s%s%s", t->demand.who, name_of(vm, code),
                reason_text(reason), colon, text);
  else vm_error_at(vm, EK_unsupported, span, "trace.strict: a break: %s%s%s", reason_text(reason), colon, text);
  return true;
}

bool demand_recompiles(Tracer *t, Place *p, bool whole) {
  Vm *vm = t->vm;
  const GuardMiss *m = p->cache.has_miss ? &p->cache.last_miss : NULL;
  if (t->demand.pinned && whole) {
    t->demand.whole = NULL;
    if (m)
      vm_error(vm, EK_value, "trace.export: the arguments do not fit the graph: %s, wanted %s, got %s", m->text,
               m->expected, m->got);
    else vm_error(vm, EK_value, "trace.export: a function that the graph was made from was replaced");
    return true;
  }
  if (!strict_now(t) || !(m || p->gone) || (!p->gone && !p->cache.entries.count)) return false;
  if (p->gone)
    vm_error(vm, EK_unsupported, "trace.strict: a recompile: %s: %s", reason_text(REASON_code_gone),
             name_text(&vm->names, p->gone));
  else
    vm_error_at(vm, EK_unsupported, m->because.file ? m->because : vm_span(vm),
                "trace.strict: a recompile: %s, wanted %s, got %s", m->text, m->expected, m->got);
  return true;
}

bool demand_unmet(Tracer *t, Place *p, bool whole) {
  const Refusal *f = &t->demand.refusal;
  if (f->raised) return true;
  if (whole) t->demand.whole = NULL;
  /* the next safepoint says so */
  if (f->reason == REASON_limit_deadline || f->reason == REASON_limit_interrupt) return false;
  return (whole || strict_now(t)) && raise_broken(t, p->code, whole, f->reason, f->span, f->text);
}

/* What the log says of a break of the region. */
static const char *break_text(const Tracer *t, u64 region) {
  for (u32 i = 0; i < log_count(&t->log); i++) {
    const TraceEvent *e = log_at(&t->log, i);
    if (e->kind == EVENT_break && e->region == region) return e->text;
  }
  return "";
}

bool demand_breaks(Tracer *t, const Region *r, u32 exit) {
  const Exit *e = &r->graph->exits.exits.data[exit];
  if (!strict_now(t)) return false;
  if (e->kind == EXIT_break && e->reason != REASON_raises)
    return raise_broken(t, NULL, false, e->reason, e->span, break_text(t, r->id));
  return false;
}

bool demand_region(Tracer *t, const Region *r) {
  const ExitTable *x = &r->graph->exits;
  const Code *code = t->demand.whole;
  t->demand.whole = NULL;
  for (u32 i = 0; i < x->exits.count; i++) /* where the program raises an error the interpreter shall raise it */
    if (x->exits.data[i].kind == EXIT_break && x->exits.data[i].reason != REASON_raises)
      return !raise_broken(t, code, true, x->exits.data[i].reason, x->exits.data[i].span, break_text(t, r->id));
  return true;
}

/* ---- exports: what a graph reads but its arguments --------------------------------------------------------------- */

static const Source *root_of(const GuardSet *g, SourceId s) {
  const Source *at = &g->sources.items.data[s];
  while (at->parent) at = &g->sources.items.data[at->parent];
  return at;
}

/* The settings of a transformed function, as the position that grad is taken by: they belong to it, and never
 * change. */
static bool is_setting(const GuardSet *g, SourceId s) {
  for (; s; s = g->sources.items.data[s].parent)
    if (g->sources.items.data[s].kind == SRC_settings) return true;
  return false;
}

static bool refuse_read(Tracer *t, const Graph *g, SourceId s, Span because) {
  Buf text;
  buf_init(&text, &t->vm->alloc);
  if (root_of(&g->guards, s)->kind == SRC_host) buf_puts(&text, "the random state");
  else source_say(&g->guards, s, &text);
  if (text.failed) demand_refused(t, REASON_trace_failed, because, "");
  else demand_refused(t, REASON_not_explicit, because, buf_text(&text));
  buf_free(&text);
  return false;
}

/* Where in the program an input is first used. */
static Span first_use(const Graph *g, ValueId v) {
  for (GraphWalk w = walk_begin(g, 1); walk_next(&w);) {
    const GraphNode *n = graph_node_at(g, w.node);
    for (u32 i = 0; i < n->operand_count; i++)
      if (g->operands.data[n->operand_first + i] == v) return g->origins.data[n->origin].span;
  }
  return (Span){0};
}

bool demand_graph(Tracer *t, const Graph *g) {
  if (!t->demand.exported) return true;
  for (u32 i = 0; i < g->inputs.count; i++) {
    const GraphInput *in = &g->inputs.data[i];
    if (in->input == UINT32_MAX) continue;
    SourceId s = g->guards.inputs.data[in->input].source;
    if (root_of(&g->guards, s)->kind != SRC_arg) return refuse_read(t, g, s, first_use(g, in->value));
  }
  for (u32 i = 0; i < g->guards.guards.count; i++) { /* what is not an input but shaped the graph */
    const Guard *x = &g->guards.guards.data[i];
    bool code = x->kind == GUARD_code || x->kind == GUARD_cell || x->kind == GUARD_ambient ||
                x->kind == GUARD_size || !x->source;
    if (!code && !(x->kind == GUARD_const && x->value_kind == V_MODULE) && !is_setting(&g->guards, x->source) &&
        root_of(&g->guards, x->source)->kind != SRC_arg)
      return refuse_read(t, g, x->source, x->because);
  }
  for (u32 i = 0; i < g->exits.exits.count; i++)
    if (g->exits.exits.data[i].journal) {
      demand_refused(t, REASON_not_explicit, g->exits.exits.data[i].span, "a variable or a ref is written");
      return false;
    }
  export_seen(t->demand.exported, g);
  return true;
}

/* ---- the transforms -------------------------------------------------------------------------- */

/* The closure that a call of f enters, through jit and trace.strict; NULL: none, or f is another transform. */
static const Fn *entered(Value f) {
  while (f.kind == V_FN && f.fn->kind == FN_TRANSFORM && (f.fn->transform == TF_jit || f.fn->transform == TF_strict))
    f = f.fn->inner;
  return f.kind == V_FN && f.fn->kind == FN_CLOSURE ? f.fn : NULL;
}

static Code *caller_of(Tracer *t, const Name *names, u32 nargs) {
  Vm *vm = t->vm;
  Demand *d = &t->demand;
  bool named = false;
  for (u32 i = 0; names && i < nargs; i++) named |= names[i] != 0;
  for (u32 i = 0; i < d->callers.count; i++) {
    const Caller *c = &d->callers.data[i];
    if (c->nargs == nargs && (named ? c->names && memcmp(c->names, names, sizeof *names * nargs) == 0 : !c->names))
      return c->code;
  }
  if (!d->module && !(d->module = module_new(vm, "", ""))) return NULL;
  Caller c = {.nargs = nargs, .names = named ? mem_alloc(&vm->alloc, sizeof *c.names * nargs) : NULL};
  if (c.names) memcpy(c.names, names, sizeof *names * nargs);
  else if (named) return (void)vm_error_memory(vm), NULL;
  c.code = vm_caller(vm, d->module, names, nargs);
  if (c.code && vec_push(&vm->alloc, &d->callers, c)) return c.code;
  if (c.code) (void)vm_error_memory(vm), code_drop(vm, c.code);
  mem_free(&vm->alloc, c.names, sizeof *c.names * nargs);
  return NULL;
}

WeftStatus demand_around(Tracer *t, Value f, const Name *names, u32 nargs, Value *out) {
  Vm *vm = t->vm;
  Code *code = caller_of(t, names, nargs);
  Env *env = code ? env_new(vm, 1) : NULL;
  if (!env) return WEFT_ERROR;
  env->slots[0] = value_keep(f);
  return fn_closure(vm, code, env, out) ? WEFT_OK : WEFT_ERROR;
}

/* A transform whose call is captured as a whole: not what capture itself is about. */
static bool wants_frame(Value f) {
  while (f.kind == V_FN && f.fn->kind == FN_TRANSFORM && (f.fn->transform == TF_jit || f.fn->transform == TF_strict))
    f = f.fn->inner;
  return f.kind == V_FN && f.fn->kind == FN_TRANSFORM && f.fn->transform != TF_eager;
}

static WeftStatus ask_whole(Tracer *t, const char *who, Value f) {
  Vm *vm = t->vm;
  const Fn *closure = entered(f);
  if (closure) {
    t->demand.who = who;
    t->demand.whole = closure->code;
    t->demand.whole_depth = vm->frame_count;
    return WEFT_OK;
  }
  if (f.kind != V_FN || f.fn->kind == FN_BUILTIN) return WEFT_OK;
  if (f.fn->kind == FN_HOST) return vm_error(vm, EK_unsupported, "%s: a host function cannot be captured", who);
  if (f.fn->transform == TF_eager) return vm_error(vm, EK_unsupported, "%s: eager(f) is interpreted", who);
  return WEFT_OK; /* has a frame around it by now */
}

static bool capturing(const Tracer *t) {
  const Vm *vm = t->vm;
  return t->backend && !vm->hook.call && !(vm->ambient & AMBIENT_TAPE) &&
         !(vm->frame_count && top_frame(vm)->flags & FRAME_EAGER);
}

/* The tier is asked there again: it was given up before anybody asked for it. */
static void wake_sites(Value f) {
  const Fn *closure = entered(f);
  for (u32 i = 0; closure && i < closure->code->proto->nsites; i++) closure->code->sites[i].flags &= (u16)~SITE_COLD;
}

WeftStatus demand_call(Tracer *t, const char *whole, Value f, const Value *args, const Name *names, u32 nargs,
                       Value *out) {
  Vm *vm = t->vm;
  Demand *d = &t->demand;
  const Code *outer = d->whole;
  const char *outer_who = d->who;
  u32 outer_depth = d->whole_depth;
  bool around = capturing(t) && wants_frame(f);
  if (around) {
    if (demand_around(t, f, names, nargs, &f) != WEFT_OK) return WEFT_ERROR;
    names = NULL;
  }
  if (whole && capturing(t) && ask_whole(t, whole, f) != WEFT_OK) {
    if (around) value_drop(vm, f);
    return WEFT_ERROR;
  }
  if (capturing(t)) wake_sites(f);
  i64 calls = vm->tunables.hot_calls, trips = vm->tunables.hot_trips;
  bool forced = t->forced;
  t->forced = true;
  vm->tunables.hot_calls = vm->tunables.hot_trips = 0;
  WeftStatus status = vm_call_kept(vm, f, args, names, nargs, out);
  if (MECHANISM(vm, modes_are_restored)) {
    t->forced = forced;
    vm->tunables.hot_calls = calls;
    vm->tunables.hot_trips = trips;
  }
  d->whole = outer;
  d->who = outer_who;
  d->whole_depth = outer_depth;
  if (around) value_drop(vm, f);
  return status;
}

enum { TREE_DEEP = 32 }; /* not a threshold: a limit of the language */

/* Trees of arguments with their arrays on a device. */
static WeftStatus to_device(Vm *vm, Value v, Value device, u32 depth, Value *out) {
  if (!cstack_has(CSTACK_CALL)) return vm_error_stack(vm);
  if (depth > TREE_DEEP) return vm_error(vm, EK_limit, "jit: the arguments are nested too deep");
  if (v.kind == V_ARRAY) {
    Value params[OP_MAX_PARAMS];
    for (u32 i = 0; i < OP_MAX_PARAMS; i++) params[i] = value_hole();
    params[0] = value_keep(v);
    params[1] = value_keep(device);
    WeftStatus status = vm_op(vm, OP_to, params, out);
    value_drop(vm, params[0]);
    value_drop(vm, params[1]);
    return status;
  }
  *out = value_keep(v);
  u32 n = v.kind == V_LIST ? v.list->count : v.kind == V_RECORD ? v.record->shape->count : 0;
  for (u32 i = 0; i < n; i++) {
    Value item;
    bool ok = to_device(vm, v.kind == V_LIST ? v.list->items[i] : v.record->items[i], device, depth + 1,
                        &item) == WEFT_OK;
    if (ok && v.kind == V_LIST) {
      if ((ok = list_unique(vm, out))) {
        value_drop(vm, out->list->items[i]);
        out->list->items[i] = item;
      } else {
        value_drop(vm, item);
      }
    } else if (ok) {
      ok = record_set(vm, out, v.record->shape->keys[i], item);
    }
    if (!ok) {
      value_drop(vm, *out);
      *out = value_hole();
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

/* jit(f): captured and compiled at the first call, whatever the heat. Settings: (whole, device). */
static WeftStatus call_jit(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out) {
  Tracer *t = tracer_of(vm);
  const List *set = fn->settings.list;
  const char *whole = set->items[0].i ? "jit" : NULL;
  Value device = set->items[1];
  if (device.kind == V_NIL) return demand_call(t, whole, fn->inner, args, names, nargs, out);
  Value *moved = mem_alloc(&vm->alloc, sizeof *moved * (nargs + 1));
  if (!moved) return vm_error_memory(vm);
  u32 n = 0;
  WeftStatus status = WEFT_OK;
  while (n < nargs && status == WEFT_OK) {
    status = to_device(vm, args[n], device, 0, &moved[n]);
    n += status == WEFT_OK;
  }
  if (status == WEFT_OK) status = demand_call(t, whole, fn->inner, moved, names, nargs, out);
  while (n-- > 0) value_drop(vm, moved[n]);
  mem_free(&vm->alloc, moved, sizeof *moved * (nargs + 1));
  return status;
}

static Outcome record_jit(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out) {
  Value settings;
  Av set = av_force(r, av_item(r, transform, 1));
  if (!set) return OUT_FAIL;
  if (!av_is_list(r, set) || !av_const_value(r, av_force(r, av_item(r, set, 1)), &settings) ||
      settings.kind != V_NIL)
    return rec_stuck(r, REASON_device_mix, "jit with a device");
  return rec_call(r, av_item(r, transform, 0), args, NULL, nargs, out);
}

static WeftStatus call_strict(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out) {
  Tracer *t = tracer_of(vm);
  Demand *d = &t->demand;
  if (!capturing(t)) return demand_call(t, NULL, fn->inner, args, names, nargs, out);
  const Place *cold = d->cold;
  u64 syncs = vm->counters.at[STAT_syncs];
  d->cold = NULL;
  d->strict++;
  WeftStatus status = demand_call(t, NULL, fn->inner, args, names, nargs, out);
  d->strict--;
  d->cold = cold;
  u64 waited = vm->counters.at[STAT_syncs] - syncs;
  if (status != WEFT_OK || !waited) return status;
  value_drop(vm, *out);
  *out = value_nil();
  return vm_error(vm, EK_unsupported, "trace.strict: the program waited for the device %llu times for a value",
                  (unsigned long long)waited);
}

static Outcome record_strict(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out) {
  return rec_call(r, av_item(r, transform, 0), args, NULL, nargs, out);
}

void demand_install(Vm *vm) {
  Tracer *t = tracer_of(vm);
  vm->transforms[TF_jit] = call_jit;
  t->transforms[TF_jit] = record_jit;
  vm->transforms[TF_strict] = call_strict;
  t->transforms[TF_strict] = record_strict;
}
