/* weft.h — Weft inside a C or C++ program.
 *
 *     WeftVM *vm = weft_new(NULL);
 *     WeftValue *y = NULL;
 *     if (weft_eval(vm, "sum(arange(10))", "host", &y) != WEFT_OK)
 *       fputs(weft_error_text(vm), stderr);
 *     else
 *       puts(weft_show(vm, y));
 *     weft_release(vm, y);
 *     weft_free(vm);
 *
 * Rules. A VM belongs to one thread at a time; VMs are independent. The VM comes first in every call. Values are
 * opaque and counted: what a function gives through an out parameter is the caller's until weft_release; what is
 * passed in is borrowed. Every fallible call returns a WeftStatus; nothing is thrown and nothing jumps through
 * the host's frames. On WEFT_ERROR the error can be read until the next call. Texts returned by the library live
 * until the next call that returns a text from the same VM. NULL where a value is expected is WEFT_MISUSE, and so is
 * a value of another VM, or one that was released as far as that can be seen: weft_error_message says it. Names and
 * texts are UTF-8. Callbacks by which the host takes back what it gave (`release` of lent arrays, functions,
 * handles) may call weft_retain and weft_release and nothing else: all else gives WEFT_MISUSE there.
 *
 * Structs. One that the host makes begins with `size`, which the host sets to its sizeof before the call:
 *
 *     WeftCompletion c = {.size = sizeof c};
 *     weft_complete(vm, line, at, &c);
 *
 * A later version of the library adds fields at the end alone. It writes no more than `size` bytes, so a host that was
 * built with an older header keeps working, and what a newer host has behind is set to 0. A `size` that was not set is
 * refused, and nothing is written. Two structs have none and keep their fields for ever: WeftArray and WeftPromise.
 * What else there is to know of an array has functions of its own, such as weft_array_unshared. */
#ifndef WEFT_H
#define WEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

#ifndef WEFT_STATUS_DEFINED
#define WEFT_STATUS_DEFINED
typedef enum WeftStatus {
  WEFT_OK = 0,
  WEFT_ERROR = 1,      /* an error was raised; its text, kind and place can be read */
  WEFT_INCOMPLETE = 2, /* the source text ended inside a construct (a REPL asks for another line) */
  WEFT_MISUSE = 3,     /* the host broke a rule of this page; nothing was changed */
  WEFT_SUSPENDED = 4   /* the program waits for what weft_resume gives it (weft_define_suspending) */
} WeftStatus;
#endif

typedef struct WeftVM WeftVM;
typedef struct WeftValue WeftValue;

/* ---- backends of the host ----------------------------------------------------------------------- */

/* What compiles the graphs that Weft captures. One of the host's own reads each graph and compiles it, or hands it
 * on to one of the library's and looks on while it runs. Given to weft_new in WeftOptions.backends, chosen by
 * WeftOptions.backend; "verify:NAME" runs what NAME compiles beside the reference interpreter of graphs and
 * compares results and inputs. */

/* A captured graph: what a region, a piece of a program between two breaks, computes. Readable in the compile hook,
 * and while its region runs; handing on rewrites it. */
typedef struct WeftGraph WeftGraph;

typedef enum WeftCompiled { /* why a graph is not compiled: weft_fail tells it to the user */
  WEFT_COMPILED = 0,
  WEFT_RESTART = 1,     /* trace again, with less in the graph (calls end it); saying so again counts as unsupported */
  WEFT_SKIP = 2,        /* not worth it: this place stays with the interpreter, silently */
  /* something in it cannot be compiled: the same; the log (WEFT_LOG=breaks, weft_dump "why") and trace.explain say
   * so */
  WEFT_UNSUPPORTED = 3,
  /* a defect, or memory was refused: the log says so; where jit(f) or trace.explain asked, an error */
  WEFT_FATAL = 4
} WeftCompiled;

typedef struct WeftRun { /* one run of a region */
  WeftGraph *graph;
  void *code;               /* what the compile hook gave */
  size_t input_count, output_count;
  WeftValue *const *inputs; /* borrowed, in the order of weft_graph_input. They must not be written */
  /* to be filled with values owned, in the order of weft_graph_output. None for a graph handed on */
  WeftValue **outputs;
} WeftRun;

typedef struct WeftBackend { /* must live as long as the VM; run and release may be NULL */
  size_t size;      /* sizeof(WeftBackend) */
  const char *name; /* letters, digits, _ */
  void *context;
  /* Once for each graph, before it runs first. It must not run programs of this VM. May set *code for its runs. */
  WeftCompiled (*compile)(WeftVM *vm, void *context, WeftGraph *graph, void **code);
  /* Once for each run. Of a graph that was handed on: looks at the inputs; weft_run_hand_on runs it now, else it
   * runs when the hook has returned. Of any other: fills all outputs with values of the dtype and shape the graph
   * says. WEFT_INCOMPLETE gives this run back to the interpreter, as a check of the graph that does not hold must.
   * WEFT_ERROR after weft_fail raises that in the program, as outputs that are missing or of another type do; then
   * what the program holds is as before the region. */
  WeftStatus (*run)(WeftVM *vm, void *context, WeftRun *run);
  /* The region has gone. Must not call the VM. */
  void (*release)(void *context, void *code);
} WeftBackend;

/* ---- a device of the host ------------------------------------------------------------------------- */

/* A place where arrays lie, beside "cpu" and "gpu": programs write to(x, "NAME") and device="NAME". Its memory is
 * the host's; operations are done by the processor: arrays come there and results go back. What the copies get as
 * `data` may lie inside of what alloc gave. Hooks must not call the VM. */
typedef struct WeftDevice { /* must live as long as the VM */
  size_t size;      /* sizeof(WeftDevice) */
  const char *name; /* letters, digits, _ */
  void *context;
  void *(*alloc)(void *context, size_t bytes); /* NULL: refused. bytes is not 0 */
  void (*free)(void *context, void *data, size_t bytes);
  bool (*to_host)(void *context, const void *data, void *host, size_t bytes); /* copies that wait; false: failed */
  bool (*from_host)(void *context, const void *host, void *data, size_t bytes);
} WeftDevice;

/* ---- files of the host ------------------------------------------------------------------------- */

/* What programs see as files, in place of the system's: an archive, a database, the files below one folder. All that
 * reads and writes files in a program goes through it, imports too (where they are allowed, and there is no
 * resolve_module); what the host itself loads and dumps does not. Paths come as the program wrote them. Functions give
 * 0, or an errno, which the program's error says: ENOENT "No such file or directory". They may weft_fail instead, and
 * call nothing else of the VM. */
typedef struct WeftFiles { /* must live as long as the VM */
  size_t size; /* sizeof(WeftFiles) */
  void *context;
  int (*open)(void *context, const char *path, void **file); /* to be read */
  /* Up to `room` bytes that stand from byte `at` on: how many, 0: the file ends there, below 0: a negative errno. */
  ptrdiff_t (*read)(void *context, void *file, uint64_t at, char *to, size_t room);
  void (*close)(void *context, void *file); /* may come as late as weft_free */
  /* Makes the file, or replaces all of it; with `append` the bytes go behind what it holds. */
  int (*write)(void *context, const char *path, const char *data, size_t bytes, bool append);
  int (*about)(void *context, const char *path, uint64_t *bytes, bool *folder); /* ENOENT: it is not there */
  /* Calls give(to, name) for each entry of a folder, in any order. "." is the outermost. */
  int (*list)(void *context, const char *path, void (*give)(void *to, const char *name), void *to);
  int (*make_folder)(void *context, const char *path); /* one; those around it came before. EEXIST: it is there */
  int (*remove)(void *context, const char *path);      /* a file; EISDIR: it is a folder */
} WeftFiles;

