/* increasing.c — the longest rising subsequence. sizes: 2000 30 */
#include "bench/forms/form.h"
static double *x;
static i64 *best, answer;
static void set_up(i64 n) {
  x = ROOM(double, n), best = ROOM(i64, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  answer = 0;
  for (i64 i = 0; i < n; i++) {
    best[i] = 1;
    for (i64 j = 0; j < i; j++)
      if (x[j] < x[i] && best[j] + 1 > best[i]) best[i] = best[j] + 1;
    if (best[i] > answer) answer = best[i];
  }
}
static double result(i64 n) { (void)n; return (double)answer; }
