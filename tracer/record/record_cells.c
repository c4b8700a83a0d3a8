/* record_cells.c — what a trace writes beside registers: module variables, contents of refs, the random state.
 *
 * A cell is read through its source when first looked at. Loops and the bodies of constructs carry the cells that they
 * write; one that a body was the first to touch is found again by its path once the body was rolled back. The random
 * state is two cells, the seed and the number of the next draw: a draw is a key made of both, and pure operations. */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_cells.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"

#include <string.h>

/* ---- cells: module variables and refs ------------------------------------------------------------- */

static bool cell_add(Recorder *r, RecCell c, u32 *cell) {
  *cell = r->cells.count;
  if (vec_push(&r->vm->alloc, &r->cells, c)) return true;
  r->failed = true;
  return false;
}

Outcome rec_cell_global(Recorder *r, struct Module *m, u32 slot, u32 *cell) {
  for (u32 i = 0; i < r->cells.count; i++)
    if (r->cells.data[i].module == m && r->cells.data[i].slot == slot) {
      *cell = i;
      return OUT_GO;
    }
  Name name = m->scope.slots.data[slot];
  SourceId s = source_global(&r->g->guards, m, slot, name_text(&r->vm->names, name));
  if (!s) return OUT_FAIL;
  Value now = m->slots[slot].value;
  Av a;
  if (now.kind == V_MODULE || (now.kind == V_FN && now.fn->kind == FN_BUILTIN)) {
    if (!guard_cell(&r->g->guards, s, rec_here(r))) return OUT_FAIL;
    a = av_const(r, now);
    if (a) av_at(r, a)->source = s;
  } else {
    a = av_lazy(r, s, now);
  }
  if (!a || !cell_add(r, (RecCell){.source = s, .module = m, .slot = slot, .value = a, .first = a}, cell))
    return OUT_FAIL;
  return OUT_GO;
}

Av rec_cell_clean(Recorder *r, u32 i) {
  const RecCell *c = &r->cells.data[i];
  if (c->source && c->source < r->source_av.count && r->source_av.data[c->source]) return r->source_av.data[c->source];
  return c->source ? c->first : c->dirty ? 0 : c->value;
}

Outcome rec_cell_ref(Recorder *r, Av ref, u32 *cell) {
  ref = av_force(r, ref);
  if (!ref) return OUT_FAIL;
  const AbsVal *v = av_at(r, ref);
  if (kind_is_made_ref(v->kind)) {
    *cell = v->value;
    return OUT_GO;
  }
  if (!kind_is_outer_ref(v->kind))
    return rec_stuck(r, REASON_raises, "%s has no cell", av_kind_text(r, ref));
  SourceId s = v->source;
  Value now = v->konst;
  Value content = now.ref->value;
  SourceId inside = source_step(&r->g->guards, s, SRC_value, 0, NULL);
  if (!inside) return OUT_FAIL;
  for (u32 i = 0; i < r->cells.count; i++) {
    RecCell *c = &r->cells.data[i];
    if (c->source == inside) {
      *cell = i;
      return OUT_GO;
    }
    /* two refs that may be one: the trace relies on which they are */
    if (c->source && r->g->guards.sources.items.data[c->source].kind == SRC_value) {
      SourceId other = r->g->guards.sources.items.data[c->source].parent;
      Value that;
      if (!source_read(r->vm, &r->g->guards, r->origin, other, &that)) return OUT_FAIL;
      bool same = that.ref == now.ref;
      if (!guard_ident(&r->g->guards, other, s, same, rec_here(r))) return OUT_FAIL;
      if (same) {
        *cell = i;
        return OUT_GO;
      }
    }
  }
  Av a = av_lazy(r, inside, content);
  return a && cell_add(r, (RecCell){.source = inside, .value = a, .first = a}, cell) ? OUT_GO : OUT_FAIL;
}

/* ---- the random state --------------------------------------------------------------------------------- */

bool random_state_read(Vm *vm, u32 id, Value *out) {
  *out = value_i64((i64)(id == HOST_random_key ? vm->random_key : vm->random_counter));
  return id <= HOST_random_counter;
}

void random_state_write(Vm *vm, u32 id, Value v) {
  if (id == HOST_random_key) vm->random_key = v.u;
  else vm->random_counter = v.u;
}

