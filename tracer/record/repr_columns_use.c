/* repr_columns_use.c — what is done with rows: items read, written, appended, popped; texts as rows of code points (see
 * repr_columns.c). */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/repr_columns_room.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_columns_whole.h"
#include "tracer/record/repr_keyed.h"
#include "tracer/record/repr_names.h"
#include "tracer/record/repr_option.h"
#include "tracer/record/repr_queue.h"
#include "tracer/record/repr_ragged.h"
#include "tracer/record/repr_range.h"
#include "tracer/record/repr_slice.h"

#include <string.h>

static Av rows_columns(Recorder *r, Av a) { return av_item(r, a, 0); }
static Av rows_count(Recorder *r, Av a) { return av_item(r, a, 1); }

/* ---- reading ------------------------------------------------------------------------------------------------ */

/* An integer below 0 counts from the end: at + n. `known`: it is a constant, and below 0. */
static Outcome from_front(Recorder *r, Av at, Av n, bool known, Av *out) {
  Av moved, negative;
  Outcome o = rec_binary(r, BC_add, at, n, &moved);
  *out = moved;
  if (o != OUT_GO || known) return o;
  if ((o = rec_binary(r, BC_lt, at, av_const(r, value_weak_i64(0)), &negative)) != OUT_GO) return o;
  Av params[OP_MAX_PARAMS] = {negative, moved, at};
  return rec_op(r, OP_where, params, out);
}

/* A position among n as an operand: checked, counted from 0. */
Outcome rec_rows_position(Recorder *r, Av rows, Av n, Av at, ValueId *out) {
  ValueId v = av_value(r, at);
  const ArrayType *t = v ? value_type(r->g, v) : NULL;
  if (!t || t->rank || dtype_kind(t->dtype) != DK_INT)
    return rec_stuck(r, REASON_raises, "%s indexed by %s", av_kind_text(r, rows), av_kind_text(r, at));
  ValueId checked[2] = {v, av_value(r, n)};
  Outcome o = rec_check(r, CHECK_index, checked, 2);
  if (o != OUT_GO) return o;
  i64 known;
  Dim d;
  bool fixed = av_known_int(r, at, &known);
  bool plain = fixed ? known >= 0 : value_dim(r->g, v, &d) && d != DIM_NONE &&
               size_prove(&r->g->sizes, REL_le, 0, d) == TRUTH_always;
  if (!plain && (o = from_front(r, at, n, fixed, &at)) != OUT_GO) return o;
  *out = av_value(r, at);
  return *out ? OUT_GO : OUT_FAIL;
}

static Outcome position(Recorder *r, Av rows, Av at, ValueId *out) {
  return rec_rows_position(r, rows, rows_count(r, rows), at, out);
}

Av rec_with_parts(Recorder *r, Av tree, const Av *parts, u32 n) {
  AbsVal v = *av_at(r, tree);
  v.first = r->items.count;
  v.source = 0;
  for (u32 i = 0; i < n; i++)
    if (!parts[i] || !vec_push(&r->vm->alloc, &r->items, parts[i])) return 0;
  return av_new(r, v);
}

static u32 parts_of(Value kind, const Value **items) {
  *items = kind.kind == V_LIST ? kind.list->items : kind.record->items;
  return kind.kind == V_LIST ? kind.list->count : kind.record->shape->count;
}

