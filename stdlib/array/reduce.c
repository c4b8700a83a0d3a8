/* reduce.c — reductions: sum prod min max any all argmin argmax count_nonzero (order: reduce_order.h). */
#include "stdlib/array/reduce.h"
#include "stdlib/kernels/element.h"
#include "stdlib/kernels/reduce_order.h"
#include "stdlib/array/make.h"
#include "stdlib/array/walk.h"

#include <string.h>

enum { BLOCK_BYTES = REDUCE_LANE_BYTES * REDUCE_BLOCK_ROWS, POLL_ELEMENTS = 1 << 18 };
enum { CHUNK = 1024, GATHER_CHUNK = 64 }; /* columns reduced at a time: from memory as it lies, and gathered */

static const u16 combine_op[REDUCE_KINDS] = {OP_add, OP_multiply, OP_minimum, OP_maximum};

void split_axes(Array *a, u32 mask, Split *s) {
  u32 rank = array_rank(a), n = 0;
  const i64 *dims = array_dims(a), *strides = array_strides(a);
  s->results = s->count = 1;
  for (u32 pass = 0; pass < 2; pass++) {
    for (u32 d = 0; d < rank; d++) {
      if ((mask >> d & 1) != pass) continue;
      s->dims[n] = dims[d];
      s->strides[n++] = strides[d];
      if (pass) s->count *= dims[d];
      else s->results *= dims[d];
    }
    if (pass == 0) s->kept = n;
  }
  s->reduced = n - s->kept;
}

WeftStatus reduce_some(Vm *vm, u32 op, const ArrayType *t, u32 mask) {
  bool nothing = false;
  for (u32 d = 0; d < t->rank; d++)
    if (t->dims[d] == 0) {
      if (!(mask >> d & 1)) return WEFT_OK;
      nothing = true;
    }
  return nothing ? vm_error(vm, EK_value, "%s: shape %s has no elements to choose from", op_name(op), shape_text(t).s)
                 : WEFT_OK;
}

i64 masked_count(const ArrayType *t, u32 mask) {
  i64 n = 1;
  for (u32 d = 0; d < t->rank; d++)
    if (mask >> d & 1) n *= t->dims[d];
  return n;
}

typedef struct Job {
  Vm *vm;
  const StripTable *strips;
  Array *a;
  u32 from, to, bytes; /* dtypes; bytes of an element of `to` */
  ReduceKind kind;
  StripRows rows;
  StripColumns columns; /* NULL: by combine */
  i64 in_memory; /* rows that lie there as `columns` reads them; 0: they are gathered first */
  StripFn combine;
  Split s;
  i64 polled;
} Job;

static WeftStatus work_done(Job *j, i64 elements) {
  if (!j->vm) return WEFT_OK; /* a thread's: polled by who waits for it */
  j->polled += elements;
  if (j->polled < POLL_ELEMENTS) return WEFT_OK;
  i64 n = j->polled;
  j->polled = 0;
  return kernel_poll(j->vm, n);
}

bool reduce_is_far(i64 n, i64 rows, i64 stride, i64 bytes) {
  return rows * stride * bytes >= REDUCE_FAR && (rows == 1 || stride == n) && cpu_has(CPU_PAGES);
}

/* ---- the last axis is reduced -------------------------------------------------------------------- */

/* Rows shared by threads: several of them a part, or one in blocks of the defined order, whose results are reduced in
 * turn. */
typedef struct SharedRows {
  const Job *j;
  const char *x;
  char *out;
  i64 count, rows, step, each; /* elements of a row, rows, from one to the next, rows of a part */
} SharedRows;

static void rows_part(void *ctx, i64 part) {
  const SharedRows *s = ctx;
  i64 first = part * s->each, n = s->rows - first < s->each ? s->rows - first : s->each;
  s->j->rows(s->out + first * s->j->bytes, s->x + first * s->step * s->j->bytes, s->count, n, s->step);
}

static bool is_long(const Job *j, i64 elements) {
  return elements >= j->vm->tunables.parallel_elements && pool_threads(j->vm) > 1;
}

static WeftStatus share_rows(Job *j, const char *x, i64 count, i64 rows, i64 step, char *out) {
  i64 per = pool_part(j->vm, rows * count) / count;
  SharedRows s = {j, x, out, count, rows, step, per > 0 ? per : 1};
  return pool_run(j->vm, (rows + s.each - 1) / s.each, false, rows_part, &s);
}

