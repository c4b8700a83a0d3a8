/* plan.c — plans of Fourier transforms: the way that suits a length, its tables. Nothing is measured, so that the same
 * length always goes the same way. */
#include "stdlib/fft/plan.h"
#include "stdlib/kernels/wm.h"

#include <string.h>

const FftKernels *fft_kernels(bool single) {
#ifdef __x86_64__
  if (cpu_has(CPU_AVX2 | CPU_FMA | CPU_AVX512)) return single ? &fft_f32_avx512 : &fft_f64_avx512;
  if (cpu_has(CPU_AVX2 | CPU_FMA)) return single ? &fft_f32_avx2 : &fft_f64_avx2;
#endif
  return single ? &fft_f32_base : &fft_f64_base;
}

enum { ROOTS = 1 << 15 }; /* of long tables, between two looks */

static size_t complex_bytes(bool single) { return single ? 2 * sizeof(f32) : 2 * sizeof(f64); }

/* Item `at` of a table is exp(-2 pi i e / n). The angle is taken to an eighth of the circle before it is rounded. */
static void put_root(void *table, bool single, i64 at, u64 e, u64 n) {
  u64 rest = e % n, eighth = 0;
  unsigned __int128 eight = (unsigned __int128)rest * 8;
  eighth = (u64)(eight / n);
  bool odd = eighth & 1;
  /* what is left of the eighth, or what is missing to the next */
  unsigned __int128 part = eight - (unsigned __int128)eighth * n;
  if (odd) part = n - part;
  f64 angle = (f64)part / (f64)n * 0.78539816339744830962;
  f64 c = wm_cos_f64(angle), s = wm_sin_f64(angle), re, im;
  switch (eighth) {
    case 0: re = c, im = s; break;
    case 1: re = s, im = c; break;
    case 2: re = -s, im = c; break;
    case 3: re = -c, im = s; break;
    case 4: re = -c, im = -s; break;
    case 5: re = -s, im = -c; break;
    case 6: re = s, im = -c; break;
    default: re = c, im = -s;
  }
  if (single) ((f32 *)table)[2 * at] = (f32)re, ((f32 *)table)[2 * at + 1] = (f32)-im;
  else ((f64 *)table)[2 * at] = re, ((f64 *)table)[2 * at + 1] = -im;
}

/* n without its factors up to FFT_FACTOR; they, rising, in `factors` (of f64's range at most 63). */
static i64 factors_of(i64 n, u8 *factors, u32 *count) {
  *count = 0;
  for (u32 f = 2; f <= FFT_FACTOR; f++)
    while (n % f == 0) {
      factors[(*count)++] = (u8)f;
      n /= f;
    }
  return n;
}

/* The least length from `least` on whose factors are 2, 3 and 5 alone. */
static i64 good_length(i64 least) {
  i64 best = 1;
  while (best < least) best *= 2;
  for (i64 five = 1; five < best; five *= 5)
    for (i64 n = five; n < best; n *= 3) {
      i64 m = n;
      while (m < least) m *= 2;
      if (m < best) best = m;
    }
  return best;
}

static bool table_new(Allocator *alloc, FftPlan *p, bool single) {
  return (p->table = mem_alloc(alloc, (size_t)p->count * complex_bytes(single))) != NULL;
}

/* Large factors come first, twos in pairs last. */
static bool plan_direct(Allocator *alloc, FftPlan *p, const u8 *factors, u32 count, bool single) {
  u32 twos = 0;
  while (twos < count && factors[twos] == 2) twos++;
  for (u32 i = count; i > twos; i--) p->factors[p->factor_count++] = factors[i - 1];
  if (twos & 1) p->factors[p->factor_count++] = 2;
  for (u32 i = 0; i < twos / 2; i++) p->factors[p->factor_count++] = 4;
  i64 n = p->n;
  for (u32 i = 0; i < p->factor_count; i++) {
    u32 r = p->factors[i];
    p->count += (r > 5 ? r : 0) + n / r * (r - 1);
    n /= r;
  }
  if (p->count == 0) p->count = 1; /* of one item there is nothing to do */
  p->work = 4 * p->n * (i64)(FFT_VECTOR / (single ? sizeof(f32) : sizeof(f64)));
  if (!table_new(alloc, p, single)) return false;
  i64 at = 0;
  n = p->n;
  for (u32 i = 0; i < p->factor_count; i++) {
    u32 r = p->factors[i];
    for (u32 k = 0; r > 5 && k < r; k++) put_root(p->table, single, at++, k, r);
    for (i64 q = 0; q < n / r; q++)
      for (u32 k = 1; k < r; k++) put_root(p->table, single, at++, (u64)q * k, (u64)n);
    n /= r;
  }
  return true;
}

static FftPlan *plan_smooth(Allocator *alloc, i64 n, const u8 *factors, u32 count, bool whole, bool single);

