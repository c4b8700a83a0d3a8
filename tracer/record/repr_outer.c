/* repr_outer.c — values from outside that are known by their source alone: modules, refs, objects of the host; lists
 * and records that were not taken apart, since they are long or change again and again; texts of which it does not
 * matter which they are; whatever else programs hold. `konst` is what stands there now, borrowed. */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_cells.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_columns_whole.h"
#include "tracer/record/repr_keyed.h"
#include "tracer/tracer.h"

#include <string.h>

bool av_is_opaque(const Recorder *r, Av a) { return av_is_outer_list(r, a) || av_is_outer_record(r, a); }

Outcome av_take_apart(Recorder *r, Av a, Av *out) {
  const AbsVal v = *av_at(r, a);
  const u32 n = v.konst.kind == V_LIST ? v.konst.list->count : v.konst.record->shape->count;
  if (!r->abstract && source_is_open(r->tracer, &r->g->guards, v.source))
    return rec_stuck(r, REASON_data_dependent_shape, "a %s of another length or with other keys again and again",
                     value_type_name(v.konst));
  if (n > (u32)r->vm->tunables.tree_items)
    return rec_over(r, tree_items, REASON_graph_size, value_type_name(v.konst));
  if (r->g->guards.sources.items.count > (u32)r->vm->tunables.trace_sources)
    return rec_over(r, trace_sources, REASON_graph_size, "the trace");
  return rec_made(r, v.konst.kind == V_LIST ? av_read_list(r, v.source, v.konst, rec_here(r))
                                            : av_read_record(r, v.source, v.konst, rec_here(r)), out);
}

static Av module_input(Recorder *r, SourceId s, Value v, Span why) {
  if (!guard_const(&r->g->guards, s, v, why)) return 0;
  return av_new(r, (AbsVal){.kind = AV_module, .source = s, .konst = v});
}

/* ---- used -------------------------------------------------------------------------------------------------------- */

/* It is long, and another one in the next run: its length is left open. */
static Outcome outer_length(Recorder *r, Av a, Av *out) {
  const AbsVal v = *av_at(r, a);
  if (!guard_tag(&r->g->guards, v.source, v.konst, false, (Span){0})) return OUT_FAIL;
  return rec_made(r, av_length(r, v.source, v.konst.kind == V_LIST ? v.konst.list->count : v.konst.text->count), out);
}

/* One item of a long list; at a computed place, of its columns. */
static Outcome outer_list_item(Recorder *r, Av a, Av at, Av *out) {
  const AbsVal v = *av_at(r, a);
  i64 i;
  if (av_known_int(r, at, &i) && i >= 0 && i < v.konst.list->count) {
    if (!rec_look_into(r, v.konst.list) || !guard_len(&r->g->guards, v.source, REL_le, (u64)i + 1, rec_here(r)))
      return OUT_FAIL;
    SourceId s = source_step(&r->g->guards, v.source, SRC_item, (u32)i, NULL);
    return rec_made(r, av_lazy(r, s, v.konst.list->items[i]), out);
  }
  Outcome o = rec_rows_here(r, a, &a);
  return o == OUT_GO ? rec_item(r, a, at, out) : o;
}

static Outcome outer_record_item(Recorder *r, Av a, Av at, Av *out) {
  Av rows;
  Outcome o = rec_keyed_read(r, a, at, &rows);
  if (o != OUT_GO) return o;
  return rows ? rec_item(r, rows, at, out) : rec_stuck(r, REASON_no_rule, "a record of many keys is indexed");
}

static Outcome text_item(Recorder *r, Av a, Av at, Av *out) {
  return rec_text_has(r, a) ? rec_text_get(r, a, at, out) : rec_stuck(r, REASON_no_rule, "text indexed");
}

static Outcome cut_text(Recorder *r, Av a, const Av *parts, Av *out) {
  return rec_text_has(r, a) ? rec_text_cut(r, a, parts, out) : rec_stuck(r, REASON_no_rule, "a slice of text");
}

static Outcome outer_module_field(Recorder *r, Av a, Name name, Av *out, bool *found) {
  struct Module *m = av_at(r, a)->konst.module;
  const char *text = name_text(&r->vm->names, name);
  u32 slot, cell;
  /* a method, too: no global function stands in */
  if (!scope_find(&m->scope, name, &slot) || m->slots[slot].value.kind == V_HOLE || *text == '_')
    return rec_stuck(r, REASON_raises, "module has no variable %s", text);
  if (module_ready(r->vm, m, slot) != WEFT_OK) { /* memory was refused */
    vm_error_forget(r->vm);
    r->failed = true;
    return OUT_FAIL;
  }
  Outcome o = rec_cell_global(r, m, slot, &cell);
  if (o != OUT_GO) return o;
  if (found) *found = true;
  return rec_made(r, r->cells.data[cell].value, out);
}

