/* test_backends.c — backends that are added to a VM: one that logs what it sees, and one that says no in each way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "tracer/graph/graph.h"
#include "tracer/tracer.h"

typedef struct Seen {
  char log[512];
  BackendResult say; /* of the first `times` compilations */
  int times, compiles;
} Seen;

static BackendResult compile(Vm *vm, const Backend *self, Region *r, const CompileLimits *limits, Buf *why) {
  Seen *s = self->state;
  s->compiles++;
  size_t n = strlen(s->log);
  n += (size_t)snprintf(s->log + n, sizeof s->log - n, "%s:", r->name);
  for (u32 i = 0; i < r->graph->inputs.count && n < sizeof s->log; i++) {
    Buf b;
    buf_init(&b, &vm->alloc);
    source_print(&r->graph->guards, r->graph->guards.inputs.data[r->graph->inputs.data[i].input].source, &b);
    n += (size_t)snprintf(s->log + n, sizeof s->log - n, " %s", buf_text(&b));
    buf_free(&b);
  }
  if (n < sizeof s->log) snprintf(s->log + n, sizeof s->log - n, "\n");
  if (s->times > 0) {
    s->times--;
    buf_puts(why, "this is a test");
    return s->say;
  }
  return backend_interp.compile(vm, &backend_interp, r, limits, why);
}

static WeftVM *with(Backend *b, Seen *s, int hot) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.hot = hot < 0 ? 0 : hot ? hot : 1;
  WeftVM *w = weft_new(&o);
  assert_non_null(w);
  tracer_ignore_clock(tracer_of(weft_vm_of(w)));
  *b = (Backend){.name = "test", .compile = compile, .state = s};
  assert_true(tracer_add_backend(weft_vm_of(w), b));
  assert_true(tracer_use_backend(weft_vm_of(w), "test"));
  return w;
}

static double counter(WeftVM *w, const char *name) {
  double value;
  const char *at;
  for (unsigned i = 0; (at = weft_stat_at(w, i, &value)); i++)
    if (strcmp(at, name) == 0) return value;
  return -1;
}

static void run(WeftVM *w, const char *program) {
  if (weft_eval(w, program, "test", NULL) != WEFT_OK) fail_msg("%s", weft_error_text(w));
}

static const char *const define = "fn h(x) = exp(x) * 2 + 1\nfn f(x, y) = sum(h(x) * y + 1)\nlet x = ones(3)\n"
                                  "let y = x * 2";

static void A23_a_backend_sees_graphs_and_inputs_in_order(void **state) {
  Seen s = {0};
  Backend b;
  (void)state;
  WeftVM *w = with(&b, &s, -1);
  run(w, define);
  run(w, "jit(f)(x, y); jit(h)(x)");
  assert_string_equal(s.log, "f#1: arg0 arg1\nh#2: arg0\n");
  weft_free(w);
}

static void A24_restart_traces_once_more_without_inlining(void **state) {
  Seen s = {.say = BACKEND_restart, .times = 1};
  Backend b;
  (void)state;
  WeftVM *w = with(&b, &s, -1);
  run(w, define);
  run(w, "let r = jit(f)(x, y)");
  assert_true(s.compiles > 2); /* f, then f up to the call of h, h, and the rest of f */
  assert_true(counter(w, "breaks") > 0);
  weft_free(w);
}

static void A24_skip_is_silent_and_for_ever(void **state) {
  Seen s = {.say = BACKEND_skip, .times = 1};
  Backend b;
  (void)state;
  WeftVM *w = with(&b, &s, -1);
  run(w, define);
  run(w, "for i in 0..45 { f(x, y) }");
  run(w, "for i in 0..45 { f(x, y) }");
  const char *first = strstr(s.log, "f#");
  assert_non_null(first);
  assert_null(strstr(first + 1, "f#")); /* h, which it calls, is compiled */
  assert_true(counter(w, "demotions") == 1);
  assert_true(counter(w, "warnings") == 0);
  weft_free(w);
}

static void A24_unsupported_warns_once(void **state) {
  Seen s = {.say = BACKEND_unsupported, .times = 100};
  Backend b;
  (void)state;
  WeftVM *w = with(&b, &s, -1);
  run(w, define);
  run(w, "jit(f)(x, y); jit(f)(x, y); jit(f)(x, y)");
  assert_true(counter(w, "warnings") >= 1);
  double before = counter(w, "warnings");
  run(w, "jit(f)(x, y)");
  assert_true(counter(w, "warnings") == before);
  weft_free(w);
}

static void A24_fatal_raises_where_jit_was_asked_for(void **state) {
  Seen s = {.say = BACKEND_fatal, .times = 1};
  Backend b;
  (void)state;
  WeftVM *w = with(&b, &s, -1);
  run(w, define);
  assert_int_equal(weft_eval(w, "jit(f)(x, y)", "test", NULL), WEFT_ERROR);
  assert_string_equal(weft_error_kind(w), "unsupported");
  assert_non_null(strstr(weft_error_message(w), "this is a test"));
  weft_free(w);
  s = (Seen){.say = BACKEND_fatal, .times = 1};
  w = with(&b, &s, -1);
  run(w, define);
  run(w, "for i in 0..45 { f(x, y) }");
  assert_true(counter(w, "warnings") == 1);
  weft_free(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(A23_a_backend_sees_graphs_and_inputs_in_order),
      cmocka_unit_test(A24_restart_traces_once_more_without_inlining),
      cmocka_unit_test(A24_skip_is_silent_and_for_ever),
      cmocka_unit_test(A24_unsupported_warns_once),
      cmocka_unit_test(A24_fatal_raises_where_jit_was_asked_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
