/* repr_function.c — functions. A `closure` has its `code`; its captures are items, or read through `env`. A
 * `transform` is what grad, vmap, … made: `op` says which (TransformKind), items: the function inside and the
 * settings. A `function` is one from outside that is neither: the host's, or, where `op` is 1, one of which it is not
 * asked which one it is.
 *
 * A closure of items and a transform keep in `value` their recipe in the exit that `konst.bits` counts: one function,
 * wherever it stands. `op` of a closure: 1 + its place in a group of functions that capture each other. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_compare.h"

Av av_closure(Recorder *r, Code *code) {
  return av_new(r, (AbsVal){.kind = AV_closure, .env = ENV_ITEMS, .code = code});
}

Av av_closure_of(Recorder *r, Code *code, Av captures, u32 member) {
  const AbsVal v = *av_at(r, captures);
  return av_new(r, (AbsVal){.kind = AV_closure, .env = ENV_ITEMS, .op = (u16)member, .code = code, .first = v.first,
                            .count = v.count});
}

Av av_sibling(Recorder *r, Av fn, Code *code, u32 index) {
  AbsVal v = fn ? *av_at(r, fn) : (AbsVal){.kind = AV_closure, .env = ENV_ROOT};
  v.code = code;
  v.source = 0;
  v.op = (u16)(index + 1);
  return av_new(r, v);
}

Av av_transform(Recorder *r, TransformKind kind, Av inner, Av settings) {
  Av parts[2] = {inner, settings};
  Av a = inner && settings ? av_items(r, AV_transform, parts, 2) : 0;
  if (a) av_at(r, a)->op = (u16)kind;
  return a;
}

/* Of every function from outside. */
static Av fn_input(Recorder *r, SourceId s, Value v, Span why) {
  Fn *fn = v.fn;
  Av a = 0;
  if (!guard_code(&r->g->guards, s, fn, why)) return 0;
  switch (fn->kind) {
    case FN_BUILTIN: a = av_const(r, v); break;
    case FN_CLOSURE:
      return av_new(r, (AbsVal){.kind = AV_closure, .env = ENV_SOURCE, .env_source = s, .code = fn->code, .source = s,
                                .konst = v});
    case FN_TRANSFORM:
      a = av_transform(r, fn->transform, av_lazy(r, source_step(&r->g->guards, s, SRC_inner, 0, NULL), fn->inner),
                       av_lazy(r, source_step(&r->g->guards, s, SRC_settings, 0, NULL), fn->settings));
      break;
    default: return av_new(r, (AbsVal){.kind = AV_function, .source = s, .konst = v});
  }
  if (a) av_at(r, a)->source = s;
  return a;
}

/* ---- rebuilt ----------------------------------------------------------------------------------------------------- */

/* One function, wherever it stands: made once for an exit. */
static RecipeId fn_once(Recorder *r, Av a, RecipeMaker make) {
  const AbsVal *v = av_at(r, a);
  if (v->source) return recipe_source(&r->g->exits, v->source);
  if (v->value && v->konst.bits == r->exit_number) return v->value;
  RecipeId made = repr_items_recipe(r, a, v->count, make);
  AbsVal *fn = av_at(r, a);
  fn->value = made;
  fn->konst.bits = r->exit_number;
  return made;
}

static RecipeId make_closure(ExitTable *t, const AbsVal *v, const RecipeId *items, u32 count) {
  return v->op ? recipe_group_fn(t, v->code, v->op - 1u, items, count) : recipe_fn(t, v->code, items, count);
}

/* A sibling of a function that has a source: with its captures. */
static RecipeId sibling_recipe(Recorder *r, Av a) {
  const u32 n = av_at(r, a)->code->proto->ncaptures;
  Av *captures = rec_avs(r, n);
  if (!captures) return 0;
  for (u32 i = 0; i < n; i++)
    if (!(captures[i] = rec_capture(r, a, i))) return 0;
  return repr_recipe_of(r, a, captures, n, make_closure);
}

static RecipeId closure_recipe(Recorder *r, Av a) {
  const AbsVal *v = av_at(r, a);
  return v->env == ENV_ITEMS || v->source ? fn_once(r, a, make_closure) : sibling_recipe(r, a);
}

static RecipeId make_transform(ExitTable *t, const AbsVal *v, const RecipeId *items, u32 count) {
  (void)count;
  return recipe_transform(t, v->op, items[0], items[1]);
}

static RecipeId transform_recipe(Recorder *r, Av a) {
  const AbsVal *v = av_at(r, a);
  return v->op == TF_pullback && !v->source ? 0 : fn_once(r, a, make_transform); /* the nodes of a pullback are here */
}

