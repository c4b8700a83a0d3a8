/* limits.c — refuses the n-th allocation, for every n, over a sample of the cases.
 *   build/tests/limits [--every K] [--points P] [--caught C] [--tier eager|mir] [--only PART-OF-A-NAME [--at N]]
 * A refusal may end in an error of kind `limit`, or go unnoticed when the VM can do without (a compilation given
 * up, say): then the result is the usual one. Nothing may crash, nothing may be lost. The allocations while a VM
 * is made are refused one by one; of each case up to P points.
 * Of every C-th case (4) the points are taken again while it stands in a `try` whose handler calls it once more:
 * then the result must be the usual one wherever the refusal comes from, but for the text being compiled. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/inner.h"
#include "tests/support/casefile.h"
#include "tests/support/host.h"

static struct {
  int every, points, caught;
  const char *tier, *only;
  long at;
} options = {40, 60, 4, "eager", NULL, 0};

static volatile struct Progress {
  long point;
  char what[256];
} *progress;

/* A compilation given up is counted, and is an error where one was demanded: what such a program says of itself differs
 * then. */
static bool counts(const char *program) { return strstr(program, "trace.") || strstr(program, "whole=true"); }

/* Was as much captured, compiled and run as without refusal? Then a program that counts this counts the same. */
static bool same_counts(const HostRun *r, const HostRun *usual) {
  static const char *const names[] = {"traces", "trace_failures", "graphs", "nodes", "breaks", "compiles", "recompiles",
                                      "continuations", "compile_failures", "kernels", "natives", "shared", "lookups",
                                      "hits", "misses", "exits", "kernel_runs", "evictions", "demotions", "naps",
                                      "generalised", "check_failures", "lost_events"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    double a = 0, b = 0;
    if (!host_counter(r, names[i], strlen(names[i]), &a) ||
        !host_counter(usual, names[i], strlen(names[i]), &b) || a != b)
      return false;
  }
  return true;
}

static bool same(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") == 0; }

/* What is wrong with a run under refusal, or NULL. */
static const char *judge(const char *program, const HostRun *r, const HostRun *usual) {
  if (r->leaked) return "memory was not given back";
  if (r->end == HOST_NO_VM) return r->refused ? NULL : "no VM, and nothing was refused";
  if (r->end == HOST_ERROR && strcmp(r->kind, "limit") == 0 && r->refused) return NULL;
  if (counts(program) && r->refused && !same_counts(r, usual)) return NULL;
  if (strstr(program, "catch") && r->refused) return NULL; /* which may catch the refusal and go on */
  if (r->end != usual->end) return "another end than without refusal";
  if (r->end == HOST_ERROR) return same(r->kind, usual->kind) ? NULL : "another kind of error";
  return same(r->value, usual->value) ? NULL : "another value than without refusal";
}

/* Of a program that catches the refusal: it comes to its usual end. Not caught is what happens behind it, while the
 * value is shown. */
static const char *judge_caught(const HostRun *r, const HostRun *usual) {
  if (r->leaked) return "memory was not given back";
  if (r->end == HOST_NO_VM) return r->refused ? NULL : "no VM, and nothing was refused";
  if (r->end == HOST_ERROR && strcmp(r->kind, "limit") == 0 && r->refused)
    return r->line ? "the refusal was not caught" : NULL;
  if (r->end != usual->end) return "another end than without refusal";
  if (r->end == HOST_ERROR) return same(r->kind, usual->kind) ? NULL : "another kind of error";
  return same(r->value, usual->value) ? NULL : "another value than without refusal";
}

/* The case as a function, in a loop that calls it until it is not refused memory. NULL: it cannot be called twice. */
static char *caught_program(const Case *c) {
  static const char *const once[] = {"rand", "time(", "trace.", "whole=true", "seed", "import", "exit(", "env(",
                                     "read_line", "args(", "catch"};
  static const char tail[] =
      "print(0)\nlet result = nil\nlet tries = 0\nwhile true {\n  try { result = case(); break } catch e {\n"
      "    if e.kind != \"limit\" { error(e) }\n    tries += 1\n    assert(tries < 4)\n  }\n}\nresult\n";
  for (size_t i = 0; i < sizeof once / sizeof once[0]; i++)
    if (strstr(c->program, once[i])) return NULL;
  char *text = case_directive(c, "top") || case_directive(c, "fuel") ||
               case_directive(c, "memory") ? NULL : case_as_function(c, false);
  char *call = text ? text + strlen(text) - strlen("case()\n") : NULL,
      *whole = call ? malloc((size_t)(call - text) + sizeof tail) : NULL;
  if (whole) {
    memcpy(whole, text, (size_t)(call - text));
    memcpy(whole + (call - text), tail, sizeof tail);
  }
  free(text);
  return whole;
}

/* In a child: true when every point is well. */
static bool run_points(const char *program, HostSetup setup, bool making, bool caught) {
  HostRun usual = host_run(&setup, "limits.weft", program);
  long first = making ? 1 : usual.made_after + 1, last = making ? usual.made_after : usual.allocations;
  long step = making ? 1 : (last - first + options.points) / options.points;
  const char *wrong = NULL;
  /* before, it is not in the handler's reach */
  if (caught) first = (usual.printed_after ? usual.printed_after : last) + 1;
  /* its handler raises the error again, and that may be refused memory as well */
  if (caught && usual.end == HOST_ERROR) last = first - 1;
  for (long n = first; n <= last && !wrong; n += step > 0 ? step : 1) {
    setup.refuse_at = n;
    progress->point = n;
    HostRun r = host_run(&setup, "limits.weft", program);
    wrong = caught ? judge_caught(&r, &usual) : judge(program, &r, &usual);
    if (wrong)
      snprintf((char *)progress->what, sizeof progress->what, "%s (%s %.80s)", wrong,
               r.end == HOST_ERROR ? r.kind : "value", r.end == HOST_ERROR ? r.message : r.value ? r.value : "");
    host_run_free(&r);
  }
  host_run_free(&usual);
  return !wrong;
}

/* One point in this process, for a debugger. */
static void run_here(const char *name, const char *program, HostSetup setup) {
  HostRun usual = host_run(&setup, "limits.weft", program);
  setup.refuse_at = options.at;
  HostRun r = host_run(&setup, "limits.weft", program);
  const char *wrong = judge(program, &r, &usual);
  printf("%s limits/%s: allocation %ld of %ld: %s; usually %s\n", wrong ? "not ok" : "ok", name,
         options.at, usual.allocations, r.end == HOST_ERROR ? r.message : r.value ? r.value : "",
         usual.end == HOST_ERROR ? usual.message : usual.value ? usual.value : "");
  host_run_free(&r);
  host_run_free(&usual);
}

static void run(const char *name, const char *program, HostSetup setup, bool making, bool caught) {
  if (options.at) {
    if (!making) run_here(name, program, setup);
    return;
  }
  progress->point = 0;
  progress->what[0] = 0;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(600); /* ends what hangs */
    exit(run_points(program, setup, making, caught) ? 0 : 1);
  }
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0)
    printf("ok limits/%s\n", name);
  else if (progress->what[0])
    printf("not ok limits/%s: allocation %ld refused: %s\n", name, progress->point, progress->what);
  else
    printf("not ok limits/%s: allocation %ld refused: %s\n", name, progress->point,
           WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "the process ended badly");
  fflush(stdout);
}

