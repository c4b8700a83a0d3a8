/* parts.c — reductions and products of complex numbers, by those of their real and imaginary parts (see wide.h). */
#include "stdlib/array/wide.h"

static bool is_pair_value(Value v) { return value_is_numeric(v) && dtype_kind(v.dtype) == DK_COMPLEX; }

/* The real (0) or the imaginary (1) part, as a view: *out owned. */
static WeftStatus one_part(Vm *vm, Value v, u32 at, Value *out) {
  if (v.kind == V_NUM) {
    *out = value_f32(v.z[at]);
    return WEFT_OK;
  }
  Array *a = v.array;
  const u32 rank = array_rank(a), real = dtype_real_of(array_dtype(a));
  TRY(array_view(vm, a, 0, rank, array_dims(a), array_strides(a), out));
  Array *p = out->array;
  i64 *strides = array_strides(p);
  for (u32 d = 0; d < rank; d++) strides[d] *= 2;
  p->data = (char *)a->data + at * dtype_bytes(real);
  p->tag = ARRAY_TAG(real, rank, DEV_CPU, layout_of(rank, array_dims(p), strides));
  out->dtype = (u8)real;
  *out = array_finish(vm, *out);
  return WEFT_OK;
}

/* The kernel on `args` with some of them replaced, so that none is complex; what stands in `with` is consumed. */
static WeftStatus run_with(Vm *vm, u32 op, EagerFn kernel, const Value *args, const u32 *at, Value *with, u32 n,
                           Value *out) {
  Value all[OP_MAX_PARAMS];
  const u32 count = op_info(op)->nparams;
  for (u32 i = 0; i < count; i++) all[i] = value_keep(args[i]);
  for (u32 i = 0; i < n; i++) {
    value_drop(vm, all[at[i]]);
    all[at[i]] = with[i];
  }
  WeftStatus status = wide_run(vm, op, kernel, all, out);
  for (u32 i = 0; i < count; i++) value_drop(vm, all[i]);
  return status;
}

static WeftStatus two(Vm *vm, u32 op, Value a, Value b, Value *out) { /* consumes a and b */
  Value args[2] = {a, b};
  return run_op(vm, op, args, 2, out);
}

/* The kernel on both parts of x. */
static WeftStatus on_parts(Vm *vm, u32 op, EagerFn kernel, const Value *args, Value *made) {
  const u32 first = 0;
  for (u32 k = 0; k < 2; k++) {
    Value part;
    WeftStatus status = one_part(vm, args[0], k, &part);
    if (status == WEFT_OK) status = run_with(vm, op, kernel, args, &first, &part, 1, &made[k]);
    if (status == WEFT_OK) continue;
    if (k) value_drop(vm, made[0]);
    return status;
  }
  return WEFT_OK;
}

/* What is linear: of the real parts, of the imaginary parts. */
static WeftStatus linear(Vm *vm, u32 op, EagerFn kernel, const Value *args, Value *out) {
  Value made[2];
  TRY(on_parts(vm, op, kernel, args, made));
  return two(vm, OP_complex, made[0], made[1], out);
}

/* The variance is that of the distance from the mean. */
static WeftStatus spread(Vm *vm, u32 op, const Value *args, Value *out) {
  Value made[2], sum;
  TRY(on_parts(vm, OP_var, eager_var, args, made));
  if (op == OP_var) return two(vm, OP_add, made[0], made[1], out);
  TRY(two(vm, OP_add, made[0], made[1], &sum));
  return run_op(vm, OP_sqrt, &sum, 1, out);
}

/* Whether elements are 0. */
static WeftStatus by_truth(Vm *vm, u32 op, EagerFn kernel, const Value *args, Value *out) {
  const u32 first = 0;
  Value truth;
  TRY(convert_value(vm, op, args[0], DT_bool, &truth));
  return run_with(vm, op, kernel, args, &first, &truth, 1, out);
}

/* The absolute values of elements. */
static WeftStatus sizes(Vm *vm, u32 op, EagerFn kernel, const Value *args, Value *out) {
  const u32 first = 0;
  Value x = value_keep(args[0]), size;
  TRY(run_op(vm, OP_abs, &x, 1, &size));
  return run_with(vm, op, kernel, args, &first, &size, 1, out);
}

