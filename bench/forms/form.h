/* form.h — what the peers in C of bench/forms share. A peer has set_up, work and result. It prints the result and the
 * least seconds that work took: NAME SIZE SECONDS. */
#ifndef WEFT_BENCH_FORM_H
#define WEFT_BENCH_FORM_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint8_t u8;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;

static void set_up(i64 n);
static void work(i64 n);
static double result(i64 n);

/* Element i of the numbers below `below` that measure.weft calls noise(n, salt, below). */
static inline i64 noise(i64 i, i64 salt, i64 below) {
  i64 h = (i64)((u64)(i * 31 + salt) * 6364136223846793005u);
  h = (i64)((u64)(h ^ (h >> 32)) * 2862933555777941757u);
  return ((h >> 33) & 0x3fffffff) % below;
}
static inline double uniform(i64 i, i64 salt) { return (double)noise(i, salt, 1000003) / 1000003.0; }

static inline void *room(i64 count, size_t bytes) {
  void *p = aligned_alloc(64, ((size_t)count * bytes + 127) / 64 * 64);
  if (!p) exit(1);
  memset(p, 0, ((size_t)count * bytes + 127) / 64 * 64);
  return p;
}
#define ROOM(type, count) ((type *)room((count), sizeof(type)))

/* The check sum of an array: weights 1 to 7 in turn. */
#define CHECK(sum, p, count) \
  for (i64 i_ = 0; i_ < (count); i_++) sum += (double)(p)[i_] * (double)(i_ % 7 + 1)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int count, char **values) {
  if (count != 3) return 2;
  const i64 n = atoll(values[1]);
  const double limit = atof(values[2]), begin = now();
  void (*volatile run)(i64) = work; /* every call is made */
  double best = 1e9;
  set_up(n);
  do {
    const double t = now();
    run(n);
    const double spent = now() - t;
    if (spent < best) best = spent;
  } while (now() - begin < limit);
  printf("%.17g %.9f\n", result(n), best);
  return 0;
}

#endif
