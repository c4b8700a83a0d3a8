/* array.c — arrays, views, storage and single elements (see array.h). */
#include "vm/array.h"

#include <string.h>

#include "lang/halves.h"
#include "vm/alloc.h"

/* ---- geometry --------------------------------------------------------------------------------- */

i64 dims_size(u32 rank, const i64 *dims) {
  i64 size = 1;
  bool empty = false, over = false;
  for (u32 d = 0; d < rank; d++) {
    if (dims[d] < 0 || dims[d] >= ARRAY_MAX_SIZE) return -1;
    if (dims[d] == 0) empty = true;
    else over |= __builtin_mul_overflow(size, dims[d], &size) || size >= ARRAY_MAX_SIZE;
    if (over) size = 1;
  }
  return empty ? 0 : over ? -1 : size;
}

u32 layout_of(u32 rank, const i64 *dims, const i64 *strides) {
  i64 want = 1;
  bool dense = true, broadcast = false, seen = false, rows = true;
  for (u32 d = rank; d-- > 0;) {
    if (dims[d] == 1) continue;
    if (dims[d] == 0) return LAY_DENSE;
    if (strides[d] == 0) broadcast = true;
    if (!seen && strides[d] != 1) rows = false;
    seen = true;
    if (strides[d] != want) dense = false;
    want = (i64)((u64)want * (u64)dims[d]);
  }
  return dense ? LAY_DENSE : broadcast ? LAY_BROADCAST : rows ? LAY_ROWS : LAY_STRIDED;
}

void dense_strides(u32 rank, const i64 *dims, i64 *strides) {
  i64 n = 1;
  for (u32 d = rank; d-- > 0;) {
    strides[d] = n;
    n = (i64)((u64)n * (u64)(dims[d] > 0 ? dims[d] : 1)); /* of no elements it may wrap */
  }
}

/* Can two indices name one element? Sorted by stride, each axis must step over all inner ones. */
static bool overlaps(u32 rank, const i64 *dims, const i64 *strides) {
  u64 step[ARRAY_MAX_RANK], size[ARRAY_MAX_RANK];
  u32 n = 0;
  for (u32 d = 0; d < rank; d++) {
    if (dims[d] == 0) return false;
    if (dims[d] == 1) continue;
    u64 s = strides[d] < 0 ? 0 - (u64)strides[d] : (u64)strides[d];
    u32 k = n++;
    for (; k > 0 && step[k - 1] > s; k--) {
      step[k] = step[k - 1];
      size[k] = size[k - 1];
    }
    step[k] = s;
    size[k] = (u64)dims[d];
  }
  u64 reach = 0; /* largest offset of the axes so far */
  for (u32 k = 0; k < n; k++) {
    if (step[k] <= reach) return true;
    reach += (size[k] - 1) * step[k];
  }
  return false;
}

/* ---- making ----------------------------------------------------------------------------------- */

static size_t head_bytes(u32 rank) { return (sizeof(Array) + 2 * sizeof(i64) * rank + 15) & ~(size_t)15; }

static size_t whole_bytes(const Array *a) { /* of the array's own allocation */
  size_t n = head_bytes(array_rank(a));
  return a->owner ? n : n + (size_t)a->size * dtype_bytes(array_dtype(a));
}

static WeftStatus bad_dims(Vm *vm, u32 dtype, u32 rank, const i64 *dims) {
  if (rank > ARRAY_MAX_RANK)
    return vm_error(vm, EK_shape, "an array of rank %u: the highest rank is %d", rank, ARRAY_MAX_RANK);
  for (u32 d = 0; d < rank; d++)
    if (dims[d] < 0) return vm_error(vm, EK_value, "a size is negative: %lld", (long long)dims[d]);
  if (dims_size(rank, dims) < 0) return vm_error(vm, EK_value, "an array has fewer than 2 ** 62 elements");
  vm->refused_by_limit = false;
  return vm_error_array(vm, dtype, rank, dims);
}

/* Large arrays begin at different places of a page: a load seems to need an earlier store whose address has the same
 * low 12 bits. */
static Storage *new_storage(Vm *vm, size_t bytes) {
  enum { PAGE = 4096, APART = 17 * STORAGE_ALIGN };
  size_t whole, large = bytes >= KEEP_LEAST;
  Storage *s = keep_alloc(vm, sizeof(Storage) + STORAGE_ALIGN + large * PAGE + bytes, &whole);
  if (!s) return NULL;
  uintptr_t data = ((uintptr_t)(s + 1) + large * (vm->kept.now * APART % PAGE) + STORAGE_ALIGN - 1) &
                   ~(uintptr_t)(STORAGE_ALIGN - 1);
  *s = (Storage){.head = {1, 0}, .bytes = whole, .data = (void *)data, .device = DEV_CPU};
  return s;
}

