/* kernel_fft_template.c — Fourier transforms (see fft.h), for the instruction set and the float that this is compiled
 * for. The including file defines FFT_T, FFT_NAME and FFT_TABLE. No product is fused with a sum, so that all builds
 * give the same bits. */
#include "stdlib/kernels/fft.h"

#include <string.h>

#define T FFT_T
#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define HERE(name) PASTE(name, FFT_NAME)
#define LANES ((i64)(FFT_VECTOR / sizeof(T)))
#define INLINE static inline __attribute__((always_inline))

/* ---- passes: a pass of factor r takes x[q + s (p + m k)] to y[q + s (r p + k)] ------------------------------ */

/* y[at] = (re, im) * w, w of the pass's twiddles; the first of each run has none. */
#define PUT(k, re, im)                                                    \
  do {                                                                    \
    T re_ = (re), im_ = (im);                                             \
    yr[s * (k) + q] = turn ? re_ * w[2 * (k) - 2] - im_ * w[2 * (k) - 1] : re_; \
    yi[s * (k) + q] = turn ? re_ * w[2 * (k) - 1] + im_ * w[2 * (k) - 2] : im_; \
  } while (0)
#define GET(k) T x##k##r = xr[s * m * (k) + q], x##k##i = xi[s * m * (k) + q]

INLINE void HERE(two)(i64 m, i64 s, bool turn, const T *w, const T *restrict xr, const T *restrict xi, T *restrict yr,
                      T *restrict yi) {
  for (i64 q = 0; q < s; q++) {
    GET(0);
    GET(1);
    yr[q] = x0r + x1r, yi[q] = x0i + x1i;
    PUT(1, x0r - x1r, x0i - x1i);
  }
}

INLINE void HERE(three)(i64 m, i64 s, bool turn, const T *w, const T *restrict xr, const T *restrict xi,
                        T *restrict yr, T *restrict yi) {
  const T c = (T)-0.5, d = (T)0.86602540378443864676;
  for (i64 q = 0; q < s; q++) {
    GET(0);
    GET(1);
    GET(2);
    T tr = x1r + x2r, ti = x1i + x2i, ur = d * (x1r - x2r), ui = d * (x1i - x2i);
    T ar = x0r + c * tr, ai = x0i + c * ti;
    yr[q] = x0r + tr, yi[q] = x0i + ti;
    PUT(1, ar + ui, ai - ur);
    PUT(2, ar - ui, ai + ur);
  }
}

INLINE void HERE(four)(i64 m, i64 s, bool turn, const T *w, const T *restrict xr, const T *restrict xi, T *restrict yr,
                       T *restrict yi) {
  for (i64 q = 0; q < s; q++) {
    GET(0);
    GET(1);
    GET(2);
    GET(3);
    T ar = x0r + x2r, ai = x0i + x2i, br = x0r - x2r, bi = x0i - x2i;
    T cr = x1r + x3r, ci = x1i + x3i, dr = x1r - x3r, di = x1i - x3i;
    yr[q] = ar + cr, yi[q] = ai + ci;
    PUT(1, br + di, bi - dr);
    PUT(2, ar - cr, ai - ci);
    PUT(3, br - di, bi + dr);
  }
}

INLINE void HERE(five)(i64 m, i64 s, bool turn, const T *w, const T *restrict xr, const T *restrict xi, T *restrict yr,
                       T *restrict yi) {
  const T c1 = (T)0.30901699437494742410, c2 = (T)-0.80901699437494742410;
  const T d1 = (T)0.95105651629515357212, d2 = (T)0.58778525229247312917;
  for (i64 q = 0; q < s; q++) {
    GET(0);
    GET(1);
    GET(2);
    GET(3);
    GET(4);
    T t1r = x1r + x4r, t1i = x1i + x4i, t2r = x2r + x3r, t2i = x2i + x3i;
    T u1r = x1r - x4r, u1i = x1i - x4i, u2r = x2r - x3r, u2i = x2i - x3i;
    T ar = x0r + (c1 * t1r + c2 * t2r), ai = x0i + (c1 * t1i + c2 * t2i);
    T br = x0r + (c2 * t1r + c1 * t2r), bi = x0i + (c2 * t1i + c1 * t2i);
    T er = d1 * u1r + d2 * u2r, ei = d1 * u1i + d2 * u2i, fr = d2 * u1r - d1 * u2r, fi = d2 * u1i - d1 * u2i;
    yr[q] = x0r + (t1r + t2r), yi[q] = x0i + (t1i + t2i);
    PUT(1, ar + ei, ai - er);
    PUT(2, br + fi, bi - fr);
    PUT(3, br - fi, bi + fr);
    PUT(4, ar - ei, ai + er);
  }
}

