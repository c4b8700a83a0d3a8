/* pull_loop.c — the way back over a loop: a scan over its trips from the last to the first. */
#include "hop/pull_loop.h"

#include <string.h>

#include "hop/rules.h"
#include "tracer/record/record_run.h"

/* The way back while it is made. */
typedef struct Back {
  Walk *w;
  Loop *l;
  Walk inner;         /* over one trip, in `block` */
  BlockId block;
  bool trial;
  ValueVec init, xs;  /* operands of the scan */
  /* what gets sums, outside: captures, what carried values are in the first trip, and what these stand for */
  ValueVec caps;
  ValueVec fill;      /* of each: Filled, and MIXED */
  ValueVec params;    /* of the trip forward: carried values, items, its number */
  ValueVec cut;       /* parameters: what was saved of a trip beside carried values */
  /* parameters: of carried values, of captures; what is there of those; of stacked results */
  ValueVec cts, sums, flags, rows;
  ValueVec variables; /* carried values, items, captures, as the trip has them */
  u32 ncarried, nitems; /* of the variables */
  ValueId index;      /* the number of the trip; 0: nobody asks */
  ValueVec next;
} Back;

static bool pull_loop_push(Back *b, ValueVec *to, ValueId v) { return v && vec_push(&b->w->r->vm->alloc, to, v); }
static bool takes(const Graph *g, const Loop *l, u32 i) {
  return l->reached[i] && pull_is_float(g, g->blocks.data[l->body].params.data[i]);
}
static bool item_counts(const Back *b, u32 i) {
  const Graph *g = b->w->r->g;
  return pull_is_active(b->w, loop_operand(b->w, b->l, b->l->carried + i)) &&
         pull_is_float(g, g->blocks.data[b->l->body].params.data[b->l->carried + i]);
}
static ArrayType strong(const Graph *g, ValueId v) {
  ArrayType t = *value_type(g, v);
  t.weak = false;
  return t;
}
/* There when the loop begins, whatever its trips do. */
static bool is_settled(const Walk *w, ValueId capture) { return w->ct[capture] && !w->there[capture]; }
/* Beside Filled: items are added to it, and wholes. The first whole takes the place of the zeros that items need. */
enum { MIXED = 4 };

/* Is it carried along whether a capture, by its number among the variables, is there. */
static bool cap_has_flag(const Back *b, u32 k) {
  u8 given = b->l->given[b->nitems + k];
  return !b->trial && !is_settled(b->w, b->caps.data[k]) &&
         (given == GIVEN_maybe || (given == GIVEN_always && b->fill.data[k] & MIXED));
}

/* How the nodes of a block, however deep, use a value: 1: by index, 2: otherwise. */
static u32 uses_of(const Graph *g, BlockId block, ValueId v) {
  u32 uses = 0;
  for (NodeId n = block_first(g, block); n; n = node_next(g, n)) {
    const GraphNode *x = graph_node_at(g, n);
    u32 first, ncaps = node_captures(g, n, &first),
        lead = node_subs(g, n) ? x->operand_count - ncaps : x->operand_count;
    for (u32 k = 0; k < lead; k++)
      if (node_operand(g, n, k) == v) uses |= x->kind == NODE_index && k == 0 ? 1 : 2;
    for (u32 i = 0; i < node_subs(g, n); i++) {
      const GraphBlock *sub = &g->blocks.data[x->sub[i]];
      for (u32 c = 0; c < sub->captures.count; c++)
        if (sub->captures.data[c].outer == v) uses |= uses_of(g, x->sub[i], sub->captures.data[c].inner);
    }
  }
  for (u32 i = 0; i < g->blocks.data[block].term_count; i++)
    if (block_result(g, block, i) == v) uses |= 2;
  return uses;
}

