/* pull_cut.c — what is saved of each trip of a loop for the way back over it.
 *
 * The way back runs every trip once more. It can do so from the carried values that it needs; but where it reads few
 * numbers of much that is carried (elements of an array that the loop updates), it is less to save what was read. What
 * to save is a minimum cut between the carried values and what the way back reads of the trip, by their bytes; of
 * equal cuts the one next to the carried values. */
#include "hop/pull_loop.h"
#include "hop/rules.h"

#include <string.h>

enum {
  FLOW_SIZE = 1024,  /* what a size counts that is known at run time only */
  FLOW_GAIN = 2,     /* so many times less must a cut be than the carried values */
  FLOW_PATHS = 1000, /* more paths are not looked for: the carried values are saved */
};

/* Pipes come in pairs: forward, and back. */
typedef struct Pipe {
  u32 to, next; /* next pipe from the same place: + 1 */
  u64 room;
} Pipe;

/* Places: 0 source, 1 sink, one for each node, two for each value: `in`, and out behind it. */
typedef struct Flow {
  Allocator *alloc;
  ValueVec values; /* of the body: carried values, results of nodes */
  VEC(u32) in;
  u32 *of;         /* ValueId of the body or of the trip that is looked at: number of the value + 1 */
  u32 ids;
  VEC(u32) heads;
  VEC(Pipe) pipes;
  bool ragged;     /* values whose length differs from trip to trip can be saved: not where lanes are */
  bool ok;
} Flow;

static u32 flow_place(Flow *f) {
  f->ok = f->ok && vec_push(f->alloc, &f->heads, 0);
  return f->heads.count - 1;
}

static void flow_pipe(Flow *f, u32 from, u32 to, u64 room) {
  Pipe there = {to, 0, room}, back = {from, 0, 0};
  f->ok = f->ok && vec_push(f->alloc, &f->pipes, there) && vec_push(f->alloc, &f->pipes, back);
  if (!f->ok) return;
  u32 n = f->pipes.count;
  f->pipes.data[n - 2].next = f->heads.data[from];
  f->heads.data[from] = n - 1;
  f->pipes.data[n - 1].next = f->heads.data[to];
  f->heads.data[to] = n;
}

u64 pull_bytes(const Graph *g, ValueId v, bool carried) {
  const ArrayType *t = value_type(g, v);
  u64 bytes = dtype_bytes(t->dtype);
  if (!carried && (t->rank >= TYPE_MAX_RANK || graph_carries_size(g, v))) return PULL_ENDLESS;
  for (u32 d = 0; d < t->rank; d++) {
    i64 n;
    if (!carried && d && size_is_unbacked(&g->sizes, t->dims[d])) return PULL_ENDLESS;
    if (!size_is_const(&g->sizes, t->dims[d], &n)) n = FLOW_SIZE;
    bytes = n && bytes > PULL_ENDLESS / 2 / (u64)n ? PULL_ENDLESS / 2 : bytes * (u64)n;
  }
  return bytes;
}

static bool is_stacked(const Graph *g, const Loop *l, ValueId v) {
  for (u32 k = 0; k < l->stacked; k++)
    if (loop_stacks(g, l, k, v)) return true;
  return false;
}

/* What the loop stacks is saved already. */
static void flow_value(Flow *f, const Graph *g, const Loop *l, ValueId v, ValueId copy, bool carried) {
  u32 in = flow_place(f), out = flow_place(f);
  f->ok = f->ok && vec_push(f->alloc, &f->values, v) && vec_push(f->alloc, &f->in, in);
  if (!f->ok) return;
  f->of[v] = f->of[copy] = f->values.count;
  bool endless = !carried && !f->ragged && pull_ragged(g, v);
  flow_pipe(f, in, out, is_stacked(g, l, v) ? 0 : endless ? PULL_ENDLESS : pull_bytes(g, v, carried));
  if (carried) flow_pipe(f, 0, in, PULL_ENDLESS);
}

typedef struct FlowUse {
  Flow *f;
  u32 to;
} FlowUse;

/* v, of the body or the trip, is used at a place. */
static void flow_use(void *ctx, u32 v) {
  const FlowUse *u = ctx;
  u32 i = v < u->f->ids ? u->f->of[v] : 0;
  if (i) flow_pipe(u->f, u->f->in.data[i - 1] + 1, u->to, PULL_ENDLESS);
}

