/* create.c — creation: arrays of numbers, lists and ranges; zeros, ramps, diagonals, grids. */
#include "stdlib/array/make.h"
#include "stdlib/array/walk.h"

#include <math.h>
#include <string.h>

/* ---- shared by the families ---------------------------------------------------------------------- */

WeftStatus boxed(Vm *vm, Value v, Value *out) {
  if (v.kind == V_ARRAY) {
    *out = value_keep(v);
    return WEFT_OK;
  }
  TRY(array_new(vm, v.dtype, 0, NULL, out));
  num_store(out->array->data, v.dtype, v);
  return WEFT_OK;
}

WeftStatus dense_as(Vm *vm, u32 op, Value v, u32 dtype, Value *out) {
  if (v.kind == V_NUM) {
    Value num;
    TRY(convert_value(vm, op, v, dtype, &num));
    return boxed(vm, num, out);
  }
  Array *a = v.array;
  if (array_dtype(a) == dtype && array_dense(a)) {
    *out = value_keep(v);
    return WEFT_OK;
  }
  TRY(convert_allowed(vm, op, array_dtype(a), dtype));
  TRY(kernel_poll(vm, a->size));
  TRY(array_new(vm, dtype, array_rank(a), array_dims(a), out));
  u32 bad;
  WeftStatus status = copy_dense(vm, a, array_rank(a), array_dims(a), dtype, out->array->data, &bad);
  if (status != WEFT_OK || bad) {
    value_drop(vm, *out);
    if (status != WEFT_OK) return status;
    return vm_error(vm, EK_value, "%s: a %s that is NaN or out of range does not fit %s", op_name(op),
                    dtype_name(array_dtype(a)), dtype_name(dtype));
  }
  return WEFT_OK;
}

u32 joint_dtype(const Value *items, u32 n) {
  u32 d = DT_NONE;
  bool weak = false;
  for (u32 i = 0; i < n; i++) {
    u32 own = items[i].kind == V_NUM ? items[i].dtype : array_dtype(items[i].array);
    bool w = value_is_weak(items[i]), both;
    d = i == 0 ? own : dtype_promote_weak(d, weak, own, w, &both);
    weak = i == 0 ? w : both;
  }
  return d;
}

/* ---- array(x) ------------------------------------------------------------------------------------ */

/* The shape and dtype of nested lists; arrays and ranges in them add their own axes. */
typedef struct Nest {
  Vm *vm;
  u32 dtype;
  bool weak, any; /* of the elements so far */
  ArrayType shape;
} Nest;

static WeftStatus nest_error(Nest *n, Value v, u32 depth) {
  if (!depth && v.kind == V_NIL) return args_error(n->vm, OP_array, 0, v, "a number, an array or a list of them");
  if (v.kind == V_TEXT || v.kind == V_RECORD)
    return vm_error(n->vm, EK_type, "array: items are numbers, got %s; a list (…) holds any values%s",
                    value_type_name(v), v.kind == V_TEXT ? ", map(parse_float, xs) reads numbers" : "");
  return vm_error(n->vm, EK_type, "array: items are numbers, got %s", value_type_name(v));
}

