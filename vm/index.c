/* index.c — reading by index: arrays (NumPy's basic and advanced rules), lists, text, records, ranges. */
#include "vm/index.h"

#include <stdio.h>
#include <string.h>

#include "vm/field.h"

/* ---- integers, slices, ranges ----------------------------------------------------------------- */

u32 index_register_count(const u8 *items, u32 item_count) {
  u32 n = 0;
  for (u32 i = 0; i < item_count; i++) n += items[i] == IX_VALUE ? 1 : items[i] == IX_SLICE ? 3 : 0;
  return n;
}

static WeftStatus bad_index(Vm *vm, Value v, const char *what) {
  v = value_untracked(v);
  if (v.kind == V_NUM)
    return vm_error(vm, EK_index, "an index into %s is an integer, got %s", what, dtype_name(v.dtype));
  if (v.kind == V_LIST)
    return vm_error(vm, EK_index, "an index into %s is no list; array(…) makes an array of it", what);
  if (v.kind == V_NIL)
    return vm_error(vm, EK_index, "an index into %s is nil; only the literal nil makes a new axis", what);
  return vm_error(vm, EK_index, "an index into %s is an integer, got %s", what, value_type_name(v));
}

WeftStatus index_integer(Vm *vm, Value v, i64 size, const char *what, i64 *out) {
  i64 i;
  if (num_is_huge(value_untracked(v)))
    return vm_error(vm, EK_index, "index %llu is out of bounds for %s with size %lld",
                    (unsigned long long)value_untracked(v).u, what, (long long)size);
  if (!num_as_index(v, &i) || v.dtype == DT_bool) return bad_index(vm, v, what);
  i64 at = i < 0 ? i + size : i;
  if (at < 0 || at >= size)
    return vm_error(vm, EK_index, "index %lld is out of bounds for %s with size %lld", (long long)i, what,
                    (long long)size);
  *out = at;
  return WEFT_OK;
}

static WeftStatus slice_part(Vm *vm, Value v, i64 *out) {
  if (num_as_index(v, out) && v.dtype != DT_bool) return WEFT_OK;
  v = value_untracked(v);
  return vm_error(vm, EK_type, "the parts of a slice are integers, got %s",
                  v.kind == V_NUM ? dtype_name(v.dtype) : value_type_name(v));
}

WeftStatus index_slice(Vm *vm, const Value *regs, i64 size, i64 *start, i64 *count, i64 *step) {
  i64 st = 1, lo, hi;
  if (regs[2].kind != V_NIL && slice_part(vm, regs[2], &st) != WEFT_OK) return WEFT_ERROR;
  if (st == 0) return vm_error(vm, EK_value, "the step of a slice is 0");
  if (st < -ARRAY_MAX_SIZE) st = -ARRAY_MAX_SIZE;
  i64 low = st > 0 ? 0 : -1, high = st > 0 ? size : size - 1; /* where ends are clamped to */
  lo = st > 0 ? low : high;
  hi = st > 0 ? high : low;
  for (u32 k = 0; k < 2; k++) {
    i64 v;
    if (regs[k].kind == V_NIL) continue;
    if (slice_part(vm, regs[k], &v) != WEFT_OK) return WEFT_ERROR;
    if (v < 0) v = v < -size ? low : v + size;
    if (v > high) v = high;
    if (v < low) v = low;
    *(k == 0 ? &lo : &hi) = v;
  }
  *start = lo;
  *step = st;
  *count = st > 0 ? (hi > lo ? (hi - lo - 1) / st + 1 : 0) : (lo > hi ? (lo - hi - 1) / -st + 1 : 0);
  if (*count == 0) *start = 0;
  return WEFT_OK;
}

void index_range(const Range *r, i64 size, i64 *start, i64 *count, i64 *step) {
  u64 n = range_count(r), skip = 0, magnitude = r->step > 0 ? (u64)r->step : 0 - (u64)r->step;
  if (r->step > 0 && r->start < 0) skip = ((0 - (u64)r->start) - 1) / magnitude + 1;
  if (r->step < 0 && r->start >= size) skip = ((u64)r->start - (u64)size) / magnitude + 1;
  *start = 0;
  *count = 0;
  *step = 1;
  if (skip >= n) return;
  i64 first = (i64)((u64)r->start + skip * (u64)r->step);
  if (first < 0 || first >= size) return;
  u64 room = r->step > 0 ? (u64)(size - 1 - first) / magnitude : (u64)first / magnitude;
  u64 left = n - skip - 1;
  *start = first;
  *count = (i64)(left < room ? left : room) + 1;
  *step = *count > 1 ? r->step : 1;
}

/* ---- selections ------------------------------------------------------------------------------- */

enum { MAX_ITEMS = 64 };

/* One index array, or mask, or an integer that stands beside them. */
typedef struct Advanced {
  Value v;       /* V_NUM or V_ARRAY of integers; a mask's places (raw) */
  bool owned;    /* drop v at the end */
  bool raw;      /* v holds offsets already */
  u32 axis;      /* of the indexed array */
  i64 size, stride;
} Advanced;

typedef struct Builder {
  Vm *vm;
  Array *a;
  Selection *s;
  Advanced adv[ARRAY_MAX_RANK];
  u32 adv_count;
  u32 axis;          /* next axis of a */
  bool has_array;
  bool split;        /* advanced items do not all stand next to each other */
  bool after;        /* something basic came after an advanced item */
} Builder;

static WeftStatus add_axis(Builder *b, i64 dim, i64 stride) {
  Selection *s = b->s;
  if (s->rank == ARRAY_MAX_RANK)
    return vm_error(b->vm, EK_shape, "an index gives an array of rank above %d", ARRAY_MAX_RANK);
  s->dims[s->rank] = dim;
  s->strides[s->rank++] = stride;
  if (b->adv_count) b->after = true;
  return WEFT_OK;
}

