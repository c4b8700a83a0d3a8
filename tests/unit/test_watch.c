/* test_watch.c — what the tier does by the clock: compiled code is timed against the interpreter, and compiling
 * takes a share of the time that the program ran. The clock is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/inner.h"
#include "tracer/report/explain.h"
#include "tracer/tier/budget.h"
#include "tracer/tier/places.h"
#include "tracer/tier/cost.h"
#include "tracer/tier/decide.h"
#include "tracer/tier/sample.h"

/* Time passes as the test says: `slow` for each region that was run since the last look at the clock; `step` when none
 * was. */
typedef struct Clock {
  WeftVM *vm;
  u64 at, step, slow, seen;
} Clock;

static u64 tell(void *context) {
  Clock *c = context;
  u64 runs = c->vm->vm->counters.at[STAT_hits];
  c->at += runs == c->seen ? c->step : (runs - c->seen) * c->slow;
  c->seen = runs;
  return c->at;
}

static Clock *machine(u64 step, u64 slow) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backend = "mir";
  Clock *c = calloc(1, sizeof *c);
  assert_non_null(c);
  c->vm = weft_new(&o);
  assert_non_null(c->vm);
  c->vm->vm->tunables.compile_first_ns = 0; /* its own test sets it */
  c->step = step;
  c->slow = slow;
  tracer_use_clock(tracer_of(c->vm->vm), tell, c);
  return c;
}

static void end(Clock *c) {
  weft_free(c->vm);
  free(c);
}

