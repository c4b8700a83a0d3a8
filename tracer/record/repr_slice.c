/* repr_slice.c — texts that are read character by character without being made: the text of an integer
 * (repr_digits.c); a part of such a text or of one that is packed, `text[i:j]`, whose items (`part`)
 * are the text, where the part begins and how many characters it has; one from its end, `text[::-1]` (`reversed`).
 * Their length, characters, `==`, `in`, and the number that they say. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_digits.h"
#include "tracer/record/repr_slice.h"

/* not a threshold: places of parts; characters that are compared each by itself */
enum { SLICE_ROWS, SLICE_START, SLICE_COUNT, SLICE_PARTS, SAME_MOST = 16 };

static bool is_slice(const Recorder *r, Av a) { return av_is_part(r, a); }
static bool is_turned(const Recorder *r, Av a) { return av_is_reversed(r, a); }

bool rec_is_read(Recorder *r, Av a) { return a && (is_slice(r, a) || is_turned(r, a) || rec_is_digits(r, a)); }

bool rec_is_of_digits(Recorder *r, Av a) {
  while (a && (is_slice(r, a) || is_turned(r, a))) a = av_item(r, a, SLICE_ROWS);
  return rec_is_digits(r, a);
}

static Av av_int(Recorder *r, i64 i) { return av_const(r, value_i64(i)); }

static Outcome op2_of(Recorder *r, u32 op, Av a, Av b, Av *out) {
  Av params[OP_MAX_PARAMS] = {a, b};
  return a && b ? rec_op(r, op, params, out) : OUT_FAIL;
}

static Outcome strong_bool(Recorder *r, Av *a) {
  return rec_made(r, av_num(r, rec_strengthen(r, av_value(r, *a), DT_bool)), a);
}

static Outcome check(Recorder *r, Av is) {
  ValueId v = av_value(r, is);
  return v ? rec_check(r, CHECK_assertion, &v, 1) : OUT_FAIL;
}

/* ---- made -------------------------------------------------------------------------------------------------------- */

/* An end of a slice of n characters, clamped. nil: `none`. */
static Outcome part_clamped(Recorder *r, Av part, Av n, Av none, Av *out) {
  Value v;
  i64 known = 0;
  Av moved, zero = av_const(r, value_weak_i64(0));
  if (!zero || !(part = av_force(r, part))) return OUT_FAIL;
  if (av_const_value(r, part, &v) && v.kind == V_NIL) return rec_made(r, none, out);
  ValueId x = av_value(r, part);
  const ArrayType *t = x ? value_type(r->g, x) : NULL;
  if (!t || t->rank || t->dtype != DT_i64 || !t->weak)
    return rec_stuck(r, REASON_no_rule, "an end of a slice of a text");
  bool fixed = av_known_int(r, part, &known);
  Outcome o = OUT_GO;
  if (!fixed || known < 0) {
    Av negative, params[OP_MAX_PARAMS];
    if ((o = rec_binary(r, BC_add, part, n, &moved)) == OUT_GO) o = rec_binary(r, BC_lt, part, zero, &negative);
    if (o != OUT_GO) return o;
    params[0] = negative, params[1] = moved, params[2] = part;
    if ((o = rec_op(r, OP_where, params, &part)) == OUT_GO) o = op2_of(r, OP_maximum, part, zero, &part);
  }
  return o == OUT_GO ? op2_of(r, OP_minimum, part, n, out) : o;
}

