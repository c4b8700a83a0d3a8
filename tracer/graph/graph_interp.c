/* graph_interp.c — the reference interpreter of the graph: nodes through the VM's eager kernels, control nodes over
 * their blocks, checks to exits (see graph.h). It is slow and says what the graph means: every result is compared
 * with the type that tracing gave it. */
#include <math.h>
#include <string.h>

#include "tracer/graph/graph.h"

/* calls of a function by itself inside each other, on the C stack; levels kept free for each */
enum { SELF_MOST = 200, SELF_ROOM = 8 };

typedef enum Flow { FLOW_END, FLOW_NEXT, FLOW_BREAK, FLOW_EXIT, FLOW_ERROR } Flow;

WeftStatus run_init(GraphRun *r, Vm *vm, const Graph *g) {
  *r = (GraphRun){.vm = vm, .graph = g, .count = g->values.count, .limit_exit = g->entry_exit, .exit = NO_EXIT};
  r->values = mem_alloc(&vm->alloc, sizeof *r->values * r->count);
  r->syms = mem_alloc_zero(&vm->alloc, sizeof *r->syms * (g->sizes.syms.count + 1));
  r->known = mem_alloc_zero(&vm->alloc, g->sizes.syms.count + 1);
  for (u32 i = 0; i < r->count && r->values; i++) r->values[i] = value_hole();
  if (!r->values || !r->syms || !r->known) {
    run_free(r);
    return vm_error_memory(vm);
  }
  return WEFT_OK;
}

void run_free(GraphRun *r) {
  Vm *vm = r->vm;
  for (u32 i = 0; i < r->count && r->values; i++) value_drop(vm, r->values[i]);
  mem_free(&vm->alloc, r->values, sizeof *r->values * r->count);
  mem_free(&vm->alloc, r->syms, sizeof *r->syms * (r->graph->sizes.syms.count + 1));
  mem_free(&vm->alloc, r->known, r->graph->sizes.syms.count + 1);
  r->values = NULL;
}

/* ---- values and sizes ------------------------------------------------------------------------------ */

/* Unbacked symbols that this value carries get their number. */
static void learn_symbols(GraphRun *r, ValueId v) {
  const SizePool *p = &r->graph->sizes;
  for (u32 s = 0; s < p->syms.count; s++) {
    if (!p->syms.data[s].unbacked || p->syms.data[s].source != v) continue;
    Value x = r->values[v];
    if (x.kind == V_NUM) {
      r->syms[s] = x.i;
      r->known[s] = 1;
    } else if (x.kind == V_ARRAY) {
      u32 axis = p->syms.data[s].axis;
      if (axis >= array_rank(x.array)) continue;
      r->syms[s] = x.array->geometry[axis];
      r->known[s] = 1;
    }
  }
}

void run_set(GraphRun *r, ValueId v, Value value) {
  value_drop(r->vm, r->values[v]);
  r->values[v] = value;
  learn_symbols(r, v);
}

typedef struct Unknown {
  const GraphRun *r;
  bool found;
} Unknown;

static void interp_look(void *ctx, u32 sym) {
  Unknown *u = ctx;
  u->found |= !u->r->known[sym];
}

WeftStatus run_size(GraphRun *r, Dim d, i64 *out) {
  Unknown u = {r, false};
  size_symbols(&r->graph->sizes, d, interp_look, &u);
  if (u.found) return vm_error(r->vm, EK_unsupported, "a size is not known where it is needed");
  if (!size_eval_wrapped(&r->graph->sizes, d, r->syms, out)) return vm_error(r->vm, EK_value, "a size is out of range");
  return WEFT_OK;
}

/* Borrowed. Constants and sizes are made on the spot. */
static WeftStatus value_at(GraphRun *r, ValueId v, Value *out) {
  const GraphValue *x = &r->graph->values.data[v];
  const ArrayType *t = type_of(r->graph, x->type);
  switch (x->origin) {
    case GV_const:
      *out = (Value){.kind = V_NUM, .dtype = t->dtype, .flags = t->weak ? VF_WEAK : 0, .bits = x->bits};
      return WEFT_OK;
    case GV_size: {
      i64 n;
      if (run_size(r, x->dim, &n) != WEFT_OK) return WEFT_ERROR;
      Value num = value_i64(n);
      *out = t->dtype == DT_i64 ? num : num_convert_unchecked(num, t->dtype);
      if (t->weak) out->flags |= VF_WEAK;
      return WEFT_OK;
    }
    default:
      *out = r->values[v];
      if (out->kind == V_HOLE) return vm_error(r->vm, EK_unsupported, "a value is not there where it is needed");
      return WEFT_OK;
  }
}

static bool has_type(const GraphRun *r, ValueId id, Value v) {
  const ArrayType *t = value_type(r->graph, id);
  if (value_is_token(r->graph, id)) return v.kind == V_NIL;
  if (value_is_scalar(v)) return t->rank == 0 && v.dtype == t->dtype && ((v.flags & VF_WEAK) != 0) == t->weak;
  if (v.kind != V_ARRAY || array_dtype(v.array) != t->dtype || array_rank(v.array) != t->rank) return false;
  i64 n;
  for (u32 d = 0; d < t->rank; d++) {
    Unknown u = {r, false};
    size_symbols(&r->graph->sizes, t->dims[d], interp_look, &u);
    if (!u.found && size_eval(&r->graph->sizes, t->dims[d], r->syms, &n) && n != v.array->geometry[d]) return false;
  }
  return true;
}