/* Dims of item `v` must be shape.dims from `depth` on; `first`: they become so. */
static WeftStatus nest_measure(Nest *n, Value v, u32 depth, bool first) {
  i64 own[ARRAY_MAX_RANK + 1];
  u32 rank = 0;
  u32 dtype = DT_NONE;
  bool weak = false;
  /* as the one before */
  if (v.kind == V_NUM && n->any && depth == n->shape.rank && v.dtype == n->dtype && value_is_weak(v) == n->weak)
    return WEFT_OK;
  switch (v.kind) {
    case V_NUM:
      dtype = v.dtype;
      weak = value_is_weak(v);
      break;
    case V_ARRAY:
      TRY(args_array(n->vm, OP_array, 0, v));
      rank = array_rank(v.array);
      memcpy(own, array_dims(v.array), rank * sizeof *own);
      dtype = array_dtype(v.array);
      weak = value_is_weak(v);
      break;
    case V_RANGE:
      rank = 1;
      own[0] = (i64)range_count(v.range);
      dtype = DT_i64;
      break;
    case V_LIST:
      rank = 1;
      own[0] = v.list->count;
      break;
    default: return nest_error(n, v, depth);
  }
  if (depth + rank > ARRAY_MAX_RANK)
    return vm_error(n->vm, EK_shape, "array: lists nest deeper than %d", ARRAY_MAX_RANK);
  bool leaf = v.kind != V_LIST;
  if (first) {
    memcpy(n->shape.dims + depth, own, rank * sizeof *own);
    n->shape.rank = (u8)(depth + rank);
  } else if (depth + rank > n->shape.rank || (leaf && depth + rank != n->shape.rank) ||
             memcmp(n->shape.dims + depth, own, rank * sizeof *own) != 0) {
    ArrayType have = {.rank = (u8)(n->shape.rank - depth)}, got = {.rank = (u8)rank};
    memcpy(have.dims, n->shape.dims + depth, have.rank * sizeof *own);
    memcpy(got.dims, own, rank * sizeof *own);
    return vm_error(n->vm, EK_shape, "array: items of shapes %s and %s%s do not stack", shape_text(&have).s,
                    shape_text(&got).s, leaf ? "" : " …");
  }
  if (leaf) {
    bool both;
    n->dtype = n->any ? dtype_promote_weak(n->dtype, n->weak, dtype, weak, &both) : dtype;
    n->weak = n->any ? both : weak;
    n->any = true;
    return WEFT_OK;
  }
  for (u32 i = 0; i < v.list->count; i++) {
    TRY(vm_walk(n->vm));
    TRY(nest_measure(n, v.list->items[i], depth + 1, first && i == 0));
  }
  return WEFT_OK;
}

static WeftStatus nest_fill(Nest *n, Value v, u32 dtype, char **at) {
  u32 bytes = dtype_bytes(dtype);
  switch (v.kind) {
    case V_LIST:
      for (u32 i = 0; i < v.list->count; i++) {
        TRY(vm_walk(n->vm));
        TRY(nest_fill(n, v.list->items[i], dtype, at));
      }
      return WEFT_OK;
    case V_RANGE: {
      u64 count = range_count(v.range);
      for (u64 i = 0; i < count; i++, *at += bytes)
        num_store_as(*at, dtype, value_i64((i64)((u64)v.range->start + i * (u64)v.range->step)));
      return WEFT_OK;
    }
    default: {
      NumBox box;
      if (v.kind == V_NUM)
        TRY(num_fit(n->vm, OP_array, v,
                    dtype_kind(v.dtype) <= DK_INT && dtype_kind(dtype) != DK_COMPLEX ? dtype : v.dtype, &v));
      if (v.kind == V_NUM && v.dtype == dtype) {
        num_store(*at, dtype, v);
        *at += bytes;
        return WEFT_OK;
      }
      Array *a = array_of(v, &box);
      TRY(convert_allowed(n->vm, OP_array, v.dtype, dtype));
      u32 bad;
      TRY(copy_dense(n->vm, a, array_rank(a), array_dims(a), dtype, *at, &bad));
      if (bad)
        return vm_error(n->vm, EK_value, "array: a %s that is NaN or out of range does not fit %s",
                        dtype_name(array_dtype(a)), dtype_name(dtype));
      *at += a->size * bytes;
      return WEFT_OK;
    }
  }
}

WeftStatus eager_array(Vm *vm, Value *args, Value *out) {
  u32 dtype = DT_NONE;
  TRY(args_dtype(vm, OP_array, 1, args[1], &dtype));
  if (value_is_numeric(args[0])) {
    TRY(args_array(vm, OP_array, 0, args[0]));
    u32 own = args[0].kind == V_NUM ? args[0].dtype : array_dtype(args[0].array);
    return convert_value(vm, OP_array, args[0], dtype == DT_NONE ? own : dtype, out);
  }
  Nest n = {.vm = vm};
  TRY(nest_measure(&n, args[0], 0, true));
  if (dtype == DT_NONE) dtype = n.any ? n.dtype : DT_f64;
  TRY(args_dtype_supported(vm, OP_array, dtype));
  Value result;
  void *data;
  TRY(result_new(vm, dtype, &n.shape, &result, &data));
  char *at = data;
  if (nest_fill(&n, args[0], dtype, &at) != WEFT_OK) {
    value_drop(vm, result);
    return WEFT_ERROR;
  }
  *out = array_finish(vm, result);
  return WEFT_OK;
}

