/* ptx.c — every kernel that the cases compile, rendered as PTX and assembled by ptxas for each architecture.
 *   build/tests/ptx [--all] [--keep] [FILE…]
 * Kernels that differ in nothing but names and literals are assembled once; a run of ptxas takes a few hundred of
 * them (its time grows faster than their number). Without --all a kernel is assembled when it has a form of an
 * instruction (operation, types, kinds of operands) that fewer than four kernels before it have, and so is every
 * 24th of the others. $WEFT_PTXAS names the assembler; without it, `ptxas` on the path;
 * without one, the test is skipped. A kernel that is refused or does not assemble fails; so does one that needs
 * stack or spills, which only optimised code tells. Without --all a case is either at the top of its program or a
 * function. Cases of arrays on the GPU run on the stand-in for the driver, as a model of a card, which runs a few warps
 * of each kernel: those of single operations are seen too. sm_90 gets every sixth module, optimised; the other
 * architectures share all of them, a module each in turn, unoptimised. With --all each of them gets every kernel,
 * optimised. */
#include <ctype.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/api.h"
#include "gpu/matmul.h"
#include "gpu/nonzero.h"
#include "gpu/ptx.h"
#include "jit/plan/plan.h"
#include "tests/support/casefile.h"
#include "tests/support/host.h"

/* the first is optimised */
static const char *const architectures[] = {"sm_90", "sm_75", "sm_80", "sm_86", "sm_100", "sm_120"};
enum {
  ARCHITECTURES = sizeof architectures / sizeof *architectures,
  MODULE_KERNELS = 128, /* of one run of ptxas */
  FORM_KERNELS = 4,     /* kernels that show a form of an instruction */
  ALIKE_OF = 24,        /* kernels without a form that is rare, of which one is taken */
  FORM_SLOTS = 1 << 14,
  OPTIMISED_OF = 6,     /* modules, of which one is optimised unless all are */
};
static const char entry_name[] = "kernel_of_a_case"; /* all are rendered under it, so that equal ones have equal text */

typedef struct KernelText {
  char *head; /* tables and functions */
  char *entry;
  char *key; /* the entry without literals */
  const char *from; /* name of the first case that has it */
} KernelText;

static struct {
  KernelText *texts;
  size_t count, cap, *slots, slot_count;
  size_t seen, refused, alike;
  bool every;
  struct { uint64_t form; unsigned kernels; size_t last; } forms[FORM_SLOTS]; /* last: the kernel that was counted */
  size_t form_count;
  char refusal[512];
  const char *now; /* the case at work */
} all;

static void *need(void *p) {
  if (p) return p;
  fputs("ptx: out of memory\n", stderr);
  exit(2);
}

static uint64_t hash(const char *s) {
  uint64_t h = 1469598103934665603u;
  for (; *s; s++) h = (h ^ (unsigned char)*s) * 1099511628211u;
  return h;
}

static size_t *slot_of(const char *key) {
  size_t i = hash(key) & (all.slot_count - 1);
  while (all.slots[i] && strcmp(all.texts[all.slots[i] - 1].key, key) != 0) i = (i + 1) & (all.slot_count - 1);
  return &all.slots[i];
}

static void grow(void) {
  if (all.count * 2 < all.slot_count) return;
  free(all.slots);
  all.slot_count = all.slot_count ? all.slot_count * 2 : 1024;
  all.slots = need(calloc(all.slot_count, sizeof *all.slots));
  for (size_t i = 0; i < all.count; i++) *slot_of(all.texts[i].key) = i + 1;
}

/* Comments name parameters by numbers of values, which differ where nothing else does. */
static void drop_comments(char *s) {
  char *to = s;
  while (*s) {
    if (s[0] == '/' && s[1] == '/') s += strcspn(s, "\n");
    else *to++ = *s++;
  }
  *to = 0;
}

/* A copy with every literal operand as `#`. */
static char *without_literals(const char *s) {
  char *copy = need(strdup(s)), *to = copy;
  while (*s) {
    bool literal = *s == ' ' && (s[1] == '-' || (s[1] >= '0' && s[1] <= '9'));
    *to++ = *s++;
    if (!literal) continue;
    *to++ = '#';
    s += strcspn(s, ",;]");
  }
  *to = 0;
  return copy;
}

