/* test_outline.c — what editors are told of a program: declarations, what names mean, errors; nothing is run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/weft.h"

static int setup(void **state) {
  *state = weft_new(NULL);
  return *state ? 0 : -1;
}
static int teardown(void **state) {
  weft_free(*state);
  return 0;
}

static const char *const kinds[] = {"variable", "function", "parameter", "size", "file", "module"};
static const char *const uses[] = {"declares", "reads", "updates", "calls", "member", "argument", "field", "key"};

typedef struct Out {
  char text[8192];
  size_t len;
} Out;

static void __attribute__((format(printf, 2, 3))) put(Out *o, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  o->len += (size_t)vsnprintf(o->text + o->len, sizeof o->text - o->len, fmt, ap);
  va_end(ap);
  assert_true(o->len < sizeof o->text);
}

/* Problems, then symbols, then mentions, one a line. */
static const char *told(WeftVM *vm, const char *program) {
  static Out o;
  WeftOutline *outline = NULL;
  o.len = 0;
  assert_int_equal(weft_outline(vm, program, strlen(program), &outline), WEFT_OK);
  WeftProblem p = {.size = sizeof p};
  WeftSymbol s = {.size = sizeof s};
  WeftMention m = {.size = sizeof m};
  for (size_t i = 0; weft_outline_problem(outline, i, &p); i++)
    put(&o, "! %zu+%zu %s: %s\n", p.at, p.length, p.kind, p.message);
  for (size_t i = 0; weft_outline_symbol(outline, i, &s); i++) {
    put(&o, "%zu %s %s %s @%zu in %zu..%zu seen %zu..%zu", i, kinds[s.kind], s.name, s.signature, s.at, s.from, s.to,
        s.seen_from, s.seen_to);
    if (s.parent >= 0) put(&o, " of %d", s.parent);
    put(&o, "%s%s%s\n", s.global ? " global" : "", *s.doc ? " ## " : "", s.doc);
  }
  for (size_t i = 0; weft_outline_mention(outline, i, &m); i++) {
    put(&o, "@%zu %s %s", m.at, uses[m.kind], m.name);
    assert_true(m.at + m.length <= strlen(program));
    if (m.symbol >= 0) put(&o, " %d", m.symbol);
    if (m.builtin) put(&o, " builtin");
    if (m.shared) put(&o, " shared");
    if (m.imported >= 0) put(&o, " from %d", m.imported);
    if (*m.function) put(&o, " of %s", m.function);
    put(&o, "\n");
  }
  weft_outline_free(vm, outline);
  return o.text;
}

typedef struct Case {
  const char *name, *program, *want;
} Case;

