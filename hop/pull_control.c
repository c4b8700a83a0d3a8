/* pull_control.c — derivatives of control nodes in a graph. cond: a cond of the pullbacks of its arms. scan and while: a scan
 * back over the trips (pull_loop.c), on the carried values that a scan forward stacked. */
#include "hop/flow.h"
#include "hop/pull_loop.h"
#include "hop/rules.h"

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

/* cond: a cond of the pullbacks of its arms, each of which runs its arm once more. It gives the cotangents, and whether
 * they are there: some arms do not speak of what others use. */
Outcome pull_cond(Walk *w, NodeId node) {
  Recorder *r = w->r;
  Graph *g = r->g;
  BlockId parent = g->at, arms[2] = {graph_node_at(g, node)->sub[0], graph_node_at(g, node)->sub[1]}, made[2] = {0, 0};
  enum { NEVER = 1, ALWAYS = 2, SOMETIMES = 3 }; /* NEVER in one arm and ALWAYS in the other is SOMETIMES */
  u32 first, ncaps = node_captures(g, node, &first), nresults = graph_node_at(g, node)->result_count;
  ValueVec wanted = {0}, outer = {0}, inner = {0}, yields = {0}, gives = {0};
  Allocator *alloc = &r->vm->alloc;
  Outcome o = OUT_GO;
  if (sizes_change(g, node)) return rec_stuck(r, REASON_data_dependent_shape, "the derivative of a branch whose arms give arrays of different sizes");
  for (u32 i = 0; i < ncaps; i++) {
    ValueId v = node_operand(g, node, first + i);
    if (!vec_push(alloc, &outer, v)) o = OUT_FAIL;
    if (pull_is_active(w, v) && pull_is_float(g, v) && (!vec_push(alloc, &wanted, v) || !vec_push(alloc, &gives, 0))) o = OUT_FAIL;
  }
  for (u32 k = 0; k < 2 && o == OUT_GO; k++) {
    const GraphBlock *arm = &g->blocks.data[arms[k]];
    if (arm->term != TERM_yield && arm->term != TERM_exit) {
      o = rec_stuck(r, REASON_no_rule, "the derivative of a branch that leaves");
      break;
    }
    bool exits = arm->term == TERM_exit; /* it was not taken, or nobody would be here */
    ValueMap map;
    map_init(&map, alloc);
    inner.count = yields.count = 0;
    bool ok = (made[k] = graph_open(g)) != 0;
    u32 caps = g->blocks.data[arms[k]].captures.count;
    for (u32 i = 0; i < caps && ok; i++) ok = i < outer.count && map_set(&map, g->blocks.data[arms[k]].captures.data[i].inner, outer.data[i]);
    ok = ok && (exits || graph_inline(g, arms[k], &map));
    for (u32 i = 0; i < wanted.count && ok; i++) {
      ValueId v = graph_lift(g, made[k], wanted.data[i]);
      ok = v && vec_push(alloc, &inner, v);
    }
    Walk arm_walk = {.r = r};
    ok = ok && pull_walk_init(&arm_walk, r, made[k], 0, inner.data, inner.count);
    for (u32 i = 0; i < nresults && ok && !exits; i++) {
      ValueId result = node_result(g, node, i), y = map_get(&map, block_result(g, arms[k], i));
      ValueId lifted = graph_lift(g, made[k], y);
      if (w->ct[result]) pull_give_if(&arm_walk, lifted ? lifted : y, w->ct[result], w->there[result]);
    }
    if (ok) o = pull_walk_back(&arm_walk);
    for (u32 i = 0; i < inner.count && ok && o == OUT_GO; i++) {
      ArrayType t = *value_type(g, inner.data[i]);
      ValueId v = arm_walk.ct[inner.data[i]];
      gives.data[i] |= !v ? NEVER : arm_walk.there[inner.data[i]] ? SOMETIMES : ALWAYS;
      v = v ? deriv_fit(&arm_walk.d.head, v, &t) : pull_zeros(g, &t);
      ok = v && vec_push(alloc, &yields, v);
    }
    for (u32 i = 0; i < inner.count && ok && o == OUT_GO; i++) ok = vec_push(alloc, &yields, pull_is_there(&arm_walk, inner.data[i]));
    if (ok && o == OUT_GO) ok = graph_close(g, TERM_yield, yields.data, yields.count, 0);
    pull_walk_free(&arm_walk);
    map_free(&map);
    if (!ok && o == OUT_GO) o = g->failed ? OUT_FAIL : rec_stuck(r, REASON_no_rule, "the derivative of a branch");
  }
  if (o == OUT_GO) {
    graph_at_end(g, parent);
    NodeId back = graph_cond(g, node_operand(g, node, 0), made[0], made[1]);
    for (u32 i = 0; i < wanted.count && back; i++)
      if (gives.data[i] != NEVER) pull_give_if(w, wanted.data[i], node_result(g, back, i), gives.data[i] == ALWAYS ? 0 : node_result(g, back, wanted.count + i));
    if (!back) o = OUT_FAIL;
  }
  vec_free(alloc, &wanted);
  vec_free(alloc, &outer);
  vec_free(alloc, &inner);
  vec_free(alloc, &yields);
  vec_free(alloc, &gives);
  return o;
}

