/* graph.c — the graph's storage: types, values, blocks, captures, nodes, speculation (see graph.h). */
#include "lang/mechanisms.h"
#include "tracer/graph/graph.h"

#include <stdio.h>
#include <string.h>

Graph *graph_new(Allocator *alloc, const char *name) {
  Graph *g = mem_alloc_zero(alloc, sizeof *g);
  if (!g) return NULL;
  g->alloc = alloc;
  arena_init(&g->arena, alloc);
  size_init(&g->sizes, alloc);
  guards_init(&g->guards, alloc);
  exits_init(&g->exits, alloc);
  g->entry_exit = NO_EXIT;
  g->name = arena_copy(&g->arena, name, strlen(name));
  /* number 0 of everything means none; block 1 is the root, type 1 the token, frame 0 the region's own. The type of
   * no value can be looked at, so that a refused allocation is seen at the end of what was being built. */
  static const ArrayType none = {.dtype = DT_f64};
  bool ok = g->name && vec_push(alloc, &g->types, &none) && vec_push(alloc, &g->types, &none) &&
            vec_push(alloc, &g->values, (GraphValue){0}) && vec_push(alloc, &g->nodes, (GraphNode){0}) &&
            vec_push(alloc, &g->blocks, (GraphBlock){0}) && vec_push(alloc, &g->blocks, (GraphBlock){0}) &&
            vec_push(alloc, &g->origins, (GraphOrigin){0}) && vec_push(alloc, &g->hosts, (GraphHost){0});
  if (!ok) {
    graph_free(g);
    return NULL;
  }
  g->at = 1;
  return g;
}

static void free_block(Graph *g, GraphBlock *b) {
  vec_free(g->alloc, &b->captures);
  vec_free(g->alloc, &b->params);
}

void graph_free(Graph *g) {
  if (!g) return;
  Allocator *a = g->alloc;
  for (u32 i = 0; i < g->blocks.count; i++) free_block(g, &g->blocks.data[i]);
  vec_free(a, &g->types);
  vec_free(a, &g->values);
  vec_free(a, &g->nodes);
  vec_free(a, &g->blocks);
  vec_free(a, &g->operands);
  vec_free(a, &g->attrs);
  vec_free(a, &g->origins);
  vec_free(a, &g->frames);
  vec_free(a, &g->hosts);
  vec_free(a, &g->inputs);
  vec_free(a, &g->consts);
  exits_free(&g->exits);
  guards_free(&g->guards);
  size_free(&g->sizes);
  arena_free(&g->arena);
  mem_free(a, g, sizeof *g);
}

static u32 graph_refused(Graph *g) {
  g->failed = true;
  return 0;
}

/* ---- speculation ---------------------------------------------------------------------------------- */

GraphMark graph_mark(const Graph *g) {
  return (GraphMark){.types = g->types.count,
                     .values = g->values.count,
                     .nodes = g->nodes.count,
                     .blocks = g->blocks.count,
                     .operands = g->operands.count,
                     .attrs = g->attrs.count,
                     .origins = g->origins.count,
                     .frames = g->frames.count,
                     .hosts = g->hosts.count,
                     .inputs = g->inputs.count,
                     .consts = g->consts.count,
                     .closes = g->closes,
                     .sizes = size_mark(&g->sizes),
                     .guards = guards_mark(&g->guards),
                     .exits = exits_mark(&g->exits),
                     .at = g->at,
                     .origin = g->origin};
}

