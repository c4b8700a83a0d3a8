/* record_rows.c — lists that a loop grows or indexes: numbers of one kind in an array with room, and their count.
 *
 * An AV_ROWS has two items: the rows, an array value whose first axis has room, and how many of them count, a weak
 * integer. `op` is 1 when the numbers are weak. Rows behind the count are never looked at, so that popping changes
 * the count alone. When the room is used up the region is left before the instruction that appends; the
 * interpreter appends, and the loop is entered again with twice the room. */
#include "tracer/record.h"

#include <string.h>

static Outcome made(Recorder *r, Av a, Av *out) {
  *out = a;
  return a && !r->failed ? OUT_GO : OUT_FAIL;
}

static Span here(const Recorder *r) {
  const RecFrame *f = &r->frames.data[r->frames.count - 1];
  return f->code->proto->spans[f->pc];
}

static Av new_rows(Recorder *r, ValueId rows, Av count, bool weak) {
  Av parts[2] = {av_num(r, rows), count};
  Av a = parts[0] && count ? av_items(r, AV_ROWS, parts, 2) : 0;
  if (a) av_at(r, a)->op = weak;
  return a;
}

static ValueId rows_array(Recorder *r, Av a) { return av_value(r, av_item(r, a, 0)); }
static Av rows_count(Recorder *r, Av a) { return av_item(r, a, 1); }

/* ---- which lists can be rows ----------------------------------------------------------------------------- */

/* The kind of the items: numbers of rank 0, all of one dtype, all weak or all strong. */
static bool kind_of_items(Recorder *r, Av list, RowKind *kind) {
  const AbsVal *v = av_at(r, list);
  if (v->kind == AV_ROWS) {
    const ArrayType *t = value_type(r->g, rows_array(r, list));
    *kind = (RowKind){t->dtype, av_at(r, list)->op != 0};
    return true;
  }
  if (v->kind != AV_LIST || v->count == 0) return false;
  u32 n = v->count;
  for (u32 i = 0; i < n; i++) {
    ValueId x = av_value(r, av_item(r, list, i));
    const ArrayType *t = x ? value_type(r->g, x) : NULL;
    if (!t || t->rank || t->device || t->dtype == DT_c128) return false;
    if (i == 0) *kind = (RowKind){t->dtype, t->weak};
    else if (t->dtype != kind->dtype || t->weak != kind->weak) return false;
  }
  return true;
}

static bool same_kind(RowKind a, RowKind b) { return a.dtype == b.dtype && a.weak == b.weak; }

/* What is known of a value so far, which is not looked into for this. */
static Av as_known(const Recorder *r, Av a) {
  const AbsVal *v = av_at(r, a);
  Av known = v->kind == AV_LAZY && v->source < r->source_av.count ? r->source_av.data[v->source] : 0;
  return known ? known : a;
}

/* The place of an enclosing loop that holds `list` now. */
static RecLoc *loc_of(Recorder *r, Av list, RecLoop **loop) {
  for (RecLoop *l = r->loop; l; l = l->outer)
    for (u32 i = 0; i < l->locs.count; i++) {
      RecLoc *loc = &l->locs.data[i];
      Av now = loc->cell ? r->cells.data[loc->index].value : r->frames.data[l->depth].regs[loc->index];
      if (!now || (now != list && as_known(r, now) != as_known(r, list))) continue;
      *loop = l;
      return loc;
    }
  return NULL;
}

bool rec_want_rows(Recorder *r, RecLoop *l, RecLoc *loc, Av now) {
  if (loc->rows || !loc->before) return false;
  u8 was = av_at(r, av_force(r, loc->before))->kind, is = av_at(r, now)->kind;
  RowKind kind;
  if (was != AV_LIST || (is != AV_LIST && is != AV_ROWS) || !kind_of_items(r, now, &kind)) return false;
  loc->kind = kind;
  loc->kind_known = true;
  r->lacks = l;
  r->lacks_rows = loc;
  return true;
}

