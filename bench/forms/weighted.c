/* weighted.c — sums of f32 weights by group. sizes: 300000 37 */
#include "bench/forms/form.h"
static i32 *g;
static float *w, h[50];
static void set_up(i64 n) {
  g = ROOM(i32, n), w = ROOM(float, n);
  for (i64 i = 0; i < n; i++) g[i] = (i32)noise(i, 1, 50), w[i] = (float)noise(i, 2, 16);
}
static void work(i64 n) {
  memset(h, 0, sizeof h);
  for (i64 i = 0; i < n; i++)
    if (w[i] > 2) h[g[i]] += w[i];
}
static double result(i64 n) {
  (void)n;
  double s = 0;
  CHECK(s, h, 50);
  return s;
}
