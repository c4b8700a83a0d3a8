/* region.c — regions as exits.h describes them: making and freeing, where values lie, building values by recipe. */
#include <string.h>

#include "lang/mechanisms.h"
#include "tracer/graph.h"

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
  if (t->rank == 0 && t->device == DEV_CPU && t->dtype != DT_c128)
    return (Value){.kind = V_NUM, .dtype = t->dtype, .flags = t->weak ? VF_WEAK : 0, .bits = slot};
  Value a = value_obj(V_ARRAY, (void *)(uintptr_t)slot);
  a.dtype = t->dtype;
  return a;
}

/* ---- recipes --------------------------------------------------------------------------------------- */

WeftStatus build_init(RecipeBuild *b, Vm *vm, const Graph *g, const Frame *f) {
  b->vm = vm; /* one by one: `few` is filled in below, as far as it is used, and this is done at each call of a host */
  b->graph = g;
  b->frame = f;
  b->count = g->exits.memos;
  b->made = b->count <= COUNT_OF(b->few) ? b->few : mem_alloc(&vm->alloc, sizeof *b->made * b->count);
  if (!b->made) return vm_error_memory(vm);
  for (u32 i = 0; i < b->count; i++) b->made[i] = value_hole();
  return WEFT_OK;
}

void build_free(RecipeBuild *b) {
  if (!b->made) return;
  for (u32 i = 0; i < b->count; i++) value_drop(b->vm, b->made[i]);
  if (b->made != b->few) mem_free(&b->vm->alloc, b->made, sizeof *b->made * b->count);
  b->made = NULL;
}

static WeftStatus make_const(Vm *vm, const ExitConst *c, Value *out) {
  switch (c->kind) {
    case V_NUM: *out = (Value){.kind = V_NUM, .dtype = c->dtype, .flags = c->weak ? VF_WEAK : 0, .bits = c->bits}; return WEFT_OK;
    case V_DTYPE: *out = value_dtype(c->dtype); return WEFT_OK;
    case V_HOLE: *out = value_hole(); return WEFT_OK;
    case V_TEXT: return text_new(vm, c->text, c->len, out) ? WEFT_OK : WEFT_ERROR;
    case V_FN: return fn_builtin(vm, (u32)c->bits, out) ? WEFT_OK : WEFT_ERROR;
    default: *out = value_nil(); return WEFT_OK;
  }
}

static WeftStatus make_fn(RecipeBuild *b, const Recipe *r, Value *out) {
  const ExitTable *t = &b->graph->exits;
  Env *env = NULL;
  if (!r->code) return vm_error(b->vm, EK_unsupported, "a function without code cannot be made");
  if (r->count) {
    if (!(env = env_new(b->vm, r->count))) return WEFT_ERROR;
    for (u32 i = 0; i < r->count; i++)
      if (build_recipe(b, t->ids.data[r->first + i], &env->slots[i]) != WEFT_OK) {
        env_drop(b->vm, env);
        return WEFT_ERROR;
      }
  }
  return fn_closure(b->vm, r->code, env, out) ? WEFT_OK : WEFT_ERROR;
}

/* The first `count` numbers of a dense array behind those of an empty list, at once. False: not so, nothing was done. */
static bool items_of_numbers(Vm *vm, Value all, u64 count, u32 form, Value *list) {
  if (form == 2 || all.kind != V_ARRAY || array_rank(all.array) != 1 || !array_dense(all.array) || array_device(all.array) != DEV_CPU) return false;
  u32 dtype = array_dtype(all.array);
  if (dtype_bytes(dtype) > 8 || list->list->count || count > UINT32_MAX / 4) return false;
  Value made;
  if (!list_new(vm, (u32)count, &made)) {
    vm_error_clear(vm);
    return false;
  }
  const u8 *at = all.array->data;
  for (u64 i = 0; i < count; i++) {
    made.list->items[i] = num_load(at + i * dtype_bytes(dtype), dtype);
    if (form) made.list->items[i].flags |= VF_WEAK;
  }
  made.list->count = (u32)count;
  value_drop(vm, *list);
  *list = made;
  return true;
}

