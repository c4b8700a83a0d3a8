/* scan.c — cumulative operations: cumsum cumprod cummax cummin (order: reduce_order.h), and diff. */
#include <sched.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "stdlib/kernels/element.h"
#include "stdlib/array/make.h"
#include "stdlib/kernels/reduce_order.h"
#include "stdlib/array/walk.h"

enum { COLUMNS = 16 }; /* neighbouring scans that run together, so that rows are read as they lie */
enum { BLOCK = SCAN_SEGMENT * SCAN_SEGMENT };

enum { ROWS = 1 << 16 }; /* between two looks at the clock: a power of 2, of many blocks */

/* c <= COLUMNS scans over n elements each, `step` elements apart (negative: from the last on). Where the program is to
 * end the rest is left undone. */
typedef void (*ScanFn)(const Vm *vm, void *out, const void *x, i64 n, i64 c, i64 step);

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
  INDEPENDENT for (i64 j = 0; j < count; j++) {         \
    local[j] = FN(local[j], p[j]);                               \
    q[j] = FN(before[j], local[j]);                              \
  }
/* Products are rare: segment by segment. */
#define BLOCKS_add(NAME)                                                  \
  for (; c == 1 && step == 1 && n - i >= BLOCK; i += BLOCK) {             \
    if (i % (16 * ROWS) == 0 && i && vm_ends(vm)) return;                 \
    NAME##_scan_block(&s[0], o + i, x + i);                               \
  }
#define BLOCKS_mul(NAME)
#define RARE_add
#define RARE_mul __attribute__((cold)) /* small */
#define ORDERED(kind, T, FN, identity)                                                                    \
  static __attribute__((noinline, hot)) void segment_##kind##_##T(kind##_##T##_scan *s, T *q, const T *p, \
                                                                  i64 c, i64 step) {                      \
    T local[COLUMNS], before[COLUMNS];                                                                    \
    for (i64 j = 0; j < COLUMNS; j++)                                                                     \
      local[j] = identity, before[j] = j < c && s[j].has_before[0] ? s[j].before[0] : (T)identity;        \
    for (u32 i = 0; i < SCAN_SEGMENT; i++, p += step, q += step) {                                        \
      if (c == COLUMNS) ROW_OF_SEGMENT(T, FN, COLUMNS)                                                    \
      else ROW_OF_SEGMENT(T, FN, c)                                                                       \
    }                                                                                                     \
    for (i64 j = 0; j < c; j++) kind##_##T##_scan_up(&s[j], 0, local[j]);                                 \
  }                                                                                                       \
  RARE_##kind static void scan_##kind##_##T(const Vm *vm, void *out, const void *xv, i64 n, i64 c,        \
                                            i64 step) {                                                   \
    T *o = out;                                                                                           \
    const T *x = xv;                                                                                      \
    kind##_##T##_scan s[COLUMNS];                                                                         \
    for (i64 j = 0; j < c; j++) kind##_##T##_scan_start(&s[j]);                                           \
    i64 i = 0;                                                                                            \
    BLOCKS_##kind(kind##_##T)                                                                             \
    for (; n - i >= SCAN_SEGMENT; i += SCAN_SEGMENT) {                                                    \
      if (i % ROWS == 0 && i && vm_ends(vm)) return;                                                      \
      if (c == 1 && step == 1) kind##_##T##_scan_segment(&s[0], o + i, x + i);                            \
      else segment_##kind##_##T(s, o + i * step, x + i * step, c, step);                                  \
    }                                                                                                     \
    for (; i < n; i++)                                                                                    \
      for (i64 j = 0; j < c; j++) o[i * step + j] = kind##_##T##_scan_next(&s[j], x[i * step + j]);       \
  }
/* One long scan, by several threads or with non-temporal stores. Each thread has a part, whose blocks it reads, scans
 * within their segments and stores behind what stands before them, a block at a time: what is read and what is stored
 * stay in step, and all between is in the nearest cache. What stands before a part but the first is known by totals:
 * of what the part before it still has to store when it has come as far as `mark`, and that part then has what stands
 * before the mark. The first part begins at once and is longer; to find totals takes two thirds of the time of a
 * scan, so that with five units for it, three for each other one, and the first mark behind two, nobody waits long. */
