/* prompt.c — the program `weft` at a terminal: every key and state of docs/prompt.md, driven through a
 * pseudo-terminal.
 *   build/tests/prompt [NAME…]     all tests, or those whose names contain one of these; the environment's WEFT
 *                                  names the program
 *   build/tests/prompt --type FILE types FILE's lines at the prompt and shows what the screen holds at the end */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/prompt/session.h"

static void write_file(const char *name, const char *text) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s", own_folder, name);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(text, 1, strlen(text), f) != strlen(text) || fclose(f) != 0) must(false, "cannot write %s", path);
}

static char *read_file(const char *name) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s", own_folder, name);
  FILE *f = fopen(path, "rb");
  char *text = calloc(1, 1 << 22);
  if (f && text) text[fread(text, 1, (1 << 22) - 1, f)] = 0;
  if (f) fclose(f);
  return text;
}

static const char *path_of(const char *name) {
  static char path[600];
  snprintf(path, sizeof path, "%s/%s", own_folder, name);
  return path;
}

static void key(Session *s, char c) { type_bytes(s, &c, 1); }

static bool row_begins(const Session *s, int y, const char *text) {
  char *row = screen_row(&s->screen, y);
  bool begins = strncmp(row, text, strlen(text)) == 0;
  free(row);
  return begins;
}

static Session open_prompt(const Setup *setup) {
  Session s;
  session_open(&s, setup);
  wait_prompt(&s);
  return s;
}

static void leave(Session *s) {
  key(s, CTRL_D);
  wait_end(s, 0);
  session_close(s);
}

/* ---- values and errors ------------------------------------------------------------------------ */

static void values(void) {
  Session s = open_prompt(NULL);
  said(&s, "1 + 2", "3");
  said(&s, "x = 3", "");
  said(&s, "x * 2", "6");
  said(&s, "nil", "");
  said(&s, "", "");
  said(&s, "# a comment", "");
  said(&s, "print(5)", "5");
  said(&s, "\"a\\n\"", "\"a\\n\"");
  said(&s, "print(\"no end of line\", end=\"\")", "no end of line");
  said(&s, "1", "1");
  told(&s, "y + 1", "error: y is not declared");
  leave(&s);
}

static void declarations(void) {
  Session s = open_prompt(NULL);
  said(&s, "fn f(x) = x + 1", "");
  said(&s, "f(1)", "2");
  said(&s, "f", "<fn f>");
  said(&s, "fn outer(x) = nested(x) * 10", "");
  told(&s, "outer(1)", "error: nested is not declared");
  told(&s, "outer(1)", "in outer, called at");
  said(&s, "fn nested(x) = x + 1", "");
  said(&s, "outer(1)", "20");
  said(&s, "fn slip(x) = sqt(x)", "");
  told(&s, "slip(1)", "sqt is not declared; did you mean sqrt?");
  told(&s, "fn g() { undeclared = 1 }", "undeclared is not declared; write 'let undeclared");
  told(&s, "{a: 1}.b", "error: the record has no key 'b'");
  must(!strstr(ask(&s, "{a: 1}.b"), "did you mean"), "one letter is near to another");
  leave(&s);
  static const char *const modes[] = {"WEFT_BACKEND=eager", "WEFT_BACKEND=interp", "WEFT_BACKEND=loops",
                                      "WEFT_BACKEND=mir", "WEFT_BACKEND=verify"};
  for (int i = 0; i < 5; i++) {
    s = open_prompt(&(Setup){.more = modes[i]});
    said(&s, "fn outer(x) { let s = 0; for i in 0..100 { s += later(x) }; s }", "");
    told(&s, "outer(1)", "error: later is not declared");
    told(&s, "for i in 0..100 { try { outer(1) } catch e { if i == 99 { e.message } } }; 7", "7");
    said(&s, "fn later(x) = x", "");
    said(&s, "for i in 0..100 { outer(1) }; outer(1)", "100");
    leave(&s);
  }
}

static void carets(void) {
  Session s = open_prompt(NULL);
  told(&s, "\"日本\" + foo", "\n1 | \"日本\" + foo\n  |          ^^^");
  told(&s, "\"é\" + foo", "\n1 | \"é\" + foo\n  |       ^^^");
  told(&s, "\"e\xCC\x81\" + foo", "\n1 | \"e\xCC\x81\" + foo\n  |       ^^^");
  leave(&s);
}

static void reports(void) {
  Session s = open_prompt(NULL);
  said(&s, "fn f(x) = sum(x * 2.0)", "");
  told(&s, "trace.explain(f, arange(8.0))", "f: 1 graph, 0 breaks, 0 cold exits\n  f#");
  said(&s, "r = trace.explain(f, arange(8.0))", "");
  told(&s, "r", "f: 1 graph, 0 breaks, 0 cold exits\n  f#");
  said(&s, "r.graphs", "1");
  told(&s, "str(r)", "{graphs: 1");
  leave(&s);
}

/* What plot.line gives is drawn, as wide as the window; a dumb terminal gets plain characters. */
static void drawings(void) {
  Session s = open_prompt(NULL);
  told(&s, "plot.line([1.0, 3.0, 2.0], title=\"up and down\")", "up and down");
  told(&s, "plot.line([0.0, 1.0])", "\xE2\xA0"); /* braille */
  told(&s, "plot.hist([1.0, 2.0, 2.0])", "\xE2\xA3\xBF");
  told(&s, "plot.imshow([[0.0, 1.0]])", "\xE2\x96\x80"); /* halves of blocks, in colours */
  told(&s, "plot.bar((\"a\", \"bb\"), [1.0, 2.0])", "bb");
  told(&s, "plot.over((plot.line([0.0, 1.0]), plot.scatter([1.0])), title=\"both\")", "both");
  told(&s, "plot.grid((plot.line([0.0, 1.0]), plot.hist([1.0])), title=\"two\")", "two");
  told(&s, "str(plot.line([0.0, 1.0]))[:14]", "{plot: \\\"line\\\"");
  said(&s, "6 * 7", "42");
  leave(&s);
  s = open_prompt(&(Setup){.term = "dumb", .width = 40, .height = 20});
  type(&s, "plot.line([0.0, 1.0])\r");
  wait_text(&s, " | ");
  wait_text(&s, "*");
  wait_text(&s, "+------");
  wait_prompt(&s);
  leave(&s);
}

/* ---- how values are shown ------------------------------------------------------------------------ */

static void shown_numbers(void) {
  Session s = open_prompt(NULL);
  said(&s, "1 / 3", "0.333333");
  said(&s, "2.0", "2.0");
  said(&s, "123456789.125", "123456789.1"); /* digits before the point are never rounded */
  said(&s, "1234567890.5", "1.23457e9");
  said(&s, "0.00012345678", "0.000123457");
  said(&s, "-1e-5", "-1e-5");
  said(&s, "inf", "inf");
  said(&s, "10 ** 12", "1000000000000");
  said(&s, "f32(0.1)", "f32(0.1)");
  said(&s, "u8(3)", "u8(3)");
  said(&s, "complex(1.0, -1.0 / 3)", "c128(1.0-0.333333j)");
  said(&s, ":digits", "digits of a float: 6");
  said(&s, ":digits 3", "digits of a float: 3");
  said(&s, "2 / 3", "0.667");
  said(&s, ":digits all", "digits of a float: all");
  said(&s, "2 / 3", "0.6666666666666666");
  said(&s, ":digits 0", "digits of a float: a number from 1 to 17, or all");
  said(&s, ":digits many", "digits of a float: a number from 1 to 17, or all");
  said(&s, "print(1 / 3)", "0.3333333333333333"); /* print keeps its form */
  leave(&s);
}

