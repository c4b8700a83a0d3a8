/* flow.c — see flow.h. */
#include "hop/flow.h"
#include "tracer/record/record_run.h"

#include <string.h>

static bool is_regular(const Graph *g, NodeId n, u32 sub) {
  const GraphNode *x = graph_node_at(g, n);
  bool body = (x->kind == NODE_scan && sub == 0) || (x->kind == NODE_while && sub == 1);
  return g->blocks.data[x->sub[sub]].term == (body ? TERM_next : TERM_yield);
}

bool flow_leaves(const Graph *g, NodeId n) {
  if (graph_node_at(g, n)->kind == NODE_call) return false;
  for (u32 i = 0; i < node_subs(g, n); i++) {
    if (!is_regular(g, n, i)) return true;
    for (GraphWalk w = walk_begin(g, graph_node_at(g, n)->sub[i]); walk_next(&w);)
      for (u32 k = 0; k < node_subs(g, w.node); k++)
        if (graph_node_at(g, w.node)->kind != NODE_call && !is_regular(g, w.node, k)) return true;
  }
  return false;
}

/* Depth is that of blocks: bounded by GRAPH_MAX_DEPTH. */
bool flow_arms_leave(const Graph *g, NodeId cond) {
  for (u32 k = 0; k < 2; k++) {
    BlockId arm = graph_node_at(g, cond)->sub[k];
    if (!is_regular(g, cond, k)) return true;
    for (NodeId n = block_first(g, arm); n; n = node_next(g, n))
      if (graph_node_at(g, n)->kind == NODE_cond && flow_arms_leave(g, n)) return true;
  }
  return false;
}

bool flow_body_leaves(const Graph *g, NodeId loop) {
  const GraphNode *x = graph_node_at(g, loop);
  u32 sub = x->kind == NODE_scan ? 0 : 1;
  bool leaves = !is_regular(g, loop, sub);
  for (NodeId n = block_first(g, x->sub[sub]); n && !leaves; n = node_next(g, n))
    leaves = graph_node_at(g, n)->kind == NODE_cond && flow_arms_leave(g, n);
  return leaves;
}

/* Every way on with the loop gives `v` for its carried value i. */
static bool always_gives(const Graph *g, BlockId b, u32 i, ValueId v) {
  if (g->blocks.data[b].term == TERM_next && block_result(g, b, i) != v) return false;
  for (NodeId n = block_first(g, b); n; n = node_next(g, n)) {
    const GraphNode *x = graph_node_at(g, n);
    if (x->kind != NODE_cond) continue;
    u32 first, ncaps = node_captures(g, n, &first);
    for (u32 k = 0; k < 2; k++) {
      ValueId inner = 0;
      for (u32 c = 0; c < ncaps && !inner; c++)
        if (node_operand(g, n, first + c) == v) inner = g->blocks.data[x->sub[k]].captures.data[c].inner;
      if (!always_gives(g, x->sub[k], i, inner ? inner : v)) return false;
    }
  }
  return true;
}

bool flow_counts(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  const GraphBlock *c = &g->blocks.data[x->sub[0]], *b = &g->blocks.data[x->sub[1]];
  NodeId test = value_node(g, block_result(g, x->sub[0], 0));
  if (!test || c->first != test || graph_node_at(g, test)->kind != NODE_op || graph_node_at(g, test)->op != OP_less)
    return false;
  u32 i = 0;
  while (i < x->carried && c->params.data[i] != node_operand(g, test, 0)) i++;
  for (u32 k = 0; k < x->carried; k++)
    if (c->params.data[k] == node_operand(g, test, 1)) return false;
  if (i == x->carried) return false;
  for (NodeId k = b->first; k; k = node_next(g, k)) { /* the number of the next trip */
    const GraphNode *step = graph_node_at(g, k);
    Value by;
    if (step->kind == NODE_op && step->op == OP_add && node_operand(g, k, 0) == b->params.data[i] &&
        value_const(g, node_operand(g, k, 1), &by) && dtype_kind(by.dtype) == DK_INT && by.i > 0 &&
        always_gives(g, x->sub[1], i, node_result(g, k, 0)))
      return true;
  }
  return false;
}

/* ---- loops without next and break in arms ---------------------------------------------------- */