/* What is left of a line without numbers; types (`.f32`) keep theirs. */
static uint64_t form_of(const char *line, size_t n) {
  uint64_t h = 1469598103934665603u;
  bool type = false;
  for (size_t i = 0; i < n; i++) {
    type = line[i] == '.' || (type && isalnum((unsigned char)line[i]));
    if (type || line[i] < '0' || line[i] > '9') h = (h ^ (unsigned char)line[i]) * 1099511628211u;
  }
  return h ? h : 1;
}

/* Whether the kernel has a form of a line that is rare among those before it; counts its forms. */
static bool has_rare_form(const char *key, size_t number) {
  bool rare = false;
  for (const char *line = key; *line;) {
    size_t n = strcspn(line, "\n");
    uint64_t form = form_of(line, n);
    size_t i = form & (FORM_SLOTS - 1);
    while (all.forms[i].form && all.forms[i].form != form) i = (i + 1) & (FORM_SLOTS - 1);
    if (!all.forms[i].form) {
      if (++all.form_count > FORM_SLOTS / 2) return true; /* the table is full enough: all are taken */
      all.forms[i].form = form;
    }
    if (all.forms[i].last != number) {
      rare |= all.forms[i].kernels++ < FORM_KERNELS;
      all.forms[i].last = number;
    }
    line += n + (line[n] == '\n');
  }
  return rare;
}

/* One entry of a module whose head is text .. first, unless there is one like it. */
static void add_entry(const char *text, const char *first, const char *entry) {
  static size_t number;
  char *key = without_literals(entry);
  grow();
  if (*slot_of(key) || (!all.every && !has_rare_form(key, ++number) && all.alike++ % ALIKE_OF)) {
    free(key);
    return;
  }
  if (all.count == all.cap) {
    all.cap = all.cap ? all.cap * 2 : 256;
    all.texts = need(realloc(all.texts, all.cap * sizeof *all.texts));
  }
  size_t *slot = slot_of(key);
  char *head = need(strndup(text, (size_t)(first - text)));
  all.texts[all.count] = (KernelText){.head = head, .entry = need(strdup(entry)), .key = key, .from = all.now};
  *slot = ++all.count;
}

/* Modules of kernels with a product of halves in front of them, which need tensor cores: each text once. */
enum { HALVES_MOST = 64 };
static struct {
  char *texts[HALVES_MOST];
  const char *from[HALVES_MOST];
  int count;
} halves;

static void add_halves(const char *text) {
  char *copy = need(strdup(text));
  drop_comments(copy);
  for (int i = 0; i < halves.count; i++)
    if (strcmp(halves.texts[i], copy) == 0) {
      free(copy);
      return;
    }
  if (halves.count == HALVES_MOST) return;
  halves.from[halves.count] = all.now;
  halves.texts[halves.count++] = copy;
}

/* The entries of a module. */
static void add_entries(const char *module) {
  char *text = need(strdup(module));
  drop_comments(text);
  char *first = strstr(text, ".visible .entry"), *entry = first;
  while (entry) { /* a kernel that is split has four */
    char *next = strstr(entry + 1, ".visible .entry");
    char *one = next ? need(strndup(entry, (size_t)(next - entry))) : need(strdup(entry));
    add_entry(text, first, one);
    free(one);
    entry = next;
  }
  free(text);
}

/* `word`: 1 + the number of its argument that may be a product in front of it, or 0. */
static void add_product(const LoopFn *fn, u32 word, Allocator *alloc) {
  PtxEpilogue e;
  if (!word || !ptx_epilogue(fn, word - 1, &e)) return;
  bool half = e.type == LT_F16 || e.type == LT_BF16;
  for (u32 tile = MMA_LARGE; tile <= (half ? MMA_SMALL : MMA_LARGE); tile++) {
    Buf out;
    buf_init(&out, alloc);
    MmaKind kind = {.brain = e.type == LT_BF16, .tile = (MmaTile)tile};
    if (ptx_product_module(fn, entry_name, &e, mma_number(kind), &out, NULL) == WEFT_OK) {
      if (half) add_halves(buf_text(&out));
      else add_entries(buf_text(&out));
    }
    buf_free(&out);
  }
}

static void add_kernel(const LoopFn *fn, Allocator *alloc) {
  Buf out, why;
  const char *name = entry_name;
  buf_init(&out, alloc);
  buf_init(&why, alloc);
  all.seen++;
  if (ptx_module(&fn, &name, 1, &out, &why) != WEFT_OK) {
    if (!all.refused++)
      snprintf(all.refusal, sizeof all.refusal, "%s (%s)", why.len ? buf_text(&why) : "out of memory", all.now);
  } else {
    add_entries(buf_text(&out));
  }
  buf_free(&out);
  buf_free(&why);
}

