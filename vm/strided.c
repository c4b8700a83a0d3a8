/* strided.c — copying and converting elements between strided places (see strided.h). */
#include "lang/halves.h"
#include "vm/vm.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

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

enum { LONG_ROW = 512 /* elements that are worth non-temporal stores */,
       AHEAD = 4096 /* bytes that are prefetched of them */, FEW = 32 };

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
      const char *from = (const char *)src + w.s * (i64)bytes;
      stream_copy_ahead((char *)dst + w.d * (i64)bytes, from, w.inner * bytes,
                        (uintptr_t)from + (cpu_has(CPU_PAGES) ? PAGES_AHEAD : AHEAD), 1);
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

/* Transposed: a line of each of so many rows of the source goes through a buffer, from which parts of the result's
 * rows are stored whole. Of elements of 8 bytes the next lines are read while those are stored: reading, storing
 * and prefetches that are spread evenly take as long as a copy, by turns a fifth longer. Rows of the buffer are two
 * lines apart more than they are long: else they would share places in the cache. */
enum { LINE = 64, TILE_ROW = 512, TILE_BYTES = 8192, SMALL_BYTES = 20 << 10 /* no buffer for so few */,
       SHORT_ROW = 48 /* the line after the next would belong to another tile */,
       FARTHER = 2 /* the second cache, for what is prefetched */ };

static void copy_bytes(void *to, const void *from, i64 bytes) { memcpy(to, from, (size_t)bytes); }

#ifdef __x86_64__
#define FOR_AVX512 __attribute__((target("avx512f,avx512dq")))
/* By shuffles: fewer instructions, of which each waits for several before. */
FOR_AVX512 void strided_transpose_square(void *to, i64 pitch, const void *from, i64 apart, i64 next) {
  StridedRow r[8];
  UNROLL(8) for (u32 i = 0; i < 8; i++) r[i] = _mm512_loadu_pd((const double *)from + i * apart),
      __builtin_prefetch((const double *)from + i * apart + next);
  strided_square(r);
  UNROLL(8) for (u32 i = 0; i < 8; i++) _mm512_storeu_pd((double *)to + i * pitch, r[i]);
}

/* The same by pairs of columns: four pairs of elements become a vector while they are loaded, so that one operation
 * each is left to do. */
FOR_AVX512 static void transpose_pairs(double *to, i64 pitch, const double *from, i64 apart, i64 next) {
#define PAIR(ROW) _mm_loadu_pd(from + (ROW) * apart)
#define AND_PAIR(V, MASK, ROW) _mm512_mask_broadcast_f64x2(V, MASK, PAIR(ROW))
#define EVERY_OTHER(ROW) \
  AND_PAIR(AND_PAIR(AND_PAIR(_mm512_castpd128_pd512(PAIR(ROW)), 0x0C, ROW + 2), 0x30, ROW + 4), 0xC0, ROW + 6)
  const double *ahead = from + next;
  UNROLL(1) for (u32 k = 0; k < 8; k += 2, from += 2, to += 2 * pitch, ahead += 2 * apart) {
    __m512d even = EVERY_OTHER(0), odd = EVERY_OTHER(1);
    __builtin_prefetch(ahead);
    __builtin_prefetch(ahead + apart);
    _mm512_storeu_pd(to, _mm512_unpacklo_pd(even, odd));
    _mm512_storeu_pd(to + pitch, _mm512_unpackhi_pd(even, odd));
  }
}

/* With AVX2: two pairs, of every other row, become a vector; four rows at a time. Lines that are prefetched go
 * to the second cache: more of them can be on their way (Zen 4, 20,000 x 2,000 f64 in C, a copy 16.6 ms: fetched to
 * the first 52, so 29). */
