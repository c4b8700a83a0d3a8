/* repr_ragged.c — lists of lists of any length: adjacency lists, matrices, tables with rows of their own lengths.
 *
 * A ragged list has in place of columns three lists in columns: where each list begins, how many items it has, and the
 * items of all of them. It comes from outside; items of a list are changed in place, and two lists may change
 * places, but no list gets another length. One of the lists is a row: it reads the items as they were when it
 * was taken, and is that list when the region is left.
 *
 * No two lists have items in common, so that what is stored in one is not seen in another. Between the two stores of
 * an exchange they have: then the ragged list has three more items, what it was before and the two positions as the
 * program has them, and is read alone. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_tree.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_columns_whole.h"
#include "tracer/record/repr_ragged.h"

/* not a threshold: places of parts */
enum { ROW_STARTS_AT, ROW_COUNTS_AT, ROW_FLAT_AT, ROW_COLUMNS, ROWS_HALF = 5 };

static Av ragged_part_of(Recorder *r, Av rows, u32 part) { return av_item(r, av_item(r, rows, 0), part); }

Outcome rec_row_of(Recorder *r, Av rows, ValueId at, Av asked, Av *out) {
  Av parts[5] = {rows, 0, 0, 0, asked};
  Outcome o = rec_made(r, av_num(r, graph_convert(r->g, at, DT_i64)), &parts[1]);
  if (o == OUT_GO) o = rec_rows_item(r, ragged_part_of(r, rows, ROW_STARTS_AT), parts[1], &parts[2]);
  if (o == OUT_GO) o = rec_rows_item(r, ragged_part_of(r, rows, ROW_COUNTS_AT), parts[1], &parts[3]);
  return o == OUT_GO ? rec_made(r, av_items(r, AV_row, parts, 5), out) : o;
}

static Outcome item_of(Recorder *r, Av row, Av at, ValueId *place, Av *out) {
  Av moved;
  Outcome o = rec_binary(r, BC_add, av_item(r, row, 2), at, &moved);
  if (o == OUT_GO && !(*place = av_value(r, moved))) o = OUT_FAIL;
  return o == OUT_GO ? rec_rows_item(r, ragged_part_of(r, av_item(r, row, 0), ROW_FLAT_AT), moved, out) : o;
}

Outcome rec_row_item(Recorder *r, Av row, Av at, Av *out) {
  ValueId place;
  return item_of(r, row, at, &place, out);
}

Outcome rec_row_place(Recorder *r, Av row, Av at, ValueId *place, Av *item) {
  ValueId i;
  Outcome o = rec_rows_position(r, row, av_item(r, row, 3), at, &i);
  return o == OUT_GO ? item_of(r, row, av_num(r, graph_convert(r->g, i, DT_i64)), place, item) : o;
}

Outcome rec_row_get(Recorder *r, Av row, Av at, Av *out) {
  ValueId place;
  return rec_row_place(r, row, at, &place, out);
}

/* The same lists with other columns. */
static Av ragged_with_columns(Recorder *r, Av rows, const Av *columns) {
  return rec_new_rows(r, av_list(r, columns, ROW_COLUMNS), av_item(r, rows, 1), av_at(r, rows)->konst);
}

static Outcome put_in(Recorder *r, Av *part, ValueId at, Av item, Av old) {
  const AbsVal v = *av_at(r, *part);
  Av columns, count = av_item(r, *part, 1);
  if (!rec_item_fits(r, item, v.konst))
    return r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_list, "an item of another kind goes into a list");
  Outcome o = rec_rows_put(r, av_item(r, *part, 0), v.konst, at, item, old, &columns);
  return o == OUT_GO ? rec_made(r, rec_new_rows(r, columns, count, v.konst), part) : o;
}

static Outcome half_exchanged(Recorder *r) {
  return rec_stuck(r, REASON_loop_list, "a list stands twice in a list that is changed");
}

