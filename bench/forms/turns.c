/* turns.c — products of many matrices of three by three. sizes: 10000 6 */
#include "bench/forms/form.h"
static double *a, *b, *c;
static void set_up(i64 n) {
  a = ROOM(double, 9 * n), b = ROOM(double, 9 * n), c = ROOM(double, 9 * n);
  for (i64 i = 0; i < 9 * n; i++) a[i] = uniform(i, 1), b[i] = uniform(i, 2);
}
static void work(i64 n) {
  for (i64 m = 0; m < 9 * n; m += 9)
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) {
        double s = 0;
        for (int k = 0; k < 3; k++) s += a[m + 3 * i + k] * b[m + 3 * k + j];
        c[m + 3 * i + j] = s;
      }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, c, 9 * n);
  return s;
}