void graph_rollback(Graph *g, GraphMark m) {
  if (g->types.count > m.types) graph_infer_anew(g);
  for (u32 i = m.blocks; i < g->blocks.count; i++) free_block(g, &g->blocks.data[i]);
  g->blocks.count = m.blocks;
  for (u32 i = 1; i < m.blocks; i++) {
    GraphBlock *b = &g->blocks.data[i];
    while (b->last >= m.nodes) b->last = g->nodes.data[b->last].prev;
    if (b->last) g->nodes.data[b->last].next = 0;
    else b->first = 0;
    if (b->node && b->node < m.nodes) continue; /* its node stands before the mark: operands and captures agree */
    u32 kept = 0;
    for (u32 k = 0; k < b->captures.count; k++) /* merging may have reordered them: back into the order of capture */
      if (b->captures.data[k].inner < m.values) {
        GraphCapture c = b->captures.data[k];
        u32 at = kept++;
        for (; at > 0 && b->captures.data[at - 1].inner > c.inner; at--)
          b->captures.data[at] = b->captures.data[at - 1];
        b->captures.data[at] = c;
      }
    b->captures.count = kept;
    while (b->params.count && b->params.data[b->params.count - 1] >= m.values) b->params.count--;
    if (b->node >= m.nodes) b->node = 0;
    if (b->closed > m.closes) {
      b->closed = 0;
      b->term = TERM_none;
      b->term_count = 0;
    }
  }
  g->types.count = m.types;
  g->values.count = m.values;
  g->nodes.count = m.nodes;
  g->operands.count = m.operands;
  g->attrs.count = m.attrs;
  g->origins.count = m.origins;
  g->frames.count = m.frames;
  g->hosts.count = m.hosts;
  g->inputs.count = m.inputs;
  g->consts.count = m.consts;
  g->closes = m.closes;
  size_rollback(&g->sizes, m.sizes);
  guards_rollback(&g->guards, m.guards);
  exits_rollback(&g->exits, m.exits);
  g->at = m.at;
  g->before = 0;
  g->origin = m.origin;
  if (g->entry_exit != NO_EXIT && g->entry_exit >= m.exits.exits) g->entry_exit = NO_EXIT;
  if (m.nodes > 1 && g->nodes.data[m.nodes - 1].exit != NO_EXIT && g->nodes.data[m.nodes - 1].exit >= m.exits.exits)
    /* an update gets the exit behind it when the next instruction begins, which may be behind the mark */
    g->nodes.data[m.nodes - 1].exit = NO_EXIT;
}

/* ---- types ---------------------------------------------------------------------------------------- */

static bool equal_types(const ArrayType *a, const ArrayType *b) {
  return a->dtype == b->dtype && a->weak == b->weak && a->rank == b->rank && a->device == b->device &&
         memcmp(a->dims, b->dims, sizeof *a->dims * a->rank) == 0;
}

TypeId graph_type(Graph *g, const ArrayType *t) {
  const u8 device = t->rank ? t->device : 0; /* numbers live with the processor */
  ArrayType r = {.dtype = t->dtype, .weak = t->weak, .rank = t->rank, .device = device};
  for (u32 d = 0; d < t->rank; d++) {
    r.dims[d] = size_resolve(&g->sizes, t->dims[d]);
    if (r.dims[d] == DIM_NONE) r.dims[d] = t->dims[d]; /* too large once resolved: it stays as it was */
  }
  for (u32 i = g->types.count; i-- > 2;)
    if (equal_types(g->types.data[i], &r)) return i;
  ArrayType *kept = arena_alloc(&g->arena, sizeof *kept);
  if (!kept) return graph_refused(g);
  *kept = r;
  if (!vec_push(g->alloc, &g->types, kept)) return graph_refused(g);
  return g->types.count - 1;
}

bool type_fits(Graph *g, TypeId a, TypeId b) {
  if (a == b) return true;
  if (a <= TYPE_TOKEN || b <= TYPE_TOKEN) return false;
  const ArrayType *x = type_of(g, a), *y = type_of(g, b);
  if (x->dtype != y->dtype || x->rank != y->rank || x->device != y->device) return false;
  for (u32 d = 0; d < x->rank; d++)
    if (!size_same(&g->sizes, x->dims[d], y->dims[d])) return false;
  return true;
}

bool type_same(Graph *g, TypeId a, TypeId b) {
  return type_fits(g, a, b) && (a == b || type_of(g, a)->weak == type_of(g, b)->weak);
}

ArrayType type_scalar(u32 dtype, bool weak) { return (ArrayType){.dtype = (u8)dtype, .weak = weak}; }

TypeId graph_scalar_type(Graph *g, u32 dtype, bool weak) {
  ArrayType t = type_scalar(dtype, weak);
  return graph_type(g, &t);
}

/* ---- values --------------------------------------------------------------------------------------- */

