/* pull_trips.c — how often a loop goes round, and what of it runs once more to tell, or to save what was carried.
 *
 * Of the trips that run once more only that runs which is asked for: a loop that is run to be counted does not carry
 * the arrays that it fills, so nobody has to keep these either. */
#include "hop/pull_loop.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"

void loop_read(const Graph *g, Loop *l, NodeId node) {
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

/* ---- what of a trip is asked for -------------------------------------------------------------------------------- */

static void mark_live(void *live, u32 v) { ((u8 *)live)[v] = 1; }

static void mark_node(const Graph *g, NodeId n, u8 *live) {
  for (u32 i = 0; i < graph_node_at(g, n)->operand_count; i++) live[node_operand(g, n, i)] = 1;
  pull_size_values(g, n, mark_live, live);
}

static bool gives_live(const Graph *g, NodeId n, const u8 *live) {
  for (u32 i = 0; i < graph_node_at(g, n)->result_count; i++)
    if (live[node_result(g, n, i)]) return true;
  return node_is_effect(g, n);
}

static void look_live(void *ctx, u32 v) {
  const u8 **live = ctx;
  if (live[0] && !live[0][v]) live[0] = NULL;
}

/* A check is of what is there: it stays with what it is asked for. */
static bool keeps_node(const Graph *g, NodeId n, const u8 *live) {
  if (graph_node_at(g, n)->kind != NODE_check) return gives_live(g, n, live);
  const u8 *all = live;
  for (u32 i = 0; i < graph_node_at(g, n)->operand_count && all; i++)
    if (value_block(g, node_operand(g, n, i))) look_live(&all, node_operand(g, n, i));
  pull_size_values(g, n, look_live, &all);
  return all != NULL;
}

bool loop_keep(Recorder *r, const Loop *l, BlockId test, const ValueVec *wanted, LoopKept *k) {
  Graph *g = r->g;
  const GraphBlock *body = &g->blocks.data[l->body];
  k->count = g->values.count;
  k->live = mem_alloc_zero(&r->vm->alloc, k->count);
  if (!k->live) return false;
  for (u32 i = 0; wanted && i < wanted->count; i++) k->live[wanted->data[i]] = 1;
  if (test) {
    for (NodeId n = block_first(g, test); n; n = node_next(g, n)) mark_node(g, n, k->live);
    k->live[block_result(g, test, 0)] = 1;
  }
  for (bool grown = true; grown;) { /* at most once for each carried value, and once more */
    grown = false;
    for (NodeId n = body->last; n; n = graph_node_at(g, n)->prev)
      if (gives_live(g, n, k->live)) mark_node(g, n, k->live);
    for (u32 i = 0; i < l->carried; i++) {
      u8 *now = &k->live[body->params.data[i]], *next = &k->live[block_result(g, l->body, i)];
      bool asked = *now || (test && k->live[g->blocks.data[test].params.data[i]]);
      grown |= asked && !(*now && *next);
      if (asked) *now = *next = 1;
    }
  }
  return toil(g->toil, k->count / 64);
}

void loop_keep_free(Recorder *r, LoopKept *k) {
  vec_free(&r->vm->alloc, &k->with);
  vec_free(&r->vm->alloc, &k->given);
  if (k->live) mem_free(&r->vm->alloc, k->live, k->count);
}

bool loop_keeps(const Recorder *r, const Loop *l, const LoopKept *k, u32 i) {
  return k->live[r->g->blocks.data[l->body].params.data[i]] != 0;
}

bool loop_kept_init(Recorder *r, const Loop *l, const LoopKept *k, ValueVec *init) {
  bool ok = true;
  for (u32 i = 0; i < l->carried && ok; i++)
    if (loop_keeps(r, l, k, i)) ok = vec_push(&r->vm->alloc, init, node_operand(r->g, l->node, i));
  return ok;
}

/* Parameters of the current block like those of block `of`, those of carried values that are kept; then those of what
 * is carried beside them; then the rest. */
static bool kept_params(Recorder *r, const Loop *l, LoopKept *k, BlockId of, ValueMap *map) {
  Graph *g = r->g;
  bool ok = true;
  k->given.count = 0;
  for (u32 i = 0; i <= g->blocks.data[of].params.count && ok; i++) {
    for (u32 n = 0; i == l->carried && n < k->with.count && ok; n++)
      ok = vec_push(&r->vm->alloc, &k->given, graph_param(g, g->at, k->with.data[n])) && k->given.data[n];
    if (!ok || i == g->blocks.data[of].params.count || (i < l->carried && !loop_keeps(r, l, k, i))) continue;
    ValueId old = g->blocks.data[of].params.data[i], v = graph_param(g, g->at, g->values.data[old].type);
    ok = v && map_set(map, old, v);
  }
  return ok;
}

bool loop_run_kept(Recorder *r, const Loop *l, LoopKept *k, BlockId of, ValueMap *map) {
  Graph *g = r->g;
  bool ok = kept_params(r, l, k, of, map);
  for (u32 i = 0; i < l->ncaps && ok; i++)
    ok = map_set(map, g->blocks.data[of].captures.data[i].inner, node_operand(g, l->node, l->first + i));
  return ok && graph_inline_some(g, of, map, of == l->body ? keeps_node : NULL, k->live);
}

bool loop_kept_next(Recorder *r, const Loop *l, const LoopKept *k, const ValueMap *map, ValueVec *next) {
  bool ok = true;
  for (u32 i = 0; i < l->carried && ok; i++)
    if (loop_keeps(r, l, k, i)) ok = vec_push(&r->vm->alloc, next, map_get(map, block_result(r->g, l->body, i)));
  return ok;
}

/* ---- how many trips --------------------------------------------------------------------------------------------- */

/* A while loop that goes on only while a carried number, which counts up by 1, is less than what does not change: its
 * ends, as values around the loop. `test`: the comparison. */
static bool counts_up(const Graph *g, const Loop *l, NodeId test, ValueId *lo, ValueId *hi) {
  const GraphBlock *c = &g->blocks.data[graph_node_at(g, l->node)->sub[0]], *b = &g->blocks.data[l->body];
  if (!test || b->term != TERM_next || graph_node_at(g, test)->kind != NODE_op || graph_node_at(g, test)->op != OP_less)
    return false;
  u32 i = 0;
  while (i < l->carried && c->params.data[i] != node_operand(g, test, 0)) i++;
  if (i == l->carried) return false;
  ValueId bound = node_operand(g, test, 1);
  for (u32 k = 0; k < l->ncaps; k++)
    if (c->captures.data[k].inner == bound) bound = node_operand(g, l->node, l->first + k);
  NodeId step = value_node(g, block_result(g, l->body, i));
  Value one;
  if (!step || graph_node_at(g, step)->kind != NODE_op || graph_node_at(g, step)->op != OP_add) return false;
  if (node_operand(g, step, 0) != b->params.data[i] || !value_const(g, node_operand(g, step, 1), &one) ||
      one.dtype != DT_i64 || one.i != 1)
    return false;
  *lo = node_operand(g, l->node, i);
  *hi = bound;
  return !value_block(g, bound) || value_block(g, bound) == value_block(g, node_result(g, l->node, 0));
}

/* hi - lo. DIM_NONE: not such a loop, or these are no sizes. */
static Dim counted_trips(Graph *g, const Loop *l, NodeId test) {
  ValueId from, to;
  Dim lo, hi;
  if (!counts_up(g, l, test, &from, &to) || !value_dim(g, from, &lo) || !value_dim(g, to, &hi) || lo == DIM_NONE ||
      hi == DIM_NONE)
    return DIM_NONE;
  return size_max(&g->sizes, size_sub(&g->sizes, hi, lo), 0);
}

/* The comparison that a loop asks before each trip, and nothing else. 0: it asks more. */
static NodeId asks_alone(const Graph *g, NodeId loop) {
  BlockId asks = graph_node_at(g, loop)->sub[0];
  NodeId test = value_node(g, block_result(g, asks, 0));
  return g->blocks.data[asks].first == test && g->blocks.data[asks].last == test ? test : 0;
}

Dim loop_trips(Graph *g, NodeId n) {
  Loop l = {0};
  loop_read(g, &l, n);
  NodeId test = asks_alone(g, n);
  return test ? counted_trips(g, &l, test) : DIM_NONE;
}

/* hi - lo of numbers that are no sizes, at the cursor. 0: not such a loop. */
static ValueId counted_value(Graph *g, const Loop *l) {
  ValueId lo, hi;
  NodeId test = asks_alone(g, l->node);
  if (!test || !counts_up(g, l, test, &lo, &hi) || value_type(g, lo)->dtype != DT_i64 ||
      value_type(g, hi)->dtype != DT_i64)
    return 0;
  return graph_op2(g, OP_maximum, graph_op2(g, OP_subtract, hi, lo), graph_const_f64(g, DT_i64, 0));
}

/* A loop is run once more, with a count. */
static ValueId run_to_count(Recorder *r, const Loop *l) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  ValueVec init = {0}, next = {0};
  BlockId subs[2] = {0, 0}, test = graph_node_at(g, l->node)->sub[0];
  LoopKept kept = {0};
  const ValueId one = graph_const(g, value_weak_i64(1));
  bool ok = loop_keep(r, l, test, NULL, &kept) && loop_kept_init(r, l, &kept, &init) &&
            vec_push(alloc, &init, graph_const_f64(g, DT_i64, 0)) &&
            vec_push(alloc, &kept.with, graph_scalar_type(g, DT_i64, false));
  for (u32 k = 0; k < 2 && ok; k++) {
    BlockId of = graph_node_at(g, l->node)->sub[k];
    ValueMap map;
    map_init(&map, alloc);
    next.count = 0;
    ok = (subs[k] = graph_open(g)) && loop_run_kept(r, l, &kept, of, &map);
    ok = ok && (k ? loop_kept_next(r, l, &kept, &map, &next) &&
                        vec_push(alloc, &next, graph_op2(g, OP_add, kept.given.data[0], one))
                  : vec_push(alloc, &next, map_get(&map, block_result(g, of, 0))));
    ok = ok && graph_close(g, k ? TERM_next : TERM_yield, next.data, next.count, 0);
    map_free(&map);
  }
  NodeId node = ok ? graph_while(g, init.data, init.count, subs[0], subs[1]) : 0;
  ok = node && pull_drop_captures(r, node);
  loop_keep_free(r, &kept);
  vec_free(alloc, &init);
  vec_free(alloc, &next);
  return ok ? node_result(g, node, graph_node_at(g, node)->carried - 1) : 0;
}

