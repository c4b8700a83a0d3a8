/* coins.c — ways to pay an amount with coins. sizes: 10000 50 */
#include "bench/forms/form.h"
static i64 *ways;
static void set_up(i64 n) { ways = ROOM(i64, n + 1); }
static void work(i64 n) {
  static const i64 coin[] = {1, 2, 5, 10, 20, 50, 100, 200};
  memset(ways, 0, (size_t)(n + 1) * 8);
  ways[0] = 1;
  for (int k = 0; k < 8; k++)
    for (i64 v = coin[k]; v <= n; v++) ways[v] = (ways[v] + ways[v - coin[k]]) % 1000007;
}
static double result(i64 n) { double r = 0; CHECK(r, ways, n + 1); return r; }
