/* repr_keyed.c — records of numbers whose keys are single characters, which a loop counts up or looks up by computed
 * keys.
 *
 * A keyed record has a count and three columns of KEYS_ROOM elements: the code points of the keys in their order, as
 * many as count; for each character of ASCII whether it is a key; and its number. The last place of the latter two is
 * that of all other characters: it is no key. A store by another character leaves the region in front of it.
 *
 * It serves any loop that has a record and computes the key: counting (`seen[c] += 1`, `seen[c] = 1` after `c in
 * seen`), looking up what a character is worth (`total += worth[c]`), walking over what was counted (`for (c, n) in
 * seen`). */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_keyed.h"
#include "tracer/record/repr_option.h"

enum { KEY_ORDER, KEY_THERE, KEY_NUMBER, KEY_COLUMNS };

static const Value there_kind = {.kind = V_NUM, .dtype = DT_bool}, point_kind = {.kind = V_NUM, .dtype = DT_i64};

static Value number_kind(Value kind) { return (Value){.kind = V_NUM, .dtype = kind.dtype, .flags = kind.flags}; }
static Value column_kind(Value kind, u32 part) {
  return part == KEY_ORDER ? point_kind : part == KEY_THERE ? there_kind : number_kind(kind);
}

static Av column(const Recorder *r, Av rows, u32 part) { return av_item(r, av_item(r, rows, 0), part); }

static Outcome keyed_with_columns(Recorder *r, const Av *columns, Av count, Value kind, Av *out) {
  return rec_made(r, rec_new_rows(r, av_list(r, columns, KEY_COLUMNS), count, kind), out);
}

bool rec_is_keyed(const Recorder *r, Av a) { return av_is_keyed(r, a); }

/* ---- made -------------------------------------------------------------------------------------------------------- */

/* The record that a value from outside is; NULL: it is none, or was changed. */
static const Record *outside(const Recorder *r, Av a) {
  const AbsVal *v = av_at(r, a);
  bool is = v->source && v->konst.kind == V_RECORD &&
            (kind_is_lazy(v->kind) || kind_is_outer_record(v->kind) || kind_is_record(v->kind));
  return is ? v->konst.record : NULL;
}

static bool character_key(const Recorder *r, Name key) {
  /* not a threshold: ASCII */
  return name_len(&r->vm->names, key) == 1 && (u8)name_text(&r->vm->names, key)[0] < 0x80;
}

/* What the numbers of a record are, all of one kind, with `more` (may be 0) that comes in; false: not so, or there are
 * none. */
static bool kind_of(Recorder *r, Av record, Av more, Value *kind) {
  const Record *from = outside(r, record);
  const AbsVal v = *av_at(r, record);
  u32 n = from ? 0 : v.count;
  if (from && from->shape->count)
    return rows_keyed_kind(r->vm, from, kind) && (!more || rec_item_fits(r, more, number_kind(*kind)));
  if (!from && !kind_is_record(v.kind)) return false;
  for (u32 i = 0; i < n + (more != 0); i++) {
    Av item = rec_sure(r, i < n ? av_item(r, record, i) : more);
    ValueId x = item ? av_value(r, item) : 0;
    const ArrayType *t = x ? value_type(r->g, x) : NULL;
    if (!t || t->rank || t->device || t->dtype == DT_c128 || rec_weak_flag(r, x) ||
        (i < n && !character_key(r, v.shape->keys[i])))
      return false;
    if (!i) *kind = rows_keyed_of(t->dtype, t->weak);
    if (!rec_item_fits(r, item, number_kind(*kind))) return false;
  }
  return n || more;
}

static Av keyed_input_column(Recorder *r, SourceId s, Value kind, u32 part) {
  Graph *g = r->g;
  SourceId c = source_step(&g->guards, s, SRC_column, part, NULL);
  u32 in = c ? guard_input(&g->guards, c, IN_rows) : UINT32_MAX;
  if (in == UINT32_MAX) return 0;
  g->guards.inputs.data[in].donate = true;
  for (u32 i = 0; i < g->inputs.count; i++)
    if (g->inputs.data[i].input == in) return av_num(r, g->inputs.data[i].value);
  ArrayType t = rec_column_type(column_kind(kind, part), KEYS_ROOM);
  return av_num(r, graph_input(g, graph_type(g, &t), in));
}

