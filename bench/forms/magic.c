/* magic.c — random numbers by shifts (xorshift), and points in a circle. sizes: 100000 50 */
#include "bench/forms/form.h"
static double share;
static void set_up(i64 n) { (void)n; }
static void work(i64 n) {
  u64 s = 88172645463325252u;
  i64 in = 0;
  for (i64 i = 0; i < n; i++) {
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    double x = (double)(s >> 40) / 16777216;
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    double y = (double)(s >> 40) / 16777216;
    in += x * x + y * y < 1;
  }
  share = 4 * (double)in / (double)n;
}
static double result(i64 n) { (void)n; return share; }
