/* test_dead.c — values that a program has given up when it ends: destroying millions of them would take longer than the
 * program has, so that what is left waits (Vm.dead) for a call of the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/inner.h"

enum { MANY = 1000000, LENT = 5000, LIMIT = 400 << 20 };

static int released, handles;
static float lent_data[4];

static void give_back(void *context, void *data) {
  (void)context;
  assert_ptr_equal(data, lent_data);
  released++;
}

static WeftStatus lend(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  const int64_t four = 4;
  (void)context;
  (void)args;
  (void)count;
  return weft_array_lend(vm, WEFT_F32, 1, &four, lent_data, give_back, NULL, result);
}

/* The time of the program is over from here on. */
static WeftStatus too_late(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context;
  (void)args;
  (void)count;
  (void)result;
  weft_set_limits(vm, LIMIT, 0, 1e-9);
  return WEFT_OK;
}

static WeftVM *machine(void) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.memory = LIMIT;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  released = handles = 0;
  assert_int_equal(weft_define(vm, "lend", lend, NULL, NULL), WEFT_OK);
  assert_int_equal(weft_define(vm, "too_late", too_late, NULL, NULL), WEFT_OK);
  return vm;
}

static void runs(WeftVM *vm, const char *text) {
  if (weft_eval(vm, text, "test", NULL) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
}

/* A program ends by its deadline and leaves many. The last ones die first: what is lent is still held. */
static void leave_many(WeftVM *vm) {
  runs(vm, "fn many() {\n"
           "  let l = list(0..5000)\n"
           "  for i in 0..5000 { l[i] = (lend(),) }\n"
           "  for i in 5000..1000000 { l += ((i, ref(i)),) }\n"
           "  l\n"
           "}\n"
           "fn f() { let l = many(); too_late(); l = nil; while true {} }");
  assert_int_equal(weft_eval(vm, "f()", "test", NULL), WEFT_ERROR);
  assert_int_equal(weft_error_limit(vm), WEFT_LIMIT_DEADLINE);
  assert_true(vm->vm->dead != 0);
  assert_true(released < LENT);
}

/* An array that fits only when they are gone, then what is left, then the end of the VM. */
static void memory_that_waits_is_no_reason_to_refuse(void **state) {
  (void)state;
  WeftVM *vm = machine();
  const uint64_t before = weft_memory_left(vm);
  leave_many(vm);
  const int64_t count = (int64_t)(before - (before >> 3)) / 8;
  assert_true(vm->vm->stats.bytes_now + (uint64_t)count * 8 > LIMIT); /* else it would fit anyway */
  double *data = calloc((size_t)count, sizeof *data);
  WeftValue *a = NULL;
  assert_non_null(data);
  if (weft_array(vm, WEFT_F64, 1, &count, data, &a) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
  free(data);
  assert_int_equal(released, LENT);
  assert_true(vm->vm->dead == 0);
  assert_true(weft_memory_left(vm) + (uint64_t)count * 8 <= before);
  weft_release(vm, a);
  weft_free(vm);
  assert_int_equal(released, LENT);
}

static void what_is_left_is_told_without_them(void **state) {
  (void)state;
  WeftVM *vm = machine();
  leave_many(vm);
  const uint64_t held = vm->vm->stats.bytes_now, left = weft_memory_left(vm);
  assert_int_equal(released, LENT);
  assert_true(left > LIMIT - held + (MANY - LENT) * 16); /* the list of them alone */
  weft_free(vm);
}

static void a_vm_is_freed_with_them(void **state) {
  (void)state;
  WeftVM *vm = machine();
  leave_many(vm);
  weft_free(vm);
  assert_int_equal(released, LENT);
}

/* Given up while the time was over; then a host function gives more, and the program goes on. */
static WeftStatus in_time(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)args;
  (void)count;
  (void)result;
  WeftValue **held = context;
  weft_set_limits(vm, LIMIT, 0, 1e-9);
  weft_release(vm, *held);
  *held = NULL;
  assert_true(vm->vm->dead != 0);
  weft_set_limits(vm, LIMIT, 0, 0);
  assert_true(vm->vm->dead == 0);
  return WEFT_OK;
}

/* The same by an interrupt that is taken back. */
static WeftStatus undisturbed(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)args;
  (void)count;
  (void)result;
  WeftValue **held = context;
  weft_interrupt(vm);
  weft_release(vm, *held);
  *held = NULL;
  assert_true(vm->vm->dead != 0);
  weft_interrupt_forget(vm);
  return WEFT_OK;
}

static void a_program_that_goes_on_destroys_them(void **state) {
  (void)state;
  static const WeftHostFunction ways[] = {in_time, undisturbed};
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    WeftVM *vm = machine();
    WeftValue *held = NULL;
    assert_int_equal(weft_define(vm, "host", ways[i], &held, NULL), WEFT_OK);
    assert_int_equal(weft_eval(vm, "map(i => (i, lend()), 0..20000)", "test", &held), WEFT_OK);
    runs(vm, "host()\nlet n = 0\nwhile n < 5000 { n += 1 }");
    assert_int_equal(released, 20000);
    weft_free(vm);
  }
}

/* A callback may interrupt at any time, also while the VM ends: all is destroyed and given back all the same. */
static void interrupt(void *object) {
  handles++;
  weft_interrupt(object);
}

static void a_vm_ends_whatever_interrupts(void **state) {
  (void)state;
  static const WeftHandleType type = {.size = sizeof type, .name = "bell", .release = interrupt};
  WeftVM *vm = machine();
  WeftValue *bell = NULL;
  assert_int_equal(weft_handle(vm, &type, vm, NULL, &bell), WEFT_OK);
  assert_int_equal(weft_set_global(vm, "bell", bell), WEFT_OK);
  weft_release(vm, bell);
  runs(vm, "fn make(i) = x => x + i\n"
           "let kept = map(i => (make(i), lend()), 0..20000)\n"
           "jit(kept[7][0])(1)");
  weft_free(vm);
  assert_int_equal(handles, 1);
  assert_int_equal(released, 20000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_that_waits_is_no_reason_to_refuse),
      cmocka_unit_test(what_is_left_is_told_without_them),
      cmocka_unit_test(a_vm_is_freed_with_them),
      cmocka_unit_test(a_program_that_goes_on_destroys_them),
      cmocka_unit_test(a_vm_ends_whatever_interrupts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
