/* native_range.c — counters of loops: which indices need no check, or none for negative ones (see native.h). */
#include "jit/native/native.h"

/* Is the value defined around the construct? Walks out from its block: nesting is bounded. */
bool native_outside(Native *n, ValueId v) {
  u8 origin = n->g->values.data[v].origin;
  if (origin == GV_const || origin == GV_size) return true;
  BlockId b = value_block(n->g, v);
  NodeId holder = n->node;
  if (b == n->home) return true;
  /* all of the region: its inputs stand outside */
  if (!holder) return n->g->values.data[v].origin == GV_param && b == 1;
  while (b && b != n->home) {
    NodeId node = n->g->blocks.data[b].node;
    if (node == holder) return false;
    b = node ? graph_node_at(n->g, node)->block : 0;
  }
  return true;
}

static ValueId range_origin_of(Native *n, ValueId v) {
  ValueId s = native_value(n, v)->same_as;
  return s ? s : v;
}

/* Certainly not negative. */
static bool not_negative(Native *n, ValueId v) {
  v = range_origin_of(n, v);
  const GraphValue *gv = &n->g->values.data[v];
  if (value_type(n->g, v)->rank || dtype_kind(value_type(n->g, v)->dtype) != DK_INT) return false;
  if (gv->origin == GV_const) return (i64)gv->bits >= 0;
  if (gv->origin == GV_size) return size_range(&n->g->sizes, gv->dim).lo >= 0;
  return native_value(n, v)->proved;
}

typedef struct Steps {
  Native *n;
  BlockId body;
  u32 at;
  bool all, likely; /* every `next` adds something that is positive for certain, or not negative as far as one sees */
} Steps;

static bool same_param(Native *n, ValueId v, BlockId body, u32 at) {
  ValueId p = n->g->blocks.data[body].params.data[at];
  /* names of the parameter in inner blocks are not known yet: follow captures outwards */
  for (u32 i = 0; i < GRAPH_MAX_DEPTH && v != p; i++) {
    const GraphValue *gv = &n->g->values.data[v];
    if (gv->origin != GV_param || gv->def == body) return false;
    const GraphBlock *b = &n->g->blocks.data[gv->def];
    if (!b->node) return false;
    u32 first, count = node_captures(n->g, b->node, &first), k = 0;
    while (k < b->captures.count && b->captures.data[k].inner != v) k++;
    if (k >= count || k >= b->captures.count) return false;
    v = node_operand(n->g, b->node, first + k);
  }
  return v == p;
}

static ValueId outermost_name(Native *n, ValueId v) {
  for (u32 i = 0; i < GRAPH_MAX_DEPTH; i++) {
    const GraphValue *gv = &n->g->values.data[v];
    if (gv->origin != GV_param) break;
    const GraphBlock *b = &n->g->blocks.data[gv->def];
    if (!b->node || gv->def == 1) break;
    u32 first, count = node_captures(n->g, b->node, &first), k = 0;
    while (k < b->captures.count && b->captures.data[k].inner != v) k++;
    if (k >= count || k >= b->captures.count) break;
    v = node_operand(n->g, b->node, first + k);
  }
  return v;
}

static void look_at_next(Steps *s, BlockId b) {
  Native *n = s->n;
  Value k;
  ValueId v = outermost_name(n, block_result(n->g, b, s->at));
  if (same_param(n, v, s->body, s->at)) return;
  NodeId d = value_node(n->g, v);
  const GraphNode *x = d ? graph_node_at(n->g, d) : NULL;
  s->all = s->likely = x && x->kind == NODE_op && x->op == OP_add && s->likely;
  if (!s->all) return;
  ValueId a = node_operand(n->g, d, 0), c = node_operand(n->g, d, 1);
  if (!same_param(n, a, s->body, s->at)) {
    ValueId t = a;
    a = c;
    c = t;
  }
  c = outermost_name(n, c);
  bool step = same_param(n, a, s->body, s->at);
  s->all = step && value_const(n->g, c, &k) && k.i >= 0 && k.i < (i64)1 << 32;
  s->likely = step && (s->all || not_negative(n, c) || native_plain(n, c));
}