Outcome rec_text_slice(Recorder *r, Av rows, const Av *parts, Av *out) {
  Value v;
  Av n, made[SLICE_PARTS] = {rows}, stop, zero = av_const(r, value_weak_i64(0));
  bool plain = av_const_value(r, parts[2], &v) && v.kind == V_NIL,
      back = !plain && v.kind == V_NUM && v.dtype == DT_i64 && v.i == -1;
  for (u32 i = 0; i < 2 && back; i++) back = av_const_value(r, parts[i], &v) && v.kind == V_NIL;
  if (back) return rec_made(r, av_items(r, AV_reversed, made, 1), out);
  if ((!rec_is_read(r, rows) && !av_at(r, rows)->source) || !plain)
    return rec_stuck(r, REASON_no_rule, "a slice of a text");
  Outcome o = rec_read_count(r, rows, &n);
  if (o == OUT_GO) o = part_clamped(r, parts[0], n, zero, &made[SLICE_START]);
  if (o == OUT_GO) o = part_clamped(r, parts[1], n, n, &stop);
  if (o == OUT_GO) o = rec_binary(r, BC_sub, stop, made[SLICE_START], &made[SLICE_COUNT]);
  if (o == OUT_GO) o = op2_of(r, OP_maximum, made[SLICE_COUNT], zero, &made[SLICE_COUNT]);
  if (o != OUT_GO) return o;
  return rec_made(r, av_items(r, AV_part, made, SLICE_PARTS), out);
}

/* ---- used -------------------------------------------------------------------------------------------------------- */

Outcome rec_read_count(Recorder *r, Av text, Av *out) {
  while (is_turned(r, text)) text = av_item(r, text, 0);
  if (rec_is_digits(r, text)) return rec_digits_count(r, text, out);
  return rec_made(r, av_item(r, text, is_slice(r, text) ? SLICE_COUNT : 1), out);
}

/* The code point at a place that may lie behind its end, where there is room. */
static Outcome point_at(Recorder *r, Av text, Av at, Av *out) {
  Av item;
  Outcome o = OUT_GO;
  for (; is_slice(r, text) || is_turned(r, text); text = av_item(r, text, SLICE_ROWS)) {
    if (is_slice(r, text)) o = rec_binary(r, BC_add, av_item(r, text, SLICE_START), at, &at);
    else if ((o = rec_read_count(r, text, &item)) == OUT_GO && (o = rec_binary(r, BC_sub, item, at, &at)) == OUT_GO) {
      o = rec_binary(r, BC_sub, at, av_int(r, 1), &at);
      if (o == OUT_GO) o = op2_of(r, OP_maximum, at, av_int(r, 0), &at);
    }
    if (o != OUT_GO) return o;
  }
  if (rec_is_digits(r, text)) return rec_digits_at(r, text, at, out);
  o = rec_rows_item(r, text, at, &item);
  return o == OUT_GO ? rec_made(r, av_item(r, item, 0), out) : o;
}

Outcome rec_read_at(Recorder *r, Av text, Av at, Av *out) {
  Outcome o = point_at(r, text, at, out);
  return o == OUT_GO ? rec_made(r, av_character(r, *out), out) : o;
}

Outcome rec_read_get(Recorder *r, Av text, Av at, Av *out) {
  ValueId i;
  Av n;
  Outcome o = rec_read_count(r, text, &n);
  if (o == OUT_GO) o = rec_rows_position(r, text, n, at, &i);
  return o == OUT_GO ? rec_read_at(r, text, av_num(r, i), out) : o;
}

Outcome rec_each(Recorder *r, Av count, const Av *with, Av *state, u32 n, RecStep step) {
  Graph *g = r->g;
  ValueId init[RECORD_STATES + 1] = {graph_const(g, value_i64(0))}, next[RECORD_STATES + 1];
  BlockId blocks[2];
  Outcome o = OUT_GO;
  for (u32 i = 0; i < n; i++) init[i + 1] = av_value(r, state[i]);
  for (u32 b = 0; b < 2 && o == OUT_GO; b++) {
    Av params[RECORD_STATES + 1], one = av_int(r, 1);
    blocks[b] = graph_open(g);
    for (u32 i = 0; i <= n; i++) {
      ValueId v = blocks[b] && init[i] ? graph_param(g, blocks[b], g->values.data[init[i]].type) : 0;
      if (!v || !(params[i] = av_num(r, v))) return OUT_FAIL;
    }
    if (b == 0) {
      o = rec_binary(r, BC_lt, params[0], count, &params[0]);
      if (o == OUT_GO) o = strong_bool(r, &params[0]);
      if (o == OUT_GO && n == 1 && !value_type(g, init[1])->rank)
        o = op2_of(r, OP_logical_and, params[0], params[1], &params[0]);
      next[0] = o == OUT_GO ? av_value(r, params[0]) : 0;
    } else {
      if ((o = step(r, with, params[0], params + 1)) == OUT_GO) o = rec_binary(r, BC_add, params[0], one, &params[0]);
      for (u32 i = 0; i <= n && o == OUT_GO; i++) next[i] = av_value(r, params[i]);
    }
    if (o == OUT_GO && !graph_close(g, b ? TERM_next : TERM_yield, next, b ? n + 1 : 1, 0)) o = OUT_FAIL;
  }
  NodeId node = o == OUT_GO ? graph_while(g, init, n + 1, blocks[0], blocks[1]) : 0;
  for (u32 i = 0; i < n && node && o == OUT_GO; i++) o = rec_made(r, av_num(r, node_result(g, node, i + 1)), &state[i]);
  return o == OUT_GO && !node ? OUT_FAIL : o;
}

