/* test_loops.c — loop IR: text round trips, verifier, interpreter, and the C text against the interpreter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/loops/loops.h"
#include "jit/native/native.h"
#include "tests/unit/loops_texts.h"
#include "tests/unit/memory.h"

static u64 w64(f64 v) {
  u64 b;
  memcpy(&b, &v, 8);
  return b;
}
static u64 w32(f32 v) {
  u32 b;
  memcpy(&b, &v, 4);
  return b;
}
static f64 f64_of(u64 b) {
  f64 v;
  memcpy(&v, &b, 8);
  return v;
}
static u64 ptr(const void *p) { return (u64)(uintptr_t)p; }

static f64 twice(f64 x) { return x * 2; }
static f32 twice32(f32 x) { return x * 2; }
static const LoopMath test_math[] = {
  {"exp", "wm_exp_f64", LT_F64, 1, (void (*)(void))twice, NULL},
  {"exp", "wm_exp_f32", LT_F32, 1, (void (*)(void))twice32, NULL},
};

static void parsed(LoopModule *m, const char *text) {
  Buf why;
  assert_int_equal(loop_module_init(m, allocator_system()), WEFT_OK);
  m->math = test_math;
  m->math_count = COUNT_OF(test_math);
  buf_init(&why, m->alloc);
  if (loops_parse(m, text, strlen(text), &why) != WEFT_OK) fail_msg("%s\n%s", buf_text(&why), text);
  buf_free(&why);
}

static u64 run_kernel(const LoopFn *fn, const u64 *args, i64 lo, i64 hi) {
  u64 key, steps = 50000000;
  Buf why;
  buf_init(&why, fn->module->alloc);
  if (loops_interp_kernel(fn, args, lo, hi, &key, &steps, &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  buf_free(&why);
  return key;
}

/* ---- text ---------------------------------------------------------------------------------- */

static void round_trips(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT_OF(loops_golden); i++) {
    LoopModule m;
  parsed(&m, loops_golden[i]);
    Buf out;
    buf_init(&out, m.alloc);
    loops_print_module(&m, &out);
    assert_string_equal(buf_text(&out), loops_golden[i]);
    buf_free(&out);
    loop_module_free(&m);
  }
}

static void print_is_stable(void **state) { /* math, tables, one line */
  (void)state;
  LoopModule m;
  parsed(&m, loops_math_text);
  Buf once, again;
  buf_init(&once, m.alloc);
  buf_init(&again, m.alloc);
  loops_print_module(&m, &once);
  LoopModule n;
  parsed(&n, buf_text(&once));
  loops_print_module(&n, &again);
  assert_string_equal(buf_text(&once), buf_text(&again));
  assert_non_null(strstr(buf_text(&once), "table steps f64 [1.0, 1.5, 2.0, 3.0]\n"));
  assert_non_null(strstr(buf_text(&once), "math hypot f32 (x: f32, y: f32) -> f32 {\n"));
  buf_free(&once);
  buf_free(&again);
  loop_module_free(&m);
  loop_module_free(&n);
}

static void parse_errors(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } rows[] = {
    {"kernel k (x: in f64) { par i in 0..1 { store x[i] 1.0 } }", "store to an in buffer"},
    {"kernel k (x: out f64) { par i in 0..1 { %1 = load x[i] f64 } }", "load from an out buffer"},
    {"kernel k (x: in f64) { par i in 0..1 { %1 = load x[i] f32 } }", "load of another type"},
    {"kernel k (x: in f64) { %1 = load x[0] f64 }", "one outermost par"},
    {"kernel k (n: i64) { par i in 0..n { } par j in 0..n { } }", "behind a kernel's outermost par"},
    {"kernel k (n: i64) { for i in 0..n { } }", "outermost loop is a par"},
    {"kernel k (n: i64) { par i in 0..n { poll #1 } }", "only native functions"},
    {"kernel k (n: i64) { par i in 0..n { return } }", "a kernel does not return"},
    {"kernel k (n: f64) { par i in 0..n { } }", "trip count"},
    {"kernel k (n: i64) { par i in 0..n { %1 = add i 1.5:f64 } }", "different types"},
    {"kernel k (n: i64) { par i in 0..n { %1 = add i 1.5 } }", "not a literal of this type"},
    {"kernel k (n: i64) { par i in 0..n { %1 = sqrt i } }", "does not take this type"},
    {"kernel k (n: i64) { par i in 0..n { %1 = add true true } }", "does not take this type"},
    {"kernel k (n: i64) { par i in 0..n { %1 = add i i } store x[0] %1 }", "not defined here"},
    {"kernel k (x: out i64, n: i64) { par i in 0..n { for j in 0..n { %1 = add i j } store x[i] %1 } }",
     "not defined here"},
    {"kernel k (x: out i64, n: i64) { par i in 0..n { %1 = add i i %1 = add i i } }", "defined twice"},
    {"kernel k (n: i64) { par i in 0..n { par i in 0..n { } } }", "defined twice"},
    {"kernel k (n: i64, n: i64) { par i in 0..n { } }", "defined twice"},
    {"kernel k (n: i64) { par i in 0..n { %1 = while (%a: i64 = 0) { %2 = add %a 1 } } }", "must end by next or break"},
    {"kernel k (n: i64) { par i in 0..n { %1 = for j in 0..n (%a: i64 = 0) { } } }", "must end by next"},
    {"kernel k (n: i64) { par i in 0..n { %1 = reduce add i64 j in 0..n { } } }", "must end by yield"},
    {"kernel k (n: i64) { par i in 0..n { %1 = scan add i64 j in 0..n { } } }", "needs a prefix"},
    {"kernel k (n: i64) { par i in 0..n { %1 = reduce or f64 j in 0..n { yield 1.0 } } }", "reduction does not take"},
    {"kernel k (n: i64) { par i in 0..n { %1 = prefix i } }", "one prefix"},
    {"kernel k (n: i64) { par i in 0..n { yield i } }", "yield outside"},
    {"kernel k (n: i64) { par i in 0..n { next } }", "next outside"},
    {"kernel k (n: i64) { par i in 0..n { %1 = if true -> (i64) { yield 1 } } }", "needs an else"},
    {"kernel k (n: i64) { par i in 0..n { %1 = if true -> (i64) { } else { yield 1 } } }", "must end by yield"},
    {"kernel k (n: i64) { par i in 0..n { if i { } } }", "wrong type"},
    {"kernel k (n: i64) { par i in 0..n { check index i n #0 (i) } }", "kernel's check with an exit"},
    {"kernel k (n: i64) { par i in 0..n { check index i n #65535 } }", "kernel's check with an exit"},
    {"kernel k (n: i64) { par i in 0..n { check fit_i32 i #0 } }", "check does not take"},
    {"kernel k (x: in f64, s: f64, n: i64) { par i in 0..n { %1 = load x[i*s] f64 } }", "wrong type"},
    {"kernel k (x: in f64, n: i64) { par i in 0..n { %2 = convert f64 i %1 = load x[%2] f64 } }", "wrong type"},
    {"kernel k (x: in f64, n: i64) { par i in 0..n { %1 = bitcast i32 i } }", "bitcast between widths"},
    {"kernel k (x: in f64, n: i64) { par i in 0..n { %1 = convert i1 i } }", "conversion to i1"},
    {"kernel k (n: i64) { par i in 0..n { %1 = math nosuch 1.0 } }", "no such math"},
    {"kernel k (n: i64) { par i in 0..n { %1 = math exp 1.0 2.0 } }", "wrong number of operands for the math"},
    {"kernel k (n: i64) { par i in 0..n { %1 = round_f16 1.0 } }", "does not take this type"},
    {"native f (n: i64) -> (i64) { }", "must end by return"},
    {"native f (n: i64) -> (i64) { return 1.0 }", "not a literal of this type"},
    {"native f (n: i64) -> (i64) { return n n }", "wrong number of values"},
    {"native f (n: i64) { exit #0 }", "exit 0 is the return"},
    {"native f (n: i64) { exit #1 %1 = add n n }", "cannot be reached"},
    {"native f (n: i64) { for i in 0..n { break %1 = add n n } }", "not defined here"},
    {"native f (n: i64) -> (i64) { par i in 0..n { return n } return n }", "return out of a par"},
    {"native f (n: i64) { call g (n) #1 }", "not a function"},
    {"native f (n: i64) { call f (n) #0 }", "exit 0"},
    {"native f (n: i64) { call f (n, n) #1 }", "number of arguments"},
    {"native f (n: i64) { %1 = call f (n) #1 }", "number of names"},
    {"native f (x: in f64) { call f (1) #1 }", "not a literal of this type"},
    {"native g (x: out f64) { } native f (x: in f64) { call g (x) #1 }", "passed on"},
    {"math m f64 (x: f32) -> f64 { return 1.0 }", "another type than the math"},
    {"math m f64 (x: f64) -> f64 { %1 = math m x return %1 }", "uses itself"},
    {"math m f64 (x: f64) -> f64 { check assert true #0 return x }", "no checks"},
    {"math m f64 (x: f64) -> f64 { %1 = reduce add f64 i in 0..2 { yield x } return %1 }", "only if, for and while"},
    {"kernel k (n: i64) { par i in 0..n {", "before the end"},
    {"kernel k (n: i64) par", "expected `{`"},
    {"kernel k (n: i64) { par i in 1..n { } }", "expected `0`"},
    {"kernel k (n: i64) { par i in 0..n { frob } }", "not an operation"},
    {"kernel k (n: i64) { par i in 0..n { %1 = add i 9223372036854775808 } }", "does not fit"},
    {"kernel k (n: i64) { par i in 0..n { %1 = add 300:u8 1 } }", "does not fit"},
    {"table t f64 [1, x]", "not a literal"},
    {"frobnicate", "expected kernel"},
  };
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    LoopModule m;
    Buf why;
    assert_int_equal(loop_module_init(&m, allocator_system()), WEFT_OK);
    m.math = test_math;
    m.math_count = COUNT_OF(test_math);
    buf_init(&why, m.alloc);
    if (loops_parse(&m, rows[i].text, strlen(rows[i].text), &why) == WEFT_OK) fail_msg("accepted: %s", rows[i].text);
    if (!strstr(buf_text(&why), rows[i].message))
      fail_msg("%s\n  said: %s\n  not:  %s", rows[i].text, buf_text(&why), rows[i].message);
    assert_int_equal(m.fns.count <= 1, 1);
    buf_free(&why);
    loop_module_free(&m);
  }
}