static Storage *new_device_storage(Vm *vm, u32 device, size_t bytes) {
  Storage *s = mem_alloc(&vm->alloc, sizeof *s);
  if (!s) {
    (void)vm_error_memory(vm);
    return NULL;
  }
  *s = (Storage){.head = {1, 0}, .bytes = bytes, .device = device};
  if (vm->devices[device]->alloc(vm, bytes, &s->data) == WEFT_OK) return s;
  mem_free(&vm->alloc, s, sizeof *s);
  return NULL;
}

void storage_drop(Vm *vm, Storage *s) {
  if (s->head.flags & STORAGE_SHARED) {
    if (__atomic_sub_fetch(&s->head.refs, 1, __ATOMIC_ACQ_REL)) return;
  } else if (--s->head.refs) {
    return;
  }
  if (s->head.flags & STORAGE_EXTERNAL) {
    if (s->release) s->release(s->release_ctx, s->data, s->bytes);
    mem_free(&vm->alloc, s, sizeof *s);
  } else if (s->device != DEV_CPU) {
    if (vm->devices[s->device]) vm->devices[s->device]->free(vm, s->data, s->bytes);
    mem_free(&vm->alloc, s, sizeof *s);
  } else {
    keep_free(vm, s, s->bytes);
  }
}

static void keep_owner(Array *a) {
  Obj *o = a->owner;
  if (!(a->head.flags & ARRAY_OWNER_ARRAY) && (o->flags & STORAGE_SHARED))
    __atomic_add_fetch(&o->refs, 1, __ATOMIC_RELAXED);
  else o->refs++;
}

static void set_value(Value *out, Array *a) {
  *out = (Value){.kind = V_ARRAY, .dtype = (u8)array_dtype(a), .flags = VF_COUNTED, .array = a};
}

WeftStatus array_new_on(Vm *vm, u32 device, u32 dtype, u32 rank, const i64 *dims, Value *out) {
  i64 size = rank <= ARRAY_MAX_RANK ? dims_size(rank, dims) : -1;
  if (UNLIKELY(size < 0)) return bad_dims(vm, dtype, rank, dims);
  size_t head = head_bytes(rank), bytes;
  if (UNLIKELY(__builtin_mul_overflow((size_t)size, (size_t)dtype_bytes(dtype), &bytes) || bytes > PTRDIFF_MAX / 2))
    return bad_dims(vm, dtype, rank, dims);
  bool inside = bytes <= ARRAY_INLINE_MAX && device == DEV_CPU && !vm->array_room;
  Array *a = obj_alloc(vm, inside ? head + bytes : head);
  if (UNLIKELY(!a)) return vm_error_memory(vm);
  a->head = (Obj){1, 0};
  a->tag = ARRAY_TAG(dtype, rank, device, LAY_DENSE);
  a->size = size;
  a->owner = NULL;
  a->data = (char *)a + head;
  i64 n = 1;
  for (u32 d = rank; d-- > 0;) {
    a->geometry[d] = dims[d];
    a->geometry[rank + d] = n;
    n = (i64)((u64)n * (u64)(dims[d] > 0 ? dims[d] : 1)); /* of no elements it may wrap */
  }
  vm->stats.array_allocs++;
  if (!inside) {
    if (device != DEV_CPU) {
      a->storage = new_device_storage(vm, device, bytes);
    } else {
      a->storage = new_storage(vm, bytes + vm->array_room);
      if (!a->storage) (void)vm_error_array(vm, dtype, rank, dims);
    }
    if (!a->storage) {
      obj_free(vm, a, head);
      return WEFT_ERROR;
    }
    a->data = a->storage->data;
  }
  set_value(out, a);
  return WEFT_OK;
}

