/* commands.c — commands and help, the session, progress, what is typed ahead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/prompt/prompt.h"

/* ---- commands and help ------------------------------------------------------------------------ */

/* In windows of any width the words of :help stay whole: they are the same. */
static void help_at_widths(void) {
  static const int widths[] = {132, 80, 60, 30};
  char *wide = NULL;
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    Session s = open_prompt(&(Setup){.width = widths[i], .height = 20});
    char *got = strdup(ask(&s, ":help")), *to = got;
    bool blank = true;
    for (const char *c = got; *c; c++) { /* one blank between words */
      const bool now = *c == ' ' || *c == '\n';
      if (!now) *to++ = *c;
      else if (!blank) *to++ = ' ';
      blank = now;
    }
    *to = 0;
    if (!wide) wide = got;
    must(strstr(got, ":profile CODE run CODE and say what its kernels cost :show p") != NULL, "it says %s", got);
    must(strcmp(got, wide) == 0, "%d columns have %s", widths[i], got);
    if (got != wide) free(got);
    leave(&s);
  }
  free(wide);
}

/* What assigns in R compares here, and says so; a comparison with a negative number does not. */
static void arrow_is_noted(void) {
  Session s = open_prompt(NULL);
  said(&s, "x = -5", "");
  told(&s, "x <- 3", "true\n(x <- compares: x < -…; x = … assigns)");
  said(&s, "x <-3", "true");
  said(&s, "x<-3", "true");
  said(&s, "x < -3", "true");
  said(&s, "x", "-5");
  leave(&s);
}

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

const Case commands_cases[] = {
    {"saved", saved},
    {"edited", edited},
    {"in-browser", in_browser},
    {"help-at-widths", help_at_widths},
    {"arrow-is-noted", arrow_is_noted},
    {"commands", commands},
    {"progress", progress},
    {"bars", bars},
    {"typed-ahead", typed_ahead},
    {NULL, NULL},
};
