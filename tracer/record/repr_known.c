/* repr_known.c — values that are known while tracing, `konst`: nil and dtypes (`known`), texts (`known_text`), built-in
 * functions (`builtin`); numbers are in repr_number.c. What built-ins make of known texts and records is known too. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_known.h"
#include "tracer/record/repr_slice.h"

/* not a threshold: room; built-ins of longer lists are computed where they run */
enum { KNOWN_ITEMS = 256, KNOWN_DEPTH = 8 };

/* What an abstract value is, where all of it is known. false: it is not, or memory was refused. */
static bool known_value(Recorder *r, Av a, u32 depth, Value *out) {
  if (!a || !(a = av_force(r, a))) return false;
  AbsVal v = *av_at(r, a);
  *out = value_hole();
  if (kind_is_hole(v.kind)) return true;
  if (kind_is_constant(v.kind) || kind_is_value(v.kind)) {
    if (!av_const_value(r, a, out)) return false;
    value_keep(*out);
    return true;
  }
  if (!kind_is_list(v.kind) || v.count > KNOWN_ITEMS || depth == KNOWN_DEPTH || !list_new(r->vm, v.count, out))
    return false;
  for (u32 i = 0; i < v.count; i++) {
    Value item;
    if (known_value(r, av_item(r, a, i), depth + 1, &item) && list_push(r->vm, out, item)) continue;
    value_drop(r->vm, *out);
    return false;
  }
  return true;
}

/* The abstract value of one that was computed while tracing; 0: none, or memory was refused. */
static Av of_value(Recorder *r, Value v) {
  if (v.kind == V_NUM || v.kind == V_TEXT || v.kind == V_NIL) return av_const(r, v);
  if (v.kind != V_LIST || list_is_packed(v.list) || v.list->count > KNOWN_ITEMS) return 0;
  Av items[KNOWN_ITEMS];
  for (u32 i = 0; i < v.list->count; i++)
    if (!(items[i] = of_value(r, v.list->items[i]))) return 0;
  return av_list(r, items, v.list->count);
}

/* The operation is run on the values themselves. */
static bool known_computed(Recorder *r, u32 op, const Av *params, Av *out, Outcome *o) {
  u32 n = op_info(op)->nparams, got = 0;
  Value args[OP_MAX_PARAMS], v;
  bool ok = true;
  for (; got < n; got++) {
    args[got] = value_hole();
    if (params[got] && !known_value(r, params[got], 0, &args[got])) break;
  }
  bool known = got == n;
  if (known) ok = vm_op(r->vm, op, args, &v) == WEFT_OK;
  while (got > 0) value_drop(r->vm, args[--got]);
  vm_error_forget(r->vm);
  if (!known) return false;
  if (!ok) {
    *o = rec_stuck(r, REASON_raises, "%s raises an error", op_name(op));
    return true;
  }
  *out = of_value(r, v);
  value_drop(r->vm, v);
  *o = r->failed ? OUT_FAIL : OUT_GO;
  return *out != 0 || r->failed;
}

static Outcome keys_of(Recorder *r, const Shape *shape, Av *out) {
  Av items[KNOWN_ITEMS];
  for (u32 i = 0; i < shape->count; i++) {
    Value key;
    if (!text_new(r->vm, name_text(&r->vm->names, shape->keys[i]), name_len(&r->vm->names, shape->keys[i]), &key)) {
      vm_error_forget(r->vm);
      return OUT_FAIL;
    }
    items[i] = av_const(r, key);
    value_drop(r->vm, key);
    if (!items[i]) return OUT_FAIL;
  }
  return rec_made(r, av_list(r, items, shape->count), out);
}

Outcome rec_without(Recorder *r, Av record, const Name *names, u32 count, Av *out) {
  const Shape *shape = av_at(r, record)->shape;
  Name keys[KNOWN_ITEMS];
  Av items[KNOWN_ITEMS];
  u32 n = 0;
  if (shape->count > KNOWN_ITEMS) return rec_stuck(r, REASON_graph_size, "a record of %u fields", shape->count);
  for (u32 i = 0; i < shape->count; i++) {
    u32 k = 0;
    while (k < count && names[k] != shape->keys[i]) k++;
    if (k < count) continue;
    items[n] = av_item(r, record, i);
    keys[n++] = shape->keys[i];
  }
  return rec_made(r, av_record(r, keys, items, n), out);
}