static void add_advanced(Builder *b, Advanced adv) {
  if (b->adv_count == 0) b->s->at = b->s->rank;
  else if (b->after) b->split = true;
  b->adv[b->adv_count++] = adv;
}

/* Names of axes for messages, made before anything is wrong: no formatting for each element. */
static const char *axis_name(u32 axis) {
  static const char names[ARRAY_MAX_RANK][8] = {"axis 0", "axis 1", "axis 2", "axis 3", "axis 4", "axis 5", "axis 6",
                                                "axis 7", "axis 8", "axis 9", "axis 10", "axis 11", "axis 12",
                                                "axis 13", "axis 14", "axis 15"};
  return names[axis];
}

static void describe_shape(const i64 *dims, u32 rank, char *out, size_t cap) {
  ArrayType t = {.rank = (u8)rank};
  for (u32 d = 0; d < rank; d++) t.dims[d] = dims[d];
  rule_shape_text(&t, out, cap);
}

/* ---- masks ------------------------------------------------------------------------------------ */

/* Eight at a time: sums of bytes, before any of them can overflow. */
static i64 count_bools(const u8 *p, i64 n) {
  const u64 low = 0x00FF00FF00FF00FFu;
  i64 count = 0, i = 0;
  while (i + 8 <= n) {
    i64 end = n - i < 8 * 255 ? i + (n - i) / 8 * 8 : i + 8 * 255;
    u64 sums = 0, word;
    for (; i < end; i += 8) {
      memcpy(&word, p + i, sizeof word);
      sums += word;
    }
    sums = (sums & low) + (sums >> 8 & low);
    count += (i64)(sums * 0x0001000100010001u >> 48);
  }
  for (; i < n; i++) count += p[i];
  return count;
}

WeftStatus bools_count(Vm *vm, const u8 *p, i64 n, i64 *count) {
  *count = 0;
  for (i64 lo = 0, hi; lo < n; lo = hi) {
    if (lo && vm_look(vm) != WEFT_OK) return WEFT_ERROR;
    hi = part_end(lo, n, PART_BOOLS);
    *count += count_bools(p + lo, hi - lo);
  }
  return WEFT_OK;
}

/* Without branches, which masks make go wrong: what is not wanted is written over. A part ends with the last that is
 * true. */
WeftStatus bools_places(Vm *vm, const u8 *p, i64 size, i64 most, i64 step, i64 *places) {
  for (i64 lo = 0, hi; lo < size && most > 0; lo = hi) {
    if (lo && vm_look(vm) != WEFT_OK) return WEFT_ERROR;
    hi = part_end(lo, size, PART_PLACES);
    i64 count = count_bools(p + lo, hi - lo);
    if (count > most) count = most;
    for (i64 i = lo, n = 0, at = lo * step; n < count; i++, at += step) {
      places[n] = at;
      n += p[i];
    }
    places += count;
    most -= count;
  }
  return WEFT_OK;
}

/* One mask over all of an array without gaps: its elements, without their places. False: not so simple. */
static bool is_whole_mask(Array *a, const u8 *items, u32 item_count, const Value *regs) {
  if (item_count != 1 || items[0] != IX_VALUE || regs[0].kind != V_ARRAY || regs[0].dtype != DT_bool) return false;
  Array *m = regs[0].array;
  u32 rank = array_rank(a), bytes = dtype_bytes(array_dtype(a));
  if (!rank || array_rank(m) != rank || array_device(a) != DEV_CPU || array_device(m) != DEV_CPU || !array_dense(a) ||
      !array_dense(m))
    return false;
  for (u32 d = 0; d < rank; d++)
    if (array_dims(a)[d] != array_dims(m)[d]) return false;
  return bytes <= 8;
}

/* Elements of a row by an array of i64 without gaps. False: it is not so simple, or an index is out of bounds. */
#define PICK(T)                                                            \
  {                                                                        \
    T *d = out->array->data;                                               \
    const T *f = a->data;                                                  \
    for (i64 k = lo; k < hi; k++) {                                        \
      i64 i = at[k] < 0 ? at[k] + size : at[k];                            \
      bool beyond = (u64)i >= (u64)size;                                   \
      bad |= beyond;                                                       \
      d[k] = f[beyond ? 0 : i * step];                                     \
    }                                                                      \
  }

static bool picks_elements(Array *a, const u8 *items, u32 item_count, const Value *regs) {
  if (item_count != 1 || items[0] != IX_VALUE || regs[0].kind != V_ARRAY || regs[0].dtype != DT_i64) return false;
  Array *at = regs[0].array;
  return array_rank(a) == 1 && array_rank(at) == 1 && array_device(a) == DEV_CPU && array_device(at) == DEV_CPU &&
         a->size && array_dense(at) && dtype_bytes(array_dtype(a)) <= 8;
}

static WeftStatus pick_elements(Vm *vm, Array *a, Array *places, bool *done, Value *out) {
  const i64 *at = places->data, n = places->size, size = a->size, step = array_strides(a)[0];
  bool bad = false;
  *done = false;
  if (array_new(vm, array_dtype(a), 1, &n, out) != WEFT_OK) return *done = true, WEFT_ERROR;
  for (i64 lo = 0; lo < n && !bad; lo += PART_PLACES) {
    const i64 hi = part_end(lo, n, PART_PLACES);
    if (lo && vm_poll(vm, 0) != WEFT_OK) {
      value_drop(vm, *out);
      return *done = true, WEFT_ERROR;
    }
    switch (dtype_bytes(array_dtype(a))) {
      case 1: PICK(u8) break;
      case 2: PICK(u16) break;
      case 4: PICK(u32) break;
      default: PICK(u64) break;
    }
  }
  if (bad) value_drop(vm, *out); /* the error is found and said by the places */
  *done = !bad;
  return WEFT_OK;
}

