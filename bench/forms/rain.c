/* rain.c — rain held between heights. sizes: 50000 40 */
#include "bench/forms/form.h"
static i64 *h, *l, *r, held;
static void set_up(i64 n) {
  h = ROOM(i64, n), l = ROOM(i64, n), r = ROOM(i64, n);
  for (i64 i = 0; i < n; i++) h[i] = noise(i, 1, 100);
}
static void work(i64 n) {
  held = 0;
  i64 i = 0, j = n - 1, a = 0, b = 0;
  while (i < j) {
    if (h[i] < h[j]) {
      if (h[i] > a) a = h[i]; else held += a - h[i];
      i++;
    } else {
      if (h[j] > b) b = h[j]; else held += b - h[j];
      j--;
    }
  }
}
static double result(i64 n) { (void)n; return (double)held; }