static ValueId new_value(Graph *g, GraphValue v) {
  if (!v.type || !toil(g->toil, 1) || !vec_push(g->alloc, &g->values, v)) return graph_refused(g);
  return g->values.count - 1;
}

static ValueId shared_value(Graph *g, GraphValue v) {
  enum { LOOK_BACK = 256 };
  for (u32 i = g->consts.count, n = 0; i-- > 0 && n < LOOK_BACK; n++) {
    const GraphValue *o = &g->values.data[g->consts.data[i]];
    if (o->origin == v.origin && o->type == v.type && o->bits == v.bits) return g->consts.data[i];
  }
  ValueId id = new_value(g, v);
  if (!id || !vec_push(g->alloc, &g->consts, id)) return graph_refused(g);
  return id;
}

ValueId graph_const(Graph *g, Value num) {
  TypeId t = graph_scalar_type(g, num.dtype, num.flags & VF_WEAK);
  return shared_value(g, (GraphValue){.origin = GV_const, .type = t, .bits = num.bits});
}

ValueId graph_const_f64(Graph *g, u32 dtype, f64 x) {
  if (dtype_kind(dtype) == DK_COMPLEX) return graph_refused(g);
  return graph_const(g, num_convert_unchecked(value_f64(x), dtype));
}

ValueId graph_size_typed(Graph *g, Dim d, u32 dtype, bool weak) {
  i64 c;
  d = size_resolve(&g->sizes, d);
  if (d == DIM_NONE) return 0;
  if (size_is_const(&g->sizes, d, &c))
    return graph_const(g, (Value){.kind = V_NUM, .dtype = (u8)dtype, .flags = weak ? VF_WEAK : 0, .i = c});
  return shared_value(g, (GraphValue){.origin = GV_size, .type = graph_scalar_type(g, dtype, weak), .dim = d});
}

ValueId graph_size(Graph *g, Dim d) { return graph_size_typed(g, d, DT_i64, true); }

bool value_const(const Graph *g, ValueId v, Value *out) {
  const GraphValue *x = &g->values.data[v];
  if (x->origin != GV_const) return false;
  const ArrayType *t = type_of(g, x->type);
  *out = (Value){.kind = V_NUM, .dtype = t->dtype, .flags = t->weak ? VF_WEAK : 0, .bits = x->bits};
  return true;
}

bool value_dim(Graph *g, ValueId v, Dim *out) {
  const GraphValue *x = &g->values.data[v];
  if (x->origin == GV_size) {
    *out = x->dim;
    return true;
  }
  if (x->origin != GV_const) return false;
  u32 dtype = type_of(g, x->type)->dtype;
  if (dtype_kind(dtype) != DK_INT || (dtype == DT_u64 && x->bits > INT64_MAX)) return false;
  *out = size_const(&g->sizes, (i64)x->bits);
  return *out != DIM_NONE;
}

BlockId value_block(const Graph *g, ValueId v) {
  const GraphValue *x = &g->values.data[v];
  switch (x->origin) {
    case GV_result: return g->nodes.data[x->def].block;
    case GV_param: return x->def;
    default: return 0;
  }
}

static ValueId new_param(Graph *g, BlockId b, TypeId type, u32 index) {
  return new_value(g, (GraphValue){.origin = GV_param, .type = type, .def = b, .index = index});
}

ValueId graph_input(Graph *g, TypeId type, u32 input) {
  for (u32 i = 0; i < g->inputs.count && input != UINT32_MAX; i++)
    if (g->inputs.data[i].input == input) return g->inputs.data[i].value;
  GraphBlock *root = &g->blocks.data[1];
  ValueId v = new_param(g, 1, type, root->params.count);
  if (!v || !vec_push(g->alloc, &root->params, v) || !vec_push(g->alloc, &g->inputs, (GraphInput){v, input, false}))
    return graph_refused(g);
  return v;
}

/* ---- blocks --------------------------------------------------------------------------------------- */