static void verifier_sees_misbuilt(void **state) {
  (void)state;
  LoopModule m;
  assert_int_equal(loop_module_init(&m, allocator_system()), WEFT_OK);
  LoopFn *fn = loop_fn_new(&m, LOOP_KERNEL, "k");
  u32 y = loop_param_buffer(fn, "y", LT_F64, LOOP_OUT), n = loop_param(fn, "n", LT_I64);
  u32 par = loop_begin_par(fn, "i", n, 0);
  u32 i = loop_index_of(par, 0);
  u32 v = loop_emit(fn, LOOP_CONVERT, LT_F64, i, 0, 0);
  loop_store(fn, y, 0, &(LoopTerm){.coef = 1, .var = i}, 1, v);
  loop_end(fn);
  assert_int_equal(loop_fn_finish(fn, NULL), WEFT_OK);
  assert_int_equal(loops_verify(fn, NULL), WEFT_OK);
  u32 was = fn->body.data[1]; /* use before definition */
  fn->body.data[1] = fn->body.data[2];
  fn->body.data[2] = was;
  assert_int_equal(loops_verify(fn, NULL), WEFT_ERROR);
  fn->body.data[2] = fn->body.data[1];
  fn->body.data[1] = was;
  fn->nodes.data[v].type = LT_F32; /* wrong type */
  assert_int_equal(loops_verify(fn, NULL), WEFT_ERROR);
  fn->nodes.data[v].type = LT_F64;
  assert_int_equal(loops_verify(fn, NULL), WEFT_OK);
  fn->body.data[2] = was; /* twice */
  assert_int_equal(loops_verify(fn, NULL), WEFT_ERROR);

  LoopFn *bad = loop_fn_new(&m, LOOP_KERNEL, "bad"); /* misuse sticks */
  loop_end(bad);
  assert_int_equal(loop_param(bad, "n", LT_I64), 0);
  assert_int_equal(loop_fn_finish(bad, NULL), WEFT_ERROR);
  LoopFn *open = loop_fn_new(&m, LOOP_KERNEL, "open");
  loop_begin_par(open, "i", loop_const_i(open, LT_I64, 3), 0);
  assert_int_equal(loop_fn_finish(open, NULL), WEFT_ERROR);
  loop_module_free(&m);
}

/* ---- meaning of operations ----------------------------------------------------------------- */

