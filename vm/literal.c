/* literal.c — array literals: elements that stack without broadcasting. */
#include <stdio.h>
#include <string.h>

#include "vm/scalar.h"

static WeftStatus bad_element(Vm *vm, u32 at, Value v) {
  if (v.kind == V_TEXT || v.kind == V_RECORD)
    return vm_error(vm, EK_type, "array literal: element %u is %s; a list holds any values: write (…) for […]", at,
                    value_type_name(v));
  if (v.kind == V_LIST || v.kind == V_RANGE)
    return vm_error(vm, EK_type, "array literal: element %u is a %s; array(…) makes an array of it", at,
                    value_type_name(v));
  return vm_error(vm, EK_type, "array literal: element %u is %s, not a number or an array", at, value_type_name(v));
}

static WeftStatus numbers(Vm *vm, const Value *items, u32 n, Value *out) {
  u32 dtype = items[0].dtype;
  bool weak = value_is_weak(items[0]);
  for (u32 i = 1; i < n; i++) dtype = dtype_promote_weak(dtype, weak, items[i].dtype, value_is_weak(items[i]), &weak);
  i64 dims[1] = {n};
  if (array_new(vm, dtype, 1, dims, out) != WEFT_OK) return WEFT_ERROR;
  u32 bytes = dtype_bytes(dtype);
  for (u32 i = 0; i < n; i++) {
    if (value_is_weak(items[i]) && !num_fits(items[i], dtype)) {
      value_drop(vm, *out);
      return vm_error(vm, EK_value, "array literal: %lld does not fit %s", (long long)items[i].i, dtype_name(dtype));
    }
    num_store_as((char *)out->array->data + (size_t)i * bytes, dtype, items[i]);
  }
  return WEFT_OK;
}

static void shape_text(Value v, char *text, size_t cap) {
  ArrayType t = {.rank = 0};
  if (v.kind == V_ARRAY) {
    t.rank = (u8)array_rank(v.array);
    for (u32 d = 0; d < t.rank; d++) t.dims[d] = array_dims(v.array)[d];
  }
  rule_shape_text(&t, text, cap);
}

static bool same_shape(Value a, Value b) {
  u32 ra = a.kind == V_ARRAY ? array_rank(a.array) : 0, rb = b.kind == V_ARRAY ? array_rank(b.array) : 0;
  if (ra != rb) return false;
  for (u32 d = 0; d < ra; d++)
    if (array_dims(a.array)[d] != array_dims(b.array)[d]) return false;
  return true;
}

WeftStatus vm_array_literal(Vm *vm, const Value *items, u32 n, Value *out) {
  i64 none[1] = {0};
  if (n == 0) return array_new(vm, DT_f64, 1, none, out);
  bool all_numbers = true;
  for (u32 i = 0; i < n; i++) {
    Value v = value_untracked(items[i]);
    if (!value_is_numeric(v)) return bad_element(vm, i, v);
    all_numbers &= items[i].kind == V_NUM;
  }
  if (all_numbers) return numbers(vm, items, n, out);
  for (u32 i = 1; i < n; i++) {
    Value a = value_untracked(items[0]), b = value_untracked(items[i]);
    if (same_shape(a, b)) continue;
    char sa[96], sb[96];
    shape_text(a, sa, sizeof sa);
    shape_text(b, sb, sizeof sb);
    return vm_error(vm, EK_shape,
                    "array literal: element 0 has shape %s and element %u has shape %s; a list, (a, b), may hold both",
                    sa, i, sb);
  }
  Value args[2] = {value_nil(), value_hole()};
  if (!list_from(vm, items, n, &args[0])) return WEFT_ERROR;
  WeftStatus status = vm_op(vm, OP_stack, args, out);
  value_drop(vm, args[0]);
  return status;
}
