/* test_threads.c — loops shared by threads: the same bits and errors for any number, limits, forks, several VMs, the
 * end. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/inner.h"
#include "jit/vector/vector.h"
#include "stdlib/linalg/blas.h"
#include "tests/unit/programs.h"
#include "tracer/tracer.h"

static const char *backend; /* NULL: the best */

/* no threads: eager, by one */
static WeftVM *make(uint32_t threads, const char *force, uint64_t fuel, double deadline) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backend = threads ? backend : "eager";
  if (!threads) threads = 1;
  o.threads = threads;
  o.hot = 1;
  o.force = force;
  o.fuel = fuel;
  o.deadline = deadline;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  Tracer *t = tracer_of(weft_vm_of(vm));
  if (t) tracer_ignore_clock(t);
  return vm;
}

/* What a program gives, or its error: to be freed. *shared: loops that threads shared. */
static char *outcome(uint32_t threads, const char *force, uint64_t fuel, const char *program, double *shared) {
  WeftVM *vm = make(threads, force, fuel, 0);
  WeftValue *v = NULL;
  WeftStatus status = weft_eval(vm, program, "test", &v);
  char *text = strdup(status == WEFT_OK ? weft_show(vm, v) : weft_error_text(vm));
  assert_non_null(text);
  *shared = stat(vm, "parallel");
  weft_release(vm, v);
  weft_free(vm);
  return text;
}

/* Sanitized code takes its time: it runs with one number of threads beside the one alone. */
static void same_with_any(const char *force, uint64_t fuel, const char *program, bool expect_shared) {
#ifdef __SANITIZE_ADDRESS__
  static const uint32_t counts[] = {3};
#else
  static const uint32_t counts[] = {2, 3, 5};
#endif
  double shared;
  char *one = outcome(1, force, fuel, program, &shared);
  assert_true(shared == 0);
  for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
    char *other = outcome(counts[i], force, fuel, program, &shared);
    assert_string_equal(one, other);
    if (expect_shared) assert_true(shared > 0);
    free(other);
  }
  free(one);
}

static const char *const programs[] = {
    "let x = arange(600000) * 0.001\nfn f(x) = sqrt(x) * sin(x) + 1.0\nlet y = f(x)\n"
    "[sum(y), y[0], y[599999], y[123457]]",
    "let x = reshape(f32(arange(1000000) % 977) * 0.01, [1000, 1000])\n"
    "fn softmax_rows(x) {\n"
    " let e = exp(x - max(x, axis=1, keepdims=true))\n return e / sum(e, axis=1, keepdims=true)\n}\n"
    "let s = softmax_rows(x)\n[sum(s), s[3, 4], s[999, 999]]",
    "let x = reshape(arange(900000) * 0.37, [900, 1000])\nfn f(x) = [sum(sin(x), axis=0)[17], max(cos(x))]\nf(x)",
    "let x = sin(arange(3000000) * 1.0)\nfn f(x) = sum(x * x)\nf(x)",
    "let x = sin(arange(700001) * 1.0)\nfn f(x) {\n let s = sum(x)\n let y = x - s / 700001.0\n"
    " return sum(y * y) + sum(y)\n}\nf(x)",
};

/* A loop of native code calls the kernels: one that is read in step, one through a temporary, one whose elements are
 * checked. */
static const char *const called[] = {
    "fn f(a, b) {\n for t in 0..3 {\n"
    "  b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])\n"
    "  a[1:-1, 1:-1] = b[1:-1, 1:-1] * 1.5 - a[1:-1, 1:-1]\n  a[1:] = a[:-1] * 0.25\n }\n [a, b]\n}\n"
    "let x = reshape(sin(arange(810000) * 0.37), [900, 900])\nlet (p, q) = f(x, x + 0.5)\n"
    "[sum(p), sum(q), p[3, 4], q[898, 897], p[450, 450]]",
    "fn f(x, n) {\n let y = x + 0.0\n for i in 0..n { y *= 1.0 + 0.001 * i }\n y\n}\n"
    "let y = f(cos(arange(1000003) * 0.1), 5)\n[sum(y), y[0], y[1000002], y[77777]]",
};

static void kernels_of_native_loops_are_shared(void **state) {
  (void)state;
  for (unsigned i = 0; i < sizeof called / sizeof *called; i++) same_with_any(NULL, 0, called[i], true);
}

static void results_are_the_same_bits(void **state) {
  (void)state;
  for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++) same_with_any(NULL, 0, programs[i], true);
}

/* Reductions in blocks of 64 rows of lanes: sizes around their ends, types of each width, several axes, strides,
 * places out of arrays, several results, what follows them. */
static const char *const reductions =
    "fn a(x) = sum(x * x)\n"
    "fn b(x) = [f64(max(x)), f64(min(x + x)), f64(prod(x * x / x + x - x)), mean(f64(x))]\n"
    "fn c(x) = sqrt(f64(sum(x[::-1] * x) + sum(x[::3])))\n"
    "fn d(x, i) = sum(x[i] * x)\n"
    "fn e(x) = sum(x * arange(x.size)) + 1\n"
    "fn f(x) = [sum(x), sum(sum(x, axis=0)), sum(x.T * 2), max(x - 1), sum(x[1:, :-1])]\n"
    "fn g(x) = [any(x > 3), all(x > -3)]\n"
    "let out = ()\n"
    "for n in (1, 2047, 2048, 2049, 4095, 4096, 4097, 8193, 60000, 131075) {\n"
    "  for t in (f64, f32, i64, i32) {\n"
    "    let x = t(((arange(n) * 7919) % 1013) % 64 + 1)\n"
    "    let i = (arange(n) * 31) % n\n"
    "    out += (a(x), b(x), c(x), d(x, i), e(x), g(x))\n"
    "    if n % 5 == 0 { let y = reshape(x, [5, n // 5])\n out += (f(y),) }\n"
    "    let z = sin(f64(x)) * 0.1\n"
    "    out += (a(z), b(z), c(abs(z)), d(z, i), e(z), a(f32(z)), e(f32(z)))\n"
    "  }\n"
    "}\n"
    "out";

