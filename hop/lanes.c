/* lanes.c — see lanes.h. */
#include "hop/lanes.h"

void lanes_free(Vm *vm, Lanes *l) {
  for (u32 i = 0; i < l->count; i++) value_drop(vm, l->data[i]);
  vec_free(&vm->alloc, l);
}

bool lanes_push(Vm *vm, Lanes *l, Value v) {
  if (vec_push(&vm->alloc, l, v)) return true;
  value_drop(vm, v);
  (void)vm_error_memory(vm);
  return false;
}

WeftStatus lane_slice(Vm *vm, Value x, i64 axis, i64 at, Value *out) {
  if (x.kind == V_TRACKED) { /* by index, so that its cotangent is added in place */
    u8 items[ARRAY_MAX_RANK];
    Value regs[3 * ARRAY_MAX_RANK];
    u32 n = 0;
    for (i64 d = 0; d < axis; d++) {
      items[d] = IX_SLICE;
      for (u32 k = 0; k < 3; k++) regs[n++] = value_nil();
    }
    items[axis] = IX_VALUE;
    regs[n] = value_weak_i64(at);
    return vm_index(vm, x, items, (u32)axis + 1, regs, out);
  }
  Array *a = x.array;
  i64 dims[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK];
  u32 n = 0;
  for (u32 d = 0; d < array_rank(a); d++) {
    if ((i64)d == axis) continue;
    dims[n] = array_dims(a)[d];
    strides[n++] = array_strides(a)[d];
  }
  Value part;
  if (array_view(vm, a, at * array_strides(a)[axis], n, dims, strides, &part) != WEFT_OK) return WEFT_ERROR;
  return array_settle(vm, part, out);
}

u32 lanes_device(const Value *leaves, u32 count) {
  for (u32 i = 0; i < count; i++) {
    const Value v = value_untracked(leaves[i]);
    if (v.kind == V_ARRAY && array_rank(v.array) && array_device(v.array) != DEV_CPU) return array_device(v.array);
  }
  return DEV_CPU;
}

WeftStatus lanes_taken(Vm *vm, u32 device, Value *v) {
  Value here = *v;
  if (device == DEV_CPU) return WEFT_OK;
  WeftStatus status = value_moved(vm, here, device, v);
  value_drop(vm, here);
  return status;
}

WeftStatus lanes_stack(Vm *vm, const Value *items, u32 count, u32 step, bool reverse, i64 axis, u32 device,
                       Value *out) {
  Value list, params[OP_MAX_PARAMS];
  if (!list_new(vm, count, &list)) return WEFT_ERROR;
  for (u32 i = 0; i < count; i++) {
    if (list_push(vm, &list, value_keep(items[(size_t)(reverse ? count - 1 - i : i) * step]))) continue;
    value_drop(vm, list);
    return WEFT_ERROR;
  }
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) params[i] = value_hole();
  params[0] = list;
  params[1] = value_weak_i64(axis);
  WeftStatus status = vm_op(vm, OP_stack, params, out);
  value_drop(vm, params[0]);
  const Value first = count ? value_untracked(items[0]) : value_nil();
  if (status == WEFT_OK && value_is_scalar(first)) status = lanes_taken(vm, device, out);
  return status;
}
