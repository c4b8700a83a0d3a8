/* linalg.c — decompositions and solutions by LAPACK, batched over leading axes: solve inv det slogdet cholesky qr svd
 * svdvals eigh eigvalsh eig eigvals lstsq, of real and of complex matrices. LAPACK takes columns one after another, so
 * a matrix in rows is its transpose there. */
#include "stdlib/linalg/apart.h"
#include "stdlib/linalg/blas.h"
#include "stdlib/array/make.h"
#include "stdlib/kernels/wm.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* One call: the library, and the operand as dense floats, which may be overwritten. */
typedef struct Call {
  Vm *vm;
  u32 op, dtype, bytes;
  u32 real, parts, real_bytes; /* the dtype of one part; 2 of complex numbers, else 1 */
  const Lapack *lib;
  Value x; /* owned, unique: one matrix after another */
  ArrayType type;
  i64 rows, cols, batches;
  char *work; /* owned */
  size_t work_size;
} Call;

static void call_end(Call *c) {
  value_drop(c->vm, c->x);
  if (c->work) mem_free(&c->vm->alloc, c->work, c->work_size);
}

/* The complex gemv of OpenBLAS 0.3.21 reads up to three elements behind its vector. Where that is a row of a matrix of
 * LAPACK, these lie in columns behind the matrix: memory that must be there. */
static size_t room_behind(const Call *c) {
  return c->parts == 1 ? 0 : 4 * (size_t)(c->rows > c->cols ? c->rows : c->cols) * c->bytes + 64;
}

/* A copy that may be overwritten, as floats, with `room` bytes behind it. */
static WeftStatus own_floats(Vm *vm, u32 op, Value v, u32 dtype, size_t room, Value *out) {
  TRY(dense_as(vm, op, v, dtype, out));
  WeftStatus status;
  if (room) {
    Value copy;
    vm->array_room = room;
    status = array_copy(vm, out->array, &copy);
    vm->array_room = 0;
    if (status == WEFT_OK) {
      value_drop(vm, *out);
      *out = copy;
      return WEFT_OK;
    }
  } else {
    status = array_make_unique(vm, out);
  }
  if (status != WEFT_OK) {
    value_drop(vm, *out);
    *out = value_hole();
  }
  return status;
}

static WeftStatus call_start_as(Vm *vm, u32 op, u32 param, Value v, u32 dtype, Call *c) {
  RuleError err;
  *c = (Call){.vm = vm, .op = op, .dtype = dtype, .bytes = dtype_bytes(dtype), .x = value_hole()};
  c->real = dtype_real_of(dtype);
  c->real_bytes = dtype_bytes(c->real);
  c->parts = c->real == dtype ? 1 : 2;
  TRY(args_array(vm, op, param, v));
  type_of_value(v, &c->type);
  TRY_RULE(vm, op, &err, shape_matrix(&c->type, &err));
  c->rows = c->type.dims[c->type.rank - 2];
  c->cols = c->type.dims[c->type.rank - 1];
  c->batches = dims_size(c->type.rank - 2, c->type.dims);
  if (c->rows >= INT_MAX / 4 || c->cols >= INT_MAX / 4)
    return vm_error(vm, EK_limit, "%s: shape %s is too large", op_name(op), shape_text(&c->type).s);
  c->lib = c->parts == 1 ? blas_load(dtype == DT_f64) : blas_load_complex(dtype == DT_c128);
  if (c->lib) (void)blas_use_threads(stdlib_of(vm)->blas_threads);
  if (!c->lib)
    return vm_error(vm, EK_unsupported, "%s: not supported: OpenBLAS (libopenblas.so.0) is not installed", op_name(op));
  TRY(kernel_poll(vm, v.kind == V_ARRAY ? v.array->size : 1));
  return own_floats(vm, op, v, dtype, room_behind(c), &c->x);
}

static WeftStatus call_start(Vm *vm, u32 op, Value v, Call *c) {
  if (!value_is_numeric(v)) return args_array(vm, op, 0, v);
  return call_start_as(vm, op, 0, v, dtype_float_of(v.kind == V_NUM ? v.dtype : array_dtype(v.array)), c);
}

static WeftStatus call_start_square(Vm *vm, u32 op, Value v, Call *c) {
  ArrayType type;
  RuleError err;
  TRY(args_array(vm, op, 0, v));
  type_of_value(v, &type);
  TRY_RULE(vm, op, &err, shape_square(NULL, &type, &err));
  return call_start(vm, op, v, c);
}

static char *matrix_at(Call *c, i64 b) { return (char *)c->x.array->data + b * c->rows * c->cols * c->bytes; }

/* At least `size` bytes of work space, kept until the end of the call. */
static WeftStatus work_space(Call *c, size_t size, void *out) {
  size += room_behind(c);
  if (size > c->work_size) {
    char *more = mem_alloc(&c->vm->alloc, size);
    if (!more) return vm_error_memory(c->vm);
    if (c->work) mem_free(&c->vm->alloc, c->work, c->work_size);
    c->work = more;
    c->work_size = size;
  }
  *(void **)out = c->work;
  return WEFT_OK;
}

/* The length that a work space query gave. */
static int query_length(const Call *c, const void *first) {
  f64 n = c->real == DT_f64 ? *(const f64 *)first : (f64) * (const f32 *)first;
  return n < 1 ? 1 : n > INT_MAX ? INT_MAX : (int)n;
}

/* One part of a number: of complex ones number 2 i is the real part of element i. */
static f64 load_f64(const Call *c, const void *at, i64 i) {
  return c->real == DT_f64 ? ((const f64 *)at)[i] : (f64)((const f32 *)at)[i];
}
static void store_f64(const Call *c, void *at, i64 i, f64 v) {
  if (c->real == DT_f64) ((f64 *)at)[i] = v;
  else ((f32 *)at)[i] = (f32)v;
}