static const Case cases[] = {
  {"variables",
   "let x = 1\n"
   "let y = x + z\n"
   "x = x + 1\n",
   "! 22+1 name: z is not declared\n"
   "0 variable x  @4 in 0..9 seen 9..34 global\n"
   "1 variable y  @14 in 10..23 seen 23..34 global\n"
   "@4 declares x 0\n"
   "@14 declares y 1\n"
   "@18 reads x 0\n"
   "@24 updates x 0\n"
   "@28 reads x 0\n"},
  {"functions",
   "## Adds.\n"
   "fn f(a, b=2, ...r) { let c = a; c + b }\n"
   "f(1, b=3)\n"
   "let g = x => x.f(1)\n",
   "0 function f (a, b=2, ...r) @12 in 9..48 seen 9..79 global ## Adds.\n"
   "1 parameter a a @14 in 14..15 seen 14..48 of 0\n"
   "2 parameter b b=2 @17 in 17..20 seen 17..48 of 0\n"
   "3 parameter r ...r @25 in 22..26 seen 22..48 of 0\n"
   "4 variable c  @34 in 30..39 seen 39..48 of 0\n"
   "5 function g (x) @63 in 59..78 seen 78..79 global\n"
   "6 parameter x x @67 in 67..68 seen 67..78 of 5\n"
   "@12 declares f 0\n"
   "@14 declares a 1\n"
   "@17 declares b 2\n"
   "@25 declares r 3\n"
   "@34 declares c 4\n"
   "@38 reads a 1\n"
   "@41 reads c 4\n"
   "@45 reads b 2\n"
   "@49 reads f 0\n"
   "@54 argument b 2 of f\n"
   "@63 declares g 5\n"
   "@67 declares x 6\n"
   "@72 reads x 6\n"
   "@74 calls f 0\n"},
  {"sizes",
   "fn f(x: f64[n, 3]) = n + x.shape[0]\n",
   "0 function f (x: f64[n, 3]) @3 in 0..35 seen 0..36 global\n"
   "1 parameter x x: f64[n, 3] @5 in 5..17 seen 5..35 of 0\n"
   "2 size n  @12 in 12..13 seen 12..35 of 0\n"
   "@3 declares f 0\n"
   "@5 declares x 1\n"
   "@12 declares n 2\n"
   "@21 reads n 2\n"
   "@25 reads x 1\n"
   "@27 field shape\n"},
  {"imports",
   "import \"a.weft\" as m\n"
   "import linalg\n"
   "m.go(1, k=2); linalg.inv(x=1)\n"
   "(m.go)(2)\n"
   "let v = sum([1], axis=0)",
   "0 file m a.weft @19 in 0..20 seen 0..99 global\n"
   "1 module linalg linalg @28 in 21..34 seen 21..99 global\n"
   "2 variable v  @79 in 75..99 seen 99..99 global\n"
   "@19 declares m 0\n"
   "@28 declares linalg 1\n"
   "@35 reads m 0\n"
   "@37 member go from 0\n"
   "@43 argument k from 0 of go\n"
   "@49 reads linalg 1\n"
   "@56 member linalg.inv builtin\n"
   "@60 argument x builtin of linalg.inv\n"
   "@66 reads m 0\n"
   "@68 member go from 0\n"
   "@79 declares v 2\n"
   "@83 reads sum builtin\n"
   "@92 argument axis builtin of sum\n"},
  {"loops",
   "for i in 0..3 { let i = i; print(i) }\n"
   "try { 1 } catch e { e.kind }\n",
   "0 variable i  @4 in 4..5 seen 4..37\n"
   "1 variable i  @20 in 16..25 seen 25..37\n"
   "2 variable e  @54 in 54..55 seen 54..66\n"
   "@4 declares i 0\n"
   "@20 declares i 1\n"
   "@24 reads i 0\n"
   "@27 reads print builtin\n"
   "@33 reads i 1\n"
   "@54 declares e 2\n"
   "@58 reads e 2\n"
   "@60 field kind\n"},
  {"records",
   "let r = {x: 1, \"y\": 2}\n"
   "let {x, y: z} = r\n"
   "let q = {x, z}\n"
   "r.x = x\n",
   "0 variable r  @4 in 0..22 seen 22..64 global\n"
   "1 variable x  @28 in 23..40 seen 40..64 global\n"
   "2 variable z  @34 in 23..40 seen 40..64 global\n"
   "3 variable q  @45 in 41..55 seen 55..64 global\n"
   "@4 declares r 0\n"
   "@9 key x\n"
   "@16 key y\n"
   "@28 declares x 1 shared\n"
   "@31 field y\n"
   "@34 declares z 2\n"
   "@39 reads r 0\n"
   "@45 declares q 3\n"
   "@50 reads x 1 shared\n"
   "@53 reads z 2 shared\n"
   "@56 updates r 0\n"
   "@58 field x\n"
   "@62 reads x 1\n"},
  {"groups",
   "fn a() {\n"
   "  fn p() = q()\n"
   "  fn q() = p()\n"
   "  p()\n"
   "}\n"
   "fn b() = later\n"
   "let later = 2\n",
   "0 function a () @3 in 0..46 seen 0..76 global\n"
   "1 function p () @14 in 11..23 seen 11..46 of 0\n"
   "2 function q () @29 in 26..38 seen 26..46 of 0\n"
   "3 function b () @50 in 47..61 seen 47..76 global\n"
   "4 variable later  @66 in 62..75 seen 75..76 global\n"
   "@3 declares a 0\n"
   "@14 declares p 1\n"
   "@20 reads q 2\n"
   "@29 declares q 2\n"
   "@35 reads p 1\n"
   "@41 reads p 1\n"
   "@50 declares b 3\n"
   "@56 reads later 4\n"
   "@66 declares later 4\n"},
  {"broken-brackets",
   "let x = (1 +\n"
   "let y = 2\n"
   "fn f(a) {\n"
   "  let q = \n"
   "  let s = a.\n"
   "}\n"
   "print(x, y, zz)\n",
   "! 13+3 syntax: 'let' is a statement and gives no value; inside an expression it stands in braces: { let … }\n"
   "! 46+3 syntax: expected a value, found 'let'\n"
   "! 56+0 syntax: expected a name after '.', found the end of the line\n"
   "! 71+2 name: zz is not declared\n"
   "0 variable y  @17 in 13..22 seen 22..75 global\n"
   "1 function f (a) @26 in 23..58 seen 23..75 global\n"
   "2 parameter a a @28 in 28..29 seen 28..58 of 1\n"
   "@17 declares y 0\n"
   "@26 declares f 1\n"
   "@28 declares a 2\n"
   "@59 reads print builtin\n"
   "@68 reads y 0\n"},
  {"broken-end",
   "let s = \"abc\n"
   "let t = 2\n"
   "if t {\n"
   "  print(t",
   "! 8+4 syntax: this text is not closed by '\"' on its line (text of several lines stands between \"\"\")\n"
   "! 39+0 syntax: expected ',' or ')' after the '(' in column 8, found the end of the text\n"
   "0 variable t  @17 in 13..22 seen 22..39 global\n"
   "@17 declares t 0\n"
   "@26 reads t 0\n"},
  {"broken-text",
   "f\"{x} a {let}\"\n"
   "let x = 1\n"
   "-1\n"
   "x",
   "! 9+3 syntax: 'let' is a statement and gives no value; inside an expression it stands in braces: { let … }\n"
   "! 25+2 syntax: the value of this statement is unused: end the previous line with the operator to continue it\n"
   "0 variable x  @19 in 15..24 seen 24..29 global\n"
   "@19 declares x 0\n"
   "@28 reads x 0\n"},
  {"broken-call",
   "foo(1, 2\n"
   "let b = 1\n"
   "let c = b\n",
   "! 9+3 syntax: expected ',' or ')' to close the '(' in line 1, column 4, found 'let'\n"
   "0 variable b  @13 in 9..18 seen 18..29 global\n"
   "1 variable c  @23 in 19..28 seen 28..29 global\n"
   "@13 declares b 0\n"
   "@23 declares c 1\n"
   "@27 reads b 0\n"},
  {"several",
   "import nope\n"
   "let u: 1\n"
   "(a => { b( })(2)\n"
   "let z = 1 2\n"
   "z",
   "! 7+4 name: there is no standard module nope; a file is imported as \"nope.weft\"\n"
   "! 17+1 syntax: expected '=' after what let declares, found ':'; only parameters take annotations\n"
   "! 32+1 syntax: expected a value, found '}'\n"
   "! 48+1 syntax: expected ';' or a new line after the statement, found '2'\n"
   "0 module nope nope @7 in 0..11 seen 0..51 global\n"
   "1 parameter a a @22 in 22..23 seen 22..34\n"
   "2 variable z  @42 in 38..47 seen 47..51 global\n"
   "@7 declares nope 0\n"
   "@22 declares a 1\n"
   "@42 declares z 2\n"
   "@50 reads z 2\n"},
};

