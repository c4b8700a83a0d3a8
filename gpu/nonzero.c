/* nonzero.c — masks on the device: the numbers of their true elements, and the elements there (see nonzero.h). */
#include "gpu/nonzero.h"

#include "gpu/ptx.h"

static bool lies_there(Value v) { return v.kind == V_ARRAY && array_device(v.array) == DEV_GPU; }

bool device_takes_nonzero(const Value *args) {
  return lies_there(args[0]) && array_rank(args[0].array) > 0 && array_dense(args[0].array);
}

bool device_takes_compress(const Value *args) {
  enum { X, MASK, AXIS, SIZE };
  if (!lies_there(args[X]) || !lies_there(args[MASK]) || args[SIZE].kind == V_NUM) return false;
  Array *x = args[X].array, *mask = args[MASK].array;
  i64 rank = array_rank(x), axis = 0, size = x->size;
  if (args[AXIS].kind == V_NUM) axis = args[AXIS].i < 0 ? args[AXIS].i + rank : args[AXIS].i;
  else if (args[AXIS].kind != V_NIL && args[AXIS].kind != V_HOLE) return false;
  if (args[AXIS].kind != V_NIL) {
    if (axis < 0 || axis >= rank) return false;
    size = array_dims(x)[axis];
  }
  return array_dtype(mask) == DT_bool && array_dense(mask) && array_rank(mask) == 1 && mask->size == size;
}

/* op(x, y), consumes both. */
static WeftStatus take_op(Vm *vm, u32 op, Value x, Value y, Value *out) {
  Value args[OP_MAX_PARAMS] = {x, y};
  for (u32 i = 2; i < OP_MAX_PARAMS; i++) args[i] = value_hole();
  WeftStatus status = vm_op(vm, op, args, out);
  value_drop(vm, x);
  value_drop(vm, y);
  return status;
}

/* The kernel over a dense mask of which `count` elements are true. */
static WeftStatus launch_nonzero(Device *d, Array *mask, Array *to) {
  enum { COUNTER = 256 };
  CuFunction f = device_own_kernel(d, DEVICE_NONZERO);
  u64 n = (u64)mask->size, pieces = (n + NONZERO_PIECE - 1) / NONZERO_PIECE;
  size_t bytes = COUNTER + (size_t)ptx_chain_scratch(LT_I64, pieces);
  void *memory;
  if (!f) return WEFT_ERROR;
  if (pieces > INT32_MAX) return vm_error(d->vm, EK_value, "nonzero: too many elements");
  if (device_alloc(d->vm, bytes, &memory) != WEFT_OK) return WEFT_ERROR;
  u64 at = (u64)(uintptr_t)memory;
  u64 words[NONZERO_PARAMS] = {(u64)(uintptr_t)mask->data, (u64)(uintptr_t)to->data, n, at, at + COUNTER, pieces};
  void *params[NONZERO_PARAMS];
  for (u32 i = 0; i < NONZERO_PARAMS; i++) params[i] = &words[i];
  CuResult error = 0;
  bool entered = device_enter(d);
  if (entered) {
    error = d->driver.MemsetD8(at, 0, bytes);
    if (!error)
      error = d->driver.LaunchKernel(f, (unsigned)pieces, 1, 1, DEVICE_BLOCK, 1, 1, 0, NULL, params, NULL);
    device_leave(d);
    d->vm->counters.at[STAT_launches]++;
  }
  device_free(d->vm, memory, bytes);
  if (error) return device_failed(d, "nonzero", error);
  return entered ? WEFT_OK : vm_error(d->vm, EK_host, "the GPU failed: its context cannot be entered");
}

/* The numbers of the elements of x, which is dense, that are not zero, row-major; *out owned. */
static WeftStatus places_of(Device *d, Value x, Value *out) {
  Vm *vm = d->vm;
  Value mask, flat, count;
  bool truth = array_dtype(x.array) == DT_bool;
  if (truth) mask = value_keep(x);
  else if (take_op(vm, OP_not_equal, value_keep(x), value_weak_i64(0), &mask) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = take_op(vm, OP_ravel, mask, value_hole(), &flat);
  if (status != WEFT_OK) return status;
  status = take_op(vm, OP_count_nonzero, value_keep(flat), value_hole(), &count);
  i64 n = status == WEFT_OK ? count.i : 0;
  if (status == WEFT_OK) status = array_new_on(vm, DEV_GPU, DT_i64, 1, &n, out);
  if (status == WEFT_OK && n && (status = launch_nonzero(d, flat.array, out->array)) != WEFT_OK) {
    value_drop(vm, *out);
    *out = value_hole();
  }
  value_drop(vm, flat);
  return status;
}

/* The part of places along axis `axis` of x: places // step % size. */
static WeftStatus part_of(Vm *vm, Value places, Array *x, u32 axis, Value *out) {
  i64 step = 1;
  for (u32 k = axis + 1; k < array_rank(x); k++) step *= array_dims(x)[k];
  Value v = value_keep(places);
  if (step > 1 && take_op(vm, OP_floor_divide, v, value_i64(step), &v) != WEFT_OK) return WEFT_ERROR;
  if (axis && take_op(vm, OP_remainder, v, value_i64(array_dims(x)[axis]), &v) != WEFT_OK) return WEFT_ERROR;
  *out = v;
  return WEFT_OK;
}

WeftStatus device_nonzero(Device *d, const Value *args, Value *out) {
  Vm *vm = d->vm;
  Array *x = args[0].array;
  Value places;
  if (places_of(d, args[0], &places) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = list_new(vm, array_rank(x), out) ? WEFT_OK : WEFT_ERROR;
  bool made = status == WEFT_OK;
  for (u32 axis = 0; axis < array_rank(x) && status == WEFT_OK; axis++) {
    Value part;
    status = part_of(vm, places, x, axis, &part);
    if (status == WEFT_OK && !list_push(vm, out, part)) status = WEFT_ERROR; /* consumes the part */
  }
  value_drop(vm, places);
  if (made && status != WEFT_OK) value_drop(vm, *out);
  if (status != WEFT_OK) *out = value_hole();
  return status;
}

WeftStatus device_compress(Device *d, const Value *args, Value *out) {
  Vm *vm = d->vm;
  Value taken[OP_MAX_PARAMS];
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) taken[i] = value_hole();
  if (places_of(d, args[1], &taken[1]) != WEFT_OK) return WEFT_ERROR;
  taken[0] = args[0];
  taken[2] = args[2].kind == V_HOLE ? value_i64(0) : args[2];
  WeftStatus status = vm_op(vm, OP_take, taken, out);
  value_drop(vm, taken[1]);
  return status;
}