static void reductions_are_the_same_bits(void **state) {
  (void)state;
  double shared;
  same_with_any("threads", 0, reductions, true);
  char *compiled = outcome(3, "threads", 0, reductions, &shared), *eager = outcome(0, "", 0, reductions, &shared);
  assert_string_equal(compiled, eager);
  assert_non_null(strchr(eager, '('));
  free(compiled);
  free(eager);
}

/* One kernel, which ends in a truth value. */
static void truths_are_shared(void **state) {
  (void)state;
  static const char *const made = "let k = arange(3000001)\nlet p = k % 3 == 0\nlet q = k % 7 == 5\n"
                                  "fn f(p, q) = any(p & q)\nfn g(p, q) = all(p | ~q)\n"
                                  "(f(p, q), g(p, q), f(p, ~p), g(p, p), f(p[:2], p[1:3]))";
  WeftVM *vm = make(2, NULL, 0, 0);
  for (uint32_t i = 0; i < 3; i++) {
    static const char *const texts[] = {made, "f(p, ~p)", "g(p, p)"},
        *const shown[] = {"(true, false, false, true, false)", "false", "true"};
    WeftValue *v = NULL;
    double runs = stat(vm, "kernel_runs"), shared = stat(vm, "parallel");
    assert_int_equal(weft_eval(vm, texts[i], "test", &v), WEFT_OK);
    assert_string_equal(weft_show(vm, v), shown[i]);
    weft_release(vm, v);
    if (i) assert_true(stat(vm, "kernel_runs") == runs + 1 && stat(vm, "parallel") - shared >= 1);
  }
  weft_free(vm);
}

/* The program shows the same whatever runs it; with one thread and with two the machine is looked at afterwards. */
static void same_then(const char *program, void (*look)(WeftVM *vm)) {
  double shared;
  same_with_any(NULL, 0, program, true);
  char *eager = outcome(0, NULL, 0, program, &shared);
  for (uint32_t threads = 1; threads < 3; threads++) {
    WeftVM *vm = make(threads, NULL, 0, 0);
    WeftValue *v = NULL;
    assert_int_equal(weft_eval(vm, program, "test", &v), WEFT_OK);
    assert_string_equal(weft_show(vm, v), eager);
    weft_release(vm, v);
    look(vm);
    weft_free(vm);
  }
  free(eager);
}

static void eight_went_past(WeftVM *vm) {
  /* not what makes elements of two sizes */
  if (vec_level_runs(VEC_AVX2) && !getenv("WEFT_CPU")) assert_true(stat(vm, "past") == 8);
}

/* And short ones do not. */
static void long_ones_fetched(WeftVM *vm) {
  WeftValue *v = NULL;
  double seen = stat(vm, "fetched");
  if (!vec_level_runs(VEC_AVX2) || getenv("WEFT_CPU")) return;
  assert_true(seen >= (cpu_has(CPU_FETCH) ? 4 : 2)); /* where the processor fetches by itself, not of rows */
  assert_int_equal(weft_eval(vm, "squares(few) + most(few)", "test", &v), WEFT_OK);
  weft_release(vm, v);
  assert_true(stat(vm, "fetched") == seen);
}

/* Results that no cache holds: whole ones, rows that are no whole lines, rows that several loops store, parts of an
 * array, and what the second of two kernels makes. */
static void large_results_go_past_the_caches(void **state) {
  (void)state;
  static const char *const program = "let n = 3300003\nlet a = sin(arange(n) * 0.37)\nlet m = reshape(a[:3300000], "
                                     "[1500, 2200])\nlet c = zeros(n)\nlet o = zeros([1500, 2202])\n"
                                     "fn apart(a) = a[1:] - a[:-1] * 0.5\n"
                                     "fn rows(m) = m[:, 1:-1] * 2.0 + m[0, 2:]\nfn narrow(a) = f32(a) * f32(0.1)\n"
                                     "fn part(b) { c[1:-1] = b[1:-1] * 0.5 - 1.0 }\n"
                                     "fn inside(m) { o[:, 1:-1] = m * 0.5 + 1.0 }\n"
                                     "fn turned(m) = roll(m, 3, 1) + roll(m, -2, 1) * 0.5 - roll(m, 1, 0)\n"
                                     "fn both(a) = (a * 2.0 + 1.0, a - 0.5)\nfn mixed(a) = (a * 3.0, f32(a))\n"
                                     "fn soft(m) { let e = exp(m - max(m, axis=1, keepdims=true)); e / sum(e, "
                                     "axis=1, keepdims=true) }\nfn of(x) = (sum(x), sum(f64(x[1::7])), x[0], x[-1])\n"
                                     "let e = reshape(soft(m), [-1])\nlet d = apart(a)\nlet t = reshape(turned(m), "
                                     "[-1])\nlet r = reshape(rows(m), [-1])\nlet s = narrow(concat([a, a, a]))\n"
                                     "part(a)\ninside(m)\nlet (u, v) = both(a)\nlet (w, x) = mixed(a)\n(of(e), of(u), "
                                     "of(v), of(w), of(x), of(d), of(t), of(r), of(s), of(c), of(reshape(o, [-1])))";
  same_then(program, eight_went_past);
}

/* Reductions of what the nearer caches do not hold: whole arrays, by blocks where threads share them, rows, and rows
 * that another kernel goes on with. */
static void long_reductions_fetch_ahead(void **state) {
  (void)state;
  static const char *const program =
      "let n = 1200000\nlet a = sin(arange(n) * 0.37)\nlet m = reshape(a, [1000, 1200])\nlet few = a[:1000]\n"
      "fn squares(a) = sum(a * a)\nfn most(a) = max(a - 0.25)\nfn rows(m) = sum(m * 0.5, axis=1)\n"
      "fn soft(m) { let e = exp(m - max(m, axis=1, keepdims=true)); e / sum(e, axis=1, keepdims=true) }\n"
      "(squares(a), most(a), sum(rows(m)), sum(soft(m)), soft(m)[999, 1199], squares(few), most(few))";
  same_then(program, long_ones_fetched);
}

