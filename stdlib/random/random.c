/* random.c — random numbers by counter: Philox 4x32-10.
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011; known answers are those
 * of their Random123 library. A key is i64 of shape (2,): (seed, stream). Block b of a key is Philox with the
 * 64-bit counter (b, stream) and the key (seed's two words). A 32-bit element i takes word i mod 4 of block i / 4,
 * a 64-bit one words 2 (i mod 2) and the next of block i / 2, the low word first. */
#include "stdlib/array/make.h"
#include "stdlib/array/walk.h"
#include "stdlib/kernels/philox.h"

#include <math.h>
#include <string.h>

typedef struct Key {
  u64 seed, stream;
} Key;

/* Of a block, the 64-bit element i. */
static u64 word64(const u32 *w, u64 i) {
  u32 at = 2 * (u32)(i & 1);
  return (u64)w[at] | (u64)w[at + 1] << 32;
}

static u64 bits64(Key k, u64 i) {
  u32 w[4];
  philox(k.seed, k.stream, i >> 1, w);
  return word64(w, i);
}

static u32 bits32(Key k, u64 i) {
  u32 w[4];
  philox(k.seed, k.stream, i >> 2, w);
  return w[i & 3];
}

/* [0, 1): the upper 53 (24) bits, scaled. */
static f64 unit64(Key k, u64 i) { return (f64)(bits64(k, i) >> 11) * 0x1p-53; }
static f32 unit32(Key k, u64 i) { return (f32)(bits32(k, i) >> 8) * 0x1p-24f; }

/* Elements 2 i and 2 i + 1. */
static void units32(Key k, u64 i, f32 out[2]) {
  u32 w[4], at = 2 * (u32)(i & 1);
  philox(k.seed, k.stream, i >> 1, w);
  out[0] = (f32)(w[at] >> 8) * 0x1p-24f;
  out[1] = (f32)(w[at + 1] >> 8) * 0x1p-24f;
}

static WeftStatus arg_key(Vm *vm, u32 op, Value v, Key *out) {
  if (v.kind != V_ARRAY || array_dtype(v.array) != DT_i64 || array_rank(v.array) != 1 || v.array->size != 2 ||
      array_device(v.array) != DEV_CPU)
    return args_error(vm, op, 0, v, "a key: i64 of shape (2,), as random.key(seed) gives (rand and randn need none)");
  out->seed = array_load(v.array, 0).u;
  out->stream = array_load(v.array, array_strides(v.array)[0]).u;
  return WEFT_OK;
}

static WeftStatus key_array(Vm *vm, const Key *keys, i64 n, bool one, Value *out) {
  i64 dims[2] = {n, 2};
  TRY(array_new(vm, DT_i64, one ? 1 : 2, one ? dims + 1 : dims, out));
  for (i64 i = 0; i < n; i++) {
    ((i64 *)out->array->data)[2 * i] = (i64)keys[i].seed;
    ((i64 *)out->array->data)[2 * i + 1] = (i64)keys[i].stream;
  }
  return WEFT_OK;
}

WeftStatus eager_random_key(Vm *vm, Value *args, Value *out) {
  i64 seed = 0;
  TRY(args_int(vm, OP_random_key, 0, args[0], &seed));
  Key k = {(u64)seed, 0};
  return key_array(vm, &k, 1, true, out);
}

/* Derived keys come from the blocks of a counter range that elements never reach: the top bit is set. */
static Key derived(Key k, u64 data) {
  u32 w[4];
  philox(k.seed, k.stream, data | (u64)1 << 63, w);
  return (Key){(u64)w[0] | (u64)w[1] << 32, (u64)w[2] | (u64)w[3] << 32};
}

WeftStatus eager_random_split(Vm *vm, Value *args, Value *out) {
  Key k = {0};
  i64 n = 2;
  TRY(arg_key(vm, OP_random_split, args[0], &k));
  TRY(args_size(vm, OP_random_split, 1, args[1], &n));
  const i64 dims[2] = {n, 2};
  TRY(array_new(vm, DT_i64, 2, dims, out));
  for (i64 i = 0; i < n; i++) {
    Key d = derived(k, (u64)i);
    ((i64 *)out->array->data)[2 * i] = (i64)d.seed;
    ((i64 *)out->array->data)[2 * i + 1] = (i64)d.stream;
  }
  return WEFT_OK;
}

