/* math.c — strip kernels of the transcendental functions beside gcc's vectorised loops over the C library (libmvec,
 * whose stated error is 4 ulp): nanoseconds an element, in L1, and the ratio. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "stdlib/kernels/wm.h"

enum { N = 1024 };
typedef u32 (*Strip)(void *, const void *, const void *, i64);

static _Alignas(64) f64 x64[N], y64[N], out64[N];
static _Alignas(64) f32 x32[N], y32[N], out32[N];

static f64 now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (f64)t.tv_sec * 1e9 + (f64)t.tv_nsec;
}

#define PEER1(name, c) \
  static void peer_##name##_f64(void) { for (int i = 0; i < N; i++) out64[i] = name(x64[i]); } \
  static void peer_##name##_f32(void) { for (int i = 0; i < N; i++) out32[i] = name##f(x32[i]); }
PEER1(exp, )
PEER1(log, )
PEER1(sin, )
PEER1(cos, )
PEER1(tanh, )
PEER1(erf, )
static void peer_pow_f64(void) { for (int i = 0; i < N; i++) out64[i] = pow(x64[i], y64[i]); }
static void peer_pow_f32(void) { for (int i = 0; i < N; i++) out32[i] = powf(x32[i], y32[i]); }

#ifdef __x86_64__
#define ROW(name, type)                                                                    \
  {#name, sizeof(type), {wm_strip_##name##_##type##_base, wm_strip_##name##_##type##_avx2, \
                         wm_strip_##name##_##type##_avx512}, peer_##name##_##type},
#else
#define ROW(name, type) {#name, sizeof(type), {wm_strip_##name##_##type##_base, NULL, NULL}, peer_##name##_##type},
#endif
static const struct {
  const char *name;
  size_t bytes;
  Strip strip[3];
  void (*peer)(void);
} rows[] = {
  ROW(exp, f64) ROW(exp, f32) ROW(log, f64) ROW(log, f32) ROW(sin, f64) ROW(sin, f32) ROW(cos, f64) ROW(cos, f32)
  ROW(tanh, f64) ROW(tanh, f32) ROW(erf, f64) ROW(erf, f32) ROW(pow, f64) ROW(pow, f32)
};

int main(void) {
  int level = 0;
#ifdef __x86_64__
  if (wm_best() != &wm_base)
    level = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? 2 : 1;
#endif
  for (int i = 0; i < N; i++) {
    x64[i] = 0.01 + 4.0 * i / N;
    y64[i] = 3.0 - 5.0 * i / N;
    x32[i] = (f32)x64[i];
    y32[i] = (f32)y64[i];
  }
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    int wide = rows[r].bytes == 8;
    f64 own = 1e9, peer = 1e9;
    for (int k = 0; k < 400; k++) {
      f64 t = now();
      rows[r].strip[level](wide ? (void *)out64 : out32, wide ? (void *)x64 : x32, wide ? (void *)y64 : y32, N);
      t = (now() - t) / N;
      if (t < own) own = t;
      t = now();
      rows[r].peer();
      t = (now() - t) / N;
      if (t < peer) peer = t;
    }
    printf("%-4s %s %6.2f ns   libmvec %6.2f ns   ratio %.2f\n", rows[r].name, wide ? "f64" : "f32", own, peer,
           own / peer);
  }
  return 0;
}