/* The files below a folder of the system, and no others, into *out. A path must not begin with `/`, hold `..`, or lead
 * through or to a symbolic link, else EACCES; so must what is neither a file nor a folder. Files are replaced as a
 * whole. WEFT_MISUSE: a pointer is NULL. WEFT_ERROR: errno says why the folder cannot be opened. It may serve several
 * VMs, in several threads. Linux and systems like it. */
WEFT_API WeftStatus weft_files_below(const char *folder, const WeftFiles **out);
WEFT_API void weft_files_free(const WeftFiles *below); /* after the VMs. May be NULL */

/* ---- a VM ------------------------------------------------------------------------------------- */

/* Every field that is 0 means its default: options may be cleared by memset as well as set to WEFT_OPTIONS_INIT. */
typedef struct WeftOptions {
  /* sizeof(WeftOptions), as WEFT_OPTIONS_INIT sets it; 0: of the struct as version 0.1 has it, which goes to `stack`,
   * and what stands behind that is not looked at */
  size_t size;
  /* Memory: behaves as realloc and is told old sizes; new_size 0 frees; NULL refuses. NULL: the C library. Calls of
   * LAPACK that take some ten milliseconds or more work on copies in memory of the C library, since nothing can stop
   * them: where the program ends by a deadline or an interrupt meanwhile, they go on in a thread of their own, four at
   * a time in the process, and free the copies then, whatever became of the VM. */
  void *(*resize)(void *context, void *p, size_t old_size, size_t new_size);
  void *resize_context;
  /* What programs print; length 0: the program is about to wait for input. weft_fail in it ends the program that
   * prints. NULL: standard output. */
  void (*output)(void *context, const char *text, size_t length);
  void *output_context;
  /* Source text of the module at a path, to be freed with free(); NULL: there is none. NULL function: files. */
  char *(*resolve_module)(void *context, const char *path);
  void *resolve_context;
  uint64_t memory;   /* bytes the VM may hold; 0: no limit */
  uint64_t fuel;     /* calls, loop trips and kernel elements / 1024; 0: no limit */
  /* seconds from weft_new on; 0: none. Programs end within some 20 ms behind it, also inside of long operations,
   * but for one match of a pattern, a part of a product by OpenBLAS, and what the host's own functions take */
  double deadline;
  uint32_t depth;    /* nested calls; 0: 20,000 */
  uint64_t output_limit; /* bytes that may be printed; 0: no limit */
  bool allow_files, allow_env, allow_imports, allow_gpu; /* a VM starts with none of them */
  /* "eager", "interp", "loops", "mir", "ptx", "verify", or one of `backends`; NULL: the best there is */
  const char *backend;
  /* the call of a function, or the trip of a loop, at which it is compiled: 1, the first; 2, the second …; 0 and below:
   * when it pays (docs/tiers.md) */
  int hot;
  /* testing, results do not change: "exits N", "misses N", "checks N", "endless N", "rollback", "threads" (short loops
   * are shared too), "large" (all arrays count as large); NULL: nothing */
  const char *force;
  /* what compiled array loops use: "scalar", "strip", "avx2", "avx512"; NULL: the default. All give the same results */
  const char *cpu;
  /* path of the CUDA driver, which is loaded when it is first needed; must live as long as the VM. NULL:
   * libcuda.so.1 */
  const char *cuda_driver;
  /* bytes of freed arrays that are kept for the next ones (fresh pages are slow), below `memory` and given back before
   * it is refused; 0: an eighth of the machine's memory, at most 2 GiB; 1: none */
  uint64_t keep;
  /* that share long loops over arrays, the VM's own among them; results do not depend on it, but the last bits of large
   * matrix products do. 0: one per processor */
  uint32_t threads;
  const WeftBackend *backends; /* the host's */
  size_t backend_count;        /* at most 8 */
  const WeftDevice *own_device; /* the host's, or NULL */
  /* where zeros, arange and all else that takes device= makes arrays: "cpu", "gpu", or the name of own_device; NULL:
   * "cpu" */
  const char *device;
  /* bytes of C stack that a program may use, from where the host calls; 0: what is left of the thread's, as the system
   * says, and 128 KiB of one that it knows nothing of (a coroutine's). A program that needs more gets an error of kind
   * "limit". 96 KiB are needed to run at all, and 192 KiB to compile; a main thread's 8 MiB hold some thousands of
   * calls through built-in functions */
  size_t stack;
  /* What is told while programs run: words between commas of "ast", "bytecode", "copies" (made since a value was
   * shared), "graph", "guards", "loops", "breaks", "recompiles". NULL: nothing. weft_dump gives what is kept. */
  const char *log;
  /* Where that goes. Must not call the VM. NULL: standard error. */
  void (*log_output)(void *context, const char *text, size_t length);
  void *log_context;
  /* Nothing that is decided about compiling goes by the clock: a place is compiled at call 30 or trip 60 (or `hot`),
   * and each run of a program compiles the same. Results never depend on it. */
  bool ignore_clock;
  /* weft_dump(vm, NULL, "explain") tells of code that was freed meanwhile, too. */
  bool explain;
  /* What read_line() reads: up to `room` bytes into `to`, no further than the end of a line; how many, 0: the input is
   * over, -1: the host has nothing, and standard input is read, which needs allow_files. weft_fail in it ends the
   * program that reads. NULL: standard input. */
  ptrdiff_t (*input)(void *context, char *to, size_t room);
  void *input_context;
  bool draws; /* standard error is a terminal on which progress() may draw */
  /* What programs have for files; allows them. NULL: the system's files, where `allow_files` is set. */
  const WeftFiles *files;
  /* A folder in which compiled kernels of a GPU are kept for later processes; made when it is missing, used when it is
   * this user's and nobody else's to write, 256 MiB at most; must live as long as the VM. NULL: nothing is kept. */
  const char *gpu_cache;
} WeftOptions;

#define WEFT_OPTIONS_INIT                                                                                         \
  {sizeof(WeftOptions), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0.0, 0, 0, false, false, false, false, NULL, 0, \
   NULL, NULL, NULL, 0, 0, NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, false, false, NULL, NULL, false, NULL, NULL}

/* The same for a struct of `size` bytes, as sizeof gives them to the host: for hosts in other languages. */
WEFT_API void weft_options_init(WeftOptions *options, size_t size);

/* A VM into *vm. `why` (may be NULL) gets the reason for which there is none, a line of at most `room` bytes that
 * begins with the name of the option it is about: "cpu is beyond this processor: avx512".
 *   WEFT_MISUSE: `backend`, `device`, `force`, `cpu` or a word of `log` is unknown, `cpu` is beyond this processor, or
 *     `files`, `own_device` or one of `backends` is incomplete, has a name that is taken, or is one too many.
 *   WEFT_ERROR: memory was refused, or `backend` is "ptx", the GPU is allowed, and there is none that can be used.
 * options may be NULL. */
