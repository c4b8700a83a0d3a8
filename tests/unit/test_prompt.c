/* test_prompt.c — what a host needs to be a program like `weft`: options with reasons, input and the log through hooks,
 * kinds of inputs, commands, completion, the log as files. */
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

/* ---- a host that keeps what it gets ------------------------------------------------------------------- */

typedef struct Kept {
  char text[1 << 16];
  size_t len, asked; /* asked: how often a program was about to wait for input */
  WeftVM *vm;
  const char *fail; /* what the hook says in place of taking it */
} Kept;

static void keep(void *context, const char *text, size_t length) {
  Kept *k = context;
  if (!length) k->asked++;
  if (k->fail) {
    (void)weft_fail(k->vm, "io", k->fail);
    return;
  }
  assert_true(k->len + length < sizeof k->text);
  memcpy(k->text + k->len, text, length);
  k->text[k->len += length] = 0;
}

static WeftVM *host(Kept *printed, WeftOptions o) {
  char why[100];
  memset(printed, 0, sizeof *printed);
  o.output = keep;
  o.output_context = printed;
  o.ignore_clock = true;
  assert_int_equal(weft_open(&o, &printed->vm, why, sizeof why), WEFT_OK);
  assert_string_equal(why, "");
  return printed->vm;
}

static const WeftOptions defaults = WEFT_OPTIONS_INIT;
static Kept printed;

static void run(WeftVM *vm, const char *program) { assert_int_equal(weft_eval(vm, program, "test", NULL), WEFT_OK); }

static double counter(WeftVM *vm, const char *name) {
  double value;
  const char *at;
  for (unsigned i = 0; (at = weft_stat_at(vm, i, &value)); i++)
    if (strcmp(at, name) == 0) return value;
  fail_msg("no counter %s", name);
  return 0;
}

/* ---- options -------------------------------------------------------------------------------------------- */

static void refused(WeftOptions o, WeftStatus status, const char *want) {
  WeftVM *vm = (WeftVM *)&o;
  char why[200], few[10];
  assert_int_equal(weft_open(&o, &vm, why, sizeof why), status);
  assert_null(vm);
  if (strncmp(why, want, strlen(want)) != 0) fail_msg("%s, not %s", why, want);
  assert_int_equal(weft_open(&o, &vm, few, sizeof few), status);
  assert_int_equal(strlen(few), 9);
  assert_memory_equal(few, want, 9);
  assert_int_equal(weft_open(&o, &vm, NULL, 0), status);
  assert_null(weft_new(&o));
}

static void reasons_for_which_there_is_no_vm(void **state) {
  (void)state;
  WeftOptions o = defaults;
  o.backend = "nonsense";
  refused(o, WEFT_MISUSE, "backend is unknown: nonsense");
  o = defaults, o.force = "nonsense 3";
  refused(o, WEFT_MISUSE, "force is unknown: nonsense 3");
  o = defaults, o.cpu = "z80";
  refused(o, WEFT_MISUSE, "cpu is unknown (scalar, strip, avx2, avx512): z80");
  o = defaults, o.device = "moon";
  refused(o, WEFT_MISUSE, "device is unknown: moon");
  o = defaults, o.log = "graph,,bogus,ast";
  refused(o, WEFT_MISUSE, "log is unknown (ast,bytecode,copies,graph,guards,loops,breaks,recompiles): bogus,ast");
  o = defaults, o.memory = 1000;
  refused(o, WEFT_ERROR, "memory: 1000 bytes are too few to start, or out of memory");
  o = defaults, o.backend = "ptx", o.allow_gpu = true, o.cuda_driver = "/nowhere/libcuda.so";
  refused(o, WEFT_ERROR, "backend is ptx: the GPU cannot be used: no CUDA driver");
  WeftDevice device = {.size = sizeof device, .name = "cpu"};
  o = defaults, o.own_device = &device;
  refused(o, WEFT_MISUSE, "own_device is incomplete, or has a name that is taken");
  WeftBackend backend = {.size = sizeof backend, .name = "mine"};
  o = defaults, o.backends = &backend, o.backend_count = 1;
  refused(o, WEFT_MISUSE, "backends: one is incomplete, has a name that is taken, or is one too many");
  char why[20];
  assert_int_equal(weft_open(NULL, NULL, why, sizeof why), WEFT_MISUSE);
  assert_string_equal(why, "no place for the VM");
}

