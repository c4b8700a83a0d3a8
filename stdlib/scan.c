/* scan.c — cumulative operations: cumsum cumprod cummax cummin (order: reduce_order.h), and diff. */
#include <sched.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "stdlib/element.h"
#include "stdlib/make.h"
#include "stdlib/reduce_order.h"
#include "stdlib/walk.h"

enum { COLUMNS = 16 }; /* neighbouring scans that run together, so that rows are read as they lie */
enum { BLOCK = SCAN_SEGMENT * SCAN_SEGMENT };

/* c <= COLUMNS scans over n elements each, `step` elements apart (negative: from the last on). */
typedef void (*ScanFn)(void *out, const void *x, i64 n, i64 c, i64 step);

#define ADD(p, q) ((p) + (q))
#define MUL(p, q) ((p) * (q))
SCAN_ORDER(add_f32, f32, ADD)
SCAN_ORDER(add_f64, f64, ADD)
SCAN_ORDER(mul_f32, f32, MUL)
SCAN_ORDER(mul_f64, f64, MUL)
SCAN_BLOCK(add_f32, f32, ADD)
SCAN_BLOCK(add_f64, f64, ADD)

/* A segment of whole rows: what stands before it, or an exact identity, then row by row. */
#define ROW_OF_SEGMENT(T, FN, count)                             \
  _Pragma("GCC ivdep") for (i64 j = 0; j < count; j++) {         \
    local[j] = FN(local[j], p[j]);                               \
    q[j] = FN(before[j], local[j]);                              \
  }
/* Products are rare: segment by segment. */
#define BLOCKS_add(NAME) for (; c == 1 && step == 1 && n - i >= BLOCK; i += BLOCK) NAME##_scan_block(&s[0], o + i, x + i);
#define BLOCKS_mul(NAME)
#define ORDERED(kind, T, FN, identity)                                                                              \
  static void segment_##kind##_##T(kind##_##T##_scan *s, T *q, const T *p, i64 c, i64 step) {                       \
    T local[COLUMNS], before[COLUMNS];                                                                              \
    for (i64 j = 0; j < COLUMNS; j++) local[j] = identity, before[j] = j < c && s[j].has_before[0] ? s[j].before[0] : (T)identity; \
    for (u32 i = 0; i < SCAN_SEGMENT; i++, p += step, q += step) {                                                  \
      if (c == COLUMNS) ROW_OF_SEGMENT(T, FN, COLUMNS)                                                              \
      else ROW_OF_SEGMENT(T, FN, c)                                                                                 \
    }                                                                                                               \
    for (i64 j = 0; j < c; j++) kind##_##T##_scan_up(&s[j], 0, local[j]);                                           \
  }                                                                                                                 \
  static void scan_##kind##_##T(void *out, const void *xv, i64 n, i64 c, i64 step) {                                \
    T *o = out;                                                                                                     \
    const T *x = xv;                                                                                                \
    kind##_##T##_scan s[COLUMNS];                                                                                   \
    for (i64 j = 0; j < c; j++) kind##_##T##_scan_start(&s[j]);                                                     \
    i64 i = 0;                                                                                                      \
    BLOCKS_##kind(kind##_##T)                                                                                       \
    for (; n - i >= SCAN_SEGMENT; i += SCAN_SEGMENT) {                                                              \
      if (c == 1 && step == 1) kind##_##T##_scan_segment(&s[0], o + i, x + i);                                      \
      else segment_##kind##_##T(s, o + i * step, x + i * step, c, step);                                            \
    }                                                                                                               \
    for (; i < n; i++)                                                                                              \
      for (i64 j = 0; j < c; j++) o[i * step + j] = kind##_##T##_scan_next(&s[j], x[i * step + j]);                 \
  }
/* One long scan, by several threads or past the caches: pieces are taken in order, and are whole blocks of segments. Each is scanned within its segments,
 * and so are these segments' totals; it waits for its turn to scan the blocks' totals behind those of the pieces before it, and then has what stands before
 * each of its segments. That is joined with what is inside by steps, between which a thread scans those of the piece that it takes next: reading and storing take turns so often that memory does both. */
enum { LONG_PART = 64 * BLOCK, ELEMENTS_AHEAD = 1024 /* that are fetched */, MOST_SHARING = 64 /* threads */ };

