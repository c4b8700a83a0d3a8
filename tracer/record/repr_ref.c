/* repr_ref.c — refs that the trace made: `value` is the number of its cell (Recorder.cells), which holds the content.
 * A ref from outside is an `outer_ref`, whose cell is found by its source (record_cells.c). */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_cells.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_run.h"

#include <string.h>

Av av_ref(Recorder *r, u32 cell) { return av_new(r, (AbsVal){.kind = AV_ref, .value = cell}); }

static bool ref_same(Recorder *r, Av a, Av b) { return av_at(r, a)->value == av_at(r, b)->value; }

static RecipeId ref_recipe(Recorder *r, Av a) {
  const u32 cell = av_at(r, a)->value;
  if (r->cells.data[cell].open) return 0; /* it holds itself */
  if (r->cells.data[cell].exit == r->exit_number) return r->cells.data[cell].made; /* one ref, wherever it stands */
  r->cells.data[cell].open = true;
  RecipeId content = rec_recipe(r, r->cells.data[cell].value);
  RecCell *c = &r->cells.data[cell];
  c->open = false;
  c->made = content ? recipe_ref(&r->g->exits, content) : 0;
  c->exit = r->exit_number;
  return c->made;
}

/* A ref of either kind: its content. */
Outcome rec_ref_field(Recorder *r, Av a, Name name, Av *out, bool *found) {
  u32 cell;
  if (strcmp(name_text(&r->vm->names, name), "value") != 0)
    return found ? OUT_GO : rec_stuck(r, REASON_raises, "a ref has only `value`");
  Outcome o = rec_cell_ref(r, a, &cell);
  if (found) *found = o == OUT_GO; /* r.value(x) calls what it holds */
  return o == OUT_GO ? rec_made(r, r->cells.data[cell].value, out) : o;
}

Outcome rec_ref_put(Recorder *r, Av a, Name name, Av item, Av *out) {
  u32 cell;
  if (strcmp(name_text(&r->vm->names, name), "value") != 0)
    return rec_stuck(r, REASON_raises, "a ref has only `value`");
  Outcome o = rec_cell_ref(r, a, &cell);
  *out = a;
  return o == OUT_GO ? rec_cell_write(r, cell, item) : o;
}

#define NO_ITEMS "a ref has no items, its value may"
const Repr repr_ref = {
    .name = "ref",
    .type = "ref",
    .same = ref_same,
    .recipe = ref_recipe,
    NO(hand, effect_host, "what it holds may not have been written yet"),
    NO(example, no_rule, "a ref that a trace made is no argument"),
    NO(input, no_rule, "the trace makes it"),
    NO(length, raises, NO_ITEMS),
    NO(item, raises, NO_ITEMS),
    NO(slice, raises, NO_ITEMS),
    .field = rec_ref_field,
    .put_field = rec_ref_put,
    .equal = rec_itself_equal,
    NO(update, no_rule, NO_ITEMS),
    NO(assign, raises, NO_ITEMS),
    NO(store, raises, NO_ITEMS),
    NO(before_store, raises, NO_ITEMS),
    NO(add, raises, "refs are not added"),
    NO(contains, raises, NO_ITEMS),
    NO(walk, loop_sequence, NO_ITEMS),
    NO(at, loop_sequence, NO_ITEMS),
    NO(items, no_rule, NO_ITEMS),
    NO(array, raises, NO_ITEMS),
    .open = repr_itself,
    NO(call, raises, NO_ITEMS),
    NO(truth, raises, NO_ITEMS),
    NO(format, text_value, NO_ITEMS),
    NO(layout, loop_list, NO_ITEMS),
    NO(name_of, no_rule, NO_ITEMS),
    NO(widen, loop_types, NO_ITEMS),
    NO(take_back, no_rule, NO_ITEMS),
    NO(unpack, raises, NO_ITEMS),
};