/* The items of a stacked value behind those of an earlier list. */
static WeftStatus make_items(RecipeBuild *b, const Recipe *r, Value *out) {
  Value all = value_hole(), item;
  u64 count, pos = 0;
  i64 most = -1;
  if (r->count) { /* how many of them count */
    Value n;
    if (build_recipe(b, b->graph->exits.ids.data[r->first], &n) != WEFT_OK) return WEFT_ERROR;
    bool known = num_as_index(n, &most) && most >= 0;
    value_drop(b->vm, n);
    if (!known) return vm_error(b->vm, EK_unsupported, "a list of an unknown length");
  }
  if (r->b ? build_recipe(b, r->b, out) != WEFT_OK : !list_new(b->vm, 0, out)) return WEFT_ERROR;
  if (b->value(b->ctx, r->a, &all) != WEFT_OK || vm_seq_open(b->vm, all, &count) != WEFT_OK) goto fail;
  if (most >= 0 && (u64)most < count) count = (u64)most;
  if (items_of_numbers(b->vm, all, count, r->constant, out)) goto done;
  for (u64 i = 0; i < count; i++) {
    if (vm_seq_next(b->vm, all, &pos, &item) != WEFT_OK) goto fail;
    if (r->constant == 2 && !text_of_number(b->vm, item.i, &item)) goto fail;
    if (r->constant && item.kind == V_NUM) item.flags |= VF_WEAK;
    if (!list_push(b->vm, out, item)) goto fail;
  }
done:
  value_drop(b->vm, all);
  return WEFT_OK;
fail:
  value_drop(b->vm, all);
  value_drop(b->vm, *out);
  *out = value_hole();
  return WEFT_ERROR;
}

/* ---- lists of trees: a list, or a range, for each leaf of the tree's recipe, then item by item ------------------------------- */

typedef struct Zip {
  Value lists[ZIP_LEAVES];
  u32 count;
  u32 length;
} Zip;

static bool is_column(const Recipe *r) { return r->kind != RCP_list && r->kind != RCP_record; }

static WeftStatus zip_leaves(RecipeBuild *b, RecipeId id, Zip *z) {
  const Recipe *r = &b->graph->exits.recipes.data[id];
  WeftStatus status = WEFT_OK;
  if (is_column(r)) {
    u64 n;
    if (z->count == ZIP_LEAVES) return vm_error(b->vm, EK_unsupported, "a list of large trees");
    if (build_recipe(b, id, &z->lists[z->count]) != WEFT_OK || vm_seq_open(b->vm, z->lists[z->count++], &n) != WEFT_OK) return WEFT_ERROR;
    if (z->count == 1 || n < z->length) z->length = (u32)n;
    return WEFT_OK;
  }
  for (u32 i = 0; i < r->count && status == WEFT_OK; i++) status = zip_leaves(b, b->graph->exits.ids.data[r->first + i], z);
  return status;
}

