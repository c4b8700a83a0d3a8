/* pull_control.c — derivatives of control nodes in a graph. cond: a cond of the pullbacks of its arms. scan and while: a scan
 * back over the trips, on the carried values that a scan forward stacked. */
#include "hop/walk.h"

#include <string.h>

/* Its results have sizes of their own: those of the arms, or of the last trip. */
static bool sizes_change(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  for (u32 i = 0; i < g->sizes.syms.count; i++) {
    const SizeSym *s = &g->sizes.syms.data[i];
    if (s->unbacked && s->source && s->source - x->result_first < x->result_count && value_type(g, s->source)->rank) return true;
  }
  return false;
}

/* cond: a cond of the pullbacks of its arms, each of which runs its arm once more. */
Outcome pull_cond(Walk *w, NodeId node) {
  Recorder *r = w->r;
  Graph *g = r->g;
  BlockId parent = g->at, arms[2] = {graph_node_at(g, node)->sub[0], graph_node_at(g, node)->sub[1]}, made[2] = {0, 0};
  u32 first, ncaps = node_captures(g, node, &first), nresults = graph_node_at(g, node)->result_count;
  ValueVec wanted = {0}, outer = {0}, inner = {0}, yields = {0};
  Allocator *alloc = &r->vm->alloc;
  Outcome o = OUT_GO;
  if (sizes_change(g, node)) return rec_stuck(r, REASON_data_dependent_shape, "the derivative of a branch whose arms give arrays of different sizes");
  for (u32 i = 0; i < ncaps; i++) {
    ValueId v = node_operand(g, node, first + i);
    if (!vec_push(alloc, &outer, v)) o = OUT_FAIL;
    if (pull_is_active(w, v) && pull_is_float(g, v) && !vec_push(alloc, &wanted, v)) o = OUT_FAIL;
  }
  for (u32 k = 0; k < 2 && o == OUT_GO; k++) {
    const GraphBlock *arm = &g->blocks.data[arms[k]];
    if (arm->term != TERM_yield) {
      o = rec_stuck(r, REASON_no_rule, "the derivative of a branch that leaves");
      break;
    }
    ValueMap map;
    map_init(&map, alloc);
    inner.count = yields.count = 0;
    bool ok = (made[k] = graph_open(g)) != 0;
    u32 caps = g->blocks.data[arms[k]].captures.count;
    for (u32 i = 0; i < caps && ok; i++) ok = i < outer.count && map_set(&map, g->blocks.data[arms[k]].captures.data[i].inner, outer.data[i]);
    ok = ok && graph_inline(g, arms[k], &map);
    for (u32 i = 0; i < wanted.count && ok; i++) {
      ValueId v = graph_lift(g, made[k], wanted.data[i]);
      ok = v && vec_push(alloc, &inner, v);
    }
    Walk arm_walk = {.r = r};
    ok = ok && pull_walk_init(&arm_walk, r, made[k], 0, inner.data, inner.count);
    for (u32 i = 0; i < nresults && ok; i++) {
      ValueId ct = w->ct[node_result(g, node, i)];
      ValueId y = map_get(&map, block_result(g, arms[k], i));
      ValueId lifted = graph_lift(g, made[k], y);
      if (ct) pull_give(&arm_walk, lifted ? lifted : y, ct);
    }
    if (ok) o = pull_walk_back(&arm_walk);
    for (u32 i = 0; i < inner.count && ok && o == OUT_GO; i++) {
      ArrayType t = *value_type(g, inner.data[i]);
      ValueId v = arm_walk.ct[inner.data[i]];
      v = v ? deriv_fit(&arm_walk.d.head, v, &t) : pull_zeros(g, &t);
      ok = v && vec_push(alloc, &yields, v);
    }
    if (ok && o == OUT_GO) ok = graph_close(g, TERM_yield, yields.data, yields.count, 0);
    pull_walk_free(&arm_walk);
    map_free(&map);
    if (!ok && o == OUT_GO) o = g->failed ? OUT_FAIL : rec_stuck(r, REASON_no_rule, "the derivative of a branch");
  }
  if (o == OUT_GO) {
    graph_at_end(g, parent);
    NodeId back = graph_cond(g, node_operand(g, node, 0), made[0], made[1]);
    for (u32 i = 0; i < wanted.count && back; i++) pull_give(w, wanted.data[i], node_result(g, back, i));
    if (!back) o = OUT_FAIL;
  }
  vec_free(alloc, &wanted);
  vec_free(alloc, &outer);
  vec_free(alloc, &inner);
  vec_free(alloc, &yields);
  return o;
}

