/* backends.c — backends of the host (see weft.h): graphs to read, graphs handed on to a backend of the library,
 * runs. */
#include "api/backends.h"

#include <string.h>

#include "tracer/tracer.h"

typedef struct HostBackend { /* lives as long as the WeftVM */
  Backend base;
  WeftVM *w;
  WeftBackend hooks;
} HostBackend;

/* What stands around a region: in Region.host, freed with it. */
struct WeftGraph {
  WeftVM *w;
  const HostBackend *backend;
  Region *region;
  void *code;    /* the host's */
  GraphWalk walk; /* at node number `at`, once it `reads` */
  size_t at;
  bool reads;
  VEC(u32) outputs;
  WeftStatus (*inner)(Vm *vm, Region *r, u64 *slots, u32 *exit); /* where it was handed on; NULL: the host runs it */
  void (*destroy)(Vm *vm, Region *r);                            /* of what it was handed on to; may be NULL */
  /* while compiling: */
  const CompileLimits *limits;
  Buf *why;
  bool handed; /* asked for once */
};

/* A run, from inside. */
typedef struct HostRun {
  WeftRun look; /* first: what the host gets */
  Vm *vm;
  Region *region;
  u64 *slots;
  u32 *exit;
  GraphRun *values; /* inputs and sizes, for weft_run_value; of a graph handed on made when asked for */
  bool ran;         /* handed on */
  WeftStatus status;
} HostRun;

/* ---- reading ------------------------------------------------------------------------------------------- */

static const Graph *graph_of(const WeftGraph *h) { return h->region->graph; }

const char *weft_graph_name(const WeftGraph *h) { return h ? h->region->name : ""; }

const char *weft_graph_text(WeftVM *w, const WeftGraph *h) {
  if (!w || !h) return "";
  w->text.len = 0;
  w->text.failed = false;
  graph_print(graph_of(h), &w->vm->sources, &w->text);
  return w->text.failed ? "" : buf_text(&w->text);
}

/* Node number `index`, 0: there is none. Reading on from the last one asked for costs nothing more. */
static NodeId find_node(const WeftGraph *h, size_t index) {
  WeftGraph *seen = (WeftGraph *)(uintptr_t)h; /* where it stands is no part of what the host sees */
  if (!seen->reads || index < seen->at) {
    seen->walk = walk_begin(graph_of(h), 1);
    seen->at = 0;
    seen->reads = true;
    if (!walk_next(&seen->walk)) seen->walk.node = 0;
  }
  for (; seen->walk.node && seen->at < index; seen->at++)
    if (!walk_next(&seen->walk)) seen->walk.node = 0;
  if (!seen->walk.node) seen->reads = false;
  return seen->walk.node;
}

static const char *node_name(const GraphNode *n) {
  return n->kind == NODE_op ? op_name(n->op) : n->kind == NODE_check ? check_name(n->op) : "";
}

bool weft_graph_node(const WeftGraph *h, size_t index, WeftGraphNode *out) {
  NodeId id = h && out ? find_node(h, index) : 0;
  if (!id) return false;
  const Graph *g = graph_of(h);
  const GraphNode *n = graph_node_at(g, id);
  const WeftGraphNode found = {.kind = node_kind_name(n->kind), .name = node_name(n),
                         .depth = (int)(g->blocks.data[n->block].depth - g->blocks.data[1].depth),
                         .effect = node_is_effect(g, id), .plain = n->attr_count == 0 && node_subs(g, id) == 0,
                         .operand_count = n->operand_count, .result_count = n->result_count,
                         .operands = g->operands.data + n->operand_first, .result = n->result_first};
  return struct_give(out, &found, sizeof found, BYTES_TO(WeftGraphNode, result));
}

const char *weft_graph_node_text(WeftVM *w, const WeftGraph *h, size_t index) {
  NodeId id = w && h ? find_node(h, index) : 0;
  if (!id) return "";
  w->text.len = 0;
  w->text.failed = false;
  node_print(graph_of(h), id, &w->text);
  return w->text.failed ? "" : buf_text(&w->text);
}

