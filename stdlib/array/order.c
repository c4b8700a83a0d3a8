/* order.c — sorting by 64-bit keys (see order.h): insertion for a few, merging for some, digits for many. */
#include "stdlib/array/order.h"
#include "stdlib/kernels/element.h"

#include <string.h>

/* COMPARED: comparisons by a function between two looks at the clock */
enum { FEW = 24, SOME = 768, DIGIT_BITS = 11, BUCKETS = 1 << DIGIT_BITS, MOST_RUNS = 8, COMPARED = 1 << 15 };

#define SIGN64 0x8000000000000000ull
#define NAN_KEY UINT64_MAX

static inline u64 key_f64(f64 v, bool *negative_zero) {
  if (v != v) return NAN_KEY;
  u64 b = bits_of_f64(v);
  if (v == 0) {
    *negative_zero |= b != 0;
    return SIGN64;
  }
  return b & SIGN64 ? ~b : b | SIGN64;
}

static inline u64 key_f32(f32 v, bool *negative_zero) {
  if (v != v) return NAN_KEY;
  u32 b = bits_of_f32(v);
  if (v == 0) {
    *negative_zero |= b != 0;
    return 0x80000000u;
  }
  return b & 0x80000000u ? ~b : b | 0x80000000u;
}

static bool make_some(u64 *keys, const void *xv, i64 from, i64 to, i64 stride, u32 dtype, bool descending) {
  bool negative_zero = false;
#define EACH(T, expr)                             \
  {                                               \
    const T *x = xv;                              \
    for (i64 i = from; i < to; i++) {             \
      T v = x[i * stride];                        \
      keys[i] = (expr);                           \
    }                                             \
    break;                                        \
  }
  switch (dtype) {
    case DT_i32: EACH(i32, (u32)v ^ 0x80000000u)
    case DT_i64: EACH(i64, (u64)v ^ SIGN64)
    case DT_u64: EACH(u64, v)
    case DT_f32: EACH(f32, key_f32(v, &negative_zero))
    case DT_f64: EACH(f64, key_f64(v, &negative_zero))
    default: EACH(u8, v)
  }
#undef EACH
  bool floats = dtype_kind(dtype) == DK_FLOAT;
  if (descending)
    for (i64 i = from; i < to; i++) keys[i] = floats && keys[i] == NAN_KEY ? NAN_KEY : ~keys[i];
  return negative_zero;
}

WeftStatus keys_make(Vm *vm, u64 *keys, const void *x, i64 n, i64 stride, u32 dtype, bool descending, bool *hidden) {
  Polled p = parts_in(vm, n, PART_ELEMENTS);
  *hidden = false;
  while (parts_next(&p)) *hidden |= make_some(keys, x, p.from, p.to, stride, dtype, descending);
  return p.status;
}

/* Keys of the part p of x, in a buffer of their own. */
static void make_part(u64 *keys, const Polled *p, const void *x, i64 stride, u32 dtype, bool descending) {
  (void)make_some(keys, (const char *)x + p->from * stride * dtype_bytes(dtype), 0, p->to - p->from, stride, dtype,
                  descending);
}