/* ---- loops ----------------------------------------------------------------------------------------------------- */

/* A loop as its pullback sees it: `trips` times a body over carried values, items of xs, and the trip's number. */
typedef struct Loop {
  NodeId node;
  BlockId body;
  u32 carried, nxs, stacked, ncaps, first; /* first: operand of the first capture */
  bool reverse, index;
  Dim trips;
  u8 *needed; /* per carried value: the way back needs what it was at the begin of each trip */
  u8 *reached; /* per carried value: its cotangent is not zero by structure */
  ValueVec saved; /* these, stacked; 0 where not needed */
  const ValueId *ct; /* of the results; 0: zero */
} Loop;

static bool leaves_early(const Graph *g, BlockId b) {
  if (g->blocks.data[b].term == TERM_break || g->blocks.data[b].term == TERM_exit) return true;
  for (GraphWalk w = walk_begin(g, b); walk_next(&w);) {
    const GraphNode *n = graph_node_at(g, w.node);
    for (u32 i = 0; i < node_subs(g, w.node); i++) {
      u8 term = g->blocks.data[n->sub[i]].term;
      if (term == TERM_break || term == TERM_exit) return true;
    }
  }
  return false;
}

/* What block b computes, once more at the cursor: parameters as given, captures as they are outside. */
static bool run_again(Recorder *r, NodeId node, BlockId b, const ValueId *params, u32 nparams, ValueMap *map) {
  Graph *g = r->g;
  u32 first, ncaps = node_captures(g, node, &first);
  for (u32 i = 0; i < ncaps; i++)
    if (!map_set(map, g->blocks.data[b].captures.data[i].inner, node_operand(g, node, first + i))) return false;
  for (u32 i = 0; i < nparams; i++)
    if (!map_set(map, g->blocks.data[b].params.data[i], params[i])) return false;
  return graph_inline(g, b, map);
}

/* Parameters of the current block like those of the loop's body from `from` on. */
static bool params_like(Recorder *r, BlockId b, const Loop *l, u32 from, u32 count, ValueVec *out) {
  Graph *g = r->g;
  for (u32 i = 0; i < count; i++) {
    ValueId old = g->blocks.data[l->body].params.data[from + i], v = graph_param(g, b, g->values.data[old].type);
    if (!v || !vec_push(&r->vm->alloc, out, v)) return false;
  }
  return true;
}

/* The trips of a while loop that goes on only while a carried number, which counts up by 1, is less than what does not
 * change: hi - lo. `test`: the comparison. DIM_NONE: not such a loop. */
static Dim counted_trips(Graph *g, const Loop *l, NodeId test) {
  const GraphBlock *c = &g->blocks.data[graph_node_at(g, l->node)->sub[0]], *b = &g->blocks.data[l->body];
  if (!test || b->term != TERM_next || graph_node_at(g, test)->kind != NODE_op || graph_node_at(g, test)->op != OP_less) return DIM_NONE;
  u32 i = 0;
  while (i < l->carried && c->params.data[i] != node_operand(g, test, 0)) i++;
  if (i == l->carried) return DIM_NONE;
  ValueId bound = node_operand(g, test, 1);
  for (u32 k = 0; k < l->ncaps; k++)
    if (c->captures.data[k].inner == bound) bound = node_operand(g, l->node, l->first + k);
  NodeId step = value_node(g, block_result(g, l->body, i));
  Value one;
  if (!step || graph_node_at(g, step)->kind != NODE_op || graph_node_at(g, step)->op != OP_add) return DIM_NONE;
  if (node_operand(g, step, 0) != b->params.data[i] || !value_const(g, node_operand(g, step, 1), &one) || one.dtype != DT_i64 || one.i != 1) return DIM_NONE;
  Dim lo, hi;
  if (!value_dim(g, node_operand(g, l->node, i), &lo) || !value_dim(g, bound, &hi) || lo == DIM_NONE || hi == DIM_NONE) return DIM_NONE;
  return size_max(&g->sizes, size_sub(&g->sizes, hi, lo), 0);
}

