/* tape_parts.c — operations that give a list of arrays, on the tape: unstack, split, meshgrid, broadcast_arrays.
 * They are recorded as the views that they stand for, one by one, as in a graph (tracer/record/record_parts.c), so
 * that derivatives add the same in the same order. */
#include "hop/tape.h"

#include <string.h>

static WeftStatus parts_run(Vm *vm, u32 op, Value x, Value with, Value *out) { /* borrows x, takes `with` */
  Value args[OP_MAX_PARAMS];
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) args[i] = value_hole();
  args[0] = value_keep(x);
  args[1] = with;
  WeftStatus status = vm_op(vm, op, args, out);
  value_drop(vm, args[0]);
  value_drop(vm, args[1]);
  return status;
}

/* x[:, …, item] along an axis; a slice has start and stop. */
static WeftStatus at_axis(Vm *vm, Value x, u32 axis, u8 kind, Value first, Value stop, Value *out) {
  u8 items[ARRAY_MAX_RANK];
  Value regs[3 * ARRAY_MAX_RANK];
  u32 n = 0;
  for (u32 d = 0; d < axis; d++) {
    items[d] = IX_SLICE;
    for (u32 k = 0; k < 3; k++) regs[n++] = value_nil();
  }
  items[axis] = kind;
  regs[n++] = first;
  regs[n++] = stop;
  regs[n] = value_nil();
  return vm_index(vm, x, items, axis + 1, regs, out);
}

static WeftStatus shape_list(Vm *vm, u32 rank, const i64 *dims, Value *out) {
  if (!list_new(vm, rank, out)) return WEFT_ERROR;
  for (u32 d = 0; d < rank; d++)
    if (!list_push(vm, out, value_weak_i64(dims[d]))) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  return WEFT_OK;
}

static WeftStatus reshaped(Vm *vm, u32 op, Value x, u32 rank, const i64 *dims, Value *out) {
  Value shape;
  return shape_list(vm, rank, dims, &shape) == WEFT_OK ? parts_run(vm, op, x, shape, out) : WEFT_ERROR;
}

/* Equal parts: x with the axis in two, one item of the first of them each. */
static WeftStatus equal_parts(Vm *vm, Value x, const ArrayType *t, u32 axis, i64 count, Value *whole) {
  i64 dims[ARRAY_MAX_RANK + 1];
  u32 n = 0;
  for (u32 d = 0; d < t->rank; d++) {
    if (d == axis) dims[n++] = count;
    dims[n++] = d == axis ? t->dims[d] / count : t->dims[d];
  }
  return reshaped(vm, OP_reshape, x, n, dims, whole);
}

static bool cut_at(Value cuts, u32 i, Value *out) {
  i64 at;
  if (cuts.kind == V_RANGE) at = cuts.range->start + (i64)i * cuts.range->step;
  else if (!num_as_index(cuts.kind == V_ARRAY ? array_load(cuts.array, (i64)i * array_strides(cuts.array)[0])
                                              : value_untracked(cuts.list->items[i]), &at))
    return false;
  *out = value_weak_i64(at);
  return true;
}

/* Part i of `count`. `whole` is x, or its equal parts. */
static WeftStatus one_part(Vm *vm, u32 op, Value *args, Value whole, u32 axis, bool equal, u32 i, u32 count,
                           const ArrayType *result, Value *out) {
  Value ends[2] = {value_nil(), value_nil()};
  switch (op) {
    case OP_unstack: return at_axis(vm, whole, axis, IX_VALUE, value_weak_i64(i), value_nil(), out);
    case OP_split:
      if (equal) return at_axis(vm, whole, axis, IX_VALUE, value_weak_i64(i), value_nil(), out);
      if ((i > 0 && !cut_at(args[1], i - 1, &ends[0])) || (i + 1 < count && !cut_at(args[1], i, &ends[1])))
        return vm_error(vm, EK_type, "split: a position is no integer");
      return at_axis(vm, whole, axis, IX_SLICE, ends[0], ends[1], out);
    default: break;
  }
  Value x = args[0].list->items[i], own = value_keep(x);
  WeftStatus status = WEFT_OK;
  if (op == OP_meshgrid) { /* along its own axis */
    bool ij = args[1].kind == V_TEXT && strcmp(args[1].text->data, "ij") == 0;
    u32 along = !ij && count > 1 && i < 2 ? 1 - i : i;
    i64 dims[ARRAY_MAX_RANK];
    for (u32 d = 0; d < result->rank; d++) dims[d] = d == along ? result->dims[d] : 1;
    value_drop(vm, own);
    status = reshaped(vm, OP_reshape, x, result->rank, dims, &own);
  }
  if (status != WEFT_OK) return status;
  status = reshaped(vm, OP_broadcast_to, own, result->rank, result->dims, out);
  value_drop(vm, own);
  return status;
}

bool tape_has_parts(u32 op, const Value *args) {
  return graph_has_parts(op) && (op_info(op)->params[0].rest || args[0].kind == V_TRACKED);
}

WeftStatus tape_parts(Vm *vm, u32 op, Value *args, const Value *plain, Value *out) {
  ArrayType t = {0}, type;
  Value whole = value_nil(), axis = args[op == OP_split ? 2 : 1];
  u32 count = plain->list->count;
  i64 at = 0, parts;
  bool list = op_info(op)->params[0].rest, equal = false;
  WeftStatus status = WEFT_OK;
  if (!list) {
    tape_type(args[0], &t);
    (void)num_as_index(value_untracked(axis), &at);
    if (at < 0) at += t.rank;
    Value by = value_untracked(args[1]);
    equal = op == OP_split && t.rank < ARRAY_MAX_RANK && by.kind == V_NUM && num_as_index(by, &parts);
    if (equal) status = equal_parts(vm, args[0], &t, (u32)at, parts, &whole);
    else whole = value_keep(args[0]);
  }
  if (status == WEFT_OK && !list_new(vm, count, out)) status = WEFT_ERROR;
  bool made = status == WEFT_OK;
  for (u32 i = 0; i < count && status == WEFT_OK; i++) {
    Value part;
    tape_type(plain->list->items[i], &type);
    status = one_part(vm, op, args, whole, (u32)at, equal, i, count, &type, &part);
    if (status == WEFT_OK && !list_push(vm, out, part)) status = WEFT_ERROR;
  }
  if (made && status != WEFT_OK) value_drop(vm, *out);
  value_drop(vm, whole);
  return status;
}
