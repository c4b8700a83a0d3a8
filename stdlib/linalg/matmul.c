/* matmul.c — matrix products, and what is made of them: matmul dot vecdot outer tensordot einsum. */
#include "stdlib/linalg/blas.h"
#include "lang/mechanisms.h"
#include "stdlib/linalg/contract.h"
#include "stdlib/kernels/kernel_matmul.h"
#include "stdlib/array/make.h"
#include "stdlib/array/reduce.h"
#include "stdlib/kernels/reduce_order.h"
#include "stdlib/array/walk.h"

#include <limits.h>
#include <string.h>

enum {
  /* multiplications up to which compiled loops have the product inline: plain sums of products */
  SMALL_PRODUCT = 512,
  /* multiplications up to which the library is not asked: it is no faster, and takes 5 ms to load */
  OWN_PRODUCT = 96 * 96 * 96,
  /* the same where enough rows use the other matrix (if its columns lie together, it is made anew in rows first): */
  OWN_LONGER = 1 << 23,
  MANY_ROWS = 256,            /* these, */
  SOME_ROWS = 64,             /* or these, of f64 and a matrix with at most */
  NARROW = 64,                /* so many rows or columns */
  OWN_SHARED = 1 << 19,       /* multiplications from which the pool's threads share a product made here */
  OWN_ROWS = 128,             /* that stay in the caches while all columns go by */
  OWN_VECTOR = 128 * 64,      /* the same for a matrix and a vector, */
  ROW_PRODUCT = 128 * 128,    /* and for a single row and a matrix that stays in the caches */
  /* of a part: the other matrix is arranged anew for each, which takes as long as a product of some rows */
  ROWS_EACH = 128,
  /* multiplications from which the pool's threads share a product: below, to wake them takes too long */
  SHARED_PRODUCT = 1 << 25,
  /* multiplications between two looks at the clock, some 10 ms each: of the library's products and those made here */
  PRODUCT_PART = 1 << 28,
  OWN_PART = 1 << 27,
  /* of a matrix and a vector, which wait for memory; of types that have a plain loop alone */
  VECTOR_PART = 1 << 24,
  PLAIN_PART = 1 << 24,
  /* rows, columns and terms that the parts of a product have at least: the library arranges both matrices anew for each
   * part, which takes 5 % of the time of a product of 512 by 512 by 512 */
  PART_EDGE = 512,
  COPIED_WHOLE = 1 << 15, /* elements of an operand of einsum up to which it is copied as a whole, if it is no matrix */
};

/* One matrix of an operand as the library takes it: its memory, whether rows or columns lie together, and how far
 * apart the others are. */
typedef struct Side {
  Value dense;   /* owned: what `data` lies in */
  const char *data;
  i64 rows, cols;
  i64 batch[ARRAY_MAX_RANK]; /* strides in elements of the batch axes, as broadcast */
  bool transposed;           /* columns lie together */
  i64 apart;
} Side;

/* The last two axes of a as they lie, when one has stride 1 and the other is no shorter than it. */
static bool lies_well(i64 rows, i64 cols, i64 rs, i64 cs, bool *transposed, i64 *apart) {
  *transposed = false;
  if ((cs == 1 || cols <= 1) && (rs >= cols || rows <= 1)) {
    *apart = rows <= 1 || rs < cols ? cols : rs;
    return true;
  }
  if ((rs == 1 || rows <= 1) && (cs >= rows || cols <= 1)) {
    *transposed = true;
    *apart = cols <= 1 || cs < rows ? rows : cs;
    return true;
  }
  return false;
}

/* `v` as matrices: as_row: a vector is one row, else one column. */
static WeftStatus side_make(Vm *vm, u32 op, Value v, u32 dtype, bool as_row, bool rows_together,
                            u32 batch_rank, Side *s) {
  Value same;
  TRY(convert_value(vm, op, v, dtype, &same));
  Array *a = same.array;
  for (u32 turn = 0;; turn++) {
    u32 rank = array_rank(a);
    const i64 *dims = array_dims(a), *strides = array_strides(a);
    bool vector = rank == 1;
    i64 rs, cs;
    s->rows = vector ? as_row ? 1 : dims[0] : dims[rank - 2];
    s->cols = vector ? as_row ? dims[0] : 1 : dims[rank - 1];
    rs = vector ? as_row ? dims[0] : strides[0] : strides[rank - 2];
    cs = vector ? as_row ? strides[0] : 1 : strides[rank - 1];
    bool well = lies_well(s->rows, s->cols, rs, cs, &s->transposed, &s->apart);
    if (well && (!rows_together || (!s->transposed && s->apart == s->cols))) break;
    Value dense;
    WeftStatus status = dense_as(vm, op, same, dtype, &dense);
    value_drop(vm, same);
    TRY(status);
    same = dense;
    a = same.array;
    if (turn) break;
  }
  s->dense = same;
  s->data = a->data;
  u32 own = array_rank(a) == 1 ? 0 : array_rank(a) - 2;
  for (u32 d = 0; d < batch_rank; d++) {
    u32 back = batch_rank - d;
    s->batch[d] = back > own || array_dims(a)[own - back] == 1 ? 0 : array_strides(a)[own - back];
  }
  return WEFT_OK;
}

/* Its elements lie together. */
static bool row_together(const Side *x) { return x->rows == 1 && (!x->transposed || x->apart == 1); }
static bool is_column(const Side *y) { return y->cols == 1 && !y->transposed && y->apart == 1; }

/* Is a product of floats made here, in the one order that StripMatrix has? By its size alone: the same product has the
 * same bits. */
static bool is_own(u32 dtype, i64 m, i64 n, i64 k, i64 work) {
  if (work <= SMALL_PRODUCT) return false;
  if (m == 1) return n * k <= ROW_PRODUCT;
  if (n == 1) return work <= OWN_VECTOR;
  bool many = m >= MANY_ROWS || (dtype == DT_f64 && m >= SOME_ROWS && (n <= NARROW || k <= NARROW));
  return work <= (many && cpu_has(CPU_FMA) ? OWN_LONGER : OWN_PRODUCT);
}

static const f64 one64 = 1, zero64 = 0;
static const f32 one32 = 1, zero32 = 0;
static const void *one_of(u32 dtype) { return dtype == DT_f64 ? (const void *)&one64 : &one32; }
static const void *zero_of(u32 dtype) { return dtype == DT_f64 ? (const void *)&zero64 : &zero32; }

