/* schedule.c — units of a block become steps of the plan: memory, lifetimes, the order of things (slots:
 * schedule_slots.c).
 *
 * Lifetimes. `use.last` of a value is DURING of the last unit whose work reads its slot, BEFORE it when only the
 * steps before the work (allocation, sizes) may still leave by an exit that needs it, LEAVING when what is inside of
 * a construct may. An array that dies in the work of a unit may donate its memory to a result of the same shape,
 * provided the kernel reads it at the same index alone. One that nobody wants behind a cond belongs to its arms,
 * where exits are the only ones that may ask for what it was. */
#include "jit/lower/kernel.h"

#include <stdlib.h>
#include <string.h>

#define BEFORE(unit) (4 * (unit))
#define DURING(unit) (4 * (unit) + 1)
#define LEAVING(unit) (4 * (unit) + 2)

typedef struct Death {
  ValueId value;
  u32 when;
} Death;

typedef struct Block {
  Compiler *c;
  Graph *g;
  BlockId id;
  Partition part;
  VEC(Kernel) kernels;
  u32 *kernel_of; /* by unit: the first of its kernels; one more entry at the end */
  VEC(Death) dead; /* arrays in the order in which they die */
  u32 unit;
  bool donated; /* captures are its own */
} Block;

/* ---- lifetimes -------------------------------------------------------------------------------------------- */

static void live_until(Block *b, ValueId v, u32 when) {
  ValueInfo *info = value_info(b->c, v);
  if (info->use.last < when) info->use.last = when;
}

static void read_until(Block *b, ValueId v, u32 when) {
  ValueInfo *info = value_info(b->c, v);
  live_until(b, v, when);
  if (info->use.read < when) info->use.read = when;
}

typedef struct ExitLife {
  Block *b;
  u32 when;
  bool unbacked; /* there are sizes that values carry */
  ValueStack stack, inside; /* of exit_value_lives, for all values of an exit */
} ExitLife;

/* Does block `b` lie around `inner`, or is it that block? */
static bool lies_around(const Graph *g, BlockId b, BlockId inner) {
  while (inner && inner != b) inner = g->blocks.data[inner].parent;
  return inner != 0;
}

/* A value of the block in a slot by then: a late update is not, yet. */
static bool is_stored(Compiler *c, ValueId v, u32 when) {
  const ValueInfo *info = value_info(c, v);
  return info->where == AT_SLOT && info->wanted && BEFORE(info->unit) <= when;
}

/* What is not stored is recomputed from what is: that lives as long. So does what carries a size that a block
 * inside speaks of. Blocks around keep what they made; what lies inside, but the value itself, has its life decided
 * there. Of that, `last` may come from another block, whose units have other numbers. */
static void exit_value_lives(void *ctx, u32 v) {
  ExitLife *e = ctx;
  Compiler *c = e->b->c;
  e->stack.count = e->inside.count = 0;
  if (!vec_push(c->alloc, &e->stack, v)) compile_no_memory(c);
  while (e->stack.count && !compile_stopped(c)) {
    u32 at = e->stack.data[--e->stack.count];
    ValueInfo *info = value_info(c, at);
    u32 last = info->use.last;
    if (at != v && info->use.read < e->when) info->use.read = e->when;
    const GraphValue *x = &c->g->values.data[at];
    NodeId n = x->origin == GV_result ? value_node(c->g, at) : 0;
    BlockId in = n ? graph_node_at(c->g, n)->block : x->origin == GV_param ? x->def : 0;
    bool around = !in || lies_around(c->g, in, e->b->id);
    if (last >= e->when && (around || info->use.told == e->b->id)) continue; /* what it is made of was seen, too */
    info->use.last = e->when;
    info->use.told = e->b->id;
    if (x->origin == GV_const || x->origin == GV_size) continue;
    if (!around && at != v && !(vec_push(c->alloc, &e->inside, at) && vec_push(c->alloc, &e->inside, last)))
      compile_no_memory(c);
    if (n && (in == e->b->id ? !is_stored(c, at, e->when) : !around && e->unbacked))
      schedule_push_makers(c, &e->stack, n);
  }
  for (u32 i = 0; i + 1 < e->inside.count; i += 2) {
    ValueUse *use = &value_info(c, e->inside.data[i])->use;
    use->last = e->inside.data[i + 1];
    use->told = 0;
  }
}

/* What the exit finds in the slots of arrays that the block was donated, by whatever name, lives. */
static void exit_donated_lives(void *ctx, u32 v) {
  const ExitLife *e = ctx;
  Compiler *c = e->b->c;
  const GraphBlock *block = &c->g->blocks.data[e->b->id];
  ValueStack stack = {0};
  if (!vec_push(c->alloc, &stack, v)) compile_no_memory(c);
  c->questions++;
  while (stack.count && !compile_stopped(c)) {
    u32 at = stack.data[--stack.count], slot = value_info(c, at)->slot;
    if (value_info(c, at)->use.asked == c->questions) continue;
    value_info(c, at)->use.asked = c->questions;
    const GraphValue *x = &c->g->values.data[at];
    NodeId n = value_node(c->g, at);
    if (x->origin == GV_const || x->origin == GV_size ||
        (n && graph_node_at(c->g, n)->block == e->b->id && is_stored(c, at, e->when)))
      continue;
    for (u32 i = 0; i < block->captures.count; i++)
      if (slot != NO_SLOT && value_info(c, block->captures.data[i].inner)->slot == slot)
        live_until(e->b, block->captures.data[i].inner, e->when);
    if (slot != NO_SLOT) continue;
    if (n) schedule_push_makers(c, &stack, n);
    else if (x->origin == GV_param && x->def)
      for (u32 i = 0; i < c->g->blocks.data[x->def].captures.count; i++)
        if (c->g->blocks.data[x->def].captures.data[i].inner == at &&
            !vec_push(c->alloc, &stack, c->g->blocks.data[x->def].captures.data[i].outer))
          compile_no_memory(c);
  }
  vec_free(c->alloc, &stack);
}

