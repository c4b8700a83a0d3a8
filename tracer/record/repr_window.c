/* repr_window.c — parts of an array that a function which calls itself is given: `f(x[:h])`, `f(x[h:])`, `f(x[::2])`.
 *
 * No call makes an array: a part is the array in front of the outermost call, where it begins there, every how manieth
 * element it has, and how many; all of these but the array are numbers that the calls hand on. An element is read where
 * it lies. It serves searches by halves, sums and extremes of halves, and walks over what is left of an array. What
 * works on such a part as a whole is no native recursion. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_stacked.h"
#include "tracer/record/repr_window.h"

enum { WINDOW_BASE, WINDOW_START, WINDOW_STEP, WINDOW_COUNT, WINDOW_PARTS };

static Av part_of(const Recorder *r, Av a, u32 which) { return av_item(r, a, which); }

bool rec_is_window_base(Recorder *r, Av a) {
  if (!a || !(a = av_force(r, a)) || !av_is_number(r, a)) return false;
  ValueId v = av_value(r, a);
  return v && value_type(r->g, v)->rank == 1 && !value_type(r->g, v)->device;
}

Outcome rec_window_of(Recorder *r, Av array, Av *out) {
  Av parts[WINDOW_PARTS] = {av_force(r, array), av_const(r, value_weak_i64(0)), av_const(r, value_weak_i64(1))};
  if (!parts[WINDOW_BASE] || !parts[WINDOW_START] || !parts[WINDOW_STEP]) return OUT_FAIL;
  Outcome o = rec_length(r, parts[WINDOW_BASE], &parts[WINDOW_COUNT]);
  return o == OUT_GO ? rec_made(r, av_items(r, AV_window, parts, WINDOW_PARTS), out) : o;
}

static Outcome window_length(Recorder *r, Av a, Av *out) { return rec_made(r, part_of(r, a, WINDOW_COUNT), out); }

/* The place in the array of what is at `pos` of the part. */
static Outcome place_in(Recorder *r, Av a, Av pos, Av *out) {
  Outcome o = rec_binary(r, BC_mul, pos, part_of(r, a, WINDOW_STEP), &pos);
  return o == OUT_GO ? rec_binary(r, BC_add, part_of(r, a, WINDOW_START), pos, out) : o;
}

static Outcome window_at(Recorder *r, Av a, Av pos, Av *out) {
  Av at;
  Outcome o = place_in(r, a, pos, &at);
  return o == OUT_GO ? rec_at(r, part_of(r, a, WINDOW_BASE), at, out) : o;
}

static Outcome window_item(Recorder *r, Av a, Av at, Av *out) {
  ValueId i;
  Outcome o = rec_rows_position(r, a, part_of(r, a, WINDOW_COUNT), at, &i);
  return o == OUT_GO ? window_at(r, a, av_num(r, i), out) : o;
}

/* An end of a slice as a weak integer, which places are. */
static Outcome end_of_part(Recorder *r, Av end, Av *out) {
  if (!(*out = av_force(r, end))) return OUT_FAIL;
  if (!av_is_number(r, *out)) return OUT_GO;
  ValueId v = av_value(r, *out);
  const ArrayType *t = v ? value_type(r->g, v) : NULL;
  if (!t) return OUT_FAIL;
  if (t->rank || t->dtype != DT_i64 || t->weak) return OUT_GO;
  return (v = graph_weaken(r->g, v)) ? rec_made(r, av_num(r, v), out) : OUT_FAIL;
}

