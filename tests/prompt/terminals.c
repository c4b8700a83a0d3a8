/* terminals.c — terminals: dumb ones, narrow windows, long lines, wide characters, other sizes. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "tests/prompt/prompt.h"

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

const Case terminals_cases[] = {
    {"dumb-terminal", dumb_terminal},
    {"narrow-window", narrow_window},
    {"long-line", long_line},
    {"utf8", utf8},
    {"resize", resize},
    {NULL, NULL},
};
