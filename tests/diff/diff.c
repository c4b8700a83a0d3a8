/* diff.c — random programs, run by the interpreter alone and compiled; they must agree to the last bit.
 *   build/tests/diff [--count N] [--seed S] [--tier interp|loops|mir|verify] [--hot N] [--exits] [--threads]
 *   [--large] [--flow] [--raised] [--strict] [--show] build/tests/diff --file PATH …: that program
 *   --strict: also runs the tier verify, takes a graph that does not verify for a failure, and makes programs that
 *   call every built-in under transforms. The checks run some of these, with seeds of their own.
 * Ten programs are one case. A program that differs is printed, with its seed: `diff --seed S --count 1 --show`. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/inner.h"
#include "tests/diff/generate.h"
#include "tests/diff/hosts.h"
#include "tests/support/host.h"

enum { BATCH = 10, PROGRAM_SECONDS = 60 };

static const char *const tiers[] = {"interp", "loops", "mir", "verify"};

static volatile struct Progress {
  unsigned long seed;
  char tier[16];
  char what[512];
  unsigned long errors; /* programs that ended in an error, in every tier */
} *progress;

/* exits: take one at every instruction; threads: share short loops; large: all arrays count as large; flow: programs of
 * control flow under transforms alone; raised: of loops whose trips may be done at once */
static bool show, exits, threads, large, flow, raised, strict;
static const char *only_tier, *file;
static int hot;