/* ---- a backend that looks at what another one compiles --------------------------------------------- */

typedef struct Watcher {
  Backend backend;
  const Backend *inner;
} Watcher;

static BackendResult compile(Vm *vm, const Backend *self, Region *r, const CompileLimits *limits, Buf *why) {
  const Backend *inner = ((const Watcher *)self)->inner;
  BackendResult result = inner->compile(vm, inner, r, limits, why);
  const Plan *p = result == BACKEND_ok ? plan_of(r) : NULL;
  for (u32 i = 0; p && i < p->kernels.count; i++) {
    add_kernel(p->kernels.data[i].self, &vm->alloc);
    add_product(p->kernels.data[i].self, p->kernels.data[i].product, &vm->alloc);
  }
  return result;
}

static void remove_watched(Vm *vm, const Backend *self) {
  const Backend *inner = ((const Watcher *)self)->inner;
  inner->remove(vm, inner);
}

/* context: two of them; one stands for the loop interpreter, one for the GPU, which operations on its arrays name. */
static void watch(void *context, struct WeftVM *weft) {
  Vm *vm = weft_vm_of(weft);
  Tracer *t = tracer_of(vm);
  Watcher *w = context, *gpu = w + 1;
  for (u32 i = 0; i < t->backend_count; i++) {
    if (strcmp(t->backends[i]->name, "loops") == 0) w->inner = t->backends[i];
    if (strcmp(t->backends[i]->name, "ptx") != 0) continue;
    *gpu = (Watcher){.backend = *t->backends[i], .inner = t->backends[i]};
    gpu->backend.compile = compile;
    gpu->backend.remove = remove_watched;
    t->backends[i] = &gpu->backend;
  }
  w->backend = (Backend){.name = "watched", .compile = compile};
  if (!w->inner || !gpu->inner || !tracer_add_backend(vm, &w->backend) || !tracer_use_backend(vm, "watched")) {
    fputs("ptx: no backend to watch\n", stderr);
    exit(2);
  }
}

/* Each case at the top of a program and as a function with variables of its own; `every`, else in turn. */
static void run_file(const char *path, bool every) {
  CaseFile f = casefile_read(path);
  for (int i = 0; i < f.count; i++) {
    const Case *c = &f.cases[i];
    if (case_directive(c, "files") || case_directive(c, "only") || case_directive(c, "deadline") ||
        case_directive(c, "spills"))
      continue;
    all.now = need(strdup(c->name)); /* texts keep it */
    for (int form = every ? 0 : i % 2; form < (every ? 2 : i % 2 + 1); form++) {
      char *wrapped = case_as_function(c, form == 0);
      Watcher w[2] = {{.inner = NULL}};
      HostSetup setup = {.backend = "loops", .made = watch, .context = w};
      if (case_directive(c, "gpu")) setup.driver = "build/tests/libcuda.so";
      const char *limit;
      if ((limit = case_directive(c, "fuel"))) setup.fuel = (uint64_t)strtod(limit, NULL);
      if ((limit = case_directive(c, "memory"))) setup.memory = (uint64_t)strtod(limit, NULL);
      if (!wrapped) continue;
      HostRun r = host_run(&setup, "case.weft", wrapped);
      host_run_free(&r);
      free(wrapped);
    }
  }
  casefile_free(&f);
}

/* ---- ptxas ------------------------------------------------------------------------------------------- */

/* Its text with the name replaced by one of its own. */
static void put_entry(FILE *f, const char *entry, size_t number) {
  const char *at = strstr(entry, entry_name);
  fprintf(f, "\n%.*sk%zu%s", (int)(at - entry), entry, number, at + strlen(entry_name));
}

static void put_once(FILE *f, char **written, const char *text, const char *end) {
  size_t n = (size_t)(strstr(text, end) + strlen(end) - text);
  char *one = need(strndup(text, n));
  if (!strstr(*written, one)) {
    fprintf(f, "%s\n", one);
    *written = need(realloc(*written, strlen(*written) + n + 1));
    strcat(*written, one);
  }
  free(one);
}