__attribute__((target("avx2"), always_inline)) static inline void transpose_halves(
    double *to, i64 pitch, const double *from, i64 apart, i64 next) {
#define TWO_PAIRS(ROW) _mm256_insertf128_pd(_mm256_castpd128_pd256(PAIR(ROW)), PAIR(ROW + 2), 1)
  const double *ahead = from + next;
  UNROLL(1) for (u32 k = 0; k < 8; k += 2, from += 2, to += 2 * pitch, ahead += 2 * apart) {
    __builtin_prefetch(ahead, 0, FARTHER);
    __builtin_prefetch(ahead + apart, 0, FARTHER);
    UNROLL(2) for (u32 i = 0; i < 8; i += 4) {
      __m256d even = TWO_PAIRS(i), odd = TWO_PAIRS(i + 1);
      _mm256_storeu_pd(to + i, _mm256_unpacklo_pd(even, odd));
      _mm256_storeu_pd(to + pitch + i, _mm256_unpackhi_pd(even, odd));
    }
  }
}
__attribute__((target("avx2"))) static void transpose_halves_and_put(double *to, i64 pitch, const double *from,
                                                                i64 apart, i64 next, char *put, const char *before,
                                                                i64 put_apart, i64 left) {
  for (u32 i = 0; i < TILE_ROW / 8; i += 8, from += 8 * apart, before += pitch * 8, put += put_apart) {
    transpose_halves(to + i, pitch, from, apart, next);
    if (left-- > 0)
      UNROLL(1) for (u32 k = 0; k < TILE_ROW;
                     k += 32) _mm256_stream_si256((__m256i *)(void *)(put + k),
                                                  _mm256_load_si256((const __m256i *)(const void *)(before + k)));
  }
}

/* Fills a buffer with a line of each of so many rows that one of its rows is full, and stores the `left` rows of the
 * buffer before meanwhile. */
FOR_AVX512 static void transpose_and_put(double *to, i64 pitch, const double *from, i64 apart, i64 next, char *put,
                                    const char *before, i64 put_apart, i64 left) {
  for (u32 i = 0; i < TILE_ROW / 8; i += 8, from += 8 * apart, before += pitch * 8, put += put_apart) {
    transpose_pairs(to + i, pitch, from, apart, next);
    if (left-- > 0)
      UNROLL(1) for (u32 k = 0; k < TILE_ROW;
                     k += LINE) _mm512_stream_si512((void *)(put + k), _mm512_load_si512(before + k));
  }
}
#else
/* never called */
static void transpose_pairs(void *to, i64 pitch, const void *from, i64 apart, i64 next) {
  (void)to, (void)pitch, (void)from, (void)apart, (void)next;
}
static void transpose_and_put(void *to, i64 pitch, const void *from, i64 apart, i64 next, char *put, const char *before,
                         i64 put_apart, i64 left) {
  (void)to, (void)pitch, (void)from, (void)apart, (void)next, (void)put, (void)before, (void)put_apart, (void)left;
}
#define transpose_halves transpose_pairs
#define transpose_halves_and_put transpose_and_put
#endif

/* Bytes from the beginning of its line. */
static i64 past_line(const void *p) { return (i64)((uintptr_t)p & (LINE - 1)); }

/* Rows of a buffer that have to be stored yet; but for `left` in bytes. */
typedef struct Transposed {
  const StridedThen *then;
  void (*put)(void *, const void *, i64);
  const char *dst;
  i64 size, pitch, apart; /* of an element; from row to row of the buffer, and of the result */
  char *from, *to;
  i64 lead, n, left;
  bool more; /* what is behind the last whole line goes with the next buffer */
} Transposed;

static __attribute__((noinline)) void put_rows(Transposed *t, i64 most) {
  for (; t->left && most; t->from += t->pitch, t->to += t->apart, t->left--, most--) {
    i64 from = t->lead ? t->lead - past_line(t->to + t->lead) : 0,
        end = t->more ? t->n - past_line(t->to + t->n) : t->n;
    if (t->then && !t->then->anywhere)
      t->then->run(t->then->ctx, t->from + from, (t->to + from - t->dst) / t->size, (end - from) / t->size);
    t->put(t->to + from, t->from + from, end - from);
  }
}

