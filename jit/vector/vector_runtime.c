/* vector_runtime.c — C functions that emitted vector code calls: the upper levels of float reductions in the order
 * LANES (ir.md section 10). The emitted code adds a block's result to a lane of the first level; the rest is here. */
#include <string.h>

#include "jit/vector/vector_emitter.h"

#define LANES(T, FIELD, W)                                                                 \
  static T sum_##FIELD(const VecLanes *l, T *lane) {                                       \
    for (u32 half = W / 2; half; half /= 2)                                                \
      for (u32 i = 0; i < half; i++)                                                       \
        lane[i] = l->op == LOOP_ADD ? lane[i] + lane[i + half] : lane[i] * lane[i + half]; \
    return lane[0];                                                                        \
  }                                                                                        \
  static void clear_##FIELD(const VecLanes *l, T *lane) {                                  \
    for (u32 i = 0; i < W; i++) lane[i] = l->op == LOOP_ADD ? (T)-0.0 : (T)1;              \
  }                                                                                        \
  static void add_##FIELD(VecLanes *l, T v, u32 level) {                                   \
    for (;; level++) {                                                                     \
      u64 *count = level ? &l->counts[level - 1] : &l->count;                              \
      T *lane = l->lane[level].FIELD;                                                      \
      if (l->used <= level) l->used = level + 1, *count = 0;                               \
      u64 n = (*count)++;                                                                  \
      if (n == 0) clear_##FIELD(l, lane);                                                  \
      lane[n % W] = l->op == LOOP_ADD ? lane[n % W] + v : lane[n % W] * v;                 \
      if (n + 1 < W * LOOP_BLOCK_TRIPS) return;                                            \
      v = sum_##FIELD(l, lane);                                                            \
      *count = 0;                                                                          \
    }                                                                                      \
  }                                                                                        \
  static void end_##FIELD(VecLanes *l) {                                                   \
    for (u32 level = 0;; level++) {                                                        \
      bool above = false;                                                                  \
      u64 *count = level ? &l->counts[level - 1] : &l->count;                              \
      for (u64 k = level + 1; k < l->used; k++) above |= l->counts[k - 1] != 0;            \
      if (!*count) continue;                                                               \
      T v = sum_##FIELD(l, l->lane[level].FIELD);                                          \
      *count = 0;                                                                          \
      if (!above) {                                                                        \
        l->lane[0].FIELD[0] = v;                                                           \
        return;                                                                            \
      }                                                                                    \
      add_##FIELD(l, v, level + 1);                                                        \
    }                                                                                      \
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

