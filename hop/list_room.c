/* list_room.c — by how much the lists grow that a loop makes longer, told before it runs (repr_columns_room.h).
 *
 * Where each trip adds as many items and the trips are known, that is a product. Else what the counts come from runs
 * once before: the loop with all that nobody asks for left out, in its arms and in loops inside of it as well. So a
 * branch that appends f(x) runs as one that adds 1, without f. What reads items of the lists themselves cannot tell. */
#include "hop/flow.h"
#include "hop/pull_loop.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/repr_columns_room.h"
#include "tracer/record/record_run.h"

/* What is asked for of the loop, and its copy. */
typedef struct Slice {
  Recorder *r;
  u8 *live;   /* per value */
  u32 count;
  bool grown; /* more is live than before */
  bool odd;   /* it holds what is not copied in part */
  ValueMap map;
} Slice;

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static void slice_mark(void *slice, u32 v) {
  Slice *s = slice;
  s->grown |= !s->live[v];
  s->live[v] = 1;
}
static void slice_mark_if(Slice *s, bool asked, ValueId v) {
  if (asked) slice_mark(s, v);
}

static bool any_live(const Slice *s, NodeId n) {
  const GraphNode *x = graph_node_at(s->r->g, n);
  for (u32 i = 0; i < x->result_count; i++)
    if (s->live[x->result_first + i]) return true;
  return false;
}

static void slice_all(Slice *s, NodeId n) {
  for (u32 i = 0; i < graph_node_at(s->r->g, n)->operand_count; i++) slice_mark(s, node_operand(s->r->g, n, i));
  pull_size_values(s->r->g, n, slice_mark, s);
}

static bool is_known(const Graph *g, ValueId v) { return !value_block(g, v); }

/* A check stays with what it is asked of. */
static bool check_stays(const Slice *s, NodeId n) {
  const Graph *g = s->r->g;
  for (u32 i = 0; i < graph_node_at(g, n)->operand_count; i++)
    if (!is_known(g, node_operand(g, n, i)) && !s->live[node_operand(g, n, i)]) return false;
  return true;
}

static void slice_block(Slice *s, BlockId b);

static void slice_captures(Slice *s, NodeId n) {
  const Graph *g = s->r->g;
  u32 first, ncaps = node_captures(g, n, &first);
  for (u32 c = 0; c < ncaps; c++)
    for (u32 k = 0; k < node_subs(g, n); k++)
      slice_mark_if(s, s->live[g->blocks.data[graph_node_at(g, n)->sub[k]].captures.data[c].inner],
                    node_operand(g, n, first + c));
}

static void slice_cond(Slice *s, NodeId n) {
  const Graph *g = s->r->g;
  const GraphNode *x = graph_node_at(g, n);
  slice_mark(s, node_operand(g, n, 0));
  for (u32 k = 0; k < 2; k++) {
    const GraphBlock *b = &g->blocks.data[x->sub[k]];
    s->odd |= b->term != TERM_yield && (b->term != TERM_exit || b->first);
    for (u32 i = 0; i < x->result_count && b->term == TERM_yield; i++)
      slice_mark_if(s, s->live[x->result_first + i], block_result(g, x->sub[k], i));
    slice_block(s, x->sub[k]);
  }
}

