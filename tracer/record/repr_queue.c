/* repr_queue.c — lists of a loop that are cut off at their head: `queue = queue[1:]`.
 *
 * A queue has three items: a list in columns that holds what was cut off as well, the place where the list begins, and
 * how many items it has, weak integers. So to cut moves nothing, and to append goes into the columns as it does for
 * other lists. When their room is used up the region is left, and entered again with the list alone. What other lists
 * can do besides, its items do in columns of their own (rec_queue_rows).
 *
 * It serves any loop that takes from the front of a list: a breadth-first search (`let u = q[0]; q = q[1:]; q +=
 * (v,)`), a window that slides (`w = w[1:] + (x,)`), readers that cut off what they have read (`rest = rest[n:]`). */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_tree.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_columns_whole.h"
#include "tracer/record/repr_queue.h"
#include "tracer/record/repr_slice.h"

static Av rows_of(const Recorder *r, Av queue) { return av_item(r, queue, 0); }
static Av start_of(const Recorder *r, Av queue) { return av_item(r, queue, 1); }

bool rec_is_queue(const Recorder *r, Av a) { return a && av_is_queue(r, a); }

static Av queue_of(Recorder *r, Av rows, Av start, Av count) {
  Av parts[3] = {rows, start, count};
  return rows && start && count ? av_items(r, AV_queue, parts, 3) : 0;
}

Outcome rec_queue_new(Recorder *r, Av rows, Av *out) {
  if (!av_in_columns(r, rows)) return OUT_STUCK;
  return rec_made(r, queue_of(r, rows, av_const(r, value_weak_i64(0)), av_item(r, rows, 1)), out);
}

Av rec_queue_count(const Recorder *r, Av queue) { return av_item(r, queue, 2); }

Outcome rec_queue_rows(Recorder *r, Av queue, Av *out) {
  Av nil = av_const(r, value_nil()), parts[3] = {start_of(r, queue), nil, nil};
  return nil ? rec_rows_part(r, rows_of(r, queue), parts, out) : OUT_FAIL;
}

Outcome rec_queue_get(Recorder *r, Av queue, Av at, Av *out) {
  Av moved;
  ValueId i;
  Outcome o = rec_rows_position(r, queue, rec_queue_count(r, queue), at, &i);
  if (o == OUT_GO) o = rec_binary(r, BC_add, start_of(r, queue), av_num(r, i), &moved);
  return o == OUT_GO ? rec_rows_item(r, rows_of(r, queue), moved, out) : o;
}

static bool is_nil_part(Recorder *r, Av part) {
  Value v;
  return av_const_value(r, part, &v) && v.kind == V_NIL;
}

bool rec_queue_asks(Recorder *r, const Av *parts) {
  i64 k = 0;
  return av_known_int(r, parts[0], &k) && k > 0 && is_nil_part(r, parts[1]) && is_nil_part(r, parts[2]);
}

bool rec_queue_cuts(Recorder *r, Av list, const Av *parts) {
  if (!rec_queue_asks(r, parts)) return false;
  if (rec_is_queue(r, list)) return true;
  const Value kind = av_at(r, list)->konst;
  if (!av_in_columns(r, list) || kind.kind == V_TEXT || rows_ragged(kind) || rows_keyed(kind)) return false;
  return rec_is_carried(r, list);
}

Outcome rec_queue_cut(Recorder *r, Av list, const Av *parts, Av *out) {
  const bool queue = rec_is_queue(r, list);
  Av rows = queue ? rows_of(r, list) : list, params[OP_MAX_PARAMS] = {0, av_item(r, rows, 1)};
  i64 k = 0;
  (void)av_known_int(r, parts[0], &k);
  Av zero = av_const(r, value_weak_i64(0)), by = av_const(r, value_weak_i64(k)),
      start = queue ? start_of(r, list) : zero, left[OP_MAX_PARAMS] = {0, zero}, count;
  if (!zero || !by) return OUT_FAIL;
  Outcome o = k <= INT32_MAX ? rec_binary(r, BC_add, start, by, &params[0])
                             : rec_stuck(r, REASON_loop_list, "the end of a list slice");
  if (o == OUT_GO) o = rec_op(r, OP_minimum, params, &start);
  if (o == OUT_GO) o = rec_binary(r, BC_sub, queue ? rec_queue_count(r, list) : params[1], by, &left[0]);
  if (o == OUT_GO) o = rec_op(r, OP_maximum, left, &count);
  return o == OUT_GO ? rec_made(r, queue_of(r, rows, start, count), out) : o;
}