#define ROWS(T, FIELD, W)                                                                                      \
  static void join_##FIELD(u64 op, u64 n, T *out, const T *a, const T *b) {                                    \
    if (op == LOOP_ADD) for (u64 i = 0; i < n; i++) out[i] = a[i] + b[i];                                      \
    else for (u64 i = 0; i < n; i++) out[i] = a[i] * b[i];                                                     \
  }                                                                                                            \
  static void rows_add_##FIELD(u64 *used, u64 *count, u64 op, u64 n, T *value, T *acc, u64 pitch, u32 level) { \
    for (;; level++) {                                                                                         \
      T *own = acc + level * pitch;                                                                            \
      if (*used <= level) *used = level + 1, count[level] = 0;                                                 \
      if (count[level]) join_##FIELD(op, n, own, own, value);                                                  \
      else memcpy(own, value, n * sizeof *own);                                                                \
      if (++count[level] < LOOP_ROW_BLOCK) return;                                                             \
      count[level] = 0;                                                                                        \
      memcpy(value, own, n * sizeof *own);                                                                     \
    }                                                                                                          \
  }                                                                                                            \
  static void rows_end_##FIELD(u64 *used, u64 *count, u64 op, u64 n, T *value, T *acc, u64 pitch) {            \
    for (u32 level = 0; level < *used; level++) {                                                              \
      bool above = false;                                                                                      \
      for (u64 k = level + 1; k < *used; k++) above |= count[k] != 0;                                          \
      if (!count[level]) continue;                                                                             \
      memcpy(value, acc + level * pitch, n * sizeof *value);                                                   \
      if (!above) return;                                                                                      \
      count[level] = 0;                                                                                        \
      rows_add_##FIELD(used, count, op, n, value, acc, pitch, level + 1);                                      \
    }                                                                                                          \
  }                                                                                                            \
  static void scan_add_##FIELD(VecRows *r, u64 op) {                                                           \
    u32 top = 0;                                                                                               \
    for (;; top++) { /* acc: the totals so far within the segment of this level; the first is exact */         \
      bool fresh = r->used <= top;                                                                             \
      if (fresh) r->used = top + 1, r->count[top] = 0;                                                         \
      for (u32 i = 0; fresh && i < W; i++) r->before[top].FIELD[i] = op == LOOP_ADD ? (T)-0.0 : (T)1;          \
      if (r->count[top]) join_##FIELD(op, r->n, r->acc[top].FIELD, r->acc[top].FIELD, r->value.FIELD);         \
      else r->acc[top] = r->value;                                                                             \
      if (++r->count[top] < LOOP_SCAN_SEGMENT) break;                                                          \
      r->count[top] = 0;                                                                                       \
      r->value = r->acc[top];                                                                                  \
    }                                                                                                          \
    for (u32 k = top + 1; k-- > 0;) {                                                                          \
      VecRow above = r->value;                                                                                 \
      join_##FIELD(op, r->n, r->value.FIELD, r->before[k].FIELD, r->acc[k].FIELD);                             \
      if (k < top) r->before[k] = above;                                                                       \
    }                                                                                                          \
  }
ROWS(f64, d, 32)
ROWS(f32, f, 64)

void vec_rows_push(VecRows *r, u64 op, u64 type) {
  if (type == LT_F64) rows_add_d(&r->used, r->count, op, r->n, r->value.d, r->acc[0].d, COUNT_OF(r->value.d), 0);
  else rows_add_f(&r->used, r->count, op, r->n, r->value.f, r->acc[0].f, COUNT_OF(r->value.f), 0);
}

void vec_rows_end(VecRows *r, u64 op, u64 type) {
  if (type == LT_F64) rows_end_d(&r->used, r->count, op, r->n, r->value.d, r->acc[0].d, COUNT_OF(r->value.d));
  else rows_end_f(&r->used, r->count, op, r->n, r->value.f, r->acc[0].f, COUNT_OF(r->value.f));
}

static void strip_add(VecStrip *s, u64 op, u64 type) {
  if (type == LT_F64) rows_add_d(&s->used, s->count, op, s->n, s->value.d, s->acc[0].d, COUNT_OF(s->value.d), 0);
  else rows_add_f(&s->used, s->count, op, s->n, s->value.f, s->acc[0].f, COUNT_OF(s->value.f), 0);
}

void vec_strip_push(VecStrip *s, u64 op, u64 type) {
  strip_add(s, op, type);
  for (u64 i = 0; i < s->n; i++) {
    if (type == LT_F64) s->value.d[i] = op == LOOP_ADD ? -0.0 : 1;
    else s->value.f[i] = op == LOOP_ADD ? -0.0f : 1;
  }
}

void vec_strip_end(VecStrip *s, u64 op, u64 type) {
  if (!s->used) return; /* one block */
  strip_add(s, op, type);
  if (type == LT_F64) rows_end_d(&s->used, s->count, op, s->n, s->value.d, s->acc[0].d, COUNT_OF(s->value.d));
  else rows_end_f(&s->used, s->count, op, s->n, s->value.f, s->acc[0].f, COUNT_OF(s->value.f));
}

void vec_scan_push(VecRows *r, u64 op, u64 type) {
  if (type == LT_F64) scan_add_d(r, op);
  else scan_add_f(r, op);
}
