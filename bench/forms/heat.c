/* heat.c — twenty steps of heat along a rod. sizes: 20000 12 */
#include "bench/forms/form.h"
static double *x, *u, *v;
static void set_up(i64 n) {
  x = ROOM(double, n), u = ROOM(double, n), v = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  memcpy(u, x, (size_t)n * sizeof *u), memcpy(v, x, (size_t)n * sizeof *u);
  for (int t = 0; t < 20; t++) {
    for (i64 i = 1; i < n - 1; i++) v[i] = u[i] + 0.2 * (u[i - 1] - 2 * u[i] + u[i + 1]);
    double *w = u;
    u = v, v = w;
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, u, n);
  return s;
}
