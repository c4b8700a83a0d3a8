/* grey.c — a picture of red, green and blue in grey. sizes: 300 5 */
#include "bench/forms/form.h"
static u8 *p, *g;
static void set_up(i64 n) {
  p = ROOM(u8, 3 * n * n), g = ROOM(u8, n * n);
  for (i64 i = 0; i < 3 * n * n; i++) p[i] = (u8)noise(i, 1, 256);
}
static void work(i64 n) {
  for (i64 i = 0; i < n * n; i++) g[i] = (u8)((77 * p[3 * i] + 150 * p[3 * i + 1] + 29 * p[3 * i + 2]) >> 8);
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, g, n * n);
  return s;
}
