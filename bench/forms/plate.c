/* plate.c — five steps of Jacobi's iteration on a plate. sizes: 200 9 */
#include "bench/forms/form.h"
static double *x, *u, *v;
static void set_up(i64 n) {
  x = ROOM(double, n * n), u = ROOM(double, n * n), v = ROOM(double, n * n);
  for (i64 i = 0; i < n * n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  memcpy(u, x, (size_t)(n * n) * sizeof *u), memcpy(v, x, (size_t)(n * n) * sizeof *u);
  for (int t = 0; t < 5; t++) {
    for (i64 i = 1; i < n - 1; i++)
      for (i64 j = 1; j < n - 1; j++)
        v[i * n + j] = 0.25 * (u[(i - 1) * n + j] + u[(i + 1) * n + j] + u[i * n + j - 1] + u[i * n + j + 1]);
    double *w = u;
    u = v, v = w;
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, u, n * n);
  return s;
}
