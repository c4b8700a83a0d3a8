/* flood.c — steps from a corner through a labyrinth, breadth first. sizes: 150 9 */
#include "bench/forms/form.h"
static i64 *d, *q;
static u8 *wall;
static void set_up(i64 n) {
  d = ROOM(i64, n * n), q = ROOM(i64, n * n), wall = ROOM(u8, n * n);
  for (i64 i = 0; i < n * n; i++) wall[i] = noise(i, 1, 4) == 0;
  wall[0] = 0;
}
static void work(i64 n) {
  for (i64 i = 0; i < n * n; i++) d[i] = -1;
  i64 head = 0, tail = 1;
  q[0] = 0, d[0] = 0;
  static const i64 di[] = {1, -1, 0, 0}, dj[] = {0, 0, 1, -1};
  while (head < tail) {
    i64 p = q[head++], i = p / n, j = p % n;
    for (int k = 0; k < 4; k++) {
      i64 a = i + di[k], b = j + dj[k];
      if (a < 0 || b < 0 || a >= n || b >= n || wall[a * n + b] || d[a * n + b] >= 0) continue;
      d[a * n + b] = d[p] + 1;
      q[tail++] = a * n + b;
    }
  }
}
static double result(i64 n) { double r = 0; CHECK(r, d, n * n); return r; }
