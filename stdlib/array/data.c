/* data.c — lists, records, ranges and trees. */
#include "stdlib/args.h"
#include "stdlib/stdlib.h"

#include <string.h>

static WeftStatus made(bool ok) { return ok ? WEFT_OK : WEFT_ERROR; }

WeftStatus eager_len(Vm *vm, Value *args, Value *out) {
  Value v = args[0];
  switch (v.kind) {
    case V_LIST: *out = value_weak_i64(v.list->count); return WEFT_OK;
    case V_RECORD: *out = value_weak_i64(v.record->shape->count); return WEFT_OK;
    case V_TEXT: *out = value_weak_i64(v.text->count); return WEFT_OK;
    case V_RANGE: *out = value_weak_i64((i64)range_count(v.range)); return WEFT_OK;
    case V_ARRAY:
      if (array_rank(v.array)) {
        *out = value_weak_i64(array_dims(v.array)[0]);
        return WEFT_OK;
      }
      return vm_error(vm, EK_type, "len: an array of rank 0 has no length");
    case V_NUM: return vm_error(vm, EK_type, "len: a number has no length");
    default: return args_error(vm, OP_len, 0, v, "a list, record, range, array or text");
  }
}

/* Calls `each` with every item that `for` would walk over in the parameter; items are owned by `each`. */
static WeftStatus each_item(Vm *vm, u32 op, u32 param, Value seq,
                            WeftStatus (*each)(Vm *vm, void *ctx, Value item), void *ctx) {
  u64 count, pos = 0;
  TRY(args_walked(vm, op, param, seq, &count));
  for (u64 i = 0; pos < count; i++) {
    Value item;
    TRY(made(vm_item(vm, i)));
    TRY(vm_seq_next(vm, seq, &pos, &item));
    TRY(each(vm, ctx, item));
  }
  return WEFT_OK;
}

static WeftStatus push_item(Vm *vm, void *ctx, Value item) { return made(list_push(vm, ctx, item)); }

WeftStatus eager_list(Vm *vm, Value *args, Value *out) {
  if (args[0].kind == V_LIST) {
    *out = value_keep(args[0]);
    return WEFT_OK;
  }
  if (!list_new(vm, 8, out)) return WEFT_ERROR;
  WeftStatus status = each_item(vm, OP_list, 0, args[0], push_item, out);
  if (status != WEFT_OK) value_drop(vm, *out);
  return status;
}

static WeftStatus push_pair(Vm *vm, Value *list, Value a, Value b) { /* consumes a, b */
  Value pair;
  if (!list_new(vm, 2, &pair)) {
    value_drop(vm, a);
    value_drop(vm, b);
    return WEFT_ERROR;
  }
  bool ok = list_push(vm, &pair, a);
  if (!ok) value_drop(vm, b);
  ok = ok && list_push(vm, &pair, b);
  if (!ok) {
    value_drop(vm, pair);
    return WEFT_ERROR;
  }
  return made(list_push(vm, list, pair));
}

static WeftStatus push_numbered(Vm *vm, void *ctx, Value item) {
  Value *list = ctx;
  return push_pair(vm, list, value_weak_i64(list->list->count), item);
}

WeftStatus eager_enumerate(Vm *vm, Value *args, Value *out) {
  if (!list_new(vm, 8, out)) return WEFT_ERROR;
  WeftStatus status = each_item(vm, OP_enumerate, 0, args[0], push_numbered, out);
  if (status != WEFT_OK) value_drop(vm, *out);
  return status;
}

/* Rows of one item each, as long as the shortest lasts. counts, pos: of each sequence. */
static WeftStatus zip_rows(Vm *vm, const List *seqs, const u64 *counts, u64 *pos, Value *out) {
  for (u64 k = 0;; k++) {
    bool more = seqs->count > 0;
    TRY(made(vm_item(vm, k)));
    for (u32 i = 0; i < seqs->count; i++) more &= pos[i] < counts[i]; /* of a text both are bytes, not items */
    if (!more) return WEFT_OK;
    Value row;
    if (!list_new(vm, seqs->count, &row)) return WEFT_ERROR;
    for (u32 i = 0; i < seqs->count; i++) {
      Value item;
      if (vm_seq_next(vm, seqs->items[i], &pos[i], &item) != WEFT_OK || !list_push(vm, &row, item)) {
        value_drop(vm, row);
        return WEFT_ERROR;
      }
    }
    if (!list_push(vm, out, row)) return WEFT_ERROR;
  }
}