/* to[j, i] = from[i, j], from having `rows` rows. */
static void transposed(const Call *c, const char *from, i64 rows, i64 cols, char *to) {
  enum { TILE = 16 };
  for (i64 i0 = 0; i0 < rows; i0 += TILE)
    for (i64 j0 = 0; j0 < cols; j0 += TILE)
      for (i64 i = i0; i < rows && i < i0 + TILE; i++)
        for (i64 j = j0; j < cols && j < j0 + TILE; j++)
          memcpy(to + (j * rows + i) * c->bytes, from + (i * cols + j) * c->bytes, c->bytes);
}

/* Leading axes, then a and b. */
static WeftStatus new_result_of(Call *c, u32 dtype, u32 kept, i64 a, i64 b, u32 more, Value *out) {
  ArrayType t = c->type;
  t.rank = (u8)kept;
  if (more > 0) t.dims[t.rank++] = a;
  if (more > 1) t.dims[t.rank++] = b;
  c->vm->array_room = room_behind(c);
  WeftStatus status = array_new(c->vm, dtype, t.rank, t.dims, out);
  c->vm->array_room = 0;
  return status;
}
static WeftStatus new_result(Call *c, u32 kept, i64 a, i64 b, u32 more, Value *out) {
  return new_result_of(c, c->dtype, kept, a, b, more, out);
}

static WeftStatus failed(const Call *c, const char *what) {
  return vm_error(c->vm, EK_value, "%s: %s", op_name(c->op), what);
}

/* The library prints complaints about NaN, and with infinities some of its loops do not end. lower: of a symmetric
 * matrix, as much as is read. */
static WeftStatus all_finite(const Call *c, const void *matrix, i64 rows, i64 cols, bool lower) {
  for (i64 i = 0; i < rows; i++)
    for (i64 j = 0; j < cols && (!lower || j <= i); j++)
      for (u32 k = 0; k < c->parts; k++)
        if (!isfinite(load_f64(c, matrix, (i * cols + j) * c->parts + k)))
          return failed(c, "a matrix holds NaN or an infinity");
  return WEFT_OK;
}

/* x of the call as the result, where the factor took its place. */
static void result_in_place(Call *c, Value *out) {
  *out = c->x;
  c->x = value_hole();
}

/* ---- eigenvalues of symmetric matrices ----------------------------------------------------------- */

/* The lower triangle is read, as NumPy does. vectors: x is overwritten by them, one after another. */
static void symmetric_call(Call *c, const char *job, void *a, void *w, void *work, int lwork, void *rwork, int lrwork,
                           int *iwork, int liwork, int *info) {
  const int n = (int)c->rows;
  if (c->parts == 1) c->lib->syevd(job, "U", &n, a, &n, w, work, &lwork, iwork, &liwork, info, 1, 1);
  else c->lib->heevd(job, "U", &n, a, &n, w, work, &lwork, rwork, &lrwork, iwork, &liwork, info, 1, 1);
}

static WeftStatus symmetric(Call *c, bool vectors, Value *values) {
  int n = (int)c->rows, info = 0, lwork, liwork, lrwork, iquery = 0;
  f64 query[2] = {0, 0}, rquery = 0;
  TRY(new_result_of(c, c->real, c->type.rank - 2u, c->rows, 0, 1, values));
  const char *job = vectors ? "V" : "N";
  if (n > 0 && c->batches > 0) {
    symmetric_call(c, job, matrix_at(c, 0), values->array->data, query, -1, &rquery, -1, &iquery, -1, &info);
    lwork = query_length(c, query);
    lrwork = query_length(c, &rquery);
    liwork = iquery < 1 ? 1 : iquery;
    size_t float_bytes = ((size_t)lwork * c->bytes + 15) & ~(size_t)15,
        real_bytes = ((size_t)lrwork * c->real_bytes + 15) & ~(size_t)15;
    char *work;
    WeftStatus status = work_space(c, float_bytes + real_bytes + (size_t)liwork * sizeof(int), &work);
    for (i64 b = 0; b < c->batches && status == WEFT_OK; b++) {
      char *w = (char *)values->array->data + b * c->rows * c->real_bytes;
      if ((status = all_finite(c, matrix_at(c, b), c->rows, c->cols, true)) != WEFT_OK) break;
      symmetric_call(c, job, matrix_at(c, b), w, work, lwork, work + float_bytes, lrwork,
                     (int *)(work + float_bytes + real_bytes), liwork, &info);
      if (info != 0) status = failed(c, "the eigenvalues did not converge");
    }
    if (status != WEFT_OK) {
      value_drop(c->vm, *values);
      return status;
    }
  }
  return WEFT_OK;
}

/* Two results as a list; consumes both. */
static WeftStatus pair(Vm *vm, Value a, Value b, Value *out) {
  if (!list_new(vm, 2, out)) {
    value_drop(vm, a);
    value_drop(vm, b);
    return WEFT_ERROR;
  }
  if (list_add(vm, out, a) != WEFT_OK) {
    value_drop(vm, b);
    return WEFT_ERROR;
  }
  return list_add(vm, out, b);
}

/* Of n complex numbers, in their place. */
static void conjugate(const Call *c, void *at, i64 n) {
  for (i64 i = 0; i < n && c->parts == 2; i++) store_f64(c, at, 2 * i + 1, -load_f64(c, at, 2 * i + 1));
}

/* The library sees the transpose, whose vectors are those of a Hermitian matrix, conjugated. */
static WeftStatus eigh_here(Vm *vm, Value *args, Value *out) {
  Call c = {.x = value_hole()};
  Value values, vectors;
  TRY(call_start_square(vm, OP_linalg_eigh, args[0], &c));
  WeftStatus status = symmetric(&c, true, &values);
  if (status == WEFT_OK) {
    status = new_result(&c, c.type.rank, 0, 0, 0, &vectors);
    if (status == WEFT_OK) {
      for (i64 b = 0; b < c.batches; b++)
        transposed(&c, matrix_at(&c, b), c.rows, c.cols, (char *)vectors.array->data + b * c.rows * c.cols * c.bytes);
      conjugate(&c, vectors.array->data, vectors.array->size);
      status = pair(vm, values, vectors, out);
    } else {
      value_drop(vm, values);
    }
  }
  call_end(&c);
  return status;
}

