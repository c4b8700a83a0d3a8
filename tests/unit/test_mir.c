/* test_mir.c — the MIR emitter against the reference interpreter: kernels and native functions, written and random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft_mir_abi.h>

#include "jit/loops/loops.h"
#include "jit/scalar/mir_emit.h"
#include "tests/unit/loops_random.h"
#include "tests/unit/loops_texts.h"
#include "tests/unit/memory.h"

static u64 w64(f64 v) {
  u64 b;
  memcpy(&b, &v, 8);
  return b;
}
static u64 ptr(const void *p) { return (u64)(uintptr_t)p; }

static f64 twice(f64 x) { return x * 2; }
static f32 twice32(f32 x) { return x * 2; }
static f64 hypotenuse(f64 x, f64 y) { return sqrt(x * x + y * y); }
static const LoopMath test_math[] = {
  {"exp", "wm_exp_f64", LT_F64, 1, (void (*)(void))twice, NULL},
  {"exp", "wm_exp_f32", LT_F32, 1, (void (*)(void))twice32, NULL},
  {"hypot", "wm_hypot_f64", LT_F64, 2, (void (*)(void))hypotenuse, NULL},
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

static MirCode *compiled(MirPool *pool, const LoopFn *const *fns, u32 count) {
  MirCode *code = NULL;
  Buf why;
  buf_init(&why, allocator_system());
  if (mir_compile(pool, fns, count, &code, &why) != WEFT_OK) fail_msg("not compiled: %s", buf_text(&why));
  buf_free(&why);
  return code;
}

static MirCode *compiled_all(MirPool *pool, LoopModule *m) {
  return compiled(pool, (const LoopFn *const *)m->fns.data, m->fns.count);
}

/* Calls a native with up to 18 words by the convention of RANDOM functions is done by its own type; small ones here. */
typedef struct Frames {
  LoopCtx ctx;
  u64 words[16];
  u32 count, polls, polls_allowed;
  struct {
    u64 tag, values[8];
    u32 exit, count;
  } frame[64];
} Frames;

static void note_frame(LoopCtx *ctx, u64 tag, u32 exit, const u64 *values, u32 count) {
  Frames *f = (Frames *)(void *)ctx;
  assert_true(f->count < 64 && count <= 8);
  f->frame[f->count].tag = tag;
  f->frame[f->count].exit = exit;
  f->frame[f->count].count = count;
  if (count) memcpy(f->frame[f->count].values, values, sizeof *values * count);
  f->count++;
}

static u32 note_poll(LoopCtx *ctx) {
  Frames *f = (Frames *)(void *)ctx;
  ctx->budget = 3;
  return ++f->polls > f->polls_allowed || ctx->depth < 0;
}

static void frames_init(Frames *f, i64 budget, u32 polls_allowed) {
  memset(f, 0, sizeof *f);
  f->ctx = (LoopCtx){.results = f->words, .budget = budget, .depth = 50, .poll = note_poll, .frame = note_frame};
  f->polls_allowed = polls_allowed;
}

/* ---- written functions --------------------------------------------------------------------- */

static const char folds_text[] =
    "kernel lanes (x: in f64, y: out f64, n: i64, s: f64) { par i in 0..1 {\n"
    "  %r = reduce add f64 j in 0..n { %v = load x[j] f64 %w = mul %v s yield %w } store y[0] %r } }\n"
    "kernel products (x: in f64, y: out f64, n: i64, s: f64) { par i in 0..1 {\n"
    "  %r = reduce mul f64 j in 0..n { %v = load x[j] f64 yield %v } store y[0] %r } }\n"
    "kernel rows (x: in f64, y: out f64, n: i64, s: f64) { par i in 0..1 {\n"
    "  %r = reduce add f64 rows j in 0..n { %v = load x[j] f64 %w = mul %v s yield %w } store y[0] %r } }\n"
    "kernel sums (x: in f64, y: out f64, n: i64, s: f64) { par i in 0..1 {\n"
    "  %t = scan add f64 j in 0..n { %v = load x[j] f64 %w = mul %v s %p = prefix %w store y[j] %p } store y[n] "
    "%t } }\n"
    "kernel most (x: in f64, y: out f64, n: i64, s: f64) { par i in 0..1 {\n"
    "  %a = reduce max f64 j in 0..n { %v = load x[j] f64 yield %v }\n"
    "  %b = reduce min f64 k in 0..n { %w = load x[k] f64 yield %w } store y[0] %a store y[1] %b } }\n"
    "kernel two (x: in f64, y: out f64, n: i64, s: f64) { par i in 0..1 {\n"
    "  %r = reduce add f64 a in 0..3, b in 0..n { %v = load x[3*b + a] f64 %w = mul %v s yield %w } store y[0] %r } }\n"
    "kernel narrow (x: in f32, y: out f32, n: i64, s: f32) { par i in 0..1 {\n"
    "  %r = reduce add f32 j in 0..n { %v = load x[j] f32 %w = mul %v s yield %w }\n"
    "  %q = reduce add f32 rows k in 0..n { %u = load x[k] f32 yield %u }\n"
    "  %t = scan add f32 l in 0..n { %a = load x[l] f32 %p = prefix %a store y[l] %p } store y[n] %r store y[n + 1] "
    "%q store y[n + 2] %t } }\n"
    "kernel ints (x: in i32, y: out i64, n: i64, s: i64) { par i in 0..1 {\n"
    "  %r = reduce add i64 j in 0..n { %v = load x[j] i32 %w = convert i64 %v yield %w }\n"
    "  %q = scan add i32 k in 0..n { %u = load x[k] i32 %p = prefix %u %c = convert i64 %p store y[k] %c } store "
    "y[n] %r } }\n";

