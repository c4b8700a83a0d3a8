/* divisors.c — the sum of the greatest common divisors of all pairs. sizes: 150 9 */
#include "bench/forms/form.h"
static i64 s;
static void set_up(i64 n) { (void)n; }
static void work(i64 n) {
  s = 0;
  for (i64 i = 1; i <= n; i++)
    for (i64 j = 1; j <= n; j++) {
      i64 a = i, b = j;
      while (b) {
        const i64 r = a % b;
        a = b, b = r;
      }
      s += a;
    }
}
static double result(i64 n) { return (void)n, (double)s; }
