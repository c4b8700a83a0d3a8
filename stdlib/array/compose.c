/* compose.c — operations that are formulae of others. Lowering writes the same formulae as graphs, so that every tier
 * gives the same bits; each formula stands above its function. f(x): x as its float dtype (f64 for bools and integers).
 * n: the number of elements reduced, a weak float. */
#include "stdlib/array/make.h"
#include "stdlib/array/reduce.h"

#include <math.h>

/* *x = op(*x, y, axes, keep): consumes all that it is given; on an error *x is a hole. */
static WeftStatus step1(Vm *vm, u32 op, Value *x) {
  Value args[1] = {*x};
  *x = value_hole();
  return run_op(vm, op, args, 1, x);
}

static WeftStatus step2(Vm *vm, u32 op, Value *x, Value y) {
  Value args[2] = {*x, y};
  *x = value_hole();
  return run_op(vm, op, args, 2, x);
}


static WeftStatus reduced(Vm *vm, u32 op, Value *x, Value axis, bool keepdims) {
  Value args[3] = {*x, value_keep(axis), value_bool(keepdims)};
  *x = value_hole();
  return run_op(vm, op, args, 3, x);
}

typedef struct Over { /* what is reduced */
  ArrayType type;
  u32 mask;
  i64 n;
  Value axis; /* borrowed */
} Over;

/* The largest, or smallest, of a float array. Not by `max(x, axis)`, which takes axes that stand in an array for a
 * second operand. */
static WeftStatus compose_extreme(Vm *vm, u32 op, Value *x, const Over *o, bool keepdims) {
  ArrayType type;
  Value from = *x;
  type_of_value(from, &type);
  *x = value_hole();
  WeftStatus status = reduce_value(vm, op, op == OP_max ? REDUCE_MAX : REDUCE_MIN, from, type.dtype, o->mask, keepdims,
                                   x);
  value_drop(vm, from);
  return status;
}

/* x as a float, owned, and the axes. */
static WeftStatus begin(Vm *vm, u32 op, Value x, u32 axis_param, Value axis, Over *o, Value *f) {
  TRY(args_array(vm, op, 0, x));
  type_of_value(x, &o->type);
  TRY(args_axes(vm, op, axis_param, axis, o->type.rank, &o->mask));
  o->n = masked_count(&o->type, o->mask);
  o->axis = axis.kind == V_HOLE ? value_nil() : axis;
  return convert_value(vm, op, x, dtype_float_of(o->type.dtype), f);
}

/* One axis, -1 when not given. */
static WeftStatus begin_axis(Vm *vm, u32 op, Value x, u32 axis_param, Value *axis, Over *o, Value *f) {
  if (axis->kind == V_HOLE) *axis = value_weak_i64(-1);
  return begin(vm, op, x, axis_param, *axis, o, f);
}

static inline Value count_of(i64 n) { return value_weak_f64((f64)n); }

/* mean = sum(f(x)) / n */
WeftStatus eager_mean(Vm *vm, Value *args, Value *out) {
  Over o;
  bool keep = false;
  if (args_given(args[3])) return run_in_dtype(vm, OP_mean, 3, args, out);
  TRY(args_bool(vm, OP_mean, 2, args[2], &keep));
  TRY(args_array(vm, OP_mean, 0, args[0]));
  type_of_value(args[0], &o.type);
  TRY(args_axes(vm, OP_mean, 1, args[1], o.type.rank, &o.mask));
  o.n = masked_count(&o.type, o.mask);
  /* the conversion happens on the way into the sum */
  TRY(reduce_value(vm, OP_mean, REDUCE_ADD, args[0], dtype_float_of(o.type.dtype), o.mask, keep, out));
  return step2(vm, OP_divide, out, count_of(o.n));
}

/* var = sum(square(f(x) - mean(x, keepdims))) / max(n - correction, 0) */
static WeftStatus variance(Vm *vm, u32 op, Value *args, Value *out) {
  Over o;
  bool keep = false;
  f64 correction = 0;
  Value mean;
  TRY(args_f64(vm, op, 2, args[2], &correction));
  TRY(args_bool(vm, op, 3, args[3], &keep));
  TRY(begin(vm, op, args[0], 1, args[1], &o, out));
  mean = value_keep(*out);
  if (reduced(vm, OP_sum, &mean, o.axis, true) != WEFT_OK || step2(vm, OP_divide, &mean, count_of(o.n)) != WEFT_OK) {
    value_drop(vm, *out);
    return WEFT_ERROR;
  }
  TRY(step2(vm, OP_subtract, out, mean));
  TRY(step1(vm, OP_square, out));
  TRY(reduced(vm, OP_sum, out, o.axis, keep));
  f64 n = (f64)o.n - correction;
  return step2(vm, OP_divide, out, value_weak_f64(n > 0 ? n : 0));
}
WeftStatus eager_var(Vm *vm, Value *args, Value *out) { return variance(vm, OP_var, args, out); }