static void folds(void **state) {
  (void)state;
  enum { MOST = 300000 };
  static const i64 sizes[] = {0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 127, 129, 255, 256, 257,
                              1000, 2047, 2048, 2049, 4095, 4096, 4097, 6000, 8192, 70000, 99999};
  LoopModule m;
  parsed(&m, folds_text);
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  MirCode *code = compiled_all(pool, &m);
  f64 *x = malloc(8 * (MOST + 4)), *y1 = malloc(8 * (MOST + 4)), *y2 = malloc(8 * (MOST + 4)), s = 1.1;
  f32 s32 = 1.1f;
  u64 seed = 5;
  for (u32 f = 0; f < m.fns.count; f++) {
    const LoopFn *fn = m.fns.data[f];
    LoopType t = (LoopType)loop_node(fn, fn->params.data[0])->mem;
    for (u32 i = 0; i < MOST; i++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      f64 v = 1 + (f64)(i64)seed * 0x1p-70;
      f32 v32 = (f32)v;
      if (t == LT_F64) x[i] = v;
      else if (t == LT_F32) memcpy((f32 *)(void *)x + i, &v32, 4);
      else ((i32 *)(void *)x)[i] = (i32)(seed >> 33);
    }
    for (u32 k = 0; k < COUNT_OF(sizes); k++) {
      u64 scale = 0, key;
      if (t == LT_F64) scale = w64(s);
      else memcpy(&scale, &s32, 4);
      i64 n = sizes[k];
      u64 a[] = {ptr(x), ptr(y1), (u64)n, scale}, b[] = {ptr(x), ptr(y2), (u64)n, scale};
      memset(y1, 0, 8 * (MOST + 4));
      memset(y2, 0, 8 * (MOST + 4));
      assert_int_equal(loops_interp_kernel(fn, a, 0, 1, &key, NULL, NULL), WEFT_OK);
      assert_true(mir_code_kernel(code, f)(b, 0, 1) == key);
      if (memcmp(y1, y2, 8 * (MOST + 4)) != 0) fail_msg("%s of %d elements", name_text(&m.names, fn->name), (int)n);
    }
  }
  mir_code_free(code);
  mir_pool_free(pool);
  free(x);
  free(y1);
  free(y2);
  loop_module_free(&m);
}

static void kernels(void **state) {
  (void)state;
  LoopModule m;
  parsed(&m, loops_golden[1]);
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  MirCode *code = compiled_all(pool, &m);
  f64 x[3] = {1, 2, 4}, y[3];
  i64 q[6] = {0, 2, 1, 1, 0, 0};
  u64 args[] = {ptr(x), ptr(q), ptr(y), 3, 2, 3};
  LoopKernelFn k = mir_code_kernel(code, 0);
  assert_true(k(args, 0, 3) == LOOP_KEY_NONE);
  assert_true(y[0] == 5 && y[1] == 4 && y[2] == 2);
  q[3] = 3, q[4] = -1;
  assert_true(k(args, 0, 3) == loop_key(0, 3));
  assert_true(k(args, 2, 3) == loop_key(0, 4));
  assert_true(k(args, 3, 3) == LOOP_KEY_NONE);
  Buf text;
  buf_init(&text, m.alloc);
  mir_print(pool, (const LoopFn *const *)m.fns.data, m.fns.count, 0, &text);
  assert_non_null(strstr(buf_text(&text), "func"));
  assert_non_null(strstr(buf_text(&text), "endfunc"));
  buf_free(&text);
  mir_code_free(code);
  loop_module_free(&m);

  parsed(&m, loops_golden[0]); /* math through its C function; strides */
  code = compiled_all(pool, &m);
  f64 in[8] = {0, 1, 2, 3, 4, 5, 6, 7}, out[4];
  u64 more[] = {ptr(in), ptr(out), 4, 2, w64(10)};
  assert_true(mir_code_kernel(code, 0)(more, 0, 4) == LOOP_KEY_NONE);
  assert_true(out[0] == 0 && out[1] == 40 && out[3] == 120);
  mir_code_free(code);
  loop_module_free(&m);
  mir_pool_free(pool);
}

/* A counted loop that pays for its polls many trips at a time: whatever there is in the budget, it asks at the trip
 * that would ask if each paid for itself, its state is that of this trip's start, and what is not used comes back. */
static void polls_of_counted_loops(void **state) {
  LoopModule m;
  Frames f;
  u32 (*sum)(LoopCtx *, i64, i64);
  bool plain = *state != NULL;
  parsed(&m, "native sum (n: i64, m: i64) -> (i64) {\n"
             "  %r = for i in 0..n (%a: i64 = 0) { %k = add i 1 poll #1 (%a, %k) check index i m #2 (%a, "
             "%k) %b = add %a %k next %b } return %r }\n");
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  mir_pool_plain(pool, plain);
  MirCode *code = compiled_all(pool, &m);
  *(void **)&sum = mir_code_native(code, 0);
  for (i64 n = 0; n < 12; n++)
    for (i64 budget = 0; budget < 14; budget++)
      for (u32 allowed = 0; allowed < 4; allowed++)
        for (i64 most = 0; most < 13; most += 3) {
          frames_init(&f, budget, allowed);
          u32 exit = sum(&f.ctx, n, most);
          u64 trips = exit ? f.frame[0].values[1] - 1 : (u64)n, all = f.polls > allowed ? f.polls - 1 : f.polls;
          i64 paid = budget + (i64)(4 * all); /* a poll lets its trip through and grants three more */
          assert_true(exit ? f.count == 1 && f.frame[0].exit == exit && f.frame[0].values[0] == trips * (trips + 1) / 2
                           : f.words[0] == trips * (trips + 1) / 2);
          assert_true(exit == 1 ? f.polls == allowed + 1 && (i64)trips == paid && f.ctx.budget == 3
                                : f.polls <= allowed);
          if (exit != 1)
            assert_true(trips == (u64)(exit ? most : n) && f.ctx.budget == paid - (i64)trips - (exit == 2));
        }
  mir_code_free(code);
  loop_module_free(&m);
  mir_pool_free(pool);
}

