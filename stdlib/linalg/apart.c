/* apart.c — long calls of LAPACK on a thread that can be left behind (see apart.h). */
#define _GNU_SOURCE /* dladdr */
#include "stdlib/linalg/apart.h"
#include "stdlib/array/make.h"
#include "stdlib/array/walk.h"
#include "stdlib/stdlib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 4, FREEZE_MS = 200 };

typedef struct Job {
  Vm *vm; /* its own */
  EagerFn fn;
  Value args[OP_MAX_PARAMS], result;
  u32 nargs;
  WeftStatus status;
  bool finished, left; /* under the lock */
  pthread_t thread;
  struct Job *next; /* of those that were left */
} Job;

/* What was left behind is a state of the process: it outlives the VM that began it. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed; /* a job has finished */
  pthread_once_t once;
  bool ready;
  Job *left;
  u32 count; /* of these */
  u32 frozen; /* of these, when the process ends */
  bool exits; /* the end of the process is looked after */
} apart = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

/* ---- the end of the process --------------------------------------------------------------------- */

/* When a process ends, OpenBLAS gives its memory back while a thread that was left may still compute in it. So those
 * threads are stopped first: each waits in a signal handler until the process has gone. */

static _Thread_local volatile sig_atomic_t is_apart;

static void freeze(int number) {
  (void)number;
  if (!is_apart) return; /* a signal that somebody else sent to another thread */
  __atomic_add_fetch(&apart.frozen, 1, __ATOMIC_RELEASE);
  for (;;) (void)pause();
}

static void pause_ms(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  (void)nanosleep(&t, NULL);
}

static void freeze_all(void) {
  u32 sent = 0;
  pthread_mutex_lock(&apart.lock); /* so that none of them ends meanwhile */
  struct sigaction action = {.sa_handler = freeze};
  sigemptyset(&action.sa_mask);
  if (apart.left && sigaction(SIGURG, &action, NULL) == 0) /* ignored by default: it harms nobody */
    for (Job *j = apart.left; j; j = j->next) sent += pthread_kill(j->thread, SIGURG) == 0;
  for (u32 i = 0; i < FREEZE_MS && __atomic_load_n(&apart.frozen, __ATOMIC_ACQUIRE) < sent; i++) pause_ms(1);
  pthread_mutex_unlock(&apart.lock);
}