/* Consumes value. A number is made strong where the type says so: carried values and merged branches may be. */
static WeftStatus put(GraphRun *r, ValueId id, Value value, const char *what) {
  const ArrayType *t = value_type(r->graph, id);
  if (t && !t->weak && value_is_scalar(value)) value.flags = (u8)(value.flags & ~VF_WEAK);
  /* as verified */
  if (t && t->weak && value_is_scalar(value) && (strcmp(what, "index") == 0 || strcmp(what, "positive") == 0))
    value.flags |= VF_WEAK;
  value_drop(r->vm, r->values[id]);
  r->values[id] = value;
  learn_symbols(r, id);
  if (has_type(r, id, value)) return WEFT_OK;
  Buf want;
  buf_init(&want, &r->vm->alloc);
  if (t) type_print(r->graph, r->graph->values.data[id].type, &want);
  vm_error(r->vm, EK_unsupported,
           "the graph interpreter: %s should give %s, it gives %s of rank %u", what, buf_text(&want),
           value.kind == V_NUM || value.kind == V_ARRAY ? dtype_name(value.dtype) : value_type_name(value),
           value.kind == V_ARRAY ? array_rank(value.array) : 0);
  buf_free(&want);
  r->vm->error.final = true; /* a defect, not a failed check: it must be seen */
  return WEFT_ERROR;
}

static void size_from_inputs(GraphRun *r, u32 sym) {
  const Graph *g = r->graph;
  SourceId source = g->sizes.syms.data[sym].source;
  if (!source || source >= g->guards.sources.items.count) return;
  const Source *s = &g->guards.sources.items.data[source];
  for (u32 i = 0; i < g->inputs.count; i++) {
    if (g->inputs.data[i].input == UINT32_MAX) continue;
    SourceId from = g->guards.inputs.data[g->inputs.data[i].input].source;
    Value v = r->values[g->inputs.data[i].value];
    if (from == source && v.kind == V_NUM) r->syms[sym] = v.i;
    else if (s->kind == SRC_size && from == s->parent && v.kind == V_ARRAY && s->index < array_rank(v.array))
      r->syms[sym] = v.array->geometry[s->index];
    else continue;
    r->known[sym] = 1;
    return;
  }
}

void run_inputs(GraphRun *r, const u64 *slots) {
  const Graph *g = r->graph;
  for (u32 i = 0; i < g->guards.inputs.count; i++) {
    u32 sym = g->guards.inputs.data[i].sym;
    if (g->guards.inputs.data[i].form != IN_size || sym >= g->sizes.syms.count) continue;
    r->syms[sym] = (i64)slots[i];
    r->known[sym] = 1;
  }
  for (u32 i = 0; i < g->inputs.count; i++) {
    const GraphInput *in = &g->inputs.data[i];
    if (in->input == UINT32_MAX) {
      run_set(r, in->value, value_nil());
      continue;
    }
    Value v = value_of_slot(g, in->value, slots[in->input]);
    /* an empty slot: given away before */
    if (v.kind == V_NUM || slots[in->input]) run_set(r, in->value, value_keep(v));
  }
  /* sizes that are no inputs of their own, from the arrays that have them */
  for (u32 s = 0; s < g->sizes.syms.count; s++)
    if (!r->known[s] && !g->sizes.syms.data[s].unbacked) size_from_inputs(r, s);
}

/* ---- arguments -------------------------------------------------------------------------------------- */

static WeftStatus size_of_run(void *ctx, Dim d, u32 position, i64 *out) {
  (void)position;
  return run_size(ctx, d, out);
}

static WeftStatus arg_value(GraphRun *r, const GraphArg *a, Value *out) {
  Value v;
  switch (a->kind) {
    case ARG_value:
      if (value_at(r, a->value, &v) != WEFT_OK) return WEFT_ERROR;
      *out = value_keep(v);
      return WEFT_OK;
    case ARG_list:
      if (!list_new(r->vm, a->count, out)) return WEFT_ERROR;
      for (u32 i = 0; i < a->count; i++)
        if (value_at(r, a->values[i], &v) != WEFT_OK || !list_push(r->vm, out, value_keep(v))) {
          value_drop(r->vm, *out);
          *out = value_hole();
          return WEFT_ERROR;
        }
      return WEFT_OK;
    case ARG_attr: return attr_value(&(AttrSource){r->vm, size_of_run, NULL, r}, a->attr, out);
    default: *out = value_hole(); return WEFT_OK;
  }
}

/* ---- operations ------------------------------------------------------------------------------------- */

/* Several results come as a list. Consumes out. */
static WeftStatus put_results(GraphRun *r, NodeId n, Value out, const char *what) {
  const GraphNode *x = &r->graph->nodes.data[n];
  WeftStatus status = WEFT_OK;
  if (x->result_count == 1 && out.kind != V_LIST) return put(r, x->result_first, out, what);
  if (out.kind != V_LIST || out.list->count != x->result_count)
    status = vm_error(r->vm, EK_unsupported, "the graph interpreter: %s gives another number of results", what);
  for (u32 i = 0; i < x->result_count && status == WEFT_OK; i++)
    status = put(r, x->result_first + i, value_keep(out.list->items[i]), what);
  value_drop(r->vm, out);
  return status;
}

