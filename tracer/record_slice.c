/* record_slice.c — parts of a text that is packed, `text[i:j]`: an AV_TEXT of op 5, whose items are the rows of the text, where the part
 * begins and how many characters it has. Its length, its characters, `==`, and the number that it says. */
#include "tracer/record.h"

enum { SLICE_ROWS, SLICE_START, SLICE_COUNT, SLICE_PARTS, SAME_MOST = 16, STATES_MOST = 4 };

bool rec_is_slice(const Recorder *r, Av a) { return a && av_at(r, a)->kind == AV_TEXT && av_at(r, a)->op == 5; }

static Av integer(Recorder *r, i64 i) { return av_const(r, value_i64(i)); }

static Outcome op2(Recorder *r, u32 op, Av a, Av b, Av *out) {
  Av params[OP_MAX_PARAMS] = {a, b};
  return a && b ? rec_op(r, op, params, out) : OUT_FAIL;
}

static Outcome strong_bool(Recorder *r, Av *a) { return rec_made(r, av_num(r, graph_convert(r->g, av_value(r, *a), DT_bool)), a); }

static Outcome check(Recorder *r, Av is) {
  ValueId v = av_value(r, is);
  return v ? rec_check(r, CHECK_assertion, &v, 1) : OUT_FAIL;
}

/* ---- made -------------------------------------------------------------------------------------------------------- */

/* An end of a slice of n characters, clamped. nil: `none`. */
static Outcome clamped(Recorder *r, Av part, Av n, Av none, Av *out) {
  Value v;
  i64 known = 0;
  Av moved, zero = av_const(r, value_weak_i64(0));
  if (!zero || !(part = av_force(r, part))) return OUT_FAIL;
  if (av_const_value(r, part, &v) && v.kind == V_NIL) return rec_made(r, none, out);
  ValueId x = av_value(r, part);
  const ArrayType *t = x ? value_type(r->g, x) : NULL;
  if (!t || t->rank || t->dtype != DT_i64 || !t->weak) return rec_stuck(r, REASON_no_rule, "an end of a slice of a text");
  bool fixed = av_known_int(r, part, &known);
  Outcome o = OUT_GO;
  if (!fixed || known < 0) {
    Av negative, params[OP_MAX_PARAMS];
    if ((o = rec_binary(r, BC_add, part, n, &moved)) == OUT_GO) o = rec_binary(r, BC_lt, part, zero, &negative);
    if (o != OUT_GO) return o;
    params[0] = negative, params[1] = moved, params[2] = part;
    if ((o = rec_op(r, OP_where, params, &part)) == OUT_GO) o = op2(r, OP_maximum, part, zero, &part);
  }
  return o == OUT_GO ? op2(r, OP_minimum, part, n, out) : o;
}

Outcome rec_text_slice(Recorder *r, Av rows, const Av *parts, Av *out) {
  Value v;
  Av n = av_item(r, rows, 1), made[SLICE_PARTS] = {rows}, stop, zero = av_const(r, value_weak_i64(0));
  if (!av_at(r, rows)->source || !av_const_value(r, parts[2], &v) || v.kind != V_NIL) return rec_stuck(r, REASON_no_rule, "a slice of a text");
  Outcome o = clamped(r, parts[0], n, zero, &made[SLICE_START]);
  if (o == OUT_GO) o = clamped(r, parts[1], n, n, &stop);
  if (o == OUT_GO) o = rec_binary(r, BC_sub, stop, made[SLICE_START], &made[SLICE_COUNT]);
  if (o == OUT_GO) o = op2(r, OP_maximum, made[SLICE_COUNT], zero, &made[SLICE_COUNT]);
  if (o != OUT_GO) return o;
  Av a = av_items(r, AV_TEXT, made, SLICE_PARTS);
  if (a) av_at(r, a)->op = 5;
  return rec_made(r, a, out);
}

/* ---- used -------------------------------------------------------------------------------------------------------- */

Av rec_slice_count(const Recorder *r, Av slice) { return av_item(r, slice, SLICE_COUNT); }

/* The code point at a place that may lie behind its end, where there is room. */
static Outcome point_at(Recorder *r, Av text, Av at, Av *out) {
  bool slice = rec_is_slice(r, text);
  Av item;
  Outcome o = slice ? rec_binary(r, BC_add, av_item(r, text, SLICE_START), at, &at) : OUT_GO;
  if (o == OUT_GO) o = rec_rows_item(r, slice ? av_item(r, text, SLICE_ROWS) : text, at, &item);
  return o == OUT_GO ? rec_made(r, av_item(r, item, 0), out) : o;
}

Outcome rec_slice_get(Recorder *r, Av slice, Av at, Av *out) {
  ValueId i;
  Av place;
  Outcome o = rec_rows_position(r, slice, rec_slice_count(r, slice), at, &i);
  if (o == OUT_GO) o = rec_binary(r, BC_add, av_item(r, slice, SLICE_START), av_num(r, i), &place);
  return o == OUT_GO ? rec_rows_item(r, av_item(r, slice, SLICE_ROWS), place, out) : o;
}

