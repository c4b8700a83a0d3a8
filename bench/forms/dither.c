/* dither.c — a picture in black and white, the errors handed on (Floyd and Steinberg). sizes: 200 12 */
#include "bench/forms/form.h"
static double *x, *y;
static void set_up(i64 n) {
  x = ROOM(double, n * n), y = ROOM(double, n * n);
  for (i64 i = 0; i < n * n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  memcpy(y, x, (size_t)(n * n) * 8);
  for (i64 i = 0; i < n; i++)
    for (i64 j = 0; j < n; j++) {
      double v = y[i * n + j], w = v < 0.5 ? 0 : 1, e = v - w;
      y[i * n + j] = w;
      if (j + 1 < n) y[i * n + j + 1] += e * 7 / 16;
      if (i + 1 < n) {
        if (j > 0) y[(i + 1) * n + j - 1] += e * 3 / 16;
        y[(i + 1) * n + j] += e * 5 / 16;
        if (j + 1 < n) y[(i + 1) * n + j + 1] += e / 16;
      }
    }
}
static double result(i64 n) { double r = 0; CHECK(r, y, n * n); return r; }
