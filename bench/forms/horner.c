/* horner.c — a polynomial of degree nine at many places. sizes: 100000 21 */
#include "bench/forms/form.h"
static double *x, *y, c[10];
static void set_up(i64 n) {
  x = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
  for (i64 i = 0; i < 10; i++) c[i] = uniform(i, 2);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    double s = 0;
    for (int k = 0; k < 10; k++) s = s * x[i] + c[k];
    y[i] = s;
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, y, n);
  return s;
}