WeftStatus keys_count(Vm *vm, const void *x, i64 n, i64 stride, u32 dtype, bool descending, i64 *at, bool *done) {
  enum { BLOCK = 1024 };
  u64 keys[BLOCK], least = UINT64_MAX, most = 0;
  *done = false;
  if (n <= SOME || dtype_kind(dtype) == DK_FLOAT) return WEFT_OK;
  Polled p = parts_in(vm, n, BLOCK);
  while (parts_next(&p)) {
    make_part(keys, &p, x, stride, dtype, descending);
    for (i64 i = 0; i < p.to - p.from; i++) {
      least = keys[i] < least ? keys[i] : least;
      most = keys[i] > most ? keys[i] : most;
    }
    if (most - least >= (u64)n) return WEFT_OK;
  }
  if (p.status != WEFT_OK) return p.status;
  const u64 values = most - least + 1;
  i64 *counts = mem_alloc_zero(&vm->alloc, values * sizeof *counts), before = 0;
  if (!counts) return vm_error_memory(vm);
  p = parts_in(vm, n, BLOCK);
  while (parts_next(&p)) {
    make_part(keys, &p, x, stride, dtype, descending);
    for (i64 i = 0; i < p.to - p.from; i++) counts[keys[i] - least]++;
  }
  for (u64 v = 0; v < values; v++) {
    const i64 own = counts[v];
    counts[v] = before;
    before += own;
  }
  if (p.status == WEFT_OK) p = parts_in(vm, n, BLOCK);
  while (p.status == WEFT_OK && parts_next(&p)) {
    make_part(keys, &p, x, stride, dtype, descending);
    for (i64 i = 0; i < p.to - p.from; i++) at[counts[keys[i] - least]++] = p.from + i;
  }
  mem_free(&vm->alloc, counts, values * sizeof *counts);
  *done = p.status == WEFT_OK;
  return p.status;
}

bool key_is_nan(u64 key, u32 dtype) { return key == NAN_KEY && dtype_kind(dtype) == DK_FLOAT; }

void keys_value(u64 key, u32 dtype, bool descending, void *out) {
  bool is_nan = key_is_nan(key, dtype);
  if (descending && !is_nan) key = ~key;
  switch (dtype) {
    case DT_i32: *(i32 *)out = (i32)((u32)key ^ 0x80000000u); break;
    case DT_i64: *(i64 *)out = (i64)(key ^ SIGN64); break;
    case DT_u64: *(u64 *)out = key; break;
    case DT_f32:
      *(f32 *)out = is_nan ? (f32)NAN : of_bits_f32(key & 0x80000000u ? (u32)key & 0x7fffffffu : ~(u32)key);
      break;
    case DT_f64: *(f64 *)out = is_nan ? (f64)NAN : of_bits_f64(key & SIGN64 ? key & ~SIGN64 : ~key); break;
    default: *(u8 *)out = (u8)key;
  }
}

/* ---- four sorts for each kind of entry ----------------------------------------------------------- */

/* Insertion for a few; what consists of some runs is merged; digits for many. The bits of a digit: its counts stay in
 * the nearest cache. */