/* A host of version 0.1 knows nothing of what stands behind `stack`. */
static void old_options_end_at_stack(void **state) {
  (void)state;
  WeftOptions o;
  memset(&o, 0, sizeof o);
  o.log = "nonsense";
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  weft_free(vm);
}

static void the_clock_can_be_ignored(void **state) {
  (void)state;
  WeftOptions o = defaults;
  o.backend = "interp"; /* so slow that no clock would choose it */
  WeftVM *vm = host(&printed, o);
  run(vm, "let s = 0.5\nfor i in 0..59 { s = s * 0.5 + i }");
  assert_int_equal((int)counter(vm, "graphs"), 0);
  run(vm, "let t = 0.5\nfor i in 0..70 { t = t * 0.5 + i }");
  assert_int_equal((int)counter(vm, "graphs"), 1);
  weft_free(vm);
}

/* ---- output, input, log ---------------------------------------------------------------------------------- */

static void output_that_fails_ends_the_program(void **state) {
  (void)state;
  WeftVM *vm = host(&printed, defaults);
  run(vm, "print(1)");
  printed.fail = "the window is closed";
  assert_int_equal(weft_eval(vm, "let done = 0\nprint(2)\ndone = 1", "test", NULL), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "io");
  assert_string_equal(weft_error_message(vm), "the window is closed");
  printed.fail = NULL;
  run(vm, "print(done)");
  assert_string_equal(printed.text, "1\n0\n");
  weft_free(vm);
}

typedef struct Typed {
  WeftVM *vm;
  const char *const *parts; /* NULL: the end */
} Typed;

static ptrdiff_t give(void *context, char *to, size_t room) {
  Typed *t = context;
  const char *part = *t->parts;
  if (!part) return 0;
  t->parts++;
  if (strcmp(part, "!") == 0) {
    (void)weft_fail(t->vm, "io", "nobody types");
    return 0;
  }
  if (strcmp(part, "-") == 0) return -1;
  assert_true(strlen(part) <= room);
  memcpy(to, part, strlen(part));
  return (ptrdiff_t)strlen(part);
}

static void input_comes_from_the_host(void **state) {
  (void)state;
  static const char *const parts[] = {"one\n", "tw", "o\r\n", "\n", "last", NULL};
  static const char *const failing[] = {"be", "!", "-", NULL};
  Typed typed = {.parts = parts};
  WeftOptions o = defaults;
  o.input = give;
  o.input_context = &typed;
  WeftVM *vm = typed.vm = host(&printed, o);
  run(vm, "print(map(i => read_line(), 0..6))");
  assert_string_equal(printed.text, "(\"one\", \"two\", \"\", \"last\", nil, nil)\n");
  assert_int_equal(printed.asked, 6);
  typed.parts = failing;
  assert_int_equal(weft_eval(vm, "read_line()", "test", NULL), WEFT_ERROR);
  assert_string_equal(weft_error_message(vm), "nobody types");
  assert_int_equal(weft_eval(vm, "read_line()", "test", NULL), WEFT_ERROR); /* standard input, which is not allowed */
  assert_string_equal(weft_error_kind(vm), "limit");
  weft_free(vm);
}

static void the_log_goes_to_the_host(void **state) {
  (void)state;
  static Kept log;
  memset(&log, 0, sizeof log);
  WeftOptions o = defaults;
  o.log = "bytecode,graph,breaks";
  o.log_output = keep;
  o.log_context = &log;
  o.hot = 1;
  WeftVM *vm = host(&printed, o);
  run(vm, "fn f(x) { print(x); x * 2.0 }\nfor i in 0..3 { f(i * 0.5) }");
  assert_non_null(strstr(log.text, "fn f"));
  assert_non_null(strstr(log.text, "graph "));
  assert_non_null(strstr(log.text, "weft: break"));
  assert_string_equal(printed.text, "0.0\n0.5\n1.0\n");
  weft_free(vm);
}