/* ---- loops ----------------------------------------------------------------------------------------------------- */

bool loop_run_again(Recorder *r, NodeId node, BlockId b, const ValueId *params, u32 nparams, ValueMap *map) {
  Graph *g = r->g;
  u32 first, ncaps = node_captures(g, node, &first);
  for (u32 i = 0; i < ncaps; i++)
    if (!map_set(map, g->blocks.data[b].captures.data[i].inner, node_operand(g, node, first + i))) return false;
  for (u32 i = 0; i < nparams; i++)
    if (!map_set(map, g->blocks.data[b].params.data[i], params[i])) return false;
  return graph_inline(g, b, map);
}

bool loop_params_like(Recorder *r, BlockId b, const Loop *l, u32 from, u32 count, ValueVec *out) {
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
  ok = made && loop_params_like(r, made, l, 0, l->carried, &params) && loop_run_again(r, l->node, test, params.data, l->carried, &map);
  ValueId more = ok ? map_get(&map, block_result(g, test, 0)) : 0;
  map_free(&map);
  map_init(&map, alloc);
  ok = ok && (arms[0] = graph_open(g)) && loop_run_again(r, l->node, l->body, params.data, l->carried, &map);
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
  ok = made && loop_params_like(r, made, l, 0, l->carried + l->nxs + l->index, &params);
  ok = ok && loop_run_again(r, l->node, l->body, params.data, params.count, &map);
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
  if (flow_body_leaves(g, node)) {
    NodeId again = 0;
    Outcome made = flow_regular(r, node, &again);
    if (made != OUT_GO) return made;
    loop_read(g, &l, again);
  }
  u32 nresults = x.result_count, room = 2 * l.carried + x.result_count + 1, marks = 0;
  ValueId *ct = mem_alloc_zero(alloc, sizeof *ct * 2 * room);
  if (!ct) return OUT_FAIL;
  Outcome o = OUT_GO;
  for (u32 i = 0; i < nresults; i++) {
    ct[i] = w->ct[node_result(g, node, i)];
    ct[room + i] = w->there[node_result(g, node, i)];
  }
  l.ct = ct;
  l.there = ct + room;
  l.trips = x.length;
  if (x.kind == NODE_while && o == OUT_GO) {
    BlockId asks = graph_node_at(g, l.node)->sub[0];
    NodeId test = value_node(g, block_result(g, asks, 0));
    bool alone = g->blocks.data[asks].first == test && g->blocks.data[asks].last == test;
    l.trips = alone ? counted_trips(g, &l, test) : DIM_NONE;
    if (l.trips == DIM_NONE && test && graph_node_at(g, test)->kind == NODE_op && graph_node_at(g, test)->op == OP_logical_and) {
      l.trips = counted_trips(g, &l, value_node(g, node_operand(g, test, 1)));
      NodeId scan = l.trips != DIM_NONE ? as_scan(r, &l, l.trips) : 0;
      if (l.trips != DIM_NONE && !scan) o = OUT_FAIL;
      if (scan) loop_read(g, &l, scan);
    }
    if (l.trips == DIM_NONE) o = rec_stuck(r, REASON_no_rule, "the derivative of a loop whose trips nothing bounds");
  }
  marks = 3 * l.carried + l.nxs + l.ncaps + 1;
  if ((l.needed = mem_alloc_zero(alloc, marks))) {
    l.reached = l.needed + l.carried;
    l.maybe = l.reached + l.carried;
    l.given = l.maybe + l.carried;
  } else {
    o = OUT_FAIL;
  }
  GraphMark mark = graph_mark(g);
  for (u32 i = 0; i < l.carried && o == OUT_GO; i++) {
    l.reached[i] = ct[i] != 0;
    l.maybe[i] = l.there[i] != 0;
  }
  for (bool grown = true; grown && o == OUT_GO;) { /* at most once for each carried value */
    grown = false;
    o = loop_back(w, &l, &grown);
    if (o == OUT_GO) graph_rollback(g, mark);
  }
  if (o == OUT_GO) o = save_carries(r, &l) ? loop_back(w, &l, NULL) : OUT_FAIL;
  if (o == OUT_GO) r->vm->counters.at[STAT_loops_back]++;
  vec_free(alloc, &l.saved);
  if (l.needed) mem_free(alloc, l.needed, marks);
  mem_free(alloc, ct, sizeof *ct * 2 * room);
  return o;
}