static void shown_arrays(void) {
  Session s = open_prompt(NULL);
  said(&s, "[1, 2, 3]", "i64 (3,)  [1, 2, 3]");
  said(&s, "zeros((2, 0))", "f64 (2, 0)  []");
  said(&s, "[true, false]", "bool (2,)  [true, false]");
  said(&s, "f32([[1.5, 2.25], [1000.125, 0.001]])", "f32 (2, 2)\n[[   1.5,  2.25],\n [1000.12, 0.001]]");
  said(&s, "[[1, 200], [30, 4]]", "i64 (2, 2)\n[[ 1, 200],\n [30,   4]]");
  said(&s, "[[nan, 1.5], [inf, -2.0]]", "f64 (2, 2)\n[[nan,  1.5],\n [inf, -2.0]]");
  said(&s, "arange(8).reshape((2, 2, 2))",
       "i64 (2, 2, 2)\n[[[0, 1],\n  [2, 3]],\n [[4, 5],\n  [6, 7]]]");
  told(&s, "zeros((100, 100))", "f64 (100, 100)\n[[0.0, 0.0, ");
  told(&s, "zeros((100, 100))", "…, 0.0, ");
  told(&s, "zeros((100, 100))", "\n …\n [");
  told(&s, "arange(1000)", "i64 (1000,)\n[  0,   1,");
  told(&s, "arange(1000)", "\n …\n ");
  told(&s, "arange(1000)", "999]");
  said(&s, ":rows 2", "rows of an array: 2");
  said(&s, "[[1], [2], [3]]", "i64 (3, 1)\n[[1],\n …\n [3]]");
  said(&s, ":rows auto", "rows of an array: auto");
  said(&s, "[[1], [2], [3]]", "i64 (3, 1)\n[[1],\n [2],\n [3]]");
  leave(&s);
}

static void shown_containers(void) {
  Session s = open_prompt(NULL);
  said(&s, "(1, \"a\", nil)", "(1, \"a\", nil)");
  said(&s, "{a: 1, \"not a name\": (2,)}", "{a: 1, \"not a name\": (2,)}");
  told(&s, "list(0..3000)", "more)");
  told(&s, "list(map(i => {id: i, name: \"a name that is long enough\"}, 0..100))", "\n … ");
  told(&s, "{weights: zeros((100, 30)), names: join(map(_ => \"x\", 0..200), \"\")}",
       "{weights: <f64 (100, 30)>,\n names:   \"xxx");
  told(&s, "join(map(_ => \"x\", 0..5000), \"\")", "…\"  (5,000 characters)");
  said(&s, "{n: [1, 22], x: [0.5, 10.25], s: (\"a\", \"bcd\")}",
       "record of 3 columns, 2 rows\n   n      x  s\n   1   0.5   a\n  22  10.25  bcd");
  told(&s, "{n: arange(1000), m: arange(1000) * 2}", "record of 2 columns, 1,000 rows\n    n     m\n    0     0");
  told(&s, "{n: arange(1000), m: arange(1000) * 2}", "\n  …\n");
  said(&s, "{a: [1, 2], b: [1]}", "{a: [1, 2], b: [1]}"); /* no table: their lengths differ */
  leave(&s);
}

/* Whatever the width, no row is longer than the screen. */
static void shown_at_widths(void) {
  static const int widths[] = {40, 80, 132};
  static const char *const values[] = {
      "random.normal(random.key(1), (50, 50))", "arange(5000) * 0.37", "list(0..1000)", "zeros((9, 9, 9, 9))",
      "{a: arange(100), b: arange(100) * 0.1, c: list(map(i => \"text number \" + str(i), 0..100))}",
      "list(map(i => {id: i, values: zeros(i)}, 0..60))", "join(map(_ => \"日本\", 0..900), \"\")",
      "{model: {layers: list(map(i => {w: zeros((i, i))}, 1..30))}, rate: 0.1}"};
  for (int i = 0; i < 3; i++) {
    Session s = open_prompt(&(Setup){.width = widths[i]});
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
      int from = s.screen.y;
      const char *got = ask(&s, values[k]);
      must(*got && s.screen.y - from < 60, "%s takes %d rows", values[k], s.screen.y - from);
      must(strstr(got, "error") == NULL, "%s gives %s", values[k], got);
    }
    leave(&s);
  }
}

/* ---- the last value ---------------------------------------------------------------------------- */

static void last_value(void) {
  Session s = open_prompt(NULL);
  told(&s, "_", "'_' is no value");
  told(&s, "ans", "ans is not declared");
  said(&s, "6 * 7", "42");
  said(&s, "_", "42");
  said(&s, "_ + _", "84");
  said(&s, "ans - 80", "4");
  said(&s, "x = 3", "");
  said(&s, "ans", "4"); /* nil is no answer */
  said(&s, "print(1)", "1");
  said(&s, "_", "4");
  said(&s, "5 |> ((a, b) => a - b)(1, _)", "-4"); /* a piped value */
  said(&s, "let (p, _) = (1, 2)", ""); /* a pattern */
  told(&s, "_ + nowhere", "nowhere is not declared");
  said(&s, "ans = \"mine\"", "");
  said(&s, "1 + 1", "2");
  said(&s, "ans", "\"mine\"");
  leave(&s);
}

/* ---- colours ------------------------------------------------------------------------------------- */

static void colours(void) {
  Session s = open_prompt(NULL);
  type(&s, "let x = f(\"a\", 12) # note");
  wait_row(&s, "> let x = f(\"a\", 12) # note");
  must(screen_colour(&s.screen, s.screen.y, 0) == 32, "the prompt has the colour %d",
       screen_colour(&s.screen, s.screen.y, 0));
  static const struct { int x, colour; } want[] = {{2, 35}, {6, 0}, {10, 34}, {12, 32}, {17, 36}, {21, 90}};
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    int got = screen_colour(&s.screen, s.screen.y, want[i].x);
    must(got == want[i].colour, "column %d has the colour %d, not %d", want[i].x, got, want[i].colour);
  }
  key(&s, CTRL_C);
  wait_prompt(&s);
  told(&s, "foo", "error: foo is not declared");
  int y = s.screen.y;
  while (y > 0 && !row_begins(&s, y, "error:")) y--;
  must(screen_colour(&s.screen, y, 0) == 31, "an error has the colour %d", screen_colour(&s.screen, y, 0));
  said(&s, "[1, 2]", "i64 (2,)  [1, 2]");
  y = s.screen.y - 1;
  must(screen_colour(&s.screen, y, 0) == 90 && screen_colour(&s.screen, y, 11) == 0, "a heading has the colour %d",
       screen_colour(&s.screen, y, 0));
  leave(&s);
  static const Setup plain[] = {{.more = "NO_COLOR=1"}, {.term = "dumb"}};
  for (int i = 0; i < 2; i++) {
    s = open_prompt(&plain[i]);
    told(&s, "foo", "error: foo is not declared");
    told(&s, "[1, 2]", "i64 (2,)  [1, 2]");
    for (y = 0; y <= s.screen.y; y++)
      for (int x = 0; x < 40; x++) must(screen_colour(&s.screen, y, x) == 0, "row %d has a colour", y);
    leave(&s);
  }
}

/* The brackets at the cursor are marked, not those in texts. */
static void brackets(void) {
  Session s = open_prompt(NULL);
  type(&s, "f(\")\", [1, 2])");
  wait_row(&s, "> f(\")\", [1, 2])");
  must(screen_colour(&s.screen, s.screen.y, 3) == 4, "the partner has the colour %d",
       screen_colour(&s.screen, s.screen.y, 3));
  must(screen_colour(&s.screen, s.screen.y, 15) == 4, "the bracket has the colour %d",
       screen_colour(&s.screen, s.screen.y, 15));
  must(screen_colour(&s.screen, s.screen.y, 5) == 32, "a bracket in a text is marked");
  key(&s, CTRL_C);
  wait_prompt(&s);
  leave(&s);
}

/* ---- blocks ------------------------------------------------------------------------------------- */

