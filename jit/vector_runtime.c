/* vector_runtime.c — C functions that emitted vector code calls: the upper levels of float reductions in the order LANES
 * (ir.md section 10). The emitted code adds a block's result to a lane of the first level; the rest is here. */
#include "jit/vector_emitter.h"

#define LANES(T, FIELD, W)                                                                            \
  static T sum_##FIELD(const VecLanes *l, T *lane) {                                                  \
    for (u32 half = W / 2; half; half /= 2)                                                           \
      for (u32 i = 0; i < half; i++) lane[i] = l->op == LOOP_ADD ? lane[i] + lane[i + half] : lane[i] * lane[i + half]; \
    return lane[0];                                                                                   \
  }                                                                                                   \
  static void clear_##FIELD(const VecLanes *l, T *lane) {                                             \
    for (u32 i = 0; i < W; i++) lane[i] = l->op == LOOP_ADD ? (T)-0.0 : (T)1;                         \
  }                                                                                                   \
  static void add_##FIELD(VecLanes *l, T v, u32 level) {                                              \
    for (;; level++) {                                                                                \
      u64 *count = level ? &l->counts[level - 1] : &l->count;                                         \
      T *lane = l->lane[level].FIELD;                                                                 \
      if (l->used <= level) l->used = level + 1, *count = 0;                                          \
      u64 n = (*count)++;                                                                             \
      if (n == 0) clear_##FIELD(l, lane);                                                             \
      lane[n % W] = l->op == LOOP_ADD ? lane[n % W] + v : lane[n % W] * v;                            \
      if (n + 1 < W * LOOP_BLOCK_TRIPS) return;                                                       \
      v = sum_##FIELD(l, lane);                                                                       \
      *count = 0;                                                                                     \
    }                                                                                                 \
  }                                                                                                   \
  static void end_##FIELD(VecLanes *l) {                                                              \
    for (u32 level = 0;; level++) {                                                                   \
      bool above = false;                                                                             \
      u64 *count = level ? &l->counts[level - 1] : &l->count;                                         \
      for (u64 k = level + 1; k < l->used; k++) above |= l->counts[k - 1] != 0;                       \
      if (!*count) continue;                                                                          \
      T v = sum_##FIELD(l, l->lane[level].FIELD);                                                     \
      *count = 0;                                                                                     \
      if (!above) {                                                                                   \
        l->lane[0].FIELD[0] = v;                                                                      \
        return;                                                                                       \
      }                                                                                               \
      add_##FIELD(l, v, level + 1);                                                                   \
    }                                                                                                 \
  }
LANES(f64, d, 32)
LANES(f32, f, 64)

void vec_lanes_begin(VecLanes *l, u64 op, u64 type) {
  l->op = op;
  l->type = type;
  l->count = 0;
  l->used = 1;
  if (type == LT_F64) clear_d(l, l->lane[0].d);
  else clear_f(l, l->lane[0].f);
}

void vec_lanes_carry(VecLanes *l) {
  l->count = 0;
  if (l->type == LT_F64) {
    add_d(l, sum_d(l, l->lane[0].d), 1);
    clear_d(l, l->lane[0].d);
  } else {
    add_f(l, sum_f(l, l->lane[0].f), 1);
    clear_f(l, l->lane[0].f);
  }
}

void vec_lanes_end(VecLanes *l) {
  if (l->type == LT_F64) end_d(l);
  else end_f(l);
}
