/* test_misuse.c — a host that breaks the rules of weft.h: every function that takes a VM, a value or a place for a
 * result gets none, a value of another VM, and one that was released. It is refused, and the VM is as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/weft.h"

static WeftStatus nothing(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context, (void)args, (void)count;
  return weft_nil(vm, result);
}

static const WeftHandleType thing = {.size = sizeof thing, .name = "thing"};
static const int64_t one[1] = {1};
static double number[1] = {1.0};
static const char *const keys[1] = {"a"};

/* What calls write to. */
static struct {
  WeftValue *value;
  const char *text;
  const void *bytes;
  void *object;
  WeftOutline *outline;
  WeftArray array;
  int64_t i;
  double f;
  size_t n;
} to;

/* ---- no VM ---- */

#define REFUSED(call) assert_int_equal(weft_##call, WEFT_MISUSE)

static void no_vm(void **state) {
  WeftVM *vm = *state;
  WeftValue *v = NULL;
  assert_int_equal(weft_int(vm, 3, &v), WEFT_OK);
  REFUSED(set_device(NULL, "cpu"));
  REFUSED(eval(NULL, "1", "test", &to.value));
  REFUSED(eval_length(NULL, "1", 1, "test", &to.value));
  REFUSED(eval_line(NULL, "1", "test", &to.value));
  REFUSED(format(NULL, "1", 1, "test", &to.text));
  REFUSED(load_file(NULL, "/none", &to.value));
  REFUSED(load_text(NULL, "1", 1, "/none", &to.value));
  REFUSED(compile(NULL, NULL, "1", 1, "test", 0, &to.bytes, &to.n));
  REFUSED(load_compiled(NULL, NULL, "1", 1, NULL, &to.value));
  REFUSED(call(NULL, v, NULL, 0, &to.value));
  REFUSED(call_named(NULL, v, NULL, 0, NULL, 0, &to.value));
  REFUSED(get_global(NULL, "x", &to.value));
  REFUSED(set_global(NULL, "x", v));
  REFUSED(module_new(NULL, "m", &to.value));
  REFUSED(module_run(NULL, v, "1", 1, "test", &to.value));
  REFUSED(module_get(NULL, v, "x", &to.value));
  REFUSED(module_set(NULL, v, "x", v));
  REFUSED(module_free(NULL, v));
  REFUSED(module_define(NULL, v, "f", nothing, NULL, NULL));
  REFUSED(module_define_described(NULL, v, "f(x)", NULL, nothing, NULL, NULL));
  REFUSED(nil(NULL, &to.value));
  REFUSED(bool(NULL, true, &to.value));
  REFUSED(int(NULL, 1, &to.value));
  REFUSED(float(NULL, 1, &to.value));
  REFUSED(weak_int(NULL, 1, &to.value));
  REFUSED(weak_float(NULL, 1, &to.value));
  REFUSED(weak_complex(NULL, 1, 1, &to.value));
  REFUSED(text(NULL, "a", 1, &to.value));
  REFUSED(list(NULL, &v, 1, &to.value));
  REFUSED(record(NULL, keys, &v, 1, &to.value));
  REFUSED(array(NULL, WEFT_F64, 1, one, number, &to.value));
  REFUSED(array_lend(NULL, WEFT_F64, 1, one, number, NULL, NULL, &to.value));
  REFUSED(array_lend_strided(NULL, WEFT_F64, 1, one, NULL, number, NULL, NULL, &to.value));
  REFUSED(define(NULL, "f", nothing, NULL, NULL));
  REFUSED(define_described(NULL, "f(x)", NULL, nothing, NULL, NULL));
  REFUSED(define_suspending(NULL, NULL, "f", nothing, NULL, NULL));
  REFUSED(define_traced(NULL, "f", nothing, NULL, NULL, v));
  REFUSED(function(NULL, "f", nothing, NULL, NULL, &to.value));
  REFUSED(function_described(NULL, "f(x)", NULL, nothing, NULL, NULL, &to.value));
  REFUSED(handle(NULL, &thing, &to, NULL, &to.value));
  REFUSED(resume(NULL, v, &to.value));
  REFUSED(resume_failed(NULL, "host", "no", &to.value));
  REFUSED(cancel(NULL));
  REFUSED(set_hook(NULL, NULL, NULL, 0));
  REFUSED(outline(NULL, "1", 1, &to.outline));
  REFUSED(dump_file(NULL, NULL, "json", "/none"));
  assert_int_equal(weft_memory_left(NULL) + weft_fuel_left(NULL), 0);
  assert_int_equal(weft_collect(NULL), 0);
  assert_int_equal(weft_frame_count(NULL), 0);
  assert_int_equal(weft_error_limit(NULL), WEFT_LIMIT_NONE);
  assert_false(weft_is_suspended(NULL));
  weft_release(vm, v);
}

