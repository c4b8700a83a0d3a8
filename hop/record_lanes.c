/* record_lanes.c — scans over lanes that derivatives were taken of (record_vmap.c) are batched, once a recording is
 * whole: what a lane left out is an arm of its derivative by then, and a choice between the values of both arms is
 * as good.
 *
 * The way back over lanes carries sums of cotangents, and whether there are any. Both are taken over all lanes at
 * once. */
#include "hop/batch.h"
#include "hop/flow.h"
#include "hop/vmap.h"

/* elements of what is summed, of all lanes: they are there at once, and a lane's alone otherwise */
enum { SUM_MOST = 1 << 20 };

/* A carried value, as a trip changes it: by what is added to it, or by a bool that is or-ed to it. */
typedef struct Tally {
  u32 op; /* OP_none: it stays as it is */
  ValueVec parts;
} Tally;

typedef struct Lanes {
  Recorder *r;
  NodeId node;
  BlockId body;
  u32 *uses; /* by value of the graph */
  VEC(Tally) tallies;
} Lanes;

/* Loops whose trips lanes count by themselves, and what must not run for all of them, are left lane by lane. */
static bool is_plain(const Graph *g, BlockId body) {
  for (GraphWalk w = walk_begin(g, body); walk_next(&w);) {
    const GraphNode *x = graph_node_at(g, w.node);
    switch (x->kind) {
      case NODE_op:
      case NODE_index:
      case NODE_update: break;
      case NODE_cond:
      case NODE_scan:
        if (flow_leaves(g, w.node)) return false;
        break;
      default: return false;
    }
  }
  return true;
}

static bool count_uses(Lanes *l) {
  Graph *g = l->r->g;
  const GraphBlock *b = &g->blocks.data[l->body];
  if (!(l->uses = mem_alloc_zero(&l->r->vm->alloc, sizeof *l->uses * g->values.count))) return false;
  for (NodeId n = b->first; n; n = node_next(g, n))
    for (u32 i = 0; i < graph_node_at(g, n)->operand_count; i++) l->uses[node_operand(g, n, i)]++;
  for (u32 i = 0; i < b->term_count; i++) l->uses[block_result(g, l->body, i)]++;
  return true;
}

static bool is_large(const Lanes *l, const ArrayType *t) {
  const Graph *g = l->r->g;
  i64 all, n;
  if (!t->rank) return false;
  if (!size_hint(&g->sizes, graph_node_at(g, l->node)->length, &all)) return true;
  for (u32 d = 0; d < t->rank; d++)
    if (!size_hint(&g->sizes, t->dims[d], &n) || __builtin_mul_overflow(all, n, &all)) return true;
  return all > SUM_MOST;
}

/* From what the trip gives back to what it began with. */
static bool read_tally(Lanes *l, u32 i, Tally *t) {
  const Graph *g = l->r->g;
  ValueId from = g->blocks.data[l->body].params.data[i], v = block_result(g, l->body, i);
  while (v != from) {
    NodeId n = value_node(g, v);
    const GraphNode *x = n ? graph_node_at(g, n) : NULL;
    if (!x || x->block != l->body || x->kind != NODE_op || (x->op != OP_add && x->op != OP_logical_or) ||
        (t->op && t->op != x->op))
      return false;
    const ArrayType *type = value_type(g, node_operand(g, n, 1));
    if (l->uses[v] != 1 || type->rank != value_type(g, from)->rank || is_large(l, type)) return false;
    t->op = x->op;
    if (!vec_push(&l->r->vm->alloc, &t->parts, node_operand(g, n, 1))) return false;
    v = node_operand(g, n, 0);
  }
  return l->uses[from] == 1;
}

/* Of all lanes. */
static ValueId total(Batch *b, const Tally *t, ValueId init) {
  Graph *g = b->g;
  ValueId all = init;
  for (u32 k = 0; k < t->parts.count && all; k++) {
    ValueId each = batch_full(b, t->parts.data[k]);
    if (each) each = graph_reduce(g, t->op == OP_add ? OP_sum : OP_any, each, 1, false);
    all = each ? graph_op2(g, t->op, all, each) : 0;
  }
  return all;
}

static bool batch_lanes(Lanes *l, ValueMap *to) {
  Graph *g = l->r->g;
  const GraphNode x = *graph_node_at(g, l->node);
  Batch b;
  u32 first, ncaps = node_captures(g, l->node, &first);
  graph_at(g, l->node);
  bool ok = batch_init(&b, l->r, x.length);
  const GraphBlock *body = &g->blocks.data[l->body];
  for (u32 i = 0; i < ncaps && ok; i++)
    batch_set(&b, body->captures.data[i].inner, node_operand(g, l->node, first + i), false);
  for (u32 i = 0; i < x.carried + x.xs && ok; i++)
    batch_set(&b, body->params.data[i], node_operand(g, l->node, i), i >= x.carried);
  if (ok) batch_mark(&b, l->body);
  ok = ok && batch_block(&b, l->body) == OUT_GO;
  for (u32 i = 0; i < x.result_count && ok; i++) {
    ValueId v = i < x.carried ? total(&b, &l->tallies.data[i], node_operand(g, l->node, i))
                              : batch_full(&b, block_result(g, l->body, i));
    ok = v && type_fits(g, g->values.data[v].type, g->values.data[x.result_first + i].type) &&
         map_set(to, x.result_first + i, v);
  }
  batch_free(&b);
  return ok;
}

/* One that cannot be batched stays as it is; what was made for it is used by nobody. */
static bool try_lanes(Recorder *r, NodeId n) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  const GraphNode *x = graph_node_at(g, n);
  Lanes l = {.r = r, .node = n, .body = x->sub[0]};
  ValueMap to;
  map_init(&to, alloc);
  bool ok = !x->index && is_plain(g, l.body) && count_uses(&l);
  u32 counted = g->values.count;
  for (u32 i = 0; i < x->carried && ok; i++) {
    Tally t = {0};
    ok = read_tally(&l, i, &t);
    if (!vec_push(alloc, &l.tallies, t)) {
      vec_free(alloc, &t.parts);
      ok = false;
    }
  }
  if (l.uses) mem_free(alloc, l.uses, sizeof *l.uses * counted);
  if (ok && batch_lanes(&l, &to)) {
    ok = graph_replace(g, to.to, to.count);
    if (ok) graph_unlink(g, n);
    else g->failed = true;
  }
  for (u32 i = 0; i < l.tallies.count; i++) vec_free(alloc, &l.tallies.data[i].parts);
  vec_free(alloc, &l.tallies);
  map_free(&to);
  return !g->failed;
}

/* Inner ones first. Depth is that of blocks: bounded by GRAPH_MAX_DEPTH. */
static bool lanes_in(Recorder *r, BlockId b) {
  Graph *g = r->g;
  for (NodeId n = block_first(g, b), next; n; n = next) {
    next = node_next(g, n);
    for (u32 i = 0; i < node_subs(g, n); i++)
      if (graph_node_at(g, n)->kind != NODE_call && !lanes_in(r, graph_node_at(g, n)->sub[i])) return false;
    if (!graph_node_at(g, n)->lanes) continue;
    g->nodes.data[n].lanes = false;
    if (!try_lanes(r, n)) return false;
  }
  return true;
}

bool record_lanes(Recorder *r) {
  BlockId at = r->g->at;
  bool ok = !r->lanes || lanes_in(r, 1);
  graph_at_end(r->g, at);
  return ok;
}
