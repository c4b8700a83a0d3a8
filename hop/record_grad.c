/* record_grad.c — derivatives in a trace: the function is recorded inline on fresh variables, then the rules of
 * deriv.h walk its nodes backwards and append theirs. What has no rule here leaves the trace as it was, and the
 * tape does it. */
#include "hop/grad.h"

#include <string.h>

#include "hop/rules.h"
#include "hop/walk.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_tree.h"
#include "tracer/record/record_weak.h"

/* ---- values for rules --------------------------------------------------------------------------------------- */

static Graph *graph_of(Deriv *d) { return ((GraphDeriv *)d)->g; }

/* Two sizes that the function took for equal: where that is not proved here, a guard says so. */
static bool equal_now(Graph *g, Dim a, Dim b) {
  i64 x, y;
  return size_same(&g->sizes, a, b) ||
         (!size_is_unbacked(&g->sizes, a) && !size_is_unbacked(&g->sizes, b) && size_hint(&g->sizes, a, &x) &&
          size_hint(&g->sizes, b, &y) && x == y &&
          guard_relation(&g->guards, &g->sizes, REL_eq, a, b, "a derivative", (Span){0}) &&
          size_same(&g->sizes, a, b));
}

/* A cotangent has the shape of its value: if not by the names of its sizes, then by their numbers. */
static void equate(Graph *g, Dv x, const GraphAttr *shape) {
  const ArrayType t = *value_type(g, x);
  for (u32 d = 0; d < t.rank && shape->kind == ATTR_dims && shape->count == t.rank; d++)
    if (!equal_now(g, t.dims[d], shape->ints[d])) return;
}

static void equate_operands(Graph *g, Dv x, Dv y) {
  if (!x || !y) return;
  const ArrayType a = *value_type(g, x), b = *value_type(g, y);
  for (u32 d = 0; d < a.rank && a.rank == b.rank; d++)
    if (!size_same(&g->sizes, a.dims[d], 1) && !size_same(&g->sizes, b.dims[d], 1))
      (void)equal_now(g, a.dims[d], b.dims[d]);
}

/* Settings lie with the caller: the graph keeps copies. */
static Dv run(Deriv *d, u32 op, const Dv *operands, u32 count, const GraphAttr *attrs, u32 nattrs) {
  Graph *g = graph_of(d);
  GraphAttr kept[OP_MAX_PARAMS + 1];
  u32 n = 0;
  for (u32 i = 0; i < nattrs; i++) {
    const GraphAttr *a = &attrs[i];
    kept[n++] = a->kind == ATTR_ints ? attr_ints(g, a->param, a->ints, a->count, a->pairs)
              : a->kind == ATTR_dims ? attr_dims(g, a->param, a->ints, a->count)
              : a->kind == ATTR_text ? attr_text(g, a->param, a->text, a->count)
                                     : *a;
  }
  if (op == OP_reshape && count == 1 && nattrs == 1) equate(g, operands[0], attrs);
  for (u32 i = 1; i < count && op_info(op)->family == FAM_elementwise; i++)
    equate_operands(g, operands[0], operands[i]);
  const OpInfo *info = op_info(op); /* the parameters that are not given are said to be so */
  GraphArg args[OP_MAX_PARAMS];
  bind_args(op, operands, count, kept, n, args);
  for (u32 p = 0; p < info->nparams && n <= OP_MAX_PARAMS; p++) {
    bool said = args[p].kind != ARG_hole;
    for (u32 i = 0; i < n && !said; i++) said = kept[i].param == p;
    if (!said) kept[n++] = attr_hole(p);
  }
  return graph_op(g, op, operands, count, kept, n, NULL);
}

static ArrayType type(Deriv *d, Dv x) { return *value_type(graph_of(d), x); }
static Dv number(Deriv *d, f64 v) { return graph_const(graph_of(d), value_weak_f64(v)); }
static Dv size(Deriv *d, Dim n) { return graph_size(graph_of(d), n); }

static Dv zeros(Deriv *d, const ArrayType *t) { return pull_zeros(graph_of(d), t); }

ValueId pull_fill(Graph *g, const ArrayType *t, f64 with) {
  if (t->rank == 0) return graph_const_f64(g, t->dtype, with);
  return graph_full_as(g, t, with);
}
ValueId pull_zeros(Graph *g, const ArrayType *t) { return pull_fill(g, t, 0); }

static bool known(Deriv *d, Dv x, f64 *out) {
  Value v;
  if (!value_const(graph_of(d), x, &v)) return false;
  *out = num_as_f64(v);
  return true;
}

static bool same(Deriv *d, Dim a, Dim b) { return size_same(&graph_of(d)->sizes, a, b); }