/* The largest elements of an array without elements: sums, which are 0, less infinity. */
static WeftStatus top_of_nothing(Vm *vm, const Value *max, Value *out) {
  Value sum[OP_MAX_PARAMS], less[2] = {value_hole(), value_weak_f64(INFINITY)};
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) sum[i] = i < op_info(OP_max)->nparams ? max[i] : value_hole();
  WeftStatus status = vm_op(vm, OP_sum, sum, &less[0]);
  if (status == WEFT_OK) status = vm_op(vm, OP_subtract, less, out);
  value_drop(vm, less[0]);
  return status;
}

static WeftStatus run_op(GraphRun *r, NodeId n) {
  const GraphNode *x = &r->graph->nodes.data[n];
  GraphArg args[OP_MAX_PARAMS];
  Value values[OP_MAX_PARAMS], out = value_hole();
  u32 nparams = op_info(x->op)->nparams, made = 0;
  WeftStatus status = WEFT_OK;
  node_args(r->graph, n, args);
  for (; made < nparams && status == WEFT_OK; made++) {
    values[made] = value_hole();
    status = arg_value(r, &args[made], &values[made]);
  }
  if (status == WEFT_OK)
    status = x->op == OP_stop_gradient ? (out = value_keep(values[0]), WEFT_OK)
             : x->total && values[0].kind == V_ARRAY && values[0].array->size == 0
                 ? top_of_nothing(r->vm, values, &out)
                 : op_of_graph(r->vm, x->op, values, &out);
  for (u32 i = 0; i < made; i++) value_drop(r->vm, values[i]);
  return status == WEFT_OK ? put_results(r, n, out, op_name(x->op)) : status;
}

typedef struct NodeRun {
  GraphRun *r;
  NodeId n;
} NodeRun;

static WeftStatus size_of_node(void *ctx, Dim d, u32 position, i64 *out) {
  (void)position;
  return run_size(((NodeRun *)ctx)->r, d, out);
}
static WeftStatus operand_of_node(void *ctx, u32 number, Value *out) {
  NodeRun *x = ctx;
  return value_at(x->r, node_operand(x->r->graph, x->n, number), out);
}

static WeftStatus run_index(GraphRun *r, NodeId n) {
  const GraphNode *x = &r->graph->nodes.data[n];
  const GraphAttr *a = node_attr(r->graph, n, 0);
  NodeRun ctx = {r, n};
  u8 items[INDEX_MAX_ITEMS];
  Value base, value, out, regs[INDEX_MAX_REGS];
  if (value_at(r, node_operand(r->graph, n, 0), &base) != WEFT_OK) return WEFT_ERROR;
  if (attr_index(&(AttrSource){r->vm, size_of_node, operand_of_node, &ctx}, a, items, regs) != WEFT_OK)
    return WEFT_ERROR;
  if (x->kind == NODE_index) {
    if (vm_index(r->vm, base, items, a->count, regs, &out) != WEFT_OK) return WEFT_ERROR;
    return put(r, x->result_first, out, "index");
  }
  if (value_at(r, node_operand(r->graph, n, x->operand_count - 1), &value) != WEFT_OK) return WEFT_ERROR;
  if (attr_update(r->vm, x->op, value_keep(base), items, a->count, regs, value_keep(value), &out) != WEFT_OK) {
    value_drop(r->vm, out);
    return WEFT_ERROR;
  }
  return put(r, x->result_first, out, "update");
}

/* ---- checks ----------------------------------------------------------------------------------------- */

/* Every element of an array of the processor; b is a number. */
static bool all_hold(u32 check, Array *x, Value b) {
  u32 rank = array_rank(x);
  i64 at[ARRAY_MAX_RANK] = {0}, offset = 0;
  for (i64 i = 0; i < x->size; i++) {
    if (!check_holds(check, array_load(x, offset), b)) return false;
    for (u32 d = rank; d-- > 0;) {
      offset += array_strides(x)[d];
      if (++at[d] < array_dims(x)[d]) break;
      offset -= array_strides(x)[d] * at[d];
      at[d] = 0;
    }
  }
  return true;
}

static Flow run_check(GraphRun *r, NodeId n) {
  const GraphNode *x = &r->graph->nodes.data[n];
  Value a, b = value_i64(0);
  if (value_at(r, node_operand(r->graph, n, 0), &a) != WEFT_OK) return FLOW_ERROR;
  if (x->operand_count > 1 && value_at(r, node_operand(r->graph, n, 1), &b) != WEFT_OK) return FLOW_ERROR;
  bool holds = false;
  if (a.kind != V_ARRAY) {
    holds = check_holds(x->op, a, b);
  } else if (array_device(a.array) == DEV_CPU) {
    holds = all_hold(x->op, a.array, b);
  } else {
    Value here;
    if (array_from_device(r->vm, a.array, &here) != WEFT_OK) return FLOW_ERROR;
    holds = all_hold(x->op, here.array, b);
    value_drop(r->vm, here);
  }
  if (holds) return FLOW_END;
  r->exit = x->exit;
  return FLOW_EXIT;
}

/* ---- control ---------------------------------------------------------------------------------------- */

static Flow run_block(GraphRun *r, BlockId b);

static bool give(GraphRun *r, ValueId to, ValueId from) {
  Value v;
  return value_at(r, from, &v) == WEFT_OK && put(r, to, value_keep(v), "a block") == WEFT_OK;
}

