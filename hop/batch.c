/* batch.c — batching of blocks: which values differ between lanes, control flow, and the way out for what has no
 * rule: a scan over the lanes (see batch.h). */
#include "hop/batch.h"

#include "hop/flow.h"
#include "lang/mechanisms.h"
#include "tracer/record/record_run.h"

#include <string.h>

bool batch_init(Batch *b, Recorder *r, Dim lanes) {
  *b = (Batch){.r = r, .g = r->g, .lanes = lanes, .count = r->g->values.count};
  b->to = mem_alloc_zero(&r->vm->alloc, sizeof *b->to * b->count);
  b->mapped = mem_alloc_zero(&r->vm->alloc, b->count);
  return b->to && b->mapped;
}

void batch_free(Batch *b) {
  Allocator *a = &b->r->vm->alloc;
  if (b->to) mem_free(a, b->to, sizeof *b->to * b->count);
  if (b->mapped) mem_free(a, b->mapped, b->count);
}

void batch_set(Batch *b, ValueId v, ValueId to, bool mapped) {
  b->to[v] = to;
  b->mapped[v] = mapped;
}

bool batch_is_mapped(const Batch *b, ValueId v) { return v < b->count && b->mapped[v]; }
ValueId batch_get(const Batch *b, ValueId v) { return v < b->count && b->to[v] ? b->to[v] : v; }

static ArrayType with_lanes(const Batch *b, const ArrayType *lane) {
  ArrayType t = *lane;
  memmove(t.dims + 1, t.dims, sizeof t.dims[0] * t.rank);
  t.dims[0] = b->lanes;
  t.rank++;
  t.weak = false;
  return t;
}

ValueId batch_full(Batch *b, ValueId v) {
  Graph *g = b->g;
  if (batch_is_mapped(b, v)) return b->to[v];
  ArrayType lane = *value_type(g, batch_get(b, v));
  if (lane.rank == TYPE_MAX_RANK) return 0;
  ArrayType t = with_lanes(b, &lane);
  return graph_broadcast(g, graph_convert(g, batch_get(b, v), lane.dtype), t.rank, t.dims);
}

ValueId batch_aligned(Batch *b, ValueId x, u32 rank, u32 to) {
  Graph *g = b->g;
  ArrayType t = *value_type(g, x);
  Dim dims[TYPE_MAX_RANK] = {t.dims[0]};
  if (rank == to) return x;
  for (u32 i = 0; i < to; i++) dims[1 + i] = i < to - rank ? 1 : t.dims[1 + i - (to - rank)];
  return graph_reshape(g, x, to + 1, dims);
}

/* ---- what differs between lanes -------------------------------------------------------------- */

static bool any_mapped(const Batch *b, NodeId n) {
  for (u32 i = 0; i < graph_node_at(b->g, n)->operand_count; i++)
    if (batch_is_mapped(b, node_operand(b->g, n, i))) return true;
  return false;
}

/* Something in the block that must not run for lanes that do not take it: a check, an effect or an exit, or what
 * may go on for ever when it begins with anything. */
static bool is_bound(const Graph *g, BlockId block) {
  if (g->blocks.data[block].term == TERM_exit) return true;
  for (GraphWalk w = walk_begin(g, block); walk_next(&w);) {
    const GraphNode *n = graph_node_at(g, w.node);
    if (n->kind == NODE_check || n->kind == NODE_recur || node_is_effect(g, w.node)) return true;
    if (n->kind == NODE_while && !flow_counts(g, w.node)) return true;
    for (u32 i = 0; i < node_subs(g, w.node); i++)
      if (g->blocks.data[n->sub[i]].term == TERM_exit) return true;
  }
  return false;
}

/* A node that is not batched but repeated, since control leaves what it holds in the midst. */
static bool is_repeated(const Graph *g, NodeId n) {
  u8 kind = graph_node_at(g, n)->kind;
  return kind == NODE_cond ? flow_arms_leave(g, n) : (kind == NODE_scan || kind == NODE_while) && flow_leaves(g, n);
}