static bool is_input(const Graph *g, u32 v) {
  return g->values.data[v].origin == GV_param && g->values.data[v].def == 1;
}

bool weft_graph_value(const WeftGraph *h, uint32_t v, WeftGraphValue *out) {
  if (!h || !out || !v || v >= graph_of(h)->values.count || value_is_token(graph_of(h), v)) return false;
  const Graph *g = graph_of(h);
  const ArrayType *t = value_type(g, v);
  Value number;
  if (!t) return false;
  WeftGraphValue found = {.dtype = (WeftDType)t->dtype, .rank = t->rank, .weak = t->weak,
                          .known = g->values.data[v].origin != GV_result};
  found.known = found.known && (g->values.data[v].origin != GV_param || is_input(g, v));
  for (u32 d = 0; d < t->rank; d++)
    if (!size_is_const(&g->sizes, t->dims[d], &found.shape[d])) found.shape[d] = -1;
  if (value_const(g, v, &number)) {
    found.constant = true;
    found.number = num_as_f64(number);
  }
  return struct_give(out, &found, sizeof found, BYTES_TO(WeftGraphValue, number));
}

/* The token is no input. */
uint32_t weft_graph_input(const WeftGraph *h, size_t index) {
  const Graph *g = h ? graph_of(h) : NULL;
  for (u32 i = 0; g && i < g->inputs.count; i++)
    if (!value_is_token(g, g->inputs.data[i].value) && index-- == 0) return g->inputs.data[i].value;
  return 0;
}

uint32_t weft_graph_output(const WeftGraph *h, size_t index) {
  return h && index < h->outputs.count ? h->outputs.data[index] : 0;
}

const char *weft_graph_input_name(WeftVM *w, const WeftGraph *h, size_t index) {
  u32 v = w && h ? weft_graph_input(h, index) : 0;
  if (!v) return "";
  const Graph *g = graph_of(h);
  w->text.len = 0;
  w->text.failed = false;
  for (u32 i = 0; i < g->inputs.count; i++)
    if (g->inputs.data[i].value == v && g->inputs.data[i].input != UINT32_MAX)
      source_print(&g->guards, g->guards.inputs.data[g->inputs.data[i].input].source, &w->text);
  return w->text.failed || !w->text.len ? "" : buf_text(&w->text);
}

bool weft_graph_simple(const WeftGraph *h) {
  if (!h) return false;
  const Graph *g = graph_of(h);
  for (GraphWalk w = walk_begin(g, 1); walk_next(&w);) {
    if (node_is_effect(g, w.node)) return false;
    for (u32 i = 0; i < node_subs(g, w.node); i++)
      if (g->blocks.data[graph_node_at(g, w.node)->sub[i]].term == TERM_exit) return false;
  }
  return g->entry_exit != NO_EXIT;
}

/* ---- compiling ------------------------------------------------------------------------------------------- */

static void add_output(void *ctx, u32 v) {
  WeftGraph *h = ctx;
  const Graph *g = graph_of(h);
  u8 origin = g->values.data[v].origin;
  if (origin == GV_const || origin == GV_size || is_input(g, v) || value_is_token(g, v)) return;
  for (u32 i = 0; i < h->outputs.count; i++)
    if (h->outputs.data[i] == v) return;
  if (!vec_push(g->alloc, &h->outputs, v)) h->handed = true; /* marks the failure until it is looked at */
}

static u32 last_exit(const Graph *g) { return g->blocks.data[1].exit; }

typedef struct Bound {
  const WeftGraph *h;
  VEC(RegionBind) binds;
  bool failed;
} Bound;

/* Inputs and outputs lie in slots of their own behind the inputs' slots. */
static void bind(void *ctx, u32 v) {
  Bound *b = ctx;
  const Graph *g = graph_of(b->h);
  u32 slot = g->guards.inputs.count;
  u8 origin = g->values.data[v].origin;
  if (origin == GV_const || origin == GV_size || value_is_token(g, v)) return;
  for (u32 i = 0; i < b->binds.count; i++)
    if (b->binds.data[i].value == v) return;
  u32 i = 0;
  if (is_input(g, v)) {
    while (i < g->inputs.count && g->inputs.data[i].value != v) i++;
    slot += i;
  } else {
    while (i < b->h->outputs.count && b->h->outputs.data[i] != v) i++;
    if (i == b->h->outputs.count) return; /* region_value computes it */
    slot += g->inputs.count + i;
  }
  RegionBind made = {v, slot};
  if (!vec_push(g->alloc, &b->binds, made)) b->failed = true;
}

