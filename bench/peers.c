/* peers.c — the same programs in C, as a peer for bench/run: peers NAME N (mandelbrot, sieve, sieves, nbody, and
 * the table below) prints the result and seconds.
 * Built with `gcc -O2 -fno-tree-vectorize`, so that one scalar loop is compared with another. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/peers_more.h"
#include "bench/planets.h"

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long mandelbrot(long size, long limit) {
  long total = 0;
  for (long row = 0; row < size; row++) {
    double ci = 2.0 * (double)row / (double)size - 1.0;
    for (long column = 0; column < size; column++) {
      double cr = 2.0 * (double)column / (double)size - 1.5, zr = 0, zi = 0;
      long n = 0;
      while (n < limit && zr * zr + zi * zi <= 4.0) {
        double t = zr * zr - zi * zi + cr;
        zi = 2.0 * zr * zi + ci;
        zr = t;
        n++;
      }
      total += n;
    }
  }
  return total;
}

static long sieve(long n) {
  bool *prime = malloc((size_t)n);
  if (!prime) return -1;
  memset(prime, 1, (size_t)n);
  prime[0] = prime[1] = false;
  for (long i = 2; i < n; i++)
    if (prime[i])
      for (long j = i * i; j < n; j += i) prime[j] = false;
  long count = 0;
  for (long i = 0; i < n; i++) count += prime[i];
  free(prime);
  return count;
}

static void advance(long steps) {
  double dt = 0.01;
  for (long step = 0; step < steps; step++) {
    for (int i = 0; i < 5; i++)
      for (int j = i + 1; j < 5; j++) {
        double dx = x[i][0] - x[j][0], dy = x[i][1] - x[j][1], dz = x[i][2] - x[j][2];
        double d2 = dx * dx + dy * dy + dz * dz, mag = dt / (d2 * sqrt(d2));
        v[i][0] -= dx * m[j] * mag, v[i][1] -= dy * m[j] * mag, v[i][2] -= dz * m[j] * mag;
        v[j][0] += dx * m[i] * mag, v[j][1] += dy * m[i] * mag, v[j][2] += dz * m[i] * mag;
      }
    for (int i = 0; i < 5; i++)
      for (int k = 0; k < 3; k++) x[i][k] += dt * v[i][k];
  }
}

static long queens(long n) { return place(0, 0, 0, 0, n); }

typedef struct Peer {
  const char *name;
  long (*whole)(long n);
  double (*real)(long n);
} Peer;
static const Peer PEERS[] = {{"fib", fib, NULL}, {"fib-calls", fib_calls, NULL}, {"tak", takeuchi, NULL},
                             {"spectral", NULL, spectral}, {"fannkuch", fannkuch, NULL},
  {"queens", queens, NULL}, {"levenshtein", edits, NULL}, {"heapsort", heapsort_, NULL}, {"matmul", NULL, product},
  {"clusters", NULL, kmeans}};

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  long n = atol(argv[2]);
  double t0;
  for (size_t i = 0; i < sizeof PEERS / sizeof *PEERS; i++) {
    if (strcmp(argv[1], PEERS[i].name) != 0) continue;
    t0 = seconds();
    if (PEERS[i].whole) printf("%ld", PEERS[i].whole(n));
    else printf("%.17g", PEERS[i].real(n));
    printf(" %.9f\n", seconds() - t0);
    return 0;
  }
  planets_begin();
  if (strcmp(argv[1], "mandelbrot") == 0) {
    t0 = seconds();
    long r = mandelbrot(n, 50);
    printf("%ld %.9f\n", r, seconds() - t0);
  } else if (strcmp(argv[1], "sieve") == 0) {
    t0 = seconds();
    long r = sieve(n);
    printf("%ld %.9f\n", r, seconds() - t0);
  } else if (strcmp(argv[1], "sieves") == 0) {
    long r = 0;
    t0 = seconds();
    for (long round = 0; round < 20; round++) r += sieve(n - round);
    printf("%ld %.9f\n", r, seconds() - t0);
  } else {
    t0 = seconds();
    advance(n);
    t0 = seconds() - t0;
    printf("%.17g %.9f\n", energy(), t0);
  }
  return 0;
}
