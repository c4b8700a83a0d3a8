/* rank.c — ranks of pages: links followed again and again. sizes: 2000 30 */
#include "bench/forms/form.h"
static i64 *from, *to, *out;
static double *r, *next;
static void set_up(i64 n) {
  from = ROOM(i64, 8 * n), to = ROOM(i64, 8 * n), out = ROOM(i64, n), r = ROOM(double, n), next = ROOM(double, n);
  for (i64 i = 0; i < 8 * n; i++) from[i] = noise(i, 1, n), to[i] = noise(i, 2, n), out[from[i]]++;
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) r[i] = 1 / (double)n;
  for (int t = 0; t < 10; t++) {
    for (i64 i = 0; i < n; i++) next[i] = 0.15 / (double)n;
    for (i64 e = 0; e < 8 * n; e++) next[to[e]] += 0.85 * r[from[e]] / (double)out[from[e]];
    double *s = r; r = next; next = s;
  }
}
static double result(i64 n) { double s = 0; CHECK(s, r, n); return s; }
