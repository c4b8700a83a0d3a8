/* test_fft.c — Fourier transforms of plain buffers, in f64 and f32, against the sum that defines them in long double:
 * every length up to 300, primes, powers, long ones, several rows, both signs, real rows; memory that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "stdlib/fft/plan.h"
#include "tests/unit/memory.h"

static bool goes_on(void *ctx) { return ctx != NULL; }
static const FftLook never = {goes_on, NULL};

static u64 noise_state = 1;
static f64 noise(void) {
  noise_state = noise_state * 6364136223846793005u + 1442695040888963407u;
  return (f64)(noise_state >> 11) * 0x1p-52 - 1;
}

static f64 get(const void *x, bool single, i64 i) { return single ? (f64)((const f32 *)x)[i] : ((const f64 *)x)[i]; }
static void set(void *x, bool single, i64 i, f64 v) {
  if (single) ((f32 *)x)[i] = (f32)v;
  else ((f64 *)x)[i] = v;
}

/* cos and sin of the n-th parts of the circle */
static long double *circle(i64 n) {
  long double *out = malloc(2 * (size_t)n * sizeof *out), whole = 2 * acosl(-1.0L);
  for (i64 e = 0; e < n; e++) out[2 * e] = cosl(whole * e / n), out[2 * e + 1] = sinl(whole * e / n);
  return out;
}

/* Of item k of the transform of x: the sum that defines it. */
static void defined(const long double *roots, const void *x, bool single, i64 n, i64 k, bool inverse, long double *re,
                    long double *im) {
  *re = *im = 0;
  for (i64 j = 0; j < n; j++) {
    i64 e = (i64)((unsigned __int128)j * (u64)k % (u64)n);
    long double c = roots[2 * e], s = inverse ? roots[2 * e + 1] : -roots[2 * e + 1];
    long double a = get(x, single, 2 * j), b = get(x, single, 2 * j + 1);
    *re += a * c - b * s;
    *im += a * s + b * c;
  }
}

/* The largest distance of `checked` items of each row from their definition, by the norm of the row, as a multiple of
 * the float's precision. */
static f64 distance(const void *x, const void *y, bool single, i64 n, i64 rows, bool inverse, f64 scale, i64 checked) {
  f64 worst = 0, eps = single ? 0x1p-24 : 0x1p-53;
  size_t row = 2 * (size_t)n * (single ? sizeof(f32) : sizeof(f64));
  long double *roots = circle(n);
  for (i64 r = 0; r < rows; r++) {
    const char *from = (const char *)x + (size_t)r * row, *to = (const char *)y + (size_t)r * row;
    f64 norm = 0;
    for (i64 j = 0; j < 2 * n; j++) norm += get(from, single, j) * get(from, single, j);
    norm = sqrt(norm) * scale;
    for (i64 c = 0; c < checked; c++) {
      i64 k = checked == n ? c : (i64)((u64)c * 2654435761u % (u64)n);
      long double re, im;
      defined(roots, from, single, n, k, inverse, &re, &im);
      f64 d = (f64)hypotl(re * scale - get(to, single, 2 * k), im * scale - get(to, single, 2 * k + 1));
      if (!(d <= worst * eps * norm)) worst = d / (eps * norm);
    }
  }
  free(roots);
  return worst;
}

static void check(i64 n, i64 rows, bool single, bool inverse, i64 checked) {
  size_t bytes = single ? sizeof(f32) : sizeof(f64), all = (size_t)rows * 2 * (size_t)n * bytes;
  FftPlan *p = fft_plan_new(allocator_system(), n, single, &never);
  assert_non_null(p);
  void *x = malloc(all), *y = malloc(all), *work = malloc((size_t)p->work * bytes);
  for (i64 j = 0; j < rows * 2 * n; j++) set(x, single, j, noise());
  f64 scale = inverse ? 1.0 / (f64)n : 1;
  fft_kernels(single)->rows(p, x, n, y, n, rows, inverse, scale, work, &never);
  f64 far = distance(x, y, single, n, rows, inverse, scale, checked), most = 4 + 2 * log2((f64)n);
  if (!(far <= most))
    fail_msg("%lld items, %lld rows, f%d: off by %g", (long long)n, (long long)rows, single ? 32 : 64, far);
  fft_kernels(single)->rows(p, x, n, x, n, rows, inverse, scale, work, &never); /* in place */
  assert_memory_equal(x, y, all);
  free(x), free(y), free(work);
  fft_plan_free(allocator_system(), p, single);
}

static void every_short_length(void **state) {
  (void)state;
  for (i64 n = 1; n <= 300; n++)
    for (u32 way = 0; way < 4; way++) check(n, n <= 70 ? 1 + n % 16 : 1, way & 1, way >> 1, n <= 130 ? n : 17);
}