typedef struct Product { /* c = x @ y, or (add) c += x @ y, in down * across parts */
  const Lapack *lib;
  const Side *x, *y;
  const char *xd, *yd;
  char *c;
  i64 m, n, k, apart; /* of rows of c */
  i64 down, across;
  u32 dtype;
  bool add;
} Product;

static i64 part_at(i64 n, i64 parts, i64 i) { return i == parts ? n : n * i / parts & ~(i64)15; }

static void product_part(void *ctx, i64 part) {
  const Product *p = ctx;
  const Side *x = p->x, *y = p->y;
  i64 i = part / p->across, j = part % p->across, bytes = dtype_bytes(p->dtype);
  i64 row = part_at(p->m, p->down, i), rows = part_at(p->m, p->down, i + 1) - row,
      col = part_at(p->n, p->across, j), cols = part_at(p->n, p->across, j + 1) - col;
  int mi = (int)rows, ni = (int)cols, ki = (int)p->k, lx = (int)x->apart, ly = (int)y->apart, lc = (int)p->apart;
  const char *xd = p->xd + row * (x->transposed ? 1 : x->apart) * bytes,
      *yd = p->yd + col * (y->transposed ? y->apart : 1) * bytes;
  if (rows && cols)
    p->lib->gemm(y->transposed ? "T" : "N", x->transposed ? "T" : "N", &ni, &mi, &ki, one_of(p->dtype), yd, &ly, xd,
                 &lx, p->add ? one_of(p->dtype) : zero_of(p->dtype), p->c + (row * p->apart + col) * bytes, &lc, 1,
                 1);
}

/* Large ones by the threads of the pool: the library's own would wait for more beside them while kernels run. Each
 * takes some rows, or where that would be few a part as square as can be. */
static void product_by_threads(Vm *vm, Product *p) {
  i64 threads = pool_threads(vm), m = p->m, n = p->n, least = 0;
  p->down = p->across = 1;
  if (threads > 1 && m * n >= SHARED_PRODUCT / p->k && blas_use_threads(1)) {
    for (i64 down = m >= threads * ROWS_EACH ? threads : 1; down <= threads; down++) {
      i64 across = threads / down, longer = m / down > n / across ? m / down : n / across;
      if (down * across != threads || (least && longer > least)) continue;
      least = longer;
      p->down = down;
      p->across = across;
    }
  } else {
    (void)blas_use_threads(stdlib_of(vm)->blas_threads);
  }
  (void)!pool_run(vm, p->down * p->across, true, product_part, p); /* whole: nothing is polled, so nothing is raised */
}

/* Of n the length of equal parts, so many that `work` is no more than PRODUCT_PART in each, or that they are short. */
static i64 part_of(i64 n, i64 work) {
  i64 parts = work / PRODUCT_PART + 1, each = (n + parts - 1) / parts;
  if (each < PART_EDGE) each = PART_EDGE;
  return each >= n ? n : (each + 63) & ~(i64)63;
}

/* Large ones in parts with looks at the clock between them: of the terms first, since the library goes by parts of
 * these itself, then of columns and rows. By the sizes alone: the same product has the same bits. */
static WeftStatus product_in_parts(Vm *vm, Product *p) {
  const i64 m = p->m, n = p->n, k = p->k, bytes = dtype_bytes(p->dtype), terms = part_of(k, m * n * k),
            columns = part_of(n, m * n * terms), rows = part_of(m, m * columns * terms);
  const i64 x_row = p->x->transposed ? 1 : p->x->apart, x_term = p->x->transposed ? p->x->apart : 1,
            y_term = p->y->transposed ? 1 : p->y->apart, y_column = p->y->transposed ? p->y->apart : 1;
  for (i64 i = 0; i < m; i += rows)
    for (i64 j = 0; j < n; j += columns)
      for (i64 q = 0; q < k; q += terms) {
        Product part = *p;
        if (i + j + q) TRY(vm_poll(vm, 0));
        part.m = m - i < rows ? m - i : rows;
        part.n = n - j < columns ? n - j : columns;
        part.k = k - q < terms ? k - q : terms;
        part.xd += (i * x_row + q * x_term) * bytes;
        part.yd += (q * y_term + j * y_column) * bytes;
        part.c += (i * p->apart + j) * bytes;
        part.add = q > 0;
        product_by_threads(vm, &part);
      }
  return WEFT_OK;
}

/* One made here: some rows after another, block by block of k, so that the order of the terms stays. */
typedef struct OwnProduct {
  StripMatrix matrix;
  const char *x, *y;
  char *c;
  i64 m, n, k, row, along, apart, parts;
  u32 bytes;
} OwnProduct;

static void own_part(void *ctx, i64 part) {
  const OwnProduct *p = ctx;
  const i64 end = part_at(p->m, p->parts, part + 1);
  for (i64 i = part_at(p->m, p->parts, part), rows; i < end; i += rows) {
    rows = end - i < OWN_ROWS ? end - i : OWN_ROWS;
    for (i64 q = 0; q < p->k; q += STRIP_MATRIX_K)
      p->matrix(p->c + i * p->n * p->bytes, p->x + (i * p->row + q * p->along) * p->bytes,
                p->y + q * p->apart * p->bytes, rows, p->n, p->k - q < STRIP_MATRIX_K ? p->k - q : STRIP_MATRIX_K,
                p->row, p->along, p->apart, q > 0);
  }
}

static void product_own(Vm *vm, OwnProduct p) {
  p.parts = p.m * p.n >= OWN_SHARED / p.k ? pool_threads(vm) : 1;
  if (p.parts > 1) (void)!pool_run(vm, p.parts, true, own_part, &p); /* nothing is polled */
  else own_part(&p, 0);
}

