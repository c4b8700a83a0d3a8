/* test_base.c — arenas, vectors, text buffers, names, sources and number text of parser/base.h. */
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parser/base.h"

/* An allocator that checks old sizes and can refuse. */
typedef struct Checking {
  Allocator base;
  i64 bytes;
  u64 left;
} Checking;

static void *checking_resize(Allocator *self, void *p, size_t old_size, size_t new_size) {
  Checking *c = (Checking *)self;
  if (p) assert_int_equal(((size_t *)p)[-2], old_size);
  else assert_int_equal(old_size, 0);
  if (new_size) {
    if (!c->left) return NULL;
    c->left--;
  }
  c->bytes += (i64)new_size - (i64)old_size;
  size_t *block = p ? (size_t *)p - 2 : NULL;
  if (!new_size) {
    free(block);
    return NULL;
  }
  block = realloc(block, new_size + 16);
  if (!block) return NULL;
  block[0] = new_size;
  return block + 2;
}

static Checking checking(u64 left) { return (Checking){.base.resize = checking_resize, .left = left}; }

static void test_arena(void **state) {
  (void)state;
  Checking c = checking(UINT64_MAX);
  Arena a;
  arena_init(&a, &c.base);
  char *small = arena_alloc(&a, 3), *next = arena_alloc(&a, 1);
  assert_int_equal((uintptr_t)small % 16, 0);
  assert_int_equal(next - small, 16);
  assert_true(a.total <= 1024); /* most hold no more */
  ArenaMark m = arena_mark(&a);
  memset(arena_alloc(&a, 100), 0xff, 100);
  char *big = arena_alloc(&a, 100000);
  for (u32 i = 0; i < 100000; i++) assert_int_equal(big[i], 0);
  size_t total = a.total;
  assert_int_equal(total, (size_t)c.bytes);
  arena_rewind(&a, m);
  assert_true(a.total < total);
  char *again = arena_alloc(&a, 100);
  assert_ptr_equal(again, next + 16);
  for (u32 i = 0; i < 100; i++) assert_int_equal(again[i], 0); /* zeroed although used before */
  assert_string_equal(arena_copy(&a, "abcdef", 3), "abc");
  assert_string_equal(arena_printf(&a, "%d-%s", 7, "x"), "7-x");
  assert_null(arena_alloc(&a, SIZE_MAX));
  c.left = 0;
  assert_null(arena_alloc(&a, 100000));
  assert_null(arena_printf(&a, "%100000d", 1));
  arena_free(&a);
  assert_int_equal(c.bytes, 0);
  assert_int_equal(a.total, 0);
}

static void test_vec(void **state) {
  (void)state;
  Checking c = checking(3);
  VEC(u32) v = {0};
  u32 pushed = 0;
  while (vec_push(&c.base, &v, pushed)) pushed++;
  assert_int_equal(pushed, 32); /* 8, 16, 32, refused */
  assert_int_equal(v.count, 32);
  for (u32 i = 0; i < v.count; i++) assert_int_equal(v.data[i], i);
  vec_free(&c.base, &v);
  assert_int_equal(c.bytes, 0);
  assert_null(v.data);
}

static void test_buf(void **state) {
  (void)state;
  Checking c = checking(UINT64_MAX);
  Buf b;
  buf_init(&b, &c.base);
  assert_string_equal(buf_text(&b), "");
  for (u32 i = 0; i < 1000; i++) buf_printf(&b, "%u,", i);
  assert_int_equal(b.len, 3890);
  assert_memory_equal(b.data, "0,1,2,", 6);
  buf_putc(&b, '!');
  buf_puts(&b, "end");
  assert_string_equal(b.data + b.len - 4, "!end");
  c.left = 0;
  for (u32 i = 0; i < 1000; i++) buf_puts(&b, "0123456789");
  assert_true(b.failed);
  size_t len = b.len;
  buf_putc(&b, 'x'); /* nothing more is written after a refusal */
  assert_int_equal(b.len, len);
  assert_int_equal(b.data[b.len], 0);
  buf_free(&b);
  assert_int_equal(c.bytes, 0);
}

