/* stopping.c — programs that are ended at a moment (see stopping.h). */
#define _GNU_SOURCE
#include "tests/support/stopping.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

static double seconds_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double stopping_clock(void) { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

typedef struct Watch {
  WeftVM *vm;
  clockid_t clock; /* of the VM's thread */
  double at;       /* the moment, and what the thread had used then */
  double used;
  bool interrupt;
} Watch;

static void *watch(void *context) {
  Watch *w = context;
  double left = w->at - seconds_of(CLOCK_MONOTONIC);
  struct timespec t = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
  if (left > 0) nanosleep(&t, NULL);
  w->used = seconds_of(w->clock);
  if (w->interrupt) weft_interrupt(w->vm);
  return NULL;
}

Stopped stopping_run(WeftVM *vm, const char *program, const char *name, double seconds, bool interrupt) {
  Stopped s = {.status = WEFT_MISUSE, .late_ms = -1};
  Watch w = {.vm = vm, .at = seconds_of(CLOCK_MONOTONIC) + seconds, .interrupt = interrupt};
  pthread_t thread;
  weft_set_limits(vm, 0, 0, interrupt ? 0 : seconds);
  if (pthread_getcpuclockid(pthread_self(), &w.clock) != 0 || pthread_create(&thread, NULL, watch, &w) != 0) return s;
  s.status = weft_eval(vm, program, name, NULL);
  const double now = seconds_of(w.clock);
  s.limit = weft_error_limit(vm);
  pthread_join(thread, NULL);
  if (interrupt) weft_interrupt_forget(vm);
  weft_set_limits(vm, 0, 0, 0);
  s.late_ms = now > w.used ? (now - w.used) * 1e3 : 0;
  return s;
}

WeftStatus stopping_eval(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  const char *text;
  size_t length;
  (void)context;
  if (count != 1 || weft_as_text(vm, args[0], &text, &length) != WEFT_OK) return WEFT_ERROR;
  return weft_eval_length(vm, text, length, "inside", result);
}
