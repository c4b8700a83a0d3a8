/* statistics.c — the covariances of columns. sizes: 1000 20 */
#include "bench/forms/form.h"
static double *x, mean[16], y[256];
static void set_up(i64 n) {
  x = ROOM(double, n * 16);
  for (i64 i = 0; i < n * 16; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  for (int j = 0; j < 16; j++) {
    mean[j] = 0;
    for (i64 i = 0; i < n; i++) mean[j] += x[i * 16 + j];
    mean[j] /= (double)n;
  }
  for (int a = 0; a < 16; a++)
    for (int b = 0; b < 16; b++) {
      double s = 0;
      for (i64 i = 0; i < n; i++) s += (x[i * 16 + a] - mean[a]) * (x[i * 16 + b] - mean[b]);
      y[a * 16 + b] = s / (double)(n - 1);
    }
}
static double result(i64 n) { (void)n; double r = 0; CHECK(r, y, 256); return r; }
