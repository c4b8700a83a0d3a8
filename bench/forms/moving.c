/* moving.c — the mean of sixteen neighbours. sizes: 200000 40 */
#include "bench/forms/form.h"
static double *x, *y;
static void set_up(i64 n) {
  x = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  double s = 0;
  for (i64 i = 0; i < 16; i++) s += x[i];
  y[0] = s / 16;
  for (i64 i = 16; i < n; i++) {
    s += x[i] - x[i - 16];
    y[i - 15] = s / 16;
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, y, n - 15);
  return s;
}