/* Any odd factor: `roots` has cos and -sin of its angles. What stands opposite to each other is added first. */
static void HERE(any)(u32 r, i64 m, i64 s, bool turn, const T *roots, const T *w, const T *restrict xr,
                      const T *restrict xi, T *restrict yr, T *restrict yi) {
  enum { HALF = FFT_FACTOR / 2 + 1, MANY = FFT_VECTOR / sizeof(T) };
  T tr[HALF][MANY], ti[HALF][MANY], ur[HALF][MANY], ui[HALF][MANY];
  u32 h = r / 2;
  for (i64 from = 0; from < s; from += MANY) {
    i64 n = s - from < MANY ? s - from : MANY;
    T sr[MANY], si[MANY];
    for (i64 q = 0; q < n; q++) sr[q] = xr[from + q], si[q] = xi[from + q];
    for (u32 j = 1; j <= h; j++)
      for (i64 q = 0; q < n; q++) {
        i64 at = s * m * j + from + q, far = s * m * (r - j) + from + q;
        tr[j][q] = xr[at] + xr[far], ti[j][q] = xi[at] + xi[far];
        ur[j][q] = xr[at] - xr[far], ui[j][q] = xi[at] - xi[far];
        sr[q] += tr[j][q], si[q] += ti[j][q];
      }
    for (i64 q = 0; q < n; q++) yr[from + q] = sr[q], yi[from + q] = si[q];
    for (u32 k = 1; k <= h; k++) {
      T ar[MANY], ai[MANY], br[MANY], bi[MANY];
      for (i64 q = 0; q < n; q++) ar[q] = xr[from + q], ai[q] = xi[from + q], br[q] = bi[q] = 0;
      for (u32 j = 1, at = k; j <= h; j++, at = at + k < r ? at + k : at + k - r) {
        T c = roots[2 * at], d = -roots[2 * at + 1];
        for (i64 q = 0; q < n; q++) {
          ar[q] += c * tr[j][q], ai[q] += c * ti[j][q];
          br[q] += d * ur[j][q], bi[q] += d * ui[j][q];
        }
      }
      const T *v = turn ? w + 2 * k - 2 : NULL, *z = turn ? w + 2 * (r - k) - 2 : NULL;
      for (i64 q = 0; q < n; q++) {
        T er = ar[q] + bi[q], ei = ai[q] - br[q], fr = ar[q] - bi[q], fi = ai[q] + br[q];
        i64 at = s * k + from + q, far = s * (r - k) + from + q;
        yr[at] = v ? er * v[0] - ei * v[1] : er, yi[at] = v ? er * v[1] + ei * v[0] : ei;
        yr[far] = z ? fr * z[0] - fi * z[1] : fr, yi[far] = z ? fr * z[1] + fi * z[0] : fi;
      }
    }
  }
}

typedef struct HERE(Planes) {
  T *r, *i;
} HERE(Planes);

/* All passes over `lanes` transforms side by side, to and fro between x and y; x is then where the result is. */
static void HERE(passes)(const FftPlan *plan, i64 lanes, HERE(Planes) *x, HERE(Planes) *y) {
  i64 n = plan->n, s = lanes;
  const T *w = plan->table;
  for (u32 f = 0; f < plan->factor_count; f++) {
    u32 r = plan->factors[f];
    i64 m = n / r;
    const T *roots = w;
    if (r > 5) w += 2 * r;
    for (i64 p = 0; p < m; p++, w += 2 * (r - 1)) {
      const T *xr = x->r + s * p, *xi = x->i + s * p;
      T *yr = y->r + s * r * p, *yi = y->i + s * r * p;
      switch (r) {
        case 2: p ? HERE(two)(m, s, true, w, xr, xi, yr, yi) : HERE(two)(m, s, false, w, xr, xi, yr, yi); break;
        case 3: p ? HERE(three)(m, s, true, w, xr, xi, yr, yi) : HERE(three)(m, s, false, w, xr, xi, yr, yi); break;
        case 4: p ? HERE(four)(m, s, true, w, xr, xi, yr, yi) : HERE(four)(m, s, false, w, xr, xi, yr, yi); break;
        case 5: p ? HERE(five)(m, s, true, w, xr, xi, yr, yi) : HERE(five)(m, s, false, w, xr, xi, yr, yi); break;
        default: HERE(any)(r, m, s, p != 0, roots, w, xr, xi, yr, yi);
      }
    }
    n = m;
    s *= r;
    HERE(Planes) t = *x;
    *x = *y;
    *y = t;
  }
}

