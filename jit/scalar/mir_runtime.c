/* mir_runtime.c — C functions that code emitted through MIR calls: upper levels of reductions, and operations MIR
 * lacks. */
#include <math.h>
#include <string.h>

#include "jit/scalar/mir_emitter.h"
#include "lang/halves.h"

/* ---- reductions ---------------------------------------------------------------------------- */

static f64 combine64(u64 op, f64 a, f64 b) { return op == LOOP_ADD ? a + b : a * b; }
static f32 combine32(u64 op, f32 a, f32 b) { return op == LOOP_ADD ? a + b : a * b; }

/* One element more at level 0 of what is above the emitted code's own level, by the rule of ir.md section 10. */
#define LANES(T, SUFFIX, FIELD, W)                                                              \
  static T lanes_sum_##SUFFIX(const MirLanes *l, T *lane) {                                     \
    for (u32 half = W / 2; half; half /= 2)                                                     \
      for (u32 i = 0; i < half; i++) lane[i] = combine##SUFFIX(l->op, lane[i], lane[i + half]); \
    return lane[0];                                                                             \
  }                                                                                             \
  static void lanes_add_##SUFFIX(MirLanes *l, T v, u32 level) {                                 \
    for (;; level++) {                                                                          \
      if (l->used <= level) l->used = level + 1, l->count[level] = 0;                           \
      T *lane = l->lane.FIELD[level];                                                           \
      u64 n = l->count[level]++;                                                                \
      if (n == 0)                                                                               \
        for (u32 i = 0; i < W; i++) lane[i] = l->op == LOOP_ADD ? (T)-0.0 : (T)1;               \
      lane[n % W] = combine##SUFFIX(l->op, lane[n % W], v);                                     \
      if (n + 1 < W * LOOP_BLOCK_TRIPS) return;                                                 \
      v = lanes_sum_##SUFFIX(l, lane);                                                          \
      l->count[level] = 0;                                                                      \
    }                                                                                           \
  }                                                                                             \
  void mir_lanes_push_f##SUFFIX(MirLanes *l, T *lane) {                                         \
    lanes_add_##SUFFIX(l, lanes_sum_##SUFFIX(l, lane), 0);                                      \
  }                                                                                             \
  void mir_lanes_end_f##SUFFIX(MirLanes *l, T *last) {                                          \
    if (l->any) lanes_add_##SUFFIX(l, *last, 0);                                                \
    for (u32 level = 0;; level++) {                                                             \
      bool above = false;                                                                       \
      for (u64 k = level + 1; k < l->used; k++) above |= l->count[k] != 0;                      \
      if (!l->count[level]) continue;                                                           \
      T v = lanes_sum_##SUFFIX(l, l->lane.FIELD[level]);                                        \
      *last = v;                                                                                \
      if (!above) return;                                                                       \
      l->count[level] = 0;                                                                      \
      lanes_add_##SUFFIX(l, v, level + 1);                                                      \
    }                                                                                           \
  }
LANES(f64, 64, d, 32)
LANES(f32, 32, f, 64)

#define ROWS(T, SUFFIX)                                                                    \
  static void rows_add_##SUFFIX(MirRows *r, T v, u32 level) {                              \
    for (;; level++) {                                                                     \
      if (r->used <= level) r->used = level + 1, r->count[level] = 0;                      \
      if (r->count[level] == 0) r->acc[level] = r->op == LOOP_ADD ? -0.0 : 1;              \
      v = combine##SUFFIX(r->op, (T)r->acc[level], v);                                     \
      r->acc[level] = (f64)v;                                                              \
      if (++r->count[level] < LOOP_ROW_BLOCK) return;                                      \
      r->count[level] = 0;                                                                 \
    }                                                                                      \
  }                                                                                        \
  void mir_rows_push_f##SUFFIX(MirRows *r, T *v) { rows_add_##SUFFIX(r, *v, 0); }          \
  void mir_rows_end_f##SUFFIX(MirRows *r, T *last) {                                       \
    if (r->any) rows_add_##SUFFIX(r, *last, 0);                                            \
    for (u32 level = 0;; level++) {                                                        \
      bool above = false;                                                                  \
      for (u64 k = level + 1; k < r->used; k++) above |= r->count[k] != 0;                 \
      if (!r->count[level]) continue;                                                      \
      *last = (T)r->acc[level];                                                            \
      if (!above) return;                                                                  \
      r->count[level] = 0;                                                                 \
      rows_add_##SUFFIX(r, (T)r->acc[level], level + 1);                                   \
    }                                                                                      \
  }                                                                                        \
  void mir_scan_push_f##SUFFIX(MirRows *r, T *total) {                                     \
    T local[16], scanned = 0, v = *total;                                                  \
    u32 top = 0;                                                                           \
    for (;; top++) {                                                                       \
      f64 identity = r->op == LOOP_ADD ? -0.0 : 1;                                         \
      if (r->used <= top) r->used = top + 1, r->count[top] = 0, r->before[top] = identity; \
      if (r->count[top] == 0) r->acc[top] = identity;                                      \
      v = local[top] = combine##SUFFIX(r->op, (T)r->acc[top], v);                          \
      r->acc[top] = (f64)v;                                                                \
      if (++r->count[top] < LOOP_SCAN_SEGMENT) break;                                      \
      r->count[top] = 0;                                                                   \
    }                                                                                      \
    for (u32 k = top + 1; k-- > 0;) {                                                      \
      T out = combine##SUFFIX(r->op, (T)r->before[k], local[k]);                           \
      if (k < top) r->before[k] = (f64)scanned;                                            \
      scanned = out;                                                                       \
    }                                                                                      \
    *total = scanned;                                                                      \
  }