/* ---- programs and values ----------------------------------------------------------------------------------- */

static void a_text_runs_as_a_file(void **state) {
  (void)state;
  WeftVM *vm = host(&printed, defaults);
  WeftValue *v = NULL;
  const char *text = "let k = 4\nk * 2 # and what is not part of it";
  assert_int_equal(weft_load_text(vm, text, 15, "dir/a.weft", &v), WEFT_OK);
  assert_string_equal(weft_show(vm, v), "8");
  weft_release(vm, v);
  run(vm, "k + 1");
  assert_int_equal(weft_load_text(vm, "1 +\n(", 5, "dir/b.weft", &v), WEFT_ERROR);
  assert_null(v);
  assert_non_null(strstr(weft_error_text(vm), "dir/b.weft:2:"));
  assert_int_equal(weft_load_text(vm, NULL, 1, "x", NULL), WEFT_MISUSE);
  assert_int_equal(weft_load_text(vm, "1", 1, NULL, NULL), WEFT_MISUSE);
  assert_int_equal(weft_load_text(vm, NULL, 0, "x", NULL), WEFT_OK);
  weft_free(vm);
}

static void displays(WeftVM *vm, const char *program, const char *want) {
  WeftValue *v = NULL;
  assert_int_equal(weft_eval(vm, program, "test", &v), WEFT_OK);
  if (strncmp(weft_display(vm, v), want, strlen(want)) != 0) fail_msg("%s", weft_display(vm, v));
  if (!*want) assert_string_equal(weft_display(vm, v), "");
  size_t len = strlen(weft_display(vm, v));
  if (len) assert_int_equal(weft_display(vm, v)[len - 1], '\n');
  weft_release(vm, v);
}

static void values_as_the_prompt_shows_them(void **state) {
  (void)state;
  WeftVM *vm = host(&printed, defaults);
  displays(vm, "nil", "");
  displays(vm, "1.0 + 2", "3.0\n");
  displays(vm, "\"a\\nb\"", "\"a\\nb\"\n");
  displays(vm, "1 / 3", "0.333333\n");
  displays(vm, "[[1.5, 20.0], [300.0, 4.25]]", "f64 (2, 2)\n[[  1.5, 20.0],\n [300.0,  4.25]]\n");
  displays(vm, "{a: [1, 2], b: (\"x\", \"y\")}", "record of 2 columns, 2 rows\n  a  b\n  1  x\n  2  y\n");
  displays(vm, "u8([1])", "u8 (1,)  [1]\n");
  displays(vm, "trace.explain(x => x * 2.0, 1.0)", "fn: 1 graph, 0 breaks, 0 cold exits\n");
  assert_string_equal(weft_display(vm, NULL), "");
  assert_string_equal(weft_display(NULL, NULL), "");
  weft_free(vm);
}

/* ---- inputs and commands ----------------------------------------------------------------------------------- */

