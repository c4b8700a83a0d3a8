/* rebuild.c — what an exit's recipes put together: constants, lists, records, ranges, texts, functions (region.c: what
 * is there already). */
#include "tracer/graph/graph.h"

#include <string.h>

static WeftStatus make_const(Vm *vm, const ExitConst *c, Value *out) {
  switch (c->kind) {
    case V_NUM:
      *out = (Value){.kind = V_NUM, .dtype = c->dtype, .flags = c->weak ? VF_WEAK : 0, .bits = c->bits};
      return WEFT_OK;
    case V_DTYPE: *out = value_dtype(c->dtype); return WEFT_OK;
    case V_HOLE: *out = value_hole(); return WEFT_OK;
    case V_TEXT: return text_new(vm, c->text, c->len, out) ? WEFT_OK : WEFT_ERROR;
    case V_FN: return fn_builtin(vm, (u32)c->bits, out) ? WEFT_OK : WEFT_ERROR;
    default: *out = value_nil(); return WEFT_OK;
  }
}

/* The next item; a small array has its own data and does not hold the whole. */
static WeftStatus next_item(Vm *vm, Value all, u64 *pos, Value *out) {
  Array *a = all.kind == V_ARRAY && array_rank(all.array) > 1 ? all.array : NULL;
  if (!a || !array_dense(a) || array_device(a) != DEV_CPU || a->size / array_dims(a)[0] > ROW_ARRAY)
    return vm_seq_next(vm, all, pos, out);
  if (array_new(vm, array_dtype(a), array_rank(a) - 1, array_dims(a) + 1, out) != WEFT_OK) return WEFT_ERROR;
  size_t bytes = (size_t)out->array->size * dtype_bytes(array_dtype(a));
  memcpy(out->array->data, (const u8 *)a->data + (*pos)++ * bytes, bytes);
  return WEFT_OK;
}

/* The first `count` numbers of a dense array behind those of an empty list, at once. False: not so, nothing was
 * done. */