static void natives(void **state) {
  (void)state;
  LoopModule m;
  Frames f;
  parsed(&m, loops_golden[3]);
  m.fns.data[0]->tag = 77;
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  MirCode *code = compiled_all(pool, &m);
  u32 (*fib)(LoopCtx *, i64);
  *(void **)&fib = mir_code_native(code, 0);
  frames_init(&f, 1000000, 0);
  assert_int_equal(fib(&f.ctx, 20), 0);
  assert_true(f.words[0] == 6765 && f.count == 0 && f.ctx.depth == 50 && f.ctx.budget < 1000000);
  frames_init(&f, 10, 0); /* polled to death: frames innermost first */
  assert_int_equal(fib(&f.ctx, 20), 1);
  assert_true(f.count > 2 && f.frame[0].exit == 1 && f.frame[f.count - 1].exit >= 2 &&
              f.frame[f.count - 1].values[0] == 20 && f.frame[0].tag == 77);
  frames_init(&f, 1000000, 0); /* too deep */
  f.ctx.depth = 5;
  assert_int_equal(fib(&f.ctx, 20), 1);
  assert_int_equal(f.count, 7);
  mir_code_free(code);
  loop_module_free(&m);

  parsed(&m, loops_golden[6]);
  code = compiled_all(pool, &m);
  u8 flags[1000];
  u32 (*sieve)(LoopCtx *, u8 *, i64);
  *(void **)&sieve = mir_code_native(code, 0);
  frames_init(&f, 1000000, 0);
  assert_int_equal(sieve(&f.ctx, flags, 1000), 0);
  assert_true(f.words[0] == 168);
  mir_code_free(code);
  loop_module_free(&m);

  parsed(&m, "kernel half (x: in f64, y: out f64, n: i64) { par i in 0..n { %v = load x[i] f64 "
             "check assert true #0 %c = lt %v 0.0 check zero_div i #1 %r = mul %v 0.5 store y[i] %r } }\n"
             "native twice (x: in f64, y: inout f64, n: i64, a: f32, b: i1) -> (f32, i1, f64) {\n"
             "  call half (x, y, n, 1, n) #5 (n, a)\n"
             "  call half (x, y, n, 0, n) #6 (n, a, b)\n"
             "  %c = not b  %d = load y[1] f64 return a %c %d }\n");
  code = compiled_all(pool, &m);
  u32 (*call)(LoopCtx *, const f64 *, f64 *, i64, f32, u8);
  *(void **)&call = mir_code_native(code, 1);
  f64 x[3] = {1, 2, 3}, y[3] = {0, 0, 0};
  frames_init(&f, 100, 0);
  assert_int_equal(call(&f.ctx, x, y, 3, 1.5f, 1), 6);
  assert_true(y[0] == 0 && y[2] == 1.5 && f.count == 1 && f.frame[0].exit == 6 && f.frame[0].count == 3);
  assert_true(f.frame[0].values[0] == 3 && f.frame[0].values[1] == 0x3FC00000 && f.frame[0].values[2] == 1);
  mir_code_free(code);
  loop_module_free(&m);
  mir_pool_free(pool);
}

static u32 count_of(const char *text, const char *part) {
  u32 n = 0;
  for (; (text = strstr(text, part)); text += strlen(part)) n++;
  return n;
}

static u32 written(MirPool *pool, const LoopModule *m, const char *part) {
  Buf text;
  buf_init(&text, allocator_system());
  mir_print(pool, (const LoopFn *const *)m->fns.data, m->fns.count, 0, &text);
  u32 n = count_of(buf_text(&text), part);
  buf_free(&text);
  return n;
}

/* Checks that leave by one exit with the same values do so in one place, which is the poll's too; others do not. */
static void checks_that_leave_alike(void **state) {
  (void)state;
  LoopModule m;
  Frames f;
  u32 (*fn)(LoopCtx *, i64, i64, i64);
  parsed(&m, "native f (n: i64, a: i64, b: i64) -> (i64) {\n"
             "  check index a 10 #1 (n) check index b 10 #1 "
             "(n) check zero_div n #1 (n) check index a b #1 (a) check index n 20 #2 (n)\n"
             "  %r = while (%i: "
             "i64 = 0) { %k = add %i a poll #3 (%i) check index %k 50 #3 (%i) %t = add %k 1 check index %t 60 #3 (%i)\n"
             "    %c = lt %t n if %c { next %t } break %t } return %r }\n");
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  MirCode *code = compiled_all(pool, &m);
  *(void **)&fn = mir_code_native(code, 0);
  assert_int_equal(written(pool, &m, "left_values0, 1\n"), 4);
  static const struct { i64 n, a, b; u32 exit;
                        i64 value; } cases[] = {{5, 10, 1, 1, 5}, {5, 1, 10, 1, 5}, {0, 1, 2, 1, 0}, {5, 2, 2, 1, 2},
                                                {20, 2, 3, 2, 20}, {19, 2, 3, 0, 21}, {-1, 1, 2, 2, -1}};
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    frames_init(&f, 1000, 0);
    assert_int_equal(fn(&f.ctx, cases[i].n, cases[i].a, cases[i].b), cases[i].exit);
    assert_int_equal(cases[i].exit ? (i64)f.frame[0].values[0] : (i64)f.words[0], cases[i].value);
    assert_int_equal(f.count, cases[i].exit > 0);
  }
  frames_init(&f, 2, 0); /* the poll */
  assert_int_equal(fn(&f.ctx, 19, 2, 3), 3);
  assert_true(f.count == 1 && f.frame[0].exit == 3 && f.frame[0].values[0] == 6);
  mir_code_free(code);
  loop_module_free(&m);
  mir_pool_free(pool);
}

/* A float that lives across a call lies in memory: what is added to it between calls is added up in a register. */
static void sums_across_calls(void **state) {
  (void)state;
  LoopModule m;
  Frames f;
  u32 (*fn)(LoopCtx *, i64, f64);
  parsed(&m, "native g (n: i64) -> (i64) { check index n 50 #1 (n) %r = add n 1 return %r }\n"
             "native f (n: i64, d: f64) -> (f64) {\n"
             "  %s = for i in 0..n (%x: f64 = 0.5) { %a = add %x d %b = add %a d %c = add %b d %e = add %c d %k = call "
             "g (i) #1 %y = convert f64 %k %z = add %e %y next %z } return %s }\n");
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  MirCode *code = compiled_all(pool, &m);
  *(void **)&fn = mir_code_native(code, 1);
  frames_init(&f, 1000, 0);
  assert_int_equal(fn(&f.ctx, 10, 0.25), 0);
  f64 sum;
  memcpy(&sum, f.words, sizeof sum);
  assert_true(sum == 65.5);
  Buf text;
  buf_init(&text, allocator_system());
  mir_print(pool, (const LoopFn *const *)m.fns.data, m.fns.count, 1, &text);
  const char *call = strstr(buf_text(&text), "\tcall\tcall"), *after = call ? strstr(call, "\tdadd\t") : NULL;
  char across[16], sum_of[40];
  assert_true(after && sscanf(after, "\tdadd\t%*[^,], %*[^,], %15[^\n]", across) == 1);
  snprintf(sum_of, sizeof sum_of, "\tdadd\t%s,", across);
  assert_int_equal(count_of(buf_text(&text), sum_of), 1);
  buf_free(&text);
  mir_code_free(code);
  loop_module_free(&m);
  mir_pool_free(pool);
}

