/* strips.h — strip kernels: one operation over a run of consecutive elements. Three builds of one template
 * (kernel_strips_template.c): baseline, AVX2 with FMA, AVX-512; chosen when a VM is made; the same bits from each. */
#ifndef WEFT_STDLIB_STRIPS_H
#define WEFT_STDLIB_STRIPS_H

#include "vm/vm.h"

enum { STRIP = 256 };                       /* elements that go through the L1 buffers at a time */
enum { STRIP_OPS = OP_astype + 1 };         /* elementwise operations stand first in ops.def */
_Static_assert(STRIP_OPS < 128, "elementwise operations stand first in ops.def");

/* out[i] = x[i] op y[i] for i in 0..n; for unary kernels y is x. `out` may be x or y themselves, element for
 * element, when the sizes agree. Gives 1 when a check failed somewhere (that element is 0), else 0. */
typedef u32 (*StripFn)(void *out, const void *x, const void *y, i64 n);
/* out[i] = c[i] ? x[i] : y[i], by bytes of the element */
typedef void (*StripSelect)(void *out, const u8 *c, const void *x, const void *y, i64 n);

/* Reductions, in the order of reduce_order.h. `rows` runs of n elements each, `stride` elements apart, into
 * out[0 … rows). Bools are added as i64. */
typedef void (*StripRows)(void *out, const void *x, i64 n, i64 rows, i64 stride);
/* Column sums: out[j] = x[j], x[j + stride] … over `rows` rows (at most 64), in order, for j in 0..n. */
typedef void (*StripColumns)(void *out, const void *x, i64 n, i64 rows, i64 stride);

/* A row times a matrix: out[j] = x[0] * y[j], then fma(x[p * along], y[p * apart + j], …) in the order of p, for j
 * in 0..n; n, k > 0. `more`: fma from the first term on, with what is in `out`. */
typedef void (*StripProduct)(void *out, const void *x, const void *y, i64 n, i64 k, i64 along, i64 apart, bool more);

/* A matrix times another: row i of `out`, n elements long, is what StripProduct gives for row i of x; those stand
 * `row` apart; k is at most STRIP_MATRIX_K. */
typedef void (*StripMatrix)(void *out, const void *x, const void *y, i64 m, i64 n, i64 k, i64 row, i64 along,
                            i64 apart, bool more);
enum { STRIP_MATRIX_K = 128 };

/* Random numbers from Philox block `block` of a stream on (random.c), n <= STRIP. */
typedef void (*StripDraw)(f64 *out, u64 seed, u64 stream, u64 block, i64 n);
/* out[i] = start + (first + i) * step for i in 0..n, n < 2^31; start and step by their bits. */
typedef void (*StripRamp)(void *out, u64 start, u64 step, i64 first, i64 n);

typedef enum ReduceKind { REDUCE_ADD, REDUCE_MUL, REDUCE_MIN, REDUCE_MAX, REDUCE_KINDS } ReduceKind;

typedef struct StripTable {
  const char *name;
  StripFn ops[STRIP_OPS][DT_COUNT];      /* by operation and the dtype computed in; NULL: none */
  StripFn convert[DT_COUNT][DT_COUNT];   /* [from][to]; fails where a float does not fit an integer */
  /* of f32 and f64: y is { a lower bound, an upper one, what is added: 0 where the lower is 0, else -0 }, neither NaN,
   * the upper not -0 */
  StripFn limit[DT_COUNT];
  /* of f32 and f64: y is { the least, the greatest, 1 where the rest is meant }; either may be NaN, then nothing is
   * within */
  StripFn within[DT_COUNT];
  StripSelect select[17];                /* by bytes: 1, 2, 4, 8, 16 */
  StripSelect select_past;               /* of 8 bytes, from a line's begin on, non-temporal; NULL: none */
  StripRows rows[REDUCE_KINDS][DT_COUNT];
  StripColumns columns[REDUCE_KINDS][DT_COUNT]; /* of what has an order; NULL: row by row */
  StripProduct product[DT_COUNT];        /* of f32 and f64 */
  StripMatrix matrix[DT_COUNT];          /* the same */
  StripDraw uniform;                     /* f64 in [0, 1), two of each block */
  StripDraw normal;                      /* f64, one of each block */
  StripRamp ramp[DT_COUNT];              /* of i64 and f64 */
} StripTable;

/* The row of `ops` that serves an operation: > and >= are < and <= with the operands exchanged. */
static inline u32 strip_row(u32 op) {
  return op == OP_power ? OP_pow : op == OP_greater ? OP_less : op == OP_greater_equal ? OP_less_equal : op;
}
/* that row takes the operands exchanged */
static inline bool strip_swaps(u32 op) { return op == OP_greater || op == OP_greater_equal; }

/* One for each build of the template. */
extern const StripTable strips_base;
#ifdef __x86_64__
extern const StripTable strips_avx2, strips_avx512;
#endif

/* Moves n elements of `bytes` bytes (1, 2, 4, 8, 16), `stride` elements apart, to consecutive places. */
void strip_gather(void *out, const void *x, i64 n, i64 stride, u32 bytes);
/* The same from consecutive places to strided ones. */
void strip_scatter(void *out, i64 stride, const void *x, i64 n, u32 bytes);
void strip_fill(void *out, const void *element, i64 n, u32 bytes);

#endif
