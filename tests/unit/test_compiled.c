/* test_compiled.c — programs as bytes (weft_compile, weft_load_compiled): they give what their text gives; bytes that
 * were cut, changed or made up are refused or proved, whoever made them. */
#define _GNU_SOURCE /* memmem, mkdtemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/weft.h"

static const char sample[] =
    "## Adds.\n"
    "fn add(a, b=[1, 2]) = a + b\n"
    "fn fact(n) = if n < 2 { 1 } else { n * fact(n - 1) }\n"
    "fn even(n) = if n == 0 { true } else { odd(n - 1) }\n"
    "fn odd(n) = if n == 0 { false } else { even(n - 1) }\n"
    "let k = 3\n"
    "let r = {a: [1.5, 2.5], b: (1, \"é\")}\n"
    "r.a[1] = 4\n"
    "let total = 0\n"
    "for i in 0..20 {\n"
    "  if i % 7 == 6 { continue }\n"
    "  total += i * k\n"
    "}\n"
    "let caught = try { [1, 2][5] } catch e { e.kind }\n"
    "let f = map(x => x * k, (1, 2, 3))\n"
    "let (p, ...q) = f\n"
    "fn sized(x: f64[n], y: f64[n]) = sum(x * y)\n"
    "(add(1), add(1, b=2), fact(10), even(9), r, total, caught, f, q, sized([1.0, 2.0], [3.0, 4.0]), f\"{k:03d}\",\n"
    " grad(x => sum(x ** 2))([1.0, 2.0]))\n";

typedef struct Bytes {
  unsigned char *at;
  size_t count;
} Bytes;

static Bytes compiled(WeftVM *vm, WeftValue *module, const char *text, const char *name, unsigned flags) {
  const void *bytes;
  Bytes b;
  if (weft_compile(vm, module, text, strlen(text), name, flags, &bytes, &b.count) != WEFT_OK)
    fail_msg("%s", weft_error_text(vm));
  assert_true(weft_is_compiled(bytes, b.count));
  b.at = malloc(b.count);
  memcpy(b.at, bytes, b.count);
  return b;
}

static char printed[2000];
static void print(void *context, const char *text, size_t length) {
  (void)context;
  const size_t used = strlen(printed);
  snprintf(printed + used, sizeof printed - used, "%.*s", (int)length, text);
}

static WeftVM *vm_of(const char *backend) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.backend = backend;
  o.hot = backend ? 1 : 0;
  o.output = print;
  printed[0] = 0;
  return weft_new(&o);
}

/* What a program prints and shows as, or its error; to be freed. */
static char *outcome(WeftVM *vm, WeftStatus status, WeftValue *v) {
  char *text;
  assert_true(asprintf(&text, "%s%s", printed, status == WEFT_OK ? weft_show(vm, v) : weft_error_text(vm)) >= 0);
  weft_release(vm, v);
  weft_free(vm);
  return text;
}

static char *outcome_of_text(const char *text) {
  WeftVM *vm = vm_of(NULL);
  WeftValue *v = NULL;
  const WeftStatus status = weft_eval(vm, text, "sample.weft", &v);
  return outcome(vm, status, v);
}

static char *outcome_of_bytes(Bytes b, const char *backend) {
  WeftVM *vm = vm_of(backend);
  WeftValue *v = NULL;
  const WeftStatus status = weft_load_compiled(vm, NULL, b.at, b.count, "sample.weftc", &v);
  return outcome(vm, status, v);
}

