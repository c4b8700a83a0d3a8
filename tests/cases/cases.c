/* cases.c — runs tests/cases: every case in every tier, and compares with what the file says and between tiers.
 *   build/tests/cases [--tier NAME]… [--driver PATH] [--exits N] [--points N] [--slow MS] [--part K/N] [--sample N]
 *   [--case NAME] [--prefix TEXT] [FILE…]
 * One process per file: a crash fails the case it came from, and the rest of the file runs on in a new one. */
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/inner.h"
#include "jit/jit.h"
#include "tests/support/casefile.h"
#include "tests/support/host.h"

enum { CASE_SECONDS = 120 }; /* of a case in one tier: this ends what hangs, and says nothing of speed */

typedef enum Form { AS_IT_STANDS, GLOBALS, LOCALS } Form;

/* The first row is the reference: what the others must equal. */
static const struct Tier {
  const char *name; /* what --tier, `#% only` and `#?` call it */
  const char *label;
  const char *backend;
  int hot;
  Form form;
  const char *force; /* what goes wrong on purpose, see weft.h */
  const char *cpu;
} tiers[] = {
    {"eager", "eager", "eager", -1, AS_IT_STANDS, NULL, NULL},
    {"eager", "eager, as a function", "eager", -1, GLOBALS, NULL, NULL},
    {"interp", "interp", "interp", 0, GLOBALS, NULL, NULL},
    {"interp", "interp, locals", "interp", 0, LOCALS, NULL, NULL},
    {"loops", "loops", "loops", 0, GLOBALS, NULL, NULL},
    {"loops", "loops, locals", "loops", 0, LOCALS, NULL, NULL},
    {"mir", "mir", "mir", 0, GLOBALS, NULL, NULL},
    {"mir", "mir, locals", "mir", 0, LOCALS, NULL, NULL},
    {"mir", "mir, as it stands", "mir", 0, AS_IT_STANDS, NULL, NULL},
    {"ptx", "ptx", "ptx", 0, GLOBALS, NULL, NULL},
    {"ptx", "ptx, locals", "ptx", 0, LOCALS, NULL, NULL},
    {"verify", "verify", "verify", 0, GLOBALS, NULL, NULL},
    {"exits", "mir, forced exits", "mir", 0, GLOBALS, "exits", NULL},
    {"misses", "mir, forced misses", "mir", 0, GLOBALS, "misses", NULL},
    {"checks", "mir, checks that fail", "mir", 0, GLOBALS, "checks", NULL},
    {"endless", "mir, passes that never end", "mir", 0, GLOBALS, "endless", NULL},
    {"rollback", "interp, every step undone once", "interp", 0, GLOBALS, "rollback", NULL},
    {"threads", "mir, short loops in threads", "mir", 0, GLOBALS, "threads", NULL},
    {"threads", "eager, short loops in threads", "eager", -1, GLOBALS, "threads", NULL},
    {"large", "mir, all arrays count as large", "mir", -1, GLOBALS, "large", NULL},
    {"large", "mir, all arrays count as large, as it stands", "mir", -1, AS_IT_STANDS, "large", NULL},
    {"scalar", "mir, WEFT_CPU=scalar", "mir", 0, GLOBALS, NULL, "scalar"},
    {"avx2", "mir, WEFT_CPU=avx2", "mir", 0, GLOBALS, NULL, "avx2"},
    {"avx512", "mir, WEFT_CPU=avx512", "mir", 0, GLOBALS, NULL, "avx512"},
};
enum { TIERS = sizeof tiers / sizeof tiers[0], HEAVY_RARER = 4 };

static struct {
  bool wanted[TIERS];
  int exits_every; /* one case in so many runs under forced exits, misses …; 0: none */
  int points;      /* each of them at the first, second … place, up to so many; 0: once, at changing places */
  double slow_ms; /* runs that take as long are told of; 0: none */
  int part, parts; /* every N-th case, from the K-th on */
  /* a case runs in eager, in `mir` as a function, and in one in so many of the other tiers: another one in the next
   * case */
  int sample;
  bool rotate; /* `mir` takes its turn as the others do */
  const char *only_case;
  const char *prefix; /* of the names behind their files', NULL: all */
  const char *driver; /* of the tier ptx */
  bool hold; /* its context */
  bool bytes; /* programs run as weft_compile gives them */
} options = {.exits_every = 5, .parts = 1, .sample = 1};