/* ---- values that are none ---- */

static void takes_no(WeftVM *vm, WeftValue *bad) {
  WeftValue *good = NULL;
  assert_int_equal(weft_eval(vm, "x => x", "test", &good), WEFT_OK);
  WeftValue *items[2] = {good, bad};
  REFUSED(call(vm, bad, NULL, 0, &to.value));
  REFUSED(call(vm, good, &bad, 1, &to.value));
  REFUSED(call_named(vm, bad, NULL, 0, NULL, 0, &to.value));
  REFUSED(call_named(vm, good, items, 2, keys, 1, &to.value));
  REFUSED(set_global(vm, "kept", bad));
  REFUSED(module_run(vm, bad, "1", 1, "test", &to.value));
  REFUSED(module_get(vm, bad, "x", &to.value));
  REFUSED(module_set(vm, bad, "x", good));
  REFUSED(module_free(vm, bad));
  REFUSED(module_define(vm, bad, "f", nothing, NULL, NULL));
  REFUSED(module_define_described(vm, bad, "f(x)", NULL, nothing, NULL, NULL));
  REFUSED(define_traced(vm, "f", nothing, NULL, NULL, bad));
  REFUSED(list(vm, items, 2, &to.value));
  REFUSED(record(vm, keys, &bad, 1, &to.value));
  REFUSED(as_int(vm, bad, &to.i));
  REFUSED(as_float(vm, bad, &to.f));
  REFUSED(as_text(vm, bad, &to.text, &to.n));
  REFUSED(length(vm, bad, &to.n));
  REFUSED(item(vm, bad, 0, &to.value));
  REFUSED(key(vm, bad, 0, &to.text));
  REFUSED(field(vm, bad, "a", &to.value));
  REFUSED(array_view(vm, bad, &to.array));
  REFUSED(array_copy_out(vm, bad, WEFT_F64, number, sizeof number));
  REFUSED(handle_object(vm, bad, &thing, &to.object));
  REFUSED(handle_set(vm, bad, "a", good));
  REFUSED(resume(vm, bad, &to.value)); /* nothing waits, either */
  assert_null(weft_retain(vm, bad));
  assert_string_equal(weft_show(vm, bad), bad ? "" : weft_show(vm, NULL));
  assert_string_equal(weft_describe(vm, bad), "");
  assert_string_equal(weft_type(vm, bad), "");
  assert_false(weft_is_weak(vm, bad));
  assert_false(weft_array_unshared(vm, bad));
  weft_release(vm, bad);
  weft_release(vm, good);
  assert_int_equal(weft_get_global(vm, "kept", &to.value), WEFT_ERROR); /* nothing was set */
}

static void values_that_are_none(void **state) {
  WeftVM *vm = *state, *other = weft_new(NULL);
  WeftValue *v = NULL;
  takes_no(vm, NULL);
  assert_int_equal(weft_int(other, 1, &v), WEFT_OK);
  takes_no(vm, v);
  assert_int_equal(weft_as_int(other, v, &to.i), WEFT_OK); /* it is still whole */
  assert_int_equal(to.i, 1);
  weft_free(other);
}

static void values_that_were_released(void **state) {
#ifdef __SANITIZE_ADDRESS__
  (void)state;
  skip(); /* blocks are given back at once there, so the sanitizer sees the value itself */
#else
  WeftVM *vm = *state;
  WeftValue *v = NULL;
  assert_int_equal(weft_int(vm, 1, &v), WEFT_OK);
  weft_release(vm, v);
  weft_release(vm, v); /* once more than there are */
  assert_null(weft_retain(vm, v));
  assert_int_equal(weft_as_int(vm, v, &to.i), WEFT_MISUSE);
  assert_int_equal(weft_set_global(vm, "kept", v), WEFT_MISUSE);
#endif
}

/* ---- no place for the result, no text, no function ---- */

