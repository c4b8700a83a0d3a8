/* collatz.c — the longest of Collatz's sequences. sizes: 8000 50 */
#include "bench/forms/form.h"
static i64 most;
static void set_up(i64 n) { (void)n; }
static void work(i64 n) {
  most = 0;
  for (i64 i = 1; i < n; i++) {
    i64 steps = 0;
    for (i64 k = i; k != 1; steps++) k = k % 2 == 0 ? k / 2 : 3 * k + 1;
    if (steps > most) most = steps;
  }
}
static double result(i64 n) { return (void)n, (double)most; }
