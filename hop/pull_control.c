/* pull_control.c — derivatives of control nodes in a graph. cond: a cond of the pullbacks of its arms. scan and
 * while: a scan back over the trips (pull_loop.c), on the carried values that a scan forward stacked. */
#include "hop/flow.h"
#include "hop/pull_loop.h"
#include "hop/rules.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"

#include <string.h>

/* Its results have sizes of their own: those of the arms, or of the last trip. */
static bool sizes_change(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  for (u32 i = 0; i < g->sizes.syms.count; i++) {
    const SizeSym *s = &g->sizes.syms.data[i];
    if (s->unbacked && s->source && s->source - x->result_first < x->result_count && value_type(g, s->source)->rank)
      return true;
  }
  return false;
}

/* The way back over a cond. */
typedef struct Arms {
  Walk *w;
  NodeId node;
  ValueVec outer;  /* captures */
  /* those of them that depend on a variable, and what they stand for: an arm goes on with their sums */
  ValueVec wanted;
  ValueVec gives;  /* NEVER, ALWAYS or SOMETIMES, in the arms together */
  ValueVec inner, yields; /* of the arm at hand */
} Arms;
enum { NEVER = 1, ALWAYS = 2, SOMETIMES = 3 }; /* NEVER in one arm and ALWAYS in the other is SOMETIMES */

static bool want(Arms *a, ValueId v) {
  const Walk *w = a->w;
  Allocator *alloc = &w->r->vm->alloc;
  for (u32 i = 0; i < a->wanted.count; i++)
    if (a->wanted.data[i] == v) return true;
  if (!vec_push(alloc, &a->wanted, v) || !vec_push(alloc, &a->gives, 0)) return false;
  for (u32 i = w->alias[v]; i; i = w->aliases.data[i - 1].next)
    if (!want(a, w->aliases.data[i - 1].source)) return false;
  return true;
}

bool pull_lift_aliases(Walk *inner, const Walk *w, BlockId b, const ValueVec *outside, const ValueId *inside) {
  Graph *g = w->r->g;
  for (u32 i = 0; i < outside->count; i++)
    for (u32 k = w->alias[outside->data[i]]; k; k = w->aliases.data[k - 1].next) {
      Alias a = w->aliases.data[k - 1];
      u32 at = 0;
      while (at < outside->count && outside->data[at] != a.source) at++;
      ValueId when = a.when ? graph_lift(g, b, a.when) : 0;
      if (at == outside->count || (a.when && !when) || !pull_alias(inner, inside[i], inside[at], when, ARM_none))
        return false;
    }
  return true;
}

/* Where the way back over an arm reads what the arm computes and gives, it reads what the branch gave. */
static void take_result(Arms *a, BlockId made, ValueId v, ValueId result) {
  Graph *g = a->w->r->g;
  if (value_block(g, v) != made || !value_node(g, v) || g->values.data[v].type != g->values.data[result].type) return;
  ValueId to = graph_lift(g, made, result);
  if (!to) return;
  graph_replace_one(g, v, to);
  for (u32 i = 0; i < a->yields.count; i++)
    if (a->yields.data[i] == v) a->yields.data[i] = to;
}

static bool leave_dead(Recorder *r, BlockId b, NodeId last, bool passed) {
  u32 count = r->g->values.count;
  u8 *live = pull_live(r, b, last, passed);
  if (!live) return false;
  pull_drop_dead(r, b, last, passed, live);
  mem_free(&r->vm->alloc, live, count);
  return true;
}

