/* test_api.c — hosts that break the rules of weft.h, and host functions that fail: a status, never a crash. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "api/weft.h"
#include "parser/base.h"

static int setup(void **state) {
  *state = weft_new(NULL);
  return *state ? 0 : -1;
}
static int teardown(void **state) {
  weft_free(*state);
  return 0;
}

static void gives(WeftVM *vm, const char *program, const char *want) {
  WeftValue *v = NULL;
  assert_int_equal(weft_eval(vm, program, "test", &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), want);
  weft_release(vm, v);
}

static void fails(WeftVM *vm, const char *program, const char *kind, const char *message) {
  WeftValue *v = NULL;
  assert_int_equal(weft_eval(vm, program, "test", &v), WEFT_ERROR);
  assert_null(v);
  assert_string_equal(weft_error_kind(vm), kind);
  assert_non_null(strstr(weft_error_message(vm), message));
}

/* What a host holds when weft_new refused. */
static void no_vm(void **state) {
  (void)state;
  WeftValue *v = NULL;
  double d;
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backend = "nonsense";
  assert_null(weft_new(&o));
  weft_free(NULL);
  weft_interrupt(NULL);
  weft_release(NULL, NULL);
  weft_set_limits(NULL, 0, 0, 0);
  weft_set_args(NULL, 0, NULL);
  assert_int_equal(weft_exit_code(NULL), -1);
  assert_int_equal(weft_eval(NULL, "1", "test", &v), WEFT_MISUSE);
  assert_int_equal(weft_int(NULL, 1, &v), WEFT_MISUSE);
  assert_string_equal(weft_error_text(NULL), "");
  assert_string_equal(weft_error_message(NULL), "");
  assert_string_equal(weft_error_kind(NULL), "");
  assert_null(weft_stat_at(NULL, 0, &d));
}

static void wrong_arguments(void **state) {
  WeftVM *vm = *state;
  WeftValue *v = NULL, *n = NULL;
  double d;
  int64_t i;
  assert_int_equal(weft_int(vm, 3, &n), WEFT_OK);
  assert_int_equal(weft_eval(vm, NULL, "test", &v), WEFT_MISUSE);
  assert_int_equal(weft_load_file(vm, NULL, &v), WEFT_MISUSE);
  assert_int_equal(weft_load_file(vm, "/nonexistent/file", &v), WEFT_ERROR);
  assert_int_equal(weft_call(vm, NULL, NULL, 0, &v), WEFT_MISUSE);
  assert_int_equal(weft_call(vm, n, NULL, 1, &v), WEFT_MISUSE);
  assert_int_equal(weft_call(vm, n, NULL, 0, &v), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "type");
  const char *const bad_names[] = {"", "a b", "let", "1a", "a.b"};
  for (size_t k = 0; k < sizeof bad_names / sizeof bad_names[0]; k++)
    assert_int_equal(weft_set_global(vm, bad_names[k], n), WEFT_MISUSE);
  assert_int_equal(weft_set_global(vm, NULL, n), WEFT_MISUSE);
  assert_int_equal(weft_set_global(vm, "größe", n), WEFT_OK);
  gives(vm, "größe + 1", "4");
  assert_int_equal(weft_get_global(vm, "nowhere", &v), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "name");
  assert_int_equal(weft_as_float(vm, NULL, &d), WEFT_MISUSE);
  assert_int_equal(weft_float(vm, NAN, &v), WEFT_OK);
  assert_int_equal(weft_as_int(vm, v, &i), WEFT_ERROR);
  weft_release(vm, v);
  assert_int_equal(weft_text(vm, "\xff", 1, &v), WEFT_ERROR);
  assert_int_equal(weft_text(vm, NULL, 5, &v), WEFT_MISUSE);
  assert_int_equal(weft_eval(vm, "\"\xc3\"", "test", &v), WEFT_ERROR);
  WeftValue *items[2] = {n, NULL};
  assert_int_equal(weft_list(vm, items, 2, &v), WEFT_MISUSE);
  assert_int_equal(weft_list(vm, NULL, 2, &v), WEFT_MISUSE);
  assert_null(weft_dump(vm, n, "nonsense"));
  weft_release(vm, n);
}