/* The blocks whose `next` goes on with this loop. */
static void each_next(Steps *s, BlockId b) {
  Native *n = s->n;
  if (n->g->blocks.data[b].term == TERM_next) look_at_next(s, b);
  for (NodeId k = block_first(n->g, b); k && s->likely; k = node_next(n->g, k)) {
    const GraphNode *x = graph_node_at(n->g, k);
    if (x->kind != NODE_cond) continue;
    each_next(s, x->sub[0]); /* nesting is bounded by GRAPH_MAX_DEPTH */
    each_next(s, x->sub[1]);
  }
}

/* ---- places that arms move ------------------------------------------------------------------------------------ */

/* By how much a trip moves a number that the loop carries. */
enum { STAYS = 1, UP_ONE = 2, UP = 4, DOWN = 8, ANYHOW = 16 };

static u32 moves_to(Native *n, BlockId body, u32 at, ValueId v, u32 depth) {
  const Graph *g = n->g;
  Value k;
  v = outermost_name(n, v);
  if (same_param(n, v, body, at)) return STAYS;
  NodeId d = value_node(g, v);
  const GraphNode *x = d ? graph_node_at(g, d) : NULL;
  if (!x || depth > GRAPH_MAX_DEPTH) return ANYHOW;
  if (x->kind == NODE_cond) { /* either arm */
    u32 moves = 0;
    for (u32 i = 0; i < 2; i++)
      if (g->blocks.data[x->sub[i]].term == TERM_yield)
        moves |= moves_to(n, body, at, block_result(g, x->sub[i], v - x->result_first), depth + 1);
    return moves;
  }
  if (x->kind != NODE_op || (x->op != OP_add && x->op != OP_subtract)) return ANYHOW;
  ValueId a = outermost_name(n, node_operand(g, d, 0)), b = outermost_name(n, node_operand(g, d, 1));
  if (x->op == OP_add && !same_param(n, a, body, at)) {
    ValueId t = a;
    a = b;
    b = t;
  }
  if (!same_param(n, a, body, at) || !value_const(g, b, &k) || k.dtype != DT_i64) return ANYHOW;
  const i64 by = x->op == OP_add ? k.i : k.i == INT64_MIN ? 0 : -k.i, most = (i64)1 << 32;
  if (by >= most || by <= -most || (x->op == OP_subtract && k.i == INT64_MIN)) return ANYHOW;
  return by == 0 ? STAYS : by == 1 ? UP_ONE : by > 0 ? UP : DOWN;
}

/* By all ways to the next trip. */
static u32 moves_of(Native *n, BlockId body, u32 at, BlockId b) {
  const Graph *g = n->g;
  u32 moves = g->blocks.data[b].term == TERM_next ? moves_to(n, body, at, block_result(g, b, at), 0) : 0;
  for (NodeId k = block_first(g, b); k; k = node_next(g, k)) {
    const GraphNode *x = graph_node_at(g, k);
    if (x->kind == NODE_cond) /* nesting is bounded by GRAPH_MAX_DEPTH */
      moves |= moves_of(n, body, at, x->sub[0]) | moves_of(n, body, at, x->sub[1]);
  }
  return moves;
}

/* What holds in each trip: less[i] < than[i]. */
enum { FACTS = 8 };
typedef struct Facts {
  ValueId less[FACTS], than[FACTS];
  u32 count;
} Facts;