static bool bind_exit(WeftGraph *h, u32 exit) {
  Bound b = {.h = h};
  graph_exit_values(graph_of(h), exit, bind, &b);
  bool ok = !b.failed && region_bind(h->w->vm, h->region, exit, b.binds.data, b.binds.count);
  vec_free(graph_of(h)->alloc, &b.binds);
  return ok;
}

static WeftStatus run_own(Vm *vm, Region *r, u64 *slots, u32 *exit);
static WeftStatus run_handed(Vm *vm, Region *r, u64 *slots, u32 *exit);

static void print_own(const Region *r, Buf *out) {
  buf_printf(out, "# by the host's backend %s\n", r->backend->name);
  graph_print(r->graph, NULL, out);
}

static void free_graph(WeftGraph *h) {
  Allocator *alloc = &h->w->vm->alloc;
  vec_free(alloc, &h->outputs);
  mem_free(alloc, h, sizeof *h);
}

static void destroy(Vm *vm, Region *r) {
  WeftGraph *h = r->host;
  if (h->backend->hooks.release) h->backend->hooks.release(h->backend->hooks.context, h->code);
  if (h->destroy) h->destroy(vm, r);
  free_graph(h);
}

/* The host runs it by itself. */
static BackendResult finish_own(WeftGraph *h, Buf *why) {
  Region *r = h->region;
  Graph *g = r->graph;
  if (!weft_graph_simple(h) || !h->backend->hooks.run) {
    buf_printf(why, "backend %s: a graph with effects or several ways out can only be handed on",
               h->backend->base.name);
    return BACKEND_unsupported;
  }
  if (!bind_exit(h, last_exit(g)) || !bind_exit(h, g->entry_exit)) {
    buf_puts(why, "memory was refused");
    return BACKEND_fatal;
  }
  r->nslots = g->guards.inputs.count + g->inputs.count + h->outputs.count;
  r->run = run_own;
  r->print = print_own;
  return BACKEND_ok;
}

/* What weft_fail said, as the reason. */
static void take_reason(Vm *vm, const HostBackend *b, Buf *why) {
  size_t len;
  if (!vm->error.raised) {
    if (!why->len) buf_printf(why, "backend %s says no", b->base.name);
    return;
  }
  const char *text = vm_error_message(vm, &len);
  why->len = 0;
  buf_put(why, text, len);
  vm_error_clear(vm);
}

static BackendResult host_compile(Vm *vm, const Backend *self, Region *r, const CompileLimits *limits, Buf *why) {
  static const BackendResult results[] = {BACKEND_ok, BACKEND_restart, BACKEND_skip, BACKEND_unsupported,
                                          BACKEND_fatal};
  const HostBackend *b = (const HostBackend *)self;
  WeftGraph *h = mem_alloc_zero(&vm->alloc, sizeof *h);
  if (!h) {
    buf_puts(why, "memory was refused");
    return BACKEND_fatal;
  }
  *h = (WeftGraph){.w = b->w, .backend = b, .region = r, .limits = limits, .why = why};
  graph_exit_values(r->graph, last_exit(r->graph), add_output, h);
  bool refused = h->handed;
  h->handed = false;
  ErrorState held = vm->error; /* of the program, if any */
  vm->error = (ErrorState){0};
  b->w->compiling++;
  WeftCompiled said = refused ? WEFT_FATAL : b->hooks.compile(b->w, b->hooks.context, h, &h->code);
  b->w->compiling--;
  BackendResult made = (u32)said < COUNT_OF(results) ? results[said] : BACKEND_fatal;
  bool compiled = made == BACKEND_ok;
  if (refused) buf_puts(why, "memory was refused");
  else if (!compiled) take_reason(vm, b, why);
  if (vm->error.raised) vm_error_clear(vm);
  vm->error = held;
  if (compiled && h->handed && !h->inner) made = BACKEND_fatal; /* it was refused there */
  else if (compiled && !h->handed) made = finish_own(h, why);
  if (compiled && made != BACKEND_ok && b->hooks.release) b->hooks.release(b->hooks.context, h->code);
  if (made != BACKEND_ok) { /* the caller frees the region, with what it was handed on to */
    free_graph(h);
    return made;
  }
  h->why = NULL;
  h->limits = NULL;
  h->destroy = r->destroy;
  r->destroy = destroy;
  r->host = h;
  if (h->inner && b->hooks.run) r->run = run_handed;
  return BACKEND_ok;
}