#define SORTS(NAME, T, KEY)                                                                        \
  static void NAME##_few(T *x, i64 n) {                                                            \
    for (i64 i = 1; i < n; i++) {                                                                  \
      T v = x[i];                                                                                  \
      i64 j = i;                                                                                   \
      for (; j > 0 && KEY(x[j - 1]) > KEY(v); j--) x[j] = x[j - 1];                                \
      x[j] = v;                                                                                    \
    }                                                                                              \
  }                                                                                                \
  static void NAME##_some(T *x, T *spare, i64 n) {                                                 \
    for (i64 i = 0; i < n; i += FEW) NAME##_few(x + i, n - i < FEW ? n - i : FEW);                 \
    T *from = x, *to = spare;                                                                      \
    for (i64 width = FEW; width < n; width *= 2) {                                                 \
      for (i64 i = 0; i < n; i += 2 * width) {                                                     \
        i64 a = i, mid = i + width < n ? i + width : n, b = mid, end = i + 2 * width < n ? i + 2 * width : n; \
        for (i64 k = i; k < end; k++) {                                                            \
          bool left = b >= end || (a < mid && KEY(from[a]) <= KEY(from[b]));                       \
          to[k] = left ? from[a] : from[b];                                                        \
          a += left;                                                                               \
          b += !left;                                                                              \
        }                                                                                          \
      }                                                                                            \
      T *t = from;                                                                                 \
      from = to;                                                                                   \
      to = t;                                                                                      \
    }                                                                                              \
    if (from != x) memcpy(x, from, (size_t)n * sizeof(T));                                         \
  }                                                                                                \
  /* Ascending runs that stand there already, their ends in `ends`; a run that falls strictly counts too and is turned \
   * round. 0: there are more than MOST_RUNS. */                                                   \
  static WeftStatus NAME##_runs(Vm *vm, T *x, i64 n, i64 *ends, u32 *count) {                      \
    bool falls[MOST_RUNS];                                                                         \
    *count = 0;                                                                                    \
    for (i64 i = 0; i < n;) {                                                                      \
      if (*count == MOST_RUNS) return *count = 0, WEFT_OK;                                         \
      bool down = i + 1 < n && KEY(x[i]) > KEY(x[i + 1]);                                          \
      for (i++; i < n && (KEY(x[i - 1]) > KEY(x[i])) == down; i++)                                 \
        if (i % PART_ELEMENTS == 0 && vm_poll(vm, 0) != WEFT_OK) return WEFT_ERROR;                \
      falls[*count] = down;                                                                        \
      ends[(*count)++] = i;                                                                        \
    }                                                                                              \
    for (u32 r = 0; r < *count; r++)                                                               \
      for (i64 i = r ? ends[r - 1] : 0, k = ends[r] - 1; falls[r] && i < k; i++, k--) {            \
        if (i % PART_ELEMENTS == 0 && vm_look(vm) != WEFT_OK) return WEFT_ERROR;                   \
        T t = x[i];                                                                                \
        x[i] = x[k];                                                                               \
        x[k] = t;                                                                                  \
      }                                                                                            \
    return WEFT_OK;                                                                                \
  }                                                                                                \
  /* Runs are merged by twos until there is one. */                                                \
  static WeftStatus NAME##_merge(Vm *vm, T *x, T *spare, i64 n, i64 *ends, u32 count) {            \
    T *from = x, *to = spare;                                                                      \
    while (count > 1) {                                                                            \
      u32 made = 0;                                                                                \
      for (u32 r = 0; r < count; r += 2) {                                                         \
        i64 a = r ? ends[r - 1] : 0, mid = ends[r], b = mid, end = r + 1 < count ? ends[r + 1] : mid, k = a; \
        while (a < mid && b < end) {                                                               \
          i64 stop = end - k < PART_ELEMENTS ? end : k + PART_ELEMENTS;                            \
          for (; k < stop && a < mid && b < end; k++) {                                            \
            T l = from[a], m = from[b];                                                            \
            bool left = KEY(l) <= KEY(m);                                                          \
            to[k] = left ? l : m;                                                                  \
            a += left;                                                                             \
            b += !left;                                                                            \
          }                                                                                        \
          if (vm_poll(vm, 0) != WEFT_OK) return WEFT_ERROR;                                        \
        }                                                                                          \
        if (copy_polled(vm, to + k, a < mid ? from + a : from + b, (size_t)(end - k) * sizeof(T)) != WEFT_OK) \
          return WEFT_ERROR;                                                                       \
        ends[made++] = end;                                                                        \
      }                                                                                            \
      count = made;                                                                                \
      T *t = from;                                                                                 \
      from = to;                                                                                   \
      to = t;                                                                                      \
    }                                                                                              \
    return from != x ? copy_polled(vm, x, from, (size_t)n * sizeof(T)) : WEFT_OK;                  \
  }                                                                                                \
  /* By digits of the key's distance from the least one, the lowest first: as many as the greatest distance has; of \
   * the low bits that all keys have alike, none. */                                               \
  static WeftStatus NAME##_many(Vm *vm, T *x, T *spare, i64 n) {                                   \
    i64 counts[BUCKETS];                                                                           \
    Polled p = parts_in(vm, n, PART_ELEMENTS);                                                     \
    u64 least = KEY(x[0]), most = least, differ = 0, first = least;                                \
    while (parts_next(&p))                                                                         \
      for (i64 i = p.from; i < p.to; i++) {                                                        \
        u64 key = KEY(x[i]);                                                                       \
        least = key < least ? key : least;                                                         \
        most = key > most ? key : most;                                                            \
        differ |= key ^ first;                                                                     \
      }                                                                                            \
    if (p.status != WEFT_OK || !differ) return p.status;                                           \
    u32 low = (u32)__builtin_ctzll(differ), bits = 64 - (u32)__builtin_clzll(most - least) - low;  \
    u32 digits = (bits + DIGIT_BITS - 1) / DIGIT_BITS, each = (bits + digits - 1) / digits;        \
    const u64 mask = ((u64)1 << each) - 1;                                                         \
    T *from = x, *to = spare;                                                                      \
    for (u32 d = 0; d < digits && p.status == WEFT_OK; d++) {                                      \
      u32 shift = low + d * each;                                                                  \
      memset(counts, 0, sizeof *counts * ((size_t)mask + 1));                                      \
      p = parts_in(vm, n, PART_ELEMENTS);                                                          \
      while (parts_next(&p))                                                                       \
        for (i64 i = p.from; i < p.to; i++) counts[(KEY(from[i]) - least) >> shift & mask]++;      \
      if (counts[(KEY(from[0]) - least) >> shift & mask] == n) continue;                           \
      i64 sum = 0;                                                                                 \
      for (u64 b = 0; b <= mask; b++) {                                                            \
        i64 own = counts[b];                                                                       \
        counts[b] = sum;                                                                           \
        sum += own;                                                                                \
      }                                                                                            \
      if (p.status != WEFT_OK) break;                                                              \
      p = parts_in(vm, n, PART_ELEMENTS / 4);                                                      \
      while (parts_next(&p))                                                                       \
        for (i64 i = p.from; i < p.to; i++) to[counts[(KEY(from[i]) - least) >> shift & mask]++] = from[i]; \
      T *t = from;                                                                                 \
      from = to;                                                                                   \
      to = t;                                                                                      \
    }                                                                                              \
    return p.status == WEFT_OK && from != x ? copy_polled(vm, x, from, (size_t)n * sizeof(T)) : p.status; \
  }                                                                                                \
  WeftStatus NAME##_sort(Vm *vm, T *x, T *spare, i64 n) {                                          \
    i64 ends[MOST_RUNS];                                                                           \
    u32 count;                                                                                     \
    if (n <= FEW) return NAME##_few(x, n), WEFT_OK;                                                \
    if (NAME##_runs(vm, x, n, ends, &count) != WEFT_OK) return WEFT_ERROR;                         \
    if (count) return NAME##_merge(vm, x, spare, n, ends, count);                                  \
    if (n > SOME) return NAME##_many(vm, x, spare, n);                                             \
    return NAME##_some(x, spare, n), WEFT_OK;                                                      \
  }
