/* repr_range.c — ranges in the trace: made, walked by a `for`, and as an index. Their start, stop, step and items are
 * weak integers. Of a step that is not known the sign is relied on. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_range.h"

Av av_range(Recorder *r, Av start, Av stop, Av step) {
  Av parts[3] = {start, stop, step};
  return start && stop && step ? av_items(r, AV_range, parts, 3) : 0;
}

typedef struct Step {
  i64 known; /* 0: computed, or another one at every entry */
  bool up;
} Step;

/* The step of a range. Of one that is not known its sign is relied on; a computed one goes up. */
static Outcome step_of(Recorder *r, Av by, Step *out) {
  GuardSet *gs = &r->g->guards;
  SizePool *p = &r->g->sizes;
  Dim d;
  i64 now;
  *out = (Step){0, true};
  if (av_known_int(r, by, &now)) {
    *out = (Step){now, now > 0};
    return now ? OUT_GO : rec_stuck(r, REASON_raises, "a range with step 0");
  }
  if (value_dim(r->g, av_value(r, by), &d) && d != DIM_NONE && !size_is_unbacked(p, d) && size_hint(p, d, &now)) {
    if (!now) return rec_stuck(r, REASON_raises, "a range with step 0");
    out->up = now > 0;
    return range_step_sign(gs, p, d, now, rec_here(r)) ? OUT_GO : OUT_FAIL;
  }
  Av less;
  Outcome o = rec_binary(r, BC_sub, by, av_const(r, value_weak_i64(1)), &less);
  if (o != OUT_GO) return o;
  if (r->safe_exit == UINT32_MAX) return rec_stuck(r, REASON_loop_sequence, "a range whose step is computed");
  ValueId v = av_value(r, less);
  return v ? rec_check(r, CHECK_nonneg, &v, 1) : OUT_FAIL;
}

/* A strong integer as the weak one that a range holds. */
static ValueId weak_end(Recorder *r, ValueId v) {
  Dim d;
  if (value_type(r->g, v)->weak && value_type(r->g, v)->dtype == DT_i64) return v;
  return value_dim(r->g, v, &d) && d != DIM_NONE ? graph_size(r->g, d)
                                                 : graph_weaken(r->g, graph_convert(r->g, v, DT_i64));
}

/* A range is made with fewer items than sizes reach: known now, and guarded where an end may be another one later. */
static Outcome range_few_items(Recorder *r, const Av *parts) {
  SizePool *p = &r->g->sizes;
  i64 now[3];
  Dim d[3];
  for (u32 k = 0; k < 3; k++)
    if (!value_dim(r->g, av_value(r, parts[k]), &d[k]) || d[k] == DIM_NONE || size_is_unbacked(p, d[k]) ||
        !size_hint(p, d[k], &now[k]))
      return OUT_GO;
  Range probe = {.start = now[0], .stop = now[1], .step = now[2]};
  if (range_count(&probe) >= (u64)SIZE_LIMIT) return rec_stuck(r, REASON_raises, "a range of 2 ** 62 items");
  for (u32 k = 0; k < 2; k++)
    if (size_range(p, d[k]).hi >= SIZE_LIMIT && now[k] < SIZE_LIMIT &&
        !guard_relation(&r->g->guards, p, REL_lt, d[k], size_const(p, SIZE_LIMIT), "range", rec_here(r)))
      return OUT_FAIL;
  return OUT_GO;
}

Outcome rec_make_range(Recorder *r, Av start, Av stop, Av by, Av *out) {
  Av parts[3] = {start, stop, by};
  Step step;
  for (u32 k = 0; k < 3; k++) {
    ValueId v = av_value(r, parts[k]);
    if (!v || value_type(r->g, v)->rank || dtype_kind(value_type(r->g, v)->dtype) != DK_INT)
      return rec_stuck(r, REASON_raises, "the ends of a range");
    /* what does not fit an i64 raises */
    if (value_type(r->g, v)->dtype == DT_u64) return rec_stuck(r, REASON_loop_sequence, "a range of u64");
    if (!(parts[k] = av_num(r, weak_end(r, v)))) return OUT_FAIL;
  }
  Outcome o = step_of(r, parts[2], &step);
  if (o == OUT_GO) o = range_few_items(r, parts);
  return o == OUT_GO ? rec_made(r, av_range(r, parts[0], parts[1], parts[2]), out) : o;
}