static void flow_node(Flow *f, const Graph *g, const Loop *l, NodeId n, const ValueMap *map) {
  const GraphNode *x = graph_node_at(g, n);
  FlowUse use = {f, 0};
  if (!x->result_count) return;
  use.to = flow_place(f);
  for (u32 k = 0; k < x->operand_count; k++) flow_use(&use, node_operand(g, n, k));
  pull_size_values(g, n, flow_use, &use);
  for (u32 k = 0; k < x->result_count; k++) {
    ValueId v = node_result(g, n, k);
    if (value_is_token(g, v)) continue;
    flow_value(f, g, l, v, map_get(map, v), false);
    if (f->ok) flow_pipe(f, use.to, f->in.data[f->in.count - 1], PULL_ENDLESS);
  }
}

/* What the way back reads of the trip that it runs once more, whose last node is `last`, and what must stay. */
static bool flow_reads(Flow *f, const Graph *g, BlockId back, NodeId last, bool unsaved, const u8 *live) {
  FlowUse use = {f, 1};
  bool trip = false;
  for (u32 i = 0; i < g->blocks.data[back].term_count; i++) flow_use(&use, block_result(g, back, i));
  for (NodeId n = g->blocks.data[back].last; n; n = graph_node_at(g, n)->prev) {
    const GraphNode *x = graph_node_at(g, n);
    trip |= n == last;
    bool used = pull_must_stay(g, n, trip && !unsaved);
    for (u32 i = 0; i < x->result_count; i++) {
      ValueId v = node_result(g, n, i);
      used |= live[v] && !trip;
      if (trip && graph_carries_size(g, v)) flow_use(&use, v);
    }
    for (u32 i = 0; i < x->operand_count && used; i++) flow_use(&use, node_operand(g, n, i));
    if (used) pull_size_values(g, n, flow_use, &use);
  }
  return f->ok;
}

/* The places that more can flow to from the source: seen[place] is the pipe that leads there, + 1. */
static bool flow_reach(Flow *f, u32 *seen, u32 *queue) {
  u32 first = 0, count = 0;
  memset(seen, 0, sizeof *seen * f->heads.count);
  seen[0] = UINT32_MAX;
  queue[count++] = 0;
  while (first < count && !seen[1])
    for (u32 p = f->heads.data[queue[first++]]; p; p = f->pipes.data[p - 1].next) {
      const Pipe *x = &f->pipes.data[p - 1];
      if (!x->room || seen[x->to]) continue;
      seen[x->to] = p;
      queue[count++] = x->to;
    }
  return seen[1] != 0;
}

static u64 flow_along(Flow *f, const u32 *seen) {
  u64 most = UINT64_MAX;
  for (u32 at = 1; at; at = f->pipes.data[(seen[at] - 1) ^ 1].to)
    if (f->pipes.data[seen[at] - 1].room < most) most = f->pipes.data[seen[at] - 1].room;
  for (u32 at = 1; at; at = f->pipes.data[(seen[at] - 1) ^ 1].to) {
    f->pipes.data[seen[at] - 1].room -= most;
    f->pipes.data[(seen[at] - 1) ^ 1].room += most;
  }
  return most;
}

/* Is a value in the cut: more can flow to it, but not through it. */
static bool flow_cuts(const Flow *f, const u32 *seen, u32 i) {
  return seen[f->in.data[i]] && !seen[f->in.data[i] + 1];
}

/* Of the values in the cut, those that the sink is reached from past no other: what is saved already is cut at no
 * cost, whether it is read or not. Then asked[out] is ASKED_cut, and no other. */
enum { ASKED = 1, IN_CUT = 2, ASKED_cut = 3 };
static void flow_asked(const Flow *f, const u32 *seen, u32 *at, u8 *asked) {
  u32 first = 0, count = 0;
  for (u32 i = 0; i < f->values.count; i++) asked[f->in.data[i] + 1] = flow_cuts(f, seen, i) ? IN_CUT : 0;
  asked[1] = ASKED;
  at[count++] = 1;
  while (first < count)
    for (u32 p = f->heads.data[at[first++]]; p; p = f->pipes.data[p - 1].next) {
      u32 from = f->pipes.data[p - 1].to;
      if (((p - 1) & 1) == 0 || asked[from] & ASKED) continue; /* a pipe from here: those to here begin there */
      bool cut = asked[from] & IN_CUT;
      asked[from] |= ASKED;
      if (!cut) at[count++] = from;
    }
}

