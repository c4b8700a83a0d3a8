/* update.c — writing: array elements by index, and whole paths (see update.h, bytecode.h Desc PATH). */
#include "vm/update.h"

#include <string.h>

#include "vm/combine.h"
#include "vm/field.h"
#include "vm/index.h"
#include "vm/operate.h"
#include "vm/scalar.h"

/* ---- what may be stored ----------------------------------------------------------------------- */

WeftStatus store_check(Vm *vm, u32 dtype, Value value) {
  if (!value_is_numeric(value))
    return vm_error(vm, EK_type, "an array of %s cannot hold %s", dtype_name(dtype), value_type_name(value));
  if (dtype_kind(value.dtype) > dtype_kind(dtype))
    return vm_error(vm, EK_dtype, "a store keeps the array's dtype: %s does not go into %s; convert one of them",
                    dtype_name(value.dtype), dtype_name(dtype));
  if (value.kind == V_NUM && value_is_weak(value) && !num_fits(value, dtype))
    return vm_error(vm, EK_value, "%lld does not fit %s", (long long)value.i, dtype_name(dtype));
  if (value.kind == V_ARRAY && array_device(value.array) != DEV_CPU)
    return vm_error(vm, EK_unsupported,
                    "storing a value that lies on a device is not supported; to(x, \"cpu\") brings it here");
  return WEFT_OK;
}

/* Strides with which `value` is walked when it is stretched to dims; leading axes of size 1 may be too many. False: it
 * does not fit. */
static bool broadcasts(Array *value, u32 rank, const i64 *dims, i64 *strides) {
  u32 vr = array_rank(value), skip = 0;
  while (vr - skip > rank && array_dims(value)[skip] == 1) skip++;
  bool fits = vr - skip <= rank;
  for (u32 d = 0; d < rank; d++) strides[d] = 0;
  for (u32 k = skip; k < vr && fits; k++) {
    u32 d = rank - vr + k;
    i64 have = array_dims(value)[k];
    if (have != 1) strides[d] = array_strides(value)[k];
    fits = have == 1 || have == dims[d];
  }
  return fits;
}

static WeftStatus stretch(Vm *vm, Array *value, u32 rank, const i64 *dims, i64 *strides) {
  if (broadcasts(value, rank, dims, strides)) return WEFT_OK;
  u32 vr = array_rank(value);
  ArrayType from = {.rank = (u8)vr}, to = {.rank = (u8)rank};
  char a[96], b[96];
  for (u32 d = 0; d < vr; d++) from.dims[d] = array_dims(value)[d];
  for (u32 d = 0; d < rank; d++) to.dims[d] = dims[d];
  rule_shape_text(&from, a, sizeof a);
  rule_shape_text(&to, b, sizeof b);
  return vm_error(vm, EK_shape, "a value of shape %s does not fit a place of shape %s", a, b);
}

/* ---- plain stores ------------------------------------------------------------------------------
 * Long ones look at the clock on their way: where the program is to end, some elements stay stored. Errors that a
 * program can catch come before the first of them. */

static WeftStatus store_view(Vm *vm, Array *a, const Selection *s, Value value) {
  u32 dtype = array_dtype(a);
  char *to = (char *)a->data + s->offset * (i64)dtype_bytes(dtype);
  if (value.kind == V_NUM) {
    u64 element[2] = {0, 0};
    num_store_as(element, dtype, value);
    return strided_fill_polled(vm, dtype_bytes(dtype), s->rank, s->dims, to, s->strides, element);
  }
  i64 strides[ARRAY_MAX_RANK];
  if (stretch(vm, value.array, s->rank, s->dims, strides) != WEFT_OK) return WEFT_ERROR;
  return strided_convert_polled(vm, s->rank, s->dims, dtype, to, s->strides, array_dtype(value.array),
                                value.array->data, strides);
}

/* Offsets in `value` of each place, in row-major order of the places: where its block begins. */
typedef struct BlockWalk {
  i64 view[ARRAY_MAX_RANK];  /* strides of value along the view's axes */
  i64 place[ARRAY_MAX_RANK]; /* … along the place axes */
  i64 at[ARRAY_MAX_RANK];
  i64 offset;
  bool linear; /* the k-th block begins at k * step */
  i64 step;
} BlockWalk;

static WeftStatus block_walk(Vm *vm, const Selection *s, Array *value, BlockWalk *w) {
  i64 dims[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK];
  u32 rank = selection_dims(s, dims);
  if (stretch(vm, value, rank, dims, strides) != WEFT_OK) return WEFT_ERROR;
  memcpy(w->view, strides, sizeof(i64) * s->at);
  memcpy(w->place, strides + s->at, sizeof(i64) * s->place_rank);
  memcpy(w->view + s->at, strides + s->at + s->place_rank, sizeof(i64) * (s->rank - s->at));
  memset(w->at, 0, sizeof w->at);
  w->offset = 0;
  w->linear = linear_walk(s->place_rank, s->place_dims, w->place, &w->step);
  return WEFT_OK;
}

