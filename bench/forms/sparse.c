/* sparse.c — a sparse matrix, by rows, by a vector. sizes: 20000 15 */
#include "bench/forms/form.h"
static i64 *start, *column;
static double *value, *x, *y;
static void set_up(i64 n) {
  start = ROOM(i64, n + 1), column = ROOM(i64, 9 * n), value = ROOM(double, 9 * n);
  x = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n; i++) start[i + 1] = start[i] + noise(i, 3, 9), x[i] = uniform(i, 4);
  for (i64 k = 0; k < start[n]; k++) column[k] = noise(k, 1, n), value[k] = uniform(k, 2);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    double s = 0;
    for (i64 k = start[i]; k < start[i + 1]; k++) s += value[k] * x[column[k]];
    y[i] = s;
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, y, n);
  return s;
}
