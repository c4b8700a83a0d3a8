/* tridiagonal.c — solves a system with three diagonals. sizes: 50000 15 */
#include "bench/forms/form.h"
static double *b, *c, *d;
static void set_up(i64 n) {
  b = ROOM(double, n), c = ROOM(double, n), d = ROOM(double, n);
  for (i64 i = 0; i < n; i++) b[i] = uniform(i, 1);
}
static void work(i64 n) {
  c[0] = -1.0 / 3, d[0] = b[0] / 3;
  for (i64 i = 1; i < n; i++) {
    const double m = 3 + c[i - 1];
    c[i] = -1 / m, d[i] = (b[i] + d[i - 1]) / m;
  }
  for (i64 i = n - 2; i >= 0; i--) d[i] -= c[i] * d[i + 1];
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, d, n);
  return s;
}
