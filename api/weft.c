/* weft.c — making and wiring a VM, running programs, errors, counters (see weft.h). */
#include "api/backends.h"
#include "api/prompt.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "gpu/gpu.h"
#include "hop/hop.h"
#include "jit/jit.h"
#include "parser/parser.h"
#include "stdlib/stdlib.h"
#include "stdlib/kernels/wm.h"
#include "tracer/tracer.h"
#include "vm/end.h"

Vm *weft_vm_of(WeftVM *w) { return w->vm; }
struct Module *weft_main_of(WeftVM *w) { return w->main; }

const char *weft_version(void) { return "0.1.0"; }

/* ---- memory and output ---------------------------------------------------------------------------------- */

static void *host_resize(Allocator *self, void *p, size_t old_size, size_t new_size) {
  HostMemory *m = (HostMemory *)self;
  return m->resize(m->context, p, old_size, new_size);
}

/* A large block begins and ends with a page of 2 MiB: a hundredth of the page faults, and of the look-ups of
 * addresses, and nothing that is prefetched ends at a small page. Where the last page would have more than a
 * sixteenth of the block too much, what it holds lies in small ones. */
#ifdef MADV_HUGEPAGE
static void *new_block(size_t n) {
  enum { PAGE = 2 << 20, LEAST = 2 * PAGE, SPARE = 16 };
  if (n < LEAST || n > SIZE_MAX / 2) return malloc(n); /* which refuses the latter */
  size_t whole = (n + PAGE - 1) & ~(size_t)(PAGE - 1), whole_pages = whole - n <= n / SPARE ? whole : whole - PAGE;
  void *p = aligned_alloc(PAGE, whole);
  if (p) (void)madvise(p, whole_pages, MADV_HUGEPAGE);
  return p;
}
#else
static void *new_block(size_t n) { return malloc(n); }
#endif

void *system_resize(void *context, void *p, size_t old_size, size_t new_size) {
  (void)context;
  (void)old_size;
  if (new_size) return p ? realloc(p, new_size) : new_block(new_size);
  free(p);
  return NULL;
}

static WeftStatus host_output(void *ctx, const char *text, size_t len) {
  const WeftVM *w = ctx;
  bool before = w->vm->error.raised;
  w->output(w->output_context, text, len);
  return w->vm->error.raised && !before ? WEFT_ERROR : WEFT_OK;
}

static i64 host_input(void *ctx, char *to, size_t room) {
  const WeftVM *w = ctx;
  i64 n = w->input(w->input_context, to, room);
  return n > (i64)room ? (i64)room : n;
}

void weft_prepare_process(void) {
#ifdef __GLIBC__
  /* Arrays of a few megabytes come and go in every step of a loop. Where glibc gives their memory back to the system
   * each time, the pages are cleared and mapped anew: 0.4 s of a run of 0.8 s of examples/digits.weft. */
  mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most it takes */
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
  stdlib_choose_blas_core();
}

/* ---- structs of the host ----------------------------------------------------------------------------------- */

bool struct_sized(const void *to, size_t least) {
  enum { MOST = 4096 }; /* no struct of weft.h is as large: what is larger was never set */
  size_t size = 0;
  if (to) memcpy(&size, to, sizeof size);
  return size >= least && size <= MOST;
}

bool struct_give(void *to, const void *full, size_t bytes, size_t least) {
  size_t size;
  if (!struct_sized(to, least)) return false;
  memcpy(&size, to, sizeof size);
  const size_t both = size < bytes ? size : bytes;
  memcpy((char *)to + sizeof size, (const char *)full + sizeof size, both - sizeof size);
  memset((char *)to + both, 0, size - both);
  return true;
}

/* ---- a VM --------------------------------------------------------------------------------------------------- */

/* Rooms in the order of the architecture; each puts its hooks into the VM. */
static bool wire(Vm *vm, const WeftOptions *o) {
  return stdlib_install(vm) == WEFT_OK && tracer_install(vm) == WEFT_OK && tracer_add_backend(vm, &backend_interp) &&
         tracer_add_backend(vm, &backend_verify) && gpu_install(vm, o->cuda_driver, o->gpu_cache) == WEFT_OK &&
         jit_install(vm, wm_best()->functions, wm_best()->count, &gpu_device, o->cpu) == WEFT_OK &&
         hop_install(vm) == WEFT_OK;
}