/* ---- constant arrays ----------------------------------------------------------------------------- */

static WeftStatus filled(Vm *vm, u32 dtype, const ArrayType *shape, Value number, Value *out) {
  void *data;
  u64 one[2] = {0, 0};
  num_store_as(one, dtype, number);
  TRY(kernel_poll(vm, dims_size(shape->rank, shape->dims)));
  if (one[0] == 0 && one[1] == 0) {
    TRY(array_new_zero(vm, dtype, shape->rank, shape->dims, out));
  } else {
    TRY(result_new(vm, dtype, shape, out, &data));
    if (fill_dense(vm, data, one, out->array->size, dtype_bytes(dtype)) != WEFT_OK) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  }
  result_finish(vm, out);
  return WEFT_OK;
}

static WeftStatus constant(Vm *vm, u32 op, Value *args, i64 number, Value *out) {
  ArrayType shape;
  u32 rank, dtype = DT_f64;
  TRY(args_shape(vm, op, 0, args[0], &rank, shape.dims));
  TRY(args_dtype(vm, op, 1, args[1], &dtype));
  TRY(args_device(vm, op, 2, args[2]));
  shape.rank = (u8)rank;
  return filled(vm, dtype, &shape, value_i64(number), out);
}
WeftStatus eager_zeros(Vm *vm, Value *args, Value *out) { return constant(vm, OP_zeros, args, 0, out); }
WeftStatus eager_ones(Vm *vm, Value *args, Value *out) { return constant(vm, OP_ones, args, 1, out); }
WeftStatus eager_empty(Vm *vm, Value *args, Value *out) { return constant(vm, OP_empty, args, 0, out); }

static WeftStatus constant_like(Vm *vm, u32 op, Value *args, i64 number, Value *out) {
  ArrayType type;
  TRY(args_array(vm, op, 0, args[0]));
  type_of_value(args[0], &type);
  u32 dtype = type.dtype;
  TRY(args_dtype(vm, op, 1, args[1], &dtype));
  TRY(args_device(vm, op, 2, args[2]));
  return filled(vm, dtype, &type, value_i64(number), out);
}
WeftStatus eager_zeros_like(Vm *vm, Value *args, Value *out) { return constant_like(vm, OP_zeros_like, args, 0, out); }
WeftStatus eager_ones_like(Vm *vm, Value *args, Value *out) { return constant_like(vm, OP_ones_like, args, 1, out); }

/* `value` may be an array that broadcasts to the shape. */
static WeftStatus full(Vm *vm, u32 op, const ArrayType *shape, u32 value_param, Value *args, u32 dtype, Value *out) {
  Value value = args[value_param], dense;
  ArrayType type, checked;
  RuleError err;
  TRY(args_array(vm, op, value_param, value));
  type_of_value(value, &type);
  if (dtype == DT_NONE) dtype = type.dtype;
  TRY(args_dtype(vm, op, value_param + 1, args[value_param + 1], &dtype));
  TRY(args_device(vm, op, value_param + 2, args[value_param + 2]));
  TRY_RULE(vm, op, &err, shape_broadcast_to(NULL, &type, shape->rank, shape->dims, &checked, &err));
  TRY(convert_value(vm, op, value, dtype, &value)); /* so that what does not fit is an error, also of no elements */
  if (value.kind == V_NUM) return filled(vm, dtype, shape, value, out);
  WeftStatus status = kernel_poll(vm, dims_size(shape->rank, shape->dims));
  void *data;
  if (status == WEFT_OK) status = result_new(vm, dtype, shape, &dense, &data);
  if (status == WEFT_OK) {
    status = copy_dense(vm, value.array, shape->rank, shape->dims, dtype, data, &(u32){0});
    if (status == WEFT_OK) *out = array_finish(vm, dense);
    else value_drop(vm, dense);
  }
  value_drop(vm, value);
  return status;
}

