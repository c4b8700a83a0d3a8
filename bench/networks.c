/* networks.c — the programs of bench/networks.weft in C, fused by hand: networks NAME ROUNDS prints the check sum
 * and the least seconds of a call. Built with `gcc -O3 -march=native`, with and without -ffast-math. Products work
 * on tiles of TILE columns and four rows, which gcc keeps in registers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* c[m, n] = a[m, k] @ b[k, n], a by its strides (as, ap), b and c by rows; `then` is what is done with a tile's row. */
#define PRODUCT(name, T, TILE, then)                                                                           \
  static __attribute__((noinline)) void name(long m, long n, long k, const T *a, long as, long ap, const T *b, \
                                             T *restrict c, const T *restrict bias) {                          \
    for (long j0 = 0; j0 < n; j0 += TILE) {                                                                    \
      long w = n - j0 < TILE ? n - j0 : TILE;                                                                  \
      for (long i0 = 0; i0 < m; i0 += 4) {                                                                     \
        long h = m - i0 < 4 ? m - i0 : 4;                                                                      \
        T acc[4][TILE] = {{0}};                                                                                \
        if (h == 4 && w == TILE) {                                                                             \
          for (long p = 0; p < k; p++)                                                                         \
            _Pragma("GCC unroll 4") for (long i = 0; i < 4; i++)                                               \
              for (long j = 0; j < TILE; j++) acc[i][j] += a[(i0 + i) * as + p * ap] * b[p * n + j0 + j];      \
        } else {                                                                                               \
          for (long p = 0; p < k; p++)                                                                         \
            for (long i = 0; i < h; i++)                                                                       \
              for (long j = 0; j < w; j++) acc[i][j] += a[(i0 + i) * as + p * ap] * b[p * n + j0 + j];         \
        }                                                                                                      \
        for (long i = 0; i < h; i++)                                                                           \
          for (long j = 0; j < w; j++) {                                                                       \
            T v = acc[i][j] + (bias ? bias[j0 + j] : 0);                                                       \
            c[(i0 + i) * n + j0 + j] = then;                                                                   \
          }                                                                                                    \
      }                                                                                                        \
    }                                                                                                          \
  }
PRODUCT(product_gelu, float, 64, 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v))))
PRODUCT(product_f32, float, 64, v)
PRODUCT(product_tanh, double, 32, tanh(v))
PRODUCT(product_f64, double, 32, v)

static __attribute__((noinline)) void mlp(float *z, float *h, const float *x, const float *w1, const float *b1,
                                          const float *w2, const float *b2) {
  product_gelu(512, 1024, 256, x, 256, 1, w1, h, b1);
  product_f32(512, 256, 1024, h, 1024, 1, w2, z, b2);
}

enum { ROWS = 1797, IN = 64, HIDDEN = 64, OUT = 10 };
typedef struct Net {
  double w1[IN * HIDDEN], b1[HIDDEN], w2[HIDDEN * OUT], b2[OUT];
} Net;

static __attribute__((noinline)) double train(Net *to, const Net *p, const double *x, const double *labels) {
  static double h[ROWS * HIDDEN], dz[ROWS * OUT], dh[ROWS * HIDDEN], w2t[OUT * HIDDEN];
  Net g;
  double total = 0;
  memset(&g, 0, sizeof g);
  product_tanh(ROWS, HIDDEN, IN, x, IN, 1, p->w1, h, p->b1);
  product_f64(ROWS, OUT, HIDDEN, h, HIDDEN, 1, p->w2, dz, p->b2);
  for (long i = 0; i < ROWS; i++) {
    double *z = dz + i * OUT, top = z[0], sum = 0, e[OUT];
    const double *y = labels + i * OUT;
    for (int j = 1; j < OUT; j++) top = z[j] > top ? z[j] : top;
    for (int j = 0; j < OUT; j++) sum += e[j] = exp(z[j] - top);
    double all = log(sum) + top;
    for (int j = 0; j < OUT; j++) {
      total += (z[j] - all) * y[j];
      z[j] = (e[j] / sum - y[j]) / ROWS;
      g.b2[j] += z[j];
    }
  }
  for (int i = 0; i < HIDDEN; i++)
    for (int j = 0; j < OUT; j++) w2t[j * HIDDEN + i] = p->w2[i * OUT + j];
  product_f64(ROWS, HIDDEN, OUT, dz, OUT, 1, w2t, dh, NULL);
  for (long i = 0; i < ROWS; i++)
    for (int j = 0; j < HIDDEN; j++) {
      double v = h[i * HIDDEN + j], d = dh[i * HIDDEN + j] * (1 - v * v);
      dh[i * HIDDEN + j] = d;
      g.b1[j] += d;
    }
  product_f64(HIDDEN, OUT, ROWS, h, 1, HIDDEN, dz, g.w2, NULL);
  product_f64(IN, HIDDEN, ROWS, x, 1, IN, dh, g.w1, NULL);
  const double *from = (const double *)p, *d = (const double *)&g;
  for (size_t i = 0; i < sizeof *to / sizeof(double); i++) ((double *)to)[i] = from[i] - 0.1 * d[i];
  return -total / ROWS;
}