static Outcome pull_arm(Arms *a, u32 k, BlockId *made) {
  Walk *w = a->w;
  Recorder *r = w->r;
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  BlockId block = graph_node_at(g, a->node)->sub[k];
  if (g->blocks.data[block].term != TERM_yield && g->blocks.data[block].term != TERM_exit)
    return rec_stuck(r, REASON_no_rule, "the derivative of a branch that leaves");
  bool exits = g->blocks.data[block].term == TERM_exit; /* it was not taken, or nobody would be here */
  u32 nresults = graph_node_at(g, a->node)->result_count, caps = g->blocks.data[block].captures.count;
  Outcome o = OUT_GO;
  ValueMap map;
  map_init(&map, alloc);
  a->inner.count = a->yields.count = 0;
  bool ok = (*made = graph_open(g)) != 0;
  for (u32 i = 0; i < caps && ok; i++)
    ok = i < a->outer.count && map_set(&map, g->blocks.data[block].captures.data[i].inner, a->outer.data[i]);
  ok = ok && (exits || graph_inline(g, block, &map));
  for (u32 i = 0; i < a->wanted.count && ok; i++) {
    ValueId v = graph_lift(g, *made, a->wanted.data[i]);
    ok = v && vec_push(alloc, &a->inner, v);
  }
  Walk in = {.r = r};
  NodeId last = ok ? g->blocks.data[*made].last : 0;
  ok = ok && pull_walk_init(&in, r, *made, 0, a->inner.data, a->inner.count) &&
       pull_lift_aliases(&in, w, *made, &a->wanted, a->inner.data);
  in.again = w->again;
  for (u32 i = 0; i < a->wanted.count && ok; i++) {
    ValueId v = a->wanted.data[i];
    in.ct[a->inner.data[i]] = w->ct[v];
    in.there[a->inner.data[i]] = w->there[v];
    in.filled[a->inner.data[i]] = w->filled[v];
  }
  for (u32 i = 0; i < nresults && ok && !exits; i++) {
    ValueId result = node_result(g, a->node, i), y = map_get(&map, block_result(g, block, i));
    ValueId lifted = graph_lift(g, *made, y);
    if (w->ct[result] && !pull_arm_is_source(w, result, k))
      pull_give_if(&in, lifted ? lifted : y, w->ct[result], w->there[result]);
  }
  if (ok) o = pull_walk_back(&in);
  for (u32 i = 0; i < a->inner.count && ok && o == OUT_GO; i++) {
    ArrayType t = *value_type(g, a->inner.data[i]);
    t.weak = false;
    ValueId v = in.ct[a->inner.data[i]];
    a->gives.data[i] |= !v ? NEVER : in.there[a->inner.data[i]] ? SOMETIMES : ALWAYS;
    v = v ? deriv_fit(&in.d.head, v, &t) : pull_zeros(g, &t);
    ok = v && vec_push(alloc, &a->yields, v);
  }
  for (u32 i = 0; i < a->inner.count && ok && o == OUT_GO; i++)
    ok = vec_push(alloc, &a->yields, pull_is_there(&in, a->inner.data[i]));
  for (u32 i = 0; i < nresults && ok && o == OUT_GO && w->again && !exits; i++)
    take_result(a, *made, map_get(&map, block_result(g, block, i)), node_result(g, a->node, i));
  if (ok && o == OUT_GO)
    ok = graph_close(g, TERM_yield, a->yields.data, a->yields.count, 0) && leave_dead(r, *made, last, w->again);
  pull_walk_free(&in);
  map_free(&map);
  if (!ok && o == OUT_GO) o = g->failed ? OUT_FAIL : rec_stuck(r, REASON_no_rule, "the derivative of a branch");
  return o;
}

/* The second arm. Of a branch that is always taken it says nothing of what is given. */
static Outcome pull_other_arm(Arms *a, BlockId *made) {
  bool always = graph_node_at(a->w->r->g, a->node)->mask;
  ValueVec gives = {0};
  for (u32 i = 0; i < a->gives.count && always; i++)
    if (!vec_push(&a->w->r->vm->alloc, &gives, a->gives.data[i])) return OUT_FAIL;
  Outcome o = pull_arm(a, 1, made);
  for (u32 i = 0; i < gives.count; i++) a->gives.data[i] = gives.data[i];
  vec_free(&a->w->r->vm->alloc, &gives);
  return o;
}

/* cond: a cond of the pullbacks of its arms, each of which runs its arm once more. What an arm uses goes in with
 * the cotangent that it has so far, and comes out with what the arm added; and whether it is there: some arms do
 * not speak of what others use. */
