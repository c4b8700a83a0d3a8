/* history.c — the file of what was entered at the prompt (see history.h).
 *
 * An entry begins at the left margin; its further lines begin with a tab, which is none of theirs. So a file that
 * has one line for each entry reads as it was meant. An entry is written behind the end as soon as it is entered,
 * under a lock, so sessions at the same time lose nothing of each other's, and a crash loses nothing. Who loads a
 * file of far more entries than are kept writes a shorter one and puts it in its place. */
#define _GNU_SOURCE /* asprintf and its like */
#include "repl/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <readline/history.h>

#include "repl/output.h"

enum {
  MOST = 10000,          /* entries of the file that are loaded */
  SLACK = 2000,          /* so many more, and the file is shortened */
  BYTES_KEPT = 4 << 20,  /* of the file */
  ENTRY_MOST = 64 << 10, /* longer entries live as long as the session */
};

static bool kept; /* is there a file? not where nobody sits at a prompt */
static bool told; /* once that the file cannot be used */

static void tell(const char *path, int code) {
  if (!told) fprintf(stderr, "weft: the history is not kept: \"%s\": %s\n", path, strerror(code));
  told = true;
}

/* WEFT_HISTORY, else .weft_history in the home folder; links are followed, since the file may be replaced. To be freed;
 * NULL: none. */
static char *history_path(void) {
  const char *named = getenv("WEFT_HISTORY"), *home = getenv("HOME");
  char *path = NULL;
  if (named) path = *named ? strdup(named) : NULL;
  else if (home && *home && asprintf(&path, "%s/.weft_history", home) < 0) path = NULL;
  char *real = path ? realpath(path, NULL) : NULL;
  if (!real) return path;
  free(path);
  return real;
}

/* A lock that another session holds for longer than a moment is done without. */
static void lock(int fd) {
  enum { TRIES = 50 };
  for (int i = 0; i < TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
}

/* The file, locked. -1: there is none to use; what is no regular file is left alone. */
static int open_locked(const char *path, int flags) {
  for (;;) {
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0) {
      if (errno == EINTR) continue;
      if (errno != ENOENT || flags & O_CREAT) tell(path, errno);
      return -1;
    }
    struct stat about;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
      close(fd);
      return -1;
    }
    lock(fd);
    if (fstat(fd, &about) != 0 || about.st_nlink) return fd;
    close(fd); /* another session put a shorter one in its place meanwhile */
  }
}

static bool write_whole(int fd, const char *text, size_t len) {
  for (ssize_t n; len; text += n, len -= (size_t)n) {
    n = write(fd, text, len);
    if (n < 0 && errno == EINTR) n = 0;
    else if (n < 0) return false;
  }
  return true;
}

static char *read_whole(int fd, size_t *len) {
  struct stat about;
  if (fstat(fd, &about) != 0) return NULL;
  size_t size = (size_t)about.st_size;
  char *text = malloc(size + 1);
  for (*len = 0; text && *len < size;) {
    ssize_t n = read(fd, text + *len, size - *len);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    *len += (size_t)n;
  }
  if (text) text[*len] = 0;
  return text;
}

static void shorten(const char *path, int old, const char *text, size_t len) {
  char *temporary = NULL;
  struct stat about;
  if (fstat(old, &about) != 0 || asprintf(&temporary, "%s.%ld", path, (long)getpid()) < 0) return;
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) {
    bool ok = fchmod(fd, about.st_mode & 0777) == 0 && write_whole(fd, text, len);
    ok = close(fd) == 0 && ok && rename(temporary, path) == 0;
    if (!ok) unlink(temporary);
  }
  free(temporary);
}

/* The entry at *at with its tabs taken out, in place; *at: the next one. */
static char *next_entry(char **at) {
  char *entry = *at, *to = entry, *from = entry;
  while (*from && !(*from == '\n' && from[1] != '\t')) {
    *to++ = *from;
    from += *from == '\n' ? 2 : 1;
  }
  *at = *from ? from + 1 : from;
  *to = 0;
  return entry;
}

/* Where the last `most` entries begin; *count: how many there are in all. */
static size_t last_entries(const char *text, size_t len, size_t most, size_t *count) {
  size_t found = 0, start = 0;
  for (size_t i = len; i-- > 0;) {
    if ((i && text[i - 1] != '\n') || (i && text[i] == '\t')) continue;
    found++;
    if (found <= most && len - i <= BYTES_KEPT) start = i;
  }
  *count = found;
  if (found && len && start == 0 && (found > most || len > BYTES_KEPT)) start = len; /* not even one is small enough */
  return start;
}

void prompt_history_load(void) {
  using_history();
  stifle_history(MOST);
  kept = true;
  char *path = history_path();
  int fd = path ? open_locked(path, O_RDONLY) : -1;
  size_t len = 0, count;
  char *text = fd >= 0 ? read_whole(fd, &len) : NULL;
  if (text) {
    size_t start = last_entries(text, len, MOST, &count);
    if (count > MOST + SLACK || len > BYTES_KEPT) shorten(path, fd, text + start, len - start);
    for (char *at = text + start; *at;) {
      char *entry = next_entry(&at);
      if (*entry) add_history(entry);
    }
  }
  if (fd >= 0) close(fd);
  free(text);
  free(path);
}

static void append(const char *path, const char *entry) {
  size_t len = strlen(entry), lines = 1;
  for (size_t i = 0; i < len; i++) lines += entry[i] == '\n';
  char *text = len > ENTRY_MOST ? NULL : malloc(len + lines + 1), *to = text;
  if (!text) return;
  for (size_t i = 0; i < len; i++) {
    *to++ = entry[i];
    if (entry[i] == '\n') *to++ = '\t';
  }
  *to++ = '\n';
  int fd = open_locked(path, O_WRONLY | O_CREAT | O_APPEND);
  if (fd >= 0 && !write_whole(fd, text, (size_t)(to - text))) tell(path, errno);
  if (fd >= 0) close(fd);
  free(text);
}

void prompt_history_add(const char *entry) {
  entry += strspn(entry, " \t\r\n");
  size_t len = strlen(entry);
  while (len && strchr(" \t\r\n", entry[len - 1])) len--;
  char *text = len ? strndup(entry, len) : NULL;
  if (!text) return;
  HIST_ENTRY *last = history_length ? history_get(history_base + history_length - 1) : NULL;
  if (!last || strcmp(last->line, text) != 0) {
    add_history(text);
    char *path = kept ? history_path() : NULL;
    if (path) append(path, text);
    free(path);
  }
  free(text);
}

void prompt_history_tell(const char *part) {
  enum { SHOWN = 20 };
  int first = history_length;
  for (int left = SHOWN; left && first > 0;) {
    const HIST_ENTRY *e = history_get(history_base + --first);
    left -= e && (!part || strstr(e->line, part));
  }
  for (int i = first; i < history_length; i++) {
    const HIST_ENTRY *e = history_get(history_base + i);
    if (!e || (part && !strstr(e->line, part))) continue;
    for (const char *line = e->line; line;) {
      const char *end = strchr(line, '\n');
      out_puts(line == e->line ? "  " : "  ... ");
      out_put(line, end ? (size_t)(end - line) : strlen(line));
      out_puts("\n");
      line = end ? end + 1 : NULL;
    }
  }
}
