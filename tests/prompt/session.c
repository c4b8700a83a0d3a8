/* session.c — see session.h. */
#define _GNU_SOURCE /* strcasestr and its like */
#include "tests/prompt/session.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

const char *own_folder;

enum { PATIENCE = 60 }; /* seconds that a wait lasts at most; a busy machine takes some */

/* ---- tests ------------------------------------------------------------------------------------ */

static const char *running;
static char why[4096];
static int failures;

static void end_test(void) {
  if (!running) return;
  if (*why) printf("not ok prompt/%s: %s\n", running, why);
  else printf("ok prompt/%s\n", running);
  fflush(stdout);
  failures += *why != 0;
}

void test(const char *name) {
  end_test();
  running = name;
  *why = 0;
}

bool must(bool good, const char *fmt, ...) {
  if (good || *why) return good;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(why, sizeof why, fmt, ap);
  va_end(ap);
  for (char *c = why; *c; c++)
    if (*c == '\n') *c = '~';
  return false;
}

int test_result(void) {
  end_test();
  running = NULL;
  return failures != 0;
}

/* ---- the program ------------------------------------------------------------------------------ */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_program(const Setup *setup, const char *history) {
  const char *program = getenv("WEFT");
  const char *argv[16] = {program};
  int n = 1;
  for (const char *const *a = setup->args; a && *a && n < 15; a++) argv[n++] = *a;
  argv[n] = NULL;
  char home[512], file[600], term[64];
  snprintf(home, sizeof home, "HOME=%s", own_folder);
  snprintf(file, sizeof file, "WEFT_HISTORY=%s", history);
  snprintf(term, sizeof term, "TERM=%s", setup->term ? setup->term : "xterm");
  char *env[10] = {home, file, term, "LC_ALL=C.UTF-8", "INPUTRC=/dev/null", "PATH=/usr/bin:/bin", "WEFT_PACE=0"};
  char sanitizer[1024];
  n = 7;
  if (setup->more) env[n++] = (char *)setup->more;
  snprintf(sanitizer, sizeof sanitizer, "ASAN_OPTIONS=%s", getenv("ASAN_OPTIONS") ? getenv("ASAN_OPTIONS") : "");
  env[n] = sanitizer;
  if (chdir(own_folder) != 0) _exit(120);
  execve(program, (char **)argv, env);
  _exit(121);
}

void session_open(Session *s, const Setup *setup) {
  static const Setup usual;
  if (!setup) setup = &usual;
  char own_history[512];
  snprintf(own_history, sizeof own_history, "%s/history", own_folder);
  if (!setup->history) unlink(own_history);
  int width = setup->width ? setup->width : 80, height = setup->height ? setup->height : 24;
  struct winsize size = {.ws_row = (unsigned short)height, .ws_col = (unsigned short)width};
  *s = (Session){.fd = -1};
  screen_open(&s->screen, width, height);
  s->pid = forkpty(&s->fd, NULL, NULL, &size);
  if (s->pid == 0) run_program(setup, setup->history ? setup->history : own_history);
  if (s->pid < 0) {
    must(false, "no pseudo-terminal: %s", strerror(errno));
    s->ended = true;
  }
  s->from = -1;
}

static void look_whether_ended(Session *s) {
  if (!s->ended && waitpid(s->pid, &s->status, WNOHANG) == s->pid) s->ended = true;
}

void session_close(Session *s) {
  if (s->fd >= 0) close(s->fd);
  s->fd = -1;
  look_whether_ended(s);
  if (!s->ended) {
    kill(s->pid, SIGKILL);
    waitpid(s->pid, &s->status, 0);
    s->ended = true;
  }
  screen_close(&s->screen);
}

/* Takes what the program writes within ms; false: there is no more. */
static bool listen_for(Session *s, int ms) {
  char part[4096];
  struct pollfd p = {.fd = s->fd, .events = POLLIN};
  if (s->fd < 0) return false;
  int n = poll(&p, 1, ms);
  if (n < 0) return errno == EINTR;
  if (n == 0) return true;
  ssize_t got = read(s->fd, part, sizeof part);
  if (got <= 0) return got < 0 && errno == EINTR;
  screen_put(&s->screen, part, (size_t)got);
  return true;
}

void type_bytes(Session *s, const char *bytes, size_t n) {
  s->from = s->screen.y;
  while (n && s->fd >= 0) {
    struct pollfd p = {.fd = s->fd, .events = POLLIN | POLLOUT};
    if (poll(&p, 1, 1000 * PATIENCE) <= 0) break;
    if (p.revents & POLLIN) (void)listen_for(s, 0); /* a program that waits for us to read does not read */
    if (!(p.revents & POLLOUT)) {
      if (p.revents & (POLLHUP | POLLERR)) break;
      continue;
    }
    ssize_t done = write(s->fd, bytes, n < 512 ? n : 512);
    if (done < 0 && errno != EINTR && errno != EAGAIN) break;
    if (done > 0) bytes += done, n -= (size_t)done;
  }
}

void type(Session *s, const char *keys) { type_bytes(s, keys, strlen(keys)); }

/* ---- waiting ---------------------------------------------------------------------------------- */

/* What the screen shows last, for a message; lives until the next call. */
static const char *tail(const Session *s) {
  static char text[1024];
  size_t n = 0;
  text[0] = 0;
  for (int y = s->screen.row_count > 6 ? s->screen.row_count - 6 : 0; y < s->screen.row_count; y++) {
    char *row = screen_row(&s->screen, y);
    int m = snprintf(text + n, sizeof text - n, "%s~", row);
    free(row);
    n = n + (size_t)m < sizeof text ? n + (size_t)m : sizeof text - 1;
  }
  return text;
}