/* Much comes in few pieces, none of which is a great part unused. */
static void test_arena_grows(void **state) {
  (void)state;
  Checking c = checking(UINT64_MAX);
  Arena a;
  arena_init(&a, &c.base);
  size_t before = 0;
  u32 chunks = 0;
  for (u32 i = 0; i < 10000; i++) {
    assert_non_null(arena_alloc(&a, 16));
    chunks += a.total != before;
    before = a.total;
    assert_true(a.total <= 6 * 16 * (i + 1) + 1024);
  }
  assert_true(chunks <= 13);
  arena_free(&a);
  assert_int_equal(c.bytes, 0);
}

static void test_names(void **state) {
  (void)state;
  Checking c = checking(UINT64_MAX);
  Names n;
  assert_int_equal(names_init(&n, &c.base), WEFT_OK);
  assert_true(c.bytes <= 1024); /* modules of loops hold few */
  Name ids[2000];
  char text[16];
  for (u32 i = 0; i < 2000; i++) {
    snprintf(text, sizeof text, "name%u", i);
    ids[i] = name_cstr(&n, text);
    assert_true(ids[i] != 0);
  }
  for (u32 i = 0; i < 2000; i++) {
    snprintf(text, sizeof text, "name%u", i);
    assert_int_equal(name_cstr(&n, text), ids[i]);
    assert_int_equal(name_find(&n, text, strlen(text)), ids[i]);
    assert_string_equal(name_text(&n, ids[i]), text);
  }
  assert_int_equal(name_find(&n, "absent", 6), 0);
  assert_int_equal(name_intern(&n, "", 0), 0);
  assert_string_equal(name_text(&n, 0), "");
  Name zero = name_intern(&n, "a\0b", 3);
  assert_int_equal(name_len(&n, zero), 3);
  assert_true(zero != name_intern(&n, "a", 1));
  c.left = 0;
  char longer[40000];
  memset(longer, 'x', sizeof longer);
  u32 count = n.count;
  assert_int_equal(name_intern(&n, longer, sizeof longer), 0);
  assert_int_equal(n.count, count);
  assert_int_equal(name_cstr(&n, "name7"), ids[7]);
  names_free(&n);
  assert_int_equal(c.bytes, 0);
  for (u64 left = 0; left < 3; left++) {
    c.left = left;
    if (names_init(&n, &c.base) == WEFT_OK) names_free(&n);
    assert_int_equal(c.bytes, 0);
  }
}

/* Names that are counted go with the last who counts them; their numbers and places in the table are taken again. */
static void test_counted_names(void **state) {
  (void)state;
  enum { MANY = 3000, ROUNDS = 40 };
  Checking c = checking(UINT64_MAX);
  Names n;
  assert_int_equal(names_init(&n, &c.base), WEFT_OK);
  names_seed(&n);
  Name stays = name_cstr(&n, "stays"), ids[MANY];
  assert_int_equal(name_counted(&n, "stays", 5), stays);
  name_drop(&n, stays);
  name_drop(&n, stays);
  assert_int_equal(name_find(&n, "stays", 5), stays);
  char text[32];
  u64 bytes = 0;
  for (u32 round = 0; round < ROUNDS; round++) {
    for (u32 i = 0; i < MANY; i++) {
      int len = snprintf(text, sizeof text, "r%u.%u", round, i);
      ids[i] = name_counted(&n, text, (size_t)len);
      assert_true(ids[i] != 0);
      if (i % 3 == 0) assert_int_equal(name_counted(&n, text, (size_t)len), ids[i]);
    }
    for (u32 i = 0; i < MANY; i++) name_drop(&n, ids[(i * 7) % MANY]);
    for (u32 i = 0; i < MANY; i++) {
      int len = snprintf(text, sizeof text, "r%u.%u", round, i);
      assert_int_equal(name_find(&n, text, (size_t)len), i % 3 == 0 ? ids[i] : 0);
    }
    for (u32 i = 0; i < MANY; i += 3) name_drop(&n, ids[i]);
    assert_int_equal(n.used, 1);
    if (round == 1) bytes = c.bytes;
    if (round > 1) assert_int_equal(c.bytes, bytes);
  }
  Name twice = name_counted(&n, "both", 4);
  assert_int_equal(name_cstr(&n, "both"), twice); /* code names it: it stays */
  name_drop(&n, twice);
  assert_string_equal(name_text(&n, twice), "both");
  c.left = 0;
  char longer[40000];
  memset(longer, 'x', sizeof longer);
  assert_int_equal(name_counted(&n, longer, sizeof longer), 0);
  assert_int_equal(name_find(&n, "both", 4), twice);
  names_free(&n);
  assert_int_equal(c.bytes, 0);
}