static void wrong_arrays(void **state) {
  WeftVM *vm = *state;
  WeftValue *v = NULL;
  double data[3] = {1, 2, 3};
  const int64_t two[1] = {2}, negative[2] = {2, -1}, huge[2] = {(int64_t)1 << 40, (int64_t)1 << 40};
  assert_int_equal(weft_array(vm, WEFT_F64, 2, negative, data, &v), WEFT_MISUSE);
  assert_int_equal(weft_array(vm, WEFT_F64, 2, huge, data, &v), WEFT_ERROR);
  assert_int_equal(weft_array(vm, (WeftDType)99, 1, two, data, &v), WEFT_MISUSE);
  assert_int_equal(weft_array(vm, WEFT_F64, -1, two, data, &v), WEFT_MISUSE);
  assert_int_equal(weft_array(vm, WEFT_F64, WEFT_MAX_RANK + 1, two, data, &v), WEFT_MISUSE);
  assert_int_equal(weft_array(vm, WEFT_F64, 1, NULL, data, &v), WEFT_MISUSE);
  assert_int_equal(weft_array(vm, WEFT_F64, 1, two, NULL, &v), WEFT_MISUSE);
  assert_int_equal(weft_array_lend(vm, WEFT_F64, 1, two, (char *)data + 1, NULL, NULL, &v), WEFT_MISUSE);
  assert_int_equal(weft_array_lend(vm, WEFT_F64, 1, two, data + 1, NULL, NULL, &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "[2.0, 3.0]");
  assert_int_equal(weft_array_view(vm, v, NULL), WEFT_MISUSE);
  weft_release(vm, v);
  /* halves, as uint16_t */
  const uint16_t halves[2] = {0x3C00, 0x2E66};
  WeftArray look;
  assert_int_equal(weft_array(vm, WEFT_F16, 1, two, halves, &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "[1.0, 0.1]");
  assert_string_equal(weft_describe(vm, v), "f16[2]");
  assert_int_equal(weft_array_view(vm, v, &look), WEFT_OK);
  assert_true(look.dtype == WEFT_F16 && memcmp(look.data, halves, sizeof halves) == 0);
  assert_int_equal(weft_set_global(vm, "halves", v), WEFT_OK);
  weft_release(vm, v);
  assert_int_equal(weft_eval(vm, "halves[1] * 2", "test", &v), WEFT_OK);
  assert_int_equal(weft_array_view(vm, v, &look), WEFT_OK);
  double twice;
  assert_true(look.rank == 0 && look.dtype == WEFT_F16 && *(const uint16_t *)look.data == 0x3266);
  assert_int_equal(weft_as_float(vm, v, &twice), WEFT_OK);
  assert_true(twice == 0.199951171875);
  weft_release(vm, v);
  const int64_t wraps[1] = {(int64_t)1 << 61}; /* times 8 bytes is 0 */
  assert_int_equal(weft_array_lend(vm, WEFT_F64, 1, wraps, data, NULL, NULL, &v), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "shape");
  gives(vm, "sum(ones(3))", "3.0");
}

static WeftStatus says_nothing(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)vm, (void)args, (void)count, (void)result;
  return *(WeftStatus *)context;
}
static WeftStatus calls_itself(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context, (void)args, (void)count;
  return weft_eval(vm, "1 + again()", "inner", result);
}
static WeftStatus swallows(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context, (void)args, (void)count;
  if (weft_eval(vm, "[1][5]", "inner", result) != WEFT_ERROR) return WEFT_MISUSE;
  return weft_int(vm, 3, result);
}

static void no_output(void *context, const char *text, size_t length) { (void)context, (void)text, (void)length; }

static void limits_are_told_apart(void **state) {
  (void)state;
  static const struct { const char *program; WeftLimit limit; } table[] = {
      {"1 +* 2", WEFT_LIMIT_NONE},
      {"while true { }", WEFT_LIMIT_FUEL},
      {"try { while true { } } catch e { }", WEFT_LIMIT_FUEL},
      {"zeros(100000000)", WEFT_LIMIT_MEMORY},
      {"let t = \"a\"; while true { t = t + t }", WEFT_LIMIT_MEMORY},
      {"exit(3)", WEFT_LIMIT_EXIT},
      {"fn f(x) = 1 + f(x); f(1)", WEFT_LIMIT_DEPTH},
      {"while true { print(\"some output\") }", WEFT_LIMIT_OUTPUT},
      {"read_text(\"a\")", WEFT_LIMIT_FILES},
      {"env(\"HOME\")", WEFT_LIMIT_ENV},
      {"import \"a\" as m", WEFT_LIMIT_IMPORTS},
      {"to(ones(3), \"gpu\")", WEFT_LIMIT_GPU},
      {"read_line()", WEFT_LIMIT_INPUT},
      /* forged, and raised again */
      {"error(\"the fuel is used up\", kind=\"limit\")", WEFT_LIMIT_NONE},
      {"error(\"\", kind=\"interrupt\")", WEFT_LIMIT_NONE},
      {"try { read_text(\"a\") } catch e { error(e) }", WEFT_LIMIT_NONE},
      {"1 + 1", WEFT_LIMIT_NONE},
  };
  assert_int_equal(weft_error_limit(NULL), WEFT_LIMIT_NONE);
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    WeftOptions o = WEFT_OPTIONS_INIT;
    o.memory = 64 << 20;
    o.fuel = 1000000;
    o.depth = 500;
    o.output_limit = 1000;
    o.output = no_output;
    o.input = NULL;
    WeftVM *vm = weft_new(&o);
    assert_non_null(vm);
    (void)weft_eval(vm, table[i].program, "test", NULL);
    if (weft_error_limit(vm) != table[i].limit)
      fail_msg("%s: limit %d (%s)", table[i].program, (int)weft_error_limit(vm), weft_error_message(vm));
    assert_int_equal(weft_exit_code(vm), table[i].limit == WEFT_LIMIT_EXIT ? 3 : -1);
    if (table[i].limit == WEFT_LIMIT_EXIT)
      assert_string_equal(weft_error_message(vm), "the program has ended itself with the code 3");
    weft_set_limits(vm, 0, 0, 1e-9);
    assert_int_equal(weft_eval(vm, "while true { }", "test", NULL), WEFT_ERROR);
    assert_int_equal(weft_error_limit(vm), WEFT_LIMIT_DEADLINE);
    weft_set_limits(vm, 0, 0, 0);
    weft_interrupt(vm);
    assert_int_equal(weft_eval(vm, "1", "test", NULL), WEFT_ERROR);
    assert_int_equal(weft_error_limit(vm), WEFT_LIMIT_INTERRUPT);
    weft_free(vm);
  }
}

static WeftStatus waits(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)vm, (void)args, (void)count, (void)result;
  ++*(int *)context;
  nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
  return WEFT_OK;
}

/* However rarely the program itself comes to a safe point. */
static void the_deadline_holds_behind_host_functions(void **state) {
  (void)state;
  for (int hot = 0; hot < 2; hot++) {
    WeftOptions o = WEFT_OPTIONS_INIT;
    int calls = 0;
    o.hot = hot;
    o.deadline = 0.1;
    WeftVM *vm = weft_new(&o);
    assert_non_null(vm);
    assert_int_equal(weft_define(vm, "waits", waits, &calls, NULL), WEFT_OK);
    fails(vm, "let n = 0; while n < 500 { waits(); n += 1 }", "limit", "the deadline has passed");
    assert_in_range(calls, 1, 6);
    weft_free(vm);
  }
}

static void host_functions(void **state) {
  WeftVM *vm = *state;
  WeftStatus error = WEFT_ERROR, well = WEFT_OK, odd = (WeftStatus)77;
  assert_int_equal(weft_define(vm, "a b", says_nothing, &well, NULL), WEFT_MISUSE);
  assert_int_equal(weft_define(vm, "none", NULL, NULL, NULL), WEFT_MISUSE);
  assert_int_equal(weft_define(vm, "none", says_nothing, &well, NULL), WEFT_OK);
  assert_int_equal(weft_define(vm, "bad", says_nothing, &error, NULL), WEFT_OK);
  assert_int_equal(weft_define(vm, "odd", says_nothing, &odd, NULL), WEFT_OK);
  assert_int_equal(weft_define(vm, "again", calls_itself, NULL, NULL), WEFT_OK);
  assert_int_equal(weft_define(vm, "swallow", swallows, NULL, NULL), WEFT_OK);
  gives(vm, "none()", "nil");
  fails(vm, "bad()", "host", "bad: the host function failed");
  fails(vm, "odd()", "host", "odd: the host function failed");
  fails(vm, "again()", "limit", "too deep a recursion");
  gives(vm, "swallow()", "3");
  gives(vm, "try { bad() } catch e { e.kind }", "\"host\"");
  fails(vm, "fn f(x) { let s = 0.0; for i in 0..1000 { s += x; if i == 500 { bad() } }; s }; f(1.0)", "host", "bad");
}

static WeftStatus wants_a_number(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  double x;
  (void)context, (void)count;
  return weft_as_float(vm, args[0], &x) == WEFT_OK ? weft_float(vm, x, result) : WEFT_ERROR;
}

/* An argument of the wrong type stands where the host function is called. */
static void errors_of_reading_have_a_place(void **state) {
  WeftVM *vm = *state;
  int line, column;
  assert_int_equal(weft_define(vm, "half", wants_a_number, NULL, NULL), WEFT_OK);
  fails(vm, "fn f(x) {\n  1 + half(x)\n}\nf(\"a\")", "type", "the host needs a number, got text");
  weft_error_position(vm, &line, &column);
  assert_int_equal(line, 2);
  assert_int_equal(column, 7);
  assert_non_null(strstr(weft_error_text(vm), "in f, called at test:4:1"));
}

static void limits_come_and_go(void **state) {
  WeftVM *vm = *state;
  weft_set_limits(vm, 0, 1000, 0);
  fails(vm, "while true {}", "limit", "fuel");
  weft_set_limits(vm, 0, 0, NAN);
  gives(vm, "let s = 0; for i in 0..5000 { s += i }; s", "12497500");
  weft_set_limits(vm, 0, 0, -1.0);
  gives(vm, "1", "1");
}

/* A VM that is not there is no reason to crash. */
static void texts_without_a_vm(void **state) {
  (void)state;
  assert_string_equal(weft_show(NULL, NULL), "");
  assert_string_equal(weft_describe(NULL, NULL), "");
  assert_null(weft_dump(NULL, NULL, "json"));
}