enum {
  GROUP = SCAN_SEGMENT * BLOCK, /* where parts begin */
  FIRST_UNITS = 5,
  UNITS = 3,
  FIRST_MARK = 2,
  STEP = 2,              /* blocks, at a time */
  ELEMENTS_AHEAD = 1024, /* that are prefetched */
  MOST_SHARING = 64      /* threads */
};

typedef struct SharedScan {
  const void *x;
  void *out, *parts, *groups; /* what stands before parts and marks; totals of groups of blocks */
  i64 n, unit;                /* elements */
  u32 count;                  /* parts */
  bool stream;
} SharedScan;

/* Where a part begins, and where it tells what stands there to the next one. */
static i64 part_begin(const SharedScan *s, i64 part) {
  return part == 0 ? 0 : part >= s->count ? s->n : (FIRST_UNITS + (part - 1) * UNITS) * s->unit;
}
static i64 part_mark(const SharedScan *s, i64 part) { return part ? part_begin(s, part) : FIRST_MARK * s->unit; }

/* What is inside of segments, each by itself; and that behind what stands before each. */
#define LOCALS(T, FN)                                                                                     \
  static void locals_##T(T *to, const T *x, i64 segments, i64 ahead) {                                    \
    const bool pages = ahead && cpu_has(CPU_PAGES);                                                       \
    if (pages) ahead = 0;                                                                                 \
    for (; segments > 0; segments--, to += SCAN_SEGMENT, x += SCAN_SEGMENT) {                             \
      if (pages) fetch_lines(x, SCAN_SEGMENT * sizeof(T) / PAGE_LINE);                                    \
      for (u32 i = 0; i < SCAN_SEGMENT && ahead; i += 64 / sizeof(T)) __builtin_prefetch(x + ahead + i);    \
      to[0] = x[0];                                                                                       \
      UNROLL(16) for (u32 i = 1; i < SCAN_SEGMENT; i++) to[i] = FN(to[i - 1], x[i]);        \
    }                                                                                                     \
  }                                                                                                       \
  static void join_##T(T *restrict to, const T *restrict before, const T *restrict local, i64 segments) { \
    for (; segments > 0; segments--, to += SCAN_SEGMENT, local += SCAN_SEGMENT, before++)                 \
      UNROLL(16) for (u32 i = 0; i < SCAN_SEGMENT; i++) to[i] = FN(*before, local[i]);      \
  }
LOCALS(f32, ADD)
LOCALS(f64, ADD)
#ifdef __x86_64__
/* Eight segments side by side, half of each at a time. Where the processor fetches by itself that is too many
 * places at once: there by fours (4·10⁶ f64, Zen 4: 0.9 of the time, beyond the caches 0.4 to 0.8). */