typedef struct SharedScan {
  const void *x;
  void *out, *totals; /* the scan of the blocks' totals, and the last of its results */
  i64 n, piece;       /* elements: of all, of a piece */
  i64 turn;           /* the piece whose turn it is */
  i64 taken;          /* pieces: only who has the turn takes some, for itself and for those that came since; a locked instruction would wait for the stores */
  u32 came, served;   /* threads */
  i64 first[MOST_SHARING]; /* of each thread, 0: none yet */
  char *scratch;      /* what is inside of the pieces of each thread, two by turns */
  size_t of_thread;   /* its bytes */
  bool stream;
} SharedScan;

/* What is inside of segments, each by itself; and that behind what stands before each. */
#define LOCALS(T, FN)                                                                                     \
  static void locals_##T(T *to, const T *x, i64 segments, i64 ahead) {                                    \
    for (; segments > 0; segments--, to += SCAN_SEGMENT, x += SCAN_SEGMENT) {                             \
      for (u32 i = 0; i < SCAN_SEGMENT && ahead; i += 64 / sizeof(T)) __builtin_prefetch(x + ahead + i);    \
      to[0] = x[0];                                                                                       \
      _Pragma("GCC unroll 16") for (u32 i = 1; i < SCAN_SEGMENT; i++) to[i] = FN(to[i - 1], x[i]);        \
    }                                                                                                     \
  }                                                                                                       \
  static void join_##T(T *restrict to, const T *restrict before, const T *restrict local, i64 segments) { \
    for (; segments > 0; segments--, to += SCAN_SEGMENT, local += SCAN_SEGMENT, before++)                 \
      _Pragma("GCC unroll 16") for (u32 i = 0; i < SCAN_SEGMENT; i++) to[i] = FN(*before, local[i]);      \
  }
LOCALS(f32, ADD)
LOCALS(f64, ADD)
#ifdef __x86_64__
/* Eight segments side by side, half of each at a time. */
__attribute__((target("avx512f"))) static void locals_f64_avx512(f64 *to, const f64 *x, i64 segments, i64 ahead) {
  enum { SIDE = 8 };
  for (; segments >= SIDE; segments -= SIDE, to += SIDE * SCAN_SEGMENT, x += SIDE * SCAN_SEGMENT) {
    __m512d rows[SCAN_SEGMENT];
    for (u32 half = 0; half < SCAN_SEGMENT; half += SIDE) {
      strided_turn_square(rows + half, SIDE, x + half, SCAN_SEGMENT, ahead);
      _Pragma("GCC unroll 8") for (u32 i = half; i < half + SIDE; i++)
        if (i) rows[i] += rows[i - 1];
      strided_turn_square(to + half, SCAN_SEGMENT, rows + half, SIDE, 0);
    }
  }
  locals_f64(to, x, segments, ahead);
}
__attribute__((target("avx512f"))) static void join_past(f64 *to, const f64 *before, const f64 *local, i64 segments) {
  for (; segments > 0; segments--, before++)
    for (u32 i = 0; i < SCAN_SEGMENT; i += 8, to += 8, local += 8) _mm512_stream_pd(to, _mm512_set1_pd(*before) + _mm512_loadu_pd(local));
}
__attribute__((target("avx2"))) static void join_past_avx2(f64 *to, const f64 *before, const f64 *local, i64 segments) {
  for (; segments > 0; segments--, before++)
    for (u32 i = 0; i < SCAN_SEGMENT; i += 4, to += 4, local += 4) _mm256_stream_pd(to, _mm256_set1_pd(*before) + _mm256_loadu_pd(local));
}
static bool past_f64(f64 *to, const f64 *before, const f64 *local, i64 segments) {
  if (!cpu_has(CPU_AVX2) || (uintptr_t)to % 64) return false;
  (cpu_has(CPU_AVX512) ? join_past : join_past_avx2)(to, before, local, segments);
  return true;
}
/* TRIED with AVX2: four segments side by side, by shuffles of pairs; no faster. */
static void inside_f64(f64 *to, const f64 *x, i64 segments, i64 ahead) {
  (cpu_has(CPU_AVX512) ? locals_f64_avx512 : locals_f64)(to, x, segments, ahead);
}
#else
#define inside_f64 locals_f64
#define past_f64(...) false
#endif
#define inside_f32 locals_f32
#define past_f32(...) false

enum { SPINS = 4096 };
static void wait_for(const i64 *turn, i64 part) {
  for (u32 spins = 0; __atomic_load_n(turn, __ATOMIC_ACQUIRE) != part;)
    if (++spins > SPINS) sched_yield();
}

