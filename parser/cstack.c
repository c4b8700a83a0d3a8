/* cstack.c — where the C stack of this thread ends (see base.h). */
#define _GNU_SOURCE /* pthread_getattr_np */
#include <pthread.h>
#include <signal.h>
#ifndef __GLIBC__
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "parser/base.h"

/* Of a stack that the system knows nothing of, a coroutine's or a signal handler's, so much is taken to be left where
 * the host calls. */
enum { UNKNOWN_STACK = 128 << 10 };

/* The system's answer is kept: for the main thread it costs a look into /proc. A thread's stack never moves. */
static _Thread_local struct {
  CStack now;
  uintptr_t low, high; /* of the thread; high 0: not asked yet */
} here;

/* musl tells of the main thread's stack what is mapped of it so far; it grows to the limit. */
static void grow_to_limit(void **low, size_t *size) {
#ifdef __GLIBC__
  (void)low, (void)size;
#else
  enum { USUAL = 8 << 20 }; /* without a limit: what Linux gives where nobody says otherwise */
  struct rlimit limit;
  if (syscall(SYS_gettid) != getpid() || getrlimit(RLIMIT_STACK, &limit) != 0) return;
  const size_t most = limit.rlim_cur == RLIM_INFINITY ? USUAL : (size_t)limit.rlim_cur;
  if (*size >= most || most > (uintptr_t)*low + *size) return;
  *low = (char *)*low + *size - most;
  *size = most;
#endif
}

static void ask_system(void) {
  pthread_attr_t attr;
  void *low = NULL;
  size_t size = 0;
  here.low = here.high = 1; /* nowhere: asked in vain */
  if (pthread_getattr_np(pthread_self(), &attr) != 0) return;
  if (pthread_attr_getstack(&attr, &low, &size) == 0 && low && size) {
    grow_to_limit(&low, &size);
    here.low = (uintptr_t)low;
    here.high = here.low + size;
  }
  (void)pthread_attr_destroy(&attr);
}

static bool is_within(CStack s, uintptr_t at) { return at >= s.low && at < s.high; }

CStack cstack_enter(size_t bytes) {
  CStack before = here.now;
  uintptr_t at = (uintptr_t)__builtin_frame_address(0);
  /* the host was called from there, and calls back */
  if (is_within(before, at) && before.bytes == bytes) return before;
  if (!bytes && !here.high) ask_system();
  here.now = (CStack){here.low, here.high, bytes};
  if (!bytes && is_within(here.now, at)) return before;
  size_t left = bytes ? bytes : UNKNOWN_STACK;
  here.now.low = at > left ? at - left : 0;
  /* the host's own frames, whence it may call back */
  here.now.high = at + (1 << 20) > at ? at + (1 << 20) : UINTPTR_MAX;
  if (bytes && here.high > 1 && at >= here.low && at < here.high) { /* no more than there is */
    if (here.now.low < here.low) here.now.low = here.low;
    if (here.now.high > here.high) here.now.high = here.high;
  }
  return before;
}

void cstack_leave(CStack before) { here.now = before; }

CStack cstack_now(void) { return here.now; }

size_t cstack_left(void) {
  uintptr_t at = (uintptr_t)__builtin_frame_address(0);
  enum { NEAR = 1 << 20 };
  if (is_within(here.now, at)) return at - here.now.low;
  return here.now.high && at < here.now.low && here.now.low - at < NEAR ? 0 : SIZE_MAX; /* else it is another stack */
}

typedef struct Task {
  void (*fn)(void *ctx);
  void *ctx;
} Task;

static void *run_task(void *p) {
  Task *t = p;
  t->fn(t->ctx);
  return NULL;
}

bool cstack_run(size_t bytes, void (*fn)(void *ctx), void *ctx) {
  Task task = {fn, ctx};
  pthread_attr_t attr;
  pthread_t thread;
  sigset_t all, before;
  if (pthread_attr_init(&attr) != 0) return false;
  (void)sigfillset(&all); /* handlers of the host run in its own threads */
  bool ready = pthread_attr_setstacksize(&attr, bytes) == 0 && pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
  bool made = ready && pthread_create(&thread, &attr, run_task, &task) == 0;
  if (ready) (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attr);
  return made && pthread_join(thread, NULL) == 0;
}
