/* leave.c — leaving a region: values by recipe, journal replayed, frames rebuilt (see exits.h). */
#include "lang/mechanisms.h"
#include "tracer/record/record_cells.h"
#include "tracer/exit/leave.h"

typedef struct Leaving {
  Vm *vm;
  Region *region;
  u32 exit;
  u64 *slots;
  GraphRun run; /* computes what was fused away; made when first needed */
  bool running;
} Leaving;

/* The slot that holds a value when the exit is taken, NULL: none. */
static const u64 *bound_slot(const Leaving *l, u32 value) {
  const RegionExit *e = &l->region->exits[l->exit];
  for (u32 i = 0; i < e->bind_count; i++) {
    const RegionBind *b = &l->region->binds[e->bind_first + i];
    if (b->value == value) return b->slot == BIND_NODE ? NULL : &l->slots[b->slot];
  }
  return NULL;
}

enum { SYMBOLS_FEW = 64 };

typedef struct Symbols {
  const Leaving *leaving;
  i64 known[SYMBOLS_FEW];
  bool all;
} Symbols;

/* A symbol that is an input of its own, or the size of what lies in a slot. */
static void find_symbol(void *ctx, u32 sym) {
  Symbols *s = ctx;
  const Leaving *l = s->leaving;
  const Graph *g = l->region->graph;
  const SizeSym *x = &g->sizes.syms.data[sym];
  if (!s->all || sym >= SYMBOLS_FEW) {
    s->all = false;
    return;
  }
  for (u32 i = 0; i < g->guards.inputs.count; i++)
    if (g->guards.inputs.data[i].form == IN_size && g->guards.inputs.data[i].sym == sym) {
      s->known[sym] = (i64)l->slots[i];
      return;
    }
  const u64 *slot = x->unbacked ? bound_slot(l, x->source) : NULL;
  Value v = slot ? value_of_slot(g, x->source, *slot) : value_hole();
  s->all = v.kind == V_NUM || (v.kind == V_ARRAY && v.array && x->axis < array_rank(v.array));
  if (s->all) s->known[sym] = v.kind == V_NUM ? v.i : v.array->geometry[x->axis];
}

/* Most sizes are told without the graph interpreter. */
static bool size_at_once(const Leaving *l, Dim d, i64 *out) {
  Symbols s = {.leaving = l, .all = true};
  const SizePool *sizes = &l->region->graph->sizes;
  size_symbols(sizes, d, find_symbol, &s);
  return s.all && size_eval_wrapped(sizes, d, s.known, out);
}

static WeftStatus start_run(Leaving *l) {
  if (l->running) return WEFT_OK;
  const Graph *g = l->region->graph;
  if (run_init(&l->run, l->vm, g) != WEFT_OK) return WEFT_ERROR;
  l->running = true;
  run_inputs(&l->run, l->slots);
  const RegionExit *e = &l->region->exits[l->exit];
  for (u32 i = 0; i < e->bind_count; i++) {
    const RegionBind *b = &l->region->binds[e->bind_first + i];
    if (b->slot == BIND_NODE) continue;
    Value v = value_of_slot(g, b->value, l->slots[b->slot]);
    if (v.kind == V_NUM || l->slots[b->slot]) run_set(&l->run, b->value, value_keep(v));
  }
  return WEFT_OK;
}

static WeftStatus leave_value(void *ctx, u32 value, Value *out) {
  Leaving *l = ctx;
  const Graph *g = l->region->graph;
  if (value_const(g, value, out)) return WEFT_OK;
  const u64 *slot = bound_slot(l, value);
  if (slot) {
    Value v = value_of_slot(g, value, *slot);
    /* behind its last use, at a limit */
    if (v.kind == V_ARRAY && !v.array)
      return vm_error(l->vm, EK_unsupported, "a value that a region needs again is gone");
    *out = value_keep(v);
    return WEFT_OK;
  }
  bool size = g->values.data[value].origin == GV_size;
  i64 n;
  bool known = size && size_at_once(l, g->values.data[value].dim, &n);
  if (!known && start_run(l) != WEFT_OK) return WEFT_ERROR;
  if (size) {
    const ArrayType *t = value_type(g, value);
    if (!known && run_size(&l->run, g->values.data[value].dim, &n) != WEFT_OK) return WEFT_ERROR;
    *out = t->weak ? value_weak_i64(n) : value_i64(n);
    return WEFT_OK;
  }
  if (run_value(&l->run, value, out) != WEFT_OK) return WEFT_ERROR;
  value_keep(*out);
  return WEFT_OK;
}

static WeftStatus leave_size(void *ctx, Dim d, i64 *out) {
  Leaving *l = ctx;
  if (size_at_once(l, d, out)) return WEFT_OK;
  return start_run(l) == WEFT_OK ? run_size(&l->run, d, out) : WEFT_ERROR;
}

