/* cholesky.c — the decomposition of Cholesky. sizes: 100 8 */
#include "bench/forms/form.h"
static double *a, *l;
static void set_up(i64 n) {
  a = ROOM(double, n * n), l = ROOM(double, n * n);
  for (i64 i = 0; i < n; i++)
    for (i64 j = 0; j < n; j++) a[i * n + j] = 1.0 / (double)(1 + i + j) + (i == j);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++)
    for (i64 j = 0; j <= i; j++) {
      double s = a[i * n + j];
      for (i64 k = 0; k < j; k++) s -= l[i * n + k] * l[j * n + k];
      l[i * n + j] = i == j ? sqrt(s) : s / l[j * n + j];
    }
}
static double result(i64 n) { double r = 0; CHECK(r, l, n * n); return r; }
