/* elementwise.c — elementwise operations: numbers, dense arrays at once, everything else in strips. */
#include "lang/halves.h"
#include "stdlib/array/divide.h"
#include "stdlib/kernels/element.h"
#include "stdlib/array/make.h"
#include "stdlib/array/walk.h"

#include <string.h>

/* bytes of one operand's result, of several the widest of all, that are worked on at a time; half of it where two
 * arrays are read */
enum { MAX_OPERANDS = 3, POLL_ELEMENTS = 1 << 18, LINE = 64, STREAMED = 2048 };

/* What is done to a strip: a kernel, or one of the two operations that are more than a kernel. */
typedef struct Step {
  StripFn fn;          /* unary, binary */
  StripSelect select;  /* where */
  StripSelect past;    /* the same by non-temporal stores; NULL: by a buffer */
  StripFn low, high;   /* clip: maximum with a lower bound, minimum with an upper one; NULL: no such bound */
  StripFn limit;       /* clip between two numbers, or compare with one; NULL: by what is above */
  f64 bounds[3];       /* as floats of that dtype */
  StripFn narrow;      /* then rounds what was made; NULL: it is the result */
  bool swap;           /* fn takes the operands exchanged */
  bool checked;        /* fn may fail: operands must not be overwritten meanwhile */
  u32 bytes;           /* of an element that is divided by one number for all: */
  Divisor divisor;
} Step;

static u32 step_wide(const Step *s, void *out, const void *const *in, u32 n_in, i64 n) {
  if (UNLIKELY(s->divisor.by)) {
    divisor_run(&s->divisor, s->bytes, out, in[0], n);
    return 0;
  }
  if (LIKELY(s->fn != NULL)) {
    if (n_in == 1) return s->fn(out, in[0], in[0], n);
    return s->swap ? s->fn(out, in[1], in[0], n) : s->fn(out, in[0], in[1], n);
  }
  if (s->select) {
    s->select(out, in[0], in[1], in[2], n);
    return 0;
  }
  const void *x = in[0];
  u32 k = 1;
  if (s->limit) return s->limit(out, x, s->bounds, n);
  if (s->low) {
    (void)s->low(out, x, in[k++], n);
    x = out;
  }
  if (s->high) (void)s->high(out, x, in[k], n);
  return 0;
}

/* The same; n <= STRIP where the result is rounded. */
static u32 step_run(const Step *s, void *out, const void *const *in, u32 n_in, i64 n) {
  _Alignas(64) char made[STRIP * 8];
  if (LIKELY(s->narrow == NULL)) return step_wide(s, out, in, n_in, n);
  return step_wide(s, made, in, n_in, n) | s->narrow(out, made, made, n);
}

static bool can_fail(u32 op, u32 dtype) { return dtype_kind(dtype) == DK_INT && op_refuses_integers(op); }

static WeftStatus check_failed(Vm *vm, u32 op) {
  if (op_info(op)->check == CHECK_neg_power)
    return vm_error(vm, EK_value, "%s: an integer to a negative power; a float base has one", op_name(op));
  return vm_error(vm, EK_zero_division, "%s: an integer divided by zero", op_name(op));
}

/* The kernel of a unary or binary operation; NULL fn: there is none for this dtype. */
static Step step_of(const StripTable *strips, u32 op, u32 dtype) {
  return (Step){.fn = strips->ops[strip_row(op)][dtype], .swap = strip_swaps(op),
                .checked = can_fail(op, dtype)};
}

/* ---- numbers ------------------------------------------------------------------------------------- */

static WeftStatus run_nums(Vm *vm, u32 op, const Step *step, u32 n, const Value *nums, const u8 *dtypes,
                           const DTypeResult *types, Value *out) {
  u64 in[MAX_OPERANDS], result = 0;
  const void *ptrs[MAX_OPERANDS] = {&in[0], &in[1], &in[2]};
  for (u32 i = 0; i < n; i++) {
    Value v;
    TRY(num_fit(vm, op, nums[i], dtypes[i], &v));
    num_store(&in[i], dtypes[i], v);
  }
  if (step_run(step, &result, ptrs, n, 1)) return check_failed(vm, op);
  *out = num_load(&result, types->result);
  if (types->weak) out->flags |= VF_WEAK;
  return WEFT_OK;
}

/* ---- the general path ---------------------------------------------------------------------------- */

/* A float to the power 2 is its square by definition (lang/math.loops): no pow for it. */
static bool is_square(u32 op, const Value *args, const u8 *dtypes) {
  if ((op != OP_power && op != OP_pow) || args[0].kind != V_ARRAY || args[1].kind != V_NUM) return false;
  return dtype_kind(dtypes[0]) == DK_FLOAT && num_as_f64(args[1]) == 2;
}

static bool reads_on(const Reader *r) { return r->direct && !r->constant; }

/* What is worked on, for several threads as well: each part reads on from its own place. */
typedef struct Shared {
  const Step *step;
  const Reader *readers;
  u32 n, result_bytes, widest; /* operands; bytes of an element */
  bool stream, far; /* see run_far */
  i64 total, each, most; /* elements: of all, of a part, of a step */
  char *out;
  u32 failed;
} Shared;

/* Elements from `at` to `to` of a result that is stored non-temporally (`stream`) or made from a wider operand
 * that the caches do not hold; meanwhile what is read further on, before `end`, is fetched. With the lines stored:
 * of several operands that lie together the first that takes as many bytes as the result (a mask beside numbers
 * comes by itself). Where the result is narrower, evenly before: some lines with each that is stored stand in the
 * way of those waited for. */
