/* join.c — arrays put together and spread out: concat stack tile repeat roll pad. */
#include "stdlib/array/make.h"
#include "stdlib/array/walk.h"

#include <string.h>

/* ---- joining ------------------------------------------------------------------------------------- */

/* Writes item (of any dtype) to the place in `to` that begins at axis position `start`; `dims` are its own there. */
static WeftStatus place(Vm *vm, u32 op, Value item, Array *to, u32 axis, i64 start, u32 rank, const i64 *dims,
                        const i64 *strides) {
  Value same;
  NumBox box;
  u32 dtype = array_dtype(to);
  if (item.kind == V_NUM) TRY(num_fit(vm, op, item, dtype, &item));
  TRY(convert_value(vm, op, item, dtype, &same));
  Array *a = array_of(same, &box);
  u32 bytes = dtype_bytes(dtype);
  WeftStatus status =
      strided_copy_polled(vm, bytes, rank, dims, (char *)to->data + start * array_strides(to)[axis] * bytes, strides,
                          a->data, array_strides(a));
  value_drop(vm, same);
  return status;
}

enum { PART_ITEMS = PART_ELEMENTS / 32 }; /* that are placed between two looks at the clock */

static WeftStatus join(Vm *vm, u32 op, const Value *items, u32 n, bool along_new, i64 given_axis, Value *out) {
  RuleError err;
  ArrayType shape, small[8];
  const ArrayType *small_ptrs[8];
  size_t size = n * (sizeof(ArrayType) + sizeof(ArrayType *));
  ArrayType *types = n <= 8 ? small : mem_alloc(&vm->alloc, size);
  if (!types) return vm_error_memory(vm);
  const ArrayType **ptrs = n <= 8 ? small_ptrs : (const ArrayType **)(types + n);
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < n && status == WEFT_OK; i++) {
    type_of_value(items[i], &types[i]);
    ptrs[i] = &types[i];
    if (!vm_item(vm, i)) status = WEFT_ERROR;
  }
  if (status != WEFT_OK) {
    if (n > 8) mem_free(&vm->alloc, types, size);
    return status;
  }
  u32 axis = 0;
  bool fits = along_new ? shape_stack(NULL, n, ptrs, given_axis, &shape, &err)
                        : shape_concat(NULL, n, ptrs, given_axis, &shape, &err);
  if (!fits) {
    status = vm_error_rule(vm, op, &err);
  } else {
    axis = (u32)(given_axis < 0 ? given_axis + shape.rank : given_axis);
    status = kernel_poll(vm, dims_size(shape.rank, shape.dims));
  }
  void *data;
  if (status == WEFT_OK) status = result_new(vm, joint_dtype(items, n), &shape, out, &data);
  bool made = status == WEFT_OK;
  i64 start = 0;
  for (u32 i = 0; i < n && status == WEFT_OK; i++) {
    if (i % PART_ITEMS == PART_ITEMS - 1 && (status = vm_poll(vm, 0)) != WEFT_OK) break;
    i64 strides[ARRAY_MAX_RANK];
    u32 k = 0;
    for (u32 d = 0; d < shape.rank; d++)
      if (!along_new || d != axis) strides[k++] = array_strides(out->array)[d];
    status = place(vm, op, items[i], out->array, axis, start, types[i].rank, types[i].dims, strides);
    start += along_new ? 1 : types[i].dims[axis];
  }
  if (n > 8) mem_free(&vm->alloc, types, size);
  if (made && status != WEFT_OK) value_drop(vm, *out);
  return status;
}

/* The operands of concat and stack: a list, or an array as the list of its slices. */
static WeftStatus join_items(Vm *vm, u32 op, Value xs, Value *list) {
  if (xs.kind == V_ARRAY && array_rank(xs.array) > 0) {
    Value args[1] = {value_keep(xs)};
    return run_op(vm, OP_unstack, args, 1, list);
  }
  const Value *items;
  u32 n;
  TRY(args_list(vm, op, 0, xs, &items, &n));
  *list = value_keep(xs);
  return WEFT_OK;
}