bool rec_of_known(Recorder *r, u32 op, const Av *params, Av *out, Outcome *o) {
  const OpInfo *info = op_info(op);
  Value key;
  if (info->family == FAM_text || op == OP_split) {
    Av x = params[0] ? av_force(r, params[0]) : 0;
    bool text = x && (av_is_list(r, x) || (av_const_value(r, x, &key) && key.kind == V_TEXT));
    return text && op_is_pure(op) && known_computed(r, op, params, out, o);
  }
  if (op != OP_keys && op != OP_remove) return false;
  Av x = params[0] ? av_force(r, params[0]) : 0;
  if (!x || !av_is_record(r, x) || av_at(r, x)->shape->count > KNOWN_ITEMS) return false;
  if (op == OP_keys) {
    *o = keys_of(r, av_at(r, x)->shape, out);
    return true;
  }
  Name name;
  if (!params[1] || !av_const_value(r, params[1], &key) || key.kind != V_TEXT ||
      !name_known(&r->vm->names, key.text->data, key.text->len, &name) || av_field(r, x, name) < 0)
    return false;
  *o = rec_without(r, x, &name, 1, out);
  return true;
}

/* ---- used -------------------------------------------------------------------------------------------------------- */

static Av text_name(Recorder *r, Av a) {
  const Value v = av_at(r, a)->konst;
  i64 number;
  return text_has_number(v.text) && text_number(r->vm, v.text, &number) ? av_const(r, value_i64(number)) : 0;
}

static Outcome known_text_length(Recorder *r, Av a, Av *out) {
  return rec_made(r, av_const(r, value_weak_i64(av_at(r, a)->konst.text->count)), out);
}

/* Of a known text at places that are known. */
static Outcome index_known(Recorder *r, Av a, u8 how, const Value *parts, Av *out) {
  Value got;
  if (vm_index(r->vm, av_at(r, a)->konst, &how, 1, parts, &got) != WEFT_OK) {
    vm_error_forget(r->vm);
    return rec_stuck(r, REASON_raises, "the index raises an error");
  }
  Av c = av_const(r, got);
  value_drop(r->vm, got);
  return rec_made(r, c, out);
}

static Outcome known_item(Recorder *r, Av a, Av at, Av *out) {
  Value place;
  Av rows;
  if (rec_text_has(r, a)) return rec_text_get(r, a, at, out);
  if (av_const_value(r, at, &place)) return index_known(r, a, IX_VALUE, &place, out);
  if (!av_is_number(r, at)) return rec_stuck(r, REASON_raises, "text indexed by %s", av_kind_text(r, at));
  Outcome o = rec_text_stacked(r, a, &rows);
  return o == OUT_GO ? rec_item(r, rows, at, out) : o;
}

static Outcome known_slice(Recorder *r, Av a, const Av *parts, Av *out) {
  Value known[3];
  u32 n = 0;
  Av rows;
  if (rec_text_has(r, a)) return rec_text_cut(r, a, parts, out);
  while (n < 3 && av_const_value(r, parts[n], &known[n])) n++;
  if (n == 3) return index_known(r, a, IX_SLICE, known, out);
  Outcome o = rec_text_stacked(r, a, &rows);
  return o == OUT_GO ? rec_text_slice(r, rows, parts, out) : o;
}

/* ---- their tables ------------------------------------------------------------------------------------------------ */

static Av known_input(Recorder *r, SourceId s, Value v, Span why) {
  if (!guard_const(&r->g->guards, s, v, why)) return 0;
  Av a = av_const(r, v);
  if (a) av_at(r, a)->source = s;
  return a;
}

static bool same_builtin(Recorder *r, Av a, Av b) { return av_at(r, a)->konst.fn->op == av_at(r, b)->konst.fn->op; }