static f64 about(Deriv *d, Dim n) {
  i64 size;
  return size_hint(&graph_of(d)->sizes, n, &size) && size > 0 ? (f64)size : 1;
}

static Dim dim(Deriv *d, char op, Dim a, Dim b) {
  Dim n = size_binary(&graph_of(d)->sizes, op, a, b);
  if (n == DIM_NONE) d->failed = true;
  return n == DIM_NONE ? 0 : n;
}

/* ---- indices --------------------------------------------------------------------------------- */

static Dv index_items(Graph *g, Dv x, const ValueId *operands, u32 count, const IndexItem *items, u32 nitems) {
  GuardDims dims;
  ArrayType result;
  if (!x) return 0;
  guard_dims_init(&dims, NULL, &g->sizes, "index", (Span){0});
  if (!graph_infer_index(g, &dims.base, x, operands, count, items, nitems, &result, NULL)) return 0;
  return graph_index(g, x, operands, count, items, nitems, graph_type(g, &result));
}

/* Rules ask for parts that lie within x: their length is stop - start. Where that is not proved a guard says so. */
static Dv part(Deriv *d, Dv x, u32 axis, Dim start, Dim stop) {
  Graph *g = graph_of(d);
  GuardDims dims;
  ArrayType t;
  IndexItem items[TYPE_MAX_RANK] = {{0}};
  for (u32 i = 0; i <= axis; i++) items[i].kind = INDEX_slice;
  items[axis].part[0] = items[axis].part[1] = PART_dim;
  items[axis].at[0] = start;
  items[axis].at[1] = stop;
  guard_dims_init(&dims, NULL, &g->sizes, "index", (Span){0});
  if (!x || !graph_infer_index(g, &dims.base, x, NULL, 0, items, axis + 1, &t, NULL)) return 0;
  Dim length = size_sub(&g->sizes, stop, start);
  if (length != DIM_NONE && equal_now(g, t.dims[axis], length)) t.dims[axis] = length;
  return graph_index(g, x, NULL, 0, items, axis + 1, graph_type(g, &t));
}

static Dv add_at(Deriv *d, Dv x, u32 axis, Dv indices, Dv v) {
  Graph *g = graph_of(d);
  IndexItem items[TYPE_MAX_RANK] = {{0}};
  for (u32 i = 0; i < axis; i++) items[i].kind = INDEX_slice;
  items[axis] = (IndexItem){.kind = value_type(g, indices)->rank ? INDEX_array : INDEX_int,
                            .part = {PART_operand}, .at = {1}};
  return graph_update(g, OP_add, x, &indices, 1, items, axis + 1, v);
}

static Dv add_items(Deriv *d, Dv x, const Dv *indices, u32 n, Dv v) {
  IndexItem items[TYPE_MAX_RANK] = {{0}};
  for (u32 i = 0; i < n; i++) items[i] = (IndexItem){.kind = INDEX_array, .part = {PART_operand}, .at = {i + 1}};
  return graph_update(graph_of(d), OP_add, x, indices, n, items, n, v);
}

/* The items of an index or update node: *operands point into the graph until the next builder call. */
static bool items_of(Graph *g, const DerivNode *n, const IndexItem **items, u32 *nitems, ValueId *operands,
                     u32 *count) {
  NodeId node = *(const NodeId *)n->index;
  const GraphNode *x = graph_node_at(g, node);
  *count = x->operand_count - (n->kind == DERIV_update ? 2 : 1);
  if (*count > 3 * TYPE_MAX_RANK || x->attr_count == 0 || node_attr(g, node, 0)->kind != ATTR_index) return false;
  for (u32 i = 0; i < *count; i++) operands[i] = node_operand(g, node, i + 1);
  *items = node_attr(g, node, 0)->items;
  *nitems = node_attr(g, node, 0)->count;
  return true;
}

static bool repeats(Deriv *d, const DerivNode *n) {
  const GraphAttr *a = node_attr(graph_of(d), *(const NodeId *)n->index, 0);
  for (u32 i = 0; a->kind == ATTR_index && i < a->count; i++)
    if (a->items[i].kind == INDEX_array) return true;
  return false;
}

static Dv index_again(Deriv *d, const DerivNode *n, Dv x) {
  const IndexItem *items;
  ValueId operands[3 * TYPE_MAX_RANK];
  u32 nitems, count;
  if (!items_of(graph_of(d), n, &items, &nitems, operands, &count)) return 0;
  Dv v = index_items(graph_of(d), x, operands, count, items, nitems);
  d->failed |= !v;
  return v;
}

