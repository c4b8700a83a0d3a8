/* graph_reuse.c — which values the graph interpreter may write over, and what it wrote over (see graph_reuse.h). */
#include "tracer/graph/graph_reuse.h"
enum { NEVER = UINT32_MAX };

static void use(NodeId *last, ValueId v, NodeId n) { last[v] = last[v] == n || last[v] == NEVER ? NEVER : n; }

/* In each block nodes use values of that block alone: what comes from outside is a capture, and an operand of the node that holds the block.
 * A capture of a cond is given each time, one of any other block only once. */
static NodeId *last_uses(const Graph *g, Allocator *a) {
  NodeId *last = mem_alloc_zero(a, sizeof *last * g->values.count);
  if (!last) return NULL;
  for (BlockId b = 1; b < g->blocks.count; b++) {
    const GraphBlock *x = &g->blocks.data[b];
    for (NodeId n = x->first; n; n = g->nodes.data[n].next)
      for (u32 i = 0; i < g->nodes.data[n].operand_count; i++) use(last, node_operand(g, n, i), n);
    for (u32 i = 0; i < x->term_count; i++) last[block_result(g, b, i)] = NEVER;
    bool each_time = x->node && g->nodes.data[x->node].kind == NODE_cond;
    for (u32 i = 0; i < x->captures.count && !each_time; i++) last[x->captures.data[i].inner] = NEVER;
  }
  return last;
}

bool reuse_is_last(GraphRun *r, ValueId v, NodeId n) {
  if (!r->reuses || r->values[v].kind != V_ARRAY) return false;
  if (!r->last && !(r->last = last_uses(r->graph, &r->vm->alloc))) return false;
  return r->last[v] == n;
}

bool reuse_is_own(const GraphRun *r, ValueId v) {
  u8 origin = r->graph->values.data[v].origin;
  return r->reuses && (origin == GV_result || origin == GV_param) && r->values[v].kind == V_ARRAY;
}

bool reuse_note(GraphRun *r, ValueId from, ValueId to, NodeId node, Value old) {
  if (vec_push(&r->vm->alloc, &r->steps, (ReuseStep){from, to, node, old})) return true;
  value_drop(r->vm, old);
  return false;
}

void reuse_forget(GraphRun *r, u32 mark) {
  while (r->steps.count > mark) value_drop(r->vm, r->steps.data[--r->steps.count].old);
}