/* Shared with the parent: what the child was doing when it died. */
static volatile struct Progress {
  int next; /* index of the case that runs, or is to run */
  int tier;
} *progress;

/* The first failure of the case that runs; later ones say nothing new. */
static char why[2048];

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...) {
  if (why[0]) return;
  va_list ap;
  va_start(ap, format);
  vsnprintf(why, sizeof why, format, ap);
  va_end(ap);
}

/* Rank 2 and up is shown with one row per line; marks have it on one. */
static void join_lines(char *s) {
  char *to = s;
  for (; *s; s++) {
    bool line = *s == '\n'; /* `to` may stand where `s` does */
    *to++ = line ? ' ' : *s;
    while (line && s[1] == ' ') s++;
  }
  *to = 0;
}

static void one_line(char *s) {
  for (; *s; s++)
    if (*s == '\n') *s = ' ';
}

/* ---- marks --------------------------------------------------------------------------------- */

/* Equal but for numbers, which may differ by `tol`, relative or absolute. */
static bool near_text(const char *got, const char *wanted, double tol) {
  while (*got && *wanted) {
    char *after_got, *after_wanted;
    double g = strtod(got, &after_got), w = strtod(wanted, &after_wanted);
    if (after_got != got && after_wanted != wanted) {
      bool same = (isnan(g) && isnan(w)) || g == w || fabs(g - w) <= tol * fmax(1.0, fabs(w));
      if (!same) return false;
      got = after_got;
      wanted = after_wanted;
    } else if (*got++ != *wanted++) {
      return false;
    }
  }
  return *got == *wanted;
}

static void check_near(const HostRun *r, const char *mark, const char *label) {
  double tol = 1e-9;
  char wanted[4096];
  snprintf(wanted, sizeof wanted, "%s", mark);
  char *blank = strrchr(wanted, ' ');
  if (blank && !strpbrk(blank, "()[]{},")) {
    char *end;
    double t = strtod(blank + 1, &end);
    if (end != blank + 1 && !*end) {
      tol = t;
      *blank = 0;
    }
  }
  if (!near_text(r->value, wanted, tol)) fail("%s: gave %s, not near %s", label, r->value, wanted);
}

static void check_error(const HostRun *r, const char *mark, bool position, const char *label) {
  char wanted[1024];
  snprintf(wanted, sizeof wanted, "%s", mark);
  char *at = strrchr(wanted, '@');
  int line = 0, column = 0;
  if (at && sscanf(at, "@%d:%d", &line, &column) == 2) {
    while (at > wanted && at[-1] == ' ') at--;
    *at = 0;
  }
  char *colon = strchr(wanted, ':');
  if (!colon) {
    fail("its mark names no kind of error: %s", mark);
    return;
  }
  *colon = 0;
  const char *part = colon + 1 + strspn(colon + 1, " ");
  if (r->end != HOST_ERROR)
    fail("%s: gave %s instead of an error", label, r->value);
  else if (strcmp(r->kind, wanted) != 0)
    fail("%s: an error of kind %s (%s)", label, r->kind, r->message);
  else if (!strstr(r->message, part))
    fail("%s: the message is: %s", label, r->message);
  else if (position && line && (r->line != line || r->column != column))
    fail("%s: the error is at %d:%d", label, r->line, r->column);
}

static void check_printed(const HostRun *r, const Case *c, const char *label) {
  const char *s = r->printed;
  for (int i = 0; i < c->mark_count; i++) {
    if (c->marks[i].kind != MARK_PRINT) continue;
    const char *wanted = c->marks[i].text;
    size_t n = strcspn(s, "\n"), trimmed = n;
    while (trimmed && s[trimmed - 1] == ' ') trimmed--;
    if (trimmed != strlen(wanted) || strncmp(s, wanted, trimmed) != 0) {
      fail("%s: printed '%.*s' instead of '%s'", label, (int)n, s, wanted);
      return;
    }
    s += n + (s[n] == '\n');
  }
  if (*s) fail("%s: printed '%.60s' as well", label, s);
}