#define COMPRESS(T)                                                     \
  {                                                                     \
    T *d = out->array->data;                                            \
    const T *f = a->data;                                               \
    for (i64 i = lo; k < end; i++) d[k] = f[i], k += p[i];              \
  }

static WeftStatus compress_whole(Vm *vm, const Array *a, const Array *mask, Value *out) {
  const u8 *p = mask->data;
  i64 count;
  if (bools_count(vm, p, mask->size, &count) != WEFT_OK) return WEFT_ERROR;
  vm_worked(vm, (u64)mask->size);
  if (array_new(vm, array_dtype(a), 1, &count, out) != WEFT_OK) return WEFT_ERROR;
  for (i64 lo = 0, hi, k = 0; k < count; lo = hi) {
    if (lo && vm_look(vm) != WEFT_OK) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
    hi = part_end(lo, mask->size, PART_PLACES);
    const i64 end = k + count_bools(p + lo, hi - lo);
    switch (dtype_bytes(array_dtype(a))) {
      case 1: COMPRESS(u8) break;
      case 2: COMPRESS(u16) break;
      case 4: COMPRESS(u32) break;
      default: COMPRESS(u64) break;
    }
  }
  *out = array_finish(vm, *out);
  return WEFT_OK;
}

bool index_is_device_mask(Array *a, const u8 *items, u32 item_count, const Value *regs) {
  if (item_count != 1 || items[0] != IX_VALUE || regs[0].kind != V_ARRAY || regs[0].dtype != DT_bool) return false;
  Array *m = regs[0].array;
  u32 rank = array_rank(m);
  if (!rank || rank > array_rank(a) || array_device(m) == DEV_CPU || array_device(a) != array_device(m)) return false;
  for (u32 d = 0; d < rank; d++)
    if (array_dims(a)[d] != array_dims(m)[d]) return false;
  return true;
}

/* One array of places along the first axis of an array, both on the same device. */
static bool is_device_gather(Array *a, const u8 *items, u32 item_count, const Value *regs) {
  if (item_count != 1 || items[0] != IX_VALUE || regs[0].kind != V_ARRAY || array_rank(a) == 0) return false;
  Array *at = regs[0].array;
  return array_rank(at) > 0 && dtype_kind(array_dtype(at)) == DK_INT && array_device(at) != DEV_CPU &&
         array_device(a) == array_device(at);
}

/* op(x, y, z), consumes x */
static WeftStatus on_device(Vm *vm, u32 op, Value x, Value y, Value z, Value *out) {
  Value args[OP_MAX_PARAMS] = {x, y, z};
  for (u32 i = 3; i < OP_MAX_PARAMS; i++) args[i] = value_hole();
  WeftStatus status = vm_op(vm, op, args, out);
  value_drop(vm, x);
  return status;
}

/* compress(x, mask), with the axes of the mask as one. */
static WeftStatus compress_on_device(Vm *vm, Value obj, Value mask, Value *out) {
  Array *a = obj.array, *m = mask.array;
  u32 rank = array_rank(m);
  Value flat = value_keep(mask), x = value_keep(obj), shape;
  if (rank > 1) {
    if (on_device(vm, OP_ravel, flat, value_hole(), value_hole(), &flat) != WEFT_OK) goto fail;
    if (!list_new(vm, array_rank(a) - rank + 1, &shape)) goto fail_flat;
    bool ok = list_push(vm, &shape, value_i64(m->size));
    for (u32 d = rank; d < array_rank(a) && ok; d++) ok = list_push(vm, &shape, value_i64(array_dims(a)[d]));
    WeftStatus status = ok ? on_device(vm, OP_reshape, x, shape, value_hole(), &x) : WEFT_ERROR;
    if (!ok) value_drop(vm, x);
    value_drop(vm, shape);
    if (status != WEFT_OK) {
      value_drop(vm, flat);
      return WEFT_ERROR;
    }
  }
  WeftStatus status = on_device(vm, OP_compress, x, flat, value_i64(0), out);
  value_drop(vm, flat);
  return status;
fail_flat:
  value_drop(vm, flat);
fail:
  value_drop(vm, x);
  return WEFT_ERROR;
}

/* Do the axes of `a` from `axis` on lie as one, at equal steps? */
static bool equal_steps(Array *a, u32 axis, u32 rank) {
  for (u32 d = axis; d + 1 < axis + rank; d++)
    if (array_strides(a)[d] != array_strides(a)[d + 1] * array_dims(a)[d + 1]) return false;
  return true;
}