/* Dense on the processor, with all of its elements inside: what is made most. */
static inline __attribute__((always_inline)) WeftStatus new_inside(Vm *vm, u32 dtype, u32 rank, const i64 *dims,
                                                                   i64 size, size_t bytes, Value *out) {
  size_t head = head_bytes(rank);
  Array *a = obj_alloc(vm, head + bytes);
  if (UNLIKELY(!a)) return vm_error_memory(vm);
  a->head = (Obj){1, 0};
  a->tag = ARRAY_TAG(dtype, rank, DEV_CPU, LAY_DENSE);
  a->size = size;
  a->owner = NULL;
  a->data = (char *)a + head;
  i64 n = 1;
  for (u32 d = rank; d-- > 0;) {
    a->geometry[d] = dims[d];
    a->geometry[rank + d] = n;
    if (d) n = (i64)((u64)n * (u64)(dims[d] > 0 ? dims[d] : 1));
  }
  vm->stats.array_allocs++;
  *out = (Value){.kind = V_ARRAY, .dtype = (u8)dtype, .flags = VF_COUNTED, .array = a};
  return WEFT_OK;
}

WeftStatus array_new(Vm *vm, u32 dtype, u32 rank, const i64 *dims, Value *out) {
  if (LIKELY(rank == 1 && (u64)dims[0] <= ARRAY_INLINE_MAX)) {
    size_t bytes = (size_t)dims[0] * dtype_bytes(dtype);
    if (LIKELY(bytes <= ARRAY_INLINE_MAX)) return new_inside(vm, dtype, 1, dims, dims[0], bytes, out);
  }
  return array_new_on(vm, DEV_CPU, dtype, rank, dims, out);
}

WeftStatus array_new_like(Vm *vm, u32 dtype, const Array *like, Value *out) {
  u32 rank = array_rank(like);
  size_t bytes = (size_t)like->size * dtype_bytes(dtype);
  if (LIKELY(like->size <= ARRAY_INLINE_MAX && bytes <= ARRAY_INLINE_MAX))
    return rank == 1 ? new_inside(vm, dtype, 1, like->geometry, like->size, bytes, out)
                     : new_inside(vm, dtype, rank, like->geometry, like->size, bytes, out);
  return array_new_on(vm, DEV_CPU, dtype, rank, like->geometry, out);
}

WeftStatus array_new_zero(Vm *vm, u32 dtype, u32 rank, const i64 *dims, Value *out) {
  if (array_new(vm, dtype, rank, dims, out) != WEFT_OK) return WEFT_ERROR;
  enum { PART = 1 << 21 }; /* bytes between two looks at the clock: fresh pages take the time */
  char *data = out->array->data;
  const i64 bytes = out->array->size * (i64)dtype_bytes(dtype);
  for (i64 at = 0; at < bytes; at += PART) {
    if (at && vm_poll(vm, 0) != WEFT_OK) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
    memset(data + at, 0, (size_t)(bytes - at < PART ? bytes - at : PART));
  }
  return WEFT_OK;
}

WeftStatus array_view(Vm *vm, Array *of, i64 offset, u32 rank, const i64 *dims, const i64 *strides, Value *out) {
  i64 size = rank <= ARRAY_MAX_RANK ? dims_size(rank, dims) : -1;
  if (UNLIKELY(size < 0)) return bad_dims(vm, array_dtype(of), rank, dims);
  size_t head = head_bytes(rank);
  Array *a = obj_alloc(vm, head);
  if (UNLIKELY(!a)) return vm_error_memory(vm);
  u32 layout = layout_of(rank, dims, strides);
  a->head = (Obj){1, of->owner ? of->head.flags & ARRAY_OWNER_ARRAY : ARRAY_OWNER_ARRAY};
  a->tag = ARRAY_TAG(array_dtype(of), rank, array_device(of), layout);
  a->size = size;
  a->data = (char *)of->data + offset * (i64)dtype_bytes(array_dtype(of));
  a->owner = of->owner ? of->owner : &of->head;
  keep_owner(a);
  for (u32 d = 0; d < rank; d++) {
    a->geometry[d] = dims[d];
    a->geometry[rank + d] = strides[d];
  }
  if (layout != LAY_DENSE && rank > 1 && overlaps(rank, dims, strides)) a->head.flags |= ARRAY_OVERLAPS;
  set_value(out, a);
  return WEFT_OK;
}