static Outcome compare_step(Recorder *r, const Av *texts, Av at, Av *state) {
  Av a, b, same;
  Outcome o = point_at(r, texts[0], at, &a);
  if (o == OUT_GO) o = point_at(r, texts[1], at, &b);
  if (o == OUT_GO) o = rec_binary(r, BC_eq, a, b, &same);
  if (o == OUT_GO) o = strong_bool(r, &same);
  return o == OUT_GO ? op2_of(r, OP_logical_and, state[0], same, &state[0]) : o;
}

/* Is such a text the same as another one, of known parts, that is packed, or that is read like it? */
Outcome rec_read_same(Recorder *r, Av a, Av b, Av *out) {
  Av points[64], one, same, count;
  u32 n = 0;
  if (!rec_is_read(r, a) || rec_is_digits(r, b)) {
    one = a, a = b, b = one;
  }
  Outcome o = rec_is_digits(r, a) ? rec_digits_same(r, a, b, out) : OUT_STUCK;
  if (o != OUT_STUCK) return o;
  if (av_is_outer_text(r, b) && av_at(r, b)->source && (o = rec_rows_of(r, b, NULL, &b)) != OUT_GO) return o;
  if (is_turned(r, b) && !is_turned(r, a)) {
    one = a, a = b, b = one;
  }
  if (rec_is_read(r, b) || av_in_columns(r, b)) {
    Av whole = is_turned(r, a) ? av_item(r, a, 0) : 0;
    bool own = whole && (whole == b || (rec_is_digits(r, whole) && rec_is_digits(r, b) &&
                                        av_value(r, av_item(r, whole, 0)) == av_value(r, av_item(r, b, 0))));
    if (rec_is_digits(r, b) && (o = rec_digits_of(r, b, &b)) != OUT_GO) return o;
    if (own) a = av_items(r, AV_reversed, &b, 1);
    Av texts[2] = {a, b}, params[OP_MAX_PARAMS] = {0, 0, av_const(r, value_weak_i64(0))};
    if (!a || (o = rec_read_count(r, a, &params[1])) != OUT_GO || (o = rec_read_count(r, b, &count)) != OUT_GO)
      return a ? o : OUT_FAIL;
    o = rec_binary(r, BC_eq, params[1], count, &same);
    if (o == OUT_GO) o = strong_bool(r, &same);
    if (o == OUT_GO && own) /* a palindrome: its first half says it */
      o = op2_of(r, OP_floor_divide, count, av_int(r, 2), &params[1]);
    params[0] = same;
    if (o == OUT_GO) o = rec_op(r, OP_where, params, &one);
    return o == OUT_GO && (o = rec_each(r, one, texts, &same, 1, compare_step)) == OUT_GO ? rec_made(r, same, out) : o;
  }
  if (!rec_points(r, b, points, &n) || n > SAME_MOST)
    return rec_stuck(r, REASON_no_rule, "`==` of texts of unknown length, or of more than %d characters", SAME_MOST);
  if ((o = rec_read_count(r, a, &count)) == OUT_GO)
    o = rec_binary(r, BC_eq, count, av_const(r, value_weak_i64(n)), &same);
  if (o == OUT_GO) o = strong_bool(r, &same);
  for (u32 i = 0; i < n && o == OUT_GO; i++) {
    if ((o = point_at(r, a, av_const(r, value_weak_i64(i)), &one)) == OUT_GO)
      o = rec_binary(r, BC_eq, one, points[i], &one);
    if (o == OUT_GO) o = strong_bool(r, &one);
    if (o == OUT_GO) o = op2_of(r, OP_logical_and, same, one, &same);
  }
  return o == OUT_GO ? rec_made(r, same, out) : o;
}