static int given_back;
static void count_release(void *context, void *data) {
  (void)context;
  (void)data;
  given_back++;
}
static void count_drop(void *context) {
  (void)context;
  given_back++;
}
static WeftStatus no_function(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context;
  (void)args;
  (void)count;
  return weft_nil(vm, result);
}

/* A host memory that refuses from the n-th request on. */
typedef struct Refusing {
  long left;
} Refusing;
static void *refusing(void *context, void *p, size_t old_size, size_t new_size) {
  Refusing *r = context;
  (void)old_size;
  if (!new_size) {
    free(p);
    return NULL;
  }
  if (r->left == 0) return NULL;
  r->left--;
  return realloc(p, new_size);
}

/* When lending or defining fails the host keeps what it had: its release is not called, whichever request was
 * refused. */
static void a_failed_call_gives_nothing_back(void **state) {
  (void)state;
  static double numbers[4] = {1, 2, 3, 4};
  int64_t shape[1] = {4};
  int refused = 0;
  for (long n = 0; n < 40; n++) {
    Refusing memory = {1000000};
    WeftOptions options = WEFT_OPTIONS_INIT;
    options.resize = refusing;
    options.resize_context = &memory;
    WeftVM *vm = weft_new(&options);
    assert_non_null(vm);
    char name[300];
    memset(name, 'f', sizeof name - 1);
    name[sizeof name - 1] = 0;
    given_back = 0;
    memory.left = n;
    WeftValue *v = NULL;
    WeftStatus lent = weft_array_lend(vm, WEFT_F64, 1, shape, numbers, count_release, NULL, &v);
    if (lent != WEFT_OK) {
      refused++;
      assert_null(v);
    }
    assert_int_equal(given_back, 0);
    memory.left = n;
    WeftStatus defined = weft_define(vm, name, no_function, NULL, count_drop);
    refused += defined != WEFT_OK;
    assert_int_equal(given_back, 0);
    memory.left = 1000000;
    weft_release(vm, v);
    assert_int_equal(given_back, lent == WEFT_OK);
    weft_free(vm);
    assert_int_equal(given_back, (lent == WEFT_OK) + (defined == WEFT_OK));
  }
  assert_true(refused > 0);
}

/* Numbers are read and written with a point, whatever the locale of the host's process says. */
static void numbers_keep_their_point(void **state) {
  static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ps_AF.UTF-8"};
  char text[3][32] = {"-1,5e+10", "0\331\25325", "17"};
  for (int i = 0; i < 3; i++) number_point(text[i]);
  assert_string_equal(text[0], "-1.5e+10");
  assert_string_equal(text[1], "0.25");
  assert_string_equal(text[2], "17");
  for (size_t i = 0; i < sizeof locales / sizeof *locales; i++)
    if (setlocale(LC_NUMERIC, locales[i])) break; /* without one of them the rest holds as well */
  gives(*state,
        "(1.5, 0.1 + 0.2, f32(0.1), [0.5, 1e300], f\"{2.5:.3f} {1234567.5:,.2f} {0.25:%} {3.0:e} {1.5:g} {1.25}\")",
        "(1.5, 0.30000000000000004, 0.1, [0.5, 1e300], \"2.500 1,234,567.50 25.000000% 3.000000e+00 1.5 1.25\")");
  gives(*state, "(parse_float(\"-1.5e3\"), parse_float(\"+Infinity\"), parse_float(\".5\"), "
                "try { parse_float(\"1,5\") } catch e { e.kind })", "(-1500.0, inf, 0.5, \"value\")");
  setlocale(LC_NUMERIC, "C");
}

/* ---- values of another VM, and released ones ----------------------------------------------------------- */

static WeftStatus passes_foreign(WeftVM *vm, void *ctx, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)vm, (void)args, (void)count;
  *result = ctx; /* a value of another VM */
  return WEFT_OK;
}

static WeftStatus gives_its_argument(WeftVM *vm, void *ctx, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)vm, (void)ctx, (void)count;
  *result = args[0]; /* borrowed, and not retained */
  return WEFT_OK;
}

static void refused_as_foreign(WeftVM *vm, WeftStatus status) {
  assert_int_equal(status, WEFT_MISUSE);
  assert_non_null(strstr(weft_error_message(vm), "another VM"));
}

static void values_of_another_vm(void **state) {
  WeftVM *a = *state, *b = weft_new(NULL);
  assert_non_null(b);
  WeftValue *of_a = NULL, *fn = NULL, *mine = NULL, *out = NULL;
  assert_int_equal(weft_eval(a, "ones(100)", "test", &of_a), WEFT_OK);
  assert_int_equal(weft_eval(a, "x => x", "test", &fn), WEFT_OK);
  assert_int_equal(weft_eval(b, "x => sum(x)", "test", &mine), WEFT_OK);
  const char *keys[] = {"k"};
  int64_t i;
  double d;
  size_t n;
  const char *text;
  WeftArray view;
  refused_as_foreign(b, weft_call(b, fn, NULL, 0, &out));
  refused_as_foreign(b, weft_call(b, mine, &of_a, 1, &out));
  refused_as_foreign(b, weft_list(b, &of_a, 1, &out));
  refused_as_foreign(b, weft_record(b, keys, &of_a, 1, &out));
  refused_as_foreign(b, weft_set_global(b, "v", of_a));
  refused_as_foreign(b, weft_as_int(b, of_a, &i));
  refused_as_foreign(b, weft_as_float(b, of_a, &d));
  refused_as_foreign(b, weft_as_text(b, of_a, &text, &n));
  refused_as_foreign(b, weft_length(b, of_a, &n));
  refused_as_foreign(b, weft_item(b, of_a, 0, &out));
  refused_as_foreign(b, weft_key(b, of_a, 0, &text));
  refused_as_foreign(b, weft_field(b, of_a, "k", &out));
  refused_as_foreign(b, weft_array_view(b, of_a, &view));
  assert_null(weft_retain(b, of_a));
  assert_string_equal(weft_show(b, of_a), "");
  assert_string_equal(weft_type(b, of_a), "");
  assert_string_equal(weft_describe(b, of_a), "");
  for (int k = 0; k < 1000; k++) weft_release(b, of_a); /* counts of the other VM stay as they are */
  assert_int_equal(weft_define(b, "foreign", passes_foreign, of_a, NULL), WEFT_OK);
  fails(b, "foreign()", "host", "a value of another VM");
  gives(a, "sum(ones(100))", "100.0");
  gives(b, "sum(ones(100))", "100.0");
  WeftValue *total = NULL;
  assert_int_equal(weft_set_global(a, "v", of_a), WEFT_OK);
  assert_int_equal(weft_eval(a, "sum(v)", "test", &total), WEFT_OK);
  assert_string_equal(weft_show(a, total), "100.0");
  weft_release(a, total);
  weft_release(a, of_a);
  weft_release(a, fn);
  weft_release(b, mine);
  weft_free(b);
}

static void an_argument_that_is_given_back(void **state) {
  WeftVM *vm = *state;
  assert_int_equal(weft_define(vm, "same", gives_its_argument, NULL, NULL), WEFT_OK);
  gives(vm, "let x = [1.0, 2.0]\nfor i in 0..100 { x = same(x) }\nx", "[1.0, 2.0]");
}

