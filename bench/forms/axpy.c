/* axpy.c — a vector plus a multiple of another, in place. sizes: 400000 37 */
#include "bench/forms/form.h"
static double *x, *y, *z;
static void set_up(i64 n) {
  x = ROOM(double, n), y = ROOM(double, n), z = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1), y[i] = uniform(i, 2);
}
static void work(i64 n) {
  memcpy(z, y, (size_t)n * sizeof *z);
  for (i64 i = 0; i < n; i++) z[i] += 2.5 * x[i];
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, z, n);
  return s;
}
