/* programs.h — what a program gives and what its VM counted, asked through weft.h. After cmocka.h. */
#ifndef WEFT_TESTS_UNIT_PROGRAMS_H
#define WEFT_TESTS_UNIT_PROGRAMS_H

#include <string.h>

#include "api/weft.h"

static inline double stat(WeftVM *vm, const char *name) {
  double value;
  const char *at;
  for (unsigned i = 0; (at = weft_stat_at(vm, i, &value)); i++)
    if (strcmp(at, name) == 0) return value;
  fail_msg("no counter %s", name);
  return 0;
}

/* A program and what its value shows as. Each graph of it obeys the rules of graphs. */
static inline void gives(WeftVM *vm, const char *program, const char *want) {
  WeftValue *v = NULL;
  if (weft_eval(vm, program, "test", &v) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
  assert_string_equal(weft_show(vm, v), want);
  weft_release(vm, v);
  if (stat(vm, "unverified") > 0) fail_msg("%g graphs do not verify", stat(vm, "unverified"));
}

#endif