/* Adds v to what gets sums, and all that it stands for. `uses`: of it in the body. */
static bool add_cap(Back *b, ValueId v, u32 uses) {
  Walk *w = b->w;
  Allocator *alloc = &w->r->vm->alloc;
  u32 at = 0;
  while (at < b->caps.count && b->caps.data[at] != v) at++;
  if (at == b->caps.count && (!vec_push(alloc, &b->caps, v) || !vec_push(alloc, &b->fill, 0))) return false;
  if (w->alias[v] && uses) uses = 2; /* what stands for others is given wholes, of an item as well */
  if (w->filled[v] == FILLED_zero) uses |= 1;
  if (b->fill.data[at]) uses |= (b->fill.data[at] & MIXED ? 3u : (b->fill.data[at] & FILLED_zero) ? 1u : 2u);
  b->fill.data[at] = (uses & 1 ? FILLED_zero : FILLED_nothing) | (uses == 3 ? MIXED : 0);
  for (u32 i = w->alias[v]; i; i = w->aliases.data[i - 1].next)
    if (!add_cap(b, w->aliases.data[i - 1].source, 2)) return false;
  return true;
}

/* An array that is there in some trips only is carried as 0 where it is not: else each use of an element of it in each
 * trip would look at all of it. */
static bool carries_zeros(const Graph *g, const Loop *l, u32 i) {
  return l->maybe[i] && value_type(g, g->blocks.data[l->body].params.data[i])->rank > 0;
}

/* What the scan carries, as it begins: cotangents of carried values that have any, sums of captures, and bools. */
static bool begin(Back *b) {
  Walk *w = b->w;
  Graph *g = w->r->g;
  Loop *l = b->l;
  bool ok = true;
  for (u32 i = 0; i < l->carried && ok; i++) {
    if (!takes(g, l, i)) continue;
    ArrayType t = strong(g, g->blocks.data[l->body].params.data[i]);
    ValueId ct = l->ct[i];
    if (ct && carries_zeros(g, l, i) && l->filled[i] != FILLED_zero) ct = pull_only_if(w, l->there[i], ct, 0);
    ok = pull_loop_push(b, &b->init, ct ? deriv_fit(&w->d.head, ct, &t) : pull_zeros(g, &t));
  }
  b->ncarried = b->init.count;
  for (u32 i = 0; i < l->nxs; i++) b->nitems += item_counts(b, i);
  for (u32 i = 0; i < l->ncaps && ok; i++) {
    ValueId v = loop_operand(w, l, l->first + i);
    if (pull_is_active(w, v) && pull_is_float(g, v))
      ok = add_cap(b, v, uses_of(g, l->body, g->blocks.data[l->body].captures.data[i].inner));
  }
  for (u32 i = 0; i < l->carried && ok; i++)
    if (l->alias[i]) ok = add_cap(b, loop_operand(w, l, i), 2);
  for (u32 i = 0; i < b->caps.count && ok; i++) { /* one sum over all trips of all loops, in the order of the tape */
    ValueId v = b->caps.data[i];
    ArrayType t = strong(g, v);
    f64 with = b->fill.data[i] & FILLED_zero ? 0.0 : -0.0;
    ValueId sum = w->filled[v] ? w->ct[v] : pull_only_if(w, w->there[v], w->ct[v], with);
    ok = pull_loop_push(b, &b->init, sum ? deriv_fit(&w->d.head, sum, &t) : pull_fill(g, &t, with));
  }
  return ok;
}

static bool begin_flags(Back *b) {
  Walk *w = b->w;
  Graph *g = w->r->g;
  Loop *l = b->l;
  bool ok = true;
  for (u32 i = 0; i < l->carried && ok; i++)
    if (takes(g, l, i) && l->maybe[i])
      ok = pull_loop_push(b, &b->init, !l->ct[i] ? pull_bool(g, false) : l->there[i]
                                           ? graph_convert(g, l->there[i], DT_bool) : pull_bool(g, true));
  for (u32 i = 0; i < b->nitems && ok && !b->trial; i++)
    if (l->given[i] == GIVEN_maybe) ok = pull_loop_push(b, &b->init, pull_bool(g, false));
  for (u32 k = 0; k < b->caps.count && ok; k++)
    if (cap_has_flag(b, k))
      ok = pull_loop_push(b, &b->init,
                w->ct[b->caps.data[k]] ? graph_convert(g, w->there[b->caps.data[k]], DT_bool) : pull_bool(g, false));
  return ok;
}

