/* graph_read.c — walking a graph: nodes in program order, reachable blocks, uses (see graph.h). */
#include "tracer/graph/graph.h"

#include <string.h>

bool node_is_effect(const Graph *g, NodeId n) {
  const GraphNode *x = &g->nodes.data[n];
  for (u32 i = 0; i < x->operand_count; i++)
    if (value_is_token(g, g->operands.data[x->operand_first + i])) return true;
  return false;
}

NodeId node_recur_around(const Graph *g, NodeId self) {
  for (BlockId b = g->nodes.data[self].block; b; b = g->blocks.data[b].parent) {
    NodeId n = g->blocks.data[b].node;
    if (n && g->nodes.data[n].kind == NODE_recur) return n;
  }
  return 0;
}

/* ---- walking -------------------------------------------------------------------------------------- */

/* How many blocks of its own a node has; most have none. */
static inline __attribute__((always_inline)) u32 own_subs(const Graph *g, NodeId n) {
  const GraphNode *x = &g->nodes.data[n];
  return x->kind != NODE_call ? node_subs(g, n) : 0;
}

/* What comes after node n once its own blocks are done, or its blocks when `inside`. */
static NodeId after(const Graph *g, BlockId root, NodeId n, bool inside) {
  for (u32 i = 0, subs = inside ? own_subs(g, n) : 0; i < subs && g->nodes.data[n].sub[i]; i++)
    if (g->blocks.data[g->nodes.data[n].sub[i]].first) return g->blocks.data[g->nodes.data[n].sub[i]].first;
  for (;;) {
    if (g->nodes.data[n].next) return g->nodes.data[n].next;
    BlockId b = g->nodes.data[n].block;
    if (b == root) return 0;
    NodeId holder = g->blocks.data[b].node;
    if (!holder) return 0;
    const BlockId *own = g->nodes.data[holder].sub;
    u32 i = 0, subs = own_subs(g, holder);
    while (i < subs && own[i] && own[i] != b) i++;
    for (i++; i < subs && own[i]; i++)
      if (g->blocks.data[own[i]].first) return g->blocks.data[own[i]].first;
    n = holder;
  }
}

GraphWalk walk_begin(const Graph *g, BlockId root) {
  return (GraphWalk){.g = g, .root = root, .upcoming = g->blocks.data[root].first};
}

bool walk_next(GraphWalk *w) {
  w->node = w->upcoming;
  if (!w->node || !toil(w->g->toil, 1)) return false;
  w->block = w->g->nodes.data[w->node].block;
  w->upcoming = after(w->g, w->root, w->node, true);
  return true;
}

typedef struct BlockList {
  Allocator *alloc;
  VEC(u32) ids;
  u8 *seen;
  bool failed;
} BlockList;

static void add_block(BlockList *l, BlockId b) {
  if (!b || l->seen[b] || l->failed) return;
  l->seen[b] = 1;
  if (!vec_push(l->alloc, &l->ids, b)) l->failed = true;
}

bool graph_blocks(const Graph *g, Allocator *a, u32 **out, u32 *count) {
  BlockList l = {.alloc = a};
  *out = NULL;
  *count = 0;
  l.seen = mem_alloc_zero(a, g->blocks.count);
  if (!l.seen) return false;
  add_block(&l, 1);
  for (u32 i = 0; i < l.ids.count && !l.failed; i++) { /* the list grows while it is gone through */
    u64 steps = 1;
    for (NodeId n = g->blocks.data[l.ids.data[i]].first; n; n = g->nodes.data[n].next, steps++)
      for (u32 s = 0, subs = node_subs(g, n); s < subs; s++) add_block(&l, g->nodes.data[n].sub[s]);
    l.failed |= !toil(g->toil, steps);
  }
  mem_free(a, l.seen, g->blocks.count);
  if (l.failed) {
    vec_free(a, &l.ids);
    return false;
  }
  /* exactly as long as its count, so that the caller can free it by that */
  u32 *ids = mem_resize(a, l.ids.data, sizeof *ids * l.ids.cap, sizeof *ids * l.ids.count);
  if (!ids) {
    vec_free(a, &l.ids);
    return false;
  }
  *out = ids;
  *count = l.ids.count;
  return true;
}

u32 graph_node_count(const Graph *g) {
  u32 n = 0, shared = 0;
  GraphWalk w = walk_begin(g, 1);
  while (walk_next(&w)) {
    n++;
    if (g->nodes.data[w.node].kind == NODE_call && g->nodes.data[w.node].sub[0] > shared) {
      shared = g->nodes.data[w.node].sub[0]; /* later blocks hold later bodies: each is counted at its first call */
      GraphWalk inner = walk_begin(g, shared);
      while (walk_next(&inner)) n++;
    }
  }
  return n;
}

/* ---- what exits and sizes need ---------------------------------------------------------------------- */