bool rec_merge_rows(Recorder *r, Av base, Av a, Av b) {
  RecLoop *l;
  if (!base || !a || !b || !r->loop) return false;
  base = av_force(r, base);
  RecLoc *loc = loc_of(r, base, &l);
  if (!loc) return false;
  a = av_force(r, a);
  b = av_force(r, b);
  u32 na = av_at(r, a)->count, nb = av_at(r, b)->count;
  return rec_want_rows(r, l, loc, av_at(r, a)->kind == AV_ROWS || (av_at(r, b)->kind != AV_ROWS && na > nb) ? a : b);
}

/* The input that packs what a source names, a list or text of so many items. */
static Outcome packed_source(Recorder *r, SourceId s, u32 now, RowKind kind, Av *out) {
  Graph *g = r->g;
  Av count = av_length(r, s, now);
  u32 in = guard_input(&g->guards, s, IN_rows);
  if (!count || in == UINT32_MAX) return OUT_FAIL;
  g->guards.inputs.data[in].donate = true;
  ValueId rows = 0;
  for (u32 i = 0; i < g->inputs.count; i++)
    if (g->inputs.data[i].input == in) rows = g->inputs.data[i].value;
  if (!rows) {
    Dim n;
    if (!av_dim(r, count, &n)) return OUT_FAIL;
    Dim room = size_add(&g->sizes, size_mul(&g->sizes, n, 2), ROWS_ROOM);
    if (room == DIM_NONE) return rec_stuck(r, REASON_size_expression, "the length of a list");
    ArrayType t = {.dtype = kind.dtype, .rank = 1, .dims = {room}};
    rows = graph_input(g, graph_type(g, &t), in);
  }
  Av a = rows ? new_rows(r, rows, count, kind.weak) : 0;
  return made(r, a, out);
}

static Outcome rows_of_source(Recorder *r, SourceId s, const List *list, Av *out) {
  Value kind;
  if (!rows_kind(list->items, list->count, &kind)) return rec_stuck(r, REASON_loop_list, "a list whose items are not numbers of one kind");
  if (!guard_rows(&r->g->guards, s, kind, here(r))) return OUT_FAIL;
  Outcome o = packed_source(r, s, list->count, (RowKind){kind.dtype, (kind.flags & VF_WEAK) != 0}, out);
  if (o == OUT_GO) av_at(r, *out)->source = s;
  return o;
}

static bool list_source(const AbsVal *v) {
  return v->source && (v->kind == AV_LAZY || v->kind == AV_OBJECT || v->kind == AV_LIST) && v->konst.kind == V_LIST;
}

/* The items in an array without room, for a list that the loop only reads: made before it (graph_hoist.c). */
static Outcome items_stacked(Recorder *r, Av list, Av *out) {
  RowKind kind;
  Av joined;
  if (!kind_of_items(r, list, &kind)) return rec_stuck(r, REASON_loop_list, "a list whose items are not numbers of one kind");
  u32 n = av_at(r, list)->count;
  Av params[OP_MAX_PARAMS] = {list, av_const(r, value_weak_i64(0))};
  Outcome o = rec_op(r, OP_stack, params, &joined);
  if (o != OUT_GO) return o;
  ValueId rows = av_value(r, joined);
  return rows ? made(r, new_rows(r, rows, av_const(r, value_weak_i64(n)), kind.weak), out) : OUT_FAIL;
}

Outcome rec_rows_of(Recorder *r, Av list, const RowKind *want, Av *out) {
  Graph *g = r->g;
  const AbsVal *v = av_at(r, list);
  if (v->kind == AV_ROWS) return made(r, list, out);
  if (list_source(v) && v->konst.list->count) {
    Outcome o = rows_of_source(r, v->source, v->konst.list, out);
    RowKind kind;
    if (o == OUT_GO && want && kind_of_items(r, *out, &kind) && !same_kind(kind, *want)) o = rec_stuck(r, REASON_loop_list, "items of different kinds");
    return o;
  }
  if (!(list = av_force(r, list))) return OUT_FAIL;
  v = av_at(r, list);
  RowKind kind;
  if (v->kind != AV_LIST) return rec_stuck(r, REASON_loop_list, "%s in a loop", av_kind_text(r, list));
  u32 n = v->count;
  if (n == 0 && want) kind = *want;
  else if (!kind_of_items(r, list, &kind) || (want && !same_kind(kind, *want)))
    return rec_stuck(r, REASON_loop_list, "a list whose items are not numbers of one kind");
  Dim room = n + ROWS_ROOM;
  ValueId rows = graph_full(g, kind.dtype, 1, &room, 0);
  for (u32 i = 0; i < n && rows; i++) {
    ValueId x = graph_convert(g, av_value(r, av_item(r, list, i)), kind.dtype);
    IndexItem at = {.kind = INDEX_int, .part = {PART_dim}, .at = {i}};
    rows = x ? graph_update(g, OP_none, rows, NULL, 0, &at, 1, x) : 0;
  }
  return rows ? made(r, new_rows(r, rows, av_const(r, value_weak_i64(n)), kind.weak), out) : OUT_FAIL;
}