static void gives_what_the_text_gives(void **state) {
  static const char *const programs[] = {
      sample, "", "1 + [2, 3]", "fn f(x) {\n  let yy = x\n  yy + [1, 2, 3]\n}\nf([1, 2])", "let xs = (1, 2)\nxs[7]\n",
      "let g = 3\ng(1)\n", "assert(1 > 2, \"no\")", "sum(3, axis=2)",
      "for i in 0..100 { if i == 50 { 1 // (i - 50) } }",
      "## Adds.\nfn add(a, b=[1, 2], ...c) = a + b\nhelp(add)",
      "linalg.inv([[1.0, 2.0], [2.0, 4.0]])", "fn f(a, ...b, c=1) = (a, b, c)\n(f(1, 2, 3, c=4), str(f))",
      "import linalg as l\nl.det([[2.0, 0.0], [0.0, 3.0]])", "let x = 1\nlet y = x + (let z = 3; z)\n",
      "error(\"é ä\", kind=\"value\")", "let é = [1]\né[é[0]]"};
  static const char *const backends[] = {NULL, "eager", "interp", "mir"};
  (void)state;
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    WeftVM *vm = weft_new(NULL);
    const void *bytes;
    size_t count;
    if (weft_compile(vm, NULL, programs[i], strlen(programs[i]), "sample.weft", 0, &bytes, &count) != WEFT_OK) {
      char *want = outcome_of_text(programs[i]);
      assert_string_equal(weft_error_text(vm), want);
      free(want);
      weft_free(vm);
      continue;
    }
    Bytes b = compiled(vm, NULL, programs[i], "sample.weft", 0);
    weft_free(vm);
    for (size_t k = 0; k < sizeof backends / sizeof *backends; k++) {
      char *want = outcome_of_text(programs[i]), *got = outcome_of_bytes(b, backends[k]);
      assert_string_equal(got, want);
      free(want);
      free(got);
    }
    free(b.at);
  }
}

/* Without the text: the same values, and places with line and column. */
static void stripped_programs_tell_places(void **state) {
  (void)state;
  WeftVM *vm = weft_new(NULL);
  Bytes whole = compiled(vm, NULL, sample, "sample.weft", 0),
        b = compiled(vm, NULL, sample, "sample.weft", WEFT_COMPILE_STRIP);
  char *want = outcome_of_text(sample), *got = outcome_of_bytes(b, NULL);
  assert_string_equal(got, want);
  assert_true(b.count < whole.count);
  assert_null(memmem(b.at, b.count, "fact(n - 1)", 11));
  assert_non_null(memmem(whole.at, whole.count, "fact(n - 1)", 11));
  free(want);
  free(got);
  free(b.at);
  b = compiled(vm, NULL, "let é = 1\nfn f(x) {\n  let s = \"äöü\"; x + [1, 2]\n}\nf([1, 2, 3])\n", "é.weft",
               WEFT_COMPILE_STRIP);
  got = outcome_of_bytes(b, NULL);
  assert_non_null(strstr(got, "  --> é.weft:3:18\n"));
  assert_null(strstr(got, "äöü"));
  assert_null(strstr(got, " | "));
  free(got);
  free(b.at);
  free(whole.at);
  weft_free(vm);
}

/* ---- names of the host, modules, imports ---------------------------------------------------------------------- */

static WeftStatus three(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context, (void)args, (void)count;
  return weft_int(vm, 3, result);
}

static void names_of_the_host_must_be_there(void **state) {
  (void)state;
  WeftVM *vm = weft_new(NULL), *other = weft_new(NULL);
  WeftValue *v = NULL;
  const void *bytes;
  size_t count;
  assert_int_equal(weft_compile(vm, NULL, "three()", 7, NULL, 0, &bytes, &count), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "name");
  assert_null(bytes);
  assert_int_equal(weft_define(vm, "three", three, NULL, NULL), WEFT_OK);
  Bytes b = compiled(vm, NULL, "let mine = three() + 1\nmine", "host.weft", 0);
  assert_int_equal(weft_get_global(vm, "mine", &v), WEFT_ERROR); /* nothing is declared */
  assert_int_equal(weft_load_compiled(other, NULL, b.at, b.count, "host.weftc", &v), WEFT_ERROR);
  assert_string_equal(weft_error_kind(other), "name");
  assert_string_equal(weft_error_message(other),
                      "cannot load \"host.weftc\": three is not declared here, and was where it was compiled");
  assert_int_equal(weft_define(other, "three", three, NULL, NULL), WEFT_OK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(weft_load_compiled(other, NULL, b.at, b.count, NULL, &v), WEFT_OK);
    assert_string_equal(weft_show(other, v), "4");
    weft_release(other, v);
  }
  assert_int_equal(weft_get_global(other, "mine", &v), WEFT_OK);
  weft_release(other, v);
  /* a program that declares the name itself needs nobody to */
  Bytes own = compiled(vm, NULL, "let three = 5\nthree", "own.weft", 0);
  WeftVM *third = weft_new(NULL);
  assert_int_equal(weft_load_compiled(third, NULL, own.at, own.count, NULL, &v), WEFT_OK);
  assert_string_equal(weft_show(third, v), "5");
  weft_release(third, v);
  free(own.at);
  free(b.at);
  weft_free(third);
  weft_free(other);
  weft_free(vm);
}

