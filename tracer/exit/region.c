/* region.c — regions as exits.h describes them: making and freeing, where values lie, building values by recipe (those
 * of parts: rebuild.c). */
#include <string.h>

#include "lang/mechanisms.h"
#include "tracer/graph/graph.h"

Region *region_new(Vm *vm, Graph *g) {
  Region *r = mem_alloc_zero(&vm->alloc, sizeof *r);
  if (!r) {
    graph_free(g);
    return NULL;
  }
  r->graph = g;
  r->name = g->name;
  r->exit_count = g->exits.exits.count;
  r->exits = mem_alloc_zero(&vm->alloc, sizeof *r->exits * (r->exit_count + 1));
  for (u32 i = 0; i < g->frames.count && r->exits; i++) r->code_count += g->frames.data[i].code != NULL;
  r->codes = r->exits ? mem_alloc(&vm->alloc, sizeof *r->codes * (r->code_count + 1)) : NULL;
  if (!r->codes) {
    region_free(vm, r);
    return NULL;
  }
  u32 n = 0;
  for (u32 i = 0; i < g->frames.count; i++)
    if (g->frames.data[i].code) r->codes[n++] = g->frames.data[i].code->id;
  return r;
}

void region_free(Vm *vm, Region *r) {
  if (!r || !MECHANISM(vm, freed_regions)) return;
  if (r->destroy) r->destroy(vm, r);
  mem_free(&vm->alloc, r->exits, sizeof *r->exits * (r->exit_count + 1));
  mem_free(&vm->alloc, r->binds, sizeof *r->binds * r->bind_cap);
  mem_free(&vm->alloc, r->codes, sizeof *r->codes * (r->code_count + 1));
  graph_free(r->graph);
  mem_free(&vm->alloc, r, sizeof *r);
}

bool region_bind(Vm *vm, Region *r, u32 exit, const RegionBind *binds, u32 count) {
  if (exit >= r->graph->exits.exits.count) return false;
  if (r->graph->exits.exits.count != r->exit_count) { /* a backend's rewrites made exits */
    u32 now = r->graph->exits.exits.count;
    RegionExit *p = mem_resize(&vm->alloc, r->exits, sizeof *p * (r->exit_count + 1), sizeof *p * (now + 1));
    if (!p) return false;
    if (now > r->exit_count) memset(p + r->exit_count, 0, sizeof *p * (now + 1 - r->exit_count));
    r->exits = p;
    r->exit_count = now;
  }
  if (!vec_reserve(&vm->alloc, (void **)&r->binds, &r->bind_cap, r->bind_count + count, sizeof *r->binds)) return false;
  mem_copy(r->binds + r->bind_count, binds, sizeof *binds * count);
  r->exits[exit].bind_first = r->bind_count;
  r->exits[exit].bind_count = count;
  r->bind_count += count;
  return true;
}

/* ---- slots ----------------------------------------------------------------------------------------- */

u64 slot_of_value(Value v) { return v.kind == V_NUM ? v.bits : v.flags & VF_COUNTED ? (u64)(uintptr_t)v.obj : 0; }

Value value_of_slot(const Graph *g, ValueId v, u64 slot) {
  const ArrayType *t = value_type(g, v);
  if (!t) return value_nil();
  if (type_is_number(t))
    return (Value){.kind = V_NUM, .dtype = t->dtype, .flags = t->weak ? VF_WEAK : 0, .bits = slot};
  Value a = value_obj(V_ARRAY, (void *)(uintptr_t)slot);
  a.dtype = t->dtype;
  if (t->weak) a.flags |= VF_WEAK;
  return a;
}

/* ---- recipes --------------------------------------------------------------------------------------- */

WeftStatus build_init(RecipeBuild *b, Vm *vm, const Graph *g, const Frame *f) {
  b->vm = vm; /* one by one: `few` is filled in as far as it is used, and this is done at each call of a host */
  b->graph = g;
  b->frame = f;
  b->made = NULL;
  b->used = 0;
  b->packs = false;
  return WEFT_OK;
}

void build_free(RecipeBuild *b) {
  u32 count = b->graph->exits.memos;
  for (u32 i = 0; i < b->used; i++) value_drop(b->vm, b->few[i].value);
  for (u32 i = 0; i < count && b->made; i++) value_drop(b->vm, b->made[i]);
  mem_free(&b->vm->alloc, b->made, sizeof *b->made * count);
  b->made = NULL;
  b->used = 0;
}

/* Consumes the value. A graph may have a thousand recipes, most exits make a few of them. */
static WeftStatus keep_made(RecipeBuild *b, u32 memo, Value v) {
  u32 count = b->graph->exits.memos;
  if (!b->made && b->used < COUNT_OF(b->few)) {
    b->few[b->used++] = (RecipeMade){v, memo};
    return WEFT_OK;
  }
  if (!b->made) {
    b->made = mem_alloc(&b->vm->alloc, sizeof *b->made * count);
    if (!b->made) {
      value_drop(b->vm, v);
      return vm_error_memory(b->vm);
    }
    for (u32 i = 0; i < count; i++) b->made[i] = value_hole();
    while (b->used > 0) {
      RecipeMade *m = &b->few[--b->used];
      b->made[m->memo - 1] = m->value;
    }
  }
  b->made[memo - 1] = v;
  return WEFT_OK;
}

static WeftStatus make(RecipeBuild *b, const Recipe *r, Value *out) {
  switch (r->kind) {
    case RCP_value:
    case RCP_arg: return b->value(b->ctx, r->a, out);
    case RCP_complex: {
      Value re, im;
      if (b->value(b->ctx, r->a, &re) != WEFT_OK || b->value(b->ctx, r->b, &im) != WEFT_OK) return WEFT_ERROR;
      return value_complex(b->vm, dtype_complex_of(re.dtype), num_as_f64(re), num_as_f64(im), r->constant, out);
    }
    case RCP_size: {
      i64 n;
      if (b->size(b->ctx, r->dim, &n) != WEFT_OK) return WEFT_ERROR;
      *out = value_weak_i64(n);
      return WEFT_OK;
    }
    case RCP_source:
      if (!b->frame || !source_read(b->vm, &b->graph->guards, b->frame, r->a, out))
        return vm_error(b->vm, EK_unsupported, "a value that a region needs again is gone");
      *out = value_keep(*out);
      return WEFT_OK;
    default: return build_parts(b, r, out);
  }
}

/* Depth is bounded by RECIPE_MAX_DEPTH; a recipe used twice gives the same object. */
WeftStatus build_recipe(RecipeBuild *b, RecipeId id, Value *out) {
  if (!id || id >= b->graph->exits.recipes.count) return vm_error(b->vm, EK_unsupported, "an empty recipe");
  const Recipe *r = &b->graph->exits.recipes.data[id];
  if (!r->memo || !MECHANISM(b->vm, built_once)) return make(b, r, out);
  const Value *made = b->made ? &b->made[r->memo - 1] : NULL;
  for (u32 i = 0; i < b->used && !made; i++)
    if (b->few[i].memo == r->memo) made = &b->few[i].value;
  if (!made || made->kind == V_HOLE) {
    Value v;
    if (make(b, r, &v) != WEFT_OK) return WEFT_ERROR;
    *out = value_keep(v);
    if (keep_made(b, r->memo, v) == WEFT_OK) return WEFT_OK;
    value_drop(b->vm, v);
    return WEFT_ERROR;
  }
  *out = value_keep(*made);
  return WEFT_OK;
}