ROWS(f64, 64)
ROWS(f32, 32)

/* ---- polls --------------------------------------------------------------------------------- */

u64 mir_poll(LoopCtx *ctx) {
  u32 answer = ctx->poll ? ctx->poll(ctx) : 0;
  if (ctx->poll && ctx->budget < 0) ctx->budget = 0; /* the next poll comes here again */
  return answer;
}

/* ---- operations ---------------------------------------------------------------------------- */

static u64 word64(f64 v) {
  u64 w;
  memcpy(&w, &v, 8);
  return w;
}
static f64 value64(u64 w) {
  f64 v;
  memcpy(&v, &w, 8);
  return v;
}
static u64 word32(f32 v) {
  u32 w;
  memcpy(&w, &v, 4);
  return w;
}
static f32 value32(u64 w) {
  u32 low = (u32)w;
  f32 v;
  memcpy(&v, &low, 4);
  return v;
}

/* By the one definition of loops_eval.c. */
static f64 eval64(LoopOp op, f64 a, f64 b, f64 c) {
  u64 w = 0;
  (void)loop_eval(op, LT_F64, LT_F64, word64(a), word64(b), word64(c), &w);
  return value64(w);
}
static f32 eval32(LoopOp op, f32 a, f32 b, f32 c) {
  u64 w = 0;
  (void)loop_eval(op, LT_F32, LT_F32, word32(a), word32(b), word32(c), &w);
  return value32(w);
}

#define FLOAT_OPS(X) \
  X(SQRT, 1) X(FLOOR, 1) X(CEIL, 1) X(TRUNC, 1) X(RINT, 1) X(ABS, 1) X(COPYSIGN, 2) X(MIN, 2) X(MAX, 2) X(FMA, 3)
#define PARAMS_1(T) T a
#define PARAMS_2(T) T a, T b
#define PARAMS_3(T) T a, T b, T c
#define ARGS_1 a, 0, 0
#define ARGS_2 a, b, 0
#define ARGS_3 a, b, c
#define DEFINE(OP, N)                                                                            \
  static f64 run64_##OP(PARAMS_##N(f64)) { return eval64(LOOP_##OP, ARGS_##N); }                 \
  static f32 run32_##OP(PARAMS_##N(f32)) { return eval32(LOOP_##OP, ARGS_##N); }
FLOAT_OPS(DEFINE)
static f32 run32_ROUND_F16(f32 a) { return f16_to_f32(f32_to_f16(a)); }
static f32 run32_ROUND_BF16(f32 a) { return bf16_to_f32(f32_to_bf16(a)); }
static u64 run_mulhi_u64(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
static u64 run_mulhi_i64(u64 a, u64 b) { return (u64)((__int128)(i64)a * (i64)b >> 64); }

typedef void (*Function)(void);

Function mir_runtime_op(LoopOp op, LoopType type) {
  switch (op) {
#define ROW(OP, N) \
  case LOOP_##OP: return type == LT_F64 ? (Function)run64_##OP : type == LT_F32 ? (Function)run32_##OP : NULL;
    FLOAT_OPS(ROW)
    case LOOP_ROUND_F16: return (Function)run32_ROUND_F16;
    case LOOP_ROUND_BF16: return (Function)run32_ROUND_BF16;
    case LOOP_MULHI: return type == LT_U64 ? (Function)run_mulhi_u64 : type == LT_I64 ? (Function)run_mulhi_i64 : NULL;
    default: return NULL;
  }
}

f32 mir_half_in(u64 bits) { return f16_to_f32((u16)bits); }
u64 mir_half_out(f32 v) { return f32_to_f16(v); }
f32 mir_brain_in(u64 bits) { return bf16_to_f32((u16)bits); }
u64 mir_brain_out(f32 v) { return f32_to_bf16(v); }