/* A list from outside that nobody has looked into yet: better packed than taken apart where its items are asked for by
 * computed positions. */
bool rec_rows_suit(const Recorder *r, Av list) {
  const AbsVal *v = list ? av_at(r, list) : NULL;
  return v && v->kind == AV_LAZY && list_source(v) && v->konst.list->count && as_known(r, list) == list;
}

/* A list inside a loop where its items are asked for by a computed position. */
Outcome rec_rows_here(Recorder *r, Av list, Av *out) {
  RecLoop *l;
  if (!r->loop) return rec_stuck(r, REASON_literal_needed, "a list position must be known while tracing");
  RecLoc *loc = loc_of(r, list, &l);
  if (!loc) {
    const AbsVal *v = av_at(r, list);
    Outcome o = v->kind == AV_LIST && !list_source(v) ? items_stacked(r, list, out) : OUT_STUCK;
    if (o == OUT_STUCK) o = rec_rows_of(r, list, NULL, out);
    if (o == OUT_STUCK) r->reason = REASON_literal_needed;
    return o;
  }
  if (!loc->rows) {
    loc->kind_known = false;
    r->lacks = l;
    r->lacks_rows = loc;
  }
  return rec_stuck(r, REASON_literal_needed, "a list position must be known while tracing");
}

/* Lists that the loop grows or indexes become rows before it. One that cannot is tried once more as it is. */
Outcome rec_make_rows(Recorder *r, RecLoop *l) {
  for (u32 i = 0; i < l->locs.count; i++) {
    RecLoc *loc = &l->locs.data[i];
    if (loc->rows != 1) continue;
    Av rows;
    Outcome o = rec_rows_of(r, *rec_loc_at(r, loc), loc->kind_known ? &loc->kind : NULL, &rows);
    if (o == OUT_STUCK) {
      r->lacks = l;
      r->lacks_rows = loc;
    }
    if (o != OUT_GO) return o;
    *rec_loc_at(r, loc) = rows;
  }
  return OUT_GO;
}

/* What a `for` walks over: a long list is packed. */
Outcome rec_rows_walk(Recorder *r, Av seq, Av *out) {
  const u32 most = 2 * (u32)r->vm->tunables.unroll_trips;
  const AbsVal *v = av_at(r, seq);
  Outcome o = OUT_STUCK;
  if (list_source(v) && v->konst.list->count > most) o = rec_rows_of(r, seq, NULL, out);
  if (o != OUT_STUCK) return o;
  if (!(*out = seq = av_force(r, seq))) return OUT_FAIL;
  if (av_at(r, seq)->kind != AV_LIST || av_at(r, seq)->count <= most || !r->loop) return OUT_GO;
  Av rows;
  o = rec_rows_here(r, seq, &rows);
  if (o == OUT_GO) *out = rows;
  return o == OUT_FAIL || r->lacks ? o : OUT_GO;
}

/* ---- what is done with them -------------------------------------------------------------------------------- */