/* ---- whole transforms ------------------------------------------------------------------------------------------ */

static void HERE(planes)(T *work, i64 n, HERE(Planes) *x, HERE(Planes) *y) {
  *x = (HERE(Planes)){work, work + n};
  *y = (HERE(Planes)){work + 2 * n, work + 3 * n};
}

/* Rows side by side in the lanes. The inverse is the transform between exchanged real and imaginary parts. */
static void HERE(direct)(const FftPlan *plan, const T *in, i64 in_step, T *out, i64 out_step, i64 lanes, bool inverse,
                         T scale, T *work) {
  enum { TILE = 8 };
  i64 n = plan->n;
  HERE(Planes) x, y;
  HERE(planes)(work, n * lanes, &x, &y);
  T *re = inverse ? x.i : x.r, *im = inverse ? x.r : x.i;
  for (i64 from = 0; from < n; from += TILE)
    for (i64 l = 0; l < lanes; l++)
      for (i64 j = from; j < n && j < from + TILE; j++) {
        re[j * lanes + l] = in[2 * (l * in_step + j)];
        im[j * lanes + l] = in[2 * (l * in_step + j) + 1];
      }
  HERE(passes)(plan, lanes, &x, &y);
  re = inverse ? x.i : x.r, im = inverse ? x.r : x.i;
  for (i64 from = 0; from < n; from += TILE)
    for (i64 l = 0; l < lanes; l++)
      for (i64 j = from; j < n && j < from + TILE; j++) {
        out[2 * (l * out_step + j)] = scale * re[j * lanes + l];
        out[2 * (l * out_step + j) + 1] = scale * im[j * lanes + l];
      }
}

/* Columns from `in` on, `apart` complex numbers between their items, into lanes. */
INLINE void HERE(columns)(const T *in, i64 n, i64 apart, i64 lanes, T *restrict re, T *restrict im) {
  for (i64 j = 0; j < n; j++, in += 2 * apart, re += lanes, im += lanes)
    for (i64 l = 0; l < lanes; l++) re[l] = in[2 * l], im[l] = in[2 * l + 1];
}

INLINE void HERE(put_columns)(T *restrict out, i64 n, i64 apart, i64 lanes, T scale, const T *re, const T *im) {
  for (i64 j = 0; j < n; j++, out += 2 * apart, re += lanes, im += lanes)
    for (i64 l = 0; l < lanes; l++) out[2 * l] = scale * re[l], out[2 * l + 1] = scale * im[l];
}

/* The twiddle exp(-2 pi i e / n), of two. */
INLINE void HERE(twiddle)(const FftPlan *plan, i64 e, T *re, T *im) {
  const T *low = (const T *)plan->table + 2 * (e & (((i64)1 << plan->shift) - 1));
  const T *high = (const T *)plan->table + 2 * ((i64)1 << plan->shift) + 2 * (e >> plan->shift);
  *re = low[0] * high[0] - low[1] * high[1];
  *im = low[0] * high[1] + low[1] * high[0];
}

/* Row k of the lanes, columns `from` on, times twiddle (from + lane) k. */
INLINE void HERE(twist)(const FftPlan *plan, i64 from, i64 lanes, T *restrict re, T *restrict im, T *fine) {
  i64 n = plan->a->n, some = n < FFT_FINE ? n : FFT_FINE;
  T *fr = fine, *fi = fine + FFT_FINE * LANES, cr[LANES], ci[LANES];
  for (i64 k = 0; k < some; k++)
    for (i64 l = 0; l < lanes; l++) HERE(twiddle)(plan, (from + l) * k, &fr[k * lanes + l], &fi[k * lanes + l]);
  for (i64 first = 0; first < n; first += FFT_FINE) {
    for (i64 l = 0; l < lanes; l++) HERE(twiddle)(plan, (from + l) * first, &cr[l], &ci[l]);
    for (i64 k = 0; k < FFT_FINE && first + k < n; k++, re += lanes, im += lanes)
      for (i64 l = 0; l < lanes; l++) {
        T a = fr[k * lanes + l], b = fi[k * lanes + l];
        T wr = a * cr[l] - b * ci[l], wi = a * ci[l] + b * cr[l];
        T xr = re[l], xi = im[l];
        re[l] = xr * wr - xi * wi;
        im[l] = xr * wi + xi * wr;
      }
  }
}

