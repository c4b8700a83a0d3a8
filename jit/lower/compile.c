/* compile.c — the driver: Graph → Plan (the passes are drawn in compile.h). */
#include "jit/lower/compile.h"
#include "jit/plan/blocks.h"
#include "jit/plan/counts.h"
#include "jit/plan/split_reduction.h"
#include "lang/mechanisms.h"

#include <stdarg.h>
#include <string.h>

void compile_no_memory(Compiler *c) { c->failed = true; }

void compile_unsupported(Compiler *c, const char *fmt, ...) {
  if (c->unsupported) return;
  c->unsupported = true;
  va_list ap;
  va_start(ap, fmt);
  buf_vprintf(c->why, fmt, ap);
  va_end(ap);
}

static u64 now(const CompileLimits *l) { return l->clock ? l->clock(l->clock_context) : (u64)(vm_clock() * 1e9); }

bool compile_late(Compiler *c) {
  if (c->deadline && !c->late) c->late = now(c->limits) > c->deadline;
  return c->late;
}

/* ---- sizes ------------------------------------------------------------------------------------------- */

/* What is no symbol may be known to be v all the same, by a guard or a check: then 1 is broadcast here as in the
 * rules. */
bool dim_is(const Compiler *c, Dim d, i64 v) {
  SizePool *p = (SizePool *)&c->g->sizes;
  i64 k;
  if (d >= 0) return d == v;
  Dim now = size_resolve(p, d);
  if (dim_is_const(c, now, &k)) return k == v;
  return now != DIM_NONE && p->facts.count && size_prove(p, REL_eq, now, v) == TRUTH_always;
}

bool dims_same(Compiler *c, u32 rank, const Dim *a, const Dim *b) {
  for (u32 d = 0; d < rank; d++)
    if (a[d] != b[d] && !size_same(&c->g->sizes, a[d], b[d])) return false;
  return true;
}

Dim dims_total(Compiler *c, const ArrayType *t) {
  Dim total = 1;
  for (u32 d = 0; d < t->rank; d++) total = size_mul(&c->g->sizes, total, t->dims[d]);
  return total;
}

void dims_strides(Compiler *c, u32 rank, const Dim *dims, Dim *strides) {
  Dim step = 1;
  for (u32 d = rank; d-- > 0;) {
    strides[d] = step;
    step = size_mul(&c->g->sizes, step, dims[d]);
  }
}

/* ---- exits --------------------------------------------------------------------------------------------- */

void each_exit_of(const Graph *g, NodeId n, void (*each)(void *ctx, u32 exit), void *ctx) {
  const GraphNode *x = graph_node_at(g, n);
  if (x->exit != NO_EXIT) each(ctx, x->exit);
  for (u32 s = 0; s < node_subs(g, n); s++) {
    const GraphBlock *b = &g->blocks.data[x->sub[s]];
    if (b->term == TERM_exit && b->exit != NO_EXIT) each(ctx, b->exit);
    GraphWalk w = walk_begin(g, x->sub[s]);
    while (walk_next(&w)) {
      const GraphNode *y = graph_node_at(g, w.node);
      if (y->exit != NO_EXIT) each(ctx, y->exit);
      for (u32 i = 0; i < node_subs(g, w.node); i++) {
        const GraphBlock *inner = &g->blocks.data[y->sub[i]];
        if (inner->term == TERM_exit && inner->exit != NO_EXIT) each(ctx, inner->exit);
      }
    }
  }
}

/* ---- inputs ---------------------------------------------------------------------------------------------- */

static void place_inputs(Compiler *c) {
  Graph *g = c->g;
  for (u32 i = 0; i < g->inputs.count; i++) {
    const GraphInput *in = &g->inputs.data[i];
    if (value_is_token(g, in->value) || in->input == UINT32_MAX) continue;
    ValueInfo *info = value_info(c, in->value);
    const ArrayType *t = value_type(g, in->value);
    info->where = AT_SLOT;
    info->slot = in->input;
    info->raw = t->rank > 0;
    info->owned = in->input < g->guards.inputs.count && g->guards.inputs.data[in->input].donate;
  }
  for (u32 i = 0; i < g->guards.inputs.count; i++) {
    u32 sym = g->guards.inputs.data[i].sym;
    if (g->guards.inputs.data[i].form == IN_size && sym < c->sym_count) c->sym_slot[sym] = i;
  }
}

