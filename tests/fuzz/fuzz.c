/* fuzz.c — a coverage-guided fuzzer, in one process: mutates inputs, keeps those that reach new edges.
 *   build/asan/tests/fuzz TARGET SECONDS [SEED]       targets: those of the table below
 *   build/asan/tests/fuzz TARGET --run FILE…          runs files once (a finding, say)
 * The library is built with -fsanitize-coverage=trace-pc, which calls __sanitizer_cov_trace_pc on every edge, and with
 * AddressSanitizer and UBSan. The parent keeps the input at hand in shared memory, so a finding survives its child:
 * it lies in build/fuzz/TARGET.finding then. tests/fuzz/seeds/TARGET/ holds first inputs and old findings. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/weft.h"
#include "tests/fuzz/mutate.h"
#include "tests/support/casefile.h"
#include "tests/support/host.h"

enum {
  INPUT_MAX = 1 << 14,
  CORPUS_MAX = 1 << 14,
  RUN_SECONDS = 30, /* of processor time; longer is a finding: fuel and memory are limited */
};

/* ---- coverage ------------------------------------------------------------------------------ */

enum { EDGES = 1 << 16 };
static uint8_t edge_hits[EDGES];   /* of the run at hand */
static uint8_t edge_seen[EDGES];   /* bit k: some run took the edge about 2^k times */
static uintptr_t previous_pc;

void __sanitizer_cov_trace_pc(void);
__attribute__((no_sanitize("address", "undefined"))) void __sanitizer_cov_trace_pc(void) {
  uintptr_t pc = (uintptr_t)__builtin_return_address(0);
  uintptr_t edge = (pc ^ (previous_pc >> 1)) * 0x9e3779b97f4a7c15u >> 48;
  if (edge_hits[edge] < 255) edge_hits[edge]++;
  previous_pc = pc;
}

static uint8_t hit_class(uint8_t n) {
  return (uint8_t)(n < 4 ? 1 << (n - 1) : n < 8 ? 8 : n < 16 ? 16 : n < 32 ? 32 : n < 128 ? 64 : 128);
}

/* Merges the run into what was seen; true when it brought something new. */
static bool merge_coverage(void) {
  bool fresh = false;
  for (int i = 0; i < EDGES; i++) {
    if (!edge_hits[i]) continue;
    uint8_t class = hit_class(edge_hits[i]);
    if (edge_seen[i] & class) continue;
    edge_seen[i] |= class;
    fresh = true;
  }
  return fresh;
}

/* ---- targets ------------------------------------------------------------------------------- */

/* Shared with the parent. */
static struct Shared {
  char input[INPUT_MAX + 1];
  size_t length;
  unsigned long runs;
  unsigned corpus, edges;
  char complaint[256]; /* what the target itself found wrong */
} *shared;

static void complain(const HostRun *r) {
  if (r->leaked) snprintf(shared->complaint, sizeof shared->complaint, "%zu bytes were not given back", r->leaked);
  if (r->end == HOST_ERROR && (!r->message || !r->message[0]))
    snprintf(shared->complaint, sizeof shared->complaint, "an error without a message");
}

/* What editors are told of a text lies inside of it, and is in order. */
static void outline_source(const char *text, size_t length) {
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.memory = 32 << 20;
  WeftVM *vm = weft_new(&options);
  WeftOutline *outline = NULL;
  WeftProblem p = {.size = sizeof p};
  WeftSymbol s = {.size = sizeof s};
  WeftMention m = {.size = sizeof m};
  size_t symbols = 0, last = 0;
  bool good = vm != NULL;
  if (good && weft_outline(vm, text, length, &outline) == WEFT_OK) {
    for (size_t i = 0; weft_outline_problem(outline, i, &p); i++) good &= p.at + p.length <= length && *p.message;
    for (; weft_outline_symbol(outline, symbols, &s); symbols++)
      good &= s.at + strlen(s.name) <= length && s.from <= s.to && s.to <= length && s.parent < (int)symbols;
    for (size_t i = 0; weft_outline_mention(outline, i, &m); last = m.at + m.length, i++)
      good &= m.at >= last && m.at + m.length <= length && m.symbol < (int)symbols && m.imported < (int)symbols;
  }
  weft_outline_free(vm, outline);
  weft_free(vm);
  if (!good) snprintf(shared->complaint, sizeof shared->complaint, "the outline of a text lies outside of it");
}

