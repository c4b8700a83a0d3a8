/* interp_backend.c — values and sizes when a region is left, by the reference interpreter; the backend `interp`, whose
 * regions run their graph by it (see graph.h, exits.h). */
#include "tracer/graph/graph.h"

/* ---- leaving a region -------------------------------------------------------------------------------- */

/* A run that knows the inputs and what the exit binds. */
static WeftStatus run_at_exit(GraphRun *r, Vm *vm, const Region *region, u32 exit, const u64 *slots) {
  if (run_init(r, vm, region->graph) != WEFT_OK) return WEFT_ERROR;
  run_inputs(r, slots);
  const RegionExit *e = &region->exits[exit];
  for (u32 i = 0; i < e->bind_count; i++) {
    RegionBind b = region->binds[e->bind_first + i];
    if (b.slot == BIND_NODE) continue;
    Value v = value_of_slot(region->graph, b.value, slots[b.slot]);
    if (v.kind == V_NUM || slots[b.slot]) run_set(r, b.value, value_keep(v));
  }
  return WEFT_OK;
}

WeftStatus region_value(Vm *vm, Region *region, u32 exit, const u64 *slots, u32 value, Value *out) {
  const RegionExit *e = &region->exits[exit];
  for (u32 i = 0; i < e->bind_count; i++) {
    RegionBind b = region->binds[e->bind_first + i];
    if (b.value != value || b.slot == BIND_NODE) continue;
    Value v = value_of_slot(region->graph, value, slots[b.slot]);
    if (v.kind != V_NUM && !slots[b.slot]) break;
    *out = value_keep(v);
    return WEFT_OK;
  }
  GraphRun r;
  if (run_at_exit(&r, vm, region, exit, slots) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = run_value(&r, value, out);
  if (status == WEFT_OK) *out = value_keep(*out);
  run_free(&r);
  return status;
}

typedef struct Compute {
  GraphRun *r;
  bool failed;
} Compute;

static void compute_carrier(void *ctx, u32 sym) {
  Compute *c = ctx;
  const SizeSym *s = &c->r->graph->sizes.syms.data[sym];
  Value v;
  if (c->failed || c->r->known[sym] || !s->unbacked) return;
  c->failed = !s->source || run_value(c->r, s->source, &v) != WEFT_OK; /* which learns its sizes */
}

WeftStatus region_size(Vm *vm, Region *region, u32 exit, const u64 *slots, Dim d, i64 *out) {
  GraphRun r;
  if (run_at_exit(&r, vm, region, exit, slots) != WEFT_OK) return WEFT_ERROR;
  Compute c = {&r, false};
  size_symbols(&region->graph->sizes, d, compute_carrier, &c);
  WeftStatus status = c.failed ? WEFT_ERROR : run_size(&r, d, out);
  run_free(&r);
  return status;
}

/* ---- the backend ------------------------------------------------------------------------------------- */

typedef struct Wanted { /* what exits need lies in slots behind the inputs: one per value */
  u32 *slot; /* by ValueId, 0: none */
  u32 count, next;
  RegionBind *binds;
  u32 nbinds, cap;
  Allocator *alloc;
  const Graph *g;
  bool failed;
} Wanted;

static void want(void *ctx, u32 v) {
  Wanted *w = ctx;
  u8 origin = w->g->values.data[v].origin;
  if (origin == GV_const || origin == GV_size) return; /* region_value makes them */
  if (!w->slot[v]) w->slot[v] = w->next++;
  for (u32 i = 0; i < w->nbinds; i++)
    if (w->binds[i].value == v) return;
  if (!vec_reserve(w->alloc, (void **)&w->binds, &w->cap, w->nbinds + 1, sizeof *w->binds)) w->failed = true;
  else w->binds[w->nbinds++] = (RegionBind){v, w->slot[v]};
}

/* What was given away. */
static void use_up(Vm *vm, const Region *region, u64 *slots) {
  for (u32 i = 0; i < region->graph->guards.inputs.count; i++)
    if (region->graph->guards.inputs.data[i].donate && slots[i]) {
      value_drop(vm, value_obj(V_ARRAY, (void *)(uintptr_t)slots[i]));
      slots[i] = 0;
    }
}

static WeftStatus interp_run(Vm *vm, Region *region, u64 *slots, u32 *exit) {
  GraphRun r;
  *exit = region->graph->entry_exit;
  if (run_init(&r, vm, region->graph) != WEFT_OK) {
    use_up(vm, region, slots);
    return WEFT_ERROR;
  }
  run_inputs(&r, slots);
  r.region = region;
  r.slots = slots;
  WeftStatus status = run_root(&r, exit);
  use_up(vm, region, slots);
  if (*exit < region->exit_count && !vm->hosted.left) run_fill_exit(&r, *exit);
  run_free(&r);
  return status;
}

static void interp_print(const Region *r, Buf *out) { graph_print(r->graph, NULL, out); }

static BackendResult interp_compile(Vm *vm, const Backend *self, Region *r, const CompileLimits *limits, Buf *why) {
  Graph *g = r->graph;
  (void)self;
  if (limits->nodes && graph_node_count(g) > limits->nodes) {
    buf_printf(why, "the graph has more than %u nodes", limits->nodes);
    return BACKEND_skip;
  }
  Wanted w = {.count = g->values.count, .next = g->guards.inputs.count, .alloc = &vm->alloc, .g = g};
  w.slot = mem_alloc_zero(w.alloc, sizeof *w.slot * w.count);
  bool ok = w.slot;
  for (u32 e = 0; e < g->exits.exits.count && ok; e++) {
    w.nbinds = 0;
    graph_exit_values(g, e, want, &w);
    ok = !w.failed && region_bind(vm, r, e, w.binds, w.nbinds);
  }
  mem_free(w.alloc, w.slot, sizeof *w.slot * w.count);
  mem_free(w.alloc, w.binds, sizeof *w.binds * w.cap);
  if (!ok) {
    buf_puts(why, "memory was refused");
    return BACKEND_fatal;
  }
  r->nslots = w.next;
  r->run = interp_run;
  r->print = interp_print;
  return BACKEND_ok;
}

const Backend backend_interp = {.name = "interp", .compile = interp_compile};