/* Where names lie in the table is another matter in each table. */
static void test_names_are_seeded(void **state) {
  (void)state;
  Checking c = checking(UINT64_MAX);
  Names a, b;
  assert_int_equal(names_init(&a, &c.base), WEFT_OK);
  assert_int_equal(names_init(&b, &c.base), WEFT_OK);
  names_seed(&a);
  names_seed(&b);
  u32 same = 0;
  for (u32 i = 0; i < 200; i++) {
    char text[16];
    snprintf(text, sizeof text, "name%u", i);
    Name x = name_cstr(&a, text), y = name_cstr(&b, text);
    assert_int_equal(x, y);
    same += a.entries[x].hash == b.entries[y].hash;
  }
  assert_true(same < 5);
  names_free(&a);
  names_free(&b);
  assert_int_equal(c.bytes, 0);
}

static u32 distance(const char *a, const char *b) { return name_distance(a, strlen(a), b, strlen(b), 9); }

static void test_distance(void **state) {
  (void)state;
  assert_int_equal(distance("sum", "sum"), 0);
  assert_int_equal(distance("", "abc"), 3);
  assert_int_equal(distance("mena", "mean"), 1); /* a swap is one step */
  assert_int_equal(distance("sun", "sum"), 1);
  assert_int_equal(distance("summ", "sum"), 1);
  assert_int_equal(distance("kitten", "sitting"), 3);
  assert_int_equal(name_distance("kitten", 6, "sitting", 7, 2), 2);
  assert_int_equal(distance("a", "0123456789012345678901234567890123456789012345678901234567890"), 9);
}

