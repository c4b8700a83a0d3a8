/* fft.c — Fourier transforms along the last axis of arrays, complex numbers being pairs of floats, or themselves. Rows
 * go through the kernels in groups; plans of the last lengths are kept. */
#include "stdlib/array/make.h"
#include "stdlib/fft/plan.h"

enum { FFT_KEPT = 8 };

/* The plan of a length, and what rows of twice as many real numbers need besides. */
typedef struct FftKept {
  FftPlan *plan;
  void *twist; /* NULL: not needed so far */
  bool single;
  u64 used;    /* when, by FftState.clock */
} FftKept;

typedef struct FftState {
  FftKept kept[FFT_KEPT];
  u64 clock;
} FftState;

static void kept_free(Vm *vm, FftKept *k) {
  if (!k->plan) return;
  fft_twist_free(&vm->alloc, k->twist, k->plan->n, k->single);
  fft_plan_free(&vm->alloc, k->plan, k->single);
  *k = (FftKept){0};
}

void fft_remove(Vm *vm) {
  FftState *s = stdlib_of(vm)->fft;
  if (!s) return;
  for (u32 i = 0; i < FFT_KEPT; i++) kept_free(vm, &s->kept[i]);
  mem_free(&vm->alloc, s, sizeof *s);
  stdlib_of(vm)->fft = NULL;
}

static bool call_ends(void *vm) { return vm_ends(vm); }

/* No plan: why. */
static WeftStatus no_plan(Vm *vm) { return vm_look(vm) == WEFT_OK ? vm_error_memory(vm) : WEFT_ERROR; }

static WeftStatus kept_plan(Vm *vm, i64 n, bool single, bool twist, FftKept **out) {
  FftState *s = stdlib_of(vm)->fft;
  if (!s && !(s = stdlib_of(vm)->fft = mem_alloc_zero(&vm->alloc, sizeof *s))) return vm_error_memory(vm);
  FftKept *k = &s->kept[0];
  const FftLook look = {call_ends, vm};
  for (u32 i = 0; i < FFT_KEPT; i++) {
    FftKept *other = &s->kept[i];
    bool hit = other->plan && other->plan->n == n && other->single == single;
    if (hit || other->used < k->used) k = other;
    if (hit) break;
  }
  if (!k->plan || k->plan->n != n || k->single != single) {
    kept_free(vm, k);
    TRY(kernel_poll(vm, 64 * n));
    k->plan = fft_plan_new(&vm->alloc, n, single, &look);
    k->single = single;
    if (!k->plan) return no_plan(vm);
  }
  if (twist && !k->twist && !(k->twist = fft_twist_new(&vm->alloc, n, single, &look))) return no_plan(vm);
  k->used = ++s->clock;
  *out = k;
  return WEFT_OK;
}

/* What a call works on: x dense, in the dtype computed in. */
typedef struct FftCall {
  Vm *vm;
  u32 op, dtype;
  bool single;
  size_t bytes;   /* of a float */
  Value x;
  i64 n, rows;    /* numbers of a transform, transforms */
  const FftKernels *kernels;
  FftKept *kept;
  char *work;     /* plan->work floats, then `more` */
  size_t work_bytes;
  FftLook look;
} FftCall;

/* x as floats; its type. */
static WeftStatus call_read(FftCall *c, Value x, ArrayType *type) {
  TRY(args_array(c->vm, c->op, 0, x));
  type_of_value(x, type);
  const ArrayType *types[1] = {type};
  DTypeResult r;
  RuleError err;
  TRY_RULE(c->vm, c->op, &err, rule_dtype(c->op, 1, types, &r, &err));
  c->dtype = r.compute;
  c->single = r.compute == DT_f32 || r.compute == DT_c64;
  c->bytes = c->single ? sizeof(f32) : sizeof(f64);
  c->kernels = fft_kernels(c->single);
  return dense_as(c->vm, c->op, x, c->dtype, &c->x);
}

/* The plan of length `n`, its work and `more` floats. */
static WeftStatus call_plan(FftCall *c, i64 n, bool twist, i64 more) {
  TRY(kept_plan(c->vm, n, c->single, twist, &c->kept));
  c->work_bytes = (size_t)(c->kept->plan->work + more) * c->bytes;
  return (c->work = mem_alloc(&c->vm->alloc, c->work_bytes)) ? WEFT_OK : vm_error_memory(c->vm);
}