static BlockId open_block(Graph *g, BlockId parent, const char *name) {
  u32 depth = parent ? g->blocks.data[parent].depth + 1 : 0;
  if (depth > GRAPH_MAX_DEPTH) return 0;
  GraphBlock b = {.parent = parent, .depth = depth, .back = g->at, .back_before = g->before, .origin = g->origin};
  if (name) {
    b.shared = true;
    if (!(b.name = arena_copy(&g->arena, name, strlen(name)))) return graph_refused(g);
  }
  if (!vec_push(g->alloc, &g->blocks, b)) return graph_refused(g);
  g->at = g->blocks.count - 1;
  g->before = 0;
  return g->at;
}

BlockId graph_open(Graph *g) { return open_block(g, g->at, NULL); }
BlockId graph_open_shared(Graph *g, const char *name) { return open_block(g, 0, name); }

ValueId graph_param(Graph *g, BlockId b, TypeId type) {
  ValueId v = new_param(g, b, type, g->blocks.data[b].params.count);
  if (!v || !vec_push(g->alloc, &g->blocks.data[b].params, v)) return graph_refused(g);
  return v;
}

bool graph_renew_results(Graph *g, NodeId n, const TypeId *types, u32 count) {
  ValueId first = 0;
  for (u32 i = 0; i < count; i++) {
    ValueId v = new_value(g, (GraphValue){.origin = GV_result, .type = types[i], .def = n, .index = i});
    if (!v) return false;
    if (!i) first = v;
  }
  g->simple = false;
  g->nodes.data[n].result_first = first;
  g->nodes.data[n].result_count = count;
  return true;
}

static bool renewed(Graph *g, const ValueId *values, u32 count, u32 *first) {
  *first = g->operands.count;
  g->simple = false;
  for (u32 i = 0; i < count; i++)
    if (!values[i] || !vec_push(g->alloc, &g->operands, values[i])) return graph_refused(g);
  return true;
}

bool graph_renew_operands(Graph *g, NodeId n, const ValueId *values, u32 count) {
  u32 first;
  if (!renewed(g, values, count, &first)) return false;
  g->nodes.data[n].operand_first = first;
  g->nodes.data[n].operand_count = count;
  return true;
}

bool graph_renew_terminator(Graph *g, BlockId b, const ValueId *values, u32 count) {
  u32 first;
  if (!renewed(g, values, count, &first)) return false;
  g->blocks.data[b].term_first = first;
  g->blocks.data[b].term_count = count;
  return true;
}

void graph_at_end(Graph *g, BlockId b) {
  g->at = b;
  g->before = 0;
}

void graph_at(Graph *g, NodeId before) {
  g->at = g->nodes.data[before].block;
  g->before = before;
}

const u8 node_kind_subs[NODE_COUNT] = {
#define NODE(name, subs, meaning) subs,
#include "tracer/graph/graph.def"
};

u32 node_captures(const Graph *g, NodeId n, u32 *first) {
  const GraphNode *x = &g->nodes.data[n];
  u32 count = node_subs(g, n) && x->kind != NODE_call ? g->blocks.data[x->sub[0]].captures.count : 0;
  *first = x->operand_count - count;
  return count;
}

/* Adds an operand at the end. The operands move to the end of the graph's list when others stand behind them. */
static bool add_operand(Graph *g, NodeId n, ValueId v) {
  GraphNode *x = &g->nodes.data[n];
  if (x->operand_first + x->operand_count != g->operands.count) {
    u32 first = g->operands.count;
    for (u32 i = 0; i < x->operand_count; i++) {
      u32 o = g->operands.data[x->operand_first + i];
      if (!vec_push(g->alloc, &g->operands, o)) return graph_refused(g);
    }
    x->operand_first = first;
  }
  if (!vec_push(g->alloc, &g->operands, v)) return graph_refused(g);
  x->operand_count++;
  return true;
}

static bool add_capture(Graph *g, BlockId b, ValueId outer, ValueId *inner) {
  *inner = new_param(g, b, g->values.data[outer].type, g->blocks.data[b].captures.count);
  if (!*inner || !vec_push(g->alloc, &g->blocks.data[b].captures, (GraphCapture){outer, *inner}))
    return graph_refused(g);
  return true;
}

/* `outer` belongs to the block around b. Once b has its node, that node's operands say what is captured, and all its
 * blocks get the new one. */