/* Values that a loop carries: what is asked of one of them is asked of it in each trip. */
static void slice_loop(Slice *s, NodeId n) {
  const Graph *g = s->r->g;
  const GraphNode *x = graph_node_at(g, n);
  bool scan = x->kind == NODE_scan;
  BlockId body = x->sub[scan ? 0 : 1], test = scan ? 0 : x->sub[0];
  u32 nxs = scan ? x->xs : 0;
  const GraphBlock *b = &g->blocks.data[body];
  if (b->term != TERM_next || flow_body_leaves(g, n)) {
    s->odd = true;
    return;
  }
  if (test) slice_mark(s, block_result(g, test, 0));
  for (u32 i = 0; i < x->carried; i++) {
    ValueId again = test ? g->blocks.data[test].params.data[i] : b->params.data[i];
    bool asked = s->live[x->result_first + i] || s->live[b->params.data[i]] || s->live[again];
    ValueId all[] = {x->result_first + i, b->params.data[i], again, block_result(g, body, i), node_operand(g, n, i)};
    for (u32 k = 0; k < COUNT_OF(all); k++) slice_mark_if(s, asked, all[k]);
  }
  for (u32 i = x->carried; i < x->result_count; i++)
    slice_mark_if(s, s->live[x->result_first + i], block_result(g, body, i));
  slice_block(s, body);
  if (test) slice_block(s, test);
  for (u32 i = 0; i < nxs; i++)
    slice_mark_if(s, s->live[b->params.data[x->carried + i]], node_operand(g, n, x->carried + i));
}

/* Depth is that of blocks. */
static void slice_block(Slice *s, BlockId b) {
  const Graph *g = s->r->g;
  for (NodeId n = g->blocks.data[b].last; n && toil(g->toil, 1); n = graph_node_at(g, n)->prev) {
    const GraphNode *x = graph_node_at(g, n);
    s->odd |= node_is_effect(g, n);
    if (!any_live(s, n)) continue;
    if (x->kind == NODE_cond) slice_cond(s, n);
    else if (x->kind == NODE_while || x->kind == NODE_scan) slice_loop(s, n);
    else slice_all(s, n);
    if (x->kind == NODE_cond || x->kind == NODE_while || x->kind == NODE_scan) {
      node_size_values(g, n, slice_mark, s);
      slice_captures(s, n);
    }
  }
}

/* ---- the copy ---------------------------------------------------------------------------------------------------- */

static bool copy_block(Slice *s, BlockId from);

static bool slice_push(Slice *s, ValueVec *to, ValueId v) { return v && vec_push(&s->r->vm->alloc, to, v); }

/* The live results of a node are those of its copy. */
static bool map_results(Slice *s, NodeId n, NodeId made) {
  const GraphNode x = *graph_node_at(s->r->g, n);
  u32 next = 0;
  bool ok = made != 0;
  for (u32 i = 0; i < x.result_count && ok; i++)
    if (s->live[x.result_first + i])
      ok = map_set(&s->map, x.result_first + i, node_result(s->r->g, made, next)) &&
           map_carried(s->r->g, &s->map, x.result_first + i, node_result(s->r->g, made, next++));
  return ok;
}

static bool copy_cond(Slice *s, NodeId n) {
  Graph *g = s->r->g;
  const GraphNode x = *graph_node_at(g, n);
  BlockId arms[2] = {0, 0};
  ValueVec yields = {0};
  bool ok = true;
  for (u32 k = 0; k < 2 && ok; k++) {
    const GraphBlock b = g->blocks.data[x.sub[k]];
    yields.count = 0;
    if (b.term == TERM_exit) {
      ok = (arms[k] = graph_clone_block(g, x.sub[k], &s->map)) != 0;
      continue;
    }
    ok = (arms[k] = graph_open(g)) && map_captures(g, &s->map, n, x.sub[k]) && copy_block(s, x.sub[k]);
    for (u32 i = 0; i < x.result_count && ok; i++)
      if (s->live[x.result_first + i]) ok = slice_push(s, &yields, map_get(&s->map, block_result(g, x.sub[k], i)));
    ok = ok && graph_close(g, TERM_yield, yields.data, yields.count, 0);
  }
  NodeId made = ok ? graph_cond(g, map_get(&s->map, node_operand(g, n, 0)), arms[0], arms[1]) : 0;
  vec_free(&s->r->vm->alloc, &yields);
  return map_results(s, n, made);
}