__attribute__((target("avx512f"))) static void locals_f64_avx512(f64 *to, const f64 *x, i64 segments, i64 ahead) {
  enum { SIDE = 8 };
  for (; segments >= SIDE; segments -= SIDE, to += SIDE * SCAN_SEGMENT, x += SIDE * SCAN_SEGMENT) {
    __m512d rows[SCAN_SEGMENT];
    for (u32 half = 0; half < SCAN_SEGMENT; half += SIDE) {
      strided_transpose_square(rows + half, SIDE, x + half, SCAN_SEGMENT, ahead);
      UNROLL(8) for (u32 i = half; i < half + SIDE; i++)
        if (i) rows[i] += rows[i - 1];
      strided_transpose_square(to + half, SCAN_SEGMENT, rows + half, SIDE, 0);
    }
  }
  locals_f64(to, x, segments, ahead);
}
__attribute__((target("avx512f"))) static void join_past(f64 *to, const f64 *before, const f64 *local, i64 segments) {
  for (; segments > 0; segments--, before++)
    for (u32 i = 0; i < SCAN_SEGMENT; i += 8, to += 8, local += 8)
      _mm512_stream_pd(to, _mm512_set1_pd(*before) + _mm512_loadu_pd(local));
}
__attribute__((target("avx2"))) static void join_past_avx2(f64 *to, const f64 *before, const f64 *local, i64 segments) {
  for (; segments > 0; segments--, before++)
    for (u32 i = 0; i < SCAN_SEGMENT; i += 4, to += 4, local += 4)
      _mm256_stream_pd(to, _mm256_set1_pd(*before) + _mm256_loadu_pd(local));
}
static bool past_f64(f64 *to, const f64 *before, const f64 *local, i64 segments) {
  if (!cpu_has(CPU_AVX2) || (uintptr_t)to % 64) return false;
  (cpu_has(CPU_AVX512) ? join_past : join_past_avx2)(to, before, local, segments);
  return true;
}
__attribute__((target("avx2"))) static inline void turn_four(__m256d *r) {
  __m256d a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]), c = _mm256_unpacklo_pd(r[2], r[3]),
      d = _mm256_unpackhi_pd(r[2], r[3]);
  r[0] = _mm256_permute2f128_pd(a, c, 0x20), r[1] = _mm256_permute2f128_pd(b, d, 0x20);
  r[2] = _mm256_permute2f128_pd(a, c, 0x31), r[3] = _mm256_permute2f128_pd(b, d, 0x31);
}
/* Four segments side by side, four elements of each at a time. */
__attribute__((target("avx2"))) static void locals_f64_avx2(f64 *to, const f64 *x, i64 segments, i64 ahead) {
  enum { SIDE = 4 };
  for (; segments >= SIDE; segments -= SIDE, to += SIDE * SCAN_SEGMENT, x += SIDE * SCAN_SEGMENT) {
    __m256d last = {0};
    for (u32 i = 0; i < SIDE * SCAN_SEGMENT && ahead; i += 8) __builtin_prefetch(x + ahead + i);
    for (u32 i = 0; i < SCAN_SEGMENT; i += SIDE) {
      __m256d r[SIDE];
      UNROLL(4) for (u32 k = 0; k < SIDE; k++) r[k] = _mm256_loadu_pd(x + k * SCAN_SEGMENT + i);
      turn_four(r);
      if (i) r[0] += last;
      r[1] += r[0], r[2] += r[1], last = r[3] += r[2];
      turn_four(r);
      UNROLL(4) for (u32 k = 0; k < SIDE; k++) _mm256_storeu_pd(to + k * SCAN_SEGMENT + i, r[k]);
    }
  }
  locals_f64(to, x, segments, ahead);
}
/* Intel's turn squares by one of two units and add numbers one by one with two: there segments wait for themselves
 * alone, several of them at once. */
#define INSIDE_f64                                                                       \
  (cpu_has(CPU_PAGES) ? locals_f64 : cpu_has(CPU_AVX512 | CPU_FETCH) ? locals_f64_avx512 \
                      : cpu_has(CPU_AVX2) ? locals_f64_avx2 : locals_f64)
#else
#define INSIDE_f64 locals_f64
#define past_f64(...) false
#endif
#define INSIDE_f32 locals_f32
#define past_f32(...) false

/* Where pages are fetched side by side: whole blocks of the n elements from `at` on, stored non-temporally, eight
 * segments side by side in registers, so that no other stores stand between those and what is read meanwhile. How
 * many elements. */
#ifdef __x86_64__
#define BLOCKS_PAST_f64(kind)                                                                                \
  __attribute__((target("avx512f"))) static void block_past_##kind##_f64(kind##_f64_before *b, f64 *out,     \
                                                                         const f64 *x) {                     \
    enum { SIDE = 8, HALVES = SCAN_SEGMENT / SIDE };                                                         \
    f64 total = 0, next = b->segment;                                                                        \
    for (u32 at = 0; at < SCAN_SEGMENT; at += SIDE, x += SIDE * SCAN_SEGMENT, out += SIDE * SCAN_SEGMENT) {  \
      __m512d r[HALVES][SIDE];                                                                               \
      _Alignas(64) f64 totals[SIDE];                                                                         \
      UNROLL(2) for (u32 h = 0; h < HALVES; h++) {                                                           \
        fetch_lines(x + h * SIDE * SIDE, PAGES_ABREAST);                                                     \
        UNROLL(8) for (u32 i = 0; i < SIDE; i++) r[h][i] = _mm512_loadu_pd(x + i * SCAN_SEGMENT + h * SIDE); \
        strided_square(r[h]);                                                                                \
        if (h) r[h][0] += r[h - 1][SIDE - 1];                                                                \
        UNROLL(8) for (u32 i = 1; i < SIDE; i++) r[h][i] += r[h][i - 1];                                     \
      }                                                                                                      \
      _mm512_store_pd(totals, r[HALVES - 1][SIDE - 1]);                                                      \
      UNROLL(2) for (u32 h = 0; h < HALVES; h++) strided_square(r[h]);                                       \
      UNROLL(8) for (u32 i = 0; i < SIDE; i++) {                                                             \
        __m512d before = _mm512_set1_pd(next);                                                               \
        UNROLL(2) for (u32 h = 0; h < HALVES; h++) _mm512_stream_pd(out + i * SCAN_SEGMENT + h * SIDE,       \
                                                                    before + r[h][i]);                       \
        total = at + i ? total + totals[i] : totals[i];                                                      \
        next = b->block + total;                                                                             \
      }                                                                                                      \
    }                                                                                                        \
    go_on_##kind##_f64(b, total);                                                                            \
  }                                                                                                          \
  static i64 blocks_past_##kind##_f64(const SharedScan *s, kind##_f64_before *b, i64 at, i64 n) {            \
    f64 *out = (f64 *)s->out + at;                                                                           \
    if (!s->stream || !cpu_has(CPU_AVX512 | CPU_PAGES) || (uintptr_t)out % 64) return 0;                     \
    n -= n % BLOCK;                                                                                          \
    for (i64 i = 0; i < n; i += BLOCK) block_past_##kind##_f64(b, out + i, (const f64 *)s->x + at + i);      \
    return n;                                                                                                \
  }
