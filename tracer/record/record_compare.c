/* record_compare.c — comparisons of what is no number in the trace: trees, texts and their characters, `in`. */
#include "tracer/record/record.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_data.h"
#include "tracer/record/repr_keyed.h"
#include "tracer/record/repr_names.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/repr_option.h"
#include "tracer/record/repr_queue.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_slice.h"
#include "tracer/record/record_weak.h"

#include <string.h>

/* acc and x, both bools of rank 0; what is known is not computed. */
static Outcome and_also(Recorder *r, Av *acc, Av x) {
  Value v;
  if (av_const_value(r, x, &v)) {
    if (!v.i) *acc = av_const(r, value_bool(false));
    return *acc ? OUT_GO : OUT_FAIL;
  }
  ValueId strong = rec_strengthen(r, av_value(r, x), DT_bool);
  if (!strong || !(x = av_num(r, strong))) return OUT_FAIL;
  if (av_const_value(r, *acc, &v)) {
    *acc = v.i ? x : *acc;
    return OUT_GO;
  }
  Av params[OP_MAX_PARAMS] = {*acc, x};
  return rec_op(r, OP_logical_and, params, acc);
}

/* A number for the code point that a text is, where it can be only one; 0: it cannot be told. A known text of another
 * length is no code point: -1. */
static Av point_of(Recorder *r, Av a) {
  Value v;
  if (av_is_character(r, a)) return av_item(r, a, 0);
  if (!av_const_value(r, a, &v) || v.kind != V_TEXT) return 0;
  i64 point = -1;
  if (v.text->count == 1) text_points(v.text, &point);
  return av_const(r, value_i64(point));
}

/* A number that two texts share when they are equal alone. A known text may have none: then it is none of those that
 * are not known. */
static Av number_of(Recorder *r, Av a) {
  Value v;
  Av number = rec_name_of(r, a);
  return number || !av_const_value(r, a, &v) || v.kind != V_TEXT ? number : av_const(r, value_i64(INT64_MIN));
}

/* A number to programs, of which nothing is known here. */
static bool on_tape(const Recorder *r, Av a) {
  return av_has(r, a, IS_OUTER) && av_at(r, a)->konst.kind == V_TRACKED;
}

static bool is_empty_list(const Recorder *r, Av a) { return av_is_list(r, a) && !av_at(r, a)->count; }

/* Of a list in columns. */
static Av count_of(const Recorder *r, Av a) {
  const AbsVal *v = av_at(r, a);
  return kind_in_columns(v->kind) ? av_item(r, a, 1) : kind_is_queue(v->kind) ? rec_queue_count(r, a) : 0;
}

