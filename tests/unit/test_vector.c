/* test_vector.c — vector code beside the loop IR's interpreter, for every setting that this processor runs; bits
 * are compared. test_vector COUNT [SEED] runs that many random kernels; test_vector quotients tries all f32
 * quotients that are hard to round. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "jit/plan/cost.h"
#include "jit/vector/vector.h"
#include "stdlib/kernels/wm.h"
#include "tests/unit/vector_random.h"

enum { STEPS = 20000000, LEVELS = 2 };
static const VecLevel levels[LEVELS] = {VEC_AVX2, VEC_AVX512};

typedef struct Tally {
  u32 emitted, refused, endless; /* endless: the interpreter would take STEPS and more */
  bool same;
} Tally;

/* One emitter for each setting that is tested; NULL: not this one. */
typedef struct Settings {
  LoopModule m;
  VecEmitter *emitters[LEVELS];
  Tally *tally; /* of each */
  bool print_refused;
} Settings;

static void start(LoopModule *m) {
  assert_int_equal(loop_module_init(m, allocator_system()), WEFT_OK);
  m->math = wm_best()->functions;
  m->math_count = wm_best()->count;
}

static VecCode *compiled(VecEmitter *e, const LoopFn *fn) {
  const char *refused = "";
  VecCode *code = vec_compile(e, fn, &refused);
  if (!code) fail_msg("%s", refused);
  return code;
}

/* Runs a kernel in the interpreter and as code, with two arrays each that it stores to, which begin as zeros: the same
 * bits. */
static void stores_the_same(const LoopFn *fn, VecCode *code, u64 *const args[2], i64 lo, i64 hi, void *z,
                            size_t z_bytes, void *w, size_t w_bytes) {
  u64 key = 0, steps = UINT64_MAX;
  Buf why;
  buf_init(&why, allocator_system());
  memset(z, 0, 2 * z_bytes);
  memset(w, 0, 2 * w_bytes);
  assert_int_equal(loops_interp_kernel(fn, args[0], lo, hi, &key, &steps, &why), WEFT_OK);
  assert_true(vec_code_kernel(code)(args[1], lo, hi) == LOOP_KEY_NONE);
  assert_memory_equal(z, (char *)z + z_bytes, z_bytes);
  assert_memory_equal(w, (char *)w + w_bytes, w_bytes);
  buf_free(&why);
}

static RandomData wanted, got; /* what goes in is the one's; each writes to its own */

static void show_head(const Settings *s, u32 l, const LoopFn *fn, u64 seed, u32 round) {
  const u64 *scalars = wanted.args + RANDOM_IN + RANDOM_OUT;
  Buf text;
  buf_init(&text, s->m.alloc);
  loops_print(fn, &text);
  printf("# %s seed %llu round %u n %llu k %llu stride %llu\n%s\n", vec_level_text(levels[l]), (unsigned long long)seed,
         round, (unsigned long long)scalars[0], (unsigned long long)scalars[1], (unsigned long long)scalars[2],
         buf_text(&text));
  buf_free(&text);
}

/* False: code of a setting gives another key or other cells than the interpreter; they are printed. */
static bool agrees(const Settings *s, u32 l, const LoopFn *fn, VecCode *code, u64 seed, u32 round, i64 lo, i64 hi,
                   u64 key, bool small) {
  u32 buffer, cell;
  memset(got.out, 0, sizeof got.out);
  memcpy(got.args, wanted.args, sizeof got.args);
  for (u32 b = 0; b < RANDOM_OUT; b++) got.args[RANDOM_IN + b] = (u64)(uintptr_t)got.out[b];
  u64 mine = vec_code_kernel(code)(got.args, lo, hi);
  bool same_key = mine == key || (small && mine != LOOP_KEY_NONE && key != LOOP_KEY_NONE);
  if (same_key && key != LOOP_KEY_NONE) return true; /* what it wrote means nothing */
  if (same_key && same_outputs(&wanted, &got, &buffer, &cell)) return true;
  show_head(s, l, fn, seed, round);
  if (!same_key) {
    printf("# key %llx, not %llx\n", (unsigned long long)mine, (unsigned long long)key);
  } else {
    LoopType t = random_out_types[buffer];
    u32 at = cell * loop_type_bytes(t);
    printf("# z%u[%u] is %llx, not %llx\n", buffer, cell, (unsigned long long)loop_load_memory(t, got.out[buffer] + at),
      (unsigned long long)loop_load_memory(t, wanted.out[buffer] + at));
  }
  if (getenv("VECTOR_CODE")) {
    Buf text;
    buf_init(&text, s->m.alloc);
    vec_code_print(code, "k", &text);
    fputs(buf_text(&text), stdout);
    buf_free(&text);
  }
  return false;
}

/* The interpreter runs once, whatever the settings: each of them is compared with it. */
static void run_one(Settings *s, const LoopFn *fn, u64 seed, bool small) {
  VecCode *codes[LEVELS] = {NULL};
  u32 live = 0;
  for (u32 l = 0; l < LEVELS; l++) {
    const char *refused;
    if (!s->emitters[l] || !s->tally[l].same) continue;
    s->emitters[l]->unroll = seed % 7 == 0 ? 1 : seed % 7 == 1 ? 3 : 0;
    s->emitters[l]->strip = seed % 3 == 0 ? 128 : 0;
    s->emitters[l]->ahead = seed % 4 == 2;
    codes[l] = vec_compile(s->emitters[l], fn, &refused);
    s->emitters[l]->ahead = false;
    if (!codes[l] && seed % 4 == 2) codes[l] = vec_compile(s->emitters[l], fn, &refused); /* reads nothing in order */
    if (codes[l]) s->tally[l].emitted++, live++;
    else s->tally[l].refused++;
    if (!codes[l] && s->print_refused) printf("# %s: %s\n", vec_level_text(levels[l]), refused);
  }
  for (u32 round = 0; round < 3 && live; round++) {
    Buf why;
    buf_init(&why, s->m.alloc);
    if (small) random_data(&wanted, seed * 3 + round);
    else vector_data(&wanted, seed * 3 + round, of_conditions(seed) && !of_bytes(seed));
    const u64 *scalars = wanted.args + RANDOM_IN + RANDOM_OUT;
    u32 trips = loop_trips_of(fn, fn->body.data[0], 0);
    i64 hi = (i64)(trips == fn->params.data[RANDOM_IN + RANDOM_OUT] ? scalars[0] : scalars[1]),
        lo = seed % 5 == 1 && hi > 3 ? 3 : 0;
    u64 steps = STEPS, key = 0;
    bool ended = loops_interp_kernel(fn, wanted.args, lo, hi, &key, &steps, &why) == WEFT_OK,
        endless = !ended && strcmp(buf_text(&why), "out of steps") == 0;
    if (!ended && !endless) printf("# seed %llu, interpreter: %s\n", (unsigned long long)seed, buf_text(&why));
    buf_free(&why);
    for (u32 l = 0; l < LEVELS; l++) {
      if (!codes[l] || !s->tally[l].same) continue;
      if (endless) s->tally[l].endless++;
      else s->tally[l].same = ended && agrees(s, l, fn, codes[l], seed, round, lo, hi, key, small);
    }
    if (!ended) break;
  }
  for (u32 l = 0; l < LEVELS; l++) vec_code_free(codes[l]);
}

/* The tally of a setting that is not used stays as it is. A setting that differed is left out of what follows. */
static void random_kernels(u64 from, u32 count, bool print, const bool *use, Tally *tally) {
  Settings s = {.tally = tally, .print_refused = print};
  start(&s.m);
  bool any = false;
  for (u32 l = 0; l < LEVELS; l++) {
    if (!use[l]) continue;
    s.emitters[l] = vec_emitter_new(allocator_system(), levels[l], NULL);
    assert_non_null(s.emitters[l]);
    any = tally[l].same = true;
  }
  for (u64 seed = from; seed < from + count && any; seed++) {
    Buf why;
    buf_init(&why, s.m.alloc);
    bool small = seed % 12 == 5; /* any kernel: most are refused, the rest must be right */
    LoopFn *fn = small ? random_function(&s.m, seed, LOOP_KERNEL, "k") : vector_kernel(&s.m, seed, "k");
    if (loop_fn_finish(fn, &why) != WEFT_OK || loops_verify(fn, &why) != WEFT_OK) {
      printf("# seed %llu: %s\n", (unsigned long long)seed, buf_text(&why));
      for (u32 l = 0; l < LEVELS; l++) tally[l].same = false;
    } else {
      run_one(&s, fn, seed, small);
    }
    any = false;
    for (u32 l = 0; l < LEVELS; l++) any |= s.emitters[l] && tally[l].same;
    buf_free(&why);
    loop_module_truncate(&s.m, 0, 1);
  }
  for (u32 l = 0; l < LEVELS; l++) vec_emitter_free(s.emitters[l]);
  loop_module_free(&s.m);
}