WeftStatus eager_random_fold_in(Vm *vm, Value *args, Value *out) {
  Key k = {0};
  i64 data = 0;
  TRY(arg_key(vm, OP_random_fold_in, args[0], &k));
  TRY(args_int(vm, OP_random_fold_in, 1, args[1], &data));
  Key d = derived(derived(k, 0x9E3779B97F4A7C15u >> 1), (u64)data & ~((u64)1 << 63));
  if (data < 0) d = derived(d, 0);
  return key_array(vm, &d, 1, true, out);
}

/* ---- drawing ------------------------------------------------------------------------------------------- */

static WeftStatus draw_shape(Vm *vm, u32 op, u32 param, Value v, u32 *rank, i64 *dims) {
  *rank = 0;
  return v.kind == V_HOLE || v.kind == V_NIL ? WEFT_OK : args_shape(vm, op, param, v, rank, dims);
}

static WeftStatus need_float(Vm *vm, u32 op, u32 dtype) {
  if (dtype_kind(dtype) == DK_FLOAT) return WEFT_OK;
  return vm_error(vm, EK_dtype, "%s: dtype must be f32 or f64, got %s", op_name(op), dtype_name(dtype));
}

/* An interval from lo on, without hi, which may lie below lo. What rounding takes to hi or beyond becomes the
 * number beside hi. Where hi - lo overflows, halves are drawn and doubled. */
#define INTERVAL(T, nextafter)                                                            \
  typedef struct Interval_##T {                                                           \
    T from, wide, back, hi, last;                                                         \
    bool upwards;                                                                         \
  } Interval_##T;                                                                         \
  static Interval_##T interval_##T(T lo, T hi) {                                          \
    T scale = isfinite(hi - lo) ? 1 : (T)0.5;                                             \
    return (Interval_##T){lo * scale, hi * scale - lo * scale, 1 / scale, hi, nextafter(hi, lo), lo < hi}; \
  }                                                                                       \
  static inline T uniform_at_##T(Interval_##T v, T u) {                                   \
    T x = (v.from + u * v.wide) * v.back;                                                 \
    return (v.upwards ? x < v.hi : x > v.hi) ? x : v.last;                                \
  }
INTERVAL(f64, nextafter)
INTERVAL(f32, nextafterf)
#undef INTERVAL

enum { POLL_PART = 1 << 18 }; /* elements that are made between two polls */

/* Before element i of n is made, which begins a part or does not. The array that was begun goes when a poll raises. */
static WeftStatus poll_part(Vm *vm, i64 i, i64 n, Value *out) {
  if (LIKELY(i % POLL_PART) || kernel_poll(vm, n - i < POLL_PART ? n - i : POLL_PART) == WEFT_OK) return WEFT_OK;
  value_drop(vm, *out);
  return WEFT_ERROR;
}

static WeftStatus uniform(Vm *vm, Key k, u32 dtype, u32 rank, const i64 *dims, f64 lo, f64 hi, Value *out) {
  const StripTable *strips = stdlib_of(vm)->strips;
  TRY(array_new(vm, dtype, rank, dims, out));
  i64 n = out->array->size;
  if (dtype == DT_f64) {
    f64 *x = out->array->data;
    Interval_f64 v = interval_f64(lo, hi);
    bool unit = lo == 0 && hi == 1;
    for (i64 i = 0, m; i < n; i += m) {
      TRY(poll_part(vm, i, n, out));
      m = n - i < STRIP ? n - i : STRIP;
      strips->uniform(x + i, k.seed, k.stream, (u64)i / 2, m);
      for (i64 j = i; j < i + m && !unit; j++) x[j] = uniform_at_f64(v, x[j]);
    }
  } else {
    f32 *x = out->array->data, u[2];
    Interval_f32 v = interval_f32((f32)lo, (f32)hi);
    for (i64 i = 0; i < n; i += 2) {
      TRY(poll_part(vm, i, n, out));
      units32(k, (u64)i / 2, u);
      x[i] = uniform_at_f32(v, u[0]);
      if (i + 1 < n) x[i + 1] = uniform_at_f32(v, u[1]);
    }
  }
  *out = array_finish(vm, *out);
  return WEFT_OK;
}

