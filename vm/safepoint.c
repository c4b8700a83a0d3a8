/* safepoint.c — fuel, deadline and interrupt. They are not caught by `try`.
 *
 * Safepoints count poll_countdown down from poll_batch; at 0, or when the host interrupts, vm_poll settles the
 * account: the batch is taken from the fuel, the clock is looked at, and the next batch begins. A batch is never
 * longer than the fuel that is left, so fuel is exact. Where there is a deadline, a batch is as long as some
 * milliseconds take: a trip of a loop is nothing, or works on a large array. What works on one ends the batch besides
 * (vm_worked), so that a loop whose trips become slow is noticed in its first slow trip. */
#include <time.h>

#include "vm/vm.h"

enum { POLL_BATCH = 1024, POLL_FIRST = 16 };
static const f64 POLL_LONG = 0.004, POLL_SHORT = 0.001; /* seconds that a batch may take, and should */

f64 vm_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (f64)t.tv_sec + (f64)t.tv_nsec * 1e-9;
}

static void next_batch(Vm *vm) {
  u64 fuel = vm->limits.fuel;
  vm->poll_batch = vm->poll_countdown = fuel >= vm->poll_most ? vm->poll_most : (u32)fuel + 1;
}

static void fit_batch(Vm *vm) {
  const f64 now = vm_clock(), took = now - vm->polled;
  vm->polled = now;
  if (took > POLL_LONG) vm->poll_most = vm->poll_most / 4 ? vm->poll_most / 4 : 1;
  else if (took < POLL_SHORT && vm->poll_most < POLL_BATCH) vm->poll_most *= 2;
}

void vm_poll_reset(Vm *vm) {
  vm->poll_most = vm->limits.deadline > 0 ? POLL_FIRST : POLL_BATCH;
  vm->polled = vm->limits.deadline > 0 ? vm_clock() : 0;
  next_batch(vm);
}

/* The fuel used so far stays what it is: the batch ends earlier. */
void vm_poll_soon(Vm *vm) {
  vm->poll_batch -= vm->poll_countdown - 1;
  vm->poll_countdown = 1;
}

static WeftStatus stop(Vm *vm, ErrorKind kind, LimitKind limit, const char *what) {
  (void)vm_error(vm, kind, "%s", what);
  vm->error.final = true;
  vm->error.limit = (u8)limit;
  return WEFT_ERROR;
}

WeftStatus vm_heed(Vm *vm) {
  if (!vm->interrupted) return WEFT_OK;
  vm->interrupted = 0;
  return stop(vm, EK_interrupt, LIMIT_interrupt, "interrupted");
}

static WeftStatus see_deadline(Vm *vm) {
  if (vm->limits.deadline > 0 && vm_clock() >= vm->limits.deadline)
    return stop(vm, EK_limit, LIMIT_deadline, "the deadline has passed");
  return WEFT_OK;
}

bool vm_ends(const Vm *vm) {
  return vm->interrupted || (vm->limits.deadline > 0 && vm_clock() >= vm->limits.deadline);
}

static bool text_ends(void *vm) { return vm_ends(vm); }

static ToilEnd program_ends(void *vm) { return vm_ends(vm) ? TOIL_limit : TOIL_goes_on; }

void vm_toil_begin(Vm *vm, Toil *t) {
  *t = (Toil){0};
  toil_begin(t, UINT64_MAX - 1, program_ends, vm);
}

void vm_buf_init(Vm *vm, Buf *b) {
  buf_init(b, &vm->alloc);
  b->ends = text_ends;
  b->ctx = vm;
}

WeftStatus vm_error_buf(Vm *vm) { return vm_look(vm) == WEFT_OK ? vm_error_memory(vm) : WEFT_ERROR; }

WeftStatus vm_look(Vm *vm) { return vm_heed(vm) == WEFT_OK ? see_deadline(vm) : WEFT_ERROR; }

WeftStatus vm_poll(Vm *vm, u64 units) {
  u64 used = (u64)(vm->poll_batch - vm->poll_countdown) + units;
  vm->work += units;
  if (vm->limits.fuel != UINT64_MAX) {
    if (used > vm->limits.fuel) {
      vm->limits.fuel = 0;
      next_batch(vm);
      return stop(vm, EK_limit, LIMIT_fuel, "the fuel is used up");
    }
    vm->limits.fuel -= used;
  }
  if (vm->limits.deadline > 0) fit_batch(vm);
  next_batch(vm);
  if (vm_look(vm) != WEFT_OK) return WEFT_ERROR;
  if (UNLIKELY(vm->dead)) values_go_on(vm); /* the host has moved the deadline: the program goes on after all */
  return WEFT_OK;
}