static ValueId capture(Graph *g, BlockId b, ValueId outer) {
  NodeId n = g->blocks.data[b].node;
  ValueId inner = 0;
  if (!n) {
    const GraphBlock *x = &g->blocks.data[b];
    for (u32 i = 0; i < x->captures.count; i++)
      if (x->captures.data[i].outer == outer) return x->captures.data[i].inner;
    return add_capture(g, b, outer, &inner) ? inner : 0;
  }
  u32 first, count = node_captures(g, n, &first);
  for (u32 i = 0; i < count; i++)
    if (node_operand(g, n, first + i) == outer) return g->blocks.data[b].captures.data[i].inner;
  u32 subs = node_subs(g, n);
  for (u32 s = 0; s < subs; s++) {
    ValueId v;
    BlockId sub = g->nodes.data[n].sub[s];
    if (!add_capture(g, sub, outer, &v)) return 0;
    if (sub == b) inner = v;
  }
  return add_operand(g, n, outer) ? inner : 0;
}

ValueId graph_lift(Graph *g, BlockId b, ValueId v) {
  if (!v) return 0;
  BlockId home = value_block(g, v);
  if (!home || home == b) return v;
  /* the way from b out to home, then captures from the outermost in */
  BlockId way[GRAPH_MAX_DEPTH + 1];
  u32 n = 0;
  for (BlockId i = b; i != home; i = g->blocks.data[i].parent) {
    if (!i || n > GRAPH_MAX_DEPTH) return 0;
    way[n++] = i;
  }
  if (n > 1 && !MECHANISM(&g->guards, captures_pass_levels)) return 0;
  while (v && n-- > 0) v = capture(g, way[n], v);
  return v;
}

bool graph_close(Graph *g, TermKind term, const ValueId *values, u32 count, u32 exit) {
  BlockId b = g->at;
  g->simple = false;
  for (u32 i = 0; i < count; i++) /* lifting may append operands of attached nodes: lift all before writing */
    if (!graph_lift(g, b, values[i])) return graph_refused(g);
  u32 first = g->operands.count;
  for (u32 i = 0; i < count; i++) {
    ValueId v = graph_lift(g, b, values[i]);
    if (!vec_push(g->alloc, &g->operands, v)) return graph_refused(g);
  }
  GraphBlock *x = &g->blocks.data[b];
  x->term = (u8)term;
  x->term_first = first;
  x->term_count = count;
  x->exit = exit;
  x->closed = ++g->closes;
  if (x->back) {
    g->at = x->back;
    g->before = x->back_before;
  }
  return true;
}

/* ---- nodes ---------------------------------------------------------------------------------------- */

OriginId graph_origin(Graph *g, Span span, u32 frame, u32 pc) {
  const GraphOrigin *o = &g->origins.data[g->origin];
  if (g->origin && o->span.file == span.file && o->span.start == span.start && o->span.len == span.len &&
      o->frame == frame && o->pc == pc)
    return g->origin;
  if (!vec_push(g->alloc, &g->origins, (GraphOrigin){span, frame, pc})) return graph_refused(g);
  return g->origin = g->origins.count - 1;
}

u32 graph_frame(Graph *g, struct Code *code, const char *name, OriginId call) {
  const char *kept = arena_copy(&g->arena, name, strlen(name));
  if (!kept || !vec_push(g->alloc, &g->frames, (GraphFrame){code, kept, call})) {
    g->failed = true;
    return UINT32_MAX;
  }
  return g->frames.count - 1;
}

u32 graph_host_add(Graph *g, HostKind kind, const char *name, RecipeId fn, RecipeId args) {
  const char *kept = arena_copy(&g->arena, name, strlen(name));
  if (!kept || !vec_push(g->alloc, &g->hosts, (GraphHost){.name = kept, .fn = fn, .kind = (u8)kind, .args = args}))
    return graph_refused(g);
  return g->hosts.count - 1;
}

static void link_node(Graph *g, NodeId n) {
  GraphNode *x = &g->nodes.data[n];
  GraphBlock *b = &g->blocks.data[g->at];
  x->block = g->at;
  x->next = g->before;
  x->prev = g->before ? g->nodes.data[g->before].prev : b->last;
  if (x->prev) g->nodes.data[x->prev].next = n;
  else b->first = n;
  if (x->next) g->nodes.data[x->next].prev = n;
  else b->last = n;
}