/* The difference of two ends as a size: it must not wrap, since a count is made again where the region is left.
 * Guarded when it holds now. */
static bool span_fits(Recorder *r, Dim a, Dim b) {
  SizePool *p = &r->g->sizes;
  GuardSet *gs = &r->g->guards;
  const Dim ends[2] = {a, b}, most = SIZE_LIMIT / 2, least = size_const(p, -SIZE_LIMIT / 2);
  Dim d = size_sub(p, b, a);
  if (d == DIM_NONE || least == DIM_NONE || size_range(p, d).fits) return d != DIM_NONE && least != DIM_NONE;
  for (u32 k = 0; k < 2; k++) {
    SizeRange s = size_range(p, ends[k]);
    i64 now;
    if (s.lo >= -SIZE_LIMIT / 2 && s.hi <= SIZE_LIMIT / 2) continue;
    if (size_is_unbacked(p, ends[k]) || !size_hint(p, ends[k], &now) || now < -SIZE_LIMIT / 2 || now > SIZE_LIMIT / 2)
      return false;
    if (!guard_relation(gs, p, REL_le, least, ends[k], "range", rec_here(r)) ||
        !guard_relation(gs, p, REL_le, ends[k], most, "range", rec_here(r)))
      return false;
  }
  return size_range(p, d).fits;
}

/* ceil((max(start, stop) - start) / step), which is 0 however far below its start a range ends. */
Outcome rec_range_count(Recorder *r, Av range, Av *out) {
  Step step;
  i64 known;
  Av by = av_item(r, range, 2), one = av_const(r, value_weak_i64(1));
  Outcome o = step_of(r, by, &step);
  if (o != OUT_GO) return o;
  Av from = av_item(r, range, step.up ? 0 : 1), to = av_item(r, range, step.up ? 1 : 0), span;
  Dim a, b, d = DIM_NONE;
  bool sizes = value_dim(r->g, av_value(r, from), &a) && value_dim(r->g, av_value(r, to), &b) && a != DIM_NONE &&
               b != DIM_NONE && step.known && span_fits(r, a, b);
  if (!sizes && !(av_known_int(r, from, &known) && known >= 0 && step.known)) {
    Av params[OP_MAX_PARAMS] = {from, to};
    if ((o = rec_op(r, OP_maximum, params, &to)) != OUT_GO) return o;
  }
  if ((o = rec_binary(r, BC_sub, to, from, &span)) != OUT_GO) return o;
  if (!step.up && (o = rec_unary(r, BC_neg, by, &by)) != OUT_GO) return o;
  if (step.known != 1 && step.known != -1) { /* (span - 1) // step + 1 */
    if ((o = rec_binary(r, BC_sub, span, one, &span)) != OUT_GO) return o;
    if ((o = rec_binary(r, BC_floordiv, span, by, &span)) != OUT_GO) return o;
    if ((o = rec_binary(r, BC_add, span, one, &span)) != OUT_GO) return o;
  }
  if (av_known_int(r, span, &known)) return rec_made(r, av_const(r, value_weak_i64(known > 0 ? known : 0)), out);
  if (value_dim(r->g, av_value(r, span), &d) && d != DIM_NONE && (d = size_max(&r->g->sizes, d, 0)) != DIM_NONE)
    return rec_made(r, av_num(r, graph_size(r->g, d)), out);
  Av params[OP_MAX_PARAMS] = {span, av_const(r, value_weak_i64(0))};
  return rec_op(r, OP_maximum, params, out);
}

/* The item at a position, which is weak as range items are. */
Outcome rec_range_item(Recorder *r, Av range, Av pos, Av *out) {
  Av from = av_item(r, range, 0), by = av_item(r, range, 2);
  i64 step = 0, start = 1;
  Outcome o = OUT_GO;
  *out = pos;
  if (!(av_known_int(r, by, &step) && step == 1)) o = rec_binary(r, BC_mul, *out, by, out);
  if (o == OUT_GO && !(av_known_int(r, from, &start) && start == 0)) o = rec_binary(r, BC_add, from, *out, out);
  return o;
}