static void modules_of_the_host_load_them(void **state) {
  (void)state;
  WeftVM *vm = weft_new(NULL);
  WeftValue *module, *v = NULL, *number;
  assert_int_equal(weft_module_new(vm, "script", &module), WEFT_OK);
  assert_int_equal(weft_int(vm, 20, &number), WEFT_OK);
  assert_int_equal(weft_module_set(vm, module, "given", number), WEFT_OK);
  Bytes b = compiled(vm, module, "fn twice(x) = 2 * x\ntwice(given) + sum([1, 2])", "script.weft", 0);
  assert_int_equal(weft_load_compiled(vm, module, b.at, b.count, NULL, &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "43");
  weft_release(vm, v);
  assert_int_equal(weft_get_global(vm, "twice", &v), WEFT_ERROR);
  assert_int_equal(weft_load_compiled(vm, NULL, b.at, b.count, NULL, &v), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "name");
  assert_int_equal(weft_load_compiled(vm, number, b.at, b.count, NULL, &v), WEFT_MISUSE);
  assert_int_equal(weft_module_free(vm, module), WEFT_OK);
  weft_release(vm, number);
  free(b.at);
  weft_free(vm);
}

static void put_file(const char *path, const void *bytes, size_t count) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, count, f), count);
  assert_int_equal(fclose(f), 0);
}

static void files_hold_them(void **state) {
  (void)state;
  char folder[] = "/tmp/weft-compiled-XXXXXX", main_path[64], lib_path[64], text_path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(main_path, sizeof main_path, "%s/main.weftc", folder);
  snprintf(lib_path, sizeof lib_path, "%s/lib.weftc", folder);
  snprintf(text_path, sizeof text_path, "%s/other.weft", folder);
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.allow_imports = true;
  WeftVM *vm = weft_new(&o);
  WeftValue *v = NULL;
  Bytes lib = compiled(vm, NULL, "let seven = 7\nfn bad() = [1][2]", "lib.weft", 0);
  Bytes b = compiled(vm, NULL, "import \"lib.weftc\" as l\nimport \"other.weft\" as o\n(l.seven, o.eight)", "main.weft",
                     0);
  put_file(lib_path, lib.at, lib.count);
  put_file(main_path, b.at, b.count);
  put_file(text_path, "let eight = 8\n", 14);
  if (weft_load_file(vm, main_path, &v) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
  assert_string_equal(weft_show(vm, v), "(7, 8)");
  weft_release(vm, v);
  assert_int_equal(weft_load_compiled(vm, NULL, b.at, b.count, main_path, &v), WEFT_OK);
  weft_release(vm, v);
  WeftVM *again = weft_new(&o);
  lib.at[lib.count / 2] ^= 1;
  put_file(lib_path, lib.at, lib.count);
  assert_int_equal(weft_load_file(again, main_path, &v), WEFT_ERROR);
  assert_string_equal(weft_error_kind(again), "syntax");
  assert_non_null(strstr(weft_error_message(again), "lib.weftc\": it was cut or changed since it was compiled"));
  weft_free(again);
  unlink(main_path);
  unlink(lib_path);
  unlink(text_path);
  rmdir(folder);
  free(lib.at);
  free(b.at);
  weft_free(vm);
}

/* ---- bytes that are wrong ------------------------------------------------------------------------------------- */

static void refused(WeftVM *vm, const void *bytes, size_t count, const char *kind, const char *why) {
  WeftValue *v = NULL;
  assert_int_equal(weft_load_compiled(vm, NULL, bytes, count, "bad.weftc", &v), WEFT_ERROR);
  assert_null(v);
  if (strcmp(weft_error_kind(vm), kind) != 0 || !strstr(weft_error_message(vm), why))
    fail_msg("%zu bytes: %s: %s", count, weft_error_kind(vm), weft_error_message(vm));
  assert_null(strchr(weft_error_message(vm), '\n'));
}

static void usable(WeftVM *vm) {
  WeftValue *v = NULL;
  assert_int_equal(weft_eval(vm, "1 + 1", "after", &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "2");
  weft_release(vm, v);
}

enum { HEAD = 24, TABLES_AT = 8, SUM_AT = 16 };

static void changed_bytes_are_refused(void **state) {
  (void)state;
  WeftVM *vm = weft_new(NULL);
  Bytes b = compiled(vm, NULL, sample, "sample.weft", 0);
  for (size_t n = 0; n < b.count; n += n < 200 ? 1 : 37)
    refused(vm, b.at, n, "syntax", n < 4 ? "no compiled program" : n < HEAD ? "end early" : "cut or changed");
  for (size_t i = 0; i < b.count; i++) {
    const unsigned char keep = b.at[i];
    b.at[i] = (unsigned char)(keep ^ (1u << (i % 8)));
    if (i < 4) refused(vm, b.at, b.count, "syntax", "these bytes are no compiled program");
    else if (i < SUM_AT) refused(vm, b.at, b.count, "unsupported", "another version of Weft: compile it again");
    else refused(vm, b.at, b.count, "syntax", "it was cut or changed since it was compiled");
    b.at[i] = keep;
  }
  refused(vm, "", 0, "syntax", "no compiled program");
  refused(vm, NULL, 0, "syntax", "no compiled program");
  refused(vm, "let x = 1", 9, "syntax", "no compiled program");
  assert_false(weft_is_compiled("let x = 1", 9));
  assert_false(weft_is_compiled(NULL, 0));
  usable(vm);
  free(b.at);
  weft_free(vm);
}

static void make_sum_fit(Bytes b) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = HEAD; i < b.count; i++) h = (h ^ b.at[i]) * 0x100000001b3u;
  for (int i = 0; i < 8; i++) b.at[SUM_AT + i] = (unsigned char)(h >> (8 * i));
}

