/* roofline.c — the operations of roofline.weft written by hand in C, each the ways that may be best: with plain
 * stores, and through a buffer whose lines are stored non-temporally. roofline ELEMENTS THREADS ROUNDS prints for
 * each way the operation's name, the least seconds and the median of the rounds' number of calls within the time
 * that a copy of as many f64 takes, for which it asks as roofline.weft does: `machine beside` answers. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "bench/clock.h"

typedef unsigned char Byte;

enum { SIDE = 2000, MOST_THREADS = 64, BLOCK = 512 /* elements of the buffer before a streaming store */ };

typedef struct Data {
  size_t n;
  double *a, *b, *c, *to, *and_to; /* to and and_to have 2 n elements */
  Byte *k, *q, *bytes;
  float *x, *y, *narrow;
  int64_t *w, *whole;
} Data;

/* What each thread found: what a reduction gives, so that it is not left out. */
typedef struct Part {
  const Data *d;
  unsigned index, threads;
  double found;
} Part;

/* bytes and `to` are multiples of 32, but for what is left over at the end. */
static void stream(void *to, const void *from, size_t bytes) {
  char *t = to;
  const char *f = from;
#ifdef __AVX512F__
  if (!((uintptr_t)t & 63))
    for (; bytes >= 64; t += 64, f += 64, bytes -= 64) _mm512_stream_si512((void *)t, _mm512_loadu_si512(f));
#endif
#ifdef __AVX__
  if (!((uintptr_t)t & 31))
    for (; bytes >= 32; t += 32, f += 32, bytes -= 32)
      _mm256_stream_si256((__m256i *)t, _mm256_loadu_si256((const __m256i *)f));
#endif
  memcpy(t, f, bytes);
}

static size_t begin_of(const Part *p, size_t n) {
  size_t at = n / p->threads * p->index;
  return p->index == p->threads ? n : at / BLOCK * BLOCK;
}
static size_t end_of(const Part *p, size_t n) {
  Part next = {p->d, p->index + 1, p->threads, 0};
  return begin_of(&next, n);
}

static inline double chosen(Byte k, double a, double b) { return k ? a : b; }

/* name, elements, type of the result, where it goes, what an element is. */
#define POINTWISE(X)                                                           \
  X(triad, n, double, to, d->a[i] + 3.0 * d->b[i])                             \
  X(copy, n, double, to, d->a[i])                                              \
  X(fill, n, double, to, 1.5)                                                  \
  X(clip, n, double, to, fmin(fmax(d->a[i], 0.6), 1.2))                        \
  X(f64_to_f32, n, float, narrow, (float)d->a[i])                              \
  X(compare, n, Byte, bytes, (Byte)(d->a[i] > 0.75))                           \
  X(add_row, n, double, to, d->a[i] + d->b[i % SIDE])                          \
  X(add_column, n, double, to, d->a[i] + d->b[i / SIDE])                       \
  X(diff, n - 1, double, to, d->a[i + 1] - d->a[i])                            \
  X(every_other, n / 2, double, to, d->a[2 * i] + 1.0)                         \
  X(backwards, n, double, to, d->a[n - 1 - i] + 0.0)                           \
  X(inner, n - 4 * SIDE, double, to, d->a[i + i / (SIDE - 2) * 2 + SIDE + 1] + 1.0) \
  X(in_place, n, double, c, d->c[i] + d->b[i])                                 \
  X(in_part, n - 2, double, c + 1, d->b[i + 1] * 0.5)                          \
  X(scale, n, double, c, d->c[i] * d->b[7])                                    \
  X(where, n, double, to, chosen(d->k[i], d->a[i], d->b[i]))                         \
  X(flags, n, Byte, bytes, (Byte)(d->k[i] & (d->q[i] ^ 1)))                    \
  X(triad_f32, n, float, narrow, d->x[i] + 3.0f * d->y[i])                     \
  X(f32_to_f64, n, double, to, (double)d->x[i])                                \
  X(i64_to_f64, n, double, to, (double)d->w[i])                                \
  X(f64_to_i64, n, int64_t, whole, (int64_t)d->a[i])                           \
  X(triad_i64, n, int64_t, whole, d->w[i] + 3 * d->w[i])                       \
  X(u8_add, n, Byte, bytes, (Byte)(d->k[i] + d->q[i]))

