/* wm.c — which build of the transcendental functions runs here. */
#include "stdlib/wm.h"

const WmLevel *wm_best(void) {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &wm_avx2;
#endif
  return &wm_base;
}
