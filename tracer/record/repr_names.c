/* repr_names.c — short texts as numbers: a text that is one of many is, in a graph, the number that it has in the
 * VM (text_number of guards/rows.c), so that texts compare, are chosen, carried by loops and lie in columns as
 * integers do. Records at computed keys. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_names.h"
#include "tracer/record/repr_slice.h"

#include <string.h>

bool rec_is_name(Value kind) { return kind.kind == V_HOLE || kind.kind == V_TEXT; }

/* Their number is their code point. */
Av av_character(Recorder *r, Av point) { return point ? av_items(r, AV_character, &point, 1) : 0; }
Av av_numbered(Recorder *r, Av number) { return number ? av_items(r, AV_numbered, &number, 1) : 0; }

bool rec_is_one(Recorder *r, Av a) {
  Value v;
  return av_is_made_text(r, a) ? av_is_character(r, a)
                                      : av_const_value(r, a, &v) && v.kind == V_TEXT && v.text->count == 1;
}

Av rec_name(Recorder *r, ValueId number) { return av_numbered(r, av_num(r, number)); }

Av rec_name_of(Recorder *r, Av a) {
  if (!(a = av_force(r, a))) return 0;
  const Repr *p = av_repr(r, a);
  return p->name_of ? p->name_of(r, a) : 0;
}

static Av own_number(Recorder *r, Av a) { return av_item(r, a, 0); }

bool rec_has_name(Recorder *r, Av a) { return a && rec_is_text(r, a) && rec_name_of(r, a); }

enum { NAMES_DEPTH = 4 }; /* not a threshold: items in items; texts that lie deeper stay texts */

static bool alike(Recorder *r, Av a, Av b) {
  const AbsVal *x = av_at(r, a), *y = av_at(r, b);
  if (x->kind != y->kind || (!kind_is_open(x->kind)) || x->count != y->count ||
      x->count > ZIP_LEAVES)
    return false;
  return kind_is_list(x->kind) || memcmp(x->shape->keys, y->shape->keys, sizeof(Name) * x->count) == 0;
}

/* a with its texts as numbers wherever b, a tree like it, has another text; 0: they are no such trees. */
static Av opened(Recorder *r, Av a, Av b, u32 depth, bool *any) {
  if (depth > NAMES_DEPTH || !a || !b || !(a = av_force(r, a)) || !(b = av_force(r, b))) return 0;
  if (a == b || carry_same(r, a, b)) return a;
  bool text = rec_is_text(r, a);
  if (text != rec_is_text(r, b)) return 0;
  if (text) {
    Av number = rec_name_of(r, a);
    *any = true;
    if (!number || !rec_name_of(r, b)) return 0;
    return (rec_is_one(r, a) && rec_is_one(r, b) ? av_character : av_numbered)(r, number);
  }
  if (!alike(r, a, b)) return 0;
  Av parts[ZIP_LEAVES];
  u32 n = av_at(r, a)->count;
  for (u32 i = 0; i < n; i++)
    if (!(parts[i] = opened(r, av_item(r, a, i), av_item(r, b, i), depth + 1, any))) return 0;
  return rec_with_parts(r, a, parts, n);
}

bool rec_names_meet(Recorder *r, Av *a, Av *b) {
  bool any = false;
  Av x = *a && *b ? opened(r, *a, *b, 0, &any) : 0, y = x && any ? opened(r, *b, *a, 0, &any) : 0;
  if (y) *a = x, *b = y;
  return y != 0;
}

/* All texts of a tree that have numbers. */
Av rec_names_open(Recorder *r, Av a, u32 depth) {
  if (!(a = av_force(r, a))) return 0;
  Av number = rec_is_text(r, a) ? rec_name_of(r, a) : 0;
  if (number) return av_numbered(r, number);
  const AbsVal v = *av_at(r, a);
  if ((!kind_is_open(v.kind)) || v.count > ZIP_LEAVES || depth > NAMES_DEPTH) return a;
  Av parts[ZIP_LEAVES];
  for (u32 i = 0; i < v.count; i++)
    if (!(parts[i] = rec_names_open(r, av_item(r, a, i), depth + 1))) return 0;
  return rec_with_parts(r, a, parts, v.count);
}

