/* arrays.c — the programs of bench/arrays.weft as one fused C loop each: arrays NAME ROUNDS prints the check sum and the least
 * seconds of a call. Built with `gcc -O3 -march=native`, with and without -ffast-math. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 4000000 };

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cdf(double x) { return 0.5 * (1.0 + erf(x * 0.7071067811865476)); }

static __attribute__((noinline)) void black_scholes(double *restrict z, const double *s, const double *k, const double *t, const double *v, long n) {
  for (long i = 0; i < n; i++) {
    double r = 0.02, w = v[i] * sqrt(t[i]), d1 = (log(s[i] / k[i]) + (r + 0.5 * v[i] * v[i]) * t[i]) / w, d2 = d1 - w;
    z[i] = s[i] * cdf(d1) - k[i] * exp(-r * t[i]) * cdf(d2);
  }
}
static __attribute__((noinline)) void triad(double *restrict z, const double *a, const double *b, long n) {
  for (long i = 0; i < n; i++) z[i] = a[i] + 3.0 * b[i];
}
static __attribute__((noinline)) void chain(double *restrict z, const double *x, const double *y, long n) {
  for (long i = 0; i < n; i++) z[i] = ((((x[i] * 1.5 + y[i]) * x[i] - 2.0) * y[i] + x[i]) * 0.25 - y[i]) * x[i] + 1.0;
}
static __attribute__((noinline)) void hypotenuse(double *restrict z, const double *x, const double *y, long n) {
  for (long i = 0; i < n; i++) z[i] = sqrt(x[i] * x[i] + y[i] * y[i]);
}
static __attribute__((noinline)) double squares(const double *x, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += x[i] * x[i];
  return s;
}
static __attribute__((noinline)) void softmax(float *restrict z, const float *x, long rows, long n) {
  for (long r = 0; r < rows; r++, x += n, z += n) {
    float m = x[0], s = 0;
    for (long j = 1; j < n; j++) m = x[j] > m ? x[j] : m;
    for (long j = 0; j < n; j++) s += z[j] = expf(x[j] - m);
    for (long j = 0; j < n; j++) z[j] /= s;
  }
}
static __attribute__((noinline)) void jacobi(double *restrict z, const double *a, long n) {
  for (long i = 1; i < n - 1; i++)
    for (long j = 1; j < n - 1; j++)
      z[(i - 1) * (n - 2) + j - 1] = 0.2 * (a[i * n + j] + a[i * n + j - 1] + a[i * n + j + 1] + a[(i + 1) * n + j] + a[(i - 1) * n + j]);
}
static __attribute__((noinline)) void gelu(float *restrict z, const float *x, long n) {
  for (long i = 0; i < n; i++) z[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}
static __attribute__((noinline)) void columns(double *restrict z, const double *a, long rows, long n) {
  memset(z, 0, sizeof *z * (size_t)n);
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < n; j++) z[j] += a[i * n + j];
}

#define LEAST(call)                    \
  for (int k = 0; k < rounds; k++) {   \
    double t0 = seconds();             \
    call;                              \
    double t = seconds() - t0;         \
    if (t < best) best = t;            \
  }

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  const char *name = argv[1];
  int rounds = atoi(argv[2]);
  double *u = malloc(sizeof *u * N), *w = malloc(sizeof *w * N), *z = malloc(sizeof *z * N), best = 1e9, total = 0;
  float *x = malloc(sizeof *x * 4096 * 1024), *y = malloc(sizeof *y * 4096 * 1024);
  if (!u || !w || !z || !x || !y) return 1;
  for (long i = 0; i < N; i++) u[i] = (double)(i % 1000) * 0.001 + 0.5, w[i] = (double)(i % 777) * 0.002 + 0.25, z[i] = 0;
  long m = N;
  if (strcmp(name, "black-scholes") == 0) {
    LEAST(black_scholes(z, u, w, u, w, N))
  } else if (strcmp(name, "triad") == 0) {
    LEAST(triad(z, u, w, N))
  } else if (strcmp(name, "chain") == 0) {
    LEAST(chain(z, u, w, N))
  } else if (strcmp(name, "hypot") == 0) {
    LEAST(hypotenuse(z, u, w, N))
  } else if (strcmp(name, "squares") == 0) {
    double *big = malloc(sizeof *big * 100000000);
    if (!big) return 1;
    for (long i = 0; i < 100000000; i++) big[i] = (double)(i % 1000) * 0.001;
    LEAST(total = squares(big, 100000000))
    m = 0;
  } else if (strcmp(name, "softmax") == 0) {
    for (long i = 0; i < 4096 * 1024; i++) x[i] = (float)((double)(i % 997) * 0.01), y[i] = 0;
    LEAST(softmax(y, x, 4096, 1024))
    for (long j = 0; j < 1024; j++) total += (double)(y[17 * 1024 + j] * (float)j);
    m = 0;
  } else if (strcmp(name, "jacobi") == 0) {
    LEAST(jacobi(z, u, 2000))
    m = 1998 * 1998;
  } else if (strcmp(name, "gelu") == 0) {
    for (long i = 0; i < N; i++) x[i] = (float)(u[i] - 1.0);
    LEAST(gelu(y, x, N))
    for (long i = 0; i < N; i++) total += (double)y[i];
    m = 0;
  } else {
    LEAST(columns(z, u, 2000, 2000))
    m = 2000;
  }
  for (long i = 0; i < m; i++) total += z[i];
  printf("%.9g %.9f\n", total, best);
  return 0;
}
