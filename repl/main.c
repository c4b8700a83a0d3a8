/* main.c — the program `weft`: command line, programs from files and standard input; repl.c is the interactive part. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/weft.h"
#include "repl/colours.h"
#include "repl/line.h"
#include "repl/lsp.h"
#include "repl/output.h"
#include "repl/program.h"
#include "repl/repl.h"
#include "repl/tests.h"

enum { EXIT_ERROR = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

static const char usage[] =
    "usage: weft [options] [FILE [args]]\n"
    "  without FILE: the prompt, or the program that comes by standard input when that is no terminal\n"
    "  FILE                  run a program; - is standard input\n"
    "  -e CODE               run CODE and show its value; more than one are lines of one program\n"
    "  -i                    the prompt in any case, after FILE or CODE\n"
    "  --explain FILE        run a program, then say what was compiled and what was not, and why\n"
    "  --profile FILE        run a program, then say what its kernels cost; spans go to NAME.trace.json\n"
    "  --log-file PATH       write the log of capture there at the end, as JSON\n"
    "  --trace-file PATH     write what was compiled and run when, for about:tracing and Perfetto\n"
    "  --fuel N              stop after N calls and loop trips\n"
    "  --memory BYTES        hold at most that much; K, M and G count 2^10, 2^20, 2^30\n"
    "  --deadline SECONDS    stop after that time\n"
    "  --version             what this is, and its version\n"
    "  --help                this text\n"
    "  --                    the next argument is FILE, whatever it begins with\n"
    "weft run FILE [args]       the same as weft FILE\n"
    "weft test FILE…            run functions named test_…, and examples in ## lines; 1 when one fails\n"
    "weft doc NAME|FILE…        what a function does; the functions of a file\n"
    "weft fmt [--check] FILE…   lay programs out; - is standard input; --check: only tell which are not\n"
    "weft compile -c FILE [-o OUT]  write FILE as bytecode to OUT, else NAME.weftc, which runs as FILE does;\n"
    "                           --strip: without its text\n"
    "weft lsp                   the language server that editors start (see editors/README.md)\n"
    "environment: WEFT_BACKEND=eager|interp|loops|mir|ptx|verify  WEFT_CPU=scalar|strip|avx2|avx512  WEFT_HOT=N  "
    "WEFT_PACE=0  WEFT_THREADS=N  "
    "WEFT_LOG=ast,bytecode,copies,graph,guards,loops,breaks,recompiles\n"
    "  WEFT_LOG_FILE=PATH  WEFT_TRACE_FILE=PATH  as --log-file and "
    "--trace-file;  WEFT_HISTORY=PATH  what was entered at the prompt\n"
    "  WEFT_PICTURES=sixel|kitty|none  how drawings are shown;  WEFT_CACHE=PATH  compiled kernels of a GPU;  "
    "NO_COLOR=1  no colours;  "
    "EDITOR, BROWSER  of :edit and :show\n";

static WeftVM *running; /* what Ctrl-C stops */
static volatile sig_atomic_t interrupted;
static bool output_told; /* an error of the program says that standard output cannot be written */

static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
  if (running) weft_interrupt(running);
}

bool interrupt_pending(void) { return interrupted; }
void interrupt_forget(void) {
  interrupted = 0;
  weft_interrupt_forget(running);
}

static int wrong_usage(const char *what, const char *arg) {
  fprintf(stderr, "weft: %s%s%s\ntry: weft --help\n", what, arg ? ": " : "", arg ? arg : "");
  return EXIT_USAGE;
}