/* Captures of block b from the node's last operands. */
static bool give_captures(GraphRun *r, NodeId n, BlockId b) {
  const Graph *g = r->graph;
  u32 first, count = node_captures(g, n, &first);
  for (u32 i = 0; i < count; i++)
    if (!give(r, g->blocks.data[b].captures.data[i].inner, node_operand(g, n, first + i))) return false;
  return true;
}

/* Values of the terminator that ended the last block, all read before any is written. */
static bool take_values(GraphRun *r, u32 from, u32 count, Value *out) {
  for (u32 i = 0; i < count; i++) {
    Value v;
    if (value_at(r, block_result(r->graph, r->term, from + i), &v) != WEFT_OK) {
      while (i-- > 0) value_drop(r->vm, out[i]);
      return false;
    }
    out[i] = value_keep(v);
  }
  return true;
}

/* Consumes all values, also when one does not fit. */
static bool put_values(GraphRun *r, const ValueId *to, ValueId first, u32 count, Value *values) {
  bool ok = true;
  for (u32 i = 0; i < count; i++) {
    if (ok) ok = put(r, to ? to[i] : first + i, values[i], "a block") == WEFT_OK;
    else value_drop(r->vm, values[i]);
  }
  return ok;
}

static Flow term_to_results(GraphRun *r, NodeId n, u32 count) {
  Value *values = mem_alloc(&r->vm->alloc, sizeof *values * (count + 1));
  if (!values) return vm_error_memory(r->vm), FLOW_ERROR;
  bool ok = take_values(r, 0, count, values) &&
            put_values(r, NULL, r->graph->nodes.data[n].result_first, count, values);
  mem_free(&r->vm->alloc, values, sizeof *values * (count + 1));
  return ok ? FLOW_END : FLOW_ERROR;
}

static Flow run_cond(GraphRun *r, NodeId n) {
  const GraphNode *x = &r->graph->nodes.data[n];
  Value p;
  if (value_at(r, node_operand(r->graph, n, 0), &p) != WEFT_OK) return FLOW_ERROR;
  BlockId b = x->sub[p.bits ? 0 : 1];
  if (!give_captures(r, n, b)) return FLOW_ERROR;
  Flow f = run_block(r, b);
  return f == FLOW_END ? term_to_results(r, n, x->result_count) : f;
}

/* Leaves by the loop's exit, or the latest whole one, with a limit's error standing. */
static Flow stopped(GraphRun *r) {
  r->exit = r->limit_exit;
  return FLOW_ERROR;
}

static Flow run_while(GraphRun *r, NodeId n) {
  const Graph *g = r->graph;
  const GraphNode *x = &g->nodes.data[n];
  BlockId cond = x->sub[0], body = x->sub[1];
  Value *carried = mem_alloc(&r->vm->alloc, sizeof *carried * (x->carried + 1));
  Flow f = FLOW_ERROR;
  if (!carried) return vm_error_memory(r->vm), FLOW_ERROR;
  for (u32 i = 0; i < x->carried; i++)
    if (!give(r, g->blocks.data[body].params.data[i], node_operand(g, n, i))) goto done;
  if (!give_captures(r, n, cond) || !give_captures(r, n, body)) goto done;
  for (;;) {
    if (x->exit != NO_EXIT) r->limit_exit = x->exit;
    if (vm_safepoint(r->vm) != WEFT_OK) {
      f = stopped(r);
      goto done;
    }
    for (u32 i = 0; i < x->carried; i++)
      if (!give(r, g->blocks.data[cond].params.data[i], g->blocks.data[body].params.data[i])) goto done;
    if ((f = run_block(r, cond)) != FLOW_END) goto done;
    f = FLOW_ERROR;
    Value go;
    if (value_at(r, block_result(g, r->term, 0), &go) != WEFT_OK) goto done;
    if (!go.bits) {
      f = FLOW_END;
      for (u32 i = 0; i < x->carried; i++)
        if (!give(r, x->result_first + i, g->blocks.data[body].params.data[i])) f = FLOW_ERROR;
      goto done;
    }
    Flow end = run_block(r, body);
    if (end == FLOW_EXIT || end == FLOW_ERROR) {
      f = end;
      goto done;
    }
    if (!take_values(r, 0, x->carried, carried)) goto done;
    if (end == FLOW_BREAK) {
      if (put_values(r, NULL, x->result_first, x->carried, carried)) f = FLOW_END;
      goto done;
    }
    if (!put_values(r, g->blocks.data[body].params.data, 0, x->carried, carried)) goto done;
  }
done:
  mem_free(&r->vm->alloc, carried, sizeof *carried * (x->carried + 1));
  return f;
}

/* Item `at` along axis 0. *out owned. */
static WeftStatus item_of(GraphRun *r, ValueId v, i64 at, Value *out) {
  Value all, index = value_weak_i64(at);
  u8 item = IX_VALUE;
  return value_at(r, v, &all) == WEFT_OK ? vm_index(r->vm, all, &item, 1, &index, out) : WEFT_ERROR;
}

/* An array of the stacked result's type, for a scan of n trips. */
static WeftStatus stack_new(GraphRun *r, ValueId v, i64 n, Value *out) {
  const ArrayType *t = value_type(r->graph, v);
  i64 dims[ARRAY_MAX_RANK];
  for (u32 d = 0; d < t->rank; d++)
    if (d == 0) dims[0] = n;
    else if (run_size(r, t->dims[d], &dims[d]) != WEFT_OK) return WEFT_ERROR;
  return array_new_zero(r->vm, t->dtype, t->rank, dims, out);
}

