/* repr_outer.c — values from outside that are known by their source alone: modules, refs, objects of the host; lists
 * and records that were not taken apart, since they are long or change again and again; texts of which it does not
 * matter which they are; whatever else programs hold. `konst` is what stands there now, borrowed. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_run.h"
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

#define NOT_LOOKED_INTO "a value of this kind is known by its source alone"
#define OUTER(row)                                                                                                     \
  .name = row, .type = NULL, .same = repr_same_source, .recipe = repr_source_recipe, .example = repr_source_example
const Repr repr_module = {OUTER("module"), .hand = repr_source_hand, .input = module_input};
const Repr repr_outer_list = {OUTER("outer_list"), .hand = repr_source_hand,
                              NO(input, no_rule, "repr_list reads it, and leaves it closed")};
const Repr repr_outer_record = {OUTER("outer_record"), .hand = repr_source_hand,
                                NO(input, no_rule, "repr_record reads it, and leaves it closed")};
const Repr repr_outer_text = {OUTER("outer_text"), .hand = repr_source_hand,
                              NO(input, no_rule, "repr_known_text reads it, or nobody looks at it")};
const Repr repr_handle = {OUTER("handle"), .hand = repr_source_hand,
                          NO(input, no_rule, NOT_LOOKED_INTO)};
const Repr repr_outer = {OUTER("outer"), .hand = repr_source_hand,
                         NO(input, no_rule, NOT_LOOKED_INTO)};
const Repr repr_outer_ref = {OUTER("outer_ref"),
                             NO(hand, effect_host, "what it holds may not have been written yet"),
                             NO(input, no_rule, NOT_LOOKED_INTO)};
