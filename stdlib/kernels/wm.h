/* wm.h — the transcendental functions, made from lang/math.loops by jit/host/gen_math.c.
 *
 * Every tier runs the one definition: scalars here (`wm_exp_f64`), strip kernels, MIR by calls, the vector emitter
 * and PTX from the loop IR. All give the same bits. */
#ifndef WEFT_STDLIB_WM_H
#define WEFT_STDLIB_WM_H

#include "jit/loops/loops.h"

/* The functions for `math NAME` of the loop IR: `math` and `math_count` of a LoopModule. */
typedef struct WmLevel {
  const LoopMath *functions;
  u32 count;
} WmLevel;

/* For any processor; the same in the same order for processors with AVX2 and FMA, or with AVX-512: same bits,
 * faster. */
extern const WmLevel wm_base;
#ifdef __x86_64__
extern const WmLevel wm_avx2, wm_avx512;
#endif

/* The fastest of those that run here. */
const WmLevel *wm_best(void);

/* Scalars: for any processor, and with fma in hardware. */
#define WM_PARAMS_1(T) T
#define WM_PARAMS_2(T) T, T
#define WM_PARAMS_3(T) T, T, T
#define MATH(name, type, arity) \
  type wm_##name##_##type(WM_PARAMS_##arity(type)), wm_##name##_##type##_fma(WM_PARAMS_##arity(type));
#define MATH_HELPER MATH
#include "math_list.h"

/* Strips, as StripFn: out[i] = name(x[i]) or name(x[i], y[i]) for i in 0..n; they give 0. `out` may be an operand
 * itself. */
#define WM_STRIP_OF(name, type, level) \
  u32 wm_strip_##name##_##type##_##level(void *out, const void *x, const void *y, i64 n);
#define MATH(name, type, arity) \
  WM_STRIP_OF(name, type, base) WM_STRIP_OF(name, type, avx2) WM_STRIP_OF(name, type, avx512)
#define MATH_HELPER(name, type, arity)
#include "math_list.h"

#endif