NodeId graph_node(Graph *g, NodeKind kind, u32 op, const ValueId *operands, u32 count, const GraphAttr *attrs,
                  u32 nattrs, const TypeId *results, u32 nresults) {
  GraphNode x = {.kind = (u8)kind, .op = (u16)op, .exit = NO_EXIT, .origin = g->origin};
  if (g->failed) return 0;
  g->simple = false;
  for (u32 i = 0; i < count; i++)
    if (!graph_lift(g, g->at, operands[i])) return graph_refused(g);
  x.operand_first = g->operands.count;
  x.operand_count = count;
  for (u32 i = 0; i < count; i++) {
    ValueId v = graph_lift(g, g->at, operands[i]);
    if (!vec_push(g->alloc, &g->operands, v)) return graph_refused(g);
  }
  x.attr_first = g->attrs.count;
  x.attr_count = nattrs;
  for (u32 i = 0; i < nattrs; i++)
    if (!vec_push(g->alloc, &g->attrs, attrs[i])) return graph_refused(g);
  NodeId id = g->nodes.count;
  x.result_first = nresults ? g->values.count : 0;
  x.result_count = nresults;
  for (u32 i = 0; i < nresults; i++)
    if (!new_value(g, (GraphValue){.origin = GV_result, .type = results[i], .def = id, .index = i})) return 0;
  if (!toil(g->toil, 1) || !vec_push(g->alloc, &g->nodes, x)) return graph_refused(g);
  link_node(g, id);
  return id;
}

/* ---- control nodes -------------------------------------------------------------------------------- */

/* Gives the blocks the same captures in the same order: those of the first, then what the second adds, … and
 * appends the outer values to `operands`, which has room for all. Returns how many, UINT32_MAX when refused. */
static u32 merge_captures(Graph *g, const BlockId *blocks, u32 n, ValueId **outers) {
  u32 total = 0, count = 0;
  for (u32 i = 0; i < n; i++) total += g->blocks.data[blocks[i]].captures.count;
  ValueId *all = *outers = mem_alloc(g->alloc, sizeof *all * (total + 1));
  if (!all) {
    g->failed = true;
    return UINT32_MAX;
  }
  /* first what all share, in the first block's order; then block by block */
  for (u32 pass = MECHANISM(&g->guards, captures_merged) ? 0 : 1; pass < 2; pass++)
    for (u32 i = 0; i < (pass ? n : 1); i++) {
      const GraphBlock *b = &g->blocks.data[blocks[i]];
      for (u32 k = 0; k < b->captures.count; k++) {
        ValueId o = b->captures.data[k].outer;
        bool have = false, everywhere = true;
        for (u32 j = 0; j < count; j++) have |= all[j] == o;
        for (u32 j = 1; j < n && !pass; j++) {
          const GraphBlock *c = &g->blocks.data[blocks[j]];
          bool in = false;
          for (u32 l = 0; l < c->captures.count; l++) in |= c->captures.data[l].outer == o;
          everywhere &= in;
        }
        if (!have && (pass || everywhere)) all[count++] = o;
      }
    }
  for (u32 i = 0; i < n; i++) {
    for (u32 k = 0; k < count; k++) {
      GraphBlock *b = &g->blocks.data[blocks[i]];
      u32 at = k;
      while (at < b->captures.count && b->captures.data[at].outer != all[k]) at++;
      ValueId inner;
      if (at == b->captures.count && !add_capture(g, blocks[i], all[k], &inner)) return UINT32_MAX;
      b = &g->blocks.data[blocks[i]];
      GraphCapture c = b->captures.data[at];
      memmove(b->captures.data + k + 1, b->captures.data + k, sizeof c * (at - k));
      b->captures.data[k] = c;
    }
  }
  return count;
}