/* One row: whole blocks by threads, the rest of it here. *done false: memory was refused, nothing is done. */
static WeftStatus share_blocks(Job *j, const char *x, i64 count, char *out, bool *done) {
  i64 block = BLOCK_BYTES / j->bytes, whole = count / block, blocks = (count + block - 1) / block;
  char *partial = mem_alloc(&j->vm->alloc, (size_t)blocks * j->bytes);
  *done = partial != NULL;
  if (!partial) return WEFT_OK;
  WeftStatus status = share_rows(j, x, block, whole, block, partial);
  if (status == WEFT_OK) {
    if (blocks > whole) j->rows(partial + whole * j->bytes, x + whole * block * j->bytes, count - whole * block, 1, 0);
    j->rows(out, partial, blocks, 1, 0);
  }
  mem_free(&j->vm->alloc, partial, (size_t)blocks * j->bytes);
  return status;
}

/* Elements of a result lie together, results a constant step apart: whole rows at once. */
static WeftStatus reduce_rows_direct(Job *j, char *out) {
  i64 dims[ARRAY_MAX_RANK], strides[1][ARRAY_MAX_RANK], index[ARRAY_MAX_RANK] = {0};
  memcpy(dims, j->s.dims, j->s.kept * sizeof *dims);
  memcpy(strides[0], j->s.strides, j->s.kept * sizeof *dims);
  u32 rank = axes_join(j->s.kept, dims, 1, strides);
  const char *x = j->a->data;
  i64 inner = rank ? dims[rank - 1] : 1, step = rank ? strides[0][rank - 1] : j->s.count;
  for (;;) {
    i64 most = 1 + POLL_ELEMENTS / j->s.count;
    bool done = is_long(j, inner * j->s.count) && inner > 1;
    if (done) TRY(share_rows(j, x, j->s.count, inner, step, out));
    else if (is_long(j, inner * j->s.count) && inner == 1 && j->s.count > BLOCK_BYTES / j->bytes)
      TRY(share_blocks(j, x, j->s.count, out, &done));
    for (i64 r = 0; r < inner; r += most) { /* done: for the fuel */
      i64 rows = inner - r < most ? inner - r : most;
      if (!done) j->rows(out, x + r * step * j->bytes, j->s.count, rows, step);
      out += rows * j->bytes;
      TRY(work_done(j, rows * j->s.count));
    }
    u32 d = rank ? rank - 1 : 0;
    for (;;) {
      if (d == 0) return WEFT_OK;
      d--;
      x += strides[0][d] * j->bytes;
      if (++index[d] < dims[d]) break;
      x -= strides[0][d] * dims[d] * j->bytes;
      index[d] = 0;
    }
  }
}

/* Everything else: gathered in the order of numbering into a block. */
static WeftStatus reduce_rows_gathered(Job *j, char *out) {
  _Alignas(64) char block[BLOCK_BYTES];
  i64 most = BLOCK_BYTES / j->bytes, count = j->s.count;
  Reader r;
  reader_start_raw(&r, j->strips, j->a->data, j->from, j->s.kept + j->s.reduced, j->s.dims, j->s.strides, j->to);
  if (count <= most) {
    i64 per = most / count;
    for (i64 done = 0; done < j->s.results;) {
      i64 rows = j->s.results - done < per ? j->s.results - done : per;
      reader_read(&r, block, rows * count);
      j->rows(out, block, count, rows, count);
      out += rows * j->bytes;
      done += rows;
      TRY(work_done(j, rows * count));
    }
    return WEFT_OK;
  }
  /* the results of the blocks are a sequence that is reduced in turn */
  i64 blocks = (count + most - 1) / most;
  size_t size = (size_t)blocks * j->bytes;
  char *partial = mem_alloc(&j->vm->alloc, size);
  if (!partial) return vm_error_memory(j->vm);
  WeftStatus status = WEFT_OK;
  for (i64 k = 0; k < j->s.results && status == WEFT_OK; k++) {
    for (i64 b = 0, left = count; b < blocks && status == WEFT_OK; b++, left -= most) {
      i64 n = left < most ? left : most;
      reader_read(&r, block, n);
      j->rows(partial + b * j->bytes, block, n, 1, 0);
      status = work_done(j, n);
    }
    j->rows(out + k * j->bytes, partial, blocks, 1, 0);
  }
  mem_free(&j->vm->alloc, partial, size);
  return status;
}

/* ---- the last axis is kept ----------------------------------------------------------------------- */

/* Some rows of n columns; what has no kernel for that goes row by row. */
static void join_rows(const Job *j, void *out, const char *x, i64 n, i64 rows, i64 stride) {
  if (j->columns) {
    j->columns(out, x, n, reduce_is_far(n, j->in_memory >> REDUCE_FAR_ROWS, stride,
                                        j->bytes) ? rows | REDUCE_ROWS_FAR : rows, stride);
    return;
  }
  memcpy(out, x, (size_t)(n * j->bytes));
  for (i64 r = 1; r < rows; r++) (void)j->combine(out, out, x + r * stride * j->bytes, n);
}

/* Block results of n columns as they come; in blocks of 64 at every level. */
typedef struct Cascade {
  i64 n;
  StripFn combine;
  u32 bytes;
  u32 count[REDUCE_COLUMN_LEVELS];
  _Alignas(64) char level[REDUCE_COLUMN_LEVELS][CHUNK * 8];
} Cascade;