#define PRODUCT(T)                                                \
  for (i64 r = 0; r < rows; r++) {                                \
    const T *row = (const T *)data + 2 * r * n;                     \
    T re = 1, im = 0;                                             \
    for (i64 i = 0; i < n; i++) {                                 \
      if (i % PART_PLACES == PART_PLACES - 1 && vm_ends(vm)) break; \
      const T old = re;                                           \
      re = old * row[2 * i] - im * row[2 * i + 1];                    \
      im = old * row[2 * i + 1] + im * row[2 * i];                    \
    }                                                             \
    ((T *)to)[2 * r] = re;                                        \
    ((T *)to)[2 * r + 1] = im;                                    \
  }

/* One after another, in row-major order of the axes that go. */
static WeftStatus product_of(Vm *vm, const Value *args, Value *out) {
  ArrayType type, shape;
  u32 mask;
  bool keepdims = false;
  Value x, line;
  TRY(args_array(vm, OP_prod, 0, args[0]));
  type_of_value(args[0], &type);
  TRY(args_axes(vm, OP_prod, 1, args[1], type.rank, &mask));
  TRY(args_bool(vm, OP_prod, 2, args[2], &keepdims));
  TRY(boxed(vm, args[0], &x));
  i64 dims[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK], n = 1;
  u32 at = 0;
  for (u32 gone = 0; gone < 2; gone++)
    for (u32 d = 0; d < type.rank; d++)
      if ((mask >> d & 1) == gone) {
        dims[at] = type.dims[d];
        strides[at++] = array_strides(x.array)[d];
        if (gone) n *= type.dims[d];
      }
  rule_reduce(&type, mask, keepdims, &shape);
  void *to = NULL;
  WeftStatus status = kernel_poll(vm, x.array->size);
  Value view;
  if (status == WEFT_OK) status = array_view(vm, x.array, 0, type.rank, dims, strides, &view);
  value_drop(vm, x);
  TRY(status);
  status = array_make_dense(vm, view, &line);
  value_drop(vm, view);
  TRY(status);
  status = result_new(vm, type.dtype, &shape, out, &to);
  if (status == WEFT_OK) {
    const i64 rows = out->array->size;
    const void *data = line.array->data;
    if (type.dtype == DT_c64) PRODUCT(f32)
    else PRODUCT(f64)
    result_finish(vm, out);
    if ((status = vm_look(vm)) != WEFT_OK) value_drop(vm, *out); /* which may have ended it */
  }
  value_drop(vm, line);
  return status;
}

#define RUNNING(T)                                                              \
  for (i64 r = 0; r < rows; r++) {                                              \
    const T *row = (const T *)from + 2 * r * n;                                 \
    T *o = (T *)to + 2 * r * (n + first), re = 1, im = 0;                       \
    i64 at = reverse ? n + first - 1 : 0, step = reverse ? -1 : 1;              \
    if (first) o[2 * at] = 1, o[2 * at + 1] = 0, at += step;                    \
    for (i64 i = 0; i < n; i++, at += step) {                                   \
      if (i % PART_PLACES == PART_PLACES - 1 && vm_ends(vm)) break;             \
      const T *z = row + 2 * (reverse ? n - 1 - i : i), old = re;                 \
      re = old * z[0] - im * z[1];                                              \
      im = old * z[1] + im * z[0];                                              \
      o[2 * at] = re;                                                           \
      o[2 * at + 1] = im;                                                       \
    }                                                                           \
  }