static void mark_captures(Batch *b, NodeId n, BlockId block) {
  u32 first, ncaps = node_captures(b->g, n, &first);
  for (u32 i = 0; i < ncaps; i++)
    b->mapped[b->g->blocks.data[block].captures.data[i].inner] = batch_is_mapped(b, node_operand(b->g, n, first + i));
}

/* Depth is that of blocks: bounded by GRAPH_MAX_DEPTH. */
static void mark_block(Batch *b, BlockId block);

static void mark_results(Batch *b, NodeId n, bool mapped) {
  for (u32 i = 0; i < graph_node_at(b->g, n)->result_count; i++) b->mapped[node_result(b->g, n, i)] = mapped;
}

static void mark_loop(Batch *b, NodeId n) {
  Graph *g = b->g;
  const GraphNode *x = graph_node_at(g, n);
  bool scan = x->kind == NODE_scan;
  BlockId body = x->sub[scan ? 0 : 1], cond = scan ? 0 : x->sub[0];
  const GraphBlock *bb = &g->blocks.data[body];
  for (u32 i = 0; i < x->carried + (scan ? x->xs : 0); i++)
    b->mapped[bb->params.data[i]] = batch_is_mapped(b, node_operand(g, n, i));
  for (bool again = true; again;) {
    again = false;
    mark_captures(b, n, body);
    mark_block(b, body);
    bool all = false;
    if (cond) {
      mark_captures(b, n, cond);
      for (u32 i = 0; i < x->carried; i++)
        b->mapped[g->blocks.data[cond].params.data[i]] = b->mapped[bb->params.data[i]];
      mark_block(b, cond);
      all = batch_is_mapped(b, block_result(g, cond, 0));
    }
    for (u32 i = 0; i < x->carried; i++)
      if (!b->mapped[bb->params.data[i]] && (all || batch_is_mapped(b, block_result(g, body, i)))) {
        b->mapped[bb->params.data[i]] = true;
        again = true;
      }
  }
  for (u32 i = 0; i < x->result_count; i++)
    b->mapped[node_result(g, n, i)] = i < x->carried ? b->mapped[bb->params.data[i]]
                                                     : batch_is_mapped(b, block_result(g, body, i));
}

static void mark_block(Batch *b, BlockId block) {
  Graph *g = b->g;
  for (NodeId n = block_first(g, block); n; n = node_next(g, n)) {
    const GraphNode *x = graph_node_at(g, n);
    if (is_repeated(g, n)) {
      /* one node for each lane: what it gives has lanes, though it be the same in all */
      mark_results(b, n, any_mapped(b, n));
    } else if (x->kind == NODE_scan || x->kind == NODE_while) {
      mark_loop(b, n);
    } else if (x->kind == NODE_cond) {
      bool p = batch_is_mapped(b, node_operand(g, n, 0));
      for (u32 k = 0; k < 2; k++) {
        mark_captures(b, n, x->sub[k]);
        mark_block(b, x->sub[k]);
      }
      for (u32 i = 0; i < x->result_count; i++) {
        bool mapped = p;
        for (u32 k = 0; k < 2; k++) mapped |= batch_is_mapped(b, block_result(g, x->sub[k], i));
        b->mapped[node_result(g, n, i)] = mapped;
      }
    } else {
      mark_results(b, n, any_mapped(b, n));
    }
  }
}

void batch_mark(Batch *b, BlockId block) { mark_block(b, block); }

bool batch_parts(const Batch *b, BlockId block) {
  const Graph *g = b->g;
  for (GraphWalk w = walk_begin(g, block); walk_next(&w);) {
    const GraphNode *x = graph_node_at(g, w.node);
    if (x->kind == NODE_cond && batch_is_mapped(b, node_operand(g, w.node, 0))) return true;
    if (x->kind == NODE_while && batch_is_mapped(b, block_result(g, x->sub[0], 0))) return true;
    if (is_repeated(g, w.node) && any_mapped(b, w.node)) return true;
  }
  return false;
}

/* ---- control --------------------------------------------------------------------------------- */

static Outcome batch_enter_block(Batch *b, NodeId n, BlockId block) {
  Graph *g = b->g;
  u32 first, ncaps = node_captures(g, n, &first);
  for (u32 i = 0; i < ncaps; i++)
    b->to[g->blocks.data[block].captures.data[i].inner] = batch_get(b, node_operand(g, n, first + i));
  return batch_block(b, block);
}

