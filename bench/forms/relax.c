/* relax.c — ten rounds of Bellman and Ford over a list of edges. sizes: 20000 20 */
#include "bench/forms/form.h"
static i64 *from, *to;
static double *len, *least;
static void set_up(i64 n) {
  from = ROOM(i64, n), to = ROOM(i64, n), len = ROOM(double, n), least = ROOM(double, n / 4);
  for (i64 i = 0; i < n; i++) from[i] = noise(i, 1, n / 4), to[i] = noise(i, 2, n / 4), len[i] = uniform(i, 3);
}
static void work(i64 n) {
  for (i64 i = 0; i < n / 4; i++) least[i] = 1e9;
  least[0] = 0;
  for (int round = 0; round < 10; round++)
    for (i64 e = 0; e < n; e++)
      if (least[from[e]] + len[e] < least[to[e]]) least[to[e]] = least[from[e]] + len[e];
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, least, n / 4);
  return s;
}
