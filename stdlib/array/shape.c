/* shape.c — views: operations that only change how elements are numbered. A view shares its operand's memory; only
 * reshape of an operand whose elements do not lie so copies. Devices do not matter to views. */
#include "stdlib/array/make.h"
#include "stdlib/array/walk.h"

#include <string.h>

/* An operand as an array, wherever it lies: *box owned. */
static WeftStatus operand(Vm *vm, u32 op, Value v, Value *box, ArrayType *type) {
  if (v.kind != V_ARRAY) TRY(args_array(vm, op, 0, v));
  type_of_value(v, type);
  return boxed(vm, v, box);
}

/* The view of `box` (consumed), or a number where it has rank 0. */
static WeftStatus view_of(Vm *vm, Value box, i64 offset, const ArrayType *shape, const i64 *strides, Value *out) {
  WeftStatus status = array_view(vm, box.array, offset, shape->rank, shape->dims, strides, out);
  value_drop(vm, box);
  if (status == WEFT_OK && shape->rank == 0) result_finish(vm, out);
  return status;
}

/* Strides under which the elements of `a`, in row-major order, have these dims; false: they do not lie so. */
static bool reshaped_strides(Array *a, u32 rank, const i64 *dims, i64 *strides) {
  i64 from[ARRAY_MAX_RANK], old[1][ARRAY_MAX_RANK];
  u32 n = array_rank(a);
  if (array_dense(a)) {
    dense_strides(rank, dims, strides);
    return true;
  }
  memcpy(from, array_dims(a), n * sizeof *from);
  memcpy(old[0], array_strides(a), n * sizeof *from);
  n = axes_join(n, from, 1, old);
  /* each joined axis is split into new ones, from the last on */
  u32 d = rank;
  for (u32 k = n; k-- > 0;) {
    i64 left = from[k], step = old[0][k];
    while (left > 1) {
      if (d == 0) return false;
      d--;
      strides[d] = step;
      if (dims[d] == 1) continue;
      if (left % dims[d] != 0) return false;
      left /= dims[d];
      step *= dims[d];
    }
  }
  while (d > 0) strides[--d] = 1; /* sizes 1 */
  return true;
}

static WeftStatus reshaped(Vm *vm, u32 op, Value box, const ArrayType *shape, Value *out) {
  i64 strides[ARRAY_MAX_RANK];
  Array *a = box.array;
  if (reshaped_strides(a, shape->rank, shape->dims, strides)) return view_of(vm, box, 0, shape, strides, out);
  Value dense;
  WeftStatus status = args_array(vm, op, 0, box);
  if (status == WEFT_OK) status = dense_as(vm, op, box, array_dtype(a), &dense);
  value_drop(vm, box);
  if (status != WEFT_OK) return status;
  dense_strides(shape->rank, shape->dims, strides);
  return view_of(vm, dense, 0, shape, strides, out);
}

WeftStatus eager_reshape(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape;
  RuleError err;
  i64 dims[ARRAY_MAX_RANK];
  u32 rank;
  bool single;
  Value box;
  TRY(args_ints(vm, OP_reshape, 1, args[1], dims, ARRAY_MAX_RANK, &rank, &single));
  for (u32 d = 0; d < rank; d++) {
    if (dims[d] == -1) dims[d] = DIM_INFER;
    else if (dims[d] < 0)
      return vm_error(vm, EK_value, "reshape: shape has the size %lld, needs 0 or more, or -1 once",
                      (long long)dims[d]);
  }
  TRY(operand(vm, OP_reshape, args[0], &box, &type));
  if (!shape_reshape(NULL, &type, rank, dims, &shape, &err)) {
    value_drop(vm, box);
    return vm_error_rule(vm, OP_reshape, &err);
  }
  return reshaped(vm, OP_reshape, box, &shape, out);
}

WeftStatus eager_ravel(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape;
  Value box;
  TRY(operand(vm, OP_ravel, args[0], &box, &type));
  shape_ravel(NULL, &type, &shape);
  return reshaped(vm, OP_ravel, box, &shape, out);
}

/* ---- axes in another order ----------------------------------------------------------------------- */

