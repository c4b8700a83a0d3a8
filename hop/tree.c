/* tree.c — pytrees of values (see tree.h). */
#include "hop/tree.h"

static u32 width(Value t) { return t.kind == V_LIST ? t.list->count : t.kind == V_RECORD ? t.record->shape->count : 0; }
static Value child(Value t, u32 i) { return t.kind == V_LIST ? t.list->items[i] : t.record->items[i]; }

static WeftStatus collect(Vm *vm, Value t, u32 depth, Leaves *out) {
  if (depth > TREE_DEPTH) return vm_error(vm, EK_limit, "a tree is nested deeper than %d", TREE_DEPTH);
  if (tree_is_leaf(t)) return vec_push(&vm->alloc, out, t) ? WEFT_OK : vm_error_memory(vm);
  for (u32 i = 0; i < width(t); i++)
    if (collect(vm, child(t, i), depth + 1, out) != WEFT_OK) return WEFT_ERROR;
  return WEFT_OK;
}

WeftStatus tree_leaves_of(Vm *vm, Value t, Leaves *out) { return collect(vm, t, 0, out); }

void leaves_free(Vm *vm, Leaves *l) { vec_free(&vm->alloc, l); }

WeftStatus tree_with(Vm *vm, Value t, const Value *leaves, u32 *next, Value *out) {
  if (tree_is_leaf(t)) {
    *out = value_keep(leaves[(*next)++]);
    return WEFT_OK;
  }
  if (t.kind != V_LIST && t.kind != V_RECORD) {
    *out = value_keep(t);
    return WEFT_OK;
  }
  if (t.kind == V_LIST ? !list_new(vm, width(t), out) : !record_new(vm, out)) return WEFT_ERROR;
  for (u32 i = 0; i < width(t); i++) {
    Value item;
    bool ok = tree_with(vm, child(t, i), leaves, next, &item) == WEFT_OK;
    ok = ok && (t.kind == V_LIST ? list_push(vm, out, item) : record_set(vm, out, t.record->shape->keys[i], item));
    if (!ok) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

bool tree_same(Vm *vm, Value a, Value b) {
  if (tree_is_leaf(a) || tree_is_leaf(b)) return tree_is_leaf(a) && tree_is_leaf(b);
  if (a.kind != b.kind || width(a) != width(b)) return false;
  for (u32 i = 0; i < width(a); i++) {
    if (a.kind == V_RECORD && a.record->shape->keys[i] != b.record->shape->keys[i]) return false;
    if (!tree_same(vm, child(a, i), child(b, i))) return false;
  }
  if (a.kind == V_LIST || a.kind == V_RECORD) return true;
  bool equal = false;
  if (value_equal(vm, a, b, &equal) != WEFT_OK) {
    vm_error_clear(vm);
    return false;
  }
  return equal;
}