static void kinds_of_inputs(void **state) {
  (void)state;
  static const struct {
    const char *text;
    WeftInput kind;
  } inputs[] = {
      {"", WEFT_INPUT_WHOLE}, {"1 + 2", WEFT_INPUT_WHOLE}, {"1 +", WEFT_INPUT_UNFINISHED},
      {"fn f(x) {\n  x", WEFT_INPUT_UNFINISHED}, {"fn f(x) = x", WEFT_INPUT_DECLARES},
      {"fn f(x) = x\nf(1)", WEFT_INPUT_WHOLE}, {"let f = x => x", WEFT_INPUT_WHOLE}, {"1 1 (", WEFT_INPUT_WHOLE},
      {"\"\"\"a\n", WEFT_INPUT_UNFINISHED}, {":graph f", WEFT_INPUT_COMMAND}, {"  :nonsense", WEFT_INPUT_COMMAND},
      {"?sum", WEFT_INPUT_COMMAND}, {"sum?", WEFT_INPUT_COMMAND}, {"help sum", WEFT_INPUT_COMMAND},
      {"??", WEFT_INPUT_COMMAND}, {"help", WEFT_INPUT_COMMAND}, {"help(sum)", WEFT_INPUT_WHOLE},
      {"quit", WEFT_INPUT_COMMAND}, {"quit()", WEFT_INPUT_COMMAND}, {" exit ", WEFT_INPUT_COMMAND},
      {"exit(3)", WEFT_INPUT_WHOLE}, {"quits", WEFT_INPUT_WHOLE}, {"help 3", WEFT_INPUT_WHOLE},
  };
  WeftVM *vm = host(&printed, defaults);
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
    if (weft_input(vm, inputs[i].text) != inputs[i].kind) fail_msg("%s", inputs[i].text);
  run(vm, "let quit = 3; let help = 4");
  assert_int_equal(weft_input(vm, "quit"), WEFT_INPUT_WHOLE);
  assert_int_equal(weft_input(vm, "help"), WEFT_INPUT_WHOLE);
  assert_int_equal(weft_input(vm, "exit"), WEFT_INPUT_COMMAND);
  assert_int_equal(weft_input(NULL, "1"), WEFT_INPUT_WHOLE);
  assert_int_equal(weft_input(vm, NULL), WEFT_INPUT_WHOLE);
  assert_string_equal(weft_error_kind(vm), "");
  assert_string_equal(printed.text, "");
  weft_free(vm);
}

/* What it shows begins with `want`, or holds it. */
static void does(WeftVM *vm, const char *line, WeftCommandEnd end, const char *want) {
  const char *text = NULL;
  WeftCommandEnd came = weft_command(vm, line, &text);
  if (came != end) fail_msg("%s ends as %d: %s", line, (int)came, weft_error_text(vm));
  if (!strstr(text, want)) fail_msg("%s shows %s", line, text);
  if (!*want) assert_string_equal(text, "");
  if (*text) assert_int_equal(text[strlen(text) - 1], '\n');
}

static void commands_of_the_prompt(void **state) {
  (void)state;
  WeftOptions o = defaults;
  o.hot = 1;
  WeftVM *vm = host(&printed, o);
  does(vm, ":vars", WEFT_COMMAND_DONE, "  nothing is declared yet\n");
  run(vm, "fn f(x) = x * 2.0 + 1\nlet a = zeros((2, 3)); let r = {f: f}\nfor i in 0..5 { f(a) }");
  does(vm, ":vars", WEFT_COMMAND_DONE, "  a                array f64 (2, 3)\n");
  does(vm, ":help", WEFT_COMMAND_HELP, "  :load FILE ");
  does(vm, " : ", WEFT_COMMAND_HELP, "  :load FILE ");
  does(vm, "?", WEFT_COMMAND_HELP, "  :load FILE ");
  does(vm, ":graph f", WEFT_COMMAND_DONE, "multiply");
  does(vm, ":graph r.f\n", WEFT_COMMAND_DONE, "multiply");
  does(vm, ":guards f", WEFT_COMMAND_DONE, "# f#");
  does(vm, ":graph sum", WEFT_COMMAND_DONE, "not a function written in Weft\n");
  does(vm, ":graph", WEFT_COMMAND_DONE, ":graph needs the name of a function\n");
  does(vm, ":graph qqqqq", WEFT_COMMAND_FAILED, "");
  assert_string_equal(weft_error_message(vm), "qqqqq is not declared");
  does(vm, ":breaks f", WEFT_COMMAND_DONE, "test:1:");
  does(vm, ":why", WEFT_COMMAND_DONE, "\n");
  does(vm, ":stats", WEFT_COMMAND_DONE, "graphs");
  does(vm, ":stats f", WEFT_COMMAND_DONE, "compiles: ");
  does(vm, ":time f(a)", WEFT_COMMAND_DONE, "[[1.0, 1.0, 1.0],\n [1.0, 1.0, 1.0]]\n");
  does(vm, ":time b = 3", WEFT_COMMAND_DONE, " s\n");
  does(vm, ":time f(", WEFT_COMMAND_FAILED, "");
  assert_string_equal(weft_error_kind(vm), "syntax");
  does(vm, ":nonsense f", WEFT_COMMAND_DONE, ":nonsense: no such command; :help lists them\n");
  does(vm, ":tim 1", WEFT_COMMAND_DONE, ":tim: no such command; did you mean :time?\n");
  does(vm, ":q", WEFT_COMMAND_QUIT, "");
  does(vm, "quit()", WEFT_COMMAND_QUIT, "");
  does(vm, "1 + 1", WEFT_COMMAND_UNKNOWN, "");
  assert_int_equal(weft_command(NULL, ":vars", NULL), WEFT_COMMAND_UNKNOWN);
  assert_int_equal(weft_command(vm, ":vars", NULL), WEFT_COMMAND_DONE);
  does(vm, "?sum", WEFT_COMMAND_DONE, "");
  does(vm, "while ?", WEFT_COMMAND_DONE, "");
  assert_non_null(strstr(printed.text, "sum("));
  assert_non_null(strstr(printed.text, "while"));
  weft_free(vm);
}

