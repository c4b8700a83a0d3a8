/* repr_list.c — lists that are known item by item: what a program writes as `[a, b]` or `(a, b)`, and short ones from
 * outside. One from outside keeps its source and the value it has now (`konst`) until it is changed. `op`
 * BESIDE_CELLS: a tree and what a construct's body writes beside it (record.h). */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/abstract.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_whole.h"

bool rec_look_into(Recorder *r, List *l) {
  bool raised = r->vm->error.raised;
  if (list_boxed(r->vm, l)) return true;
  if (!raised) vm_error_clear(r->vm);
  r->failed = true;
  return false;
}

static bool lazy_item(Recorder *r, u32 at, SourceId s, Value now) {
  Av item = av_lazy(r, s, now);
  if (item && !MECHANISM(r->vm, items_are_lazy)) item = av_force(r, item);
  if (item) r->items.data[at] = item;
  return item != 0;
}

bool av_empty_items(Recorder *r, u32 n, u32 *first) {
  *first = r->items.count;
  for (u32 i = 0; i < n; i++)
    if (!vec_push(&r->vm->alloc, &r->items, 0)) return false;
  return true;
}

Av av_read_list(Recorder *r, SourceId s, Value v, Span why) {
  GuardSet *gs = &r->g->guards;
  List *l = v.list;
  u32 first;
  if (!rec_look_into(r, l) || !guard_len(gs, s, REL_eq, l->count, why)) return 0;
  if (!av_empty_items(r, l->count, &first)) return 0;
  for (u32 i = 0; i < l->count; i++)
    if (!lazy_item(r, first + i, source_step(gs, s, SRC_item, i, NULL), l->items[i])) return 0;
  return av_new(r, (AbsVal){.kind = AV_list, .first = first, .count = l->count, .source = s, .konst = v});
}

static Av input(Recorder *r, SourceId s, Value v, Span why) {
  if (av_is_many(r, s, AV_list, v.list->count, NULL) || !MECHANISM(r->vm, containers_taken_apart))
    return av_outer(r, s, v, why);
  return av_read_list(r, s, v, why);
}

/* ---- used -------------------------------------------------------------------------------------------------------- */

static Outcome item(Recorder *r, Av a, Av at, Av *out) {
  u32 i;
  i64 known;
  if (rec_list_position(r, a, at, &i)) return rec_made(r, av_item(r, a, i), out);
  if (av_known_int(r, at, &known)) return rec_stuck(r, REASON_raises, "a list position out of range");
  Outcome o = rec_rows_here(r, a, &a);
  return o == OUT_GO ? rec_item(r, a, at, out) : o;
}

static Outcome slice(Recorder *r, Av a, const Av *parts, Av *out) {
  const u32 first = av_at(r, a)->first;
  i64 n = av_at(r, a)->count, start = 0, stop = n;
  Value part;
  for (u32 p = 0; p < 3; p++) {
    i64 k;
    if (av_const_value(r, parts[p], &part) && part.kind == V_NIL) continue;
    if (p == 2 || !av_known_int(r, parts[p], &k)) return rec_list_slice(r, a, parts, out);
    if (k < 0) k = k + n < 0 ? 0 : k + n;
    if (k > n) k = n;
    *(p == 0 ? &start : &stop) = k;
  }
  return rec_made(r, av_list_of(r, first + (u32)start, stop > start ? (u32)(stop - start) : 0), out);
}

/* ---- rebuilt ----------------------------------------------------------------------------------------------------- */

static RecipeId make(ExitTable *t, const AbsVal *v, const RecipeId *items, u32 count) {
  (void)v;
  return recipe_list(t, items, count);
}

static RecipeId recipe(Recorder *r, Av a) { return repr_items_recipe(r, a, av_at(r, a)->count, make); }
static RecipeId hand(Handing *h, Av a, u32 depth) {
  return repr_items_hand(h, a, av_at(h->r, a)->count, depth, make);
}

static bool example(Recorder *r, Av a, u32 depth, Value *out) {
  const u32 n = av_at(r, a)->count;
  if (!list_new(r->vm, n, out)) return false;
  for (u32 i = 0; i < n; i++) {
    Value item;
    if (abstract_value(r, av_item(r, a, i), depth + 1, &item) && list_push(r->vm, out, item)) continue;
    value_drop(r->vm, *out);
    return false;
  }
  return true;
}

const Repr repr_list = {
    .name = "list",
    .type = "list",
    .same = repr_same_parts,
    .recipe = recipe,
    .hand = hand,
    .example = example,
    .input = input,
    .length = repr_items_length,
    .item = item,
    .slice = slice,
};