static void operations(void **state) {
  (void)state;
  const f64 inf = INFINITY, nan_ = NAN;
  const struct {
    LoopOp op;
    LoopType type, from;
    u64 a, b, want;
  } rows[] = {
    {LOOP_ADD, LT_I64, LT_I64, (u64)INT64_MAX, 1, (u64)INT64_MIN},
    {LOOP_ADD, LT_U8, LT_U8, 255, 2, 1},
    {LOOP_ADD, LT_I32, LT_I32, INT32_MAX, 1, (u64)(i64)INT32_MIN},
    {LOOP_SUB, LT_U32, LT_U32, 0, 1, UINT32_MAX},
    {LOOP_MUL, LT_I32, LT_I32, 65536, 65536, 0},
    {LOOP_DIV, LT_I64, LT_I64, (u64)INT64_MIN, (u64)-1, (u64)INT64_MIN},
    {LOOP_FLOORDIV, LT_I32, LT_I32, (u64)(i64)INT32_MIN, (u64)-1, (u64)(i64)INT32_MIN},
    {LOOP_FLOORDIV, LT_I64, LT_I64, (u64)-7, 2, (u64)-4},
    {LOOP_DIV, LT_I64, LT_I64, (u64)-7, 2, (u64)-3},
    {LOOP_MOD, LT_I64, LT_I64, (u64)-7, 2, 1},
    {LOOP_MOD, LT_I64, LT_I64, 7, (u64)-2, (u64)-1},
    {LOOP_REM, LT_I64, LT_I64, (u64)-7, 2, (u64)-1},
    {LOOP_MOD, LT_I64, LT_I64, (u64)INT64_MIN, (u64)-1, 0},
    {LOOP_DIV, LT_I64, LT_I64, 5, 0, 0},
    {LOOP_MOD, LT_U8, LT_U8, 5, 0, 5},
    {LOOP_MULHI, LT_U64, LT_U64, UINT64_MAX, UINT64_MAX, UINT64_MAX - 1},
    {LOOP_MULHI, LT_I64, LT_I64, (u64)-1, 1, (u64)-1},
    {LOOP_MULHI, LT_U32, LT_U32, 0xD2511F53, 0x12345678, (0xD2511F53ull * 0x12345678ull) >> 32},
    {LOOP_SHL, LT_I64, LT_I64, 1, 64, 0},
    {LOOP_SHL, LT_I64, LT_I64, 1, (u64)-1, 0},
    {LOOP_SHL, LT_I32, LT_I32, 1, 31, (u64)(i64)INT32_MIN},
    {LOOP_SHR, LT_I64, LT_I64, (u64)-8, 100, (u64)-1},
    {LOOP_SHR, LT_I32, LT_I32, (u64)-8, 1, (u64)-4},
    {LOOP_SHR, LT_U32, LT_U32, 0x80000000u, 32, 0},
    {LOOP_SHR, LT_U8, LT_U8, 0x80, 7, 1},
    {LOOP_ABS, LT_I64, LT_I64, (u64)INT64_MIN, 0, (u64)INT64_MIN},
    {LOOP_NEG, LT_I32, LT_I32, (u64)(i64)INT32_MIN, 0, (u64)(i64)INT32_MIN},
    {LOOP_NOT, LT_I1, LT_I1, 1, 0, 0},
    {LOOP_NOT, LT_U8, LT_U8, 1, 0, 254},
    {LOOP_MIN, LT_F64, LT_F64, w64(0.0), w64(-0.0), w64(-0.0)},
    {LOOP_MIN, LT_F64, LT_F64, w64(-0.0), w64(0.0), w64(-0.0)},
    {LOOP_MAX, LT_F64, LT_F64, w64(-0.0), w64(0.0), w64(0.0)},
    {LOOP_MAX, LT_F32, LT_F32, w32(0.0f), w32(-0.0f), w32(0.0f)},
    {LOOP_MIN, LT_U64, LT_U64, UINT64_MAX, 1, 1},
    {LOOP_MIN, LT_I64, LT_I64, UINT64_MAX, 1, UINT64_MAX},
    {LOOP_RINT, LT_F64, LT_F64, w64(2.5), 0, w64(2.0)},
    {LOOP_TRUNC, LT_F32, LT_F32, w32(-1.5f), 0, w32(-1.0f)},
    {LOOP_FLOOR, LT_F64, LT_F64, w64(-0.0), 0, w64(-0.0)},
    {LOOP_COPYSIGN, LT_F64, LT_F64, w64(3.0), w64(-0.0), w64(-3.0)},
    {LOOP_ROUND_F16, LT_F32, LT_F32, w32(1.0f / 3), 0, w32(0.333251953125f)},
    {LOOP_ROUND_F16, LT_F32, LT_F32, w32(65519.0f), 0, w32(65504.0f)},
    {LOOP_ROUND_F16, LT_F32, LT_F32, w32(65520.0f), 0, w32(INFINITY)},
    {LOOP_ROUND_F16, LT_F32, LT_F32, w32(-0x1p-24f), 0, w32(-0x1p-24f)},
    {LOOP_ROUND_F16, LT_F32, LT_F32, w32(0x1p-25f), 0, w32(0.0f)},
    {LOOP_ROUND_BF16, LT_F32, LT_F32, w32(1.00390625f), 0, w32(1.0f)},
    {LOOP_ROUND_BF16, LT_F32, LT_F32, w32(3.4e38f), 0, w32(INFINITY)},
    {LOOP_EQ, LT_I1, LT_F64, w64(nan_), w64(nan_), 0},
    {LOOP_NE, LT_I1, LT_F64, w64(nan_), w64(nan_), 1},
    {LOOP_GE, LT_I1, LT_F64, w64(nan_), w64(1.0), 0},
    {LOOP_LT, LT_I1, LT_U64, UINT64_MAX, 1, 0},
    {LOOP_LT, LT_I1, LT_I64, UINT64_MAX, 1, 1},
    {LOOP_CONVERT, LT_I64, LT_F64, w64(1e300), 0, INT64_MAX},
    {LOOP_CONVERT, LT_I64, LT_F64, w64(-inf), 0, (u64)INT64_MIN},
    {LOOP_CONVERT, LT_I32, LT_F64, w64(nan_), 0, 0},
    {LOOP_CONVERT, LT_U8, LT_F64, w64(-0.9), 0, 0},
    {LOOP_CONVERT, LT_U8, LT_I64, 257, 0, 1},
    {LOOP_CONVERT, LT_I32, LT_I64, 0x80000000u, 0, (u64)(i64)INT32_MIN},
    {LOOP_CONVERT, LT_F64, LT_U64, UINT64_MAX, 0, w64(0x1p64)},
    {LOOP_CONVERT, LT_F32, LT_F64, w64(0.1), 0, w32(0.1f)},
    {LOOP_CONVERT, LT_F32, LT_I1, 1, 0, w32(1.0f)},
    {LOOP_BITCAST, LT_I32, LT_F32, w32(-0.0f), 0, (u64)(i64)INT32_MIN},
    {LOOP_BITCAST, LT_F32, LT_I32, (u64)(i64)INT32_MIN, 0, w32(-0.0f)},
    {LOOP_BITCAST, LT_F64, LT_I64, w64(1.5), 0, w64(1.5)},
  };
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    u64 got = 0;
    assert_true(loop_eval(rows[i].op, rows[i].type, rows[i].from, rows[i].a, rows[i].b, 0, &got));
    if (got != rows[i].want)
      fail_msg("row %u, %s: %llx, not %llx", i, loop_op_text(rows[i].op), (unsigned long long)got,
               (unsigned long long)rows[i].want);
  }
  u64 got = 0;
  assert_true(loop_eval(LOOP_FMA, LT_F64, LT_F64, w64(1 + 0x1p-52), w64(1 - 0x1p-52), w64(-1), &got));
  assert_true(f64_of(got) == -0x1p-104);
  for (u32 k = 0; k < 2; k++) { /* NaN is absorbed from either side */
    assert_true(loop_eval(k ? LOOP_MIN : LOOP_MAX, LT_F64, LT_F64, w64(nan_), w64(1), 0, &got) && isnan(f64_of(got)));
    assert_true(loop_eval(k ? LOOP_MIN : LOOP_MAX, LT_F64, LT_F64, w64(1), w64(nan_), 0, &got) && isnan(f64_of(got)));
  }
}