WeftStatus eager_zip(Vm *vm, Value *args, Value *out) {
  const List *seqs = args[0].list;
  size_t size = sizeof(u64) * (2 * (size_t)seqs->count + 1);
  u64 *counts = mem_alloc_zero(&vm->alloc, size);
  if (!counts) return vm_error_memory(vm);
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < seqs->count && status == WEFT_OK; i++)
    status = args_walked(vm, OP_zip, 0, seqs->items[i], &counts[i]);
  if (status == WEFT_OK) status = list_new(vm, 8, out) ? WEFT_OK : WEFT_ERROR;
  if (status == WEFT_OK && (status = zip_rows(vm, seqs, counts, counts + seqs->count, out)) != WEFT_OK)
    value_drop(vm, *out);
  mem_free(&vm->alloc, counts, size);
  return status;
}

/* ---- records -------------------------------------------------------------------------------------------- */

static WeftStatus need_record(Vm *vm, u32 op, Value v) {
  return v.kind == V_RECORD ? WEFT_OK : args_error(vm, op, 0, v, "a record");
}

WeftStatus eager_keys(Vm *vm, Value *args, Value *out) {
  TRY(need_record(vm, OP_keys, args[0]));
  const Shape *s = args[0].record->shape;
  if (!list_new(vm, s->count, out)) return WEFT_ERROR;
  for (u32 i = 0; i < s->count; i++) {
    Value key;
    if (!vm_item(vm, i) ||
        !text_new(vm, name_text(&vm->names, s->keys[i]), name_len(&vm->names, s->keys[i]), &key) ||
        !list_push(vm, out, key)) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

WeftStatus eager_values(Vm *vm, Value *args, Value *out) {
  TRY(need_record(vm, OP_values, args[0]));
  const Record *r = args[0].record;
  if (!list_new(vm, r->shape->count, out)) return WEFT_ERROR;
  for (u32 i = 0; i < r->shape->count; i++)
    if (!vm_item(vm, i) || !list_push(vm, out, value_keep(r->items[i]))) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  return WEFT_OK;
}

WeftStatus eager_remove(Vm *vm, Value *args, Value *out) {
  TRY(need_record(vm, OP_remove, args[0]));
  if (args[1].kind != V_TEXT) return args_error(vm, OP_remove, 1, args[1], "a text");
  const Text *t = args[1].text;
  Name key;
  vm_worked(vm, t->len);
  bool known = name_known(&vm->names, t->data, t->len, &key);
  Value rec = args[0]; /* changed in place when nobody else holds it */
  args[0] = value_nil();
  bool found = false;
  if (known && !record_remove(vm, &rec, key, &found)) {
    value_drop(vm, rec);
    return WEFT_ERROR;
  }
  if (!found) {
    value_drop(vm, rec);
    return vm_error(vm, EK_key, "remove: the record has no key \"%.*s\"", (int)(t->len > 60 ? 60 : t->len), t->data);
  }
  *out = rec;
  return WEFT_OK;
}

/* ---- functions over items and leaves ---------------------------------------------------------------------- */

static bool is_leaf(Value v) { return v.kind == V_NUM || v.kind == V_ARRAY || v.kind == V_TRACKED; }

typedef struct Mapping {
  Value fn;
  Value *list;
} Mapping;

static WeftStatus map_item(Vm *vm, void *ctx, Value item) {
  Mapping *m = ctx;
  Value y;
  TRY(vm_call(vm, m->fn, &item, 1, &y));
  return made(list_push(vm, m->list, y));
}

WeftStatus eager_map(Vm *vm, Value *args, Value *out) {
  Value list;
  if (args[0].kind != V_FN && args[0].kind != V_DTYPE)
    return vm_error(vm, EK_type, "map: f must be a function, got %s; through a pipe it is xs |> map(f, _)",
                    value_type_name(args[0]));
  if (!list_new(vm, 8, &list)) return WEFT_ERROR;
  Mapping m = {args[0], &list};
  WeftStatus status = each_item(vm, OP_map, 1, args[1], map_item, &m);
  /* results of an array stack again, when all are numbers and arrays */
  bool stacks = status == WEFT_OK && (args[1].kind == V_ARRAY || args[1].kind == V_TRACKED);
  for (u32 i = 0; stacks && i < list.list->count; i++) stacks = is_leaf(list.list->items[i]);
  const Value xs = value_untracked(args[1]);
  const bool numbers = stacks && (!list.list->count || value_is_scalar(value_untracked(list.list->items[0])));
  const u32 device = numbers && xs.kind == V_ARRAY ? array_device(xs.array) : DEV_CPU; /* what xs give lies there */
  if (stacks && args[1].kind == V_TRACKED && list.list->count) {
    Value params[OP_MAX_PARAMS];
    for (u32 i = 0; i < OP_MAX_PARAMS; i++) params[i] = value_hole();
    params[0] = list;
    status = vm_op(vm, OP_stack, params, out);
    value_drop(vm, params[0]);
  } else if (stacks) {
    status = vm_array_literal(vm, list.list->items, list.list->count, out);
    value_drop(vm, list);
  }
  if (stacks && status == WEFT_OK && device != DEV_CPU) {
    Value here = *out;
    status = value_moved(vm, here, device, out);
    value_drop(vm, here);
  }
  if (stacks) return status;
  if (status != WEFT_OK) value_drop(vm, list);
  else *out = list;
  return status;
}

enum { TREE_DEPTH = 200, TREES_FEW = 8 };

static WeftStatus tree_map(Vm *vm, Value fn, const Value *trees, u32 n, u32 depth, Value *parts, Value *out);

/* The same for trees of a level; room for n values that are its own. */
static WeftStatus tree_map_level(Vm *vm, Value fn, const Value *trees, u32 n, u32 depth, Value *out) {
  Value few[TREES_FEW], *parts = n <= TREES_FEW ? few : mem_alloc(&vm->alloc, sizeof *parts * n);
  if (!parts) return vm_error_memory(vm);
  WeftStatus status = tree_map(vm, fn, trees, n, depth, parts, out);
  if (parts != few) mem_free(&vm->alloc, parts, sizeof *parts * n);
  return status;
}

/* Static parts of the first tree stay as they are. */
static WeftStatus tree_map(Vm *vm, Value fn, const Value *trees, u32 n, u32 depth, Value *parts, Value *out) {
  Value t = trees[0];
  if (!cstack_has(CSTACK_CALL)) return vm_error_stack(vm);
  TRY(vm_walk(vm));
  if (depth > TREE_DEPTH) return vm_error(vm, EK_limit, "tree_map: the tree is nested deeper than %d", TREE_DEPTH);
  if (is_leaf(t)) {
    for (u32 i = 0; i < n; i++) parts[i] = value_keep(trees[i]);
    return vm_call(vm, fn, parts, n, out);
  }
  if (t.kind != V_LIST && t.kind != V_RECORD) {
    *out = value_keep(t);
    return WEFT_OK;
  }
  u32 count = t.kind == V_LIST ? t.list->count : t.record->shape->count;
  for (u32 i = 1; i < n; i++) {
    if (trees[i].kind != t.kind)
      return vm_error(vm, EK_type, "tree_map: tree %u has %s where the first has %s", i, value_type_phrase(trees[i]),
                      value_type_phrase(t));
    u32 other = t.kind == V_LIST ? trees[i].list->count : trees[i].record->shape->count;
    if (other != count)
      return vm_error(vm, EK_value, "tree_map: tree %u has %u items where the first has %u", i, other, count);
  }
  if (t.kind == V_LIST ? !list_new(vm, count, out) : !record_new(vm, out)) return WEFT_ERROR;
  for (u32 k = 0; k < count; k++) {
    Value y;
    parts[0] = t.kind == V_LIST ? t.list->items[k] : t.record->items[k];
    Name key = t.kind == V_RECORD ? t.record->shape->keys[k] : 0;
    for (u32 i = 1; i < n; i++) {
      Value *at = t.kind == V_RECORD ? record_find(trees[i].record, key) : &trees[i].list->items[k];
      if (!at) {
        value_drop(vm, *out);
        return vm_error(vm, EK_key, "tree_map: tree %u has no key \"%s\"", i, name_text(&vm->names, key));
      }
      parts[i] = *at;
    }
    bool ok = tree_map_level(vm, fn, parts, n, depth + 1, &y) == WEFT_OK;
    ok = ok && (t.kind == V_RECORD ? record_set(vm, out, key, y) : list_push(vm, out, y));
    if (!ok) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

WeftStatus eager_tree_map(Vm *vm, Value *args, Value *out) {
  const List *trees = args[1].list;
  TRY(args_function(vm, OP_tree_map, 0, args[0]));
  if (trees->count == 0) return vm_error(vm, EK_type, "tree_map: needs a tree");
  return tree_map_level(vm, args[0], trees->items, trees->count, 0, out);
}

static WeftStatus tree_each(Vm *vm, Value t, u32 depth, WeftStatus (*each)(Vm *vm, void *ctx, Value leaf), void *ctx) {
  if (!cstack_has(CSTACK_CALL)) return vm_error_stack(vm);
  TRY(vm_walk(vm));
  if (depth > TREE_DEPTH) return vm_error(vm, EK_limit, "tree_leaves: the tree is nested deeper than %d", TREE_DEPTH);
  if (is_leaf(t)) return each(vm, ctx, t);
  u32 count = t.kind == V_LIST ? t.list->count : t.kind == V_RECORD ? t.record->shape->count : 0;
  for (u32 i = 0; i < count; i++)
    TRY(tree_each(vm, t.kind == V_LIST ? t.list->items[i] : t.record->items[i], depth + 1, each, ctx));
  return WEFT_OK;
}

static WeftStatus keep_leaf(Vm *vm, void *ctx, Value leaf) { return made(list_push(vm, ctx, value_keep(leaf))); }

WeftStatus eager_tree_leaves(Vm *vm, Value *args, Value *out) {
  if (!list_new(vm, 8, out)) return WEFT_ERROR;
  WeftStatus status = tree_each(vm, args[0], 0, keep_leaf, out);
  if (status != WEFT_OK) value_drop(vm, *out);
  return status;
}

typedef struct Folding {
  Value fn, acc; /* hole: the first leaf begins */
} Folding;

static WeftStatus fold_leaf(Vm *vm, void *ctx, Value leaf) {
  Folding *f = ctx;
  if (f->acc.kind == V_HOLE) {
    f->acc = value_keep(leaf);
    return WEFT_OK;
  }
  Value args[2] = {f->acc, value_keep(leaf)};
  f->acc = value_nil();
  return vm_call(vm, f->fn, args, 2, &f->acc);
}

WeftStatus eager_tree_reduce(Vm *vm, Value *args, Value *out) {
  TRY(args_function(vm, OP_tree_reduce, 0, args[0]));
  Folding f = {args[0], args_given(args[2]) ? value_keep(args[2]) : value_hole()};
  WeftStatus status = tree_each(vm, args[1], 0, fold_leaf, &f);
  if (status == WEFT_OK && f.acc.kind == V_HOLE)
    status = vm_error(vm, EK_value, "tree_reduce: t has no leaves, and init is not given");
  if (status == WEFT_OK) *out = f.acc;
  else if (f.acc.kind != V_HOLE) value_drop(vm, f.acc);
  return status;
}

/* ---- cells and ranges ---------------------------------------------------------------------------------------- */

WeftStatus eager_ref(Vm *vm, Value *args, Value *out) { return made(ref_new(vm, value_keep(args[0]), out)); }

WeftStatus eager_range(Vm *vm, Value *args, Value *out) {
  i64 start = 0, stop = 0, step = 1;
  if (args_given(args[1])) {
    TRY(args_int(vm, OP_range, 0, args[0], &start));
    TRY(args_int(vm, OP_range, 1, args[1], &stop));
  } else {
    TRY(args_int(vm, OP_range, 0, args[0], &stop));
  }
  TRY(args_int(vm, OP_range, 2, args[2], &step));
  if (step == 0) return vm_error(vm, EK_value, "range: the step is 0");
  return made(range_new(vm, start, stop, step, out));
}