static WeftStatus permuted(Vm *vm, Value box, const ArrayType *type, const u32 *perm, Value *out) {
  ArrayType shape;
  i64 strides[ARRAY_MAX_RANK];
  shape_transpose(type, perm, &shape);
  for (u32 d = 0; d < type->rank; d++) strides[d] = array_strides(box.array)[perm[d]];
  return view_of(vm, box, 0, &shape, strides, out);
}

static WeftStatus transpose(Vm *vm, u32 op, Value *args, Value *out) {
  ArrayType type;
  RuleError err;
  i64 axes[ARRAY_MAX_RANK];
  u32 perm[ARRAY_MAX_RANK], n;
  bool single;
  Value box;
  if (!value_is_numeric(args[0])) TRY(args_array(vm, op, 0, args[0]));
  type_of_value(args[0], &type);
  if (args_given(args[1]) || !op_info(op)->params[1].has_default) {
    TRY(args_ints(vm, op, 1, args[1], axes, ARRAY_MAX_RANK, &n, &single));
    TRY_RULE(vm, op, &err, rule_permutation(n, axes, type.rank, perm, &err));
  } else {
    for (u32 d = 0; d < type.rank; d++) perm[d] = type.rank - 1 - d;
  }
  TRY(operand(vm, op, args[0], &box, &type));
  return permuted(vm, box, &type, perm, out);
}
WeftStatus eager_transpose(Vm *vm, Value *args, Value *out) { return transpose(vm, OP_transpose, args, out); }
WeftStatus eager_permute_dims(Vm *vm, Value *args, Value *out) { return transpose(vm, OP_permute_dims, args, out); }

WeftStatus eager_moveaxis(Vm *vm, Value *args, Value *out) {
  ArrayType type;
  RuleError err;
  i64 source[ARRAY_MAX_RANK], destination[ARRAY_MAX_RANK];
  u32 perm[ARRAY_MAX_RANK] = {0}, n, m;
  bool single;
  Value box;
  TRY(args_ints(vm, OP_moveaxis, 1, args[1], source, ARRAY_MAX_RANK, &n, &single));
  TRY(args_ints(vm, OP_moveaxis, 2, args[2], destination, ARRAY_MAX_RANK, &m, &single));
  if (n != m) return vm_error(vm, EK_value, "moveaxis: %u axes go to %u places", n, m);
  if (!value_is_numeric(args[0])) TRY(args_array(vm, OP_moveaxis, 0, args[0]));
  type_of_value(args[0], &type);
  TRY_RULE(vm, OP_moveaxis, &err, rule_moveaxis(n, source, destination, type.rank, perm, &err));
  TRY(operand(vm, OP_moveaxis, args[0], &box, &type));
  return permuted(vm, box, &type, perm, out);
}

WeftStatus eager_swapaxes(Vm *vm, Value *args, Value *out) {
  ArrayType type;
  RuleError err;
  i64 a = 0, b = 0;
  u32 perm[ARRAY_MAX_RANK];
  Value box;
  TRY(args_int(vm, OP_swapaxes, 1, args[1], &a));
  TRY(args_int(vm, OP_swapaxes, 2, args[2], &b));
  if (!value_is_numeric(args[0])) TRY(args_array(vm, OP_swapaxes, 0, args[0]));
  type_of_value(args[0], &type);
  TRY_RULE(vm, OP_swapaxes, &err, rule_swapaxes(a, b, type.rank, perm, &err));
  TRY(operand(vm, OP_swapaxes, args[0], &box, &type));
  return permuted(vm, box, &type, perm, out);
}

/* ---- axes of size 1, broadcasting, reversal ------------------------------------------------------ */

WeftStatus eager_squeeze(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape;
  RuleError err;
  u32 mask, dropped, n = 0;
  i64 strides[ARRAY_MAX_RANK];
  Value box;
  if (!value_is_numeric(args[0])) TRY(args_array(vm, OP_squeeze, 0, args[0]));
  type_of_value(args[0], &type);
  TRY(args_axes(vm, OP_squeeze, 1, args[1], type.rank, &mask));
  TRY_RULE(vm, OP_squeeze, &err, shape_squeeze(NULL, &type, !args_given(args[1]), mask, &shape, &dropped, &err));
  TRY(operand(vm, OP_squeeze, args[0], &box, &type));
  for (u32 d = 0; d < type.rank; d++)
    if (!(dropped >> d & 1)) strides[n++] = array_strides(box.array)[d];
  return view_of(vm, box, 0, &shape, strides, out);
}