/* The two lengths: as near to each other as factors, the large ones first, allow. */
static bool plan_steps(Allocator *alloc, FftPlan *p, const u8 *factors, u32 count, bool single) {
  u8 mine[2][64];
  u32 counts[2] = {0};
  i64 lengths[2] = {1, 1};
  for (u32 i = count; i > 0; i--) {
    u32 side = lengths[0] > lengths[1];
    lengths[side] *= factors[i - 1];
    mine[side][counts[side]++] = factors[i - 1];
  }
  for (u32 side = 0; side < 2; side++) /* rising */
    for (u32 i = 0; i < counts[side] / 2; i++) {
      u8 f = mine[side][i];
      mine[side][i] = mine[side][counts[side] - 1 - i];
      mine[side][counts[side] - 1 - i] = f;
    }
  while ((i64)1 << p->shift << p->shift < p->n) p->shift++;
  i64 low = (i64)1 << p->shift, high = ((p->n - 1) >> p->shift) + 1;
  p->count = low + high;
  p->a = plan_smooth(alloc, lengths[0], mine[0], counts[0], true, single);
  p->b = plan_smooth(alloc, lengths[1], mine[1], counts[1], true, single);
  if (!p->a || !p->b || !table_new(alloc, p, single)) return false;
  for (i64 e = 0; e < low; e++) put_root(p->table, single, e, (u64)e, (u64)p->n);
  for (i64 e = 0; e < high; e++) put_root(p->table, single, low + e, (u64)e << p->shift, (u64)p->n);
  i64 lanes = (i64)(FFT_VECTOR / (single ? sizeof(f32) : sizeof(f64)));
  p->work = 2 * p->n + 2 * FFT_FINE * lanes + (p->a->work > p->b->work ? p->a->work : p->b->work);
  return true;
}

/* Of factors that passes take. `whole`: in one piece, whatever its length. */
static FftPlan *plan_smooth(Allocator *alloc, i64 n, const u8 *factors, u32 count, bool whole, bool single) {
  FftPlan *p = mem_alloc_zero(alloc, sizeof *p);
  if (!p) return NULL;
  p->n = n;
  p->way = whole || n <= FFT_DIRECT || count < 2 ? FFT_WAY_direct : FFT_WAY_steps;
  bool made = p->way == FFT_WAY_direct ? plan_direct(alloc, p, factors, count, single)
                                       : plan_steps(alloc, p, factors, count, single);
  if (made) return p;
  fft_plan_free(alloc, p, single);
  return NULL;
}

/* The chirp exp(-pi i j^2 / n), and the transform of its conjugate, wrapped, divided by the length. */
static bool plan_chirp(Allocator *alloc, FftPlan *p, bool single, const FftLook *look) {
  i64 n = p->n, m = good_length(2 * n - 1);
  p->way = FFT_WAY_chirp;
  p->a = fft_plan_new(alloc, m, single, look);
  p->count = n + m;
  if (!p->a || !table_new(alloc, p, single)) return false;
  p->work = 2 * m + p->a->work;
  for (i64 j = 0; j < n; j++) {
    if (j % ROOTS == 0 && look->ends(look->ctx)) return false;
    put_root(p->table, single, j, (u64)((unsigned __int128)j * (u64)j % (2 * (u64)n)), 2 * (u64)n);
  }
  const size_t floats = (size_t)p->a->work * (single ? sizeof(f32) : sizeof(f64));
  void *work = mem_alloc(alloc, floats), *kernel = (char *)p->table + (size_t)n * complex_bytes(single);
  if (!work) return false;
  memset(kernel, 0, (size_t)m * complex_bytes(single));
  for (i64 j = 0; j < n; j++) {
    i64 places[2] = {j, j ? m - j : 0};
    for (u32 k = 0; k < 2; k++)
      if (single) {
        ((f32 *)kernel)[2 * places[k]] = ((f32 *)p->table)[2 * j];
        ((f32 *)kernel)[2 * places[k] + 1] = -((f32 *)p->table)[2 * j + 1];
      } else {
        ((f64 *)kernel)[2 * places[k]] = ((f64 *)p->table)[2 * j];
        ((f64 *)kernel)[2 * places[k] + 1] = -((f64 *)p->table)[2 * j + 1];
      }
  }
  fft_kernels(single)->rows(p->a, kernel, m, kernel, m, 1, false, 1.0 / (f64)m, work, look);
  mem_free(alloc, work, floats);
  return !look->ends(look->ctx);
}

FftPlan *fft_plan_new(Allocator *alloc, i64 n, bool single, const FftLook *look) {
  u8 factors[64];
  u32 count;
  if (factors_of(n, factors, &count) == 1) return plan_smooth(alloc, n, factors, count, false, single);
  FftPlan *p = mem_alloc_zero(alloc, sizeof *p);
  if (!p) return NULL;
  p->n = n;
  if (plan_chirp(alloc, p, single, look)) return p;
  fft_plan_free(alloc, p, single);
  return NULL;
}

void fft_plan_free(Allocator *alloc, FftPlan *p, bool single) {
  if (!p) return;
  fft_plan_free(alloc, p->a, single);
  fft_plan_free(alloc, p->b, single);
  if (p->table) mem_free(alloc, p->table, (size_t)p->count * complex_bytes(single));
  mem_free(alloc, p, sizeof *p);
}

void *fft_twist_new(Allocator *alloc, i64 h, bool single, const FftLook *look) {
  i64 count = h / 2 + 1;
  void *twist = mem_alloc(alloc, (size_t)count * complex_bytes(single));
  for (i64 k = 0; twist && k < count; k++) {
    if (k % ROOTS == 0 && look->ends(look->ctx)) {
      fft_twist_free(alloc, twist, h, single);
      return NULL;
    }
    put_root(twist, single, k, (u64)k, 2 * (u64)h);
  }
  return twist;
}

void fft_twist_free(Allocator *alloc, void *twist, i64 h, bool single) {
  if (twist) mem_free(alloc, twist, (size_t)(h / 2 + 1) * complex_bytes(single));
}
