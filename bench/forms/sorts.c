/* sorts.c — sorting by hand: the least of the rest again and again. sizes: 1000 30 */
#include "bench/forms/form.h"
static double *x, *y;
static void set_up(i64 n) {
  x = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  memcpy(y, x, (size_t)n * 8);
  for (i64 i = 0; i < n; i++) {
    i64 k = i;
    for (i64 j = i + 1; j < n; j++) if (y[j] < y[k]) k = j;
    double t = y[i]; y[i] = y[k]; y[k] = t;
  }
}
static double result(i64 n) { double r = 0; CHECK(r, y, n); return r; }
