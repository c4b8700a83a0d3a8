/* cost.c — the cost model: every time that a decision weighs is an estimate from here, or was measured.
 *
 *   once    record + compile   before recording: by the instructions; then by the graph's nodes, inputs and written
 *                              values; scaled by what compilations took so far, dearer where some came to nothing
 *   each    enter + leave      by inputs, written values, packed lists, a break; of a loop that runs: measured
 *   each    trip               a pass in the interpreter: measured (sample.c)
 *
 * Compiled code takes compiled_percent of a pass. */
#include "lang/mechanisms.h"
#include "tracer/tier/cost.h"
#include "tracer/tier/places.h"
#include "tracer/tier/sample.h"

/* ---- once: recording and compiling ------------------------------------------------------------------------ */

/* As compilations took so far. */
static u64 scaled(const Tracer *t, u64 parts) {
  const Tunables *tun = &t->vm->tunables;
  u64 ns = (u64)tun->compile_base_ns + parts * (u64)tun->compile_node_ns;
  return t->cost_percent ? percent_of(ns, (i64)t->cost_percent) : ns;
}

/* Of a whole, the part for recording, and the rest. */
static Cost split(const Tracer *t, u64 whole) {
  const Tunables *tun = &t->vm->tunables;
  Cost c = {.record = percent_of(whole, tun->record_percent)};
  c.compile = whole - c.record + (t->compilings ? 0 : (u64)tun->compile_first_ns);
  return c;
}

Cost cost_of_parts(const Tracer *t, u64 parts) { return split(t, scaled(t, parts)); }

/* Of a place: dearer, where compilations and recordings there came to little, and in a program that compiling does not
 * suit. */
static Cost at_place(const Tracer *t, const Place *p, u64 whole) {
  const Tunables *tun = &t->vm->tunables;
  Cost c = split(t, whole);
  u64 tries = 1 + p->compiles + p->tries + (u64)tun->demoted_cost * p->demoted,
      lost = t->compiling_wall ? (u64)tun->losers_percent * t->losers_ns / t->compiling_wall : 0;
  i64 percent = (i64)(tries * (PERCENT + lost));
  c.record = percent_of(c.record + p->rent.lost_ns, percent);
  c.compile = percent_of(c.compile, percent);
  c.trip = p->rent.each_ns;
  return c;
}

/* A place behind a call that no region leads to: what is looked at there may well hold the next call too. */
static bool is_awaited(const Place *p) {
  u32 site = p->start == RECORD_RESUME && p->pc ? p->code->site_of_pc[p->pc - 1] : 0;
  return site && p->code->sites[site - 1].flags & SITE_AWAITED;
}

/* Instructions of its code, without those that only fetch what another one takes. */
static u32 instructions(const Place *p) {
  const Proto *proto = p->code->proto;
  u32 pc = 0, end = proto->ncode, n = 0;
  for (u32 i = 1; i < proto->nextents && p->start == RECORD_LOOP; i++)
    if (is_loop(&proto->extents[i]) && proto->extents[i].head == p->pc)
      pc = proto->extents[i].begin, end = proto->extents[i].end;
  for (; pc < end; pc++) n += ins_op(proto->code[pc]) != BC_move && ins_op(proto->code[pc]) != BC_getmod;
  return n;
}

Cost cost_of_code(const Tracer *t, Place *p) {
  const Tunables *tun = &t->vm->tunables;
  PlaceRent *r = &p->rent;
  if (!r->length) r->length = instructions(p) + 1;
  u64 whole = scaled(t, percent_of(r->length, tun->instruction_nodes));
  if (!r->cost_ns && is_awaited(p)) whole *= (u64)tun->awaited_times;
  return at_place(t, p, r->cost_ns > whole ? r->cost_ns : whole);
}