static void no_place(void **state) {
  WeftVM *vm = *state;
  WeftValue *v = NULL, *text = NULL, *list = NULL;
  assert_int_equal(weft_int(vm, 3, &v), WEFT_OK);
  assert_int_equal(weft_text(vm, "a", 1, &text), WEFT_OK);
  assert_int_equal(weft_list(vm, &v, 1, &list), WEFT_OK);
  REFUSED(compile(vm, NULL, "1", 1, "test", 0, NULL, &to.n));
  REFUSED(compile(vm, NULL, "1", 1, "test", 0, &to.bytes, NULL));
  REFUSED(compile(vm, NULL, NULL, 1, "test", 0, &to.bytes, &to.n));
  REFUSED(compile(vm, NULL, "1", 1, "test", 1U << 31, &to.bytes, &to.n));
  REFUSED(compile(vm, v, "1", 1, "test", 0, &to.bytes, &to.n));
  REFUSED(load_compiled(vm, v, "1", 1, NULL, &to.value));
  REFUSED(load_text(vm, "1", 1, NULL, &to.value));
  REFUSED(get_global(vm, "x", NULL));
  REFUSED(get_global(vm, NULL, &to.value));
  REFUSED(nil(vm, NULL));
  REFUSED(int(vm, 1, NULL));
  REFUSED(float(vm, 1, NULL));
  REFUSED(text(vm, "a", 1, NULL));
  REFUSED(list(vm, &v, 1, NULL));
  REFUSED(record(vm, keys, &v, 1, NULL));
  REFUSED(record(vm, NULL, &v, 1, &to.value));
  REFUSED(as_int(vm, v, NULL));
  REFUSED(as_float(vm, v, NULL));
  REFUSED(as_text(vm, text, NULL, &to.n));
  REFUSED(length(vm, list, NULL));
  REFUSED(item(vm, list, 0, NULL));
  REFUSED(field(vm, list, NULL, &to.value));
  REFUSED(array(vm, WEFT_F64, 1, one, number, NULL));
  REFUSED(array_copy_out(vm, v, WEFT_F64, NULL, sizeof number));
  REFUSED(array_copy_out(vm, v, (WeftDType)99, number, sizeof number));
  REFUSED(array_copy_into(vm, v, NULL));
  REFUSED(define(vm, NULL, nothing, NULL, NULL));
  REFUSED(define_suspending(vm, NULL, "f", NULL, NULL, NULL));
  REFUSED(define_suspending(vm, v, "f", nothing, NULL, NULL));
  REFUSED(function(vm, "f", nothing, NULL, NULL, NULL));
  REFUSED(function(vm, "f", NULL, NULL, NULL, &to.value));
  REFUSED(function_described(vm, NULL, NULL, nothing, NULL, NULL, &to.value));
  REFUSED(handle(vm, NULL, &to, NULL, &to.value));
  REFUSED(handle(vm, &thing, &to, v, &to.value)); /* its fields are no record */
  REFUSED(outline(vm, "1", 1, NULL));
  REFUSED(outline(vm, NULL, 1, &to.outline));
  REFUSED(set_device(vm, "nowhere"));
  REFUSED(set_device(vm, NULL));
  REFUSED(set_hook(vm, NULL, NULL, 1U << 20));
  REFUSED(frame_locals(vm, 0, &to.n));
  REFUSED(frame_result(vm, &to.value));
  REFUSED(dump_file(vm, NULL, "nonsense", "/none"));
  REFUSED(cancel(vm));
  WeftCompletion unset = {0};
  REFUSED(complete(vm, "a", 1, &unset));
  WeftFrame frame = {0};
  REFUSED(frame(vm, 0, &frame));
  WeftHandleType unnamed = {.size = sizeof unnamed};
  REFUSED(handle(vm, &unnamed, &to, NULL, &to.value));
  weft_release(vm, v);
  weft_release(vm, text);
  weft_release(vm, list);
}

/* ---- in a callback by which the host takes something back ---- */

static WeftVM *of_callback;
static int refused;

static void takes_back(void *context, void *data) {
  (void)context, (void)data;
  WeftVM *vm = of_callback;
  const WeftStatus said[] = {
      weft_eval(vm, "1", "test", NULL), weft_nil(vm, &to.value), weft_set_global(vm, "kept", NULL),
      weft_define(vm, "f", nothing, NULL, NULL), weft_get_global(vm, "x", &to.value),
      weft_array(vm, WEFT_F64, 1, one, number, &to.value), weft_module_new(vm, "m", &to.value)};
  for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) refused += said[i] == WEFT_MISUSE;
  weft_free(vm); /* which does nothing here */
}

