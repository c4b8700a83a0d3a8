/* repr_stacked.c — lists that a function which calls itself is given, and makes.
 *
 * All of them lie one behind the other in a stack, which is one cell of the trace (Recorder.cells): the place behind
 * the last item, and columns as those of repr_columns.c. The calls hand the cell on, as they do with variables that
 * they write, so there is one memory for all of them. A list in it has two items, the place where it begins and how
 * many items it has, weak integers; `value` is the cell, `konst` what its items look like. Its items are read from the
 * columns as they are now.
 *
 * What lies in the stack stays as it is as long as a list speaks of it. So a slice is another place and number, and
 * moves nothing. To append to the list that lies on the top writes behind it alone: the list of before is still there,
 * as the first part of the new one. Any other list is copied to the top first. A store writes in place where the list
 * is the own one of the present call, and nothing that is live but that list lies in the stack above what the call was
 * given; else it writes into a copy. When a call is over, and at the end of each trip of a loop, the top is again where
 * the last list ends. Where the room is used up the outermost call is the interpreter's, whose inner calls are
 * compiled ones with a stack of their own.
 *
 * It serves searches that go deeper with a longer list (queens, subsets, permutations, paths), with a part of one
 * (`f(xs[1:])`, halves), and with one of which items were changed. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_tree.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_slice.h"
#include "tracer/record/repr_stacked.h"

static Av weak_int(Recorder *r, i64 n) { return av_const(r, value_weak_i64(n)); }
static Av place_of(const Recorder *r, Av a) { return av_item(r, a, 0); }
static Av count_of(const Recorder *r, Av a) { return av_item(r, a, 1); }
static u32 cell_of(const Recorder *r, Av a) { return av_at(r, a)->value; }
static Av stack_columns(Recorder *r, u32 cell) { return av_item(r, r->cells.data[cell].value, 1); }

Av rec_stack_top(Recorder *r, u32 cell) { return av_item(r, r->cells.data[cell].value, 0); }

static Av stacked(Recorder *r, u32 cell, Value kind, Av start, Av count) {
  Av parts[2] = {start, count}, a = start && count ? av_items(r, AV_stacked, parts, 2) : 0;
  if (!a) return 0;
  av_at(r, a)->value = cell;
  av_at(r, a)->konst = kind;
  return a;
}

static Av stack_of(Recorder *r, Av top, Av columns) {
  Av parts[2] = {top, columns};
  return top && columns ? av_list(r, parts, 2) : 0;
}

static Outcome op2(Recorder *r, u32 op, Av a, Av b, Av *out) {
  Av params[OP_MAX_PARAMS] = {a, b};
  return a && b ? rec_op(r, op, params, out) : OUT_FAIL;
}

static Outcome where_of(Recorder *r, Av when, Av a, Av b, Av *out) {
  Av params[OP_MAX_PARAMS] = {when, a, b};
  return when && a && b ? rec_op(r, OP_where, params, out) : OUT_FAIL;
}

static Outcome write_stack(Recorder *r, u32 cell, Av top, Av columns) {
  Av both = stack_of(r, top, columns);
  return both ? rec_cell_write(r, cell, both) : OUT_FAIL;
}

Outcome rec_stack_cut(Recorder *r, u32 cell, Av top) {
  return top == rec_stack_top(r, cell) ? OUT_GO : write_stack(r, cell, top, stack_columns(r, cell));
}

/* ---- made ------------------------------------------------------------------------------------------------------- */

Outcome rec_stack_new(Recorder *r, Value kind, u32 *cell) {
  Av columns = rec_columns_new(r, kind, (Dim)r->vm->tunables.stack_items),
     both = columns ? stack_of(r, weak_int(r, 0), columns) : 0;
  *cell = r->cells.count;
  if (!both || !vec_push(&r->vm->alloc, &r->cells, ((RecCell){.value = both, .first = both}))) {
    r->failed = true;
    return OUT_FAIL;
  }
  return OUT_GO;
}

