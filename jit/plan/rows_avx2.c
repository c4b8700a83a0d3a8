/* rows_avx2.c — kernels over short rows, several rows at a time (see rows.h), for every processor from AVX2 on:
 * twice as long vectors gain a third, and are as much code again. The sums are in the order of ir.md section 10,
 * lane by lane. */
#ifdef __x86_64__
#include <stdint.h>

#include "jit/plan/rows.h"

/* coordinates of the points at hand that are turned once; results before they are written */
enum { VECTOR_BYTES = 32, KEPT = 64, COLUMNS = 16 };

/* The elements of one column, written out: gcc takes such vectors together from pairs. */
#define C4(l) row[l][k], row[(l) + 1][k], row[(l) + 2][k], row[(l) + 3][k]
#define COLUMN_f64 C4(0)
#define COLUMN_f32 C4(0), C4(4)

/* T: elements, I: integers of their size. LANES of the order of sums: 256 bytes. */
#define ROWS(T, I)                                                                                                     \
  typedef T vec_##T __attribute__((vector_size(VECTOR_BYTES)));                                                        \
  typedef I ints_##T __attribute__((vector_size(VECTOR_BYTES)));                                                       \
  enum { width_##T = VECTOR_BYTES / sizeof(T), lanes_##T = 256 / sizeof(T) };                                          \
  typedef struct points_##T {                                                                                          \
    const T *row[width_##T]; /* the last one again where there are fewer */                                            \
    const T *other;                                                                                                    \
    i64 size;                                                                                                          \
    vec_##T kept[KEPT];                                                                                                \
  } points_##T;                                                                                                        \
  static inline __attribute__((always_inline)) vec_##T column_##T(const T *const *row, i64 k) {                        \
    return (vec_##T){COLUMN_##T};                                                                                      \
  }                                                                                                                    \
  static inline __attribute__((always_inline)) vec_##T term_##T(const points_##T *p, i64 k) {                          \
    vec_##T v = (k < KEPT ? p->kept[k] : column_##T(p->row, k)) - p->other[k];                                         \
    return v * v;                                                                                                      \
  }                                                                                                                    \
  /* In registers. */                                                                                                  \
  static inline __attribute__((always_inline)) vec_##T sixteen_##T(const points_##T *p) {                              \
    vec_##T s[8];                                                                                                      \
    UNROLL(8) for (u32 l = 0; l < 8; l++) s[l] = term_##T(p, l) + term_##T(p, l + 8);                                  \
    UNROLL(4) for (u32 l = 0; l < 4; l++) s[l] += s[l + 4];                                                            \
    return (s[0] + s[2]) + (s[1] + s[3]);                                                                              \
  }                                                                                                                    \
  /* At most as many elements as there are lanes: each is alone in its own. */                                         \
  static vec_##T few_##T(const points_##T *p, i64 n) {                                                                 \
    vec_##T s[lanes_##T / 2];                                                                                          \
    i64 half = 1;                                                                                                      \
    if (n == 1) return term_##T(p, 0);                                                                                 \
    while (half * 2 < n) half *= 2;                                                                                    \
    for (i64 l = 0; l < half; l++) s[l] = l + half < n ? term_##T(p, l) + term_##T(p, l + half) : term_##T(p, l);      \
    for (half /= 2; half; half /= 2)                                                                                   \
      for (i64 l = 0; l < half; l++) s[l] += s[l + half];                                                              \
    return s[0];                                                                                                       \
  }                                                                                                                    \
  /* Elements first … first + count of a level: of level 0 the terms, else the results of the blocks below. */         \
  static __attribute__((noinline)) vec_##T fold_##T(const points_##T *p, u32 level, i64 first, i64 count, i64 below) { \
    enum { W = lanes_##T, BLOCK = W * LOOP_BLOCK_TRIPS };                                                              \
    vec_##T s[W];                                                                                                      \
    for (i64 e = 0; e < count; e++) {                                                                                  \
      vec_##T v;                                                                                                       \
      if (level == 0) {                                                                                                \
        v = term_##T(p, first + e);                                                                                    \
      } else {                                                                                                         \
        i64 from = (first + e) * BLOCK, left = below - from, under = p->size;                                          \
        for (u32 k = 1; k + 1 < level; k++) under = (under + BLOCK - 1) / BLOCK;                                       \
        v = fold_##T(p, level - 1, from, left < BLOCK ? left : BLOCK, under);                                          \
      }                                                                                                                \
      s[e % W] = e < W ? v : s[e % W] + v;                                                                             \
    }                                                                                                                  \
    i64 there = count < W ? count : W;                                                                                 \
    for (i64 half = W / 2; half; half /= 2)                                                                            \
      for (i64 l = 0; l < half && l + half < there; l++) s[l] += s[l + half];                                          \
    return s[0];                                                                                                       \
  }                                                                                                                    \
  static __attribute__((noinline)) vec_##T distance_##T(const points_##T *p) {                                         \
    enum { BLOCK = lanes_##T * LOOP_BLOCK_TRIPS };                                                                     \
    i64 n = p->size, below = 0;                                                                                        \
    u32 level = 0;                                                                                                     \
    if (n == 0) return (vec_##T){0};                                                                                   \
    if (n <= lanes_##T) return few_##T(p, n);                                                                          \
    for (; n > BLOCK; level++) below = n, n = (n + BLOCK - 1) / BLOCK;                                                 \
    return fold_##T(p, level, 0, n, below);                                                                            \
  }                                                                                                                    \
  static __attribute__((noinline)) i64 points_at_##T(points_##T *p, const T *x, i64 i, i64 hi) {                       \
    i64 rows = hi - i < width_##T ? hi - i : width_##T;                                                                \
    for (i64 l = 0; l < width_##T; l++) p->row[l] = x + (i + (l < rows ? l : rows - 1)) * p->size;                     \
    for (i64 k = 0; k < p->size && k < KEPT; k++) p->kept[k] = column_##T(p->row, k);                                  \
    return rows;                                                                                                       \
  }                                                                                                                    \
  u64 rows_distances_##T##_avx2(const u64 *args, i64 lo, i64 hi) {                                                     \
    i64 n = (i64)args[1], rows;                                                                                        \
    const T *x = (const T *)(uintptr_t)args[3], *c = (const T *)(uintptr_t)args[4];                                    \
    T *y = (T *)(uintptr_t)args[5];                                                                                    \
    points_##T p;                                                                                                      \
    p.size = (i64)args[2];                                                                                             \
    for (i64 i = lo; i < hi; i += rows) {                                                                              \
      rows = points_at_##T(&p, x, i, hi);                                                                              \
      for (i64 j = 0; j < n; j += COLUMNS) {                                                                           \
        vec_##T out[COLUMNS];                                                                                          \
        i64 count = n - j < COLUMNS ? n - j : COLUMNS;                                                                 \
        for (i64 k = 0; k < count; k++) {                                                                              \
          p.other = c + (j + k) * p.size;                                                                              \
          out[k] = distance_##T(&p);                                                                                   \
        }                                                                                                              \
        for (i64 l = 0; l < rows; l++)                                                                                 \
          for (i64 k = 0; k < count; k++) y[(i + l) * n + j + k] = out[k][l];                                          \
      }                                                                                                                \
    }                                                                                                                  \
    return LOOP_KEY_NONE;                                                                                              \
  }                                                                                                                    \
  /* The first of the nearest rows of c, or of the least of a row's own elements, or (with their signs flipped)        \
   * the greatest; the first that is no number. In rounds of as many as an integer counts. */                          \
  static __attribute__((noinline)) void extreme_##T(i64 n, i64 size, const T *x, const T *c, T sign, i64 *y,           \
                                                    i64 lo, i64 hi) {                                                  \
    const ints_##T flip = (ints_##T)(sign - (vec_##T){0});                                                             \
    i64 rows;                                                                                                          \
    points_##T p;                                                                                                      \
    p.size = size;                                                                                                     \
    for (i64 i = lo; i < hi; i += rows) {                                                                              \
      T best[width_##T];                                                                                               \
      rows = points_at_##T(&p, x, i, hi);                                                                              \
      for (i64 l = 0; l < rows; l++) y[i + l] = -1;                                                                    \
      for (i64 first = 0; first < n; first += INT32_MAX) {                                                             \
        i64 count = n - first < INT32_MAX ? n - first : INT32_MAX;                                                     \
        vec_##T top = {0};                                                                                             \
        ints_##T at = (ints_##T){0} - 1;                                                                               \
        for (i64 j = 0; j < count; j++) {                                                                              \
          vec_##T v;                                                                                                   \
          p.other = c ? c + (first + j) * size : NULL;                                                                 \
          if (!c) v = (vec_##T)((ints_##T)(first + j < KEPT ? p.kept[j] : column_##T(p.row, first + j)) ^ flip);       \
          else if (size == 16) v = sixteen_##T(&p);                                                                    \
          else v = distance_##T(&p);                                                                                   \
          ints_##T take = (v < top) | ((v != v) & (top == top)) | (at < 0), where = (ints_##T){0} + (I)j;              \
          top = (vec_##T)(((ints_##T)v & take) | ((ints_##T)top & ~take));                                             \
          at = (where & take) | (at & ~take);                                                                          \
        }                                                                                                              \
        for (i64 l = 0; l < rows; l++) {                                                                               \
          T now = top[l];                                                                                              \
          if (first && !(now < best[l] || (now != now && best[l] == best[l]))) continue;                               \
          best[l] = now;                                                                                               \
          y[i + l] = first + at[l];                                                                                    \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  u64 rows_nearest_##T##_avx2(const u64 *args, i64 lo, i64 hi) {                                                       \
    extreme_##T((i64)args[1], (i64)args[2], (const T *)(uintptr_t)args[3], (const T *)(uintptr_t)args[4], 0,           \
                (i64 *)(uintptr_t)args[5], lo, hi);                                                                    \
    return LOOP_KEY_NONE;                                                                                              \
  }                                                                                                                    \
  u64 rows_argmin_##T##_avx2(const u64 *args, i64 lo, i64 hi) {                                                        \
    extreme_##T((i64)args[1], (i64)args[1], (const T *)(uintptr_t)args[2], NULL, 0,                                    \
                (i64 *)(uintptr_t)args[3], lo, hi);                                                                    \
    return LOOP_KEY_NONE;                                                                                              \
  }                                                                                                                    \
  u64 rows_argmax_##T##_avx2(const u64 *args, i64 lo, i64 hi) {                                                        \
    extreme_##T((i64)args[1], (i64)args[1], (const T *)(uintptr_t)args[2], NULL, (T)-0.0,                              \
                (i64 *)(uintptr_t)args[3], lo, hi);                                                                    \
    return LOOP_KEY_NONE;                                                                                              \
  }

ROWS(f32, i32)
ROWS(f64, i64)
#endif
