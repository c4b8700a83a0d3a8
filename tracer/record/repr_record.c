/* repr_record.c — records that are known field by field: items in the order of the keys of `shape`. One from outside
 * keeps its source and the value it has now (`konst`) until it is changed. */
#include "lang/mechanisms.h"
#include "tracer/record/abstract.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_inner.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_keyed.h"
#include "tracer/record/repr_known.h"
#include "tracer/record/repr_names.h"

Av av_read_record(Recorder *r, SourceId s, Value v, Span why) {
  GuardSet *gs = &r->g->guards;
  Record *rec = v.record;
  u32 first, n = rec->shape->count;
  if (!guard_shape(gs, s, rec, true, 0, why) || !av_empty_items(r, n, &first)) return 0;
  for (u32 i = 0; i < n; i++) {
    Name key = rec->shape->keys[i];
    Av item = av_lazy(r, source_step(gs, s, SRC_field, key, name_text(&r->vm->names, key)), rec->items[i]);
    if (!item) return 0;
    r->items.data[first + i] = item;
  }
  if (!av_keep(r, v)) return 0;
  return av_new(r,
                (AbsVal){.kind = AV_record, .first = first, .count = n, .shape = rec->shape, .source = s, .konst = v});
}

static Av fields_input(Recorder *r, SourceId s, Value v, Span why) {
  if (av_is_many(r, s, AV_record, v.record->shape->count, v.record->shape) ||
      !MECHANISM(r->vm, containers_taken_apart))
    return av_outer(r, s, v, why);
  return av_read_record(r, s, v, why);
}

/* ---- used -------------------------------------------------------------------------------------------------------- */

static Outcome fields_item(Recorder *r, Av a, Av at, Av *out) {
  Value key;
  Av rows;
  if (av_const_value(r, at, &key) && key.kind == V_TEXT) {
    Name name;
    i32 f = name_known(&r->vm->names, key.text->data, key.text->len, &name) ? av_field(r, a, name) : -1;
    if (f >= 0) return rec_made(r, av_item(r, a, (u32)f), out);
    return rec_stuck(r, REASON_raises, "record has no key \"%s\"", key.text->data);
  }
  if (rec_key_computed(r, a, at)) return rec_key_get(r, a, at, out);
  Outcome o = rec_keyed_read(r, a, at, &rows);
  if (o != OUT_GO) return o;
  return rows ? rec_item(r, rows, at, out) : rec_stuck(r, REASON_no_rule, "record indexed by %s", av_kind_text(r, at));
}

static Outcome put_field(Recorder *r, Av obj, Name name, Av item, Av *out) {
  i32 at = av_field(r, obj, name);
  if (at >= 0) return rec_with_item(r, obj, (u32)at, item, out);
  AbsVal v = *av_at(r, obj);
  Name keys[65];
  Av items[65];
  if (v.count >= COUNT_OF(keys) - 1) return rec_stuck(r, REASON_graph_size, "a record with many keys");
  for (u32 i = 0; i < v.count; i++) keys[i] = v.shape->keys[i], items[i] = r->items.data[v.first + i];
  keys[v.count] = name;
  items[v.count] = item;
  return rec_made(r, av_record(r, keys, items, v.count + 1), out);
}

/* A pair of key and value. */
static Outcome fields_at(Recorder *r, Av a, Av pos, Av *out) {
  i64 known;
  Value text;
  if (!av_known_int(r, pos, &known) || known >= av_at(r, a)->count)
    return rec_stuck(r, REASON_loop_sequence, "a loop over a record");
  Name key = av_at(r, a)->shape->keys[known];
  if (!text_new(r->vm, name_text(&r->vm->names, key), name_len(&r->vm->names, key), &text)) return OUT_FAIL;
  Av pair[2] = {av_const(r, text), av_item(r, a, (u32)known)};
  value_drop(r->vm, text);
  return rec_made(r, av_list(r, pair, 2), out);
}

static Outcome fields_field(Recorder *r, Av a, Name name, Av *out, bool *found) {
  i32 i = av_field(r, a, name);
  if (i < 0)
    return found ? OUT_GO : rec_stuck(r, REASON_raises, "record has no field %s", name_text(&r->vm->names, name));
  if (found) *found = true;
  return rec_made(r, av_item(r, a, (u32)i), out);
}

/* The name of a key that is known; false: it is not, or memory was refused. */
static bool known_key(Recorder *r, Av at, Name *name) {
  Value key;
  if (!av_const_value(r, at, &key) || key.kind != V_TEXT) return false;
  *name = name_intern(&r->vm->names, key.text->data, key.text->len);
  if (*name || !key.text->len) return true;
  return !(r->failed = true);
}

static Outcome fields_assign(Recorder *r, Av a, Av at, Av value, Av *out, bool *done) {
  Name name;
  *done = known_key(r, at, &name);
  if (r->failed) return OUT_FAIL;
  return *done ? put_field(r, a, name, value, out) : OUT_GO;
}

