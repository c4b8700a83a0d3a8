/* bilateral.c — a bilateral filter of a line, five to each side. sizes: 5000 30 */
#include "bench/forms/form.h"
static double *x, *y;
static void set_up(i64 n) {
  x = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    double s = 0, w = 0;
    for (i64 d = -5; d <= 5; d++) {
      i64 j = i + d;
      if (j < 0 || j >= n) continue;
      double e = exp(-(double)(d * d) / 18 - (x[j] - x[i]) * (x[j] - x[i]) / 0.02);
      s += e * x[j], w += e;
    }
    y[i] = s / w;
  }
}
static double result(i64 n) { double s = 0; CHECK(s, y, n); return s; }