/* Box–Muller on elements 2 i and 2 i + 1 of the key's uniform numbers; u in (0, 1] so that its log is finite. */
static WeftStatus normal(Vm *vm, Key k, u32 dtype, u32 rank, const i64 *dims, Value *out) {
  const StripTable *strips = stdlib_of(vm)->strips;
  TRY(array_new(vm, dtype, rank, dims, out));
  i64 n = out->array->size;
  if (dtype == DT_f64) {
    f64 *x = out->array->data;
    for (i64 i = 0; i < n; i += STRIP) {
      TRY(poll_part(vm, i, n, out));
      strips->normal(x + i, k.seed, k.stream, (u64)i, n - i < STRIP ? n - i : STRIP);
    }
  } else {
    f32 *x = out->array->data, u[STRIP], v[STRIP];
    for (i64 i = 0, m; i < n; i += m, x += m) {
      TRY(poll_part(vm, i, n, out));
      m = n - i < STRIP ? n - i : STRIP;
      for (i64 j = 0; j < m; j++) {
        f32 both[2];
        units32(k, (u64)(i + j), both);
        u[j] = 1.0f - both[0];
        v[j] = 6.2831855f * both[1];
      }
      (void)strips->ops[OP_log][DT_f32](u, u, u, m);
      (void)strips->ops[OP_cos][DT_f32](v, v, v, m);
      for (i64 j = 0; j < m; j++) x[j] = __builtin_sqrtf(-2.0f * u[j]) * v[j];
    }
  }
  *out = array_finish(vm, *out);
  return WEFT_OK;
}

/* ---- bounds that are arrays: each element has its own ----------------------------------------------------- */

static bool has_axes(Value v) { return v.kind == V_ARRAY && array_rank(v.array) > 0; }

/* What is drawn between lo and hi: of the shape that is given, or the one that they have together. */
static WeftStatus drawn_between(Vm *vm, u32 op, const Value *bounds, u32 param, Value shape, ArrayType *t) {
  ArrayType each[2] = {{.dtype = DT_f64}, {.dtype = DT_f64}}, joined, whole;
  const ArrayType *both[2] = {&each[0], &each[1]};
  RuleError err;
  for (u32 i = 0; i < 2; i++)
    if (args_given(bounds[i])) type_of_value(bounds[i], &each[i]);
  TRY_RULE(vm, op, &err, rule_broadcast(NULL, 2, both, &joined, &err));
  *t = joined;
  if (!args_given(shape)) return WEFT_OK;
  u32 rank;
  i64 dims[ARRAY_MAX_RANK];
  TRY(draw_shape(vm, op, param, shape, &rank, dims));
  t->rank = (u8)rank;
  memcpy(t->dims, dims, rank * sizeof *dims);
  both[0] = &joined;
  both[1] = t;
  if (rule_broadcast(NULL, 2, both, &whole, &err) && whole.rank == t->rank &&
      memcmp(whole.dims, t->dims, t->rank * sizeof *t->dims) == 0)
    return WEFT_OK;
  return vm_error(vm, EK_shape, "%s: lo and hi of shape %s do not fit shape %s", op_name(op), shape_text(&joined).s,
                  shape_text(t).s);
}

/* A bound for each element, as `dtype`. */
static WeftStatus bound_each(Vm *vm, Value v, f64 usual, const ArrayType *t, u32 dtype, Value *out) {
  NumBox box;
  u32 bad;
  if (!args_given(v)) v = value_weak_f64(usual);
  TRY(array_new(vm, dtype, t->rank, t->dims, out));
  if (copy_dense(vm, array_of(v, &box), t->rank, t->dims, dtype, out->array->data, &bad) == WEFT_OK) return WEFT_OK;
  value_drop(vm, *out);
  return WEFT_ERROR;
}

