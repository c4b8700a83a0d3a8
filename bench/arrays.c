/* arrays.c — the programs of bench/arrays.weft as one fused C loop each: arrays NAME ROUNDS prints the check sum
 * and the least seconds of a call. Built with `gcc -O3 -march=native`, with and without -ffast-math. */
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

static __attribute__((noinline)) void black_scholes(double *restrict z, const double *s, const double *k,
                                                    const double *t, const double *v, long n) {
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
      z[(i - 1) * (n - 2) + j - 1] =
          0.2 * (a[i * n + j] + a[i * n + j - 1] + a[i * n + j + 1] + a[(i + 1) * n + j] + a[(i - 1) * n + j]);
}
static __attribute__((noinline)) void gelu(float *restrict z, const float *x, long n) {
  for (long i = 0; i < n; i++) z[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}
static __attribute__((noinline)) void columns(double *restrict z, const double *a, long rows, long n) {
  memset(z, 0, sizeof *z * (size_t)n);
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < n; j++) z[j] += a[i * n + j];
}

/* Least and greatest, sum and sum of squares of one read. */
static __attribute__((noinline)) double moments(const double *x, long n) {
  double s = 0, q = 0, top = x[0];
  for (long i = 0; i < n; i++) s += x[i], q += x[i] * x[i], top = x[i] > top ? x[i] : top;
  return s + q + top;
}
static __attribute__((noinline)) double correlation(const double *x, const double *y, long n) {
  double sx = 0, sy = 0, xy = 0, xx = 0, yy = 0;
  for (long i = 0; i < n; i++) sx += x[i], sy += y[i];
  sx /= (double)n, sy /= (double)n;
  for (long i = 0; i < n; i++) {
    double a = x[i] - sx, b = y[i] - sy;
    xy += a * b, xx += a * a, yy += b * b;
  }
  return xy / sqrt(xx * yy);
}
static __attribute__((noinline)) void layer_norm(float *restrict z, const float *x, const float *gain,
                                                 const float *bias, long rows, long n) {
  for (long r = 0; r < rows; r++, x += n, z += n) {
    float s = 0, q = 0;
    for (long j = 0; j < n; j++) s += x[j];
    s /= (float)n;
    for (long j = 0; j < n; j++) q += (x[j] - s) * (x[j] - s);
    float scale = 1 / sqrtf(q / (float)n + 1e-5f);
    for (long j = 0; j < n; j++) z[j] = (x[j] - s) * scale * gain[j] + bias[j];
  }
}
enum { POINTS = 1000000, K = 16, D = 16 };
static __attribute__((noinline)) void kmeans(double *restrict z, const double *x, const double *c) {
  double sums[K][D] = {{0}}, counts[K] = {0}, t[D][K];
  for (long k = 0; k < K; k++)
    for (long d = 0; d < D; d++) t[d][k] = c[k * D + d];
  for (long i = 0; i < POINTS; i++, x += D) {
    double distance[K] = {0};
    for (long d = 0; d < D; d++)
      for (long k = 0; k < K; k++) distance[k] += (x[d] - t[d][k]) * (x[d] - t[d][k]);
    long best = 0;
    for (long k = 1; k < K; k++) best = distance[k] < distance[best] ? k : best;
    for (long d = 0; d < D; d++) sums[best][d] += x[d];
    counts[best]++;
  }
  for (long k = 0; k < K; k++)
    for (long d = 0; d < D; d++) z[k * D + d] = sums[k][d] / (counts[k] > 1 ? counts[k] : 1);
}
static __attribute__((noinline)) void histogram(double *restrict z, const double *x, long n, long bins) {
  long counts[4][128] = {{0}};
  for (long i = 0; i < n; i++) counts[i & 3][(long)(x[i] * 32)]++;
  for (long b = 0; b < bins; b++) z[b] = (double)(counts[0][b] + counts[1][b] + counts[2][b] + counts[3][b]);
}
static __attribute__((noinline)) void running(double *restrict z, const double *x, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) z[i] = s += x[i];
}