/* std = sqrt(var) */
WeftStatus eager_std(Vm *vm, Value *args, Value *out) {
  TRY(variance(vm, OP_std, args, out));
  return step1(vm, OP_sqrt, out);
}

/* norm: ord 2 sqrt(sum(square(f(x)))) · 1 sum(abs(f(x))) · inf max(abs(f(x))) · -inf min(abs(f(x))) · 0 the count of
 * non-zeros · else sum(abs(f(x)) ** ord) ** (1 / ord) */
WeftStatus eager_norm(Vm *vm, Value *args, Value *out) {
  Over o;
  bool keep = false;
  f64 ord = 2;
  TRY(args_f64(vm, OP_norm, 1, args[1], &ord));
  TRY(args_bool(vm, OP_norm, 3, args[3], &keep));
  TRY(begin(vm, OP_norm, args[0], 2, args[2], &o, out));
  if (ord < 0 && isinf(ord) && reduce_some(vm, OP_norm, &o.type, o.mask) != WEFT_OK) {
    value_drop(vm, *out);
    return WEFT_ERROR;
  }
  if (ord > 0 && isinf(ord) && o.n == 0) ord = 1; /* the greatest of nothing is 0, as the sum is */
  if (ord == 2) {
    TRY(step1(vm, OP_square, out));
    TRY(reduced(vm, OP_sum, out, o.axis, keep));
    return step1(vm, OP_sqrt, out);
  }
  TRY(step1(vm, OP_abs, out));
  if (ord == 1) return reduced(vm, OP_sum, out, o.axis, keep);
  if (isinf(ord)) return compose_extreme(vm, ord > 0 ? OP_max : OP_min, out, &o, keep);
  if (ord == 0) {
    u32 dtype = dtype_float_of(o.type.dtype);
    TRY(reduced(vm, OP_count_nonzero, out, o.axis, keep));
    return step2(vm, OP_astype, out, value_dtype(dtype));
  }
  TRY(step2(vm, OP_power, out, value_weak_f64(ord)));
  TRY(reduced(vm, OP_sum, out, o.axis, keep));
  return step2(vm, OP_power, out, value_weak_f64(1 / ord));
}

/* *x -= m, m = max(*x, keepdims); *m owned (0 where it is not finite, when `finite`). On an error neither is. */
static WeftStatus subtract_max(Vm *vm, Value *x, const Over *o, bool finite, Value *m) {
  *m = value_keep(*x);
  WeftStatus status = compose_extreme(vm, OP_max, m, o, true);
  if (status == WEFT_OK && finite) {
    Value args[3] = {value_keep(*m), *m, value_weak_f64(0)};
    *m = value_hole();
    status = step1(vm, OP_isfinite, &args[0]);
    if (status == WEFT_OK) status = run_op(vm, OP_where, args, 3, m);
    else value_drop(vm, args[1]);
  }
  if (status != WEFT_OK) {
    value_drop(vm, *x);
    return status;
  }
  status = step2(vm, OP_subtract, x, value_keep(*m));
  if (status != WEFT_OK) value_drop(vm, *m);
  return status;
}

/* logsumexp = log(sum(exp(f(x) - m))) + m, m = max(f(x)) where it is finite, else 0 */
WeftStatus eager_logsumexp(Vm *vm, Value *args, Value *out) {
  Over o;
  bool keep = false;
  Value m;
  TRY(args_bool(vm, OP_logsumexp, 2, args[2], &keep));
  TRY(begin(vm, OP_logsumexp, args[0], 1, args[1], &o, out));
  if (o.n == 0) { /* log(0) */
    TRY(reduced(vm, OP_sum, out, o.axis, keep));
    return step1(vm, OP_log, out);
  }
  TRY(subtract_max(vm, out, &o, true, &m));
  WeftStatus status = step1(vm, OP_exp, out);
  if (status == WEFT_OK) status = reduced(vm, OP_sum, out, o.axis, true);
  if (status == WEFT_OK) status = step1(vm, OP_log, out);
  if (status == WEFT_OK) status = step2(vm, OP_add, out, m);
  else value_drop(vm, m);
  if (status == WEFT_OK && !keep && o.mask) {
    Value squeeze[2] = {*out, value_keep(o.axis)};
    if (o.axis.kind == V_NIL) { /* every axis has size 1 now */
      value_drop(vm, squeeze[1]);
      squeeze[1] = value_hole();
    }
    *out = value_hole();
    status = run_op(vm, OP_squeeze, squeeze, 2, out);
  }
  return status;
}