Cost cost_of_graph(const Tracer *t, Place *p, u64 parts, u64 gain) {
  u64 least = (u64)t->vm->tunables.gain_least;
  p->rent.cost_ns = scaled(t, parts) * PERCENT / (gain > least ? gain : least); /* it is not recorded again sooner */
  return at_place(t, p, p->rent.cost_ns);
}

void cost_learn(Tracer *t, u64 parts, u64 ns) {
  const Tunables *tun = &t->vm->tunables;
  u64 percent = ns * PERCENT / ((u64)tun->compile_base_ns + parts * (u64)tun->compile_node_ns + 1),
      new = (u64)tun->cost_newest;
  if (!t->compilings) return; /* the first one sets up what the others find */
  if (percent < (u64)tun->cost_least) percent = (u64)tun->cost_least;
  if (percent > (u64)tun->cost_most) percent = (u64)tun->cost_most;
  t->cost_percent = ((t->cost_percent ? t->cost_percent : PERCENT) * (PERCENT - new) + percent * new) / PERCENT;
}

static void costs_no_less(Tracer *t, const Code *code, u32 pc, RecordStart start, u64 cost) {
  Place *p = place_get(t->vm, &t->places, (Code *)code, pc, start);
  if (p && !p->cache.entries.count && !p->eager && p->rent.cost_ns < cost) p->rent.cost_ns = cost;
}

/* They are not recorded only to learn that. */
void cost_tell_around(Tracer *t, const Place *p, u64 parts) {
  const Frame *f = &t->vm->frames[t->vm->frame_count - 1];
  u64 whole = scaled(t, parts), cost = whole - percent_of(whole, t->vm->tunables.record_percent);
  for (u32 n = 0; n <= t->vm->tunables.callers && n < t->vm->frame_count; n++, f--) {
    const Code *code = f->code;
    const Proto *proto = code->proto;
    if (n && (f[1].flags & FRAME_NATIVE_CALL || f[1].code == code)) return;
    for (u32 i = loop_innermost(proto, f->pc); i && i < proto->nextents; i = proto->extents[i].parent)
      if (is_loop(&proto->extents[i]) && code->site_of_pc[proto->extents[i].els])
        costs_no_less(t, code, proto->extents[i].head, RECORD_LOOP, cost);
    if ((n || p->start == RECORD_LOOP) && proto->nsites && proto->sites[0].kind == SITE_ENTRY)
      costs_no_less(t, code, 0, RECORD_ENTRY, cost);
  }
}

/* ---- each time: entering and leaving ---------------------------------------------------------------------- */

/* Lists and texts that did not lie in columns are packed at each entry, whole; there is room for as many items
 * again. Those that keep their columns are so only where the region is left often; if they are others each time,
 * that shows soon (only_packs). */
static u64 packing_ns(const Tunables *tun, const Graph *g, bool often) {
  u64 items = 0, lists = 0;
  for (u32 i = 0; i < g->inputs.count; i++) {
    const GraphInput *x = &g->inputs.data[i];
    i64 room;
    if (x->input == UINT32_MAX || g->guards.inputs.data[x->input].form != IN_rows ||
        g->guards.inputs.data[x->input].given || (!often && g->guards.inputs.data[x->input].keeps))
      continue;
    lists++;
    bool column = g->guards.sources.items.data[g->guards.inputs.data[x->input].source].kind == SRC_column;
    if (size_hint(&g->sizes, value_type(g, x->value)->dims[0], &room) && room > ROWS_ROOM)
      items += (u64)(room - ROWS_ROOM) / 2 * (column ? ROWS_DEEP : 1);
  }
  return items * (u64)tun->pack_ns + lists * (u64)tun->list_ns;
}

