/* common.c — the longest common subsequence of two rows of numbers. sizes: 500 20 */
#include "bench/forms/form.h"
static i64 *a, *b, *t;
static void set_up(i64 n) {
  a = ROOM(i64, n), b = ROOM(i64, n), t = ROOM(i64, (n + 1) * (n + 1));
  for (i64 i = 0; i < n; i++) a[i] = noise(i, 1, 4), b[i] = noise(i, 2, 4);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++)
    for (i64 j = 0; j < n; j++) {
      i64 *p = t + i * (n + 1) + j, *q = p + n + 1;
      q[1] = a[i] == b[j] ? p[0] + 1 : p[1] > q[0] ? p[1] : q[0];
    }
}
static double result(i64 n) { return (double)t[(n + 1) * (n + 1) - 1]; }
