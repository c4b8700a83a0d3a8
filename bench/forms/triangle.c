/* triangle.c — a system with a lower triangle, solved from the top. sizes: 300 12 */
#include "bench/forms/form.h"
static double *a, *b, *x;
static void set_up(i64 n) {
  a = ROOM(double, n * n), b = ROOM(double, n), x = ROOM(double, n);
  for (i64 i = 0; i < n; i++) {
    b[i] = uniform(i, 2);
    for (i64 j = 0; j < n; j++) a[i * n + j] = uniform(i * n + j, 1) / (double)n + (i == j);
  }
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    double s = b[i];
    for (i64 j = 0; j < i; j++) s -= a[i * n + j] * x[j];
    x[i] = s / a[i * n + i];
  }
}
static double result(i64 n) { double r = 0; CHECK(r, x, n); return r; }
