/* host.c — a host of Weft as the tests need it: runs one program in a fresh VM and keeps all that came of it.
 * The one file of tests/ that knows weft.h, besides the tests of weft.h itself. */
#include "tests/support/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/weft.h"

/* ---- memory: counts what is out, refuses where it is told to ---------------------------------- */

typedef struct Memory {
  size_t out;      /* bytes handed out and not given back */
  long asked;      /* allocations and growths so far */
  long refuse_at;  /* 0: never */
  bool refused;
} Memory;

static void *resize(void *context, void *p, size_t old_size, size_t new_size) {
  Memory *m = context;
  if (new_size == 0) {
    free(p);
    m->out -= old_size;
    return NULL;
  }
  if (new_size > old_size && ++m->asked == m->refuse_at) {
    m->refused = true;
    return NULL;
  }
  void *q = realloc(p, new_size);
  if (q) m->out = m->out - old_size + new_size;
  return q;
}

/* ---- output ------------------------------------------------------------------------------------ */

typedef struct Text {
  char *data;
  size_t length, cap;
} Text;

enum { PRINTED_MAX = 1 << 20 };

static void append(Text *t, const char *s, size_t n) {
  if (t->length + n > PRINTED_MAX) n = PRINTED_MAX - t->length;
  if (t->length + n + 1 > t->cap) {
    t->cap = (t->length + n + 1) * 2;
    t->data = realloc(t->data, t->cap);
    if (!t->data) exit(2);
  }
  if (n) memcpy(t->data + t->length, s, n);
  t->length += n;
  t->data[t->length] = 0;
}

typedef struct Output {
  Text *text;
  const Memory *memory;
  long begun;
} Output;

static void output(void *context, const char *s, size_t n) {
  Output *o = context;
  if (!o->begun) o->begun = o->memory->asked;
  append(o->text, s, n);
}

static char *copy(const char *s) {
  char *p = strdup(s ? s : "");
  if (!p) exit(2);
  return p;
}

/* ---- one run ----------------------------------------------------------------------------------- */

static void count(HostRun *r, WeftVM *vm) {
  for (unsigned i = 0; r->counter_count < HOST_COUNTERS; i++) {
    double value;
    const char *name = weft_stat_at(vm, i, &value);
    if (!name) break;
    r->counter_names[r->counter_count] = name;
    r->counters[r->counter_count++] = value;
  }
}

static WeftStatus run_bytes(WeftVM *vm, const char *name, const char *program, WeftValue **value) {
  const void *bytes;
  size_t count;
  WeftStatus status = weft_compile(vm, NULL, program, strlen(program), name, 0, &bytes, &count);
  char *own = status == WEFT_OK ? malloc(count) : NULL;
  if (!own) return status == WEFT_OK ? WEFT_ERROR : status;
  memcpy(own, bytes, count);
  status = weft_load_compiled(vm, NULL, own, count, NULL, value);
  free(own);
  return status;
}

HostRun host_run(const HostSetup *setup, const char *name, const char *program) {
  HostRun r = {0};
  Memory memory = {.refuse_at = setup->refuse_at};
  Text printed = {0};
  append(&printed, "", 0);
  WeftOptions options = WEFT_OPTIONS_INIT;
  if (!setup->own_memory) {
    options.resize = resize;
    options.resize_context = &memory;
  }
  options.output = output;
  Output out = {.text = &printed, .memory = &memory};
  options.output_context = &out;
  options.memory = setup->memory;
  options.fuel = setup->fuel;
  options.deadline = setup->deadline;
  options.allow_files = setup->files;
  options.allow_imports = setup->files;
  options.allow_env = setup->files;
  options.backend = setup->backend;
  options.cpu = setup->cpu ? setup->cpu : getenv("WEFT_CPU");
  const char *threads = getenv("WEFT_THREADS"); /* so many, else three where loops are shared on purpose */
  options.threads = threads ? (uint32_t)strtoul(threads, NULL, 10)
                            : setup->force && strncmp(setup->force, "threads", 7) == 0 ? 3 : 1;
  options.allow_gpu = setup->driver != NULL;
  options.cuda_driver = setup->driver && *setup->driver ? setup->driver : NULL;
  options.hot = setup->hot < 0 ? 0 : setup->hot ? setup->hot : 1;
  options.force = setup->force;
  options.log = getenv("WEFT_LOG"); /* as the program has it */
  WeftVM *vm = weft_new(&options);
  r.made_after = memory.asked;
  if (!vm) {
    r.end = HOST_NO_VM;
  } else {
    WeftValue *value = NULL;
    if (setup->made) setup->made(setup->context, vm);
    if ((setup->bytes ? run_bytes(vm, name, program, &value) : weft_eval(vm, program, name, &value)) == WEFT_OK) {
      const char *shown = weft_show(vm, value);
      if (*shown) {
        r.end = HOST_VALUE;
        r.value = copy(shown);
        r.type = copy(weft_describe(vm, value));
      } else { /* no value is shown as nothing: memory was refused */
        r.end = HOST_ERROR;
        r.kind = copy("limit");
        r.message = copy("out of memory");
      }
      weft_release(vm, value);
    } else {
      r.end = HOST_ERROR;
      r.kind = copy(weft_error_kind(vm));
      r.message = copy(weft_error_message(vm));
      weft_error_position(vm, &r.line, &r.column);
    }
    count(&r, vm);
    r.exit_code = weft_exit_code(vm);
    weft_free(vm);
  }
  r.printed = printed.data;
  r.allocations = memory.asked;
  r.printed_after = out.begun;
  r.leaked = memory.out;
  r.refused = memory.refused;
  return r;
}

void host_run_free(HostRun *r) {
  free(r->value);
  free(r->type);
  free(r->printed);
  free(r->kind);
  free(r->message);
  *r = (HostRun){0};
}

bool host_counter(const HostRun *r, const char *name, size_t length, double *out) {
  for (int i = 0; i < r->counter_count; i++) {
    if (strlen(r->counter_names[i]) != length || strncmp(r->counter_names[i], name, length) != 0) continue;
    *out = r->counters[i];
    return true;
  }
  return false;
}