static WeftStatus stack_put(GraphRun *r, Value *all, i64 at, Value item) { /* consumes item */
  Value index = value_weak_i64(at);
  u8 kind = IX_VALUE;
  return attr_update(r->vm, OP_none, *all, &kind, 1, &index, item, all);
}

static Flow run_scan(GraphRun *r, NodeId n) {
  const Graph *g = r->graph;
  const GraphNode *x = &g->nodes.data[n];
  BlockId body = x->sub[0];
  u32 stacked = x->result_count - x->carried, total = x->carried + stacked;
  i64 trips;
  Flow f = FLOW_ERROR;
  Value *values = mem_alloc(&r->vm->alloc, sizeof *values * (total + stacked + 1)), *stacks = values + total;
  if (!values) return vm_error_memory(r->vm), FLOW_ERROR;
  for (u32 i = 0; i < stacked; i++) stacks[i] = value_hole();
  const ValueId *params = g->blocks.data[body].params.data;
  if (run_size(r, x->length, &trips) != WEFT_OK || !give_captures(r, n, body)) goto done;
  for (u32 i = 0; i < x->carried; i++)
    if (!give(r, params[i], node_operand(g, n, i))) goto done;
  for (u32 i = 0; i < stacked; i++)
    if (stack_new(r, x->result_first + x->carried + i, trips < 0 ? 0 : trips, &stacks[i]) != WEFT_OK) goto done;
  bool broken = false;
  for (i64 k = 0; k < trips && !broken; k++) {
    i64 at = x->reverse ? trips - 1 - k : k;
    for (u32 i = 0; i < x->xs; i++) {
      Value item;
      if (item_of(r, node_operand(g, n, x->carried + i), at, &item) != WEFT_OK) goto done;
      /* a carried number that was stacked */
      if (value_is_scalar(item) && value_type(g, params[x->carried + i])->weak) item.flags |= VF_WEAK;
      if (put(r, params[x->carried + i], item, "a scan's item") != WEFT_OK) goto done;
    }
    if (x->index && put(r, params[x->carried + x->xs], value_i64(at), "a scan's trip") != WEFT_OK) goto done;
    if (x->exit != NO_EXIT) r->limit_exit = x->exit;
    if (vm_safepoint(r->vm) != WEFT_OK) {
      f = stopped(r);
      goto done;
    }
    Flow end = run_block(r, body);
    if (end == FLOW_EXIT || end == FLOW_ERROR) {
      f = end;
      goto done;
    }
    broken = end == FLOW_BREAK;
    u32 given = broken ? x->carried : total;
    if (!take_values(r, 0, given, values)) goto done;
    bool ok = put_values(r, params, 0, x->carried, values);
    for (u32 i = x->carried; i < given; i++) {
      if (ok) ok = stack_put(r, &stacks[i - x->carried], at, values[i]) == WEFT_OK;
      else value_drop(r->vm, values[i]);
    }
    if (!ok) goto done;
  }
  f = FLOW_END;
  for (u32 i = 0; i < x->carried && f == FLOW_END; i++)
    if (!give(r, x->result_first + i, params[i])) f = FLOW_ERROR;
  for (u32 i = 0; i < stacked && f == FLOW_END; i++) {
    Value all = stacks[i];
    stacks[i] = value_hole();
    if (put(r, x->result_first + x->carried + i, all, "a scan") != WEFT_OK) f = FLOW_ERROR;
  }
done:
  for (u32 i = 0; i < stacked; i++) value_drop(r->vm, stacks[i]);
  mem_free(&r->vm->alloc, values, sizeof *values * (total + stacked + 1));
  return f;
}

/* body(left, right) -> out, all `n` values. left and right are consumed. */
static Flow combine(GraphRun *r, NodeId node, Value *left, Value *right, Value *out) {
  const GraphNode *x = &r->graph->nodes.data[node];
  const GraphBlock *b = &r->graph->blocks.data[x->sub[0]];
  u32 n = x->xs;
  bool ok = put_values(r, b->params.data, 0, n, left);
  if (ok) ok = put_values(r, b->params.data + n, 0, n, right);
  else
    for (u32 i = 0; i < n; i++) value_drop(r->vm, right[i]);
  if (!ok) return FLOW_ERROR;
  Flow f = run_block(r, x->sub[0]);
  return f != FLOW_END ? f : take_values(r, 0, n, out) ? FLOW_END : FLOW_ERROR;
}

/* Segments of 16 in order; totals by the same rule; then total-before combined with local. This follows the order that
 * scans have in the language. Works on the items of the operands, one level at a time over `count` of them. */
enum { SEGMENT = 16 };