/* Short lists stay in columns as well. */
static void pack_all(void *context, struct WeftVM *w) {
  (void)context;
  w->vm->tunables.packed_items = 1;
}

int main(int argc, char **argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--every") == 0) options.every = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--points") == 0) options.points = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--caught") == 0) options.caught = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--tier") == 0) options.tier = argv[i + 1];
    if (strcmp(argv[i], "--only") == 0) options.only = argv[i + 1];
    if (strcmp(argv[i], "--at") == 0) options.at = atol(argv[i + 1]);
  }
  if (options.every < 1 || options.points < 1) return 2;
  progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (progress == MAP_FAILED) return 2;
  HostSetup setup = {.backend = options.tier, .hot = strcmp(options.tier, "eager") == 0 ? -1 : 0, .files = true,
                     .made = pack_all};
  char name[320];
  snprintf(name, sizeof name, "new-%s", options.tier);
  run(name, "nil", setup, true, false);
  glob_t found;
  if (glob("tests/cases/*.weft", 0, NULL, &found) != 0) return 2;
  int index = 0, taken = 0;
  char home[4096], folder[] = "/tmp/weft-limits.XXXXXX"; /* where the cases write */
  if (!getcwd(home, sizeof home) || !mkdtemp(folder)) return 2;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    CaseFile f = casefile_read(found.gl_pathv[i]);
    if (chdir(folder) != 0) return 2;
    for (int k = 0; k < f.count; k++) {
      const Case *c = &f.cases[k];
      if (index++ % options.every || (options.only && !strstr(c->name, options.only)) || case_mark(c, MARK_PRINT) ||
          case_directive(c, "deadline"))
        continue;
      HostSetup own = setup;
      const char *limit;
      if ((limit = case_directive(c, "fuel"))) own.fuel = (uint64_t)strtod(limit, NULL);
      if ((limit = case_directive(c, "memory"))) own.memory = (uint64_t)strtod(limit, NULL);
      bool top = case_directive(c, "top") || strcmp(options.tier, "eager") == 0;
      char *program = top ? NULL : case_as_function(c, true);
      snprintf(name, sizeof name, "%s-%.200s", options.tier, c->name);
      run(name, program ? program : c->program, own, false, false);
      free(program);
      program = options.caught && taken++ % options.caught == 0 ? caught_program(c) : NULL;
      if (!program) continue;
      snprintf(name, sizeof name, "%s-caught-%.200s", options.tier, c->name);
      run(name, program, own, false, true);
      free(program);
    }
    casefile_free(&f);
    if (chdir(home) != 0) return 2;
  }
  globfree(&found);
  glob_t left;
  char pattern[64];
  snprintf(pattern, sizeof pattern, "%s/*", folder);
  if (glob(pattern, 0, NULL, &left) == 0) {
    for (size_t i = 0; i < left.gl_pathc; i++) (void)remove(left.gl_pathv[i]);
    globfree(&left);
  }
  (void)remove(folder);
  return 0;
}
