/* roots.c — cube roots by Newton's method, to a tolerance. sizes: 10000 30 */
#include "bench/forms/form.h"
static double *x, *y;
static void set_up(i64 n) {
  x = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = 1 + 100 * uniform(i, 1);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    double v = x[i], r = v;
    for (int k = 0; k < 50; k++) {
      double q = r - (r * r * r - v) / (3 * r * r);
      if (fabs(q - r) < 1e-12) { r = q; break; }
      r = q;
    }
    y[i] = r;
  }
}
static double result(i64 n) { double r = 0; CHECK(r, y, n); return r; }
