/* table.c — linear interpolation in a table of 200 places. sizes: 100000 31 */
#include "bench/forms/form.h"
static double *x, *y, t[200];
static void set_up(i64 n) {
  x = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
  for (i64 i = 0; i < 200; i++) t[i] = uniform(i, 2);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    const double p = x[i] * 199;
    const i64 k = (i64)p;
    y[i] = t[k] + (p - (double)k) * (t[k + 1] - t[k]);
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, y, n);
  return s;
}