/* The loop while it is made anew. */
typedef struct Regular {
  Recorder *r;
  NodeId loop;
  u32 carried;
  bool left;       /* by break in some arm: a bool is carried behind the rest */
  ValueVec params; /* of the body that is made: what a trip begins with */
  ValueMap map;    /* values of the loop as it was: theirs in the one that is made */
} Regular;

/* What follows an arm: the rest of the block around its branch, then what follows that. */
typedef struct Behind {
  NodeId branch; /* its results are what the arm yields */
  BlockId block;
  const struct Behind *behind;
} Behind;

/* Block b from node `from` on (0: its end), and what follows it, at the cursor. `goal` 0: *out is what the trip
 * gives. Else it is the branch, both arms of which lead on, that one of these ways is an arm of: *out is whether it
 * goes on, the branch's results, and what the trip gives. */
static Outcome flow_way(Regular *w, NodeId goal, BlockId b, NodeId from, const Behind *behind, ValueVec *out);

static bool leads_on(const Graph *g, NodeId cond, u32 k) {
  BlockId arm = graph_node_at(g, cond)->sub[k];
  if (g->blocks.data[arm].term != TERM_yield) return false;
  for (NodeId n = block_first(g, arm); n; n = node_next(g, n))
    if (graph_node_at(g, n)->kind == NODE_cond && flow_arms_leave(g, n) && !leads_on(g, n, 0) && !leads_on(g, n, 1))
      return false;
  return true;
}

static bool flow_push(Regular *w, ValueVec *to, ValueId v) { return v && vec_push(&w->r->vm->alloc, to, v); }

/* As strong or weak as that type. */
static ValueId fitted(Graph *g, ValueId v, TypeId type) {
  const ArrayType *want = type_of(g, type), *have = v ? value_type(g, v) : NULL;
  if (!have || have->weak == want->weak) return v;
  return want->weak ? graph_weaken(g, v) : graph_convert(g, v, want->dtype);
}

typedef struct Seen {
  const Graph *g;
  bool all;
} Seen;

static void see_symbol(void *ctx, u32 sym) {
  Seen *s = ctx;
  const SizeSym *x = &s->g->sizes.syms.data[sym];
  if (!x->unbacked) return;
  bool seen = false;
  for (BlockId b = s->g->at; b && !seen; b = s->g->blocks.data[b].parent)
    seen = x->source && b == value_block(s->g, x->source);
  s->all &= seen;
}

/* Sizes that come from outside stay, those that only the other ways have are 0. */
ValueId flow_nothing(Graph *g, const ArrayType *like) {
  ArrayType t = *like;
  for (u32 d = 0; d < t.rank; d++) {
    Seen seen = {g, true};
    size_symbols(&g->sizes, t.dims[d], see_symbol, &seen);
    if (!seen.all) t.dims[d] = 0;
  }
  if (!t.rank) return graph_const(g, (Value){.kind = V_NUM, .dtype = t.dtype, .flags = t.weak ? VF_WEAK : 0});
  return graph_full_as(g, &t, 0);
}

/* For a result of a node of the loop as it was. */
static ValueId nothing_for(Regular *w, ValueId was, u32 first_dim) {
  Graph *g = w->r->g;
  ArrayType t = *type_of(g, map_type(g, &w->map, g->values.data[was].type));
  t.rank = (u8)(t.rank - first_dim);
  memmove(t.dims, t.dims + first_dim, sizeof t.dims[0] * t.rank);
  for (u32 d = 0; d < t.rank && graph_carries_size(g, was); d++)
    if (size_is_unbacked(&g->sizes, t.dims[d])) t.dims[d] = 0;
  return flow_nothing(g, &t);
}

/* Where the trip is over before `goal`. */
static bool push_over(Regular *w, NodeId goal, ValueVec *out) {
  Graph *g = w->r->g;
  if (!goal) return true;
  bool ok = flow_push(w, out, graph_const(g, value_bool(false)));
  for (u32 i = 0; i < graph_node_at(g, goal)->result_count && ok; i++)
    ok = flow_push(w, out, nothing_for(w, node_result(g, goal, i), 0));
  return ok;
}

/* What the trip gives where that does not count. */
static bool push_nothing(Regular *w, ValueVec *out) {
  Graph *g = w->r->g;
  bool ok = true;
  for (u32 i = 0; i < w->carried && ok; i++) ok = flow_push(w, out, w->params.data[i]);
  for (u32 i = w->carried; i < graph_node_at(g, w->loop)->result_count && ok; i++)
    ok = flow_push(w, out, nothing_for(w, node_result(g, w->loop, i), 1));
  return ok && (!w->left || flow_push(w, out, graph_const(g, value_bool(false))));
}