/* ---- records at computed keys ---------------------------------------------------------------- */

enum { KEYS_MOST = 12 }; /* not a threshold: room for fields of a record of names */

static Outcome where(Recorder *r, ValueId cond, ValueId a, ValueId b, ValueId *out) {
  Av params[OP_MAX_PARAMS] = {av_num(r, cond), av_num(r, a), av_num(r, b)}, made;
  Outcome o = params[0] && params[1] && params[2] ? rec_op(r, OP_where, params, &made) : OUT_FAIL;
  if (o == OUT_GO && !(*out = av_value(r, made))) o = OUT_FAIL;
  return o;
}

static ValueId weak_flag(Recorder *r, ValueId v) {
  ValueId flag = rec_weak_flag(r, v);
  return flag ? flag : graph_const(r->g, value_bool(value_type(r->g, v)->weak));
}

/* Numbers of one dtype. That one is weak and the other is not is a flag of what comes out. */
static Outcome choose_number(Recorder *r, ValueId cond, Av a, Av b, Av *out) {
  ValueId x = av_value(r, a), y = av_value(r, b), flag = 0, made;
  const ArrayType s = *value_type(r->g, x), t = *value_type(r->g, y);
  if (s.rank || t.rank || s.dtype != t.dtype || s.device || t.device)
    return rec_stuck(r, REASON_branch_merge, "fields of different kinds at a computed key");
  Outcome o = OUT_GO;
  if (s.weak != t.weak || rec_weak_flag(r, x) || rec_weak_flag(r, y)) {
    ValueId p = weak_flag(r, x), q = weak_flag(r, y);
    if (!p || !q) return OUT_FAIL;
    if ((o = where(r, cond, p, q, &flag)) != OUT_GO) return o;
    x = graph_convert(r->g, x, s.dtype);
    y = graph_convert(r->g, y, s.dtype);
    if (!x || !y) return OUT_FAIL;
  }
  if ((o = where(r, cond, x, y, &made)) != OUT_GO) return o;
  if (flag && !rec_weak_note(r, made, flag)) return OUT_FAIL;
  return rec_made(r, av_num(r, made), out);
}

/* a where cond is true, else b. */
static Outcome choose(Recorder *r, ValueId cond, Av a, Av b, u32 depth, Av *out) {
  if (!(a = av_force(r, a)) || !(b = av_force(r, b))) return OUT_FAIL;
  if (a == b) return rec_made(r, a, out);
  bool na = av_is_number(r, a), nb = av_is_number(r, b);
  if (na && nb) return choose_number(r, cond, a, b, out);
  if (!na && !nb && carry_same(r, a, b) && av_is_constant(r, a)) return rec_made(r, a, out);
  if (rec_has_name(r, a) && rec_has_name(r, b)) {
    ValueId made;
    Outcome o = where(r, cond, av_value(r, rec_name_of(r, a)), av_value(r, rec_name_of(r, b)), &made);
    bool one = rec_is_one(r, a) && rec_is_one(r, b);
    return o == OUT_GO ? rec_made(r, (one ? av_character : av_numbered)(r, av_num(r, made)), out) : o;
  }
  if (na || nb || depth > NAMES_DEPTH || !alike(r, a, b))
    return r->failed ? OUT_FAIL : rec_stuck(r, REASON_branch_merge, "fields of different kinds at a computed key");
  Av parts[ZIP_LEAVES];
  u32 n = av_at(r, a)->count;
  for (u32 i = 0; i < n; i++) {
    Outcome o = choose(r, cond, av_item(r, a, i), av_item(r, b, i), depth + 1, &parts[i]);
    if (o != OUT_GO) return o;
  }
  return rec_made(r, rec_with_parts(r, a, parts, n), out);
}

bool rec_key_computed(Recorder *r, Av record, Av key) {
  if (!(key = av_force(r, key))) return false;
  const AbsVal *v = av_at(r, record), *k = av_at(r, key);
  return kind_is_record(v->kind) && v->count && v->count <= KEYS_MOST &&
         (kind_is_character(k->kind) || kind_is_numbered(k->kind));
}