static i64 piece_size(const SharedScan *s, i64 piece) {
  i64 left = s->n - piece * s->piece;
  return left < s->piece ? left : s->piece;
}

/* The first piece of thread number `me`; that behind the last: it came too late. */
static i64 first_piece(SharedScan *s, u32 me) {
  i64 all = (s->n + s->piece - 1) / s->piece, given = 0;
  u32 spins = 0;
  if (!me || me >= MOST_SHARING) return me ? all : 0;
  while (!(given = __atomic_load_n(&s->first[me], __ATOMIC_ACQUIRE)) && __atomic_load_n(&s->turn, __ATOMIC_ACQUIRE) < all)
    if (++spins > SPINS) sched_yield();
  return given ? given : all;
}

/* By who has the turn. */
static i64 next_piece(SharedScan *s) {
  u32 came = __atomic_load_n(&s->came, __ATOMIC_RELAXED);
  i64 next = s->taken++;
  for (; s->served < came && s->served < MOST_SHARING; s->served++) __atomic_store_n(&s->first[s->served], s->taken++, __ATOMIC_RELEASE);
  return next;
}

/* Elements from what is read, of which `left` are left, to what is fetched: where this thread's next piece begins, `jump` elements further on, it is taken to. Pieces
 * of one block are those of a thread that reads on and on, which some processors see by themselves. */
static i64 fetched_later(const SharedScan *s, i64 left, i64 jump) { return s->piece > BLOCK || cpu_has(CPU_FETCH) ? ELEMENTS_AHEAD + (left > ELEMENTS_AHEAD ? 0 : jump) : 0; }

