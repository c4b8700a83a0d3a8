/* wm.c — which build of the transcendental functions runs here. */
#include "stdlib/kernels/wm.h"

#ifdef __x86_64__
#include <pthread.h>

#define MATH(name, type, arity) +1
#define MATH_HELPER MATH
enum {
  COUNT = 0
#include "math_list.h"
};

/* Filled once for the process; read-only afterwards. */
static LoopMath functions[COUNT];
static const WmLevel fastest = {functions, COUNT};
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static void fill(void) {
  const WmStrip *strips = cpu_has(CPU_AVX512) ? wm_strips_avx512 : wm_strips_avx2;
  for (u32 i = 0; i < COUNT; i++) {
    functions[i] = wm_base.functions[i];
    functions[i].fn = wm_scalars_fma[i];
    functions[i].strip = strips[i];
  }
}
#endif

const WmLevel *wm_best(void) {
#ifdef __x86_64__
  if (cpu_has(CPU_AVX2 | CPU_FMA)) {
    pthread_once(&filled, fill);
    return &fastest;
  }
#endif
  return &wm_base;
}
