/* graph_edit.c — rewriting a graph: unlinking, replacing, cloning (see graph.h). */
#include "tracer/graph/graph.h"

#include <string.h>

void graph_unlink(Graph *g, NodeId n) {
  GraphNode *x = &g->nodes.data[n];
  if (!x->block) return;
  GraphBlock *b = &g->blocks.data[x->block];
  if (x->prev) g->nodes.data[x->prev].next = x->next;
  else b->first = x->next;
  if (x->next) g->nodes.data[x->next].prev = x->prev;
  else b->last = x->prev;
  if (g->before == n) g->before = x->next;
  g->simple = false;
  x->block = 0; /* next stays, so that a walk standing here can go on */
}

void graph_set_operand(Graph *g, NodeId n, u32 i, ValueId v) {
  g->simple = false;
  g->operands.data[g->nodes.data[n].operand_first + i] = v;
}

bool graph_replace(Graph *g, const ValueId *map, u32 count) {
  u32 *blocks, nblocks;
  bool ok = true;
  if (!graph_blocks(g, g->alloc, &blocks, &nblocks)) return false;
  g->simple = false;
#define FOLLOW(v) \
  while ((v) < count && map[v] && map[v] != (v) && (ok = ok && toil(g->toil, 1))) (v) = map[v]
  for (u32 i = 0; i < nblocks; i++) {
    const GraphBlock *b = &g->blocks.data[blocks[i]];
    for (NodeId n = b->first; n; n = g->nodes.data[n].next) {
      const GraphNode *x = &g->nodes.data[n];
      for (u32 k = 0; k < x->operand_count; k++) FOLLOW(g->operands.data[x->operand_first + k]);
    }
    for (u32 k = 0; k < b->term_count; k++) FOLLOW(g->operands.data[b->term_first + k]);
  }
  for (u32 i = 0; i < g->sizes.syms.count; i++) /* what carries a size goes on doing so */
    if (g->sizes.syms.data[i].unbacked) FOLLOW(g->sizes.syms.data[i].source);
#undef FOLLOW
  exits_remap(&g->exits, map, count);
  mem_free(g->alloc, blocks, sizeof *blocks * nblocks);
  return ok && toil(g->toil, count);
}

void graph_replace_one(Graph *g, ValueId from, ValueId to) {
  g->simple = false;
  (void)toil(g->toil, g->operands.count + g->exits.recipes.count);
  for (u32 i = 0; i < g->operands.count; i++)
    if (g->operands.data[i] == from) g->operands.data[i] = to;
  for (u32 i = 1; i < g->exits.recipes.count; i++) {
    Recipe *r = &g->exits.recipes.data[i];
    if ((r->kind == RCP_value || r->kind == RCP_items || r->kind == RCP_complex) && r->a == from) r->a = to;
    if (r->kind == RCP_complex && r->b == from) r->b = to;
  }
}

void graph_drop_capture(Graph *g, NodeId n, u32 i) {
  u32 first;
  g->simple = false;
  node_captures(g, n, &first);
  for (u32 s = 0; s < node_subs(g, n); s++) {
    GraphBlock *b = &g->blocks.data[g->nodes.data[n].sub[s]];
    memmove(b->captures.data + i, b->captures.data + i + 1, sizeof *b->captures.data * (b->captures.count - i - 1));
    b->captures.count--;
  }
  GraphNode *x = &g->nodes.data[n];
  u32 *operands = g->operands.data + x->operand_first;
  memmove(operands + first + i, operands + first + i + 1, sizeof *operands * (x->operand_count - first - i - 1));
  x->operand_count--;
}

/* ---- cloning -------------------------------------------------------------------------------------- */

void map_init(ValueMap *m, Allocator *alloc) { *m = (ValueMap){.alloc = alloc}; }

void map_free(ValueMap *m) {
  if (m->to) mem_free(m->alloc, m->to, sizeof *m->to * m->count);
  vec_free(m->alloc, &m->syms);
  vec_free(m->alloc, &m->sizes);
  *m = (ValueMap){.alloc = m->alloc};
}

bool map_set(ValueMap *m, ValueId from, ValueId to) {
  if (from >= m->count) {
    u32 count = m->count ? m->count : 64;
    while (count <= from) count *= 2;
    u32 *p = mem_resize(m->alloc, m->to, sizeof *p * m->count, sizeof *p * count);
    if (!p) return false;
    memset(p + m->count, 0, sizeof *p * (count - m->count));
    m->to = p;
    m->count = count;
  }
  m->to[from] = to;
  return true;
}