/* Not less than twice 2^20 elements, nor where two arrays are read, nor what takes long. */
static void pairs_were_run(WeftVM *vm) {
  WeftValue *v = NULL;
  double seen = stat(vm, "paired");
  if (!vec_level_runs(VEC_AVX512) || getenv("WEFT_CPU")) return;
  assert_true(seen == (cpu_has(CPU_PAGES) ? 0 : 4 * 6)); /* there one run is read as fast */
  assert_int_equal(weft_eval(vm, "squares(a[:2097151]) + both(a, a + 1.0) + long(a)", "test", &v), WEFT_OK);
  weft_release(vm, v);
  assert_true(stat(vm, "paired") == seen);
}

/* Reductions of one array read two of its blocks, far from each other, at once: an even and an odd number of whole
 * blocks, and none but whole ones. */
static void long_reductions_run_in_pairs(void **state) {
  (void)state;
  static const char *const program =
      "fn squares(a) = sum(a * a)\nfn most(a) = max(a * 3 - 2)\nfn product(a) = prod(a * a)\n"
      "fn rows(m) = sum(m * 2 + 1)\nfn both(a, b) = sum(a * b)\nfn long(a) = sum(exp(a))\n"
      "let a = sin(arange(2101250) * 0.37) * 0.2 + 1.0\nlet out = ()\nfor n in (2097152, 2099200, 2101249) {\n"
      "  for t in (f64, f32) {\n    let x = t(a[:n])\n"
      "    out += (squares(x), most(x), product(x / x[::-1]), rows(reshape(x[:n // 2 * 2], [2, n // 2])))\n  }\n}\nout";
  same_then(program, pairs_were_run);
}

/* With AVX2 also up to three reductions, of what the last cache does not hold; none where something is fetched. */
static void pairs_were_run_in_turns(WeftVM *vm) {
  WeftValue *v = NULL;
  double seen = stat(vm, "paired");
  if (!vec_level_runs(VEC_AVX2) || vec_level_runs(VEC_AVX512) || getenv("WEFT_CPU")) return;
  assert_true(seen == (cpu_has(CPU_FETCH) ? 0 : 3 * 3));
  assert_int_equal(weft_eval(vm, "moments(a[:3000000]) + four(a)", "test", &v), WEFT_OK);
  weft_release(vm, v);
  assert_true(stat(vm, "paired") == seen);
}

static void long_reductions_take_turns_in_pairs(void **state) {
  (void)state;
  static const char *const program =
      "fn squares(a) = sum(a * a)\nfn moments(a) = sum(a) + sum(a * a) + max(a * 3)\n"
      "fn ends(a) = (min(a * 2), max(a - 1))\nfn four(a) = sum(a) + min(a) + max(a) + sum(a * a)\n"
      "let a = sin(arange(3203073) * 0.37) * 0.2 + 1.0\nlet out = ()\n"
      "for n in (3201024, 3203072, 3203073) { out += (squares(a[:n]), moments(a[:n]), ends(a[:n])) }\nout";
  same_then(program, pairs_were_run_in_turns);
}

/* Large products by the threads, in parts of rows and of columns, of operands that lie either way or apart; the
 * numbers are exact, so that those of integers say what is right. */
static void products_are_shared(void **state) {
  (void)state;
  static const char *const program =
      "fn made(r, c) = reshape((arange(r * c) * 7919) % 7 - 3, [r, c])\nlet bad = 0\n"
      "fn compare(a, b) { let right = a @ b\n"
      "  for t in (f64, f32) { if any(i64(t(a) @ t(b)) != right) { bad += 1 } } }\n"
      "for s in ((401, 333, 300), (20, 70001, 30), (70001, 30, 20), (17, 15, 140000)) {\n  let (m, n, k) = s\n"
      "  compare(made(m, k), made(k, n))\n  compare(made(k, m).T, made(k, n))\n  compare(made(m, k), made(n, k).T)\n"
      "  let (a, b) = (made(m, k + 5), made(n, k + 5).T)\n  let right = a[:, 3:-2] @ b[2:-3]\n"
      "  for t in (f64, f32) { if any(i64(t(a)[:, 3:-2] @ t(b)[2:-3]) != right) { bad += 1 } }\n}\nbad";
  for (uint32_t threads = 2; threads <= 6; threads += 4) {
    WeftVM *vm = make(threads, NULL, 0, 0);
    WeftValue *v = NULL;
    assert_int_equal(weft_eval(vm, program, "test", &v), WEFT_OK);
    assert_string_equal(weft_show(vm, v), "0");
    weft_release(vm, v);
    assert_int_equal(weft_eval(vm, "let a = f64(made(401, 300))\nlet b = f64(made(300, 333))", "test", NULL), WEFT_OK);
    double shared = stat(vm, "parallel");
    assert_int_equal(weft_eval(vm, "a @ b", "test", &v), WEFT_OK);
    weft_release(vm, v);
    if (blas_core()) assert_true(stat(vm, "parallel") == shared + 1);
    weft_free(vm);
  }
}