static Dv update_again(Deriv *d, const DerivNode *n, u32 combine, Dv x, Dv v) {
  const IndexItem *items;
  ValueId operands[3 * TYPE_MAX_RANK];
  u32 nitems, count;
  if (!x || !v || !items_of(graph_of(d), n, &items, &nitems, operands, &count)) {
    d->failed = true;
    return 0;
  }
  Dv made = graph_update(graph_of(d), combine, x, operands, count, items, nitems, v);
  d->failed |= !made;
  return made;
}

/* The results of a node are numbered one after another. */
static Dv item(Deriv *d, Dv list, u32 k) {
  (void)d;
  return list + k;
}

static Dv top(Deriv *d, Dv x, u32 mask) {
  Graph *g = graph_of(d);
  Dv v = graph_reduce(g, OP_max, x, mask, true);
  if (value_node(g, v)) g->nodes.data[value_node(g, v)].total = true;
  return v;
}

static const DerivOps graph_ops = {run, type, number, size, zeros, known, same, about, dim, part, add_at, add_items,
                                   repeats, index_again, update_again, item, top};

/* ---- back over the nodes of a block ---------------------------------------------------------- */

void pull_walk_free(Walk *w) {
  Allocator *a = &w->r->vm->alloc;
  vec_free(a, &w->nodes);
  if (w->active) mem_free(a, w->active, w->count);
  if (w->ct) mem_free(a, w->ct, sizeof *w->ct * w->count);
  if (w->there) mem_free(a, w->there, sizeof *w->there * w->count);
  if (w->filled) mem_free(a, w->filled, w->count);
  if (w->alias) mem_free(a, w->alias, sizeof *w->alias * w->count);
  vec_free(a, &w->aliases);
  arena_free(&w->d.head.room);
}

ValueId pull_home(const Walk *w, ValueId v) {
  const Graph *g = w->r->g;
  for (BlockId b = value_block(g, v); b && b != w->home; b = value_block(g, v)) {
    const GraphBlock *x = &g->blocks.data[b];
    u32 c = 0;
    while (c < x->captures.count && x->captures.data[c].inner != v) c++;
    if (c == x->captures.count) break;
    v = x->captures.data[c].outer;
  }
  return v;
}

/* The nodes of the cursor's block behind `after` (0: all), and what of them depends on the variables. */
bool pull_walk_init(Walk *w, Recorder *r, BlockId b, NodeId after, const ValueId *variables, u32 nvariables) {
  Graph *g = r->g;
  Allocator *a = &r->vm->alloc;
  *w = (Walk){.r = r, .d = {.head = {.to = &graph_ops}, .g = g}, .count = g->values.count, .home = b};
  arena_init(&w->d.head.room, a);
  w->active = mem_alloc_zero(a, w->count);
  w->ct = mem_alloc_zero(a, sizeof *w->ct * w->count);
  w->there = mem_alloc_zero(a, sizeof *w->there * w->count);
  w->filled = mem_alloc_zero(a, w->count);
  w->alias = mem_alloc_zero(a, sizeof *w->alias * w->count);
  if (!w->active || !w->ct || !w->there || !w->filled || !w->alias) return false;
  for (u32 i = 0; i < nvariables; i++) w->active[variables[i]] = 1;
  for (NodeId n = after ? node_next(g, after) : block_first(g, b); n; n = node_next(g, n)) {
    const GraphNode *x = graph_node_at(g, n);
    bool any = false;
    const ArrayType *first = x->operand_count ? value_type(g, node_operand(g, n, 0)) : NULL;
    if (x->kind == NODE_op && (x->op == OP_stop_gradient || deriv_is_zero(x->op, first ? first->dtype : DT_NONE)))
      continue;
    for (u32 i = 0; i < x->operand_count && !any; i++) any = pull_is_active(w, node_operand(g, n, i));
    if (!any) continue;
    bool gives = false;
    for (u32 i = 0; i < x->result_count; i++) {
      ValueId v = node_result(g, n, i);
      gives |= w->active[v] = pull_is_float(g, v);
    }
    if (gives && !vec_push(a, &w->nodes, n)) return false;
  }
  return true;
}

Dv pull_only_if(Walk *w, ValueId there, Dv ct, f64 otherwise) {
  if (!there || !ct) return ct;
  Dv v = dv_op(&w->d.head, OP_where, (Dv[]){there, ct, graph_const(w->d.g, value_weak_f64(otherwise))}, 3, NULL, 0);
  NodeId n = v ? value_node(w->d.g, v) : 0;
  if (n) w->d.g->nodes.data[n].mask = true;
  return v;
}

ValueId pull_or(Graph *g, ValueId a, ValueId b) {
  Value known;
  if (!a || !b) return 0;
  if (a == b || (value_const(g, b, &known) && !known.i)) return a;
  if (value_const(g, a, &known) && !known.i) return b;
  return graph_op2(g, OP_logical_or, a, b);
}