static void facts_of(Native *n, ValueId v, Facts *f, u32 depth) {
  const Graph *g = n->g;
  NodeId d = value_node(g, v);
  const GraphNode *x = d ? graph_node_at(g, d) : NULL;
  Value k;
  if (!x || depth > GRAPH_MAX_DEPTH) return;
  if (x->kind == NODE_cond && v == x->result_first) { /* `and`: where the other arm gives what is false there */
    ValueId asked = node_operand(g, d, 0);
    if (g->blocks.data[x->sub[0]].term != TERM_yield || g->blocks.data[x->sub[1]].term != TERM_yield) return;
    ValueId other = outermost_name(n, block_result(g, x->sub[1], 0));
    if (other != asked && !(value_const(g, other, &k) && k.dtype == DT_bool && !k.i)) return;
    facts_of(n, asked, f, depth + 1);
    facts_of(n, block_result(g, x->sub[0], 0), f, depth + 1);
  } else if (x->kind == NODE_op && (x->op == OP_logical_and || x->op == OP_bitwise_and)) {
    if (value_type(g, v)->dtype != DT_bool || value_type(g, v)->rank) return;
    facts_of(n, node_operand(g, d, 0), f, depth + 1);
    facts_of(n, node_operand(g, d, 1), f, depth + 1);
  } else if (x->kind == NODE_op && x->op == OP_astype && value_type(g, v)->dtype == DT_bool) {
    facts_of(n, node_operand(g, d, 0), f, depth + 1);
  } else if (x->kind == NODE_op && (x->op == OP_less || x->op == OP_greater) && f->count < FACTS) {
    const u32 turned = x->op == OP_greater;
    f->less[f->count] = outermost_name(n, node_operand(g, d, turned));
    f->than[f->count++] = outermost_name(n, node_operand(g, d, !turned));
  }
}

static bool is_counter(Native *n, ValueId p) {
  return !value_is_token(n->g, p) && !value_type(n->g, p)->rank && value_type(n->g, p)->dtype == DT_i64;
}

/* Which carried value of the loop the condition calls v; `carried`: none. */
static u32 carried_as(const Graph *g, NodeId loop, ValueId v) {
  const GraphNode *x = graph_node_at(g, loop);
  u32 i = 0;
  while (i < x->carried && g->blocks.data[x->sub[0]].params.data[i] != v) i++;
  return i;
}

/* Places that only go up, from 0 or above, as long as they are below something; and two that go towards each other. */
static void find_places(Native *n, NodeId loop) {
  const Graph *g = n->g;
  const GraphNode *x = graph_node_at(g, loop);
  BlockId body = x->sub[1];
  Facts f = {.count = 0};
  facts_of(n, block_result(g, x->sub[0], 0), &f, 0);
  for (u32 k = 0; k < f.count; k++) {
    u32 i = carried_as(g, loop, f.less[k]), j = carried_as(g, loop, f.than[k]);
    if (i == x->carried) continue;
    ValueId p = g->blocks.data[body].params.data[i], q = j < x->carried ? g->blocks.data[body].params.data[j] : 0;
    if (!is_counter(n, p) || (q && !is_counter(n, q)) || !not_negative(n, node_operand(g, loop, i))) continue;
    u32 moves = moves_of(n, body, i, body);
    if (moves & ~(u32)(STAYS | UP_ONE | (q ? 0 : UP))) continue;
    ValueId bound = q ? outermost_name(n, node_operand(g, loop, j)) : f.than[k];
    if (q && moves_of(n, body, j, body) & ~(u32)(STAYS | DOWN)) continue;
    NValue *low = native_value(n, p);
    if (!low->proved) {
      low->proved = true;
      low->below = bound; /* what comes down began there */
    }
    low->plain = 1;
    if (!q) continue;
    NValue *high = native_value(n, q);
    high->proved = true;
    high->up_to = bound;
    high->plain = 1;
  }
}

void native_find_counters(Native *n, NodeId loop) {
  Graph *g = n->g;
  const GraphNode *x = graph_node_at(g, loop);
  BlockId cond = x->sub[0], body = x->sub[1];
  ValueId more = block_result(g, cond, 0);
  NodeId test = value_node(g, more);
  for (u32 i = 0; i < x->carried; i++) {
    ValueId p = g->blocks.data[body].params.data[i];
    const ArrayType *t = value_is_token(g, p) ? NULL : value_type(g, p);
    if (!t || t->rank || t->dtype != DT_i64) continue;
    Steps s = {.n = n, .body = body, .at = i, .all = true, .likely = true};
    native_value(n, p)->proved = false;
    native_value(n, p)->below = native_value(n, p)->up_to = 0;
    ValueId init = node_operand(g, loop, i);
    bool sure = not_negative(n, init);
    if (!sure && !native_plain(n, init)) {
      native_value(n, p)->plain = 2;
      continue;
    }
    each_next(&s, body);
    native_value(n, p)->plain = s.likely ? 1 : 2;
    if (!sure || !s.all || !test || graph_node_at(g, test)->kind != NODE_op || graph_node_at(g, test)->op != OP_less)
      continue;
    ValueId a = node_operand(g, test, 0), bound = outermost_name(n, node_operand(g, test, 1));
    if (a != g->blocks.data[cond].params.data[i]) continue;
    /* below the bound on every trip, so that its steps never wrap */
    native_value(n, p)->proved = true;
    native_value(n, p)->below = bound;
  }
  find_places(n, loop);
}