/* The items that the scan walks: saved values, items, cotangents of stacked results. */
static bool walked(Back *b) {
  Walk *w = b->w;
  Graph *g = w->r->g;
  Loop *l = b->l;
  bool ok = true;
  for (u32 i = 0; i < l->carried && ok && !b->trial; i++)
    if (l->needed[i]) ok = pull_loop_push(b, &b->xs, l->saved.data[i]);
  for (u32 i = 0; i < l->cut.count && ok && !b->trial; i++)
    ok = pull_loop_push(b, &b->xs, l->starts.data[i] ? l->starts.data[i] : l->saved.data[l->carried + i]);
  for (u32 i = 0; i < l->nxs && ok; i++) ok = pull_loop_push(b, &b->xs, node_operand(g, l->node, l->carried + i));
  for (u32 i = 0; i < l->stacked && ok; i++) {
    ArrayType t = *value_type(g, node_result(g, l->node, l->carried + i));
    if (l->ct[l->carried + i]) ok = pull_loop_push(b, &b->xs, deriv_fit(&w->d.head, l->ct[l->carried + i], &t));
  }
  return ok;
}

static bool carried_params(Back *b) {
  Graph *g = b->w->r->g;
  Loop *l = b->l;
  bool ok = true;
  for (u32 i = 0; i < l->carried && ok; i++) {
    ValueId like = g->blocks.data[l->body].params.data[i];
    if (b->trial || l->needed[i]) {
      ok = pull_loop_push(b, &b->params, graph_param(g, b->block, g->values.data[like].type));
      continue;
    }
    ArrayType t = *value_type(g, like); /* computed by nothing that counts */
    ValueId zero = t.rank ? graph_full_as(g, &t, 0)
                          : graph_const(g, (Value){.kind = V_NUM, .dtype = t.dtype, .flags = t.weak ? VF_WEAK : 0});
    /* a variable is no constant */
    ok = pull_loop_push(b, &b->params, !t.rank && pull_is_float(g, like) ? graph_op1(g, OP_positive, zero) : zero);
  }
  TypeId start = graph_scalar_type(g, DT_i64, false);
  for (u32 i = 0; i < l->cut.count && ok && !b->trial; i++)
    ok = pull_loop_push(b, &b->cut,
                        graph_param(g, b->block, l->starts.data[i] ? start : g->values.data[l->cut.data[i]].type));
  return ok;
}

static bool parameters(Back *b) {
  Recorder *r = b->w->r;
  Graph *g = r->g;
  Loop *l = b->l;
  bool ok = true;
  for (u32 i = 0; i < b->init.count && ok; i++) {
    ValueVec *to = i < b->ncarried ? &b->cts : i < b->ncarried + b->caps.count ? &b->sums : &b->flags;
    ok = pull_loop_push(b, to, graph_param(g, b->block, g->values.data[b->init.data[i]].type));
  }
  return ok && carried_params(b) && loop_params_like(r, b->block, l, l->carried, l->nxs, &b->params);
}

static bool row_params(Back *b) {
  Graph *g = b->w->r->g;
  Loop *l = b->l;
  bool ok = true;
  for (u32 i = 0; i < l->stacked && ok; i++) {
    ArrayType t = *value_type(g, node_result(g, l->node, l->carried + i));
    t.rank--;
    memmove(t.dims, t.dims + 1, sizeof t.dims[0] * t.rank);
    if (l->ct[l->carried + i]) ok = pull_loop_push(b, &b->rows, graph_param(g, b->block, graph_type(g, &t)));
    else ok = vec_push(&b->w->r->vm->alloc, &b->rows, 0);
  }
  return ok;
}

