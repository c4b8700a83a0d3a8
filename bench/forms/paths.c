/* paths.c — shortest paths between all pairs. sizes: 90 6 */
#include "bench/forms/form.h"
static i64 *a, *d;
static void set_up(i64 n) {
  a = ROOM(i64, n * n), d = ROOM(i64, n * n);
  for (i64 i = 0; i < n * n; i++) a[i] = noise(i, 1, 1000) + 1;
}
static void work(i64 n) {
  memcpy(d, a, (size_t)(n * n) * sizeof *d);
  for (i64 k = 0; k < n; k++)
    for (i64 i = 0; i < n; i++)
      for (i64 j = 0; j < n; j++)
        if (d[i * n + k] + d[k * n + j] < d[i * n + j]) d[i * n + j] = d[i * n + k] + d[k * n + j];
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, d, n * n);
  return s;
}
