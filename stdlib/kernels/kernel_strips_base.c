/* kernel_strips_base.c — the strip kernels built for baseline. */
#define STRIPS_NAME base
#define STRIPS_TEXT "base"
#define REDUCE_VECTOR_BYTES 16
#include "stdlib/kernels/kernel_strips_template.c"
