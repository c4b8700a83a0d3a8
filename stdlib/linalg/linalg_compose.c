/* linalg_compose.c — linear algebra made of other operations: pinv matrix_power matrix_norm diagonal kron
 * cross. */
#include "stdlib/array/make.h"
#include "stdlib/array/reduce.h"

#include <math.h>
#include <string.h>

/* Runs op on up to three owned values; *x takes the result. On an error *x is a hole. */
static WeftStatus then(Vm *vm, u32 op, Value *x, Value y, Value z) {
  Value args[3] = {*x, y, z};
  *x = value_hole();
  return run_op(vm, op, args, 3, x);
}

static WeftStatus matrix_operand(Vm *vm, u32 op, Value v, ArrayType *type) {
  RuleError err;
  TRY(args_array(vm, op, 0, v));
  type_of_value(v, type);
  TRY_RULE(vm, op, &err, shape_matrix(type, &err));
  return WEFT_OK;
}

static f64 dtype_eps(u32 dtype) { return dtype_real_of(dtype) == DT_f32 ? 0x1p-23 : 0x1p-52; }

/* ---- by singular values -------------------------------------------------------------------------- */

/* max(rows, cols) * eps: below this part of the greatest a singular value counts as zero. */
static f64 rank_tolerance(const ArrayType *t) {
  i64 m = t->dims[t->rank - 2], n = t->dims[t->rank - 1];
  return (f64)(m > n ? m : n) * dtype_eps(dtype_float_of(t->dtype));
}

/* Where s (borrowed; along its last axis) counts as not zero: bools, owned. The tolerance (borrowed) is a number, or an
 * array of one for each matrix. */
static WeftStatus counted_values(Vm *vm, Value s, Value tolerance, Value *out) {
  Value part = value_keep(tolerance);
  if (part.kind == V_ARRAY) TRY(then(vm, OP_expand_dims, &part, value_i64(-1), value_hole()));
  *out = value_keep(s);
  if (then(vm, OP_max, out, value_i64(-1), value_bool(true)) != WEFT_OK) {
    value_drop(vm, part);
    return WEFT_ERROR;
  }
  TRY(then(vm, OP_multiply, out, part, value_hole()));
  return then(vm, OP_less, out, value_keep(s), value_hole());
}

/* V (1 / S where it counts, else 0) U^H */
WeftStatus eager_linalg_pinv(Vm *vm, Value *args, Value *out) {
  ArrayType type;
  TRY(matrix_operand(vm, OP_linalg_pinv, args[0], &type));
  Value rtol = value_weak_f64(rank_tolerance(&type));
  if (args_given(args[1])) {
    TRY(args_array(vm, OP_linalg_pinv, 1, args[1]));
    rtol = args[1];
  }
  i64 m = type.dims[type.rank - 2], n = type.dims[type.rank - 1];
  if (m == 0 || n == 0) {
    i64 swap = type.dims[type.rank - 2];
    type.dims[type.rank - 2] = type.dims[type.rank - 1];
    type.dims[type.rank - 1] = swap;
    return array_new(vm, dtype_float_of(type.dtype), type.rank, type.dims, out);
  }
  Value parts = value_keep(args[0]);
  TRY(then(vm, OP_linalg_svd, &parts, value_bool(false), value_hole()));
  Value u = value_keep(parts.list->items[0]), s = value_keep(parts.list->items[1]),
      vh = value_keep(parts.list->items[2]), counts;
  value_drop(vm, parts);
  WeftStatus status = counted_values(vm, s, rtol, &counts);
  if (status == WEFT_OK && dtype_kind(type.dtype) == DK_COMPLEX) {
    status = then(vm, OP_conj, &u, value_hole(), value_hole());
    if (status == WEFT_OK) status = then(vm, OP_conj, &vh, value_hole(), value_hole());
    if (status != WEFT_OK) value_drop(vm, counts);
  }
  if (status == WEFT_OK) {
    status = then(vm, OP_reciprocal, &s, value_hole(), value_hole());
    if (status == WEFT_OK) {
      status = then(vm, OP_where, &counts, s, value_weak_f64(0));
      s = value_hole();
    }
    if (status == WEFT_OK) status = then(vm, OP_expand_dims, &counts, value_i64(-1), value_hole());
    if (status == WEFT_OK) status = then(vm, OP_swapaxes, &u, value_i64(-1), value_i64(-2));
    if (status == WEFT_OK) {
      status = then(vm, OP_multiply, &u, counts, value_hole()); /* rows of U^T, scaled */
      counts = value_hole();
    }
    value_drop(vm, counts);
  }
  if (status == WEFT_OK) status = then(vm, OP_swapaxes, &vh, value_i64(-1), value_i64(-2));
  if (status == WEFT_OK) {
    status = then(vm, OP_matmul, &vh, u, value_hole());
    u = value_hole();
  }
  value_drop(vm, u);
  value_drop(vm, s);
  if (status == WEFT_OK) *out = vh;
  else value_drop(vm, vh);
  return status;
}