/* Saves the values of the cut in place of the carried ones, where that is less. `stacked`: where it costs nothing. */
static bool flow_cut(Flow *f, Graph *g, Loop *l, bool stacked, bool *took) {
  u32 places = f->heads.count;
  u32 *seen = mem_alloc(f->alloc, sizeof *seen * 2 * places);
  u8 *asked = mem_alloc_zero(f->alloc, places);
  u64 least = 0, now = 0;
  bool ends = true, ok = seen && asked;
  for (u32 paths = 0; ok && ends && flow_reach(f, seen, seen + places); paths++) {
    least += flow_along(f, seen);
    ends = paths < FLOW_PATHS && least < PULL_ENDLESS && !(stacked && least);
    ok = toil(g->toil, f->pipes.count);
  }
  for (u32 i = 0; i < l->carried; i++)
    if (l->needed[i]) now += pull_bytes(g, f->values.data[i], true);
  *took = ok && ends && (stacked || (least * FLOW_GAIN <= now && now));
  if (*took) flow_asked(f, seen, seen + places, asked);
  for (u32 i = 0; i < f->values.count && ok && *took; i++) {
    bool cut = asked[f->in.data[i] + 1] == ASKED_cut;
    if (i < l->carried) l->needed[i] = cut;
    else if (cut) ok = vec_push(f->alloc, &l->cut, f->values.data[i]);
  }
  if (seen) mem_free(f->alloc, seen, sizeof *seen * 2 * places);
  if (asked) mem_free(f->alloc, asked, places);
  return ok;
}

/* Arrays that the body captures: `back` has captured what they are outside as well. */
static void flow_captures(Flow *f, const Graph *g, const Loop *l, BlockId back) {
  const GraphBlock *from = &g->blocks.data[l->body], *to = &g->blocks.data[back];
  for (u32 c = 0; c < l->ncaps; c++) {
    ValueId v = from->captures.data[c].inner, outer = node_operand(g, l->node, l->first + c);
    if (value_is_token(g, v) || !value_type(g, v)->rank) continue;
    for (u32 k = 0; k < to->captures.count; k++)
      if (to->captures.data[k].outer == outer) flow_value(f, g, l, v, to->captures.data[k].inner, true);
  }
}

static bool cut_with(Recorder *r, Loop *l, BlockId back, NodeId last, const ValueMap *map, const ValueId *params,
                     const u8 *live, bool stacked, bool *took) {
  Graph *g = r->g;
  Flow f = {.alloc = &r->vm->alloc, .ids = g->values.count, .ragged = !r->lane_deep, .ok = true};
  f.of = mem_alloc_zero(f.alloc, sizeof *f.of * f.ids);
  f.ok = f.of != NULL;
  (void)flow_place(&f);
  (void)flow_place(&f);
  for (u32 i = 0; i < l->carried && f.ok; i++)
    flow_value(&f, g, l, g->blocks.data[l->body].params.data[i], params[i], true);
  if (stacked) flow_captures(&f, g, l, back);
  for (NodeId n = block_first(g, l->body); n && f.ok; n = node_next(g, n)) flow_node(&f, g, l, n, map);
  bool ok = f.ok && flow_reads(&f, g, back, last, l->unsaved, live) && flow_cut(&f, g, l, stacked, took);
  if (f.of) mem_free(f.alloc, f.of, sizeof *f.of * f.ids);
  vec_free(f.alloc, &f.values);
  vec_free(f.alloc, &f.in);
  vec_free(f.alloc, &f.heads);
  vec_free(f.alloc, &f.pipes);
  return ok;
}

/* Where all that is read comes from what the loop stacks already, the arrays from which that was read are not asked
 * for either: a loop around need not save them. */
bool loop_choose_saved(Recorder *r, Loop *l, BlockId back, NodeId last, const ValueMap *map, const ValueId *params,
                       const u8 *live) {
  bool took = false;
  l->cut.count = 0;
  bool ok = !l->stacked || cut_with(r, l, back, last, map, params, live, true, &took);
  return ok && (took || cut_with(r, l, back, last, map, params, live, false, &took));
}
