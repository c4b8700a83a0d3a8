/* test_budget.c — what capture may cost, with the heat that a host's program has: when places compile, how they take
 * misses, what they give up, what they keep alive. By counters, and by a clock that passes as the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/inner.h"
#include "tracer/tier/places.h"

static void swallow(void *context, const char *text, size_t length) {
  (void)context;
  (void)text;
  (void)length;
}

/* Time passes as the test says: `step` nanoseconds until each look at the clock, where `from` is given once
 * something was recorded. A run is timed from one look to the next. */
typedef struct Clock {
  u64 at, step;
  WeftVM *from;
} Clock;

static u64 tell(void *context) {
  Clock *c = context;
  return c->at += !c->from || c->from->vm->counters.at[STAT_graphs] ? c->step : 0;
}

static u64 stand_still(void *context) { return (void)context, 1; }

static WeftVM *machine(void) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backend = "mir";
  o.output = swallow;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  /* what the clock says has tests of its own (test_watch.c) */
  vm->vm->tunables.watch_percent = vm->vm->tunables.pace_percent = 0;
  tracer_use_clock(tracer_of(vm->vm), stand_still, NULL);
  return vm;
}

static int setup(void **state) {
  *state = machine();
  return 0;
}

static int teardown(void **state) {
  weft_free(*state);
  return 0;
}