static __attribute__((noinline)) double recurrent(const double *h0, const double *w, const double *xs) {
  double h[64], n[64], all = 0, sum = 0;
  memcpy(h, h0, sizeof h);
  for (long t = 0; t < 1000; t++) {
    for (int j = 0; j < 64; j++) n[j] = xs[t * 64 + j];
    for (int p = 0; p < 64; p++)
      for (int j = 0; j < 64; j++) n[j] += h[p] * w[p * 64 + j];
    for (int j = 0; j < 64; j++) h[j] = tanh(n[j]);
    sum = 0;
    for (int j = 0; j < 64; j++) sum += h[j];
    all += sum;
  }
  return sum + all;
}

static double filled(long i, long seed) { return (double)((i * 7919 + seed * 104729) % 10007) / 10007 - 0.5; }
static double *fill(long n, long seed, double by) {
  double *a = malloc(sizeof *a * (size_t)n);
  for (long i = 0; i < n; i++) a[i] = filled(i, seed) * by;
  return a;
}
static float *fill32(long n, long seed, double by) {
  float *a = malloc(sizeof *a * (size_t)n);
  for (long i = 0; i < n; i++) a[i] = (float)(filled(i, seed) * by);
  return a;
}

#define LEAST(...)                          \
  for (int r = 0; r <= rounds; r++) {       \
    double t = seconds();                   \
    __VA_ARGS__;                            \
    t = seconds() - t;                      \
    if (r && t < best) best = t;            \
  }

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  const char *name = argv[1];
  int rounds = atoi(argv[2]);
  double best = 1e9, total = 0;
  if (strcmp(name, "mlp") == 0) {
    float *x = fill32(512 * 256, 5, 1), *w1 = fill32(256 * 1024, 1, 0.3), *b1 = fill32(1024, 2, 0.3),
    *w2 = fill32(1024 * 256, 3, 0.3),
          *b2 = fill32(256, 4, 0.3), *h = fill32(512 * 1024, 0, 0), *z = fill32(512 * 256, 0, 0);
    LEAST(mlp(z, h, x, w1, b1, w2, b2))
    for (int i = 0; i < 512; i++) total += (double)z[i * 256] * i;
  } else if (strcmp(name, "train") == 0) {
    static Net p, q;
    double *x = fill(ROWS * IN, 5, 1), *labels = calloc(ROWS * OUT, sizeof *labels), l = 0;
    for (int i = 0; i < ROWS; i++) labels[i * OUT + i * 7 % 10] = 1;
    for (int i = 0; i < IN * HIDDEN; i++) p.w1[i] = filled(i, 1) * 0.3;
    for (int i = 0; i < HIDDEN; i++) p.b1[i] = filled(i, 2) * 0.3;
    for (int i = 0; i < HIDDEN * OUT; i++) p.w2[i] = filled(i, 3) * 0.3;
    for (int i = 0; i < OUT; i++) p.b2[i] = filled(i, 4) * 0.3;
    LEAST(l = train(&q, &p, x, labels))
    total = l;
    for (int i = 0; i < IN * HIDDEN; i++) total += q.w1[i] * filled(i, 6);
  } else if (strcmp(name, "recurrent") == 0) {
    double *h = fill(64, 5, 1), *w = fill(64 * 64, 6, 0.2), *xs = fill(64000, 7, 1);
    LEAST(total = recurrent(h, w, xs))
  } else {
    return 2;
  }
  printf("%.9g %.9g\n", total, best);
  return 0;
}