static Outcome window_slice(Recorder *r, Av a, const Av *parts, Av *out) {
  Value by;
  Av n = part_of(r, a, WINDOW_COUNT), zero = av_const(r, value_weak_i64(0)), from, to, step,
     made[WINDOW_PARTS] = {part_of(r, a, WINDOW_BASE)};
  if (!zero || !av_const_value(r, parts[2], &by)) return rec_stuck(r, REASON_recursion, "a slice with a computed step");
  const bool whole = by.kind == V_NIL;
  if (!whole && (by.kind != V_NUM || by.dtype != DT_i64 || by.i < 1))
    return rec_stuck(r, REASON_recursion, "a slice with a step that is not positive");
  Outcome o = end_of_part(r, parts[0], &from);
  if (o == OUT_GO) o = end_of_part(r, parts[1], &to);
  if (o == OUT_GO) o = rec_slice_end(r, from, n, zero, &from);
  if (o == OUT_GO) o = rec_slice_end(r, to, n, n, &to);
  if (o == OUT_GO) o = rec_binary(r, BC_sub, to, from, &made[WINDOW_COUNT]);
  if (o == OUT_GO && !whole) { /* each begun step has one: n elements, (n - 1) // step + 1, which no step overflows */
    const Av one = av_const(r, value_weak_i64(1));
    step = av_const(r, value_weak_i64(by.i));
    if (!one || !step) return OUT_FAIL;
    o = rec_binary(r, BC_sub, made[WINDOW_COUNT], one, &made[WINDOW_COUNT]);
    if (o == OUT_GO) o = rec_binary(r, BC_floordiv, made[WINDOW_COUNT], step, &made[WINDOW_COUNT]);
    if (o == OUT_GO) o = rec_binary(r, BC_add, made[WINDOW_COUNT], one, &made[WINDOW_COUNT]);
    if (o == OUT_GO) o = rec_binary(r, BC_mul, part_of(r, a, WINDOW_STEP), step, &made[WINDOW_STEP]);
  }
  if (whole) made[WINDOW_STEP] = part_of(r, a, WINDOW_STEP);
  Av params[OP_MAX_PARAMS] = {made[WINDOW_COUNT], zero};
  if (o == OUT_GO) o = rec_op(r, OP_maximum, params, &made[WINDOW_COUNT]);
  if (o == OUT_GO) o = place_in(r, a, from, &made[WINDOW_START]);
  return o == OUT_GO ? rec_made(r, av_items(r, AV_window, made, WINDOW_PARTS), out) : o;
}

static bool window_same(Recorder *r, Av a, Av b) {
  const Av x = part_of(r, a, WINDOW_BASE), y = part_of(r, b, WINDOW_BASE);
  return av_value(r, x) == av_value(r, y) && repr_same_parts(r, a, b);
}

#define IN_CALLS "a part of an array that a function which calls itself is given"
const Repr repr_window = {
    .name = "window",
    .type = "array",
    .first_part = WINDOW_START,
    .same = window_same,
    NO(recipe, recursion, "no region is left inside a function that calls itself"),
    NO(hand, effect_host, "no array is made of it"),
    NO(example, no_rule, IN_CALLS),
    NO(input, no_rule, "calls of a function that calls itself make it"),
    .length = window_length,
    .item = window_item,
    .slice = window_slice,
    NO(store, recursion, IN_CALLS " is written"),
    NO(add, recursion, IN_CALLS " is added to"),
    NO(equal, recursion, IN_CALLS " is compared"),
    NO(contains, recursion, IN_CALLS " is searched"),
    NO(field, recursion, "a field of " IN_CALLS),
    NO(put_field, raises, "an array has no fields that are written"),
    NO(update, recursion, IN_CALLS " is written"),
    NO(assign, recursion, IN_CALLS " is written"),
    NO(before_store, recursion, IN_CALLS " is written"),
    .walk = repr_itself,
    .at = window_at,
    NO(array, recursion, "an operation on " IN_CALLS),
    NO(open, recursion, "a tree with " IN_CALLS),
    NO(items, no_rule, "how many it has is computed"),
    NO(call, raises, "an array is no function"),
    NO(truth, raises, "an array is no condition"),
    NO(format, text_value, "the texts of arrays are made by the interpreter"),
    NO(layout, loop_list, "an array in a list"),
    NO(name_of, no_rule, "it is no text"),
    NO(widen, loop_types, "a part of another array"),
    NO(take_back, no_rule, "an array takes no other value in"),
    NO(unpack, no_rule, "how many it has is computed"),
};
