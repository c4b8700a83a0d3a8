/* schedule_slots.c — what the steps of a plan refer to: slots of values, sizes and constants; what exits find
 * where; which updates may lie over the old version, since exits want no more of it than elements before the one
 * that is written. */
#include "jit/lower/kernel.h"

/* ---- steps, slots ------------------------------------------------------------------------------------ */

PlanStep *schedule_step(Compiler *c, PlanOp op, u32 exit) {
  PlanStep *s = plan_step(c->plan, op);
  s->exit = exit == NO_EXIT ? c->exit : exit;
  return s;
}

static u32 number_slot(Compiler *c, u32 dtype, bool weak, ValueId v) {
  PlanSlot s = {.dtype = (u8)dtype, .weak = weak, .value = v};
  return plan_slot(c->plan, &s);
}

PlanArg schedule_dim(Compiler *c, Dim d) {
  i64 k;
  u32 sym;
  if (compile_stopped(c)) return plan_arg_const(0);
  d = size_resolve(&c->g->sizes, d);
  if (dim_is_const(c, d, &k)) return plan_arg_const(k);
  if (size_is_sym(&c->g->sizes, d, &sym) && c->sym_slot[sym] != NO_SLOT) return plan_arg_slot(c->sym_slot[sym]);
  for (u32 i = c->dim_keys.count; i-- > 0;)
    if (c->dim_keys.data[i] == d) return plan_arg_slot(c->dim_slots.data[i]);
  u32 slot = number_slot(c, DT_i64, true, 0);
  PlanStep *s = schedule_step(c, STEP_size, NO_EXIT);
  s->dst = slot;
  u32 code = plan_code(c->plan, d, c->sym_slot);
  s->index = code;
  if (c->plan->failed) compile_no_memory(c);
  if (code == UINT32_MAX) compile_unsupported(c, "a size that is known only later");
  if (!vec_push(c->alloc, &c->dim_keys, d) || !vec_push(c->alloc, &c->dim_slots, slot)) compile_no_memory(c);
  return plan_arg_slot(slot);
}

ScheduleMark schedule_mark(const Compiler *c) { return (ScheduleMark){c->dim_keys.count, c->const_keys.count}; }
void schedule_forget(Compiler *c, ScheduleMark m) {
  c->dim_keys.count = c->dim_slots.count = m.dims;
  c->const_keys.count = c->const_slots.count = m.consts;
}

static u32 constant_slot(Compiler *c, ValueId v) {
  const GraphValue *gv = &c->g->values.data[v];
  const ArrayType *t = value_type(c->g, v);
  if (compile_stopped(c)) return 0;
  for (u32 i = c->const_keys.count; i-- > 0;)
    if (c->const_keys.data[i] == v) return c->const_slots.data[i];
  u32 slot = number_slot(c, t->dtype, t->weak, v);
  if (gv->origin == GV_const) {
    PlanStep *s = schedule_step(c, STEP_const, NO_EXIT);
    s->dst = slot;
    s->bits = gv->bits;
  } else if (t->dtype == DT_i64) {
    PlanArg a = schedule_dim(c, gv->dim);
    PlanStep *s = schedule_step(c, a.kind == PA_const ? STEP_const : STEP_copy, NO_EXIT);
    s->dst = slot;
    s->src = a.slot;
    s->bits = (u64)a.imm;
  } else {
    compile_unsupported(c, "a size as %s", dtype_name(t->dtype));
  }
  if (!vec_push(c->alloc, &c->const_keys, v) || !vec_push(c->alloc, &c->const_slots, slot)) compile_no_memory(c);
  return slot;
}

u32 schedule_slot(Compiler *c, ValueId v) {
  u8 origin = c->g->values.data[v].origin;
  if (origin == GV_const || origin == GV_size) return constant_slot(c, v);
  const ValueInfo *info = value_info(c, v);
  if (info->slot == NO_SLOT && !compile_stopped(c))
    compile_unsupported(c, "a value that is not there when it is needed");
  return info->slot;
}

u32 schedule_dense(Compiler *c, ValueId v) {
  u32 slot = schedule_slot(c, v);
  ValueInfo *info = value_info(c, v);
  if (compile_stopped(c) || !(info->raw || info->strides)) return slot;
  u32 to = info->owned ? slot : plan_slot_for(c->plan, v);
  PlanStep *s = schedule_step(c, STEP_dense, NO_EXIT);
  s->dst = to;
  s->src = slot;
  *info = (ValueInfo){.where = info->where, .slot = to, .owned = true, .wanted = info->wanted, .unit = info->unit,
                      .use = info->use};
  return to;
}