static bool same_number(Native *n, ValueId a, ValueId b) {
  Dim x, y;
  if (a == b) return true;
  return value_dim(n->g, a, &x) && value_dim(n->g, b, &y) && x != DIM_NONE &&
         size_prove(&n->g->sizes, REL_le, x, y) == TRUTH_always;
}

bool native_index_proved(Native *n, ValueId index, ValueId size) {
  ValueId p = outermost_name(n, index);
  const NValue *x = native_value(n, p);
  if (!x->proved) return false;
  Dim most, all;
  if (x->up_to && value_dim(n->g, x->up_to, &most) && most != DIM_NONE &&
      value_dim(n->g, outermost_name(n, size), &all) && all != DIM_NONE &&
      size_prove(&n->g->sizes, REL_lt, most, all) == TRUTH_always)
    return true;
  return x->below && same_number(n, x->below, outermost_name(n, size));
}

typedef struct Ones {
  Native *n;
  BlockId body;
  u32 at;
  bool all;
} Ones;

static void look_for_one(Ones *o, BlockId b) {
  const Graph *g = o->n->g;
  Value k;
  if (g->blocks.data[b].term == TERM_next) {
    ValueId v = outermost_name(o->n, block_result(g, b, o->at));
    NodeId d = value_node(g, v);
    const GraphNode *x = d ? graph_node_at(g, d) : NULL;
    o->all &= x && x->kind == NODE_op && x->op == OP_add && same_param(o->n, node_operand(g, d, 0), o->body, o->at) &&
              value_const(g, outermost_name(o->n, node_operand(g, d, 1)), &k) && k.dtype == DT_i64 && k.i == 1;
  }
  for (NodeId k_node = block_first(g, b); k_node && o->all; k_node = node_next(g, k_node)) {
    const GraphNode *x = graph_node_at(g, k_node);
    if (x->kind != NODE_cond) continue;
    look_for_one(o, x->sub[0]); /* nesting is bounded by GRAPH_MAX_DEPTH */
    look_for_one(o, x->sub[1]);
  }
}

bool native_counts(Native *n, NodeId loop, u32 *at, ValueId *bound) {
  const Graph *g = n->g;
  const GraphNode *x = graph_node_at(g, loop);
  BlockId cond = x->sub[0], body = x->sub[1];
  NodeId test = value_node(g, block_result(g, cond, 0));
  if (!test || block_first(g, cond) != test || node_next(g, test)) return false;
  const GraphNode *t = graph_node_at(g, test);
  if (t->kind != NODE_op || t->op != OP_less) return false;
  *bound = node_operand(g, test, 1);
  for (u32 i = 0; i < x->carried; i++) {
    if (node_operand(g, test, 0) != g->blocks.data[cond].params.data[i]) continue;
    const ArrayType *p = value_type(g, g->blocks.data[body].params.data[i]), *b = value_type(g, *bound);
    bool carried = false; /* the bound must stay */
    for (u32 k = 0; k < x->carried; k++) carried |= *bound == g->blocks.data[cond].params.data[k];
    if (carried || p->rank || p->dtype != DT_i64 || b->rank || b->dtype != DT_i64 ||
        !not_negative(n, node_operand(g, loop, i)))
      return false;
    Ones o = {.n = n, .body = body, .at = i, .all = true};
    look_for_one(&o, body);
    *at = i;
    return o.all;
  }
  return false;
}
