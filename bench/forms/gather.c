/* gather.c — elements in another order, and their inverse order. sizes: 100000 30 */
#include "bench/forms/form.h"
static i64 *p, *q;
static double *x, *y;
static void set_up(i64 n) {
  p = ROOM(i64, n), q = ROOM(i64, n), x = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n; i++) p[i] = i * 7919 % n, x[i] = uniform(i, 1);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) y[i] = x[p[i]];
  for (i64 i = 0; i < n; i++) q[p[i]] = i;
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, y, n);
  for (i64 i = 0; i < n; i++) s += (double)q[i] * (double)((i + n) % 7 + 1);
  return s;
}
