/* matmul.c — a product of square matrices. sizes: 96 5 */
#include "bench/forms/form.h"
static double *a, *b, *c;
static void set_up(i64 n) {
  a = ROOM(double, n * n), b = ROOM(double, n * n), c = ROOM(double, n * n);
  for (i64 i = 0; i < n * n; i++) a[i] = uniform(i, 1), b[i] = uniform(i, 2);
}
static void work(i64 n) {
  memset(c, 0, (size_t)(n * n) * sizeof *c);
  for (i64 i = 0; i < n; i++)
    for (i64 k = 0; k < n; k++)
      for (i64 j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, c, n * n);
  return s;
}