static void texts_with_a_length(void **state) {
  WeftVM *vm = *state;
  WeftValue *v = NULL;
  assert_int_equal(weft_eval_length(vm, "1 + 2 # and more", 5, "test", &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "3");
  weft_release(vm, v);
  assert_int_equal(weft_eval_length(vm, "1\0+2", 4, "test", &v), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "syntax");
  assert_non_null(strstr(weft_error_message(vm), "U+0000"));
  assert_int_equal(weft_eval_length(vm, NULL, 3, "test", &v), WEFT_MISUSE);
  assert_int_equal(weft_eval(vm, "1", "\xff", &v), WEFT_MISUSE); /* a name that is not UTF-8 */
  assert_int_equal(weft_define(vm, "\xff", gives_its_argument, NULL, NULL), WEFT_MISUSE);
}

static void programs_are_laid_out(void **state) {
  WeftVM *vm = *state;
  const char *text = NULL;
  assert_int_equal(weft_format(vm, "let  x=1;;", 8, "test", &text), WEFT_OK);
  assert_string_equal(text, "let x = 1\n");
  assert_int_equal(weft_format(vm, "", 0, NULL, &text), WEFT_OK);
  assert_string_equal(text, "");
  assert_int_equal(weft_format(vm, "# a\n\n\n\n\n# b  ", 12, NULL, &text), WEFT_OK);
  assert_string_equal(text, "# a\n\n\n# b\n");
  int line, column;
  assert_int_equal(weft_format(vm, "1\n(2,", 5, "test", &text), WEFT_ERROR);
  assert_string_equal(text, "");
  assert_string_equal(weft_error_kind(vm), "syntax");
  weft_error_position(vm, &line, &column);
  assert_true(line == 2 && column == 4);
  assert_int_equal(weft_format(vm, "1\0", 2, "test", &text), WEFT_ERROR);
  assert_int_equal(weft_format(vm, NULL, 1, "test", &text), WEFT_MISUSE);
  assert_int_equal(weft_format(vm, "1", 1, "test", NULL), WEFT_MISUSE);
  assert_int_equal(weft_format(NULL, "1", 1, "test", &text), WEFT_MISUSE);
}

typedef struct Releases {
  WeftVM *vm;
  int calls;
  WeftStatus status;
} Releases;

static void calls_the_vm(void *context) {
  Releases *r = context;
  WeftValue *v = NULL;
  r->calls++;
  r->status = weft_eval(r->vm, "1", "test", &v);
}

/* A callback by which the host takes something back may not run programs: it came in the middle of one, or of
 * weft_free. */
static void a_release_that_calls_the_vm(void **state) {
  (void)state;
  WeftVM *vm = weft_new(NULL);
  assert_non_null(vm);
  Releases r = {vm, 0, WEFT_OK};
  assert_int_equal(weft_define(vm, "f", gives_its_argument, &r, calls_the_vm), WEFT_OK);
  weft_free(vm);
  assert_int_equal(r.calls, 1);
  assert_int_equal(r.status, WEFT_MISUSE);
}

/* ---- interrupts -------------------------------------------------------------------------------------------- */

static WeftStatus interrupts(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context, (void)args, (void)count;
  weft_interrupt(vm);
  return weft_int(vm, 7, result);
}

static void is_interrupted(WeftVM *vm, WeftStatus status) {
  assert_int_equal(status, WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "interrupt");
}

/* An interrupt between two calls stops the next one that runs a program, whatever that does, and is used up by it. */
static void interrupt_between_calls(void **state) {
  WeftVM *vm = *state;
  WeftValue *v = NULL, *f = NULL, *three = NULL, *stop = NULL;
  assert_int_equal(weft_define(vm, "stop", interrupts, NULL, NULL), WEFT_OK);
  gives(vm, "let n = ref(0); fn f(x) { n.value += 1; x + 1 }; 0", "0");
  assert_int_equal(weft_get_global(vm, "f", &f), WEFT_OK);
  assert_int_equal(weft_int(vm, 3, &three), WEFT_OK);
  static const char *const programs[] = {"1 + 1", "", "f(1)", "try { f(1) } catch e { 0 }", "for i in 0..10 { f(i) }",
                                         "error(\"own\")", "1 +"};
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    weft_interrupt(vm);
    weft_interrupt(vm);
    is_interrupted(vm, weft_eval(vm, programs[i], "test", &v));
    gives(vm, "2 + n.value", "2"); /* nothing ran, and it is used up */
    weft_interrupt(vm);
    is_interrupted(vm, weft_eval_line(vm, programs[i], "test", &v));
    gives(vm, "2 + n.value", "2");
  }
  weft_interrupt(vm);
  is_interrupted(vm, weft_call(vm, f, &three, 1, &v));
  weft_interrupt(vm);
  is_interrupted(vm, weft_load_file(vm, "/dev/null", &v));
  gives(vm, "n.value", "0");
  weft_interrupt(vm); /* what runs nothing leaves it to what does */
  assert_int_equal(weft_set_global(vm, "g", three), WEFT_OK);
  assert_int_equal(weft_get_global(vm, "g", &v), WEFT_OK);
  weft_release(vm, v);
  is_interrupted(vm, weft_eval(vm, "g", "test", &v));
  weft_interrupt(vm);
  weft_interrupt_forget(vm);
  weft_interrupt_forget(NULL);
  gives(vm, "g", "3");
  is_interrupted(vm, weft_eval(vm, "stop()", "test", &v)); /* the last that it does */
  gives(vm, "g", "3");
  (void)weft_eval(vm, "error(str(stop()))", "test", &v); /* it ended by itself, or was stopped */
  gives(vm, "g", "3");
  assert_int_equal(weft_get_global(vm, "stop", &stop), WEFT_OK);
  is_interrupted(vm, weft_call(vm, stop, NULL, 0, &v));
  gives(vm, "g", "3");
  weft_release(vm, stop);
  weft_release(vm, f);
  weft_release(vm, three);
}

/* ---- options --------------------------------------------------------------------------------------------------- */

static double stat_named(WeftVM *vm, const char *name) {
  double value;
  const char *at;
  for (unsigned i = 0; (at = weft_stat_at(vm, i, &value)); i++)
    if (strcmp(at, name) == 0) return value;
  fail_msg("there is no counter %s", name);
  return 0;
}

/* At which of its calls f is compiled, 0: at none of the first 20. */
static int compiled_at(const WeftOptions *o) {
  WeftVM *vm = weft_new(o);
  int at = 0;
  assert_non_null(vm);
  gives(vm, "let x = arange(5.0); fn f(x) = exp(x) * 2.0 + x; 0", "0");
  for (int call = 1; call <= 20 && !at; call++) {
    gives(vm, "f(x)[0]", "2.0");
    if (stat_named(vm, "compiles") > 0) at = call;
  }
  weft_free(vm);
  return at;
}

/* Options that are cleared are the defaults; a field counts whether `size` was set or not. */
static void cleared_options(void **state) {
  (void)state;
  WeftOptions cleared;
  memset(&cleared, 0, sizeof cleared);
  for (int sized = 0; sized < 2; sized++) {
    cleared.size = sized ? sizeof cleared : 0;
    cleared.hot = 0;
    assert_int_equal(compiled_at(&cleared), 0); /* it does not pay so soon */
    cleared.hot = 1;
    assert_int_equal(compiled_at(&cleared), 1);
    cleared.hot = 5;
    assert_int_equal(compiled_at(&cleared), 5);
    cleared.hot = 0;
    cleared.memory = 1 << 20;
    WeftVM *vm = weft_new(&cleared);
    assert_non_null(vm);
    fails(vm, "zeros(1000000)", "limit", "memory limit");
    weft_free(vm);
    cleared.memory = 0;
  }
  WeftOptions init = WEFT_OPTIONS_INIT;
  assert_memory_equal(&init.resize, &cleared.resize, sizeof init - offsetof(WeftOptions, resize));
}