WeftCompiled weft_graph_hand_on(WeftVM *w, WeftGraph *h, const char *name) {
  if (!w || !h || !name || !h->why || h->handed) return WEFT_FATAL;
  const Tracer *t = tracer_of(w->vm);
  h->handed = true;
  for (u32 i = 0; i < t->backend_count; i++) {
    const Backend *b = t->backends[i];
    if (b->compile == host_compile || b == &backend_verify || strcmp(b->name, name) != 0) continue;
    h->reads = false;
    BackendResult made = b->compile(w->vm, b, h->region, h->limits, h->why);
    if (made == BACKEND_ok) h->inner = h->region->run;
    static const WeftCompiled results[] = {[BACKEND_ok] = WEFT_COMPILED, [BACKEND_restart] = WEFT_RESTART,
                                           [BACKEND_skip] = WEFT_SKIP, [BACKEND_unsupported] = WEFT_UNSUPPORTED,
                                           [BACKEND_fatal] = WEFT_FATAL};
    return results[made];
  }
  buf_printf(h->why, "the library has no backend %s to hand a graph on to", name);
  return WEFT_UNSUPPORTED;
}

/* ---- running ----------------------------------------------------------------------------------------------- */

/* Inputs as the host sees them. False: memory was refused. */
static bool wrap_inputs(HostRun *run) {
  const WeftGraph *h = run->region->host;
  const Graph *g = graph_of(h);
  WeftValue **made = mem_alloc_zero(&run->vm->alloc, sizeof *made * (g->inputs.count + 1));
  if (!made) return vm_error_memory(run->vm) == WEFT_OK;
  run->look.inputs = made;
  for (u32 i = 0; i < g->inputs.count; i++) {
    const GraphInput *in = &g->inputs.data[i];
    if (in->input == UINT32_MAX) continue;
    Value v = value_keep(value_of_slot(g, in->value, run->slots[in->input]));
    if (value_hand_over(h->w, v, &made[run->look.input_count]) != WEFT_OK) return false;
    run->look.input_count++;
  }
  return true;
}

static void release_values(HostRun *run, WeftValue *const *values, size_t count, size_t room) {
  const WeftGraph *h = run->region->host;
  for (size_t i = 0; values && i < count; i++) weft_release(h->w, values[i]);
  mem_free(&run->vm->alloc, (void *)(uintptr_t)values, sizeof *values * (room + 1));
}

/* Back to where the region began: what its exit there names is in the slots that it was bound to. */
static void undo(Vm *vm, Region *r, u64 *slots) {
  const Graph *g = r->graph;
  const RegionExit *e = &r->exits[g->entry_exit];
  for (u32 i = 0; i < g->inputs.count; i++) {
    const GraphInput *in = &g->inputs.data[i];
    if (in->input == UINT32_MAX || !value_type(g, in->value)) continue;
    Value v = value_of_slot(g, in->value, slots[in->input]);
    bool mine = g->guards.inputs.data[in->input].donate, stays = false;
    for (u32 k = 0; k < e->bind_count; k++) {
      RegionBind b = r->binds[e->bind_first + k];
      if (b.value != in->value || b.slot == BIND_NODE) continue;
      if (b.slot == in->input) stays = true;
      else slots[b.slot] = slot_of_value(value_keep(v));
    }
    if (v.kind == V_NUM || !slots[in->input]) continue;
    if (stays && !mine) value_keep(v);
    if (!stays && mine) {
      slots[in->input] = 0;
      value_drop(vm, v);
    }
  }
}