bool map_captures(Graph *g, ValueMap *m, NodeId n, BlockId b) {
  u32 first, ncaps = node_captures(g, n, &first);
  for (u32 i = 0; i < ncaps; i++)
    if (!map_set(m, g->blocks.data[b].captures.data[i].inner, map_get(m, node_operand(g, n, first + i)))) return false;
  return true;
}

/* ---- sizes of what is cloned: a value that carries an unbacked one has a copy that carries another ---- */

static Dim map_dim(Graph *g, const ValueMap *m, Dim d) {
  if (!m->syms.count || !size_is_unbacked(&g->sizes, d)) return d;
  Dim to = size_substitute(&g->sizes, d, m->syms.data, m->sizes.data, m->syms.count);
  g->failed |= to == DIM_NONE;
  return to;
}

static Dim map_dim_of(void *ctx, Dim d) {
  void **both = ctx;
  return map_dim(both[0], both[1], d);
}

TypeId map_type(Graph *g, const ValueMap *m, TypeId t) {
  const ArrayType *old = type_of(g, t);
  if (!m->syms.count || !old) return t;
  ArrayType now = *old;
  bool changed = false;
  for (u32 d = 0; d < now.rank; d++) {
    now.dims[d] = map_dim(g, m, now.dims[d]);
    changed |= now.dims[d] != old->dims[d];
  }
  return changed && !g->failed ? graph_type(g, &now) : t;
}

/* Size expressions used as numbers follow as well. */
static bool map_size_values(Graph *g, ValueMap *m) {
  u32 count = g->consts.count;
  for (u32 i = 0; i < count; i++) {
    ValueId v = g->consts.data[i];
    const GraphValue x = g->values.data[v];
    if (x.origin != GV_size || !size_is_unbacked(&g->sizes, x.dim)) continue;
    Dim d = map_dim(g, m, x.dim);
    if (d == x.dim) continue;
    const ArrayType t = *type_of(g, x.type);
    ValueId to = g->failed ? 0 : graph_size_typed(g, d, t.dtype, t.weak);
    if (!to || !map_set(m, v, to)) return false;
  }
  return true;
}

/* What is known of the symbols that `from` carries, and of those before them, holds for the copies, since the code is
 * the same. A fact is copied with the last symbol in it: those before it that were cloned are in the map by then. */
static bool map_facts(Graph *g, const ValueMap *m, ValueId from) {
  for (u32 i = 0, count = g->sizes.facts.count; i < count; i++) {
    const SizeFact f = g->sizes.facts.data[i];
    u32 last;
    if (!size_last_unbacked(&g->sizes, f.diff, &last) || g->sizes.syms.data[last].source != from) continue;
    Dim diff = map_dim(g, m, f.diff);
    if (g->failed || !size_assume(&g->sizes, (SizeRel)f.rel, diff, 0)) return false;
  }
  return true;
}

bool map_carried(Graph *g, ValueMap *m, ValueId from, ValueId to) {
  u32 count = g->sizes.syms.count, fresh = 0, unknown = 0;
  for (u32 i = 0; i < count; i++) {
    const SizeSym s = g->sizes.syms.data[i];
    if (!s.unbacked || s.source != from) continue;
    Dim d;
    bool known = value_dim(g, to, &d);
    if (!known) d = size_unbacked(&g->sizes, NULL, to, s.lo, s.hi);
    if (d == DIM_NONE || !vec_push(g->alloc, &m->syms, i) || !vec_push(g->alloc, &m->sizes, d)) return false;
    fresh++;
    if (known) continue;
    unknown++;
    g->sizes.syms.data[g->sizes.syms.count - 1].axis = s.axis;
    if (s.same_as != DIM_NONE && !size_assume(&g->sizes, REL_eq, d, map_dim(g, m, s.same_as))) return false;
  }
  return (!unknown || map_facts(g, m, from)) && (!fresh || map_size_values(g, m));
}

/* A copy whose type was made before the symbol it carries. */
static void set_carried_type(Graph *g, const ValueMap *m, ValueId from, ValueId to) {
  if (m->syms.count) g->values.data[to].type = map_type(g, m, g->values.data[from].type);
}