/* Room for the items up to place `end`; else the outermost call is left. */
static Outcome room_for(Recorder *r, u32 cell, Av end) {
  AvVec leaves = {0};
  Outcome o = carry_leaves(r, stack_columns(r, cell), &leaves) && leaves.count && leaves.count <= RECORD_STATES
                  ? OUT_GO
                  : rec_stuck(r, REASON_graph_size, "lists of large trees");
  ValueId room = o == OUT_GO ? graph_size(r->g, value_type(r->g, av_value(r, leaves.data[0]))->dims[0]) : 0;
  Av fits;
  vec_free(&r->vm->alloc, &leaves);
  if (o == OUT_GO) o = room ? rec_binary(r, BC_le, end, av_num(r, room), &fits) : OUT_FAIL;
  Value known;
  if (o == OUT_GO && av_const_value(r, fits, &known) && known.bits) return OUT_GO;
  ValueId v = o == OUT_GO ? av_value(r, fits) : 0;
  return o != OUT_GO ? o : v ? rec_check(r, CHECK_assertion, &v, 1) : OUT_FAIL;
}

/* with: a list, where it begins, where its items go, columns like those of the stack. */
static Outcome copy_step(Recorder *r, const Av *with, Av at, Av *leaves) {
  const AbsVal list = *av_at(r, with[0]);
  u32 next = 0;
  Av columns = carry_rebuild(r, with[3], leaves, &next), from, to, item = 0;
  Av rows = kind_is_stacked(list.kind) ? rec_new_rows(r, columns, count_of(r, with[0]), list.konst) : with[0];
  Outcome o = columns && rows ? rec_binary(r, BC_add, with[1], at, &from) : OUT_FAIL;
  if (o == OUT_GO) o = rec_binary(r, BC_add, with[2], at, &to);
  if (o == OUT_GO) o = rec_rows_item(r, rows, from, &item);
  if (o == OUT_GO) o = rec_rows_put(r, columns, list.konst, av_value(r, to), item, 0, &columns);
  AvVec out = {0};
  if (o == OUT_GO && !carry_leaves(r, columns, &out)) o = OUT_FAIL;
  for (u32 i = 0; i < next && o == OUT_GO; i++) leaves[i] = out.data[i];
  vec_free(&r->vm->alloc, &out);
  return o;
}

/* The first `trips` items of a list, one of the stack or one in columns, to a place where there is room. */
static Outcome copy_items(Recorder *r, u32 cell, Av list, Av from, Av trips, Av to) {
  i64 known;
  if (av_known_int(r, trips, &known) && !known) return OUT_GO;
  AvVec leaves = {0};
  u32 next = 0;
  Av columns = stack_columns(r, cell);
  const Av with[4] = {list, from, to, columns};
  Outcome o = carry_leaves(r, columns, &leaves) ? OUT_GO : OUT_FAIL;
  if (o == OUT_GO) o = rec_each(r, trips, with, leaves.data, leaves.count, copy_step);
  if (o == OUT_GO) o = (columns = carry_rebuild(r, columns, leaves.data, &next)) ? OUT_GO : OUT_FAIL;
  vec_free(&r->vm->alloc, &leaves);
  r->updated = true;
  return o == OUT_GO ? write_stack(r, cell, rec_stack_top(r, cell), columns) : o;
}

/* Items of a list that is known item by item, from a place on where there is room. */
static Outcome put_items(Recorder *r, u32 cell, Value kind, Av list, Av to) {
  Av columns = stack_columns(r, cell), one = weak_int(r, 1);
  Outcome o = one ? OUT_GO : OUT_FAIL;
  for (u32 i = 0; i < av_at(r, list)->count && o == OUT_GO; i++) {
    Av item = av_item(r, list, i);
    if (!rec_item_fits(r, item, kind) || rec_item_mixed(r, item, kind))
      return r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_list, "an item of another kind goes into a list");
    o = rec_rows_put(r, columns, kind, av_value(r, to), item, 0, &columns);
    if (o == OUT_GO) o = rec_binary(r, BC_add, to, one, &to);
  }
  return o == OUT_GO ? write_stack(r, cell, rec_stack_top(r, cell), columns) : o;
}