static char *call_more(const FftCall *c) { return c->work + (size_t)c->kept->plan->work * c->bytes; }

static WeftStatus call_end(FftCall *c, WeftStatus status, Value *out) {
  if (status == WEFT_OK) status = vm_look(c->vm); /* which may have ended it */
  if (c->work) mem_free(&c->vm->alloc, c->work, c->work_bytes);
  value_drop(c->vm, c->x);
  if (status != WEFT_OK) value_drop(c->vm, *out);
  else *out = array_finish(c->vm, *out);
  return status;
}

/* Rows at a time: at most FFT_ROWS, and to poll in between. */
static i64 rows_at_once(const FftCall *c, i64 at) { return c->rows - at < FFT_ROWS ? c->rows - at : FFT_ROWS; }

static f64 float_at(const FftCall *c, const void *x, i64 i) {
  return c->single ? (f64)((const f32 *)x)[i] : ((const f64 *)x)[i];
}
static void put_float(const FftCall *c, void *x, i64 i, f64 v) {
  if (c->single) ((f32 *)x)[i] = (f32)v;
  else ((f64 *)x)[i] = v;
}

WeftStatus eager_fft_pairs(Vm *vm, Value *args, Value *out) {
  FftCall c = {.vm = vm, .look = {call_ends, vm}, .op = OP_fft_pairs};
  ArrayType type;
  RuleError err;
  bool inverse = false;
  *out = value_hole();
  TRY(args_bool(vm, c.op, 1, args[1], &inverse));
  TRY(args_array(vm, c.op, 0, args[0]));
  type_of_value(args[0], &type);
  TRY_RULE(vm, c.op, &err, shape_fft_pairs(NULL, &type, &err));
  TRY(call_read(&c, args[0], &type));
  WeftStatus status = array_new(vm, c.dtype, type.rank, type.dims, out);
  bool complex = dtype_kind(c.dtype) == DK_COMPLEX; /* its elements are the pairs */
  c.n = type.dims[type.rank - (complex ? 1 : 2)];
  c.rows = status == WEFT_OK && out->array->size ? out->array->size / (complex ? c.n : 2 * c.n) : 0;
  if (status == WEFT_OK && c.rows) status = call_plan(&c, c.n, false, 0);
  size_t row = 2 * (size_t)c.n * c.bytes;
  for (i64 at = 0, m; status == WEFT_OK && at < c.rows; at += m) {
    m = rows_at_once(&c, at);
    status = kernel_poll(vm, m * c.n * 8);
    if (status == WEFT_OK)
      c.kernels->rows(c.kept->plan, (char *)c.x.array->data + (size_t)at * row, c.n,
                      (char *)out->array->data + (size_t)at * row, c.n, m, inverse, 1, c.work, &c.look);
  }
  return call_end(&c, status, out);
}

/* Of an even number of real ones the transform of half as many pairs, unfolded; of an odd number that of pairs whose
 * second is 0. */