static void block_next(const Selection *s, BlockWalk *w) {
  for (u32 d = s->place_rank; d-- > 0;) {
    w->offset += w->place[d];
    if (++w->at[d] < s->place_dims[d]) return;
    w->offset -= w->place[d] * s->place_dims[d];
    w->at[d] = 0;
  }
}

#define STORE_PLACES(T)                                                                                        \
  {                                                                                                            \
    T *to = (T *)a->data + s->offset;                                                                          \
    const T *from = v->data;                                                                                   \
    for (i64 k = lo; k < hi; k++) to[s->places[k]] = from[k * w->step];                                        \
    return true;                                                                                               \
  }

/* Single elements of one dtype, numbers lo … hi-1, read one step apart. False: not of such a size. */
static bool store_some(Array *a, const Selection *s, const Array *v, const BlockWalk *w, i64 lo, i64 hi) {
  switch (dtype_bytes(array_dtype(a))) {
    case 1: STORE_PLACES(u8)
    case 2: STORE_PLACES(u16)
    case 4: STORE_PLACES(u32)
    case 8: STORE_PLACES(u64)
    default: return false;
  }
}

static WeftStatus store_places(Vm *vm, Array *a, const Selection *s, Value value) {
  NumBox box;
  Array *v = array_of(value, &box);
  u32 dtype = array_dtype(a), bytes = dtype_bytes(dtype), vbytes = dtype_bytes(array_dtype(v));
  BlockWalk w;
  if (block_walk(vm, s, v, &w) != WEFT_OK) return WEFT_ERROR;
  char *to = (char *)a->data + s->offset * (i64)bytes;
  bool same = dtype == array_dtype(v);
  if (s->rank == 0 && same && w.linear && bytes <= 8) {
    for (i64 lo = 0, hi; lo < s->count; lo = hi) {
      if (lo && vm_look(vm) != WEFT_OK) return WEFT_ERROR;
      hi = part_end(lo, s->count, PART_PLACES);
      (void)store_some(a, s, v, &w, lo, hi);
    }
    return WEFT_OK;
  }
  const i64 each = dims_size(s->rank, s->dims);
  for (i64 k = 0, since = 0; k < s->count; k++) {
    if ((since += each) > PART_PLACES) {
      since = 0;
      if (vm_look(vm) != WEFT_OK) return WEFT_ERROR;
    }
    char *at = to + s->places[k] * (i64)bytes;
    const char *from = (const char *)v->data + w.offset * (i64)vbytes;
    if (s->rank == 0 && same && bytes == 8) memcpy(at, from, 8);
    else if (strided_convert_polled(vm, s->rank, s->dims, dtype, at, s->strides, array_dtype(v), from, w.view) !=
             WEFT_OK)
      return WEFT_ERROR;
    block_next(s, &w);
  }
  return WEFT_OK;
}

/* ---- compound stores -------------------------------------------------------------------------- */

static WeftStatus result_check(Vm *vm, u32 dtype, Value r) { /* of a compound operation */
  if (dtype_kind(r.dtype) > dtype_kind(dtype))
    return vm_error(vm, EK_dtype,
                    "a store keeps the array's dtype: the result is %s, the array %s; convert one of them",
                    dtype_name(r.dtype), dtype_name(dtype));
  return WEFT_OK;
}

/* Of a larger part the threads and the polls of the operation are worth more than the array that it makes. */
enum { IN_PLACE_MOST = 1 << 20 };

/* Whether value, an array or a number of the array's dtype, was added to the part (subtracted, multiplied) in its
 * place. */
static bool combine_here(Array *a, i64 offset, const Selection *s, u32 op, Value value) {
  u32 dtype = array_dtype(a);
  i64 strides[ARRAY_MAX_RANK];
  u64 number[2];
  const void *from = number;
  if (s->rank == 0 || dims_size(s->rank, s->dims) > IN_PLACE_MOST) return false;
  if (value.kind == V_NUM && (value.dtype == dtype || (value_is_weak(value) && num_fits(value, dtype)))) {
    if (dtype_kind(value.dtype) > dtype_kind(dtype)) return false;
    num_store_as(number, dtype, value);
    memset(strides, 0, sizeof strides);
  } else if (value.kind == V_ARRAY && value.dtype == dtype && array_rank(value.array) <= s->rank) {
    if (!broadcasts(value.array, s->rank, s->dims, strides)) return false;
    from = value.array->data;
  } else {
    return false;
  }
  return combine_in_place(op, dtype, s->rank, s->dims, (char *)a->data + offset * (i64)dtype_bytes(dtype), s->strides,
                          from, strides);
}

