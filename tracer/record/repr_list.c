/* repr_list.c — lists that are known item by item: what a program writes as `[a, b]` or `(a, b)`, and short ones from
 * outside. One from outside keeps its source and the value it has now (`konst`) until it is changed. `op`
 * BESIDE_CELLS: a tree and what a construct's body writes beside it (record.h). */
#include "lang/mechanisms.h"
#include "tracer/record/abstract.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_inner.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_whole.h"
#include "tracer/record/repr_stacked.h"

bool rec_look_into(Recorder *r, List *l) {
  bool raised = r->vm->error.raised;
  if (list_boxed(r->vm, l)) return true;
  if (!raised) vm_error_forget(r->vm);
  r->failed = true;
  return false;
}

static bool item_from_outside(Recorder *r, u32 at, SourceId s, Value now) {
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
    if (!item_from_outside(r, first + i, source_step(gs, s, SRC_item, i, NULL), l->items[i])) return 0;
  return av_new(r, (AbsVal){.kind = AV_list, .first = first, .count = l->count, .source = s, .konst = v});
}

static Av list_input(Recorder *r, SourceId s, Value v, Span why) {
  if (av_is_many(r, s, AV_list, v.list->count, NULL) || !MECHANISM(r->vm, containers_taken_apart))
    return av_outer(r, s, v, why);
  return av_read_list(r, s, v, why);
}

/* The same list or record with another item. */
Outcome rec_with_item(Recorder *r, Av obj, u32 i, Av item, Av *out) {
  AbsVal v = *av_at(r, obj);
  u32 first = r->items.count;
  for (u32 k = 0; k < v.count; k++)
    if (!vec_push(&r->vm->alloc, &r->items, k == i ? item : r->items.data[v.first + k])) return OUT_FAIL;
  v.first = first;
  v.source = 0;
  return rec_made(r, av_new(r, v), out);
}

/* ---- used -------------------------------------------------------------------------------------------------------- */

static Outcome list_item(Recorder *r, Av a, Av at, Av *out) {
  u32 i;
  i64 known;
  if (rec_list_position(r, a, at, &i)) return rec_made(r, av_item(r, a, i), out);
  if (av_known_int(r, at, &known)) return rec_stuck(r, REASON_raises, "a list position out of range");
  Outcome o = rec_rows_here(r, a, &a);
  return o == OUT_GO ? rec_item(r, a, at, out) : o;
}

/* A long one lies in columns; in a loop that walks over it again and again too. */
static Outcome list_walk(Recorder *r, Av a, Av *out) {
  const u32 most = 2 * (u32)r->vm->tunables.unroll_trips, n = av_at(r, a)->count;
  Outcome o = n > most && rec_is_list_source(av_at(r, a)) ? rec_rows_of(r, a, NULL, out) : OUT_STUCK;
  if (o != OUT_STUCK) return o;
  *out = a;
  if (n <= most || !r->loop) return OUT_GO;
  Av rows;
  o = rec_rows_here(r, a, &rows);
  if (o == OUT_GO) *out = rows;
  return o == OUT_FAIL || r->lacks ? o : OUT_GO;
}

static Outcome list_at(Recorder *r, Av a, Av pos, Av *out) {
  i64 known;
  if (!av_known_int(r, pos, &known) || known >= av_at(r, a)->count)
    return rec_stuck(r, REASON_loop_sequence, "a loop over a list");
  return rec_made(r, av_item(r, a, (u32)known), out);
}

static Outcome list_few_items(Recorder *r, Av a, AvVec *out) {
  const u32 n = av_at(r, a)->count;
  if (n > 2 * (u32)r->vm->tunables.unroll_trips) return rec_stuck(r, REASON_graph_size, "a list of %u items", n);
  for (u32 i = 0; i < n; i++)
    if (!vec_push(&r->vm->alloc, out, av_item(r, a, i))) return OUT_FAIL;
  return OUT_GO;
}

static Outcome list_array(Recorder *r, Av a, Av dtype, bool leaf, Av *out) {
  const u32 n = av_at(r, a)->count;
  Av few[32], *parts = n <= COUNT_OF(few) ? few : rec_avs(r, n);
  (void)leaf;
  if (!parts) return OUT_FAIL;
  if (n == 0) return rec_stuck(r, REASON_no_rule, "an array of no items");
  for (u32 i = 0; i < n; i++) {
    Outcome o = rec_array(r, av_item(r, a, i), dtype, true, &parts[i]);
    if (o != OUT_GO) return o;
  }
  Av params[OP_MAX_PARAMS] = {av_list(r, parts, n)};
  return rec_op(r, OP_stack, params, out);
}

