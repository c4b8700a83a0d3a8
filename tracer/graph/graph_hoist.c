/* graph_hoist.c — what stays the same in a loop is computed before it.
 *
 * Of a lifted loop's own blocks (not of branches in them) the pure operations on arrays whose operands come from
 * outside move before the loop, with what leads to them, when the result is worth its memory: a reduction, a
 * product, an element by element result as large as an operand, but no view, no broadcast and no number alone. They
 * are total: whatever can fail is a check of its own, and stays. Values of a moved operation are captured; recipes
 * of exits may name them as they are. Stacks of constants leave the branches in a loop, too. An array that a loop
 * carries and hands on as it came, as where only an arm left to the interpreter stores to it, is captured. */
#include "lang/mechanisms.h"
#include "tracer/graph/graph.h"

#include <string.h>

typedef struct Hoist {
  Graph *g;
  NodeId loop;
  BlockId body;
  u8 *marks; /* by NodeId: 1 the same on every trip, 2 moves */
  bool varies;
} Hoist;

static bool is_loop(const GraphNode *x) { return x->kind == NODE_while || x->kind == NODE_scan; }

/* The value outside that a value of the body stands for; 0: it belongs to the loop. */
static ValueId outside(const Hoist *h, ValueId v) {
  const Graph *g = h->g;
  if (!value_block(g, v)) return v;
  if (value_block(g, v) != h->body || g->values.data[v].origin != GV_param) return 0;
  u32 first, count = node_captures(g, h->loop, &first);
  for (u32 k = 0; k < count; k++)
    if (g->blocks.data[h->body].captures.data[k].inner == v) return node_operand(g, h->loop, first + k);
  return 0;
}

static bool same_always(const Hoist *h, ValueId v) {
  NodeId n = value_node(h->g, v);
  if (n && h->g->nodes.data[n].block == h->body) return h->marks[n] != 0;
  return outside(h, v) != 0;
}

static void look_at_size(void *ctx, u32 v) {
  Hoist *h = ctx;
  const Graph *g = h->g;
  for (BlockId b = value_block(g, v); b; b = g->blocks.data[b].parent)
    if (g->blocks.data[b].node == h->loop) h->varies = true;
}

static bool could_move(Hoist *h, NodeId n) {
  const Graph *g = h->g;
  const GraphNode *x = &g->nodes.data[n];
  if (x->kind != NODE_op || x->result_count != 1 || !op_is_pure(x->op) || op_info(x->op)->check != CHECK_none ||
      node_is_effect(g, n))
    return false;
  for (u32 i = 0; i < x->operand_count; i++)
    if (!same_always(h, node_operand(g, n, i))) return false;
  h->varies = false;
  node_size_values(g, n, look_at_size, h);
  return !h->varies;
}

static bool worth_memory(const Graph *g, NodeId n) {
  const GraphNode *x = &g->nodes.data[n];
  const ArrayType *r = value_type(g, x->result_first);
  bool arrays = false;
  for (u32 i = 0; i < x->operand_count; i++) {
    const ArrayType *t = value_type(g, node_operand(g, n, i));
    if (!t->rank) continue;
    arrays = true;
    if (op_info(x->op)->family == FAM_elementwise && t->rank == r->rank &&
        memcmp(t->dims, r->dims, sizeof *t->dims * t->rank) == 0)
      return true;
  }
  u32 family = op_info(x->op)->family;
  if (x->op == OP_stack) return true; /* the items of a list */
  return arrays && family != FAM_elementwise && family != FAM_view && family != FAM_make && family != FAM_index;
}

static void put_before(Graph *g, NodeId n, NodeId at) {
  graph_unlink(g, n);
  GraphNode *x = &g->nodes.data[n], *y = &g->nodes.data[at];
  x->block = y->block;
  x->prev = y->prev;
  x->next = at;
  if (y->prev) g->nodes.data[y->prev].next = n;
  else g->blocks.data[y->block].first = n;
  y->prev = n;
}