/* Stencils on a torus, the borders by hand; row by row what goes down columns. */
static __attribute__((noinline)) void heat(double *restrict z, const double *a, long n) {
  for (long i = 0; i < n; i++, z += n) {
    const double *u = a + (i ? i - 1 : n - 1) * n, *c = a + i * n, *d = a + (i + 1 < n ? i + 1 : 0) * n;
    for (long j = 1; j < n - 1; j++) z[j] = c[j] + 0.1 * (u[j] + d[j] + c[j - 1] + c[j + 1] - 4 * c[j]);
    z[0] = c[0] + 0.1 * (u[0] + d[0] + c[n - 1] + c[1] - 4 * c[0]);
    z[n - 1] = c[n - 1] + 0.1 * (u[n - 1] + d[n - 1] + c[n - 2] + c[0] - 4 * c[n - 1]);
  }
}
static int lives(const int *u, const int *c, const int *d, long a, long j, long b) {
  int n = u[a] + u[j] + u[b] + c[a] + c[b] + d[a] + d[j] + d[b];
  return (n == 3) | ((c[j] == 1) & (n == 2));
}
static __attribute__((noinline)) void life(int *restrict z, const int *g, long n) {
  for (long i = 0; i < n; i++, z += n) {
    const int *u = g + (i ? i - 1 : n - 1) * n, *c = g + i * n, *d = g + (i + 1 < n ? i + 1 : 0) * n;
    for (long j = 1; j < n - 1; j++) z[j] = lives(u, c, d, j - 1, j, j + 1);
    z[0] = lives(u, c, d, n - 1, 0, 1);
    z[n - 1] = lives(u, c, d, n - 2, n - 1, 0);
  }
}
static __attribute__((noinline)) void places(long *restrict z, double *restrict most, const double *a, long n) {
  for (long j = 0; j < n; j++) z[j] = 0, most[j] = a[j] * a[j];
  for (long i = 1; i < n; i++)
    for (long j = 0; j < n; j++) {
      double x = a[i * n + j] * a[i * n + j];
      long more = x > most[j];
      most[j] = more ? x : most[j], z[j] = more ? i : z[j];
    }
}
static __attribute__((noinline)) void counts_of_columns(long *restrict z, const double *a, long n) {
  memset(z, 0, sizeof *z * (size_t)n);
  for (long i = 0; i < n; i++)
    for (long j = 0; j < n; j++) z[j] += a[i * n + j] * a[i * n + j] > 1;
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
  for (long i = 0; i < N; i++)
    u[i] = (double)(i % 1000) * 0.001 + 0.5, w[i] = (double)(i % 777) * 0.002 + 0.25, z[i] = 0;
  long m = N;
  if (strcmp(name, "black-scholes") == 0) {
    LEAST(black_scholes(z, u, w, u, w, N))
  } else if (strcmp(name, "triad") == 0) {
    LEAST(triad(z, u, w, N))
  } else if (strcmp(name, "triad-large") == 0 || strcmp(name, "triad-fresh") == 0) {
    m = 50000000;
    u = realloc(u, sizeof *u * m), w = realloc(w, sizeof *w * m), z = realloc(z, sizeof *z * m);
    if (!u || !w || !z) return 1;
    for (long i = 0; i < m; i++) u[i] = (double)(i % 1000) * 0.001, w[i] = (double)(i % 777) * 0.002, z[i] = 0;
    if (strcmp(name, "triad-large") == 0) LEAST(triad(z, u, w, m))
    else LEAST(double *fresh = malloc(sizeof *fresh * m); triad(fresh, u, w, m); total += fresh[k]; free(fresh))
    m = 0;
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
  } else if (strcmp(name, "moments") == 0) {
    LEAST(total = moments(u, N))
    m = 0;
  } else if (strcmp(name, "correlation") == 0) {
    LEAST(total = correlation(u, w, N))
    m = 0;
  } else if (strcmp(name, "layer-norm") == 0) {
    float gain[1024], bias[1024];
    for (long j = 0; j < 1024; j++) gain[j] = (float)j * 0.001f + 0.5f, bias[j] = (float)j * 0.01f;
    for (long i = 0; i < 4096 * 1024; i++) x[i] = (float)((double)(i % 997) * 0.01), y[i] = 0;
    LEAST(layer_norm(y, x, gain, bias, 4096, 1024))
    for (long j = 0; j < 1024; j++) total += (double)(y[17 * 1024 + j] * (float)j);
    m = 0;
  } else if (strcmp(name, "kmeans") == 0) {
    double *points = malloc(sizeof *points * POINTS * D);
    if (!points) return 1;
    for (long i = 0; i < POINTS * D; i++) points[i] = (double)(i * 7919 % 10007) * 0.001;
    LEAST(kmeans(z, points, points))
    m = K * D;
  } else if (strcmp(name, "histogram") == 0) {
    LEAST(histogram(z, u, N, 64))
    for (long i = 0; i < 64; i++) z[i] *= (double)i;
    m = 64;
  } else if (strcmp(name, "heat") == 0) {
    LEAST(heat(z, u, 2000))
  } else if (strcmp(name, "life") == 0) {
    int *g = (int *)x, *h = (int *)y;
    for (long i = 0; i < N; i++) g[i] = i * 7919 % 10007 % 3 == 0, h[i] = 0;
    LEAST(life(h, g, 2000))
    for (long i = 0; i < N; i++) total += h[i];
    m = 0;
  } else if (strcmp(name, "argmax") == 0 || strcmp(name, "count") == 0) {
    long *at = (long *)y;
    if (name[0] == 'a') LEAST(places(at, z, w, 2000))
    else LEAST(counts_of_columns(at, w, 2000))
    for (long i = 0; i < 2000; i++) total += (double)at[i];
    m = 0;
  } else if (strcmp(name, "cumsum") == 0) {
    LEAST(running(z, u, N))
    m = N;
  } else {
    LEAST(columns(z, u, 2000, 2000))
    m = 2000;
  }
  for (long i = 0; i < m; i++) total += z[i];
  printf("%.9g %.9f\n", total, best);
  return 0;
}
