/* shifts.c — the sum of numbers of a 64-bit xorshift generator. sizes: 300000 40 */
#include "bench/forms/form.h"
static u64 sum;
static void set_up(i64 n) { (void)n; }
static void work(i64 n) {
  u64 s = 88172645463325252u;
  sum = 0;
  for (i64 i = 0; i < n; i++) {
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    sum += s >> 40;
  }
}
static double result(i64 n) { return (void)n, (double)sum; }