static void blocks(void) {
  Session s = open_prompt(NULL);
  type(&s, "fn f(x) {\r");
  wait_more(&s);
  wait_column(&s, 6);
  type(&s, "if x > 1 {\r");
  wait_more(&s);
  wait_column(&s, 8);
  type(&s, "x * 10\r");
  wait_more(&s);
  type(&s, "}"); /* stands below its if */
  wait_row(&s, "...   }");
  type(&s, " else { x }\r");
  wait_more(&s);
  type(&s, "}");
  wait_row(&s, "... }");
  type(&s, "\033[A\033[A\033[A"); /* up inside of the block, to `if` */
  wait_row(&s, "...   if x > 1 {");
  key(&s, CTRL_E);
  type(&s, "\177\177\177" "0 {");
  wait_row(&s, "...   if x > 0 {");
  type(&s, "\r"); /* it is whole: runs from anywhere */
  wait_prompt(&s);
  said(&s, "f(1)", "10");
  type(&s, "\033[A\033[A"); /* the block comes back whole */
  wait_row(&s, "... }");
  type(&s, "\033[D\033[A"); /* another key between, and Up moves a line */
  wait_row(&s, "...   } else { x }");
  type(&s, "\r");
  wait_prompt(&s);
  said(&s, "f(2)", "20");
  type(&s, "[100,\r");
  wait_more(&s);
  type(&s, "200, 300");
  wait_row(&s, "...   200, 300");
  key(&s, CTRL_U); /* of its line alone */
  wait_row(&s, "...");
  type(&s, "4, 55\002\002\013"); /* Ctrl-K */
  wait_row(&s, "... 4,");
  said(&s, "5]", "i64 (3,)  [100, 4, 5]");
  type(&s, "y = 1\033\r"); /* Alt-Enter */
  wait_more(&s);
  wait_column(&s, 4);
  type(&s, "y + 4\r");
  wait_text(&s, "5");
  wait_prompt(&s);
  type(&s, "t = \"\"\"a\r");
  wait_more(&s);
  wait_column(&s, 4); /* the blanks of a text are its own */
  said(&s, "b\"\"\"", "");
  said(&s, "t", "\"a\\nb\"");
  type(&s, "[1,\r");
  wait_more(&s);
  key(&s, 12); /* Ctrl-L */
  type(&s, "2");
  wait_row(&s, "...   2");
  said(&s, "]", "i64 (2,)  [1, 2]");
  leave(&s);
}

/* Blocks higher than the window, wide characters at its edge, three widths. */
static void blocks_at_widths(void) {
  static const int widths[] = {40, 80, 132};
  for (int i = 0; i < 3; i++) {
    Session s = open_prompt(&(Setup){.width = widths[i], .height = 10});
    type(&s, "len((\r");
    for (int k = 0; k < 15; k++) {
      wait_row(&s, "...");
      type(&s, "\"日本語日本語日本語日本語日本語日本語日本語\",\r");
    }
    wait_row(&s, "...");
    s.from = 0;
    type(&s, "))\r");
    wait_text(&s, "15");
    wait_prompt(&s);
    int begins = 0; /* all of it stays above the answer */
    for (int y = s.screen.y > 40 ? s.screen.y - 40 : 0; y < s.screen.y; y++) begins += row_begins(&s, y, "... ");
    must(begins >= 16, "the block keeps %d rows", begins);
    type(&s, "\"abcdefghijklmnopqrstuvwxyz日本語日本語\" + \"日本語\"");
    key(&s, CTRL_A);
    type(&s, "len(");
    key(&s, CTRL_E);
    type(&s, ")\r");
    wait_text(&s, "35");
    wait_prompt(&s);
    leave(&s);
  }
}

/* ---- several lines ---------------------------------------------------------------------------- */

static void more_lines(void) {
  Session s = open_prompt(NULL);
  type(&s, "fn f(x) {\r");
  wait_more(&s);
  type(&s, "\r"); /* an empty line inside a bracket ends nothing */
  wait_more(&s);
  type(&s, "  let y = (x +\r");
  wait_more(&s);
  type(&s, "\r");
  wait_more(&s);
  type(&s, "    1)\r");
  wait_more(&s);
  type(&s, "  y * 2\r");
  wait_more(&s);
  said(&s, "}", "");
  said(&s, "f(2)", "6");
  type(&s, "t = \"\"\"one\r");
  wait_more(&s);
  type(&s, "\r");
  wait_more(&s);
  said(&s, "two\"\"\"", "");
  said(&s, "t", "\"one\\n\\ntwo\"");
  type(&s, "let z =\r");
  wait_more(&s);
  said(&s, "4", "");
  said(&s, "z", "4");
  leave(&s);
}

/* ---- the tab key ------------------------------------------------------------------------------ */

static void completes(Session *s, const char *typed, const char *wanted) {
  char row[256], keys[256];
  snprintf(row, sizeof row, "> %s", wanted);
  snprintf(keys, sizeof keys, "%s", typed);
  type(s, keys);
  /* a tab behind waiting keys is a pasted one */
  wait_row(s, strlen(typed) ? (snprintf(keys, sizeof keys, "> %s", typed), keys) : ">");
  key(s, TAB);
  wait_row(s, row);
  key(s, CTRL_U);
  wait_row(s, ">");
}

/* Two tabs show what is possible. */
static void offers(Session *s, const char *typed, const char *one, const char *another) {
  char row[256];
  snprintf(row, sizeof row, "> %s", typed);
  type(s, typed);
  wait_row(s, row);
  int from = s->from;
  key(s, TAB);
  wait_row(s, row);
  key(s, TAB);
  s->from = from;
  wait_text(s, one);
  wait_text(s, another);
  wait_row(s, row);
  key(s, CTRL_U);
  wait_row(s, ">");
}

static void completion(void) {
  write_file("measured.csv", "a,b\n1,2\n");
  write_file("part.weft", "let shown_value = 1\nlet _hidden = 2\nfn shown_function(x) = x\n");
  mkdir(path_of("folder_of_data"), 0777);
  Session s = open_prompt(NULL);
  said(&s, "my_variable = 1", "");
  said(&s, "rec = {alpha: 1, alfa: {gamma_ray: 2}, \"not a name\": 3}", "");
  said(&s, "x = [[1.0, 2.0]]", "");
  said(&s, "import \"part.weft\" as part", "");
  said(&s, "fn fit(values, step_size=1) = values", "");
  said(&s, "rr = ref(1)", "");
  said(&s, "größe = 3", "");
  completes(&s, "linsp", "linspace");
  completes(&s, "my_v", "my_variable");
  completes(&s, "1 + my_v", "1 + my_variable");
  completes(&s, "grö", "größe");
  completes(&s, "contin", "continue");
  completes(&s, "tru", "tru"); /* true, trunc */
  completes(&s, "linalg.sol", "linalg.solve");
  completes(&s, "1 + linalg.sol", "1 + linalg.solve");
  completes(&s, "random.ber", "random.bernoulli");
  completes(&s, "linalg.nothing", "linalg.nothing");
  completes(&s, "rec.alp", "rec.alpha");
  completes(&s, "rec.alfa.ga", "rec.alfa.gamma_ray");
  completes(&s, "rec.no", "rec.no"); /* `not a name` stands behind no point; nonzero and norm do */
  completes(&s, "part.shown_v", "part.shown_value");
  completes(&s, "part._h", "part._h");
  completes(&s, "x.sha", "x.shape");
  completes(&s, "x.nd", "x.ndim");
  completes(&s, "x.argso", "x.argsort");
  completes(&s, "x.fi", "x.fi"); /* find, fit */
  completes(&s, "f(x).argso", "f(x).argsort");
  completes(&s, "rr.val", "rr.value");
  completes(&s, "0..my_v", "0..my_variable");
  completes(&s, "sum(x, keep", "sum(x, keepdims=");
  completes(&s, "linalg.qr(x, mode", "linalg.qr(x, mode=");
  completes(&s, "fit(1, step_", "fit(1, step_size=");
  completes(&s, "x.fit(step_", "x.fit(step_size=");
  completes(&s, "fit((1, 2)[0], my_v", "fit((1, 2)[0], my_variable");
  completes(&s, "load_csv(\"meas", "load_csv(\"measured.csv\"");
  completes(&s, "read_text(\"folder_", "read_text(\"folder_of_data/");
  completes(&s, "load_csv(\"lins", "load_csv(\"lins");
  completes(&s, ":gua", ":guards");
  completes(&s, ":guards fi", ":guards fit");
  completes(&s, ":time linsp", ":time linspace");
  completes(&s, ":load meas", ":load measured.csv");
  offers(&s, "rec.al", "alpha", "alfa");
  offers(&s, "rec.al", "alpha  array i64", "alfa   record of 1 key");
  offers(&s, "linalg.solve", "solve_triangular", "(a, b)  x with a @ x == b");
  offers(&s, "linspace", "linspace  (start, stop", "num"); /* of the only one too, once it is whole */
  offers(&s, "arg", "argmax", "index of the");
  offers(&s, "fi", "fit", "(values, step_size=1)");
  offers(&s, "fit(", "values=", "step_size=");
  offers(&s, ":g", "graph", "guards");
  key(&s, TAB); /* in front of a line it indents */
  wait_column(&s, 4);
  said(&s, "41 + 1", "42");
  type(&s, "fn g(x) {\r");
  wait_more(&s);
  wait_column(&s, 6); /* it is indented already */
  key(&s, TAB);
  wait_column(&s, 8);
  type(&s, "x\r");
  wait_text(&s, "...     x");
  wait_more(&s);
  said(&s, "}", "");
  said(&s, "g(8)", "8");
  leave(&s);
  char *kept = read_file("history");
  must(strstr(kept, "fn g(x) {\n\t    x\n\t}\n") != NULL, "a tab indents by something else: %s", kept);
  free(kept);
}