static void tells(void **state) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *said = told(*state, cases[i].program);
    if (strcmp(said, cases[i].want) != 0) print_error("%s\n", cases[i].name);
    assert_string_equal(said, cases[i].want);
  }
}

/* A program that is whole has the errors that running it has: none. It is not run. */
static void runs_nothing(void **state) {
  WeftOutline *outline = NULL;
  WeftProblem p = {.size = sizeof p};
  const char *program = "let secret = 1\nerror(\"it ran\")\n";
  assert_int_equal(weft_outline(*state, program, strlen(program), &outline), WEFT_OK);
  assert_false(weft_outline_problem(outline, 0, &p));
  weft_outline_free(*state, outline);
  WeftValue *v = NULL;
  assert_int_equal(weft_get_global(*state, "secret", &v), WEFT_ERROR);
}

static const char long_program[] =
    "## Adds two numbers, \xF0\x9F\x98\x80.\n"
    "fn add(x: f64[n, 3], y=2, ...rest, z=3) {\n"
    "  let {a, b: (c, ...d)} = f(x |> g(_, 1))\n"
    "  for (i, j) in zip(x, y) { if i > j and not (a < c <= 3) { break } else { continue } }\n"
    "  try { return [1, 2.5e3, 0xff][0, :, ::2] } catch e { e.kind + f\"{a:.{c}f} {x}\" }\n"
    "}\n"
    "import \"b.weft\" as b\n"
    "fn f(x) = x => { while true { x.y[1].z += b.q(x=1) }; (x) }\n"
    "fn g(a, b) = {a, b, ...a, \"c\": 1..2 by 3}\n"
    "let (p, q) = (\"\"\"several\nlines\"\"\", nil)\n"
    "p = q; (p, q) = (q, p); p.add(z=1)\n";

/* Each beginning of a program, and the program without each of its bytes. */
static void stands_broken_text(void **state) {
  char cut[sizeof long_program];
  size_t n = strlen(long_program);
  for (size_t i = 0; i <= n; i++) {
    memcpy(cut, long_program, i);
    cut[i] = 0;
    (void)told(*state, cut);
    if (i == n) break;
    memcpy(cut, long_program, n + 1);
    memmove(cut + i, cut + i + 1, n - i);
    (void)told(*state, cut);
  }
}