static Outcome put(Recorder *r, Av *columns, u32 part, Value kind, Av at, Av item) {
  return rec_rows_put(r, columns[part], column_kind(kind, part), av_value(r, at), item, 0, &columns[part]);
}

Outcome rec_keyed_of(Recorder *r, Av record, Value kind, Av *out) {
  const Record *from = outside(r, record);
  const AbsVal v = *av_at(r, record);
  Av columns[KEY_COLUMNS];
  Outcome o = OUT_GO;
  if (from) {
    if (!rows_keyed_fit(r->vm, from, kind))
      return rec_stuck(r, REASON_loop_list,
                       "a record whose keys are not characters, or whose numbers are of several kinds");
    if (!guard_rows(&r->g->guards, v.source, kind, rec_here(r))) return OUT_FAIL;
    Av count = av_length(r, v.source, from->shape->count);
    for (u32 i = 0; i < KEY_COLUMNS; i++)
      if (!(columns[i] = keyed_input_column(r, v.source, kind, i))) return OUT_FAIL;
    if (!count || (o = keyed_with_columns(r, columns, count, kind, out)) != OUT_GO) return OUT_FAIL;
    av_at(r, *out)->source = v.source;
    return OUT_GO;
  }
  for (u32 i = 0; i < KEY_COLUMNS; i++)
    if (!(columns[i] = rec_columns_new(r, column_kind(kind, i), KEYS_ROOM))) return OUT_FAIL;
  for (u32 i = 0; i < v.count && o == OUT_GO; i++) {
    Av item = rec_sure(r, av_item(r, record, i));
    if (!item || !rec_item_fits(r, item, number_kind(kind)) || !character_key(r, v.shape->keys[i]))
      return item ? rec_stuck(r, REASON_loop_list, "a record of several kinds") : OUT_FAIL;
    Av point = av_const(r, value_i64((u8)name_text(&r->vm->names, v.shape->keys[i])[0])),
        at = av_const(r, value_weak_i64(i)), yes = av_const(r, value_bool(true));
    if (!point || !at || !yes) return OUT_FAIL;
    o = put(r, columns, KEY_ORDER, kind, at, point);
    if (o == OUT_GO) o = put(r, columns, KEY_THERE, kind, point, yes);
    if (o == OUT_GO) o = put(r, columns, KEY_NUMBER, kind, point, item);
  }
  return o == OUT_GO ? keyed_with_columns(r, columns, av_const(r, value_weak_i64(v.count)), kind, out) : o;
}

/* ---- asked for --------------------------------------------------------------------------------------------------- */

static bool is_computed(Recorder *r, Av key) {
  key = av_force(r, key);
  return key && av_is_character(r, key);
}

Outcome rec_keyed_store(Recorder *r, Av record, Av key, Av value) {
  Value kind;
  if (!r->loop || r->differentiating || !is_computed(r, key) || !kind_of(r, record, value, &kind) ||
      !rec_rows_ask(r, record, &kind))
    return r->failed ? OUT_FAIL : OUT_GO;
  return rec_stuck(r, REASON_loop_list, "a record of the loop gets keys");
}

Outcome rec_keyed_read(Recorder *r, Av record, Av key, Av *out) {
  Value kind;
  *out = 0;
  if (!r->loop || r->differentiating || !is_computed(r, key) || !kind_of(r, record, 0, &kind))
    return r->failed ? OUT_FAIL : OUT_GO;
  if (rec_rows_ask(r, record, &kind)) return rec_stuck(r, REASON_loop_list, "a record of the loop has computed keys");
  return outside(r, record) ? rec_keyed_of(r, record, kind, out) : OUT_GO;
}

/* ---- used -------------------------------------------------------------------------------------------------------- */