static bool write_module(const char *path, size_t from, size_t to) {
  FILE *f = fopen(path, "w");
  if (!f) return false;
  char *written = need(calloc(1, 1));
  fputs(".version 6.4\n.target sm_70\n.address_size 64\n.extern .shared .align 16 .b8 rows[];\n", f);
  for (size_t i = from; i < to; i++) /* each table and each function once; tables come first */
    for (char *t = strstr(all.texts[i].head, "\n.const"); t; t = strstr(t + 1, "\n.const"))
      put_once(f, &written, t, "};");
  for (size_t i = from; i < to; i++)
    for (char *t = strstr(all.texts[i].head, "\n.func"); t; t = strstr(t + 1, "\n.func"))
      put_once(f, &written, t, "\n}");
  for (size_t i = from; i < to; i++) put_entry(f, all.texts[i].entry, i);
  free(written);
  return fclose(f) == 0;
}

/* The modules of all kernels, `folder`/0.ptx and so on; how many, 0 when one cannot be written. */
static size_t write_modules(const char *folder) {
  size_t n = 0;
  for (size_t from = 0; from < all.count; from += MODULE_KERNELS) {
    char path[256];
    snprintf(path, sizeof path, "%s/%zu.ptx", folder, n++);
    if (!write_module(path, from, from + MODULE_KERNELS < all.count ? from + MODULE_KERNELS : all.count)) return 0;
  }
  return n;
}

static void remove_modules(const char *folder, size_t modules) {
  for (size_t i = 0; i < modules; i++) {
    char path[256];
    snprintf(path, sizeof path, "%s/%zu.ptx", folder, i);
    unlink(path);
  }
  rmdir(folder);
}

/* Reads what ptxas said: errors, stack, spills. `why` stays empty when all is well; *checked counts the kernels it told
 * of. `again`, a place for each kernel: those whose code is not optimised and needs stack are marked there instead. */
static void read_log(FILE *log, char *why, size_t size, size_t *checked, bool *again) {
  char line[1024], kernel[64] = "";
  size_t number;
  while (fgets(line, sizeof line, log)) {
    unsigned stack, stores, loads;
    const char *told = strstr(line, "Function properties for ");
    line[strcspn(line, "\n")] = 0;
    if (told) {
      sscanf(told, "Function properties for %63s", kernel);
    } else if (sscanf(line, " %u bytes stack frame, %u bytes spill stores, %u bytes spill loads", &stack, &stores,
                      &loads) == 3) {
      bool entry = sscanf(kernel, "k%zu", &number) == 1 && number < all.count;
      *checked += entry;
      if (again && entry && (stack || stores || loads)) again[number] = true;
      else if ((stack || stores || loads) && !*why)
        snprintf(why, size, "%s, of %s, needs %u bytes of stack and spills %u", kernel,
                 entry ? all.texts[number].from : "lang/math.loops", stack, stores);
    } else if (!*why && (strstr(line, "error") || strstr(line, "fatal"))) {
      snprintf(why, size, "%s", line);
    }
  }
}

/* The kernels in modules `first`, first + step, first + 2 * step … */
static size_t kernels_in(size_t first, size_t step) {
  size_t n = 0;
  for (size_t i = 0; i < all.count; i++) n += i / MODULE_KERNELS % step == first;
  return n;
}

/* Kernels that need stack when nothing is optimised are judged optimised, each in a module of its own. */
static void assemble_again(const char *ptxas, const char *arch, const char *folder, const bool *again, char *why,
                           size_t size) {
  char path[256], command[4096];
  snprintf(path, sizeof path, "%s/again.ptx", folder);
  snprintf(command, sizeof command, "'%s' -v -O3 -arch=%s -o /dev/null '%s' 2>&1", ptxas, arch, path);
  for (size_t k = 0; k < all.count && !*why; k++) {
    size_t checked = 0;
    if (!again[k]) continue;
    FILE *log = write_module(path, k, k + 1) ? popen(command, "r") : NULL;
    if (log) read_log(log, why, size, &checked, NULL);
    if ((!log || pclose(log) != 0 || !checked) && !*why) snprintf(why, size, "k%zu does not assemble", k);
    unlink(path);
  }
}