/* A position as an operand: checked, counted from 0. */
static Outcome position(Recorder *r, Av rows, Av at, ValueId *out) {
  Av n = rows_count(r, rows), moved, negative;
  ValueId v = av_value(r, at);
  const ArrayType *t = v ? value_type(r->g, v) : NULL;
  if (!t || t->rank || dtype_kind(t->dtype) != DK_INT) return rec_stuck(r, REASON_raises, "a list indexed by %s", av_kind_text(r, at));
  ValueId checked[2] = {v, av_value(r, n)};
  Outcome o = rec_check(r, CHECK_index, checked, 2);
  if (o != OUT_GO) return o;
  i64 known;
  Dim d;
  bool plain = av_known_int(r, at, &known) ? known >= 0 : value_dim(r->g, v, &d) && d != DIM_NONE && size_prove(&r->g->sizes, REL_le, 0, d) == TRUTH_always;
  if (!plain) {
    Av zero = av_const(r, value_weak_i64(0));
    if ((o = rec_binary(r, BC_add, at, n, &moved)) != OUT_GO) return o;
    if (av_known_int(r, at, &known)) at = moved;
    else {
      if ((o = rec_binary(r, BC_lt, at, zero, &negative)) != OUT_GO) return o;
      Av params[OP_MAX_PARAMS] = {negative, moved, at};
      if ((o = rec_op(r, OP_where, params, &at)) != OUT_GO) return o;
    }
  }
  *out = av_value(r, at);
  return *out ? OUT_GO : OUT_FAIL;
}

static Av item_at(Recorder *r, Av rows, ValueId at) {
  IndexItem it = {.kind = INDEX_int, .part = {PART_operand}, .at = {1}};
  ValueId x = rows_array(r, rows);
  ArrayType t = {.dtype = value_type(r->g, x)->dtype, .weak = av_at(r, rows)->op != 0};
  return av_num(r, graph_index(r->g, x, &at, 1, &it, 1, graph_type(r->g, &t)));
}

/* ---- texts: the code points as rows that nobody changes ----------------------------------------------------- */

bool rec_text_has(const Recorder *r, Av a) {
  const AbsVal *v = a ? av_at(r, a) : NULL;
  return v && r->loop && v->source && (v->kind == AV_LAZY || v->kind == AV_OBJECT || v->kind == AV_CONST) && v->konst.kind == V_TEXT;
}

Outcome rec_text_get(Recorder *r, Av text, Av at, Av *out) {
  Graph *g = r->g;
  const AbsVal v = *av_at(r, text);
  if (!guard_tag(&g->guards, v.source, v.konst, false, here(r))) return OUT_FAIL;
  Av rows, point;
  ValueId pos;
  Outcome o = packed_source(r, v.source, v.konst.text->count, (RowKind){DT_i64, false}, &rows);
  if (o == OUT_GO) o = position(r, rows, at, &pos);
  if (o != OUT_GO) return o;
  point = item_at(r, rows, pos);
  Av a = point ? av_items(r, AV_TEXT, &point, 1) : 0;
  if (a) av_at(r, a)->op = 2;
  return made(r, a, out);
}

static Outcome put_item(Recorder *r, ValueId *rows, ValueId at, RowKind kind, Av item) {
  ValueId x = av_value(r, item);
  const ArrayType *t = x ? value_type(r->g, x) : NULL;
  if (!t || t->rank || t->dtype != kind.dtype || t->weak != kind.weak) return rec_stuck(r, REASON_loop_list, "an item of another kind goes into a list");
  x = graph_convert(r->g, x, kind.dtype);
  IndexItem it = {.kind = INDEX_int, .part = {PART_operand}, .at = {1}};
  *rows = x ? graph_update(r->g, OP_none, *rows, &at, 1, &it, 1, x) : 0;
  r->updated = true;
  return *rows ? OUT_GO : OUT_FAIL;
}

/* The item that a `for` is at: in bounds by construction. */
Outcome rec_rows_item(Recorder *r, Av rows, Av at, Av *out) { return made(r, item_at(r, rows, av_value(r, at)), out); }

Outcome rec_rows_get(Recorder *r, Av rows, Av at, Av *out) {
  ValueId i;
  Outcome o = position(r, rows, at, &i);
  return o == OUT_GO ? made(r, item_at(r, rows, i), out) : o;
}

Outcome rec_rows_set(Recorder *r, Av rows, Av at, Av item, Av *out) {
  ValueId i, array = rows_array(r, rows);
  RowKind kind;
  if (!kind_of_items(r, rows, &kind)) return OUT_FAIL;
  Outcome o = position(r, rows, at, &i);
  if (o == OUT_GO) o = put_item(r, &array, i, kind, item);
  return o == OUT_GO ? made(r, new_rows(r, array, rows_count(r, rows), kind.weak), out) : o;
}