static ValueId result_of(Batch *b, ValueId v, bool mapped) { return mapped ? batch_full(b, v) : batch_get(b, v); }

/* where(p, x, y) over lanes, p one bool for each. */
static ValueId choose(Batch *b, ValueId p, ValueId x, ValueId y) {
  return x == y ? x : graph_op3(b->g, OP_where, batch_aligned(b, p, 0, value_type(b->g, x)->rank - 1u), x, y);
}

static Outcome batch_cond(Batch *b, NodeId n) {
  Graph *g = b->g;
  Recorder *r = b->r;
  const GraphNode x = *graph_node_at(g, n);
  ValueId p = node_operand(g, n, 0);
  ValueVec yields[2] = {{0}, {0}};
  BlockId made[2] = {0, 0};
  bool select = batch_is_mapped(b, p);
  Outcome o = OUT_GO;
  for (u32 k = 0; k < 2 && o == OUT_GO; k++) {
    if (!select && !(made[k] = graph_open(g))) o = OUT_FAIL;
    if (o == OUT_GO) o = batch_enter_block(b, n, x.sub[k]);
    for (u32 i = 0; i < x.result_count && o == OUT_GO; i++) {
      ValueId v = result_of(b, block_result(g, x.sub[k], i), b->mapped[node_result(g, n, i)]);
      if (!v || !vec_push(&r->vm->alloc, &yields[k], v)) o = OUT_FAIL;
    }
    if (o == OUT_GO && !select && !graph_close(g, TERM_yield, yields[k].data, yields[k].count, 0)) o = OUT_FAIL;
  }
  NodeId node = o == OUT_GO && !select ? graph_cond(g, batch_get(b, p), made[0], made[1]) : 0;
  if (o == OUT_GO && !select && !node) o = OUT_FAIL;
  for (u32 i = 0; i < x.result_count && o == OUT_GO; i++) {
    ValueId v = node ? node_result(g, node, i) : choose(b, batch_get(b, p), yields[0].data[i], yields[1].data[i]);
    if (!v) o = OUT_FAIL;
    else b->to[node_result(g, n, i)] = v;
  }
  vec_free(&r->vm->alloc, &yields[0]);
  vec_free(&r->vm->alloc, &yields[1]);
  return o;
}

/* Parameters of the current block for `count` of the old block's from `from` on: with lanes where mapped. */
static bool lane_params(Batch *b, BlockId made, BlockId old, u32 from, u32 count, ValueVec *out) {
  Graph *g = b->g;
  for (u32 i = 0; i < count; i++) {
    ValueId v = g->blocks.data[old].params.data[from + i];
    ArrayType t = *value_type(g, v);
    if (b->mapped[v]) t = with_lanes(b, &t);
    ValueId p = graph_param(g, made, graph_type(g, &t));
    if (!p || (out && !vec_push(&b->r->vm->alloc, out, p))) return false;
    b->to[v] = p;
  }
  return true;
}

/* Axis `from` of x moved to `to`. */
static ValueId batch_moved(Graph *g, ValueId x, u32 from, u32 to) {
  if (!x || from == to) return x;
  GraphAttr attrs[2] = {attr_int(1, from), attr_int(2, to)};
  return graph_op(g, OP_moveaxis, &x, 1, attrs, 2, NULL);
}