WeftStatus eager_concat(Vm *vm, Value *args, Value *out) {
  i64 axis = 0;
  Value list;
  TRY(args_int(vm, OP_concat, 1, args[1], &axis));
  TRY(join_items(vm, OP_concat, args[0], &list));
  WeftStatus status = WEFT_OK;
  if (args[1].kind == V_NIL) { /* all elements of all, in order */
    Value flat;
    if (!list_new(vm, list.list->count, &flat)) status = WEFT_ERROR;
    for (u32 i = 0; i < list.list->count && status == WEFT_OK; i++) {
      Value one[1] = {value_keep(list.list->items[i])}, line;
      status = run_op(vm, OP_ravel, one, 1, &line);
      if (status == WEFT_OK) status = list_add(vm, &flat, line);
      else value_drop(vm, flat);
    }
    value_drop(vm, list);
    if (status != WEFT_OK) return status;
    list = flat;
  }
  status = join(vm, OP_concat, list.list->items, list.list->count, false, axis, out);
  value_drop(vm, list);
  return status;
}

WeftStatus eager_stack(Vm *vm, Value *args, Value *out) {
  i64 axis = 0;
  Value list;
  TRY(args_int(vm, OP_stack, 1, args[1], &axis));
  TRY(join_items(vm, OP_stack, args[0], &list));
  WeftStatus status = join(vm, OP_stack, list.list->items, list.list->count, true, axis, out);
  value_drop(vm, list);
  return status;
}

/* ---- spreading ----------------------------------------------------------------------------------- */

WeftStatus eager_tile(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape;
  RuleError err;
  i64 reps[ARRAY_MAX_RANK], dims[2 * ARRAY_MAX_RANK], strides[2 * ARRAY_MAX_RANK];
  u32 n, rank = 0;
  bool single;
  NumBox box;
  TRY(args_array(vm, OP_tile, 0, args[0]));
  TRY(args_ints(vm, OP_tile, 1, args[1], reps, ARRAY_MAX_RANK, &n, &single));
  for (u32 i = 0; i < n; i++)
    if (reps[i] < 0) return vm_error(vm, EK_value, "tile: reps has %lld, needs 0 or more", (long long)reps[i]);
  type_of_value(args[0], &type);
  TRY_RULE(vm, OP_tile, &err, shape_tile(NULL, &type, n, reps, &shape, &err));
  Array *a = array_of(args[0], &box);
  /* each axis is (repeats, elements), and the repeats have stride 0 */
  for (u32 d = 0; d < shape.rank; d++) {
    i64 rep = d + n < shape.rank ? 1 : reps[d + n - shape.rank],
        own = d + type.rank < shape.rank ? 1 : type.dims[d + type.rank - shape.rank];
    if (rep != 1) {
      dims[rank] = rep;
      strides[rank++] = 0;
    }
    if (own != 1) {
      dims[rank] = own;
      strides[rank++] = array_strides(a)[d + type.rank - shape.rank];
    }
  }
  if (rank > ARRAY_MAX_RANK)
    return vm_error(vm, EK_unsupported, "tile: not supported: %u axes that are repeated or have elements", rank);
  i64 total = dims_size(shape.rank, shape.dims);
  void *data;
  TRY(kernel_poll(vm, total));
  TRY(result_new(vm, type.dtype, &shape, out, &data));
  if (total > 0) {
    Reader r;
    reader_start_raw(&r, stdlib_of(vm)->strips, a->data, type.dtype, rank, dims, strides, type.dtype);
    Polled p = parts_in(vm, total, PART_ELEMENTS);
    while (parts_next(&p)) reader_read(&r, (char *)data + p.from * dtype_bytes(type.dtype), p.to - p.from);
    if (p.status != WEFT_OK) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  }
  result_finish(vm, out);
  return WEFT_OK;
}