static void a_command_runs_a_file(void **state) {
  (void)state;
  char path[] = "/tmp/weft-test-XXXXXX", line[64];
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, "print(7); let k = 8", 19), 19);
  close(fd);
  WeftVM *vm = host(&printed, defaults);
  for (int quoted = 0; quoted < 2; quoted++) {
    snprintf(line, sizeof line, quoted ? ":load \"%s\"" : " :load %s ", path);
    does(vm, line, WEFT_COMMAND_DONE, "");
  }
  assert_string_equal(printed.text, "7\n7\n");
  run(vm, "k");
  unlink(path);
  does(vm, line, WEFT_COMMAND_FAILED, "");
  assert_string_equal(weft_error_kind(vm), "io");
  weft_free(vm);
}

/* ---- completion -------------------------------------------------------------------------------------------- */

/* `line` ends where Tab is pressed; `word` is among what is offered, `other` is not. */
static void completes(WeftVM *vm, const char *line, const char *before, const char *word, const char *other) {
  WeftCompletion c = {.size = sizeof c};
  bool found = false;
  weft_complete(vm, line, strlen(line), &c);
  assert_false(c.files);
  assert_int_equal(c.from, strlen(before));
  for (size_t i = 0; i < c.count; i++) {
    if (i) assert_true(strcmp(c.words[i - 1], c.words[i]) < 0);
    if (strncmp(c.words[i], line + c.from, strlen(line + c.from)) != 0) fail_msg("%s: %s", line, c.words[i]);
    found |= strcmp(c.words[i], word) == 0;
    if (strcmp(c.words[i], other) == 0) fail_msg("%s offers %s", line, other);
  }
  if (!found) fail_msg("%s does not offer %s", line, word);
}

