/* test_tiers.c — when code is compiled, as docs/tiers.md says: its worked example, run by a clock that counts trips
 * and calls; and the same work written in several ways, which is compiled after about the same time. */
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
#include "tracer/tier/cost.h"
#include "tracer/tier/places.h"

/* A trip or a call takes `each` in the interpreter, a 32nd of that in compiled code; a look at the clock, with what is
 * done beside it, recording and compiling take some of their usual time. */
typedef struct Clock {
  WeftVM *vm;
  u64 at, each, units, traces, compiles;
  u64 first; /* when the first compilation ended; 0: not yet */
} Clock;

enum { FUEL = 1 << 30, FASTER = 32, LOOK_NS = 200, RECORD_NS = 130000, COMPILE_NS = 600000 };

static u64 stat(const Clock *c, u32 id) { return c->vm->vm->counters.at[id]; }

/* Units of fuel used up so far: one for each trip and call. */
static u64 units(const Clock *c) {
  const Vm *vm = c->vm->vm;
  return FUEL - vm->limits.fuel + vm->poll_batch - vm->poll_countdown;
}

static u64 tell(void *context) {
  Clock *c = context;
  u64 now = units(c), traces = stat(c, STAT_traces), compiles = stat(c, STAT_compiles);
  u64 each = tracer_of(c->vm->vm)->depth ? c->each / FASTER : c->each;
  c->at += LOOK_NS + (now - c->units) * each + (traces - c->traces) * RECORD_NS +
           (compiles - c->compiles) * COMPILE_NS;
  c->units = now;
  c->traces = traces;
  if (compiles && !c->first) c->first = c->at;
  c->compiles = compiles;
  return c->at;
}

static void swallow(void *context, const char *text, size_t length) { (void)context, (void)text, (void)length; }

static Clock *machine(u64 each) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backend = "mir";
  o.explain = true;
  o.output = swallow;
  Clock *c = calloc(1, sizeof *c);
  assert_non_null(c);
  c->vm = weft_new(&o);
  assert_non_null(c->vm);
  weft_set_limits(c->vm, 0, FUEL, 0);
  c->each = each;
  tracer_use_clock(tracer_of(c->vm->vm), tell, c);
  return c;
}

static void end(Clock *c) {
  weft_free(c->vm);
  free(c);
}

static WeftValue *value(Clock *c, const char *text) {
  WeftValue *v = NULL;
  if (weft_eval(c->vm, text, "settle.weft", &v) != WEFT_OK) fail_msg("%s", weft_error_text(c->vm));
  return v;
}

/* ---- the worked example ------------------------------------------------------------------------------------ */

static char *page; /* docs/tiers.md from its worked example on */

static int read_page(void **state) {
  (void)state;
  FILE *f = fopen("docs/tiers.md", "rb");
  page = calloc(1, 1 << 17);
  if (!f || !page || !fread(page, 1, (1 << 17) - 1, f)) return -1;
  fclose(f);
  return 0;
}

static int drop_page(void **state) {
  (void)state;
  free(page);
  return 0;
}

/* Without what differs from machine to machine: each number is one `#`; blanks and line ends are one blank. */
static void put_plain(char *to, size_t room, const char *from, size_t len) {
  size_t n = strlen(to);
  for (size_t i = 0; i < len && n + 1 < room; i++) {
    char ch = from[i];
    bool digit = ch >= '0' && ch <= '9', part = ch == '.' && n && to[n - 1] == '#' && i + 1 < len && from[i + 1] <= '9';
    if (part || (digit && n && to[n - 1] == '#')) continue;
    if (ch == '\n') ch = ' ';
    if (ch == ' ' && (!n || to[n - 1] == ' ')) continue;
    to[n++] = digit ? '#' : ch;
  }
  to[n] = 0;
}

/* Lines that begin with "> " are done, the others are what they say. */
static u32 follow_session(Clock *c, const char *text, const char *stop) {
  u32 asked = 0;
  while (text < stop) {
    const char *next = strchr(text, '\n') + 1;
    char said[4096] = "", wanted[4096] = "", line[512];
    assert_memory_equal(text, "> ", 2);
    snprintf(line, sizeof line, "%.*s", (int)(next - text - 3), text + 2);
    for (text = next; text < stop && memcmp(text, "> ", 2) != 0; text = next) {
      next = strchr(text, '\n') + 1;
      put_plain(wanted, sizeof wanted, text, (size_t)(next - text));
    }
    if (strncmp(line, ":why ", 5) == 0) {
      const char *why = weft_dump(c->vm, value(c, line + 5), "why");
      put_plain(said, sizeof said, why, strlen(why));
      if (strcmp(said, wanted) != 0) fail_msg("%s\n%s\nsays\n%s", line, wanted, why);
      asked++;
    } else {
      WeftValue *v = value(c, line);
      if (*wanted) put_plain(said, sizeof said, weft_show(c->vm, v), strlen(weft_show(c->vm, v)));
      if (strncmp(said, wanted, strlen(said)) != 0) fail_msg("%s\n%s\nsays\n%s", line, wanted, said);
      weft_release(c->vm, v);
    }
  }
  return asked;
}