/* The node over `lead` operands and the blocks' captures, with result types of its own list. */
static NodeId graph_control(Graph *g, NodeKind kind, const ValueId *lead, u32 nlead, const BlockId *blocks, u32 n,
                            const TypeId *results, u32 nresults) {
  ValueId *outers = NULL, *operands = NULL;
  NodeId id = 0;
  u32 count = 0, total = 0;
  for (u32 i = 0; i < n; i++)
    if (!blocks[i] || g->blocks.data[blocks[i]].node) return graph_refused(g);
  total = 0;
  for (u32 i = 0; i < n; i++) total += g->blocks.data[blocks[i]].captures.count;
  count = merge_captures(g, blocks, n, &outers);
  if (count == UINT32_MAX) goto done;
  operands = mem_alloc(g->alloc, sizeof *operands * (nlead + count + 1));
  if (!operands) {
    g->failed = true;
    goto done;
  }
  mem_copy(operands, lead, sizeof *operands * nlead);
  mem_copy(operands + nlead, outers, sizeof *operands * count);
  id = graph_node(g, kind, 0, operands, nlead + count, NULL, 0, results, nresults);
  for (u32 i = 0; i < n && id; i++) {
    g->nodes.data[id].sub[i] = blocks[i];
    g->blocks.data[blocks[i]].node = id;
  }
done:
  mem_free(g->alloc, outers, sizeof *outers * (total + 1));
  mem_free(g->alloc, operands, sizeof *operands * (nlead + (count == UINT32_MAX ? 0 : count) + 1));
  return id;
}

/* Types of the values a block ends with. */
static u32 term_types(Graph *g, BlockId b, u32 from, TypeId *out) {
  const GraphBlock *x = &g->blocks.data[b];
  for (u32 i = from; i < x->term_count; i++) out[i - from] = g->values.data[g->operands.data[x->term_first + i]].type;
  return x->term_count - from;
}

static TypeId *type_list(Graph *g, u32 n) {
  TypeId *t = arena_alloc(&g->arena, sizeof *t * (n + 1));
  if (!t) g->failed = true;
  return t;
}

NodeId graph_cond(Graph *g, ValueId p, BlockId then, BlockId els) {
  BlockId yields = g->blocks.data[then].term == TERM_yield ? then : g->blocks.data[els].term == TERM_yield ? els : 0;
  u32 n = yields ? g->blocks.data[yields].term_count : 0;
  TypeId *types = type_list(g, n);
  if (!types) return 0;
  if (yields) term_types(g, yields, 0, types);
  /* a number is weak only where both arms give a weak one */
  if (yields == then && g->blocks.data[els].term == TERM_yield)
    for (u32 i = 0; i < n && i < g->blocks.data[els].term_count; i++) {
      TypeId other = g->values.data[g->operands.data[g->blocks.data[els].term_first + i]].type;
      const ArrayType *a = type_of(g, types[i]), *b = type_of(g, other);
      if (a && b && !a->rank && !b->rank && a->dtype == b->dtype && a->weak && !b->weak) types[i] = other;
    }
  return graph_control(g, NODE_cond, &p, 1, (BlockId[]){then, els}, 2, types, n);
}

NodeId graph_while(Graph *g, const ValueId *init, u32 count, BlockId cond, BlockId body) {
  TypeId *types = type_list(g, count);
  if (!types || g->blocks.data[body].params.count != count || g->blocks.data[cond].params.count != count)
    return graph_refused(g);
  for (u32 i = 0; i < count; i++) types[i] = g->values.data[g->blocks.data[body].params.data[i]].type;
  NodeId n = graph_control(g, NODE_while, init, count, (BlockId[]){cond, body}, 2, types, count);
  if (n) g->nodes.data[n].carried = count;
  return n;
}

