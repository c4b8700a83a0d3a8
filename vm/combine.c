/* combine.c — see combine.h. */
#include "vm/combine.h"

#include "lang/bytecode.h"

typedef void (*Row)(u32 op, i64 n, void *to, i64 to_step, const void *from, i64 from_step);

#define EACH(T, W, OP)                                                                          \
  if (to_step == 1 && from_step == 1)                                                           \
    for (i64 i = 0; i < n; i++) to[i] = (T)((W)to[i] OP (W)from[i]);                            \
  else if (to_step == 1 && from_step == 0)                                                      \
    for (i64 i = 0, k = n; i < k; i++) to[i] = (T)((W)to[i] OP value);                          \
  else                                                                                          \
    for (i64 i = 0; i < n; i++) to[i * to_step] = (T)((W)to[i * to_step] OP (W)from[i * from_step]);

/* W: in which it is computed. */
#define ROW(T, W)                                                                                      \
  static void row_##T(u32 op, i64 n, void *at, i64 to_step, const void *with, i64 from_step) {         \
    T *restrict to = at;                                                                               \
    const T *restrict from = with;                                                                     \
    const W value = (W)*from;                                                                          \
    if (op == BC_add) {                                                                                \
      EACH(T, W, +)                                                                                    \
    } else if (op == BC_sub) {                                                                         \
      EACH(T, W, -)                                                                                    \
    } else {                                                                                           \
      EACH(T, W, *)                                                                                    \
    }                                                                                                  \
  }
ROW(f64, f64)
ROW(f32, f32)
ROW(u64, u64)
ROW(u32, u32)
ROW(u8, u32)

static Row row_of(u32 dtype) {
  switch (dtype) {
    case DT_f64: return row_f64;
    case DT_f32: return row_f32;
    case DT_i64:
    case DT_u64: return row_u64;
    case DT_i32:
    case DT_u32: return row_u32;
    case DT_u8: return row_u8;
    default: return NULL;
  }
}

/* The bytes that the elements lie in, from *begin to before *end. */
static void extent(u32 bytes, u32 rank, const i64 *dims, const void *at, const i64 *strides, uintptr_t *begin,
                   uintptr_t *end) {
  i64 low = 0, high = 0;
  for (u32 d = 0; d < rank; d++) {
    i64 far = (dims[d] - 1) * strides[d];
    if (far < 0) low += far;
    else high += far;
  }
  *begin = (uintptr_t)at + (uintptr_t)(low * (i64)bytes);
  *end = (uintptr_t)at + (uintptr_t)((high + 1) * (i64)bytes);
}

bool combine_in_place(u32 op, u32 dtype, u32 rank, const i64 *dims, void *to, const i64 *to_strides, const void *from,
                      const i64 *from_strides) {
  Row row = row_of(dtype);
  u32 bytes = dtype_bytes(dtype), last = rank - 1;
  i64 at[ARRAY_MAX_RANK] = {0};
  uintptr_t to_begin, to_end, from_begin, from_end;
  if (!row || rank == 0 || (op != BC_add && op != BC_sub && op != BC_mul)) return false;
  for (u32 d = 0; d < rank; d++)
    if (dims[d] == 0) return true;
  extent(bytes, rank, dims, to, to_strides, &to_begin, &to_end);
  extent(bytes, rank, dims, from, from_strides, &from_begin, &from_end);
  if (to_begin < from_end && from_begin < to_end) return false;
  char *out = to;
  const char *in = from;
  for (;;) {
    row(op, dims[last], out, to_strides[last], in, from_strides[last]);
    u32 d = last;
    for (; d > 0; d--) { /* the next row */
      out += to_strides[d - 1] * (i64)bytes;
      in += from_strides[d - 1] * (i64)bytes;
      if (++at[d - 1] < dims[d - 1]) break;
      out -= to_strides[d - 1] * dims[d - 1] * (i64)bytes;
      in -= from_strides[d - 1] * dims[d - 1] * (i64)bytes;
      at[d - 1] = 0;
    }
    if (d == 0) return true;
  }
}