/* Products of strides are made once where the function begins; those of constants are shifts. */
static void products_are_made_once(void **state) {
  (void)state;
  LoopModule m;
  Frames f;
  u32 (*fn)(LoopCtx *, const f64 *, f64 *, i64, i64);
  parsed(&m, "native f (x: in f64, y: inout f64, n: i64, s: i64) -> (i64) {\n"
             "  for i in 0..n { for j in 0..n { %a = load x[i*s + j] f64 %b = load x[i*s + j*s] f64 %c = load x[j*s] "
             "f64 %d = add %a %b %e = add %d %c store y[i*s + j] %e } } return n }\n");
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  MirCode *code = compiled_all(pool, &m);
  *(void **)&fn = mir_code_native(code, 0);
  assert_int_equal(written(pool, &m, "\tmul\t"), 0);
  assert_int_equal(written(pool, &m, "\tlsh\t"), 1);
  f64 x[17], y[16] = {0};
  for (u32 i = 0; i < 17; i++) x[i] = i * 1.5;
  frames_init(&f, 1000, 0);
  assert_int_equal(fn(&f.ctx, x, y, 3, 4), 0);
  for (u32 i = 0; i < 3; i++)
    for (u32 j = 0; j < 3; j++) assert_true(y[4 * i + j] == x[4 * i + j] + x[4 * i + 4 * j] + x[4 * j]);
  mir_code_free(code);
  loop_module_free(&m);
  mir_pool_free(pool);
}

static u32 left_of(const LoopFn *fn, const char *part) {
  Buf text;
  buf_init(&text, allocator_system());
  LoopFn *simple = loops_simplify(fn);
  assert_non_null(simple);
  loops_print(simple, &text);
  u32 n = count_of(buf_text(&text), part);
  loop_fn_free(simple);
  buf_free(&text);
  return n;
}

/* What a trip stored is there in the next one without a load, also where it is the same place in all trips; each store
 * stays. */
static void loads_that_a_loop_carries(void **state) {
  (void)state;
  static const struct {
    const char *body;
    u32 left; /* loads of y and z in the loop */
  } rows[] = {
      {"%a = load x[i] f64 %b = load y[k] f64 %c = add %b %a store y[k] %c", 0},
      {"%a = load x[i] f64 %j = add i 1 %b = load y[i] f64 %c = mul %b %a store y[%j] %c", 0},
      {"%a = load x[i] f64 %j = add i 1 %b = load y[i] f64 %c = sub %a %b store y[%j] %c "
       "%d = load z[i] f64 %e = add %d %b store z[%j] %e", 0},
      {"%a = load x[i] f64 %b = load y[k] f64 %c = add %b %a store y[k] %c %d = load z[k] f64 %e = mul %d %c "
       "store z[k] %e", 0},
      {"%a = load x[i] f64 store y[k] %a %b = load y[k] f64 store z[i] %b", 1},
      {"%a = load x[i] f64 %b = load y[k] f64 store y[k] %a store y[i] %b", 1},
      {"%a = load x[i] f64 %b = load y[k] f64 %c = lt %a 0.5 if %c { store y[k] %a } store z[i] %b", 1},
      {"%a = load x[i] f64 %j = add k 1 %b = load y[%j] f64 %c = add %b %a store y[k] %c", 1},
      {"%a = load x[i] f64 check index k 4 #1 %b = load y[k] f64 %c = add %b %a store y[k] %c", 1},
      {"%a = load x[i] f64 %b = load y[k] f64 %c = add %b %a %d = gt %c 1.5 if %d { next } store y[k] %c", 1},
  };
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    LoopModule m;
    Buf text, why;
    char source[500];
    snprintf(source, sizeof source,
             "native f (x: in f64, y: inout f64, z: inout f64, n: i64, k: i64) -> (i64) { for i in 0..n { poll #1 %s } "
             "return 0 }\n", rows[i].body);
    parsed(&m, source);
    buf_init(&text, m.alloc);
    buf_init(&why, m.alloc);
    LoopFn *simple = loops_simplify(m.fns.data[0]);
    if (loops_verify(simple, &why) != WEFT_OK) fail_msg("%s: %s", rows[i].body, buf_text(&why));
    loops_print(simple, &text);
    const char *loop = strstr(buf_text(&text), "for ");
    if (!loop || count_of(loop, "load y") + count_of(loop, "load z") != rows[i].left)
      fail_msg("%s: %s", rows[i].body, buf_text(&text));
    loop_fn_free(simple);
    buf_free(&text);
    buf_free(&why);
    MirPool *pool = mir_pool_new(allocator_system(), NULL);
    MirCode *code = compiled_all(pool, &m);
    u32 (*call)(LoopCtx *, const f64 *, f64 *, f64 *, i64, i64) =
        (u32 (*)(LoopCtx *, const f64 *, f64 *, f64 *, i64, i64))mir_code_native(code, 0);
    for (i64 n = 0; n < 4; n++)
      for (i64 k = 0; k < 4; k++) {
        f64 x[4] = {0.75, 0.25, 1.5, -1}, y[2][6] = {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
            z[2][6] = {{-1, 2, -3, 4}, {-1, 2, -3, 4}};
        u64 args[5] = {(u64)(uintptr_t)x, (u64)(uintptr_t)y[0], (u64)(uintptr_t)z[0], (u64)n, (u64)k}, steps = 1000;
        u32 exit;
        Frames f, g;
        frames_init(&f, 100, 0);
        frames_init(&g, 100, 0);
        assert_int_equal(loops_interp_native(m.fns.data[0], &f.ctx, args, &exit, &steps, NULL), WEFT_OK);
        assert_int_equal(call(&g.ctx, x, y[1], z[1], n, k), exit);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        assert_memory_equal(z[0], z[1], sizeof z[0]);
      }
    mir_code_free(code);
    mir_pool_free(pool);
    loop_module_free(&m);
  }
}

