/* fft.h — discrete Fourier transforms of contiguous rows: plans (stdlib/fft/plan.c) and kernels, three builds of one
 * template (kernel_fft_template.c) that give the same bits.
 *
 * A complex number is two floats, the real part first. The way to a transform depends on its length alone:
 *   direct  up to FFT_DIRECT, of small factors: Stockham's passes (Van Loan, "Computational frameworks for the fast
 *           Fourier transform", 1992, 1.7). Real and imaginary parts stand in planes of their own, and several
 *           transforms go side by side in the lanes of one vector.
 *   steps   n = a * b, longer: b transforms of length a, a twiddle, a transforms of length b (Bailey, "FFTs in external
 *           or hierarchical memory", 1990): two walks through memory.
 *   chirp   a large prime factor: a convolution of a length with small factors (Bluestein, 1970). */
#ifndef WEFT_STDLIB_FFT_KERNELS_H
#define WEFT_STDLIB_FFT_KERNELS_H

#include "parser/base.h"

enum {
  FFT_DIRECT = 512,      /* the longest direct transform */
  FFT_FACTOR = 31,       /* the largest factor that a pass takes */
  FFT_VECTOR = 64,       /* bytes of the lanes that go side by side */
  FFT_ROWS = FFT_VECTOR / sizeof(f32), /* rows that a caller hands on at a time, at most */
  FFT_FINE = 32,         /* twiddles of `steps` are products of those of a multiple of 32 and of the rest */
};

typedef enum FftWay { FFT_WAY_direct, FFT_WAY_steps, FFT_WAY_chirp } FftWay;

typedef struct FftPlan FftPlan;
struct FftPlan {
  i64 n;
  FftWay way;
  u32 factor_count;
  u8 factors[64];        /* direct, in the order of the passes */
  FftPlan *a, *b;        /* steps: of the two lengths. chirp: a, of the convolution's length. Owned */
  u32 shift;             /* steps: twiddle e is high[e >> shift] * low[e & (1 << shift) - 1] */
  i64 count;             /* complex numbers of `table` */
  i64 work;              /* floats that a run needs */
  /* direct: for each pass the roots of its factor, if that is above 5, then twiddles. steps: low, high. chirp: the
   * chirp, then the transform of the convolution's kernel */
  void *table;
};

/* Asked now and then: is the work to end? What is made then is of no use. */
typedef struct FftLook {
  bool (*ends)(void *ctx);
  void *ctx;
} FftLook;
enum { FFT_PART = 1 << 17 }; /* numbers between two looks */

/* `count` rows (at most FFT_ROWS) from `in` to `out`, `in_step` and `out_step` complex numbers apart; they may be the
 * same. `inverse`: with the other sign. Each result is multiplied by `scale`. `work`: plan->work floats. */
typedef void (*FftRows)(const FftPlan *plan, const void *in, i64 in_step, void *out, i64 out_step, i64 count,
                        bool inverse, f64 scale, void *work, const FftLook *look);
/* Of the half-length transform of a row of 2 h real numbers, taken as h complex ones, the transform's h + 1 items, in
 * place; `twist` has h / 2 + 1 twiddles of length 2 h. */
typedef void (*FftUnfold)(void *row, i64 h, const void *twist, const FftLook *look);
/* The contrary: of h + 1 items what the inverse transform of length h takes to 2 h real numbers. */
typedef void (*FftFold)(const void *row, void *out, i64 h, const void *twist, const FftLook *look);

typedef struct FftKernels {
  FftRows rows;
  FftUnfold unfold;
  FftFold fold;
} FftKernels;

extern const FftKernels fft_f64_base, fft_f32_base;
#ifdef __x86_64__
extern const FftKernels fft_f64_avx2, fft_f32_avx2, fft_f64_avx512, fft_f32_avx512;
#endif

#endif