static WeftStatus raise_run(HostRun *run) {
  const HostBackend *b = ((WeftGraph *)run->region->host)->backend;
  *run->exit = run->region->graph->entry_exit;
  undo(run->vm, run->region, run->slots);
  return run->vm->error.raised ? WEFT_ERROR : vm_error(run->vm, EK_host, "backend %s: running %s failed", b->base.name,
                                                       run->region->name);
}

static WeftStatus run_handed(Vm *vm, Region *r, u64 *slots, u32 *exit) {
  const WeftGraph *h = r->host;
  HostRun run = {.look = {.graph = r->host, .code = h->code}, .vm = vm, .region = r, .slots = slots, .exit = exit};
  WeftStatus said = wrap_inputs(&run) ? h->backend->hooks.run(h->w, h->backend->hooks.context, &run.look) : WEFT_ERROR;
  release_values(&run, run.look.inputs, run.look.input_count, r->graph->inputs.count);
  if (run.ran) return run.status; /* what came of it stands, whatever the hook says */
  if (said == WEFT_ERROR) return raise_run(&run);
  if (vm->error.raised) vm_error_clear(vm);
  return h->inner(vm, r, slots, exit);
}

WeftStatus weft_run_hand_on(WeftVM *w, WeftRun *look) {
  HostRun *run = (HostRun *)look;
  if (!w || !run) return WEFT_MISUSE;
  const WeftGraph *h = run->region->host;
  if (!h->inner || run->ran) return WEFT_MISUSE;
  if (w->vm->error.raised) vm_error_clear(w->vm);
  run->ran = true;
  return run->status = h->inner(w->vm, run->region, run->slots, run->exit);
}

WeftStatus weft_run_value(WeftVM *w, const WeftRun *look, uint32_t v, WeftValue **out) {
  const HostRun *run = (const HostRun *)look;
  WeftGraphValue type = {.size = sizeof type};
  if (!w || !run || !out || run->ran || !weft_graph_value(run->look.graph, v, &type) || !type.known) return WEFT_MISUSE;
  const Graph *g = run->region->graph;
  Value made;
  if (value_const(g, v, &made)) return value_hand_over(w, made, out);
  if (!run->values) return WEFT_MISUSE;
  if (run_value(run->values, v, &made) != WEFT_OK) return WEFT_ERROR;
  return value_hand_over(w, value_keep(made), out);
}

static WeftStatus bad_output(HostRun *run, u32 i, const char *what) {
  const HostBackend *b = ((WeftGraph *)run->region->host)->backend;
  Buf want;
  buf_init(&want, &run->vm->alloc);
  type_print(run->region->graph, run->region->graph->values.data[weft_graph_output(run->look.graph, i)].type, &want);
  WeftStatus status = vm_error(run->vm, EK_host, "backend %s: output %u of %s should be %s: %s", b->base.name, i,
                               run->region->name, buf_text(&want), what);
  buf_free(&want);
  return status;
}

/* Has output `i` the type that the graph gives it? */
static WeftStatus check_output(HostRun *run, u32 i) {
  const Graph *g = run->region->graph;
  u32 id = weft_graph_output(run->look.graph, i);
  const ArrayType *t = value_type(g, id);
  if (!run->look.outputs[i]) return bad_output(run, i, "it is missing");
  Value v = run->look.outputs[i]->value;
  if (v.kind != V_NUM && v.kind != V_ARRAY) return bad_output(run, i, "it is no array");
  if (v.dtype != t->dtype) return bad_output(run, i, dtype_name(v.dtype));
  bool number = t->rank == 0 && t->device == DEV_CPU && t->dtype != DT_c128;
  if ((v.kind == V_NUM) != number || (v.kind == V_ARRAY && array_rank(v.array) != t->rank))
    return bad_output(run, i, "it has another rank");
  if (v.kind == V_ARRAY && array_device(v.array) != t->device) return bad_output(run, i, "it lies on another device");
  for (u32 d = 0; d < t->rank; d++) {
    i64 n = array_dims(v.array)[d];
    if (run_size(run->values, t->dims[d], &n) != WEFT_OK) vm_error_clear(run->vm); /* known only now */
    if (n != array_dims(v.array)[d]) return bad_output(run, i, "it has another shape");
  }
  run_set(run->values, id, value_keep(v));
  return WEFT_OK;
}