Outcome pull_cond(Walk *w, NodeId node) {
  Recorder *r = w->r;
  Graph *g = r->g;
  BlockId parent = g->at, made[2] = {0, 0};
  u32 first, ncaps = node_captures(g, node, &first);
  Allocator *alloc = &r->vm->alloc;
  Arms a = {.w = w, .node = node};
  Outcome o = OUT_GO;
  if (sizes_change(g, node))
    return rec_stuck(r, REASON_data_dependent_shape,
                     "the derivative of a branch whose arms give arrays of different sizes");
  for (u32 i = 0; i < ncaps; i++) {
    ValueId v = node_operand(g, node, first + i);
    if (!vec_push(alloc, &a.outer, v)) o = OUT_FAIL;
    if (pull_is_active(w, v) && pull_is_float(g, v) && !want(&a, v)) o = OUT_FAIL;
  }
  o = o == OUT_GO ? pull_arm(&a, 0, &made[0]) : o;
  if (o == OUT_GO) o = pull_other_arm(&a, &made[1]);
  if (o == OUT_GO) {
    graph_at_end(g, parent);
    NodeId back = graph_cond(g, node_operand(g, node, 0), made[0], made[1]);
    for (u32 i = 0; i < a.wanted.count && back; i++) {
      if (a.gives.data[i] == NEVER) continue;
      w->ct[a.wanted.data[i]] = node_result(g, back, i);
      w->there[a.wanted.data[i]] = a.gives.data[i] == ALWAYS ? 0 : node_result(g, back, a.wanted.count + i);
    }
    if (back) g->nodes.data[back].mask = graph_node_at(g, node)->mask;
    if (!back || !pull_drop_captures(r, back)) o = OUT_FAIL;
  }
  ValueVec *all[] = {&a.wanted, &a.outer, &a.inner, &a.yields, &a.gives};
  for (u32 i = 0; i < COUNT_OF(all); i++) vec_free(alloc, all[i]);
  return o;
}

/* ---- loops ----------------------------------------------------------------------------------------------------- */

bool loop_run_again(Recorder *r, NodeId node, BlockId b, const ValueId *params, u32 nparams, ValueMap *map) {
  Graph *g = r->g;
  u32 first, ncaps = node_captures(g, node, &first);
  for (u32 i = 0; i < ncaps; i++)
    if (!map_set(map, g->blocks.data[b].captures.data[i].inner, node_operand(g, node, first + i))) return false;
  for (u32 i = 0; i < nparams; i++)
    if (!map_set(map, g->blocks.data[b].params.data[i], params[i])) return false;
  return graph_inline(g, b, map);
}

bool loop_params_like(Recorder *r, BlockId b, const Loop *l, u32 from, u32 count, ValueVec *out) {
  Graph *g = r->g;
  for (u32 i = 0; i < count; i++) {
    ValueId old = g->blocks.data[l->body].params.data[from + i], v = graph_param(g, b, g->values.data[old].type);
    if (!v || !vec_push(&r->vm->alloc, out, v)) return false;
  }
  return true;
}

/* ---- what carried values stand for ------------------------------------------------------------------------------ */

/* A value that the next trip begins with, and the arms that lead to it. */
typedef struct Way {
  ValueId v;
  u32 arms; /* Ways.arms, from there to those of the next source: 2 * the cond + which arm */
} Way;
typedef struct Ways {
  VEC(Way) all;
  ValueVec arms, path;
} Ways;

enum { SOURCES_DEEP = GRAPH_MAX_DEPTH };

/* What v is in the blocks around, up to the body. */
static ValueId up_to(const Graph *g, BlockId body, ValueId v) {
  for (BlockId b = value_block(g, v); b && b != body; b = value_block(g, v)) {
    const GraphBlock *x = &g->blocks.data[b];
    u32 c = 0;
    while (c < x->captures.count && x->captures.data[c].inner != v) c++;
    if (c == x->captures.count) break;
    v = x->captures.data[c].outer;
  }
  return v;
}