static void drop_slots(Leaving *l) {
  const RegionExit *e = &l->region->exits[l->exit];
  for (u32 i = 0; i < e->bind_count; i++) {
    const RegionBind *b = &l->region->binds[e->bind_first + i];
    if (b->slot == BIND_NODE || !l->slots[b->slot]) continue;
    Value v = value_of_slot(l->region->graph, b->value, l->slots[b->slot]);
    bool again = false; /* two values may be bound to one slot */
    for (u32 k = 0; k < i && !again; k++) again = l->region->binds[e->bind_first + k].slot == b->slot;
    if (!again) value_drop(l->vm, v);
  }
}

/* Writes a module variable or the content of a ref. Consumes v when it could. */
static bool journal_store(Vm *vm, const Graph *g, const Frame *frame, SourceId target, Value v) {
  const Source *s = &g->guards.sources.items.data[target];
  if (s->kind == SRC_global) {
    struct Module *m = g->guards.sources.modules.data[s->module];
    ModuleSlot *slot = &m->slots[s->index];
    Value old = slot->value;
    slot->value = v;
    if (old.kind == V_FN || old.kind == V_MODULE || v.kind == V_FN || v.kind == V_MODULE) slot->version++;
    value_drop(vm, old);
    return true;
  }
  if (s->kind == SRC_host) {
    random_state_write(vm, s->index, v);
    return true;
  }
  Value ref;
  if (s->kind != SRC_value || !source_read(vm, &g->guards, frame, s->parent, &ref) || ref.kind != V_REF) return false;
  Value old = ref.ref->value;
  ref.ref->value = v;
  value_drop(vm, old);
  return true;
}

/* The exit returns one value, which lies in the one slot that it binds: what most regions end by. */
static bool is_quick(const Region *region, u32 exit) {
  const ExitTable *t = &region->graph->exits;
  const Exit *e = &t->exits.data[exit];
  const ExitFrame *f = &t->frames.data[e->frame_first];
  const RegionExit *x = &region->exits[exit];
  if (e->kind != EXIT_return || e->journal || e->frame_count != 1 || f->frame || f->self || f->count != 1 ||
      x->bind_count != 1)
    return false;
  const Recipe *r = &t->recipes.data[t->regs.data[f->first].recipe];
  const RegionBind *b = &region->binds[x->bind_first];
  return t->regs.data[f->first].reg == REG_RESULT && r->kind == RCP_value && b->value == r->a && b->slot != BIND_NODE;
}

/* All values of the exit, those of frames before those of the journal: recipes read the frame as it was. What was
 * made is in values[0 … *made-1], also when that is not all. */
static WeftStatus build_all(RecipeBuild *b, const Exit *e, const JournalId *path, u32 depth, Value *values, u32 *made,
                            u32 *written) {
  Vm *vm = b->vm;
  const Graph *g = b->graph;
  const ExitTable *table = &g->exits;
  WeftStatus status = WEFT_OK;
  *made = 0;
  for (u32 i = 0; i < e->frame_count && status == WEFT_OK; i++) {
    const ExitFrame *f = &table->frames.data[e->frame_first + i];
    values[*made] = value_nil();
    if (f->self) status = build_recipe(b, f->self, &values[*made]);
    *made += status == WEFT_OK;
    for (u32 k = 0; k < f->count && status == WEFT_OK; k++) {
      status = build_recipe(b, table->regs.data[f->first + k].recipe, &values[*made]);
      *made += status == WEFT_OK;
    }
  }
  *written = *made;
  for (u32 i = 0; i < depth && status == WEFT_OK; i++) {
    status = build_recipe(b, table->journal.data[path[i]].value, &values[*made]);
    *made += status == WEFT_OK;
    if (status == WEFT_OK && g->guards.sources.items.data[table->journal.data[path[i]].target].kind != SRC_global &&
        !value_boxed(vm, values[*made - 1]))
      status = WEFT_ERROR;
  }
  return status;
}