static void exit_lives(void *ctx, u32 exit) {
  ExitLife *e = ctx;
  graph_exit_values(e->b->g, exit, exit_value_lives, e);
  vec_free(e->b->c->alloc, &e->stack);
  vec_free(e->b->c->alloc, &e->inside);
  if (e->b->donated) graph_exit_values(e->b->g, exit, exit_donated_lives, e);
}

/* A loop all of whose loops and checks name an exit never leaves by that of the block around. */
static bool has_own_exits(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  if (x->kind != NODE_while || x->exit == NO_EXIT) return false;
  for (u32 s = 0; s < 2; s++) {
    GraphWalk w = walk_begin(g, x->sub[s]);
    while (walk_next(&w)) {
      const GraphNode *y = graph_node_at(g, w.node);
      if ((y->kind == NODE_while || y->kind == NODE_check || y->kind == NODE_recur) && y->exit == NO_EXIT) return false;
    }
  }
  return true;
}

/* The exit of a unit's steps that have none of their own: a loop of the root leaves at its head. */
static u32 unit_exit(const Block *b, const Unit *unit, u32 now) {
  u32 enter = b->id == 1 && unit->kind == UNIT_control && has_own_exits(b->g, unit->node) ? b->c->enter[unit->node] : 0;
  return enter ? enter : now;
}

typedef struct Stored {
  Block *b;
  u32 unit;
  bool all;
} Stored;

/* In a slot by then, or made again from what is. What gets its slot only later would be bound as something to make
 * again, and what it is made of might be gone. */
static void exit_value_stored(void *ctx, u32 v) {
  Stored *s = ctx;
  Compiler *c = s->b->c;
  ValueStack stack = {0};
  if (!vec_push(c->alloc, &stack, v)) compile_no_memory(c);
  for (u32 steps = 0; stack.count && s->all && !compile_stopped(c); steps++) {
    u32 at = stack.data[--stack.count];
    const GraphValue *x = &c->g->values.data[at];
    if (x->origin == GV_const || x->origin == GV_size || value_is_token(c->g, at)) continue;
    NodeId n = value_node(c->g, at);
    BlockId in = n ? graph_node_at(c->g, n)->block : x->def;
    const ValueInfo *info = value_info(c, at);
    if (!n && in == s->b->id) continue;
    bool stored = in == s->b->id ? info->where == AT_SLOT && info->wanted : info->slot != NO_SLOT;
    bool again = n && !stored && graph_node_at(c->g, n)->kind <= NODE_index; /* blocks around keep what it is made of */
    if (again) schedule_push_makers(c, &stack, n);
    s->all = steps < 64 && (again || (stored && (in != s->b->id || info->unit <= s->unit)));
  }
  vec_free(c->alloc, &stack);
}

/* The exit behind an update, a cond or a loop, for the steps that come: where all it names is to be had by then. */
static u32 exit_behind(Block *b, u32 unit) {
  const Unit *u = &b->part.units.data[unit];
  u32 exit = u->kind == UNIT_update || (u->kind == UNIT_control && graph_node_at(b->g, u->node)->kind == NODE_cond)
                 ? graph_node_at(b->g, u->node)->exit : NO_EXIT;
  if (u->kind == UNIT_control && b->c->behind[u->node]) exit = b->c->behind[u->node];
  Stored s = {b, unit, true};
  if (exit != NO_EXIT) graph_exit_values(b->g, exit, exit_value_stored, &s);
  return s.all ? exit : NO_EXIT;
}

static bool is_settle(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  return x->kind == NODE_host && g->hosts.data[x->host].kind == HOST_settle;
}

/* An ordinary array in a slot of its own, once its unit is done: what a control structure gives or takes in, and
 * updates of that. */
static bool is_ordinary(const Block *b, ValueId v) {
  const Graph *g = b->g;
  for (;;) {
    if (g->values.data[v].origin == GV_param) return g->values.data[v].def == b->id;
    NodeId n = value_node(g, v);
    if (!n || graph_node_at(g, n)->block != b->id) return false;
    const u8 kind = graph_node_at(g, n)->kind;
    if (kind != NODE_update) return kind == NODE_while || kind == NODE_cond || kind == NODE_recur;
    v = node_operand(g, n, 0);
  }
}

/* Does handing on the block's results never leave? Else an array may have to be made for it, or a size. */
static bool gives_for_sure(const Block *b) {
  const GraphBlock *block = &b->g->blocks.data[b->id];
  bool sure = block->term == TERM_yield;
  for (u32 i = 0; i < block->term_count && sure; i++) {
    ValueId v = block_result(b->g, b->id, i);
    if (value_is_token(b->g, v)) continue;
    sure = type_is_number(value_type(b->g, v)) ? b->g->values.data[v].origin != GV_size : is_ordinary(b, v);
  }
  return sure;
}

