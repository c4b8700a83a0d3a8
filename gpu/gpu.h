/* gpu.h — facade: kernels for NVIDIA GPUs. Nothing of CUDA is needed to build or to print PTX. */
#ifndef WEFT_GPU_GPU_H
#define WEFT_GPU_GPU_H

#include "jit/jit.h"

/* Gives the VM the device "gpu": arrays there and the operations on them. The driver is loaded when it is first
 * needed, from `driver` (NULL: the system's). Compiled kernels are kept in the folder `cache` (NULL: nowhere). Both are
 * borrowed for the VM's life. Before jit_install, which takes gpu_device. */
WeftStatus gpu_install(Vm *vm, const char *driver, const char *cache) MUST_USE;
extern const JitDevice gpu_device;
/* Opens the device now; an error says what is missing. */
WeftStatus gpu_open(Vm *vm) MUST_USE;

/* The kernels of a region that jit/ compiled, as PTX, whatever it was compiled for; what has none says why. */
void gpu_print_ptx(const Region *r, Buf *out);

#endif
