/* repr_columns_whole.c — lists in columns as a whole: the array of one, its items joined, sorted, and parts of it. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_columns_whole.h"
#include "tracer/record/repr_keyed.h"
#include "tracer/record/repr_queue.h"

enum { TUPLE = 8 }; /* not a threshold: room for items of an item */

/* The first `count` of a column. */
static Outcome first_of(Recorder *r, Av column, Av count, Av *out) {
  const u8 slice = IX_SLICE;
  Av nil = av_const(r, value_nil()), ends[3] = {nil, count, nil};
  return nil && column && count ? rec_index(r, column, &slice, 1, ends, out) : OUT_FAIL;
}

static bool is_plain_kind(Value kind) { return kind.kind == V_NUM && !rows_mixed(kind); }

/* An empty list becomes something else than its columns say: the interpreter does that. */
static Outcome whole_not_empty(Recorder *r, Av count) {
  Av zero = av_const(r, value_weak_i64(0)), some;
  if (!zero) return OUT_FAIL;
  Outcome o = rec_binary(r, BC_gt, count, zero, &some);
  if (o != OUT_GO) return o;
  ValueId is = rec_strengthen(r, av_value(r, some), DT_bool);
  return is ? rec_check(r, CHECK_assertion, &is, 1) : OUT_FAIL;
}

bool rec_is_listed(const Recorder *r, Av a) {
  const AbsVal *v = a ? av_at(r, a) : NULL;
  return v && (kind_is_queue(v->kind) ||
               kind_in_columns(v->kind) ? v->konst.kind != V_TEXT : kind_is_outer_list(v->kind));
}

/* Numbers of one kind, arrays of one shape, or tuples of such numbers. An empty list is one of f64, whatever its
 * column. */
Outcome rec_rows_array(Recorder *r, Av list, Av dtype, bool leaf, Av *out) {
  Av rows, parts[TUPLE];
  (void)dtype;
  if (leaf) return rec_stuck(r, REASON_no_rule, "an array of a list of lists in columns");
  Outcome o = rec_rows_of(r, list, NULL, &rows);
  if (o != OUT_GO) return o;
  if (!av_in_columns(r, rows)) return rec_stuck(r, REASON_no_rule, "an array of %s", av_kind_text(r, rows));
  Value kind = av_at(r, rows)->konst;
  Av columns = av_item(r, rows, 0), count = av_item(r, rows, 1);
  u32 n = kind.kind == V_LIST ? kind.list->count : 0;
  bool fits = kind.kind == V_LIST ? n > 0 && n <= TUPLE && !rows_ragged(kind)
                                  : kind.kind == V_ARRAY || is_plain_kind(kind);
  for (u32 i = 0; i < n && fits; i++)
    fits = is_plain_kind(kind.list->items[i]) && kind.list->items[i].dtype == kind.list->items[0].dtype;
  if (!fits) return rec_stuck(r, REASON_no_rule, "an array of a list of lists or records");
  if ((!is_plain_kind(kind) || kind.dtype != DT_f64) && (o = whole_not_empty(r, count)) != OUT_GO) return o;
  if (!n) return first_of(r, columns, count, out);
  for (u32 i = 0; i < n && o == OUT_GO; i++) o = first_of(r, av_item(r, columns, i), count, &parts[i]);
  Av params[OP_MAX_PARAMS] = {o == OUT_GO ? av_list(r, parts, n) : 0, av_const(r, value_weak_i64(1))};
  if (o != OUT_GO) return o;
  return params[0] && params[1] ? rec_op(r, OP_stack, params, out) : OUT_FAIL;
}

/* stack and concat: the array of the list, its first axis moved to where the others meet; for concat that one and the
 * next become one. */