#define TILE(T)                                                                                                       \
  {                                                                                                                   \
    enum { WIDE = LINE / sizeof(T), MOST = TILE_BYTES / LINE > TILE_ROW / sizeof(T)                                   \
                                               ? TILE_ROW / sizeof(T) : TILE_BYTES / LINE, APART = MOST + 2 * WIDE }; \
    _Alignas(LINE) T tiles[2][WIDE * APART];                                                                          \
    if (then && then->anywhere) memset(tiles, 0, sizeof tiles);                                                       \
    i64 pitch = small ? apart : APART, next = rows < SHORT_ROW ? WIDE : 2 * WIDE, lead = 0;                           \
    u32 turn = 0;                                                                                                     \
    t.pitch = APART * sizeof(T);                                                                                      \
    for (i64 i = 0; i < w.inner; i += MOST, lead = whole ? WIDE : 0)                                                  \
      for (i64 j = 0; j < rows; j += WIDE, turn ^= 1) {                                                               \
        i64 n = (w.inner - i < MOST ? w.inner - i : MOST) + lead, wide = rows - j < WIDE ? rows - j : WIDE, k = 0;    \
        const T *s = (const T *)src + w.s + (i - lead) * w.inner_ss + j;                                              \
        T *d = (T *)dst + w.d + j * apart + i - lead;                                                                 \
        T *to = small ? d : tiles[turn];                                                                              \
        if (sizeof(T) == 8 && squares) {                                                                              \
          /* A row that ends within a line is read into the next one. */                                              \
          i64 most = wide == WIDE ? n : small || w.inner_ss != rows ? 0 : n - (i + MOST >= w.inner);                  \
          if (directly && most >= MOST && t.n == TILE_ROW && t.left) {                                                \
            (whole_lines ? transpose_and_put                                                                          \
                         : transpose_halves_and_put)((void *)to, APART, (const void *)s, w.inner_ss, next, t.to,      \
                                                     t.from, t.apart, t.left);                                        \
            t.left = 0, k = n, s += n * w.inner_ss;                                                                   \
          }                                                                                                           \
          for (; k + 8 <= most; k += 8, s += 8 * w.inner_ss) {                                                        \
            (whole_lines ? transpose_pairs                                                                            \
                         : transpose_halves)((void *)(to + k), pitch, (const void *)s, w.inner_ss, next);             \
            put_rows(&t, 1);                                                                                          \
          }                                                                                                           \
        }                                                                                                             \
        for (; k < n; k++, s += w.inner_ss) {                                                                         \
          if (farther) __builtin_prefetch(s + 2 * WIDE, 0, FARTHER);                                                  \
          else __builtin_prefetch(s + 2 * WIDE);                                                                      \
          if (wide == WIDE)                                                                                           \
            UNROLL(8) for (i64 l = 0; l < WIDE; l++) to[l * pitch + k] = s[l];                                        \
          else                                                                                                        \
            for (i64 l = 0; l < wide; l++) to[l * pitch + k] = s[l];                                                  \
        }                                                                                                             \
        put_rows(&t, WIDE);                                                                                           \
        if (small) continue;                                                                                          \
        if (then && then->anywhere) then->run(then->ctx, to, 0, wide * APART);                                        \
        t.from = (char *)to, t.to = (char *)d, t.left = wide;                                                         \
        t.n = n * (i64)sizeof(T), t.lead = lead * (i64)sizeof(T), t.more = whole && i + MOST < w.inner;               \
        if (!squares) put_rows(&t, WIDE);                                                                             \
      }                                                                                                               \
    put_rows(&t, WIDE);                                                                                               \
  }

/* The innermost of the outer axes is one along which the source lies together. */
static void copy_across(u32 bytes, Walk w, void *dst, const void *src, bool stream, const StridedThen *then) {
  u32 last = --w.rank;
  i64 rows = w.dims[last], apart = w.ds[last];
  i64 all = rows * w.inner * (i64)bytes;
  i64 past = past_line(dst) | w.d * (i64)bytes % LINE | apart * (i64)bytes % LINE;
  for (u32 k = 0; k < w.rank; k++) past |= w.ds[k] * (i64)bytes % LINE;
  /* lines go as wholes, though rows begin within one: a tile has what the one before left */
  bool small = all <= SMALL_BYTES && !then, whole = stream && past,
      squares = bytes == 8 && w.inner_ss >= 8 && cpu_has(CPU_AVX2), whole_lines = cpu_has(CPU_AVX512 | CPU_FETCH),
      farther = !cpu_has(CPU_FETCH);
  bool directly = squares && stream && !whole && (!then || then->anywhere);
  Transposed t = {.then = then, .put = stream ? stream_copy : copy_bytes, .dst = dst, .size = bytes,
              .apart = apart * (i64)bytes};
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
  const StridedThen *then;
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
  if (c->across) copy_across(c->bytes, w, c->dst, c->src, c->stream, c->then);
  else copy_rows(c->bytes, w, c->dst, c->src, c->stream);
  if (c->stream) stream_done();
}

