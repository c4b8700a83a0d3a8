/* softmax.c — the softmax of rows of four. sizes: 20000 5 */
#include "bench/forms/form.h"
static double *x, *y;
static void set_up(i64 n) {
  x = ROOM(double, 4 * n), y = ROOM(double, 4 * n);
  for (i64 i = 0; i < 4 * n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    double m = x[4 * i], s = 0;
    for (int k = 1; k < 4; k++)
      if (x[4 * i + k] > m) m = x[4 * i + k];
    for (int k = 0; k < 4; k++) s += y[4 * i + k] = exp(x[4 * i + k] - m);
    for (int k = 0; k < 4; k++) y[4 * i + k] /= s;
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, y, 4 * n);
  return s;
}