ValueId pull_is_there(const Walk *w, ValueId v) {
  if (!pull_is_active(w, v) || !w->ct[v]) return pull_bool(w->r->g, false);
  return w->there[v] ? graph_convert(w->r->g, w->there[v], DT_bool) : pull_bool(w->r->g, true);
}

ValueId pull_and(Graph *g, ValueId a, ValueId b) {
  Value known;
  if (!a || !b) return a ? a : b;
  if (a == b || (value_const(g, a, &known) && known.i)) return b;
  if (value_const(g, b, &known) && known.i) return a;
  return graph_op2(g, OP_logical_and, a, b);
}

bool pull_alias(Walk *w, ValueId of, ValueId source, ValueId when, u32 arm) {
  if (of >= w->count) return true;
  if (!vec_push(&w->r->vm->alloc, &w->aliases, (Alias){source, when, arm, w->alias[of]})) return false;
  w->alias[of] = w->aliases.count;
  return true;
}

bool pull_arm_is_source(const Walk *w, ValueId of, u32 arm) {
  for (u32 i = of < w->count ? w->alias[of] : 0; i; i = w->aliases.data[i - 1].next)
    if (w->aliases.data[i - 1].arm == arm) return true;
  return false;
}

/* To add -0.0 changes no number. What a sum begins with is what is given first, not 0 and that: the sign of a zero
 * stays. */
static Dv sum_with(Walk *w, ValueId to, Dv ct, ValueId there) {
  Deriv *d = &w->d.head;
  ValueId was = w->there[to];
  bool begins = w->filled[to] == FILLED_zero && was;
  Dv before = w->filled[to] ? w->ct[to] : pull_only_if(w, was, w->ct[to], -0.0);
  Dv sum = dv_add(d, before, pull_only_if(w, there, ct, -0.0));
  if (!begins || !sum) return sum;
  Dv first = pull_only_if(w, there, ct, 0.0), v = dv3(d, OP_where, was, sum, first);
  NodeId n = v ? value_node(w->d.g, v) : 0;
  if (n) w->d.g->nodes.data[n].mask = true;
  return v;
}

void pull_give_if(Walk *w, ValueId to, Dv ct, ValueId there) {
  if (!ct || !pull_is_active(w, to)) return;
  /* numbers that a loop stacked, or what was given from outside, may lie elsewhere */
  if (!value_is_token(w->d.g, to)) ct = graph_moved(w->d.g, ct, value_type(w->d.g, to)->device);
  for (u32 i = w->alias[to]; i; i = w->aliases.data[i - 1].next) {
    Alias a = w->aliases.data[i - 1];
    pull_give_if(w, a.source, ct, pull_and(w->d.g, a.when, there));
  }
  if (!w->ct[to]) {
    w->ct[to] = ct;
    w->there[to] = there;
    return;
  }
  w->ct[to] = sum_with(w, to, ct, there);
  w->there[to] = pull_or(w->d.g, w->there[to], there);
}
void pull_give_filled(Walk *w, ValueId to, Dv ct, ValueId there, bool zeros) {
  bool begins = ct && pull_is_active(w, to) && !w->ct[to];
  pull_give_if(w, to, ct, there);
  if (begins && zeros && there && w->ct[to] == ct) w->filled[to] = FILLED_zero;
}
void pull_give(Walk *w, ValueId to, Dv ct) { pull_give_if(w, to, ct, 0); }

/* The cotangents of a node's results, and whether any is there. */
static ValueId collect(Walk *w, const ValueId *results, u32 count, Dv *ct) {
  ValueId there = 0;
  bool always = false;
  for (u32 i = 0; i < count; i++) {
    ct[i] = w->ct[results[i]];
    if (!ct[i]) continue;
    ValueId t = w->there[results[i]];
    if (count > 1) ct[i] = pull_only_if(w, t, ct[i], 0);
    always |= !t;
    there = there ? pull_or(w->d.g, there, t) : t;
  }
  return always ? 0 : there;
}