static void test_sources(void **state) {
  (void)state;
  Sources s;
  assert_int_equal(sources_init(&s, allocator_system()), WEFT_OK);
  u32 f = sources_add(&s, "a.weft", "one\n  zwö drei\r\n\nend", 21);
  assert_int_equal(f, 1);
  static const u32 want[][3] = {{0, 1, 1}, {3, 1, 4}, {4, 2, 1}, {6, 2, 3}, {11, 2, 7}, {17, 3, 1}, {18, 4, 1},
                                {21, 4, 4}, {99, 4, 4}};
  for (u32 i = 0; i < COUNT_OF(want); i++) {
    u32 line, col;
    sources_locate(&s, (Span){f, want[i][0], 1}, &line, &col);
    assert_int_equal(line, want[i][1]);
    assert_int_equal(col, want[i][2]);
  }
  u32 line = 7, col = 7;
  sources_locate(&s, (Span){0, 3, 1}, &line, &col);
  assert_int_equal(line, 0);
  assert_null(sources_get(&s, 2));
  Buf b;
  buf_init(&b, allocator_system());
  sources_show(&s, (Span){f, 6, 4}, &b);
  assert_string_equal(buf_text(&b), "  --> a.weft:2:3\n  |\n2 |   zwö drei\n  |   ^^^\n");
  b.len = 0;
  sources_show(&s, (Span){f, 11, 50}, &b); /* clipped at the end of its line */
  assert_string_equal(buf_text(&b), "  --> a.weft:2:7\n  |\n2 |   zwö drei\n  |       ^^^^\n");
  b.len = 0;
  sources_show(&s, (Span){f, 21, 0}, &b);
  assert_string_equal(buf_text(&b), "  --> a.weft:4:4\n  |\n4 | end\n  |    ^\n");
  static const char wide[] = "f(\"日本\", \"e\xCC\x81\", x)"; /* two columns each; none for what combines */
  f = sources_add(&s, "wide.weft", wide, sizeof wide - 1);
  b.len = 0;
  sources_show(&s, (Span){f, 19, 1}, &b);
  assert_string_equal(buf_text(&b),
                      "  --> wide.weft:1:15\n  |\n1 | f(\"日本\", \"e\xCC\x81\", x)\n  |                ^\n");
  b.len = 0;
  sources_show(&s, (Span){f, 2, 8}, &b);
  assert_non_null(strstr(buf_text(&b), "\n  |   ^^^^^^\n"));
  f = sources_add(&s, "bytes.weft", "a\xFF\t\xC3\nb", 6); /* no UTF-8: question marks */
  b.len = 0;
  sources_show(&s, (Span){f, 1, 1}, &b);
  assert_string_equal(buf_text(&b), "  --> bytes.weft:1:2\n  |\n1 | a? ?\n  |  ^\n");
  assert_int_equal(text_columns("\xF0\x9F\x98\x80\xFF" "a", 6), 4);
  char text[600];
  for (u32 i = 0; i + 1 < sizeof text; i += 2) memcpy(text + i, "ä", 2); /* of a long line what is near */
  f = sources_add(&s, "b.weft", text, sizeof text);
  static const struct { u32 start, len, before, shown, carets, left, right; } near[] = {
      {0, 2, 0, 100, 1, 0, 1}, {300, 4, 40, 100, 2, 1, 1}, {590, 600, 40, 45, 5, 1, 0}, {300, 300, 40, 100, 60, 1, 1}};
  for (u32 i = 0; i < COUNT_OF(near); i++) {
    b.len = 0;
    sources_show(&s, (Span){f, near[i].start, near[i].len}, &b);
    const char *row = strstr(buf_text(&b), "1 | ") + 4, *end = strchr(row, '\n'), *marks = strchr(end, '|') + 2;
    assert_int_equal((u64)(end - row), 2 * near[i].shown + 3 * (near[i].left + near[i].right));
    assert_int_equal(strncmp(row, "…", 3) == 0, near[i].left);
    assert_int_equal(strncmp(end - 3, "…", 3) == 0, near[i].right);
    assert_int_equal(strspn(marks, " "), near[i].before + near[i].left);
    assert_int_equal(strspn(marks + strspn(marks, " "), "^"), near[i].carets);
  }
  buf_free(&b);
  Span joined = span_join((Span){f, 10, 5}, (Span){f, 2, 3});
  assert_int_equal(joined.start, 2);
  assert_int_equal(joined.len, 13);
  sources_free(&s);
}