/* ---- the texts of programs ------------------------------------------------------------------- */

static void *counted_resize(void *context, void *p, size_t old_size, size_t new_size) {
  size_t *now = context;
  *now += new_size - old_size;
  if (new_size) return realloc(p, new_size);
  free(p);
  return NULL;
}

/* A host evaluates for days: a program leaves behind what it declared, and nothing else. */
static void evaluations_leave_nothing(void **state) {
  (void)state;
  static const char *const programs[] = {
    "1 + 1", "let x = arange(3.0); sum(x)", "fn f(x) = x + 1; f(2)", "let g = x => x * 2; map(g, [1.0, 2.0])", "1 +",
    "zeros(3) @ zeros(4)",
    "try { error(\"a\") } catch e { e.trace }", "fn h(x) { error(\"deep\") }; h(1)", "grad(x => x * x)(3.0)",
    "let s = 0; for i in 0..100 { s += i }; s",
  };
  size_t memory = 0;
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.resize = counted_resize;
  o.resize_context = &memory;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  /* What compiles native loops comes to be when one is compiled, and is kept. */
  assert_int_equal(weft_eval(vm, "let w = 0; for i in 0..1000000 { w += i % 7 }", "a host that evaluates", NULL),
                   WEFT_OK);
  for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
    size_t least[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX}; /* in each third: what comes and goes is not in it */
    int rounds = p ? 6000 : 60000;
    for (int i = 0; i < rounds; i++) {
      WeftValue *v = NULL;
      if (weft_eval(vm, programs[p], "a host that evaluates", &v) != WEFT_OK)
        assert_true(strlen(weft_error_text(vm)) > 10);
      weft_release(vm, v);
      size_t *third = &least[i * 3LL / rounds];
      if (memory < *third) *third = memory;
    }
    if (least[2] > least[1] + 32 * 1024)
      fail_msg("%s: %zu bytes more after %d evaluations", programs[p], least[2] - least[1], rounds / 3);
  }
  weft_free(vm);
  assert_int_equal(memory, 0);
}

/* make check-all runs ten times as long (WEFT_TEST_LONG). */
static int rounds_of(int usual) { return getenv("WEFT_TEST_LONG") ? 10 * usual : usual; }

static WeftVM *counted_vm(size_t *memory) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.resize = counted_resize;
  o.resize_context = memory;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  return vm;
}

static void many_evaluations(void **state) {
  (void)state;
  size_t memory = 0, early = 0;
  WeftVM *vm = counted_vm(&memory);
  for (int i = 0, n = rounds_of(100000); i < n; i++) {
    WeftValue *v = NULL;
    assert_int_equal(weft_eval(vm, "1 + 1", "a host that evaluates", &v), WEFT_OK);
    weft_release(vm, v);
    if (i == n / 10) early = memory;
  }
  (void)weft_collect(vm);
  assert_true(memory <= early + 64 * 1024);
  weft_free(vm);
}

/* Keys that a program computes go when no record has them any more. */
static void many_keys(void **state) {
  (void)state;
  size_t memory = 0, early = 0;
  WeftVM *vm = counted_vm(&memory);
  const char *program = "fn f(i) { let r = {}; for j in 0..1000 { r[f\"k{i}_{j}\"] = j }; len(r) }\nlet i = 0";
  assert_int_equal(weft_eval(vm, program, "keys", NULL), WEFT_OK);
  for (int i = 0, n = rounds_of(1000); i < n; i++) { /* of 1,000 keys each */
    gives(vm, "i += 1\nf(i)", "1000");
    if (i == n / 10) early = memory;
  }
  (void)weft_collect(vm);
  assert_true(memory <= early + 256 * 1024);
  weft_free(vm);
}

/* FNV-1a of 32 bits, which has no seed: whoever knows a hash finds texts that have the same one. */
static uint32_t fnv(uint32_t h, uint32_t word) {
  for (int i = 0; i < 4; i++) h = (h ^ (word >> 8 * i & 255)) * 16777619u;
  return h;
}

/* Two words of four letters that take the hash from h to the same one, by a walk through words until one repeats. */
static uint32_t letters(uint32_t i) {
  uint32_t word = 0;
  for (int k = 0; k < 4; k++) word |= ('a' + (i >> 4 * k & 15)) << 8 * k;
  return word;
}
static uint32_t same_hash(uint32_t h, char *one, char *other) {
  enum { SLOTS = 1 << 20 };
  static uint32_t first[SLOTS], second[SLOTS];
  static bool seen[SLOTS];
  memset(seen, 0, sizeof seen);
  for (uint32_t a = 0; a < 1u << 16; a++)
    for (uint32_t b = 0; b <= 0xffff; b += 0x1111) { /* one letter four times */
      uint32_t to = fnv(fnv(h, letters(a)), letters(b)), slot = to * 2654435761u >> 12;
      if (!seen[slot]) seen[slot] = true, first[slot] = a, second[slot] = b;
      else if (fnv(fnv(h, letters(first[slot])), letters(second[slot])) == to) {
        const uint32_t words[4] = {letters(first[slot]), letters(second[slot]), letters(a), letters(b)};
        memcpy(one, words, 8);
        memcpy(other, words + 2, 8);
        return to;
      }
    }
  return 0;
}