WEFT_API WeftStatus weft_open(const WeftOptions *options, WeftVM **vm, char *why, size_t room);
/* The same for who need not know why: NULL when there is none. */
WEFT_API WeftVM *weft_new(const WeftOptions *options);
/* Values still held by the host become invalid. vm may be NULL. Does nothing while a program of this VM runs: from a
 * host function, say. */
WEFT_API void weft_free(WeftVM *vm);
WEFT_API const char *weft_version(void); /* "0.1.0" */
/* For a program whose process is its own, before it has threads and loads libraries: settings of the process that make
 * Weft faster. Freed memory is kept by the C library (glibc), and OPENBLAS_CORETYPE is set where OpenBLAS would choose
 * slow code. */
WEFT_API void weft_prepare_process(void);

/* Stops the program that runs, soon: the call in progress gives an error of kind "interrupt". When none runs, the
 * next call that would run one (weft_eval and its kind, weft_load_file, weft_call) gives that error and runs
 * nothing. Several are one. May be called from a signal handler or another thread; the only function that may. */
WEFT_API void weft_interrupt(WeftVM *vm);
/* Takes back an interrupt that nothing has noticed yet, as a prompt does before it reads an input. */
WEFT_API void weft_interrupt_forget(WeftVM *vm);
/* Limits from here on; the meanings of WeftOptions. */
WEFT_API void weft_set_limits(WeftVM *vm, uint64_t memory, uint64_t fuel, double deadline);
/* What is left of the limits: UINT64_MAX bytes or units, or INFINITY seconds, where there is none. From a host
 * function, too: there compiled code may have used a little more fuel than it has told. */
WEFT_API uint64_t weft_memory_left(WeftVM *vm);
WEFT_API uint64_t weft_fuel_left(WeftVM *vm);
WEFT_API double weft_time_left(WeftVM *vm); /* 0: the deadline has passed */
/* Gives back what the VM keeps to be faster, and what nobody can reach any more: refs that hold each other, with all
 * behind them, and freed arrays that wait for the next ones. How many bytes that were. Frees nothing that a program or
 * the host holds. A VM does so by itself, too, now and then. */
WEFT_API size_t weft_collect(WeftVM *vm);
/* Another default device from here on, as WeftOptions.device. WEFT_MISUSE: there is none of that name, or a program
 * runs. */
WEFT_API WeftStatus weft_set_device(WeftVM *vm, const char *name);
/* What args() gives. The strings must live as long as the VM. */
WEFT_API void weft_set_args(WeftVM *vm, int argc, char **argv);
/* -1, or the code that the program that ran last gave to exit(n). */
WEFT_API int weft_exit_code(const WeftVM *vm);

/* ---- running programs -------------------------------------------------------------------------- */

/* Runs source text in the VM's main module; `name` stands in messages. *out (may be NULL): value of the last
 * statement. */
WEFT_API WeftStatus weft_eval(WeftVM *vm, const char *text, const char *name, WeftValue **out);
/* The same for a text of `length` bytes, which need not end in NUL. A NUL inside is a syntax error. */
WEFT_API WeftStatus weft_eval_length(WeftVM *vm, const char *text, size_t length, const char *name, WeftValue **out);
/* The same by the REPL's rules: a top-level `x = e` declares; WEFT_INCOMPLETE when the text ends inside a construct. */
WEFT_API WeftStatus weft_eval_line(WeftVM *vm, const char *text, const char *name, WeftValue **out);
/* The program in the layout of `weft fmt` (docs/prompt.md), for editors: indentation, blanks inside of lines and empty
 * lines change, nothing else does. Runs nothing. *text: until the next function that gives a text. WEFT_ERROR: it has
 * an error of syntax. */
WEFT_API WeftStatus weft_format(WeftVM *vm, const char *source, size_t length, const char *name, const char **text);
/* Runs a file in the main module, as text or as weft_compile gave it. Needs no capability: the host chose it. */
WEFT_API WeftStatus weft_load_file(WeftVM *vm, const char *path, WeftValue **out);
/* The same with the text of a file that the host has read: imports are looked for beside `path`, which stands in
 * messages. */
WEFT_API WeftStatus weft_load_text(WeftVM *vm, const char *text, size_t length, const char *path, WeftValue **out);
enum { WEFT_COMPILE_STRIP = 1 }; /* without the text, names of local variables and texts of defaults */
/* A program as bytes, to be kept and loaded without its text being read again. It is compiled as in `module` (of the
 * host's; NULL: the main module), whose variables it may name, and is not run; nothing is declared. *bytes: *count of
 * them, until the next function that gives a text. `name`, without control characters, is what messages of the program
 * show; they show its lines, too, unless WEFT_COMPILE_STRIP leaves the text out. Files that it imports are not part of
 * it. WEFT_ERROR: it does not compile. */
WEFT_API WeftStatus weft_compile(WeftVM *vm, WeftValue *module, const char *text, size_t length, const char *name,
                                 unsigned flags, const void **bytes, size_t *count);
/* Do the bytes begin as weft_compile's do? No text does. */
WEFT_API bool weft_is_compiled(const void *bytes, size_t count);
/* Runs such a program in `module`, as weft_load_text runs a text: imports are looked for beside `path` (NULL, or in
 * another module than the main one: beside the current folder). The bytes are proved before they run, whoever made
 * them; they are not kept. Errors of kind "unsupported": another version of Weft compiled it; "name": a variable that
 * it names is not declared here, and was where it was compiled; "syntax": it was cut, changed, or is none. */
WEFT_API WeftStatus weft_load_compiled(WeftVM *vm, WeftValue *module, const void *bytes, size_t count,
                                       const char *path, WeftValue **out);
/* Calls a function value with `count` arguments. */
WEFT_API WeftStatus weft_call(WeftVM *vm, WeftValue *function, WeftValue *const *args, size_t count, WeftValue **out);
/* The same; the last `named` arguments are given by name: names[0] … names[named - 1]. A name that no variable can have
 * is WEFT_MISUSE; one that the function does not know is its error. */
WEFT_API WeftStatus weft_call_named(WeftVM *vm, WeftValue *function, WeftValue *const *args, size_t count,
                                    const char *const *names, size_t named, WeftValue **out);
/* Variables of the main module. Getting one that is not there is an error of kind "name". */
WEFT_API WeftStatus weft_get_global(WeftVM *vm, const char *name, WeftValue **out);
WEFT_API WeftStatus weft_set_global(WeftVM *vm, const char *name, WeftValue *value);

/* ---- modules of the host --------------------------------------------------------------------------- */

/* A module has variables of its own: a program that runs in it sees these and the built-ins, and none of the main
 * module or of other modules, but for what it imports. One for each script keeps scripts apart; one of host functions
 * is a namespace:
 *
 *     weft_module_new(vm, "canvas", &canvas);
 *     weft_module_define(vm, canvas, "line", line, NULL, NULL);
 *     weft_module_set(vm, script, "canvas", canvas);        // canvas.line(1, 2) in `script`
 *
 * Its value has the type "module" and may be given to programs, which read its variables (those that begin with _ are
 * private) and assign none. `name` stands in messages. WEFT_MISUSE: a name that is none, or that of a module of the
 * language; in the other calls, a value that is no module of the host's, or one that was given back. */
