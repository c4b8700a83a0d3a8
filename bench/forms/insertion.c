/* insertion.c — insertion sort. sizes: 1500 14 */
#include "bench/forms/form.h"
static double *x, *a;
static void set_up(i64 n) {
  x = ROOM(double, n), a = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  memcpy(a, x, (size_t)n * sizeof *a);
  for (i64 i = 1; i < n; i++) {
    const double v = a[i];
    i64 j = i;
    for (; j > 0 && a[j - 1] > v; j--) a[j] = a[j - 1];
    a[j] = v;
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, a, n);
  return s;
}