/* Symbols that inputs carry; others follow where their values are made. */
static void place_unbacked(Compiler *c) {
  for (u32 i = 0; i < c->sym_count; i++) c->carriers |= c->g->sizes.syms.data[i].unbacked;
  for (u32 i = 0; i < c->g->inputs.count && c->carriers; i++)
    if (!value_is_token(c->g, c->g->inputs.data[i].value)) schedule_symbols(c, c->g->inputs.data[i].value);
}

/* ---- the region ------------------------------------------------------------------------------------------- */

static void note_size(void *ctx, Dim d) {
  Compiler *c = ctx;
  c->carriers |= size_is_unbacked(&c->g->sizes, d);
}

/* ---- the exits of loops --------------------------------------------------------------------------------------- */

/* The loop's own exit with other values in place of what it carries. *made: 0 when nothing is to be renamed. */
static bool renamed_exit(Compiler *c, NodeId n, u32 *map, bool results, u32 *made) {
  Graph *g = c->g;
  const GraphNode *x = graph_node_at(g, n);
  const GraphBlock *body = &g->blocks.data[x->sub[1]];
  u32 first, ncaps = node_captures(g, n, &first);
  for (u32 i = 0; i < x->carried; i++)
    map[body->params.data[i]] = results ? node_result(g, n, i) : node_operand(g, n, i);
  for (u32 k = 0; k < ncaps; k++) map[body->captures.data[k].inner] = node_operand(g, n, first + k);
  *made = exit_clone(&g->exits, x->exit, map, g->values.count);
  for (u32 i = 0; i < x->carried; i++) map[body->params.data[i]] = 0;
  for (u32 k = 0; k < ncaps; k++) map[body->captures.data[k].inner] = 0;
  if (*made == UINT32_MAX) return false;
  if (*made == x->exit) *made = 0;
  return true;
}

/* A loop that ends by its condition alone, which may be asked again: what it carries at the end is a state at its
 * head. */
static bool ends_at_head(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  for (NodeId k = block_first(g, x->sub[0]); k; k = node_next(g, k)) {
    const GraphNode *y = graph_node_at(g, k);
    if (y->kind != NODE_op || op_info(y->op)->family == FAM_random) return false;
  }
  for (u32 i = 0; i < x->carried; i++)
    if (value_is_token(g, node_operand(g, n, i))) return false;
  GraphWalk w = walk_begin(g, x->sub[1]);
  bool ends = g->blocks.data[x->sub[1]].term != TERM_break;
  while (walk_next(&w)) {
    const GraphNode *y = graph_node_at(g, w.node);
    ends &= y->kind != NODE_host;
    for (u32 s = 0; s < node_subs(g, w.node); s++) ends &= g->blocks.data[y->sub[s]].term != TERM_break;
  }
  return ends;
}

/* A loop can be left at its head before the first trip (of the root alone), and behind it, as if it were to look
 * once more whether it goes on: what stands before it is then not done again, so that what it updated need not be
 * kept as it was. */