static WeftStatus eigvalsh_here(Vm *vm, Value *args, Value *out) {
  Call c = {.x = value_hole()};
  TRY(call_start_square(vm, OP_linalg_eigvalsh, args[0], &c));
  WeftStatus status = symmetric(&c, false, out);
  call_end(&c);
  return status;
}

static WeftStatus cholesky_here(Vm *vm, Value *args, Value *out) {
  Call c = {.x = value_hole()};
  bool upper = false;
  TRY(args_bool(vm, OP_linalg_cholesky, 1, args[1], &upper));
  TRY(call_start_square(vm, OP_linalg_cholesky, args[0], &c));
  WeftStatus status = WEFT_OK;
  int n = (int)c.rows, info = 0;
  for (i64 b = 0; b < c.batches && status == WEFT_OK && n > 0; b++) {
    char *a = matrix_at(&c, b);
    c.lib->potrf(upper ? "L" : "U", &n, a, &n, &info, 1); /* seen as columns, the other triangle */
    if (info != 0) status = failed(&c, "the matrix is not positive definite");
    for (i64 i = 0; i < n; i++) {
      if (upper) memset(a + i * n * c.bytes, 0, (size_t)i * c.bytes);
      else memset(a + (i * n + i + 1) * c.bytes, 0, (size_t)(n - i - 1) * c.bytes);
    }
  }
  if (status == WEFT_OK) result_in_place(&c, out);
  call_end(&c);
  return status;
}

/* ---- LU ------------------------------------------------------------------------------------------ */

static WeftStatus inv_here(Vm *vm, Value *args, Value *out) {
  Call c = {.x = value_hole()};
  TRY(call_start_square(vm, OP_linalg_inv, args[0], &c));
  int n = (int)c.rows, info = 0, lwork = -1;
  WeftStatus status = WEFT_OK;
  if (n > 0 && c.batches > 0) {
    f64 query[2] = {0, 0};
    int pivot_query = 0;
    c.lib->getri(&n, matrix_at(&c, 0), &n, &pivot_query, query, &lwork, &info);
    lwork = query_length(&c, query);
    size_t float_bytes = ((size_t)lwork * c.bytes + 15) & ~(size_t)15;
    char *work;
    status = work_space(&c, float_bytes + (size_t)n * sizeof(int), &work);
    for (i64 b = 0; b < c.batches && status == WEFT_OK; b++) {
      int *pivots = (int *)(work + float_bytes);
      c.lib->getrf(&n, &n, matrix_at(&c, b), &n, pivots, &info);
      if (info == 0) c.lib->getri(&n, matrix_at(&c, b), &n, pivots, work, &lwork, &info);
      if (info != 0) status = failed(&c, "the matrix is singular");
    }
  }
  if (status == WEFT_OK) result_in_place(&c, out);
  call_end(&c);
  return status;
}

/* Of the c->batches matrices one after another the sign and the magnitude of the determinant: mantissa *
 * 2^exponent, so that no product on the way overflows or vanishes, and the sum of the logarithms. A matrix that is
 * singular to the last bit has the sign 0: what LAPACK leaves behind a pivot of 0 may hold NaN. */
typedef struct Determinant {
  f64 sign, sign_im, mantissa, log; /* the sign of complex matrices is a complex number of length 1 */
  i64 exponent;
} Determinant;

static void determinant(Call *c, i64 b, int *pivots, Determinant *d) {
  int n = (int)c->rows, info = 0;
  char *a = matrix_at(c, b);
  bool finite = true;
  for (i64 i = 0; i < c->rows * c->cols * c->parts && finite; i++) finite = isfinite(load_f64(c, a, i));
  *d = (Determinant){1, 0, 1, 0, 0};
  if (n > 0) c->lib->getrf(&n, &n, a, &n, pivots, &info);
  if (info > 0) {
    *d = finite ? (Determinant){0, 0, 0, -INFINITY, 0} : (Determinant){NAN, NAN, NAN, NAN, 0};
    return;
  }
  for (i64 i = 0; i < n; i++) {
    f64 u = load_f64(c, a, (i * n + i) * c->parts), size = fabs(u);
    int e = 0, more = 0;
    if (c->parts == 1) {
      d->sign = u != u ? u : (u < 0) != (pivots[i] != i + 1) ? -d->sign : d->sign;
    } else {
      f64 v = load_f64(c, a, 2 * (i * n + i) + 1), turn = pivots[i] != i + 1 ? -1 : 1, re = d->sign;
      size = hypot(u, v);
      d->sign = turn * (re * (u / size) - d->sign_im * (v / size));
      d->sign_im = turn * (re * (v / size) + d->sign_im * (u / size));
    }
    d->mantissa *= isfinite(size) ? frexp(size, &e) : size;
    if (isfinite(d->mantissa)) d->mantissa = frexp(d->mantissa, &more);
    d->exponent += e + more;
    d->log += wm_log_f64(size);
  }
}