typedef struct Why {
  char *text;
  size_t room;
} Why;

static WeftStatus say_why(const Why *why, WeftStatus status, const char *fmt, ...) PRINTF_LIKE(3, 4);
static WeftStatus say_why(const Why *why, WeftStatus status, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  if (why->text && why->room) (void)vsnprintf(why->text, why->room, fmt, ap);
  va_end(ap);
  return status;
}

#define LOG_WORDS "ast,bytecode,copies,graph,guards,loops,breaks,recompiles"

/* The first of the words between commas that `log` does not know, or NULL. */
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

/* The VM inside; limits and hooks that need no other folder. */
static bool make_inner(WeftVM *w, const WeftOptions *o) {
  VmOptions options = {.alloc = &w->memory.base, .keep = o->keep};
  options.limits = (VmLimits){.bytes = o->memory, .fuel = o->fuel ? o->fuel : UINT64_MAX,
                              .deadline = o->deadline > 0 ? vm_clock() + o->deadline : 0,
                              .depth = o->depth ? o->depth : 20000,
                              .output = o->output_limit ? o->output_limit : UINT64_MAX,
                              .allow_files = o->allow_files, .allow_env = o->allow_env,
                              .allow_imports = o->allow_imports, .allow_gpu = o->allow_gpu};
  Vm *vm = w->vm = vm_new(&options);
  if (!vm) return false;
  buf_init(&w->text, &vm->alloc);
  if (o->output) vm->output = host_output, vm->output_ctx = w;
  if (o->input) vm->input = host_input, vm->input_ctx = w;
  vm->tell = o->log_output;
  vm->lay_out = display_table;
  vm->tell_ctx = o->log_context;
  vm->draws = o->draws;
  vm->resolve_module = o->resolve_module;
  vm->resolver_ctx = o->resolve_context;
  vm->files = (const VmFiles *)o->files;
  Tunables *tun = &vm->tunables;
  tun->threads = o->threads;
  if (o->hot > 0) tun->hot_calls = tun->hot_trips = tun->warm_calls = tun->warm_trips = o->hot > 1 ? o->hot : 0;
  return true;
}

static WeftStatus set_up(WeftVM *w, const WeftOptions *o, const Why *why) {
  const char *unknown = unknown_word(o->log);
  if (unknown) return say_why(why, WEFT_MISUSE, "log is unknown (" LOG_WORDS "): %s", unknown);
  if (o->files && !files_whole(o->files)) return say_why(why, WEFT_MISUSE, "files is incomplete");
  if (o->cpu && !jit_cpu_known(o->cpu))
    return say_why(why, WEFT_MISUSE, "cpu is unknown (scalar, strip, avx2, avx512): %s", o->cpu);
  if (o->cpu && !jit_cpu_runs(o->cpu)) return say_why(why, WEFT_MISUSE, "cpu is beyond this processor: %s", o->cpu);
  if (!make_inner(w, o) || !wire(w->vm, o)) return WEFT_ERROR;
  Vm *vm = w->vm;
  if (!backends_add(w, o->backends, o->backend_count))
    return say_why(why, WEFT_MISUSE, "backends: one is incomplete, has a name that is taken, or is one too many");
  if (!device_add(w, o->own_device))
    return say_why(why, WEFT_MISUSE, "own_device is incomplete, or has a name that is taken");
  if (weft_set_device(w, o->device ? o->device : "cpu") != WEFT_OK)
    return say_why(why, WEFT_MISUSE, "device is unknown: %s", o->device);
  if (!tracer_use_backend(vm, o->backend ? o->backend : "mir"))
    return say_why(why, WEFT_MISUSE, "backend is unknown: %s", o->backend);
  if (!tracer_force(vm, o->force)) return say_why(why, WEFT_MISUSE, "force is unknown: %s", o->force);
  if (o->backend && o->allow_gpu && strcmp(o->backend, "ptx") == 0 && gpu_open(vm) != WEFT_OK)
    return say_why(why, WEFT_ERROR, "backend is ptx: %s", vm_error_message(vm, &(size_t){0}));
  if (o->ignore_clock) tracer_ignore_clock(tracer_of(vm));
  if (o->explain) tracer_gather(vm);
  if (o->log) vm_log(vm, o->log), tracer_log(vm, o->log);
  w->main = module_new(vm, "main", "");
  return w->main ? WEFT_OK : WEFT_ERROR;
}