/* `[TIER:] NAME [OP] VALUE, …` */
static void check_counters(const HostRun *r, const Case *c, const char *mark, const struct Tier *t) {
  const char *tier = "mir", *colon = strchr(mark, ':');
  size_t tier_length = strlen(tier);
  if (colon) {
    tier = mark;
    tier_length = (size_t)(colon - mark);
    mark = colon + 1;
  }
  if (strlen(t->name) != tier_length || strncmp(t->name, tier, tier_length) != 0) return;
  bool as_it_stands = strcmp(t->name, "eager") == 0 || case_directive(c, "top");
  if (t->form != (as_it_stands ? AS_IT_STANDS : GLOBALS)) return;
  for (const char *s = mark; *s;) {
    s += strspn(s, " ,");
    size_t name = strcspn(s, " ,");
    const char *op = s + name + strspn(s + name, " ");
    size_t op_length = strspn(op, "<>=!");
    char *end;
    double wanted = strtod(op + op_length, &end), got = 0;
    if (end == op + op_length) {
      fail("its mark is not understood: %s", mark);
      return;
    }
    if (!host_counter(r, s, name, &got)) {
      fail("no counter is called %.*s", (int)name, s);
      return;
    }
    bool holds = op_length == 0                      ? got == wanted
                 : strncmp(op, "==", op_length) == 0 ? got == wanted
                 : strncmp(op, "!=", op_length) == 0 ? got != wanted
                 : strncmp(op, "<=", op_length) == 0 ? got <= wanted
                 : strncmp(op, ">=", op_length) == 0 ? got >= wanted
                 : op[0] == '<'                      ? got < wanted
                                                     : got > wanted;
    if (!holds) fail("%s: counter %.*s is %g", t->label, (int)name, s, got);
    s = end + strspn(end, " ");
  }
}

static void check_marks(const HostRun *r, const Case *c, const struct Tier *t) {
  if (r->end == HOST_NO_VM) fail("%s: no VM could be made", t->label);
  if (r->end == HOST_ERROR && !case_mark(c, MARK_ERROR)) fail("%s: %s error: %s", t->label, r->kind, r->message);
  for (int i = 0; i < c->mark_count && !why[0]; i++) {
    const char *text = c->marks[i].text;
    switch (c->marks[i].kind) {
    case MARK_VALUE:
      if (strcmp(r->value, text) != 0) fail("%s: gave %s, not %s", t->label, r->value, text);
      break;
    case MARK_NEAR: check_near(r, text, t->label); break;
    case MARK_ERROR: check_error(r, text, t->form == AS_IT_STANDS, t->label); break;
    case MARK_COUNT: check_counters(r, c, text, t); break;
    default: break;
    }
  }
  if (!why[0]) check_printed(r, c, t->label);
  if (r->leaked) fail("%s: %zu bytes were not given back", t->label, r->leaked);
}

/* Every tier gives what the first one gave. */
static void compare(const HostRun *first, const HostRun *r, const Case *c, const char *label) {
  if (r->end != first->end) {
    fail("%s: differs from eager: %s instead of %s", label, r->end == HOST_ERROR ? r->message : r->value,
         first->end == HOST_ERROR ? first->message : first->value);
  } else if (r->end == HOST_ERROR) {
    if (strcmp(r->kind, first->kind) != 0 || strcmp(r->message, first->message) != 0)
      fail("%s: another error than eager: %s: %s instead of %s: %s", label, r->kind, r->message, first->kind,
           first->message);
  } else if (!case_directive(c, "lib")) {
    if (strcmp(r->value, first->value) != 0)
      fail("%s: gave %s, eager %s", label, r->value, first->value);
    else if (strcmp(r->type, first->type) != 0)
      fail("%s: gave a %s, eager a %s", label, r->type, first->type);
  }
  if (strcmp(r->printed, first->printed) != 0)
    fail("%s: printed '%.60s', eager '%.60s'", label, r->printed, first->printed);
}

