/* radix.c — whole numbers sorted by counting their bytes. sizes: 50000 50 */
#include "bench/forms/form.h"
static i64 *x, *y, *z;
static void set_up(i64 n) {
  x = ROOM(i64, n), y = ROOM(i64, n), z = ROOM(i64, n);
  for (i64 i = 0; i < n; i++) x[i] = noise(i, 1, 1 << 24);
}
static void work(i64 n) {
  memcpy(y, x, (size_t)n * 8);
  for (i64 shift = 0; shift < 24; shift += 8) {
    i64 c[257] = {0};
    for (i64 i = 0; i < n; i++) c[(y[i] >> shift & 255) + 1]++;
    for (i64 i = 0; i < 256; i++) c[i + 1] += c[i];
    for (i64 i = 0; i < n; i++) z[c[y[i] >> shift & 255]++] = y[i];
    i64 *t = y; y = z; z = t;
  }
}
static double result(i64 n) { double r = 0; CHECK(r, y, n); return r; }