static Av part_at(Recorder *r, Av columns, Value kind, ValueId at) {
  if (rows_mixed(kind)) {
    const Value strong = {.kind = V_NUM, .dtype = kind.dtype};
    Av number = part_at(r, av_item(r, columns, 0), strong, at),
        flag = part_at(r, av_item(r, columns, 1), value_bool(false), at);
    return number && flag && rec_weak_note(r, av_value(r, number), av_value(r, flag)) ? number : 0;
  }
  if (av_is_range(r, columns)) {
    Av item;
    return rec_range_item(r, columns, av_num(r, at), &item) == OUT_GO ? item : 0;
  }
  if (rec_is_column(kind)) {
    IndexItem it = {.kind = INDEX_int, .part = {PART_operand}, .at = {1}};
    ValueId x = av_value(r, columns);
    ArrayType t = *value_type(r->g, x);
    memmove(t.dims, t.dims + 1, --t.rank * sizeof t.dims[0]);
    t.weak = kind.kind == V_NUM && (kind.flags & VF_WEAK);
    Av item = av_num(r, graph_index(r->g, x, &at, 1, &it, 1, graph_type(r->g, &t)));
    if (kind.kind == V_TEXT) return av_character(r, item); /* of a text */
    return !rec_is_name(kind) || !item ? item : rec_name(r, av_value(r, item));
  }
  const Value *kinds;
  Av parts[ZIP_LEAVES];
  u32 n = parts_of(kind, &kinds);
  for (u32 i = 0; i < n && i < ZIP_LEAVES; i++)
    if (!(parts[i] = part_at(r, av_item(r, columns, i), kinds[i], at))) return 0;
  return rec_with_parts(r, columns, parts, n);
}

static Outcome item_at(Recorder *r, Av rows, ValueId at, Av *out) {
  const Value kind = av_at(r, rows)->konst;
  if (rows_keyed(kind)) return rec_keyed_item(r, rows, at, out);
  if (rows_ragged(kind)) return rec_row_of(r, rows, at, av_num(r, at), out);
  Av item = part_at(r, rows_columns(r, rows), kind, at);
  if (!item && !r->failed && !r->g->failed) return OUT_STUCK; /* a range of such numbers */
  return rec_made(r, item, out);
}

/* The item that a `for` is at: in bounds by construction. */
Outcome rec_rows_item(Recorder *r, Av rows, Av at, Av *out) { return item_at(r, rows, av_value(r, at), out); }

Outcome rec_rows_get(Recorder *r, Av rows, Av at, Av *out) {
  ValueId i;
  if (rec_is_keyed(r, rows)) return rec_keyed_get(r, rows, at, out);
  Outcome o = position(r, rows, at, &i);
  if (o == OUT_GO && rows_ragged(av_at(r, rows)->konst)) return rec_row_of(r, rows, i, at, out);
  return o == OUT_GO ? item_at(r, rows, i, out) : o;
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

static Outcome put_number(Recorder *r, Av column, ValueId at, ValueId x, Av *out) {
  IndexItem it = {.kind = INDEX_int, .part = {PART_operand}, .at = {1}};
  r->updated = true;
  return rec_made(r, x ? av_num(r, graph_update(r->g, OP_none, av_value(r, column), &at, 1, &it, 1, x)) : 0, out);
}

static Outcome put_leaf(Recorder *r, Av column, Value kind, ValueId at, Av item, Av *out) {
  ValueId x = av_value(r, item), flag = x ? rec_weak_flag(r, x) : 0;
  Outcome o = OUT_GO;
  if (rows_mixed(kind)) {
    Av parts[2];
    if (!flag) flag = graph_const(r->g, value_bool(value_type(r->g, x)->weak));
    o = put_number(r, av_item(r, column, 0), at, graph_convert(r->g, x, kind.dtype), &parts[0]);
    if (o == OUT_GO) o = put_number(r, av_item(r, column, 1), at, graph_convert(r->g, flag, DT_bool), &parts[1]);
    return o == OUT_GO ? rec_made(r, rec_with_parts(r, column, parts, 2), out) : o;
  }
  if (flag) o = rec_strong(r, x);
  return o == OUT_GO ? put_number(r, column, at, graph_convert(r->g, x, rec_column_type(kind, 0).dtype), out) : o;
}

Outcome rec_rows_put(Recorder *r, Av columns, Value kind, ValueId at, Av item, Av old, Av *out) {
  item = rec_sure(r, item);
  if (!item || !at) return OUT_FAIL;
  if (old == item) return rec_made(r, columns, out); /* one that stays */
  if (av_is_range(r, columns))
    return rec_stuck(r, REASON_loop_list, "the numbers of a list that counts are changed");
  if (rec_is_name(kind)) { /* a code point, or a text */
    if (!av_is_number(r, item) && !(item = rec_name_of(r, item)))
      return r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_list, "an item of another kind goes into a list");
    return put_leaf(r, columns, kind, at, item, out);
  }
  if (!rec_item_fits(r, item, kind)) return rec_stuck(r, REASON_loop_list, "an item of another kind goes into a list");
  if (rec_is_column(kind)) return put_leaf(r, columns, kind, at, item, out);
  const Value *kinds;
  Av parts[ZIP_LEAVES];
  u32 n = parts_of(kind, &kinds);
  for (u32 i = 0; i < n && i < ZIP_LEAVES; i++) {
    Outcome o = rec_rows_put(r, av_item(r, columns, i), kinds[i], at, av_item(r, item, i),
                             old ? av_force(r, av_item(r, old, i)) : 0, &parts[i]);
    if (o != OUT_GO) return o;
  }
  return rec_made(r, rec_with_parts(r, columns, parts, n), out);
}