Outcome rec_rows_joined(Recorder *r, u32 op, const Av *params, Av *out) {
  Av all, axis = params[1] && !av_is_hole(r, params[1]) ? av_force(r, params[1]) : 0, rows;
  i64 along = 0;
  if (axis && !av_known_int(r, axis, &along))
    return rec_stuck(r, REASON_literal_needed, "%s of a list along a computed axis", op_name(op));
  Outcome o = rec_rows_of(r, params[0], NULL, &rows);
  if (o != OUT_GO) return o;
  Value kind = av_in_columns(r, rows) ? av_at(r, rows)->konst : value_nil();
  if (kind.kind != V_ARRAY && (op == OP_concat || !is_plain_kind(kind)))
    return rec_stuck(r, REASON_no_rule, "%s of a list that does not hold arrays", op_name(op));
  const i64 axes = (kind.kind == V_ARRAY ? array_rank(kind.array) : 0) + (op == OP_stack);
  if (along < 0) along += axes;
  if (along < 0 || along >= axes) return rec_stuck(r, REASON_raises, "%s along an axis that is not there", op_name(op));
  if ((o = whole_not_empty(r, av_item(r, rows, 1))) != OUT_GO) return o;
  if ((o = rec_rows_array(r, rows, 0, false, &all)) != OUT_GO) return o;
  Av move[OP_MAX_PARAMS] = {all, av_const(r, value_weak_i64(0)), av_const(r, value_weak_i64(along))};
  if (along && (!move[1] || !move[2] || (o = rec_op(r, OP_moveaxis, move, &all)) != OUT_GO))
    return o == OUT_GO ? OUT_FAIL : o;
  if (op == OP_stack) return rec_made(r, all, out);
  const ArrayType t = *value_type(r->g, av_value(r, all));
  Av dims[TYPE_MAX_RANK];
  u32 n = 0;
  for (u32 i = 0; i < t.rank; i++) {
    if (i == (u32)along + 1) continue;
    Dim d = i == (u32)along ? size_mul(&r->g->sizes, t.dims[i], t.dims[i + 1]) : t.dims[i];
    ValueId size = d == DIM_NONE ? 0 : graph_size(r->g, d);
    if (!size || !(dims[n++] = av_num(r, size)))
      return r->g->failed ? OUT_FAIL : rec_stuck(r, REASON_size_expression, "the size of what is joined");
  }
  Av to[OP_MAX_PARAMS] = {all, av_list(r, dims, n)};
  return to[1] ? rec_op(r, OP_reshape, to, out) : OUT_FAIL;
}

/* sort(list, axis, descending): of numbers of one kind, as arrays are; without a key. */
Outcome rec_rows_sorted(Recorder *r, const Av *params, u32 count, Av *out) {
  Av rows, column, with[OP_MAX_PARAMS] = {0}, sorted;
  Outcome o = rec_rows_of(r, params[0], NULL, &rows);
  if (o != OUT_GO) return o;
  Value kind = av_in_columns(r, rows) ? av_at(r, rows)->konst : value_nil();
  if (!is_plain_kind(kind))
    return rec_stuck(r, REASON_no_rule, "sort of a list that does not hold numbers of one kind");
  Av n = av_item(r, rows, 1);
  if ((o = first_of(r, av_item(r, rows, 0), n, &column)) != OUT_GO) return o;
  for (u32 i = 1; i < count; i++) with[i] = params[i];
  with[0] = column;
  if ((o = rec_op(r, OP_sort, with, &sorted)) != OUT_GO) return o;
  return rec_made(r, rec_new_rows(r, sorted, n, kind), out);
}

/* The part of each column; *count: how many items it has. Depth is bounded: the list has a layout. */
static Outcome whole_part_of(Recorder *r, Av columns, Av n, const Av *parts, Av *count, Av *out) {
  const AbsVal v = *av_at(r, columns);
  const u8 slice = IX_SLICE;
  if (kind_is_value(v.kind)) {
    Av given;
    Outcome o = first_of(r, columns, n, &given);
    if (o == OUT_GO) o = rec_index(r, given, &slice, 1, parts, out);
    if (o != OUT_GO) return o;
    ValueId size = graph_size(r->g, value_type(r->g, av_value(r, *out))->dims[0]);
    return rec_made(r, size ? av_num(r, size) : 0, count);
  }
  Av made[TUPLE];
  if ((!kind_is_open(v.kind)) || v.count > TUPLE)
    return rec_stuck(r, REASON_loop_list, "a slice of a list of large items");
  for (u32 i = 0; i < v.count; i++) {
    Outcome o = whole_part_of(r, av_item(r, columns, i), n, parts, count, &made[i]);
    if (o != OUT_GO) return o;
  }
  return rec_made(r, kind_is_list(v.kind) ? av_list(r, made, v.count)
                                       : av_record(r, v.shape->keys, made, v.count), out);
}