/* The offsets at which a mask over `rank` axes from b->axis is true. */
static WeftStatus mask_places(Builder *b, Array *mask, Value *out) {
  u32 rank = array_rank(mask);
  const i64 *dims = array_dims(mask), *ms = array_strides(mask), *as = array_strides(b->a) + b->axis;
  const u8 *data = mask->data;
  i64 count = 0;
  i64 at[ARRAY_MAX_RANK] = {0};
  if (array_dense(mask) && equal_steps(b->a, b->axis, rank)) {
    if (bools_count(b->vm, data, mask->size, &count) != WEFT_OK ||
        array_new(b->vm, DT_i64, 1, &count, out) != WEFT_OK)
      return WEFT_ERROR;
    if (bools_places(b->vm, data, mask->size, count, as[rank - 1], out->array->data) == WEFT_OK) return WEFT_OK;
    value_drop(b->vm, *out);
    return WEFT_ERROR;
  }
  for (u32 pass = 0; pass < 2; pass++) {
    i64 *places = pass ? out->array->data : NULL, n = 0;
    i64 m = 0, o = 0;
    for (i64 k = 0; k < mask->size; k++) {
      if (!vm_item(b->vm, (u64)k)) {
        if (pass) value_drop(b->vm, *out);
        return WEFT_ERROR;
      }
      if (data[m]) {
        if (pass) places[n] = o;
        n++;
      }
      for (u32 d = rank; d-- > 0;) {
        m += ms[d];
        o += as[d];
        if (++at[d] < dims[d]) break;
        m -= ms[d] * dims[d];
        o -= as[d] * dims[d];
        at[d] = 0;
      }
    }
    count = n;
    if (!pass && array_new(b->vm, DT_i64, 1, &count, out) != WEFT_OK) return WEFT_ERROR;
  }
  return WEFT_OK;
}

static WeftStatus add_mask(Builder *b, Array *mask) {
  u32 rank = array_rank(mask);
  char got[96], want[96];
  if (rank == 0) return vm_error(b->vm, EK_index, "an index into an array is an integer, got bool");
  bool fits = b->axis + rank <= array_rank(b->a);
  for (u32 d = 0; d < rank && fits; d++) fits = array_dims(mask)[d] == array_dims(b->a)[b->axis + d];
  if (!fits) {
    u32 left = array_rank(b->a) - b->axis;
    describe_shape(array_dims(mask), rank, got, sizeof got);
    describe_shape(array_dims(b->a) + b->axis, left < rank ? left : rank, want, sizeof want);
    return vm_error(b->vm, EK_index, "a mask of shape %s does not fit the axes of shape %s from axis %u on", got,
                    want, b->axis);
  }
  ARRAY_HERE(mask);
  Advanced adv = {.owned = true, .raw = true, .axis = b->axis, .stride = 1};
  vm_worked(b->vm, (u64)mask->size);
  if (mask_places(b, mask, &adv.v) != WEFT_OK) return WEFT_ERROR;
  add_advanced(b, adv);
  b->axis += rank;
  b->has_array = true;
  return WEFT_OK;
}

/* A condition is a mask of no axes: a new axis, of one element or of none. */
static WeftStatus add_condition(Builder *b, bool holds) {
  Advanced adv = {.owned = true, .raw = true, .axis = b->axis, .stride = 1};
  const i64 count = holds;
  if (b->adv_count == COUNT_OF(b->adv))
    return vm_error(b->vm, EK_index, "an index has at most %d arrays", ARRAY_MAX_RANK);
  if (array_new_zero(b->vm, DT_i64, 1, &count, &adv.v) != WEFT_OK) return WEFT_ERROR;
  add_advanced(b, adv);
  b->has_array = true;
  return WEFT_OK;
}

static WeftStatus add_value(Builder *b, Value v, bool beside_arrays) {
  Array *a = b->a;
  v = value_untracked(v);
  if (v.kind == V_NUM && v.dtype == DT_bool) return add_condition(b, v.i);
  if (b->axis >= array_rank(a) && !(v.kind == V_ARRAY && v.dtype == DT_bool && array_rank(v.array) == 0)) {
    char shape[96];
    describe_shape(array_dims(a), array_rank(a), shape, sizeof shape);
    return vm_error(b->vm, EK_index, "too many indices for an array of shape %s", shape);
  }
  i64 size = array_dims(a)[b->axis], stride = array_strides(a)[b->axis], i;
  if (v.kind == V_NUM) {
    if (index_integer(b->vm, v, size, axis_name(b->axis), &i) != WEFT_OK) return WEFT_ERROR;
    b->s->offset += i * stride;
    if (beside_arrays) add_advanced(b, (Advanced){.v = value_i64(0), .raw = true, .axis = b->axis});
    b->axis++;
    return WEFT_OK;
  }
  if (v.kind == V_RANGE) {
    i64 start, count, step;
    index_range(v.range, size, &start, &count, &step);
    b->s->offset += start * stride;
    b->axis++;
    return add_axis(b, count, step * stride);
  }
  if (v.kind != V_ARRAY) return bad_index(b->vm, v, "an array");
  if (v.dtype == DT_bool) return add_mask(b, v.array);
  if (dtype_kind(v.dtype) != DK_INT)
    return vm_error(b->vm, EK_index, "an index array has integers or bools, got %s", dtype_name(v.dtype));
  ARRAY_HERE(v.array);
  add_advanced(b, (Advanced){.v = v, .axis = b->axis, .size = size, .stride = stride});
  b->axis++;
  b->has_array = true;
  return WEFT_OK;
}

bool linear_walk(u32 rank, const i64 *dims, const i64 *strides, i64 *step) {
  *step = 0;
  i64 next = 0; /* the stride that the next axis outside must have */
  bool any = false;
  for (u32 d = rank; d-- > 0;) {
    if (dims[d] == 1) continue;
    if (!any) *step = strides[d];
    else if (strides[d] != next) return false;
    next = strides[d] * dims[d];
    any = true;
  }
  return true;
}

#define EACH_INDEX(T)                                                    \
  for (i64 k = lo; k < hi; k++) {                                        \
    i64 i = (i64)((const T *)x->data)[k * step];                         \
    i += i < 0 ? adv->size : 0;                                          \
    beyond |= (u64)i >= (u64)adv->size;                                  \
    u64 before = first ? 0 : (u64)s->places[k];                          \
    s->places[k] = (i64)(before + (u64)i * (u64)adv->stride);            \
  }                                                                      \
  return !beyond;