/* softmax = e / sum(e, keepdims), e = exp(f(x) - max(f(x), keepdims)) */
WeftStatus eager_nn_softmax(Vm *vm, Value *args, Value *out) {
  Over o;
  Value m;
  TRY(begin_axis(vm, OP_nn_softmax, args[0], 1, &args[1], &o, out));
  if (o.n == 0) return WEFT_OK;
  TRY(subtract_max(vm, out, &o, false, &m));
  value_drop(vm, m);
  TRY(step1(vm, OP_exp, out));
  m = value_keep(*out);
  if (reduced(vm, OP_sum, &m, o.axis, true) != WEFT_OK) {
    value_drop(vm, *out);
    return WEFT_ERROR;
  }
  return step2(vm, OP_divide, out, m);
}

/* log_softmax = s - log(sum(exp(s), keepdims)), s = f(x) - max(f(x), keepdims) */
static WeftStatus log_softmax(Vm *vm, u32 op, Value x, Value axis, Value *out) {
  Over o;
  Value m;
  TRY(begin_axis(vm, op, x, 1, &axis, &o, out));
  if (o.n == 0) return WEFT_OK;
  TRY(subtract_max(vm, out, &o, false, &m));
  value_drop(vm, m);
  m = value_keep(*out);
  if (step1(vm, OP_exp, &m) != WEFT_OK || reduced(vm, OP_sum, &m, o.axis, true) != WEFT_OK ||
      step1(vm, OP_log, &m) != WEFT_OK) {
    value_drop(vm, *out);
    return WEFT_ERROR;
  }
  return step2(vm, OP_subtract, out, m);
}
WeftStatus eager_nn_log_softmax(Vm *vm, Value *args, Value *out) {
  return log_softmax(vm, OP_nn_log_softmax, args[0], args[1], out);
}

/* layer_norm = d / sqrt(sum(square(d)) / n + eps) * scale + bias, d = f(x) - sum(f(x)) / n, sums with keepdims */
WeftStatus eager_nn_layer_norm(Vm *vm, Value *args, Value *out) {
  Over o;
  Value mean, scale = value_hole();
  Value eps = args[4].kind == V_HOLE ? value_weak_f64(1e-5) : args[4];
  TRY(args_array(vm, OP_nn_layer_norm, 4, eps));
  TRY(begin_axis(vm, OP_nn_layer_norm, args[0], 3, &args[3], &o, out));
  mean = value_keep(*out);
  if (reduced(vm, OP_sum, &mean, o.axis, true) != WEFT_OK || step2(vm, OP_divide, &mean, count_of(o.n)) != WEFT_OK) {
    value_drop(vm, *out);
    return WEFT_ERROR;
  }
  TRY(step2(vm, OP_subtract, out, mean));
  scale = value_keep(*out);
  WeftStatus status = step1(vm, OP_square, &scale);
  if (status == WEFT_OK) status = reduced(vm, OP_sum, &scale, o.axis, true);
  if (status == WEFT_OK) status = step2(vm, OP_divide, &scale, count_of(o.n));
  if (status == WEFT_OK) status = step2(vm, OP_add, &scale, value_keep(eps));
  if (status == WEFT_OK) status = step1(vm, OP_sqrt, &scale);
  if (status != WEFT_OK) {
    value_drop(vm, *out);
    return status;
  }
  TRY(step2(vm, OP_divide, out, scale));
  if (args_given(args[1])) TRY(step2(vm, OP_multiply, out, value_keep(args[1])));
  if (args_given(args[2])) TRY(step2(vm, OP_add, out, value_keep(args[2])));
  return WEFT_OK;
}

/* cross_entropy = -mean(log_softmax(logits, -1) at the labels along the last axis) */
WeftStatus eager_nn_cross_entropy(Vm *vm, Value *args, Value *out) {
  ArrayType type;
  TRY(args_array(vm, OP_nn_cross_entropy, 1, args[1]));
  type_of_value(args[1], &type);
  if (dtype_kind(type.dtype) != DK_INT) return args_error(vm, OP_nn_cross_entropy, 1, args[1], "integers");
  TRY(args_array(vm, OP_nn_cross_entropy, 0, args[0]));
  ArrayType logits;
  type_of_value(args[0], &logits);
  if (logits.rank != type.rank + 1 || memcmp(logits.dims, type.dims, type.rank * sizeof *type.dims) != 0)
    return vm_error(vm, EK_shape, "nn.cross_entropy: labels of shape %s do not fit logits of shape %s",
                    shape_text(&type).s, shape_text(&logits).s);
  Value labels = value_keep(args[1]);
  TRY(step2(vm, OP_expand_dims, &labels, value_weak_i64(-1)));
  WeftStatus status = log_softmax(vm, OP_nn_cross_entropy, args[0], value_hole(), out);
  if (status != WEFT_OK) {
    value_drop(vm, labels);
    return status;
  }
  Value at[3] = {*out, labels, value_weak_i64(-1)};
  *out = value_hole();
  TRY(run_op(vm, OP_take_along_axis, at, 3, out));
  TRY(reduced(vm, OP_mean, out, value_nil(), false));
  return step1(vm, OP_negative, out);
}

