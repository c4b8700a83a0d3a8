/* gpu.h — facade: kernels for NVIDIA GPUs. Nothing of CUDA is needed to build or to print PTX. */
#ifndef WEFT_GPU_GPU_H
#define WEFT_GPU_GPU_H

#include "tracer/tracer.h"

/* The kernels of a region that jit/ compiled, as PTX, whatever it was compiled for; what has none says why. */
void gpu_print_ptx(const Region *r, Buf *out);

#endif