#define SHARED(kind, T, FN)                                                                                                                                   \
  typedef struct kind##_##T##_totals {                                                                                                                        \
    kind##_##T##_scan scan; /* of the blocks' totals */                                                                                                       \
    T block, segment;       /* what stands before the next block, and before its first segment */                                                             \
  } kind##_##T##_totals;                                                                                                                                      \
  /* A step of what is inside of a piece of n elements at x, and of its segments' totals. What lies `ahead` elements further on is fetched; 0:                \
   * nothing is. */                                                                                                                                           \
  static void inside_step_##T(T *local, T *totals, const T *x, i64 at, i64 n, i64 ahead) {                                                                    \
    i64 end = n - at < BLOCK ? n : at + BLOCK, whole = at < n ? at + (end - at) / SCAN_SEGMENT * SCAN_SEGMENT : n;                                            \
    if (at < whole) inside_##T(local + at, x + at, (whole - at) / SCAN_SEGMENT, ahead);                                                                       \
    for (i64 i = whole; i < end; i++) local[i] = i % SCAN_SEGMENT ? FN(local[i - 1], x[i]) : x[i];                                                            \
    T last = 0;                                                                                                                                               \
    for (i64 i = at; i < whole; i += SCAN_SEGMENT) totals[i / SCAN_SEGMENT] = last = i > at ? FN(last, local[i + SCAN_SEGMENT - 1]) : local[i + SCAN_SEGMENT - 1]; \
  }                                                                                                                                                           \
  /* `block`: what stands before this one and, behind it, before the next; `first`: before its first segment. */                                              \
  static void join_step_##T(const SharedScan *s, T *o, T first, T block, const T *totals, const T *local, i64 at, i64 n) {                                    \
    _Alignas(64) T buffer[BLOCK], before[SCAN_SEGMENT];                                                                                                       \
    i64 many = n - at < BLOCK ? n - at : BLOCK, segments = many / SCAN_SEGMENT;                                                                               \
    bool stream = s->stream && many == BLOCK;                                                                                                                 \
    before[0] = first;                                                                                                                                        \
    for (i64 i = 1; i < SCAN_SEGMENT && i <= segments; i++) before[i] = FN(block, totals[at / SCAN_SEGMENT + i - 1]);                                         \
    if (stream && past_##T(o + at, before, local + at, segments)) return;                                                                                     \
    T *to = stream ? buffer : o + at;                                                                                                                         \
    join_##T(to, before, local + at, segments);                                                                                                               \
    for (i64 e = segments * SCAN_SEGMENT; e < many; e++) to[e] = FN(before[segments], local[at + e]);                                                         \
    if (stream) stream_copy(o + at, buffer, BLOCK * sizeof(T));                                                                                               \
  }                                                                                                                                                           \
  /* Puts what stands before each block into `block`, and before the first segment behind it into `segment`; gives the next piece. */                         \
  static i64 turn_##kind##_##T(SharedScan *s, i64 piece, i64 segments, T *block, T *segment, const T *totals) {                                               \
    kind##_##T##_totals *t = s->totals;                                                                                                                       \
    i64 blocks = segments / SCAN_SEGMENT;                                                                                                                     \
    wait_for(&s->turn, piece);                                                                                                                                \
    segment[0] = t->segment;                                                                                                                                  \
    block[0] = t->block;                                                                                                                                      \
    for (i64 b = 0; b < blocks; b++) {                                                                                                                        \
      T total = totals[b * SCAN_SEGMENT + SCAN_SEGMENT - 1];                                                                                                  \
      segment[b + 1] = FN(block[b], total);                                                                                                                   \
      block[b + 1] = kind##_##T##_scan_next(&t->scan, total);                                                                                                 \
    }                                                                                                                                                         \
    t->block = block[blocks];                                                                                                                                 \
    t->segment = segment[blocks];                                                                                                                             \
    i64 next = next_piece(s);                                                                                                                                 \
    __atomic_store_n(&s->turn, piece + 1, __ATOMIC_RELEASE);                                                                                                  \
    return next;                                                                                                                                              \
  }                                                                                                                                                           \
  static void shared_##kind##_##T(void *ctx, i64 part) {                                                                                                      \
    SharedScan *s = ctx;                                                                                                                                      \
    u32 me = __atomic_fetch_add(&s->came, 1, __ATOMIC_RELAXED);                                                                                               \
    i64 piece = first_piece(s, me), size = piece_size(s, piece);                                                                                              \
    T totals[2][LONG_PART / SCAN_SEGMENT], block[LONG_PART / BLOCK + 1], segment[LONG_PART / BLOCK + 1];                                                      \
    T *locals[2] = {(T *)(void *)(s->scratch + (size < 0 ? 0 : me) * s->of_thread)};                                                                          \
    locals[1] = locals[0] + s->piece + BLOCK; /* not at the same place of a page: a load would wait for the store there */                                    \
    (void)part;                                                                                                                                               \
    for (i64 at = 0; at < size; at += BLOCK) inside_step_##T(locals[0], totals[0], (const T *)s->x + piece * s->piece, at, size, fetched_later(s, size - at, 0)); \
    for (u32 k = 0; size > 0; k = !k) {                                                                                                                       \
      i64 next = turn_##kind##_##T(s, piece, size / SCAN_SEGMENT, block, segment, totals[k]);                                                                 \
      i64 next_size = piece_size(s, next), jump = (next - piece - 1) * s->piece;                                                                              \
      for (i64 at = 0; at < size || at < next_size; at += BLOCK) {                                                                                            \
        if (at < next_size) inside_step_##T(locals[!k], totals[!k], (const T *)s->x + next * s->piece, at, next_size, fetched_later(s, next_size - at, jump)); \
        if (at < size) join_step_##T(s, (T *)s->out + piece * s->piece, segment[at / BLOCK], block[at / BLOCK], totals[k], locals[k], at, size);              \
      }                                                                                                                                                       \
      piece = next, size = next_size;                                                                                                                         \
    }                                                                                                                                                         \
    if (s->stream) stream_done();                                                                                                                             \
  }                                                                                                                                                           \
  static bool share_##kind##_##T(Vm *vm, SharedScan *s) {                                                                                                     \
    kind##_##T##_totals t = {.block = -0.0, .segment = -0.0}; /* a sum with which is the other term */                                                        \
    i64 pieces = (s->n + s->piece - 1) / s->piece;                                                                                                            \
    size_t threads = pool_threads(vm) < MOST_SHARING ? pool_threads(vm) : MOST_SHARING;                                                                       \
    if (threads > (size_t)pieces) threads = (size_t)pieces;                                                                                                   \
    s->of_thread = 2 * (size_t)(s->piece + BLOCK) * sizeof(T);                                                                                                \
    s->scratch = mem_alloc(&vm->alloc, threads * s->of_thread);                                                                                               \
    if (!s->scratch) return false;                                                                                                                            \
    kind##_##T##_scan_start(&t.scan);                                                                                                                         \
    s->totals = &t;                                                                                                                                           \
    (void)!pool_run(vm, (i64)threads, true, shared_##kind##_##T, s); /* whole: nothing is raised */                                                           \
    mem_free(&vm->alloc, s->scratch, threads * s->of_thread);                                                                                                 \
    return true;                                                                                                                                              \
  }