WeftStatus eager_full(Vm *vm, Value *args, Value *out) {
  ArrayType shape;
  u32 rank;
  TRY(args_shape(vm, OP_full, 0, args[0], &rank, shape.dims));
  shape.rank = (u8)rank;
  return full(vm, OP_full, &shape, 1, args, DT_NONE, out);
}

WeftStatus eager_full_like(Vm *vm, Value *args, Value *out) {
  ArrayType type;
  TRY(args_array(vm, OP_full_like, 0, args[0]));
  type_of_value(args[0], &type);
  return full(vm, OP_full_like, &type, 1, args, type.dtype, out);
}

WeftStatus eager_eye(Vm *vm, Value *args, Value *out) {
  i64 n = 0, m, k = 0;
  u32 dtype = DT_f64;
  TRY(args_size(vm, OP_eye, 0, args[0], &n));
  m = n;
  TRY(args_size(vm, OP_eye, 1, args[1], &m));
  TRY(args_int(vm, OP_eye, 2, args[2], &k));
  TRY(args_dtype(vm, OP_eye, 3, args[3], &dtype));
  TRY(args_device(vm, OP_eye, 4, args[4]));
  i64 dims[2] = {n, m};
  TRY(array_new_zero(vm, dtype, 2, dims, out));
  u64 one[2] = {0, 0};
  num_store_as(one, dtype, value_i64(1));
  char *data = out->array->data;
  u32 bytes = dtype_bytes(dtype);
  if (k > m || k < -n) return WEFT_OK;
  for (i64 i = k < 0 ? -k : 0; i < n && i + k < m; i++) memcpy(data + (i * m + i + k) * bytes, one, bytes);
  return WEFT_OK;
}

/* ---- ramps --------------------------------------------------------------------------------------- */

/* The three of arange, of rank 0; *dtype: of all that are given, promoted. */
static WeftStatus ramp_args(Vm *vm, const Value *args, Value nums[3], u32 *dtype) {
  Value given[3];
  u32 count = 0;
  for (u32 i = 0; i < 3; i++) {
    nums[i] = args[i];
    if (!args_given(args[i])) continue;
    TRY(args_array(vm, OP_arange, i, args[i]));
    if (args[i].kind == V_ARRAY && array_rank(args[i].array) == 0) nums[i] = array_load(args[i].array, 0);
    if (nums[i].kind != V_NUM) return args_error(vm, OP_arange, i, args[i], "a number");
    given[count++] = nums[i];
  }
  *dtype = joint_dtype(given, count);
  return WEFT_OK;
}

/* start and step by their bits, in the dtype of the array. */
static WeftStatus ramp(Vm *vm, Value *made, u64 start, u64 step) {
  Array *a = made->array;
  char *data = a->data;
  Polled p = parts_in(vm, a->size, PART_ELEMENTS);
  while (parts_next(&p))
    stdlib_of(vm)->strips->ramp[array_dtype(a)](data + 8 * p.from, start, step, p.from, p.to - p.from);
  if (p.status != WEFT_OK) value_drop(vm, *made);
  return p.status;
}

/* start + i * step in i64 or f64, then rounded to the dtype. */
static WeftStatus ramp_i64(Vm *vm, u32 op, i64 start, i64 step, i64 n, u32 dtype, Value *out) {
  TRY(kernel_poll(vm, n));
  TRY(array_new(vm, DT_i64, 1, &n, out));
  TRY(ramp(vm, out, (u64)start, (u64)step));
  if (dtype == DT_i64) return WEFT_OK;
  Value made = *out;
  WeftStatus status = convert_value(vm, op, made, dtype, out);
  value_drop(vm, made);
  return status;
}

static WeftStatus ramp_f64(Vm *vm, u32 op, f64 start, f64 step, i64 n, u32 dtype, Value *out) {
  TRY(kernel_poll(vm, n));
  TRY(array_new(vm, DT_f64, 1, &n, out));
  TRY(ramp(vm, out, value_f64(start).bits, value_f64(step).bits));
  if (dtype == DT_f64) return WEFT_OK;
  Value made = *out;
  WeftStatus status = convert_value(vm, op, made, dtype, out);
  value_drop(vm, made);
  return status;
}