/* What an exit of these kinds writes, at most. */
static u64 written(const ExitTable *x, u32 kinds) {
  u64 most = 0;
  for (u32 i = 0; i < x->exits.count; i++) {
    const Exit *e = &x->exits.data[i];
    u64 parts = journal_depth(x, e->journal);
    for (u32 k = 0; k < e->frame_count; k++) {
      const ExitFrame *f = &x->frames.data[e->frame_first + k];
      for (u32 r = 0; r < f->count; r++) parts += x->recipes.data[x->regs.data[f->first + r].recipe].weight;
    }
    if (kinds >> e->kind & 1 && parts > most) most = parts;
  }
  return most;
}

Cost cost_of_entry(const Tracer *t, const Place *p, const Graph *g, bool broke, bool often) {
  const Tunables *tun = &t->vm->tunables;
  u64 parts = written(&g->exits, broke ? 1u << EXIT_break : ~(1u << EXIT_check));
  return (Cost){.enter = (u64)tun->enter_ns + (u64)tun->part_ns * g->inputs.count + packing_ns(tun, g, often),
                .leave = (u64)tun->part_ns * parts + (broke ? (u64)tun->break_ns : 0), .trip = p->rent.each_ns};
}

Cost cost_of_run(const Place *p) { return (Cost){.enter = p->gate.around_ns, .trip = p->gate.trip_ns}; }

u64 cost_pays_after(const Tunables *tun, const Cost *c) {
  u64 saved = c->trip - percent_of(c->trip, tun->compiled_percent);
  return saved ? (cost_each(c) + saved / 2) / saved : UINT64_MAX;
}

bool cost_is_lost(const Tracer *t, const Place *p, const Graph *g, bool broke) {
  const Tunables *tun = &t->vm->tunables;
  u64 eager = region_eager_ns(tun, g);
  Cost c = cost_of_entry(t, p, g, broke, true);
  if (!eager) return false;
  return (u64)tun->lost_times * eager < cost_each(&c) ||
         (p->start == RECORD_ENTRY && !broke && c.trip < cost_each(&c));
}

/* Some levels of calls that the function makes of itself stand in the graph, and it is no native recursion. */
static bool holds_itself(const Place *p, const Graph *g) {
  for (u32 i = 1; i < g->frames.count; i++)
    if (g->frames.data[i].code == p->code) return true;
  return false;
}

u64 cost_gain(const Tracer *t, const Place *p, const Graph *g, bool broke) {
  const Tunables *tun = &t->vm->tunables;
  if (graph_recurs(g) || !MECHANISM(t->vm, gains_count)) return PERCENT; /* one entry for all calls inside */
  const PlaceRent *r = &p->rent;
  Cost c = cost_of_entry(t, p, g, broke, broke || r->left_often);
  u64 trips = p->start == RECORD_LOOP && !broke ? r->own ? r->own : (u64)tun->sample_trips : 1, each = cost_each(&c);
  if (r->left_often && trips > TAKEN_SEEN / r->left_often) trips = TAKEN_SEEN / r->left_often;
  /* a break leaves most to the interpreter */
  u64 compiled = percent_of(c.trip, tun->compiled_percent),
      spent = (broke ? c.trip - percent_of(c.trip, tun->break_percent) : compiled) + each / trips;
  if (c.trip <= spent) return 0;
  u64 gain = (c.trip - spent) * PERCENT / (c.trip - compiled);
  if (holds_itself(p, g) && MECHANISM(t->vm, copies_gain_less)) gain = percent_of(gain, tun->copies_percent);
  u64 early = r->left_early ? region_early_ns(tun, g) : broke ? region_eager_ns(tun, g) : 0;
  if (!early) return is_awaited(p) && broke ? gain / (u64)tun->awaited_times : gain;
  early *= (u64)tun->moves_times;
  early = early > each ? early - each : 0; /* it saves no more than what it does */
  return early < c.trip && early * PERCENT / c.trip < gain ? early * PERCENT / c.trip : gain;
}

/* ---- what the interpreter takes for a graph --------------------------------------------------------------- */

/* What comes in and what the exits write back is compiled as well: a loop over twenty records of seven fields has
 * two dozen nodes, and takes as long as three hundred. */