/* Is the key the i-th one of the record's? */
static Outcome is_key(Recorder *r, Av record, Av key, u32 i, ValueId *out) {
  Name name = av_at(r, record)->shape->keys[i];
  Value text;
  i64 number;
  Av same;
  if (!text_new(r->vm, name_text(&r->vm->names, name), name_len(&r->vm->names, name), &text)) {
    vm_error_forget(r->vm);
    return OUT_FAIL;
  }
  bool numbered = text_has_number(text.text) && text_number(r->vm, text.text, &number);
  value_drop(r->vm, text);
  if (!numbered) number = INT64_MIN; /* no number is this one */
  Outcome o = rec_binary(r, BC_eq, rec_name_of(r, key), av_const(r, value_i64(number)), &same);
  if (o == OUT_GO && !(*out = rec_strengthen(r, av_value(r, same), DT_bool))) o = OUT_FAIL;
  return o;
}

Outcome rec_key_get(Recorder *r, Av record, Av key, Av *out) {
  u32 n = av_at(r, record)->count;
  ValueId any, is;
  Outcome o = is_key(r, record, key, 0, &any);
  *out = av_item(r, record, 0);
  for (u32 i = 1; i < n && o == OUT_GO; i++) {
    o = is_key(r, record, key, i, &is);
    if (o == OUT_GO && !(any = graph_op2(r->g, OP_logical_or, any, is))) o = OUT_FAIL;
    if (o == OUT_GO) o = choose(r, is, av_item(r, record, i), *out, 0, out);
  }
  if (o == OUT_GO && n == 1) o = rec_made(r, av_force(r, *out), out);
  return o == OUT_GO ? rec_check(r, CHECK_assertion, &any, 1) : o;
}

/* What of `item` is as it was got stays what it was. */
static Outcome put_one(Recorder *r, ValueId is, Av was, Av got, Av item, u32 depth, Av *out) {
  if (!(item = av_force(r, item)) || !(was = av_force(r, was))) return OUT_FAIL;
  got = got ? av_force(r, got) : 0;
  if (got == item) return rec_made(r, was, out);
  if (!got || depth > NAMES_DEPTH || !alike(r, was, item) || !alike(r, got, item))
    return choose(r, is, item, was, depth, out);
  Av parts[ZIP_LEAVES];
  u32 n = av_at(r, item)->count;
  for (u32 i = 0; i < n; i++) {
    Outcome o = put_one(r, is, av_item(r, was, i), av_item(r, got, i), av_item(r, item, i), depth + 1, &parts[i]);
    if (o != OUT_GO) return o;
  }
  return rec_made(r, rec_with_parts(r, was, parts, n), out);
}

Outcome rec_key_set(Recorder *r, Av record, Av key, Av got, Av item, Av *out) {
  Av parts[KEYS_MOST];
  u32 n = av_at(r, record)->count;
  for (u32 i = 0; i < n; i++) {
    ValueId is;
    Outcome o = is_key(r, record, key, i, &is);
    if (o == OUT_GO) o = put_one(r, is, av_item(r, record, i), got, item, 0, &parts[i]);
    if (o != OUT_GO) return o;
  }
  return rec_made(r, rec_with_parts(r, record, parts, n), out);
}

/* ---- characters ------------------------------------------------------------------------------ */

enum { FIND_MOST = 256 }; /* not a threshold: characters of a known text, whose runs are looked at one by one */

static bool is_character(const Recorder *r, Av a) { return a && av_is_character(r, a); }

/* Where `point` is one of a run of code points that follow one another, beginning with `first` at place `at` of a
 * text: its place there; else *out as it was. */