WeftStatus eager_arange(Vm *vm, Value *args, Value *out) {
  Value nums[3];
  u32 dtype = DT_i64, wanted = DT_NONE;
  TRY(ramp_args(vm, args, nums, &dtype));
  TRY(args_dtype(vm, OP_arange, 3, args[3], &wanted));
  TRY(args_device(vm, OP_arange, 4, args[4]));
  if (nums[0].kind != V_NUM) return args_error(vm, OP_arange, 0, args[0], "a number");
  bool one = nums[1].kind != V_NUM;
  Value start = one ? value_i64(0) : nums[0], stop = one ? nums[0] : nums[1],
      step = nums[2].kind == V_NUM ? nums[2] : value_i64(1);
  if (num_as_f64(step) == 0) return vm_error(vm, EK_value, "arange: step is 0");
  bool floats = dtype_kind(dtype) == DK_FLOAT;
  if (dtype == DT_bool) dtype = DT_i64;
  if (wanted == DT_NONE) wanted = dtype;
  if (floats) {
    f64 from = num_as_f64(start), by = num_as_f64(step), count = ceil((num_as_f64(stop) - from) / by);
    if (count != count) return vm_error(vm, EK_value, "arange: a bound or the step is NaN, or the bounds are infinite");
    if (count < 0) count = 0;
    if (count >= (f64)ARRAY_MAX_SIZE) return vm_error(vm, EK_value, "arange: %g elements are too many", count);
    return ramp_f64(vm, OP_arange, from, by, (i64)count, wanted, out);
  }
  __int128 span = (__int128)stop.i - start.i, by = step.i;
  __int128 count = by > 0 ? (span + by - 1) / by : (-span - by - 1) / -by;
  if (by > 0 ? span <= 0 : span >= 0) count = 0;
  if (count >= ARRAY_MAX_SIZE) return vm_error(vm, EK_value, "arange: the range has too many elements");
  return ramp_i64(vm, OP_arange, start.i, step.i, (i64)count, wanted, out);
}

/* What n numbers from start to stop are apart. Of finite bounds it is finite. */
static f64 step_between(f64 start, f64 stop, f64 parts) {
  const f64 span = stop - start;
  return parts <= 0 ? 0 : isfinite(span) ? span / parts : stop / parts - start / parts;
}

/* Number i of n from start to stop. */
static f64 number_between(f64 start, f64 stop, i64 i, i64 n, bool endpoint) {
  const f64 parts = (f64)(endpoint ? n - 1 : n), step = step_between(start, stop, parts);
  if (endpoint && n > 1 && i == n - 1) return stop;
  return step != 0 ? start + (f64)i * step : start + (parts > 0 ? (f64)i / parts * (stop - start) : 0);
}

/* Ends that are arrays, broadcast against each other: the numbers between them along a new first axis, in f64. */
static WeftStatus ramps_between(Vm *vm, const Value *ends, i64 n, bool endpoint, Value *out) {
  Value pair[2], both, x = value_hole(), y = value_hole(), list[1];
  ArrayType shape;
  TRY(list_from(vm, ends, 2, &list[0]) ? WEFT_OK : WEFT_ERROR);
  TRY(run_op(vm, OP_broadcast_arrays, list, 1, &both));
  memcpy(pair, both.list->items, sizeof pair);
  type_of_value(pair[0], &shape);
  WeftStatus status = WEFT_OK;
  if (shape.rank == ARRAY_MAX_RANK)
    status = vm_error(vm, EK_shape, "linspace: an array of rank %u has no room for another axis", shape.rank);
  memmove(shape.dims + 1, shape.dims, shape.rank * sizeof *shape.dims);
  shape.dims[0] = n;
  shape.rank++;
  if (status == WEFT_OK && (status = dense_as(vm, OP_linspace, pair[0], DT_f64, &x)) != WEFT_OK) x = value_hole();
  if (status == WEFT_OK && (status = dense_as(vm, OP_linspace, pair[1], DT_f64, &y)) != WEFT_OK) y = value_hole();
  if (status == WEFT_OK) status = array_new(vm, DT_f64, shape.rank, shape.dims, out);
  if (status == WEFT_OK) {
    const f64 *from = x.array->data, *to = y.array->data;
    const i64 lanes = x.array->size;
    f64 *o = out->array->data;
    Polled p = parts_in(vm, out->array->size, PART_ELEMENTS);
    while (parts_next(&p))
      for (i64 k = p.from; k < p.to; k++)
        o[k] = number_between(from[k % lanes], to[k % lanes], k / lanes, n, endpoint);
    status = p.status;
    if (status != WEFT_OK) value_drop(vm, *out);
  }
  if (x.kind != V_HOLE) value_drop(vm, x);
  if (y.kind != V_HOLE) value_drop(vm, y);
  value_drop(vm, both);
  return status;
}