WeftStatus eager_expand_dims(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape;
  RuleError err;
  i64 axes[ARRAY_MAX_RANK] = {0}, strides[ARRAY_MAX_RANK];
  u32 n = 1, added;
  bool single;
  Value box;
  if (args[1].kind != V_HOLE) TRY(args_ints(vm, OP_expand_dims, 1, args[1], axes, ARRAY_MAX_RANK, &n, &single));
  if (!value_is_numeric(args[0])) TRY(args_array(vm, OP_expand_dims, 0, args[0]));
  type_of_value(args[0], &type);
  TRY_RULE(vm, OP_expand_dims, &err, shape_expand_dims(&type, n, axes, &shape, &added, &err));
  TRY(operand(vm, OP_expand_dims, args[0], &box, &type));
  for (u32 d = 0, from = 0; d < shape.rank; d++) strides[d] = added >> d & 1 ? 1 : array_strides(box.array)[from++];
  return view_of(vm, box, 0, &shape, strides, out);
}

static WeftStatus broadcast_view(Vm *vm, Value box, const ArrayType *shape, Value *out) {
  i64 strides[ARRAY_MAX_RANK];
  broadcast_strides(box.array, shape->rank, strides);
  return view_of(vm, box, 0, shape, strides, out);
}

WeftStatus eager_broadcast_to(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape;
  RuleError err;
  i64 dims[ARRAY_MAX_RANK];
  u32 rank;
  Value box;
  TRY(args_shape(vm, OP_broadcast_to, 1, args[1], &rank, dims));
  if (!value_is_numeric(args[0])) TRY(args_array(vm, OP_broadcast_to, 0, args[0]));
  type_of_value(args[0], &type);
  TRY_RULE(vm, OP_broadcast_to, &err, shape_broadcast_to(NULL, &type, rank, dims, &shape, &err));
  if (dims_size(rank, dims) < 0)
    return vm_error(vm, EK_value, "broadcast_to: shape %s has too many elements", shape_text(&shape).s);
  TRY(operand(vm, OP_broadcast_to, args[0], &box, &type));
  return broadcast_view(vm, box, &shape, out);
}

/* The shape that all of them stretch to. */
static WeftStatus joint_shape(Vm *vm, const Value *items, u32 n, ArrayType *shape) {
  RuleError err;
  size_t size = n * (sizeof(ArrayType) + sizeof(ArrayType *));
  ArrayType *types = mem_alloc(&vm->alloc, size + 1);
  if (!types) return vm_error_memory(vm);
  const ArrayType **ptrs = (const ArrayType **)(types + n);
  for (u32 i = 0; i < n; i++) {
    type_of_value(items[i], &types[i]);
    ptrs[i] = &types[i];
  }
  WeftStatus status = rule_broadcast(NULL, n, ptrs, shape, &err) ? WEFT_OK
                                                                 : vm_error_rule(vm, OP_broadcast_arrays, &err);
  mem_free(&vm->alloc, types, size + 1);
  return status;
}

WeftStatus eager_broadcast_arrays(Vm *vm, Value *args, Value *out) {
  const Value *items;
  u32 n;
  ArrayType shape;
  TRY(args_list(vm, OP_broadcast_arrays, 0, args[0], &items, &n));
  TRY(joint_shape(vm, items, n, &shape));
  if (dims_size(shape.rank, shape.dims) < 0)
    return vm_error(vm, EK_value, "broadcast_arrays: shape %s has too many elements", shape_text(&shape).s);
  TRY(list_new(vm, n, out) ? WEFT_OK : WEFT_ERROR);
  for (u32 i = 0; i < n; i++) {
    Value box, view;
    if (boxed(vm, items[i], &box) != WEFT_OK || broadcast_view(vm, box, &shape, &view) != WEFT_OK) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
    TRY(list_add(vm, out, view));
  }
  return WEFT_OK;
}