static void cascade_start(Cascade *c, const Job *j, i64 n) {
  c->n = n;
  c->combine = j->combine;
  c->bytes = j->bytes;
  memset(c->count, 0, sizeof c->count);
}

static void cascade_add(Cascade *c, u32 level, const void *block) {
  size_t size = (size_t)c->n * c->bytes;
  for (;; level++) {
    char *own = c->level[level];
    if (c->count[level] == 0) memcpy(own, block, size);
    else (void)c->combine(own, own, block, c->n);
    if (++c->count[level] < REDUCE_COLUMN_BLOCK) return;
    c->count[level] = 0;
    block = own;
  }
}

static void cascade_finish(Cascade *c, void *out) {
  u32 top = 0;
  for (u32 l = 0; l < REDUCE_COLUMN_LEVELS; l++)
    if (c->count[l]) top = l;
  for (u32 l = 0; l < top; l++) { /* partial blocks join the level above; a level that fills up goes on rising */
    if (c->count[l] == 0) continue;
    c->count[l] = 0;
    cascade_add(c, l + 1, c->level[l]);
    for (u32 k = top + 1; k < REDUCE_COLUMN_LEVELS; k++)
      if (c->count[k]) top = k;
  }
  memcpy(out, c->level[top], (size_t)c->n * c->bytes);
}

/* `n` columns of `count` rows that lie `stride` apart, as they are, into out. */
static WeftStatus reduce_columns_direct(Job *j, const char *x, i64 n, i64 count, i64 stride, void *out) {
  j->in_memory = count;
  if (count <= REDUCE_COLUMN_BLOCK) {
    join_rows(j, out, x, n, count, stride);
    return work_done(j, n * count);
  }
  Cascade c;
  cascade_start(&c, j, n);
  _Alignas(64) char block[CHUNK * 8];
  for (i64 r = 0; r < count; r += REDUCE_COLUMN_BLOCK) {
    i64 rows = count - r < REDUCE_COLUMN_BLOCK ? count - r : REDUCE_COLUMN_BLOCK;
    join_rows(j, block, x + r * stride * j->bytes, n, rows, stride);
    cascade_add(&c, 0, block);
    TRY(work_done(j, n * rows));
  }
  cascade_finish(&c, out);
  return WEFT_OK;
}

/* The same of rows that `dims` and `strides` give, columns `column_stride` apart. A function of its own, so that its
 * 130 KB of stack are never taken beside those of reduce_columns_direct. */
static __attribute__((noinline)) WeftStatus reduce_columns_gathered(Job *j, const char *x, i64 n, i64 column_stride,
                                                                    u32 rank, const i64 *dims, const i64 *strides,
                                                                    void *out) {
  const i64 count = j->s.count;
  Cascade c;
  cascade_start(&c, j, n);
  _Alignas(64) char block[GATHER_CHUNK * 8], rows_buffer[GATHER_CHUNK * REDUCE_COLUMN_BLOCK * 8];
  i64 all_dims[ARRAY_MAX_RANK + 1], all_strides[ARRAY_MAX_RANK + 1];
  memcpy(all_dims, dims, rank * sizeof *dims);
  memcpy(all_strides, strides, rank * sizeof *dims);
  all_dims[rank] = n;
  all_strides[rank] = column_stride;
  Reader r;
  reader_start_raw(&r, j->strips, x, j->from, rank + 1, all_dims, all_strides, j->to);
  for (i64 left = count; left > 0; left -= REDUCE_COLUMN_BLOCK) {
    i64 rows = left < REDUCE_COLUMN_BLOCK ? left : REDUCE_COLUMN_BLOCK;
    reader_read(&r, rows_buffer, rows * n);
    join_rows(j, block, rows_buffer, n, rows, n);
    cascade_add(&c, 0, block);
    TRY(work_done(j, n * rows));
  }
  cascade_finish(&c, out);
  return WEFT_OK;
}

/* `n` columns from `x`, all rows, into out. */
static WeftStatus reduce_columns(Job *j, const char *x, i64 n, i64 column_stride, void *out) {
  u32 reduced = j->s.reduced;
  i64 dims[ARRAY_MAX_RANK + 1], strides[1][ARRAY_MAX_RANK];
  memcpy(dims, j->s.dims + j->s.kept, reduced * sizeof *dims);
  memcpy(strides[0], j->s.strides + j->s.kept, reduced * sizeof *dims);
  u32 rank = axes_join(reduced, dims, 1, strides);
  bool direct = rank <= 1 && column_stride == 1 && j->from == j->to;
  if (direct) return reduce_columns_direct(j, x, n, j->s.count, rank ? strides[0][0] : 0, out);
  return reduce_columns_gathered(j, x, n, column_stride, rank, dims, strides[0], out);
}