/* ---- one case ------------------------------------------------------------------------------ */

static bool runs_in(const Case *c, int index, int tier) {
  const struct Tier *t = &tiers[tier];
  const char *only = case_directive(c, "only");
  if (only && strcmp(only, t->name) != 0) return false;
  if (tier == 0) return true;
  if (!options.wanted[tier]) return false;
  if (case_directive(c, "top") && t->form != AS_IT_STANDS) return false;
  if (strcmp(t->name, "ptx") == 0 && case_directive(c, "cpu")) return false;
  /* where they strike differs */
  if (t->force && (case_directive(c, "fuel") || case_directive(c, "memory") || case_directive(c, "deadline")))
    return false;
  bool always = (strcmp(t->label, "mir") == 0 && !options.rotate) || case_directive(c, "exits");
  const char *heavy = case_directive(c, "heavy");
  int rarer = heavy && options.sample > 1 ? HEAVY_RARER : 1;
  if (heavy && strcmp(heavy, t->label) == 0 && !options.rotate) always = true;
  if (always) return true;
  if (!t->force || strcmp(t->force, "threads") == 0)
    return (index / options.parts + tier) % (options.sample * rarer) == 0;
  return options.exits_every && (index + tier) % (options.exits_every * rarer) == 0;
}

/* Counters must not hang on the clock: a compilation may take whatever it takes. */
static void take_no_time(void *context, struct WeftVM *vm) {
  (void)context;
  vm->vm->tunables.compile_ms = 1000000;
  vm->vm->tunables.packed_items = 1; /* so that short lists stay in columns as well */
}

static HostRun run_in_tier(const Case *c, const struct Tier *t, const char *program, int point) {
  char force[32] = "";
  if (t->force) snprintf(force, sizeof force, "%s %d", t->force, point);
  HostSetup setup = {.backend = t->backend, .cpu = t->cpu, .hot = t->hot, .force = force,
                     .files = case_directive(c, "files") != NULL, .made = take_no_time, .bytes = options.bytes};
  if (strcmp(t->name, "ptx") == 0 || case_directive(c, "gpu")) setup.driver = options.driver;
  const char *limit;
  if ((limit = case_directive(c, "fuel"))) setup.fuel = (uint64_t)strtod(limit, NULL);
  if ((limit = case_directive(c, "memory"))) setup.memory = (uint64_t)strtod(limit, NULL);
  if ((limit = case_directive(c, "deadline"))) setup.deadline = strtod(limit, NULL) / 1000;
  alarm(CASE_SECONDS);
  clock_t began = clock();
  HostRun r = host_run(&setup, "case.weft", program);
  alarm(0);
  double ms = (double)(clock() - began) * 1000 / CLOCKS_PER_SEC;
  if (options.slow_ms > 0 && ms >= options.slow_ms) printf("# %s: %s: %.0f ms\n", c->name, t->label, ms);
  if (r.value) join_lines(r.value);
  return r;
}

static void note_point(int point) {
  size_t n = strlen(why);
  snprintf(why + n, sizeof why - n, " (at place %d)", point);
}