static Outcome batch_scan(Batch *b, NodeId n) {
  Graph *g = b->g;
  Allocator *alloc = &b->r->vm->alloc;
  const GraphNode x = *graph_node_at(g, n);
  BlockId body = x.sub[0];
  ValueVec init = {0}, xs = {0}, next = {0};
  bool ok = true;
  Outcome o = OUT_GO;
  for (u32 i = 0; i < x.carried && ok; i++) {
    ValueId v = result_of(b, node_operand(g, n, i), b->mapped[g->blocks.data[body].params.data[i]]);
    ok = v && vec_push(alloc, &init, v);
  }
  for (u32 i = 0; i < x.xs && ok; i++) {
    ValueId old = node_operand(g, n, x.carried + i), v = batch_get(b, old);
    if (batch_is_mapped(b, old)) v = batch_moved(g, v, 0, 1);
    ok = v && vec_push(alloc, &xs, v);
  }
  BlockId made = ok ? graph_open(g) : 0;
  ok = made && lane_params(b, made, body, 0, x.carried + x.xs + x.index, NULL);
  if (ok) o = batch_enter_block(b, n, body);
  for (u32 i = 0; i < g->blocks.data[body].term_count && ok && o == OUT_GO; i++) {
    ValueId old = block_result(g, body, i);
    bool mapped = i < x.carried ? b->mapped[g->blocks.data[body].params.data[i]] : batch_is_mapped(b, old);
    ValueId v = result_of(b, old, mapped);
    ok = v && vec_push(alloc, &next, v);
  }
  if (ok && o == OUT_GO) ok = graph_close(g, TERM_next, next.data, next.count, 0);
  NodeId node = ok && o == OUT_GO ? graph_scan(g, init.data, init.count, xs.data, xs.count, x.length, x.reverse,
                                               x.index, made) : 0;
  if (o == OUT_GO && !node) o = OUT_FAIL;
  for (u32 i = 0; i < x.result_count && node && o == OUT_GO; i++) {
    ValueId v = node_result(g, node, i);
    if (i >= x.carried && b->mapped[node_result(g, n, i)]) v = batch_moved(g, v, 1, 0);
    if (!v) o = OUT_FAIL;
    else b->to[node_result(g, n, i)] = v;
  }
  vec_free(alloc, &init);
  vec_free(alloc, &xs);
  vec_free(alloc, &next);
  return o;
}

/* Goes on while any lane does; a lane that is done keeps its state. */
static Outcome batch_while(Batch *b, NodeId n) {
  Graph *g = b->g;
  Allocator *alloc = &b->r->vm->alloc;
  const GraphNode x = *graph_node_at(g, n);
  BlockId cond = x.sub[0], body = x.sub[1];
  bool masked = batch_is_mapped(b, block_result(g, cond, 0)), ok = true;
  ValueVec init = {0}, params = {0}, next = {0};
  Outcome o = OUT_GO;
  for (u32 i = 0; i < x.carried && ok; i++) {
    ValueId v = result_of(b, node_operand(g, n, i), b->mapped[g->blocks.data[body].params.data[i]]);
    ok = v && vec_push(alloc, &init, v);
  }
  BlockId blocks[2] = {ok ? graph_open(g) : 0, 0};
  ok = blocks[0] && lane_params(b, blocks[0], cond, 0, x.carried, NULL);
  if (ok) o = batch_enter_block(b, n, cond);
  ValueId more = ok && o == OUT_GO ? batch_get(b, block_result(g, cond, 0)) : 0;
  if (more && masked) more = graph_reduce(g, OP_any, more, 1, false);
  if (o == OUT_GO) ok = more && graph_close(g, TERM_yield, &more, 1, 0);
  if (ok && o == OUT_GO) ok = (blocks[1] = graph_open(g)) && lane_params(b, blocks[1], body, 0, x.carried, &params);
  ValueId active = 0;
  if (ok && o == OUT_GO && masked) {
    for (u32 i = 0; i < x.carried; i++) b->to[g->blocks.data[cond].params.data[i]] = params.data[i];
    o = batch_enter_block(b, n, cond);
    active = o == OUT_GO ? batch_get(b, block_result(g, cond, 0)) : 0;
  }
  if (ok && o == OUT_GO) o = batch_enter_block(b, n, body);
  for (u32 i = 0; i < x.carried && ok && o == OUT_GO; i++) {
    ValueId v = result_of(b, block_result(g, body, i), b->mapped[g->blocks.data[body].params.data[i]]);
    if (v && masked) v = choose(b, active, v, params.data[i]);
    ok = v && vec_push(alloc, &next, v);
  }
  if (ok && o == OUT_GO) ok = graph_close(g, TERM_next, next.data, next.count, 0);
  NodeId node = ok && o == OUT_GO ? graph_while(g, init.data, init.count, blocks[0], blocks[1]) : 0;
  if (o == OUT_GO && !node) o = OUT_FAIL;
  for (u32 i = 0; i < x.result_count && node; i++) b->to[node_result(g, n, i)] = node_result(g, node, i);
  vec_free(alloc, &init);
  vec_free(alloc, &params);
  vec_free(alloc, &next);
  return o;
}