static WeftStatus determinants(Vm *vm, u32 op, Value x, Value *out) {
  Call c = {.x = value_hole()};
  Value signs = value_hole(), logs = value_hole();
  int *pivots;
  TRY(call_start_square(vm, op, x, &c));
  WeftStatus status = work_space(&c, (size_t)(c.rows + 1) * sizeof(int), &pivots);
  if (status == WEFT_OK) status = new_result(&c, c.type.rank - 2u, 0, 0, 0, &signs);
  if (status == WEFT_OK && op == OP_linalg_slogdet &&
      (status = new_result_of(&c, c.real, c.type.rank - 2u, 0, 0, 0, &logs)) != WEFT_OK) {
    value_drop(vm, signs);
  }
  for (i64 b = 0; status == WEFT_OK && b < c.batches; b++) {
    Determinant d;
    determinant(&c, b, pivots, &d);
    if (op == OP_linalg_slogdet) {
      store_f64(&c, signs.array->data, b * c.parts, d.sign);
      if (c.parts == 2) store_f64(&c, signs.array->data, 2 * b + 1, d.sign_im);
      store_f64(&c, logs.array->data, b, d.log);
    } else { /* far below and above every float at the ends of int */
      i64 e = d.exponent < -100000 ? -100000 : d.exponent > 100000 ? 100000 : d.exponent;
      store_f64(&c, signs.array->data, b * c.parts, d.sign * ldexp(d.mantissa, (int)e));
      if (c.parts == 2) store_f64(&c, signs.array->data, 2 * b + 1, d.sign_im * ldexp(d.mantissa, (int)e));
    }
  }
  call_end(&c);
  TRY(status);
  signs = array_finish(vm, signs);
  if (op == OP_linalg_slogdet) return pair(vm, signs, array_finish(vm, logs), out);
  *out = signs;
  return WEFT_OK;
}

static WeftStatus det_here(Vm *vm, Value *args, Value *out) { return determinants(vm, OP_linalg_det, args[0], out); }
static WeftStatus slogdet_here(Vm *vm, Value *args, Value *out) {
  return determinants(vm, OP_linalg_slogdet, args[0], out);
}

static WeftStatus solve_here(Vm *vm, Value *args, Value *out) {
  ArrayType at, bt, shape;
  const ArrayType *types[2] = {&at, &bt};
  DTypeResult r;
  RuleError err;
  Call c = {.x = value_hole()};
  Value b;
  TRY(args_array(vm, OP_linalg_solve, 0, args[0]));
  TRY(args_array(vm, OP_linalg_solve, 1, args[1]));
  type_of_value(args[0], &at);
  type_of_value(args[1], &bt);
  TRY_RULE(vm, OP_linalg_solve, &err, shape_solve(NULL, &at, &bt, &shape, &err));
  TRY_RULE(vm, OP_linalg_solve, &err, rule_dtype(OP_linalg_solve, 2, types, &r, &err));
  bool vector = bt.rank == 1;
  u32 batch_rank = shape.rank - (vector ? 1u : 2u);
  /* both at their full batch */
  ArrayType full = at;
  full.rank = (u8)(batch_rank + 2);
  memcpy(full.dims, shape.dims, batch_rank * sizeof(i64));
  memcpy(full.dims + batch_rank, at.dims + at.rank - 2, 2 * sizeof(i64));
  Value list, wide[2] = {value_keep(args[0]), value_nil()};
  if (!list_new(vm, full.rank, &list)) {
    value_drop(vm, wide[0]);
    return WEFT_ERROR;
  }
  for (u32 d = 0; d < full.rank; d++)
    if (list_add(vm, &list, value_weak_i64(full.dims[d])) != WEFT_OK) {
      value_drop(vm, list);
      value_drop(vm, wide[0]);
      return WEFT_ERROR;
    }
  wide[1] = list;
  TRY(run_op(vm, OP_broadcast_to, wide, 2, &wide[0]));
  WeftStatus status = call_start_as(vm, OP_linalg_solve, 0, wide[0], r.compute, &c);
  value_drop(vm, wide[0]);
  if (status != WEFT_OK) {
    call_end(&c);
    return status;
  }
  i64 n = c.rows, k = vector ? 1 : shape.dims[shape.rank - 1];
  status = dense_as(vm, OP_linalg_solve, args[1], r.compute, &b);
  if (status == WEFT_OK) status = array_new(vm, r.compute, shape.rank, shape.dims, out);
  else b = value_hole();
  bool made = status == WEFT_OK && b.kind == V_ARRAY;
  if (made && n > 0 && k > 0) {
    int ni = (int)n, ki = (int)k, info = 0;
    char *columns;
    size_t float_bytes = ((size_t)(n * k) * c.bytes + 15) & ~(size_t)15;
    status = work_space(&c, float_bytes + (size_t)n * sizeof(int), &columns);
    i64 strides[ARRAY_MAX_RANK], index[ARRAY_MAX_RANK] = {0}, from = 0;
    for (u32 d = 0; d < batch_rank; d++) {
      u32 back = batch_rank - d, own = vector ? 0 : bt.rank - 2;
      strides[d] = back > own || bt.dims[own - back] == 1 ? 0 : array_strides(b.array)[own - back];
    }
    for (i64 i = 0; i < c.batches && status == WEFT_OK; i++) {
      int *pivots = (int *)(columns + float_bytes);
      char *o = (char *)out->array->data + i * n * k * c.bytes;
      c.lib->getrf(&ni, &ni, matrix_at(&c, i), &ni, pivots, &info);
      if (info != 0) {
        status = failed(&c, "the matrix is singular");
        break;
      }
      transposed(&c, (const char *)b.array->data + from * c.bytes, n, k, columns);
      c.lib->getrs("T", &ni, &ki, matrix_at(&c, i), &ni, pivots, columns, &ni, &info, 1);
      transposed(&c, columns, k, n, o);
      for (u32 d = batch_rank; d-- > 0;) {
        from += strides[d];
        if (++index[d] < shape.dims[d]) break;
        from -= strides[d] * shape.dims[d];
        index[d] = 0;
      }
    }
    if (status != WEFT_OK) value_drop(vm, *out);
  }
  value_drop(vm, b);
  call_end(&c);
  return status;
}

/* ---- orthogonal factors -------------------------------------------------------------------------- */