/* c (dense rows) = x @ y, but for products of two matrices by the library. */
static void product(Vm *vm, bool own, const Lapack *lib, u32 dtype, const Side *x, const char *xd, const Side *y,
                    const char *yd, void *c) {
  i64 m = x->rows, n = y->cols, k = x->cols;
  const StripTable *strips = stdlib_of(vm)->strips;
  if (own) {
    i64 along = x->transposed ? x->apart : 1;
    if (m == 1 && !y->transposed) {
      strips->product[dtype](c, xd, yd, n, k, along, y->apart, false);
      return;
    }
    OwnProduct p = {.matrix = strips->matrix[dtype], .c = c, .k = k, .bytes = dtype_bytes(dtype)};
    if (m == 1) { /* columns lie together: they are the rows, times a column */
      p.x = yd, p.row = y->apart, p.along = 1, p.m = n;
      p.y = xd, p.apart = along, p.n = 1;
    } else {
      p.x = xd, p.row = x->transposed ? 1 : x->apart, p.along = along, p.m = m;
      p.y = yd, p.apart = y->apart, p.n = n;
    }
    product_own(vm, p);
    return;
  }
  if (!lib) {
    matmul_own(dtype, m, n, k, xd, yd, c);
    return;
  }
  int mi = (int)m, ni = (int)n, ki = (int)k, lx = (int)x->apart, ly = (int)y->apart, one = 1;
  (void)blas_use_threads(stdlib_of(vm)->blas_threads);
  const void *alpha = one_of(dtype), *beta = zero_of(dtype);
  if (is_column(y)) {
    int rows = x->transposed ? mi : ki, cols = x->transposed ? ki : mi;
    lib->gemv(x->transposed ? "N" : "T", &rows, &cols, alpha, xd, &lx, yd, &one, beta, c, &one, 1);
    return;
  }
  int rows = y->transposed ? ki : ni, cols = y->transposed ? ni : ki;
  lib->gemv(y->transposed ? "T" : "N", &rows, &cols, alpha, yd, &ly, xd, &one, beta, c, &one, 1);
}

/* c (dense rows) = x @ y, large ones in parts with looks at the clock between them. WEFT_ERROR: one raised, and parts
 * are missing. */
static WeftStatus product_polled(Vm *vm, bool own, const Lapack *lib, u32 dtype, const Side *x, const char *xd,
                                 const Side *y, const char *yd, char *c) {
  const i64 m = x->rows, n = y->cols, k = x->cols, bytes = dtype_bytes(dtype);
  if (!own && lib && !is_column(y) && !row_together(x)) {
    Product p = {.lib = lib, .x = x, .y = y, .xd = xd, .yd = yd, .c = c, .m = m, .n = n, .k = k, .apart = n,
                 .dtype = dtype};
    return product_in_parts(vm, &p);
  }
  /* some rows after another, or columns of a single row; the plain loop takes all columns */
  const bool by_rows = m > 1 || (!own && !lib);
  i64 each = (own ? OWN_PART : lib ? VECTOR_PART : PLAIN_PART) / (by_rows ? n * k : k) & ~(i64)15;
  if (each < 16) each = own || lib ? 16 : 4;
  Side part = by_rows ? *x : *y;
  const i64 count = by_rows ? m : n, step = part.transposed == by_rows ? 1 : part.apart;
  for (i64 i = 0, some; i < count; i += some) {
    some = count - i < 2 * each ? count - i : each;
    if (i) TRY(vm_poll(vm, 0));
    if (by_rows) part.rows = some;
    else part.cols = some;
    product(vm, own, lib, dtype, by_rows ? &part : x, by_rows ? xd + i * step * bytes : xd, by_rows ? y : &part,
            by_rows ? yd : yd + i * step * bytes, c + i * (by_rows ? n : 1) * bytes);
  }
  return WEFT_OK;
}

/* Two vectors of n floats each: the sum of their products in the order of sums, block by block. */
static WeftStatus inner(Vm *vm, Array *xa, Array *ya, i64 n, Value *out) {
  enum { BLOCK_BYTES = REDUCE_LANE_BYTES * REDUCE_BLOCK_ROWS, SOME = 64 };
  _Alignas(64) char block[BLOCK_BYTES];
  u64 some[SOME], sum[1] = {0};
  u32 dtype = array_dtype(xa), bytes = dtype_bytes(dtype);
  const StripTable *strips = stdlib_of(vm)->strips;
  StripFn times = strips->ops[OP_multiply][dtype];
  StripRows rows = strips->rows[REDUCE_ADD][dtype];
  i64 each = BLOCK_BYTES / bytes, blocks = (n + each - 1) / each;
  char *sums = (char *)some;
  if (blocks > SOME && !(sums = mem_alloc(&vm->alloc, (size_t)blocks * bytes))) return vm_error_memory(vm);
  Reader x, y;
  reader_start(&x, strips, xa, 1, &n, dtype);
  reader_start(&y, strips, ya, 1, &n, dtype);
  bool any = reader_any_length(&x) && reader_any_length(&y);
  WeftStatus status = WEFT_OK;
  for (i64 b = 0; b < blocks && status == WEFT_OK; b++) {
    i64 m = n - b * each < each ? n - b * each : each;
    for (i64 i = 0; i < m;) {
      i64 k = any || m - i < STRIP ? m - i : STRIP;
      const void *left = reader_next(&x, k);
      (void)times(block + i * bytes, left, reader_next(&y, k), k);
      i += k;
    }
    rows(sums + b * bytes, block, m, 1, 0);
    if (b % SOME == SOME - 1) status = kernel_poll(vm, SOME * each / 16);
  }
  if (status == WEFT_OK && blocks) rows(sum, sums, blocks, 1, 0);
  if (blocks > SOME) mem_free(&vm->alloc, sums, (size_t)blocks * bytes);
  if (status == WEFT_OK) *out = num_load(sum, dtype);
  return status;
}

/* A matrix of this type as it lies; false: it must be made so first. */
static bool plain_side(const Array *a, u32 dtype, bool rows_together, Side *s) {
  const i64 *dims = a->geometry, *strides = dims + 2;
  if (array_rank(a) != 2 || array_dtype(a) != dtype || array_device(a) != DEV_CPU) return false;
  s->data = a->data;
  s->rows = dims[0];
  s->cols = dims[1];
  return lies_well(dims[0], dims[1], strides[0], strides[1], &s->transposed, &s->apart) && s->apart < INT_MAX &&
         (!rows_together || (!s->transposed && s->apart == s->cols));
}

/* May a product of m by n be written over `a`, which nobody else holds? */
static bool takes_product(const Array *a, u32 dtype, i64 m, i64 n) {
  return array_rank(a) == 2 && array_dtype(a) == dtype && a->geometry[0] == m && a->geometry[1] == n &&
         array_device(a) == DEV_CPU && array_dense(a) && array_writable(a);
}

/* Two matrices of one float type, as they mostly come, without the rules: loops over small products wait for those.
 * PAIR_OTHER: the general way. */