/* The texts of 14 places, each of which has two that give the same hash: 16,384 keys of one FNV hash. */
static double seconds_of_keys(WeftVM *vm, char (*parts)[2][9], bool spread) {
  struct timespec a, b;
  char key[14 * 8 + 9];
  const char *keys[16384];
  static char texts[16384][14 * 8 + 9];
  WeftValue *items[16384], *one = NULL, *record = NULL;
  assert_int_equal(weft_int(vm, 1, &one), WEFT_OK);
  for (int i = 0; i < 16384; i++) {
    key[0] = 0;
    for (int k = 0; k < 14; k++) memcpy(key + 8 * k, parts[k][i >> k & 1], 9);
    if (spread) snprintf(key + 104, 9, "%08x", (unsigned)i * 2654435761u);
    memcpy(texts[i], key, sizeof key);
    keys[i] = texts[i];
    items[i] = one;
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
  assert_int_equal(weft_record(vm, keys, items, 16384, &record), WEFT_OK);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
  weft_release(vm, record);
  weft_release(vm, one);
  return (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}

static void keys_of_one_hash(void **state) {
  WeftVM *vm = *state;
  char parts[14][2][9] = {{{0}}};
  uint32_t h = 2166136261u;
  for (int k = 0; k < 14; k++) {
    h = same_hash(h, parts[k][0], parts[k][1]);
    assert_true(h != 0 && memcmp(parts[k][0], parts[k][1], 8) != 0);
  }
  double least[2] = {1e9, 1e9}; /* of some: a busy machine */
  for (int i = 0; i < 5; i++)
    for (int spread = 0; spread < 2; spread++) {
      double t = seconds_of_keys(vm, parts, spread);
      if (t < least[spread]) least[spread] = t;
    }
  if (least[0] > 2 * least[1] + 0.002) fail_msg("%g s, other keys %g s", least[0], least[1]);
}

/* ---- modules of the host --------------------------------------------------------------------------- */

static WeftValue *new_module(WeftVM *vm, const char *name) {
  WeftValue *m = NULL;
  assert_int_equal(weft_module_new(vm, name, &m), WEFT_OK);
  assert_non_null(m);
  return m;
}

static void runs(WeftVM *vm, WeftValue *module, const char *program, const char *want) {
  WeftValue *v = NULL;
  if (weft_module_run(vm, module, program, strlen(program), "script", &v) != WEFT_OK)
    fail_msg("%s", weft_error_text(vm));
  assert_string_equal(weft_show(vm, v), want);
  weft_release(vm, v);
}

/* In the error's message. */
static void refuses(WeftVM *vm, WeftValue *module, const char *program, const char *message) {
  assert_int_equal(weft_module_run(vm, module, program, strlen(program), "script", NULL), WEFT_ERROR);
  assert_non_null(strstr(weft_error_message(vm), message));
}

static WeftStatus adds_one(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  int64_t n;
  ++*(int *)context;
  if (count != 1 || weft_as_int(vm, args[0], &n) != WEFT_OK) return weft_fail(vm, "type", "line takes a whole number");
  return weft_int(vm, n + 1, result);
}
static void counts_down(void *context) { *(int *)context = -1; }

static void modules_of_the_host(void **state) {
  WeftVM *vm = *state;
  WeftValue *a = new_module(vm, "a"), *b = new_module(vm, "b"), *canvas = new_module(vm, "canvas"), *v = NULL;
  int calls = 0;
  gives(vm, "let x = 0\nlet main_only = 1\nx", "0");
  runs(vm, a, "let x = 1\nlet _hidden = 5\nfn f(n) = n + x\nf(1)", "2");
  runs(vm, b, "let x = 10\nfn f(n) = n + x\nf(1)", "11");
  runs(vm, a, "x += 1\nf(1)", "3");
  runs(vm, b, "f(1)", "11");
  gives(vm, "x", "0");
  refuses(vm, a, "main_only", "main_only is not declared");
  refuses(vm, b, "_hidden", "_hidden is not declared");
  fails(vm, "f(1)", "name", "f is not declared");
  /* the host reads and sets variables */
  assert_int_equal(weft_module_get(vm, a, "x", &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "2");
  assert_int_equal(weft_module_set(vm, b, "from_a", v), WEFT_OK);
  weft_release(vm, v);
  runs(vm, b, "from_a * 2", "4");
  assert_int_equal(weft_module_get(vm, a, "from_a", &v), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "name");
  /* one as a namespace of host functions, in a script and compiled */
  assert_int_equal(weft_module_define(vm, canvas, "line", adds_one, &calls, counts_down), WEFT_OK);
  assert_int_equal(weft_module_set(vm, a, "canvas", canvas), WEFT_OK);
  runs(vm, a, "canvas.line(4)", "5");
  runs(vm, a, "let s = 0\nfor i in 0..300 { s += canvas.line(i) }\ns", "45150");
  assert_int_equal(calls, 301);
  refuses(vm, a, "canvas.line(\"no\")", "line takes a whole number");
  refuses(vm, a, "canvas.circle(1)", "module 'canvas' has no 'circle'");
  refuses(vm, a, "canvas.line = 3", "not assigned from outside");
  refuses(vm, b, "canvas.line(4)", "canvas is not declared");
  assert_string_equal(weft_type(vm, canvas), "module");
  /* a script's own variables, read by the program that is given it */
  assert_int_equal(weft_set_global(vm, "a", a), WEFT_OK);
  gives(vm, "a.f(10)", "12");
  fails(vm, "a._hidden", "name", "private");
  gives(vm, "let t = 0\nfor i in 0..300 { t += a.f(i) }\nt", "45450");
  assert_int_equal(weft_module_free(vm, canvas), WEFT_OK);
  assert_int_equal(calls, -1); /* it was given back */
  refuses(vm, a, "canvas.line(4)", "module 'canvas' has no 'line'");
  assert_int_equal(weft_module_free(vm, a), WEFT_OK);
  fails(vm, "a.f(10)", "name", "module 'a' has no 'f'");
  assert_int_equal(weft_module_free(vm, b), WEFT_OK);
}

static WeftStatus frees_module(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)args, (void)count;
  return weft_int(vm, weft_module_free(vm, context), result);
}

static void wrong_modules(void **state) {
  WeftVM *vm = *state, *other = weft_new(NULL);
  WeftValue *m = new_module(vm, "m"), *v = NULL, *f = NULL, *n = NULL, *standard = NULL;
  assert_int_equal(weft_module_new(vm, "linalg", &v), WEFT_MISUSE);
  assert_int_equal(weft_module_new(vm, "let", &v), WEFT_MISUSE);
  assert_int_equal(weft_module_new(vm, "no name", &v), WEFT_MISUSE);
  assert_int_equal(weft_module_new(vm, NULL, &v), WEFT_MISUSE);
  assert_int_equal(weft_module_new(vm, "m", NULL), WEFT_MISUSE);
  assert_int_equal(weft_module_new(NULL, "m", &v), WEFT_MISUSE);
  assert_int_equal(weft_eval(vm, "linalg", "test", &standard), WEFT_OK);
  assert_int_equal(weft_int(vm, 1, &n), WEFT_OK);
  WeftValue *none[] = {NULL, n, standard};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(weft_module_run(vm, none[i], "1", 1, "test", &v), WEFT_MISUSE);
    assert_int_equal(weft_module_get(vm, none[i], "x", &v), WEFT_MISUSE);
    assert_int_equal(weft_module_set(vm, none[i], "x", n), WEFT_MISUSE);
    assert_int_equal(weft_module_define(vm, none[i], "x", adds_one, NULL, NULL), WEFT_MISUSE);
    assert_int_equal(weft_module_free(vm, none[i]), WEFT_MISUSE);
  }
  assert_int_equal(weft_module_run(other, m, "1", 1, "test", &v), WEFT_MISUSE);
  assert_int_equal(weft_module_run(vm, m, NULL, 1, "test", &v), WEFT_MISUSE);
  assert_int_equal(weft_module_run(vm, m, "1", 1, "\xff", &v), WEFT_MISUSE);
  assert_int_equal(weft_module_set(vm, m, "let", n), WEFT_MISUSE);
  assert_int_equal(weft_module_set(vm, m, "x", NULL), WEFT_MISUSE);
  assert_int_equal(weft_module_define(vm, m, "x", NULL, NULL, NULL), WEFT_MISUSE);
  refuses(vm, m, "1 +", "end");
  runs(vm, m, "", "nil");
  /* not while a program runs, in it or elsewhere */
  assert_int_equal(weft_module_define(vm, m, "ends", frees_module, m, NULL), WEFT_OK);
  runs(vm, m, "ends()", "3"); /* WEFT_MISUSE */
  /* a function that outlives its module finds none of its variables, and the built-ins */
  runs(vm, m, "let k = 2\nfn uses(x) = k * x\nfn plain(x) = sum(x)\n0", "0");
  assert_int_equal(weft_module_get(vm, m, "uses", &f), WEFT_OK);
  assert_int_equal(weft_module_get(vm, m, "plain", &v), WEFT_OK);
  assert_int_equal(weft_set_global(vm, "uses", f), WEFT_OK);
  assert_int_equal(weft_set_global(vm, "plain", v), WEFT_OK);
  weft_release(vm, f);
  weft_release(vm, v);
  WeftValue *again = weft_retain(vm, m);
  assert_int_equal(weft_module_free(vm, m), WEFT_OK);
  assert_int_equal(weft_module_free(vm, again), WEFT_MISUSE);
  assert_int_equal(weft_module_run(vm, again, "1", 1, "test", &v), WEFT_MISUSE);
  /* the next module is another one while either is held */
  WeftValue *next = new_module(vm, "next");
  runs(vm, next, "let k = 100\n0", "0");
  fails(vm, "uses(3)", "name", "k");
  gives(vm, "plain([1.0, 2.0])", "3.0");
  weft_release(vm, again);
  assert_int_equal(weft_module_free(vm, next), WEFT_OK);
  weft_release(vm, n);
  weft_release(vm, standard);
  weft_free(other);
}

/* Scripts that are loaded again and again leave nothing: the least memory of a thousand rounds is that of the thousand
 * before. What a VM makes once and keeps, as the compiler of a kind of loop when the clock says so, may come in
 * between; a leak comes in each of them. */
static void modules_come_and_go(void **state) {
  (void)state;
  enum { ROUNDS = 1000, MOST = 6 };
  size_t memory = 0, before = 0, more = SIZE_MAX;
  WeftVM *vm = counted_vm(&memory);
  /* What compiles native loops comes to be when one is compiled, and is kept. */
  gives(vm, "let w = 0\nfor i in 0..1000000 { w += i % 7 }\n0", "0");
  for (int part = 0; part < MOST && (part < 3 || more > 32 * 1024); part++) {
    size_t least = SIZE_MAX;
    for (int i = 0; i < ROUNDS; i++) {
      WeftValue *m = new_module(vm, "plugin");
      runs(vm, m, "let k = 3\nfn f(x) { let s = 0.0; for v in x { s += v * k }; s }\n"
                  "fn g(n) = if n == 0 { 0 } else { h(n - 1) }\nfn h(n) = g(n)\nf(arange(100.0)) + g(4)", "14850.0");
      assert_int_equal(weft_module_free(vm, m), WEFT_OK);
      if (memory < least) least = memory;
    }
    more = least > before ? least - before : 0;
    before = least;
  }
  if (more > 32 * 1024) fail_msg("%zu bytes more", more);
  weft_free(vm);
  assert_int_equal(memory, 0);
}

/* ---- decompositions that are left behind ---------------------------------------------------------- */

/* The program ends by its deadline inside of LAPACK, and its VM is freed at once; more of them than may be left at a
 * time. What they did not finish harms nobody: another VM has its results, within its memory. */
static void left_behind(void **state) {
  (void)state;
  WeftVM *vm;
  for (int i = 0; i < 6; i++) {
    WeftOptions o = WEFT_OPTIONS_INIT;
    o.deadline = 0.1;
    o.threads = 1; /* those of OpenBLAS wait for each other on a busy machine */
    o.memory = 128 << 20;
    vm = weft_new(&o);
    assert_non_null(vm);
    WeftValue *v = NULL;
    WeftStatus status = weft_eval(vm, "let a = rand((450, 450))\nwhile true { linalg.svd(a) }", "test", &v);
    if (status == WEFT_ERROR && strcmp(weft_error_kind(vm), "unsupported") == 0) { /* no OpenBLAS here */
      weft_free(vm);
      skip();
    }
    assert_int_equal(status, WEFT_ERROR);
    assert_int_equal(weft_error_limit(vm), WEFT_LIMIT_DEADLINE);
    weft_free(vm);
  }
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.memory = 64 << 20;
  o.threads = 1;
  vm = weft_new(&o);
  gives(vm, "let a = rand((300, 300))\nlet s = a + a.T\nlet (w, v) = linalg.eigh(s)\n"
            "max(abs(s @ v - v * w)) < 1e-10", "true");
  /* copies count as long as they are there, and go */
  uint64_t left = weft_memory_left(vm);
  gives(vm, "linalg.svdvals(rand((700, 700))).shape", "(700,)");
  assert_true(weft_memory_left(vm) >= left - (1 << 20));
  assert_true(stat_named(vm, "peak") >= 2 * 700 * 700 * 8.0);
  /* errors are the same there */
  fails(vm, "linalg.inv(zeros((700, 700)))", "value", "linalg.inv: the matrix is singular");
  fails(vm, "linalg.eigvals(ones((600, 600)) * nan)", "value", "linalg.eigvals: a matrix holds NaN or an infinity");
  /* where there is no room for copies, it is done in place */
  gives(vm, "let b = eye(1200) * 2.0\nsum(linalg.inv(b))", "600.0");
  fails(vm, "linalg.inv(eye(2500))", "limit", "memory limit");
  weft_free(vm);
}

/* ---- what is left, and what is kept -------------------------------------------------------------- */

static void options_of_other_languages(void **state) {
  (void)state;
  struct {
    WeftOptions o;
    char behind[8];
  } s;
  memset(&s, 0x5a, sizeof s);
  weft_options_init(&s.o, sizeof s.o);
  WeftOptions want = WEFT_OPTIONS_INIT;
  assert_int_equal(s.o.size, want.size);
  assert_true(!s.o.resize && !s.o.output && !s.o.backend && s.o.hot == 0 && s.o.fuel == 0 && !s.o.allow_files);
  for (size_t i = 0; i < sizeof s.behind; i++) assert_int_equal(s.behind[i], 0x5a);
  WeftVM *vm = weft_new(&s.o);
  assert_non_null(vm);
  gives(vm, "1 + 1", "2");
  weft_free(vm);
  /* an older host's, which is shorter: nothing behind it is written */
  memset(&s, 0x5a, sizeof s);
  weft_options_init(&s.o, offsetof(WeftOptions, log));
  assert_int_equal(s.o.size, offsetof(WeftOptions, log));
  assert_int_equal(((unsigned char *)&s.o)[offsetof(WeftOptions, log)], 0x5a);
  weft_options_init(&s.o, 1); /* no struct of weft.h: left as it is */
  assert_int_equal(s.o.size, offsetof(WeftOptions, log));
  weft_options_init(NULL, sizeof s.o);
}

static WeftStatus tells_fuel(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)args, (void)count;
  *(uint64_t *)context = weft_fuel_left(vm);
  return weft_nil(vm, result);
}

