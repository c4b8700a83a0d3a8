/* kernel_complex.h — kernels of complex numbers (kernel_complex.c), which every build of the strips has. */
#ifndef WEFT_STDLIB_KERNEL_COMPLEX_H
#define WEFT_STDLIB_KERNEL_COMPLEX_H

#include "parser/base.h"

#undef bool /* a dtype name that is pasted through macros here */
typedef _Bool bool;

#define COMPLEX_STRIP(op, dt, r, ...) u32 complex_##op##_##dt(void *out, const void *xv, const void *yv, i64 n);
#define COMPLEX_CONVERT(from, to, ...) \
  u32 complex_##from##_to_##to(void *out, const void *xv, const void *yv, i64 n);
#include "stdlib/kernels/complex_strips.def"
#undef COMPLEX_STRIP
#undef COMPLEX_CONVERT
/* of 16 bytes an element: out[i] = c[i] ? x[i] : y[i] */
void complex_select(void *out, const u8 *c, const void *x, const void *y, i64 n);

#endif