/* A host function calls it; output shows what only the program knows. */
static RecipeId closure_hand(Handing *h, Av a, u32 depth) {
  const AbsVal *v = av_at(h->r, a);
  if (!h->host || v->source) return repr_source_hand(h, a, depth);
  return v->env == ENV_ITEMS && !v->op ? repr_items_hand(h, a, v->count, depth, make_closure) : 0;
}

#define NO_ITEMS "a function has no items"
const Repr repr_closure = {
    .name = "closure",
    .type = "fn",
    .same = repr_same_source, /* its captures are no leaves */
    .recipe = closure_recipe,
    .hand = closure_hand,
    .example = repr_source_example,
    NO(input, no_rule, "repr_function reads it"),
    NO(length, raises, NO_ITEMS),
    NO(item, raises, NO_ITEMS),
    NO(slice, raises, NO_ITEMS),
    .equal = rec_itself_equal,
    NO(field, raises, NO_ITEMS),
    NO(put_field, raises, NO_ITEMS),
    NO(update, no_rule, NO_ITEMS),
    NO(assign, raises, NO_ITEMS),
    NO(store, raises, NO_ITEMS),
    NO(before_store, raises, NO_ITEMS),
    NO(add, raises, "functions are not added"),
    NO(contains, raises, NO_ITEMS),
    NO(walk, loop_sequence, NO_ITEMS),
    NO(at, loop_sequence, NO_ITEMS),
    NO(items, no_rule, NO_ITEMS),
    NO(array, raises, NO_ITEMS),
    .open = repr_itself,
    .call = rec_call_closure,
    NO(truth, raises, NO_ITEMS),
    NO(format, text_value, NO_ITEMS),
    NO(layout, loop_list, NO_ITEMS),
    NO(name_of, no_rule, NO_ITEMS),
    NO(widen, loop_types, NO_ITEMS),
    NO(take_back, no_rule, NO_ITEMS),
    NO(unpack, raises, NO_ITEMS),
};

const Repr repr_transform = {
    .name = "transform",
    .type = "fn",
    .same = repr_same_source,
    .recipe = transform_recipe,
    NO(hand, effect_host, "what it was made of stays in the region"),
    NO(example, no_rule, "a function that was transformed in the trace"),
    NO(input, no_rule, "repr_function reads it"),
    NO(length, raises, NO_ITEMS),
    NO(item, raises, NO_ITEMS),
    NO(slice, raises, NO_ITEMS),
    .equal = rec_itself_equal,
    NO(field, raises, NO_ITEMS),
    NO(put_field, raises, NO_ITEMS),
    NO(update, no_rule, NO_ITEMS),
    NO(assign, raises, NO_ITEMS),
    NO(store, raises, NO_ITEMS),
    NO(before_store, raises, NO_ITEMS),
    NO(add, raises, "functions are not added"),
    NO(contains, raises, NO_ITEMS),
    NO(walk, loop_sequence, NO_ITEMS),
    NO(at, loop_sequence, NO_ITEMS),
    NO(items, no_rule, NO_ITEMS),
    NO(array, raises, NO_ITEMS),
    .open = repr_itself,
    .call = rec_call_transform,
    NO(truth, raises, NO_ITEMS),
    NO(format, text_value, NO_ITEMS),
    NO(layout, loop_list, NO_ITEMS),
    NO(name_of, no_rule, NO_ITEMS),
    NO(widen, loop_types, NO_ITEMS),
    NO(take_back, no_rule, NO_ITEMS),
    NO(unpack, raises, NO_ITEMS),
};

const Repr repr_function = {
    .name = "function",
    .type = NULL,
    .same = repr_same_source,
    .recipe = repr_source_recipe,
    .hand = repr_source_hand,
    .example = repr_source_example,
    .input = fn_input,
    NO(length, raises, NO_ITEMS),
    NO(item, raises, NO_ITEMS),
    NO(slice, raises, NO_ITEMS),
    .equal = rec_itself_equal,
    NO(field, raises, NO_ITEMS),
    NO(put_field, raises, NO_ITEMS),
    NO(update, no_rule, NO_ITEMS),
    NO(assign, raises, NO_ITEMS),
    NO(store, raises, NO_ITEMS),
    NO(before_store, raises, NO_ITEMS),
    NO(add, raises, "functions are not added"),
    NO(contains, raises, NO_ITEMS),
    NO(walk, loop_sequence, NO_ITEMS),
    NO(at, loop_sequence, NO_ITEMS),
    NO(items, no_rule, NO_ITEMS),
    NO(array, raises, NO_ITEMS),
    .open = repr_itself,
    .call = rec_call_function,
    NO(truth, raises, NO_ITEMS),
    NO(format, text_value, NO_ITEMS),
    NO(layout, loop_list, NO_ITEMS),
    NO(name_of, no_rule, NO_ITEMS),
    NO(widen, loop_types, NO_ITEMS),
    NO(take_back, no_rule, NO_ITEMS),
    NO(unpack, raises, NO_ITEMS),
};