/* Names are offered where nobody expects them to be asked for, too. */
static void tabs_everywhere(void) {
  static const char *const begun[] = {"", "(", "[", "{", "\"", "1.", "..", ".", "x.", "linalg.", "linalg..", "f(",
                                      "f(1,", "# ", ":", ":xyz ", "::", "\xC3\xA4", "a b c.d.e.", "\"a\".", "f\"{",
                                      "sum(sum(", ")", "])}"};
  Session s = open_prompt(NULL);
  for (size_t i = 0; i < sizeof begun / sizeof *begun; i++) {
    type(&s, begun[i]);
    char row[64];
    snprintf(row, sizeof row, "> %s", begun[i]);
    wait_row(&s, row);
    key(&s, TAB);
    key(&s, TAB);
    key(&s, CTRL_C); /* also out of `Display all 269 possibilities?` */
    wait_prompt(&s);
    said(&s, "6 * 7", "42");
  }
  leave(&s);
}

/* ---- paste ------------------------------------------------------------------------------------ */

static const char pasted[] =
    "fn area(w, h) {\r\r\t# with tabs,\r\r\tlet a =\tw * h\r\r\t{\r\t\ta\r\t}\r}\rarea(3,\t4)\r";

static void paste_plain(void) {
  Session s = open_prompt(NULL);
  type(&s, pasted);
  wait_text(&s, "12");
  wait_prompt(&s);
  must(!strstr(ask(&s, "1"), "error"), "the paste left something behind");
  leave(&s);
}

static void paste_bracketed(void) {
  Session s = open_prompt(NULL);
  type(&s, "\033[200~");
  type(&s, pasted);
  type(&s, "\033[201~");
  int from = s.from;
  type(&s, "\r");
  s.from = from;
  wait_text(&s, "12");
  wait_prompt(&s);
  type(&s, "\033[A"); /* it came as one entry */
  wait_text(&s, "area(3,");
  key(&s, CTRL_C);
  wait_prompt(&s);
  leave(&s);
  char *kept = read_file("history");
  must(strstr(kept, "fn area(w, h) {\n\t\n\t\t# with tabs,\n") != NULL, "the history holds %s", kept);
  free(kept);
}

/* Without marks a line goes on with the one above as it does in a file; what a program reads is its own, whatever it
 * begins with. */
static void paste_goes_on(void) {
  static const struct { const char *typed, *shown; } pastes[] = {
    {"if 3 > 5 {\r  \"big\"\r}\relse if 3 > 2 {\r  \"mid\" + \"dle\"\r}\relse {\r  \"small\"\r}\r", "\"middle\""},
    {"if false { 1 }\r\r  # a note\r\r\telse { 40 + 2 }\r", "42"},
    {"try { error(\"a\") }\r\rcatch e { e.message + \"b\" }\r", "\"ab\""},
    {"[3, 1, 2]\r  |> sort\r", "[1, 2, 3]"},
    {"[3, 1, 20]\r  .sum()\r", "24"},
    {"1 < 2\rand 3 < 2\r", "false"},
    {"4\r* 5\r", "20"},
    {"let n = read_line(); \"got \" + n\relbow\r", "\"got elbow\""},
    {"let n = read_line(); \"got \" + n\relse\r", "\"got else\""},
    {"if true { let n = read_line(); \"<\" + n + \">\" }\r\r", "\"<>\""},
    {"let elsewhere = 7 * 11\relsewhere\r", "77"},
  };
  Session s = open_prompt(NULL);
  for (size_t i = 0; i < sizeof pastes / sizeof *pastes; i++) {
    type(&s, pastes[i].typed);
    wait_text(&s, pastes[i].shown);
    wait_prompt(&s);
    said(&s, "6 * 7", "42");
  }
  type(&s, "if false { 1 }\relse {");
  wait_row(&s, "... else {");
  key(&s, CTRL_C);
  wait_prompt(&s);
  said(&s, "6 * 7", "42");
  leave(&s);
}

/* Ctrl-C before the end of a marked paste; what comes of it later does no harm. */
static void paste_interrupted(void) {
  Session s = open_prompt(NULL);
  for (int i = 0; i < 3; i++) {
    type(&s, "12 + \033[200~34");
    wait_text(&s, "> 12 +");
    key(&s, CTRL_C);
    wait_prompt(&s);
    type(&s, "\033[201~");
    said(&s, "6 * 7", "42");
  }
  /* as long as readline's first buffer */
  char text[80] = "\033[200~";
  memset(text + 6, 'a', 64);
  type(&s, text);
  key(&s, CTRL_C);
  wait_prompt(&s);
  type(&s, "\033[201~");
  said(&s, "6 * 7", "42");
  type(&s, text);
  close(s.fd);
  s.fd = -1;
  wait_gone(&s);
  session_close(&s);
}

/* ---- Ctrl-C ----------------------------------------------------------------------------------- */

static void interrupt_at_prompt(void) {
  Session s = open_prompt(NULL);
  key(&s, CTRL_C); /* an empty prompt */
  wait_prompt(&s);
  said(&s, "1 + 1", "2");
  type(&s, "abc");
  wait_row(&s, "> abc");
  key(&s, CTRL_C); /* half a line */
  wait_prompt(&s);
  said(&s, "2 + 2", "4");
  type(&s, "1 +\r");
  wait_more(&s);
  key(&s, CTRL_C); /* several lines */
  wait_prompt(&s);
  said(&s, "3 + 3", "6");
  type(&s, "fn f(x) {\r");
  wait_more(&s);
  type(&s, "  x + ");
  wait_row(&s, "...     x +");
  key(&s, CTRL_C);
  wait_prompt(&s);
  told(&s, "f(1)", "f is not declared");
  key(&s, CTRL_R); /* a search */
  wait_text(&s, "reverse-i-search");
  type(&s, "3 +");
  wait_text(&s, "3 + 3");
  key(&s, CTRL_C);
  wait_prompt(&s);
  said(&s, "4 + 4", "8");
  type(&s, "abc\001"); /* with the cursor in front */
  key(&s, CTRL_C);
  wait_prompt(&s);
  said(&s, "5 + 5", "10");
  int from = s.screen.y;
  for (int i = 0; i < 20; i++) key(&s, CTRL_C); /* some of them are one signal */
  type(&s, "6 + 6\r");
  s.from = from;
  wait_text(&s, "12");
  wait_prompt(&s);
  said(&s, "7 + 7", "14");
  leave(&s);
}