static bool add_sources(const Graph *g, Allocator *alloc, BlockId body, ValueId v, u32 depth, Ways *s) {
  v = up_to(g, body, v);
  NodeId n = value_node(g, v);
  if (n && graph_node_at(g, n)->kind == NODE_cond && depth < SOURCES_DEEP) {
    u32 i = v - graph_node_at(g, n)->result_first;
    for (u32 arm = 0; arm < 2; arm++) {
      BlockId b = graph_node_at(g, n)->sub[arm];
      if (g->blocks.data[b].term != TERM_yield) continue;
      if (!vec_push(alloc, &s->path, 2 * n + arm) || !add_sources(g, alloc, body, block_result(g, b, i), depth + 1, s))
        return false;
      s->path.count--;
    }
    return true;
  }
  if (!vec_push(alloc, &s->all, (Way){v, s->arms.count})) return false;
  for (u32 i = 0; i < s->path.count; i++)
    if (!vec_push(alloc, &s->arms, s->path.data[i])) return false;
  return true;
}

static u32 arms_end(const Ways *s, u32 i) { return i + 1 < s->all.count ? s->all.data[i + 1].arms : s->arms.count; }

/* Can both be what they are in one trip? Not where their ways part at some cond. */
static bool together(const Ways *s, u32 i, u32 k) {
  for (u32 a = s->all.data[i].arms; a < arms_end(s, i); a++)
    for (u32 b = s->all.data[k].arms; b < arms_end(s, k); b++)
      if ((s->arms.data[a] ^ s->arms.data[b]) == 1) return false;
  return true;
}

/* The order in which the tape adds cannot be followed where two carried values are one and the same in a trip, or
 * where one becomes a value from outside that depends on a variable: what is added to the one is added to the
 * other. */
static Outcome no_twins(const Walk *w, const Loop *l) {
  Recorder *r = w->r;
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  Ways s = {0};
  ValueVec of = {0};
  bool ok = true, twins = false;
  for (u32 i = 0; i < l->carried && ok; i++) {
    if (!l->reached[i]) continue;
    s.path.count = 0;
    ok = add_sources(g, alloc, l->body, block_result(g, l->body, i), 0, &s);
    while (ok && of.count < s.all.count) ok = vec_push(alloc, &of, i);
  }
  const GraphBlock *b = &g->blocks.data[l->body];
  for (u32 i = 0; i < s.all.count && ok && !twins; i++) {
    ValueId v = s.all.data[i].v;
    if (!pull_is_float(g, v)) continue;
    for (u32 c = 0; c < b->captures.count && c < l->ncaps; c++)
      twins |= b->captures.data[c].inner == v && pull_is_active(w, loop_operand(w, l, l->first + c));
    for (u32 k = 0; k < i && !twins; k++)
      twins = s.all.data[k].v == v && of.data[k] != of.data[i] && value_block(g, v) && together(&s, i, k);
  }
  vec_free(alloc, &s.all);
  vec_free(alloc, &s.arms);
  vec_free(alloc, &s.path);
  vec_free(alloc, &of);
  if (!ok) return OUT_FAIL;
  return twins ? rec_stuck(r, REASON_no_rule, "the derivative of a loop in which two variables become one value")
               : OUT_GO;
}

/* Which carried values are, in the first trip, values whose cotangents others add to as well: later uses, the body,
 * another carried value. */
static void find_first(const Walk *w, Loop *l) {
  const Graph *g = w->r->g;
  for (u32 i = 0; i < l->carried; i++) {
    ValueId v = loop_operand(w, l, i);
    if (!pull_is_active(w, v) || !pull_is_float(g, v)) continue;
    bool shared = w->ct[v] || w->alias[v];
    for (u32 k = 0; k < l->ncaps && !shared; k++) shared = loop_operand(w, l, l->first + k) == v;
    for (u32 k = 0; k < l->carried && !shared; k++) shared = k != i && loop_operand(w, l, k) == v;
    l->alias[i] = shared;
  }
}