static __attribute__((noinline)) u32 run_far(const Shared *s, Reader *readers, i64 at, i64 to, i64 end) {
  _Alignas(64) char buffer[STRIP * 16];
  const Reader *next = NULL;
  bool narrower = false; /* the result, than something read */
  u32 failed = 0, held = 0; /* bytes in the buffer */
  for (u32 i = 0; i < s->n; i++) {
    if (!reads_on(&readers[i])) continue;
    if (!next || next->bytes < s->result_bytes) next = &readers[i];
    narrower |= readers[i].bytes > s->result_bytes;
  }
  if (!cpu_has(CPU_FETCH)) next = NULL;
  /* what is fetched a page at a time waits in between */
  i64 page = PAGE_BYTES / s->widest, most = narrower && cpu_has(CPU_PAGES) && s->most > page ? page : s->most;
  for (i64 n; at < to; at += n) {
    const void *in[MAX_OPERANDS];
    n = to - at < most ? to - at : most;
    for (u32 i = 0; i < s->n; i++) in[i] = reader_next(&readers[i], n);
    bool ahead = next && (end - at - n) * next->bytes > FETCHED_AHEAD;
    for (u32 i = 0; ahead && narrower && i < s->n; i++)
      if (reads_on(&readers[i])) fetch_ahead(readers[i].at, n * readers[i].bytes);
    char *o = s->out + at * s->result_bytes;
    if (s->stream && s->step->past && !((uintptr_t)o & (LINE - 1))) {
      s->step->past(o, in[0], in[1], in[2], n);
      continue;
    }
    failed |= step_run(s->step, s->stream ? buffer + held : o, in, s->n, n);
    if (!s->stream) continue;
    u32 made = (u32)n * s->result_bytes;
    held += made;
    if (narrower && held < STREAMED && at + n < to) continue;
    stream_copy_ahead(o + made - held, buffer, held, (uintptr_t)(ahead ? next->at : NULL) + FETCHED_AHEAD,
                      ahead && !narrower ? s->result_bytes / next->bytes : 0);
    held = 0;
  }
  return failed;
}

static void run_part(void *ctx, i64 part) {
  Shared *s = ctx;
  Reader readers[MAX_OPERANDS];
  i64 at = part * s->each, end = s->total - at < s->each ? s->total : at + s->each;
  u32 failed = 0;
  for (u32 i = 0; i < s->n; i++) {
    readers[i] = s->readers[i];
    reader_seek(&readers[i], at);
  }
  if (s->far) failed = run_far(s, readers, at, end, end);
  for (i64 n; !s->far && at < end; at += n) {
    const void *in[MAX_OPERANDS];
    n = end - at < s->most ? end - at : s->most;
    for (u32 i = 0; i < s->n; i++) in[i] = reader_next(&readers[i], n);
    failed |= step_run(s->step, s->out + at * s->result_bytes, in, s->n, n);
  }
  if (s->stream) stream_done();
  if (failed) __atomic_store_n(&s->failed, failed, __ATOMIC_RELAXED);
}

static WeftStatus run_shared(Vm *vm, u32 op, Shared *s, bool in_place) {
  s->each = pool_part(vm, s->total * s->widest / 8) * 8 / s->widest;
  if (s->each < 1) s->each = 1;
  if (!in_place) TRY(kernel_poll(vm, s->total / POLL_ELEMENTS * POLL_ELEMENTS));
  TRY(pool_run(vm, (s->total + s->each - 1) / s->each, in_place, run_part, s));
  return s->failed ? check_failed(vm, op) : WEFT_OK;
}

/* A complex number among the operands, or a number that becomes one: read as an array of one element. */
static bool is_pair(Value v, u32 dtype) { return dtype_kind(dtype) == DK_COMPLEX || v.dtype == DT_c64; }
static bool has_pair(u32 n, const Value *args, const u8 *dtypes, const DTypeResult *r) {
  bool has = dtype_kind(r->result) == DK_COMPLEX;
  for (u32 i = 0; i < n; i++) has |= is_pair(args[i], dtypes[i]);
  return has;
}

/* ---- transposed operands ------------------------------------------------------------------------- */

enum { TILE_BYTES = 20 << 10, TILE_COLUMNS = 128, LARGE_ROWS = 32,
       LARGE_COLUMNS = 64 /* of a tile that is stored non-temporally */, BAND_ROWS = 1024, SMALLEST_ACROSS = 1 << 14 };

/* Two axes, along the first of which some operand lies together: the result is made in tiles, a line of that
 * operand or some by a number of columns; operands that do not lie along the second are gathered for each. Parts
 * are bands of the result's rows. */
typedef struct Across {
  const Step *step;
  /* operands; of an element of the result; rows and columns of a tile, columns that it has again of the one before:
   * lines are stored as wholes */
  u32 n, bytes, tall, wide, lead;
  bool stream;
  i64 dims[ARRAY_MAX_RANK], strides[MAX_OPERANDS][ARRAY_MAX_RANK];
  const char *data[MAX_OPERANDS];
  u32 from[MAX_OPERANDS]; /* bytes of an element, before conversion */
  StripFn convert[MAX_OPERANDS];
  const Reader *constant[MAX_OPERANDS]; /* of a number */
  char *out;
  u32 failed;
} Across;

static i64 past_line(const void *p) { return (i64)((uintptr_t)p & (LINE - 1)); }