/* The list where `more` items can be written behind it, or into it: where it lies when `there`, else copied to the
 * top. *start: where that is. The top is behind all of it. */
static Outcome move_to_top(Recorder *r, Av a, Av there, Av more, Av *start) {
  const u32 cell = cell_of(r, a);
  Av trips, end, zero = weak_int(r, 0), top = rec_stack_top(r, cell);
  Outcome o = where_of(r, there, place_of(r, a), top, start);
  if (o == OUT_GO) o = where_of(r, there, zero, count_of(r, a), &trips);
  if (o == OUT_GO) o = rec_binary(r, BC_add, *start, count_of(r, a), &end);
  if (o == OUT_GO) o = rec_binary(r, BC_add, end, more, &end);
  if (o == OUT_GO) o = room_for(r, cell, end);
  if (o == OUT_GO) o = copy_items(r, cell, a, place_of(r, a), trips, *start);
  if (o == OUT_GO) o = op2(r, OP_maximum, top, end, &end);
  return o == OUT_GO ? write_stack(r, cell, end, stack_columns(r, cell)) : o;
}

/* The items of `a`, then those of a list that is known item by item or lies in the stack too. */
static Outcome append(Recorder *r, Av a, Av b, Av *out) {
  const AbsVal v = *av_at(r, a);
  const u32 cell = v.value;
  Av on_top, start, end, n = av_is_list(r, b) ? weak_int(r, av_at(r, b)->count) : count_of(r, b), all;
  Outcome o = n ? rec_binary(r, BC_add, place_of(r, a), count_of(r, a), &end) : OUT_FAIL;
  if (o == OUT_GO) o = rec_binary(r, BC_eq, end, rec_stack_top(r, cell), &on_top);
  if (o == OUT_GO) o = move_to_top(r, a, on_top, n, &start);
  if (o == OUT_GO) o = rec_binary(r, BC_add, start, count_of(r, a), &end);
  if (o == OUT_GO)
    o = av_is_list(r, b) ? put_items(r, cell, v.konst, b, end) : copy_items(r, cell, b, place_of(r, b), n, end);
  if (o == OUT_GO) o = rec_binary(r, BC_add, count_of(r, a), n, &all);
  return o == OUT_GO ? rec_made(r, stacked(r, cell, v.konst, start, all), out) : o;
}

Outcome rec_stack_take(Recorder *r, u32 cell, Value kind, Av list, Av *out) {
  if (!(list = av_force(r, list))) return OUT_FAIL;
  if (av_is_stacked(r, list))
    return cell_of(r, list) == cell ? rec_made(r, list, out) : rec_stuck(r, REASON_recursion, "lists of two functions");
  if (!av_is_list(r, list))
    return rec_stuck(r, REASON_recursion, "a function that calls itself with %s", av_kind_text(r, list));
  Av none = stacked(r, cell, kind, rec_stack_top(r, cell), weak_int(r, 0));
  if (!av_at(r, list)->count) return rec_made(r, none, out);
  return none ? append(r, none, list, out) : OUT_FAIL;
}

bool rec_stack_suits(Recorder *r, Av list, const Value *kind) {
  Value items;
  if (!r->stack.base || !r->stack.given_count || !(list = av_force(r, list)) || !av_is_list(r, list)) return false;
  const Value own = av_at(r, r->stack.given[0])->konst;
  if (kind && !rows_alike(own, *kind)) return false;
  return av_at(r, list)->count ? rec_items_kind(r, list, &items) && rows_alike(own, items) : kind != NULL;
}

Outcome rec_stack_put(Recorder *r, Av *list) {
  return rec_stack_take(r, r->stack.cell, av_at(r, r->stack.given[0])->konst, *list, list);
}

Outcome rec_stack_enter(Recorder *r, u32 cell, Value kind, Av list, Av *out) {
  Av rows, end, top = rec_stack_top(r, cell), zero = weak_int(r, 0);
  Outcome o = rec_rows_of(r, list, &kind, &rows);
  if (o != OUT_GO) return o;
  if (!rec_is_plain_columns(r, rows) || !zero) return rec_stuck(r, REASON_recursion, "a list of another kind");
  Av count = av_item(r, rows, 1);
  o = rec_binary(r, BC_add, top, count, &end);
  if (o == OUT_GO) o = room_for(r, cell, end);
  if (o == OUT_GO) o = copy_items(r, cell, rows, zero, count, top);
  if (o == OUT_GO) o = rec_stack_cut(r, cell, end);
  return o == OUT_GO ? rec_made(r, stacked(r, cell, kind, top, count), out) : o;
}