/* Columns of one room that can be moved in a loop. */
static bool columns_of(Recorder *r, Av columns, AvVec *leaves) {
  bool ok = carry_leaves(r, columns, leaves) && leaves->count && leaves->count <= RECORD_STATES;
  for (u32 i = 0; i < leaves->count && ok; i++) {
    const ArrayType *t = value_type(r->g, av_value(r, leaves->data[i])),
        *first = value_type(r->g, av_value(r, leaves->data[0]));
    ok = t->rank == 1 && first->rank == 1 && size_same(&r->g->sizes, t->dims[0], first->dims[0]);
  }
  return ok;
}

static Outcome both(Recorder *r, Av a, Av b, Av *out) {
  Av params[OP_MAX_PARAMS] = {a, b};
  return rec_op(r, OP_logical_and, params, out);
}

/* All of them, where there is no room behind the last item and no more items are left than went: each is moved once for
 * one that went. */
Outcome rec_queue_gone(Recorder *r, Av columns, Av n, Av start, u32 k, Av *gone) {
  AvVec leaves = {0};
  Av all, left, full, half, zero = av_const(r, value_weak_i64(0)), by = av_const(r, value_weak_i64(k));
  bool moves = columns_of(r, columns, &leaves);
  ValueId room = moves ? graph_size(r->g, value_type(r->g, av_value(r, leaves.data[0]))->dims[0]) : 0;
  vec_free(&r->vm->alloc, &leaves);
  if (!zero || !by || r->failed || (moves && !room)) return OUT_FAIL;
  if (!moves) return OUT_GO;
  Outcome o = rec_binary(r, BC_add, n, by, &all);
  if (o == OUT_GO) o = rec_binary(r, BC_gt, all, av_num(r, room), &full);
  if (o == OUT_GO) o = rec_binary(r, BC_sub, n, start, &left);
  if (o == OUT_GO) o = rec_binary(r, BC_ge, start, left, &half);
  if (o == OUT_GO) o = both(r, full, half, &full);
  Av params[OP_MAX_PARAMS] = {full, start, zero};
  return o == OUT_GO ? rec_op(r, OP_where, params, gone) : o;
}

/* with: how many go, how many columns there are. */
static Outcome queue_move_step(Recorder *r, const Av *with, Av at, Av *column) {
  Av from;
  i64 n = 0;
  (void)av_known_int(r, with[1], &n);
  Outcome o = rec_binary(r, BC_add, with[0], at, &from);
  for (u32 i = 0; i < (u32)n && o == OUT_GO; i++) {
    const IndexItem it = {.kind = INDEX_int, .part = {PART_operand}, .at = {1}};
    ValueId x = av_value(r, column[i]), there = av_value(r, from), here = av_value(r, at);
    const ArrayType t = {.dtype = value_type(r->g, x)->dtype};
    ValueId item = graph_index(r->g, x, &there, 1, &it, 1, graph_type(r->g, &t));
    o = rec_made(r, item ? av_num(r, graph_update(r->g, OP_none, x, &here, 1, &it, 1, item)) : 0, &column[i]);
  }
  r->updated = true;
  return o;
}

Outcome rec_queue_move(Recorder *r, Av *columns, Av *n, Av *start, Av gone) {
  AvVec leaves = {0};
  Av trips, some, left, zero = av_const(r, value_weak_i64(0)), with[2] = {gone};
  u32 next = 0;
  Outcome o = zero && columns_of(r, *columns, &leaves) ? OUT_GO : OUT_FAIL;
  if (o == OUT_GO && !(with[1] = av_const(r, value_weak_i64(leaves.count)))) o = OUT_FAIL;
  if (o == OUT_GO) o = rec_binary(r, BC_gt, gone, zero, &some);
  if (o == OUT_GO) o = rec_binary(r, BC_sub, *n, gone, &left);
  Av params[OP_MAX_PARAMS] = {0, 0, zero};
  if (o == OUT_GO) o = rec_binary(r, BC_sub, *n, *start, &params[1]);
  if (o == OUT_GO) params[0] = some, o = rec_op(r, OP_where, params, &trips);
  if (o == OUT_GO) o = rec_each(r, trips, with, leaves.data, leaves.count, queue_move_step);
  if (o == OUT_GO) o = rec_made(r, carry_rebuild(r, *columns, leaves.data, &next), columns);
  if (o == OUT_GO) o = rec_binary(r, BC_sub, *start, gone, start);
  *n = o == OUT_GO ? left : 0;
  vec_free(&r->vm->alloc, &leaves);
  return o;
}

Outcome rec_queue_join(Recorder *r, Av queue, Av more, Av *out) {
  Av rows = rows_of(r, queue), start = start_of(r, queue), count,
      by = av_const(r, value_weak_i64(av_at(r, more)->count));
  Outcome o = rec_rows_append(r, &rows, &start, more);
  if (o == OUT_GO) o = by ? rec_binary(r, BC_add, rec_queue_count(r, queue), by, &count) : OUT_FAIL;
  return o == OUT_GO ? rec_made(r, queue_of(r, rows, start, count), out) : o;
}

