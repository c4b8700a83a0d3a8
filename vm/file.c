/* file.c — reading all of a file, a pipe or a device; output and what waits to be written (see vm.h). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vm/vm.h"

/* ---- reading ---------------------------------------------------------------------------------- */

enum { FAILED = -1 };

/* Until there is something to read: for a pipe that may be never, so limits and interrupts are looked at. */
int vm_wait_data(Vm *vm, int fd) {
  enum { LOOK_MS = 200 };
  for (;;) {
    if (vm_poll(vm, 0) != WEFT_OK) return FAILED;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, 1, LOOK_MS);
    if (n > 0) return 0;
    if (n < 0 && errno != EINTR) return errno;
  }
}

static int read_all(Vm *vm, int fd, size_t first, u64 most, char **data, size_t *len, size_t *cap) {
  enum { ONCE = 16 << 20 };
  for (;;) {
    if (*cap - *len < 2) {
      size_t want = *cap ? *cap * 2 : first;
      if (*len > most) return EFBIG;
      char *more = mem_resize(&vm->alloc, *data, *cap, want);
      if (!more) return ENOMEM;
      *data = more;
      *cap = want;
    }
    int code = vm_wait_data(vm, fd);
    if (code) return code;
    size_t room = *cap - *len - 1;
    ssize_t got = read(fd, *data + *len, room < ONCE ? room : ONCE);
    if (got == 0) return 0;
    if (got > 0) *len += (size_t)got;
    else if (errno != EINTR && errno != EAGAIN) return errno;
  }
}

int vm_read_file(Vm *vm, const char *path, u64 most, char **data, size_t *len, size_t *cap) {
  enum { LEAST = 65536 };
  *data = NULL;
  *len = *cap = 0;
  int fd;
  /* a pipe without a writer: waited for below, not here */
  while ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) < 0) {
    if (errno != EINTR) return errno;
    if (vm_poll(vm, 0) != WEFT_OK) return FAILED;
  }
  struct stat about;
  bool sized = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0;
  int code = sized && (u64)about.st_size > most ? EFBIG : read_all(vm, fd, sized ? (size_t)about.st_size + 2 : LEAST,
                                                                   most, data, len, cap);
  close(fd);
  if (code == 0 && *len > most) code = EFBIG;
  if (code == 0) {
    (*data)[*len] = 0;
    return 0;
  }
  mem_free(&vm->alloc, *data, *cap);
  *data = NULL;
  return code;
}

int vm_files_code(const Vm *vm, int code) {
  if (vm->error.raised) return FAILED;
  return code < 0 ? EIO : code;
}

ptrdiff_t vm_files_read(Vm *vm, void *file, u64 at, char *to, size_t room, int *code) {
  if (vm_poll(vm, 0) != WEFT_OK) return *code = FAILED;
  const ptrdiff_t got = vm->files->read(vm->files->context, file, at, to, room);
  const bool wrong = got < 0 || (size_t)got > room;
  *code = vm_files_code(vm, !wrong ? 0 : got < 0 && got > -4096 ? (int)-got : EIO);
  return *code ? FAILED : got;
}

static int read_open(Vm *vm, void *file, u64 most, char **data, size_t *len, size_t *cap) {
  enum { LEAST = 65536 };
  for (;;) {
    if (*cap - *len < 2) {
      const size_t want = *cap ? *cap * 2 : LEAST;
      if (*len > most) return EFBIG;
      char *more = mem_resize(&vm->alloc, *data, *cap, want);
      if (!more) return ENOMEM;
      *data = more;
      *cap = want;
    }
    int code;
    const ptrdiff_t got = vm_files_read(vm, file, *len, *data + *len, *cap - *len - 1, &code);
    if (got <= 0) return code ? code : *len > most ? EFBIG : 0;
    *len += (size_t)got;
  }
}

int vm_read_visible(Vm *vm, const char *path, u64 most, char **data, size_t *len, size_t *cap) {
  if (!vm->files) return vm_read_file(vm, path, most, data, len, cap);
  void *file = NULL;
  *data = NULL;
  *len = *cap = 0;
  int code = vm_files_code(vm, vm->files->open(vm->files->context, path, &file));
  if (code) return code;
  code = read_open(vm, file, most, data, len, cap);
  vm->files->close(vm->files->context, file);
  if (code == 0) {
    (*data)[*len] = 0;
    return 0;
  }
  mem_free(&vm->alloc, *data, *cap);
  *data = NULL;
  return code;
}

/* ---- writing ---------------------------------------------------------------------------------- */

/* A handler of the host's that does not restart calls leaves stdio's mark of an error behind, which would be told at
 * the end of the program. What was to be written then is lost to stdio, so it is an error. */
static WeftStatus write_stdout(Vm *vm, const char *text, size_t len) {
  bool marked = ferror(stdout) != 0;
  errno = 0;
  if (fwrite(text, 1, len, stdout) == len && (marked || !ferror(stdout))) return WEFT_OK;
  if (errno != EINTR) return vm_error(vm, EK_io, "writing to the standard output failed");
  if (!marked) clearerr(stdout);
  if (vm_poll(vm, 0) != WEFT_OK) return WEFT_ERROR;
  return vm_error(vm, EK_io, "a signal interrupted writing to the standard output");
}

WeftStatus vm_write(Vm *vm, const char *text, size_t len) {
  if (vm->limits.output != UINT64_MAX) {
    if (len > vm->limits.output) return vm_limit(vm, LIMIT_output, "the output limit is reached");
    vm->limits.output -= len;
  }
  if (!len) return WEFT_OK;
  if (!vm->output) return write_stdout(vm, text, len);
  if (vm->output(vm->output_ctx, text, len) == WEFT_OK) return WEFT_OK;
  return vm->error.raised ? WEFT_ERROR : vm_error(vm, EK_io, "the output failed");
}

void vm_tell_text(Vm *vm, const char *text, size_t len) {
  if (vm->tell && len) vm->tell(vm->tell_ctx, text, len);
  else if (len) (void)fwrite(text, 1, len, stderr);
}

void vm_tell(Vm *vm, const char *fmt, ...) {
  Buf line;
  va_list ap;
  buf_init(&line, &vm->alloc);
  va_start(ap, fmt);
  buf_vprintf(&line, fmt, ap);
  va_end(ap);
  vm_tell_text(vm, buf_text(&line), line.len);
  buf_free(&line);
}

WeftStatus vm_flush(Vm *vm) {
  if (vm->output) {
    if (vm->output(vm->output_ctx, "", 0) == WEFT_OK) return WEFT_OK;
    return vm->error.raised ? WEFT_ERROR : vm_error(vm, EK_io, "the output failed");
  }
  if (fflush(stdout) != 0 && errno == EINTR) clearerr(stdout);
  return WEFT_OK;
}