/* fro: root of the sum of squares · nuc: sum of singular values · 1, -1: greatest, least column sum · inf, -inf:
 * row sum · 2, -2: greatest, least singular value */
static WeftStatus norm_of_matrices(Vm *vm, Value *args, Value *out) {
  static const char *const words[] = {"fro", "nuc", NULL};
  ArrayType type;
  u32 word = 0;
  f64 ord = 0;
  TRY(matrix_operand(vm, OP_linalg_matrix_norm, args[0], &type));
  if (args[1].kind == V_TEXT) TRY(args_choice(vm, OP_linalg_matrix_norm, 1, args[1], words, &word));
  else TRY(args_f64(vm, OP_linalg_matrix_norm, 1, args[1], &ord));
  bool by_word = args[1].kind == V_TEXT || !args_given(args[1]);
  if (!by_word && fabs(ord) != 1 && fabs(ord) != 2 && !isinf(ord))
    return vm_error(vm, EK_value, "linalg.matrix_norm: ord must be \"fro\", \"nuc\", 1, -1, 2, -2, inf or -inf, got %g",
                    args_shown(ord));
  /* the greatest or least of the sums along an axis, or of as many singular values as the shorter one has; of none 0,
   * or an error */
  if (!by_word) {
    i64 rows = type.dims[type.rank - 2], columns = type.dims[type.rank - 1],
        n = fabs(ord) == 1 ? columns : isinf(ord) ? rows : rows < columns ? rows : columns;
    if (n == 0 && ord > 0) {
      TRY(array_new_zero(vm, dtype_real_of(dtype_float_of(type.dtype)), type.rank - 2u, type.dims, out));
      result_finish(vm, out);
      return WEFT_OK;
    }
    if (n == 0 && dims_size(type.rank - 2u, type.dims) > 0)
      return vm_error(vm, EK_value, "linalg.matrix_norm: shape %s has no elements to choose from", shape_text(&type).s);
  }
  TRY(convert_value(vm, OP_linalg_matrix_norm, args[0], dtype_float_of(type.dtype), out));
  if (by_word && word == 0) {
    Value axes;
    if (!list_new(vm, 2, &axes) || list_add(vm, &axes, value_weak_i64(-2)) != WEFT_OK ||
        list_add(vm, &axes, value_weak_i64(-1)) != WEFT_OK) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
    Value square = *out;
    WeftStatus status = WEFT_OK;
    if (dtype_kind(type.dtype) == DK_COMPLEX) status = then(vm, OP_abs, &square, value_hole(), value_hole());
    if (status == WEFT_OK) status = then(vm, OP_square, &square, value_hole(), value_hole());
    if (status == WEFT_OK) status = then(vm, OP_sum, &square, axes, value_hole());
    else value_drop(vm, axes);
    if (status == WEFT_OK) status = then(vm, OP_sqrt, &square, value_hole(), value_hole());
    *out = square;
    return status;
  }
  if (by_word || fabs(ord) == 2) {
    TRY(then(vm, OP_linalg_svdvals, out, value_hole(), value_hole()));
    return then(vm, by_word ? OP_sum : ord > 0 ? OP_max : OP_min, out, value_i64(-1), value_hole());
  }
  TRY(then(vm, OP_abs, out, value_hole(), value_hole()));
  TRY(then(vm, OP_sum, out, value_i64(isinf(ord) ? -1 : -2), value_hole()));
  return then(vm, ord > 0 ? OP_max : OP_min, out, value_i64(-1), value_hole());
}