static void lines_go_on(void **state) {
  (void)state;
  WeftVM *vm = host(&printed, defaults);
  WeftCompletion c = {.size = sizeof c};
  run(vm, "let alpha = 1; let rec = {inner: {deep: 2, depth: 3}, f: (zebra, y) => zebra}");
  run(vm, "fn fun(first, second) = first");
  completes(vm, "", "", "alpha", "deep");
  completes(vm, "1 + al", "1 + ", "alpha", "fun");
  completes(vm, "whi", "", "while", "where");
  completes(vm, "x = rec.inner.de", "x = rec.inner.", "depth", "inner");
  completes(vm, "rec.", "rec.", "inner", "shape");
  completes(vm, "alpha.sh", "alpha.", "shape", "alpha");
  completes(vm, "linalg.s", "linalg.", "solve", "sum");
  completes(vm, "fun(", "fun(", "second=", "alpha");
  completes(vm, "fun(1, (2, 3), se", "fun(1, (2, 3), ", "second=", "first=");
  completes(vm, "rec.f(ze", "rec.f(", "zebra=", "zeros_like=");
  completes(vm, "f(\"(\", [sum(a", "f(\"(\", [sum(", "axis=", "second=");
  completes(vm, ":gr", ":", "graph", "greater");
  completes(vm, " :graph f", " :graph ", "fun", "f32");
  completes(vm, ":time al", ":time ", "alpha", "graph");
  weft_complete(vm, ":gr", 3, &c);
  assert_true(c.blank);
  weft_complete(vm, "alpha", 2, &c);
  assert_int_equal(c.from, 0);
  assert_false(c.blank);
  static const struct {
    const char *line;
    size_t from;
  } files[] = {{":load di", 6}, {":load dir/a b", 12}, {"read(\"di", 6}, {"f(1, \"a\") + g(\"x y", 15}};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    weft_complete(vm, files[i].line, strlen(files[i].line), &c);
    if (!c.files || c.count || c.from != files[i].from) fail_msg("%s: from %zu", files[i].line, c.from);
  }
  weft_complete(vm, ":vars a", 7, &c);
  assert_int_equal(c.count, 0);
  weft_complete(vm, "a", 5, &c);
  assert_int_equal(c.count, 0);
  weft_complete(NULL, "a", 1, &c);
  assert_int_equal(c.count, 0);
  assert_string_equal(printed.text, "");
  assert_string_equal(weft_error_kind(vm), "");
  weft_free(vm);
}

/* What there is to know of each word. */
static void words_have_notes(void **state) {
  (void)state;
  WeftVM *vm = host(&printed, defaults);
  WeftCompletion c = {.size = sizeof c};
  run(vm, "## Adds them.\nfn adder(one, two=1) = one + two\nlet advice = {text: \"some\", table: [[1.0, 2.0]]}");
  static const struct {
    const char *line, *word, *note;
  } want[] = {{"adder", "adder", "(one, two=1)  Adds them."}, {"advice.te", "text", "text of 4 characters"},
              {"advice.ta", "table", "array f64 (1, 2)"}, {"advic", "advice", "record of 2 keys"},
              {"whil", "while", "reserved word"}, {"linal", "linalg", "module"},
              {"x.ndi", "ndim", "property of arrays"},
              {"adder(tw", "two=", "argument"}, {":dig", "digits", "N  significant digits of a float that are shown"}};
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    weft_complete(vm, want[i].line, strlen(want[i].line), &c);
    size_t at = 0;
    while (at < c.count && strcmp(c.words[at], want[i].word) != 0) at++;
    if (at == c.count || strncmp(c.notes[at], want[i].note, strlen(want[i].note)) != 0)
      fail_msg("%s: %s", want[i].line, at < c.count ? c.notes[at] : "not there");
  }
  weft_complete(vm, "linspac", 7, &c);
  assert_int_equal(c.count, 1);
  assert_non_null(strstr(c.notes[0], "(start, stop"));
  weft_free(vm);
}

static void texts_have_paint(void **state) {
  (void)state;
  static const struct {
    const char *text, *paint; /* a letter for each byte */
    bool open;
  } want[] = {{"let x = 12", "WWW.....NN", false}, {"f(\"a)\") # b", "FBTTTTB.CCC", false},
              {"\"abc", "TTTT", false}, {"f\"a{x + 1}\"", "TTTB....NBT", false}, {"not true", "WWW.NNNN", false},
              {":graph f", "WWWWWW..", false}, {"\"\"\"a", "TTTT", true}, {"sum", "FFF", false}, {"", "", false}};
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    unsigned char paint[32];
    char got[32];
    size_t n = strlen(want[i].text);
    if (weft_paint(want[i].text, n, paint) != want[i].open) fail_msg("%s: is it open?", want[i].text);
    for (size_t k = 0; k < n; k++) got[k] = ".WNTCFB!"[paint[k]];
    got[n] = 0;
    assert_string_equal(got, want[i].paint);
  }
  assert_false(weft_paint(NULL, 0, NULL));
}