static Outcome other_step(Recorder *r, const Av *texts, Av at, Av *state) {
  Av point, other;
  Outcome o = point_at(r, texts[0], at, &point);
  if (o == OUT_GO) o = rec_binary(r, BC_ne, point, texts[1], &other);
  return o == OUT_GO ? rec_made(r, other, &state[0]) : o;
}

/* Is a character, by its code point, one of such a text? */
Outcome rec_read_has(Recorder *r, Av text, Av point, Av *out) {
  Av count, none = av_const(r, value_bool(true));
  Outcome o = OUT_GO;
  if (rec_is_digits(r, text)) o = rec_digits_of(r, text, &text);
  if (o == OUT_GO) o = rec_read_count(r, text, &count);
  const Av texts[2] = {text, point};
  if (o == OUT_GO) o = none ? rec_each(r, count, texts, &none, 1, other_step) : OUT_FAIL;
  return o == OUT_GO ? rec_unary(r, BC_not, none, out) : o;
}

/* ---- put into columns ------------------------------------------------------------------------ */

bool rec_text_parts(Recorder *r, Av text) {
  if (rec_is_of_digits(r, text) || rec_points(r, text, NULL, NULL)) return true;
  u32 n = av_is_joined(r, text) ? av_at(r, text)->count : 0;
  bool all = n > 0;
  for (u32 i = 0; i < n && all; i++) all = rec_text_parts(r, av_item(r, text, i));
  return all;
}

Outcome rec_text_count(Recorder *r, Av text, Av *out) {
  u32 n = 0;
  if (rec_is_read(r, text)) return rec_read_count(r, text, out);
  if (rec_points(r, text, NULL, &n)) return rec_made(r, av_const(r, value_weak_i64(n)), out);
  Outcome o = rec_made(r, av_const(r, value_weak_i64(0)), out);
  for (u32 i = 0; i < av_at(r, text)->count && o == OUT_GO; i++) {
    Av more;
    if ((o = rec_text_count(r, av_item(r, text, i), &more)) == OUT_GO) o = rec_binary(r, BC_add, *out, more, out);
  }
  return o;
}

/* Of a text that is made, where its characters can be counted. */
Outcome rec_text_length(Recorder *r, Av a, Av *out) {
  return rec_text_parts(r, a) ? rec_text_count(r, a, out) : rec_stuck(r, REASON_no_rule, "len of text");
}

static Outcome put_point(Recorder *r, Av *column, Av at, Av point) {
  return rec_rows_put(r, *column, value_hole(), av_value(r, at), point, 0, column);
}

static Outcome put_step(Recorder *r, const Av *texts, Av at, Av *state) {
  Av point;
  Outcome o = point_at(r, texts[0], at, &point);
  if (o == OUT_GO) o = rec_binary(r, BC_add, at, texts[1], &at);
  return o == OUT_GO ? put_point(r, state, at, point) : o;
}

Outcome rec_text_put(Recorder *r, Av text, Av *column, Av *at) {
  Av points[64], texts[2] = {text, *at}, count, one = av_const(r, value_weak_i64(1));
  u32 n = 0;
  Outcome o = OUT_GO;
  if (rec_is_read(r, text)) {
    if (rec_is_digits(r, text)) o = rec_digits_of(r, text, &texts[0]);
    if (o == OUT_GO) o = rec_read_count(r, texts[0], &count);
    if (o == OUT_GO) o = rec_each(r, count, texts, column, 1, put_step);
    return o == OUT_GO ? rec_binary(r, BC_add, *at, count, at) : o;
  }
  if (rec_points(r, text, points, &n)) {
    for (u32 i = 0; i < n && o == OUT_GO; i++)
      if ((o = put_point(r, column, *at, points[i])) == OUT_GO) o = rec_binary(r, BC_add, *at, one, at);
    return o;
  }
  for (u32 i = 0; i < av_at(r, text)->count && o == OUT_GO; i++) o = rec_text_put(r, av_item(r, text, i), column, at);
  return o;
}

