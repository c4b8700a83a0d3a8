/* programs.c — ordinary programs (bench/programs), written without a thought of tracing: in every tier they print what
 * their header says, and compiled as a user has it they are captured as the header states.
 *   build/tests/programs [NAME…]           checks
 *   build/tests/programs --share [NAME…]   on larger data: time in compiled regions / whole time, and speed against
 *                                          eager
 *   build/tests/programs --cpu [NAME…]     the same by processor time, where other programs run beside
 * A NAME that ends in .weft is the path of another program; its share is measured, and how it is captured is told.
 * A header is what stands before the first line of code:
 *   #> TEXT                a line that is printed (on the small data, which is what runs without arguments)
 *   # trace: NAME N, …     counters (rows of lang/stats.def) in the tier mir with its usual heat
 *   # why: …               why these numbers
 *   # large: ARGUMENT      the size for --share; `arithmetic`: at least 90 % of the time is to be compiled code
 * The lines of output were computed by other programs (in Python, linear algebra with NumPy), or by a closed form
 * that the program compares with itself. Exits, compilations and what surrounds them are no time in compiled
 * regions. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/inner.h"
#include "tests/support/host.h"
#include "tracer/tracer.h"

enum { PROGRAMS_MAX = 256, LINE_MAX_ = 256 };
static const char folder[] = "bench/programs";

static clockid_t clock_used = CLOCK_MONOTONIC;

static u64 now_ns(void *context) {
  struct timespec t;
  (void)context;
  clock_gettime(clock_used, &t);
  return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

static double now(void) { return 1e-9 * (double)now_ns(NULL); }

static char *read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  char *text = f ? malloc(1 << 18) : NULL;
  if (!text) {
    fprintf(stderr, "programs: cannot read %s\n", path);
    exit(2);
  }
  text[fread(text, 1, (1 << 18) - 1, f)] = 0;
  fclose(f);
  return text;
}

/* The lines of the header that begin with `mark`, without it, each with its end. Owned. */
static char *header(const char *text, const char *mark) {
  char *out = calloc(1, strlen(text) + 2);
  if (!out) exit(2);
  for (const char *line = text; *line == '#';) {
    const char *end = strchr(line, '\n');
    size_t n = end ? (size_t)(end - line) : strlen(line), m = strlen(mark);
    if (n >= m && strncmp(line, mark, m) == 0) {
      strncat(out, line + m, n - m);
      strcat(out, "\n");
    }
    if (!end) break;
    line = end + 1;
  }
  return out;
}

typedef struct Arguments {
  int count;
  char *values[1];
} Arguments;
static void give_arguments(void *context, struct WeftVM *vm) {
  Arguments *a = context;
  if (a) weft_set_args(vm, a->count, a->values);
  if (clock_used != CLOCK_MONOTONIC) tracer_use_clock(tracer_of(vm->vm), now_ns, NULL);
}

/* Counters that are stated must not hang on the clock: regions are not weighed, recompiles do not wait for a gain. */
static void take_no_time(void *context, struct WeftVM *vm) {
  (void)context;
  tracer_ignore_clock(tracer_of(vm->vm));
}

static bool check_output(const char *name, const char *tier, const HostRun *r, const char *want) {
  if (r->end == HOST_ERROR) {
    printf("not ok programs/%s: %s: %s\n", name, tier, r->message);
    return false;
  }
  if (r->leaked) {
    printf("not ok programs/%s: %s: memory was not given back\n", name, tier);
    return false;
  }
  if (strcmp(r->printed ? r->printed : "", want) == 0) return true;
  const char *a = r->printed ? r->printed : "", *b = want;
  while (*a && *a == *b) a++, b++;
  while (a > r->printed && a[-1] != '\n') a--, b--;
  printf("not ok programs/%s: %s: printed %.*s, not %.*s\n", name, tier, (int)strcspn(a, "\n"), a,
         (int)strcspn(b, "\n"), b);
  return false;
}

static bool check_counters(const char *name, const HostRun *r, const char *stated) {
  char key[64];
  double want, have;
  int used, any = 0;
  for (const char *p = stated; sscanf(p, " %63[a-z_] %lf%n", key, &want, &used) == 2; any++) {
    if (!host_counter(r, key, strlen(key), &have) || have != want) {
      printf("not ok programs/%s: %s %g, stated %g\n", name, key, have, want);
      return false;
    }
    p += used;
    p += strspn(p, ", \n");
  }
  if (any < 4) printf("not ok programs/%s: states no counters\n", name);
  return any >= 4;
}

static void check(const char *name, const char *path, const char *text) {
  static const struct { const char *name, *backend; int hot; } tiers[] = {
      {"eager", "eager", -1}, {"mir", "mir", -1}, {"mir at once", "mir", 0}, {"interp", "interp", 0},
          {"loops", "loops", 0}, {"verify", "verify", 0}};
  char *want = header(text, "#> "), *stated = header(text, "# trace:");
  bool well = *want != 0;
  if (!well) printf("not ok programs/%s: states no output\n", name);
  for (size_t t = 0; t < sizeof tiers / sizeof tiers[0] && well; t++) {
    HostSetup setup = {.backend = tiers[t].backend, .hot = tiers[t].hot, .made = take_no_time};
    HostRun r = host_run(&setup, path, text);
    well = check_output(name, tiers[t].name, &r, want);
    if (well && t == 1) well = check_counters(name, &r, stated);
    host_run_free(&r);
  }
  if (well) printf("ok programs/%s\n", name);
  free(want);
  free(stated);
}