/* The numbers are those that bounds of rank 0 give. */
static WeftStatus uniform_each(Vm *vm, Key k, u32 dtype, const Value *args, Value *out) {
  ArrayType t;
  Value lo, hi;
  for (u32 i = 2; i < 4; i++)
    if (args_given(args[i])) TRY(args_array(vm, OP_random_uniform, i, args[i]));
  TRY(drawn_between(vm, OP_random_uniform, args + 2, 1, args[1], &t));
  TRY(bound_each(vm, args[2], 0, &t, dtype, &lo));
  WeftStatus status = bound_each(vm, args[3], 1, &t, dtype, &hi);
  if (status == WEFT_OK) {
    status = array_new(vm, dtype, t.rank, t.dims, out);
    for (i64 i = 0, n = status == WEFT_OK ? out->array->size : 0; i < n && status == WEFT_OK; i++) {
      status = poll_part(vm, i, n, out);
      if (status != WEFT_OK) break;
      if (dtype == DT_f64)
        ((f64 *)out->array->data)[i] = uniform_at_f64(
            interval_f64(((f64 *)lo.array->data)[i], ((f64 *)hi.array->data)[i]), unit64(k, (u64)i));
      else
        ((f32 *)out->array->data)[i] = uniform_at_f32(
            interval_f32(((f32 *)lo.array->data)[i], ((f32 *)hi.array->data)[i]), unit32(k, (u64)i));
    }
    value_drop(vm, hi);
  }
  value_drop(vm, lo);
  return status;
}

WeftStatus eager_random_uniform(Vm *vm, Value *args, Value *out) {
  Key k = {0};
  u32 rank, dtype = DT_f64;
  i64 dims[ARRAY_MAX_RANK];
  f64 lo = 0, hi = 1;
  TRY(arg_key(vm, OP_random_uniform, args[0], &k));
  if (has_axes(args[2]) || has_axes(args[3])) {
    TRY(args_dtype(vm, OP_random_uniform, 4, args[4], &dtype));
    TRY(need_float(vm, OP_random_uniform, dtype));
    return uniform_each(vm, k, dtype, args, out);
  }
  TRY(draw_shape(vm, OP_random_uniform, 1, args[1], &rank, dims));
  if (args_given(args[2])) TRY(args_f64(vm, OP_random_uniform, 2, args[2], &lo));
  if (args_given(args[3])) TRY(args_f64(vm, OP_random_uniform, 3, args[3], &hi));
  TRY(args_dtype(vm, OP_random_uniform, 4, args[4], &dtype));
  TRY(need_float(vm, OP_random_uniform, dtype));
  return uniform(vm, k, dtype, rank, dims, lo, hi, out);
}

WeftStatus eager_random_normal(Vm *vm, Value *args, Value *out) {
  Key k = {0};
  u32 rank, dtype = DT_f64;
  i64 dims[ARRAY_MAX_RANK];
  TRY(arg_key(vm, OP_random_normal, args[0], &k));
  TRY(draw_shape(vm, OP_random_normal, 1, args[1], &rank, dims));
  TRY(args_dtype(vm, OP_random_normal, 2, args[2], &dtype));
  TRY(need_float(vm, OP_random_normal, dtype));
  return normal(vm, k, dtype, rank, dims, out);
}

/* Multiplication of a 64-bit word with the span, upper half: bias below 2^-64 times the span (Lemire 2019). */
static i64 below(u64 word, u64 span) { return (i64)((unsigned __int128)word * span >> 64); }

static void put_int(void *x, i64 i, u32 dtype, u64 drawn) { /* what is drawn fits */
  switch (dtype_bytes(dtype)) {
    case 1: ((u8 *)x)[i] = (u8)drawn; break;
    case 4: ((u32 *)x)[i] = (u32)drawn; break;
    default: ((u64 *)x)[i] = drawn;
  }
}

/* Whether the integers from lo to hi - 1, bits of u64 where it is `natural`, are some and all of the dtype. */
static WeftStatus span_fits(Vm *vm, u32 dtype, bool natural, i64 lo, i64 hi) {
  if (natural ? (u64)lo >= (u64)hi : lo >= hi)
    return natural ? vm_error(vm, EK_value, "random.randint: lo must be below hi, got %llu and %llu",
                              (unsigned long long)lo, (unsigned long long)hi)
                   : vm_error(vm, EK_value, "random.randint: lo must be below hi, got %lld and %lld", (long long)lo,
                              (long long)hi);
  if (!natural && (!num_fits(value_weak_i64(lo), dtype) || !num_fits(value_weak_i64(hi - 1), dtype)))
    return vm_error(vm, EK_value, "random.randint: from %lld to %lld are not all %s", (long long)lo,
                    (long long)(hi - 1), dtype_name(dtype));
  return WEFT_OK;
}

