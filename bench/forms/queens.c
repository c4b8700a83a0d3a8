/* queens.c — in how many ways n queens stand on a board. sizes: 8 5 */
#include "bench/forms/form.h"
static i64 ways;
static void set_up(i64 n) { (void)n; }
static i64 place(i64 n, i64 row, i64 columns, i64 left, i64 right) {
  if (row == n) return 1;
  i64 s = 0;
  for (i64 free = ~(columns | left | right) & ((1 << n) - 1); free; free &= free - 1) {
    const i64 bit = free & -free;
    s += place(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1);
  }
  return s;
}
static void work(i64 n) { ways = place(n, 0, 0, 0, 0); }
static double result(i64 n) { return (void)n, (double)ways; }