/* Columns shared by threads. */
typedef struct SharedColumns {
  const Job *j;
  const char *x;
  char *out;
  i64 columns, each, step; /* all of them, a part's; elements from one to the next */
} SharedColumns;

static void columns_part(void *ctx, i64 part) {
  const SharedColumns *s = ctx;
  Job j = *s->j;
  i64 first = part * s->each, n = s->columns - first < s->each ? s->columns - first : s->each;
  j.vm = NULL;
  /* polls and allocates nothing */
  (void)!reduce_columns(&j, s->x + first * s->step * dtype_bytes(j.from), n, s->step, s->out + first * j.bytes);
}

static WeftStatus share_columns(Job *j, const char *x, i64 columns, i64 most, i64 step, char *out) {
  enum { PARTS = 8, LINE = 64 };
  i64 each = columns / PARTS + 1, line = LINE / dtype_bytes(j->from);
  if (each >= line) each = (each + line - 1) / line * line;
  SharedColumns s = {j, x, out, columns, each < most ? each : most, step};
  TRY(pool_run(j->vm, (columns + s.each - 1) / s.each, false, columns_part, &s));
  return work_done(j, columns * j->s.count);
}

/* Blocks of rows, all columns of each, which lie in memory one behind the other; their results are rows that are
 * reduced in turn. */
typedef struct SharedBlocks {
  const Job *j;
  const char *x;
  char *partial;
  i64 columns, rows, stride, each; /* rows from one to the next; blocks of a part */
} SharedBlocks;

static void blocks_part(void *ctx, i64 part) {
  const SharedBlocks *s = ctx;
  i64 first = part * s->each * REDUCE_COLUMN_BLOCK,
      end = first + s->each * REDUCE_COLUMN_BLOCK < s->rows ? first + s->each * REDUCE_COLUMN_BLOCK : s->rows;
  for (i64 r = first; r < end; r += REDUCE_COLUMN_BLOCK)
    join_rows(s->j, s->partial + r / REDUCE_COLUMN_BLOCK * s->columns * s->j->bytes, s->x + r * s->stride * s->j->bytes,
              s->columns, end - r < REDUCE_COLUMN_BLOCK ? end - r : REDUCE_COLUMN_BLOCK, s->stride);
}

/* *done false: another way is better, or memory was refused; nothing is done. */
static WeftStatus share_row_blocks(Job *j, const char *x, i64 columns, i64 stride, char *out, bool *done) {
  enum { BLOCKS = 16, COLUMNS = 4096 /* at most: what a block keeps stays in a near cache */ };
  i64 rows = j->s.count, blocks = (rows + REDUCE_COLUMN_BLOCK - 1) / REDUCE_COLUMN_BLOCK,
      each = pool_part(j->vm, rows * columns) / (REDUCE_COLUMN_BLOCK * columns);
  size_t size = (size_t)(blocks * columns) * j->bytes;
  char *partial = blocks >= BLOCKS && columns <= COLUMNS ? mem_alloc(&j->vm->alloc, size) : NULL;
  *done = partial != NULL;
  if (!partial) return WEFT_OK;
  SharedBlocks s = {j, x, partial, columns, rows, stride, each > 0 ? each : 1};
  j->in_memory = rows;
  WeftStatus status = pool_run(j->vm, (blocks + s.each - 1) / s.each, false, blocks_part, &s);
  Job rest = *j;
  rest.vm = NULL; /* for the fuel the rows count, not the blocks */
  for (i64 c = 0; c < columns && status == WEFT_OK; c += CHUNK)
    status = reduce_columns_direct(&rest, partial + c * j->bytes, columns - c < CHUNK ? columns - c : CHUNK, blocks,
                                   columns, out + c * j->bytes);
  mem_free(&j->vm->alloc, partial, size);
  return status == WEFT_OK ? work_done(j, columns * rows) : status;
}