static Outcome pull_node(Walk *w, NodeId node) {
  Graph *g = w->r->g;
  const GraphNode x = *graph_node_at(g, node);
  const char *why;
  DerivLists l;
  if (x.kind == NODE_cond) return pull_cond(w, node);
  if (x.kind == NODE_scan || x.kind == NODE_while) return pull_loop(w, node);
  if (x.mask) {
    ValueId c = node_operand(g, node, 0), result = node_result(g, node, 0), there = w->there[result];
    pull_give_if(w, node_operand(g, node, 1), w->ct[result], pull_and(g, c, there));
    if (pull_is_active(w, node_operand(g, node, 2)))
      pull_give_if(w, node_operand(g, node, 2), w->ct[result], pull_and(g, graph_op1(g, OP_logical_not, c), there));
    return g->failed ? OUT_FAIL : OUT_GO;
  }
  if (x.kind != NODE_op && x.kind != NODE_index && x.kind != NODE_update)
    return rec_stuck(w->r, REASON_no_rule, "the derivative of such a construct");
  if (!deriv_lists(&w->d.head, x.operand_count, x.result_count, &l)) return OUT_FAIL;
  Dv *operands = l.operands, *results = l.results, *ct = l.ct, *out = l.out;
  bool *wants = l.wants;
  DerivNode n = {.op = x.op, .operands = operands, .results = results, .nresults = x.result_count, .index = &node};
  n.kind = x.kind == NODE_op ? DERIV_op : x.kind == NODE_index ? DERIV_index : DERIV_update;
  n.count = x.kind == NODE_op ? x.operand_count : x.kind == NODE_index ? 1 : 2;
  for (u32 i = 0; i < n.count; i++) operands[i] = node_operand(g, node, i);
  if (x.kind == NODE_update) operands[1] = node_operand(g, node, x.operand_count - 1);
  if (x.kind == NODE_op) node_args(g, node, n.args);
  GraphAttr attrs[OP_MAX_PARAMS + 1]; /* builder calls may move those of the graph */
  u32 list_at[OP_MAX_PARAMS] = {0};
  if (x.attr_count > COUNT_OF(attrs))
    return rec_stuck(w->r, REASON_graph_size, "the derivative of an operation of many settings");
  for (u32 i = 0; i < x.attr_count; i++) attrs[i] = *node_attr(g, node, i);
  for (u32 p = 0; p < OP_MAX_PARAMS && x.kind == NODE_op; p++) {
    if (n.args[p].attr) n.args[p].attr = &attrs[n.args[p].attr - (g->attrs.data + x.attr_first)];
    if (n.args[p].kind == ARG_list) {
      list_at[p] = (u32)(n.args[p].values - (g->operands.data + x.operand_first));
      n.args[p].values = operands + list_at[p];
    }
  }
  for (u32 i = 0; i < n.nresults; i++) results[i] = node_result(g, node, i);
  ValueId there = collect(w, results, n.nresults, ct);
  for (u32 i = 0; i < n.count; i++) wants[i] = pull_is_active(w, operands[i]) && pull_is_float(g, operands[i]);
  ValueId sum = n.kind == DERIV_index && wants[0] && !w->alias[operands[0]] ? w->ct[operands[0]] : 0;
  if (sum && w->filled[operands[0]] != FILLED_zero) sum = pull_only_if(w, w->there[operands[0]], sum, 0);
  if (sum && ct[0] && value_type(g, sum)->dtype == value_type(g, ct[0])->dtype) { /* into the sum that stands already */
    w->ct[operands[0]] = update_again(&w->d.head, &n, OP_add, sum, pull_only_if(w, there, ct[0], -0.0));
    if (w->there[operands[0]]) w->filled[operands[0]] = FILLED_zero;
    w->there[operands[0]] = pull_or(g, w->there[operands[0]], there);
    return w->ct[operands[0]] ? OUT_GO : OUT_FAIL;
  }
  if (!deriv_pull(&w->d.head, &n, ct, wants, out, &why))
    return g->failed ? OUT_FAIL : rec_stuck(w->r, REASON_no_rule, "the derivative of %s", why);
  bool keeps = x.kind == NODE_update && (x.op == OP_none || x.op == OP_add) && wants[0] &&
               w->filled[results[0]] == FILLED_zero;
  for (u32 i = 0; i < n.count; i++)
    if (wants[i]) pull_give_filled(w, operands[i], out[i], there, keeps && i == 0);
  if (w->d.head.failed) return g->failed ? OUT_FAIL : rec_stuck(w->r, REASON_no_rule, "the derivative of %s", why);
  return OUT_GO;
}

/* ---- what stands for what -------------------------------------------------------------------- */

/* What block b around a cond, or the cond itself, has for a value that an arm of it yields: 0 when it is one of the
 * arm's own. */
static ValueId outside(const Graph *g, NodeId cond, u32 arm, ValueId v) {
  u32 first, ncaps = node_captures(g, cond, &first);
  const GraphBlock *b = &g->blocks.data[graph_node_at(g, cond)->sub[arm]];
  for (u32 c = 0; c < ncaps && c < b->captures.count; c++)
    if (b->captures.data[c].inner == v) return node_operand(g, cond, first + c);
  return 0;
}

/* The value of the cond's block that result i is in an arm, if it is one that depends on a variable. */
static ValueId source_of(const Walk *w, NodeId cond, u32 i, u32 arm) {
  const Graph *g = w->r->g;
  const GraphNode *x = graph_node_at(g, cond);
  if (g->blocks.data[x->sub[arm]].term != TERM_yield) return 0;
  ValueId v = outside(g, cond, arm, block_result(g, x->sub[arm], i));
  return v && pull_is_active(w, v) && pull_is_float(g, v) ? v : 0;
}

