/* fourier.c — a Fourier transform by hand, of a power of two. sizes: 4096 16 */
#include "bench/forms/form.h"
static double *x, *re, *im;
static void set_up(i64 n) {
  x = ROOM(double, n), re = ROOM(double, n), im = ROOM(double, n);
  for (i64 i = 0; i < n; i++) x[i] = uniform(i, 1);
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) re[i] = x[i], im[i] = 0;
  for (i64 i = 1, j = 0; i < n; i++) {
    i64 bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) { double t = re[i]; re[i] = re[j]; re[j] = t; }
  }
  for (i64 w = 2; w <= n; w *= 2) {
    for (i64 k = 0; k < w / 2; k++) {
      double c = cos(-6.283185307179586 * (double)k / (double)w), s = sin(-6.283185307179586 * (double)k / (double)w);
      for (i64 i = k; i < n; i += w) {
        i64 j = i + w / 2;
        double a = re[j] * c - im[j] * s, b = re[j] * s + im[j] * c;
        re[j] = re[i] - a, im[j] = im[i] - b, re[i] += a, im[i] += b;
      }
    }
  }
}
static double result(i64 n) { double s = 0; CHECK(s, re, n); CHECK(s, im, n); return s; }