static WeftStatus qr_here(Vm *vm, Value *args, Value *out) {
  static const char *const modes[] = {"reduced", "complete", NULL};
  Call c = {.x = value_hole()};
  u32 mode = 0;
  Value q, r;
  TRY(args_choice(vm, OP_linalg_qr, 1, args[1], modes, &mode));
  TRY(call_start(vm, OP_linalg_qr, args[0], &c));
  i64 m = c.rows, n = c.cols, k = m < n ? m : n, width = mode == 0 ? k : m; /* of Q */
  u32 kept = c.type.rank - 2u;
  WeftStatus status = new_result(&c, kept, m, width, 2, &q);
  if (status != WEFT_OK) goto end;
  status = new_result(&c, kept, width, n, 2, &r);
  if (status != WEFT_OK) {
    value_drop(vm, q);
    goto end;
  }
  memset(r.array->data, 0, (size_t)r.array->size * c.bytes);
  if (m > 0 && c.batches > 0) {
    int mi = (int)m, ni = (int)n, ki = (int)k, wi = (int)width, info = 0, query_length1 = -1, lwork;
    i64 wide = n > width ? n : width;
    size_t column_bytes = ((size_t)(m * wide) * c.bytes + 15) & ~(size_t)15,
        tau_bytes = ((size_t)(k + 1) * c.bytes + 15) & ~(size_t)15;
    f64 first[2] = {0, 0}, second[2] = {0, 0};
    char tau_query[16];
    c.lib->geqrf(&mi, &ni, matrix_at(&c, 0), &mi, tau_query, first, &query_length1, &info);
    c.lib->orgqr(&mi, &wi, &ki, matrix_at(&c, 0), &mi, tau_query, second, &query_length1, &info);
    lwork = query_length(&c, first) > query_length(&c, second) ? query_length(&c, first) : query_length(&c, second);
    char *columns, *tau, *work;
    status = work_space(&c, column_bytes + tau_bytes + (size_t)lwork * c.bytes, &columns);
    tau = columns + column_bytes;
    work = tau + tau_bytes;
    for (i64 b = 0; b < c.batches && status == WEFT_OK; b++) {
      transposed(&c, matrix_at(&c, b), m, n, columns);
      if (n > 0) c.lib->geqrf(&mi, &ni, columns, &mi, tau, work, &lwork, &info);
      char *rb = (char *)r.array->data + b * width * n * c.bytes;
      for (i64 i = 0; i < k; i++)
        for (i64 j = i; j < n; j++) memcpy(rb + (i * n + j) * c.bytes, columns + (j * m + i) * c.bytes, c.bytes);
      if (width > 0) c.lib->orgqr(&mi, &wi, &ki, columns, &mi, tau, work, &lwork, &info);
      transposed(&c, columns, width, m, (char *)q.array->data + b * m * width * c.bytes);
    }
  }
  if (status == WEFT_OK) {
    status = pair(vm, q, r, out);
  } else {
    value_drop(vm, q);
    value_drop(vm, r);
  }
end:
  call_end(&c);
  return status;
}

static void svd_call(Call *c, const char *job, void *a, void *s, void *u, int ldu, void *vt, int ldvt, void *work,
                     int lwork, void *rwork, int *iwork, int *info) {
  const int m = (int)c->cols, n = (int)c->rows; /* of the transpose */
  if (c->parts == 1) c->lib->gesdd(job, &m, &n, a, &m, s, u, &ldu, vt, &ldvt, work, &lwork, iwork, info, 1);
  else c->lib->complex_gesdd(job, &m, &n, a, &m, s, u, &ldu, vt, &ldvt, work, &lwork, rwork, iwork, info, 1);
}

/* The transpose A^T = V S U^T is what the library sees: its left vectors are V, in rows Vh. */
static WeftStatus svd(Call *c, bool vectors, bool full, Value *u, Value *s, Value *vh) {
  i64 m = c->rows, n = c->cols, k = m < n ? m : n, uw = full ? m : k, vw = full ? n : k;
  u32 kept = c->type.rank - 2u;
  *u = *s = *vh = value_hole();
  WeftStatus status = new_result_of(c, c->real, kept, k, 0, 1, s);
  if (status != WEFT_OK) {
    *s = value_hole();
    return status;
  }
  if (vectors) {
    status = new_result(c, kept, m, uw, 2, u);
    if (status != WEFT_OK) *u = value_hole();
    if (status == WEFT_OK && (status = new_result(c, kept, vw, n, 2, vh)) != WEFT_OK) *vh = value_hole();
  }
  if (status == WEFT_OK && k == 0 && vectors && full) { /* nothing to decompose: identities */
    for (u32 which = 0; which < 2; which++) {
      Array *a = (which ? vh : u)->array;
      i64 size = which ? n : m;
      memset(a->data, 0, (size_t)a->size * c->bytes);
      for (i64 b = 0; b < c->batches; b++)
        for (i64 i = 0; i < size; i++) store_f64(c, a->data, ((b * size + i) * size + i) * c->parts, 1);
    }
  }
  if (status == WEFT_OK && k > 0 && c->batches > 0) {
    int lwork, info = 0, iquery = 0, ldu = (int)n, ldvt = vectors ? (int)uw : 1;
    const char *job = !vectors ? "N" : full ? "A" : "S";
    f64 query[2] = {0, 0}, none[2] = {0, 0};
    svd_call(c, job, matrix_at(c, 0), s->array->data, none, ldu, none, ldvt, query, -1, none, &iquery, &info);
    lwork = query_length(c, query);
    const size_t least = (size_t)k, most = (size_t)(m > n ? m : n);
    const size_t reals = c->parts == 1 ? 0 : vectors ? least * (5 * least + 2 * most + 7) : 7 * least;
    size_t float_bytes = ((size_t)lwork * c->bytes + 15) & ~(size_t)15,
        real_bytes = (reals * c->real_bytes + 15) & ~(size_t)15;
    char *work;
    status = work_space(c, float_bytes + real_bytes + 8 * (size_t)k * sizeof(int), &work);
    for (i64 b = 0; b < c->batches && status == WEFT_OK; b++) {
      char *ub = vectors ? (char *)u->array->data + b * m * uw * c->bytes : (char *)none,
          *vb = vectors ? (char *)vh->array->data + b * vw * n * c->bytes : (char *)none;
      char *sb = (char *)s->array->data + b * k * c->real_bytes;
      if ((status = all_finite(c, matrix_at(c, b), m, n, false)) != WEFT_OK) break;
      svd_call(c, job, matrix_at(c, b), sb, vb, ldu, ub, ldvt, work, lwork, work + float_bytes,
               (int *)(work + float_bytes + real_bytes), &info);
      if (info != 0) status = failed(c, "the singular values did not converge");
    }
  }
  if (status != WEFT_OK) {
    value_drop(c->vm, *u);
    value_drop(c->vm, *s);
    value_drop(c->vm, *vh);
  }
  return status;
}