Outcome rec_row_put(Recorder *r, Av rows, ValueId place, Av old, Av item, Av *out) {
  if (av_at(r, rows)->count == ROWS_HALF) return half_exchanged(r);
  Av columns[ROW_COLUMNS];
  for (u32 i = 0; i < ROW_COLUMNS; i++) columns[i] = ragged_part_of(r, rows, i);
  Outcome o = put_in(r, &columns[ROW_FLAT_AT], place, item, old);
  return o == OUT_GO ? rec_made(r, ragged_with_columns(r, rows, columns), out) : o;
}

Outcome rec_row_swap(Recorder *r, Av rows, Av at, Av item, Av *out) {
  ValueId i;
  bool half = av_at(r, rows)->count == ROWS_HALF;
  item = av_force(r, item);
  if (!item) return OUT_FAIL;
  if (!av_is_row(r, item)) return rec_stuck(r, REASON_loop_list, "an item of another kind goes into a list");
  if (av_item(r, item, 0) != (half ? av_item(r, rows, 2) : rows)) return half_exchanged(r);
  Outcome o = rec_rows_position(r, rows, av_item(r, rows, 1), at, &i);
  Av from = av_item(r, item, 4);
  if (o != OUT_GO) return o;
  if (half &&
      (av_value(r, at) != av_value(r, av_item(r, rows, 4)) || av_value(r, from) != av_value(r, av_item(r, rows, 3))))
    return half_exchanged(r);
  Av columns[ROW_COLUMNS];
  for (u32 k = 0; k < ROW_COLUMNS; k++) columns[k] = ragged_part_of(r, rows, k);
  o = put_in(r, &columns[ROW_STARTS_AT], i, av_item(r, item, 2), 0);
  if (o == OUT_GO) o = put_in(r, &columns[ROW_COUNTS_AT], i, av_item(r, item, 3), 0);
  if (o != OUT_GO) return o;
  if (half) return rec_made(r, ragged_with_columns(r, rows, columns), out);
  Av parts[ROWS_HALF] = {av_list(r, columns, ROW_COLUMNS), av_item(r, rows, 1), rows, at, from};
  const Value kind = av_at(r, rows)->konst;
  Av made = parts[0] ? av_items(r, AV_ragged, parts, ROWS_HALF) : 0;
  if (made) av_at(r, made)->konst = kind;
  return rec_made(r, made, out);
}

/* ---- their tables ------------------------------------------------------------------------------------------------ */

/* Of how many lists counts. */
static RecipeId ragged_recipe(Recorder *r, Av a) {
  ExitTable *t = &r->g->exits;
  RecipeId there = repr_source_recipe(r, a);
  if (there) return there;
  Av starts = av_item(r, ragged_part_of(r, a, ROW_STARTS_AT), 0),
     counts = av_item(r, ragged_part_of(r, a, ROW_COUNTS_AT), 0);
  RecipeId n = rec_recipe(r, av_item(r, a, 1));
  RecipeId parts[3] = {recipe_items(t, av_value(r, starts), 0, n, ITEMS_weak),
                       recipe_items(t, av_value(r, counts), 0, n, ITEMS_weak),
                       rec_recipe(r, ragged_part_of(r, a, ROW_FLAT_AT))};
  return n && parts[2] ? recipe_split(t, parts) : 0;
}

/* The list that a row is of is no part of it: it is the same as long as the region runs. */
static bool same_row(Recorder *r, Av a, Av b) {
  SourceId list = av_at(r, av_item(r, a, 0))->source;
  return list && list == av_at(r, av_item(r, b, 0))->source && repr_same_parts(r, a, b);
}

/* Its items in columns of their own. */
static Outcome row_columns(Recorder *r, Av row, Av *out) {
  Av nil = av_const(r, value_nil()), stop = 0, flat = ragged_part_of(r, av_item(r, row, 0), ROW_FLAT_AT);
  Outcome o = nil ? rec_binary(r, BC_add, av_item(r, row, 2), av_item(r, row, 3), &stop) : OUT_FAIL;
  const Av parts[3] = {av_item(r, row, 2), stop, nil};
  return o == OUT_GO ? rec_rows_part(r, flat, parts, out) : o;
}

static Outcome row_slice(Recorder *r, Av a, const Av *parts, Av *out) {
  Outcome o = row_columns(r, a, &a);
  return o == OUT_GO ? rec_rows_slice(r, a, parts, out) : o;
}