static WeftStatus randint_each(Vm *vm, Key k, u32 dtype, const Value *args, Value *out) {
  const bool natural = dtype == DT_u64;
  ArrayType t, b;
  Value bounds[2];
  u32 made = 0;
  WeftStatus status = WEFT_OK;
  for (u32 i = 1; i < 3; i++) {
    TRY(args_array(vm, OP_random_randint, i, args[i]));
    type_of_value(args[i], &b);
    if (dtype_kind(b.dtype) != DK_INT)
      return vm_error(vm, EK_type, "random.randint: %s must be integers, got %s", i == 1 ? "lo" : "hi",
                      dtype_name(b.dtype));
  }
  TRY(drawn_between(vm, OP_random_randint, args + 1, 3, args[3], &t));
  for (; made < 2 && status == WEFT_OK; made += status == WEFT_OK) {
    type_of_value(args[1 + made], &b);
    status = bound_each(vm, args[1 + made], 0, &t, b.dtype == DT_u64 ? DT_u64 : DT_i64, &bounds[made]);
    if (status != WEFT_OK) break;
    const i64 *x = bounds[made].array->data;
    i64 wrong = 0, n = bounds[made].array->size;
    if (natural != (b.dtype == DT_u64)) /* the other half of the words stands for other numbers */
      while (wrong < n && x[wrong] >= 0) wrong++;
    if (natural != (b.dtype == DT_u64) && wrong < n) {
      value_drop(vm, bounds[made]);
      status = vm_error(vm, EK_value, "random.randint: %s holds numbers that are no %s", made ? "hi" : "lo",
                        dtype_name(natural ? DT_u64 : DT_i64));
      break;
    }
  }
  if (status == WEFT_OK) status = array_new(vm, dtype, t.rank, t.dims, out);
  for (i64 i = 0, n = status == WEFT_OK ? out->array->size : 0; i < n; i++) {
    const i64 lo = ((i64 *)bounds[0].array->data)[i], hi = ((i64 *)bounds[1].array->data)[i];
    status = poll_part(vm, i, n, out);
    if (status != WEFT_OK) break;
    status = span_fits(vm, dtype, natural, lo, hi);
    if (status != WEFT_OK) {
      value_drop(vm, *out);
      break;
    }
    put_int(out->array->data, i, dtype, (u64)lo + (u64)below(bits64(k, (u64)i), (u64)hi - (u64)lo));
  }
  while (made > 0) value_drop(vm, bounds[--made]);
  return status;
}

WeftStatus eager_random_randint(Vm *vm, Value *args, Value *out) {
  Key k = {0};
  u32 rank, dtype = DT_i64;
  i64 dims[ARRAY_MAX_RANK], lo = 0, hi = 0;
  TRY(arg_key(vm, OP_random_randint, args[0], &k));
  /* of u64 bounds are natural numbers: their bits */
  const bool natural = args[4].kind == V_DTYPE && args[4].dtype == DT_u64;
  if (has_axes(args[1]) || has_axes(args[2])) {
    TRY(args_dtype(vm, OP_random_randint, 4, args[4], &dtype));
    if (dtype_kind(dtype) != DK_INT)
      return vm_error(vm, EK_dtype, "random.randint: dtype must be an integer dtype, got %s", dtype_name(dtype));
    return randint_each(vm, k, dtype, args, out);
  }
  i64 *const bounds[2] = {&lo, &hi};
  for (u32 i = 0; i < 2; i++) {
    const Value v = args[1 + i];
    if (natural && v.kind == V_NUM && v.dtype == DT_u64) *bounds[i] = v.i;
    else TRY(args_int(vm, OP_random_randint, 1 + i, v, bounds[i]));
    if (natural && v.dtype != DT_u64 && *bounds[i] < 0)
      return vm_error(vm, EK_value, "random.randint: from %lld on are not all u64", (long long)*bounds[i]);
  }
  TRY(draw_shape(vm, OP_random_randint, 3, args[3], &rank, dims));
  TRY(args_dtype(vm, OP_random_randint, 4, args[4], &dtype));
  if (dtype_kind(dtype) != DK_INT)
    return vm_error(vm, EK_dtype, "random.randint: dtype must be an integer dtype, got %s", dtype_name(dtype));
  TRY(span_fits(vm, dtype, natural, lo, hi));
  TRY(array_new(vm, dtype, rank, dims, out));
  u64 span = (u64)hi - (u64)lo;
  i64 n = out->array->size;
  void *x = out->array->data;
  for (i64 i = 0; i < n; i++) {
    TRY(poll_part(vm, i, n, out));
    put_int(x, i, dtype, (u64)lo + (u64)below(bits64(k, (u64)i), span));
  }
  *out = array_finish(vm, *out);
  return WEFT_OK;
}

