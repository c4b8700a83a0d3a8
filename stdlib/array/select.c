/* select.c — elements by position and by truth: take compress nonzero one_hot scatter bincount histogram. */
#include "stdlib/kernels/element.h"
#include "stdlib/array/make.h"
#include "stdlib/array/walk.h"

#include <string.h>

/* Integer indices as a dense i64 array, *out owned. */
static WeftStatus index_array(Vm *vm, u32 op, u32 param, Value v, Value *out) {
  if (v.kind == V_LIST || v.kind == V_RANGE) {
    Value made[1] = {value_keep(v)};
    TRY(run_op(vm, OP_array, made, 1, out));
    Value list = *out;
    WeftStatus status = index_array(vm, op, param, list, out);
    value_drop(vm, list);
    return status;
  }
  TRY(args_array(vm, op, param, v));
  u32 dtype = v.kind == V_NUM ? v.dtype : array_dtype(v.array);
  bool none = v.kind == V_ARRAY && v.array->size == 0; /* of any dtype, as [] is f64 */
  if (dtype_kind(dtype) != DK_INT && !none) return args_error(vm, op, param, v, "integers");
  TRY(dense_as(vm, op, v, DT_i64, out));
  if (dtype != DT_u64) return WEFT_OK;
  const i64 *p = out->array->data;
  for (i64 i = 0; i < out->array->size; i++)
    if (p[i] < 0) {
      WeftStatus status = vm_error(vm, EK_index, "%s: index %llu is out of bounds for every array", op_name(op),
                                   (unsigned long long)p[i]);
      value_drop(vm, *out);
      return status;
    }
  return WEFT_OK;
}

static WeftStatus out_of_bounds(Vm *vm, u32 op, i64 index, u32 axis, i64 size) {
  return vm_error(vm, EK_index, "%s: index %lld is out of bounds for axis %u of size %lld", op_name(op),
                  (long long)index, axis, (long long)size);
}

/* Makes negative indices positive, in a copy when needed: *index (consumed, dense i64) becomes safe to use. */
static WeftStatus index_bounds(Vm *vm, u32 op, Value *index, u32 axis, i64 size) {
  i64 n = index->array->size;
  i64 *p = index->array->data;
  bool negative = false;
  for (i64 i = 0; i < n; i++) {
    if (p[i] < -size || p[i] >= size) {
      WeftStatus status = out_of_bounds(vm, op, p[i], axis, size);
      value_drop(vm, *index);
      return status;
    }
    negative |= p[i] < 0;
  }
  if (!negative) return WEFT_OK;
  if (array_make_unique(vm, index) != WEFT_OK) {
    value_drop(vm, *index);
    return WEFT_ERROR;
  }
  p = index->array->data;
  for (i64 i = 0; i < n; i++) p[i] += p[i] < 0 ? size : 0;
  return WEFT_OK;
}

WeftStatus eager_take(Vm *vm, Value *args, Value *out) {
  ArrayType type, index_type, shape;
  RuleError err;
  Value x, index;
  i64 given = 0;
  bool flat = !args_given(args[2]);
  TRY(args_array(vm, OP_take, 0, args[0]));
  TRY(args_int(vm, OP_take, 2, args[2], &given));
  TRY(index_array(vm, OP_take, 1, args[1], &index));
  type_of_value(args[0], &type);
  type_of_value(index, &index_type);
  if (!shape_take(NULL, &type, &index_type, flat, given, &shape, &err)) {
    value_drop(vm, index);
    return vm_error_rule(vm, OP_take, &err);
  }
  u32 axis = flat ? 0 : (u32)(given < 0 ? given + type.rank : given);
  Value one[1] = {value_keep(args[0])};
  if (flat && run_op(vm, OP_ravel, one, 1, &x) != WEFT_OK) {
    value_drop(vm, index);
    return WEFT_ERROR;
  }
  if (!flat) x = one[0];
  WeftStatus status = index_bounds(vm, OP_take, &index, axis, array_dims(x.array)[axis]);
  Value taken;
  if (status == WEFT_OK) {
    status = take_positions(vm, x, axis, index.array->data, index.array->size, &taken);
    value_drop(vm, index);
  }
  value_drop(vm, x);
  TRY(status);
  if (index_type.rank == 1) {
    *out = taken;
    return WEFT_OK;
  }
  i64 strides[ARRAY_MAX_RANK];
  dense_strides(shape.rank, shape.dims, strides);
  status = array_view(vm, taken.array, 0, shape.rank, shape.dims, strides, out);
  value_drop(vm, taken);
  if (status == WEFT_OK) result_finish(vm, out);
  return status;
}