static void random_kernels_give_the_same_bits(void **state) {
  (void)state;
  bool use[LEVELS];
  Tally tally[LEVELS] = {0};
  for (u32 l = 0; l < LEVELS; l++) use[l] = vec_level_runs(levels[l]);
  random_kernels(1, 1500, false, use, tally);
  for (u32 l = 0; l < LEVELS; l++) {
    if (!use[l]) {
      printf("# %s: not on this processor\n", vec_level_text(levels[l]));
      continue;
    }
    printf("# %s: %u kernels emitted, %u refused\n", vec_level_text(levels[l]), tally[l].emitted, tally[l].refused);
    assert_true(tally[l].same);
    assert_true(tally[l].emitted > tally[l].refused);
    assert_int_equal(tally[l].endless, 0);
  }
}

/* Down columns by strips: of sums, the levels above a block of rows; of values that are carried; more than a strip. */
static const char columns_text[] =
    "kernel sums (n: i64, k: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n"
    "    %1 = reduce add f64 rows j in 0..k {\n      %2 = load x[i + j*n] f64\n      yield %2\n    }\n"
    "    store z[i] %1\n  }\n}\n"
    "kernel products (n: i64, k: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n"
    "    %3 = reduce mul f32 rows j in 0..k {\n      %4 = load y[i + j*n] f32\n      yield %4\n    }\n"
    "    store w[i] %3\n  }\n}\n"
    "kernel best (n: i64, k: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n"
    "    %1 %2 = for j in 0..k (%3: f64 = 0.0, %4: f32 = 0.0) {\n"
    "      %5 = load x[i + j*n] f64\n      %6 = load y[i + j*n] f32\n"
    "      %7 = gt %5 %3\n      %8 = select %7 %5 %3\n      %9 = select %7 %6 %4\n      next %8 %9\n    }\n"
    "    %10 = reduce max f64 rows j in 0..k {\n      %11 = load x[i + j*n] f64\n"
    "      %12 = sub %11 %1\n      yield %12\n    }\n"
    "    store z[i] %10\n    store w[i] %2\n  }\n}\n"
    "kernel most (n: i64, k: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n"
    "    %1 = reduce max f64 rows j in 0..k {\n      %2 = load x[i + j*n] f64\n      yield %2\n    }\n"
    "    store z[i] %1\n  }\n}\n"
    "kernel lines (n: i64, k: i64, x: in f64, z: out f64) {\n"
    "  par i in 0..n grain 1 {\n"
    "    %1 = reduce add f64 rows j in 0..k {\n      %2 = load x[j + i*k] f64\n      yield %2\n    }\n"
    "    store z[i] %1\n  }\n}\n";