/* The structural equality of vm/compare.c. */
Outcome rec_equal(Recorder *r, Av a, Av b, Av *out) {
  Value x, y;
  a = av_force(r, a);
  b = av_force(r, b);
  if (!a || !b) return OUT_FAIL;
  Outcome of_option;
  if (rec_option_equal(r, a, b, out, &of_option)) return of_option;
  if (!(*out = av_const(r, value_bool(true)))) return OUT_FAIL;
  Av no = av_const(r, value_bool(false)), same;
  bool nx = av_is_number(r, a), ny = av_is_number(r, b);
  if (nx && ny) {
    ArrayType s = *value_type(r->g, av_value(r, a)), t = *value_type(r->g, av_value(r, b));
    if (s.rank != t.rank) return rec_made(r, no, out);
    for (u32 d = 0; d < s.rank; d++)
      if (!size_same(&r->g->sizes, s.dims[d], t.dims[d]))
        return rec_stuck(r, REASON_no_rule, "`==` of arrays of sizes that may differ");
    Outcome o = rec_binary(r, BC_eq, a, b, &same);
    Av params[OP_MAX_PARAMS] = {same};
    if (o == OUT_GO && s.rank) o = rec_op(r, OP_all, params, &same);
    return o == OUT_GO ? and_also(r, out, same) : o;
  }
  u8 ka = av_at(r, a)->kind, kb = av_at(r, b)->kind;
  if (on_tape(r, a) || on_tape(r, b))
    return rec_stuck(r, REASON_no_rule, "`==` of a number that a derivative has left");
  if (nx || ny || strcmp(av_kind_text(r, a), av_kind_text(r, b)) != 0) return rec_made(r, no, out);
  if (av_const_value(r, a, &x) && av_const_value(r, b, &y) && x.kind != V_FN) {
    bool equal = false;
    if (value_equal(r->vm, x, y, &equal) != WEFT_OK) {
      vm_error_clear(r->vm);
      return rec_stuck(r, REASON_raises, "`==` raises an error");
    }
    return rec_made(r, av_const(r, value_bool(equal)), out);
  }
  if (rec_is_text(r, a) && (rec_is_read(r, a) || rec_is_read(r, b))) return rec_read_same(r, a, b, out);
  if (rec_is_text(r, a) && (kind_in_columns(ka)) != (kind_in_columns(kb)))
    return rec_text_same(r, kind_in_columns(ka) ? a : b, kind_in_columns(ka) ? b : a, out);
  if (kind_is_made_text(ka) || kind_is_made_text(kb)) {
    Av x1 = number_of(r, a), y1 = number_of(r, b);
    if (!x1 || !y1) return rec_stuck(r, REASON_no_rule, "`==` of texts");
    return rec_binary(r, BC_eq, x1, y1, out);
  }
  bool list = kind_is_list(ka) && kind_is_list(kb), record = kind_is_record(ka) && kind_is_record(kb);
  u8 whole = kind_has(ka, IS_OUTER) ? av_at(r, a)->konst.kind : V_NIL; /* what is not looked into may hold NaN */
  bool holds = kind_in_columns(ka) || kind_is_queue(ka) || whole == V_LIST || whole == V_RECORD || whole == V_TRACKED;
  if (a == b && !list && !record && !holds) return OUT_GO; /* one function, ref, range … */
  Av count = is_empty_list(r, b) ? count_of(r, a) : is_empty_list(r, a) ? count_of(r, b) : 0;
  if (count && !list) return rec_binary(r, BC_eq, count, av_const(r, value_weak_i64(0)), out);
  if (!list && !record)
    return rec_stuck(r, REASON_no_rule, "`==` of %s and %s", av_kind_text(r, a), av_kind_text(r, b));
  u32 n = av_at(r, a)->count;
  if (n != av_at(r, b)->count) return rec_made(r, no, out);
  if (r->nest > 60) return rec_stuck(r, REASON_graph_size, "a deep tree");
  for (u32 i = 0; i < n; i++) {
    i32 at = list ? (i32)i : av_field(r, b, av_at(r, a)->shape->keys[i]);
    if (at < 0) return rec_made(r, no, out);
    r->nest++;
    Outcome o = rec_equal(r, av_item(r, a, i), av_item(r, b, (u32)at), &same);
    r->nest--;
    if (o == OUT_GO) o = and_also(r, out, same);
    if (o != OUT_GO) return o;
    if (av_const_value(r, *out, &x) && !x.i) return OUT_GO;
  }
  return OUT_GO;
}

/* ---- order --------------------------------------------------------------------------------------------------- */

/* A character and a text that is known. One of more than one character stands between its first one and the next
 * one. */
Outcome rec_text_order(Recorder *r, u32 bc, Av a, Av b, Av *out) {
  Value v;
  Av x = rec_is_text(r, a) ? point_of(r, a) : 0, y = rec_is_text(r, b) ? point_of(r, b) : 0;
  if (!x || !y)
    return rec_stuck(r, REASON_no_rule, "`%s` of %s and %s", bc_info[bc].name, av_kind_text(r, a), av_kind_text(r, b));
  bool known = av_const_value(r, b, &v); /* else a is, or neither */
  if ((known || av_const_value(r, a, &v)) && v.text->count > 1) {
    i64 *points = arena_alloc(&r->g->arena, sizeof *points * v.text->count);
    if (!points) return OUT_FAIL;
    text_points(v.text, points);
    bool next = known ? bc == BC_lt || bc == BC_ge : bc == BC_gt || bc == BC_le;
    *(known ? &y : &x) = av_const(r, value_i64(points[0] + next));
  }
  return rec_binary(r, bc, x, y, out);
}

/* ---- in -------------------------------------------------------------------------------------------------------- */

enum { MEMBERS_MOST = 24 };

