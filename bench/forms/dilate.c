/* dilate.c — the greatest of three by three pixels of a picture of u8. sizes: 300 7 */
#include "bench/forms/form.h"
static u8 *p, *q;
static void set_up(i64 n) {
  p = ROOM(u8, n * n), q = ROOM(u8, n * n);
  for (i64 i = 0; i < n * n; i++) p[i] = (u8)noise(i, 1, 256);
}
static void work(i64 n) {
  for (i64 y = 1; y < n - 1; y++)
    for (i64 x = 1; x < n - 1; x++) {
      u8 s = 0;
      for (i64 v = -1; v <= 1; v++)
        for (i64 u = -1; u <= 1; u++) s = s > p[(y + v) * n + x + u] ? s : p[(y + v) * n + x + u];
      q[y * n + x] = s;
    }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, q, n * n);
  return s;
}