/* Shapes whose rows are whole lines and such that are not; those that stay in the caches are copied first. */
static void kernels_run_on_tiles_of_transposed_arrays(void **state) {
  (void)state;
  static const char *const program = "fn one(a) = a.T * 2.0 + 1.0\n"
                                     "fn two(a, b) = sqrt(abs(a.T * b - 0.5))\nfn three(a) = f32(3) * a.T\n"
                                     "fn four(a, c, r) = a.T * 0.5 + reshape(arange(c * r), [c, r])\nlet bad = 0\n"
                                     "for s in [[1504, 2304], [1501, 1603], [700, 513], [40, 60000], [40001, 60]] {\n"
                                     "  let (r, c) = (s[0], s[1])\n"
                                     "  let a = reshape((arange(r * c) * 7919) % 10007 * 0.37, [r, c])\n"
                                     "  let b = reshape((arange(r * c) * 31) % 517 * 0.7, [c, r])\n"
                                     "  let place = expand_dims(arange(c), 1) + c * expand_dims(arange(r), 0)\n"
                                     "  let t = (place * 7919) % 10007 * 0.37\n"
                                     "  if any(one(a) != t * 2.0 + 1.0) or any(two(a, b) != sqrt(abs(t * b - 0.5))) or "
                                     "any(three(f32(a)) != f32(3) * f32(t)) or any(four(a, c, r) != t * 0.5 + "
                                     "(expand_dims(arange(c), 1) * r + arange(r))) { bad += 1 }\n}\nbad";
  static const char *const texts[] = {"fn one(a) = a.T * 2.0 + 1.0\n"
                                      "let a = reshape(arange(2400000) * 0.5, [1500, 1600])\nlet x = one(a)\nx[3, 7]",
                                      "x = one(a)\nx[1599, 1499]"};
  double shared;
  same_with_any(NULL, 0, program, true);
  char *eager = outcome(0, NULL, 0, program, &shared);
  assert_string_equal(eager, "0");
  free(eager);
  WeftVM *vm = make(1, NULL, 0, 0);
  for (uint32_t i = 0; i < 2; i++) {
    WeftValue *v = NULL;
    double runs = stat(vm, "kernel_runs"), reused = stat(vm, "reused");
    assert_int_equal(weft_eval(vm, texts[i], "test", &v), WEFT_OK);
    assert_string_equal(weft_show(vm, v), i ? "2400000.0" : "11204.0");
    weft_release(vm, v);
    /* no copy whose memory it would be */
    if (i && stream_worth(2400000 * 8, false))
      assert_true(stat(vm, "kernel_runs") == runs + 1 && stat(vm, "reused") == reused);
  }
  weft_free(vm);
}

/* Each thread reads whole rows of the source: it is done with a band of them before it begins another. */
enum { TRANSPOSED_ROWS = 1200, TRANSPOSED_COLUMNS = 1000, BAND = 64 };

typedef struct Bands {
  uint32_t calls, broken;
} Bands;

static void seen(void *ctx, void *at, int64_t first, int64_t n) {
  static _Thread_local int64_t band, rows;
  Bands *b = ctx;
  int64_t now = first % TRANSPOSED_COLUMNS / BAND;
  if (now != band && rows % TRANSPOSED_ROWS) __atomic_store_n(&b->broken, 1, __ATOMIC_RELAXED);
  band = now;
  rows++;
  __atomic_fetch_add(&b->calls, 1, __ATOMIC_RELAXED);
  for (int64_t i = 0; i < n; i++) ((double *)at)[i] += 1;
}

static void threads_that_turn_take_bands_of_the_source(void **state) {
  static double from[TRANSPOSED_COLUMNS][TRANSPOSED_ROWS], to[TRANSPOSED_ROWS][TRANSPOSED_COLUMNS];
  (void)state;
  for (int64_t i = 0; i < TRANSPOSED_COLUMNS; i++)
    for (int64_t j = 0; j < TRANSPOSED_ROWS; j++) from[i][j] = (double)(i * TRANSPOSED_ROWS + j);
  for (uint32_t threads = 1; threads < 4; threads++) {
    WeftVM *vm = make(threads, NULL, 0, 0);
    Bands b = {0};
    double shared = stat(vm, "parallel");
    memset(to, 0, sizeof to);
    assert_true(strided_transpose(weft_vm_of(vm), 8, (i64[2]){TRANSPOSED_ROWS, TRANSPOSED_COLUMNS}, to, from,
                             (i64[2]){1, TRANSPOSED_ROWS}, &(StridedThen){seen, &b, false}));
    assert_int_equal(b.broken, 0);
    assert_int_equal(b.calls, TRANSPOSED_ROWS * ((TRANSPOSED_COLUMNS + BAND - 1) / BAND));
    assert_true(stat(vm, "parallel") == shared + (threads > 1));
    bool same = true;
    for (int64_t i = 0; i < TRANSPOSED_ROWS; i++)
      for (int64_t j = 0; j < TRANSPOSED_COLUMNS; j++) same &= to[i][j] == from[j][i] + 1;
    assert_true(same);
    weft_free(vm);
  }
}

/* Where pages are fetched side by side, each line is fetched once, by lines or by more of them, and before it is
 * read. */
static void each_line_is_fetched_once(void **state) {
  enum { PAGES = 24, LINES = PAGE_BYTES / PAGE_LINE, FIRST = 1 << 20 };
  static u8 fetched[PAGES + 16][LINES];
  (void)state;
  for (u32 lines = 1; lines <= PAGES_ABREAST; lines *= 2) {
    memset(fetched, 0, sizeof fetched);
    for (uintptr_t at = 0; at < PAGES * PAGE_BYTES; at += lines * PAGE_LINE)
      for (u32 k = 0; k < lines; k++) {
        uintptr_t next = page_ahead(FIRST + at) + k * PAGE_NEXT - FIRST, part = next % PAGE_BYTES / PAGE_PART;
        assert_true(next / PAGE_BYTES > at / PAGE_BYTES && next / PAGE_BYTES <= at / PAGE_BYTES + PAGES_ABREAST);
        /* the farther, the earlier part of a page */
        assert_int_equal(next / PAGE_BYTES - at / PAGE_BYTES + part, PAGES_ABREAST);
        fetched[next / PAGE_BYTES][next % PAGE_BYTES / PAGE_LINE]++;
      }
    for (u32 page = PAGES_ABREAST; page <= PAGES; page++)
      for (u32 line = 0; line < LINES; line++) assert_int_equal(fetched[page][line], 1);
  }
}

/* Every place within a line, before and behind it nothing is written; what is prefetched need not be anybody's. */
static void stores_past_the_caches_copy(void **state) {
  _Alignas(64) static char from[2048], to[2048];
  (void)state;
  for (int i = 0; i < 2048; i++) from[i] = (char)(i * 7 + 1);
  for (int at = 0; at < 70; at++)
    for (int n = 0; n < 800; n += n < 140 ? 1 : 53) {
      memset(to, 0, sizeof to);
      if (n & 1) stream_copy(to + at, from + n % 9, n);
      else stream_copy_ahead(to + at, from + n % 9, n, n & 2 ? 0 : (uintptr_t)from, 1 + (u32)n % 3);
      stream_done();
      assert_memory_equal(to + at, from + n % 9, (size_t)n);
      for (int i = 0; i < at; i++) assert_true(to[i] == 0);
      for (int i = at + n; i < at + n + 200; i++) assert_true(to[i] == 0);
    }
}