WeftStatus array_external(Vm *vm, u32 dtype, u32 rank, const i64 *dims, const i64 *strides, void *data, size_t bytes,
                          void (*release)(void *, void *, size_t), void *release_ctx, Value *out) {
  i64 size = rank <= ARRAY_MAX_RANK ? dims_size(rank, dims) : -1;
  if (size < 0) return bad_dims(vm, dtype, rank, dims);
  size_t head = head_bytes(rank);
  Array *a = obj_alloc(vm, head);
  Storage *s = a ? mem_alloc(&vm->alloc, sizeof *s) : NULL;
  if (!s) {
    if (a) obj_free(vm, a, head);
    return vm_error_memory(vm);
  }
  *s = (Storage){.head = {1, STORAGE_SHARED | STORAGE_EXTERNAL}, .bytes = bytes, .data = data, .device = DEV_CPU,
                 .release = release, .release_ctx = release_ctx};
  i64 *dense = a->geometry + rank;
  for (u32 d = 0; d < rank; d++) a->geometry[d] = dims[d];
  if (strides) memcpy(dense, strides, sizeof *strides * rank);
  else dense_strides(rank, dims, dense);
  a->head = (Obj){1, 0};
  a->tag = ARRAY_TAG(dtype, rank, DEV_CPU, layout_of(rank, dims, dense));
  a->size = size;
  a->data = data;
  a->storage = s;
  set_value(out, a);
  return WEFT_OK;
}

void array_destroy(Vm *vm, Array *a) {
  size_t bytes = whole_bytes(a);
  if (a->owner) {
    if (!(a->head.flags & ARRAY_OWNER_ARRAY)) storage_drop(vm, a->storage);
    else if (--a->base->head.refs == 0) array_destroy(vm, a->base); /* a base owns its data: no deeper */
  }
  obj_free(vm, a, bytes);
}

/* ---- updating in place ------------------------------------------------------------------------ */

bool array_writable(const Array *a) {
  if (a->head.refs != 1 || (a->head.flags & ARRAY_OVERLAPS) || array_layout(a) == LAY_BROADCAST) return false;
  return !a->owner ||
         (a->owner->refs == 1 && ((a->head.flags & ARRAY_OWNER_ARRAY) || !(a->owner->flags & STORAGE_SHARED)));
}