/* Several rows at a time where all that is read was gathered. */
static u32 across_tile(const Across *a, i64 row, i64 rows, i64 column, i64 columns, i64 lead) {
  _Alignas(64) char tile[MAX_OPERANDS][TILE_BYTES], one[MAX_OPERANDS + 1][STRIP * 8];
  const char *at[MAX_OPERANDS];
  i64 apart[MAX_OPERANDS], most = a->stream ? STRIP / columns : 1;
  u32 failed = 0;
  for (u32 k = 0; k < a->n; k++) {
    const i64 *strides = a->strides[k];
    if (a->constant[k]) continue;
    at[k] = a->data[k] + (row * strides[0] + column * strides[1]) * a->from[k];
    apart[k] = strides[0];
    if (strides[1] == 1) {
      most = 1;
      continue;
    }
    apart[k] = a->stream ? columns : a->wide + LINE / a->from[k];
    strided_copy(NULL, a->from[k], 2, (i64[2]){rows, columns}, tile[k], (i64[2]){apart[k], 1}, at[k], strides);
    at[k] = tile[k];
  }
  for (i64 r = 0, n; r < rows; r += n) {
    n = rows - r < most ? rows - r : most;
    char *out = a->out + ((row + r) * a->dims[1] + column) * a->bytes;
    const char *made = one[MAX_OPERANDS];
    const void *in[MAX_OPERANDS];
    for (u32 k = 0; k < a->n; k++) {
      in[k] = a->constant[k] ? a->constant[k]->strip : at[k] + r * apart[k] * a->from[k];
      if (!a->convert[k]) continue;
      failed |= a->convert[k](one[k], in[k], in[k], n * columns);
      in[k] = one[k];
    }
    failed |= step_run(a->step, a->stream ? one[MAX_OPERANDS] : out, in, a->n, n * columns);
    for (i64 i = 0; i < n && a->stream; i++, out += a->dims[1] * a->bytes, made += columns * a->bytes) {
      i64 end = columns * a->bytes, from = lead ? lead * a->bytes - past_line(out + lead * a->bytes) : 0;
      if (a->lead && column + columns < a->dims[1]) end -= past_line(out + end);
      stream_copy(out + from, made + from, end - from);
    }
  }
  return failed;
}

static void across_band(void *ctx, i64 part) {
  Across *a = ctx;
  i64 begin = part * BAND_ROWS, end = a->dims[0] - begin < BAND_ROWS ? a->dims[0] : begin + BAND_ROWS;
  u32 failed = 0;
  for (i64 c = 0, lead = 0; c < a->dims[1]; c += a->wide, lead = a->lead)
    for (i64 r = begin; r < end; r += a->tall)
      failed |= across_tile(a, r, end - r < a->tall ? end - r : a->tall, c - lead,
                            (a->dims[1] - c < a->wide ? a->dims[1] - c : a->wide) + lead, lead);
  if (a->stream) stream_done();
  if (failed) __atomic_store_n(&a->failed, failed, __ATOMIC_RELAXED);
}

/* *done false: it is not of this form. */
static WeftStatus run_across(Vm *vm, u32 op, const Step *step, u32 n, const Value *args, const Reader *readers,
                             const ArrayType *shape, void *out, u32 bytes, bool in_place, bool *done) {
  Across a = {.step = step, .n = n, .bytes = bytes, .tall = LINE, .wide = TILE_COLUMNS, .out = out};
  bool across = false;
  i64 total = dims_size(shape->rank, shape->dims);
  *done = false;
  if (total < SMALLEST_ACROSS || bytes > 8) return WEFT_OK;
  for (u32 k = 0; k < n; k++)
    if (readers[k].bytes > 8 || readers[k].to_bytes > 8) return WEFT_OK;
  memcpy(a.dims, shape->dims, shape->rank * sizeof *a.dims);
  for (u32 k = 0; k < n; k++) {
    a.convert[k] = readers[k].convert;
    a.from[k] = readers[k].bytes;
    if (args[k].kind == V_NUM) {
      memset(a.strides[k], 0, shape->rank * sizeof *a.dims);
      a.constant[k] = &readers[k];
    } else {
      broadcast_strides(args[k].array, shape->rank, a.strides[k]);
      a.data[k] = args[k].array->data;
    }
  }
  if (axes_join(shape->rank, a.dims, n, a.strides) != 2) return WEFT_OK;
  for (u32 k = 0; k < n; k++) { /* what is gathered has room for a line of each of the tile's columns */
    bool gathered = !a.constant[k] && a.strides[k][1] != 1;
    across |= gathered && a.strides[k][0] == 1 && a.strides[k][1] > 1;
    if (gathered && LINE / a.from[k] < a.tall) a.tall = LINE / a.from[k];
  }
  if (!across || a.dims[0] < a.tall || a.dims[1] < TILE_COLUMNS) return WEFT_OK;
  *done = true;
  a.stream = stream_worth(total * bytes, false);
  if (a.stream)
    a.tall = LARGE_ROWS, a.wide = LARGE_COLUMNS, a.lead = bytes >= 4 && a.dims[1] * bytes % LINE ? LINE / bytes : 0;
  i64 parts = (a.dims[0] + BAND_ROWS - 1) / BAND_ROWS;
  if (total >= vm->tunables.parallel_elements && pool_threads(vm) > 1) {
    if (!in_place) TRY(kernel_poll(vm, total / POLL_ELEMENTS * POLL_ELEMENTS));
    TRY(pool_run(vm, parts, in_place, across_band, &a));
  } else {
    for (i64 p = 0, polled = 0; p < parts; p++) {
      i64 made = p + 1 == parts ? total : (p + 1) * BAND_ROWS * a.dims[1];
      across_band(&a, p);
      if (made - polled < POLL_ELEMENTS || in_place) continue;
      TRY(kernel_poll(vm, (made - polled) / POLL_ELEMENTS * POLL_ELEMENTS)); /* as much as with threads */
      polled += (made - polled) / POLL_ELEMENTS * POLL_ELEMENTS;
    }
  }
  return a.failed ? check_failed(vm, op) : WEFT_OK;
}

/* A comparison of floats with a number, which is the first operand where `mirrored`, as bounds of what it is true
 * for. */
static bool compare_within(Step *s, StripFn within, u32 op, u32 dtype, bool mirrored, Value number) {
  bool less = op == OP_less || op == OP_less_equal, greater = op == OP_greater || op == OP_greater_equal;
  if (!within || !(less || greater || op == OP_equal || op == OP_not_equal)) return false;
  f64 c = num_as_f64(number), edge = less != mirrored ? -INFINITY : INFINITY;
  if (op == OP_less || op == OP_greater)
    c = c == edge ? NAN : dtype == DT_f64 ? nextafter(c, edge) : nextafterf((f32)c, (f32)edge);
  f64 bounds[3] = {(less || greater) && edge < 0 ? edge : c, (less || greater) && edge > 0 ? edge : c,
                   op == OP_not_equal};
  for (u32 i = 0; i < 3; i++)
    num_store((char *)s->bounds + i * dtype_bytes(dtype), dtype, num_convert_unchecked(value_f64(bounds[i]), dtype));
  s->limit = within, s->fn = NULL;
  return true;
}