/* What the ranges of indices decide is decided before the loop; what they do not is left. */
static void ranges_of_indices(void **state) {
  (void)state;
  static const struct {
    const char *expression, *op;
    u32 left;
  } rows[] = {
      {"%a = add i 1 %e = max %a 5", "max", 0}, {"%a = add i 2 %e = max %a 5", "max", 1}, {"%e = min i 4", "min", 0},
      {"%e = min i 3", "min", 1}, {"%e = min i n", "min", 1}, {"%a = sub 4 i %e = max %a 0", "max", 0},
      {"%a = sub 3 i %e = max %a 0", "max", 1}, {"%c = lt i 5 %e = select %c i 9", "select", 0},
      {"%c = lt i 4 %e = select %c i 9", "select", 1},
      {"%c = le i 4 %e = select %c i 9", "select", 0}, {"%c = gt i 4 %e = select %c i 9", "select", 0},
      {"%c = gt i 3 %e = select %c i 9", "select", 1},
      {"%c = ge i 0 %e = select %c i 9", "select", 0}, {"%c = ge i 1 %e = select %c i 9", "select", 1},
      {"%c = eq i 5 %e = select %c i 9", "select", 0},
      {"%c = ne i 7 %e = select %c i 9", "select", 0}, {"%c = eq i 4 %e = select %c i 9", "select", 1},
      {"%a = sub 4 i %c = lt 0 %a %e = select %c %a 0", "select", 0},
      {"%a = sub 3 i %c = lt 0 %a %e = select %c %a 0", "select", 1},
      {"%a = sub 4 i %c = lt 0 %a %e = select %c %a 1", "select", 1},
      {"%a = add i 9223372036854775806 %e = max %a 5", "max", 1},
      {"%a = sub i n %c = lt %a 5 %e = select %c %a 0", "select", 1},
  };
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    LoopModule m;
    char text[300];
    snprintf(text, sizeof text,
             "kernel k (y: out i64, n: i64) { par o in 0..n { for i in 0..5 { %s store y[i] %%e } } }\n",
             rows[i].expression);
    parsed(&m, text);
    if (left_of(m.fns.data[0], rows[i].op) != rows[i].left) fail_msg("%s", rows[i].expression);
    i64 y[5], z[5];
    u64 args[2] = {(u64)(uintptr_t)y, 1}, key, steps = 1000;
    assert_int_equal(loops_interp_kernel(m.fns.data[0], args, 0, 1, &key, &steps, NULL), WEFT_OK);
    MirPool *pool = mir_pool_new(allocator_system(), NULL);
    MirCode *code = compiled_all(pool, &m);
    args[0] = (u64)(uintptr_t)z;
    mir_code_kernel(code, 0)(args, 0, 1);
    assert_memory_equal(y, z, sizeof y);
    mir_code_free(code);
    mir_pool_free(pool);
    loop_module_free(&m);
  }
}

/* Constants that are added one after the other are one, an index with one is not negative; what wraps does so as
 * before. */
static void sums_of_constants(void **state) {
  (void)state;
  LoopModule m;
  parsed(&m, "kernel k (x: in f64, y: out f64, n: "
             "i64) { par i in 0..n { %a = add 1 i %b = sub %a 1 %c = lt %b 0 %d = add %b n %e = select %c %d %b\n"
             "  %v = load x[%e] f64 store y[i] %v } }\n"
             "kernel w (x: in i32, y: out i32, n: i64) { par i in 0..n { %v = load x[i] i32 %a = add "
             "%v 2147483647 %b = add %a 2 %c = sub %b 5 %d = lt %c 0 %e = select %d 1 %c store y[i] %e } }\n"
             "kernel u (x: in i64, y: out i64, n: i64) { par i in 0..n { %v = load x[i] i64 %a = sub %v 3 %b = add %a "
             "3 %c = lt %b 0 %d = select %c 1 %b store y[i] %d } }\n");
  assert_int_equal(left_of(m.fns.data[0], "select") + left_of(m.fns.data[0], "add") + left_of(m.fns.data[0], "sub"), 0);
  assert_int_equal(left_of(m.fns.data[1], "add"), 1);
  assert_int_equal(left_of(m.fns.data[1], "sub"), 0);
  assert_int_equal(left_of(m.fns.data[1], "select"), 1);
  assert_int_equal(left_of(m.fns.data[2], "add") + left_of(m.fns.data[2], "sub"), 0);
  assert_int_equal(left_of(m.fns.data[2], "select"), 1);
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  MirCode *code = compiled_all(pool, &m);
  i32 x[4] = {2147483647, -2147483647, 3, -2147483640}, y[4], z[4];
  u64 a[] = {ptr(x), ptr(y), 4}, b[] = {ptr(x), ptr(z), 4}, key;
  assert_int_equal(loops_interp_kernel(m.fns.data[1], a, 0, 4, &key, NULL, NULL), WEFT_OK);
  assert_true(mir_code_kernel(code, 1)(b, 0, 4) == LOOP_KEY_NONE);
  assert_memory_equal(y, z, sizeof y);
  mir_code_free(code);
  loop_module_free(&m);
  mir_pool_free(pool);
}

/* Constants are compared with as they are, on either side; an index is asked for its sign by one instruction; `x and x`
 * is x. */
static void comparisons_take_constants(void **state) {
  (void)state;
  LoopModule m;
  Frames f;
  u32 (*fn)(LoopCtx *, i64);
  parsed(&m, "native f (a: i64) -> (i64) {\n"
    "  check index a -9223372036854775808 #1 (a)\n"
    "  %c = lt 3 a %d = le a 7 %e = ne 5 a %f = and %e %e %x = convert i64 %c %y = convert i64 %d %z = convert i64 %f\n"
    "  %s = mul %x 4 %t = mul %y 2 %u = add %s %t %v = add %u %z return %v }\n");
  assert_int_equal(left_of(m.fns.data[0], "and"), 0);
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  MirCode *code = compiled_all(pool, &m);
  *(void **)&fn = mir_code_native(code, 0);
  assert_int_equal(written(pool, &m, "\tblt\t"), 1);
  assert_int_equal(written(pool, &m, "\tubge\t"), 0);
  assert_int_equal(written(pool, &m, "\tgt\tv") + written(pool, &m, "\tle\tv") + written(pool, &m, "\tne\tv"), 3);
  assert_int_equal(written(pool, &m, ", 3\n") + written(pool, &m, ", 7\n") + written(pool, &m, ", 5\n"), 3);
  for (i64 a = -2; a < 12; a++) {
    frames_init(&f, 1000, 0);
    assert_int_equal(fn(&f.ctx, a), a < 0);
    if (a < 0) assert_true((i64)f.frame[0].values[0] == a);
    else assert_true((i64)f.words[0] == 4 * (3 < a) + 2 * (a <= 7) + (a != 5));
  }
  mir_code_free(code);
  loop_module_free(&m);
  mir_pool_free(pool);
}