/* An end that does not count from the end of the axis: what is below 0 becomes 0 (*below: it was, or may be). */
static Outcome clamp_end(Recorder *r, Av *a, bool *below) {
  SizePool *p = &r->g->sizes;
  ValueId v = av_value(r, *a);
  Dim d;
  i64 now;
  Av zero = av_const(r, value_weak_i64(0));
  *below = true;
  if (!zero) return OUT_FAIL;
  if (av_known_int(r, *a, &now)) {
    *below = now < 0;
    if (*below) *a = zero;
    return OUT_GO;
  }
  /* a guard keeps its sign */
  if (value_dim(r->g, v, &d) && d != DIM_NONE && !size_is_unbacked(p, d) && size_hint(p, d, &now)) {
    *below = now < 0;
    if (!(now < 0 ? guard_relation(&r->g->guards, p, REL_lt, d, 0, "range", rec_here(r))
                  : guard_relation(&r->g->guards, p, REL_le, 0, d, "range", rec_here(r))))
      return OUT_FAIL;
    if (*below) *a = zero;
    return OUT_GO;
  }
  if (rec_range(r, v).lo >= 0) {
    *below = false;
    return OUT_GO;
  }
  Av params[OP_MAX_PARAMS] = {*a, zero};
  return rec_op(r, OP_maximum, params, a);
}

Outcome rec_range_slice(Recorder *r, Av range, Av *parts) {
  i64 step, stop;
  bool below;
  Outcome o;
  if (!rec_literal(r, av_item(r, range, 2), "range step", &step))
    return rec_stuck(r, REASON_no_rule, "an array indexed by a range whose step is computed");
  for (u32 i = 0; i < 3; i++) parts[i] = av_item(r, range, i);
  Av nil = av_const(r, value_nil());
  if (!nil) return OUT_FAIL;
  if (!(parts[2] = step == 1 ? nil : av_const(r, value_weak_i64(step)))) return OUT_FAIL;
  if (step < 0) { /* only down to where it says, from where it is in bounds */
    if (step != -1 || !av_known_int(r, parts[1], &stop))
      return rec_stuck(r, REASON_no_rule, "an array indexed by a range that goes down");
    if ((o = clamp_end(r, &parts[0], &below)) != OUT_GO) return o;
    if (below) return rec_stuck(r, REASON_no_rule, "an array indexed by a range that may begin below 0");
    if (stop < 0) parts[1] = nil;
    return OUT_GO;
  }
  if ((o = clamp_end(r, &parts[0], &below)) != OUT_GO) return o;
  if (below && step != 1)
    return rec_stuck(r, REASON_no_rule, "an array indexed by a range with a step that may begin below 0");
  return clamp_end(r, &parts[1], &below);
}

/* ---- its table --------------------------------------------------------------------------------------------------- */

enum { RANGE_NEAR = 3 }; /* starts up to this are relied on */

static Av range_input(Recorder *r, SourceId s, Value v, Span why) {
  GuardSet *gs = &r->g->guards;
  SizePool *p = &r->g->sizes;
  if (!guard_tag(gs, s, v, false, why)) return 0;
  const SourceKind parts[3] = {SRC_start, SRC_stop, SRC_step};
  const i64 now[3] = {v.range->start, v.range->stop, v.range->step};
  Av items[3];
  for (u32 i = 0; i < 3; i++) {
    SourceId at = source_step(gs, s, parts[i], 0, NULL);
    Dim d = at ? av_size_symbol(r, at, INT64_MIN, INT64_MAX, now[i]) : DIM_NONE;
    /* loops rely on both: few ranges ever change their step or begin below 0; `for i in 1..n` asks for x[i - 1] */
    bool known = d != DIM_NONE;
    if (known && i == 2) known = now[i] && range_step_sign(gs, p, d, now[i], why);
    if (known && i == 0 && now[i] >= 0) {
      Dim least = size_const(p, now[i] <= RANGE_NEAR ? now[i] : 0);
      known = guard_relation(gs, p, REL_le, least, d, "start of a range", why);
    }
    items[i] = known ? av_num(r, graph_size(r->g, size_resolve(p, d))) : 0;
    if (!items[i]) return 0;
  }
  Av a = av_range(r, items[0], items[1], items[2]);
  if (a) av_at(r, a)->source = s;
  return a;
}

