/* nearest.c — the nearest of ten centres to each point of the plane. sizes: 20000 9 */
#include "bench/forms/form.h"
static double *x, *c;
static i64 *at;
static void set_up(i64 n) {
  x = ROOM(double, 2 * n), c = ROOM(double, 20), at = ROOM(i64, n);
  for (i64 i = 0; i < 2 * n; i++) x[i] = uniform(i, 1);
  for (i64 i = 0; i < 20; i++) c[i] = uniform(i, 2);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    double least = 1e9;
    for (i64 j = 0; j < 10; j++) {
      const double u = x[2 * i] - c[2 * j], v = x[2 * i + 1] - c[2 * j + 1], d = u * u + v * v;
      if (d < least) least = d, at[i] = j;
    }
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, at, n);
  return s;
}
