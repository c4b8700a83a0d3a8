/* graph_cut.c — a block ends at a check of sizes that cannot hold: what stands behind it is never reached.
 *
 * The recorder checks a size where it is asked for. What it learns later may contradict that check: a guard says that
 * the size is 0, the check that it is at least 1. Then the check always fails, nobody gets past it, and types behind
 * it mean nothing (a size there may be negative). The block now ends by the exit of the check. */
#include "tracer/graph/graph.h"

static bool size_of(const Graph *g, ValueId v, Dim *d) {
  Value c;
  if (g->values.data[v].origin == GV_size) *d = g->values.data[v].dim;
  else if (value_const(g, v, &c) && c.kind == V_NUM && c.dtype == DT_i64 && c.i >= 0) *d = c.i;
  else return false;
  return true;
}

static bool never_holds(Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  Dim a, b;
  if (x->kind != NODE_check || x->exit == NO_EXIT || !size_of(g, node_operand(g, n, 0), &a)) return false;
  if (x->op == CHECK_nonneg) return size_prove(&g->sizes, REL_lt, a, 0) == TRUTH_always;
  return x->op == CHECK_size && size_of(g, node_operand(g, n, 1), &b) &&
         size_prove(&g->sizes, REL_eq, a, b) == TRUTH_never;
}

/* The root, the body of a loop and an arm of a branch may end by an exit, where all around them may go on to one. */
static bool may_leave(const Graph *g, BlockId b) {
  bool at_once = true;
  for (NodeId n; b != 1; b = g->nodes.data[n].block, at_once = false) {
    if (g->blocks.data[b].shared || !(n = g->blocks.data[b].node)) return false;
    const GraphNode *x = &g->nodes.data[n];
    bool may = x->kind == NODE_cond || (x->kind == NODE_while && x->sub[1] == b) || (x->kind == NODE_scan && !at_once);
    if (!may) return false;
  }
  return true;
}

static void end_before(Graph *g, BlockId b, NodeId n) {
  GraphBlock *block = &g->blocks.data[b];
  block->term = TERM_exit;
  block->exit = graph_node_at(g, n)->exit;
  block->term_count = 0;
  for (NodeId last = block->last, prev; last; last = prev) {
    prev = last == n ? 0 : g->nodes.data[last].prev;
    graph_unlink(g, last);
  }
}

bool graph_cut(Graph *g) {
  u32 *blocks, count;
  if (!graph_blocks(g, g->alloc, &blocks, &count)) return false;
  for (u32 i = 0; i < count; i++) {
    if (!may_leave(g, blocks[i])) continue; /* nor what is in a block that went */
    for (NodeId n = block_first(g, blocks[i]); n && toil(g->toil, 1); n = node_next(g, n)) {
      if (!never_holds(g, n)) continue;
      end_before(g, blocks[i], n);
      break;
    }
  }
  mem_free(g->alloc, blocks, sizeof *blocks * count);
  return !toil_ended(g->toil);
}
