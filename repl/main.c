/* main.c — the program `weft`: command line, script files, standard input; repl.c is the interactive part. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "gpu/gpu.h"
#include "jit/jit.h"
#include "api/weft.h"
#include "repl/repl.h"
#include "stdlib/stdlib.h"
#include "tracer/tracer.h"

enum { EXIT_ERROR = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

#define LOG_WORDS "ast,bytecode,copies,graph,guards,loops,breaks,recompiles"

static const char usage[] =
    "usage: weft [options] [FILE [args]]\n"
    "  without FILE: the REPL\n"
    "  FILE                  run a program; - is standard input\n"
    "  -e CODE               run CODE and show its value\n"
    "  --explain FILE        run a program, then say what was compiled and what was not, and why\n"
    "  --profile FILE        run a program, then say what its kernels cost; spans go to NAME.trace.json\n"
    "  --log-file PATH       write the log of capture there at the end, as JSON\n"
    "  --trace-file PATH     write what was compiled and run when, for about:tracing and Perfetto\n"
    "  --fuel N              stop after N calls and loop trips\n"
    "  --memory BYTES        hold at most that much; K, M and G count 2^10, 2^20, 2^30\n"
    "  --deadline SECONDS    stop after that time\n"
    "  --version             what this is, and its version\n"
    "  --help                this text\n"
    "environment: WEFT_BACKEND=eager|interp|loops|mir|ptx|verify  WEFT_CPU=scalar|strip|avx2|avx512  WEFT_HOT=N  WEFT_PACE=0  WEFT_THREADS=N  WEFT_LOG=" LOG_WORDS "\n"
    "  WEFT_LOG_FILE=PATH  WEFT_TRACE_FILE=PATH  as --log-file and --trace-file\n";

static WeftVM *running; /* what Ctrl-C stops */

static void on_interrupt(int signal_number) {
  (void)signal_number;
  if (running) weft_interrupt(running);
}

static int wrong_usage(const char *what, const char *arg) {
  fprintf(stderr, "weft: %s%s%s\n%s", what, arg ? ": " : "", arg ? arg : "", usage);
  return EXIT_USAGE;
}

static bool parse_size(const char *s, uint64_t *out) {
  char *end;
  if (*s < '0' || *s > '9') return false;
  unsigned long long n = strtoull(s, &end, 10);
  unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
  if (shift) end++;
  *out = (uint64_t)n << shift;
  return *end == 0 && n && *out >> shift == n;
}

static bool parse_seconds(const char *s, double *out) {
  char *end;
  *out = strtod(s, &end);
  return end != s && *end == 0 && *out > 0;
}

/* All of a stream, to be freed. NULL, said: it cannot be read, or there is no memory. */
static char *read_stream(FILE *f, size_t *len) {
  size_t n = 0, cap = 65536;
  char *text = malloc(cap);
  for (size_t got; text && (got = fread(text + n, 1, cap - n - 1, f)) > 0;) {
    n += got;
    if (cap - n < 2) {
      char *more = realloc(text, cap *= 2);
      if (!more) free(text);
      text = more;
    }
  }
  if (!text) fputs("weft: out of memory\n", stderr);
  else if (ferror(f)) {
    fputs("weft: cannot read the standard input\n", stderr);
    free(text);
    text = NULL;
  } else {
    text[n] = 0;
  }
  *len = n;
  return text;
}

static int finish(WeftVM *vm, WeftStatus status) {
  int code = weft_exit_code(vm);
  if (code >= 0) return code;
  if (status == WEFT_OK) return 0;
  fflush(stdout);
  fputs(weft_error_text(vm), stderr);
  return strcmp(weft_error_kind(vm), "interrupt") == 0 ? EXIT_INTERRUPTED : EXIT_ERROR;
}

/* A part of the log into a file; false, said: it cannot be written. */
static bool write_log(WeftVM *vm, const char *what, const char *path) {
  if (!path || !*path) return true;
  const char *text = weft_dump(vm, NULL, what);
  int code = text && *text ? file_put(weft_vm_of(vm), path, text, strlen(text)) : ENOMEM;
  if (code) fprintf(stderr, "weft: cannot write \"%s\": %s\n", path, code == FILE_STOPPED ? "interrupted" : strerror(code));
  return !code;
}