PairWent matmul_pair(Vm *vm, u32 op, const Array *xa, const Array *ya, Value *out) {
  (void)op;
  if (array_rank(xa) != 2 || array_rank(ya) != 2) return PAIR_OTHER;
  u32 dtype = array_dtype(xa);
  i64 m = xa->geometry[0], k = xa->geometry[1], n = ya->geometry[1];
  if ((dtype != DT_f64 && dtype != DT_f32) || ya->geometry[0] != k || m < 1 || n < 1 || k < 1 || m >= INT_MAX ||
      n >= INT_MAX || k >= 1 << 20)
    return PAIR_OTHER;
  Side x, y;
  i64 work;
  if (__builtin_mul_overflow(m * n, k, &work)) return PAIR_OTHER;
  bool own = is_own(dtype, m, n, k, work), small = work <= SMALL_PRODUCT;
  const Lapack *lib = own || small ? NULL : blas_load(dtype == DT_f64);
  own |= !lib && !small;
  if (!plain_side(xa, dtype, small, &x) || !plain_side(ya, dtype, small, &y) || (own && y.transposed && m > 1))
    return PAIR_OTHER;
  if (kernel_poll(vm, work / 16) != WEFT_OK) return PAIR_FAILED;
  const bool fresh = out->kind != V_ARRAY || !takes_product(out->array, dtype, m, n);
  if (fresh && array_new(vm, dtype, 2, (i64[2]){m, n}, out) != WEFT_OK) return PAIR_FAILED;
  if (product_polled(vm, own, lib, dtype, &x, x.data, &y, y.data, out->array->data) == WEFT_OK) return PAIR_DONE;
  if (fresh) {
    value_drop(vm, *out);
    *out = value_hole();
  }
  return PAIR_FAILED;
}

static WeftStatus matmul(Vm *vm, u32 op, Value xv, Value yv, Value *out) MUST_USE;
static WeftStatus matmul_reshape_to(Vm *vm, Value x, u32 rank, const i64 *dims, Value *out) MUST_USE;

/* An axis of the result, and how far apart its elements are in the operands; 0: the operand does not have it. */
typedef struct Spread {
  i64 dim, x, y;
} Spread;

/* The axes of a result of products, of 1 left out. */
static u32 spread(const ArrayType *shape, Array *x, Array *y, Spread *axes) {
  u32 xr = array_rank(x), yr = array_rank(y), batch = shape->rank - (xr >= 2) - (yr >= 2), count = 0;
  for (u32 d = 0; d < shape->rank; d++) {
    Spread a = {.dim = shape->dims[d]};
    u32 back = batch - d; /* of a batch axis: from the last of them */
    if (d < batch) {
      if (back + 2 <= xr && array_dims(x)[xr - 2 - back] != 1) a.x = array_strides(x)[xr - 2 - back];
      if (back + 2 <= yr && array_dims(y)[yr - 2 - back] != 1) a.y = array_strides(y)[yr - 2 - back];
    } else if (d == batch && xr >= 2) {
      a.x = array_strides(x)[xr - 2];
    } else {
      a.y = array_strides(y)[yr - 1];
    }
    if (a.dim != 1) axes[count++] = a;
  }
  return count;
}

/* Products of many small operands that are one product of two matrices: the first axes of the result belong to one
 * operand alone, the others to the other alone, as those of vmap(a => vmap(b => dot(a, b))(y))(x). *done: it was. */
static WeftStatus one_product(Vm *vm, u32 op, Value xv, Value yv, const ArrayType *shape, bool *done, Value *out) {
  Spread axes[ARRAY_MAX_RANK + 2];
  Array *side[2] = {xv.array, yv.array};
  i64 size[2] = {1, 1}, step[2] = {1, 1}, dims[2], strides[2];
  u32 rank[2] = {array_rank(xv.array), array_rank(yv.array)}, group = 0;
  u32 count = spread(shape, xv.array, yv.array, axes);
  *done = false;
  if (count == 0) return WEFT_OK;
  bool y_first = axes[0].y != 0;
  for (u32 i = count; i-- > 0;) { /* the last axis first: the second matrix's columns, then the first one's rows */
    i64 ours = axes[i].x, others = axes[i].y;
    if (axes[i].dim == 0 || (ours == 0) == (others == 0)) return WEFT_OK;
    u32 in = (ours == 0) == y_first ? 0 : 1; /* the first group or the second */
    if (in == 1 && group) return WEFT_OK;
    group |= in == 0;
    i64 stride = ours ? ours : others;
    if (size[in] == 1) step[in] = stride;
    else if (stride != step[in] * size[in]) return WEFT_OK;
    size[in] *= axes[i].dim;
  }
  u32 first = y_first, second = !y_first; /* of `side` */
  i64 inner[2] = {array_strides(side[0])[rank[0] - 1], array_strides(side[1])[rank[1] >= 2 ? rank[1] - 2 : 0]};
  i64 k = array_dims(xv.array)[rank[0] - 1];
  Value a, b, c;
  dims[0] = size[0], dims[1] = k, strides[0] = step[0], strides[1] = inner[first];
  TRY(array_view(vm, side[first], 0, 2, dims, strides, &a));
  dims[0] = k, dims[1] = size[1], strides[0] = inner[second], strides[1] = step[1];
  WeftStatus status = array_view(vm, side[second], 0, 2, dims, strides, &b);
  if (status == WEFT_OK) {
    status = matmul(vm, op, a, b, &c);
    value_drop(vm, b);
  }
  value_drop(vm, a);
  if (status == WEFT_OK) status = matmul_reshape_to(vm, c, shape->rank, shape->dims, out);
  *done = status == WEFT_OK;
  return status;
}