static Outcome list_slice(Recorder *r, Av a, const Av *parts, Av *out) {
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

static Outcome list_store(Recorder *r, Av a, Av at, Av old, Av item, Av *out) {
  u32 i;
  (void)old;
  return rec_list_position(r, a, at, &i) ? rec_with_item(r, a, i, item, out)
                                         : rec_stuck(r, REASON_no_rule, "list updated by index");
}

static Outcome list_add(Recorder *r, Av a, Av b, Av *out) {
  u32 first, n = av_at(r, a)->count, m = av_at(r, b)->count;
  if (av_is_stacked(r, b)) return rec_stack_join(r, a, b, out);
  if (!av_is_list(r, b)) return repr_no(r, b, ROP_add);
  if (!av_empty_items(r, n + m, &first)) return OUT_FAIL;
  for (u32 i = 0; i < n + m; i++) r->items.data[first + i] = i < n ? av_item(r, a, i) : av_item(r, b, i - n);
  return rec_made(r, av_list_of(r, first, n + m), out);
}

static Outcome list_equal(Recorder *r, Av a, Av b, Av *out) {
  const u32 n = av_at(r, a)->count;
  Value known;
  if (!av_is_list(r, b)) return av_repr(r, b)->equal ? av_repr(r, b)->equal(r, b, a, out) : repr_no(r, b, ROP_equal);
  if (n != av_at(r, b)->count) return rec_made(r, av_const(r, value_bool(false)), out);
  for (u32 i = 0; i < n; i++) {
    Outcome o = rec_equal_part(r, av_item(r, a, i), av_item(r, b, i), out);
    if (o != OUT_GO || (av_const_value(r, *out, &known) && !known.i)) return o;
  }
  return OUT_GO;
}

static Outcome list_contains(Recorder *r, Av a, Av x, Av *out) {
  Value known;
  const u32 n = av_at(r, a)->count;
  if (n > (u32)r->vm->tunables.member_items) return rec_over(r, member_items, REASON_no_rule, "`in` of a list");
  if (!(*out = av_const(r, value_bool(false)))) return OUT_FAIL;
  for (u32 i = 0; i < n; i++) {
    Av same;
    Outcome o = rec_equal(r, x, av_item(r, a, i), &same);
    if (o == OUT_GO) o = rec_or_else(r, out, same);
    if (o != OUT_GO || (av_const_value(r, *out, &known) && known.i)) return o;
  }
  return OUT_GO;
}

static Outcome list_unpack(Recorder *r, Av a, const Desc *d, Av *out) {
  const u32 n = av_at(r, a)->count, want = d->before + d->after;
  u32 k = 0;
  if (n < want || (!d->has_rest && n != want))
    return rec_stuck(r, REASON_raises, "a list of %u items unpacked into %u", n, want);
  for (u32 i = 0; i < d->before; i++) out[k++] = av_item(r, a, i);
  if (d->has_rest && !(out[k++] = av_list_of(r, av_at(r, a)->first + d->before, n - want))) return OUT_FAIL;
  for (u32 i = 0; i < d->after; i++) out[k++] = av_item(r, a, n - d->after + i);
  return OUT_GO;
}

/* ---- rebuilt ----------------------------------------------------------------------------------------------------- */

static RecipeId list_make(ExitTable *t, const AbsVal *v, const RecipeId *items, u32 count) {
  (void)v;
  return recipe_list(t, items, count);
}

static RecipeId list_recipe(Recorder *r, Av a) { return repr_items_recipe(r, a, av_at(r, a)->count, list_make); }
static RecipeId list_hand(Handing *h, Av a, u32 depth) {
  return repr_items_hand(h, a, av_at(h->r, a)->count, depth, list_make);
}

static bool list_example(Recorder *r, Av a, u32 depth, Value *out) {
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
    .recipe = list_recipe,
    .hand = list_hand,
    .example = list_example,
    .input = list_input,
    .length = repr_items_length,
    .item = list_item,
    .slice = list_slice,
    .store = list_store,
    .add = list_add,
    .equal = list_equal,
    .contains = list_contains,
    NO(field, raises, "a list has no fields"),
    NO(put_field, raises, "a list has no fields"),
    NO(update, no_rule, "it takes one place"),
    NO(assign, no_rule, "its place is looked at first"),
    NO(before_store, no_rule, "a store does not change how it is kept"),
    .walk = list_walk,
    .at = list_at,
    .items = list_few_items,
    .array = list_array,
    .open = repr_itself,
    NO(call, raises, "a list is no function"),
    NO(truth, raises, "a list is no condition"),
    NO(format, text_value, "the texts of lists are made by the interpreter"),
    .layout = rec_tree_layout,
    NO(name_of, no_rule, "it is no text"),
    .widen = rec_into_columns,
    .take_back = rec_inner_back,
    .unpack = list_unpack,
};
