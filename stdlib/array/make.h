/* make.h — results: their memory, and values made from C, used by all families. */
#ifndef WEFT_STDLIB_MAKE_H
#define WEFT_STDLIB_MAKE_H

#include "stdlib/args.h"
#include "stdlib/stdlib.h"
#include "stdlib/kernels/strips.h"

#include <string.h>

/* A new dense array of type->rank and type->dims (its own dtype is not looked at). *data: its elements. */
static inline WeftStatus result_new(Vm *vm, u32 dtype, const ArrayType *type, Value *out, void **data) {
  TRY(array_new(vm, dtype, type->rank, type->dims, out));
  *data = out->array->data;
  return WEFT_OK;
}
/* Rank 0 becomes a number. */
static inline void result_finish(Vm *vm, Value *out) { *out = array_finish(vm, *out); }

/* May args[i] be overwritten by a result of this type? Then *out takes it and args[i] is a hole. */
static inline bool result_reuse(Value *arg, u32 dtype, const ArrayType *type, Value *out) {
  Array *a = arg->array;
  if (arg->kind != V_ARRAY || a->head.refs != 1 || array_dtype(a) != dtype || !array_dense(a) || array_rank(a) !=
      type->rank || memcmp(array_dims(a), type->dims, type->rank * sizeof(i64)) != 0 || !array_writable(a))
    return false;
  *out = *arg;
  *arg = value_hole();
  return true;
}

/* A number as an array of rank 0, an array as itself: *out owned. */
WeftStatus boxed(Vm *vm, Value v, Value *out) MUST_USE;
/* A strong value: what an operation gives that is not elementwise. */
static inline Value strong(Value v) {
  v.flags = (u8)(v.flags & ~VF_WEAK);
  return v;
}
/* v (a number or array) as `dtype`, dense: *out owned; v itself where it already is so. */
WeftStatus dense_as(Vm *vm, u32 op, Value v, u32 dtype, Value *out) MUST_USE;
/* Complex to real loses a part: an error, but for the truth. */
WeftStatus convert_allowed(Vm *vm, u32 op, u32 from, u32 to) MUST_USE;
/* v (a number or array) as `to`, strong; *out owned. Float to integer must fit. */
WeftStatus convert_value(Vm *vm, u32 op, Value v, u32 to, Value *out) MUST_USE;
/* The kernel on the first argument in the dtype that parameter `at` gives, and what comes of it in that dtype. */
WeftStatus run_in_dtype(Vm *vm, u32 op, u32 at, const Value *args, Value *out) MUST_USE;
/* Runs a built-in on arguments that are consumed (holes for those not given); used where one operation is
 * composed of others. */
WeftStatus run_op(Vm *vm, u32 op, Value *args, u32 n, Value *out) MUST_USE;
PairWent elementwise_pair(Vm *vm, u32 op, const Array *a, const Array *b, Value *out); /* Vm.pair */
PairWent matmul_pair(Vm *vm, u32 op, const Array *x, const Array *y, Value *out);      /* Vm.product */

/* An elementwise operation of one operand that has its row of strips. */
WeftStatus elementwise_unary(Vm *vm, u32 op, Value *args, Value *out) MUST_USE;

/* split(x, parts, axis) of an array; eager_split sends text elsewhere. */
WeftStatus split_array(Vm *vm, Value *args, Value *out) MUST_USE;
WeftStatus split_text(Vm *vm, Value text, Value sep, Value *out) MUST_USE; /* borrows; sep may be nil */
/* x (borrowed, an array) at positions `index` (all within) along an axis, dense: *out owned. */
WeftStatus take_positions(Vm *vm, Value x, u32 axis, const i64 *index, i64 n, Value *out) MUST_USE;
/* The dtype of several operands joined into one array: promoted, strong. */
u32 joint_dtype(const Value *items, u32 n);
/* `item` (consumed) at the end of `list`; an error drops both. */
static inline WeftStatus list_add(Vm *vm, Value *list, Value item) {
  if (list_push(vm, list, item)) return WEFT_OK;
  value_drop(vm, *list);
  return WEFT_ERROR;
}

#endif
