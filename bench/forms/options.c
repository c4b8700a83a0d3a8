/* options.c — prices of options by the formula of Black and Scholes. sizes: 10000 30 */
#include "bench/forms/form.h"
static double *s, *k, *t, *y;
static void set_up(i64 n) {
  s = ROOM(double, n), k = ROOM(double, n), t = ROOM(double, n), y = ROOM(double, n);
  for (i64 i = 0; i < n; i++) s[i] = 50 + 50 * uniform(i, 1), k[i] = 50 + 50 * uniform(i, 2);
  for (i64 i = 0; i < n; i++) t[i] = 0.1 + uniform(i, 3);
}
static double below(double x) { return 0.5 * (1 + erf(x / sqrt(2.0))); }
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) {
    double v = 0.3 * sqrt(t[i]), a = (log(s[i] / k[i]) + (0.02 + 0.045) * t[i]) / v;
    y[i] = s[i] * below(a) - k[i] * exp(-0.02 * t[i]) * below(a - v);
  }
}
static double result(i64 n) { double r = 0; CHECK(r, y, n); return r; }
