/* repr_number.c — numbers and arrays. A `number` is a value of the graph (`value`); a `constant` is a number that is
 * known while tracing (`konst`). Sizes and lengths are numbers of the graph too, whose value is an expression of
 * sizes. */
#include "lang/mechanisms.h"
#include "tracer/record/abstract.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_effects.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"

#include <string.h>

/* ---- read -------------------------------------------------------------------------------------------------------- */

Dim av_size_symbol(Recorder *r, SourceId s, i64 lo, i64 hi, i64 hint) {
  Graph *g = r->g;
  u32 in = guard_input(&g->guards, s, IN_size);
  if (in == UINT32_MAX) return DIM_NONE;
  GuardInput *input = &g->guards.inputs.data[in];
  if (input->sym != UINT32_MAX) return g->sizes.syms.data[input->sym].dim;
  Dim d = size_sym(&g->sizes, NULL, s, lo, hi, hint);
  if (d == DIM_NONE) return d;
  u32 sym;
  if (size_is_sym(&g->sizes, d, &sym)) g->guards.inputs.data[in].sym = sym;
  return d;
}

static Av length_of(Recorder *r, SourceId s, SourceKind kind, i64 now) {
  SourceId len = source_step(&r->g->guards, s, kind, 0, NULL);
  Dim d = len ? av_size_symbol(r, len, 0, ROWS_MOST, now) : DIM_NONE;
  return d == DIM_NONE ? 0 : av_num(r, graph_size(r->g, d));
}

Av av_length(Recorder *r, SourceId s, i64 now) { return length_of(r, s, SRC_len, now); }
Av av_total(Recorder *r, SourceId s, i64 now) { return length_of(r, s, SRC_total, now); }

static Av read_number(Recorder *r, SourceId s, Value v, Span why) {
  Graph *g = r->g;
  if (v.kind == V_NUM && g->guards.sources.items.data[s].kind == SRC_global && !MECHANISM(r->vm, globals_are_read))
    return av_const(r, v);
  if (!guard_tag(&g->guards, s, v, false, why)) return 0;
  if (v.kind == V_NUM && v.dtype == DT_i64 && !MECHANISM(r->vm, integers_are_symbols))
    return guard_const(&g->guards, s, v, why) ? av_const(r, v) : 0;
  if (v.kind == V_NUM && v.dtype == DT_f64 && !MECHANISM(r->vm, floats_are_inputs))
    return guard_const(&g->guards, s, v, why) ? av_const(r, v) : 0;
  if (v.kind == V_NUM && v.dtype == DT_i64) {
    Dim d = av_size_symbol(r, s, INT64_MIN, INT64_MAX, v.i);
    return d == DIM_NONE ? 0 : av_num(r, graph_size_typed(g, d, DT_i64, v.flags & VF_WEAK));
  }
  ArrayType t = {.dtype = v.dtype, .weak = value_is_weak(v)};
  if (v.kind == V_ARRAY) {
    Array *a = v.array;
    t.dtype = (u8)array_dtype(a);
    t.rank = (u8)array_rank(a);
    t.device = (u8)array_device(a);
    for (u32 d = 0; d < t.rank; d++) {
      i64 n = array_dims(a)[d];
      SourceId at = source_step(&g->guards, s, SRC_size, d, NULL);
      t.dims[d] = at ? av_size_symbol(r, at, 0, SIZE_LIMIT - 1, n) : DIM_NONE;
      if (t.dims[d] == DIM_NONE) return 0;
      if (!MECHANISM(r->vm, sizes_are_symbols))
        (void)guard_relation(&g->guards, &g->sizes, REL_eq, t.dims[d], size_const(&g->sizes, n), NULL, why);
    }
  }
  u32 in = guard_input(&g->guards, s, v.kind == V_ARRAY ? IN_array : IN_scalar);
  if (in == UINT32_MAX) return 0;
  return av_num(r, graph_input(g, graph_type(g, &t), in));
}

static Av number_input(Recorder *r, SourceId s, Value v, Span why) {
  Av a = read_number(r, s, v, why);
  if (a) av_at(r, a)->source = s;
  return a;
}

/* ---- used -------------------------------------------------------------------------------------------------------- */