#define KNOWN(row)                                                                                                 \
  .name = row, .type = NULL, .recipe = repr_constant_recipe, .hand = repr_constant_hand,                           \
  .example = repr_constant_example
const Repr repr_known = {KNOWN("known"), .same = repr_same_value, .input = known_input,
    NO(length, raises, "nil and dtypes have no items"),
    NO(item, raises, "nil and dtypes have no items"),
    NO(slice, raises, "nil and dtypes have no items"),
    .equal = rec_itself_equal,
    NO(field, raises, "nil and dtypes have no parts"),
    NO(put_field, raises, "nil and dtypes have no parts"),
    NO(update, no_rule, "nil and dtypes have no parts"),
    NO(assign, raises, "nil and dtypes have no parts"),
    NO(store, raises, "nil and dtypes have no parts"),
    NO(before_store, raises, "nil and dtypes have no parts"),
    NO(add, raises, "they are not added"),
    NO(contains, raises, "nil and dtypes have no parts"),
    NO(walk, loop_sequence, "nil and dtypes have no items"),
    NO(at, loop_sequence, "nil and dtypes have no items"),
    NO(items, no_rule, "nil and dtypes have no items"),
    NO(array, raises, "nil and dtypes have no items"),
    .open = repr_itself,
    .call = rec_call_dtype,
    .truth = repr_constant_truth,
    .format = repr_constant_format,
    NO(layout, loop_list, "nil and dtypes have no parts"),
    NO(name_of, no_rule, "nil and dtypes have no parts"),
    NO(widen, loop_types, "nil and dtypes have no parts"),
    NO(take_back, no_rule, "nil and dtypes have no parts"),
    NO(unpack, raises, "nil and dtypes have no parts"),};
const Repr repr_known_text = {KNOWN("known_text"), .same = repr_same_value, .input = known_input,
    .length = known_text_length,
    .item = known_item,
    .slice = known_slice,
    .add = rec_text_add,
    .equal = rec_text_equal,
    .contains = rec_text_contains,
    NO(field, raises, "a text has no fields"),
    NO(put_field, raises, "a text has no fields"),
    NO(update, no_rule, "texts are not written"),
    NO(assign, raises, "texts are not written"),
    NO(store, raises, "texts are not written"),
    NO(before_store, raises, "texts are not written"),
    .format = repr_constant_format,
    .walk = rec_text_walk,
    NO(at, loop_sequence, "its code points are walked over in a column"),
    .truth = repr_constant_truth,
    .open = repr_itself,
    NO(items, no_rule, "a text is walked over by a loop"),
    NO(array, raises, "a text is no array"),
    NO(call, raises, "a text is no function"),
    .layout = rec_name_layout,
    .name_of = text_name,
    .widen = rec_into_columns,
    NO(take_back, no_rule, "it lies nowhere"),
    NO(unpack, raises, "a text has no parts"),};
const Repr repr_builtin = {KNOWN("builtin"), .same = same_builtin, NO(input, no_rule, "repr_function reads it"),
    NO(length, raises, "a function has no items"),
    NO(item, raises, "a function has no items"),
    NO(slice, raises, "a function has no items"),
    .equal = rec_itself_equal,
    NO(field, raises, "a function has no items"),
    NO(put_field, raises, "a function has no items"),
    NO(update, no_rule, "a function has no items"),
    NO(assign, raises, "a function has no items"),
    NO(store, raises, "a function has no items"),
    NO(before_store, raises, "a function has no items"),
    NO(add, raises, "they are not added"),
    NO(contains, raises, "a function has no items"),
    NO(walk, loop_sequence, "a function has no items"),
    NO(at, loop_sequence, "a function has no items"),
    NO(items, no_rule, "a function has no items"),
    NO(array, raises, "a function has no items"),
    .open = repr_itself,
    .call = rec_call_builtin,
    .truth = repr_constant_truth,
    NO(format, text_value, "a function has no items"),
    NO(layout, loop_list, "a function has no items"),
    NO(name_of, no_rule, "a function has no items"),
    NO(widen, loop_types, "a function has no items"),
    NO(take_back, no_rule, "a function has no items"),
    NO(unpack, raises, "a function has no items"),};