/* `first` and the architecture behind it at a time. */
static int assemble_two(const char *ptxas, const char *folder, size_t modules, int first, bool every) {
  FILE *run[2] = {NULL, NULL};
  size_t step[2], begin[2];
  char command[4096], log_name[256];
  int bad = 0;
  for (int i = 0; i < 2 && first + i < ARCHITECTURES; i++) {
    const char *arch = architectures[first + i];
    bool optimised = every || first + i == 0;
    step[i] = every ? 1 : optimised ? OPTIMISED_OF : ARCHITECTURES - 1;
    begin[i] = optimised ? 0 : (size_t)(first + i - 1);
    snprintf(command, sizeof command,
             "for m in $(seq %zu %zu %zu); do '%s' -v %s -arch=%s -o /dev/null '%s'/$m.ptx || exit; done >'%s/%s' 2>&1",
             begin[i], step[i], modules - 1, ptxas, optimised ? "-O3" : "-O0", arch, folder, folder, arch);
    run[i] = popen(command, "r");
  }
  for (int i = 0; i < 2 && first + i < ARCHITECTURES; i++) {
    const char *arch = architectures[first + i];
    const bool optimised = every || first + i == 0;
    char why[1200] = "";
    size_t checked = 0;
    bool *again = need(calloc(all.count + 1, sizeof *again));
    int status = run[i] ? pclose(run[i]) : -1;
    snprintf(log_name, sizeof log_name, "%s/%s", folder, arch);
    FILE *log = fopen(log_name, "r");
    if (log) {
      read_log(log, why, sizeof why, &checked, optimised ? NULL : again);
      fclose(log);
    }
    unlink(log_name);
    if (!*why && status != 0)
      snprintf(why, sizeof why, "ptxas ended with status %d", WIFEXITED(status) ? WEXITSTATUS(status) : status);
    size_t due = kernels_in(begin[i], step[i]);
    if (!*why && checked != due) snprintf(why, sizeof why, "ptxas told of %zu kernels of %zu", checked, due);
    if (!*why && !optimised) assemble_again(ptxas, arch, folder, again, why, sizeof why);
    free(again);
    if (*why) printf("not ok ptx/%s: %s\n", arch, why), bad++;
    else printf("ok ptx/%s\n", arch);
    fflush(stdout);
  }
  return bad;
}

/* A module that is told of without stack and spills, or `why` says what is wrong. */
static void assemble_one(const char *ptxas, const char *path, int arch, int *told, char *why, size_t size) {
  char command[4096], line[1024];
  snprintf(command, sizeof command, "'%s' -v -O3 -arch=%s -o /dev/null '%s' 2>&1", ptxas, architectures[arch], path);
  FILE *log = popen(command, "r");
  while (log && fgets(line, sizeof line, log)) {
    bool memory = strstr(line, "bytes stack frame");
    *told += memory;
    line[strcspn(line, "\n")] = 0;
    if (strstr(line, "error") || strstr(line, "fatal") ||
        (memory && !strstr(line, " 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads")))
      snprintf(why, size, "%s: %s", architectures[arch], line);
  }
  if (log) pclose(log);
}

static void write_text(const char *path, const char *text, char *why, size_t size) {
  FILE *f = fopen(path, "w");
  if (!f || fputs(text, f) < 0 || fclose(f) != 0) snprintf(why, size, "%s cannot be written", path);
}

/* Kernels with a product of halves in front of them; `every`, else each for one of the architectures, in turn. */
static int assemble_halves(const char *ptxas, const char *folder, bool every) {
  int bad = 0;
  for (int k = 0; k < halves.count; k++) {
    char path[256], why[1200] = "";
    int told = 0, due = 0;
    snprintf(path, sizeof path, "%s/halves.ptx", folder);
    write_text(path, halves.texts[k], why, sizeof why);
    for (int i = 0; i < ARCHITECTURES && !*why; i++) {
      if (strcmp(architectures[i], "sm_75") == 0 || (!every && i && i != 1 + k % (ARCHITECTURES - 1))) continue;
      due++;
      assemble_one(ptxas, path, i, &told, why, sizeof why);
    }
    if (!*why && (told != due || !due)) snprintf(why, sizeof why, "ptxas told of %d of %d", told, due);
    if (*why) printf("not ok ptx/product-%d: %s (%s)\n", k, why, halves.from[k]), bad++;
    else printf("ok ptx/product-%d\n", k);
    unlink(path);
    free(halves.texts[k]);
  }
  return bad;
}

