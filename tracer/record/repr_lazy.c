/* repr_lazy.c — values from outside that were not read yet, and the reading of them; registers that hold nothing, and
 * arguments that were not given.
 *
 * A `lazy` value knows its source and, borrowed, what stands there now (`konst`). Nothing is relied on until it is
 * looked at: then it becomes what the table below says for values of its kind (av_force). `none` is the value of what
 * was never assigned; it is asked for nothing. A `hole` stands for an argument that was not given. */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_columns_whole.h"
#include "tracer/tracer.h"

Av av_lazy(Recorder *r, SourceId s, Value now) {
  if (!s) {
    r->failed = true;
    return 0;
  }
  while (r->source_av.count <= s)
    if (!vec_push(&r->vm->alloc, &r->source_av, 0)) {
      r->failed = true;
      return 0;
    }
  if (r->source_av.data[s]) return r->source_av.data[s];
  return av_new(r, (AbsVal){.kind = AV_lazy, .source = s, .konst = now});
}

/* ---- how much is taken apart ------------------------------------------------------------------------------------- */

/* Nor more than so many, where one stands so deep in others like it: a tree, or a linked list, which is seldom the same
 * again. */
/* not a threshold: what tells a linked list from a record */
enum { TREE_DEPTH = 4, TREE_SOURCES = 64 };

static bool in_tree(const Recorder *r, SourceId s, AvKind kind, u32 count, const Shape *shape) {
  const Source *items = r->g->guards.sources.items.data;
  u32 depth = 0;
  while ((s = items[s].parent) && depth < TREE_DEPTH) {
    const AbsVal *up = s < r->source_av.count ? av_at(r, r->source_av.data[s]) : NULL;
    depth += up && up->kind == kind && up->count == count && up->shape == shape;
  }
  return depth == TREE_DEPTH;
}

bool av_is_many(const Recorder *r, SourceId s, AvKind kind, u32 items, const Shape *shape) {
  u32 sources = r->g->guards.sources.items.count;
  return items > (u32)r->vm->tunables.input_items || sources > (u32)r->vm->tunables.trace_sources ||
         (sources > TREE_SOURCES && in_tree(r, s, kind, items, shape));
}

/* ---- read -------------------------------------------------------------------------------------------------------- */

/* A value from outside that is not looked into: all that is relied on is what it is. */
Av av_outer(Recorder *r, SourceId s, Value v, Span why) {
  static const u8 kinds[V_HOLE + 1] = {
      [V_LIST] = AV_outer_list, [V_RECORD] = AV_outer_record, [V_TEXT] = AV_outer_text, [V_FN] = AV_function,
      [V_MODULE] = AV_module,   [V_REF] = AV_outer_ref,       [V_HANDLE] = AV_handle,
  };
  if (!guard_tag(&r->g->guards, s, v, false, why)) return 0;
  const u8 kind = kinds[v.kind] ? kinds[v.kind] : AV_outer;
  return av_new(r, (AbsVal){.kind = kind, .op = v.kind == V_FN, .source = s, .konst = v});
}

/* In what representation a value comes in, by its kind; others are not looked into. */
static const Repr *const reads[V_HOLE + 1] = {
    [V_NIL] = &repr_known,  [V_DTYPE] = &repr_known, [V_HOLE] = &repr_known,    [V_TEXT] = &repr_known_text,
    [V_NUM] = &repr_number, [V_ARRAY] = &repr_number, [V_LIST] = &repr_list,    [V_RECORD] = &repr_record,
    [V_RANGE] = &repr_range, [V_FN] = &repr_function, [V_MODULE] = &repr_module,
};

static Av read_source(Recorder *r, SourceId s, Value v) {
  Span why = r->frames.count ? rec_here(r) : (Span){0};
  if (v.kind == V_TEXT && v.text->len > (u32)r->vm->tunables.known_text) return av_outer(r, s, v, why);
  const Repr *p = reads[v.kind];
  bool opens = v.kind == V_TEXT || v.kind == V_LIST || v.kind == V_RECORD || v.kind == V_FN;
  if (!p || (opens && !r->abstract && source_is_open(r->tracer, &r->g->guards, s))) return av_outer(r, s, v, why);
  return p->input(r, s, v, why);
}

enum { FORCED_TIMED = 128 }; /* not a threshold: the clock is looked at once in so many */