static Outcome find_in_run(Recorder *r, Av point, i64 first, u32 count, u32 at, Av *out) {
  Av low = 0, high = 0, params[OP_MAX_PARAMS] = {0, av_const(r, value_weak_i64(at)), *out};
  if (count == 1) {
    Outcome o = rec_binary(r, BC_eq, point, av_const(r, value_i64(first)), &params[0]);
    return o == OUT_GO ? rec_op(r, OP_where, params, out) : o;
  }
  Av both[OP_MAX_PARAMS] = {0};
  Outcome o = rec_binary(r, BC_ge, point, av_const(r, value_i64(first)), &low);
  if (o == OUT_GO) o = rec_binary(r, BC_lt, point, av_const(r, value_i64(first + count)), &high);
  both[0] = low, both[1] = high;
  if (o == OUT_GO) o = rec_op(r, OP_logical_and, both, &params[0]);
  if (o == OUT_GO) o = rec_binary(r, BC_sub, point, av_const(r, value_i64(first - at)), &params[1]);
  ValueId strong = o == OUT_GO ? av_value(r, params[1]) : 0;
  ValueId weak = strong ? graph_weaken(r->g, strong) : 0;
  if (o == OUT_GO && (!weak || !(params[1] = av_num(r, weak)))) o = OUT_FAIL;
  return o == OUT_GO ? rec_op(r, OP_where, params, out) : o;
}

/* Where a character stands in a text that is known: the first such place. */
static Outcome find_character(Recorder *r, Value text, Av character, Av *out) {
  i64 points[FIND_MOST];
  Outcome o = OUT_GO;
  text_points(text.text, points);
  *out = av_const(r, value_weak_i64(-1));
  for (u32 end = text.text->count, at; end > 0 && o == OUT_GO; end = at) {
    for (at = end - 1; at > 0 && points[at - 1] + 1 == points[at];) at--;
    o = find_in_run(r, av_item(r, character, 0), points[at], end - at, at, out);
  }
  return o;
}

/* The text of one code point, a number or an array that holds one. */
static Outcome character_of(Recorder *r, Av a, Av *out) {
  const u8 item = IX_VALUE;
  ArrayType t = *value_type(r->g, av_value(r, a));
  Av zero = av_const(r, value_weak_i64(0)), low, high;
  Outcome o = t.rank ? rec_index(r, a, &item, 1, &zero, &a) : OUT_GO;
  ValueId point = o == OUT_GO ? graph_convert(r->g, av_value(r, a), DT_i64) : 0;
  if (o == OUT_GO && (!point || !(a = av_num(r, point)))) o = OUT_FAIL;
  if (o == OUT_GO) o = rec_binary(r, BC_ge, a, zero, &low);
  /* beyond, the interpreter looks closer */
  if (o == OUT_GO) o = rec_binary(r, BC_lt, a, av_const(r, value_i64(0xD800)), &high);
  if (o != OUT_GO) return o;
  ValueId in_range = graph_op2(r->g, OP_logical_and, graph_convert(r->g, av_value(r, low), DT_bool),
                               graph_convert(r->g, av_value(r, high), DT_bool));
  if (!in_range) return OUT_FAIL;
  if ((o = rec_check(r, CHECK_assertion, &in_range, 1)) != OUT_GO) return o;
  return rec_made(r, av_character(r, a), out);
}

/* The code points of a text that lies in a column, or is to be packed; false: it is no such text. */
static bool codes_of_rows(Recorder *r, Av text, Av *out, Outcome *o) {
  bool digits = rec_is_of_digits(r, text);
  if (digits && (*o = rec_rows_of(r, text, NULL, &text)) != OUT_GO) return true;
  const AbsVal v = *av_at(r, text);
  const u8 slice = IX_SLICE;
  bool outside = v.source && v.konst.kind == V_TEXT && (kind_is_lazy(v.kind) || kind_is_outer_text(v.kind));
  bool known = !outside && kind_is_constant(v.kind) && v.konst.kind == V_TEXT;
  if (!outside && !known && (!kind_in_columns(v.kind) || v.konst.kind != V_TEXT)) return false;
  *o = outside ? rec_rows_of_text(r, v.source, v.konst, &text) : known ? rec_text_stacked(r, text, &text) : OUT_GO;
  Av nil = av_const(r, value_nil()), ends[3] = {nil, *o == OUT_GO ? av_item(r, text, 1) : 0, nil};
  if (*o == OUT_GO) *o = nil ? rec_index(r, av_item(r, text, 0), &slice, 1, ends, out) : OUT_FAIL;
  return true;
}