static void callbacks_that_call(void **state) {
  WeftVM *vm = *state;
  WeftValue *v = NULL;
  of_callback = vm;
  refused = 0;
  assert_int_equal(weft_array_lend(vm, WEFT_F64, 1, one, number, takes_back, NULL, &v), WEFT_OK);
  weft_release(vm, v);
  assert_int_equal(refused, 7);
}

/* ---- host functions that give what they must not ---- */

static WeftStatus gives_context(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)vm, (void)args, (void)count;
  *result = context;
  return WEFT_OK;
}

static WeftStatus gives_number(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)vm, (void)args, (void)count, (void)result;
  return (WeftStatus) * (int *)context;
}

static WeftStatus ends_everything(WeftVM *vm, void *context, WeftValue *const *args, size_t count,
                                  WeftValue **result) {
  (void)context, (void)args, (void)count;
  weft_free(vm); /* does nothing */
  assert_int_equal(weft_cancel(vm), WEFT_MISUSE);
  assert_int_equal(weft_resume(vm, NULL, NULL), WEFT_MISUSE);
  return weft_bool(vm, true, result);
}

static void says(WeftVM *vm, const char *program, const char *message) {
  assert_int_equal(weft_eval(vm, program, "test", NULL), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "host");
  assert_non_null(strstr(weft_error_message(vm), message));
}

static void results_that_are_none(void **state) {
  WeftVM *vm = *state, *other = weft_new(NULL);
  WeftValue *strange = NULL;
  int unknown = 77, waits = WEFT_SUSPENDED;
  assert_int_equal(weft_int(other, 5, &strange), WEFT_OK);
  assert_int_equal(weft_define(vm, "strange", gives_context, strange, NULL), WEFT_OK);
  assert_int_equal(weft_define(vm, "unknown", gives_number, &unknown, NULL), WEFT_OK);
  assert_int_equal(weft_define(vm, "waits", gives_number, &waits, NULL), WEFT_OK);
  assert_int_equal(weft_define(vm, "ends", ends_everything, NULL, NULL), WEFT_OK);
  says(vm, "strange()", "a value of another VM");
  says(vm, "unknown()", "the host function failed");
  says(vm, "waits()", "weft_define_suspending did not");
  assert_int_equal(weft_eval(vm, "assert(ends())", "test", NULL), WEFT_OK);
  assert_int_equal(weft_as_int(other, strange, &to.i), WEFT_OK); /* it is still the other's */
  weft_release(other, strange);
  weft_free(other);
}

/* ---- a hook that lets its own program wait ---- */

static WeftStatus waiting(WeftVM *vm, void *context, WeftHookEvent event) {
  (void)event;
  refused += weft_eval(vm, "later()", "hook", NULL) == WEFT_ERROR;
  assert_int_equal(weft_set_hook(vm, NULL, NULL, 0), WEFT_OK);
  weft_free(vm); /* does nothing */
  return context ? WEFT_SUSPENDED : WEFT_OK;
}

static void hooks_that_wait(void **state) {
  WeftVM *vm = *state;
  int waits = WEFT_SUSPENDED;
  refused = 0;
  assert_int_equal(weft_define_suspending(vm, NULL, "later", gives_number, &waits, NULL), WEFT_OK);
  assert_int_equal(weft_set_hook(vm, waiting, &waits, WEFT_HOOK_LINE), WEFT_OK);
  assert_int_equal(weft_eval(vm, "let a = 1\na + 1", "test", NULL), WEFT_ERROR);
  assert_int_equal(refused, 1);
  assert_false(weft_is_suspended(vm));
}

/* ---- all in a VM that has to be usable behind it ---- */

static int begin(void **state) { return !(*state = weft_new(NULL)); }

static int end(void **state) {
  WeftVM *vm = *state;
  WeftValue *v = NULL;
  int64_t n = 0;
  if (weft_eval(vm, "sum(arange(10))", "behind", &v) != WEFT_OK || weft_as_int(vm, v, &n) != WEFT_OK) return -1;
  weft_release(vm, v);
  weft_free(vm);
  return n == 45 ? 0 : -1;
}

#define IN_VM(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_VM(no_vm), IN_VM(values_that_are_none), IN_VM(values_that_were_released), IN_VM(no_place),
      IN_VM(callbacks_that_call), IN_VM(results_that_are_none), IN_VM(hooks_that_wait),
  };
  return cmocka_run_group_tests_name("misuse", tests, NULL, NULL);
}
