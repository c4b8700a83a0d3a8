/* pull_reads.c — what the blocks inside of a loop's body read of arrays, as values of the body.
 *
 * What is saved of a trip are values of the body's own block. An arm that reads two elements of an array, or a loop
 * inside that reads one in each trip, would need the whole array, for each trip of the loop around. So the loop is
 * made anew: each branch gives also what its arms read, and each loop inside whose trips are known stacks what its
 * trips read and carry. The way back over an arm takes from the branch what the branch gives (pull_control.c), that
 * over a loop what the loop stacks (pull_loop.c); so the elements are all that it asks for. */
#include "hop/flow.h"
#include "hop/pull_loop.h"

typedef struct Reads {
  Recorder *r;
  ValueMap map; /* values of the loop as it was: theirs in the one that is made */
} Reads;

static bool reads_push(Reads *s, ValueVec *to, ValueId v) { return v && vec_push(&s->r->vm->alloc, to, v); }

/* It gives less than it takes, and that can be had outside of its block. */
static bool is_read(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  if ((x->kind != NODE_index && x->kind != NODE_op) || x->result_count != 1 || node_is_effect(g, n)) return false;
  ValueId v = node_result(g, n, 0);
  if (value_is_token(g, v) || pull_ragged(g, v)) return false;
  u64 bytes = pull_bytes(g, v, false), most = 0;
  for (u32 i = 0; i < x->operand_count; i++) {
    ValueId of = node_operand(g, n, i);
    u64 b = value_is_token(g, of) ? 0 : pull_bytes(g, of, true);
    if (b > most) most = b;
  }
  return bytes < most && bytes < PULL_ENDLESS;
}

static bool block_reads(const Graph *g, BlockId b) {
  for (GraphWalk w = walk_begin(g, b); walk_next(&w);)
    if (is_read(g, w.node)) return true;
  return false;
}

bool loop_reads_inside(const Graph *g, BlockId body) {
  for (NodeId n = block_first(g, body); n; n = node_next(g, n))
    for (u32 i = 0; i < node_subs(g, n) && graph_node_at(g, n)->kind != NODE_call; i++)
      if (block_reads(g, graph_node_at(g, n)->sub[i])) return true;
  return false;
}

/* Its results have sizes that are known outside of it. */
static bool settled(const Graph *g, NodeId n) {
  for (u32 i = 0; i < graph_node_at(g, n)->result_count; i++) {
    ValueId v = node_result(g, n, i);
    if (value_is_token(g, v) || graph_carries_size(g, v)) return false;
    const ArrayType *t = value_type(g, v);
    for (u32 d = 0; d < t->rank; d++)
      if (size_is_unbacked(&g->sizes, t->dims[d])) return false;
  }
  return true;
}

static bool reads_nodes(Reads *s, BlockId from, ValueVec *given);

static bool reads_cond(Reads *s, NodeId n, ValueVec *given) {
  Graph *g = s->r->g;
  const GraphNode x = *graph_node_at(g, n);
  BlockId parent = g->at, arms[2] = {0, 0};
  ValueVec reads[2] = {{0}, {0}}, yields = {0};
  bool ok = true;
  for (u32 k = 0; k < 2 && ok; k++) {
    ok = (arms[k] = graph_open(g)) && map_captures(g, &s->map, n, x.sub[k]) && reads_nodes(s, x.sub[k], &reads[k]);
    graph_at_end(g, parent);
  }
  for (u32 k = 0; k < 2 && ok; k++) {
    graph_at_end(g, arms[k]);
    yields.count = 0;
    for (u32 i = 0; i < x.result_count && ok; i++)
      ok = reads_push(s, &yields, map_get(&s->map, block_result(g, x.sub[k], i)));
    for (u32 i = 0; i < reads[0].count + reads[1].count && ok; i++) {
      u32 of = i >= reads[0].count;
      ValueId v = reads[of].data[of ? i - reads[0].count : i];
      ok = reads_push(s, &yields, of == k ? v : flow_nothing(g, value_type(g, v)));
    }
    ok = ok && graph_close(g, TERM_yield, yields.data, yields.count, 0);
    graph_at_end(g, parent);
  }
  NodeId made = ok ? graph_cond(g, map_get(&s->map, node_operand(g, n, 0)), arms[0], arms[1]) : 0;
  ok = made != 0;
  if (ok) g->nodes.data[made].lanes = x.lanes;
  for (u32 i = 0; ok && i < x.result_count; i++) ok = map_set(&s->map, node_result(g, n, i), node_result(g, made, i));
  for (u32 i = x.result_count; ok && given && i < graph_node_at(g, made)->result_count; i++)
    ok = reads_push(s, given, node_result(g, made, i));
  vec_free(&s->r->vm->alloc, &reads[0]);
  vec_free(&s->r->vm->alloc, &reads[1]);
  vec_free(&s->r->vm->alloc, &yields);
  return ok;
}