static bool is_source_of_others(const Walk *w, NodeId cond, u32 i, ValueId v) {
  for (u32 k = 0; k < graph_node_at(w->r->g, cond)->result_count; k++)
    for (u32 arm = 0; arm < 2; arm++)
      if (k != i && source_of(w, cond, k, arm) == v) return true;
  return false;
}

/* What results of branches have already, before the way back begins, is given to what they stand for. */
static bool give_seeds_on(Walk *w) {
  const Graph *g = w->r->g;
  Allocator *alloc = &w->r->vm->alloc;
  ValueVec seeds = {0}; /* a value, its cotangent, whether that is there */
  bool ok = true;
  for (u32 i = 0; i < w->nodes.count && ok; i++) {
    const GraphNode *x = graph_node_at(g, w->nodes.data[i]);
    for (u32 k = 0; x->kind == NODE_cond && k < x->result_count && ok; k++) {
      ValueId v = x->result_first + k;
      if (w->ct[v] && w->alias[v])
        ok = vec_push(alloc, &seeds, v) && vec_push(alloc, &seeds, w->ct[v]) && vec_push(alloc, &seeds, w->there[v]);
    }
  }
  for (u32 i = 0; i < seeds.count && ok; i += 3)
    for (u32 k = w->alias[seeds.data[i]]; k; k = w->aliases.data[k - 1].next)
      pull_give_if(w, w->aliases.data[k - 1].source, seeds.data[i + 1],
                   pull_and(w->d.g, w->aliases.data[k - 1].when, seeds.data[i + 2]));
  vec_free(alloc, &seeds);
  return ok;
}

/* Results of branches that are, in an arm, values from in front of it. It matters only where something else may add
 * to the cotangent of such a value before the branch is reached on the way back: a later use, a sum that stands,
 * another result. */
static bool find_aliases(Walk *w) {
  Graph *g = w->r->g;
  Allocator *alloc = &w->r->vm->alloc;
  bool any = false, ok = true;
  for (u32 i = 0; i < w->nodes.count && !any; i++) any = graph_node_at(g, w->nodes.data[i])->kind == NODE_cond;
  if (!any) return true;
  u32 *last = mem_alloc_zero(alloc, sizeof *last * w->count);
  if (!last) return false;
  for (u32 i = 0; i < w->nodes.count; i++)
    for (u32 k = 0; k < graph_node_at(g, w->nodes.data[i])->operand_count; k++) {
      ValueId v = node_operand(g, w->nodes.data[i], k);
      if (v < w->count) last[v] = i;
    }
  for (u32 i = 0; i < w->nodes.count && ok; i++) {
    NodeId n = w->nodes.data[i];
    if (graph_node_at(g, n)->kind != NODE_cond) continue;
    ValueId no = 0;
    for (u32 k = 0; k < graph_node_at(g, n)->result_count && ok; k++)
      for (u32 arm = 0; arm < 2 && ok; arm++) {
        ValueId v = source_of(w, n, k, arm), c = node_operand(g, n, 0);
        if (!v || !pull_is_active(w, node_result(g, n, k)) ||
            (last[v] <= i && !w->ct[v] && !w->alias[v] && !is_source_of_others(w, n, k, v)))
          continue;
        if (arm && !no) no = graph_op1(g, OP_logical_not, c);
        ok = (!arm || no) && pull_alias(w, node_result(g, n, k), v, arm ? no : c, arm);
      }
  }
  mem_free(alloc, last, sizeof *last * w->count);
  return ok && give_seeds_on(w);
}

Outcome pull_walk_back(Walk *w) {
  Outcome o = deriv_room(&w->d.head, 1, 1) && find_aliases(w) ? OUT_GO : OUT_FAIL;
  ArenaMark empty = arena_mark(&w->d.head.room);
  for (u32 i = w->nodes.count; i-- > 0 && o == OUT_GO;) {
    NodeId n = w->nodes.data[i];
    bool reached = false;
    for (u32 k = 0; k < graph_node_at(w->r->g, n)->result_count; k++) reached |= w->ct[node_result(w->r->g, n, k)] != 0;
    if (reached) o = pull_node(w, n);
    arena_rewind(&w->d.head.room, empty);
  }
  return o;
}

/* ---- transforms ------------------------------------------------------------------------------ */