/* Texts live as long as they are held or pointed at; an id is not given again. */
static void sources_go(void **state) {
  (void)state;
  Sources s;
  assert_int_equal(sources_init(&s, allocator_system()), WEFT_OK);
  u32 held = sources_add(&s, "held", "1", 1), pointed = sources_add(&s, "pointed", "22", 2),
      first = sources_add(&s, "first", "333", 3);
  sources_drop(&s, pointed);
  sources_drop(&s, first);
  assert_false(sources_sweep_due(&s));
  assert_string_equal(sources_get(&s, first)->text, "333"); /* until a sweep */
  for (u32 round = 0; round < 1000; round++) {
    u32 f = sources_add(&s, "more", "1 + 1", 5);
    if (round == 500) s.last_id = UINT32_MAX - 3; /* ids begin again, and miss those in use */
    assert_true(f && f != held && f != pointed);
    sources_keep(&s, f);
    sources_drop(&s, f);
    sources_drop(&s, f);
    assert_true(s.count < 200 && s.slot_count <= 512);
    if (!sources_sweep_due(&s)) continue;
    sources_point(&s, pointed);
    sources_sweep(&s);
    assert_null(sources_get(&s, f));
    assert_int_equal(s.count, 2);
  }
  assert_null(sources_get(&s, first));
  assert_string_equal(sources_get(&s, held)->path, "held");
  assert_string_equal(sources_get(&s, pointed)->text, "22");
  sources_sweep(&s);
  assert_null(sources_get(&s, pointed));
  char large[100000];
  memset(large, 'x', sizeof large);
  sources_drop(&s, sources_add(&s, "large", large, sizeof large));
  assert_true(sources_sweep_due(&s)); /* by its bytes */
  sources_keep(&s, 12345);
  sources_drop(&s, 12345);
  sources_drop(&s, 0);
  sources_point(&s, 0);
  sources_free(&s);
}

/* Many at once, taken out in another order: each is found as long as it is there. */
static void sources_are_found(void **state) {
  (void)state;
  enum { MANY = 3000 };
  Sources s;
  assert_int_equal(sources_init(&s, allocator_system()), WEFT_OK);
  s.last_id = UINT32_MAX - MANY / 2;
  static u32 ids[MANY];
  static bool gone[MANY];
  for (u32 i = 0; i < MANY; i++) assert_int_not_equal(ids[i] = sources_add(&s, "many", (const char *)&i, sizeof i), 0);
  for (u32 round = 0; round < 8; round++) {
    for (u32 i = 0; i < MANY; i++) {
      if (gone[i] || i * 2654435761u >> 29 != round) continue;
      sources_drop(&s, ids[i]);
      gone[i] = true;
    }
    sources_sweep(&s);
    for (u32 i = 0; i < MANY; i++) {
      const SourceFile *f = sources_get(&s, ids[i]);
      assert_int_equal(!f, gone[i]);
      if (f) assert_memory_equal(f->text, &i, sizeof i);
    }
  }
  assert_int_equal(s.count, 0);
  sources_free(&s);
}

/* ---- numbers ------------------------------------------------------------------------------ */

static void assert_number(const char *text, f64 want) {
  f64 got;
  if (!number_parse_f64(text, strlen(text), &got)) fail_msg("%s refused", text);
  if (memcmp(&got, &want, sizeof got) != 0) fail_msg("%s: want %a, got %a", text, want, got);
}

static void test_numbers(void **state) {
  (void)state;
  assert_number("0", 0.0);
  assert_number("-0.0", -0.0);
  assert_number("+1.5e1", 15.0);
  assert_number(".5", 0.5);
  assert_number("5.", 5.0);
  assert_number("007", 7.0);
  assert_number("1e22", 1e22);
  assert_number("1e23", 1e23);
  assert_number("8.5e-23", 8.5e-23);
  assert_number("9007199254740993", 9007199254740992.0);             /* halfway, to even */
  assert_number("9007199254740993.00000000000000000001", 9007199254740994.0);
  assert_number("9007199254740995", 9007199254740996.0);
  assert_number("1.7976931348623157e308", 1.7976931348623157e308);
  assert_number("1.7976931348623158e308", 1.7976931348623157e308);
  assert_number("1.7976931348623159e308", (f64)INFINITY);
  assert_number("1e400", (f64)INFINITY);
  assert_number("-1e99999999999", -(f64)INFINITY);
  assert_number("1e-99999999999", 0.0);
  assert_number("0e99999999999", 0.0);
  assert_number("4.9406564584124654e-324", 0x1p-1074);
  assert_number("2.4703282292062327e-324", 0.0);                     /* just below half of it */
  assert_number("2.4703282292062328e-324", 0x1p-1074);
  assert_number("2.2250738585072011e-308", 0x0.fffffffffffffp-1022); /* the largest subnormal */
  assert_number("2.2250738585072014e-308", 0x1p-1022);
  assert_number("0.1", 0.1);
  static const char *const refused[] = {"", "+", ".", "e5", "1e", "1e+", "1.5.2", "1x", " 1", "1 ", "inf", "nan",
                                        "0x10", "1_0", "--1"};
  for (u32 i = 0; i < COUNT_OF(refused); i++) {
    f64 x;
    if (number_parse_f64(refused[i], strlen(refused[i]), &x)) fail_msg("'%s' accepted as %g", refused[i], x);
  }
}

