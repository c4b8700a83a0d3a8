/* record_compare.c — comparisons of what is no number in the trace: trees, texts and their characters, `in`. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_names.h"
#include "tracer/record/repr_option.h"
#include "tracer/record/repr_slice.h"

#include <string.h>

/* acc and x, both bools of rank 0; what is known is not computed. */
Outcome rec_and_also(Recorder *r, Av *acc, Av x) {
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
Av rec_text_number(Recorder *r, Av a) {
  Value v;
  Av number = rec_name_of(r, a);
  return number || !av_const_value(r, a, &v) || v.kind != V_TEXT ? number : av_const(r, value_i64(INT64_MIN));
}

/* A number to programs, of which nothing is known here. */
static bool on_tape(const Recorder *r, Av a) {
  return av_has(r, a, IS_OUTER) && av_at(r, a)->konst.kind == V_TRACKED;
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
    return o == OUT_GO ? rec_and_also(r, out, same) : o;
  }
  if (on_tape(r, a) || on_tape(r, b))
    return rec_stuck(r, REASON_no_rule, "`==` of a number that a derivative has left");
  if (nx || ny || strcmp(av_kind_text(r, a), av_kind_text(r, b)) != 0) return rec_made(r, no, out);
  if (av_const_value(r, a, &x) && av_const_value(r, b, &y) && x.kind != V_FN) {
    bool equal = false;
    if (value_equal(r->vm, x, y, &equal) != WEFT_OK) {
      vm_error_forget(r->vm);
      return rec_stuck(r, REASON_raises, "`==` raises an error");
    }
    return rec_made(r, av_const(r, value_bool(equal)), out);
  }
  const Repr *p = av_repr(r, a), *q = av_repr(r, b);
  if (p->equal) return p->equal(r, a, b, out);
  return q->equal ? q->equal(r, b, a, out) : repr_no(r, a, ROP_equal);
}

/* Of two trees, part by part; *all: whether those so far are. */
Outcome rec_equal_part(Recorder *r, Av a, Av b, Av *all) {
  Av same;
  if (r->nest > (u32)r->vm->tunables.trace_nest) return rec_over(r, trace_nest, REASON_graph_size, "a tree");
  r->nest++;
  Outcome o = rec_equal(r, a, b, &same);
  r->nest--;
  return o == OUT_GO ? rec_and_also(r, all, same) : o;
}

/* Of two texts. */
Outcome rec_text_equal(Recorder *r, Av a, Av b, Av *out) {
  if (rec_is_read(r, a) || rec_is_read(r, b)) return rec_read_same(r, a, b, out);
  const bool packed = av_is_packed_text(r, a);
  if (packed != av_is_packed_text(r, b)) return rec_text_same(r, packed ? a : b, packed ? b : a, out);
  Av x = rec_text_number(r, a), y = rec_text_number(r, b);
  if (!x || !y) return rec_stuck(r, REASON_no_rule, "`==` of texts");
  return rec_binary(r, BC_eq, x, y, out);
}

/* Of values that are equal to themselves: functions, refs, ranges … */
Outcome rec_itself_equal(Recorder *r, Av a, Av b, Av *out) {
  (void)out; /* true */
  return a == b ? OUT_GO : rec_stuck(r, REASON_no_rule, "`==` of %s and %s", av_kind_text(r, a), av_kind_text(r, b));
}

/* Of a list in columns, which is not known item by item: whether it is empty. */
Outcome rec_columns_equal(Recorder *r, Av a, Av b, Av *out) {
  Av count, zero = av_const(r, value_weak_i64(0));
  if (!av_is_list(r, b) || av_at(r, b)->count) return rec_stuck(r, REASON_no_rule, "`==` of lists in columns");
  Outcome o = zero ? rec_length(r, a, &count) : OUT_FAIL;
  return o == OUT_GO ? rec_binary(r, BC_eq, count, zero, out) : o;
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

Outcome rec_or_else(Recorder *r, Av *acc, Av x) {
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
    if (o == OUT_GO) o = both ? rec_and_also(r, &both, low) : OUT_FAIL;
    if (o == OUT_GO && !one) o = rec_and_also(r, &both, high);
    if (o == OUT_GO) o = rec_or_else(r, out, both);
    if (o != OUT_GO) return o;
  }
  return OUT_GO;
}

/* A character in a text: one that is known, or that is read. */
Outcome rec_text_contains(Recorder *r, Av a, Av x, Av *out) {
  Value v;
  i64 points[256];
  if (!rec_is_text(r, x)) return rec_stuck(r, REASON_raises, "`in` of %s and text", av_kind_text(r, x));
  Av point = point_of(r, x);
  bool one = point && (!av_const_value(r, x, &v) || v.text->count == 1);
  if (one && rec_is_read(r, a)) return rec_read_has(r, a, point, out);
  if (!av_is_character(r, x) || !av_const_value(r, a, &v) || v.text->count > COUNT_OF(points))
    return r->failed ? OUT_FAIL : rec_stuck(r, REASON_no_rule, "`in` of text and text");
  text_points(v.text, points);
  return in_points(r, av_item(r, x, 0), points, v.text->count, out);
}

/* A text that has a number among the keys of a record. */
Outcome rec_in_keys(Recorder *r, Av a, const Shape *s, Av *out) {
  i64 points[64];
  u32 n = 0;
  for (u32 i = 0; i < s->count; i++) {
    Value key;
    if (n == COUNT_OF(points)) return rec_stuck(r, REASON_no_rule, "`in` of text and record");
    if (!text_new(r->vm, name_text(&r->vm->names, s->keys[i]), name_len(&r->vm->names, s->keys[i]), &key)) {
      vm_error_forget(r->vm);
      return OUT_FAIL;
    }
    bool numbered = !text_has_number(key.text) || text_number(r->vm, key.text, &points[n++]);
    value_drop(r->vm, key);
    if (!numbered) return OUT_FAIL;
  }
  return in_points(r, av_item(r, a, 0), points, n, out);
}

Outcome rec_member(Recorder *r, Av a, Av b, Av *out) {
  const Repr *p = av_repr(r, b);
  return p->contains ? p->contains(r, b, a, out) : repr_no(r, b, ROP_contains);
}
