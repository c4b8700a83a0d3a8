/* reduce_order.h — the order of reductions and scans, which is part of the language: it depends on shape, axes and
 * dtype alone. A template: REDUCE_ORDER(name, T, op, zero, fn) makes the functions below for one dtype and `+` or
 * `*`; fn(T, T) is the same operation as a function.
 * Every tier that reduces is tested against these.
 *
 * Elements are numbered row-major over the reduced axes. W = 256 bytes / sizeof(T) lanes.
 * - The last axis is reduced: blocks of 64 W elements; in a block element e joins lane e mod W, in order; lanes
 *   combine as l with l + W/2, then W/4 … 1, where an absent lane is skipped; the block results are a sequence that
 *   is reduced by the same rule.
 * - The last axis is kept: each result takes its elements in order, in blocks of 64; the block results in order in
 *   blocks of 64, and so on.
 * - Scans: segments of 16, in order inside; segment totals are scanned by the same rule; then total-before op local.
 *
 * REDUCE_VECTOR_BYTES is the width of the registers that lanes lie in; it changes no bit of a result. */
#ifndef WEFT_STDLIB_REDUCE_ORDER_H
#define WEFT_STDLIB_REDUCE_ORDER_H

#include <string.h>

#include "parser/base.h"

#ifndef REDUCE_VECTOR_BYTES
#define REDUCE_VECTOR_BYTES 16
#endif

enum { REDUCE_LANE_BYTES = 256, REDUCE_BLOCK_ROWS = 64, REDUCE_COLUMN_BLOCK = 64,
       SCAN_SEGMENT = 16, REDUCE_FETCHED = 32 << 10 /* bytes, as many as the nearest cache has */,
       REDUCE_FAR = 1 << 19 /* bytes of rows that may be prefetched */ };
/* columns: REDUCE_FAR << 7 bytes of all rows; of fewer some rows are read side by side instead */
enum { REDUCE_FAR_ROWS = 7, REDUCE_ROWS_FAR = 1 << 16 /* added to the number of rows of columns that are far */ };
/* Sizes stay below 2**62: 6 levels of blocks of at least 2,048; 11 of 64; 16 of 16. */
enum { REDUCE_LEVELS = 6, REDUCE_COLUMN_LEVELS = 11, SCAN_LEVELS = 16 };
#define REDUCE_LANES(T) ((i64)(REDUCE_LANE_BYTES / sizeof(T)))
#define REDUCE_BLOCK(T) (REDUCE_BLOCK_ROWS * REDUCE_LANES(T))

/* Does it pay to fetch pages ahead: of rows that lie one behind the other, or of one row, where `stride` says how
 * many elements are read on from its beginning, its own among them (0: no more than those). */
bool reduce_is_far(i64 n, i64 rows, i64 stride, i64 bytes);
static __attribute__((noinline, unused)) void fetch_lanes(const void *now) {
  fetch_lines(now, REDUCE_LANE_BYTES / PAGE_LINE);
  __asm__ volatile(""); /* without effects it would not be called */
}

/* Makes:
 *   T NAME_lanes(T *lane, i64 m)             lanes 0 … m-1 combined; destroys them
 *   T NAME_block(const T *x, i64 n, far)     one block, 1 <= n <= REDUCE_BLOCK(T); far: of what is read on beyond
 *                                            the caches
 *   NAME_total, NAME_push, NAME_finish       block results as they come, and the result of all
 *   T NAME_run(const T *x, i64 n, far)       a consecutive sequence, whole
 *   void NAME_rows(out, x, n, rows, stride)  NAME_run of each row, n >= 1
 *   void NAME_columns(out, x, n, rows, stride)  in order over 1 … 64 rows, for n columns
 *   NAME_scan, NAME_scan_next                the scan, element by element */