Outcome record_make_grad(Recorder *r, u32 op, const Av *params, Av *out) {
  Av parts[2] = {av_force(r, params[0]), params[1] ? av_force(r, params[1]) : av_const(r, value_weak_i64(0))};
  if (!parts[0] || !parts[1]) return OUT_FAIL;
  if (av_is_hole(r, parts[1])) parts[1] = av_const(r, value_weak_i64(0));
  if (!av_is_callable(r, parts[0]))
    return rec_stuck(r, REASON_raises, "%s of %s", op_name(op), av_kind_text(r, parts[0]));
  bool list = av_is_list(r, parts[1]); /* what is no position is refused where the transform is made */
  u32 n = list ? av_at(r, parts[1])->count : 1;
  if (n == 0) return rec_stuck(r, REASON_raises, "%s: argnum names no argument", op_name(op));
  for (u32 i = 0; i < n; i++) {
    i64 at;
    if (!rec_literal(r, list ? av_item(r, parts[1], i) : parts[1], "argnum", &at))
      return rec_stuck(r, REASON_literal_needed, "argnum must be known");
  }
  return rec_made(r, av_transform(r, op == OP_grad ? TF_grad : TF_value_and_grad, parts[0], parts[1]), out);
}

Outcome record_stop_gradient(Recorder *r, u32 op, const Av *params, Av *out) {
  AvVec leaves = {0};
  (void)op;
  Av tree = params[0];
  if (!r->differentiating) return rec_made(r, av_force(r, tree), out);
  Outcome o = rec_tree(r, tree, &tree);
  if (o == OUT_GO) o = rec_tree_leaves(r, tree, &leaves);
  bool ok = o == OUT_GO;
  for (u32 i = 0; i < leaves.count && ok; i++) {
    ValueId v = av_value(r, leaves.data[i]), flag = rec_weak_flag(r, v);
    v = v ? graph_op1(r->g, OP_stop_gradient, v) : 0;
    if (flag) ok = rec_weak_note(r, v, flag);
    ok = ok && v && (leaves.data[i] = av_num(r, v));
  }
  u32 next = 0;
  if (o == OUT_GO) o = ok ? rec_made(r, rec_tree_rebuild(r, tree, leaves.data, &next), out) : OUT_FAIL;
  vec_free(&r->vm->alloc, &leaves);
  return o;
}

/* A leaf of an argument as a variable: a value of its own, whatever else uses the leaf. */
static Outcome variable(Recorder *r, Av leaf, ValueId *out) {
  Graph *g = r->g;
  Value known;
  ValueId v = av_value(r, leaf);
  if (!v) return OUT_FAIL;
  ArrayType t = *value_type(g, v);
  ValueId flag = rec_weak_flag(r, v);
  if (t.weak && dtype_kind(t.dtype) == DK_INT) { /* counts as f64 */
    if (av_const_value(r, leaf, &known)) v = graph_const(g, value_weak_f64(num_as_f64(known)));
    else v = graph_op2(g, OP_multiply, v, graph_const(g, value_weak_f64(1)));
  } else if (dtype_kind(t.dtype) < DK_FLOAT) {
    return rec_stuck(r, REASON_raises, "the derivative for %s", dtype_name(t.dtype));
  }
  *out = v ? graph_op1(g, OP_positive, v) : 0;
  if (*out && flag && !rec_weak_note(r, *out, flag)) return OUT_FAIL;
  return *out ? OUT_GO : OUT_FAIL;
}

Outcome pull_variables(Recorder *r, Av arg, ValueVec *variables, Av *out) {
  AvVec leaves = {0};
  Av tree = 0;
  Outcome o = rec_tree(r, arg, &tree);
  if (o == OUT_GO) o = rec_tree_leaves(r, tree, &leaves);
  if (o == OUT_GO && leaves.count == 0) o = rec_stuck(r, REASON_raises, "the derivative for %s", av_kind_text(r, tree));
  for (u32 k = 0; k < leaves.count && o == OUT_GO; k++) {
    ValueId v = 0;
    o = variable(r, leaves.data[k], &v);
    if (o == OUT_GO && (!vec_push(&r->vm->alloc, variables, v) || !(leaves.data[k] = av_num(r, v)))) o = OUT_FAIL;
  }
  u32 next = 0;
  if (o == OUT_GO && !(*out = rec_tree_rebuild(r, tree, leaves.data, &next))) o = OUT_FAIL;
  vec_free(&r->vm->alloc, &leaves);
  return o;
}

typedef struct Request {
  Av fn, argnum;
  bool list, value;
  u32 *at, count;
} Request;

