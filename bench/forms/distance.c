/* distance.c — the edit distance of two sequences. sizes: 700 13 */
#include "bench/forms/form.h"
static i64 *a, *b, *before, *row;
static i64 d;
static void set_up(i64 n) {
  a = ROOM(i64, n), b = ROOM(i64, n), before = ROOM(i64, n + 1), row = ROOM(i64, n + 1);
  for (i64 i = 0; i < n; i++) a[i] = noise(i, 1, 4), b[i] = noise(i, 2, 4);
}
static void work(i64 n) {
  for (i64 j = 0; j <= n; j++) before[j] = j;
  for (i64 i = 1; i <= n; i++) {
    row[0] = i;
    for (i64 j = 1; j <= n; j++) {
      i64 best = before[j - 1] + (a[i - 1] != b[j - 1]);
      if (before[j] + 1 < best) best = before[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
    }
    i64 *t = before;
    before = row, row = t;
  }
  d = before[n];
}
static double result(i64 n) { return (void)n, (double)d; }