static void long_lengths(void **state) {
  (void)state;
  static const i64 lengths[] = {509,  512,  513,  521,  961,  1000, 1024,  1025,  1031,  2048,  2187,  3125,   3844,
                                4096, 4099, 6561, 7919, 8192, 9973, 10007, 16807, 29791, 30030, 65536, 65537, 100003};
  for (u32 i = 0; i < COUNT_OF(lengths); i++)
    for (u32 way = 0; way < 4; way++) check(lengths[i], 1 + i % 3, way & 1, way >> 1, 6);
  check(1 << 20, 1, false, false, 2);
  check(1000003, 1, false, true, 2);
}

/* The bits of a row do not depend on the rows beside it, nor on the build of the kernels. */
static void rows_side_by_side(void **state) {
  (void)state;
  for (i64 n = 1; n <= 1200; n = n * 5 / 4 + 1)
    for (u32 single = 0; single < 2; single++) {
      size_t bytes = single ? sizeof(f32) : sizeof(f64), row = 2 * (size_t)n * bytes;
      FftPlan *p = fft_plan_new(allocator_system(), n, single, &never);
      char *x = malloc(FFT_ROWS * row), *y = malloc(FFT_ROWS * row), *z = malloc(row);
      void *work = malloc((size_t)p->work * bytes);
      for (i64 j = 0; j < FFT_ROWS * 2 * n; j++) set(x, single, j, noise());
      fft_kernels(single)->rows(p, x, n, y, n, FFT_ROWS, false, 1, work, &never);
      const FftKernels *base = single ? &fft_f32_base : &fft_f64_base;
      for (u32 r = 0; r < FFT_ROWS; r++) {
        base->rows(p, x + r * row, n, z, n, 1, false, 1, work, &never);
        assert_memory_equal(z, y + r * row, row);
      }
      free(x), free(y), free(z), free(work);
      fft_plan_free(allocator_system(), p, single);
    }
}

static void real_rows(void **state) {
  (void)state;
  for (i64 h = 1; h < 1300; h = h < 30 ? h + 1 : h * 2)
    for (u32 single = 0; single < 2; single++) {
      size_t bytes = single ? sizeof(f32) : sizeof(f64);
      FftPlan *p = fft_plan_new(allocator_system(), h, single, &never);
      void *twist = fft_twist_new(allocator_system(), h, single, &never), *work = malloc((size_t)p->work * bytes);
      i64 n = 2 * h;
      void *x = calloc(2 * (size_t)n, bytes), *y = malloc(2 * (size_t)(h + 1) * bytes), *z = malloc((size_t)n * bytes);
      void *packed = malloc((size_t)n * bytes);
      for (i64 j = 0; j < n; j++) {
        set(x, single, 2 * j, noise());
        set(packed, single, j, get(x, single, 2 * j));
      }
      const FftKernels *k = fft_kernels(single);
      k->rows(p, packed, h, y, h, 1, false, 1, work, &never);
      k->unfold(y, h, twist, &never);
      long double *roots = circle(n);
      f64 far = 0, eps = single ? 0x1p-24 : 0x1p-53;
      for (i64 i = 0; i <= h; i++) {
        long double re, im;
        defined(roots, x, single, n, i, false, &re, &im);
        f64 d = (f64)hypotl(re - get(y, single, 2 * i), im - get(y, single, 2 * i + 1)) / sqrt((f64)n);
        if (!(d <= far)) far = d;
      }
      if (!(far <= eps * (4 + 2 * log2((f64)n)))) fail_msg("%lld real items: off by %g", (long long)n, far);
      k->fold(y, z, h, twist, &never);
      k->rows(p, z, h, z, h, 1, true, 1.0 / (f64)n, work, &never);
      for (i64 j = 0; j < n; j++)
        assert_true(fabs(get(z, single, j) - get(packed, single, j)) <= eps * (8 + 4 * log2((f64)n)));
      free(x), free(y), free(z), free(packed), free(work), free(roots);
      fft_twist_free(allocator_system(), twist, h, single);
      fft_plan_free(allocator_system(), p, single);
    }
}

static void refused_memory(void **state) {
  (void)state;
  static const i64 lengths[] = {12, 1024, 37, 1031};
  for (u32 i = 0; i < COUNT_OF(lengths); i++)
    for (i64 left = 0;; left++) {
      TestMemory m = test_memory(left);
      FftPlan *p = fft_plan_new(&m.base, lengths[i], i & 1, &never);
      if (!p) assert_int_equal(m.held, 0);
      fft_plan_free(&m.base, p, i & 1);
      assert_int_equal(m.held, 0);
      if (p) break;
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_short_length), cmocka_unit_test(long_lengths), cmocka_unit_test(rows_side_by_side),
      cmocka_unit_test(real_rows),          cmocka_unit_test(refused_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
