/* kernel_fft_avx2.c — Fourier transforms built for AVX2, in f64 and f32. */
#ifdef __x86_64__
#define FFT_T f64
#define FFT_NAME f64_avx2
#define FFT_TABLE fft_f64_avx2
#include "stdlib/kernels/kernel_fft_template.c"
#define FFT_T f32
#define FFT_NAME f32_avx2
#define FFT_TABLE fft_f32_avx2
#include "stdlib/kernels/kernel_fft_template.c"
#endif
