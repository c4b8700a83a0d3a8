/* drift.c — f32 particles that bounce in a box, twenty steps. sizes: 5000 9 */
#include "bench/forms/form.h"
static float *p, *q, *x, *v;
static void set_up(i64 n) {
  p = ROOM(float, n), q = ROOM(float, n), x = ROOM(float, n), v = ROOM(float, n);
  for (i64 i = 0; i < n; i++) p[i] = (float)noise(i, 1, 1024) / 1024, q[i] = ((float)noise(i, 2, 64) - 32) / 1024;
}
static void work(i64 n) {
  memcpy(x, p, (size_t)n * sizeof *x), memcpy(v, q, (size_t)n * sizeof *v);
  for (int t = 0; t < 20; t++)
    for (i64 i = 0; i < n; i++) {
      x[i] += v[i];
      if (x[i] < 0) x[i] = -x[i], v[i] = -v[i];
      if (x[i] > 1) x[i] = 2 - x[i], v[i] = -v[i];
    }
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, x, n);
  return s;
}