WEFT_API WeftStatus weft_module_new(WeftVM *vm, const char *name, WeftValue **out);
/* As weft_eval_length, weft_get_global and weft_set_global, in this module. */
WEFT_API WeftStatus weft_module_run(WeftVM *vm, WeftValue *module, const char *text, size_t length, const char *name,
                                    WeftValue **out);
WEFT_API WeftStatus weft_module_get(WeftVM *vm, WeftValue *module, const char *name, WeftValue **out);
WEFT_API WeftStatus weft_module_set(WeftVM *vm, WeftValue *module, const char *name, WeftValue *value);
/* Gives it back: its variables go, and the count that weft_module_new gave. A function of it that somebody still holds
 * finds none of its variables. WEFT_MISUSE: a program runs. */
WEFT_API WeftStatus weft_module_free(WeftVM *vm, WeftValue *module);

/* ---- a prompt -------------------------------------------------------------------------------------- */

/* What a host needs for a prompt of its own, beside weft_eval_line, weft_display and weft_interrupt. The program `weft`
 * is one (docs/prompt.md); it includes this header alone. */

typedef enum WeftInput {
  WEFT_INPUT_WHOLE = 0,  /* weft_eval_line runs it; weft_display says what is shown of its value */
  WEFT_INPUT_DECLARES,   /* the same, and it ends in the declaration of a function, which need not be shown */
  WEFT_INPUT_UNFINISHED, /* it ends inside a construct: more lines are wanted */
  WEFT_INPUT_COMMAND     /* for weft_command: ":graph f", "?sum", "help", "quit" … */
} WeftInput;

/* What was entered, one line or several. Runs nothing and raises nothing. */
WEFT_API WeftInput weft_input(WeftVM *vm, const char *text);

typedef enum WeftCommandEnd {
  WEFT_COMMAND_DONE = 0,
  WEFT_COMMAND_FAILED,  /* the error can be read */
  WEFT_COMMAND_HELP,    /* done; the text lists the commands: a host adds what its keys do */
  WEFT_COMMAND_QUIT,    /* the host is to end its prompt */
  WEFT_COMMAND_UNKNOWN  /* it is no command; nothing was done */
} WeftCommandEnd;

/* Does what such a line asks for. *text (may be NULL) is what is to be shown, lines or ""; what a program prints that
 * the command runs goes to `output`. ":load" needs no capability. */
WEFT_API WeftCommandEnd weft_command(WeftVM *vm, const char *line, const char **text);

typedef struct WeftCompletion {
  size_t size; /* sizeof(WeftCompletion) */
  size_t from; /* where in the line the word begins that is completed */
  bool files;  /* the name of a file is wanted, which is the host's to look for: no words */
  bool blank;  /* a blank follows the word */
  size_t count;
  const char *const *words; /* that may stand from there on, sorted; until the next weft_complete of this VM */
  const char *const *notes; /* of each word: its signature or type, and one line on it; "" where nothing is known */
} WeftCompletion;

/* How the line may go on at byte `at`: commands and their arguments, variables, built-in names, reserved words, members
 * behind a point, arguments by name. Runs nothing and raises nothing: names are followed through records and modules
 * only. No words when memory was refused, or `at` is behind the end of the line. WEFT_MISUSE: a pointer is NULL, or
 * out->size was not set. */
WEFT_API WeftStatus weft_complete(WeftVM *vm, const char *line, size_t at, WeftCompletion *out);

typedef enum WeftPaint {
  WEFT_PAINT_PLAIN = 0,
  WEFT_PAINT_WORD, /* reserved, or a command */
  WEFT_PAINT_NUMBER, /* true, false and nil as well */
  WEFT_PAINT_TEXT,
  WEFT_PAINT_COMMENT,
  WEFT_PAINT_FUNCTION, /* a built-in function, or a name that is called */
  WEFT_PAINT_BRACKET,  /* not those inside of texts and comments */
  WEFT_PAINT_WRONG     /* no token begins so */
} WeftPaint;

/* What each byte of an input is, whether it is whole or not: for colours, and to find the bracket that belongs to
 * another one. True: it ends inside of a text of several lines. */
WEFT_API bool weft_paint(const char *text, size_t length, unsigned char *paint);

/* The value of an input that was run, kept as the variable `ans`, unless it is nil or the program has declared an
 * `ans` of its own. */
WEFT_API void weft_remember(WeftVM *vm, WeftValue *value);

/* ---- a program as an editor sees it ---------------------------------------------------------------- */

/* What a program declares, what each name in it means, and its errors of syntax, names and types. It is read and
 * compiled, never run, and has no part in the variables of the VM. With errors of syntax the broken statements are left
 * out. Places are bytes of the text. `weft lsp` is built on this. */
typedef struct WeftOutline WeftOutline;

/* WEFT_ERROR: memory was refused, or the text is longer than 16 MiB. */
WEFT_API WeftStatus weft_outline(WeftVM *vm, const char *text, size_t length, WeftOutline **out);
WEFT_API void weft_outline_free(WeftVM *vm, WeftOutline *outline); /* before the VM. May be NULL */

typedef struct WeftProblem {
  size_t size; /* sizeof(WeftProblem); so in the structs below */
  size_t at, length;
  const char *kind, *message; /* "syntax", "name" …; one line */
} WeftProblem;

typedef enum WeftSymbolKind {
  WEFT_SYMBOL_VARIABLE = 0,
  WEFT_SYMBOL_FUNCTION,  /* by fn, or let f = x => … */
  WEFT_SYMBOL_PARAMETER,
  WEFT_SYMBOL_SIZE,      /* n in x: f64[n] */
  WEFT_SYMBOL_FILE,      /* import "file.weft" as m */
  WEFT_SYMBOL_MODULE     /* import linalg */
} WeftSymbolKind;

enum { WEFT_NO_SYMBOL = -1 };

typedef struct WeftSymbol {
  size_t size;
  WeftSymbolKind kind;
  const char *name;
  size_t at;         /* the name, where it is declared first */
  size_t from, to;   /* the statement, function or parameter that declares it */
  size_t seen_from, seen_to; /* where it can be named; of a variable of the module also in functions before */
  bool global;       /* a variable of the module */
  int parent;        /* the function that it is declared in, or WEFT_NO_SYMBOL */
  const char *signature; /* of a function "(x, n=2)", of a parameter as it is written, of an import what is imported */
  const char *doc;   /* its ## lines, "" without */
} WeftSymbol;

typedef enum WeftMentionKind {
  WEFT_MENTION_DECLARES = 0,
  WEFT_MENTION_READS,
  WEFT_MENTION_UPDATES, /* x = …, x[i] = … */
  WEFT_MENTION_CALLS,   /* a.f(x): the function f, unless `a` has a field f */
  WEFT_MENTION_MEMBER,  /* m.f of an import */
  WEFT_MENTION_ARGUMENT, /* f(name=…): the parameter */
  WEFT_MENTION_FIELD,   /* a.name of anything else */
  WEFT_MENTION_KEY      /* {name: …} */
} WeftMentionKind;

typedef struct WeftMention {
  size_t size;
  WeftMentionKind kind;
  size_t at, length;
  const char *name; /* "x"; of a member of a standard module "linalg.inv" */
  int symbol;       /* or WEFT_NO_SYMBOL: a built-in, a member, a field, an argument of a function from elsewhere */
  bool builtin;     /* `name` is a built-in; of an argument, `function` is */
  bool shared;      /* {x} for {x: x}: the name is a key as well */
  int imported;     /* of a member of a file, or an argument of one: the symbol of the import; else WEFT_NO_SYMBOL */
  const char *function; /* of an argument: whose it is, "" when that is not known */
} WeftMention;