static const char *const operations =
    "let n = 300007\n"
    "let x = sin(arange(n) * 0.37)\n"
    "let y = reshape(x[:300000], [300, 1000])\n"
    "let out = (x * 2.0, x + x, f32(x) * x, -x, "
    "where(x > 0.5, x, 1.0), clip(x, -0.5, 0.5), x ** 2, 3.0 - x, i32(x * 100.0) // 7)\n"
    "out += (y + y[0], y.T * 2.0, y[:, ::-1] - y[:, :1], y[::2] * y[1::2], y.T + y.T, x[::-1] * x, y * 1.5)\n"
    "let t = (sum(x), sum(f32(x)), max(x), prod(x + 1.0), sum(y, axis=1), "
    "sum(y, axis=0), sum(y), min(y, axis=1), sum(i32(x * 100.0)), any(x > 2.0), sum(y[:, :999]))\n"
    "let s = ()\n"
    "for a in out { s += (sum(a), a[7], a[-3], sum(abs(a) * 3)) }\n"
    "(s, t)";

/* Results narrower than what they are made from, whose sizes pass the caches or whose operands alone do: each thousand
 * as the first, and what is left. */
static void large_comparisons_are_right(void **state) {
  (void)state;
  static const char *const program =
      "fn bad(x, row) = sum(reshape(x[:len(x) // 1000 * 1000], "
      "[-1, 1000]) != row) + sum(x[len(x) // 1000 * 1000:] != row[:len(x) % 1000])\n"
      "let r = arange(1000)\nlet (small, out) = ((r - 5) * 0.5, 0)\n"
      "for n in (3300003, 13000007) {\n  let k = arange(n) % 1000\n  let a = (k - 5) * 0.5\n  let w = f32(a)\n"
      "  out += bad(a > 100.25, r > 205) + bad(100 <= a, r >= 205) + bad(a == a[::1], "
      "r >= 0) + bad(w < f32(3), r < 11) + bad(k < a, r < -5) + bad(isnan(a), r < 0)\n"
      "  out += bad(f32(k), f32(r)) + bad(u8(k // 4), u8(r // 4)) + bad(i32(a * 2.0), "
      "i32(r - 5)) + bad(bool(k // 999), r == 999)\n}\nout";
  for (uint32_t threads = 1; threads < 3; threads++) {
    double shared;
    backend = "eager";
    char *seen = outcome(threads, NULL, 0, program, &shared);
    backend = NULL;
    assert_string_equal(seen, "0");
    assert_true(threads == 1 || shared > 0);
    free(seen);
  }
}

static void eager_operations_are_the_same_bits(void **state) {
  (void)state;
  backend = "eager";
  same_with_any(NULL, 0, operations, true);
  same_with_any("threads", 0, reductions, true);
  same_with_any(NULL, 3000, "let x = arange(1000000) * 1.0\nlet n = 0\nwhile true {\n let y = x * 2.0 + sum(x)\n"
                            " n = n + 1\n print(n)\n}", true);
  backend = NULL;
}

/* What only moves, converts or adds up: nothing else in these programs is long enough to be shared. */
static const char *const moved[] = {
    "full([300007], 1.5)", "f32(x)", "f64(f)", "i64(f)", "f64(i)", "x[::-2]", "x[:300000].reshape([300, 1000]).T",
    "i[:300000].reshape([3, 100, 1000]).T", "concat([x, x])",
    "roll(x, 5)", "roll(x, -5)", "sum(y, axis=0)", "sum(y, axis=[0, 1])", "max(y, axis=0)", "sum(f32(y), axis=0)",
    "cumsum(x)", "cumsum(f)",
};

static void what_moves_is_shared(void **state) {
  static const char program[] =
      "let x = linspace(-3.7, 9.1, 300007)\nlet f = linspace(f32(1.0), f32(900.0), 300007)\nlet i = arange(300007)\n"
      "let y = reshape(linspace(-1.0, 1.7, 303000), [100, 30, 101])\n"
      "let z = ravel(%s)\nlet t = (z[0], z[-1])\n"
      "for k in 0..len(z) // 1000 + 1 { t += (z[(k * 617) %% len(z)], sum(z[k * 1000:k * 1000 + 1000])) }\nt";
  (void)state;
  backend = "eager";
  for (unsigned k = 0; k < sizeof moved / sizeof *moved; k++) {
    char text[2048];
    assert_true(snprintf(text, sizeof text, program, moved[k]) < (int)sizeof text);
    same_with_any(NULL, 0, text, true);
    double shared;
    char *alone = outcome(0, NULL, 0, text, &shared);
    assert_true(alone[0] == '(');
    free(alone);
  }
  backend = NULL;
}

static void truths_are_counted_by_threads(void **state) {
  static const char *const counts[][2] = {{"sum(t)", "909092"}, {"sum(t[3:-5])", "909089"},
                                          {"sum(reshape(t[:2400002], [2, 1200001]), axis=1)", "[436364, 436364]"}};
  (void)state;
  backend = "eager";
  for (uint32_t threads = 1; threads < 4; threads++) {
    WeftVM *vm = make(threads, NULL, 0, 0);
    for (unsigned i = 0; i < 4; i++) {
      WeftValue *v = NULL;
      double shared = stat(vm, "parallel");
      assert_int_equal(weft_eval(vm, i ? counts[i - 1][0] : "let t = arange(2500003) * 7 % 11 < 4\n0", "test", &v),
                       WEFT_OK);
      if (i) assert_string_equal(weft_show(vm, v), counts[i - 1][1]);
      if (i) assert_true(stat(vm, "parallel") == shared + (threads > 1 ? i == 3 ? 2 : 1 : 0));
      weft_release(vm, v);
    }
    weft_free(vm);
  }
  backend = NULL;
}