/* One after another along an axis, which is the last one meanwhile. */
static WeftStatus running_product(Vm *vm, const Value *args, Value *out) {
  ArrayType type;
  RuleError err;
  bool reverse = false, first = false;
  i64 given = 0, rows = 1;
  u32 axis = 0;
  Value x, last, line, made;
  TRY(args_bool(vm, OP_cumprod, 2, args[2], &reverse));
  TRY(args_bool(vm, OP_cumprod, 3, args[3], &first));
  TRY(args_int(vm, OP_cumprod, 1, args[1], &given));
  x = value_keep(args[0]);
  if (!args_given(args[1])) TRY(run_op(vm, OP_ravel, (Value[]){x}, 1, &x));
  type_of_value(x, &type);
  if (!rule_axis(given, type.rank, &axis, &err)) {
    value_drop(vm, x);
    return vm_error_rule(vm, OP_cumprod, &err);
  }
  TRY(run_op(vm, OP_moveaxis, (Value[]){x, value_i64(axis), value_i64(-1)}, 3, &last));
  WeftStatus status = dense_as(vm, OP_cumprod, last, type.dtype, &line);
  value_drop(vm, last);
  TRY(status);
  const i64 n = type.dims[axis];
  for (u32 d = 0; d < type.rank; d++) rows *= d == axis ? 1 : type.dims[d];
  ArrayType shape;
  type_of_value(line, &shape);
  shape.dims[shape.rank - 1] = n + first;
  void *to = NULL;
  status = kernel_poll(vm, line.array->size);
  if (status == WEFT_OK) status = result_new(vm, type.dtype, &shape, &made, &to);
  if (status == WEFT_OK) {
    const void *from = line.array->data;
    if (type.dtype == DT_c64) RUNNING(f32)
    else RUNNING(f64)
    result_finish(vm, &made);
    if ((status = vm_look(vm)) != WEFT_OK) value_drop(vm, made); /* which may have ended it */
    else status = run_op(vm, OP_moveaxis, (Value[]){made, value_i64(-1), value_i64(axis)}, 3, out);
  }
  value_drop(vm, line);
  return status;
}

/* ---- products of several operands -------------------------------------------------------------------- */

enum { MOST_OPERANDS = 16, MOST_COMPLEX = 6 };

typedef struct Product {
  Vm *vm;
  u32 op;
  EagerFn kernel;
  const Value *args, *operands; /* those of einsum stand in a list */
  u32 n, turned; /* operands; whether the first is conjugated */
} Product;

/* The kernel on real operands (consumed). */
static WeftStatus real_product(const Product *p, Value *given, Value *out) {
  const u32 at[2] = {0, 1}, second = 1;
  if (p->op != OP_einsum) return run_with(p->vm, p->op, p->kernel, p->args, at, given, 2, out);
  Value list;
  const bool made = list_from(p->vm, given, p->n, &list);
  for (u32 i = 0; i < p->n; i++) value_drop(p->vm, given[i]);
  return made ? run_with(p->vm, p->op, p->kernel, p->args, &second, &list, 1, out) : WEFT_ERROR;
}

/* That of one choice of parts: operand i is imaginary where bit i is set. */
static WeftStatus chosen_product(const Product *p, u32 imaginary, Value *out) {
  Value given[MOST_OPERANDS];
  for (u32 i = 0; i < p->n; i++) {
    given[i] = value_keep(p->operands[i]);
    if (!is_pair_value(p->operands[i])) continue;
    value_drop(p->vm, given[i]);
    if (one_part(p->vm, p->operands[i], imaginary >> i & 1, &given[i]) == WEFT_OK) continue;
    while (i-- > 0) value_drop(p->vm, given[i]);
    return WEFT_ERROR;
  }
  return real_product(p, given, out);
}

/* *sum (consumed) + term, or - term (consumed); *sum may be a hole. */
static WeftStatus add_term(Vm *vm, Value *sum, bool less, Value term) {
  Value before = *sum;
  *sum = value_hole();
  if (before.kind != V_HOLE) return two(vm, less ? OP_subtract : OP_add, before, term, sum);
  if (!less) {
    *sum = term;
    return WEFT_OK;
  }
  return run_op(vm, OP_negative, &term, 1, sum);
}

/* A product is linear in each operand: the sum over all choices of their parts, times i for each imaginary one. */
static WeftStatus multilinear(const Product *p, Value *out) {
  Vm *vm = p->vm;
  u32 complex_ones = 0, count = 0;
  Value sums[2] = {value_hole(), value_hole()};
  for (u32 i = 0; i < p->n; i++)
    if (is_pair_value(p->operands[i])) complex_ones |= 1u << i, count++;
  if (count > MOST_COMPLEX)
    return vm_error(vm, EK_unsupported, "%s: not supported: more than %d complex operands", op_name(p->op),
                    MOST_COMPLEX);
  WeftStatus status = WEFT_OK;
  for (u32 imaginary = 0; imaginary < 1u << p->n && status == WEFT_OK; imaginary++) {
    Value term;
    if (imaginary & ~complex_ones) continue;
    status = chosen_product(p, imaginary, &term);
    if (status != WEFT_OK) break;
    u32 quarters = (u32)__builtin_popcount(imaginary); /* turns by i */
    if (p->turned && imaginary & 1) quarters += 2;
    status = add_term(vm, &sums[quarters & 1], quarters & 2, term);
  }
  if (status == WEFT_OK) return two(vm, OP_complex, sums[0], sums[1], out);
  for (u32 k = 0; k < 2; k++) value_drop(vm, sums[k]);
  return status;
}