SHARED(add, f32, ADD)
SHARED(add, f64, ADD)
typedef bool (*ShareFn)(Vm *vm, SharedScan *s); /* false: there is no room */
static const ShareFn shares[REDUCE_KINDS][DT_COUNT] = {{[DT_f32] = share_add_f32, [DT_f64] = share_add_f64}};

ORDERED(add, f32, ADD, -0.0f)
ORDERED(add, f64, ADD, -0.0)
ORDERED(mul, f32, MUL, 1)
ORDERED(mul, f64, MUL, 1)

/* Exact operations: any order gives the same. */
#define PLAIN(kind, dt)                                                                \
  static void scan_##kind##_##dt(void *out, const void *xv, i64 n, i64 c, i64 step) {  \
    T_##dt *o = out, last[COLUMNS];                                                    \
    const T_##dt *x = xv;                                                              \
    for (i64 j = 0; j < c && n; j++) o[j] = last[j] = x[j];                            \
    for (i64 i = 1; i < n; i++) {                                                      \
      o += step;                                                                       \
      x += step;                                                                       \
      for (i64 j = 0; j < c; j++) o[j] = last[j] = el_##kind##_##dt(last[j], x[j]);    \
    }                                                                                  \
  }
PLAIN(add, i64)
PLAIN(multiply, i64)
#define EXTREMES(dt) PLAIN(minimum, dt) PLAIN(maximum, dt)
EXTREMES(u8)
EXTREMES(i32)
EXTREMES(i64)
EXTREMES(f32)
EXTREMES(f64)