static Outcome read_request(Recorder *r, Av transform, u32 nargs, Request *q) {
  q->fn = av_item(r, transform, 0);
  q->argnum = av_force(r, av_item(r, transform, 1));
  q->value = av_at(r, transform)->op == TF_value_and_grad;
  if (!q->argnum) return OUT_FAIL;
  q->list = av_is_list(r, q->argnum);
  q->count = q->list ? av_at(r, q->argnum)->count : 1;
  u8 *chosen = arena_alloc(&r->g->arena, nargs + 1u);
  q->at = arena_alloc(&r->g->arena, sizeof *q->at * (q->count + 1));
  if (!chosen || !q->at) return OUT_FAIL;
  for (u32 i = 0; i < q->count; i++) {
    i64 n;
    if (!rec_literal(r, q->list ? av_item(r, q->argnum, i) : q->argnum, "argnum", &n))
      return rec_stuck(r, REASON_literal_needed, "argnum must be known");
    if (n < 0) n += nargs;
    if (n < 0 || n >= nargs || chosen[n]) return rec_stuck(r, REASON_raises, "argnum");
    q->at[i] = (u32)n;
    chosen[n] = 1;
  }
  return OUT_GO;
}

Av pull_gradients(Recorder *r, Walk *w, Av like, const ValueId *variables, u32 count) {
  AvVec leaves = {0};
  bool ok = true;
  for (u32 i = 0; i < count && ok; i++) {
    ArrayType t = *value_type(r->g, variables[i]);
    ValueId v = pull_only_if(w, w->there[variables[i]], w->ct[variables[i]], 0);
    v = v ? graph_convert(r->g, v, t.dtype) : zeros(&w->d.head, &t);
    Av a = v ? av_num(r, v) : 0;
    ok = a && vec_push(&r->vm->alloc, &leaves, a);
  }
  u32 next = 0;
  Av tree = ok ? rec_tree_rebuild(r, like, leaves.data, &next) : 0;
  vec_free(&r->vm->alloc, &leaves);
  return tree;
}

static Outcome differentiate(Recorder *r, const Request *q, const Av *args, u32 nargs, Av *out) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  BlockId block = g->at;
  NodeId before = g->blocks.data[block].last;
  Av *passed = rec_avs(r, nargs), *grads = rec_avs(r, q->count), y = 0;
  u32 *first = arena_alloc(&g->arena, sizeof *first * (q->count + 1));
  ValueVec variables = {0};
  Walk w = {.r = r};
  Outcome o = OUT_GO;
  if (!passed || !grads || !first) return OUT_FAIL;
  if (nargs) memcpy(passed, args, sizeof *args * nargs);
  for (u32 i = 0; i < q->count && o == OUT_GO; i++) {
    o = pull_variables(r, args[q->at[i]], &variables, &passed[q->at[i]]);
    first[i + 1] = variables.count;
  }
  if (o == OUT_GO) {
    r->differentiating++;
    o = rec_call(r, q->fn, passed, NULL, nargs, &y);
    r->differentiating--;
  }
  if (o == OUT_GO && !(y = av_force(r, y))) o = OUT_FAIL;
  ValueId result = o == OUT_GO ? av_value(r, y) : 0;
  if (o == OUT_GO) {
    const ArrayType *t = result ? value_type(g, result) : NULL;
    bool weak_int = t && t->weak && dtype_kind(t->dtype) == DK_INT;
    if (!t || t->rank || (dtype_kind(t->dtype) != DK_FLOAT && !weak_int))
      o = rec_stuck(r, REASON_raises, "the derivative of %s", av_kind_text(r, y));
  }
  if (o == OUT_GO && g->at != block)
    o = rec_stuck(r, REASON_construct_body, "the derivative of a function that ends elsewhere");
  if (o == OUT_GO && !pull_walk_init(&w, r, block, before, variables.data, variables.count)) o = OUT_FAIL;
  if (o == OUT_GO && pull_is_active(&w, result)) {
    w.ct[result] = graph_const_f64(g, value_type(g, result)->dtype, 1);
    o = pull_walk_back(&w);
  }
  for (u32 i = 0; i < q->count && o == OUT_GO; i++)
    if (!(grads[i] = pull_gradients(r, &w, passed[q->at[i]], variables.data + first[i], first[i + 1] - first[i])))
      o = OUT_FAIL;
  if (o == OUT_GO) {
    Av pair[2] = {y, q->list ? av_list(r, grads, q->count) : grads[0]};
    o = pair[1] ? rec_made(r, q->value ? av_list(r, pair, 2) : pair[1], out) : OUT_FAIL;
  }
  pull_walk_free(&w);
  vec_free(alloc, &variables);
  return o;
}

Outcome record_grad(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out) {
  Request q;
  RecState state;
  Outcome o = read_request(r, transform, nargs, &q);
  if (o != OUT_GO) return o;
  RecMark mark = rec_mark(r);
  if (!rec_save(r, &state)) return OUT_FAIL;
  o = differentiate(r, &q, args, nargs, out);
  rec_end_try(r, &mark, &state, o);
  return o;
}
