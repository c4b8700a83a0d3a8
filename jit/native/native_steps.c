/* native_steps.c — a native function in the plan: memory and arguments of its call, exits, where its results lie (see
 * native.h). */
#include "jit/native/native.h"
#include "lang/mechanisms.h"

/* Memory for elements that the function gives. */
static void alloc_elements(Compiler *c, u32 slot, const ArrayType *t, const NSplit *shape) {
  PlanArg dims[TYPE_MAX_RANK];
  for (u32 d = 0; d < shape->rank; d++) dims[d] = plan_arg_const(shape->dims[d]);
  u32 first = plan_args(c->plan, dims, shape->rank);
  PlanStep *s = schedule_step(c, STEP_alloc, NO_EXIT);
  s->dst = slot;
  s->dtype = t->dtype;
  s->aux = (u16)shape->rank;
  s->arg = first;
  s->nargs = shape->rank;
}

/* Where what was assumed does not hold, the loop as it is for any sizes does the work, or its own steps: "if", and
 * all but the call. */
static bool plan_otherwise(Native *n) {
  Compiler *c = n->c;
  SizePool *p = &n->g->sizes;
  Dim apart = 0;
  for (u32 i = 0; i < n->assumed.count; i++) {
    const SizeSym *s = &p->syms.data[n->assumed.data[i]];
    Dim at = s->dim, was = size_const(p, s->hint);
    apart = size_add(p, apart, size_min(p, 1, size_max(p, size_sub(p, at, was), size_sub(p, was, at))));
  }
  if (apart == DIM_NONE) {
    compile_unsupported(c, "a size expression that gets too large");
    return false;
  }
  PlanArg differs = schedule_dim(c, apart);
  if (differs.kind != PA_slot) return false;
  schedule_step(c, STEP_if, NO_EXIT)->src = differs.slot;
  ScheduleMark mark = schedule_mark(c);
  u32 kernels = c->plan->kernels.count, natives = c->plan->natives.count;
  if (!native_make_rows(c, n->node) && !compile_stopped(c)) control_steps(c, n->node);
  for (u32 i = kernels; i < c->plan->kernels.count; i++) c->plan->kernels.data[i].flags |= PK_COLD;
  for (u32 i = natives; i < c->plan->natives.count; i++) c->plan->natives.data[i].cold = true;
  schedule_forget(c, mark);
  schedule_step(c, STEP_else, NO_EXIT);
  return true;
}

/* Does a check or a block outside leave by it, too? What was unlinked is in no block. */
static bool leaves_outside(const Native *n, u32 exit) {
  const Graph *g = n->g;
  u32 nodes = g->nodes.count;
  bool outside = false;
  for (u32 k = 1; n->node && k < nodes + g->blocks.count && !outside; k++) {
    BlockId b = k < nodes ? g->nodes.data[k].block : k - nodes;
    if (k < nodes ? k == n->node || g->nodes.data[k].exit != exit : g->blocks.data[b].term != TERM_exit ||
        g->blocks.data[b].exit != exit)
      continue;
    while (b > 1 && g->blocks.data[b].node != n->node) b = g->nodes.data[g->blocks.data[b].node].block;
    outside = b == 1;
  }
  return outside;
}

/* Exits that are taken elsewhere, too, with their values in other slots: all of a loop that is there twice. */
static void own_exits(Native *n, bool twice) {
  Compiler *c = n->c;
  for (u32 i = 0; i < n->exits.count; i++) {
    NExit *e = &n->exits.data[i];
    if (e->exit == NO_EXIT || (e->exit == c->exit && n->node)) continue;
    if (!twice && !(e->binds.count && (c->bound.data[e->exit] || leaves_outside(n, e->exit)))) continue;
    e->exit = exit_copy(&n->g->exits, e->exit);
    while (e->exit != NO_EXIT && c->bound.count <= e->exit && !c->failed)
      if (!vec_push(c->alloc, &c->bound, 0)) compile_no_memory(c);
    if (e->exit == NO_EXIT) compile_no_memory(c);
  }
}

/* Memory of its own: of the sizes that its buffer says. */
static void alloc_temps(Native *n) {
  Compiler *c = n->c;
  for (u32 i = 0; i < n->buffers.count; i++) {
    const NBuffer b = n->buffers.data[i];
    PlanArg dims[TYPE_MAX_RANK];
    if (!b.temp || b.cell) continue;
    for (u32 d = 0; d < b.type.rank; d++) dims[d] = schedule_dim(c, b.type.dims[d]);
    u32 first = plan_args(c->plan, dims, b.type.rank);
    PlanStep *s = schedule_step(c, STEP_alloc, NO_EXIT);
    s->dst = b.slot;
    s->dtype = b.type.dtype;
    s->aux = b.type.rank;
    s->arg = first;
    s->nargs = b.type.rank;
  }
}