u32 schedule_new_slot(Compiler *c, ValueId v) {
  u32 slot = plan_slot_for(c->plan, v);
  ValueInfo *info = value_info(c, v);
  info->slot = slot;
  info->owned = true;
  info->raw = false;
  info->strides = 0;
  return slot;
}

void schedule_move(Compiler *c, u32 to, ValueId v, bool take) {
  bool number = type_is_number(value_type(c->g, v));
  u8 origin = c->g->values.data[v].origin;
  if (number && origin == GV_const) {
    PlanStep *s = schedule_step(c, STEP_const, NO_EXIT);
    s->dst = to;
    s->bits = c->g->values.data[v].bits;
    return;
  }
  u32 from = number ? schedule_slot(c, v) : schedule_dense(c, v);
  if (from == to) return;
  PlanStep *s = schedule_step(c, number ? STEP_copy : take && value_info(c, v)->owned ? STEP_move : STEP_keep, NO_EXIT);
  s->dst = to;
  s->src = from;
}

/* ---- exits ------------------------------------------------------------------------------------------------ */

typedef struct Binder {
  Compiler *c;
  VEC(RegionBind) binds;
} Binder;

typedef struct Maker {
  Compiler *c;
  ValueStack *stack;
} Maker;
static void push_maker(void *ctx, u32 v) {
  const Maker *m = ctx;
  if (!vec_push(m->c->alloc, m->stack, v)) compile_no_memory(m->c);
}
void schedule_push_makers(Compiler *c, ValueStack *stack, NodeId n) {
  Maker m = {c, stack};
  for (u32 i = 0; i < graph_node_at(c->g, n)->operand_count; i++) push_maker(&m, node_operand(c->g, n, i));
  node_size_values(c->g, n, push_maker, &m);
}

/* In a slot, or computed by the graph interpreter from what is: then that is bound too. */
static void bind_value(void *ctx, u32 v) {
  Binder *b = ctx;
  Compiler *c = b->c;
  ValueStack stack = {0};
  if (!vec_push(c->alloc, &stack, v)) compile_no_memory(c);
  while (stack.count && !compile_stopped(c)) {
    u32 at = stack.data[--stack.count];
    u8 origin = c->g->values.data[at].origin;
    if (origin == GV_const || origin == GV_size || value_is_token(c->g, at)) continue;
    bool seen = false;
    for (u32 i = 0; i < b->binds.count && !seen; i++) seen = b->binds.data[i].value == at;
    if (seen) continue;
    const ValueInfo *info = value_info(c, at);
    bool there = info->slot != NO_SLOT;
    if (!there && !value_node(c->g, at)) {
      compile_unsupported(c, "an exit needs a value that is not kept");
      break;
    }
    if (!vec_push(c->alloc, &b->binds, (RegionBind){at, there ? info->slot : BIND_NODE})) compile_no_memory(c);
    if (!there) schedule_push_makers(c, &stack, value_node(c->g, at));
  }
  vec_free(c->alloc, &stack);
}

static void bind_exit(Compiler *c, u32 exit, const RegionBind *binds, u32 count) {
  c->bound.data[exit] = 1;
  if (!compile_stopped(c) && !region_bind(c->vm, c->region, exit, binds, count)) compile_no_memory(c);
}

void schedule_bind_with(Compiler *c, u32 exit, const RegionBind *given, u32 count, const ValueId *others, u32 nothers) {
  if (exit == NO_EXIT || compile_stopped(c)) return;
  if (c->bound.data[exit]) {
    if (count) compile_unsupported(c, "an exit that is taken in two places");
    return;
  }
  Binder b = {.c = c};
  for (u32 i = 0; i < count; i++)
    if (!vec_push(c->alloc, &b.binds, given[i])) compile_no_memory(c);
  for (u32 i = 0; i < nothers; i++) bind_value(&b, others[i]);
  bind_exit(c, exit, b.binds.data, b.binds.count);
  vec_free(c->alloc, &b.binds);
}

void schedule_bind(Compiler *c, u32 exit) {
  if (exit == NO_EXIT || compile_stopped(c) || c->bound.data[exit]) return;
  Binder b = {.c = c};
  graph_exit_values(c->g, exit, bind_value, &b);
  bind_exit(c, exit, b.binds.data, b.binds.count);
  vec_free(c->alloc, &b.binds);
}