static WeftStatus product(Vm *vm, u32 op, EagerFn kernel, const Value *args, Value *out) {
  Product p = {vm, op, kernel, args, args, 2, op == OP_vecdot};
  if (op == OP_einsum) {
    TRY(args_list(vm, op, 1, args[1], &p.operands, &p.n));
    if (p.n > MOST_OPERANDS) return vm_error(vm, EK_unsupported, "einsum: not supported: %u operands", p.n);
  } else {
    TRY(args_array(vm, op, 0, args[0]));
    TRY(args_array(vm, op, 1, args[1]));
  }
  return multilinear(&p, out);
}

static bool is_operand(u32 op, u32 i) { return !param_is_setting(&op_info(op)->params[i]); }

/* Does a complex number stand in a setting, or in a list where a number is meant? */
static bool misplaced(u32 op, const Value *args) {
  const OpInfo *info = op_info(op);
  for (u32 i = 0; i < info->nparams; i++)
    if (is_operand(op, i) ? args[i].kind == V_LIST && !param_joins(&info->params[i]) : wide_has_parts(op, args[i]))
      return true;
  return op == OP_einsum && args[0].kind != V_TEXT;
}

/* The kernel says what is wrong with such arguments. The operands are real meanwhile, of which it has kernels. */
static WeftStatus refuse(Vm *vm, u32 op, EagerFn kernel, const Value *args, Value *out) {
  Value all[OP_MAX_PARAMS];
  u32 made = 0;
  WeftStatus status = WEFT_OK;
  for (; made < op_info(op)->nparams && status == WEFT_OK; made++) {
    if (is_operand(op, made) && is_pair_value(args[made])) status = one_part(vm, args[made], 0, &all[made]);
    else all[made] = value_keep(args[made]);
  }
  if (status == WEFT_OK) status = kernel(vm, all, out);
  else made--;
  for (u32 i = 0; i < made; i++) value_drop(vm, all[i]);
  if (status != WEFT_OK) return status;
  value_drop(vm, *out);
  return vm_error(vm, EK_type, "%s: a setting is complex", op_name(op));
}

WeftStatus parts_run(Vm *vm, u32 op, EagerFn kernel, Value *args, Value *out) {
  const u32 family = op_info(op)->family; /* of others the kernels look at complex numbers themselves */
  const bool by_parts = family == FAM_reduce || family == FAM_scan || family == FAM_linalg;
  if (by_parts && misplaced(op, args)) return refuse(vm, op, kernel, args, out);
  for (u32 i = 0; i < op_info(op)->nparams; i++) /* the kernel converts x, or joins it, and comes here without it */
    if (args[i].kind == V_DTYPE || (op == OP_diff && i > 2 && args_given(args[i]))) return kernel(vm, args, out);
  switch (op) {
    case OP_sum:
    case OP_mean:
    case OP_cumsum:
    case OP_diff: return linear(vm, op, kernel, args, out);
    case OP_var:
    case OP_std: return spread(vm, op, args, out);
    case OP_any:
    case OP_all:
    case OP_count_nonzero: return by_truth(vm, op, kernel, args, out);
    case OP_norm: return sizes(vm, op, kernel, args, out);
    case OP_prod: return product_of(vm, args, out);
    case OP_cumprod: return running_product(vm, args, out);
    case OP_matmul:
    case OP_dot:
    case OP_vecdot:
    case OP_outer:
    case OP_tensordot:
    case OP_linalg_kron:
    case OP_linalg_cross:
    case OP_einsum: return product(vm, op, kernel, args, out);
    default: return kernel(vm, args, out); /* says that it is not supported */
  }
}