void weft_options_init(WeftOptions *options, size_t size) {
  if (!options || size < sizeof options->size) return;
  memset(options, 0, size);
  options->size = size;
}

WeftStatus weft_open(const WeftOptions *given, WeftVM **out, char *text, size_t room) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  Why why = {text, room};
  if (!out) return say_why(&why, WEFT_MISUSE, "no place for the VM");
  *out = NULL;
  if (given) {
    size_t size = given->size ? given->size : offsetof(WeftOptions, log); /* 0: the struct of version 0.1 */
    memcpy(&o, given, size < sizeof o ? size : sizeof o);
  }
  HostMemory memory = {{host_resize}, o.resize ? o.resize : o.memory ? mapped_resize : system_resize, o.resize_context};
  if (o.memory) say_why(&why, WEFT_ERROR, "memory: %llu bytes are too few to start, or out of memory",
                        (unsigned long long)o.memory);
  else say_why(&why, WEFT_ERROR, "out of memory");
  WeftVM *w = memory.resize(memory.context, NULL, 0, sizeof *w);
  if (!w) return WEFT_ERROR;
  *w = (WeftVM){.memory = memory, .output = o.output, .output_context = o.output_context, .input = o.input,
                .input_context = o.input_context, .stack = o.stack, .export_lock = PTHREAD_MUTEX_INITIALIZER};
  ON_STACK_OF(w);
  if (!o.resize && !o.memory) {
    w->memory.resize = blocks_resize;
    w->memory.context = &w->blocks;
  }
  WeftStatus status = set_up(w, &o, &why);
  if (status == WEFT_OK) {
    *out = w;
    return say_why(&why, WEFT_OK, "%s", "");
  }
  weft_free(w);
  return status;
}

WeftVM *weft_new(const WeftOptions *given) {
  WeftVM *w;
  return weft_open(given, &w, NULL, 0) == WEFT_OK ? w : NULL;
}

void weft_free(WeftVM *w) {
  if (!w || (w->vm && (w->vm->native_depth || w->vm->releasing || w->compiling))) return; /* a program runs */
  if (w->vm) {
    if (w->suspended) vm_cancel(w->vm);
    while (w->values) weft_release_all(w, w->values);
    buf_free(&w->text);
    words_free(w);
    modules_forget(w);
    vm_end(w->vm);
  }
  backends_free(w);
  if (exports_end(w)) weft_free_memory(w);
}

void weft_free_memory(WeftVM *w) {
  if (w->vm) vm_free_memory(w->vm);
  (void)pthread_mutex_destroy(&w->export_lock);
  blocks_free(&w->blocks);
  if (w->memory.context == &w->blocks) free(w);
  else w->memory.resize(w->memory.context, w, sizeof *w, 0);
}

void weft_interrupt(WeftVM *w) {
  if (w) w->vm->interrupted = 1;
}

void weft_interrupt_forget(WeftVM *w) {
  if (w) w->vm->interrupted = 0;
}

void weft_set_limits(WeftVM *w, uint64_t memory, uint64_t fuel, double deadline) {
  if (!w) return;
  if (memory && w->memory.context == &w->blocks) { /* what is kept would not be counted */
    w->memory.resize = system_resize;
    blocks_free(&w->blocks);
  }
  w->vm->limits.bytes = memory;
  w->vm->limits.fuel = fuel ? fuel : UINT64_MAX;
  w->vm->limits.deadline = deadline > 0 ? vm_clock() + deadline : 0;
  vm_poll_reset(w->vm);
  if (UNLIKELY(w->vm->dead)) values_go_on(w->vm);
  if (memory) (void)keep_trim(w->vm, memory > w->vm->stats.bytes_now ? memory - w->vm->stats.bytes_now : 0);
}

uint64_t weft_memory_left(WeftVM *w) {
  if (!w) return 0;
  values_settle(w->vm);
  u64 most = w->vm->limits.bytes, now = w->vm->stats.bytes_now;
  return !most ? UINT64_MAX : now < most ? most - now : 0;
}

uint64_t weft_fuel_left(WeftVM *w) {
  if (!w) return 0;
  u64 fuel = w->vm->limits.fuel, used = w->vm->poll_batch - w->vm->poll_countdown;
  return fuel == UINT64_MAX ? fuel : used < fuel ? fuel - used : 0;
}