WeftStatus eager_fft_rpairs(Vm *vm, Value *args, Value *out) {
  FftCall c = {.vm = vm, .look = {call_ends, vm}, .op = OP_fft_rpairs};
  ArrayType type, half;
  RuleError err;
  *out = value_hole();
  TRY(args_array(vm, c.op, 0, args[0]));
  type_of_value(args[0], &type);
  TRY_RULE(vm, c.op, &err, shape_fft_real(NULL, &type, &half, &err));
  TRY(call_read(&c, args[0], &type));
  WeftStatus status = array_new_zero(vm, c.dtype, half.rank, half.dims, out);
  c.n = type.dims[type.rank - 1];
  i64 h = c.n / 2, m = h + 1;
  bool even = c.n % 2 == 0;
  c.rows = status == WEFT_OK && c.n && out->array->size ? out->array->size / (2 * m) : 0;
  if (status == WEFT_OK && c.rows) status = call_plan(&c, even ? h : c.n, even, even ? 0 : 2 * c.n * FFT_ROWS);
  for (i64 at = 0, some; status == WEFT_OK && at < c.rows; at += some) {
    some = rows_at_once(&c, at);
    status = kernel_poll(vm, some * c.n * 4);
    if (status != WEFT_OK) break;
    char *x = (char *)c.x.array->data + (size_t)(at * c.n) * c.bytes;
    char *y = (char *)out->array->data + (size_t)(2 * at * m) * c.bytes;
    if (even) {
      c.kernels->rows(c.kept->plan, x, h, y, m, some, false, 1, c.work, &c.look);
      for (i64 r = 0; r < some; r++) c.kernels->unfold(y + (size_t)(2 * r * m) * c.bytes, h, c.kept->twist, &c.look);
      continue;
    }
    char *whole = call_more(&c);
    for (i64 i = 0; i < some * c.n; i++) {
      if (i % FFT_PART == FFT_PART - 1 && vm_ends(vm)) break;
      put_float(&c, whole, 2 * i, float_at(&c, x, i));
      put_float(&c, whole, 2 * i + 1, 0);
    }
    c.kernels->rows(c.kept->plan, whole, c.n, whole, c.n, some, false, 1, c.work, &c.look);
    for (i64 r = 0; r < some; r++)
      memcpy(y + (size_t)(2 * r * m) * c.bytes, whole + (size_t)(2 * r * c.n) * c.bytes, (size_t)(2 * m) * c.bytes);
  }
  return call_end(&c, status, out);
}

/* The other half is the conjugate of the first. What the first pair, and the last of an even number, hold besides their
 * real part counts for nothing. */
static void whole_row(const FftCall *c, const char *x, char *to) {
  for (i64 k = 0; k < c->n; k++) {
    if (k % FFT_PART == FFT_PART - 1 && vm_ends(c->vm)) return;
    bool other = 2 * k > c->n;
    i64 from = other ? c->n - k : k;
    put_float(c, to, 2 * k, float_at(c, x, 2 * from));
    f64 im = k ? float_at(c, x, 2 * from + 1) : 0;
    put_float(c, to, 2 * k + 1, other ? -im : im);
  }
}

WeftStatus eager_fft_irpairs(Vm *vm, Value *args, Value *out) {
  FftCall c = {.vm = vm, .look = {call_ends, vm}, .op = OP_fft_irpairs};
  ArrayType type, whole;
  RuleError err;
  *out = value_hole();
  TRY(args_array(vm, c.op, 0, args[0]));
  TRY(args_size(vm, c.op, 1, args[1], &c.n));
  type_of_value(args[0], &type);
  TRY_RULE(vm, c.op, &err, shape_fft_whole(NULL, &type, c.n, &whole, &err));
  TRY(call_read(&c, args[0], &type));
  WeftStatus status = array_new(vm, c.dtype, whole.rank, whole.dims, out);
  i64 h = c.n / 2, m = h + 1;
  bool even = c.n % 2 == 0;
  c.rows = status == WEFT_OK && out->array->size ? out->array->size / c.n : 0;
  if (status == WEFT_OK && c.rows) status = call_plan(&c, even ? h : c.n, even, even ? 0 : 2 * c.n * FFT_ROWS);
  for (i64 at = 0, some; status == WEFT_OK && at < c.rows; at += some) {
    some = rows_at_once(&c, at);
    status = kernel_poll(vm, some * c.n * 4);
    if (status != WEFT_OK) break;
    char *x = (char *)c.x.array->data + (size_t)(2 * at * m) * c.bytes;
    char *y = (char *)out->array->data + (size_t)(at * c.n) * c.bytes, *pairs = even ? y : call_more(&c);
    size_t in_step = (size_t)(2 * m) * c.bytes, step = (size_t)(even ? c.n : 2 * c.n) * c.bytes;
    for (i64 r = 0; r < some; r++)
      if (even) c.kernels->fold(x + (size_t)r * in_step, pairs + (size_t)r * step, h, c.kept->twist, &c.look);
      else whole_row(&c, x + (size_t)r * in_step, pairs + (size_t)r * step);
    i64 length = even ? h : c.n;
    c.kernels->rows(c.kept->plan, pairs, length, pairs, length, some, true, 1, c.work, &c.look);
    for (i64 i = 0; !even && i < some * c.n; i++) put_float(&c, y, i, float_at(&c, pairs, 2 * i));
  }
  return call_end(&c, status, out);
}