#define WAYS(NAME, COUNT, T, TO, ELEMENT)                                                  \
  static void NAME##_at(const Data *d, T *restrict to, size_t begin, size_t end) {         \
    const size_t n = d->n;                                                                 \
    (void)n;                                                                               \
    for (size_t i = begin; i < end; i++) to[i - begin] = ELEMENT;                          \
  }                                                                                        \
  static void NAME##_plain(Part *p) {                                                      \
    const Data *d = p->d;                                                                  \
    const size_t n = d->n, begin = begin_of(p, COUNT), end = end_of(p, COUNT);             \
    (void)n;                                                                               \
    NAME##_at(d, d->TO + begin, begin, end);                                               \
  }                                                                                        \
  static void NAME##_streamed(Part *p) {                                                   \
    const Data *d = p->d;                                                                  \
    const size_t n = d->n, begin = begin_of(p, COUNT), end = end_of(p, COUNT);             \
    (void)n;                                                                               \
    T buffer[BLOCK] __attribute__((aligned(64)));                                          \
    T *to = d->TO;                                                                         \
    for (size_t i = begin, next; i < end; i = next) {                                      \
      next = end - i < BLOCK ? end : i + BLOCK - (((uintptr_t)(to + i) & 63) / sizeof *to); \
      NAME##_at(d, buffer, i, next);                                                       \
      stream(to + i, buffer, (next - i) * sizeof *to);                                     \
    }                                                                                      \
  }
POINTWISE(WAYS)

/* Rows are cut so that the loop along them knows its operand. */
#define BY_ROWS(NAME, OPERAND)                                                          \
  static void NAME##_rows(Part *p) {                                                    \
    const Data *d = p->d;                                                               \
    for (size_t r = begin_of(p, d->n) / SIDE, last = end_of(p, d->n) / SIDE; r < last; r++) { \
      const double *from = d->a + r * SIDE, *b = d->b;                                  \
      double *restrict to = d->to + r * SIDE;                                           \
      for (size_t i = 0; i < SIDE; i++) to[i] = from[i] + OPERAND;                      \
    }                                                                                   \
  }
BY_ROWS(add_row, b[i])
BY_ROWS(add_column, b[r])

static void inner_rows(Part *p) {
  const Data *d = p->d;
  const size_t rows = d->n / SIDE - 2;
  const size_t share = rows / p->threads;
  for (size_t r = share * p->index, last = p->index + 1 == p->threads ? rows : r + share; r < last; r++) {
    const double *from = d->a + (r + 1) * SIDE + 1;
    double *restrict to = d->to + r * (SIDE - 2);
    for (size_t i = 0; i < SIDE - 2; i++) to[i] = from[i] + 1.0;
  }
}

static void copy_memcpy(Part *p) {
  size_t begin = begin_of(p, p->d->n), end = end_of(p, p->d->n);
  memcpy(p->d->to + begin, p->d->a + begin, (end - begin) * sizeof(double));
}
static void roll_memcpy(Part *p) {
  size_t n = p->d->n, begin = begin_of(p, n), end = end_of(p, n);
  if (end > n - 5) {
    memcpy(p->d->to, p->d->a + n - 5, 5 * sizeof(double));
    end = n - 5;
  }
  memcpy(p->d->to + begin + 5, p->d->a + begin, (end - begin) * sizeof(double));
}
static void concat_memcpy(Part *p) {
  size_t n = p->d->n, begin = begin_of(p, n), end = end_of(p, n);
  memcpy(p->d->to + begin, p->d->a + begin, (end - begin) * sizeof(double));
  memcpy(p->d->to + n + begin, p->d->b + begin, (end - begin) * sizeof(double));
}
static void concat_streamed(Part *p) {
  size_t n = p->d->n, begin = begin_of(p, n), end = end_of(p, n);
  stream(p->d->to + begin, p->d->a + begin, (end - begin) * sizeof(double));
  stream(p->d->to + n + begin, p->d->b + begin, (end - begin) * sizeof(double));
}