u32 graph_parts(const Graph *g) { return graph_node_count(g) + g->inputs.count + g->exits.recipes.count; }

bool graph_recurs(const Graph *g) {
  for (GraphWalk w = walk_begin(g, 1); walk_next(&w);)
    if (graph_node_at(g, w.node)->kind == NODE_recur) return true;
  return false;
}

u64 graph_elements(const Graph *g, ValueId v) {
  const ArrayType *t = value_type(g, v);
  u64 n = 1;
  for (u32 d = 0; t && d < t->rank; d++) {
    i64 size;
    if (!size_hint(&g->sizes, t->dims[d], &size)) return UINT64_MAX;
    if (size > 0 && n < GRAPH_MANY) n *= (u64)size;
  }
  return n;
}

/* Of an operation on numbers and small arrays; 0: much more than what such a count says. */
static u64 eager_cost(const Tunables *tun, const Graph *g, NodeId id) {
  const GraphNode *n = graph_node_at(g, id);
  u64 most = 0;
  bool array = false;
  /* however large what it reads from */
  if (n->kind == NODE_index && !value_type(g, node_result(g, id, 0))->rank) return (u64)tun->array_op_ns;
  if (n->kind == NODE_op && n->op != OP_none) {
    u32 family = op_info(n->op)->family;
    if (family != FAM_elementwise && family != FAM_reduce && family != FAM_view && family != FAM_index &&
        family != FAM_make)
      return 0;
  }
  for (u32 i = 0; i < n->operand_count + n->result_count; i++) {
    ValueId v = i < n->operand_count ? node_operand(g, id, i) : node_result(g, id, i - n->operand_count);
    if (value_is_token(g, v) || !value_type(g, v)) continue;
    u64 elements = graph_elements(g, v);
    array |= value_type(g, v)->rank > 0;
    if (elements > most) most = elements;
  }
  if (most > (u64)tun->small_elements) return 0;
  return array ? (u64)tun->array_op_ns + most * (u64)tun->array_item_ps / PS_PER_NS : (u64)tun->scalar_op_ns;
}

/* Records and lists that the region gives back, by their parts. */
static u64 built_cost(const Tunables *tun, const ExitTable *x) {
  u64 parts = 0;
  for (u32 i = 0; i < x->exits.count; i++) {
    const Exit *e = &x->exits.data[i];
    const ExitFrame *f = &x->frames.data[e->frame_first];
    if (e->kind != EXIT_return || !e->frame_count) continue;
    for (u32 k = 0; k < f->count; k++) {
      const Recipe *r = &x->recipes.data[x->regs.data[f->first + k].recipe];
      if (r->memo && r->weight > parts) parts = r->weight;
    }
  }
  return parts * (u64)tun->scalar_op_ns;
}

/* All arms of conditions count, so that it is rather too much. */
static u64 eager_sum(const Tunables *tun, const Graph *g, bool early, u64 sum) {
  for (GraphWalk w = walk_begin(g, 1); walk_next(&w);) {
    u64 cost = 0;
    switch (graph_node_at(g, w.node)->kind) {
      case NODE_op:
      case NODE_index:
      case NODE_update: cost = eager_cost(tun, g, w.node); break;
      case NODE_check: continue;
      case NODE_cond: cost = (u64)tun->scalar_op_ns; break;
      case NODE_while:
      case NODE_scan:
        if (early) return sum;
        break;
      default: break;
    }
    if (!cost) return 0;
    sum += cost;
  }
  return sum;
}

u64 region_eager_ns(const Tunables *tun, const Graph *g) {
  return g->batched ? 0 : eager_sum(tun, g, false, built_cost(tun, &g->exits));
}

u64 region_early_ns(const Tunables *tun, const Graph *g) { return eager_sum(tun, g, true, (u64)tun->scalar_op_ns); }
