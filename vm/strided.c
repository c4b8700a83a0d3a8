/* strided.c — copying and converting elements between strided places (see strided.h). */
#include "vm/vm.h"

#include <string.h>

/* A walk over all but the innermost axis. Axes of size 1 are dropped and neighbours that run on in both
 * places are joined, so that `inner` is as long as it can be. */
typedef struct Walk {
  u32 rank; /* of the outer axes */
  i64 dims[ARRAY_MAX_RANK], at[ARRAY_MAX_RANK];
  i64 ds[ARRAY_MAX_RANK], ss[ARRAY_MAX_RANK];
  i64 inner, inner_ds, inner_ss;
  i64 d, s; /* element offsets of the current row */
} Walk;

static bool walk_start(Walk *w, u32 rank, const i64 *dims, const i64 *ds, const i64 *ss) {
  u32 n = 0;
  for (u32 k = 0; k < rank; k++) {
    if (dims[k] == 0) return false;
    if (dims[k] == 1) continue;
    if (n && w->ds[n - 1] == dims[k] * ds[k] && w->ss[n - 1] == dims[k] * ss[k]) {
      w->dims[n - 1] *= dims[k];
      w->ds[n - 1] = ds[k];
      w->ss[n - 1] = ss[k];
      continue;
    }
    w->dims[n] = dims[k];
    w->ds[n] = ds[k];
    w->ss[n] = ss[k];
    w->at[n++] = 0;
  }
  w->d = w->s = 0;
  if (n == 0) {
    w->inner = 1;
    w->inner_ds = w->inner_ss = 1;
    w->rank = 0;
    return true;
  }
  w->rank = n - 1;
  w->inner = w->dims[n - 1];
  w->inner_ds = w->ds[n - 1];
  w->inner_ss = w->ss[n - 1];
  return true;
}

static bool walk_next(Walk *w) {
  for (u32 k = w->rank; k-- > 0;) {
    w->d += w->ds[k];
    w->s += w->ss[k];
    if (++w->at[k] < w->dims[k]) return true;
    w->d -= w->ds[k] * w->dims[k];
    w->s -= w->ss[k] * w->dims[k];
    w->at[k] = 0;
  }
  return false;
}

enum { LONG_ROW = 512 /* elements that are worth stores past the caches */, FEW = 32 };

typedef struct Wide {
  u64 half[2];
} Wide;

#define COPY_ROW(T)                                                                                          \
  {                                                                                                          \
    T *restrict d = (T *)dst + w.d;                                                                          \
    const T *restrict s = (const T *)src + w.s;                                                              \
    if (w.inner_ds == 1)                                                                                \
      for (i64 i = 0; i < w.inner; i++) d[i] = s[i * w.inner_ss];                                            \
    else                                                                                                     \
      for (i64 i = 0; i < w.inner; i++) d[i * w.inner_ds] = s[i * w.inner_ss];                               \
  }

static void copy_rows(u32 bytes, Walk w, void *dst, const void *src, bool stream) {
  stream = stream && w.inner_ds == 1 && w.inner_ss == 1 && w.inner >= LONG_ROW;
  do {
    if (stream) {
      stream_copy((char *)dst + w.d * (i64)bytes, (const char *)src + w.s * (i64)bytes, w.inner * bytes);
      continue;
    }
    if (w.inner_ds == 1 && w.inner_ss == 1 && w.inner > 8) {
      memcpy((char *)dst + w.d * (i64)bytes, (const char *)src + w.s * (i64)bytes, (size_t)w.inner * bytes);
      continue;
    }
    switch (bytes) {
      case 1: COPY_ROW(u8) break;
      case 2: COPY_ROW(u16) break;
      case 4: COPY_ROW(u32) break;
      case 8: COPY_ROW(u64) break;
      default: COPY_ROW(Wide) break;
    }
  } while (walk_next(&w));
}

/* Transposed: what lies in a line of the source, of some hundred bytes' worth of rows, goes through a buffer, from which parts of the
 * result's rows are stored whole. Rows of the buffer are a line apart more than they are long: else they would share places in the cache. */