/* A loop of no trips gives what it began with: then others add to the cotangents of its results. */
static Outcome need_a_trip(const Walk *w, const Loop *l) {
  Recorder *r = w->r;
  Graph *g = r->g;
  bool any = false;
  i64 n;
  for (u32 i = 0; i < l->carried; i++) any |= l->alias[i] && l->reached[i];
  if (!any || size_prove(&g->sizes, REL_le, 1, l->trips) == TRUTH_always) return OUT_GO;
  if (size_is_unbacked(&g->sizes, l->trips)) { /* in a run without a trip the interpreter does it */
    ValueId trips = graph_size(g, l->trips);
    Outcome o = trips ? rec_check(r, CHECK_empty, &trips, 1) : OUT_FAIL;
    return o != OUT_GO || size_assume(&g->sizes, REL_le, 1, l->trips) ? o : OUT_FAIL;
  }
  bool some = size_hint(&g->sizes, l->trips, &n) && n > 0 &&
              guard_relation(&g->guards, &g->sizes, REL_le, 1, l->trips, "the derivative of a loop", rec_here(r));
  return some ? OUT_GO : rec_stuck(r, REASON_no_rule, "the derivative of a loop that may have no trips");
}

/* Trials of the way back, each undone, until they say what it reaches, and what is saved for it. */
static Outcome try_back(Walk *w, Loop *l) {
  Graph *g = w->r->g;
  GraphMark mark = graph_mark(g);
  Outcome o = OUT_GO;
  /* at most once for each carried value, and twice more */
  for (bool grown = true, dropped = false; grown && o == OUT_GO;) {
    grown = false;
    o = loop_back(w, l, &grown);
    if (o == OUT_GO) graph_rollback(g, mark);
    if (o != OUT_GO || grown || dropped) continue;
    for (u32 i = 0; i < l->carried; i++) { /* to which no trip adds: no sum for it goes along */
      grown |= dropped |= l->alias[i] && !l->touched[i];
      l->alias[i] &= l->touched[i];
    }
  }
  return o;
}

/* Where arrays would be saved, and blocks inside of the body read parts of them: the loop made anew, so that these
 * parts can be saved, if that helps. */
static Outcome read_less(Walk *w, Loop *l, BlockId home) {
  Graph *g = w->r->g;
  bool arrays = false;
  for (u32 i = 0; i < l->carried; i++) arrays |= l->needed[i] && value_type(g, loop_operand(w, l, i))->rank;
  if (!arrays || !loop_reads_inside(g, l->body)) return OUT_GO;
  GraphMark mark = graph_mark(g);
  BlockId here = g->at;
  NodeId was = l->node;
  Dim trips = l->trips;
  u32 ncaps = l->ncaps;
  graph_at_end(g, home);
  NodeId made = loop_read_inside(w->r, was);
  graph_at_end(g, here);
  if (!made) return OUT_FAIL;
  loop_read(g, l, made);
  l->trips = trips;
  Outcome o = l->ncaps <= ncaps ? try_back(w, l) : OUT_GO;
  if (o != OUT_GO || (l->ncaps <= ncaps && l->cut.count)) return o;
  graph_rollback(g, mark);
  loop_read(g, l, was);
  return try_back(w, l);
}

/* A loop that was made as a pattern, of which nothing is read, does not run. */
static void drop_pattern(Graph *g, const Loop *l, NodeId pattern) {
  const GraphNode *x = graph_node_at(g, pattern);
  bool used = false;
  for (u32 k = 0; k < x->result_count && !used; k++) {
    used = graph_carries_size(g, x->result_first + k);
    for (u32 i = 0; i < l->saved.count; i++) used |= l->saved.data[i] == x->result_first + k;
  }
  if (!used) graph_unlink(g, pattern);
}