bool loop_counted_dim(Recorder *r, ValueId n, Dim *out) {
  return av_value_dim(r, n, out) && size_assume(&r->g->sizes, REL_le, 0, *out);
}

Dim loop_count(Recorder *r, const Loop *l) {
  ValueId n = counted_value(r->g, l);
  Dim trips;
  if (!n && !r->g->failed) n = run_to_count(r, l);
  return n && loop_counted_dim(r, n, &trips) ? trips : DIM_NONE;
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
  ok = made && loop_params_like(r, made, l, 0, l->carried, &params) &&
       loop_run_again(r, l->node, test, params.data, l->carried, &map);
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
  for (u32 i = 0; i < l->carried && choice && ok; i++)
    ok = vec_push(alloc, &next, graph_convert(g, params.data[i], value_type(g, params.data[i])->dtype));
  ok = ok && choice && graph_close(g, TERM_next, next.data, next.count, 0);
  if (ok) graph_at_end(g, parent);
  NodeId node = ok ? graph_scan(g, init.data, init.count, NULL, 0, trips, false, false, made) : 0;
  map_free(&map);
  vec_free(alloc, &init);
  vec_free(alloc, &params);
  vec_free(alloc, &next);
  return node;
}

bool loop_bound(Recorder *r, Loop *l) {
  Graph *g = r->g;
  NodeId test = value_node(g, block_result(g, graph_node_at(g, l->node)->sub[0], 0));
  if (!test || graph_node_at(g, test)->kind != NODE_op || graph_node_at(g, test)->op != OP_logical_and) return true;
  Dim trips = counted_trips(g, l, value_node(g, node_operand(g, test, 1)));
  if (trips == DIM_NONE) return true;
  NodeId scan = as_scan(r, l, trips);
  if (!scan) return false;
  loop_read(g, l, scan);
  l->trips = trips;
  return true;
}