static WeftStatus matmul(Vm *vm, u32 op, Value xv, Value yv, Value *out) {
  WeftStatus status;
  *out = value_hole();
  PairWent went = xv.kind == V_ARRAY && yv.kind == V_ARRAY ? matmul_pair(vm, op, xv.array, yv.array, out) : PAIR_OTHER;
  if (went != PAIR_OTHER) return went == PAIR_DONE ? WEFT_OK : WEFT_ERROR;
  ArrayType xt, yt, shape;
  const ArrayType *types[2] = {&xt, &yt};
  DTypeResult r;
  RuleError err;
  Side x, y;
  void *data;
  TRY(args_array(vm, op, 0, xv));
  TRY(args_array(vm, op, 1, yv));
  type_of_value(xv, &xt);
  type_of_value(yv, &yt);
  TRY_RULE(vm, op, &err, shape_matmul(NULL, &xt, &yt, &shape, &err));
  TRY_RULE(vm, op, &err, rule_dtype(op, 2, types, &r, &err));
  u32 dtype = r.compute, bytes = dtype_bytes(dtype);
  bool floats = dtype == DT_f32 || dtype == DT_f64;
  u32 kept = (xt.rank >= 2) + (yt.rank >= 2), batch_rank = shape.rank - kept;
  i64 m = xt.rank >= 2 ? xt.dims[xt.rank - 2] : 1, k = xt.dims[xt.rank - 1],
      n = yt.rank >= 2 ? yt.dims[yt.rank - 1] : 1;
  if (batch_rank && xv.kind == V_ARRAY && yv.kind == V_ARRAY) {
    bool done;
    status = one_product(vm, op, xv, yv, &shape, &done, out);
    if (done || status != WEFT_OK) return status;
  }
  i64 work;
  /* the result will not be made */
  if (__builtin_mul_overflow(m, n, &work) || __builtin_mul_overflow(work, k, &work)) work = INT64_MAX;
  TRY(kernel_poll(vm, work / 16));
  if (floats && xt.rank == 1 && yt.rank == 1 && xt.dtype == yt.dtype) return inner(vm, xv.array, yv.array, k, out);
  bool own = floats && is_own(dtype, m, n, k, work), small = work <= SMALL_PRODUCT,
      fits = m < INT_MAX && n < INT_MAX && k < INT_MAX;
  const Lapack *lib = floats && !own && !small && fits ? blas_load(dtype == DT_f64) : NULL;
  own |= floats && !lib && !small;
  TRY(side_make(vm, op, xv, dtype, true, !own && !lib, batch_rank, &x));
  if (side_make(vm, op, yv, dtype, false, own ? m > 1 : !lib, batch_rank, &y) != WEFT_OK) {
    value_drop(vm, x.dense);
    return WEFT_ERROR;
  }
  if (lib && (x.apart >= INT_MAX || y.apart >= INT_MAX)) {
    lib = NULL;
    own = !y.transposed || m == 1;
  }
  status = result_new(vm, dtype, &shape, out, &data);
  const bool made = status == WEFT_OK;
  if (status == WEFT_OK && k == 0) memset(data, 0, (size_t)out->array->size * bytes);
  if (status == WEFT_OK && k > 0) {
    i64 index[ARRAY_MAX_RANK] = {0}, since = 0, batches = out->array->size ? dims_size(batch_rank, shape.dims) : 0;
    const char *xd = x.data, *yd = y.data;
    char *c = data;
    for (i64 b = 0; b < batches && status == WEFT_OK; b++, c += m * n * bytes) {
      status = product_polled(vm, own, lib, dtype, &x, xd, &y, yd, c);
      if ((since += m * n * k) >= VECTOR_PART && status == WEFT_OK) status = vm_poll(vm, 0), since = 0;
      for (u32 d = batch_rank; d-- > 0;) {
        xd += x.batch[d] * bytes;
        yd += y.batch[d] * bytes;
        if (++index[d] < shape.dims[d]) break;
        xd -= x.batch[d] * shape.dims[d] * bytes;
        yd -= y.batch[d] * shape.dims[d] * bytes;
        index[d] = 0;
      }
    }
  }
  value_drop(vm, x.dense);
  value_drop(vm, y.dense);
  if (status == WEFT_OK) result_finish(vm, out);
  else if (made) value_drop(vm, *out);
  return status;
}

WeftStatus eager_matmul(Vm *vm, Value *args, Value *out) { return matmul(vm, OP_matmul, args[0], args[1], out); }

/* ---- made of products ---------------------------------------------------------------------------- */

static WeftStatus matmul_reshape_to(Vm *vm, Value x, u32 rank, const i64 *dims, Value *out) { /* consumes x */
  Value list;
  if (!list_new(vm, rank, &list)) {
    value_drop(vm, x);
    return WEFT_ERROR;
  }
  for (u32 d = 0; d < rank; d++)
    if (list_add(vm, &list, value_weak_i64(dims[d])) != WEFT_OK) {
      value_drop(vm, x);
      return WEFT_ERROR;
    }
  Value args[2] = {x, list};
  return run_op(vm, OP_reshape, args, 2, out);
}

/* The axes of x (consumed) in the order of perm. */
static WeftStatus permute(Vm *vm, Value x, u32 rank, const u32 *perm, Value *out) {
  i64 dims[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK];
  for (u32 d = 0; d < rank; d++) {
    dims[d] = array_dims(x.array)[perm[d]];
    strides[d] = array_strides(x.array)[perm[d]];
  }
  WeftStatus status = array_view(vm, x.array, 0, rank, dims, strides, out);
  value_drop(vm, x);
  return status;
}

static i64 size_of(u32 n, const u32 *axes, const i64 *dims) {
  i64 p = 1;
  for (u32 i = 0; i < n; i++) p *= dims[axes[i]];
  return p;
}

/* Sums over n pairs of axes; free axes of a, then of b. */
static WeftStatus contract(Vm *vm, u32 op, Value av, Value bv, u32 n, const u32 *aa, const u32 *ba,
                           const ArrayType *shape, Value *out) {
  Value a, b;
  ArrayType at, bt;
  u32 ap[ARRAY_MAX_RANK], bp[ARRAY_MAX_RANK], na = 0, nb = n;
  type_of_value(av, &at);
  type_of_value(bv, &bt);
  for (u32 d = 0; d < at.rank; d++) {
    bool used = false;
    for (u32 i = 0; i < n; i++) used |= aa[i] == d;
    if (!used) ap[na++] = d;
  }
  for (u32 i = 0; i < n; i++) {
    ap[na + i] = aa[i];
    bp[i] = ba[i];
  }
  for (u32 d = 0; d < bt.rank; d++) {
    bool used = false;
    for (u32 i = 0; i < n; i++) used |= ba[i] == d;
    if (!used) bp[nb++] = d;
  }
  i64 k = size_of(n, aa, at.dims), ad[2] = {size_of(na, ap, at.dims), k}, bd[2] = {k, size_of(nb - n, bp + n, bt.dims)};
  TRY(boxed(vm, av, &a));
  TRY(permute(vm, a, at.rank, ap, &a));
  TRY(matmul_reshape_to(vm, a, 2, ad, &a));
  WeftStatus status = boxed(vm, bv, &b);
  if (status == WEFT_OK) status = permute(vm, b, bt.rank, bp, &b);
  if (status == WEFT_OK) status = matmul_reshape_to(vm, b, 2, bd, &b);
  if (status == WEFT_OK) {
    status = matmul(vm, op, a, b, out);
    value_drop(vm, b);
  }
  value_drop(vm, a);
  TRY(status);
  return matmul_reshape_to(vm, *out, shape->rank, shape->dims, out);
}