/* Number `index` from 0, in the order of their places; false: there are no more, or out->size was not set. Texts live
 * as long as the outline. */
WEFT_API bool weft_outline_problem(const WeftOutline *outline, size_t index, WeftProblem *out);
WEFT_API bool weft_outline_symbol(const WeftOutline *outline, size_t index, WeftSymbol *out);
WEFT_API bool weft_outline_mention(const WeftOutline *outline, size_t index, WeftMention *out);

typedef enum WeftBuiltinKind {
  WEFT_BUILTIN_FUNCTION = 0,
  WEFT_BUILTIN_DTYPE,
  WEFT_BUILTIN_CONSTANT,
  WEFT_BUILTIN_MODULE,
  WEFT_BUILTIN_WORD /* reserved */
} WeftBuiltinKind;

typedef struct WeftBuiltin {
  size_t size;
  WeftBuiltinKind kind;
  const char *name;      /* "sum", "linalg.inv" */
  const char *signature; /* of a function "(x, axis=nil)", else "" */
  const char *doc;       /* of a function: what it does; behind "; " an example */
} WeftBuiltin;

/* Number `index` of all that the language has names for, from 0; false: there are no more. */
WEFT_API bool weft_builtin(size_t index, WeftBuiltin *out);

/* ---- errors -------------------------------------------------------------------------------------- */

WEFT_API const char *weft_error_text(WeftVM *vm);    /* message, source line with caret, call trace */
WEFT_API const char *weft_error_message(WeftVM *vm); /* one line */
WEFT_API const char *weft_error_kind(WeftVM *vm);    /* "shape", "index" …; "" without an error */
/* What the host allows that was used up, or is not there. A program cannot make an error that has one of these:
 * error("the fuel is used up", kind="limit") has none. */
typedef enum WeftLimit {
  WEFT_LIMIT_NONE = 0, /* no error, or another one */
  WEFT_LIMIT_MEMORY,
  WEFT_LIMIT_FUEL,
  WEFT_LIMIT_DEADLINE,
  WEFT_LIMIT_INTERRUPT, /* weft_interrupt */
  WEFT_LIMIT_EXIT,      /* the program ended itself: weft_exit_code */
  WEFT_LIMIT_DEPTH,
  WEFT_LIMIT_STACK,
  WEFT_LIMIT_OUTPUT,
  WEFT_LIMIT_FILES, /* these are not allowed */
  WEFT_LIMIT_ENV,
  WEFT_LIMIT_IMPORTS,
  WEFT_LIMIT_GPU,
  WEFT_LIMIT_INPUT
} WeftLimit;
WEFT_API WeftLimit weft_error_limit(WeftVM *vm); /* of the error that can be read */
WEFT_API void weft_error_position(WeftVM *vm, int *line, int *column); /* 1-based; 0 unknown */

/* ---- values ---------------------------------------------------------------------------------------- */

WEFT_API WeftValue *weft_retain(WeftVM *vm, WeftValue *value); /* one count more; the same value */
WEFT_API void weft_release(WeftVM *vm, WeftValue *value);      /* value may be NULL */
/* As a literal, as print writes it. "" when memory was refused, or weft_interrupt came meanwhile (the next program gets
 * that interrupt, too); in a host function also when the program is to end. */
WEFT_API const char *weft_show(WeftVM *vm, WeftValue *value);
/* the lines that the prompt shows of it: none of nil, the text of what trace.explain gave, a
 * drawing of what plot.line and its kind gave, else the value for reading (docs/prompt.md): cut
 * to the window of standard output, or to 80 columns */
WEFT_API const char *weft_display(WeftVM *vm, WeftValue *value);
/* its type; for arrays "f64[3, 4]", weak ones "weak i64[]" */
WEFT_API const char *weft_describe(WeftVM *vm, WeftValue *value);
WEFT_API const char *weft_type(WeftVM *vm, WeftValue *value);     /* "array", "text", "list" … */

/* WEFT_C64 and WEFT_C128: an element is two floats or two doubles, the real part first */
typedef enum WeftDType { WEFT_BOOL = 1, WEFT_U8, WEFT_I32, WEFT_I64, WEFT_U32, WEFT_U64, WEFT_F16, WEFT_BF16, WEFT_F32,
                         WEFT_F64, WEFT_C64, WEFT_C128 } WeftDType;

WEFT_API WeftStatus weft_nil(WeftVM *vm, WeftValue **out);
WEFT_API WeftStatus weft_bool(WeftVM *vm, bool b, WeftValue **out);
WEFT_API WeftStatus weft_int(WeftVM *vm, int64_t i, WeftValue **out);    /* i64, strong */
WEFT_API WeftStatus weft_float(WeftVM *vm, double f, WeftValue **out);   /* f64, strong */
/* Weak, as numbers written in a program: they take on the dtype of what they meet, so that an f32 array stays one. */
WEFT_API WeftStatus weft_weak_int(WeftVM *vm, int64_t i, WeftValue **out);
WEFT_API WeftStatus weft_weak_float(WeftVM *vm, double f, WeftValue **out);
WEFT_API WeftStatus weft_weak_complex(WeftVM *vm, double re, double im, WeftValue **out);
WEFT_API bool weft_is_weak(WeftVM *vm, WeftValue *value);
WEFT_API WeftStatus weft_text(WeftVM *vm, const char *utf8, size_t length, WeftValue **out);
WEFT_API WeftStatus weft_list(WeftVM *vm, WeftValue *const *items, size_t count, WeftValue **out);
WEFT_API WeftStatus weft_record(WeftVM *vm, const char *const *keys, WeftValue *const *items, size_t count,
                                WeftValue **out);

/* Reading: WEFT_ERROR of kind "type" when the value is something else. */
WEFT_API WeftStatus weft_as_int(WeftVM *vm, WeftValue *value, int64_t *out);   /* an integer or bool of rank 0 */
WEFT_API WeftStatus weft_as_float(WeftVM *vm, WeftValue *value, double *out);  /* a number of rank 0 */
/* lives as long as the value */
WEFT_API WeftStatus weft_as_text(WeftVM *vm, WeftValue *value, const char **utf8, size_t *length);
WEFT_API WeftStatus weft_length(WeftVM *vm, WeftValue *value, size_t *out);    /* of a list or record */
WEFT_API WeftStatus weft_item(WeftVM *vm, WeftValue *value, size_t index, WeftValue **out); /* of a list or record */
/* lives as long as the value */
WEFT_API WeftStatus weft_key(WeftVM *vm, WeftValue *record, size_t index, const char **out);
WEFT_API WeftStatus weft_field(WeftVM *vm, WeftValue *record, const char *key, WeftValue **out);

/* ---- arrays ------------------------------------------------------------------------------------------ */

enum { WEFT_MAX_RANK = 16 };

/* A look at an array: valid while the value is held and not updated by the program. Its fields stay as they are. */
typedef struct WeftArray {
  WeftDType dtype;
  int rank;
  int64_t shape[WEFT_MAX_RANK];
  int64_t strides[WEFT_MAX_RANK]; /* in elements; 0: broadcast */
  int64_t size;                   /* elements */
  const void *data;               /* element (0, …, 0) */
} WeftArray;