/* The code point of a key of one character; *none: it is a text of another length. */
static Av keyed_point_of(Recorder *r, Av key, bool *none) {
  Value v;
  i64 point;
  *none = false;
  if (!(key = av_force(r, key))) return 0;
  if (is_computed(r, key)) return av_item(r, key, 0);
  if (!av_const_value(r, key, &v) || v.kind != V_TEXT || (*none = v.text->count != 1)) return 0;
  text_points(v.text, &point);
  return av_const(r, value_i64(point));
}

static Outcome element(Recorder *r, Av from, ValueId at, bool weak, Av *out) {
  IndexItem it = {.kind = INDEX_int, .part = {PART_operand}, .at = {1}};
  ValueId x = av_value(r, from);
  const ArrayType t = {.dtype = value_type(r->g, x)->dtype, .weak = weak};
  return rec_made(r, av_num(r, graph_index(r->g, x, &at, 1, &it, 1, graph_type(r->g, &t))), out);
}

/* Where a character stands in the latter two columns, and whether it is a key. */
static Outcome look_up(Recorder *r, Av rows, Av point, Av *at, Av *there) {
  Av params[OP_MAX_PARAMS] = {point, av_const(r, value_weak_i64(KEYS_ROOM - 1))};
  Outcome o = params[1] ? rec_op(r, OP_minimum, params, at) : OUT_FAIL;
  return o == OUT_GO ? element(r, column(r, rows, KEY_THERE), av_value(r, *at), false, there) : o;
}

static Outcome no_character(Recorder *r) {
  return r->failed ? OUT_FAIL : rec_stuck(r, REASON_no_rule, "a record of characters at another key");
}

Outcome rec_keyed_in(Recorder *r, Av rows, Av key, Av *out) {
  bool none;
  Av at, point = keyed_point_of(r, key, &none);
  if (none) return rec_made(r, av_const(r, value_bool(false)), out);
  return point ? look_up(r, rows, point, &at, out) : no_character(r);
}

Outcome rec_keyed_get(Recorder *r, Av rows, Av key, Av *out) {
  bool none;
  Av at, there, point = keyed_point_of(r, key, &none);
  if (!point) return no_character(r);
  Outcome o = look_up(r, rows, point, &at, &there);
  ValueId is = o == OUT_GO ? av_value(r, there) : 0;
  if (o == OUT_GO) o = rec_check(r, CHECK_assertion, &is, 1);
  return o == OUT_GO ? element(r, column(r, rows, KEY_NUMBER), av_value(r, at),
                               av_at(r, rows)->konst.flags & VF_WEAK, out) : o;
}

Outcome rec_keyed_set(Recorder *r, Av rows, Av key, Av item, bool known, Av *out) {
  bool none;
  const Value kind = av_at(r, rows)->konst;
  Av count = av_item(r, rows, 1), columns[KEY_COLUMNS], at, was, more, point = keyed_point_of(r, key, &none);
  if (!point) return no_character(r);
  if (!rec_item_fits(r, item, number_kind(kind))) { /* as it is, then */
    if (!r->failed) (void)rec_rows_ask(r, rows, NULL);
    return r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_list, "an item of another kind goes into a record");
  }
  for (u32 i = 0; i < KEY_COLUMNS; i++) columns[i] = column(r, rows, i);
  Outcome o = look_up(r, rows, point, &at, &was);
  if (o == OUT_GO && !known) {
    Av ascii;
    if ((o = rec_binary(r, BC_lt, point, av_const(r, value_weak_i64(KEYS_ROOM - 1)), &ascii)) != OUT_GO) return o;
    ValueId is = rec_strengthen(r, av_value(r, ascii), DT_bool);
    if (!is || (o = rec_check(r, CHECK_assertion, &is, 1)) != OUT_GO) return is ? o : OUT_FAIL;
    Av params[OP_MAX_PARAMS] = {was, av_const(r, value_weak_i64(0)), av_const(r, value_weak_i64(1))},
        yes = av_const(r, value_bool(true));
    if (!yes || (o = rec_op(r, OP_where, params, &more)) != OUT_GO) return yes ? o : OUT_FAIL;
    o = put(r, columns, KEY_ORDER, kind, count, point); /* behind the last one, if it was one already */
    if (o == OUT_GO) o = put(r, columns, KEY_THERE, kind, at, yes);
    if (o == OUT_GO) o = rec_binary(r, BC_add, count, more, &count);
  }
  if (o == OUT_GO) o = put(r, columns, KEY_NUMBER, kind, at, item);
  return o == OUT_GO ? keyed_with_columns(r, columns, count, kind, out) : o;
}