NodeId graph_scan(Graph *g, const ValueId *init, u32 count, const ValueId *xs, u32 nxs, Dim length, bool reverse,
                  bool index, BlockId body) {
  const GraphBlock *b = &g->blocks.data[body];
  if (b->params.count != count + nxs + index) return graph_refused(g);
  u32 stacked = b->term == TERM_next && b->term_count > count ? b->term_count - count : 0;
  TypeId *types = type_list(g, count + stacked);
  ValueId *lead = arena_alloc(&g->arena, sizeof *lead * (count + nxs + 1));
  if (!types || !lead) return graph_refused(g);
  for (u32 i = 0; i < count; i++) types[i] = g->values.data[b->params.data[i]].type;
  for (u32 i = 0; i < stacked; i++) {
    ArrayType t = *value_type(g, g->operands.data[g->blocks.data[body].term_first + count + i]);
    if (t.rank == TYPE_MAX_RANK) return graph_refused(g);
    memmove(t.dims + 1, t.dims, sizeof *t.dims * t.rank);
    t.dims[0] = length;
    t.rank++;
    t.weak = false;
    types[count + i] = graph_type(g, &t);
  }
  mem_copy(lead, init, sizeof *lead * count);
  mem_copy(lead + count, xs, sizeof *lead * nxs);
  NodeId n = graph_control(g, NODE_scan, lead, count + nxs, &body, 1, types, count + stacked);
  if (n) {
    GraphNode *x = &g->nodes.data[n];
    x->carried = count;
    x->xs = nxs;
    x->length = length;
    x->reverse = reverse;
    x->index = index;
  }
  return n;
}

NodeId graph_ascan(Graph *g, const ValueId *xs, u32 nxs, bool reverse, BlockId body) {
  TypeId *types = type_list(g, nxs);
  if (!types || g->blocks.data[body].params.count != 2 * nxs) return graph_refused(g);
  for (u32 i = 0; i < nxs; i++) types[i] = g->values.data[xs[i]].type;
  NodeId n = graph_control(g, NODE_ascan, xs, nxs, &body, 1, types, nxs);
  if (n) {
    g->nodes.data[n].xs = nxs;
    g->nodes.data[n].reverse = reverse;
  }
  return n;
}

static NodeId over_body(Graph *g, NodeKind kind, const ValueId *xs, u32 count, const BlockId *blocks, u32 n) {
  u32 results = g->blocks.data[blocks[0]].term_count;
  TypeId *types = type_list(g, results);
  if (!types || g->blocks.data[blocks[0]].params.count != count) return graph_refused(g);
  term_types(g, blocks[0], 0, types);
  NodeId id = graph_control(g, kind, xs, count, blocks, n, types, results);
  if (id) g->nodes.data[id].xs = count;
  return id;
}

NodeId graph_custom(Graph *g, const ValueId *xs, u32 count, BlockId f, BlockId fwd, BlockId bwd) {
  return over_body(g, NODE_custom, xs, count, (BlockId[]){f, fwd, bwd}, 3);
}

NodeId graph_checkpoint(Graph *g, const ValueId *xs, u32 count, BlockId body) {
  return over_body(g, NODE_checkpoint, xs, count, &body, 1);
}

NodeId graph_recur(Graph *g, const ValueId *xs, u32 count, BlockId body) {
  return over_body(g, NODE_recur, xs, count, &body, 1);
}

NodeId graph_call(Graph *g, BlockId shared, const ValueId *args, u32 count) {
  u32 results = g->blocks.data[shared].term_count;
  TypeId *types = type_list(g, results);
  if (!types || !g->blocks.data[shared].shared || g->blocks.data[shared].params.count != count) return graph_refused(g);
  term_types(g, shared, 0, types);
  NodeId id = graph_node(g, NODE_call, 0, args, count, NULL, 0, types, results);
  if (id) g->nodes.data[id].sub[0] = shared;
  return id;
}

NodeId graph_check(Graph *g, CheckKind kind, const ValueId *operands, u32 count, u32 exit) {
  NodeId n = graph_node(g, NODE_check, kind, operands, count, NULL, 0, NULL, 0);
  if (n) g->nodes.data[n].exit = exit;
  return n;
}

NodeId graph_host(Graph *g, u32 host, ValueId token, const ValueId *args, u32 count, const TypeId *results,
                  u32 nresults) {
  ValueId *operands = arena_alloc(&g->arena, sizeof *operands * (count + 1));
  TypeId *types = type_list(g, nresults + 1);
  if (!operands || !types) return graph_refused(g);
  operands[0] = token;
  mem_copy(operands + 1, args, sizeof *args * count);
  types[0] = TYPE_TOKEN;
  mem_copy(types + 1, results, sizeof *types * nresults);
  NodeId n = graph_node(g, NODE_host, 0, operands, count + 1, NULL, 0, types, nresults + 1);
  if (n) g->nodes.data[n].host = host;
  return n;
}