static void two_results_plain(Part *p) {
  const Data *d = p->d;
  double *restrict sums = d->to, *restrict differences = d->and_to;
  for (size_t i = begin_of(p, d->n), end = end_of(p, d->n); i < end; i++)
    sums[i] = d->a[i] + d->b[i], differences[i] = d->a[i] - d->b[i];
}
static void two_results_streamed(Part *p) {
  const Data *d = p->d;
  double sums[BLOCK] __attribute__((aligned(64))), differences[BLOCK] __attribute__((aligned(64)));
  for (size_t i = begin_of(p, d->n), end = end_of(p, d->n); i < end; i += BLOCK) {
    size_t count = end - i < BLOCK ? end - i : BLOCK;
    for (size_t j = 0; j < count; j++) sums[j] = d->a[i + j] + d->b[i + j], differences[j] = d->a[i + j] - d->b[i + j];
    stream(d->to + i, sums, count * sizeof(double));
    stream(d->and_to + i, differences, count * sizeof(double));
  }
}

static void sum_plain(Part *p) {
  const double *a = p->d->a;
  double sum = 0;
  for (size_t i = begin_of(p, p->d->n), end = end_of(p, p->d->n); i < end; i++) sum += a[i];
  p->found = sum;
}
static void sum_f32_plain(Part *p) {
  const float *x = p->d->x;
  float sum = 0;
  for (size_t i = begin_of(p, p->d->n), end = end_of(p, p->d->n); i < end; i++) sum += x[i];
  p->found = sum;
}
static void max_plain(Part *p) {
  const double *a = p->d->a;
  double most = -INFINITY;
  for (size_t i = begin_of(p, p->d->n), end = end_of(p, p->d->n); i < end; i++) most = a[i] > most ? a[i] : most;
  p->found = most;
}
/* The greatest of each block, then its place in the block that has it. */
static void argmax_blocks(Part *p) {
  const double *a = p->d->a;
  double most = -INFINITY;
  size_t at = 0;
  for (size_t i = begin_of(p, p->d->n), end = end_of(p, p->d->n); i < end; i += BLOCK) {
    size_t stop = end - i < BLOCK ? end : i + BLOCK;
    double here = -INFINITY;
    for (size_t j = i; j < stop; j++) here = a[j] > here ? a[j] : here;
    if (here > most) most = here, at = i;
  }
  while (a[at] != most) at++;
  p->found = (double)at;
}
static void sum_rows_plain(Part *p) {
  const Data *d = p->d;
  for (size_t r = begin_of(p, d->n) / SIDE, last = end_of(p, d->n) / SIDE; r < last; r++) {
    double sum = 0;
    for (size_t i = 0; i < SIDE; i++) sum += d->a[r * SIDE + i];
    d->to[r] = sum;
  }
}
static void sum_columns_plain(Part *p) {
  const Data *d = p->d;
  double sums[SIDE] = {0};
  for (size_t r = begin_of(p, d->n) / SIDE, last = end_of(p, d->n) / SIDE; r < last; r++)
    for (size_t i = 0; i < SIDE; i++) sums[i] += d->a[r * SIDE + i];
  memcpy(d->to + p->index * SIDE, sums, sizeof sums);
}
static void cumsum_plain(Part *p) { /* one thread's; what others would have to add */
  const Data *d = p->d;
  double sum = 0;
  for (size_t i = begin_of(p, d->n), end = end_of(p, d->n); i < end; i++) d->to[i] = sum += d->a[i];
}
static void cumsum_streamed(Part *p) {
  const Data *d = p->d;
  double sum = 0, buffer[BLOCK] __attribute__((aligned(64)));
  for (size_t i = begin_of(p, d->n), end = end_of(p, d->n); i < end; i += BLOCK) {
    size_t count = end - i < BLOCK ? end - i : BLOCK;
    for (size_t j = 0; j < count; j++) buffer[j] = sum += d->a[i + j];
    stream(d->to + i, buffer, count * sizeof(double));
  }
}
static void count_plain(Part *p) {
  const Byte *k = p->d->k;
  size_t sum = 0;
  for (size_t i = begin_of(p, p->d->n), end = end_of(p, p->d->n); i < end; i += 128) {
    size_t stop = end - i < 128 ? end : i + 128;
    Byte few = 0;
    for (size_t j = i; j < stop; j++) few = (Byte)(few + k[j]);
    sum += few;
  }
  p->found = (double)sum;
}
/* Neither has to read further than the first that is true; none is. */
static void any_plain(Part *p) {
  const Byte *k = p->d->k, *q = p->d->q;
  for (size_t i = begin_of(p, p->d->n), end = end_of(p, p->d->n); i < end; i += 4096) {
    size_t stop = end - i < 4096 ? end : i + 4096;
    Byte some = 0;
    for (size_t j = i; j < stop; j++) some |= k[j] & q[j];
    if (some) break;
    p->found = (double)i;
  }
}