/* Indices lo … hi-1, which lie one step apart. False: some are out of bounds, and all is to be done again with a look
 * at each. */
static bool index_add_some(const Advanced *adv, const Selection *s, const Array *x, i64 step, bool first, i64 lo,
                           i64 hi) {
  bool beyond = false;
  switch (array_dtype(x)) {
    case DT_i64: EACH_INDEX(i64)
    case DT_i32: EACH_INDEX(i32)
    case DT_u32: EACH_INDEX(u32)
    case DT_u8: EACH_INDEX(u8)
    default: return false;
  }
}

/* The same for all of them; WEFT_ERROR: the program is to end. */
static WeftStatus index_add_each(Vm *vm, const Advanced *adv, const Selection *s, const Array *x, i64 step, bool first,
                                 bool *done) {
  *done = true;
  for (i64 lo = 0, hi; lo < s->count && *done; lo = hi) {
    if (lo && vm_look(vm) != WEFT_OK) return WEFT_ERROR;
    hi = part_end(lo, s->count, PART_PLACES);
    *done = index_add_some(adv, s, x, step, first, lo, hi);
  }
  return WEFT_OK;
}

/* Adds one index array's part to the place of every element of the broadcast index shape. */
static WeftStatus index_add_places(Vm *vm, const Advanced *adv, const Selection *s, bool first) {
  NumBox box;
  Array *x = array_of(adv->v, &box);
  u32 rank = array_rank(x), shift = s->place_rank - rank;
  i64 strides[ARRAY_MAX_RANK] = {0}, at[ARRAY_MAX_RANK] = {0}, o = 0, step;
  for (u32 d = 0; d < rank; d++) strides[shift + d] = array_dims(x)[d] == 1 ? 0 : array_strides(x)[d];
  u32 dtype = array_dtype(x), bytes = dtype_bytes(dtype);
  bool linear = linear_walk(s->place_rank, s->place_dims, strides, &step);
  bool done = false;
  if (linear && !adv->raw && index_add_each(vm, adv, s, x, step, first, &done) != WEFT_OK) return WEFT_ERROR;
  if (done) return WEFT_OK;
  for (i64 k = 0; k < s->count; k++) {
    if (!vm_item(vm, (u64)k)) return WEFT_ERROR;
    if (first) s->places[k] = 0;
    i64 i = num_load((const char *)x->data + (linear ? k * step : o) * (i64)bytes, dtype).i;
    if (adv->raw) {
      s->places[k] += i;
    } else {
      i64 wrapped = i < 0 ? i + adv->size : i;
      if (UNLIKELY(dtype == DT_u64 && i < 0))
        return vm_error(vm, EK_index, "index %llu is out of bounds for axis %u with size %lld", (unsigned long long)i,
                        adv->axis, (long long)adv->size);
      if (UNLIKELY(wrapped < 0 || wrapped >= adv->size))
        return vm_error(vm, EK_index, "index %lld is out of bounds for axis %u with size %lld", (long long)i, adv->axis,
                        (long long)adv->size);
      s->places[k] += wrapped * adv->stride;
    }
    if (linear) continue;
    for (u32 d = s->place_rank; d-- > 0;) {
      o += strides[d];
      if (++at[d] < s->place_dims[d]) break;
      o -= strides[d] * s->place_dims[d];
      at[d] = 0;
    }
  }
  return WEFT_OK;
}

static WeftStatus find_places(Builder *b) {
  Selection *s = b->s;
  ArrayType types[ARRAY_MAX_RANK], all;
  const ArrayType *list[ARRAY_MAX_RANK];
  RuleError err;
  for (u32 i = 0; i < b->adv_count; i++) {
    Value v = b->adv[i].v;
    types[i] = (ArrayType){.rank = v.kind == V_ARRAY ? (u8)array_rank(v.array) : 0};
    for (u32 d = 0; d < types[i].rank; d++) types[i].dims[d] = array_dims(v.array)[d];
    list[i] = &types[i];
  }
  if (!rule_broadcast(NULL, b->adv_count, list, &all, &err))
    return vm_error(b->vm, (ErrorKind)err.kind, "index arrays: %s", err.text);
  s->gathers = true;
  if (b->split) s->at = 0;
  s->place_rank = all.rank;
  memcpy(s->place_dims, all.dims, sizeof(i64) * all.rank);
  s->count = dims_size(all.rank, s->place_dims);
  if (s->place_rank + s->rank > ARRAY_MAX_RANK)
    return vm_error(b->vm, EK_shape, "an index gives an array of rank above %d", ARRAY_MAX_RANK);
  if (s->count < 0 || (u64)s->count > SIZE_MAX / 16) return vm_error(b->vm, EK_limit, "the index arrays are too large");
  s->places = mem_alloc(&b->vm->alloc, sizeof(i64) * (size_t)(s->count ? s->count : 1));
  if (!s->places) return vm_error_memory(b->vm);
  for (u32 i = 0; i < b->adv_count; i++)
    if (index_add_places(b->vm, &b->adv[i], s, i == 0) != WEFT_OK) return WEFT_ERROR;
  return WEFT_OK;
}