INLINE void HERE(first_step)(const FftPlan *plan, const T *in, i64 from, i64 lanes, bool inverse, T *between, T *work,
                             T *fine) {
  enum { TILE = 8 };
  i64 a = plan->a->n, b = plan->b->n;
  HERE(Planes) x, y;
  HERE(planes)(work, a * lanes, &x, &y);
  HERE(columns)(in + 2 * from, a, b, lanes, inverse ? x.i : x.r, inverse ? x.r : x.i);
  HERE(passes)(plan->a, lanes, &x, &y);
  HERE(twist)(plan, from, lanes, x.r, x.i, fine);
  for (i64 first = 0; first < a; first += TILE)
    for (i64 l = 0; l < lanes; l++)
      for (i64 k = first; k < a && k < first + TILE; k++) {
        between[2 * ((from + l) * a + k)] = x.r[k * lanes + l];
        between[2 * ((from + l) * a + k) + 1] = x.i[k * lanes + l];
      }
}

INLINE void HERE(second_step)(const FftPlan *plan, const T *between, i64 from, i64 lanes, bool inverse, T scale, T *out,
                              T *work) {
  i64 a = plan->a->n, b = plan->b->n;
  HERE(Planes) x, y;
  HERE(planes)(work, b * lanes, &x, &y);
  HERE(columns)(between + 2 * from, b, a, lanes, x.r, x.i);
  HERE(passes)(plan->b, lanes, &x, &y);
  HERE(put_columns)(out + 2 * from, b, a, lanes, scale, inverse ? x.i : x.r, inverse ? x.r : x.i);
}

/* Item j = j1 b + j2 of the row goes into column j2 of transforms of length a; item k1 of column j2, times twiddle
 * k1 j2, into column k1 of transforms of length b, whose item k2 is item k1 + k2 a of the result. */
static void HERE(steps)(const FftPlan *plan, const T *in, T *out, bool inverse, T scale, T *work,
                        const FftLook *look) {
  i64 a = plan->a->n, b = plan->b->n;
  T *between = work, *fine = between + 2 * plan->n;
  const i64 each = LANES * (FFT_PART / LANES / (a > b ? a : b) + 1); /* columns between two looks */
  work = fine + 2 * FFT_FINE * LANES;
  for (i64 from = 0; from < b; from += LANES) {
    if (from % each == 0 && look->ends(look->ctx)) return;
    if (b - from >= LANES) HERE(first_step)(plan, in, from, LANES, inverse, between, work, fine);
    else HERE(first_step)(plan, in, from, b - from, inverse, between, work, fine);
  }
  for (i64 from = 0; from < a; from += LANES) {
    if (from % each == 0 && look->ends(look->ctx)) return;
    if (a - from >= LANES) HERE(second_step)(plan, between, from, LANES, inverse, scale, out, work);
    else HERE(second_step)(plan, between, from, a - from, inverse, scale, out, work);
  }
}

static void HERE(rows)(const FftPlan *plan, const void *in, i64 in_step, void *out, i64 out_step, i64 count,
                       bool inverse, f64 scale, void *work, const FftLook *look);

static void HERE(chirp)(const FftPlan *plan, const T *in, T *out, bool inverse, T scale, T *work,
                        const FftLook *look) {
  i64 n = plan->n, m = plan->a->n;
  const T *c = plan->table, *kernel = c + 2 * n;
  T *x = work;
  u32 re = inverse, im = !inverse;
  for (i64 j = 0; j < n; j++) {
    if (j % FFT_PART == 0 && look->ends(look->ctx)) return;
    T a = in[2 * j + re], b = in[2 * j + im];
    x[2 * j] = a * c[2 * j] - b * c[2 * j + 1];
    x[2 * j + 1] = a * c[2 * j + 1] + b * c[2 * j];
  }
  memset(x + 2 * n, 0, (size_t)(m - n) * 2 * sizeof(T));
  HERE(rows)(plan->a, x, m, x, m, 1, false, 1, work + 2 * m, look);
  for (i64 j = 0; j < m; j++) {
    if (j % FFT_PART == 0 && look->ends(look->ctx)) return;
    T a = x[2 * j], b = x[2 * j + 1];
    x[2 * j] = a * kernel[2 * j] - b * kernel[2 * j + 1];
    x[2 * j + 1] = a * kernel[2 * j + 1] + b * kernel[2 * j];
  }
  HERE(rows)(plan->a, x, m, x, m, 1, true, 1, work + 2 * m, look);
  for (i64 j = 0; j < n; j++) {
    if (j % FFT_PART == 0 && look->ends(look->ctx)) return;
    T a = scale * x[2 * j], b = scale * x[2 * j + 1];
    out[2 * j + re] = a * c[2 * j] - b * c[2 * j + 1];
    out[2 * j + im] = a * c[2 * j + 1] + b * c[2 * j];
  }
}