Outcome rec_stack_join(Recorder *r, Av a, Av b, Av *out) {
  const Av in = av_is_stacked(r, a) ? a : b;
  const Value kind = av_at(r, in)->konst;
  Outcome o = rec_stack_take(r, cell_of(r, in), kind, a, &a);
  if (o == OUT_GO && !av_is_list(r, b)) o = rec_stack_take(r, cell_of(r, in), kind, b, &b);
  return o == OUT_GO ? append(r, a, b, out) : o;
}

/* ---- a store -------------------------------------------------------------------------------------------------- */

/* How many lists of a stack stand in a value; *other: one that is not `a`. */
static u32 lists_in(Recorder *r, u32 cell, Av x, Av a, bool *other) {
  const AbsVal *v = av_at(r, x);
  u32 n = 0;
  if (!x || kind_is_lazy(v->kind)) return 0;
  if (kind_is_stacked(v->kind)) {
    *other |= v->value == cell && x != a;
    return v->value == cell;
  }
  if (v->first && !kind_is_value(v->kind))
    for (u32 i = 0; i < av_at(r, x)->count; i++) n += lists_in(r, cell, av_item(r, x, i), a, other);
  return n;
}

/* Does nothing that is live look at the items of a list but this one list? What the call was given lies below its own
 * part, and is no such. */
static Outcome is_alone(Recorder *r, Av a, bool *alone) {
  const u32 cell = cell_of(r, a);
  u32 n = 0;
  bool other = false;
  for (u32 i = 0; i < r->cells.count; i++)
    if (i != cell) n += 2 * lists_in(r, cell, r->cells.data[i].value, a, &other);
  for (u32 k = 0; k < r->frames.count; k++) {
    const RecFrame *f = &r->frames.data[k];
    const u32 words = (f->code->proto->nregs + 63) / 64 + 1;
    u64 *live = mem_alloc_zero(&r->vm->alloc, words * 8);
    if (!live) return OUT_FAIL;
    bool ok = rec_live(r, f->code->proto, f->pc, live);
    for (u32 i = 0; i < f->code->proto->nregs && ok; i++) {
      bool given = false;
      for (u32 p = 0; p < r->stack.given_count; p++) given |= f->regs[i] == r->stack.given[p];
      if (live[i / 64] >> (i % 64) & 1 && !given) n += lists_in(r, cell, f->regs[i], a, &other);
    }
    mem_free(&r->vm->alloc, live, words * 8);
    if (!ok) return OUT_FAIL;
  }
  *alone = n <= 1 && !other && r->stack.cell == cell && r->stack.base;
  return OUT_GO;
}

static Outcome stacked_store(Recorder *r, Av a, Av at, Av old, Av item, Av *out) {
  const AbsVal v = *av_at(r, a);
  Av own = av_const(r, value_bool(false)), start, place, columns, none = weak_int(r, 0);
  ValueId i;
  bool alone;
  if (!rec_item_fits(r, item, v.konst) || rec_item_mixed(r, item, v.konst))
    return r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_list, "an item of another kind goes into a list");
  (void)old;
  Outcome o = is_alone(r, a, &alone);
  if (o == OUT_GO) o = rec_rows_position(r, a, count_of(r, a), at, &i);
  if (o == OUT_GO && alone) o = rec_binary(r, BC_ge, place_of(r, a), r->stack.base, &own);
  if (o == OUT_GO) o = own && none ? move_to_top(r, a, own, none, &start) : OUT_FAIL;
  if (o == OUT_GO) o = rec_binary(r, BC_add, start, av_num(r, i), &place);
  if (o == OUT_GO) o = rec_rows_put(r, stack_columns(r, v.value), v.konst, av_value(r, place), item, 0, &columns);
  if (o == OUT_GO) o = write_stack(r, v.value, rec_stack_top(r, v.value), columns);
  return o == OUT_GO ? rec_made(r, stacked(r, v.value, v.konst, start, count_of(r, a)), out) : o;
}