static void find_lifetimes(Block *b) {
  Graph *g = b->g;
  bool unbacked = false;
  u32 now = b->c->exit;
  for (u32 i = 0; i < g->sizes.syms.count; i++) unbacked |= g->sizes.syms.data[i].unbacked;
  for (u32 u = 1; u < b->part.units.count; u++) {
    const Unit *unit = &b->part.units.data[u];
    u32 when = DURING(u);
    if (unit->kind == UNIT_kernel || unit->kind == UNIT_scan || unit->kind == UNIT_join) {
      u32 parts = b->kernel_of[u + 1];
      for (u32 k = b->kernel_of[u]; k < parts; k++) {
        const Kernel *kernel = &b->kernels.data[k];
        for (u32 i = 0; i < kernel->args.count; i++)
          if (kernel->args.data[i].kind == KA_in || kernel->args.data[i].kind == KA_number)
            read_until(b, kernel->args.data[i].value, when);
      }
    } else {
      for (u32 i = 0; i < graph_node_at(g, unit->node)->operand_count; i++)
        read_until(b, node_operand(g, unit->node, i), when);
    }
    ExitLife e = {.b = b, .when = when, .unbacked = unbacked};
    bool leaves_late = false; /* by the block's exit, in the middle of its work */
    if (unit->kind == UNIT_kernel) {
      for (u32 i = 0; i < unit->nodes.count; i++) each_exit_of(g, unit->nodes.data[i], exit_lives, &e);
    } else if (unit->kind == UNIT_control || unit->kind == UNIT_effect) {
      /* what it takes in must be kept, not changed; a function that calls itself puts back what it changed */
      e.when = graph_node_at(g, unit->node)->kind == NODE_recur ? when : LEAVING(u);
      each_exit_of(g, unit->node, exit_lives, &e);
      leaves_late = !has_own_exits(g, unit->node);
    }
    if (unit->kind == UNIT_effect && is_settle(g, unit->node)) now = graph_node_at(g, unit->node)->exit;
    u32 exit = unit_exit(b, unit, now);
    if (exit != NO_EXIT) {
      e.when = leaves_late ? LEAVING(u) : BEFORE(u);
      exit_lives(&e, exit);
    }
    u32 behind = exit_behind(b, u);
    if (behind != NO_EXIT) now = behind;
  }
  const GraphBlock *block = &g->blocks.data[b->id];
  if (b->donated && now != NO_EXIT && !gives_for_sure(b))
    graph_exit_values(g, now, exit_donated_lives,
                      &(ExitLife){.b = b, .when = BEFORE(b->part.units.count), .unbacked = unbacked});
  for (u32 i = 0; i < block->term_count; i++) read_until(b, block_result(g, b->id, i), UINT32_MAX);
  if (block->term == TERM_exit && block->exit != NO_EXIT)
    exit_lives(&(ExitLife){.b = b, .when = UINT32_MAX, .unbacked = unbacked}, block->exit);
}

/* Appending to the columns of a list: an exit that wants the old list finds it in what is as long, or longer. */
static void find_written_over(Block *b) {
  Compiler *c = b->c;
  for (u32 u = 1; u < b->part.units.count; u++) {
    const Unit *unit = &b->part.units.data[u];
    if (unit->kind != UNIT_update) continue;
    ValueUse *old = &value_info(c, node_operand(b->g, unit->node, 0))->use,
        *new = &value_info(c, node_result(b->g, unit->node, 0))->use;
    new->over = old->last > DURING(u) && old->read <= DURING(u) && schedule_writes_behind(c, b->id, unit->node);
    if (new->over && new->last < old->last) new->last = old->last;
  }
  for (u32 u = b->part.units.count; u-- > 1;) { /* one slot, which is given up with the newest version */
    const Unit *unit = &b->part.units.data[u];
    if (unit->kind != UNIT_update) continue;
    const ValueUse *new = &value_info(c, node_result(b->g, unit->node, 0))->use;
    if (new->over) value_info(c, node_operand(b->g, unit->node, 0))->use.last = new->last;
  }
}

/* ---- kernels ------------------------------------------------------------------------------------------------ */

static bool needs_kernel(const Block *b, const Unit *u) {
  if (u->kind != UNIT_kernel) return u->kind == UNIT_scan || u->kind == UNIT_join;
  for (u32 i = 0; i < u->nodes.count; i++) {
    NodeId n = u->nodes.data[i];
    if (graph_node_at(b->g, n)->kind == NODE_check || value_info(b->c, node_result(b->g, n, 0))->wanted) return true;
  }
  return false; /* all of it is computed where it is used */
}

/* Backwards, so that a kernel knows which of its values later ones read. `*again`: a node turned out to have no
 * kernel. */