/* A copy of dense row-major data; dtypes that this build has no arrays of are an error of kind "unsupported". An
 * element of WEFT_BOOL is a byte, 0 or 1 (C's bool), one of WEFT_F16 two bytes, the bits of an IEEE half, as
 * uint16_t, one of WEFT_BF16 the upper half of a float's. */
WEFT_API WeftStatus weft_array(WeftVM *vm, WeftDType dtype, int rank, const int64_t *shape, const void *data,
                               WeftValue **out);
/* Lends the host's memory without copying: it is aligned for its elements, must not be written while lent, is never
 * updated in place, and `release` (may be NULL) is called once when the last view of it has gone. When the call
 * fails, `release` is not called and the memory is the host's as before. */
WEFT_API WeftStatus weft_array_lend(WeftVM *vm, WeftDType dtype, int rank, const int64_t *shape, void *data,
                                    void (*release)(void *context, void *data), void *context, WeftValue **out);
/* The same of memory that lies otherwise, or that is const: `strides` in elements, NULL: dense row-major. They may be
 * negative or 0; `data` is element (0, …, 0). */
WEFT_API WeftStatus weft_array_lend_strided(WeftVM *vm, WeftDType dtype, int rank, const int64_t *shape,
                                            const int64_t *strides, const void *data,
                                            void (*release)(void *context, void *data), void *context,
                                            WeftValue **out);
/* Looks at a number or array on the CPU without copying. */
WEFT_API WeftStatus weft_array_view(WeftVM *vm, WeftValue *value, WeftArray *out);
/* Does `value` alone hold its data: no variable of a program, no other value, no memory of the host? Then the host
 * may write there what weft_array_view shows, as long as it passes the value to nobody. */
WEFT_API bool weft_array_unshared(WeftVM *vm, WeftValue *value);
/* Copies the elements of a number or array, dense and row-major, into `bytes` bytes of the host, which must be as many
 * as they need. Any dtype that can hold each value of the array's own: f32 as f64, u8 as f16, i64 as i64 alone; else
 * an error of kind "type". Another count of bytes is one of kind "shape". From a device as well. */
WEFT_API WeftStatus weft_array_copy_out(WeftVM *vm, WeftValue *value, WeftDType dtype, void *to, size_t bytes);
/* The same into an array of the host, whatever its strides: dtype and shape must be those of the value, else an error
 * of kind "type" or "shape", and nothing is written. to->size is not looked at; a stride of 0 is WEFT_MISUSE. */
WEFT_API WeftStatus weft_array_copy_into(WeftVM *vm, WeftValue *value, const WeftArray *to);

/* DLPack (https://dmlc.github.io/dlpack/latest/): arrays of other libraries without copies, in both directions. The
 * structs are those of dlpack.h, which a host includes itself; version 1 says which data must not be written, the
 * "unversioned" struct before it cannot.
 * In: as weft_array_lend_strided. The VM owns the tensor and calls its deleter as `release`; when the call fails, the
 * tensor is the host's as before. Errors of kind "unsupported": a major version that is not 1, a GPU, a dtype that
 * Weft has not, lanes, data that is not aligned, a rank above 16.
 * Out: the tensor holds the array until its deleter is called, which may be in any thread, and after weft_free: the
 * memory that it shows stays until then (and so must WeftOptions.resize). Its data must not be written: the flag
 * says so. With `copy` it is dense, and the consumer's to write. Unversioned and without a copy the array must be
 * unshared (weft_array_unshared). An array on a device comes as a copy alone. Numbers are copied. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
WEFT_API WeftStatus weft_dlpack_import(WeftVM *vm, struct DLManagedTensorVersioned *tensor, WeftValue **out);
WEFT_API WeftStatus weft_dlpack_import_unversioned(WeftVM *vm, struct DLManagedTensor *tensor, WeftValue **out);
WEFT_API WeftStatus weft_dlpack_export(WeftVM *vm, WeftValue *value, bool copy, struct DLManagedTensorVersioned **out);
WEFT_API WeftStatus weft_dlpack_export_unversioned(WeftVM *vm, WeftValue *value, bool copy,
                                                   struct DLManagedTensor **out);

/* ---- host functions ------------------------------------------------------------------------------------ */

/* Gets borrowed arguments; gives *result (owned, released by the VM: an argument that is given back is retained first)
 * and WEFT_OK, or WEFT_ERROR after weft_fail. */
typedef WeftStatus (*WeftHostFunction)(WeftVM *vm, void *context, WeftValue *const *args, size_t count,
                                       WeftValue **result);
/* Declares `name` in the main module. `release` (may be NULL) is called when the function has gone; not when the
 * call fails: the context is the host's as before. */
WEFT_API WeftStatus weft_define(WeftVM *vm, const char *name, WeftHostFunction function, void *context,
                                void (*release)(void *context));
/* The same, declared nowhere: a value, which a host passes to programs as an argument or in a record. `name` stands in
 * messages. */
WEFT_API WeftStatus weft_function(WeftVM *vm, const char *name, WeftHostFunction function, void *context,
                                  void (*release)(void *context), WeftValue **out);
/* weft_define in a module of the host's. */
WEFT_API WeftStatus weft_module_define(WeftVM *vm, WeftValue *module, const char *name, WeftHostFunction function,
                                       void *context, void (*release)(void *context));
/* weft_define with names, defaults and documentation:
 *
 *     weft_define_described(vm, "blur(image, radius=1, ...rest, edge=\"wrap\")", "Blurs an image.", blur, NULL, NULL);
 *
 * `signature` is what stands behind `fn` in a program: a name, and parameters with a name each. Programs give arguments
 * by position or by name, and leave out those that have a default. `function` gets all of them, in the order of the
 * signature: of `blur(x, edge="zero")` x, 1, an empty list and "zero". A default is an expression; its variables are
 * those of the module, and it is computed in each call that leaves the argument out. Arguments that do not fit are the
 * errors that functions of the language give, and the host is not called. `help(blur)` shows the signature and `doc`
 * (NULL: none), a text of lines; completion shows both. WEFT_ERROR: the signature is none (kind "syntax", "name"), or
 * memory was refused; the context is the host's as before. */
WEFT_API WeftStatus weft_define_described(WeftVM *vm, const char *signature, const char *doc,
                                          WeftHostFunction function, void *context, void (*release)(void *context));
/* The same, declared nowhere: a value. Its defaults see the main module. */
WEFT_API WeftStatus weft_function_described(WeftVM *vm, const char *signature, const char *doc,
                                            WeftHostFunction function, void *context,
                                            void (*release)(void *context), WeftValue **out);
/* The same in a module of the host's, whose variables the defaults see. */
WEFT_API WeftStatus weft_module_define_described(WeftVM *vm, WeftValue *module, const char *signature,
                                                 const char *doc, WeftHostFunction function, void *context,
                                                 void (*release)(void *context));
/* weft_define for a construct of the host's own, with its trace rule: `rule` is a function of the language that takes
 * the same arguments and gives the same results, made at the top level (it captures nothing), as
 *
 *     (f, n, x) => fori_loop(0, n, (i, s) => f(s), x)
 *
 * The program calls `function`; where a call is traced, `rule` is traced in its place, with everything that it is
 * built of (differentiated, batched and compiled like any code), and `function` is not called. Both must agree:
 * WEFT_BACKEND=eager and the others then give the same answers. A host function without a rule is called in the
 * program's order, from compiled code too: never folded, moved or left out. Compiled code relies on what kind of
 * result it gives (WeftHandleType.abstract, or what it gave so far); when it gives another one, calls back into the
 * program (weft_call, weft_eval, globals, weft_handle_set), or keeps an array that it was given, the interpreter
 * goes on behind the call. WEFT_MISUSE when `rule` captures values or is no function of the language. */
