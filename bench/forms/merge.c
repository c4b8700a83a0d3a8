/* merge.c — merges two sorted arrays. sizes: 50000 11 */
#include "bench/forms/form.h"
static double *a, *b, *c;
static void set_up(i64 n) {
  a = ROOM(double, n), b = ROOM(double, n), c = ROOM(double, 2 * n);
  double s = 0, t = 0;
  for (i64 i = 0; i < n; i++) a[i] = s += uniform(i, 1), b[i] = t += uniform(i, 2);
}
static void work(i64 n) {
  i64 i = 0, j = 0;
  for (i64 k = 0; k < 2 * n; k++) {
    if (j >= n || (i < n && a[i] <= b[j])) c[k] = a[i++];
    else c[k] = b[j++];
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, c, 2 * n);
  return s;
}