/* Random doubles and random digits, against the C library. */
static void test_numbers_random(void **state) {
  (void)state;
  u64 s = 88172645463325252u;
  for (u32 i = 0; i < 60000; i++) {
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    char text[400];
    f64 x;
    memcpy(&x, &s, sizeof x);
    switch (i % 6) {
    case 0: snprintf(text, sizeof text, "%.17g", x); break;
    case 3: /* beside the halfway point to the next one, which more digits tell */
      snprintf(text, sizeof text, "%.*Lg", 18 + (int)(s % 40), ((long double)x + nextafter(x, INFINITY)) / 2);
      break;
    case 4: snprintf(text, sizeof text, "%.*f", (int)(s % 23), (f64)(i64)s / (f64)(1ull << s % 63)); break;
    case 1: snprintf(text, sizeof text, "%.*e", (int)(s % 300), x); break;
    case 2:
      snprintf(text, sizeof text, "%llu.%llue%d", (unsigned long long)s, (unsigned long long)(s * 31),
               (int)(s % 700) - 370);
      break;
    default: {
      u64 subnormal = s & 0x800fffffffffffffu;
      memcpy(&x, &subnormal, sizeof x);
      snprintf(text, sizeof text, "%.25e", x);
    }
    }
    if (strstr(text, "nan") || strstr(text, "inf")) continue;
    assert_number(text, strtod(text, NULL));
  }
}

/* The compiler asks the same. */
static void test_cpu(void **state) {
  (void)state;
#ifdef __x86_64__
  __builtin_cpu_init();
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  bool fma = __builtin_cpu_supports("fma"), avx2 = __builtin_cpu_supports("avx2");
  unsigned a, b, c, d; /* no name of clang's for f16c */
  bool halves = __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
  for (int again = 0; again < 2; again++) {
    assert_int_equal(cpu_has(CPU_SSE41), __builtin_cpu_supports("sse4.1") != 0);
    assert_int_equal(cpu_has(CPU_FMA), fma);
    assert_int_equal(cpu_has(CPU_F16C), halves);
    assert_int_equal(cpu_has(CPU_AVX2), avx2);
    assert_int_equal(cpu_has(CPU_BMI2), __builtin_cpu_supports("bmi2") != 0);
    assert_int_equal(cpu_has(CPU_AVX512), wide);
    assert_int_equal(cpu_has(CPU_AVX512 | CPU_FMA | CPU_AVX2), wide && fma && avx2);
  }
#else
  assert_false(cpu_has(CPU_SSE41));
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_arena), cmocka_unit_test(test_arena_grows), cmocka_unit_test(test_vec),
      cmocka_unit_test(test_buf),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_counted_names),
      cmocka_unit_test(test_names_are_seeded), cmocka_unit_test(test_distance), cmocka_unit_test(test_sources),
      cmocka_unit_test(sources_go), cmocka_unit_test(sources_are_found),
      cmocka_unit_test(test_numbers),  cmocka_unit_test(test_numbers_random), cmocka_unit_test(test_cpu),
  };
  return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