static bool reads_loop(Reads *s, NodeId n, Dim trips, ValueVec *given) {
  Graph *g = s->r->g;
  const GraphNode x = *graph_node_at(g, n);
  bool scan = x.kind == NODE_scan, ok = true;
  BlockId from = x.sub[scan ? 0 : 1], body = 0;
  u32 nxs = scan ? x.xs : 0;
  ValueVec init = {0}, params = {0}, next = {0}, reads = {0};
  for (u32 i = 0; i < x.carried + nxs && ok; i++) ok = reads_push(s, &init, map_get(&s->map, node_operand(g, n, i)));
  ok = ok && (body = graph_open(g)) && map_captures(g, &s->map, n, from);
  for (u32 i = 0; ok && i < g->blocks.data[from].params.count; i++) {
    ValueId was = g->blocks.data[from].params.data[i], v = graph_param(g, body, g->values.data[was].type);
    ok = map_set(&s->map, was, v) && reads_push(s, &params, v);
  }
  ok = ok && reads_nodes(s, from, &reads);
  for (u32 i = 0; ok && i < g->blocks.data[from].term_count; i++)
    ok = reads_push(s, &next, map_get(&s->map, block_result(g, from, i)));
  for (u32 i = 0; ok && i < x.carried + reads.count; i++) {
    ValueId v = i < x.carried ? params.data[i] : reads.data[i - x.carried];
    const ArrayType *t = value_type(g, v);
    if (i >= x.carried || !t->rank) ok = reads_push(s, &next, graph_convert(g, v, t->dtype));
  }
  ok = ok && graph_close(g, TERM_next, next.data, next.count, 0);
  NodeId made = ok ? graph_scan(g, init.data, x.carried, init.data + x.carried, nxs, trips, x.reverse, x.index, body)
                   : 0;
  ok = made != 0;
  if (ok) g->nodes.data[made].lanes = x.lanes;
  for (u32 i = 0; ok && i < x.result_count; i++) ok = map_set(&s->map, node_result(g, n, i), node_result(g, made, i));
  bool same = !size_is_unbacked(&g->sizes, trips); /* else a block around could not stack them */
  for (u32 i = x.result_count; ok && given && same && i < graph_node_at(g, made)->result_count; i++)
    ok = reads_push(s, given, node_result(g, made, i));
  vec_free(&s->r->vm->alloc, &init);
  vec_free(&s->r->vm->alloc, &params);
  vec_free(&s->r->vm->alloc, &next);
  vec_free(&s->r->vm->alloc, &reads);
  return ok;
}

/* The trips of a loop inside, where what its trips read can be stacked. Those of a while loop may be told only where it
 * stands: then *copy is the loop there, which nothing reads. */