/* The view, or one block of it at a place, op= value. */
static WeftStatus combine_view(Vm *vm, Value arr, i64 offset, const Selection *s, u32 op, Value value) {
  Value args[2], r;
  Array *a = arr.array;
  if (combine_here(a, offset, s, op, value)) return WEFT_OK;
  if (s->rank == 0 && array_dtype(a) != DT_c128) args[0] = array_load(a, offset);
  else if (array_view(vm, a, offset, s->rank, s->dims, s->strides, &args[0]) != WEFT_OK) return WEFT_ERROR;
  args[1] = value_keep(value);
  WeftStatus status = operate_binary(vm, op, args, &r);
  value_drop(vm, args[0]);
  value_drop(vm, args[1]);
  if (status != WEFT_OK) return status;
  Selection at = *s;
  at.offset = offset;
  status = result_check(vm, array_dtype(a), r);
  if (status == WEFT_OK) {
    if (r.kind == V_NUM) r.flags = 0; /* the result of a strong element is strong */
    status = store_view(vm, a, &at, r);
  }
  value_drop(vm, r);
  return status;
}

/* The blocks of `value` as views, one per place. */
static WeftStatus combine_places(Vm *vm, Value arr, const Selection *s, u32 op, Value value) {
  NumBox box;
  Array *v = array_of(value, &box);
  BlockWalk w;
  if (block_walk(vm, s, v, &w) != WEFT_OK) return WEFT_ERROR;
  for (i64 k = 0; k < s->count; k++) {
    Value part;
    if (vm_walk(vm) != WEFT_OK) return WEFT_ERROR;
    if (value.kind == V_NUM) part = value;
    else if (s->rank == 0 && array_dtype(v) != DT_c128) part = array_load(v, w.offset);
    else if (array_view(vm, v, w.offset, s->rank, s->dims, w.view, &part) != WEFT_OK) return WEFT_ERROR;
    WeftStatus status = combine_view(vm, arr, s->offset + s->places[k], s, op, part);
    value_drop(vm, part);
    if (status != WEFT_OK) return status;
    block_next(s, &w);
  }
  return WEFT_OK;
}

#define ADD_PLACES(T)                                                                                 \
  {                                                                                                   \
    T *to = (T *)a->data + s->offset;                                                                 \
    const T *from = v->data, sign = op == BC_sub ? (T)-1 : 1;                                         \
    for (i64 lo = 0, hi; lo < s->count; lo = hi) {                                                    \
      if (lo && vm_look(vm) != WEFT_OK) return WEFT_ERROR;                                            \
      hi = part_end(lo, s->count, PART_PLACES);                                                       \
      if (w.linear)                                                                                   \
        for (i64 k = lo; k < hi; k++)                                                                 \
          to[s->places[k]] = (T)(to[s->places[k]] + (T)(from[k * w.step] * sign));                    \
      else                                                                                            \
        for (i64 k = lo; k < hi; k++, block_next(s, &w))                                              \
          to[s->places[k]] = (T)(to[s->places[k]] + (T)(from[w.offset] * sign));                      \
    }                                                                                                 \
    return WEFT_OK;                                                                                   \
  }

/* += and -= of single elements of one dtype: histograms and scatters. Integers wrap in unsigned types. */
static WeftStatus update_add_places(Vm *vm, Array *a, const Selection *s, u32 op, Value value, bool *done) {
  NumBox box;
  u32 dtype = array_dtype(a);
  *done = false;
  if ((op != BC_add && op != BC_sub) || s->rank || dtype == DT_bool) return WEFT_OK;
  if (value.kind == V_NUM && value_is_weak(value) && dtype_kind(value.dtype) <= dtype_kind(dtype) &&
      num_fits(value, dtype)) {
    value = num_convert_unchecked(value, dtype);
    value.flags = 0;
  }
  if (value.dtype != dtype) return WEFT_OK;
  Array *v = array_of(value, &box);
  BlockWalk w;
  *done = true;
  if (block_walk(vm, s, v, &w) != WEFT_OK) return WEFT_ERROR;
  switch (dtype) {
    case DT_f64: ADD_PLACES(f64)
    case DT_f32: ADD_PLACES(f32)
    case DT_i64:
    case DT_u64: ADD_PLACES(u64)
    case DT_i32:
    case DT_u32: ADD_PLACES(u32)
    case DT_u8: ADD_PLACES(u8)
    default: *done = false; return WEFT_OK;
  }
}