enum { LINE = 64, TILE_ROW = 512, TILE_BYTES = 8192 };

static void copy_bytes(void *to, const void *from, i64 bytes) { memcpy(to, from, (size_t)bytes); }

#define TILE(T)                                                                                         \
  {                                                                                                     \
    enum { WIDE = LINE / sizeof(T), MOST = TILE_BYTES / LINE > TILE_ROW / sizeof(T) ? TILE_ROW / sizeof(T) : TILE_BYTES / LINE, APART = MOST + WIDE }; \
    _Alignas(LINE) T tile[WIDE * APART];                                                                \
    i64 pitch = small ? apart : APART;                                                                  \
    for (i64 i = 0; i < w.inner; i += MOST)                                                             \
      for (i64 j = 0; j < rows; j += WIDE) {                                                            \
        i64 n = w.inner - i < MOST ? w.inner - i : MOST, wide = rows - j < WIDE ? rows - j : WIDE;      \
        const T *s = (const T *)src + w.s + i * w.inner_ss + j;                                         \
        T *d = (T *)dst + w.d + j * apart + i;                                                          \
        T *to = small ? d : tile;                                                                       \
        for (i64 k = 0; k < n; k++, s += w.inner_ss) {                                                  \
          __builtin_prefetch(s + 2 * WIDE);                                                             \
          if (wide == WIDE)                                                                             \
            _Pragma("GCC unroll 8") for (i64 l = 0; l < WIDE; l++) to[l * pitch + k] = s[l];            \
          else                                                                                          \
            for (i64 l = 0; l < wide; l++) to[l * pitch + k] = s[l];                                    \
        }                                                                                               \
        for (i64 l = 0; l < wide && !small; l++) put(d + l * apart, tile + l * APART, n * (i64)sizeof(T)); \
      }                                                                                                 \
  }

/* The innermost of the outer axes is one along which the source lies together. */
static void copy_across(u32 bytes, Walk w, void *dst, const void *src, bool stream) {
  u32 last = --w.rank;
  i64 rows = w.dims[last], apart = w.ds[last];
  i64 all = rows * w.inner * (i64)bytes;
  bool small = all <= TILE_BYTES;
  void (*put)(void *, const void *, i64) = stream ? stream_copy : copy_bytes;
  do {
    switch (bytes) {
      case 1: TILE(u8) break;
      case 4: TILE(u32) break;
      default: TILE(u64) break;
    }
  } while (walk_next(&w));
}

static bool goes_across(u32 bytes, const Walk *w) {
  bool common = bytes == 8 || bytes == 4 || bytes == 1;
  return common && w->rank && w->ss[w->rank - 1] == 1 && w->inner_ds == 1 && w->inner_ss != 1 && w->inner > FEW;
}

typedef struct Copy {
  u32 bytes, axis; /* axis: that parts share; w.rank is the innermost */
  bool across, stream;
  Walk w;
  i64 count, each; /* of the axis: all of it, and a part's */
  void *dst;
  const void *src;
} Copy;

static void copy_some(void *ctx, i64 part) {
  const Copy *c = ctx;
  Walk w = c->w;
  i64 first = part * c->each, n = c->count - first < c->each ? c->count - first : c->each;
  if (c->axis == w.rank) {
    w.d = first * w.inner_ds, w.s = first * w.inner_ss;
    w.inner = n;
  } else {
    w.d = first * w.ds[c->axis], w.s = first * w.ss[c->axis];
    w.dims[c->axis] = n;
  }
  if (c->across) copy_across(c->bytes, w, c->dst, c->src, c->stream);
  else copy_rows(c->bytes, w, c->dst, c->src, c->stream);
  if (c->stream) stream_done();
}

