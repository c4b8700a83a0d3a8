/* turned.c — the transpose of a matrix, doubled. sizes: 400 7 */
#include "bench/forms/form.h"
static double *a, *b;
static void set_up(i64 n) {
  a = ROOM(double, n * n), b = ROOM(double, n * n);
  for (i64 i = 0; i < n * n; i++) a[i] = uniform(i, 1);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++)
    for (i64 j = 0; j < n; j++) b[j * n + i] = 2 * a[i * n + j];
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, b, n * n);
  return s;
}
