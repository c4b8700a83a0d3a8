/* lu.c — LU decomposition with pivots of a matrix. sizes: 100 8 */
#include "bench/forms/form.h"
static double *a, *l;
static void set_up(i64 n) {
  a = ROOM(double, n * n), l = ROOM(double, n * n);
  for (i64 i = 0; i < n * n; i++) a[i] = uniform(i, 1) - 0.5;
}
static void work(i64 n) {
  memcpy(l, a, (size_t)(n * n) * 8);
  for (i64 k = 0; k < n; k++) {
    i64 p = k;
    for (i64 i = k + 1; i < n; i++) if (fabs(l[i * n + k]) > fabs(l[p * n + k])) p = i;
    if (p != k) for (i64 j = 0; j < n; j++) { double t = l[p * n + j]; l[p * n + j] = l[k * n + j]; l[k * n + j] = t; }
    for (i64 i = k + 1; i < n; i++) {
      double f = l[i * n + k] / l[k * n + k];
      l[i * n + k] = f;
      for (i64 j = k + 1; j < n; j++) l[i * n + j] -= f * l[k * n + j];
    }
  }
}
static double result(i64 n) { double s = 0; CHECK(s, l, n * n); return s; }
