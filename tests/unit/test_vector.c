/* test_vector.c — vector code beside the loop IR's interpreter, for every setting that this processor runs; bits are compared.
 * test_vector COUNT [SEED] runs that many random kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "jit/vector.h"
#include "stdlib/wm.h"
#include "tests/unit/vector_random.h"

static const VecLevel levels[] = {VEC_AVX2, VEC_AVX512};

static void start(LoopModule *m) {
  assert_int_equal(loop_module_init(m, allocator_system()), WEFT_OK);
  m->math = wm_best()->functions;
  m->math_count = wm_best()->count;
}

typedef struct Tally {
  u32 emitted, refused, endless; /* endless: the interpreter would take STEPS and more */
} Tally;

enum { STEPS = 20000000 };

static RandomData wanted, got, clean;

/* False: a difference; it is printed. */
static bool run_one(LoopModule *m, const LoopFn *fn, VecEmitter *e, u64 seed, bool print_refused, Tally *tally, bool small) {
  Buf why, text;
  buf_init(&why, m->alloc);
  buf_init(&text, m->alloc);
  bool same = true;
  const char *refused;
  VecCode *code = vec_compile(e, fn, &refused);
  if (!code) {
    tally->refused++;
    if (print_refused) printf("# %s: %s\n", vec_level_text(e->level), refused);
  } else {
    tally->emitted++;
    u64 key = 0;
    for (u32 round = 0; round < 3 && same; round++) {
      if (small) random_data(&clean, seed * 3 + round);
      else vector_data(&clean, seed * 3 + round);
      memcpy(&wanted, &clean, sizeof clean);
      memcpy(&got, &clean, sizeof clean);
      for (u32 b = 0; b < RANDOM_IN + RANDOM_OUT; b++) {
        wanted.args[b] = (u64)(uintptr_t)(b < RANDOM_IN ? wanted.in[b] : wanted.out[b - RANDOM_IN]);
        got.args[b] = (u64)(uintptr_t)(b < RANDOM_IN ? got.in[b] : got.out[b - RANDOM_IN]);
      }
      u64 *s = clean.args + RANDOM_IN + RANDOM_OUT;
      u32 trips = loop_trips_of(fn, fn->body.data[0], 0);
      i64 hi = (i64)(trips == fn->params.data[RANDOM_IN + RANDOM_OUT] ? s[0] : s[1]), lo = seed % 5 == 1 && hi > 3 ? 3 : 0;
      u32 buffer, cell;
      u64 steps = STEPS;
      if (loops_interp_kernel(fn, wanted.args, lo, hi, &key, &steps, &why) != WEFT_OK) {
        same = strcmp(buf_text(&why), "out of steps") == 0;
        if (same) tally->endless++;
        else printf("# interpreter: %s\n", buf_text(&why));
        break;
      }
      u64 mine = vec_code_kernel(code)(got.args, lo, hi);
      if (mine != key && (!small || mine == LOOP_KEY_NONE || key == LOOP_KEY_NONE)) loops_print(fn, &text), printf("%s seed %llu round %u n %llu k %llu\n", buf_text(&text), (unsigned long long)seed, round, (unsigned long long)s[0], (unsigned long long)s[1]), printf("# key %llx, not %llx\n", (unsigned long long)mine, (unsigned long long)key), same = false;
      if (key != LOOP_KEY_NONE) continue; /* what it wrote means nothing */
      if (same_outputs(&wanted, &got, &buffer, &cell)) continue;
      same = false;
      u32 bytes = loop_type_bytes(random_out_types[buffer]);
      loops_print(fn, &text);
      printf("# %s seed %llu round %u: z%u[%u] is %llx, not %llx; n %llu k %llu stride %llu\n%s\n", vec_level_text(e->level), (unsigned long long)seed, round, buffer, cell,
        (unsigned long long)loop_load_memory(random_out_types[buffer], got.out[buffer] + cell * bytes),
        (unsigned long long)loop_load_memory(random_out_types[buffer], wanted.out[buffer] + cell * bytes), (unsigned long long)s[0], (unsigned long long)s[1],
        (unsigned long long)s[2], buf_text(&text));
      if (getenv("VECTOR_CODE")) vec_code_print(code, "k", &why), fputs(buf_text(&why), stdout);
    }
    vec_code_free(code);
  }
  buf_free(&why);
  buf_free(&text);
  return same;
}

static bool random_kernels(VecLevel level, u64 from, u32 count, bool print, Tally *tally) {
  LoopModule m;
  start(&m);
  VecEmitter *e = vec_emitter_new(allocator_system(), level, NULL);
  assert_non_null(e);
  bool same = true;
  for (u64 seed = from; seed < from + count && same; seed++) {
    Buf why;
    buf_init(&why, m.alloc);
    bool small = seed % 12 == 5; /* any kernel: most are refused, the rest must be right */
    LoopFn *fn = small ? random_function(&m, seed, LOOP_KERNEL, "k") : vector_kernel(&m, seed, "k");
    if (loop_fn_finish(fn, &why) != WEFT_OK || loops_verify(fn, &why) != WEFT_OK) {
      printf("# seed %llu: %s\n", (unsigned long long)seed, buf_text(&why));
      same = false;
    } else {
      e->unroll = seed % 7 == 0 ? 1 : seed % 7 == 1 ? 3 : 0;
      same = run_one(&m, fn, e, seed, print, tally, small);
    }
    buf_free(&why);
    loop_module_truncate(&m, 0, 1);
  }
  vec_emitter_free(e);
  loop_module_free(&m);
  return same;
}

static void random_kernels_give_the_same_bits(void **state) {
  (void)state;
  for (u32 l = 0; l < COUNT_OF(levels); l++) {
    Tally tally = {0};
    if (!vec_level_runs(levels[l])) {
      printf("# %s: not on this processor\n", vec_level_text(levels[l]));
      continue;
    }
    assert_true(random_kernels(levels[l], 1, 1500, false, &tally));
    printf("# %s: %u kernels emitted, %u refused\n", vec_level_text(levels[l]), tally.emitted, tally.refused);
    assert_true(tally.emitted > tally.refused);
    assert_int_equal(tally.endless, 0);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) {
    u32 count = (u32)atol(argv[1]);
    u64 seed = argc > 2 ? (u64)atoll(argv[2]) : 1;
    bool all = true;
    for (u32 l = 0; l < COUNT_OF(levels); l++) {
      Tally tally = {0};
      const char *name = vec_level_text(levels[l]), *only = getenv("WEFT_CPU");
      if (only && *only && strcmp(only, name) != 0) continue;
      bool runs = vec_level_runs(levels[l]), same = !runs || random_kernels(levels[l], seed, count, getenv("VECTOR_REFUSED"), &tally);
      same = same && tally.endless <= count / 1000;
      if (runs) printf("%s vector/%s-%u-from-%llu # %u emitted, %u refused, %u beyond %u steps\n", same ? "ok" : "not ok", name, count, (unsigned long long)seed, tally.emitted, tally.refused, tally.endless, (u32)STEPS);
      else printf("ok vector/%s # SKIP beyond this processor\n", name);
      all = all && same;
    }
    return !all;
  }
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_kernels_give_the_same_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