#define EXTREME_ROW(kind) \
  {[DT_bool] = scan_##kind##_u8, [DT_u8] = scan_##kind##_u8, [DT_i32] = scan_##kind##_i32, [DT_i64] = scan_##kind##_i64, \
   [DT_f32] = scan_##kind##_f32, [DT_f64] = scan_##kind##_f64}
static const ScanFn scans[REDUCE_KINDS][DT_COUNT] = {
    {[DT_i64] = scan_add_i64, [DT_f32] = scan_add_f32, [DT_f64] = scan_add_f64},
    {[DT_i64] = scan_multiply_i64, [DT_f32] = scan_mul_f32, [DT_f64] = scan_mul_f64},
    EXTREME_ROW(minimum),
    EXTREME_ROW(maximum),
};

/* What stands before the first element with include_initial. */
static Value identity(ReduceKind kind, u32 dtype) {
  bool is_float = dtype_kind(dtype) == DK_FLOAT;
  switch (kind) {
    case REDUCE_ADD: return num_convert_unchecked(value_i64(0), dtype);
    case REDUCE_MUL: return num_convert_unchecked(value_i64(1), dtype);
    case REDUCE_MIN:
      if (is_float) return num_convert_unchecked(value_f64(INFINITY), dtype);
      return num_convert_unchecked(value_i64(dtype == DT_bool ? 1 : (i64)dtype_int_max(dtype)), dtype);
    default:
      if (is_float) return num_convert_unchecked(value_f64(-INFINITY), dtype);
      return num_convert_unchecked(value_i64(dtype == DT_bool ? 0 : dtype_int_min(dtype)), dtype);
  }
}

__attribute__((cold)) static WeftStatus cumulative(Vm *vm, u32 op, ReduceKind kind, Value *args, Value *out) {
  ArrayType type, shape;
  const ArrayType *types[1] = {&type};
  DTypeResult r;
  RuleError err;
  bool reverse = false, initial = false, flat = !args_given(args[1]);
  i64 axis = 0;
  Value x;
  void *data;
  TRY(args_array(vm, op, 0, args[0]));
  TRY(args_int(vm, op, 1, args[1], &axis));
  TRY(args_bool(vm, op, 2, args[2], &reverse));
  TRY(args_bool(vm, op, 3, args[3], &initial));
  type_of_value(args[0], &type);
  TRY_RULE(vm, op, &err, shape_scan(NULL, &type, flat, axis, initial, &shape, &err));
  TRY_RULE(vm, op, &err, rule_dtype(op, 1, types, &r, &err));
  if (flat) shape_ravel(NULL, &type, &type);
  u32 a = (u32)(axis < 0 ? axis + type.rank : axis), bytes = dtype_bytes(r.compute);
  ScanFn fn = scans[kind][r.compute];
  TRY(dense_as(vm, op, args[0], r.compute, &x));
  WeftStatus status = result_new(vm, r.compute, &shape, out, &data);
  if (status != WEFT_OK) {
    value_drop(vm, x);
    return status;
  }
  i64 n = type.dims[a], outer = 1, inner = 1;
  for (u32 d = 0; d < a; d++) outer *= type.dims[d];
  for (u32 d = a + 1; d < type.rank; d++) inner *= type.dims[d];
  const char *from = x.array->data;
  char *to = data;
  u64 first = 0;
  num_store(&first, r.compute, identity(kind, r.compute));
  for (i64 k = 0; k < outer && status == WEFT_OK; k++) {
    i64 in_rows = n, out_rows = n + initial;
    const char *x0 = from + (reverse && n ? (in_rows - 1) * inner * bytes : 0);
    char *o0 = to + (reverse && n ? (in_rows - 1) * inner * bytes : 0);
    if (initial) { /* the identity stands where the scan begins */
      strip_fill(reverse ? to + n * inner * bytes : to, &first, inner, bytes);
      if (!reverse) o0 += inner * bytes;
    }
    i64 step = reverse ? -inner : inner, least = vm->tunables.parallel_elements;
    bool stream = stream_worth(n * bytes, true);
    ShareFn share = step == 1 && n > BLOCK && n >= least && (stream || pool_threads(vm) > 1) ? shares[kind][r.compute] : NULL;
    bool alone = pool_threads(vm) < 2;
    i64 piece = least < LONG_PART || alone ? BLOCK : LONG_PART;
    bool done = share && share(vm, &(SharedScan){.x = x0, .out = o0, .n = n, .piece = piece, .taken = 1, .served = 1, .stream = stream});
    for (i64 j = 0; j < inner && !done; j += COLUMNS) fn(o0 + j * bytes, x0 + j * bytes, n, inner - j < COLUMNS ? inner - j : COLUMNS, step);
    from += in_rows * inner * bytes;
    to += out_rows * inner * bytes;
    if (outer > 1 || k == 0) status = kernel_poll(vm, n * inner);
  }
  value_drop(vm, x);
  if (status != WEFT_OK) value_drop(vm, *out);
  return status;
}
WeftStatus eager_cumsum(Vm *vm, Value *args, Value *out) { return cumulative(vm, OP_cumsum, REDUCE_ADD, args, out); }
WeftStatus eager_cumprod(Vm *vm, Value *args, Value *out) { return cumulative(vm, OP_cumprod, REDUCE_MUL, args, out); }
WeftStatus eager_cummin(Vm *vm, Value *args, Value *out) { return cumulative(vm, OP_cummin, REDUCE_MIN, args, out); }
WeftStatus eager_cummax(Vm *vm, Value *args, Value *out) { return cumulative(vm, OP_cummax, REDUCE_MAX, args, out); }

/* n times: what follows minus what stands. */
WeftStatus eager_diff(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape;
  RuleError err;
  i64 n = 1, given = -1;
  u32 axis;
  TRY(args_array(vm, OP_diff, 0, args[0]));
  TRY(args_int(vm, OP_diff, 1, args[1], &n));
  TRY(args_int(vm, OP_diff, 2, args[2], &given));
  type_of_value(args[0], &type);
  TRY_RULE(vm, OP_diff, &err, shape_diff(NULL, &type, n, given, &shape, &err));
  TRY_RULE(vm, OP_diff, &err, rule_axis(given, type.rank, &axis, &err));
  Value x = value_keep(args[0]);
  if (type.dtype == DT_bool) {
    value_drop(vm, x);
    TRY(convert_value(vm, OP_diff, args[0], DT_i64, &x));
  }
  for (; n > 0; n--) {
    Value pair[2];
    Array *a = x.array;
    i64 dims[ARRAY_MAX_RANK], *strides = array_strides(a);
    memcpy(dims, array_dims(a), type.rank * sizeof *dims);
    bool more = dims[axis] > 0;
    dims[axis] -= more;
    if (array_view(vm, a, more && dims_size(type.rank, dims) ? strides[axis] : 0, type.rank, dims, strides, &pair[0]) != WEFT_OK) {
      value_drop(vm, x);
      return WEFT_ERROR;
    }
    WeftStatus status = array_view(vm, a, 0, type.rank, dims, strides, &pair[1]);
    value_drop(vm, x);
    if (status != WEFT_OK) {
      value_drop(vm, pair[0]);
      return WEFT_ERROR;
    }
    TRY(run_op(vm, OP_subtract, pair, 2, &x));
    if (dims[axis] == 0) break; /* empty stays empty */
  }
  *out = x;
  return WEFT_OK;
}
