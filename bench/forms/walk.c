/* walk.c — how far the nodes of a graph are from the first, breadth first. sizes: 20000 12 */
#include "bench/forms/form.h"
static i64 *to, *far, *queue;
static void set_up(i64 n) {
  to = ROOM(i64, 4 * n), far = ROOM(i64, n), queue = ROOM(i64, n);
  for (i64 i = 0; i < 4 * n; i++) to[i] = noise(i, 1, n);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) far[i] = -1;
  i64 head = 0, tail = 1;
  queue[0] = far[0] = 0;
  while (head < tail) {
    const i64 u = queue[head++];
    for (i64 e = 4 * u; e < 4 * u + 4; e++)
      if (far[to[e]] < 0) far[to[e]] = far[u] + 1, queue[tail++] = to[e];
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, far, n);
  return s;
}