static WeftStatus svd_here(Vm *vm, Value *args, Value *out) {
  Call c = {.x = value_hole()};
  bool full = true;
  Value parts[3];
  TRY(args_bool(vm, OP_linalg_svd, 1, args[1], &full));
  TRY(call_start(vm, OP_linalg_svd, args[0], &c));
  WeftStatus status = svd(&c, true, full, &parts[0], &parts[1], &parts[2]);
  call_end(&c);
  TRY(status);
  if (!list_new(vm, 3, out)) status = WEFT_ERROR;
  for (u32 i = 0; i < 3; i++) {
    if (status == WEFT_OK) status = list_add(vm, out, parts[i]);
    else value_drop(vm, parts[i]);
  }
  return status;
}

/* In f64 whatever the matrix is: a small singular value of a matrix in f32 would have an error of the size of the
 * largest one's last place, and another one with every processor. */
static WeftStatus svdvals_here(Vm *vm, Value *args, Value *out) {
  Call c = {.x = value_hole()};
  Value v = args[0], u, s, vh;
  TRY(args_array(vm, OP_linalg_svdvals, 0, v));
  TRY(call_start_as(vm, OP_linalg_svdvals, 0, v, dtype_kind(v.dtype) == DK_COMPLEX ? DT_c128 : DT_f64, &c));
  WeftStatus status = svd(&c, false, false, &u, &s, &vh);
  call_end(&c);
  TRY(status);
  status = dense_as(vm, OP_linalg_svdvals, s, dtype_real_of(dtype_float_of(v.dtype)), out);
  value_drop(vm, s);
  return status;
}

static WeftStatus lstsq_here(Vm *vm, Value *args, Value *out) {
  ArrayType at, bt;
  const ArrayType *types[2] = {&at, &bt};
  DTypeResult r;
  RuleError err;
  Call c = {.x = value_hole()};
  Value b;
  TRY(args_array(vm, OP_linalg_lstsq, 0, args[0]));
  TRY(args_array(vm, OP_linalg_lstsq, 1, args[1]));
  type_of_value(args[0], &at);
  type_of_value(args[1], &bt);
  TRY_RULE(vm, OP_linalg_lstsq, &err, rule_dtype(OP_linalg_lstsq, 2, types, &r, &err));
  if (at.rank != 2 || bt.rank < 1 || bt.rank > 2 || bt.dims[0] != at.dims[0])
    return vm_error(vm, EK_shape, "linalg.lstsq: shapes %s and %s: needs a matrix and as many right-hand rows",
                    shape_text(&at).s, shape_text(&bt).s);
  TRY(call_start_as(vm, OP_linalg_lstsq, 0, args[0], r.compute, &c));
  i64 m = c.rows, n = c.cols, k = bt.rank == 2 ? bt.dims[1] : 1, tall = m > n ? m : n, least = m < n ? m : n;
  i64 dims[2] = {n, k};
  WeftStatus status = dense_as(vm, OP_linalg_lstsq, args[1], r.compute, &b);
  if (status != WEFT_OK) {
    call_end(&c);
    return status;
  }
  status = array_new_zero(vm, r.compute, bt.rank, dims, out);
  if (status == WEFT_OK && least > 0 && k > 0) {
    status = all_finite(&c, matrix_at(&c, 0), m, n, false);
    if (status == WEFT_OK) status = all_finite(&c, b.array->data, m, k, false);
    if (status != WEFT_OK) value_drop(vm, *out);
  }
  if (status == WEFT_OK && least > 0 && k > 0) {
    int mi = (int)m, ni = (int)n, ki = (int)k, ld = (int)tall, rank = 0, lwork = -1, iquery = 0, info = 0;
    f64 query[2] = {0, 0}, rquery = 0, rcond64 = 0x1p-52 * (f64)tall;
    f32 rcond32 = 0x1p-23f * (f32)tall;
    const void *rcond = c.real == DT_f64 ? (const void *)&rcond64 : &rcond32;
    char none[16];
    if (c.parts == 1)
      c.lib->gelsd(&mi, &ni, &ki, none, &mi, none, &ld, none, rcond, &rank, query, &lwork, &iquery, &info);
    else
      c.lib->complex_gelsd(&mi, &ni, &ki, none, &mi, none, &ld, none, rcond, &rank, query, &lwork, &rquery, &iquery,
                           &info);
    lwork = query_length(&c, query);
    size_t r_bytes = c.parts == 1 ? 0 : ((size_t)query_length(&c, &rquery) * c.real_bytes + 15) & ~(size_t)15;
    size_t a_bytes = ((size_t)(m * n) * c.bytes + 15) & ~(size_t)15,
        b_bytes = ((size_t)(tall * k) * c.bytes + 15) & ~(size_t)15;
    size_t s_bytes = ((size_t)least * c.bytes + 15) & ~(size_t)15,
        w_bytes = ((size_t)lwork * c.bytes + 15) & ~(size_t)15;
    char *work;
    status = work_space(&c,
                        a_bytes + b_bytes + s_bytes + w_bytes + r_bytes +
                            (size_t)(iquery < 1 ? 1 : iquery) * sizeof(int), &work);
    if (status == WEFT_OK) {
      char *a_columns = work, *b_columns = work + a_bytes, *s = b_columns + b_bytes, *w = s + s_bytes;
      transposed(&c, matrix_at(&c, 0), m, n, a_columns);
      memset(b_columns, 0, b_bytes);
      for (i64 i = 0; i < m; i++)
        for (i64 j = 0; j < k; j++)
          memcpy(b_columns + (j * tall + i) * c.bytes, (char *)b.array->data + (i * k + j) * c.bytes, c.bytes);
      int *iwork = (int *)(w + w_bytes + r_bytes);
      if (c.parts == 1)
        c.lib->gelsd(&mi, &ni, &ki, a_columns, &mi, b_columns, &ld, s, rcond, &rank, w, &lwork, iwork, &info);
      else
        c.lib->complex_gelsd(&mi, &ni, &ki, a_columns, &mi, b_columns, &ld, s, rcond, &rank, w, &lwork, w + w_bytes,
                             iwork, &info);
      if (info != 0) status = failed(&c, "the singular values did not converge");
      for (i64 i = 0; i < n; i++)
        for (i64 j = 0; j < k; j++)
          memcpy((char *)out->array->data + (i * k + j) * c.bytes, b_columns + (j * tall + i) * c.bytes, c.bytes);
    }
    if (status != WEFT_OK) value_drop(vm, *out);
  }
  value_drop(vm, b);
  call_end(&c);
  return status;
}