/* Tiles of the source: a line of its rows wide, some of them tall, into a buffer and from there as parts of the
 * result's rows. */
#define TRANSPOSE(NAME, WIDE, TALL, STORE)                                                  \
  static void NAME(Part *p) {                                                               \
    const Data *d = p->d;                                                                   \
    const size_t rows = d->n / SIDE, share = SIDE / WIDE / p->threads * WIDE;               \
    const size_t first = share * p->index, last = p->index + 1 == p->threads ? SIDE : first + share; \
    double buffer[WIDE][TALL + 8] __attribute__((aligned(64))); /* else its rows share places in the cache */ \
    for (size_t c = first; c < last; c += WIDE)                                             \
      for (size_t r = 0; r < rows; r += TALL) {                                             \
        const size_t tall = rows - r < TALL ? rows - r : TALL;                              \
        for (size_t i = 0; i < tall; i++) {                                                 \
          const double *from = d->a + (r + i) * SIDE + c;                                   \
          __builtin_prefetch(from + 2 * WIDE);                                              \
          _Pragma("GCC unroll 16") for (size_t j = 0; j < WIDE; j++) buffer[j][i] = from[j] + 0.0; \
        }                                                                                   \
        for (size_t j = 0; j < WIDE; j++) STORE(d->to + (c + j) * rows + r, buffer[j], tall * sizeof(double)); \
      }                                                                                     \
  }
TRANSPOSE(transpose_8, 8, 64, memcpy)
TRANSPOSE(transpose_8_streamed, 8, 64, stream)
TRANSPOSE(transpose_16, 16, 64, memcpy)
TRANSPOSE(transpose_16_streamed, 16, 64, stream)

/* The same in bands: so many rows from their beginning to their end, what comes next in each fetched. */
static void transpose_bands(Part *p) {
  enum { WIDE = 16, TALL = 64 };
  const Data *d = p->d;
  const size_t rows = d->n / SIDE, share = (rows / p->threads + TALL - 1) / TALL * TALL;
  const size_t first = share * p->index < rows ? share * p->index : rows,
      last = p->index + 1 == p->threads || first + share > rows ? rows : first + share;
  double buffer[WIDE][TALL + 8] __attribute__((aligned(64)));
  for (size_t r = first; r < last; r += TALL)
    for (size_t c = 0; c < SIDE; c += WIDE) {
      const size_t tall = last - r < TALL ? last - r : TALL;
      for (size_t i = 0; i < tall; i++) {
        const double *from = d->a + (r + i) * SIDE + c;
        __builtin_prefetch(from + WIDE);
        __builtin_prefetch(from + WIDE + 8);
        _Pragma("GCC unroll 16") for (size_t j = 0; j < WIDE; j++) buffer[j][i] = from[j] + 0.0;
      }
      for (size_t j = 0; j < WIDE; j++) stream(d->to + (c + j) * rows + r, buffer[j], tall * sizeof(double));
    }
}

typedef struct Way {
  const char *name;
  void (*run)(Part *);
} Way;

