/* prompt.c — the program `weft` at a terminal: every key and state of docs/prompt.md, driven through a
 * pseudo-terminal.
 *   build/tests/prompt [NAME…]     all tests, or those whose names contain one of these; the environment's WEFT
 *                                  names the program
 *   build/tests/prompt --type FILE types FILE's lines at the prompt and shows what the screen holds at the end */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/prompt/prompt.h"

static const Case *const lists[] = {shown_cases,   typing_cases,    ends_cases,
                                   history_cases, terminals_cases, commands_cases};

void write_file(const char *name, const char *text) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s", own_folder, name);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(text, 1, strlen(text), f) != strlen(text) || fclose(f) != 0) must(false, "cannot write %s", path);
}

char *read_file(const char *name) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s", own_folder, name);
  FILE *f = fopen(path, "rb");
  char *text = calloc(1, 1 << 22);
  if (f && text) text[fread(text, 1, (1 << 22) - 1, f)] = 0;
  if (f) fclose(f);
  return text;
}

const char *path_of(const char *name) {
  static char path[600];
  snprintf(path, sizeof path, "%s/%s", own_folder, name);
  return path;
}

void key(Session *s, char c) { type_bytes(s, &c, 1); }

bool row_begins(const Session *s, int y, const char *text) {
  char *row = screen_row(&s->screen, y);
  bool begins = strncmp(row, text, strlen(text)) == 0;
  free(row);
  return begins;
}

Session open_prompt(const Setup *setup) {
  Session s;
  session_open(&s, setup);
  wait_prompt(&s);
  return s;
}

void leave(Session *s) {
  key(s, CTRL_D);
  wait_end(s, 0);
  session_close(s);
}

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
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
      for (const Case *c = lists[i]; c->name; c++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++) wanted |= strstr(c->name, argv[k]) != NULL;
        if (!wanted) continue;
        test(c->name);
        c->run();
      }
    }
    result = test_result();
  }
  char remove_it[600];
  snprintf(remove_it, sizeof remove_it, "rm -rf '%s'", own_folder);
  return system(remove_it) == 0 ? result : 2;
}