static Outcome range_item(Recorder *r, Av a, Av at, Av *out) {
  Av count;
  ValueId place;
  Outcome o = rec_range_count(r, a, &count);
  if (o == OUT_GO) o = rec_rows_position(r, a, count, at, &place);
  return o == OUT_GO ? rec_range_item(r, a, av_num(r, graph_weaken(r->g, graph_convert(r->g, place, DT_i64))), out) : o;
}

static Outcome range_contains(Recorder *r, Av range, Av a, Av *out) {
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
  if (o == OUT_GO) o = rec_and_also(r, out, above);
  return o == OUT_GO ? rec_and_also(r, out, below) : o;
}

static Outcome items(Recorder *r, Av a, AvVec *out) {
  i64 start, stop, step;
  if (!av_known_int(r, av_item(r, a, 0), &start) || !av_known_int(r, av_item(r, a, 1), &stop) ||
      !av_known_int(r, av_item(r, a, 2), &step) || step == 0)
    return rec_stuck(r, REASON_no_rule, "the items of a range whose ends are computed");
  for (i64 i = start; step > 0 ? i < stop : i > stop; i += step) {
    if (out->count >= 2 * (u32)r->vm->tunables.unroll_trips) return rec_stuck(r, REASON_graph_size, "a long range");
    Av item = av_const(r, value_weak_i64(i));
    if (!item || !vec_push(&r->vm->alloc, out, item)) return OUT_FAIL;
  }
  return OUT_GO;
}

static Outcome range_array(Recorder *r, Av a, Av dtype, bool leaf, Av *out) {
  Av params[OP_MAX_PARAMS] = {av_item(r, a, 0), av_item(r, a, 1), av_item(r, a, 2)};
  (void)dtype, (void)leaf;
  return rec_op(r, OP_arange, params, out);
}

static RecipeId range_make(ExitTable *t, const AbsVal *v, const RecipeId *items, u32 count) {
  (void)v, (void)count;
  return recipe_range(t, items[0], items[1], items[2]);
}

static RecipeId range_recipe(Recorder *r, Av a) { return repr_items_recipe(r, a, 3, range_make); }
static RecipeId range_hand(Handing *h, Av a, u32 depth) { return repr_items_hand(h, a, 3, depth, range_make); }

/* An integer of a call's arguments: as it is now. */
static bool number_now(Recorder *r, Av a, i64 *out) {
  Dim d;
  return av_known_int(r, a, out) || (av_is_number(r, a) && value_dim(r->g, av_value(r, a), &d) && d != DIM_NONE &&
                                     size_hint(&r->g->sizes, d, out));
}

static bool range_example(Recorder *r, Av a, u32 depth, Value *out) {
  i64 ends[3];
  (void)depth;
  for (u32 i = 0; i < COUNT_OF(ends); i++)
    if (!number_now(r, av_item(r, a, i), &ends[i])) return false;
  return ends[2] != 0 && range_new(r->vm, ends[0], ends[1], ends[2], out);
}

const Repr repr_range = {
    .name = "range",
    .type = "range",
    .same = repr_same_parts,
    .recipe = range_recipe,
    .hand = range_hand,
    .example = range_example,
    .input = range_input,
    .length = rec_range_count,
    .item = range_item,
    NO(slice, no_rule, "a part of a range is not made in a trace"),
    .equal = rec_itself_equal,
    .contains = range_contains,
    NO(field, no_rule, "the ends of a range are not read in a trace"),
    NO(put_field, raises, "a range is not written"),
    NO(update, no_rule, "a range is not written"),
    NO(assign, raises, "a range is not written"),
    NO(store, raises, "a range is not written"),
    NO(before_store, raises, "a range is not written"),
    NO(add, raises, "ranges are not added"),
    .walk = repr_itself,
    .at = rec_range_item,
    .items = items,
    .array = range_array,
    .open = repr_itself,
    NO(call, raises, "a range is no function"),
    NO(truth, raises, "a range is no condition"),
    NO(format, text_value, "the texts of ranges are made by the interpreter"),
    NO(layout, loop_list, "what it is made of is carried as it is"),
    NO(name_of, no_rule, "what it is made of is carried as it is"),
    NO(widen, loop_types, "what it is made of is carried as it is"),
    NO(take_back, no_rule, "what it is made of is carried as it is"),
    NO(unpack, no_rule, "the parts of a range are not taken in a trace"),
};