/* The trip ends by the next or break of b. */
static bool end_trip(Regular *w, BlockId b, ValueVec *out) {
  Graph *g = w->r->g;
  bool broke = g->blocks.data[b].term == TERM_break, ok = true;
  for (u32 i = 0; i < g->blocks.data[b].term_count && ok; i++) {
    ValueId v = map_get(&w->map, block_result(g, b, i));
    ok = flow_push(w, out, i < w->carried ? fitted(g, v, g->values.data[w->params.data[i]].type) : v);
  }
  return ok && (!w->left || flow_push(w, out, graph_const(g, value_bool(broke))));
}

/* The way goes on behind `goal`, one of whose arms is b. */
static bool go_on(Regular *w, NodeId goal, BlockId b, ValueVec *out) {
  Graph *g = w->r->g;
  bool ok = flow_push(w, out, graph_const(g, value_bool(true)));
  for (u32 i = 0; i < g->blocks.data[b].term_count && ok; i++)
    ok = flow_push(w, out,
                   fitted(g, map_get(&w->map, block_result(g, b, i)), g->values.data[node_result(g, goal, i)].type));
  return ok && push_nothing(w, out);
}

/* Two arms that are open, with what they give: a cond, and what it gives. What is the same on both ways stands for
 * itself. */
static Outcome meet(Regular *w, ValueId p, const BlockId arms[2], const ValueVec values[2], ValueVec *out) {
  Graph *g = w->r->g;
  BlockId parent = g->at;
  ValueVec yields[2] = {{0}, {0}};
  bool ok = values[0].count == values[1].count;
  for (u32 i = 0; i < values[0].count && ok; i++)
    for (u32 k = 0; k < 2 && ok && values[0].data[i] != values[1].data[i]; k++)
      ok = flow_push(w, &yields[k], values[k].data[i]);
  for (u32 k = 0; k < 2 && ok; k++) {
    graph_at_end(g, arms[k]);
    ok = graph_close(g, TERM_yield, yields[k].data, yields[k].count, 0);
    graph_at_end(g, parent);
  }
  NodeId node = ok ? graph_cond(g, p, arms[0], arms[1]) : 0;
  for (u32 i = 0, at = 0; i < values[0].count && node && ok; i++)
    ok = flow_push(w, out, values[0].data[i] == values[1].data[i] ? values[0].data[i] : node_result(g, node, at++));
  vec_free(&w->r->vm->alloc, &yields[0]);
  vec_free(&w->r->vm->alloc, &yields[1]);
  return node && ok ? OUT_GO : OUT_FAIL;
}

static Outcome open_block(Regular *w, BlockId *made) {
  *made = graph_open(w->r->g);
  if (*made) return OUT_GO;
  return w->r->g->failed ? OUT_FAIL : rec_stuck(w->r, REASON_graph_size, "branches nested too deep");
}

/* Both arms of a branch, as ways to `goal`. */
static Outcome flow_arms(Regular *w, NodeId goal, NodeId branch, const Behind *behind, ValueVec *out) {
  Graph *g = w->r->g;
  BlockId parent = g->at, arms[2] = {0, 0};
  ValueVec values[2] = {{0}, {0}};
  ValueId p = map_get(&w->map, node_operand(g, branch, 0));
  Outcome o = OUT_GO;
  for (u32 k = 0; k < 2 && o == OUT_GO; k++) {
    BlockId arm = graph_node_at(g, branch)->sub[k];
    o = open_block(w, &arms[k]);
    if (o == OUT_GO && !map_captures(w->r->g, &w->map, branch, arm)) o = OUT_FAIL;
    if (o == OUT_GO) o = flow_way(w, goal, arm, block_first(g, arm), behind, &values[k]);
    graph_at_end(g, parent);
  }
  if (o == OUT_GO) o = meet(w, p, arms, values, out);
  vec_free(&w->r->vm->alloc, &values[0]);
  vec_free(&w->r->vm->alloc, &values[1]);
  return o;
}

