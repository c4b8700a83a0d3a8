/* pull_save.c — what is saved of the trips of a loop for the way back over it: by stacking it where the loop does so
 * already, else by running once more what it comes from.
 *
 * A value that has another length in each trip, such as what the trips of a loop inside have read, goes into one array
 * for all trips, one behind the other. The trips run once before to tell how long that is, and each saves where its
 * part begins; so the memory is that of what is saved. Example: `for i in 0..n { for j in 0..i { … } }` saves
 * 0 + 1 + … + (n - 1) numbers for each number that a trip of the inner loop needs. */
#include "hop/pull_loop.h"
#include "tracer/record/absval_use.h"

bool pull_ragged(const Graph *g, ValueId v) {
  const ArrayType *t = value_type(g, v);
  if (!t->rank || !size_is_unbacked(&g->sizes, t->dims[0])) return false;
  for (u32 d = 1; d < t->rank; d++)
    if (size_is_unbacked(&g->sizes, t->dims[d])) return false;
  return true;
}

static const IndexItem part_items = {.kind = INDEX_array, .part = {PART_operand}, .at = {1}};

/* The numbers at, at + 1, … of a part of that length. */
static ValueId part_places(Graph *g, ValueId at, Dim length, u32 device) {
  GraphAttr stop[5] = {attr_dim(0, length), attr_hole(1), attr_hole(2), attr_hole(3), attr_int(4, device)};
  ValueId v = graph_op(g, OP_arange, NULL, 0, stop, device ? 5 : 4, NULL);
  return v ? graph_op2(g, OP_add, at, v) : 0;
}

ValueId loop_saved_part(Graph *g, ValueId all, ValueId at, TypeId type) {
  ValueId places = part_places(g, at, type_of(g, type)->dims[0], type_of(g, type)->device);
  return places ? graph_index(g, all, &places, 1, &part_items, 1, type) : 0;
}

/* ---- how long all parts are -------------------------------------------------------------------------------------- */

typedef struct Parts {
  Recorder *r;
  Loop *l;
  VEC(Dim) lengths; /* in a trip: each once */
  VEC(Dim) totals;
  ValueVec of;      /* of each value that is saved: its length, + 1; 0: one number or array of each trip */
  bool ok;
  ValueVec *sources;
} Parts;

static void add_source(void *ctx, u32 sym) {
  Parts *p = ctx;
  ValueId v = p->r->g->sizes.syms.data[sym].source;
  if (v && p->r->g->sizes.syms.data[sym].unbacked) p->ok = p->ok && vec_push(&p->r->vm->alloc, p->sources, v);
}

static bool add_part(Parts *p, ValueId v) {
  Graph *g = p->r->g;
  Allocator *alloc = &p->r->vm->alloc;
  u32 at = 0;
  if (!pull_ragged(g, v)) return vec_push(alloc, &p->of, 0);
  Dim n = value_type(g, v)->dims[0];
  while (at < p->lengths.count && !size_same(&g->sizes, p->lengths.data[at], n)) at++;
  if (at == p->lengths.count && !vec_push(alloc, &p->lengths, n)) return false;
  return vec_push(alloc, &p->of, at + 1);
}