static bool same(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") == 0; }

/* Where two texts part, with what stands before. */
static void part(char *to, size_t cap, const char *what, const char *a, const char *b) {
  size_t at = 0, from;
  while (a[at] && a[at] == b[at]) at++;
  from = at > 40 ? at - 40 : 0;
  snprintf(to, cap, "%s: %s%.100s, eager %.100s", what, from ? "…" : "", a + from, b + from);
}

static void note(const char *what, const HostRun *eager, const HostRun *r) {
  const char *a = r->end == HOST_ERROR ? r->message : r->value,
      *b = eager->end == HOST_ERROR ? eager->message : eager->value;
  part((char *)progress->what, sizeof progress->what, what, a ? a : "nothing", b ? b : "nothing");
}

static bool agree(const HostRun *eager, const HostRun *r) {
  double wrong = 0;
  if (r->leaked) note("memory was not given back", eager, r);
  else if (host_counter(r, "mir_errors", 10, &wrong) && wrong > 0) note("MIR raised an error", eager, r);
  else if (strict && host_counter(r, "unverified", 10, &wrong) && wrong > 0) note("a graph does not verify", eager, r);
  else if (r->end != eager->end) note("another end", eager, r);
  else if (r->end == HOST_ERROR && (!same(r->kind, eager->kind) || !same(r->message, eager->message)))
    note("another error", eager, r);
  else if (r->end == HOST_ERROR && (r->line != eager->line || r->column != eager->column))
    note("an error at another place", eager, r);
  else if (r->end == HOST_VALUE && !same(r->value, eager->value)) note("another value", eager, r);
  else if (r->end == HOST_VALUE && !same(r->type, eager->type)) note("another type", eager, r);
  else if (!same(r->printed, eager->printed))
    part((char *)progress->what, sizeof progress->what, "other lines printed", r->printed ? r->printed : "",
         eager->printed ? eager->printed : "");
  else return true;
  return false;
}

static char *read_program(const char *path) {
  FILE *f = fopen(path, "rb");
  size_t n = 0, cap = 1 << 20;
  char *text = malloc(cap);
  if (!f || !text) exit(2);
  n = fread(text, 1, cap - 1, f);
  text[n] = 0;
  fclose(f);
  return text;
}

/* Of processor time: other work on the machine does not count. */
static void limit(int seconds) {
  struct itimerval t = {.it_value.tv_sec = seconds};
  setitimer(ITIMER_PROF, &t, NULL);
}

/* Short lists stay in columns as well. */
static void made_with_hosts(void *context, WeftVM *w) {
  define_hosts(context, w);
  w->vm->tunables.packed_items = 1;
}

/* In a child. */
static bool run_program(unsigned long seed) {
  progress->seed = seed;
  unsigned long of_make = flow ? 8 * seed + 6 : raised ? 8 * seed + 2 : seed;
  char *program = file ? read_program(file) : generate_program(of_make, strict);
  if (show) printf("%s", program), fflush(stdout);
  HostSetup setup = {.backend = "eager", .hot = -1, .fuel = 200000, .memory = 64 << 20, .deadline = 4,
                     .made = define_hosts};
  limit(PROGRAM_SECONDS);
  snprintf((char *)progress->tier, sizeof progress->tier, "eager");
  HostRun eager = host_run(&setup, "diff.weft", program);
  bool well = true;
  /* where a limit strikes may differ, also one that the program caught */
  bool limited = (eager.end == HOST_ERROR && same(eager.kind, "limit")) ||
                 (eager.end == HOST_VALUE && strstr(eager.value, "the memory limit is reached"));
  if (eager.end == HOST_ERROR) progress->errors++;
  if (show) printf("# eager: %s\n", eager.end == HOST_ERROR ? eager.message : eager.value);
  for (size_t t = 0; t < sizeof tiers / sizeof tiers[0] && well && !limited; t++) {
    if (only_tier ? strcmp(only_tier, tiers[t]) != 0 : !strict && strcmp(tiers[t], "verify") == 0) continue;
    snprintf((char *)progress->tier, sizeof progress->tier, "%s", tiers[t]);
    setup = (HostSetup){.backend = tiers[t],
                        .hot = hot,
                        .force = exits ? "exits" : threads ? "threads" : large ? "large" : NULL,
                        .memory = 256 << 20,
                        .made = made_with_hosts};
    HostRun r = host_run(&setup, "diff.weft", program);
    well = agree(&eager, &r);
    host_run_free(&r);
  }
  limit(0);
  host_run_free(&eager);
  free(program);
  return well;
}

int main(int argc, char **argv) {
  unsigned long count = 1000, seed = 1;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--show") == 0) show = true;
    else if (strcmp(argv[i], "--flow") == 0) flow = true;
    else if (strcmp(argv[i], "--raised") == 0) raised = true;
    else if (strcmp(argv[i], "--strict") == 0) strict = true;
    else if (strcmp(argv[i], "--exits") == 0) exits = true;
    else if (strcmp(argv[i], "--threads") == 0) threads = true;
    else if (strcmp(argv[i], "--large") == 0) large = true, hot = -1;
    else if (i + 1 < argc && strcmp(argv[i], "--file") == 0) file = argv[++i], count = 1;
    else if (i + 1 < argc && strcmp(argv[i], "--count") == 0) count = strtoul(argv[++i], NULL, 10);
    else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) seed = strtoul(argv[++i], NULL, 10);
    else if (i + 1 < argc && strcmp(argv[i], "--hot") == 0) hot = atoi(argv[++i]);
    else if (i + 1 < argc && strcmp(argv[i], "--tier") == 0) only_tier = argv[++i];
    else return 2;
  }
  progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (progress == MAP_FAILED) return 2;
  for (unsigned long from = seed; from < seed + count; from += BATCH) {
    unsigned long to = from + BATCH < seed + count ? from + BATCH : seed + count;
    progress->what[0] = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      for (unsigned long s = from; s < to; s++)
        if (!run_program(s)) exit(1);
      exit(0);
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) {
      printf("ok diff/%lu-%lu\n", from, to - 1);
      continue;
    }
    if (!progress->what[0])
      snprintf((char *)progress->what, sizeof progress->what, "%s",
               WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "the process ended badly");
    for (char *c = (char *)progress->what; *c; c++)
      if (*c == '\n') *c = ' ';
    printf("not ok diff/%lu-%lu: seed %lu, %s: %s\n", from, to - 1, progress->seed, progress->tier, progress->what);
  }
  printf("# diff: %lu programs, %lu of them end in an error\n", count, progress->errors);
  return 0;
}
