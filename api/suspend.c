/* suspend.c — programs that wait for what the host gives them later (weft.h).
 *
 * A host function of weft_define_suspending returns WEFT_SUSPENDED. vm/call.c lets it only where the interpreter alone
 * is on the C stack; that returns then, and its frames stay (vm->suspends). weft_resume puts the result where the call
 * wants it and runs the interpreter again. */
#include "api/inner.h"
#include "lang/bytecode.h"

#include <string.h>

bool refuse_begin(WeftVM *w) {
  if (!w->suspended) return false;
  if (w->vm->error.raised) vm_error_clear(w->vm);
  (void)vm_error_at(w->vm, EK_host, (Span){0}, "a program of this VM waits: weft_resume or weft_cancel comes first");
  return false;
}

WeftStatus weft_define_suspending(WeftVM *w, WeftValue *module, const char *name, WeftHostFunction function,
                                  void *context, void (*release)(void *context)) {
  Module *m = !usable(w) ? NULL : module ? module_of_host(w, module) : w->main;
  if (!m) return WEFT_MISUSE;
  WeftStatus status = define_in(w, m, name, function, context, release, value_nil());
  if (status == WEFT_OK) host_function_suspends(*module_var(w->vm, m, name_find(&w->vm->names, name, strlen(name))));
  return status;
}

bool weft_is_suspended(WeftVM *w) { return w && w->suspended; }

/* The main module is no longer the file that the program came from. */
static void leave_file(WeftVM *w) {
  if (!w->in_file) return;
  w->main->path = w->path_before;
  w->main->state = w->state_before;
  w->in_file = false;
}

static WeftStatus go_on(WeftVM *w, Value v, WeftValue **out) {
  Value result = value_nil();
  w->suspended = false;
  WeftStatus ran = vm_resume(w->vm, v, &result);
  if (ran != WEFT_OK) result = value_nil();
  WeftStatus status = run_ended(w, ran);
  if (status != WEFT_SUSPENDED) leave_file(w);
  if (status == WEFT_OK && out) return value_hand_over(w, result, out);
  value_drop(w->vm, result);
  return status;
}

/* An error that stands behind it, an interrupt that came while the program waited, takes the place of the result. */
static bool goes_well(WeftVM *w) {
  exports_look(w);
  if (w->vm->error.raised) vm_error_clear(w->vm);
  return vm_look(w->vm) == WEFT_OK;
}

WeftStatus weft_resume(WeftVM *w, WeftValue *value, WeftValue **out) {
  if (out) *out = NULL;
  if (!usable(w) || !w->suspended || !value_ok(w, value) || w->compiling || w->vm->native_depth) return WEFT_MISUSE;
  ON_STACK_OF(w);
  return go_on(w, goes_well(w) ? value_keep(value->value) : value_nil(), out);
}

WeftStatus weft_resume_failed(WeftVM *w, const char *kind, const char *message, WeftValue **out) {
  if (out) *out = NULL;
  if (!usable(w) || !w->suspended || w->compiling || w->vm->native_depth || !message || !name_ok(message))
    return WEFT_MISUSE;
  ON_STACK_OF(w);
  if (goes_well(w)) (void)weft_fail(w, kind, message);
  return go_on(w, value_nil(), out);
}

WeftStatus weft_cancel(WeftVM *w) {
  if (!usable(w) || !w->suspended) return WEFT_MISUSE;
  ON_STACK_OF(w);
  w->suspended = false;
  vm_cancel(w->vm);
  leave_file(w);
  return WEFT_OK;
}
