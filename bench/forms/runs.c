/* runs.c — lengths of runs of equal numbers. sizes: 100000 33 */
#include "bench/forms/form.h"
static i64 *x, *length, count;
static void set_up(i64 n) {
  x = ROOM(i64, n), length = ROOM(i64, n);
  for (i64 i = 0; i < n; i++) x[i] = noise(i, 1, 3);
}
static void work(i64 n) {
  count = 0;
  length[0] = 1;
  for (i64 i = 1; i < n; i++) {
    if (x[i] == x[i - 1]) length[count]++;
    else length[++count] = 1;
  }
  count++;
}
static double result(i64 n) {
  (void)n;
  double s = 0;
  CHECK(s, length, count);
  return s;
}