/* A while loop of at most `trips`, as a scan of so many: a trip either runs the body or leaves all as it is. */
static NodeId as_scan(Recorder *r, const Loop *l, Dim trips) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  ValueVec init = {0}, params = {0}, next = {0};
  BlockId arms[2] = {0, 0}, test = graph_node_at(g, l->node)->sub[0];
  ValueMap map;
  map_init(&map, alloc);
  bool ok = true;
  for (u32 i = 0; i < l->carried && ok; i++) ok = vec_push(alloc, &init, node_operand(g, l->node, i));
  BlockId parent = g->at, made = ok ? graph_open(g) : 0;
  ok = made && params_like(r, made, l, 0, l->carried, &params) && run_again(r, l->node, test, params.data, l->carried, &map);
  ValueId more = ok ? map_get(&map, block_result(g, test, 0)) : 0;
  map_free(&map);
  map_init(&map, alloc);
  ok = ok && (arms[0] = graph_open(g)) && run_again(r, l->node, l->body, params.data, l->carried, &map);
  for (u32 i = 0; i < l->carried && ok; i++) ok = vec_push(alloc, &next, map_get(&map, block_result(g, l->body, i)));
  ok = ok && graph_close(g, TERM_yield, next.data, next.count, 0);
  ok = ok && (arms[1] = graph_open(g)) && graph_close(g, TERM_yield, params.data, params.count, 0);
  NodeId choice = ok ? graph_cond(g, more, arms[0], arms[1]) : 0;
  next.count = 0;
  for (u32 i = 0; i < l->carried && choice; i++) ok = ok && vec_push(alloc, &next, node_result(g, choice, i));
  for (u32 i = 0; i < l->carried && choice && ok; i++) ok = vec_push(alloc, &next, graph_convert(g, params.data[i], value_type(g, params.data[i])->dtype));
  ok = ok && choice && graph_close(g, TERM_next, next.data, next.count, 0);
  if (ok) graph_at_end(g, parent);
  NodeId node = ok ? graph_scan(g, init.data, init.count, NULL, 0, trips, false, false, made) : 0;
  map_free(&map);
  vec_free(alloc, &init);
  vec_free(alloc, &params);
  vec_free(alloc, &next);
  return node;
}

/* The carried values that the way back needs, of each trip: of the loop itself where it stacks them, else by running
 * it once more. */
