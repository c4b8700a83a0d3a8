/* deadlines.c — long single operations end soon after the program's deadline, interpreted and compiled.
 *
 *   deadlines [--large]
 *
 * Each program takes some seconds or more by itself and needs what it makes, which compiled code could leave out
 * otherwise; its first lines make what it works on. Without --large those run that need little memory. A busy
 * machine is allowed for: what is asked is that an operation does not go on to its end. */
#include "tests/support/host.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct Long {
  const char *name, *program;
  bool large; /* more than a few hundred MB, or some seconds to set up */
} Long;

static const Long longs[] = {
    {"random.uniform", "let s = 0.0\n"
     "for i in 0..100 { s += sum(random.uniform(random.key(i), 40000000)) }\ns", false},
    {"random.normal of f32", "let s = 0.0\n"
     "for i in 0..100 { s += sum(random.normal(random.key(i), 40000000, dtype=f32)) }\ns", false},
    {"random.randint", "let s = 0.0\n"
     "for i in 0..100 { s += sum(random.randint(random.key(i), 0, 9, 40000000)) }\ns", false},
    {"random.bernoulli", "let s = 0.0\n"
     "for i in 0..100 { s += sum(random.bernoulli(random.key(i), 0.5, 200000000)) }\ns", false},
    {"random.exponential", "let s = 0.0\n"
     "for i in 0..100 { s += sum(random.exponential(random.key(i), 40000000)) }\ns", false},
    {"random.permutation", "random.permutation(random.key(1), 30000000).size", false},
    {"stats.bootstrap", "stats.bootstrap(random.key(0), rand(10000), median, n=4000).low", false},
    {"convolve", "let x = rand(500000)\nlet y = rand(500000)\nconvolve(x, y).size", false},
    {"a loop over whole arrays", "let x = rand(500000)\nlet y = x * 2.0\n"
     "for i in 0..500000 { y += x[i] * x }\ny[0]", false},
    {"regex.find", "for i in 0..1000 { try { regex.find(\"a\" * 40 + \"b\", \"(a+)+$\") } catch e { } }", false},
    {"table.codes", "let t = {a: list(0..2000000)}\nlet s = 0\n"
     "for i in 0..100 { s += table.codes(t, \"a\")[7] }\ns", false},
    {"product of integers", "let x = i64(rand((1500, 1500)) * 9.0)\nsum(x @ x)", false},
    {"rand", "rand(400000000).size", true},
    {"concat", "let x = zeros(100000000)\nconcat((x, x, x)).size", true},
    {"tile", "tile(rand(1000), 400000).size", true},
    {"repeat", "repeat(rand(1000), 300000).size", true},
    {"sort", "let x = rand(30000000)\nsort(x).size", true},
    {"take", "let x = rand(30000000)\nx[i64(x * 1e7)].size", true},
    {"cumsum", "let x = ones(30000000)\nfor i in 0..1000 { x = cumsum(x) * 1e-9 }\nx[0]", true},
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
  enum { DEADLINE_MS = 200, LATE_MS = 2000 };
  bool large = argc > 1 && strcmp(argv[1], "--large") == 0;
  int failures = 0;
  for (size_t i = 0; i < sizeof longs / sizeof longs[0]; i++) {
    if (longs[i].large && !large) continue;
    for (int hot = -1; hot <= 0; hot++) {
      HostSetup setup = {.backend = hot ? "eager" : "mir", .hot = hot, .deadline = DEADLINE_MS * 1e-3,
                         .own_memory = true};
      const double begin = now();
      HostRun run = host_run(&setup, "deadlines", longs[i].program);
      const double late = (now() - begin) * 1e3 - DEADLINE_MS;
      const char *said = run.end == HOST_VALUE ? "it came to its end" : run.message ? run.message : "no VM";
      bool good = run.end == HOST_ERROR && strstr(said, "the deadline has passed") && late < LATE_MS;
      if (good) printf("ok deadlines/%s, %s\n", longs[i].name, setup.backend);
      else printf("not ok deadlines/%s, %s: %s, %.0f ms late\n", longs[i].name, setup.backend, said, late);
      failures += !good;
      host_run_free(&run);
    }
  }
  return failures != 0;
}