static void run_source(const char *input, size_t length, uint64_t pick) {
  char text[INPUT_MAX + 1]; /* the interface takes text that ends at its first NUL */
  memcpy(text, input, length);
  text[length] = 0;
  HostSetup setup = {.fuel = 3000, .memory = 32 << 20, .hot = pick % 3 == 0 ? 0 : -1,
                     .backend = pick % 3 == 0 ? "mir" : "eager"};
  HostRun r = host_run(&setup, "fuzz.weft", text);
  complain(&r);
  host_run_free(&r);
  outline_source(text, strlen(text));
}

/* A text, a NUL, then changes of its compiled form, three bytes each: the place in sixteen bits, the new byte. The sum
 * of the file is made to fit behind them, as who means harm would do it. */
static void run_bytecode(const char *input, size_t length, uint64_t pick) {
  enum { SUM_AT = 16, HEAD = 24, MOST = 1 << 16 };
  static unsigned char program[MOST];
  const char *nul = memchr(input, 0, length);
  const size_t text = nul ? (size_t)(nul - input) : length;
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.memory = 32 << 20;
  options.fuel = 3000;
  options.hot = pick % 3 == 0;
  options.backend = pick % 3 == 0 ? "mir" : "eager";
  WeftVM *vm = weft_new(&options);
  WeftValue *value = NULL;
  const void *bytes;
  size_t count = 0;
  if (vm && weft_compile(vm, NULL, input, text, "fuzz.weft", pick % 2, &bytes, &count) == WEFT_OK && count < MOST) {
    memcpy(program, bytes, count);
    for (size_t i = text + 1; i + 2 < length; i += 3) {
      const size_t at = (size_t)(unsigned char)input[i] << 8 | (unsigned char)input[i + 1];
      program[HEAD + at % (count - HEAD)] = (unsigned char)input[i + 2];
    }
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = HEAD; i < count; i++) sum = (sum ^ program[i]) * 0x100000001b3u;
    for (int i = 0; i < 8; i++) program[SUM_AT + i] = (unsigned char)(sum >> (8 * i));
    if (weft_load_compiled(vm, NULL, program, count, "fuzz.weftc", &value) == WEFT_OK) (void)weft_show(vm, value);
    else if (!*weft_error_text(vm)) snprintf(shared->complaint, sizeof shared->complaint, "an error without a message");
    weft_release(vm, value);
  }
  weft_free(vm);
}

static void run_file(const char *input, size_t length, const char *path, const char *program) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || write(fd, input, length) != (ssize_t)length) {
    snprintf(shared->complaint, sizeof shared->complaint, "%s: cannot be written", path);
    if (fd >= 0) close(fd);
    return;
  }
  close(fd);
  HostSetup setup = {.fuel = 100000, .memory = 32 << 20, .hot = -1, .backend = "eager", .files = true};
  HostRun r = host_run(&setup, "fuzz.weft", program);
  complain(&r);
  host_run_free(&r);
}

static void run_npy(const char *input, size_t length, uint64_t pick) {
  (void)pick;
  run_file(input, length, "build/fuzz/input.npy",
           "let x = load_npy(\"build/fuzz/input.npy\"); (x.shape, x.dtype, sum(x))");
}

static void run_csv(const char *input, size_t length, uint64_t pick) {
  (void)pick;
  run_file(input, length, "build/fuzz/input.csv", "let x = load_csv(\"build/fuzz/input.csv\"); str(x)");
}

static void run_npz(const char *input, size_t length, uint64_t pick) {
  (void)pick;
  run_file(input, length, "build/fuzz/input.npz",
           "let r = load_npz(\"build/fuzz/input.npz\"); save_npz(\"build/fuzz/again.npz\", r); "
           "str(r) == str(load_npz(\"build/fuzz/again.npz\"))");
}