static WeftStatus between(Vm *vm, u32 op, const Value *args, u32 *dtype, Value *out);

/* Real and imaginary parts each between those of the ends. */
static WeftStatus complex_between(Vm *vm, u32 op, const Value *args, Value *out) {
  static const u32 part[2] = {OP_real, OP_imag};
  Value made[2] = {value_hole(), value_hole()};
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < 2 && status == WEFT_OK; i++) {
    Value ends[4] = {value_hole(), value_hole(), args[2], args[3]}, one[1];
    u32 real;
    for (u32 k = 0; k < 2 && status == WEFT_OK; k++) {
      one[0] = value_keep(args[k]);
      status = run_op(vm, part[i], one, 1, &ends[k]);
      if (status != WEFT_OK) ends[k] = value_hole();
    }
    if (status == WEFT_OK && between(vm, op, ends, &real, &made[i]) != WEFT_OK) {
      made[i] = value_hole();
      status = WEFT_ERROR;
    }
    for (u32 k = 0; k < 2; k++) value_drop(vm, ends[k]);
  }
  if (status == WEFT_OK) return run_op(vm, OP_complex, made, 2, out);
  for (u32 i = 0; i < 2; i++) value_drop(vm, made[i]);
  return status;
}

/* linspace, in f64 or c128, and the dtype that it has where none is asked for; errors name `op`, whose first four
 * parameters are those of linspace. */
static WeftStatus between(Vm *vm, u32 op, const Value *args, u32 *dtype, Value *out) {
  i64 n = 50;
  bool endpoint = true;
  for (u32 i = 0; i < 2; i++) TRY(args_array(vm, op, i, args[i]));
  TRY(args_size(vm, op, 2, args[2], &n));
  TRY(args_bool(vm, op, 3, args[3], &endpoint));
  const u32 joint = joint_dtype(args, 2);
  if (dtype_kind(joint) == DK_COMPLEX) {
    *dtype = joint;
    return complex_between(vm, op, args, out);
  }
  *dtype = dtype_float_of(joint);
  Value ends[2];
  for (u32 i = 0; i < 2; i++) {
    bool number = args[i].kind == V_ARRAY && array_rank(args[i].array) == 0;
    ends[i] = number ? array_load(args[i].array, 0) : args[i];
    if (ends[i].kind != V_NUM) return ramps_between(vm, args, n, endpoint, out);
  }
  f64 start = num_as_f64(ends[0]), stop = num_as_f64(ends[1]);
  f64 step = step_between(start, stop, (f64)(endpoint ? n - 1 : n)), *o;
  TRY(kernel_poll(vm, n));
  TRY(array_new(vm, DT_f64, 1, &n, out));
  o = out->array->data;
  if (step != 0) TRY(ramp(vm, out, value_f64(start).bits, value_f64(step).bits));
  else
    for (i64 i = 0; i < n; i++) o[i] = number_between(start, stop, i, n, endpoint);
  if (endpoint && n > 1) o[n - 1] = stop;
  return WEFT_OK;
}

/* v (consumed) in another dtype. */
static WeftStatus made_as(Vm *vm, u32 op, Value v, u32 dtype, Value *out) {
  WeftStatus status = convert_value(vm, op, v, dtype, out);
  value_drop(vm, v);
  return status;
}

WeftStatus eager_linspace(Vm *vm, Value *args, Value *out) {
  u32 dtype, wanted = DT_NONE;
  Value made;
  TRY(args_dtype(vm, OP_linspace, 4, args[4], &wanted));
  TRY(args_device(vm, OP_linspace, 5, args[5]));
  TRY(between(vm, OP_linspace, args, &dtype, &made));
  return made_as(vm, OP_linspace, made, wanted == DT_NONE ? dtype : wanted, out);
}

