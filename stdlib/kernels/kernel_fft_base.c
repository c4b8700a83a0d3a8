/* kernel_fft_base.c — Fourier transforms built for any processor, in f64 and f32. */
#define FFT_T f64
#define FFT_NAME f64_base
#define FFT_TABLE fft_f64_base
#include "stdlib/kernels/kernel_fft_template.c"
#define FFT_T f32
#define FFT_NAME f32_base
#define FFT_TABLE fft_f32_base
#include "stdlib/kernels/kernel_fft_template.c"