static void run_json(const char *input, size_t length, uint64_t pick) {
  (void)pick;
  run_file(input, length, "build/fuzz/input.json",
           "let x = json.parse(read_text(\"build/fuzz/input.json\")); "
           "assert(json.parse(json.text(x)) == x and json.parse(json.text(x, 2)) == x)");
}

/* The first line is a pattern, the rest a text. */
static void run_regex(const char *input, size_t length, uint64_t pick) {
  (void)pick;
  run_file(input, length, "build/fuzz/input.txt",
           "let all = read_text(\"build/fuzz/input.txt\"); let p = split(all, \"\\n\")[0]; "
           "let found = regex.find_all(all, p); let parts = regex.split(all, p); "
           "assert(len(parts) == len(found) + 1 and regex.replace(all, p, m => m.text) == all)");
}

/* The check of each chunk of a PNG file is made right, or nothing behind it would ever be reached. */
static void mend_checks(char *s, size_t length) {
  size_t at = 8;
  while (length - at >= 12 && length >= at) {
    const unsigned char *p = (const unsigned char *)s + at;
    const size_t n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    if (n > length - at - 12) return;
    uint32_t c = 0xFFFFFFFFu;
    for (size_t i = 4; i < n + 8; i++)
      for (int k = 0; k < 8; k++) c = c >> 1 ^ (((p[i] >> k ^ c) & 1) ? 0xEDB88320u : 0);
    for (int i = 0; i < 4; i++) s[at + 8 + n + (size_t)i] = (char)(~c >> (24 - 8 * i));
    at += n + 12;
  }
}

static void run_image(const char *input, size_t length, uint64_t pick) {
  char mended[INPUT_MAX];
  memcpy(mended, input, length);
  if (length > 8 && mended[0] != 'P' && pick % 8) mend_checks(mended, length);
  run_file(mended, length, "build/fuzz/input.png",
           "let x = load_image(\"build/fuzz/input.png\"); (x.shape, x.dtype, sum(x))");
}

static const struct Target {
  const char *name;
  void (*run)(const char *input, size_t length, uint64_t pick);
  const char *const *words; /* pieces worth inserting, NULL at the end */
} targets[] = {
    {"source", run_source, mutate_source_words},
    {"bytecode", run_bytecode, mutate_source_words},
    {"npy", run_npy, mutate_npy_words},
    {"csv", run_csv, mutate_csv_words},
    {"npz", run_npz, mutate_npz_words},
    {"image", run_image, mutate_image_words},
    {"json", run_json, mutate_json_words},
    {"regex", run_regex, mutate_regex_words},
};

/* ---- the loop ------------------------------------------------------------------------------ */

typedef struct Input {
  char *data;
  size_t length;
} Input;

static Input corpus[CORPUS_MAX];
static unsigned corpus_count;

static void keep(const char *data, size_t length) {
  if (corpus_count == CORPUS_MAX) return;
  char *copy = malloc(length + 1);
  if (!copy) return;
  memcpy(copy, data, length);
  corpus[corpus_count++] = (Input){copy, length};
  shared->corpus = corpus_count;
}

static void run_one(const struct Target *t, const char *data, size_t length, uint64_t pick) {
  if (length > INPUT_MAX) length = INPUT_MAX;
  memcpy(shared->input, data, length);
  shared->length = length;
  shared->runs++;
  memset(edge_hits, 0, sizeof edge_hits);
  previous_pc = 0;
  setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = RUN_SECONDS}, NULL);
  t->run(shared->input, length, pick);
  setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
  if (merge_coverage()) {
    keep(shared->input, length);
    shared->edges = 0;
    for (int i = 0; i < EDGES; i++) shared->edges += edge_seen[i] != 0;
  }
  if (shared->complaint[0]) _exit(3);
}