double weft_time_left(WeftVM *w) {
  if (!w) return 0;
  if (w->vm->limits.deadline <= 0) return (double)INFINITY;
  f64 left = w->vm->limits.deadline - vm_clock();
  return left > 0 ? left : 0;
}

size_t weft_collect(WeftVM *w) {
  if (!usable(w)) return 0;
  ON_STACK_OF(w);
  Vm *vm = w->vm;
  const u64 before = vm->stats.bytes_now + vm->kept.bytes;
  values_settle(vm);
  (void)ref_collect(vm);
  (void)keep_trim(vm, 0);
  const u64 after = vm->stats.bytes_now + vm->kept.bytes;
  return after < before ? (size_t)(before - after) : 0;
}

void weft_set_args(WeftVM *w, int argc, char **argv) {
  if (!w) return;
  w->vm->argc = argc;
  w->vm->argv = argv;
}

int weft_exit_code(const WeftVM *w) { return w && w->vm->exiting ? w->vm->exit_code : -1; }

/* ---- running --------------------------------------------------------------------------------------------------- */

static WeftStatus begin(WeftVM *w) {
  exports_look(w);
  WeftStatus status = vm_catch_up(w->vm);
  if (status != WEFT_OK) return status;
  if (w->vm->error.raised) vm_error_clear(w->vm);
  if (w->vm->frame_count) return WEFT_OK; /* inside a host function it is meant for the program around */
  if (UNLIKELY(w->vm->dead)) values_go_on(w->vm);
  w->vm->exiting = false; /* of a program that ran before */
  w->vm->unseen = 0;
  return WEFT_OK;
}

/* Of what runs a program, before it does and behind it: an interrupt that came between two calls stops the second,
 * and one that came during the last operation is told, too: nobody asks for it behind that. A program inside of
 * another leaves it to that one. */
static inline WeftStatus heed(WeftVM *w) {
  return LIKELY(!w->vm->interrupted) || w->vm->frame_count ? WEFT_OK : vm_heed(w->vm);
}

/* What failed by itself is stopped. */
WeftStatus run_ended(WeftVM *w, WeftStatus status) {
  if (UNLIKELY(w->vm->suspends)) {
    w->vm->suspends = false;
    if (w->commands) {
      vm_cancel(w->vm);
      return vm_error_at(w->vm, EK_unsupported, (Span){0}, "a program that a command runs cannot wait");
    }
    w->suspended = true;
    return WEFT_SUSPENDED;
  }
  if (status == WEFT_OK) return heed(w);
  if (status == WEFT_ERROR && !w->vm->frame_count) w->vm->interrupted = 0;
  return status;
}

WeftStatus host_may_run(WeftVM *w) {
  if (w->vm->frame_count) return vm_catch_up(w->vm);
  return begin(w) == WEFT_OK ? heed(w) : WEFT_ERROR;
}

WeftStatus evaluate_in(WeftVM *w, Module *m, const char *text, size_t len, const char *name, SourceForm form,
                       WeftValue **out) {
  Value v = value_nil();
  if (out) *out = NULL;
  if (!may_begin(w)) return WEFT_MISUSE;
  ON_STACK_OF(w);
  if (begin(w) != WEFT_OK || heed(w) != WEFT_OK) return WEFT_ERROR;
  if (!cstack_has(CSTACK_CALL + CSTACK_CALL / 4)) return vm_error_stack(w->vm); /* and for parsing what is not nested */
  if (!name) name = "<host>";
  WeftStatus ran = form == FORM_COMPILED ? vm_run_compiled(w->vm, m, name, text, len, &v)
                                         : vm_eval(w->vm, m, name, text, len, form == FORM_LINE, &v);
  if (ran != WEFT_OK) v = value_nil();
  WeftStatus status = run_ended(w, ran);
  if (status == WEFT_OK && out) return value_hand_over(w, v, out);
  value_drop(w->vm, v);
  return status;
}

bool name_ok(const char *name) { return !name || utf8_valid(name, strlen(name)); }

WeftStatus weft_eval_length(WeftVM *w, const char *text, size_t length, const char *name, WeftValue **out) {
  if (!usable(w) || (!text && length) || !name_ok(name)) return WEFT_MISUSE;
  WeftStatus status = evaluate_in(w, w->main, text ? text : "", length, name, FORM_TEXT, out);
  return status == WEFT_INCOMPLETE ? WEFT_ERROR : status;
}

