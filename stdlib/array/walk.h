/* walk.h — an operand read in row-major order of the result's shape, in strips: broadcast, any strides, any dtype.
 * Whoever can has the operand's own memory; else a strip is gathered and converted into a buffer in L1. */
#ifndef WEFT_STDLIB_WALK_H
#define WEFT_STDLIB_WALK_H

#include "stdlib/kernels/strips.h"

typedef struct Reader {
  const char *at;      /* of the element that comes next */
  StripFn convert;     /* NULL: the dtype is right */
  u32 bytes, to_bytes; /* of an element, before and after conversion */
  u32 rank;            /* axes left after joining those that lie together; the innermost is rank - 1 */
  u32 bad;             /* 1: some conversion failed */
  bool constant;       /* one element, everywhere: `strip` is full of it */
  bool direct;         /* the elements lie one after another */
  i64 dims[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK]; /* strides in bytes */
  i64 index[ARRAY_MAX_RANK];
  _Alignas(64) char strip[STRIP * 16];
  _Alignas(64) char raw[STRIP * 16];
} Reader;

/* `a` (borrowed) seen with `rank` and `dims`, to which it broadcasts, as `dtype`. */
void reader_start(Reader *r, const StripTable *strips, Array *a, u32 rank, const i64 *dims, u32 dtype);
/* The same for elements at `data` with these strides, in elements. */
void reader_start_raw(Reader *r, const StripTable *strips, const void *data, u32 from, u32 rank, const i64 *dims,
                      const i64 *strides, u32 dtype);
/* A number (already of the dtype wanted) everywhere. */
void reader_start_num(Reader *r, Value num);
void reader_seek(Reader *r, i64 at); /* from the first element to element number `at` */
/* The next n elements (n <= STRIP unless r->direct and there is no conversion). Valid until the next call. */
const void *reader_next(Reader *r, i64 n);
void reader_read(Reader *r, void *out, i64 n); /* the next n, whatever n is, into `out` */
/* Bytes: of what lies together so far ahead is fetched; one step ahead alone, the next step would wait for it. */
enum { FETCHED_AHEAD = PAGES_AHEAD };
/* what is needed when so many bytes of what lies together have been read from `now` on */
void fetch_ahead(const char *now, i64 bytes);
static inline bool reader_any_length(const Reader *r) { return r->direct && !r->convert; }

/* Axes of one or several arrays over the same dims, joined where all lie together; sizes 1 dropped. Result: the new
 * rank, at least 0; dims and strides are changed in place. `n` stride sets. */
u32 axes_join(u32 rank, i64 *dims, u32 n, i64 (*strides)[ARRAY_MAX_RANK]);
/* The strides (in elements) of `a` when it is broadcast to `rank` and `dims`. */
void broadcast_strides(Array *a, u32 rank, i64 *strides);

/* One element n times, and `a`, broadcast to rank and dims, as `dtype`, to `out` in row-major order (*bad: 1, a
 * conversion failed). The threads of the VM share what is long; the clock is looked at between its parts. */
WeftStatus fill_dense(Vm *vm, void *out, const void *element, i64 n, u32 bytes) MUST_USE;
WeftStatus copy_dense(Vm *vm, Array *a, u32 rank, const i64 *dims, u32 dtype, void *out, u32 *bad) MUST_USE;

#endif