static Outcome row_contains(Recorder *r, Av a, Av x, Av *out) {
  Outcome o = row_columns(r, a, &a);
  return o == OUT_GO ? rec_columns_contain(r, a, x, out) : o;
}

static Outcome row_array(Recorder *r, Av a, Av dtype, bool leaf, Av *out) {
  Outcome o = row_columns(r, a, &a);
  return o == OUT_GO ? rec_rows_array(r, a, dtype, leaf, out) : o;
}

static Outcome row_length(Recorder *r, Av a, Av *out) { return rec_made(r, av_item(r, a, 3), out); }

static RecipeId row_recipe(Recorder *r, Av a) {
  RecipeId list = rec_recipe(r, av_item(r, a, 0));
  return list ? recipe_item(&r->g->exits, list, rec_recipe(r, av_item(r, a, 1))) : 0;
}

static Outcome ragged_store(Recorder *r, Av a, Av at, Av old, Av item, Av *out) {
  (void)old;
  return rec_row_swap(r, a, at, item, out);
}

const Repr repr_ragged = {
    .name = "ragged",
    .type = "list",
    .same = rec_columns_same,
    .recipe = ragged_recipe,
    NO(hand, effect_host, "its columns stay in the region"),
    NO(example, no_rule, "a list of no known length"),
    NO(input, no_rule, "a loop asks for it"),
    .length = repr_count_length,
    .item = rec_rows_get,
    NO(slice, loop_list, "its lists share columns"),
    .store = ragged_store,
    .equal = rec_columns_equal,
    NO(field, raises, "a list has no fields"),
    NO(put_field, raises, "a list has no fields"),
    NO(update, no_rule, "it takes one place"),
    NO(assign, no_rule, "its place is looked at first"),
    NO(before_store, no_rule, "a store does not change how it is kept"),
    NO(add, loop_list, "its lists share columns, which have no room between them"),
    NO(contains, no_rule, "its items are lists"),
    .walk = repr_itself,
    .at = rec_rows_item,
    .array = rec_rows_array,
    .open = rec_open_columns,
    NO(items, no_rule, "how many it has is computed"),
    NO(call, raises, "a list is no function"),
    NO(truth, raises, "a list is no condition"),
    NO(format, text_value, "the texts of lists are made by the interpreter"),
    NO(layout, loop_list, "lists of any length in a list"),
    NO(name_of, no_rule, "it is no text"),
    .widen = rec_columns_widen,
    .take_back = rec_columns_take_back,
    NO(unpack, no_rule, "how many it has is computed"),
};

const Repr repr_row = {
    .name = "row",
    .type = "list",
    .first_part = 1,
    .same = same_row,
    .recipe = row_recipe,
    NO(hand, effect_host, "its columns stay in the region"),
    NO(example, no_rule, "a list of no known length"),
    NO(input, no_rule, "it is an item of a ragged list"),
    .length = row_length,
    .item = rec_row_get,
    .slice = row_slice,
    .equal = rec_columns_equal,
    NO(field, raises, "a list has no fields"),
    NO(put_field, raises, "a list has no fields"),
    NO(update, no_rule, "it is written by the list that it is of"),
    NO(assign, no_rule, "it is written by the list that it is of"),
    NO(store, no_rule, "it is written by the list that it is of"),
    NO(before_store, no_rule, "it is written by the list that it is of"),
    NO(add, loop_list, "its items lie among those of other lists"),
    .contains = row_contains,
    .walk = repr_itself,
    .at = rec_row_item,
    .open = rec_open_columns,
    .array = row_array,
    NO(items, no_rule, "how many it has is computed"),
    NO(call, raises, "a list is no function"),
    NO(truth, raises, "a list is no condition"),
    NO(format, text_value, "the texts of lists are made by the interpreter"),
    NO(layout, loop_list, "a list of any length in a list"),
    NO(name_of, no_rule, "it is no text"),
    NO(widen, loop_types, "it is the same as long as the region runs"),
    NO(take_back, no_rule, "it is the same as long as the region runs"),
    NO(unpack, no_rule, "how many it has is computed"),
};
