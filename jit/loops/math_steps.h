/* math_steps.h — the functions of lang/math.loops as bytes for a small interpreter, in place of compiled scalars: on x86-64
 * for processors without fma in hardware, where fma by software takes most of the time either way. Made by
 * jit/host/steps.c; the same bits as every other tier, as each step is loop_eval. */
#ifndef WEFT_JIT_MATH_STEPS_H
#define WEFT_JIT_MATH_STEPS_H

#include "jit/loops/loops.h"

/* Values have slots, in the order in which they are made: parameters first. An operand is one byte, its slot, or two bytes,
 * a constant: WM_CONST + the high part of its number, then the low part. A place is two bytes, from the start of the code.
 *
 *   pure operations   operands                     → the next slot
 *   MATH              number of the function, operands → the next slot
 *   LOAD              first constant of the table (two bytes), index → the next slot
 *   IF                condition, place             goes on there when it is false
 *   YIELD             slot, operand                the slot becomes the operand
 *   NEXT              place                        goes on there
 *   END               slot                         which is the next one
 *   RETURN            operand */
enum { WM_CONST = 246, WM_SLOTS = WM_CONST };

typedef struct WmStep { /* what a byte of code stands for */
  u8 op, type, from, reads; /* LoopOp, LoopType of the result and of the first operand, number of operands */
} WmStep;

extern const WmStep wm_steps[];
extern const u8 wm_code[];
extern const u16 wm_starts[]; /* of each function, in the order of wm_base */
extern const u64 wm_consts[];

f64 wm_run_f64(f64 a, f64 b, f64 c, u32 fn);
f32 wm_run_f32(f32 a, f32 b, f32 c, u32 fn);

#endif