static bool places_differ(Vm *vm, const Array *a, const Selection *s, bool *failed) {
  i64 low = 0, high = -1;
  (void)a;
  for (i64 k = 0; k < s->count; k++) {
    if (!vm_item(vm, (u64)k)) return !(*failed = true);
    if (high < low) low = high = s->places[k];
    if (s->places[k] < low) low = s->places[k];
    if (s->places[k] > high) high = s->places[k];
  }
  if (s->count < 2) return true;
  u64 span = (u64)(high - low) + 1;
  u8 *seen = mem_alloc_zero(&vm->alloc, span / 8 + 1);
  if (!seen) {
    *failed = true;
    return false;
  }
  bool differ = true;
  for (i64 k = 0; k < s->count && differ; k++) {
    if (!vm_item(vm, (u64)k)) {
      *failed = true;
      differ = false;
      break;
    }
    u64 at = (u64)(s->places[k] - low);
    differ = !(seen[at >> 3] >> (at & 7) & 1);
    seen[at >> 3] |= (u8)(1 << (at & 7));
  }
  mem_free(&vm->alloc, seen, span / 8 + 1);
  return differ;
}

/* Without duplicates all places can be read, combined and written at once. */
static WeftStatus combine_gathered(Vm *vm, Value arr, const Selection *s, const u8 *items, u32 item_count,
                                   const Value *regs, u32 op, Value value) {
  Value args[2], r;
  if (vm_index(vm, arr, items, item_count, regs, &args[0]) != WEFT_OK) return WEFT_ERROR;
  args[1] = value_keep(value);
  WeftStatus status = operate_binary(vm, op, args, &r);
  value_drop(vm, args[0]);
  value_drop(vm, args[1]);
  if (status != WEFT_OK) return status;
  status = result_check(vm, array_dtype(arr.array), r);
  if (status == WEFT_OK && r.kind == V_NUM) r.flags = 0;
  if (status == WEFT_OK) status = store_places(vm, arr.array, s, r);
  value_drop(vm, r);
  return status;
}

static WeftStatus combine(Vm *vm, Value *slot, const u8 *items, u32 item_count, const Value *regs, const Selection *s,
                          u32 op, Value value) {
  bool done = false, failed = false;
  if (!s->gathers) return combine_view(vm, *slot, s->offset, s, op, value);
  if (update_add_places(vm, slot->array, s, op, value, &done) != WEFT_OK) return WEFT_ERROR;
  if (done) return WEFT_OK;
  if (places_differ(vm, slot->array, s, &failed))
    return combine_gathered(vm, *slot, s, items, item_count, regs, op, value);
  if (failed) return vm->error.raised ? WEFT_ERROR : vm_error_memory(vm);
  /* An error half way must leave nothing changed: work on a copy. */
  Value work;
  if (array_copy(vm, slot->array, &work) != WEFT_OK) return WEFT_ERROR;
  Selection again;
  WeftStatus status = selection_make(vm, work.array, items, item_count, regs, &again);
  if (status == WEFT_OK) {
    status = combine_places(vm, work, &again, op, value);
    selection_free(vm, &again);
  }
  if (status != WEFT_OK) {
    value_drop(vm, work);
    return status;
  }
  value_drop(vm, *slot);
  *slot = work;
  return WEFT_OK;
}

/* x[:] = v, all of x and v of one type: v takes its place. Not when it is a part of something larger, which it would
 * keep. */
static bool takes_place(const Value *slot, const u8 *items, u32 item_count, const Value *regs, Value value) {
  if (slot->kind != V_ARRAY || value.kind != V_ARRAY || slot->array->tag != value.array->tag ||
      !array_dense(value.array))
    return false;
  Array *v = value.array;
  u32 rank = array_rank(v), slices = 0, others = 0;
  if (memcmp(array_dims(v), array_dims(slot->array), rank * sizeof(i64)) != 0 || !v->owner ||
      (v->head.flags & ARRAY_OWNER_ARRAY))
    return false;
  if (v->storage->head.flags || (size_t)v->size * dtype_bytes(array_dtype(v)) < v->storage->bytes / 2) return false;
  for (u32 i = 0; i < item_count; i++) {
    if (items[i] == IX_ELLIPSIS) others++;
    else if (items[i] != IX_SLICE) return false;
    else
      for (u32 k = 3 * slices++, end = k + 3; k < end; k++)
        if (regs[k].kind != V_NIL) return false;
  }
  return slices <= rank && others < 2;
}

/* An array that is stored lies where the one does that it goes into. */
static WeftStatus same_device(Vm *vm, u32 device, Value value) {
  if (value.kind != V_ARRAY || array_rank(value.array) == 0 || array_device(value.array) == device) return WEFT_OK;
  const char *name = vm->device_names[device];
  return vm_error(vm, EK_value,
                  "an array on %s is updated by arrays that lie there, too; to(v, \"%s\") takes one there", name, name);
}

