/* typing.c — what is typed: blocks, several lines, the tab key, paste. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/prompt/prompt.h"

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

void completes(Session *s, const char *typed, const char *wanted) {
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
  completes(&s, "1 # my_v", "1 # my_v"); /* a comment */
  completes(&s, "\"#\" + my_v", "\"#\" + my_variable");
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

const char pasted[] =
    "fn area(w, h) {\r\r\t# with tabs,\r\r\tlet a =\tw * h\r\r\t{\r\t\ta\r\t}\r}\rarea(3,\t4)\r";

static void paste_plain(void) {
  Session s = open_prompt(NULL);
  type(&s, pasted);
  wait_text(&s, "12");
  wait_prompt(&s);
  must(!strstr(ask(&s, "1"), "error"), "the paste left something behind");
  leave(&s);
}

static void paste_bracketed_at(int width) {
  Session s = open_prompt(&(Setup){.width = width});
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

static void paste_bracketed(void) {
  paste_bracketed_at(80);
  paste_bracketed_at(40);
  paste_bracketed_at(132);
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

const Case typing_cases[] = {
    {"blocks", blocks},
    {"blocks-at-widths", blocks_at_widths},
    {"more-lines", more_lines},
    {"completion", completion},
    {"tabs-everywhere", tabs_everywhere},
    {"paste-plain", paste_plain},
    {"paste-bracketed", paste_bracketed},
    {"paste-goes-on", paste_goes_on},
    {"paste-interrupted", paste_interrupted},
    {NULL, NULL},
};
