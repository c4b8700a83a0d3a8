/* kadane.c — the largest sum of a run of neighbours. sizes: 100000 30 */
#include "bench/forms/form.h"
static double *x, best;
static void set_up(i64 n) {
  x = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1) - 0.5;
}
static void work(i64 n) {
  double s = 0;
  best = -INFINITY;
  for (i64 i = 0; i < n; i++) {
    s = s > 0 ? s + x[i] : x[i];
    if (s > best) best = s;
  }
}
static double result(i64 n) { (void)n; return best; }