/* Around the ends of segments, of blocks of them and of parts. */
static void scans_are_the_same_bits(void **state) {
  static const char program[] = "let out = ()\nfor n in (257, 511, 512, 513, 527, 4096, 4097, 70001) {\n"
                                " let x = linspace(-0.7, 1.3, n)\n"
                                " let a = (cumsum(x), cumsum(f32(x)), cumsum(x, reverse=true))\n"
                                " for y in a { for k in 0..n { if (k * 7919) % n < 400 { out += (y[k],) } } }\n}\nout";
  double shared;
  (void)state;
  backend = "eager";
  char *alone = outcome(0, "", 0, program, &shared);
  for (uint32_t n = 2; n < 6; n++) {
    char *other = outcome(n, "threads", 0, program, &shared);
    assert_string_equal(alone, other);
    assert_true(shared > 0);
    free(other);
  }
  assert_true(alone[0] == '(');
  free(alone);
  backend = NULL;
}

/* But short rows are. */
static void nothing_is_compiled(WeftVM *vm) {
  WeftValue *v = NULL;
  assert_true(stat(vm, "kernels") == 0);
  assert_int_equal(weft_eval(vm, "let e = reshape(a, [180000, 10])\nfn short(b) = concat([b, b], axis=1)\n"
                                 "short(e).shape", "test", &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "(180000, 20)");
  weft_release(vm, v);
  assert_true(stat(vm, "kernels") == 1);
}

/* Arrays that are there are copied into a large one, in all or row by row. */
static void large_arrays_are_joined(void **state) {
  static const char program[] =
      "let a = linspace(0.0, 1.0, 1800000)\nlet b = reshape(a, [1000, 1800])\n"
      "fn ends(a) = concat([a, a])\nfn sides(b) = concat([b, b], axis=1)\n"
      "let c = ends(a)\nlet d = sides(b)\n(c.shape, c[1800000], c[1799999], c[7], d.shape, d[3, 1801] == b[3, 1], "
      "sum(d) == sum(d[::-1]), all(c[:1800000] == a), all(d[:, 1800:] == b))";
  (void)state;
  same_then(program, nothing_is_compiled);
}

/* Whole, and of rows that begin within a line of memory, stored non-temporally: what a short scan of its beginning
 * gives. */
static void long_scans_are_the_same_bits(void **state) {
  static const char program[] =
      "let a = sin(arange(3300003) * 0.37)\na[0] = -0.0\n"
      "let m = reshape(concat([a[:3300000], a[:3300000]]), [2, 3300000])\nlet f = f32(concat([a, a]))\n"
      "fn same(long, short) = all(long[:short.size] == short)\n"
      "let c = cumsum(a)\nlet d = cumsum(m[:, 1:], axis=1)\nlet e = cumsum(f)\nlet out = ()\n"
      "for n in (1, 15, 4097, 250000) { out += (same(c, "
      "cumsum(a[:n])), same(d[1], cumsum(a[1:n + 1])), same(e, cumsum(f[:n]))) }\n"
      "(out, 1 / c[0], sum(c), c[-1], sum(d), sum(e))";
  (void)state;
  same_with_any(NULL, 0, program, true);
  double shared;
  char *alone = outcome(0, NULL, 0, program, &shared);
  assert_non_null(strstr(alone, "((true, true, true, true, true, true, true, true, true, true, true, true), -inf, "));
  free(alone);
}

static void errors_are_the_same(void **state) {
  (void)state;
  same_with_any(NULL, 0, "let x = linspace(0.0, 1.0, 700000)\nx[650000] = nan\ni64(x)", true);
  same_with_any(NULL, 0, "let x = arange(500000) * 1.0\n"
                         "let i = (arange(800000) * 7) % 500000\ni[700001] = 500000\ni[300] = 600000\n"
                         "fn f(x, i) = x[i] * 2.0 + 1.0\nf(x, i)", false);
  same_with_any(NULL, 0,
                "let a = arange(700000) + 1\nlet b = arange(700000) - 654321\nfn f(a, b) = a // b + 1\nf(a, b)", false);
}

static void fuel_is_the_same(void **state) {
  (void)state;
  const char *program = "let x = arange(1000000) * 1.0\nfn f(x) = x * 2.0 + 1.0\nlet n = 0\nwhile true {\n"
                        " let y = f(x)\n n = n + 1\n n\n}";
  same_with_any(NULL, 20000, program, true);
}

typedef struct Heap {
  size_t out;
  long asked, refuse;
  size_t from, to; /* sizes that are refused; 0, 0: none */
  long too_large;  /* such */
} Heap;

static void *heap_resize(void *context, void *p, size_t old_size, size_t new_size) {
  Heap *h = context;
  void *q = NULL;
  if (new_size > old_size && ++h->asked == h->refuse) return NULL;
  if (new_size >= h->from && new_size < h->to) {
    h->too_large++;
    return NULL;
  }
  if (new_size) q = realloc(p, new_size);
  else free(p);
  h->out += new_size - old_size;
  return q;
}

/* The n-th request for memory is refused, for every fourth n from the making of the VM on: the same answer or an error,
 * and nothing is lost. */
static void memory_may_be_refused(void **state) {
  (void)state;
  const char *program = "let x = sin(arange(5000) * 1.0)\nfn f(x) = sum(x * x) + max(x)\nlet t = f(x)\nf(x * 2.0)";
  char *want = NULL;
  bool refused = true;
  long first = 0;
  for (long n = 0; refused; n++) {
    Heap h = {.refuse = n ? first + n : 0};
    WeftOptions o = WEFT_OPTIONS_INIT;
    o.resize = heap_resize;
    o.resize_context = &h;
    o.threads = 3;
    o.hot = 1;
    o.force = "threads";
    WeftVM *vm = weft_new(&o);
    assert_non_null(vm);
    if (tracer_of(weft_vm_of(vm))) tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
    if (!n) first = h.asked;
    WeftValue *v = NULL;
    if (weft_eval(vm, program, "test", &v) == WEFT_OK) {
      const char *shown = weft_show(vm, v);
      if (!n) want = strdup(shown);
      else if (*shown) assert_string_equal(shown, want);
      if (!n) assert_true(stat(vm, "parallel") > 2);
    } else {
      assert_string_equal(weft_error_kind(vm), "limit");
    }
    weft_release(vm, v);
    weft_free(vm);
    assert_int_equal(h.out, 0);
    refused = !n || h.asked >= h.refuse;
  }
  free(want);
}

/* Without room for what stands before the parts of a shared scan, one thread does it element by element. */
static void scans_need_no_room(void **state) {
  static const char program[] = "let a = sin(arange(3300003) * 0.37)\nlet c = cumsum(a)\nlet e = cumsum(f32(a))\n"
                                "(sum(c), sum(e), c[-1], e[-1], c[262143], e[262144])";
  char *shown[2] = {NULL, NULL};
  (void)state;
  for (unsigned k = 0; k < 2; k++) {
    Heap h = {.refuse = 0};
    WeftOptions o = WEFT_OPTIONS_INIT;
    o.resize = heap_resize;
    o.resize_context = &h;
    o.threads = 3;
    o.backend = "eager";
    WeftVM *vm = weft_new(&o);
    WeftValue *v = NULL;
    assert_non_null(vm);
    if (k) h.from = 4200, h.to = 8300;
    assert_int_equal(weft_eval(vm, program, "test", &v), WEFT_OK);
    shown[k] = strdup(weft_show(vm, v));
    assert_int_equal(h.too_large, k ? 2 : 0);
    weft_release(vm, v);
    weft_free(vm);
    assert_int_equal(h.out, 0);
  }
  assert_string_equal(shown[0], shown[1]);
  free(shown[0]);
  free(shown[1]);
}

static void deadlines_stop_shared_loops(void **state) {
  (void)state;
  WeftVM *vm = make(4, NULL, 0, 0.2);
  assert_int_equal(weft_eval(vm, "let x = arange(400000) * 1.0\nfn f(x) = sin(x) + cos(x) * tan(x)\n"
                                 "while true { let y = f(x) }", "test", NULL), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "limit");
  weft_free(vm);
}

static void *interrupt_soon(void *vm) {
  usleep(100000);
  weft_interrupt(vm);
  return NULL;
}

static void interrupts_stop_shared_loops(void **state) {
  (void)state;
  WeftVM *vm = make(3, NULL, 0, 600); /* it would hang otherwise */
  pthread_t other;
  assert_int_equal(pthread_create(&other, NULL, interrupt_soon, vm), 0);
  assert_int_equal(weft_eval(vm, "let x = arange(400000) * 1.0\nfn f(x) = sin(x) + cos(x) * tan(x)\n"
                                 "while true { let y = f(x) }", "test", NULL), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "interrupt");
  pthread_join(other, NULL);
  weft_free(vm);
}

/* The text of a tree that is shared ends with an interrupt that comes meanwhile; one from before is the next program's,
 * and so is this one. */
static void interrupts_stop_what_is_shown(void **state) {
  (void)state;
  WeftVM *vm = make(1, NULL, 0, 0);
  WeftValue *small = NULL, *large = NULL;
  pthread_t other;
  assert_int_equal(weft_eval(vm, "map(i => i, 0..20000)", "test", &small), WEFT_OK);
  assert_int_equal(weft_eval(vm, "let a = (1, 1)\nfor i in 0..60 { a = (a, {x: a}) }\na", "test", &large), WEFT_OK);
  weft_interrupt(vm);
  assert_true(strlen(weft_show(vm, small)) > 100000);
  assert_int_equal(pthread_create(&other, NULL, interrupt_soon, vm), 0);
  assert_string_equal(weft_show(vm, large), "");
  pthread_join(other, NULL);
  assert_true(strlen(weft_show(vm, small)) > 100000);
  assert_int_equal(weft_eval(vm, "1", "test", NULL), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "interrupt");
  assert_int_equal(weft_eval(vm, "1", "test", NULL), WEFT_OK);
  weft_set_limits(vm, 0, 0, 1e-6); /* of a program, not of what is shown behind it */
  assert_true(strlen(weft_show(vm, small)) > 100000);
  weft_set_limits(vm, 50 << 20, 0, 0);
  assert_string_equal(weft_show(vm, large), "");
  weft_release(vm, small);
  weft_release(vm, large);
  weft_free(vm);
}

typedef struct Poked {
  WeftVM *vm;
  bool done;
  int ran, stopped, other; /* programs */
} Poked;

static void *poke(void *p) {
  Poked *k = p;
  while (!__atomic_load_n(&k->done, __ATOMIC_RELAXED)) {
    usleep(2000);
    weft_interrupt(k->vm);
  }
  return NULL;
}

static void *run_poked(void *p) {
  static const char *const texts[] = {
      "let a = (1, 1)\nfor i in 0..60 { a = (a, {x: a}) }\nstr(a)",
      "let b = ()\nfor i in 0..60 { b = (b, b) }\ntree_leaves(b)",
      "1 + 1", "json.parse(\" \" * 5000000 + \"1\")", "replace(\"a\" * 1000000, \"a\", \"bc\")",
      "try { while true { } } catch e { 1 }", "let l = list(0..300000)\nl == list(0..300000)",
      "sum(sin(rand(300000)))"};
  Poked *k = p;
  for (int i = 0; i < 40; i++) {
    WeftStatus status = weft_eval(k->vm, texts[(unsigned)i % (sizeof texts / sizeof *texts)], "test", NULL);
    k->ran += status == WEFT_OK;
    k->stopped += status == WEFT_ERROR && weft_error_limit(k->vm) == WEFT_LIMIT_INTERRUPT;
    k->other += status != WEFT_OK && weft_error_limit(k->vm) != WEFT_LIMIT_INTERRUPT;
  }
  return NULL;
}

/* Whatever an interrupt meets, it is told as one, and the VM goes on. */
static void interrupts_from_all_sides(void **state) {
  (void)state;
  Poked k[2] = {{.vm = make(1, NULL, 0, 0)}, {.vm = make(1, NULL, 0, 0)}};
  pthread_t runs[2], pokes[2];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(pthread_create(&runs[i], NULL, run_poked, &k[i]), 0);
    assert_int_equal(pthread_create(&pokes[i], NULL, poke, &k[i]), 0);
  }
  for (int i = 0; i < 2; i++) {
    pthread_join(runs[i], NULL);
    __atomic_store_n(&k[i].done, true, __ATOMIC_RELAXED);
    pthread_join(pokes[i], NULL);
    weft_free(k[i].vm);
    assert_int_equal(k[i].other, 0);
    assert_int_equal(k[i].ran + k[i].stopped, 40);
    assert_true(k[i].stopped >= 15); /* three of the texts end no other way */
  }
}