static bool handle_holds(void *type, Value v, u64 word) {
  const HandleType *t = type;
  return v.kind == V_HANDLE && v.handle->type == t && (!t->guard || t->guard(v.handle->object) == word);
}

/* A field of an object of the host: an input like any other, a constant when its type says that it is a tag. */
static Outcome outer_handle_field(Recorder *r, Av obj, Name name, Av *out, bool *found) {
  if (found) return OUT_GO; /* methods: only records and modules have fields that hide functions */
  GuardSet *gs = &r->g->guards;
  const AbsVal v = *av_at(r, obj);
  Handle *h = v.konst.handle;
  const char *text = name_text(&r->vm->names, name);
  bool fresh = handle_refresh(r->vm, h) == WEFT_OK;
  if (!fresh) vm_error_forget(r->vm); /* the interpreter raises it */
  const Value *now = fresh ? value_field(v.konst, name) : NULL;
  if (!now || !v.source) return rec_stuck(r, REASON_handle_value, "field %s of <%s>", text, h->type->name);
  u64 word = h->type->guard ? h->type->guard(h->object) : 0;
  SourceId s = source_step(gs, v.source, SRC_field, name, text);
  if (!s || !guard_host(gs, v.source, handle_holds, (void *)(uintptr_t)h->type, word, rec_here(r)) ||
      !guard_shape(gs, v.source, NULL, false, name, rec_here(r)))
    return OUT_FAIL;
  bool tag = false;
  for (const char *const *t = h->type->tags; t && *t && !tag; t++) tag = strcmp(*t, text) == 0;
  if (!tag) return rec_made(r, av_lazy(r, s, *now), out);
  bool guarded = now->kind != V_ARRAY && (!MECHANISM(gs, tags_are_guarded) || guard_const(gs, s, *now, rec_here(r)));
  if (!guarded) return rec_stuck(r, REASON_handle_value, "tag %s of <%s> is no constant", text, h->type->name);
  Av a = av_const(r, *now);
  if (a) av_at(r, a)->source = s;
  return rec_made(r, a, out);
}

/* A list that is not known item by item lies in columns from here on. */
static Outcome outer_list_add(Recorder *r, Av a, Av b, Av *out) {
  if (!av_is_list(r, b)) return rec_stuck(r, REASON_loop_list, "a list that was not taken apart is joined");
  Outcome o = rec_rows_here(r, a, &a);
  return o == OUT_GO ? rec_rows_join(r, a, b, out) : o;
}

static Outcome outer_list_walk(Recorder *r, Av a, Av *out) { return rec_rows_of(r, a, NULL, out); }

static Outcome outer_list_contains(Recorder *r, Av a, Av x, Av *out) {
  if (!r->loop) return rec_stuck(r, REASON_no_rule, "`in` of a list that was not taken apart");
  Outcome o = rec_rows_here(r, a, &a);
  return o == OUT_GO ? rec_member(r, x, a, out) : o;
}

static Outcome outer_record_contains(Recorder *r, Av a, Av x, Av *out) {
  Av rows = 0;
  Outcome o = av_is_character(r, x) ? rec_keyed_read(r, a, x, &rows) : OUT_GO;
  if (o != OUT_GO) return o;
  return rows ? rec_keyed_in(r, rows, x, out)
              : rec_stuck(r, REASON_no_rule, "`in` of %s and record", av_kind_text(r, x));
}

/* ---- their tables ------------------------------------------------------------------------------------------------ */

#define NOT_LOOKED_INTO "a value of this kind is known by its source alone"
#define NO_ITEMS(why) NO(length, raises, why), NO(item, raises, why), NO(slice, raises, why)
#define OUTER(row)                                                                                                  \
  .name = row, .type = NULL, .same = repr_same_source, .recipe = repr_source_recipe, .example = repr_source_example

const Repr repr_module = {
    OUTER("module"),
    .hand = repr_source_hand,
    .input = module_input,
    NO_ITEMS("a module has no items"),
    .field = outer_module_field,
    .equal = rec_itself_equal,
    NO(put_field, raises, "a module is not written"),
    NO(update, no_rule, "a module is not written"),
    NO(assign, raises, "a module is not written"),
    NO(store, raises, "a module is not written"),
    NO(before_store, raises, "a module is not written"),
    NO(add, raises, "a module is not written"),
    NO(contains, raises, "a module is not written"),
    NO(walk, loop_sequence, "a module has no items"),
    NO(at, loop_sequence, "a module has no items"),
    NO(items, no_rule, "a module has no items"),
    NO(array, raises, "a module has no items"),
    .open = repr_itself,
    NO(call, raises, "a module has no items"),
    NO(truth, raises, "a module has no items"),
    NO(format, text_value, "a module has no items"),
    NO(layout, loop_list, "a module has no items"),
    NO(name_of, no_rule, "a module has no items"),
    NO(widen, loop_types, "a module has no items"),
    NO(take_back, no_rule, "a module has no items"),
    NO(unpack, raises, "a module has no items"),
};

