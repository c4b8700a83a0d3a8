/* kernel_strips_avx2.c — the strip kernels built for AVX2 with FMA. */
#ifdef __x86_64__
#define STRIPS_NAME avx2
#define STRIPS_LINKAGE /* the AVX-512 build names these */
#define STRIPS_TEXT "avx2"
#define REDUCE_VECTOR_BYTES 32
#include "stdlib/kernels/kernel_strips_template.c"
#endif