static WeftStatus run_strips(Vm *vm, u32 op, const Step *step, u32 n, const Value *args, const u8 *dtypes,
                             const ArrayType *shape, void *result, u32 result_bytes, bool in_place) {
  const StripTable *strips = stdlib_of(vm)->strips;
  Reader readers[MAX_OPERANDS];
  NumBox boxes[MAX_OPERANDS];
  i64 total = dims_size(shape->rank, shape->dims);
  Step square = step_of(strips, OP_square, dtypes[0]);
  square.narrow = step->narrow;
  if (is_square(op, args, dtypes) && square.fn) step = &square, n = 1;
  Step by = *step;
  by.bytes = dtype_bytes(dtypes[0]);
  if (n == 2 && args[0].kind != args[1].kind && step->fn && dtype_kind(dtypes[0]) != DK_COMPLEX) {
    bool mirrored = args[0].kind == V_NUM;
    Value v;
    TRY(num_fit(vm, op, args[!mirrored], dtypes[0], &v));
    if (compare_within(&by, strips->within[dtypes[0]], op, dtypes[0], mirrored, v)) step = &by, n = 1, args += mirrored;
  }
  bool whole = !step->narrow; /* every operand is dense, or nothing has to be cut */
  u32 arrays = 0, from = 0, widest = result_bytes; /* bytes of an element of the array; of the widest */
  for (u32 i = 0; i < n; i++) {
    if (args[i].kind == V_NUM && is_pair(args[i], dtypes[i])) {
      reader_start(&readers[i], strips, array_of(args[i], &boxes[i]), shape->rank, shape->dims, dtypes[i]);
    } else if (args[i].kind == V_NUM) {
      Value v;
      TRY(num_fit(vm, op, args[i], dtypes[i], &v));
      reader_start_num(&readers[i], v);
      if (i == 1 && step->fn) by.divisor = divisor_of(op, dtypes[i], v);
    } else {
      reader_start(&readers[i], strips, args[i].array, shape->rank, shape->dims, dtypes[i]);
      if (reads_on(&readers[i])) from = readers[i].bytes;
      if (readers[i].bytes > widest) widest = readers[i].bytes;
      arrays++;
    }
    whole &= reader_any_length(&readers[i]);
  }
  if (by.divisor.by) step = &by, whole = reader_any_length(&readers[0]); /* the divisor is not read */
  if (!whole) {
    bool done;
    TRY(run_across(vm, op, step, n, args, readers, shape, result, result_bytes, in_place, &done));
    if (done) return WEFT_OK;
  }
  bool stream = !in_place && stream_worth(total * result_bytes, false);
  bool far = stream || (!in_place && arrays == 1 && from > result_bytes && stream_worth(total * from, true));
  i64 some = whole ? STREAMED / (n == 1 ? result_bytes : widest) : STRIP;
  i64 most = far ? (n == 1 || arrays == 1 || (widest < 8 && !cpu_has(CPU_FETCH)) ? some : some / 2) : !whole ? STRIP
                 : in_place ? total : POLL_ELEMENTS;
  bool shared = total >= vm->tunables.parallel_elements && pool_threads(vm) > 1;
  if (shared || far) {
    Shared s = {.step = step, .readers = readers, .n = n, .result_bytes = result_bytes, .widest = widest,
                .stream = stream, .far = far, .total = total, .most = most, .out = result};
    if (shared) return run_shared(vm, op, &s, in_place);
    for (i64 done = 0, part; done < total; done += part) {
      part = total - done < POLL_ELEMENTS ? total - done : POLL_ELEMENTS;
      if (UNLIKELY(run_far(&s, readers, done, done + part, total))) return check_failed(vm, op);
      if (stream) stream_done(); /* a poll may raise */
      TRY(kernel_poll(vm, part));
    }
    return WEFT_OK;
  }
  char *o = result;
  for (i64 done = 0, polled = 0; done < total;) {
    const void *in[MAX_OPERANDS];
    i64 part = total - done < most ? total - done : most;
    for (u32 i = 0; i < n; i++) in[i] = reader_next(&readers[i], part);
    if (UNLIKELY(step_run(step, o, in, n, part))) return check_failed(vm, op);
    o += part * result_bytes;
    done += part;
    if (done - polled >= POLL_ELEMENTS && !in_place) { /* once begun over a live value it runs to its end */
      TRY(kernel_poll(vm, done - polled));
      polled = done;
    }
  }
  return WEFT_OK;
}

static WeftStatus run_general(Vm *vm, u32 op, const Step *step, u32 n, Value *args, const u8 *dtypes,
                              const ArrayType *const *types, const DTypeResult *r, Value *out) {
  ArrayType shape;
  RuleError err;
  TRY_RULE(vm, op, &err, rule_broadcast(NULL, n, types, &shape, &err));
  i64 total = dims_size(shape.rank, shape.dims);
  TRY(kernel_poll(vm, total < POLL_ELEMENTS ? total : POLL_ELEMENTS));
  /* clip writes its lower half before it reads the upper bound */
  u32 candidates = step->checked ? 0 : step->low ? 1 : n;
  Value held[MAX_OPERANDS], result = value_hole();
  memcpy(held, args, n * sizeof *args);
  bool in_place = false;
  for (u32 i = 0; i < candidates && !in_place; i++) in_place = result_reuse(&args[i], r->result, &shape, &result);
  if (!in_place) TRY(array_new(vm, r->result, shape.rank, shape.dims, &result));
  WeftStatus status = run_strips(vm, op, step, n, held, dtypes, &shape, result.array->data,
                                 dtype_bytes(r->result), in_place);
  if (status != WEFT_OK) {
    /* operands are only overwritten by what cannot fail, except that a number did not fit: nothing was written */
    if (in_place) memcpy(args, held, n * sizeof *args);
    else value_drop(vm, result);
    return status;
  }
  *out = result;
  if (shape.rank == 0) result_finish(vm, out);
  out->flags = (u8)((out->flags & ~VF_WEAK) | (r->weak && shape.rank == 0 ? VF_WEAK : 0));
  return WEFT_OK;
}