/* What is done at each place below `count`: the states, numbers, are changed. */
typedef Outcome (*Step)(Recorder *r, const Av *texts, Av at, Av *state);

static Outcome each(Recorder *r, Av count, const Av *texts, Av *state, u32 n, Step step) {
  Graph *g = r->g;
  ValueId init[STATES_MOST + 1] = {graph_const(g, value_i64(0))}, next[STATES_MOST + 1];
  BlockId blocks[2];
  Outcome o = OUT_GO;
  for (u32 i = 0; i < n; i++) init[i + 1] = av_value(r, state[i]);
  for (u32 b = 0; b < 2 && o == OUT_GO; b++) {
    Av params[STATES_MOST + 1], one = integer(r, 1);
    blocks[b] = graph_open(g);
    for (u32 i = 0; i <= n; i++) {
      ValueId v = blocks[b] && init[i] ? graph_param(g, blocks[b], g->values.data[init[i]].type) : 0;
      if (!v || !(params[i] = av_num(r, v))) return OUT_FAIL;
    }
    if (b == 0) {
      o = rec_binary(r, BC_lt, params[0], count, &params[0]);
      if (o == OUT_GO) o = strong_bool(r, &params[0]);
      next[0] = o == OUT_GO ? av_value(r, params[0]) : 0;
    } else {
      if ((o = step(r, texts, params[0], params + 1)) == OUT_GO) o = rec_binary(r, BC_add, params[0], one, &params[0]);
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
  return o == OUT_GO ? op2(r, OP_logical_and, state[0], same, &state[0]) : o;
}

static Av count_of(const Recorder *r, Av text) { return rec_is_slice(r, text) ? rec_slice_count(r, text) : av_item(r, text, 1); }

/* Is a slice the same text as another one, of known parts or that is packed? */
Outcome rec_slice_same(Recorder *r, Av a, Av b, Av *out) {
  Av points[64], one, same;
  u32 n = 0;
  if (!rec_is_slice(r, a)) {
    one = a, a = b, b = one;
  }
  if (rec_is_slice(r, b) || av_at(r, b)->kind == AV_ROWS) {
    const Av texts[2] = {a, b};
    Av params[OP_MAX_PARAMS] = {0, count_of(r, a), av_const(r, value_weak_i64(0))};
    Outcome o = rec_binary(r, BC_eq, count_of(r, a), count_of(r, b), &same);
    if (o == OUT_GO) o = strong_bool(r, &same);
    params[0] = same;
    if (o == OUT_GO) o = rec_op(r, OP_where, params, &one);
    return o == OUT_GO && (o = each(r, one, texts, &same, 1, compare_step)) == OUT_GO ? rec_made(r, same, out) : o;
  }
  if (!rec_points(r, b, points, &n) || n > SAME_MOST) return rec_stuck(r, REASON_no_rule, "`==` of texts");
  Outcome o = rec_binary(r, BC_eq, rec_slice_count(r, a), av_const(r, value_weak_i64(n)), &same);
  if (o == OUT_GO) o = strong_bool(r, &same);
  for (u32 i = 0; i < n && o == OUT_GO; i++) {
    if ((o = point_at(r, a, av_const(r, value_weak_i64(i)), &one)) == OUT_GO) o = rec_binary(r, BC_eq, one, points[i], &one);
    if (o == OUT_GO) o = strong_bool(r, &one);
    if (o == OUT_GO) o = op2(r, OP_logical_and, same, one, &same);
  }
  return o == OUT_GO ? rec_made(r, same, out) : o;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

/* The value of a digit, and whether it is one. */
static Outcome digit_of(Recorder *r, Av point, Av *digit, Av *is) {
  Av low, high;
  Outcome o = rec_binary(r, BC_sub, point, integer(r, '0'), digit);
  if (o == OUT_GO) o = rec_binary(r, BC_ge, *digit, integer(r, 0), &low);
  if (o == OUT_GO) o = rec_binary(r, BC_le, *digit, integer(r, 9), &high);
  if (o == OUT_GO) o = strong_bool(r, &low);
  if (o == OUT_GO) o = strong_bool(r, &high);
  return o == OUT_GO ? op2(r, OP_logical_and, low, high, is) : o;
}

enum { NUMBER_SO_FAR, NUMBER_GOOD, NUMBER_SCALE, NUMBER_FRACTION };

static Outcome digit_step(Recorder *r, const Av *texts, Av at, Av *state) {
  Av point, digit, is;
  Outcome o = point_at(r, texts[0], at, &point);
  if (o == OUT_GO) o = digit_of(r, point, &digit, &is);
  if (o == OUT_GO) o = op2(r, OP_multiply, state[NUMBER_SO_FAR], integer(r, 10), &state[NUMBER_SO_FAR]);
  if (o == OUT_GO) o = op2(r, OP_add, state[NUMBER_SO_FAR], digit, &state[NUMBER_SO_FAR]);
  return o == OUT_GO ? op2(r, OP_logical_and, state[NUMBER_GOOD], is, &state[NUMBER_GOOD]) : o;
}

/* The same, but one point may stand between digits; what follows it counts in the scale. */
static Outcome decimal_step(Recorder *r, const Av *texts, Av at, Av *state) {
  Av point, digit, is, dot, next, last, good, params[OP_MAX_PARAMS];
  Outcome o = point_at(r, texts[0], at, &point);
  if (o == OUT_GO) o = digit_of(r, point, &digit, &is);
  if (o == OUT_GO) o = rec_binary(r, BC_eq, point, integer(r, '.'), &dot);
  if (o == OUT_GO) o = strong_bool(r, &dot);
  if (o == OUT_GO) o = op2(r, OP_multiply, state[NUMBER_SO_FAR], integer(r, 10), &next);
  if (o == OUT_GO) o = op2(r, OP_add, next, digit, &next);
  if (o != OUT_GO) return o;
  params[0] = dot, params[1] = state[NUMBER_SO_FAR], params[2] = next;
  if ((o = rec_op(r, OP_where, params, &state[NUMBER_SO_FAR])) == OUT_GO) o = op2(r, OP_multiply, state[NUMBER_SCALE], av_const(r, value_f64(10)), &next);
  if (o != OUT_GO) return o;
  params[0] = state[NUMBER_FRACTION], params[1] = next, params[2] = state[NUMBER_SCALE]; /* a second point is no good anyway */
  if ((o = rec_op(r, OP_where, params, &state[NUMBER_SCALE])) != OUT_GO) return o;
  if ((o = op2(r, OP_greater, at, integer(r, 0), &good)) == OUT_GO) o = rec_binary(r, BC_sub, rec_slice_count(r, texts[0]), integer(r, 1), &last);
  if (o == OUT_GO) o = op2(r, OP_less, at, last, &last);
  if (o == OUT_GO) o = op2(r, OP_logical_and, good, last, &good);
  if (o == OUT_GO) o = op2(r, OP_greater, dot, state[NUMBER_FRACTION], &last); /* the first one */
  if (o == OUT_GO) o = op2(r, OP_logical_and, good, last, &good);
  if (o == OUT_GO) o = op2(r, OP_logical_or, good, is, &good);
  if (o == OUT_GO) o = op2(r, OP_logical_and, state[NUMBER_GOOD], good, &state[NUMBER_GOOD]);
  return o == OUT_GO ? op2(r, OP_logical_or, state[NUMBER_FRACTION], dot, &state[NUMBER_FRACTION]) : o;
}

static Outcome number_of_slice(Recorder *r, Av slice, bool decimal, Av *out) {
  const i64 digits = decimal ? 15 : 18;
  Av low, high, count = rec_slice_count(r, slice), state[STATES_MOST] = {integer(r, 0), av_const(r, value_bool(true)), av_const(r, value_f64(1)), av_const(r, value_bool(false))};
  for (u32 i = 0; i < STATES_MOST; i++)
    if (!state[i]) return OUT_FAIL;
  Outcome o = op2(r, OP_greater, count, integer(r, 0), &low); /* others are left to the interpreter */
  if (o == OUT_GO) o = op2(r, OP_less_equal, count, integer(r, digits), &high);
  if (o == OUT_GO) o = op2(r, OP_logical_and, low, high, &low);
  if (o == OUT_GO) o = check(r, low);
  if (o == OUT_GO) o = each(r, count, &slice, state, decimal ? STATES_MOST : NUMBER_SCALE, decimal ? decimal_step : digit_step);
  if (o == OUT_GO) o = check(r, state[NUMBER_GOOD]);
  if (o != OUT_GO || !decimal) return o == OUT_GO ? rec_made(r, state[NUMBER_SO_FAR], out) : o;
  ValueId exact = graph_convert(r->g, av_value(r, state[NUMBER_SO_FAR]), DT_f64); /* below 2^53, over a power of 10 that is a float: rounded once */
  return exact ? op2(r, OP_divide, av_num(r, exact), state[NUMBER_SCALE], out) : OUT_FAIL;
}

bool rec_number_of_text(Recorder *r, u32 op, const Av *params, Av *out, Outcome *o) {
  Value base;
  Av is, text = params[0];
  if ((op != OP_parse_int && op != OP_parse_float) || !text || av_at(r, text)->kind != AV_TEXT) return false;
  bool plain = op == OP_parse_float || !params[1] || av_at(r, params[1])->kind == AV_HOLE || (av_const_value(r, params[1], &base) && base.kind == V_NUM && base.dtype == DT_i64 && base.i == 10);
  bool character = av_at(r, text)->op == 2;
  if (!plain || (!character && !rec_is_slice(r, text))) return false;
  if (!character) {
    *o = number_of_slice(r, text, op == OP_parse_float, out);
    return true;
  }
  if ((*o = digit_of(r, av_item(r, text, 0), out, &is)) == OUT_GO) *o = check(r, is);
  if (*o == OUT_GO && op == OP_parse_float) *o = rec_made(r, av_num(r, graph_convert(r->g, av_value(r, *out), DT_f64)), out);
  return true;
}