/* The values that the exit binds, from the run. Donated inputs are used up. */
static void fill(Vm *vm, Region *r, u64 *slots, u32 exit, const GraphRun *values) {
  const Graph *g = r->graph;
  for (u32 i = 0; i < g->guards.inputs.count; i++)
    if (g->guards.inputs.data[i].donate && slots[i]) {
      value_drop(vm, value_obj(V_ARRAY, (void *)(uintptr_t)slots[i]));
      slots[i] = 0;
    }
  const RegionExit *e = &r->exits[exit];
  for (u32 i = 0; i < e->bind_count; i++) {
    RegionBind b = r->binds[e->bind_first + i];
    if (values->values[b.value].kind != V_HOLE) slots[b.slot] = slot_of_value(value_keep(values->values[b.value]));
  }
}

static WeftStatus run_own(Vm *vm, Region *r, u64 *slots, u32 *exit) {
  const WeftGraph *h = r->host;
  const Graph *g = r->graph;
  GraphRun values;
  HostRun run = {.look = {.graph = r->host, .code = h->code}, .vm = vm, .region = r, .slots = slots, .exit = exit,
                 .values = &values};
  *exit = g->entry_exit;
  if (run_init(&values, vm, g) != WEFT_OK) return raise_run(&run);
  run_inputs(&values, slots);
  WeftStatus status = WEFT_ERROR;
  run.look.outputs = mem_alloc_zero(&vm->alloc, sizeof *run.look.outputs * (h->outputs.count + 1));
  if (run.look.outputs && wrap_inputs(&run)) {
    run.look.output_count = h->outputs.count;
    status = h->backend->hooks.run(h->w, h->backend->hooks.context, &run.look);
  } else if (!run.look.outputs) {
    (void)vm_error_memory(vm);
  }
  if (status != WEFT_ERROR && vm->error.raised) vm_error_clear(vm);
  if (status == WEFT_OK) {
    *exit = last_exit(g);
    for (u32 i = 0; i < h->outputs.count && status == WEFT_OK; i++) status = check_output(&run, i);
  }
  release_values(&run, run.look.inputs, run.look.input_count, g->inputs.count);
  release_values(&run, run.look.outputs, run.look.outputs ? h->outputs.count : 0, h->outputs.count);
  if (status == WEFT_OK || status == WEFT_INCOMPLETE) {
    fill(vm, r, slots, *exit, &values);
    status = WEFT_OK;
  } else {
    status = raise_run(&run);
  }
  run_free(&values);
  return status;
}

/* ---- registering --------------------------------------------------------------------------------------------- */

bool backends_add(WeftVM *w, const WeftBackend *given, size_t count) {
  const Tracer *t = tracer_of(w->vm);
  if (count > HOST_BACKENDS || (count && !given)) return false;
  for (size_t i = 0; i < count; i++) {
    const WeftBackend *b = &given[i];
    if (b->size != sizeof *b || !b->compile || !api_is_name(b->name) || strcmp(b->name, "eager") == 0) return false;
    for (u32 k = 0; k < t->backend_count; k++)
      if (strcmp(t->backends[k]->name, b->name) == 0) return false;
    HostBackend *made = w->memory.resize(w->memory.context, NULL, 0, sizeof *made);
    if (!made) return false;
    *made = (HostBackend){.base = {.name = b->name, .compile = host_compile, .hosts = true}, .w = w, .hooks = *b};
    w->backends[w->backend_count++] = made;
    if (!tracer_add_backend(w->vm, &made->base)) return false;
  }
  return true;
}

void backends_free(WeftVM *w) {
  for (u32 i = 0; i < w->backend_count; i++)
    w->memory.resize(w->memory.context, w->backends[i], sizeof(HostBackend), 0);
}
