/* blend.c — two pictures of u8 mixed by a third, which says how much of the first. sizes: 90000 11 */
#include "bench/forms/form.h"
static u8 *a, *b, *m, *q;
static void set_up(i64 n) {
  a = ROOM(u8, n), b = ROOM(u8, n), m = ROOM(u8, n), q = ROOM(u8, n);
  for (i64 i = 0; i < n; i++)
    a[i] = (u8)noise(i, 1, 256), b[i] = (u8)noise(i, 2, 256), m[i] = (u8)noise(i, 3, 256);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) q[i] = (u8)((a[i] * m[i] + b[i] * (255 - m[i]) + 127) / 255);
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, q, n);
  return s;
}