WeftStatus take_positions(Vm *vm, Value x, u32 axis, const i64 *index, i64 n, Value *out) {
  ArrayType type, shape;
  Value dense;
  void *data;
  type_of_value(x, &type);
  shape = type;
  shape.dims[axis] = n;
  u32 bytes = dtype_bytes(type.dtype);
  i64 outer = 1, inner = 1, size = type.dims[axis];
  for (u32 d = 0; d < axis; d++) outer *= type.dims[d];
  for (u32 d = axis + 1; d < type.rank; d++) inner *= type.dims[d];
  TRY(kernel_poll(vm, dims_size(shape.rank, shape.dims)));
  TRY(dense_as(vm, OP_take, x, type.dtype, &dense));
  if (result_new(vm, type.dtype, &shape, out, &data) != WEFT_OK) {
    value_drop(vm, dense);
    return WEFT_ERROR;
  }
  const char *from = dense.array->data;
  char *o = data;
  size_t run = (size_t)inner * bytes;
  WeftStatus status = WEFT_OK;
  for (i64 k = 0; k < outer && out->array->size; k++, from += size * inner * bytes)
    for (i64 lo = 0, hi; lo < n && status == WEFT_OK; lo = hi) {
      const i64 most = PART_ELEMENTS;
      hi = n - lo < most ? n : lo + most;
#define GATHER(T) \
  for (i64 i = lo; i < hi; i++, o += sizeof(T)) memcpy(o, from + index[i] * (i64)sizeof(T), sizeof(T));
      if (run == 1) GATHER(u8)
      else if (run == 4) GATHER(u32)
      else if (run == 8) GATHER(u64)
      else
        for (i64 i = lo; i < hi; i++, o += run) memcpy(o, from + index[i] * (i64)run, run);
#undef GATHER
      if (hi - lo == most) status = vm_poll(vm, 0);
    }
  value_drop(vm, dense);
  if (status != WEFT_OK) value_drop(vm, *out);
  return status;
}

/* x as an array with an axis to work along: flat (axis not given) or as it is. *x owned. */
static WeftStatus along_axis(Vm *vm, u32 op, u32 param, const Value *args, Value *x, u32 *axis) {
  RuleError err;
  i64 given = 0;
  TRY(args_array(vm, op, 0, args[0]));
  *axis = 0;
  if (!args_given(args[param])) {
    Value one[1] = {value_keep(args[0])};
    return run_op(vm, OP_ravel, one, 1, x);
  }
  ArrayType type;
  type_of_value(args[0], &type);
  TRY(args_int(vm, op, param, args[param], &given));
  TRY_RULE(vm, op, &err, rule_axis(given, type.rank, axis, &err));
  *x = value_keep(args[0]);
  return WEFT_OK;
}

/* The sum of counts that are 0 or more. */
static WeftStatus count_repeated(Vm *vm, const i64 *n, i64 step, i64 size, i64 *total) {
  enum { SMALL_BITS = 31 };
  u64 bits = 0, sum = 0; /* of counts that are small no sum overflows: they are looked at without a branch */
  for (i64 i = 0; i < size; i++) bits |= (u64)n[i * step], sum += (u64)n[i * step];
  *total = (i64)sum;
  if (!(bits >> SMALL_BITS) && !(size >> SMALL_BITS)) return WEFT_OK;
  *total = 0;
  for (i64 i = 0; i < size; i++) {
    if (n[i * step] < 0) return vm_error(vm, EK_value, "repeat: n has %lld, needs 0 or more", (long long)n[i * step]);
    if (__builtin_add_overflow(*total, n[i * step], total)) return vm_error(vm, EK_limit, "repeat: too many elements");
  }
  return WEFT_OK;
}

/* Item number i of `from`, or i itself where that is NULL, n[i * step] times. Most counts are small and differ: four
 * items are written at once, and as many of them count; so that no branch depends on the count. */
static WeftStatus write_repeated(Vm *vm, const u64 *from, const i64 *n, i64 step, i64 size, u64 *to, i64 total) {
  enum { FEW = 4 };
  u64 *const end = to + total;
  WeftStatus status = WEFT_OK;
  for (i64 lo = 0, hi; lo < size && status == WEFT_OK; lo = hi) {
    hi = size - lo < PART_ELEMENTS ? size : lo + PART_ELEMENTS;
    for (i64 i = lo; i < hi && status == WEFT_OK; i++) {
      const u64 item = from ? from[i] : (u64)i;
      const i64 times = n[i * step];
      if (LIKELY(times <= FEW && end - to >= FEW)) {
        for (u32 k = 0; k < FEW; k++) to[k] = item;
        to += times;
        continue;
      }
      for (i64 k = 0, most; k < times && status == WEFT_OK; k = most) {
        most = times - k < PART_ELEMENTS ? times : k + PART_ELEMENTS;
        for (i64 j = k; j < most; j++) *to++ = item;
        if (most < times) status = vm_poll(vm, 0);
      }
    }
    if (hi - lo == PART_ELEMENTS && status == WEFT_OK) status = vm_poll(vm, 0);
  }
  return status;
}

