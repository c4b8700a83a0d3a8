/* pairs.c — the distances of all pairs of points in space. sizes: 300 6 */
#include "bench/forms/form.h"
static double *x, *d;
static void set_up(i64 n) {
  x = ROOM(double, 3 * n), d = ROOM(double, n * n);
  for (i64 i = 0; i < 3 * n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++)
    for (i64 j = 0; j < n; j++) {
      double s = 0;
      for (int k = 0; k < 3; k++) s += (x[3 * i + k] - x[3 * j + k]) * (x[3 * i + k] - x[3 * j + k]);
      d[i * n + j] = sqrt(s);
    }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, d, n * n);
  return s;
}
