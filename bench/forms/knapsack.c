/* knapsack.c — the best value that fits. sizes: 6000 40 */
#include "bench/forms/form.h"
static i64 *best, w[60], v[60];
static void set_up(i64 n) {
  best = ROOM(i64, n + 1);
  for (i64 i = 0; i < 60; i++) w[i] = noise(i, 1, 300) + 1, v[i] = noise(i, 2, 100);
}
static void work(i64 n) {
  memset(best, 0, (size_t)(n + 1) * sizeof *best);
  for (i64 i = 0; i < 60; i++)
    for (i64 c = n; c >= w[i]; c--)
      if (best[c - w[i]] + v[i] > best[c]) best[c] = best[c - w[i]] + v[i];
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, best, n + 1);
  return s;
}