/* Elements of eight bytes in a row, repeated where they are to be. */
static WeftStatus repeat_words(Vm *vm, const Array *x, const i64 *n, i64 step, i64 total, Value *out) {
  TRY(array_new(vm, array_dtype(x), 1, &total, out));
  WeftStatus status = write_repeated(vm, x->data, n, step, x->size, out->array->data, total);
  if (status != WEFT_OK) value_drop(vm, *out);
  return status;
}

WeftStatus eager_repeat(Vm *vm, Value *args, Value *out) {
  Value x, counts;
  u32 axis;
  if (!value_is_numeric(args[1]) && args[1].kind != V_LIST)
    return args_error(vm, OP_repeat, 1, args[1], "an integer or integers");
  TRY(along_axis(vm, OP_repeat, 2, args, &x, &axis));
  Value made[2] = {value_keep(args[1]), value_dtype(DT_i64)};
  WeftStatus status = run_op(vm, OP_array, made, 2, &counts);
  if (status != WEFT_OK) goto drop_x;
  i64 size = array_dims(x.array)[axis], total = 0;
  NumBox box;
  Array *c = array_of(counts, &box);
  if (array_rank(c) > 1 || (c->size != 1 && c->size != size)) {
    status = vm_error(vm, EK_shape, "repeat: %lld counts for an axis of size %lld", (long long)c->size,
                      (long long)size);
    goto drop_counts;
  }
  bool one = c->size == 1;
  i64 step = one ? 0 : array_strides(c)[0];
  const i64 *n = c->data;
  status = count_repeated(vm, n, step, size, &total);
  if (status != WEFT_OK) goto drop_counts;
  if (array_rank(x.array) == 1 && array_dense(x.array) && dtype_bytes(array_dtype(x.array)) == sizeof(u64)) {
    status = repeat_words(vm, x.array, n, step, total, out);
    goto drop_counts;
  }
  Value positions;
  status = array_new(vm, DT_i64, 1, &total, &positions);
  if (status != WEFT_OK) goto drop_counts;
  status = write_repeated(vm, NULL, n, step, size, positions.array->data, total);
  if (status == WEFT_OK) status = take_positions(vm, x, axis, positions.array->data, total, out);
  value_drop(vm, positions);
drop_counts:
  value_drop(vm, counts);
drop_x:
  value_drop(vm, x);
  return status;
}

/* Copies the slices [from, from + n) of an axis of `a` to `to` (same dims, dense), beginning at `at`. */
static WeftStatus copy_part(Vm *vm, Array *a, u32 axis, i64 from, i64 n, char *to, const i64 *to_strides, i64 at) {
  i64 dims[ARRAY_MAX_RANK];
  u32 rank = array_rank(a), bytes = dtype_bytes(array_dtype(a));
  if (n <= 0) return WEFT_OK;
  memcpy(dims, array_dims(a), rank * sizeof *dims);
  dims[axis] = n;
  const char *start = (const char *)a->data + from * array_strides(a)[axis] * bytes;
  return strided_copy_polled(vm, bytes, rank, dims, to + at * to_strides[axis] * bytes, to_strides, start,
                             array_strides(a));
}

static WeftStatus copy_run(Vm *vm, u32 bytes, i64 n, void *to, const void *from) {
  return strided_copy_polled(vm, bytes, 1, &n, to, &(i64){1}, from, &(i64){1});
}

/* The elements of `a` turned by `by` places (0 <= by < its size) along an axis, to `to` (same dims, dense). A dense
 * array is moved as one, its shorter way round; then what went over an end of the axis is put right. */
static WeftStatus turn(Vm *vm, Array *a, u32 axis, i64 by, Array *to) {
  i64 size = array_dims(a)[axis], back = size - by;
  u32 bytes = dtype_bytes(array_dtype(a));
  const i64 *strides = array_strides(to);
  if (!array_dense(a)) {
    TRY(copy_part(vm, a, axis, back, by, to->data, strides, 0));
    return copy_part(vm, a, axis, 0, back, to->data, strides, by);
  }
  if (by <= back) {
    i64 most = by * strides[axis];
    TRY(copy_run(vm, bytes, a->size - most, (char *)to->data + most * bytes, a->data));
    return copy_part(vm, a, axis, back, by, to->data, strides, 0);
  }
  i64 most = back * strides[axis];
  TRY(copy_run(vm, bytes, a->size - most, to->data, (const char *)a->data + most * bytes));
  return copy_part(vm, a, axis, 0, back, to->data, strides, by);
}