/* An item that is weak where others are not, or that may be, makes the rows wider. */
static Outcome make_fit(Recorder *r, Av *rows, Av item) {
  Value kind = av_at(r, *rows)->konst;
  bool fits = rec_item_fits(r, item, kind);
  if ((fits && !rec_item_mixed(r, item, kind)) || rec_want_wider(r, rows, item)) return OUT_GO;
  if (r->failed) return OUT_FAIL;
  return fits && !r->lacks ? OUT_GO : rec_stuck(r, REASON_loop_list, "an item of another kind goes into a list");
}

Outcome rec_rows_set(Recorder *r, Av rows, Av at, Av old, Av item, Av *out) {
  ValueId i;
  AbsVal v = *av_at(r, rows);
  Av columns;
  if (v.konst.kind == V_TEXT) return rec_stuck(r, REASON_raises, "a text is updated");
  if (rows_keyed(v.konst)) return rec_keyed_set(r, rows, at, item, true, out);
  if (rows_ragged(v.konst)) return rec_row_swap(r, rows, at, item, out);
  const Av before = rows;
  Outcome o = make_fit(r, &rows, item);
  if (o != OUT_GO) return o;
  v = *av_at(r, rows);
  if (rows != before) old = 0;
  o = position(r, rows, at, &i);
  if (o == OUT_GO) o = rec_rows_put(r, rows_columns(r, rows), v.konst, i, item, old, &columns);
  return o == OUT_GO ? rec_made(r, rec_new_rows(r, columns, rows_count(r, rows), v.konst), out) : o;
}

/* Is there room up to element `last` in all columns? Else the region is left in front of the instruction. */
static Outcome check_room(Recorder *r, Av columns, Av last, u32 exit) {
  AvVec leaves = {0};
  Outcome o = carry_leaves(r, columns, &leaves) ? OUT_GO : OUT_FAIL;
  Dim checked = DIM_NONE;
  for (u32 i = 0; i < leaves.count && o == OUT_GO; i++) {
    if (!value_type(r->g, av_value(r, leaves.data[i]))->rank) { /* of a range */
      o = rec_stuck(r, REASON_loop_list, "a list that counts grows");
      break;
    }
    Dim room = value_type(r->g, av_value(r, leaves.data[i]))->dims[0];
    if (checked != DIM_NONE && size_same(&r->g->sizes, checked, room)) continue;
    ValueId operands[2] = {av_value(r, last), graph_size(r->g, checked = room)};
    if (!operands[0] || !operands[1] || !graph_check(r->g, CHECK_index, operands, 2, exit)) o = OUT_FAIL;
  }
  vec_free(&r->vm->alloc, &leaves);
  return o;
}