static void *run_alone(void *out) {
  double shared;
  for (int i = 0; i < 5; i++) {
    free(*(char **)out);
    *(char **)out = outcome(3, NULL, 0, programs[0], &shared);
  }
  return NULL;
}

/* One pool: a VM that finds it busy works alone. */
static void VMs_share_the_pool(void **state) {
  (void)state;
  pthread_t threads[3];
  char *got[3] = {NULL, NULL, NULL};
  double shared;
  char *want = outcome(1, NULL, 0, programs[0], &shared);
  for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_alone, &got[i]), 0);
  for (int i = 0; i < 3; i++) {
    pthread_join(threads[i], NULL);
    assert_string_equal(got[i], want);
    free(got[i]);
  }
  free(want);
}

static void a_fork_has_a_pool_of_its_own(void **state) {
  (void)state;
#ifdef __SANITIZE_THREAD__
  print_message("# skipped: the sanitizer does not know threads begun in a child\n");
  skip();
#endif
  WeftVM *vm = make(3, NULL, 0, 0);
  const char *text = "let x = arange(600000) * 0.001\nfn f(x) = sqrt(x) * sin(x) + 1.0\nlet y = f(x)\n"
                     "let before = sum(y)";
  assert_int_equal(weft_eval(vm, text, "test", NULL), WEFT_OK);
  double before = stat(vm, "parallel");
  assert_true(before > 0);
  for (int i = 0; i < 3; i++) {
    pid_t child = fork();
    if (child == 0) {
      bool ok = weft_eval(vm, "let z = f(x)\nif sum(z) != before { error(\"other bits\") }", "test", NULL) == WEFT_OK &&
                stat(vm, "parallel") > before;
      weft_free(vm);
      _exit(ok ? 0 : 1);
    }
    int status = 0;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(weft_eval(vm, "let z = f(x)", "test", NULL), WEFT_OK); /* and the parent's goes on */
  }
  weft_free(vm);
}