WeftStatus eager_take_along_axis(Vm *vm, Value *args, Value *out) {
  ArrayType type, index_type, shape;
  RuleError err;
  Value index, x;
  i64 given = -1;
  TRY(args_array(vm, OP_take_along_axis, 0, args[0]));
  TRY(args_int(vm, OP_take_along_axis, 2, args[2], &given));
  TRY(index_array(vm, OP_take_along_axis, 1, args[1], &index));
  type_of_value(args[0], &type);
  type_of_value(index, &index_type);
  if (!shape_take_along_axis(NULL, &type, &index_type, given, &shape, &err)) {
    value_drop(vm, index);
    return vm_error_rule(vm, OP_take_along_axis, &err);
  }
  u32 axis = (u32)(given < 0 ? given + type.rank : given), bytes = dtype_bytes(type.dtype);
  i64 size = type.dims[axis];
  TRY(index_bounds(vm, OP_take_along_axis, &index, axis, size));
  void *data;
  WeftStatus status = kernel_poll(vm, dims_size(shape.rank, shape.dims));
  if (status == WEFT_OK) status = boxed(vm, args[0], &x);
  if (status != WEFT_OK) {
    value_drop(vm, index);
    return status;
  }
  status = result_new(vm, type.dtype, &shape, out, &data);
  if (status == WEFT_OK && out->array->size) {
    /* where the elements of every slice along the axis begin, and the indices beside them, as two walks */
    i64 strides[2][ARRAY_MAX_RANK], at[ARRAY_MAX_RANK] = {0}, offset = 0, place = 0;
    broadcast_strides(index.array, shape.rank, strides[0]);
    for (u32 d = 0; d < shape.rank; d++) strides[1][d] = d == axis || type.dims[d] == 1 ? 0 : array_strides(x.array)[d];
    const i64 *p = index.array->data;
    const char *from = x.array->data;
    char *o = data;
    i64 step = array_strides(x.array)[axis];
    Polled parts = parts_in(vm, out->array->size, PART_ELEMENTS / 4);
    while (parts_next(&parts))
      for (i64 i = parts.from; i < parts.to; i++, o += bytes) {
        memcpy(o, from + (offset + p[place] * step) * bytes, bytes);
        for (u32 d = shape.rank; d-- > 0;) {
          place += strides[0][d];
          offset += strides[1][d];
          if (++at[d] < shape.dims[d]) break;
          place -= strides[0][d] * shape.dims[d];
          offset -= strides[1][d] * shape.dims[d];
          at[d] = 0;
        }
      }
    if ((status = parts.status) != WEFT_OK) value_drop(vm, *out);
  }
  value_drop(vm, index);
  value_drop(vm, x);
  return status;
}

/* ---- by truth ------------------------------------------------------------------------------------ */

/* x (a number or array) as dense truth values, *out owned. */
static WeftStatus truth_array(Vm *vm, u32 op, u32 param, Value v, Value *out) {
  TRY(args_array(vm, op, param, v));
  return dense_as(vm, op, v, DT_bool, out);
}