/* Sends the interrupt once the program runs: what a line prints says so. */
static void interrupts(Session *s, const char *code) {
  char line[512];
  snprintf(line, sizeof line, "print(\"run\" + \"s\"); %s\r", code);
  type(s, line);
  int from = s->from;
  wait_text(s, "runs");
  key(s, CTRL_C);
  s->from = from + 1;
  wait_text(s, "error: interrupted");
  wait_prompt(s);
  told(s, "20 + 3", "23");
}

static void interrupt_running(void) {
  static const char *const programs[] = {
      "while true { }", "let i = 0; while true { i += 1 }",
      "fn f(n) { let s = 0.0; let i = 0; while i < n { s += 0.5; i += 1 }; s }; f(1e15)",
      "fn g(n) = g(n + 1); g(0)", "let a = ones((64, 64)); while true { a = a @ a * 0.01 }",
      "try { while true { } } catch e { print(\"caught\") }",
      /* told behind the last operation */
      "map(x => { while true { } }, [1, 2])", "linalg.svd(random.normal(random.key(1), (1500, 1500))); 0",
  };
  Session s = open_prompt(NULL);
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) interrupts(&s, programs[i]);
  leave(&s);
}

/* Ctrl-D and Ctrl-C leave no empty row behind, then or later. */
static void no_empty_rows(void) {
  Session s = open_prompt(NULL);
  type(&s, "[1,\r");
  wait_more(&s);
  key(&s, CTRL_D);
  wait_text(&s, "the unfinished input is dropped");
  wait_prompt(&s);
  for (int i = 0; i < 2; i++) {
    int y = s.screen.y;
    said(&s, "6 * 7", "42");
    must(s.screen.y == y + 2, "an answer of one row takes %d", s.screen.y - y - 1);
  }
  type(&s, "print(\"run\" + \"s\"); while true { }\r");
  wait_text(&s, "runs");
  key(&s, CTRL_C);
  wait_text(&s, "error: interrupted");
  wait_prompt(&s);
  char *above = screen_row(&s.screen, s.screen.y - 1);
  must(strchr(above, '^') != NULL, "above the prompt stands '%s'", above);
  free(above);
  leave(&s);
}

static void interrupt_printing(void) {
  Session s = open_prompt(NULL);
  for (int i = 0; i < 8; i++) {
    char line[128];
    snprintf(line, sizeof line, "for i in 0..1000000000 { print(\"row\", i%s) }\r", i % 2 ? ", end=\" \"" : "");
    type(&s, line);
    wait_text(&s, "row 77");
    key(&s, CTRL_C);
    wait_text(&s, "error: interrupted");
    wait_prompt(&s);
    said(&s, "1 + 1", "2");
  }
  leave(&s); /* exit status 0 */
}

static void interrupt_input(void) {
  Session s = open_prompt(NULL);
  for (int i = 0; i < 3; i++) {
    type(&s, "print(\"na\" + \"me?\"); read_line()\r");
    wait_text(&s, "name?");
    type(&s, "Ad");
    wait_text(&s, "Ad");
    key(&s, CTRL_C);
    wait_text(&s, "error: interrupted");
    wait_prompt(&s);
    type(&s, "print(\"na\" + \"me?\"); read_line() + \"!\"\r");
    int from = s.from;
    wait_text(&s, "name?");
    type(&s, "Eve\r");
    s.from = from;
    wait_text(&s, "\"Eve!\"");
    wait_prompt(&s);
  }
  leave(&s);
}

static void limits(void) {
  static const char *const args[] = {"--deadline", "1.5", "-i", NULL};
  Session s;
  session_open(&s, &(Setup){.args = args});
  wait_prompt(&s);
  type(&s, "read_line()\r");
  wait_text(&s, "error: the deadline has passed");
  wait_prompt(&s);
  leave(&s);
}

/* ---- Ctrl-D ----------------------------------------------------------------------------------- */

static void end_of_input(void) {
  Session s = open_prompt(NULL);
  type(&s, "fn f(x) {\r");
  wait_more(&s);
  key(&s, CTRL_D); /* several lines */
  wait_text(&s, "the unfinished input is dropped");
  wait_prompt(&s);
  said(&s, "1 + 1", "2");
  type(&s, "12"); /* half a line: it deletes what is under the cursor */
  wait_row(&s, "> 12");
  key(&s, CTRL_A);
  key(&s, CTRL_D);
  wait_row(&s, "> 2");
  key(&s, CTRL_U);
  key(&s, CTRL_E);
  key(&s, CTRL_U);
  wait_row(&s, ">");
  type(&s, "print(\"na\" + \"me?\"); read_line()\r"); /* the end of what read_line reads */
  wait_text(&s, "name?");
  key(&s, CTRL_D);
  s.from--; /* it moves no cursor */
  wait_prompt(&s);
  type(&s, "print(\"na\" + \"me?\"); read_line()\r"); /* but not for ever */
  int from = s.from;
  wait_text(&s, "name?");
  type(&s, "Eve\r");
  s.from = from;
  wait_text(&s, "\"Eve\"");
  wait_prompt(&s);
  said(&s, "2 + 2", "4");
  leave(&s);
}

static void leaving(void) {
  static const char *const words[] = {"exit", "quit", "exit()", "quit()", ":quit", ":q", " exit "};
  for (int i = 0; i < 7; i++) {
    Session s = open_prompt(NULL);
    type(&s, words[i]);
    type(&s, "\r");
    wait_end(&s, 0);
    session_close(&s);
  }
  Session s = open_prompt(NULL);
  type(&s, "exit(7)\r");
  wait_end(&s, 7);
  session_close(&s);
  s = open_prompt(NULL);
  said(&s, "quit = 3", "");
  said(&s, "quit", "3");
  type(&s, "fn f() { exit(4) }; f()\r");
  wait_end(&s, 4);
  session_close(&s);
}

/* ---- signals ---------------------------------------------------------------------------------- */

static void signals(void) {
  Session s = open_prompt(NULL);
  type(&s, "40 + 2");
  wait_row(&s, "> 40 + 2");
  kill(s.pid, SIGSTOP); /* stopped and continued by somebody else */
  kill(s.pid, SIGCONT);
  type(&s, "0\r");
  wait_text(&s, "60");
  wait_prompt(&s);
  key(&s, CTRL_Z); /* nobody can continue this one, so it goes on */
  /* the terminal is not ours for a moment: it may show what is typed then, in a row of its own */
  type(&s, "300 + 33\r");
  wait_text(&s, "333");
  wait_prompt(&s);
  kill(s.pid, SIGWINCH);
  said(&s, "2 + 2", "4");
  kill(s.pid, SIGTERM);
  wait_end(&s, 128 + SIGTERM);
  session_close(&s);
}

static void closed_terminal(void) {
  Session s = open_prompt(NULL);
  said(&s, "kept = 12345", "");
  close(s.fd);
  s.fd = -1;
  wait_gone(&s);
  session_close(&s);
  char *kept = read_file("history");
  must(strcmp(kept, "kept = 12345\n") == 0, "the history holds %s", kept);
  free(kept);
}

/* ---- history ---------------------------------------------------------------------------------- */