static WeftValue *value(WeftVM *vm, const char *text) {
  WeftValue *v = NULL;
  if (weft_eval(vm, text, "test", &v) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
  return v;
}

static void calls(WeftVM *vm, WeftValue *f, WeftValue *x, u32 times) {
  for (u32 i = 0; i < times; i++) {
    WeftValue *out;
    if (weft_call(vm, f, &x, 1, &out) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
    weft_release(vm, out);
  }
}

static u64 stat(const Clock *c, u32 id) { return c->vm->vm->counters.at[id]; }

static void A20_a_region_that_is_slower_rests(void **state) {
  (void)state;
  Clock *c = machine(10, 100000);
  c->vm->vm->tunables.pace_percent = 0; /* it is compiled at its thirtieth call */
  c->vm->vm->tunables.watch_rest = 2; /* 64 times as long, as it loses by so much */
  WeftValue *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf"), *x = value(c->vm, "arange(100.0)");
  calls(c->vm, f, x, 30 + 60);
  assert_int_equal(stat(c, STAT_compiles), 1);
  assert_int_equal(stat(c, STAT_rests), 1);
  Place *p = place_find(&tracer_of(c->vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY);
  assert_non_null(p);
  assert_int_equal(p->cache.entries.count, 1); /* it is kept */
  assert_true(tracer_of(c->vm->vm)->losers_ns > 0);
  assert_int_equal(tracer_of(c->vm->vm)->losers_ns, ((Region *)p->cache.entries.data[0]->region)->compile_ns);
  u64 hits = stat(c, STAT_hits);
  calls(c->vm, f, x, 20);
  assert_int_equal(stat(c, STAT_hits), hits);
  c->slow = c->step = 0; /* times change */
  calls(c->vm, f, x, 4000);
  assert_true(stat(c, STAT_hits) > hits + 1000);
  assert_int_equal(stat(c, STAT_compiles), 1);
  end(c);
}

/* A loop whose runs have no second trip, and one whose trips have others of it between them, are not timed at each
 * visit. */
static void A20_samples_without_an_end_get_rare(void **state) {
  (void)state;
  static const char *const programs[] = {"fn f(n) { let s = \"\"\n while len(s) < 1 { s += n }\n s }\nf",
                                         "fn f(n) { for i in 0..len(n) { f(n[1:]) }\n n }\nf"};
  for (u32 k = 0; k < COUNT_OF(programs); k++) {
    Clock *c = machine(10, 0);
    WeftValue *f = value(c->vm, programs[k]), *x = value(c->vm, k ? "\"abcdefg\"" : "\"a\"");
    calls(c->vm, f, x, k ? 1 : 4000);
    assert_int_equal(stat(c, STAT_traces), 0);
    assert_in_range(c->at / 10, 1, 500);
    end(c);
  }
}

static void A20_a_region_that_loses_again_and_again_is_given_up(void **state) {
  (void)state;
  Clock *c = machine(10, 100000);
  c->vm->vm->tunables.pace_percent = 0; /* it is compiled at its thirtieth call */
  c->vm->vm->tunables.watch_rest = 1;
  WeftValue *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf"), *x = value(c->vm, "arange(100.0)");
  calls(c->vm, f, x, 8000);
  assert_int_equal(stat(c, STAT_rests), 4);
  assert_int_equal(stat(c, STAT_demotions), 1);
  Place *p = place_find(&tracer_of(c->vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY);
  assert_int_equal(p->cache.entries.count, 0);
  assert_int_equal(p->why, REASON_no_payback);
  end(c);
}

static void A20_a_region_that_is_not_slower_stays(void **state) {
  (void)state;
  Clock *c = machine(0, 0);
  c->vm->vm->tunables.pace_percent = 0; /* it is compiled at its thirtieth call */
  WeftValue *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf"), *x = value(c->vm, "arange(100.0)");
  calls(c->vm, f, x, 4000);
  assert_int_equal(stat(c, STAT_rests), 0);
  assert_int_equal(stat(c, STAT_demotions), 0);
  assert_true(stat(c, STAT_hits) > 3900); /* few visits are made without it */
  end(c);
}

/* What operations are thought to take says that the region loses; that its visits took less, once they were timed,
 * tells more. */
static void A20_what_was_timed_tells_more_than_what_operations_are_thought_to_take(void **state) {
  (void)state;
  for (u32 timed = 0; timed < 2; timed++) {
    Clock *c = machine(1000, 10);
    c->vm->vm->tunables.pace_percent = 0;
    c->vm->vm->tunables.payback_percent = 0;
    c->vm->vm->tunables.watch_percent = 0;
    WeftValue *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf"), *x = value(c->vm, "arange(20.0)");
    calls(c->vm, f, x, 60);
    assert_in_range(stat(c, STAT_hits), 1, 100);
    place_find(&tracer_of(c->vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY)->watch.won = (u8)timed;
    calls(c->vm, f, x, 2000);
    assert_int_equal(stat(c, STAT_demotions), !timed);
    if (timed) assert_true(stat(c, STAT_hits) > 1900);
    end(c);
  }
}

/* What stands behind a call that no region leads to is sampled with the next call: it waits longer than what is
 * measured alone would. */
static void A19_behind_a_call_that_nothing_leads_to_compiling_waits_longer(void **state) {
  (void)state;
  Clock *c = machine(20000, 20000);
  WeftValue *f = value(c->vm, "fn note(s) = time()\nfn f(x) {\n  note(\"A\")\n  let c = cos(x) * 2\n"
                              "  let d = sum(c * c + x) - sum(x) / 2 + max(c)\n  note(\"B\")\n  d\n}\nf");
  WeftValue *x = value(c->vm, "arange(1000.0)");
  u32 passes = 0;
  while (!stat(c, STAT_compiles) && passes < 100000) {
    calls(c->vm, f, x, 1);
    passes++;
  }
  assert_in_range(passes, 100, 2000); /* 34 where that is not thought of */
  end(c);
}

/* Time passes with the arrays that are made: here the interpreter's. */
static u64 tell_arrays(void *context) {
  Clock *c = context;
  return c->vm->vm->stats.array_allocs * c->step;
}

/* Where the interpreter takes very long, once is enough; where it is short, more visits tell. */
static void A20_a_long_visit_is_not_made_twice(void **state) {
  (void)state;
  for (u32 longer = 0; longer < 2; longer++) {
    Clock *c = machine(longer ? 20000000 : 1000000, 0);
    tracer_use_clock(tracer_of(c->vm->vm), tell_arrays, c);
    c->vm->vm->tunables.pace_percent = 0;
    WeftValue *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf"), *x = value(c->vm, "arange(100.0)");
    calls(c->vm, f, x, 30);
    assert_int_equal(stat(c, STAT_compiles), 1);
    u64 hits = stat(c, STAT_hits);
    calls(c->vm, f, x, 300);
    assert_int_equal(300 - (stat(c, STAT_hits) - hits), longer ? 1 : 4);
    end(c);
  }
}

/* How many trips of a `while` loop a region ran cannot be told: what it takes until the frame returns tells. */
static void A20_a_loop_that_is_left_all_the_time_rests(void **state) {
  (void)state;
  Clock *c = machine(10, 100000);
  c->vm->vm->tunables.pace_percent = 0;
  c->vm->vm->tunables.hot_calls = 1 << 20;
  WeftValue *f = value(c->vm, "fn f(n) { let s = \"\"; let i = 0; while i < n { if i % 4 == 3 { s = upper(s) + str(i) "
                              "}; i += 1 }; len(s) }\nf"), *x = value(c->vm, "40");
  calls(c->vm, f, x, 400);
  assert_true(stat(c, STAT_exits) < 100);
  assert_true(stat(c, STAT_rests) >= 1);
  end(c);
}

/* Going in and out takes as long as some trips: shorter runs are left to the interpreter, which is not even asked. */
static void A20_short_runs_are_not_entered(void **state) {
  (void)state;
  static const char *const loops[] = {"for i in 0..n { s += i * i % 7 }",
                                      "let i = 0; while i < n { s += i * i % 7; i += 1 }"};
  for (u32 i = 0; i < COUNT_OF(loops); i++) {
    Clock *c = machine(20000, 100000);
    char text[160];
    c->vm->vm->tunables.watch_percent = 0;
    c->vm->vm->tunables.warm_calls = c->vm->vm->tunables.hot_calls = 1 << 20; /* the loop alone */
    snprintf(text, sizeof text, "fn f(n) { let s = 0; %s; s }\nf", loops[i]);
    WeftValue *f = value(c->vm, text), *many = value(c->vm, "4000"), *few = value(c->vm, "4");
    calls(c->vm, f, many, 20);
    assert_int_equal(stat(c, STAT_compiles), 1);
    u64 hits = stat(c, STAT_hits);
    assert_true(hits >= 15);
    calls(c->vm, f, few, 20);
    u64 probed = stat(c, STAT_hits) - hits; /* runs that were long were entered at once */
    calls(c->vm, f, few, 400);
    assert_true(stat(c, STAT_hits) - hits - probed <= 40);
    hits = stat(c, STAT_hits);
    calls(c->vm, f, many, 40);
    assert_true(stat(c, STAT_hits) - hits >= 30);
    end(c);
  }
}

/* A frame that an error takes away takes what was timed in it along. */
static void A20_errors_leave_nothing_timed(void **state) {
  (void)state;
  Clock *c = machine(10, 0);
  value(c->vm, "fn f(x) { if x > 5 { error(\"no\") }; x * 2 + x * x }\n"
               "fn g(n) { let bad = 0; for i in 0..n { try { f(i % 9) } catch e { bad += 1 } }; bad }\n");
  assert_string_equal(weft_show(c->vm, value(c->vm, "g(3000)")), "999");
  assert_true(tracer_of(c->vm->vm)->watch_count <= 2);
  assert_string_equal(weft_show(c->vm, value(c->vm, "g(9)")), "3");
  end(c);
}

/* A function that takes no time worth mentioning is never compiled; one that takes long is, the sooner the longer it
 * takes. */
static void A20_a_place_is_compiled_when_its_time_would_pay_for_it(void **state) {
  (void)state;
  static const struct { u64 step; u32 never, then; } cases[] = {{0, 5000, 0}, {20000, 8, 100}, {2000000, 2, 8}};
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    Clock *c = machine(cases[i].step, 0);
    c->vm->vm->tunables.watch_percent = 0;
    WeftValue *x = value(c->vm, "arange(100.0)"), *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf");
    calls(c->vm, f, x, cases[i].never);
    assert_int_equal(stat(c, STAT_traces), 0);
    calls(c->vm, f, x, cases[i].then);
    assert_int_equal(stat(c, STAT_compiles), cases[i].then > 0);
    end(c);
  }
}

/* What works on large arrays is looked at from its second call on. */
static void A20_large_arguments_are_looked_at_early(void **state) {
  (void)state;
  for (u32 large = 0; large < 2; large++) {
    Clock *c = machine(2000000, 0);
    c->vm->vm->tunables.watch_percent = 0;
    c->vm->vm->large_left = INT64_MAX; /* by its calls alone (test_large.c) */
    WeftValue *x = value(c->vm, large ? "arange(200000.0)" : "arange(200.0)"),
        *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf");
    calls(c->vm, f, x, 2);
    assert_int_equal(stat(c, STAT_traces), 0);
    calls(c->vm, f, x, 2);
    assert_int_equal(stat(c, STAT_compiles), large);
    end(c);
  }
}

/* Once much was spent on compiling, the program has to run on before more is. */
static void A20_compiling_takes_a_share_of_the_time(void **state) {
  (void)state;
  Clock *c = machine(400000, 0);
  c->vm->vm->tunables.watch_percent = 0;
  WeftValue *x = value(c->vm, "arange(100.0)"), *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf"),
      *g = value(c->vm, "fn g(x) = sum(sqrt(x * x + 2))\ng");
  calls(c->vm, f, x, 30);
  assert_int_equal(stat(c, STAT_compiles), 1);
  Tracer *t = tracer_of(c->vm->vm);
  t->compiling_ns += 1000000000;
  calls(c->vm, g, x, 300);
  assert_int_equal(stat(c, STAT_compiles), 1);
  c->at += 16000000000;
  calls(c->vm, g, x, 3000);
  assert_int_equal(stat(c, STAT_compiles), 2);
  end(c);
}

/* As long as nothing lost that is as much as the program ran: each place waited for what it costs. */
static void A20_what_lost_leaves_less_time_for_compiling(void **state) {
  (void)state;
  for (u32 lost = 0; lost < 2; lost++) {
    Clock *c = machine(400000, 0);
    Tracer *t = tracer_of(c->vm->vm);
    c->vm->vm->tunables.watch_percent = 0;
    t->compilings = 1000;
    t->compiling_wall = t->compiling_ns = 1000000000;
    c->at += 3000000000;
    t->losers_ns = lost;
    WeftValue *x = value(c->vm, "arange(100.0)"), *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf");
    calls(c->vm, f, x, 300);
    assert_int_equal(stat(c, STAT_compiles), !lost);
    end(c);
  }
}

/* What the first compilation sets up is paid for as well. */
static void A20_the_first_compilation_waits(void **state) {
  (void)state;
  Clock *c = machine(50000, 0);
  Tunables *tun = &c->vm->vm->tunables;
  tun->watch_percent = 0;
  tun->compile_first_ns = 1000000000;
  WeftValue *x = value(c->vm, "arange(100.0)"), *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf");
  calls(c->vm, f, x, 300);
  assert_int_equal(stat(c, STAT_traces), 0);
  tun->compile_first_ns = 0;
  calls(c->vm, f, x, 30000);
  assert_int_equal(stat(c, STAT_compiles), 1);
  end(c);
}

/* What is recorded may turn out to be dearer than the code said: then the place waits for that. */
static void A20_what_comes_in_and_goes_out_is_paid_for(void **state) {
  (void)state;
  Clock *c = machine(20000, 0);
  c->vm->vm->tunables.watch_percent = 0;
  WeftValue *x = value(c->vm, "arange(100.0)"), *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf");
  calls(c->vm, f, x, 8);
  assert_int_equal(stat(c, STAT_traces), 0);
  Tracer *t = tracer_of(c->vm->vm);
  Place *p = place_find(&t->places, f->value.fn->code, 0, RECORD_ENTRY);
  assert_non_null(p);
  p->rent.ahead_ns = 3000000;
  assert_true(decide_affords(t, p, 10, 100));
  assert_false(decide_affords(t, p, 1000, 100));
  assert_false(decide_affords(t, p, 20, 5)); /* it would gain little */
  assert_true(p->sleep > 0);
  calls(c->vm, f, x, 100);
  assert_int_equal(stat(c, STAT_traces), 0);
  c->at += 1000000000;
  calls(c->vm, f, x, 3000);
  assert_int_equal(stat(c, STAT_compiles), 1);
  end(c);
}

/* A loop inside that is left on its first trips, as the arm that is taken most of the time is not captured: no more
 * is saved than what stands before it. Where that arm is rare it is compiled. */
static void A20_what_is_left_at_once_saves_little(void **state) {
  (void)state;
  for (u32 often = 0; often < 2; often++) {
    Clock *c = machine(2000, 0);
    c->vm->vm->tunables.watch_percent = 0;
    WeftValue *f = value(c->vm, "fn f(s) {\n  let n = 0\n"
                                "  for c in s { if c == \"a\" { n += len(split(c)) } else { n += 2 } }\n  n\n}\nf");
    WeftValue *x = value(c->vm, often ? "join(map(i => \"ab\", 0..30), \"\")" : "join(map(i => \"bb\", 0..30), \"\")");
    Place *p = NULL;
    /* what its loop is compiled for, the branch's history lacks */
    for (u32 k = 0; k < 3000 && (!p || (!p->rent.left_early && !p->cache.entries.count)); k++) {
      calls(c->vm, f, x, 1);
      p = place_find(&tracer_of(c->vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY);
    }
    assert_non_null(p);
    assert_int_equal(p->cache.entries.count, !often);
    assert_int_equal(p->rent.left_early, often);
    end(c);
  }
}

/* A recording that goes on for longer than compiling is worth is stopped. */
static void A20_a_recording_ends_with_its_time(void **state) {
  (void)state;
  static char text[200000];
  for (u32 late = 0; late < 2; late++) {
    Clock *c = machine(late ? 200000 : 1000, 0);
    c->vm->vm->tunables.watch_percent = 0;
    c->vm->vm->tunables.pace_percent = 0;
    c->vm->vm->tunables.compile_ms = late ? 1 : 1000000;
    int at = sprintf(text, "fn f(x) {\n  let y = x\n");
    for (int i = 0; i < 1000; i++) at += sprintf(text + at, "  y = y * 0.5 + %d\n", i % 7);
    sprintf(text + at, "  y\n}\nf\n");
    WeftValue *f = value(c->vm, text), *x = value(c->vm, "arange(3.0)");
    calls(c->vm, f, x, 30);
    assert_int_equal(stat(c, STAT_graphs), !late);
    assert_int_equal(stat(c, STAT_traces), 1);
    assert_int_equal(stat(c, STAT_demotions), late);
    if (late)
      assert_int_equal(place_find(&tracer_of(c->vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY)->why,
                       REASON_too_long);
    end(c);
  }
}

/* One that takes more than what compiling would be worth leaves off at half of that, and is not made again before the
 * place took many times as long. */
static void A20_a_recording_that_cannot_pay_ends_early(void **state) {
  (void)state;
  static char text[200000];
  Clock *c = machine(1000000, 0);
  Tracer *t = tracer_of(c->vm->vm);
  c->vm->vm->tunables.watch_percent = 0;
  int at = sprintf(text, "fn f(x) {\n  let y = x\n");
  for (int i = 0; i < 1500; i++) at += sprintf(text + at, "  y = y * 0.5 + %d\n", i % 7);
  sprintf(text + at, "  y\n}\nf\n");
  WeftValue *f = value(c->vm, text), *x = value(c->vm, "arange(3.0)");
  Place *p = NULL;
  for (u32 k = 0; k < 3000 && !stat(c, STAT_trace_failures); k++) {
    calls(c->vm, f, x, 1);
    p = place_find(&t->places, f->value.fn->code, 0, RECORD_ENTRY);
  }
  assert_non_null(p);
  assert_int_equal(stat(c, STAT_trace_failures), 1);
  assert_int_equal(t->record_most, p->rent.ahead_ns / 2 + 300000);
  assert_true(p->rent.lost_ns >= 8 * t->record_most);
  u64 used = p->rent.used_ns, last = used;
  for (u32 k = 0; k < 100000 && stat(c, STAT_trace_failures) == 1 && !p->cache.entries.count; k++) {
    last = p->rent.used_ns;
    calls(c->vm, f, x, 1);
  }
  assert_true(last > 4 * used);
  end(c);
}

static u64 stands_still(void *context) { return (void)context, 1; }

/* The clock runs on while other programs have the processor: that is no time of the recording. */
static void A20_a_recording_is_timed_by_the_processor(void **state) {
  (void)state;
  static char text[200000];
  for (u32 busy = 0; busy < 2; busy++) {
    Clock *c = machine(10000000, 0);
    c->vm->vm->tunables.watch_percent = 0;
    c->vm->vm->tunables.compile_ms = 1000000;
    if (!busy) tracer_of(c->vm->vm)->work_clock = stands_still;
    int at = sprintf(text, "fn f(x) {\n  let y = x\n");
    for (int i = 0; i < 1000; i++) at += sprintf(text + at, "  y = y * 0.5 + %d\n", i % 7);
    sprintf(text + at, "  y\n}\nf\n");
    WeftValue *f = value(c->vm, text), *x = value(c->vm, "arange(3.0)");
    for (u32 i = 0; i < 100 && !stat(c, STAT_traces); i++) calls(c->vm, f, x, 1);
    assert_int_equal(stat(c, STAT_traces), 1);
    assert_int_equal(stat(c, STAT_trace_failures), busy);
    const Place *p = place_find(&tracer_of(c->vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY);
    assert_int_equal(p->tries, 0); /* being cut off is no trace that failed: its time is added to the place's cost */
    assert_true(!busy || p->rent.lost_ns > 0);
    end(c);
  }
}

/* What lost makes the rest wait by the part of the time for compiling that it took: a small region that lost is little
 * beside a large one that won. */
static void A20_what_lost_counts_by_what_it_took(void **state) {
  (void)state;
  u32 waited[3];
  for (u32 k = 0; k < 3; k++) {
    Clock *c = machine(2000, 0);
    Tracer *t = tracer_of(c->vm->vm);
    c->vm->vm->tunables.watch_percent = 0;
    c->at += 1000000000000; /* it has run for long */
    t->compilings = 2;
    t->compiling_wall = 1000000;
    t->losers_ns = k * k * 250000; /* none, a quarter, all of it */
    WeftValue *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf"), *x = value(c->vm, "arange(100.0)");
    for (waited[k] = 0; waited[k] < 30000 && !stat(c, STAT_compiles); waited[k]++) calls(c->vm, f, x, 1);
    assert_in_range(waited[k], 50, 29999);
    end(c);
  }
  assert_true(10 * waited[1] < 17 * waited[0]);
  assert_true(2 * waited[2] > 5 * waited[0]);
}

/* What is not compiled yet says what it took so far and what it waits for. */
static void A20_what_waits_says_for_what(void **state) {
  (void)state;
  Clock *c = machine(20000, 0);
  WeftValue *x = value(c->vm, "arange(100.0)"), *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf");
  calls(c->vm, f, x, 8);
  const char *said = weft_show(c->vm, value(c->vm, "trace.stats(f).waits"));
  assert_non_null(strstr(said, ": not compiled yet, it took "));
  assert_non_null(strstr(said, "test:1:"));
  calls(c->vm, f, x, 30000);
  assert_string_equal(weft_show(c->vm, value(c->vm, "trace.stats(f).waits")), "\"\"");
  end(c);
}

/* What runs interpreted to be timed ends once it has shown enough, where a loop inside of it asks: that one is compiled
 * again. */
static void A20_a_trial_ends_when_it_has_shown_enough(void **state) {
  (void)state;
  Clock *c = machine(20000, 0);
  Tunables *tun = &c->vm->vm->tunables;
  i64 warm = tun->warm_trips, hot = tun->hot_trips, percent = tun->watch_percent;
  tun->warm_trips = 1 << 20;
  tun->hot_trips = 1 << 21;
  tun->watch_percent = 0;
  WeftValue *f = value(c->vm, "fn f(n) { let s = 0; for i in 0..n { s += i * i % 7 }; s }\nf"),
      *few = value(c->vm, "9"), *many = value(c->vm, "30000");
  calls(c->vm, f, few, 3000);
  assert_int_equal(stat(c, STAT_compiles), 1);
  Tracer *t = tracer_of(c->vm->vm);
  Place *p = place_find(&t->places, f->value.fn->code, 0, RECORD_ENTRY);
  assert_non_null(p);
  p->watch.in = 0; /* it was entered once: this visit is the other one */
  p->watch.end = WATCH_return;
  p->watch.times[0] = (WatchTimes){.count = 1, .ns = {1000}};
  p->watch.times[1] = (WatchTimes){.count = 0};
  p->watch.longest = 0;
  tun->warm_trips = warm;
  tun->hot_trips = hot;
  tun->watch_percent = percent;
  calls(c->vm, f, many, 1);
  assert_true(p->watch.in > 100);
  assert_int_equal(stat(c, STAT_compiles), 2);
  end(c);
}

static void resumed(void *context, Place *p) {
  Place **found = context;
  if (p->start == RECORD_RESUME && p->cache.entries.count) *found = p;
}

static void called(Clock *c, WeftValue *f, WeftValue *a, WeftValue *b, WeftValue *n) {
  WeftValue *args[] = {a, b, n}, *out;
  if (weft_call(c->vm, f, args, n ? 3 : 2, &out) != WEFT_OK) fail_msg("%s", weft_error_text(c->vm));
  weft_release(c->vm, out);
}

/* The same where trips of a loop are to be timed, whose head is reached late or never. */
static void A20_a_trial_ends_before_the_head_is_reached(void **state) {
  (void)state;
  Clock *c = machine(20000, 0);
  Tunables *tun = &c->vm->vm->tunables;
  i64 pace = tun->pace_percent, percent = tun->watch_percent;
  tun->pace_percent = tun->watch_percent = 0;
  WeftValue *f = value(c->vm, "let x = arange(100.0)\nfn f(n, g, stop) { let s = 0.0; for i in 0..n { s += sum(sqrt(x "
                              "* x + i)); time(); s += g(i); if i >= stop { return s } }; s }\nf");
  WeftValue *g = value(c->vm, "fn g(i) = sum(sqrt(x * i + 1))\ng"),
      *h = value(c->vm, "fn h(n) { let s = 0; for i in 0..30000 { s += i * i % 7 }; s }\nh");
  WeftValue *trips = value(c->vm, "3000"), *none = value(c->vm, "0");
  for (u32 i = 0; i < 100; i++) called(c, f, trips, g, none);
  Tracer *t = tracer_of(c->vm->vm);
  Place *p = NULL;
  places_each(&t->places, resumed, &p);
  assert_non_null(p);
  p->watch.in = 0;
  p->watch.end = WATCH_trips;
  p->watch.times[0] = (WatchTimes){.count = 1, .ns = {1000}};
  p->watch.times[1] = (WatchTimes){.count = 0};
  p->watch.longest = 0;
  tun->pace_percent = pace;
  tun->watch_percent = percent;
  u64 compiles = stat(c, STAT_compiles);
  called(c, f, trips, h, none);
  assert_int_equal(p->watch.times[1].count, 0);
  assert_true(p->watch.in > 100);
  assert_int_equal(stat(c, STAT_compiles), compiles + 1);
  end(c);
}

/* Time passes with what is compiled, and nearly none otherwise. */
static u64 tell_compiling(void *context) {
  Clock *c = context;
  return ++c->at + stat(c, STAT_compiles) * 1000000000;
}

static void A20_compiling_is_no_part_of_an_entry(void **state) {
  (void)state;
  Clock *c = machine(0, 0);
  Tunables *tun = &c->vm->vm->tunables;
  i64 percent = tun->watch_percent;
  tun->pace_percent = tun->watch_percent = 0;
  tracer_use_clock(tracer_of(c->vm->vm), tell_compiling, c);
  WeftValue *f = value(c->vm, "fn f(x, g) { let a = sum(sqrt(x * x + 1)); time(); g(x) + a }\nf");
  WeftValue *g = value(c->vm, "fn g(x) = sum(x * x + 1)\ng"),
      *h = value(c->vm, "fn h(x) { let s = 0; for i in 0..30000 { s += i * i % 7 }; s }\nh"),
      *x = value(c->vm, "arange(100.0)");
  for (u32 i = 0; i < 100; i++) called(c, f, x, g, NULL);
  Place *p = place_find(&tracer_of(c->vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY);
  assert_non_null(p);
  assert_int_equal(p->cache.entries.count, 1);
  p->watch.in = 0;
  p->watch.times[0].count = p->watch.times[1].count = 0;
  tun->watch_percent = percent;
  u64 compiles = stat(c, STAT_compiles);
  called(c, f, x, h, NULL);
  assert_true(stat(c, STAT_compiles) > compiles);
  assert_int_equal(p->watch.times[0].count, 1);
  assert_in_range(p->watch.times[0].ns[0], 1, 999999999);
  end(c);
}

/* One region is on trial at a time: those inside of it are entered. */
static void A20_one_region_is_on_trial(void **state) {
  (void)state;
  Clock *c = machine(20000, 0);
  i64 percent = c->vm->vm->tunables.watch_percent;
  c->vm->vm->tunables.watch_percent = 0;
  WeftValue *x = value(c->vm, "arange(100.0)"), *g = value(c->vm, "fn g(x) = sum(sqrt(x * x + 1))\ng");
  calls(c->vm, g, x, 3000);
  WeftValue *f = value(c->vm, "fn f(x) = g(x) + g(x + 1)\nf");
  calls(c->vm, f, x, 3000);
  assert_int_equal(stat(c, STAT_compiles), 2);
  Tracer *t = tracer_of(c->vm->vm);
  Place *places[] = {place_find(&t->places, f->value.fn->code, 0, RECORD_ENTRY),
                     place_find(&t->places, g->value.fn->code, 0, RECORD_ENTRY)};
  for (u32 i = 0; i < 2; i++) {
    assert_non_null(places[i]);
    places[i]->watch.in = 0;
    places[i]->watch.end = WATCH_return;
    places[i]->watch.times[0] = (WatchTimes){.count = 1, .ns = {1000}};
    places[i]->watch.times[1] = (WatchTimes){.count = 0};
  }
  c->vm->vm->tunables.watch_percent = percent;
  u64 hits = stat(c, STAT_hits);
  calls(c->vm, f, x, 1);
  assert_int_equal(stat(c, STAT_hits) - hits, 2);
  assert_int_equal(places[0]->watch.times[1].count, 1);
  assert_int_equal(places[1]->watch.times[1].count, 0);
  end(c);
}

/* Calls of a kind that fits no entry count towards a compilation of its own while the place naps, too: it comes
 * once they took long enough, and not where they take no time. */
static void A20_what_passes_in_a_nap_counts(void **state) {
  (void)state;
  for (u32 slow = 0; slow < 2; slow++) {
    Clock *c = machine(20000, 0);
    c->vm->vm->tunables.watch_percent = 0;
    WeftValue *x = value(c->vm, "arange(100.0)"), *y = value(c->vm, "ones((10, 10))"),
        *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf");
    calls(c->vm, f, x, 30000);
    assert_int_equal(stat(c, STAT_compiles), 1);
    Tracer *t = tracer_of(c->vm->vm);
    Place *p = place_find(&t->places, f->value.fn->code, 0, RECORD_ENTRY);
    assert_non_null(p);
    c->step = slow ? 2000 : 1;
    calls(c->vm, f, y, slow ? 240 : 2000);
    assert_true(stat(c, STAT_naps) > 0);
    assert_int_equal(stat(c, STAT_compiles), 1);
    assert_in_range(sample_passes(t, p), slow ? 238 : 1990, slow ? 240 : 2000);
    calls(c->vm, f, y, 1000);
    assert_int_equal(stat(c, STAT_recompiles), slow);
    u64 hits = stat(c, STAT_hits);
    calls(c->vm, f, y, 10);
    assert_int_equal(stat(c, STAT_hits) - hits, slow * 10);
    end(c);
  }
}

/* Long trips: when their time is known to be worth it, there is none left. */
static void A20_a_loop_that_is_over_is_not_compiled(void **state) {
  (void)state;
  Clock *c = machine(10000000, 0);
  c->vm->vm->tunables.watch_percent = 0;
  WeftValue *x = value(c->vm, "arange(100.0)"),
      *f = value(c->vm, "fn f(x) {\n  let s = 0.0\n  for k in 0..3 { s += sum(sqrt(x * x + k)) }\n  s\n}\nf");
  calls(c->vm, f, x, 1);
  assert_int_equal(stat(c, STAT_traces), 0);
  WeftValue *g = value(c->vm, "fn g(x) {\n  let s = 0.0\n  for k in 0..9 { s += sum(sqrt(x * x + k)) }\n  s\n}\ng");
  calls(c->vm, g, x, 1);
  assert_int_equal(stat(c, STAT_compiles), 1);
  end(c);
}

/* What a graph will cost is known well enough from its instructions: a loop whose length nobody knows is recorded once,
 * when it is worth it. */
static void A20_a_recording_is_not_made_for_nothing(void **state) {
  (void)state;
  Clock *c = machine(20000, 0);
  c->vm->vm->tunables.watch_percent = 0;
  value(c->vm, "fn f(n) {\n  let (a, b, k) = (1, 2, 0)\n  while a != n {\n    k += 1\n    if k % 7 == 0 { a += 1; "
               "b -= a } else if k % 11 == 0 { b = a * 3 - b } else if b > 100 { b = 0; a = a * 2 - a }\n"
               "    else if b < -100 { b = k % 5 } else { b += k % 3 - 1 }\n  }\n  (a, b, k)\n}\nf(800)");
  assert_int_equal(stat(c, STAT_compiles), 1);
  assert_int_equal(stat(c, STAT_traces), 1);
  end(c);
}

/* The place of the n-th `for` loop of a function, by the order of their heads. */
static Place *loop_place(const Clock *c, const WeftValue *f, u32 n) {
  const Proto *proto = f->value.fn->code->proto;
  for (u32 pc = 0; pc < proto->ncode; pc++)
    for (u32 i = 1; i < proto->nextents; i++)
      if (proto->extents[i].kind == EXT_FOR && proto->extents[i].head == pc && !n--)
        return place_find(&tracer_of(c->vm->vm)->places, f->value.fn->code, pc, RECORD_LOOP);
  return NULL;
}

/* A run that is longer than compiling takes, but not much: the loop around it, which would be compiled next, is
 * compiled alone. */
static void A20_a_loop_leaves_it_to_the_one_around_it(void **state) {
  (void)state;
  Clock *c = machine(10000, 0);
  c->vm->vm->tunables.watch_percent = 0;
  WeftValue *f = value(c->vm, "fn f(n, m) {\n  let s = 0.0\n  for i in 0..n {\n    for j in 0..m { s += i * 0.5 - j }\n"
                              "  }\n  s\n}\nf(200, 48)\nf");
  Place *outer = loop_place(c, f, 0), *inner = loop_place(c, f, 1);
  assert_true(outer && inner);
  assert_int_equal(stat(c, STAT_compiles), 1);
  assert_int_equal(outer->cache.entries.count, 1);
  assert_int_equal(inner->cache.entries.count, 0);
  assert_true(inner->rent.defers > 0);
  WeftValue *g = value(c->vm, "fn g(n, m) {\n  let s = 0.0\n  for i in 0..n {\n    for j in 0..m { s += i * 0.5 - j }\n"
                              "  }\n  s\n}\ng(200, 480)\ng");
  assert_int_equal(loop_place(c, g, 1)->cache.entries.count, 1); /* that one is too long to wait for */
  end(c);
}

/* What a loop said of the one around it, which it was left to, holds no longer once it was compiled itself. */
static void A20_what_was_told_ends_with_a_compilation(void **state) {
  (void)state;
  Clock *c = machine(10000, 0);
  c->vm->vm->tunables.watch_percent = 0;
  WeftValue *f = value(c->vm, "fn f(n, m) {\n  let s = 0.0\n  for i in 0..n {\n    for j in 0..m { s += i * 0.5 - j }\n"
                              "  }\n  s\n}\nf(4, 4)\nf");
  Place *outer = loop_place(c, f, 0), *inner = loop_place(c, f, 1);
  assert_true(outer && inner);
  assert_int_equal(stat(c, STAT_compiles), 0);
  outer->rent.told = true;
  outer->rent.each_ns = 100000000;
  outer->sleep = 100; /* it is not asked before */
  WeftValue *args[2] = {value(c->vm, "2"), value(c->vm, "4800")}, *out;
  assert_int_equal(weft_call(c->vm, f, args, 2, &out), WEFT_OK);
  weft_release(c->vm, out);
  assert_int_equal(inner->cache.entries.count, 1);
  assert_int_equal(outer->cache.entries.count, 0);
  assert_false(outer->rent.told);
  end(c);
}

/* A loop around one that was compiled, and the function, cost no less than that did: nothing is recorded to learn
 * it. */
static void A20_what_holds_a_compiled_loop_costs_no_less(void **state) {
  (void)state;
  Clock *c = machine(10000, 0);
  c->vm->vm->tunables.watch_percent = 0;
  WeftValue *f = value(c->vm, "fn f(n, m) {\n  let s = 0.0\n  for i in 0..n {\n    for j in 0..m { s += i * 0.5 - j }\n"
                              "  }\n  s\n}\nf(3, 480)\nf");
  Place *outer = loop_place(c, f, 0), *inner = loop_place(c, f, 1),
      *entry = place_find(&tracer_of(c->vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY);
  assert_true(outer && inner && entry);
  assert_int_equal(inner->cache.entries.count, 1);
  assert_int_equal(stat(c, STAT_traces), 1);
  Cost of = cost_of_parts(tracer_of(c->vm->vm), graph_parts(((Region *)inner->cache.entries.data[0]->region)->graph));
  u64 cost = cost_once(&of);
  assert_in_range(outer->rent.cost_ns, cost / 2, cost);
  assert_in_range(entry->rent.cost_ns, cost / 2, cost);
  assert_int_equal(inner->rent.cost_ns, 0);
  end(c);
}

/* What a short run says does not hold for the next one: it is asked again soon. */
static void A20_the_next_run_of_a_loop_may_be_longer(void **state) {
  (void)state;
  Clock *c = machine(2500, 0);
  c->vm->vm->tunables.watch_percent = 0;
  WeftValue *f = value(c->vm, "fn f(n) { let s = 0.0; for i in 0..n { s += sqrt(i * 0.5) }; s }\nf(5)\nf");
  Place *p = loop_place(c, f, 0);
  assert_non_null(p);
  assert_int_equal(stat(c, STAT_compiles), 0);
  assert_true(p->rent.samples > 0);
  assert_true(p->sleep > 0 && p->sleep < 24);
  end(c);
}

/* Trips of a loop that is compiled are none of those inside of it. */
static void A20_inside_a_compiled_loop_little_is_to_come(void **state) {
  (void)state;
  Clock *c = machine(8000, 0);
  c->vm->vm->tunables.watch_percent = 0;
  WeftValue *x = value(c->vm, "ones((60, 60))"),
      *f = value(c->vm, "fn f(x) {\n  let s = 0.0\n  for i in 0..60 {\n    for j in 0..60 {\n"
                        "      for k in 0..9 { s += x[i, j] * k }\n    }\n  }\n  s\n}\nf");
  calls(c->vm, f, x, 1);
  i64 first = (i64)stat(c, STAT_compiles);
  assert_true(first > 0);
  calls(c->vm, f, x, 3);
  assert_int_equal(stat(c, STAT_compiles), first);
  end(c);
}

/* A list is packed whole at each entry: not for one item until the next break. */
static void A20_what_is_packed_is_paid_for(void **state) {
  (void)state;
  Clock *c = machine(20000, 0);
  c->vm->vm->tunables.watch_percent = 0;
  WeftValue *x = value(c->vm, "split(join(map(str, 0..4000), \",a \"), \" \")");
  WeftValue *f = value(c->vm, "fn f(x) { let n = 0; for l in x { let p = split(l, \",\"); n += len(p) }; n }\nf");
  calls(c->vm, f, x, 4);
  assert_true(stat(c, STAT_traces) > 0);
  assert_int_equal(stat(c, STAT_compiles), 0);
  end(c);
}

/* A loop that may end at any trip is entered for as many as its runs have had, and not for a few. */
static void A20_a_long_run_pays_for_what_is_packed(void **state) {
  (void)state;
  for (u32 longer = 0; longer < 2; longer++) {
    Clock *c = machine(2000, 0);
    c->vm->vm->tunables.watch_percent = 0;
    WeftValue *f = value(c->vm,
                         longer ? "let xs = join(map(str, 0..5000), \"\")\nlet stop = \"x\"\nfn f(n) { let (i, "
                         "s) = (0, 0); while i < n and xs[i] != stop { if xs[i] == \"7\" { s += i }; i += 1 }; s }\nf"
                                : "let xs = join(map(str, 0..5000), \"\")\nlet stop = \"7\"\nfn f(n) { let (i, "
                         "s) = (0, 0); while i < n and xs[i] != stop { if xs[i] == \"3\" { s += i }; i += 1 }; s }\nf");
    WeftValue *n = value(c->vm, "18000");
    u64 before = stat(c, STAT_compiles);
    calls(c->vm, f, n, longer ? 1 : 1000);
    assert_int_equal(stat(c, STAT_compiles), before + longer);
    end(c);
  }
}

static u64 tell_calls(void *context) { return ((Clock *)context)->vm->vm->stats.calls * 100; }

/* Most calls of a recursion are its leaves: they take no time to speak of, its outermost call takes all of it. */
static void A20_a_recursion_takes_the_time_of_its_outermost_call(void **state) {
  (void)state;
  Clock *c = machine(0, 0);
  tracer_use_clock(tracer_of(c->vm->vm), tell_calls, c);
  assert_string_equal(weft_show(c->vm, value(c->vm, "fn f(n) { if n < 2 { n } else { f(n - 1) + f(n - 2) } }\nf(24)")),
                      "46368");
  assert_int_equal(stat(c, STAT_compiles), 1);
  assert_true(c->vm->vm->stats.calls < 20000); /* of 150049 */
  assert_true(stat(c, STAT_hits) <= 50); /* the calls that stood open then, and some that were timed */
  assert_int_equal(stat(c, STAT_rests), 0);
  end(c);
}

/* The body of a function that calls itself stands in its graph once, however often it does, and is not inlined
 * besides. */
static void A20_a_recursion_is_compiled_once(void **state) {
  (void)state;
  Clock *c = machine(0, 0);
  tracer_use_clock(tracer_of(c->vm->vm), tell_calls, c);
  WeftValue *f = value(c->vm,
                       "fn f(n, a, b) { if n == 0 { return 0 }; f(n - 1, b, a) + 1 + f(n - 1, a, b) }\nf(12, 1, 2)\nf");
  Place *p = place_find(&tracer_of(c->vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY);
  assert_true(p && p->cache.entries.count == 1);
  const Graph *g = ((Region *)p->cache.entries.data[0]->region)->graph;
  u32 bodies = 0, besides = 0;
  for (GraphWalk w = walk_begin(g, 1); walk_next(&w);) {
    u32 kind = graph_node_at(g, w.node)->kind;
    bodies += kind == NODE_recur;
    besides += kind == NODE_op && !bodies;
  }
  assert_int_equal(bodies, 1);
  assert_int_equal(besides, 0);
  assert_string_equal(weft_show(c->vm, value(c->vm, "(f(0, 1, 2), f(9, 1, 2), f(3.0, 1, 2))")), "(0, 511, 7)");
  WeftValue *none;
  assert_int_equal(weft_eval(c->vm, "fn e(n, x) { if n == 0 { 10 // x } else { e(n - 1, x) + e(n - 1, x - 1) } }\n"
                                    "let s = e(9, 20)\ne(9, 9)", "test", &none), WEFT_ERROR);
  assert_string_equal(weft_error_message(c->vm), "floor_divide: an integer divided by zero");
  end(c);
}

/* What is left behind the break goes on by itself, so that the loop's head is never visited: its trips tell
 * nevertheless. */
static void A20_what_goes_on_behind_breaks_in_a_module_rests(void **state) {
  (void)state;
  Clock *c = machine(10, 100000);
  c->vm->vm->tunables.pace_percent = 0;
  value(c->vm, "let x = arange(100.0)\nlet s = 0.0\nfor i in 0..3000 { s += sum(sqrt(x * x + i)); time() }\ns");
  assert_true(stat(c, STAT_rests) >= 2);
  assert_true(stat(c, STAT_exits) < 1000);
  end(c);
}

/* Of what breaks the most is left to the interpreter, and going in and out takes its time. */
static void A20_what_gains_nothing_is_not_compiled(void **state) {
  (void)state;
  for (u32 breaks = 0; breaks < 2; breaks++) {
    Clock *c = machine(2000, 0);
    c->vm->vm->tunables.watch_percent = 0;
    WeftValue *x = value(c->vm, "arange(100.0)"),
        *f = value(c->vm, breaks ? "fn f(x) { let y = sum(sqrt(x * x + 1)); time(); y }\nf"
                                 : "fn f(x) { sum(sqrt(x * x + 1)) }\nf");
    calls(c->vm, f, x, 3000);
    assert_int_equal(stat(c, STAT_compiles), !breaks);
    end(c);
  }
}

/* Where it would not be compiled any more, an entry that is there is timed as any other, and goes for good when it
 * loses. */
static void A20_an_entry_of_a_demoted_place_is_timed(void **state) {
  (void)state;
  Clock *c = machine(10, 100000);
  Tunables *tun = &c->vm->vm->tunables;
  tun->pace_percent = 0;
  tun->watch_rest = 1;
  tun->decay_calls = 16;
  WeftValue *f = value(c->vm, "fn f(x) = sum(sqrt(x * x + 1))\nf"), *x = value(c->vm, "arange(100.0)");
  calls(c->vm, f, x, 31);
  Place *p = place_find(&tracer_of(c->vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY);
  assert_true(p && p->cache.entries.count == 1);
  place_demote(tracer_of(c->vm->vm), p, REASON_nothing_to_compile, "too little to compile");
  calls(c->vm, f, x, 8000);
  assert_int_equal(stat(c, STAT_rests), 4);
  assert_int_equal(stat(c, STAT_demotions), 2);
  assert_int_equal(p->cache.entries.count, 0);
  assert_int_equal(p->why, REASON_no_payback);
  assert_true(p->eager && !p->wakes);
  assert_int_equal(stat(c, STAT_compiles), 1);
  end(c);
}

/* A loop that is interpreted to be timed is not asked at each trip: that would be timed too, and speak for the
 * region. */
static void A20_a_trial_of_a_loop_is_asked_seldom(void **state) {
  (void)state;
  Clock *c = machine(1000, 100000);
  c->vm->vm->tunables.warm_calls = c->vm->vm->tunables.hot_calls = 1 << 20; /* the loop alone */
  WeftValue *f = value(c->vm, "fn f(n) {\n  let s = 0.0\n  for i in 0..n { s = s + i * 0.5 }\n  s\n}\nf"),
      *n = value(c->vm, "4000");
  calls(c->vm, f, n, 1000);
  Place *p = loop_place(c, f, 0);
  assert_true(p && p->compiles);
  p->gate.trip_ns = 99; /* its runs are long enough */
  calls(c->vm, f, n, 3000);
  assert_true(p->watch.lost > 0 || p->demoted);
  assert_true(stat(c, STAT_rests) > 0);
  end(c);
}

/* Runs of a loop whose length nobody knows: where many in a row were short, few of them are waited for; a long one is
 * entered nevertheless. */
static void A20_short_runs_are_let_be(void **state) {
  (void)state;
  Clock *c = machine(20000, 100000);
  c->vm->vm->tunables.watch_percent = 0;
  c->vm->vm->tunables.warm_calls = c->vm->vm->tunables.hot_calls = 1 << 20;
  WeftValue *f = value(c->vm, "fn f(n) {\n  let (s, i) = (0, 0)\n  while i < n { s += i * 3 % 7; i += 1 }\n  s\n}\nf"),
      *many = value(c->vm, "4000"), *few = value(c->vm, "3");
  calls(c->vm, f, many, 20);
  const Code *code = f->value.fn->code;
  const Proto *proto = code->proto;
  Place *p = NULL;
  u32 site = 0;
  for (u32 i = 1; i < proto->nextents; i++)
    if (proto->extents[i].kind == EXT_WHILE) {
      p = place_find(&tracer_of(c->vm->vm)->places, code, proto->extents[i].head, RECORD_LOOP);
      site = code->site_of_pc[proto->extents[i].els];
    }
  assert_true(p && p->compiles && site);
  /* what going in and out takes is eight trips */
  p->gate = (PlaceGate){.loop = p->gate.loop, .trip_ns = 100, .around_ns = 600, .samples = 4};
  i32 least = 0;
  for (u32 k = 0; k < 4000; k++) {
    calls(c->vm, f, few, 1);
    if (code->sites[site - 1].count < least) least = code->sites[site - 1].count;
  }
  assert_in_range(-least, 100, 400);
  u64 hits = stat(c, STAT_hits);
  calls(c->vm, f, many, 20);
  assert_true(stat(c, STAT_hits) > hits);
  end(c);
}

/* A function that calls itself, of which some levels are inlined, goes on in the interpreter below them: that saves
 * half of what it might. */
static void A20_levels_of_a_recursion_gain_less(void **state) {
  (void)state;
  static const char *const programs[] = {
      "fn f(x) { let s = x[0]; for i in 0..3 { if s > 8 { s += x[i] * 2 } else { s -= x[i] } }; s }\n"
      "jit(f)((1, 2, 3))\nf",
      /* the ref keeps it from being native as a whole */
      "fn f(x) { let c = ref(1); let s = x[0]; for i in 0..3 { if s < 8 { x[i] += c.value; s += f(x) } }; s }\n"
      "jit(f)((1, 2, 3))\nf"};
  for (u32 self = 0; self < COUNT_OF(programs); self++) {
    Clock *c = machine(10, 0);
    WeftValue *f = value(c->vm, programs[self]);
    Place *p = place_find(&tracer_of(c->vm->vm)->places, f->value.fn->code, 0, RECORD_ENTRY);
    assert_true(p && p->cache.entries.count);
    p->rent.each_ns = 100000000;
    u64 gain = cost_gain(tracer_of(c->vm->vm), p, ((Region *)p->cache.entries.data[0]->region)->graph, false);
    if (self) assert_in_range(gain, 1, 50);
    else assert_in_range(gain, 90, 100);
    end(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(A20_a_region_that_is_slower_rests),
    cmocka_unit_test(A20_samples_without_an_end_get_rare),
    cmocka_unit_test(A20_a_region_that_loses_again_and_again_is_given_up),
    cmocka_unit_test(A20_a_region_that_is_not_slower_stays),
    cmocka_unit_test(A20_what_was_timed_tells_more_than_what_operations_are_thought_to_take),
    cmocka_unit_test(A19_behind_a_call_that_nothing_leads_to_compiling_waits_longer),
    cmocka_unit_test(A20_a_loop_that_is_left_all_the_time_rests),
    cmocka_unit_test(A20_a_long_visit_is_not_made_twice),
    cmocka_unit_test(A20_what_is_packed_is_paid_for),
    cmocka_unit_test(A20_a_long_run_pays_for_what_is_packed),
    cmocka_unit_test(A20_short_runs_are_not_entered),
    cmocka_unit_test(A20_an_entry_of_a_demoted_place_is_timed),
    cmocka_unit_test(A20_a_trial_of_a_loop_is_asked_seldom),
    cmocka_unit_test(A20_short_runs_are_let_be),
    cmocka_unit_test(A20_levels_of_a_recursion_gain_less),
    cmocka_unit_test(A20_errors_leave_nothing_timed),
    cmocka_unit_test(A20_what_goes_on_behind_breaks_in_a_module_rests),
    cmocka_unit_test(A20_what_gains_nothing_is_not_compiled),
    cmocka_unit_test(A20_a_recursion_takes_the_time_of_its_outermost_call),
    cmocka_unit_test(A20_a_recursion_is_compiled_once),
    cmocka_unit_test(A20_a_place_is_compiled_when_its_time_would_pay_for_it),
    cmocka_unit_test(A20_large_arguments_are_looked_at_early),
    cmocka_unit_test(A20_compiling_takes_a_share_of_the_time),
    cmocka_unit_test(A20_what_lost_leaves_less_time_for_compiling),
    cmocka_unit_test(A20_the_first_compilation_waits),
    cmocka_unit_test(A20_what_is_left_at_once_saves_little),
    cmocka_unit_test(A20_a_recording_ends_with_its_time),
      cmocka_unit_test(A20_a_recording_that_cannot_pay_ends_early),
    cmocka_unit_test(A20_a_recording_is_timed_by_the_processor),
    cmocka_unit_test(A20_what_lost_counts_by_what_it_took),
    cmocka_unit_test(A20_what_waits_says_for_what),
    cmocka_unit_test(A20_a_trial_ends_when_it_has_shown_enough),
    cmocka_unit_test(A20_a_trial_ends_before_the_head_is_reached),
    cmocka_unit_test(A20_compiling_is_no_part_of_an_entry),
    cmocka_unit_test(A20_one_region_is_on_trial),
    cmocka_unit_test(A20_what_passes_in_a_nap_counts),
    cmocka_unit_test(A20_a_loop_that_is_over_is_not_compiled),
    cmocka_unit_test(A20_a_recording_is_not_made_for_nothing),
    cmocka_unit_test(A20_inside_a_compiled_loop_little_is_to_come),
    cmocka_unit_test(A20_a_loop_leaves_it_to_the_one_around_it),
    cmocka_unit_test(A20_what_was_told_ends_with_a_compilation),
    cmocka_unit_test(A20_what_holds_a_compiled_loop_costs_no_less),
    cmocka_unit_test(A20_the_next_run_of_a_loop_may_be_longer),
    cmocka_unit_test(A20_what_comes_in_and_goes_out_is_paid_for),
  };
  return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