/* Both arms lead on: what follows the branch, in block b, is the arm of a second one. */
static Outcome flow_both(Regular *w, NodeId goal, NodeId branch, BlockId b, const Behind *behind, ValueVec *out) {
  Graph *g = w->r->g;
  BlockId parent = g->at, arms[2] = {0, 0};
  u32 nresults = graph_node_at(g, branch)->result_count;
  ValueVec first = {0}, values[2] = {{0}, {0}};
  Outcome o = flow_arms(w, branch, branch, NULL, &first);
  for (u32 i = 0; i < nresults && o == OUT_GO; i++)
    if (!map_set(&w->map, node_result(g, branch, i), first.data[1 + i])) o = OUT_FAIL;
  if (o == OUT_GO) o = open_block(w, &arms[0]);
  if (o == OUT_GO) o = flow_way(w, goal, b, node_next(g, branch), behind, &values[0]);
  graph_at_end(g, parent);
  if (o == OUT_GO) o = open_block(w, &arms[1]);
  if (o == OUT_GO && !push_over(w, goal, &values[1])) o = OUT_FAIL;
  for (u32 i = 1 + nresults; i < first.count && o == OUT_GO; i++)
    if (!flow_push(w, &values[1], first.data[i])) o = OUT_FAIL;
  graph_at_end(g, parent);
  if (o == OUT_GO) o = meet(w, first.data[0], arms, values, out);
  vec_free(&w->r->vm->alloc, &first);
  vec_free(&w->r->vm->alloc, &values[0]);
  vec_free(&w->r->vm->alloc, &values[1]);
  return o;
}

/* Its depth is that of the blocks it makes. */
static Outcome flow_way(Regular *w, NodeId goal, BlockId b, NodeId from, const Behind *behind, ValueVec *out) {
  Graph *g = w->r->g;
  for (NodeId n = from; n; n = node_next(g, n)) {
    if (graph_node_at(g, n)->kind == NODE_cond && flow_arms_leave(g, n)) {
      const Behind rest = {n, b, behind};
      return leads_on(g, n, 0) && leads_on(g, n, 1) ? flow_both(w, goal, n, b, behind, out)
                                                    : flow_arms(w, goal, n, &rest, out);
    }
    if (!graph_clone_node(g, n, &w->map)) return OUT_FAIL;
  }
  bool ok = true;
  switch (g->blocks.data[b].term) {
    case TERM_exit: return push_over(w, goal, out) && push_nothing(w, out) ? OUT_GO : OUT_FAIL;
    case TERM_next:
    case TERM_break: return push_over(w, goal, out) && end_trip(w, b, out) ? OUT_GO : OUT_FAIL;
    default: break;
  }
  if (!behind) return go_on(w, goal, b, out) ? OUT_GO : OUT_FAIL;
  for (u32 i = 0; i < g->blocks.data[b].term_count && ok; i++)
    ok = map_set(&w->map, node_result(g, behind->branch, i), map_get(&w->map, block_result(g, b, i)));
  return ok ? flow_way(w, goal, behind->block, node_next(g, behind->branch), behind->behind, out) : OUT_FAIL;
}

/* Can the loop be left by break in block b? */
static bool can_break(const Graph *g, BlockId b) {
  if (g->blocks.data[b].term == TERM_break) return true;
  for (NodeId n = block_first(g, b); n; n = node_next(g, n))
    for (u32 k = 0; k < 2 && graph_node_at(g, n)->kind == NODE_cond; k++)
      if (can_break(g, graph_node_at(g, n)->sub[k])) return true;
  return false;
}

static bool flow_holds_check(const Graph *g, BlockId b) {
  for (GraphWalk w = walk_begin(g, b); walk_next(&w);)
    if (graph_node_at(g, w.node)->kind == NODE_check) return true;
  return false;
}

/* The cursor's block begins as `old` does; *gone: whether the loop was left. */
static bool begin_block(Regular *w, BlockId old, ValueVec *params, ValueId *gone) {
  Graph *g = w->r->g;
  bool ok = true;
  for (u32 i = 0; i < g->blocks.data[old].params.count && ok; i++) {
    ValueId was = g->blocks.data[old].params.data[i], p = graph_param(g, g->at, g->values.data[was].type);
    ok = p && map_set(&w->map, was, p) && (!params || flow_push(w, params, p));
  }
  *gone = ok && w->left ? graph_param(g, g->at, graph_scalar_type(g, DT_bool, false)) : 0;
  return ok && (*gone || !w->left) && map_captures(w->r->g, &w->map, w->loop, old);
}

