/* pointers.c — pairs of sorted numbers whose sum is below a bound, by two pointers. sizes: 100000 30 */
#include "bench/forms/form.h"
static double *x;
static i64 found;
static void set_up(i64 n) {
  x = ROOM(double, n);
  double s = 0;
  for (i64 i = 0; i < n; i++) x[i] = s += uniform(i, 1);
}
static void work(i64 n) {
  found = 0;
  double bound = x[n / 2];
  i64 i = 0, j = n - 1;
  while (i < j) {
    if (x[i] + x[j] < bound) found += j - i, i++;
    else j--;
  }
}
static double result(i64 n) { (void)n; return (double)found; }
