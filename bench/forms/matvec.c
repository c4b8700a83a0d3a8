/* matvec.c — a matrix by a vector. sizes: 500 7 */
#include "bench/forms/form.h"
static double *a, *x, *y;
static void set_up(i64 n) {
  a = ROOM(double, n * n), x = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n * n; i++) a[i] = uniform(i, 1);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 2);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    double s = 0;
    for (i64 j = 0; j < n; j++) s += a[i * n + j] * x[j];
    y[i] = s;
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, y, n);
  return s;
}