WeftStatus eager_roll(Vm *vm, Value *args, Value *out) {
  i64 shifts[ARRAY_MAX_RANK], axes[ARRAY_MAX_RANK] = {0};
  u32 n, m = 1;
  bool one_shift, single, flat = !args_given(args[2]);
  ArrayType type;
  RuleError err;
  Value x;
  TRY(args_array(vm, OP_roll, 0, args[0]));
  type_of_value(args[0], &type);
  TRY(args_ints(vm, OP_roll, 1, args[1], shifts, ARRAY_MAX_RANK, &n, &one_shift));
  if (!flat) TRY(args_ints(vm, OP_roll, 2, args[2], axes, ARRAY_MAX_RANK, &m, &single));
  if (one_shift && !flat) { /* one shift for every axis */
    for (u32 i = 1; i < m; i++) shifts[i] = shifts[0];
    n = m;
  }
  if (n != m) {
    if (m != 1) return vm_error(vm, EK_value, "roll: %u shifts for %u axes", n, m);
    for (u32 i = 1; i < n; i++) axes[i] = axes[0];
  }
  for (u32 i = 0; i < n && !flat; i++) {
    u32 axis;
    TRY_RULE(vm, OP_roll, &err, rule_axis(axes[i], type.rank, &axis, &err));
    axes[i] = axis;
  }
  if (flat) {
    Value one[1] = {value_keep(args[0])};
    TRY(run_op(vm, OP_ravel, one, 1, &x));
  } else {
    TRY(boxed(vm, args[0], &x));
  }
  TRY(kernel_poll(vm, x.array->size));
  for (u32 i = 0; i < n; i++) {
    Array *a = x.array;
    Value turned;
    i64 size = array_dims(a)[axes[i]];
    if (array_new(vm, type.dtype, array_rank(a), array_dims(a), &turned) != WEFT_OK) {
      value_drop(vm, x);
      return WEFT_ERROR;
    }
    if (a->size) {
      i64 by = shifts[i] % size;
      if (by < 0) by += size;
      if (turn(vm, a, (u32)axes[i], by, turned.array) != WEFT_OK) {
        value_drop(vm, turned);
        value_drop(vm, x);
        return WEFT_ERROR;
      }
    }
    value_drop(vm, x);
    x = turned;
  }
  if (flat) {
    Value shape, back[2] = {x, value_nil()};
    if (!list_new(vm, type.rank, &shape)) {
      value_drop(vm, x);
      return WEFT_ERROR;
    }
    for (u32 d = 0; d < type.rank; d++)
      if (list_add(vm, &shape, value_weak_i64(type.dims[d])) != WEFT_OK) {
        value_drop(vm, x);
        return WEFT_ERROR;
      }
    back[1] = shape;
    return run_op(vm, OP_reshape, back, 2, out);
  }
  *out = array_finish(vm, x);
  return WEFT_OK;
}

/* ---- borders ------------------------------------------------------------------------------------- */

typedef enum PadMode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_SYMMETRIC, PAD_WRAP } PadMode;

/* The position that stands at `i` (any integer) beside an axis of n elements. */
static i64 mirrored(PadMode mode, i64 i, i64 n) {
  if (i >= 0 && i < n) return i;
  if (mode == PAD_EDGE || n == 1) return i < 0 ? 0 : n - 1;
  i64 period = mode == PAD_WRAP ? n : mode == PAD_REFLECT ? 2 * n - 2 : 2 * n;
  i64 k = i % period;
  if (k < 0) k += period;
  if (k < n) return k;
  return mode == PAD_REFLECT ? period - k : period - 1 - k;
}

