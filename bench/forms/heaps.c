/* heaps.c — sorting by a heap in an array. sizes: 5000 40 */
#include "bench/forms/form.h"
static double *x, *y;
static void set_up(i64 n) {
  x = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
}
static void sift(double *h, i64 i, i64 n) {
  for (;;) {
    i64 c = 2 * i + 1;
    if (c >= n) return;
    if (c + 1 < n && h[c + 1] > h[c]) c++;
    if (h[i] >= h[c]) return;
    double t = h[i]; h[i] = h[c]; h[c] = t;
    i = c;
  }
}
static void work(i64 n) {
  memcpy(y, x, (size_t)n * 8);
  for (i64 i = n / 2 - 1; i >= 0; i--) sift(y, i, n);
  for (i64 e = n - 1; e > 0; e--) {
    double t = y[0]; y[0] = y[e]; y[e] = t;
    sift(y, 0, e);
  }
}
static double result(i64 n) { double s = 0; CHECK(s, y, n); return s; }