WeftStatus eager_compress(Vm *vm, Value *args, Value *out) {
  ArrayType type;
  RuleError err;
  i64 given = 0, size = -1;
  u32 axis = 0;
  Value x, mask, positions = value_hole();
  TRY(args_array(vm, OP_compress, 0, args[0]));
  TRY(args_int(vm, OP_compress, 2, args[2], &given));
  TRY(args_int(vm, OP_compress, 3, args[3], &size));
  if (args_given(args[3]) && size < 0)
    return vm_error(vm, EK_value, "compress: size is %lld, needs 0 or more", (long long)size);
  if (!value_is_numeric(args[1]) || (args[1].kind == V_NUM ? args[1].dtype : array_dtype(args[1].array)) != DT_bool)
    return args_error(vm, OP_compress, 1, args[1], "a mask of bools");
  Value one[1] = {value_keep(args[0])};
  if (args[2].kind == V_NIL) {
    TRY(run_op(vm, OP_ravel, one, 1, &x));
  } else {
    x = one[0];
    type_of_value(x, &type);
    if (!rule_axis(given, type.rank, &axis, &err)) {
      value_drop(vm, x);
      return vm_error_rule(vm, OP_compress, &err);
    }
  }
  type_of_value(x, &type);
  if (truth_array(vm, OP_compress, 1, args[1], &mask) != WEFT_OK) goto fail_x;
  Array *m = mask.array;
  if (array_rank(m) != 1 || m->size != type.dims[axis]) {
    ArrayType mask_type;
    type_of_value(mask, &mask_type);
    (void)vm_error(vm, EK_shape, "compress: the mask has shape %s, axis %u of x has the size %lld",
                   shape_text(&mask_type).s, axis, (long long)type.dims[axis]);
    goto fail_mask;
  }
  i64 kept;
  if (bools_count(vm, m->data, m->size, &kept) != WEFT_OK) goto fail_mask;
  const i64 padded = size < 0 ? 0 : size > kept ? size - kept : 0;
  if (size >= 0 && kept > size) kept = size;
  if (array_new(vm, DT_i64, 1, &kept, &positions) != WEFT_OK) goto fail_mask;
  const i64 *at = positions.array->data;
  WeftStatus status = bools_places(vm, m->data, m->size, kept, 1, positions.array->data);
  if (status == WEFT_OK) status = take_positions(vm, x, axis, at, kept, out);
  value_drop(vm, positions);
  value_drop(vm, mask);
  value_drop(vm, x);
  if (status != WEFT_OK || padded == 0) return status;
  /* filled up to the size that was asked for */
  Value fill = args[4].kind == V_HOLE ? value_weak_i64(0) : args[4], filler, list;
  ArrayType shape = type;
  shape.dims[axis] = padded;
  if (!value_is_scalar(fill)) {
    value_drop(vm, *out);
    return args_error(vm, OP_compress, 4, fill, "a number");
  }
  status = convert_allowed(vm, OP_compress, fill.dtype, type.dtype);
  if (status == WEFT_OK && fill.kind == V_NUM) status = num_fit(vm, OP_compress, fill, type.dtype, &fill);
  void *data;
  if (status == WEFT_OK) status = result_new(vm, type.dtype, &shape, &filler, &data);
  if (status != WEFT_OK) {
    value_drop(vm, *out);
    return status;
  }
  u64 element[2] = {0, 0};
  num_store_as(element, type.dtype, fill);
  strip_fill(data, element, filler.array->size, dtype_bytes(type.dtype));
  if (!list_new(vm, 2, &list)) {
    value_drop(vm, filler);
    value_drop(vm, *out);
    return WEFT_ERROR;
  }
  if (list_add(vm, &list, *out) != WEFT_OK) {
    value_drop(vm, filler);
    return WEFT_ERROR;
  }
  TRY(list_add(vm, &list, filler));
  Value joined[2] = {list, value_i64(axis)};
  return run_op(vm, OP_concat, joined, 2, out);
fail_mask:
  value_drop(vm, mask);
fail_x:
  value_drop(vm, x);
  return WEFT_ERROR;
}