/* Whole, all of its names mean something but those of the language. */
static void knows_each_name(void **state) {
  const char *said = told(*state, long_program);
  assert_null(strchr(said, '!'));
  assert_non_null(strstr(said, "calls add 0\n"));
  assert_non_null(strstr(said, "argument z 5 of add\n"));
}

static void refuses(void **state) {
  WeftOutline *outline = NULL;
  WeftProblem p = {0};
  WeftBuiltin b = {0};
  assert_int_equal(weft_outline(NULL, "", 0, &outline), WEFT_MISUSE);
  assert_int_equal(weft_outline(*state, NULL, 0, &outline), WEFT_MISUSE);
  assert_int_equal(weft_outline(*state, "", 0, NULL), WEFT_MISUSE);
  assert_int_equal(weft_outline(*state, "x", 1, &outline), WEFT_OK);
  assert_false(weft_outline_problem(outline, 0, &p)); /* its size is not set */
  weft_outline_free(*state, outline);
  weft_outline_free(*state, NULL);
  assert_false(weft_builtin(0, &b));
  assert_int_equal(weft_outline(*state, long_program, ((size_t)1 << 24) + 1, &outline), WEFT_ERROR);
  assert_string_equal(weft_error_kind(*state), "limit");
}

typedef struct Memory {
  size_t left;   /* allocations until one is refused; SIZE_MAX: none is */
  size_t bytes;  /* that are held */
  bool refused;
} Memory;

static void *resize(void *context, void *p, size_t old_size, size_t new_size) {
  Memory *m = context;
  if (new_size > old_size && m->left != SIZE_MAX && m->left-- == 0) return m->left = 0, m->refused = true, NULL;
  void *now = new_size ? realloc(p, new_size) : NULL;
  if (!new_size) free(p);
  else if (!now) return NULL;
  m->bytes += new_size - old_size;
  return now;
}

/* Each allocation in turn is refused, and all behind it: an error, or an outline that says so, and nothing is lost. */
static void memory_is_refused(void **state) {
  (void)state;
  Memory memory = {SIZE_MAX, 0, false};
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.resize = resize;
  options.resize_context = &memory;
  WeftVM *vm = weft_new(&options);
  assert_non_null(vm);
  size_t n = 0, refused = 0, said = 0;
  for (bool whole = false; !whole; n++) {
    WeftOutline *outline = NULL;
    WeftProblem p = {.size = sizeof p};
    memory.left = n;
    memory.refused = false;
    WeftStatus status = weft_outline(vm, long_program, strlen(long_program), &outline);
    memory.left = SIZE_MAX;
    if (status != WEFT_OK) assert_string_equal(weft_error_kind(vm), "limit"), refused++;
    bool problem = status == WEFT_OK && weft_outline_problem(outline, 0, &p);
    if (problem) assert_string_equal(p.kind, "limit"), said++;
    whole = !memory.refused;
    weft_outline_free(vm, outline);
    assert_true(n < 5000);
  }
  assert_true(refused > 20);
  assert_int_equal(refused + said + 1, n);
  weft_free(vm);
  assert_int_equal(memory.bytes, 0);
}

/* Each name is there once, and those that a program can write are found by the compiler. */
static void lists_builtins(void **state) {
  WeftBuiltin b = {.size = sizeof b};
  size_t n = 0, counts[WEFT_BUILTIN_WORD + 1] = {0}, inverses = 0;
  for (; weft_builtin(n, &b); n++) {
    counts[b.kind]++;
    inverses += strcmp(b.name, "linalg.inv") == 0;
    if (b.kind == WEFT_BUILTIN_FUNCTION) assert_true(*b.doc && *b.signature == '(');
    if (b.kind == WEFT_BUILTIN_WORD || strchr(b.name, '.')) continue;
    const char *said = told(*state, b.name);
    assert_non_null(strstr(said, " builtin\n"));
  }
  assert_int_equal(inverses, 1);
  assert_int_equal(counts[WEFT_BUILTIN_CONSTANT], 3);
  assert_true(counts[WEFT_BUILTIN_FUNCTION] > 300 && counts[WEFT_BUILTIN_DTYPE] > 8);
  assert_true(counts[WEFT_BUILTIN_MODULE] > 5 && counts[WEFT_BUILTIN_WORD] > 15);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(tells, setup, teardown),
      cmocka_unit_test_setup_teardown(runs_nothing, setup, teardown),
      cmocka_unit_test_setup_teardown(stands_broken_text, setup, teardown),
      cmocka_unit_test_setup_teardown(knows_each_name, setup, teardown),
      cmocka_unit_test_setup_teardown(refuses, setup, teardown),
      cmocka_unit_test_setup_teardown(lists_builtins, setup, teardown),
      cmocka_unit_test(memory_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