/* Another list in place of one that is a queue in the loop: a short one goes into its columns. */
Outcome rec_queue_like(Recorder *r, Av queue, bool empty, Av *now) {
  Av rows = *now;
  if (!rows || rec_is_queue(r, rows)) return OUT_GO;
  const u8 kind = av_at(r, rows)->kind;
  Outcome o = kind_is_list(kind) ? rec_rows_like(r, rows_of(r, queue), rows, empty, &rows) : OUT_GO;
  if (o != OUT_GO || (!kind_is_list(kind) && !kind_in_columns(kind))) return o == OUT_FAIL ? o : OUT_STUCK;
  return rec_queue_new(r, rows, now);
}

/* The loop is lifted again, with a queue there. */
static bool queue_widen(Recorder *r, RecLoop *l, RecLoc *loc, Av before, Av now) {
  (void)before;
  const Value kind = av_at(r, rows_of(r, now))->konst;
  if (loc->rows == 2 || loc->depth || (loc->queue && loc->kind_known && rows_alike(loc->kind, kind))) return false;
  loc->kind = kind;
  loc->kind_known = loc->queue = true;
  loc->names = false;
  loc->rows = 0;
  r->lacks = l;
  r->lacks_rows = loc;
  return true;
}

/* The list of all its columns hold, of which the last ones count. */
static RecipeId queue_recipe(Recorder *r, Av queue) {
  ExitTable *t = &r->g->exits;
  RecipeId start = rec_recipe(r, start_of(r, queue)), count = rec_recipe(r, rec_queue_count(r, queue)),
      all = rec_recipe(r, rows_of(r, queue)), zero = recipe_const(t, value_weak_i64(0));
  if (!start || !count || !all || !zero) return 0;
  RecipeId parts[3] = {recipe_list(t, &start, 1), recipe_list(t, &count, 1), all},
      lists = parts[0] && parts[1] ? recipe_split(t, parts) : 0;
  return lists ? recipe_item(t, lists, zero) : 0;
}

static Outcome queue_length(Recorder *r, Av a, Av *out) { return rec_made(r, rec_queue_count(r, a), out); }

static Outcome queue_slice(Recorder *r, Av a, const Av *parts, Av *out) {
  if (rec_queue_cuts(r, a, parts)) return rec_queue_cut(r, a, parts, out);
  Outcome o = rec_queue_rows(r, a, &a);
  return o == OUT_GO ? rec_rows_slice(r, a, parts, out) : o;
}

static Outcome queue_add(Recorder *r, Av a, Av b, Av *out) {
  return av_is_list(r, b) ? rec_queue_join(r, a, b, out)
                          : rec_stuck(r, REASON_loop_list, "lists of different kinds are joined");
}

static Outcome queue_contains(Recorder *r, Av a, Av x, Av *out) {
  Outcome o = rec_queue_rows(r, a, &a);
  return o == OUT_GO ? rec_columns_contain(r, a, x, out) : o;
}

const Repr repr_queue = {
    .name = "queue",
    .type = "list",
    .same = repr_same_parts,
    .recipe = queue_recipe,
    NO(hand, effect_host, "its columns stay in the region"),
    NO(example, no_rule, "a list of no known length"),
    NO(input, no_rule, "a loop makes it"),
    .length = queue_length,
    .item = rec_queue_get,
    .slice = queue_slice,
    .add = queue_add,
    .equal = rec_columns_equal,
    .contains = queue_contains,
    NO(field, raises, "a list has no fields"),
    NO(put_field, raises, "a list has no fields"),
    NO(update, no_rule, "it takes one place"),
    NO(assign, no_rule, "a list that is cut off at its head is not written"),
    NO(store, no_rule, "a list that is cut off at its head is not written"),
    NO(before_store, no_rule, "a list that is cut off at its head is not written"),
    .walk = rec_queue_rows,
    .array = rec_rows_array,
    .open = rec_open_columns,
    NO(at, loop_sequence, "its items are walked over in columns of their own"),
    NO(items, no_rule, "how many it has is computed"),
    NO(call, raises, "a list is no function"),
    NO(truth, raises, "a list is no condition"),
    NO(format, text_value, "the texts of lists are made by the interpreter"),
    NO(layout, loop_list, "a list of any length in a list"),
    NO(name_of, no_rule, "it is no text"),
    .widen = queue_widen,
    .take_back = rec_queue_like,
    NO(unpack, no_rule, "how many it has is computed"),
};