static WeftStatus reduce_last_kept(Job *j, char *out) {
  i64 dims[ARRAY_MAX_RANK], strides[1][ARRAY_MAX_RANK], index[ARRAY_MAX_RANK] = {0};
  memcpy(dims, j->s.dims, j->s.kept * sizeof *dims);
  memcpy(strides[0], j->s.strides, j->s.kept * sizeof *dims);
  u32 rank = axes_join(j->s.kept, dims, 1, strides), from_bytes = dtype_bytes(j->from);
  i64 columns = rank ? dims[rank - 1] : 1, step = rank ? strides[0][rank - 1] : 1;
  const char *x = j->a->data;
  i64 joined[ARRAY_MAX_RANK], strides_of_rows[1][ARRAY_MAX_RANK];
  memcpy(joined, j->s.dims + j->s.kept, j->s.reduced * sizeof *joined);
  memcpy(strides_of_rows[0], j->s.strides + j->s.kept, j->s.reduced * sizeof *joined);
  u32 rows_rank = axes_join(j->s.reduced, joined, 1, strides_of_rows);
  bool direct = rows_rank <= 1 && step == 1 && j->from == j->to, run_of_rows = direct && rows_rank == 1;
  i64 chunk = direct ? CHUNK : GATHER_CHUNK; /* as reduce_columns has room */
  for (;;) {
    bool shared = columns > 1 && columns * j->s.count >= j->vm->tunables.parallel_elements, done = false,
        threads = pool_threads(j->vm) > 1;
    if (shared && run_of_rows && (threads || columns > CHUNK))
      TRY(share_row_blocks(j, x, columns, strides_of_rows[0][0], out, &done));
    shared = shared && (done || threads);
    if (shared && !done) TRY(share_columns(j, x, columns, chunk, step, out));
    if (shared) out += columns * j->bytes;
    for (i64 c = 0; c < columns && !shared; c += chunk) {
      i64 n = columns - c < chunk ? columns - c : chunk;
      TRY(reduce_columns(j, x + c * step * from_bytes, n, step, out));
      out += n * j->bytes;
    }
    u32 d = rank ? rank - 1 : 0;
    for (;;) {
      if (d == 0) return WEFT_OK;
      d--;
      x += strides[0][d] * from_bytes;
      if (++index[d] < dims[d]) break;
      x -= strides[0][d] * dims[d] * from_bytes;
      index[d] = 0;
    }
  }
}

/* ---- one reduction ------------------------------------------------------------------------------- */

static bool joins_to_one_run(const Split *s) {
  i64 dims[ARRAY_MAX_RANK], strides[1][ARRAY_MAX_RANK];
  memcpy(dims, s->dims + s->kept, s->reduced * sizeof *dims);
  memcpy(strides[0], s->strides + s->kept, s->reduced * sizeof *dims);
  u32 rank = axes_join(s->reduced, dims, 1, strides);
  return rank == 0 || (rank == 1 && strides[0][0] == 1);
}

/* Truth values that lie together, of one result: threads share them. */
typedef struct Counted {
  const Job *j;
  const u8 *x;
  i64 n, each, sum; /* of all, of a part; counted so far */
} Counted;

static void count_part(void *ctx, i64 part) {
  Counted *c = ctx;
  i64 first = part * c->each, n = c->n - first < c->each ? c->n - first : c->each, sum;
  c->j->strips->rows[REDUCE_ADD][DT_bool](&sum, c->x + first, n, 1, c->n - first);
  (void)__atomic_fetch_add(&c->sum, sum, __ATOMIC_RELAXED);
}

/* Truth values that lie together, of each result. */
static WeftStatus count_true(Job *j, i64 *out) {
  enum { FAST = 4 /* times as many are counted in the time of other operations */ };
  i64 n = j->s.count, part = 0;
  Counted c = {.j = j, .x = j->a->data, .n = n, .each = pool_part(j->vm, n / 8) * 8};
  bool shared = is_long(j, n / FAST);
  for (i64 r = 0; r < j->s.results; r++, out++, c.x += n) {
    c.sum = 0;
    if (shared) TRY(pool_run(j->vm, (n + c.each - 1) / c.each, false, count_part, &c));
    for (i64 i = 0, each; i < n; i += each) { /* shared: for the fuel */
      each = n - i < POLL_ELEMENTS ? n - i : POLL_ELEMENTS;
      if (!shared) j->strips->rows[REDUCE_ADD][DT_bool](&part, c.x + i, each, 1, n - i), c.sum += part;
      TRY(work_done(j, each));
    }
    *out = c.sum;
  }
  return WEFT_OK;
}

static WeftStatus reduce_into(Job *j, u32 mask, void *out) {
  u32 rank = array_rank(j->a);
  if (j->from == DT_bool && j->to == DT_i64 && j->kind == REDUCE_ADD && array_dense(j->a) &&
      mask >> (rank ? rank - 1 : 0) & 1 && joins_to_one_run(&j->s))
    return count_true(j, out);
  if (mask == 0) return copy_dense(j->vm, j->a, rank, array_dims(j->a), j->to, out, &(u32){0});
  if (!(mask >> (rank - 1) & 1)) return reduce_last_kept(j, out);
  if (j->from == j->to && joins_to_one_run(&j->s)) return reduce_rows_direct(j, out);
  return reduce_rows_gathered(j, out);
}

