/* peers_more.h — more of the same programs in C, for peers.c: what their tables need is allocated by the programs, as
 * in Weft. */
#ifndef WEFT_BENCH_PEERS_MORE_H
#define WEFT_BENCH_PEERS_MORE_H

/* As gcc makes it: with the recursion put in line some levels deep … */
static long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
/* … and as it is written: each call is one. */
__attribute__((noinline,
               optimize("no-inline", "no-optimize-sibling-calls", "no-ipa-cp"))) static long fib_calls(long n) {
  return n < 2 ? n : fib_calls(n - 1) + fib_calls(n - 2);
}

static long tak(long x, long y, long z) {
  return y >= x ? z : tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y));
}
static long takeuchi(long n) { return tak(n, n * 2 / 3, n / 3); }

static double element(long i, long j) { return 1.0 / (double)((i + j) * (i + j + 1) / 2 + i + 1); }

static void times(const double *v, double *out, long n) {
  for (long i = 0; i < n; i++) {
    double s = 0;
    for (long j = 0; j < n; j++) s += element(i, j) * v[j];
    out[i] = s;
  }
}

static void times_transposed(const double *v, double *out, long n) {
  for (long i = 0; i < n; i++) {
    double s = 0;
    for (long j = 0; j < n; j++) s += element(j, i) * v[j];
    out[i] = s;
  }
}

static double spectral(long n) {
  double *u = malloc((size_t)n * 8), *w = malloc((size_t)n * 8), *t = malloc((size_t)n * 8), uv = 0, vv = 0;
  if (!u || !w || !t) exit(1);
  for (long i = 0; i < n; i++) u[i] = 1;
  for (int step = 0; step < 10; step++) {
    times(u, t, n), times_transposed(t, w, n);
    times(w, t, n), times_transposed(t, u, n);
  }
  for (long i = 0; i < n; i++) uv += u[i] * w[i], vv += w[i] * w[i];
  free(u), free(w), free(t);
  return sqrt(uv / vv);
}

static long fannkuch(long n) {
  long permutation[16], flipped[16], count[16], most = 0, checksum = 0, r = n;
  for (long i = 0; i < n; i++) permutation[i] = i;
  for (long number = 0;; number++) {
    for (; r > 1; r--) count[r - 1] = r;
    for (long i = 0; i < n; i++) flipped[i] = permutation[i];
    long flips = 0;
    for (long k = flipped[0]; k > 0; k = flipped[0]) {
      for (long i = 0, j = k; i < j; i++, j--) {
        long t = flipped[i];
        flipped[i] = flipped[j];
        flipped[j] = t;
      }
      flips++;
    }
    if (flips > most) most = flips;
    checksum += number % 2 == 0 ? flips : -flips;
    for (;; r++) {
      if (r == n) return checksum * 100 + most;
      long first = permutation[0];
      for (long i = 0; i < r; i++) permutation[i] = permutation[i + 1];
      permutation[r] = first;
      if (--count[r] > 0) break;
    }
  }
}

static long place(long row, long columns, long left, long right, long n) {
  if (row == n) return 1;
  long ways = 0;
  for (long c = 0; c < n; c++) {
    long bit = 1L << c, l = 1L << (row + c), r = 1L << (row - c + n);
    if ((columns & bit) == 0 && (left & l) == 0 && (right & r) == 0)
      ways += place(row + 1, columns | bit, left | l, right | r, n);
  }
  return ways;
}

static long least(long a, long b) { return a < b ? a : b; }

static long edits(long n) {
  long *a = malloc((size_t)n * 8), *b = malloc((size_t)n * 8), *row = malloc((size_t)(n + 1) * 8);
  if (!a || !b || !row) exit(1);
  for (long i = 0; i < n; i++) a[i] = i * i % 26, b[i] = i * 7 % 26;
  for (long j = 0; j <= n; j++) row[j] = j;
  for (long i = 1; i <= n; i++) {
    long diagonal = row[0];
    row[0] = i;
    for (long j = 1; j <= n; j++) {
      long cost = a[i - 1] != b[j - 1], best = least(least(row[j] + 1, row[j - 1] + 1), diagonal + cost);
      diagonal = row[j];
      row[j] = best;
    }
  }
  long result = row[n];
  free(a), free(b), free(row);
  return result;
}

static void sift_down(long *a, long start, long end) {
  long root = start;
  while (2 * root + 1 < end) {
    long child = 2 * root + 1;
    if (child + 1 < end && a[child] < a[child + 1]) child++;
    if (a[root] >= a[child]) break;
    long t = a[root];
    a[root] = a[child];
    a[child] = t;
    root = child;
  }
}

static long heapsort_(long n) {
  long *a = malloc((size_t)n * 8);
  if (!a) exit(1);
  for (long i = 0; i < n; i++) a[i] = i * 7919 % 1000003;
  for (long start = n / 2 - 1; start >= 0; start--) sift_down(a, start, n);
  for (long end = n - 1; end > 0; end--) {
    long t = a[0];
    a[0] = a[end];
    a[end] = t;
    sift_down(a, 0, end);
  }
  long result = a[0] + 3 * a[n / 2] + 7 * a[n - 1];
  free(a);
  return result;
}

static double product(long n) {
  double *a = malloc((size_t)(n * n) * 8), *b = malloc((size_t)(n * n) * 8), *c = malloc((size_t)(n * n) * 8);
  if (!a || !b || !c) exit(1);
  for (long i = 0; i < n * n; i++) a[i] = (double)(i % 7) * 0.5, b[i] = (double)(i % 5) * 0.25;
  for (long i = 0; i < n; i++)
    for (long j = 0; j < n; j++) {
      double s = 0;
      for (long k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];
      c[i * n + j] = s;
    }
  double result = c[0] + c[n / 2 * n + n / 3] + c[n * n - 1];
  free(a), free(b), free(c);
  return result;
}

static double kmeans(long n) {
  double *points = malloc((size_t)n * 24), centres[8][3], total = 0;
  if (!points) exit(1);
  for (long i = 0; i < 3 * n; i++) points[i] = (double)(i * 7919 % 10007) / 10007.0;
  memcpy(centres, points, sizeof centres);
  for (int step = 0; step < 20; step++) {
    double sums[8][3] = {0}, counts[8] = {0};
    total = 0;
    for (long i = 0; i < n; i++) {
      long best = 0;
      double nearest = INFINITY;
      for (long c = 0; c < 8; c++) {
        double d = 0;
        for (long j = 0; j < 3; j++) {
          double e = points[3 * i + j] - centres[c][j];
          d += e * e;
        }
        if (d < nearest) nearest = d, best = c;
      }
      for (long j = 0; j < 3; j++) sums[best][j] += points[3 * i + j];
      counts[best] += 1;
      total += nearest;
    }
    for (long c = 0; c < 8; c++)
      if (counts[c] > 0)
        for (long j = 0; j < 3; j++) centres[c][j] = sums[c][j] / counts[c];
  }
  free(points);
  return total;
}

#endif