static bool exits_of_loops(Compiler *c) {
  Graph *g = c->g;
  u32 nodes = g->nodes.count;
  c->enter = arena_alloc(&c->arena, sizeof *c->enter * 2 * (nodes + 1));
  u32 *map = mem_alloc_zero(c->alloc, sizeof *map * (g->values.count + 1));
  if (!c->enter || !map) {
    if (map) mem_free(c->alloc, map, sizeof *map * (g->values.count + 1));
    return false;
  }
  bool ok = true;
  memset(c->enter, 0, sizeof *c->enter * 2 * (nodes + 1));
  c->behind = c->enter + nodes + 1;
  GraphWalk w = walk_begin(g, 1);
  while (ok && walk_next(&w)) {
    const GraphNode *x = graph_node_at(g, w.node);
    if (x->kind != NODE_while || x->exit == NO_EXIT) continue;
    bool carriers = c->carriers;
    c->carriers = false;
    exit_sizes(&g->exits, x->exit, note_size, c);
    bool sized = c->carriers;
    c->carriers = carriers;
    if (sized) continue;
    if (x->block == 1) ok = renamed_exit(c, w.node, map, false, &c->enter[w.node]);
    if (ok && ends_at_head(g, w.node)) ok = renamed_exit(c, w.node, map, true, &c->behind[w.node]);
  }
  mem_free(c->alloc, map, sizeof *map * (g->values.count + 1));
  return ok;
}

static bool compiler_init(Compiler *c) {
  Graph *g = c->g;
  if (!exits_of_loops(c)) return false;
  if (!vec_reserve(c->alloc, (void **)&c->values.data, &c->values.cap, g->values.count + 1, sizeof *c->values.data))
    return false;
  c->values.count = g->values.count;
  for (u32 v = 0; v < c->values.count; v++) c->values.data[v] = (ValueInfo){.slot = NO_SLOT};
  c->classes = arena_alloc(&c->arena, g->nodes.count + 1);
  c->lowers = arena_alloc(&c->arena, g->nodes.count + 1);
  c->sym_count = g->sizes.syms.count;
  c->sym_slot = arena_alloc(&c->arena, sizeof *c->sym_slot * (c->sym_count + 1));
  if (!c->classes || !c->lowers || !c->sym_slot || !vec_push(c->alloc, &c->strides, 0)) return false;
  for (u32 i = 0; i < c->sym_count; i++) c->sym_slot[i] = NO_SLOT;
  u32 exits = g->exits.exits.count;
  if (!vec_reserve(c->alloc, (void **)&c->bound.data, &c->bound.cap, exits + 1, 1)) return false;
  memset(c->bound.data, 0, exits + 1);
  c->bound.count = exits;
  if (!vec_reserve(c->alloc, (void **)&c->eager.data, &c->eager.cap, g->nodes.count + 1, 1)) return false;
  memset(c->eager.data, 0, g->nodes.count + 1);
  c->eager.count = g->nodes.count;
  c->exit = g->entry_exit;
  return true;
}

static void compiler_free(Compiler *c) {
  vec_free(c->alloc, &c->values);
  vec_free(c->alloc, &c->strides);
  vec_free(c->alloc, &c->dim_keys);
  vec_free(c->alloc, &c->dim_slots);
  vec_free(c->alloc, &c->const_keys);
  vec_free(c->alloc, &c->const_slots);
  vec_free(c->alloc, &c->bound);
  vec_free(c->alloc, &c->eager);
  vec_free(c->alloc, &c->scratch);
  arena_free(&c->arena);
  if (c->plan) plan_free(c->vm, c->plan);
}

/* A step of the way begins: does it go on? */
static bool begins(Compiler *c) {
  if (toil_pass(c->toil)) toil_forever(c->toil);
  return compile_goes_on(c, 1) && !compile_late(c);
}

static void make_plan(Compiler *c) {
  Graph *g = c->g;
  place_inputs(c);
  place_unbacked(c);
  schedule_bind(c, g->entry_exit);
  if (native_region(c)) {
    schedule_step(c, STEP_exit, g->entry_exit); /* it leaves itself */
    return;
  }
  schedule_block(c, 1);
  if (compile_stopped(c)) return;
  const GraphBlock *root = &g->blocks.data[1];
  if (root->term != TERM_exit) {
    compile_unsupported(c, "a graph that does not end by an exit");
    return;
  }
  schedule_bind(c, root->exit);
  schedule_step(c, STEP_exit, root->exit);
}