WeftStatus reduce_value(Vm *vm, u32 op, ReduceKind kind, Value x, u32 compute, u32 mask, bool keepdims, Value *out) {
  NumBox box;
  ArrayType type, shape;
  type_of_value(x, &type);
  Job j = {.vm = vm, .strips = stdlib_of(vm)->strips, .a = array_of(x, &box), .from = type.dtype, .to = compute,
           .bytes = dtype_bytes(compute), .kind = kind};
  j.rows = j.strips->rows[kind][compute];
  j.columns = j.strips->columns[kind][compute];
  j.combine = j.strips->ops[combine_op[kind]][compute];
  if (!j.rows) return vm_error(vm, EK_unsupported, "%s: not supported for %s", op_name(op), dtype_name(compute));
  rule_reduce(&type, mask, keepdims, &shape);
  split_axes(j.a, mask, &j.s);
  TRY(kernel_poll(vm, j.a->size < POLL_ELEMENTS ? j.a->size : POLL_ELEMENTS));
  if (j.s.count == 0 && kind >= REDUCE_MIN && op != OP_any && op != OP_all) TRY(reduce_some(vm, op, &type, mask));
  u64 one[2] = {0};
  void *data = one;
  Value result = value_nil();
  if (shape.rank) TRY(result_new(vm, compute, &shape, &result, &data));
  WeftStatus status = WEFT_OK;
  if (j.s.results > 0 && j.s.count == 0) {
    u64 identity = 0; /* any: false; all: true */
    num_store(&identity, compute, num_convert_unchecked(value_i64(kind == REDUCE_MUL || kind == REDUCE_MIN), compute));
    strip_fill(data, &identity, j.s.results, j.bytes);
  } else if (j.s.results > 0) {
    status = reduce_into(&j, mask, data);
  }
  if (status != WEFT_OK) {
    value_drop(vm, result);
    return status;
  }
  *out = shape.rank ? result : num_load(one, compute);
  return WEFT_OK;
}

/* (x, axis, keepdims) of most reductions. */
static WeftStatus read_args(Vm *vm, u32 op, const Value *args, ArrayType *type, u32 *mask, bool *keepdims,
                            DTypeResult *r) {
  const ArrayType *types[1] = {type};
  RuleError err;
  *keepdims = false;
  TRY(args_array(vm, op, 0, args[0]));
  type_of_value(args[0], type);
  TRY(args_axes(vm, op, 1, args[1], type->rank, mask));
  TRY(args_bool(vm, op, 2, args[2], keepdims));
  TRY_RULE(vm, op, &err, rule_dtype(op, 1, types, r, &err));
  return WEFT_OK;
}

static WeftStatus simple(Vm *vm, u32 op, ReduceKind kind, Value *args, Value *out) {
  /* all of a dense array, not too long */
  if (args[0].kind == V_ARRAY && !args_given(args[1]) && !args_given(args[2])) {
    Array *a = args[0].array;
    u32 d = array_dtype(a);
    StripRows rows = stdlib_of(vm)->strips->rows[kind][d];
    if (rows && (kind != REDUCE_ADD || d != DT_bool) && array_dense(a) && array_device(a) == DEV_CPU && a->size > 0 &&
        a->size <= POLL_ELEMENTS) {
      u64 result = 0;
      TRY(kernel_poll(vm, a->size));
      rows(&result, a->data, a->size, 1, a->size);
      *out = num_load(&result, d);
      return WEFT_OK;
    }
  }
  ArrayType type;
  DTypeResult r;
  u32 mask;
  bool keepdims;
  TRY(read_args(vm, op, args, &type, &mask, &keepdims, &r));
  return reduce_value(vm, op, kind, args[0], r.compute, mask, keepdims, out);
}

WeftStatus eager_sum(Vm *vm, Value *args, Value *out) {
  if (args_given(args[3])) return run_in_dtype(vm, OP_sum, 3, args, out);
  return simple(vm, OP_sum, REDUCE_ADD, args, out);
}
WeftStatus eager_prod(Vm *vm, Value *args, Value *out) {
  if (args_given(args[3])) return run_in_dtype(vm, OP_prod, 3, args, out);
  return simple(vm, OP_prod, REDUCE_MUL, args, out);
}

/* min(a, b) is a slip that has its own message. */
static WeftStatus reduce_extreme(Vm *vm, u32 op, ReduceKind kind, const char *of_two, Value *args, Value *out) {
  bool number = args[1].kind == V_NUM && (args[1].dtype == DT_bool || dtype_kind(args[1].dtype) != DK_INT);
  bool scalar_pair = args[0].kind == V_NUM && args[1].kind == V_NUM;
  if (args[1].kind == V_ARRAY || number || scalar_pair)
    return vm_error(vm, EK_type, "%s: the second argument is an axis; %s(a, b) compares two values",
                    op_name(op), of_two);
  return simple(vm, op, kind, args, out);
}
WeftStatus eager_min(Vm *vm, Value *args, Value *out) {
  return reduce_extreme(vm, OP_min, REDUCE_MIN, "minimum", args, out);
}
WeftStatus eager_max(Vm *vm, Value *args, Value *out) {
  return reduce_extreme(vm, OP_max, REDUCE_MAX, "maximum", args, out);
}