/* The least of a few runs; one that takes long is measured well by itself. */
enum { TOLD = 6 };
static const char *const told[TOLD] = {"compiles", "recompiles", "breaks", "cold_exits", "exits", "check_failures"};

static double run_time(const char *backend, const char *path, const char *text, Arguments *a, double *compiled,
                       double *compiling, double counts[TOLD], char **printed) {
  double best = 1e9;
  for (int i = 0; i < 3 && (i == 0 || best < 2); i++) {
    HostSetup setup = {.backend = backend, .hot = -1, .own_memory = true, .made = give_arguments, .context = a};
    double begin = now();
    HostRun r = host_run(&setup, path, text);
    double spent = now() - begin;
    if (r.end == HOST_ERROR) printf("%s: %s\n", path, r.message);
    if (spent < best) {
      best = spent;
      host_counter(&r, "compiled_ns", 11, compiled);
      host_counter(&r, "compile_ns", 10, compiling);
      for (int k = 0; counts && k < TOLD; k++) host_counter(&r, told[k], strlen(told[k]), &counts[k]);
      free(*printed);
      *printed = strdup(r.printed ? r.printed : "");
    }
    host_run_free(&r);
  }
  return best;
}

/* False: missed what was promised. */
static bool share(const char *name, const char *path, const char *text, bool tells) {
  char *large = header(text, "# large:"), size[64] = "", kind[64] = "", *printed[2] = {NULL, NULL};
  sscanf(large, " %63[^, \n], %63s", size, kind);
  Arguments a = {.count = *size ? 1 : 0, .values = {size}};
  double compiled = 0, compiling = 0, unused = 0, counts[TOLD] = {0};
  double eager = run_time("eager", path, text, &a, &unused, &unused, NULL, &printed[0]);
  double mir = run_time("mir", path, text, &a, &compiled, &compiling, counts, &printed[1]);
  bool arithmetic = strcmp(kind, "arithmetic") == 0,
      same = printed[0] && printed[1] && strcmp(printed[0], printed[1]) == 0;
  double part = 100 * compiled * 1e-9 / mir;
  bool well = same && (!arithmetic || part >= 90) && mir <= 1.05 * eager;
  printf("%-14s %9.2f ms   eager %9.2f ms   %6.2f times as fast   compiled code %5.1f %%   compiling %5.1f %%%s%s%s",
         name, mir * 1e3, eager * 1e3, eager / mir, part, 100 * compiling * 1e-9 / mir,
         same ? "" : "  DIFFERS", arithmetic && part < 90 ? "  MISSED: at least 90 %" : "",
         mir > 1.05 * eager ? "  MISSED: slower than eager" : "");
  for (int k = 0; k < TOLD && tells; k++) printf("%s%s %g", k ? ", " : "   ", told[k], counts[k]);
  putchar('\n');
  fflush(stdout);
  free(printed[0]);
  free(printed[1]);
  free(large);
  return well;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

int main(int argc, char **argv) {
  bool cpu = argc > 1 && strcmp(argv[1], "--cpu") == 0, shares = cpu || (argc > 1 && strcmp(argv[1], "--share") == 0),
      well = true;
  if (cpu) clock_used = CLOCK_PROCESS_CPUTIME_ID;
  int first = shares ? 2 : 1;
  DIR *d = opendir(folder);
  char *names[PROGRAMS_MAX];
  size_t count = 0;
  if (!d) {
    fprintf(stderr, "programs: no folder %s\n", folder);
    return 2;
  }
  for (struct dirent *e; (e = readdir(d)) && count < PROGRAMS_MAX;) {
    size_t n = strlen(e->d_name);
    if (n > 5 && strcmp(e->d_name + n - 5, ".weft") == 0) names[count++] = strndup(e->d_name, n - 5);
  }
  closedir(d);
  qsort(names, count, sizeof *names, by_name);
  for (size_t i = 0; i < count; i++) {
    bool wanted = argc <= first;
    for (int k = first; k < argc; k++) wanted |= strcmp(argv[k], names[i]) == 0;
    if (wanted) {
      char path[LINE_MAX_];
      snprintf(path, sizeof path, "%s/%s.weft", folder, names[i]);
      char *text = read_file(path);
      if (shares) well &= share(names[i], path, text, false);
      else check(names[i], path, text);
      fflush(stdout);
      free(text);
    }
    free(names[i]);
  }
  for (int k = first; k < argc && shares; k++) {
    size_t n = strlen(argv[k]);
    if (n <= 5 || strcmp(argv[k] + n - 5, ".weft") != 0) continue;
    char *text = read_file(argv[k]);
    well &= share(argv[k], argv[k], text, true);
    free(text);
  }
  return well ? 0 : 1;
}