#else
#define BLOCKS_PAST_f64(kind)                                                                     \
  static i64 blocks_past_##kind##_f64(const SharedScan *s, kind##_f64_before *b, i64 at, i64 n) { \
    return (void)s, (void)b, (void)at, (void)n, 0;                                                \
  }
#endif
#define BLOCKS_PAST_f32(kind)                                                                     \
  static i64 blocks_past_##kind##_f32(const SharedScan *s, kind##_f32_before *b, i64 at, i64 n) { \
    return (void)s, (void)b, (void)at, (void)n, 0;                                                \
  }

enum { SPINS = 4096 };
static void wait_for(const u32 *known) {
  for (u32 spins = 0; !__atomic_load_n(known, __ATOMIC_ACQUIRE);)
    if (++spins > SPINS) sched_yield();
}

#define SHARED(kind, T, FN)                                                                                          \
  typedef struct kind##_##T##_before {                                                                               \
    kind##_##T##_scan scan; /* of the blocks' totals */                                                              \
    T block, segment;       /* what stands before the next block, and before its first segment */                    \
  } kind##_##T##_before;                                                                                             \
  typedef struct kind##_##T##_part {                                                                                 \
    kind##_##T##_before mark, end;                                                                                   \
    u32 has_mark, has_end;                                                                                           \
  } kind##_##T##_part;                                                                                               \
  typedef void (*T##_inside)(T *, const T *, i64, i64);                                                              \
  /* What is inside of some whole blocks of the n elements at x, or of what is less than one, and their segments'    \
   * totals; how many elements. The totals of a block wait for each other: several blocks are less time. */          \
  static i64 inside_blocks_##T(T##_inside fn, T *local, T (*totals)[SCAN_SEGMENT], const T *x, i64 n) {              \
    i64 blocks = n / BLOCK < STEP ? n / BLOCK : STEP, end = blocks ? blocks * BLOCK : n,                             \
        segments = end / SCAN_SEGMENT;                                                                               \
    T last[STEP];                                                                                                    \
    fn(local, x, segments, cpu_has(CPU_FETCH) ? ELEMENTS_AHEAD : 0);                                                 \
    for (u32 i = 0; i < SCAN_SEGMENT; i++)                                                                           \
      UNROLL(4) for (u32 k = 0; k < STEP; k++) { /* of blocks that are not there for nothing */                      \
        T t = local[k * BLOCK + i * SCAN_SEGMENT + SCAN_SEGMENT - 1];                                                \
        totals[k][i] = last[k] = i ? FN(last[k], t) : t;                                                             \
      }                                                                                                              \
    for (i64 i = segments * SCAN_SEGMENT; i < end; i++) local[i] = i % SCAN_SEGMENT ? FN(local[i - 1], x[i]) : x[i]; \
    return end;                                                                                                      \
  }                                                                                                                  \
  static void join_block_##T(bool stream, T *o, const kind##_##T##_before *restrict b, const T *restrict totals,     \
                             const T *local, i64 n) {                                                                \
    _Alignas(64) T buffer[BLOCK], before[SCAN_SEGMENT + 1];                                                          \
    i64 many = n < BLOCK ? n : BLOCK, segments = many / SCAN_SEGMENT;                                                \
    stream = stream && many == BLOCK;                                                                                \
    /* of a part of a block some for nothing */                                                                      \
    for (u32 i = 0; i < SCAN_SEGMENT; i++) before[i + 1] = FN(b->block, totals[i]);                                  \
    before[0] = b->segment;                                                                                          \
    if (stream && past_##T(o, before, local, segments)) return;                                                      \
    T *to = stream ? buffer : o;                                                                                     \
    join_##T(to, before, local, segments);                                                                           \
    for (i64 e = segments * SCAN_SEGMENT; e < many; e++) to[e] = FN(before[segments], local[e]);                     \
    if (stream) stream_copy(o, buffer, BLOCK * sizeof(T));                                                           \
  }                                                                                                                  \
  static inline void go_on_##kind##_##T(kind##_##T##_before *b, T total) {                                           \
    b->segment = FN(b->block, total);                                                                                \
    b->block = kind##_##T##_scan_next(&b->scan, total);                                                              \
  }                                                                                                                  \
  BLOCKS_PAST_##T(kind)                                                                                              \
  /* What stands before a part that is not the first. */                                                             \
  static __attribute__((noinline, cold)) void find_before_##kind##_##T(const SharedScan *s, i64 part, T##_inside fn, \
                                                                       T *local, kind##_##T##_before *b) {           \
    const kind##_##T##_part *p = (kind##_##T##_part *)s->parts + part - 1;                                           \
    i64 at = part_mark(s, part - 1), end = part_begin(s, part), count = 0;                                           \
    T totals[STEP][SCAN_SEGMENT], blocks[SCAN_SEGMENT], group = 0, *groups = (T *)s->groups + at / GROUP;            \
    for (; at < end && !__atomic_load_n(&p->has_end, __ATOMIC_ACQUIRE); groups[count++] = group)                     \
      for (u32 k = 0; k < SCAN_SEGMENT; k++) {                                                                       \
        if (k % STEP == 0) at += inside_blocks_##T(fn, local, totals, (const T *)s->x + at, end - at);               \
        blocks[k] = totals[k % STEP][SCAN_SEGMENT - 1];                                                              \
        group = k ? FN(group, blocks[k]) : blocks[k];                                                                \
      }                                                                                                              \
    if (at < end) { /* that part was faster */                                                                       \
      *b = p->end;                                                                                                   \
      return;                                                                                                        \
    }                                                                                                                \
    wait_for(&p->has_mark);                                                                                          \
    *b = p->mark;                                                                                                    \
    for (i64 g = 0; g + 1 < count; g++) {                                                                            \
      b->block = b->scan.has_before[0] ? FN(b->scan.before[0], groups[g]) : groups[g];                               \
      kind##_##T##_scan_up(&b->scan, 0, groups[g]);                                                                  \
    }                                                                                                                \
    for (u32 k = 0; k < SCAN_SEGMENT; k++) go_on_##kind##_##T(b, blocks[k]);                                         \
  }                                                                                                                  \
  static void shared_##kind##_##T(void *ctx, i64 part) {                                                             \
    const SharedScan *s = ctx;                                                                                       \
    kind##_##T##_part *p = (kind##_##T##_part *)s->parts + part;                                                     \
    kind##_##T##_before b = {.block = (T)-0.0, .segment = (T)-0.0}; /* a sum with which is the other term */         \
    T##_inside fn = INSIDE_##T;                                                                                      \
    _Alignas(64) T local[STEP * BLOCK] = {0}, totals[STEP][SCAN_SEGMENT];                                            \
    kind##_##T##_scan_start(&b.scan);                                                                                \
    if (part) find_before_##kind##_##T(s, part, fn, local, &b);                                                      \
    for (i64 at = part_begin(s, part), end = part_begin(s, part + 1), mark = part_mark(s, part), many; at < end;     \
         at += many) {                                                                                               \
      if (at == mark) {                                                                                              \
        p->mark = b;                                                                                                 \
        __atomic_store_n(&p->has_mark, 1, __ATOMIC_RELEASE);                                                         \
      }                                                                                                              \
      many = blocks_past_##kind##_##T(s, &b, at, (at < mark ? mark : end) - at);                                     \
      if (many) continue;                                                                                            \
      many = inside_blocks_##T(fn, local, totals, (const T *)s->x + at, end - at);                                   \
      for (i64 k = 0; k * BLOCK < many; k++) {                                                                       \
        join_block_##T(s->stream, (T *)s->out + at + k * BLOCK, &b, totals[k], local + k * BLOCK, many - k * BLOCK); \
        go_on_##kind##_##T(&b, totals[k][SCAN_SEGMENT - 1]);                                                         \
      }                                                                                                              \
    }                                                                                                                \
    p->end = b;                                                                                                      \
    __atomic_store_n(&p->has_end, 1, __ATOMIC_RELEASE);                                                              \
    if (s->stream) stream_done();                                                                                    \
  }                                                                                                                  \
  static bool share_##kind##_##T(Vm *vm, SharedScan *s) {                                                            \
    size_t parts = s->count * sizeof(kind##_##T##_part), all = parts + (size_t)(s->n / GROUP) * sizeof(T);           \
    s->parts = mem_alloc(&vm->alloc, all);                                                                           \
    if (!s->parts) return false;                                                                                     \
    memset(s->parts, 0, parts);                                                                                      \
    s->groups = (char *)s->parts + parts;                                                                            \
    (void)!pool_run(vm, s->count, true, shared_##kind##_##T, s); /* whole: nothing is raised */                      \
    mem_free(&vm->alloc, s->parts, all);                                                                             \
    return true;                                                                                                     \
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
  static void scan_##kind##_##dt(const Vm *vm, void *out, const void *xv, i64 n, i64 c, i64 step) { \
    T_##dt *o = out, last[COLUMNS];                                                    \
    const T_##dt *x = xv;                                                              \
    for (i64 j = 0; j < c && n; j++) o[j] = last[j] = x[j];                            \
    for (i64 lo = 1, hi; lo < n && !(lo > 1 && vm_ends(vm)); lo = hi) {                \
      hi = part_end(lo, n, ROWS);                                                      \
      for (i64 i = lo; i < hi; i++) {                                                  \
        o += step;                                                                     \
        x += step;                                                                     \
        for (i64 j = 0; j < c; j++) o[j] = last[j] = el_##kind##_##dt(last[j], x[j]);  \
      }                                                                                \
    }                                                                                  \
  }
PLAIN(add, i64)
PLAIN(multiply, i64)
PLAIN(add, u64)
PLAIN(multiply, u64)
#define EXTREMES(dt) PLAIN(minimum, dt) PLAIN(maximum, dt)
EXTREMES(u8)
EXTREMES(i32)
EXTREMES(i64)
EXTREMES(u64)
EXTREMES(f32)
EXTREMES(f64)

#define EXTREME_ROW(kind) \
  {[DT_bool] = scan_##kind##_u8, [DT_u8] = scan_##kind##_u8, [DT_i32] = scan_##kind##_i32, \
   [DT_i64] = scan_##kind##_i64, [DT_u64] = scan_##kind##_u64, \
   [DT_f32] = scan_##kind##_f32, [DT_f64] = scan_##kind##_f64}
static const ScanFn scans[REDUCE_KINDS][DT_COUNT] = {
    {[DT_i64] = scan_add_i64, [DT_u64] = scan_add_u64, [DT_f32] = scan_add_f32, [DT_f64] = scan_add_f64},
    {[DT_i64] = scan_multiply_i64, [DT_u64] = scan_multiply_u64, [DT_f32] = scan_mul_f32,
     [DT_f64] = scan_mul_f64},
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
    ShareFn share = step == 1 && n > BLOCK && n >= least &&
                    (stream || pool_threads(vm) > 1) ? shares[kind][r.compute] : NULL;
    u32 threads = pool_threads(vm) < MOST_SHARING ? pool_threads(vm) : MOST_SHARING;
    i64 unit = n / ((i64)(threads - 1) * UNITS + FIRST_UNITS) / GROUP * GROUP;
    bool done = share && share(vm, &(SharedScan){.x = x0, .out = o0, .n = n, .unit = unit, .count = unit ? threads : 1,
                                                 .stream = stream});
    for (i64 j = 0; j < inner && !done && status == WEFT_OK; j += COLUMNS) {
      fn(vm, o0 + j * bytes, x0 + j * bytes, n, inner - j < COLUMNS ? inner - j : COLUMNS, step);
      if (n >= ROWS) status = vm_look(vm);
    }
    from += in_rows * inner * bytes;
    to += out_rows * inner * bytes;
    if (status == WEFT_OK && (outer > 1 || k == 0)) status = kernel_poll(vm, n * inner);
  }
  value_drop(vm, x);
  if (status != WEFT_OK) value_drop(vm, *out);
  return status;
}
WeftStatus eager_cumsum(Vm *vm, Value *args, Value *out) {
  if (args_given(args[4])) return run_in_dtype(vm, OP_cumsum, 4, args, out);
  return cumulative(vm, OP_cumsum, REDUCE_ADD, args, out);
}
WeftStatus eager_cumprod(Vm *vm, Value *args, Value *out) {
  if (args_given(args[4])) return run_in_dtype(vm, OP_cumprod, 4, args, out);
  return cumulative(vm, OP_cumprod, REDUCE_MUL, args, out);
}
WeftStatus eager_cummin(Vm *vm, Value *args, Value *out) { return cumulative(vm, OP_cummin, REDUCE_MIN, args, out); }
WeftStatus eager_cummax(Vm *vm, Value *args, Value *out) { return cumulative(vm, OP_cummax, REDUCE_MAX, args, out); }

/* A number in front of x or behind it: an array of x's shape, of one element along the axis. A weak one takes x's
 * dtype when its kind is not higher. Owned. */
static WeftStatus end_of(Vm *vm, Value x, Value end, u32 axis, Value *out) {
  ArrayType type;
  Value now = value_untracked(end), args[OP_MAX_PARAMS] = {end}, like = value_hole();
  if (now.kind == V_ARRAY && array_rank(now.array)) return *out = value_keep(end), WEFT_OK;
  type_of_value(x, &type);
  if (value_is_weak(now) && dtype_kind(now.dtype) <= dtype_kind(type.dtype)) {
    Value as[OP_MAX_PARAMS] = {end, value_dtype(type.dtype)};
    TRY(vm_op(vm, OP_astype, as, &like));
    args[0] = like;
  }
  type.dims[axis] = 1;
  WeftStatus status = list_new(vm, type.rank, &args[1]) ? WEFT_OK : WEFT_ERROR;
  if (status != WEFT_OK) args[1] = value_hole();
  for (u32 i = 0; i < type.rank && status == WEFT_OK; i++)
    if (!list_push(vm, &args[1], value_i64(type.dims[i]))) status = WEFT_ERROR;
  if (status == WEFT_OK) status = vm_op(vm, OP_broadcast_to, args, out);
  value_drop(vm, args[1]);
  value_drop(vm, like);
  return status;
}

/* diff(x, n, axis, prepend, append) = diff(concat((prepend, x, append), axis), n, axis), on a tape too. */
static WeftStatus diff_of_joined(Vm *vm, const Value *args, Value *out) {
  ArrayType type;
  RuleError err;
  i64 given = -1;
  u32 axis;
  const u32 order[3] = {3, 0, 4};
  const Value x = value_untracked(args[0]);
  Value join[OP_MAX_PARAMS] = {value_hole()}, now[OP_MAX_PARAMS];
  TRY(args_array(vm, OP_diff, 0, x));
  TRY(args_int(vm, OP_diff, 2, args[2], &given));
  type_of_value(x, &type);
  TRY_RULE(vm, OP_diff, &err, rule_axis(given, type.rank, &axis, &err));
  if (!list_new(vm, 3, &join[0])) return WEFT_ERROR;
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < 3 && status == WEFT_OK; i++) {
    const u32 p = order[i];
    Value part = args[p];
    if (!args_given(part)) continue;
    status = args_array(vm, OP_diff, p, value_untracked(part));
    if (status == WEFT_OK && p) status = end_of(vm, x, part, axis, &part);
    if (status == WEFT_OK && !list_push(vm, &join[0], p ? part : value_keep(part))) status = WEFT_ERROR;
  }
  join[1] = value_i64(axis);
  for (u32 i = 2; i < OP_MAX_PARAMS; i++) join[i] = value_hole();
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) now[i] = i < 3 ? args[i] : value_hole();
  if (status == WEFT_OK) status = vm_op(vm, OP_concat, join, &now[0]);
  value_drop(vm, join[0]);
  if (status != WEFT_OK) return status;
  status = vm_op(vm, OP_diff, now, out);
  value_drop(vm, now[0]);
  return status;
}

/* n times: what follows minus what stands. */
WeftStatus eager_diff(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape;
  RuleError err;
  i64 n = 1, given = -1;
  u32 axis;
  if (args_given(args[3]) || args_given(args[4])) return diff_of_joined(vm, args, out);
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
    if (array_view(vm, a, more && dims_size(type.rank, dims) ? strides[axis] : 0, type.rank, dims, strides,
                   &pair[0]) != WEFT_OK) {
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
