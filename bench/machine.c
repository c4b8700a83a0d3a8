/* machine.c — what the machine can do, as a peer for bench/run:
 *   machine beside ELEMENTS THREADS COMMAND…   runs the command; for each of its lines that is "copy" it is told the
 *                                              bytes a second, read and written, of copies of f64 made then, the
 *                                              other lines are printed; ends as the command does
 *   machine matmul f64|f32 N ROUNDS            an element of the product and the least seconds: OpenBLAS, with the
 *                                              kernels that fit the processor */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/clock.h"

enum { MOST_THREADS = 64, COPIES = 3 /* of which the fastest counts */ };

typedef struct Part {
  char *to, *from;
  size_t bytes;
  pthread_barrier_t *barrier;
  double best;
} Part;

static void *copy_part(void *ctx) {
  Part *p = ctx;
  for (int i = 0; i < COPIES; i++) {
    pthread_barrier_wait(p->barrier);
    double begin = seconds();
    memcpy(p->to, p->from, p->bytes);
    pthread_barrier_wait(p->barrier);
    double spent = seconds() - begin;
    if (spent < p->best) p->best = spent;
  }
  return NULL;
}

/* Bytes a second. */
static double copy(char *to, char *from, size_t bytes, unsigned threads) {
  pthread_t ids[MOST_THREADS];
  Part parts[MOST_THREADS];
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, threads);
  for (unsigned i = 0; i < threads; i++) {
    size_t at = bytes / threads * i;
    parts[i] = (Part){to + at, from + at, bytes / threads, &barrier, 1e9};
    if (i && pthread_create(&ids[i], NULL, copy_part, &parts[i]) != 0) exit(1);
  }
  copy_part(&parts[0]);
  for (unsigned i = 1; i < threads; i++) pthread_join(ids[i], NULL);
  pthread_barrier_destroy(&barrier);
  return 2.0 * (double)bytes / parts[0].best;
}

static int beside(size_t bytes, unsigned threads, char **command) {
  int out[2], in[2], status;
  char *to = memory(bytes, 1), *from = memory(bytes, 1), line[256];
  if (threads < 1 || threads > MOST_THREADS || pipe(out) != 0 || pipe(in) != 0) return 2;
  signal(SIGPIPE, SIG_IGN);
  pid_t child = fork();
  if (child < 0) return 1;
  if (!child) {
    signal(SIGPIPE, SIG_DFL);
    dup2(in[0], 0);
    dup2(out[1], 1);
    close(in[0]), close(in[1]), close(out[0]), close(out[1]);
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
  }
  close(in[0]), close(out[1]);
  FILE *reads = fdopen(out[0], "r"), *writes = fdopen(in[1], "w");
  if (!reads || !writes) return 1;
  while (fgets(line, sizeof line, reads)) {
    if (strcmp(line, "copy\n") != 0) fputs(line, stdout);
    else fprintf(writes, "%.0f\n", copy(to, from, bytes, threads)), fflush(writes);
  }
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

typedef void Gemm(const char *, const char *, const int *, const int *, const int *, const void *, const void *,
                  const int *, const void *, const int *, const void *, void *, const int *);

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
    gemm("N", "N", &n, &n, &n, wide ? (void *)&one : (void *)&onef, b, &n, a, &n,
         wide ? (void *)&zero : (void *)&zerof, c, &n);
    double spent = seconds() - begin;
    if (spent < best) best = spent;
  }
  printf("%.9g %.9g\n", wide ? ((double *)c)[all - 1] : (double)((float *)c)[all - 1], best);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 4 && strcmp(argv[1], "beside") == 0)
    return beside(8 * (size_t)atoll(argv[2]), (unsigned)atoi(argv[3]), argv + 4);
  if (argc == 5 && strcmp(argv[1], "matmul") == 0) {
#ifdef __x86_64__
    __builtin_cpu_init();
    /* Zen 3 has no AVX-512; each width gets the kernels that are faster here */
    int zen4 = __builtin_cpu_is("amdfam19h");
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
      setenv("OPENBLAS_CORETYPE", zen4 && strcmp(argv[2], "f32") == 0 ? "Haswell" : "SkylakeX", 0);
#endif
    return matmul(strcmp(argv[2], "f64") == 0, atoi(argv[3]), atoi(argv[4]));
  }
  return 2;
}