static Outcome number_field(Recorder *r, Av obj, Name key, Av *out, bool *found) {
  const char *name = name_text(&r->vm->names, key);
  Graph *g = r->g;
  ValueId v = av_value(r, obj);
  ArrayType t = *value_type(g, v);
  if (found) { /* x.dtype(v) converts v; no other property hides a function of its name */
    if (strcmp(name, "dtype") != 0) return OUT_GO;
    *found = true;
  }
  if (strcmp(name, "shape") == 0) {
    Av items[TYPE_MAX_RANK];
    for (u32 d = 0; d < t.rank; d++)
      if (!(items[d] = av_num(r, graph_size(g, t.dims[d])))) return OUT_FAIL;
    return rec_made(r, av_list(r, items, t.rank), out);
  }
  if (strcmp(name, "dtype") == 0) return rec_made(r, av_const(r, value_dtype(t.dtype)), out);
  if (strcmp(name, "ndim") == 0) return rec_made(r, av_const(r, value_weak_i64(t.rank)), out);
  if (strcmp(name, "size") == 0) {
    Dim n = 1;
    for (u32 d = 0; d < t.rank; d++) n = size_mul(&g->sizes, n, t.dims[d]);
    if (n == DIM_NONE) return rec_stuck(r, REASON_size_expression, "the size of an array");
    return rec_made(r, av_num(r, graph_size(g, n)), out);
  }
  if (strcmp(name, "device") == 0) { /* the tag of an input has it, and so is guarded */
    Value text;
    if (!text_printf(r->vm, &text, "%s", r->vm->device_names[t.device])) return OUT_FAIL;
    Av c = av_const(r, text);
    value_drop(r->vm, text);
    return rec_made(r, c, out);
  }
  if (strcmp(name, "T") == 0) {
    Av params[2] = {obj, 0};
    return rec_op(r, OP_transpose, params, out);
  }
  return rec_stuck(r, REASON_raises, "array has no property %s", name);
}

static Outcome number_length(Recorder *r, Av a, Av *out) {
  const ArrayType *t = value_type(r->g, av_value(r, a));
  return t->rank ? rec_made(r, av_num(r, graph_size(r->g, t->dims[0])), out)
                 : rec_stuck(r, REASON_raises, "len of an array of rank 0");
}

static Outcome number_walk(Recorder *r, Av a, Av *out) {
  const ArrayType *t = value_type(r->g, av_value(r, a));
  if (!t->rank) return rec_stuck(r, REASON_loop_sequence, "a loop over a number");
  if (t->device && t->rank == 1)
    return rec_stuck(r, REASON_device_mix, "a loop over the numbers of an array on a device");
  return rec_made(r, a, out);
}

/* At a computed position in bounds by construction: no check. */
static Outcome number_at(Recorder *r, Av a, Av pos, Av *out) {
  const IndexItem it = {.kind = INDEX_int, .part = {PART_operand}, .at = {1}};
  ValueId x = av_value(r, a), p = av_value(r, pos);
  ArrayType t = *value_type(r->g, x);
  i64 known;
  if (av_known_int(r, pos, &known)) return rec_item(r, a, pos, out);
  if (t.device && t.rank == 1)
    return rec_stuck(r, REASON_device_mix, "a loop over the numbers of an array on a device");
  t.rank--;
  t.weak = false;
  memmove(t.dims, t.dims + 1, t.rank * sizeof t.dims[0]);
  return rec_made(r, av_num(r, graph_index(r->g, x, &p, 1, &it, 1, graph_type(r->g, &t))), out);
}

static Outcome truth(Recorder *r, Av a, Av *out) {
  const ArrayType *t = value_type(r->g, av_at(r, a)->value);
  Value v;
  if (value_const(r->g, av_at(r, a)->value, &v)) return repr_known_truth(r, a, v, out);
  if (t->rank != 0) return rec_stuck(r, REASON_raises, "the condition is no number of rank 0");
  if (t->dtype == DT_bool) return rec_made(r, a, out);
  Av zero = av_const(r, value_weak_i64(0)), params[2] = {a, zero};
  return zero ? rec_op(r, OP_not_equal, params, out) : OUT_FAIL;
}

/* A format spec fits numbers of a dtype or it does not, whatever their values; but code points (type c) are not all
 * numbers. */
static bool spec_fits(Recorder *r, const ArrayType *t, Value spec) {
  Value text;
  if (spec.kind != V_TEXT || spec.text->len == 0) return true;
  if (spec.text->data[spec.text->len - 1] == 'c') return false;
  if (dtype_kind(t->dtype) > DK_FLOAT) return false;
  if (vm_text(r->vm, (Value){.kind = V_NUM, .dtype = t->dtype}, spec, &text) != WEFT_OK) {
    vm_error_forget(r->vm);
    return false;
  }
  value_drop(r->vm, text);
  return true;
}

static Outcome format(Recorder *r, Av a, Av spec, bool plain, Av *out) {
  Value how, known;
  (void)plain;
  if (av_const_value(r, a, &known)) return repr_known_format(r, known, spec, out);
  if (!av_const_value(r, spec, &how) || !spec_fits(r, value_type(r->g, av_value(r, a)), how))
    return rec_stuck(r, REASON_raises, "the format spec does not fit");
  return rec_made(r, av_formatted(r, a, spec), out);
}