static bool build_kernels(Block *b, bool *again) {
  Compiler *c = b->c;
  u32 units = b->part.units.count;
  for (u32 u = units; u-- > 1;) {
    Unit *unit = &b->part.units.data[u];
    u32 parts = unit->kind == UNIT_join ? graph_node_at(b->g, unit->node)->operand_count : needs_kernel(b, unit);
    b->kernel_of[u] = 0;
    for (u32 p = 0; p < parts; p += unit->kind == UNIT_join ? join_run(c, unit->node, p) : 1) {
      Kernel k;
      bool ok = kernel_build(c, unit, u, p, &k);
      if (ok && vec_push(c->alloc, &b->kernels, k)) {
        b->kernel_of[u]++;
        continue;
      }
      if (ok) {
        compile_no_memory(c);
      } else if (!compile_stopped(c) && k.bad && !node_is_eager(c, k.bad)) {
        c->eager.data[k.bad] = 1;
        *again = true;
      } else if (!compile_stopped(c)) { /* memory that was refused, or time used up, is no reason of this kind */
        compile_unsupported(c, "%s", k.why ? k.why : "a loop nest");
      }
      kernel_free(c, &k);
      return false;
    }
  }
  u32 n = b->kernels.count, at = 0;
  for (u32 i = 0; i < n / 2; i++) {
    Kernel t = b->kernels.data[i];
    b->kernels.data[i] = b->kernels.data[n - 1 - i];
    b->kernels.data[n - 1 - i] = t;
  }
  for (u32 u = 1; u <= units; u++) {
    u32 parts = u < units ? b->kernel_of[u] : 0;
    b->kernel_of[u] = at;
    at += parts;
  }
  return true;
}

/* A dying operand whose memory the result may have. */
static ValueId dying_operand(Block *b, const Kernel *k, ValueId result, const ValueId *taken, u32 ntaken) {
  Compiler *c = b->c;
  const ArrayType *r = value_type(b->g, result);
  for (u32 i = 0; i < k->args.count; i++) {
    const KernelArg *a = &k->args.data[i];
    if (a->kind != KA_in || !a->same) continue;
    const ValueInfo *info = value_info(c, a->value);
    const ArrayType *t = value_type(b->g, a->value);
    if (!info->owned || info->strides || info->use.last > DURING(b->unit)) continue;
    if (dtype_bytes(t->dtype) != dtype_bytes(r->dtype) || t->rank != r->rank ||
        !dims_same(c, t->rank, t->dims, r->dims))
      continue;
    bool used = false;
    for (u32 j = 0; j < ntaken && !used; j++) used = value_info(c, taken[j])->slot == info->slot;
    if (!used) return a->value;
  }
  return 0;
}

static void alloc_result(Block *b, ValueId v, ValueId from) {
  Compiler *c = b->c;
  const ArrayType t = *value_type(b->g, v);
  PlanArg args[TYPE_MAX_RANK];
  for (u32 d = 0; d < t.rank; d++) args[d] = schedule_dim(c, t.dims[d]);
  u32 dims = plan_args(c->plan, args, t.rank), old = from ? schedule_slot(c, from) : 0, slot = schedule_new_slot(c, v);
  PlanStep *s = schedule_step(c, from ? STEP_donate : STEP_alloc, NO_EXIT);
  s->dst = slot;
  s->src = old;
  s->dtype = t.dtype;
  s->aux = t.rank;
  s->arg = dims;
  s->nargs = t.rank;
}

static void kernel_step(Block *b, const Kernel *k, bool in_place) {
  Compiler *c = b->c;
  const Unit *u = &b->part.units.data[b->unit];
  u32 n = k->args.count + 2;
  PlanArg *args = arena_alloc(&c->arena, sizeof *args * n);
  if (!args) {
    compile_no_memory(c);
    return;
  }
  args[0] = plan_arg_const(0);
  args[1] = schedule_dim(c, k->trips);
  for (u32 i = 0; i < k->args.count; i++) {
    const KernelArg *a = &k->args.data[i];
    PlanArg *to = &args[i + 2];
    switch (a->kind) {
      case KA_dim: *to = schedule_dim(c, a->dim); break;
      case KA_number: *to = plan_arg_slot(schedule_slot(c, a->value)); break;
      case KA_out_number:
        *to = plan_arg(PA_out, schedule_slot(c, a->value), 0);
        to->dtype = value_type(b->g, a->value)->dtype;
        break;
      default: *to = plan_arg(PA_data, schedule_slot(c, a->value), 0);
    }
  }
  PlanKernel made = {.self = k->fn, .grain = k->grain, .flags = in_place ? PK_INPLACE : 0,
                     .name = name_text(&k->fn->module->names, k->fn->name)};
  made.bytes_per_trip = 8 * k->work_per_trip;
  made.flops_per_trip = k->work_per_trip;
  u32 number = plan_kernel(c->plan, &made, u->nodes.data, u->nodes.count), first = plan_args(c->plan, args, n);
  for (u32 i = 0; i < k->checks.count; i++) {
    u32 exit = graph_node_at(b->g, k->checks.data[i].node)->exit;
    schedule_bind(c, exit == NO_EXIT ? c->exit : exit);
  }
  u32 list = c->plan->checks.count;
  for (u32 i = 0; i < k->checks.count; i++) {
    u32 exit = graph_node_at(b->g, k->checks.data[i].node)->exit;
    if (!vec_push(c->alloc, &c->plan->checks, (PlanCheck){i, exit == NO_EXIT ? c->exit : exit})) compile_no_memory(c);
  }
  PlanStep *s = schedule_step(c, STEP_kernel, NO_EXIT);
  s->index = number;
  s->arg = first;
  s->nargs = n;
  s->list = list;
  s->nlist = k->checks.count;
  s->node = u->node;
}