Outcome pull_loop(Walk *w, NodeId node) {
  Recorder *r = w->r;
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  const GraphNode x = *graph_node_at(g, node);
  Loop l = {0};
  if (sizes_change(g, node))
    return rec_stuck(r, REASON_data_dependent_shape, "the derivative of a loop that carries an array of changing size");
  loop_read(g, &l, node);
  /* What runs the loop once more stands where the loop does, once for all rows of a Jacobian whose way back is a
   * block inside. There its operands are the loop's own; inside they would be captures, which the walk knows
   * nothing of. */
  BlockId here = g->at, home = value_block(g, x.result_first);
  NodeId again = 0;
  if (flow_body_leaves(g, node)) {
    graph_at_end(g, home);
    Outcome made = flow_regular(r, node, &again);
    graph_at_end(g, here);
    if (made != OUT_GO) return made;
    loop_read(g, &l, again);
  }
  u32 nresults = x.result_count, room = 2 * l.carried + x.result_count + 1, marks = 0;
  ValueId *ct = mem_alloc_zero(alloc, sizeof *ct * 3 * room); /* cotangents, whether they are there, Filled */
  if (!ct) return OUT_FAIL;
  Outcome o = OUT_GO;
  for (u32 i = 0; i < nresults; i++) {
    ct[i] = w->ct[node_result(g, node, i)];
    ct[room + i] = w->there[node_result(g, node, i)];
    ((u8 *)(ct + 2 * room))[i] = w->filled[node_result(g, node, i)];
  }
  l.ct = ct;
  l.there = ct + room;
  l.filled = (const u8 *)(ct + 2 * room);
  l.trips = x.length;
  if (x.kind == NODE_while && o == OUT_GO) {
    l.trips = loop_trips(g, l.node);
    graph_at_end(g, home);
    /* in a lane a bound is better: each lane has a number of trips of its own */
    if (l.trips == DIM_NONE && r->lane_deep && !loop_bound(r, &l)) o = OUT_FAIL;
    if (l.trips == DIM_NONE && o == OUT_GO && (l.trips = loop_count(r, &l)) == DIM_NONE) o = OUT_FAIL;
    graph_at_end(g, here);
  }
  marks = 6 * l.carried + l.nxs + l.ncaps + w->aliases.count + 1;
  if ((l.needed = mem_alloc_zero(alloc, marks))) {
    l.reached = l.needed + l.carried;
    l.maybe = l.reached + l.carried;
    l.alias = l.maybe + l.carried;
    l.touched = l.alias + l.carried;
    l.given = l.touched + l.carried;
    find_first(w, &l);
  } else {
    o = OUT_FAIL;
  }
  for (u32 i = 0; i < l.carried && o == OUT_GO; i++) {
    l.reached[i] = ct[i] != 0;
    l.maybe[i] = l.there[i] != 0;
  }
  if (o == OUT_GO) o = try_back(w, &l);
  if (o == OUT_GO) o = read_less(w, &l, home);
  graph_at_end(g, home);
  if (o == OUT_GO) o = need_a_trip(w, &l);
  graph_at_end(g, here);
  if (o == OUT_GO) o = no_twins(w, &l);
  bool done = false;
  while (o == OUT_GO && !done) {
    GraphMark mark = graph_mark(g);
    graph_at_end(g, home);
    if (!loop_save(r, &l)) o = OUT_FAIL;
    graph_at_end(g, here);
    if (o == OUT_GO) o = loop_back(w, &l, NULL);
    done = !l.missed;
    if (o != OUT_GO || done) break;
    graph_rollback(g, mark);
    bool grown = false;
    o = loop_back(w, &l, &grown); /* once more, for what is needed of the carried values */
    if (o == OUT_GO) graph_rollback(g, mark);
    l.missed = false;
  }
  if (o == OUT_GO && l.node != node) drop_pattern(g, &l, l.node);
  if (o == OUT_GO && again && again != l.node) drop_pattern(g, &l, again);
  if (o == OUT_GO) r->vm->counters.at[STAT_loops_back]++;
  vec_free(alloc, &l.saved);
  vec_free(alloc, &l.cut);
  vec_free(alloc, &l.starts);
  if (l.needed) mem_free(alloc, l.needed, marks);
  mem_free(alloc, ct, sizeof *ct * 3 * room);
  return o;
}