WEFT_API WeftStatus weft_define_traced(WeftVM *vm, const char *name, WeftHostFunction function, void *context,
                                       void (*release)(void *context), WeftValue *rule);
/* A function that may let its program wait: for a timer, an answer, the next frame. It returns WEFT_SUSPENDED, and so
 * does the call that ran the program (weft_eval, weft_load_file, weft_call and their kind); nothing is on the C stack.
 * weft_resume goes on with the result of the function, as often as the program waits:
 *
 *     static WeftStatus fetch(WeftVM *vm, void *loop, WeftValue *const *args, size_t count, WeftValue **result) {
 *       …                                     // begins it: the loop will know when it is done
 *       return WEFT_SUSPENDED;
 *     }
 *     WeftStatus status = weft_eval(vm, "len(fetch(url))", "script", &value);
 *     while (status == WEFT_SUSPENDED) {
 *       WeftValue *answer = …;                // other VMs may run meanwhile
 *       status = weft_resume(vm, answer, &value);
 *     }
 *
 * It is declared in `module` (of the host's; NULL: the main module) and may give a result at once, like any other. Code
 * that calls it is interpreted there; the rest of the program is compiled as ever. What runs inside of something else
 * cannot wait: in a function that a built-in calls (map, sort, grad …), in a module while it is imported, in what a
 * host function or hook runs, and a function of the host that weft_call calls itself. There a call is an error of kind
 * "unsupported", and the function is not called. */
WEFT_API WeftStatus weft_define_suspending(WeftVM *vm, WeftValue *module, const char *name, WeftHostFunction function,
                                           void *context, void (*release)(void *context));
/* Does a program wait? While one does, nothing else runs in this VM: what runs or compiles a program is WEFT_MISUSE,
 * and variables and values may be read and set. weft_free ends it. */
WEFT_API bool weft_is_suspended(WeftVM *vm);
/* The program goes on: the function that let it wait has given `value`. What comes of it is what the call that ran the
 * program would have given: WEFT_OK and its value, WEFT_ERROR, or WEFT_SUSPENDED again. An interrupt, or a deadline,
 * that came meanwhile ends it. In any thread. WEFT_MISUSE: no program waits. */
WEFT_API WeftStatus weft_resume(WeftVM *vm, WeftValue *value, WeftValue **out);
/* The same, and the function has failed: an error as of weft_fail, which the program may catch. */
WEFT_API WeftStatus weft_resume_failed(WeftVM *vm, const char *kind, const char *message, WeftValue **out);
/* Ends it: nothing of it runs any more. WEFT_MISUSE: no program waits. */
WEFT_API WeftStatus weft_cancel(WeftVM *vm);
/* Raises an error of a kind of language.md ("host" when NULL) from a host function. Returns WEFT_ERROR. */
WEFT_API WeftStatus weft_fail(WeftVM *vm, const char *kind, const char *message);

/* ---- host objects --------------------------------------------------------------------------------------- */

/* What a host function gives: nil (dtype 0), or a number or array. Its fields stay as they are. */
typedef struct WeftPromise {
  int dtype; /* WeftDType, or 0 */
  int rank;
  int64_t shape[WEFT_MAX_RANK]; /* -1: any size */
} WeftPromise;

/* What objects of one kind have in common. Must live as long as the VM; all but size and name may be NULL. */
typedef struct WeftHandleType {
  size_t size;      /* sizeof(WeftHandleType) */
  const char *name; /* shown as <name> */
  void (*release)(void *object); /* called once, when the last handle of the object has gone */
  /* Trace hooks. Compiled code reads an object's fields through the handle, as inputs: changing one recompiles
   * nothing as long as its type stays. Fields named here (NULL at the end) are tags: numbers, texts, dtypes or nil
   * that say how the others are meant, such as the scale of a quantised array. Compiled code takes a tag for a
   * constant, and a change is one recompile whose reason names the field. */
  const char *const *tags;
  /* A word for what else compiled code may rely on, compared before it runs when it has read a field: another word is
   * another graph. Must not allocate, raise, call the VM or change anything. */
  uint64_t (*guard)(void *object);
  /* What the host function of this name gives when `object` is its first argument; false: not known. Compiled code
   * then goes on with the result without having seen one; a result of another kind costs a way back to the
   * interpreter, never a wrong answer. Without the hook what the function gave before is relied on, as long as that
   * is always the same kind. */
  bool (*abstract)(void *object, const char *function, WeftPromise *out);
  /* The arrays and numbers inside the object: gives a record of them (weft_record), in place of fields that are
   * kept with the handle. It is called when the program reads a field and the host ran since it was called last,
   * also between two calls from the host; compiled code calls it each time that it is entered and behind each host
   * function that it calls. Arrays that are still the same WeftValue count as unchanged; behind a host function
   * others cost a way back to the interpreter. It may make values and weft_fail (the error is raised where the
   * field is read), but not run the program or look at its variables. */
  WeftStatus (*flatten)(WeftVM *vm, void *object, WeftValue **fields);
} WeftHandleType;

/* A value of type "handle", with identity: it stands for `object`. `fields` is a record of what programs may read
 * from it (`h.scale`), or NULL; passing the handle to host functions is all else that a program can do with it. On
 * WEFT_ERROR the object was released. WEFT_MISUSE: fields of a type with `flatten`. */
WEFT_API WeftStatus weft_handle(WeftVM *vm, const WeftHandleType *type, void *object, WeftValue *fields,
                                WeftValue **out);
/* The object behind a handle of this type. WEFT_ERROR of kind "type" when the value is something else. */
WEFT_API WeftStatus weft_handle_object(WeftVM *vm, WeftValue *value, const WeftHandleType *type, void **object);
/* Changes a field (or adds one) for all who hold the handle. Not while compiled code runs but from a host function:
 * its calls stand in the program's order. WEFT_MISUSE for a type with `flatten`. */
WEFT_API WeftStatus weft_handle_set(WeftVM *vm, WeftValue *handle, const char *field, WeftValue *value);

/* ---- graphs, for backends of the host --------------------------------------------------------------------- */

typedef struct WeftGraphNode {
  size_t size;      /* sizeof(WeftGraphNode) */
  const char *kind; /* "op", "index", "update", "check", "cond", "while" … (docs/ir.md) */
  const char *name; /* of an op its function, of a check what holds after it, else "" */
  int depth;        /* in how many blocks of other nodes it stands */
  bool effect;      /* prints, calls the host, or writes: its order counts */
  bool plain;       /* its operands say all; else weft_graph_node_text tells the rest (axis=…) */
  size_t operand_count, result_count;
  const uint32_t *operands; /* numbers of values; as long as the graph */
  uint32_t result;          /* number of the first result; the others follow */
} WeftGraphNode;

