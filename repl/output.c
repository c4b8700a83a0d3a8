/* output.c — writing that signals cannot break (see output.h). stdio marks a stream as failed and drops its buffer
 * when a signal interrupts a write; here what is left is kept and written later. */
#define _GNU_SOURCE /* asprintf and its like */
#include "repl/output.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
  char *data;
  size_t len, cap;
  int error;
  int terminal; /* 1 yes, 2 no, 0 not looked at yet */
  bool inside;  /* of a line that was begun */
} out;

/* Writes until nothing is left. `give_up`: an interrupt ends it. How much was written; *error is set on failure. */
static size_t write_some(int fd, const char *text, size_t len, bool give_up, int *error) {
  size_t done = 0;
  while (done < len) {
    ssize_t n = write(fd, text + done, len - done);
    if (n >= 0) {
      done += (size_t)n;
      if (give_up && interrupt_pending()) break; /* a terminal takes a part of it then */
    } else if (errno == EAGAIN) { /* somebody else made the terminal or the pipe non-blocking */
      struct pollfd p = {.fd = fd, .events = POLLOUT};
      (void)poll(&p, 1, 200);
      if (give_up && interrupt_pending()) break;
    } else if (errno != EINTR) {
      *error = errno;
      break;
    } else if (give_up && interrupt_pending()) {
      break;
    }
  }
  return done;
}

static void write_waiting(void) {
  size_t n = write_some(STDOUT_FILENO, out.data, out.len, true, &out.error);
  if (out.error) n = out.len;
  memmove(out.data, out.data + n, out.len - n);
  out.len -= n;
}

void out_flush(void) {
  if (out.len) write_waiting();
}

void out_ask(void) {
  out_flush();
  if (isatty(STDIN_FILENO)) out.inside = false;
}

/* What waits is bounded but while a write is interrupted. */
static bool take_room(size_t more) {
  enum { LEAST = 8192 };
  if (out.len + more <= out.cap) return true;
  size_t want = out.cap ? out.cap : LEAST;
  while (want < out.len + more) want *= 2;
  char *data = realloc(out.data, want);
  if (!data) return false;
  out.data = data;
  out.cap = want;
  return true;
}

void out_put(const char *text, size_t len) {
  if (!len || out.error) return;
  if (!out.terminal) out.terminal = isatty(STDOUT_FILENO) ? 1 : 2;
  if (!take_room(len)) {
    out_flush();
    if (!out.error) (void)write_some(STDOUT_FILENO, text, len, false, &out.error);
    return;
  }
  memcpy(out.data + out.len, text, len);
  out.len += len;
  out.inside = text[len - 1] != '\n';
  if (out.terminal == 1 || memchr(text, '\n', len)) out_flush();
}

void out_puts(const char *text) { out_put(text, strlen(text)); }

void err_puts(const char *text) {
  int error = 0;
  (void)write_some(STDERR_FILENO, text, strlen(text), false, &error);
}

void out_printf(const char *fmt, ...) {
  char *text = NULL;
  va_list ap;
  va_start(ap, fmt);
  int n = vasprintf(&text, fmt, ap);
  va_end(ap);
  if (n > 0) out_put(text, (size_t)n);
  if (n >= 0) free(text);
}

void out_fresh_line(void) {
  if (out.inside) out_put("\n", 1);
}

void out_drop(void) {
  out.len = 0;
  if (isatty(STDOUT_FILENO)) out.inside = true;
}

int out_error(void) { return out.error; }

int out_finish(void) {
  out_flush();
  free(out.data);
  out.data = NULL;
  out.len = out.cap = 0;
  return out.error;
}