static bool copy_loop(Slice *s, NodeId n) {
  Graph *g = s->r->g;
  const GraphNode x = *graph_node_at(g, n);
  bool scan = x.kind == NODE_scan, ok = true;
  BlockId subs[2] = {0, 0}, body = x.sub[scan ? 0 : 1];
  ValueVec init = {0}, next = {0};
  u32 carried = 0, nxs = scan ? x.xs : 0;
  for (u32 i = 0; i < x.carried + nxs && ok; i++)
    if (i >= x.carried || s->live[x.result_first + i]) {
      ok = slice_push(s, &init, map_get(&s->map, node_operand(g, n, i)));
      carried += i < x.carried;
    }
  for (u32 k = scan; k < 2 && ok; k++) {
    BlockId from = k ? body : x.sub[0];
    next.count = 0;
    ok = (subs[k] = graph_open(g)) && map_captures(g, &s->map, n, from);
    for (u32 i = 0; i < g->blocks.data[from].params.count && ok; i++) {
      if (i < x.carried && !s->live[x.result_first + i]) continue;
      ValueId was = g->blocks.data[from].params.data[i];
      ValueId v = graph_param(g, subs[k], map_type(g, &s->map, g->values.data[was].type));
      ok = v && map_set(&s->map, was, v);
    }
    ok = ok && copy_block(s, from);
    for (u32 i = 0; i < g->blocks.data[from].term_count && ok; i++)
      if (!k || s->live[x.result_first + i]) ok = slice_push(s, &next, map_get(&s->map, block_result(g, from, i)));
    ok = ok && graph_close(g, k ? TERM_next : TERM_yield, next.data, next.count, 0);
  }
  NodeId made = 0;
  if (ok)
    made = scan ? graph_scan(g, init.data, carried, init.data + carried, nxs, x.length, x.reverse, x.index, subs[1])
                : graph_while(g, init.data, carried, subs[0], subs[1]);
  vec_free(&s->r->vm->alloc, &init);
  vec_free(&s->r->vm->alloc, &next);
  return map_results(s, n, made) && pull_drop_captures(s->r, made);
}