static Flow scan_items(GraphRun *r, NodeId node, Value *items, i64 count) {
  u32 n = r->graph->nodes.data[node].xs;
  Allocator *a = &r->vm->alloc;
  Flow f = FLOW_END;
  Value left[OP_MAX_PARAMS], right[OP_MAX_PARAMS];
  if (n > OP_MAX_PARAMS) return vm_error(r->vm, EK_unsupported, "an associative scan over %u arrays", n), FLOW_ERROR;
  for (i64 i = 0; i < count; i++) {
    if (i % SEGMENT == 0) continue;
    for (u32 k = 0; k < n; k++) {
      left[k] = value_keep(items[(i - 1) * n + k]);
      right[k] = items[i * n + k];
      items[i * n + k] = value_hole();
    }
    if ((f = combine(r, node, left, right, items + i * n)) != FLOW_END) return f;
  }
  i64 segments = (count + SEGMENT - 1) / SEGMENT;
  if (segments <= 1) return FLOW_END;
  size_t bytes = sizeof(Value) * (size_t)segments * n;
  Value *totals = mem_alloc(a, bytes);
  if (!totals) return vm_error_memory(r->vm), FLOW_ERROR;
  for (i64 s = 0; s < segments; s++) {
    i64 last = (s + 1) * SEGMENT < count ? (s + 1) * SEGMENT - 1 : count - 1;
    for (u32 k = 0; k < n; k++) totals[s * n + k] = value_keep(items[last * n + k]);
  }
  f = scan_items(r, node, totals, segments); /* depth: log16 of the length */
  for (i64 i = SEGMENT; i < count && f == FLOW_END; i++) {
    for (u32 k = 0; k < n; k++) {
      left[k] = value_keep(totals[(i / SEGMENT - 1) * n + k]);
      right[k] = items[i * n + k];
      items[i * n + k] = value_hole();
    }
    f = combine(r, node, left, right, items + i * n);
  }
  for (i64 i = 0; i < segments * n; i++) value_drop(r->vm, totals[i]);
  mem_free(a, totals, bytes);
  return f;
}

static Flow run_ascan(GraphRun *r, NodeId node) {
  const Graph *g = r->graph;
  const GraphNode *x = &g->nodes.data[node];
  Value first;
  Flow f = FLOW_ERROR;
  if (x->xs == 0 || value_at(r, node_operand(g, node, 0), &first) != WEFT_OK || !give_captures(r, node, x->sub[0]))
    return FLOW_ERROR;
  i64 count = first.kind == V_ARRAY && array_rank(first.array) ? array_dims(first.array)[0] : 0;
  size_t bytes = sizeof(Value) * ((size_t)count * x->xs + 1);
  Value *items = mem_alloc(&r->vm->alloc, bytes), stack = value_hole();
  if (!items) return vm_error_memory(r->vm), FLOW_ERROR;
  for (i64 i = 0; i < count * x->xs; i++) items[i] = value_hole();
  for (i64 i = 0; i < count; i++)
    for (u32 k = 0; k < x->xs; k++)
      if (item_of(r, node_operand(g, node, k), x->reverse ? count - 1 - i : i, &items[i * x->xs + k]) != WEFT_OK)
        goto done;
  if ((f = scan_items(r, node, items, count)) != FLOW_END) goto done;
  f = FLOW_ERROR;
  for (u32 k = 0; k < x->xs; k++) {
    if (stack_new(r, x->result_first + k, count, &stack) != WEFT_OK) goto done;
    for (i64 i = 0; i < count; i++)
      if (stack_put(r, &stack, x->reverse ? count - 1 - i : i, value_keep(items[i * x->xs + k])) != WEFT_OK) goto done;
    Value done = stack;
    stack = value_hole();
    if (put(r, x->result_first + k, done, "an associative scan") != WEFT_OK) goto done;
  }
  f = FLOW_END;
done:
  value_drop(r->vm, stack);
  for (i64 i = 0; i < count * x->xs; i++) value_drop(r->vm, items[i]);
  mem_free(&r->vm->alloc, items, bytes);
  return f;
}

/* A block called with the node's first operands: call, custom, checkpoint. */
static Flow run_body(GraphRun *r, NodeId n, u32 args) {
  const Graph *g = r->graph;
  const GraphNode *x = &g->nodes.data[n];
  BlockId b = x->sub[0];
  for (u32 i = 0; i < args; i++)
    if (!give(r, g->blocks.data[b].params.data[i], node_operand(g, n, i))) return FLOW_ERROR;
  if (x->kind != NODE_call && !give_captures(r, n, b)) return FLOW_ERROR;
  Flow f = run_block(r, b);
  return f == FLOW_END ? term_to_results(r, n, x->result_count) : f;
}

/* Far from the limit of depth, where compiled code, which counts several calls as one, need not leave either. */
static bool room_for_self(const GraphRun *r) {
  const Vm *vm = r->vm;
  i64 room = (i64)vm->limits.depth - vm->frame_count - vm->native_depth;
  return r->calls < SELF_MOST && r->calls < room / SELF_ROOM && cstack_has(CSTACK_CALL);
}