/* The plan, then its kernels and natives. */
static void print_code(const Region *r, Buf *out) {
  const Plan *p = r->code;
  plan_print(p, out);
  for (u32 i = 0; i < p->kernels.count - p->hidden; i++) loops_print(p->kernels.data[i].self, out);
  for (u32 i = 0; i < p->natives.count; i++) loops_print(p->natives.data[i].self, out);
}

bool region_on_device(const Region *r, u32 device) {
  const Graph *g = r->graph;
  for (u32 i = 0; i < g->inputs.count; i++)
    if (!value_is_token(g, g->inputs.data[i].value) && value_type(g, g->inputs.data[i].value)->device == device)
      return true;
  return false;
}

/* Reductions of one kernel that are to read two blocks at once; where pages are prefetched, that gains nothing. */
static u32 abreast_most(VecLevel cpu) {
  if (cpu == VEC_AVX512) return !cpu_has(CPU_PAGES);
  return cpu == VEC_AVX2 && !cpu_has(CPU_FETCH) ? PAIRED_MOST : 0;
}

BackendResult compile_region(Vm *vm, JitState *state, const JitTarget *target, Region *r,
                             const CompileLimits *limits, Buf *why) {
  Compiler c = {.vm = vm, .alloc = &vm->alloc, .g = r->graph, .region = r, .limits = limits, .why = why,
                .toil = r->graph->toil};
  arena_init(&c.arena, c.alloc);
  if (limits && limits->nodes && graph_node_count(r->graph) > limits->nodes) {
    buf_puts(why, "too many nodes");
    return BACKEND_skip;
  }
  if (target->on_device && region_on_device(r, state->device->device)) c.device = state->device->device;
  if (limits && limits->device != DEV_CPU) {
    buf_puts(why, "another device than the processor");
    return BACKEND_unsupported;
  }
  if (limits && limits->ns && !limits->forced) c.deadline = now(limits) + limits->ns;
  c.code = code_new(vm, target, state);
  if (c.code) c.code->module.toil = c.toil;
  bool ok = c.code && graph_simplify(c.g) && decompose(&c) && pairs_split(&c) &&
            (compile_stopped(&c) || graph_simplify(c.g)) &&
            compiler_init(&c);
  if (!ok) c.failed = true;
  if (!compile_stopped(&c)) {
    c.plan = plan_new(vm, c.g);
    if (!c.plan) c.failed = true;
  }
  if (c.plan) {
    c.plan->code = c.code;
    c.plan->code_free = code_free;
  }
  if (begins(&c)) make_plan(&c);
  if (c.plan && c.plan->failed) c.failed = true;
  u32 shared = 0;
  if (begins(&c) && MECHANISM(vm, shared_bodies) && !plan_share(c.plan, &shared)) c.failed = true;
  if (begins(&c) && target->splits_reductions &&
      !plan_split_reductions(vm, c.plan, &c.code->module, abreast_most(state->cpu)))
    c.failed = true;
  if (begins(&c) && !c.code->target->link(vm, c.code, c.plan, why)) c.unsupported = true;
  if (begins(&c)) {
    c.plan->code_bytes = c.code->bytes;
    if (!counts_join(c.plan) || !blocks_join(c.plan) || !plan_finish(c.plan, why)) c.failed = true;
  }
  BackendResult result = toil_ended(c.toil) ? BACKEND_skip : c.failed ? BACKEND_fatal
                                            : c.unsupported ? (c.restart ? BACKEND_restart : BACKEND_unsupported)
                                            : c.late ? BACKEND_skip : BACKEND_ok;
  if (result == BACKEND_skip && !why->len) buf_puts(why, "compilation takes too long");
  if (c.code && (!c.plan || c.plan->code != c.code)) code_free(vm, c.code);
  if (result == BACKEND_ok) {
    plan_install(r, c.plan);
    vm->counters.at[STAT_shared] += shared;
    r->print = print_code;
    c.plan = NULL;
  }
  compiler_free(&c);
  return result;
}