/* nextafter of halves, which are there as f32. */
static void next_halves(u32 half, f32 *out, const f32 *x, const f32 *y, i64 n) {
  for (i64 i = 0; i < n; i++) {
    f32 a = x[i], b = y[i], next = nextafterf(a, b), step = fabsf(next - a) * half_steps(half);
    f32 far = a + copysignf(step < half_least(half) ? half_least(half) : step, next - a);
    out[i] = a == b || a != a || b != b ? next : isinf(a) ? copysignf(half_largest(half), a) : far;
  }
}
static u32 next_f16(void *out, const void *x, const void *y, i64 n) { return next_halves(DT_f16, out, x, y, n), 0; }
static u32 next_bf16(void *out, const void *x, const void *y, i64 n) { return next_halves(DT_bf16, out, x, y, n), 0; }

/* In a dtype that has no arithmetic of its own: its operands are rounded to it, computed in a wider one, and what
 * comes of it is rounded. */
static WeftStatus elementwise_run_wide(Vm *vm, u32 op, Step *step, u32 n, Value *args, const u8 *dtypes,
                           const ArrayType *const *types, const DTypeResult *r, Value *out) {
  Value rounded[MAX_OPERANDS];
  bool nums = true;
  u32 made = 0;
  WeftStatus status = WEFT_OK;
  if (op == OP_nextafter) step->fn = r->compute == DT_f16 ? next_f16 : next_bf16;
  if (r->result == r->compute) step->narrow = stdlib_of(vm)->strips->convert[dtypes[n - 1]][r->result];
  for (; made < n && status == WEFT_OK; made++) {
    nums &= args[made].kind == V_NUM;
    rounded[made] = args[made];
    if (types[made]->dtype == r->compute) continue;
    status = convert_value(vm, op, args[made], r->compute, &rounded[made]);
    if (status != WEFT_OK) rounded[made] = value_hole();
  }
  if (status == WEFT_OK)
    status = nums && !has_pair(n, rounded, dtypes, r) ? run_nums(vm, op, step, n, rounded, dtypes, r, out)
                  : run_general(vm, op, step, n, rounded, dtypes, types, r, out);
  for (u32 i = 0; i < made; i++) {
    if (types[i]->dtype == r->compute) args[i] = rounded[i]; /* its memory may have become the result */
    else value_drop(vm, rounded[i]);
  }
  return status;
}

static WeftStatus run_elementwise(Vm *vm, u32 op, u32 n, Value *args, Value *out) {
  ArrayType types[MAX_OPERANDS];
  const ArrayType *ptrs[MAX_OPERANDS] = {&types[0], &types[1], &types[2]};
  DTypeResult r;
  RuleError err;
  bool nums = true;
  for (u32 i = 0; i < n; i++) {
    TRY(args_array(vm, op, i, args[i]));
    type_of_value(args[i], &types[i]);
    nums &= args[i].kind == V_NUM;
  }
  TRY_RULE(vm, op, &err, rule_dtype(op, n, ptrs, &r, &err));
  u32 compute = dtype_compute(r.compute);
  u8 dtypes[MAX_OPERANDS] = {(u8)compute, (u8)compute, (u8)compute};
  Step step = step_of(stdlib_of(vm)->strips, op, compute);
  if (step.fn == NULL)
    return vm_error(vm, EK_unsupported, "%s: not supported for %s", op_name(op), dtype_name(r.compute));
  if (UNLIKELY(compute != r.compute)) return elementwise_run_wide(vm, op, &step, n, args, dtypes, ptrs, &r, out);
  if (nums && !has_pair(n, args, dtypes, &r)) return run_nums(vm, op, &step, n, args, dtypes, &r, out);
  return run_general(vm, op, &step, n, args, dtypes, ptrs, &r, out);
}

/* ---- fast paths ---------------------------------------------------------------------------------- */

static inline bool same_dims(Array *a, Array *b) {
  if (a->size != b->size) return false;
  u32 rank = array_rank(a);
  return rank <= 1 || memcmp(array_dims(a), array_dims(b), rank * sizeof(i64)) == 0;
}

static inline bool may_overwrite(const Array *a) { return a->head.refs == 1 && array_writable(a); }

/* Result memory like dense `a`, which is args[i]: itself when nobody else has it and the dtype stays. */
static inline WeftStatus take_or_make(Vm *vm, Value *args, u32 n, u32 dtype, bool checked, Value *out) {
  Array *a = args[0].array;
  if (!checked)
    for (u32 i = 0; i < n; i++)
      if (args[i].kind == V_ARRAY && array_dtype(args[i].array) == dtype && may_overwrite(args[i].array)) {
        *out = args[i];
        args[i] = value_hole();
        return WEFT_OK;
      }
  return array_new_like(vm, dtype, a, out);
}