WeftStatus eager_linalg_matrix_norm(Vm *vm, Value *args, Value *out) {
  bool keep = false;
  TRY(args_bool(vm, OP_linalg_matrix_norm, 2, args[2], &keep));
  TRY(norm_of_matrices(vm, args, out));
  for (u32 i = 0; i < 2 && keep; i++) TRY(then(vm, OP_expand_dims, out, value_i64(-1), value_hole()));
  return WEFT_OK;
}

/* ---- by products --------------------------------------------------------------------------------- */

WeftStatus eager_linalg_matrix_power(Vm *vm, Value *args, Value *out) {
  ArrayType type;
  RuleError err;
  i64 n = 0;
  TRY(args_array(vm, OP_linalg_matrix_power, 0, args[0]));
  TRY(args_int(vm, OP_linalg_matrix_power, 1, args[1], &n));
  type_of_value(args[0], &type);
  TRY_RULE(vm, OP_linalg_matrix_power, &err, shape_square(NULL, &type, &err));
  u32 dtype = type.dtype == DT_bool ? DT_i64 : type.dtype;
  Value base, result = value_hole();
  TRY(convert_value(vm, OP_linalg_matrix_power, args[0], n < 0 ? dtype_float_of(dtype) : dtype, &base));
  if (n < 0) TRY(then(vm, OP_linalg_inv, &base, value_hole(), value_hole()));
  u64 e = n < 0 ? 0 - (u64)n : (u64)n;
  if (e == 0) { /* the identity, for every matrix */
    WeftStatus status = array_new_zero(vm, dtype, type.rank, type.dims, out);
    value_drop(vm, base);
    TRY(status);
    i64 size = type.dims[type.rank - 1], count = size ? out->array->size / (size * size) : 0;
    for (i64 b = 0; b < count; b++)
      for (i64 i = 0; i < size; i++)
        num_store_as((char *)out->array->data + ((b * size + i) * size + i) * dtype_bytes(dtype), dtype, value_i64(1));
    return WEFT_OK;
  }
  WeftStatus status = WEFT_OK;
  for (; e && status == WEFT_OK; e >>= 1) {
    if (e & 1) {
      if (result.kind == V_HOLE) result = value_keep(base);
      else status = then(vm, OP_matmul, &result, value_keep(base), value_hole());
    }
    if (e > 1 && status == WEFT_OK) status = then(vm, OP_matmul, &base, value_keep(base), value_hole());
  }
  value_drop(vm, base);
  if (status == WEFT_OK) *out = result;
  else value_drop(vm, result);
  return status;
}

WeftStatus eager_linalg_diagonal(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape;
  RuleError err;
  i64 k = 0, strides[ARRAY_MAX_RANK];
  TRY(matrix_operand(vm, OP_linalg_diagonal, args[0], &type));
  TRY(args_int(vm, OP_linalg_diagonal, 1, args[1], &k));
  TRY_RULE(vm, OP_linalg_diagonal, &err, shape_diagonal(NULL, &type, k, &shape, &err));
  Array *a = args[0].array;
  u32 last = type.rank - 1u;
  memcpy(strides, array_strides(a), (type.rank - 2u) * sizeof(i64));
  strides[shape.rank - 1] = array_strides(a)[last - 1] + array_strides(a)[last];
  i64 offset = dims_size(shape.rank, shape.dims) == 0 ? 0 : k >= 0 ? k * array_strides(a)[last]
                                                      : -k * array_strides(a)[last - 1];
  return array_view(vm, a, offset, shape.rank, shape.dims, strides, out);
}