static void run_case(const Case *c, int index) {
  HostRun first = {0};
  bool have_first = false;
  why[0] = 0;
  for (int tier = 0; tier < TIERS && !why[0]; tier++) {
    if (!runs_in(c, index, tier)) continue;
    const struct Tier *t = &tiers[tier];
    char *wrapped = t->form == AS_IT_STANDS ? NULL : case_as_function(c, t->form == GLOBALS);
    if (t->form != AS_IT_STANDS && !wrapped) continue;
    HostRun r = {0};
    progress->tier = tier;
    int points = t->force && strcmp(t->force, "threads") != 0 && options.points ? options.points : 1;
    for (int point = 1; point <= points && !why[0]; point++) {
      host_run_free(&r);
      r = run_in_tier(c, t, wrapped ? wrapped : c->program, options.points ? point : 0);
      check_marks(&r, c, t);
      if (have_first && !why[0]) compare(&first, &r, c, t->label);
      if (why[0] && points > 1) note_point(point);
      double forced, unclean;
      if (host_counter(&r, "mir_errors", 10, &unclean) && unclean > 0)
        fail("%s: MIR raised %g errors", t->label, unclean);
      if (host_counter(&r, "unverified", 10, &unclean) && unclean > 0)
        fail("%s: %g graphs do not verify", t->label, unclean);
      if (t->force && (!host_counter(&r, "forced", 6, &forced) || forced == 0)) break; /* there is no such place */
      if (host_counter(&r, "unclean", 7, &unclean) && unclean > 0)
        fail("%s: %g rollbacks left something behind", t->label, unclean);
      if (t->force && strcmp(t->force, "rollback") == 0) break;
    }
    free(wrapped);
    if (!have_first)
      first = r;
    else
      host_run_free(&r);
    have_first = true;
  }
  host_run_free(&first);
  one_line(why);
  if (why[0])
    printf("not ok %s: %s\n", c->name, why);
  else
    printf("ok %s\n", c->name);
  fflush(stdout);
}

/* ---- files --------------------------------------------------------------------------------- */

static bool is_chosen(const Case *c, int index) {
  if (index % options.parts != options.part) return false;
  if (options.only_case && strcmp(options.only_case, c->name) != 0) return false;
  if (!options.prefix) return true;
  const char *slash = strchr(c->name, '/');
  return strncmp(slash ? slash + 1 : c->name, options.prefix, strlen(options.prefix)) == 0;
}

static void run_from(const CaseFile *f, int start) {
  for (int i = start; i < f->count; i++) {
    progress->next = i;
    if (is_chosen(&f->cases[i], i)) run_case(&f->cases[i], i);
  }
  progress->next = f->count;
}

/* Cases that may write files do so in a fresh folder. */
static void enter_folder(const CaseFile *f) {
  bool wanted = false;
  for (int i = 0; i < f->count; i++) wanted |= case_directive(&f->cases[i], "files") != NULL;
  char folder[] = "build/check/files.XXXXXX";
  if (!wanted) return;
  (void)mkdir("build", 0777);
  (void)mkdir("build/check", 0777);
  if (!mkdtemp(folder) || chdir(folder) != 0) {
    printf("not ok %s: no folder for its files: %s\n", f->stem, strerror(errno));
    exit(1);
  }
}

/* A context of a card takes tenths of a second to make; it stays while some VM has it. The VM that holds it ends with
 * the process. */
static void hold_card(const char *stem) {
  WeftOptions asked = WEFT_OPTIONS_INIT;
  asked.allow_gpu = true;
  asked.cuda_driver = *options.driver ? options.driver : NULL;
  WeftVM *vm = weft_new(&asked);
  if (!vm || weft_eval(vm, "to([1.0], \"gpu\") + 1.0", "card", NULL) != WEFT_OK)
    printf("not ok %s/card: it does not start: %s\n", stem, vm ? weft_error_message(vm) : "no memory");
}

static void run_file(const char *path) {
  CaseFile f = casefile_read(path);
  for (int start = 0; start < f.count;) {
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) {
      printf("not ok %s: no process: %s\n", f.stem, strerror(errno));
      break;
    }
    if (child == 0) {
      enter_folder(&f);
      if (options.hold) hold_card(f.stem);
      run_from(&f, start);
      casefile_free(&f);
      exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (progress->next >= f.count) {
      if (status) printf("not ok %s/end: the process ended with status %d\n", f.stem, status);
      break;
    }
    const char *in = tiers[progress->tier].label, *name = f.cases[progress->next].name;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
      printf("not ok %s: %s: ran past %d seconds\n", name, in, CASE_SECONDS);
    else if (WIFSIGNALED(status))
      printf("not ok %s: %s: %s\n", name, in, strsignal(WTERMSIG(status)));
    else
      printf("not ok %s: %s: ended the process with status %d\n", name, in, WEXITSTATUS(status));
    start = progress->next + 1;
  }
  casefile_free(&f);
}