/* ---- lane by lane ---------------------------------------------------------------------------- */

/* The node itself as the body of a scan over the lanes. */
static Outcome lane_by_lane(Batch *b, NodeId n) {
  Graph *g = b->g;
  Recorder *r = b->r;
  Allocator *alloc = &r->vm->alloc;
  const GraphNode x = *graph_node_at(g, n);
  ValueVec xs = {0}, next = {0};
  ValueMap map;
  bool ok = true;
  map_init(&map, alloc);
  for (u32 i = 0; i < x.operand_count && ok; i++) {
    ValueId v = node_operand(g, n, i);
    if (batch_is_mapped(b, v)) ok = vec_push(alloc, &xs, b->to[v]);
  }
  BlockId made = ok ? graph_open(g) : 0;
  ok = made != 0;
  for (u32 i = 0; i < x.operand_count && ok; i++) {
    ValueId v = node_operand(g, n, i), to = batch_get(b, v);
    if (batch_is_mapped(b, v)) to = graph_param(g, made, g->values.data[v].type);
    ok = to && (to == v || map_set(&map, v, to));
  }
  NodeId copy = ok ? graph_clone_node(g, n, &map) : 0;
  for (u32 i = 0; i < x.result_count && copy && ok; i++) {
    ValueId v = node_result(g, copy, i);
    v = graph_convert(g, v, value_type(g, v)->dtype);
    ok = v && vec_push(alloc, &next, v);
  }
  ok = ok && copy && graph_close(g, TERM_next, next.data, next.count, 0);
  NodeId node = ok ? graph_scan(g, NULL, 0, xs.data, xs.count, b->lanes, false, false, made) : 0;
  for (u32 i = 0; i < x.result_count && node; i++) b->to[node_result(g, n, i)] = node_result(g, node, i);
  map_free(&map);
  vec_free(alloc, &xs);
  vec_free(alloc, &next);
  return node ? OUT_GO : OUT_FAIL;
}

/* As it is, on the values here. */
static Outcome once(Batch *b, NodeId n) {
  Graph *g = b->g;
  ValueMap map;
  bool ok = true;
  map_init(&map, &b->r->vm->alloc);
  for (u32 i = 0; i < graph_node_at(g, n)->operand_count && ok; i++) {
    ValueId v = node_operand(g, n, i), to = batch_get(b, v);
    ok = to == v || map_set(&map, v, to);
  }
  NodeId copy = ok ? graph_clone_node(g, n, &map) : 0;
  for (u32 i = 0; i < graph_node_at(g, n)->result_count && copy; i++)
    b->to[node_result(g, n, i)] = node_result(g, copy, i);
  map_free(&map);
  return copy ? OUT_GO : OUT_FAIL;
}

/* Is it what the lanes' type says, with the lanes in front? */
static bool fits(const Batch *b, ValueId v, ValueId lane) {
  const ArrayType *t = value_type(b->g, v), *l = value_type(b->g, lane);
  if (t->rank != l->rank + 1u || t->dtype != l->dtype || !size_same(&b->g->sizes, t->dims[0], b->lanes)) return false;
  for (u32 d = 0; d < l->rank; d++)
    if (!size_same(&b->g->sizes, t->dims[d + 1], l->dims[d])) return false;
  return true;
}

typedef struct LaneSize {
  const Batch *b;
  bool found;
} LaneSize;

static void look_at_carrier(void *ctx, u32 v) {
  LaneSize *l = ctx;
  l->found |= v < l->b->count && (l->b->mapped[v] || l->b->to[v]); /* made by the lane */
}

/* Sizes that the lane itself makes: they may differ from lane to lane. */
static bool unsized(const Batch *b, NodeId n) {
  const Graph *g = b->g;
  LaneSize l = {b, false};
  node_size_values(g, n, look_at_carrier, &l);
  for (u32 i = 0; i < graph_node_at(g, n)->result_count && !l.found; i++) {
    const ArrayType *t = value_is_token(g, node_result(g, n, i)) ? NULL : value_type(g, node_result(g, n, i));
    u32 sym;
    for (u32 d = 0; t && d < t->rank; d++)
      l.found |= size_last_unbacked(&g->sizes, t->dims[d], &sym) &&
                 g->sizes.syms.data[sym].source - node_result(g, n, 0) < graph_node_at(g, n)->result_count;
  }
  return l.found;
}