const Repr repr_outer_list = {
    OUTER("outer_list"),
    .hand = repr_source_hand,
    .length = outer_length,
    .item = outer_list_item,
    .slice = rec_list_slice,
    NO(input, no_rule, "repr_list reads it, and leaves it closed"),
    NO(store, no_rule, "in a loop its place was read before, which asked for columns"),
    .add = outer_list_add,
    .contains = outer_list_contains,
    NO(field, raises, "a list has no fields"),
    NO(put_field, raises, "a list has no fields"),
    NO(update, no_rule, "it takes one place"),
    NO(assign, no_rule, "its place is looked at first"),
    NO(before_store, no_rule, "reading its place asks for columns"),
    NO(equal, no_rule, "it may hold NaN, so that it is not even equal to itself"),
    .walk = outer_list_walk,
    .array = rec_rows_array,
    .open = av_take_apart,
    NO(at, loop_sequence, "its items are walked over in columns"),
    NO(items, no_rule, "a list that was not taken apart"),
    NO(call, raises, "a list is no function"),
    NO(truth, raises, "a list is no condition"),
    NO(format, text_value, "the texts of lists are made by the interpreter"),
    NO(layout, loop_list, "a list that was not taken apart"),
    NO(name_of, no_rule, "it is no text"),
    .widen = rec_into_columns,
    NO(take_back, no_rule, "it lies outside"),
    NO(unpack, no_rule, "a list that was not taken apart"),
};

const Repr repr_outer_record = {
    OUTER("outer_record"),
    .hand = repr_source_hand,
    .item = outer_record_item,
    NO(length, no_rule, "a record that was not taken apart"),
    NO(slice, raises, "a record has keys, not places"),
    NO(input, no_rule, "repr_record reads it, and leaves it closed"),
    NO(store, no_rule, "a record that was not taken apart"),
    .before_store = rec_keyed_store,
    .contains = outer_record_contains,
    NO(field, no_rule, "a record that was not taken apart"),
    NO(put_field, no_rule, "a record that was not taken apart"),
    NO(update, no_rule, "it takes one key"),
    NO(assign, no_rule, "a record that was not taken apart"),
    NO(add, raises, "records are not added"),
    NO(equal, no_rule, "it may hold NaN, so that it is not even equal to itself"),
    NO(walk, loop_sequence, "a record that was not taken apart"),
    NO(at, loop_sequence, "a record that was not taken apart"),
    NO(items, no_rule, "a record that was not taken apart"),
    NO(array, raises, "a record that was not taken apart"),
    .open = av_take_apart,
    NO(call, raises, "a record that was not taken apart"),
    NO(truth, raises, "a record that was not taken apart"),
    NO(format, text_value, "a record that was not taken apart"),
    NO(layout, loop_list, "a record that was not taken apart"),
    NO(name_of, no_rule, "a record that was not taken apart"),
    NO(widen, loop_types, "a record that was not taken apart"),
    NO(take_back, no_rule, "a record that was not taken apart"),
    NO(unpack, no_rule, "a record that was not taken apart"),
};

const Repr repr_outer_text = {
    OUTER("outer_text"),
    .hand = repr_source_hand,
    .length = outer_length,
    .item = text_item,
    .slice = cut_text,
    NO(input, no_rule, "repr_known_text reads it, or nobody looks at it"),
    .add = rec_text_add,
    .equal = rec_text_equal,
    .contains = rec_text_contains,
    NO(field, raises, "a text has no fields"),
    NO(put_field, raises, "a text has no fields"),
    NO(update, no_rule, "texts are not written"),
    NO(assign, raises, "texts are not written"),
    NO(store, raises, "texts are not written"),
    NO(before_store, raises, "texts are not written"),
    NO(format, text_value, "which text it is is not known"),
    .walk = rec_text_walk,
    NO(at, loop_sequence, "its code points are walked over in a column"),
    NO(truth, raises, "a text is no condition"),
    .open = repr_itself,
    NO(items, no_rule, "a text is walked over by a loop"),
    NO(array, raises, "a text is no array"),
    NO(call, raises, "a text is no function"),
    NO(layout, loop_list, "which text it is is not known"),
    NO(name_of, no_rule, "it may be any text"),
    .widen = rec_into_columns,
    NO(take_back, no_rule, "it lies nowhere"),
    NO(unpack, raises, "a text has no parts"),
};