/* The threads end with the last VM that used them: then the library can go. */
static void the_library_can_be_unloaded(void **state) {
  (void)state;
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
  assert_true(n > 0);
  path[n] = 0;
  char *end = strstr(path, "/tests/");
  assert_non_null(end);
  strcpy(end, "/libweft.so");
  for (int i = 0; i < 3; i++) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) print_message("# skipped: there is no libweft.so\n"), skip();
    WeftVM *(*new_vm)(const WeftOptions *);
    void (*free_vm)(WeftVM *);
    WeftStatus (*eval)(WeftVM *, const char *, const char *, WeftValue **);
    *(void **)&new_vm = dlsym(library, "weft_new");
    *(void **)&free_vm = dlsym(library, "weft_free");
    *(void **)&eval = dlsym(library, "weft_eval");
    assert_true(new_vm && free_vm && eval);
    WeftOptions o = WEFT_OPTIONS_INIT;
    o.threads = 3;
    o.hot = 1;
    WeftVM *vm = new_vm(&o);
    assert_non_null(vm);
    assert_int_equal(eval(vm, programs[0], "test", NULL), WEFT_OK);
    free_vm(vm);
    dlclose(library);
    pid_t child = fork(); /* what is called at a fork went with the library */
    if (child == 0) _exit(0);
    int status = 0;
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_are_the_same_bits),
      cmocka_unit_test(kernels_of_native_loops_are_shared),
      cmocka_unit_test(reductions_are_the_same_bits),
      cmocka_unit_test(truths_are_shared),
      cmocka_unit_test(large_results_go_past_the_caches),
      cmocka_unit_test(long_reductions_fetch_ahead),
      cmocka_unit_test(long_reductions_run_in_pairs),
      cmocka_unit_test(long_reductions_take_turns_in_pairs),
      cmocka_unit_test(products_are_shared),
      cmocka_unit_test(kernels_run_on_tiles_of_transposed_arrays),
      cmocka_unit_test(truths_are_counted_by_threads),
      cmocka_unit_test(threads_that_turn_take_bands_of_the_source),
      cmocka_unit_test(each_line_is_fetched_once), cmocka_unit_test(stores_past_the_caches_copy),
      cmocka_unit_test(large_comparisons_are_right),
      cmocka_unit_test(eager_operations_are_the_same_bits),
      cmocka_unit_test(what_moves_is_shared),
      cmocka_unit_test(scans_are_the_same_bits),
      cmocka_unit_test(large_arrays_are_joined),
      cmocka_unit_test(long_scans_are_the_same_bits),
      cmocka_unit_test(errors_are_the_same),
      cmocka_unit_test(fuel_is_the_same),
      cmocka_unit_test(memory_may_be_refused),
      cmocka_unit_test(scans_need_no_room),
      cmocka_unit_test(deadlines_stop_shared_loops),
      cmocka_unit_test(interrupts_stop_shared_loops),
      cmocka_unit_test(interrupts_stop_what_is_shown),
      cmocka_unit_test(interrupts_from_all_sides),
      cmocka_unit_test(VMs_share_the_pool),
      cmocka_unit_test(a_fork_has_a_pool_of_its_own),
      cmocka_unit_test(the_library_can_be_unloaded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