static WeftStatus build(Builder *b, const u8 *items, u32 item_count, const Value *regs) {
  u32 rank = array_rank(b->a), used = 0, ellipses = 0;
  bool beside_arrays = false;
  for (u32 i = 0, r = 0; i < item_count; i++) {
    if (items[i] == IX_ELLIPSIS) ellipses++;
    used += items[i] == IX_SLICE;
    if (items[i] == IX_VALUE) {
      Value v = value_untracked(regs[r]);
      bool mask = v.kind == V_ARRAY && v.dtype == DT_bool;
      bool condition = v.kind == V_NUM && v.dtype == DT_bool;
      used += mask ? array_rank(v.array) : !condition;
      beside_arrays |= v.kind == V_ARRAY || condition;
    }
    r += items[i] == IX_VALUE ? 1 : items[i] == IX_SLICE ? 3 : 0;
  }
  if (ellipses > 1) return vm_error(b->vm, EK_index, "an index holds … twice");
  const i64 *dims = array_dims(b->a), *strides = array_strides(b->a);
  for (u32 i = 0; i < item_count; i++) {
    switch (items[i]) {
      case IX_VALUE:
        if (add_value(b, *regs++, beside_arrays) != WEFT_OK) return WEFT_ERROR;
        break;
      case IX_SLICE: {
        if (b->axis >= rank) {
          char shape[96];
          describe_shape(dims, rank, shape, sizeof shape);
          return vm_error(b->vm, EK_index, "too many indices for an array of shape %s", shape);
        }
        i64 start, count, step;
        if (index_slice(b->vm, regs, dims[b->axis], &start, &count, &step) != WEFT_OK) return WEFT_ERROR;
        b->s->offset += start * strides[b->axis];
        if (add_axis(b, count, count > 1 ? step * strides[b->axis] : strides[b->axis]) != WEFT_OK) return WEFT_ERROR;
        b->axis++;
        regs += 3;
        break;
      }
      case IX_NEWAXIS:
        if (add_axis(b, 1, 0) != WEFT_OK) return WEFT_ERROR;
        break;
      default: { /* the axes that no item takes */
        u32 skip = used < rank ? rank - used : 0;
        for (u32 k = 0; k < skip; k++, b->axis++)
          if (add_axis(b, dims[b->axis], strides[b->axis]) != WEFT_OK) return WEFT_ERROR;
        if (!skip && b->adv_count) b->after = true; /* it separates even when it stands for no axis */
        break;
      }
    }
  }
  for (; b->axis < rank; b->axis++)
    if (add_axis(b, dims[b->axis], strides[b->axis]) != WEFT_OK) return WEFT_ERROR;
  return b->has_array ? find_places(b) : WEFT_OK;
}

WeftStatus selection_make(Vm *vm, Array *a, const u8 *items, u32 item_count, const Value *regs, Selection *out) {
  out->rank = 0;
  out->offset = 0;
  out->gathers = false;
  out->at = out->place_rank = 0;
  out->count = 0;
  out->places = NULL;
  if (item_count > MAX_ITEMS) return vm_error(vm, EK_index, "an index of more than %d items", MAX_ITEMS);
  Builder b; /* adv stays uninitialised: it is large */
  b.vm = vm;
  b.a = a;
  b.s = out;
  b.adv_count = b.axis = 0;
  b.has_array = b.split = b.after = false;
  WeftStatus status = build(&b, items, item_count, regs);
  for (u32 i = 0; i < b.adv_count; i++)
    if (b.adv[i].owned) value_drop(vm, b.adv[i].v);
  if (status != WEFT_OK) selection_free(vm, out);
  return status;
}

void selection_free(Vm *vm, Selection *s) {
  if (s->places) mem_free(&vm->alloc, s->places, sizeof(i64) * (size_t)(s->count ? s->count : 1));
  s->places = NULL;
}

u32 selection_dims(const Selection *s, i64 *dims) {
  memcpy(dims, s->dims, sizeof(i64) * s->at);
  memcpy(dims + s->at, s->place_dims, sizeof(i64) * s->place_rank);
  memcpy(dims + s->at + s->place_rank, s->dims + s->at, sizeof(i64) * (s->rank - s->at));
  return s->rank + s->place_rank;
}

/* ---- gathering -------------------------------------------------------------------------------- */

#define GATHER(T)                                                          \
  {                                                                        \
    T *d = to;                                                             \
    const T *f = (const T *)(const void *)from;                            \
    for (i64 k = lo; k < hi; k++) d[k] = f[s->places[k]];                  \
  }

static WeftStatus gather(Vm *vm, Array *a, const Selection *s, Value *out) {
  ARRAY_HERE(a);
  i64 dims[ARRAY_MAX_RANK];
  u32 rank = selection_dims(s, dims), bytes = dtype_bytes(array_dtype(a));
  if (array_new(vm, array_dtype(a), rank, dims, out) != WEFT_OK) return WEFT_ERROR;
  Array *r = out->array;
  void *to = r->data;
  const char *from = (const char *)a->data + s->offset * (i64)bytes;
  if (r->size == 0) return WEFT_OK;
  for (i64 lo = 0; lo < s->count && s->rank == 0; lo += PART_PLACES) {
    const i64 hi = part_end(lo, s->count, PART_PLACES);
    if (lo && vm_poll(vm, 0) != WEFT_OK) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
    switch (bytes) {
      case 1: GATHER(u8) break;
      case 2: GATHER(u16) break;
      case 4: GATHER(u32) break;
      case 8: GATHER(u64) break;
      default:
        for (i64 k = lo; k < hi; k++) memcpy((char *)to + k * bytes, from + s->places[k] * bytes, bytes);
        break;
    }
  }
  if (s->rank == 0) return WEFT_OK;
  /* One block of the view's axes for every place. */
  i64 block[ARRAY_MAX_RANK], step = 1;
  memcpy(block, array_strides(r), sizeof(i64) * s->at);
  memcpy(block + s->at, array_strides(r) + s->at + s->place_rank, sizeof(i64) * (s->rank - s->at));
  for (u32 d = s->at; d < s->rank; d++) step *= s->dims[d];
  for (i64 k = 0, since = 0; k < s->count; k++) {
    bool ok = (since += step) < PART_PLACES || vm_look(vm) == WEFT_OK;
    if (since >= PART_PLACES) since = 0;
    ok = ok && strided_copy_polled(vm, bytes, s->rank, s->dims, (char *)to + k * step * (i64)bytes, block,
                                   from + s->places[k] * (i64)bytes, s->strides) == WEFT_OK;
    if (ok) continue;
    value_drop(vm, *out);
    return WEFT_ERROR;
  }
  return WEFT_OK;
}

