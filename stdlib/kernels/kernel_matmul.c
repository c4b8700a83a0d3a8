/* kernel_matmul.c — matrix products of our own (see kernel_matmul.h): rows of c in strips, over blocks of k that keep
 * their rows of b in L2. */
#include "stdlib/kernels/kernel_matmul.h"
#include "stdlib/kernels/element.h"

#include <string.h>

enum { COLUMN_BLOCK = 512, K_BLOCK = 128 };

#define MATMUL(T, U)                                                                                    \
  static void matmul_##T(i64 m, i64 n, i64 k, const T *a, const T *b, T *restrict c) {                  \
    memset(c, 0, (size_t)(m * n) * sizeof(T));                                                          \
    for (i64 j0 = 0; j0 < n; j0 += COLUMN_BLOCK) {                                                      \
      i64 width = n - j0 < COLUMN_BLOCK ? n - j0 : COLUMN_BLOCK;                                        \
      for (i64 p0 = 0; p0 < k; p0 += K_BLOCK) {                                                         \
        i64 depth = k - p0 < K_BLOCK ? k - p0 : K_BLOCK;                                                \
        for (i64 i = 0; i < m; i++) {                                                                   \
          T *restrict row = c + i * n + j0;                                                             \
          for (i64 p = p0; p < p0 + depth; p++) {                                                       \
            const U f = (U)a[i * k + p];                                                                \
            const T *from = b + p * n + j0;                                                             \
            for (i64 j = 0; j < width; j++) row[j] = (T)((U)row[j] + f * (U)from[j]);                   \
          }                                                                                             \
        }                                                                                               \
      }                                                                                                 \
    }                                                                                                   \
  }
MATMUL(u8, u32)
MATMUL(i32, u32)
MATMUL(i64, u64)
MATMUL(f32, f32)
MATMUL(f64, f64)

void matmul_own(u32 dtype, i64 m, i64 n, i64 k, const void *a, const void *b, void *c) {
  switch (dtype) {
    case DT_u8: matmul_u8(m, n, k, a, b, c); break;
    case DT_i32: matmul_i32(m, n, k, a, b, c); break;
    case DT_u64: /* the same bits */
    case DT_i64: matmul_i64(m, n, k, a, b, c); break;
    case DT_f32: matmul_f32(m, n, k, a, b, c); break;
    default: matmul_f64(m, n, k, a, b, c); break;
  }
}