/* The items of the first axis, whose size is relied on; those between the named ones are a list. */
static Outcome number_unpack(Recorder *r, Av a, const Desc *d, Av *out) {
  const ArrayType *t = value_type(r->g, av_value(r, a));
  const u32 want = d->before + d->after;
  if (t->rank == 0) return rec_stuck(r, REASON_raises, "a number unpacked");
  Dim n = t->dims[0];
  i64 hint;
  if (size_is_unbacked(&r->g->sizes, n) || !size_hint(&r->g->sizes, n, &hint) || hint < want ||
      (!d->has_rest && hint > want))
    return rec_stuck(r, REASON_raises, "an array unpacked into %u", want);
  if (d->has_rest && hint > r->vm->tunables.array_parts)
    return rec_over(r, array_parts, REASON_graph_size, "an array unpacked");
  if (!guard_relation(&r->g->guards, &r->g->sizes, REL_eq, n, hint, "unpacking", rec_here(r))) return OUT_FAIL;
  Av *items = rec_avs(r, (u32)hint);
  if (!items) return OUT_FAIL;
  for (u32 i = 0; i < (u32)hint; i++) {
    Av at = av_const(r, value_weak_i64(i));
    Outcome o = at ? rec_item(r, a, at, &items[i]) : OUT_FAIL;
    if (o != OUT_GO) return o;
  }
  const u32 rest = (u32)hint - want;
  for (u32 i = 0; i < d->before; i++) *out++ = items[i];
  if (d->has_rest && !(*out++ = av_list(r, items + d->before, rest))) return OUT_FAIL;
  for (u32 i = 0; i < d->after; i++) *out++ = items[d->before + rest + i];
  return OUT_GO;
}

static Outcome number_item(Recorder *r, Av a, Av at, Av *out) {
  const u8 one = IX_VALUE;
  return rec_index_array(r, a, &one, 1, &at, out);
}

static Outcome number_slice(Recorder *r, Av a, const Av *parts, Av *out) {
  const u8 one = IX_SLICE;
  return rec_index_array(r, a, &one, 1, parts, out);
}

/* ---- rebuilt ----------------------------------------------------------------------------------------------------- */

static RecipeId number_recipe(Recorder *r, Av a) { return rec_weak_recipe(r, av_at(r, a)->value); }

static RecipeId number_hand(Handing *h, Av a, u32 depth) {
  (void)depth;
  return rec_hand_number(h, av_at(h->r, a)->value);
}

static bool number_example(Recorder *r, Av a, u32 depth, Value *out) {
  (void)depth;
  return abstract_number(r, value_type(r->g, av_at(r, a)->value), out);
}

const Repr repr_number = {
    .name = "number",
    .type = "array",
    .same = repr_same_leaf,
    .recipe = number_recipe,
    .hand = number_hand,
    .example = number_example,
    .input = number_input,
    .length = number_length,
    .item = number_item,
    .slice = number_slice,
    .field = number_field,
    .update = rec_update_array,
    NO(put_field, raises, "the properties of an array are not written"),
    NO(assign, no_rule, "update does it"),
    NO(store, no_rule, "update does it"),
    NO(before_store, no_rule, "an array stays one"),
    NO(add, no_rule, "numbers are added by the operation"),
    NO(equal, no_rule, "numbers are compared by the operation"),
    NO(contains, no_rule, "`in` of an array"),
    .walk = number_walk,
    .at = number_at,
    .open = repr_itself,
    .truth = truth,
    .format = format,
    NO(items, no_rule, "the items of an array are numbers of the graph"),
    NO(array, no_rule, "it is one"),
    NO(call, raises, "a number is no function"),
    .layout = rec_number_layout,
    NO(name_of, no_rule, "it is no text"),
    NO(widen, loop_types, "what it is is carried; its type is settled by its first trip"),
    NO(take_back, no_rule, "a number lies nowhere"),
    .unpack = number_unpack,
};

const Repr repr_constant = {
    .name = "constant",
    .type = NULL,
    .same = repr_same_leaf,
    .recipe = repr_constant_recipe,
    .hand = repr_constant_hand,
    .example = repr_constant_example,
    NO(input, no_rule, "repr_number reads it"),
    .length = number_length,
    .item = number_item,
    .slice = number_slice,
    .field = number_field,
    .update = rec_update_array,
    NO(put_field, raises, "the properties of an array are not written"),
    NO(assign, no_rule, "update does it"),
    NO(store, no_rule, "update does it"),
    NO(before_store, no_rule, "an array stays one"),
    NO(add, no_rule, "numbers are added by the operation"),
    NO(equal, no_rule, "numbers are compared by the operation"),
    NO(contains, no_rule, "`in` of an array"),
    .walk = number_walk,
    .at = number_at,
    .open = repr_itself,
    .truth = repr_constant_truth,
    .format = repr_constant_format,
    NO(items, no_rule, "the items of an array are numbers of the graph"),
    NO(array, no_rule, "it is one"),
    NO(call, raises, "a number is no function"),
    .layout = rec_number_layout,
    NO(name_of, no_rule, "it is no text"),
    NO(widen, loop_types, "what it is is carried; its type is settled by its first trip"),
    NO(take_back, no_rule, "a number lies nowhere"),
    .unpack = number_unpack,
};
