/* lorenz.c — Lorenz' equations by the method of Runge and Kutta. sizes: 5000 20 */
#include "bench/forms/form.h"
static double *y;
static void set_up(i64 n) { y = ROOM(double, 3 * n); }
static void slope(const double *p, double *d) {
  d[0] = 10 * (p[1] - p[0]), d[1] = p[0] * (28 - p[2]) - p[1], d[2] = p[0] * p[1] - 8.0 / 3 * p[2];
}
static void work(i64 n) {
  double p[3] = {1, 1, 1}, a[3], b[3], c[3], d[3], q[3], h = 0.001;
  for (i64 i = 0; i < n; i++) {
    slope(p, a);
    for (int k = 0; k < 3; k++) q[k] = p[k] + h / 2 * a[k];
    slope(q, b);
    for (int k = 0; k < 3; k++) q[k] = p[k] + h / 2 * b[k];
    slope(q, c);
    for (int k = 0; k < 3; k++) q[k] = p[k] + h * c[k];
    slope(q, d);
    for (int k = 0; k < 3; k++) y[3 * i + k] = p[k] += h / 6 * (a[k] + 2 * b[k] + 2 * c[k] + d[k]);
  }
}
static double result(i64 n) { double r = 0; CHECK(r, y, 3 * n); return r; }