WeftStatus eager_dot(Vm *vm, Value *args, Value *out) {
  ArrayType x, y, shape;
  RuleError err;
  TRY(args_array(vm, OP_dot, 0, args[0]));
  TRY(args_array(vm, OP_dot, 1, args[1]));
  type_of_value(args[0], &x);
  type_of_value(args[1], &y);
  TRY_RULE(vm, OP_dot, &err, shape_dot(NULL, &x, &y, &shape, &err));
  if (x.rank == 0 || y.rank == 0) {
    Value both[2] = {value_keep(args[0]), value_keep(args[1])};
    TRY(run_op(vm, OP_multiply, both, 2, out));
    *out = strong(*out);
    return WEFT_OK;
  }
  if (x.rank == 1 && y.rank == 1) return matmul(vm, OP_dot, args[0], args[1], out);
  u32 xa = x.rank - 1u, ya = y.rank >= 2 ? y.rank - 2u : 0;
  return contract(vm, OP_dot, args[0], args[1], 1, &xa, &ya, &shape, out);
}

WeftStatus eager_vecdot(Vm *vm, Value *args, Value *out) {
  ArrayType x, y, shape;
  const ArrayType *types[2] = {&x, &y};
  DTypeResult r;
  RuleError err;
  i64 axis = -1;
  TRY(args_array(vm, OP_vecdot, 0, args[0]));
  TRY(args_array(vm, OP_vecdot, 1, args[1]));
  TRY(args_int(vm, OP_vecdot, 2, args[2], &axis));
  type_of_value(args[0], &x);
  type_of_value(args[1], &y);
  TRY_RULE(vm, OP_vecdot, &err, shape_vecdot(NULL, &x, &y, axis, &shape, &err));
  TRY_RULE(vm, OP_vecdot, &err, rule_dtype(OP_vecdot, 2, types, &r, &err));
  u32 rank = x.rank > y.rank ? x.rank : y.rank;
  Value both[2] = {value_keep(args[0]), value_keep(args[1])}, products, sum;
  TRY(run_op(vm, OP_multiply, both, 2, &products));
  WeftStatus status = reduce_value(vm, OP_vecdot, REDUCE_ADD, products, dtype_accum(r.compute),
                                   1u << (axis < 0 ? axis + rank : axis), false, &sum);
  value_drop(vm, products);
  TRY(status);
  status = convert_value(vm, OP_vecdot, sum, r.compute, out);
  value_drop(vm, sum);
  return status;
}

WeftStatus eager_outer(Vm *vm, Value *args, Value *out) {
  Value column[1] = {value_hole()}, row[1] = {value_hole()};
  TRY(args_array(vm, OP_outer, 0, args[0]));
  TRY(args_array(vm, OP_outer, 1, args[1]));
  row[0] = value_keep(args[1]);
  TRY(run_op(vm, OP_ravel, row, 1, &row[0]));
  column[0] = value_keep(args[0]);
  i64 dims[2] = {args[0].kind == V_ARRAY ? args[0].array->size : 1, 1};
  Value both[2] = {value_hole(), row[0]};
  if (matmul_reshape_to(vm, column[0], 2, dims, &both[0]) != WEFT_OK) {
    value_drop(vm, row[0]);
    return WEFT_ERROR;
  }
  return run_op(vm, OP_multiply, both, 2, out);
}

WeftStatus eager_tensordot(Vm *vm, Value *args, Value *out) {
  ArrayType x, y, shape;
  RuleError err;
  i64 xa[ARRAY_MAX_RANK], ya[ARRAY_MAX_RANK], count = 2;
  u32 xu[ARRAY_MAX_RANK], yu[ARRAY_MAX_RANK], n, m;
  bool single;
  TRY(args_array(vm, OP_tensordot, 0, args[0]));
  TRY(args_array(vm, OP_tensordot, 1, args[1]));
  type_of_value(args[0], &x);
  type_of_value(args[1], &y);
  Value axes = args[2];
  if (axes.kind == V_LIST) { /* one list of axes for each */
    if (axes.list->count != 2) return args_error(vm, OP_tensordot, 2, axes, "an integer, or two lists of axes");
    TRY(args_ints(vm, OP_tensordot, 2, axes.list->items[0], xa, ARRAY_MAX_RANK, &n, &single));
    TRY(args_ints(vm, OP_tensordot, 2, axes.list->items[1], ya, ARRAY_MAX_RANK, &m, &single));
    if (n != m) return vm_error(vm, EK_value, "tensordot: %u axes of the first meet %u of the second", n, m);
  } else {
    TRY(args_size(vm, OP_tensordot, 2, axes, &count));
    if (count > x.rank || count > y.rank)
      return vm_error(vm, EK_shape, "tensordot: shapes %s and %s have not %lld axes each", shape_text(&x).s,
                      shape_text(&y).s, (long long)count);
    n = (u32)count;
    for (u32 i = 0; i < n; i++) {
      xa[i] = (i64)(x.rank - n + i);
      ya[i] = i;
    }
  }
  TRY_RULE(vm, OP_tensordot, &err, shape_tensordot(NULL, &x, &y, n, xa, ya, xu, yu, &shape, &err));
  return contract(vm, OP_tensordot, args[0], args[1], n, xu, yu, &shape, out);
}

/* ---- einsum -------------------------------------------------------------------------------------- */

/* An operand on its way: an array whose axes are different labels. */
typedef struct Term {
  Value x; /* owned */
  u32 rank;
  u8 labels[ARRAY_MAX_RANK];
} Term;

static u32 term_mask(const Term *t) {
  u32 mask = 0;
  for (u32 d = 0; d < t->rank; d++) mask |= 1u << t->labels[d];
  return mask;
}