/* Each element with its own probability: uniform(key, shape) < p; the shape is that of p where none is given. */
static WeftStatus bernoulli_each(Vm *vm, const Value *args, Value *out) {
  ArrayType p, t;
  i64 dims[ARRAY_MAX_RANK];
  type_of_value(args[1], &p);
  t = p;
  if (args_given(args[2])) {
    u32 rank;
    TRY(draw_shape(vm, OP_random_bernoulli, 2, args[2], &rank, dims));
    t.rank = (u8)rank;
    memcpy(t.dims, dims, rank * sizeof *dims);
  }
  const ArrayType *both[2] = {&p, &t};
  ArrayType joined = t;
  RuleError err;
  if (!rule_broadcast(NULL, 2, both, &joined, &err) || joined.rank != t.rank ||
      memcmp(joined.dims, t.dims, t.rank * sizeof *t.dims) != 0)
    return vm_error(vm, EK_shape, "random.bernoulli: p of shape %s does not fit shape %s", shape_text(&p).s,
                    shape_text(&t).s);
  memcpy(dims, t.dims, t.rank * sizeof *dims);
  Value shape, pair[2];
  if (!list_new(vm, t.rank, &shape)) return WEFT_ERROR;
  for (u32 i = 0; i < t.rank; i++) TRY(list_add(vm, &shape, value_i64(dims[i])));
  Value draw[2] = {value_keep(args[0]), shape};
  pair[1] = value_keep(args[1]);
  WeftStatus status = run_op(vm, OP_random_uniform, draw, 2, &pair[0]);
  if (status == WEFT_OK) return run_op(vm, OP_less, pair, 2, out);
  value_drop(vm, pair[1]);
  return status;
}

WeftStatus eager_random_bernoulli(Vm *vm, Value *args, Value *out) {
  Key k = {0};
  u32 rank;
  i64 dims[ARRAY_MAX_RANK];
  f64 p = 0.5;
  TRY(arg_key(vm, OP_random_bernoulli, args[0], &k));
  if (args[1].kind == V_ARRAY && array_rank(args[1].array)) return bernoulli_each(vm, args, out);
  if (args_given(args[1])) TRY(args_f64(vm, OP_random_bernoulli, 1, args[1], &p));
  TRY(draw_shape(vm, OP_random_bernoulli, 2, args[2], &rank, dims));
  TRY(array_new(vm, DT_bool, rank, dims, out));
  for (i64 i = 0, n = out->array->size; i < n; i++) {
    TRY(poll_part(vm, i, n, out));
    ((u8 *)out->array->data)[i] = unit64(k, (u64)i) < p;
  }
  *out = array_finish(vm, *out);
  return WEFT_OK;
}

/* 0 … n-1 in random order: Fisher–Yates, element i of the key for step i. */
static WeftStatus shuffled(Vm *vm, Key k, i64 *index, i64 n) {
  enum { PART = 1 << 17 }; /* elements between two polls: they are slow */
  u32 w[4] = {0};
  TRY(kernel_poll(vm, n % PART));
  Polled p = parts_in(vm, n, PART_ELEMENTS);
  while (parts_next(&p))
    for (i64 i = p.from; i < p.to; i++) index[i] = i;
  TRY(p.status);
  for (i64 i = n - 1; i > 0; i--) {
    if (i % PART == 0) TRY(kernel_poll(vm, PART));
    if (i & 1 || i == n - 1) philox(k.seed, k.stream, (u64)i >> 1, w); /* of two elements */
    i64 j = below(word64(w, (u64)i), (u64)i + 1), t = index[i];
    index[i] = index[j];
    index[j] = t;
  }
  return WEFT_OK;
}

