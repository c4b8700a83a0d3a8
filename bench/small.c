/* small.c — the loops of bench/small.weft as C: small NAME TRIPS prints a check sum and the least seconds of a call. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double clock_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void slope(const double *y, double *f) {
  f[0] = y[2];
  f[1] = y[3];
  f[2] = -y[0] + 0.1 * y[1];
  f[3] = -y[1] - 0.1 * y[0] * y[0];
}
static double rk4(long n) {
  double y[4] = {1.0, 0.5, 0.0, 0.2}, h = 0.001, k1[4], k2[4], k3[4], k4[4], t[4];
  for (long k = 0; k < n; k++) {
    slope(y, k1);
    for (int i = 0; i < 4; i++) t[i] = y[i] + h / 2 * k1[i];
    slope(t, k2);
    for (int i = 0; i < 4; i++) t[i] = y[i] + h / 2 * k2[i];
    slope(t, k3);
    for (int i = 0; i < 4; i++) t[i] = y[i] + h * k3[i];
    slope(t, k4);
    for (int i = 0; i < 4; i++) y[i] = y[i] + h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
  }
  return y[0] + y[1] + y[2] + y[3];
}

static void product(int m, int k, int n, const double *a, const double *b, double *c) {
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double s = 0;
      for (int p = 0; p < k; p++) s += a[i * k + p] * b[p * n + j];
      c[i * n + j] = s;
    }
}
static void turned(int m, int n, const double *a, double *b) {
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) b[j * m + i] = a[i * n + j];
}
static double kalman(long n) {
  double d = 0.01, F[16] = {1, 0, d, 0, 0, 1, 0, d, 0, 0, 1, 0, 0, 0, 0, 1}, H[8] = {1, 0, 0, 0, 0, 1, 0, 0},
      FT[16], HT[8];
  double x[4] = {0, 0, 1, 1}, P[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, t[16], u[16], y[2],
      S[4], K[8], v[8];
  turned(4, 4, F, FT);
  turned(2, 4, H, HT);
  for (long k = 0; k < n; k++) {
    double z[2] = {0.01 * (double)k, 0.02 * (double)k};
    product(4, 4, 1, F, x, t);
    memcpy(x, t, sizeof x);
    product(4, 4, 4, F, P, t);
    product(4, 4, 4, t, FT, P);
    for (int i = 0; i < 4; i++) P[5 * i] += 1e-4;
    product(2, 4, 1, H, x, y);
    for (int i = 0; i < 2; i++) y[i] = z[i] - y[i];
    product(2, 4, 4, H, P, t);
    product(2, 4, 2, t, HT, S);
    S[0] += 0.25;
    S[3] += 0.25;
    double det = S[0] * S[3] - S[1] * S[2], Si[4] = {S[3] / det, -S[1] / det, -S[2] / det, S[0] / det};
    product(4, 4, 2, P, HT, v);
    product(4, 2, 2, v, Si, K);
    product(4, 2, 1, K, y, t);
    for (int i = 0; i < 4; i++) x[i] += t[i];
    product(4, 2, 4, K, H, t);
    for (int i = 0; i < 16; i++) t[i] = (i % 5 == 0) - t[i];
    product(4, 4, 4, t, P, u);
    memcpy(P, u, sizeof P);
  }
  return x[0] + x[1] + x[2] + x[3] + P[0];
}

static double nbody(long n) {
  double p[5][3] = {{0, 0, 0}, {4.84, -1.16, -0.10}, {8.34, 4.12, -0.4}, {12.89, -15.11, -0.22}, {15.37, -25.9, 0.179}};
  double v[5][3] = {{0, 0, 0}, {0.6, 2.8, -0.02}, {-1.01, 1.82, 0.008}, {1.08, 0.868, -0.01}, {0.979, 0.594, -0.034}};
  double m[5] = {39.47, 0.037, 0.011, 0.0017, 0.002}, s = 0;
  for (long k = 0; k < n; k++) {
    for (int i = 0; i < 5; i++) {
      double a[3] = {0, 0, 0};
      for (int j = 0; j < 5; j++) {
        double d[3], r2 = 1e-9;
        for (int c = 0; c < 3; c++) {
          d[c] = p[j][c] - p[i][c];
          r2 += d[c] * d[c];
        }
        double w = m[j] / (r2 * sqrt(r2));
        for (int c = 0; c < 3; c++) a[c] += w * d[c];
      }
      for (int c = 0; c < 3; c++) v[i][c] += 0.001 * a[c];
    }
    for (int i = 0; i < 5; i++)
      for (int c = 0; c < 3; c++) p[i][c] += 0.001 * v[i][c];
  }
  for (int i = 0; i < 15; i++) s += p[i / 3][i % 3];
  return s;
}

static double perceptron(long n) {
  static double xs[64][16], ys[64];
  double w[16] = {0}, s = 0;
  long wrong = 0;
  for (int i = 0; i < 1024; i++) xs[i / 16][i % 16] = sin(i * 0.11);
  for (int i = 0; i < 64; i++) ys[i] = cos(i * 0.73) + 0.01 > 0 ? 1 : -1;
  for (long k = 0; k < n; k++) {
    long i = k % 64;
    double t = 0;
    for (int j = 0; j < 16; j++) t += w[j] * xs[i][j];
    if (ys[i] * t > 0) continue;
    for (int j = 0; j < 16; j++) w[j] += 0.1 * ys[i] * xs[i][j];
    wrong++;
  }
  for (int j = 0; j < 16; j++) s += w[j];
  return s + (double)wrong;
}

static void philox(uint64_t seed, uint64_t stream, uint64_t block, uint64_t w[2]) {
  uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int r = 0; r < 10; r++) {
    uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
    uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ k0, n2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)b;
    c3 = (uint32_t)a;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  w[0] = c0 | (uint64_t)c1 << 32;
  w[1] = c2 | (uint64_t)c3 << 32;
}
static double draw(uint64_t n) {
  uint64_t key[2], w[2];
  philox(7, 1, n | (uint64_t)1 << 63, key);
  philox(key[0], key[1], 0, w);
  return (double)(w[0] >> 11) * 0x1p-53;
}
static double metropolis(long n) {
  double x = 0, s = 0;
  uint64_t at = 0;
  for (long k = 0; k < n; k++) {
    double y = x + 2 * draw(at++) - 1;
    if (draw(at++) < exp((x * x - y * y) / 2)) x = y;
    s += x * x;
  }
  return s / (double)n;
}

static double recurrent(long n) {
  static double W[64][64], us[1000][64], hs[1000][64];
  double s = 0;
  for (int i = 0; i < 4096; i++) W[i / 64][i % 64] = sin(i * 0.37) * 0.1;
  for (int i = 0; i < 64000; i++) us[i / 64][i % 64] = sin(i * 0.017);
  for (long k = 0; k < n; k++) {
    double h[64] = {0};
    for (int t = 0; t < 1000; t++) {
      for (int i = 0; i < 64; i++) {
        double a = 0;
        for (int j = 0; j < 64; j++) a += W[i][j] * h[j];
        hs[t][i] = tanh(a + us[t][i]);
      }
      memcpy(h, hs[t], sizeof h);
    }
    for (int i = 0; i < 64; i++) s += h[i];
  }
  return s;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    double (*run)(long);
  } all[] = {{"rk4", rk4}, {"kalman", kalman}, {"planets", nbody}, {"perceptron", perceptron},
             {"metropolis", metropolis}, {"recurrent", recurrent}};
  if (argc < 3) return 2;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (strcmp(argv[1], all[i].name) != 0) continue;
    double best = 1e9, r = 0;
    for (int k = 0; k < 5; k++) {
      double t = clock_now();
      r = all[i].run(atol(argv[2]));
      t = clock_now() - t;
      if (t < best) best = t;
    }
    printf("%.17g %.9f\n", r, best);
    return 0;
  }
  return 2;
}