/* Who means harm makes the sum fit: every byte changed in three ways, and what is proved then runs within limits, in
 * the interpreter and compiled at once. Bytes of the text and of its length are few among them: it stands in front. */
static void hostile_bytes_end_in_one_error(void **state) {
  (void)state;
  WeftVM *maker = weft_new(NULL);
  Bytes b = compiled(maker, NULL, sample, "sample.weft", 0);
  const size_t text_at = HEAD + 4 + strlen("sample.weft") + 1 + 4 + strlen(sample);
  size_t ran = 0, refusals = 0;
  WeftVM *vm = NULL;
  for (size_t i = HEAD; i < b.count; i++) {
    if (i > HEAD + 24 && i < text_at) continue;
    for (unsigned k = 0; k < 3; k++) {
      const unsigned char keep = b.at[i];
      b.at[i] = (unsigned char)(k == 0 ? keep ^ 1u << (i % 8) : k == 1 ? keep + 1u : ~(unsigned)keep);
      make_sum_fit(b);
      if (!vm || (i * 3 + k) % 64 == 0) {
        weft_free(vm);
        WeftOptions o = WEFT_OPTIONS_INIT;
        o.memory = 64 << 20;
        o.backend = i % 2 ? "mir" : "eager";
        o.hot = 1;
        vm = weft_new(&o);
        assert_non_null(vm);
      }
      weft_set_limits(vm, 64 << 20, 20000, 0);
      WeftValue *v = NULL;
      WeftStatus status = weft_load_compiled(vm, NULL, b.at, b.count, "bad.weftc", &v);
      if (status == WEFT_OK) ran++;
      else if (status != WEFT_ERROR || !*weft_error_message(vm) || !*weft_error_text(vm)) fail_msg("byte %zu", i);
      else if (strncmp(weft_error_message(vm), "cannot load", 11) == 0) refusals++;
      if (status == WEFT_OK && v) (void)weft_show(vm, v);
      weft_release(vm, v);
      b.at[i] = keep;
    }
  }
  weft_set_limits(vm, 0, 0, 0);
  WeftVM *fresh = weft_new(NULL);
  usable(fresh);
  weft_free(fresh);
  assert_true(refusals > 500); /* most are no program */
  assert_true(ran > 10);       /* some are another one */
  weft_free(vm);
  weft_free(maker);
  free(b.at);
}

/* A few bytes that stand for many: the memory limit holds. */
static void large_counts_are_refused(void **state) {
  (void)state;
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.memory = 64 << 20;
  WeftVM *vm = weft_new(&o);
  Bytes b = compiled(vm, NULL, "1\n2", "x", WEFT_COMPILE_STRIP);
  const size_t widths = HEAD + 4 + 1 + 1 + 4;
  for (unsigned width = 0; width < 7; width++) {
    b.at[widths] = (unsigned char)width;
    memset(b.at + widths + 1, 0xff, 4);
    make_sum_fit(b);
    refused(vm, b.at, b.count, "syntax", "its text is malformed");
  }
  usable(vm);
  free(b.at);
  weft_free(vm);
}