static bool leaves_by(const Graph *g, BlockId b, u32 exit) {
  bool leaves = g->blocks.data[b].term == TERM_exit && g->blocks.data[b].exit == exit;
  for (NodeId k = block_first(g, b); k && !leaves; k = node_next(g, k)) {
    const GraphNode *x = graph_node_at(g, k);
    leaves = x->exit == exit;
    for (u32 i = 0; i < COUNT_OF(x->sub) && !leaves; i++) leaves = x->sub[i] && leaves_by(g, x->sub[i], exit);
  }
  return leaves;
}

/* Is an exit of a region taken by checks alone that stand in front of everything that writes? */
static bool precedes_writes(const Graph *g, u32 exit) {
  bool found = false, wrote = false;
  for (NodeId k = block_first(g, 1); k; k = node_next(g, k)) {
    const GraphNode *x = graph_node_at(g, k);
    if (x->kind == NODE_check && x->exit == exit) {
      if (wrote) return false;
      found = true;
    } else if (x->exit == exit) {
      return false;
    }
    for (u32 i = 0; i < COUNT_OF(x->sub); i++)
      if (x->sub[i] && leaves_by(g, x->sub[i], exit)) return false;
    for (u32 i = 0; i < x->result_count; i++)
      wrote |= !value_is_token(g, node_result(g, k, i)) && value_type(g, node_result(g, k, i))->rank > 0;
  }
  return found;
}

typedef struct Needed {
  ValueId value;
  bool found;
} Needed;

static void needed(void *ctx, u32 value) {
  Needed *n = ctx;
  n->found |= value == n->value;
}

/* Does every state that the function may be left in set the module variable that `source` is in? Of a whole region
 * also: those behind its writes, and none of them wants the array as it was. A function that calls itself has put the
 * array back where it is left. */
static bool exits_set(const Native *n, const NBuffer *b, SourceId source) {
  const ExitTable *t = &n->g->exits;
  const ValueId array = b->from;
  const Source *items = n->g->guards.sources.items.data;
  SourceId root = source;
  if (n->c->limits && n->c->limits->exact) return false; /* inputs are compared afterwards */
  if (b->log && graph_node_at(n->g, n->node)->kind == NODE_recur) return source;
  while (items[root].parent) root = items[root].parent;
  for (u32 i = 0; i < n->exits.count && source; i++) {
    u32 exit = n->exits.data[i].exit;
    if (exit == NO_EXIT) return false;
    if (!n->node && precedes_writes(n->g, exit)) continue;
    Needed old = {array, false};
    if (!n->node) graph_exit_values(n->g, exit, needed, &old);
    if (old.found || !journal_last(t, t->exits.data[exit].journal, root)) return false;
  }
  return source;
}

static void plan_arrays(Native *n) {
  Compiler *c = n->c;
  alloc_temps(n);
  for (u32 i = 0; i < n->kept.count; i++)
    alloc_elements(c, n->kept.data[i].slot, &n->kept.data[i].type, n->kept.data[i].shape);
  for (u32 i = 0; i < n->buffers.count; i++)
    if (n->buffers.data[i].result)
      alloc_elements(c, n->buffers.data[i].slot, &n->buffers.data[i].type, n->buffers.data[i].shape);
  for (u32 pass = 0; pass < 2; pass++) /* what may fail comes first, while everything is where the exit looks for it */
    for (u32 i = 0; i < n->buffers.count; i++) {
      const NBuffer *b = &n->buffers.data[i];
      if (!b->written || b->temp) continue;
      const ValueInfo *from = value_info(c, b->from);
      bool dies = MECHANISM(c->vm, stores_in_place) && from->use.dies && !b->from_stays && !from->raw && !from->strides,
          take = dies && from->owned;
      if (take == pass) schedule_move(c, b->slot, b->from, take);
      if (pass) continue;
      PlanStep *s = schedule_step(c, STEP_unique, NO_EXIT);
      s->dst = take ? from->slot : b->slot;
      s->donated = dies && !b->by_value && exits_set(n, b, from->use.variable);
      s->index = s->donated ? from->use.variable : 0;
    }
}

static void plan_exits(Native *n, PlanNativeExit *exits) {
  Compiler *c = n->c;
  for (u32 i = 0; i < n->exits.count; i++) {
    NExit *e = &n->exits.data[i];
    exits[i] = (PlanNativeExit){.tag = n->fn->tag, .exit = i + 1, .plan_exit = e->exit, .slot_count = e->slots.count};
    exits[i].slot_first = plan_ids(c->plan, e->slots.data, e->slots.count);
    if (e->exit == NO_EXIT || (e->exit == c->exit && n->node)) continue;
    schedule_bind_with(c, e->exit, e->binds.data, e->binds.count, e->outer.data, e->outer.count);
  }
}