/* What the trip depends on. In a trial every carried float. */
static bool name_variables(Back *b) {
  Graph *g = b->w->r->g;
  Loop *l = b->l;
  bool ok = true;
  for (u32 i = 0; i < l->carried && ok; i++)
    if (b->trial ? pull_is_float(g, b->params.data[i]) : takes(g, l, i))
      ok = pull_loop_push(b, &b->variables, b->params.data[i]);
  b->ncarried = b->variables.count;
  for (u32 i = 0; i < l->nxs && ok; i++)
    if (item_counts(b, i)) ok = pull_loop_push(b, &b->variables, b->params.data[l->carried + i]);
  for (u32 i = 0; i < b->caps.count && ok; i++)
    ok = pull_loop_push(b, &b->variables, graph_lift(g, b->block, b->caps.data[i]));
  return ok;
}

/* Carried values that are, in the first trip, values from outside. */
static bool alias_first(Back *b) {
  Graph *g = b->w->r->g;
  Loop *l = b->l;
  const ValueId *inside = b->variables.data + b->ncarried + b->nitems;
  if (!pull_lift_aliases(&b->inner, b->w, b->block, &b->caps, inside)) return false;
  ValueId first = 0;
  for (u32 i = 0; i < l->carried; i++) {
    if (!l->alias[i] || !pull_is_active(&b->inner, b->params.data[i])) continue;
    if (!first)
      first = graph_op2(g, OP_equal, b->index, l->reverse ? graph_size(g, size_sub(&g->sizes, l->trips, 1))
                                                          : graph_const(g, value_weak_i64(0)));
    u32 at = 0;
    while (b->caps.data[at] != loop_operand(b->w, l, i)) at++;
    if (!first || !pull_alias(&b->inner, b->params.data[i], inside[at], first, ARM_none)) return false;
  }
  return true;
}

/* The trip's cotangents as they stand behind it. A sum that is not there before the loop counts as none in the
 * trip, but where wholes and items are added to it. */
static void pull_loop_seed(Back *b, const ValueMap *map) {
  Graph *g = b->w->r->g;
  Loop *l = b->l;
  u32 k = 0, f = 0, cap_flag = 0;
  for (u32 i = 0; i < l->carried; i++) cap_flag += takes(g, l, i) && l->maybe[i];
  for (u32 i = 0; i < b->nitems && !b->trial; i++) cap_flag += l->given[i] == GIVEN_maybe;
  for (u32 i = 0; i < b->caps.count; i++) {
    ValueId v = b->variables.data[b->ncarried + b->nitems + i], there = 0;
    if (!is_settled(b->w, b->caps.data[i])) {
      there = pull_bool(g, false);
      if (cap_has_flag(b, i)) there = b->fill.data[i] & MIXED ? b->flags.data[cap_flag] : there;
      cap_flag += cap_has_flag(b, i);
      b->inner.filled[v] = (u8)(b->fill.data[i] & 3);
    }
    b->inner.ct[v] = b->sums.data[i];
    b->inner.there[v] = there;
  }
  for (u32 i = 0; i < l->carried; i++) {
    if (!takes(g, l, i)) continue;
    ValueId y = map_get(map, block_result(g, l->body, i)), to = graph_lift(g, b->block, y);
    pull_give_filled(&b->inner, to ? to : y, b->cts.data[k++], l->maybe[i] ? b->flags.data[f++] : 0,
                     carries_zeros(g, l, i));
  }
  for (u32 i = 0; i < l->stacked; i++) {
    if (!b->rows.data[i]) continue;
    ValueId y = map_get(map, block_result(g, l->body, l->carried + i)), to = graph_lift(g, b->block, y);
    pull_give_if(&b->inner, to ? to : y, b->rows.data[i], l->there[l->carried + i]);
  }
}