/* Over a list of bools, as comparisons give them. */
static WeftStatus truths_of_list(Vm *vm, u32 op, List *l, Value *out) {
  bool any = false, all = true;
  if (!list_boxed(vm, l)) return WEFT_ERROR;
  for (u32 i = 0; i < l->count; i++) {
    Value v = value_untracked(l->items[i]);
    if (v.kind != V_NUM || v.dtype != DT_bool) {
      char what[DESCRIBED];
      args_describe(v, what, sizeof what);
      return vm_error(vm, EK_type, "%s: items of a list must be bools, item %u is %s", op_name(op), i, what);
    }
    any |= v.i != 0;
    all &= v.i != 0;
  }
  *out = value_bool(op == OP_any ? any : all);
  return WEFT_OK;
}

static WeftStatus truths(Vm *vm, u32 op, ReduceKind kind, Value *args, Value *out) {
  if (args[0].kind == V_LIST) {
    if (args_given(args[1])) return vm_error(vm, EK_value, "%s: a list has no axis", op_name(op));
    return truths_of_list(vm, op, args[0].list, out);
  }

  ArrayType type;
  DTypeResult r;
  u32 mask;
  bool keepdims;
  TRY(read_args(vm, op, args, &type, &mask, &keepdims, &r));
  return reduce_value(vm, op, kind, args[0], DT_bool, mask, keepdims, out);
}
WeftStatus eager_any(Vm *vm, Value *args, Value *out) { return truths(vm, OP_any, REDUCE_MAX, args, out); }
WeftStatus eager_all(Vm *vm, Value *args, Value *out) { return truths(vm, OP_all, REDUCE_MIN, args, out); }

WeftStatus eager_count_nonzero(Vm *vm, Value *args, Value *out) {
  ArrayType type;
  DTypeResult r;
  u32 mask;
  bool keepdims;
  Value truth;
  TRY(read_args(vm, OP_count_nonzero, args, &type, &mask, &keepdims, &r));
  TRY(convert_value(vm, OP_count_nonzero, args[0], DT_bool, &truth));
  WeftStatus status = reduce_value(vm, OP_count_nonzero, REDUCE_ADD, truth, DT_i64, mask, keepdims, out);
  value_drop(vm, truth);
  return status;
}

/* ---- positions of extremes ----------------------------------------------------------------------- */

/* Goes on from (best, at) over n elements numbered from `base`. NaN wins, the first of ties stays. */
#define ARG_EXTREME(name, dt, better)                                                             \
  static void name##_##dt(const void *xv, i64 n, i64 base, void *best, i64 *at) {                 \
    const T_##dt *x = xv;                                                                         \
    T_##dt b = *(T_##dt *)best;                                                                   \
    for (i64 i = 0; i < n; i++) {                                                                 \
      T_##dt p = x[i];                                                                            \
      if (better) {                                                                               \
        b = p;                                                                                    \
        *at = base + i;                                                                           \
      }                                                                                           \
    }                                                                                             \
    *(T_##dt *)best = b;                                                                          \
  }
#define ARG_INT(dt) ARG_EXTREME(argmin, dt, p < b) ARG_EXTREME(argmax, dt, p > b)
#define ARG_FLOAT(dt) \
  ARG_EXTREME(argmin, dt, p < b || (p != p && b == b)) ARG_EXTREME(argmax, dt, p > b || (p != p && b == b))
ARG_INT(u8)
ARG_INT(i32)
ARG_INT(i64)
ARG_INT(u64)
ARG_FLOAT(f32)
ARG_FLOAT(f64)

typedef void (*ArgFn)(const void *x, i64 n, i64 base, void *best, i64 *at);
static const ArgFn arg_fns[2][DT_COUNT] = {
    {[DT_bool] = argmin_u8, [DT_u8] = argmin_u8, [DT_i32] = argmin_i32, [DT_i64] = argmin_i64, [DT_u64] = argmin_u64,
     [DT_f32] = argmin_f32, [DT_f64] = argmin_f64},
    {[DT_bool] = argmax_u8, [DT_u8] = argmax_u8, [DT_i32] = argmax_i32, [DT_i64] = argmax_i64, [DT_u64] = argmax_u64,
     [DT_f32] = argmax_f32, [DT_f64] = argmax_f64}};

enum { LONG_ROW = 64, BLOCK_ELEMENTS = 1024, EXTREME_PARTS = 32 };

typedef struct Extremes {
  StripRows rows;
  ArgFn fn;
  const char *x;
  i64 count, results, each; /* elements of a row, rows; rows of a part, or elements of the only row */
  u32 bytes;
  i64 *to;
  u64 best[EXTREME_PARTS]; /* of each part of the only row, and the block that has it */
  i64 block[EXTREME_PARTS];
} Extremes;

