/* search.c — where numbers stand in a sorted array. sizes: 20000 17 */
#include "bench/forms/form.h"
static double *a, *x;
static i64 *at;
static void set_up(i64 n) {
  a = ROOM(double, n), x = ROOM(double, n), at = ROOM(i64, n);
  for (i64 i = 0; i < n; i++) a[i] = (double)i / (double)n, x[i] = uniform(i, 1);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    i64 low = 0, high = n;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if (a[middle] < x[i]) low = middle + 1;
      else high = middle;
    }
    at[i] = low;
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, at, n);
  return s;
}