static void what_is_left(void **state) {
  WeftVM *vm = *state;
  assert_true(weft_memory_left(vm) == UINT64_MAX && weft_fuel_left(vm) == UINT64_MAX && isinf(weft_time_left(vm)));
  weft_set_limits(vm, 64 << 20, 100000, 1000);
  assert_true(weft_memory_left(vm) < 64 << 20 && weft_memory_left(vm) > 32 << 20);
  assert_true(weft_fuel_left(vm) == 100000 && weft_time_left(vm) <= 1000 && weft_time_left(vm) > 900);
  uint64_t memory = weft_memory_left(vm), inside = 0;
  assert_int_equal(weft_define(vm, "tells", tells_fuel, &inside, NULL), WEFT_OK);
  gives(vm, "let a = zeros(1000000)\nfor i in 0..5000 { }\ntells()\n1", "1");
  assert_true(weft_memory_left(vm) <= memory - 8000000);
  assert_true(weft_fuel_left(vm) <= 95000 && weft_fuel_left(vm) > 80000);
  assert_true(inside >= weft_fuel_left(vm) && inside <= 95000);
  fails(vm, "while true { }", "limit", "the fuel is used up");
  assert_int_equal(weft_fuel_left(vm), 0);
  weft_set_limits(vm, 1, 0, 1e-9);
  assert_true(weft_memory_left(vm) == 0 && weft_time_left(vm) == 0 && weft_fuel_left(vm) == UINT64_MAX);
  weft_set_limits(vm, 0, 0, 0);
  assert_true(weft_memory_left(NULL) == 0 && weft_fuel_left(NULL) == 0 && weft_time_left(NULL) == 0);
}