/* A rounding that MIR finds dead left its mark alone, and the subtraction behind it became the rounding. */
static void dead_stand_in_before_subtraction(void **state) {
  (void)state;
  LoopModule m;
  parsed(&m, "kernel k (x: in f64, y: out f64, n: "
             "i64) { par i in 0..n { %v = load x[i] f64 %r = rint %v %q = sqrt %v %h = fma %v %v 1.5\n"
             "  %s = sub 1.75 %v\n"
             "  %a = if true -> (f64) { yield %s } else { %b = add %r %q %c = add %b %h yield %c }  store y[i] %a } }");
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  MirCode *code = compiled_all(pool, &m);
  f64 x[3] = {0.25, 0.5, 2.5}, y[3];
  u64 args[] = {ptr(x), ptr(y), 3};
  assert_true(mir_code_kernel(code, 0)(args, 0, 3) == LOOP_KEY_NONE);
  assert_true(y[0] == 1.5 && y[1] == 1.25 && y[2] == -0.75);
  assert_int_equal(mir_pool_stats(pool).again, 0);
  mir_code_free(code);
  mir_pool_free(pool);
  loop_module_free(&m);
}

/* ---- random functions ---------------------------------------------------------------------- */

static void show(const LoopFn *fn, MirPool *pool) {
  Buf text;
  buf_init(&text, fn->module->alloc);
  loops_print(fn, &text);
  LoopFn *simple = loops_simplify(fn);
  buf_puts(&text, "simplified: ");
  loops_print(simple, &text);
  loop_fn_free(simple);
  if (pool && getenv("SHOW_MIR")) mir_print(pool, &fn, 1, 0, &text);
  fputs(buf_text(&text), stderr);
  buf_free(&text);
}

typedef u32 (*RandomNative)(LoopCtx *, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64,
                            i64, i64, i64, f64, f32, i32);

static u32 call_native(void *fn, LoopCtx *ctx, const u64 *a) {
  RandomNative native;
  f64 ds;
  f32 fs;
  *(void **)&native = fn;
  const u64 *s = a + RANDOM_IN + RANDOM_OUT;
  memcpy(&ds, &s[3], 8);
  memcpy(&fs, &s[4], 4);
  return native(ctx, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14],
                (i64)s[0], (i64)s[1], (i64)s[2], ds, fs, (i32)s[5]);
}

static bool same_frames(const Frames *a, const Frames *b) {
  if (a->count != b->count || a->polls != b->polls) return false;
  for (u32 i = 0; i < a->count; i++) {
    if (a->frame[i].exit != b->frame[i].exit || a->frame[i].count != b->frame[i].count) return false;
    for (u32 k = 0; k < a->frame[i].count; k++) {
      u64 x = a->frame[i].values[k], y = b->frame[i].values[k];
      bool nan64 = loop_normal(LT_F64, x) == loop_normal(LT_F64, y),
          nan32 = loop_normal(LT_F32, x) == loop_normal(LT_F32, y);
      if (x != y && !nan64 && !(nan32 && x >> 32 == 0 && y >> 32 == 0)) return false; /* a NaN's bits are its own */
    }
  }
  return true;
}


static u32 slow; /* functions that the interpreter gave up on */

/* A native's budget, and how many times it may go on when that is used up. */
static void compare_one(MirPool *pool, u64 seed, i64 budget, u32 polls, RandomData *one, RandomData *two,
                        RandomData *three) {
  LoopKind kind = seed % 3 ? LOOP_KERNEL : LOOP_NATIVE;
  LoopModule m;
  Buf why;
  assert_int_equal(loop_module_init(&m, allocator_system()), WEFT_OK);
  buf_init(&why, m.alloc);
  const LoopFn *fn = random_function(&m, seed, kind, "r");
  if (loop_fn_finish(m.fns.data[0], &why) != WEFT_OK || loops_verify(fn, &why) != WEFT_OK) {
    show(fn, NULL);
    fail_msg("seed %llu: %s", (unsigned long long)seed, buf_text(&why));
  }
  LoopFn *simple = loops_simplify(fn);
  assert_non_null(simple);
  if (loops_verify(simple, &why) != WEFT_OK) {
    show(fn, NULL);
    fail_msg("seed %llu, simplified: %s", (unsigned long long)seed, buf_text(&why));
  }
  random_data(one, seed);
  random_data(two, seed);
  random_data(three, seed);
  MirCode *code = compiled(pool, &fn, 1);
  u64 steps = 2000000;
  i64 n = (i64)one->args[RANDOM_IN + RANDOM_OUT];
  u64 key = 0, got = 0;
  u32 exit = 0, code_exit = 0;
  Frames f, g;
  frames_init(&f, budget, polls);
  frames_init(&g, budget, polls);
  WeftStatus status = kind == LOOP_KERNEL ? loops_interp_kernel(fn, one->args, 0, n, &key, &steps, NULL)
                                          : loops_interp_native(fn, &f.ctx, one->args, &exit, &steps, NULL);
  if (status == WEFT_OK) {
    u32 buffer = 0, cell = 0;
    const char *what = NULL;
    if (kind == LOOP_KERNEL) {
      got = mir_code_kernel(code, 0)(two->args, 0, n);
      if (got != key) what = "key";
    } else {
      code_exit = call_native(mir_code_native(code, 0), &g.ctx, two->args);
      if (code_exit != exit) what = "exit";
      else if (!same_frames(&f, &g)) what = "frames";
      else if (f.ctx.budget != g.ctx.budget) what = "budget";
      else if (!exit && (!same_word((LoopType)fn->results.data[0], f.words[0], g.words[0]) ||
                         !same_word((LoopType)fn->results.data[1], f.words[1], g.words[1])))
        what = "results";
    }
    if (!what && key == (kind == LOOP_KERNEL ? LOOP_KEY_NONE : 0) && !same_outputs(one, two, &buffer, &cell))
      what = "output";
    if (what) {
      show(fn, pool);
      fail_msg("seed %llu: other %s: z%u[%u], key %llx %llx, exit %u %u", (unsigned long long)seed, what, buffer, cell,
               (unsigned long long)key, (unsigned long long)got, exit, code_exit);
    }
    steps = 4000000; /* the simplified function alone */
    frames_init(&g, budget, polls);
    status = kind == LOOP_KERNEL ? loops_interp_kernel(simple, three->args, 0, n, &got, &steps, NULL)
                                 : loops_interp_native(simple, &g.ctx, three->args, &code_exit, &steps, NULL);
    assert_int_equal(status, WEFT_OK);
    if ((kind == LOOP_KERNEL ? got != key : code_exit != exit) ||
        (key == LOOP_KEY_NONE && !same_outputs(one, three, &buffer, &cell))) {
      show(fn, pool);
      fail_msg("seed %llu: the simplified function differs", (unsigned long long)seed);
    }
  } else {
    slow++;
  }
  mir_code_free(code);
  loop_fn_free(simple);
  buf_free(&why);
  loop_module_free(&m);
}