static void history_over_sessions(void) {
  Session s = open_prompt(NULL);
  said(&s, "first = 1", "");
  type(&s, "fn sq(x) {\r");
  wait_more(&s);
  type(&s, "\tx * x\r"); /* with a tab of its own */
  wait_more(&s);
  said(&s, "}", "");
  said(&s, "last = \"a\\nb\"", "");
  leave(&s);
  s = open_prompt(&(Setup){.history = path_of("history")});
  type(&s, "\033[A");
  wait_row(&s, "> last = \"a\\nb\"");
  type(&s, "\033[A");
  wait_row(&s, "... }"); /* one entry, with its three lines */
  type(&s, "\033[A");
  wait_row(&s, "> first = 1");
  type(&s, "\033[B\r");
  wait_prompt(&s);
  said(&s, "sq(5)", "25");
  key(&s, CTRL_R);
  int from = s.from;
  wait_text(&s, "reverse-i-search");
  type(&s, "first");
  wait_text(&s, "first = 1");
  type(&s, "\r");
  s.from = from; /* on its way the search showed an entry of several rows */
  wait_prompt(&s);
  said(&s, "first", "1");
  leave(&s);
}

/* Behind `al` Up finds what begins so, and Down leads back. */
static void history_by_beginning(void) {
  Session s = open_prompt(NULL);
  said(&s, "alpha = 1", "");
  said(&s, "beta = 2", "");
  said(&s, "align = 3", "");
  said(&s, "gamma = 4", "");
  type(&s, "al");
  wait_row(&s, "> al");
  type(&s, "\033[A");
  wait_row(&s, "> align = 3");
  type(&s, "\033[A");
  wait_row(&s, "> alpha = 1");
  type(&s, "\033[B");
  wait_row(&s, "> align = 3");
  type(&s, "3\r");
  wait_prompt(&s);
  said(&s, "align", "33");
  type(&s, "\033[A\033[A");
  wait_row(&s, "> align = 33");
  key(&s, CTRL_C);
  wait_prompt(&s);
  leave(&s);
}

static void history_of_two(void) {
  Session a = open_prompt(NULL), b = open_prompt(&(Setup){.history = path_of("history")});
  said(&a, "from_a = 1", "");
  said(&b, "from_b = 2", "");
  said(&a, "again_a = 3", "");
  kill(b.pid, SIGKILL); /* what was entered is not lost */
  session_close(&b);
  leave(&a);
  char *kept = read_file("history");
  must(strcmp(kept, "from_a = 1\nfrom_b = 2\nagain_a = 3\n") == 0, "the history holds %s", kept);
  free(kept);
}

static void history_old_and_long(void) {
  write_file("old", "one\ntwo\n  x*x\n}\n");
  Session s = open_prompt(&(Setup){.history = path_of("old")});
  static const char *const rows[] = {"> }", ">   x*x", "> two", "> one"};
  for (int i = 0; i < 4; i++) {
    type(&s, "\033[A");
    wait_row(&s, rows[i]);
  }
  key(&s, CTRL_C);
  wait_prompt(&s);
  leave(&s);
  char *text = calloc(1, 1 << 22);
  size_t n = 0;
  for (int i = 0; i < 15000; i++) n += (size_t)sprintf(text + n, "entry_%d = {\n\t%d\n\t}\n", i, i);
  write_file("long", text);
  free(text);
  chmod(path_of("long"), 0640);
  s = open_prompt(&(Setup){.history = path_of("long")});
  said(&s, "1", "1");
  leave(&s);
  text = read_file("long");
  must(strncmp(text, "entry_5000 = {\n\t5000\n\t}\n", 22) == 0 && strstr(text, "entry_14999 = {") &&
       strcmp(text + strlen(text) - 4, "}\n1\n") == 0, "the history is not shortened to 10,000 entries");
  free(text);
  struct stat about;
  must(stat(path_of("long"), &about) == 0 && (about.st_mode & 0777) == 0640, "its mode changed");
  unlink(path_of("link"));
  must(symlink("old", path_of("link")) == 0, "no link");
  s = open_prompt(&(Setup){.history = path_of("link")});
  said(&s, "22", "22");
  leave(&s);
  must(lstat(path_of("link"), &about) == 0 && S_ISLNK(about.st_mode), "a link was replaced");
  text = read_file("old");
  must(strstr(text, "}\n22\n") != NULL, "a link is not followed");
  free(text);
  s = open_prompt(&(Setup){.history = "/dev/null"});
  said(&s, "22", "22");
  leave(&s);
  s = open_prompt(&(Setup){.history = "/nowhere/history"});
  told(&s, "22", "the history is not kept");
  said(&s, "23", "23");
  leave(&s);
  s = open_prompt(&(Setup){.history = ""});
  said(&s, "22", "22");
  leave(&s);
}

/* Keys that end a search, the beginnings of sequences that readline does not know among them. */
static void search_left(void) {
  static const char *const keys[] = {"\030q", "\030)", "\030\005", "\030\030", "\033[99;99z", "\033[15~", "\033q",
                                     "\033[A", "\005", "\t", "\007"};
  Session s = open_prompt(NULL);
  said(&s, "first = 12345", "");
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    key(&s, CTRL_R);
    wait_text(&s, "reverse-i-search");
    type(&s, i % 2 ? "no such" : "123");
    wait_text(&s, i % 2 ? "failed reverse" : "12345");
    type(&s, keys[i]); /* at once, as a function key sends it */
    type(&s, "MARK");
    wait_text(&s, "MARK");
    key(&s, CTRL_C);
    wait_prompt(&s);
    said(&s, "6 * 7", "42");
  }
  leave(&s);
}

/* ---- terminals -------------------------------------------------------------------------------- */

static void dumb_terminal(void) {
  Session s = open_prompt(&(Setup){.term = "dumb"});
  said(&s, "1 + 1", "2");
  type(&s, pasted);
  wait_text(&s, "12");
  wait_prompt(&s);
  type(&s, "abc");
  key(&s, CTRL_C);
  wait_prompt(&s);
  said(&s, "2 + 2", "4");
  completes(&s, "linsp", "linspace");
  type(&s, "for i in 0..1000000000 { print(\"row\", i) }\r");
  wait_text(&s, "row 77");
  key(&s, CTRL_C);
  wait_text(&s, "error: interrupted");
  wait_prompt(&s);
  leave(&s);
  s = open_prompt(&(Setup){.term = "no-such-terminal"});
  told(&s, "1 + 1", "2");
  leave(&s);
}

static void narrow_window(void) {
  Session s = open_prompt(&(Setup){.width = 40});
  type(&s, "let total = 1000000 + 2000000 + 3000000 + 4000000");
  wait_row(&s, "0 + 4000000");
  key(&s, CTRL_A);
  type(&s, " ");
  key(&s, CTRL_E);
  wait_row(&s, "00 + 4000000");
  type(&s, "\r");
  wait_prompt(&s);
  said(&s, "total", "10000000");
  type(&s, "let total = 1000000 + 2000000 + 3000000 + 4000000");
  key(&s, CTRL_C);
  wait_prompt(&s);
  type(&s, "total + total + total + total + total + total + total");
  key(&s, CTRL_A);
  key(&s, CTRL_C); /* with the cursor on the first of two rows */
  wait_prompt(&s);
  said(&s, "2 + 2", "4");
  leave(&s);
}

static void long_line(void) {
  enum { TERMS = 2500 };
  Session s = open_prompt(NULL);
  char *line = calloc(1, TERMS * 4 + 16);
  strcpy(line, "len((");
  for (int i = 0; i < TERMS; i++) strcpy(line + 5 + 4 * i, "11, ");
  strcat(line, "))");
  type(&s, line);
  int from = s.from;
  type(&s, "\r");
  s.from = from;
  wait_text(&s, "2500");
  wait_prompt(&s);
  said(&s, "2 + 2", "4");
  free(line);
  leave(&s);
}