static void the_last_value_is_kept(void **state) {
  (void)state;
  WeftVM *vm = host(&printed, defaults);
  WeftValue *v;
  assert_int_equal(weft_eval(vm, "6 * 7", "a", &v), WEFT_OK);
  weft_remember(vm, v);
  weft_release(vm, v);
  displays(vm, "ans + 1", "43\n");
  assert_int_equal(weft_eval(vm, "nil", "a", &v), WEFT_OK);
  weft_remember(vm, v); /* nil is none */
  weft_release(vm, v);
  displays(vm, "ans", "42\n");
  run(vm, "ans = \"mine\"");
  assert_int_equal(weft_eval(vm, "1", "a", &v), WEFT_OK);
  weft_remember(vm, v);
  weft_release(vm, v);
  displays(vm, "ans", "\"mine\"\n");
  weft_remember(vm, NULL);
  weft_remember(NULL, NULL);
  weft_free(vm);
}

static void functions_have_a_source(void **state) {
  (void)state;
  WeftVM *vm = host(&printed, defaults);
  WeftValue *v;
  assert_int_equal(weft_eval(vm, "fn f(x) = x + 1\nf", "a", &v), WEFT_OK);
  assert_string_equal(weft_dump(vm, v, "source"), "fn f(x) = x + 1");
  weft_release(vm, v);
  assert_int_equal(weft_eval(vm, "sum", "a", &v), WEFT_OK);
  assert_null(weft_dump(vm, v, "source"));
  weft_release(vm, v);
  assert_null(weft_dump(vm, NULL, "source"));
  weft_free(vm);
}

/* ---- what was compiled ------------------------------------------------------------------------------------- */

static void the_log_as_text_and_file(void **state) {
  (void)state;
  char path[] = "/tmp/weft-test-XXXXXX", text[64] = "";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  WeftOptions o = defaults;
  o.hot = 1;
  WeftVM *vm = host(&printed, o);
  run(vm, "fn f(x) { print(x); x * 2.0 }\nfor i in 0..3 { f(i * 0.5) }");
  const char *told = weft_dump(vm, NULL, "explain");
  assert_int_equal(strncmp(told, "what was compiled:\n  compiles ", 30), 0);
  assert_non_null(strstr(told, "  break at test:"));
  assert_int_equal(weft_dump_file(vm, NULL, "json", path), WEFT_OK);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  assert_non_null(fgets(text, sizeof text, f));
  fclose(f);
  assert_int_equal(text[0], '{');
  assert_int_equal(weft_dump_file(vm, NULL, "json", "/nowhere/x"), WEFT_ERROR);
  assert_string_equal(weft_error_kind(vm), "io");
  assert_string_equal(weft_error_message(vm), "cannot write \"/nowhere/x\": No such file or directory");
  assert_int_equal(weft_dump_file(vm, NULL, "nonsense", path), WEFT_MISUSE);
  assert_int_equal(weft_dump_file(vm, NULL, "json", NULL), WEFT_MISUSE);
  weft_free(vm);
  unlink(path);
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reasons_for_which_there_is_no_vm),
      cmocka_unit_test(old_options_end_at_stack),
      cmocka_unit_test(the_clock_can_be_ignored),
      cmocka_unit_test(output_that_fails_ends_the_program),
      cmocka_unit_test(input_comes_from_the_host),
      cmocka_unit_test(the_log_goes_to_the_host),
      cmocka_unit_test(a_text_runs_as_a_file),
      cmocka_unit_test(values_as_the_prompt_shows_them),
      cmocka_unit_test(kinds_of_inputs),
      cmocka_unit_test(commands_of_the_prompt),
      cmocka_unit_test(a_command_runs_a_file),
      cmocka_unit_test(lines_go_on),
      cmocka_unit_test(words_have_notes),
      cmocka_unit_test(texts_have_paint),
      cmocka_unit_test(the_last_value_is_kept),
      cmocka_unit_test(functions_have_a_source),
      cmocka_unit_test(the_log_as_text_and_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