static WeftStatus index_array(Vm *vm, Value obj, const u8 *items, u32 item_count, const Value *regs, Value *out);

bool index_has_device_places(const Array *a, const u8 *items, u32 item_count, const Value *regs) {
  for (u32 i = 0; i < item_count; i++) {
    if (items[i] == IX_VALUE && regs->kind == V_ARRAY && array_rank(regs->array) > 0 &&
        (array_device(a) != DEV_CPU || array_device(regs->array) != DEV_CPU))
      return true;
    regs += index_register_count(&items[i], 1);
  }
  return false;
}

WeftStatus index_taken_to(Vm *vm, Value v, u32 device, Value *out) {
  const char *name = vm->device_names[device];
  Value where;
  *out = value_hole();
  if (v.kind != V_ARRAY || array_device(v.array) == device || (device != DEV_CPU && array_rank(v.array) == 0)) {
    *out = value_keep(v);
    return WEFT_OK;
  }
  if (!text_new(vm, name, strlen(name), &where)) return WEFT_ERROR;
  WeftStatus status = on_device(vm, OP_to, value_keep(v), where, value_hole(), out);
  value_drop(vm, where);
  return status;
}

/* The processor does it: arrays come there, and the result goes back. */
static WeftStatus index_by_processor(Vm *vm, Value obj, const u8 *items, u32 item_count, const Value *regs,
                                     Value *out) {
  u32 count = index_register_count(items, item_count), made = 0;
  Value *here = mem_alloc(&vm->alloc, sizeof *here * (count + 1)), result = value_hole();
  if (!here) return vm_error_memory(vm);
  WeftStatus status = index_taken_to(vm, obj, DEV_CPU, &here[made]);
  for (made++; made <= count && status == WEFT_OK; made++)
    status = index_taken_to(vm, regs[made - 1], DEV_CPU, &here[made]);
  if (status == WEFT_OK) status = index_array(vm, here[0], items, item_count, here + 1, &result);
  for (u32 i = 0; i < made; i++) value_drop(vm, here[i]);
  mem_free(&vm->alloc, here, sizeof *here * (count + 1));
  if (status != WEFT_OK) return status;
  status = index_taken_to(vm, result, array_device(obj.array), out);
  value_drop(vm, result);
  return status;
}