/* Kernels that no program gives: each architecture gets them, optimised. */
static int assemble_own(const char *ptxas, const char *folder, bool every) {
  enum { PLAIN = MATMUL_TYPES + 2 };
  int bad = 0;
  for (int k = 0; k < PLAIN + MMA_KINDS; k++) {
    char path[256], why[1200] = "", name[32];
    MmaKind kind = mma_kind((u32)k - PLAIN);
    if (k < PLAIN)
      snprintf(name, sizeof name, "%s", k < MATMUL_TYPES    ? matmul_entry(matmul_type((u32)k))
                                        : k == MATMUL_TYPES ? "nonzero"
                                                            : "mma_pack");
    else snprintf(name, sizeof name, "mma-%s-%s%d%d", kind.brain ? "bf16" : "f16", kind.tile ? "small" : "large",
                  kind.across[0], kind.across[1]);
    Buf text;
    buf_init(&text, allocator_system());
    if ((k < MATMUL_TYPES    ? matmul_ptx(matmul_type((u32)k), &text)
         : k == MATMUL_TYPES ? nonzero_ptx(&text)
         : k < PLAIN         ? mma_pack_ptx(&text)
                             : mma_ptx(kind, &text)) != WEFT_OK)
      exit(2);
    snprintf(path, sizeof path, "%s/%s.ptx", folder, name);
    write_text(path, buf_text(&text), why, sizeof why);
    int told = 0, due = 0;
    for (int i = 0; i < ARCHITECTURES && !*why; i++) {
      if (k >= PLAIN && strcmp(architectures[i], "sm_75") == 0) continue; /* it has no such tensor cores */
      if (k >= PLAIN && i && kind.brain && !every) continue; /* of f16 they are the same but for a word */
      due++;
      assemble_one(ptxas, path, i, &told, why, sizeof why);
    }
    if (!*why && told != due) snprintf(why, sizeof why, "ptxas told of %d of %d", told, due);
    if (*why) printf("not ok ptx/%s: %s\n", name, why), bad++;
    else printf("ok ptx/%s\n", name);
    unlink(path);
    buf_free(&text);
  }
  return bad;
}

static const char *find_ptxas(void) {
  const char *named = getenv("WEFT_PTXAS");
  if (named && *named) return access(named, X_OK) == 0 ? named : NULL;
  return system("ptxas --version >/dev/null 2>&1") == 0 ? "ptxas" : NULL;
}

int main(int argc, char **argv) {
  bool keep = false, every = false;
  int bad = 0, first = 1;
  for (; first < argc && argv[first][0] == '-'; first++) {
    if (strcmp(argv[first], "--keep") == 0) keep = true;
    else if (strcmp(argv[first], "--all") == 0) every = true;
    else return fputs("ptx [--all] [--keep] [FILE...]\n", stderr), 2;
  }
  all.every = every;
  for (int i = first; i < argc; i++) run_file(argv[i], every);
  setenv("WEFT_MOCK_MODEL", "/dev/null", 1);
  glob_t found = {0};
  if (first == argc) {
    if (glob("tests/cases/*.weft", 0, NULL, &found) != 0 ||
        glob("build/cases/*.weft", GLOB_APPEND, NULL, &found) != 0) {
      fputs("ptx: no files in tests/cases or build/cases (make tests)\n", stderr);
      return 2;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) run_file(found.gl_pathv[i], every);
    globfree(&found);
  }
  printf("# %zu kernels, %zu of them taken, %zu forms of lines\n", all.seen, all.count, all.form_count);
  if (all.refused)
    printf("not ok ptx/render: %zu kernels are refused; the first: %s\n", all.refused, all.refusal), bad++;
  else if (!all.count) printf("not ok ptx/render: the cases made no kernel\n"), bad++;
  else printf("ok ptx/render\n");
  fflush(stdout);
  char folder[] = "/tmp/weft-ptx-XXXXXX";
  size_t modules = mkdtemp(folder) ? write_modules(folder) : 0;
  if (!modules) {
    printf("not ok ptx/write: %s cannot be written\n", folder);
    return 1;
  }
  const char *ptxas = find_ptxas();
  for (int i = 0; i < ARCHITECTURES; i++) {
    if (!ptxas)
      printf("skip ptx/%s: no ptxas; make cuda-tools fetches it, or WEFT_PTXAS=PATH names it\n", architectures[i]);
    else if (i % 2 == 0) bad += assemble_two(ptxas, folder, modules, i, every);
  }
  if (ptxas) bad += assemble_own(ptxas, folder, every) + assemble_halves(ptxas, folder, every);
  if (keep) printf("# %s\n", folder);
  else remove_modules(folder, modules);
  return bad != 0;
}