WeftStatus eager_logspace(Vm *vm, Value *args, Value *out) {
  u32 dtype, wanted = DT_NONE;
  Value made, power[2];
  TRY(args_dtype(vm, OP_logspace, 5, args[5], &wanted));
  if (args_given(args[4])) TRY(args_array(vm, OP_logspace, 4, args[4]));
  TRY(between(vm, OP_logspace, args, &dtype, &made));
  TRY(made_as(vm, OP_logspace, made, dtype, &power[1]));
  power[0] = args_given(args[4]) ? value_keep(args[4]) : value_weak_f64(10);
  if (wanted == DT_NONE) return run_op(vm, OP_power, power, 2, out);
  TRY(run_op(vm, OP_power, power, 2, &made));
  return made_as(vm, OP_logspace, made, wanted, out);
}

/* ---- diagonals and triangles --------------------------------------------------------------------- */

WeftStatus eager_diag(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape;
  RuleError err;
  i64 k = 0;
  TRY(args_array(vm, OP_diag, 0, args[0]));
  TRY(args_int(vm, OP_diag, 1, args[1], &k));
  type_of_value(args[0], &type);
  TRY_RULE(vm, OP_diag, &err, shape_diag(NULL, &type, k, &shape, &err));
  Array *a = args[0].array;
  i64 *strides = array_strides(a);
  if (type.rank == 2) {
    i64 step = strides[0] + strides[1], offset = shape.dims[0] == 0 ? 0 : k >= 0 ? k * strides[1] : -k * strides[0];
    return array_view(vm, a, offset, 1, shape.dims, &step, out);
  }
  TRY(array_new_zero(vm, type.dtype, 2, shape.dims, out));
  u32 bytes = dtype_bytes(type.dtype);
  i64 n = shape.dims[0], at = k >= 0 ? k : -k * n;
  for (i64 i = 0; i < a->size; i++)
    memcpy((char *)out->array->data + (at + i * (n + 1)) * bytes, (char *)a->data + i * strides[0] * bytes, bytes);
  return WEFT_OK;
}

static WeftStatus triangle(Vm *vm, u32 op, bool upper, Value *args, Value *out) {
  ArrayType type;
  RuleError err;
  i64 k = 0;
  TRY(args_array(vm, op, 0, args[0]));
  TRY(args_int(vm, op, 1, args[1], &k));
  type_of_value(args[0], &type);
  TRY_RULE(vm, op, &err, shape_matrix(&type, &err));
  TRY(kernel_poll(vm, args[0].array->size));
  if (!result_reuse(&args[0], type.dtype, &type, out)) {
    void *data;
    TRY(result_new(vm, type.dtype, &type, out, &data));
    if (copy_dense(vm, args[0].array, type.rank, type.dims, type.dtype, data, &(u32){0}) != WEFT_OK) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  }
  i64 rows = type.dims[type.rank - 2], cols = type.dims[type.rank - 1],
      batches = rows * cols > 0 ? out->array->size / (rows * cols) : 0;
  u32 bytes = dtype_bytes(type.dtype);
  char *row = out->array->data;
  if (k > cols) k = cols;
  if (k < -rows) k = -rows;
  for (i64 b = 0; b < batches; b++)
    for (i64 i = 0; i < rows; i++, row += cols * bytes) {
      i64 cut = i + k + (upper ? 0 : 1); /* the first column on the other side */
      cut = cut < 0 ? 0 : cut > cols ? cols : cut;
      if (upper) memset(row, 0, (size_t)(cut * bytes));
      else memset(row + cut * bytes, 0, (size_t)((cols - cut) * bytes));
    }
  return WEFT_OK;
}
WeftStatus eager_tril(Vm *vm, Value *args, Value *out) { return triangle(vm, OP_tril, false, args, out); }
WeftStatus eager_triu(Vm *vm, Value *args, Value *out) { return triangle(vm, OP_triu, true, args, out); }

/* ---- grids and devices --------------------------------------------------------------------------- */