/* One body for all of them: written out in each entry it would be 25 KB. */
static __attribute__((noinline)) WeftStatus unary(Vm *vm, u32 op, Value *args, Value *out) {
  Stdlib *s = stdlib_of(vm);
  if (args[0].kind == V_NUM) {
    Value x = args[0];
    u32 r = direct_of(s, op, x.dtype);
    if (LIKELY(r)) { /* the payload begins with the element */
      u64 result = 0;
      (void)s->strips->ops[op][x.dtype](&result, &x.bits, &x.bits, 1);
      *out = num_load(&result, r);
      out->flags = x.flags;
      return WEFT_OK;
    }
  }
  if (args[0].kind == V_ARRAY) {
    Array *a = args[0].array;
    u32 d = array_dtype(a), r = direct_of(s, op, d);
    if (r && array_dense(a) && array_device(a) == DEV_CPU && a->size <= POLL_ELEMENTS && array_rank(a) > 0) {
      TRY(kernel_poll(vm, a->size));
      i64 n = a->size;
      const void *x = a->data;
      TRY(take_or_make(vm, args, 1, r, false, out));
      (void)s->strips->ops[op][d](out->array->data, x, x, n);
      return WEFT_OK;
    }
  }
  return run_elementwise(vm, op, 1, args, out);
}

/* A dense array and a number that takes its dtype. Apart: its strip makes the frame large. */
static __attribute__((noinline)) WeftStatus binary_number(Vm *vm, u32 op, u32 row, bool swap, Value *args, Value *out) {
  Stdlib *s = stdlib_of(vm);
  u32 at = args[0].kind == V_ARRAY ? 0 : 1;
  Array *a = args[at].array;
  Value num = args[1 - at];
  u32 d = array_dtype(a), r = direct_of(s, op, d);
  bool fits = d != DT_c128 && (num.dtype == d || (value_is_weak(num) && dtype_kind(num.dtype) <= dtype_kind(d)));
  if (r && fits && array_dense(a) && array_device(a) == DEV_CPU && a->size <= POLL_ELEMENTS && array_rank(a) > 0) {
    _Alignas(64) char strip[STRIP * 8];
    u64 one;
    TRY(kernel_poll(vm, a->size));
    if (num.dtype != d) TRY(num_fit(vm, op, num, d, &num));
    one = num.bits; /* the payload begins with the element */
    i64 n = a->size;
    u32 bytes = dtype_bytes(d), result_bytes = dtype_bytes(r);
    Divisor by = divisor_of(at ? OP_none : op, d, num);
    bool checked = can_fail(op, d) && !by.by;
    const char *x = a->data;
    if (at == 0) TRY(take_or_make(vm, args, 1, r, checked, out));
    else if (!checked && array_dtype(a) == r && may_overwrite(a)) {
      *out = args[1];
      args[1] = value_hole();
    } else {
      TRY(array_new_like(vm, r, a, out));
    }
    StripFn fn = s->strips->ops[row][d];
    char *o = out->array->data;
    if (by.by) {
      divisor_run(&by, bytes, o, x, n);
      return WEFT_OK;
    }
    strip_fill(strip, &one, n < STRIP ? n : STRIP, bytes);
    u32 bad = 0;
    bool array_first = (at == 0) != swap;
    for (i64 i = 0; i < n; i += STRIP) {
      i64 part = n - i < STRIP ? n - i : STRIP;
      bad |= array_first ? fn(o, x, strip, part) : fn(o, strip, x, part);
      o += part * result_bytes;
      x += part * bytes;
    }
    if (UNLIKELY(bad)) {
      value_drop(vm, *out);
      return check_failed(vm, op);
    }
    return WEFT_OK;
  }
  return run_elementwise(vm, op, 2, args, out);
}

/* A weak integer beyond all numbers of the dtype that it is compared with: the comparison becomes one with the
 * largest of these that comes to the same, whatever the other operand holds. */
static u32 compare_beyond(u32 op, Value *args) {
  for (u32 i = 0; i < 2; i++) {
    const Value num = args[i], other = args[1 - i];
    const u32 d = other.kind == V_NUM ? other.dtype : other.kind == V_ARRAY ? array_dtype(other.array) : DT_f64;
    if (num.kind != V_NUM || !value_is_weak(num) || (other.kind == V_NUM && value_is_weak(other)) ||
        dtype_kind(num.dtype) > DK_INT || num_fits(num, d))
      continue;
    const bool less = (num.i < 0) == (i == 0); /* is args[0] < args[1]? */
    const bool is = op == OP_not_equal ||
                    (less ? op == OP_less || op == OP_less_equal : op == OP_greater || op == OP_greater_equal);
    args[i] = num_convert_unchecked(value_i64((i64)dtype_int_max(d)), d);
    if (i == 1) return is ? OP_less_equal : OP_greater;
    return is ? OP_greater_equal : OP_less;
  }
  return op;
}

/* Equality of anything but two arrays is structural. */
static __attribute__((noinline)) WeftStatus structural(Vm *vm, const Value *args, bool negate, Value *out) {
  bool same;
  TRY(value_equal(vm, args[0], args[1], &same));
  *out = value_bool(same != negate);
  return WEFT_OK;
}