static Outcome or_else(Recorder *r, Av *acc, Av x) {
  Value v;
  if (av_const_value(r, x, &v)) {
    if (v.i) *acc = x;
    return OUT_GO;
  }
  if (av_const_value(r, *acc, &v)) {
    *acc = v.i ? *acc : x;
    return OUT_GO;
  }
  Av params[OP_MAX_PARAMS] = {*acc, x};
  return rec_op(r, OP_logical_or, params, acc);
}

static Outcome in_items(Recorder *r, Av a, const Av *items, u32 n, Av *out) {
  Value v;
  if (!(*out = av_const(r, value_bool(false)))) return OUT_FAIL;
  for (u32 i = 0; i < n; i++) {
    Av same;
    Outcome o = rec_equal(r, a, items[i], &same);
    if (o == OUT_GO) o = or_else(r, out, same);
    if (o != OUT_GO) return o;
    if (av_const_value(r, *out, &v) && v.i) return OUT_GO;
  }
  return OUT_GO;
}

/* Is a code point one of these? They are sorted here; what follows one another is asked for as a whole. */
static Outcome in_points(Recorder *r, Av point, i64 *points, u32 n, Av *out) {
  for (u32 i = 1; i < n; i++) {
    i64 p = points[i];
    u32 k = i;
    for (; k > 0 && points[k - 1] > p; k--) points[k] = points[k - 1];
    points[k] = p;
  }
  if (!(*out = av_const(r, value_bool(false)))) return OUT_FAIL;
  for (u32 i = 0, next; i < n; i = next) {
    for (next = i + 1; next < n && points[next] <= points[next - 1] + 1;) next++;
    Av low, high, both = av_const(r, value_bool(true));
    bool one = points[next - 1] == points[i];
    Outcome o = rec_binary(r, one ? BC_eq : BC_ge, point, av_const(r, value_i64(points[i])), &low);
    if (o == OUT_GO && !one) o = rec_binary(r, BC_le, point, av_const(r, value_i64(points[next - 1])), &high);
    if (o == OUT_GO) o = both ? and_also(r, &both, low) : OUT_FAIL;
    if (o == OUT_GO && !one) o = and_also(r, &both, high);
    if (o == OUT_GO) o = or_else(r, out, both);
    if (o != OUT_GO) return o;
  }
  return OUT_GO;
}

/* A character in a text that is known. */
static Outcome in_text(Recorder *r, Av a, Av b, Av *out) {
  Value v;
  i64 points[256];
  if (!av_const_value(r, b, &v) || v.text->count > COUNT_OF(points))
    return rec_stuck(r, REASON_no_rule, "`in` of text and text");
  text_points(v.text, points);
  return in_points(r, av_item(r, a, 0), points, v.text->count, out);
}

/* A text that has a number among the keys of a record. */
static Outcome in_keys(Recorder *r, Av a, const Shape *s, Av *out) {
  i64 points[64];
  u32 n = 0;
  for (u32 i = 0; i < s->count; i++) {
    Value key;
    if (n == COUNT_OF(points)) return rec_stuck(r, REASON_no_rule, "`in` of text and record");
    if (!text_new(r->vm, name_text(&r->vm->names, s->keys[i]), name_len(&r->vm->names, s->keys[i]), &key)) {
      vm_error_clear(r->vm);
      return OUT_FAIL;
    }
    bool numbered = !text_has_number(key.text) || text_number(r->vm, key.text, &points[n++]);
    value_drop(r->vm, key);
    if (!numbered) return OUT_FAIL;
  }
  return in_points(r, av_item(r, a, 0), points, n, out);
}

static Outcome in_range(Recorder *r, Av a, Av range, Av *out) {
  ValueId v = av_value(r, a);
  const ArrayType *t = v ? value_type(r->g, v) : NULL;
  i64 step;
  if (!t || t->rank || dtype_kind(t->dtype) != DK_INT || t->dtype == DT_u64 ||
      !av_known_int(r, av_item(r, range, 2), &step) || step != 1)
    return rec_stuck(r, REASON_no_rule, "`in` of %s and range", av_kind_text(r, a));
  Av above, below;
  if (!t->weak && t->dtype != DT_i64 && !(a = av_num(r, graph_convert(r->g, v, DT_i64)))) return OUT_FAIL;
  Outcome o = rec_binary(r, BC_ge, a, av_item(r, range, 0), &above);
  if (o == OUT_GO) o = rec_binary(r, BC_lt, a, av_item(r, range, 1), &below);
  if (o == OUT_GO && !(*out = av_const(r, value_bool(true)))) o = OUT_FAIL;
  if (o == OUT_GO) o = and_also(r, out, above);
  return o == OUT_GO ? and_also(r, out, below) : o;
}

