/* exchange.c — weak numbers; arrays lent with strides and copied out (see weft.h). DLPack: dlpack.c. */
#include "api/inner.h"

#include <string.h>

#include "stdlib/stdlib.h"

/* ---- weak numbers ------------------------------------------------------------------------------------- */

WeftStatus weft_weak_int(WeftVM *w, int64_t i, WeftValue **out) {
  return usable(w) && out ? value_hand_over(w, value_weak_i64(i), out) : WEFT_MISUSE;
}

WeftStatus weft_weak_float(WeftVM *w, double f, WeftValue **out) {
  return usable(w) && out ? value_hand_over(w, value_weak_f64(f), out) : WEFT_MISUSE;
}

WeftStatus weft_weak_complex(WeftVM *w, double re, double im, WeftValue **out) {
  Value v;
  if (!usable(w) || !out) return WEFT_MISUSE;
  if (value_complex(w->vm, DT_c128, re, im, true, &v) != WEFT_OK) return WEFT_ERROR;
  return value_hand_over(w, v, out);
}

bool weft_is_weak(WeftVM *w, WeftValue *value) {
  return usable(w) && value_ok(w, value) && value_is_numeric(value->value) && value_is_weak(value->value);
}

/* ---- lending --------------------------------------------------------------------------------------------- */

typedef struct Lent {
  void (*release)(void *context, void *data);
  void *context;
  Vm *vm;
} Lent;

static void lent_release(void *ctx, void *data, size_t bytes) {
  Lent *l = ctx;
  (void)bytes;
  l->vm->releasing++;
  if (l->release) l->release(l->context, data);
  l->vm->releasing--;
  mem_free(&l->vm->alloc, l, sizeof *l);
}

/* Bytes from the first to the last element that the strides reach; false: more than there are addresses. */
static bool reach_of(u32 bytes, u32 rank, const i64 *shape, const i64 *strides, size_t *out) {
  i64 low = 0, high = 0, step, whole;
  *out = 0;
  for (u32 d = 0; d < rank; d++)
    if (shape[d] == 0) return true;
  for (u32 d = 0; d < rank; d++) {
    if (__builtin_mul_overflow(shape[d] - 1, strides[d], &step)) return false;
    i64 *end = step < 0 ? &low : &high;
    if (__builtin_add_overflow(*end, step, end)) return false;
  }
  if (__builtin_sub_overflow(high, low, &whole) || __builtin_add_overflow(whole, 1, &whole) ||
      __builtin_mul_overflow(whole, (i64)bytes, &whole))
    return false;
  *out = (size_t)whole;
  return true;
}

WeftStatus weft_array_lend_strided(WeftVM *w, WeftDType dtype, int rank, const int64_t *shape, const int64_t *strides,
                                   const void *data, void (*release)(void *context, void *data), void *context,
                                   WeftValue **out) {
  if (!usable(w) || !out || !geometry_ok(dtype, rank, shape, data)) return WEFT_MISUSE;
  u32 bytes = dtype_bytes(dtype), unit = bytes < 8 ? bytes : 8;
  if ((uintptr_t)data % unit) return WEFT_MISUSE;
  i64 dense[WEFT_MAX_RANK];
  size_t reach = 0;
  if (!has_dtype(w, dtype)) return WEFT_ERROR;
  dense_strides((u32)rank, shape, dense);
  if (!strides) strides = dense;
  if (dims_size((u32)rank, shape) < 0 || !reach_of(bytes, (u32)rank, shape, strides, &reach))
    return vm_error(w->vm, EK_shape, "the lent array is too large");
  /* Nothing may fail behind array_external: the memory would have been given back although the call failed. */
  WeftValue *value = NULL;
  if (value_hand_over(w, value_nil(), &value) != WEFT_OK) return WEFT_ERROR;
  Lent *l = mem_alloc(&w->vm->alloc, sizeof *l);
  if (!l) {
    weft_release(w, value);
    return vm_error_memory(w->vm);
  }
  *l = (Lent){release, context, w->vm};
  Value v;
  /* Shared storage, so nothing is ever written through this pointer. */
  if (array_external(w->vm, dtype, (u32)rank, shape, strides, (void *)(uintptr_t)data, reach, lent_release, l, &v) !=
      WEFT_OK) {
    mem_free(&w->vm->alloc, l, sizeof *l);
    weft_release(w, value);
    return WEFT_ERROR;
  }
  value->value = array_finish(w->vm, v);
  *out = value;
  return WEFT_OK;
}