/* A thread that is left runs code of this library, which a host must not unload any more. */
static void stay_loaded(void) {
  Dl_info info;
  if (dladdr((void *)&apart, &info) && info.dli_fname)
    (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

/* In the child of a fork no thread is left. */
static void forked(void) {
  pthread_mutex_init(&apart.lock, NULL);
  apart.left = NULL;
  apart.count = 0;
}

static void prepare(void) {
  pthread_condattr_t attr;
  if (pthread_condattr_init(&attr) != 0) return;
  apart.ready = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
                pthread_cond_init(&apart.changed, &attr) == 0 && pthread_atfork(NULL, NULL, forked) == 0;
  pthread_condattr_destroy(&attr);
}

/* ---- values across VMs -------------------------------------------------------------------------- */

/* May a value go to another VM? */
static bool may_go(Value v) {
  if (v.kind == V_ARRAY) return array_device(v.array) == DEV_CPU;
  return v.kind == V_NUM || v.kind == V_NIL || v.kind == V_HOLE || v.kind == V_TEXT;
}

/* A copy of v, made by `to`; `runs` looks at the clock meanwhile, and raises what fails there. */
static WeftStatus send(Vm *runs, Vm *to, Value v, Value *out) {
  *out = v;
  if (v.kind == V_TEXT) return text_new(to, v.text->data, v.text->len, out) ? WEFT_OK : WEFT_ERROR;
  if (v.kind == V_LIST) {
    if (!list_new(to, v.list->count, out)) return WEFT_ERROR;
    for (u32 i = 0; i < v.list->count; i++) {
      Value item;
      if (send(runs, to, v.list->items[i], &item) != WEFT_OK) {
        value_drop(to, *out);
        return WEFT_ERROR;
      }
      TRY(list_add(to, out, item));
    }
    return WEFT_OK;
  }
  if (v.kind != V_ARRAY) return WEFT_OK;
  Array *a = v.array;
  TRY(array_new(to, array_dtype(a), array_rank(a), array_dims(a), out));
  out->flags |= v.flags & VF_WEAK;
  WeftStatus status =
      copy_dense(runs, a, array_rank(a), array_dims(a), array_dtype(a), out->array->data, &(u32){0});
  if (status != WEFT_OK) value_drop(to, *out);
  return status;
}

/* ---- jobs --------------------------------------------------------------------------------------- */

static void job_free(Job *j) {
  if (j->vm) {
    for (u32 i = 0; i < j->nargs; i++) value_drop(j->vm, j->args[i]);
    value_drop(j->vm, j->result);
    vm_free(j->vm);
  }
  free(j);
}

static void *job_thread(void *ctx) {
  Job *j = ctx;
  sigset_t stop;
  is_apart = 1;
  sigemptyset(&stop);
  sigaddset(&stop, SIGURG);
  pthread_sigmask(SIG_UNBLOCK, &stop, NULL); /* all others are the host's */
  /* its floating-point state is that of the thread that made it */
  (void)cstack_enter(APART_STACK - (256 << 10));
  j->status = j->fn(j->vm, j->args, &j->result);
  if (j->status != WEFT_OK) j->result = value_hole();
  for (u32 i = 0; i < j->nargs; i++) value_drop(j->vm, j->args[i]);
  j->nargs = 0;
  pthread_mutex_lock(&apart.lock);
  j->finished = true;
  const bool left = j->left;
  for (Job **at = &apart.left; left && *at; at = &(*at)->next)
    if (*at == j) {
      *at = j->next;
      apart.count--;
      break;
    }
  pthread_cond_broadcast(&apart.changed);
  pthread_mutex_unlock(&apart.lock);
  if (left) job_free(j);
  return NULL;
}

static bool job_start(Job *j) {
  pthread_attr_t attr;
  sigset_t all, before;
  if (pthread_attr_init(&attr) != 0) return false;
  bool ok = pthread_attr_setstacksize(&attr, APART_STACK) == 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  ok = ok && pthread_create(&j->thread, &attr, job_thread, j) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  return ok;
}

/* Under the lock, which is given up meanwhile: until something has changed, or it is time to look at the clock. */
static void wait_some(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_nsec += LOOK_MS * 1000000;
  if (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++;
  (void)pthread_cond_timedwait(&apart.changed, &apart.lock, &t);
}

/* Until the job, or (NULL) one of many that were left, is through. WEFT_ERROR: the clock said so first, and the job is
 * no longer the caller's. */
static WeftStatus await(Vm *vm, Job *j) {
  WeftStatus status = WEFT_OK;
  pthread_mutex_lock(&apart.lock);
  while (status == WEFT_OK && (j ? !j->finished : apart.count >= APART_LEFT)) {
    wait_some();
    pthread_mutex_unlock(&apart.lock);
    status = vm_poll(vm, 0);
    pthread_mutex_lock(&apart.lock);
  }
  const bool left = j && !j->finished, late = j && j->finished && status != WEFT_OK;
  if (left) {
    if (!apart.exits) apart.exits = atexit(freeze_all) == 0, stay_loaded();
    j->left = true;
    j->next = apart.left;
    apart.left = j;
    apart.count++;
    pthread_detach(j->thread);
  }
  pthread_mutex_unlock(&apart.lock);
  if (late) {
    pthread_join(j->thread, NULL);
    job_free(j);
  }
  return status;
}

/* With copies of the operands, as large as the program's VM may still become. NULL: it cannot be, or (the error stands
 * in vm) the clock said so. */
static Job *job_new(Vm *vm, u32 op, EagerFn fn, const Value *args) {
  const u64 most = vm->limits.bytes, now = vm->stats.bytes_now;
  if (most && most <= now) return NULL;
  Job *j = calloc(1, sizeof *j);
  if (!j) return NULL;
  VmOptions options = {.limits = vm->limits, .keep = 1};
  options.limits.bytes = most ? most - now : 0;
  options.limits.fuel = options.limits.output = UINT64_MAX;
  options.limits.deadline = 0;
  j->fn = fn;
  j->result = value_hole();
  j->vm = vm_new(&options);
  bool ok = j->vm != NULL;
  if (ok) {
    j->vm->tunables = vm->tunables;
    j->vm->tunables.threads = 1; /* of the pool */
    ok = stdlib_install(j->vm) == WEFT_OK;
  }
  if (ok) {
    stdlib_of(j->vm)->strips = stdlib_of(vm)->strips;
    stdlib_of(j->vm)->blas_threads = stdlib_of(vm)->blas_threads;
  }
  for (u32 i = 0; ok && i < op_info(op)->nparams; i++)
    if ((ok = send(vm, j->vm, args[i], &j->args[i]) == WEFT_OK)) j->nargs++;
  if (ok && job_start(j)) return j;
  job_free(j);
  return NULL;
}

WeftStatus apart_run(Vm *vm, u32 op, EagerFn fn, const Value *args, Value *out, bool *done) {
  *done = false;
  for (u32 i = 0; i < op_info(op)->nparams; i++)
    if (!may_go(args[i])) return WEFT_OK;
  pthread_once(&apart.once, prepare);
  if (!apart.ready) return WEFT_OK;
  TRY(await(vm, NULL));
  Job *j = job_new(vm, op, fn, args);
  if (!j) return vm->error.raised ? WEFT_ERROR : WEFT_OK;
  TRY(await(vm, j));
  pthread_join(j->thread, NULL);
  const u64 peak = vm->stats.bytes_now + j->vm->stats.bytes_peak;
  if (peak > vm->stats.bytes_peak) vm->stats.bytes_peak = peak;
  WeftStatus status = j->status;
  if (status == WEFT_OK) {
    *done = true;
    status = send(vm, vm, j->result, out);
  } else if (!j->vm->error.out_of_memory) {
    size_t len;
    const char *said = vm_error_message(j->vm, &len);
    *done = true;
    status = vm_error(vm, j->vm->error.kind, "%.*s", (int)len, said);
  } else {
    status = WEFT_OK; /* here it may do with less */
  }
  job_free(j);
  return status;
}