/* Of the elements begin … end-1, which lie together: the best of each block, and which block has it. */
static i64 best_block(const Extremes *e, const char *x, i64 begin, i64 end, u64 *best) {
  i64 block = begin;
  for (i64 i = begin; i < end; i += BLOCK_ELEMENTS) {
    u64 own = 0;
    e->rows(&own, x + i * e->bytes, end - i < BLOCK_ELEMENTS ? end - i : BLOCK_ELEMENTS, 1, end - begin);
    if (i == begin) *best = own;
    e->fn(&own, 1, i, best, &block);
  }
  return block;
}

static i64 place_in(const Extremes *e, const char *x, i64 block) {
  u64 first = 0;
  i64 at = block;
  memcpy(&first, x + block * e->bytes, e->bytes);
  e->fn(x + block * e->bytes, e->count - block < BLOCK_ELEMENTS ? e->count - block : BLOCK_ELEMENTS, block,
        &first, &at);
  return at;
}

static void extremes_part(void *ctx, i64 part) {
  Extremes *e = ctx;
  i64 at = part * e->each, all = e->results > 1 ? e->results : e->count, end = all - at < e->each ? all : at + e->each;
  if (e->results == 1) {
    e->block[part] = best_block(e, e->x, at, end, &e->best[part]);
    return;
  }
  for (; at < end; at++) {
    const char *x = e->x + at * e->count * e->bytes;
    u64 best = 0;
    e->to[at] = place_in(e, x, best_block(e, x, 0, e->count, &best));
  }
}

/* Rows that lie together; threads share them, or the only one. */
static void find_extremes(Vm *vm, Extremes *e) {
  i64 all = e->results > 1 ? e->results : e->count, of_each = e->results > 1 ? e->count : 1,
      least = vm->tunables.parallel_elements / 4 / of_each;
  bool shared = all * of_each >= vm->tunables.parallel_elements && pool_threads(vm) > 1;
  e->each = !shared ? all : all / EXTREME_PARTS + 1 > least ? all / EXTREME_PARTS + 1 : least;
  if (e->results == 1) e->each = (e->each + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS * BLOCK_ELEMENTS;
  i64 parts = (all + e->each - 1) / e->each, best = 0;
  (void)!pool_run(vm, parts, true, extremes_part, e); /* whole: nothing is polled, so nothing is raised */
  for (i64 k = 1; e->results == 1 && k < parts; k++) e->fn(&e->best[k], 1, k, &e->best[0], &best);
  if (e->results == 1) e->to[0] = place_in(e, e->x, e->block[best]);
}

static WeftStatus arg_extreme(Vm *vm, u32 op, Value *args, Value *out) {
  ArrayType type, shape;
  DTypeResult r;
  u32 mask;
  bool keepdims;
  NumBox box;
  TRY(read_args(vm, op, args, &type, &mask, &keepdims, &r));
  Array *a = array_of(args[0], &box);
  Split s;
  split_axes(a, mask, &s);
  rule_reduce(&type, mask, keepdims, &shape);
  if (s.count == 0) TRY(reduce_some(vm, op, &type, mask));
  Value result;
  i64 *to;
  void *data;
  TRY(kernel_poll(vm, a->size));
  TRY(result_new(vm, DT_i64, &shape, &result, &data));
  to = data;
  ArgFn fn = arg_fns[op == OP_argmax][type.dtype];
  Reader reader;
  if (array_dense(a) && joins_to_one_run(&s) && s.count >= LONG_ROW) {
    Extremes e = {.fn = fn, .x = a->data, .count = s.count, .results = s.results,
                  .bytes = dtype_bytes(type.dtype), .to = to};
    e.rows = stdlib_of(vm)->strips->rows[op == OP_argmax ? REDUCE_MAX : REDUCE_MIN][type.dtype];
    if (s.results) find_extremes(vm, &e);
    *out = array_finish(vm, result);
    return WEFT_OK;
  }
  if (s.results > 0)
    reader_start_raw(&reader, stdlib_of(vm)->strips, a->data, type.dtype, s.kept + s.reduced, s.dims, s.strides,
                     type.dtype);
  for (i64 k = 0; k < s.results; k++) {
    u64 best = 0;
    i64 at = 0;
    for (i64 done = 0; done < s.count;) {
      i64 n = s.count - done < STRIP ? s.count - done : STRIP;
      const void *x = reader_next(&reader, n);
      if (done == 0) memcpy(&best, x, dtype_bytes(type.dtype));
      fn(x, n, done, &best, &at);
      done += n;
    }
    to[k] = at;
  }
  *out = array_finish(vm, result);
  return WEFT_OK;
}
WeftStatus eager_argmin(Vm *vm, Value *args, Value *out) { return arg_extreme(vm, OP_argmin, args, out); }
WeftStatus eager_argmax(Vm *vm, Value *args, Value *out) { return arg_extreme(vm, OP_argmax, args, out); }