#define REDUCE_ORDER(NAME, T, OP, ZERO, FN)                                                                        \
  static __attribute__((noinline, unused)) T NAME##_lanes(T *lane, i64 m) {                                        \
    for (i64 h = REDUCE_LANES(T) / 2; h; h /= 2) {                                                                 \
      for (i64 l = 0; l + h < m; l++) lane[l] = (T)(lane[l] OP lane[l + h]);                                       \
      if (m > h) m = h;                                                                                            \
    }                                                                                                              \
    return lane[0];                                                                                                \
  }                                                                                                                \
  typedef T NAME##_vec __attribute__((vector_size(REDUCE_VECTOR_BYTES), aligned(sizeof(T)), may_alias));           \
  static __attribute__((noinline, unused)) T NAME##_block(const T *x, i64 n, bool far) {                           \
    enum { VECTORS = REDUCE_LANE_BYTES / REDUCE_VECTOR_BYTES, EACH = REDUCE_VECTOR_BYTES / sizeof(T),              \
           FETCHES = REDUCE_VECTOR_BYTES > 16 && ZERO == 0 };                                                      \
    T lane[REDUCE_LANE_BYTES / sizeof(T)];                                                                         \
    const i64 W = REDUCE_LANES(T);                                                                                 \
    if (n < W) {                                                                                                   \
      memcpy(lane, x, (size_t)n * sizeof(T));                                                                      \
      return NAME##_lanes(lane, n);                                                                                \
    }                                                                                                              \
    if (FETCHES && UNLIKELY(far)) fetch_lanes(x);                                                                  \
    NAME##_vec acc[VECTORS];                                                                                       \
    UNROLL(16) for (u32 v = 0; v < VECTORS; v++) acc[v] = *(const NAME##_vec *)(x + v * EACH);                     \
    i64 e = W;                                                                                                     \
    for (; e + W <= n; e += W) {                                                                                   \
      UNROLL(8) for (u32 v = 0; v < VECTORS / 2; v++) acc[v] = acc[v] OP *(const NAME##_vec *)(x + e + v * EACH);  \
      if (FETCHES && UNLIKELY(far)) fetch_lines(x + e, REDUCE_LANE_BYTES / 2 / PAGE_LINE);                         \
      UNROLL(8) for (u32 v = VECTORS / 2; v < VECTORS;                                                             \
                     v++) acc[v] = acc[v] OP *(const NAME##_vec *)(x + e + v * EACH);                              \
      if (FETCHES && UNLIKELY(far)) fetch_lines(x + e + W / 2, REDUCE_LANE_BYTES / 2 / PAGE_LINE);                 \
    }                                                                                                              \
    if (e == n) { /* the first halvings in registers */                                                            \
      UNROLL(8) for (u32 h = VECTORS / 2; h; h /= 2) {                                                             \
        UNROLL(16) for (u32 v = 0; v < h; v++) acc[v] = acc[v] OP acc[v + h];                                      \
      }                                                                                                            \
      memcpy(lane, &acc[0], sizeof acc[0]);                                                                        \
      return NAME##_lanes(lane, EACH);                                                                             \
    }                                                                                                              \
    memcpy(lane, acc, sizeof acc);                                                                                 \
    if (FETCHES && UNLIKELY(far)) fetch_lanes(x + e);                                                              \
    for (i64 l = 0; e < n; l++, e++) lane[l] = (T)(lane[l] OP x[e]);                                               \
    return NAME##_lanes(lane, W);                                                                                  \
  }                                                                                                                \
  typedef struct NAME##_total {                                                                                    \
    T lane[REDUCE_LEVELS][REDUCE_LANE_BYTES / sizeof(T)];                                                          \
    i64 count[REDUCE_LEVELS]; /* values in the current block of the level */                                       \
    bool more[REDUCE_LEVELS]; /* earlier blocks of the level went up */                                            \
  } NAME##_total;                                                                                                  \
  static inline __attribute__((unused)) void NAME##_start(NAME##_total *t) {                                       \
    memset(t->count, 0, sizeof t->count);                                                                          \
    memset(t->more, 0, sizeof t->more);                                                                            \
  }                                                                                                                \
  /* `level` 0: a value of the sequence; the results of its blocks go to the level above. */                       \
  static __attribute__((noinline, cold, unused)) void NAME##_push(NAME##_total *t, u32 level, T value) {           \
    const i64 W = REDUCE_LANES(T);                                                                                 \
    for (;; level++) {                                                                                             \
      i64 e = t->count[level];                                                                                     \
      if (e < REDUCE_BLOCK(T)) {                                                                                   \
        T *lane = &t->lane[level][e % W];                                                                          \
        *lane = e < W ? value : (T)(*lane OP value);                                                               \
        t->count[level] = e + 1;                                                                                   \
        return;                                                                                                    \
      }                                                                                                            \
      T up = NAME##_lanes(t->lane[level], W); /* full, and more comes */                                           \
      t->lane[level][0] = value;                                                                                   \
      t->count[level] = 1;                                                                                         \
      t->more[level] = true;                                                                                       \
      value = up;                                                                                                  \
    }                                                                                                              \
  }                                                                                                                \
  static __attribute__((noinline, cold, unused)) T NAME##_finish(NAME##_total *t) {                                \
    const i64 W = REDUCE_LANES(T);                                                                                 \
    if (t->count[0] == 0) return ZERO;                                                                             \
    for (u32 level = 0;; level++) {                                                                                \
      T result = NAME##_lanes(t->lane[level], t->count[level] < W ? t->count[level] : W);                          \
      if (!t->more[level]) return result;                                                                          \
      NAME##_push(t, level + 1, result);                                                                           \
    }                                                                                                              \
  }                                                                                                                \
  static inline __attribute__((unused)) T NAME##_run(const T *x, i64 n, bool far) {                                \
    if (n <= REDUCE_BLOCK(T)) return n > 0 ? NAME##_block(x, n, far) : ZERO;                                       \
    NAME##_total t;                                                                                                \
    NAME##_start(&t);                                                                                              \
    for (i64 e = 0; e < n; e += REDUCE_BLOCK(T))                                                                   \
      NAME##_push(&t, 0, NAME##_block(x + e, n - e < REDUCE_BLOCK(T) ? n - e : REDUCE_BLOCK(T), far));             \
    return NAME##_finish(&t);                                                                                      \
  }                                                                                                                \
  /* Few elements: the lanes' tree written out by the compiler, n being constant where it is inlined. */           \
  static inline __attribute__((always_inline, unused)) void NAME##_short_rows(T *out, const T *x, i64 n, i64 rows, \
                                                                              i64 stride) {                        \
    for (i64 r = 0; r < rows; r++) {                                                                               \
      T lane[8];                                                                                                   \
      UNROLL(8) for (i64 l = 0; l < n; l++) lane[l] = x[r * stride + l];                                           \
      if (n > 4)                                                                                                   \
        UNROLL(8) for (i64 l = 0; l + 4 < n; l++) lane[l] = (T)(lane[l] OP lane[l + 4]);                           \
      if (n > 2)                                                                                                   \
        UNROLL(8) for (i64 l = 0; l < (n >= 4 ? 2 : n - 2); l++) lane[l] = (T)(lane[l] OP lane[l + 2]);            \
      if (n > 1) lane[0] = (T)(lane[0] OP lane[1]);                                                                \
      out[r] = lane[0];                                                                                            \
    }                                                                                                              \
  }                                                                                                                \
  static inline __attribute__((unused)) void NAME##_rows(T *out, const T *x, i64 n, i64 rows, i64 stride) {        \
    switch (ZERO == 0 ? n : 0) { /* products are rare */                                                           \
      case 1: NAME##_short_rows(out, x, 1, rows, stride); return;                                                  \
      case 2: NAME##_short_rows(out, x, 2, rows, stride); return;                                                  \
      case 3: NAME##_short_rows(out, x, 3, rows, stride); return;                                                  \
      case 4: NAME##_short_rows(out, x, 4, rows, stride); return;                                                  \
      case 5: NAME##_short_rows(out, x, 5, rows, stride); return;                                                  \
      case 6: NAME##_short_rows(out, x, 6, rows, stride); return;                                                  \
      case 7: NAME##_short_rows(out, x, 7, rows, stride); return;                                                  \
      case 8: NAME##_short_rows(out, x, 8, rows, stride); return;                                                  \
      default:                                                                                                     \
        for (i64 r = 0; r < rows; r++)                                                                             \
          out[r] = NAME##_run(x + r * stride, n, ZERO == 0 && reduce_is_far(n, rows, stride, sizeof(T)));          \
    }                                                                                                              \
  }                                                                                                                \
  /* What stands in `before` and then `rows` rows. */                                                              \
  static NOCLONE __attribute__((noinline, unused)) void NAME##_rows_on(T *out, const T *before, const T *x, i64 n, \
                                                                       i64 rows, i64 stride) {                     \
    for (; rows > 0; rows--, x += stride, before = out)                                                            \
      INDEPENDENT for (i64 k = 0; k < n; k++) out[k] = (T)(before[k] OP x[k]);                                     \
  }                                                                                                                \
  /* Some rows of all columns, then the next ones, a line of each: what one instruction reads then goes on by a    \
   * line, as the processor expects. Rows that lie one behind the other, many columns of them: memory is asked for \
   * in its order, rows that come after the next ones, into the cache beside the nearest (measured with AVX2       \
   * alone). */                                                                                                    \
  static inline __attribute__((unused)) void NAME##_columns(T *out, const T *x, i64 n, i64 rows, i64 stride) {     \
    enum { EACH = REDUCE_VECTOR_BYTES / sizeof(T), LINE = 64 / sizeof(T), VECTORS = LINE / EACH,                   \
           TURN = 9 /* a block of 64 rows is the first and seven times so many */ };                               \
    bool fetched = REDUCE_VECTOR_BYTES == 32 && stride == n && n * TURN * (i64)sizeof(T) >= REDUCE_FETCHED;        \
    /* in its order, a line at a time */                                                                           \
    const bool pages = REDUCE_VECTOR_BYTES == 32 && ZERO == 0 && rows >= REDUCE_ROWS_FAR;                          \
    rows &= REDUCE_ROWS_FAR - 1;                                                                                   \
    i64 left = rows - 1, whole = n / LINE * LINE;                                                                  \
    const T *before = x;                                                                                           \
    x += stride;                                                                                                   \
    if (!left) memcpy(out, before, (size_t)n * sizeof(T));                                                         \
    for (; pages && left; left--, x += stride, before = out) {                                                     \
      for (i64 j = 0; j < whole; j += LINE) {                                                                      \
        if (before != out) fetch_lines(before + j, 1); /* the first row */                                         \
        fetch_lines(x + j, 1);                                                                                     \
        UNROLL(4) for (u32 v = 0; v < VECTORS; v++)                                                                \
          *(NAME##_vec *)(out + j + v * EACH) =                                                                    \
              *(const NAME##_vec *)(before + j + v * EACH) OP *(const NAME##_vec *)(x + j + v * EACH);             \
      }                                                                                                            \
      NAME##_rows_on(out + whole, before + whole, x + whole, n - whole, 1, stride);                                \
    }                                                                                                              \
    for (; left >= TURN; left -= TURN, x += TURN * stride, before = out) {                                         \
      const T *next = x + 2 * TURN * stride;                                                                       \
      for (i64 j = 0; j < whole; j += LINE) {                                                                      \
        NAME##_vec a[VECTORS];                                                                                     \
        UNROLL(4) for (u32 v = 0; v < VECTORS; v++) a[v] = *(const NAME##_vec *)(before + j + v * EACH);           \
        if (fetched)                                                                                               \
          UNROLL(16) for (u32 r = 0; r < TURN; r++, next += LINE) __builtin_prefetch(next, 0, 2);                  \
        UNROLL(16) for (i64 r = 0; r < TURN; r++)                                                                  \
          UNROLL(4) for (u32 v = 0; v < VECTORS; v++) a[v] =                                                       \
              a[v] OP *(const NAME##_vec *)(x + r * stride + j + v * EACH);                                        \
        UNROLL(4) for (u32 v = 0; v < VECTORS; v++) *(NAME##_vec *)(out + j + v * EACH) = a[v];                    \
      }                                                                                                            \
      NAME##_rows_on(out + whole, before + whole, x + whole, n - whole, TURN, stride);                             \
    }                                                                                                              \
    NAME##_rows_on(out, before, x, n, left, stride);                                                               \
  }                                                                                                                \
  SCAN_ORDER(NAME, T, FN)

/* The scan alone, from a function `T FN(T, T)`: one level holds the segment that runs, and what stands before it. */
#define SCAN_ORDER(NAME, T, FN)                                                                                      \
  typedef struct NAME##_scan {                                                                                       \
    T local[SCAN_LEVELS], before[SCAN_LEVELS];                                                                       \
    u8 count[SCAN_LEVELS];                                                                                           \
    bool has_before[SCAN_LEVELS];                                                                                    \
  } NAME##_scan;                                                                                                     \
  static inline __attribute__((unused)) void NAME##_scan_start(NAME##_scan *s) {                                     \
    memset(s->count, 0, sizeof s->count);                                                                            \
    memset(s->has_before, 0, sizeof s->has_before);                                                                  \
  }                                                                                                                  \
  /* A segment's total, when it is whole, is the next element of the level above, whose result stands before         \
   * the next segment. */                                                                                            \
  static inline __attribute__((unused)) void NAME##_scan_up(NAME##_scan *s, u32 level, T total) {                    \
    for (;; level++) { /* totals go up while they complete a segment */                                              \
      s->count[level] = 0;                                                                                           \
      u32 up = level + 1;                                                                                            \
      if (up == SCAN_LEVELS) return;                                                                                 \
      T l = s->count[up] ? FN(s->local[up], total) : total;                                                          \
      s->local[up] = l;                                                                                              \
      s->before[level] = s->has_before[up] ? FN(s->before[up], l) : l;                                               \
      s->has_before[level] = true;                                                                                   \
      if (++s->count[up] < SCAN_SEGMENT) return;                                                                     \
      total = l;                                                                                                     \
    }                                                                                                                \
  }                                                                                                                  \
  static inline __attribute__((unused)) T NAME##_scan_next(NAME##_scan *s, T x) {                                    \
    T local = s->count[0] ? FN(s->local[0], x) : x;                                                                  \
    T result = s->has_before[0] ? FN(s->before[0], local) : local;                                                   \
    s->local[0] = local;                                                                                             \
    if (++s->count[0] == SCAN_SEGMENT) NAME##_scan_up(s, 0, local);                                                  \
    return result;                                                                                                   \
  }                                                                                                                  \
  /* A whole segment of consecutive elements, none of it begun; `out` may be `x`. */                                 \
  static inline __attribute__((unused)) void NAME##_scan_segment(NAME##_scan *s, T *out, const T *x) {               \
    T local[SCAN_SEGMENT], before = s->before[0];                                                                    \
    local[0] = x[0];                                                                                                 \
    UNROLL(16) for (u32 i = 1; i < SCAN_SEGMENT; i++) local[i] = FN(local[i - 1], x[i]);               \
    if (s->has_before[0])                                                                                            \
      UNROLL(16) for (u32 i = 0; i < SCAN_SEGMENT; i++) out[i] = FN(before, local[i]);                 \
    else memcpy(out, local, sizeof local);                                                                           \
    NAME##_scan_up(s, 0, local[SCAN_SEGMENT - 1]);                                                                   \
  }