/* Each block of the page's example, one after the other: a program, or what somebody types and reads. */
static void the_worked_example_decides_as_the_page_says(void **state) {
  (void)state;
  const char *at = strstr(page, "## A worked example"), *stop = at ? strstr(at + 1, "\n## ") : NULL;
  assert_true(at && stop);
  Clock *c = machine(65); /* a trip of the example calls sum */
  u32 asked = 0;
  while ((at = strstr(at, "\n```")) && at < stop) {
    const char *begin = strchr(at + 1, '\n') + 1, *close = strstr(begin, "```");
    assert_non_null(close);
    if (memcmp(at, "\n```weft", 8) == 0) {
      char *program = calloc(1, (size_t)(close - begin) + 1);
      memcpy(program, begin, (size_t)(close - begin));
      weft_release(c->vm, value(c, program));
      free(program);
    } else {
      asked += follow_session(c, begin, close);
    }
    at = close;
  }
  assert_true(asked >= 3);
  end(c);
}

/* ---- a report of a program ---------------------------------------------------------------------------------- */

static const char program[] =
    "fn inner(n) { let s = 0; for i in 0..n { s += i * 2 }; s }\n"
    "fn once(n) { let s = 0; while true { s += 1; break }; for i in 0..n { s += i }; s }\n"
    "let s = 0\n"
    "once(2)\n"
    "for k in 0..20000 { s += inner(3) }\n";

/* Loops that never got warm are named with their trips, but not those that stand in what was compiled; code that is
 * gone by the end is told of. */
static void a_report_names_loops_that_stayed_cold(void **state) {
  (void)state;
  Clock *c = machine(130);
  assert_int_equal(weft_eval(c->vm, program, "cold.weft", NULL), WEFT_OK);
  const char *said = weft_dump(c->vm, NULL, "explain");
  if (!strstr(said, "cold.weft:2:64: 2 trips in all, asked from trip 2 on")) fail_msg("%s", said);
  assert_null(strstr(said, "cold.weft:1:"));
  assert_non_null(strstr(said, "cold.weft:5:"));
  end(c);
}

/* ---- the same work in several ways ------------------------------------------------------------------------- */

/* Of the trip or call of each the clock says the same. `known`: its length is known before it begins. */
typedef struct Way {
  const char *name, *program;
  bool known;
} Way;

static const Way ways[] = {
    {"for", "fn f(n) { let s = 0.0; for i in 0..n { s = s * 0.5 + i }; s }\nf(30000)", true},
    {"map", "fn g(i) = i * 0.5 + 1\nfn f(n) = sum(array(map(g, 0..n)))\nf(30000)", true},
    {"while", "fn f(n) { let s = 0.0; let i = 0; while i < n { s = s * 0.5 + i; i += 1 }; s }\nf(30000)", false},
    {"for, which may end early",
     "fn f(n) { let s = 0.0; for i in 0..n { s = s * 0.5 + i; if s > 1e300 { break } }; s }\nf(30000)", false},
    {"calls from a while",
     "fn g(s, i) = s * 0.5 + i\nfn f(n) { let s = 0.0; let i = 0; while i < n { s = g(s, i); i += 1 }; s }\nf(15000)",
     false},
    {"recursion", "fn f(n) = if n < 2 { n } else { f(n - 1) + f(n - 2) }\nf(21)", false},
};

/* Work whose length is known is compiled at once, all other work when it took what recording and compiling cost. */
static void the_same_work_is_compiled_after_the_same_time(void **state) {
  (void)state;
  u64 soonest = UINT64_MAX, latest = 0;
  for (u32 i = 0; i < COUNT_OF(ways); i++) {
    Clock *c = machine(130);
    c->vm->vm->tunables.watch_percent = 0;
    weft_release(c->vm, value(c, ways[i].program));
    if (stat(c, STAT_compiles) != 1) fail_msg("%s: not compiled", ways[i].name);
    u64 interpreted = c->first - RECORD_NS - COMPILE_NS;
    if (ways[i].known && interpreted > 50000) fail_msg("%s: after %u ns", ways[i].name, (u32)interpreted);
    if (!ways[i].known && interpreted < soonest) soonest = interpreted;
    if (!ways[i].known && interpreted > latest) latest = interpreted;
    end(c);
  }
  assert_in_range(soonest, 300000, 800000);
  assert_true(4 * latest < 5 * soonest);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_worked_example_decides_as_the_page_says),
    cmocka_unit_test(a_report_names_loops_that_stayed_cold),
    cmocka_unit_test(the_same_work_is_compiled_after_the_same_time),
  };
  return cmocka_run_group_tests(tests, read_page, drop_page);
}