/* The pair that a `for` is at. */
Outcome rec_keyed_item(Recorder *r, Av rows, ValueId at, Av *out) {
  Av pair[2], point;
  Outcome o = element(r, column(r, rows, KEY_ORDER), at, false, &point);
  if (o == OUT_GO)
    o = element(r, column(r, rows, KEY_NUMBER), av_value(r, point), av_at(r, rows)->konst.flags & VF_WEAK, &pair[1]);
  if (o != OUT_GO || !(pair[0] = av_character(r, point))) return o == OUT_GO ? OUT_FAIL : o;
  return rec_made(r, av_list(r, pair, 2), out);
}

static RecipeId keyed_recipe(Recorder *r, Av rows) {
  ExitTable *t = &r->g->exits;
  RecipeId count = rec_recipe(r, av_item(r, rows, 1)), parts[2] = {0};
  if (!count) return 0;
  parts[0] = recipe_items(t, av_value(r, column(r, rows, KEY_ORDER)), 0, count, ITEMS_strong);
  parts[1] = recipe_items(t, av_value(r, column(r, rows, KEY_NUMBER)), 0, 0,
                          av_at(r, rows)->konst.flags & VF_WEAK ? ITEMS_weak : ITEMS_strong);
  return parts[0] && parts[1] ? recipe_keyed(t, parts) : 0;
}

static RecipeId recipe_or_source(Recorder *r, Av a) {
  RecipeId there = repr_source_recipe(r, a);
  return there ? there : keyed_recipe(r, a);
}

static Outcome keyed_at(Recorder *r, Av a, Av pos, Av *out) { return rec_keyed_item(r, a, av_value(r, pos), out); }

static bool keyed_widen(Recorder *r, RecLoop *l, RecLoc *loc, Av before, Av now) {
  return loc->rows ? rec_columns_widen(r, l, loc, before, now) : rec_rows_ask(r, now, &av_at(r, now)->konst);
}

static Outcome keyed_assign(Recorder *r, Av a, Av at, Av value, Av *out, bool *done) {
  *done = true;
  return rec_keyed_set(r, a, at, value, false, out);
}

static Outcome keyed_store(Recorder *r, Av a, Av at, Av old, Av item, Av *out) {
  (void)old;
  return rec_keyed_set(r, a, at, item, true, out);
}

const Repr repr_keyed = {
    .name = "keyed",
    .type = "record",
    .same = rec_columns_same,
    .recipe = recipe_or_source,
    NO(hand, effect_host, "its columns stay in the region"),
    NO(example, no_rule, "a record of no known keys"),
    NO(input, no_rule, "a loop asks for it"),
    .length = repr_count_length,
    .item = rec_keyed_get,
    NO(slice, raises, "a record has keys, not places"),
    .assign = keyed_assign,
    .store = keyed_store,
    .contains = rec_keyed_in,
    NO(field, no_rule, "which keys it has is not known"),
    NO(put_field, no_rule, "which keys it has is not known"),
    NO(update, no_rule, "it takes one key"),
    NO(before_store, no_rule, "its columns have room for all characters"),
    NO(add, raises, "records are not added"),
    NO(equal, no_rule, "which keys it has is not known"),
    .walk = repr_itself,
    .at = keyed_at,
    NO(items, no_rule, "which keys it has is not known"),
    NO(array, raises, "a record is no array"),
    NO(open, data_dependent_shape, "its keys are computed"),
    NO(call, raises, "a record is no function"),
    NO(truth, raises, "a record is no condition"),
    NO(format, text_value, "the texts of records are made by the interpreter"),
    NO(layout, loop_list, "a record of any keys in a list"),
    NO(name_of, no_rule, "it is no text"),
    .widen = keyed_widen,
    .take_back = rec_columns_take_back,
    NO(unpack, no_rule, "which keys it has is not known"),
};
