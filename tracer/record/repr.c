/* repr.c — the tables of all representations, and the cells that several of them share (see repr.h). */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_effects.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr.h"

#include <stdio.h>

const Repr *const reprs[AV_COUNT] = {
#define REPR(name, traits) [AV_##name] = &repr_##name,
#include "tracer/record/repr.def"
#undef REPR
};

const u16 repr_traits[AV_COUNT] = {
#define REPR(name, traits) [AV_##name] = traits,
#include "tracer/record/repr.def"
#undef REPR
};

static const char *const op_texts[ROP_COUNT] = {
#define REPR_OP(name, result, parameters, text) [ROP_##name] = text,
#include "tracer/record/repr_ops.def"
#undef REPR_OP
};

Outcome repr_no(Recorder *r, Av a, ReprOp op) {
  const ReprGap *gap = &av_repr(r, a)->gap[op];
  char what[80];
  snprintf(what, sizeof what, op_texts[op], av_kind_text(r, a));
  if (!gap->why) return rec_stuck(r, REASON_no_rule, "%s", what); /* of this one, for what stands beside it */
  return rec_stuck(r, gap->reason, "%s: %s", what, gap->why);
}

/* ---- asked of the table ------------------------------------------------------------------------------------------ */

Outcome rec_length(Recorder *r, Av a, Av *out) {
  const Repr *p = av_repr(r, a);
  return p->length ? p->length(r, a, out) : repr_no(r, a, ROP_length);
}

Outcome rec_item(Recorder *r, Av a, Av at, Av *out) {
  const Repr *p = av_repr(r, a);
  return p->item ? p->item(r, a, at, out) : repr_no(r, a, ROP_item);
}

Outcome rec_slice(Recorder *r, Av a, const Av *parts, Av *out) {
  const Repr *p = av_repr(r, a);
  return p->slice ? p->slice(r, a, parts, out) : repr_no(r, a, ROP_slice);
}

Outcome rec_walk(Recorder *r, Av a, Av *out) {
  const Repr *p = av_repr(r, a);
  return p->walk ? p->walk(r, a, out) : repr_no(r, a, ROP_walk);
}

Outcome rec_at(Recorder *r, Av a, Av pos, Av *out) {
  const Repr *p = av_repr(r, a);
  return p->at ? p->at(r, a, pos, out) : repr_no(r, a, ROP_at);
}

Outcome rec_items(Recorder *r, Av a, AvVec *out) {
  if (!(a = av_force(r, a))) return OUT_FAIL;
  const Repr *p = av_repr(r, a);
  return p->items ? p->items(r, a, out) : repr_no(r, a, ROP_items);
}

Outcome rec_open_list(Recorder *r, Av a, Av *out) {
  if (!(a = av_force(r, a))) return OUT_FAIL;
  const Repr *p = av_repr(r, a);
  return p->open ? p->open(r, a, out) : repr_no(r, a, ROP_open);
}

Outcome repr_itself(Recorder *r, Av a, Av *out) {
  (void)r;
  *out = a;
  return OUT_GO;
}

/* The second of the items: of columns, how many of their elements count. */
Outcome repr_count_length(Recorder *r, Av a, Av *out) { return rec_made(r, av_item(r, a, 1), out); }

Outcome repr_items_length(Recorder *r, Av a, Av *out) {
  return rec_made(r, av_const(r, value_weak_i64(av_at(r, a)->count)), out);
}

/* ---- known ------------------------------------------------------------------------------------------------------- */

Outcome repr_known_truth(Recorder *r, Av a, Value v, Av *out) {
  bool t;
  if (vm_truth(r->vm, v, &t) == WEFT_OK) return rec_made(r, av_const(r, value_bool(t)), out);
  vm_error_forget(r->vm);
  return rec_stuck(r, REASON_raises, "the condition is %s", av_kind_text(r, a));
}

Outcome repr_constant_truth(Recorder *r, Av a, Av *out) { return repr_known_truth(r, a, av_at(r, a)->konst, out); }

Outcome repr_known_format(Recorder *r, Value v, Av spec, Av *out) {
  Value how, text;
  if (!av_const_value(r, spec, &how)) return rec_stuck(r, REASON_text_value, "a computed format spec");
  if (vm_text(r->vm, v, how, &text) != WEFT_OK) {
    vm_error_forget(r->vm);
    return rec_stuck(r, REASON_raises, "the format spec does not fit");
  }
  Av a = av_const(r, text);
  value_drop(r->vm, text);
  return rec_made(r, a, out);
}