/* Results that are arrays; `twice`: they have slots already. */
static void plan_results(Native *n, bool twice) {
  Compiler *c = n->c;
  for (u32 i = 0; i < n->buffers.count; i++) {
    const NBuffer *b = &n->buffers.data[i];
    /* the last: nothing in the plan follows */
    if ((!b->written && !b->result) || b->temp || b->value == b->from) continue;
    ValueInfo *info = value_info(c, b->value);
    if (twice) {
      PlanStep *s = schedule_step(c, STEP_move, NO_EXIT);
      s->dst = info->slot;
      s->src = b->slot;
    } else {
      info->slot = b->slot;
      info->owned = true;
    }
  }
}

void native_steps(Native *n) {
  Compiler *c = n->c;
  Graph *g = n->g;
  Plan *p = c->plan;
  const GraphNode *x = graph_node_at(g, n->node);
  bool twice = n->assumed.count && plan_otherwise(n);
  if (compile_stopped(c)) return;
  own_exits(n, twice);
  ScheduleMark mark = schedule_mark(c);
  PlanNativeExit *exits = arena_alloc(&c->arena, sizeof *exits * (n->exits.count + 1));
  PlanArg *args = arena_alloc(&c->arena, sizeof *args * (n->args.count + 1));
  u32 *results = arena_alloc(&c->arena, sizeof *results * (x->result_count + 1)), count = 0;
  if (!exits || !args || !results || compile_stopped(c)) {
    if (!compile_stopped(c)) compile_no_memory(c);
    return;
  }
  /* a size may not fit: before the arrays move away from where exits look for them */
  for (u32 i = 0; i < n->args.count; i++) {
    const NArg *a = &n->args.data[i];
    if (a->kind == NARG_number) args[i] = plan_arg_slot(schedule_slot(c, a->value));
    else if (a->kind == NARG_dim) args[i] = schedule_dim(c, a->dim);
    else args[i] = plan_arg(n->buffers.data[a->buffer].cell ? PA_out : PA_data, n->buffers.data[a->buffer].slot, 0);
  }
  plan_arrays(n);
  if (!twice) plan_results(n, false);
  plan_exits(n, exits);
  for (u32 i = 0; i < x->result_count; i++) {
    ValueId v = node_result(g, n->node, i);
    if (value_type(g, v)->rank == 0) results[count++] = twice ? value_info(c, v)->slot : schedule_new_slot(c, v);
  }
  PlanNative made = {.self = n->fn, .nresults = count, .name = name_text(&n->fn->module->names, n->fn->name)};
  made.values = n->fn->nodes.count;
  made.levels = n->levels;
  made.recursions = n->recursions;
  for (u32 i = 0; i < n->callees.count; i++)
    if (n->callees.data[i]->nodes.count > made.values) made.values = n->callees.data[i]->nodes.count;
  const NodeId node = n->node ? n->node : block_first(g, 1);
  u32 number = plan_native(p, &made, exits, n->exits.count, &node, 1);
  for (u32 i = 0; i < n->buffers.count; i++) {
    const NBuffer *b = &n->buffers.data[i], *log = b->log ? &n->buffers.data[b->log - 1] : NULL;
    if (log)
      plan_undo(p, number, &(PlanUndo){b->slot, log[NLOG_places].slot, log[NLOG_old].slot,
                                       b->by_value ? NO_SLOT : log[NLOG_whole].slot, log[NLOG_count].slot});
  }
  for (u32 i = 0; i < n->callees.count; i++) { /* compiled with it; no step calls them */
    LoopFn *f = n->callees.data[i];
    PlanNative callee = {.self = f, .called = true, .nresults = f->results.count,
                         .name = name_text(&f->module->names, f->name)};
    (void)plan_native(p, &callee, NULL, 0, &node, 1);
  }
  for (u32 i = 0; i < n->kernels.count; i++) {
    LoopFn *f = n->kernels.data[i];
    PlanKernel kernel = {.self = f, .grain = 1, .flags = PK_CALLED, .name = name_text(&f->module->names, f->name)};
    (void)plan_kernel(p, &kernel, &node, 1);
  }
  c->vm->counters.at[STAT_raised] += n->raised;
  c->vm->counters.at[STAT_carried_picks] += n->carried;
  u32 first = plan_args(p, args, n->args.count), list = plan_ids(p, results, count);
  PlanStep *s = schedule_step(c, STEP_native, NO_EXIT);
  s->index = number;
  s->arg = first;
  s->nargs = n->args.count;
  s->list = list;
  s->nlist = count;
  s->node = node;
  for (u32 i = 0; i < n->kept.count; i++) schedule_step(c, STEP_free, NO_EXIT)->dst = n->kept.data[i].slot;
  for (u32 i = 0; i < n->buffers.count; i++)
    if ((n->buffers.data[i].temp && !n->buffers.data[i].cell) ||
        (n->buffers.data[i].by_value && n->buffers.data[i].value == n->buffers.data[i].from))
      schedule_step(c, STEP_free, NO_EXIT)->dst = n->buffers.data[i].slot;
  if (!twice) return;
  plan_results(n, true);
  schedule_step(c, STEP_end, NO_EXIT);
  schedule_forget(c, mark);
}
