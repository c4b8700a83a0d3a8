/* plan.h — what a Fourier transform of one length needs: factors, twiddles, plans of shorter ones. */
#ifndef WEFT_STDLIB_FFT_PLAN_H
#define WEFT_STDLIB_FFT_PLAN_H

#include "stdlib/kernels/fft.h"
#include "stdlib/stdlib.h"

/* For n >= 1 numbers of f64, or of f32. NULL: memory, or the program is to end. */
FftPlan *fft_plan_new(Allocator *alloc, i64 n, bool single, const FftLook *look) MUST_USE;
void fft_plan_free(Allocator *alloc, FftPlan *plan, bool single); /* NULL too */
/* The twiddles of unfold and fold, h / 2 + 1 of them. NULL: as above. */
void *fft_twist_new(Allocator *alloc, i64 h, bool single, const FftLook *look) MUST_USE;
void fft_twist_free(Allocator *alloc, void *twist, i64 h, bool single); /* NULL too */
void fft_remove(Vm *vm); /* frees Stdlib.fft (fft.c) */
/* For this processor. */
const FftKernels *fft_kernels(bool single);

#endif