/* ---- eigenvalues of any matrix -------------------------------------------------------------------- */

/* One matrix, whose columns are overwritten, and its vectors as columns (job "V"). Of a real matrix `w` has all real
 * parts, then all imaginary ones, and of a conjugate pair the vectors' columns are the two parts of the first. */
static void eigen_call(const Call *c, const char *job, void *columns, void *w, void *vectors, void *work, int lwork,
                       void *rwork, int *info) {
  const int n = (int)c->rows, one = 1;
  const int *wide = job[0] == 'V' ? &n : &one;
  f64 none[2];
  if (c->parts == 1)
    c->lib->geev("N", job, &n, columns, &n, w, (char *)w + (size_t)n * c->bytes, none, &one, vectors, wide, work,
                 &lwork, info, 1, 1);
  else
    c->lib->complex_geev("N", job, &n, columns, &n, w, none, &one, vectors, wide, work, &lwork, rwork, info, 1, 1);
}

/* The complex numbers that real parts and imaginary ones of a real matrix stand for: conjugates to the last bit. */
static void eigen_values_of(const Call *c, const char *w, void *values) {
  for (i64 j = 0; j < c->rows; j++)
    for (i64 k = 0; k < 2; k++) store_f64(c, values, 2 * j + k, load_f64(c, w, k * c->rows + j));
}
static void eigen_vectors_of(const Call *c, const char *w, const char *columns, void *vectors) {
  const i64 n = c->rows;
  for (i64 j = 0; j < n; j++) {
    const f64 turn = load_f64(c, w, n + j); /* above 0: the first of a pair */
    const i64 first = turn < 0 ? j - 1 : j;
    for (i64 i = 0; i < n; i++) {
      const f64 im = turn == 0 ? 0 : load_f64(c, columns, (first + 1) * n + i);
      store_f64(c, vectors, 2 * (i * n + j), load_f64(c, columns, first * n + i));
      store_f64(c, vectors, 2 * (i * n + j) + 1, turn < 0 ? -im : im);
    }
  }
}

/* Complex ones, of real matrices too, by the library's routine for these. vectors may be NULL. */
static WeftStatus eigen(Vm *vm, u32 op, Value x, Value *values, Value *vectors) {
  ArrayType type;
  RuleError err;
  Call c = {.x = value_hole()};
  TRY(args_array(vm, op, 0, x));
  type_of_value(x, &type);
  TRY_RULE(vm, op, &err, shape_square(NULL, &type, &err));
  const u32 made = dtype_complex_of(dtype_float_of(x.dtype)), number = dtype_bytes(made);
  WeftStatus status = call_start_as(vm, op, 0, x, dtype_kind(x.dtype) == DK_COMPLEX ? made : dtype_real_of(made), &c);
  if (status == WEFT_OK) status = new_result_of(&c, made, c.type.rank - 2u, c.rows, 0, 1, values);
  if (status == WEFT_OK && vectors &&
      (status = new_result_of(&c, made, c.type.rank, 0, 0, 0, vectors)) != WEFT_OK)
    value_drop(vm, *values);
  if (status == WEFT_OK && c.rows > 0 && c.batches > 0) {
    int info = 0;
    const char *job = vectors ? "V" : "N";
    f64 query[2] = {0, 0}, none[2] = {0, 0};
    eigen_call(&c, job, none, none, none, query, -1, none, &info);
    const int lwork = query_length(&c, query);
    const size_t square = ((size_t)(c.rows * c.cols) * c.bytes + 15) & ~(size_t)15,
                 line = ((size_t)c.rows * number + 15) & ~(size_t)15,
                 float_bytes = ((size_t)lwork * c.bytes + 15) & ~(size_t)15;
    char *columns;
    status = work_space(&c, 2 * square + line + float_bytes + line, &columns);
    for (i64 b = 0; b < c.batches && status == WEFT_OK; b++) {
      char *found = columns + square, *w = found + square, *work = w + line;
      if ((status = all_finite(&c, matrix_at(&c, b), c.rows, c.cols, false)) != WEFT_OK) break;
      transposed(&c, matrix_at(&c, b), c.rows, c.cols, columns);
      eigen_call(&c, job, columns, w, found, work, lwork, work + float_bytes, &info);
      if (info != 0) {
        status = failed(&c, "the eigenvalues did not converge");
        break;
      }
      char *to = (char *)values->array->data + b * c.rows * number,
           *vectors_to = vectors ? (char *)vectors->array->data + b * c.rows * c.cols * number : NULL;
      if (c.parts == 2) {
        memcpy(to, w, (size_t)c.rows * number);
        if (vectors) transposed(&c, found, c.rows, c.cols, vectors_to);
      } else {
        eigen_values_of(&c, w, to);
        if (vectors) eigen_vectors_of(&c, w, found, vectors_to);
      }
    }
    if (status != WEFT_OK) {
      value_drop(vm, *values);
      if (vectors) value_drop(vm, *vectors);
    }
  }
  call_end(&c);
  return status;
}

