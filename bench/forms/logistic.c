/* logistic.c — ten steps of logistic regression with four features. sizes: 2000 12 */
#include "bench/forms/form.h"
static double *x, *y, w[4];
static void set_up(i64 n) {
  x = ROOM(double, 4 * n), y = ROOM(double, n);
  for (i64 i = 0; i < 4 * n; i++) x[i] = uniform(i, 1);
  for (i64 i = 0; i < n; i++) y[i] = (double)noise(i, 2, 2);
}
static void work(i64 n) {
  memset(w, 0, sizeof w);
  for (int t = 0; t < 10; t++) {
    double g[4] = {0};
    for (i64 i = 0; i < n; i++) {
      double z = 0;
      for (int k = 0; k < 4; k++) z += x[4 * i + k] * w[k];
      const double e = 1 / (1 + exp(-z)) - y[i];
      for (int k = 0; k < 4; k++) g[k] += e * x[4 * i + k];
    }
    for (int k = 0; k < 4; k++) w[k] -= 0.5 * g[k] / (double)n;
  }
}
static double result(i64 n) {
  (void)n;
  double s = 0;
  CHECK(s, w, 4);
  return s;
}