/* Where the spans of a profile go: the program's name in the current folder. */
static const char *name_spans(const char *program, char *out, size_t room) {
  const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program, *dot = strrchr(name, '.');
  snprintf(out, room, "%.*s.trace.json", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
  return out;
}

static void tell_profile(WeftVM *vm, const char *spans) {
  fflush(stdout);
  const char *text = weft_dump(vm, NULL, "profile");
  fprintf(stderr, "%sspans: %s\n", text ? text : "", spans);
}

static bool readable(const char *path) {
  FILE *f = fopen(path, "rbe");
  if (!f) return false;
  int c = fgetc(f);
  bool ok = c != EOF || !ferror(f); /* a folder opens and cannot be read */
  fclose(f);
  return ok;
}

/* Arrays of a few megabytes come and go in every step of a loop. Where glibc gives their memory back to the system each
 * time, the pages are cleared and mapped anew: 0.4 s of a run of 0.8 s of examples/digits.weft. */
static void keep_freed_memory(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most it takes */
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

/* A whole number in the environment; false when it is none, or out of 0..most. Not there, or empty: as it was. */
static bool whole_setting(const char *name, int64_t most, int64_t *value) {
  const char *text = getenv(name);
  if (!text || !*text) return true;
  char *end;
  errno = 0;
  long long n = strtoll(text, &end, 10);
  if (*end || errno || n < 0 || n > most || *text == ' ' || *text == '+') return false;
  *value = n;
  return true;
}

/* The first of the words between commas that WEFT_LOG does not know, or NULL. */
static const char *unknown_word(const char *words) {
  while (words && *words) {
    size_t len = strcspn(words, ",");
    bool known = len == 0;
    for (const char *w = LOG_WORDS; !known;) {
      size_t n = strcspn(w, ",");
      known = n == len && strncmp(w, words, n) == 0;
      if (!w[n]) break;
      w += n + 1;
    }
    if (!known) return words;
    words += len + (words[len] == ',');
  }
  return NULL;
}

int main(int argc, char **argv) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* print flushes at the end of a line, wherever it goes */
  keep_freed_memory();
  stdlib_choose_blas_core(); /* before any library is loaded: the environment is the program's own */
  o.allow_files = o.allow_env = o.allow_imports = o.allow_gpu = true;
  o.backend = getenv("WEFT_BACKEND");
  if (o.backend && !*o.backend) o.backend = NULL;
  o.cpu = getenv("WEFT_CPU");
  if (o.cpu && !*o.cpu) o.cpu = NULL;
  if (o.cpu && !jit_cpu_runs(o.cpu)) return wrong_usage(jit_cpu_known(o.cpu) ? "WEFT_CPU is beyond this processor" : "WEFT_CPU is unknown (scalar, strip, avx2, avx512)", o.cpu);
  o.cuda_driver = getenv("WEFT_CUDA_DRIVER");
  o.force = getenv("WEFT_FORCE");
  if (o.cuda_driver && !*o.cuda_driver) o.cuda_driver = NULL;
  int64_t hot = o.hot, threads = o.threads;
  if (!whole_setting("WEFT_HOT", INT32_MAX, &hot)) return wrong_usage("WEFT_HOT must be a whole number from 0", getenv("WEFT_HOT"));
  if (!whole_setting("WEFT_THREADS", 1024, &threads)) return wrong_usage("WEFT_THREADS must be a whole number from 0 (all processors) to 1024", getenv("WEFT_THREADS"));
  o.hot = (int)hot;
  o.threads = (uint32_t)threads;
  const char *unknown = unknown_word(getenv("WEFT_LOG"));
  if (unknown) return wrong_usage("WEFT_LOG is unknown (" LOG_WORDS ")", unknown);
  const char *code = NULL, *file = NULL, *log_file = getenv("WEFT_LOG_FILE"), *trace_file = getenv("WEFT_TRACE_FILE");
  bool explain = false, profile = false;
  int i = 1;
  for (; i < argc && !file && !code; i++) {
    const char *a = argv[i];
    bool last = i + 1 == argc;
    if (strcmp(a, "-") == 0 || a[0] != '-') file = a;
    else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
      fputs(usage, stdout);
      return 0;
    } else if (strcmp(a, "--version") == 0) {
      WeftVM *vm = weft_new(NULL);
      if (!vm) return EXIT_ERROR;
      fputs(weft_build(vm), stdout);
      weft_free(vm);
      return 0;
    } else if (strcmp(a, "--explain") == 0) {
      explain = true;
    } else if (strcmp(a, "--profile") == 0) {
      profile = true;
    } else if (last && (strcmp(a, "-e") == 0 || strncmp(a, "--", 2) == 0)) {
      bool known = strcmp(a, "-e") == 0 || strcmp(a, "--fuel") == 0 || strcmp(a, "--memory") == 0 || strcmp(a, "--deadline") == 0 ||
                   strcmp(a, "--log-file") == 0 || strcmp(a, "--trace-file") == 0;
      return wrong_usage(known ? "a value is missing behind" : "unknown option", a);
    } else if (strcmp(a, "-e") == 0) {
      code = argv[++i];
    } else if (strcmp(a, "--log-file") == 0) {
      log_file = argv[++i];
    } else if (strcmp(a, "--trace-file") == 0) {
      trace_file = argv[++i];
    } else if (strcmp(a, "--fuel") == 0) {
      if (!parse_size(argv[++i], &o.fuel)) return wrong_usage("--fuel needs a positive number", argv[i]);
    } else if (strcmp(a, "--memory") == 0) {
      if (!parse_size(argv[++i], &o.memory)) return wrong_usage("--memory needs a positive number", argv[i]);
    } else if (strcmp(a, "--deadline") == 0) {
      if (!parse_seconds(argv[++i], &o.deadline)) return wrong_usage("--deadline needs a positive number", argv[i]);
    } else {
      return wrong_usage("unknown option", a);
    }
  }
  if (explain && !file) return wrong_usage("--explain needs a file", NULL);
  if (profile && !file) return wrong_usage("--profile needs a file", NULL);
  char spans[256];
  if (profile && !(trace_file && *trace_file)) trace_file = name_spans(file, spans, sizeof spans);
  if (file && strcmp(file, "-") != 0 && !readable(file)) {
    fprintf(stderr, "weft: cannot read \"%s\"\n", file);
    return EXIT_USAGE;
  }
  WeftVM *vm = weft_new(&o);
  if (!vm) {
    if (o.backend) return wrong_usage("WEFT_BACKEND is unknown, or out of memory", o.backend);
    if (o.force && *o.force) return wrong_usage("WEFT_FORCE is unknown, or out of memory", o.force);
    fputs("weft: out of memory\n", stderr);
    return EXIT_ERROR;
  }
  if (o.backend && strcmp(o.backend, "ptx") == 0 && gpu_open(weft_vm_of(vm)) != WEFT_OK) {
    fprintf(stderr, "weft: WEFT_BACKEND=ptx: %s\n", weft_error_message(vm));
    weft_free(vm);
    return EXIT_ERROR;
  }
  const char *pace = getenv("WEFT_PACE"), *log = getenv("WEFT_LOG");
  if (pace && strcmp(pace, "0") == 0) tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
  if (log) vm_log(weft_vm_of(vm), log);
  if (log) tracer_log(weft_vm_of(vm), log);
  bool traced = trace_file && *trace_file;
  if (traced || (log_file && *log_file)) weft_keep_log(vm, traced);
  running = vm;
  struct sigaction act = {.sa_handler = on_interrupt};
  sigaction(SIGINT, &act, NULL);
  weft_set_args(vm, argc - i, argv + i);
  int result;
  WeftValue *value = NULL;
  if (code) {
    result = finish(vm, weft_eval(vm, code, "<-e>", &value));
    if (result == 0 && value && strcmp(weft_type(vm, value), "nil") != 0) puts(weft_show(vm, value));
  } else if (!file) {
    result = repl_run(vm);
  } else if (strcmp(file, "-") == 0) {
    size_t len;
    char *text = read_stream(stdin, &len);
    if (!text) result = EXIT_ERROR;
    else result = strlen(text) == len ? finish(vm, weft_eval(vm, text, "<stdin>", &value)) : wrong_usage("standard input holds a zero byte", NULL);
    free(text);
  } else {
    result = finish(vm, weft_load_file(vm, file, &value));
    if (explain) repl_explain(vm);
  }
  if (profile) tell_profile(vm, trace_file);
  weft_release(vm, value);
  bool told = write_log(vm, "json", log_file);
  told &= write_log(vm, "chrome", trace_file);
  if (!told) result = result ? result : EXIT_ERROR;
  running = NULL;
  weft_free(vm);
  if (fflush(stdout) == 0 && !ferror(stdout)) return result;
  fprintf(stderr, "weft: cannot write to standard output: %s\n", strerror(errno));
  return EXIT_ERROR;
}