/* A list from outside that lies in columns here already. */
bool rec_is_in_columns(const Recorder *r, Av list) {
  const AbsVal *v = av_at(r, list);
  const Graph *g = r->g;
  for (u32 i = 0; v->source && i < g->inputs.count; i++) {
    const GuardInput *in = g->inputs.data[i].input == UINT32_MAX ? NULL
                                                                 : &g->guards.inputs.data[g->inputs.data[i].input];
    if (!in || in->form != IN_rows) continue;
    const Source *s = &g->guards.sources.items.data[in->source];
    if (in->source == v->source || (s->kind == SRC_column && s->parent == v->source)) return true;
  }
  return false;
}

/* A part of a list that may have any length: of one that a loop only reads, or that lies in columns. */
Outcome rec_list_slice(Recorder *r, Av list, const Av *parts, Av *out) {
  Av rows = list;
  if (r->loop && rec_queue_asks(r, parts) && rec_is_carried(r, list)) return rec_rows_here(r, list, out);
  if (r->loop ? rec_is_carried(r, list) : !rec_is_in_columns(r, list))
    return rec_stuck(r, REASON_literal_needed, "bounds of a list slice must be known while tracing");
  Outcome o = r->loop ? rec_rows_here(r, list, &rows) : rec_rows_of(r, list, NULL, &rows);
  return o == OUT_GO ? rec_rows_slice(r, rows, parts, out) : o;
}

/* The items of two lists of one kind, in columns of their own. */
static Outcome both_of(Recorder *r, Av a, Av n, Av b, Av m, Value kind, Av *out) {
  const AbsVal v = *av_at(r, a);
  if (kind_is_value(v.kind)) {
    Av ends[2];
    Outcome o = first_of(r, a, n, &ends[0]);
    if (o == OUT_GO) o = first_of(r, b, m, &ends[1]);
    Av params[OP_MAX_PARAMS] = {o == OUT_GO ? av_list(r, ends, 2) : 0, av_const(r, value_weak_i64(0))};
    if (o != OUT_GO) return o;
    return params[0] && params[1] ? rec_op(r, OP_concat, params, out) : OUT_FAIL;
  }
  Av made[TUPLE];
  if ((!kind_is_open(v.kind)) || v.count > TUPLE || av_at(r, b)->kind != v.kind ||
      av_at(r, b)->count != v.count)
    return rec_stuck(r, REASON_loop_list, "lists of large items are joined");
  for (u32 i = 0; i < v.count; i++) {
    Outcome o = both_of(r, av_item(r, a, i), n, av_item(r, b, i), m, kind, &made[i]);
    if (o != OUT_GO) return o;
  }
  return rec_made(r, rec_with_parts(r, a, made, v.count), out);
}

Outcome rec_rows_concat(Recorder *r, Av a, Av b, Av *out) {
  Value kind = av_at(r, a)->konst;
  Av columns, count, n = av_item(r, a, 1), m = av_item(r, b, 1);
  if (rows_ragged(kind) || rec_is_keyed(r, a) || kind.kind == V_TEXT || !rows_alike(kind, av_at(r, b)->konst))
    return rec_stuck(r, REASON_loop_list, "lists of different kinds are joined");
  Outcome o = both_of(r, av_item(r, a, 0), n, av_item(r, b, 0), m, kind, &columns);
  if (o == OUT_GO) o = rec_binary(r, BC_add, n, m, &count);
  return o == OUT_GO ? rec_made(r, rec_new_rows(r, columns, count, kind), out) : o;
}

/* list[start:stop:step] in general: columns of their own. */
Outcome rec_rows_part(Recorder *r, Av rows, const Av *parts, Av *out) {
  Av columns, count = 0;
  Value kind = av_at(r, rows)->konst;
  if (kind.kind == V_TEXT)
    return rec_stuck(r, REASON_loop_list, "a slice of a text that does not begin with its first character");
  Outcome o = whole_part_of(r, av_item(r, rows, 0), av_item(r, rows, 1), parts, &count, &columns);
  return o == OUT_GO && count ? rec_made(r, rec_new_rows(r, columns, count, kind), out) : o;
}