/* A short text, whose length is computed, is put behind rows of text, or in front of them. */
Outcome rec_text_join(Recorder *r, Av rows, Av more, bool front, Av *out) {
  const Value kind = av_at(r, rows)->konst;
  if (!rec_text_parts(r, more))
    return rec_stuck(r, REASON_text_value, "a text that is not made of characters is joined");
  if (r->no_exits) return rec_stuck(r, REASON_construct_body, "a list that grows in the body of a construct");
  u32 exit = rec_exit(r, EXIT_cold, REASON_list_room, rec_here(r));
  if (exit == UINT32_MAX) return r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_list, "a list that cannot be rebuilt");
  Av n = rows_count(r, rows), column = rows_columns(r, rows), k, all, last,
      at = front ? av_const(r, value_weak_i64(0)) : n;
  Outcome o = rec_text_count(r, more, &k);
  if (o == OUT_GO) o = rec_binary(r, BC_add, n, k, &all);
  if (o == OUT_GO) o = rec_binary(r, BC_sub, all, av_const(r, value_weak_i64(1)), &last);
  if (o == OUT_GO) o = check_room(r, column, last, exit);
  if (o == OUT_GO && front) o = rec_text_move(r, n, k, &column);
  if (o == OUT_GO) o = rec_text_put(r, more, &column, &at);
  return o == OUT_GO ? rec_made(r, rec_new_rows(r, column, all, kind), out) : o;
}

Outcome rec_rows_join(Recorder *r, Av rows, Av more, Av *out) {
  *out = rows;
  return rec_rows_append(r, out, NULL, more);
}

Outcome rec_rows_append(Recorder *r, Av *into, Av *start, Av more) {
  const u32 most = (u32)r->vm->tunables.append_items;
  Av rows = *into, *items = rec_avs(r, most + 1);
  AbsVal v = *av_at(r, rows);
  u32 k = 0;
  if (!items) return OUT_FAIL;
  if (v.konst.kind == V_TEXT) {
    u32 all = 0;
    if (!rec_points(r, more, NULL, &all) || all > most) return rec_text_join(r, rows, more, false, into);
    (void)rec_points(r, more, items, &k);
  } else {
    if ((k = av_at(r, more)->count) > most)
      return rec_over(r, append_items, REASON_loop_list, "a list is appended to a list");
    for (u32 i = 0; i < k; i++) {
      items[i] = av_item(r, more, i);
      Outcome o = make_fit(r, &rows, items[i]);
      if (o != OUT_GO) return o;
    }
    v = *av_at(r, rows);
  }
  if (k == 0) return OUT_GO;
  if (r->no_exits && start) return rec_stuck(r, REASON_construct_body, "a list that grows in the body of a construct");
  u32 exit = r->no_exits ? NO_EXIT : rec_exit(r, EXIT_cold, REASON_list_room, rec_here(r));
  if (exit == UINT32_MAX && !r->no_exits)
    return r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_list, "a list that cannot be rebuilt");
  Av n = rows_count(r, rows), last = n, columns = rows_columns(r, rows), gone = 0;
  Outcome o = start ? rec_queue_gone(r, columns, n, *start, k, &gone) : OUT_GO;
  if (gone && o == OUT_GO) o = rec_binary(r, BC_sub, n, gone, &last);
  if (k > 1 && o == OUT_GO) o = rec_binary(r, BC_add, last, av_const(r, value_weak_i64(k - 1)), &last);
  if (o == OUT_GO) o = r->no_exits ? rec_room_take(r, *into, &columns, k, last) : check_room(r, columns, last, exit);
  if (gone && o == OUT_GO) o = rec_queue_move(r, &columns, &n, start, gone);
  for (u32 i = 0; i < k && o == OUT_GO; i++) {
    if ((o = rec_rows_put(r, columns, v.konst, av_value(r, n), items[i], 0, &columns)) != OUT_GO) break;
    o = rec_binary(r, BC_add, n, av_const(r, value_weak_i64(1)), &n);
  }
  return o == OUT_GO ? rec_made(r, rec_new_rows(r, columns, n, v.konst), into) : o;
}