static u8 how_given(const Back *b, ValueId v) {
  const Walk *w = &b->inner;
  if (!w->ct[v] || w->there[v] == pull_bool(b->w->r->g, false)) return GIVEN_never;
  return w->there[v] ? GIVEN_maybe : GIVEN_always;
}

/* What a trial has shown: which carried values got a cotangent from those of the results, and whether in every trip. */
static void learn(Back *b, bool *grown) {
  const Graph *g = b->w->r->g;
  Loop *l = b->l;
  u32 k = 0;
  for (u32 i = 0; i < l->carried; i++) {
    if (!pull_is_float(g, b->params.data[i])) continue;
    u8 how = how_given(b, b->variables.data[k++]);
    bool reached = l->reached[i], maybe = l->maybe[i];
    l->touched[i] |= how != GIVEN_never;
    if (how != GIVEN_never && !reached) l->reached[i] = l->maybe[i] = 1;
    if (how != GIVEN_always && reached) l->maybe[i] = 1;
    *grown |= reached != l->reached[i] || maybe != l->maybe[i];
  }
  for (u32 i = 0; k < b->variables.count; i++) l->given[i] = how_given(b, b->variables.data[k++]);
}

/* A part of what all trips saved is read in front of where the trip would compute it: its length is known there. */
static bool replace_cut(Back *b, const ValueMap *map) {
  Graph *g = b->w->r->g;
  const Loop *l = b->l;
  for (u32 i = 0; i < l->cut.count; i++) {
    ValueId v = map_get(map, l->cut.data[i]), saved = b->cut.data[i];
    if (l->starts.data[i]) {
      ValueId all = graph_lift(g, b->block, l->saved.data[l->carried + i]);
      graph_at(g, value_node(g, v));
      saved = all ? loop_saved_part(g, all, saved, g->values.data[v].type) : 0;
      graph_at_end(g, b->block);
    }
    if (!saved) return false;
    graph_replace_one(g, v, saved);
  }
  return true;
}

/* Where the way back reads what the trip computes, it reads what was saved of it. What it does not read is not
 * computed. */
static bool read_saved(Back *b, NodeId last, const ValueMap *map) {
  Recorder *r = b->w->r;
  Loop *l = b->l;
  if (!replace_cut(b, map)) return false;
  u32 count = r->g->values.count;
  u8 *live = pull_live(r, b->block, last, !l->unsaved);
  if (!live) return false;
  for (u32 i = 0; i < l->carried; i++) { /* what was not saved is not read */
    Value known;
    ValueId v = b->params.data[i];
    l->missed |= l->cut.count && !l->needed[i] && live[v] && !value_const(r->g, v, &known);
  }
  pull_drop_dead(r, b->block, last, !l->unsaved, live);
  mem_free(&r->vm->alloc, live, count);
  return true;
}

/* What a trial has shown of the values to be saved. Where none are, checks are made once more: another trial says what
 * these need. */
static bool choose_saved(Back *b, NodeId last, const ValueMap *map, bool *grown) {
  Recorder *r = b->w->r;
  Loop *l = b->l;
  u32 count = r->g->values.count;
  u8 *live = pull_live(r, b->block, last, !l->unsaved);
  if (!live) return false;
  for (u32 i = 0; i < l->carried; i++) l->needed[i] = live[b->params.data[i]];
  l->cut.count = 0;
  bool ok = l->missed || loop_choose_saved(r, l, b->block, last, map, b->params.data, live);
  mem_free(&r->vm->alloc, live, count);
  bool any = l->unsaved || l->cut.count > 0;
  for (u32 i = 0; i < l->carried; i++) any |= l->needed[i] != 0;
  *grown |= !any;
  l->unsaved |= !any;
  return ok;
}