/* ---- the end of a trip ------------------------------------------------------------------------------------------- */

/* *top: at least where each list ends that stands in a value. */
static Outcome behind(Recorder *r, u32 cell, Av x, Av *top) {
  const AbsVal v = *av_at(r, x);
  Outcome o = OUT_GO;
  if (!x || kind_is_lazy(v.kind) || kind_is_value(v.kind)) return OUT_GO;
  if (kind_is_stacked(v.kind)) {
    Av end;
    if (v.value != cell) return OUT_GO;
    o = rec_binary(r, BC_add, place_of(r, x), count_of(r, x), &end);
    return o == OUT_GO ? op2(r, OP_maximum, *top, end, top) : o;
  }
  for (u32 i = 0; v.first && i < v.count && o == OUT_GO; i++) o = behind(r, cell, av_item(r, x, i), top);
  return o;
}

Outcome rec_stack_trim(Recorder *r, const RecLoop *l) {
  Outcome o = OUT_GO;
  for (u32 i = 0; i < l->locs.count && o == OUT_GO; i++) {
    const RecLoc *loc = &l->locs.data[i];
    const u32 cell = loc->index;
    if (!loc->cell || r->stack.cell != cell || !r->stack.base) continue;
    Av top = av_item(r, loc->head, 0);
    for (u32 k = 0; k < l->locs.count && o == OUT_GO; k++) {
      const RecLoc *x = &l->locs.data[k];
      Av now = k == i ? 0 : x->cell ? r->cells.data[x->index].value : r->frames.data[l->depth].regs[x->index];
      if (now && now != x->head) o = behind(r, cell, now, &top);
    }
    if (o == OUT_GO) o = rec_stack_cut(r, cell, top);
  }
  return o;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static Outcome stacked_at(Recorder *r, Av a, Av pos, Av *out) {
  Av moved, rows;
  Outcome o = rec_binary(r, BC_add, place_of(r, a), pos, &moved);
  if (o != OUT_GO) return o;
  rows = rec_new_rows(r, stack_columns(r, cell_of(r, a)), count_of(r, a), av_at(r, a)->konst);
  return rows ? rec_rows_item(r, rows, moved, out) : OUT_FAIL;
}

static Outcome stacked_item(Recorder *r, Av a, Av at, Av *out) {
  ValueId i;
  Outcome o = rec_rows_position(r, a, count_of(r, a), at, &i);
  return o == OUT_GO ? stacked_at(r, a, av_num(r, i), out) : o;
}

Outcome rec_slice_end(Recorder *r, Av end, Av n, Av otherwise, Av *out) {
  Value v;
  i64 known = 0;
  Av zero = weak_int(r, 0), back, negative;
  if (av_const_value(r, end, &v) && v.kind == V_NIL) return rec_made(r, otherwise, out);
  ValueId x = av_value(r, end);
  if (!x || value_type(r->g, x)->rank || value_type(r->g, x)->dtype != DT_i64 || !value_type(r->g, x)->weak)
    return rec_stuck(r, REASON_loop_list, "the end of a list slice");
  const bool fixed = av_known_int(r, end, &known);
  Outcome o = OUT_GO;
  if (!fixed || known < 0) {
    o = rec_binary(r, BC_add, end, n, &back);
    if (o == OUT_GO) o = rec_binary(r, BC_lt, end, zero, &negative);
    if (o == OUT_GO) o = where_of(r, negative, back, end, &end);
    if (o == OUT_GO) o = op2(r, OP_maximum, end, zero, &end);
  }
  return o == OUT_GO ? op2(r, OP_minimum, end, n, out) : o;
}

static Outcome stacked_slice(Recorder *r, Av a, const Av *parts, Av *out) {
  const AbsVal v = *av_at(r, a);
  Value step;
  Av n = count_of(r, a), zero = weak_int(r, 0), from, to, start, count;
  if (!av_const_value(r, parts[2], &step) || step.kind != V_NIL)
    return rec_stuck(r, REASON_loop_list, "a slice with a step of a list in a function that calls itself");
  Outcome o = rec_slice_end(r, parts[0], n, zero, &from);
  if (o == OUT_GO) o = rec_slice_end(r, parts[1], n, n, &to);
  if (o == OUT_GO) o = rec_binary(r, BC_sub, to, from, &count);
  if (o == OUT_GO) o = op2(r, OP_maximum, count, zero, &count);
  if (o == OUT_GO) o = rec_binary(r, BC_add, place_of(r, a), from, &start);
  return o == OUT_GO ? rec_made(r, stacked(r, v.value, v.konst, start, count), out) : o;
}

/* with: the list, what is looked for. Goes on as long as it was not found. */
static Outcome differs_step(Recorder *r, const Av *with, Av at, Av *missing) {
  Av item;
  Outcome o = stacked_at(r, with[0], at, &item);
  return o == OUT_GO ? rec_binary(r, BC_ne, item, with[1], missing) : o;
}

static Outcome stacked_contains(Recorder *r, Av a, Av x, Av *out) {
  const Value kind = av_at(r, a)->konst;
  const Av with[2] = {a, x};
  Av missing = av_const(r, value_bool(true));
  if (!missing || !(x = av_force(r, x))) return OUT_FAIL;
  if (kind.kind != V_NUM || !av_is_number(r, x) || value_type(r->g, av_value(r, x))->rank)
    return rec_stuck(r, REASON_no_rule, "`in` of %s and list", av_kind_text(r, x));
  Outcome o = rec_each(r, count_of(r, a), with, &missing, 1, differs_step);
  Av params[OP_MAX_PARAMS] = {missing};
  return o == OUT_GO ? rec_op(r, OP_logical_not, params, out) : o;
}

/* An empty list takes the place of one. */
static Outcome stacked_take_back(Recorder *r, Av a, bool empty, Av *now) {
  const AbsVal v = *av_at(r, a);
  (void)empty;
  if (!*now || !av_is_list(r, *now) || av_at(r, *now)->count) return OUT_STUCK;
  return rec_made(r, stacked(r, v.value, v.konst, weak_int(r, 0), weak_int(r, 0)), now);
}

static bool stacked_same(Recorder *r, Av a, Av b) {
  return cell_of(r, a) == cell_of(r, b) && repr_same_parts(r, a, b);
}

#define IN_CALLS "of a list that lies in the stack of a function which calls itself"
const Repr repr_stacked = {
    .name = "stacked",
    .type = "list",
    .same = stacked_same,
    NO(recipe, recursion, "no region is left inside a function that calls itself"),
    NO(hand, effect_host, "its items stay in the region"),
    NO(example, no_rule, "a list of no known length"),
    NO(input, no_rule, "calls of a function that calls itself make it"),
    .length = repr_count_length,
    .item = stacked_item,
    .slice = stacked_slice,
    .store = stacked_store,
    .add = rec_stack_join,
    NO(equal, no_rule, "its items are compared by the interpreter"),
    .contains = stacked_contains,
    NO(field, raises, "a list has no fields"),
    NO(put_field, raises, "a list has no fields"),
    NO(update, no_rule, "it takes one place"),
    NO(assign, no_rule, "its place is looked at first"),
    NO(before_store, no_rule, "a store takes it as it is"),
    .walk = repr_itself,
    .at = stacked_at,
    NO(array, recursion, "an array " IN_CALLS),
    NO(open, recursion, "a tree " IN_CALLS),
    NO(items, no_rule, "how many it has is computed"),
    NO(call, raises, "a list is no function"),
    NO(truth, raises, "a list is no condition"),
    NO(format, text_value, "the texts of lists are made by the interpreter"),
    NO(layout, loop_list, "a list of any length in a list"),
    NO(name_of, no_rule, "it is no text"),
    NO(widen, loop_types, "items of another kind"),
    .take_back = stacked_take_back,
    NO(unpack, no_rule, "how many it has is computed"),
};
