/* curve.c — the curve of contrast of a picture of u8, by a table. sizes: 200000 33 */
#include "bench/forms/form.h"
static u8 *p, *q, table[256];
static void set_up(i64 n) {
  p = ROOM(u8, n), q = ROOM(u8, n);
  for (i64 i = 0; i < n; i++) p[i] = (u8)noise(i, 1, 256);
}
static void work(i64 n) {
  for (int i = 0; i < 256; i++) table[i] = (u8)(i * i / 255);
  for (i64 i = 0; i < n; i++) q[i] = table[p[i]];
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, q, n);
  return s;
}