static Outcome cell_host(Recorder *r, u32 id, u32 *cell) {
  r->g->guards.host_read = random_state_read;
  SourceId s = source_root(&r->g->guards, SRC_host, id);
  if (!s) return OUT_FAIL;
  for (u32 i = 0; i < r->cells.count; i++)
    if (r->cells.data[i].source == s) {
      *cell = i;
      return OUT_GO;
    }
  Value now;
  if (!random_state_read(r->vm, id, &now)) return OUT_FAIL;
  Av a = av_lazy(r, s, now);
  return a && cell_add(r, (RecCell){.source = s, .value = a, .first = a}, cell) ? OUT_GO : OUT_FAIL;
}

static Outcome random_seed(Recorder *r, Av n, Av *out) {
  u32 key, counter;
  ValueId v = av_value(r, n);
  const ArrayType *t = v ? value_type(r->g, v) : NULL;
  if (!t || t->rank || dtype_kind(t->dtype) != DK_INT) return rec_stuck(r, REASON_raises, "seed takes an integer");
  Outcome o = cell_host(r, HOST_random_key, &key);
  if (o == OUT_GO) o = cell_host(r, HOST_random_counter, &counter);
  Av seed = av_num(r, graph_convert(r->g, v, DT_i64)), zero = av_const(r, value_i64(0));
  if (o == OUT_GO && (!seed || !zero)) o = OUT_FAIL;
  if (o == OUT_GO) o = rec_cell_write(r, key, seed);
  if (o == OUT_GO) o = rec_cell_write(r, counter, zero);
  return o == OUT_GO ? rec_made(r, av_const(r, value_nil()), out) : o;
}

/* seed, rand, randn. A draw takes the next number of the stream, whatever it draws. */
Outcome rec_random(Recorder *r, u32 op, const Av *params, Av *out) {
  if (op == OP_seed) return random_seed(r, params[0], out);
  u32 key, counter;
  Outcome o = cell_host(r, HOST_random_key, &key);
  if (o == OUT_GO) o = cell_host(r, HOST_random_counter, &counter);
  if (o != OUT_GO) return o;
  Av now = r->cells.data[counter].value, next, derived, drawn, one = av_const(r, value_i64(1));
  Av state[OP_MAX_PARAMS] = {r->cells.data[key].value, now};
  if ((o = rec_op(r, OP_random_stream, state, &derived)) != OUT_GO) return o;
  u32 drawing = op == OP_rand ? OP_random_uniform : OP_random_normal;
  Av draw[OP_MAX_PARAMS] = {derived, params[0]};
  draw[op_param(drawing, "dtype")] = params[1];
  if ((o = rec_op(r, drawing, draw, &drawn)) != OUT_GO) return o;
  if ((o = rec_binary(r, BC_add, now, one, &next)) != OUT_GO) return o;
  if (MECHANISM(r->vm, draws_move_on)) o = rec_cell_write(r, counter, next);
  return o == OUT_GO ? rec_made(r, drawn, out) : o;
}

/* ---- cells found again ---------------------------------------------------------------------------------- */

void rec_cell_path(Recorder *r, u32 cell, RecCellPath *path) {
  const RecCell *c = &r->cells.data[cell];
  const SourceTree *t = &r->g->guards.sources;
  *path = (RecCellPath){.cell = cell};
  for (SourceId s = c->source; s; s = t->items.data[s].parent) {
    if (path->count == COUNT_OF(path->steps)) {
      path->count = 0;
      return;
    }
    const Source *x = &t->items.data[s];
    path->steps[path->count++] = (RecCellStep){x->kind, x->index,
                                               x->kind == SRC_global ? t->modules.data[x->module] : NULL};
  }
}

Outcome rec_cell_again(Recorder *r, const RecCellPath *path, u32 *cell) {
  if (!path->count) { /* a ref that the trace made: it is there unless the body made it */
    *cell = path->cell;
    return path->cell < r->cells.count ? OUT_GO : rec_stuck(r, REASON_loop_types, "a ref that is made in a loop");
  }
  GuardSet *g = &r->g->guards;
  u32 at = path->count - 1;
  RecCellStep root = path->steps[at];
  SourceId s = 0;
  Value now;
  Av a = 0;
  if (root.kind == SRC_host) return cell_host(r, root.index, cell);
  if (root.kind == SRC_global) {
    Outcome o = rec_cell_global(r, root.module, root.index, cell);
    if (o != OUT_GO || at == 0) return o;
    s = r->cells.data[*cell].source;
  } else {
    s = source_root(g, (SourceKind)root.kind, root.index);
  }
  while (s) {
    if (!source_read(r->vm, g, r->origin, s, &now)) return rec_stuck(r, REASON_loop_types, "a ref that is gone");
    if (!(a = av_force(r, av_lazy(r, s, now)))) return OUT_FAIL;
    const RecCellStep step = path->steps[--at];
    if (at == 0) return rec_cell_ref(r, a, cell);
    s = source_step(g, s, (SourceKind)step.kind, step.index,
                    step.kind == SRC_field ? name_text(&r->vm->names, step.index) : NULL);
  }
  return OUT_FAIL;
}