/* x[m] = number, m as large as x, is where(m, number, x). *done: it was that. */
static WeftStatus update_masked(Vm *vm, Value *slot, const u8 *items, u32 item_count, const Value *regs, Value value,
                                bool *done) {
  Array *a = slot->array;
  *done = value.kind == V_NUM && index_is_device_mask(a, items, item_count, regs) &&
          array_rank(regs[0].array) == array_rank(a) && dtype_kind(array_dtype(a)) != DK_COMPLEX;
  if (!*done) return WEFT_OK;
  if (store_check(vm, array_dtype(a), value) != WEFT_OK) return WEFT_ERROR;
  Value args[OP_MAX_PARAMS] = {regs[0], num_convert_unchecked(value, array_dtype(a)), *slot}, out;
  for (u32 i = 3; i < OP_MAX_PARAMS; i++) args[i] = value_hole();
  args[1].flags = 0; /* of the array's dtype, and so is the result */
  if (vm_op(vm, OP_where, args, &out) != WEFT_OK) return WEFT_ERROR;
  value_drop(vm, *slot);
  *slot = out;
  return WEFT_OK;
}

/* Places on a device, of an array of the processor: they come here. */
static WeftStatus update_by_places(Vm *vm, Value *slot, const u8 *items, u32 item_count, const Value *regs, u32 op,
                                   Value value) {
  u32 count = index_register_count(items, item_count), made = 0;
  Value *here = mem_alloc(&vm->alloc, sizeof *here * count);
  if (!here) return vm_error_memory(vm);
  WeftStatus status = WEFT_OK;
  for (; made < count && status == WEFT_OK; made++) status = index_taken_to(vm, regs[made], DEV_CPU, &here[made]);
  if (status == WEFT_OK) status = update_array(vm, slot, items, item_count, here, op, value);
  for (u32 i = 0; i < made; i++) value_drop(vm, here[i]);
  mem_free(&vm->alloc, here, sizeof *here * count);
  return status;
}

/* An array on a device: the processor does it, on a copy that goes back. */
static WeftStatus update_elsewhere(Vm *vm, Value *slot, const u8 *items, u32 item_count, const Value *regs, u32 op,
                                   Value value) {
  u32 count = index_register_count(items, item_count), made = 0, device = array_device(slot->array);
  bool done = false;
  if (same_device(vm, device, value) != WEFT_OK) return WEFT_ERROR;
  if (op == BC_move && update_masked(vm, slot, items, item_count, regs, value, &done) != WEFT_OK) return WEFT_ERROR;
  if (done) return WEFT_OK;
  Value *here = mem_alloc(&vm->alloc, sizeof *here * (count + 2)), out;
  if (!here) return vm_error_memory(vm);
  WeftStatus status = WEFT_OK;
  for (; made < count + 2 && status == WEFT_OK; made++)
    status = index_taken_to(vm, made == 0 ? *slot : made == 1 ? value : regs[made - 2], DEV_CPU, &here[made]);
  if (status == WEFT_OK) status = update_array(vm, &here[0], items, item_count, here + 2, op, here[1]);
  if (status == WEFT_OK) status = index_taken_to(vm, here[0], device, &out);
  for (u32 i = 0; i < made; i++) value_drop(vm, here[i]);
  mem_free(&vm->alloc, here, sizeof *here * (count + 2));
  if (status != WEFT_OK) return status;
  value_drop(vm, *slot);
  *slot = out;
  return WEFT_OK;
}

WeftStatus update_array(Vm *vm, Value *slot, const u8 *items, u32 item_count, const Value *regs, u32 op, Value value) {
  u32 dtype = slot->dtype;
  value = value_untracked(value);
  if (slot->kind == V_ARRAY && array_device(slot->array) != DEV_CPU)
    return update_elsewhere(vm, slot, items, item_count, regs, op, value);
  if (slot->kind == V_ARRAY && index_has_device_places(slot->array, items, item_count, regs))
    return update_by_places(vm, slot, items, item_count, regs, op, value);
  if (op == BC_move && store_check(vm, dtype, value) != WEFT_OK) return WEFT_ERROR;
  if (op != BC_move && !value_is_numeric(value))
    return vm_error(vm, EK_type, "an array of %s cannot hold %s", dtype_name(dtype), value_type_name(value));
  if (op == BC_move && takes_place(slot, items, item_count, regs, value)) {
    Value old = *slot;
    *slot = value_keep(value);
    value_drop(vm, old);
    return WEFT_OK;
  }
  bool boxed = slot->kind == V_NUM;
  Value box = *slot;
  if (array_make_unique(vm, boxed ? &box : slot) != WEFT_OK) return WEFT_ERROR;
  Value *target = boxed ? &box : slot;
  Selection s;
  WeftStatus status = selection_make(vm, target->array, items, item_count, regs, &s);
  if (status == WEFT_OK) {
    i64 each = s.gathers ? s.count : 1; /* elements that are written */
    for (u32 d = 0; d < s.rank; d++) each *= s.dims[d];
    vm_worked(vm, (u64)each);
    if (op != BC_move) status = combine(vm, target, items, item_count, regs, &s, op, value);
    else status = s.gathers ? store_places(vm, target->array, &s, value) : store_view(vm, target->array, &s, value);
    selection_free(vm, &s);
  }
  if (boxed) {
    if (status == WEFT_OK) *slot = array_finish(vm, box);
    else value_drop(vm, box);
  }
  return status;
}

