/* kernel_strips_avx512.c — the strip kernels built for AVX-512; the least and greatest of floats are those of AVX2. */
#ifdef __x86_64__
#define STRIPS_NAME avx512
#define STRIPS_REST avx2
#define STRIPS_TEXT "avx512"
#define REDUCE_VECTOR_BYTES 64
#include "stdlib/kernels/kernel_strips_template.c"
#endif