static WeftStatus compose_reshape_to(Vm *vm, Value *x, u32 rank, const i64 *dims) {
  Value list;
  WeftStatus status = list_new(vm, rank, &list) ? WEFT_OK : WEFT_ERROR;
  for (u32 d = 0; d < rank && status == WEFT_OK; d++) status = list_add(vm, &list, value_weak_i64(dims[d]));
  if (status != WEFT_OK) {
    value_drop(vm, *x);
    *x = value_hole();
    return status;
  }
  return then(vm, OP_reshape, x, list, value_hole());
}

WeftStatus eager_linalg_kron(Vm *vm, Value *args, Value *out) {
  ArrayType x, y, shape;
  RuleError err;
  i64 xd[2 * ARRAY_MAX_RANK], yd[2 * ARRAY_MAX_RANK];
  TRY(args_array(vm, OP_linalg_kron, 0, args[0]));
  TRY(args_array(vm, OP_linalg_kron, 1, args[1]));
  type_of_value(args[0], &x);
  type_of_value(args[1], &y);
  TRY_RULE(vm, OP_linalg_kron, &err, shape_kron(NULL, &x, &y, &shape, &err));
  u32 rank = shape.rank;
  if (2 * rank > ARRAY_MAX_RANK)
    return vm_error(vm, EK_shape, "linalg.kron: rank %u; the limit is %d", rank, ARRAY_MAX_RANK / 2);
  for (u32 d = 0; d < rank; d++) { /* every axis of x beside the one of y */
    xd[2 * d] = d + x.rank < rank ? 1 : x.dims[d + x.rank - rank];
    xd[2 * d + 1] = 1;
    yd[2 * d] = 1;
    yd[2 * d + 1] = d + y.rank < rank ? 1 : y.dims[d + y.rank - rank];
  }
  Value b = value_keep(args[1]);
  TRY(compose_reshape_to(vm, &b, 2 * rank, yd));
  *out = value_keep(args[0]);
  if (compose_reshape_to(vm, out, 2 * rank, xd) != WEFT_OK) {
    value_drop(vm, b);
    return WEFT_ERROR;
  }
  TRY(then(vm, OP_multiply, out, b, value_hole()));
  return compose_reshape_to(vm, out, rank, shape.dims);
}

WeftStatus eager_linalg_cross(Vm *vm, Value *args, Value *out) {
  ArrayType x, y, shape;
  RuleError err;
  i64 axis = -1;
  TRY(args_array(vm, OP_linalg_cross, 0, args[0]));
  TRY(args_array(vm, OP_linalg_cross, 1, args[1]));
  TRY(args_int(vm, OP_linalg_cross, 2, args[2], &axis));
  type_of_value(args[0], &x);
  type_of_value(args[1], &y);
  TRY_RULE(vm, OP_linalg_cross, &err, shape_cross(NULL, &x, &y, axis, &shape, &err));
  /* x[i+1] y[i+2] - x[i+2] y[i+1], as two rolled products */
  Value parts[4];
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < 4; i++) {
    parts[i] = value_keep(args[i & 1]);
    if (status == WEFT_OK)
      status = then(vm, OP_roll, &parts[i], value_i64(i == 0 || i == 3 ? -1 : -2), value_i64(axis));
  }
  if (status == WEFT_OK) {
    status = then(vm, OP_multiply, &parts[0], parts[1], value_hole());
    parts[1] = value_hole();
  }
  if (status == WEFT_OK) {
    status = then(vm, OP_multiply, &parts[2], parts[3], value_hole());
    parts[3] = value_hole();
  }
  if (status == WEFT_OK) {
    status = then(vm, OP_subtract, &parts[0], parts[2], value_hole());
    parts[2] = value_hole();
  }
  *out = parts[0];
  for (u32 i = status == WEFT_OK; i < 4; i++) value_drop(vm, parts[i]);
  return status;
}