WeftStatus weft_eval(WeftVM *w, const char *text, const char *name, WeftValue **out) {
  return text ? weft_eval_length(w, text, strlen(text), name, out) : WEFT_MISUSE;
}

WeftStatus weft_eval_line(WeftVM *w, const char *text, const char *name, WeftValue **out) {
  if (!usable(w) || !text || !name_ok(name)) return WEFT_MISUSE;
  return evaluate_in(w, w->main, text, strlen(text), name, FORM_LINE, out);
}

WeftStatus weft_format(WeftVM *w, const char *source, size_t length, const char *name, const char **text) {
  if (text) *text = "";
  if (!usable(w) || (!source && length) || !name_ok(name) || !text) return WEFT_MISUSE;
  ON_STACK_OF(w);
  if (begin(w) != WEFT_OK) return WEFT_ERROR;
  if (!cstack_has(CSTACK_CALL + CSTACK_CALL / 4)) return vm_error_stack(w->vm);
  w->text.len = 0;
  w->text.failed = false;
  WeftStatus status = vm_layout(w->vm, name ? name : "<host>", source ? source : "", length, &w->text);
  if (status == WEFT_OK) *text = w->text.len ? buf_text(&w->text) : "";
  return status;
}

/* While the main module runs a file, its imports are looked for beside it, and one of the file itself is circular. */
static WeftStatus evaluate_file(WeftVM *w, const char *text, size_t len, const char *path, SourceForm form,
                                WeftValue **out) {
  if (!may_begin(w)) return WEFT_MISUSE;
  Module *m = w->main;
  const char *path_before = m->path;
  const u8 state_before = m->state;
  char *real = w->vm->resolve_module || w->vm->files ? NULL : realpath(path, NULL);
  Name name = real ? name_cstr(&w->vm->names, real) : 0;
  bool refused = real && !name;
  free(real);
  if (refused) return vm_error_memory(w->vm);
  if (name) {
    m->path = name_text(&w->vm->names, name);
    m->state = MODULE_RUNNING;
  }
  WeftStatus status = evaluate_in(w, w->main, text, len, path, form, out);
  if (status == WEFT_SUSPENDED) { /* the rest of it may import, too */
    w->in_file = true;
    w->path_before = path_before;
    w->state_before = state_before;
    return status;
  }
  m->path = path_before;
  m->state = state_before;
  return status;
}

WeftStatus weft_load_file(WeftVM *w, const char *path, WeftValue **out) {
  if (!usable(w) || !path) return WEFT_MISUSE;
  if (out) *out = NULL;
  if (!may_begin(w)) return WEFT_MISUSE;
  if (begin(w) != WEFT_OK) return WEFT_ERROR;
  char *text;
  size_t len, cap;
  int code = vm_read_file(w->vm, path, SOURCE_MOST, &text, &len, &cap);
  if (code < 0) return WEFT_ERROR;
  if (code == ENOMEM) return vm_error_memory(w->vm);
  if (code) return vm_error_at(w->vm, EK_io, (Span){0}, "cannot read \"%s\": %s", path, strerror(code));
  WeftStatus status = evaluate_file(w, text, len, path, vm_is_compiled(text, len) ? FORM_COMPILED : FORM_TEXT, out);
  mem_free(&w->vm->alloc, text, cap);
  return status == WEFT_INCOMPLETE ? WEFT_ERROR : status;
}

