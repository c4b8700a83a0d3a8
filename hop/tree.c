/* tree.c — pytrees of values (see tree.h). */
#include "hop/tree.h"

#include <stdio.h>
#include <string.h>

static u32 width(Value t) { return t.kind == V_LIST ? t.list->count : t.kind == V_RECORD ? t.record->shape->count : 0; }
static Value child(Value t, u32 i) { return t.kind == V_LIST ? t.list->items[i] : t.record->items[i]; }

static WeftStatus tree_collect(Vm *vm, Value t, u32 depth, Leaves *out) {
  if (!cstack_has(CSTACK_CALL)) return vm_error_stack(vm);
  if (depth > TREE_DEPTH) return vm_error(vm, EK_limit, "a tree is nested deeper than %d", TREE_DEPTH);
  if (vm_walk(vm) != WEFT_OK) return WEFT_ERROR;
  if (tree_is_leaf(t)) return vec_push(&vm->alloc, out, t) ? WEFT_OK : vm_error_memory(vm);
  for (u32 i = 0; i < width(t); i++)
    if (tree_collect(vm, child(t, i), depth + 1, out) != WEFT_OK) return WEFT_ERROR;
  return WEFT_OK;
}

WeftStatus tree_leaves_of(Vm *vm, Value t, Leaves *out) { return tree_collect(vm, t, 0, out); }

void leaves_free(Vm *vm, Leaves *l) { vec_free(&vm->alloc, l); }

WeftStatus tree_with(Vm *vm, Value t, const Value *leaves, u32 *next, Value *out) {
  if (vm_walk(vm) != WEFT_OK) return WEFT_ERROR;
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
      *out = value_hole();
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

/* Deeper than trees may be it looks no further: whoever collects the leaves says so. Where the program is to end they
 * are not the same. */
static bool same_from(Vm *vm, Value a, Value b, u32 depth) {
  if (vm_walk(vm) != WEFT_OK) {
    vm_error_forget(vm);
    return false;
  }
  if (tree_is_leaf(a) || tree_is_leaf(b)) return tree_is_leaf(a) && tree_is_leaf(b);
  if (a.kind != b.kind || width(a) != width(b)) return false;
  for (u32 i = 0; i < width(a); i++) {
    if (a.kind == V_RECORD && a.record->shape->keys[i] != b.record->shape->keys[i]) return false;
    if (depth < TREE_DEPTH && !same_from(vm, child(a, i), child(b, i), depth + 1)) return false;
  }
  if (a.kind == V_LIST || a.kind == V_RECORD) return true;
  bool equal = false;
  if (value_equal(vm, a, b, &equal) != WEFT_OK) {
    vm_error_forget(vm);
    return false;
  }
  return equal;
}

bool tree_same(Vm *vm, Value a, Value b) { return same_from(vm, a, b, 0); }

WeftStatus tree_error(Vm *vm, const char *fmt, ...) {
  char text[200];
  va_list ap;
  if (vm_look(vm) != WEFT_OK) return WEFT_ERROR;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  return vm_error(vm, EK_type, "%s", text);
}

void tree_leaf_type(Value v, ArrayType *t) {
  v = value_untracked(v);
  *t = (ArrayType){.dtype = v.dtype, .weak = value_is_weak(v)};
  if (v.kind != V_ARRAY) return;
  t->dtype = (u8)array_dtype(v.array);
  t->rank = (u8)array_rank(v.array);
  t->device = t->rank ? (u8)array_device(v.array) : 0;
  memcpy(t->dims, array_dims(v.array), t->rank * sizeof t->dims[0]);
}

WeftStatus tree_zero(Vm *vm, const ArrayType *t, Value *out) {
  i64 strides[TYPE_MAX_RANK] = {0};
  Value one;
  if (t->rank && t->device != DEV_CPU) {
    const i64 single = 1;
    Value zero, there;
    if (array_new_zero(vm, t->dtype, 1, &single, &zero) != WEFT_OK) return WEFT_ERROR;
    WeftStatus moved = value_moved(vm, zero, t->device, &there);
    value_drop(vm, zero);
    if (moved != WEFT_OK) return WEFT_ERROR;
    moved = array_view(vm, there.array, 0, t->rank, t->dims, strides, out);
    value_drop(vm, there);
    return moved;
  }
  if (array_new_zero(vm, t->dtype, 0, strides, &one) != WEFT_OK) return WEFT_ERROR;
  if (t->rank == 0) {
    *out = array_finish(vm, one);
    if (t->weak) out->flags |= VF_WEAK;
    return WEFT_OK;
  }
  WeftStatus status = array_view(vm, one.array, 0, t->rank, t->dims, strides, out);
  value_drop(vm, one);
  return status;
}

static WeftStatus take_type(Vm *vm, const char *who, const ArrayType *t, Value v, Value *out) {
  if (v.kind == V_NUM) {
    if (value_is_weak(v) && !num_fits(v, t->dtype))
      return vm_error(vm, EK_value, "%s: the number %lld does not fit %s", who, (long long)v.i, dtype_name(t->dtype));
    *out = num_convert_unchecked(v, t->dtype);
    out->flags = t->weak ? VF_WEAK : 0;
    return WEFT_OK;
  }
  Value args[OP_MAX_PARAMS];
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) args[i] = value_hole();
  args[0] = value_keep(v);
  args[1] = t->weak ? value_weak_f64(1) : value_dtype(t->dtype);
  WeftStatus status = vm_op(vm, t->weak ? OP_multiply : OP_astype, args, out);
  value_drop(vm, args[0]);
  return status;
}

WeftStatus tree_take_types(Vm *vm, const char *who, Value types, Value *t, bool *changed) {
  Leaves want = {0}, have = {0}, made = {0};
  u32 next = 0;
  *changed = false;
  WeftStatus status = tree_leaves_of(vm, types, &want);
  if (status == WEFT_OK) status = tree_leaves_of(vm, *t, &have);
  for (u32 i = 0; i < have.count && i < want.count && status == WEFT_OK; i++) {
    ArrayType x, y;
    Value v;
    tree_leaf_type(want.data[i], &x);
    tree_leaf_type(have.data[i], &y);
    bool same = x.dtype == y.dtype && x.weak == y.weak;
    *changed |= !same;
    if (same) v = value_keep(have.data[i]);
    else status = take_type(vm, who, &x, have.data[i], &v);
    if (status == WEFT_OK && !vec_push(&vm->alloc, &made, v)) {
      value_drop(vm, v);
      status = vm_error_memory(vm);
    }
  }
  Value out;
  if (status == WEFT_OK && *changed) {
    status = tree_with(vm, *t, made.data, &next, &out);
    if (status == WEFT_OK) {
      value_drop(vm, *t);
      *t = out;
    }
  }
  for (u32 i = 0; i < made.count; i++) value_drop(vm, made.data[i]);
  leaves_free(vm, &made);
  leaves_free(vm, &have);
  leaves_free(vm, &want);
  return status;
}
