/* program.c — reading programs, laying them out, compiling them to files. */
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

/* ---- weft compile --------------------------------------------------------------------------------- */

/* Where f.weft goes: f.weftc; what is called otherwise gets .weftc behind. NULL: out of memory. */
static char *compiled_name(const char *file) {
  const size_t n = strlen(file);
  char *name;
  const bool usual = n > 5 && strcmp(file + n - 5, ".weft") == 0 && file[n - 6] != '/';
  return asprintf(&name, "%s%s", file, usual ? "c" : ".weftc") < 0 ? NULL : name;
}

/* A new file takes the place of an old one, so that none is ever half written; what is no file is written to. */
static bool write_file(const char *path, const char *bytes, size_t count) {
  struct stat old;
  const bool there = stat(path, &old) == 0;
  if (there && S_ISREG(old.st_mode)) return replace_file(path, bytes, count);
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  bool ok = fd >= 0 && write_all(fd, bytes, count);
  int why = errno;
  if (fd >= 0 && close(fd) != 0 && ok) ok = false, why = errno;
  if (fd >= 0 && !ok && !there) unlink(path);
  errno = why;
  return ok;
}

static bool same_file(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The exit status. */
static int compile_to(const char *file, const char *out, bool strip) {
  const bool input = strcmp(file, "-") == 0;
  Program p = {.name = input ? "<stdin>" : file};
  const int fd = input ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC), code = read_program(fd, &p);
  if (!input && fd >= 0) close(fd);
  if (code) return fprintf(stderr, "weft: cannot read \"%s\": %s\n", file, strerror(code)), free(p.text), 2;
  const void *bytes;
  size_t count;
  WeftVM *vm = weft_new(NULL);
  int result = 1;
  if (!vm) fprintf(stderr, "weft: out of memory\n");
  else if (weft_is_compiled(p.text, p.len)) fprintf(stderr, "weft: \"%s\" is compiled already\n", file);
  else if (weft_compile(vm, NULL, p.text, p.len, p.name, strip ? WEFT_COMPILE_STRIP : 0, &bytes, &count) != WEFT_OK)
    fprintf(stderr, "%s", weft_error_text(vm));
  else if (!write_file(out, bytes, count)) fprintf(stderr, "weft: cannot write \"%s\": %s\n", out, strerror(errno));
  else result = 0;
  weft_free(vm);
  free(p.text);
  return result;
}

static int wrong_compile(const char *what, const char *arg) {
  fprintf(stderr, "weft compile: %s%s%s\ntry: weft --help\n", what, *arg ? ": " : "", arg);
  return 2;
}

int compile_file(int argc, char **argv) {
  bool bytecode = false, strip = false, options = true;
  const char *file = NULL, *out = NULL;
  for (int i = 0; i < argc; i++) {
    const char *a = argv[i];
    if (options && strcmp(a, "--") == 0) options = false;
    else if (options && strcmp(a, "-c") == 0) bytecode = true;
    else if (options && strcmp(a, "--strip") == 0) strip = true;
    else if (options && strcmp(a, "-o") == 0) {
      if (++i == argc) return wrong_compile("a value is missing behind", a);
      out = argv[i];
    } else if (options && a[0] == '-' && a[1]) return wrong_compile("unknown option", a);
    else if (file) return wrong_compile("one file at a time", a);
    else file = a;
  }
  if (!bytecode) return wrong_compile("-c is missing: bytecode is what it can make", "");
  if (!file) return wrong_compile("a file is missing", "");
  if (!out && strcmp(file, "-") == 0) return wrong_compile("standard input needs -o", "");
  char *usual = out ? NULL : compiled_name(file);
  if (!out && !usual) return fprintf(stderr, "weft: out of memory\n"), 1;
  const int result = same_file(file, out ? out : usual) ? wrong_compile("-o is the program itself", out ? out : usual)
                                                        : compile_to(file, out ? out : usual, strip);
  free(usual);
  return result;
}