/* Not asked once the loop was left. */
static Outcome flow_test(Regular *w, BlockId old, ValueId gone, ValueId *more) {
  Graph *g = w->r->g;
  BlockId parent = g->at, arms[2] = {0, 0};
  ValueVec values[2] = {{0}, {0}}, out = {0};
  *more = 0;
  if (!gone || !flow_holds_check(g, old)) {
    if (!graph_inline(g, old, &w->map)) return OUT_FAIL;
    *more = map_get(&w->map, block_result(g, old, 0));
    if (gone) *more = graph_op2(g, OP_logical_and, graph_op1(g, OP_logical_not, gone), *more);
    return *more ? OUT_GO : OUT_FAIL;
  }
  Outcome o = open_block(w, &arms[0]);
  graph_at_end(g, parent);
  if (o == OUT_GO) o = open_block(w, &arms[1]);
  bool ok = o == OUT_GO && flow_push(w, &values[0], graph_const(g, value_bool(false))) &&
            graph_inline(g, old, &w->map) && flow_push(w, &values[1], map_get(&w->map, block_result(g, old, 0)));
  graph_at_end(g, parent);
  if (o == OUT_GO) o = ok ? meet(w, gone, arms, values, &out) : OUT_FAIL;
  if (o == OUT_GO) *more = out.data[0];
  vec_free(&w->r->vm->alloc, &values[0]);
  vec_free(&w->r->vm->alloc, &values[1]);
  vec_free(&w->r->vm->alloc, &out);
  return o;
}

static Outcome make_test(Regular *w, BlockId old, BlockId *made) {
  ValueId gone, more = 0;
  Outcome o = open_block(w, made);
  if (o == OUT_GO && !begin_block(w, old, NULL, &gone)) o = OUT_FAIL;
  if (o == OUT_GO) o = flow_test(w, old, gone, &more);
  if (o == OUT_GO && !graph_close(w->r->g, TERM_yield, &more, 1, 0)) o = OUT_FAIL;
  return o;
}

static Outcome flow_make(Regular *w, ValueVec *init, ValueVec *xs, ValueVec *next, NodeId *made) {
  Graph *g = w->r->g;
  const GraphNode x = *graph_node_at(g, w->loop);
  bool scan = x.kind == NODE_scan, ok = true;
  BlockId old = x.sub[scan ? 0 : 1], test = 0, body = 0;
  ValueId gone;
  w->left = can_break(g, old);
  if (scan && w->left) return rec_stuck(w->r, REASON_no_rule, "a scan that is left early");
  for (u32 i = 0; i < x.carried && ok; i++) ok = flow_push(w, init, node_operand(g, w->loop, i));
  for (u32 i = 0; scan && i < x.xs && ok; i++) ok = flow_push(w, xs, node_operand(g, w->loop, x.carried + i));
  ok = ok && (!w->left || flow_push(w, init, graph_const(g, value_bool(false))));
  Outcome o = !ok ? OUT_FAIL : scan ? OUT_GO : make_test(w, x.sub[0], &test);
  if (o == OUT_GO) o = open_block(w, &body);
  if (o == OUT_GO && !begin_block(w, old, &w->params, &gone)) o = OUT_FAIL;
  if (o == OUT_GO) o = flow_way(w, 0, old, block_first(g, old), NULL, next);
  if (o == OUT_GO && !graph_close(g, TERM_next, next->data, next->count, 0)) o = OUT_FAIL;
  if (o != OUT_GO) return o;
  *made = scan ? graph_scan(g, init->data, init->count, xs->data, xs->count, x.length, x.reverse, x.index, body)
               : graph_while(g, init->data, init->count, test, body);
  return *made ? OUT_GO : OUT_FAIL;
}

Outcome flow_regular(Recorder *r, NodeId n, NodeId *made) {
  Regular w = {.r = r, .loop = n, .carried = graph_node_at(r->g, n)->carried};
  BlockId parent = r->g->at;
  ValueVec init = {0}, xs = {0}, next = {0};
  map_init(&w.map, &r->vm->alloc);
  Outcome o = flow_make(&w, &init, &xs, &next, made);
  graph_at_end(r->g, parent);
  map_free(&w.map);
  vec_free(&r->vm->alloc, &w.params);
  vec_free(&r->vm->alloc, &init);
  vec_free(&r->vm->alloc, &xs);
  vec_free(&r->vm->alloc, &next);
  return o;
}
