/* reads.c — in which way this processor reads a long array fastest, for the flags of parser/cpu.c: reads [ELEMENTS
 * [ROUNDS]] Sums of squares of f64 by vectors of 32 bytes, all ways interleaved; prints medians, beside the first's,
 * and the least times. 10⁸ elements, 9 rounds, one thread. CPU_FETCH pays where a way that fetches ahead is faster
 * than `one`, CPU_PAGES where `pages` is; where neither does, `pairs` may. */
#include <stdio.h>

#include "bench/clock.h"
#include "parser/base.h"

typedef double V __attribute__((vector_size(32)));
enum { LANES = sizeof(V) / sizeof(double), TRIP = 4 * LANES /* elements */, TURN = 256, MOST_ROUNDS = 99 };

static double total(const V *acc) {
  V all = acc[0] + acc[1] + acc[2] + acc[3];
  return all[0] + all[1] + all[2] + all[3];
}

/* `fetch` is done for each line before it is read. */
#define WAY(name, fetch)                                             \
  static double name(const double *x, size_t n) {                    \
    V acc[4] = {{0}};                                                \
    for (size_t i = 0; i < n; i += TRIP) {                           \
      const char *now = (const char *)(x + i);                       \
      for (int line = 0; line < 2; line++, now += PAGE_LINE) fetch;  \
      for (int k = 0; k < 4; k++) {                                  \
        V v = *(const V *)(x + i + k * LANES);                       \
        acc[k] += v * v;                                             \
      }                                                              \
    }                                                                \
    return total(acc);                                               \
  }

WAY(one, (void)now)
WAY(touched, *(volatile const char *)now)
WAY(ahead_512, __builtin_prefetch(now + 512))
WAY(ahead_2k, __builtin_prefetch(now + 2048))
WAY(ahead_4k, __builtin_prefetch(now + FETCH_AHEAD))
WAY(ahead_8k, __builtin_prefetch(now + 8192))
WAY(pages, __builtin_prefetch((const void *)page_ahead((uintptr_t)now)))
WAY(pages_second, __builtin_prefetch((const void *)page_ahead((uintptr_t)now), 0, 2))

/* Two halves interleaved by 2 KB. */
static double pairs(const double *x, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n / 2; i += TURN) sum += one(x + i, TURN) + one(x + n / 2 + i, TURN);
  return sum;
}

static const struct {
  const char *name;
  double (*sum)(const double *x, size_t n);
} ways[] = {{"one", one}, {"touched", touched}, {"pairs", pairs}, {"512 bytes ahead", ahead_512},
            {"2 KB ahead", ahead_2k}, {"4 KB ahead", ahead_4k},
  {"8 KB ahead", ahead_8k}, {"pages", pages}, {"pages, second cache", pages_second}};
enum { WAYS = sizeof ways / sizeof *ways };

static int by_value(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(int argc, char **argv) {
  size_t n = (argc > 1 ? strtoul(argv[1], NULL, 10) : 100000000) / (2 * TURN) * (2 * TURN);
  int rounds = argc > 2 ? atoi(argv[2]) : 9;
  static double spent[WAYS][MOST_ROUNDS];
  double first = 0;
  if (!n || rounds < 1 || rounds > MOST_ROUNDS) return fputs("usage: reads [ELEMENTS [ROUNDS]]\n", stderr), 2;
  double *x = memory(n * sizeof *x, 0);
  for (size_t i = 0; i < n; i++) x[i] = (double)(i % 1000) * 0.001;
  for (int r = 0; r < rounds; r++)
    for (int k = 0; k < WAYS; k++) {
      double begin = seconds(), sum = ways[k].sum(x, n);
      spent[k][r] = seconds() - begin;
      if (!k) first = sum;
      if (sum < first * (1 - 1e-9) || sum > first * (1 + 1e-9))
        return fprintf(stderr, "%s: the sum is %.17g, not %.17g\n", ways[k].name, sum, first), 1;
    }
  for (int k = 0; k < WAYS; k++) qsort(spent[k], (size_t)rounds, sizeof(double), by_value);
  for (int k = 0; k < WAYS; k++)
    printf("%-20s %8.3f ms  %6.1f GB/s  %.2f  least %8.3f ms\n", ways[k].name, spent[k][rounds / 2] * 1e3,
           (double)n * 8e-9 / spent[k][rounds / 2], spent[k][rounds / 2] / spent[0][rounds / 2], spent[k][0] * 1e3);
  free(x);
  return 0;
}
