/* history.c — lines typed before: over sessions, of two at a time, by their beginnings; search. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/prompt/prompt.h"

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

/* The search shows an entry that is wider than the window, or nearly so, and Enter runs it. */
static void search_at_widths(void) {
  static const int widths[] = {40, 80, 132};
  char entry[160] = "found = len(\"";
  size_t n = strlen(entry);
  memset(entry + n, 'a', 120);
  strcpy(entry + n + 120, "\")");
  for (int i = 0; i < 3; i++) {
    Session s = open_prompt(&(Setup){.width = widths[i]});
    type(&s, entry);
    type(&s, "\r");
    wait_prompt(&s);
    said(&s, "found", "120");
    said(&s, "found = 7", "");
    key(&s, CTRL_R);
    wait_text(&s, "reverse-i-search");
    type(&s, "len(");
    wait_text(&s, "aaaaaaaaaaaaaaaa");
    type(&s, "\r");
    wait_prompt(&s);
    said(&s, "found", "120");
    leave(&s);
  }
}

const Case history_cases[] = {
    {"history-over-sessions", history_over_sessions},
    {"history-of-two", history_of_two},
    {"history-by-beginning", history_by_beginning},
    {"history-old-and-long", history_old_and_long},
    {"search-left", search_left},
    {"search-at-widths", search_at_widths},
    {NULL, NULL},
};
