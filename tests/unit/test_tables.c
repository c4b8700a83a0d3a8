/* test_tables.c — operations, reasons, counters and thresholds: names are unique and found again, every row says
 * something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lang/ops.h"
#include "lang/reasons.h"
#include "lang/stats.h"
#include "lang/tunables.h"

/* The parameters of a row, written out, are its signature. */
static void check_signature(const OpInfo *info) {
  char text[400] = "(";
  size_t n = 1;
  bool behind_rest = false;
  for (u32 i = 0; i < info->nparams; i++) {
    const OpParam *p = &info->params[i];
    n += (size_t)snprintf(text + n, sizeof text - n, "%s%s%s%s%s", i ? ", " : "", p->rest ? "..." : "", p->name,
                          p->has_default ? "=" : "", p->has_default ? p->initial : "");
    assert_int_equal(strlen(p->name), p->len);
    assert_int_equal(p->has_default, p->initial != NULL);
    assert_int_equal(p->keyword_only, behind_rest);
    assert_true(p->kind < PARAM_KIND_COUNT);
    assert_int_equal(param_is_setting(p), p->kind != PARAM_any && !param_is_operand(p));
    behind_rest |= p->rest;
  }
  snprintf(text + n, sizeof text - n, ")");
  assert_string_equal(text, info->signature);
}

static void operations(void **state) {
  (void)state;
  for (u32 i = 1; i < OP_COUNT; i++) {
    const OpInfo *info = op_info(i);
    assert_int_equal(op_by_name(info->name, strlen(info->name)), i);
    assert_true(strlen(info->doc) > 3);
    assert_true(info->nparams <= OP_MAX_PARAMS);
    check_signature(info);
    if (*info->instead) assert_int_equal(info->deriv, DERIVATIVE_none);
    /* what goes by element is batched by element */
    assert_int_equal(info->batch == BATCH_elementwise, info->family == FAM_elementwise);
    /* what is no operation on arrays is lowered by nobody, and the other way round; a function written in Weft may
     * be of any family */
    if (info->lower == LOWER_weft) continue;
    bool arrays = info->family != FAM_control && info->family != FAM_tree && info->family != FAM_data &&
                  info->family != FAM_text && info->family != FAM_io;
    assert_int_equal(info->lower != LOWER_none && info->lower != LOWER_calls, arrays || i == OP_stop_gradient);
    assert_int_equal(info->lower == LOWER_calls, info->calls != CALLS_none);
  }
  assert_int_equal(op_by_name("linalg_eigh", 11), OP_none);
  assert_int_equal(op_by_name("linalg.eigh", 11), OP_linalg_eigh);
  assert_int_equal(op_by_name("zeros_like", 10), OP_zeros_like);
  assert_string_equal(op_name(OP_COUNT), "none");
  assert_true(op_takes_shape(OP_zeros) && !op_takes_shape(OP_add));
}

static void reasons(void **state) {
  (void)state;
  for (u32 i = 0; i < REASON_COUNT; i++) {
    assert_int_equal(reason_by_name(reason_name(i), strlen(reason_name(i))), i);
    assert_true(strlen(reason_text(i)) > 3);
  }
  assert_int_equal(reason_by_name("nothing like it", 15), -1);
  assert_int_equal(reason_group(REASON_arm_output), REASON_GROUP_cold);
  assert_int_equal(reason_group(REASON_limit_fuel), REASON_GROUP_limit);
  assert_string_equal(reason_text(REASON_effect_output), "output");
}

static void counters(void **state) {
  (void)state;
  for (u32 i = 0; i < STAT_COUNT; i++) {
    assert_int_equal(stat_by_name(stat_name(i), strlen(stat_name(i))), i);
    assert_true(strlen(stat_doc(i)) > 3);
    assert_true(strcmp(stat_unit(i), "count") == 0 || strcmp(stat_unit(i), "ns") == 0 ||
                strcmp(stat_unit(i), "bytes") == 0);
  }
  assert_int_equal(stat_by_name("kernel", 6), -1);
}

static const char *const thresholds_named[] = {
#define TUNABLE(name, value, unit, env, why) #name,
#include "lang/tunables.def"
};

static const char *hot;
static const char *environment(const char *name) { return strcmp(name, "WEFT_HOT") == 0 ? hot : NULL; }

static void thresholds(void **state) {
  (void)state;
  Tunables t;
  tunables_default(&t);
  assert_int_equal(t.hot_calls, 30);
  assert_int_equal(t.hot_trips, 60);
  const TunableInfo *first = tunable_by_name(thresholds_named[0], strlen(thresholds_named[0]));
  for (u32 i = 0; i < COUNT_OF(thresholds_named); i++) {
    const TunableInfo *info = tunable_by_name(thresholds_named[i], strlen(thresholds_named[i]));
    assert_ptr_equal(info, first + i); /* no name stands twice */
    assert_true(strlen(info->why) > 8 && strlen(info->unit) > 1);
  }
  assert_null(tunable_by_name("hot", 3));
  static const struct {
    const char *text;
    i64 calls;
  } cases[] = {{"0", 0}, {"7", 7}, {"x", 30}, {"-1", 30}, {"5 ", 30}, {"", 30}, {"99999999999999999999", 30},
               {NULL, 30}};
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    hot = cases[i].text;
    tunables_default(&t);
    tunables_environment(&t, environment);
    assert_int_equal(t.hot_calls, cases[i].calls);
    assert_int_equal(t.hot_trips, cases[i].calls == 30 ? 60 : cases[i].calls);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(operations), cmocka_unit_test(reasons),
                                     cmocka_unit_test(counters), cmocka_unit_test(thresholds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
