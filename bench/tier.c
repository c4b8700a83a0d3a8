/* tier.c — costs inside the tier, a line "name value unit" each: the guards of a call, leaving a region, guards
 * that miss. Looks at the inside of the library, so that each is measured alone. Times are the processor's, the
 * least of many. */
#include "api/inner.h"
#include "tracer/exit/leave.h"
#include "tracer/tier/places.h"
#include "tracer/tier/tier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 25 };

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* What is read without a system call: one before and one behind each exit empties the branch predictors, and that takes
 * as long as the exit does, or not, as the code happens to lie. */
static double moment(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(WeftVM *vm, bool ok) {
  if (ok) return;
  fprintf(stderr, "tier: %s\n", vm ? weft_error_text(vm) : "out of memory");
  exit(1);
}

static WeftVM *machine(const char *backend) {
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backend = backend;
  WeftVM *vm = weft_new(&options);
  must(NULL, vm);
  vm->vm->tunables.pace_percent = 0; /* what compiles here is to compile, however short the run */
  return vm;
}

static WeftValue *value(WeftVM *vm, const char *text) {
  WeftValue *v = NULL;
  must(vm, weft_eval(vm, text, "tier", &v) == WEFT_OK);
  return v;
}

static void call(WeftVM *vm, WeftValue *f, WeftValue **args, u32 nargs) {
  WeftValue *out;
  must(vm, weft_call(vm, f, args, nargs, &out) == WEFT_OK);
  weft_release(vm, out);
}

/* Nanoseconds of a call that enters one region, through the public API, all in. */
static double region_ns(void) {
  enum { CALLS = 20000 };
  WeftVM *vm = machine("mir");
  vm->vm->tunables.payback_calls = 0; /* the interpreter is as fast on so little */
  WeftValue *f = value(vm, "fn f(a, b) = a + b - 1\nf"),
      *args[2] = {value(vm, "arange(8.0)"), value(vm, "arange(8.0) + 1")};
  double best = 1e9;
  for (u32 i = 0; i < 1000; i++) call(vm, f, args, 2);
  for (u32 r = 0; r < ROUNDS; r++) {
    double t = seconds();
    for (u32 i = 0; i < CALLS; i++) call(vm, f, args, 2);
    t = (seconds() - t) / CALLS;
    if (t < best) best = t;
  }
  must(vm, place_find(&tracer_of(vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY)->cache.entries.count == 1);
  weft_free(vm);
  return best * 1e9;
}

/* The place of the function's entry, which has one region. */
static Place *place_of(WeftVM *vm, const WeftValue *f) {
  Place *p = place_find(&tracer_of(vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY);
  must(vm, p && p->cache.entries.count == 1);
  return p;
}

/* Nanoseconds until the entry for ten vectors is found and its inputs stand in the slots. */
static double guards_ns(void) {
  enum { LOOKUPS = 20000, ARGS = 10 };
  WeftVM *vm = machine("mir");
  WeftValue *f = value(vm, "fn f(a, b, c, d, e, f, g, h, i, j) = a + b * c - d + e * f - g + h * i - j\nf"),
      *args[ARGS];
  Value base[64];
  u64 slots[256];
  Value scratch[256];
  for (u32 i = 0; i < ARGS; i++) args[i] = value(vm, "arange(8.0) + 1");
  for (u32 i = 0; i < 100; i++) call(vm, f, args, ARGS);
  Place *p = place_of(vm, f);
  for (u32 i = 0; i < ARGS; i++) base[i] = args[i]->value;
  Frame frame = {.code = f->value.fn->code, .fn = f->value.fn, .base = base};
  double best = 1e9;
  for (u32 r = 0; r < ROUNDS; r++) {
    double t = seconds();
    for (u32 i = 0; i < LOOKUPS; i++) {
      GuardEntry *e = cache_lookup(vm->vm, &p->cache, &frame, slots, scratch);
      must(vm, e);
      guard_undonate(&frame, e->prog, slots);
    }
    t = (seconds() - t) / LOOKUPS;
    if (t < best) best = t;
  }
  weft_free(vm);
  return best * 1e9;
}

/* Nanoseconds to leave a region in the middle of an expression, three vectors of 8 waiting in registers. */
static double exit_ns(void) {
  enum { EXITS = 2000 };
  WeftVM *w = machine("mir");
  WeftValue *f = value(w, "fn f(a) = (a * 2) + ((a + 1) * ((a - 3) * time()))\nf"), *arg = value(w, "arange(8.0)");
  Vm *vm = w->vm;
  for (u32 i = 0; i < 100; i++) call(w, f, &arg, 1);
  Place *p = place_of(w, f);
  GuardEntry *entry = p->cache.entries.data[0];
  Region *region = entry->region;
  u64 *slots = calloc(region->nslots + 256u, sizeof *slots);
  Value scratch[256];
  double best = 1e9, empty = 1e9;
  must(w, slots);
  for (u32 r = 0; r < ROUNDS; r++) {
    double spent = 0, clock = 0;
    for (u32 i = 0; i < EXITS; i++) {
      bool returns;
      u32 exit = 0;
      must(w, frame_push(vm, value_keep(f->value), f->value.fn->code, 0, 0));
      Frame *frame = &vm->frames[vm->frame_count - 1];
      frame->base[0] = value_keep(arg->value);
      memset(slots, 0, sizeof *slots * region->nslots);
      must(w, cache_lookup(vm, &p->cache, frame, slots, scratch) == entry);
      must(w, region->run(vm, region, slots, &exit) == WEFT_OK &&
              region->graph->exits.exits.data[exit].kind == EXIT_break);
      double t = moment();
      must(w, region_leave(tracer_of(vm), region, exit, slots, &returns) == WEFT_OK && !returns);
      spent += moment() - t;
      frame_pop(vm);
      t = moment();
      clock += moment() - t;
    }
    if (spent < best) best = spent;
    if (clock < empty) empty = clock;
  }
  free(slots);
  weft_free(w);
  return (best - empty) / EXITS * 1e9;
}

/* Ten thousand calls that no entry of the function fits, against the interpreter alone: how many times as long. */
static double misses(void) {
  enum { CALLS = 10000, SEEN = 8, NEW = 4 };
  WeftVM *vm[2] = {machine("eager"), machine("mir")};
  WeftValue *f[2], *args[2][SEEN + NEW];
  double best[2] = {1e9, 1e9};
  for (u32 k = 0; k < 2; k++) {
    f[k] = value(vm[k], "fn f(x) = sum(x * 2 + x * x - 1)\nf");
    for (u32 i = 0; i < SEEN + NEW; i++) {
      char text[64];
      snprintf(text, sizeof text, "reshape(arange(8.0), (8%.*s))", (int)(3 * i),
               ", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1");
      if (i == 0) snprintf(text, sizeof text, "arange(8.0)");
      args[k][i] = value(vm[k], text);
    }
    for (u32 i = 0; i < SEEN * 1000; i++) call(vm[k], f[k], &args[k][i / 1000], 1);
  }
  for (u32 r = 0; r < ROUNDS; r++)
    for (u32 k = 0; k < 2; k++) {
      double t = seconds();
      for (u32 i = 0; i < CALLS; i++) call(vm[k], f[k], &args[k][SEEN + i % NEW], 1);
      t = seconds() - t;
      if (t < best[k]) best[k] = t;
    }
  for (u32 k = 0; k < 2; k++) weft_free(vm[k]);
  return best[1] / best[0];
}

/* A loop of a hundred operations on numbers, and an element read; and one of a hundred, half of them on arrays of
 * eight elements, which become four hundred on numbers. */
static const char *const on_numbers[] = {"s = s + t * 0.5\n", "t = t - s * x[i]\n", "s = s * 0.25 + i\n"},
    *const on_both[] = {"s = s + i * 0.5\n", "y = y * x\n"};

/* Microseconds that compiling takes, all of it from the recording on: of the first region of a VM, of a later one,
 * and of one of a hundred operations in a loop. Least of several VMs, each of which compiles LATER regions besides. */
static void compile_us(bool numbers, double *first, double *later, double *large) {
  enum { VMS = 8, LATER = 10, OPS = 100 };
  const char *const *steps = numbers ? on_numbers : on_both;
  u32 kinds = numbers ? COUNT_OF(on_numbers) : COUNT_OF(on_both);
  *first = *later = *large = 1e9;
  for (u32 r = 0; r < VMS; r++) {
    WeftVM *vm = machine("mir");
    vm->vm->tunables.hot_calls = 0;
    WeftValue *x = value(vm, "arange(8.0)"), *f;
    for (u32 i = 0; i <= LATER + 1; i++) {
      char text[128 + OPS * 20] = "fn f(x) { let s = 1.5\n let t = 0.5\n let y = x\n for i in 0..8 {\n";
      u32 ops = i <= LATER ? 4 : OPS / 2;
      for (u32 k = 0; k < ops; k++) strcat(text, steps[k % kinds]);
      snprintf(text + strlen(text), sizeof text - strlen(text), "}\ny * s + t + %u }\nf", i);
      f = value(vm, text);
      u64 before = tracer_of(vm->vm)->compiling_ns, regions = vm->vm->counters.at[STAT_compiles];
      call(vm, f, &x, 1);
      must(vm, vm->vm->counters.at[STAT_compiles] == regions + 1);
      double us = (double)(tracer_of(vm->vm)->compiling_ns - before) * 1e-3,
          *least = i == 0 ? first : i <= LATER ? later : large;
      if (us < *least) *least = us;
    }
    weft_free(vm);
  }
}

int main(void) {
  double first, later, numbers, both;
  compile_us(true, &first, &later, &numbers);
  printf("compile-first %.0f us\ncompile-later %.0f us\ncompile-of-100 %.0f us\n", first, later, numbers);
  compile_us(false, &first, &later, &both);
  printf("compile-mixed %.0f us\n", both);
  printf("region-call %.0f ns\n", region_ns());
  printf("guards-of-10 %.1f ns\n", guards_ns());
  printf("exit-of-3 %.0f ns\n", exit_ns());
  printf("misses %.3f times\n", misses());
  return 0;
}