/* ---- cells that the body of a construct writes ------------------------------------------------------------ */

bool rec_cells_save(Recorder *r, RecCellSet *set) {
  rec_cells_free(r, set);
  set->before_count = r->cells.count;
  set->before = mem_alloc(&r->vm->alloc, sizeof *set->before * (r->cells.count + 1));
  if (!set->before) return !(r->failed = true);
  for (u32 i = 0; i < r->cells.count; i++) set->before[i] = r->cells.data[i].value;
  return true;
}

void rec_cells_free(Recorder *r, RecCellSet *set) {
  if (set->before) mem_free(&r->vm->alloc, set->before, sizeof *set->before * (set->before_count + 1));
  set->before = NULL;
}

Outcome rec_cells_find(Recorder *r, RecCellSet *set) {
  for (u32 i = 0; i < set->count; i++) {
    Outcome o = rec_cell_again(r, &set->paths[i], &set->cells[i]);
    if (o != OUT_GO) return o;
  }
  return OUT_GO;
}

/* Cells written since rec_cells_save that are not in the set come into it. */
Outcome rec_cells_grow(Recorder *r, RecCellSet *set, bool *grown) {
  for (u32 i = 0; i < r->cells.count; i++) {
    RecCell *c = &r->cells.data[i];
    Av was = i < set->before_count ? set->before[i] : rec_cell_clean(r, i);
    if (c->value == was || (c->source && !c->dirty)) continue;
    if (!c->source && i >= set->before_count) continue; /* made by the body, and gone with it */
    bool known = false;
    for (u32 k = 0; k < set->count && !known; k++) known = set->cells[k] == i;
    if (known) continue;
    if (set->count == COUNT_OF(set->cells))
      return rec_stuck(r, REASON_construct_body, "a body that writes many variables");
    rec_cell_path(r, i, &set->paths[set->count]);
    set->cells[set->count++] = i;
    *grown = true;
  }
  return OUT_GO;
}

Outcome rec_cells_none(Recorder *r, const RecCellSet *set, const char *who) {
  RecCellSet none = *set;
  bool grown = false;
  none.count = 0;
  Outcome o = rec_cells_grow(r, &none, &grown);
  return o == OUT_GO && grown ? rec_stuck(r, REASON_construct_body, "a function of %s writes a variable", who) : o;
}

/* Puts back what was there at rec_cells_save. */
void rec_cells_undo(Recorder *r, const RecCellSet *set) {
  for (u32 i = 0; i < r->cells.count; i++)
    r->cells.data[i].value = i < set->before_count ? set->before[i] : rec_cell_clean(r, i);
}

Av rec_cells_with(Recorder *r, const RecCellSet *set, Av tree) {
  Av items[1 + CELL_SET_MAX] = {tree};
  if (!set->count) return tree;
  for (u32 i = 0; i < set->count; i++)
    if (!(items[1 + i] = av_force(r, r->cells.data[set->cells[i]].value))) return 0;
  Av both = av_list(r, items, set->count + 1);
  if (both) av_at(r, both)->op = BESIDE_CELLS;
  return both;
}

bool rec_cell_leaves(Recorder *r, u32 cell, AvVec *out) { return carry_leaves(r, r->cells.data[cell].value, out); }

Av rec_cells_enter(Recorder *r, const RecCellSet *set, Av both) {
  if (!set->count) return both;
  for (u32 i = 0; i < set->count; i++) {
    RecCell *c = &r->cells.data[set->cells[i]];
    c->value = av_item(r, both, 1 + i);
    c->dirty = true;
  }
  return av_item(r, both, 0);
}

Outcome rec_cells_take(Recorder *r, const RecCellSet *set, Av both, Av *state) {
  *state = set->count ? av_item(r, both, 0) : both;
  for (u32 i = 0; i < set->count; i++) {
    Outcome o = rec_cell_write(r, set->cells[i], av_item(r, both, 1 + i));
    if (o != OUT_GO) return o;
  }
  return OUT_GO;
}