static void collected(void **state) {
  (void)state;
  size_t memory = 0;
  WeftVM *vm = counted_vm(&memory);
  assert_int_equal(weft_collect(NULL), 0);
  /* two cells that hold each other, and an array behind them; one that is still reached */
  gives(vm, "fn ring() { let a = ref(nil); let b = ref((a, zeros(200000))); a.value = b; 0 }\nring()\n"
            "let kept = ref(zeros(1000))\n0", "0");
  size_t before = memory, given = weft_collect(vm);
  assert_true(given >= 1600000 && memory + 1600000 <= before);
  assert_true(weft_collect(vm) < 4096);
  gives(vm, "sum(kept.value)", "0.0");
#ifndef __SANITIZE_ADDRESS__ /* an array that was freed waits for the next one */
  gives(vm, "sum(zeros(500000))", "0.0");
  before = memory;
  assert_true(weft_collect(vm) >= 4000000 && memory + 4000000 <= before);
#endif
  weft_free(vm);
  assert_int_equal(memory, 0);
}

/* Errors show the text of code that is still there, however many programs came after it, and so does an error that is
 * raised again. */
static void places_outlive_programs(void **state) {
  WeftVM *vm = *state;
  WeftValue *v = NULL;
  gives(vm, "fn old(x) {\n  x @ [1.0]\n}; fn fails() { error(\"kept\") }; let kept = 0; 0", "0");
  gives(vm, "let kept = try { error(\"kept\") } catch e { e }; len(kept)", "3");
  for (int i = 0; i < 1000; i++) gives(vm, "1 + 1", "2");
  assert_int_equal(weft_eval(vm, "old([1.0, 2.0])", "later", &v), WEFT_ERROR);
  assert_non_null(strstr(weft_error_text(vm), "--> test:2:3\n  |\n2 |   x @ [1.0]\n"));
  assert_non_null(strstr(weft_error_text(vm), "in old, called at later:1:1"));
  assert_int_equal(weft_eval(vm, "error(kept)", "later", &v), WEFT_ERROR);
  assert_non_null(strstr(weft_error_text(vm), "1 | let kept = try { error(\"kept\") }"));
}

static WeftStatus evaluates(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)args, (void)count;
  for (int i = 0; i < 3000; i++)
    if (weft_eval(vm, "2 + 3 * 4   # a program inside of a program, of which nothing is left when it is over", "inner",
                  NULL) != WEFT_OK)
      return WEFT_ERROR;
  *(double *)context = stat_named(vm, "bytes_now");
  return weft_int(vm, 1, result);
}

/* The same where a host function evaluates, while a program runs. */
static void evaluations_inside_leave_nothing(void **state) {
  WeftVM *vm = *state;
  double bytes = 0;
  assert_int_equal(weft_define(vm, "more", evaluates, &bytes, NULL), WEFT_OK);
  gives(vm, "more()", "1");
  double before = bytes;
  gives(vm, "more() + more() + more()", "3");
  assert_true(before > 0 && bytes < before + 64 * 1024);
}

static void drop_output(void *context, const char *text, size_t n) { (void)context, (void)text, (void)n; }

/* What fails gives nothing: each built-in function with values it was not made for, called by the host. */
static void calls_that_fail(void **state) {
  (void)state;
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.output = drop_output;
  WeftVM *vm = weft_new(&options);
  static const char *const values[] = {"nil", "\"{\\\"a\\\":\"", "(1, (2, nil))", "{a: 1}", "x => x"};
  WeftBuiltin b = {.size = sizeof b};
  WeftValue *args[3], *f = NULL, *out;
  unsigned failed = 0;
  for (size_t i = 0; weft_builtin(i, &b); i++) {
    const char *spared[] = {"exit", "sleep", "read_line"};
    bool spare = b.kind != WEFT_BUILTIN_FUNCTION;
    for (size_t k = 0; k < COUNT_OF(spared); k++) spare |= strcmp(b.name, spared[k]) == 0;
    if (spare) continue;
    assert_int_equal(weft_eval(vm, b.name, "test", &f), WEFT_OK);
    for (size_t k = 0; k < COUNT_OF(values); k++) {
      for (size_t n = 0; n < 3; n++)
        assert_int_equal(weft_eval(vm, values[(k + n) % COUNT_OF(values)], "test", &args[n]), WEFT_OK);
      for (size_t n = 0; n <= 3; n++) {
        out = f;
        if (weft_call(vm, f, args, n, &out) == WEFT_OK) weft_release(vm, out);
        else assert_null(out), failed++;
      }
      for (size_t n = 0; n < 3; n++) weft_release(vm, args[n]);
    }
    weft_release(vm, f);
  }
  assert_true(failed > 1000);
  gives(vm, "sum([1, 2])", "3");
  weft_free(vm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_that_fail),
      cmocka_unit_test(no_vm),
      cmocka_unit_test_setup_teardown(wrong_arguments, setup, teardown),
      cmocka_unit_test_setup_teardown(wrong_arrays, setup, teardown),
      cmocka_unit_test_setup_teardown(host_functions, setup, teardown),
      cmocka_unit_test_setup_teardown(errors_of_reading_have_a_place, setup, teardown),
      cmocka_unit_test_setup_teardown(limits_come_and_go, setup, teardown),
      cmocka_unit_test(texts_without_a_vm),
      cmocka_unit_test_setup_teardown(values_of_another_vm, setup, teardown),
      cmocka_unit_test_setup_teardown(an_argument_that_is_given_back, setup, teardown),
      cmocka_unit_test_setup_teardown(texts_with_a_length, setup, teardown),
      cmocka_unit_test_setup_teardown(programs_are_laid_out, setup, teardown),
      cmocka_unit_test(a_release_that_calls_the_vm),
      cmocka_unit_test(a_failed_call_gives_nothing_back),
      cmocka_unit_test_setup_teardown(numbers_keep_their_point, setup, teardown),
      cmocka_unit_test(limits_are_told_apart),
      cmocka_unit_test(the_deadline_holds_behind_host_functions),
      cmocka_unit_test_setup_teardown(interrupt_between_calls, setup, teardown),
      cmocka_unit_test(cleared_options),
      cmocka_unit_test(evaluations_leave_nothing),
      cmocka_unit_test(many_evaluations),
      cmocka_unit_test(many_keys),
      cmocka_unit_test_setup_teardown(keys_of_one_hash, setup, teardown),
      cmocka_unit_test_setup_teardown(modules_of_the_host, setup, teardown),
      cmocka_unit_test_setup_teardown(wrong_modules, setup, teardown),
      cmocka_unit_test(modules_come_and_go),
      cmocka_unit_test(left_behind),
      cmocka_unit_test(options_of_other_languages),
      cmocka_unit_test_setup_teardown(what_is_left, setup, teardown),
      cmocka_unit_test(collected),
      cmocka_unit_test_setup_teardown(places_outlive_programs, setup, teardown),
      cmocka_unit_test_setup_teardown(evaluations_inside_leave_nothing, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