static Dim inside_trips(Reads *s, NodeId n, NodeId *copy) {
  Graph *g = s->r->g;
  const GraphNode *x = graph_node_at(g, n);
  *copy = 0;
  if ((x->kind != NODE_scan && x->kind != NODE_while) || !settled(g, n) || flow_body_leaves(g, n)) return DIM_NONE;
  Dim trips = x->kind == NODE_scan ? x->length : loop_trips(g, n);
  if (trips != DIM_NONE && !size_is_unbacked(&g->sizes, trips)) return trips;
  if (x->kind == NODE_scan || s->r->lane_deep || !(*copy = graph_clone_node(g, n, &s->map))) return DIM_NONE;
  Loop l = {0};
  loop_read(g, &l, *copy);
  return loop_count(s->r, &l);
}

/* The nodes of a block once more at the cursor; what they read goes to `given`, if anybody asks. Depth is that of
 * blocks. */
static bool reads_nodes(Reads *s, BlockId from, ValueVec *given) {
  Graph *g = s->r->g;
  NodeId last = g->blocks.data[from].last;
  bool ok = true;
  for (NodeId n = block_first(g, from); n && ok; n = n == last ? 0 : node_next(g, n)) {
    const GraphNode *x = graph_node_at(g, n);
    bool inside = false;
    for (u32 i = 0; i < node_subs(g, n) && x->kind != NODE_call; i++) inside |= block_reads(g, x->sub[i]);
    bool arms = x->kind == NODE_cond && inside && settled(g, n);
    for (u32 k = 0; k < 2 && arms; k++) arms = g->blocks.data[x->sub[k]].term == TERM_yield;
    NodeId copy = 0;
    Dim trips = inside && x->kind != NODE_cond ? inside_trips(s, n, &copy) : DIM_NONE;
    if (arms) ok = reads_cond(s, n, given);
    else if (trips != DIM_NONE) {
      ok = reads_loop(s, n, trips, given);
      if (copy) graph_unlink(g, copy);
    } else {
      if (!copy) copy = graph_clone_node(g, n, &s->map);
      ok = copy != 0;
      if (ok && given && is_read(g, copy)) ok = reads_push(s, given, node_result(g, copy, 0));
    }
  }
  return ok;
}

NodeId loop_read_inside(Recorder *r, NodeId n) {
  Graph *g = r->g;
  Reads s = {.r = r};
  const GraphNode x = *graph_node_at(g, n);
  bool scan = x.kind == NODE_scan, ok = true;
  u32 nxs = scan ? x.xs : 0;
  BlockId subs[2] = {0, 0}, body = x.sub[scan ? 0 : 1];
  ValueVec init = {0}, next = {0};
  NodeId made = 0;
  map_init(&s.map, &r->vm->alloc);
  for (u32 i = 0; i < x.carried + nxs && ok; i++) ok = reads_push(&s, &init, node_operand(g, n, i));
  for (u32 k = scan; k < 2 && ok; k++) {
    BlockId from = k ? body : x.sub[0];
    next.count = 0;
    ok = (subs[k] = graph_open(g)) && map_captures(g, &s.map, n, from);
    for (u32 i = 0; ok && i < g->blocks.data[from].params.count; i++) {
      ValueId was = g->blocks.data[from].params.data[i], v = graph_param(g, subs[k], g->values.data[was].type);
      ok = v && map_set(&s.map, was, v);
    }
    ok = ok && (k ? reads_nodes(&s, from, NULL) : graph_inline(g, from, &s.map));
    for (u32 i = 0; ok && i < g->blocks.data[from].term_count; i++)
      ok = reads_push(&s, &next, map_get(&s.map, block_result(g, from, i)));
    ok = ok && graph_close(g, k ? TERM_next : TERM_yield, next.data, next.count, 0);
  }
  if (ok)
    made = scan ? graph_scan(g, init.data, x.carried, init.data + x.carried, nxs, x.length, x.reverse, x.index, subs[1])
                : graph_while(g, init.data, x.carried, subs[0], subs[1]);
  if (made) g->nodes.data[made].lanes = x.lanes;
  map_free(&s.map);
  vec_free(&r->vm->alloc, &init);
  vec_free(&r->vm->alloc, &next);
  return made;
}