/* A list in columns of characters alone, with nothing between them: the text is its column. */
static bool join_characters(Recorder *r, const Av *params, Av *out, Outcome *o) {
  Value between;
  Av list = av_force(r, params[0]);
  const AbsVal *v = av_at(r, list);
  if (!list || !kind_in_columns(v->kind) || !rec_is_name(v->konst) || v->op != ROWS_CHARACTERS) return false;
  Av sep = params[1] ? av_force(r, params[1]) : 0;
  if (sep && !av_is_hole(r, sep) &&
      (!av_const_value(r, sep, &between) || between.kind != V_TEXT || between.text->len))
    return false;
  *o = rec_columns_text(r, list, out);
  return true;
}

bool rec_on_character(Recorder *r, u32 op, const Av *params, Av *out, Outcome *o) {
  Value text;
  if (op != OP_find && op != OP_codes && op != OP_text && op != OP_join) return false;
  if (op == OP_join) return join_characters(r, params, out, o);
  if (op == OP_codes && codes_of_rows(r, params[0], out, o)) return true;
  Av a = av_force(r, params[0]), b = op == OP_find ? av_force(r, params[1]) : 0;
  if (!a || av_is_constant(r, a)) {
    if (op != OP_find || !is_character(r, b) || !av_const_value(r, a, &text) || text.kind != V_TEXT ||
        text.text->count > FIND_MOST)
      return false;
    *o = find_character(r, text, b, out);
    return true;
  }
  if (op == OP_codes && is_character(r, a)) {
    Av point = av_item(r, a, 0),
        stacked[OP_MAX_PARAMS] = {av_list(r, &point, 1), av_const(r, value_weak_i64(0))};
    *o = stacked[0] && stacked[1] ? rec_op(r, OP_stack, stacked, out) : OUT_FAIL;
    return true;
  }
  if (op != OP_text || !av_is_number(r, a)) return false;
  const ArrayType *t = value_type(r->g, av_value(r, a));
  if (t->rank > 1 || dtype_kind(t->dtype) != DK_INT || t->dtype == DT_u64 || t->device || (t->rank && t->dims[0] != 1))
    return false;
  *o = character_of(r, a, out);
  return true;
}

/* ---- their tables ---------------------------------------------------------------------------- */

static RecipeId make_character(ExitTable *t, const AbsVal *v, const RecipeId *items, u32 count) {
  (void)v;
  return recipe_text(t, TEXT_character, items, count);
}

static RecipeId character_recipe(Recorder *r, Av a) { return repr_items_recipe(r, a, 1, make_character); }
static RecipeId character_hand(Handing *h, Av a, u32 depth) { return repr_items_hand(h, a, 1, depth, make_character); }

static RecipeId make_numbered(ExitTable *t, const AbsVal *v, const RecipeId *items, u32 count) {
  (void)v;
  return recipe_text(t, TEXT_numbered, items, count);
}

static RecipeId numbered_recipe(Recorder *r, Av a) { return repr_items_recipe(r, a, 1, make_numbered); }
static RecipeId numbered_hand(Handing *h, Av a, u32 depth) { return repr_items_hand(h, a, 1, depth, make_numbered); }

const Repr repr_character = {
    .name = "character",
    .type = "text",
    .same = repr_same_parts,
    .recipe = character_recipe,
    .hand = character_hand,
    NO(example, no_rule, "which character it is is computed"),
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
    .layout = rec_name_layout,
    .name_of = own_number,
    .widen = rec_into_columns,
    NO(take_back, no_rule, "it lies nowhere"),
    NO(unpack, raises, "a text has no parts"),
};

const Repr repr_numbered = {
    .name = "numbered",
    .type = "text",
    .same = repr_same_parts,
    .recipe = numbered_recipe,
    .hand = numbered_hand,
    NO(example, no_rule, "which text it is is computed"),
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
    .layout = rec_name_layout,
    .name_of = own_number,
    .widen = rec_into_columns,
    NO(take_back, no_rule, "it lies nowhere"),
    NO(unpack, raises, "a text has no parts"),
};