WeftStatus eager_meshgrid(Vm *vm, Value *args, Value *out) {
  static const char *const words[] = {"xy", "ij", NULL};
  const Value *items;
  u32 n, indexing = 0;
  i64 dims[ARRAY_MAX_RANK];
  TRY(args_list(vm, OP_meshgrid, 0, args[0], &items, &n));
  TRY(args_choice(vm, OP_meshgrid, 1, args[1], words, &indexing));
  if (n > ARRAY_MAX_RANK)
    return vm_error(vm, EK_shape, "meshgrid: %u arrays give %u axes; an array has at most %d", n, n, ARRAY_MAX_RANK);
  bool swap = indexing == 0 && n >= 2;
  for (u32 i = 0; i < n; i++) {
    u32 axis = swap && i < 2 ? 1 - i : i;
    if (items[i].kind == V_ARRAY && array_rank(items[i].array) > 1)
      return args_error(vm, OP_meshgrid, 0, items[i], "arrays of rank 1");
    dims[axis] = items[i].kind == V_ARRAY ? items[i].array->size : 1;
  }
  TRY(list_new(vm, n, out) ? WEFT_OK : WEFT_ERROR);
  for (u32 i = 0; i < n; i++) {
    Value box, view;
    i64 strides[ARRAY_MAX_RANK] = {0};
    u32 axis = swap && i < 2 ? 1 - i : i;
    if (boxed(vm, items[i], &box) != WEFT_OK) goto fail;
    if (array_rank(box.array) == 1) strides[axis] = array_strides(box.array)[0];
    WeftStatus status = array_view(vm, box.array, 0, n, dims, strides, &view);
    value_drop(vm, box);
    if (status != WEFT_OK) goto fail;
    TRY(list_add(vm, out, view));
  }
  return WEFT_OK;
fail:
  value_drop(vm, *out);
  return WEFT_ERROR;
}

WeftStatus eager_to(Vm *vm, Value *args, Value *out) {
  u32 device = DEV_CPU;
  if (!value_is_numeric(args[0])) return args_error(vm, OP_to, 0, args[0], "an array");
  TRY(args_choice(vm, OP_to, 1, args[1], vm->device_names, &device));
  u32 from = args[0].kind == V_ARRAY ? array_device(args[0].array) : DEV_CPU;
  if (from == device) {
    *out = strong(value_keep(args[0]));
    return WEFT_OK;
  }
  if (from != DEV_CPU && device != DEV_CPU) { /* by way of the processor */
    Value here;
    TRY(array_from_device(vm, args[0].array, &here));
    Value again[2] = {here, args[1]};
    WeftStatus moved = eager_to(vm, again, out);
    value_drop(vm, here);
    return moved;
  }
  const DeviceHooks *hooks = vm->devices[device == DEV_CPU ? from : device];
  if (!hooks)
    return vm_error(vm, EK_unsupported, "to: not supported: there is no device \"%s\" here", vm->device_names[device]);
  if (device != DEV_CPU && (args[0].kind == V_NUM || array_rank(args[0].array) == 0)) {
    Value room; /* numbers live with the processor; that the device cannot be used is an error for them, too */
    TRY(array_new_on(vm, device, args[0].dtype, 1, &(i64){1}, &room));
    value_drop(vm, room);
    *out = strong(value_keep(args[0]));
    return WEFT_OK;
  }
  Value box, dense;
  TRY(boxed(vm, args[0], &box));
  Array *a = box.array;
  u32 dtype = array_dtype(a), rank = array_rank(a);
  size_t bytes = (size_t)a->size * dtype_bytes(dtype);
  WeftStatus status;
  if (device == DEV_CPU) {
    status = array_from_device(vm, a, out);
    if (status == WEFT_OK) result_finish(vm, out);
  } else {
    status = dense_as(vm, OP_to, box, dtype, &dense);
    if (status == WEFT_OK) {
      status = array_new_on(vm, device, dtype, rank, array_dims(a), out);
      if (status == WEFT_OK && bytes) {
        status = hooks->from_host(vm, dense.array->data, out->array->data, bytes);
        if (status != WEFT_OK) value_drop(vm, *out);
      }
      value_drop(vm, dense);
    }
  }
  value_drop(vm, box);
  return status;
}