/* What the next trip begins with, and the rows of the items. */
static bool finish(Back *b) {
  Walk *w = &b->inner;
  Graph *g = b->w->r->g;
  Loop *l = b->l;
  u32 nflags = 0, ncaps = b->ncarried + b->nitems, k = 0;
  bool ok = true;
  for (u32 i = 0; i < b->variables.count && ok; i++) {
    ValueId v = b->variables.data[i];
    ArrayType t = strong(g, v);
    if (i >= b->ncarried && i < ncaps) continue;
    ValueId ct = w->ct[v];
    if (i < b->ncarried && t.rank && ct && w->filled[v] != FILLED_zero) ct = pull_only_if(w, w->there[v], ct, 0);
    ok = pull_loop_push(b, &b->next, ct ? deriv_fit(&w->d.head, ct, &t) : pull_zeros(g, &t));
  }
  for (u32 i = 0; i < l->carried && ok; i++)
    if (b->trial ? pull_is_float(g, b->params.data[i]) : takes(g, l, i)) {
      ValueId v = b->variables.data[k++];
      if (b->trial || l->maybe[i]) ok = pull_loop_push(b, &b->next, pull_is_there(w, v));
      nflags += l->maybe[i];
    }
  for (u32 i = b->ncarried; i < b->variables.count && ok; i++) {
    ValueId there = pull_is_there(w, b->variables.data[i]);
    if (b->trial) ok = pull_loop_push(b, &b->next, there);
    else if (i < ncaps ? l->given[i - b->ncarried] == GIVEN_maybe : cap_has_flag(b, i - ncaps))
      ok = pull_loop_push(b, &b->next, pull_or(g, b->flags.data[nflags++], there));
  }
  for (u32 i = b->ncarried; i < ncaps && ok; i++) {
    ValueId v = b->variables.data[i];
    ArrayType t = strong(g, v);
    ok = pull_loop_push(b, &b->next, w->ct[v] ? deriv_fit(&w->d.head, pull_only_if(w, w->there[v], w->ct[v], -0.0), &t)
                                    : pull_fill(g, &t, -0.0));
  }
  return ok && graph_close(g, TERM_next, b->next.data, b->next.count, 0);
}

/* Was there a trip. 0: always. */
static ValueId any_trip(Graph *g, Dim trips) {
  if (size_prove(&g->sizes, REL_le, 1, trips) == TRUTH_always) return 0;
  return graph_convert(g, graph_op2(g, OP_greater, graph_size(g, trips), graph_const(g, value_weak_i64(0))), DT_bool);
}

/* The cotangents of all items. To what stands for the array already they are added; else to zeros, as those of single
 * items. */
static void give_rows(Walk *w, ValueId to, Dv rows, ValueId there) {
  Deriv *d = &w->d.head;
  if (!pull_is_active(w, to)) return;
  if (!w->ct[to] || w->there[to]) {
    Dv begun = dv_add(d, rows, dv_num(d, 0.0));
    rows = w->ct[to] && !w->filled[to] ? dv3(d, OP_where, w->there[to], rows, begun) : w->ct[to] ? rows : begun;
  }
  pull_give_if(w, to, rows, there);
}

/* The results of the scan, where they belong. */
static void deliver(Back *b, NodeId back) {
  Walk *w = b->w;
  Graph *g = w->r->g;
  Loop *l = b->l;
  u32 k = 0, nsums = b->ncarried, flag = nsums + b->caps.count, row = b->init.count;
  ValueId ran = any_trip(g, l->trips);
  u32 item_flag = flag;
  for (u32 i = 0; i < l->carried; i++) item_flag += takes(g, l, i) && l->maybe[i];
  u32 cap_flag = item_flag;
  for (u32 i = 0; i < b->nitems; i++) cap_flag += l->given[i] == GIVEN_maybe;
  for (u32 i = 0; i < b->caps.count; i++) {
    ValueId v = b->caps.data[i];
    u8 given = l->given[b->nitems + i];
    bool settled = is_settled(w, v), flag_of = cap_has_flag(b, i);
    ValueId flagged = flag_of ? node_result(g, back, cap_flag++) : 0;
    if (!settled && given == GIVEN_never) continue;
    ValueId before = w->ct[v] ? w->there[v] : pull_bool(g, false);
    w->there[v] = settled ? 0 : given == GIVEN_maybe ? flagged : pull_or(g, before, ran);
    w->ct[v] = node_result(g, back, nsums + i);
  }
  for (u32 i = 0; i < l->carried; i++)
    if (takes(g, l, i)) {
      ValueId ct = node_result(g, back, k++), there = l->maybe[i] ? node_result(g, back, flag++) : 0;
      if (!l->alias[i]) /* else its sum has got it */
        pull_give_filled(w, loop_operand(w, l, i), ct, there, carries_zeros(g, l, i));
    }
  for (u32 i = 0, n = 0; i < l->nxs; i++) {
    if (!item_counts(b, i)) continue;
    u8 given = l->given[n++];
    ValueId there = given == GIVEN_maybe ? node_result(g, back, item_flag++) : ran;
    if (given != GIVEN_never) give_rows(w, loop_operand(w, l, l->carried + i), node_result(g, back, row), there);
    row++;
  }
}