static bool save_carries(Recorder *r, Loop *l) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  const GraphBlock *b = &g->blocks.data[l->body];
  u32 missing = 0;
  l->saved.count = 0;
  for (u32 i = 0; i < l->carried; i++) {
    ValueId found = 0;
    for (u32 k = 0; k < l->stacked && !found; k++)
      if (block_result(g, l->body, l->carried + k) == b->params.data[i]) found = node_result(g, l->node, l->carried + k);
    if (!vec_push(alloc, &l->saved, found)) return false;
    missing += l->needed[i] && !found;
  }
  if (!missing) return true;
  ValueVec init = {0}, xs = {0}, params = {0}, next = {0};
  ValueMap map;
  map_init(&map, alloc);
  bool ok = true;
  for (u32 i = 0; i < l->carried && ok; i++) ok = vec_push(alloc, &init, node_operand(g, l->node, i));
  for (u32 i = 0; i < l->nxs && ok; i++) ok = vec_push(alloc, &xs, node_operand(g, l->node, l->carried + i));
  BlockId made = ok ? graph_open(g) : 0;
  ok = made && params_like(r, made, l, 0, l->carried + l->nxs + l->index, &params);
  ok = ok && run_again(r, l->node, l->body, params.data, params.count, &map);
  for (u32 i = 0; i < l->carried && ok; i++) ok = vec_push(alloc, &next, map_get(&map, block_result(g, l->body, i)));
  for (u32 i = 0; i < l->carried && ok; i++)
    if (l->needed[i] && !l->saved.data[i]) ok = vec_push(alloc, &next, graph_convert(g, params.data[i], value_type(g, params.data[i])->dtype));
  ok = ok && graph_close(g, TERM_next, next.data, next.count, 0);
  NodeId node = ok ? graph_scan(g, init.data, init.count, xs.data, xs.count, l->trips, l->reverse, l->index, made) : 0;
  for (u32 i = 0, k = l->carried; i < l->carried && node; i++)
    if (l->needed[i] && !l->saved.data[i]) l->saved.data[i] = node_result(g, node, k++);
  map_free(&map);
  vec_free(alloc, &init);
  vec_free(alloc, &xs);
  vec_free(alloc, &params);
  vec_free(alloc, &next);
  return node != 0;
}

static bool holds_check(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  if (x->kind == NODE_check) return true;
  for (u32 i = 0; i < node_subs(g, n); i++)
    for (GraphWalk w = walk_begin(g, x->sub[i]); walk_next(&w);)
      if (graph_node_at(g, w.node)->kind == NODE_check) return true;
  return false;
}

/* Marks the parameters of the current block's copy of a loop that its results need. */
static bool mark_needed(Recorder *r, BlockId b, const ValueVec *params, u8 *needed) {
  const Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  u8 *live = mem_alloc_zero(alloc, g->values.count);
  if (!live) return false;
  for (u32 i = 0; i < g->blocks.data[b].term_count; i++) live[block_result(g, b, i)] = 1;
  for (NodeId n = g->blocks.data[b].last; n; n = graph_node_at(g, n)->prev) {
    const GraphNode *x = graph_node_at(g, n);
    bool used = holds_check(g, n);
    for (u32 i = 0; i < x->result_count && !used; i++) used = live[node_result(g, n, i)];
    for (u32 i = 0; i < x->operand_count && used; i++) live[node_operand(g, n, i)] = 1;
  }
  for (u32 i = 0; i < params->count; i++) needed[i] = live[params->data[i]];
  mem_free(alloc, live, g->values.count);
  return true;
}

static bool takes(const Graph *g, const Loop *l, u32 i) { return l->reached[i] && pull_is_float(g, g->blocks.data[l->body].params.data[i]); }

/* What a trial has shown: which carried values got a cotangent from those of the results. *grown: there are more of them
 * than before. A zero by structure is none of 0 times infinity, so one that the body takes away again is no loop's. */
static Outcome reach(Recorder *r, Loop *l, const Walk *inner, const ValueVec *variables, bool *grown) {
  const Graph *g = r->g;
  for (u32 i = 0, k = 0; i < l->carried; i++) {
    if (!pull_is_float(g, g->blocks.data[l->body].params.data[i])) continue;
    if (inner->ct[variables->data[k++]]) *grown |= !l->reached[i], l->reached[i] = 1;
    else if (l->reached[i]) return rec_stuck(r, REASON_no_rule, "the derivative of a loop that forgets what it carries");
  }
  return OUT_GO;
}

/* The scan back over the loop: carries the cotangents of the carried values and the sums of those of the captures,
 * and stacks those of the items. Every trip runs the body once more on what was saved. With `grown` it is a trial, of
 * which only l->needed and l->reached come. */