/* Written out for each operation, which is known there. */
static inline WeftStatus binary_fast(Vm *vm, u32 op, Value *args, Value *out) {
  Stdlib *s = stdlib_of(vm);
  const u32 before = op;
  u32 row = strip_row(op);
  bool swap = strip_swaps(op);
  if ((op == OP_equal || op == OP_not_equal) && (!value_is_numeric(args[0]) || !value_is_numeric(args[1])))
    return structural(vm, args, op == OP_not_equal, out);
  if (args[0].kind == V_NUM && args[1].kind == V_NUM && args[0].dtype == args[1].dtype) {
    Value x = args[0], y = args[1];
    u32 d = x.dtype, r = direct_of(s, op, d);
    if (LIKELY(r)) {
      u64 result = 0;
      const void *p = swap ? &y.bits : &x.bits, *q = swap ? &x.bits : &y.bits;
      if (UNLIKELY(s->strips->ops[row][d](&result, p, q, 1))) return check_failed(vm, op);
      *out = num_load(&result, r);
      out->flags = x.flags & y.flags;
      return WEFT_OK;
    }
  }
  if (args[0].kind == V_ARRAY && args[1].kind == V_ARRAY) {
    Array *a = args[0].array, *b = args[1].array;
    u32 d = array_dtype(a), r = direct_of(s, op, d);
    if (LIKELY(a->tag == b->tag && r && array_dense(a) && array_device(a) == DEV_CPU && same_dims(a, b) &&
               a->size <= POLL_ELEMENTS && array_rank(a) > 0)) {
      TRY(kernel_poll(vm, a->size));
      i64 n = a->size;
      const void *x = a->data, *y = b->data;
      bool checked = can_fail(op, d);
      TRY(take_or_make(vm, args, 2, r, checked, out));
      u32 bad = swap ? s->strips->ops[row][d](out->array->data, y, x, n)
                     : s->strips->ops[row][d](out->array->data, x, y, n);
      if (UNLIKELY(bad)) {
        value_drop(vm, *out); /* checked: it was made here */
        return check_failed(vm, op);
      }
      return WEFT_OK;
    }
  } else if ((args[0].kind == V_ARRAY) != (args[1].kind == V_ARRAY) &&
             (args[0].kind == V_NUM || args[1].kind == V_NUM)) {
    if (op_compares(op) && UNLIKELY((op = compare_beyond(op, args)) != before)) {
      swap = strip_swaps(op);
      row = strip_row(op);
    }
    return binary_number(vm, op, row, swap, args, out);
  } else if (op_compares(op)) {
    op = compare_beyond(op, args);
  }
  return run_elementwise(vm, op, 2, args, out);
}

PairWent elementwise_pair(Vm *vm, u32 op, const Array *a, const Array *b, Value *out) {
  enum { FEW = 1024 }; /* from there on operations count as fuel */
  Stdlib *s = stdlib_of(vm);
  u64 tag = a->tag;
  u32 d = array_dtype(a), r = direct_of(s, op, d);
  i64 n = a->size;
  if (UNLIKELY(tag != b->tag || !r || tag >> 24 != (u64)LAY_DENSE << 8 || n != b->size || n >= FEW)) return PAIR_OTHER;
  if (array_rank(a) != 1 && (array_rank(a) == 0 || !same_dims((Array *)a, (Array *)b))) return PAIR_OTHER;
  if (array_new_like(vm, r, a, out) != WEFT_OK) return PAIR_FAILED;
  (void)s->strips->ops[op][d](out->array->data, a->data, b->data, n); /* none of them fails */
  return PAIR_DONE;
}

/* ---- entries ------------------------------------------------------------------------------------- */

/* A function for each row of ops.def whose kernel is `unary` or `binary`. */
#define CELL_unary ~, UNARY, 0
#define CELL_binary ~, BINARY, 0
#define UNARY(name, none) \
  WeftStatus eager_##name(Vm *vm, Value *args, Value *out) { return unary(vm, OP_##name, args, out); }
#define BINARY(name, none) \
  WeftStatus eager_##name(Vm *vm, Value *args, Value *out) { return binary_fast(vm, OP_##name, args, out); }
#define OP(name, signature, family, dtype, shape, needs, check, effect, agree, kernel, ...) OP_CELL(name, CELL_##kernel)
#include "lang/ops.def"
#undef OP

WeftStatus elementwise_unary(Vm *vm, u32 op, Value *args, Value *out) { return unary(vm, op, args, out); }

WeftStatus eager_where(Vm *vm, Value *args, Value *out) {
  ArrayType types[3];
  const ArrayType *ptrs[3] = {&types[0], &types[1], &types[2]};
  DTypeResult r;
  RuleError err;
  if (args[1].kind == V_HOLE || args[2].kind == V_HOLE)
    return vm_error(vm, EK_type,
                    "where: needs a condition and two values; nonzero(c) gives the indices where c is true");
  for (u32 i = 0; i < 3; i++) {
    TRY(args_array(vm, OP_where, i, args[i]));
    type_of_value(args[i], &types[i]);
  }
  TRY_RULE(vm, OP_where, &err, rule_dtype(OP_where, 3, ptrs, &r, &err));
  u8 dtypes[3] = {DT_bool, r.compute, r.compute};
  const StripTable *strips = stdlib_of(vm)->strips;
  Step step = {.select = strips->select[dtype_bytes(r.compute)],
               .past = dtype_bytes(r.compute) == 8 ? strips->select_past : NULL};
  if (args[0].kind == V_NUM && args[1].kind == V_NUM && args[2].kind == V_NUM && !has_pair(3, args, dtypes, &r))
    return run_nums(vm, OP_where, &step, 3, args, dtypes, &r, out);
  return run_general(vm, OP_where, &step, 3, args, dtypes, ptrs, &r, out);
}

static void limit_between(Step *s, StripFn limit, u32 dtype, const Value *given) {
  if (!limit) return;
  Value low = num_convert_unchecked(given[1], dtype), high = num_convert_unchecked(given[2], dtype);
  f64 least = num_as_f64(low), most = num_as_f64(high), zero = least == 0 && !signbit(least) ? 0 : -0.0;
  if (least != least || most != most || (most == 0 && signbit(most))) return;
  const Value bounds[3] = {low, high, num_convert_unchecked(value_f64(zero), dtype)};
  for (u32 i = 0; i < 3; i++) num_store((char *)s->bounds + i * dtype_bytes(dtype), dtype, bounds[i]);
  s->limit = limit;
}