static bool is_row(const Session *s, const char *text) {
  char *row = screen_row(&s->screen, s->screen.y);
  size_t n = strlen(text);
  while (n && text[n - 1] == ' ') n--;
  bool same = strlen(row) == n && strncmp(row, text, n) == 0;
  free(row);
  return same;
}

static bool holds(const Session *s, const char *text) {
  bool found = false;
  for (int y = s->from < 0 ? 0 : s->from; !found && y < s->screen.row_count; y++) {
    char *row = screen_row(&s->screen, y);
    found = strstr(row, text) != NULL;
    free(row);
  }
  return found;
}

static bool is_prompt(const Session *s, const char *text) {
  return s->screen.y > s->from && s->screen.x == (int)strlen(text) && is_row(s, text);
}

/* Whether the program sleeps, as it does while it waits for a key. Where the system does not tell: yes. */
static bool sleeps(const Session *s) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)s->pid);
  FILE *f = fopen(path, "r");
  if (!f) return true;
  size_t n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  text[n] = 0;
  const char *state = strrchr(text, ')'); /* "pid (name) S ..." */
  return !state || state[1] == 0 || state[2] != 'R';
}

/* Takes the rest of what is being drawn: readline writes row by row, and the cursor is at its place only behind the
   last. A program that computes does not come to rest; it gets a fifth of a second. */
static void rest(Session *s) {
  struct pollfd p = {.fd = s->fd, .events = POLLIN};
  for (double end = now() + 0.2; s->fd >= 0 && now() < end;) {
    bool asleep = sleeps(s); /* asked before: what it wrote until then is in the terminal */
    int n = poll(&p, 1, asleep ? 0 : 1);
    if (n > 0 && !listen_for(s, 0)) return;
    if (n == 0 && asleep) return;
  }
}

/* Whether what is waited for is there, and stays when the program has come to rest. A text may be gone by then, as one
 * that tells of progress. */
static bool is_and_stays(Session *s, bool (*is)(const Session *, const char *), const char *text) {
  if (!is(s, text)) return false;
  rest(s);
  return is == holds || is(s, text);
}

static bool wait_until(Session *s, bool (*is)(const Session *, const char *), const char *text, const char *what) {
  if (*why) return false;
  double end = now() + PATIENCE;
  while (!is_and_stays(s, is, text)) {
    if (now() > end) return must(false, "waited in vain for %s '%s'; the screen ends with: %s", what, text, tail(s));
    if (!listen_for(s, 200)) {
      look_whether_ended(s);
      return must(is(s, text), "ended (status %d) before %s '%s'; the screen ends with: %s", s->status, what,
                  text, tail(s));
    }
  }
  return true;
}

bool wait_row(Session *s, const char *text) { return wait_until(s, is_row, text, "the row"); }
bool wait_text(Session *s, const char *text) { return wait_until(s, holds, text, "the text"); }
bool wait_prompt(Session *s) { return wait_until(s, is_prompt, "> ", "the prompt"); }

/* The next line of a block is indented already. */
static bool is_more(const Session *s, const char *text) {
  return s->screen.y > s->from && s->screen.x >= (int)strlen(text) && is_row(s, text);
}
bool wait_more(Session *s) { return wait_until(s, is_more, "... ", "the prompt"); }

static bool is_column(const Session *s, const char *text) { return s->screen.x == atoi(text); }
bool wait_column(Session *s, int x) {
  char text[16];
  snprintf(text, sizeof text, "%d", x);
  return wait_until(s, is_column, text, "the column");
}

bool wait_end(Session *s, int code) {
  if (*why) return false;
  double end = now() + PATIENCE;
  for (bool more = true; !s->ended && now() < end;) {
    if (more) more = listen_for(s, 50);
    else usleep(2000); /* the terminal is closed, the process not yet gone */
    look_whether_ended(s);
  }
  while (s->fd >= 0 && listen_for(s, 0)) {
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    if (poll(&p, 1, 0) <= 0) break;
  }
  if (!s->ended) return must(false, "does not end; the screen ends with: %s", tail(s));
  int got = WIFEXITED(s->status) ? WEXITSTATUS(s->status) : 128 + WTERMSIG(s->status);
  return must(got == code, "exit status %d instead of %d; the screen ends with: %s", got, code, tail(s));
}

bool wait_gone(Session *s) {
  for (double end = now() + PATIENCE; !s->ended && now() < end; usleep(2000)) look_whether_ended(s);
  return must(s->ended, "does not end");
}

/* ---- questions and answers -------------------------------------------------------------------- */

const char *ask(Session *s, const char *line) {
  static char *answer;
  free(answer);
  answer = strdup("");
  type(s, line);
  int begin = s->from; /* where the input's first row is */
  /* The echo must be whole before Enter: where a row of the answer begins is not known else. */
  type(s, "\r");
  s->from = begin;
  if (!wait_prompt(s)) return answer;
  size_t n = 0;
  for (int y = begin + 1; y < s->screen.y; y++) {
    char *row = screen_row(&s->screen, y);
    answer = realloc(answer, n + strlen(row) + 2);
    n += (size_t)sprintf(answer + n, "%s%s", n ? "\n" : "", row);
    free(row);
  }
  return answer;
}

bool said(Session *s, const char *line, const char *wanted) {
  const char *got = ask(s, line);
  return must(strcmp(got, wanted) == 0, "'%s' gives '%s' instead of '%s'", line, got, wanted);
}

bool told(Session *s, const char *line, const char *part) {
  const char *got = ask(s, line);
  return must(strstr(got, part) != NULL, "'%s' gives '%s', without '%s'", line, got, part);
}
