/* pull_dead.c — what the way back runs once more though nobody asks for it.
 *
 * The way back runs arms and trips once more. What ran before has passed its checks and has come to its end, so of
 * what runs once more only that is kept which the way back reads: a check, or a loop that nothing bounds, would run
 * on values that were not saved. */
#include "hop/pull_loop.h"

bool pull_must_stay(const Graph *g, NodeId n, bool passed) {
  const GraphNode *x = graph_node_at(g, n);
  if (node_is_effect(g, n)) return true;
  if (x->kind == NODE_check) return !passed || x->op == CHECK_size;
  /* what a check of sizes tells in a block holds in that block */
  for (u32 i = 0; i < node_subs(g, n) && !passed; i++)
    for (GraphWalk w = walk_begin(g, x->sub[i]); walk_next(&w);)
      if (graph_node_at(g, w.node)->kind == NODE_check) return true;
  return false;
}

void pull_size_values(const Graph *g, NodeId n, void (*each)(void *ctx, u32 value), void *ctx) {
  node_size_values(g, n, each, ctx);
  for (u32 i = 0; i < node_subs(g, n); i++)
    for (GraphWalk w = walk_begin(g, graph_node_at(g, n)->sub[i]); walk_next(&w);)
      node_size_values(g, w.node, each, ctx);
}

static void mark_value(void *live, u32 v) { ((u8 *)live)[v] = 1; }

static bool is_live(const Graph *g, NodeId n, const u8 *live) {
  for (u32 i = 0; i < graph_node_at(g, n)->result_count; i++)
    if (live[node_result(g, n, i)]) return true;
  return false;
}

u8 *pull_live(Recorder *r, BlockId b, NodeId last, bool passed) {
  const Graph *g = r->g;
  u8 *live = mem_alloc_zero(&r->vm->alloc, g->values.count);
  bool again = false;
  if (!live) return NULL;
  for (u32 i = 0; i < g->blocks.data[b].term_count; i++) live[block_result(g, b, i)] = 1;
  for (NodeId n = g->blocks.data[b].last; n; n = graph_node_at(g, n)->prev) {
    again |= n == last;
    if (!is_live(g, n, live) && !pull_must_stay(g, n, passed && again)) continue;
    for (u32 i = 0; i < graph_node_at(g, n)->operand_count; i++) live[node_operand(g, n, i)] = 1;
    pull_size_values(g, n, mark_value, live);
  }
  return live;
}

void pull_drop_dead(Recorder *r, BlockId b, NodeId last, bool passed, const u8 *live) {
  Graph *g = r->g;
  bool again = false;
  for (NodeId n = g->blocks.data[b].last, prev; n; n = prev) {
    prev = graph_node_at(g, n)->prev;
    again |= n == last;
    if (!is_live(g, n, live) && !pull_must_stay(g, n, passed && again)) graph_unlink(g, n);
  }
}

static void mark_uses(const Graph *g, BlockId b, u8 *used) {
  for (NodeId n = block_first(g, b); n; n = node_next(g, n)) {
    for (u32 i = 0; i < graph_node_at(g, n)->operand_count; i++) used[node_operand(g, n, i)] = 1;
    pull_size_values(g, n, mark_value, used);
  }
  for (u32 i = 0; i < g->blocks.data[b].term_count; i++) used[block_result(g, b, i)] = 1;
}

bool pull_drop_captures(Recorder *r, NodeId n) {
  Graph *g = r->g;
  u32 first, count = node_captures(g, n, &first), values = g->values.count;
  u8 *used = mem_alloc_zero(&r->vm->alloc, values);
  if (!used) return false;
  for (u32 s = 0; s < node_subs(g, n); s++) mark_uses(g, graph_node_at(g, n)->sub[s], used);
  for (u32 c = count; c-- > 0;) {
    bool any = false;
    for (u32 s = 0; s < node_subs(g, n) && !any; s++) {
      ValueId v = g->blocks.data[graph_node_at(g, n)->sub[s]].captures.data[c].inner;
      any = used[v] || graph_carries_size(g, v);
    }
    if (!any) graph_drop_capture(g, n, c);
  }
  mem_free(&r->vm->alloc, used, values);
  return toil(g->toil, values / 64);
}