/* Blocks inside the body name it through captures, which are operands here. */
static void rename_in_body(Graph *g, BlockId body, ValueId from, ValueId to) {
  const GraphBlock *b = &g->blocks.data[body];
  for (NodeId n = b->first; n && toil(g->toil, 1); n = g->nodes.data[n].next)
    for (u32 i = 0; i < g->nodes.data[n].operand_count; i++)
      if (node_operand(g, n, i) == from) graph_set_operand(g, n, i, to);
  for (u32 i = 0; i < b->term_count; i++)
    if (g->operands.data[b->term_first + i] == from) g->operands.data[b->term_first + i] = to;
}

static bool move(Hoist *h, NodeId n) {
  Graph *g = h->g;
  for (u32 i = 0; i < g->nodes.data[n].operand_count; i++)
    graph_set_operand(g, n, i, outside(h, node_operand(g, n, i)));
  put_before(g, n, h->loop);
  ValueId r = g->nodes.data[n].result_first, inner = graph_lift(g, h->body, r);
  if (inner) rename_in_body(g, h->body, r, inner);
  return inner != 0;
}

static bool hoist_block(Graph *g, NodeId loop, BlockId body, bool *changed) {
  Hoist h = {g, loop, body, mem_alloc_zero(g->alloc, g->nodes.count), false};
  u32 count = g->nodes.count;
  bool ok = h.marks != NULL, any = false;
  for (NodeId n = ok ? g->blocks.data[body].first : 0; n && (ok = toil(g->toil, 1 + g->nodes.data[n].operand_count));
       n = g->nodes.data[n].next)
    if (could_move(&h, n)) {
      h.marks[n] = 1;
      any |= worth_memory(g, n);
    }
  if (any && ok) {
    for (NodeId n = g->blocks.data[body].last; n; n = g->nodes.data[n].prev) { /* users stand behind what they use */
      if (!h.marks[n] || (h.marks[n] == 1 && !worth_memory(g, n))) continue;
      h.marks[n] = 2;
      for (u32 i = 0; i < g->nodes.data[n].operand_count; i++) {
        NodeId d = value_node(g, node_operand(g, n, i));
        if (d && g->nodes.data[d].block == body) h.marks[d] = 2;
      }
    }
    for (NodeId n = g->blocks.data[body].first, next; n && ok; n = next) {
      next = g->nodes.data[n].next;
      if (h.marks[n] == 2) ok = move(&h, n);
    }
    *changed = true;
  }
  if (h.marks) mem_free(g->alloc, h.marks, count);
  return ok;
}

/* ---- arrays that a loop carries and never changes ----------------------------------------------------------- */

/* What `v`, named in block b, is in block `home` around it; 0: something that is made on the way. */
static ValueId in_block(const Graph *g, ValueId v, BlockId b, BlockId home) {
  for (; b != home; b = g->blocks.data[b].parent) {
    u32 first, count = node_captures(g, g->blocks.data[b].node, &first), k = 0;
    if (!value_block(g, v)) return v;
    while (k < count && g->blocks.data[b].captures.data[k].inner != v) k++;
    if (k == count) return 0;
    v = node_operand(g, g->blocks.data[b].node, first + k);
  }
  return v;
}

/* Number k of what every trip hands on: is it `same`, the body's parameter? Or, with `put`, made that. Depth:
 * GRAPH_MAX_DEPTH. */
static bool hands_on(Graph *g, BlockId b, BlockId body, u32 k, ValueId same, ValueId put) {
  const GraphBlock x = g->blocks.data[b];
  if (x.term == TERM_next || x.term == TERM_break) {
    if (put) g->operands.data[x.term_first + k] = put;
    else if (in_block(g, g->operands.data[x.term_first + k], b, body) != same) return false;
  }
  for (NodeId n = x.first; n && toil(g->toil, 1); n = g->nodes.data[n].next)
    for (u32 s = 0; g->nodes.data[n].kind == NODE_cond && s < 2; s++)
      if (!hands_on(g, g->nodes.data[n].sub[s], body, k, same, put)) return false;
  return true;
}

/* Carried number k is what the loop began with: it is captured, as all that is read in the loop, and need not be
 * copied where somebody else holds it. In its place goes a number that nobody reads, as results stand together. */