static bool items_of_numbers(Vm *vm, Value all, u64 count, u32 form, Value *list) {
  if (form == ITEMS_texts || all.kind != V_ARRAY || array_rank(all.array) != 1 || !array_dense(all.array) ||
      array_device(all.array) != DEV_CPU)
    return false;
  u32 dtype = array_dtype(all.array);
  if (dtype_bytes(dtype) > 8 || list->list->count || count > UINT32_MAX / 4) return false;
  Value made;
  if (!list_new(vm, (u32)count, &made)) {
    vm_error_forget(vm);
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

/* ---- lists that stay in columns -------------------------------------------------------------- */

typedef struct Columns {
  Value column[ROW_LEAVES];
  u32 count;
  u64 length; /* items that all of them have */
} Columns;

/* Are the recipe's leaves the items of columns? Depth is that of the recipe. */
static bool leaves_columns(const ExitTable *t, RecipeId id, u32 *leaves) {
  const Recipe *r = &t->recipes.data[id];
  if (r->kind == RCP_items) return !r->b && ++*leaves <= ROW_LEAVES;
  if (r->kind == RCP_weak)
    return r->count == 2 && t->recipes.data[t->ids.data[r->first]].kind == RCP_items &&
           leaves_columns(t, t->ids.data[r->first], leaves) && leaves_columns(t, t->ids.data[r->first + 1], leaves);
  if ((r->kind != RCP_list && r->kind != RCP_record) || !r->count) return false;
  for (u32 i = 0; i < r->count; i++)
    if (!leaves_columns(t, t->ids.data[r->first + i], leaves)) return false;
  return true;
}

static WeftStatus take_column(RecipeBuild *b, const Recipe *r, Columns *c, Value *kind) {
  Value n = value_hole(), *at = &c->column[c->count];
  i64 most = -1;
  if (r->count && build_recipe(b, b->graph->exits.ids.data[r->first], &n) != WEFT_OK) return WEFT_ERROR;
  if (r->count && (!num_as_index(n, &most) || most < 0))
    return vm_error(b->vm, EK_unsupported, "a list of an unknown length");
  if (b->value(b->ctx, r->a, at) != WEFT_OK) return WEFT_ERROR;
  c->count++;
  bool plain = at->kind == V_ARRAY && array_rank(at->array) == 1 && array_dense(at->array) &&
               array_device(at->array) == DEV_CPU && dtype_bytes(at->dtype) <= 8;
  u64 size = plain ? (u64)at->array->size : 0; /* else it is taken as too short to be packed */
  if (most >= 0 && (u64)most < size) size = (u64)most;
  if (size < c->length) c->length = size;
  *kind = r->constant == ITEMS_texts ? value_hole()
                           : (Value){.kind = V_NUM, .dtype = at->dtype, .flags = r->constant ? VF_WEAK : 0};
  return WEFT_OK;
}

/* *kind: what the items look like; a hole on failure. */
static WeftStatus take_columns(RecipeBuild *b, RecipeId id, Columns *c, Value *kind) {
  const ExitTable *t = &b->graph->exits;
  const Recipe *r = &t->recipes.data[id];
  Vm *vm = b->vm;
  *kind = value_hole();
  if (r->kind == RCP_items) return take_column(b, r, c, kind);
  if (r->kind == RCP_weak) { /* numbers, and which of them are weak */
    Value flag;
    if (take_columns(b, t->ids.data[r->first], c, kind) != WEFT_OK ||
        take_columns(b, t->ids.data[r->first + 1], c, &flag) != WEFT_OK)
      return WEFT_ERROR;
    kind->aux = 1;
    return WEFT_OK;
  }
  bool record = r->kind == RCP_record, ok = record ? record_new(vm, kind) : list_new(vm, r->count, kind);
  for (u32 i = 0; i < r->count && ok; i++) {
    Value part;
    ok = take_columns(b, t->ids.data[r->first + i], c, &part) == WEFT_OK;
    if (ok) ok = record ? record_set(vm, kind, t->names.data[r->key_first + i], part) : list_push(vm, kind, part);
    if (ok) continue;
    value_drop(vm, *kind);
    *kind = value_hole();
  }
  return ok ? WEFT_OK : WEFT_ERROR;
}

/* The list that stays in the columns of a tree of them. *done: it is long enough for that. */
static WeftStatus leave_packed(RecipeBuild *b, RecipeId tree, Value *out, bool *done) {
  Vm *vm = b->vm;
  u32 leaves = 0;
  Columns c = {.length = UINT32_MAX};
  Value kind = value_hole();
  *done = false;
  if (!b->packs || !leaves_columns(&b->graph->exits, tree, &leaves)) return WEFT_OK;
  WeftStatus status = take_columns(b, tree, &c, &kind);
  if (status == WEFT_OK && c.length && c.length >= (u64)vm->tunables.packed_items && c.length <= UINT32_MAX / 4) {
    *done = true;
    vm->counters.at[STAT_packed_lists]++;
    return list_of_columns(vm, kind, c.column, c.count, (u32)c.length, out) ? WEFT_OK : WEFT_ERROR;
  }
  for (u32 i = 0; i < c.count; i++) value_drop(vm, c.column[i]);
  value_drop(vm, kind);
  return status;
}

/* ---- lists of items -------------------------------------------------------------------------- */

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
    if (next_item(b->vm, all, &pos, &item) != WEFT_OK) goto fail;
    if (r->constant == ITEMS_texts && !text_of_number(b->vm, item.i, &item)) goto fail;
    if (r->constant && value_is_scalar(item)) item.flags |= VF_WEAK;
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

/* ---- lists of trees: a list, or a range, for each leaf of the tree's recipe, then item by item  */

typedef struct Zip {
  Value lists[ZIP_LEAVES];
  u32 count;
  u64 length; /* of the shortest: a range may be longer than any list */
} Zip;

static bool is_column(const Recipe *r) { return r->kind != RCP_list && r->kind != RCP_record; }

static WeftStatus zip_leaves(RecipeBuild *b, RecipeId id, Zip *z) {
  const Recipe *r = &b->graph->exits.recipes.data[id];
  WeftStatus status = WEFT_OK;
  if (is_column(r)) {
    u64 n;
    if (z->count == ZIP_LEAVES) return vm_error(b->vm, EK_unsupported, "a list of large trees");
    if (build_recipe(b, id, &z->lists[z->count]) != WEFT_OK || vm_seq_open(b->vm, z->lists[z->count++], &n) != WEFT_OK)
      return WEFT_ERROR;
    if (z->count == 1 || n < z->length) z->length = n;
    return WEFT_OK;
  }
  for (u32 i = 0; i < r->count && status == WEFT_OK; i++)
    status = zip_leaves(b, b->graph->exits.ids.data[r->first + i], z);
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
  if (again ? !record_new_shape(vm, like.record->shape, out) : record ? !record_new(vm, out)
            : !list_new(vm, r->count, out))
    return WEFT_ERROR;
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
  if (status == WEFT_OK && z.length > UINT32_MAX / 2)
    status = vm_error(b->vm, EK_limit, "a list of %llu items is too long", (unsigned long long)z.length);
  if (status == WEFT_OK && !list_new(b->vm, (u32)z.length, out)) status = WEFT_ERROR;
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

static WeftStatus make_option(RecipeBuild *b, const Recipe *r, Value *out) {
  const RecipeId *parts = &b->graph->exits.ids.data[r->first];
  if (build_recipe(b, parts[1], out) != WEFT_OK) return WEFT_ERROR;
  bool there = out->kind == V_NUM && out->i;
  value_drop(b->vm, *out);
  *out = value_nil();
  return there ? build_recipe(b, parts[0], out) : WEFT_OK;
}

static WeftStatus made(bool ok) { return ok ? WEFT_OK : WEFT_ERROR; }

static WeftStatus make_fn(Vm *vm, const Recipe *r, const Value *parts, Value *out) {
  Env *env = NULL;
  if (!r->code) return vm_error(vm, EK_unsupported, "a function without code cannot be made");
  if (r->count && !(env = env_new(vm, r->count))) return WEFT_ERROR;
  for (u32 i = 0; i < r->count; i++) env->slots[i] = value_keep(parts[i]);
  return made(fn_closure(vm, r->code, env, out));
}

static WeftStatus make_record(Vm *vm, const Name *keys, const Value *parts, u32 n, Value *out) {
  if (!record_new(vm, out)) return WEFT_ERROR;
  for (u32 i = 0; i < n; i++)
    if (!record_set(vm, out, keys[i], value_keep(parts[i]))) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  return WEFT_OK;
}

static WeftStatus make_points(Vm *vm, const List *list, Value *out) {
  size_t size = sizeof(i64) * ((size_t)list->count + 1);
  i64 *points = mem_alloc(&vm->alloc, size);
  if (!points) return vm_error_memory(vm);
  for (u32 i = 0; i < list->count; i++) points[i] = list->items[i].i;
  bool ok = text_of_points(vm, points, list->count, out);
  mem_free(&vm->alloc, points, size);
  return made(ok);
}

/* A text whose code points lie in a column. *done: so it is. */
static WeftStatus text_of_column(RecipeBuild *b, const Recipe *items, Value *out, bool *done) {
  Columns c = {.length = UINT32_MAX};
  Value kind;
  if (items->kind != RCP_items || items->b) return WEFT_OK;
  WeftStatus status = take_column(b, items, &c, &kind);
  const Array *a = status == WEFT_OK && c.column[0].kind == V_ARRAY ? c.column[0].array : NULL;
  *done = a && array_rank(a) == 1 && array_dtype(a) == DT_i64 && array_dense(a) && array_device(a) == DEV_CPU;
  if (*done) status = made(text_of_points(b->vm, (const i64 *)(const void *)a->data, (u32)c.length, out));
  for (u32 i = 0; i < c.count; i++) value_drop(b->vm, c.column[i]);
  return status;
}

static ValueKind kind_of_part(TextForm form, u32 i) {
  if (form == TEXT_points) return V_LIST;
  return form == TEXT_character || form == TEXT_numbered || (form == TEXT_part && i) ? V_NUM : V_TEXT;
}

static WeftStatus make_text(Vm *vm, const Recipe *r, const Value *parts, Value *out) {
  for (u32 i = 0; i < r->count; i++)
    if (r->a != TEXT_formatted && parts[i].kind != kind_of_part(r->a, i))
      return vm_error(vm, EK_unsupported, "what is joined is no text");
  switch (r->a) {
    case TEXT_formatted: return vm_text(vm, parts[0], parts[1], out);
    case TEXT_character: return made(text_of_point(vm, (u32)parts[0].i, out));
    case TEXT_points: return make_points(vm, parts[0].list, out);
    case TEXT_numbered: return made(text_of_number(vm, parts[0].i, out));
    case TEXT_part:
      if (parts[1].i < 0 || parts[2].i < 0 || parts[1].i > parts[0].text->count ||
          parts[2].i > parts[0].text->count - parts[1].i)
        return vm_error(vm, EK_unsupported, "a part of a text that is not there");
      return made(text_slice(vm, parts[0], parts[1].i, parts[1].i + parts[2].i, 1, out));
    case TEXT_reversed: return made(text_slice(vm, parts[0], (i64)parts[0].text->count - 1, -1, -1, out));
    default: return made(text_concat(vm, parts, r->count, out));
  }
}

/* *out: the number, or the list of them, that was in parts. A number is weak when all the others say so: bools that
 * are true, positions that are 0. */
static WeftStatus make_weak(Vm *vm, Value *parts, u32 n, Value *out) {
  const Value flag = parts[1];
  bool weak = true;
  for (u32 i = 1; i < n; i++) weak &= parts[i].kind == V_NUM && (parts[i].dtype == DT_bool) == (parts[i].i != 0);
  if (parts[0].kind == V_LIST && !list_unique(vm, &parts[0])) return WEFT_ERROR;
  *out = parts[0];
  parts[0] = value_hole();
  if (out->kind == V_LIST && flag.kind == V_LIST)
    for (u32 i = 0; i < out->list->count && i < flag.list->count; i++)
      if (flag.list->items[i].i) out->list->items[i].flags |= VF_WEAK;
  if (value_is_scalar(*out)) out->flags = (u8)(weak ? out->flags | VF_WEAK : out->flags & ~VF_WEAK);
  return WEFT_OK;
}

static WeftStatus make_item(Vm *vm, Value list, Value at, Value *out) {
  i64 i = -1;
  if (list.kind != V_LIST || !num_as_index(at, &i) || i < 0 || i >= list.list->count)
    return vm_error(vm, EK_unsupported, "an item that is not there");
  *out = value_keep(list.list->items[i]);
  return WEFT_OK;
}

static WeftStatus make_split(Vm *vm, const Value *parts, Value *out) {
  bool lists = parts[0].kind == V_LIST && parts[1].kind == V_LIST && parts[2].kind == V_LIST &&
               parts[0].list->count == parts[1].list->count;
  if (!lists) return vm_error(vm, EK_unsupported, "lists of no known lengths");
  const List *starts = parts[0].list, *counts = parts[1].list, *all = parts[2].list;
  if (!list_new(vm, starts->count, out)) return WEFT_ERROR;
  for (u32 i = 0; i < starts->count; i++) {
    i64 at, n;
    Value row;
    bool in = num_as_index(starts->items[i], &at) && num_as_index(counts->items[i], &n) && at >= 0 && n >= 0 &&
              at <= all->count && n <= all->count - at;
    if (!in) (void)vm_error(vm, EK_unsupported, "a list that is not there");
    if (!in || !list_from(vm, all->items + at, (u32)n, &row) || !list_push(vm, out, row)) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

static WeftStatus make_keyed(Vm *vm, const Value *parts, Value *out) {
  if (parts[0].kind != V_LIST || parts[1].kind != V_LIST)
    return vm_error(vm, EK_unsupported, "a record without its numbers");
  const List *order = parts[0].list, *numbers = parts[1].list;
  if (!record_new(vm, out)) return WEFT_ERROR;
  for (u32 i = 0; i < order->count; i++) {
    i64 point = -1;
    bool in = num_as_index(order->items[i], &point) && point >= 0 && point < 0x80 && point < numbers->count;
    const char key = (char)point;
    Name name = in ? name_intern(&vm->names, &key, 1) : 0;
    if (!in) (void)vm_error(vm, EK_unsupported, "a key that is not there");
    else if (!name) (void)vm_error_memory(vm);
    if (!name || !record_set(vm, out, name, value_keep(numbers->items[point]))) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

static WeftStatus put_together(RecipeBuild *b, const Recipe *r, Value *parts, Value *out) {
  Vm *vm = b->vm;
  switch (r->kind) {
    case RCP_list: return made(list_from(vm, parts, r->count, out));
    case RCP_record: return make_record(vm, b->graph->exits.names.data + r->key_first, parts, r->count, out);
    case RCP_text: return make_text(vm, r, parts, out);
    case RCP_fn: return make_fn(vm, r, parts, out);
    case RCP_range:
      for (u32 i = 0; i < 3; i++)
        if (parts[i].kind != V_NUM) return vm_error(vm, EK_unsupported, "a bound of a range is no number");
      return made(range_new(vm, parts[0].i, parts[1].i, parts[2].i, out));
    case RCP_transform: return made(fn_transform(vm, r->a, value_keep(parts[0]), value_keep(parts[1]), out));
    case RCP_weak: return make_weak(vm, parts, r->count, out);
    case RCP_split: return make_split(vm, parts, out);
    case RCP_keyed: return make_keyed(vm, parts, out);
    case RCP_item: return make_item(vm, parts[0], parts[1], out);
    case RCP_ref: return made(ref_new(vm, value_keep(parts[0]), out));
    default: return vm_error(vm, EK_unsupported, "an empty recipe");
  }
}

WeftStatus build_parts(RecipeBuild *b, const Recipe *r, Value *out) {
  Vm *vm = b->vm;
  bool packs = b->packs, done = false;
  if (packs && (r->kind == RCP_items || r->kind == RCP_zip || r->kind == RCP_weak)) {
    RecipeId tree = r->kind == RCP_zip ? b->graph->exits.ids.data[r->first]
                                       : (RecipeId)(r - b->graph->exits.recipes.data);
    if (leave_packed(b, tree, out, &done) != WEFT_OK) return WEFT_ERROR;
    if (done) return WEFT_OK;
  }
  if (r->kind == RCP_text && r->a == TEXT_points) {
    WeftStatus status = text_of_column(b, &b->graph->exits.recipes.data[b->graph->exits.ids.data[r->first]],
                                       out, &done);
    if (done || status != WEFT_OK) return status;
  }
  if (r->kind == RCP_const) return make_const(vm, &b->graph->exits.consts.data[r->constant], out);
  if (r->kind == RCP_items) return make_items(b, r, out);
  if (r->kind == RCP_zip) return make_zip(b, r, out);
  if (r->kind == RCP_option) return make_option(b, r, out);
  Value few[8], *parts = r->count <= COUNT_OF(few) ? few : mem_alloc(&vm->alloc, sizeof *parts * r->count);
  WeftStatus status = parts ? WEFT_OK : vm_error_memory(vm);
  u32 n = 0;
  b->packs = false; /* what is part of another value is not packed */
  for (; n < r->count && status == WEFT_OK; n += status == WEFT_OK)
    status = build_recipe(b, b->graph->exits.ids.data[r->first + n], &parts[n]);
  b->packs = packs;
  if (status == WEFT_OK && !values_boxed(vm, parts, n)) status = WEFT_ERROR;
  if (status == WEFT_OK) status = put_together(b, r, parts, out);
  while (n-- > 0) value_drop(vm, parts[n]);
  if (parts && parts != few) mem_free(&vm->alloc, parts, sizeof *parts * r->count);
  return status;
}