/* The numbers of this call are kept while the body runs once more. */
static Flow run_self(GraphRun *r, NodeId n) {
  const Graph *g = r->graph;
  const GraphNode *x = &g->nodes.data[n];
  Allocator *a = &r->vm->alloc;
  BlockId body = g->nodes.data[node_recur_around(g, n)].sub[0];
  size_t syms = g->sizes.syms.count + 1, bytes = sizeof(Value) * r->count + sizeof *r->syms * syms + syms;
  if (!room_for_self(r)) {
    r->too_deep = true;
    return vm_error(r->vm, EK_limit, "the graph interpreter nests no deeper"), FLOW_ERROR;
  }
  Value *held = mem_alloc(a, bytes), *xs = mem_alloc(a, sizeof *xs * (x->operand_count + x->result_count + 1)),
      *out = xs + x->operand_count;
  Flow f = FLOW_ERROR;
  if (!held || !xs) {
    mem_free(a, held, bytes);
    mem_free(a, xs, sizeof *xs * (x->operand_count + x->result_count + 1));
    return vm_error_memory(r->vm), FLOW_ERROR;
  }
  i64 *held_syms = (i64 *)(void *)(held + r->count);
  char *held_known = (char *)(held_syms + syms);
  bool ok = true;
  for (u32 i = 0; i < x->operand_count && ok; i++) ok = value_at(r, node_operand(g, n, i), &xs[i]) == WEFT_OK;
  for (u32 i = 0; i < r->count; i++) held[i] = value_keep(r->values[i]);
  memcpy(held_syms, r->syms, sizeof *r->syms * syms);
  memcpy(held_known, r->known, syms);
  r->calls++;
  for (u32 i = 0; i < x->operand_count && ok; i++)
    ok = put(r, g->blocks.data[body].params.data[i], value_keep(xs[i]), "self") == WEFT_OK;
  if (ok && vm_safepoint(r->vm) == WEFT_OK) f = run_block(r, body);
  r->calls--;
  for (u32 i = 0; i < x->result_count; i++) { /* numbers, of c128 counted */
    out[i] = value_hole();
    if (f == FLOW_END && value_at(r, block_result(g, r->term, i), &out[i]) != WEFT_OK) f = FLOW_ERROR;
    out[i] = f == FLOW_END ? value_keep(out[i]) : value_hole();
  }
  for (u32 i = 0; i < r->count; i++) {
    value_drop(r->vm, r->values[i]);
    r->values[i] = held[i];
  }
  memcpy(r->syms, held_syms, sizeof *r->syms * syms);
  memcpy(r->known, held_known, syms);
  for (u32 i = 0; i < x->result_count; i++) {
    if (f != FLOW_END) value_drop(r->vm, out[i]);
    else if (put(r, x->result_first + i, out[i], "self") != WEFT_OK) f = FLOW_ERROR;
  }
  mem_free(a, held, bytes);
  mem_free(a, xs, sizeof *xs * (x->operand_count + x->result_count + 1));
  return f;
}

typedef struct RunPending {
  Pending base;
  GraphRun *r;
  u32 exit;
} RunPending;

void run_fill_exit(const GraphRun *r, u32 exit) {
  const RegionExit *e = &r->region->exits[exit];
  for (u32 i = 0; i < e->bind_count; i++) {
    RegionBind b = r->region->binds[e->bind_first + i];
    Value v = r->values[b.value];
    if (v.kind != V_HOLE) r->slots[b.slot] = slot_of_value(value_keep(v));
  }
}

static WeftStatus run_leave(Pending *p) {
  const RunPending *x = (const RunPending *)p;
  run_fill_exit(x->r, x->exit);
  return region_leave_early(x->r->vm, x->r->region, x->exit, x->r->slots);
}

/* *status: of the print or settle; a function that ends otherwise than was relied on leaves. */
static Flow do_host(GraphRun *r, NodeId n, const Value *args, u32 nargs, Value *out) {
  const GraphNode *x = &r->graph->nodes.data[n];
  const GraphHost *host = &r->graph->hosts.data[x->host];
  if (host->kind == HOST_print && r->silent) return FLOW_END;
  if (host->kind == HOST_settle) r->limit_exit = x->exit;
  if (host->kind != HOST_function || !host->fn)
    return host_call(r->vm, r->graph, x->host, args, nargs, out) == WEFT_OK ? FLOW_END : FLOW_ERROR;
  if (!r->region)
    return vm_error(r->vm, EK_unsupported, "the graph interpreter cannot call %s", host->name), FLOW_ERROR;
  RunPending p = {.base = {.leave = run_leave}, .r = r, .exit = x->exit};
  if (host_call_in(r->vm, r->region, n, &p.base, args, nargs, out) == HOST_CALL_KEPT) return FLOW_END;
  r->exit = x->exit;
  return FLOW_EXIT;
}

static Flow run_host(GraphRun *r, NodeId n) {
  const Graph *g = r->graph;
  const GraphNode *x = &g->nodes.data[n];
  u32 nargs = x->operand_count - 1;
  Value out = value_nil();
  if (x->result_count > 2)
    return vm_error(r->vm, EK_unsupported, "the graph interpreter cannot call %s", g->hosts.data[x->host].name),
        FLOW_ERROR;
  Value few[8], *args = nargs <= COUNT_OF(few) ? few : mem_alloc(&r->vm->alloc, sizeof *args * nargs);
  u32 held = 0;
  if (!args) return vm_error_memory(r->vm), FLOW_ERROR;
  for (Value v; held < nargs && value_at(r, node_operand(g, n, held + 1), &v) == WEFT_OK; held++)
    args[held] = value_keep(v);
  Flow f = held == nargs ? do_host(r, n, args, nargs, &out) : FLOW_ERROR;
  while (held > 0) value_drop(r->vm, args[--held]);
  if (args != few) mem_free(&r->vm->alloc, args, sizeof *args * nargs);
  if (f != FLOW_END) return f;
  if (x->result_count == 1) value_drop(r->vm, out);
  else if (put(r, x->result_first + 1, out, g->hosts.data[x->host].name) != WEFT_OK) return FLOW_ERROR;
  return put(r, x->result_first, value_nil(), "the token") == WEFT_OK ? FLOW_END : FLOW_ERROR;
}