/* ---- misuse, refused memory, limits -------------------------------------------------------------------------- */

static void misuse_changes_nothing(void **state) {
  (void)state;
  WeftVM *vm = weft_new(NULL);
  const void *bytes = vm;
  size_t count = 1;
  assert_int_equal(weft_compile(NULL, NULL, "1", 1, NULL, 0, &bytes, &count), WEFT_MISUSE);
  assert_null(bytes);
  assert_int_equal(count, 0);
  assert_int_equal(weft_compile(vm, NULL, NULL, 1, NULL, 0, &bytes, &count), WEFT_MISUSE);
  assert_int_equal(weft_compile(vm, NULL, "1", 1, "\xff", 0, &bytes, &count), WEFT_MISUSE);
  assert_int_equal(weft_compile(vm, NULL, "1", 1, "a\x1b[0m", 0, &bytes, &count), WEFT_MISUSE);
  assert_int_equal(weft_compile(vm, NULL, "1", 1, NULL, 2, &bytes, &count), WEFT_MISUSE);
  assert_int_equal(weft_compile(vm, NULL, "1", 1, NULL, 0, NULL, &count), WEFT_MISUSE);
  assert_int_equal(weft_compile(vm, NULL, "1", 1, NULL, 0, &bytes, NULL), WEFT_MISUSE);
  assert_int_equal(weft_load_compiled(vm, NULL, NULL, 1, NULL, NULL), WEFT_MISUSE);
  assert_int_equal(weft_load_compiled(NULL, NULL, "1", 1, NULL, NULL), WEFT_MISUSE);
  assert_int_equal(weft_load_compiled(vm, NULL, "1", 1, "\xff", NULL), WEFT_MISUSE);
  assert_int_equal(weft_compile(vm, NULL, "1 +", 3, "cut", 0, &bytes, &count), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "syntax");
  usable(vm);
  weft_free(vm);
}

typedef struct Memory {
  long asked, refuse_at;
} Memory;
static void *resize(void *context, void *p, size_t old_size, size_t new_size) {
  Memory *m = context;
  if (!new_size) return free(p), NULL;
  if (new_size > old_size && ++m->asked == m->refuse_at) return NULL;
  return realloc(p, new_size);
}

static void refused_memory_is_one_error(void **state) {
  (void)state;
  WeftVM *maker = weft_new(NULL);
  Bytes b = compiled(maker, NULL, "fn f(x, y=[1]) = x + y[0]\nlet s = f(2)\ns", "x.weft", 0);
  for (long n = 1;; n++) {
    Memory m = {0};
    WeftOptions o = WEFT_OPTIONS_INIT;
    o.resize = resize;
    o.resize_context = &m;
    WeftVM *vm = weft_new(&o);
    WeftValue *v = NULL;
    m.refuse_at = m.asked + n;
    const bool load = n % 2;
    const void *bytes;
    size_t count;
    WeftStatus status = load ? weft_load_compiled(vm, NULL, b.at, b.count, "x.weftc", &v)
                             : weft_compile(vm, NULL, sample, strlen(sample), "s", 0, &bytes, &count);
    if (status == WEFT_ERROR) assert_string_equal(weft_error_kind(vm), "limit");
    else assert_int_equal(status, WEFT_OK);
    const bool done = m.asked < m.refuse_at;
    m.refuse_at = 0;
    weft_release(vm, v);
    usable(vm);
    if (load) assert_int_equal(weft_load_compiled(vm, NULL, b.at, b.count, "x.weftc", NULL), WEFT_OK);
    weft_free(vm);
    if (done && !load) break;
    assert_true(n < 10000);
  }
  free(b.at);
  weft_free(maker);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_what_the_text_gives),     cmocka_unit_test(stripped_programs_tell_places),
      cmocka_unit_test(names_of_the_host_must_be_there), cmocka_unit_test(modules_of_the_host_load_them),
      cmocka_unit_test(files_hold_them),               cmocka_unit_test(changed_bytes_are_refused),
      cmocka_unit_test(hostile_bytes_end_in_one_error), cmocka_unit_test(large_counts_are_refused),
      cmocka_unit_test(misuse_changes_nothing),        cmocka_unit_test(refused_memory_is_one_error),
  };
  return cmocka_run_group_tests_name("compiled", tests, NULL, NULL);
}
