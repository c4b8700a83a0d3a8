/* shown.c — what is shown: values and errors, how values are shown, the last value, colours. */
#include <string.h>

#include "tests/prompt/prompt.h"

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

/* Terminals that show pictures get them, those that do not, or are told not to, characters. */
static void pictures(void) {
  static const struct { const char *term, *more; int sixels; bool parts; } with[] = {
      {"foot", NULL, 1, false}, {"xterm-kitty", NULL, 0, true}, {"xterm", "WEFT_PICTURES=sixel", 1, false},
      {"xterm", "TERM_PROGRAM=WezTerm", 1, false}, {"xterm-kitty", "WEFT_PICTURES=none", 0, false},
      {"xterm-kitty", "TMUX=/tmp/x", 0, false}, {"dumb", "TERM_PROGRAM=WezTerm", 0, false}, {NULL, NULL, 0, false}};
  for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
    Session s = open_prompt(&(Setup){.term = with[i].term, .more = with[i].more});
    type(&s, "plot.line([0.0, 1.0])\r");
    wait_prompt(&s);
    must(s.screen.sixels == with[i].sixels && (s.screen.kitties > 0) == with[i].parts, "%s %s: %d sixels, %d parts",
         with[i].term ? with[i].term : "xterm", with[i].more ? with[i].more : "", s.screen.sixels, s.screen.kitties);
    said(&s, "6 * 7", "42");
    leave(&s);
  }
}

/* ---- how values are shown ------------------------------------------------------------------------ */

static void shown_numbers(void) {
  Session s = open_prompt(NULL);
  said(&s, "1 / 3", "0.333333");
  said(&s, "2.0", "2.0");
  said(&s, "123456789.125", "123456789.1"); /* digits before the point are never rounded */
  said(&s, "1709209800.5", "1709209800.5"); /* a time */
  said(&s, "12345678901.5", "1.23457e10");
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
  said(&s, "[[nan, 1.5], [100.25, -inf]]", "f64 (2, 2)\n[[   nan,  1.5],\n [100.25, -inf]]");
  said(&s, "[[true], [false]]", "bool (2, 1)\n[[ true],\n [false]]");
  said(&s, "{a: [1.0, nan], b: [1, 2]}", "record of 2 columns, 2 rows\n    a  b\n  1.0  1\n  nan  2");
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
  told(&s, "let w = {}; for i in 0..40 { w[\"column_\" + str(i)] = [i, 0.5] }; w",
       "column_5  column_6 …\n       0.0       1.0       2.0       3.0       4.0       5.0       6.0 …\n"
       "       0.5       0.5       0.5       0.5       0.5       0.5       0.5 …\n"
       "  … 33 more: column_7 column_8 column_9 column_10 column_11 column_12 …");
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

const Case shown_cases[] = {
    {"values", values},
    {"declarations", declarations},
    {"carets", carets},
    {"reports", reports},
    {"drawings", drawings},
    {"pictures", pictures},
    {"shown-numbers", shown_numbers},
    {"shown-arrays", shown_arrays},
    {"shown-containers", shown_containers},
    {"shown-at-widths", shown_at_widths},
    {"last-value", last_value},
    {"colours", colours},
    {"brackets", brackets},
    {NULL, NULL},
};