typedef struct WeftGraphValue {
  size_t size; /* sizeof(WeftGraphValue) */
  WeftDType dtype;
  int rank;
  int64_t shape[WEFT_MAX_RANK]; /* -1: a symbol: another in each run */
  bool weak;     /* a number that takes on the dtype of others */
  bool constant; /* a number known now: `number`, to the precision of double */
  bool known;    /* an input, a constant or a size: weft_run_value gives it. Else the result of a node */
  double number;
} WeftGraphValue;

/* "f#3": the function, and a number of its own in this VM */
WEFT_API const char *weft_graph_name(const WeftGraph *graph);
/* The whole graph in the format of docs/ir.md; one node as a line, with the numbers of WeftGraphNode. "" when memory
 * was refused. */
WEFT_API const char *weft_graph_text(WeftVM *vm, const WeftGraph *graph);
WEFT_API const char *weft_graph_node_text(WeftVM *vm, const WeftGraph *graph, size_t node);
/* Nodes in the order in which they run, one that holds blocks before what stands in them. False: there is none of that
 * number, or out->size was not set. */
WEFT_API bool weft_graph_node(const WeftGraph *graph, size_t node, WeftGraphNode *out);
WEFT_API bool weft_graph_value(const WeftGraph *graph, uint32_t value, WeftGraphValue *out);
/* The number of the value that is input or output number `index`; 0: there is none. */
WEFT_API uint32_t weft_graph_input(const WeftGraph *graph, size_t index);
WEFT_API uint32_t weft_graph_output(const WeftGraph *graph, size_t index);
/* Where an input comes from: "arg0", "global \"k\"", "arg1.w[2]". */
WEFT_API const char *weft_graph_input_name(WeftVM *vm, const WeftGraph *graph, size_t index);
/* Can a run hook compute it: no effects, one way out? If not, it can only be handed on. */
WEFT_API bool weft_graph_simple(const WeftGraph *graph);
/* In the compile hook, once: the library's backend `name` compiles it. What it says is what the hook should return. */
WEFT_API WeftCompiled weft_graph_hand_on(WeftVM *vm, WeftGraph *graph, const char *name);
/* In the run hook, once. */
WEFT_API WeftStatus weft_run_hand_on(WeftVM *vm, WeftRun *run);
WEFT_API WeftStatus weft_run_value(WeftVM *vm, const WeftRun *run, uint32_t value, WeftValue **out);

/* ---- debuggers -------------------------------------------------------------------------------------------- */

typedef enum WeftHookEvent {
  WEFT_HOOK_CALL = 1,   /* a function of the program was entered; its parameters have their arguments */
  WEFT_HOOK_RETURN = 2, /* it is about to return; not where an error leaves it */
  WEFT_HOOK_LINE = 4,   /* the first instruction of a line is about to run, or the program has gone back to one */
  WEFT_HOOK_ERROR = 8   /* an error was raised, which weft_error_* tell; no frame was left for it yet, and it may be
                           caught. Once for each error, those of limits and interrupts too */
} WeftHookEvent;

/* Is told of steps of programs. WEFT_OK: the program goes on. WEFT_ERROR after weft_fail raises that there, in place
 * of the error that stands, if there is one. It may call everything but weft_free, as a host function may: what it has
 * run is told to nobody. */
typedef WeftStatus (*WeftHook)(WeftVM *vm, void *context, WeftHookEvent event);
/* From here on `hook` is told of the events in `mask`, a sum of WeftHookEvent. A NULL hook, or a mask of 0, ends that.
 * Programs are interpreted meanwhile: nothing is compiled, code that is compiled is not entered, and one that is called
 * from compiled code goes on interpreted behind the call. They may hold values for longer than they would, since
 * variables stay readable to the end of their scope. May be called between programs, in a host function, and in the
 * hook. What vmap, scan and their kind capture as a whole runs without being told of. Functions of the library are not
 * told of. WEFT_MISUSE: a bit of mask is unknown. */
WEFT_API WeftStatus weft_set_hook(WeftVM *vm, WeftHook hook, void *context, unsigned mask);

typedef struct WeftFrame {
  size_t size;          /* sizeof(WeftFrame) */
  const char *function; /* its name; "" of a lambda, and of what is no function. As long as the VM */
  const char *file;     /* as messages show it; until the frame ends */
  int line, column;     /* where it stands, 1-based; 0: not known */
  bool body;            /* of a module: a file, or a text that the host runs */
} WeftFrame;

/* Frames of programs that run now: of their functions and module bodies, not those of the library. For the hook and for
 * host functions; 0 where no program runs. Their number tells whether a step went into a call, or out of one. */
WEFT_API size_t weft_frame_count(WeftVM *vm);
/* Frame `index`: 0 is the innermost one. WEFT_MISUSE: there is none of that number, or out->size was not set. */
WEFT_API WeftStatus weft_frame(WeftVM *vm, size_t index, WeftFrame *out);
/* How many variables it has that are in scope: parameters and local variables, of a module's body those of the module
 * too. An inner one stands for outer ones of its name. */
WEFT_API WeftStatus weft_frame_locals(WeftVM *vm, size_t index, size_t *count);
/* Variable number `local` of these: its name, as long as the VM, and its value. NULL: it has none yet, or nothing reads
 * it any more and it was given up for that (without a hook, soon behind its last use). WEFT_MISUSE: there is none of
 * that number. */
WEFT_API WeftStatus weft_frame_local(WeftVM *vm, size_t index, size_t local, const char **name, WeftValue **value);
/* What `name` stands for in frame `index`: a variable in scope, one that the function captured, or one of its module.
 * An error of kind "name": none of them, or it has no value yet. */
WEFT_API WeftStatus weft_frame_get(WeftVM *vm, size_t index, const char *name, WeftValue **value);
/* In the hook, at WEFT_HOOK_RETURN: what is about to be returned. Else WEFT_MISUSE. */
WEFT_API WeftStatus weft_frame_result(WeftVM *vm, WeftValue **value);

/* ---- looking inside -------------------------------------------------------------------------------------- */

/* Counter number `index`, from 0: its name and value; NULL behind the last. */
WEFT_API const char *weft_stat_at(WeftVM *vm, unsigned index, double *value);
/* Keeps the log of capture at length from here on (16,384 events instead of 256) and counts what kernels move and
 * compute; with `runs` each run of a compiled region as well. Before a program runs; costs time in every kernel. */
WEFT_API void weft_keep_log(WeftVM *vm, bool runs);
/* The log as text: `what` is "json", "chrome" (spans for about:tracing and Perfetto),
 * "profile" (a table of the kernels beside what the machine can do, which it measures: 0.2 s), "explain" (what was
 * compiled, what was not, and why), or "why" (the last break or recompile; with a function all of its own). Else what
 * was compiled for a function: `what` is "graph", "guards", "loops", "mir", "asm" or "ptx"; or its text in the program,
 * "source", NULL where there is none. NULL: unknown `what`. */
WEFT_API const char *weft_dump(WeftVM *vm, WeftValue *function, const char *what);
/* The same into a file, as programs write files: replaced as a whole, or written in place where that cannot be. Needs
 * no capability. WEFT_ERROR of kind "io", or "interrupt" while a pipe is waited for. WEFT_MISUSE: unknown `what`. */
WEFT_API WeftStatus weft_dump_file(WeftVM *vm, WeftValue *function, const char *what, const char *path);
/* The name and version of this library, a line. */
WEFT_API const char *weft_build(WeftVM *vm);

#ifdef __cplusplus
}
#endif

#endif