static void utf8(void) {
  Session s = open_prompt(NULL);
  said(&s, "len(\"日本語\")", "3");
  type(&s, "\"日本語\177\177\xC3\xA4\""); /* the key deletes a character, not a byte */
  wait_row(&s, "> \"日ä\"");
  type(&s, "\r");
  wait_text(&s, "\"日ä\"");
  wait_prompt(&s);
  said(&s, "größe = 2", "");
  said(&s, "größe + 1", "3");
  leave(&s);
  static const char *const locales[] = {"LC_ALL=C", "LC_ALL=POSIX", "LC_ALL=de_DE.UTF-8"};
  for (int i = 0; i < 3; i++) { /* behind LC_ALL of every session, so it counts */
    s = open_prompt(&(Setup){.more = locales[i]});
    type(&s, "\"日本語\177\177\xC3\xA4\"");
    wait_row(&s, "> \"日ä\"");
    key(&s, CTRL_C);
    wait_prompt(&s);
    said(&s, "1.5", "1.5");
    leave(&s);
  }
}

static void resize(void) {
  Session s = open_prompt(NULL);
  type(&s, "1 + 1 + 1 + 1 + 1");
  wait_row(&s, "> 1 + 1 + 1 + 1 + 1");
  struct winsize size = {.ws_row = 24, .ws_col = 200};
  must(ioctl(s.fd, TIOCSWINSZ, &size) == 0, "the size cannot be set");
  s.screen.width = 200;
  type(&s, " + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1");
  type(&s, "\r");
  wait_text(&s, "28");
  wait_prompt(&s);
  type(&s, "for i in 0..3000000 { } \r"); /* while something runs */
  s.screen.width = 60;
  size.ws_col = 60;
  must(ioctl(s.fd, TIOCSWINSZ, &size) == 0, "the size cannot be set");
  wait_prompt(&s);
  type(&s, "\"a text of fifty characters, which is just enough.. and more than that\"");
  wait_row(&s, "re than that\"");
  type(&s, "\r");
  wait_prompt(&s);
  said(&s, "2 + 2", "4");
  leave(&s);
}

/* ---- commands and help ------------------------------------------------------------------------ */

static void commands(void) {
  write_file("loaded.weft", "let from_file = 11\nprint(\"loaded it\")\n");
  Session s = open_prompt(NULL);
  told(&s, ":help", ":quit");
  told(&s, ":", ":quit");
  told(&s, ":nonsense", "no such command");
  told(&s, ":breaks", ":breaks needs the name of a function");
  told(&s, ":time", ":time needs");
  told(&s, ":time 1 + 2", "3\n0.0");
  told(&s, ":time (1", "error: ");
  told(&s, ":vars", "nothing is declared yet");
  said(&s, "a = ones((2, 3)); t = \"x\"; fn f(x) = x", "");
  told(&s, ":vars", "array f64 (2, 3)");
  told(&s, ":vars", "text");
  told(&s, ":load loaded.weft", "loaded it");
  said(&s, "from_file", "11");
  told(&s, ":load nowhere.weft", "No such file");
  told(&s, ":bench f(1)", " per run (least ");
  told(&s, ":bench f(", "error: ");
  told(&s, ":bench nowhere", "nowhere is not declared");
  told(&s, ":bench", ":bench needs");
  told(&s, ":profile sum(ones(100000) * 2.0)", "of roof");
  told(&s, "??f", "fn f(x) = x");
  told(&s, "??sum", "sum is not written in Weft");
  told(&s, "??nn.rms_norm", "fn rms_norm(x, weight=nil");
  told(&s, ":guards f", "nothing is compiled");
  told(&s, ":guards nobody", "nobody is not declared");
  told(&s, ":guards sum", "not a function written in Weft");
  told(&s, ":graph linalg.svd", "not a function written in Weft");
  told(&s, ":why", "nothing");
  told(&s, ":stats", "");
  told(&s, ":find fourier", "fft.fft  (");
  told(&s, ":find RUNNING", "cumulative_trapezoid  (");
  said(&s, ":find no such thing", "nothing has \"no such thing\" in its name or its description");
  told(&s, ":find", ":find needs something to look for");
  told(&s, "?sum", "sum(x");
  told(&s, "sum?", "sum(x");
  told(&s, "help sum", "sum(x");
  told(&s, "?linalg.svd", "svd(x");
  told(&s, "sum ?", "sum(x");
  told(&s, "?", ":quit");
  told(&s, "help", ":quit");
  told(&s, "?if", "if: a reserved word");
  told(&s, "help nil", "nil: a reserved word");
  told(&s, "help(linalg)", "module linalg:\n  matmul dot");
  told(&s, "help()", "sum prod");
  told(&s, "inv(a)", "inv is not declared; write 'linalg.inv'");
  told(&s, "help(sum)", "sum(x");
  told(&s, "help(nn.rms_norm)", "nn.rms_norm(x, weight=nil, eps=1e-6, axis=-1)\n  x divided by");
  told(&s, "help(nn.rms_norm, source=true)", "fn rms_norm(x, weight=nil, eps=1e-6, axis=-1) {");
  told(&s, "help(sum, source=true)", "sum is not written in Weft");
  told(&s, "help(\"kernels\")", "kernels: a counter of trace.stats(), a number\n  kernels made");
  told(&s, "help(\"peak\")", "peak: a counter of trace.stats(), bytes\n  most bytes held");
  told(&s, "help(\"hot_trips\")", "hot_trips: a threshold, 60 trips (WEFT_HOT sets it)\n  until a loop is traced");
  told(&s, "help(\"miss_ns\")", "miss_ns: a threshold, 40 ns\n  of a look-up that finds nothing");
  leave(&s);
  static const char *const args[] = {"-i", "loaded.weft", NULL};
  s = open_prompt(&(Setup){.args = args});
  said(&s, "from_file", "11");
  leave(&s);
  static const char *const code[] = {"-i", "-e", "let from_code = 12", NULL};
  s = open_prompt(&(Setup){.args = code});
  said(&s, "from_code", "12");
  leave(&s);
}

/* ---- the session ---------------------------------------------------------------------------------- */

static void saved(void) {
  Session s = open_prompt(NULL);
  unlink(path_of("session.weft"));
  said(&s, "x = 20", "");
  told(&s, "nowhere", "error");
  said(&s, "fn twice(a) = 2 * a", "");
  said(&s, "twice(x)", "40");
  said(&s, "x = x + 1; y = {k: \"a = 1; b\"}; let (p, q) = (1, 2)", "");
  said(&s, "p = 7", "");
  type(&s, "r =\r");
  wait_more(&s);
  said(&s, "8", "");
  said(&s, "y == 3; 5", "5");
  said(&s, ":save", ":save needs the name of a file");
  said(&s, ":save session.weft", "");
  char *text = read_file("session.weft");
  must(strcmp(text, "let x = 20\nfn twice(a) = 2 * a\ntwice(x)\nx = x + 1\n"
              "let y = {k: \"a = 1; b\"}\nlet (p, q) = (1, 2)\np = 7\nlet r =\n8\ny == 3\n5\n") == 0,
       "the file holds %s", text);
  free(text);
  told(&s, ":save session.weft", "is there already; :save! session.weft replaces it");
  said(&s, ":save! session.weft", "");
  told(&s, ":save /nowhere/x.weft", "cannot write \"/nowhere/x.weft\": No such file");
  told(&s, ":history", "  fn twice(a) = 2 * a");
  said(&s, ":history twice(x", "  twice(x)\n  :history twice(x");
  said(&s, ":reset", "");
  told(&s, "x", "x is not declared");
  told(&s, "twice(1)", "twice is not declared");
  told(&s, ":vars", "nothing is declared yet");
  said(&s, ":load session.weft", ""); /* it is a program */
  said(&s, "(x, p, r)", "(21, 7, 8)");
  leave(&s);
}

