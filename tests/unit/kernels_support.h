/* kernels_support.h — what the tests of eager kernels share: a VM with kernels, arrays in every layout, naive
 * reading. */
#ifndef WEFT_TESTS_KERNELS_SUPPORT_H
#define WEFT_TESTS_KERNELS_SUPPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stdlib/stdlib.h"
#include "vm/vm.h"

static inline Vm *test_vm(void) {
  Vm *vm = vm_new(NULL);
  assert_non_null(vm);
  assert_int_equal(stdlib_install(vm), WEFT_OK);
  return vm;
}

static inline void test_vm_end(Vm *vm) {
  stdlib_remove(vm);
  vm_free(vm);
}

/* Runs an operation on borrowed values; the arguments not given are holes. */
static inline WeftStatus run(Vm *vm, u32 op, Value a, Value b, Value c, Value *out) {
  Value args[OP_MAX_PARAMS];
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) args[i] = value_hole();
  args[0] = value_keep(a);
  args[1] = value_keep(b);
  args[2] = value_keep(c);
  WeftStatus status = vm->ops[op].eager(vm, args, out);
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) value_drop(vm, args[i]);
  return status;
}

static inline Value run_ok(Vm *vm, u32 op, Value a, Value b, Value c) {
  Value out = value_nil();
  if (run(vm, op, a, b, c, &out) != WEFT_OK) fail_msg("%s: %s", op_name(op), vm->error.message.text->data);
  return out;
}

/* A small generator: the same numbers everywhere. */
static inline u64 next_random(u64 *state) {
  u64 z = (*state += 0x9e3779b97f4a7c15ull);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

typedef enum TestLayout { L_DENSE, L_STRIDED, L_REVERSED, L_TRANSPOSED, L_ROWS, L_COUNT } TestLayout;

/* An array with these dims in this layout, filled by `fill(k)` in row-major order. */
static inline Value layout_array(Vm *vm, u32 dtype, u32 rank, const i64 *dims, TestLayout layout,
                                 Value (*fill)(u32 dtype, i64 k, u64 seed), u64 seed) {
  i64 own[ARRAY_MAX_RANK] = {0}, strides[ARRAY_MAX_RANK] = {0}, offset = 0;
  Value base, view;
  for (u32 d = 0; d < rank; d++) {
    u32 from = layout == L_TRANSPOSED ? rank - 1 - d : d;
    own[d] = dims[from];
    if (layout == L_STRIDED && d + 1 == rank) own[d] *= 3;
    if (layout == L_ROWS && d + 1 == rank) own[d] += 2;
  }
  assert_int_equal(array_new_zero(vm, dtype, rank, own, &base), WEFT_OK);
  const i64 *bs = array_strides(base.array);
  for (u32 d = 0; d < rank; d++) {
    strides[d] = bs[layout == L_TRANSPOSED ? rank - 1 - d : d];
    if (layout == L_STRIDED && d + 1 == rank) strides[d] *= 3;
    if (layout == L_REVERSED && base.array->size) {
      offset += (dims[d] - 1) * strides[d];
      strides[d] = -strides[d];
    }
  }
  if (layout == L_ROWS && base.array->size && rank) offset = 1;
  if (layout == L_DENSE) {
    view = value_keep(base);
  } else {
    assert_int_equal(array_view(vm, base.array, base.array->size ? offset : 0, rank, dims, strides, &view), WEFT_OK);
  }
  value_drop(vm, base);
  Array *a = view.array;
  i64 index[ARRAY_MAX_RANK] = {0}, at = 0, size = dims_size(rank, dims);
  for (i64 k = 0; k < size; k++) {
    num_store((char *)a->data + at * dtype_bytes(dtype), dtype, fill(dtype, k, seed));
    for (u32 d = rank; d-- > 0;) {
      at += array_strides(a)[d];
      if (++index[d] < dims[d]) break;
      at -= array_strides(a)[d] * dims[d];
      index[d] = 0;
    }
  }
  return view;
}

/* Element at row-major position k of `shape`, to which v broadcasts. */
static inline Value element_at(Value v, u32 rank, const i64 *shape, i64 k) {
  if (v.kind == V_NUM) return v;
  Array *a = v.array;
  i64 at = 0;
  u32 shift = rank - array_rank(a);
  for (u32 d = rank; d-- > 0;) {
    i64 i = k % shape[d];
    k /= shape[d];
    if (d >= shift && array_dims(a)[d - shift] != 1) at += i * array_strides(a)[d - shift];
  }
  return array_load(a, at);
}

/* Same dtype and bits; NaN is one value. */
static inline bool same_number(Value a, Value b) {
  if (a.dtype != b.dtype) return false;
  if (a.dtype == DT_f64 && a.f != a.f) return b.f != b.f;
  if (a.dtype == DT_f32 && a.s != a.s) return b.s != b.s;
  return a.dtype == DT_f32 ? (u32)a.bits == (u32)b.bits : a.bits == b.bits;
}

/* Numbers that show mistakes: zeros of both signs, infinities, NaN, ends of ranges, and random ones. */
static inline Value special(u32 dtype, i64 k, u64 seed) {
  static const f64 floats[] = {0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e30, -3e-39, 7.0, INFINITY, -INFINITY, NAN, 0.5,
                               3.0, -0.75};
  static const i64 ints[] = {0, 1, -1, 2, -7, 13, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, 255, 100, 64, 31};
  u64 state = seed * 1000003 + (u64)k, r = next_random(&state);
  Value v = {.kind = V_NUM, .dtype = (u8)dtype};
  bool plain = r >> 60 < 4;
  switch (dtype) {
    case DT_f64: v.f = plain ? (f64)(i64)(r & 0xfffff) / 1024 - 300 : floats[r % COUNT_OF(floats)]; break;
    case DT_f32: v.bits = 0, v.s = plain ? (f32)(i64)(r & 0xffff) / 64 - 300 : (f32)floats[r % COUNT_OF(floats)]; break;
    case DT_i64: v.i = plain ? (i64)r >> 40 : ints[r % COUNT_OF(ints)]; break;
    case DT_i32: v.i = (i32)(plain ? (i64)r >> 50 : ints[r % COUNT_OF(ints)]); break;
    case DT_u8: v.i = (u8)(plain ? r & 15 : (u64)ints[r % COUNT_OF(ints)]); break;
    default: v.i = r & 1;
  }
  return v;
}

#endif