static u64 setting(const char *name, u64 normal) { return getenv(name) ? strtoull(getenv(name), NULL, 10) : normal; }

/* Kernels and natives in turn, with any small budget; SEED and COUNT choose others. Behind them those that differed
 * once: loops that began when the budget was used up made their first trip for nothing. */
static void random_functions(void **state) {
  static const u64 further[] = {1233, 700383, 900321};
  bool plain = *state != NULL;
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  RandomData *data = malloc(sizeof *data * 3);
  u64 first = setting("SEED", 1), count = setting("COUNT", plain ? 250 : 1200);
  mir_pool_plain(pool, plain);
  slow = 0;
  u32 more = getenv("SEED") ? 0 : COUNT_OF(further);
  for (u64 i = 0; i < count + more; i++) {
    u64 seed = i < count ? first + i : further[i - count];
    if (i < count) compare_one(pool, seed, (i64)(seed % 17), (u32)(seed / 17 % 7), data, data + 1, data + 2);
    else compare_one(pool, seed, 7, 2, data, data + 1, data + 2);
  }
  MirStats s = mir_pool_stats(pool);
  assert_int_equal(s.functions, count + more);
  assert_true(plain ? s.patched == 0 : count < 100 || s.patched > count / 2);
  assert_true(s.again <= count / 100);
  assert_true(slow <= count / 10);
  assert_int_equal(s.code_bytes, 0);
  free(data);
  mir_pool_free(pool);
}

/* ---- instructions that jit/mir/quick.sed teaches MIR ----------------------------------------- */

/* A conversion clears its register first (xorps); a shift by a register takes any where the processor can (shlx). */
static void taught_instructions(void **state) {
  (void)state;
  LoopModule m;
  parsed(&m, "native f (n: i64, s: i64) -> (f64) { %a = shl n s %c = convert f64 %a return %c }");
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  MirCode *code = compiled_all(pool, &m);
  Frames f;
  f64 result;
  u32 cleared = 0, converted = 0, shifts = 0;
  for (i64 shift = -1; shift < 66; shift++) {
    frames_init(&f, 7, 2);
    assert_int_equal(((u32 (*)(LoopCtx *, i64, i64))mir_code_native(code, 0))(&f.ctx, 5, shift), 0);
    memcpy(&result, f.words, 8);
    assert_true(result == (shift < 0 || shift > 63 ? 0 : (f64)(i64)((u64)5 << shift)));
  }
  /* the function is shorter, the mapping longer */
  for (const u8 *p = mir_code_text(code, 0) + 4, *end = p + 200; p < end; p++) {
    shifts += p[0] == 0xC4 && (p[1] & 0x1F) == 2 && (p[2] & 0x83) == 0x81 && p[3] == 0xF7;
    if (p[0] != 0xF2 || (p[1] & 0xF8) != 0x48 || p[2] != 0x0F || p[3] != 0x2A) continue;
    converted++;
    cleared += p[-3] == 0x0F && p[-2] == 0x57 && (p[-1] >> 3 & 7) == (p[4] >> 3 & 7) &&
               (p[-1] & 0xC7) == (0xC0 | (p[4] >> 3 & 7));
  }
  assert_int_equal(converted, 1);
  if (WEFT_MIR_CODE_HOOKS) { /* an installed MIR is as it is */
    assert_int_equal(cleared, 1);
    assert_int_equal(shifts, __builtin_cpu_supports("bmi2") ? 1 : 0);
  }
  mir_code_free(code);
  mir_pool_free(pool);
  loop_module_free(&m);
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void refusals(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } rows[] = {
    {"extern native g (i64) -> (i64) native f (n: i64) -> (i64) { %r = call g (n) #1 return %r }",
     "no definition of g"},
    {"table t f64 [1, 2] kernel k (y: out f64, n: i64) { par i in 0..n { %v = load t[i] f64 store y[i] %v } }",
     "tables"},
  };
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    LoopModule m;
    Buf why;
    MirCode *code;
    MirPool *pool = mir_pool_new(allocator_system(), NULL);
    parsed(&m, rows[i].text);
    buf_init(&why, m.alloc);
    const LoopFn *fn = m.fns.data[m.fns.count - 1];
    assert_int_equal(mir_compile(pool, &fn, 1, &code, &why), WEFT_ERROR);
    assert_null(code);
    if (!strstr(buf_text(&why), rows[i].message)) fail_msg("%s", buf_text(&why));
    buf_free(&why);
    loop_module_free(&m);
    mir_pool_free(pool);
  }
}