/* A short list or text takes the place of rows, whose columns it is put into: they have room for ROWS_ROOM at least. */
Outcome rec_rows_like(Recorder *r, Av rows, Av now, bool empty, Av *out) {
  const AbsVal v = *av_at(r, rows);
  Av items[ROWS_ROOM], columns = rows_columns(r, rows);
  u32 n = 0;
  if (v.konst.kind == V_TEXT) {
    u32 all = 0;
    if (!rec_is_text(r, now)) return OUT_STUCK;
    if (rec_is_of_digits(r, now) && !empty) { /* of 20 characters at most */
      Av at = av_const(r, value_weak_i64(0));
      Outcome o = at ? rec_text_put(r, now, &columns, &at) : OUT_FAIL;
      return o == OUT_GO ? rec_made(r, rec_new_rows(r, columns, at, v.konst), out) : o;
    }
    if (!rec_points(r, now, NULL, &all) || all > ROWS_ROOM) return OUT_STUCK;
    (void)rec_points(r, now, items, &n);
  } else {
    if (!av_is_list(r, now) || (n = av_at(r, now)->count) > ROWS_ROOM) return OUT_STUCK;
    for (u32 i = 0; i < n; i++) items[i] = av_item(r, now, i);
  }
  if (empty && n) return OUT_STUCK;
  for (u32 i = 0; i < n; i++) {
    if (v.konst.kind != V_TEXT && !rec_item_fits(r, items[i], v.konst)) return OUT_STUCK;
    Outcome o = rec_rows_put(r, columns, v.konst, graph_const(r->g, value_weak_i64(i)), items[i], 0, &columns);
    if (o != OUT_GO) return o;
  }
  return rec_made(r, rec_new_rows(r, columns, av_const(r, value_weak_i64(n)), v.konst), out);
}

/* An end of a list slice: from 0 to n. */
static Outcome use_clamped(Recorder *r, Av end, Av n, Av *out) {
  ValueId x = av_value(r, end);
  if (!x || value_type(r->g, x)->rank || value_type(r->g, x)->dtype != DT_i64)
    return rec_stuck(r, REASON_loop_list, "the end of a list slice");
  i64 known = 0;
  bool fixed = av_known_int(r, end, &known);
  Outcome o = OUT_GO;
  if (!fixed || known < 0) {
    if ((o = from_front(r, end, n, fixed, &end)) != OUT_GO) return o;
    Av at_least[OP_MAX_PARAMS] = {end, av_const(r, value_weak_i64(0))};
    if ((o = rec_op(r, OP_maximum, at_least, &end)) != OUT_GO) return o;
  }
  Av at_most[OP_MAX_PARAMS] = {end, n};
  if ((o = rec_op(r, OP_minimum, at_most, out)) != OUT_GO) return o;
  return value_type(r->g, av_value(r, *out))->weak ? OUT_GO : rec_stuck(r, REASON_loop_list,
                                                                        "the end of a list slice is a strong integer");
}

