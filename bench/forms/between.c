/* between.c — how many i32 lie between two numbers, and their sum. sizes: 300000 31 */
#include "bench/forms/form.h"
static i32 *x;
static i64 c, s;
static void set_up(i64 n) {
  x = ROOM(i32, n);
  for (i64 i = 0; i < n; i++) x[i] = (i32)noise(i, 1, 1000);
}
static void work(i64 n) {
  c = s = 0;
  for (i64 i = 0; i < n; i++)
    if (x[i] >= 250 && x[i] < 700) c++, s += x[i];
}
static double result(i64 n) { return (void)n, (double)(c + s); }