static WeftStatus eig_here(Vm *vm, Value *args, Value *out) {
  Value values, vectors;
  TRY(eigen(vm, OP_linalg_eig, args[0], &values, &vectors));
  return pair(vm, values, vectors, out);
}
static WeftStatus eigvals_here(Vm *vm, Value *args, Value *out) {
  return eigen(vm, OP_linalg_eigvals, args[0], out, NULL);
}

/* ---- the stack ------------------------------------------------------------------------------------------- */

/* OpenBLAS takes 2 MiB of it for a factorisation, whatever the size. */
enum { LIBRARY_STACK = 4 << 20 };

typedef struct StackCall {
  Vm *vm;
  EagerFn fn;
  Value *args, *out;
  WeftStatus status;
} StackCall;

static void run_call(void *ctx) {
  StackCall *c = ctx;
  c->status = c->fn(c->vm, c->args, c->out);
}

static WeftStatus on_large_stack(Vm *vm, EagerFn fn, Value *args, Value *out) {
  if (cstack_has(LIBRARY_STACK)) return fn(vm, args, out);
  StackCall c = {.vm = vm, .fn = fn, .args = args, .out = out};
  return cstack_run(LIBRARY_STACK, run_call, &c) ? c.status : vm_error_stack(vm);
}

/* ---- how long it may take ------------------------------------------------------------------------------ */

/* Multiplications, about, for each of rows * columns * the shorter of both: of what is done once, as an LU
 * factorisation, and of what goes on until it converges. */
static f64 effort_of(u32 op) {
  switch (op) {
    case OP_linalg_cholesky: case OP_linalg_det: case OP_linalg_slogdet: case OP_linalg_solve: return 1;
    case OP_linalg_inv: case OP_linalg_qr: return 4;
    case OP_linalg_eigvalsh: case OP_linalg_svdvals: return 8;
    case OP_linalg_eigvals: case OP_linalg_eig: return 50;
    default: return 20;
  }
}

static f64 effort(u32 op, const Value *args) {
  ArrayType a, b;
  if (!value_is_numeric(args[0])) return 0;
  type_of_value(args[0], &a);
  if (a.rank < 2) return 0;
  const f64 rows = (f64)a.dims[a.rank - 2], columns = (f64)a.dims[a.rank - 1], size = (f64)dims_size(a.rank, a.dims);
  f64 work = size * (rows < columns ? rows : columns) * effort_of(op);
  if ((op == OP_linalg_solve || op == OP_linalg_lstsq) && value_is_numeric(args[1])) {
    type_of_value(args[1], &b);
    work += (f64)dims_size(b.rank, b.dims) * columns;
  }
  return dtype_kind(a.dtype) == DK_COMPLEX ? 4 * work : work;
}

/* Nothing stops the library, so what may take some ten milliseconds is done apart. */
static WeftStatus library_call(Vm *vm, u32 op, EagerFn fn, Value *args, Value *out) {
  const f64 apart_from = 3e8;
  bool done = false;
  if (effort(op, args) >= apart_from) TRY(apart_run(vm, op, fn, args, out, &done));
  return done ? WEFT_OK : on_large_stack(vm, fn, args, out);
}

WeftStatus eager_linalg_eigh(Vm *vm, Value *args, Value *out) {
  return library_call(vm, OP_linalg_eigh, eigh_here, args, out);
}
WeftStatus eager_linalg_eigvalsh(Vm *vm, Value *args, Value *out) {
  return library_call(vm, OP_linalg_eigvalsh, eigvalsh_here, args, out);
}
WeftStatus eager_linalg_cholesky(Vm *vm, Value *args, Value *out) {
  return library_call(vm, OP_linalg_cholesky, cholesky_here, args, out);
}
WeftStatus eager_linalg_inv(Vm *vm, Value *args, Value *out) {
  return library_call(vm, OP_linalg_inv, inv_here, args, out);
}
WeftStatus eager_linalg_det(Vm *vm, Value *args, Value *out) {
  return library_call(vm, OP_linalg_det, det_here, args, out);
}
WeftStatus eager_linalg_slogdet(Vm *vm, Value *args, Value *out) {
  return library_call(vm, OP_linalg_slogdet, slogdet_here, args, out);
}
WeftStatus eager_linalg_solve(Vm *vm, Value *args, Value *out) {
  return library_call(vm, OP_linalg_solve, solve_here, args, out);
}
WeftStatus eager_linalg_qr(Vm *vm, Value *args, Value *out) {
  return library_call(vm, OP_linalg_qr, qr_here, args, out);
}
WeftStatus eager_linalg_svd(Vm *vm, Value *args, Value *out) {
  return library_call(vm, OP_linalg_svd, svd_here, args, out);
}
WeftStatus eager_linalg_svdvals(Vm *vm, Value *args, Value *out) {
  return library_call(vm, OP_linalg_svdvals, svdvals_here, args, out);
}
WeftStatus eager_linalg_eig(Vm *vm, Value *args, Value *out) {
  return library_call(vm, OP_linalg_eig, eig_here, args, out);
}
WeftStatus eager_linalg_eigvals(Vm *vm, Value *args, Value *out) {
  return library_call(vm, OP_linalg_eigvals, eigvals_here, args, out);
}
WeftStatus eager_linalg_lstsq(Vm *vm, Value *args, Value *out) {
  return library_call(vm, OP_linalg_lstsq, lstsq_here, args, out);
}
