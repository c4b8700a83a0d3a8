/* test_literals.c — what a value is shown as is a literal of it: random values, shown, read and compared. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/weft.h"
#include "parser/base.h"

static u64 seed;
static u32 pick(u32 n) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (u32)(seed >> 33) % n;
}

static void *resize(Allocator *a, void *p, size_t old, size_t n) {
  (void)a;
  (void)old;
  if (n) return realloc(p, n);
  free(p);
  return NULL;
}

/* Every code point by its number: the test writes no text as Weft shows it. */
static void put_text(Buf *b) {
  static const u32 some[] = {0, 9, 10, 13, 27, 32, 34, 92, 123, 125, 127, 0x80, 0x85, 0x9F, 0xA0, 0xAD, 0x200B, 0x200D,
                             0x2028, 0x202E, 0xFEFF, 0xE0041, 0x10FFFF};
  buf_putc(b, '"');
  for (u32 n = pick(6); n > 0; n--) {
    u32 c = pick(2) ? some[pick(COUNT_OF(some))] : pick(3) ? 32 + pick(96) : pick(0xD800);
    buf_printf(b, "\\u{%x}", c);
  }
  buf_putc(b, '"');
}

static void put_key(Buf *b) {
  static const char *const names[] = {"a", "b2", "_x", "\"in\"", "\"by\"", "\"nil\"", "\"é\"", "\"1\"",
                                      "\"\"", "\"a b\""};
  if (pick(2)) put_text(b);
  else buf_puts(b, names[pick(COUNT_OF(names))]);
}

static void put_float(Buf *b) {
  u64 bits = (u64)pick(1u << 31) << 33 ^ (u64)pick(1u << 31) << 11 ^ pick(1u << 11);
  f64 x;
  memcpy(&x, &bits, sizeof x);
  if (pick(2)) x = (f64)((i64)pick(200000) - 100000) / pow(10, pick(12));
  if (pick(8) == 0) x = ldexp(1, (int)pick(200) - 100);
  if (isnan(x)) buf_puts(b, "nan");
  else if (isinf(x)) buf_puts(b, x < 0 ? "-inf" : "inf");
  else buf_printf(b, "%.17e", x);
}

static void put_int(Buf *b) {
  i64 i = (i64)((u64)pick(1u << 31) << 33 ^ (u64)pick(1u << 31) << 2 ^ pick(4)) >> pick(63);
  if (pick(50) == 0) i = INT64_MIN;
  buf_printf(b, i == INT64_MIN ? "(-9223372036854775807 - 1)" : "%lld", (long long)i);
}

static void put_array(Buf *b, u32 rank, u32 kind, const u32 *dims) {
  if (!rank) {
    if (kind == 0) put_int(b);
    else if (kind == 1) put_float(b);
    else buf_puts(b, pick(2) ? "true" : "false");
    return;
  }
  buf_putc(b, '[');
  for (u32 i = 0; i < dims[0]; i++) {
    if (i) buf_puts(b, ", ");
    put_array(b, rank - 1, kind, dims + 1);
  }
  buf_putc(b, ']');
}

static void put_value(Buf *b, u32 depth) {
  u32 dims[3] = {pick(4) + 1, pick(3) + 1, pick(3) + 1}, n = pick(4);
  switch (pick(depth ? 9 : 7)) {
    case 0: buf_puts(b, "nil"); return;
    case 1: put_int(b); return;
    case 2: put_float(b); return;
    case 3: put_text(b); return;
    case 4: buf_puts(b, pick(2) ? "true" : "false"); return;
    case 5: put_array(b, pick(3) + 1, pick(3), dims); return;
    case 6: buf_printf(b, "%d..%d by %d", (int)pick(20) - 10, (int)pick(20) - 10, (int)pick(5) * 2 - 5); return;
    case 7:
      buf_putc(b, '(');
      for (u32 i = 0; i < n; i++) {
        put_value(b, depth - 1);
        buf_puts(b, ", ");
      }
      buf_putc(b, ')');
      return;
    default:
      buf_putc(b, '{');
      for (u32 i = 0; i < n; i++) {
        put_key(b);
        buf_puts(b, ": ");
        put_value(b, depth - 1);
        buf_puts(b, ", ");
      }
      buf_putc(b, '}');
  }
}

static WeftValue *value_of(WeftVM *vm, const char *program, const char *of) {
  WeftValue *v = NULL;
  if (weft_eval(vm, program, "test", &v) != WEFT_OK) fail_msg("%s\nmade of %s\n%s", program, of, weft_error_text(vm));
  return v;
}

static void shown_values_read_back(void **state) {
  WeftVM *vm = weft_new(NULL);
  Allocator heap = {.resize = resize};
  (void)state;
  assert_non_null(vm);
  for (u32 trial = 0; trial < 4000; trial++) {
    seed = trial;
    (void)pick(2);
    Buf source, program;
    buf_init(&source, &heap);
    buf_init(&program, &heap);
    put_value(&source, 3);
    buf_printf(&program, "let a = %s\na", buf_text(&source));
    WeftValue *v = value_of(vm, buf_text(&program), "");
    char *shown = strdup(weft_show(vm, v));
    weft_release(vm, v);
    assert_non_null(shown);
    program.len = 0;
    buf_printf(&program, "let b = %s\nb", shown);
    v = value_of(vm, buf_text(&program), buf_text(&source));
    if (strcmp(weft_show(vm, v), shown) != 0)
      fail_msg("%s is shown as %s, which is read as %s", buf_text(&source), shown, weft_show(vm, v));
    weft_release(vm, v);
    for (const char *s = shown; *s; s++) assert_true((u8)*s >= 32 || *s == '\n');
    if (!strstr(shown, "nan")) {
      v = value_of(vm, "let c = a == b\nif type(c) == \"array\" { all(c) } else { c }", buf_text(&source));
      if (strcmp(weft_show(vm, v), "true") != 0)
        fail_msg("%s is shown as %s, which is another value", buf_text(&source), shown);
      weft_release(vm, v);
    }
    free(shown);
    buf_free(&source);
    buf_free(&program);
  }
  weft_free(vm);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shown_values_read_back)};
  return cmocka_run_group_tests_name("literals", tests, NULL, NULL);
}