/* `parts`: this is one of so many like it. */
static bool copy(Vm *vm, u32 bytes, u32 rank, const i64 *dims, void *dst, const i64 *dst_strides, const void *src,
                 const i64 *src_strides, const StridedThen *then, i64 parts) {
  enum { PARTS = 64, LINES = 64 /* elements that are whole lines, whatever they are */ };
  Copy c = {.bytes = bytes, .dst = dst, .src = src, .then = then};
  if (!walk_start(&c.w, rank, dims, dst_strides, src_strides)) return false;
  c.across = goes_across(bytes, &c.w);
  /* of whole rows of the source, of some lines of the result's each */
  bool bands = vm && c.across && c.w.inner >= (i64)pool_threads(vm) * 2 * LINES;
  i64 total = c.count = c.w.inner;
  c.axis = c.w.rank;
  for (u32 k = c.w.rank; k-- > 0; total *= c.w.dims[k])
    if (c.w.dims[k] >= c.count && !bands) c.axis = k, c.count = c.w.dims[k];
  if (then && !c.across) return false;
  c.stream = stream_worth(total * bytes * parts, !c.across);
  c.each = c.count;
  if (vm && total >= vm->tunables.parallel_elements && pool_threads(vm) > 1) {
    c.each = c.count / PARTS + 1;
    if (c.each >= LINES / 4 || bands) c.each = (c.each + LINES - 1) / LINES * LINES;
    /* whole: nothing is polled, so nothing is raised */
    (void)!pool_run(vm, (c.count + c.each - 1) / c.each, true, copy_some, &c);
    return true;
  }
  copy_some(&c, 0);
  return true;
}

void strided_copy(Vm *vm, u32 bytes, u32 rank, const i64 *dims, void *dst, const i64 *dst_strides, const void *src,
                  const i64 *src_strides) {
  (void)copy(vm, bytes, rank, dims, dst, dst_strides, src, src_strides, NULL, 1);
}

/* A walk over `most` elements or so at a time, along one axis:
 *
 *     Parts p;
 *     for (parts_start(&p, rank, dims, most); p.dims[p.axis]; parts_next(&p)) …
 */
typedef struct Parts {
  i64 dims[ARRAY_MAX_RANK]; /* of a part */
  i64 at, size, each, count; /* along the axis: where the part begins, all, a whole part's; how many parts */
  u32 axis;
} Parts;

static void parts_start(Parts *p, u32 rank, const i64 *dims, i64 most) {
  i64 total = 1;
  p->axis = 0;
  p->dims[0] = 1;
  for (u32 d = 0; d < rank; d++) {
    p->dims[d] = dims[d];
    total *= dims[d];
    if (dims[d] > dims[p->axis]) p->axis = d;
  }
  const i64 row = total > most ? total / dims[p->axis] : 0;
  p->at = 0;
  p->size = total ? p->dims[p->axis] : 0;
  p->each = !row ? p->size : row < most ? most / row : 1;
  p->count = p->each ? (p->size - 1) / p->each + 1 : 1;
  p->dims[p->axis] = p->each;
}

static void parts_next(Parts *p) {
  p->at += p->dims[p->axis];
  if (p->size - p->at < p->each) p->dims[p->axis] = p->size - p->at;
}

static i64 parts_from(const Parts *p, const i64 *strides, i64 bytes) {
  return p->at ? p->at * strides[p->axis] * bytes : 0;
}