/* ---- paths ------------------------------------------------------------------------------------ */

typedef struct Walker {
  Vm *vm;
  const Desc *d;
  const Value *keys;  /* items of the index steps, in order */
  Value value;        /* owned until it is stored */
} Walker;

static u32 step_registers(const Desc *d, const PathStep *s) {
  return s->kind == STEP_INDEX ? index_register_count(d->items + s->item_first, s->item_count) : 0;
}

/* *slot = value, or *slot op= value. Consumes value. */
static WeftStatus assign_slot(Vm *vm, Value *slot, u32 op, Value value) {
  if (op == BC_move) {
    Value old = *slot;
    *slot = value;
    value_drop(vm, old);
    return WEFT_OK;
  }
  Value args[2] = {*slot, value}, r;
  *slot = value_nil(); /* the operation sees the only count there is */
  WeftStatus status = operate_binary(vm, op, args, &r);
  if (status != WEFT_OK) {
    *slot = args[0];
    value_drop(vm, args[1]);
    return status;
  }
  *slot = r;
  value_drop(vm, args[0]);
  value_drop(vm, args[1]);
  return WEFT_OK;
}

static WeftStatus key_of_step(Vm *vm, const Desc *d, const PathStep *s, const Value *keys, Name *out) {
  if (s->kind == STEP_FIELD) {
    *out = s->field;
    return WEFT_OK;
  }
  if (s->item_count != 1 || d->items[s->item_first] != IX_VALUE || keys[0].kind != V_TEXT)
    return vm_error(vm, EK_type, "the keys of a record are text%s%s",
                    s->item_count == 1 && d->items[s->item_first] == IX_VALUE ? ", got " : "",
                    s->item_count == 1 && d->items[s->item_first] == IX_VALUE ? value_type_name(keys[0]) : "");
  return text_name_of(vm, keys[0].text, out) ? WEFT_OK : WEFT_ERROR;
}

static WeftStatus step_record(Walker *w, Value *slot, const PathStep *s, bool last, Value **next) {
  Vm *vm = w->vm;
  Name key;
  if (key_of_step(vm, w->d, s, w->keys, &key) != WEFT_OK) return WEFT_ERROR;
  if (last && w->d->op == BC_move) {
    Value v = w->value;
    w->value = value_nil();
    return record_set(vm, slot, key, v) ? WEFT_OK : WEFT_ERROR;
  }
  if (shape_find(slot->record->shape, key) < 0) return field_missing(vm, slot->record, key);
  if (!record_unique(vm, slot)) return WEFT_ERROR;
  *next = record_find(slot->record, key);
  return WEFT_OK;
}

/* xs[a:b] = ys: with step 1 the length may change, else the counts must agree. */
static WeftStatus store_list_part(Walker *w, Value *slot, i64 start, i64 count, i64 step) {
  Vm *vm = w->vm;
  if (w->d->op != BC_move || w->value.kind != V_LIST)
    return vm_error(vm, EK_type, "a part of a list is replaced by a list, got %s", value_type_name(w->value));
  List *from = w->value.list, *old = slot->list;
  if (step != 1) {
    if ((i64)from->count != count)
      return vm_error(vm, EK_value, "%u items do not fit a part of %lld", from->count, (long long)count);
    if (!list_unique(vm, slot)) return WEFT_ERROR;
    for (i64 i = 0; i < count; i++) {
      Value *at = &slot->list->items[start + i * step], gone = *at;
      *at = value_keep(from->items[i]);
      value_drop(vm, gone);
    }
    return WEFT_OK;
  }
  Value made;
  u64 total = (u64)old->count - (u64)count + from->count;
  if (total > UINT32_MAX / 2)
    return vm_error(vm, EK_limit, "a list of %llu items is too long", (unsigned long long)total);
  if (!list_new(vm, (u32)total, &made)) return WEFT_ERROR;
  bool ok = list_extend(vm, &made, old->items, (u32)start) && list_extend(vm, &made, from->items, from->count) &&
            list_extend(vm, &made, old->items + start + count, old->count - (u32)(start + count));
  if (!ok) {
    value_drop(vm, made);
    return WEFT_ERROR;
  }
  value_drop(vm, *slot);
  *slot = made;
  return WEFT_OK;
}

