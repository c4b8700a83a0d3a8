/* prefix.c — running sums. sizes: 400000 37 */
#include "bench/forms/form.h"
static double *x, *z;
static void set_up(i64 n) {
  x = ROOM(double, n), z = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  double s = 0;
  for (i64 i = 0; i < n; i++) z[i] = s += x[i];
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, z, n);
  return s;
}
