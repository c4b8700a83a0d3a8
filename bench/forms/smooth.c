/* smooth.c — a row of u8 weighted by 1 4 6 4 1. sizes: 90000 11 */
#include "bench/forms/form.h"
static u8 *p, *q;
static void set_up(i64 n) {
  p = ROOM(u8, n), q = ROOM(u8, n);
  for (i64 i = 0; i < n; i++) p[i] = (u8)noise(i, 1, 256);
}
static void work(i64 n) {
  for (i64 i = 0; i < n - 4; i++) q[i] = (u8)((p[i] + 4 * p[i + 1] + 6 * p[i + 2] + 4 * p[i + 3] + p[i + 4]) >> 4);
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, q, n - 4);
  return s;
}
