/* main.c — how far the functions of lang/math.loops are off, in units of the last place: f32 on every argument
 * against f64, f64 on samples and hard cases against MPFR. What the table there says must be what is measured.
 *
 *   build/tests/math               every 1021st argument, few samples: nothing is worse than the table says
 *   build/tests/math --every N     every Nth
 *   build/tests/math --all         all 2^32 arguments, many samples: the table says exactly that
 *   build/tests/math --all --table the rows of the table
 *   build/tests/math [--all] [--f32 | --f64] [NAME]  one dtype, one function */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stdlib/kernels/wm.h"
#include "tests/math/accuracy.h"

#define LT_f32 LT_F32
#define LT_f64 LT_F64
#ifdef __x86_64__
#define STRIPS(name, type) \
  {wm_strip_##name##_##type##_base, wm_strip_##name##_##type##_avx2, wm_strip_##name##_##type##_avx512}
#else
#define STRIPS(name, type) {wm_strip_##name##_##type##_base, NULL, NULL}
#endif
static const struct {
  const char *name;
  LoopType type;
  u32 arity;
  Strip strip[3]; /* base, AVX2, AVX-512 */
} rows[] = {
#define MATH(name, type, arity) {#name, LT_##type, arity, STRIPS(name, type)},
#define MATH_HELPER(name, type, arity)
#include "math_list.h"
};

static const struct {
  const char *name;
  f64 wide, narrow;
} stated[] = {
#define MATH_ERROR(name, e64, e32) {#name, e64, e32},
#include "math_errors.h"
};

enum { FUNCTIONS = 64 };

typedef struct Test {
  Function functions[FUNCTIONS];
  Worst worst[FUNCTIONS][2]; /* f64, f32 */
  u32 count, next, end, stride;
  bool all, table, good;
  pthread_mutex_t lock;
} Test;

/* Operations that are exact, or rounded once, are tested elsewhere (tests/unit/test_math.c). */
static bool is_exact(const char *name) {
  return strcmp(name, "fmod") == 0 || strcmp(name, "remainder") == 0 || strcmp(name, "floor_divide") == 0 ||
         strcmp(name, "nextafter") == 0;
}

static void find_functions(Test *t, const char *only) {
  u32 level = 0;
#ifdef __x86_64__
  if (wm_best() != &wm_base)
    level = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? 2 : 1;
#endif
  for (size_t s = 0; s < sizeof stated / sizeof *stated; s++) {
    if (is_exact(stated[s].name) || (only && strcmp(only, stated[s].name) != 0)) continue;
    Function f = {.name = stated[s].name, .stated = {stated[s].wide, stated[s].narrow}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      if (strcmp(rows[i].name, f.name) != 0) continue;
      f.arity = rows[i].arity;
      *(rows[i].type == LT_F32 ? &f.narrow : &f.wide) = rows[i].strip[level];
    }
    if (f.narrow && f.wide && t->count < FUNCTIONS) t->functions[t->count++] = f;
  }
}

/* Errors are said in tenths, rounded up; not for less than a thousandth. */
static f64 rounded(f64 ulp) { return ceil(ulp * 10 - 0.009) / 10; }

static void tell(Test *t, const Function *f, u32 which, const Worst *w) {
  const char *dtype = which ? "f32" : "f64";
  if (w->skipped && !precise_is_there()) {
    printf("skip math/%s-%s: MPFR was not there when this was built (mpfr.h)\n", f->name, dtype);
    return;
  }
  if (w->skipped) {
    printf("not ok math/%s-%s: tests/math/functions.def has no RANGE for it\n", f->name, dtype);
    t->good = false;
    return;
  }
  f64 says = f->stated[which], is = rounded(w->ulp);
  bool good = t->all ? fabs(is - says) < 0.05 : is <= says + 0.05;
  t->good &= good;
  printf("%s math/%s-%s # %.3f ulp at %a", good ? "ok" : "not ok", f->name, dtype, w->ulp, w->x);
  if (f->arity == 2) printf(" %a", w->y);
  printf("; lang/math.loops says %.1f\n", says);
  fflush(stdout);
}

/* One function in one dtype after the other, the dear ones first. */
static void *work(void *ctx) {
  Test *t = ctx;
  for (;;) {
    pthread_mutex_lock(&t->lock);
    u32 at = t->next++;
    pthread_mutex_unlock(&t->lock);
    if (at >= t->end) break;
    const Function *f = &t->functions[at % t->count];
    u32 which = at < t->count;
    Worst w = which ? sweep_narrow(f, t->all ? 1 : t->stride) : precise_wide(f, 1u << 10);
    if (t->all && !which) { /* what few samples found counts too */
      Worst more = precise_wide(f, 1u << 16);
      if (more.ulp > w.ulp) w = more;
    }
    pthread_mutex_lock(&t->lock);
    t->worst[at % t->count][which] = w;
    if (!t->table) tell(t, f, which, &w);
    pthread_mutex_unlock(&t->lock);
  }
  precise_end();
  return NULL;
}

int main(int argc, char **argv) {
  static Test t = {.good = true, .stride = 1021, .lock = PTHREAD_MUTEX_INITIALIZER};
  const char *only = NULL;
  bool narrow = false, wide = false;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--all") == 0) t.all = true;
    else if (strcmp(argv[i], "--table") == 0) t.table = true;
    else if (strcmp(argv[i], "--f32") == 0) narrow = true;
    else if (strcmp(argv[i], "--f64") == 0) wide = true;
    else if (strcmp(argv[i], "--every") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0) t.stride = (u32)atoi(argv[++i]);
    else only = argv[i];
  }
  find_functions(&t, only);
  t.next = wide ? t.count : 0;
  t.end = narrow ? t.count : 2 * t.count;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  pthread_t threads[16];
  u32 count = processors < 1 ? 1 : processors > 16 ? 16 : (u32)processors, begun = 0;
  while (begun + 1 < count && pthread_create(&threads[begun], NULL, work, &t) == 0) begun++;
  (void)work(&t);
  for (u32 i = 0; i < begun; i++) pthread_join(threads[i], NULL);
  for (u32 i = 0; t.table && i < t.count; i++)
    printf("; | %s | %.1f | %.1f |\n", t.functions[i].name, rounded(t.worst[i][0].ulp), rounded(t.worst[i][1].ulp));
  return t.good ? 0 : 1;
}
