/* area.c — the sums of all rectangles from the corner: a summed area table, and means from it. sizes: 200 12 */
#include "bench/forms/form.h"
static double *x, *t, *y;
static void set_up(i64 n) {
  x = ROOM(double, n * n), t = ROOM(double, (n + 1) * (n + 1)), y = ROOM(double, n * n);
  for (i64 i = 0; i < n * n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  i64 w = n + 1;
  for (i64 i = 0; i < n; i++)
    for (i64 j = 0; j < n; j++)
      t[(i + 1) * w + j + 1] = x[i * n + j] + t[i * w + j + 1] + t[(i + 1) * w + j] - t[i * w + j];
  for (i64 i = 0; i < n; i++)
    for (i64 j = 0; j < n; j++) {
      i64 a = i < 3 ? 0 : i - 3, b = i + 4 > n ? n : i + 4, c = j < 3 ? 0 : j - 3, d = j + 4 > n ? n : j + 4;
      y[i * n + j] = (t[b * w + d] - t[a * w + d] - t[b * w + c] + t[a * w + c]) / (double)((b - a) * (d - c));
    }
}
static double result(i64 n) { double r = 0; CHECK(r, y, n * n); return r; }