/* What an array on a device is indexed by lies elsewhere: it is taken there. */
static WeftStatus index_places_there(Vm *vm, Value obj, const u8 *items, Value places, Value *out) {
  Value there;
  if (index_taken_to(vm, places, array_device(obj.array), &there) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = index_array(vm, obj, items, 1, &there, out);
  value_drop(vm, there);
  return status;
}

static WeftStatus index_array(Vm *vm, Value obj, const u8 *items, u32 item_count, const Value *regs, Value *out) {
  NumBox box;
  Array *a = array_of(obj, &box);
  Selection s;
  if (UNLIKELY(array_device(a) != DEV_CPU) && item_count == 1 && items[0] == IX_VALUE && regs[0].kind == V_ARRAY &&
      array_rank(regs[0].array) > 0 && array_device(regs[0].array) != array_device(a))
    return index_places_there(vm, obj, items, regs[0], out);
  if (is_whole_mask(a, items, item_count, regs)) return compress_whole(vm, a, regs[0].array, out);
  if (index_is_device_mask(a, items, item_count, regs)) return compress_on_device(vm, obj, regs[0], out);
  if (is_device_gather(a, items, item_count, regs))
    return on_device(vm, OP_take, value_keep(obj), regs[0], value_i64(0), out);
  if (index_has_device_places(a, items, item_count, regs))
    return index_by_processor(vm, obj, items, item_count, regs, out);
  if (picks_elements(a, items, item_count, regs)) {
    bool done;
    WeftStatus status = pick_elements(vm, a, regs[0].array, &done, out);
    if (done) return status;
  }
  if (selection_make(vm, a, items, item_count, regs, &s) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = WEFT_OK;
  if (s.gathers) {
    status = gather(vm, a, &s, out);
    if (status == WEFT_OK) *out = array_finish(vm, *out);
  } else if (s.rank == 0 && array_device(a) == DEV_CPU && array_dtype(a) != DT_c128) {
    *out = array_load(a, s.offset);
  } else if (obj.kind == V_NUM) {
    i64 ones[ARRAY_MAX_RANK];
    for (u32 d = 0; d < s.rank; d++) ones[d] = 1;
    status = array_new(vm, obj.dtype, s.rank, ones, out);
    if (status == WEFT_OK) num_store(out->array->data, obj.dtype, obj);
  } else {
    Value view;
    status = array_view(vm, a, s.offset, s.rank, s.dims, s.strides, &view);
    if (status == WEFT_OK) status = array_settle(vm, view, out);
  }
  selection_free(vm, &s);
  return status;
}

/* ---- lists, text, ranges, records -------------------------------------------------------------- */

static WeftStatus part_of_list(Vm *vm, List *l, i64 start, i64 count, i64 step, Value *out) {
  if (!list_boxed(vm, l) || !list_new(vm, (u32)count, out)) return WEFT_ERROR;
  for (i64 i = 0; i < count; i++) {
    out->list->items[i] = value_keep(l->items[start + i * step]);
    out->list->count = (u32)i + 1;
    if (vm_item(vm, (u64)i)) continue;
    value_drop(vm, *out);
    return WEFT_ERROR;
  }
  return WEFT_OK;
}

/* Items of a list at the positions, or where the mask, of an array of rank 1. */
static WeftStatus items_at(Vm *vm, List *l, Array *at, Value *out) {
  const bool mask = array_dtype(at) == DT_bool;
  const bool numbers = mask || !at->size || dtype_kind(array_dtype(at)) == DK_INT;
  if (array_rank(at) != 1 || array_device(at) != DEV_CPU || !numbers)
    return vm_error(vm, EK_index, "a list is indexed by integers or a mask of rank 1, got an array of %s and rank %u",
                    dtype_name(array_dtype(at)), array_rank(at));
  if (mask && at->size != l->count)
    return vm_error(vm, EK_index, "a mask of %lld elements does not fit a list of %u items", (long long)at->size,
                    l->count);
  if (!list_boxed(vm, l) || !list_new(vm, 8, out)) return WEFT_ERROR;
  for (i64 k = 0; k < at->size; k++) {
    Value v = array_load(at, k * array_strides(at)[0]);
    i64 i = k;
    bool ok = vm_item(vm, (u64)k) && (mask || index_integer(vm, v, l->count, "a list", &i) == WEFT_OK);
    if (ok && mask && !v.i) continue;
    if (!ok || !list_push(vm, out, value_keep(l->items[i]))) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

static WeftStatus index_sequence(Vm *vm, Value obj, const u8 *items, const Value *regs, Value *out) {
  i64 size = obj.kind == V_LIST ? obj.list->count : obj.kind == V_TEXT ? obj.text->count : (i64)range_count(obj.range);
  const char *what = obj.kind == V_LIST ? "a list" : obj.kind == V_TEXT ? "a text" : "a range";
  i64 start, count, step, i;
  if (items[0] == IX_SLICE) {
    if (index_slice(vm, regs, size, &start, &count, &step) != WEFT_OK) return WEFT_ERROR;
  } else if (items[0] == IX_VALUE && regs[0].kind == V_RANGE) {
    index_range(regs[0].range, size, &start, &count, &step);
  } else if (items[0] == IX_VALUE && obj.kind == V_LIST && value_untracked(regs[0]).kind == V_ARRAY) {
    return items_at(vm, obj.list, value_untracked(regs[0]).array, out);
  } else if (items[0] == IX_VALUE) {
    if (index_integer(vm, regs[0], size, what, &i) != WEFT_OK) return WEFT_ERROR;
    if (obj.kind == V_LIST && list_is_packed(obj.list))
      return packed_item(vm, obj.list, (u32)i, out) ? WEFT_OK : WEFT_ERROR;
    if (obj.kind == V_LIST) *out = value_keep(obj.list->items[i]);
    else if (obj.kind == V_RANGE) *out = value_weak_i64((i64)((u64)obj.range->start + (u64)i * (u64)obj.range->step));
    else return text_slice(vm, obj, i, i + 1, 1, out) ? WEFT_OK : WEFT_ERROR;
    return WEFT_OK;
  } else {
    return vm_error(vm, EK_type, "%s is indexed by an integer, a slice or a range", what);
  }
  if (count < 2) step = 1; /* it leads nowhere, and may be too large to add */
  if (obj.kind == V_LIST) return part_of_list(vm, obj.list, start, count, step, out);
  if (obj.kind == V_TEXT) return text_slice(vm, obj, start, start + count * step, step, out) ? WEFT_OK : WEFT_ERROR;
  i64 first = (i64)((u64)obj.range->start + (u64)start * (u64)obj.range->step), behind;
  i64 by = (i64)((u64)step * (u64)obj.range->step);
  if (__builtin_mul_overflow(count, by, &behind) || __builtin_add_overflow(first, behind, &behind))
    behind = (i64)((u64)first + (u64)(count - 1) * (u64)by + (by < 0 ? -(u64)1 : 1)); /* next to the last */
  return range_new(vm, first, behind, by, out) ? WEFT_OK : WEFT_ERROR;
}

static WeftStatus index_record(Vm *vm, Value obj, Value key, Value *out) {
  if (key.kind != V_TEXT) return vm_error(vm, EK_type, "the keys of a record are text, got %s", value_type_name(key));
  Value *at = record_at(vm, obj.record, key.text);
  if (!at) return vm_error(vm, EK_key, "the record has no key '%s'", key.text->data);
  *out = value_keep(*at);
  return WEFT_OK;
}

WeftStatus vm_index(Vm *vm, Value obj, const u8 *items, u32 item_count, const Value *regs, Value *out) {
  if (obj.kind == V_TRACKED && vm->tape) {
    Desc d = {.kind = DESC_INDEX, .item_count = item_count, .items = items};
    return vm->tape->index(vm, obj, &d, regs, out);
  }
  if (value_is_numeric(obj)) return index_array(vm, obj, items, item_count, regs, out);
  if (item_count != 1)
    return vm_error(vm, EK_index, "%s has one axis, the index has %u items", value_type_name(obj), item_count);
  switch (obj.kind) {
    case V_LIST:
    case V_TEXT:
    case V_RANGE: return index_sequence(vm, obj, items, regs, out);
    case V_RECORD:
      if (items[0] == IX_VALUE) return index_record(vm, obj, regs[0], out);
      return vm_error(vm, EK_type, "the keys of a record are text");
    default: return vm_error(vm, EK_type, "cannot index %s", value_type_name(obj));
  }
}