/* A number or a text among those of a list that is packed. */
static Outcome in_rows(Recorder *r, Av a, Av rows, Av *out) {
  Value kind = av_at(r, rows)->konst;
  bool texts = kind.kind == V_HOLE;
  Av x = texts ? number_of(r, a) : a, column = av_item(r, rows, 0), nil = av_const(r, value_nil());
  ValueId v = x ? av_value(r, x) : 0;
  const ArrayType *t = v ? value_type(r->g, v) : NULL;
  bool plain = t && !t->rank && (t->dtype == DT_i64 || t->dtype == DT_f64) &&
               (texts || (kind.kind == V_NUM && (kind.dtype == DT_i64 || kind.dtype == DT_f64)));
  if (!plain) return r->failed ? OUT_FAIL : rec_stuck(r, REASON_no_rule, "`in` of %s and list", av_kind_text(r, a));
  const u8 slice = IX_SLICE;
  Av ends[3] = {nil, av_item(r, rows, 1), nil}, all, same = 0, params[OP_MAX_PARAMS] = {0};
  Outcome o = rec_index(r, rows_mixed(kind) ? av_item(r, column, 0) : column, &slice, 1, ends, &all);
  if (o == OUT_GO) o = rec_binary(r, BC_eq, all, x, &same);
  params[0] = same;
  return o == OUT_GO ? rec_op(r, OP_any, params, out) : o;
}

Outcome rec_member(Recorder *r, Av a, Av b, Av *out) {
  Value key;
  const AbsVal v = *av_at(r, b);
  if (kind_is_record(v.kind) && av_const_value(r, a, &key) && key.kind == V_TEXT) {
    Name name;
    bool known = name_known(&r->vm->names, key.text->data, key.text->len, &name);
    return rec_made(r, av_const(r, value_bool(known && av_field(r, b, name) >= 0)), out);
  }
  if (kind_is_list(v.kind) && v.count <= MEMBERS_MOST) {
    Av items[MEMBERS_MOST];
    for (u32 i = 0; i < v.count; i++) items[i] = av_item(r, b, i);
    return in_items(r, a, items, v.count, out);
  }
  if (kind_is_range(v.kind)) return in_range(r, a, b, out);
  if (rec_is_keyed(r, b)) return rec_keyed_in(r, a, b, out);
  bool outside = kind_is_outer_list(v.kind) && r->loop;
  if (outside || kind_is_queue(v.kind) || (kind_in_columns(v.kind) && v.konst.kind != V_TEXT)) {
    Outcome o = outside ? rec_rows_here(r, b, &b) : kind_is_queue(v.kind) ? rec_queue_rows(r, b, &b) : OUT_GO;
    return o == OUT_GO ? in_rows(r, a, b, out) : o;
  }
  bool character = av_is_character(r, a), name = rec_key_computed(r, b, a);
  if (rec_is_text(r, a) && rec_is_read(r, b)) {
    Av point = point_of(r, a);
    bool one = point && (!av_const_value(r, a, &key) || key.text->count == 1);
    return one ? rec_read_has(r, b, point, out) : r->failed ? OUT_FAIL
               : rec_stuck(r, REASON_no_rule, "`in` of text and text");
  }
  if (character && rec_is_text(r, b)) return in_text(r, a, b, out);
  if (character &&
      (kind_is_outer_record(v.kind) || (kind_is_record(v.kind) && v.count > MEMBERS_MOST))) {
    Av rows;
    Outcome o = rec_keyed_read(r, b, a, &rows);
    if (o != OUT_GO) return o;
    if (rows) return rec_keyed_in(r, a, rows, out);
  }
  if ((character || name) && kind_is_record(v.kind)) return in_keys(r, a, v.shape, out);
  return rec_stuck(r, REASON_no_rule, "`in` of %s and %s", av_kind_text(r, a), av_kind_text(r, b));
}