static Outcome go_back(Back *b, bool *grown) {
  Recorder *r = b->w->r;
  Graph *g = r->g;
  Loop *l = b->l;
  BlockId parent = g->at;
  ValueMap map;
  Outcome o = OUT_GO;
  map_init(&map, &r->vm->alloc);
  bool ok = begin(b) && begin_flags(b) && walked(b) && (b->block = graph_open(g)) != 0 && parameters(b) &&
            row_params(b);
  bool asks = l->index;
  for (u32 i = 0; i < l->carried; i++) asks |= l->alias[i] != 0;
  if (ok && l->index) ok = loop_params_like(r, b->block, l, l->carried + l->nxs, 1, &b->params);
  if (ok && asks)
    b->index = l->index ? b->params.data[b->params.count - 1]
                        : graph_param(g, b->block, graph_scalar_type(g, DT_i64, false));
  ok = ok && (!asks || b->index) && loop_run_again(r, l->node, l->body, b->params.data, b->params.count, &map);
  NodeId last = ok ? g->blocks.data[b->block].last : 0;
  ok = ok && name_variables(b) && pull_walk_init(&b->inner, r, b->block, 0, b->variables.data, b->variables.count) &&
       alias_first(b);
  b->inner.again = !l->unsaved;
  if (ok) {
    pull_loop_seed(b, &map);
    o = pull_walk_back(&b->inner);
  }
  if (ok && o == OUT_GO && b->trial) learn(b, grown);
  if (ok && o == OUT_GO) ok = finish(b);
  if (ok && o == OUT_GO) ok = b->trial ? choose_saved(b, last, &map, grown) : read_saved(b, last, &map);
  map_free(&map);
  if (ok && o == OUT_GO && !b->trial && !l->missed) {
    graph_at_end(g, parent);
    NodeId back = graph_scan(g, b->init.data, b->init.count, b->xs.data, b->xs.count, l->trips, !l->reverse,
                             asks, b->block);
    ok = back && pull_drop_captures(r, back);
    if (ok) g->nodes.data[back].lanes = graph_node_at(g, l->node)->lanes;
    if (ok) deliver(b, back);
  }
  if (!ok && o == OUT_GO)
    o = g->failed || r->failed ? OUT_FAIL : rec_stuck(r, REASON_no_rule, "the derivative of a loop");
  return o;
}

Outcome loop_back(Walk *w, Loop *l, bool *grown) {
  Allocator *alloc = &w->r->vm->alloc;
  Back b = {.w = w, .l = l, .inner = {.r = w->r}, .trial = grown != NULL};
  Outcome o = go_back(&b, grown);
  pull_walk_free(&b.inner);
  ValueVec *all[] = {&b.init, &b.xs, &b.caps, &b.fill, &b.params, &b.cut, &b.cts, &b.sums, &b.flags, &b.rows,
                     &b.variables, &b.next};
  for (u32 i = 0; i < COUNT_OF(all); i++) vec_free(alloc, all[i]);
  return o;
}