static WeftValue *value(WeftVM *vm, const char *text) {
  WeftValue *v = NULL;
  if (weft_eval(vm, text, "test", &v) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
  return v;
}

static void calls(WeftVM *vm, WeftValue *f, WeftValue *const *args, size_t nargs, u32 times) {
  for (u32 i = 0; i < times; i++) {
    WeftValue *out;
    if (weft_call(vm, f, args, nargs, &out) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
    weft_release(vm, out);
  }
}

static void gives(WeftVM *vm, WeftValue *f, WeftValue *const *args, size_t nargs, const char *want) {
  WeftValue *out;
  assert_int_equal(weft_call(vm, f, args, nargs, &out), WEFT_OK);
  assert_string_equal(weft_show(vm, out), want);
  weft_release(vm, out);
}

static u64 stat(WeftVM *vm, u32 id) { return vm->vm->counters.at[id]; }

/* ---- heat ---------------------------------------------------------------------------------------------- */

static void A20_hot_at_thirty_calls(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = value(vm, "fn f(x) = sum(x * 2 + x)\nf"), *x = value(vm, "arange(4.0)");
  calls(vm, f, &x, 1, 29);
  assert_int_equal(stat(vm, STAT_compiles), 0);
  calls(vm, f, &x, 1, 1);
  assert_int_equal(stat(vm, STAT_compiles), 1);
  calls(vm, f, &x, 1, 100);
  assert_int_equal(stat(vm, STAT_compiles), 1);
}

static void A20_hot_at_sixty_trips(void **state) {
  WeftVM *vm = *state;
  WeftValue *g = value(vm, "fn g(n) { let s = 0.0; for i in 0..n { s = s + i * 0.5 }; s }\ng"), *n = value(vm, "59");
  calls(vm, g, &n, 1, 1);
  assert_int_equal(stat(vm, STAT_compiles), 0);
  calls(vm, g, &n, 1, 1);
  assert_int_equal(stat(vm, STAT_compiles), 1);
}

/* Once compiled, none of its trips is the interpreter's: it counts them at the back edge. */
static void A20_a_compiled_loop_is_entered_before_its_first_trip(void **state) {
  WeftVM *vm = *state;
  WeftValue *g = value(vm, "fn g(n) { let s = 0.0; for i in 0..n { s = s + i * 0.5 }; s }\ng"), *n = value(vm, "59"),
      *one = value(vm, "1");
  vm->vm->tunables.payback_calls = 0;
  calls(vm, g, &n, 1, 3);
  assert_int_equal(stat(vm, STAT_compiles), 1);
  const Code *code = g->value.fn->code;
  u32 site = 1;
  while (code->proto->sites[site].kind != SITE_LOOP) site++;
  i32 before = code->sites[site].count;
  u64 hits = stat(vm, STAT_hits);
  calls(vm, g, &n, 1, 20);
  assert_int_equal(code->sites[site].count, before);
  assert_int_equal(stat(vm, STAT_hits), hits + 20);
  calls(vm, g, &one, 1, 1); /* where there is but one trip it is not worth it */
  assert_int_equal(code->sites[site].count, before + 1);
  gives(vm, g, &n, 1, "855.5");
}

/* Where nothing is compiled each place asks once: what it counts is far below what it asks at. */
static void A20_without_a_backend_a_place_asks_once(void **state) {
  WeftVM *vm = *state;
  assert_true(tracer_use_backend(vm->vm, "eager"));
  WeftValue *g = value(vm, "fn g(n) { let s = 0.0; for i in 0..n { s = s + i * 0.5 }; s }\ng"), *n = value(vm, "2000");
  calls(vm, g, &n, 1, 200);
  const Code *code = g->value.fn->code;
  for (u32 i = 0; i < code->proto->nsites; i++) assert_true(code->sites[i].count < -(1 << 29));
  gives(vm, g, &n, 1, "999500.0");
}

static void A20_nothing_for_one_operation(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = value(vm, "fn f(x) = -x\nf"), *x = value(vm, "arange(4.0)");
  calls(vm, f, &x, 1, 200);
  assert_int_equal(stat(vm, STAT_traces), 1);
  assert_int_equal(stat(vm, STAT_compiles), 0);
  assert_int_equal(stat(vm, STAT_demotions), 1);
}

/* Of a function that is mapped the interpreter makes a call for each lane. */
static void A20_one_operation_of_many_lanes(void **state) {
  static const char *const mapped[] = {"vmap(v => -v)(x)", "vmap(v => v @ v)(x)", "vmap(v => v @ x)(x)"};
  (void)state;
  for (u32 i = 0; i < COUNT_OF(mapped); i++) {
    WeftVM *vm = machine();
    char text[64];
    snprintf(text, sizeof text, "fn f(x) = %s\nf", mapped[i]);
    WeftValue *f = value(vm, text), *x = value(vm, "ones((30, 30))");
    calls(vm, f, &x, 1, 200);
    assert_int_equal(stat(vm, STAT_compiles), 1);
    assert_int_equal(stat(vm, STAT_evictions), 0);
    assert_in_range(stat(vm, STAT_hits), 150, 200);
    weft_free(vm);
  }
}

/* Two operations on a number take the interpreter ten nanoseconds; no region is entered in that time. */
static void A20_what_does_not_pay_is_given_up(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = value(vm, "fn f(x) = x * 2 + 1\nf"), *x = value(vm, "1.5"), *s;
  vm->vm->tunables.decay_calls = 100;
  vm->vm->tunables.payback_calls = 512;
  calls(vm, f, &x, 1, 29 + 512);
  assert_int_equal(stat(vm, STAT_demotions), 1);
  assert_int_equal(stat(vm, STAT_evictions), 1);
  Place *p = place_find(&tracer_of(vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY);
  assert_non_null(p);
  assert_int_equal(p->cache.entries.count, 0);
  assert_int_equal(p->why, REASON_no_payback);
  u64 lookups = stat(vm, STAT_lookups);
  calls(vm, f, &x, 1, 99);
  assert_int_equal(stat(vm, STAT_lookups), lookups);
  gives(vm, f, &x, 1, "4.0");
  assert_int_equal(stat(vm, STAT_compiles), 1);
  calls(vm, f, &x, 1, 10); /* it decays: tried once more, and the next time twice as late */
  assert_int_equal(stat(vm, STAT_compiles), 2);
  calls(vm, f, &x, 1, 512);
  assert_int_equal(stat(vm, STAT_demotions), 2);
  assert_in_range(p->sleep, 101, 200);
  s = value(vm, "let s = trace.stats(f); (s.compiles, s.demotions, s.entered)");
  assert_string_equal(weft_show(vm, s), "(2, 1, 1024)");
}

/* A list that counts as short is packed whole at each entry, which takes 40 us or more, and the loop is left at every
 * tenth item: it stays only where its runs take as long. */
static void A20_what_only_packs_is_given_up(void **state) {
  (void)state;
  static const struct { u64 ns, demotions; } runs[] = {{0, 1}, {2000, 1}, {100000, 0}};
  for (u32 i = 0; i < COUNT_OF(runs); i++) {
    WeftVM *vm = machine();
    Clock clock = {.step = runs[i].ns};
    tracer_use_clock(tracer_of(vm->vm), tell, &clock);
    vm->vm->tunables.payback_calls = 1 << 20; /* what goes on behind the exits is not weighed */
    vm->vm->tunables.packed_items = 1 << 20;  /* the columns of longer lists are kept */
    WeftValue *f = value(vm, "let t = list(arange(20000) % 10)\n"
                             "fn f(n) { let i = 0; let k = 0; while i < n { if t[i] == 0 { print(i) }; k += i % 7; "
                             "i += 1 }; k }\nf");
    WeftValue *n = value(vm, "2000");
    gives(vm, f, &n, 1, "5995");
    assert_int_equal(stat(vm, STAT_demotions), runs[i].demotions);
    assert_true(runs[i].demotions ? stat(vm, STAT_exits) <= 32 : stat(vm, STAT_exits) > 150);
    weft_free(vm);
  }
}

/* jit(f) is compiled code whatever it costs. */
static void A20_what_was_given_up_is_compiled_when_asked_for(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = value(vm, "fn f(x) = x * 2 + 1\nf"), *x = value(vm, "1.5"), *g;
  calls(vm, f, &x, 1, 29 + 128);
  assert_int_equal(stat(vm, STAT_demotions), 1);
  g = value(vm, "jit(f)");
  u64 hits = stat(vm, STAT_hits);
  calls(vm, g, &x, 1, 600);
  assert_int_equal(stat(vm, STAT_hits), hits + 600);
  assert_int_equal(stat(vm, STAT_compiles), 2);
}

static void A20_what_pays_stays(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = value(vm, "fn f(x) = sum(sqrt(x * x + 1))\nf"), *x = value(vm, "arange(1000.0)");
  calls(vm, f, &x, 1, 2000);
  assert_int_equal(stat(vm, STAT_demotions), 0);
}

static u64 count_reads(void *context) { return ++*(u64 *)context, 1; }

/* What is short and has run thousands of times is timed at one run in 128: reading the clock costs as much as a third
 * of the run. */
static void A20_what_is_short_is_seldom_timed(void **state) {
  WeftVM *vm = *state;
  u64 reads = 0, before;
  tracer_use_clock(tracer_of(vm->vm), count_reads, &reads);
  vm->vm->tunables.payback_calls = 0; /* the interpreter is as fast on so little */
  WeftValue *f = value(vm, "fn f(x) = x * 2 + 1\nf"), *x = value(vm, "arange(8.0)");
  calls(vm, f, &x, 1, (1 << 14) + 200);
  assert_true(stat(vm, STAT_hits) > 1 << 14);
  before = reads;
  calls(vm, f, &x, 1, 1280);
  assert_int_equal(reads - before, 60); /* of 128: two runs from the look-up on, one of them within too */
}

/* Whether it is recording that takes too long, or what follows. */
static void A20_a_compilation_ends_with_its_time(void **state) {
  (void)state;
  static char text[200000];
  int at = sprintf(text, "fn f(x) {\n  let y = x\n");
  for (int i = 0; i < 4000; i++) at += sprintf(text + at, "  y = y * 0.5 + %d\n", i % 7);
  sprintf(text + at, "  y\n}\nf\n");
  for (u32 recorded = 0; recorded < 2; recorded++) {
    WeftVM *vm = machine();
    Clock clock = {.step = 10000000, .from = recorded ? vm : NULL};
    tracer_use_clock(tracer_of(vm->vm), tell, &clock);
    vm->vm->tunables.compile_ms = 1;
    WeftValue *f = value(vm, text), *x = value(vm, "arange(3.0)");
    calls(vm, f, &x, 1, 50);
    assert_int_equal(stat(vm, STAT_traces), 1);
    assert_int_equal(stat(vm, STAT_graphs), recorded);
    assert_int_equal(stat(vm, STAT_compiles), 0);
    assert_int_equal(stat(vm, STAT_demotions), 1);
    assert_int_equal(place_find(&tracer_of(vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY)->why, REASON_too_long);
    weft_free(vm);
  }
}

/* A single instruction may read thousands of parts. */
static void A20_reading_parts_ends_with_the_time(void **state) {
  (void)state;
  for (u32 late = 0; late < 2; late++) {
    WeftVM *vm = machine();
    Clock clock = {.step = late ? 10000000 : 0};
    tracer_use_clock(tracer_of(vm->vm), tell, &clock);
    vm->vm->tunables.compile_ms = 1;
    WeftValue *f = value(vm, "fn f(a, b, c) { let x = if c > 1 { a } else { b }; x[0][1] + x[40][2] }\nf");
    WeftValue *args[3] = {value(vm, "map(i => (i, i + 1, i + 2, i + 3), 0..60)"),
                          value(vm, "map(i => (i, i, i, i), 0..60)"), value(vm, "2")};
    u64 traces = stat(vm, STAT_traces), graphs = stat(vm, STAT_graphs);
    calls(vm, f, args, 3, 50);
    assert_int_equal(stat(vm, STAT_traces), traces + 1);
    assert_int_equal(stat(vm, STAT_graphs), graphs + !late);
    if (late)
      assert_int_equal(place_find(&tracer_of(vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY)->why,
                       REASON_too_long);
    weft_free(vm);
  }
}

/* All of a tree of records is not what a region relies on. */
static void A20_trees_are_not_taken_apart(void **state) {
  WeftVM *vm = *state;
  WeftValue *args[2] = {value(vm, "fn make(d) = if d == 0 { nil } else { {left: make(d - 1), key: d, right: "
                                  "make(d - 1)} }\nmake(9)"), value(vm, "2")};
  WeftValue *f = value(vm, "fn f(tree, c) { let x = if c > 1 { tree } else { nil }; "
                           "if type(x) == \"nil\" { c } else { x.key * c + c * c - c / 2 } }\nf");
  calls(vm, f, args, 2, 50);
  const Place *p = place_find(&tracer_of(vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY);
  assert_int_equal(p->compiles, 1);
  assert_in_range(guard_prog_count(p->cache.entries.data[0]->prog), 1, 100);
}

/* What is inlined counts against the budget of the whole tree. */
static void A20_one_budget_for_a_tree_of_calls(void **state) {
  WeftVM *vm = *state;
  static char text[20000];
  int at = sprintf(text, "fn leaf(x) {\n  let y = x\n");
  for (int i = 0; i < 40; i++) at += sprintf(text + at, "  y = y * x + %d\n", i % 7);
  at += sprintf(text + at, "  y\n}\nfn twig(x) = leaf(x) + leaf(x + 1)\nfn branch(x) = twig(x) + twig(x + 2)\n"
                           "fn tree(x) = branch(x) - branch(x - 1)\ntree\n");
  vm->vm->tunables.graph_nodes = 200;
  WeftValue *f = value(vm, text), *x = value(vm, "arange(3.0) / 8");
  WeftVM *other = machine();
  vm->vm->tunables.payback_calls = 0;
  WeftValue *g = value(other, text), *y = value(other, "arange(3.0) / 8"), *want;
  tracer_use_backend(other->vm, "eager");
  assert_int_equal(weft_call(other, g, &y, 1, &want), WEFT_OK);
  calls(vm, f, &x, 1, 100);
  gives(vm, f, &x, 1, weft_show(other, want));
  assert_true(stat(vm, STAT_graphs) > 0);
  assert_true(stat(vm, STAT_nodes) <= 220 * stat(vm, STAT_graphs));
  weft_free(other);
}

/* ---- misses -------------------------------------------------------------------------------------------- */

static WeftValue *of_rank(WeftVM *vm, u32 rank) {
  char text[80];
  snprintf(text, sizeof text, "reshape(arange(8.0), (8,%.*s))", (int)(2 * (rank - 1)), "1,1,1,1,1,1,1,1,1,1,1,1,1,1");
  return value(vm, text);
}

static void B8_ten_thousand_misses_in_a_row_cost_few_look_ups(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = value(vm, "fn f(x) = sum(x * 2 + x * x - 1)\nf"), *x[14];
  vm->vm->tunables.payback_calls = 0;
  vm->vm->tunables.compile_gain = 0;
  for (u32 i = 0; i < 14; i++) x[i] = of_rank(vm, i + 1);
  FILE *said = tmpfile();
  int errors = dup(2);
  assert_true(said && errors >= 0 && dup2(fileno(said), 2) == 2);
  for (u32 i = 0; i < 14; i++) calls(vm, f, &x[i], 1, 2000);
  assert_true(dup2(errors, 2) == 2 && close(errors) == 0);
  assert_int_equal(lseek(fileno(said), 0, SEEK_END), 0); /* nothing is written unasked: the log has it */
  assert_int_equal(fclose(said), 0);
  assert_int_equal(stat(vm, STAT_compiles), vm->vm->tunables.cache_limit);
  assert_int_equal(stat(vm, STAT_recompiles), vm->vm->tunables.cache_limit - 1);
  assert_int_equal(stat(vm, STAT_demotions), 1);
  assert_int_equal(stat(vm, STAT_warnings), 1);
  u64 lookups = stat(vm, STAT_lookups), compiles = stat(vm, STAT_compiles);
  for (u32 i = 0; i < 10000; i++) calls(vm, f, &x[10 + i % 4], 1, 1);
  assert_int_equal(stat(vm, STAT_compiles), compiles);
  assert_true(stat(vm, STAT_lookups) - lookups < 40);
  gives(vm, f, &x[13], 1, "188.0");
  calls(vm, f, &x[1], 1, 600); /* what fits is found again */
  u64 hits = stat(vm, STAT_hits);
  calls(vm, f, &x[1], 1, 10);
  assert_int_equal(stat(vm, STAT_hits), hits + 10);
}

static void B8_recompiles_wait_longer_each_time(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = value(vm, "fn f(x) = sum(x * 2 + x * x - 1)\nf"), *x[8];
  vm->vm->tunables.payback_calls = 0;
  vm->vm->tunables.compile_gain = 0;
  for (u32 i = 0; i < 8; i++) x[i] = of_rank(vm, i + 1);
  calls(vm, f, &x[0], 1, 30);
  calls(vm, f, &x[1], 1, 1); /* the first two at once */
  calls(vm, f, &x[2], 1, 1);
  assert_int_equal(stat(vm, STAT_recompiles), 2);
  calls(vm, f, &x[3], 1, 20);
  assert_int_equal(stat(vm, STAT_recompiles), 2);
  calls(vm, f, &x[3], 1, 40);
  assert_int_equal(stat(vm, STAT_recompiles), 3);
  calls(vm, f, &x[4], 1, 50);
  assert_int_equal(stat(vm, STAT_recompiles), 3);
  vm->vm->tunables.compile_gain = 10; /* and until the misses have lasted ten times as long as a compilation */
  calls(vm, f, &x[4], 1, 3000);
  assert_int_equal(stat(vm, STAT_recompiles), 3);
  calls(vm, f, &x[4], 1, 20000);
  assert_int_equal(stat(vm, STAT_recompiles), 4);
}

static void B8_what_keeps_missing_is_left_open(void **state) {
  WeftVM *vm = *state;
  vm->vm->tunables.payback_calls = 0;
  WeftValue *f = value(vm, "fn f(x, axis) = sum(x * 2 + 1, axis=axis)\nf"),
      *args[2] = {value(vm, "ones((2, 2, 2, 2, 2, 2))"), NULL}, *axis[6];
  for (u32 i = 0; i < 6; i++) {
    char text[8];
    snprintf(text, sizeof text, "%u", i);
    axis[i] = value(vm, text);
  }
  for (u32 i = 0; i < 6; i++) {
    args[1] = axis[i];
    calls(vm, f, args, 2, 100);
  }
  assert_int_equal(stat(vm, STAT_generalised), 1);
  assert_int_equal(stat(vm, STAT_recompiles), 3);
  assert_int_equal(stat(vm, STAT_warnings), 0);
  u64 misses = stat(vm, STAT_misses);
  for (u32 i = 0; i < 600; i++) {
    args[1] = axis[i % 6];
    calls(vm, f, args, 2, 1);
  }
  assert_int_equal(stat(vm, STAT_misses), misses);
}

/* Each function that a solver is given is called by code of its own, until little room is left: one more takes all
 * others. */
static void B8_functions_that_are_called_are_known(void **state) {
  WeftVM *vm = *state;
  enum { KINDS = 12, KNOWN = 6 };
  vm->vm->tunables.payback_calls = 0;
  vm->vm->tunables.compile_gain = 0;
  WeftValue *solve = value(vm, "fn solve(f, y) { let c = sqrt(y * y + 1); let a = f(c); sum(a * a + y) }\nsolve"),
      *args[2] = {NULL, value(vm, "arange(4.0)")}, *f[KINDS];
  assert_int_equal(vm->vm->tunables.cache_limit, KNOWN + 2);
  for (u32 i = 0; i < KINDS; i++) {
    char text[60];
    snprintf(text, sizeof text, "let k = %u\ny => sin(y) * k - %u", i, i);
    f[i] = value(vm, text);
  }
  for (u32 i = 0; i < KNOWN; i++) {
    args[0] = f[i];
    calls(vm, solve, args, 2, 4000);
    assert_int_equal(stat(vm, STAT_recompiles), i);
  }
  assert_int_equal(stat(vm, STAT_breaks), 0);
  assert_int_equal(stat(vm, STAT_exits), 0);
  assert_int_equal(stat(vm, STAT_generalised), 0);
  for (u32 i = KNOWN; i < KINDS; i++) {
    args[0] = f[i];
    calls(vm, solve, args, 2, 8000);
  }
  assert_int_equal(stat(vm, STAT_recompiles), KNOWN);
  assert_int_equal(stat(vm, STAT_generalised), 1);
  assert_int_equal(stat(vm, STAT_warnings), 0);
  u64 exits = stat(vm, STAT_exits), hits = stat(vm, STAT_hits), misses = stat(vm, STAT_misses);
  assert_true(exits > 0);
  for (u32 i = 0; i < 10 * KNOWN; i++) { /* the last entry takes nothing away from the others */
    args[0] = f[i % KNOWN];
    calls(vm, solve, args, 2, 1);
  }
  assert_int_equal(stat(vm, STAT_exits), exits);
  assert_int_equal(stat(vm, STAT_hits), hits + 10 * KNOWN);
  args[0] = f[KINDS - 1];
  calls(vm, solve, args, 2, 10);
  assert_true(stat(vm, STAT_exits) >= exits + 10);
  assert_int_equal(stat(vm, STAT_misses), misses);
}

static void A10_a_hundred_sizes_are_one_compilation(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = value(vm, "fn f(x, w) = sum(sqrt(x * w + 1)) / len(x)\nf");
  for (u32 n = 0; n < 100; n++) {
    char text[64];
    snprintf(text, sizeof text, "arange(%u) * 0.5", n);
    WeftValue *x = value(vm, text), *args[2] = {x, x};
    calls(vm, f, args, 2, 3);
  }
  assert_int_equal(stat(vm, STAT_compiles), 1);
  WeftValue *s = value(vm, "let s = trace.stats(f); (s.compiles, s.recompiles)");
  assert_string_equal(weft_show(vm, s), "(1, 0)");
}

static void B5_a_swept_rate_is_one_compilation(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = value(vm, "fn f(w, g, rate) = w - g * rate\nf"),
      *args[3] = {value(vm, "ones(5)"), value(vm, "arange(5.0)"), NULL};
  for (u32 n = 0; n < 100; n++) {
    char text[32];
    snprintf(text, sizeof text, "%u * 0.01", n);
    args[2] = value(vm, text);
    calls(vm, f, args, 3, 1);
  }
  assert_int_equal(stat(vm, STAT_compiles), 1);
  assert_int_equal(stat(vm, STAT_misses), 0);
}

static void B2_a_closure_made_anew_is_one_compilation(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = value(vm, "fn make(k) = x => x * k + 1\nfn f(g, x) = sum(g(x) * 2)\nf"), *make = value(vm, "make"),
      *args[2] = {NULL, value(vm, "arange(5.0)")};
  for (u32 n = 0; n < 100; n++) {
    char text[32];
    snprintf(text, sizeof text, "%u * 0.5", n);
    WeftValue *k = value(vm, text);
    assert_int_equal(weft_call(vm, make, &k, 1, &args[0]), WEFT_OK);
    calls(vm, f, args, 2, 1);
  }
  assert_int_equal(place_find(&tracer_of(vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY)->compiles, 1);
  assert_int_equal(stat(vm, STAT_recompiles), 0);
}

static void B4_cheap_guards_first_and_then_those_that_failed(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = value(vm, "fn f(a, b, c) = sum(a * b + c)\nf"),
      *args[3] = {value(vm, "ones(4)"), value(vm, "arange(4.0)"), value(vm, "ones(4)")};
  calls(vm, f, args, 3, 40);
  Place *p = place_find(&tracer_of(vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY);
  const GuardProg *prog = p->cache.entries.data[0]->prog;
  u32 last_tag = 0, first_size = UINT32_MAX;
  for (u32 i = 0; i < guard_prog_count(prog); i++) {
    Buf b;
    buf_init(&b, &vm->vm->alloc);
    guard_print(prog, i, &b);
    if (strncmp(buf_text(&b), "type(", 5) == 0) last_tag = i;
    if (strncmp(buf_text(&b), "size(", 5) == 0 && first_size == UINT32_MAX) first_size = i;
    buf_free(&b);
  }
  assert_true(last_tag > 0 && first_size > last_tag && first_size != UINT32_MAX);
  args[2] = value(vm, "arange(4)");
  calls(vm, f, args, 3, 1);
  assert_int_equal(stat(vm, STAT_recompiles), 1);
  Buf b;
  buf_init(&b, &vm->vm->alloc);
  guard_print(p->cache.entries.data[0]->prog, 0, &b);
  assert_string_equal(buf_text(&b), "type(c)");
  buf_free(&b);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static void A21_a_chain_of_steps_holds_one_array(void **state) {
  WeftVM *vm = *state;
  enum { BYTES = 100000 * 8 };
  WeftValue *f = value(vm, "fn step(x) = sqrt(x * 2 + 1)\n"
                           "fn f(n) { let x = zeros(n); for k in 0..80 { x = step(x); print(k) }; x[0] }\nf"),
      *n = value(vm, "100000");
  calls(vm, f, &n, 1, 1);
  u64 before = stat(vm, STAT_reused), allocs = vm->vm->stats.array_allocs;
  vm->vm->stats.bytes_peak = vm->vm->stats.bytes_now;
  u64 held = vm->vm->stats.bytes_now;
  calls(vm, f, &n, 1, 1);
  assert_true(stat(vm, STAT_reused) - before >= 79);
  assert_true(vm->vm->stats.array_allocs - allocs <= 4);
  assert_true(vm->vm->stats.bytes_peak - held < 3 * BYTES / 2);
}

static void A21_what_the_caller_keeps_is_not_written_over(void **state) {
  WeftVM *vm = *state;
  WeftValue *f = value(vm, "fn step(x) = x * 2 + 1\nfn f(n) { let x = ones(n); let y = x; "
                           "for k in 0..80 { y = step(x); print(k) }; (x[0], y[0]) }\nf"), *n = value(vm, "1000");
  gives(vm, f, &n, 1, "(1.0, 3.0)");
}

typedef struct Held {
  size_t bytes;
} Held;

static void *counted(void *context, void *p, size_t old_size, size_t new_size) {
  Held *h = context;
  if (!new_size) {
    free(p);
    h->bytes -= old_size;
    return NULL;
  }
  void *q = realloc(p, new_size);
  if (q) h->bytes += new_size - old_size;
  return q;
}

static void A27_regions_free_what_they_own(void **state) {
  (void)state;
  Held held[2] = {{0}, {0}};
  WeftVM *vm[2];
  WeftValue *f[2], *x[2];
  for (u32 k = 0; k < 2; k++) {
    WeftOptions o = WEFT_OPTIONS_INIT;
    o.backend = "mir";
    o.resize = counted;
    o.resize_context = &held[k];
    vm[k] = weft_new(&o);
    assert_non_null(vm[k]);
    vm[k]->vm->tunables.watch_percent = vm[k]->vm->tunables.pace_percent = 0;
    f[k] = value(vm[k], "fn f(x) { let s = 0.0; for v in x { s = s + v * 0.5 }; s + sum(x * 2 + 1) }\nf");
    x[k] = value(vm[k], "arange(100.0)");
    calls(vm[k], f[k], &x[k], 1, 50);
    assert_true(stat(vm[k], STAT_compiles) > 0);
  }
  weft_free(vm[0]); /* one goes, the other runs on */
  assert_int_equal(held[0].bytes, 0);
  gives(vm[1], f[1], &x[1], 1, "12475.0");
  Place *p = place_find(&tracer_of(vm[1]->vm)->places, f[1]->value.fn->code, 0, RECORD_ENTRY);
  assert_non_null(p);
  u64 compiles = stat(vm[1], STAT_compiles);
  while (p->cache.entries.count) cache_invalidate(vm[1]->vm, &p->cache, p->cache.entries.data[0]);
  gives(vm[1], f[1], &x[1], 1, "12475.0"); /* evicted: traced again */
  calls(vm[1], f[1], &x[1], 1, 40);
  assert_true(stat(vm[1], STAT_compiles) > compiles);
  weft_free(vm[1]);
  assert_int_equal(held[1].bytes, 0);
}

static void A27_no_trace_keeps_data_alive(void **state) {
  WeftVM *vm = *state;
  enum { BYTES = 1000000 * 8 };
  u64 before = vm->vm->stats.bytes_now;
  WeftValue *f = value(vm, "let w = zeros(1000000)\nfn f(x) = sum(x * 2 + w)\nf"), *x = value(vm, "ones(1000000)");
  calls(vm, f, &x, 1, 40);
  assert_true(stat(vm, STAT_compiles) > 0);
  assert_true(vm->vm->stats.bytes_now - before >= 2 * BYTES);
  weft_release(vm, x);
  weft_release(vm, value(vm, "w = 0.0"));
  assert_true(vm->vm->stats.bytes_now - before < BYTES / 2);
}

/* Functions that go take their regions, and those that rely on them, along. */
static void A27_functions_take_their_regions_along(void **state) {
  WeftVM *vm = *state;
  WeftValue *x = value(vm, "arange(10.0)");
  u64 settled = 0;
  for (u32 i = 0; i < 60; i++) {
    char text[80];
    snprintf(text, sizeof text, "fn f(x) = sum(sqrt(x * %u + 1)) - max(x)\nf", i + 2);
    WeftValue *f = value(vm, text);
    calls(vm, f, &x, 1, 40);
    assert_int_equal(stat(vm, STAT_compiles), i + 1);
    weft_release(vm, f);
    if (i == 20) settled = vm->vm->stats.bytes_now;
  }
  assert_true(vm->vm->stats.bytes_now < settled + 128 * 1024);
  assert_true(tracer_of(vm->vm)->places.count <= 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(A20_hot_at_thirty_calls, setup, teardown),
    cmocka_unit_test_setup_teardown(A20_hot_at_sixty_trips, setup, teardown),
    cmocka_unit_test_setup_teardown(A20_a_compiled_loop_is_entered_before_its_first_trip, setup, teardown),
    cmocka_unit_test_setup_teardown(A20_without_a_backend_a_place_asks_once, setup, teardown),
    cmocka_unit_test_setup_teardown(A20_nothing_for_one_operation, setup, teardown),
    cmocka_unit_test(A20_one_operation_of_many_lanes),
    cmocka_unit_test_setup_teardown(A20_what_does_not_pay_is_given_up, setup, teardown),
    cmocka_unit_test(A20_what_only_packs_is_given_up),
    cmocka_unit_test_setup_teardown(A20_what_was_given_up_is_compiled_when_asked_for, setup, teardown),
    cmocka_unit_test_setup_teardown(A20_what_pays_stays, setup, teardown),
    cmocka_unit_test_setup_teardown(A20_what_is_short_is_seldom_timed, setup, teardown),
    cmocka_unit_test(A20_a_compilation_ends_with_its_time),
    cmocka_unit_test(A20_reading_parts_ends_with_the_time),
    cmocka_unit_test_setup_teardown(A20_trees_are_not_taken_apart, setup, teardown),
    cmocka_unit_test_setup_teardown(A20_one_budget_for_a_tree_of_calls, setup, teardown),
    cmocka_unit_test_setup_teardown(B8_ten_thousand_misses_in_a_row_cost_few_look_ups, setup, teardown),
    cmocka_unit_test_setup_teardown(B8_recompiles_wait_longer_each_time, setup, teardown),
    cmocka_unit_test_setup_teardown(B8_what_keeps_missing_is_left_open, setup, teardown),
    cmocka_unit_test_setup_teardown(B8_functions_that_are_called_are_known, setup, teardown),
    cmocka_unit_test_setup_teardown(A10_a_hundred_sizes_are_one_compilation, setup, teardown),
    cmocka_unit_test_setup_teardown(B5_a_swept_rate_is_one_compilation, setup, teardown),
    cmocka_unit_test_setup_teardown(B2_a_closure_made_anew_is_one_compilation, setup, teardown),
    cmocka_unit_test_setup_teardown(B4_cheap_guards_first_and_then_those_that_failed, setup, teardown),
    cmocka_unit_test_setup_teardown(A21_a_chain_of_steps_holds_one_array, setup, teardown),
    cmocka_unit_test_setup_teardown(A21_what_the_caller_keeps_is_not_written_over, setup, teardown),
    cmocka_unit_test(A27_regions_free_what_they_own),
    cmocka_unit_test_setup_teardown(A27_no_trace_keeps_data_alive, setup, teardown),
    cmocka_unit_test_setup_teardown(A27_functions_take_their_regions_along, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