static bool map_attr(Graph *g, const ValueMap *m, GraphAttr *a) {
  if (!m->syms.count) return true;
  if (a->kind == ATTR_dim) a->dim = map_dim(g, m, a->dim);
  if ((a->kind != ATTR_dims && a->kind != ATTR_index) || !a->count) return true;
  size_t size = a->kind == ATTR_dims ? sizeof *a->ints : sizeof *a->items;
  void *copy = arena_copy(&g->arena, (const char *)a->ints, size * a->count);
  if (!copy) return false;
  for (u32 i = 0; i < a->count; i++) {
    if (a->kind == ATTR_dims) {
      if (a->ints[i] != DIM_INFER) ((i64 *)copy)[i] = map_dim(g, m, a->ints[i]);
      continue;
    }
    IndexItem *it = (IndexItem *)copy + i;
    for (u32 k = 0; k < 3; k++)
      if (it->part[k] == PART_dim) it->at[k] = map_dim(g, m, it->at[k]);
  }
  a->ints = copy;
  return true;
}

static u32 cloned_exit(Graph *g, u32 exit, const ValueMap *map) {
  if (exit == NO_EXIT) return exit;
  void *both[2] = {g, (void *)(uintptr_t)map};
  u32 e = map->syms.count ? exit_clone_sized(&g->exits, exit, map->to, map->count, map_dim_of, both)
                          : exit_clone(&g->exits, exit, map->to, map->count);
  g->failed |= e == NO_EXIT;
  return e;
}

/* The blocks of node n, copied for `copy`, which has its captures as last operands already. Depth is bounded by
 * GRAPH_MAX_DEPTH. */
static bool clone_subs(Graph *g, NodeId n, NodeId copy, ValueMap *map) {
  u32 subs = node_subs(g, n);
  for (u32 s = 0; s < subs; s++) {
    BlockId from = g->nodes.data[n].sub[s];
    BlockId at = g->at, made = 0;
    NodeId before = g->before;
    if (g->nodes.data[n].kind == NODE_call) {
      g->nodes.data[copy].sub[s] = from;
      continue;
    }
    g->before = 0;
    made = graph_open(g);
    if (!made) return false;
    u32 ncaptures = g->blocks.data[from].captures.count, nparams = g->blocks.data[from].params.count;
    u32 first = g->nodes.data[copy].operand_count - ncaptures;
    for (u32 i = 0; i < ncaptures; i++) {
      ValueId old = g->blocks.data[from].captures.data[i].inner;
      ValueId v = graph_param(g, made, map_type(g, map, g->values.data[old].type));
      if (!v || !map_set(map, old, v)) return false;
      g->blocks.data[made].params.count--; /* it is a capture: moved to the other list */
      GraphCapture c = {node_operand(g, copy, first + i), v};
      if (!vec_push(g->alloc, &g->blocks.data[made].captures, c)) return false;
    }
    for (u32 i = 0; i < nparams; i++) {
      ValueId old = g->blocks.data[from].params.data[i];
      ValueId v = graph_param(g, made, map_type(g, map, g->values.data[old].type));
      if (!v || !map_set(map, old, v)) return false;
    }
    if (!graph_inline(g, from, map)) return false;
    GraphBlock b = g->blocks.data[from];
    u32 term_first = g->operands.count;
    for (u32 i = 0; i < b.term_count; i++) {
      ValueId v = map_get(map, g->operands.data[b.term_first + i]);
      if (!vec_push(g->alloc, &g->operands, v)) return false;
    }
    u32 exit = b.term == TERM_exit ? cloned_exit(g, b.exit, map) : b.exit;
    GraphBlock *to = &g->blocks.data[made];
    to->term = b.term;
    to->term_first = term_first;
    to->term_count = b.term_count;
    to->exit = exit;
    to->closed = ++g->closes;
    to->node = copy;
    g->nodes.data[copy].sub[s] = made;
    g->at = at;
    g->before = before;
  }
  return true;
}