static WeftStatus step_list(Walker *w, Value *slot, const PathStep *s, bool last, Value **next) {
  Vm *vm = w->vm;
  if (!list_boxed(vm, slot->list)) return WEFT_ERROR;
  i64 size = slot->list->count, start, count, step;
  const u8 *items = w->d->items + s->item_first;
  if (s->kind == STEP_FIELD) return vm_error(vm, EK_type, "a list has no field '%s'", name_text(&vm->names, s->field));
  if (s->item_count != 1) return vm_error(vm, EK_index, "list has one axis, the index has %u items", s->item_count);
  if (items[0] == IX_SLICE || (items[0] == IX_VALUE && w->keys[0].kind == V_RANGE)) {
    if (!last) return vm_error(vm, EK_type, "a part of a list cannot be updated through; assign to its items");
    if (items[0] == IX_VALUE) index_range(w->keys[0].range, size, &start, &count, &step);
    else if (index_slice(vm, w->keys, size, &start, &count, &step) != WEFT_OK) return WEFT_ERROR;
    if (items[0] == IX_SLICE && count == 0 && w->keys[0].kind != V_NIL) { /* xs[3:3] = ys inserts there */
      i64 at;
      if (num_as_index(w->keys[0], &at)) start = at < 0 ? (at + size < 0 ? 0 : at + size) : at > size ? size : at;
    }
    return store_list_part(w, slot, start, count, step);
  }
  if (items[0] != IX_VALUE) return vm_error(vm, EK_type, "a list is indexed by an integer, a slice or a range");
  if (w->keys[0].kind == V_ARRAY && array_rank(w->keys[0].array))
    return vm_error(vm, EK_type, "items of a list are assigned one by one, or as a slice; write 'for (i, v) in "
                                 "zip(places, items) { xs[i] = v }'");
  i64 i;
  if (index_integer(vm, w->keys[0], size, "a list", &i) != WEFT_OK || !list_unique(vm, slot)) return WEFT_ERROR;
  *next = &slot->list->items[i];
  return WEFT_OK;
}

static WeftStatus walk(Walker *w, Value *slot, u32 first);

/* An index in the middle of a path into an array: the part is taken out, updated, and stored back. */
static WeftStatus step_array_part(Walker *w, Value *slot, const PathStep *s, u32 index) {
  Vm *vm = w->vm;
  const u8 *items = w->d->items + s->item_first;
  Value part;
  if (vm_index(vm, *slot, items, s->item_count, w->keys, &part) != WEFT_OK) return WEFT_ERROR;
  const Value *keys = w->keys;
  w->keys += step_registers(w->d, s);
  WeftStatus status = walk(w, &part, index + 1);
  if (status == WEFT_OK) status = update_array(vm, slot, items, s->item_count, keys, BC_move, part);
  value_drop(vm, part);
  return status;
}

/* An item of a packed list is made, updated, and put back where it lay, if it still fits. */
static WeftStatus step_packed(Walker *w, Value *slot, const PathStep *s, u32 index) {
  Vm *vm = w->vm;
  Value item, v = w->value;
  i64 i;
  if (index_integer(vm, w->keys[0], slot->list->count, "a list", &i) != WEFT_OK ||
      !packed_item(vm, slot->list, (u32)i, &item))
    return WEFT_ERROR;
  bool last = index + 1 == w->d->step_count;
  w->keys += step_registers(w->d, s);
  if (last) w->value = value_nil();
  WeftStatus status = last ? assign_slot(vm, &item, w->d->op, v) : walk(w, &item, index + 1);
  bool put = status == WEFT_OK && list_is_packed(slot->list) && packed_set(vm, slot->list, (u32)i, item);
  if (status == WEFT_OK && !put && !list_unique(vm, slot)) status = WEFT_ERROR;
  if (status != WEFT_OK || put) {
    value_drop(vm, item);
    return status;
  }
  v = slot->list->items[i];
  slot->list->items[i] = item;
  value_drop(vm, v);
  return WEFT_OK;
}

static WeftStatus no_step(Vm *vm, Value v, const PathStep *s) {
  if (v.kind == V_TEXT) return vm_error(vm, EK_type, "text does not change; make a new one");
  if (v.kind == V_MODULE) return vm_error(vm, EK_type, "a module's variables are not assigned from outside");
  if (value_is_numeric(v))
    return vm_error(vm, EK_type, "the property '%s' of an array cannot be assigned", name_text(&vm->names, s->field));
  if (v.kind == V_REF) return vm_error(vm, EK_type, "a ref is changed through .value");
  if (s->kind == STEP_FIELD)
    return vm_error(vm, EK_type, "%s has no field '%s' to assign", value_type_name(v), name_text(&vm->names, s->field));
  return vm_error(vm, EK_type, "%s cannot be updated by index", value_type_name(v));
}