static Outcome fields_store(Recorder *r, Av a, Av at, Av old, Av item, Av *out) {
  Name name;
  if (rec_key_computed(r, a, at)) return rec_key_set(r, a, at, old, item, out);
  if (known_key(r, at, &name)) return put_field(r, a, name, item, out);
  return r->failed ? OUT_FAIL : rec_stuck(r, REASON_no_rule, "record updated by index");
}

static Outcome fields_equal(Recorder *r, Av a, Av b, Av *out) {
  const u32 n = av_at(r, a)->count;
  if (!av_is_record(r, b)) return repr_no(r, b, ROP_equal);
  if (n != av_at(r, b)->count) return rec_made(r, av_const(r, value_bool(false)), out);
  for (u32 i = 0; i < n; i++) {
    i32 at = av_field(r, b, av_at(r, a)->shape->keys[i]);
    if (at < 0) return rec_made(r, av_const(r, value_bool(false)), out);
    Value known;
    Outcome o = rec_equal_part(r, av_item(r, a, i), av_item(r, b, (u32)at), out);
    if (o != OUT_GO || (av_const_value(r, *out, &known) && !known.i)) return o;
  }
  return OUT_GO;
}

static Outcome fields_contains(Recorder *r, Av a, Av x, Av *out) {
  Value key;
  Av rows;
  bool character = av_is_character(r, x);
  if (av_const_value(r, x, &key) && key.kind == V_TEXT) {
    Name name;
    bool known = name_known(&r->vm->names, key.text->data, key.text->len, &name);
    return rec_made(r, av_const(r, value_bool(known && av_field(r, a, name) >= 0)), out);
  }
  if (character && av_at(r, a)->count > (u32)r->vm->tunables.member_items) {
    Outcome o = rec_keyed_read(r, a, x, &rows);
    if (o != OUT_GO) return o;
    if (rows) return rec_keyed_in(r, rows, x, out);
  }
  if (character || rec_key_computed(r, a, x)) return rec_in_keys(r, x, av_at(r, a)->shape, out);
  return rec_stuck(r, REASON_no_rule, "`in` of %s and record", av_kind_text(r, x));
}

static Outcome fields_unpack(Recorder *r, Av a, const Desc *d, Av *out) {
  if (!d->name_count) return rec_stuck(r, REASON_raises, "record unpacked by places");
  for (u32 i = 0; i < d->name_count; i++) {
    i32 at = av_field(r, a, d->names[i]);
    if (at < 0) return rec_stuck(r, REASON_raises, "record has no field %s", name_text(&r->vm->names, d->names[i]));
    out[i] = av_item(r, a, (u32)at);
  }
  return d->has_rest ? rec_without(r, a, d->names, d->name_count, &out[d->name_count]) : OUT_GO;
}

/* ---- rebuilt ----------------------------------------------------------------------------------------------------- */

static bool fields_same(Recorder *r, Av a, Av b) {
  const AbsVal *x = av_at(r, a), *y = av_at(r, b);
  for (u32 i = 0; x->shape != y->shape && i < x->count; i++)
    if (x->shape->keys[i] != y->shape->keys[i]) return false;
  return repr_same_parts(r, a, b);
}

static RecipeId fields_make(ExitTable *t, const AbsVal *v, const RecipeId *items, u32 count) {
  return recipe_record(t, v->shape->keys, items, count);
}

static RecipeId fields_recipe(Recorder *r, Av a) { return repr_items_recipe(r, a, av_at(r, a)->count, fields_make); }
static RecipeId fields_hand(Handing *h, Av a, u32 depth) {
  return repr_items_hand(h, a, av_at(h->r, a)->count, depth, fields_make);
}

static bool fields_example(Recorder *r, Av a, u32 depth, Value *out) {
  const AbsVal v = *av_at(r, a);
  if (!record_new(r->vm, out)) return false;
  for (u32 i = 0; i < v.count; i++) {
    Value item;
    bool known = abstract_value(r, av_item(r, a, i), depth + 1, &item);
    if (known && record_set(r->vm, out, v.shape->keys[i], item)) continue;
    value_drop(r->vm, *out);
    return false;
  }
  return true;
}

const Repr repr_record = {
    .name = "record",
    .type = "record",
    .same = fields_same,
    .recipe = fields_recipe,
    .hand = fields_hand,
    .example = fields_example,
    .input = fields_input,
    .length = repr_items_length,
    .item = fields_item,
    NO(slice, raises, "a record has keys, not places"),
    .field = fields_field,
    .put_field = put_field,
    .assign = fields_assign,
    .store = fields_store,
    .before_store = rec_keyed_store,
    .equal = fields_equal,
    .contains = fields_contains,
    NO(update, no_rule, "it takes one key"),
    NO(add, raises, "records are not added"),
    .walk = repr_itself,
    .at = fields_at,
    .open = repr_itself,
    NO(items, no_rule, "a record is walked over by a loop"),
    NO(array, raises, "a record is no array"),
    NO(call, raises, "a record is no function"),
    NO(truth, raises, "a record is no condition"),
    NO(format, text_value, "the texts of records are made by the interpreter"),
    .layout = rec_tree_layout,
    NO(name_of, no_rule, "it is no text"),
    NO(widen, loop_types, "a store by a computed key asks for it"),
    .take_back = rec_inner_back,
    .unpack = fields_unpack,
};
