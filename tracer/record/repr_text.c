/* repr_text.c — texts that are made of values, as f-strings and `+` make them: of one value by a format spec
 * (`formatted`, whose table is in repr_digits.c), of several texts one behind the other (`joined`). No text is made
 * before the region is left. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_slice.h"

Av av_joined(Recorder *r, const Av *texts, u32 count) { return av_items(r, AV_joined, texts, count); }

/* Texts of computed numbers are made where the region is left: nothing in a graph looks at them. */
Outcome rec_text(Recorder *r, Av v, Av spec, Av *out) {
  Value how;
  v = av_force(r, v);
  spec = av_force(r, spec);
  if (!v || !spec) return OUT_FAIL;
  if (!av_const_value(r, spec, &how) || (how.kind != V_TEXT && how.kind != V_NIL))
    return rec_stuck(r, REASON_text_value, "a computed format spec");
  const Repr *p = av_repr(r, v);
  return p->format ? p->format(r, v, spec, how.kind == V_NIL || how.text->len == 0, out) : repr_no(r, v, ROP_format);
}

/* A part of a text: one that a loop around the region writes is another one in each trip, and looked at by nobody. */
Av rec_text_part(Recorder *r, Av a) {
  const AbsVal v = *av_at(r, a);
  if (!kind_is_lazy(v.kind) || v.konst.kind != V_TEXT) return av_force(r, a);
  if ((v.source < r->source_av.count && r->source_av.data[v.source]) || !rec_written_around(r, v.source))
    return av_force(r, a);
  return guard_tag(&r->g->guards, v.source, v.konst, false,
                   rec_here(r)) ? av_new(r, (AbsVal){.kind = AV_outer_text, .source = v.source, .konst = v.konst}) : 0;
}

Outcome rec_join(Recorder *r, const Av *parts, u32 count, Av *out) {
  const u32 most = (u32)r->vm->tunables.text_parts;
  Av *all = rec_avs(r, most + 1);
  u32 n = 0;
  if (!all) return OUT_FAIL;
  for (u32 i = 0; i < count; i++) {
    Value v;
    Av a = rec_text_part(r, parts[i]);
    if (!a) return OUT_FAIL;
    const AbsVal *t = av_at(r, a);
    if (kind_is_packed_text(t->kind) && i == 0) { /* a text that grows */
      for (*out = a; ++i < count;) {
        Outcome o = rec_rows_join(r, *out, av_force(r, parts[i]), out);
        if (o != OUT_GO) return o;
      }
      return OUT_GO;
    }
    bool joined = kind_is_joined(t->kind);
    bool whole = kind_is_outer_text(t->kind) && t->source;
    if (!kind_is_made_text(t->kind) && !whole && !(av_const_value(r, a, &v) && v.kind == V_TEXT))
      return rec_stuck(r, REASON_raises, "%s joined to a text", av_kind_text(r, a));
    t = av_at(r, a);
    for (u32 k = 0; k < (joined ? t->count : 1); k++) {
      if (n == most) return rec_over(r, text_parts, REASON_text_value, "a text");
      all[n++] = joined ? av_item(r, a, k) : a;
    }
  }
  bool known = true;
  Value *texts = arena_alloc(&r->g->arena, sizeof *texts * (n + 1)), text;
  if (!texts) return OUT_FAIL;
  for (u32 i = 0; i < n && known; i++) known = av_const_value(r, all[i], &texts[i]);
  if (!known) return rec_made(r, av_joined(r, all, n), out);
  if (!text_concat(r->vm, texts, n, &text)) {
    vm_error_forget(r->vm);
    return OUT_FAIL;
  }
  Av a = av_const(r, text);
  value_drop(r->vm, text);
  return rec_made(r, a, out);
}

/* a + b: put together where the region is left, or, where b is a text that a loop lets grow, put in front of it. */
Outcome rec_text_add(Recorder *r, Av a, Av b, Av *out) {
  if (!rec_is_text(r, b)) return rec_stuck(r, REASON_raises, "`+` of text and %s", av_kind_text(r, b));
  if (av_is_packed_text(r, b) && !r->no_exits && rec_is_carried(r, b) && rec_text_parts(r, a))
    return rec_text_join(r, b, a, true, out);
  if (av_has(r, a, IS_MADE) || av_has(r, b, IS_MADE) || av_is_outer_text(r, a) || av_is_outer_text(r, b))
    return rec_join(r, (Av[]){a, b}, 2, out);
  return rec_stuck(r, REASON_no_rule, "`+` of texts");
}

/* ---- its table --------------------------------------------------------------------------------------------------- */

static RecipeId make_joined(ExitTable *t, const AbsVal *v, const RecipeId *items, u32 count) {
  (void)v;
  return recipe_text(t, TEXT_joined, items, count);
}

static RecipeId joined_recipe(Recorder *r, Av a) { return repr_items_recipe(r, a, av_at(r, a)->count, make_joined); }
static RecipeId joined_hand(Handing *h, Av a, u32 depth) {
  return repr_items_hand(h, a, av_at(h->r, a)->count, depth, make_joined);
}

const Repr repr_joined = {
    .name = "joined",
    .type = "text",
    .same = repr_same_parts,
    .recipe = joined_recipe,
    .hand = joined_hand,
    NO(example, no_rule, "a text of no known length"),
    NO(input, no_rule, "the trace makes it"),
    .length = rec_text_length,
    NO(item, no_rule, "its characters are not known by place"),
    NO(slice, no_rule, "its characters are not known by place"),
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
    NO(walk, loop_sequence, MADE_HERE),
    NO(at, loop_sequence, MADE_HERE),
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
