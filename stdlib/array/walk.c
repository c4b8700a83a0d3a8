/* walk.c — operands read in row-major order, in strips (see walk.h). */
#include "stdlib/array/walk.h"
#include "stdlib/args.h"
#include "stdlib/stdlib.h"

#include <string.h>

/* ---- moving elements ----------------------------------------------------------------------------- */

typedef u16 __attribute__((may_alias)) any16;
typedef u32 __attribute__((may_alias)) any32;
typedef u64 __attribute__((may_alias)) any64;
typedef struct __attribute__((may_alias)) any128 {
  u64 a, b;
} any128;

#define BY_BYTES(bytes, M) \
  switch (bytes) {         \
    case 1: M(u8); break;  \
    case 2: M(any16); break; \
    case 4: M(any32); break; \
    case 8: M(any64); break; \
    default: M(any128); break; \
  }

void strip_gather(void *out, const void *x, i64 n, i64 stride, u32 bytes) {
  if (stride == 1) {
    memcpy(out, x, (size_t)n * bytes);
    return;
  }
#define GATHER(T)                                      \
  {                                                    \
    T *o = out;                                        \
    const T *p = x;                                    \
    for (i64 i = 0; i < n; i++) o[i] = p[i * stride];  \
  }
  BY_BYTES(bytes, GATHER)
#undef GATHER
}

void strip_scatter(void *out, i64 stride, const void *x, i64 n, u32 bytes) {
  if (stride == 1) {
    memcpy(out, x, (size_t)n * bytes);
    return;
  }
#define SCATTER(T)                                     \
  {                                                    \
    T *o = out;                                        \
    const T *p = x;                                    \
    for (i64 i = 0; i < n; i++) o[i * stride] = p[i];  \
  }
  BY_BYTES(bytes, SCATTER)
#undef SCATTER
}

void strip_fill(void *out, const void *element, i64 n, u32 bytes) {
#define FILL(T)                                \
  {                                            \
    T *o = out;                                \
    const T e = *(const T *)element;           \
    for (i64 i = 0; i < n; i++) o[i] = e;      \
  }
  BY_BYTES(bytes, FILL)
#undef FILL
}

typedef struct Fill {
  char *out;
  const void *element;
  i64 n, each; /* of all, of a part */
  u32 bytes;
  bool stream;
} Fill;

static void fill_part(void *ctx, i64 part) {
  enum { PATTERN = 4096 };
  const Fill *f = ctx;
  i64 first = part * f->each, n = f->n - first < f->each ? f->n - first : f->each, all = n * f->bytes;
  char *out = f->out + first * f->bytes;
  _Alignas(64) char pattern[PATTERN];
  if (all <= PATTERN) {
    strip_fill(out, f->element, n, f->bytes);
    return;
  }
  strip_fill(pattern, f->element, PATTERN / f->bytes, f->bytes);
  for (i64 at = 0, some; at < all; at += some) {
    some = all - at < PATTERN ? all - at : PATTERN;
    if (f->stream) stream_copy(out + at, pattern, some);
    else memcpy(out + at, pattern, (size_t)some);
  }
  if (f->stream) stream_done();
}

static bool is_shared(Vm *vm, i64 n) { return n >= vm->tunables.parallel_elements && pool_threads(vm) > 1; }

/* Elements of a part, of n that are moved; whole lines where the parts are long. The clock is looked at between two. */
static i64 part_of(Vm *vm, i64 n) {
  enum { LINES = 64, MOST = 8 * PART_ELEMENTS };
  i64 each = is_shared(vm, n) ? pool_part(vm, n) : n;
  if (each > MOST) each = MOST;
  return each < LINES || each == n ? each : each / LINES * LINES;
}

WeftStatus fill_dense(Vm *vm, void *out, const void *element, i64 n, u32 bytes) {
  if (n <= 0) return WEFT_OK;
  Fill f = {out, element, n, part_of(vm, n), bytes, false};
  bool shared = is_shared(vm, n); /* several threads fill the last cache faster than one stores past it */
  f.stream = stream_worth(shared ? n * bytes / 4 * 3 : n * bytes, shared);
  return pool_run(vm, (n + f.each - 1) / f.each, n == f.each, fill_part, &f);
}