NodeId graph_clone_node(Graph *g, NodeId n, ValueMap *map) {
  GraphNode x = g->nodes.data[n];
  OriginId origin = g->origin;
  ValueId *operands = mem_alloc(g->alloc, sizeof *operands * (x.operand_count + 1));
  TypeId *types = mem_alloc(g->alloc, sizeof *types * (x.result_count + 1));
  GraphAttr *attrs = mem_alloc(g->alloc, sizeof *attrs * (x.attr_count + 1));
  NodeId copy = 0;
  if (operands && types && attrs) {
    for (u32 i = 0; i < x.operand_count; i++) operands[i] = map_get(map, g->operands.data[x.operand_first + i]);
    for (u32 i = 0; i < x.result_count; i++) types[i] = map_type(g, map, g->values.data[x.result_first + i].type);
    mem_copy(attrs, g->attrs.data + x.attr_first, sizeof *attrs * x.attr_count);
    for (u32 i = 0; i < x.attr_count; i++) g->failed |= !map_attr(g, map, &attrs[i]);
    g->origin = x.origin;
    copy = graph_node(g, (NodeKind)x.kind, x.op, operands, x.operand_count, attrs, x.attr_count, types, x.result_count);
    g->origin = origin;
  }
  mem_free(g->alloc, operands, sizeof *operands * (x.operand_count + 1));
  mem_free(g->alloc, types, sizeof *types * (x.result_count + 1));
  mem_free(g->alloc, attrs, sizeof *attrs * (x.attr_count + 1));
  if (!copy) {
    g->failed = true;
    return 0;
  }
  GraphNode *y = &g->nodes.data[copy];
  y->reverse = x.reverse;
  y->mask = x.mask;
  y->total = x.total;
  y->lanes = x.lanes;
  y->index = x.index;
  y->carried = x.carried;
  y->xs = x.xs;
  y->length = map_dim(g, map, x.length);
  y->host = x.host;
  bool ok = clone_subs(g, n, copy, map);
  for (u32 i = 0; ok && i < x.result_count; i++) {
    ValueId v = g->nodes.data[copy].result_first + i;
    ok = map_set(map, x.result_first + i, v) && map_carried(g, map, x.result_first + i, v);
  }
  /* after the blocks, whose parameters a loop's exit names; an update's names its result */
  u32 exit = ok ? cloned_exit(g, x.exit, map) : NO_EXIT;
  g->nodes.data[copy].exit = exit;
  for (u32 i = 0; ok && i < x.result_count; i++)
    set_carried_type(g, map, x.result_first + i, g->nodes.data[copy].result_first + i);
  if (ok && !g->failed) return copy;
  g->failed = true;
  return 0;
}

bool graph_inline_some(Graph *g, BlockId from, ValueMap *map, bool (*keeps)(const Graph *g, NodeId n, const u8 *live),
                       const u8 *live) {
  NodeId last = g->blocks.data[from].last; /* the cursor may stand in the same block */
  for (u32 i = 0; i < g->blocks.data[from].params.count; i++) { /* what they carry, their copies carry */
    ValueId old = g->blocks.data[from].params.data[i], v = map_get(map, old);
    if (v == old) continue;
    if (!map_carried(g, map, old, v)) return false;
    if (g->values.data[v].origin == GV_param && g->values.data[v].type == g->values.data[old].type)
      set_carried_type(g, map, old, v);
  }
  for (NodeId n = g->blocks.data[from].first; n; n = g->nodes.data[n].next) {
    if ((!keeps || keeps(g, n, live)) && !graph_clone_node(g, n, map)) return false;
    if (n == last) break;
  }
  return true;
}

bool graph_inline(Graph *g, BlockId from, ValueMap *map) { return graph_inline_some(g, from, map, NULL, NULL); }

BlockId graph_clone_block(Graph *g, BlockId from, ValueMap *map) {
  BlockId b = graph_open(g);
  if (!b) return 0;
  u32 ncaptures = g->blocks.data[from].captures.count, nparams = g->blocks.data[from].params.count;
  for (u32 i = 0; i < ncaptures; i++) { /* what it captured is lifted anew: the copy may stand elsewhere */
    GraphCapture c = g->blocks.data[from].captures.data[i];
    u32 first;
    NodeId n = g->blocks.data[from].node;
    ValueId outer = c.outer;
    if (n) {
      node_captures(g, n, &first);
      outer = node_operand(g, n, first + i);
    }
    ValueId v = graph_lift(g, b, map_get(map, outer));
    if (!v || !map_set(map, c.inner, v)) goto fail;
  }
  for (u32 i = 0; i < nparams; i++) {
    ValueId old = g->blocks.data[from].params.data[i];
    ValueId v = graph_param(g, b, map_type(g, map, g->values.data[old].type));
    if (!v || !map_set(map, old, v)) goto fail;
  }
  if (!graph_inline(g, from, map)) goto fail;
  GraphBlock x = g->blocks.data[from];
  ValueId *values = mem_alloc(g->alloc, sizeof *values * (x.term_count + 1));
  if (!values) goto fail;
  for (u32 i = 0; i < x.term_count; i++) values[i] = map_get(map, g->operands.data[x.term_first + i]);
  u32 exit = x.term == TERM_exit ? cloned_exit(g, x.exit, map) : x.exit;
  bool ok = graph_close(g, (TermKind)x.term, values, x.term_count, exit);
  mem_free(g->alloc, values, sizeof *values * (x.term_count + 1));
  return ok && !g->failed ? b : 0;
fail:
  g->failed = true;
  return 0;
}