static void refused_memory(void **state) {
  (void)state;
  bool done = false;
  static const char calls[] = "native r (n: i64, x: f32) -> (f32) { poll #1 %c = lt n 2 %v = if %c -> (f32) "
                              "{ yield x } else { %m = sub n 1 %a = call r (%m, x) #1 yield %a } return %v } "
                              "native o (n: i64) -> (f32) { %r = call r (n, 2.5:f32) #1 return %r }";
  for (u64 n = 0; !done; n++) {
    TestMemory f = test_memory(-1);
    LoopModule m;
    MirCode *code = NULL;
    assert_int_equal(loop_module_init(&m, &f.base), WEFT_OK);
    assert_int_equal(loops_parse(&m, loops_golden[1], strlen(loops_golden[1]), NULL), WEFT_OK);
    assert_int_equal(loops_parse(&m, loops_golden[3], strlen(loops_golden[3]), NULL), WEFT_OK);
    assert_int_equal(loops_parse(&m, calls, strlen(calls), NULL), WEFT_OK);
    MirPool *pool = mir_pool_new(&f.base, NULL);
    f.left = (i64)n;
    done = mir_compile(pool, (const LoopFn *const *)m.fns.data, m.fns.count, &code, NULL) == WEFT_OK;
    f.left = -1;
    assert_true(done == (code != NULL));
    mir_code_free(code);
    mir_pool_free(pool);
    loop_module_free(&m);
    assert_true(f.held == 0 && n < 5000);
  }
}

/* What the verifier would not let through: an error of MIR in the middle of a function. */
static void errors_of_MIR(void **state) {
  (void)state;
  static const char text[] = "native f (n: i64, x: f64) -> (f64) { %r = for i in 0..n (%a: "
                             "f64 = x) { poll #1 (%a) %b = add %a x next %b } return %r }";
  TestMemory f = test_memory(-1);
  LoopModule m;
  MirCode *code;
  Buf why;
  assert_int_equal(loop_module_init(&m, &f.base), WEFT_OK);
  buf_init(&why, m.alloc);
  assert_int_equal(loops_parse(&m, text, strlen(text), NULL), WEFT_OK);
  LoopFn *fn = m.fns.data[0];
  for (u32 i = 1; i < fn->nodes.count; i++)
    if (fn->nodes.data[i].op == LOOP_NEXT) fn->list.data[fn->nodes.data[i].list] = fn->params.data[0];
  MirPool *pool = mir_pool_new(&f.base, NULL);
  i64 held = f.held;
  for (u32 tries = 0; tries < 2; tries++) {
    assert_int_equal(mir_compile(pool, (const LoopFn *const *)m.fns.data, 1, &code, &why), WEFT_ERROR);
    assert_null(code);
#ifndef __SANITIZE_ADDRESS__ /* where simplified functions are verified before MIR sees them */
    assert_non_null(strstr(buf_text(&why), "MIR refused"));
#endif
    if (tries) assert_true(held == f.held);
    held = f.held;
  }
  buf_free(&why);
  mir_pool_free(pool);
  loop_module_free(&m);
  assert_true(f.held == 0);
}

/* A loop that ends with exits has no `next`, and gets none for loads that it could carry. */
static void loops_that_do_not_come_round(void **state) {
  (void)state;
  static const char text[] =
      "native f (n: i64, x: in i64) -> (f64) { %r = for i in 0..n (%a: "
      "f64 = 1.5) { poll #1 (%a) %b = load x[2] i64 %c = convert f64 %b %d = add %a %c exit #2 (%d) } return %r }"
      "native g (n: i64, x: in i64) -> (i64) { for i in 0..n { poll #1 %b = load x[2] i64 exit #2 (%b) } return 7 }"
      "native h (n: i64, x: in i64) -> (i64) { for i in 0..n { poll #1 %b = load x[2] i64 %c = lt %b n if %c { exit #3 "
      "(%b) } else { if %c { exit #1 } else { exit #2 (%b) } } } return 7 }"
      "native o (n: i64, x: "
      "in i64) -> (i64) { for i in 0..n { poll #1 %b = load x[2] i64 %c = gt %b n if %c { exit #2 (%b) } } return 7 }";
  static const i64 x[3] = {0, 0, 40};
  LoopModule m;
  parsed(&m, text);
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  for (u32 i = 0; i < m.fns.count; i++) {
    Buf why;
    buf_init(&why, m.alloc);
    LoopFn *simple = loops_simplify(m.fns.data[i]);
    if (loops_verify(simple, &why) != WEFT_OK) fail_msg("%s", buf_text(&why));
    loop_fn_free(simple);
    buf_free(&why);
  }
  MirCode *code = compiled_all(pool, &m);
  for (u32 i = 0; i < m.fns.count; i++)
    for (i64 n = 0; n < 3; n++) {
      Frames f;
      frames_init(&f, 7, 2);
      u32 (*call)(LoopCtx *, i64, const i64 *) = (u32 (*)(LoopCtx *, i64, const i64 *))mir_code_native(code, i);
      assert_int_equal(call(&f.ctx, n, x), n ? 2 : 0);
      f64 d = n ? 41.5 : 1.5;
      i64 k = n ? 40 : 7;
      assert_memory_equal(n ? f.frame[0].values : f.words, i ? (void *)&k : (void *)&d, 8);
    }
  mir_code_free(code);
  mir_pool_free(pool);
  loop_module_free(&m);
}

int main(void) {
  static int plain;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(folds),    cmocka_unit_test(kernels),        cmocka_unit_test(natives),
    cmocka_unit_test(polls_of_counted_loops), cmocka_unit_test_prestate(polls_of_counted_loops, &plain),
    cmocka_unit_test(refusals), cmocka_unit_test(refused_memory), cmocka_unit_test(errors_of_MIR),
    cmocka_unit_test(loops_that_do_not_come_round), cmocka_unit_test(random_functions),
    cmocka_unit_test_prestate(random_functions, &plain), cmocka_unit_test(dead_stand_in_before_subtraction),
    cmocka_unit_test(taught_instructions), cmocka_unit_test(checks_that_leave_alike),
    cmocka_unit_test(sums_across_calls), cmocka_unit_test(products_are_made_once), cmocka_unit_test(sums_of_constants),
    cmocka_unit_test(ranges_of_indices), cmocka_unit_test(loads_that_a_loop_carries),
    cmocka_unit_test(comparisons_take_constants),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
