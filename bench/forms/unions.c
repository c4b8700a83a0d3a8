/* unions.c — sets joined pair by pair: union and find. sizes: 20000 40 */
#include "bench/forms/form.h"
static i64 *a, *b, *up;
static void set_up(i64 n) {
  a = ROOM(i64, n), b = ROOM(i64, n), up = ROOM(i64, n);
  for (i64 i = 0; i < n; i++) a[i] = noise(i, 1, n), b[i] = noise(i, 2, n);
}
static i64 find(i64 i) {
  while (up[i] != i) up[i] = up[up[i]], i = up[i];
  return i;
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) up[i] = i;
  for (i64 k = 0; k < n * 3 / 4; k++) {
    i64 p = find(a[k]), q = find(b[k]);
    if (p != q) up[p] = q;
  }
  for (i64 i = 0; i < n; i++) up[i] = find(i);
}
static double result(i64 n) { double s = 0; CHECK(s, up, n); return s; }