/* The first items: what is left when the last ones are popped. */
Outcome rec_rows_slice(Recorder *r, Av rows, const Av *parts, Av *out) {
  Value v;
  bool from_start = av_const_value(r, parts[0], &v) &&
                    (v.kind == V_NIL || (v.kind == V_NUM && v.i == 0 && dtype_kind(v.dtype) == DK_INT));
  bool by_one = av_const_value(r, parts[2], &v) && v.kind == V_NIL;
  if (rows_ragged(av_at(r, rows)->konst) || rec_is_keyed(r, rows))
    return rec_stuck(r, REASON_loop_list, "a slice of a list of lists");
  if (av_at(r, rows)->konst.kind == V_TEXT && av_at(r, rows)->source) return rec_text_slice(r, rows, parts, out);
  bool to_end = av_const_value(r, parts[1], &v) && v.kind == V_NIL;
  if (!from_start || !by_one) return rec_rows_part(r, rows, parts, out);
  if (to_end) return rec_made(r, rows, out);
  Av stop;
  Outcome o = use_clamped(r, parts[1], rows_count(r, rows), &stop);
  if (o != OUT_GO) return o;
  return rec_made(r, rec_new_rows(r, rows_columns(r, rows), stop, av_at(r, rows)->konst), out);
}

/* What a sequence is as a column, how many items it has, and what they look like (borrowed). A range is a column as it
 * is. */
static Outcome column_of(Recorder *r, Av seq, Av *column, Av *count, Value *kind) {
  if (!rec_is_text(r, seq) && !rec_rows_suit(r, seq) && !(seq = av_force(r, seq))) return OUT_FAIL;
  *column = seq;
  if (av_is_range(r, seq)) {
    *kind = value_weak_i64(0);
    return rec_range_count(r, seq, count);
  }
  if (av_is_number(r, seq)) {
    const ArrayType *t = value_type(r->g, av_value(r, seq));
    if (t->rank != 1 || t->device || t->dtype == DT_c128)
      return rec_stuck(r, REASON_no_rule, "the items of an array of rank %u", t->rank);
    *kind = (Value){.kind = V_NUM, .dtype = t->dtype};
    return rec_made(r, av_num(r, graph_size(r->g, t->dims[0])), count);
  }
  Av rows;
  Outcome o = rec_rows_of(r, seq, NULL, &rows);
  if (o != OUT_GO) return o;
  /* no item of a tree is one */
  if (rows_ragged(av_at(r, rows)->konst))
    return rec_stuck(r, REASON_loop_list, "a list of lists of any length beside others");
  *column = rows_columns(r, rows);
  *count = rows_count(r, rows);
  *kind = av_at(r, rows)->konst;
  return OUT_GO;
}

Outcome rec_rows_zip(Recorder *r, const Av *seqs, u32 n, bool numbered, Av *out) {
  Av columns[ZIP_LEAVES + 1], count = 0, range[3] = {av_const(r, value_weak_i64(0)), 0, av_const(r, value_weak_i64(1))};
  Value kind, part = value_weak_i64(0);
  if (n > ZIP_LEAVES) return rec_stuck(r, REASON_graph_size, "zip of many lists");
  if (!list_new(r->vm, n + numbered, &kind)) goto refused;
  Outcome o = OUT_GO;
  if (numbered && !list_push(r->vm, &kind, part)) goto refused_made;
  for (u32 i = 0; i < n && o == OUT_GO; i++) {
    Av items = 0;
    o = column_of(r, seqs[i], &columns[i + numbered], &items, &part);
    if (o == OUT_GO && !list_push(r->vm, &kind, value_keep(part))) goto refused_made;
    Av least[OP_MAX_PARAMS] = {count, items};
    if (o == OUT_GO && count) o = rec_op(r, OP_minimum, least, &items);
    count = items;
  }
  range[1] = count;
  if (o == OUT_GO && numbered && !(columns[0] = av_range(r, range[0], range[1], range[2]))) o = OUT_FAIL;
  if (o == OUT_GO && !rec_leaves_few(kind)) o = rec_stuck(r, REASON_graph_size, "lists of large trees");
  if (o == OUT_GO)
    o = av_const(r, kind) ? rec_made(r, rec_new_rows(r, av_list(r, columns, n + numbered), count, kind), out)
                          : OUT_FAIL;
  value_drop(r->vm, kind);
  return o;
refused_made:
  value_drop(r->vm, kind);
refused:
  vm_error_forget(r->vm);
  return OUT_FAIL;
}