WeftStatus weft_array_lend(WeftVM *w, WeftDType dtype, int rank, const int64_t *shape, void *data,
                           void (*release)(void *context, void *data), void *context, WeftValue **out) {
  return weft_array_lend_strided(w, dtype, rank, shape, NULL, data, release, context, out);
}

bool weft_array_unshared(WeftVM *w, WeftValue *value) {
  if (!usable(w) || !value_ok(w, value)) return false;
  exports_look(w);
  return value->value.kind == V_ARRAY && array_device(value->value.array) == DEV_CPU &&
         array_writable(value->value.array);
}

/* ---- copying out -------------------------------------------------------------------------------------------- */

/* Has every value of `from` one of `to` that is equal to it? Whole numbers below 2 to the power of a float's digits
 * have (IEEE 754-2019, table 3.5: 11, 24 and 53; bfloat16 has 8). */
static bool exact(u32 from, u32 to) {
  static const u8 digits[DT_COUNT] = {[DT_bool] = 1, [DT_u8] = 8, [DT_i32] = 31, [DT_u32] = 32, [DT_i64] = 63,
                                      [DT_u64] = 64, [DT_f16] = 11, [DT_bf16] = 8, [DT_f32] = 24, [DT_f64] = 53,
                                      [DT_c64] = 24, [DT_c128] = 53};
  DTypeKind a = dtype_kind(from), b = dtype_kind(to);
  if (from == to) return true;
  if (a > b || digits[from] > digits[to]) return false;
  if (a == DK_INT && b == DK_INT) return !dtype_is_signed(from) || dtype_is_signed(to);
  return !(from == DT_bf16 && to == DT_f16); /* digits enough, but not the range */
}

static bool meet(const void *a, size_t n, const void *b, size_t m) {
  uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  return n && m && x < y + m && y < x + n;
}

/* Element (0, …) of an array with these strides lies so many bytes behind its first byte. */
static size_t before(u32 bytes, u32 rank, const i64 *shape, const i64 *strides) {
  u64 n = 0;
  for (u32 d = 0; d < rank; d++)
    if (strides[d] < 0) n += (u64)(shape[d] - 1) * (0 - (u64)strides[d]);
  return n * bytes;
}

/* The elements of v, a number or array, in the order of `to`, whose strides reach each place once. */
static WeftStatus copy_to(WeftVM *w, Value v, u32 dtype, u32 rank, const i64 *strides, void *to, size_t reach) {
  Vm *vm = w->vm;
  Value here = value_nil();
  NumBox box;
  if (v.kind == V_ARRAY && array_device(v.array) != DEV_CPU) {
    if (array_from_device(vm, v.array, &here) != WEFT_OK) return WEFT_ERROR;
    v = here;
  }
  Array *a = array_of(v, &box);
  size_t from_reach;
  u32 bytes = dtype_bytes(array_dtype(a));
  char *target = (char *)to - before(dtype_bytes(dtype), rank, array_dims(a), strides),
       *source = (char *)a->data - before(bytes, rank, array_dims(a), array_strides(a));
  WeftStatus status = WEFT_OK;
  if (a->size && reach_of(bytes, rank, array_dims(a), array_strides(a), &from_reach) &&
      meet(target, reach, source, from_reach)) { /* the host's memory that was lent, as it may be */
    Value fresh;
    status = array_copy(vm, a, &fresh);
    if (status == WEFT_OK) {
      value_drop(vm, here);
      here = fresh;
      a = fresh.array;
    }
  }
  if (status == WEFT_OK && a->size) {
    if (array_dtype(a) == dtype)
      strided_copy(vm, bytes, rank, array_dims(a), to, strides, a->data, array_strides(a));
    else strided_convert(rank, array_dims(a), dtype, to, strides, array_dtype(a), a->data, array_strides(a));
  }
  value_drop(vm, here);
  return status;
}

