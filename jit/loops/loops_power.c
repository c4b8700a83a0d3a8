/* loops_power.c — powers of floats by constants, step by step what `pow` of lang/math.loops does for them: for code
 * that is first written, and for exponents that become known later, as the trips of a loop are written out. */
#include "jit/loops/loops.h"

#include <math.h>
#include <string.h>

static u32 op3(const LoopMaker *m, LoopOp op, LoopType t, u32 a, u32 b, u32 c) {
  return m->node(m->ctx, (LoopNode){.op = (u8)op, .type = (u8)t, .a = a, .b = b, .c = c});
}
static u32 op2(const LoopMaker *m, LoopOp op, u32 a, u32 b) { return op3(m, op, LT_F64, a, b, 0); }
static u32 number(const LoopMaker *m, f64 v) { return m->number(m->ctx, LT_F64, v); }

/* a * b and what the product was rounded by. */
static u32 product(const LoopMaker *m, u32 a, u32 b, u32 *rest) {
  u32 p = op2(m, LOOP_MUL, a, b);
  *rest = op3(m, LOOP_FMA, LT_F64, a, b, op2(m, LOOP_NEG, p, 0));
  return p;
}

/* a + b, and a where that is 0 (whose sign a has) or no number. */
static u32 corrected(const LoopMaker *m, u32 a, u32 b) {
  u32 s = op2(m, LOOP_ADD, a, b), size = op2(m, LOOP_ABS, s, 0);
  return op3(m, LOOP_SELECT, LT_F64, op3(m, LOOP_GT, LT_I1, size, number(m, 0), 0), s, a);
}

static u32 whole_power(const LoopMaker *m, bool wide, u32 w, bool cube) {
  u32 low, rest, square = product(m, w, w, &low), by = cube ? w : square;
  if (wide) return op2(m, LOOP_MUL, square, by);
  u32 v = product(m, square, by, &rest), twice = cube ? low : op2(m, LOOP_ADD, low, low);
  return corrected(m, v, op3(m, LOOP_FMA, LT_F64, twice, by, rest));
}

static u32 root_power(const LoopMaker *m, bool wide, u32 w, bool half) {
  u32 rest, root = op2(m, LOOP_SQRT, w, 0), v;
  if (half) {
    v = op2(m, LOOP_ADD, root, number(m, 0));
  } else if (wide) {
    v = op2(m, LOOP_MUL, root, w);
  } else {
    u32 left = op3(m, LOOP_FMA, LT_F64, op2(m, LOOP_NEG, root, 0), root, w);
    u32 under = op2(m, LOOP_MUL, left, number(m, 0.5));
    v = product(m, root, w, &rest);
    v = corrected(m, v, op3(m, LOOP_FMA, LT_F64, under, root, rest));
  }
  u32 far = op3(m, LOOP_EQ, LT_I1, w, number(m, -(f64)INFINITY), 0);
  return op3(m, LOOP_SELECT, LT_F64, far, number(m, (f64)INFINITY), v);
}

u32 loop_known_power(const LoopMaker *m, LoopType t, u32 x, const LoopNode *exponent) {
  f64 y = 0;
  f32 narrow;
  if (exponent->op != LOOP_CONST) return 0;
  if (t == LT_F64) memcpy(&y, &exponent->imm, sizeof y);
  else if (t == LT_F32) memcpy(&narrow, &exponent->imm, sizeof narrow), y = (f64)narrow;
  else return 0;
  if (y == 0) return m->number(m->ctx, t, 1);
  if (y == 1) return x;
  if (y == 2) return op3(m, LOOP_MUL, t, x, x, 0);
  if (y != 3 && y != 4 && y != 0.5 && y != 1.5) return 0;
  bool wide = t == LT_F32;
  u32 w = wide ? op3(m, LOOP_CONVERT, LT_F64, x, 0, 0) : x;
  u32 v = y >= 3 ? whole_power(m, wide, w, y == 3) : root_power(m, wide, w, y == 0.5);
  return wide ? op3(m, LOOP_CONVERT, LT_F32, v, 0, 0) : v;
}