/* What lies apart has a line each, along whichever axis it is nearest. */
static void work_is_lines(void **state) {
  (void)state;
  static const char text[] = "kernel apart (n: i64, s: i64, t: i64, x: in f64, z: out f64) {\n"
                             "  par i in 0..n grain 1 {\n    for j in 0..n {\n      %1 = load x[i*s + j*t + n] f64\n"
                             "      store z[i*n + j] %1\n    }\n  }\n}\n";
  static const u64 strides[][3] = {{1, 100, 1}, {100, 1, 1}, {700, 7, 7}, {8000, 80, 8}, {8000, (u64)-80, 8},
                                   {8000, (u64)-1, 1}, {0, 0, 1}};
  LoopModule m;
  Buf why;
  start(&m);
  buf_init(&why, m.alloc);
  if (loops_parse(&m, text, strlen(text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  for (u32 i = 0; i < COUNT_OF(strides); i++) {
    u64 args[] = {10, strides[i][0], strides[i][1], 0, 0};
    LoopCost cost = {0};
    loops_cost(loop_module_find(&m, "apart"), args, 0, 10, &cost);
    assert_true(cost.bytes == 1600);
    assert_true(cost.moved == 800 * (1 + strides[i][2]));
  }
  buf_free(&why);
  loop_module_free(&m);
}

static void strips_keep_the_order_of_rows(void **state) {
  (void)state;
  static const char *const names[] = {"sums", "products", "best", "most"};
  static const u64 sizes[][2] = {{1100, 70}, {2200, 33}, {130, 4200}, {129, 64 * 64 * 2}, {128, 31}, {7, 500}};
  enum { MOST = 129 * 64 * 64 * 2, CELLS = 4096 };
  LoopModule m;
  Buf why;
  start(&m);
  buf_init(&why, m.alloc);
  if (loops_parse(&m, columns_text, strlen(columns_text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  f64 *x = malloc(sizeof *x * MOST), *z[2] = {malloc(sizeof **z * CELLS), malloc(sizeof **z * CELLS)};
  f32 *y = malloc(sizeof *y * MOST), *w[2] = {malloc(sizeof **w * CELLS), malloc(sizeof **w * CELLS)};
  assert_true(x && y && z[0] && z[1] && w[0] && w[1]);
  for (u32 i = 0; i < MOST; i++) x[i] = 1.0 / (1 + i * 7919 % 10007) - 0.001, y[i] = 1 + (f32)(i * 31 % 101) * 1e-6f;
  for (u32 l = 0; l < LEVELS; l++) {
    if (!vec_level_runs(levels[l])) continue;
    VecEmitter *e = vec_emitter_new(allocator_system(), levels[l], NULL);
    assert_non_null(e);
    for (u32 k = 0; k < COUNT_OF(names); k++) {
      const LoopFn *fn = loop_module_find(&m, names[k]);
      const char *refused = "";
      assert_true(loops_go_down(fn));
      VecCode *code = vec_compile(e, fn, &refused);
      if (!code) fail_msg("%s", refused);
      Buf text;
      buf_init(&text, m.alloc);
      vec_code_print(code, names[k], &text);
      assert_non_null(strstr(buf_text(&text), "prefetch")); /* each row of a strip a little ahead */
      buf_free(&text);
      for (u32 i = 0; i < COUNT_OF(sizes); i++) {
        u64 n = sizes[i][0], key = 0, steps = UINT64_MAX, args[2][6];
        for (u32 t = 0; t < 2; t++) {
          const u64 own[6] = {n, sizes[i][1], (u64)(uintptr_t)x, (u64)(uintptr_t)y, (u64)(uintptr_t)z[t],
                              (u64)(uintptr_t)w[t]};
          memcpy(args[t], own, sizeof own);
          memset(z[t], 0, sizeof **z * CELLS);
          memset(w[t], 0, sizeof **w * CELLS);
        }
        assert_int_equal(loops_interp_kernel(fn, args[0], 0, (i64)n, &key, &steps, &why), WEFT_OK);
        assert_true(vec_code_kernel(code)(args[1], 0, (i64)n) == LOOP_KEY_NONE);
        assert_memory_equal(z[0], z[1], sizeof **z * CELLS);
        assert_memory_equal(w[0], w[1], sizeof **w * CELLS);
      }
      vec_code_free(code);
    }
    vec_emitter_free(e);
  }
  assert_false(loops_go_down(loop_module_find(&m, "lines")));
  free(x), free(y);
  for (u32 t = 0; t < 2; t++) free(z[t]), free(w[t]);
  buf_free(&why);
  loop_module_free(&m);
}

/* Rows of several axes, as of a batch of pictures: sums in blocks of rows across them, what is no sum, places of a
 * window, the numbers of all axes as values. */
static const char axes_text[] =
    "kernel window (n: i64, a: i64, b: i64, c: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par l in 0..n grain 1 {\n"
    "    %1 = reduce add f64 rows i in 0..a, j in 0..b, k in 0..c {\n"
    "      %2 = load x[i*a + j*b*n + k*n + l] f64\n"
    "      %3 = load x[37*i + 5*j + 2*k + 1] f64\n      %4 = mul %2 %3\n      yield %4\n    }\n"
    "    store z[l] %1\n  }\n}\n"
    "kernel both (n: i64, a: i64, b: i64, c: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par l in 0..n grain 1 {\n"
    "    %1 = reduce mul f32 rows i in 0..a, j in 0..c {\n"
    "      %2 = load y[i*n + j + l] f32\n      yield %2\n    }\n"
    "    %3 = reduce max f64 rows i in 0..b, j in 0..a {\n"
    "      %4 = load x[j*n + i*c + l] f64\n"
    "      %5 = convert f64 i\n      %6 = convert f64 j\n      %7 = sub %4 %5\n      %8 = mul %6 0.125\n"
    "      %9 = add %7 %8\n      yield %9\n    }\n"
    "    store w[l] %1\n    store z[l] %3\n  }\n}\n"
    "kernel four (n: i64, a: i64, b: i64, c: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par l in 0..n grain 1 {\n"
    "    %1 = reduce add f64 rows h in 0..2, i in 0..b, j in 0..3, k in 0..c {\n"
    "      %2 = load x[h*a + i*n + j*c + k*n + l] f64\n      %3 = mul h 4\n      %4 = add %3 j\n"
    "      %5 = convert f64 %4\n      %6 = mul %2 %5\n      yield %6\n    }\n"
    "    store z[l] %1\n  }\n}\n";

static void rows_of_several_axes_keep_their_order(void **state) {
  (void)state;
  static const char *const names[] = {"window", "both", "four"};
  static const u64 sizes[][4] = {{8, 9, 7, 5}, {1, 64, 3, 2}, {37, 65, 1, 3}, {130, 3, 8, 8}, {5, 0, 4, 4},
                                 {5, 4, 4, 0}, {16, 40, 30, 6}, {3, 1, 70, 67}};
  enum { MOST = 1 << 16, CELLS = 256 };
  static f64 x[MOST], z[2][CELLS];
  static f32 y[MOST], w[2][CELLS];
  LoopModule m;
  Buf why;
  start(&m);
  buf_init(&why, m.alloc);
  if (loops_parse(&m, axes_text, strlen(axes_text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  for (u32 i = 0; i < MOST; i++) x[i] = 1.0 / (1 + i * 7919 % 10007) - 0.001, y[i] = 1 + (f32)(i * 31 % 101) * 1e-6f;
  for (u32 l = 0; l < LEVELS; l++) {
    if (!vec_level_runs(levels[l])) continue;
    VecEmitter *e = vec_emitter_new(allocator_system(), levels[l], NULL);
    assert_non_null(e);
    for (u32 k = 0; k < COUNT_OF(names); k++) {
      const LoopFn *fn = loop_module_find(&m, names[k]);
      const char *refused = "";
      VecCode *code = vec_compile(e, fn, &refused);
      if (!code) fail_msg("%s: %s", names[k], refused);
      for (u32 i = 0; i < COUNT_OF(sizes); i++) {
        u64 key = 0, steps = UINT64_MAX, args[2][8];
        memset(z, 0, sizeof z);
        memset(w, 0, sizeof w);
        for (u32 t = 0; t < 2; t++) {
          const u64 own[8] = {sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], (u64)(uintptr_t)x, (u64)(uintptr_t)y,
                              (u64)(uintptr_t)z[t], (u64)(uintptr_t)w[t]};
          memcpy(args[t], own, sizeof own);
        }
        assert_int_equal(loops_interp_kernel(fn, args[0], 0, (i64)sizes[i][0], &key, &steps, &why), WEFT_OK);
        assert_true(vec_code_kernel(code)(args[1], 0, (i64)sizes[i][0]) == LOOP_KEY_NONE);
        assert_memory_equal(z[0], z[1], sizeof z[0]);
        assert_memory_equal(w[0], w[1], sizeof w[0]);
      }
      vec_code_free(code);
    }
    vec_emitter_free(e);
  }
  buf_free(&why);
  loop_module_free(&m);
}

/* Loops of numbers that are other ones in each column: places with strides and computed ones, lanes that are done at
 * trips of their own, and a check behind, which tells of the first of those that gave up. */
static const char inner_text[] =
    "kernel rows (n: i64, k: i64, x: in f64, z: out f64) {\n"
    "  par i in 0..n grain 1 {\n    %1 = load x[i*k] f64\n"
    "    %2 = for j in 0..k (%3: f64 = %1) {\n      %4 = load x[i*k + j] f64\n      %5 = mul %3 0.5\n"
    "      %6 = add %5 %4\n      next %6\n    }\n    store z[i] %2\n  }\n}\n"
    "kernel ends (n: i64, k: i64, x: in f64, z: out f64) {\n"
    "  par i in 0..n grain 1 {\n    %1 = load x[i] f64\n"
    "    %2 %3 = while (%4: f64 = %1, %5: i64 = 0) {\n      %6 = lt %5 i\n      %7 = lt %5 k\n      %8 = and %6 %7\n"
    "      if %8 {\n        %9 = load x[%5 + 1] f64\n        %10 = sub %4 %9\n        %11 = load x[i] f64\n"
    "        %12 = mul %10 %11\n        %13 = add %5 1\n        next %12 %13\n      }\n      break %4 %5\n    }\n"
    "    %14 = lt %3 k\n    check assert %14 #0\n    store z[i] %2\n  }\n}\n";

static void lanes_go_through_loops(void **state) {
  (void)state;
  enum { MOST = 100, ROWS = 40 };
  static f64 x[MOST * ROWS], z[2][MOST];
  static const char *const names[] = {"rows", "ends"};
  static const u64 counts[] = {1, 7, 8, 15, 16, 31, 33, 64, 99};
  LoopModule m;
  Buf why;
  start(&m);
  buf_init(&why, m.alloc);
  if (loops_parse(&m, inner_text, strlen(inner_text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  for (u32 i = 0; i < MOST * ROWS; i++) x[i] = 1.5 / (1 + i * 7919 % 101) - 0.5;
  VecEmitter *e = vec_level_runs(VEC_AVX512) ? vec_emitter_new(allocator_system(), VEC_AVX512, NULL) : NULL;
  for (u32 l = 0; e && l < COUNT_OF(names) * COUNT_OF(counts); l++) {
    const LoopFn *fn = loop_module_find(&m, names[l % COUNT_OF(names)]);
    const char *refused = "";
    const u64 n = counts[l / COUNT_OF(names)];
    VecCode *code = vec_compile(e, fn, &refused);
    if (!code) fail_msg("%s: %s", names[l % COUNT_OF(names)], refused);
    for (u64 k = 0; k < ROWS; k += 13) {
      u64 keys[2] = {LOOP_KEY_NONE, LOOP_KEY_NONE}, steps = UINT64_MAX;
      memset(z, 0, sizeof z);
      for (u32 t = 0; t < 2; t++) {
        u64 args[] = {n, k, (u64)(uintptr_t)x, (u64)(uintptr_t)z[t]};
        if (t) keys[t] = vec_code_kernel(code)(args, 0, (i64)n);
        else assert_int_equal(loops_interp_kernel(fn, args, 0, (i64)n, &keys[t], &steps, &why), WEFT_OK);
      }
      assert_true(keys[0] == keys[1]);
      if (keys[0] == LOOP_KEY_NONE) assert_memory_equal(z[0], z[1], sizeof z[0]);
    }
    vec_code_free(code);
  }
  if (e) vec_emitter_free(e);
  buf_free(&why);
  loop_module_free(&m);
}

/* What lies together is read by vectors from its end on, too, and its lanes are turned. */
static const char back_text[] =
  "kernel back (n: i64, x: in f64, y: in f32, k: in i1, z: out f64, w: out f32) {\n"
  "  par i in 0..n grain 1 {\n"
  "    %1 = load x[n - i + 3] f64\n    %2 = load y[n - i] f32\n    %3 = load k[n - i + 1] i1\n"
  "    %4 = select %3 %2 1.5\n    store z[i] %1\n    store w[i] %4\n  }\n}\n"
  "kernel narrow (n: i64, x: in f64, y: in f32, k: in i1, z: out f64, w: out f32) {\n"
  "  par i in 0..n grain 1 {\n"
  "    %1 = load y[n - i] f32\n    %2 = load k[n - i + 1] i1\n    %3 = select %2 %1 1.5\n    store w[i] %3\n  }\n}\n";

static void backwards_by_vectors(void **state) {
  (void)state;
  enum { MOST = 300 };
  static f64 x[MOST + 8], z[2][MOST];
  static f32 y[MOST + 8], w[2][MOST];
  static u8 k[MOST + 8];
  static const char *const names[] = {"back", "narrow"};
  LoopModule m;
  Buf why;
  start(&m);
  buf_init(&why, m.alloc);
  if (loops_parse(&m, back_text, strlen(back_text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  for (u32 i = 0; i < MOST + 8; i++) x[i] = i * 0.5, y[i] = (f32)i, k[i] = i % 3 != 0;
  for (u32 l = 0; l < LEVELS * COUNT_OF(names); l++) {
    const char *name = names[l % COUNT_OF(names)], *refused = "";
    VecLevel level = levels[l / COUNT_OF(names)];
    if (!vec_level_runs(level)) continue;
    const LoopFn *fn = loop_module_find(&m, name);
    VecEmitter *e = vec_emitter_new(allocator_system(), level, NULL);
    VecCode *code = vec_compile(e, fn, &refused);
    if (!code) fail_msg("%s", refused);
    Buf text;
    buf_init(&text, m.alloc);
    vec_code_print(code, name, &text);
    assert_non_null(strstr(buf_text(&text), "vperm"));
    buf_free(&text);
    for (u64 n = 0; n < MOST; n += 1 + n / 70) {
      u64 key = 0, steps = UINT64_MAX, args[2][6];
      for (u32 t = 0; t < 2; t++) {
        const u64 own[6] = {n, (u64)(uintptr_t)x, (u64)(uintptr_t)y, (u64)(uintptr_t)k, (u64)(uintptr_t)z[t],
                            (u64)(uintptr_t)w[t]};
        memcpy(args[t], own, sizeof own);
        memset(z[t], 0, sizeof z[t]);
        memset(w[t], 0, sizeof w[t]);
      }
      assert_int_equal(loops_interp_kernel(fn, args[0], 0, (i64)n, &key, &steps, &why), WEFT_OK);
      assert_true(vec_code_kernel(code)(args[1], 0, (i64)n) == LOOP_KEY_NONE);
      assert_memory_equal(z[0], z[1], sizeof z[0]);
      assert_memory_equal(w[0], w[1], sizeof w[0]);
    }
    vec_code_free(code);
    vec_emitter_free(e);
  }
  buf_free(&why);
  loop_module_free(&m);
}

/* Rows of few elements: as many as half a vector holds, a vector, and more. */
static const char rows_text[] =
  "kernel sums (n: i64, k: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
  "  par i in 0..n grain 1 {\n"
  "    %1 = reduce add f64 j in 0..k {\n      %2 = load x[i + j] f64\n      yield %2\n    }\n"
  "    store z[i] %1\n  }\n}\n"
  "kernel products (n: i64, k: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
  "  par i in 0..n grain 1 {\n"
  "    %3 = reduce mul f32 j in 0..k {\n      %4 = load y[i + j] f32\n      yield %4\n    }\n"
  "    store w[i] %3\n  }\n}\n";

static void rows_of_few_elements_take_one_vector(void **state) {
  (void)state;
  enum { ROWS = 40, MOST = 70 };
  static const char *const names[] = {"sums", "products"}, *const halves[] = {"vblendmpd ymm", "vblendmps ymm"};
  LoopModule m;
  Buf why;
  start(&m);
  buf_init(&why, m.alloc);
  if (loops_parse(&m, rows_text, strlen(rows_text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  f64 x[ROWS + MOST], z[2][ROWS];
  f32 y[ROWS + MOST], w[2][ROWS];
  for (u32 i = 0; i < COUNT_OF(x); i++)
    x[i] = i % 5 == 0 ? -0.0 : 1.0 / (1 + i * 7919 % 10007) - 0.001,
        y[i] = i % 7 == 0 ? -1 : 1 + (f32)(i * 31 % 101) * 1e-3f;
  x[1] = -0.0;
  for (u32 l = 0; l < LEVELS; l++) {
    if (!vec_level_runs(levels[l])) continue;
    VecEmitter *e = vec_emitter_new(allocator_system(), levels[l], NULL);
    assert_non_null(e);
    for (u32 f = 0; f < COUNT_OF(names); f++) {
      const LoopFn *fn = loop_module_find(&m, names[f]);
      VecCode *code = compiled(e, fn);
      Buf text;
      buf_init(&text, m.alloc);
      vec_code_print(code, names[f], &text);
      if (levels[l] == VEC_AVX512) assert_non_null(strstr(buf_text(&text), halves[f]));
      buf_free(&text);
      for (u64 k = 0; k <= MOST; k++) {
        u64 args[2][6];
        for (u32 t = 0; t < 2; t++) {
          const u64 own[6] = {ROWS, k, (u64)(uintptr_t)x, (u64)(uintptr_t)y, (u64)(uintptr_t)z[t],
                              (u64)(uintptr_t)w[t]};
          memcpy(args[t], own, sizeof own);
        }
        stores_the_same(fn, code, (u64 *const[2]){args[0], args[1]}, 0, ROWS, z, sizeof z[0], w, sizeof w[0]);
      }
      vec_code_free(code);
    }
    vec_emitter_free(e);
  }
  buf_free(&why);
  loop_module_free(&m);
}

/* Non-temporal stores: wherever a row begins, nothing beside it is written. */
static const char past_text[] =
    "kernel flat (n: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n    %1 = load x[i + 1] f64\n    %2 = load x[i] f64\n"
    "    %3 = sub %1 %2\n    store z[i] %3\n  }\n}\n"
    "kernel narrow (n: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n    %1 = load x[i] f64\n    %2 = convert f32 %1\n"
    "    %3 = load y[i] f32\n    %4 = add %2 %3\n    store w[i] %4\n  }\n}\n"
    "kernel single (n: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n    %1 = load y[i] f32\n    %2 = load y[i + 3] f32\n"
    "    %3 = mul %1 %2\n    store w[i] %3\n  }\n}\n"
    "kernel back (n: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n    %1 = load x[1000 - i] f64\n    %2 = load y[i] f32\n"
    "    %3 = convert f64 %2\n    %4 = add %1 %3\n    store z[i] %4\n  }\n}\n"
    "kernel rows (n: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n    for j in 0..37 {\n      %1 = load x[i*39 + j + 1] f64\n"
    "      %2 = load x[i] f64\n      %3 = add %1 %2\n      store z[i*37 + j] %3\n    }\n  }\n}\n"
    "kernel fork (n: i64, x: in f64, y: in f32, z: out f64, w: out f64) {\n"
    "  par i in 0..n grain 1 {\n    %1 = load x[i] f64\n    %2 = load x[i + 1] f64\n"
    "    %3 = add %1 %2\n    store z[i] %3\n    %4 = sub %1 %2\n    store w[i] %4\n  }\n}\n"
    "kernel same (n: i64, x: in f64, y: in f32, z: out f64, w: out f64) {\n"
    "  par i in 0..n grain 1 {\n    for j in 0..37 {\n      %1 = load x[i*39 + j + 1] f64\n"
    "      store z[i*74 + j] %1\n      %2 = add %1 %1\n      store z[i*74 + j + 37] %2\n    }\n  }\n}\n"
    "kernel two (n: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n    %1 = load x[i] f64\n    %2 = convert f32 %1\n    store z[i] %1\n"
    "    store w[i] %2\n  }\n}\n";

static void stores_past_the_caches(void **state) {
  (void)state;
  enum { MOST = 1200, TRIPS = 300, ROWS = 25, SHIFTS = 17 };
  static f64 x[MOST];
  static f32 y[MOST];
  static _Alignas(64) f64 z[2][MOST];
  static _Alignas(64) f32 w[2][MOST];
  static const char *const names[] = {"flat", "narrow", "single", "back", "rows", "fork"};
  LoopModule m;
  Buf why;
  start(&m);
  buf_init(&why, m.alloc);
  if (loops_parse(&m, past_text, strlen(past_text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  for (u32 i = 0; i < MOST; i++) x[i] = (i * 7919 % 1009) * 0.37, y[i] = (f32)(i * 31 % 517) * 0.7f;
  for (u32 l = 0; l < LEVELS; l++) {
    if (!vec_level_runs(levels[l])) continue;
    VecEmitter *e = vec_emitter_new(allocator_system(), levels[l], NULL);
    const char *refused = "";
    e->past = true;
    assert_null(vec_compile(e, loop_module_find(&m, "two"), &refused)); /* which of the two stores may begin a line? */
    assert_null(vec_compile(e, loop_module_find(&m, "same"), &refused));
    for (u32 k = 0; k < COUNT_OF(names); k++) {
      const LoopFn *fn = loop_module_find(&m, names[k]);
      VecCode *code = vec_compile(e, fn, &refused);
      if (!code) fail_msg("%s: %s", names[k], refused);
      Buf text;
      buf_init(&text, m.alloc);
      vec_code_print(code, names[k], &text);
      assert_non_null(strstr(buf_text(&text), strchr("fbr", names[k][0]) ? "vmovntpd" : "vmovntps"));
      buf_free(&text);
      for (u32 shift = 0; shift < SHIFTS; shift++)
        for (i64 lo = 0, hi = shift; hi <= (k == 4 ? ROWS : TRIPS); hi += 1 + hi / 9, lo = hi * (shift % 3) / 4) {
          u64 args[2][5];
          for (u32 t = 0; t < 2; t++) {
            /* fork: as far from a line's beginning as z */
            const u64 own[5] = {(u64)hi, (u64)(uintptr_t)x, (u64)(uintptr_t)y, (u64)(uintptr_t)(z[t] + 1 + shift),
                                k == 5 ? (u64)(uintptr_t)((f64 *)w[t] + 1 + shift)
                                       : (u64)(uintptr_t)(w[t] + 1 + shift)};
            memcpy(args[t], own, sizeof own);
          }
          stores_the_same(fn, code, (u64 *const[2]){args[0], args[1]}, lo, hi, z, sizeof z[0], w, sizeof w[0]);
        }
      vec_code_free(code);
    }
    vec_emitter_free(e);
  }
  buf_free(&why);
  loop_module_free(&m);
}

/* Sums over what is long: their code for long runs fetches ahead, each array once for each vector, and gives the
 * same. Where the processor does so by itself, one word of each line is read first, a line at a time; not for
 * several interleaved reductions, nor where nothing is reduced. */
static const char long_text[] =
    "kernel squares (n: i64, k: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n"
    "    %1 = reduce add f64 j in 0..k {\n      %2 = load x[i*k + j] f64\n"
    "      %3 = load x[i*k + j] f64\n      %4 = mul %2 %3\n      yield %4\n    }\n"
    "    store z[i] %1\n  }\n}\n"
    "kernel two (n: i64, k: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n"
    "    %1 = reduce add f32 j in 0..k {\n      %2 = load y[i*k + j] f32\n      yield %2\n    }\n"
    "    %3 = reduce max f32 j in 0..k {\n      %4 = load y[i*k + j] f32\n      yield %4\n    }\n"
    "    %5 = add %1 %3\n    store w[i] %5\n  }\n}\n"
    "kernel flags (n: i64, k: i64, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n    for j in 0..k {\n      %1 = load x[i*k + j] f64\n      store z[i*700 + j] %1\n"
    "      %2 = convert f32 %1\n      store w[i*700 + j] %2\n    }\n  }\n}\n";

static void long_runs_fetch_ahead(void **state) {
  (void)state;
  enum { ROWS = 3, MOST = 700 };
  static const char *const names[] = {"squares", "two", "flags"};
  static f64 x[ROWS * MOST], z[2][ROWS * MOST];
  static f32 y[ROWS * MOST], w[2][ROWS * MOST];
  LoopModule m;
  Buf why;
  start(&m);
  buf_init(&why, m.alloc);
  if (loops_parse(&m, long_text, strlen(long_text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  for (u32 i = 0; i < COUNT_OF(x); i++)
    x[i] = 1.0 / (1 + i * 7919 % 10007) - 0.001, y[i] = (f32)(i * 31 % 101) * 1e-3f - 0.02f;
  for (u32 l = 0; l < LEVELS; l++) {
    if (!vec_level_runs(levels[l])) continue;
    VecEmitter *e = vec_emitter_new(allocator_system(), levels[l], NULL);
    const char *refused = "";
    for (u32 name = 0; name < COUNT_OF(names); name++)
      for (u32 ahead = 0; ahead < 2; ahead++) {
        const LoopFn *fn = loop_module_find(&m, names[name]);
        e->ahead = ahead;
        VecCode *code = vec_compile(e, fn, &refused);
        bool fetch = cpu_has(CPU_FETCH), none = ahead && !fetch && name >= (levels[l] == VEC_AVX512 ? 2 : 1);
        if (none) {
          assert_null(code);
          assert_string_equal(refused, "nothing that is long");
          continue;
        }
        if (!code) fail_msg("%s: %s", names[name], refused);
        assert_true(e->reads);
        Buf text;
        u32 fetches = 0, touches = 0;
        buf_init(&text, m.alloc);
        vec_code_print(code, names[name], &text);
        for (const char *at = buf_text(&text); (at = strstr(at, "prefetch")) != NULL; at++) fetches++;
        for (const char *at = buf_text(&text); (at = strstr(at, "mov rdx, [rax")) != NULL; at++) touches++;
        assert_true(ahead && fetch ? fetches >= 2 && fetches <= 16 : fetches == 0);
        assert_int_equal(touches, ahead && !fetch ? 1 : 0);
        buf_free(&text);
        for (u64 k = 0; k < MOST; k += 1 + k / 20) {
          u64 args[2][6];
          for (u32 t = 0; t < 2; t++) {
            const u64 own[6] = {ROWS, k, (u64)(uintptr_t)x, (u64)(uintptr_t)y, (u64)(uintptr_t)z[t],
                                (u64)(uintptr_t)w[t]};
            memcpy(args[t], own, sizeof own);
          }
          stores_the_same(fn, code, (u64 *const[2]){args[0], args[1]}, 0, ROWS, z, sizeof z[0], w, sizeof w[0]);
        }
        vec_code_free(code);
      }
    vec_emitter_free(e);
  }
  buf_free(&why);
  loop_module_free(&m);
}

/* ---- what is fetched ---------------------------------------------------------------------------- */

static const char *const registers[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10",
                                          "r11", "r12", "r13", "r14", "r15"};

static i64 *register_at(i64 *r, const char **at) {
  for (u32 k = COUNT_OF(registers); k-- > 0;) { /* r15 before r1 */
    size_t n = strlen(registers[k]);
    if (strncmp(*at, registers[k], n) == 0) return *at += n, &r[k];
  }
  return NULL;
}

/* A register, a number, or the sum that names a place in memory, as the disassembler writes it. */
static i64 operand_at(i64 *r, const char *at) {
  i64 sum = 0, sign = 1;
  for (at += strcspn(at, "[") < strcspn(at, "\n") ? strcspn(at, "[") + 1 : 0;; at++) {
    char *end;
    i64 *x = register_at(r, &at), value = x ? *x : (i64)strtoull(at, &end, 0);
    if (!x) at = end;
    else if (*at == '*') value *= strtoll(at + 1, &end, 0), at = end;
    sum += sign * value;
    if (*at != '+' && *at != '-') return sum;
    sign = *at == '+' ? 1 : -1;
  }
}

/* Follows the instructions from `at` to `end` as far as general registers go; what is fetched is put into `lines`,
 * which begins at address `from`. */
static void follow(i64 *r, const char *at, const char *end, u8 *lines, i64 from, i64 count) {
  for (; at < end; at = strchr(at, '\n') + 1) {
    const char *op = at + strspn(at, " ");
    op += strcspn(op, " "); /* behind the place in the code */
    op += strspn(op, " ");
    const char *to = strchr(op, ' ') + 1, *second = strchr(to, ','), *stop = strchr(op, '\n');
    if (strncmp(op, "prefetch", 8) == 0) {
      i64 line = (operand_at(r, to) - from) >> 6;
      assert_true(line >= 0 && line < count);
      lines[line]++;
      continue;
    }
    i64 *d = register_at(r, &to);
    if (!d || *to != ',' || !second || second > stop) continue;
    const char *third = memchr(second + 1, ',', (size_t)(stop - second - 1));
    i64 x = operand_at(r, second + 2);
    if (strncmp(op, "lea", 3) == 0) *d = x;
    else if (strncmp(op, "mov ", 4) == 0) *d = memchr(second, '[', (size_t)(stop - second)) ? 0 : x;
    else if (strncmp(op, "imul", 4) == 0) *d = third ? x * operand_at(r, third + 2) : *d * x;
    else if (strncmp(op, "and", 3) == 0) *d &= x;
    else if (strncmp(op, "sub", 3) == 0) *d -= x;
    else if (strncmp(op, "add", 3) == 0) *d += x;
    else if (strncmp(op, "xor", 3) == 0) *d ^= x;
    else if (strncmp(op, "shr", 3) == 0) *d = (i64)((u64)*d >> x);
  }
}

static const char fetched_text[] = "kernel light (n: i64, k: i64, x: in f64, z: out f64) {\n"
                                   "  par i in 0..n grain 1 {\n    %1 = reduce add f64 j in 0..k {\n"
                                   "      %2 = load x[j] f64\n      yield %2\n    }\n    store z[i] %1\n  }\n}\n"
                                   "kernel heavy (n: i64, k: i64, x: in f64, z: out f64) {\n"
                                   "  par i in 0..n grain 1 {\n    for j in 0..k {\n      %1 = load x[i*k + j] f64\n"
                                   "      %2 = math exp %1\n      store z[i*k + j] %2\n    }\n  }\n}\n"
                                   "kernel back (n: i64, k: i64, x: in f64, z: out f64) {\n"
                                   "  par i in 0..n grain 1 {\n    %1 = reduce add f64 j in 0..k {\n"
                                   "      %2 = load x[k - j] f64\n      yield %2\n    }\n    store z[i] %1\n  }\n}\n"
                                   "kernel other (n: i64, k: i64, x: in f64, z: out f64) {\n"
                                   "  par i in 0..n grain 1 {\n    %1 = load x[2*i] f64\n    store z[i] %1\n  }\n}\n"
                                   "kernel three (n: i64, k: i64, x: in f64, z: out f64) {\n"
                                   "  par i in 0..n grain 1 {\n    %1 = reduce add f64 j in 0..k {\n"
                                   "      %2 = load x[j] f64\n      yield %2\n    }\n"
                                   "    %3 = reduce max f64 j in 0..k {\n      %4 = load x[j] f64\n"
                                   "      yield %4\n    }\n    %5 = add %1 %3\n    store z[i] %5\n  }\n}\n"
                                   "kernel beside (n: i64, k: i64, x: in f64, z: out f64) {\n"
                                   "  par i in 0..n grain 1 {\n    %1 = load x[i + 1] f64\n"
                                   "    %2 = load x[i] f64\n    %3 = load x[i + 2] f64\n    %4 = add %1 %2\n"
                                   "    %5 = add %3 %4\n    store z[i] %5\n  }\n}\n";

/* Code for long runs fetches every line once, and none farther than nine pages from what it reads, wherever an array
 * begins. */
static void code_fetches_each_line_once(void **state) {
  (void)state;
  enum { PAGES = 64, AHEAD = 9, LINES = (PAGES + 2 * AHEAD) * (PAGE_BYTES / PAGE_LINE) };
  static const char *const names[] = {"light", "heavy", "back", "other", "three", "beside"};
  static u8 lines[LINES];
  if (!cpu_has(CPU_PAGES)) print_message("# skipped: nothing is fetched by pages on this processor\n"), skip();
  LoopModule m;
  Buf why, text;
  start(&m);
  buf_init(&why, m.alloc);
  if (loops_parse(&m, fetched_text, strlen(fetched_text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  for (u32 l = 0; l < LEVELS; l++)
    for (u32 k = 0; k < COUNT_OF(names) && vec_level_runs(levels[l]); k++) {
      VecEmitter *e = vec_emitter_new(allocator_system(), levels[l], NULL);
      e->ahead = true;
      VecCode *code = compiled(e, loop_module_find(&m, names[k]));
      buf_init(&text, m.alloc);
      vec_code_print(code, names[k], &text);
      const char *all = buf_text(&text), *first = strstr(all, "prefetch"), *last = first, *top = all;
      assert_non_null(first);
      /* the loop's beginning */
      for (const char *at = all; (at = strstr(at, "  j")) != NULL && at < first; at++) top = strchr(at, '\n') + 1;
      while (strstr(last + 1, "prefetch")) last = strstr(last + 1, "prefetch");
      const char *step = strstr(last, "add r15, ");
      assert_non_null(step);
      i64 trip = strtoll(step + 9, NULL, 0), bytes = trip * 8 * (k == 3 ? 2 : 1), read = PAGES * PAGE_BYTES,
          from = (i64)1 << 30;
      for (i64 shift = 0; shift < PAGE_TURN; shift += 8 + shift) {
        memset(lines, 0, sizeof lines);
        for (i64 at = 0; at < read; at += bytes) {
          i64 r[16];
          /* what is read in steps has a register that goes on */
          for (u32 n = 0; n < 16; n++) r[n] = from + shift + (k == 2 ? read : k == 3 ? at : 0);
          r[15] = at / bytes * trip;
          follow(r, top, strchr(last, '\n'), lines, from - AHEAD * PAGE_BYTES, LINES);
        }
        /* what was fetched by what is read; of the last pages before the end others fetch */
        u32 inside = AHEAD * (PAGE_BYTES / PAGE_LINE), end = LINES - inside;
        for (u32 n = k == 2 ? inside : 2 * inside; n < (k == 2 ? end - inside : end); n++)
          if (lines[n] != 1)
            fail_msg("%s, %s, from %d on: line %u is fetched %u times", names[k], vec_level_text(levels[l]), (int)shift,
                     n - inside, lines[n]);
      }
      buf_free(&text);
      vec_code_free(code);
      vec_emitter_free(e);
    }
  buf_free(&why);
  loop_module_free(&m);
}

/* Numbers of one byte, with truths among them, that are combined and stored: 32 to a vector, with AVX-512 64. */
static const char bytes_text[] = "kernel bytes (n: i64, x: in u8, y: in u8, m: in i1, z: out u8, w: out i1) {\n"
                                 "  par i in 0..n grain 1 {\n    %1 = load x[i + 1] u8\n    %2 = load y[i] u8\n"
                                 "    %3 = add %1 %2\n    %4 = min %3 200:u8\n    %5 = xor %1 %2\n    %6 = max %4 %5\n"
                                 "    %7 = and %1 %2\n    %8 = or %7 3:u8\n    %9 = sub %6 %8\n    %10 = load m[i] i1\n"
                                 "    %11 = not %10\n    %12 = convert u8 %11\n    %13 = add %9 %12\n"
                                 "    store z[i] %13\n    store w[i] %11\n  }\n}\n";

static void bytes_are_combined(void **state) {
  (void)state;
  enum { MOST = 400 };
  static u8 x[MOST], y[MOST], m[MOST], z[2][MOST], w[2][MOST];
  LoopModule module;
  Buf why, text;
  start(&module);
  buf_init(&why, module.alloc);
  if (loops_parse(&module, bytes_text, strlen(bytes_text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  const LoopFn *fn = loop_module_find(&module, "bytes");
  for (u32 i = 0; i < MOST; i++) x[i] = (u8)(i * 37), y[i] = (u8)(i * 91 + 13), m[i] = i % 3 == 1;
  for (u32 l = 0; l < LEVELS; l++) {
    if (!vec_level_runs(levels[l])) continue;
    VecEmitter *e = vec_emitter_new(allocator_system(), levels[l], NULL);
    VecCode *code = compiled(e, fn);
    buf_init(&text, module.alloc);
    vec_code_print(code, "bytes", &text);
    assert_non_null(strstr(buf_text(&text), levels[l] == VEC_AVX512 ? "vpaddb zmm" : "vpaddb ymm"));
    buf_free(&text);
    for (i64 hi = 0, lo = 0; hi < MOST - 1; hi++, lo = hi % 7 * hi / 11) {
      u64 args[2][6];
      for (u32 t = 0; t < 2; t++) {
        const u64 own[6] = {(u64)hi, (u64)(uintptr_t)x, (u64)(uintptr_t)y, (u64)(uintptr_t)m, (u64)(uintptr_t)z[t],
                            (u64)(uintptr_t)w[t]};
        memcpy(args[t], own, sizeof own);
      }
      stores_the_same(fn, code, (u64 *const[2]){args[0], args[1]}, lo, hi, z, sizeof z[0], w, sizeof w[0]);
    }
    vec_code_free(code);
    vec_emitter_free(e);
  }
  buf_free(&why);
  loop_module_free(&module);
}

/* Bytes a few apart, by a constant and by a size: what is read ends where the memory does. */
static const char near_text[] =
    "kernel near (n: i64, s: i64, x: in u8, y: in u8, m: in i1, z: out u8, w: out f64) {\n"
    "  par i in 0..n grain 1 {\n    %1 = load x[i*s] u8\n    %2 = load x[i*s + 2] u8\n    %3 = load y[3*i + 1] u8\n"
    "    %4 = load m[2*i] i1\n    %5 = convert i64 %1\n    %6 = mul %5 77\n    %7 = convert i64 %2\n"
    "    %8 = mul %7 150\n    %9 = add %6 %8\n    %10 = shr %9 8\n    %11 = convert u8 %10\n"
    "    %12 = select %4 %3 %11\n    store z[i] %12\n  }\n}\n"
    "kernel wide (n: i64, s: i64, x: in u8, y: in u8, m: in i1, z: out u8, w: out f64) {\n"
    "  par i in 0..n grain 1 {\n    %1 = load x[i*s] u8\n    %2 = load x[i*s + 2] u8\n    %3 = load y[3*i + 1] u8\n"
    "    %4 = load m[2*i] i1\n    %5 = convert f64 %1\n    %6 = convert f64 %2\n    %7 = convert f64 %3\n"
    "    %8 = mul %5 0.25:f64\n    %9 = add %8 %6\n    %10 = select %4 %7 %9\n    store w[i] %10\n  }\n}\n";

static void bytes_apart_are_shuffled(void **state) {
  (void)state;
  enum { MOST = 150, ARRAYS = 3 };
  static u8 z[2][MOST];
  static f64 w[2][MOST];
  LoopModule module;
  Buf why, text;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  u8 *end[ARRAYS];
  for (u32 k = 0; k < ARRAYS; k++) {
    u8 *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED && mprotect(at + page, page, PROT_NONE) == 0);
    for (u32 i = 0; i < page; i++) at[i] = (u8)(k == 2 ? i % 5 < 2 : i * 37 + i / 7);
    end[k] = at + page;
  }
  start(&module);
  buf_init(&why, module.alloc);
  if (loops_parse(&module, near_text, strlen(near_text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  for (u32 l = 0; l < LEVELS; l++)
    for (u32 kernel = 0; kernel < 2; kernel++) {
      if (!vec_level_runs(levels[l])) continue;
      const LoopFn *fn = loop_module_find(&module, kernel ? "wide" : "near");
      VecEmitter *e = vec_emitter_new(allocator_system(), levels[l], NULL);
      VecCode *code = compiled(e, fn);
      buf_init(&text, module.alloc);
      vec_code_print(code, "near", &text);
      assert_non_null(strstr(buf_text(&text), "vpshufb"));
      buf_free(&text);
      for (i64 s = -1; s <= 6; s++)
        for (i64 hi = 0, lo = 0; hi < MOST; hi++, lo = hi % 5 * hi / 11) {
          u64 args[2][7];
          const i64 last = hi ? hi - 1 : 0;
          for (u32 t = 0; t < 2; t++) {
            const u64 own[7] = {(u64)hi, (u64)s, (u64)(uintptr_t)(end[0] - 3 - (s < 0 ? 0 : last * s)),
                                (u64)(uintptr_t)(end[1] - 2 - last * 3), (u64)(uintptr_t)(end[2] - 1 - last * 2),
                                (u64)(uintptr_t)z[t], (u64)(uintptr_t)w[t]};
            memcpy(args[t], own, sizeof own);
          }
          stores_the_same(fn, code, (u64 *const[2]){args[0], args[1]}, lo, hi, z, sizeof z[0], w, sizeof w[0]);
        }
      vec_code_free(code);
      vec_emitter_free(e);
    }
  for (u32 k = 0; k < ARRAYS; k++) munmap(end[k] - page, 2 * page);
  buf_free(&why);
  loop_module_free(&module);
}

/* Results overflow, are subnormal and become 0. */
static const char powers_text[] =
    "kernel powers (n: i64, x: in f64, y: in f32, z: out f64, w: "
    "out f32, z1: out f64, w1: out f32, z2: out f64, w2: out f32, z3: out f64, w3: out f32) {\n"
    "  par i in 0..n grain 1 {\n    %1 = load x[i] f64\n    %2 = load y[i] f32\n"
    "    %3 = math exp %1\n    %4 = math exp %2\n    %5 = math exp2 %1\n    %6 = math exp2 %2\n"
    "    %7 = math sinh %1\n    %8 = math sinh %2\n    %9 = math erfc %1\n"
    "    %10 = math erfc %2\n    store z[i] %3\n    store w[i] %4\n    store z1[i] %5\n"
    "    store w1[i] %6\n    store z2[i] %7\n    store w2[i] %8\n    store z3[i] %9\n    store w3[i] %10\n  }\n}\n";

static void powers_of_two_round_once(void **state) {
  (void)state;
  enum { MOST = 60000, SOME = 7 };
  static f64 x[MOST], z[2][MOST * 4];
  static f32 y[MOST], w[2][MOST * 4];
  static const f64 ends[SOME] = {0.0, -0.0, 1.0 / 0.0, -1.0 / 0.0, 1e300, -1e300, 5e-324};
  LoopModule module;
  Buf why, text;
  start(&module);
  buf_init(&why, module.alloc);
  if (loops_parse(&module, powers_text, strlen(powers_text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  const LoopFn *fn = loop_module_find(&module, "powers");
  for (u32 i = 0; i < MOST; i++)
    x[i] = i < SOME ? ends[i] : (i * 1.0 / MOST - 0.5) * 2280,
        y[i] = i < SOME ? (f32)ends[i] : (f32)((i * 1.0 / MOST - 0.5) * 320);
  for (u32 l = 0; l < LEVELS; l++) {
    if (!vec_level_runs(levels[l])) continue;
    VecEmitter *e = vec_emitter_new(allocator_system(), levels[l], NULL);
    VecCode *code = compiled(e, fn);
    buf_init(&text, module.alloc);
    vec_code_print(code, "powers", &text);
    if (levels[l] == VEC_AVX512)
      assert_true(strstr(buf_text(&text), "vscalefpd") && strstr(buf_text(&text), "vscalefps"));
    buf_free(&text);
    u64 args[2][11];
    for (u32 t = 0; t < 2; t++) {
      const u64 own[3] = {MOST, (u64)(uintptr_t)x, (u64)(uintptr_t)y};
      memcpy(args[t], own, sizeof own);
      for (u32 k = 0; k < 4; k++)
        args[t][3 + 2 * k] = (u64)(uintptr_t)(z[t] + k * MOST), args[t][4 + 2 * k] = (u64)(uintptr_t)(w[t] + k * MOST);
    }
    stores_the_same(fn, code, (u64 *const[2]){args[0], args[1]}, 0, MOST, z, sizeof z[0], w, sizeof w[0]);
    u32 tiny = 0, none = 0;
    for (u32 i = 0; i < MOST; i++) tiny += z[0][i] > 0 && z[0][i] < 0x1p-1022, none += w[0][i] == 0;
    assert_true(tiny > 100 && none > 100);
    vec_code_free(code);
    vec_emitter_free(e);
  }
  buf_free(&why);
  loop_module_free(&module);
}

static const char divisors_text[] =
    "kernel quotients (n: i64, d: f64, e: f32, x: in f64, y: in f32, z: out f64, w: out f32) {\n"
    "  par i in 0..n grain 1 {\n    %1 = load x[i] f64\n    %2 = load y[i] f32\n"
    "    %3 = div %1 d\n    %4 = div %2 e\n    store z[i] %3\n    store w[i] %4\n  }\n}\n";

enum { NEAR = 31, MIDDLES = 512 };

/* Dividends X whose quotients by S lie beside the middle of two numbers: X * 2^j = M * S + rest, M odd and of one
 * bit more than numbers have, the rest at most NEAR. Returns how many there are. */
static u32 near_middle(u64 S, u32 digits, u64 *X) {
  u32 even = (u32)__builtin_ctzll(S), n = 0;
  u64 odd = S >> even, inverse = odd;
  for (u32 k = 0; k < 6; k++) inverse *= 2 - odd * inverse; /* Newton, of twice as many bits each time */
  for (u32 j = digits; j <= digits + 1; j++)
    for (i64 most = NEAR >> even, rest = -most; rest <= most; rest++) {
      u64 modulus = (u64)1 << (j - even), M = -(u64)rest * inverse & (modulus - 1);
      for (; rest && M >> (digits + 1) == 0 && n < MIDDLES; M += modulus) {
        u64 x = (u64)(((__int128)M * odd + rest) >> (j - even));
        if (M >> digits == 1 && (M & 1) && x >> (digits - 1) == 1 && (x >= S) == (j == digits)) X[n++] = x;
      }
    }
  return n;
}

/* xorshift, Marsaglia 2003 */
static u64 next(u64 *word) { return *word ^= *word << 13, *word ^= *word >> 7, *word ^= *word << 17; }

/* By what does not change in the loop vector code multiplies; what that would not round as it should is divided. */
static void divisors_that_do_not_change(void **state) {
  (void)state;
  enum { MOST = 8000, EDGES = 24, DIVISORS = 300 };
  static f64 x[MOST], z[2][MOST];
  static f32 y[MOST], w[2][MOST];
  static const f64 edges[EDGES] = {0.0, -0.0, 1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0, 5e-324, -1e-310, 1e-45, 1.0, -3.0,
                                   1e300, -1e300, 1e38, 0x1p-98, 0x1p-99, 0x1p100, 0x1p-24, 0x1p-25, 0x1p26,
                                   0x1.fffffep25, 0x1p-900, 0x1p900, 0x1p-100, 0x1p101};
  LoopModule module;
  Buf why, text;
  u64 word = 88172645463325252ull;
  u32 middles = 0;
  start(&module);
  buf_init(&why, module.alloc);
  if (loops_parse(&module, divisors_text, strlen(divisors_text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  const LoopFn *fn = loop_module_find(&module, "quotients");
  for (u32 l = 0; l < LEVELS; l++) {
    if (!vec_level_runs(levels[l])) continue;
    VecEmitter *e = vec_emitter_new(allocator_system(), levels[l], NULL);
    VecCode *code = compiled(e, fn);
    buf_init(&text, module.alloc);
    vec_code_print(code, "quotients", &text);
    if (levels[l] == VEC_AVX512) assert_true(strstr(buf_text(&text), "vfnmadd") != NULL);
    buf_free(&text);
    for (u32 k = 0; k < DIVISORS; k++) {
      u64 S = next(&word) >> 11 | (u64)1 << 52, T = next(&word) >> 40 | 1 << 23;
      f64 d = k < EDGES ? edges[k] : ldexp((f64)S, (int)(next(&word) % 40) - 70);
      f32 by = k < EDGES ? (f32)edges[k] : ldexpf((f32)T, (int)(next(&word) % 40) - 40);
      u64 Xs[MIDDLES], Ys[MIDDLES];
      u32 some = near_middle(S, 53, Xs), others = near_middle(T, 24, Ys);
      for (u32 i = 0; i < MOST; i++) {
        u64 X = i < 2 * some ? Xs[i / 2] : 0, Y = i < 2 * others ? Ys[i / 2] : 0;
        middles += X && Y;
        x[i] = i % 64 == 7 ? edges[i / 64 % EDGES] : i % 2 && X ? ldexp((f64)X, (int)(i % 100) - 90)
                           : ldexp((f64)(i64)next(&word), (int)(next(&word) % (i % 128 < 64 ? 100 : 2000)) - 1000);
        y[i] = i % 64 == 7 ? (f32)edges[i / 64 % EDGES] : i % 2 && Y ? ldexpf((f32)Y, (int)(i % 60) - 60)
                           : ldexpf((f32)(i64)next(&word), (int)(next(&word) % (i % 128 < 64 ? 60 : 256)) - 150);
      }
      u64 args[2][7];
      for (u32 t = 0; t < 2; t++) {
        args[t][0] = MOST, args[t][1] = args[t][2] = 0;
        memcpy(&args[t][1], &d, sizeof d);
        memcpy(&args[t][2], &by, sizeof by);
        const u64 arrays[4] = {(u64)(uintptr_t)x, (u64)(uintptr_t)y, (u64)(uintptr_t)z[t], (u64)(uintptr_t)w[t]};
        memcpy(&args[t][3], arrays, sizeof arrays);
      }
      stores_the_same(fn, code, (u64 *const[2]){args[0], args[1]}, 0, MOST - k % 70, z, sizeof z[0], w, sizeof w[0]);
    }
    assert_true(middles > 5000);
    vec_code_free(code);
    vec_emitter_free(e);
  }
  buf_free(&why);
  loop_module_free(&module);
}

/* All f32 quotients near the middle of two numbers, by vector code and by C. */
static bool all_quotients(void) {
  enum { TRIP = 256 /* no less than vector code takes in a trip */ };
  static const char text[] = "kernel quotients (n: i64, e: f32, y: in f32, w: out f32) {\n  par i in 0..n grain 1 {\n"
                             "    %1 = load y[i] f32\n    %2 = div %1 e\n    store w[i] %2\n  }\n}\n";
  LoopModule module;
  Buf why;
  u64 count = 0, wrong = 0;
  if (!vec_level_runs(VEC_AVX512)) {
    printf("skip vector/quotients-of-f32: AVX-512 is beyond this processor\n");
    return true;
  }
  start(&module);
  buf_init(&why, module.alloc);
  if (loops_parse(&module, text, strlen(text), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  VecEmitter *e = vec_emitter_new(allocator_system(), VEC_AVX512, NULL);
  VecCode *code = compiled(e, loop_module_find(&module, "quotients"));
  for (u64 S = 1 << 23; S < 1 << 24; S++) {
    u64 X[MIDDLES];
    f32 y[MIDDLES + TRIP], w[MIDDLES + TRIP], s = (f32)S;
    u32 n = near_middle(S, 24, X);
    for (u32 i = 0; i < n + TRIP; i++) y[i] = i < n ? (f32)X[i] : 1.0f;
    u64 args[4] = {(n + TRIP - 1) / TRIP * TRIP, 0, (u64)(uintptr_t)y, (u64)(uintptr_t)w};
    memcpy(&args[1], &s, sizeof s);
    (void)vec_code_kernel(code)(args, 0, (i64)args[0]);
    for (u32 i = 0; i < n; i++) wrong += w[i] != y[i] / s;
    count += n;
  }
  printf("%s vector/quotients-of-f32 # %llu near the middle of two numbers, %llu wrong\n",
         wrong || count < 100000000 ? "not ok" : "ok", (unsigned long long)count, (unsigned long long)wrong);
  vec_code_free(code);
  vec_emitter_free(e);
  buf_free(&why);
  loop_module_free(&module);
  return !wrong;
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "quotients") == 0) return !all_quotients();
  if (argc > 1) {
    u32 count = (u32)atol(argv[1]);
    u64 seed = argc > 2 ? (u64)atoll(argv[2]) : 1;
    const char *only = getenv("WEFT_CPU");
    bool use[LEVELS], asked[LEVELS], all = true;
    Tally tally[LEVELS] = {0};
    for (u32 l = 0; l < LEVELS; l++) {
      asked[l] = !only || !*only || strcmp(only, vec_level_text(levels[l])) == 0;
      use[l] = asked[l] && vec_level_runs(levels[l]);
    }
    random_kernels(seed, count, getenv("VECTOR_REFUSED"), use, tally);
    for (u32 l = 0; l < LEVELS; l++) {
      const char *name = vec_level_text(levels[l]);
      bool same = tally[l].same && tally[l].endless <= count / 1000;
      if (use[l])
        printf("%s vector/%s-%u-from-%llu # %u emitted, %u refused, %u beyond %u steps\n", same ? "ok" : "not ok", name,
               count, (unsigned long long)seed, tally[l].emitted, tally[l].refused, tally[l].endless, (u32)STEPS);
      else if (asked[l]) printf("skip vector/%s: it is beyond this processor\n", name);
      all = all && (same || !use[l]);
    }
    return !all;
  }
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_kernels_give_the_same_bits),
    cmocka_unit_test(work_is_lines),
    cmocka_unit_test(long_runs_fetch_ahead),
    cmocka_unit_test(code_fetches_each_line_once),
    cmocka_unit_test(strips_keep_the_order_of_rows), cmocka_unit_test(rows_of_several_axes_keep_their_order),
    cmocka_unit_test(lanes_go_through_loops),
    cmocka_unit_test(backwards_by_vectors),
    cmocka_unit_test(rows_of_few_elements_take_one_vector),
    cmocka_unit_test(stores_past_the_caches),
    cmocka_unit_test(bytes_are_combined),
    cmocka_unit_test(bytes_apart_are_shuffled),
    cmocka_unit_test(powers_of_two_round_once),
    cmocka_unit_test(divisors_that_do_not_change),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
