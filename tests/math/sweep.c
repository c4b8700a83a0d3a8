/* sweep.c — every f32 argument of the one-operand functions of lang/math.loops, against the f64 function.
 *
 *   build/tests/math            every 1021st argument
 *   build/tests/math --all      all 2^32 of them
 *   build/tests/math --all NAME one function
 *
 * The f64 functions are compared with 113 bits in tests/unit/test_math.c; their error is 2^-27 ulp here. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stdlib/wm.h"

typedef u32 (*Strip)(void *, const void *, const void *, i64);
typedef struct Row {
  const char *name;
  LoopType type;
  u32 arity;
  Strip strip[3]; /* base, AVX2, AVX-512 */
} Row;

#define LT_f32 LT_F32
#define LT_f64 LT_F64
#ifdef __x86_64__
#define STRIPS(name, type) {wm_strip_##name##_##type##_base, wm_strip_##name##_##type##_avx2, wm_strip_##name##_##type##_avx512}
#else
#define STRIPS(name, type) {wm_strip_##name##_##type##_base, NULL, NULL}
#endif
static const Row rows[] = {
#define MATH(name, type, arity) {#name, LT_##type, arity, STRIPS(name, type)},
#define MATH_HELPER(name, type, arity)
#include "math_list.h"
};

static const struct {
  const char *name;
  f64 wide, narrow;
} stated[] = {
#define MATH_ERROR(name, e64, e32) {#name, e64, e32},
#include "math_errors.h"
};

/* Where |result| is below this the error is absolute (the definitions say so). */
static f64 least_of(const char *name) { return strcmp(name, "silu") == 0 || strcmp(name, "gelu") == 0 ? 1e-35 : 0; }

enum { BLOCK = 4096 };

static f64 distance(f32 got, f64 want) {
  if (isnan(want)) return isnan(got) ? 0 : INFINITY;
  f32 near = (f32)want;
  if (isnan(got) || (isinf(near) && isinf(got) && near != got)) return INFINITY;
  if (got == 0 && near == 0 && signbit(got) != signbit(near)) return INFINITY;
  if (isinf(near) || isinf(got)) return near == got || fabs(isinf(got) ? (f64)near : (f64)got) >= 0x1.fffffep127 ? 0 : INFINITY;
  int e;
  (void)frexp(want, &e);
  return fabs((f64)got - want) / ldexp(1, e < -125 ? -149 : e - 24);
}

/* The same for ordinary numbers; NaN for some that are not. */
static inline f64 distance_fast(f32 got, f64 want) {
  u64 bits, scale;
  memcpy(&bits, &want, 8);
  u64 e = bits >> 52 & 0x7FF;
  scale = (2069 - (e < 897 ? 897 : e)) << 52; /* 2^23 over the exponent of the last place's number, at least 2^-126 */
  f64 s;
  memcpy(&s, &scale, 8);
  return fabs((f64)got - want) * s;
}

static bool sweep(const Row *narrow, const Row *wide, f64 bound, u32 stride, u32 level) {
  static f32 x[BLOCK], got[BLOCK];
  static f64 x64[BLOCK], want[BLOCK];
  f64 worst = 0, least = least_of(narrow->name);
  f32 at = 0;
  for (u64 first = 0; first < (u64)1 << 32;) {
    i64 n = 0;
    for (; n < BLOCK && first < (u64)1 << 32; n++, first += stride) {
      u32 bits = (u32)first;
      memcpy(&x[n], &bits, 4);
      x64[n] = (f64)x[n];
    }
    narrow->strip[level](got, x, x, n);
    wide->strip[level](want, x64, x64, n);
    for (i64 i = 0; i < n; i++) {
      if (distance_fast(got[i], want[i]) <= worst && (got[i] != 0 || signbit(got[i]) == signbit(want[i]))) continue;
      if (fabs(want[i]) < least) continue;
      f64 d = distance(got[i], want[i]);
      if (d > worst) {
        worst = d;
        at = x[i];
      }
    }
  }
  bool good = worst <= bound;
  printf("%s math/%s # %.3f ulp at %a, stated are %.2f\n", good ? "ok" : "not ok", narrow->name, worst, (f64)at, bound);
  fflush(stdout);
  return good;
}

int main(int argc, char **argv) {
  u32 stride = 1021, level = 0;
  const char *only = NULL;
  bool good = true;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--all") == 0) stride = 1;
    else only = argv[i];
  }
#ifdef __x86_64__
  if (wm_best() != &wm_base)
    level = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? 2 : 1;
#endif
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].type != LT_F32 || rows[i].arity != 1 || (only && strcmp(only, rows[i].name) != 0)) continue;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
      if (rows[k].type != LT_F64 || strcmp(rows[k].name, rows[i].name) != 0) continue;
      for (size_t s = 0; s < sizeof stated / sizeof *stated; s++)
        if (strcmp(stated[s].name, rows[i].name) == 0) good &= sweep(&rows[i], &rows[k], stated[s].narrow, stride, level);
    }
  }
  return good ? 0 : 1;
}