WeftStatus strided_copy_polled(Vm *vm, u32 bytes, u32 rank, const i64 *dims, void *dst, const i64 *dst_strides,
                               const void *src, const i64 *src_strides) {
  /* elements; along rows, several threads share a part */
  const bool rows = rank && dst_strides[rank - 1] == 1 && src_strides[rank - 1] == 1;
  Parts p;
  for (parts_start(&p, rank, dims, !rows ? 1 << 19 : pool_threads(vm) > 1 ? 1 << 22 : 1 << 20); p.dims[p.axis];
       parts_next(&p)) {
    if (p.at && vm_look(vm) != WEFT_OK) return WEFT_ERROR;
    (void)copy(vm, bytes, rank, p.dims, (char *)dst + parts_from(&p, dst_strides, bytes), dst_strides,
               (const char *)src + parts_from(&p, src_strides, bytes), src_strides, NULL, p.count);
  }
  return WEFT_OK;
}

bool strided_transpose(Vm *vm, u32 bytes, const i64 *dims, void *dst, const void *src, const i64 *src_strides,
                  const StridedThen *then) {
  return copy(vm, bytes, 2, dims, dst, (i64[2]){dims[1], 1}, src, src_strides, then, 1);
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

WeftStatus strided_fill_polled(Vm *vm, u32 bytes, u32 rank, const i64 *dims, void *dst, const i64 *dst_strides,
                               const void *element) {
  Parts p;
  for (parts_start(&p, rank, dims, 1 << 20); p.dims[p.axis]; parts_next(&p)) {
    if (p.at && vm_look(vm) != WEFT_OK) return WEFT_ERROR;
    strided_fill(bytes, rank, p.dims, (char *)dst + parts_from(&p, dst_strides, bytes), dst_strides, element);
  }
  return WEFT_OK;
}

/* Some elements of a row between two conversions: integers as i64, those of u64 as u64, floats as f64, of which
 * none loses anything. One of WHOLE, NATURAL and REAL tells which it is; added to the dtype that is written it
 * chooses the second conversion. */
enum { ON_THE_WAY = 64, WHOLE = 0, NATURAL = 32, REAL = 64 };
_Static_assert((int)DT_COUNT <= (int)NATURAL, "dtypes and what is added to them are told apart");
typedef union Middle {
  i64 whole[ON_THE_WAY];
  u64 natural[ON_THE_WAY];
  f64 real[ON_THE_WAY];
} Middle;

#define READ(S, TO) \
  for (i64 i = 0; i < n; i++) m->TO[i] = ((const S *)src)[i * step];
static void middle_read(Middle *m, u32 dtype, const void *src, i64 step, i64 n) {
  switch (dtype) {
    case DT_bool:
    case DT_u8: READ(u8, whole) break;
    case DT_i32: READ(i32, whole) break;
    case DT_u32: READ(u32, whole) break;
    case DT_i64: READ(i64, whole) break;
    case DT_u64: READ(u64, natural) break;
    case DT_f32: READ(f32, real) break;
    case DT_f64: READ(f64, real) break;
    default:
      for (i64 i = 0; i < n; i++) m->real[i] = half_load(dtype, ((const u16 *)src)[i * step]);
      break;
  }
}

#define WRITE(D, FROM) \
  for (i64 i = 0; i < n; i++) ((D *)dst)[i * step] = (D)m->FROM[i];
static void middle_write(const Middle *m, u32 which, u32 dtype, void *dst, i64 step, i64 n) {
  /* integers take the bits of u64 as they are */
  switch (dtype_kind(dtype) != DK_FLOAT && which == NATURAL ? WHOLE + dtype : which + dtype) {
    case DT_bool: WRITE(bool, whole) break;
    case DT_u8: WRITE(u8, whole) break;
    case DT_i32:
    case DT_u32: WRITE(u32, whole) break;
    case DT_i64:
    case DT_u64: WRITE(i64, whole) break;
    case DT_f32: WRITE(f32, whole) break;
    case DT_f64: WRITE(f64, whole) break;
    case NATURAL + DT_f32: WRITE(f32, natural) break;
    case NATURAL + DT_f64: WRITE(f64, natural) break;
    case REAL + DT_bool: WRITE(bool, real) break;
    case REAL + DT_u8: WRITE(u8, real) break;
    case REAL + DT_i32: WRITE(i32, real) break;
    case REAL + DT_u32: WRITE(u32, real) break;
    case REAL + DT_i64: WRITE(i64, real) break;
    case REAL + DT_u64: WRITE(u64, real) break;
    case REAL + DT_f32: WRITE(f32, real) break;
    case REAL + DT_f64: WRITE(f64, real) break;
    default: /* halves */
      for (i64 i = 0; i < n; i++) {
        f64 x = which == REAL ? m->real[i] : which == WHOLE ? f64_odd_i64(m->whole[i]) : f64_odd_u64(m->natural[i]);
        ((u16 *)dst)[i * step] = half_store(dtype, f32_odd(x));
      }
      break;
  }
}

/* Of complex elements the parts are converted, each on a walk of its own: a part is a real element, twice as many lie
 * from one to the next. */
static void convert_complex(u32 rank, const i64 *dims, u32 dst_dtype, void *dst, const i64 *dst_strides, u32 src_dtype,
                            const void *src, const i64 *src_strides) {
  i64 to[ARRAY_MAX_RANK], from[ARRAY_MAX_RANK];
  const u32 part = dtype_real_of(dst_dtype), read = dtype_real_of(src_dtype);
  const bool both = read != src_dtype;
  for (u32 d = 0; d < rank; d++) {
    to[d] = 2 * dst_strides[d];
    from[d] = both ? 2 * src_strides[d] : src_strides[d];
  }
  char *im = (char *)dst + dtype_bytes(part);
  strided_convert(rank, dims, part, dst, to, read, src, from);
  if (both) {
    strided_convert(rank, dims, part, im, to, read, (const char *)src + dtype_bytes(read), from);
    return;
  }
  const f64 zero = 0;
  strided_fill(dtype_bytes(part), rank, dims, im, to, &zero);
}

void strided_convert(u32 rank, const i64 *dims, u32 dst_dtype, void *dst, const i64 *dst_strides, u32 src_dtype,
                     const void *src, const i64 *src_strides) {
  if (dst_dtype == src_dtype) {
    strided_copy(NULL, dtype_bytes(dst_dtype), rank, dims, dst, dst_strides, src, src_strides);
    return;
  }
  if (dtype_kind(dst_dtype) == DK_COMPLEX) {
    convert_complex(rank, dims, dst_dtype, dst, dst_strides, src_dtype, src, src_strides);
    return;
  }
  Walk w;
  Middle m;
  u32 which = dtype_kind(src_dtype) == DK_FLOAT ? REAL : src_dtype == DT_u64 ? NATURAL : WHOLE;
  i64 to = dtype_bytes(dst_dtype), from = dtype_bytes(src_dtype);
  if (!walk_start(&w, rank, dims, dst_strides, src_strides)) return;
  do {
    for (i64 at = 0, n; at < w.inner; at += n) {
      n = w.inner - at < ON_THE_WAY ? w.inner - at : ON_THE_WAY;
      middle_read(&m, src_dtype, (const char *)src + (w.s + at * w.inner_ss) * from, w.inner_ss, n);
      middle_write(&m, which, dst_dtype, (char *)dst + (w.d + at * w.inner_ds) * to, w.inner_ds, n);
    }
  } while (walk_next(&w));
}

WeftStatus strided_convert_polled(Vm *vm, u32 rank, const i64 *dims, u32 dst_dtype, void *dst, const i64 *dst_strides,
                                  u32 src_dtype, const void *src, const i64 *src_strides) {
  const i64 to = dtype_bytes(dst_dtype), from = dtype_bytes(src_dtype);
  Parts p;
  for (parts_start(&p, rank, dims, 1 << 19); p.dims[p.axis]; parts_next(&p)) {
    if (p.at && vm_look(vm) != WEFT_OK) return WEFT_ERROR;
    strided_convert(rank, p.dims, dst_dtype, (char *)dst + parts_from(&p, dst_strides, to), dst_strides, src_dtype,
                    (const char *)src + parts_from(&p, src_strides, from), src_strides);
  }
  return WEFT_OK;
}
