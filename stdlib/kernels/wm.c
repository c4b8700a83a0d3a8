/* wm.c — which build of the transcendental functions runs here. */
#include "stdlib/kernels/wm.h"

const WmLevel *wm_best(void) {
#ifdef __x86_64__
  if (cpu_has(CPU_AVX2 | CPU_FMA | CPU_AVX512)) return &wm_avx512;
  if (cpu_has(CPU_AVX2 | CPU_FMA)) return &wm_avx2;
#endif
  return &wm_base;
}