static void HERE(rows)(const FftPlan *plan, const void *in, i64 in_step, void *out, i64 out_step, i64 count,
                       bool inverse, f64 scale, void *work, const FftLook *look) {
  const T *x = in;
  T *y = out;
  if (plan->way == FFT_WAY_direct) {
    for (i64 at = 0, m; at < count; at += m) {
      m = count - at < LANES ? count - at : LANES;
      if (m == LANES)
        HERE(direct)(plan, x + 2 * at * in_step, in_step, y + 2 * at * out_step, out_step, LANES, inverse, (T)scale,
                     work);
      else
        HERE(direct)(plan, x + 2 * at * in_step, in_step, y + 2 * at * out_step, out_step, m, inverse, (T)scale, work);
    }
    return;
  }
  for (i64 k = 0; k < count; k++, x += 2 * in_step, y += 2 * out_step)
    if (plan->way == FFT_WAY_steps) HERE(steps)(plan, x, y, inverse, (T)scale, work, look);
    else HERE(chirp)(plan, x, y, inverse, (T)scale, work, look);
}

/* ---- real rows ------------------------------------------------------------------------------------------------- */

/* Of z, the transform of items 2 j + i (2 j + 1): with e and o, the transforms of the even and the odd items,
 * x[k] = e + w o and x[h - k] = conj(e - w o). */
static void HERE(unfold)(void *row, i64 h, const void *twist, const FftLook *look) {
  T *z = row;
  const T *w = twist, first = z[0], last = z[1];
  z[0] = first + last, z[1] = 0;
  z[2 * h] = first - last, z[2 * h + 1] = 0;
  for (i64 k = 1; 2 * k <= h; k++) {
    if (k % FFT_PART == 0 && look->ends(look->ctx)) return;
    T *a = z + 2 * k, *b = z + 2 * (h - k);
    T er = (T)0.5 * (a[0] + b[0]), ei = (T)0.5 * (a[1] - b[1]);
    T or = (T)0.5 * (a[1] + b[1]), oi = (T)0.5 * (b[0] - a[0]);
    T wr = or * w[2 * k] - oi * w[2 * k + 1], wi = or * w[2 * k + 1] + oi * w[2 * k];
    a[0] = er + wr, a[1] = ei + wi;
    b[0] = er - wr, b[1] = wi - ei;
  }
}

static void HERE(fold)(const void *row, void *out, i64 h, const void *twist, const FftLook *look) {
  const T *x = row, *w = twist;
  T *z = out;
  z[0] = x[0] + x[2 * h], z[1] = x[0] - x[2 * h];
  for (i64 k = 1; 2 * k <= h; k++) {
    if (k % FFT_PART == 0 && look->ends(look->ctx)) return;
    const T *a = x + 2 * k, *b = x + 2 * (h - k);
    T er = a[0] + b[0], ei = a[1] - b[1], dr = a[0] - b[0], di = a[1] + b[1];
    T or = dr * w[2 * k] + di * w[2 * k + 1], oi = di * w[2 * k] - dr * w[2 * k + 1];
    z[2 * k] = er - oi, z[2 * k + 1] = ei + or;
    z[2 * (h - k)] = er + oi, z[2 * (h - k) + 1] = or - ei;
  }
}

const FftKernels FFT_TABLE = {HERE(rows), HERE(unfold), HERE(fold)};

#undef T
#undef PASTE_
#undef PASTE
#undef HERE
#undef LANES
#undef INLINE
#undef PUT
#undef GET
#undef FFT_T
#undef FFT_NAME
#undef FFT_TABLE