static Outcome scan_back(Walk *w, Loop *l, bool *grown) {
  bool trial = grown != NULL;
  Recorder *r = w->r;
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  ValueVec init = {0}, xs = {0}, params = {0}, cts = {0}, sums = {0}, caps = {0}, variables = {0}, next = {0}, items = {0};
  ValueMap map;
  Walk inner = {.r = r};
  Outcome o = OUT_GO;
  const GraphBlock *body = &g->blocks.data[l->body];
  map_init(&map, alloc);
  bool ok = true;
  for (u32 i = 0; i < l->carried && ok; i++) { /* cotangents of the carried values that have any */
    if (!takes(g, l, i)) continue;
    ArrayType t = *value_type(g, body->params.data[i]);
    t.weak = false;
    ValueId ct = l->ct[i];
    ct = ct ? deriv_fit(&w->d.head, ct, &t) : pull_zeros(g, &t);
    ok = ct && vec_push(alloc, &init, ct);
  }
  u32 nstate = init.count;
  for (u32 i = 0; i < l->ncaps && ok; i++) {
    ValueId v = node_operand(g, l->node, l->first + i);
    if (!pull_is_active(w, v) || !pull_is_float(g, v)) continue;
    ArrayType t = *value_type(g, v);
    t.weak = false;
    ValueId sum = w->ct[v]; /* one sum over all trips of all loops, in the order of the tape */
    sum = sum ? deriv_fit(&w->d.head, sum, &t) : pull_zeros(g, &t);
    ok = sum && vec_push(alloc, &caps, v) && vec_push(alloc, &init, sum);
  }
  /* xs: saved values, items, cotangents of stacked results */
  for (u32 i = 0; i < l->carried && ok && !trial; i++)
    if (l->needed[i]) ok = vec_push(alloc, &xs, l->saved.data[i]);
  for (u32 i = 0; i < l->nxs && ok; i++) ok = vec_push(alloc, &xs, node_operand(g, l->node, l->carried + i));
  for (u32 i = 0; i < l->stacked && ok; i++) {
    ValueId ct = l->ct[l->carried + i];
    ArrayType t = *value_type(g, node_result(g, l->node, l->carried + i));
    if (ct) ok = vec_push(alloc, &xs, deriv_fit(&w->d.head, ct, &t));
  }
  BlockId parent = g->at, made = ok ? graph_open(g) : 0;
  ok = made != 0;
  for (u32 i = 0; i < init.count && ok; i++) {
    ValueId p = graph_param(g, made, g->values.data[init.data[i]].type);
    ok = p && vec_push(alloc, i < nstate ? &cts : &sums, p);
  }
  for (u32 i = 0; i < l->carried && ok; i++) {
    ValueId p;
    if (trial || l->needed[i]) {
      p = graph_param(g, made, g->values.data[g->blocks.data[l->body].params.data[i]].type);
    } else { /* computed by nothing that counts */
      ArrayType t = *value_type(g, g->blocks.data[l->body].params.data[i]);
      p = t.rank ? graph_full(g, t.dtype, t.rank, t.dims, 0) : graph_op1(g, OP_positive, graph_const(g, (Value){.kind = V_NUM, .dtype = t.dtype, .flags = t.weak ? VF_WEAK : 0}));
    }
    ok = p && vec_push(alloc, &params, p);
  }
  ok = ok && params_like(r, made, l, l->carried, l->nxs, &params);
  for (u32 i = 0; i < l->stacked && ok; i++) {
    ValueId y = node_result(g, l->node, l->carried + i), p = 0;
    if (!l->ct[l->carried + i]) {
      ok = vec_push(alloc, &items, 0);
      continue;
    }
    ArrayType t = *value_type(g, y);
    t.rank--;
    memmove(t.dims, t.dims + 1, sizeof t.dims[0] * t.rank);
    ok = (p = graph_param(g, made, graph_type(g, &t))) && vec_push(alloc, &items, p);
  }
  if (ok && l->index) ok = params_like(r, made, l, l->carried + l->nxs, 1, &params);
  /* the trip forward, and back */
  ok = ok && run_again(r, l->node, l->body, params.data, params.count, &map);
  for (u32 i = 0; i < l->carried && ok; i++)
    if (trial ? pull_is_float(g, params.data[i]) : takes(g, l, i)) ok = vec_push(alloc, &variables, params.data[i]);
  for (u32 i = 0; i < l->nxs && ok; i++)
    if (pull_is_active(w, node_operand(g, l->node, l->carried + i)) && pull_is_float(g, params.data[l->carried + i])) ok = vec_push(alloc, &variables, params.data[l->carried + i]);
  for (u32 i = 0; i < caps.count && ok; i++) {
    ValueId v = graph_lift(g, made, caps.data[i]);
    ok = v && vec_push(alloc, &variables, v);
  }
  ok = ok && pull_walk_init(&inner, r, made, 0, variables.data, variables.count);
  u32 nvars = variables.count - caps.count;
  for (u32 i = 0; i < caps.count && ok; i++) pull_give(&inner, variables.data[nvars + i], sums.data[i]);
  for (u32 i = 0, k = 0; i < l->carried && ok; i++) {
    ValueId y = map_get(&map, block_result(g, l->body, i));
    if (!takes(g, l, i)) continue;
    ValueId to = graph_lift(g, made, y);
    pull_give(&inner, to ? to : y, cts.data[k++]);
  }
  for (u32 i = 0; i < l->stacked && ok; i++) {
    if (!items.data[i]) continue;
    ValueId y = map_get(&map, block_result(g, l->body, l->carried + i)), to = graph_lift(g, made, y);
    pull_give(&inner, to ? to : y, items.data[i]);
  }
  if (ok) o = pull_walk_back(&inner);
  if (ok && o == OUT_GO && trial) o = reach(r, l, &inner, &variables, grown);
  for (u32 i = 0; i < variables.count && ok && o == OUT_GO; i++) {
    bool item = i >= nstate && i < nvars;
    if (item) continue;
    ValueId v = inner.ct[variables.data[i]];
    ArrayType t = *value_type(g, variables.data[i]);
    t.weak = false;
    v = v ? deriv_fit(&inner.d.head, v, &t) : pull_zeros(g, &t);
    ok = v && vec_push(alloc, &next, v);
  }
  for (u32 i = nstate; i < nvars && ok && o == OUT_GO; i++) {
    ValueId v = inner.ct[variables.data[i]];
    ArrayType t = *value_type(g, variables.data[i]);
    t.weak = false;
    v = v ? deriv_fit(&inner.d.head, v, &t) : pull_zeros(g, &t);
    ok = v && vec_push(alloc, &next, v);
  }
  if (ok && o == OUT_GO) ok = graph_close(g, TERM_next, next.data, next.count, 0);
  if (ok && o == OUT_GO && trial) {
    ok = mark_needed(r, made, &(ValueVec){.data = params.data, .count = l->carried}, l->needed);
  } else if (ok && o == OUT_GO) {
    graph_at_end(g, parent);
    NodeId back = graph_scan(g, init.data, init.count, xs.data, xs.count, l->trips, !l->reverse, l->index, made);
    ok = back != 0;
    for (u32 i = 0; i < caps.count && ok; i++) w->ct[caps.data[i]] = node_result(g, back, nstate + i);
    for (u32 i = 0, k = 0; i < l->carried && ok; i++)
      if (takes(g, l, i)) pull_give(w, node_operand(g, l->node, i), node_result(g, back, k++));
    for (u32 i = 0, k = init.count; i < l->nxs && ok; i++) {
      ValueId x = node_operand(g, l->node, l->carried + i);
      if (pull_is_active(w, x) && pull_is_float(g, params.data[l->carried + i])) pull_give(w, x, node_result(g, back, k++));
    }
  }
  if (!ok && o == OUT_GO) o = g->failed || r->failed ? OUT_FAIL : rec_stuck(r, REASON_no_rule, "the derivative of a loop");
  pull_walk_free(&inner);
  map_free(&map);
  vec_free(alloc, &init);
  vec_free(alloc, &xs);
  vec_free(alloc, &params);
  vec_free(alloc, &cts);
  vec_free(alloc, &sums);
  vec_free(alloc, &caps);
  vec_free(alloc, &variables);
  vec_free(alloc, &next);
  vec_free(alloc, &items);
  return o;
}