/* All that a view reaches is copied, then picked from. */
WeftStatus array_from_device(Vm *vm, Array *a, Value *out) {
  const DeviceHooks *hooks = vm->devices[array_device(a)];
  i64 low = 0, high = 1, bytes = dtype_bytes(array_dtype(a)), count;
  Value whole, view;
  if (!hooks) return vm_error(vm, EK_unsupported, "not supported: an array on a device that is not there");
  if (a->size == 0) return array_new(vm, array_dtype(a), array_rank(a), array_dims(a), out);
  for (u32 d = 0; d < array_rank(a); d++) {
    i64 last = (array_dims(a)[d] - 1) * array_strides(a)[d];
    if (last < 0) low += last;
    else high += last;
  }
  count = high - low;
  if (array_new(vm, array_dtype(a), 1, &count, &whole) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = hooks->to_host(vm, (char *)a->data + low * bytes, whole.array->data, (size_t)(count * bytes));
  if (status == WEFT_OK)
    status = array_view(vm, whole.array, -low, array_rank(a), array_dims(a), array_strides(a), &view);
  value_drop(vm, whole);
  if (status != WEFT_OK) return status;
  status = array_make_dense(vm, view, out);
  value_drop(vm, view);
  return status;
}

/* By way of the processor: a device moves bytes, not elements. */
static WeftStatus copy_on_device(Vm *vm, Array *a, Value *out) {
  Value here;
  if (array_from_device(vm, a, &here) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = array_new_on(vm, array_device(a), array_dtype(a), array_rank(a), array_dims(a), out);
  size_t bytes = (size_t)a->size * dtype_bytes(array_dtype(a));
  if (status == WEFT_OK && bytes) {
    status = vm->devices[array_device(a)]->from_host(vm, here.array->data, out->array->data, bytes);
    if (status != WEFT_OK) value_drop(vm, *out);
  }
  value_drop(vm, here);
  return status;
}

WeftStatus array_copy(Vm *vm, Array *a, Value *out) {
  u32 dtype = array_dtype(a), rank = array_rank(a);
  if (array_device(a) != DEV_CPU) return copy_on_device(vm, a, out);
  if (array_new(vm, dtype, rank, array_dims(a), out) != WEFT_OK) return WEFT_ERROR;
  Array *b = out->array;
  if (a->size)
    strided_copy(vm, dtype_bytes(dtype), rank, array_dims(b), b->data, array_strides(b), a->data, array_strides(a));
  return WEFT_OK;
}

static WeftStatus copy_polled(Vm *vm, Array *a, Value *out) {
  u32 dtype = array_dtype(a), rank = array_rank(a);
  if (array_device(a) != DEV_CPU || a->size <= PART_PLACES) return array_copy(vm, a, out);
  if (array_new(vm, dtype, rank, array_dims(a), out) != WEFT_OK) return WEFT_ERROR;
  Array *b = out->array;
  WeftStatus status = strided_copy_polled(vm, dtype_bytes(dtype), rank, array_dims(b), b->data, array_strides(b),
                                          a->data, array_strides(a));
  if (status != WEFT_OK) value_drop(vm, *out);
  return status;
}

WeftStatus array_make_unique(Vm *vm, Value *v) {
  Value fresh;
  if (v->kind == V_NUM) {
    if (array_new(vm, v->dtype, 0, NULL, &fresh) != WEFT_OK) return WEFT_ERROR;
    num_store(fresh.array->data, v->dtype, *v);
    *v = fresh;
    return WEFT_OK;
  }
  if (array_writable(v->array)) return WEFT_OK;
  if (copy_polled(vm, v->array, &fresh) != WEFT_OK) return WEFT_ERROR;
  vm->stats.array_copies++;
  if (vm->on_copy) vm->on_copy(vm);
  value_drop(vm, *v);
  *v = fresh;
  return WEFT_OK;
}

WeftStatus array_make_dense(Vm *vm, Value v, Value *out) {
  if (v.kind == V_NUM) {
    if (array_new(vm, v.dtype, 0, NULL, out) != WEFT_OK) return WEFT_ERROR;
    num_store(out->array->data, v.dtype, v);
    return WEFT_OK;
  }
  if (!array_dense(v.array)) return copy_polled(vm, v.array, out);
  *out = value_keep(v);
  return WEFT_OK;
}

/* ---- single elements -------------------------------------------------------------------------- */

Value num_load(const void *at, u32 dtype) {
  Value v = {.kind = V_NUM, .dtype = (u8)dtype};
  switch (dtype) {
    case DT_bool:
    case DT_u8: v.i = *(const u8 *)at; break;
    case DT_i32: v.i = *(const i32 *)at; break;
    case DT_u32: v.u = *(const u32 *)at; break;
    case DT_f32: memcpy(&v.s, at, sizeof v.s); break;
    default:
      if (dtype_is_half(dtype)) v.s = half_load(dtype, *(const u16 *)at);
      else memcpy(&v.bits, at, 8);
      break;
  }
  return v;
}

void num_store(void *at, u32 dtype, Value v) {
  switch (dtype_bytes(dtype)) {
    case 1: *(u8 *)at = (u8)v.u; break;
    case 2: *(u16 *)at = half_store(dtype, v.s); break;
    case 4: *(u32 *)at = (u32)v.u; break;
    default: memcpy(at, &v.bits, 8); break;
  }
}

WeftStatus value_complex(Vm *vm, u32 dtype, f64 re, f64 im, bool weak, Value *out) {
  if (dtype == DT_c64) {
    *out = (Value){.kind = V_NUM, .dtype = DT_c64, .flags = weak ? VF_WEAK : 0};
    out->z[0] = (f32)re;
    out->z[1] = (f32)im;
    return WEFT_OK;
  }
  if (array_new(vm, DT_c128, 0, NULL, out) != WEFT_OK) return WEFT_ERROR;
  memcpy(out->array->data, (f64[2]){re, im}, 16);
  if (weak) out->flags |= VF_WEAK;
  return WEFT_OK;
}

void num_parts(Value v, f64 *re, f64 *im) {
  *im = 0;
  if (v.kind == V_NUM && v.dtype == DT_c64) {
    *re = v.z[0];
    *im = v.z[1];
  } else if (v.kind == V_ARRAY) {
    memcpy(re, v.array->data, 8);
    memcpy(im, (const f64 *)v.array->data + 1, 8);
  } else {
    *re = num_as_f64(v);
  }
}

void num_store_as(void *at, u32 dtype, Value v) {
  f64 parts[2];
  if (dtype == DT_c64 && v.kind == V_ARRAY) {
    num_parts(v, &parts[0], &parts[1]);
    memcpy(at, (f32[2]){(f32)parts[0], (f32)parts[1]}, 8);
  } else if (dtype == DT_c128) {
    num_parts(v, &parts[0], &parts[1]);
    memcpy(at, parts, 16);
  } else {
    num_store(at, dtype, num_convert_unchecked(v, dtype));
  }
}

Value array_load(const Array *a, i64 at) {
  ARRAY_HERE(a);
  u32 dtype = array_dtype(a);
  return num_load((const char *)a->data + at * (i64)dtype_bytes(dtype), dtype);
}

Value array_finish(Vm *vm, Value v) {
  if (v.kind != V_ARRAY || array_rank(v.array) || array_device(v.array) != DEV_CPU || v.dtype == DT_c128) return v;
  Value n = array_load(v.array, 0);
  value_drop(vm, v);
  return n;
}

WeftStatus array_settle(Vm *vm, Value v, Value *out) {
  *out = v;
  if (v.kind != V_ARRAY || array_rank(v.array)) return WEFT_OK;
  if (array_device(v.array) != DEV_CPU) {
    WeftStatus status = array_from_device(vm, v.array, out);
    value_drop(vm, v);
    if (status != WEFT_OK) {
      *out = value_hole();
      return WEFT_ERROR;
    }
  }
  *out = array_finish(vm, *out);
  return WEFT_OK;
}

static Array *boxed_number(NumBox *box, u32 dtype) { /* of what `payload` holds */
  Array *a = &box->array;
  a->head = (Obj){2, 0}; /* never writable */
  a->tag = ARRAY_TAG(dtype, 0, DEV_CPU, LAY_DENSE);
  a->data = box->payload;
  a->owner = NULL;
  a->size = 1;
  return a;
}

Array *array_of(Value v, NumBox *box) {
  if (v.kind == V_ARRAY) return v.array;
  num_store(box->payload, v.dtype, v);
  return boxed_number(box, v.dtype);
}

Value array_borrow(const Array *a, i64 at, NumBox *box) {
  if (array_dtype(a) != DT_c128) return array_load(a, at);
  ARRAY_HERE(a);
  memcpy(box->payload, (const char *)a->data + at * 16, 16);
  return (Value){.kind = V_ARRAY, .dtype = DT_c128, .array = boxed_number(box, DT_c128)};
}

f64 num_as_f64(Value v) {
  if (dtype_kind(v.dtype) != DK_FLOAT) return dtype_is_signed(v.dtype) ? (f64)v.i : (f64)v.u;
  return dtype_compute(v.dtype) == DT_f32 ? (f64)v.s : v.f;
}

/* x as i64, or as u64; what the processor makes of a number that does not fit: who asks has checked, or checks next. */
static u64 bits_of_float(f64 x, bool natural) {
  if (natural && x >= 0x1p63 && x < 0x1p64) return (u64)x;
  return x >= -0x1p63 && x < 0x1p63 ? (u64)(i64)x : 1ull << 63;
}

Value num_convert_unchecked(Value v, u32 dtype) {
  if (v.dtype == dtype) return v;
  Value r = {.kind = V_NUM, .dtype = (u8)dtype, .flags = v.flags & VF_WEAK};
  if (dtype == DT_c64 || v.dtype == DT_c64) {
    if (dtype != DT_c64) r.i = v.z[0] != 0 || v.z[1] != 0; /* bool */
    else r.z[0] = num_convert_unchecked(v, DT_f32).s; /* integers are rounded once */
    return r;
  }
  bool from_float = dtype_kind(v.dtype) == DK_FLOAT;
  if (dtype_is_half(dtype)) { /* all are rounded once */
    f64 x = from_float ? num_as_f64(v) : dtype_is_signed(v.dtype) ? f64_odd_i64(v.i) : f64_odd_u64(v.u);
    r.s = half_round(dtype, f32_odd(x));
    return r;
  }
  switch (dtype) {
    case DT_bool: r.i = from_float ? num_as_f64(v) != 0 : v.u != 0; break;
    case DT_f64: r.f = num_as_f64(v); break;
    case DT_f32: /* integers are rounded once */
      if (from_float) r.s = (f32)num_as_f64(v);
      else r.s = dtype_is_signed(v.dtype) ? (f32)v.i : (f32)v.u;
      break;
    default: {
      u64 u = from_float ? bits_of_float(num_as_f64(v), dtype == DT_u64) : v.u;
      r.u = dtype == DT_u8 ? (u8)u : dtype == DT_i32 ? (u64)(i64)(i32)u : dtype == DT_u32 ? (u32)u : u;
      break;
    }
  }
  return r;
}

bool num_as_index(Value v, i64 *out) {
  if (v.kind == V_TRACKED) v = value_untracked(v);
  if (v.kind != V_NUM || dtype_kind(v.dtype) > DK_INT || num_is_huge(v)) return false;
  *out = v.i;
  return true;
}