/* ---- elements that no exit counts ------------------------------------------------------------ */

/* Is `at` the number `count`, or that and some more? */
static bool is_from(const Graph *g, ValueId at, ValueId count) {
  for (u32 steps = 0; steps < 8 && at != count; steps++) {
    NodeId n = value_node(g, at);
    if (!n || graph_node_at(g, n)->kind != NODE_op || graph_node_at(g, n)->op != OP_add) return false;
    ValueId x = node_operand(g, n, 0), y = node_operand(g, n, 1);
    Value k;
    if (value_const(g, x, &k)) x = y;
    else if (!value_const(g, y, &k)) return false;
    if (k.kind != V_NUM || k.dtype != DT_i64 || k.i < 0) return false;
    at = x;
  }
  return at == count;
}

/* Whatever exits name of v are its elements before `at`. */
static bool counted_before(const Graph *g, ValueId v, ValueId at) {
  const ExitTable *t = &g->exits;
  for (u32 i = 1; i < t->recipes.count; i++) {
    const Recipe *r = &t->recipes.data[i];
    if ((r->kind != RCP_value && r->kind != RCP_items) || r->a != v) continue;
    const Recipe *count = r->kind == RCP_items && r->count ? &t->recipes.data[t->ids.data[r->first]] : NULL;
    if (!count || count->kind != RCP_value || !is_from(g, at, count->a)) return false;
  }
  for (u32 i = 0; i < g->sizes.syms.count; i++)
    if (g->sizes.syms.data[i].unbacked && g->sizes.syms.data[i].source == v) return false;
  return true;
}

/* A parameter of the loop's body, or what another update of it made. */
static bool is_own(Compiler *c, BlockId b, ValueId v) {
  const GraphBlock *block = &c->g->blocks.data[b];
  NodeId n = value_node(c->g, v);
  const ValueInfo *info = value_info(c, v);
  if (n)
    return graph_node_at(c->g, n)->block == b && graph_node_at(c->g, n)->kind == NODE_update &&
           info->where == AT_SLOT && info->wanted;
  bool carried = false;
  for (u32 i = 0; i < block->params.count; i++) carried |= block->params.data[i] == v;
  for (u32 i = 0; i < block->captures.count; i++) carried &= block->captures.data[i].inner != v;
  return carried && info->owned && block->node && graph_node_at(c->g, block->node)->kind == NODE_while;
}

bool schedule_writes_behind(Compiler *c, BlockId b, NodeId n) {
  const Graph *g = c->g;
  const GraphNode *x = graph_node_at(g, n);
  const GraphAttr *index = NULL;
  ValueId base = node_operand(g, n, 0), v = node_result(g, n, 0);
  for (u32 i = 0; i < x->attr_count; i++)
    if (node_attr(g, n, i)->kind == ATTR_index) index = node_attr(g, n, i);
  if (x->op != OP_none || !index || index->count != 1 || index->items[0].kind != INDEX_int ||
      index->items[0].part[0] != PART_operand)
    return false;
  if (!is_own(c, b, base) || !value_info(c, v)->wanted) return false;
  ValueId at = node_operand(g, n, (u32)index->items[0].at[0]);
  for (ValueId old = base;; old = node_operand(g, value_node(g, old), 0)) {
    if (!counted_before(g, old, at)) return false;
    if (!value_node(g, old) || !value_info(c, old)->use.over) break;
  }
  return true;
}

/* ---- sizes that values carry ----------------------------------------------------------------- */

void schedule_symbols(Compiler *c, ValueId v) {
  const SizePool *p = &c->g->sizes;
  if (v >= c->values.count || value_info(c, v)->slot == NO_SLOT) return;
  for (u32 i = 0; i < p->syms.count && i < c->sym_count && !compile_stopped(c); i++) {
    if (!p->syms.data[i].unbacked || p->syms.data[i].source != v) continue;
    u32 slot = value_info(c, v)->slot;
    if (value_type(c->g, v)->rank) {
      PlanStep *s = schedule_step(c, STEP_dim, NO_EXIT);
      s->src = slot;
      s->aux = p->syms.data[i].axis;
      slot = number_slot(c, DT_i64, true, 0);
      c->plan->steps.data[c->plan->steps.count - 1].dst = slot;
    }
    c->sym_slot[i] = slot;
    plan_symbol(c->plan, i, slot);
  }
}
