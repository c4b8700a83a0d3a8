/* largest.c — where the largest element is. sizes: 400000 37 */
#include "bench/forms/form.h"
static double *x;
static i64 at;
static void set_up(i64 n) {
  x = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1) + (double)i * 1e-9;
}
static void work(i64 n) {
  at = 0;
  for (i64 i = 1; i < n; i++)
    if (x[i] > x[at]) at = i;
}
static double result(i64 n) { return (void)n, (double)at; }
