/* hosts.c — the host functions that random programs call: one that counts, so that a call left out, made twice or
 * out of order shows; a plain one; one that fails; one that calls back. */
#include "tests/diff/hosts.h"

#include <stdint.h>
#include <stdlib.h>

#include "api/weft.h"

/* tick(k): counts by k % 8, and gives how far it is. */
static WeftStatus tick(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  int64_t by, *so_far = context;
  if (count != 1 || weft_as_int(vm, args[0], &by) != WEFT_OK) return weft_fail(vm, "type", "tick: one integer");
  *so_far += by & 7;
  return weft_int(vm, *so_far, result);
}

static WeftStatus half(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  double x;
  (void)context;
  if (count != 1 || weft_as_float(vm, args[0], &x) != WEFT_OK) return weft_fail(vm, "type", "half: one number");
  return weft_float(vm, x * 0.5, result);
}

/* risky(x): x + 1, of no more than 4. */
static WeftStatus risky(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  double x;
  (void)context;
  if (count != 1 || weft_as_float(vm, args[0], &x) != WEFT_OK) return weft_fail(vm, "type", "risky: one number");
  if (!(x <= 4)) return weft_fail(vm, "value", "risky: too much");
  return weft_float(vm, x + 1, result);
}

/* again(f, x): f(x). */
static WeftStatus again(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context;
  if (count != 2) return weft_fail(vm, "type", "again: a function and a value");
  return weft_call(vm, args[0], args + 1, 1, result);
}

void define_hosts(void *context, WeftVM *vm) {
  int64_t *so_far = calloc(1, sizeof *so_far);
  (void)context;
  if (!so_far || weft_define(vm, "tick", tick, so_far, free) != WEFT_OK) exit(2);
  if (weft_define(vm, "half", half, NULL, NULL) != WEFT_OK || weft_define(vm, "risky", risky, NULL, NULL) != WEFT_OK ||
      weft_define(vm, "again", again, NULL, NULL) != WEFT_OK)
    exit(2);
}
