/* dot.c — the product of two vectors. sizes: 400000 37 */
#include "bench/forms/form.h"
static double *x, *y, s;
static void set_up(i64 n) {
  x = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1), y[i] = uniform(i, 2);
}
static void work(i64 n) {
  s = 0;
  for (i64 i = 0; i < n; i++) s += x[i] * y[i];
}
static double result(i64 n) { return (void)n, s; }
