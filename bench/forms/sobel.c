/* sobel.c — edges of a picture: Sobel's two filters. sizes: 200 12 */
#include "bench/forms/form.h"
static double *x, *y;
static void set_up(i64 n) {
  x = ROOM(double, n * n), y = ROOM(double, n * n);
  for (i64 i = 0; i < n * n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  for (i64 i = 1; i < n - 1; i++)
    for (i64 j = 1; j < n - 1; j++) {
      const double *p = x + i * n + j;
      double gx = p[1 - n] + 2 * p[1] + p[1 + n] - p[-1 - n] - 2 * p[-1] - p[n - 1];
      double gy = p[n - 1] + 2 * p[n] + p[n + 1] - p[-n - 1] - 2 * p[-n] - p[1 - n];
      y[i * n + j] = sqrt(gx * gx + gy * gy);
    }
}
static double result(i64 n) { double r = 0; CHECK(r, y, n * n); return r; }
