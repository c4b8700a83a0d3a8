/* rows_avx2.c — the kernels over short rows built for AVX2. */
#ifdef __x86_64__
#define ROWS_NAME avx2
#define ROWS_BYTES 32
#include "jit/rows_template.c"
#endif
