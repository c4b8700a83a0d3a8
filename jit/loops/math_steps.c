/* math_steps.c — runs the functions of lang/math.loops step by step (see math_steps.h). */
#ifdef __x86_64__
#include "jit/loops/math_steps.h"

#include <string.h>

static u64 operand(const u8 **at, const u64 *slots) {
  u32 byte = *(*at)++;
  return byte < WM_CONST ? slots[byte] : wm_consts[(byte - WM_CONST) << 8 | *(*at)++];
}

static u32 place(const u8 **at) {
  u32 low = *(*at)++;
  return low | (u32) * (*at)++ << 8;
}

/* Functions use only such as were defined before them. */
static u64 run(u32 fn, const u64 args[3]) {
  u64 slots[WM_SLOTS], x[3] = {0};
  const u8 *at = wm_code + wm_starts[fn];
  u32 next = *at++;
  memcpy(slots, args, sizeof x);
  for (;;) {
    const WmStep *s = &wm_steps[*at++];
    u32 first = s->op == LOOP_MATH || s->op == LOOP_YIELD || s->op == LOOP_END ? *at++ : s->op == LOOP_LOAD ? place(&at) : 0;
    for (u32 i = 0; i < s->reads; i++) x[i] = operand(&at, slots);
    switch (s->op) {
      case LOOP_MATH: slots[next++] = run(first, x); break;
      case LOOP_LOAD: slots[next++] = wm_consts[first + x[0]]; break;
      case LOOP_YIELD: slots[first] = x[0]; break;
      case LOOP_END: next = first; break;
      case LOOP_RETURN: return x[0];
      case LOOP_IF:
      case LOOP_NEXT:
        first = place(&at);
        if (s->op == LOOP_NEXT || !x[0]) at = wm_code + first;
        break;
      default: (void)loop_eval((LoopOp)s->op, (LoopType)s->type, (LoopType)s->from, x[0], x[1], x[2], &slots[next++]); break;
    }
  }
}

f64 wm_run_f64(f64 a, f64 b, f64 c, u32 fn) {
  u64 x[3];
  memcpy(&x[0], &a, sizeof a);
  memcpy(&x[1], &b, sizeof b);
  memcpy(&x[2], &c, sizeof c);
  x[0] = run(fn, x);
  memcpy(&a, x, sizeof a);
  return a;
}

f32 wm_run_f32(f32 a, f32 b, f32 c, u32 fn) {
  u64 x[3] = {0};
  memcpy(&x[0], &a, sizeof a);
  memcpy(&x[1], &b, sizeof b);
  memcpy(&x[2], &c, sizeof c);
  x[0] = run(fn, x);
  memcpy(&a, x, sizeof a);
  return a;
}
#else
typedef int nothing_here; /* elsewhere the scalars are compiled */
#endif
