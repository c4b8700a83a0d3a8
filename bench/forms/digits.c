/* digits.c — sums of the digits of many numbers. sizes: 50000 40 */
#include "bench/forms/form.h"
static i64 *a, *y;
static void set_up(i64 n) {
  a = ROOM(i64, n), y = ROOM(i64, n);
  for (i64 i = 0; i < n; i++) a[i] = noise(i, 1, 1000000);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    i64 v = a[i], s = 0;
    while (v > 0) s += v % 10, v /= 10;
    y[i] = s;
  }
}
static double result(i64 n) { double r = 0; CHECK(r, y, n); return r; }
