/* program.c — reading programs, and laying them out. */
#define _GNU_SOURCE
#include "repl/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/weft.h"
#include "repl/output.h"

int read_program(int fd, Program *p) {
  size_t cap = 65536;
  p->text = malloc(cap);
  p->len = 0;
  if (fd < 0) return errno;
  while (p->text) {
    ssize_t n = read(fd, p->text + p->len, cap - p->len - 1);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    p->len += (size_t)n;
    if (cap - p->len < 2) {
      char *more = realloc(p->text, cap *= 2);
      if (!more) free(p->text);
      p->text = more;
    }
  }
  if (!p->text) return ENOMEM;
  p->text[p->len] = 0;
  return 0;
}

/* ---- weft fmt ------------------------------------------------------------------------------------- */

static bool write_all(int fd, const char *text, size_t len) {
  while (len) {
    ssize_t n = write(fd, text, len);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text += n;
    len -= (size_t)n;
  }
  return true;
}

/* Another file takes its place, so that none is ever half written. A link stays: what it points to is replaced. */
static bool replace_file(const char *name, const char *text, size_t len) {
  char *path = realpath(name, NULL), *other = NULL;
  struct stat old;
  bool ok = path && stat(path, &old) == 0 && asprintf(&other, "%s.XXXXXX", path) > 0;
  int fd = ok ? mkstemp(other) : -1;
  ok = fd >= 0 && fchmod(fd, old.st_mode & 07777) == 0 && write_all(fd, text, len);
  int why = errno;
  if (fd >= 0 && close(fd) != 0 && ok) ok = false, why = errno;
  if (ok && rename(other, path) != 0) ok = false, why = errno;
  if (fd >= 0 && !ok) unlink(other);
  free(path);
  free(other);
  errno = why;
  return ok;
}

typedef enum Laid { LAID_BEFORE, LAID_NOW, LAID_FAILED } Laid;

static Laid format_file(WeftVM *vm, const char *file, bool check) {
  bool input = strcmp(file, "-") == 0;
  Program p = {.name = input ? "<stdin>" : file};
  int fd = input ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
  int code = read_program(fd, &p);
  if (!input && fd >= 0) close(fd);
  if (code) return fprintf(stderr, "weft: cannot read \"%s\": %s\n", file, strerror(code)), free(p.text), LAID_FAILED;
  const char *text;
  Laid laid = LAID_FAILED;
  if (weft_format(vm, p.text, p.len, p.name, &text) != WEFT_OK) fprintf(stderr, "%s", weft_error_text(vm));
  else if (input && !check) out_puts(text), laid = LAID_BEFORE;
  else if (strlen(text) == p.len && memcmp(text, p.text, p.len) == 0) laid = LAID_BEFORE;
  else if (check) out_puts(p.name), out_puts("\n"), laid = LAID_NOW;
  else if (replace_file(file, text, strlen(text))) laid = LAID_NOW;
  else fprintf(stderr, "weft: cannot write \"%s\": %s\n", file, strerror(errno));
  free(p.text);
  return laid;
}

int format_files(int argc, char **argv) {
  bool check = argc > 0 && strcmp(argv[0], "--check") == 0, failed = false, found = false;
  if (check) argc--, argv++;
  if (argc > 0 && strcmp(argv[0], "--") == 0) argc--, argv++;
  else if (argc > 0 && argv[0][0] == '-' && argv[0][1])
    return fprintf(stderr, "weft fmt: unknown option: %s\ntry: weft --help\n", argv[0]), 2;
  if (argc == 0) return fprintf(stderr, "weft fmt: a file is missing\ntry: weft --help\n"), 2;
  WeftVM *vm = weft_new(NULL);
  if (!vm) return fprintf(stderr, "weft: out of memory\n"), 1;
  for (int i = 0; i < argc; i++) {
    Laid laid = format_file(vm, argv[i], check);
    failed |= laid == LAID_FAILED;
    found |= laid == LAID_NOW;
  }
  weft_free(vm);
  return failed || (check && found);
}