/* Operand i with each label once (a repeated one walks a diagonal) and at its full size. */
static WeftStatus term_make(Vm *vm, Value v, const EinsumPlan *plan, u32 i, Term *t) {
  Value box;
  i64 dims[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK];
  TRY(boxed(vm, v, &box));
  Array *a = box.array;
  t->rank = 0;
  for (u32 d = 0; d < array_rank(a); d++) {
    u8 label = plan->axes[i][d];
    i64 step = array_dims(a)[d] == 1 ? 0 : array_strides(a)[d];
    const EinsumWindow *w = &plan->windows[i][d];
    for (u32 k = 0; w->second && k < 2; k++) { /* two axes that walk this one */
      t->labels[t->rank] = k ? (u8)(w->second - 1) : label;
      dims[t->rank] = plan->dims[t->labels[t->rank]];
      strides[t->rank++] = step * w->steps[k];
    }
    if (w->second) continue;
    u32 at = 0;
    while (at < t->rank && t->labels[at] != label) at++;
    if (at < t->rank) {
      strides[at] += step;
      continue;
    }
    t->labels[t->rank] = label;
    dims[t->rank] = plan->dims[label];
    strides[t->rank++] = step;
  }
  WeftStatus status = array_view(vm, a, 0, t->rank, dims, strides, &t->x);
  value_drop(vm, box);
  return status;
}

/* Sums away the labels in `mask`; the dtype stays that of the product. */
static WeftStatus term_sum(Vm *vm, Term *t, u32 mask, u32 dtype) {
  u32 axes = 0, n = 0;
  for (u32 d = 0; d < t->rank; d++)
    if (mask >> t->labels[d] & 1) axes |= 1u << d;
  if (!axes) return WEFT_OK;
  Value sum, same;
  TRY(reduce_value(vm, OP_einsum, REDUCE_ADD, t->x, dtype_accum(dtype), axes, false, &sum));
  WeftStatus status = convert_value(vm, OP_einsum, sum, dtype, &same);
  value_drop(vm, sum);
  TRY(status);
  value_drop(vm, t->x);
  t->x = value_hole();
  status = boxed(vm, same, &t->x);
  value_drop(vm, same);
  for (u32 d = 0; d < t->rank; d++)
    if (!(axes >> d & 1)) t->labels[n++] = t->labels[d];
  t->rank = n;
  return status;
}

/* t->x with its labels in the order of `want`, as three axes of the sizes of its parts. */
static WeftStatus term_matrices(Vm *vm, Term *t, const u8 *want, const u32 counts[3], Value *out) {
  u32 perm[ARRAY_MAX_RANK];
  i64 dims[3] = {1, 1, 1};
  for (u32 i = 0, part = 0, left = counts[0]; i < t->rank; i++) {
    while (left == 0) left = counts[++part];
    for (u32 d = 0; d < t->rank; d++)
      if (t->labels[d] == want[i]) perm[i] = d;
    dims[part] *= array_dims(t->x.array)[perm[i]];
    left--;
  }
  Value x = t->x;
  t->x = value_hole();
  TRY(permute(vm, x, t->rank, perm, &x));
  return matmul_reshape_to(vm, x, 3, dims, out);
}

/* The letters of two operands of a product: of both and kept, of one alone, of both and summed. */
typedef struct Letters {
  u32 batch_count, sum_count, own_count[2];
  u8 batch[ARRAY_MAX_RANK], sum[ARRAY_MAX_RANK], own[2][ARRAY_MAX_RANK];
} Letters;

static u32 axis_of(const Term *t, u8 letter) {
  u32 d = 0;
  while (t->labels[d] != letter) d++;
  return d;
}

/* Do axes with these letters lie as one axis? Then that is its size and stride. */
static bool lie_as_one(const Term *t, const u8 *letters, u32 n, i64 *size, i64 *step) {
  i64 next = 0;
  bool any = false;
  *size = *step = 1;
  for (u32 i = n; i-- > 0;) {
    u32 d = axis_of(t, letters[i]);
    i64 dim = array_dims(t->x.array)[d], stride = array_strides(t->x.array)[d];
    if (dim == 1) continue;
    if (any && stride != next) return false;
    if (!any) *step = stride;
    any = true;
    next = stride * dim;
    *size *= dim;
  }
  return true;
}

static i64 elements_of(const Term *t) { return dims_size(t->rank, array_dims(t->x.array)); }

/* Would operand `side` be copied as a whole to be matrices, and is that much? Then blocks of it are copied. */
static bool wants_blocks(const Term *t, const Letters *l, u32 side) {
  i64 terms, own, term_step, own_step, apart;
  bool turned;
  return elements_of(t) >= COPIED_WHOLE && !(lie_as_one(t, l->batch, l->batch_count, &terms, &term_step) &&
                                             lie_as_one(t, l->sum, l->sum_count, &terms, &term_step) &&
                                             lie_as_one(t, l->own[side], l->own_count[side], &own, &own_step) &&
                                             lies_well(terms, own, term_step, own_step, &turned, &apart));
}

/* The product with operand `side` taken block by block, its axes in the order of their letters: that of the result. */
static WeftStatus term_blocks(Vm *vm, Term *t[2], const Letters *l, u32 side, const EinsumPlan *plan, u32 dtype,
                              Value *out, u8 *order) {
  const u8 *kinds[4] = {l->batch, l->own[!side], l->sum, l->own[side]};
  Contraction k = {.dtype = dtype, .ranks = {l->batch_count, l->own_count[!side], l->sum_count, l->own_count[side]}};
  u8 want[ARRAY_MAX_RANK];
  u32 rank = 0, at = 0, n = 0;
  i64 dims[ARRAY_MAX_RANK];
  for (u32 kind = 0; kind < 3; kind++)
    for (u32 i = 0; i < k.ranks[kind]; i++) want[n++] = kinds[kind][i];
  for (u8 letter = 0; letter < EINSUM_MAX_LABELS; letter++)
    if (memchr(l->batch, letter, l->batch_count) || memchr(l->own[0], letter, l->own_count[0]) ||
        memchr(l->own[1], letter, l->own_count[1])) {
      dims[rank] = plan->dims[letter];
      order[rank++] = letter;
    }
  Value x;
  Term other = *t[!side]; /* what is made of it is dropped here */
  value_keep(other.x);
  TRY(term_matrices(vm, &other, want, k.ranks, &x));
  WeftStatus status = array_new(vm, dtype, rank, dims, out);
  if (status == WEFT_OK) {
    Array *y = t[side]->x.array;
    for (u32 kind = 0; kind < 4; kind++)
      for (u32 i = 0; i < k.ranks[kind]; i++) {
        u8 letter = kinds[kind][i];
        const u8 *place = memchr(order, letter, rank);
        k.axes[at++] = (ContractAxis){.dim = plan->dims[letter],
                                      .y = kind == 1 ? 0 : array_strides(y)[axis_of(t[side], letter)],
                                      .c = place ? array_strides(out->array)[place - order] : 0};
      }
    k.x = x.array->data;
    k.stack = array_strides(x.array)[0];
    k.row = array_strides(x.array)[1];
    k.along = array_strides(x.array)[2];
    k.y = y->data;
    k.c = out->array->data;
    status = contract_blocks(vm, &k);
    if (status != WEFT_OK) value_drop(vm, *out);
  }
  value_drop(vm, x);
  return status;
}