/* Only what the lengths come from runs. */
static bool count_parts(Parts *p) {
  Recorder *r = p->r;
  Graph *g = r->g;
  Loop *l = p->l;
  Allocator *alloc = &r->vm->alloc;
  ValueVec sources = {0}, init = {0}, next = {0}, sizes = {0};
  LoopKept kept = {0};
  ValueMap map;
  map_init(&map, alloc);
  p->sources = &sources;
  for (u32 i = 0; i < p->lengths.count; i++) size_symbols(&g->sizes, p->lengths.data[i], add_source, p);
  bool ok = p->ok && loop_keep(r, l, 0, &sources, &kept) && loop_kept_init(r, l, &kept, &init);
  for (u32 i = 0; i < p->lengths.count && ok; i++)
    ok = vec_push(alloc, &sizes, graph_size(g, p->lengths.data[i])) && sizes.data[i] &&
         vec_push(alloc, &init, graph_const_f64(g, DT_i64, 0)) &&
         vec_push(alloc, &kept.with, graph_scalar_type(g, DT_i64, false));
  u32 carried = init.count;
  for (u32 i = 0; i < l->nxs && ok; i++) ok = vec_push(alloc, &init, node_operand(g, l->node, l->carried + i));
  BlockId made = ok ? graph_open(g) : 0;
  ok = made && loop_run_kept(r, l, &kept, l->body, &map) && loop_kept_next(r, l, &kept, &map, &next);
  for (u32 i = 0; i < sizes.count && ok; i++)
    ok = vec_push(alloc, &next, graph_op2(g, OP_add, kept.given.data[i], map_get(&map, sizes.data[i])));
  ok = ok && graph_close(g, TERM_next, next.data, next.count, 0);
  NodeId node = 0;
  if (ok) node = graph_scan(g, init.data, carried, init.data + carried, l->nxs, l->trips, l->reverse, l->index, made);
  ok = node && pull_drop_captures(r, node);
  for (u32 i = 0; i < sizes.count && ok; i++) {
    Dim total;
    ok = loop_counted_dim(r, node_result(g, node, carried - sizes.count + i), &total) &&
         vec_push(alloc, &p->totals, total);
  }
  loop_keep_free(r, &kept);
  map_free(&map);
  ValueVec *all[] = {&sources, &init, &next, &sizes};
  for (u32 i = 0; i < COUNT_OF(all); i++) vec_free(alloc, all[i]);
  return ok;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

/* What the scan carries beside: for each length where the next part begins, then an array for each value of parts. */
static bool begin_parts(Parts *p, const ValueVec *wanted, LoopKept *kept, ValueVec *init) {
  Graph *g = p->r->g;
  Allocator *alloc = &p->r->vm->alloc;
  bool ok = true;
  for (u32 i = 0; i < p->lengths.count && ok; i++)
    ok = vec_push(alloc, init, graph_const_f64(g, DT_i64, 0)) &&
         vec_push(alloc, &kept->with, graph_scalar_type(g, DT_i64, false));
  for (u32 i = 0; i < wanted->count && ok; i++) {
    if (!p->of.data[i]) continue;
    ArrayType t = *value_type(g, wanted->data[i]);
    t.dims[0] = p->totals.data[p->of.data[i] - 1];
    t.weak = false;
    ValueId all = graph_full_as(g, &t, 0);
    ok = all && vec_push(alloc, init, all) && vec_push(alloc, &kept->with, graph_type(g, &t));
  }
  return ok;
}

static bool next_parts(Parts *p, const ValueVec *wanted, const LoopKept *kept, const ValueMap *map, ValueVec *next) {
  Graph *g = p->r->g;
  Allocator *alloc = &p->r->vm->alloc;
  u32 lengths = p->lengths.count, array = lengths;
  bool ok = true;
  for (u32 k = 0; k < lengths && ok; k++) {
    u32 i = 0;
    while (p->of.data[i] != k + 1) i++;
    ValueId n = graph_size(g, value_type(g, map_get(map, wanted->data[i]))->dims[0]);
    ok = n && vec_push(alloc, next, graph_op2(g, OP_add, kept->given.data[k], n));
  }
  for (u32 i = 0; i < wanted->count && ok; i++) {
    if (!p->of.data[i]) continue;
    ValueId v = map_get(map, wanted->data[i]);
    ValueId places = part_places(g, kept->given.data[p->of.data[i] - 1], value_type(g, v)->dims[0],
                                 value_type(g, v)->device);
    v = places ? graph_convert(g, v, value_type(g, v)->dtype) : 0;
    ok = v && vec_push(alloc, next, graph_update(g, OP_none, kept->given.data[array++], &places, 1, &part_items, 1, v));
  }
  return ok;
}

/* Of the values that nothing has stacked yet; *node: the scan, in which `kept` values are carried, then parts. */
static bool run_to_save(Parts *p, const ValueVec *wanted, NodeId *node, u32 *carried) {
  Recorder *r = p->r;
  Graph *g = r->g;
  Loop *l = p->l;
  Allocator *alloc = &r->vm->alloc;
  ValueVec init = {0}, next = {0};
  LoopKept kept = {0};
  ValueMap map;
  map_init(&map, alloc);
  bool ok = loop_keep(r, l, 0, wanted, &kept) && loop_kept_init(r, l, &kept, &init);
  *carried = init.count;
  ok = ok && begin_parts(p, wanted, &kept, &init);
  u32 all = init.count;
  for (u32 i = 0; i < l->nxs && ok; i++) ok = vec_push(alloc, &init, node_operand(g, l->node, l->carried + i));
  BlockId made = ok ? graph_open(g) : 0;
  ok = made && loop_run_kept(r, l, &kept, l->body, &map) && loop_kept_next(r, l, &kept, &map, &next) &&
       next_parts(p, wanted, &kept, &map, &next);
  for (u32 i = 0; i < p->lengths.count && ok; i++)
    ok = vec_push(alloc, &next, graph_convert(g, kept.given.data[i], DT_i64));
  for (u32 i = 0; i < wanted->count && ok; i++) {
    ValueId v = map_get(&map, wanted->data[i]);
    if (!p->of.data[i]) ok = vec_push(alloc, &next, graph_convert(g, v, value_type(g, v)->dtype));
  }
  ok = ok && graph_close(g, TERM_next, next.data, next.count, 0);
  *node = 0;
  if (ok) *node = graph_scan(g, init.data, all, init.data + all, l->nxs, l->trips, l->reverse, l->index, made);
  ok = *node && pull_drop_captures(r, *node);
  loop_keep_free(r, &kept);
  map_free(&map);
  vec_free(alloc, &init);
  vec_free(alloc, &next);
  return ok;
}

static bool save_missing(Recorder *r, Loop *l) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  Parts p = {.r = r, .l = l, .ok = true};
  ValueVec wanted = {0};
  NodeId node;
  u32 carried = 0, i = 0;
  bool ok = true;
  for (u32 k = 0; k < l->saved.count && ok; k++) {
    if ((k < l->carried && !l->needed[k]) || l->saved.data[k]) continue;
    ValueId v = k < l->carried ? g->blocks.data[l->body].params.data[k] : l->cut.data[k - l->carried];
    ok = vec_push(alloc, &wanted, v) && (k < l->carried ? vec_push(alloc, &p.of, 0) : add_part(&p, v));
  }
  ok = ok && (!p.lengths.count || count_parts(&p)) && run_to_save(&p, &wanted, &node, &carried);
  u32 array = carried + p.lengths.count, start = array, stacked;
  for (u32 k = 0; k < wanted.count && ok; k++) start += p.of.data[k] != 0;
  stacked = start + p.lengths.count;
  for (u32 k = 0; k < l->saved.count && ok; k++) {
    if ((k < l->carried && !l->needed[k]) || l->saved.data[k]) continue;
    u32 of = p.of.data[i++];
    l->saved.data[k] = node_result(g, node, of ? array++ : stacked++);
    if (of) l->starts.data[k - l->carried] = node_result(g, node, start + of - 1);
  }
  vec_free(alloc, &wanted);
  vec_free(alloc, &p.lengths);
  vec_free(alloc, &p.totals);
  vec_free(alloc, &p.of);
  return ok;
}

bool loop_save(Recorder *r, Loop *l) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  const GraphBlock *b = &g->blocks.data[l->body];
  u32 missing = 0;
  l->saved.count = l->starts.count = 0;
  for (u32 i = 0; i < l->carried; i++) {
    ValueId found = 0;
    for (u32 k = 0; k < l->stacked && !found; k++)
      if (loop_stacks(g, l, k, b->params.data[i])) found = node_result(g, l->node, l->carried + k);
    if (!vec_push(alloc, &l->saved, found)) return false;
    missing += l->needed[i] && !found;
  }
  for (u32 i = 0; i < l->cut.count; i++) {
    ValueId found = 0;
    for (u32 k = 0; k < l->stacked && !found; k++)
      if (loop_stacks(g, l, k, l->cut.data[i])) found = node_result(g, l->node, l->carried + k);
    if (!vec_push(alloc, &l->saved, found) || !vec_push(alloc, &l->starts, 0)) return false;
    missing += !found;
  }
  return !missing || save_missing(r, l);
}