static bool carry_no_more(Graph *g, NodeId n, u32 k) {
  const GraphNode x = g->nodes.data[n];
  BlockId body = x.sub[node_subs(g, n) - 1];
  ValueId init = node_operand(g, n, k), zero = graph_const(g, value_i64(0));
  TypeId number = graph_scalar_type(g, DT_i64, false);
  if (!zero || !number) return false;
  (void)hands_on(g, body, body, k, 0, zero);
  for (u32 s = 0; s < node_subs(g, n); s++) {
    ValueId param = g->blocks.data[x.sub[s]].params.data[k], inner = graph_lift(g, x.sub[s], init);
    if (!inner) return false;
    rename_in_body(g, x.sub[s], param, inner);
    for (u32 r = 1; r < g->exits.recipes.count; r++) {
      Recipe *recipe = &g->exits.recipes.data[r];
      if ((recipe->kind == RCP_value || recipe->kind == RCP_items) && recipe->a == param) recipe->a = init;
    }
    g->values.data[param].type = number;
  }
  graph_set_operand(g, n, k, zero);
  graph_replace_one(g, x.result_first + k, init);
  g->values.data[x.result_first + k].type = number;
  return true;
}

static bool keep_unchanged(Graph *g, NodeId n, bool *changed) {
  const GraphNode x = g->nodes.data[n];
  BlockId body = x.sub[node_subs(g, n) - 1];
  for (u32 k = 0; k < x.carried; k++) {
    if (!toil(g->toil, 1 + g->sizes.syms.count / 8)) return false;
    ValueId init = node_operand(g, n, k), param = g->blocks.data[body].params.data[k];
    TypeId type = g->values.data[param].type;
    bool sized = graph_carries_size(g, x.result_first + k);
    for (u32 s = 0; s < node_subs(g, n); s++) sized |= graph_carries_size(g, g->blocks.data[x.sub[s]].params.data[k]);
    if (value_is_token(g, param) || !value_type(g, param)->rank || sized || g->values.data[init].type != type ||
        g->values.data[x.result_first + k].type != type)
      continue;
    if (!hands_on(g, body, body, k, param, 0)) continue;
    if (!carry_no_more(g, n, k)) return false;
    *changed = true;
  }
  return true;
}

/* ---- known items in the arms of branches --------------------------------------------------------------------- */

static bool in_loop(const Graph *g, BlockId b) {
  for (; b > 1; b = g->blocks.data[b].parent)
    if (is_loop(&g->nodes.data[g->blocks.data[b].node])) return true;
  return false;
}

/* A stack of constants moves in front of the branch, from where it leaves the loop. */
static bool known_before(Graph *g, NodeId cond, BlockId arm, bool *changed) {
  bool ok = true;
  for (NodeId n = g->blocks.data[arm].first, next; n && ok; n = next) {
    const GraphNode x = g->nodes.data[n];
    bool known = x.kind == NODE_op && x.op == OP_stack;
    next = x.next;
    for (u32 i = 0; i < x.operand_count && known; i++) known = g->values.data[node_operand(g, n, i)].origin == GV_const;
    if (!toil(g->toil, 1 + (known ? x.operand_count : 0))) return false;
    if (!known) continue;
    put_before(g, n, cond);
    ValueId inner = graph_lift(g, arm, x.result_first);
    ok = inner != 0;
    if (ok) rename_in_body(g, arm, x.result_first, inner);
    *changed = true;
  }
  return ok;
}

bool graph_hoist(Graph *g, const u32 *blocks, u32 count, bool *changed) {
  bool ok = true;
  for (u32 i = count; i-- > 0;)
    for (NodeId n = in_loop(g, blocks[i]) ? g->blocks.data[blocks[i]].first : 0; n && ok; n = g->nodes.data[n].next)
      for (u32 s = 0; s < 2 && g->nodes.data[n].kind == NODE_cond && ok; s++)
        ok = known_before(g, n, g->nodes.data[n].sub[s], changed);
  for (u32 i = count; i-- > 0;) /* inner loops first */
    for (NodeId n = g->blocks.data[blocks[i]].first; n && ok; n = g->nodes.data[n].next) {
      GraphNode x = g->nodes.data[n];
      if (!is_loop(&x)) continue;
      if (MECHANISM(&g->guards, unchanged_arrays)) ok = keep_unchanged(g, n, changed);
      for (u32 s = 0; s < node_subs(g, n) && ok; s++) ok = hoist_block(g, n, x.sub[s], changed);
    }
  return ok;
}