static void usage(void) {
  fprintf(stderr, "cases [--tier NAME]... [--driver PATH] [--exits N] [--points N] [--slow MS] [--part K/N] [--sample "
                  "N] [--rotate N] [--form text|bytes] [--case NAME] [--prefix TEXT] [FILE...]\n  tiers:");
  for (int i = 0; i < TIERS; i++)
    if (i == 0 || strcmp(tiers[i].name, tiers[i - 1].name) != 0) fprintf(stderr, " %s", tiers[i].name);
  fprintf(stderr, "\n");
  exit(2);
}

int main(int argc, char **argv) {
  progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (progress == MAP_FAILED) return 2;
  bool some = false;
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; i += 2) {
    if (i + 1 >= argc) usage();
    if (strcmp(argv[i], "--tier") == 0) {
      bool known = false;
      for (int t = 0; t < TIERS; t++)
        if (strcmp(argv[i + 1], tiers[t].name) == 0) options.wanted[t] = known = true;
      if (!known) usage();
      some = true;
    } else if (strcmp(argv[i], "--driver") == 0) { /* "": the system's */
      options.driver = argv[i + 1];
      options.hold = true;
    } else if (strcmp(argv[i], "--exits") == 0) {
      options.exits_every = atoi(argv[i + 1]);
    } else if (strcmp(argv[i], "--points") == 0) {
      options.points = atoi(argv[i + 1]);
    } else if (strcmp(argv[i], "--part") == 0) {
      if (sscanf(argv[i + 1], "%d/%d", &options.part, &options.parts) != 2 || options.part < 0 ||
          options.part >= options.parts)
        usage();
    } else if (strcmp(argv[i], "--sample") == 0 || strcmp(argv[i], "--rotate") == 0) {
      options.sample = atoi(argv[i + 1]);
      options.rotate = strcmp(argv[i], "--rotate") == 0;
      if (options.sample < 1) usage();
    } else if (strcmp(argv[i], "--slow") == 0) { /* so many milliseconds of processor time */
      options.slow_ms = atof(argv[i + 1]);
    } else if (strcmp(argv[i], "--form") == 0) {
      options.bytes = strcmp(argv[i + 1], "bytes") == 0;
      if (!options.bytes && strcmp(argv[i + 1], "text") != 0) usage();
    } else if (strcmp(argv[i], "--case") == 0) {
      options.only_case = argv[i + 1];
    } else if (strcmp(argv[i], "--prefix") == 0) {
      options.prefix = argv[i + 1];
    } else {
      usage();
    }
  }
  for (int t = 0; t < TIERS && !some; t++) options.wanted[t] = true;
  for (int t = 0; t < TIERS; t++) {
    if (!options.wanted[t] || !tiers[t].cpu || jit_cpu_runs(tiers[t].cpu)) continue;
    printf("skip tier/%s: it is beyond this processor\n", tiers[t].name);
    options.wanted[t] = false;
  }
  /* The stand-in lies beside this program; cases may run in another folder. */
  static char driver[4096];
  const char *slash = strrchr(argv[0], '/');
  if (!options.driver) {
    char beside[3000];
    snprintf(beside, sizeof beside, "%.*slibcuda.so", slash ? (int)(slash + 1 - argv[0]) : 0, argv[0]);
    options.driver = realpath(beside, driver) ? driver : "no-driver";
  }
  if (i < argc) {
    for (; i < argc; i++) run_file(argv[i]);
    return 0;
  }
  glob_t found;
  if (glob("tests/cases/*.weft", 0, NULL, &found) != 0 || glob("build/cases/*.weft", GLOB_APPEND, NULL, &found) != 0) {
    fprintf(stderr, "cases: no files in tests/cases or build/cases (make tests)\n");
    return 2;
  }
  for (size_t k = 0; k < found.gl_pathc; k++) run_file(found.gl_pathv[k]);
  globfree(&found);
  return 0;
}