const Repr repr_handle = {
    OUTER("handle"),
    .hand = repr_source_hand,
    NO_ITEMS("an object of the host has no items"),
    NO(input, no_rule, NOT_LOOKED_INTO),
    .field = outer_handle_field,
    .equal = rec_itself_equal,
    NO(put_field, raises, "an object of the host is not written"),
    NO(update, no_rule, "an object of the host is not written"),
    NO(assign, raises, "an object of the host is not written"),
    NO(store, raises, "an object of the host is not written"),
    NO(before_store, raises, "an object of the host is not written"),
    NO(add, raises, "an object of the host is not written"),
    NO(contains, raises, "an object of the host is not written"),
    NO(walk, loop_sequence, "an object of the host has no items"),
    NO(at, loop_sequence, "an object of the host has no items"),
    NO(items, no_rule, "an object of the host has no items"),
    NO(array, raises, "an object of the host has no items"),
    .open = repr_itself,
    NO(call, raises, "an object of the host has no items"),
    NO(truth, raises, "an object of the host has no items"),
    NO(format, text_value, "an object of the host has no items"),
    NO(layout, loop_list, "an object of the host has no items"),
    NO(name_of, no_rule, "an object of the host has no items"),
    NO(widen, loop_types, "an object of the host has no items"),
    NO(take_back, no_rule, "an object of the host has no items"),
    NO(unpack, raises, "an object of the host has no items"),
};

const Repr repr_outer = {
    OUTER("outer"),
    .hand = repr_source_hand,
    NO(length, no_rule, NOT_LOOKED_INTO),
    NO(item, no_rule, NOT_LOOKED_INTO),
    NO(slice, no_rule, NOT_LOOKED_INTO),
    NO(input, no_rule, NOT_LOOKED_INTO),
    NO(field, no_rule, NOT_LOOKED_INTO),
    NO(put_field, no_rule, NOT_LOOKED_INTO),
    NO(update, no_rule, NOT_LOOKED_INTO),
    NO(assign, no_rule, NOT_LOOKED_INTO),
    NO(store, no_rule, NOT_LOOKED_INTO),
    NO(before_store, no_rule, NOT_LOOKED_INTO),
    NO(add, no_rule, NOT_LOOKED_INTO),
    NO(equal, no_rule, NOT_LOOKED_INTO),
    NO(contains, no_rule, NOT_LOOKED_INTO),
    NO(walk, loop_sequence, NOT_LOOKED_INTO),
    NO(at, loop_sequence, NOT_LOOKED_INTO),
    NO(items, no_rule, NOT_LOOKED_INTO),
    NO(array, raises, NOT_LOOKED_INTO),
    .open = repr_itself,
    NO(call, raises, NOT_LOOKED_INTO),
    NO(truth, raises, NOT_LOOKED_INTO),
    NO(format, text_value, NOT_LOOKED_INTO),
    NO(layout, loop_list, NOT_LOOKED_INTO),
    NO(name_of, no_rule, NOT_LOOKED_INTO),
    NO(widen, loop_types, NOT_LOOKED_INTO),
    NO(take_back, no_rule, NOT_LOOKED_INTO),
    NO(unpack, no_rule, NOT_LOOKED_INTO),
};

const Repr repr_outer_ref = {
    OUTER("outer_ref"),
    NO_ITEMS("a ref has no items, its value may"),
    NO(hand, effect_host, "what it holds may not have been written yet"),
    NO(input, no_rule, NOT_LOOKED_INTO),
    .field = rec_ref_field,
    .put_field = rec_ref_put,
    .equal = rec_itself_equal,
    NO(update, no_rule, "a ref has no items, its value may"),
    NO(assign, raises, "a ref has no items, its value may"),
    NO(store, raises, "a ref has no items, its value may"),
    NO(before_store, raises, "a ref has no items, its value may"),
    NO(add, raises, "refs are not added"),
    NO(contains, raises, "a ref has no items, its value may"),
    NO(walk, loop_sequence, "a ref has no items, its value may"),
    NO(at, loop_sequence, "a ref has no items, its value may"),
    NO(items, no_rule, "a ref has no items, its value may"),
    NO(array, raises, "a ref has no items, its value may"),
    .open = repr_itself,
    NO(call, raises, "a ref has no items, its value may"),
    NO(truth, raises, "a ref has no items, its value may"),
    NO(format, text_value, "a ref has no items, its value may"),
    NO(layout, loop_list, "a ref has no items, its value may"),
    NO(name_of, no_rule, "a ref has no items, its value may"),
    NO(widen, loop_types, "a ref has no items, its value may"),
    NO(take_back, no_rule, "a ref has no items, its value may"),
    NO(unpack, raises, "a ref has no items, its value may"),
};