/* x: in the dtype that it is computed in; taken. Decimals by the product, or x where that is not finite; tens by the
 * quotient. */
static WeftStatus scaled_round(Vm *vm, Value x, i64 decimals, Value *out) {
  const Value scale = value_weak_f64(rule_power_of_ten(decimals));
  const u32 to = decimals > 0 ? OP_multiply : OP_divide, back = decimals > 0 ? OP_divide : OP_multiply;
  Value choice[3] = {value_keep(x), value_hole(), x};
  WeftStatus status = step2(vm, to, &choice[0], scale);
  choice[1] = value_keep(choice[0]);
  if (status == WEFT_OK) status = step1(vm, OP_round, &choice[1]);
  if (status == WEFT_OK) status = step2(vm, back, &choice[1], scale);
  if (status == WEFT_OK && decimals > 0) status = step1(vm, OP_isfinite, &choice[0]);
  if (status == WEFT_OK && decimals > 0) return run_op(vm, OP_where, choice, 3, out);
  value_drop(vm, choice[0]);
  value_drop(vm, choice[2]);
  if (status != WEFT_OK) value_drop(vm, choice[1]);
  else *out = choice[1];
  return status;
}

/* Integers have no decimals, and their tens are rounded as f64. */
WeftStatus eager_round(Vm *vm, Value *args, Value *out) {
  ArrayType type;
  i64 decimals = 0;
  Value x, y;
  TRY(args_int(vm, OP_round, 1, args[1], &decimals));
  if (!decimals) return elementwise_unary(vm, OP_round, args, out);
  TRY(args_array(vm, OP_round, 0, args[0]));
  if (!rule_decimals(decimals))
    return vm_error(vm, EK_value, "round: decimals must be from -30 to 300, got %lld", (long long)decimals);
  type_of_value(args[0], &type);
  const bool whole = dtype_kind(type.dtype) <= DK_INT;
  if (whole && decimals > 0) return elementwise_unary(vm, OP_round, args, out);
  if (!whole && dtype_can(type.dtype, NEED_compute) != CAN_wide)
    return scaled_round(vm, value_keep(args[0]), decimals, out);
  TRY(convert_value(vm, OP_round, args[0], whole ? DT_f64 : dtype_compute(type.dtype), &x));
  TRY(scaled_round(vm, x, decimals, &y));
  WeftStatus status = convert_value(vm, OP_round, y, type.dtype == DT_bool ? DT_i64 : type.dtype, out);
  value_drop(vm, y);
  return status;
}

/* gelu, approximate: f(x) * sigmoid(f(x) * (c1 * square(f(x)) + c0)), c0 = 2 sqrt(2 / pi), c1 = 0.044715 c0 */
WeftStatus eager_gelu(Vm *vm, Value *args, Value *out) {
  bool approximate = false;
  Value x;
  TRY(args_bool(vm, OP_gelu, 1, args[1], &approximate));
  if (!approximate) return elementwise_unary(vm, OP_gelu, args, out);
  TRY(args_array(vm, OP_gelu, 0, args[0]));
  ArrayType type;
  type_of_value(args[0], &type);
  if (dtype_kind(type.dtype) == DK_FLOAT) x = value_keep(args[0]);
  else TRY(convert_value(vm, OP_gelu, args[0], dtype_float_of(type.dtype), &x));
  *out = value_keep(x);
  WeftStatus status = step1(vm, OP_square, out);
  if (status == WEFT_OK) status = step2(vm, OP_multiply, out, value_weak_f64(0.07135481627260025));
  if (status == WEFT_OK) status = step2(vm, OP_add, out, value_weak_f64(1.5957691216057308));
  if (status == WEFT_OK) status = step2(vm, OP_multiply, out, value_keep(x));
  if (status == WEFT_OK) status = step1(vm, OP_sigmoid, out);
  if (status == WEFT_OK) return step2(vm, OP_multiply, out, x);
  value_drop(vm, x);
  return status;
}
