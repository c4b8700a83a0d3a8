/* limits.c — adds to a picture of u8 and stays below 256. sizes: 300000 33 */
#include "bench/forms/form.h"
static u8 *p, *q;
static void set_up(i64 n) {
  p = ROOM(u8, n), q = ROOM(u8, n);
  for (i64 i = 0; i < n; i++) p[i] = (u8)noise(i, 1, 256);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    const int s = p[i] + 60;
    q[i] = (u8)(s > 255 ? 255 : s);
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, q, n);
  return s;
}