static Outcome part_move_step(Recorder *r, const Av *texts, Av at, Av *state) {
  Av from, to, point, rows;
  Outcome o = rec_binary(r, BC_sub, texts[0], at, &from);
  if (o == OUT_GO) o = rec_binary(r, BC_sub, from, av_int(r, 1), &from);
  if (o == OUT_GO) o = rec_binary(r, BC_add, from, texts[1], &to);
  if (o == OUT_GO) o = rec_made(r, rec_new_rows(r, state[0], texts[0], value_hole()), &rows);
  if (o == OUT_GO) o = rec_rows_item(r, rows, from, &point);
  return o == OUT_GO ? put_point(r, state, to, av_item(r, point, 0)) : o;
}

Outcome rec_text_move(Recorder *r, Av count, Av by, Av *column) {
  const Av texts[2] = {count, by};
  return rec_each(r, count, texts, column, 1, part_move_step);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The value of a digit, and whether it is one. */
static Outcome digit_of(Recorder *r, Av point, Av *digit, Av *is) {
  Av low, high;
  Outcome o = rec_binary(r, BC_sub, point, av_int(r, '0'), digit);
  if (o == OUT_GO) o = rec_binary(r, BC_ge, *digit, av_int(r, 0), &low);
  if (o == OUT_GO) o = rec_binary(r, BC_le, *digit, av_int(r, 9), &high);
  if (o == OUT_GO) o = strong_bool(r, &low);
  if (o == OUT_GO) o = strong_bool(r, &high);
  return o == OUT_GO ? op2_of(r, OP_logical_and, low, high, is) : o;
}

enum { NUMBER_SO_FAR, NUMBER_GOOD, NUMBER_SCALE, NUMBER_FRACTION };

static Outcome digit_step(Recorder *r, const Av *texts, Av at, Av *state) {
  Av point, digit, is;
  Outcome o = point_at(r, texts[0], at, &point);
  if (o == OUT_GO) o = digit_of(r, point, &digit, &is);
  if (o == OUT_GO) o = op2_of(r, OP_multiply, state[NUMBER_SO_FAR], av_int(r, 10), &state[NUMBER_SO_FAR]);
  if (o == OUT_GO) o = op2_of(r, OP_add, state[NUMBER_SO_FAR], digit, &state[NUMBER_SO_FAR]);
  return o == OUT_GO ? op2_of(r, OP_logical_and, state[NUMBER_GOOD], is, &state[NUMBER_GOOD]) : o;
}

/* The same, but one point may stand between digits; what follows it counts in the scale. */
static Outcome decimal_step(Recorder *r, const Av *texts, Av at, Av *state) {
  Av point, digit, is, dot, next, last, good, params[OP_MAX_PARAMS];
  Outcome o = point_at(r, texts[0], at, &point);
  if (o == OUT_GO) o = digit_of(r, point, &digit, &is);
  if (o == OUT_GO) o = rec_binary(r, BC_eq, point, av_int(r, '.'), &dot);
  if (o == OUT_GO) o = strong_bool(r, &dot);
  if (o == OUT_GO) o = op2_of(r, OP_multiply, state[NUMBER_SO_FAR], av_int(r, 10), &next);
  if (o == OUT_GO) o = op2_of(r, OP_add, next, digit, &next);
  if (o != OUT_GO) return o;
  params[0] = dot, params[1] = state[NUMBER_SO_FAR], params[2] = next;
  if ((o = rec_op(r, OP_where, params, &state[NUMBER_SO_FAR])) == OUT_GO)
    o = op2_of(r, OP_multiply, state[NUMBER_SCALE], av_const(r, value_f64(10)), &next);
  if (o != OUT_GO) return o;
  /* a second point is no good anyway */
  params[0] = state[NUMBER_FRACTION], params[1] = next, params[2] = state[NUMBER_SCALE];
  if ((o = rec_op(r, OP_where, params, &state[NUMBER_SCALE])) != OUT_GO) return o;
  if ((o = rec_read_count(r, texts[0], &last)) == OUT_GO) o = rec_binary(r, BC_sub, last, av_int(r, 1), &last);
  if (o == OUT_GO) o = op2_of(r, OP_greater, at, av_int(r, 0), &good);
  if (o == OUT_GO) o = op2_of(r, OP_less, at, last, &last);
  if (o == OUT_GO) o = op2_of(r, OP_logical_and, good, last, &good);
  if (o == OUT_GO) o = op2_of(r, OP_greater, dot, state[NUMBER_FRACTION], &last); /* the first one */
  if (o == OUT_GO) o = op2_of(r, OP_logical_and, good, last, &good);
  if (o == OUT_GO) o = op2_of(r, OP_logical_or, good, is, &good);
  if (o == OUT_GO) o = op2_of(r, OP_logical_and, state[NUMBER_GOOD], good, &state[NUMBER_GOOD]);
  return o == OUT_GO ? op2_of(r, OP_logical_or, state[NUMBER_FRACTION], dot, &state[NUMBER_FRACTION]) : o;
}

static Outcome number_of_slice(Recorder *r, Av slice, bool decimal, Av *out) {
  const i64 digits = decimal ? 15 : 18;
  Av low, high, count, state[RECORD_STATES] = {av_int(r, 0), av_const(r, value_bool(true)), av_const(r, value_f64(1)),
                                               av_const(r, value_bool(false))};
  for (u32 i = 0; i < RECORD_STATES; i++)
    if (!state[i]) return OUT_FAIL;
  Outcome o = rec_read_count(r, slice, &count);
  if (o == OUT_GO) o = op2_of(r, OP_greater, count, av_int(r, 0), &low); /* others are left to the interpreter */
  if (o == OUT_GO) o = op2_of(r, OP_less_equal, count, av_int(r, digits), &high);
  if (o == OUT_GO) o = op2_of(r, OP_logical_and, low, high, &low);
  if (o == OUT_GO) o = check(r, low);
  if (o == OUT_GO)
    o = rec_each(r, count, &slice, state, decimal ? RECORD_STATES : NUMBER_SCALE, decimal ? decimal_step : digit_step);
  if (o == OUT_GO) o = check(r, state[NUMBER_GOOD]);
  if (o != OUT_GO || !decimal) return o == OUT_GO ? rec_made(r, state[NUMBER_SO_FAR], out) : o;
  /* below 2^53, over a power of 10 that is a float: rounded once */
  ValueId exact = graph_convert(r->g, av_value(r, state[NUMBER_SO_FAR]), DT_f64);
  return exact ? op2_of(r, OP_divide, av_num(r, exact), state[NUMBER_SCALE], out) : OUT_FAIL;
}

bool rec_number_of_text(Recorder *r, u32 op, const Av *params, Av *out, Outcome *o) {
  Value base;
  Av is, text = params[0];
  if ((op != OP_parse_int && op != OP_parse_float) || !text || !av_is_made_text(r, text)) return false;
  bool plain = op == OP_parse_float || !params[1] || av_is_hole(r, params[1]) ||
               (av_const_value(r, params[1], &base) && base.kind == V_NUM && base.dtype == DT_i64 && base.i == 10);
  bool character = av_is_character(r, text);
  if (!plain || (!character && !rec_is_read(r, text))) return false;
  if (rec_is_digits(r, text)) {
    ValueId n = rec_digits_number(r, text);
    *o = rec_made(r, n ? av_num(r, op == OP_parse_float ? graph_convert(r->g, n, DT_f64) : n) : 0, out);
    return true;
  }
  if (!character) {
    *o = number_of_slice(r, text, op == OP_parse_float, out);
    return true;
  }
  if ((*o = digit_of(r, av_item(r, text, 0), out, &is)) == OUT_GO) *o = check(r, is);
  if (*o == OUT_GO && op == OP_parse_float)
    *o = rec_made(r, av_num(r, graph_convert(r->g, av_value(r, *out), DT_f64)), out);
  return true;
}

/* Of the digits of an integer: ASCII. */
static Outcome part_walk(Recorder *r, Av a, Av *out) {
  return rec_is_of_digits(r, a) ? rec_made(r, a, out)
                                : rec_stuck(r, REASON_loop_sequence, "a loop over " MADE_HERE);
}

/* ---- their tables ---------------------------------------------------------------------------- */

static RecipeId make_part(ExitTable *t, const AbsVal *v, const RecipeId *items, u32 count) {
  (void)v;
  return recipe_text(t, TEXT_part, items, count);
}

static RecipeId part_recipe(Recorder *r, Av a) { return repr_items_recipe(r, a, SLICE_PARTS, make_part); }
static RecipeId part_hand(Handing *h, Av a, u32 depth) { return repr_items_hand(h, a, SLICE_PARTS, depth, make_part); }

static RecipeId make_reversed(ExitTable *t, const AbsVal *v, const RecipeId *items, u32 count) {
  (void)v;
  return recipe_text(t, TEXT_reversed, items, count);
}

static RecipeId reversed_recipe(Recorder *r, Av a) { return repr_items_recipe(r, a, 1, make_reversed); }
static RecipeId reversed_hand(Handing *h, Av a, u32 depth) { return repr_items_hand(h, a, 1, depth, make_reversed); }

const Repr repr_part = {
    .name = "part",
    .type = "text",
    .same = repr_same_parts,
    .recipe = part_recipe,
    .hand = part_hand,
    NO(example, no_rule, "a text of no known length"),
    NO(input, no_rule, "the trace makes it"),
    .length = rec_read_count,
    .item = rec_read_get,
    .slice = rec_text_slice,
    .add = rec_text_add,
    .equal = rec_text_equal,
    .contains = rec_text_contains,
    NO(field, raises, "a text has no fields"),
    NO(put_field, raises, "a text has no fields"),
    NO(update, no_rule, "texts are not written"),
    NO(assign, raises, "texts are not written"),
    NO(store, raises, "texts are not written"),
    NO(before_store, raises, "texts are not written"),
    .format = repr_text_format,
    .walk = part_walk,
    .at = rec_read_at,
    NO(truth, raises, "a text is no condition"),
    .open = repr_itself,
    NO(items, no_rule, "a text is walked over by a loop"),
    NO(array, raises, "a text is no array"),
    NO(call, raises, "a text is no function"),
    NO(layout, loop_list, "a text that is not made yet"),
    NO(name_of, no_rule, "it may be any text"),
    .widen = rec_into_columns,
    NO(take_back, no_rule, "it lies nowhere"),
    NO(unpack, raises, "a text has no parts"),
};

const Repr repr_reversed = {
    .name = "reversed",
    .type = "text",
    .same = repr_same_parts,
    .recipe = reversed_recipe,
    .hand = reversed_hand,
    NO(example, no_rule, "a text of no known length"),
    NO(input, no_rule, "the trace makes it"),
    .length = rec_read_count,
    .item = rec_read_get,
    .slice = rec_text_slice,
    .add = rec_text_add,
    .equal = rec_text_equal,
    .contains = rec_text_contains,
    NO(field, raises, "a text has no fields"),
    NO(put_field, raises, "a text has no fields"),
    NO(update, no_rule, "texts are not written"),
    NO(assign, raises, "texts are not written"),
    NO(store, raises, "texts are not written"),
    NO(before_store, raises, "texts are not written"),
    .format = repr_text_format,
    .walk = part_walk,
    .at = rec_read_at,
    NO(truth, raises, "a text is no condition"),
    .open = repr_itself,
    NO(items, no_rule, "a text is walked over by a loop"),
    NO(array, raises, "a text is no array"),
    NO(call, raises, "a text is no function"),
    NO(layout, loop_list, "a text that is not made yet"),
    NO(name_of, no_rule, "it may be any text"),
    .widen = rec_into_columns,
    NO(take_back, no_rule, "it lies nowhere"),
    NO(unpack, raises, "a text has no parts"),
};
