/* sieve.c — how many primes there are below n. sizes: 300000 100 */
#include "bench/forms/form.h"
static u8 *p;
static i64 count;
static void set_up(i64 n) { p = ROOM(u8, n); }
static void work(i64 n) {
  memset(p, 1, (size_t)n);
  count = 0;
  for (i64 i = 2; i * i < n; i++)
    if (p[i])
      for (i64 j = i * i; j < n; j += i) p[j] = 0;
  for (i64 i = 2; i < n; i++) count += p[i];
}
static double result(i64 n) { return (void)n, (double)count; }