/* One item; *like: the one before it, whose shapes are taken, or a hole. */
static WeftStatus zip_item(RecipeBuild *b, RecipeId id, const Zip *z, u32 *leaf, u32 at, Value like, Value *out) {
  const ExitTable *t = &b->graph->exits;
  const Recipe *r = &t->recipes.data[id];
  Vm *vm = b->vm;
  if (is_column(r)) {
    u64 pos = at;
    return vm_seq_next(vm, z->lists[(*leaf)++], &pos, out);
  }
  bool record = r->kind == RCP_record, again = record && like.kind == V_RECORD;
  if (again ? !record_new_shape(vm, like.record->shape, out) : record ? !record_new(vm, out) : !list_new(vm, r->count, out)) return WEFT_ERROR;
  for (u32 i = 0; i < r->count; i++) {
    Value item, part = again ? like.record->items[i] : like.kind == V_LIST ? like.list->items[i] : value_hole();
    bool ok = zip_item(b, t->ids.data[r->first + i], z, leaf, at, part, &item) == WEFT_OK;
    if (ok && again) out->record->items[i] = item;
    else if (ok) ok = record ? record_set(vm, out, t->names.data[r->key_first + i], item) : list_push(vm, out, item);
    if (!ok) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

static WeftStatus make_zip(RecipeBuild *b, const Recipe *r, Value *out) {
  RecipeId tree = b->graph->exits.ids.data[r->first];
  Zip z = {.count = 0};
  WeftStatus status = zip_leaves(b, tree, &z);
  if (status == WEFT_OK && !list_new(b->vm, z.length, out)) status = WEFT_ERROR;
  else if (status == WEFT_OK) {
    for (u32 i = 0; i < z.length && status == WEFT_OK; i++) {
      u32 leaf = 0;
      Value item;
      status = zip_item(b, tree, &z, &leaf, i, i ? out->list->items[i - 1] : value_hole(), &item);
      if (status == WEFT_OK && !list_push(b->vm, out, item)) status = WEFT_ERROR;
    }
    if (status != WEFT_OK) value_drop(b->vm, *out);
  }
  for (u32 i = 0; i < z.count; i++) value_drop(b->vm, z.lists[i]);
  return status;
}

static WeftStatus make_record(RecipeBuild *b, const Recipe *r, Value *out) {
  const ExitTable *t = &b->graph->exits;
  if (!record_new(b->vm, out)) return WEFT_ERROR;
  for (u32 i = 0; i < r->count; i++) {
    Value item;
    if (build_recipe(b, t->ids.data[r->first + i], &item) != WEFT_OK || !record_set(b->vm, out, t->names.data[r->key_first + i], item)) {
      value_drop(b->vm, *out);
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

static WeftStatus make_list(RecipeBuild *b, const Recipe *r, Value *out) {
  if (!list_new(b->vm, r->count, out)) return WEFT_ERROR;
  for (u32 i = 0; i < r->count; i++) {
    Value item;
    if (build_recipe(b, b->graph->exits.ids.data[r->first + i], &item) != WEFT_OK || !list_push(b->vm, out, item)) {
      value_drop(b->vm, *out);
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

static WeftStatus make_text(RecipeBuild *b, const Recipe *r, Value *out) {
  Vm *vm = b->vm;
  Value *parts = mem_alloc(&vm->alloc, sizeof *parts * (r->count + 1));
  if (!parts) return vm_error_memory(vm);
  u32 n = 0;
  WeftStatus status = WEFT_OK;
  for (; n < r->count && status == WEFT_OK; n += status == WEFT_OK) {
    status = build_recipe(b, b->graph->exits.ids.data[r->first + n], &parts[n]);
    if (status == WEFT_OK && r->a && parts[n].kind != (r->a == 3 ? V_LIST : r->a == 2 || r->a == 4 ? V_NUM : V_TEXT)) {
      value_drop(vm, parts[n]);
      status = vm_error(vm, EK_unsupported, "what is joined is no text");
    }
  }
  if (status == WEFT_OK && r->a == 2) status = text_of_point(vm, (u32)parts[0].i, out) ? WEFT_OK : WEFT_ERROR;
  else if (status == WEFT_OK && r->a == 4) status = text_of_number(vm, parts[0].i, out) ? WEFT_OK : WEFT_ERROR;
  else if (status == WEFT_OK && r->a == 3) status = text_of_points(vm, parts[0].list->items, parts[0].list->count, out) ? WEFT_OK : WEFT_ERROR;
  else if (status == WEFT_OK && !r->a) status = vm_text(vm, parts[0], parts[1], out);
  else if (status == WEFT_OK && !text_concat(vm, parts, n, out)) status = WEFT_ERROR;
  while (n-- > 0) value_drop(vm, parts[n]);
  mem_free(&vm->alloc, parts, sizeof *parts * (r->count + 1));
  return status;
}

static WeftStatus make_weak(RecipeBuild *b, const Recipe *r, Value *out) {
  const u32 *ids = b->graph->exits.ids.data + r->first;
  Value flag, other;
  if (build_recipe(b, ids[1], &flag) != WEFT_OK) return WEFT_ERROR;
  bool weak = flag.kind == V_NUM && (flag.dtype == DT_bool) == (flag.i != 0);
  for (u32 i = 2; i < r->count; i++) {
    if (build_recipe(b, ids[i], &other) != WEFT_OK) return WEFT_ERROR; /* the first is a number, then */
    weak &= (other.dtype == DT_bool) == (other.i != 0);
  }
  WeftStatus status = build_recipe(b, ids[0], out);
  if (status == WEFT_OK && out->kind == V_LIST && !list_unique(b->vm, out)) {
    value_drop(b->vm, *out);
    status = WEFT_ERROR;
  }
  if (status == WEFT_OK && out->kind == V_LIST && flag.kind == V_LIST)
    for (u32 i = 0; i < out->list->count && i < flag.list->count; i++)
      if (flag.list->items[i].i) out->list->items[i].flags |= VF_WEAK;
  if (status == WEFT_OK && out->kind == V_NUM) out->flags = (u8)(weak ? out->flags | VF_WEAK : out->flags & ~VF_WEAK);
  value_drop(b->vm, flag);
  return status;
}

static WeftStatus make(RecipeBuild *b, const Recipe *r, Value *out) {
  const ExitTable *t = &b->graph->exits;
  Vm *vm = b->vm;
  switch (r->kind) {
    case RCP_const: return make_const(vm, &t->consts.data[r->constant], out);
    case RCP_value:
    case RCP_arg: return b->value(b->ctx, r->a, out);
    case RCP_size: {
      i64 n;
      if (b->size(b->ctx, r->dim, &n) != WEFT_OK) return WEFT_ERROR;
      *out = value_weak_i64(n);
      return WEFT_OK;
    }
    case RCP_source:
      if (!b->frame || !source_read(vm, &b->graph->guards, b->frame, r->a, out)) return vm_error(vm, EK_unsupported, "a value that a region needs again is gone");
      *out = value_keep(*out);
      return WEFT_OK;
    case RCP_list: return make_list(b, r, out);
    case RCP_record: return make_record(b, r, out);
    case RCP_items: return make_items(b, r, out);
    case RCP_zip: return make_zip(b, r, out);
    case RCP_text: return make_text(b, r, out);
    case RCP_fn: return make_fn(b, r, out);
    case RCP_range: {
      Value part[3];
      for (u32 i = 0; i < 3; i++) {
        if (build_recipe(b, t->ids.data[r->first + i], &part[i]) != WEFT_OK) return WEFT_ERROR;
        if (part[i].kind != V_NUM) return vm_error(vm, EK_unsupported, "a bound of a range is no number");
      }
      return range_new(vm, part[0].i, part[1].i, part[2].i, out) ? WEFT_OK : WEFT_ERROR;
    }
    case RCP_transform: {
      Value inner, settings;
      if (build_recipe(b, t->ids.data[r->first], &inner) != WEFT_OK) return WEFT_ERROR;
      if (build_recipe(b, t->ids.data[r->first + 1], &settings) != WEFT_OK) {
        value_drop(vm, inner);
        return WEFT_ERROR;
      }
      return fn_transform(vm, r->a, inner, settings, out) ? WEFT_OK : WEFT_ERROR;
    }
    case RCP_weak: return make_weak(b, r, out);
    case RCP_ref: {
      Value content;
      if (build_recipe(b, t->ids.data[r->first], &content) != WEFT_OK) return WEFT_ERROR;
      return ref_new(vm, content, out) ? WEFT_OK : WEFT_ERROR;
    }
    default: return vm_error(vm, EK_unsupported, "an empty recipe");
  }
}

/* Depth is bounded by RECIPE_MAX_DEPTH; a recipe used twice gives the same object. */
WeftStatus build_recipe(RecipeBuild *b, RecipeId id, Value *out) {
  if (!id || id >= b->graph->exits.recipes.count) return vm_error(b->vm, EK_unsupported, "an empty recipe");
  const Recipe *r = &b->graph->exits.recipes.data[id];
  if (!r->memo || !MECHANISM(b->vm, built_once)) return make(b, r, out);
  Value *made = &b->made[r->memo - 1];
  if (made->kind == V_HOLE) {
    WeftStatus status = make(b, r, made);
    if (status != WEFT_OK) {
      *made = value_hole();
      return status;
    }
  }
  *out = value_keep(*made);
  return WEFT_OK;
}