static void loop_read(const Graph *g, Loop *l, NodeId node) {
  const GraphNode *x = graph_node_at(g, node);
  l->node = node;
  l->carried = x->carried;
  l->reverse = x->reverse;
  l->index = x->index;
  l->nxs = x->kind == NODE_scan ? x->xs : 0;
  l->body = x->sub[x->kind == NODE_scan ? 0 : 1];
  l->stacked = x->result_count - x->carried;
  l->ncaps = node_captures(g, node, &l->first);
}

Outcome pull_loop(Walk *w, NodeId node) {
  Recorder *r = w->r;
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  const GraphNode x = *graph_node_at(g, node);
  Loop l = {0};
  if (sizes_change(g, node)) return rec_stuck(r, REASON_data_dependent_shape, "the derivative of a loop that carries an array of changing size");
  loop_read(g, &l, node);
  if (leaves_early(g, l.body) || (x.kind == NODE_while && leaves_early(g, x.sub[0]))) return rec_stuck(r, REASON_no_rule, "the derivative of a loop that is left early");
  u32 nresults = x.result_count, room = 2 * x.carried + x.result_count + 1;
  ValueId *ct = mem_alloc_zero(alloc, sizeof *ct * room);
  l.needed = mem_alloc_zero(alloc, x.carried + 1);
  l.reached = mem_alloc_zero(alloc, x.carried + 1);
  Outcome o = ct && l.needed && l.reached ? OUT_GO : OUT_FAIL;
  for (u32 i = 0; i < nresults && o == OUT_GO; i++) ct[i] = w->ct[node_result(g, node, i)];
  l.ct = ct;
  l.trips = x.length;
  if (x.kind == NODE_while && o == OUT_GO) {
    NodeId test = value_node(g, block_result(g, x.sub[0], 0));
    bool alone = g->blocks.data[x.sub[0]].first == test && g->blocks.data[x.sub[0]].last == test;
    l.trips = alone ? counted_trips(g, &l, test) : DIM_NONE;
    if (l.trips == DIM_NONE && test && graph_node_at(g, test)->kind == NODE_op && graph_node_at(g, test)->op == OP_logical_and) {
      l.trips = counted_trips(g, &l, value_node(g, node_operand(g, test, 1)));
      NodeId scan = l.trips != DIM_NONE ? as_scan(r, &l, l.trips) : 0;
      if (l.trips != DIM_NONE && !scan) o = OUT_FAIL;
      if (scan) loop_read(g, &l, scan);
    }
    if (l.trips == DIM_NONE) o = rec_stuck(r, REASON_no_rule, "the derivative of a loop whose trips nothing bounds");
  }
  GraphMark mark = graph_mark(g);
  for (u32 i = 0; i < l.carried && o == OUT_GO; i++) l.reached[i] = ct[i] != 0;
  for (bool grown = true; grown && o == OUT_GO;) { /* at most once for each carried value */
    grown = false;
    o = scan_back(w, &l, &grown);
    if (o == OUT_GO) graph_rollback(g, mark);
  }
  if (o == OUT_GO) o = save_carries(r, &l) ? scan_back(w, &l, NULL) : OUT_FAIL;
  if (o == OUT_GO) r->vm->counters.at[STAT_loops_back]++;
  vec_free(alloc, &l.saved);
  if (l.needed) mem_free(alloc, l.needed, x.carried + 1);
  if (l.reached) mem_free(alloc, l.reached, x.carried + 1);
  if (ct) mem_free(alloc, ct, sizeof *ct * room);
  return o;
}