static bool read_file(const char *path, char *out, size_t *length) {
  FILE *f = fopen(path, "rb");
  if (!f) return false;
  *length = fread(out, 1, INPUT_MAX, f);
  fclose(f);
  return true;
}

static void run_matching(const struct Target *t, const char *pattern) {
  glob_t found;
  if (glob(pattern, 0, NULL, &found) != 0) return;
  static char data[INPUT_MAX];
  size_t length;
  for (size_t i = 0; i < found.gl_pathc; i++)
    if (read_file(found.gl_pathv[i], data, &length)) run_one(t, data, length, i);
  globfree(&found);
}

/* Programs to begin with: some of each file of cases. */
static void run_cases(const struct Target *t) {
  glob_t found;
  if (glob("tests/cases/*.weft", 0, NULL, &found) != 0) return;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    CaseFile f = casefile_read(found.gl_pathv[i]);
    for (int k = 0; k < f.count; k += 5) run_one(t, f.cases[k].program, strlen(f.cases[k].program), (uint64_t)k);
    casefile_free(&f);
  }
  globfree(&found);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fuzz(const struct Target *t, double limit, uint64_t seed) {
  static char data[INPUT_MAX];
  char pattern[64];
  double end = seconds() + limit;
  snprintf(pattern, sizeof pattern, "tests/fuzz/seeds/%s/*", t->name);
  run_matching(t, pattern);
  if (t->run == run_source) {
    run_matching(t, "examples/*.weft");
    run_cases(t);
  }
  if (corpus_count == 0) keep("\n", 1);
  Random random = {seed};
  while (seconds() < end) {
    /* Newer inputs are picked more often: they reached what is new. */
    uint64_t a = random_below(&random, corpus_count), b = random_below(&random, corpus_count);
    const Input *from = &corpus[a > b ? a : b], *other = &corpus[random_below(&random, corpus_count)];
    size_t length = mutate(&random, data, INPUT_MAX, from->data, from->length, other->data, other->length, t->words);
    run_one(t, data, length, random_next(&random));
  }
  for (unsigned i = 0; i < corpus_count; i++) free(corpus[i].data);
}

/* ---- parent -------------------------------------------------------------------------------- */

static void save_finding(const char *name) {
  char path[64];
  snprintf(path, sizeof path, "build/fuzz/%s.finding", name);
  FILE *f = fopen(path, "wb");
  if (!f) return;
  fwrite(shared->input, 1, shared->length, f);
  fclose(f);
}

int main(int argc, char **argv) {
  const struct Target *t = NULL;
  for (size_t i = 0; argc > 2 && i < sizeof targets / sizeof targets[0]; i++)
    if (strcmp(argv[1], targets[i].name) == 0) t = &targets[i];
  if (!t) {
    fprintf(stderr, "fuzz TARGET SECONDS [SEED]\nfuzz TARGET --run FILE...\n");
    return 2;
  }
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  mkdir("build", 0777);
  mkdir("build/fuzz", 0777);
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    if (strcmp(argv[2], "--run") == 0)
      for (int i = 3; i < argc; i++) run_matching(t, argv[i]);
    else
      fuzz(t, atof(argv[2]), argc > 3 ? strtoull(argv[3], NULL, 10) : 1);
    exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  printf("# fuzz/%s: %lu runs, %u inputs kept, %u edges\n", t->name, shared->runs, shared->corpus, shared->edges);
  if (status != 0) {
    save_finding(t->name);
    const char *what = shared->complaint[0]                                     ? shared->complaint
                       : WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF ? "ran too long"
                       : WIFSIGNALED(status)                                   ? strsignal(WTERMSIG(status))
                                                                               : "a sanitizer's report, above";
    printf("not ok fuzz/%s: %s; the input is in build/fuzz/%s.finding\n", t->name, what, t->name);
    return 1;
  }
  if (strcmp(argv[2], "--run") != 0 && shared->edges < 100) {
    printf("not ok fuzz/%s: saw %u edges: not built with the counters\n", t->name, shared->edges);
    return 1;
  }
  printf("ok fuzz/%s\n", t->name);
  return 0;
}
