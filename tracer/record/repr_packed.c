/* repr_packed.c — texts whose code points lie in a column, as items of a list in columns do: texts from outside that a
 * loop looks into, and texts that grow in a loop. `konst` is an empty text; `op` 1: a known text, of ASCII alone, which
 * a loop walks over. How a text gets into a column stands in repr_columns.c. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_slice.h"

bool rec_text_has(const Recorder *r, Av a) {
  const AbsVal *v = a ? av_at(r, a) : NULL;
  return v && r->loop && v->source && v->konst.kind == V_TEXT &&
         (kind_is_lazy(v->kind) || kind_is_outer_text(v->kind) || kind_is_constant(v->kind));
}

Outcome rec_text_get(Recorder *r, Av text, Av at, Av *out) {
  const AbsVal v = *av_at(r, text);
  Av rows;
  Outcome o = rec_rows_of_text(r, v.source, v.konst, &rows);
  return o == OUT_GO ? rec_rows_get(r, rows, at, out) : o;
}

Outcome rec_text_cut(Recorder *r, Av text, const Av *parts, Av *out) {
  const AbsVal v = *av_at(r, text);
  Av rows;
  Outcome o = rec_rows_of_text(r, v.source, v.konst, &rows);
  return o == OUT_GO ? rec_text_slice(r, rows, parts, out) : o;
}

bool rec_points(Recorder *r, Av text, Av *out, u32 *count) {
  enum { MOST = 64 }; /* not a threshold: room for characters */
  u32 none = 0, *n = count ? count : &none;
  const AbsVal v = *av_at(r, text);
  if (kind_is_constant(v.kind) && v.konst.kind == V_TEXT) {
    i64 points[MOST];
    if (v.konst.text->count > MOST || *n + v.konst.text->count > MOST) return false;
    text_points(v.konst.text, points);
    for (u32 i = 0; i < v.konst.text->count; i++, ++*n)
      if (out && !(out[*n] = av_const(r, value_i64(points[i])))) return false;
    return true;
  }
  if (kind_is_character(v.kind)) {
    if (*n == MOST) return false;
    if (out) out[*n] = av_item(r, text, 0);
    ++*n;
    return true;
  }
  if (!kind_is_joined(v.kind)) return false;
  for (u32 i = 0; i < v.count; i++)
    if (!rec_points(r, av_item(r, text, i), out, n)) return false;
  return true;
}

/* Is rows of text the text whose code points these are? */
Outcome rec_text_same(Recorder *r, Av rows, Av text, Av *out) {
  enum { MOST = 16 }; /* not a threshold: each character is compared by itself */
  Av points[64], same, one;
  u32 n = 0;
  if (!rec_points(r, text, points, &n) || n > MOST)
    return rec_stuck(r, REASON_no_rule, "`==` of texts of unknown length, or of more than %d characters", MOST);
  Outcome o = rec_binary(r, BC_eq, av_item(r, rows, 1), av_const(r, value_weak_i64(n)), &same);
  for (u32 i = 0; i < n && o == OUT_GO; i++) {
    Av c;
    if ((o = rec_rows_item(r, rows, av_const(r, value_weak_i64(i)), &c)) != OUT_GO) return o;
    if ((o = rec_binary(r, BC_eq, av_item(r, c, 0), points[i], &one)) != OUT_GO) return o;
    Av params[OP_MAX_PARAMS] = {same, one};
    o = rec_op(r, OP_logical_and, params, &same);
  }
  return o == OUT_GO ? rec_made(r, av_num(r, rec_strengthen(r, av_value(r, same), DT_bool)), out) : o;
}

/* ---- its table --------------------------------------------------------------------------------------------------- */

/* A `for` counts the bytes of a text, columns count code points: where these are the same. */
Outcome rec_text_walk(Recorder *r, Av text, Av *out) {
  const AbsVal v = *av_at(r, text);
  if (v.konst.text->len != v.konst.text->count)
    return rec_stuck(r, REASON_loop_sequence, "a loop over a text that is not ASCII alone");
  if (!v.source) {
    Outcome o = rec_rows_of(r, text, NULL, out);
    if (o == OUT_GO) av_at(r, *out)->op = 1; /* ASCII alone: its loop may come by here again */
    return o;
  }
  return guard_rows(&r->g->guards, v.source, v.konst,
                    rec_here(r)) ? rec_rows_of_text(r, v.source, v.konst, out) : OUT_FAIL;
}

static Outcome packed_walk(Recorder *r, Av a, Av *out) {
  const AbsVal *v = av_at(r, a);
  return v->source || v->op ? rec_made(r, a, out) : rec_stuck(r, REASON_loop_sequence, "a loop over " MADE_HERE);
}

static Outcome packed_add(Recorder *r, Av a, Av b, Av *out) {
  return rec_is_text(r, b) ? rec_rows_join(r, a, b, out) : repr_no(r, b, ROP_add);
}

static RecipeId packed_recipe(Recorder *r, Av a) {
  ExitTable *t = &r->g->exits;
  RecipeId there = repr_source_recipe(r, a);
  if (there) return there;
  RecipeId count = rec_recipe(r, av_item(r, a, 1)),
           points = count ? recipe_items(t, av_value(r, av_item(r, a, 0)), 0, count, ITEMS_strong) : 0;
  return points ? recipe_text(t, TEXT_points, &points, 1) : 0;
}

const Repr repr_packed_text = {
    .name = "packed_text",
    .type = "text",
    .same = repr_same_parts,
    .recipe = packed_recipe,
    NO(hand, effect_host, "its column stays in the region"),
    NO(example, no_rule, "a text of no known length"),
    NO(input, no_rule, "a loop asks for it"),
    .length = repr_count_length,
    .item = rec_rows_get,
    .slice = rec_rows_slice,
    .add = packed_add,
    .equal = rec_text_equal,
    .contains = rec_text_contains,
    NO(field, raises, "a text has no fields"),
    NO(put_field, raises, "a text has no fields"),
    NO(update, no_rule, "texts are not written"),
    NO(assign, raises, "texts are not written"),
    NO(store, raises, "texts are not written"),
    NO(before_store, raises, "texts are not written"),
    .format = repr_text_format,
    .walk = packed_walk,
    .at = rec_rows_item,
    NO(truth, raises, "a text is no condition"),
    .open = repr_itself,
    NO(items, no_rule, "a text is walked over by a loop"),
    NO(array, raises, "a text is no array"),
    NO(call, raises, "a text is no function"),
    NO(layout, loop_list, "a text of any length in a list"),
    NO(name_of, no_rule, "a text of any length has none"),
    .widen = rec_columns_widen,
    .take_back = rec_columns_take_back,
    NO(unpack, raises, "a text has no parts"),
};