/* ---- order of reductions and scans, against the definition written as recursion ------------- */

static f64 lanes_of(const f64 *x, u64 n) {
  enum { W = 32, BLOCK = 2048 };
  if (n <= BLOCK) {
    f64 lane[W];
    for (u32 l = 0; l < W; l++) lane[l] = -0.0;
    for (u64 e = 0; e < n; e++) lane[e % W] += x[e];
    for (u32 half = W / 2; half; half /= 2)
      for (u32 l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
  }
  u64 blocks = (n + BLOCK - 1) / BLOCK;
  f64 *r = malloc(sizeof *r * blocks);
  for (u64 b = 0; b < blocks; b++) r[b] = lanes_of(x + b * BLOCK, b * BLOCK + BLOCK < n ? BLOCK : n - b * BLOCK);
  f64 v = lanes_of(r, blocks);
  free(r);
  return v;
}

static f64 rows_of(const f64 *x, u64 n) {
  if (n <= 64) {
    f64 v = -0.0;
    for (u64 e = 0; e < n; e++) v += x[e];
    return v;
  }
  u64 blocks = (n + 63) / 64;
  f64 *r = malloc(sizeof *r * blocks);
  for (u64 b = 0; b < blocks; b++) r[b] = rows_of(x + b * 64, b * 64 + 64 < n ? 64 : n - b * 64);
  f64 v = rows_of(r, blocks);
  free(r);
  return v;
}

static void scan_of(const f64 *x, u64 n, f64 *y) {
  u64 segments = (n + 15) / 16;
  for (u64 e = 0; e < n; e++) y[e] = e % 16 ? y[e - 1] + x[e] : x[e];
  if (segments <= 1) return;
  f64 *total = malloc(sizeof *total * segments), *before = malloc(sizeof *before * segments);
  for (u64 s = 0; s < segments; s++) total[s] = y[s * 16 + 15 < n ? s * 16 + 15 : n - 1];
  scan_of(total, segments, before);
  for (u64 e = 16; e < n; e++) y[e] = before[e / 16 - 1] + y[e];
  free(total);
  free(before);
}

static const char fold_text[] =
    "kernel lanes (x: in f64, y: out f64, n: "
    "i64) { par i in 0..1 { %r = reduce add f64 j in 0..n { %v = load x[j] f64 yield %v } store y[0] %r } }\n"
    "kernel rows (x: in f64, y: out f64, n: "
    "i64) { par i in 0..1 { %r = reduce add f64 rows j in 0..n { %v = load x[j] f64 yield %v } store y[0] %r } }\n"
    "kernel two (x: in f64, y: out f64, n: i64, m: i64) { par i in 0..1 {\n"
    "  %r = reduce add f64 a in 0..n, b in 0..m { %v = load x[a*m + b] f64 yield %v } store y[0] %r } }\n"
    "kernel sums (x: in f64, y: out f64, n: i64) { par i in 0..1 {\n"
    "  %t = scan add f64 j in 0..n { %v = load x[j] f64 %p = prefix %v store y[j] %p } store y[n] %t } }\n";

static void fill(f64 *x, u64 n, u64 seed) {
  for (u64 i = 0; i < n; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x[i] = ldexp((f64)(i64)seed, (int)(seed >> 33 & 15) - 70);
  }
}

static void fold_orders(void **state) {
  (void)state;
  static const u64 sizes[] = {0, 1, 2, 15, 16, 17, 31, 33, 64, 65, 255, 256, 257, 2047, 2048, 2049, 4096, 4097, 9000};
  LoopModule m;
  parsed(&m, fold_text);
  f64 *x = malloc(sizeof *x * 9000), *y = malloc(sizeof *y * 9001), *want = malloc(sizeof *want * 9000);
  fill(x, 9000, 7);
  for (u32 s = 0; s < COUNT_OF(sizes); s++) {
    u64 n = sizes[s], args[] = {ptr(x), ptr(y), n, n};
    assert_true(run_kernel(loop_module_find(&m, "lanes"), args, 0, 1) == LOOP_KEY_NONE);
    assert_true(w64(y[0]) == (n ? w64(lanes_of(x, n)) : 0));
    run_kernel(loop_module_find(&m, "rows"), args, 0, 1);
    assert_true(w64(y[0]) == (n ? w64(rows_of(x, n)) : 0));
    run_kernel(loop_module_find(&m, "sums"), args, 0, 1);
    scan_of(x, n, want);
    for (u64 e = 0; e < n; e++) assert_true(w64(y[e]) == w64(want[e]));
    assert_true(w64(y[n]) == (n ? w64(want[n - 1]) : 0));
    u64 both[] = {ptr(x), ptr(y), n / 9, 9};
    run_kernel(loop_module_find(&m, "two"), both, 0, 1);
    assert_true(w64(y[0]) == (n / 9 ? w64(lanes_of(x, n / 9 * 9)) : 0));
  }
  x[0] = x[1] = -0.0;
  u64 args[] = {ptr(x), ptr(y), 2};
  run_kernel(loop_module_find(&m, "lanes"), args, 0, 1);
  assert_true(w64(y[0]) == w64(-0.0)); /* -0 is the exact identity */
  free(x);
  free(y);
  free(want);
  loop_module_free(&m);
}

/* ---- checks -------------------------------------------------------------------------------- */

static void kernel_checks(void **state) {
  (void)state;
  LoopModule m;
  parsed(&m, loops_golden[1]);
  const LoopFn *k2 = loop_module_find(&m, "k2");
  f64 x[3] = {1, 2, 4}, y[3];
  i64 q[6] = {0, 2, 1, 1, 0, 0};
  u64 args[] = {ptr(x), ptr(q), ptr(y), 3, 2, 3};
  assert_true(run_kernel(k2, args, 0, 3) == LOOP_KEY_NONE);
  assert_true(y[0] == 5 && y[1] == 4 && y[2] == 2);
  q[3] = 3, q[4] = -1;
  assert_true(run_kernel(k2, args, 0, 3) == loop_key(0, 3)); /* the least element */
  assert_true(run_kernel(k2, args, 2, 3) == loop_key(0, 4));
  assert_true(run_kernel(k2, args, 1, 1) == LOOP_KEY_NONE);
  assert_true(y[0] == 5);
  loop_module_free(&m);
  parsed(&m, "kernel k (q: in i64, y: out i64, n: i64) { par i in 0..n {\n"
             "  %a = load q[i] i64  check zero_div %a #2  %b = div 100 %a\n"
             "  %w = while (%c: i64 = %b) { check index %c n #1  break %c }\n"
             "  %f = for j in 0..2 (%d: i64 = 0) { %g = add %d 1  check index %b n #3  next %g }\n"
             "  %s = add %w %f  store y[i] %s } }");
  i64 p[3] = {0, 100, 50}, z[3] = {9, 9, 9};
  u64 more[] = {ptr(p), ptr(z), 3};
  assert_true(run_kernel(m.fns.data[0], more, 0, 1) == loop_key(2, 0));
  assert_true(z[0] == 9);
  assert_true(run_kernel(m.fns.data[0], more, 0, 3) == loop_key(2, 0));
  assert_true(run_kernel(m.fns.data[0], more, 1, 3) == LOOP_KEY_NONE);
  assert_true(z[1] == 3 && z[2] == 4);
  p[2] = 25;
  assert_true(run_kernel(m.fns.data[0], more, 1, 3) == loop_key(1, 2));
  loop_module_free(&m);
}

typedef struct Frames {
  LoopCtx ctx;
  u64 words[16];
  u32 exits[64], count, polls;
  u64 values[64];
} Frames;

static void note_frame(LoopCtx *ctx, u64 tag, u32 exit, const u64 *values, u32 count) {
  Frames *f = (Frames *)(void *)ctx;
  (void)tag;
  assert_true(f->count < 64);
  f->exits[f->count] = exit;
  f->values[f->count++] = count ? values[0] : 0;
}

static u32 note_poll(LoopCtx *ctx) {
  Frames *f = (Frames *)(void *)ctx;
  ctx->budget = 10;
  return ++f->polls >= 3 || ctx->depth < 0;
}

static void natives(void **state) {
  (void)state;
  LoopModule m;
  parsed(&m, loops_golden[3]);
  Frames f = {.ctx = {.budget = 1000000, .depth = 100, .poll = note_poll, .frame = note_frame}};
  f.ctx.results = f.words;
  u32 exit = 9;
  u64 n = 15;
  assert_int_equal(loops_interp_native(m.fns.data[0], &f.ctx, &n, &exit, NULL, NULL), WEFT_OK);
  assert_int_equal(exit, 0);
  assert_true(f.words[0] == 610 && f.count == 0 && f.ctx.depth == 100);
  f.ctx.budget = 3; /* polled to death: frames innermost first */
  n = 15;
  assert_int_equal(loops_interp_native(m.fns.data[0], &f.ctx, &n, &exit, NULL, NULL), WEFT_OK);
  assert_int_equal(exit, 1);
  assert_true(f.count >= 2 && f.exits[0] == 1 && f.exits[f.count - 1] >= 2 && f.values[f.count - 1] == 15);
  f.count = f.polls = 0; /* too deep */
  f.ctx.depth = 5, f.ctx.budget = 1000000;
  assert_int_equal(loops_interp_native(m.fns.data[0], &f.ctx, &n, &exit, NULL, NULL), WEFT_OK);
  assert_int_equal(exit, 1);
  assert_int_equal(f.count, 7);
  loop_module_free(&m);

  parsed(&m, loops_golden[6]);
  u8 flags[1000];
  u64 args[] = {ptr(flags), 1000};
  assert_int_equal(loops_interp_native(m.fns.data[0], &f.ctx, args, &exit, NULL, NULL), WEFT_OK);
  assert_true(exit == 0 && f.words[0] == 168);
  u64 steps = 100;
  assert_int_equal(loops_interp_native(m.fns.data[0], &f.ctx, args, &exit, &steps, NULL), WEFT_ERROR);
  loop_module_free(&m);
}

static void math_functions(void **state) {
  (void)state;
  LoopModule m;
  parsed(&m, loops_math_text);
  u64 x = w64(-1.25), r;
  assert_int_equal(loops_interp_math(loop_module_find_math(&m, "stair", LT_F64), &x, &r, NULL, NULL), WEFT_OK);
  assert_true(f64_of(r) == -1.25 * 1.5);
  x = w64(2);
  assert_int_equal(loops_interp_math(loop_module_find_math(&m, "cube", LT_F64), &x, &r, NULL, NULL), WEFT_OK);
  assert_true(f64_of(r) == 24);
  u64 two[] = {w32(3), w32(4)};
  assert_int_equal(loops_interp_math(loop_module_find_math(&m, "hypot", LT_F32), two, &r, NULL, NULL), WEFT_OK);
  assert_true(r == w32(5));
  assert_null(loop_module_find_math(&m, "hypot", LT_F64));
  loop_module_free(&m);
}

/* ---- refused memory ------------------------------------------------------------------------ */

static void refused_memory(void **state) {
  (void)state;
  f64 x[4] = {1, 2, 3, 4}, y[4];
  i64 q[4] = {0, 1, 2, 3};
  bool done = false;
  for (u64 n = 0; !done; n++) {
    TestMemory f = test_memory((i64)n);
    LoopModule m;
    Buf out;
    if (loop_module_init(&m, &f.base) != WEFT_OK) {
      assert_true(f.held == 0);
      continue;
    }
    buf_init(&out, &f.base);
    if (loops_parse(&m, loops_golden[1], strlen(loops_golden[1]), NULL) == WEFT_OK) {
      loops_print_module(&m, &out);
      u64 args[] = {ptr(x), ptr(q), ptr(y), 2, 2, 4}, key;
      WeftStatus s = loops_interp_kernel(m.fns.data[0], args, 0, 2, &key, NULL, NULL);
      if (s == WEFT_OK) assert_true(key == LOOP_KEY_NONE && y[1] == 7);
      Buf c;
      buf_init(&c, &f.base);
      WeftStatus t = loops_c(m.fns.data[0], NULL, "", &c);
      buf_free(&c);
      done = s == WEFT_OK && t == WEFT_OK && !out.failed;
      if (done) assert_string_equal(buf_text(&out), loops_golden[1]);
    } else {
      assert_int_equal(m.fns.count, 0);
    }
    buf_free(&out);
    loop_module_free(&m);
    assert_true(f.held == 0);
    assert_true(n < 10000);
  }
}

/* ---- C text against the interpreter -------------------------------------------------------- */

static const char c_text[] =
    "kernel ints (a: in i32, b: in i32, y: out i64, n: i64) { par i in 0..n {\n"
    "  %a = load a[i] i32 %b = load b[i] i32 %1 = div %a %b %2 = mod %a %b %3 = floordiv %a %b %4 = rem %a %b %5 = "
    "shl %a %b %6 = shr %a %b\n"
    "  %7 = mulhi %a %b %8 = min %a %b %9 = xor %7 %8 %10 = add %1 %2 %11 = sub %3 %4 %12 = or "
    "%5 %6 %13 = and %9 %10 %14 = mul %11 %12\n"
    "  %15 = abs %14 %16 = neg %13 %17 = not %16 %18 = add %15 %17 %19 = convert i64 %18 store y[i] %19 } }\n"
    "kernel floats (x: in f64, h: inout f16, y: out f64, n: i64) { par i in 0..n {\n"
    "  %x = load x[i] f64 %h = load h[i] f16 %h2 = convert f64 %h %1 = min %x %h2 %2 = max %1 0.5 %3 = floor "
    "%2 %4 = rint %x %5 = copysign %3 %x\n"
    "  %6 = fma %5 %4 %h2 %7 = convert i32 %6 %8 = convert f64 %7 %9 = lt %x %h2 %10 = select %9 %8 %6 store y[i] %10\n"
    "  %11 = convert f32 %10 store h[i] %11 } }\n";

static void c_agrees(void **state) {
  (void)state;
  enum { N = 400 };
  char dir[] = "/tmp/weft-loops-XXXXXX", path[64], command[256];
  LoopModule m;
  parsed(&m, fold_text);
  Buf why, c;
  buf_init(&why, m.alloc);
  buf_init(&c, m.alloc);
  const char *texts[] = {c_text, loops_math_text, loops_golden[1], loops_golden[2], loops_golden[3], loops_golden[4],
                         loops_golden[5], loops_golden[6]};
  for (u32 i = 0; i < COUNT_OF(texts); i++)
    if (loops_parse(&m, texts[i], strlen(texts[i]), &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
  loops_c_prelude(&c);
  loops_c_tables(&m, &c);
  for (u32 i = 0; i < m.fns.count; i++) assert_int_equal(loops_c(m.fns.data[i], NULL, "", &c), WEFT_OK);
  assert_non_null(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/k.c", dir);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(buf_text(&c), file);
  fclose(file);
  snprintf(command, sizeof command, "cd %s && cc -std=gnu11 -O1 -Wall -Wextra -Wconversion -Wno-sign-conversion "
                                    "-Werror -ffp-contract=off -fno-math-errno -shared -fPIC k.c -o k.so -lm", dir);
  assert_int_equal(system(command), 0);
  snprintf(path, sizeof path, "%s/k.so", dir);
  void *lib = dlopen(path, RTLD_NOW);
  assert_non_null(lib);

  i32 a[N], b[N];
  i64 y1[N], y2[N];
  f64 x[9001], d1[9002], d2[9002];
  u16 h1[N], h2[N];
  fill(x, 9001, 3);
  static const i32 edge[] = {0, 1, -1, INT32_MIN, INT32_MAX, 2, -7, 31, 32, 100};
  for (u32 i = 0; i < N; i++) {
    a[i] = i < 100 ? edge[i % 10] : (i32)(x[i] * 1e6);
    b[i] = i < 100 ? edge[i / 10] : (i32)(x[i + N]);
    h1[i] = h2[i] = (u16)(i * 167);
  }
  u64 key, args1[] = {ptr(a), ptr(b), ptr(y1), N}, args2[] = {ptr(a), ptr(b), ptr(y2), N};
  LoopKernelFn k;
  *(void **)&k = dlsym(lib, "lw_ints");
  assert_true(run_kernel(loop_module_find(&m, "ints"), args1, 0, N) == k(args2, 0, N));
  assert_memory_equal(y1, y2, sizeof y1);
  u64 args3[] = {ptr(x), ptr(h1), ptr(d1), N}, args4[] = {ptr(x), ptr(h2), ptr(d2), N};
  *(void **)&k = dlsym(lib, "lw_floats");
  assert_true(run_kernel(loop_module_find(&m, "floats"), args3, 0, N) == k(args4, 0, N));
  assert_memory_equal(h1, h2, sizeof h1);
  for (u32 i = 0; i < N; i++) assert_true(isnan(d1[i]) ? isnan(d2[i]) : w64(d1[i]) == w64(d2[i]));
  static const char *const folds[] = {"lanes", "rows", "sums"};
  for (u64 n = 0; n < 9000; n = n * 2 + 5)
    for (u32 i = 0; i < COUNT_OF(folds); i++) {
      u64 one[] = {ptr(x), ptr(d1), n}, two[] = {ptr(x), ptr(d2), n};
      char name[32];
      snprintf(name, sizeof name, "lw_%s", folds[i]);
      *(void **)&k = dlsym(lib, name);
      assert_true(run_kernel(loop_module_find(&m, folds[i]), one, 0, 1) == k(two, 0, 1));
      assert_memory_equal(d1, d2, sizeof(f64) * (i == 2 ? n + 1 : 1));
    }
  i64 q[6] = {0, 2, 1, 3, -1, 0};
  u64 args[] = {ptr(x), ptr(q), ptr(d1), 3, 2, 3};
  *(void **)&k = dlsym(lib, "lw_k2");
  key = k(args, 0, 3);
  assert_true(key == loop_key(0, 3));
  f64 (*cube)(f64);
  *(void **)&cube = dlsym(lib, "wm_cube_f64");
  assert_true(cube(2) == 24);
  Frames f = {.ctx = {.budget = 1000000, .depth = 100, .poll = note_poll, .frame = note_frame}};
  f.ctx.results = f.words;
  u32 (*fib)(LoopCtx *, i64);
  *(void **)&fib = dlsym(lib, "lw_fib");
  assert_true(fib(&f.ctx, 15) == 0 && f.words[0] == 610);
  f.ctx.depth = 5;
  assert_true(fib(&f.ctx, 15) == 1 && f.count == 7 && f.values[6] == 15);
  u8 flags[1000];
  u32 (*sieve)(LoopCtx *, u8 *, i64);
  *(void **)&sieve = dlsym(lib, "lw_sieve");
  assert_true(sieve(&f.ctx, flags, 1000) == 0 && f.words[0] == 168);
  dlclose(lib);
  unlink(path);
  snprintf(path, sizeof path, "%s/k.c", dir);
  unlink(path);
  rmdir(dir);
  buf_free(&why);
  buf_free(&c);
  loop_module_free(&m);
}

/* ---- checks before loops ---------------------------------------------------------------------- */

#define UP(CONDITION, BODY, STEP) \
  "native w (x: inout i64, n: i64, m: i64, s: i64) -> (i64) {\n  %r = while (%j: i64 = s) {\n    poll #1 (%j)\n" \
  CONDITION "    if %c {\n" BODY STEP "    }\n" \
  "    break %j\n  }\n  return %r\n}\n"
#define NEXT(STEP) "      %k = " STEP "\n      next %k\n"
#define CHECK "      check index %j n #2 (%j)\n      store x[%j] 0\n"
#define MOVED(CONDITION, CHECKS, BODY, STEP) \
  "native w (x: inout i64, n: i64, m: i64, s: i64) -> (i64) {\n" CHECKS \
  "  %r = while (%j: i64 = s) {\n    poll #1 (%j)\n" CONDITION "    if %c {\n" BODY STEP \
  "    }\n    break %j\n  }\n  return %r\n}\n"

#define GROWS "    %d = mul 2 %j\n    %e = add %d 1\n    %c = lt %e m\n"
#define GROWN \
  "  %p = mul 2 s\n  %q = add %p 1\n  %b = lt %q m\n  if %b {\n" \
  "    check index s 281474976710656 #1 (s)\n    %u = add m -1\n    check index %u 281474976710656 #1 (s)\n" \
  "    %v = add m -1\n    check index %v n #1 (s)\n  }\n"
#define CHILD(CONDITION) \
  "      %f = add %e 1\n      %g = " CONDITION "\n      %a = if %g -> (i1) {\n" \
  "        %v = load x[%f] i64\n        %w = gt %v 5\n        yield %w\n      } else {\n" \
  "        yield %g\n      }\n      %h = if %a -> (i64) {\n        yield %f\n      } else {\n" \
  "        yield %e\n      }\n"
#define FROM_END(OTHER) "      %z = lt %e 0\n      %y = add %e n\n      %i = select %z " OTHER " %e\n"

static void checks_before_loops(void **state) {
  (void)state;
  static const struct Row {
    const char *what, *text, *wanted; /* NULL: nothing is moved */
  } rows[] = {
      {"counts to the size", UP("    %c = lt %j n\n", CHECK, NEXT("add %j 3")),
       MOVED("    %c = lt %j n\n", "  %b = lt s n\n  if %b {\n    check index s n #1 (s)\n  }\n",
             "      store x[%j] 0\n", NEXT("add %j 3"))},
      {"counts to something else", UP("    %c = lt %j m\n", CHECK, NEXT("add %j 3")),
       MOVED("    %c = lt %j m\n", "  %b = lt s m\n  if %b {\n    check index s n #1 (s)\n    %d = add m -1\n"
                                   "    check index %d n #1 (s)\n  }\n", "      store x[%j] 0\n", NEXT("add %j 3"))},
      {"and may reach it", UP("    %c = ge n %j\n", CHECK, NEXT("add %j 3")),
       MOVED("    %c = ge n %j\n", "  %b = ge n s\n  if %b {\n    check index s n #1 (s)\n    check index n n #1 (s)\n"
                                   "  }\n", "      store x[%j] 0\n", NEXT("add %j 3"))},
      {"by a number that may be negative", UP("    %c = lt %j n\n", CHECK, NEXT("add %j m")),
       MOVED("    %c = lt %j n\n", "  %b = lt s n\n  if %b {\n    check index s n #1 (s)\n"
                                   "    check index m 4611686018427387904 #1 (s)\n  }\n", "      store x[%j] 0\n",
             NEXT("add %j m"))},
      {"down to 0", UP("    %c = ge %j 0\n", CHECK, NEXT("sub %j 1")),
       MOVED("    %c = ge %j 0\n", "  %b = ge s 0\n  if %b {\n    check index s n #1 (s)\n  }\n",
             "      store x[%j] 0\n", NEXT("sub %j 1"))},
      {"down to 1, the one before",
       UP("    %c = gt %j 0\n", "      %i = sub %j 1\n      check index %i n #2 (%j)\n", NEXT("sub %j 1")),
       MOVED("    %c = gt %j 0\n", "  %b = gt s 0\n  if %b {\n    %d = add s -1\n    check index %d n #1 (s)\n  }\n",
             "      %i = sub %j 1\n", NEXT("sub %j 1"))},
      {"two conditions", UP("    %e = ne m 3\n    %f = lt %j n\n    %c = and %e %f\n", CHECK, NEXT("add %j 1")),
       MOVED("    %e = ne m 3\n    %f = lt %j n\n    %c = and %e %f\n",
             "  %g = ne m 3\n  %h = lt s n\n  %b = and %g %h\n  if %b {\n    check index s n #1 (s)\n  }\n",
             "      store x[%j] 0\n", NEXT("add %j 1"))},
      {"the same in each trip", UP("    %c = ne %j 9\n", "      check index m n #2 (%j)\n", NEXT("add %j 1")),
       MOVED("    %c = ne %j 9\n", "  %b = ne s 9\n  if %b {\n    check index m n #1 (s)\n  }\n", "",
             NEXT("add %j 1"))},
      {"a way out, to the size",
       UP("    %c = lt %j n\n", CHECK "      %v = load x[%j] i64\n      %o = eq %v m\n      if %o {\n        break %j\n"
                                "      }\n", NEXT("add %j 1")),
       MOVED("    %c = lt %j n\n", "  %b = lt s n\n  if %b {\n    check index s n #1 (s)\n  }\n",
             "      store x[%j] 0\n      %v = load x[%j] i64\n      %o = eq %v m\n      if %o {\n        break %j\n"
             "      }\n", NEXT("add %j 1"))},
      {"a way out, to something else",
       UP("    %c = lt %j m\n", CHECK "      %v = load x[%j] i64\n      %o = eq %v m\n      if %o {\n        break %j\n"
                                "      }\n", NEXT("add %j 1")), NULL},
      {"behind a way out", UP("    %c = lt %j n\n", "      %o = eq %j m\n      if %o {\n        break %j\n"
                                                    "      }\n" CHECK, NEXT("add %j 1")), NULL},
      {"in some trips", UP("    %c = lt %j n\n", "      %o = eq %j m\n      if %o {\n        check index %j n #2 (%j)\n"
                                                 "      }\n", NEXT("add %j 1")), NULL},
      {"counts the other way", UP("    %c = lt %j n\n", CHECK, NEXT("sub %j 1")), NULL},
      {"does not count", UP("    %c = lt %j n\n", CHECK, NEXT("mul %j 2")), NULL},
      {"one of two steps does not",
       UP("    %c = lt %j n\n", CHECK "      %o = eq %j m\n      if %o {\n        %p = mul %j 5\n        next %p\n"
                                "      }\n", NEXT("add %j 1")), NULL},
      {"another sign", UP("    %c = ne %j n\n", CHECK, NEXT("add %j 1")), NULL},
      {"the loop goes on where the first condition does not hold",
       "native w (x: inout i64, n: i64, m: i64, s: i64) -> (i64) {\n"
       "  %r = while (%j: i64 = s) {\n    poll #1 (%j)\n    %c = gt %j 0\n    %o = if %c -> (i1) {\n"
       "      check index m n #2 (%j)\n      %v = load x[0] i64\n      %w = gt %v 5\n      yield %w\n    } else {\n"
       "      yield true\n    }\n    if %o {\n" NEXT("add %j 1") "    }\n    break %j\n  }\n  return %r\n}\n", NULL},
      {"and does not",
       "native w (x: inout i64, n: i64, m: i64, s: i64) -> (i64) {\n"
       "  %r = while (%j: i64 = s) {\n    poll #1 (%j)\n    %c = gt %j 0\n    %o = if %c -> (i1) {\n"
       "      check index m n #2 (%j)\n      %v = load x[0] i64\n      %w = gt %v 5\n      yield %w\n    } else {\n"
       "      yield false\n    }\n    if %o {\n" NEXT("add %j 1") "    }\n    break %j\n  }\n  return %r\n}\n",
       "native w (x: inout i64, n: i64, m: i64, s: i64) -> (i64) {\n  %b = gt s 0\n  if %b {\n    check index m "
       "n #1 (s)\n  }\n  %r = while (%j: i64 = s) {\n    poll #1 (%j)\n    %c = gt %j 0\n    %o = if %c -> (i1) {\n"
       "      %v = load x[0] i64\n      %w = gt %v 5\n      yield %w\n    } else {\n      yield false\n    }\n"
       "    if %o {\n" NEXT("add %j 1") "    }\n    break %j\n  }\n  return %r\n}\n"},
      {"the other arm goes on itself",
       "native w (x: inout i64, n: i64, m: i64, s: i64) -> (i64) {\n  %r = while (%j: i64 = s) {\n    poll #1 (%j)\n"
       "    %c = gt %j 0\n    if %c {\n      check index m n #2 (%j)\n      store x[%j] 0\n    } else {\n"
       NEXT("add %j 1") "    }\n    break %j\n  }\n  return %r\n}\n", NULL},
      {"a limit that wraps",
       UP("    %l = add n 9223372036854775797\n    %c = lt %j %l\n",
          "      %i = add %j 12\n      check index %i n #2 (%j)\n      %v = load x[%j] i64\n      %o = eq %v m\n"
          "      if %o {\n        break %j\n      }\n", NEXT("add %j 1")), NULL},
      {"a product of it",
       UP("    %c = lt %j n\n", "      %i = mul %j 2\n      check index %i n #2 (%j)\n", NEXT("add %j 1")), NULL},
      {"grows as heaps do", UP(GROWS, "      check index %e n #2 (%j)\n      store x[%e] 0\n", "      next %e\n"),
       MOVED(GROWS, GROWN, "      store x[%e] 0\n", "      next %e\n")},
      {"to one of two, where both are below", UP(GROWS, CHILD("lt %f m") "      check index %j n #2 (%j)\n"
                                                        "      check index %h n #2 (%j)\n", "      next %h\n"),
       MOVED(GROWS, GROWN, CHILD("lt %f m"), "      next %h\n")},
      {"and from the end",
       UP(GROWS, FROM_END("%y") "      check index %i n #2 (%j)\n      store x[%i] 0\n", "      next %e\n"),
       MOVED(GROWS, GROWN, FROM_END("%e") "      store x[%i] 0\n", "      next %e\n")},
      {"to one of two that may be the limit",
       UP(GROWS, CHILD("lt %e m") "      check index %j n #2 (%j)\n", "      next %h\n"), NULL},
      {"to one of two below another limit",
       UP(GROWS, CHILD("lt %f n") "      check index %j n #2 (%j)\n", "      next %h\n"), NULL},
      {"to one of two where the other is below",
       UP(GROWS, CHILD("ge %f m") "      check index %j n #2 (%j)\n", "      next %h\n"), NULL},
      {"to one of two, and one is not below",
       UP(GROWS, "      %f = add %e 7\n      %o = eq %j n\n      %h = if %o -> (i64) {\n        yield %e\n"
                 "      } else {\n        yield %f\n      }\n      check index %j n #2 (%j)\n", "      next %h\n"),
       NULL},
      {"to one of two, chosen where the first condition does not hold",
       UP(GROWS, "      %f = add %e 1\n      %g = lt %f m\n      %a = if %g -> (i1) {\n        %v = load x[%f] i64\n"
                 "        %w = gt %v 5\n        yield %w\n      } else {\n        yield true\n      }\n"
                 "      %h = if %a -> (i64) {\n        yield %f\n      } else {\n        yield %e\n      }\n"
                 "      check index %j n #2 (%j)\n", "      next %h\n"), NULL},
      {"where the loop ends, nothing is known",
       "native w (x: inout i64, n: i64, m: i64, s: i64) -> (i64) {\n  %r = while (%j: i64 = s) {\n    poll #1 (%j)\n"
       GROWS "    if %c {\n      next %e\n    } else {\n      %k = lt %j m\n"
       "      if %k {\n        check index %j n #2 (%j)\n      }\n    }\n    break %j\n  }\n  return %r\n}\n", NULL},
      {"grows past the limit",
       UP(GROWS, "      check index %e n #2 (%j)\n      %f = add %e 1\n", "      next %f\n"), NULL},
      {"what is looked at is past the limit",
       UP(GROWS, "      %f = add %e 1\n      check index %f n #2 (%j)\n", "      next %e\n"), NULL},
      {"one way on is not below",
       UP(GROWS, "      check index %e n #2 (%j)\n      %o = eq %e 9\n      if %o {\n        %f = sub %j 4\n"
                 "        next %f\n      }\n", "      next %e\n"), NULL},
      {"grows by what is not known",
       UP("    %d = mul %j m\n    %c = lt %d n\n", "      check index %d n #2 (%j)\n", "      next %d\n"), NULL},
      {"grows below what the loop changes", UP("    %l = load x[0] i64\n    %d = mul %j 2\n    %c = lt %d %l\n",
                                               "      check index %d n #2 (%j)\n", "      next %d\n"), NULL},
      {"shrinks",
       UP("    %d = mul %j -2\n    %c = lt %d m\n", "      check index %d n #2 (%j)\n", "      next %d\n"), NULL},
  };
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    const struct Row *r = &rows[i];
    LoopModule m, w;
    Compiler c = {.alloc = allocator_system()};
    Buf got, wanted, why;
    parsed(&m, r->text);
    parsed(&w, r->wanted ? r->wanted : r->text);
    buf_init(&got, m.alloc), buf_init(&wanted, m.alloc), buf_init(&why, m.alloc);
    arena_init(&c.arena, c.alloc);
    Native n = {.c = &c, .fn = m.fns.data[0]};
    assert_true(native_hoist(&n));
    if (loops_verify(n.fn, &why) != WEFT_OK) fail_msg("%s: %s", r->what, buf_text(&why));
    loops_print(n.fn, &got), loops_print(w.fns.data[0], &wanted);
    if (strcmp(buf_text(&got), buf_text(&wanted)) != 0)
      fail_msg("%s:\n%s\nnot\n%s", r->what, buf_text(&got), buf_text(&wanted));
    arena_free(&c.arena);
    buf_free(&got), buf_free(&wanted), buf_free(&why);
    loop_module_free(&m), loop_module_free(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(round_trips),    cmocka_unit_test(print_is_stable), cmocka_unit_test(parse_errors),
    cmocka_unit_test(verifier_sees_misbuilt), cmocka_unit_test(operations), cmocka_unit_test(fold_orders),
    cmocka_unit_test(kernel_checks),  cmocka_unit_test(natives),         cmocka_unit_test(math_functions),
    cmocka_unit_test(refused_memory), cmocka_unit_test(c_agrees),
    cmocka_unit_test(checks_before_loops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