Av av_force(Recorder *r, Av a) {
  if (!a || !av_is_lazy(r, a)) return a;
  SourceId s = av_at(r, a)->source;
  Value now = av_at(r, a)->konst;
  if (r->abstract) now = value_untracked(now);
  while (r->source_av.count <= s)
    if (!vec_push(&r->vm->alloc, &r->source_av, 0)) {
      r->failed = true;
      return 0;
    }
  if (r->source_av.data[s] && MECHANISM(r->vm, input_dedup)) return r->source_av.data[s];
  if (r->trail.count % FORCED_TIMED == FORCED_TIMED - 1 && rec_is_late(r)) return 0;
  Av read = read_source(r, s, now);
  if (!read || !vec_push(&r->vm->alloc, &r->trail, s)) {
    r->failed = true;
    return 0;
  }
  r->source_av.data[s] = read;
  return read;
}


/* ---- asked before it is read ------------------------------------------------------------------------------------- */

/* A text that nobody has looked into yet, of the program's variables: its length is asked for at each entry, not which
 * text it is. */
static Outcome lazy_text_length(Recorder *r, Av x, Av *out) {
  const AbsVal v = *av_at(r, x);
  bool known = v.source < r->source_av.count && r->source_av.data[v.source];
  if (v.konst.kind != V_TEXT || !v.source || known ||
      r->g->guards.sources.items.data[v.source].kind == SRC_global)
    return OUT_STUCK;
  return guard_tag(&r->g->guards, v.source, v.konst, false,
                   rec_here(r)) ? rec_made(r, av_length(r, v.source, v.konst.text->count), out) : OUT_FAIL;
}

/* A list of data that nobody has looked into yet, as lazy_item() takes it: its length is left open. A short one is
 * data where a loop asks. */
static bool is_data(const Recorder *r, Av x) {
  if (!rec_rows_suit(r, x) || r->g->guards.sources.items.data[av_at(r, x)->source].kind == SRC_global) return false;
  const List *l = av_at(r, x)->konst.list;
  bool numbers = r->loop && !list_is_packed(l);
  for (u32 i = 0; i < l->count && numbers; i++)
    numbers = l->items[i].kind == V_NUM && l->items[i].dtype == l->items[0].dtype;
  return numbers || l->count > 2 * (u32)r->vm->tunables.unroll_trips;
}

static Outcome lazy_length(Recorder *r, Av a, Av *out) {
  Outcome o = lazy_text_length(r, a, out);
  if (o != OUT_STUCK) return o;
  if (is_data(r, a)) {
    const AbsVal v = *av_at(r, a);
    bool list = guard_tag(&r->g->guards, v.source, v.konst, false, rec_here(r));
    return list ? rec_made(r, av_length(r, v.source, v.konst.list->count), out) : OUT_FAIL;
  }
  return (a = av_force(r, a)) ? rec_length(r, a, out) : OUT_FAIL;
}

/* A list is not taken apart where the position is computed. */
static Outcome lazy_item(Recorder *r, Av a, Av at, Av *out) {
  if (rec_text_has(r, a)) return rec_text_get(r, a, at, out);
  if ((r->loop || r->recur) && rec_rows_suit(r, a)) {
    i64 known;
    Av rows;
    Outcome o = av_known_int(r, at, &known) ? OUT_STUCK : rec_rows_here(r, a, &rows);
    if (o == OUT_GO) return rec_item(r, rows, at, out);
    if (o == OUT_FAIL || r->lacks) return o;
  }
  return (a = av_force(r, a)) ? rec_item(r, a, at, out) : OUT_FAIL;
}

static Outcome lazy_slice(Recorder *r, Av a, const Av *parts, Av *out) {
  if (rec_text_has(r, a)) return rec_text_cut(r, a, parts, out);
  if (rec_rows_suit(r, a) && rec_is_in_columns(r, a)) return rec_list_slice(r, a, parts, out);
  return (a = av_force(r, a)) ? rec_slice(r, a, parts, out) : OUT_FAIL;
}

/* Long lists and texts are packed. */
static Outcome lazy_walk(Recorder *r, Av a, Av *out) {
  const AbsVal *v = av_at(r, a);
  Outcome o = OUT_STUCK;
  if (v->konst.kind == V_TEXT) return rec_text_walk(r, a, out);
  if (rec_is_list_source(v) && v->konst.list->count > 2 * (u32)r->vm->tunables.unroll_trips)
    o = rec_rows_of(r, a, NULL, out);
  if (o != OUT_STUCK) return o;
  return (a = av_force(r, a)) ? rec_walk(r, a, out) : OUT_FAIL;
}

/* ---- their tables ------------------------------------------------------------------------------------------------ */

static RecipeId hole_recipe(Recorder *r, Av a) {
  (void)a;
  return recipe_const(&r->g->exits, value_hole());
}

static RecipeId hole_hand(Handing *h, Av a, u32 depth) {
  (void)depth;
  return hole_recipe(h->r, a);
}