static const Way ways[] = {
#define BOTH(NAME, COUNT, T, TO, ELEMENT) {#NAME, NAME##_plain}, {#NAME, NAME##_streamed},
    POINTWISE(BOTH)
    {"add_row", add_row_rows}, {"add_column", add_column_rows}, {"inner", inner_rows}, {"copy", copy_memcpy},
        {"roll", roll_memcpy},
    {"concat", concat_memcpy}, {"concat", concat_streamed}, {"two_results", two_results_plain},
    {"two_results", two_results_streamed},
    {"sum", sum_plain}, {"sum_f32", sum_f32_plain}, {"max", max_plain}, {"argmax", argmax_blocks},
    {"sum_rows", sum_rows_plain},
    {"sum_columns", sum_columns_plain}, {"cumsum", cumsum_plain}, {"cumsum", cumsum_streamed}, {"count", count_plain},
    {"any", any_plain},
    {"transpose", transpose_8}, {"transpose", transpose_8_streamed}, {"transpose", transpose_16},
    {"transpose", transpose_16_streamed},
    {"transpose", transpose_bands},
};
enum { WAYS_COUNT = sizeof ways / sizeof *ways };

enum { MOST_ROUNDS = 99 };

typedef struct Worker {
  Part part;
  int rounds, tries; /* of a round: those of a few hundredths of a second */
  pthread_barrier_t *barrier;
} Worker;

static double copy_rate(void) {
  char line[64];
  puts("copy");
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) exit(1);
  return atof(line);
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_way(const char *name, int rounds, double best, double *shares) {
  for (; *name; name++) putchar(*name == '_' ? '-' : *name);
  qsort(shares, (size_t)rounds, sizeof *shares, by_size);
  printf(" %.9f %.9f\n", best, shares[rounds / 2]);
}

/* The first of the workers speaks. */
static void *work(void *ctx) {
  Worker *w = ctx;
  const double bytes = 16.0 * (double)w->part.d->n;
  for (int i = 0; i < WAYS_COUNT; i++) {
    double best = 1e9, shares[MOST_ROUNDS];
    for (int r = 0; r < w->rounds; r++) {
      double least = 1e9;
      for (int k = 0; k < w->tries; k++) {
        pthread_barrier_wait(w->barrier);
        double begin = seconds();
        ways[i].run(&w->part);
        pthread_barrier_wait(w->barrier);
        double spent = seconds() - begin;
        if (spent < least) least = spent;
      }
      if (least < best) best = least;
      if (!w->part.index) shares[r] = bytes / copy_rate() / least;
    }
    if (!w->part.index) print_way(ways[i].name, w->rounds, best, shares);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  size_t n = (size_t)atoll(argv[1]) / SIDE * SIDE;
  unsigned threads = (unsigned)atoi(argv[2]);
  int rounds = atoi(argv[3]);
  if (n < 4 * SIDE || threads < 1 || threads > MOST_THREADS || rounds < 1 || rounds > MOST_ROUNDS) return 2;
  int tries = n < 2400000 ? 50 : n > 40000000 ? 3 : (int)(120000000 / n);
  Data d = {.n = n};
  d.a = memory(8 * n, 0), d.b = memory(8 * n, 0), d.c = memory(8 * n, 0), d.to = memory(16 * n, 0),
      d.and_to = memory(8 * n, 0);
  d.k = memory(n, 0), d.q = memory(n, 0), d.bytes = memory(n, 0);
  d.x = memory(4 * n, 0), d.y = memory(4 * n, 0), d.narrow = memory(4 * n, 0), d.w = memory(8 * n, 0),
      d.whole = memory(8 * n, 0);
  for (size_t i = 0; i < n; i++) {
    d.a[i] = (double)(i % 1000) * 0.001 + 0.5, d.b[i] = (double)(i % 777) * 0.002 + 0.25, d.c[i] = d.a[i];
    d.x[i] = (float)d.a[i], d.y[i] = (float)d.b[i], d.w[i] = (int64_t)(d.b[i] * 100);
    d.k[i] = d.a[i] > 0.75, d.q[i] = !d.k[i];
  }
  static Worker workers[MOST_THREADS];
  pthread_t ids[MOST_THREADS];
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, threads);
  for (unsigned i = 0; i < threads; i++) {
    workers[i] = (Worker){.part = {&d, i, threads, 0}, .rounds = rounds, .tries = tries, .barrier = &barrier};
    if (i && pthread_create(&ids[i], NULL, work, &workers[i]) != 0) return 1;
  }
  work(&workers[0]);
  for (unsigned i = 1; i < threads; i++) pthread_join(ids[i], NULL);
  return 0;
}
