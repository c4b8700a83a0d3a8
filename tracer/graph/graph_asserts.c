/* graph_asserts.c — a check of sizes stands where its last symbol becomes known: what it makes equal is equal
 * everywhere.
 *
 * `check size u u` is the anchor of symbol u, left by the recorder where u was made: nothing before it speaks of u.
 * Other size checks whose last unbacked symbol is u move behind it and leave by its exit. Then anchors go. What had
 * no anchor stays where it is. A number that is first a size in an arm has another symbol, and another anchor,
 * beside the arm: a check moves to the first that is around it. */
#include "tracer/graph/graph.h"

static bool size_operand(const Graph *g, NodeId n, u32 i, Dim *d) {
  Value v;
  ValueId x = node_operand(g, n, i);
  if (g->values.data[x].origin == GV_size) *d = g->values.data[x].dim;
  else if (value_const(g, x, &v) && v.kind == V_NUM && v.dtype == DT_i64 && v.i >= 0) *d = v.i;
  else return false;
  return true;
}

/* The last unbacked symbol that a size check speaks of; `anchor`: it says nothing else. False: no such check. */
static bool last_symbol(const Graph *g, NodeId n, u32 *sym, bool *anchor) {
  const GraphNode *x = graph_node_at(g, n);
  Dim a, b;
  u32 i = 0, k = 0;
  if (x->kind != NODE_check || x->op != CHECK_size || !size_operand(g, n, 0, &a) || !size_operand(g, n, 1, &b))
    return false;
  bool in_a = size_last_unbacked(&g->sizes, a, &i), in_b = size_last_unbacked(&g->sizes, b, &k);
  *sym = !in_a || (in_b && k > i) ? k : i;
  *anchor = a == b && size_is_sym(&g->sizes, a, &i); /* i is another number then: *sym stands */
  return in_a || in_b;
}

typedef struct Anchor {
  u32 sym;
  NodeId node;
} Anchor;
typedef VEC(Anchor) AnchorVec;

/* The first anchor of `sym` whose block is that of n, or around it. 0: there is none. */
static NodeId anchor_around(const Graph *g, const AnchorVec *anchors, u32 sym, NodeId n) {
  if (!toil(g->toil, anchors->count)) return 0;
  for (u32 i = 0; i < anchors->count; i++) {
    const Anchor *a = &anchors->data[i];
    BlockId b = a->sym == sym ? graph_node_at(g, n)->block : 0, outer = graph_node_at(g, a->node)->block;
    while (b && b != outer) b = g->blocks.data[b].parent;
    if (b) return a->node;
  }
  return 0;
}

static void put_behind(Graph *g, NodeId n, NodeId at) {
  graph_unlink(g, n);
  GraphNode *x = &g->nodes.data[n], *y = &g->nodes.data[at];
  GraphBlock *b = &g->blocks.data[y->block];
  x->block = y->block;
  x->prev = at;
  x->next = y->next;
  x->exit = y->exit;
  if (y->next) g->nodes.data[y->next].prev = n;
  else b->last = n;
  y->next = n;
}

/* Symbols of a check, each beside the last one for the same number that is found equal to nothing. */
enum { TWINS = 16 };
typedef struct Twins {
  const SizePool *p;
  u32 from[TWINS], count;
  Dim to[TWINS];
} Twins;

static void last_twin(void *ctx, u32 sym) {
  Twins *t = ctx;
  const SizeSym *s = &t->p->syms.data[sym];
  for (u32 i = 0; i < t->count && i < TWINS; i++)
    if (t->from[i] == sym) return;
  for (u32 i = t->p->syms.count; s->unbacked && s->source && i-- > sym;) {
    const SizeSym *o = &t->p->syms.data[i];
    if (!o->unbacked || o->source != s->source || o->axis != s->axis || o->same_as != DIM_NONE) continue;
    if (t->count < TWINS) t->from[t->count] = sym, t->to[t->count] = o->dim;
    t->count++;
    return;
  }
}

/* Both sides turned out to be one formula of the same values: symbols whose sources have become one speak of one
 * number. */
static bool always_holds(Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  Dim a, b;
  Twins t = {.p = &g->sizes};
  if (!toil(g->toil, 1)) return false;
  if (x->kind != NODE_check || x->op != CHECK_size || !size_operand(g, n, 0, &a) ||
      !size_operand(g, n, 1, &b) || a == b)
    return false;
  size_symbols(&g->sizes, a, last_twin, &t);
  size_symbols(&g->sizes, b, last_twin, &t);
  if (!t.count || t.count > TWINS) return false;
  a = size_substitute(&g->sizes, a, t.from, t.to, t.count);
  return a != DIM_NONE && a == size_substitute(&g->sizes, b, t.from, t.to, t.count);
}

bool graph_asserts(Graph *g, const u32 *blocks, u32 count, bool *changed) {
  AnchorVec anchors = {0};
  NodeId at;
  u32 sym;
  bool anchor;
  for (u32 i = 0; i < count; i++)
    for (NodeId n = block_first(g, blocks[i]), next; n; n = next) {
      next = node_next(g, n);
      if (!always_holds(g, n)) continue;
      graph_unlink(g, n);
      *changed = true;
    }
  for (u32 i = 0; i < count; i++)
    for (NodeId n = block_first(g, blocks[i]); n; n = node_next(g, n)) {
      if (!last_symbol(g, n, &sym, &anchor) || !anchor) continue;
      if (vec_push(g->alloc, &anchors, (Anchor){sym, n})) continue;
      vec_free(g->alloc, &anchors);
      return false;
    }
  if (!anchors.count) return true;
  for (u32 i = 0; i < count; i++)
    for (NodeId n = block_first(g, blocks[i]), next; n; n = next) {
      next = node_next(g, n);
      if (!last_symbol(g, n, &sym, &anchor) || anchor || !(at = anchor_around(g, &anchors, sym, n))) continue;
      put_behind(g, n, at);
      *changed = true;
    }
  for (u32 i = 0; i < count; i++)
    for (NodeId n = block_first(g, blocks[i]), next; n; n = next) {
      next = node_next(g, n);
      if (!last_symbol(g, n, &sym, &anchor) || !anchor) continue;
      graph_unlink(g, n);
      *changed = true;
    }
  vec_free(g->alloc, &anchors);
  return !toil_ended(g->toil);
}