/* a (consumed) and b (consumed) into a: labels in `keep` stay, others that both have are summed. */
static WeftStatus term_pair(Vm *vm, Term *a, Term *b, u32 keep, const EinsumPlan *plan) {
  u32 both = term_mask(a) & term_mask(b);
  u8 order[2 * ARRAY_MAX_RANK];
  Letters l = {0};
  for (u32 d = 0; d < a->rank; d++) {
    u8 letter = a->labels[d];
    if (!(both >> letter & 1)) l.own[0][l.own_count[0]++] = letter;
    else if (keep >> letter & 1) l.batch[l.batch_count++] = letter;
    else l.sum[l.sum_count++] = letter;
  }
  for (u32 d = 0; d < b->rank; d++)
    if (!(both >> b->labels[d] & 1)) l.own[1][l.own_count[1]++] = b->labels[d];
  u32 nb = l.batch_count, na = l.own_count[0], nc = l.sum_count, nf = l.own_count[1], rank = nb + na + nf;
  if (rank > ARRAY_MAX_RANK)
    return vm_error(vm, EK_shape, "einsum: an intermediate result has rank %u; the limit is %d", rank, ARRAY_MAX_RANK);
  Value x, y, z;
  u32 dtype = array_dtype(a->x.array);
  bool blocks[2] = {wants_blocks(a, &l, 0), wants_blocks(b, &l, 1)};
  if ((blocks[0] || blocks[1]) && nc && (dtype == DT_f32 || dtype == DT_f64) && elements_of(a) && elements_of(b) &&
      cpu_has(CPU_FMA) && MECHANISM(vm, view_blocks)) {
    Term *both_terms[2] = {a, b};
    u32 side = blocks[0] && blocks[1] ? elements_of(b) > elements_of(a) : blocks[1];
    TRY(term_blocks(vm, both_terms, &l, side, plan, dtype, &z, order));
    value_drop(vm, a->x);
    value_drop(vm, b->x);
    b->x = value_hole();
    a->x = z;
    a->rank = rank;
    memcpy(a->labels, order, rank);
    return WEFT_OK;
  }
  memcpy(order, l.batch, nb);
  memcpy(order + nb, l.own[0], na);
  memcpy(order + nb + na, l.sum, nc);
  TRY(term_matrices(vm, a, order, (u32[3]){nb, na, nc}, &x));
  memcpy(order + nb, l.sum, nc);
  memcpy(order + nb + nc, l.own[1], nf);
  WeftStatus status = term_matrices(vm, b, order, (u32[3]){nb, nc, nf}, &y);
  if (status == WEFT_OK) {
    status = matmul(vm, OP_einsum, x, y, &z);
    value_drop(vm, y);
  }
  value_drop(vm, x);
  TRY(status);
  i64 dims[ARRAY_MAX_RANK];
  memcpy(order + nb, l.own[0], na);
  memcpy(order + nb + na, l.own[1], nf);
  for (u32 d = 0; d < rank; d++) dims[d] = plan->dims[order[d]];
  a->rank = rank;
  memcpy(a->labels, order, rank);
  TRY(matmul_reshape_to(vm, z, rank, dims, &z));
  status = boxed(vm, z, &a->x);
  value_drop(vm, z);
  return status;
}

WeftStatus eager_einsum(Vm *vm, Value *args, Value *out) {
  ArrayType types[EINSUM_MAX_OPERANDS], shape;
  const ArrayType *ptrs[EINSUM_MAX_OPERANDS];
  const Value *items;
  EinsumPlan plan;
  DTypeResult r;
  RuleError err;
  u32 n;
  if (args[0].kind != V_TEXT) return args_error(vm, OP_einsum, 0, args[0], "text, such as \"ij,jk->ik\"");
  TRY(args_list(vm, OP_einsum, 1, args[1], &items, &n));
  for (u32 i = 0; i < n && i < EINSUM_MAX_OPERANDS; i++) {
    type_of_value(items[i], &types[i]);
    ptrs[i] = &types[i];
  }
  TRY_RULE(vm, OP_einsum, &err,
           shape_einsum(NULL, args[0].text->data, args[0].text->len, n, ptrs, &plan, &shape, &err));
  TRY_RULE(vm, OP_einsum, &err, rule_dtype(OP_einsum, n, ptrs, &r, &err));
  u32 result = plan.out_rank == 32 ? ~0u : (1u << plan.out_rank) - 1, later[EINSUM_MAX_OPERANDS + 1];
  later[n] = result; /* the labels that the result and operands from i on have */
  for (u32 i = n; i-- > 0;) {
    later[i] = later[i + 1];
    for (u32 d = 0; d < types[i].rank; d++) {
      later[i] |= 1u << plan.axes[i][d];
      if (plan.windows[i][d].second) later[i] |= 1u << (plan.windows[i][d].second - 1);
    }
  }
  Term t = {.x = value_hole()}, next = {.x = value_hole()};
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < n && status == WEFT_OK; i++) {
    Value same;
    status = convert_value(vm, OP_einsum, items[i], r.compute, &same);
    if (status != WEFT_OK) break;
    Term *to = i == 0 ? &t : &next;
    status = term_make(vm, same, &plan, i, to);
    value_drop(vm, same);
    u32 needed = later[i + 1] | (i ? term_mask(&t) : 0);
    if (status == WEFT_OK) status = term_sum(vm, to, ~needed, r.compute);
    if (status == WEFT_OK && i) status = term_pair(vm, &t, &next, later[i + 1], &plan);
    if (status == WEFT_OK) status = term_sum(vm, &t, ~later[i + 1], r.compute);
  }
  if (status == WEFT_OK) {
    u32 perm[ARRAY_MAX_RANK];
    for (u32 d = 0; d < t.rank; d++)
      for (u32 k = 0; k < t.rank; k++)
        if (t.labels[k] == d) perm[d] = k;
    Value x = t.x;
    t.x = value_hole();
    status = permute(vm, x, t.rank, perm, out);
    if (status == WEFT_OK) result_finish(vm, out);
  }
  value_drop(vm, t.x);
  value_drop(vm, next.x);
  return status;
}