Outcome rec_rows_join(Recorder *r, Av rows, Av more, Av *out) {
  RowKind kind, other;
  u32 k = av_at(r, more)->count;
  if (k == 0) return made(r, rows, out);
  if (!kind_of_items(r, rows, &kind) || !kind_of_items(r, more, &other) || !same_kind(kind, other))
    return rec_stuck(r, REASON_loop_list, "an item of another kind goes into a list");
  if (r->no_exits) return rec_stuck(r, REASON_construct_body, "a list that grows in the body of a construct");
  u32 exit = rec_exit(r, EXIT_cold, REASON_list_room, here(r));
  if (exit == UINT32_MAX) return r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_list, "a list that cannot be rebuilt");
  Av n = rows_count(r, rows), last = n;
  ValueId array = rows_array(r, rows);
  Outcome o = k > 1 ? rec_binary(r, BC_add, n, av_const(r, value_weak_i64(k - 1)), &last) : OUT_GO;
  ValueId checked[2] = {av_value(r, last), graph_size(r->g, value_type(r->g, array)->dims[0])};
  if (o == OUT_GO && (!checked[0] || !checked[1] || !graph_check(r->g, CHECK_index, checked, 2, exit))) o = OUT_FAIL;
  for (u32 i = 0; i < k && o == OUT_GO; i++) {
    if ((o = put_item(r, &array, av_value(r, n), kind, av_item(r, more, i))) != OUT_GO) break;
    o = rec_binary(r, BC_add, n, av_const(r, value_weak_i64(1)), &n);
  }
  return o == OUT_GO ? made(r, new_rows(r, array, n, kind.weak), out) : o;
}

/* The first items: what is left when the last ones are popped. */
Outcome rec_rows_slice(Recorder *r, Av rows, const Av *parts, Av *out) {
  Value v;
  bool from_start = av_const_value(r, parts[0], &v) && (v.kind == V_NIL || (v.kind == V_NUM && v.i == 0 && dtype_kind(v.dtype) == DK_INT));
  bool by_one = av_const_value(r, parts[2], &v) && v.kind == V_NIL;
  if (!from_start || !by_one) return rec_stuck(r, REASON_loop_list, "a slice of a list that does not begin with its first item");
  Av n = rows_count(r, rows), stop = parts[1], zero = av_const(r, value_weak_i64(0)), moved, negative;
  if (av_const_value(r, stop, &v) && v.kind == V_NIL) return made(r, rows, out);
  ValueId x = av_value(r, stop);
  if (!x || value_type(r->g, x)->rank || value_type(r->g, x)->dtype != DT_i64) return rec_stuck(r, REASON_loop_list, "the end of a list slice");
  i64 known = 0;
  bool fixed = av_known_int(r, stop, &known);
  Outcome o = OUT_GO;
  if (!fixed || known < 0) {
    if ((o = rec_binary(r, BC_add, stop, n, &moved)) != OUT_GO) return o;
    if (fixed) stop = moved;
    else {
      if ((o = rec_binary(r, BC_lt, stop, zero, &negative)) != OUT_GO) return o;
      Av params[OP_MAX_PARAMS] = {negative, moved, stop};
      if ((o = rec_op(r, OP_where, params, &stop)) != OUT_GO) return o;
    }
    Av at_least[OP_MAX_PARAMS] = {stop, zero};
    if ((o = rec_op(r, OP_maximum, at_least, &stop)) != OUT_GO) return o;
  }
  Av at_most[OP_MAX_PARAMS] = {stop, n};
  if ((o = rec_op(r, OP_minimum, at_most, &stop)) != OUT_GO) return o;
  const ArrayType *t = value_type(r->g, av_value(r, stop));
  if (!t->weak) return rec_stuck(r, REASON_loop_list, "the end of a list slice is a strong integer");
  return made(r, new_rows(r, rows_array(r, rows), stop, av_at(r, rows)->op != 0), out);
}