static Flow run_node(GraphRun *r, NodeId n) {
  const GraphNode *x = &r->graph->nodes.data[n];
  switch (x->kind) {
    case NODE_op: return run_op(r, n) == WEFT_OK ? FLOW_END : FLOW_ERROR;
    case NODE_index:
    case NODE_update: return run_index(r, n) == WEFT_OK ? FLOW_END : FLOW_ERROR;
    case NODE_check: return run_check(r, n);
    case NODE_cond: return run_cond(r, n);
    case NODE_while: return run_while(r, n);
    case NODE_scan: return run_scan(r, n);
    case NODE_ascan: return run_ascan(r, n);
    case NODE_call: return run_body(r, n, x->operand_count);
    case NODE_recur:
      if (x->exit != NO_EXIT) r->limit_exit = x->exit;
      return run_body(r, n, x->xs);
    case NODE_self: return run_self(r, n);
    case NODE_custom:
    case NODE_checkpoint: return run_body(r, n, x->xs);
    case NODE_hook: return give(r, x->result_first, node_operand(r->graph, n, 0)) ? FLOW_END : FLOW_ERROR;
    case NODE_host: return run_host(r, n);
    default: return vm_error(r->vm, EK_unsupported, "a node of no kind"), FLOW_ERROR;
  }
}

/* Depth is bounded by GRAPH_MAX_DEPTH. */
static Flow run_block(GraphRun *r, BlockId b) {
  const GraphBlock *x = &r->graph->blocks.data[b];
  for (NodeId n = x->first; n; n = r->graph->nodes.data[n].next) {
    Flow f = run_node(r, n);
    if (f != FLOW_END) return f;
  }
  r->term = b;
  switch (x->term) {
    case TERM_yield: return FLOW_END;
    case TERM_next: return FLOW_NEXT;
    case TERM_break: return FLOW_BREAK;
    default: r->exit = x->exit; return FLOW_EXIT;
  }
}

WeftStatus run_root(GraphRun *r, u32 *exit) {
  Flow f = run_block(r, 1);
  if (f == FLOW_EXIT) {
    *exit = r->exit;
    return WEFT_OK;
  }
  *exit = r->limit_exit;
  if (f != FLOW_ERROR)
    return vm_error(r->vm, EK_unsupported, "the graph interpreter: the root does not end by an exit");
  if (vm_error_catchable(r->vm) && r->limit_exit != NO_EXIT) { /* it raises when it is run again */
    vm_error_forget(r->vm);
    return WEFT_OK;
  }
  return WEFT_ERROR;
}

/* ---- single values ----------------------------------------------------------------------------------- */

typedef struct Missing {
  GraphRun *r;
  ValueId value; /* one that is not there yet, 0: none */
} Missing;

static void note_missing(void *ctx, u32 v) {
  Missing *m = ctx;
  u8 origin = m->r->graph->values.data[v].origin;
  if (origin != GV_const && origin != GV_size && m->r->values[v].kind == V_HOLE) m->value = v;
}

/* Iterative: a stack of values whose nodes wait for their operands. */
WeftStatus run_value(GraphRun *r, ValueId v, Value *out) {
  const Graph *g = r->graph;
  VEC(ValueId) todo = {0};
  WeftStatus status = WEFT_ERROR;
  u8 origin = g->values.data[v].origin;
  if (origin == GV_const || origin == GV_size || r->values[v].kind != V_HOLE) return value_at(r, v, out);
  if (!vec_push(&r->vm->alloc, &todo, v)) goto refused;
  while (todo.count) {
    ValueId top = todo.data[todo.count - 1];
    const GraphValue *x = &g->values.data[top];
    if (x->origin == GV_const || x->origin == GV_size || r->values[top].kind != V_HOLE) {
      todo.count--;
      continue;
    }
    if (x->origin != GV_result) { /* a parameter: of a capture it is what was captured */
      NodeId n = g->blocks.data[x->def].node;
      ValueId outer = 0;
      u32 first, count = n ? node_captures(g, n, &first) : 0;
      for (u32 i = 0; i < count; i++)
        if (g->blocks.data[x->def].captures.data[i].inner == top) outer = node_operand(g, n, first + i);
      if (!outer) {
        vm_error(r->vm, EK_unsupported, "a value that an exit needs was not kept");
        goto done;
      }
      u8 o = g->values.data[outer].origin;
      if (o == GV_const || o == GV_size || r->values[outer].kind != V_HOLE) {
        if (!give(r, top, outer)) goto done;
      } else if (!vec_push(&r->vm->alloc, &todo, outer)) {
        goto refused;
      }
      continue;
    }
    NodeId n = x->def;
    if (node_is_effect(g, n)) {
      vm_error(r->vm, EK_unsupported, "an effect cannot be done again");
      goto done;
    }
    Missing m = {r, 0};
    node_size_values(g, n, note_missing, &m);
    for (u32 i = 0; i < g->nodes.data[n].operand_count && !m.value; i++) note_missing(&m, node_operand(g, n, i));
    if (m.value) {
      if (!vec_push(&r->vm->alloc, &todo, m.value)) goto refused;
      continue;
    }
    Flow f = run_node(r, n);
    if (f == FLOW_END) continue;
    if (f != FLOW_ERROR) vm_error(r->vm, EK_unsupported, "a value that an exit needs cannot be computed");
    goto done;
  }
  *out = r->values[v];
  status = WEFT_OK;
  goto done;
refused:
  vm_error_memory(r->vm);
done:
  vec_free(&r->vm->alloc, &todo);
  return status;
}