/* A loop of numbers alone, which compiled code keeps in registers: each lane goes as far as it has to, and lanes side
 * by side are vectors all the same (jit/native/native_inner.c). Goes through arrays of all lanes in each trip else. */
static bool is_of_numbers(const Batch *b, NodeId n) {
  const Graph *g = b->g;
  const GraphNode *x = graph_node_at(g, n);
  for (u32 i = 0; i < x->operand_count; i++) {
    ValueId v = node_operand(g, n, i);
    if (i < x->carried && value_type(g, v)->rank) return false;
    if (value_type(g, batch_get(b, v))->device != DEV_CPU) return false;
  }
  for (u32 k = 0; k < 2; k++)
    for (GraphWalk w = walk_begin(g, x->sub[k]); walk_next(&w);) {
      const GraphNode *y = graph_node_at(g, w.node);
      if (y->kind != NODE_op && y->kind != NODE_index && y->kind != NODE_cond) return false;
      for (u32 i = 0; i < y->result_count; i++)
        if (value_is_token(g, node_result(g, w.node, i)) || value_type(g, node_result(g, w.node, i))->rank)
          return false;
    }
  return true;
}

static Outcome batch_node(Batch *b, NodeId n) {
  Graph *g = b->g;
  const GraphNode x = *graph_node_at(g, n);
  bool mapped = any_mapped(b, n);
  for (u32 i = 0; i < x.result_count; i++) mapped |= b->mapped[node_result(g, n, i)];
  if (node_is_effect(g, n)) return rec_stuck(b->r, REASON_no_rule, "an effect in every lane");
  if (unsized(b, n)) return rec_stuck(b->r, REASON_data_dependent_shape, "sizes that differ between lanes");
  if (!mapped) return once(b, n);
  if (is_repeated(g, n)) return lane_by_lane(b, n);
  switch (x.kind) {
    case NODE_check: return once(b, n); /* holds for every element: of all lanes then */
    case NODE_cond: {
      bool select = batch_is_mapped(b, node_operand(g, n, 0));
      if (select && (is_bound(g, x.sub[0]) || is_bound(g, x.sub[1]))) return lane_by_lane(b, n);
      return batch_cond(b, n);
    }
    case NODE_scan: return batch_scan(b, n);
    case NODE_while: {
      bool masked = batch_is_mapped(b, block_result(g, x.sub[0], 0));
      if (masked && (is_bound(g, x.sub[0]) || is_bound(g, x.sub[1]) ||
                     (b->each && MECHANISM(b->r->vm, lanes_apart) && is_of_numbers(b, n))))
        return lane_by_lane(b, n);
      return batch_while(b, n);
    }
    case NODE_op:
    case NODE_index:
    case NODE_update: {
      ValueId v = x.kind == NODE_op ? batch_op(b, n) : batch_index(b, n);
      if (g->failed) return OUT_FAIL;
      NodeId made = v && x.result_count > 1 ? value_node(g, v) : 0; /* of several results: the first */
      bool all = v && (x.result_count == 1 || (made && graph_node_at(g, made)->result_count == x.result_count));
      for (u32 i = 0; i < x.result_count && all; i++)
        all = fits(b, made ? node_result(g, made, i) : v, node_result(g, n, i));
      if (!all) return lane_by_lane(b, n);
      for (u32 i = 0; i < x.result_count; i++) b->to[node_result(g, n, i)] = made ? node_result(g, made, i) : v;
      return OUT_GO;
    }
    default: return lane_by_lane(b, n);
  }
}

static Outcome batch_emit(Batch *b, BlockId from) {
  Outcome o = OUT_GO;
  for (NodeId n = block_first(b->g, from); n && o == OUT_GO; n = node_next(b->g, n)) o = batch_node(b, n);
  return o;
}

Outcome batch_block(Batch *b, BlockId from) { return batch_emit(b, from); }