bool graph_used_exits(const Graph *g, u8 *used) {
  u32 n = g->exits.exits.count, count, *blocks;
  memset(used, 0, n);
  if (!graph_blocks(g, g->alloc, &blocks, &count)) return false;
  if (g->entry_exit < n) used[g->entry_exit] = 1;
  for (u32 i = 0; i < count; i++) {
    const GraphBlock *b = &g->blocks.data[blocks[i]];
    if (b->term == TERM_exit && b->exit < n) used[b->exit] = 1;
    for (NodeId k = b->first; k; k = g->nodes.data[k].next)
      if (g->nodes.data[k].exit < n) used[g->nodes.data[k].exit] = 1;
  }
  mem_free(g->alloc, blocks, sizeof *blocks * count);
  return true;
}

typedef struct Carriers {
  const Graph *g;
  void (*each)(void *ctx, u32 value);
  void *ctx;
} Carriers;

static void carrier(void *ctx, u32 sym) {
  const Carriers *c = ctx;
  const SizeSym *s = &c->g->sizes.syms.data[sym];
  if (s->unbacked && s->source && s->source < c->g->values.count) c->each(c->ctx, s->source);
}

static void of_size(void *ctx, Dim d) {
  const Carriers *c = ctx;
  if (size_is_unbacked(&c->g->sizes, d)) size_symbols(&c->g->sizes, d, carrier, ctx);
}

static void of_value(void *ctx, u32 v) {
  const Carriers *c = ctx;
  c->each(c->ctx, v);
  if (c->g->values.data[v].origin == GV_size) of_size(ctx, c->g->values.data[v].dim);
}

void graph_exit_values(const Graph *g, u32 exit, void (*each)(void *ctx, u32 value), void *ctx) {
  Carriers c = {g, each, ctx};
  exit_values(&g->exits, exit, of_value, &c);
  exit_sizes(&g->exits, exit, of_size, &c);
}

void node_size_values(const Graph *g, NodeId n, void (*each)(void *ctx, u32 value), void *ctx) {
  Carriers c = {g, each, ctx};
  const GraphNode *x = &g->nodes.data[n];
  for (u32 i = 0; i < x->operand_count; i++) {
    const GraphValue *v = &g->values.data[g->operands.data[x->operand_first + i]];
    if (v->origin == GV_size) of_size(&c, v->dim);
  }
  for (u32 i = 0; i < x->attr_count; i++) {
    const GraphAttr *a = &g->attrs.data[x->attr_first + i];
    if (a->kind == ATTR_dim) of_size(&c, a->dim);
    for (u32 k = 0; a->kind == ATTR_dims && k < a->count; k++) of_size(&c, a->ints[k]);
    for (u32 k = 0; a->kind == ATTR_index && k < a->count; k++)
      for (u32 part = 0; part < 3; part++)
        if (a->items[k].part[part] == PART_dim) of_size(&c, a->items[k].at[part]);
  }
  if (x->kind == NODE_scan) of_size(&c, x->length);
  for (u32 i = 0; i < x->result_count; i++) {
    const ArrayType *t = value_type(g, x->result_first + i);
    for (u32 d = 0; t && d < t->rank; d++)
      if (size_is_unbacked(&g->sizes, t->dims[d])) {
        u32 sym; /* a symbol that this very result carries is no use */
        if (size_is_sym(&g->sizes, t->dims[d], &sym) &&
            g->sizes.syms.data[sym].source - x->result_first < x->result_count)
          continue;
        of_size(&c, t->dims[d]);
      }
  }
}

/* ---- uses ----------------------------------------------------------------------------------------- */

static void count_use(void *ctx, u32 value) {
  GraphUses *u = ctx;
  if (value < u->values) u->count[value]++;
}

bool graph_uses(const Graph *g, Allocator *alloc, GraphUses *out) {
  u32 *blocks, count, nexits = g->exits.exits.count;
  *out = (GraphUses){.alloc = alloc, .values = g->values.count};
  u8 *used = mem_alloc_zero(alloc, nexits + 1);
  out->count = mem_alloc_zero(alloc, sizeof *out->count * (out->values + 1));
  bool ok = used && out->count && graph_blocks(g, alloc, &blocks, &count);
  if (ok) {
    if (g->entry_exit < nexits) used[g->entry_exit] = 1;
    for (u32 i = 0; i < count; i++) {
      const GraphBlock *b = &g->blocks.data[blocks[i]];
      for (NodeId n = b->first; n; n = g->nodes.data[n].next) {
        const GraphNode *x = &g->nodes.data[n];
        if (x->exit < nexits) used[x->exit] = 1;
        for (u32 k = 0; k < x->operand_count; k++) out->count[g->operands.data[x->operand_first + k]]++;
        node_size_values(g, n, count_use, out);
        ok = ok && toil(g->toil, 1 + x->operand_count);
      }
      if (b->term == TERM_exit && b->exit < nexits) used[b->exit] = 1;
      for (u32 k = 0; k < b->term_count; k++) out->count[g->operands.data[b->term_first + k]]++;
    }
    for (u32 e = 0; e < nexits; e++)
      if (used[e]) graph_exit_values(g, e, count_use, out);
    mem_free(alloc, blocks, sizeof *blocks * count);
  }
  if (!ok) graph_uses_free(out);
  mem_free(alloc, used, nexits + 1);
  return ok;
}

void graph_uses_free(GraphUses *u) {
  mem_free(u->alloc, u->count, sizeof *u->count * (u->values + 1));
  *u = (GraphUses){0};
}