WeftStatus eager_random_permutation(Vm *vm, Value *args, Value *out) {
  Key k = {0};
  TRY(arg_key(vm, OP_random_permutation, args[0], &k));
  i64 n = 0;
  bool number = args[1].kind == V_NUM;
  if (number) TRY(args_size(vm, OP_random_permutation, 1, args[1], &n));
  else {
    TRY(args_array(vm, OP_random_permutation, 1, args[1]));
    if (array_rank(args[1].array) == 0)
      return args_error(vm, OP_random_permutation, 1, args[1], "an integer or an array with an axis");
    n = array_dims(args[1].array)[0];
  }
  Value order;
  TRY(array_new(vm, DT_i64, 1, &n, &order));
  if (shuffled(vm, k, order.array->data, n) != WEFT_OK) {
    value_drop(vm, order);
    return WEFT_ERROR;
  }
  if (number) {
    *out = order;
    return WEFT_OK;
  }
  WeftStatus status = take_positions(vm, args[1], 0, order.array->data, n, out);
  value_drop(vm, order);
  return status;
}

WeftStatus eager_random_exponential(Vm *vm, Value *args, Value *out) {
  Key k = {0};
  u32 rank, dtype = DT_f64;
  i64 dims[ARRAY_MAX_RANK];
  TRY(arg_key(vm, OP_random_exponential, args[0], &k));
  TRY(draw_shape(vm, OP_random_exponential, 1, args[1], &rank, dims));
  TRY(args_dtype(vm, OP_random_exponential, 2, args[2], &dtype));
  TRY(need_float(vm, OP_random_exponential, dtype));
  TRY(array_new(vm, dtype, rank, dims, out));
  StripFn logs = stdlib_of(vm)->strips->ops[OP_log][dtype];
  for (i64 i = 0, m, n = out->array->size; i < n; i += m) {
    TRY(poll_part(vm, i, n, out));
    m = n - i < STRIP ? n - i : STRIP;
    if (dtype == DT_f64) {
      f64 *x = (f64 *)out->array->data + i;
      for (i64 j = 0; j < m; j++) x[j] = 1.0 - unit64(k, (u64)(i + j));
      (void)logs(x, x, x, m);
      for (i64 j = 0; j < m; j++) x[j] = 0 - x[j]; /* 0 where the logarithm is */
    } else {
      f32 *x = (f32 *)out->array->data + i;
      for (i64 j = 0; j < m; j++) x[j] = 1.0f - unit32(k, (u64)(i + j));
      (void)logs(x, x, x, m);
      for (i64 j = 0; j < m; j++) x[j] = 0 - x[j]; /* 0 where the logarithm is */
    }
  }
  *out = array_finish(vm, *out);
  return WEFT_OK;
}

/* ---- the global stream: a key from the seed; each draw takes the next derived key ------------------------- */

static Key drawn_key(u64 seed, u64 n) { return derived((Key){seed, 1}, n & ~((u64)1 << 63)); }

WeftStatus eager_random_stream(Vm *vm, Value *args, Value *out) {
  i64 seed = 0, n = 0;
  TRY(args_int(vm, OP_random_stream, 0, args[0], &seed));
  TRY(args_int(vm, OP_random_stream, 1, args[1], &n));
  Key k = drawn_key((u64)seed, (u64)n);
  return key_array(vm, &k, 1, true, out);
}

static Key next_key(Vm *vm) {
  return drawn_key(vm->random_key, vm->random_counter++);
}

WeftStatus eager_seed(Vm *vm, Value *args, Value *out) {
  i64 n = 0;
  TRY(args_int(vm, OP_seed, 0, args[0], &n));
  vm->random_key = (u64)n;
  vm->random_counter = 0;
  *out = value_nil();
  return WEFT_OK;
}

WeftStatus eager_rand(Vm *vm, Value *args, Value *out) {
  u32 rank, dtype = DT_f64;
  i64 dims[ARRAY_MAX_RANK];
  TRY(draw_shape(vm, OP_rand, 0, args[0], &rank, dims));
  TRY(args_dtype(vm, OP_rand, 1, args[1], &dtype));
  TRY(need_float(vm, OP_rand, dtype));
  return uniform(vm, next_key(vm), dtype, rank, dims, 0, 1, out);
}

WeftStatus eager_randn(Vm *vm, Value *args, Value *out) {
  u32 rank, dtype = DT_f64;
  i64 dims[ARRAY_MAX_RANK];
  TRY(draw_shape(vm, OP_randn, 0, args[0], &rank, dims));
  TRY(args_dtype(vm, OP_randn, 1, args[1], &dtype));
  TRY(need_float(vm, OP_randn, dtype));
  return normal(vm, next_key(vm), dtype, rank, dims, out);
}
