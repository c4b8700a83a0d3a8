/* spread.c — the variance of numbers, in one pass. sizes: 200000 30 */
#include "bench/forms/form.h"
static double *x, v;
static void set_up(i64 n) {
  x = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  double mean = 0, s = 0;
  for (i64 i = 0; i < n; i++) {
    const double d = x[i] - mean;
    mean += d / (double)(i + 1);
    s += d * (x[i] - mean);
  }
  v = s / (double)n;
}
static double result(i64 n) { return (void)n, v; }