static void in_browser(void) {
  write_file("browser", "#!/bin/sh\ncat \"$1\" >opened\nrm \"$1\"\nmv opened seen.svg\n");
  chmod(path_of("browser"), 0755);
  char more[700];
  snprintf(more, sizeof more, "BROWSER=%s", path_of("browser"));
  unlink(path_of("seen.svg"));
  Session s = open_prompt(&(Setup){.more = more});
  told(&s, ":show plot.line([1.0, 2.0], title=\"seen\")", "shown: /tmp/weft-");
  struct stat about;
  for (int i = 0; i < 3000 && stat(path_of("seen.svg"), &about) != 0; i++) usleep(20000); /* it is not waited for */
  char *text = read_file("seen.svg");
  must(strstr(text, "<svg") && strstr(text, ">seen</text>"), "the browser got %.80s", text);
  free(text);
  said(&s, ":show", ":show needs a drawing, as plot.line gives one");
  told(&s, ":show 3", "plot.svg: p must be a drawing");
  told(&s, ":show nowhere", "nowhere is not declared");
  leave(&s);
  s = open_prompt(&(Setup){.more = "BROWSER=/nowhere/browser"});
  char path[64] = "";
  const char *got = ask(&s, ":show plot.line([1.0])"), *at = strstr(got, "/tmp/weft-");
  must(strncmp(got, "there is no browser (BROWSER names one); the drawing is in /tmp/weft-", 68) == 0,
       "it says %s", got);
  if (at && sscanf(at, "%63s", path) == 1) must(unlink(path) == 0, "there is no %s", path);
  leave(&s);
}

static void edited(void) {
  write_file("editor", "#!/bin/sh\nsed -i 's/1/30/' \"$1\"\n");
  chmod(path_of("editor"), 0755);
  char more[700];
  snprintf(more, sizeof more, "EDITOR=%s", path_of("editor"));
  Session s = open_prompt(&(Setup){.more = more});
  said(&s, "1 + 12", "13");
  told(&s, ":edit", "30 + 12\n42");
  said(&s, "fn f(x) = x + 1", "");
  told(&s, ":edit f", "fn f(x) = x + 30");
  said(&s, "f(1)", "31");
  told(&s, ":edit nowhere", "nowhere is not declared");
  told(&s, ":edit sum", "sum has no source here");
  leave(&s);
  s = open_prompt(&(Setup){.more = "EDITOR=/nowhere/editor"});
  said(&s, "1 + 12", "13");
  told(&s, ":edit", "the editor failed, nothing is run");
  leave(&s);
}

/* What a program writes without an end of line is seen at once. */
static void progress(void) {
  Session s = open_prompt(NULL);
  type(&s, "print(\"so \" + \"far\", end=\"\"); read_line()\r");
  wait_text(&s, "so far");
  type(&s, "on\r");
  wait_prompt(&s);
  leave(&s);
}

/* A loop over progress(…) draws how far it is. */
static void bars(void) {
  Session s = open_prompt(NULL);
  type(&s, "for x in progress((1, 2, 3), \"load\") { x }\r");
  wait_text(&s, "load [##############################] 100% 3 in");
  wait_prompt(&s);
  type(&s, "for x in progress(()) { x }\r");
  wait_text(&s, "[##############################] 100% 0 in");
  wait_prompt(&s);
  type(&s, "write_text(\"l.txt\", \"1\\n2\\n\" * 500); for l in progress(lines(\"l.txt\")) { parse_int(l) }\r");
  wait_text(&s, "100% 1000 in");
  wait_prompt(&s);
  leave(&s);
}

/* What is typed ahead, or pasted behind the line that asks for it, is lines of what the program reads. */
static void typed_ahead(void) {
  Session s = open_prompt(NULL);
  type(&s, "let a = read_line(); let b = read_line(); (a, b)\rone\rtwo\r");
  wait_text(&s, "(\"one\", \"two\")");
  wait_prompt(&s);
  type(&s, "read_line() + \"!\"\rEve\r6 * 111\r"); /* the prompt gets what is left */
  wait_text(&s, "\"Eve!\"");
  wait_text(&s, "666");
  wait_prompt(&s);
  said(&s, "40 + 2", "42");
  leave(&s);
}

/* ---- */

typedef struct Case {
  const char *name;
  void (*run)(void);
} Case;

static const Case cases[] = {
    {"values", values}, {"declarations", declarations}, {"carets", carets}, {"reports", reports},
    {"drawings", drawings}, {"shown-numbers", shown_numbers}, {"shown-arrays", shown_arrays},
    {"shown-containers", shown_containers}, {"shown-at-widths", shown_at_widths}, {"last-value", last_value},
    {"colours", colours}, {"brackets", brackets}, {"blocks", blocks}, {"blocks-at-widths", blocks_at_widths},
    {"saved", saved}, {"edited", edited}, {"in-browser", in_browser},
    {"more-lines", more_lines},
    {"completion", completion}, {"tabs-everywhere", tabs_everywhere}, {"paste-plain", paste_plain},
    {"paste-bracketed", paste_bracketed}, {"paste-goes-on", paste_goes_on}, {"paste-interrupted", paste_interrupted},
    {"interrupt-at-prompt", interrupt_at_prompt}, {"interrupt-running", interrupt_running},
    {"no-empty-rows", no_empty_rows}, {"interrupt-printing", interrupt_printing},
    {"interrupt-input", interrupt_input}, {"end-of-input", end_of_input}, {"leaving", leaving}, {"signals", signals},
    {"closed-terminal", closed_terminal},
    {"history-over-sessions", history_over_sessions}, {"history-of-two", history_of_two},
    {"history-by-beginning", history_by_beginning},
    {"history-old-and-long", history_old_and_long},
    {"search-left", search_left}, {"dumb-terminal", dumb_terminal}, {"narrow-window", narrow_window},
    {"long-line", long_line}, {"utf8", utf8}, {"resize", resize},
    {"commands", commands}, {"progress", progress}, {"bars", bars}, {"typed-ahead", typed_ahead}, {"limits", limits},
};

static int type_file(const char *path) {
  static char line[1 << 16];
  FILE *f = fopen(path, "rb");
  if (!f) return perror(path), 2;
  test("type");
  Session s = open_prompt(NULL);
  while (fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = '\r';
    type(&s, line);
    for (struct pollfd p = {.fd = s.fd, .events = POLLIN}; poll(&p, 1, 700) > 0 && (p.revents & POLLIN);) {
      char part[4096];
      ssize_t n = read(s.fd, part, sizeof part);
      if (n <= 0) break;
      screen_put(&s.screen, part, (size_t)n);
    }
  }
  fclose(f);
  for (int y = 0; y < s.screen.row_count; y++) {
    char *row = screen_row(&s.screen, y);
    puts(row);
    free(row);
  }
  session_close(&s);
  return 0;
}

int main(int argc, char **argv) {
  static char folder[512], program[4096];
  const char *named = getenv("WEFT");
  if (!realpath(named ? named : "build/weft", program))
    return fprintf(stderr, "prompt: no program: %s\n", named ? named : "build/weft"), 2;
  setenv("WEFT", program, 1);
  signal(SIGPIPE, SIG_IGN);
  snprintf(folder, sizeof folder, "%s/weft-prompt-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  own_folder = mkdtemp(folder);
  if (!own_folder) return perror(folder), 2;
  int result = 0;
  if (argc == 3 && strcmp(argv[1], "--type") == 0) {
    result = type_file(argv[2]);
  } else {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      bool wanted = argc < 2;
      for (int k = 1; k < argc; k++) wanted |= strstr(cases[i].name, argv[k]) != NULL;
      if (!wanted) continue;
      test(cases[i].name);
      cases[i].run();
    }
    result = test_result();
  }
  char remove_it[600];
  snprintf(remove_it, sizeof remove_it, "rm -rf '%s'", own_folder);
  return system(remove_it) == 0 ? result : 2;
}