/* Sixteen whole segments of consecutive elements, which are one of the level above; none of either is begun. What
 * is inside segments needs nothing of what stands before them: it all comes first, while the lines of the result
 * are fetched. `out` may be `x`. */
#define SCAN_BLOCK(NAME, T, FN)                                                                                      \
  static __attribute__((noinline)) void NAME##_scan_block(NAME##_scan *s, T *out, const T *x) {                      \
    T local[SCAN_SEGMENT * SCAN_SEGMENT], *l = local, total = 0, before = s->before[0];                              \
    for (u32 g = 0; g < SCAN_SEGMENT; g++, x += SCAN_SEGMENT, l += SCAN_SEGMENT) {                                   \
      T t = l[0] = x[0];                                                                                             \
      for (u32 i = 0; i < SCAN_SEGMENT; i += 64 / sizeof(T)) __builtin_prefetch(out + g * SCAN_SEGMENT + i, 1);      \
      __asm__ volatile(""); /* no vector of segments: taking them apart costs more than it gives */                  \
      UNROLL(16) for (u32 i = 1; i < SCAN_SEGMENT; i++) l[i] = t = FN(t, x[i]);                        \
    }                                                                                                                \
    l = local;                                                                                                       \
    for (u32 g = 0; g < SCAN_SEGMENT; g++, out += SCAN_SEGMENT, l += SCAN_SEGMENT) {                                 \
      if (g || s->has_before[0])                                                                                     \
        UNROLL(16) for (u32 i = 0; i < SCAN_SEGMENT; i++) out[i] = FN(before, l[i]);                   \
      else memcpy(out, l, sizeof *l * SCAN_SEGMENT);                                                                 \
      total = g ? FN(total, l[SCAN_SEGMENT - 1]) : l[SCAN_SEGMENT - 1];                                              \
      before = s->has_before[1] ? FN(s->before[1], total) : total;                                                   \
    }                                                                                                                \
    s->before[0] = before;                                                                                           \
    s->has_before[0] = true;                                                                                         \
    NAME##_scan_up(s, 1, total);                                                                                     \
  }

#endif
