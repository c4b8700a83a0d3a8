/* counts.c — how often each of 64 numbers occurs. sizes: 300000 37 */
#include "bench/forms/form.h"
static i64 *x, h[64];
static void set_up(i64 n) {
  x = ROOM(i64, n);
  for (i64 i = 0; i < n; i++) x[i] = noise(i, 1, 64);
}
static void work(i64 n) {
  memset(h, 0, sizeof h);
  for (i64 i = 0; i < n; i++) h[x[i]]++;
}
static double result(i64 n) {
  (void)n;
  double s = 0;
  CHECK(s, h, 64);
  return s;
}
