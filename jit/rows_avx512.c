/* rows_avx512.c — the kernels over short rows built for AVX-512. */
#ifdef __x86_64__
#define ROWS_NAME avx512
#define ROWS_BYTES 64
#include "jit/rows_template.c"
#endif
