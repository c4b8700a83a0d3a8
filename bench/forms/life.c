/* life.c — ten steps of Conway's life on a torus. sizes: 100 8 */
#include "bench/forms/form.h"
static i64 *p, *g, *h;
static void set_up(i64 n) {
  p = ROOM(i64, n * n), g = ROOM(i64, n * n), h = ROOM(i64, n * n);
  for (i64 i = 0; i < n * n; i++) p[i] = noise(i, 1, 2);
}
static void work(i64 n) {
  memcpy(g, p, (size_t)(n * n) * sizeof *g);
  for (int t = 0; t < 10; t++) {
    for (i64 i = 0; i < n; i++)
      for (i64 j = 0; j < n; j++) {
        i64 s = 0;
        for (i64 a = -1; a <= 1; a++)
          for (i64 b = -1; b <= 1; b++)
            if (a || b) s += g[(i + a + n) % n * n + (j + b + n) % n];
        h[i * n + j] = s == 3 || (s == 2 && g[i * n + j]);
      }
    i64 *w = g;
    g = h, h = w;
  }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, g, n * n);
  return s;
}