static WeftStatus readable(WeftVM *w, Value v, u32 *rank, const i64 **dims) {
  if (!value_is_numeric(v)) return value_wrong(w, "a number or array", v);
  *rank = v.kind == V_ARRAY ? array_rank(v.array) : 0;
  *dims = v.kind == V_ARRAY ? array_dims(v.array) : NULL;
  return WEFT_OK;
}

WeftStatus weft_array_copy_out(WeftVM *w, WeftValue *value, WeftDType dtype, void *to, size_t bytes) {
  if (!usable(w) || !value_ok(w, value) || (int)dtype < 1 || dtype >= (WeftDType)DT_COUNT || (!to && bytes))
    return WEFT_MISUSE;
  Value v = value->value;
  u32 rank = 0;
  const i64 *dims = NULL;
  if (readable(w, v, &rank, &dims) != WEFT_OK || !has_dtype(w, dtype)) return WEFT_ERROR;
  if (!exact(v.dtype, dtype))
    return vm_error(w->vm, EK_type, "%s is not copied out as %s, which cannot hold all of its values",
                    dtype_name(v.dtype), dtype_name(dtype));
  size_t whole = (size_t)(v.kind == V_ARRAY ? v.array->size : 1) * dtype_bytes(dtype);
  if (bytes != whole)
    return vm_error(w->vm, EK_shape, "the host's buffer has %zu bytes, the array needs %zu", bytes, whole);
  i64 strides[WEFT_MAX_RANK];
  dense_strides(rank, dims, strides);
  return copy_to(w, v, dtype, rank, strides, to, whole);
}

WeftStatus weft_array_copy_into(WeftVM *w, WeftValue *value, const WeftArray *to) {
  if (!usable(w) || !value_ok(w, value) || !to || !geometry_ok(to->dtype, to->rank, to->shape, to->data))
    return WEFT_MISUSE;
  Value v = value->value;
  u32 rank = 0;
  const i64 *dims = NULL;
  size_t reach;
  if (readable(w, v, &rank, &dims) != WEFT_OK || !has_dtype(w, to->dtype)) return WEFT_ERROR;
  if (v.dtype != to->dtype)
    return vm_error(w->vm, EK_type, "the host's buffer is of dtype %s, the array of %s", dtype_name(to->dtype),
                    dtype_name(v.dtype));
  if (rank != (u32)to->rank || (rank && memcmp(dims, to->shape, sizeof *dims * rank) != 0)) {
    Buf b;
    buf_init(&b, &w->vm->alloc);
    buf_puts(&b, "the host's buffer is of shape (");
    for (u32 d = 0; d < (u32)to->rank; d++) buf_printf(&b, "%s%lld", d ? ", " : "", (long long)to->shape[d]);
    buf_puts(&b, to->rank == 1 ? ",), the array of (" : "), the array of (");
    for (u32 d = 0; d < rank; d++) buf_printf(&b, "%s%lld", d ? ", " : "", (long long)dims[d]);
    buf_puts(&b, rank == 1 ? ",)" : ")");
    WeftStatus status = vm_error(w->vm, EK_shape, "%s",
                                 b.failed ? "the host's buffer has another shape" : buf_text(&b));
    buf_free(&b);
    return status;
  }
  u32 bytes = dtype_bytes(to->dtype), unit = bytes < 8 ? bytes : 8;
  if ((uintptr_t)to->data % unit || !reach_of(bytes, rank, to->shape, to->strides, &reach)) return WEFT_MISUSE;
  for (u32 d = 0; d < rank; d++)
    if (to->strides[d] == 0 && to->shape[d] > 1) return WEFT_MISUSE; /* places that are written twice */
  return copy_to(w, v, to->dtype, rank, to->strides, (void *)(uintptr_t)to->data, reach);
}