void strided_copy(Vm *vm, u32 bytes, u32 rank, const i64 *dims, void *dst, const i64 *dst_strides, const void *src, const i64 *src_strides) {
  enum { PARTS = 64, LINES = 64 /* elements that are whole lines, whatever they are */ };
  Copy c = {.bytes = bytes, .dst = dst, .src = src};
  if (!walk_start(&c.w, rank, dims, dst_strides, src_strides)) return;
  i64 total = c.count = c.w.inner;
  c.axis = c.w.rank;
  for (u32 k = c.w.rank; k-- > 0; total *= c.w.dims[k])
    if (c.w.dims[k] >= c.count) c.axis = k, c.count = c.w.dims[k];
  c.across = goes_across(bytes, &c.w);
  c.stream = stream_worth(total * bytes, !c.across);
  c.each = c.count;
  if (vm && total >= vm->tunables.parallel_elements && pool_threads(vm) > 1) {
    c.each = c.count / PARTS + 1;
    if (c.each >= LINES / 4) c.each = (c.each + LINES - 1) / LINES * LINES;
    (void)!pool_run(vm, (c.count + c.each - 1) / c.each, true, copy_some, &c); /* whole: nothing is polled, so nothing is raised */
    return;
  }
  copy_some(&c, 0);
}

#define FILL_ROW(T)                                                                   \
  {                                                                                   \
    T *d = (T *)dst + w.d, v;                                                         \
    memcpy(&v, element, sizeof v);                                                    \
    if (w.inner_ds == 1)                                                              \
      for (i64 i = 0; i < w.inner; i++) d[i] = v;                                     \
    else                                                                              \
      for (i64 i = 0; i < w.inner; i++) d[i * w.inner_ds] = v;                        \
  }

void strided_fill(u32 bytes, u32 rank, const i64 *dims, void *dst, const i64 *dst_strides, const void *element) {
  Walk w;
  if (!walk_start(&w, rank, dims, dst_strides, dst_strides)) return;
  do {
    switch (bytes) {
      case 1: FILL_ROW(u8) break;
      case 2: FILL_ROW(u16) break;
      case 4: FILL_ROW(u32) break;
      case 8: FILL_ROW(u64) break;
      default: FILL_ROW(Wide) break;
    }
  } while (walk_next(&w));
}

#define CONVERT_ROW(D, S)                                                                 \
  {                                                                                       \
    D *d = (D *)dst + w.d;                                                                \
    const S *s = (const S *)src + w.s;                                                    \
    for (i64 i = 0; i < w.inner; i++) d[i * w.inner_ds] = (D)s[i * w.inner_ss];           \
  }
#define CONVERT_FROM(D)                                   \
  switch (src_dtype) {                                    \
    case DT_bool:                                         \
    case DT_u8: CONVERT_ROW(D, u8) break;                 \
    case DT_i32: CONVERT_ROW(D, i32) break;               \
    case DT_i64: CONVERT_ROW(D, i64) break;               \
    case DT_u32: CONVERT_ROW(D, u32) break;               \
    case DT_u64: CONVERT_ROW(D, u64) break;               \
    case DT_f32: CONVERT_ROW(D, f32) break;               \
    case DT_f64: CONVERT_ROW(D, f64) break;               \
    default: break;                                       \
  }

void strided_convert(u32 rank, const i64 *dims, u32 dst_dtype, void *dst, const i64 *dst_strides, u32 src_dtype,
                     const void *src, const i64 *src_strides) {
  if (dst_dtype == src_dtype) {
    strided_copy(NULL, dtype_bytes(dst_dtype), rank, dims, dst, dst_strides, src, src_strides);
    return;
  }
  Walk w;
  if (!walk_start(&w, rank, dims, dst_strides, src_strides)) return;
  do {
    switch (dst_dtype) {
      case DT_bool: CONVERT_FROM(bool) break;
      case DT_u8: CONVERT_FROM(u8) break;
      case DT_i32: CONVERT_FROM(i32) break;
      case DT_i64: CONVERT_FROM(i64) break;
      case DT_u32: CONVERT_FROM(u32) break;
      case DT_u64: CONVERT_FROM(u64) break;
      case DT_f32: CONVERT_FROM(f32) break;
      case DT_f64: CONVERT_FROM(f64) break;
      default: break;
    }
  } while (walk_next(&w));
}
