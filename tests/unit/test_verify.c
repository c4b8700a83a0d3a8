/* test_verify.c — the backend `verify`: agreement passes, a compiled form that gives another value is caught. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "tracer/explain.h"
#include "tracer/graph.h"
#include "tracer/tracer.h"

static WeftStatus (*right)(Vm *vm, Region *r, u64 *slots, u32 *exit);

/* What was compiled, but for one bit of what it gives. */
static WeftStatus wrong(Vm *vm, Region *r, u64 *slots, u32 *exit) {
  WeftStatus status = right(vm, r, slots, exit);
  const RegionExit *e = &r->exits[*exit];
  for (u32 i = 0; i < e->bind_count; i++) {
    const RegionBind *b = &r->binds[e->bind_first + i];
    if (b->slot != BIND_NODE && value_type(r->graph, b->value)->rank == 0) slots[b->slot] ^= 1;
  }
  return status;
}

static void spoil(void *ctx, Place *p) {
  for (u32 i = 0; i < p->cache.entries.count; i++) {
    Region *r = p->cache.entries.data[i]->region;
    if (!r->checked) continue;
    right = r->checked;
    r->checked = wrong;
    ++*(int *)ctx;
  }
}

static void A25_a_wrong_value_is_caught(void **state) {
  (void)state;
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backend = "verify";
  options.hot = 0;
  WeftVM *vm = weft_new(&options);
  assert_non_null(vm);
  tracer_ignore_clock(tracer_of(weft_vm_of(vm)));
  WeftValue *value = NULL;
  assert_int_equal(weft_eval(vm, "fn f(x) = sum(x * 2 + 1); f(arange(4.0)); f(arange(5.0))", "a", &value), WEFT_OK);
  assert_string_equal(weft_show(vm, value), "25.0");
  weft_release(vm, value);
  int spoilt = 0;
  Tracer *t = weft_vm_of(vm)->tier_state;
  places_each(&t->places, spoil, &spoilt);
  assert_true(spoilt > 0);
  assert_int_equal(weft_eval(vm, "f(arange(5.0))", "b", NULL), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "assert");
  assert_non_null(strstr(weft_error_message(vm), "verify: region f"));
  weft_free(vm);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(A25_a_wrong_value_is_caught)};
  return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