WeftStatus eager_nonzero(Vm *vm, Value *args, Value *out) {
  Value mask;
  TRY(args_array(vm, OP_nonzero, 0, args[0]));
  if (args[0].kind == V_NUM || !array_rank(args[0].array))
    return vm_error(vm, EK_shape, "nonzero: needs rank 1 or more");
  TRY(truth_array(vm, OP_nonzero, 0, args[0], &mask));
  Array *m = mask.array;
  u32 rank = array_rank(m);
  i64 n, *columns[ARRAY_MAX_RANK], at[ARRAY_MAX_RANK] = {0};
  if (bools_count(vm, m->data, m->size, &n) != WEFT_OK || !list_new(vm, rank, out)) {
    value_drop(vm, mask);
    return WEFT_ERROR;
  }
  for (u32 d = 0; d < rank; d++) {
    Value column;
    WeftStatus status = array_new(vm, DT_i64, 1, &n, &column);
    if (status != WEFT_OK) value_drop(vm, *out);
    else status = list_add(vm, out, column);
    if (status != WEFT_OK) {
      value_drop(vm, mask);
      return status;
    }
    columns[d] = column.array->data;
  }
  const u8 *p = m->data;
  const i64 *dims = array_dims(m);
  i64 inner = rank ? dims[rank - 1] : 0, k = 0;
  WeftStatus status = rank == 1 ? bools_places(vm, p, n ? m->size : 0, n, 1, columns[0]) : WEFT_OK;
  for (i64 row = 0, since = 0; status == WEFT_OK && rank > 1 && row < m->size; row += inner) {
    if ((since += inner + 1) > PART_PLACES) since = 0, status = vm_look(vm);
    for (i64 j = 0; j < inner && k < n; j++) { /* what is not wanted is written over */
      for (u32 d = 0; d + 1 < rank; d++) columns[d][k] = at[d];
      columns[rank - 1][k] = j;
      k += p[row + j];
    }
    for (u32 d = rank - 1; d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
  value_drop(vm, mask);
  if (status != WEFT_OK) value_drop(vm, *out);
  return status;
}

WeftStatus eager_one_hot(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape;
  RuleError err;
  i64 n = 0, given = -1;
  u32 dtype = DT_f64;
  Value index;
  if (value_is_numeric(args[0])) {
    type_of_value(args[0], &type);
    if (dtype_kind(type.dtype) != DK_INT) return args_error(vm, OP_one_hot, 0, args[0], "integers");
  }
  TRY(args_size(vm, OP_one_hot, 1, args[1], &n));
  TRY(args_dtype(vm, OP_one_hot, 2, args[2], &dtype));
  TRY(args_int(vm, OP_one_hot, 3, args[3], &given));
  TRY(index_array(vm, OP_one_hot, 0, args[0], &index));
  type_of_value(index, &type);
  if (!shape_one_hot(&type, n, given, &shape, &err)) {
    value_drop(vm, index);
    return vm_error_rule(vm, OP_one_hot, &err);
  }
  u32 axis = (u32)(given < 0 ? given + shape.rank : given), bytes = dtype_bytes(dtype);
  WeftStatus status = kernel_poll(vm, dims_size(shape.rank, shape.dims));
  if (status == WEFT_OK) status = array_new_zero(vm, dtype, shape.rank, shape.dims, out);
  if (status == WEFT_OK) {
    u64 one[2] = {0, 0};
    num_store_as(one, dtype, value_i64(1));
    i64 inner = 1;
    for (u32 d = axis; d < type.rank; d++) inner *= type.dims[d];
    const i64 *p = index.array->data;
    char *o = out->array->data;
    for (i64 i = 0; i < index.array->size && status == WEFT_OK; i++) {
      if (p[i] < 0 || p[i] >= n) {
        status = vm_error(vm, EK_index, "one_hot: %lld is out of bounds for %lld classes", (long long)p[i],
                          (long long)n);
        value_drop(vm, *out);
        break;
      }
      memcpy(o + ((i / inner * n + p[i]) * inner + i % inner) * bytes, one, bytes);
    }
  }
  value_drop(vm, index);
  return status;
}

/* ---- writing by position ------------------------------------------------------------------------- */

typedef enum ScatterKind { SCATTER_SET, SCATTER_ADD, SCATTER_MUL, SCATTER_MIN, SCATTER_MAX } ScatterKind;

/* Elements of one place each. Sums of integers wrap, so they are those of unsigned ones. */
#define EACH_PLACE(T, OP)                                                               \
  {                                                                                     \
    T *to = (T *)(void *)x;                                                             \
    const T *from = (const T *)(const void *)updates;                                   \
    for (i64 i = 0; i < n; i++) to[index[i]] = (T)OP(to[index[i]], from[i]);            \
    return true;                                                                        \
  }
#define SECOND(a, b) (b)
#define SUM(a, b) ((a) + (b))

/* False: it is for the general way. */
static bool scatter_elements(u32 kind, u32 dtype, char *x, const i64 *index, i64 n, const char *updates) {
  if (kind == SCATTER_SET) switch (dtype_bytes(dtype)) {
      case 1: EACH_PLACE(u8, SECOND)
      case 2: EACH_PLACE(u16, SECOND)
      case 4: EACH_PLACE(u32, SECOND)
      case 8: EACH_PLACE(u64, SECOND)
      default: return false;
    }
  if (kind == SCATTER_ADD) switch (dtype) {
      case DT_f64: EACH_PLACE(f64, SUM)
      case DT_f32: EACH_PLACE(f32, SUM)
      case DT_i64:
      case DT_u64: EACH_PLACE(u64, SUM)
      case DT_i32:
      case DT_u32: EACH_PLACE(u32, SUM)
      case DT_u8: EACH_PLACE(u8, SUM)
      default: return false;
    }
  return false;
}

/* Slices of `inner` elements along an axis of `size`, in the order of the indices. */
static void scatter_slices(const StripTable *strips, u32 kind, u32 dtype, char *x, i64 outer, i64 size, i64 inner,
                           const i64 *index, i64 n, const char *updates) {
  static const u16 combine[] = {0, OP_add, OP_multiply, OP_minimum, OP_maximum};
  u32 bytes = dtype_bytes(dtype);
  i64 run = inner * bytes;
  StripFn fn = kind == SCATTER_SET ? NULL : strips->ops[combine[kind]][dtype];
  for (i64 k = 0; k < outer; k++, x += size * run) {
    if (inner == 1 && scatter_elements(kind, dtype, x, index, n, updates)) {
      updates += n * run;
      continue;
    }
    for (i64 i = 0; i < n; i++, updates += run) {
      char *to = x + index[i] * run;
      if (fn) (void)fn(to, to, updates, inner);
      else memcpy(to, updates, (size_t)run);
    }
  }
}

WeftStatus eager_scatter(Vm *vm, Value *args, Value *out) {
  static const char *const words[] = {"set", "add", "mul", "min", "max", NULL};
  ArrayType type, index_type, update_type, want, checked;
  RuleError err;
  i64 given = 0;
  u32 axis, kind = SCATTER_SET;
  Value index, updates, same;
  TRY(args_array(vm, OP_scatter, 0, args[0]));
  TRY(args_array(vm, OP_scatter, 2, args[2]));
  TRY(args_int(vm, OP_scatter, 3, args[3], &given));
  TRY(args_choice(vm, OP_scatter, 4, args[4], words, &kind));
  type_of_value(args[0], &type);
  type_of_value(args[2], &update_type);
  TRY_RULE(vm, OP_scatter, &err, rule_axis(given, type.rank, &axis, &err));
  if (dtype_kind(update_type.dtype) > dtype_kind(type.dtype))
    return vm_error(vm, EK_dtype, "scatter: updates are %s, the array is %s; a conversion says what is meant",
                    dtype_name(update_type.dtype), dtype_name(type.dtype));
  if (type.dtype == DT_bool && (kind == SCATTER_ADD || kind == SCATTER_MUL))
    return vm_error(vm, EK_dtype, "scatter: reduce \"%s\" needs numbers, got bool", words[kind]);
  if (dtype_kind(type.dtype) == DK_COMPLEX && kind >= SCATTER_MIN)
    return vm_error(vm, EK_dtype, "scatter: reduce \"%s\" needs numbers that have an order, got %s", words[kind],
                    dtype_name(type.dtype));
  TRY(index_array(vm, OP_scatter, 1, args[1], &index));
  type_of_value(index, &index_type);
  TRY(index_bounds(vm, OP_scatter, &index, axis, type.dims[axis]));
  /* updates have the shape of x with the axis replaced by those of the indices, or broadcast to it */
  bool fits = shape_take(NULL, &type, &index_type, false, given, &want, &err) &&
              shape_broadcast_to(NULL, &update_type, want.rank, want.dims, &checked, &err);
  WeftStatus status = fits ? kernel_poll(vm, type.rank ? args[0].array->size : 1) : vm_error_rule(vm, OP_scatter, &err);
  void *data;
  if (status != WEFT_OK) goto drop_index;
  Value fitted = args[2];
  if (fitted.kind == V_NUM) status = num_fit(vm, OP_scatter, fitted, type.dtype, &fitted);
  if (status == WEFT_OK) status = convert_value(vm, OP_scatter, fitted, type.dtype, &same);
  if (status != WEFT_OK) goto drop_index;
  status = result_new(vm, type.dtype, &want, &updates, &data);
  if (status == WEFT_OK) {
    NumBox box;
    status = copy_dense(vm, array_of(same, &box), want.rank, want.dims, type.dtype, data, &(u32){0});
    if (status == WEFT_OK && !result_reuse(&args[0], type.dtype, &type, out)) {
      void *copy;
      status = result_new(vm, type.dtype, &type, out, &copy);
      if (status == WEFT_OK &&
          (status = copy_dense(vm, args[0].array, type.rank, type.dims, type.dtype, copy, &(u32){0})) != WEFT_OK)
        value_drop(vm, *out);
    }
    if (status == WEFT_OK) {
      i64 outer = 1, inner = 1;
      for (u32 d = 0; d < axis; d++) outer *= type.dims[d];
      for (u32 d = axis + 1; d < type.rank; d++) inner *= type.dims[d];
      scatter_slices(stdlib_of(vm)->strips, kind, type.dtype, out->array->data, outer, type.dims[axis], inner,
                     index.array->data, index.array->size, data);
    }
    value_drop(vm, updates);
  }
  value_drop(vm, same);
drop_index:
  value_drop(vm, index);
  return status;
}

/* ---- counting ------------------------------------------------------------------------------------ */

/* Counts of several positions at a time, so that equal neighbours do not wait for each other; the tables are added in
 * the end. */
enum { COUNT_TABLES = 4, COUNT_BLOCK = 4096, COUNT_MOST = 4096 };

static void count_runs(i64 *o, i64 bins, i64 *tables, const i64 *p, i64 n) {
  if (!tables) {
    for (i64 i = 0; i < n; i++) o[p[i]]++;
    return;
  }
  i64 *a = tables, *b = a + bins, *c = b + bins, i = 0;
  for (; i + COUNT_TABLES <= n; i += COUNT_TABLES) a[p[i]]++, b[p[i + 1]]++, c[p[i + 2]]++, o[p[i + 3]]++;
  for (; i < n; i++) o[p[i]]++;
}

/* The bins that x[at …] needs, at least `*bins`; an error for what is no position. With `counts`, of `*bins`
 * elements, and `tables`, blocks are counted as they come, as long as the bins do: the first that was not, or the
 * end, is `*at`. */
static WeftStatus bins_of(Vm *vm, const Array *x, i64 *bins, i64 *counts, i64 *tables, i64 *at) {
  const i64 *p = x->data;
  const StripTable *strips = stdlib_of(vm)->strips;
  i64 room = counts ? *bins : 0;
  *at = 0;
  for (i64 i = 0, n; i < x->size; i += n) {
    i64 least, most;
    if (i % PART_ELEMENTS == PART_ELEMENTS - COUNT_BLOCK) TRY(vm_poll(vm, 0));
    n = x->size - i < COUNT_BLOCK ? x->size - i : COUNT_BLOCK;
    strips->rows[REDUCE_MIN][DT_i64](&least, p + i, n, 1, n);
    strips->rows[REDUCE_MAX][DT_i64](&most, p + i, n, 1, n);
    for (i64 k = i; (least < 0 || most == INT64_MAX) && k < i + n; k++) { /* the first of them is named */
      if (p[k] < 0) return vm_error(vm, EK_value, "bincount: x holds %lld, needs 0 or more", (long long)p[k]);
      if (p[k] == INT64_MAX) return vm_error(vm, EK_limit, "bincount: x holds %lld", (long long)p[k]);
    }
    if (most >= *bins) *bins = most + 1;
    if (*bins != room) continue;
    count_runs(counts, room, tables, p + i, n);
    *at = i + n;
  }
  return WEFT_OK;
}

/* Few bins that are known before are counted in the same read, in tables of their own. */
static WeftStatus count_all(Vm *vm, const Array *x, i64 least, Value *out) {
  i64 room = least > 0 && least <= COUNT_MOST && x->size / 8 > least ? least : 0, bins = least, at;
  size_t bytes = (size_t)room * COUNT_TABLES * sizeof(i64);
  i64 *counts = room ? mem_alloc_zero(&vm->alloc, bytes) : NULL;
  if (room && !counts) return vm_error_memory(vm);
  WeftStatus status = bins_of(vm, x, &bins, counts, counts ? counts + room : NULL, &at);
  if (status == WEFT_OK) status = array_new_zero(vm, DT_i64, 1, &bins, out);
  if (status == WEFT_OK) {
    i64 *o = out->array->data;
    for (i64 i = 0; i < COUNT_TABLES * room; i++) o[i % room] += counts[i];
    Polled p = parts_in(vm, x->size - at, PART_ELEMENTS);
    while (parts_next(&p)) count_runs(o, bins, NULL, (const i64 *)x->data + at + p.from, p.to - p.from);
    if ((status = p.status) != WEFT_OK) value_drop(vm, *out);
  }
  if (counts) mem_free(&vm->alloc, counts, bytes);
  return status;
}

#define ADD_WEIGHTS(T)                       \
  for (i64 i = parts.from; i < parts.to; i++) \
    ((T *)out->array->data)[p[i]] += ((const T *)weights.array->data)[i]

WeftStatus eager_bincount(Vm *vm, Value *args, Value *out) {
  i64 least = 0;
  Value index, weights = value_hole();
  TRY(args_size(vm, OP_bincount, 2, args[2], &least));
  TRY(index_array(vm, OP_bincount, 0, args[0], &index));
  Array *x = index.array;
  WeftStatus status = WEFT_OK;
  u32 dtype = DT_i64;
  if (array_rank(x) != 1) status = vm_error(vm, EK_shape, "bincount: x needs rank 1");
  if (status == WEFT_OK && args_given(args[1])) {
    status = args_array(vm, OP_bincount, 1, args[1]);
    if (status == WEFT_OK) {
      ArrayType type;
      type_of_value(args[1], &type);
      dtype = dtype_float_of(type.dtype); /* as NumPy, and f32 stays */
      if (type.rank != 1 || type.dims[0] != x->size)
        status = vm_error(vm, EK_shape, "bincount: shapes (%lld,) and %s of x and the weights differ",
                          (long long)x->size, shape_text(&type).s);
      else status = dense_as(vm, OP_bincount, args[1], dtype, &weights);
    }
  }
  const i64 *p = x->data;
  i64 n = least, at;
  if (status == WEFT_OK && dtype == DT_i64) {
    status = count_all(vm, x, least, out);
  } else if (status == WEFT_OK) {
    status = bins_of(vm, x, &n, NULL, NULL, &at);
    if (status == WEFT_OK) status = array_new_zero(vm, dtype, 1, &n, out);
    const bool made = status == WEFT_OK;
    Polled parts = parts_in(vm, made ? x->size : 0, PART_ELEMENTS);
    while (parts_next(&parts)) {
      if (dtype == DT_f64) ADD_WEIGHTS(f64);
      else ADD_WEIGHTS(f32);
    }
    if (made && (status = parts.status) != WEFT_OK) value_drop(vm, *out);
  }
  value_drop(vm, weights);
  value_drop(vm, index);
  return status;
}

/* The bin of v among ascending edges; the last one holds its right edge, too. -1: outside. */
static i64 bin_of(f64 v, const f64 *edges, i64 bins) {
  if (!(v >= edges[0] && v <= edges[bins])) return -1;
  i64 lo = 0, hi = bins;
  while (hi - lo > 1) {
    i64 mid = lo + (hi - lo) / 2;
    if (v >= edges[mid]) lo = mid;
    else hi = mid;
  }
  return lo;
}

/* The same for edges at equal steps: the bin by arithmetic, then moved to where the edges say. */
static i64 bin_at(f64 v, const f64 *edges, i64 bins, f64 per_step) {
  enum { MOVES = 4 };
  if (!(v >= edges[0] && v <= edges[bins])) return -1;
  f64 guess = (v - edges[0]) * per_step;
  i64 b = guess < (f64)bins ? (i64)guess : bins - 1;
  for (u32 i = 0; i < MOVES; i++) {
    if (v < edges[b]) b--;
    else if (b + 1 < bins && v >= edges[b + 1]) b++;
    else return b;
  }
  return bin_of(v, edges, bins);
}

/* The least and the greatest of x, which has some. */
static WeftStatus extent(Vm *vm, Value x, f64 *lo, f64 *hi) {
  Value end, arg = value_keep(x);
  TRY(run_op(vm, OP_min, &arg, 1, &end));
  *lo = num_as_f64(end);
  value_drop(vm, end);
  arg = value_keep(x);
  TRY(run_op(vm, OP_max, &arg, 1, &end));
  *hi = num_as_f64(end);
  value_drop(vm, end);
  return WEFT_OK;
}

WeftStatus eager_histogram(Vm *vm, Value *args, Value *out) {
  Value x, weights = value_hole(), edges = value_hole(), counts = value_hole();
  TRY(args_array(vm, OP_histogram, 0, args[0]));
  TRY(dense_as(vm, OP_histogram, args[0], DT_f64, &x));
  const f64 *v = x.array->data;
  i64 n = x.array->size, bins = 10;
  WeftStatus status = WEFT_OK;
  ArrayType type;
  type_of_value(args[0], &type);
  u32 dtype = type.dtype; /* of the edges */
  bool given_edges = args[1].kind == V_ARRAY || args[1].kind == V_LIST;
  if (given_edges) {
    Value made[1] = {value_keep(args[1])};
    status = run_op(vm, OP_array, made, 1, &edges);
    if (status == WEFT_OK && (edges.kind != V_ARRAY || array_rank(edges.array) != 1 || edges.array->size < 2))
      status = vm_error(vm, EK_shape, "histogram: the edges need rank 1 and at least 2 elements");
    if (status == WEFT_OK) {
      Value kept = edges;
      dtype = dtype_float_of(array_dtype(kept.array));
      status = dense_as(vm, OP_histogram, kept, DT_f64, &edges);
      value_drop(vm, kept);
      if (status != WEFT_OK) edges = value_hole();
    }
    if (status == WEFT_OK) {
      bins = edges.array->size - 1;
      const f64 *e = edges.array->data;
      for (i64 i = 0; i < bins && status == WEFT_OK; i++)
        if (!(e[i] <= e[i + 1])) status = vm_error(vm, EK_value, "histogram: the edges do not ascend");
    }
  } else {
    f64 lo = 0, hi = 1;
    status = args_int(vm, OP_histogram, 1, args[1], &bins);
    if (status == WEFT_OK && bins < 1)
      status = vm_error(vm, EK_value, "histogram: bins is %lld, needs 1 or more", (long long)bins);
    if (status == WEFT_OK && args_given(args[2])) {
      if (args[2].kind != V_LIST || args[2].list->count != 2)
        status = args_error(vm, OP_histogram, 2, args[2], "a list of two numbers");
      if (status == WEFT_OK) status = args_f64(vm, OP_histogram, 2, args[2].list->items[0], &lo);
      if (status == WEFT_OK) status = args_f64(vm, OP_histogram, 2, args[2].list->items[1], &hi);
      bool weak = type.weak;
      for (u32 i = 0; i < 2 && status == WEFT_OK; i++) {
        Value end = args[2].list->items[i];
        dtype = dtype_promote_weak(dtype, weak, end.dtype, (end.flags & VF_WEAK) != 0, &weak);
      }
    } else if (n > 0 && status == WEFT_OK) {
      status = extent(vm, x, &lo, &hi);
    }
    dtype = dtype_float_of(dtype);
    /* the range is one of the edges' dtype: what rounds to its ends lies within */
    if (dtype == DT_f32) lo = (f32)lo, hi = (f32)hi;
    if (status == WEFT_OK && !(lo <= hi && hi - lo < INFINITY))
      status = vm_error(vm, EK_value, "histogram: the range from %g to %g cannot be cut into bins", args_shown(lo),
                        args_shown(hi));
    if (lo == hi) {
      lo -= 0.5;
      hi += 0.5;
    }
    i64 count = bins + 1;
    if (status == WEFT_OK) status = array_new(vm, DT_f64, 1, &count, &edges);
    if (status == WEFT_OK) {
      f64 *e = edges.array->data, step = (hi - lo) / (f64)bins;
      for (i64 i = 0; i < bins; i++) e[i] = lo + (f64)i * step;
      e[bins] = hi;
      for (i64 i = 0; i <= bins && dtype == DT_f32; i++) e[i] = (f32)e[i];
    }
  }
  if (status == WEFT_OK && args_given(args[3])) {
    status = args_array(vm, OP_histogram, 3, args[3]);
    if (status == WEFT_OK) status = dense_as(vm, OP_histogram, args[3], DT_f64, &weights);
    if (status == WEFT_OK && weights.array->size != n)
      status = vm_error(vm, EK_shape, "histogram: %lld weights for %lld elements", (long long)weights.array->size,
                        (long long)n);
  }
  bool weighted = weights.kind == V_ARRAY;
  if (status == WEFT_OK) status = kernel_poll(vm, n);
  if (status == WEFT_OK) status = array_new_zero(vm, weighted ? DT_f64 : DT_i64, 1, &bins, &counts);
  if (status == WEFT_OK) {
    const f64 *e = edges.array->data;
    f64 per_step = given_edges ? 0 : (f64)bins / (e[bins] - e[0]);
    bool even = per_step > 0 && per_step < INFINITY;
    Polled parts = parts_in(vm, n, PART_ELEMENTS);
    for (i64 i = 0; i < n; i++) {
      if (i == parts.to && !parts_next(&parts)) break;
      i64 b = even ? bin_at(v[i], e, bins, per_step) : bin_of(v[i], e, bins);
      if (b < 0) continue;
      if (weighted) ((f64 *)counts.array->data)[b] += ((const f64 *)weights.array->data)[i];
      else ((i64 *)counts.array->data)[b]++;
    }
    status = parts.status;
    if (status == WEFT_OK && dtype != DT_f64) {
      Value wide = edges;
      status = convert_value(vm, OP_histogram, wide, dtype, &edges);
      value_drop(vm, wide);
      if (status != WEFT_OK) edges = value_hole();
    }
    if (status == WEFT_OK && !list_new(vm, 2, out)) status = WEFT_ERROR;
  }
  value_drop(vm, x);
  value_drop(vm, weights);
  if (status != WEFT_OK) {
    value_drop(vm, counts);
    value_drop(vm, edges);
    return status;
  }
  if (list_add(vm, out, counts) != WEFT_OK) {
    value_drop(vm, edges);
    return WEFT_ERROR;
  }
  return list_add(vm, out, edges);
}
