/* repr_outer.c — values from outside that are known by their source alone: modules, refs, objects of the host; lists
 * and records that were not taken apart, since they are long or change again and again; texts of which it does not
 * matter which they are; whatever else programs hold. `konst` is what stands there now, borrowed. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_columns_whole.h"
#include "tracer/record/repr_keyed.h"
#include "tracer/tracer.h"

bool av_is_opaque(const Recorder *r, Av a) { return av_is_outer_list(r, a) || av_is_outer_record(r, a); }

Outcome av_take_apart(Recorder *r, Av a, Av *out) {
  const AbsVal v = *av_at(r, a);
  const u32 n = v.konst.kind == V_LIST ? v.konst.list->count : v.konst.record->shape->count;
  if (!r->abstract && source_is_open(r->tracer, &r->g->guards, v.source))
    return rec_stuck(r, REASON_data_dependent_shape, "a %s of another length or with other keys again and again",
                     value_type_name(v.konst));
  if (n > OPEN_ITEMS_MAX || r->g->guards.sources.items.count > SOURCES_MAX)
    return rec_stuck(r, REASON_graph_size, "a %s of %u items in a tree", value_type_name(v.konst), n);
  return rec_made(r, v.konst.kind == V_LIST ? av_read_list(r, v.source, v.konst, rec_here(r))
                                            : av_read_record(r, v.source, v.konst, rec_here(r)), out);
}

static Av module_input(Recorder *r, SourceId s, Value v, Span why) {
  if (!guard_const(&r->g->guards, s, v, why)) return 0;
  return av_new(r, (AbsVal){.kind = AV_module, .source = s, .konst = v});
}

/* ---- used -------------------------------------------------------------------------------------------------------- */

/* It is long, and another one in the next run: its length is left open. */
static Outcome length(Recorder *r, Av a, Av *out) {
  const AbsVal v = *av_at(r, a);
  if (!guard_tag(&r->g->guards, v.source, v.konst, false, (Span){0})) return OUT_FAIL;
  return rec_made(r, av_length(r, v.source, v.konst.kind == V_LIST ? v.konst.list->count : v.konst.text->count), out);
}

/* One item of a long list; at a computed place, of its columns. */
static Outcome list_item(Recorder *r, Av a, Av at, Av *out) {
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

static Outcome record_item(Recorder *r, Av a, Av at, Av *out) {
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
};

const Repr repr_outer_list = {
    OUTER("outer_list"),
    .hand = repr_source_hand,
    .length = length,
    .item = list_item,
    .slice = rec_list_slice,
    NO(input, no_rule, "repr_list reads it, and leaves it closed"),
};

const Repr repr_outer_record = {
    OUTER("outer_record"),
    .hand = repr_source_hand,
    .item = record_item,
    NO(length, no_rule, "a record that was not taken apart"),
    NO(slice, raises, "a record has keys, not places"),
    NO(input, no_rule, "repr_record reads it, and leaves it closed"),
};

const Repr repr_outer_text = {
    OUTER("outer_text"),
    .hand = repr_source_hand,
    .length = length,
    .item = text_item,
    .slice = cut_text,
    NO(input, no_rule, "repr_known_text reads it, or nobody looks at it"),
};

const Repr repr_handle = {
    OUTER("handle"),
    .hand = repr_source_hand,
    NO_ITEMS("an object of the host has no items"),
    NO(input, no_rule, NOT_LOOKED_INTO),
};

const Repr repr_outer = {
    OUTER("outer"),
    .hand = repr_source_hand,
    NO(length, no_rule, NOT_LOOKED_INTO),
    NO(item, no_rule, NOT_LOOKED_INTO),
    NO(slice, no_rule, NOT_LOOKED_INTO),
    NO(input, no_rule, NOT_LOOKED_INTO),
};

const Repr repr_outer_ref = {
    OUTER("outer_ref"),
    NO_ITEMS("a ref has no items, its value may"),
    NO(hand, effect_host, "what it holds may not have been written yet"),
    NO(input, no_rule, NOT_LOOKED_INTO),
};