Outcome repr_constant_format(Recorder *r, Av a, Av spec, bool plain, Av *out) {
  (void)plain;
  return repr_known_format(r, av_at(r, a)->konst, spec, out);
}

/* A text by no spec is itself. */
Outcome repr_text_format(Recorder *r, Av a, Av spec, bool plain, Av *out) {
  (void)spec;
  return plain ? rec_made(r, a, out) : rec_stuck(r, REASON_text_value, "a text is made of a text by a spec");
}

/* ---- alike ------------------------------------------------------------------------------------------------------- */

bool repr_same_parts(Recorder *r, Av a, Av b) {
  const u32 n = av_at(r, a)->count;
  for (u32 i = av_repr(r, a)->first_part; i < n; i++)
    if (!carry_same(r, av_item(r, a, i), av_item(r, b, i))) return false;
  return true;
}

bool repr_same_source(Recorder *r, Av a, Av b) {
  return av_at(r, a)->source && av_at(r, a)->source == av_at(r, b)->source;
}

bool repr_same_value(Recorder *r, Av a, Av b) {
  const Value x = av_at(r, a)->konst, y = av_at(r, b)->konst;
  bool equal = false;
  if (x.kind != y.kind) return false;
  if (value_equal(r->vm, x, y, &equal) == WEFT_OK) return equal;
  vm_error_forget(r->vm);
  return false;
}

bool repr_same_leaf(Recorder *r, Av a, Av b) {
  (void)r, (void)a, (void)b;
  return true;
}

/* ---- where the region is left ------------------------------------------------------------------------------------ */

RecipeId repr_source_recipe(Recorder *r, Av a) {
  const AbsVal *v = av_at(r, a);
  return v->source ? recipe_source(&r->g->exits, v->source) : 0;
}

RecipeId repr_constant_recipe(Recorder *r, Av a) {
  const AbsVal *v = av_at(r, a);
  RecipeId c = recipe_const(&r->g->exits, v->konst);
  return c ? c : repr_source_recipe(r, a);
}

RecipeId repr_recipe_of(Recorder *r, Av a, const Av *items, u32 count, RecipeMaker make) {
  const AbsVal v = *av_at(r, a);
  RecipeId few[16], *ids = few;
  Allocator *alloc = &r->vm->alloc;
  if (count > COUNT_OF(few) && !(ids = mem_alloc(alloc, count * sizeof *ids))) {
    r->failed = true;
    return 0;
  }
  bool ok = true;
  for (u32 i = 0; i < count && ok; i++) {
    Av item = items ? items[i] : av_item(r, a, i);
    ok = item && (ids[i] = rec_recipe(r, item)) != 0;
  }
  RecipeId made = ok ? make(&r->g->exits, &v, ids, count) : 0;
  if (ids != few) mem_free(alloc, ids, count * sizeof *ids);
  return made;
}

RecipeId repr_items_recipe(Recorder *r, Av a, u32 count, RecipeMaker make) {
  RecipeId there = repr_source_recipe(r, a);
  return there ? there : repr_recipe_of(r, a, NULL, count, make);
}

/* ---- handed out -------------------------------------------------------------------------------------------------- */

RecipeId repr_items_hand(Handing *h, Av a, u32 count, u32 depth, RecipeMaker make) {
  Recorder *r = h->r;
  const AbsVal v = *av_at(r, a);
  RecipeId few[16], *ids = count <= COUNT_OF(few) ? few : arena_alloc(&r->g->arena, sizeof *ids * count);
  if (!ids) return 0;
  for (u32 i = 0; i < count; i++)
    if (!(ids[i] = rec_hand(h, av_item(r, a, i), depth + 1))) return 0;
  return make(&r->g->exits, &v, ids, count);
}

RecipeId repr_source_hand(Handing *h, Av a, u32 depth) {
  (void)depth;
  return h->host ? repr_source_recipe(h->r, a) : 0;
}

RecipeId repr_constant_hand(Handing *h, Av a, u32 depth) {
  (void)depth;
  return repr_constant_recipe(h->r, a);
}

/* ---- on types alone ---------------------------------------------------------------------------------------------- */

bool repr_constant_example(Recorder *r, Av a, u32 depth, Value *out) {
  (void)depth;
  *out = value_keep(av_at(r, a)->konst);
  return true;
}

bool repr_source_example(Recorder *r, Av a, u32 depth, Value *out) {
  const AbsVal *v = av_at(r, a);
  return v->source && v->konst.kind != V_NIL && repr_constant_example(r, a, depth, out);
}