/* All was written; else it is said. */
static int finish_output(int result) {
  interrupt_forget(); /* the next one ends waiting for who reads */
  int code = out_finish();
  if (!code) return result;
  if (!output_told) fprintf(stderr, "weft: cannot write to standard output: %s\n", strerror(code));
  return EXIT_ERROR;
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

/* ---- programs ---------------------------------------------------------------------------------- */

/* Several -e are lines of one program; false: there is no memory. */
static bool add_code(Program *p, const char *code) {
  size_t n = strlen(code);
  char *text = realloc(p->text, p->len + n + 2);
  if (!text) return false;
  if (p->len) text[p->len++] = '\n';
  memcpy(text + p->len, code, n + 1);
  p->text = text;
  p->len += n;
  return true;
}

static int finish(WeftVM *vm, WeftStatus status) {
  int code = weft_exit_code(vm);
  if (code >= 0) return code;
  if (status == WEFT_OK) return 0;
  out_flush();
  char *painted = colours_on(STDERR_FILENO) ? coloured_error(weft_error_text(vm)) : NULL;
  err_puts(painted ? painted : weft_error_text(vm));
  free(painted);
  return strcmp(weft_error_kind(vm), "interrupt") == 0 ? EXIT_INTERRUPTED : EXIT_ERROR;
}

/* A part of the log into a file; false, said: it cannot be written. */
static bool write_log(WeftVM *vm, const char *what, const char *path) {
  if (!path || !*path || weft_dump_file(vm, NULL, what, path) == WEFT_OK) return true;
  if (strcmp(weft_error_kind(vm), "interrupt") == 0)
    fprintf(stderr, "weft: cannot write \"%s\": interrupted\n", path);
  else fprintf(stderr, "weft: %s\n", weft_error_message(vm));
  return false;
}

/* Where the spans of a profile go: the program's name in the current folder. */
static const char *name_spans(const char *program, char *out, size_t room) {
  const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program, *dot = strrchr(name, '.');
  snprintf(out, room, "%.*s.trace.json", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
  return out;
}

static void tell_explained(WeftVM *vm) {
  out_flush();
  const char *text = weft_dump(vm, NULL, "explain");
  fputs(text ? text : "", stderr);
}

static void tell_profile(WeftVM *vm, const char *spans) {
  out_flush();
  const char *text = weft_dump(vm, NULL, "profile");
  fprintf(stderr, "%sspans: %s\n", text ? text : "", spans);
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

/* What print writes. Nothing to write: it is to be seen, since input is waited for, and who types ends the line. */
static void on_output(void *context, const char *text, size_t len) {
  char why[200];
  (void)context;
  if (len) out_put(text, len);
  else out_ask();
  if (!out_error()) return;
  output_told = true;
  snprintf(why, sizeof why, "cannot write to standard output: %s", strerror(out_error()));
  (void)weft_fail(running, "io", why);
}

/* ---- the command line ---------------------------------------------------------------------------- */

typedef struct Options {
  WeftOptions vm;
  Program code; /* of -e */
  const char *file, *log_file, *trace_file;
  bool explain, profile, prompt, help, version;
  int rest; /* the first argument of the program */
} Options;

/* The value of option `name`, as `--name VALUE` or `--name=VALUE`; false: argument *i is another one. *value is NULL
 * when it is missing. */
static bool option_value(const char *name, int argc, char **argv, int *i, const char **value) {
  size_t n = strlen(name);
  if (strncmp(argv[*i], name, n) != 0 || (argv[*i][n] && argv[*i][n] != '=')) return false;
  if (argv[*i][n]) *value = argv[*i] + n + 1;
  else *value = *i + 1 < argc ? argv[++*i] : NULL;
  return true;
}

/* 0, or the exit status after something was said. */
static int parse_options(Options *o, int argc, char **argv) {
  int i = 1;
  for (; i < argc && !o->file; i++) {
    const char *a = argv[i], *value = "";
    if (o->code.text && strcmp(a, "-e") != 0 && strcmp(a, "-i") != 0) break; /* what follows is for the program */
    if (strcmp(a, "--") == 0) {
      if (i + 1 < argc) o->file = argv[++i];
    } else if (strcmp(a, "-") == 0 || a[0] != '-') o->file = a;
    else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) return o->help = true, 0;
    else if (strcmp(a, "--version") == 0 || strcmp(a, "-v") == 0) return o->version = true, 0;
    else if (strcmp(a, "--explain") == 0) o->explain = o->vm.explain = true;
    else if (strcmp(a, "--profile") == 0) o->profile = true;
    else if (strcmp(a, "-i") == 0) o->prompt = true;
    else if (strcmp(a, "-e") == 0) {
      if (i + 1 == argc) return wrong_usage("a value is missing behind", a);
      if (!add_code(&o->code, argv[++i])) return wrong_usage("out of memory", NULL);
    } else if (option_value("--log-file", argc, argv, &i, &value)) o->log_file = value;
    else if (option_value("--trace-file", argc, argv, &i, &value)) o->trace_file = value;
    else if (option_value("--fuel", argc, argv, &i, &value)) {
      if (value && !parse_size(value, &o->vm.fuel)) return wrong_usage("--fuel needs a positive number", value);
    } else if (option_value("--memory", argc, argv, &i, &value)) {
      if (value && !parse_size(value, &o->vm.memory)) return wrong_usage("--memory needs a positive number", value);
    } else if (option_value("--deadline", argc, argv, &i, &value)) {
      if (value && !parse_seconds(value, &o->vm.deadline))
        return wrong_usage("--deadline needs a positive number", value);
    } else {
      return wrong_usage("unknown option", a);
    }
    if (!value) return wrong_usage("a value is missing behind", a);
  }
  if (o->explain && !o->file) return wrong_usage("--explain needs a file", NULL);
  if (o->profile && !o->file) return wrong_usage("--profile needs a file", NULL);
  o->rest = i;
  return 0;
}

/* A setting in the environment; NULL: it is not there, or empty. */
static const char *setting(const char *name) {
  const char *text = getenv(name);
  return text && *text ? text : NULL;
}

/* WEFT_CACHE, else `weft` in the folder that the system has for such; empty: NULL. */
static const char *cache_folder(void) {
  static char made[4096];
  const char *named = getenv("WEFT_CACHE"), *caches = setting("XDG_CACHE_HOME"), *home = setting("HOME");
  if (named) return *named ? named : NULL;
  int n = caches && *caches == '/' ? snprintf(made, sizeof made, "%s/weft", caches)
          : home                   ? snprintf(made, sizeof made, "%s/.cache/weft", home)
                                   : -1;
  return n > 0 && n < (int)sizeof made ? made : NULL;
}

/* The same for the environment. */
static int parse_environment(Options *o) {
  WeftOptions *v = &o->vm;
  int64_t hot = -1, threads = v->threads;
  v->backend = setting("WEFT_BACKEND");
  v->cpu = setting("WEFT_CPU");
  v->cuda_driver = setting("WEFT_CUDA_DRIVER");
  v->gpu_cache = cache_folder();
  v->force = setting("WEFT_FORCE");
  v->log = setting("WEFT_LOG");
  const char *pace = setting("WEFT_PACE");
  v->ignore_clock = pace && strcmp(pace, "0") == 0;
  if (!whole_setting("WEFT_HOT", INT32_MAX, &hot))
    return wrong_usage("WEFT_HOT must be a whole number from 0", getenv("WEFT_HOT"));
  if (!whole_setting("WEFT_THREADS", 1024, &threads))
    return wrong_usage("WEFT_THREADS must be a whole number from 0 (all processors) to 1024", getenv("WEFT_THREADS"));
  v->hot = hot < 0 ? 0 : hot ? (int)hot : 1;
  v->threads = (uint32_t)threads;
  o->log_file = getenv("WEFT_LOG_FILE");
  o->trace_file = getenv("WEFT_TRACE_FILE");
  return 0;
}

static int show_version(void) {
  WeftVM *vm = weft_new(NULL);
  if (!vm) return EXIT_ERROR;
  out_puts(weft_build(vm));
  weft_free(vm);
  return finish_output(0);
}

/* Reads the file, or standard input where no prompt is wanted. 0, or the exit status after something was said. */
static int load_program(const Options *o, Program *p) {
  bool input = !o->file || strcmp(o->file, "-") == 0;
  *p = (Program){.name = input ? "<stdin>" : o->file};
  int fd = input ? STDIN_FILENO : open(o->file, O_RDONLY | O_CLOEXEC);
  int code = read_program(fd, p);
  if (!input && fd >= 0) close(fd);
  if (!code) return 0;
  if (input) fprintf(stderr, "weft: cannot read the standard input: %s\n", strerror(code));
  else fprintf(stderr, "weft: cannot read \"%s\": %s\n", o->file, strerror(code));
  /* a word that is no path may be meant as a command */
  if (!input && code == ENOENT && !strpbrk(o->file, "./"))
    fputs("try: weft --help; weft alone is a prompt, commands are run, test, fmt, doc, compile and lsp\n", stderr);
  free(p->text);
  return input ? EXIT_ERROR : EXIT_USAGE;
}

/* `why` begins with the name of an option: said as whoever set it knows that. The exit status. */
static int wrong_options(WeftStatus status, const char *why) {
  static const char *const options[][2] = {{"backend", "WEFT_BACKEND"}, {"cpu", "WEFT_CPU"}, {"force", "WEFT_FORCE"},
                                           {"log", "WEFT_LOG"}, {"memory", "--memory"}};
  const char *name = "";
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    size_t n = strlen(options[i][0]);
    if (strncmp(why, options[i][0], n) != 0 || !strchr(" :", why[n])) continue;
    name = options[i][1];
    why += n;
    break;
  }
  fprintf(stderr, "weft: %s%s\n%s", name, why, status == WEFT_MISUSE ? "try: weft --help\n" : "");
  return status == WEFT_MISUSE ? EXIT_USAGE : EXIT_ERROR;
}

/* NULL, said: there is none, and *status is the exit status. */
static WeftVM *make_vm(const Options *o, int *status) {
  WeftVM *vm;
  char why[300];
  WeftStatus made = weft_open(&o->vm, &vm, why, sizeof why);
  if (made != WEFT_OK) return *status = wrong_options(made, why), NULL;
  bool traced = o->trace_file && *o->trace_file;
  if (traced || (o->log_file && *o->log_file)) weft_keep_log(vm, traced);
  return vm;
}

static WeftStatus run_program(WeftVM *vm, const Program *p) {
  if (weft_is_compiled(p->text, p->len)) return weft_load_compiled(vm, NULL, p->text, p->len, p->name, NULL);
  return weft_load_text(vm, p->text, p->len, p->name, NULL);
}

static int run_code(WeftVM *vm, const Program *code) {
  WeftValue *value = NULL;
  int result = finish(vm, weft_eval(vm, code->text, "<-e>", &value));
  if (result == 0 && value && strcmp(weft_type(vm, value), "nil") != 0) {
    out_puts(weft_show(vm, value));
    out_puts("\n");
  }
  weft_release(vm, value);
  return result;
}

/* :reset goes on in another VM; *vm is NULL, and it was said, when there is none. */
static int run_prompt(const Options *o, WeftVM **vm) {
  int result = repl_run(*vm, false);
  while (result == REPL_RESET) {
    running = NULL;
    weft_free(*vm);
    *vm = make_vm(o, &result);
    if (!*vm) return result;
    running = *vm;
    result = repl_run(*vm, true);
  }
  return result;
}

static WeftVM *make_running(void *options) {
  int status;
  running = make_vm(options, &status);
  return running;
}

/* `weft test`, `weft doc`, `weft fmt`, `weft compile`, `weft lsp`; false: argv begins with another word. */
static bool run_tool(int argc, char **argv, Options *o, int *result) {
  const char *word = argc > 1 ? argv[1] : "";
  if (strcmp(word, "fmt") == 0) *result = format_files(argc - 2, argv + 2);
  else if (strcmp(word, "compile") == 0) *result = compile_file(argc - 2, argv + 2);
  else if (strcmp(word, "test") == 0) *result = test_files(argc - 2, argv + 2, make_running, o);
  else if (strcmp(word, "doc") == 0) *result = tell_docs(argc - 2, argv + 2, make_running, o);
  else if (strcmp(word, "lsp") == 0) *result = lsp_main(argc - 2, argv + 2);
  else return false;
  running = NULL;
  return true;
}

int main(int argc, char **argv) {
  Options o = {.vm = WEFT_OPTIONS_INIT};
  weft_prepare_process();
  o.vm.output = on_output;
  o.vm.draws = isatty(STDERR_FILENO) != 0;
  o.vm.input = line_input;
  o.vm.allow_files = o.vm.allow_env = o.vm.allow_imports = o.vm.allow_gpu = true;
  int result = parse_environment(&o);
  if (!result && run_tool(argc, argv, &o, &result)) return finish_output(result);
  if (!result && argc > 1 && strcmp(argv[1], "run") == 0) {
    if (argc == 2) return wrong_usage("weft run: a file is missing", NULL);
    argc--, argv++;
  }
  if (!result) result = parse_options(&o, argc, argv);
  if (result) return result;
  if (o.help) return out_puts(usage), finish_output(0);
  if (o.version) return show_version();
  char spans[256];
  if (o.profile && !(o.trace_file && *o.trace_file)) o.trace_file = name_spans(o.file, spans, sizeof spans);
  Program program = {0};
  bool prompt = o.prompt || (!o.file && !o.code.text && isatty(STDIN_FILENO));
  if (o.file || (!prompt && !o.code.text)) result = load_program(&o, &program);
  if (result) return result;
  WeftVM *vm = make_vm(&o, &result);
  if (!vm) return result;
  running = vm;
  struct sigaction act = {.sa_handler = on_interrupt};
  sigaction(SIGINT, &act, NULL);
  /* what was typed ahead of a read_line() is for the next one, or the prompt */
  if (isatty(STDIN_FILENO)) setvbuf(stdin, NULL, _IONBF, 0);
  signal(SIGXFSZ, SIG_IGN); /* a file beyond `ulimit -f` is an error of who writes it */
  weft_set_args(vm, argc - o.rest, argv + o.rest);
  if (o.code.text) result = run_code(vm, &o.code);
  if (program.text) result = finish(vm, run_program(vm, &program));
  if (o.explain) tell_explained(vm);
  if (prompt && weft_exit_code(vm) < 0) result = run_prompt(&o, &vm);
  if (!vm) return result;
  if (o.profile) tell_profile(vm, o.trace_file);
  interrupt_forget();
  bool told = write_log(vm, "json", o.log_file);
  told &= write_log(vm, "chrome", o.trace_file);
  if (!told) result = result ? result : EXIT_ERROR;
  running = NULL;
  weft_free(vm);
  free(program.text);
  free(o.code.text);
  return finish_output(result);
}