/* n elements in row-major order from `at`, from the position `index` on; moves both along. */
static const char *gather_rows(void *out, const char *at, i64 n, u32 rank, const i64 *dims, const i64 *strides,
                               i64 *index, u32 bytes) {
  u32 last = rank - 1;
  i64 inner = dims[last], step = strides[last];
  char *o = out;
  while (n > 0) {
    i64 run = inner - index[last];
    if (run > n) run = n;
#define RUN(T)                                                                             \
  {                                                                                        \
    T *to = (T *)o;                                                                        \
    if (step == (i64)sizeof(T) && run > 8) memcpy(to, at, (size_t)run * sizeof(T));        \
    else                                                                                   \
      for (i64 i = 0; i < run; i++) to[i] = *(const T *)(at + i * step);                   \
  }
    BY_BYTES(bytes, RUN)
#undef RUN
    o += run * bytes;
    n -= run;
    index[last] += run;
    at += run * step;
    for (u32 d = last; index[d] == dims[d]; d--) { /* carry */
      at -= index[d] * strides[d];
      index[d] = 0;
      if (d == 0) break;
      index[d - 1]++;
      at += strides[d - 1];
    }
  }
  return at;
}

/* ---- axes ---------------------------------------------------------------------------------------- */

u32 axes_join(u32 rank, i64 *dims, u32 n, i64 (*strides)[ARRAY_MAX_RANK]) {
  u32 count = 0;
  for (u32 d = 0; d < rank; d++) {
    if (dims[d] == 1) continue;
    bool join = count > 0;
    for (u32 k = 0; join && k < n; k++) join = strides[k][count - 1] == strides[k][d] * dims[d];
    u32 to = join ? count - 1 : count++;
    dims[to] = join ? dims[to] * dims[d] : dims[d];
    for (u32 k = 0; k < n; k++) strides[k][to] = strides[k][d];
  }
  return count;
}

void broadcast_strides(Array *a, u32 rank, i64 *strides) {
  u32 own = array_rank(a), shift = rank - own;
  const i64 *ad = array_dims(a), *as = array_strides(a);
  for (u32 d = 0; d < shift; d++) strides[d] = 0;
  for (u32 d = 0; d < own; d++) strides[d + shift] = ad[d] == 1 ? 0 : as[d];
}

/* ---- readers ------------------------------------------------------------------------------------- */

void reader_start_raw(Reader *r, const StripTable *strips, const void *data, u32 from, u32 rank, const i64 *dims,
                      const i64 *strides, u32 dtype) {
  i64 joined[1][ARRAY_MAX_RANK];
  r->at = data;
  r->convert = from == dtype ? NULL : strips->convert[from][dtype];
  r->bytes = dtype_bytes(from);
  r->to_bytes = dtype_bytes(dtype);
  r->bad = 0;
  r->constant = false;
  for (u32 d = 0; d < rank; d++) {
    r->dims[d] = dims[d];
    joined[0][d] = strides[d];
  }
  r->rank = axes_join(rank, r->dims, 1, joined);
  r->direct = r->rank == 0 || (r->rank == 1 && joined[0][0] == 1);
  for (u32 d = 0; d < r->rank; d++) {
    r->strides[d] = joined[0][d] * r->bytes;
    r->index[d] = 0;
  }
  if (r->rank == 1 && joined[0][0] == 0 && r->dims[0] > 0) { /* one element, everywhere */
    _Alignas(16) char one[16];
    if (r->convert) r->bad |= r->convert(one, r->at, r->at, 1);
    else memcpy(one, r->at, r->bytes);
    strip_fill(r->strip, one, r->dims[0] < STRIP ? r->dims[0] : STRIP, r->to_bytes);
    r->constant = true;
    r->direct = false;
  }
}

void reader_start(Reader *r, const StripTable *strips, Array *a, u32 rank, const i64 *dims, u32 dtype) {
  i64 strides[ARRAY_MAX_RANK];
  broadcast_strides(a, rank, strides);
  reader_start_raw(r, strips, a->data, array_dtype(a), rank, dims, strides, dtype);
}

void reader_start_num(Reader *r, Value num) {
  _Alignas(16) char one[16];
  num_store(one, num.dtype, num);
  r->bad = 0;
  r->constant = true;
  r->direct = false;
  r->convert = NULL;
  r->bytes = r->to_bytes = dtype_bytes(num.dtype);
  strip_fill(r->strip, one, STRIP, dtype_bytes(num.dtype));
}

void reader_seek(Reader *r, i64 at) {
  if (r->constant) return;
  if (r->direct) {
    r->at += at * r->bytes;
    return;
  }
  for (u32 d = r->rank; d-- > 0; at /= r->dims[d]) {
    r->index[d] = at % r->dims[d];
    r->at += r->index[d] * r->strides[d];
  }
}

