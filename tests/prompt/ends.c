/* ends.c — what ends early: Ctrl-C, limits, Ctrl-D, signals, a terminal that is closed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/prompt/prompt.h"

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
      "str(t)",
      "map(x => { while true { } }, [1, 2])", "linalg.svd(random.normal(random.key(1), (1500, 1500))); 0",
  };
  Session s = open_prompt(NULL);
  told(&s, "let t = (1, 1); for i in 0..60 { t = (t, {a: t}) }; len(t)", "2");
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) interrupts(&s, programs[i]);
  type(&s, "t\r"); /* of which a prompt shows what fits */
  wait_text(&s, "… 1 more");
  wait_prompt(&s);
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

const Case ends_cases[] = {
    {"interrupt-at-prompt", interrupt_at_prompt},
    {"interrupt-running", interrupt_running},
    {"no-empty-rows", no_empty_rows},
    {"interrupt-printing", interrupt_printing},
    {"interrupt-input", interrupt_input},
    {"end-of-input", end_of_input},
    {"leaving", leaving},
    {"signals", signals},
    {"closed-terminal", closed_terminal},
    {"limits", limits},
    {NULL, NULL},
};
