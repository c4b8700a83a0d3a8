/* stopping.h — ends a program of a VM at a moment, by its deadline or by another thread, and measures how long it goes
 * on behind that moment. The time is that of the VM's thread, so that a busy machine is not the program's fault. */
#ifndef WEFT_TESTS_STOPPING_H
#define WEFT_TESTS_STOPPING_H

#include "api/weft.h"

double stopping_clock(void); /* seconds of this thread's work */

typedef struct Stopped {
  WeftStatus status;
  WeftLimit limit; /* that ended it */
  double late_ms;  /* 0: it ended before the moment; below 0: nothing could be measured */
} Stopped;

/* Runs the program without other limits; it has `seconds` until its deadline, or until weft_interrupt. An interrupt
 * that comes behind its end is taken back. The VM has no limits then. */
Stopped stopping_run(WeftVM *vm, const char *program, const char *name, double seconds, bool interrupt);

/* A function for weft_define: evaluates the text that it is given, in the same VM. */
WeftStatus stopping_eval(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result);

#endif