WeftStatus region_leave(Tracer *t, Region *region, u32 exit, u64 *slots, bool *returns) {
  Vm *vm = t->vm;
  Graph *g = region->graph;
  const ExitTable *table = &g->exits;
  const Exit *e = &table->exits.data[exit];
  u32 root = vm->frame_count - 1;
  RegionExit *quick = &region->exits[exit];
  if (UNLIKELY(!quick->quick)) {
    const RegionBind *b = &region->binds[quick->bind_first];
    quick->quick = is_quick(region, exit) ? 1 : 2;
    if (quick->quick == 1) {
      quick->slot = b->slot;
      quick->returned = value_of_slot(g, b->value, 0);
    }
  }
  if (LIKELY(quick->quick == 1)) {
    leave_quick(vm, quick, slots);
    *returns = true;
    return WEFT_OK;
  }
  u64 overdraft = overdraft_begin(vm);
  Leaving leaving = {.vm = vm, .region = region, .exit = exit, .slots = slots};
  RecipeBuild build;
  *returns = false;
  WeftStatus status = build_init(&build, vm, g, &vm->frames[root]);
  Value few[32], *values = NULL;
  u32 total = 0, made = 0, written = 0;
  for (u32 i = 0; i < e->frame_count; i++) total += table->frames.data[e->frame_first + i].count + 1;
  u32 depth = journal_depth(table, e->journal);
  JournalId path_small[32], *path = depth <= COUNT_OF(path_small) ? path_small : NULL;
  if (status == WEFT_OK) {
    build.value = leave_value;
    build.size = leave_size;
    build.ctx = &leaving;
    build.packs = true;
    values = total + depth <= COUNT_OF(few) ? few : mem_alloc(&vm->alloc, sizeof *values * (total + depth));
    if (!path) path = mem_alloc(&vm->alloc, sizeof *path * depth);
    if (!values || !path) status = vm_error_memory(vm);
  }
  if (status == WEFT_OK) {
    if (depth) journal_path(table, e->journal, path);
    status = build_all(&build, e, path, depth, values, &made, &written);
    if (status != WEFT_OK && vm->error.out_of_memory) { /* once more, with what only cycles hold */
      vm_error_forget(vm);
      while (made) value_drop(vm, values[--made]);
      build_free(&build);
      ref_collect(vm);
      status = build_all(&build, e, path, depth, values, &made, &written);
    }
  }
  bool begun = status == WEFT_OK;
  if (status == WEFT_OK) { /* from here on nothing can fail but pushing frames */
    for (u32 i = 0; i < depth; i++) {
      const JournalEntry *j = &table->journal.data[path[i]];
      Value v = values[written + i];
      values[written + i] = value_nil();
      if (!MECHANISM(vm, writes_are_replayed) || !journal_store(vm, g, &vm->frames[root], j->target, v))
        value_drop(vm, v);
    }
    u32 at = 0;
    for (u32 i = 0; i < e->frame_count && status == WEFT_OK; i++) {
      const ExitFrame *f = &table->frames.data[e->frame_first + i];
      Value self = values[at];
      values[at++] = value_nil();
      bool result = f->count == 1 && table->regs.data[f->first].reg == REG_RESULT;
      if (i == 0 && result) {
        value_drop(vm, self);
        vm_return(vm, values[at]);
        values[at++] = value_nil();
        *returns = true;
        break;
      }
      if (i > 0) {
        const GraphFrame *gf = &g->frames.data[f->frame];
        vm->frames[vm->frame_count - 1].flags |= FRAME_RESUME;
        if (!frame_push(vm, self, gf->code, f->result, 0)) {
          status = WEFT_ERROR;
          break;
        }
      }
      bool replaced = i == 0 && f->frame != 0; /* the frame that entered called in tail position */
      if (replaced) {
        Frame old = vm->frames[root];
        frame_pop(vm);
        if (!frame_push(vm, self, g->frames.data[f->frame].code, old.result,
                        old.flags & (u16)~(FRAME_MODULE | FRAME_AWAITS))) {
          status = WEFT_ERROR;
          break;
        }
        vm->frames[root].tail_calls = old.tail_calls;
      } else if (i == 0) {
        value_drop(vm, self);
      }
      Frame *frame = &vm->frames[vm->frame_count - 1];
      u32 nregs = frame->code->proto->nregs;
      if (i == 0 && !replaced)
        for (u32 k = 0; k < nregs; k++) {
          value_drop(vm, frame->base[k]);
          frame->base[k] = value_nil();
        }
      for (u32 k = 0; k < f->count; k++) {
        u32 reg = table->regs.data[f->first + k].reg;
        value_drop(vm, frame->base[reg]);
        frame->base[reg] = values[at];
        values[at++] = value_nil();
      }
      frame->pc = f->pc;
      frame->tail_calls = f->tail_calls + (i == 0 ? frame->tail_calls : 0);
    }
  }
  for (u32 i = 0; i < made; i++) value_drop(vm, values[i]);
  if (values && values != few) mem_free(&vm->alloc, values, sizeof *values * (total + depth));
  if (path && path != path_small) mem_free(&vm->alloc, path, sizeof *path * depth);
  build_free(&build);
  if (leaving.running) run_free(&leaving.run);
  drop_slots(&leaving);
  overdraft_end(vm, overdraft);
  /* the frames are neither what they were nor what the exit says */
  if (status != WEFT_OK && begun && vm->error.out_of_memory) vm->error.final = true;
  return status;
}

WeftStatus region_leave_early(Vm *vm, Region *region, u32 exit, u64 *slots) {
  ErrorState held = vm->error; /* that a host function may ignore */
  Pending *p = vm->pending;
  bool returns;
  vm->error = (ErrorState){0};
  p->left = true;
  p->failed = region_leave(tracer_of(vm), region, exit, slots, &returns) != WEFT_OK;
  if (p->failed) {
    ErrorState refused = vm->error;
    vm->error = held;
    vm_error_forget(vm);
    vm->error = refused;
    return WEFT_ERROR;
  }
  vm->error = held;
  return WEFT_OK;
}