void reader_read(Reader *r, void *out, i64 n) {
  char *o = out;
  while (n > 0) {
    i64 part = n < STRIP ? n : STRIP;
    memcpy(o, reader_next(r, part), (size_t)part * r->to_bytes);
    o += part * r->to_bytes;
    n -= part;
  }
}

const void *reader_next(Reader *r, i64 n) {
  if (r->constant) return r->strip;
  const char *from = r->at;
  if (r->direct) {
    r->at += n * r->bytes;
  } else {
    u32 last = r->rank - 1;
    if (r->strides[last] == r->bytes && r->dims[last] - r->index[last] > n) { /* within a row */
      r->at += n * r->bytes;
      r->index[last] += n;
    } else {
      char *to = r->convert ? r->raw : r->strip;
      r->at = gather_rows(to, r->at, n, r->rank, r->dims, r->strides, r->index, r->bytes);
      from = to;
    }
  }
  if (!r->convert) return from;
  r->bad |= r->convert(r->strip, from, from, n);
  return r->strip;
}

/* ---- copies -------------------------------------------------------------------------------------- */

typedef struct Converted {
  const Reader *from;
  char *out;
  i64 n, each; /* of all, of a part */
  bool stream;
  u32 bad;
} Converted;

void fetch_ahead(const char *now, i64 bytes) {
  if (cpu_has(CPU_PAGES)) fetch_pages(now, bytes);
  else
    for (i64 k = 0; k < bytes; k += 64) __builtin_prefetch(now + FETCHED_AHEAD + k);
}

static void convert_part(void *ctx, i64 part) {
  enum { FAR = 1 << 18 /* elements that the nearer caches do not hold */ };
  Converted *c = ctx;
  i64 at = part * c->each, end = c->n - at < c->each ? c->n : at + c->each;
  Reader r = *c->from;
  reader_seek(&r, at);
  char *o = c->out + at * r.to_bytes;
  i64 most = !r.direct || c->stream || c->n >= FAR ? STRIP : end - at;
  for (i64 n; at < end; at += n, o += n * r.to_bytes) {
    n = end - at < most ? end - at : most;
    /* not beyond the part: another thread reads that */
    bool ahead = r.direct && c->n >= FAR && cpu_has(CPU_FETCH) && (end - at - n) * r.bytes > FETCHED_AHEAD;
    bool first = ahead && (!c->stream || r.bytes > r.to_bytes); /* evenly, so not some lines with each that is stored */
    if (first) fetch_ahead(r.at, n * r.bytes);
    if (r.direct && !c->stream) {
      r.bad |= r.convert(o, r.at, r.at, n);
      r.at += n * r.bytes;
      continue;
    }
    const void *x = reader_next(&r, n);
    if (c->stream)
      stream_copy_ahead(o, x, n * r.to_bytes, (uintptr_t)r.at + FETCHED_AHEAD,
                        ahead && !first ? r.to_bytes / r.bytes : 0);
    else memcpy(o, x, (size_t)n * r.to_bytes);
  }
  if (c->stream) stream_done();
  if (r.bad) __atomic_store_n(&c->bad, r.bad, __ATOMIC_RELAXED);
}

WeftStatus copy_dense(Vm *vm, Array *a, u32 rank, const i64 *dims, u32 dtype, void *out, u32 *bad) {
  u32 from = array_dtype(a), bytes = dtype_bytes(from);
  i64 total = dims_size(rank, dims), strides[1][ARRAY_MAX_RANK], dense[ARRAY_MAX_RANK], joined[ARRAY_MAX_RANK];
  *bad = 0;
  if (total <= 0) return WEFT_OK;
  if (from != dtype) {
    Reader r;
    reader_start(&r, stdlib_of(vm)->strips, a, rank, dims, dtype);
    Converted c = {&r, out, total, part_of(vm, total), stream_worth(total * r.to_bytes, true), r.bad};
    WeftStatus status = pool_run(vm, (total + c.each - 1) / c.each, total == c.each, convert_part, &c);
    *bad = c.bad;
    return status;
  }
  broadcast_strides(a, rank, strides[0]);
  memcpy(joined, dims, rank * sizeof *dims);
  if (axes_join(rank, joined, 1, strides) == 1 && strides[0][0] == 0)
    return fill_dense(vm, out, a->data, total, bytes);
  broadcast_strides(a, rank, strides[0]);
  dense_strides(rank, dims, dense);
  return strided_copy_polled(vm, bytes, rank, dims, out, dense, a->data, strides[0]);
}