/* An empty `min` or `argmax` is an error, which the eager code raises; not where the node says otherwise. */
static void check_not_empty(Block *b, NodeId n) {
  Compiler *c = b->c;
  const GraphNode *x = graph_node_at(b->g, n);
  if (x->kind != NODE_op || op_info(x->op)->check != CHECK_empty || x->total) return;
  const ArrayType t = *value_type(b->g, node_operand(b->g, n, 0));
  GraphArg args[OP_MAX_PARAMS];
  u32 mask;
  node_args(b->g, n, args);
  if (!arg_axes(&args[1], t.rank, &mask)) return;
  for (u32 d = 0; d < t.rank; d++) {
    if (!(mask >> d & 1) || size_prove(&b->g->sizes, REL_lt, 0, t.dims[d]) == TRUTH_always) continue;
    PlanArg less = schedule_dim(c, size_sub(&b->g->sizes, t.dims[d], 1));
    schedule_bind(c, c->exit);
    u32 arg = plan_args(c->plan, &less, 1);
    PlanStep *s = schedule_step(c, STEP_check, NO_EXIT);
    s->aux = CHECK_nonneg;
    s->arg = arg;
    s->nargs = 1;
    s->node = n;
  }
}

static void kernel_unit(Block *b) {
  Compiler *c = b->c;
  const Unit *u = &b->part.units.data[b->unit];
  for (u32 i = 0; i < u->nodes.count; i++) check_not_empty(b, u->nodes.data[i]);
  for (u32 at = b->kernel_of[b->unit]; at < b->kernel_of[b->unit + 1]; at++)
    for (u32 i = 0; i < b->kernels.data[at].by_row.count; i++) check_not_empty(b, b->kernels.data[at].by_row.data[i]);
  for (u32 at = b->kernel_of[b->unit]; at < b->kernel_of[b->unit + 1] && !compile_stopped(c); at++) {
    const Kernel *k = &b->kernels.data[at];
    bool first = at == b->kernel_of[b->unit];
    ValueId taken[16];
    u32 ntaken = 0;
    for (u32 i = 0; i < k->args.count; i++) { /* what may be refused comes before anything is donated */
      const KernelArg *a = &k->args.data[i];
      if (a->kind == KA_in) (void)schedule_dense(c, a->value);
      if (a->kind == KA_number) (void)schedule_slot(c, a->value);
      if (a->kind == KA_dim) (void)schedule_dim(c, a->dim);
      if (a->kind == KA_out_number) (void)schedule_new_slot(c, a->value);
    }
    (void)schedule_dim(c, k->trips);
    for (u32 i = 0; i < k->args.count && !compile_stopped(c); i++) {
      const KernelArg *a = &k->args.data[i];
      if (a->kind != KA_out || (u->kind == UNIT_join && !first)) continue;
      ValueId from = u->kind == UNIT_kernel && !k->checks.count &&
                     ntaken < COUNT_OF(taken) ? dying_operand(b, k, a->value, taken, ntaken) : 0;
      if (from) taken[ntaken++] = from;
      alloc_result(b, a->value, from);
    }
    if (!compile_stopped(c)) kernel_step(b, k, ntaken > 0);
  }
}

/* ---- views ------------------------------------------------------------------------------------------------------ */

