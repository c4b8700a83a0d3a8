/* setbits.c — how many bits of each byte are set, by sums of neighbours. sizes: 90000 11 */
#include "bench/forms/form.h"
static u8 *p, *q;
static void set_up(i64 n) {
  p = ROOM(u8, n), q = ROOM(u8, n);
  for (i64 i = 0; i < n; i++) p[i] = (u8)noise(i, 1, 256);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    u8 a = (u8)(p[i] - ((p[i] >> 1) & 85));
    a = (u8)((a & 51) + ((a >> 2) & 51));
    q[i] = (u8)((a + (a >> 4)) & 15);
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, q, n);
  return s;
}
