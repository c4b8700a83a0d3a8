/* dice.c — pi by numbers of a linear congruential generator. sizes: 200000 50 */
#include "bench/forms/form.h"
static double pi;
static void set_up(i64 n) { (void)n; }
static void work(i64 n) {
  i64 s = 42, hits = 0;
  for (i64 i = 0; i < n; i++) {
    s = (s * 1103515245 + 12345) % 2147483648;
    const double x = (double)s / 2147483648.0;
    s = (s * 1103515245 + 12345) % 2147483648;
    const double y = (double)s / 2147483648.0;
    if (x * x + y * y < 1) hits++;
  }
  pi = 4.0 * (double)hits / (double)n;
}
static double result(i64 n) { return (void)n, pi; }