/* The strides of a view: how its element number moves with each index, found by asking where unit steps lead. */
static void view_unit(Block *b) {
  Compiler *c = b->c;
  Graph *g = b->g;
  NodeId n = b->part.units.data[b->unit].node;
  ValueId base = node_operand(g, n, 0), v = node_result(g, n, 0);
  const ArrayType t = *value_type(g, v);
  ValueInfo *info = value_info(c, v);
  if (!info->wanted) return;
  Dim offset, strides[TYPE_MAX_RANK];
  const char *why = NULL;
  if (!kernel_view_strides(c, n, &offset, strides, &why)) {
    if (!compile_stopped(c)) compile_unsupported(c, "%s", why ? why : "a view");
    return;
  }
  if (value_info(c, base)->raw) (void)schedule_dense(c, base);
  PlanArg args[2 * TYPE_MAX_RANK + 1];
  args[0] = schedule_dim(c, offset);
  for (u32 d = 0; d < t.rank; d++) {
    args[1 + d] = schedule_dim(c, t.dims[d]);
    args[1 + t.rank + d] = schedule_dim(c, strides[d]);
  }
  u32 arg = plan_args(c->plan, args, 2u * t.rank + 1), from = schedule_slot(c, base), slot = schedule_new_slot(c, v);
  info = value_info(c, v);
  PlanStep *s = schedule_step(c, STEP_view, NO_EXIT);
  s->dst = slot;
  s->src = from;
  s->dtype = t.dtype;
  s->aux = t.rank;
  s->arg = arg;
  s->nargs = 2u * t.rank + 1;
  s->node = n;
  info->strides = c->strides.count;
  for (u32 d = 0; d < t.rank; d++)
    if (!vec_push(c->alloc, &c->strides, strides[d])) compile_no_memory(c);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static PlanArg schedule_number_arg(Compiler *c, ValueId v) {
  const GraphValue *x = &c->g->values.data[v];
  Value number;
  if (x->origin == GV_size) return schedule_dim(c, x->dim);
  return value_const(c->g, v, &number) ? plan_arg_const(number.i) : plan_arg_slot(schedule_slot(c, v));
}

static void number_unit(Block *b) {
  Compiler *c = b->c;
  NodeId n = b->part.units.data[b->unit].node;
  ValueId v = node_result(b->g, n, 0);
  if (!value_info(c, v)->wanted) return;
  PlanArg args[2];
  for (u32 i = 0; i < 2; i++) args[i] = schedule_number_arg(c, node_operand(b->g, n, i));
  u32 arg = plan_args(c->plan, args, 2), slot = schedule_new_slot(c, v);
  PlanStep *s = schedule_step(c, STEP_number, NO_EXIT);
  s->dst = slot;
  s->aux = graph_node_at(b->g, n)->op;
  s->arg = arg;
  s->nargs = 2;
  s->node = n;
}

/* ---- eager code ------------------------------------------------------------------------------ */

static void push_arg(Compiler *c, PlanArg a) {
  if (!vec_push(c->alloc, &c->scratch, a)) compile_no_memory(c);
}

static void push_value(Compiler *c, ValueId v) { push_arg(c, plan_arg(PA_value, schedule_slot(c, v), 0)); }

static u32 take_args(Compiler *c, u32 *count) {
  *count = c->scratch.count;
  u32 first = plan_args(c->plan, c->scratch.data, c->scratch.count);
  c->scratch.count = 0;
  return first;
}

static void extern_unit(Block *b) {
  Compiler *c = b->c;
  Graph *g = b->g;
  NodeId n = b->part.units.data[b->unit].node;
  const GraphNode *x = graph_node_at(g, n);
  GraphArg args[OP_MAX_PARAMS];
  node_args(g, n, args);
  if (!c->vm->ops[x->op].eager) {
    compile_unsupported(c, "%s has no lowering and no eager kernel", op_name(x->op));
    return;
  }
  for (u32 p = 0; p < op_info(x->op)->nparams; p++) {
    const GraphArg *a = &args[p];
    switch (a->kind) {
      case ARG_value: push_value(c, a->value); break;
      case ARG_list:
        push_arg(c, (PlanArg){.kind = PA_list, .imm = a->count});
        for (u32 i = 0; i < a->count; i++) push_value(c, a->values[i]);
        break;
      case ARG_attr: push_arg(c, (PlanArg){.kind = PA_attr, .imm = a->attr - g->attrs.data}); break;
      default: push_arg(c, (PlanArg){.kind = PA_hole});
    }
  }
  u32 count, first = take_args(c, &count), ids[16];
  if (x->result_count > COUNT_OF(ids)) {
    compile_unsupported(c, "%s with %u results", op_name(x->op), x->result_count);
    return;
  }
  for (u32 i = 0; i < x->result_count; i++) {
    ids[i] = schedule_new_slot(c, node_result(g, n, i));
    value_info(c, node_result(g, n, i))->raw = value_type(g, node_result(g, n, i))->rank > 0;
  }
  schedule_bind(c, c->exit);
  bool parts = x->result_count > 1 || op_info(x->op)->gives_list;
  u32 list = parts ? plan_ids(c->plan, ids, x->result_count) : 0;
  PlanStep *s = schedule_step(c, STEP_extern, NO_EXIT);
  s->aux = x->op;
  s->arg = first;
  s->nargs = count;
  s->node = n;
  if (parts) {
    s->list = list;
    s->nlist = x->result_count;
  } else {
    s->dst = ids[0];
  }
}

static u32 index_attr(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  for (u32 i = 0; i < x->attr_count; i++)
    if (node_attr(g, n, i)->kind == ATTR_index) return x->attr_first + i;
  return 0;
}

static bool leaves_no_more(Block *b);

/* What the value was read from, when that is a module variable, or lies in what one holds, of which no exit but by the
 * journal tells; 0. */
static SourceId variable_of(const Graph *g, ValueId v, SourceId *root) {
  SourceId source = 0;
  for (u32 i = 0; i < g->inputs.count; i++)
    if (g->inputs.data[i].value == v && g->inputs.data[i].input != UINT32_MAX)
      source = g->guards.inputs.data[g->inputs.data[i].input].source;
  const Source *items = g->guards.sources.items.data;
  for (*root = source; items[*root].parent; *root = items[*root].parent)
    if (items[*root].kind != SRC_field && items[*root].kind != SRC_item && items[*root].kind != SRC_column) return 0;
  if (!source || items[*root].kind != SRC_global) return 0;
  for (SourceId s = source; s; s = items[s].parent)
    if (exits_read(&g->exits, s)) return 0;
  return source;
}

SourceId schedule_variable(const Compiler *c, ValueId v) {
  const ExitTable *t = &c->g->exits;
  SourceId root, source = variable_of(c->g, v, &root);
  return source && journal_last(t, t->exits.data[c->g->blocks.data[1].exit].journal, root) ? source : 0;
}

/* Is `base` an array that only a module variable names, or what it holds, and that every state behind the unit
 * sets? Then it may be written in place, though it is counted there. *value: the recipe of what is set. */
static SourceId donated_by(Block *b, ValueId base, const Recipe **value) {
  Graph *g = b->g;
  const ExitTable *t = &g->exits;
  u32 exit = exit_behind(b, b->unit);
  if (exit == NO_EXIT) exit = g->blocks.data[b->id].term == TERM_exit ? g->blocks.data[b->id].exit : NO_EXIT;
  if (b->id != 1 || exit == NO_EXIT || value_info(b->c, base)->use.last > DURING(b->unit) || !leaves_no_more(b))
    return 0;
  SourceId root, source = variable_of(g, base, &root);
  JournalId j = source ? journal_last(t, t->exits.data[exit].journal, root) : 0;
  if (!j) return 0;
  *value = &t->recipes.data[t->journal.data[j].value];
  return source;
}

static bool is_donated(Block *b, NodeId n) {
  const Recipe *r;
  return donated_by(b, node_operand(b->g, n, 0), &r) && r->kind == RCP_value && r->a == node_result(b->g, n, 0);
}

static void index_unit(Block *b) {
  Compiler *c = b->c;
  Graph *g = b->g;
  NodeId n = b->part.units.data[b->unit].node;
  const GraphNode *x = graph_node_at(g, n);
  bool update = x->kind == NODE_update;
  ValueId base = node_operand(g, n, 0), v = node_result(g, n, 0);
  u32 from = schedule_slot(c, base);
  for (u32 i = 1; i < x->operand_count; i++) push_value(c, node_operand(g, n, i));
  u32 count, first = take_args(c, &count);
  schedule_bind(c, c->exit);
  bool donated = update && is_donated(b, n);
  bool over = update && value_info(c, v)->use.over;
  if (update && !donated && !over) { /* the old version is given up: where it is still needed, a count of it is */
    const ValueInfo *info = value_info(c, base);
    if (!info->owned || info->use.last > DURING(b->unit)) {
      u32 kept = plan_slot_for(c->plan, base);
      PlanStep *k = schedule_step(c, STEP_keep, NO_EXIT);
      k->dst = kept;
      k->src = from;
      from = kept;
    }
  }
  bool raw = value_info(c, base)->raw || value_info(c, base)->strides || !update;
  u32 slot = over ? from : schedule_new_slot(c, v);
  value_info(c, v)->slot = slot;
  value_info(c, v)->owned = true;
  value_info(c, v)->raw = raw && value_type(g, v)->rank > 0;
  PlanStep *s = schedule_step(c, update ? STEP_update : STEP_index, NO_EXIT);
  s->dst = slot;
  s->src = from;
  s->aux = update ? x->op : 0;
  s->donated = donated;
  s->arg = first;
  s->nargs = count;
  s->index = index_attr(g, n);
  s->node = n;
}

/* Is there nothing behind the unit that may leave by the exit before it? */
static bool leaves_no_more(Block *b) {
  const GraphBlock *block = &b->g->blocks.data[b->id];
  if (exit_behind(b, b->unit) != NO_EXIT) return true;
  bool last = b->unit + 1 == b->part.units.count;
  for (u32 i = 0; i < block->term_count && last; i++) {
    const ValueInfo *info = value_info(b->c, block_result(b->g, b->id, i));
    last = !info->raw && !info->strides;
  }
  return last;
}

/* An array that nobody wants behind a cond: its arms may write to it. */
static bool may_donate(Block *b, NodeId n, ValueId v) {
  Compiler *c = b->c;
  const ValueInfo *info = value_info(c, v);
  if (graph_node_at(b->g, n)->kind != NODE_cond || !info->owned || info->use.last > LEAVING(b->unit) ||
      !leaves_no_more(b))
    return false;
  u32 names = 0; /* under which the arms know it */
  for (u32 i = 0; i < graph_node_at(b->g, n)->operand_count; i++)
    names += value_info(c, node_operand(b->g, n, i))->slot == info->slot;
  return names == 1;
}

/* Everything that code inside may read is an ordinary array before. */
static void control_unit(Block *b) {
  Compiler *c = b->c;
  NodeId n = b->part.units.data[b->unit].node;
  const GraphNode *x = graph_node_at(b->g, n);
  schedule_bind(c, c->exit);
  for (u32 i = 0; i < x->operand_count; i++) {
    ValueId v = node_operand(b->g, n, i);
    if (value_is_token(b->g, v)) continue;
    (void)(type_is_number(value_type(b->g, v)) ? schedule_slot(c, v) : schedule_dense(c, v));
    value_info(c, v)->use.dies = value_info(c, v)->use.last <= DURING(b->unit);
    const Recipe *r;
    value_info(c, v)->use.donated = value_type(b->g, v)->rank && may_donate(b, n, v);
    value_info(c, v)->use.variable = value_type(b->g, v)->rank ? donated_by(b, v, &r) : 0;
  }
  if (compile_stopped(c) || native_control(c, n)) return;
  if (!compile_stopped(c)) control_steps(c, n);
}

static void effect_unit(Block *b) {
  Compiler *c = b->c;
  Graph *g = b->g;
  NodeId n = b->part.units.data[b->unit].node;
  const GraphNode *x = graph_node_at(g, n);
  for (u32 i = 0; i < x->operand_count; i++)
    if (!value_is_token(g, node_operand(g, n, i))) push_value(c, node_operand(g, n, i));
  u32 count, first = take_args(c, &count), slot = 0;
  if (x->result_count > 2) {
    compile_unsupported(c, "a host function with several results");
    return;
  }
  for (u32 i = 0; i < x->result_count; i++) {
    ValueId v = node_result(g, n, i);
    if (value_is_token(g, v)) continue;
    slot = schedule_new_slot(c, v);
    value_info(c, v)->raw = value_type(g, v)->rank > 0;
  }
  schedule_bind(c, x->exit == NO_EXIT ? c->exit : x->exit);
  if (is_settle(g, n)) c->exit = x->exit;
  PlanStep *s = schedule_step(c, STEP_effect, x->exit);
  s->dst = slot;
  s->arg = first;
  s->nargs = count;
  s->index = x->host;
  s->node = n;
}

/* ---- sizes that values carry ----------------------------------------------------------------- */

static void unit_symbols(Block *b) {
  const Unit *u = &b->part.units.data[b->unit];
  u32 count = u->nodes.count ? u->nodes.count : 1;
  for (u32 i = 0; i < count; i++) {
    NodeId n = u->nodes.count ? u->nodes.data[i] : u->node;
    for (u32 k = 0; k < graph_node_at(b->g, n)->result_count; k++) {
      ValueId v = node_result(b->g, n, k);
      if (!value_is_token(b->g, v)) schedule_symbols(b->c, v);
    }
  }
}

/* ---- the block ------------------------------------------------------------------------------- */

/* Arrays of the block that nobody reads any more. */
static void free_dead(Block *b, u32 *freed) {
  Compiler *c = b->c;
  for (; *freed < b->dead.count && b->dead.data[*freed].when <= DURING(b->unit); ++*freed) {
    u32 slot = value_info(c, b->dead.data[*freed].value)->slot;
    if (slot == NO_SLOT) continue;
    schedule_step(c, STEP_free, NO_EXIT)->dst = slot;
  }
}

static int by_time(const void *x, const void *y) {
  const Death *a = x, *b = y;
  return a->when != b->when ? (a->when < b->when ? -1 : 1) : a->value < b->value ? -1 : a->value > b->value;
}

static void note_death(Block *b, ValueId v, u32 made) {
  const ArrayType *t = value_is_token(b->g, v) ? NULL : value_type(b->g, v);
  const ValueInfo *info = value_info(b->c, v);
  if (!t || type_is_number(t) || !info->wanted || info->use.last == UINT32_MAX) return;
  u32 when = info->use.last > DURING(made) ? info->use.last | 1 : DURING(made);
  if (!vec_push(b->c->alloc, &b->dead, (Death){v, when})) compile_no_memory(b->c);
}

static void find_deaths(Block *b) {
  Graph *g = b->g;
  for (u32 u = 1; u < b->part.units.count; u++) {
    const Unit *unit = &b->part.units.data[u];
    u32 count = unit->nodes.count ? unit->nodes.count : 1;
    for (u32 i = 0; i < count; i++) {
      NodeId n = unit->nodes.count ? unit->nodes.data[i] : unit->node;
      for (u32 r = 0; r < graph_node_at(g, n)->result_count; r++) note_death(b, node_result(g, n, r), u);
    }
  }
  if (b->id == 1)
    for (u32 i = 0; i < g->inputs.count; i++) {
      ValueId v = g->inputs.data[i].value;
      if (!value_is_token(g, v) && value_info(b->c, v)->owned) note_death(b, v, 0);
    }
  if (b->dead.count) qsort(b->dead.data, b->dead.count, sizeof *b->dead.data, by_time);
}

static void run_units(Block *b) {
  Compiler *c = b->c;
  u32 freed = 0;
  for (b->unit = 1; b->unit < b->part.units.count && !compile_stopped(c) && !compile_late(c); b->unit++) {
    const Unit *u = &b->part.units.data[b->unit];
    switch ((UnitKind)u->kind) {
      case UNIT_kernel:
      case UNIT_scan:
      case UNIT_join: kernel_unit(b); break;
      case UNIT_view: view_unit(b); break;
      case UNIT_number: number_unit(b); break;
      case UNIT_index:
      case UNIT_update: index_unit(b); break;
      case UNIT_extern: extern_unit(b); break;
      case UNIT_control: {
        u32 outer = c->exit;
        c->exit = unit_exit(b, u, outer);
        control_unit(b);
        c->exit = outer;
        break;
      }
      case UNIT_effect: effect_unit(b); break;
    }
    if (b->c->carriers && !compile_stopped(c)) unit_symbols(b);
    u32 behind = exit_behind(b, b->unit);
    if (behind != NO_EXIT) {
      schedule_bind(c, behind);
      c->exit = behind;
    }
    free_dead(b, &freed);
  }
}

void schedule_block(Compiler *c, BlockId id) {
  bool again = true;
  for (u32 tries = 0; again && !compile_stopped(c); tries++) {
    Block b = {.c = c, .g = c->g, .id = id};
    u32 fns = c->code->module.fns.count;
    again = false;
    for (u32 i = 0; i < c->g->blocks.data[id].captures.count; i++)
      b.donated |= value_info(c, c->g->blocks.data[id].captures.data[i].inner)->owned;
    for (u32 i = 0; c->carriers && i < c->g->blocks.data[id].params.count; i++)
      schedule_symbols(c, c->g->blocks.data[id].params.data[i]);
    if (partition_block(c, id, &b.part)) {
      b.kernel_of = mem_alloc_zero(c->alloc, sizeof *b.kernel_of * (b.part.units.count + 1));
      if (!b.kernel_of) compile_no_memory(c);
      else if (build_kernels(&b, &again)) {
        find_lifetimes(&b);
        find_written_over(&b);
        find_deaths(&b);
        run_units(&b);
      } else if (again) {
        loop_module_truncate(&c->code->module, fns, c->code->module.tables.count);
      }
    }
    for (u32 i = 0; i < b.kernels.count; i++) kernel_free(c, &b.kernels.data[i]);
    vec_free(c->alloc, &b.kernels);
    vec_free(c->alloc, &b.dead);
    if (b.kernel_of) mem_free(c->alloc, b.kernel_of, sizeof *b.kernel_of * (b.part.units.count + 1));
    partition_free(c, &b.part);
  }
}
