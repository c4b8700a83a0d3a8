/* mandelbrot.c — how long points of the plane stay near. sizes: 100 9 */
#include "bench/forms/form.h"
static i64 *t;
static void set_up(i64 n) { t = ROOM(i64, n * n); }
static void work(i64 n) {
  for (i64 i = 0; i < n; i++)
    for (i64 j = 0; j < n; j++) {
      const double a = -2 + 3.0 * (double)j / (double)n, b = -1.5 + 3.0 * (double)i / (double)n;
      double x = 0, y = 0;
      i64 k = 0;
      while (k < 50 && x * x + y * y <= 4) {
        const double z = x * x - y * y + a;
        y = 2 * x * y + b, x = z, k++;
      }
      t[i * n + j] = k;
    }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, t, n * n);
  return s;
}
