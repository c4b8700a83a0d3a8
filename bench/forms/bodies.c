/* bodies.c — steps of five bodies that attract each other. sizes: 1000 3 */
#include "bench/forms/form.h"
static double x[5][3], v[5][3], w[5];
static void set_up(i64 n) { (void)n; }
static void work(i64 n) {
  for (int i = 0; i < 5; i++) {
    w[i] = 1 + i;
    for (int k = 0; k < 3; k++) x[i][k] = uniform(3 * i + k, 1), v[i][k] = 0;
  }
  for (i64 t = 0; t < n; t++) {
    for (int i = 0; i < 5; i++)
      for (int j = 0; j < 5; j++) {
        if (i == j) continue;
        double d[3], r = 0.01;
        for (int k = 0; k < 3; k++) d[k] = x[j][k] - x[i][k], r += d[k] * d[k];
        const double f = 1e-4 * w[j] / (r * sqrt(r));
        for (int k = 0; k < 3; k++) v[i][k] += f * d[k];
      }
    for (int i = 0; i < 5; i++)
      for (int k = 0; k < 3; k++) x[i][k] += 0.01 * v[i][k];
  }
}
static double result(i64 n) {
  (void)n;
  double s = 0;
  CHECK(s, &x[0][0], 15);
  return s;
}
