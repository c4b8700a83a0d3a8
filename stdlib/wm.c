/* wm.c — which build of the transcendental functions runs here. */
#include "stdlib/wm.h"

const WmLevel *wm_best(void) {
#ifdef __x86_64__
  __builtin_cpu_init();
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (wide && __builtin_cpu_supports("fma")) return &wm_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &wm_avx2;
#endif
  return &wm_base;
}