#define KEY_OF_KEY(e) (e)
#define KEY_OF_KEYED(e) ((e).key)
SORTS(keys, u64, KEY_OF_KEY)
SORTS(keyed, Keyed, KEY_OF_KEYED)

WeftStatus keyed_order(Vm *vm, const u64 *keys, Keyed *x, Keyed *spare, i64 n) {
  Polled p = parts_in(vm, n, PART_ELEMENTS);
  while (parts_next(&p))
    for (i64 i = p.from; i < p.to; i++) x[i] = (Keyed){keys[i], i};
  return p.status == WEFT_OK ? keyed_sort(vm, x, spare, n) : WEFT_ERROR;
}

WeftStatus positions_sort(Vm *vm, i64 *at, i64 *spare, i64 n, bool (*less)(const void *ctx, i64 a, i64 b),
                          const void *ctx) {
  i64 *from = at, *to = spare, steps = 0;
  for (i64 width = 1; width < n; width *= 2) {
    for (i64 i = 0; i < n; i += 2 * width) {
      i64 a = i, mid = i + width < n ? i + width : n, b = mid, end = i + 2 * width < n ? i + 2 * width : n;
      for (i64 k = i; k < end; k++) {
        bool left = b >= end || (a < mid && !less(ctx, from[b], from[a]));
        to[k] = left ? from[a++] : from[b++];
        if (++steps % COMPARED == 0 && vm_poll(vm, 0) != WEFT_OK) return WEFT_ERROR;
      }
    }
    i64 *t = from;
    from = to;
    to = t;
  }
  return from != at ? copy_polled(vm, at, from, (size_t)n * sizeof *at) : WEFT_OK;
}
