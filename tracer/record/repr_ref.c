/* repr_ref.c — refs that the trace made: `value` is the number of its cell (Recorder.cells), which holds the content.
 * A ref from outside is an `outer_ref`, whose cell is found by its source (record_cells.c). */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_exit.h"

Av av_ref(Recorder *r, u32 cell) { return av_new(r, (AbsVal){.kind = AV_ref, .value = cell}); }

static bool same(Recorder *r, Av a, Av b) { return av_at(r, a)->value == av_at(r, b)->value; }

static RecipeId recipe(Recorder *r, Av a) {
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

#define NO_ITEMS "a ref has no items, its value may"
const Repr repr_ref = {
    .name = "ref",
    .type = "ref",
    .same = same,
    .recipe = recipe,
    NO(hand, effect_host, "what it holds may not have been written yet"),
    NO(example, no_rule, "a ref that a trace made is no argument"),
    NO(input, no_rule, "the trace makes it"),
    NO(length, raises, NO_ITEMS),
    NO(item, raises, NO_ITEMS),
    NO(slice, raises, NO_ITEMS),
};