/* recursion: index steps into arrays, bounded by the source */
static WeftStatus walk(Walker *w, Value *slot, u32 first) {
  Vm *vm = w->vm;
  const Desc *d = w->d;
  for (u32 i = first; i < d->step_count; i++) {
    const PathStep *s = &d->steps[i];
    bool last = i + 1 == d->step_count;
    Value *next = NULL;
    WeftStatus status;
    if (vm->tape && s->kind == STEP_INDEX &&
        (slot->kind == V_TRACKED || (value_is_numeric(*slot) && w->value.kind == V_TRACKED))) {
      Value v = w->value;
      w->value = value_nil();
      return vm->tape->update(vm, slot, d, i, w->keys, v);
    }
    if (slot->kind == V_RECORD) status = step_record(w, slot, s, last, &next);
    else if (slot->kind == V_LIST && list_is_packed(slot->list) && s->kind == STEP_INDEX && s->item_count == 1 &&
             d->items[s->item_first] == IX_VALUE && w->keys[0].kind != V_RANGE)
      return step_packed(w, slot, s, i);
    else if (slot->kind == V_LIST) status = step_list(w, slot, s, last, &next);
    else if (value_is_numeric(*slot) && s->kind == STEP_INDEX)
      return last ? update_array(vm, slot, d->items + s->item_first, s->item_count, w->keys, d->op, w->value)
                  : step_array_part(w, slot, s, i);
    else if (slot->kind == V_REF && s->kind == STEP_FIELD && s->field == vm->known[KN_value]) {
      next = &slot->ref->value;
      status = WEFT_OK;
    } else status = no_step(vm, *slot, s);
    if (status != WEFT_OK || !next) return status;
    slot = next;
    w->keys += step_registers(d, s);
  }
  Value v = w->value;
  w->value = value_nil();
  return assign_slot(vm, slot, d->op, v);
}

/* Reads along the path to the last ref that it passes through: *first is the step behind its .value. What lies
 * before it need not be made unique. NULL: none. Borrowed. */
static Ref *last_ref(Vm *vm, Value root, const Desc *d, const Value *keys, u32 *first, const Value **rest) {
  Ref *found = NULL;
  Value v = root;
  for (u32 i = 0; i < d->step_count; i++) {
    const PathStep *s = &d->steps[i];
    const u8 *items = d->items + s->item_first;
    bool single = s->kind == STEP_INDEX && s->item_count == 1 && items[0] == IX_VALUE;
    if (v.kind == V_REF && s->kind == STEP_FIELD && s->field == vm->known[KN_value]) {
      found = v.ref;
      v = found->value;
      *first = i + 1;
      *rest = keys;
    } else if (v.kind == V_RECORD && (s->kind == STEP_FIELD || (single && keys[0].kind == V_TEXT))) {
      Value *at = s->kind == STEP_FIELD ? record_find(v.record, s->field) : record_at(vm, v.record, keys[0].text);
      if (!at) break;
      v = *at;
    } else if (v.kind == V_MODULE && s->kind == STEP_FIELD) { /* cells of another module may be changed */
      u32 slot;
      if (!scope_find(&v.module->scope, s->field, &slot) || name_text(&vm->names, s->field)[0] == '_') break;
      v = v.module->slots[slot].value;
    } else if (v.kind == V_LIST && single && !list_is_packed(v.list)) {
      i64 at, size = v.list->count;
      if (!num_as_index(keys[0], &at)) break;
      if (at < 0) at += size;
      if (at < 0 || at >= size) break;
      v = v.list->items[at];
    } else {
      break;
    }
    keys += step_registers(d, s);
  }
  return found;
}

static bool names_value(const Vm *vm, const Desc *d) {
  for (u32 i = 0; i < d->step_count; i++)
    if (d->steps[i].kind == STEP_FIELD && d->steps[i].field == vm->known[KN_value]) return true;
  return false;
}

WeftStatus vm_update(Vm *vm, Value *root, const Desc *d, const Value *keys, Value value) {
  Walker w = {vm, d, keys, value};
  u32 first = 0;
  Ref *ref = names_value(vm, d) ? last_ref(vm, *root, d, keys, &first, &w.keys) : NULL;
  WeftStatus status;
  if (!value_boxed(vm, value)) {
    status = WEFT_ERROR;
  } else if (ref) {
    Value held = value_keep(value_obj(V_REF, ref));
    status = walk(&w, &ref->value, first);
    value_drop(vm, held);
  } else if (d->root == ROOT_FIXED) {
    status = vm_error(vm, EK_type,
                      "this is no variable: a captured value cannot be assigned; ref(…) makes a cell that can");
  } else {
    status = walk(&w, root, 0);
  }
  value_drop(vm, w.value);
  return status;
}
