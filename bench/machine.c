/* machine.c — what the machine can do, as a peer for bench/run:
 *   machine copy ELEMENTS THREADS     bytes a second, read and written, of copies of f64
 *   machine matmul f64|f32 N ROUNDS   an element of the product and the least seconds: OpenBLAS, with the kernels that fit the processor */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/clock.h"

typedef struct Part {
  char *to, *from;
  size_t bytes;
  int rounds;
  pthread_barrier_t *barrier;
  double best;
} Part;

static void *copy_part(void *ctx) {
  Part *p = ctx;
  for (int i = 0; i < p->rounds; i++) {
    pthread_barrier_wait(p->barrier);
    double begin = seconds();
    memcpy(p->to, p->from, p->bytes);
    pthread_barrier_wait(p->barrier);
    double spent = seconds() - begin;
    if (spent < p->best) p->best = spent;
  }
  return NULL;
}

static void copy(size_t bytes, unsigned threads) {
  enum { MOST = 64 };
  pthread_t ids[MOST];
  Part parts[MOST];
  pthread_barrier_t barrier;
  if (threads > MOST) threads = MOST;
  char *to = memory(bytes, 1), *from = memory(bytes, 1);
  pthread_barrier_init(&barrier, NULL, threads);
  for (unsigned i = 0; i < threads; i++) {
    size_t at = bytes / threads * i;
    parts[i] = (Part){to + at, from + at, bytes / threads, 12, &barrier, 1e9};
    if (i && pthread_create(&ids[i], NULL, copy_part, &parts[i]) != 0) exit(1);
  }
  copy_part(&parts[0]);
  for (unsigned i = 1; i < threads; i++) pthread_join(ids[i], NULL);
  printf("%.0f\n", 2.0 * (double)bytes / parts[0].best);
}

typedef void Gemm(const char *, const char *, const int *, const int *, const int *, const void *, const void *, const int *, const void *, const int *, const void *,
                  void *, const int *);

/* Row-major a and b: their product is that of b and a in OpenBLAS' order. */
static int matmul(int wide, int n, int rounds) {
  void *library = dlopen("libopenblas.so.0", RTLD_NOW);
  Gemm *gemm = library ? (Gemm *)dlsym(library, wide ? "dgemm_" : "sgemm_") : NULL;
  if (!gemm) return fprintf(stderr, "machine: there is no OpenBLAS\n"), 1;
  size_t size = wide ? sizeof(double) : sizeof(float), all = (size_t)n * (size_t)n;
  char *a = memory(all * size, 1), *b = memory(all * size, 1), *c = memory(all * size, 1);
  for (size_t i = 0; i < all; i++) {
    double x = (double)(i % 1000) * 0.001, y = (double)(i % 777) * 0.002;
    if (wide) ((double *)a)[i] = x, ((double *)b)[i] = y;
    else ((float *)a)[i] = (float)x, ((float *)b)[i] = (float)y;
  }
  double one = 1, zero = 0, best = 1e9;
  float onef = 1, zerof = 0;
  for (int i = 0; i < rounds; i++) {
    double begin = seconds();
    gemm("N", "N", &n, &n, &n, wide ? (void *)&one : (void *)&onef, b, &n, a, &n, wide ? (void *)&zero : (void *)&zerof, c, &n);
    double spent = seconds() - begin;
    if (spent < best) best = spent;
  }
  printf("%.9g %.9g\n", wide ? ((double *)c)[all - 1] : (double)((float *)c)[all - 1], best);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "copy") == 0) return copy(8 * (size_t)atoll(argv[2]), (unsigned)atoi(argv[3])), 0;
  if (argc == 5 && strcmp(argv[1], "matmul") == 0) {
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
#endif
    return matmul(strcmp(argv[2], "f64") == 0, atoi(argv[3]), atoi(argv[4]));
  }
  return 2;
}