WeftStatus eager_clip(Vm *vm, Value *args, Value *out) {
  ArrayType types[3];
  const ArrayType *ptrs[3] = {&types[0], &types[1], &types[2]};
  Value given[3] = {args[0]};
  u32 n = 1;
  bool low = args_given(args[1]), high = args_given(args[2]);
  if (low) given[n++] = args[1];
  if (high) given[n++] = args[2];
  bool nums = true;
  for (u32 i = 0; i < n; i++) {
    TRY(args_array(vm, OP_clip, i == 0 ? 0 : i == 1 && low ? 1 : 2, given[i]));
    type_of_value(given[i], &types[i]);
    nums &= given[i].kind == V_NUM;
  }
  if (n == 1) {
    *out = value_keep(args[0]);
    return WEFT_OK;
  }
  DTypeResult r;
  RuleError err;
  TRY_RULE(vm, OP_clip, &err, rule_dtype(OP_clip, n, ptrs, &r, &err));
  const StripTable *strips = stdlib_of(vm)->strips;
  u32 compute = dtype_compute(r.compute);
  u8 dtypes[3] = {(u8)compute, (u8)compute, (u8)compute};
  Step step = {.low = low ? strips->ops[OP_maximum][compute] : NULL,
               .high = high ? strips->ops[OP_minimum][compute] : NULL};
  const bool wide = compute != r.compute;
  if (!wide && low && high && given[1].kind == V_NUM && given[2].kind == V_NUM)
    limit_between(&step, strips->limit[r.compute], r.compute, given);
  if (!wide && nums) return run_nums(vm, OP_clip, &step, n, given, dtypes, &r, out);
  WeftStatus status = wide ? elementwise_run_wide(vm, OP_clip, &step, n, given, dtypes, ptrs, &r, out)
                           : run_general(vm, OP_clip, &step, n, given, dtypes, ptrs, &r, out);
  /* an operand whose memory became the result is nobody's any more: the argument it came from, which need not have
   * the same number */
  if (given[0].kind == V_HOLE) args[0] = value_hole();
  if (low && given[1].kind == V_HOLE) args[1] = value_hole();
  if (high && given[n - 1].kind == V_HOLE) args[2] = value_hole();
  return status;
}

/* ---- conversion ---------------------------------------------------------------------------------- */

static WeftStatus cast_failed(Vm *vm, u32 op, u32 from, u32 to) {
  const char *name = op == OP_astype ? dtype_name(to) : op_name(op); /* what i32(x) is called */
  return vm_error(vm, EK_value, "%s: a %s that is NaN or out of range does not fit %s", name, dtype_name(from),
                  dtype_name(to));
}

WeftStatus convert_allowed(Vm *vm, u32 op, u32 from, u32 to) {
  if (dtype_kind(from) != DK_COMPLEX || dtype_kind(to) == DK_COMPLEX || to == DT_bool) return WEFT_OK;
  return vm_error(vm, EK_dtype, "%s: %s does not convert to %s; real(x) is its real part",
                  op == OP_astype ? dtype_name(to) : op_name(op), dtype_name(from), dtype_name(to));
}

WeftStatus convert_value(Vm *vm, u32 op, Value v, u32 to, Value *out) {
  const StripTable *strips = stdlib_of(vm)->strips;
  TRY(convert_allowed(vm, op, v.dtype, to));
  if (v.kind == V_NUM && dtype_kind(to) == DK_COMPLEX && v.dtype != to) {
    f64 re, im;
    if (to == DT_c64) v = num_convert_unchecked(v, DT_c64);
    num_parts(v, &re, &im);
    return value_complex(vm, to, re, im, false, out);
  }
  if (v.kind == V_NUM) {
    if (v.dtype == to) {
      *out = v;
    } else {
      u64 from = 0, result = 0;
      num_store(&from, v.dtype, v);
      Value fitted;
      TRY(num_fit(vm, op, v, to, &fitted));
      if (strips->convert[v.dtype][to](&result, &from, &from, 1)) return cast_failed(vm, op, v.dtype, to);
      *out = num_load(&result, to);
    }
    out->flags = (u8)(out->flags & ~VF_WEAK);
    return WEFT_OK;
  }
  Array *a = v.array;
  u32 from = array_dtype(a);
  if (from == to) {
    *out = strong(value_keep(v));
    return WEFT_OK;
  }
  TRY(kernel_poll(vm, a->size));
  TRY(array_new(vm, to, array_rank(a), array_dims(a), out));
  u32 bad;
  WeftStatus status = copy_dense(vm, a, array_rank(a), array_dims(a), to, out->array->data, &bad);
  if (status != WEFT_OK || bad) {
    value_drop(vm, *out);
    return status != WEFT_OK ? status : cast_failed(vm, op, from, to);
  }
  *out = array_finish(vm, *out);
  return WEFT_OK;
}

WeftStatus run_in_dtype(Vm *vm, u32 op, u32 at, const Value *args, Value *out) {
  u32 dtype = DT_NONE;
  Value now[OP_MAX_PARAMS], wide;
  TRY(args_dtype(vm, op, at, args[at], &dtype));
  TRY(args_array(vm, op, 0, args[0]));
  for (u32 i = 0; i < op_info(op)->nparams; i++) now[i] = i == at ? value_hole() : args[i];
  TRY(convert_value(vm, op, args[0], dtype, &now[0]));
  WeftStatus status = vm->ops[op].eager(vm, now, &wide);
  value_drop(vm, now[0]);
  if (status != WEFT_OK) return status;
  status = convert_value(vm, op, wide, dtype, out);
  value_drop(vm, wide);
  return status;
}

WeftStatus eager_astype(Vm *vm, Value *args, Value *out) {
  u32 to = DT_NONE;
  if (args[1].kind != V_DTYPE) return args_error(vm, OP_astype, 1, args[1], "a dtype");
  TRY(args_dtype(vm, OP_astype, 1, args[1], &to));
  if (args[0].kind == V_TEXT)
    return vm_error(vm, EK_type, "%s: text is no number; parse_float(…) or parse_int(…) reads one", dtype_name(to));
  if (args[0].kind == V_LIST || args[0].kind == V_RANGE) { /* converts as array(x) does */
    Value list[2] = {value_keep(args[0]), value_dtype(to)};
    return run_op(vm, OP_array, list, 2, out);
  }
  TRY(args_array(vm, OP_astype, 0, args[0]));
  return convert_value(vm, OP_astype, args[0], to, out);
}