/* The nodes of a block that are asked for, at the cursor. */
static bool copy_block(Slice *s, BlockId from) {
  Graph *g = s->r->g;
  bool ok = true;
  for (NodeId n = block_first(g, from); n && ok; n = node_next(g, n)) {
    const GraphNode *x = graph_node_at(g, n);
    if (x->kind == NODE_check ? !check_stays(s, n) : !any_live(s, n)) continue;
    ok = x->kind == NODE_cond ? copy_cond(s, n)
       : x->kind == NODE_while || x->kind == NODE_scan ? copy_loop(s, n) : graph_clone_node(g, n, &s->map) != 0;
  }
  return ok;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

/* What each trip adds to carried value i; -1: not always the same. */
static i64 step_of(const Graph *g, const Loop *l, u32 i) {
  ValueId from = g->blocks.data[l->body].params.data[i], v = block_result(g, l->body, i);
  i64 sum = 0;
  while (v != from) {
    NodeId n = value_node(g, v);
    const GraphNode *x = n ? graph_node_at(g, n) : NULL;
    Value by;
    if (!x || x->kind != NODE_op || x->op != OP_add || x->block != l->body ||
        !value_const(g, node_operand(g, n, 1), &by) || by.dtype != DT_i64 || by.i < 0 || by.i > UINT16_MAX ||
        (sum += by.i) > UINT16_MAX)
      return -1;
    v = node_operand(g, n, 0);
  }
  return sum;
}

/* A product, where the trips are known. */
static bool tell_product(Recorder *r, const Loop *l, ListRoom *q, bool *told) {
  Graph *g = r->g;
  Dim trips = flow_body_leaves(g, l->node) ? DIM_NONE : loop_trips(g, l->node);
  *told = false;
  for (u32 i = 0; i < q->counts.count && trips != DIM_NONE; i++) {
    i64 step = step_of(g, l, q->counts.data[i]);
    Dim all = step < 0 ? DIM_NONE : size_mul(&g->sizes, trips, step);
    if (all == DIM_NONE) trips = DIM_NONE;
    else if (!vec_push(&r->vm->alloc, &q->grows, all) || !vec_push(&r->vm->alloc, &q->always, 1)) return false;
  }
  *told = trips != DIM_NONE;
  if (!*told) q->grows.count = q->always.count = 0;
  return true;
}

static Outcome room_unknown(Recorder *r) {
  return r->g->failed ? OUT_FAIL
                      : rec_stuck(r, REASON_construct_body, "a list that grows in the body of a construct, by what its "
                                                            "items or what is printed tell");
}

/* not a threshold: more items find no room in memory; sizes of so many are never too large to be added up */
static const i64 ITEMS_MOST = (i64)1 << 40;

/* By running what the counts come from. */
static Outcome tell_by_count(Recorder *r, const Loop *l, ListRoom *q) {
  Graph *g = r->g;
  Slice s = {.r = r, .count = g->values.count};
  const ValueId none = graph_const(g, value_weak_i64(0)), most = graph_const(g, value_weak_i64(ITEMS_MOST));
  s.count = g->values.count;
  if (!none || !most || !(s.live = mem_alloc_zero(&r->vm->alloc, s.count))) return OUT_FAIL;
  map_init(&s.map, &r->vm->alloc);
  for (u32 i = 0; i < q->counts.count; i++) s.live[node_result(g, l->node, q->counts.data[i])] = 1;
  for (s.grown = true; s.grown && !s.odd && !r->failed;) { /* ends: each round marks one more at least */
    s.grown = false;
    slice_loop(&s, l->node);
    slice_captures(&s, l->node);
  }
  for (u32 i = 0; i < l->carried && !s.odd; i++) {
    ValueId v = node_result(g, l->node, i);
    s.odd = s.live[v] && (graph_carries_size(g, v) || (i < graph_node_at(g, q->loop)->carried && q->items[i]));
  }
  Outcome o = s.odd ? room_unknown(r) : copy_loop(&s, l->node) ? OUT_GO : OUT_FAIL;
  for (u32 i = 0; i < q->counts.count && o == OUT_GO; i++) {
    u32 at = q->counts.data[i];
    Dim grows;
    ValueId by = graph_op2(g, OP_subtract, map_get(&s.map, node_result(g, l->node, at)), node_operand(g, l->node, at));
    by = by ? graph_op2(g, OP_maximum, by, none) : 0;
    by = by ? graph_op2(g, OP_minimum, by, most) : 0;
    bool ok = by && av_value_dim(r, by, &grows) && vec_push(&r->vm->alloc, &q->grows, grows) &&
              vec_push(&r->vm->alloc, &q->always, 0);
    if (!ok) o = OUT_FAIL;
  }
  map_free(&s.map);
  mem_free(&r->vm->alloc, s.live, s.count);
  return o;
}

Outcome record_list_room(Recorder *r, ListRoom *q) {
  Graph *g = r->g;
  Loop l = {0};
  NodeId regular = 0;
  bool told = false;
  loop_read(g, &l, q->loop);
  for (u32 k = 0; k < graph_node_at(g, q->loop)->result_count; k++)
    if (graph_carries_size(g, node_result(g, q->loop, k))) return room_unknown(r);
  Outcome o = tell_product(r, &l, q, &told) ? OUT_GO : OUT_FAIL;
  if (o == OUT_GO && !told && flow_body_leaves(g, q->loop)) {
    o = flow_regular(r, q->loop, &regular);
    if (o == OUT_GO) loop_read(g, &l, regular);
  }
  if (o == OUT_GO && !told) o = tell_by_count(r, &l, q);
  if (regular && o == OUT_GO) graph_unlink(g, regular);
  if (o == OUT_GO) graph_unlink(g, q->loop);
  return o;
}
