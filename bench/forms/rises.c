/* rises.c — the largest rise of a price: buy once, sell once later. sizes: 300000 30 */
#include "bench/forms/form.h"
static double *x, most;
static void set_up(i64 n) {
  x = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  double least = x[0];
  most = 0;
  for (i64 i = 1; i < n; i++) {
    if (x[i] - least > most) most = x[i] - least;
    if (x[i] < least) least = x[i];
  }
}
static double result(i64 n) { return (void)n, most; }