WeftStatus weft_load_text(WeftVM *w, const char *text, size_t length, const char *path, WeftValue **out) {
  if (!usable(w) || (!text && length) || !path || !name_ok(path)) return WEFT_MISUSE;
  if (out) *out = NULL;
  if (!may_begin(w)) return WEFT_MISUSE;
  if (begin(w) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = evaluate_file(w, text ? text : "", length, path, FORM_TEXT, out);
  return status == WEFT_INCOMPLETE ? WEFT_ERROR : status;
}

/* ---- compiled programs -------------------------------------------------------------------------------------- */

static Module *module_or_main(WeftVM *w, const WeftValue *module) {
  return !usable(w) ? NULL : module ? module_of_host(w, module) : w->main;
}

/* As it may stand in messages of who did not choose it. */
static bool is_plain(const char *name) {
  for (const char *s = name; s && *s; s++)
    if ((u8)*s < 32 || *s == 127) return false;
  return name_ok(name);
}

WeftStatus weft_compile(WeftVM *w, WeftValue *module, const char *text, size_t length, const char *name,
                        unsigned flags, const void **bytes, size_t *count) {
  Module *m = module_or_main(w, module);
  if (bytes) *bytes = NULL;
  if (count) *count = 0;
  if (!m || (!text && length) || !is_plain(name) || flags & ~(unsigned)WEFT_COMPILE_STRIP || !bytes || !count ||
      !may_begin(w))
    return WEFT_MISUSE;
  ON_STACK_OF(w);
  if (begin(w) != WEFT_OK) return WEFT_ERROR;
  if (!cstack_has(CSTACK_CALL + CSTACK_CALL / 4)) return vm_error_stack(w->vm);
  w->text.len = 0;
  w->text.failed = false;
  if (vm_compile(w->vm, m, name ? name : "<host>", text ? text : "", length, flags & WEFT_COMPILE_STRIP, &w->text) !=
      WEFT_OK)
    return WEFT_ERROR;
  *bytes = w->text.data;
  *count = w->text.len;
  return WEFT_OK;
}

bool weft_is_compiled(const void *bytes, size_t count) { return bytes && vm_is_compiled(bytes, count); }

WeftStatus weft_load_compiled(WeftVM *w, WeftValue *module, const void *bytes, size_t count, const char *path,
                              WeftValue **out) {
  Module *m = module_or_main(w, module);
  if (!m || (!bytes && count) || !name_ok(path)) return WEFT_MISUSE;
  if (out) *out = NULL;
  if (!may_begin(w)) return WEFT_MISUSE;
  if (begin(w) != WEFT_OK) return WEFT_ERROR;
  const char *program = bytes ? bytes : "";
  if (path && m == w->main) return evaluate_file(w, program, count, path, FORM_COMPILED, out);
  return evaluate_in(w, m, program, count, path, FORM_COMPILED, out);
}

/* What most calls are: few arguments, none by name. */
WeftStatus weft_call(WeftVM *w, WeftValue *fn, WeftValue *const *args, size_t count, WeftValue **out) {
  Value v = value_nil(), few[8];
  if (UNLIKELY(count > COUNT_OF(few))) return weft_call_named(w, fn, args, count, NULL, 0, out);
  if (!usable(w) || !value_ok(w, fn) || (count && !args) || !may_begin(w) || !values_ok(w, args, count))
    return WEFT_MISUSE;
  if (out) *out = NULL;
  ON_STACK_OF(w);
  if (host_may_run(w) != WEFT_OK) return WEFT_ERROR;
  for (size_t i = 0; i < count; i++) few[i] = value_keep(args[i]->value);
  WeftStatus called = vm_call_named(w->vm, fn->value, few, NULL, (u32)count, &v);
  if (called != WEFT_OK) v = value_nil(); /* what fails gives nothing, whatever it left there */
  WeftStatus status = run_ended(w, called);
  if (status == WEFT_OK && out) return value_hand_over(w, v, out);
  value_drop(w->vm, v);
  return status == WEFT_OK || status == WEFT_SUSPENDED ? status : WEFT_ERROR;
}

WeftStatus weft_call_named(WeftVM *w, WeftValue *fn, WeftValue *const *args, size_t count, const char *const *names,
                           size_t named, WeftValue **out) {
  if (!usable(w) || !value_ok(w, fn) || (count && !args) || count > INT32_MAX || !may_begin(w) || named > count ||
      (named && !names) || !values_ok(w, args, count))
    return WEFT_MISUSE;
  for (size_t i = 0; i < named; i++)
    if (!api_is_name(names[i])) return WEFT_MISUSE;
  if (out) *out = NULL;
  ON_STACK_OF(w);
  if (host_may_run(w) != WEFT_OK) return WEFT_ERROR;
  Value v = value_nil(), *given = mem_alloc(&w->vm->alloc, sizeof *given * (count + 1));
  Name *keys = named ? mem_alloc_zero(&w->vm->alloc, sizeof *keys * count) : NULL;
  bool ok = given && (!named || keys);
  for (size_t i = 0; i < named && ok; i++)
    ok = (keys[count - named + i] = name_counted(&w->vm->names, names[i], strlen(names[i]))) != 0;
  WeftStatus status = WEFT_ERROR;
  if (ok) {
    for (size_t i = 0; i < count; i++) given[i] = value_keep(args[i]->value);
    WeftStatus called = vm_call_named(w->vm, fn->value, given, keys, (u32)count, &v);
    if (called != WEFT_OK) v = value_nil(); /* what fails gives nothing, whatever it left there */
    status = run_ended(w, called);
  } else {
    status = vm_error_memory(w->vm);
  }
  for (size_t i = 0; i < named && keys; i++)
    if (keys[count - named + i]) name_drop(&w->vm->names, keys[count - named + i]);
  mem_free(&w->vm->alloc, keys, sizeof *keys * count);
  mem_free(&w->vm->alloc, given, sizeof *given * (count + 1));
  if (status == WEFT_OK && out) return value_hand_over(w, v, out);
  value_drop(w->vm, v);
  return status == WEFT_OK || status == WEFT_SUSPENDED ? status : WEFT_ERROR;
}

WeftStatus get_in(WeftVM *w, Module *m, const char *name, WeftValue **out) {
  *out = NULL;
  if (begin(w) != WEFT_OK) return WEFT_ERROR;
  Name n = name_find(&w->vm->names, name, strlen(name));
  Value *v = n ? module_var(w->vm, m, n) : NULL;
  if (!v) return vm_error(w->vm, EK_name, "%s is not declared", name);
  return value_hand_over(w, value_keep(*v), out);
}

WeftStatus weft_get_global(WeftVM *w, const char *name, WeftValue **out) {
  return usable(w) && name && out ? get_in(w, w->main, name, out) : WEFT_MISUSE;
}

bool api_is_name(const char *name) {
  if (!name || !*name || (*name >= '0' && *name <= '9') || !utf8_valid(name, strlen(name))) return false;
  for (const char *c = name; *c; c++)
    if (!is_name_byte(*c)) return false;
  for (const char *const *word = parser_reserved_words(); *word; word++)
    if (strcmp(*word, name) == 0) return false;
  return true;
}

WeftStatus set_in(WeftVM *w, Module *m, const char *name, WeftValue *value) {
  if (begin(w) != WEFT_OK) return WEFT_ERROR;
  Name n = name_cstr(&w->vm->names, name);
  if (!n) return vm_error_memory(w->vm);
  return module_set(w->vm, m, n, value_keep(value->value));
}

WeftStatus weft_set_global(WeftVM *w, const char *name, WeftValue *value) {
  return usable(w) && api_is_name(name) && value_ok(w, value) ? set_in(w, w->main, name, value) : WEFT_MISUSE;
}

/* ---- errors ---------------------------------------------------------------------------------- */

const char *weft_error_text(WeftVM *w) {
  if (!w) return "";
  w->text.len = 0;
  w->text.failed = false;
  u64 before = overdraft_begin(w->vm); /* an error must be told when memory is short */
  if (w->vm->error.raised) vm_error_text(w->vm, &w->text);
  overdraft_end(w->vm, before);
  return w->text.failed ? "error: out of memory\n" : w->text.len ? buf_text(&w->text) : "";
}

const char *weft_error_message(WeftVM *w) {
  if (!w || !w->vm->error.raised) return "";
  size_t len;
  const char *s = vm_error_message(w->vm, &len);
  return text_hold(w, s, len);
}

const char *weft_error_kind(WeftVM *w) { return w && w->vm->error.raised ? error_kind_name(w->vm->error.kind) : ""; }

_Static_assert((int)WEFT_LIMIT_INPUT == (int)LIMIT_input && (int)WEFT_LIMIT_EXIT == (int)LIMIT_exit,
               "weft.h numbers the limits as vm.h does");

WeftLimit weft_error_limit(WeftVM *w) {
  if (!w || !w->vm->error.raised) return WEFT_LIMIT_NONE;
  return w->vm->error.out_of_memory ? WEFT_LIMIT_MEMORY : (WeftLimit)w->vm->error.limit;
}

void weft_error_position(WeftVM *w, int *line, int *column) {
  u32 l = 0, c = 0;
  if (w && w->vm->error.raised) sources_locate(&w->vm->sources, w->vm->error.span, &l, &c);
  if (line) *line = (int)l;
  if (column) *column = (int)c;
}

/* ---- looking inside -------------------------------------------------------------------------- */

const char *weft_stat_at(WeftVM *w, unsigned index, double *value) {
  if (!w || index >= STAT_COUNT) return NULL;
  if (value) *value = (double)vm_stat(w->vm, index);
  return stat_name(index);
}

typedef struct Dump {
  WeftVM *w;
  const char *what;
  Buf *out;
} Dump;

static void dump_region(void *ctx, const Place *p, const GuardEntry *e) {
  Dump *d = ctx;
  const Region *r = e->region;
  static const char *const starts[] = {"entry", "loop", "continuation"};
  u32 line, col;
  sources_locate(&d->w->vm->sources, p->code->proto->spans[p->pc], &line, &col);
  buf_printf(d->out, "# %s: %s at line %u, entered %llu times\n", r->name, starts[p->start], line,
             (unsigned long long)r->entered);
  if (strcmp(d->what, "graph") == 0) graph_print(r->graph, &d->w->vm->sources, d->out);
  else if (strcmp(d->what, "guards") == 0) guard_prog_print(e->prog, &d->w->vm->sources, d->out);
  else if (strcmp(d->what, "mir") == 0) jit_print_mir(r, d->out);
  else if (strcmp(d->what, "asm") == 0) jit_print_asm(r, d->out);
  else if (strcmp(d->what, "ptx") == 0) gpu_print_ptx(r, d->out);
  else if (r->print) r->print(r, d->out);
}

void weft_keep_log(WeftVM *w, bool runs) {
  if (w) tracer_keep(w->vm, runs);
}

/* What needs no function: NULL, `what` is none of these. */
static const char *dump_log(WeftVM *w, WeftValue *fn, const char *what) {
  w->text.len = 0;
  w->text.failed = false;
  if (strcmp(what, "why") == 0) tracer_why(w->vm, fn ? fn->value : value_nil(), &w->text);
  else if (strcmp(what, "explain") == 0) tracer_report(w->vm, &w->text);
  else if (!tracer_write(w->vm, what, &w->text)) return NULL;
  return w->text.failed ? "" : buf_text(&w->text);
}

static const char *dump_source(WeftVM *w, Value v) {
  const Proto *p = v.kind == V_FN && v.fn->kind == FN_CLOSURE ? v.fn->code->proto : NULL;
  const SourceFile *f = p ? sources_get(&w->vm->sources, p->span.file) : NULL;
  if (!f || p->span.start + p->span.len > f->len) return NULL;
  return text_hold(w, f->text + p->span.start, p->span.len);
}

const char *weft_dump(WeftVM *w, WeftValue *fn, const char *what) {
  const char *log = usable(w) && what && (!fn || value_ok(w, fn)) ? dump_log(w, fn, what) : NULL;
  if (log) return log;
  static const char *const known[] = {"graph", "guards", "loops", "mir", "asm", "ptx"};
  bool ok = false;
  if (usable(w) && what && strcmp(what, "source") == 0 && fn && value_ok(w, fn)) return dump_source(w, fn->value);
  for (u32 i = 0; i < COUNT_OF(known); i++) ok |= what && strcmp(what, known[i]) == 0;
  if (!usable(w) || !fn || !value_ok(w, fn) || !ok) return NULL;
  w->text.len = 0;
  w->text.failed = false;
  Value v = fn->value;
  if (v.kind != V_FN || v.fn->kind != FN_CLOSURE) {
    buf_puts(&w->text, "not a function written in Weft\n");
  } else {
    Dump d = {w, what, &w->text};
    tracer_regions(w->vm, v.fn->code, dump_region, &d);
    if (!w->text.len) buf_puts(&w->text, "nothing is compiled for it yet: it is compiled when it is hot\n");
  }
  return buf_text(&w->text);
}

WeftStatus weft_dump_file(WeftVM *w, WeftValue *fn, const char *what, const char *path) {
  const char *text = path && usable(w) ? weft_dump(w, fn, what) : NULL;
  if (!text) return WEFT_MISUSE;
  vm_error_clear(w->vm);
  if (w->text.failed) return vm_error_memory(w->vm);
  int code = file_put(w->vm, path, text, w->text.len);
  if (code == FILE_STOPPED) return WEFT_ERROR;
  return code ? vm_error_at(w->vm, EK_io, (Span){0}, "cannot write \"%s\": %s", path, strerror(code)) : WEFT_OK;
}

const char *weft_build(WeftVM *w) {
  if (!w) return "";
  w->text.len = 0;
  buf_printf(&w->text, "weft %s\n", weft_version());
  return buf_text(&w->text);
}
