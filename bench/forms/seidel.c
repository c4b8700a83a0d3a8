/* seidel.c — sweeps of Gauss and Seidel over a square. sizes: 100 8 */
#include "bench/forms/form.h"
static double *u, *b;
static void set_up(i64 n) {
  u = ROOM(double, n * n), b = ROOM(double, n * n);
  for (i64 i = 0; i < n * n; i++) b[i] = uniform(i, 1);
}
static void work(i64 n) {
  memset(u, 0, (size_t)(n * n) * 8);
  for (i64 t = 0; t < 10; t++)
    for (i64 i = 1; i < n - 1; i++)
      for (i64 j = 1; j < n - 1; j++) {
        double *p = u + i * n + j;
        *p = 0.25 * (p[-n] + p[n] + p[-1] + p[1] + b[i * n + j]);
      }
}
static double result(i64 n) { double s = 0; CHECK(s, u, n * n); return s; }