WeftStatus eager_flip(Vm *vm, Value *args, Value *out) {
  ArrayType type;
  u32 mask;
  i64 strides[ARRAY_MAX_RANK], offset = 0;
  Value box;
  if (!value_is_numeric(args[0])) TRY(args_array(vm, OP_flip, 0, args[0]));
  type_of_value(args[0], &type);
  TRY(args_axes(vm, OP_flip, 1, args[1], type.rank, &mask));
  TRY(operand(vm, OP_flip, args[0], &box, &type));
  memcpy(strides, array_strides(box.array), type.rank * sizeof *strides);
  for (u32 d = 0; d < type.rank; d++) {
    if (!(mask >> d & 1) || type.dims[d] <= 1) continue;
    if (box.array->size) offset += (type.dims[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  return view_of(vm, box, offset, &type, strides, out);
}

WeftStatus eager_sliding_window(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape;
  RuleError err;
  i64 windows[ARRAY_MAX_RANK], given[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK];
  u32 n, m, axes[ARRAY_MAX_RANK] = {0};
  bool single;
  Value box;
  TRY(args_array(vm, OP_sliding_window, 0, args[0]));
  type_of_value(args[0], &type);
  TRY(args_ints(vm, OP_sliding_window, 1, args[1], windows, ARRAY_MAX_RANK, &n, &single));
  for (u32 i = 0; i < n; i++)
    if (windows[i] < 0)
      return vm_error(vm, EK_value, "sliding_window: window is %lld, needs 1 or more", (long long)windows[i]);
  if (args_given(args[2])) {
    TRY(args_ints(vm, OP_sliding_window, 2, args[2], given, ARRAY_MAX_RANK, &m, &single));
    for (u32 i = 0; i < m; i++) TRY_RULE(vm, OP_sliding_window, &err, rule_axis(given[i], type.rank, &axes[i], &err));
  } else {
    m = type.rank;
    for (u32 i = 0; i < m; i++) axes[i] = i;
  }
  if (n != m) return vm_error(vm, EK_value, "sliding_window: %u windows for %u axes", n, m);
  TRY_RULE(vm, OP_sliding_window, &err, shape_sliding_window(NULL, &type, n, windows, axes, &shape, &err));
  if (dims_size(shape.rank, shape.dims) < 0)
    return vm_error(vm, EK_value, "sliding_window: shape %s has too many elements", shape_text(&shape).s);
  TRY(operand(vm, OP_sliding_window, args[0], &box, &type));
  memcpy(strides, array_strides(box.array), type.rank * sizeof *strides);
  for (u32 i = 0; i < n; i++) strides[type.rank + i] = strides[axes[i]];
  return view_of(vm, box, 0, &shape, strides, out);
}

/* ---- parts --------------------------------------------------------------------------------------- */

enum { PART_VIEWS = PART_ELEMENTS / 16 }; /* that are made between two looks at the clock */

/* Adds the part [from, to) of `axis`, or (drop) the slice at `from` without the axis. */
static WeftStatus add_part(Vm *vm, Array *a, u32 axis, i64 from, i64 to, bool drop, Value *list) {
  ArrayType shape = {.rank = 0};
  i64 strides[ARRAY_MAX_RANK];
  u32 rank = array_rank(a);
  for (u32 d = 0; d < rank; d++) {
    if (d == axis && drop) continue;
    shape.dims[shape.rank] = d == axis ? to - from : array_dims(a)[d];
    strides[shape.rank++] = array_strides(a)[d];
  }
  Value view;
  bool none = dims_size(shape.rank, shape.dims) == 0;
  if (array_view(vm, a, none ? 0 : from * array_strides(a)[axis], shape.rank, shape.dims, strides, &view) != WEFT_OK) {
    value_drop(vm, *list);
    return WEFT_ERROR;
  }
  if (shape.rank == 0) result_finish(vm, &view);
  return list_add(vm, list, view);
}

WeftStatus eager_unstack(Vm *vm, Value *args, Value *out) {
  ArrayType type;
  RuleError err;
  i64 given = 0;
  u32 axis;
  if (!value_is_numeric(args[0])) TRY(args_array(vm, OP_unstack, 0, args[0]));
  type_of_value(args[0], &type);
  TRY(args_int(vm, OP_unstack, 1, args[1], &given));
  TRY_RULE(vm, OP_unstack, &err, rule_axis(given, type.rank, &axis, &err));
  i64 n = type.dims[axis];
  if (n > INT32_MAX) return vm_error(vm, EK_limit, "unstack: a list of %lld arrays is too long", (long long)n);
  TRY(list_new(vm, (u32)n, out) ? WEFT_OK : WEFT_ERROR);
  Polled p = parts_in(vm, n, PART_VIEWS);
  while (parts_next(&p))
    for (i64 i = p.from; i < p.to; i++) TRY(add_part(vm, args[0].array, axis, i, i + 1, true, out));
  if (p.status != WEFT_OK) value_drop(vm, *out);
  return p.status;
}

/* The parts of a at the cuts, or (single) as many equal ones. */
static WeftStatus split_at(Vm *vm, Array *a, u32 axis, const i64 *cuts, u32 n, bool single, Value *out) {
  i64 size = array_dims(a)[axis];
  if (single) {
    i64 parts = cuts[0];
    if (parts <= 0) return vm_error(vm, EK_value, "split: parts is %lld, needs 1 or more", (long long)parts);
    if (size % parts != 0 || parts > INT32_MAX)
      return vm_error(vm, EK_value, "split: axis %u has the size %lld, which is not %lld equal parts", axis,
                      (long long)size, (long long)parts);
    TRY(list_new(vm, (u32)parts, out) ? WEFT_OK : WEFT_ERROR);
    Polled p = parts_in(vm, parts, PART_VIEWS);
    while (parts_next(&p))
      for (i64 i = p.from; i < p.to; i++)
        TRY(add_part(vm, a, axis, i * (size / parts), (i + 1) * (size / parts), false, out));
    if (p.status != WEFT_OK) value_drop(vm, *out);
    return p.status;
  }
  TRY(list_new(vm, n + 1, out) ? WEFT_OK : WEFT_ERROR);
  i64 from = 0;
  Polled p = parts_in(vm, (i64)n + 1, PART_VIEWS);
  while (parts_next(&p))
    for (i64 i = p.from; i < p.to; i++) { /* positions clamp, as slices do */
      i64 to = i < n ? cuts[i] : size;
      if (to < 0) to += size;
      to = to < 0 ? 0 : to > size ? size : to;
      TRY(add_part(vm, a, axis, from, to > from ? to : from, false, out));
      from = to;
    }
  if (p.status != WEFT_OK) value_drop(vm, *out);
  return p.status;
}

/* An integer: equal parts. A list: the positions where to cut. */
WeftStatus split_array(Vm *vm, Value *args, Value *out) {
  ArrayType type;
  RuleError err;
  i64 given = 0, *cuts;
  u32 axis, n;
  bool single;
  if (!value_is_numeric(args[0])) TRY(args_array(vm, OP_split, 0, args[0]));
  if (!args_given(args[1]))
    return args_error(vm, OP_split, 1, args[1], "an integer (equal parts) or a list of positions");
  type_of_value(args[0], &type);
  TRY(args_int(vm, OP_split, 2, args[2], &given));
  TRY_RULE(vm, OP_split, &err, rule_axis(given, type.rank, &axis, &err));
  TRY(args_ints_all(vm, OP_split, 1, args[1], &cuts, &n, &single));
  WeftStatus status = split_at(vm, args[0].array, axis, cuts, n, single, out);
  mem_free(&vm->alloc, cuts, sizeof *cuts * (n + 1));
  return status;
}

WeftStatus eager_split(Vm *vm, Value *args, Value *out) {
  const bool by_name = args_given(args[3]);
  if (args[0].kind == V_TEXT && by_name && args_given(args[1]))
    return vm_error(vm, EK_type, "split: sep is given twice, as parts and by name");
  if (args[0].kind == V_TEXT) return split_text(vm, args[0], args[by_name ? 3 : 1], out);
  if (by_name) return vm_error(vm, EK_type, "split: sep= goes with a text; an array is split into parts");
  return split_array(vm, args, out);
}