#define READ_FIRST "it is read first, and asked as what it is then"
const Repr repr_lazy = {
    .name = "lazy",
    .type = "nothing",
    .recipe = repr_source_recipe,
    NO(same, no_rule, READ_FIRST),
    NO(hand, no_rule, READ_FIRST),
    NO(example, no_rule, READ_FIRST),
    NO(input, no_rule, "it is what was not read"),
    .length = lazy_length,
    .item = lazy_item,
    .slice = lazy_slice,
    NO(field, no_rule, READ_FIRST),
    NO(put_field, no_rule, READ_FIRST),
    NO(update, no_rule, READ_FIRST),
    NO(assign, no_rule, READ_FIRST),
    NO(store, no_rule, READ_FIRST),
    NO(before_store, no_rule, READ_FIRST),
    NO(add, no_rule, READ_FIRST),
    NO(equal, no_rule, READ_FIRST),
    NO(contains, no_rule, READ_FIRST),
    .walk = lazy_walk,
    NO(at, no_rule, READ_FIRST),
    NO(items, no_rule, READ_FIRST),
    NO(array, no_rule, READ_FIRST),
    NO(open, no_rule, READ_FIRST),
    NO(call, no_rule, READ_FIRST),
    NO(truth, no_rule, READ_FIRST),
    NO(format, no_rule, READ_FIRST),
    NO(layout, loop_list, READ_FIRST),
    NO(name_of, no_rule, READ_FIRST),
    NO(widen, loop_types, READ_FIRST),
    NO(take_back, no_rule, READ_FIRST),
    NO(unpack, no_rule, READ_FIRST),
};

#define NOTHING "nothing was assigned on this way"
const Repr repr_none = {
    .name = "none",
    .type = "nothing",
    NO(same, no_rule, NOTHING),
    NO(recipe, no_rule, NOTHING),
    NO(hand, no_rule, NOTHING),
    NO(example, no_rule, NOTHING),
    NO(input, no_rule, NOTHING),
    NO(length, no_rule, NOTHING),
    NO(item, no_rule, NOTHING),
    NO(slice, no_rule, NOTHING),
    NO(field, no_rule, NOTHING),
    NO(put_field, no_rule, NOTHING),
    NO(update, no_rule, NOTHING),
    NO(assign, no_rule, NOTHING),
    NO(store, no_rule, NOTHING),
    NO(before_store, no_rule, NOTHING),
    NO(add, no_rule, NOTHING),
    NO(equal, no_rule, NOTHING),
    NO(contains, no_rule, NOTHING),
    NO(walk, loop_sequence, NOTHING),
    NO(at, loop_sequence, NOTHING),
    NO(items, no_rule, NOTHING),
    NO(array, raises, NOTHING),
    .open = repr_itself,
    NO(call, raises, NOTHING),
    NO(truth, raises, NOTHING),
    NO(format, text_value, NOTHING),
    NO(layout, loop_list, NOTHING),
    NO(name_of, no_rule, NOTHING),
    NO(widen, loop_types, NOTHING),
    NO(take_back, no_rule, NOTHING),
    NO(unpack, no_rule, NOTHING),
};

#define NOT_GIVEN "an argument that was not given is no value"
const Repr repr_hole = {
    .name = "hole",
    .type = "nothing",
    .same = repr_same_leaf,
    .recipe = hole_recipe,
    .hand = hole_hand,
    NO(example, no_rule, NOT_GIVEN),
    NO(input, no_rule, "repr_known reads it"),
    NO(length, raises, NOT_GIVEN),
    NO(item, raises, NOT_GIVEN),
    NO(slice, raises, NOT_GIVEN),
    NO(field, no_rule, NOT_GIVEN),
    NO(put_field, no_rule, NOT_GIVEN),
    NO(update, no_rule, NOT_GIVEN),
    NO(assign, no_rule, NOT_GIVEN),
    NO(store, no_rule, NOT_GIVEN),
    NO(before_store, no_rule, NOT_GIVEN),
    NO(add, no_rule, NOT_GIVEN),
    NO(equal, no_rule, NOT_GIVEN),
    NO(contains, no_rule, NOT_GIVEN),
    NO(walk, loop_sequence, NOT_GIVEN),
    NO(at, loop_sequence, NOT_GIVEN),
    NO(items, no_rule, NOT_GIVEN),
    NO(array, raises, NOT_GIVEN),
    .open = repr_itself,
    NO(call, raises, NOT_GIVEN),
    NO(truth, raises, NOT_GIVEN),
    NO(format, text_value, NOT_GIVEN),
    NO(layout, loop_list, NOT_GIVEN),
    NO(name_of, no_rule, NOT_GIVEN),
    NO(widen, loop_types, NOT_GIVEN),
    NO(take_back, no_rule, NOT_GIVEN),
    NO(unpack, raises, NOT_GIVEN),
};
