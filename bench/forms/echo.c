/* echo.c — a recursive filter of second order. sizes: 200000 20 */
#include "bench/forms/form.h"
static double *x, *y;
static void set_up(i64 n) {
  x = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++)
    y[i] = 0.2 * x[i] + 0.5 * (i > 0 ? y[i - 1] : 0) - 0.3 * (i > 1 ? y[i - 2] : 0);
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, y, n);
  return s;
}