/* An integer for all sides, a pair for all axes, or a list of pairs. */
static WeftStatus pad_widths(Vm *vm, Value v, u32 rank, i64 *before, i64 *after) {
  i64 two[2];
  u32 n;
  bool single, pairs = v.kind == V_LIST && v.list->count > 0 && v.list->items[0].kind == V_LIST;
  if (pairs && v.list->count != rank && v.list->count != 1)
    return vm_error(vm, EK_value, "pad: width has %u pairs for rank %u", v.list->count, rank);
  for (u32 d = 0; d < rank; d++) {
    Value own = pairs ? v.list->items[v.list->count == 1 ? 0 : d] : v;
    TRY(args_ints(vm, OP_pad, 1, own, two, 2, &n, &single));
    if (n == 0) return args_error(vm, OP_pad, 1, own, "an integer or pairs of integers");
    before[d] = two[0];
    after[d] = two[n - 1];
    if (before[d] < 0 || after[d] < 0) return vm_error(vm, EK_value, "pad: width has a negative number");
  }
  return WEFT_OK;
}

WeftStatus eager_pad(Vm *vm, Value *args, Value *out) {
  static const char *const words[] = {"constant", "edge", "reflect", "symmetric", "wrap", NULL};
  u32 mode = PAD_CONSTANT;
  ArrayType type, shape;
  i64 before[ARRAY_MAX_RANK] = {0}, after[ARRAY_MAX_RANK] = {0};
  TRY(args_array(vm, OP_pad, 0, args[0]));
  type_of_value(args[0], &type);
  TRY(pad_widths(vm, args[1], type.rank, before, after));
  TRY(args_choice(vm, OP_pad, 2, args[2], words, &mode));
  if (type.rank == 0) {
    *out = strong(value_keep(args[0]));
    return WEFT_OK;
  }
  if (mode == PAD_CONSTANT) {
    /* Without a value the border is the zero of the array's dtype: false for bools. */
    Value number = dtype_kind(type.dtype) == DK_BOOL ? value_bool(false) : value_weak_i64(0), place_at;
    if (args[3].kind != V_HOLE) {
      TRY(args_array(vm, OP_pad, 3, args[3]));
      number = args[3];
      if (!value_is_scalar(number)) return args_error(vm, OP_pad, 3, args[3], "a number");
    }
    if (dtype_kind(number.dtype) > dtype_kind(type.dtype))
      return vm_error(vm, EK_dtype, "pad: value is %s, the array is %s; a conversion says what is meant",
                      dtype_name(number.dtype), dtype_name(type.dtype));
    if (number.kind == V_NUM) TRY(num_fit(vm, OP_pad, number, type.dtype, &number));
    shape_pad(NULL, &type, before, after, &shape);
    TRY(kernel_poll(vm, dims_size(shape.rank, shape.dims)));
    void *data;
    u64 one[2] = {0, 0};
    TRY(result_new(vm, type.dtype, &shape, &place_at, &data));
    num_store_as(one, type.dtype, number);
    u32 bytes = dtype_bytes(type.dtype);
    WeftStatus status = fill_dense(vm, data, one, place_at.array->size, bytes);
    i64 offset = 0;
    for (u32 d = 0; d < type.rank; d++) offset += before[d] * array_strides(place_at.array)[d];
    if (status == WEFT_OK && args[0].array->size)
      status = strided_copy_polled(vm, bytes, type.rank, type.dims, (char *)data + offset * bytes,
                                   array_strides(place_at.array), args[0].array->data, array_strides(args[0].array));
    if (status == WEFT_OK) *out = place_at;
    else value_drop(vm, place_at);
    return status;
  }
  Value x = value_keep(args[0]);
  for (u32 d = 0; d < type.rank; d++) {
    i64 size = type.dims[d], n;
    if (before[d] == 0 && after[d] == 0) continue;
    if (size == 0) {
      value_drop(vm, x);
      return vm_error(vm, EK_value, "pad: axis %u is empty; mode \"%s\" takes its border from elements", d,
                      words[mode]);
    }
    Value positions, wider;
    shape_pad(NULL, &type, before, after, &shape);
    n = shape.dims[d];
    WeftStatus status = array_new(vm, DT_i64, 1, &n, &positions);
    if (status == WEFT_OK) {
      i64 *p = positions.array->data;
      for (i64 i = 0; i < n; i++) p[i] = mirrored(mode, i - before[d], size);
      status = take_positions(vm, x, d, p, n, &wider);
      value_drop(vm, positions);
    }
    value_drop(vm, x);
    if (status != WEFT_OK) return status;
    x = wider;
  }
  *out = x;
  return WEFT_OK;
}
