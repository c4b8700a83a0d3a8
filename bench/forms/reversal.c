/* reversal.c — an array from its end to its beginning. sizes: 200000 31 */
#include "bench/forms/form.h"
static double *x, *y;
static void set_up(i64 n) {
  x = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) y[i] = x[n - 1 - i];
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, y, n);
  return s;
}
